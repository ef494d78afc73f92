// A thread writes the process id into a variable that already holds it, another one reads it.
//
//~ verdict: racy
//~ topic: redundant write, benign kinds
//~ figure: replay-classification 5.4 kind 4, redundant writes
//~ twin: racefree/pid_written_once.c
//~ race a: the process id
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: redundant-write
//~   source: replay-classification 5.4 (4): the write leaves the old value
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile int owner;
static int seen_own;

static void *writer(void *unused) {
    int me = getpid();
    owner = me;                   //~ RACE(a) write
    return unused;
}

static void *reader(void *unused) {
    int me = getpid();
    seen_own = owner == me;       //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t threads[2];
    owner = getpid();
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("own process: %s\n", seen_own ? "yes" : "no");
    return 0;
}
