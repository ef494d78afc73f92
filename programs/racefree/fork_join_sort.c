// A merge sort that creates a thread for each half.
//
//~ verdict: race-free
//~ topic: create and join
//~ source: each thread owns its part of the array from its creation to its join
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 64, SMALLEST = 8 };

struct part {
    int *items;
    int count;
};

static void merge(int *items, int half, int count) {
    int merged[ITEMS], left = 0, right = half;
    for (int i = 0; i < count; i++) {
        int take_left = right == count || (left < half && items[left] <= items[right]);
        merged[i] = items[take_left ? left++ : right++];
    }
    memcpy(items, merged, (size_t)count * sizeof *items);
}

static void *sort(void *argument) {
    struct part *part = argument;
    int half = part->count / 2;
    if (part->count < 2) return NULL;
    struct part left = {part->items, half}, right = {part->items + half, part->count - half};
    if (part->count > SMALLEST) {
        pthread_t thread;
        pthread_create(&thread, NULL, sort, &left);
        sort(&right);
        pthread_join(thread, NULL);
    } else {
        sort(&left);
        sort(&right);
    }
    merge(part->items, half, part->count);
    return NULL;
}

int main(void) {
    int items[ITEMS], sorted = 1;
    unsigned random = 12345;
    for (int i = 0; i < ITEMS; i++) items[i] = (int)((random = random * 1103515245 + 12345) >> 16);
    struct part all = {items, ITEMS};
    sort(&all);
    for (int i = 1; i < ITEMS; i++) sorted &= items[i - 1] <= items[i];
    printf("sorted %d, first %d\n", sorted, items[0]);
    return 0;
}
