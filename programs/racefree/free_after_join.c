// The buffer of effects/use_after_free.c freed once its reader is joined.
//
//~ verdict: race-free
//~ topic: use after free, create and join
//~ source: the reader ends before its join, which comes before the free
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER_BYTES = 1 << 20 };

static int seen;

static void *reader(void *buffer) {
    seen = ((char *)buffer)[BUFFER_BYTES / 2];
    return NULL;
}

static void *owner(void *unused) {
    pthread_t thread;
    char *buffer = malloc(BUFFER_BYTES);
    buffer[BUFFER_BYTES / 2] = 5;
    pthread_create(&thread, NULL, reader, buffer);
    pthread_join(thread, NULL);
    free(buffer);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, owner, NULL);
    pthread_join(thread, NULL);
    printf("%d\n", seen);
    return 0;
}
