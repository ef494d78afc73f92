// A bounded queue between two producers and two consumers, the way such code is often written: the queue itself is
// locked, and a few things around it are not. `queue.std` is the trace of one run of it.
//
//     cc -O0 -g -pthread queue.c -o queue && ./queue

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PRODUCERS = 2, CONSUMERS = 2, ITEMS = 12, CAPACITY = 4 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int item[CAPACITY];
    int head, tail, count;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct {
    long pushed;
    int deepest;
} stats;

static int *squares; // made by whoever needs it first
static int done;     // nothing more will come
static long sum[CONSUMERS];

static int square(int value) {
    if (!squares) {
        int *table = malloc(ITEMS * sizeof *table);
        for (int i = 0; i < ITEMS; i++)
            table[i] = i * i;
        squares = table;
    }
    return squares[value];
}

static void push(int value) {
    pthread_mutex_lock(&queue.lock);
    while (queue.count == CAPACITY)
        pthread_cond_wait(&queue.changed, &queue.lock);
    queue.item[queue.tail] = value;
    queue.tail = (queue.tail + 1) % CAPACITY;
    int depth = ++queue.count;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    stats.pushed++;
    if (depth > stats.deepest)
        stats.deepest = depth;
}

// Returns 0 when the queue is empty and nothing more will come.
static int pop(int *value) {
    if (queue.count == 0 && done)
        return 0;
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0 && !done)
        pthread_cond_wait(&queue.changed, &queue.lock);
    int some = queue.count > 0;
    if (some) {
        *value = queue.item[queue.head];
        queue.head = (queue.head + 1) % CAPACITY;
        queue.count--;
        pthread_cond_broadcast(&queue.changed);
    }
    pthread_mutex_unlock(&queue.lock);
    return some;
}

static void *produce(void *unused) {
    for (int i = 0; i < ITEMS; i++)
        push(i);
    return unused;
}

static void *consume(void *own_sum) {
    int value;
    while (pop(&value))
        *(long *)own_sum += square(value);
    return NULL;
}

int main(void) {
    pthread_t producer[PRODUCERS], consumer[CONSUMERS];
    for (int i = 0; i < CONSUMERS; i++)
        pthread_create(&consumer[i], NULL, consume, &sum[i]);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_create(&producer[i], NULL, produce, NULL);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producer[i], NULL);
    done = 1;
    pthread_mutex_lock(&queue.lock);
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(consumer[i], NULL);
    printf("%ld pushed, at most %d at a time, sum of squares %ld\n", stats.pushed, stats.deepest, sum[0] + sum[1]);
    return 0;
}
