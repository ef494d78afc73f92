// The job of papers/replay_double_check.c, checked only under the lock.
//
//~ verdict: race-free
//~ topic: mutex, double check
//~ source: every access to pending is under the lock
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pending = 1;
static int runs;

static void *worker(void *unused) {
    pthread_mutex_lock(&lock);
    if (pending) {
        runs++;
        pending = 0;
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t workers[2];
    for (int i = 0; i < 2; i++) pthread_create(&workers[i], NULL, worker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(workers[i], NULL);
    printf("runs %d\n", runs);
    return 0;
}
