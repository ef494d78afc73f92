// A handler on an alternate stack survives the overflow of the ordinary one, and leaves with siglongjmp; again and again.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static __thread sigjmp_buf escape;
static __thread char *alternate;
static __thread int on_alternate;

static void on_segv(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    char here;
    on_alternate = &here >= alternate && &here < alternate + 65536;
    stack_t now;
    sigaltstack(NULL, &now);
    on_alternate += now.ss_flags == SS_ONSTACK ? 10 : 0;
    siglongjmp(escape, 1);
}

static int __attribute__((noinline)) deeper(volatile int *depth) {
    volatile char frame[4096];
    frame[0] = (char)*depth;
    if (++*depth == 0) return 0;
    return deeper(depth) + frame[0];
}

static void *overflow(void *name) {
    alternate = malloc(65536);
    stack_t stack = {.ss_sp = alternate, .ss_size = 65536};
    sigaltstack(&stack, NULL);
    for (volatile int round = 0; round < 3; round++) {
        volatile int depth = 0;
        if (sigsetjmp(escape, 1) == 0) deeper(&depth);
        stack_t after;
        sigaltstack(NULL, &after);
        printf("%s round %d: deep %d, on the alternate stack %d, afterwards flags %d\n", (char *)name, round, depth > 50, on_alternate,
               after.ss_flags);
    }
    return NULL;
}

int main(void) {
    struct rlimit limit = {1 << 20, 8 << 20};
    setrlimit(RLIMIT_STACK, &limit);
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 1 << 20);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, &attr, overflow, i ? "second" : "first");
        pthread_join(thread, NULL);
    }
    overflow("main");
    stack_t bad = {.ss_sp = alternate, .ss_size = 100};
    printf("too small: %d\n", sigaltstack(&bad, NULL));
    return 0;
}
