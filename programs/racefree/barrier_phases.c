// A relaxation in phases: each thread reads its neighbours after a barrier.
//
//~ verdict: race-free
//~ topic: barrier
//~ source: a phase writes the cells that the next phase only reads; two barriers separate them
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, PHASES = 5 };

static pthread_barrier_t barrier;
static int cells[2][THREADS] = {{1, 2, 3, 4}};
static int serial;

static void *relax(void *argument) {
    int me = (int)(long)argument;
    for (int phase = 0; phase < PHASES; phase++) {
        const int *from = cells[phase % 2];
        int *to = cells[(phase + 1) % 2];
        to[me] = from[me] + from[(me + 1) % THREADS];
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) serial++;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, relax, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    const int *end = cells[PHASES % 2];
    printf("%d %d %d %d, serial %d\n", end[0], end[1], end[2], end[3], serial);
    return 0;
}
