// Disjoint bit manipulation: one thread sets a bit of the flags, another one uses a different bit.
//
//~ verdict: racy
//~ topic: disjoint bits, benign kinds
//~ figure: portend-plus table III, DBM
//~ twin: racefree/micro_dbm_mutex.cpp
//~ race a: the flags
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: disjoint-bits
//~   source: portend-plus 6 and table III: k-witness harmless, states same. The bit that is
//~   | read is not the one that is written
#include <cstdio>
#include <thread>

enum : unsigned { DIRTY = 1, VISIBLE = 16 };

static volatile unsigned flags = VISIBLE;
static int drawn;

static void work0() {
    flags = flags | DIRTY;        //~ RACE(a) update
}

static void work1() {
    if (flags & VISIBLE) {        //~ RACE(a) read
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
