// The list of effects/list_insert.c with compare and exchange.
//
//~ verdict: race-free
//~ topic: lost update, atomics
//~ source: the head is atomic; a node belongs to its thread until the exchange publishes it
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct node {
    struct node *next;
};

static _Atomic(struct node *) head;
static struct node nodes[2];

static void *push(void *argument) {
    struct node *node = argument;
    struct node *seen = atomic_load(&head);
    do {
        node->next = seen;
    } while (!atomic_compare_exchange_weak(&head, &seen, node));
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    int length = 0;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, push, &nodes[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (struct node *node = head; node != NULL; node = node->next) length++;
    printf("length %d\n", length);
    return 0;
}
