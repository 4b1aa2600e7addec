/* Threads for the reference NPU. */
#ifndef THREADS_H
#define THREADS_H

#include "epctx_npu.h"

/* Options of a run on `count` threads, this one included; starts the others. With fewer, as the
 * system has no more, everything runs all the same. */
epctx_npu_run_opts threads_opts(uint32_t count);

#endif
