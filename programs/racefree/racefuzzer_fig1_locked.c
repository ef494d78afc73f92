// papers/racefuzzer_fig1.c with z under the lock too; x stays ordered by y under the lock.
//
//~ verdict: race-free
//~ topic: mutex
//~ source: x is written before the critical section that writes y = 1 and read in one that saw it
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t L = PTHREAD_MUTEX_INITIALIZER;
static int x, y, z;
static int consistent = 1;

static void *thread1(void *unused) {
    x = 1;
    pthread_mutex_lock(&L);
    y = 1;
    z++;
    pthread_mutex_unlock(&L);
    return unused;
}

static void *thread2(void *unused) {
    pthread_mutex_lock(&L);
    z++;
    if (y == 1) consistent = x == 1;
    pthread_mutex_unlock(&L);
    return unused;
}

int main(void) {
    pthread_t t1, t2;
    pthread_create(&t1, NULL, thread1, NULL);
    pthread_create(&t2, NULL, thread2, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    printf("consistent %d, z %d\n", consistent, z);
    return 0;
}
