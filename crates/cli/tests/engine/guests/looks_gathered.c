// A loop over an array goes, besides, through pointers to what is atomic: what it has read before it saw the other thread's
// word races with what the other thread wrote before it gave that word.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { N = 512 };
static long array[N];
static atomic_long words[N];
static atomic_long *through[N];
static atomic_long started;
static volatile long sink;

static void *gives(void *unused) {
    (void)unused;
    array[5] = 1;
    atomic_fetch_add(&words[400], 1);
    atomic_fetch_add(&started, 1);
    return NULL;
}

static void *reads(void *unused) {
    (void)unused;
    long sum = 0;
    for (int i = 0; i < N; i++) sum += array[i] + *(volatile long *)through[i];
    sink = sum;
    return NULL;
}

int main(void) {
    for (int i = 0; i < N; i++) through[i] = &words[i];
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, gives, NULL);
    pthread_create(&threads[1], NULL, reads, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", sink > 0);
}
