/* Threads for the reference NPU. */
#ifndef THREADS_H
#define THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* Before the first run: `count` threads, this one included. With fewer, as the system has no more,
 * everything runs all the same. */
void threads_start(uint32_t count);
/* A parallel_fn of epctx_npu_run_opts. */
void threads_run(void *unused, uint32_t count, void (*work_fn)(void *work, uint32_t i), void *work);

#endif
