// What is received from sockets: at once or after a wait, in parts or as a whole, and from a number that is none any more.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int far;
static void *sends_in_two(void *text) {
    usleep(1000);
    send(far, text, 3, 0);
    usleep(1000);
    send(far, (char *)text + 3, strlen(text) - 3, 0);
    return NULL;
}
static void told(const char *what, ssize_t result, const char *bytes) {
    int error = errno;
    printf("%s: %zd %.*s%s\n", what, result, result > 0 ? (int)result : 0, bytes, result < 0 ? strerror(error) : "");
}
static pthread_t later(char *text) {
    pthread_t thread;
    pthread_create(&thread, NULL, sends_in_two, text);
    return thread;
}
int main(void) {
    int pair[2];
    char bytes[64];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    int near = pair[0];
    far = pair[1];
    send(near, "hello", 5, 0);
    told("there already", read(far, bytes, sizeof bytes), bytes);

    pthread_t thread = later("abcdef");
    told("the first part", read(near, bytes, sizeof bytes), bytes);
    told("the second", recv(near, bytes, sizeof bytes, 0), bytes);
    pthread_join(thread, NULL);
    told("nothing into no room", read(near, bytes, 0), bytes);
    told("without a wait", recv(near, bytes, sizeof bytes, MSG_DONTWAIT), bytes);
    fcntl(near, F_SETFL, O_NONBLOCK);
    told("in another mode", read(near, bytes, sizeof bytes), bytes);
    fcntl(near, F_SETFL, 0);

    thread = later("ghijkl");
    told("as a whole", recv(near, bytes, 6, MSG_WAITALL), bytes);
    pthread_join(thread, NULL);
    thread = later("mnopqr");
    told("only a look", recv(near, bytes, sizeof bytes, MSG_PEEK), bytes);
    pthread_join(thread, NULL);
    struct iovec parts[2] = {{bytes, 2}, {bytes + 2, 10}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    told("in parts", recvmsg(near, &message, 0), bytes);

    shutdown(far, SHUT_WR);
    told("after the end", read(near, bytes, sizeof bytes), bytes);
    int file[2];
    if (pipe(file) != 0 || write(file[1], "from a pipe", 11) != 11) return 1;
    dup2(file[0], near);
    told("a socket no more", read(near, bytes, sizeof bytes), bytes);
    close(near);
    told("closed", read(near, bytes, sizeof bytes), bytes);

    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    send(pair[0], "one", 3, 0);
    send(pair[0], "two", 3, 0);
    send(pair[1], "back", 4, 0);
    told("cut short", read(pair[1], bytes, 2), bytes);
    told("the next", read(pair[1], bytes, sizeof bytes), bytes);
    return 0;
}
