/* repair.c - fixes what lint finds, rule by rule. */
#include "repair.h"

#include "around.h"
#include "beside.h"
#include "init.h"
#include "inside.h"
#include "place.h"
#include "shadows.h"
#include "state.h"

/* The source of a node that names a file, and the one before that names the same. */
typedef struct repair_holder {
    epctx_str source;
    uint32_t before;
} repair_holder;

typedef struct repair {
    epctx_model *model;
    epctx_arena *arena;
    const epctx_repair_opts *opts;
    epctx_repair_fn note_fn;
    void *user;
    bool wanted[EPCTX_RULE_COUNT];
    uint64_t found[EPCTX_RULE_COUNT];
    epctx_map sources; /* name of a tensor of the source model -> number in `tensors` */
    epctx_list tensors;
    beside *files;       /* of the folder that was listed last */
    epctx_list searched; /* of repair_searched: files that were not found */
    epctx_list holders;  /* of repair_holder */
    epctx_map holder_of; /* name of a file -> the last of `holders` that names it */
    size_t looked;       /* around places */
    size_t looked_in;    /* files whose folder was searched for one that fits */
    size_t done, left;
} repair;

static void repair_say(repair *r, epctx_rule rule, epctx_str name, const char *format, ...) {
    char line[1024];
    epctx_text text = epctx_text_of(line, sizeof line);
    epctx_repair_note note;
    va_list args;
    va_start(args, format);
    epctx_text_put_args(&text, format, args);
    va_end(args);
    memset(&note, 0, sizeof note);
    note.rule = rule;
    note.info = epctx_rule_of(rule);
    note.done = true;
    note.name = name;
    note.text = line;
    if (r->note_fn != NULL) r->note_fn(r->user, &note);
    r->done++;
}

static const epctx_profile *repair_profile(const repair *r, epctx_str source) {
    return epctx_profile_for(r->opts->check.profile, source);
}

/* Runs a step for each EPContext node of the model, of any domain. */
typedef epctx_status (*repair_node_fn)(repair *r, const epctx_node_view *node, epctx_error *error);

static epctx_status repair_nodes(repair *r, repair_node_fn node_fn, epctx_error *error) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, r->model);
    while (epctx_walk_epnode(&walk, &node)) OPS_TRY(node_fn(r, &node, error));
    return EPCTX_OK;
}

/* -- fields that occur twice -- */

static epctx_status repair_doubled_field(void *user, const epctx_field_info *field, epctx_str node,
                                         epctx_error *error) {
    (void)error;
    repair_say((repair *)user, EPCTX_RULE_DOUBLED_FIELD, node,
               field->kind < EPCTX_KIND_INT ? "field %s of a %s: both were merged into one"
                                            : "field %s of a %s: the last one was kept",
               ops_field_name(field).text, epctx_message_name(field->message));
    return EPCTX_OK;
}

/* Makes the model what libprotobuf reads from it, which can be edited. */
static epctx_status repair_doubled_fields(repair *r, epctx_error *error) {
    return epctx_edit_merge_doubled(r->model, repair_doubled_field, r, error);
}

/* -- EPContext nodes -- */

static epctx_status repair_domain(repair *r, const epctx_node_view *node, epctx_error *error) {
    if (!epctx_str_is(node->domain, EPCTX_DOMAIN)) {
        OPS_TRY(epctx_edit_set_field_str(r->model, node->view, EPCTX_FIELD_NODE_DOMAIN,
                                         epctx_str_of(EPCTX_DOMAIN), error));
        repair_say(r, EPCTX_RULE_WRONG_DOMAIN, node->name, "domain '%S' is now com.microsoft",
                   &node->domain);
    }
    return EPCTX_OK;
}

/* Nodes of com.microsoft whose operator is EPContext but for a few letters. */
static epctx_status repair_op_spelling(repair *r, epctx_error *error) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, r->model);
    while (epctx_walk_next(&walk, &node)) {
        if (!epctx_lint_is_misspelt(&node)) continue;
        OPS_TRY(epctx_edit_set_field_str(r->model, node.view, EPCTX_FIELD_NODE_OP_TYPE,
                                         epctx_str_of(EPCTX_OP_TYPE), error));
        repair_say(r, EPCTX_RULE_OP_SPELLING, node.name, "operator '%S' is now " EPCTX_OP_TYPE,
                   &node.op_type);
    }
    return EPCTX_OK;
}

static epctx_status repair_import(repair *r, epctx_error *error) {
    epctx_str domain = epctx_str_of(EPCTX_DOMAIN);
    OPS_TRY(epctx_edit_put_opset(r->model, domain, 1, error));
    repair_say(r, EPCTX_RULE_EPCONTEXT_OPSET, domain, "com.microsoft is imported, version 1");
    return EPCTX_OK;
}

/* Other imports: only the source model knows the version. */
static epctx_status repair_imports(repair *r, epctx_error *error) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, r->model);
    while (r->opts->source != NULL && epctx_walk_next(&walk, &node)) {
        int64_t version = epctx_model_opset(r->opts->source, node.domain);
        if (walk.in_function || version == 0 || epctx_model_opset(r->model, node.domain) != 0)
            continue;
        OPS_TRY(epctx_edit_put_opset(r->model, node.domain, version, error));
        repair_say(
            r, epctx_lint_opset(node.domain) > 0 ? EPCTX_RULE_DEFAULT_OPSET : EPCTX_RULE_NO_OPSET,
            node.domain, "'%S' is imported, version %d as in the source model", &node.domain,
            version);
    }
    return EPCTX_OK;
}

static epctx_status repair_source(repair *r, epctx_rule rule, const epctx_node_view *node,
                                  const char *source, epctx_error *error) {
    OPS_TRY(epctx_edit_set_attr_str(r->model, node->view, "source", epctx_str_of(source), error));
    repair_say(r, rule, node->name, "source is now '%s'", source);
    return EPCTX_OK;
}

/* The name of an EP as it writes it, NULL when `source` is none of its names. */
static const char *repair_spelling(const epctx_profile *profile, epctx_str source) {
    size_t i;
    for (i = 0; i < sizeof profile->sources / sizeof profile->sources[0]; i++) {
        const char *name = profile->sources[i];
        if (name != NULL && epctx_str_eq_nocase(source, epctx_str_of(name))) return name;
    }
    return NULL;
}

static epctx_status repair_sources(repair *r, const epctx_node_view *node, epctx_error *error) {
    const epctx_profile *profile;
    epctx_rule missing;
    epctx_epnode ep;
    if (epctx_view_read_epnode(node, &ep, NULL) != EPCTX_OK) return EPCTX_OK;
    profile = repair_profile(r, ep.source);
    if (epctx_profile_claims(profile, &ep) == EPCTX_CLAIM_SPELLING &&
        r->wanted[EPCTX_RULE_SOURCE_SPELLING]) {
        OPS_TRY(repair_source(r, EPCTX_RULE_SOURCE_SPELLING, node,
                              repair_spelling(profile, ep.source), error));
    }
    missing = (profile->traits & EPCTX_TRAIT_NO_SOURCE) != 0 ? EPCTX_RULE_SOURCE_ABSENT
                                                             : EPCTX_RULE_NO_SOURCE;
    /* Only the caller knows the EP of the node. */
    if ((ep.present & 1u << EPCTX_EPNODE_SOURCE) == 0 && r->opts->check.profile != NULL &&
        profile->sources[0] != NULL && r->wanted[missing])
        OPS_TRY(repair_source(r, missing, node, profile->sources[0], error));
    return EPCTX_OK;
}

