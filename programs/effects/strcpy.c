// A name is replaced with strcpy while another thread measures it with strlen.
//
//~ verdict: racy
//~ topic: library calls
//~ twin: racefree/library_calls_locked.c
//~ race a: the name
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: the length is that of the old name, of the new one, or of a mixture
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *volatile replacement = "Barbara";
static char name[32] = "Leslie";
static size_t length;

static void *rename_it(void *unused) {
    const char *new_name = replacement;
    strcpy(name, new_name);           //~ RACE(a) write
    return unused;
}

static void *measure(void *unused) {
    length = strlen(name);            //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, rename_it, NULL);
    pthread_create(&threads[1], NULL, measure, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%zu\n", length);
    return 0;
}
