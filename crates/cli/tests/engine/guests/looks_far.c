// Memory at addresses that a program has to ask for by name. Before it asks, its threads race somewhere else.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

static long early;
static char *far[2];

static void *counts(void *unused) {
    (void)unused;
    early++;
    return NULL;
}

static void *fills(void *arg) {
    long which = (long)arg;
    far[which][0] = (char)which;
    far[0][64] = 1;
    far[1][128] += 1;
    return NULL;
}

static void both(void *(*what)(void *)) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, what, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

int main(void) {
    both(counts);
    unsigned long addresses[2] = {0x080000100000, 0x280000100000};
    for (int i = 0; i < 2; i++) {
        far[i] = mmap((void *)addresses[i], 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        if (far[i] == MAP_FAILED || far[i][4095]) return 1;
    }
    both(fills);
    printf("%d %d %d\n", far[0][64], far[1][128], far[1][0]);
}
