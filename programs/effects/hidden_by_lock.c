// Two accesses race, but a lock that protects something else usually orders them by accident.
//
//~ verdict: racy
//~ topic: order by an unrelated lock
//~ twin: racefree/protected_by_lock.c
//~ race a: the result
//~   real: yes
//~   observed: maybe
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: the lock is taken after the write and released before the read, so it protects
//~   | neither; if the writer comes first it orders them all the same
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t statistics_lock = PTHREAD_MUTEX_INITIALIZER;
static int calls;
static volatile int result;
static int seen;

static void count_call(void) {
    pthread_mutex_lock(&statistics_lock);
    calls++;
    pthread_mutex_unlock(&statistics_lock);
}

static void *produce(void *unused) {
    result = 42;              //~ RACE(a) write
    count_call();
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 200000; i++) {
    }
}

static void *consume(void *unused) {
    other_work();
    count_call();
    seen = result;            //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d after %d calls\n", seen, calls);
    return 0;
}
