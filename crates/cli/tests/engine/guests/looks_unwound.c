// A thread that is cancelled within a function whose inside is nobody's business goes on in the program: its handler races.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static long cleaned, ready;

static void clean(void *unused) {
    (void)unused;
    cleaned++;
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < 100; i++) cleaned++;
}

static void *waits(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cleanup_push(clean, NULL);
    for (;;) pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *touches(void *unused) {
    (void)unused;
    cleaned++;
    return NULL;
}

int main(void) {
    pthread_t waiting, touching;
    pthread_create(&waiting, NULL, waits, NULL);
    for (long seen = 0; !seen;) {
        pthread_mutex_lock(&mutex);
        seen = ready;
        pthread_mutex_unlock(&mutex);
    }
    pthread_cancel(waiting);
    pthread_create(&touching, NULL, touches, NULL);
    pthread_join(waiting, NULL);
    pthread_join(touching, NULL);
    printf("%d\n", cleaned > 0);
}
