// Two threads print to one stream and use the C library's shared state: its own locks protect it.
//
//~ verdict: race-free
//~ topic: library calls
//~ source: every line is a constant of one length and the order does not show; libc locks its own
//~ | data
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINES = 20 };

static void *print_lines(void *unused) {
    char text[64];
    for (int i = 0; i < LINES; i++) {
        snprintf(text, sizeof text, "%s %d", "line", 7);
        puts(text);
        char *copy = strdup(text);
        free(copy);
        time_t now = 0;
        struct tm parts;
        gmtime_r(&now, &parts);
        if (getenv("NO_SUCH_VARIABLE") != NULL) puts("unexpected");
    }
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, print_lines, NULL);
    pthread_create(&threads[1], NULL, print_lines, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
