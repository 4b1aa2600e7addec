/* What another EP was asked for and did not do: an EP may ignore a session option, and nobody says
 * so. The result is compared with the request. */
#include "compile.h"

#include <stdio.h>
#include <string.h>

/* The nodes of the EP, and those of them that are not as they were asked for. */
typedef struct counts {
    size_t nodes, unprefixed, in_files;
    epctx_str first; /* name of the first one without the prefix */
} counts;

static void count_nodes(const epctx_model *model, const compile_asked *asked, counts *out) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view view;
    epctx_epnode node;
    memset(out, 0, sizeof *out);
    while (epctx_next_node(&it, &view)) {
        if (!epctx_view_is_epnode(&view) ||
            epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK ||
            !epctx_str_is(node.source, asked->ep))
            continue;
        out->nodes++;
        out->in_files += node.embed_mode != 1 && node.ep_cache_context.size > 0;
        /* ORT lets a plugin EP put it only before the partition_name. */
        if (asked->prefix == NULL || epctx_str_starts(node.name, asked->prefix) ||
            epctx_str_starts(node.partition_name, asked->prefix))
            continue;
        if (out->unprefixed++ == 0) out->first = node.name;
    }
}

/* Names that are keys of the binary can be changed only where it has a single one. */
static epctx_status note_prefix(const counts *found, const char *file, const compile_asked *asked,
                                compile_notes *notes, epctx_error *error) {
    const bool key = epctx_profile_of(epctx_str_of(asked->ep))->key == EPCTX_KEY_NODE_NAME;
    char line[1024], cure[512];
    if (key && found->nodes > 1)
        snprintf(cure, sizeof cure, "its names are keys of the binary, and stay");
    else
        snprintf(cure, sizeof cure, "epctx prefix%s --in-place %s %s sets it",
                 key ? " --one-graph" : "", file, asked->prefix);
    snprintf(line, sizeof line, "%s ignored the prefix '%s' (node '%.*s' in %s): %s", asked->ep,
             asked->prefix, (int)found->first.size, found->first.data, file, cure);
    return compile_add_note(notes, line, error);
}

epctx_status compile_note_ignored(const epctx_model *model, const char *file,
                                  const compile_asked *asked, compile_notes *notes,
                                  epctx_error *error) {
    epctx_status status = EPCTX_OK;
    char line[1024];
    counts found;
    count_nodes(model, asked, &found);
    if (found.unprefixed > 0) status = note_prefix(&found, file, asked, notes, error);
    if (status != EPCTX_OK || !asked->embed || found.in_files == 0) return status;
    snprintf(line, sizeof line,
             "%s did not embed its context in %s: epctx embed --in-place %s does", asked->ep, file,
             file);
    return compile_add_note(notes, line, error);
}
