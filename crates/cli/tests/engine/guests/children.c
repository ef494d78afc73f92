// fork in a program with threads, vfork, posix_spawn and their errors, exec in place, wait in its forms.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile int stop;
static volatile sig_atomic_t children_ended;
static void on_child(int signal) {
    (void)signal;
    children_ended++;
}
static void *busy(void *arg) {
    while (!stop) sched_yield();
    return arg;
}
static int at_fork_value;
static void before(void) { at_fork_value = 1; }
static void in_child(void) { at_fork_value += 10; }
static void *makes_thread_in_child(void *arg) {
    *(int *)arg = 9;
    return NULL;
}

static int wait_for(pid_t pid) {
    int status = -1;
    pid_t got;
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {}
    if (got != pid) return -2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1 && !strcmp(argv[1], "again")) {
        printf("executed in place: %s, TOKEN=%s, same pid %d\n", argv[2], getenv("TOKEN"), getpid() == atoi(argv[3]));
        sigset_t set;
        sigprocmask(SIG_SETMASK, NULL, &set);
        struct sigaction action;
        sigaction(SIGUSR2, NULL, &action);
        printf("mask kept %d, ignored kept %d", sigismember(&set, SIGUSR1), action.sa_handler == SIG_IGN);
        sigaction(SIGCHLD, NULL, &action);
        printf(", handler reset %d, descriptor closed %d\n", action.sa_handler == SIG_DFL, fcntl(atoi(argv[4]), F_GETFD) < 0);
        return 17;
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, busy, NULL);
    signal(SIGCHLD, on_child);
    pthread_atfork(before, NULL, in_child);

    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        int value = 0;
        pthread_t thread;
        pthread_create(&thread, NULL, makes_thread_in_child, &value);
        pthread_join(thread, NULL);
        printf("child: atfork %d, thread made %d, parent %d, alone: tid is pid %d\n", at_fork_value, value, getppid() == parent,
               gettid() == getpid());
        exit(3);
    }
    printf("fork: %d\n", wait_for(child));
    printf("SIGCHLD came: %d\n", children_ended > 0);

    child = fork();
    if (child == 0) abort();
    printf("aborted: %d\n", wait_for(child));
    child = fork();
    if (child == 0)
        for (;;) pause();
    kill(child, SIGTERM);
    printf("killed: %d\n", wait_for(child));
    child = waitpid(-1, NULL, 0);
    printf("no more: %d %s\n", child, strerror(errno));

    child = vfork();
    if (child == 0) _exit(4);
    printf("vfork: %d\n", wait_for(child));
    child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "echo from sh; exit 6", NULL);
        _exit(127);
    }
    printf("vfork+exec: %d\n", wait_for(child));
    child = vfork();
    if (child == 0) {
        execl("/no/such/program", "x", NULL);
        _exit(errno == ENOENT ? 44 : 45);
    }
    printf("vfork+failed exec: %d\n", wait_for(child));

    char *echo[] = {"sh", "-c", "echo spawned $TOKEN; exit 8", NULL}, *env[] = {"TOKEN=t", NULL};
    int result = posix_spawn(&child, "/bin/sh", NULL, NULL, echo, env);
    int ended = wait_for(child);
    printf("posix_spawn: %d %d\n", result, ended);
    result = posix_spawn(&child, "/no/such/program", NULL, NULL, echo, env);
    printf("posix_spawn of nothing: %s\n", strerror(result));
    result = posix_spawn(&child, "/etc/passwd", NULL, NULL, echo, env);
    printf("posix_spawn of a text: %s\n", strerror(result));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int fds[2];
    if (pipe2(fds, O_CLOEXEC)) return 1;
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_addclose(&actions, 0);
    result = posix_spawnp(&child, "sh", &actions, NULL, echo, env);
    close(fds[1]);
    char text[64] = {0};
    ssize_t length = read(fds[0], text, 63);
    printf("through a pipe: %d %zd %s", result, length, text);
    printf("ended: %d\n", wait_for(child));

    FILE *command = popen("cat; echo done", "w");
    fprintf(command, "into popen\n");
    printf("pclose: %d\n", WEXITSTATUS(pclose(command)));
    result = system("exit 9");
    printf("system: %d\n", WEXITSTATUS(result));
    fflush(stdout);

    child = fork();
    if (child == 0) _exit(12);
    siginfo_t info;
    memset(&info, 0, sizeof info);
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    printf("waitid: %d %d %d\n", info.si_pid == child, info.si_status, info.si_code == CLD_EXITED);
    printf("still there: %d\n", wait_for(child));

    printf("failed exec: %d", execl("/no/such/program", "x", NULL));
    printf(" %s\n", strerror(errno));
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGUSR2, SIG_IGN);
    setenv("TOKEN", "kept", 1);
    char pid[16], fd[16];
    snprintf(pid, sizeof pid, "%d", getpid());
    snprintf(fd, sizeof fd, "%d", fcntl(0, F_DUPFD_CLOEXEC, 50));
    execl("/proc/self/exe", argv[0], "again", "with arguments", pid, fd, NULL);
    return 1;
}
