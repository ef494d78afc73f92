// The total of effects/many_instances.c under a mutex.
//
//~ verdict: race-free
//~ topic: many instances, mutex
//~ args: 100
//~ source: every access is under the mutex or after the joins
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rounds = 100;
static long total;

static void *worker(void *unused) {
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&lock);
        total++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[4];
    if (argc > 1) rounds = atoi(argv[1]);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", total);
    return 0;
}
