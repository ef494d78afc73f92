// papers/portend_dcl.cpp with a mutex. A detector that is blind to mutexes reports it all the same; the
// classifier must then say single-ordering (portend-plus 6.2).
//
//~ verdict: race-free
//~ topic: C++ mutex
//~ source: instance is only accessed under the mutex
#include <cstdio>
#include <mutex>
#include <thread>

static std::mutex lock;
static int instance;

static int instance_value() {
    std::lock_guard<std::mutex> guard(lock);
    if (instance == 0) {
        instance = 42;
    }
    return instance;
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
