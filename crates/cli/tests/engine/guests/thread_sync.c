// Futex-based synchronisation beyond the plain mutex: timeouts, robust and process-shared mutexes, barriers, condvars with requeue.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long futex(void *word, int op, int value, void *timeout, void *word2, int value3) {
    return syscall(SYS_futex, word, op, value, timeout, word2, value3);
}
static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static pthread_mutex_t robust;
static void *dies_with_it(void *arg) {
    pthread_mutex_lock(&robust);
    return arg;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int waiting, released, generation;
static void *waits(void *arg) {
    pthread_mutex_lock(&mutex);
    waiting++;
    int mine = generation;
    while (generation == mine) pthread_cond_wait(&condition, &mutex);
    released++;
    pthread_mutex_unlock(&mutex);
    return arg;
}

static pthread_barrier_t barrier;
static int serial;
static void *rounds(void *arg) {
    for (int i = 0; i < 50; i++)
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
    return arg;
}

static int words[2];
static void *raw_wait(void *arg) {
    __atomic_add_fetch(&words[1], 1, __ATOMIC_SEQ_CST);
    long result = futex(&words[0], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return (void *)(result == 0 || errno == EAGAIN ? arg : NULL);
}

int main(void) {
    // robust mutex
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attr);
    pthread_t thread, threads[8];
    pthread_create(&thread, NULL, dies_with_it, NULL);
    pthread_join(thread, NULL);
    int result = pthread_mutex_lock(&robust);
    printf("robust: %s\n", strerror(result));
    pthread_mutex_consistent(&robust);
    pthread_mutex_unlock(&robust);
    printf("consistent: %d\n", pthread_mutex_lock(&robust));
    pthread_mutex_unlock(&robust);
    pthread_create(&thread, NULL, dies_with_it, NULL);
    pthread_join(thread, NULL);
    result = pthread_mutex_trylock(&robust);
    printf("trylock: %s\n", strerror(result));
    pthread_mutex_unlock(&robust);
    printf("not recoverable: %s\n", strerror(pthread_mutex_lock(&robust)));

    // timed locks
    struct timespec until = in_ms(CLOCK_REALTIME, 5);
    pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&plain);
    printf("timedlock: %s\n", strerror(pthread_mutex_timedlock(&plain, &until)));
    until = in_ms(CLOCK_MONOTONIC, 5);
    printf("clocklock: %s\n", strerror(pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &until)));
    until = in_ms(CLOCK_REALTIME, 5);
    pthread_mutex_lock(&mutex);
    printf("cond timedwait: %s\n", strerror(pthread_cond_timedwait(&condition, &mutex, &until)));
    pthread_mutex_unlock(&mutex);
    sem_t sem;
    sem_init(&sem, 0, 0);
    until = in_ms(CLOCK_REALTIME, 5);
    result = sem_timedwait(&sem, &until);
    printf("sem: %d %s\n", result, strerror(errno));
    pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
    pthread_rwlock_rdlock(&rw);
    until = in_ms(CLOCK_REALTIME, 5);
    printf("rwlock: %s\n", strerror(pthread_rwlock_timedwrlock(&rw, &until)));

    // error-checking and recursive mutexes
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED);
    pthread_mutex_t checked;
    pthread_mutex_init(&checked, &attr);
    printf("errorcheck: %d", pthread_mutex_lock(&checked));
    printf(" %s", strerror(pthread_mutex_lock(&checked)));
    printf(" %d", pthread_mutex_unlock(&checked));
    printf(" %s\n", strerror(pthread_mutex_unlock(&checked)));

    // condition variable, all released
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, waits, NULL);
    for (;;) {
        pthread_mutex_lock(&mutex);
        int all = waiting == 8;
        if (all) generation++, pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
        if (all) break;
    }
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    printf("released %d\n", released);

    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, rounds, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("barrier rounds %d\n", serial);

    // raw futexes: requeue, wake-op, errors
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, raw_wait, "ok");
    while (__atomic_load_n(&words[1], __ATOMIC_SEQ_CST) < 4) {}
    int other = 0, gone = 0;
    // They may still be on their way into the kernel; those see the changed word and return.
    words[0] = 1;
    while (gone < 4) {
        gone += futex(&words[0], FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &other, 1) >= 0;
        futex(&other, FUTEX_WAKE_PRIVATE, 4, NULL, NULL, 0);
        futex(&words[0], FUTEX_WAKE_BITSET_PRIVATE, 4, NULL, NULL, -1);
    }
    int good = 0;
    for (int i = 0; i < 4; i++) {
        void *value;
        pthread_join(threads[i], &value);
        good += value != NULL;
    }
    printf("raw waiters back: %d\n", good);
    result = futex(&words[0], FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &other, 99);
    printf("cmp_requeue: %d %s\n", result, strerror(errno));
    other = 6;
    result = futex(&words[0], FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &other, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 6));
    printf("wake_op: %d, word %d\n", result, other);
    result = futex((char *)&words[0] + 1, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    printf("misaligned: %d %s\n", result, strerror(errno));
    result = futex(NULL, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    printf("null: %d %s\n", result, strerror(errno));
    struct timespec bad = {0, 2000000000};
    result = futex(&words[0], FUTEX_WAIT_PRIVATE, 1, &bad, NULL, 0);
    printf("bad timeout: %d %s\n", result, strerror(errno));
    struct timespec brief = {0, 1000000};
    result = futex(&words[0], FUTEX_WAIT, 1, &brief, NULL, 0);
    printf("timeout: %d %s\n", result, strerror(errno));
    return 0;
}
