/* Runs for about a second; ten races with segments of a few instructions, all at its beginning. */
#include <pthread.h>
#include <stdio.h>

enum { RACES = 10 };

static volatile int shared[RACES];
static volatile unsigned long sums[2];

#define WRITE(n) shared[n] = n + 1;
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)

static void *work(void *argument) {
    long me = (long)argument;
    ALL(WRITE)
    unsigned long sum = 0;
    for (unsigned long i = 0; i < 600000000; i++) sum += i ^ (sum >> 3);
    sums[me] = sum;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%lu\n", sums[0] + sums[1]);
    return 0;
}
