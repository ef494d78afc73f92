// The time stamp of effects/property_timestamp.c with a barrier between setting and use.
//
//~ verdict: race-free
//~ topic: barrier, property
//~ source: all writes before the barrier happen before all reads after it
#include <pthread.h>
#include <stdio.h>

static pthread_barrier_t set;
static int timestamp = -1;
static int used[3];

static void *use_time(void *argument) {
    int *mine = argument;
    if (mine == used) timestamp = 100;
    pthread_barrier_wait(&set);
    *mine = timestamp;
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_barrier_init(&set, NULL, 3);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, use_time, &used[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("%d %d %d\n", used[0], used[1], used[2]);
    return 0;
}
