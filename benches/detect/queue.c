// Two producers and two consumers with a bounded queue between them; each item is some work on a buffer of its own.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LARGE // for as long as starting does not matter
enum { ITEMS = 240000 };
#else
enum { ITEMS = 24000 };
#endif
enum { ROOM = 64, BYTES = 2048, PRODUCERS = 2, CONSUMERS = 2 };

static unsigned char *queue[ROOM];
static int head, count, finished;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static unsigned long sums[CONSUMERS];

static void *produce(void *arg) {
    unsigned state = (unsigned)(long)arg + 1;
    for (int i = 0; i < ITEMS / PRODUCERS; i++) {
        unsigned char *item = malloc(BYTES);
        for (int at = 0; at < BYTES; at++) {
            state = state * 1664525 + 1013904223;
            item[at] = (unsigned char)(state >> 24);
        }
        pthread_mutex_lock(&mutex);
        while (count == ROOM) pthread_cond_wait(&not_full, &mutex);
        queue[(head + count++) % ROOM] = item;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    if (++finished == PRODUCERS) pthread_cond_broadcast(&not_empty);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void *consume(void *arg) {
    unsigned long sum = 0;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (count == 0 && finished < PRODUCERS) pthread_cond_wait(&not_empty, &mutex);
        if (count == 0) {
            pthread_mutex_unlock(&mutex);
            break;
        }
        unsigned char *item = queue[head];
        head = (head + 1) % ROOM;
        count--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
        unsigned long hash = 5381;
        for (int at = 0; at < BYTES; at++) hash = hash * 33 + item[at];
        sum += hash & 0xffff;
        free(item);
    }
    sums[(long)arg] = sum;
    return NULL;
}

int main(void) {
    pthread_t threads[PRODUCERS + CONSUMERS];
    for (long i = 0; i < PRODUCERS; i++) pthread_create(&threads[i], NULL, produce, (void *)i);
    for (long i = 0; i < CONSUMERS; i++) pthread_create(&threads[PRODUCERS + i], NULL, consume, (void *)i);
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) pthread_join(threads[i], NULL);
    unsigned long sum = 0;
    for (int i = 0; i < CONSUMERS; i++) sum += sums[i];
    printf("%lu\n", sum);
}
