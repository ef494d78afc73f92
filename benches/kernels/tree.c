// A binary tree of strings: pointer chasing, malloc, indirect calls through a comparison function.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *left, *right; char key[24]; long count; };
static int compare(const char *a, const char *b) { return strcmp(a, b); }
static int (*volatile chosen)(const char *, const char *) = compare;
static struct node *insert(struct node *root, const char *key) {
    struct node **at = &root;
    while (*at) {
        int order = chosen(key, (*at)->key);
        if (order == 0) { (*at)->count++; return root; }
        at = order < 0 ? &(*at)->left : &(*at)->right;
    }
    *at = calloc(1, sizeof **at);
    strcpy((*at)->key, key);
    (*at)->count = 1;
    return root;
}
int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1200000;
    struct node *root = NULL;
    unsigned x = 1;
    for (long i = 0; i < n; i++) {
        char key[24];
        x = x * 1664525u + 1013904223u;
        snprintf(key, sizeof key, "k%u", x >> 16);
        root = insert(root, key);
    }
    printf("%s %ld\n", root->key, root->count);
}
