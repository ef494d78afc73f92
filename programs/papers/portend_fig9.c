// Two writes that only a weaker memory model than sequential consistency swaps.
//
// main reads y first: in the figure's order (x first) even sequential consistency allows the crash,
// with both writes of T1 between the two reads, which is not what the figure is about.
//
//~ verdict: racy
//~ topic: weak memory
//~ figure: portend-plus fig. 9
//~ twin: racefree/weak_joined.c
//~ race a: x: T1's write and main's read
//~   real: yes
//~   observed: always
//~   class: spec-violated crash
//~   replay: state-change
//~   or-replay: no-state-change
//~   needs: weak-memory
//~   otherwise: k-witness-harmless
//~   source: portend-plus 4.5.1, 6.5: the crash needs y = 1 seen with x = 0, which sequential
//~   | consistency excludes. What main saw is kept; the order against T2 decides whether it differs
//~ race b: x: both writes
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: redundant-write
//~   source: both write 2
//~ race c: x: T2's write and main's read
//~   real: yes
//~   observed: always
//~   class: spec-violated crash
//~   replay: state-change
//~   or-replay: no-state-change
//~   needs: weak-memory
//~   otherwise: k-witness-harmless
//~   source: as race a
//~ race d: y: T1's write and main's read
//~   real: yes
//~   observed: always
//~   class: spec-violated crash
//~   replay: state-change
//~   needs: weak-memory
//~   otherwise: k-witness-harmless
//~   source: as race a; what main saw of y is kept
#include <pthread.h>
#include <stdio.h>

static volatile int global_x, global_y;
static volatile int seen_x, seen_y;

static void *work0(void *unused) {
    global_x = 2;                   //~ RACE(a) write, RACE(b) write
    global_y = 1;                   //~ RACE(d) write
    return unused;
}

static void *work1(void *unused) {
    global_x = 2;                   //~ RACE(b) write, RACE(c) write
    return unused;
}

int main(void) {
    pthread_t t0, t1;
    pthread_create(&t0, NULL, work0, NULL);
    pthread_create(&t1, NULL, work1, NULL);
    seen_y = global_y;              //~ RACE(d) read
    seen_x = global_x;              //~ RACE(a) read, RACE(c) read
    if (seen_x == 0 && seen_y == 1) {
        __builtin_trap();
    }
    pthread_join(t0, NULL);
    pthread_join(t1, NULL);
    puts("no crash");
    return 0;
}
