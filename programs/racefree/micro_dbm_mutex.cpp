// papers/portend_dbm.cpp with a mutex. A detector that is blind to mutexes reports it all the same; the
// classifier must then say single-ordering (portend-plus 6.2).
//
//~ verdict: race-free
//~ topic: C++ mutex
//~ source: flags are only accessed under the mutex until the joins
#include <cstdio>
#include <mutex>
#include <thread>

enum : unsigned { DIRTY = 1, VISIBLE = 16 };

static std::mutex lock;
static unsigned flags = VISIBLE;
static int drawn;

static void work0() {
    std::lock_guard<std::mutex> guard(lock);
    flags = flags | DIRTY;
}

static void work1() {
    std::lock_guard<std::mutex> guard(lock);
    if (flags & VISIBLE) {
        drawn = 1;
    }
}

int main() {
    std::thread t1(work0), t2(work1);
    t1.join();
    t2.join();
    std::printf("drawn %d, flags %u\n", drawn, flags);
    return 0;
}
