// Whoever hears that a child has ended has had SIGCHLD by then.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static volatile pid_t from;

static void on_child(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    came++;
    from = info->si_pid;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    for (int round = 1; round <= 20; round++) {
        pid_t child = fork();
        if (child == 0) _exit(round);
        // Nothing waits: what the guest hears, it hears because it asks.
        pid_t got = 0;
        if (round % 2) {
            while (got == 0) got = waitpid(child, NULL, WNOHANG);
        } else {
            siginfo_t info;
            do {
                memset(&info, 0, sizeof info);
                waitid(P_PID, child, &info, WEXITED | WNOHANG);
                got = info.si_pid;
            } while (got == 0);
        }
        printf("%d: the child %d, signals %d, from it %d\n", round, got == child, came, from == child);
    }
    return 0;
}
