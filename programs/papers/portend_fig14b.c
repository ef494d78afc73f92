// Two threads switch tracing on: both write the same value.
//
//~ verdict: racy
//~ topic: redundant write
//~ figure: portend-plus fig. 14b
//~ twin: racefree/tracing_on_locked.c
//~ race a: the switch
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: redundant-write
//~   source: portend-plus 6.2, fig. 14b: redundant writes
#include <pthread.h>
#include <stdio.h>

static volatile int tracing;

static void *trace_on(void *unused) {
    tracing = 1;              //~ RACE(a) write
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, trace_on, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("tracing %d\n", tracing);
    return 0;
}
