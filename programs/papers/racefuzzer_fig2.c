// A race whose accesses are far apart: thread1 executes many statements before its read, thread2
// writes at its very start. The argument is the number of statements.
//
//~ verdict: racy
//~ topic: assertion, order by an unrelated lock
//~ figure: racefuzzer fig. 2
//~ args: 100000
//~ twin: racefree/racefuzzer_fig2_joined.c
//~ race a: statements 8 and 10
//~   real: yes
//~   observed: maybe
//~   class: spec-violated assertion
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: racefuzzer 3.2: ERROR when 8 comes before 10; usually the lock orders 10 before 8
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t L = PTHREAD_MUTEX_INITIALIZER;
static volatile int x;
static long statements = 10;
static volatile long done;

static void f(void) {
    for (long i = 0; i < statements; i++) done++;
}

static void *thread1(void *unused) {
    pthread_mutex_lock(&L);
    f();
    pthread_mutex_unlock(&L);
    if (x == 0) {                 //~ RACE(a) read
        assert(!"ERROR");
    }
    return unused;
}

static void *thread2(void *unused) {
    x = 1;                        //~ RACE(a) write
    pthread_mutex_lock(&L);
    done++;
    pthread_mutex_unlock(&L);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t t1, t2;
    if (argc > 1) statements = atol(argv[1]);
    pthread_create(&t2, NULL, thread2, NULL);
    pthread_create(&t1, NULL, thread1, NULL);
    pthread_join(t1, NULL);
    pthread_join(t2, NULL);
    printf("no error after %ld statements\n", done);
    return 0;
}
