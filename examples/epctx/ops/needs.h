/* needs.h - every file that a model needs: those that it names, those that its context binaries
 * refer to, and the data of a source model that loading reads. Whatever lists, copies, checks or
 * replaces files asks here. */
#ifndef EPCTX_NEEDS_H
#define EPCTX_NEEDS_H

#include "../binary/binary.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The attribute of a file to which a binary refers: it stands in none. */
#define NEEDS_WEIGHTS "weights"

/* epctx_model_files, and behind its files, each once, as companions, whose names are fixed:
 *  - those that context binaries, embedded or not, refer to. OpenVINO looks for weights beside the
 *    model, wherever the binary is (1.8.1). A file that ends before what is needed of it has no
 *    path: EPCTX_ERR_CONTEXT;
 *  - the external data of a required source model, named from the model's folder.
 * Binaries and sources that cannot be read refer to nothing. */
epctx_status needs_of_model(const epctx_model *model, const epctx_check_opts *opts,
                            epctx_arena *arena, epctx_dependency **out, size_t *count,
                            epctx_error *error);
/* Names of those that a stamp of the EP `ep` notes besides its binaries (epctx_stamp_opts.needs):
 * to which they refer, and a required source model with its data where they are. */
epctx_status needs_to_stamp(const epctx_model *model, const char *ep, epctx_arena *arena,
                            const char *const **out, epctx_error *error);
/* The first to which a binary of the EP refers, and of which its stamp has no hash; NULL: none, or
 * no memory. `beside`: the stamp's data is that beside the model, too. */
const char *needs_unstamped(const epctx_model *model, const char *ep, bool beside,
                            epctx_arena *arena);
/* Those of a context binary on its own, beside it. `file` is its path. */
epctx_status needs_of_binary(const char *file, const binary_facts *facts, epctx_arena *arena,
                             epctx_dependency **out, size_t *count, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
