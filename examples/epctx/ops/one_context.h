/* one_context.h - merged models whose EP reads one context for a model (EPCTX_TRAIT_ONE_CONTEXT):
 * their contexts become one. */
#ifndef EPCTX_OPS_ONE_CONTEXT_H
#define EPCTX_OPS_ONE_CONTEXT_H

#include "carry.h"
#include "merge.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct one_context {
    const epctx_part *parts;
    size_t count;
    carry *files; /* of the result */
    epctx_arena *arena;
    epctx_list contexts; /* one_context_own */
    epctx_list nodes;    /* one_context_node */
    epctx_list eps;      /* one_context_ep */
    epctx_map taken;     /* names of files that the models name */
    size_t settled;      /* nodes that have their new attributes */
} one_context;

/* Looks at the contexts of the models, and makes the new ones, as files of the result unless the
 * first model embeds. Changes no model. `files` is that of the result. Errors: those of
 * binary_join, with the node; NOT_FOUND for a file. */
epctx_status one_context_begin(one_context *j, const epctx_part *parts, size_t count, carry *files);
/* Gives the nodes of a model the new context, and their graphs' names in it; once for each model,
 * in order. */
epctx_status one_context_settle(one_context *j, size_t part);

#ifdef __cplusplus
}
#endif

#endif
