// A variable on the stack of main is shared with two threads by pointer.
//
//~ verdict: racy
//~ topic: stack memory
//~ twin: racefree/stack_handed_over.c
//~ race a: a local variable of main
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: the thread that reads it gets the value before or after the write
#include <pthread.h>
#include <stdio.h>

struct job {
    volatile int input;
    int output;
};

static void *set(void *argument) {
    struct job *job = argument;
    job->input = 2;               //~ RACE(a) write
    return NULL;
}

static void *compute(void *argument) {
    struct job *job = argument;
    job->output = 10 * job->input;  //~ RACE(a) read
    return NULL;
}

int main(void) {
    struct job job = {.input = 1};
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, set, &job);
    pthread_create(&threads[1], NULL, compute, &job);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", job.output);
    return 0;
}
