// Blocks of the heap are freed by one thread and come back to another: reuse is not a race.
//
//~ verdict: race-free
//~ topic: heap reuse
//~ source: a block belongs to one thread from malloc to free; malloc orders a reuse after the
//~ | free
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, ROUNDS = 50, BYTES = 2000 };

static int sums[THREADS];

static void *work(void *sum) {
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *block = malloc(BYTES);
        memset(block, round, BYTES);
        *(int *)sum += block[BYTES - 1];
        block = realloc(block, 2 * BYTES);
        *(int *)sum += block[0];
        free(block);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &sums[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d %d %d\n", sums[0], sums[1], sums[2]);
    return 0;
}
