// Waits that run into their time limit, and sleeps: nobody is deadlocked.
//
//~ verdict: race-free
//~ topic: condvar, semaphore, time
//~ source: the counter is only accessed under the mutex or after the joins
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t empty;
static int expired;

static struct timespec soon(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 1000000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void *wait_in_vain(void *unused) {
    struct timespec until = soon(), pause = {.tv_nsec = 1000};
    while (sem_timedwait(&empty, &until) == -1 && errno == EINTR) {
    }
    nanosleep(&pause, NULL);
    until = soon();
    pthread_mutex_lock(&lock);
    while (pthread_cond_timedwait(&never, &lock, &until) != ETIMEDOUT) {
    }
    expired++;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[3];
    sem_init(&empty, 0, 0);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, wait_in_vain, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("expired %d\n", expired);
    return 0;
}
