// papers/portend_rw.cpp with a mutex. A detector that is blind to mutexes reports it all the same; the
// classifier must then say single-ordering (portend-plus 6.2).
//
//~ verdict: race-free
//~ topic: C++ mutex
//~ source: both writes are under the mutex
#include <cstdio>
#include <mutex>
#include <thread>

static std::mutex lock;
static int stop_requested;

static void request_stop() {
    std::lock_guard<std::mutex> guard(lock);
    stop_requested = 1;
}

int main() {
    std::thread t1(request_stop), t2(request_stop);
    t1.join();
    t2.join();
    std::printf("stop %d\n", stop_requested);
    return 0;
}
