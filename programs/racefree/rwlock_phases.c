// Readers and writers of a table behind a readers-writer lock.
//
//~ verdict: race-free
//~ topic: rwlock
//~ source: writers hold the lock exclusively, readers hold it shared; a checksum would show a
//~ | torn state
#include <pthread.h>
#include <stdio.h>

enum { CELLS = 8, ROUNDS = 20 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int cells[CELLS];

static void *writer(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_rwlock_wrlock(&lock);
        for (int i = 0; i < CELLS; i++) cells[i]++;
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}

static void *reader(void *torn) {
    for (int round = 0; round < ROUNDS; round++) {
        pthread_rwlock_rdlock(&lock);
        for (int i = 1; i < CELLS; i++) *(int *)torn += cells[i] != cells[0];
        pthread_rwlock_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t writers[2], readers[2];
    int torn[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        pthread_create(&writers[i], NULL, writer, NULL);
        pthread_create(&readers[i], NULL, reader, &torn[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(writers[i], NULL);
        pthread_join(readers[i], NULL);
    }
    printf("cells %d, torn %d\n", cells[0], torn[0] + torn[1]);
    return 0;
}
