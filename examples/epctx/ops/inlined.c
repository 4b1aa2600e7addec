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

bool inlined_may_be(epctx_str name, const epctx_map *functions) {
    static const char token[] = "_token_";
    const size_t from = sizeof INLINED_PREFIX - 1;
    epctx_str function, rest;
    if (!epctx_str_starts(name, INLINED_PREFIX)) return false;
    function.data = name.data + from;
    rest = function;
    for (rest.size = name.size - from; rest.size > 0; rest.data++, rest.size--) {
        function.size = (size_t)(rest.data - function.data);
        if (epctx_str_starts(rest, token) && ops_has(functions, function)) return true;
    }
    return false;
}
