// Races in the middle of what makes threads wait without being stuck. The argument says of what kind.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MANY 200

static volatile int shared;
static volatile int ready;
static volatile sig_atomic_t signals;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static const char *kind;

static void handler(int number) {
    (void)number;
    signals++;
}

static void sleep_for(long nanoseconds) {
    struct timespec left = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    while (nanosleep(&left, &left) && errno == EINTR) {}
}

static void wait_in_vain(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    pthread_mutex_lock(&lock);
    while (pthread_cond_timedwait(&never, &lock, &until) != ETIMEDOUT) {}
    pthread_mutex_unlock(&lock);
}

static void before_the_race(int number) {
    if (!strcmp(kind, "spin") && number == 1) {
        while (!ready) {}
    } else if (!strcmp(kind, "sleep")) {
        sleep_for(1500000000);
    } else if (!strcmp(kind, "timeout")) {
        wait_in_vain();
    } else if (!strcmp(kind, "signal")) {
        while (signals < 3) sleep_for(1000000);
    } else if (!strcmp(kind, "locks") && number == 0) {
        for (int i = 0; i < 100000; i++) {
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
        }
    }
}

static void *worker(void *argument) {
    int number = (int)(long)argument;
    before_the_race(number);
    shared = number; // the race
    if (number == 0) ready = 1;
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[MANY];
    kind = argc > 1 ? argv[1] : "none";
    long count = !strcmp(kind, "many") ? MANY : 2;
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    if (!strcmp(kind, "signal")) {
        struct itimerval often = {{0, 5000}, {0, 5000}};
        setitimer(ITIMER_REAL, &often, NULL);
    }
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, worker, (void *)i);
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    // It is the other one that comes second where nobody is kept waiting: the usual run is short.
    if (!strcmp(kind, "alarm") && shared == 0) {
        struct itimerval once = {{0, 0}, {0, 100000}};
        setitimer(ITIMER_REAL, &once, NULL);
        while (!signals) {}
    }
    puts("over");
    return 0;
}
