/* inside.h - finds the context binary that a model names wrongly, by what is inside of it. */
#ifndef EPCTX_OPS_INSIDE_H
#define EPCTX_OPS_INSIDE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct binary_asker;

enum { INSIDE_NAMES = 4 }; /* that a message has room for */

/* A search among files of the folder where the missing one should be. */
typedef struct inside {
    epctx_model *model;
    const epctx_check_opts *check;
    const struct binary_asker *asker; /* ../binary/binary.h; may be NULL */
    epctx_error *error;
    const epctx_dependency *file; /* the missing one */
    const epctx_profile *profile; /* of the first node that names it */
    epctx_map nodes;              /* names of those that do */
    bool alone;                   /* no other context is missing */
    uint64_t before;              /* findings about binaries while it is missing */
    size_t fit, tried, unread;    /* files that fit, that do not, that tell nothing */
    epctx_str fits[INSIDE_NAMES], closed[INSIDE_NAMES]; /* the first that fit, that tell nothing */
    epctx_str other;                                    /* the first that does not fit, and why */
    char why[640];
} inside;

/* All pointers are borrowed. `alone`: no other context is missing. */
epctx_status inside_begin(inside *s, epctx_model *model, const epctx_dependency *file, bool alone,
                          const epctx_check_opts *check, const struct binary_asker *asker,
                          epctx_error *error);
/* Judges a file of the folder: whether lint would find binary and nodes to agree (E076 to E081).
 * The model is as before. Files are tried in order of their names, those alone that may be a
 * context of the EP. Errors: NOMEM. */
epctx_status inside_try(inside *s, epctx_str name);
/* The only file that fits; empty: none or several do, and `out` says so, or nothing. */
epctx_str inside_end(const inside *s, epctx_text *out);
/* The first of several candidates: counts one more, and "'a', 'b' and 3 more". */
void inside_note(epctx_str names[INSIDE_NAMES], size_t *count, epctx_str name);
void inside_put_names(epctx_text *out, const epctx_str names[INSIDE_NAMES], size_t count);

#ifdef __cplusplus
}
#endif

#endif
