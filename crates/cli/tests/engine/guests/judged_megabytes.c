/* A program with a race that writes 32 megabytes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int shared;
static char block[1 << 20];
static void *set(void *unused) { shared = 1; return unused; }
int main(void) {
    pthread_t thread;
    memset(block, 'x', sizeof block);
    pthread_create(&thread, NULL, set, NULL);
    int seen = shared;
    for (int i = 0; i < 32; i++) write(1, block, sizeof block);
    pthread_join(thread, NULL);
    dprintf(1, "seen %d\n", seen);
    return 0;
}
