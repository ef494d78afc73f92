// Threads that use gs for something of their own, after they have raced elsewhere.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static long early, raced, sums[2];

static void *counts(void *arg) {
    early++;
    long own[8] = {0};
    syscall(SYS_arch_prctl, ARCH_SET_GS, own);
    for (int i = 0; i < 1000; i++) {
        __asm__ volatile("incq %%gs:16" : : : "cc", "memory");
        raced++;
    }
    sums[(long)arg] = own[2];
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, counts, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    unsigned long base = 1;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    printf("%ld %ld %lu\n", sums[0], sums[1], base);
}
