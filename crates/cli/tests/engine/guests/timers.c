// Timers of every kind, and calls that a signal interrupts or restarts.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms;
static volatile int pipe_end;
static void on_alarm(int signal) {
    (void)signal;
    alarms++;
}
static void on_alarm_write(int signal) {
    (void)signal;
    alarms++;
    if (write(pipe_end, "x", 1) != 1) _exit(9);
}
static void install(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
}
static sem_t ticks;
static void on_thread_tick(union sigval value) {
    if (value.sival_int != 77) _exit(8);
    sem_post(&ticks);
}
static int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    install(SIGALRM, on_alarm, 0);
    // pause and alarm
    alarm(1);
    int paused = pause();
    printf("pause: %d %s, alarms %d\n", paused, strerror(errno), alarms);
    alarm(100);
    printf("left of an alarm: %d\n", alarm(0) >= 99);

    // an interval timer ticks until stopped
    struct itimerval interval = {{0, 2000}, {0, 2000}};
    alarms = 0;
    setitimer(ITIMER_REAL, &interval, NULL);
    while (alarms < 5) pause();
    struct itimerval stop = {0}, left;
    setitimer(ITIMER_REAL, &stop, &left);
    printf("ticked; interval was %ld\n", left.it_interval.tv_usec);

    // a CPU timer ticks while computing
    install(SIGVTALRM, on_alarm, SA_RESTART);
    alarms = 0;
    struct itimerval cpu = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_VIRTUAL, &cpu, NULL);
    while (alarms < 3) {}
    setitimer(ITIMER_VIRTUAL, &stop, NULL);
    printf("cpu timer ticked\n");

    // EINTR or restart
    int fds[2];
    if (pipe(fds)) return 1;
    pipe_end = fds[1];
    char byte;
    install(SIGALRM, on_alarm, 0);
    // Again and again: the first tick may come before the call.
    struct itimerval tick = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_REAL, &tick, NULL);
    ssize_t result = read(fds[0], &byte, 1);
    printf("without SA_RESTART: %zd %s\n", result, strerror(errno));
    setitimer(ITIMER_REAL, &stop, NULL);
    install(SIGALRM, on_alarm_write, SA_RESTART);
    setitimer(ITIMER_REAL, &tick, NULL);
    result = read(fds[0], &byte, 1);
    printf("with SA_RESTART: %zd %c\n", result, byte);
    setitimer(ITIMER_REAL, &stop, NULL);
    install(SIGALRM, on_alarm, SA_RESTART);
    setitimer(ITIMER_REAL, &tick, NULL);
    struct timespec long_sleep = {100, 0}, rest;
    int slept = nanosleep(&long_sleep, &rest);
    printf("nanosleep never restarts: %d %s, rest %d\n", slept, strerror(errno), rest.tv_sec >= 98);
    setitimer(ITIMER_REAL, &tick, NULL);
    printf("poll never restarts: %d", epoll_wait(epoll_create1(0), &(struct epoll_event){0}, 1, 10000));
    printf(" %s\n", strerror(errno));
    setitimer(ITIMER_REAL, &tick, NULL);
    sem_t never;
    sem_init(&never, 0, 0);
    printf("sem_wait with SA_RESTART, timed: ");
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 100;
    slept = sem_timedwait(&never, &until);
    printf("%d %s\n", slept, strerror(errno));
    setitimer(ITIMER_REAL, &stop, NULL);

    // POSIX timers: a signal with a value, a thread, overruns, one thread by id
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 77};
    event.sigev_notify_function = on_thread_tick;
    sem_init(&ticks, 0, 0);
    timer_t timer;
    printf("timer_create %d\n", timer_create(CLOCK_MONOTONIC, &event, &timer));
    struct itimerspec spec = {{0, 1000000}, {0, 1000000}};
    timer_settime(timer, 0, &spec, NULL);
    for (int i = 0; i < 3; i++) sem_wait(&ticks);
    timer_delete(timer);
    printf("thread ticks came\n");
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct sigevent queued = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 5};
    timer_create(CLOCK_REALTIME, &queued, &timer);
    timer_settime(timer, 0, &spec, NULL);
    siginfo_t info;
    sigwaitinfo(&set, &info);
    printf("signal timer: value %d code %d\n", info.si_value.sival_int, info.si_code == SI_TIMER);
    struct itimerspec got;
    timer_gettime(timer, &got);
    printf("interval %ld, armed %d\n", got.it_interval.tv_nsec, got.it_value.tv_nsec > 0);
    timer_delete(timer);
    slept = timer_gettime(timer, &got);
    printf("deleted: %d %s\n", slept, strerror(errno));

    // timerfd with epoll
    int tfd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), efd = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = 9}, came;
    epoll_ctl(efd, EPOLL_CTL_ADD, tfd, &wanted);
    uint64_t expirations = 0;
    result = read(tfd, &expirations, 8);
    printf("not yet: %zd %s\n", result, strerror(errno));
    struct itimerspec fd_spec = {{0, 1000000}, {0, 3000000}};
    timerfd_settime(tfd, 0, &fd_spec, NULL);
    uint64_t total = 0;
    while (total < 4) {
        int n = epoll_wait(efd, &came, 1, -1);
        if (n != 1 || came.data.u32 != 9) return 2;
        if (read(tfd, &expirations, 8) == 8) total += expirations;
    }
    printf("timerfd expired\n");
    timerfd_gettime(tfd, &got);
    printf("interval %ld\n", got.it_interval.tv_nsec);

    // clocks run forward, sleeps last at least as long as asked
    int64_t before = now_ns(CLOCK_MONOTONIC), last = before;
    for (int i = 0; i < 1000; i++) {
        int64_t now = now_ns(CLOCK_MONOTONIC);
        if (now < last) printf("backwards\n");
        last = now;
    }
    usleep(3000);
    printf("slept %d\n", now_ns(CLOCK_MONOTONIC) - before >= 3000000);
    int64_t deadline = now_ns(CLOCK_REALTIME) + 4000000;
    struct timespec absolute = {deadline / 1000000000, deadline % 1000000000};
    printf("absolute %d", clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &absolute, NULL));
    printf(" %d\n", now_ns(CLOCK_REALTIME) >= deadline);
    struct timeval tv;
    gettimeofday(&tv, NULL);
    printf("same second or next: %d\n", time(NULL) - tv.tv_sec <= 1);
    printf("bad: %d", clock_gettime(1234, &absolute));
    printf(" %s\n", strerror(errno));
    return 0;
}
