/* A program outside this tree, C99 and C++17, that uses both headers: tests/test_install.sh,
 * tests/packages.sh. */
#include <epctx.h>
#include <epctx_npu.h>

#include <stdio.h>

int main(void) {
    static const unsigned char bytes[] = {0x08, 0x0a, 0x3a, 0x03, 0x12, 0x01, 'g'};
    epctx_model model;
    epctx_npu npu;
    epctx_backend backend;
    epctx_error error;
    if (epctx_npu_init(&npu, NULL, &backend, &error) != EPCTX_OK ||
        epctx_model_open_memory(&model, bytes, sizeof bytes, NULL, &error) != EPCTX_OK)
        return puts(error.message), 1;
    printf("IR version %d\n", (int)epctx_model_read(&model).ir_version);
    epctx_model_close(&model);
    return 0;
}
