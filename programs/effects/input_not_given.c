// The race is only there with an argument that the ordinary run does not give.
//
//~ verdict: racy
//~ topic: input
//~ twin: racefree/input_not_given_locked.c
//~ race a: the number of requests
//~   real: yes
//~   observed: never
//~   reveal: --stats
//~   class: output-differs
//~   replay: state-change
//~   needs: symbolic-input
//~   source: with --stats a second thread prints the number while the first one increments it
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static volatile int requests;
static int with_stats;

static void *serve(void *unused) {
    requests++;                               //~ RACE(a) update
    return unused;
}

static void *print_stats(void *unused) {
    if (with_stats) {
        printf("requests %d\n", requests);    //~ RACE(a) read
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    with_stats = argc > 1 && strcmp(argv[1], "--stats") == 0;
    pthread_create(&threads[0], NULL, serve, NULL);
    pthread_create(&threads[1], NULL, print_stats, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("served");
    return 0;
}
