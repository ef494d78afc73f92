// The pointer of effects/null_dereference.c published by a release store, awaited by acquire loads.
//
//~ verdict: race-free
//~ topic: atomics, release and acquire, null dereference
//~ source: the store releases what was written before it; the load that returns non-null acquires
//~ | it
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static _Atomic(int *) config;
static int seen;

static void *configure(void *unused) {
    int *made = malloc(sizeof *made);
    *made = 42;
    atomic_store_explicit(&config, made, memory_order_release);
    return unused;
}

static void *use(void *unused) {
    int *found;
    while ((found = atomic_load_explicit(&config, memory_order_acquire)) == NULL) sched_yield();
    seen = *found;
    free(found);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, configure, NULL);
    pthread_create(&threads[1], NULL, use, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", seen);
    return 0;
}
