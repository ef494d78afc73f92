// Starts a program that is there, and one that is not: `posix_spawn` says which, by memory that its child shares.
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static void *idle(void *arg) { return arg; }

static void start(char *path) {
  char *argv[] = {path, "started", NULL};
  pid_t pid = 0;
  int error = posix_spawn(&pid, path, NULL, NULL, argv, environ);
  int status = 0;
  if (error == 0) waitpid(pid, &status, 0);
  printf("%s: %s, status %d\n", path, error ? strerror(error) : "started", WEXITSTATUS(status));
  fflush(stdout);
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, idle, NULL);
  pthread_join(thread, NULL);
  start("/no/such/program");
  start("/bin/true");
  start("/etc/passwd");
  start("/bin/false");
  return 0;
}
