// The switch of papers/portend_fig14b.c under a spinlock.
//
//~ verdict: race-free
//~ topic: spinlock
//~ source: both writes are under the spinlock
#include <pthread.h>
#include <stdio.h>

static pthread_spinlock_t lock;
static int tracing;

static void *trace_on(void *unused) {
    pthread_spin_lock(&lock);
    tracing = 1;
    pthread_spin_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, trace_on, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("tracing %d\n", tracing);
    return 0;
}
