// The wake-up of effects/lost_wakeup.c with a condition variable that remembers it in a flag.
//
//~ verdict: race-free
//~ topic: condvar, deadlock
//~ source: the flag is only accessed under the mutex, so no wake-up is lost
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static int wake;

static void *waiter(void *unused) {
    pthread_mutex_lock(&lock);
    while (!wake) pthread_cond_wait(&woken, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *waker(void *unused) {
    pthread_mutex_lock(&lock);
    wake = 1;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&woken);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, waiter, NULL);
    pthread_create(&threads[1], NULL, waker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("woken");
    return 0;
}
