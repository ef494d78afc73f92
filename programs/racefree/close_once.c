// The closing of papers/portend_fig14a.c with pthread_once.
//
//~ verdict: race-free
//~ topic: once, double free
//~ source: pthread_once runs the function once and orders it before every return
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { TABLE_BYTES = 1 << 20 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int closed;
static char *table;

static void do_close(void) {
    closed++;
    free(table);
}

static void *close_trace(void *seen) {
    pthread_once(&once, do_close);
    *(int *)seen = closed;
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    int seen[3];
    table = malloc(TABLE_BYTES);
    table[0] = 1;
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, close_trace, &seen[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    printf("closed %d %d %d\n", seen[0], seen[1], seen[2]);
    return 0;
}
