/* What an application does: epctx_open_or_compile, for judge/files.py.
 *
 *     opener open-or-compile MODEL */
#include "epctx.h"
#include "epctx_npu.h"
#include "examples/epctx/ops/cache.h"

#include <stdio.h>

static int fail(const epctx_error *error) {
    fprintf(stderr, "epctx: %s\n", error->message);
    return 1;
}

int main(int argc, char **argv) {
    static epctx_opened opened;
    static epctx_npu npu;
    epctx_backend backend;
    epctx_error error;
    epctx_status status;
    if (argc != 3) return 2;
    status = epctx_npu_init(&npu, NULL, &backend, &error);
    if (status == EPCTX_OK)
        status = epctx_open_or_compile(&opened, argv[2], &backend, NULL, &error);
    epctx_opened_close(&opened);
    return status == EPCTX_OK ? 0 : fail(&error);
}
