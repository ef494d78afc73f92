// Each place is written twice, and only the first time before the other thread is let on. Between the two, the thread takes and gives back a
// lock of its own, from never to so often that any number that stands for what it does has come round.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { PLACES = 140 };
static long places[PLACES];
static sem_t written[PLACES];
static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
static long sum;

static void *writes(void *unused) {
    (void)unused;
    for (int i = 0; i < PLACES; i++) {
        places[i] = 1;
        sem_post(&written[i]);
        for (int again = 0; again < i; again++) {
            pthread_mutex_lock(&own);
            pthread_mutex_unlock(&own);
        }
        places[i] = 2;
    }
    return NULL;
}

int main(void) {
    for (int i = 0; i < PLACES; i++) sem_init(&written[i], 0, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, writes, NULL);
    for (int i = 0; i < PLACES; i++) {
        sem_wait(&written[i]);
        sum += places[i];
    }
    pthread_join(thread, NULL);
    printf("%d\n", sum > 0);
}
