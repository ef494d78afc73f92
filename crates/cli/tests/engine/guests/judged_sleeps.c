/* A program with a race that sleeps for hours. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int shared;
static void *set(void *unused) { sleep(3600); shared = 1; sleep(7200); return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, set, NULL);
    sleep(36000);
    printf("seen %d\n", shared);
    pthread_join(thread, NULL);
    return 0;
}
