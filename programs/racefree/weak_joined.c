// papers/portend_fig9.c and fig17*.c with one writer per phase, a barrier between and a join at the end.
//
//~ verdict: race-free
//~ topic: barrier, create and join
//~ source: T2 writes x before the barrier, T1 writes x and y after it, main reads after the joins
#include <pthread.h>
#include <stdio.h>

static volatile int global_x, global_y;
static pthread_barrier_t barrier;

static void *work0(void *unused) {
    pthread_barrier_wait(&barrier);
    global_x = 2;
    global_y = 1;
    return unused;
}

static void *work1(void *unused) {
    global_x = 2;
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
