// A clock thread sets the time that a worker prints.
//
// After memcached, where a clock event updates current_time and requests use it.
//
//~ verdict: racy
//~ topic: output
//~ figure: portend-plus fig. 14c
//~ twin: racefree/clock_semaphore.c
//~ race a: the time
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: portend-plus 6.2, fig. 14c: the schedule decides which time is printed
#include <pthread.h>
#include <stdio.h>

static volatile unsigned current_time = 41;

static void *clock_handler(void *unused) {
    current_time = 42;                        //~ RACE(a) write
    return unused;
}

static void *process_stats(void *unused) {
    printf("STAT time %u\n", current_time);   //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t clock_thread, worker;
    pthread_create(&clock_thread, NULL, clock_handler, NULL);
    pthread_create(&worker, NULL, process_stats, NULL);
    pthread_join(clock_thread, NULL);
    pthread_join(worker, NULL);
    return 0;
}
