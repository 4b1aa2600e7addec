/* Threads for the reference NPU: the parallel_fn of epctx_npu_run_opts. They live until the tool
 * ends. Between the commands of a network they look for work a while before they sleep: to be woken
 * takes longer than many a command. */
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 64, LOOKS = 2000 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    pthread_t threads[MOST_THREADS];
    uint32_t count; /* of threads besides the first */
    bool stop;
    /* The work under way: */
    void (*work_fn)(void *work, uint32_t i);
    void *work;
    uint32_t next, parts; /* not begun from `next` on */
    atomic_uint round;    /* one more for each work, and at the end */
    atomic_uint left;     /* parts that are not done */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .begin = PTHREAD_COND_INITIALIZER,
          .end = PTHREAD_COND_INITIALIZER};

/* Does what is left to begin. The caller holds the lock. */
static void help(void) {
    while (pool.next < pool.parts) {
        const uint32_t i = pool.next++;
        pthread_mutex_unlock(&pool.lock);
        pool.work_fn(pool.work, i);
        pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub(&pool.left, 1) == 1) pthread_cond_signal(&pool.end);
    }
}

static void *serve(void *unused) {
    unsigned seen = 0, looks;
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    while (!pool.stop) {
        help();
        seen = atomic_load(&pool.round);
        pthread_mutex_unlock(&pool.lock);
        for (looks = 0; looks < LOOKS && atomic_load(&pool.round) == seen; looks++) sched_yield();
        pthread_mutex_lock(&pool.lock);
        while (!pool.stop && atomic_load(&pool.round) == seen)
            pthread_cond_wait(&pool.begin, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

static void stop(void) {
    pthread_mutex_lock(&pool.lock);
    pool.stop = true;
    atomic_fetch_add(&pool.round, 1);
    pthread_cond_broadcast(&pool.begin);
    pthread_mutex_unlock(&pool.lock);
    while (pool.count > 0) pthread_join(pool.threads[--pool.count], NULL);
}

static void parallel(void *unused, uint32_t count, void (*work_fn)(void *work, uint32_t i),
                     void *work) {
    unsigned looks;
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    pool.work_fn = work_fn;
    pool.work = work;
    pool.next = 0;
    pool.parts = count;
    atomic_store(&pool.left, count);
    atomic_fetch_add(&pool.round, 1);
    pthread_cond_broadcast(&pool.begin);
    help();
    pthread_mutex_unlock(&pool.lock);
    for (looks = 0; looks < LOOKS && atomic_load(&pool.left) > 0; looks++) sched_yield();
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.left) > 0) pthread_cond_wait(&pool.end, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

epctx_npu_run_opts threads_opts(uint32_t count) {
    epctx_npu_run_opts opts;
    memset(&opts, 0, sizeof opts);
    if (count < 2) return opts;
    if (pool.count == 0) atexit(stop);
    while (pool.count + 1 < count && pool.count < MOST_THREADS &&
           pthread_create(&pool.threads[pool.count], NULL, serve, NULL) == 0)
        pool.count++;
    opts.parallel_fn = parallel;
    opts.threads = count;
    return opts;
}
