// The accounts of effects/abort_inconsistent.c under a recursive mutex.
//
//~ verdict: race-free
//~ topic: mutex, abort
//~ source: both accounts are only accessed under the mutex
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock;
static int first = 50, second = 50;

static void move(int *from, int *to) {
    pthread_mutex_lock(&lock);
    *from -= 10;
    *to += 10;
    pthread_mutex_unlock(&lock);
}

static void *transfer(void *unused) {
    pthread_mutex_lock(&lock);
    move(&first, &second);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *audit(void *unused) {
    pthread_mutex_lock(&lock);
    if (first + second != 100) abort();
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
    pthread_create(&threads[0], NULL, transfer, NULL);
    pthread_create(&threads[1], NULL, audit, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("balanced");
    return 0;
}
