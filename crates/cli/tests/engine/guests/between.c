// No data race: every access to the balance is under the lock. But looking at it and taking from it belong together, and
// the argument says whether they are. With "together", nobody can come between.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;
static int together;
static volatile long work;

static void release(void) {
    if (!together) pthread_mutex_unlock(&lock);
}

static void take_again(void) {
    if (!together) pthread_mutex_lock(&lock);
}

static void *withdraw(void *unused) {
    pthread_mutex_lock(&lock);
    int enough = balance >= 80; // looks
    release();
    take_again();
    if (enough) balance -= 80; // takes
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *charge(void *unused) {
    for (int i = 0; i < 100000; i++) work++;
    pthread_mutex_lock(&lock);
    if (balance >= 40) balance -= 40; // charges
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    together = argc > 1 && !strcmp(argv[1], "together");
    pthread_create(&threads[0], NULL, withdraw, NULL);
    pthread_create(&threads[1], NULL, charge, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert(balance >= 0);
    printf("%d\n", balance);
    return 0;
}
