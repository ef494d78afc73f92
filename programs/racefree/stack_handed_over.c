// A variable on the stack of main goes to one thread after the other, with a join between.
//
//~ verdict: race-free
//~ topic: stack memory, create and join
//~ source: each thread ends and is joined before the next one starts
#include <pthread.h>
#include <stdio.h>

struct job {
    int input;
    int output;
};

static void *set(void *argument) {
    struct job *job = argument;
    job->input = 2;
    return NULL;
}

static void *compute(void *argument) {
    struct job *job = argument;
    job->output = 10 * job->input;
    return NULL;
}

int main(void) {
    struct job job = {.input = 1};
    pthread_t thread;
    pthread_create(&thread, NULL, set, &job);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, compute, &job);
    pthread_join(thread, NULL);
    printf("%d\n", job.output);
    return 0;
}
