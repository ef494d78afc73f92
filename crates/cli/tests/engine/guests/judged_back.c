/* What is written last is what was there first: a reader before all writes sees the same, one before the last does not. */
#include <pthread.h>
#include <unistd.h>
static volatile char letter = 'z';
static void *put(void *unused) { for (char next = 'a'; next <= 'z'; next++) letter = next; return unused; }
static void *look(void *unused) { write(1, (const void *)&letter, 1); return unused; }
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, put, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
