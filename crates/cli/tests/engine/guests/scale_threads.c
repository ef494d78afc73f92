// A thousand threads alive at once. All of them update a counter with no lock, and two of them hand something over with
// nothing that orders them. Prints how much memory it took at most, natively.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "../native_peak.h"

enum { THREADS = 1000 };
static pthread_barrier_t all_there;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sum, votes, handed_over, seen;

static void *work(void *argument) {
    long me = (long)argument;
    pthread_barrier_wait(&all_there);
    pthread_mutex_lock(&mutex);
    sum += me;
    pthread_mutex_unlock(&mutex);
    votes++; //~ RACE(votes)
    if (me == 17) handed_over = me; //~ RACE(handed)
    if (me == 983) seen = handed_over; //~ RACE(handed)
    return NULL;
}

int main(void) {
    pthread_t *threads = calloc(THREADS, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all_there, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &small, work, (void *)i)) return printf("thread %ld\n", i), 1;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%ld %d\n", sum, votes + seen > 0);
    tell_peak();
    return 0;
}
