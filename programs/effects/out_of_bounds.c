// An index is checked and then read again; in between another thread makes it huge.
//
//~ verdict: racy
//~ topic: out of bounds, memory error
//~ twin: racefree/index_locked.c
//~ race a: the index
//~   real: yes
//~   observed: always
//~   class: spec-violated crash|memory-error
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: changed between check and use, the store goes a gigabyte past the block
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 4, INVALID = 1 << 28 };

static volatile int current = 1;
static int *slots;

static void *store(void *unused) {
    if (current < SLOTS) slots[current] = 1;      //~ RACE(a) read
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 200000; i++) {
    }
}

static void *invalidate(void *unused) {
    other_work();
    current = INVALID;                            //~ RACE(a) write
    return unused;
}

int main(void) {
    pthread_t threads[2];
    slots = calloc(SLOTS, sizeof *slots);
    pthread_create(&threads[0], NULL, store, NULL);
    pthread_create(&threads[1], NULL, invalidate, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("stored");
    return 0;
}
