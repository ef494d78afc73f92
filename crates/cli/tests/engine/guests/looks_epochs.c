// The same memory in one epoch of a thread after the other: only what comes after the lock was given back races.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long before, after, both;
static atomic_long turn;
static long handed;

static void *first(void *unused) {
    (void)unused;
    for (int round = 0; round < 50; round++) {
        pthread_mutex_lock(&mutex);
        before++;
        after++;
        pthread_mutex_unlock(&mutex);
        after++;
        char *block = malloc(64);
        block[round] = 1;
        both += block[round];
        free(block);
        both++;
    }
    handed = 1;
    atomic_fetch_add(&turn, 1);
    handed = 2;
    return NULL;
}

static void *second(void *unused) {
    (void)unused;
    for (int round = 0; round < 50; round++) {
        pthread_mutex_lock(&mutex);
        before++;
        long seen = after;
        pthread_mutex_unlock(&mutex);
        char *block = malloc(64);
        block[round] = (char)seen;
        free(block);
    }
    while (atomic_load(&turn) == 0) {}
    handed++;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", before == 100);
}
