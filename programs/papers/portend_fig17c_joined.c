// The micro-benchmark sync with main printing after the joins: one output in all executions.
//
//~ verdict: racy
//~ topic: weak memory, redundant write
//~ figure: portend-plus fig. 17c, as its text describes it
//~ twin: racefree/weak_joined.c
//~ race a: both threads write 2
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: redundant-write
//~   source: portend-plus 6.5: both threads write the same value, the output is always 2,1
#include <pthread.h>
#include <stdio.h>

static volatile int global_x, global_y;
static pthread_barrier_t barrier;

static void *work0(void *unused) {
    global_x = 2;             //~ RACE(a) write
    pthread_barrier_wait(&barrier);
    global_y = 1;
    return unused;
}

static void *work1(void *unused) {
    global_x = 2;             //~ RACE(a) write
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void) {
    pthread_t t0, t1;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&t0, NULL, work0, NULL);
    pthread_create(&t1, NULL, work1, NULL);
    pthread_join(t0, NULL);
    pthread_join(t1, NULL);
    printf("%d,%d\n", global_x, global_y);
    return 0;
}
