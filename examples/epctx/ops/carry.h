/* carry.h - takes the context binaries and data files of models along: merge and split bring them
 * to the folder of the result. */
#ifndef EPCTX_OPS_CARRY_H
#define EPCTX_OPS_CARRY_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct carry {
    ops_report *report;
    epctx_model *result;
    const char *path;       /* where the result will be written */
    epctx_list files;       /* of the result */
    epctx_map names, paths; /* name in the result, canonical path -> number in `files` */
    epctx_map alike;        /* size -> first file; size and hash -> file, for repeated sizes */
    epctx_map made;         /* names of carry_new */
    epctx_error *error;
} carry;

/* `path` NULL: the path of `result`. All pointers are borrowed. */
void carry_begin(carry *c, ops_report *report, epctx_model *result, const char *path,
                 epctx_error *error);
/* Adds a context binary that the operation makes, of parts that are borrowed, under a name that no
 * model uses for another file. */
epctx_status carry_new(carry *c, epctx_str name, const epctx_span *parts, size_t count);
/* Adds the files of a model, number `part` of the operation, to those of the result. Where names
 * clash, renames them and updates the model. Merges equal files, but with `alone` not its context
 * binaries. Errors: NOT_FOUND for a required file, EXISTS for a clash with a file that cannot be
 * renamed. */
epctx_status carry_files(carry *c, epctx_model *model, size_t part, bool alone);

#ifdef __cplusplus
}
#endif

#endif
