// A thread-local variable is shared by pointer: it belongs to one thread but is accessed by two.
//
//~ verdict: racy
//~ topic: thread-local memory
//~ twin: racefree/thread_local_own.c
//~ race a: main's own instance of the variable
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: the address of a thread-local variable was given away; main reads while the thread
//~   | writes
#include <pthread.h>
#include <stdio.h>

static __thread volatile int mine = 1;

static void *intruder(void *theirs) {
    *(volatile int *)theirs = 2;      //~ RACE(a) write
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, intruder, (void *)&mine);
    int seen = mine;                  //~ RACE(a) read
    pthread_join(thread, NULL);
    printf("%d\n", seen);
    return 0;
}
