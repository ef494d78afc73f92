/* Twenty races with fifty instances each: a thousand in all. The program is over at once, so that a ratio to it is one to the start of
   a process; many_races_long is the same in a program that has something to do. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { RACES = 20, ROUNDS = 25 };

static volatile int shared[RACES];

#define WRITE(n) shared[n] = n + 1;
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) \
    X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19)

static void *work(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        ALL(WRITE)
        sched_yield();
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", shared[RACES - 1]);
    return 0;
}
