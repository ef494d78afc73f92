// Two threads increment a counter; at -O2 the increment is one instruction without a lock.
//
//~ verdict: racy
//~ topic: lost update
//~ twin: racefree/lost_update_atomic.c
//~ race a: the counter
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: an increment is lost if both load before either stores; a memory-destination add is
//~   | not atomic
#include <pthread.h>
#include <stdio.h>

static int counter;

static void *worker(void *unused) {
    counter++;                //~ RACE(a) update
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, worker, NULL);
    pthread_create(&threads[1], NULL, worker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", counter);
    return 0;
}
