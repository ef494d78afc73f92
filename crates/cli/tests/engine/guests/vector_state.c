// x87, SSE, AVX and control state survive thread switches and signal handlers; a handler can change them in the frame.
#define _GNU_SOURCE
#include <fenv.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
__attribute__((target("avx2"))) static void on_usr1(int signal) {
    (void)signal;
    // Trample on everything.
    __m256i noise = _mm256_set1_epi8((char)0xee);
    asm volatile("vmovdqa %0, %%ymm0\n vmovdqa %0, %%ymm7\n vmovdqa %0, %%ymm15\n fninit\n fldpi\n fldpi" ::"m"(noise)
                 : "xmm0", "xmm7", "xmm15");
    fesetround(FE_UPWARD);
    handled++;
}
static void on_usr2(int signal, siginfo_t *info, void *raw) {
    (void)signal, (void)info;
    ucontext_t *context = raw;
    struct _libc_fpstate *fp = context->uc_mcontext.fpregs;
    fp->_xmm[3].element[0] = 0x12345678;
}

__attribute__((target("avx2"))) static int holds_state(int seed, int rounds, void (*disturb)(void)) {
    uint8_t in[32], out[32], upper[32];
    for (int i = 0; i < 32; i++) in[i] = (uint8_t)(seed * 17 + i);
    int bad = 0;
    for (int i = 0; i < rounds; i++) {
        long double value = seed + i * 0.1L, back;
        asm volatile("vmovdqu %3, %%ymm0\n vmovdqu %3, %%ymm15\n fldt %4\n call *%5\n fstpt %2\n vmovdqu %%ymm0, %0\n vmovdqu %%ymm15, %1"
                     : "=m"(out), "=m"(upper), "=m"(back)
                     : "m"(in), "m"(value), "b"(disturb)
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st", "cc");
        bad += memcmp(in, out, 32) != 0 || memcmp(in, upper, 32) != 0 || value != back;
    }
    return bad;
}

// System calls by hand: library functions may use vector registers.
static void yield_raw(void) { asm volatile("syscall" : : "a"(24) : "rcx", "r11", "memory"); }
static void spin(void) {
    for (volatile int i = 0; i < 3000; i++) {}
}
static void raise_raw(void) {
    long tid;
    asm volatile("syscall" : "=a"(tid) : "a"(186) : "rcx", "r11", "memory");
    long result;
    asm volatile("syscall" : "=a"(result) : "a"(200), "D"(tid), "S"((long)SIGUSR1) : "rcx", "r11", "memory");
}

static void *thread_state(void *arg) {
    int seed = (int)(long)arg;
    static const int modes[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    fesetround(modes[seed % 4]);
    _MM_SET_FLUSH_ZERO_MODE(seed % 2 ? _MM_FLUSH_ZERO_ON : _MM_FLUSH_ZERO_OFF);
    long bad = holds_state(seed, 300, yield_raw) + holds_state(seed, 300, spin);
    bad += fegetround() != modes[seed % 4];
    bad += _MM_GET_FLUSH_ZERO_MODE() != (seed % 2 ? _MM_FLUSH_ZERO_ON : _MM_FLUSH_ZERO_OFF);
    return (void *)bad;
}

// Whether the upper halves of the vector registers are in use, as XSAVE tells it: code that never touches them runs a
// hundred times slower on some processors where they are.
__attribute__((target("xsave,avx"))) static int upper_in_use(void (*disturb)(void)) {
    static uint8_t area[4096] __attribute__((aligned(64)));
    memset(area, 0, sizeof area);
    asm volatile("vzeroupper\n movaps %%xmm0, %%xmm15\n addps %%xmm15, %%xmm15\n call *%0\n addps %%xmm15, %%xmm15"
                 :
                 : "b"(disturb)
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "xmm15", "cc");
    asm volatile("xsave %0" : "+m"(area) : "a"(7), "d"(0));
    return area[512] >> 2 & 1;
}
static void nothing(void) {}

int main(void) {
    printf("upper halves in use: %d %d %d\n", upper_in_use(nothing), upper_in_use(yield_raw), upper_in_use(spin));
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread_state, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        printf("thread %d: %ld lost\n", i, (long)bad);
    }
    struct sigaction action = {.sa_handler = on_usr1};
    sigaction(SIGUSR1, &action, NULL);
    printf("signals: %d lost", holds_state(3, 100, raise_raw));
    printf(" in %d, rounding kept %d\n", handled, fegetround() == FE_TONEAREST);

    struct sigaction change = {.sa_sigaction = on_usr2, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR2, &change, NULL);
    uint32_t low = 0;
    long pid = getpid();
    asm volatile("pxor %%xmm3, %%xmm3\n syscall\n movd %%xmm3, %0"
                 : "=r"(low), "+D"(pid)
                 : "a"(62), "S"((long)SIGUSR2)
                 : "rcx", "r11", "xmm3", "memory");
    printf("changed in the frame: %x\n", low);

    // exceptions of the x87 and of SSE
    feclearexcept(FE_ALL_EXCEPT);
    volatile double zero = 0, one = 1;
    volatile double result = one / zero;
    printf("inf %d, flag %d\n", result > 1e300, fetestexcept(FE_DIVBYZERO) != 0);
    volatile long double longzero = 0;
    volatile long double longresult = 1.0L / longzero;
    printf("long inf %d\n", longresult > 1e300L);
    return 0;
}
