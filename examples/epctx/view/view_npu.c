/* What the reference NPU executes, for the page of `epctx view`. */
#include "commands/npu_dump.h"
#include "core/session.h"
#include "view.h"

bool view_has_npu(const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    epctx_backend backend;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view))
        if (epctx_epnode_read(&view, &node, NULL) == EPCTX_OK &&
            cli_own_backend(node.source, &backend))
            return true;
    return false;
}

epctx_status view_put_npu(FILE *out, const char *file, epctx_error *error) {
    epctx_status status;
    session s;
    size_t i;
    epctx_error_clear(error);
    status = session_open(&s, file, NULL, error);
    fputs("{\"graphs\": [", out);
    for (i = 0; i < s.loaded.bound_count; i++) {
        const epctx_bound *bound = &s.loaded.bound[i];
        fputs(i > 0 ? ",\n{" : "\n{", out);
        cli_put_member(out, "epnode", bound->node.name, ", \"binary\": ");
        npu_dump_put_graph(out, (const epctx_npu_graph *)bound->graph, NULL);
        fputc('}', out);
    }
    fputs("], ", out);
    /* What the session cannot run besides does not matter. */
    cli_put_member(out, "problem", epctx_str_of(s.loaded.bound_count > 0 ? "" : error->message),
                   "}");
    session_close(&s);
    return status == EPCTX_ERR_NOMEM ? status : EPCTX_OK;
}
