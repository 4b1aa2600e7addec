/* What the fuzzers share. */
#ifndef EPCTX_FUZZ_H
#define EPCTX_FUZZ_H

#include "epctx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A finding tells the line: a stack is not always there. */
#define require(condition) require_at(__FILE__, __LINE__, #condition, condition)

static inline void require_at(const char *file, int line, const char *text, bool condition) {
    if (condition) return;
    fprintf(stderr, "ERROR: %s:%d: %s\n", file, line, text);
    abort();
}

/* canonical_fn of an io without links: every path is canonical. */
static inline epctx_status same_path(void *user, const char *path, char *out, size_t capacity,
                                     epctx_error *error) {
    (void)user;
    if (strlen(path) >= capacity) return epctx_fail(error, EPCTX_ERR_LIMIT, "too long");
    memcpy(out, path, strlen(path) + 1);
    return EPCTX_OK;
}

#endif
