// A value is published through an atomic flag, but with relaxed order: the language sees a race.
//
// On x86 the relaxed operations are the same instructions as release and acquire, and only the
// source tells them apart; a detector without it may be silent.
//
//~ verdict: racy
//~ topic: atomics, weak memory
//~ twin: racefree/atomics_release_acquire.cpp
//~ race a: the value
//~   real: no
//~   observed: maybe
//~   class: single-ordering
//~   replay: replay-failure
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: relaxed operations do not synchronise (C++17 32.4); yet the reader cannot leave its
//~   | loop before the flag is set
#include <atomic>
#include <cstdio>
#include <thread>

static volatile int value;
static std::atomic<bool> ready;

int main() {
    int seen = 0;
    std::thread reader([&seen] {
        while (!ready.load(std::memory_order_relaxed)) {
            std::this_thread::yield();
        }
        seen = value;                                     //~ RACE(a) read
    });
    std::thread writer([] {
        value = 42;                                       //~ RACE(a) write
        ready.store(true, std::memory_order_relaxed);
    });
    writer.join();
    reader.join();
    std::printf("%d\n", seen);
    return 0;
}
