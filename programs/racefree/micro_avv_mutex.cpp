// papers/portend_avv.cpp with a mutex. A detector that is blind to mutexes reports it all the same; the
// classifier must then say single-ordering (portend-plus 6.2).
//
//~ verdict: race-free
//~ topic: C++ mutex
//~ source: level is only accessed under the mutex
#include <cstdio>
#include <mutex>
#include <thread>

static std::mutex lock;
static int level = 1;
static bool enabled;

static void work0() {
    std::lock_guard<std::mutex> guard(lock);
    level = 2;
}

static void work1() {
    std::lock_guard<std::mutex> guard(lock);
    if (level > 0) {
        enabled = true;
    }
}

int main() {
    std::thread t1(work0), t2(work1);
    t1.join();
    t2.join();
    std::printf("enabled %d\n", enabled);
    return 0;
}
