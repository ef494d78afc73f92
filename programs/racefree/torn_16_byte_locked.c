// The 16-byte value of effects/torn_16_byte.c under a mutex.
//
//~ verdict: race-free
//~ topic: torn value, mutex
//~ source: both halves are read and written in one critical section
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned long low, high;
} value;

static void *writer(void *unused) {
    pthread_mutex_lock(&lock);
    value.low = 7, value.high = 7;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *reader(void *unused) {
    pthread_mutex_lock(&lock);
    assert(value.low == value.high);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("whole");
    return 0;
}
