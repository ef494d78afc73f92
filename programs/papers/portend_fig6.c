// Statistics by a request number that is read without the lock under which it is incremented.
//
// After ctrace. With the hash table the race does nothing; with the array, which only another input
// selects, the number may pass the bound between check and use. The array is followed by
// the pointer of the function that prints it, so that the store past its end is felt.
//
//~ verdict: racy
//~ topic: out of bounds, input
//~ figure: portend-plus fig. 6
//~ args: --use-hash-table
//~ twin: racefree/request_id_locked.c
//~ race a: the number, read for the hash table
//~   real: yes
//~   observed: always
//~   class: spec-violated crash
//~   replay: state-change
//~   needs: symbolic-input
//~   otherwise: k-witness-harmless
//~   source: portend-plus 4.1: harmless on the recorded path, a crash once the input is free
//~ race b: the number, read for the array
//~   real: yes
//~   observed: never
//~   reveal: --no-hash-table
//~   class: spec-violated crash
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: symbolic-input
//~   source: portend-plus 4.1: checked as 31, used as 32, the store overflows the array
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SIZE = 32 };

static pthread_mutex_t l = PTHREAD_MUTEX_INITIALIZER;
static volatile int id = MAX_SIZE - 1;
static int use_hash_table = 1;
static int last_id;
static long hash_table[2 * MAX_SIZE];

static void print_done(void) {
    puts("statistics written");
}

static struct {
    long array[MAX_SIZE];
    void (*volatile report)(void);
} stats = {.report = print_done};

static long get_stats(void) {
    return 7;
}

static void *request_handler(void *unused) {
    pthread_mutex_lock(&l);
    id++;                                               //~ RACE(a) update, RACE(b) update
    pthread_mutex_unlock(&l);
    return unused;
}

static void update1(void) {
    last_id = id;                                       //~ RACE(a) read
    hash_table[last_id] = get_stats();
}

static void update2(void) {
    if (id < MAX_SIZE) stats.array[id] = get_stats();   //~ RACE(b) read
}

static void *update_stats(void *unused) {
    if (use_hash_table) {
        update1();
    } else {
        update2();
    }
    stats.report();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t t1, t2;
    if (argc > 1 && strcmp(argv[1], "--no-hash-table") == 0) use_hash_table = 0;
    pthread_create(&t2, NULL, update_stats, NULL);
    pthread_create(&t1, NULL, request_handler, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    return 0;
}
