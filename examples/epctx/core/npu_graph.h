/* One graph of the reference NPU as JSON: for `epctx npu-dump` and the page of `epctx view`. */
#ifndef EPCTX_CLI_NPU_GRAPH_H
#define EPCTX_CLI_NPU_GRAPH_H

#include "epctx_npu.h"
#include "json_writer.h"

/* `key` NULL: in an array. `times`, one for each command in nanoseconds, may be NULL. */
void npu_graph_put(json_writer *w, const char *key, const epctx_npu_graph *graph,
                   const double *times);

#endif
