// The index of effects/out_of_bounds.c checked and used under a mutex.
//
//~ verdict: race-free
//~ topic: out of bounds, mutex
//~ source: the index is only accessed under the mutex
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4, INVALID = 1 << 28 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int current = 1;
static int *slots;

static void *store(void *unused) {
    pthread_mutex_lock(&lock);
    if (current < SLOTS) slots[current] = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *invalidate(void *unused) {
    pthread_mutex_lock(&lock);
    current = INVALID;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    slots = calloc(SLOTS, sizeof *slots);
    pthread_create(&threads[0], NULL, store, NULL);
    pthread_create(&threads[1], NULL, invalidate, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    free(slots);
    puts("stored");
    return 0;
}
