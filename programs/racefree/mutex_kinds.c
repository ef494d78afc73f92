// Mutexes of every type, trylock and timedlock, several per thread.
//
//~ verdict: race-free
//~ topic: mutex
//~ source: each counter is only accessed under its mutex or after the joins
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { KINDS = 4, THREADS = 3, ROUNDS = 20 };

static const int kinds[KINDS] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                                 PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
static pthread_mutex_t locks[KINDS];
static int counters[KINDS];

static void lock_somehow(pthread_mutex_t *lock, int round) {
    struct timespec until;
    switch (round % 3) {
    case 0:
        pthread_mutex_lock(lock);
        break;
    case 1:
        while (pthread_mutex_trylock(lock) == EBUSY) sched_yield();
        break;
    default:
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 3600;
        pthread_mutex_timedlock(lock, &until);
    }
}

static void *worker(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            lock_somehow(&locks[kind], round);
            counters[kind]++;
            pthread_mutex_unlock(&locks[kind]);
        }
    }
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int kind = 0; kind < KINDS; kind++) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, kinds[kind]);
        pthread_mutex_init(&locks[kind], &attributes);
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d %d %d %d\n", counters[0], counters[1], counters[2], counters[3]);
    return 0;
}
