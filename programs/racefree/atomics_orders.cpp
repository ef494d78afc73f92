// C++ atomics: relaxed counters, a sequentially consistent spinlock, fences around relaxed flags.
//
//~ verdict: race-free
//~ topic: C++ atomics
//~ source: counters are atomic, the data are published by a fence that a fence acquires, or under
//~ | the spinlock
#include <atomic>
#include <cstdio>
#include <thread>

static std::atomic<int> counter{0};
static std::atomic_flag locked = ATOMIC_FLAG_INIT;
static std::atomic<bool> flag{false};
static std::atomic<long long> maximum{0};
static int guarded, published;

static void count(int id) {
    for (int i = 0; i < 50; i++) {
        counter.fetch_add(1, std::memory_order_relaxed);
        long long seen = maximum.load(std::memory_order_relaxed);
        while (seen < id * 100 + i && !maximum.compare_exchange_weak(seen, id * 100 + i)) {
        }
        while (locked.test_and_set()) std::this_thread::yield();
        guarded++;
        locked.clear();
    }
}

int main() {
    int seen = 0;
    std::thread receiver([&seen] {
        while (!flag.load(std::memory_order_relaxed)) std::this_thread::yield();
        std::atomic_thread_fence(std::memory_order_acquire);
        seen = published;
    });
    std::thread publisher([] {
        published = 42;
        std::atomic_thread_fence(std::memory_order_release);
        flag.store(true, std::memory_order_relaxed);
    });
    std::thread t1(count, 1), t2(count, 2);
    receiver.join();
    publisher.join();
    t1.join();
    t2.join();
    std::printf("%d %d %lld %d\n", counter.load(), guarded, maximum.load(), seen);
    return 0;
}
