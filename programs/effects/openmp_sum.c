// A parallel loop adds into a shared variable without a reduction.
//
//~ verdict: racy
//~ topic: OpenMP, lost update
//~ flags: -fopenmp
//~ twin: racefree/openmp_reduction.c
//~ race a: the sum
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: an addition is lost if both threads load before either stores
#include <stdio.h>

static volatile long sum;

int main(void) {
#pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 1; i <= 10; i++) {
        sum = sum + i;            //~ RACE(a) update
    }
    printf("%ld\n", sum);
    return 0;
}
