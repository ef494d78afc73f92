// The counter of effects/lost_update.c incremented atomically, with the old builtin.
//
//~ verdict: race-free
//~ topic: lost update, atomics
//~ source: each increment is one locked instruction; main reads after the joins
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *worker(void *unused) {
    __sync_fetch_and_add(&counter, 1);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, worker, NULL);
    pthread_create(&threads[1], NULL, worker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", counter);
    return 0;
}
