// The step of effects/infinite_loop.c set in a pthread_once routine that both threads call.
//
//~ verdict: race-free
//~ topic: once, infinite loop
//~ source: pthread_once orders the setting before each return
#include <pthread.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int step;
static int sums[2];

static void set_step(void) {
    step = 1;
}

static void *add_up(void *sum) {
    pthread_once(&once, set_step);
    for (int i = 0; i < 10; i += step) *(int *)sum += i;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, add_up, &sums[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("sum %d %d\n", sums[0], sums[1]);
    return 0;
}
