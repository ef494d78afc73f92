// The kernel fills a buffer for read(2) while another thread looks at it.
//
//~ verdict: racy
//~ topic: system calls
//~ twin: racefree/library_calls_locked.c
//~ race a: the first byte
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: a system call writes the memory that it is given
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];
static volatile char buffer[8] = "old";
static int seen;

static void *receive(void *unused) {
    return read(ends[0], (void *)buffer, 4) == 4 ? unused : NULL;   //~ RACE(a) write
}

static void *look(void *unused) {
    seen = buffer[0];                                               //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t threads[2];
    if (pipe(ends) != 0 || write(ends[1], "new", 4) != 4) return 2;
    pthread_create(&threads[0], NULL, receive, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%c\n", seen);
    return 0;
}
