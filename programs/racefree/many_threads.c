// A hundred threads, created and joined in waves, add to one total.
//
//~ verdict: race-free
//~ topic: mutex, create and join
//~ source: the total is only accessed under the mutex or after all joins
#include <pthread.h>
#include <stdio.h>

enum { WAVES = 5, THREADS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void *add(void *amount) {
    pthread_mutex_lock(&lock);
    total += (long)amount;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    for (int wave = 0; wave < WAVES; wave++) {
        pthread_t threads[THREADS];
        for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, add, (void *)i);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    printf("%ld\n", total);
    return 0;
}
