// A sequence lock: readers of two words retry while the sequence is odd or changes.
//
//~ verdict: race-free
//~ topic: seqlock, atomics
//~ source: sequence and words are atomics (the words relaxed), ordered by fences as in Boehm,
//~ | MSPC 2012
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 50 };

static atomic_uint sequence;
static atomic_ulong low, high;

static void *writer(void *unused) {
    for (unsigned long value = 1; value <= ROUNDS; value++) {
        unsigned before = atomic_load_explicit(&sequence, memory_order_relaxed);
        atomic_store_explicit(&sequence, before + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&low, value, memory_order_relaxed);
        atomic_store_explicit(&high, value, memory_order_relaxed);
        atomic_store_explicit(&sequence, before + 2, memory_order_release);
    }
    return unused;
}

static void *reader(void *torn) {
    for (int round = 0; round < ROUNDS; round++) {
        unsigned before, after;
        unsigned long seen_low, seen_high;
        do {
            while ((before = atomic_load_explicit(&sequence, memory_order_acquire)) % 2) {
                sched_yield();
            }
            seen_low = atomic_load_explicit(&low, memory_order_relaxed);
            seen_high = atomic_load_explicit(&high, memory_order_relaxed);
            atomic_thread_fence(memory_order_acquire);
            after = atomic_load_explicit(&sequence, memory_order_relaxed);
        } while (before != after);
        *(int *)torn += seen_low != seen_high;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int torn[2] = {0, 0};
    pthread_create(&threads[0], NULL, writer, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&threads[1 + i], NULL, reader, &torn[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("value %lu, torn %d\n", atomic_load(&low), torn[0] + torn[1]);
    return 0;
}
