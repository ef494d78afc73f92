// Runs a kernel (its main renamed to kernel_main) in a thread, and then races with another thread: what a run that is
// steered to the race costs is what it costs beside the kernel. With a number as argument it spins that often instead.
#include <pthread.h>
#include <stdlib.h>
static int arguments;
static char **words;
static volatile int racing;
static volatile long spun;
#ifdef KERNEL
int kernel_main(int argc, char **argv);
#else
static int kernel_main(int argc, char **argv) {
    long times = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < times; i++) spun = i;
    return 0;
}
#endif
static void *work(void *unused) {
    kernel_main(arguments, words);
    racing = 1;
    return unused;
}
static void *other(void *unused) {
    racing = 2;
    return unused;
}
int main(int argc, char **argv) {
    pthread_t threads[2];
    arguments = argc;
    words = argv;
    pthread_create(&threads[0], NULL, work, NULL);
    pthread_create(&threads[1], NULL, other, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
