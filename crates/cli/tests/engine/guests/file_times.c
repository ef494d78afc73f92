// Times of files: what is old is as it is; what the program changes is not older than its own start; reading changes nothing.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(void) {
    time_t start = time(NULL);
    struct stat before, after;
    struct statx extended;
    char byte;
    int fd = open("old", O_RDONLY);
    fstat(fd, &before);
    if (read(fd, &byte, 1) != 1) return 1;
    fstat(fd, &after);
    printf("old: modified %ld.%09ld, size %ld\n", (long)before.st_mtim.tv_sec, before.st_mtim.tv_nsec, (long)before.st_size);
    printf("same after reading %d\n", before.st_mtim.tv_sec == after.st_mtim.tv_sec);
    int result = statx(AT_FDCWD, "old", 0, STATX_BASIC_STATS | STATX_BTIME, &extended);
    printf("statx %d, %lld, size %lld\n", result, extended.stx_mtime.tv_sec, extended.stx_size);
    fd = open("new", O_CREAT | O_WRONLY, 0600);
    if (write(fd, "x", 1) != 1) return 1;
    stat("new", &after);
    printf("new: not older than the start %d, not in the future %d, newer than old %d\n", after.st_mtime >= start - 1,
           after.st_mtime <= time(NULL) + 1, after.st_mtime > before.st_mtime);
    struct timespec times[2] = {{1000000, 5}, {2000000, 7}};
    futimens(fd, times);
    fstat(fd, &after);
    printf("set: %ld.%09ld\n", (long)after.st_mtim.tv_sec, after.st_mtim.tv_nsec);
    printf("missing: %d\n", stat("missing", &after));
    return 0;
}
