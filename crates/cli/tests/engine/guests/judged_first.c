/* Sixteen writes come before the read. That the last of them comes after it changes nothing; that all of them do, does. */
#include <pthread.h>
#include <stdio.h>
static volatile int items;
static void *put(void *unused) { for (int i = 1; i <= 16; i++) items = i; return unused; }
static void *look(void *unused) { puts(items > 0 ? "some" : "none"); return unused; }
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, put, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
