// Corner cases of the address space.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { PAGE = 4096 };
static sigjmp_buf escape;
static volatile long fault_code;
static void on_segv(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    fault_code = info->si_code;
    siglongjmp(escape, 1);
}
static const char *can_read(volatile char *at) {
    if (sigsetjmp(escape, 1)) return fault_code == SEGV_MAPERR ? "unmapped" : "protected";
    (void)*at;
    return "ok";
}
static const char *can_write(volatile char *at) {
    if (sigsetjmp(escape, 1)) return fault_code == SEGV_MAPERR ? "unmapped" : "protected";
    *at = *at;
    return "ok";
}
static char *map(size_t pages, int prot) { return mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void say(const char *what, long result) { printf("%s: %s\n", what, result < 0 ? strerror(errno) : "ok"); }

static long __attribute__((noinline)) deep(long n) {
    volatile char frame[64];
    frame[0] = (char)n;
    return n ? deep(n - 1) + frame[0] * 0 + 1 : 0;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    setvbuf(stdout, NULL, _IONBF, 0);

    char *a = map(5, PROT_READ | PROT_WRITE);
    memset(a, 'a', 5 * PAGE);
    munmap(a + PAGE, PAGE);
    mprotect(a + 2 * PAGE, PAGE, PROT_READ);
    mprotect(a + 3 * PAGE, PAGE, PROT_NONE);
    for (int i = 0; i < 5; i++) printf("page %d: read %s, write %s\n", i, can_read(a + i * PAGE), can_write(a + i * PAGE));
    mprotect(a + 2 * PAGE, 3 * PAGE, PROT_READ | PROT_WRITE);
    printf("again: %s %c\n", can_write(a + 3 * PAGE), a[3 * PAGE]);
    say("mprotect over a hole", mprotect(a, 5 * PAGE, PROT_READ));
    say("mprotect misaligned", mprotect(a + 1, PAGE, PROT_READ));
    say("munmap of a hole", munmap(a + PAGE, PAGE));
    say("munmap of nothing", munmap(a, 0));
    say("mmap of nothing", (long)mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    say("mmap without kind", (long)mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0));
    say("mmap of a bad descriptor", (long)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 999, 0));
    say("noreplace", (long)mmap(a + 2 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
    char *fixed = mmap(a + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    printf("fixed at its place %d, zero %d\n", fixed == a + PAGE, fixed[0]);
    char *hint = (char *)0x7654320000;
    printf("hint honoured %d\n", mmap(hint, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == hint);
    char *low = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    printf("32 bit %d\n", (uintptr_t)low < 1ul << 32);

    // mremap: grow in place or move, shrink, fixed
    char *b = map(2, PROT_READ | PROT_WRITE);
    strcpy(b, "kept");
    char *grown = mremap(b, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    printf("grown: %s, new part zero %d\n", grown, grown[63 * PAGE]);
    char *shrunk = mremap(grown, 64 * PAGE, PAGE, 0);
    printf("shrunk in place %d, rest %s\n", shrunk == grown, can_read(grown + 2 * PAGE));
    char *goal = map(4, PROT_NONE);
    char *moved = mremap(shrunk, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, goal);
    printf("moved there %d: %s, old %s\n", moved == goal, moved, can_read(shrunk));
    say("mremap of nothing mapped", (long)mremap(shrunk, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    char *stuck = map(3, PROT_READ);
    say("cannot grow in place", (long)mremap(stuck, PAGE, 2 * PAGE, 0));

    // files: shared, private, offsets, truncation
    FILE *file = tmpfile();
    int fd = fileno(file);
    if (ftruncate(fd, 3 * PAGE) || pwrite(fd, "second page", 11, PAGE) != 11) return 1;
    char *shared = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, PAGE);
    strcpy(shared, "through the map");
    char text[32] = {0};
    ssize_t seen = pread(fd, text, 15, 0);
    printf("file sees %zd %s\n", seen, text);
    private[0] = 'S';
    printf("private %s, shared %s\n", private, shared + PAGE);
    msync(shared, 3 * PAGE, MS_SYNC);
    say("offset misaligned", (long)mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 100));
    int memory = memfd_create("m", 0);
    if (ftruncate(memory, PAGE)) return 1;
    char *one = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    char *two = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, memory, 0);
    strcpy(one, "twice");
    printf("two views: %s\n", two);
    int id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);
    char *segment = shmat(id, NULL, 0);
    strcpy(segment, "System V");
    char *again = shmat(id, NULL, SHM_RDONLY);
    printf("%s, read only %s\n", again, can_write(again));
    shmctl(id, IPC_RMID, NULL);
    int detached = shmdt(segment);
    printf("detached %d %s\n", detached, can_read(segment));

    // advice
    mprotect(a, PAGE, PROT_READ | PROT_WRITE);
    strcpy(a, "gone after DONTNEED");
    madvise(a, PAGE, MADV_DONTNEED);
    printf("advice: %d\n", a[0]);
    unsigned char resident[2];
    say("mincore", mincore(a, 2 * PAGE, resident));

    // system calls check their buffers
    int fds[2];
    char *volatile nowhere = (char *)8;
    if (pipe(fds)) return 1;
    mprotect(a + 2 * PAGE, PAGE, PROT_NONE);
    say("write from a protected page", write(fds[1], a + 2 * PAGE, 10));
    mprotect(a + 2 * PAGE, PAGE, PROT_READ);
    if (write(fds[1], "0123456789", 10) != 10) return 1;
    say("read into a read-only page", read(fds[0], a + 2 * PAGE, 10));
    say("read to nowhere", read(fds[0], nowhere, 10));
    say("open of no string", open(nowhere, O_RDONLY));

    // the heap by brk
    char *start = sbrk(0);
    char *heap = sbrk(1 << 20);
    printf("brk grows %d, write %s\n", heap == start, can_write(heap + (1 << 20) - 1));
    heap[100] = 1;
    sbrk(-(1 << 20));
    printf("brk shrinks: %d %s\n", (char *)sbrk(0) == start, can_read(heap + (1 << 20) - 1));

    // big ones
    char *huge = mmap(NULL, 6ul << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long at = 0; at < 6l << 30; at += 1l << 30) huge[at + 5] = (char)at + 1;
    long sum = 0;
    for (long at = 0; at < 6l << 30; at += 1l << 30) sum += huge[at + 5];
    printf("6 GiB: %ld\n", sum);
    munmap(huge, 6ul << 30);
    say("too big", (long)mmap(NULL, 1ul << 48, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    void *block = malloc(300 << 20);
    memset(block, 1, 10 << 20);
    free(block);

    printf("deep recursion: %ld\n", deep(50000));
    volatile char large[4 << 20];
    for (size_t i = 0; i < sizeof large; i += PAGE) large[i] = 1;
    long total = 0;
    for (size_t i = 0; i < sizeof large; i += PAGE) total += large[i];
    printf("large stack array: %ld\n", total);
    return 0;
}
