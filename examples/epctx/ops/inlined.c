/* inlined.c - the names that ONNX Runtime gives what it inlines. */
#include "inlined.h"

static epctx_status inlined_tell(const epctx_function_view *function, bool of_node, epctx_str name,
                                 inlined_fn fn, void *user) {
    char full[1200];
    epctx_text text = epctx_text_of(full, sizeof full);
    epctx_text_put_format(&text, INLINED_PREFIX "%S_%S", &function->name, &name);
    return name.size == 0 || text.cut ? EPCTX_OK : fn(user, of_node, epctx_text_str(&text));
}

epctx_status inlined_names(const epctx_function_view *function, epctx_arena *arena, inlined_fn fn,
                           void *user, epctx_error *error) {
    epctx_cursor it = epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_OUTPUT);
    epctx_node_view node;
    epctx_map outputs; /* these get the names that the call has for them */
    epctx_str name;
    epctx_map_init(&outputs, arena);
    while (epctx_next_str(&it, &name)) OPS_TRY(ops_put(&outputs, name, 1, error));
    it = epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_NODE);
    while (epctx_next_node(&it, &node)) {
        epctx_cursor made = epctx_view_node_outputs(&node);
        if (!epctx_str_is(node.op_type, "Constant"))
            OPS_TRY(inlined_tell(function, true, node.name, fn, user));
        while (epctx_next_str(&made, &name))
            if (!ops_has(&outputs, name)) OPS_TRY(inlined_tell(function, false, name, fn, user));
    }
    return EPCTX_OK;
}
