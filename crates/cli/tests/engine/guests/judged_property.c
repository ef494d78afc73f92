/* A program that does nothing wrong that anybody could see: only what its author wants to hold tells. */
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int balance = 10;
static volatile int lowest;
int verdict_invariant_the_books_balance(void) { return lowest != 20; }
static void *withdraw(void *unused) {
    balance = 5;
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, withdraw, NULL);
    for (volatile int i = 0; i < 1000000; i++) { }
    lowest = 2 * balance;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    lowest = 0;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
