/* A program whose usual order crashes. */
#include <pthread.h>
#include <stdio.h>
static int value;
static int *volatile place = &value;
static void *clear(void *unused) { place = NULL; return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, clear, NULL);
    for (volatile int i = 0; i < 1000000; i++) { }
    *place = 1;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
