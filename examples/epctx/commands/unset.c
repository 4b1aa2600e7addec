/* epctx unset: takes attributes, metadata, opset imports and fields out of a model. */
#include "core/output.h"
#include "core/target.h"

#include <stdlib.h>
#include <string.h>

static bool unset_attr(target_work *work, epctx_node_view *node, epctx_str name, size_t *found) {
    epctx_attr_view attr;
    output_item what;
    if (!target_attr(node, name, &attr)) return true;
    ++*found;
    if (epctx_str_is(name, "notes")) target_note_hash(work, node, epctx_str_of(NULL));
    what = output_item_of("remove", "node", node->name);
    what.attribute = name;
    what.before = target_attr_value(work, &attr);
    output_change(&work->out, &what, "node '%.*s': removed %.*s", (int)node->name.size,
                  node->name.data, (int)name.size, name.data);
    if (epctx_edit_remove_attr(&work->model, node->view, name, &work->error) != EPCTX_OK)
        return cli_fail(&work->error) == CLI_OK;
    *node = epctx_view_as_node(node->view);
    return true;
}

static void list_attrs(const epctx_node_view *node) {
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    fputs("attributes of the node:", stderr);
    while (epctx_next_attr(&it, &attr)) {
        fputc(' ', stderr);
        cli_put(stderr, attr.name);
    }
    fputc('\n', stderr);
}

static bool unset_attrs(target_work *work, epctx_str name) {
    size_t found = 0, i;
    cli_guess guess;
    if (work->nodes.count == 0 &&
        !target_find(&work->model, work->file, work->node, work->all, &work->arena, &work->nodes))
        return false;
    for (i = 0; i < work->nodes.count; i++)
        if (!unset_attr(work, &work->nodes.nodes[i], name, &found)) return false;
    if (found > 0) return true;
    guess = target_guess_attr(&work->nodes.nodes[0], name);
    cli_fail_text("%s: none of these nodes has an attribute '%.*s'%s", work->file, (int)name.size,
                  name.data, cli_guess_hint(&guess));
    if (work->nodes.count == 1) list_attrs(&work->nodes.nodes[0]);
    return false;
}

static bool missing(const target_work *work, const char *kind, epctx_str name) {
    cli_fail_text("%s: there is no %s '%.*s'", work->file, kind, (int)name.size, name.data);
    return false;
}

static bool unset(target_work *work, const char *text) {
    epctx_status status;
    epctx_str value;
    output_item item;
    target what;
    if (!target_parse(epctx_str_of(text), &what) || target_is_set_only(&what)) {
        work->misused = true;
        return false;
    }
    if (!target_once(work, &what, epctx_str_of(text), "is given twice")) return false;
    item = target_item(work, "remove", &what);
    switch (what.kind) {
    case TARGET_ATTR: return unset_attrs(work, what.name);
    case TARGET_METADATA:
        if (!epctx_model_metadata(&work->model, what.name, &value))
            return missing(work, "metadata key", what.name);
        status = epctx_edit_remove_metadata(&work->model, what.name, &work->error);
        break;
    case TARGET_OPSET:
        if (epctx_model_opset(&work->model, what.name) == 0)
            return missing(work, "opset import", what.name);
        status = epctx_edit_remove_opset(&work->model, what.name, &work->error);
        break;
    default:
        if (!what.is_text && what.kind == TARGET_GRAPH)
            return missing(work, "removable field", what.name);
        status = epctx_edit_remove_field(&work->model, target_message(&work->model, &what),
                                         what.number, &work->error);
        break;
    }
    output_change(&work->out, &item, "removed %s", text);
    return status == EPCTX_OK || cli_fail(&work->error) == CLI_OK;
}

static int run(const cli_args *args) {
    return target_run(args, unset);
}

const cli_command cli_unset = {
    .name = "unset",
    .group = CLI_CHANGE,
    .operands = "MODEL WHAT...",
    .least = 2,
    .summary = "remove attributes, metadata, opset imports and other fields",
    .about = "Removes only the given fields. WHAT is ATTRIBUTE, metadata:KEY, opset:DOMAIN,\n"
             "model:FIELD or graph:FIELD, as in `epctx set`.\n",
    .more = "Example: epctx unset model_ctx.onnx metadata:author --in-place\n",
    .run = run,
};
