/* Five data races, from the worst that `verdict` tells apart to the harmless ones.
 *
 *     cc -g -pthread examples/classes.c -o classes
 *
 * Nothing goes wrong when it is run like this: main is always first. The races are there all the same. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct order {
    int number;
};

static struct order *order;  /* spec-violated: the worker takes it away, perhaps before main has looked */
static int delivered;        /* output-differs: printed by main, perhaps before the worker has counted */
static int price;            /* single-ordering: the worker does not look before main has opened */
static volatile int opened;  /* k-witness-harmless: the worker that reads too early reads again */
static int used;             /* k-witness-harmless: both write the same, and nobody minds who is last */
static int paid;             /* the worker's own: no race */

static void *worker(void *unused)
{
    used = 1;
    while (!opened)
        ;
    paid = price;
    delivered = 1;
    order = NULL;
    return unused;
}

int main(void)
{
    pthread_t thread;

    order = malloc(sizeof *order);
    order->number = 7;
    pthread_create(&thread, NULL, worker, NULL);

    used = 1;
    price = 30;
    opened = 1;
    printf("delivered: %d\n", delivered);
    printf("order: %d\n", order->number);

    pthread_join(thread, NULL);
    return 0;
}
