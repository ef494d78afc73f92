/* Twenty races with fifty instances each, a thousand in all, spread over a program that runs for about a second. */
#include <pthread.h>
#include <stdio.h>

enum { RACES = 20, ROUNDS = 50 };

static volatile int shared[RACES];
static volatile unsigned long sums[2];
static pthread_barrier_t together;

#define WRITE(n) shared[n] = n + 1;
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) \
    X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19)

static void *work(void *argument) {
    long me = (long)argument;
    unsigned long sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together);
        ALL(WRITE)
        for (unsigned long i = 0; i < 12000000; i++) sum += i ^ (sum >> 3);
    }
    sums[me] = sum;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&together, NULL, 2);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d %lu\n", shared[RACES - 1], sums[0] + sums[1]);
    return 0;
}