/* Attributes whose schema default is what an absent one means. */
static epctx_status repair_attributes(repair *r, const epctx_node_view *node, epctx_error *error) {
    static const struct {
        uint32_t bit;
        const char *name;
        int64_t value;
    } defaults[] = {{1u << EPCTX_EPNODE_MAIN_CONTEXT, "main_context", 1},
                    {1u << EPCTX_EPNODE_EMBED_MODE, "embed_mode", 1},
                    {1u << EPCTX_EPNODE_MAX_SIZE, "max_size", 0}};
    bool all = r->wanted[EPCTX_RULE_DEFAULTS];
    epctx_rule rule = all ? EPCTX_RULE_DEFAULTS : EPCTX_RULE_NO_ATTRIBUTE;
    uint32_t need = 0;
    epctx_epnode ep;
    size_t i;
    if (epctx_view_read_epnode(node, &ep, NULL) != EPCTX_OK) return EPCTX_OK;
    if (r->wanted[EPCTX_RULE_NO_ATTRIBUTE]) need = repair_profile(r, ep.source)->required;
    if (all) need |= 1u << EPCTX_EPNODE_MAIN_CONTEXT | 1u << EPCTX_EPNODE_EMBED_MODE;
    need &= ~ep.present;
    for (i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        if ((need & defaults[i].bit) != 0) {
            OPS_TRY(epctx_edit_set_attr_int(r->model, node->view, defaults[i].name,
                                            defaults[i].value, error));
            repair_say(r, rule, node->name, "%s %d is stored", defaults[i].name, defaults[i].value);
        }
    }
    /* A secondary node of an embedded context: OpenVINO stores an empty string there. */
    if ((need & 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT) != 0 && ep.main_context == 0 &&
        ep.embed_mode == 1) {
        OPS_TRY(epctx_edit_set_attr_str(r->model, node->view, "ep_cache_context", epctx_str_of(""),
                                        error));
        repair_say(r, rule, node->name, "an empty ep_cache_context is stored");
    }
    return EPCTX_OK;
}

/* embed_mode is missing, and the payload is the name of an existing file. */
static epctx_status repair_like_path(repair *r, const epctx_node_view *node, epctx_error *error) {
    epctx_str model_path = epctx_str_of(r->model->path);
    char path[EPCTX_PATH_MAX];
    epctx_epnode ep;
    if (r->opts->check.no_files || model_path.size == 0 ||
        epctx_view_read_epnode(node, &ep, NULL) != EPCTX_OK || ep.embed_mode != 1 ||
        ep.ep_cache_context.size == 0 || ep.ep_cache_context.size >= 1024 ||
        epctx_path_find(epctx_model_io(r->model), epctx_path_folder(model_path),
                        ep.ep_cache_context, r->model->path_flags, path, sizeof path,
                        NULL) != EPCTX_OK)
        return EPCTX_OK;
    OPS_TRY(epctx_edit_set_attr_int(r->model, node->view, "embed_mode", 0, error));
    repair_say(r, EPCTX_RULE_LIKE_PATH, node->name,
               "embed_mode is now 0: '%S' is a file beside the model", &ep.ep_cache_context);
    return EPCTX_OK;
}

/* embed_mode is 0, and the context itself stands where its path should. */
static epctx_status repair_payload_as_path(repair *r, const epctx_node_view *node,
                                           epctx_error *error) {
    epctx_epnode ep;
    if (epctx_view_read_epnode(node, &ep, NULL) != EPCTX_OK || ep.embed_mode != 0 ||
        !epctx_lint_is_payload(ep.ep_cache_context))
        return EPCTX_OK;
    OPS_TRY(epctx_edit_set_attr_int(r->model, node->view, "embed_mode", 1, error));
    repair_say(r, EPCTX_RULE_PAYLOAD_AS_PATH, node->name,
               "embed_mode is now 1: ep_cache_context holds the context, %u bytes",
               (uint64_t)ep.ep_cache_context.size);
    return EPCTX_OK;
}

/* Reduces a path of the build machine to the file name. */
static epctx_status repair_build_path(repair *r, const epctx_node_view *node, epctx_error *error) {
    epctx_str name = epctx_view_node_attr_str(node, "onnx_model_filename");
    epctx_str file = name;
    size_t i;
    for (i = 0; i < name.size; i++) {
        if (name.data[i] == '/' || name.data[i] == '\\') {
            file.data = name.data + i + 1;
            file.size = name.size - i - 1;
        }
    }
    if (file.size > 0 && file.size < name.size) {
        OPS_TRY(epctx_edit_set_attr_str(r->model, node->view, "onnx_model_filename", file, error));
        repair_say(r, EPCTX_RULE_BUILD_PATH, node->name, "onnx_model_filename is now '%S'", &file);
    }
    return EPCTX_OK;
}

/* By an operation that reports what it does. */
static epctx_status repair_by(repair *r, epctx_rule rule,
                              epctx_status (*fn)(epctx_model *model, ops_report *report,
                                                 epctx_error *error),
                              epctx_error *error) {
    ops_report report;
    size_t i;
    memset(&report, 0, sizeof report);
    report.arena = r->arena;
    OPS_TRY(fn(r->model, &report, error));
    for (i = 0; i < report.steps.count; i++) {
        const epctx_step *step = (const epctx_step *)report.steps.items + i;
        repair_say(r, rule, step->name, "%s", step->text);
    }
    return EPCTX_OK;
}

static epctx_status repair_places(repair *r, epctx_error *error) {
    return repair_by(r, EPCTX_RULE_CONTEXT_PLACE, place_contexts, error);
}

static epctx_status repair_shadows(repair *r, epctx_error *error) {
    return repair_by(r, EPCTX_RULE_OUTER_NAME, shadows_rename, error);
}

/* -- names -- */

typedef struct repair_name_maps {
    epctx_map all;  /* each name of a node -> the next number to try behind it */
    epctx_map seen; /* names that a node may keep */
} repair_name_maps;

static epctx_status repair_name(repair *r, repair_name_maps *maps, const epctx_node_view *node,
                                epctx_error *error) {
    bool compiled = epctx_view_is_epnode(node);
    epctx_rule rule = !compiled             ? EPCTX_RULE_DOUBLED_NODE
                      : node->name.size > 0 ? EPCTX_RULE_DOUBLED_EPNODE
                                            : EPCTX_RULE_NO_NAME;
    epctx_str name = node->name;
    if (name.size == 0 && compiled) {
        name = epctx_view_node_attr_str(node, "partition_name");
        name = name.size > 0 ? name : epctx_str_of(EPCTX_OP_TYPE);
    } else if (name.size == 0 || !ops_has(&maps->seen, name)) {
        return ops_put(&maps->seen, name, 1, error);
    }
    if (!r->wanted[rule] ||
        (compiled &&
         repair_profile(r, epctx_view_node_attr_str(node, "source"))->key == EPCTX_KEY_NODE_NAME))
        return EPCTX_OK;
    OPS_TRY(ops_free_name(r->arena, NULL, 0, &maps->all, name, &name, error));
    OPS_TRY(epctx_edit_set_field_str(r->model, node->view, EPCTX_FIELD_NODE_NAME, name, error));
    repair_say(r, rule, node->name, "the node's name is now '%S'", &name);
    return EPCTX_OK;
}

