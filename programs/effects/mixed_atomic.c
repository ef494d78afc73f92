// A counter is incremented atomically but read as an ordinary variable.
//
// The language calls it a race. A tool that takes every access to a location with lock
// instructions for an atomic one may be silent.
//
//~ verdict: racy
//~ topic: atomics, output
//~ twin: racefree/statistics_atomic.c
//~ race a: the counter
//~   real: yes
//~   observed: maybe
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: the plain read gets the value before or after the increment
#include <pthread.h>
#include <stdio.h>

static volatile int counter;
static int seen;

static void *count(void *unused) {
    __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);    //~ RACE(a) update
    return unused;
}

static void *look(void *unused) {
    seen = counter;                                       //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, count, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", seen);
    return 0;
}
