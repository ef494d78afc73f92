// A long run: four threads compute in memory of their own, and two of them count under a lock now and then. The first
// writes a variable before it begins, the second reads it when it is done; nothing in between orders the two. The argument
// says how many rounds of about 1,000 instructions each thread does.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "../native_peak.h"

enum { THREADS = 4, WORDS = 1 << 14, ROUND = 125 };
static long rounds, total, early, late;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint32_t round_of(uint32_t *words, uint32_t at) {
    for (int i = 0; i < ROUND; i++) {
        at = at * 1664525 + 1013904223;
        words[at % WORDS] += at >> 16;
    }
    return at;
}

static void *work(void *argument) {
    long me = (long)argument;
    uint32_t *words = calloc(WORDS, sizeof *words), at = me;
    if (me == 0) early = 1; //~ RACE(far apart)
    for (long i = 0; i < rounds; i++) {
        at = round_of(words, at);
        if (me < 2 || i % 16) continue;
        pthread_mutex_lock(&mutex);
        total += at & 1;
        pthread_mutex_unlock(&mutex);
    }
    if (me == 1) late = early; //~ RACE(far apart)
    free(words);
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    rounds = count > 1 ? atol(words[1]) : 1000;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d\n", total + late >= 0);
    tell_peak();
    return 0;
}
