/* beside.h - the files of a folder, for whoever looks for one that is missing: listed once, each
 * opened at most once for each thing that is asked of it. */
#ifndef EPCTX_OPS_BESIDE_H
#define EPCTX_OPS_BESIDE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct beside_file {
    epctx_str name;
    uint64_t size;
    /* private */
    uint64_t hash;
    bool is_hashed, is_looked, is_context;
    const char *profile; /* of a context whose format is an EP's */
} beside_file;

/* Of the folder that was asked for last: models of one folder follow each other. */
typedef struct beside {
    const char *folder; /* NULL: none */
    epctx_list files;   /* of beside_file, by name */
    epctx_arena arena;
} beside;

void beside_init(beside *b, const epctx_allocator *allocator);
void beside_free(beside *b);
/* The files of `folder`, as the io of `model` sees them; none where it cannot be listed. Errors:
 * NOMEM. */
epctx_status beside_list(beside *b, const epctx_model *model, const char *folder,
                         epctx_error *error);
/* Whether a file has size and hash of a line of a build stamp. */
bool beside_has_bytes(beside *b, const epctx_model *model, beside_file *file,
                      const epctx_stamp_line *line);
/* Whether it may be a context binary of the EP. */
bool beside_may_be(beside *b, const epctx_model *model, beside_file *file,
                   const epctx_profile *profile);

#ifdef __cplusplus
}
#endif

#endif
