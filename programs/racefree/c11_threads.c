// C11 threads: mutex, condition variable, once, thread-specific storage.
//
//~ verdict: race-free
//~ topic: C11 threads
//~ source: counter and flag are under the mutex; call_once orders its function before each return
#include <stdio.h>
#include <threads.h>

static mtx_t lock;
static cnd_t changed;
static once_flag once = ONCE_FLAG_INIT;
static tss_t key;
static thread_local int own;
static int counter, started, initial;

static void initialise(void) {
    initial = 100;
}

static int work(void *argument) {
    int *mine = argument;
    call_once(&once, initialise);
    tss_set(key, mine);
    mtx_lock(&lock);
    started++;
    cnd_broadcast(&changed);
    while (started < 3) cnd_wait(&changed, &lock);
    counter += initial;
    mtx_unlock(&lock);
    own += *(int *)tss_get(key);
    return own;
}

int main(void) {
    thrd_t threads[3];
    int inputs[3] = {1, 2, 3}, sum = 0;
    mtx_init(&lock, mtx_plain);
    cnd_init(&changed);
    tss_create(&key, NULL);
    for (int i = 0; i < 3; i++) thrd_create(&threads[i], work, &inputs[i]);
    for (int i = 0; i < 3; i++) {
        int result;
        thrd_join(threads[i], &result);
        sum += result;
    }
    printf("%d %d\n", counter, sum);
    return 0;
}
