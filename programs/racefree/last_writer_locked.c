// The two writes of papers/portend_fig8.c under a mutex: the last writer still varies, without a race.
//
//~ verdict: race-free
//~ topic: mutex
//~ args: 1
//~ source: both writes are under the mutex
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int global_x;
static int input;

static void set(int value) {
    pthread_mutex_lock(&lock);
    global_x = value;
    pthread_mutex_unlock(&lock);
}

static void *work0(void *unused) {
    set(1);
    if (input >= 0) printf("10\n");
    return unused;
}

static void *work1(void *unused) {
    set(2);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t t0, t1;
    input = argc > 1 ? atoi(argv[1]) : 0;
    pthread_create(&t0, NULL, work0, NULL);
    pthread_create(&t1, NULL, work1, NULL);
    pthread_join(t0, NULL);
    pthread_join(t1, NULL);
    return global_x == 0;
}
