// The flag of effects/stop_flag.c as an atomic, in all the spellings that C has.
//
//~ verdict: race-free
//~ topic: atomics
//~ source: the flags are only accessed by atomic operations
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int stop_c11;
static int stop_builtin;
static _Atomic(unsigned char) stop_byte;

static void *worker(void *unused) {
    while (!atomic_load_explicit(&stop_c11, memory_order_relaxed)) sched_yield();
    while (!__atomic_load_n(&stop_builtin, __ATOMIC_ACQUIRE)) sched_yield();
    while (!stop_byte) sched_yield();
    return unused;
}

static void *stopper(void *unused) {
    atomic_store_explicit(&stop_c11, 1, memory_order_relaxed);
    __atomic_store_n(&stop_builtin, 1, __ATOMIC_RELEASE);
    stop_byte = 1;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, worker, NULL);
    pthread_create(&threads[1], NULL, stopper, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("stopped");
    return 0;
}
