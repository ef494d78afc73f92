// The lost update of effects/lost_update.c in a statically linked program.
//
//~ verdict: racy
//~ topic: statically linked, lost update
//~ flags: -static
//~ twin: racefree/static_mutex.c
//~ race a: the counter
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: an increment is lost if both load before either stores
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
