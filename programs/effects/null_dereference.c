// A thread uses a configuration that another one may not have set yet.
//
//~ verdict: racy
//~ topic: null dereference, crash
//~ twin: racefree/publish_pointer.c
//~ race a: the pointer
//~   real: yes
//~   observed: always
//~   class: spec-violated crash
//~   replay: state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   source: read before it is set, the pointer is null
#include <pthread.h>
#include <stdio.h>

static const int defaults = 42;
static const int *volatile config;
static int seen;

static void *configure(void *unused) {
    config = &defaults;       //~ RACE(a) write
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 200000; i++) {
    }
}

static void *use(void *unused) {
    other_work();
    seen = *config;           //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, configure, NULL);
    pthread_create(&threads[1], NULL, use, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", seen);
    return 0;
}
