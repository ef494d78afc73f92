/* A program with a race that starts processes. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int shared;
static void *set(void *unused) { shared = 1; return unused; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, set, NULL);
    int seen = shared;
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) _exit(i);
        int status;
        waitpid(child, &status, 0);
        printf("child %d\n", WEXITSTATUS(status));
    }
    pthread_join(thread, NULL);
    printf("seen %d\n", seen);
    return 0;
}