/* Makes the names of nodes unique, and names EPContext nodes; keys of a binary do not change. */
static epctx_status repair_names(repair *r, epctx_error *error) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(r->model));
    epctx_cursor again = nodes;
    repair_name_maps maps;
    epctx_node_view node;
    epctx_map_init(&maps.all, r->arena);
    epctx_map_init(&maps.seen, r->arena);
    while (epctx_next_node(&nodes, &node)) OPS_TRY(ops_put(&maps.all, node.name, 2, error));
    while (epctx_next_node(&again, &node)) OPS_TRY(repair_name(r, &maps, &node, error));
    return EPCTX_OK;
}

/* -- entries that occur twice -- */

/* A list of entries with names. */
typedef struct repair_entry_list {
    epctx_rule rule;
    uint32_t number; /* of its field, */
    uint32_t field;  /* and of the name in an entry */
    const char *what;
} repair_entry_list;

/* A text of a message; the last one counts. */
static epctx_str repair_text(epctx_view view, uint32_t number) {
    epctx_cursor strings = epctx_view_fields(view, number);
    epctx_str text = epctx_str_of(NULL);
    while (epctx_next_str(&strings, &text)) {
    }
    return text;
}

static epctx_status repair_function_id(repair *r, epctx_view view, epctx_str *id,
                                       epctx_error *error) {
    epctx_str domain = repair_text(view, EPCTX_FIELD_FUNCTION_DOMAIN);
    epctx_str name = repair_text(view, EPCTX_FIELD_FUNCTION_NAME);
    epctx_str overload = repair_text(view, EPCTX_FIELD_FUNCTION_OVERLOAD);
    size_t size = ops_function_id_size(domain, name, overload);
    char *text;
    OPS_TRY(ops_array(r->arena, size, 1, &text, error));
    *id = ops_function_id(text, size, domain, name, overload);
    return EPCTX_OK;
}

/* Entries that equal the one before of that name go; others are not ours to choose. `node` is
 * around the list, or empty. */
static epctx_status repair_equal(repair *r, const repair_entry_list *list, epctx_view owner,
                                 epctx_str node, epctx_error *error) {
    epctx_cursor it = epctx_view_fields(owner, list->number);
    epctx_list all, gone;
    epctx_map names;
    epctx_view view;
    memset(&all, 0, sizeof all);
    memset(&gone, 0, sizeof gone);
    epctx_map_init(&names, r->arena);
    while (epctx_next_view(&it, &view)) {
        epctx_str name = repair_text(view, list->field);
        uint32_t at;
        if (list->rule == EPCTX_RULE_DOUBLED_OPSET && name.size == 0)
            name = epctx_str_of("ai.onnx");
        if (list->rule == EPCTX_RULE_DOUBLED_FUNCTION)
            OPS_TRY(repair_function_id(r, view, &name, error));
        at = epctx_map_get(&names, name);
        if (at == EPCTX_MAP_NONE || !epctx_view_equal(ops_view_at(&all, at), view)) {
            OPS_TRY(ops_put(&names, name, (uint32_t)all.count, error));
            OPS_TRY(ops_add_view(&all, r->arena, view, error));
        } else { /* the same as the one before: which one comes last does not change */
            OPS_TRY(ops_add_view(&gone, r->arena, view, error));
            repair_say(r, list->rule, node.size > 0 ? node : name,
                       "%s '%S' occurred twice with the same content; one was removed", list->what,
                       &name);
        }
    }
    return ops_remove_views(r->model, &gone, error);
}

static epctx_status repair_entries(repair *r, epctx_error *error) {
    static const repair_entry_list lists[] = {
        {EPCTX_RULE_DOUBLED_OPSET, EPCTX_FIELD_MODEL_OPSET_IMPORT, EPCTX_FIELD_OPSET_DOMAIN,
         "the import of"},
        {EPCTX_RULE_DOUBLED_METADATA, EPCTX_FIELD_MODEL_METADATA_PROPS, EPCTX_FIELD_PAIR_KEY,
         "metadata"},
        {EPCTX_RULE_DOUBLED_FUNCTION, EPCTX_FIELD_MODEL_FUNCTIONS, EPCTX_FIELD_FUNCTION_NAME,
         "function"},
        {EPCTX_RULE_DOUBLED_INFO, EPCTX_FIELD_GRAPH_VALUE_INFO, EPCTX_FIELD_VALUE_NAME,
         "value_info"},
        {EPCTX_RULE_REDEFINED, EPCTX_FIELD_GRAPH_INITIALIZER, EPCTX_FIELD_TENSOR_NAME,
         "initializer"}};
    size_t i;
    for (i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        epctx_view owner =
            i < 3 ? epctx_model_read(r->model).view : epctx_model_graph(r->model).view;
        if (r->wanted[lists[i].rule] && r->found[lists[i].rule] > 0)
            OPS_TRY(repair_equal(r, &lists[i], owner, epctx_str_of(NULL), error));
    }
    return EPCTX_OK;
}

static epctx_status repair_doubled_attributes(repair *r, const epctx_node_view *node,
                                              epctx_error *error) {
    static const repair_entry_list list = {EPCTX_RULE_DOUBLED_ATTRIBUTE, EPCTX_FIELD_NODE_ATTRIBUTE,
                                           EPCTX_FIELD_ATTR_NAME, "attribute"};
    return repair_equal(r, &list, node->view, node->name, error);
}

/* -- inputs of bodies -- */

/* Initializers of inputs that the node gives their values; with more inputs than it gives, only the
 * author knows which. */
static epctx_status repair_body(repair *r, const epctx_node_view *node, epctx_view body,
                                epctx_error *error) {
    epctx_cursor it = epctx_view_fields(body, EPCTX_FIELD_GRAPH_INPUT);
    epctx_value_view value;
    epctx_tensor_view tensor;
    epctx_map inputs;
    epctx_list gone;
    memset(&gone, 0, sizeof gone);
    epctx_map_init(&inputs, r->arena);
    if (epctx_cursor_count(it) != node->input_count) return EPCTX_OK;
    while (epctx_next_value(&it, &value)) OPS_TRY(ops_put(&inputs, value.name, 1, error));
    it = epctx_view_fields(body, EPCTX_FIELD_GRAPH_INITIALIZER);
    while (epctx_next_tensor(&it, &tensor)) {
        if (!ops_has(&inputs, tensor.name)) continue;
        OPS_TRY(ops_add_view(&gone, r->arena, tensor.view, error));
        repair_say(r, EPCTX_RULE_BODY_INPUT, node->name,
                   "initializer '%S' of the body was removed: the %S gives this input its value",
                   &tensor.name, &node->op_type);
    }
    return ops_remove_views(r->model, &gone, error);
}

static epctx_status repair_body_inputs(repair *r, epctx_error *error) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, r->model);
    while (epctx_walk_next(&walk, &node)) {
        epctx_attr_view attr;
        if (epctx_lint_gives_inputs(r->model, &node) &&
            epctx_view_node_find_attr(&node, "body", &attr) && epctx_view_exists(attr.g))
            OPS_TRY(repair_body(r, &node, attr.g, error));
    }
    return EPCTX_OK;
}

