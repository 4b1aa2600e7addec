/* What the reference NPU executes, for the page of `epctx view`. */
#include "core/npu_graph.h"
#include "core/session.h"
#include "view.h"

bool view_has_npu(const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    epctx_backend backend;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view))
        if (epctx_view_read_epnode(&view, &node, NULL) == EPCTX_OK &&
            cli_own_backend(node.source, &backend))
            return true;
    return false;
}

epctx_status view_put_npu(json_writer *w, const char *file, epctx_error *error) {
    epctx_status status;
    session s;
    size_t i;
    epctx_error_clear(error);
    status = session_open(&s, file, NULL, error);
    json_object(w, "npu", JSON_INLINE);
    json_array(w, "graphs", JSON_HANGING);
    for (i = 0; i < s.loaded.bound_count; i++) {
        const epctx_bound *bound = &s.loaded.bound[i];
        json_object(w, NULL, JSON_INLINE);
        json_str(w, "epnode", bound->node.name);
        npu_graph_put(w, "binary", (const epctx_npu_graph *)bound->graph, NULL);
        json_end(w);
    }
    json_end(w);
    /* What the session cannot run besides does not matter. */
    json_text(w, "problem", s.loaded.bound_count > 0 ? "" : error->message);
    json_end(w);
    session_close(&s);
    return status == EPCTX_ERR_NOMEM ? status : EPCTX_OK;
}
