// The library and system calls of effects/memcpy.c, strcpy.c, printf_argument.c and the two system
// calls, under a mutex.
//
//~ verdict: race-free
//~ topic: library calls, system calls, mutex
//~ source: the buffer is only accessed, by whatever call, under the mutex or after the joins
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static char buffer[64];
static char copies[2][64];

static void *writer(void *text) {
    char received[64];
    pthread_mutex_lock(&lock);
    strcpy(buffer, text);
    if (write(ends[1], buffer, 4) != 4) buffer[0] = '?';
    if (read(ends[0], received, 4) != 4) buffer[0] = '?';
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *reader(void *copy) {
    pthread_mutex_lock(&lock);
    memcpy(copy, buffer, strlen(buffer) + 1);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    if (pipe(ends) != 0) return 2;
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[2 * i], NULL, writer, "text");
        pthread_create(&threads[2 * i + 1], NULL, reader, copies[i]);
    }
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("[%5s]\n", buffer);
    return 0;
}
