// The turns of papers/replay_user_sync.c with a mutex and a condition variable.
//
//~ verdict: race-free
//~ topic: condvar, mutex
//~ source: turn and sum are only accessed under the mutex
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t handed_over = PTHREAD_COND_INITIALIZER;
static long turn;
static long sum;

static void *player(void *argument) {
    long me = (long)argument;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        while (turn != me) pthread_cond_wait(&handed_over, &lock);
        sum += me + 1;
        turn = 1 - me;
        pthread_cond_broadcast(&handed_over);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t players[2];
    for (long i = 0; i < 2; i++) pthread_create(&players[i], NULL, player, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(players[i], NULL);
    printf("sum %ld\n", sum);
    return 0;
}
