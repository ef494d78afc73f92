/* Calls through words in memory that cannot be written, until it can: each way in which such a word gets another value. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, CALLS = 1000 };

typedef int (*function)(void);

static int one(void) { return 1; }
static int two(void) { return 2; }

/* A page of its own. */
__attribute__((aligned(PAGE))) static union {
    volatile function word;
    char page[PAGE];
} table = {.word = one};

/* As a linkage table does it: `call *table(%rip)`. */
__attribute__((noinline)) static int call(void) {
    int result;
    __asm__ volatile("sub $128, %%rsp\n\tcall *%1\n\tadd $128, %%rsp"
                     : "=a"(result)
                     : "m"(table.word)
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    return result;
}

static int calls(void) {
    int sum = 0;
    for (int i = 0; i < CALLS; i++) sum += call();
    return sum;
}

static void protect(int prot) {
    if (mprotect(&table, PAGE, prot) != 0) perror("mprotect");
}

int main(void) {
    printf("at first: %d\n", calls());
    protect(PROT_READ);
    printf("read-only: %d\n", calls());
    protect(PROT_READ | PROT_WRITE);
    table.word = two;
    printf("written: %d\n", calls());
    protect(PROT_READ);
    printf("read-only again: %d\n", calls());

    fflush(stdout);
    if (fork() == 0) {
        protect(PROT_READ | PROT_WRITE);
        table.word = one;
        protect(PROT_READ);
        printf("in a child: %d\n", calls());
        return 0;
    }
    wait(NULL);
    printf("in its parent: %d\n", calls());

    char *fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    function last = one;
    memcpy(fresh, &last, sizeof last);
    mprotect(fresh, PAGE, PROT_READ);
    if (mremap(fresh, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, &table) != (void *)&table) perror("mremap");
    printf("mapped over: %d\n", calls());
    return 0;
}
