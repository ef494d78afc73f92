// The value of effects/relaxed_publish.cpp published with release and acquire.
//
//~ verdict: race-free
//~ topic: C++ atomics, release and acquire
//~ source: the load that leaves the loop acquires what the store released
#include <atomic>
#include <cstdio>
#include <thread>

static int value;
static std::atomic<bool> ready;

int main() {
    int seen = 0;
    std::thread reader([&seen] {
        while (!ready.load(std::memory_order_acquire)) {
            std::this_thread::yield();
        }
        seen = value;
    });
    std::thread writer([] {
        value = 42;
        ready.store(true, std::memory_order_release);
    });
    writer.join();
    reader.join();
    std::printf("%d\n", seen);
    return 0;
}
