// Signals through a descriptor: the engine refuses it by name.
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

int main(void) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    printf("%d\n", signalfd(-1, &mask, 0) >= 0);
    return 0;
}
