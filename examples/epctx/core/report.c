/* Gathers what `epctx info` prints. */
#include "ops/needs.h"
#include "ops/views.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

static epctx_status warn(report *out, const epctx_error *what, epctx_error *error) {
    const char *message = what->message;
    char *copy;
    if (out->warning_count == out->warning_room) {
        size_t room = out->warning_room * 2 + 8;
        const char **more =
            (const char **)epctx_arena_array(&out->arena, room, sizeof(const char *));
        if (more == NULL) return cli_no_memory(error);
        if (out->warning_count > 0) memcpy(more, out->warnings, out->warning_count * sizeof *more);
        out->warnings = more;
        out->warning_room = room;
    }
    copy = epctx_arena_copy(&out->arena, epctx_str_of(message));
    if (copy == NULL) return cli_no_memory(error);
    out->warnings[out->warning_count++] = copy;
    return EPCTX_OK;
}

static size_t count_parts(const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view node;
    size_t count = 0;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &node)) count++;
    return count;
}

static uint64_t count_initializers(const epctx_model *model) {
    epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(model));
    epctx_tensor_view tensor;
    uint64_t count = 0;
    while (epctx_next_tensor(&it, &tensor)) count++;
    return count;
}

/* "domain:op_type", without the default domain. */
static epctx_str op_name(report *out, const epctx_node_view *node) {
    bool standard = node->domain.size == 0 || epctx_str_is(node->domain, "ai.onnx");
    epctx_str name = node->op_type;
    char *text;
    if (standard) return name;
    name.size = node->domain.size + 1 + node->op_type.size;
    text = (char *)epctx_arena_alloc(&out->arena, name.size);
    name.data = text;
    if (text == NULL) return name;
    memcpy(text, node->domain.data, node->domain.size);
    text[node->domain.size] = ':';
    if (node->op_type.size > 0)
        memcpy(text + node->domain.size + 1, node->op_type.data, node->op_type.size);
    return name;
}

static epctx_status count_op(report *out, epctx_map *seen, const epctx_node_view *node,
                             epctx_error *error) {
    epctx_str name = op_name(out, node);
    uint32_t at;
    if (name.data == NULL && name.size > 0) return cli_no_memory(error);
    at = epctx_map_get(seen, name);
    out->cpu_nodes++;
    if (at != EPCTX_MAP_NONE) {
        out->ops[at].count++;
        return EPCTX_OK;
    }
    if (out->op_count == out->op_room) {
        size_t room = out->op_room * 2 + 16;
        report_op *more = (report_op *)epctx_arena_array(&out->arena, room, sizeof *more);
        if (more == NULL) return cli_no_memory(error);
        if (out->op_count > 0) memcpy(more, out->ops, out->op_count * sizeof *more);
        out->ops = more;
        out->op_room = room;
    }
    at = (uint32_t)out->op_count++;
    out->ops[at].name = name;
    out->ops[at].count = 1;
    return epctx_map_put(seen, name, at) == EPCTX_OK ? EPCTX_OK : cli_no_memory(error);
}

static int more_frequent(const void *a, const void *b) {
    const report_op *left = (const report_op *)a;
    const report_op *right = (const report_op *)b;
    size_t common = left->name.size < right->name.size ? left->name.size : right->name.size;
    int order = 0;
    if (left->count != right->count) return left->count > right->count ? -1 : 1;
    if (common > 0) order = memcmp(left->name.data, right->name.data, common);
    if (order != 0) return order;
    return (left->name.size > right->name.size) - (left->name.size < right->name.size);
}

static epctx_str attr_text(const epctx_node_view *node, const char *name) {
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    epctx_str found = epctx_str_of(NULL);
    while (epctx_next_attr(&it, &attr))
        if (epctx_str_is(attr.name, name) && attr.type == EPCTX_ATTR_STRING) found = attr.s;
    return found;
}

static epctx_status add_part(report *out, const epctx_node_view *node, epctx_str graph,
                             epctx_error *error) {
    report_part *part = &out->parts[out->part_count++];
    epctx_error problem;
    part->view = *node;
    part->graph = graph;
    part->dlc = attr_text(node, "ep_dlc_context");
    part->inputs = node->input_count;
    part->outputs = node->output_count;
    part->readable = epctx_view_read_epnode(node, &part->node, &problem) == EPCTX_OK;
    if (!part->readable) {
        part->node = epctx_epnode_default();
        part->node.name = node->name;
        epctx_blame(&problem, out->file, &node->name, NULL);
        return warn(out, &problem, error);
    }
    return EPCTX_OK;
}

/* Name of the innermost graph or function around a node. */
static epctx_str graph_name(const epctx_walk *walk) {
    uint32_t i = walk->level;
    while (i > 0) {
        const epctx_walk_level *level = &walk->levels[--i];
        if (level->kind == EPCTX_KIND_GRAPH) return epctx_view_as_graph(level->view).name;
        if (level->kind == EPCTX_KIND_FUNCTION) return epctx_function_of(level->view).name;
    }
    return epctx_str_of(NULL);
}

