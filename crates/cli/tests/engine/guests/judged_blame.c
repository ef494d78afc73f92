/* A program that crashes as it is run. One of its races hands out the null pointer; the other one has nothing to do with it. */
#include <pthread.h>
#include <stdio.h>
static const char *volatile name = "audit";
static volatile int counted;
static volatile int total;
static void *close_books(void *unused) {
    counted = 1;
    name = NULL;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, close_books, NULL);
    for (volatile int i = 0; i < 1000000; i++) { }
    for (int i = 0; i < 3; i++) {
        total += counted;
        total += name[0];
    }
    pthread_join(thread, NULL);
    printf("%d\n", total > 0);
    return 0;
}
