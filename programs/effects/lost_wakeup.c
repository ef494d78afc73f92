// A waker posts only if it sees somebody waiting: the wake-up is lost if it looks too early.
//
//~ verdict: racy
//~ topic: deadlock
//~ twin: racefree/wakeup_condvar.c
//~ race a: whether somebody waits
//~   real: yes
//~   observed: always
//~   class: spec-violated deadlock
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: not seen waiting, the waiter is never posted and main joins it for ever
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static volatile int waiting;
static sem_t wake;

static void *waiter(void *unused) {
    waiting = 1;              //~ RACE(a) write
    sem_wait(&wake);
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 1000000; i++) {
    }
}

static void *waker(void *unused) {
    other_work();
    if (waiting) {            //~ RACE(a) read
        sem_post(&wake);
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, waiter, NULL);
    pthread_create(&threads[1], NULL, waker, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("woken");
    return 0;
}
