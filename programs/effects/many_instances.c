// One race with many instances; the argument is their number in each thread.
//
//~ verdict: racy
//~ topic: many instances, lost update
//~ args: 100
//~ twin: racefree/many_instances_mutex.c
//~ race a: the total
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: as effects/lost_update.c, many times
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int rounds = 100;
static volatile long total;

static void *worker(void *unused) {
    for (int i = 0; i < rounds; i++) {
        total = total + 1;        //~ RACE(a) update
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    if (argc > 1) rounds = atoi(argv[1]);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", total);
    return 0;
}
