// One thread frees a buffer that another one still reads.
//
// The buffer is large, so that the allocator unmaps it and the late read is felt.
//
//~ verdict: racy
//~ topic: use after free, memory error
//~ twin: racefree/free_after_join.c
//~ race a: the buffer: its last read and its free
//~   real: yes
//~   observed: always
//~   class: spec-violated crash|memory-error
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: free before the read: the page is gone
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER_BYTES = 1 << 20 };

static char *volatile buffer;
static int seen;

static void *reader(void *unused) {
    char *mine = buffer;
    seen = mine[BUFFER_BYTES / 2];      //~ RACE(a) read
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 200000; i++) {
    }
}

static void *owner(void *unused) {
    char *mine = buffer;
    other_work();
    free(mine);                         //~ RACE(a) write
    return unused;
}

int main(void) {
    pthread_t threads[2];
    buffer = malloc(BUFFER_BYTES);
    buffer[BUFFER_BYTES / 2] = 5;
    pthread_create(&threads[0], NULL, reader, NULL);
    pthread_create(&threads[1], NULL, owner, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", seen);
    return 0;
}
