// A race on z that leads to ERROR1, and a false candidate on x, ordered by y under the lock.
//
//~ verdict: racy
//~ topic: false candidate, assertion
//~ figure: racefuzzer fig. 1
//~ twin: racefree/racefuzzer_fig1_locked.c
//~ race a: statements 5 and 7
//~   real: yes
//~   observed: maybe
//~   class: spec-violated assertion
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: racefuzzer 3.1, case 2: ERROR1 is reached when 7 comes before 5. Happens-before does not
//~   | see it when thread2 releases L before thread1 acquires it
//~ race b: statements 1 and 10
//~   real: no
//~   observed: never
//~   class: single-ordering
//~   or: spec-violated assertion
//~   replay: replay-failure
//~   needs: none
//~   source: racefuzzer 3.1, case 1: 10 is reached only when y is 1, which thread1 wrote under L
//~   | after statement 1. Holding thread1 back at 1 also lets race a end in ERROR1
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t L = PTHREAD_MUTEX_INITIALIZER;
static volatile int x, y, z;

static void *thread1(void *unused) {
    x = 1;                        //~ RACE(b) write
    pthread_mutex_lock(&L);
    y = 1;
    pthread_mutex_unlock(&L);
    if (z == 1) {                 //~ RACE(a) read
        assert(!"ERROR1");
    }
    return unused;
}

static void *thread2(void *unused) {
    z = 1;                        //~ RACE(a) write
    pthread_mutex_lock(&L);
    if (y == 1) {
        if (x != 1) {             //~ RACE(b) read
            assert(!"ERROR2");
        }
    }
    pthread_mutex_unlock(&L);
    return unused;
}

// What usually makes a thread arrive after another one.
static void other_work(void) {
    for (volatile int i = 0; i < 100000; i++) {
    }
}

static void *late_thread2(void *unused) {
    other_work();
    return thread2(unused);
}

int main(void) {
    pthread_t t1, t2;
    pthread_create(&t1, NULL, thread1, NULL);
    pthread_create(&t2, NULL, late_thread2, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    puts("no error");
    return 0;
}
