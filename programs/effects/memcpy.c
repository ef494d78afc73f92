// One thread copies into a buffer with memcpy while another one copies out of it.
//
//~ verdict: racy
//~ topic: library calls
//~ args: 31
//~ twin: racefree/library_calls_locked.c
//~ race a: the buffer
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: the copy holds old, new or mixed bytes; memcpy accesses them on behalf of its caller
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char buffer[64] = "old old old old old old old old";
static const char news[64] = "new new new new new new new new";
static char copy[64];
static size_t length;

static void *writer(void *unused) {
    memcpy(buffer, news, length);     //~ RACE(a) write
    return unused;
}

static void *reader(void *unused) {
    memcpy(copy, buffer, length);     //~ RACE(a) read
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    length = argc > 1 ? (size_t)atoi(argv[1]) % sizeof buffer : 31;
    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts(copy);
    return 0;
}
