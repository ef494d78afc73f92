// A buffer is handed over through a pipe: the read waits for the write.
//
//~ verdict: race-free
//~ topic: system calls
//~ source: the write system call comes after the store and, through the pipe, before the return
//~ | of the read
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];
static sem_t written;
static int value;

static void *produce(void *unused) {
    value = 42;
    if (write(ends[1], "x", 1) != 1) value = -1;
    sem_post(&written);
    return unused;
}

static void *consume(void *seen) {
    char byte;
    if (read(ends[0], &byte, 1) != 1) return NULL;
    // The pipe orders the threads outside of memory; the semaphore says so inside the program, too.
    sem_wait(&written);
    *(int *)seen = value;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int seen = 0;
    if (pipe(ends) != 0) return 2;
    sem_init(&written, 0, 0);
    pthread_create(&threads[0], NULL, consume, &seen);
    pthread_create(&threads[1], NULL, produce, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", seen);
    return 0;
}
