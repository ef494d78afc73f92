// Blocks of text, each sorted by its rotations, moved to front and counted: what bzip2 does before it packs bits. Workers take
// the blocks from a counter under a mutex.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LARGE // as large as programs are whose memory matters
enum { BLOCK = 1 << 20, BLOCKS = 8, THREADS = 4 };
#else
enum { BLOCK = 1 << 17, BLOCKS = 12, THREADS = 4 };
#endif

struct block {
    unsigned char *text;
    unsigned char *last_column;
    long frequencies[256];
    long zeros;
};

static struct block blocks[BLOCKS];
static int next_block;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// Ranks of prefixes of doubled length, until all differ.
static void sort_rotations(const unsigned char *text, int *order, int *rank, int *other, int *count) {
    int classes = 256;
    memset(count, 0, sizeof(int) * 256);
    for (int i = 0; i < BLOCK; i++) count[text[i]]++;
    for (int i = 1; i < 256; i++) count[i] += count[i - 1];
    for (int i = BLOCK - 1; i >= 0; i--) order[--count[text[i]]] = i;
    rank[order[0]] = 0;
    classes = 1;
    for (int i = 1; i < BLOCK; i++) {
        classes += text[order[i]] != text[order[i - 1]];
        rank[order[i]] = classes - 1;
    }
    for (int len = 1; len < BLOCK && classes < BLOCK; len *= 2) {
        for (int i = 0; i < BLOCK; i++) {
            other[i] = order[i] - len;
            if (other[i] < 0) other[i] += BLOCK;
        }
        memset(count, 0, sizeof(int) * classes);
        for (int i = 0; i < BLOCK; i++) count[rank[i]]++;
        for (int i = 1; i < classes; i++) count[i] += count[i - 1];
        for (int i = BLOCK - 1; i >= 0; i--) order[--count[rank[other[i]]]] = other[i];
        other[order[0]] = 0;
        classes = 1;
        for (int i = 1; i < BLOCK; i++) {
            int a = order[i], b = order[i - 1];
            int differ = rank[a] != rank[b] || rank[(a + len) % BLOCK] != rank[(b + len) % BLOCK];
            classes += differ;
            other[a] = classes - 1;
        }
        memcpy(rank, other, sizeof(int) * BLOCK);
    }
}

static void move_to_front(struct block *block) {
    unsigned char recent[256];
    for (int i = 0; i < 256; i++) recent[i] = (unsigned char)i;
    for (int i = 0; i < BLOCK; i++) {
        unsigned char byte = block->last_column[i];
        int at = 0;
        while (recent[at] != byte) at++;
        memmove(recent + 1, recent, at);
        recent[0] = byte;
        block->frequencies[at]++;
        block->zeros += at == 0;
    }
}

static void *work(void *arg) {
    (void)arg;
    int *order = malloc(sizeof(int) * BLOCK), *rank = malloc(sizeof(int) * BLOCK);
    int *other = malloc(sizeof(int) * BLOCK), *count = malloc(sizeof(int) * BLOCK);
    for (;;) {
        pthread_mutex_lock(&mutex);
        int mine = next_block++;
        pthread_mutex_unlock(&mutex);
        if (mine >= BLOCKS) break;
        struct block *block = &blocks[mine];
        sort_rotations(block->text, order, rank, other, count);
        for (int i = 0; i < BLOCK; i++) {
            block->last_column[i] = block->text[(order[i] + BLOCK - 1) % BLOCK];
        }
        move_to_front(block);
    }
    free(order), free(rank), free(other), free(count);
    return NULL;
}

int main(void) {
    unsigned state = 1;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i].text = malloc(BLOCK);
        blocks[i].last_column = malloc(BLOCK);
        for (int at = 0; at < BLOCK; at++) {
            state = state * 1664525 + 1013904223;
            unsigned word = (state >> 16) % 500;
            blocks[i].text[at] = (unsigned char)(at % 7 == 0 ? ' ' : 'a' + word * word % 23);
        }
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    long zeros = 0;
    for (int i = 0; i < BLOCKS; i++) zeros += blocks[i].zeros;
    printf("%ld\n", zeros);
}
