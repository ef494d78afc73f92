// An auditor aborts when it sees money between two accounts.
//
//~ verdict: racy
//~ topic: abort
//~ twin: racefree/transfer_locked.c
//~ race a: the first account
//~   real: yes
//~   observed: always
//~   class: spec-violated abort
//~   or: k-witness-harmless
//~   replay: state-change
//~   or-replay: no-state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: audited with the old first and the new second account, 110 units are there; if the
//~   | auditor is quick enough to see both old, nothing happens
//~ race b: the second account
//~   real: yes
//~   observed: always
//~   class: spec-violated abort
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: audited between the two statements, 90 units are there
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static volatile int first = 50, second = 50;

static void *transfer(void *unused) {
    first = first - 10;           //~ RACE(a) write
    second = second + 10;         //~ RACE(b) write
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 200000; i++) {
    }
}

static void *audit(void *unused) {
    other_work();
    if (first + second != 100) {  //~ RACE(a) read, RACE(b) read
        abort();
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, transfer, NULL);
    pthread_create(&threads[1], NULL, audit, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("balanced");
    return 0;
}
