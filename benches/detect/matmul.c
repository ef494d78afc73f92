// Product of two matrices, a stripe of rows for each of four threads.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LARGE // as large as programs are whose memory matters
enum { N = 1400, THREADS = 4 };
#else
enum { N = 640, THREADS = 4 };
#endif

static double *a, *b, *c;

static void *stripe(void *arg) {
    long first = (long)arg * N / THREADS, last = ((long)arg + 1) * N / THREADS;
    for (long i = first; i < last; i++) {
        for (long k = 0; k < N; k++) {
            double factor = a[i * N + k];
            for (long j = 0; j < N; j++) {
                c[i * N + j] += factor * b[k * N + j];
            }
        }
    }
    return NULL;
}

int main(void) {
    a = malloc(sizeof(double) * N * N);
    b = malloc(sizeof(double) * N * N);
    c = calloc(N * N, sizeof(double));
    for (long i = 0; i < N * N; i++) {
        a[i] = (double)(i % 13);
        b[i] = (double)(i % 7);
    }
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, stripe, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    double sum = 0;
    for (long i = 0; i < N * N; i++) {
        sum += c[i];
    }
    printf("%.0f\n", sum);
}
