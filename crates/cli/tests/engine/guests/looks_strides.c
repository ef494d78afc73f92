// Loops that go through memory in steps, and what other threads do to parts of it meanwhile: races in the middle, at the ends,
// and between the steps, where there is none.
#include <pthread.h>
#include <stdio.h>

enum { N = 4000 };
static long rows[N], down[N], gaps[2 * N], copied[N];
static int ints[N];
static volatile long sink;

static void *loops(void *unused) {
    (void)unused;
    for (int i = 0; i < N; i++) rows[i] = i;
    for (int i = N - 1; i >= 0; i--) down[i] = i;
    for (int i = 0; i < N; i++) gaps[2 * i] = i;
    for (int i = 0; i < N; i++) ints[i] += i;
    for (int i = 0; i < N; i++) copied[i] = rows[N - 1 - i];
    return NULL;
}

static void *looks(void *unused) {
    (void)unused;
    long sum = rows[N / 2];
    sum += down[0];
    sum += gaps[2 * N - 1];
    sum += gaps[2 * N - 2];
    sum += ints[N - 1];
    sum += ints[1];
    copied[N - 1] = sum;
    sink = sum;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, loops, NULL);
    pthread_create(&threads[1], NULL, looks, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", sink != 1);
}