/* -- files -- */

/* Where a file is that a model names wrongly: the part of the name behind a separator. `text` gets
 * it. Empty: nowhere. */
static epctx_str repair_candidate(const repair *r, const epctx_dependency *file,
                                  char text[EPCTX_PATH_MAX]) {
    char path[EPCTX_PATH_MAX];
    size_t size = file->name.size < EPCTX_PATH_MAX ? file->name.size : 0;
    size_t start = 0;
    size_t i;
    for (i = 0; i < size; i++) {
        text[i] = file->name.data[i];
        if (text[i] == '\\') text[i] = '/';
    }
    while (start < size) {
        epctx_str name;
        name.data = text + start;
        name.size = size - start;
        if (!epctx_str_eq(name, file->name) &&
            epctx_path_find(epctx_model_io(r->model), epctx_str_of(file->folder), name,
                            r->model->path_flags, path, sizeof path, NULL) == EPCTX_OK)
            return name;
        while (start < size && text[start] != '/') start++;
        while (start < size && text[start] == '/') start++;
    }
    return epctx_str_of(NULL);
}

/* Of each file that a node names, the sources of the nodes, in one walk: many may be missing. */
static epctx_status repair_list_holders(repair *r, epctx_error *error) {
    epctx_node_view view;
    epctx_epnode node;
    epctx_walk walk;
    size_t i;
    if (r->holders.count > 0) return EPCTX_OK;
    epctx_walk_begin(&walk, r->model);
    while (epctx_walk_epnode(&walk, &view)) {
        epctx_str names[2];
        if (epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK) continue;
        names[0] = epctx_view_node_attr_str(&view, "ep_dlc_context");
        names[1] = node.embed_mode == 0 ? node.ep_cache_context : epctx_str_of(NULL);
        for (i = 0; i < 2; i++) {
            repair_holder *holder;
            if (names[i].size == 0) continue;
            OPS_TRY(ops_add(&r->holders, r->arena, sizeof *holder, &holder, error));
            holder->source = node.source;
            holder->before = epctx_map_get(&r->holder_of, names[i]);
            OPS_TRY(ops_put(&r->holder_of, names[i], (uint32_t)r->holders.count - 1, error));
        }
    }
    return EPCTX_OK;
}

/* What a build stamp says of the context in a file; the first node counts that has one. */
static epctx_status repair_stamped(repair *r, epctx_str name, epctx_stamp_line *line, bool *is,
                                   epctx_error *error) {
    uint32_t at;
    *is = false;
    OPS_TRY(repair_list_holders(r, error));
    for (at = epctx_map_get(&r->holder_of, name); at != EPCTX_MAP_NONE;) {
        const repair_holder *holder = (const repair_holder *)r->holders.items + at;
        epctx_stamp_line one;
        if (epctx_model_stamp_line(r->model, holder->source, name, &one)) {
            *line = one;
            *is = true;
        }
        at = holder->before;
    }
    return EPCTX_OK;
}

/* Why a missing file stays. */
typedef struct repair_searched {
    epctx_str node;
    const char *attribute, *text;
} repair_searched;

static epctx_status repair_note_search(repair *r, const epctx_dependency *file,
                                       const epctx_text *why, epctx_error *error) {
    repair_searched *searched;
    if (why->size == 0) return EPCTX_OK;
    OPS_TRY(ops_add(&r->searched, r->arena, sizeof *searched, &searched, error));
    searched->node = file->node;
    searched->attribute = file->attribute;
    searched->text = epctx_arena_copy(r->arena, epctx_text_str(why));
    return searched->text != NULL ? EPCTX_OK : ops_nomem(r->arena, error);
}

/* Where a context binary is that was renamed: the only file in the folder that has size and hash of
 * the build stamp. `found` gets the name; empty: nowhere. */
static epctx_status repair_by_stamp(repair *r, const epctx_dependency *file, epctx_str *found,
                                    epctx_error *error) {
    epctx_str names[INSIDE_NAMES];
    char text[1024];
    epctx_text out = epctx_text_of(text, sizeof text);
    epctx_stamp_line line;
    size_t i, count = 0;
    bool is;
    if (file->use != EPCTX_USE_CONTEXT) return EPCTX_OK;
    OPS_TRY(repair_stamped(r, file->name, &line, &is, error));
    if (!is) return EPCTX_OK;
    OPS_TRY(beside_list(r->files, r->model, file->folder, error));
    for (i = 0; i < r->files->files.count; i++) {
        beside_file *entry = (beside_file *)r->files->files.items + i;
        if (!beside_has_bytes(r->files, r->model, entry, &line)) continue;
        inside_note(names, &count, entry->name);
    }
    if (count == 1) *found = names[0];
    if (count < 2) return EPCTX_OK;
    inside_put_names(&out, names, count);
    epctx_text_put_format(&out, " have the bytes of the build stamp: rename the right one");
    return repair_note_search(r, file, &out, error);
}

/* Likewise, without a build stamp, by what is in the files of the folder. `alone`: no other context
 * is missing. */
static epctx_status repair_by_inside(repair *r, const epctx_dependency *file, bool alone,
                                     epctx_str *found, epctx_error *error) {
    char text[1024];
    epctx_text out = epctx_text_of(text, sizeof text);
    epctx_stamp_line line;
    inside search;
    size_t i;
    bool is;
    if (file->use != EPCTX_USE_CONTEXT) return EPCTX_OK;
    OPS_TRY(repair_stamped(r, file->name, &line, &is, error));
    if (is) return EPCTX_OK;
    OPS_TRY(beside_list(r->files, r->model, file->folder, error));
    OPS_TRY(inside_begin(&search, r->model, file, alone, &r->opts->check, r->opts->asker, error));
    for (i = 0; i < r->files->files.count; i++) {
        beside_file *entry = (beside_file *)r->files->files.items + i;
        if (search.profile != NULL && beside_may_be(r->files, r->model, entry, search.profile))
            OPS_TRY(inside_try(&search, entry->name));
    }
    *found = inside_end(&search, &out);
    return repair_note_search(r, file, &out, error);
}

static epctx_rule repair_file_rule(const epctx_dependency *file) {
    if (memchr(file->name.data, '\\', file->name.size) != NULL) return EPCTX_RULE_BACKSLASH;
    return epctx_path_check(file->name, NULL) != EPCTX_OK ? EPCTX_RULE_PATH_UNSAFE
                                                          : EPCTX_RULE_FILE_MISSING;
}

