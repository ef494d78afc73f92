// What a program sees of itself: ids, /proc/self, arguments, environment, limits.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;
static pid_t tid_in_thread;
static void *in_thread(void *arg) {
    (void)arg;
    tid_in_thread = gettid();
    printf("thread: pid same %d, can be signalled %d\n", getpid() == *(pid_t *)arg, syscall(SYS_tgkill, getpid(), gettid(), 0) == 0);
    pthread_setname_np(pthread_self(), "a-name");
    char name[16], path[64];
    pthread_getname_np(pthread_self(), name, sizeof name);
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", gettid());
    FILE *comm = fopen(path, "r");
    char text[32] = "";
    if (comm && fgets(text, sizeof text, comm)) text[strcspn(text, "\n")] = 0;
    printf("thread name %s, in proc %s\n", name, text);
    return NULL;
}
static int count_modules(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)info;
    ++*(int *)data;
    return 0;
}

int main(int argc, char **argv) {
    pid_t pid = getpid();
    printf("tid is pid %d, kill 0 works %d, parent other %d\n", gettid() == pid, kill(pid, 0) == 0, getppid() != pid);
    char path[4096] = {0}, real[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    printf("exe %zd same %d\n", length > 0 ? (ssize_t)1 : length, realpath(argv[0], real) && !strcmp(real, path));
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    char other[4096] = {0};
    printf("by number %d\n", readlink(path, other, sizeof other - 1) == length && !strcmp(other, real));
    int exe = open("/proc/self/exe", O_RDONLY);
    char magic[4];
    printf("is ELF %d\n", read(exe, magic, 4) == 4 && !memcmp(magic, ELFMAG, 4));

    char cmdline[4096];
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t got = fread(cmdline, 1, sizeof cmdline, file), at = 0;
    int arguments = 0;
    for (; at < got; at += strlen(cmdline + at) + 1)
        if (arguments < argc && strcmp(cmdline + at, argv[arguments++])) printf("argument differs\n");
    printf("arguments %d %d\n", argc, arguments);
    file = fopen("/proc/self/comm", "r");
    char text[256];
    if (fgets(text, sizeof text, file)) printf("comm %s", text);

    // every line of maps is sane, and shows the program, its stack and this function
    file = fopen("/proc/self/maps", "r");
    unsigned long start, end, last = 0;
    int has_text = 0, has_stack = 0, has_libc = 0, in_order = 1, local;
    while (fgets(text, sizeof text, file)) {
        char prot[5];
        if (sscanf(text, "%lx-%lx %4s", &start, &end, prot) != 3) printf("bad line %s", text);
        in_order &= start >= last && end > start;
        last = end;
        has_text |= start <= (unsigned long)main && (unsigned long)main < end && prot[2] == 'x' && strstr(text, "self_view") != NULL;
        has_stack |= start <= (unsigned long)&local && (unsigned long)&local < end && prot[1] == 'w' && strstr(text, "[stack]") != NULL;
        has_libc |= strstr(text, "libc.so.6") != NULL;
    }
    printf("maps: text %d stack %d libc %d in order %d\n", has_text, has_stack, has_libc, in_order);

    size_t bytes = 0;
    int variables = 0;
    for (char **entry = environ; *entry; entry++) bytes += strlen(*entry) + 1, variables++;
    printf("environment %d variables, %zu bytes, BIG %zu\n", variables, bytes, getenv("BIG") ? strlen(getenv("BIG")) : 0);
    file = fopen("/proc/self/environ", "r");
    size_t shown = 0;
    while ((got = fread(cmdline, 1, sizeof cmdline, file)) > 0) shown += got;
    printf("environ in proc: same size %d\n", shown == bytes);

    printf("auxv: page %lu, execfn %d, entry %d, secure %lu, random %d\n", getauxval(AT_PAGESZ),
           !strcmp((char *)getauxval(AT_EXECFN), argv[0]), getauxval(AT_ENTRY) != 0, getauxval(AT_SECURE), getauxval(AT_RANDOM) != 0);
    printf("uid %d gid %d\n", getauxval(AT_UID) == getuid(), getauxval(AT_EGID) == getegid());
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    printf("files limit %ld\n", (long)limit.rlim_cur);
    struct utsname name;
    uname(&name);
    printf("%s %s\n", name.sysname, name.machine);
    printf("processors %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    prctl(PR_SET_NAME, "renamed", 0, 0, 0);
    char renamed[16];
    prctl(PR_GET_NAME, renamed, 0, 0, 0);
    printf("renamed %s\n", renamed);

    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, &pid);
    pthread_join(thread, NULL);
    printf("tids differ %d\n", tid_in_thread != pid);

    int before = 0, during = 0, after = 0;
    dl_iterate_phdr(count_modules, &before);
    for (int i = 0; i < 3; i++) {
        during = after = 0;
        void *library = dlopen("libsqlite3.so.0", RTLD_NOW);
        if (!library) return printf("%s\n", dlerror()), 1;
        const char *(*version)(void) = (const char *(*)(void))dlsym(library, "sqlite3_libversion");
        printf("sqlite %s", version());
        dl_iterate_phdr(count_modules, &during);
        dlclose(library);
        dl_iterate_phdr(count_modules, &after);
        printf(" loaded %d unloaded %d\n", during > before, after == before);
    }
    return 0;
}
