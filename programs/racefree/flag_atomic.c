// The flag of papers/portend_fig1.c as a C11 atomic, stored with release and loaded with acquire.
//
//~ verdict: race-free
//~ topic: atomics, release and acquire
//~ source: the load that leaves the loop acquires what the store released (C11 5.1.2.4)
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

static int global_x;
static atomic_bool global_done;
static int seen;

static void *work0(void *unused) {
    global_x = 42;
    atomic_store_explicit(&global_done, true, memory_order_release);
    return unused;
}

static void *work1(void *unused) {
    while (!atomic_load_explicit(&global_done, memory_order_acquire)) {
    }
    seen = global_x;
    return unused;
}

int main(void) {
    pthread_t t1, t2;
    pthread_create(&t1, NULL, work0, NULL);
    pthread_create(&t2, NULL, work1, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    printf("%d\n", seen);
    return 0;
}