/* The name under which a file is found; empty: it stays. */
static epctx_status repair_file(repair *r, const epctx_dependency *file, bool alone, epctx_str *to,
                                epctx_error *error) {
    char text[EPCTX_PATH_MAX];
    enum { MOST_LOOKS = 256 }; /* each lists the folder */
    enum { MOST_INSIDE = 8 };  /* each judges the model with every file of the folder */
    const char *why = "exists";
    epctx_rule rule;
    epctx_str found;
    around_kind kind;
    *to = epctx_str_of(NULL);
    if ((file->use != EPCTX_USE_CONTEXT && file->use != EPCTX_USE_INITIALIZERS) ||
        file->status == EPCTX_OK || file->folder == NULL)
        return EPCTX_OK;
    found = repair_candidate(r, file, text);
    if (found.size == 0 && file->status == EPCTX_ERR_NOT_FOUND && r->looked++ < MOST_LOOKS) {
        kind = around_find(epctx_model_io(r->model), file->folder, file->name, r->model->path_flags,
                           text);
        if (kind == AROUND_LETTERS || kind == AROUND_FOLDER) found = epctx_str_of(text);
    }
    if (found.size == 0 && file->status == EPCTX_ERR_NOT_FOUND) {
        why = "has the bytes of the build stamp";
        OPS_TRY(repair_by_stamp(r, file, &found, error));
    }
    if (found.size == 0 && file->status == EPCTX_ERR_NOT_FOUND && r->looked_in++ < MOST_INSIDE) {
        why = "is the only one here that has what its nodes want";
        OPS_TRY(repair_by_inside(r, file, alone, &found, error));
    }
    rule = found.size > 0 ? repair_file_rule(file) : EPCTX_RULE_FILE_MISSING;
    if (found.size == 0 || !r->wanted[rule]) return EPCTX_OK;
    OPS_TRY(ops_join(r->arena, found, epctx_str_of(""), to, error));
    repair_say(r, rule, file->node, "%s '%S' is now '%S', which %s", epctx_file_use_name(file->use),
               &file->name, to, why);
    return EPCTX_OK;
}

static epctx_status repair_files(repair *r, epctx_error *error) {
    epctx_dependency *files = NULL;
    epctx_file_rename *renames = NULL;
    size_t rename_count = 0;
    size_t count = 0;
    size_t missing = 0;
    size_t i;
    if (r->opts->check.no_files || epctx_model_io(r->model) == NULL) return EPCTX_OK;
    OPS_TRY(epctx_model_files(r->model, &r->opts->check, r->arena, &files, &count, error));
    OPS_TRY(ops_array(r->arena, count, sizeof *renames, &renames, error));
    for (i = 0; i < count; i++)
        missing += files[i].use == EPCTX_USE_CONTEXT && files[i].status != EPCTX_OK;
    for (i = 0; i < count; i++) {
        epctx_file_rename *next = &renames[rename_count];
        next->use = files[i].use;
        next->from = files[i].name;
        OPS_TRY(repair_file(r, &files[i], missing == 1, &next->to, error));
        rename_count += next->to.size > 0;
    }
    return epctx_edit_rename_files(r->model, renames, rename_count, error);
}

/* -- what the source model knows -- */

/* Its tensors by name. */
static epctx_status repair_index(repair *r, epctx_error *error) {
    epctx_walk walk;
    epctx_tensor_view tensor;
    if (r->opts->source == NULL || r->tensors.count > 0) return EPCTX_OK;
    epctx_walk_begin(&walk, r->opts->source);
    while (epctx_walk_tensor(&walk, &tensor)) {
        if (!ops_has(&r->sources, tensor.name)) {
            OPS_TRY(ops_put(&r->sources, tensor.name, (uint32_t)r->tensors.count, error));
            OPS_TRY(ops_add_view(&r->tensors, r->arena, tensor.view, error));
        }
    }
    return EPCTX_OK;
}

/* The data of one of them; NULL where there is none to be had. */
static epctx_status repair_data(repair *r, epctx_str name, epctx_tensor *out, epctx_error *error) {
    uint32_t at = epctx_map_get(&r->sources, name);
    epctx_status status;
    epctx_error why;
    memset(out, 0, sizeof *out);
    if (at == EPCTX_MAP_NONE) return EPCTX_OK;
    status =
        epctx_model_load_tensor(r->opts->source, ops_view_at(&r->tensors, at), NULL, out, &why);
    if (status != EPCTX_OK) out->data = NULL;
    return status == EPCTX_ERR_NOMEM ? ops_nomem(&r->opts->source->arena, error) : EPCTX_OK;
}

static bool repair_same_shape(const epctx_tensor_view *tensor, const epctx_tensor *data) {
    epctx_cursor dims = epctx_view_tensor_dims(tensor);
    int64_t dim = 0;
    int32_t i;
    if (data->elem_type != tensor->elem_type || data->rank != (int32_t)tensor->rank) return false;
    for (i = 0; i < data->rank && epctx_next_int(&dims, &dim); i++)
        if (dim != data->dims[i]) return false;
    return true;
}

/* Restores data that was in the memory of a process. */
static epctx_status repair_memory(repair *r, epctx_error *error) {
    epctx_walk walk;
    epctx_tensor_view tensor;
    OPS_TRY(repair_index(r, error));
    epctx_walk_begin(&walk, r->model);
    while (epctx_walk_tensor(&walk, &tensor)) {
        epctx_tensor data;
        epctx_span bytes;
        if (!tensor.external || !epctx_str_starts(tensor.location, "*/_ORT_MEM_ADDR_/*")) continue;
        OPS_TRY(repair_data(r, tensor.name, &data, error));
        if (data.data == NULL || !repair_same_shape(&tensor, &data)) continue;
        bytes.data = data.data;
        bytes.size = data.size;
        OPS_TRY(epctx_edit_set_tensor_raw(r->model, tensor.view, bytes, error));
        repair_say(r, EPCTX_RULE_MEMORY_LOCATION, tensor.name,
                   "%u bytes come from the source model", (uint64_t)data.size);
    }
    return EPCTX_OK;
}

/* What bodies read from the main graph and nothing there gives. */
static epctx_status repair_dropped_names(repair *r, epctx_list *names, epctx_error *error) {
    epctx_graph_view graph = epctx_model_graph(r->model);
    epctx_cursor nodes = epctx_view_graph_nodes(graph);
    epctx_map known;
    epctx_view node;
    epctx_map_init(&known, r->arena);
    OPS_TRY(ops_put_definitions(&known, ops_definitions_of(graph.view), error));
    while (epctx_next_view(&nodes, &node)) {
        const epctx_str *reads = NULL;
        size_t count = 0;
        size_t i;
        OPS_TRY(epctx_view_node_captures(node, r->arena, &reads, &count, error));
        for (i = 0; i < count; i++) {
            if (!ops_has(&known, reads[i])) {
                OPS_TRY(ops_add_name(names, r->arena, reads[i], error));
                OPS_TRY(ops_put(&known, reads[i], 1, error));
            }
        }
    }
    return EPCTX_OK;
}

/* Restores initializers that only subgraphs read, which ORT drops. */
static epctx_status repair_dropped(repair *r, epctx_error *error) {
    epctx_list names;
    size_t i;
    memset(&names, 0, sizeof names);
    OPS_TRY(repair_index(r, error));
    OPS_TRY(repair_dropped_names(r, &names, error));
    for (i = 0; i < names.count; i++) {
        epctx_str name = ops_name_at(&names, i);
        epctx_tensor data;
        OPS_TRY(repair_data(r, name, &data, error));
        if (data.data != NULL) {
            OPS_TRY(epctx_edit_put_initializer(r->model, epctx_view_none(), &data,
                                               epctx_view_none(), NULL, error));
            repair_say(r, EPCTX_RULE_DROPPED_VALUE, name,
                       "the initializer comes from the source model, %u bytes",
                       (uint64_t)data.size);
        }
    }
    return EPCTX_OK;
}