static epctx_status add_nodes(report *out, epctx_error *error) {
    epctx_walk walk;
    epctx_map ops;
    epctx_node_view node;
    epctx_map_init(&ops, &out->arena);
    epctx_walk_begin(&walk, out->model);
    while (epctx_walk_next(&walk, &node)) {
        bool inside = walk.depth > 0 || walk.in_function || walk.in_training;
        epctx_status status = EPCTX_OK;
        if (epctx_view_is_epnode(&node))
            status = add_part(out, &node, inside ? graph_name(&walk) : epctx_str_of(""), error);
        else if (inside)
            out->inner_nodes++;
        else
            status = count_op(out, &ops, &node, error);
        if (status != EPCTX_OK) return status;
    }
    if (out->op_count > 0) qsort(out->ops, out->op_count, sizeof *out->ops, more_frequent);
    return EPCTX_OK;
}

/* A primary node without its context, and a secondary one that no primary node of its EP can serve:
 * `primaries` has the profiles of the primary nodes, by number. */
static epctx_status check_part(report *out, const report_part *part, uint64_t primaries,
                               epctx_error *error) {
    const epctx_epnode *node = &part->node;
    const epctx_profile *profile = epctx_profile_of(node->source);
    bool main = node->main_context == 1;
    epctx_error problem;
    epctx_error_clear(&problem);
    if (main && (node->embed_mode == 0 || node->ep_cache_context.size > 0 || part->dlc.size > 0))
        return EPCTX_OK;
    if (!main && ((profile->traits & EPCTX_TRAIT_SECONDARY_CONTEXT) != 0 ||
                  (primaries >> (profile - epctx_profiles(NULL)) & 1) != 0))
        return EPCTX_OK;
    epctx_fail(&problem, EPCTX_ERR_GRAPH, "%s",
               main ? "is empty, but must contain the context"
                    : "is 0, but no node of its EP has main_context 1");
    epctx_blame(&problem, out->file, &node->name, main ? "ep_cache_context" : "main_context");
    return warn(out, &problem, error);
}

static epctx_status check_parts(report *out, epctx_error *error) {
    epctx_status status = EPCTX_OK;
    uint64_t primaries = 0;
    size_t i;
    for (i = 0; i < out->part_count; i++) {
        const epctx_epnode *node = &out->parts[i].node;
        if (out->parts[i].readable && node->main_context == 1)
            primaries |= UINT64_C(1) << (epctx_profile_of(node->source) - epctx_profiles(NULL));
    }
    for (i = 0; status == EPCTX_OK && i < out->part_count; i++)
        if (out->parts[i].readable) status = check_part(out, &out->parts[i], primaries, error);
    return status;
}

/* What is wrong with a file that loading needs becomes a warning. */
static epctx_status add_files(report *out, epctx_error *error) {
    epctx_status status =
        needs_of_model(out->model, NULL, &out->arena, &out->files, &out->file_count, error);
    size_t i;
    for (i = 0; status == EPCTX_OK && i < out->file_count; i++) {
        const epctx_dependency *file = &out->files[i];
        epctx_error problem;
        if (!file->required || file->path != NULL) continue;
        epctx_error_clear(&problem);
        epctx_fail(&problem, file->status, "%s", file->problem);
        epctx_blame(&problem, out->file, &file->node, file->attribute);
        status = warn(out, &problem, error);
    }
    return status;
}

/* What their contexts tell; one that is surely none is a warning, too. */
static epctx_status add_contexts(report *out, const binary_asker *asker, epctx_error *error) {
    epctx_status status = binary_contexts_read(out->model, out->files, out->file_count, asker,
                                               &out->arena, &out->contexts, error);
    size_t i;
    for (i = 0; status == EPCTX_OK && i < out->contexts.count; i++) {
        const binary_context *context = &out->contexts.items[i];
        epctx_error problem;
        epctx_error_clear(&problem);
        if (epctx_profile_check_binary(context->profile, &context->facts.id, &problem) == EPCTX_OK)
            continue;
        epctx_blame(&problem, out->file, &context->node, context->place.attribute);
        status = warn(out, &problem, error);
    }
    return status;
}

epctx_status report_make(report *out, const epctx_model *model, const char *file,
                         const binary_asker *asker, epctx_error *error) {
    epctx_status status;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    epctx_arena_init(&out->arena, NULL);
    out->model = model;
    out->file = file;
    out->initializers = count_initializers(model);
    out->parts =
        (report_part *)epctx_arena_array(&out->arena, count_parts(model), sizeof *out->parts);
    if (out->parts == NULL) return cli_no_memory(error);
    status = add_nodes(out, error);
    if (status == EPCTX_OK) status = check_parts(out, error);
    if (status == EPCTX_OK && !given_read(model, &out->arena, &out->builds, &out->build_count))
        return cli_no_memory(error);
    if (status == EPCTX_OK) status = add_files(out, error);
    return status == EPCTX_OK ? add_contexts(out, asker, error) : status;
}

void report_free(report *done) {
    binary_contexts_close(&done->contexts);
    epctx_arena_free(&done->arena);
}
