/* A small block is freed while another thread may still read it: nothing crashes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int *volatile block;
static int seen;
static void *owner(void *unused) {
    int *mine = block;
    for (volatile int i = 0; i < 200000; i++) { }
    free(mine);
    return unused;
}
int main(void) {
    pthread_t thread;
    block = calloc(16, sizeof *block);
    pthread_create(&thread, NULL, owner, NULL);
    int *mine = block;
    seen = mine[8];
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
