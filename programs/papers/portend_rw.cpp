// Redundant writes: racing threads write the same value to a shared variable.
//
//~ verdict: racy
//~ topic: redundant write, benign kinds
//~ figure: portend-plus table III, RW
//~ twin: racefree/micro_rw_mutex.cpp
//~ race a: both threads request the stop
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: redundant-write
//~   source: portend-plus 6 and table III: k-witness harmless, states same. Both write 1
#include <cstdio>
#include <thread>

static volatile int stop_requested;

static void request_stop() {
    stop_requested = 1;               //~ RACE(a) write
}

int main() {
    std::thread t1(request_stop), t2(request_stop);
    t1.join();
    t2.join();
    std::printf("stop %d\n", stop_requested);
    return 0;
}
