// A product of matrices by OpenMP: loops of three schedules, a reduction, tasks, a critical section, an atomic update, a barrier.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 96 };
int main(void) {
    double *a = malloc(sizeof(double) * N * N), *b = malloc(sizeof(double) * N * N), *c = calloc(N * N, sizeof(double));
    double sum = 0;
    #pragma omp parallel for num_threads(4) schedule(dynamic, 3)
    for (int i = 0; i < N * N; i++) { a[i] = i % 13; b[i] = i % 7; }
    #pragma omp parallel for num_threads(4) collapse(2) schedule(guided)
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) for (int k = 0; k < N; k++) c[i * N + j] += a[i * N + k] * b[k * N + j];
    #pragma omp parallel for num_threads(4) reduction(+ : sum)
    for (int i = 0; i < N * N; i++) sum += c[i];
    #pragma omp parallel num_threads(4)
    {
        #pragma omp single
        for (int t = 0; t < 8; t++) {
            #pragma omp task firstprivate(t)
            { 
                double part = 0;
                for (int i = t; i < N * N; i += 8) part += c[i];
                #pragma omp critical
                sum += part;
            }
        }
        #pragma omp taskwait
        #pragma omp barrier
        #pragma omp atomic
        sum += 1;
    }
    printf("%.0f\n", sum);
}
