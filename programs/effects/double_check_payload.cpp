// Double-checked locking of an object: the pointer is checked without the lock, and so is what it
// points to.
//
//~ verdict: racy
//~ topic: double check, weak memory
//~ twin: racefree/static_local.cpp
//~ race a: the pointer: the check without the lock
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: double-check
//~   source: the second check, under the lock, decides
//~ race b: the object: made under the lock, used without
//~   real: no
//~   observed: maybe
//~   class: single-ordering
//~   replay: replay-failure
//~   needs: none
//~   label: double-check
//~   source: only a thread that saw the pointer uses the object without the lock, and the pointer
//~   | is written last; a weaker memory model could show it unfinished
#include <cstdio>
#include <mutex>
#include <thread>

struct Config {
    int port;
};

static std::mutex lock;
static Config made;
static Config *volatile instance;
static int seen[2];

static Config *get() {
    Config *found = instance;                 //~ RACE(a) read
    if (found == nullptr) {
        std::lock_guard<std::mutex> guard(lock);
        found = instance;
        if (found == nullptr) {
            found = &made;
            found->port = 8080;               //~ RACE(b) write
            instance = found;                 //~ RACE(a) write
        }
    }
    return found;
}

static void use(int *port) {
    const volatile Config *config = get();
    *port = config->port;                     //~ RACE(b) read
}

int main() {
    std::thread t1(use, &seen[0]), t2(use, &seen[1]);
    t1.join();
    t2.join();
    std::printf("%d %d\n", seen[0], seen[1]);
    return 0;
}
