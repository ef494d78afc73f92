// Two threads push a node onto a list without a lock: one node may be lost.
//
//~ verdict: racy
//~ topic: lost update, output
//~ twin: racefree/list_insert_cas.c
//~ race a: the head: read for the link, and written
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: both nodes link to the old head, so the list keeps only one of them
//~ race b: the head: both writes
//~   real: yes
//~   observed: always
//~   class: output-differs
//~   replay: state-change
//~   needs: none
//~   source: the later write drops the earlier node if it linked to the old head
#include <pthread.h>
#include <stdio.h>

struct node {
    struct node *next;
};

static struct node *volatile head;
static struct node nodes[2];

static void *push(void *argument) {
    struct node *node = argument;
    node->next = head;        //~ RACE(a) read
    head = node;              //~ RACE(a) write, RACE(b) write
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
