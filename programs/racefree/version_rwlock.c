// The choice of papers/replay_both_values_valid.c under a readers-writer lock, with two readers.
//
//~ verdict: race-free
//~ topic: rwlock
//~ source: the write is under the exclusive lock, the reads are under the shared one
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int use_formula;
static long results[2];

static long by_formula(long n) {
    return n * (n + 1) / 2;
}

static long by_counting(long n) {
    long sum = 0;
    for (long i = 1; i <= n; i++) sum += i;
    return sum;
}

static void *choose(void *unused) {
    pthread_rwlock_wrlock(&lock);
    use_formula = 1;
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *compute(void *result) {
    pthread_rwlock_rdlock(&lock);
    *(long *)result = use_formula ? by_formula(100) : by_counting(100);
    pthread_rwlock_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t chooser, computers[2];
    pthread_create(&chooser, NULL, choose, NULL);
    for (int i = 0; i < 2; i++) pthread_create(&computers[i], NULL, compute, &results[i]);
    pthread_join(chooser, NULL);
    for (int i = 0; i < 2; i++) pthread_join(computers[i], NULL);
    printf("sum to 100: %ld %ld\n", results[0], results[1]);
    return 0;
}
