/* epctx diff: texts about a model, for a moment or as long as what is known of it. */
#define _POSIX_C_SOURCE 200809L

#include "diff_internal.h"

#include <stdarg.h>
#include <stdio.h>

epctx_str diff_text(facts *f, const char *format, ...) {
    char *out = f->texts[f->turn++ % 16];
    va_list args;
    va_start(args, format);
    vsnprintf(out, sizeof f->texts[0], format, args);
    va_end(args);
    return epctx_str_of(out);
}

const char *diff_keep(facts *f, epctx_str made) {
    const char *copy = made.size > 0 ? epctx_arena_copy(&f->arena, made) : "";
    if (copy == NULL) f->short_of_memory = true;
    return copy != NULL ? copy : "";
}
