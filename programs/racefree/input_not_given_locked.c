// The requests of effects/input_not_given.c counted under a mutex, run with the argument.
//
//~ verdict: race-free
//~ topic: input, mutex
//~ args: --stats
//~ source: every access is under the mutex; the printed number is read after the join
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int requests;
static int printed;

static void *serve(void *unused) {
    pthread_mutex_lock(&lock);
    requests++;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *look(void *unused) {
    pthread_mutex_lock(&lock);
    printed += requests > 0;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    int with_stats = argc > 1 && strcmp(argv[1], "--stats") == 0;
    pthread_create(&threads[0], NULL, serve, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    if (with_stats) printf("requests %d\n", requests);
    puts("served");
    return 0;
}
