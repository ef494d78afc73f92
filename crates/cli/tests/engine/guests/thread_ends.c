// Threads end in any order: detached, cancelled, joined late, the first one before the others; keys and cleanup handlers run.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_key_t key;
static int destroyed, cleaned;
static pthread_barrier_t started;
static void destroy(void *value) { __atomic_add_fetch(&destroyed, (int)(long)value, __ATOMIC_SEQ_CST); }
static void clean(void *value) { __atomic_add_fetch(&cleaned, (int)(long)value, __ATOMIC_SEQ_CST); }

static void *detached(void *arg) {
    pthread_setspecific(key, (void *)1);
    __atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static void *reads_forever(void *arg) {
    pthread_setspecific(key, (void *)100);
    pthread_cleanup_push(clean, (void *)1);
    pthread_cleanup_push(clean, (void *)10);
    pthread_barrier_wait(&started);
    char byte;
    while (read(*(int *)arg, &byte, 1) >= 0) {}
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return "not cancelled";
}
static void *spins_forever(void *arg) {
    (void)arg;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(clean, (void *)1000);
    pthread_barrier_wait(&started);
    for (volatile int i = 0;; i++) {}
    pthread_cleanup_pop(0);
    return NULL;
}
static void unlock(void *mutex) { pthread_mutex_unlock(mutex); }
static void *waits_in_cond(void *arg) {
    (void)arg;
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    pthread_barrier_wait(&started);
    for (;;) pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}
static void *refuses(void *arg) {
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    pthread_barrier_wait(&started);
    while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE)) sched_yield();
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    return NULL;
}

static void cancel(const char *name, void *(*body)(void *), void *arg, int *flag) {
    pthread_t thread;
    pthread_barrier_init(&started, NULL, 2);
    pthread_create(&thread, NULL, body, arg);
    pthread_barrier_wait(&started);
    int result = pthread_cancel(thread);
    if (flag) __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    void *value;
    pthread_join(thread, &value);
    printf("%s: cancel %d, cancelled %d, cleaned %d, destroyed %d\n", name, result, value == PTHREAD_CANCELED, cleaned, destroyed);
}

static pthread_t first;
static void *outlives_main(void *arg) {
    void *value;
    pthread_join(first, &value);
    printf("the first thread ended with %s\n", (char *)value);
    printf("pid and tid differ: %d\n", getpid() != gettid());
    fflush(stdout);
    if (arg) exit(23);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    pthread_key_create(&key, destroy);
    int count = 0, fds[2], flag = 0;
    if (pipe(fds)) return 1;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, &attr, detached, &count);
    }
    while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) < 20 || __atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) < 20) usleep(1000);
    printf("detached %d destroyed %d\n", count, destroyed);
    cancel("in read", reads_forever, &fds[0], NULL);
    cancel("spinning", spins_forever, NULL, NULL);
    cancel("in cond_wait", waits_in_cond, NULL, NULL);
    cancel("disabled", refuses, &flag, &flag);
    pthread_t self_join = pthread_self();
    printf("join oneself: %s\n", strerror(pthread_join(self_join, NULL)));
    fflush(stdout);
    first = pthread_self();
    pthread_t thread;
    pthread_create(&thread, &attr, outlives_main, argc > 1 ? "exit" : NULL);
    pthread_exit("a value");
}
