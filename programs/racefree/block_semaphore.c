// The blocks of papers/portend_fig14d.c handed over by two semaphores, one buffer, many rounds.
//
//~ verdict: race-free
//~ topic: semaphore
//~ source: full and empty hand the one buffer to and fro; one side owns it at a time
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

enum { BLOCKS = 20 };

static sem_t empty, full;
static int output_block;

static void *producer(void *unused) {
    for (int i = 1; i <= BLOCKS; i++) {
        sem_wait(&empty);
        output_block = i;
        sem_post(&full);
    }
    return unused;
}

static void *file_writer(void *unused) {
    int sum = 0;
    for (int i = 0; i < BLOCKS; i++) {
        sem_wait(&full);
        sum += output_block;
        sem_post(&empty);
    }
    printf("wrote %d\n", sum);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    sem_init(&empty, 0, 1);
    sem_init(&full, 0, 0);
    pthread_create(&threads[0], NULL, file_writer, NULL);
    pthread_create(&threads[1], NULL, producer, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
