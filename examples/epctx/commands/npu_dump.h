/* What `epctx npu-dump` prints, for other commands. */
#ifndef EPCTX_CLI_NPU_DUMP_H
#define EPCTX_CLI_NPU_DUMP_H

#include "core/cli.h"
#include "epctx_npu.h"

/* One of the "graphs" of `epctx npu-dump --json`; `key` NULL: in an array. `times`, one for each
 * command in nanoseconds, may be NULL. */
void npu_dump_put_graph(json_writer *w, const char *key, const epctx_npu_graph *graph,
                        const double *times);

#endif
