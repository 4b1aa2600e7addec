/* merge.h - merges several models, side by side or connected. */
#ifndef EPCTX_OPS_MERGE_H
#define EPCTX_OPS_MERGE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model to merge. `prefix` is added to the names of its nodes and values; NULL: only to names
 * that clash ("m2_" in the second model); "": a clash is an error. Names that are keys of a
 * compiled binary never change, and a clash of such names is an error. */
typedef struct epctx_part {
    epctx_model *model;
    const char *prefix;
} epctx_part;

#define EPCTX_ANY_PART SIZE_MAX

/* Connects an output of an earlier model to an input of a later one, by their names in these
 * models. `from` and `to` count from 0; EPCTX_ANY_PART means the last earlier model with that
 * output, or all later models with that input. */
typedef struct epctx_connection {
    size_t from;
    epctx_str output;
    size_t to;
    epctx_str input;
} epctx_connection;

/* What to do with a metadata key that two models store with different values. */
typedef enum epctx_metadata_policy {
    EPCTX_METADATA_REFUSE = 0,
    EPCTX_METADATA_FIRST, /* the value of the earlier model stays */
    EPCTX_METADATA_PREFIX /* the later key gets its model's prefix, again if the result clashes */
} epctx_metadata_policy;

typedef struct epctx_merge_opts {
    bool chain; /* connect each input to an earlier output of the same name */
    const epctx_connection *connections; /* in addition */
    size_t connection_count;
    bool keep_outputs; /* connected outputs stay outputs of the result */
    bool share_inputs; /* combine inputs of the same name and type */
    bool force_opset;  /* use the newer of two versions of an operator set */
    bool allow_stale;  /* accept binaries that do not match their build stamps */
    epctx_metadata_policy metadata;
    const char *output_path; /* where the result will be written, with its files beside it;
                                default: the path of the first model */
} epctx_merge_opts;

/* Adds the models parts[1..] to parts[0].model, side by side or connected (chain, connections).
 * Does not change the others, which must stay open as long as the result. The IR version is the
 * newest. Operator sets must have the same version unless one of the models does not use them.
 * Equal functions are stored once. Context binaries and external data that are not yet in the
 * folder of the result are in `out->files`, renamed if names clash. The result breaks no lint rule
 * that its parts keep. Training info cannot be merged.
 * Errors: EXISTS for a clash of names that cannot change; GRAPH for incompatible models (opsets,
 * functions, metadata, types of a connection, rules of the EP); NOT_FOUND for a connection without
 * a matching output or input, or a missing file; UNSUPPORTED for training info; VERSION for a
 * binary that does not match the build stamp (epctx_model_check_binary), because the result has no
 * stamp. `opts` and `out` may be NULL. */
epctx_status epctx_merge(const epctx_part *parts, size_t count, const epctx_merge_opts *opts,
                         epctx_combined *out, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
