// The micro-benchmark sync, as printed: the barrier orders T1's writes, but main prints at any time.
// The text's promise of one output holds once main joins first: portend_fig17c_joined.c.
//
//~ verdict: racy
//~ topic: weak memory
//~ figure: portend-plus fig. 17c
//~ twin: racefree/weak_joined.c
//~ race a: x: T1's write and main's read
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   or: k-witness-harmless
//~   replay: state-change
//~   or-replay: no-state-change
//~   needs: none
//~   source: main prints 0 or 2, unless T2 wrote 2 already
//~ race b: x: both writes
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   or: output-differs
//~   replay: no-state-change
//~   needs: none
//~   label: redundant-write
//~   source: both write 2; other schedules after them also move main's output
//~ race c: x: T2's write and main's read
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   or: k-witness-harmless
//~   replay: state-change
//~   or-replay: no-state-change
//~   needs: none
//~   source: main prints 0 or 2, unless T1 wrote 2 already
//~ race d: y: T1's write and main's read
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: main prints 0 or 1
#include <pthread.h>
#include <stdio.h>

static volatile int global_x, global_y;
static pthread_barrier_t barrier;

static void *work0(void *unused) {
    global_x = 2;                   //~ RACE(a) write, RACE(b) write
    pthread_barrier_wait(&barrier);
    global_y = 1;                   //~ RACE(d) write
    return unused;
}

static void *work1(void *unused) {
    global_x = 2;                   //~ RACE(b) write, RACE(c) write
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void) {
    pthread_t t0, t1;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&t0, NULL, work0, NULL);
    pthread_create(&t1, NULL, work1, NULL);
    printf("%d,%d\n", global_x, global_y);   //~ RACE(a) read, RACE(c) read, RACE(d) read
    pthread_join(t0, NULL);
    pthread_join(t1, NULL);
    return 0;
}
