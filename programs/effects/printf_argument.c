// A thread prints a string that another one is changing.
//
//~ verdict: racy
//~ topic: library calls, output
//~ twin: racefree/library_calls_locked.c
//~ race a: the first letter
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: printf reads the string on behalf of its caller
#include <pthread.h>
#include <stdio.h>

static char greeting[] = "hello";

static void *change(void *unused) {
    greeting[0] = 'j';                    //~ RACE(a) write
    return unused;
}

static void *print(void *unused) {
    printf("[%5s]\n", greeting);          //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, change, NULL);
    pthread_create(&threads[1], NULL, print, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
