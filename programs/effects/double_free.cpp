// Two threads take the head of a list without a lock, and both delete it.
//
//~ verdict: racy
//~ topic: double free, memory error
//~ twin: racefree/shared_ptr.cpp
//~ race a: the head: the look and the taking
//~   real: yes
//~   observed: always
//~   class: spec-violated memory-error|abort|crash
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: both threads see the node before either takes it, and both delete it
//~ race b: the taking against itself
//~   real: yes
//~   observed: maybe
//~   class: spec-violated memory-error|abort|crash
//~   replay: state-change
//~   or-replay: no-state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: only there once both threads saw the node, and then both delete it
#include <cstdio>
#include <thread>

struct Node {
    int payload[4];
};

static Node *volatile head;

static bool take() {
    Node *node = head;                    //~ RACE(a) read
    if (node == nullptr) return false;
    head = nullptr, delete node;          //~ RACE(a) write, RACE(b) write
    return true;
}

int main() {
    head = new Node();
    std::thread t1(take), t2(take);
    t1.join();
    t2.join();
    std::puts(head == nullptr ? "taken" : "left");
    return 0;
}
