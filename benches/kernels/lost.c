/* Four threads that lose each other's updates: short, and every schedule comes to something else. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 2000 };

static volatile long counter;

static void *count(void *unused) {
  for (int round = 0; round < ROUNDS; round++) counter = counter + 1;
  return unused;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, count, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  printf("%ld\n", counter);
  return 0;
}
