// Mutual exclusion by Dekker's algorithm on sequentially consistent atomics.
//
//~ verdict: race-free
//~ topic: atomics
//~ source: sequential consistency of the flags excludes both threads; leaving releases what
//~ | entering acquires
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 30 };

static atomic_int wants[2];
static atomic_int turn;
static int counter;

static void *work(void *argument) {
    int me = (int)(long)argument, other = 1 - me;
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&wants[me], 1);
        while (atomic_load(&wants[other])) {
            if (atomic_load(&turn) != me) {
                atomic_store(&wants[me], 0);
                while (atomic_load(&turn) != me) sched_yield();
                atomic_store(&wants[me], 1);
            }
        }
        counter++;
        atomic_store(&turn, other);
        atomic_store(&wants[me], 0);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", counter);
    return 0;
}
