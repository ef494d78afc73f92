// Byte-wise sieve of Eratosthenes: short loops, stores with a stride.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    int limit = argc > 1 ? atoi(argv[1]) : 60000000, count = 0;
    char *composite = calloc(limit + 1, 1);
    for (int i = 2; i <= limit; i++) {
        if (composite[i]) continue;
        count++;
        for (long j = (long)i * i; j <= limit; j += i) composite[j] = 1;
    }
    printf("%d\n", count);
    free(composite);
}
