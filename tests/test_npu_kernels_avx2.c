/*
 * The kernels of epctx_npu.h for processors with AVX2 alone: the cases of
 * test_npu_kernels.c, also where this processor could do more.
 */
/* runs: once */
#define EPCTX_NPU_NO_AVX512
#define EPCTX_NPU_IMPLEMENTATION
#include "test_npu_kernels.c"
