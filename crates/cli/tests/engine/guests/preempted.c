// Threads that compute without a lock while timers of several kinds interrupt them: every tick lands on some instruction,
// and what each handler saw goes into the output.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile unsigned long shared, seen;
static volatile sig_atomic_t ticks;

static void on_tick(int signal, siginfo_t *info, void *raw) {
    (void)info;
    ucontext_t *context = raw;
    seen = seen * 31 + (unsigned long)context->uc_mcontext.gregs[REG_RIP] * 7 + signal;
    ticks++;
}
static void *compute(void *arg) {
    unsigned long own = (unsigned long)arg;
    while (ticks < 60) {
        own = own * 6364136223846793005u + 1442695040888963407u;
        shared = shared * 3 + own;  // a race, and the same one every time
    }
    return (void *)own;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    struct itimerval wall = {{0, 3000}, {0, 3000}}, cpu = {{0, 4001}, {0, 4001}};
    setitimer(ITIMER_REAL, &wall, NULL);
    setitimer(ITIMER_PROF, &cpu, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec spec = {{0, 2777777}, {0, 1234567}};
    timer_settime(timer, 0, &spec, NULL);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, compute, (void *)i);
    unsigned long sum = 0;
    for (int i = 0; i < 4; i++) {
        void *own;
        pthread_join(threads[i], &own);
        sum = sum * 17 + (unsigned long)own;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%lx %lx %lx %d %ld.%09ld %p\n", sum, shared, seen, ticks, now.tv_sec, now.tv_nsec, malloc(10));
    return 0;
}
