// The result of effects/hidden_by_lock.c handed over under the lock, together with a flag.
//
//~ verdict: race-free
//~ topic: condvar, order by an unrelated lock
//~ source: the result is only read after the flag, set under the same lock after the write, was
//~ | seen
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t produced = PTHREAD_COND_INITIALIZER;
static int ready;
static int result;
static int seen;

static void *produce(void *unused) {
    result = 42;
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&produced);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *consume(void *unused) {
    pthread_mutex_lock(&lock);
    while (!ready) pthread_cond_wait(&produced, &lock);
    pthread_mutex_unlock(&lock);
    seen = result;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", seen);
    return 0;
}
