// A signal handler sets a flag of its own thread; other threads never touch it.
//
//~ verdict: race-free
//~ topic: signals
//~ source: the handler runs on the thread that raised the signal and shares a volatile
//~ | sig_atomic_t with it only
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static __thread volatile sig_atomic_t caught;

static void handler(int signal) {
    (void)signal;
    caught++;
}

static void *work(void *count) {
    for (int i = 0; i < 5; i++) raise(SIGUSR1);
    *(int *)count = (int)caught;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int counts[2] = {0, 0};
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &counts[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d %d\n", counts[0], counts[1]);
    return 0;
}
