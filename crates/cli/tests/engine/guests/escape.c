// Does all the harm it can: to the folder it is started in, to /tmp, to the network, to its parent. Prints what it then
// sees, which must be as if all of it had happened.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *what, int result) {
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static void *vandal(void *arg) {
    show("unlink", unlink("victim"));
    show("unlink again", unlink("victim"));
    show("rename", rename("folder/inner", "folder/gone"));
    show("truncate", truncate("grow", 3));
    show("chmod", chmod("grow", 0));
    show("symlink", symlink("/etc/passwd", "link"));
    int fd = open("/tmp/verdict-escape-test", O_CREAT | O_RDWR | O_TRUNC, 0600);
    show("create in /tmp", fd);
    show("write", write(fd, "mine", 4));
    show("ftruncate", ftruncate(fd, 8192));
    char *map = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memcpy(map + 100, "mapped", 6);
    show("msync", msync(map, 8192, MS_SYNC));
    char bytes[7] = {0};
    pread(fd, bytes, 6, 100);
    printf("read back: %s\n", bytes);
    int mapped = open("mapped", O_RDWR);
    char *real = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mapped, 0);
    real[0] = 'X';
    show("munmap", munmap(real, 4096));
    pread(mapped, bytes, 6, 0);
    printf("changed through a mapping: %.6s\n", bytes);
    return arg;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, vandal, 0);
    pthread_join(thread, 0);

    int net = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
    inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
    show("connect", connect(net, (void *)&address, sizeof address));
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    show("sendto", sendto(udp, "x", 1, 0, (void *)&address, sizeof address));
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path, "socket");
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    show("bind", bind(local, (void *)&name, sizeof name));

    show("kill parent", kill(getppid(), SIGKILL));
    show("kill init", kill(1, SIGKILL));
    int child = fork();
    if (child == 0) {
        unlink("grow");
        _exit(0);
    }
    int status = 0;
    show("wait", waitpid(child, &status, 0));
    printf("child: %d\n", WEXITSTATUS(status));
    printf("system: %d\n", WEXITSTATUS(system("rm -rf folder grow mapped")));
    struct stat info;
    show("grow is still there", stat("grow", &info));
    printf("of size %ld\n", (long)info.st_size);
    return 0;
}
