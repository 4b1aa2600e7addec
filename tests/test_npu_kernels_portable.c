/*
 * The kernels of epctx_npu.h in their portable form: the cases of
 * test_npu_kernels.c without the faster loops that the processor may offer.
 */
/* runs: once */
#define EPCTX_NPU_NO_SIMD
#define EPCTX_NPU_IMPLEMENTATION
#include "test_npu_kernels.c"
