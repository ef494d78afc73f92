// Two writes race for a variable that no output depends on.
//
//~ verdict: racy
//~ topic: harmless write
//~ figure: portend-plus fig. 8
//~ args: 1
//~ twin: racefree/last_writer_locked.c
//~ race a: the two writes
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: state-change
//~   needs: none
//~   source: portend-plus 4.3.1: the output is 10 for every input >= 0, whichever write is last;
//~   | the variable differs
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int global_x;
static int input;

static void *work0(void *unused) {
    global_x = 1;             //~ RACE(a) write
    if (input >= 0) {
        printf("10\n");
    }
    return unused;
}

static void *work1(void *unused) {
    global_x = 2;             //~ RACE(a) write
    return unused;
}

int main(int argc, char **argv) {
    pthread_t t0, t1;
    input = argc > 1 ? atoi(argv[1]) : 0;
    pthread_create(&t0, NULL, work0, NULL);
    pthread_create(&t1, NULL, work1, NULL);
    pthread_join(t0, NULL);
    pthread_join(t1, NULL);
    return 0;
}
