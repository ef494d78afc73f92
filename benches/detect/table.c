// A hash table of counters with a mutex for every 64th of it, filled by four threads.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef LARGE // for as long as starting does not matter
enum { ROUNDS = 6000000 };
#else
enum { ROUNDS = 600000 };
#endif
enum { BUCKETS = 1 << 16, LOCKS = 64, THREADS = 4 };

struct entry {
    struct entry *next;
    unsigned long key;
    unsigned long count;
};

static struct entry *buckets[BUCKETS];
static pthread_mutex_t locks[LOCKS];

static void add(unsigned long key) {
    unsigned long hash = key * 0x9e3779b97f4a7c15ul >> 48;
    pthread_mutex_lock(&locks[hash % LOCKS]);
    struct entry *entry = buckets[hash];
    while (entry != NULL && entry->key != key) entry = entry->next;
    if (entry == NULL) {
        entry = malloc(sizeof *entry);
        entry->key = key;
        entry->count = 0;
        entry->next = buckets[hash];
        buckets[hash] = entry;
    }
    entry->count++;
    pthread_mutex_unlock(&locks[hash % LOCKS]);
}

static void *work(void *arg) {
    unsigned long state = (unsigned long)arg + 1;
    for (int i = 0; i < ROUNDS; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        add((state >> 33) % 100000);
    }
    return NULL;
}

int main(void) {
    for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], NULL);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    unsigned long sum = 0;
    for (int i = 0; i < BUCKETS; i++) {
        for (struct entry *entry = buckets[i]; entry != NULL; entry = entry->next) sum += entry->count;
    }
    printf("%lu\n", sum);
}
