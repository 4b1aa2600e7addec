/* >>kernels: with EPCTX_NPU_FIXED_POINT, bytes are requantized without floats, to the same bits. */
#define EPCTX_NPU_IMPLEMENTATION
#define EPCTX_NPU_NO_COMPILER
#define EPCTX_NPU_NO_SIMD
#define EPCTX_NPU_FIXED_POINT
#include "test.h"

#include "epctx_npu.h"

static uint32_t seed = 1;

static uint32_t word(void) {
    const uint32_t high = seed = seed * 1664525u + 1013904223u;
    seed = seed * 1664525u + 1013904223u;
    return (high & 0xffff0000u) | seed >> 16;
}

/* 2^-exponent times 1 .. 2, now and then exactly, so that there are ties. */
static float scale_near(int exponent) {
    const uint32_t exact = word() % 4 == 0 ? 0x600000u : 0x7fffffu;
    return epctx__float_of((uint32_t)(127 - exponent) << 23 | (word() & exact) |
                           (word() % 8 == 0 ? 0x80000000u : 0));
}

static epctx__requant steps_of(void) {
    epctx__requant s = {EPCTX_ONNX_UINT8, 0, 0, 255};
    if (word() % 2 == 0) s.type = EPCTX_ONNX_INT8, s.low = -128, s.high = 127;
    s.zero = s.low + (int32_t)(word() % 256);
    if (word() % 4 == 0) s.low = s.zero; /* a Relu */
    return s;
}

/* A sum of any size with a scale that makes a step, or a few hundred, of it. */
TEST(fixed_requantize) {
    int i, wrong = 0, inner = 0;
    for (i = 0; i < 3000000; i++) {
        const int bits = (int)(word() % 32);
        const uint32_t sum = (word() >> bits) * (word() % 2 == 0 ? 1u : UINT32_MAX);
        const float scale = scale_near(31 - bits - (int)(word() % 14) + 3);
        const epctx__requant s = steps_of();
        const uint8_t got = epctx__requantize(&s, sum, scale);
        const volatile float product = (float)(int32_t)sum * scale;
        const uint8_t want = (uint8_t)epctx__steps(product, (float)(s.low - s.zero),
                                                   (float)(s.high - s.zero), (float)s.zero);
        inner += want != (uint8_t)s.low && want != (uint8_t)s.high;
        if (got != want && wrong++ < 5)
            printf("note %d * %g: %d, not %d\n", (int)(int32_t)sum, (double)scale, got, want);
    }
    CHECK(wrong == 0, "%d of %d differ", wrong, i);
    CHECK(inner > i / 2, "only %d of %d within the limits", inner, i);
}

/* All pairs of bytes, of scales that are far apart, near or equal. */
TEST(fixed_sums) {
    static uint8_t a[65536], b[65536], y[65536];
    epctx__args args;
    int i, round, wrong = 0;
    memset(&args, 0, sizeof args);
    args.in[0] = a;
    args.in[1] = b;
    args.out[0] = y;
    for (i = 0; i < 65536; i++) a[i] = (uint8_t)(i >> 8), b[i] = (uint8_t)(i & 255);
    for (round = 0; round < 100; round++) {
        epctx__integer_add p = {0};
        p.count = 65536;
        p.product = (uint32_t)round % 2;
        p.a_flip = word() % 2 * 0x80;
        p.b_flip = word() % 2 * 0x80;
        p.a_zero = (int32_t)(word() % 256);
        p.b_zero = (int32_t)(word() % 256);
        p.a_scale = scale_near((int)(word() % 10));
        p.b_scale = word() % 4 == 0 ? p.a_scale : scale_near((int)(word() % (round % 3 ? 10 : 60)));
        p.y_scale = (p.product ? p.a_scale * p.b_scale : p.a_scale) * (float)(1 + word() % 64) / 4;
        p.y = steps_of();
        epctx__run_integer_add(&p, &args);
        for (i = 0; i < 65536; i++) {
            const volatile float one = (float)((a[i] ^ (int)p.a_flip) - p.a_zero) * p.a_scale;
            const volatile float two = (float)((b[i] ^ (int)p.b_flip) - p.b_zero) * p.b_scale;
            const volatile float both = p.product ? one * two : one + two;
            const volatile float v = both / p.y_scale;
            wrong += y[i] != (uint8_t)epctx__steps(v, (float)(p.y.low - p.y.zero),
                                                   (float)(p.y.high - p.y.zero), (float)p.y.zero);
        }
    }
    CHECK(wrong == 0, "%d of %d differ", wrong, 65536 * round);
}

int main(int argc, char **argv) {
    RUN(fixed_requantize);
    RUN(fixed_sums);
    return test_end();
}
