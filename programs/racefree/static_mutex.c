// Mutex, condition variable and semaphore in a statically linked program.
//
//~ verdict: race-free
//~ topic: statically linked, mutex
//~ flags: -static
//~ source: the counter is only accessed under the mutex, the flag too
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t counted;
static int counter, go;

static void *worker(void *unused) {
    pthread_mutex_lock(&lock);
    while (!go) pthread_cond_wait(&changed, &lock);
    counter++;
    pthread_mutex_unlock(&lock);
    sem_post(&counted);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    sem_init(&counted, 0, 0);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, worker, NULL);
    pthread_mutex_lock(&lock);
    go = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++) sem_wait(&counted);
    printf("%d\n", counter);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
