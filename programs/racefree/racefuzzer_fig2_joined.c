// papers/racefuzzer_fig2.c with the writer joined before the reader starts.
//
//~ verdict: race-free
//~ topic: create and join
//~ args: 10
//~ source: the writer's end happens before its join, which happens before the reader's creation
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t L = PTHREAD_MUTEX_INITIALIZER;
static volatile int x;
static long statements = 10;
static volatile long done;

static void *thread1(void *unused) {
    pthread_mutex_lock(&L);
    for (long i = 0; i < statements; i++) done++;
    pthread_mutex_unlock(&L);
    return x == 0 ? &statements : unused;
}

static void *thread2(void *unused) {
    x = 1;
    pthread_mutex_lock(&L);
    done++;
    pthread_mutex_unlock(&L);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t t1, t2;
    void *error = NULL;
    if (argc > 1) statements = atol(argv[1]);
    pthread_create(&t2, NULL, thread2, NULL);
    pthread_join(t2, NULL);
    pthread_create(&t1, NULL, thread1, NULL);
    pthread_join(t1, &error);
    printf("%s after %ld statements\n", error ? "error" : "no error", done);
    return 0;
}
