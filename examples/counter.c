// Two threads count to a thousand each, in one counter and without a lock. How many increments get lost depends on where
// the threads are switched.

#include <pthread.h>
#include <stdio.h>

static volatile int counter;

static void *count(void *unused) {
    for (int i = 0; i < 1000; i++)
        counter++;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d of 2000\n", counter);
    return 0;
}
