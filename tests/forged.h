/* Bytes that XXH64 cannot tell apart: FORGED_COUNT runs of FORGED_SIZE bytes agree in all 64 bits
 * of the hash, with every seed below 2^47, such as an address. In each of the hash's four lanes the
 * first word puts one of FORGED_VALUES values into the 16 bits that the seed does not reach, the
 * second word takes it out again. */
#ifndef EPCTX_TESTS_FORGED_H
#define EPCTX_TESTS_FORGED_H

#include <stdint.h>

enum {
    FORGED_SIZE = 64,
    FORGED_VALUES = 18,
    FORGED_COUNT = FORGED_VALUES * FORGED_VALUES * FORGED_VALUES * FORGED_VALUES
};

/* The inverse of an odd number modulo 2^64. */
static uint64_t forged_inverse(uint64_t odd) {
    uint64_t x = odd;
    for (int i = 0; i < 6; i++) x *= 2 - odd * x;
    return x;
}

static void forged_word(char *out, uint64_t value) {
    for (int i = 0; i < 8; i++) out[i] = (char)(unsigned char)(value >> 8 * i);
}

static void forge(char out[FORGED_SIZE], uint32_t number) {
    const uint64_t p1 = UINT64_C(0x9E3779B185EBCA87), p2 = UINT64_C(0xC2B2AE3D27D4EB4F);
    const uint64_t start[4] = {p1 + p2, p2, 0, 0 - p1}; /* of the lanes, without the seed */
    for (int lane = 0; lane < 4; lane++, number /= FORGED_VALUES) {
        uint64_t value = number % FORGED_VALUES;
        forged_word(out + 8 * lane, ((value << 48) - start[lane]) * forged_inverse(p2));
        forged_word(out + 32 + 8 * lane, (0 - (value << 15) * p1) * forged_inverse(p2));
    }
}

#endif
