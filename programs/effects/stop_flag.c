// A worker runs until a flag tells it to stop; how often it ran does not matter.
//
//~ verdict: racy
//~ topic: ad hoc synchronisation, both values valid
//~ twin: racefree/stop_flag_atomic.c
//~ race a: the flag
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: state-change
//~   or-replay: no-state-change
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: a look before the write only makes one more round; the rounds are counted but not
//~   | printed
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static volatile int stop;
static long rounds;

static void *worker(void *unused) {
    while (!stop) {           //~ RACE(a) read
        rounds++;
        sched_yield();
    }
    return unused;
}

static void *stopper(void *unused) {
    stop = 1;                 //~ RACE(a) write
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, worker, NULL);
    pthread_create(&threads[1], NULL, stopper, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("stopped");
    return 0;
}
