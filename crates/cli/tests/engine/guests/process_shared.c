// Synchronisation between processes over shared memory: a mutex, a condition variable and a semaphore.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t turn;
    sem_t done;
    int whose, sum;
};

static void work(struct shared *s, int me) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&s->mutex);
        while (s->whose != me) pthread_cond_wait(&s->turn, &s->mutex);
        s->sum = (s->sum * 3 + me) & 0xffff;
        s->whose = !me;
        pthread_cond_broadcast(&s->turn);
        pthread_mutex_unlock(&s->mutex);
    }
    sem_post(&s->done);
}

int main(void) {
    struct shared *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t mutex_attr;
    pthread_condattr_t cond_attr;
    pthread_mutexattr_init(&mutex_attr);
    pthread_mutexattr_setpshared(&mutex_attr, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&cond_attr);
    pthread_condattr_setpshared(&cond_attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&s->mutex, &mutex_attr);
    pthread_cond_init(&s->turn, &cond_attr);
    sem_init(&s->done, 1, 0);
    pid_t child = fork();
    if (child == 0) {
        work(s, 1);
        _exit(5);
    }
    work(s, 0);
    sem_wait(&s->done);
    sem_wait(&s->done);
    int status;
    waitpid(child, &status, 0);
    printf("sum %d, child %d\n", s->sum, WEXITSTATUS(status));
    return 0;
}
