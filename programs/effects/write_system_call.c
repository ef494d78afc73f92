// The kernel reads a buffer for write(2) while another thread changes it.
//
//~ verdict: racy
//~ topic: system calls, output
//~ twin: racefree/library_calls_locked.c
//~ race a: the first letter
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: no-state-change
//~   or-replay: state-change
//~   needs: none
//~   source: a system call reads the memory that it is given; what it read is only seen outside
#include <pthread.h>
#include <unistd.h>

static char greeting[] = "hello\n";

static void *change(void *unused) {
    greeting[0] = 'j';                                //~ RACE(a) write
    return unused;
}

static void *print(void *unused) {
    return write(1, greeting, 6) == 6 ? unused : NULL;  //~ RACE(a) read
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, change, NULL);
    pthread_create(&threads[1], NULL, print, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
