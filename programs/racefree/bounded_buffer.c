// A bounded buffer with two condition variables, two producers and two consumers.
//
//~ verdict: race-free
//~ topic: condvar, mutex
//~ source: buffer and counts are only accessed under the mutex
#include <pthread.h>
#include <stdio.h>

enum { CAPACITY = 3, ITEMS = 30 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int buffer[CAPACITY];
static int first, count;

static void *produce(void *unused) {
    for (int item = 1; item <= ITEMS; item++) {
        pthread_mutex_lock(&lock);
        while (count == CAPACITY) pthread_cond_wait(&not_full, &lock);
        buffer[(first + count++) % CAPACITY] = item;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *consume(void *sum) {
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (count == 0) pthread_cond_wait(&not_empty, &lock);
        *(int *)sum += buffer[first];
        first = (first + 1) % CAPACITY;
        count--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    int sums[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, produce, NULL);
        pthread_create(&threads[2 + i], NULL, consume, &sums[i]);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("sum %d\n", sums[0] + sums[1]);
    return 0;
}
