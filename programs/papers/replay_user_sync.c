// Two threads take turns by a plain variable: synchronisation that the programmer built.
//
//~ verdict: racy
//~ topic: ad hoc synchronisation, benign kinds
//~ figure: replay-classification 5.4 kind 1, user constructed synchronisation
//~ twin: racefree/turns_condvar.c
//~ race a: the turn, read while waiting and written when handing over
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: replay-classification 5.4 (1): a read before the write only waits once more
//~ race b: the sum, handed over by the turn
//~   real: no
//~   observed: always
//~   class: single-ordering
//~   replay: replay-failure
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: portend-plus 3, single ordering: the other thread is in its waiting loop
//~ race c: handing the turn over, twice in a row
//~   real: no
//~   observed: always
//~   class: single-ordering
//~   replay: replay-failure
//~   needs: none
//~   label: user-constructed-synchronisation
//~   source: only the thread whose turn it is writes the turn
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

enum { ROUNDS = 3 };

static volatile long turn;
static volatile long sum;

static void *player(void *argument) {
    long me = (long)argument;
    for (int round = 0; round < ROUNDS; round++) {
        while (turn != me) {  //~ RACE(a) read
            sched_yield();
        }
        sum += me + 1;        //~ RACE(b) update
        turn = 1 - me;        //~ RACE(a) write, RACE(c) write
    }
    return NULL;
}

int main(void) {
    pthread_t players[2];
    for (long i = 0; i < 2; i++) pthread_create(&players[i], NULL, player, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(players[i], NULL);
    printf("sum %ld\n", sum);
    return 0;
}
