// A loop advances by a step that another thread must have set before.
//
//~ verdict: racy
//~ topic: infinite loop
//~ twin: racefree/step_once.c
//~ race a: the step
//~   real: yes
//~   observed: always
//~   class: spec-violated infinite-loop
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: read before it is set, the step is 0 and the loop counter, local to the thread,
//~   | never moves
#include <pthread.h>
#include <stdio.h>

static volatile int step;
static int table[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
static int sum;

static void *set_step(void *unused) {
    step = 1;                 //~ RACE(a) write
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 1000000; i++) {
    }
}

static void *add_up(void *unused) {
    other_work();
    int by = step;            //~ RACE(a) read
    for (int i = 0; i < 10; i += by) sum += table[i];
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, set_step, NULL);
    pthread_create(&threads[1], NULL, add_up, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("sum %d\n", sum);
    return 0;
}
