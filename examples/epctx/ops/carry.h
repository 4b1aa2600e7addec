/* carry.h - context binaries and data files that go along with models: merge and split bring them to
 * the folder of the result. */
#ifndef EPCTX_OPS_CARRY_H
#define EPCTX_OPS_CARRY_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct carry {
    ops_report *report;
    epctx_model *result;
    const char *path;        /* where the result will be written */
    epctx_list files;        /* of the result */
    epctx_map names, paths;  /* name in the result, canonical path -> number in `files` */
    epctx_map alike;         /* size -> the first of it; size and hash, of sizes that occur again */
    epctx_error *error;
} carry;

/* `path` NULL: that of the model. Everything that is pointed to is borrowed. */
void carry_begin(carry *c, ops_report *report, epctx_model *result, const char *path,
                 epctx_error *error);
/* Takes the files of a model, number `part` of the operation, among those of the result, and writes
 * their new names into it where names clash. Equal files become one; with `alone` its context
 * binaries do not. Errors: NOT_FOUND for one that loading needs, EXISTS for one that clashes and
 * cannot have another name. */
epctx_status carry_files(carry *c, epctx_model *model, size_t part, bool alone);

#ifdef __cplusplus
}
#endif

#endif