/* -- types -- */

typedef struct typing {
    epctx_map known;  /* value -> its element type */
    epctx_map source; /* value of the source model -> number in `views` */
    epctx_list views;
    epctx_map wanted; /* output of EPContext without a type -> what its readers want */
} typing;

/* Values of a graph with a type; the last one of a name counts. */
static bool typing_next(epctx_cursor lists[3], epctx_value_view *value) {
    size_t i;
    for (i = 0; i < 3; i++) {
        while (epctx_next_value(&lists[i], value))
            if (value->has_type) return true;
    }
    return false;
}

static void typing_begin(epctx_graph_view graph, epctx_cursor lists[3]) {
    lists[0] = epctx_view_graph_values(graph);
    lists[1] = epctx_view_graph_inputs(graph);
    lists[2] = epctx_view_graph_outputs(graph);
}

static epctx_status typing_known(repair *r, typing *t, epctx_error *error) {
    epctx_graph_view graph = epctx_model_graph(r->model);
    epctx_cursor tensors = epctx_view_graph_initializers(graph);
    epctx_cursor lists[3];
    epctx_tensor_view tensor;
    epctx_value_view value;
    typing_begin(graph, lists);
    while (typing_next(lists, &value)) {
        OPS_TRY(
            ops_put(&t->known, value.name, value.is_tensor ? (uint32_t)value.elem_type : 0, error));
    }
    while (epctx_next_tensor(&tensors, &tensor))
        OPS_TRY(ops_put(&t->known, tensor.name, (uint32_t)tensor.elem_type, error));
    return EPCTX_OK;
}

static epctx_status typing_source(repair *r, typing *t, epctx_error *error) {
    epctx_cursor lists[3];
    epctx_value_view value;
    if (r->opts->source == NULL) return EPCTX_OK;
    typing_begin(epctx_model_graph(r->opts->source), lists);
    while (typing_next(lists, &value)) {
        OPS_TRY(ops_put(&t->source, value.name, (uint32_t)t->views.count, error));
        OPS_TRY(ops_add_view(&t->views, r->arena, value.view, error));
    }
    return EPCTX_OK;
}

/* Operators whose inputs all have the same type. */
static bool typing_is_uniform(epctx_str op) {
    static const char *const ops[] = {"Add",   "Sub",    "Mul",  "Div",     "MatMul",       "Gemm",
                                      "Conv",  "Concat", "Max",  "Min",     "Sum",          "Mean",
                                      "PRelu", "Equal",  "Less", "Greater", "ConvTranspose"};
    size_t i;
    for (i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (epctx_str_is(op, ops[i])) return true;
    return false;
}

/* Which type the other inputs of a reader leave for a value, or 0. */
static uint32_t typing_reader(const typing *t, const epctx_node_view *node, epctx_str wanted) {
    epctx_cursor inputs = epctx_view_node_inputs(node);
    bool standard = node->domain.size == 0 || epctx_str_is(node->domain, "ai.onnx");
    bool unpack = standard && epctx_str_is(node->op_type, "DequantizeLinear");
    bool pack = standard && epctx_str_is(node->op_type, "QuantizeLinear");
    bool uniform = standard && typing_is_uniform(node->op_type);
    uint32_t at, found = 0;
    epctx_str name;
    for (at = 0; epctx_next_str(&inputs, &name); at++) {
        uint32_t type = epctx_map_get(&t->known, name);
        bool other = !epctx_str_eq(name, wanted);
        if (at == 0 && (unpack || pack) && other) return 0;
        /* The zero point has the type of the quantized value, the scale that of the other one. */
        if (type != EPCTX_MAP_NONE && type != 0 &&
            ((unpack && at == 2) || (pack && at == 1) || (uniform && other)))
            found = type;
    }
    return found;
}

/* Outputs of EPContext nodes without a type, and the types that their readers need. */
static epctx_status typing_wanted(repair *r, typing *t, epctx_error *error) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(r->model));
    epctx_cursor again = nodes;
    epctx_node_view node;
    epctx_str name;
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor outputs = epctx_view_node_outputs(&node);
        while (epctx_view_is_epnode(&node) && epctx_next_str(&outputs, &name))
            if (!ops_has(&t->known, name)) OPS_TRY(ops_put(&t->wanted, name, 0, error));
    }
    while (epctx_next_node(&again, &node)) {
        epctx_cursor inputs = epctx_view_node_inputs(&node);
        while (epctx_next_str(&inputs, &name))
            if (epctx_map_get(&t->wanted, name) == 0)
                OPS_TRY(ops_put(&t->wanted, name, typing_reader(t, &node, name), error));
    }
    return EPCTX_OK;
}

static epctx_status repair_type(repair *r, const typing *t, epctx_str node, epctx_str name,
                                uint32_t elem, epctx_error *error) {
    epctx_view none = epctx_view_none();
    uint32_t at = epctx_map_get(&t->source, name);
    epctx_value value;
    if (at != EPCTX_MAP_NONE) {
        OPS_TRY(epctx_edit_put_copy(r->model, epctx_model_graph(r->model).view,
                                    EPCTX_FIELD_GRAPH_VALUE_INFO, ops_view_at(&t->views, at), none,
                                    NULL, error));
        repair_say(r, EPCTX_RULE_NO_VALUE_TYPE, node, "'%S' now has its type from the source model",
                   &name);
    } else if (elem != 0) {
        memset(&value, 0, sizeof value);
        value.name = name;
        value.elem_type = (int32_t)elem;
        value.rank = -1;
        OPS_TRY(epctx_edit_put_value(r->model, none, EPCTX_FIELD_GRAPH_VALUE_INFO, &value, none,
                                     NULL, error));
        repair_say(r, EPCTX_RULE_NO_VALUE_TYPE, node,
                   "'%S' is now %s: the node that reads it takes nothing else", &name,
                   epctx_elem_name(value.elem_type));
    }
    return EPCTX_OK;
}

static epctx_status repair_types(repair *r, epctx_error *error) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(r->model));
    epctx_node_view node;
    epctx_str name;
    typing t;
    memset(&t, 0, sizeof t);
    epctx_map_init(&t.known, r->arena);
    epctx_map_init(&t.source, r->arena);
    epctx_map_init(&t.wanted, r->arena);
    OPS_TRY(typing_known(r, &t, error));
    OPS_TRY(typing_source(r, &t, error));
    OPS_TRY(typing_wanted(r, &t, error));
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor outputs = epctx_view_node_outputs(&node);
        while (epctx_view_is_epnode(&node) && epctx_next_str(&outputs, &name)) {
            uint32_t elem = epctx_map_get(&t.wanted, name);
            if (elem != EPCTX_MAP_NONE) { /* once, also where two nodes give it */
                OPS_TRY(repair_type(r, &t, node.name, name, elem, error));
                OPS_TRY(ops_put(&t.wanted, name, EPCTX_MAP_NONE, error));
            }
        }
    }
    return EPCTX_OK;
}

/* -- metadata, annotations, initializers -- */

typedef struct stale {
    epctx_arena *arena;
    epctx_list names;
    epctx_status status;
    epctx_error *error;
} stale;

