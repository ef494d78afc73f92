// Two threads protect the same counter with different locks.
//
//~ verdict: racy
//~ topic: locks, lost update
//~ twin: racefree/many_instances_mutex.c
//~ race a: the counter
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: no common lock: an increment can be lost
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock_b = PTHREAD_MUTEX_INITIALIZER;
static int counter;

static void *with_a(void *unused) {
    pthread_mutex_lock(&lock_a);
    counter += 1;             //~ RACE(a) update
    pthread_mutex_unlock(&lock_a);
    return unused;
}

static void *with_b(void *unused) {
    pthread_mutex_lock(&lock_b);
    counter += 2;             //~ RACE(a) update
    pthread_mutex_unlock(&lock_b);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, with_a, NULL);
    pthread_create(&threads[1], NULL, with_b, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", counter);
    return 0;
}
