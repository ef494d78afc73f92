// Merge sort that forks: each half of a large range is sorted by a thread of its own.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LARGE // as large as programs are whose memory matters
enum { N = 1 << 23, DEPTH = 3 };
#else
enum { N = 1 << 20, DEPTH = 3 };
#endif

struct range {
    int *from, *scratch;
    long len;
    int depth;
};

static void sort(struct range range);

static void *sort_half(void *arg) {
    sort(*(struct range *)arg);
    return NULL;
}

static void merge(struct range range, long middle) {
    long left = 0, right = middle, at = 0;
    while (left < middle && right < range.len) {
        range.scratch[at++] = range.from[left] <= range.from[right] ? range.from[left++] : range.from[right++];
    }
    memcpy(range.scratch + at, range.from + left, sizeof(int) * (middle - left));
    at += middle - left;
    memcpy(range.scratch + at, range.from + right, sizeof(int) * (range.len - right));
    memcpy(range.from, range.scratch, sizeof(int) * range.len);
}

static void insertion_sort(struct range range) {
    for (long i = 1; i < range.len; i++) {
        int value = range.from[i];
        long at = i;
        for (; at > 0 && range.from[at - 1] > value; at--) range.from[at] = range.from[at - 1];
        range.from[at] = value;
    }
}

static void sort(struct range range) {
    if (range.len <= 16) {
        insertion_sort(range);
        return;
    }
    long middle = range.len / 2;
    struct range left = {range.from, range.scratch, middle, range.depth - 1};
    struct range right = {range.from + middle, range.scratch + middle, range.len - middle, range.depth - 1};
    if (range.depth > 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, sort_half, &left);
        sort(right);
        pthread_join(thread, NULL);
    } else {
        sort(left);
        sort(right);
    }
    merge(range, middle);
}

int main(void) {
    struct range all = {malloc(sizeof(int) * N), malloc(sizeof(int) * N), N, DEPTH};
    unsigned state = 1;
    for (long i = 0; i < N; i++) {
        state = state * 1664525 + 1013904223;
        all.from[i] = (int)(state >> 1);
    }
    sort(all);
    for (long i = 1; i < N; i++) {
        if (all.from[i - 1] > all.from[i]) return 1;
    }
    printf("%d\n", all.from[N / 2]);
}
