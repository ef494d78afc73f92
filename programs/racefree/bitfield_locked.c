// The bit-fields of effects/bitfield_lost_update.c under a mutex, and a third one in a unit of its own.
//
//~ verdict: race-free
//~ topic: bit-fields, mutex
//~ source: the bits that share a memory location are under the mutex; a field of width zero
//~ | separates the third
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    unsigned opened : 1;
    unsigned checked : 1;
    unsigned : 0;
    unsigned painted : 1;
} door;

static void *open_it(void *unused) {
    pthread_mutex_lock(&lock);
    door.opened = 1;
    pthread_mutex_unlock(&lock);
    door.painted = 1;
    return unused;
}

static void *check_it(void *unused) {
    pthread_mutex_lock(&lock);
    door.checked = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, open_it, NULL);
    pthread_create(&threads[1], NULL, check_it, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%u %u %u\n", door.opened, door.checked, door.painted);
    return 0;
}
