// A mutex with priority inheritance, contended: the engine refuses it by name.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex;
static void *locks(void *arg) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}
int main(void) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &attr);
    pthread_mutex_lock(&mutex);
    pthread_t thread;
    pthread_create(&thread, NULL, locks, NULL);
    usleep(1000);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    printf("supported\n");
    return 0;
}
