// Eight gigabytes of address space of which four threads touch a word here and there, each in a quarter of its own; two of
// them meet in one word with nothing that orders them.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include "../native_peak.h"

enum { THREADS = 4 };
static const uint64_t BYTES = 8ull << 30, STEP = 1 << 20;
static char *memory;

// A word somewhere in a stretch, another one in each: what is touched has no pattern that a table could be made for.
static uint64_t *word(uint64_t stretch) {
    uint64_t mixed = stretch * 0x9e3779b97f4a7c15;
    return (uint64_t *)(memory + stretch * STEP + (mixed >> 32) % STEP / 16 * 16);
}

static void *work(void *argument) {
    uint64_t me = (uint64_t)argument, each = BYTES / STEP / THREADS, sum = 0;
    for (uint64_t i = me * each; i < (me + 1) * each; i++) *word(i) = i;
    for (uint64_t i = me * each; i < (me + 1) * each; i++) sum += *word(i);
    uint64_t *shared = word(3 * each + each / 2) + 1;
    if (me == 1) *shared = sum; //~ RACE(far)
    if (me == 3) *shared += sum; //~ RACE(far)
    return (void *)sum;
}

int main(void) {
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return puts("no memory"), 1;
    madvise(memory, BYTES, MADV_NOHUGEPAGE);
    pthread_t threads[THREADS];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *part;
        pthread_join(threads[i], &part);
        sum += (uint64_t)part;
    }
    printf("%d\n", sum > 0);
    tell_peak();
    return 0;
}
