/* around.h - where a file may be that is not where a model names it. */
#ifndef EPCTX_OPS_AROUND_H
#define EPCTX_OPS_AROUND_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum around_kind {
    AROUND_NOWHERE = 0,
    AROUND_LETTERS, /* in other letters: written where capitals do not count */
    AROUND_FOLDER,  /* in the folder bin */
    AROUND_PARTLY   /* a download that did not end; it is no such file */
} around_kind;

/* Looks for `name` in a folder, into `text` (of EPCTX_PATH_MAX), as the model would name it. Lists
 * the folder once. */
around_kind around_find(const epctx_io *io, const char *folder, epctx_str name, uint32_t flags,
                        char *text);

#ifdef __cplusplus
}
#endif

#endif
