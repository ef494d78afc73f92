// A lock is taken and released only in multi-user mode; the mode changes in between.
//
//~ verdict: racy
//~ topic: deadlock
//~ twin: racefree/mode_locked.c
//~ race a: the mode: set, and asked before taking the lock
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   or-replay: state-change
//~   needs: none
//~   label: both-values-valid
//~   source: set before the first question, the lock is neither taken nor released
//~ race b: the mode: set, and asked before releasing the lock
//~   real: yes
//~   observed: always
//~   class: spec-violated deadlock
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: set between the questions, the lock is never released and main waits for it for ever
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int single_user;
static int served;

static void *serve(void *unused) {
    if (!single_user) {       //~ RACE(a) read
        pthread_mutex_lock(&lock);
    }
    served = 1;
    if (!single_user) {       //~ RACE(b) read
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 1000000; i++) {
    }
}

static void *change_mode(void *unused) {
    other_work();
    single_user = 1;          //~ RACE(a) write, RACE(b) write
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, serve, NULL);
    pthread_create(&threads[1], NULL, change_mode, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    pthread_mutex_lock(&lock);
    printf("served %d\n", served);
    pthread_mutex_unlock(&lock);
    return 0;
}
