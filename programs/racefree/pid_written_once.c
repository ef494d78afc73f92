// The process id of papers/replay_redundant_write.c, written before the readers start.
//
//~ verdict: race-free
//~ topic: create and join
//~ source: thread creation orders the write before both reads
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int owner;
static int seen_own[2];

static void *reader(void *seen) {
    *(int *)seen = owner == getpid();
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    owner = getpid();
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, reader, &seen_own[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("own process: %s\n", seen_own[0] && seen_own[1] ? "yes" : "no");
    return 0;
}
