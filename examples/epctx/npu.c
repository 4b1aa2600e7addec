/* The reference NPU behind the commands that compile and run. */
#include "cli.h"
#include "epctx_npu.h"

#include <string.h>

static epctx_npu npu; /* the backend borrows it; one is enough for one command */

epctx_status cli_backend(const char *arch, epctx_backend *backend, epctx_error *error)
{
    epctx_npu_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.architecture = arch;
    opts.check_weights = true; /* who comes here with a file suspects it */
    return epctx_npu_init(&npu, &opts, backend, error);
}

void cli_weight_bytes(uint64_t *stored, uint64_t *shared)
{
    *stored = npu.stats.weight_size;
    *shared = npu.stats.weight_saved;
}
