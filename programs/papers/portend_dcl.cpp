// Double-checked locking: the value is made under a lock that is only taken if it seems missing.
//
//~ verdict: racy
//~ topic: double check, benign kinds
//~ figure: portend-plus table III, DCL
//~ twin: racefree/micro_dcl_mutex.cpp
//~ race a: the check without the lock
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: double-check
//~   source: portend-plus 6 and table III: k-witness harmless, states same. The second
//~   | check, under the lock, decides
#include <cstdio>
#include <mutex>
#include <thread>

static std::mutex lock;
static volatile int instance;

static int instance_value() {
    int value = instance;                 //~ RACE(a) read
    if (value == 0) {
        std::lock_guard<std::mutex> guard(lock);
        value = instance;
        if (value == 0) {
            value = 42;
            instance = value;             //~ RACE(a) write
        }
    }
    return value;
}

static void work(int *seen) {
    *seen = instance_value();
}

int main() {
    int seen[4];
    std::thread threads[4];
    for (int i = 0; i < 4; i++) {
        threads[i] = std::thread(work, &seen[i]);
    }
    for (auto &thread : threads) {
        thread.join();
    }
    std::printf("%d %d %d %d\n", seen[0], seen[1], seen[2], seen[3]);
    return 0;
}
