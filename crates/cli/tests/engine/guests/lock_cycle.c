// Locks taken in different orders, which a lock that all hold meanwhile may make harmless. The argument is the number of
// threads, each of which takes its own lock and then the next one's; "gate" makes two of them harmless.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t middle = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static int guarded, work;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
    if (guarded) pthread_mutex_lock(&gate);
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    work++;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    if (guarded) pthread_mutex_unlock(&gate);
}

static void *one(void *last) {
    both(&left, &middle);
    return last;
}

static void *two(void *last) {
    both(&middle, last ? &left : &right);
    return last;
}

static void *three(void *last) {
    both(&right, &left);
    return last;
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "2";
    void *(*bodies[])(void *) = {one, two, three};
    pthread_t threads[3];
    guarded = !strcmp(kind, "gate");
    int count = guarded ? 2 : atoi(kind);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, bodies[i], count == 2 ? "" : NULL);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("%d\n", work);
    return 0;
}
