// Two threads and a mutex over a hash table.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define BUCKETS 4096
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long table[BUCKETS], per_thread = 15000000;
static void *work(void *arg) {
    unsigned x = (unsigned)(long)arg + 1;
    for (long i = 0; i < per_thread; i++) {
        x = x * 1664525u + 1013904223u;
        pthread_mutex_lock(&lock);
        table[x >> 20] += x & 15;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}
int main(int argc, char **argv) {
    if (argc > 1) per_thread = atol(argv[1]);
    pthread_t t[2];
    for (long i = 0; i < 2; i++) pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    long sum = 0;
    for (int i = 0; i < BUCKETS; i++) sum += table[i];
    printf("%ld\n", sum);
}
