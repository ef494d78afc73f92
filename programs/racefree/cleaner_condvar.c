// The cleaner of papers/racefuzzer_cache_cleaner.c sleeps in a timed wait that the other thread signals.
//
//~ verdict: race-free
//~ topic: condvar, signals
//~ source: sleeping and stop are only accessed under the mutex; the wait gives it up atomically
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t this = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int stop;
static int sleeping;

static void *interrupter(void *unused) {
    pthread_mutex_lock(&this);
    stop = 1;
    if (sleeping) pthread_cond_signal(&wake);
    pthread_mutex_unlock(&this);
    return unused;
}

static void *cleaner(void *unused) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 3600;
    pthread_mutex_lock(&this);
    sleeping = 1;
    while (!stop) pthread_cond_timedwait(&wake, &this, &until);
    sleeping = 0;
    pthread_mutex_unlock(&this);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, cleaner, NULL);
    pthread_create(&threads[1], NULL, interrupter, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("cleaned");
    return 0;
}
