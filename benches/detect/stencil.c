// Heat spreads over a plate: four threads, a barrier after each step.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LARGE // as large as programs are whose memory matters
enum { N = 2600, STEPS = 12, THREADS = 4 };
#else
enum { N = 768, STEPS = 160, THREADS = 4 };
#endif

static float *now, *next;
static pthread_barrier_t barrier;

static void *stripe(void *arg) {
    long first = 1 + (long)arg * (N - 2) / THREADS, last = 1 + ((long)arg + 1) * (N - 2) / THREADS;
    float *from = now, *to = next;
    for (int step = 0; step < STEPS; step++) {
        for (long y = first; y < last; y++) {
            for (long x = 1; x < N - 1; x++) {
                long at = y * N + x;
                to[at] = 0.2f * (from[at] + from[at - 1] + from[at + 1] + from[at - N] + from[at + N]);
            }
        }
        pthread_barrier_wait(&barrier);
        float *swapped = from;
        from = to;
        to = swapped;
    }
    return NULL;
}

int main(void) {
    now = calloc(N * N, sizeof(float));
    next = calloc(N * N, sizeof(float));
    for (long i = 0; i < N; i++) {
        now[i] = next[i] = 100;
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, stripe, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    double sum = 0;
    for (long i = 0; i < N * N; i++) {
        sum += now[i];
    }
    printf("%.3f\n", sum);
}
