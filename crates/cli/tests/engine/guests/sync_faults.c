// Synchronous faults arrive with the exact state of the faulting instruction, and a handler that changes it is obeyed.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern char load_at[], load_after[], divide_at[], divide_after[], illegal_at[], illegal_after[], trap_at[], store_at[],
    store_after[], jump_after[];

static volatile int seen;
static char line[256];

static void say(const char *what, int signal, siginfo_t *info, ucontext_t *context, const char *at) {
    const greg_t *regs = context->uc_mcontext.gregs;
    int length = snprintf(line, sizeof line,
                          "%s: signal %d code %d rip %+ld rax %llx rbx %llx r12 %llx r15 %llx trap %lld err %lld zf %d\n", what,
                          signal, info->si_code, (long)(regs[REG_RIP] - (greg_t)at), regs[REG_RAX], regs[REG_RBX],
                          regs[REG_R12], regs[REG_R15], regs[REG_TRAPNO], regs[REG_ERR], (int)(regs[REG_EFL] >> 6 & 1));
    if (write(1, line, length) != length) _exit(9);
    seen++;
}

static void on_segv(int signal, siginfo_t *info, void *raw) {
    ucontext_t *context = raw;
    greg_t *regs = context->uc_mcontext.gregs;
    char *rip = (char *)regs[REG_RIP];
    if (rip == load_at) {
        say("load", signal, info, context, load_at);
        printf("address %lx cr2 %llx\n", (long)info->si_addr, regs[REG_CR2]);
        regs[REG_RAX] = 0x5555;
        regs[REG_RIP] = (greg_t)load_after;
    } else if (rip == store_at) {
        say("store", signal, info, context, store_at);
        regs[REG_RIP] = (greg_t)store_after;
    } else {
        // A jump to nowhere: the instruction pointer is the target, the return address is on the stack.
        say("jump", signal, info, context, (char *)0x1234000);
        printf("address %lx back %d\n", (long)info->si_addr, *(char **)regs[REG_RSP] == jump_after);
        regs[REG_RIP] = *(greg_t *)regs[REG_RSP];
        regs[REG_RSP] += 8;
    }
}

static void on_fpe(int signal, siginfo_t *info, void *raw) {
    ucontext_t *context = raw;
    say("divide", signal, info, context, divide_at);
    printf("address is rip: %d\n", info->si_addr == (void *)divide_at);
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)divide_after;
}

static void on_ill(int signal, siginfo_t *info, void *raw) {
    ucontext_t *context = raw;
    say("illegal", signal, info, context, illegal_at);
    printf("address is rip: %d\n", info->si_addr == (void *)illegal_at);
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)illegal_after;
}

static void on_trap(int signal, siginfo_t *info, void *raw) { say("trap", signal, info, raw, trap_at); }

static void on_bus(int signal, siginfo_t *info, void *raw) {
    (void)raw;
    printf("bus: signal %d code %d offset %lx\n", signal, info->si_code, (long)info->si_addr & 0xfff);
    fflush(stdout);
    _exit(7);
}

static void install(int signal, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(signal, &action, NULL);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    install(SIGSEGV, on_segv);
    install(SIGFPE, on_fpe);
    install(SIGILL, on_ill);
    install(SIGTRAP, on_trap);
    install(SIGBUS, on_bus);

    uint64_t rax = 0x1000, rbx = 0xb;
    asm volatile("mov $0xc12, %%r12\n mov $0xf15, %%r15\n cmp %%rax, %%rax\n"
                 ".globl load_at, load_after\nload_at: mov 0x10(%%rax), %%rax\nload_after: nop"
                 : "+a"(rax), "+b"(rbx)::"r12", "r15", "memory", "cc");
    printf("rax %lx rbx %lx\n", rax, rbx);

    rax = 0x2000;
    asm volatile("mov $0xc13, %%r12\n mov $0xf16, %%r15\n test %%rax, %%rax\n add $1, %%rbx\n"
                 ".globl store_at, store_after\nstore_at: movb $1, 8(%%rax)\nstore_after: add $1, %%rbx"
                 : "+a"(rax), "+b"(rbx)::"r12", "r15", "memory", "cc");
    printf("rax %lx rbx %lx\n", rax, rbx);

    uint64_t rdx = 0, zero = 0;
    rax = 77;
    asm volatile("mov $1, %%r12\n mov $2, %%r15\n xor %%ecx, %%ecx\n"
                 ".globl divide_at, divide_after\ndivide_at: div %%rcx\ndivide_after: nop"
                 : "+a"(rax), "+d"(rdx), "+c"(zero)::"r12", "r15", "cc");
    printf("rax %lu rdx %lu\n", rax, rdx);

    asm volatile("mov $3, %%r12\n mov $4, %%r15\n mov $5, %%eax\n mov $6, %%ebx\n cmp %%r12, %%r15\n"
                 ".globl illegal_at, illegal_after\nillegal_at: ud2\nillegal_after: nop" ::
                     : "rax", "rbx", "r12", "r15", "cc");
    asm volatile("mov $7, %%r12\n mov $8, %%r15\n mov $9, %%eax\n mov $10, %%ebx\n cmp %%r12, %%r12\n"
                 "int3\n.globl trap_at\ntrap_at: nop" ::
                     : "rax", "rbx", "r12", "r15", "cc");
    // The red zone keeps the compiler from calling out of asm safely: skip it.
    asm volatile("sub $256, %%rsp\n mov $11, %%r12\n mov $12, %%r15\n mov $13, %%ebx\n mov $0x1234000, %%eax\n cmp %%r12, %%r12\n"
                 "call *%%rax\n.globl jump_after\njump_after: add $256, %%rsp" ::
                     : "rax", "rbx", "r12", "r15", "cc", "memory");
    printf("%d handled\n", seen);

    // Beyond the end of a file.
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), 100) != 0) return 8;
    volatile char *map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fileno(file), 0);
    printf("inside %d\n", map[99] + map[4095]);
    return map[4096 + 0x123];
}
