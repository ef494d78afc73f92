// A reduction, a critical section, a barrier and tasks of OpenMP.
//
//~ verdict: race-free
//~ topic: OpenMP
//~ flags: -fopenmp
//~ source: each shared variable is a reduction, in the critical section, on one side of the
//~ | barrier, or waited for with taskwait
#include <stdio.h>

static int fibonacci(int n) {
    int a, b;
    if (n < 2) return n;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

int main(void) {
    long sum = 0, count = 0;
    int halves[2] = {0, 0}, swapped[2] = {0, 0}, result = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
    for (int i = 1; i <= 100; i++) {
        sum += i;
#pragma omp critical
        count++;
    }
#pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 0; i < 2; i++) halves[i] = i + 1;
#pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 0; i < 2; i++) swapped[i] = halves[1 - i];
#pragma omp parallel num_threads(2)
#pragma omp single
    result = fibonacci(8);
    printf("%ld %ld, %d %d, %d\n", sum, count, swapped[0], swapped[1], result);
    return 0;
}
