/* merge.h - several models become one, side by side or one behind the other. */
#ifndef EPCTX_OPS_MERGE_H
#define EPCTX_OPS_MERGE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model of a merge. `prefix` goes in front of the names of its nodes and values; NULL: a name
 * gets a prefix only where it clashes ("m2_" in the second model); "": a clash is an error. Names
 * that are keys of a compiled binary keep what they are, and a clash of such names is an error. */
typedef struct epctx_part {
    epctx_model *model;
    const char *prefix;
} epctx_part;

#define EPCTX_ANY_PART SIZE_MAX

/* An output of an earlier model that feeds an input of a later one, by their names in the models.
 * Numbers count from 0; EPCTX_ANY_PART: the last earlier model that has the output, every later
 * model that has the input. */
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
    EPCTX_METADATA_PREFIX /* the later one gets the prefix of its model in front of the key, once
                             more when that key has another value, too */
} epctx_metadata_policy;

typedef struct epctx_merge_opts {
    bool chain; /* every input that has the name of an earlier output is fed by it */
    const epctx_connection *connections; /* and these */
    size_t connection_count;
    bool keep_outputs; /* outputs that feed an input stay outputs of the result */
    bool share_inputs; /* inputs of the same name and type become one */
    bool force_opset;  /* of different versions of an operator set take the newer one */
    bool allow_stale;  /* take a binary also when it is not that of its model's build stamp */
    epctx_metadata_policy metadata;
    const char *output_path; /* where the result will be written: files go to its folder; default
                                the path of the first model */
} epctx_merge_opts;

/* Adds the models parts[1..] to parts[0].model, side by side, or connected (chain, connections).
 * The others are as before afterwards and must stay open as long as the result. IR version: the
 * newest. Operator sets must have the same version unless one of the models does not use them.
 * Functions: equal ones once. Context binaries and external data are among `out->files` where they
 * are not in the folder of the result, under another name where names clash. The result breaks no
 * rule of lint that its parts keep. Training information cannot be merged.
 * Errors: EXISTS for names that clash and may not change, GRAPH for models that do not go together
 * (opsets, functions, metadata, types of a connection, rules of the EP), NOT_FOUND for a connection
 * that fits nothing or a missing file, UNSUPPORTED for training information, VERSION where a binary
 * is not that of the build stamp (epctx_model_check_binary): the result has no stamp. `opts` and `out`
 * may be NULL. */
epctx_status epctx_merge(const epctx_part *parts, size_t count, const epctx_merge_opts *opts,
                         epctx_combined *out, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
