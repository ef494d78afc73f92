// One thread sets a bit of a word, another one tests a different bit of the same word.
//
// Two threads that *set* different bits with plain instructions would lose updates; that is
// effects/bitfield_lost_update.c. Here one thread writes and the other one masks.
//
//~ verdict: racy
//~ topic: disjoint bits, benign kinds
//~ figure: replay-classification 5.4 kind 5, disjoint bit manipulation
//~ twin: racefree/disjoint_bytes.c
//~ race a: the word with both bits
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: disjoint-bits
//~   source: replay-classification 5.4 (5): the operations use different bits
#include <pthread.h>
#include <stdio.h>

enum { DIRTY = 1u << 0, LOCKED = 1u << 7 };

static volatile unsigned flags = LOCKED;
static int was_locked;

static void *mark_dirty(void *unused) {
    flags |= DIRTY;               //~ RACE(a) update
    return unused;
}

static void *test_locked(void *unused) {
    if (flags & LOCKED) {         //~ RACE(a) read
        was_locked = 1;
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, mark_dirty, NULL);
    pthread_create(&threads[1], NULL, test_locked, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("locked %d, flags %x\n", was_locked, flags);
    return 0;
}
