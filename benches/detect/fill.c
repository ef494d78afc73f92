// Much memory, touched once by one thread and once by another: what a detector keeps about each byte of it shows.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LARGE // as large as programs are whose memory matters
enum { MEGABYTES = 512 };
#else
enum { MEGABYTES = 128 };
#endif
enum { THREADS = 2 };
static long count, *words;

static void *fill(void *which) {
    long part = (long)which;
    for (long i = part * count / THREADS; i < (part + 1) * count / THREADS; i++) words[i] = i;
    return NULL;
}
static void *add(void *which) {
    long part = THREADS - 1 - (long)which, sum = 0;
    for (long i = part * count / THREADS; i < (part + 1) * count / THREADS; i++) sum += words[i];
    return (void *)sum;
}
static long all(void *(*work)(void *)) {
    pthread_t threads[THREADS];
    long sum = 0;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < THREADS; i++) {
        void *part;
        pthread_join(threads[i], &part);
        sum += (long)part;
    }
    return sum;
}
int main(int argc, char **argv) {
    long megabytes = argc > 1 ? atol(argv[1]) : MEGABYTES;
    count = megabytes << 17;
    words = malloc(count * sizeof *words);
    all(fill);
    printf("%ld\n", all(add));
    free(words);
}
