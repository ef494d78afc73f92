// Two threads close a trace; the check that it is still open is not synchronised: freed twice.
//
// After ctrace. The table is large, so that the allocator unmaps it and a second free is felt.
//
//~ verdict: racy
//~ topic: double free
//~ figure: portend-plus fig. 14a
//~ twin: racefree/close_once.c
//~ race a: the check against the other thread's closing
//~   real: yes
//~   observed: always
//~   class: spec-violated memory-error|crash|abort
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: portend-plus 6.2, fig. 14a: both threads see it open and free it
//~ race b: the closing against itself
//~   real: yes
//~   observed: maybe
//~   class: spec-violated memory-error|crash|abort
//~   replay: state-change
//~   or-replay: no-state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: only there once both threads passed the check, and then both free
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { TABLE_BYTES = 1 << 20 };

static volatile int closed;
static char *table;

static void *close_trace(void *unused) {
    if (!closed) {                //~ RACE(a) read
        closed = 1, free(table);  //~ RACE(a) write, RACE(b) write
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    table = malloc(TABLE_BYTES);
    table[0] = 1;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, close_trace, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("closed");
    return 0;
}