static epctx_status stale_add(stale *s, epctx_str key) {
    epctx_str copy;
    OPS_TRY(ops_join(s->arena, key, epctx_str_of(""), &copy, s->error));
    return ops_add_name(&s->names, s->arena, copy, s->error);
}

static void stale_found(void *user, const epctx_finding *finding) {
    stale *s = (stale *)user;
    if (finding->rule == EPCTX_RULE_STALE_COMPAT && s->status == EPCTX_OK)
        s->status = stale_add(s, finding->node);
}

/* Compatibility information of EPs without a node; when no node is compiled, of all. */
static epctx_status stale_keys(epctx_model *model, stale *s, epctx_error *error) {
    epctx_check_opts opts;
    epctx_cursor pairs;
    epctx_pair pair;
    epctx_walk walk;
    epctx_node_view node;
    memset(&opts, 0, sizeof opts);
    memset(s, 0, sizeof *s);
    s->arena = &model->arena;
    s->error = error;
    opts.no_files = true;
    opts.allocator = model->arena.allocator.alloc_fn != NULL ? &model->arena.allocator : NULL;
    epctx_walk_begin(&walk, model);
    if (epctx_walk_epnode(&walk, &node)) {
        OPS_TRY(epctx_lint(model, &opts, stale_found, s, NULL, error));
        return s->status;
    }
    pairs = epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    while (epctx_next_pair(&pairs, &pair))
        if (epctx_str_starts(pair.key, EPCTX_COMPAT_PREFIX)) OPS_TRY(stale_add(s, pair.key));
    return EPCTX_OK;
}

epctx_status ops_drop_stale(ops_report *report, epctx_model *model, epctx_error *error) {
    stale s;
    size_t i;
    OPS_TRY(stale_keys(model, &s, error));
    for (i = 0; i < s.names.count; i++) {
        epctx_str name = ops_name_at(&s.names, i);
        const epctx_step step = ops_step(0, "remove", "metadata", name);
        OPS_TRY(epctx_edit_remove_metadata(model, name, error));
        OPS_TRY(ops_say(report, &step, error, "metadata '%S' was removed: that EP has no node here",
                        &name));
    }
    return EPCTX_OK;
}

static epctx_status repair_stale(repair *r, epctx_error *error) {
    stale s;
    size_t i;
    OPS_TRY(stale_keys(r->model, &s, error));
    for (i = 0; i < s.names.count; i++) {
        OPS_TRY(epctx_edit_remove_metadata(r->model, ops_name_at(&s.names, i), error));
        repair_say(r, EPCTX_RULE_STALE_COMPAT, ops_name_at(&s.names, i),
                   "the entry was removed: that EP has no node here");
    }
    return EPCTX_OK;
}

static bool repair_names_exist(const epctx_map *names, const epctx_annotation_view *annotation) {
    epctx_cursor pairs = epctx_annotation_pairs(annotation);
    epctx_pair pair;
    while (epctx_next_pair(&pairs, &pair))
        if (!ops_has(names, pair.value)) return false;
    return ops_has(names, annotation->tensor_name);
}

static epctx_status repair_annotations(repair *r, epctx_error *error) {
    epctx_graph_view graph = epctx_model_graph(r->model);
    epctx_cursor it = epctx_graph_annotations(graph);
    epctx_annotation_view annotation;
    epctx_map names;
    epctx_map_init(&names, r->arena);
    OPS_TRY(ops_put_definitions(&names, ops_definitions_of(graph.view), error));
    while (epctx_next_annotation(&it, &annotation)) {
        if (!repair_names_exist(&names, &annotation)) {
            OPS_TRY(epctx_edit_remove(r->model, annotation.view, error));
            repair_say(r, EPCTX_RULE_ANNOTATION, annotation.tensor_name,
                       "the annotation was removed: a value that it names does not exist");
        }
    }
    return EPCTX_OK;
}

static epctx_status repair_unused(repair *r, epctx_error *error) {
    ops_changes changes;
    size_t i;
    OPS_TRY(epctx_init_prune(r->model, NULL, &changes, error));
    for (i = 0; i < changes.count; i++) {
        repair_say(r, EPCTX_RULE_UNUSED, changes.items[i].name,
                   "the initializer was removed, %u bytes", changes.items[i].size);
    }
    return EPCTX_OK;
}

/* ORT reads them in the model only. A file that cannot be read is another finding. */
static epctx_status repair_shapes(repair *r, epctx_error *error) {
    const epctx_rule rule =
        r->found[EPCTX_RULE_SHAPE_OUTSIDE] > 0 ? EPCTX_RULE_SHAPE_OUTSIDE : EPCTX_RULE_SHAPE_MAYBE;
    ops_changes changes;
    size_t i;
    const epctx_status status = epctx_init_shapes(r->model, NULL, &changes, error);
    if (status == EPCTX_ERR_NOMEM) return status;
    if (status != EPCTX_OK) epctx_error_clear(error);
    for (i = 0; i < changes.count; i++) {
        repair_say(r, rule, changes.items[i].name, "the constant is in the model again, %u bytes",
                   changes.items[i].size);
    }
    return EPCTX_OK;
}

/* -- which repair is for which rule -- */

/* In the order in which they run: what later ones read, earlier ones have put right. Either one
 * step for the model or one for each EPContext node. */
typedef struct repairer {
    epctx_rule rule;
    epctx_status (*model_fn)(repair *r, epctx_error *error);
    repair_node_fn node_fn;
    bool source; /* does more, or anything at all, with the source model */
    bool
        judge; /* what was right before may be wrong now: a node in another domain was not judged */
} repairer;

static const repairer repairers[] = {
    {EPCTX_RULE_DOUBLED_FIELD, repair_doubled_fields, NULL, false, true},
    {EPCTX_RULE_DOUBLED_OPSET, repair_entries, NULL, false, false},
    {EPCTX_RULE_DOUBLED_METADATA, repair_entries, NULL, false, false},
    {EPCTX_RULE_DOUBLED_FUNCTION, repair_entries, NULL, false, false},
    {EPCTX_RULE_DOUBLED_INFO, repair_entries, NULL, false, false},
    {EPCTX_RULE_REDEFINED, repair_entries, NULL, false, false},
    {EPCTX_RULE_DOUBLED_ATTRIBUTE, NULL, repair_doubled_attributes, false, false},
    {EPCTX_RULE_BODY_INPUT, repair_body_inputs, NULL, false, false},
    {EPCTX_RULE_OUTER_NAME, repair_shadows, NULL, false, false},
    {EPCTX_RULE_WRONG_DOMAIN, NULL, repair_domain, false, true},
    {EPCTX_RULE_EPCONTEXT_OPSET, repair_import, NULL, false, false},
    {EPCTX_RULE_NO_OPSET, repair_imports, NULL, true, false},
    {EPCTX_RULE_DEFAULT_OPSET, repair_imports, NULL, true, false},
    {EPCTX_RULE_OP_SPELLING, repair_op_spelling, NULL, false, true},
    {EPCTX_RULE_LIKE_PATH, NULL, repair_like_path, false, true},
    {EPCTX_RULE_PAYLOAD_AS_PATH, NULL, repair_payload_as_path, false, true},
    {EPCTX_RULE_SOURCE_SPELLING, NULL, repair_sources, false, false},
    {EPCTX_RULE_NO_SOURCE, NULL, repair_sources, false, false},
    {EPCTX_RULE_SOURCE_ABSENT, NULL, repair_sources, false, true},
    {EPCTX_RULE_CONTEXT_PLACE, repair_places, NULL, false, true},
    {EPCTX_RULE_NO_ATTRIBUTE, NULL, repair_attributes, false, false},
    {EPCTX_RULE_DEFAULTS, NULL, repair_attributes, false, false},
    {EPCTX_RULE_DOUBLED_EPNODE, repair_names, NULL, false, false},
    {EPCTX_RULE_DOUBLED_NODE, repair_names, NULL, false, false},
    {EPCTX_RULE_NO_NAME, repair_names, NULL, false, false},
    {EPCTX_RULE_MEMORY_LOCATION, repair_memory, NULL, true, false},
    {EPCTX_RULE_DROPPED_VALUE, repair_dropped, NULL, true, false},
    {EPCTX_RULE_BACKSLASH, repair_files, NULL, false, false},
    {EPCTX_RULE_PATH_UNSAFE, repair_files, NULL, false, false},
    {EPCTX_RULE_FILE_MISSING, repair_files, NULL, false, false},
    {EPCTX_RULE_BUILD_PATH, NULL, repair_build_path, false, false},
    {EPCTX_RULE_NO_VALUE_TYPE, repair_types, NULL, true, false},
    {EPCTX_RULE_ANNOTATION, repair_annotations, NULL, false, false},
    {EPCTX_RULE_STALE_COMPAT, repair_stale, NULL, false, false},
    {EPCTX_RULE_SHAPE_OUTSIDE, repair_shapes, NULL, false, false},
    {EPCTX_RULE_SHAPE_MAYBE, repair_shapes, NULL, false, false},
    {EPCTX_RULE_UNUSED, repair_unused, NULL, false, false},
};

