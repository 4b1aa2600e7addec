/* The reference NPU behind the commands that compile and run. */
#include "cli.h"
#include "epctx_npu.h"

epctx_status cli_backend(const char *arch, epctx_backend *backend, epctx_error *error)
{
    return epctx_npu_backend(arch, backend, error);
}
