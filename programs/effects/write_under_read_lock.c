// A counter is incremented under a lock that is only held for reading.
//
//~ verdict: racy
//~ topic: rwlock, lost update
//~ twin: racefree/version_rwlock.c
//~ race a: the counter
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: readers do not exclude, nor order, each other
#include <pthread.h>
#include <stdio.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int lookups;

static void *look_up(void *unused) {
    pthread_rwlock_rdlock(&lock);
    lookups++;                //~ RACE(a) update
    pthread_rwlock_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, look_up, NULL);
    pthread_create(&threads[1], NULL, look_up, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", lookups);
    return 0;
}