#define REPAIRER_COUNT (sizeof repairers / sizeof repairers[0])

static const repairer *repairer_find(epctx_rule rule) {
    size_t i;
    for (i = 0; i < REPAIRER_COUNT; i++)
        if (repairers[i].rule == rule) return &repairers[i];
    return NULL;
}

bool epctx_can_repair(epctx_rule rule) {
    return repairer_find(rule) != NULL;
}

bool epctx_repair_wants_source(epctx_rule rule) {
    const repairer *known = repairer_find(rule);
    return known != NULL && known->source;
}

static void repair_count(void *user, const epctx_finding *finding) {
    ((repair *)user)->found[finding->rule]++;
}

static const char *repair_why_missing(const repair *r, const epctx_finding *finding) {
    size_t i;
    for (i = 0; i < r->searched.count; i++) {
        const repair_searched *searched = (const repair_searched *)r->searched.items + i;
        if (epctx_str_eq(searched->node, finding->node) &&
            strcmp(searched->attribute, finding->attribute) == 0)
            return searched->text;
    }
    /* The rule's own fix sends the reader to this command. */
    return "copy it beside the model; one that was renamed: epctx set MODEL --node NAME "
           "ep_cache_context=FILE --in-place";
}

static void repair_left(void *user, const epctx_finding *finding) {
    repair *r = (repair *)user;
    char line[1024];
    epctx_text text = epctx_text_of(line, sizeof line);
    const char *why = finding->info.fix;
    epctx_repair_note note;
    if (!r->wanted[finding->rule]) return;
    memset(&note, 0, sizeof note);
    note.needs_source = epctx_repair_wants_source(finding->rule) && r->opts->source == NULL;
    if (note.needs_source) {
        why = "only the source model has the information";
    } else if (finding->rule == EPCTX_RULE_FILE_MISSING) {
        why = repair_why_missing(r, finding);
    } else if (finding->rule == EPCTX_RULE_NO_VALUE_TYPE) {
        why = "the source model does not have it: compile it again, or first run type inference on "
              "it";
    }
    epctx_text_put(&text, epctx_str_of(finding->attribute));
    epctx_text_put(&text, epctx_str_of(finding->attribute[0] != '\0' ? " " : ""));
    epctx_text_put(&text, epctx_str_of(finding->message));
    epctx_text_put(&text, epctx_str_of(" ("));
    epctx_text_put(&text, epctx_str_of(why));
    epctx_text_put_char(&text, ')');
    note.rule = finding->rule;
    note.info = finding->info;
    note.name = finding->node;
    note.text = line;
    r->left++;
    if (r->note_fn != NULL) r->note_fn(r->user, &note);
}

static epctx_status repair_run(repair *r, epctx_error *error) {
    const epctx_check_opts *check = &r->opts->check;
    const repairer *last = NULL;
    size_t i;
    OPS_TRY(epctx_lint(r->model, check, repair_count, r, NULL, error));
    for (i = 0; i < REPAIRER_COUNT; i++) {
        const repairer *next = &repairers[i];
        if (!r->wanted[next->rule] || r->found[next->rule] == 0 ||
            (last != NULL && next->model_fn == last->model_fn && next->node_fn == last->node_fn) ||
            (next->rule != EPCTX_RULE_DOUBLED_FIELD && !epctx_model_is_editable(r->model)))
            continue;
        last = next;
        OPS_TRY(next->model_fn != NULL ? next->model_fn(r, error)
                                       : repair_nodes(r, next->node_fn, error));
        if (next->judge) OPS_TRY(epctx_lint(r->model, check, repair_count, r, NULL, error));
    }
    return epctx_lint(r->model, check, repair_left, r, NULL, error);
}

static epctx_status repair_choose(repair *r, epctx_error *error) {
    size_t i;
    for (i = 0; i < EPCTX_RULE_COUNT && r->opts->rule_count == 0; i++)
        r->wanted[i] = epctx_rule_of((epctx_rule)i).severity != EPCTX_SEVERITY_HINT;
    for (i = 0; i < r->opts->rule_count; i++) {
        epctx_rule rule = r->opts->rules[i];
        if ((unsigned)rule >= EPCTX_RULE_COUNT)
            return epctx_fail(error, EPCTX_ERR_ARG, "there is no rule %d", (int64_t)rule);
        r->wanted[rule] = true;
    }
    return EPCTX_OK;
}

epctx_status epctx_repair(epctx_model *model, const epctx_repair_opts *opts,
                          epctx_repair_fn note_fn, void *user, size_t *done, size_t *left,
                          epctx_error *error) {
    static const epctx_repair_opts defaults;
    size_t mark = epctx_edit_mark(model);
    epctx_status status;
    beside own;
    repair r;
    epctx_error_clear(error);
    memset(&r, 0, sizeof r);
    r.model = model;
    r.arena = &model->arena;
    r.opts = opts != NULL ? opts : &defaults;
    r.note_fn = note_fn;
    r.user = user;
    epctx_map_init(&r.sources, r.arena);
    epctx_map_init(&r.holder_of, r.arena);
    OPS_TRY(repair_choose(&r, error));
    beside_init(&own, model->arena.allocator.alloc_fn != NULL ? &model->arena.allocator : NULL);
    r.files = r.opts->files != NULL ? r.opts->files : &own;
    status = repair_run(&r, error);
    beside_free(&own);
    OPS_TRY(ops_end(model, mark, status, error));
    if (done != NULL) *done = r.done;
    if (left != NULL) *left = r.left;
    return EPCTX_OK;
}
