// Memory from posix_memalign that is filled by a function of the library in two threads at once.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *shared;

static void *work(void *arg) {
    memset(shared, (int)(long)arg, 256);
    return NULL;
}

int main(void) {
    if (posix_memalign((void **)&shared, 64, 256)) return 1;
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", shared[0] < 2);
}
