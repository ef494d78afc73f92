// Has the processor check accesses for their alignment, after a race, and makes one that is refused.
#include <pthread.h>

static long raced;
static char bytes[64];

static void *checks(void *unused) {
    (void)unused;
    raced++;
    __asm__ volatile("pushfq; orl $0x40000, (%%rsp); popfq; movl $1, %0" : "=m"(*(int *)(bytes + 1)) : : "cc", "memory");
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, checks, NULL);
    raced++;
    pthread_join(thread, NULL);
}
