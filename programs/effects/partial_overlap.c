// A word is written while another thread reads one byte in its middle.
//
//~ verdict: racy
//~ topic: overlapping sizes
//~ twin: racefree/neighbours_in_word.c
//~ race a: the byte within the word
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: accesses of different address and size conflict in the byte that they share
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static union {
    volatile uint64_t word;
    volatile uint8_t bytes[8];
} shared;
static int seen;

static void *write_word(void *unused) {
    shared.word = 0x0807060504030201u;    //~ RACE(a) write
    return unused;
}

static void *read_byte(void *unused) {
    seen = shared.bytes[3];               //~ RACE(a) read
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, write_word, NULL);
    pthread_create(&threads[1], NULL, read_byte, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", seen);
    return 0;
}
