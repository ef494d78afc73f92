// Two threads set different bit-fields, which share a byte: one of the updates is lost.
//
//~ verdict: racy
//~ topic: bit-fields, lost update
//~ twin: racefree/bitfield_locked.c
//~ race a: the byte with both bits
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: setting a bit-field reads and writes the bits beside it; C11 3.14 makes them one
//~   | memory location
#include <pthread.h>
#include <stdio.h>

static struct {
    unsigned opened : 1;
    unsigned checked : 1;
} door;

static void *open_it(void *unused) {
    door.opened = 1;          //~ RACE(a) update
    return unused;
}

static void *check_it(void *unused) {
    door.checked = 1;         //~ RACE(a) update
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, open_it, NULL);
    pthread_create(&threads[1], NULL, check_it, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("opened %u, checked %u\n", door.opened, door.checked);
    return 0;
}
