// A handler of a signal that a thread sends itself, in the middle of what it does.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static long counted, plain;

static void handle(int unused) {
    (void)unused;
    counted++;
}

static void *work(void *unused) {
    (void)unused;
    for (int i = 0; i < 20; i++) {
        plain++;
        raise(SIGUSR1);
        plain++;
    }
    return NULL;
}

int main(void) {
    signal(SIGUSR1, handle);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", counted > 0 && plain > 0);
}
