// Data through pipes, sockets and eventfds between threads, more than their buffers hold; poll, select and epoll.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { TOTAL = 1 << 20 };
static uint64_t checksum(uint64_t sum, const unsigned char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) sum = sum * 31 + bytes[i];
    return sum;
}
static void *writes(void *arg) {
    int fd = *(int *)arg;
    unsigned char *data = malloc(TOTAL);
    for (int i = 0; i < TOTAL; i++) data[i] = (unsigned char)(i * 7 + i / 1000);
    ssize_t half = TOTAL / 2;
    // Blocking writes larger than the buffer are complete.
    if (write(fd, data, half) != half) printf("short write\n");
    struct iovec parts[3] = {{data + half, 1000}, {data + half + 1000, 100000}, {data + half + 101000, half - 101000}};
    if (writev(fd, parts, 3) != half) printf("short writev\n");
    close(fd);
    free(data);
    return NULL;
}
static void drain(const char *name, int read_end, int write_end) {
    pthread_t thread;
    pthread_create(&thread, NULL, writes, &write_end);
    unsigned char buffer[5000];
    uint64_t sum = 0;
    long total = 0;
    ssize_t got;
    while ((got = read(read_end, buffer, sizeof buffer)) > 0) sum = checksum(sum, buffer, got), total += got;
    pthread_join(thread, NULL);
    printf("%s: %ld bytes, sum %016lx, end %zd\n", name, total, sum, got);
    close(read_end);
}

static int wake_fd;
static void *wakes(void *arg) {
    usleep(2000);
    uint64_t three = 3;
    if (write(wake_fd, &three, sizeof three) != 8) printf("eventfd write\n");
    return arg;
}
static void *connects(void *arg) {
    struct sockaddr_un *address = arg;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)address, sizeof(sa_family_t) + 8)) printf("connect: %s\n", strerror(errno));
    char reply[8] = {0};
    if (send(fd, "ping", 4, 0) != 4 || recv(fd, reply, 4, MSG_WAITALL) != 4) printf("exchange\n");
    printf("client got %s\n", reply);
    close(fd);
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    int fds[2];
    if (pipe(fds)) return 1;
    drain("pipe", fds[0], fds[1]);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds)) return 1;
    drain("socketpair", fds[0], fds[1]);

    signal(SIGPIPE, SIG_IGN);
    if (pipe2(fds, O_NONBLOCK)) return 1;
    char byte;
    ssize_t result = read(fds[0], &byte, 1);
    printf("empty: %zd %s\n", result, strerror(errno));
    static char block[65536];
    long filled = 0;
    while ((result = write(fds[1], block, sizeof block)) > 0) filled += result;
    printf("full after %ld: %s\n", filled, strerror(errno));
    close(fds[0]);
    result = write(fds[1], "x", 1);
    printf("nobody reads: %zd %s\n", result, strerror(errno));
    struct iovec said[2] = {{"written ", 8}, {"in parts\n", 9}};
    if (writev(1, said, 2) != 17) return 1;

    // timeouts
    if (pipe(fds)) return 1;
    struct pollfd polls[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLOUT, 0}};
    result = poll(polls, 2, -1);
    printf("poll: %zd, revents %d %d\n", result, polls[0].revents, polls[1].revents);
    result = poll(polls, 1, 20);
    printf("poll timed out: %zd\n", result);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    struct timeval wait = {0, 10000};
    result = select(fds[0] + 1, &set, NULL, NULL, &wait);
    printf("select timed out: %zd, set %d, left %ld\n", result, FD_ISSET(fds[0], &set), (long)wait.tv_usec);
    if (write(fds[1], "abc", 3) != 3) return 1;
    FD_SET(fds[0], &set);
    result = select(fds[0] + 1, &set, NULL, NULL, NULL);
    printf("select: %zd, set %d\n", result, FD_ISSET(fds[0], &set));
    close(fds[1]);
    result = poll(polls, 1, -1);
    printf("hang-up: %zd, revents %d\n", result, polls[0].revents);
    polls[0].fd = 777;
    result = poll(polls, 1, 0);
    printf("bad descriptor: %zd %d\n", result, polls[0].revents == POLLNVAL);
    result = poll(NULL, 0, 5);
    printf("poll of nothing: %zd\n", result);

    // epoll + eventfd woken by a thread
    wake_fd = eventfd(0, 0);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 0x123456789ab}, came[4];
    epoll_ctl(epoll, EPOLL_CTL_ADD, wake_fd, &event);
    result = epoll_ctl(epoll, EPOLL_CTL_ADD, wake_fd, &event);
    printf("twice: %zd %s\n", result, strerror(errno));
    result = epoll_wait(epoll, came, 4, 5);
    printf("epoll timed out: %zd\n", result);
    pthread_t thread;
    pthread_create(&thread, NULL, wakes, NULL);
    result = epoll_wait(epoll, came, 4, -1);
    printf("epoll: %zd, data %lx\n", result, (long)came[0].data.u64);
    result = epoll_wait(epoll, came, 4, 0);
    printf("edge triggered: %zd\n", result);
    uint64_t value;
    if (read(wake_fd, &value, 8) != 8) return 1;
    printf("eventfd %lu\n", (long)value);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, wakes, NULL);
    result = read(wake_fd, &value, 8);
    printf("blocking eventfd: %zd %lu\n", result, (long)value);
    pthread_join(thread, NULL);

    // a connection over an abstract socket
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path + 1, 20, "v%06d", getpid() % 1000000);
    if (bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t) + 8) || listen(listener, 1)) return printf("%s\n", strerror(errno)), 1;
    pthread_create(&thread, NULL, connects, &address);
    int peer = accept(listener, NULL, NULL);
    char request[8] = {0};
    result = recv(peer, request, 4, MSG_WAITALL);
    printf("server got %zd %s\n", result, request);
    if (send(peer, "pong", 4, MSG_NOSIGNAL) != 4) return 1;
    pthread_join(thread, NULL);
    result = recv(peer, request, 1, 0);
    printf("end of connection: %zd\n", result);

    // pass a descriptor and credentials
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, fds)) return 1;
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {"m", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &wake_fd, sizeof(int));
    result = sendmsg(fds[0], &message, 0);
    char got;
    part.iov_base = &got;
    printf("sendmsg %zd", result);
    result = recvmsg(fds[1], &message, 0);
    int passed;
    memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    value = 8;
    printf(", recvmsg %zd %c, descriptor works %d\n", result, got, write(passed, &value, 8) == 8);
    return 0;
}
