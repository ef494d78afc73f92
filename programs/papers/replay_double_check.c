// A check without the lock that is repeated under the lock: a job that must run once.
//
//~ verdict: racy
//~ topic: double check, benign kinds
//~ figure: replay-classification 5.4 kind 2, double checks
//~ twin: racefree/double_check_locked.c
//~ race a: the check without the lock against the write under it
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: double-check
//~   source: replay-classification 5.4 (2): whatever the first check saw, the second one decides
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int pending = 1;
static int runs;

static void *worker(void *unused) {
    if (pending) {            //~ RACE(a) read
        pthread_mutex_lock(&lock);
        if (pending) {
            runs++;
            pending = 0;      //~ RACE(a) write
        }
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    pthread_t workers[2];
    for (int i = 0; i < 2; i++) pthread_create(&workers[i], NULL, worker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(workers[i], NULL);
    printf("runs %d\n", runs);
    return 0;
}
