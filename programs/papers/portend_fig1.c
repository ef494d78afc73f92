// Ad hoc synchronisation: a value is ready once a flag, read in a loop, says so.
//
// The flag is volatile, or else the compiler makes the loop of the paper's figure 2 out of it.
//
//~ verdict: racy
//~ topic: ad hoc synchronisation
//~ figure: portend-plus fig. 1
//~ twin: racefree/flag_atomic.c
//~ race a: the flag
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: a read before the write only goes round the loop once more
//~ race b: the value, ordered by the flag alone
//~   real: no
//~   observed: always
//~   class: single-ordering
//~   replay: replay-failure
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: portend-plus 2 and 3: the reader cannot leave its loop before the value is written
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static int global_x;
static volatile bool global_done;
static int seen;

static void *work0(void *unused) {
    global_x = 42;            //~ RACE(b) write
    global_done = true;       //~ RACE(a) write
    return unused;
}

static void *work1(void *unused) {
    while (!global_done) {    //~ RACE(a) read
    }
    seen = global_x;          //~ RACE(b) read
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
