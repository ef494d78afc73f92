// Two threads take turns for as long as is asked for, if at all, by a mutex and a condition or by an atomic word that plain
// moves read and write. What they hand on that way does not race. Two others, if asked for, have nothing to do with each
// other but races: at first, at last, all the time; or on one word after the other, all of which one thread writes when it
// begins, and each once more in about the round in which the other one reads it.
//   long_run ROUNDS mutex|atomic|nothing [early] [late] [always] [joined]
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long rounds, handed_on;
enum { ROUNDS_MAX = 4096 };
static volatile long early, late, always, joined[ROUNDS_MAX], apart[ROUNDS_MAX];
static int has_atomic, races, races_early, races_late, races_always, races_joined;
static _Atomic int turn_atomic;
static int turn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;

static void wait_for_turn(int me) {
    if (has_atomic) {
        while (atomic_load_explicit(&turn_atomic, memory_order_acquire) != me) sched_yield();
        return;
    }
    pthread_mutex_lock(&lock);
    while (turn != me) pthread_cond_wait(&turned, &lock);
    pthread_mutex_unlock(&lock);
}

static void hand_on(int me) {
    if (has_atomic) {
        atomic_store_explicit(&turn_atomic, 1 - me, memory_order_release);
        return;
    }
    pthread_mutex_lock(&lock);
    turn = 1 - me;
    pthread_cond_signal(&turned);
    pthread_mutex_unlock(&lock);
}

static void *play(void *argument) {
    int me = *(int *)argument;
    long own = 0;
    for (long round = 0; round < rounds; round++) {
        wait_for_turn(me);
        for (int i = 0; i < 100; i++) own += i ^ round;
        handed_on += round;
        hand_on(me);
    }
    return (void *)own;
}

// Not told as a whole, as a loop without calls would be.
__attribute__((noinline)) static void touch(volatile long *word) { ++*word; }

static void *race(void *argument) {
    int is_first = *(int *)argument == 0;
    long own = 0;
    for (long i = 0; races_joined && i < rounds; i++) touch(is_first ? &joined[i] : &apart[i]);
    for (long round = 0; round < rounds; round++) {
        if (races_always) always++;
        if (races_joined && is_first) touch(&joined[round]);
        if (races_joined && !is_first && round > rounds / 2) own += joined[round];
        if (races_early && round < 2) early++;
        if (races_late && round == rounds - 2) late++;
        for (int i = 0; i < 100; i++) own += i ^ round;
    }
    return (void *)own;
}

int main(int argc, char **argv) {
    int numbers[2] = {0, 1};
    pthread_t threads[4];
    rounds = atol(argv[1]);
    has_atomic = strcmp(argv[2], "atomic") == 0;
    for (int i = 3; i < argc; i++) {
        races = 1;
        races_early |= strcmp(argv[i], "early") == 0;
        races_late |= strcmp(argv[i], "late") == 0;
        races_always |= strcmp(argv[i], "always") == 0;
        races_joined |= strcmp(argv[i], "joined") == 0;
    }
    int first = strcmp(argv[2], "nothing") == 0 ? 2 : 0, end = races ? 4 : 2;
    for (int i = first; i < end; i++) pthread_create(&threads[i], NULL, i < 2 ? play : race, &numbers[i % 2]);
    for (int i = first; i < end; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", handed_on);
    return 0;
}
