// A thousand threads alive at once.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 1000 };
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long sum;
static __thread long own;

static void *work(void *arg) {
    own = (long)arg;
    pthread_barrier_wait(&barrier);
    pthread_mutex_lock(&mutex);
    sum += own;
    pthread_mutex_unlock(&mutex);
    pthread_barrier_wait(&barrier);
    return (void *)(own * 2);
}

int main(void) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_t *threads = calloc(THREADS, sizeof *threads);
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attr, work, (void *)i)) return printf("thread %ld\n", i), 1;
    long twice = 0;
    for (int i = THREADS - 1; i >= 0; i--) {
        void *value;
        pthread_join(threads[i], &value);
        twice += (long)value;
    }
    printf("%ld %ld\n", sum, twice);
    return 0;
}
