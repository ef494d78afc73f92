// Code that is made or changed at run time.
#define _GNU_SOURCE
#include <signal.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int (*function)(void);
enum { PAGE = 4096 };
static sigjmp_buf escape;
static void on_segv(int signal) { siglongjmp(escape, signal); }

// mov eax, value; ret
static void put(unsigned char *at, int value) {
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}
static const char *run(function f) {
    static char texts[4][32];
    static int next;
    char *text = texts[next++ % 4];
    int signal = sigsetjmp(escape, 1);
    if (signal) return signal == SIGSEGV ? "SIGSEGV" : "other signal";
    snprintf(text, 32, "%d", f());
    return text;
}
static unsigned char *map(int prot) { return mmap(NULL, 2 * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static int one(void) { return 1; }
static int two(void) { return 2; }

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGSEGV, on_segv);
    // writable and executable at once, rewritten many times
    unsigned char *code = map(PROT_READ | PROT_WRITE | PROT_EXEC);
    long sum = 0;
    for (int i = 0; i < 1000; i++) {
        put(code + i % 7 * 16, i);
        sum += ((function)(code + i % 7 * 16))();
    }
    printf("rewritten: %ld\n", sum);

    // one write that changes only the immediate, through another function's pointer
    put(code, 5);
    printf("%s", run((function)code));
    code[1] = 6;
    printf(" then %s\n", run((function)code));

    // toggled between writable and executable
    unsigned char *toggled = map(PROT_READ | PROT_WRITE);
    printf("not executable: %s\n", run((function)toggled));
    for (int i = 0; i < 3; i++) {
        mprotect(toggled, PAGE, PROT_READ | PROT_WRITE);
        put(toggled, 100 + i);
        mprotect(toggled, PAGE, PROT_READ | PROT_EXEC);
        printf("toggled: %s\n", run((function)toggled));
    }
    if (sigsetjmp(escape, 1) == 0) {
        put(toggled, 1);
        printf("could write\n");
    } else {
        printf("cannot write what is executable only: %s\n", run((function)toggled));
    }
    mprotect(toggled, PAGE, PROT_READ);
    printf("no longer executable: %s\n", run((function)toggled));

    // replaced by a new mapping, unmapped
    mprotect(toggled, PAGE, PROT_READ | PROT_EXEC);
    printf("before: %s\n", run((function)toggled));
    unsigned char *again = mmap(toggled, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    put(again, 222);
    printf("after MAP_FIXED: %s\n", run((function)toggled));
    munmap(toggled, PAGE);
    printf("after munmap: %s\n", run((function)toggled));

    // two views of the same memory: written through one, executed through the other
    int memory = memfd_create("code", 0);
    if (ftruncate(memory, PAGE)) return 1;
    unsigned char *writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    unsigned char *executable = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0);
    put(writable, 31);
    printf("first view: %s\n", run((function)executable));

    // a system call writes the code
    int fds[2];
    unsigned char image[6];
    if (pipe(fds)) return 1;
    put(image, 77);
    if (write(fds[1], image, 6) != 6 || read(fds[0], code, 6) != 6) return 1;
    printf("read() wrote: %s\n", run((function)code));

    // code that changes the instruction right after it: mov byte [rip+1], 9; mov eax, 0; ret
    static const unsigned char self[] = {0xc6, 0x05, 0x01, 0x00, 0x00, 0x00, 9, 0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(code + 256, self, sizeof self);
    printf("changes its next instruction: %s\n", run((function)(code + 256)));
    printf("and again: %s\n", run((function)(code + 256)));

    // an instruction across two pages; the second one changes
    put(code + PAGE - 3, 0x01020304);
    printf("across pages: %s", run((function)(code + PAGE - 3)));
    code[PAGE] = 7;
    printf(" then %s\n", run((function)(code + PAGE - 3)));

    // an ordinary function of the program is patched
    unsigned char *text = (unsigned char *)((uintptr_t)one & -(uintptr_t)PAGE);
    printf("before patch %s, %s", run(one), run(two));
    mprotect(text, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    put((unsigned char *)one, 11);
    mprotect(text, 2 * PAGE, PROT_READ | PROT_EXEC);
    printf(", after %s, %s\n", run(one), run(two));
    return 0;
}
