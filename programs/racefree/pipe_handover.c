// Values are handed over through the kernel alone: a pipe, an event counter, and the number of a descriptor that is free again.
//
//~ verdict: race-free
//~ topic: system calls
//~ source: the write system call comes after the store and, through the pipe, before the return
//~ | of the read; a number is given away again only after it was closed
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int ends[2];
static int event;
static int number;
static int by_pipe, by_event, by_number;

static void *produce(void *unused) {
    uint64_t one = 1;
    by_pipe = 42;
    if (write(ends[1], "x", 1) != 1) return NULL;
    by_event = 43;
    if (write(event, &one, sizeof one) != sizeof one) return NULL;
    by_number = 44;
    close(number);
    return unused;
}

static void *consume(void *argument) {
    int *seen = argument;
    uint64_t count;
    char byte;
    if (read(ends[0], &byte, 1) != 1) return NULL;
    seen[0] = by_pipe;
    if (read(event, &count, sizeof count) != sizeof count) return NULL;
    seen[1] = by_event;
    for (int got = -1; got != number;) {
        if (got >= 0) close(got);
        sched_yield();
        got = dup(0);
    }
    seen[2] = by_number;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int seen[3] = {0, 0, 0};
    number = dup(0);
    event = eventfd(0, 0);
    if (number < 0 || event < 0 || pipe(ends) != 0) return 2;
    pthread_create(&threads[0], NULL, consume, seen);
    pthread_create(&threads[1], NULL, produce, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d %d %d\n", seen[0], seen[1], seen[2]);
    return 0;
}
