// The hits of papers/replay_approximate.c, counted with relaxed atomics.
//
//~ verdict: race-free
//~ topic: atomics
//~ source: the counter is only accessed by atomic operations until the threads are joined
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LOOKUPS = 4 };

static atomic_long hits;
static long sums[2];

static void *look_up(void *argument) {
    long *sum = argument;
    for (int i = 0; i < LOOKUPS; i++) {
        *sum += i;
        atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, look_up, &sums[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("sum %ld, hits %ld\n", sums[0] + sums[1], atomic_load(&hits));
    return 0;
}
