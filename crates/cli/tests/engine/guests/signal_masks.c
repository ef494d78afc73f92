// Masks, pending sets, queueing, per-thread delivery, sigwait and its kin, sigsuspend, inheritance.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t count[65];
static volatile sig_atomic_t order[16], orders;
static __thread int self_number;
static volatile sig_atomic_t taken_by = -1;

static void on_signal(int signal) {
    count[signal]++;
    taken_by = self_number;
    if (orders < 16) order[orders++] = signal;
}
static volatile sig_atomic_t value_sum, last_code;
static void on_value(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    value_sum = value_sum * 10 + info->si_value.sival_int;
    last_code = info->si_code;
    if (info->si_pid != getpid()) _exit(33);
}

static void on_nested(int signal) {
    order[orders++] = signal;
    raise(SIGUSR2);  // in sa_mask: comes after this handler
    order[orders++] = 100;
}

static void install(int signal, void (*handler)(int), int flags, int also) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    if (also) sigaddset(&action.sa_mask, also);
    sigaction(signal, &action, NULL);
}

static pthread_barrier_t ready, done;
static void *worker(void *arg) {
    self_number = (int)(long)arg;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    printf("worker %d inherits USR1 blocked: %d\n", self_number, sigismember(&set, SIGUSR1));
    pthread_barrier_wait(&ready);
    sigset_t none;
    sigemptyset(&none);
    if (self_number == 2) sigsuspend(&none);
    pthread_barrier_wait(&done);
    return NULL;
}
static sem_t took;
static void *waiter(void *arg) {
    (void)arg;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGRTMIN + 1);
    for (int i = 0; i < 2; i++) {
        siginfo_t info;
        int signal = sigwaitinfo(&set, &info);
        printf("waiter took %s with value %d\n", signal == SIGTERM ? "TERM" : "RT", signal == SIGTERM ? 0 : info.si_value.sival_int);
        sem_post(&took);
    }
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    sigset_t set, old, pending;
    install(SIGUSR1, on_signal, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, &old);
    kill(getpid(), SIGUSR1);
    raise(SIGUSR1);
    raise(SIGUSR1);
    sigpending(&pending);
    printf("blocked: count %d pending %d\n", count[SIGUSR1], sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("unblocked: count %d\n", count[SIGUSR1]);

    // Real-time signals queue, with values, in order of number.
    struct sigaction action = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN + 2, &action, NULL);
    sigaction(SIGRTMIN + 3, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    sigaddset(&set, SIGRTMIN + 3);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 4});
    for (int i = 1; i <= 3; i++) sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = i});
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("queued: sum has %d digits, code %d\n", value_sum >= 1000 ? 4 : 0, last_code);

    // Within a handler the signal itself and sa_mask are blocked; what came meanwhile follows.
    install(SIGUSR1, on_nested, SA_RESETHAND, SIGUSR2);
    install(SIGUSR2, on_signal, 0, 0);
    orders = 0;
    raise(SIGUSR1);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    printf("order %d %d %d, reset %d\n", order[0] == SIGUSR1, order[1] == 100, order[2] == SIGUSR2, now.sa_handler == SIG_DFL);

    // Per-thread delivery: only the addressed thread runs the handler.
    install(SIGUSR1, on_signal, 0, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) {
        pthread_barrier_init(&ready, NULL, 2);
        pthread_barrier_init(&done, NULL, 2);
        pthread_create(&threads[i], NULL, worker, (void *)i);
        pthread_barrier_wait(&ready);
        if (i == 2) pthread_kill(threads[i], SIGUSR1);
        pthread_barrier_wait(&done);
        pthread_join(threads[i], NULL);
    }
    printf("taken by %d\n", taken_by);
    printf("gone thread: %s\n", kill(getpid(), 0) == 0 ? "process still there" : strerror(errno));

    // sigwait in a thread, signals sent to the process and to the thread.
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGRTMIN + 1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t thread;
    sem_init(&took, 0, 0);
    kill(getpid(), SIGTERM);
    pthread_create(&thread, NULL, waiter, NULL);
    sem_wait(&took);
    pthread_sigqueue(thread, SIGRTMIN + 1, (union sigval){.sival_int = 42});
    pthread_join(thread, NULL);
    struct timespec soon = {0, 1000000};
    int got = sigtimedwait(&set, NULL, &soon);
    printf("nothing left: %d %s\n", got, strerror(errno));
    raise(SIGTERM);
    printf("own: %d\n", sigtimedwait(&set, NULL, &soon) == SIGTERM);
    int number;
    raise(SIGTERM);
    int waited = sigwait(&set, &number);
    printf("sigwait: %d %d\n", waited, number == SIGTERM);

    // sigsuspend opens the mask for the time of the wait only.
    sigset_t most;
    sigfillset(&most);
    sigdelset(&most, SIGUSR1);
    int before = count[SIGUSR1];
    raise(SIGUSR1);
    int result = sigsuspend(&most);
    printf("sigsuspend: %d %s, handled %d\n", result, strerror(errno), count[SIGUSR1] - before);
    sigprocmask(SIG_SETMASK, NULL, &set);
    printf("blocked again: %d\n", sigismember(&set, SIGUSR1));

    // An ignored signal is not even queued; a blocked one is inherited by a child, a pending one is not.
    signal(SIGUSR2, SIG_IGN);
    raise(SIGUSR2);
    raise(SIGUSR1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        sigpending(&pending);
        printf("child: pending %d\n", sigismember(&pending, SIGUSR1));
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    sigpending(&pending);
    printf("parent: pending %d, child exited %d\n", sigismember(&pending, SIGUSR1), WEXITSTATUS(status));
    printf("errors: %d %d %d\n", kill(getpid(), 65), sigaction(SIGKILL, &action, NULL), kill(getpid(), SIGUSR2));
    signal(SIGUSR1, SIG_DFL);
    sigemptyset(&set);
    sigprocmask(SIG_SETMASK, &set, NULL);
    printf("not reached\n");
    return 0;
}
