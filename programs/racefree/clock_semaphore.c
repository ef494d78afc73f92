// The clock of papers/portend_fig14c.c posts a semaphore that the worker waits for.
//
//~ verdict: race-free
//~ topic: semaphore
//~ source: the write comes before the post, which happens before the return of the wait
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static unsigned current_time = 41;
static sem_t ticked;

static void *clock_handler(void *unused) {
    current_time = 42;
    sem_post(&ticked);
    return unused;
}

static void *process_stats(void *unused) {
    sem_wait(&ticked);
    printf("STAT time %u\n", current_time);
    return unused;
}

int main(void) {
    pthread_t clock_thread, worker;
    sem_init(&ticked, 0, 0);
    pthread_create(&clock_thread, NULL, clock_handler, NULL);
    pthread_create(&worker, NULL, process_stats, NULL);
    pthread_join(clock_thread, NULL);
    pthread_join(worker, NULL);
    return 0;
}
