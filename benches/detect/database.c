// Four threads share one connection of SQLite in serialised mode.
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef ROWS
#ifdef LARGE // as large as programs are whose memory matters
#define ROWS 300000
#else
#define ROWS 30000
#endif
#endif
enum { THREADS = 4 };

static sqlite3 *database;

static void must(int result, int wanted) {
    if (result != wanted) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(database));
        exit(1);
    }
}

static void *fill(void *arg) {
    sqlite3_stmt *insert;
    must(sqlite3_prepare_v2(database, "insert into t(a, b) values(?, ?)", -1, &insert, NULL), SQLITE_OK);
    for (long i = 0; i < ROWS; i++) {
        char text[32];
        long number = i * THREADS + (long)arg;
        int len = snprintf(text, sizeof text, "row %ld", number * 7919 % 100003);
        sqlite3_bind_int64(insert, 1, number);
        sqlite3_bind_text(insert, 2, text, len, SQLITE_TRANSIENT);
        must(sqlite3_step(insert), SQLITE_DONE);
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);
    return NULL;
}

int main(void) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    must(sqlite3_open_v2(":memory:", &database, flags, NULL), SQLITE_OK);
    must(sqlite3_exec(database, "create table t(a integer primary key, b text)", NULL, NULL, NULL), SQLITE_OK);
    must(sqlite3_exec(database, "begin", NULL, NULL, NULL), SQLITE_OK);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, fill, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    must(sqlite3_exec(database, "commit", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_stmt *count;
    const char *query = "select count(*), sum(length(x.b)) from t x join t y on x.a = y.a * 2";
    must(sqlite3_prepare_v2(database, query, -1, &count, NULL), SQLITE_OK);
    must(sqlite3_step(count), SQLITE_ROW);
    printf("%d %d\n", sqlite3_column_int(count, 0), sqlite3_column_int(count, 1));
    sqlite3_finalize(count);
    sqlite3_close(database);
}
