// Recursive quicksort: unpredictable branches, calls and returns.
#include <stdio.h>
#include <stdlib.h>
static void sort(unsigned *v, long lo, long hi) {
    while (lo < hi) {
        unsigned pivot = v[(lo + hi) / 2];
        long i = lo, j = hi;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (v[j] > pivot) j--;
            if (i <= j) { unsigned t = v[i]; v[i] = v[j]; v[j] = t; i++; j--; }
        }
        if (j - lo < hi - i) { sort(v, lo, j); lo = i; } else { sort(v, i, hi); hi = j; }
    }
}
int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 10000000;
    unsigned *v = malloc(n * sizeof *v), x = 12345;
    for (long i = 0; i < n; i++) { x = x * 1664525u + 1013904223u; v[i] = x; }
    sort(v, 0, n - 1);
    for (long i = 1; i < n; i++) if (v[i - 1] > v[i]) return 1;
    printf("%u %u\n", v[0], v[n - 1]);
}
