// A server with an epoll loop and four clients in threads, over TCP on the loopback interface: every client sends
// messages of growing size and checks that they come back in capitals.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 4, MESSAGES = 50 };

static struct sockaddr_in address = {.sin_family = AF_INET};
static long echoed[CLIENTS];

static void must(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void *client(void *arg) {
    long number = (long)arg;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(fd, (void *)&address, sizeof address) == 0, "connect");
    char out[4000], in[4000];
    for (int round = 1; round <= MESSAGES; round++) {
        int len = round * 70;
        memset(out, 'a' + (round + number) % 26, len);
        must(send(fd, out, len, 0) == len, "send");
        must(recv(fd, in, len, MSG_WAITALL) == len, "recv");
        for (int at = 0; at < len; at++)
            must(in[at] == toupper(out[at]), "compare");
        echoed[number] += len;
    }
    shutdown(fd, SHUT_WR);
    must(read(fd, in, 1) == 0, "end");
    close(fd);
    return 0;
}

static void *server(void *arg) {
    int listener = *(int *)arg, set = epoll_create1(0), open_connections = 0, seen = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    while (seen < CLIENTS || open_connections > 0) {
        struct epoll_event events[8];
        int count = epoll_wait(set, events, 8, -1);
        must(count > 0, "epoll_wait");
        for (int at = 0; at < count; at++) {
            int fd = events[at].data.fd;
            if (fd == listener) {
                int accepted = accept4(listener, 0, 0, SOCK_NONBLOCK);
                must(accepted >= 0, "accept");
                struct epoll_event wanted = {.events = EPOLLIN | EPOLLET, .data.fd = accepted};
                epoll_ctl(set, EPOLL_CTL_ADD, accepted, &wanted);
                open_connections++, seen++;
                continue;
            }
            char bytes[1000];
            ssize_t len;
            while ((len = read(fd, bytes, sizeof bytes)) > 0) {
                for (ssize_t i = 0; i < len; i++)
                    bytes[i] = toupper(bytes[i]);
                must(write(fd, bytes, len) == len, "write");
            }
            if (len == 0)
                close(fd), open_connections--;
            else
                must(errno == EAGAIN, "read");
        }
    }
    return 0;
}

int main(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(bind(listener, (void *)&address, sizeof address) == 0, "bind");
    must(listen(listener, 16) == 0, "listen");
    socklen_t len = sizeof address;
    getsockname(listener, (void *)&address, &len);
    pthread_t serving, clients[CLIENTS];
    pthread_create(&serving, 0, server, &listener);
    for (long at = 0; at < CLIENTS; at++)
        pthread_create(&clients[at], 0, client, (void *)at);
    for (int at = 0; at < CLIENTS; at++)
        pthread_join(clients[at], 0);
    pthread_join(serving, 0);
    for (int at = 0; at < CLIENTS; at++)
        printf("client %d: %ld bytes\n", at, echoed[at]);
    return 0;
}
