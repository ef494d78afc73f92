// A thread waits for input and another one for a signal. Both may come at the same moment.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t signalled;
static void on_signal(int number) { signalled = number; }

static void *reads(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    char line[16];
    puts("ready");
    fflush(stdout);
    ssize_t count = read(0, line, sizeof line);
    printf("read %zd, signal %d\n", count, signalled);
    return unused;
}

int main(void) {
    signal(SIGUSR1, on_signal);
    sigset_t none, usr1;
    sigemptyset(&none);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    pthread_t reader;
    pthread_create(&reader, NULL, reads, NULL);
    while (!signalled) sigsuspend(&none);
    puts("signal");
    pthread_join(reader, NULL);
}
