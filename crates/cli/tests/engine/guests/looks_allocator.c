// A program with an allocator of its own, whose inside is nobody's business, and memory that is aligned by the library.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char room[1 << 22];
static size_t used;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void *malloc(size_t size) {
    pthread_mutex_lock(&mutex);
    void *block = room + used;
    used += (size + 31) / 16 * 16;
    pthread_mutex_unlock(&mutex);
    return block;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
void *realloc(void *block, size_t size) {
    void *other = malloc(size);
    if (block) memcpy(other, block, size);
    return other;
}

static long *shared;

static void *work(void *unused) {
    (void)unused;
    for (int i = 0; i < 100; i++) {
        long *own = malloc(sizeof *own);
        *own = i;
        *shared += *own;
        free(own);
    }
    return NULL;
}

int main(void) {
    shared = calloc(1, sizeof *shared);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", *shared > 0);
}
