// A condition is set before the lock is taken to signal it: a race, though no wake-up is lost.
//
//~ verdict: racy
//~ topic: condvar, ad hoc synchronisation
//~ twin: racefree/wakeup_condvar.c
//~ race a: the condition
//~   real: yes
//~   observed: maybe
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   or-replay: state-change
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: seen unset, the waiter gives the lock up while it waits and is signalled after that;
//~   | happens-before orders the two if the signaller is done before the waiter starts
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static volatile int ready;

static void *waiter(void *unused) {
    pthread_mutex_lock(&lock);
    while (!ready) {          //~ RACE(a) read
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *signaller(void *unused) {
    ready = 1;                //~ RACE(a) write
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, waiter, NULL);
    pthread_create(&threads[1], NULL, signaller, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("ready");
    return 0;
}
