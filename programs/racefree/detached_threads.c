// Detached threads report by a semaphore instead of being joined.
//
//~ verdict: race-free
//~ topic: detached threads, semaphore
//~ source: each thread posts after its write; main waits for all posts before it reads
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { THREADS = 4 };

static sem_t done;
static int results[THREADS];

static void *work(void *result) {
    *(int *)result = (int)((int *)result - results) * 10;
    sem_post(&done);
    return NULL;
}

int main(void) {
    pthread_attr_t detached;
    pthread_t thread;
    sem_init(&done, 0, 0);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < THREADS; i++) {
        if (i % 2) {
            pthread_create(&thread, &detached, work, &results[i]);
        } else {
            pthread_create(&thread, NULL, work, &results[i]);
            pthread_detach(thread);
        }
    }
    for (int i = 0; i < THREADS; i++) sem_wait(&done);
    printf("%d %d %d %d\n", results[0], results[1], results[2], results[3]);
    return 0;
}
