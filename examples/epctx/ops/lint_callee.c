/* lint_callee.c - what is in a function. */
#include "lint_internal.h"

/* Inputs and outputs of every function, whether something calls it or not. */
static epctx_status lint_parameters(linter *l, epctx_view function, lint_frame *scope) {
    epctx_cursor it = epctx_view_fields(function, EPCTX_FIELD_FUNCTION_INPUT);
    epctx_map outputs;
    epctx_str name;
    epctx_map_init(&outputs, &l->arena);
    while (epctx_next_str(&it, &name)) {
        if (name.size == 0) {
            lint_say(l, EPCTX_RULE_NO_VALUE_NAME, name, NULL,
                     "an input of the function has no "
                     "name");
        }
    }
    it = epctx_view_fields(function, EPCTX_FIELD_FUNCTION_OUTPUT);
    while (epctx_next_str(&it, &name)) {
        uint32_t made = epctx_map_get(&scope->names, name);
        if (made == EPCTX_MAP_NONE || name.size == 0) {
            lint_say(l, EPCTX_RULE_OUTPUT_UNDEFINED, name, NULL,
                     "nothing produces output '%S' of the function", &name);
        } else if (made == 0 || ops_has(&outputs, name)) {
            lint_say(l, EPCTX_RULE_FUNCTION_FORM, name, NULL,
                     made == 0 ? "output '%S' of the function is one of its inputs"
                               : "'%S' is an output of the function twice",
                     &name);
        }
        OPS_TRY(lint_set(l, &outputs, name, 1));
    }
    return EPCTX_OK;
}

epctx_status lint_function(linter *l, const lint_callee *callee) {
    epctx_view function = callee->view.view;
    lint_frame scope;
    epctx_cursor it;
    epctx_str name;
    memset(&scope, 0, sizeof scope);
    l->graph = callee->view.name;
    l->in_function = true;
    l->unread = callee->replaced;
    l->demoted = callee->replaced ? EPCTX_RULE_IDLE_FUNCTION : EPCTX_RULE_COUNT;
    OPS_TRY(lint_opsets(l, epctx_view_fields(function, EPCTX_FIELD_FUNCTION_OPSET_IMPORT)));
    epctx_map_init(&scope.names, &l->arena);
    epctx_map_init(&scope.used, &l->arena);
    l->demoted = callee->called ? l->demoted : EPCTX_RULE_IDLE_FUNCTION;
    it = epctx_view_fields(function, EPCTX_FIELD_FUNCTION_INPUT);
    while (epctx_next_str(&it, &name))
        OPS_TRY(lint_set(l, &scope.names, name, 0)); /* ORT takes a name that is there twice */
    if (callee->view.output_count == 0) {
        lint_say(l, EPCTX_RULE_FUNCTION_FORM, callee->view.name, NULL,
                 "the function has no outputs");
    }
    OPS_TRY(lint_scope_nodes(l, &scope, epctx_view_fields(function, EPCTX_FIELD_FUNCTION_NODE)));
    OPS_TRY(lint_note_list(
        l, &scope, function,
        EPCTX_FIELD_FUNCTION_VALUE_INFO)); /* value_info, of inputs and outputs, too */
    OPS_TRY(lint_nodes(l, &scope, epctx_view_fields(function, EPCTX_FIELD_FUNCTION_NODE),
                       epctx_view_none()));
    l->demoted = callee->replaced ? EPCTX_RULE_IDLE_FUNCTION : EPCTX_RULE_COUNT;
    OPS_TRY(lint_parameters(l, function, &scope));
    l->demoted = EPCTX_RULE_COUNT;
    l->unread = false;
    l->in_function = false;
    l->graph = epctx_str_of("");
    return EPCTX_OK;
}
