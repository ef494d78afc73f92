// Reads its own input in pieces from four threads and says every now and then what it has found: its recording grows
// all the time, and its output tells how far it came.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, PIECE = 48 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sum;
static int input, rounds;

static void *reader(void *argument) {
    long id = (long)argument;
    for (int round = 0; round < rounds; round++) {
        unsigned char piece[PIECE];
        ssize_t count = pread(input, piece, sizeof piece, (id * rounds + round) % 1000);
        pthread_mutex_lock(&lock);
        for (ssize_t i = 0; i < count; i++) sum = sum * 31 + piece[i];
        if (round % 50 == 0) {
            char line[64];
            int len = snprintf(line, sizeof line, "%ld %d %016lx\n", id, round, (unsigned long)sum);
            if (write(1, line, len) != len) abort();
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    rounds = argc > 2 ? atoi(argv[2]) : 2000;
    input = open(argv[1], O_RDONLY);
    if (input < 0) return 1;
    pthread_t threads[THREADS];
    for (long id = 0; id < THREADS; id++) pthread_create(&threads[id], NULL, reader, (void *)id);
    for (int id = 0; id < THREADS; id++) pthread_join(threads[id], NULL);
    printf("%016lx\n", (unsigned long)sum);
    return 7;
}
