// The flags of papers/replay_disjoint_bits.c in a byte each: neighbours in one word do not conflict.
//
//~ verdict: race-free
//~ topic: neighbouring bytes
//~ source: each byte is a memory location of its own (C11 3.14) and is accessed by one thread only
#include <pthread.h>
#include <stdio.h>

static struct {
    volatile unsigned char dirty;
    volatile unsigned char locked;
} flags = {.locked = 1};
static int was_locked;

static void *mark_dirty(void *unused) {
    flags.dirty = 1;
    return unused;
}

static void *test_locked(void *unused) {
    if (flags.locked) was_locked = 1;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, mark_dirty, NULL);
    pthread_create(&threads[1], NULL, test_locked, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("locked %d, dirty %d\n", was_locked, flags.dirty);
    return 0;
}
