// Hours of sleep: virtual time passes at once. Prints only what the clock says.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static long hours_since(time_t start) { return (time(NULL) - start) / 3600; }

static void *sleeper(void *arg) {
    struct timespec hours = {3600 * (long)arg, 0};
    nanosleep(&hours, NULL);
    return NULL;
}

int main(void) {
    time_t start = time(NULL);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], NULL, sleeper, (void *)(i + 1));
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        printf("%ld h\n", hours_since(start));
    }
    struct timespec until = {time(NULL) + 7200, 0};
    pthread_mutex_lock(&mutex);
    int result = pthread_cond_timedwait(&never, &mutex, &until);
    printf("condvar %d after %ld h\n", result, hours_since(start));
    return 0;
}
