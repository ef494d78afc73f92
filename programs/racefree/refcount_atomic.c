// The reference count of papers/replay_fig2_refcount.c with an atomic decrement.
//
//~ verdict: race-free
//~ topic: reference count, atomics
//~ source: the decrement is one atomic instruction and its result decides; the last owner acquires
//~ | what the others released
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct object {
    int alive;
};

static atomic_int references = 2;
static struct object *foo;

static void *drop(void *unused) {
    if (atomic_fetch_sub_explicit(&references, 1, memory_order_acq_rel) == 1) {
        foo->alive = 0, free(foo), foo = NULL;
    }
    return unused;
}

int main(void) {
    pthread_t owners[2];
    foo = malloc(sizeof *foo);
    foo->alive = 1;
    for (int i = 0; i < 2; i++) pthread_create(&owners[i], NULL, drop, NULL);
    for (int i = 0; i < 2; i++) pthread_join(owners[i], NULL);
    assert(foo == NULL);
    puts("released once");
    return 0;
}
