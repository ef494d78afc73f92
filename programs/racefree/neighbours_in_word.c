// Eight threads write a byte each of one word: neighbours, but no common byte.
//
//~ verdict: race-free
//~ topic: overlapping sizes, neighbouring bytes
//~ source: each byte is written by one thread; main reads the word after the joins
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static volatile uint8_t bytes[8];

static void *write_byte(void *byte) {
    *(volatile uint8_t *)byte = (uint8_t)((volatile uint8_t *)byte - bytes + 1);
    return NULL;
}

int main(void) {
    pthread_t threads[8];
    uint64_t word;
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, write_byte, (void *)&bytes[i]);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    memcpy(&word, (const void *)bytes, sizeof word);
    printf("%016llx\n", (unsigned long long)word);
    return 0;
}
