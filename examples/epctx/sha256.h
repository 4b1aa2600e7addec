/* SHA-256 (FIPS 180-4), which names the shared assets of ORT's model packages. */
#ifndef EPCTX_CLI_SHA256_H
#define EPCTX_CLI_SHA256_H

#include <stddef.h>

/* The digest in 64 lower-case digits, terminated. */
void sha256_hex(const void *data, size_t size, char out[65]);

#endif
