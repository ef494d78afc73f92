// Hits of a cache are counted without synchronisation, since statistics need not be exact.
//
//~ verdict: racy
//~ topic: approximate computation, benign kinds
//~ figure: replay-classification 5.2.4 kind 6, approximate computation
//~ twin: racefree/statistics_atomic.c
//~ race a: the number of hits
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: state-change
//~   needs: none
//~   label: approximate
//~   source: replay-classification 5.2.4: a hit may be lost, which changes the state but nothing
//~   | that the program was written for; the number is not printed
#include <pthread.h>
#include <stdio.h>

enum { LOOKUPS = 4 };

static volatile long hits;
static long sums[2];

static void *look_up(void *argument) {
    long *sum = argument;
    for (int i = 0; i < LOOKUPS; i++) {
        hits++;                   //~ RACE(a) update
    }
    *sum = LOOKUPS;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, look_up, &sums[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("sum %ld\n", sums[0] + sums[1]);
    return 0;
}
