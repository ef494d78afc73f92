/* One race with ten thousand instances. */
#include <pthread.h>
#include <stdio.h>
static volatile long counter;
static void *add(void *unused) { for (int i = 0; i < 10000; i++) counter++; return unused; }
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", counter > 0);
    return 0;
}
