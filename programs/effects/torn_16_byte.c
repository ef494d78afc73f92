// A 16-byte value is written in two halves; a reader sees one old and one new half.
//
//~ verdict: racy
//~ topic: torn value, assertion
//~ twin: racefree/torn_16_byte_locked.c
//~ race a: the value
//~   real: yes
//~   observed: always
//~   class: spec-violated assertion
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: between the two stores, or between the two loads, the halves differ
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static struct pair {
    volatile unsigned long low, high;
} value;

static void *writer(void *unused) {
    value.low = 7, value.high = 7;                            //~ RACE(a) write
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 200000; i++) {
    }
}

static void *reader(void *unused) {
    struct pair seen;
    other_work();
    seen.low = value.low, seen.high = value.high;             //~ RACE(a) read
    assert(seen.low == seen.high);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("whole");
    return 0;
}
