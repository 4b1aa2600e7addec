/* rename.h - renames values and nodes wherever their names are used. */
#ifndef EPCTX_OPS_RENAME_H
#define EPCTX_OPS_RENAME_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL stands for all defaults. */
typedef struct epctx_name_opts {
    const epctx_profile *profile; /* rules of this EP (epctx_profile_for) */
    bool one_graph;               /* the caller knows that each binary contains one graph only */
    bool any_io; /* inputs and outputs of EPContext nodes may change despite EPCTX_TRAIT_IO_NAMES */
} epctx_name_opts;

/* Renames values of a graph (an empty view: the main graph) or function, from[i] to to[i], wherever
 * the name occurs: nodes, graph inputs and outputs, initializers, value_info, quantization
 * annotations, sharding, training, and subgraphs that do not define the name themselves. Names may
 * be swapped; names that do not occur are ignored. One walk renames any number of values. `uses`
 * (may be NULL) gets the number of changed occurrences. EPCTX_ERR_EXISTS if a new name is in use,
 * EPCTX_ERR_UNSUPPORTED for an input or output of an EPContext node that its EP finds in the binary
 * by name (EPCTX_TRAIT_IO_NAMES). */
epctx_status epctx_rename_values(epctx_model *model, epctx_view scope, const epctx_str *from,
                                 const epctx_str *to, size_t count, const epctx_name_opts *opts,
                                 size_t *uses, epctx_error *error);

/* How the EPContext nodes of a model use their binaries; holds while only names change. */
typedef struct epctx_name_survey {
    epctx_name_opts opts;     /* those of epctx_name_survey_of */
    const epctx_model *model; /* the model, which must stay open */
    epctx_map files;          /* a binary's name -> 1: a primary node names it, 2: several */
    epctx_list shared;        /* of profiles, of which a node is secondary */
} epctx_name_survey;

/* One walk over the model, for any number of nodes. The survey is in `arena`. */
epctx_status epctx_name_survey_of(epctx_name_survey *survey, const epctx_model *model,
                                  const epctx_name_opts *opts, epctx_arena *arena,
                                  epctx_error *error);
/* EPCTX_ERR_UNSUPPORTED if the name of this EPContext node is the key into its binary
 * (epctx_profile.key), unless the binary contains only the graph of this node, according to
 * epctx_model_holds_one_graph or one_graph of the survey's options. */
epctx_status epctx_node_may_rename(const epctx_name_survey *survey, const epctx_node_view *node,
                                   epctx_error *error);

/* Renames a node, an EPContext node if epctx_node_may_rename allows it. EPCTX_ERR_EXISTS if another
 * node has the name. */
epctx_status epctx_node_rename(epctx_model *model, epctx_view node, epctx_str name,
                               const epctx_name_opts *opts, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
