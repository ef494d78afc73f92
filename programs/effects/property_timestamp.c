// A time stamp is used before it is set; only the property that used time stamps are positive tells.
//
// After the semantic race in fmm (portend-plus 6.1): the negative stamp is overwritten later, so
// that neither output nor memory shows it at the end.
//
//~ verdict: racy
//~ topic: property
//~ twin: racefree/timestamp_barrier.c
//~ race a: the time stamp
//~   real: yes
//~   observed: always
//~   class: spec-violated property
//~   or: k-witness-harmless
//~   replay: state-change
//~   needs: none
//~   source: portend-plus 6.1: harmless without the property, violated with it
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int timestamp = -1;
static volatile int used;

// True while the program is right; a checker evaluates it at every scheduling decision.
int verdict_invariant_used_timestamps_are_positive(void) {
    return used >= 0;
}

static void *set_time(void *unused) {
    timestamp = 100;              //~ RACE(a) write
    return unused;
}

// What usually makes this thread arrive after the other one.
static void other_work(void) {
    for (volatile int i = 0; i < 200000; i++) {
    }
}

static void *use_time(void *unused) {
    other_work();
    used = timestamp;             //~ RACE(a) read
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    used = 200;
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, set_time, NULL);
    pthread_create(&threads[1], NULL, use_time, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", used);
    return 0;
}
