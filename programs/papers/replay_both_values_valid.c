// A shared variable chooses between two versions of a computation that give the same result.
//
//~ verdict: racy
//~ topic: both values valid, benign kinds
//~ figure: replay-classification 5.4 kind 3, both values are valid
//~ twin: racefree/version_rwlock.c
//~ race a: the choice
//~   real: yes
//~   observed: always
//~   class: k-witness-harmless
//~   replay: no-state-change
//~   paper-replay: replay-failure
//~   needs: none
//~   label: both-values-valid
//~   source: replay-classification 5.4 (3), second example: both versions are correct, one is
//~   | slower; its own replayer cannot follow the version that was not recorded (5.2.4)
#include <pthread.h>
#include <stdio.h>

static volatile int use_formula;
static long result;

static __attribute__((noinline)) long by_formula(long n) {
    return n * (n + 1) / 2;
}

static __attribute__((noinline)) long by_counting(long n) {
    long sum = 0;
    for (long i = 1; i <= n; i++) sum += i;
    return sum;
}

static void *choose(void *unused) {
    use_formula = 1;                                            //~ RACE(a) write
    return unused;
}

static void *compute(void *unused) {
    result = use_formula ? by_formula(100) : by_counting(100);  //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t chooser, computer;
    pthread_create(&chooser, NULL, choose, NULL);
    pthread_create(&computer, NULL, compute, NULL);
    pthread_join(chooser, NULL);
    pthread_join(computer, NULL);
    printf("sum to 100: %ld\n", result);
    return 0;
}
