// A cleaner announces that it sleeps before it is ready to be interrupted.
//
// After cache4j. A signal stands for Thread.interrupt(): inside the "try" block it has a handler that
// ends the sleep, outside it kills the process as the uncaught exception killed the thread.
//
//~ verdict: racy
//~ topic: crash, signals
//~ figure: racefuzzer 5.3, the cache cleaner's sleep
//~ twin: racefree/cleaner_condvar.c
//~ race a: sleeping is announced
//~   real: yes
//~   observed: always
//~   class: spec-violated crash
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: racefuzzer 5.3: interrupted after the announcement, before the try block
//~ race b: sleeping is over
//~   real: yes
//~   observed: always
//~   class: spec-violated crash
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: interrupted after the try block, before sleeping is taken back
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t this = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t cleaner_thread;
static volatile int sleeping;
static int logged;

static void caught(int signal) {
    (void)signal;
}

static void *interrupter(void *unused) {
    pthread_mutex_lock(&this);
    if (sleeping) {               //~ RACE(a) read, RACE(b) read
        pthread_kill(cleaner_thread, SIGUSR1);
    }
    pthread_mutex_unlock(&this);
    return unused;
}

// What usually makes the cleaner arrive after the interrupter.
static void other_work(void) {
    for (volatile int i = 0; i < 200000; i++) {
    }
}

static void log_phase(int records) {
    for (int i = 0; i < records; i++) {
        pthread_mutex_lock(&log_lock);
        logged++;
        pthread_mutex_unlock(&log_lock);
    }
}

static void *cleaner(void *unused) {
    struct timespec interval = {.tv_nsec = 1000};
    other_work();
    sleeping = 1;                 //~ RACE(a) write
    log_phase(5);
    signal(SIGUSR1, caught);
    nanosleep(&interval, NULL);
    signal(SIGUSR1, SIG_DFL);
    log_phase(5);
    sleeping = 0;                 //~ RACE(b) write
    return unused;
}

int main(void) {
    pthread_t other;
    pthread_create(&cleaner_thread, NULL, cleaner, NULL);
    pthread_create(&other, NULL, interrupter, NULL);
    pthread_join(other, NULL);
    pthread_join(cleaner_thread, NULL);
    printf("cleaned, %d records\n", logged);
    return 0;
}
