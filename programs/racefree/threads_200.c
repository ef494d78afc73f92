// Two hundred threads are alive at once and meet at a barrier.
//
//~ verdict: race-free
//~ topic: barrier, many threads
//~ source: each thread writes its own cell before the barrier and reads a neighbour's after it
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 200 };

static pthread_barrier_t all_there;
static int cells[THREADS], copies[THREADS];

static void *work(void *argument) {
    int me = (int)(long)argument;
    cells[me] = me;
    pthread_barrier_wait(&all_there);
    copies[me] = cells[(me + 1) % THREADS];
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_attr_t small;
    long sum = 0;
    pthread_barrier_init(&all_there, NULL, THREADS);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], &small, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += copies[i];
    }
    printf("%ld\n", sum);
    return 0;
}
