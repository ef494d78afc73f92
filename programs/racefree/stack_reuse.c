// Threads come and go; a new one gets the stack and the thread-local block of an ended one.
//
//~ verdict: race-free
//~ topic: stack reuse, create and join, detached threads
//~ source: the memory of an ended thread is another location once it is reused
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { THREADS = 12 };

static sem_t done;
static __thread int own[64];
static long total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *argument) {
    volatile int local[256];
    long sum = 0;
    for (int i = 0; i < 256; i++) local[i] = i;
    for (int i = 0; i < 256; i++) sum += local[i];
    for (int i = 0; i < 64; i++) own[i]++;
    pthread_mutex_lock(&lock);
    total += sum + own[63];
    pthread_mutex_unlock(&lock);
    sem_post(&done);
    return argument;
}

int main(void) {
    sem_init(&done, 0, 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
        if (i % 3 == 0) {
            pthread_join(thread, NULL);
        } else {
            pthread_detach(thread);
        }
    }
    for (int i = 0; i < THREADS; i++) sem_wait(&done);
    pthread_mutex_lock(&lock);
    printf("%ld\n", total);
    pthread_mutex_unlock(&lock);
    return 0;
}
