// All values valid: one thread raises a level, another one only asks whether there is any.
//
//~ verdict: racy
//~ topic: both values valid, benign kinds
//~ figure: portend-plus table III, AVV
//~ twin: racefree/micro_avv_mutex.cpp
//~ race a: the level
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: both-values-valid
//~   source: portend-plus 6 and table III: k-witness harmless, states same. Old and new level
//~   | are both valid answers
#include <cstdio>
#include <thread>

static volatile int level = 1;
static bool enabled;

static void work0() {
    level = 2;                    //~ RACE(a) write
}

static void work1() {
    if (level > 0) {              //~ RACE(a) read
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
