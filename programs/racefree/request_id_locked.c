// The request number of papers/portend_fig6.c, read under its lock, checked and used once.
//
//~ verdict: race-free
//~ topic: mutex
//~ source: every access to id is under the lock; the use cannot see another value than the check
#include <pthread.h>
#include <stdio.h>

enum { MAX_SIZE = 32 };

static pthread_mutex_t l = PTHREAD_MUTEX_INITIALIZER;
static int id = MAX_SIZE - 1;
static long stats_array[MAX_SIZE];

static void *request_handler(void *unused) {
    pthread_mutex_lock(&l);
    id++;
    pthread_mutex_unlock(&l);
    return unused;
}

static void *update_stats(void *unused) {
    pthread_mutex_lock(&l);
    if (id < MAX_SIZE) stats_array[id] = 7;
    pthread_mutex_unlock(&l);
    return unused;
}

int main(void) {
    pthread_t t1, t2;
    pthread_create(&t2, NULL, update_stats, NULL);
    pthread_create(&t1, NULL, request_handler, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    printf("requests %d\n", id);
    return 0;
}
