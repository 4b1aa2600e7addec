/* One graph of a binary in a file, taken by a session of one EPContext node. */
#ifndef TAKE_H
#define TAKE_H

#include "../epctx.h"

#include <stdio.h>
#include <string.h>

typedef struct take_node {
    epctx_node node;
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    char notes[40];
} take_node;

/* The node that asks for `key` with `hash` (0: any). */
static inline void take_node_make(take_node *t, const char *source, epctx_str binary, epctx_str key,
                                  uint64_t hash) {
    epctx_epnode content = epctx_epnode_default();
    memset(t, 0, sizeof *t);
    snprintf(t->notes, sizeof t->notes, "graph_hash=%016llx", (unsigned long long)hash);
    content.present = 1u << EPCTX_EPNODE_MAIN_CONTEXT | 1u << EPCTX_EPNODE_EMBED_MODE |
                      1u << EPCTX_EPNODE_EP_CACHE_CONTEXT | 1u << EPCTX_EPNODE_PARTITION_NAME |
                      1u << EPCTX_EPNODE_SOURCE | 1u << EPCTX_EPNODE_NOTES;
    content.main_context = 1;
    content.embed_mode = 0;
    content.ep_cache_context = binary;
    content.partition_name = key;
    content.source = epctx_str_of(source);
    content.notes = epctx_str_of(t->notes);
    t->node.op_type = epctx_str_of(EPCTX_OP_TYPE);
    t->node.domain = epctx_str_of(EPCTX_DOMAIN);
    t->node.version = 1;
    t->node.attrs = t->attrs;
    t->node.attr_count = epctx_epnode_attrs(&content, t->attrs);
}

/* `binary` is beside `model_path`. epctx_unload gives the graph back. */
static inline epctx_status take_graph(epctx_workspace *w, const epctx_backend *backend,
                                      const char *model_path, const char *binary, epctx_str key,
                                      uint64_t hash, epctx_loaded *out, epctx_error *error) {
    epctx_load_opts opts;
    take_node t;
    memset(&opts, 0, sizeof opts);
    opts.workspace = w;
    opts.model_path = model_path;
    take_node_make(&t, backend != NULL ? backend->source : "", epctx_str_of(binary), key, hash);
    return epctx_load_nodes(out, &t.node, 1, backend, &opts, error);
}

#endif
