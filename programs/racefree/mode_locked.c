// The mode of effects/conditional_unlock.c is asked once, under a lock of its own.
//
//~ verdict: race-free
//~ topic: mutex, deadlock
//~ source: mode and served are each only accessed under their lock; served also by main after the
//~ | joins
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mode_lock = PTHREAD_MUTEX_INITIALIZER;
static int single_user;
static int served;

static void *serve(void *unused) {
    pthread_mutex_lock(&mode_lock);
    int alone = single_user;
    pthread_mutex_unlock(&mode_lock);
    if (!alone) pthread_mutex_lock(&lock);
    served = 1;
    if (!alone) pthread_mutex_unlock(&lock);
    return unused;
}

static void *change_mode(void *unused) {
    pthread_mutex_lock(&mode_lock);
    single_user = 1;
    pthread_mutex_unlock(&mode_lock);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, serve, NULL);
    pthread_create(&threads[1], NULL, change_mode, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("served %d\n", served);
    return 0;
}
