// A reference count without synchronisation: two owners drop their reference.
//
// As in the figure, the check reads the count again after the decrement. Recorded in the order of
// figure 2(a) nothing happens; as in figure 2(b) both owners see zero and both release the object.
//
//~ verdict: racy
//~ topic: reference count
//~ figure: replay-classification fig. 2
//~ twin: racefree/refcount_atomic.c
//~ race a: the decrement against itself
//~   real: yes
//~   observed: always
//~   class: spec-violated assertion|crash
//~   replay: state-change
//~   needs: none
//~   source: one decrement is lost, the count stays at 1, nobody releases the object: main asserts
//~   | that somebody did
//~ race b: the check against the other owner's decrement (R2 and W2 of the figure)
//~   real: yes
//~   observed: always
//~   class: spec-violated crash|assertion|memory-error
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: replay-classification 4.1, fig. 2(b): both checks see 0, the second release goes
//~   | through a null pointer
//~ race c: the release against itself, once the count is broken
//~   real: yes
//~   observed: maybe
//~   class: spec-violated crash|assertion|memory-error
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: fig. 2(b): both owners are in the release
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct object {
    int alive;
};

static volatile int references = 2;
static struct object *volatile foo;

static void *drop(void *unused) {
    references--;                               //~ RACE(a) update, RACE(b) update
    if (references == 0) {                      //~ RACE(b) read
        foo->alive = 0, free(foo), foo = NULL;  //~ RACE(c) update
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
