/* Threads whose short sleeps and timed waits are over while another one computes, asks the kernel and wakes waiters. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int over, woken, late;

static void *sleeper(void *unused)
{
    for (int i = 0; i < 40; i++)
        usleep(20 + 7 * i);
    return unused;
}

static void *waiter(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (!over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 30000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (pthread_cond_timedwait(&changed, &mutex, &until) == ETIMEDOUT)
            late++;
        else
            woken++;
    }
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    volatile unsigned sum = 0;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i % 2 ? waiter : sleeper, NULL);
    for (int i = 0; i < 300; i++) {
        for (int j = 0; j < 200 + 97 * (i % 30); j++)
            sum += j;
        syscall(SYS_getpid);
        pthread_cond_signal(&changed);
    }
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_mutex_unlock(&mutex);
    pthread_cond_broadcast(&changed);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("woken %d, late %d\n", woken, late);
    return 0;
}
