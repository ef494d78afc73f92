// Each thread has its own instance of a thread-local variable; errno is one too.
//
//~ verdict: race-free
//~ topic: thread-local memory
//~ source: no two threads access the same instance, except main after the join by a copy
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static __thread int mine = 1;
static int copies[3];

static void *worker(void *argument) {
    int *copy = argument;
    for (int i = 0; i < 100; i++) mine += (int)(copy - copies);
    errno = 0;
    if (close(-1) == -1 && errno == EBADF) mine++;
    *copy = mine;
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, worker, &copies[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("%d: %d %d %d\n", mine, copies[0], copies[1], copies[2]);
    return 0;
}
