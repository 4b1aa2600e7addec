/* >>wire: a program that sees another nanopb than the one it is linked with is told so, before any
 * stream of its own is at stake. */
#ifdef PB_NO_ERRMSG
#undef PB_NO_ERRMSG
#else
#define PB_NO_ERRMSG
#endif
#define EPCTX_STATIC
#define EPCTX_IMPLEMENTATION
#include "build.h"
#include "test.h"

TEST(open_tells) {
    epctx_model model;
    epctx_error error;
    CHECK_INT(epctx_model_open_memory(&model, "\x3a", 2, NULL, &error), EPCTX_ERR_CONFIG);
    CHECK_HAS(error.message, "PB_NO_ERRMSG");
    CHECK_INT(epctx_model_open_file(&model, "m.onnx", NULL, &error), EPCTX_ERR_CONFIG);
    CHECK_HAS(error.message, "m.onnx");
}

TEST(scan_tells) {
    pb_istream_t stream = pb_istream_from_buffer((const pb_byte_t *)"\x3a", 1);
    epctx_scan scan;
    epctx_error error;
    epctx_scan_begin_stream(&scan, &stream);
    CHECK_INT(epctx_scan_next(&scan, &error), EPCTX_SCAN_FAILED);
    CHECK_INT(error.status, EPCTX_ERR_CONFIG);
}

int main(int argc, char **argv) {
    RUN(open_tells);
    RUN(scan_tells);
    return test_end();
}
