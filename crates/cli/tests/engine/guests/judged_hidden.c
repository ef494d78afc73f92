/* A race that only the other order of another one leads to: as recorded, the worker sees that it is too late and does nothing. */
#include <pthread.h>
#include <stdio.h>

static volatile int late;
static int *volatile shared;

static void *worker(void *unused) {
    if (!late) {
        for (volatile int i = 0; i < 100; i++) { }
        shared = NULL;
    }
    return unused;
}

int main(void) {
    static int value = 7;
    pthread_t thread;
    shared = &value;
    pthread_create(&thread, NULL, worker, NULL);
    late = 1;
    for (volatile int i = 0; i < 1000; i++) { }
    int *mine = shared;
    pthread_join(thread, NULL);
    puts(mine == NULL ? "nothing" : "something");
    return 0;
}
