// Two threads call `step`; a label inside it has a symbol of its own.
#include <pthread.h>
#include <stdio.h>

static long sums[2];

__attribute__((noinline)) void step(long *sum, long value) {
    *sum += value;
    __asm__ volatile(".globl step_inside\nstep_inside:\n\tincq %0" : "+m"(*sum));
    *sum ^= value;
}

static void *work(void *sum) {
    for (long i = 0; i < 500; i++) step(sum, i);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, &sums[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%ld %ld\n", sums[0], sums[1]);
    return 0;
}
