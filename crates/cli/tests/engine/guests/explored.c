// Four threads lose each other's updates under some schedules, and then the program does what it must not do outside.
// What it began before its threads it goes on with after them: a file, a pipe, standard input.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 25 };

static volatile int counter;

static void *count(void *arg) {
  for (int round = 0; round < ROUNDS; round++) {
    int seen = counter;
    for (volatile int spin = 0; spin < 20; spin++) {
    }
    counter = seen + 1;
  }
  return NULL;
}

static void misbehave(const char *port) {
  unlink("data");
  mkdir("made", 0755);
  FILE *file = fopen("/tmp/verdict-explored-test", "w");
  if (file) fclose(file);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  int connected = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
  kill(getppid(), SIGKILL);
  printf("misbehaved%s, data %s\n", connected ? " and connected" : "", access("data", F_OK) == 0 ? "is there" : "is gone");
}

static void rest(const char *name, int fd) {
  char text[100] = "";
  ssize_t len = read(fd, text, sizeof text - 1);
  printf("%s: %.*s\n", name, (int)(len > 0 ? len : 0), text);
}

int main(int argc, char **argv) {
  char text[100];
  int data = open("data", O_RDWR);
  int ends[2];
  if (data < 0 || pipe(ends) != 0) return 2;
  if (read(data, text, 5) != 5 || read(0, text, 3) != 3) return 3;
  if (write(ends[1], "piped", 5) != 5 || read(ends[0], text, 2) != 2) return 4;
  if (pwrite(data, "X", 1, 5) != 1) return 5;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  rest("file", data);
  rest("pipe", ends[0]);
  rest("input", 0);
  int made = open("made-once", O_CREAT | O_EXCL | O_WRONLY, 0644);
  printf("made once: %s\n", made >= 0 ? "yes" : strerror(errno));
  if (counter != THREADS * ROUNDS) misbehave(argv[1]);
  // The last thing outside that the recorded run does: explorations find the file changed.
  if (argc > 2) truncate("data", 0);
  printf("counted %d\n", counter);
  return 0;
}
