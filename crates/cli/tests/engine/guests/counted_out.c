// Two owners of a buffer: each uses it, then gives up its share. The count is atomic, the use is not protected at all. In a run
// in which one owner is done before the other begins, the count orders them: nothing races.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int owners = 2;
static int used;
static int divisor = 1;

static void *use_it(void *unused) {
    atomic_fetch_add(&owners, 1);
    divisor = 0;
    used++;
    divisor = 1;
    atomic_fetch_sub(&owners, 1);
    return unused;
}

static void *look_at_it(void *unused) {
    atomic_fetch_add(&owners, 1);
    used += 10 / divisor;
    atomic_fetch_sub(&owners, 1);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, use_it, NULL);
    pthread_create(&threads[1], NULL, look_at_it, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("%d\n", used);
    return 0;
}
