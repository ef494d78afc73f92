/* Both threads have dozens of turns before they race, and wait for each other at times. The other order crashes, however few there are. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *shared;
static int total;
static long work(long from) {
    for (int i = 0; i < 20000; i++) from = from * 1103515245 + 12345;
    return from;
}
static void count(void) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        total += work(i) != 0;
        pthread_mutex_unlock(&lock);
    }
}
static void *clear(void *unused) {
    count();
    work(1), work(2), work(3);
    shared = NULL;
    count();
    return unused;
}
static void *look(void *unused) {
    count();
    if (shared) (*shared)++;
    count();
    return unused;
}
int main(void) {
    pthread_t threads[2];
    shared = malloc(sizeof *shared);
    pthread_create(&threads[0], NULL, clear, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", total);
    return 0;
}
