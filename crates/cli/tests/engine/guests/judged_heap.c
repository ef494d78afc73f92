/* Memory errors that nothing comes of, by races that are not the free itself. The first argument says which; with a second one,
   the same races do no harm. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int safe;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long seen;

/* A node is freed under a lock, and a reader walks the list without one. */
struct node {
    long value;
    long more;
    struct node *next;
};
static struct node *first;

static void *walk(void *unused) {
    for (struct node *node = first; node != NULL; node = node->next)
        seen += node->more;
    return unused;
}

static void cut(void) {
    struct node **last = &first;
    pthread_mutex_lock(&lock);
    while ((*last)->next != NULL)
        last = &(*last)->next;
    struct node *gone = *last;
    if (!safe)
        free(gone);
    *last = NULL;
    pthread_mutex_unlock(&lock);
}

/* Two threads look whether the block is there still, and free it. */
static void *block;
static volatile int released;

static void release(void) {
    if (!released) {
        released = 1;
        if (!safe || pthread_mutex_trylock(&lock) == 0)
            free(block);
    }
}

static void *releaser(void *unused) {
    release();
    return unused;
}

/* Whoever fills the array does not know yet that one less is allowed. */
static int *array;
static volatile int limit = 21;

static void *fill(void *unused) {
    int count = limit;
    for (int i = 0; i < count; i++)
        array[i] = i;
    return unused;
}

/* The same by a function of the C library. */
static void *copy(void *unused) {
    static const int zeros[32];
    int count = limit;
    memcpy(array, zeros, count * sizeof *array);
    return unused;
}

/* What is freed is where the other thread has just been. */
static long *cursor;

static void *release_cursor(void *unused) {
    free(cursor);
    return unused;
}

/* Who frees the old block gets the same memory for another one, under the lock; who looks has read the pointer before it has
   the lock. */
static long *volatile current;

static void *look(void *unused) {
    long *old = current;
    pthread_mutex_lock(&lock);
    seen += *old;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void replace(void) {
    long *fresh = calloc(1, sizeof *fresh);
    pthread_mutex_lock(&lock);
    long *old = current;
    current = fresh;
    if (!safe)
        free(old);
    block = malloc(sizeof *fresh);
    memset(block, 0, sizeof *fresh);
    pthread_mutex_unlock(&lock);
}

/* Who looks in time finds a block that is there. */
static void *look_in_time(void *unused) {
    seen += *current;
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    const char *which = argc > 1 ? argv[1] : "";
    safe = argc > 2;
    if (!strcmp(which, "list")) {
        for (int i = 0; i < 4; i++) {
            struct node *node = calloc(1, sizeof *node);
            node->next = first;
            first = node;
        }
        pthread_create(&thread, NULL, walk, NULL);
        cut();
    } else if (!strcmp(which, "twice")) {
        block = malloc(40);
        pthread_create(&thread, NULL, releaser, NULL);
        release();
    } else if (!strcmp(which, "array") || !strcmp(which, "copy")) {
        array = calloc(safe ? 21 : 20, sizeof *array);
        pthread_create(&thread, NULL, which[0] == 'a' ? fill : copy, NULL);
        limit = 20;
    } else if (!strcmp(which, "dangling")) {
        long *gone = calloc(1, sizeof *gone);
        current = calloc(2, sizeof *current);
        if (!safe)
            free(gone);
        pthread_create(&thread, NULL, look_in_time, NULL);
        current = gone;
    } else if (!strcmp(which, "reused")) {
        current = calloc(1, sizeof *current);
        pthread_create(&thread, NULL, look, NULL);
        replace();
    } else {
        long *longs = calloc(8, sizeof *longs);
        longs[1] = longs[5] = 0x21; /* looks like the sizes of blocks */
        cursor = safe ? longs : longs + 2;
        pthread_create(&thread, NULL, release_cursor, NULL);
        cursor = longs;
    }
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
