/* context.h - the context binaries of EPContext nodes: where each is, and what it tells. */
#ifndef EPCTX_BINARY_CONTEXT_H
#define EPCTX_BINARY_CONTEXT_H

#include "binary.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a node has its own context. */
typedef struct binary_place {
    const char *attribute; /* that has it: ep_cache_context, ep_dlc_context */
    epctx_str context;     /* the bytes, or the name of the file */
    bool embedded;
} binary_place;

/* False: the node has none of its own. */
bool binary_place_of(const epctx_node_view *view, const epctx_epnode *node, binary_place *out);
/* Those of epctx_model_files that are context binaries and can be read: name -> index, of several
 * with a name the first. Errors: NOMEM. */
epctx_status binary_name_files(const epctx_dependency *files, size_t count, epctx_arena *arena,
                               epctx_map *named, epctx_error *error);

/* As binary_read, of a node's context. Qualcomm's library is asked, too, of a file of no known kind
 * that is for Qualcomm's EP. */
epctx_status binary_read_for(const epctx_profile *profile, epctx_span bytes,
                             const binary_asker *asker, epctx_arena *arena, binary_facts *out,
                             epctx_error *error);

/* A context, read. */
typedef struct binary_context {
    binary_place place;           /* of the first node that has it, */
    const char *path;             /* NULL: embedded */
    epctx_str node, source;       /* which is this one, */
    const epctx_profile *profile; /* of this EP */
    bool mapped;
    epctx_mapping mapping;
    binary_facts facts;
} binary_context;

/* Those of a model; `items` in its order. What is there beyond a limit, or cannot be mapped, is
 * left out. */
typedef struct binary_contexts {
    const epctx_io *io;
    const epctx_dependency *files;
    epctx_map named; /* files by the name that nodes have */
    binary_context *items;
    size_t count;
    epctx_map at; /* of an address that is the context's alone */
} binary_contexts;

/* Reads them. `asker` may be NULL. Errors: NOMEM; binary_contexts_close is needed after any. */
epctx_status binary_contexts_read(const epctx_model *model, const epctx_dependency *files,
                                  size_t file_count, const binary_asker *asker, epctx_arena *arena,
                                  binary_contexts *out, epctx_error *error);
/* The own context of a node of this model, or NULL. */
const binary_context *binary_context_of(const binary_contexts *all, const epctx_node_view *view,
                                        const epctx_epnode *node);
/* Of a zeroed one, too. */
void binary_contexts_close(binary_contexts *all);

/* EPCTX_ERR_CONTEXT for what is surely no binary of the profile's EP: foreign, of another EP, or
 * damaged. */
epctx_status binary_check(const binary_facts *facts, const epctx_profile *profile,
                          epctx_error *error);
/* The same for all contexts of the nodes of `ep` (NULL: of any), by the files alone; of damage what
 * epctx_binary_identify sees, since a stamp may know better. Missing files are no error here. Other
 * errors: NOMEM. */
epctx_status binary_check_contexts(const epctx_model *model, const char *ep, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
