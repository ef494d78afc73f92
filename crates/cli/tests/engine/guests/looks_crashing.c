// A loop that another thread reads from runs off the end of its memory.
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

enum { BYTES = 16 << 12 };
static long *memory;

static void *fill(void *unused) {
    (void)unused;
    for (long i = 0;; i++) memory[i] = i;
    return NULL;
}

static void *look(void *unused) {
    (void)unused;
    return (void *)memory[BYTES / 8 - 1];
}

int main(void) {
    char *mapped = mmap(NULL, BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(mapped + BYTES, 4096, PROT_NONE);
    memory = (long *)mapped;
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, look, NULL);
    pthread_create(&threads[1], NULL, fill, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("not reached");
}
