// A lock hands a result from one thread to the other by chance: it protects the number of calls, and the result only if PROTECTED.
// If RACY, the result is read before that, too. It also protects so MANY numbers.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int calls, result, seen;
#ifdef MANY
static long many[MANY];
#endif

static void *produce(void *unused) {
#ifndef PROTECTED
    result = 42;
#endif
    pthread_mutex_lock(&lock);
#ifdef PROTECTED
    result = 42;
#endif
    calls++;
#ifdef MANY
    for (long i = 0; i < MANY; i++) many[i]++;
#endif
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *consume(void *unused) {
#ifdef RACY
    seen = result;
#endif
    for (volatile int i = 0; i < TURNS; i++) {
    }
    pthread_mutex_lock(&lock);
    calls++;
#ifdef MANY
    for (long i = 0; i < MANY; i++) many[i]++;
#endif
#ifdef PROTECTED
    seen = result;
#endif
    pthread_mutex_unlock(&lock);
#ifndef PROTECTED
    seen = result;
#endif
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d after %d calls\n", seen, calls);
    return 0;
}
