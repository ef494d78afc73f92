// Integer mixing over a buffer, as hashes and ciphers do: long blocks of register arithmetic.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static inline uint32_t rotl(uint32_t x, int k) { return x << k | x >> (32 - k); }
int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 30000000;
    uint32_t s[16];
    for (int i = 0; i < 16; i++) s[i] = i * 0x9e3779b9u;
    for (long r = 0; r < rounds; r++) {
#define Q(a, b, c, d) a += b; d = rotl(d ^ a, 16); c += d; b = rotl(b ^ c, 12); a += b; d = rotl(d ^ a, 8); c += d; b = rotl(b ^ c, 7);
        Q(s[0], s[4], s[8], s[12]) Q(s[1], s[5], s[9], s[13]) Q(s[2], s[6], s[10], s[14]) Q(s[3], s[7], s[11], s[15])
        Q(s[0], s[5], s[10], s[15]) Q(s[1], s[6], s[11], s[12]) Q(s[2], s[7], s[8], s[13]) Q(s[3], s[4], s[9], s[14])
    }
    uint32_t all = 0;
    for (int i = 0; i < 16; i++) all ^= s[i];
    printf("%08x\n", all);
}
