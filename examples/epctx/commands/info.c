/* epctx info: what is in a model, for people and (--json) for programs. */
#include "info_binary.h"
#include "core/asker.h"
#include "core/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/given.h"
#include "core/options.h"
#include "delivery/each.h"

/* -- for people -- */

static void put_quoted(epctx_str text) {
    putchar('\'');
    cli_put(stdout, text);
    putchar('\'');
}

static void line(const char *word, epctx_str text) {
    printf("%-14s ", word);
    cli_put(stdout, text);
    putchar('\n');
}

static void put_type(const epctx_value_view *value) {
    epctx_cursor dims = epctx_view_value_dims(value);
    const char *comma = "";
    epctx_dim dim;
    if (!value->is_tensor) {
        fputs(value->has_type ? "not a tensor" : "no type", stdout);
        return;
    }
    fputs(epctx_elem_name(value->elem_type), stdout);
    fputs(value->has_shape ? "[" : ", no shape", stdout);
    while (value->has_shape && epctx_next_dim(&dims, &dim)) {
        fputs(comma, stdout);
        comma = ",";
        if (dim.known)
            printf("%" PRId64, dim.value);
        else if (dim.param.size > 0)
            cli_put(stdout, dim.param);
        else
            putchar('?');
    }
    if (value->has_shape) putchar(']');
}

static void put_values(const char *word, epctx_cursor values) {
    epctx_value_view value;
    while (epctx_next_value(&values, &value)) {
        printf("%-14s ", word);
        put_quoted(value.name);
        putchar(' ');
        put_type(&value);
        putchar('\n');
    }
}

static void put_opsets(epctx_view model) {
    epctx_cursor it = epctx_view_fields(model, EPCTX_FIELD_MODEL_OPSET_IMPORT);
    const char *comma = "";
    epctx_field field;
    printf("%-14s ", "opsets");
    while (epctx_next_field(&it, &field)) {
        epctx_str domain;
        if (field.wire != EPCTX_WIRE_LEN) continue;
        domain = ops_last_str(field.body, EPCTX_FIELD_OPSET_DOMAIN);
        fputs(comma, stdout);
        comma = ", ";
        cli_put(stdout, domain.size > 0 ? domain : epctx_str_of("ai.onnx"));
        printf(" %" PRId64, ops_last_int(field.body, EPCTX_FIELD_OPSET_VERSION));
    }
    puts(comma[0] != '\0' ? "" : "none");
}

static void put_head(const report *all) {
    epctx_model_info info = epctx_model_read(all->model);
    epctx_graph_view graph = epctx_model_graph(all->model);
    line("model", epctx_str_of(all->file));
    printf("%-14s ", "producer");
    cli_put(stdout, info.producer_name.size > 0 ? info.producer_name : epctx_str_of("(none)"));
    if (info.producer_version.size > 0) putchar(' ');
    cli_put(stdout, info.producer_version);
    printf("\n%-14s %" PRId64 "\n", "IR version", info.ir_version);
    put_opsets(info.view);
    if (!epctx_model_has_graph(all->model)) {
        puts("graph          none");
        return;
    }
    printf("%-14s ", "graph");
    put_quoted(graph.name);
    printf(", %zu EPContext node%s, %" PRIu64 " other%s, %" PRIu64 " initializer%s\n",
           all->part_count, cli_plural(all->part_count), all->cpu_nodes, cli_plural(all->cpu_nodes),
           all->initializers, cli_plural(all->initializers));
    put_values("input", epctx_view_graph_inputs(graph));
    put_values("output", epctx_view_graph_outputs(graph));
}

static bool is_compat(epctx_str key) {
    const size_t size = sizeof EPCTX_COMPAT_PREFIX - 1;
    return key.size >= size && memcmp(key.data, EPCTX_COMPAT_PREFIX, size) == 0;
}

/* One attribute of a partition, when the node has it. */
static void put_attr(const epctx_epnode *node, epctx_epnode_attr attr, const char *word,
                     epctx_str text) {
    if ((node->present & 1u << attr) == 0) return;
    printf("    %-20s ", word);
    cli_put(stdout, text);
    putchar('\n');
}

static void put_content(const report_part *part) {
    const epctx_epnode *node = &part->node;
    bool main = node->main_context == 1;
    if (!main && node->ep_cache_context.size == 0 && part->dlc.size == 0) {
        printf("    %-20s secondary: inside a main one\n", "context");
        return;
    }
    printf("    %-20s %s, ", "context", main ? "main" : "own context");
    if (part->dlc.size > 0 && node->ep_cache_context.size == 0) {
        fputs("in the DLC ", stdout);
        put_quoted(part->dlc);
        puts(main ? "" : " (main_context=0)");
    } else if (node->embed_mode == 1)
        printf("embedded, %zu byte%s%s\n", node->ep_cache_context.size,
               cli_plural(node->ep_cache_context.size), main ? "" : " (main_context=0)");
    else if (node->ep_cache_context.size > 0) {
        fputs("in the file ", stdout);
        put_quoted(node->ep_cache_context);
        puts(main ? "" : " (main_context=0)");
    } else
        puts("no file of its own");
}

/* Names of values, the first few of many. */
static void put_names(const char *word, epctx_cursor names) {
    const char *comma = "";
    epctx_str name;
    int shown = 0;
    printf("    %-20s ", word);
    for (; epctx_next_str(&names, &name); comma = ", ") {
        if (++shown > 16) continue;
        fputs(comma, stdout);
        put_quoted(name);
    }
    if (shown > 16) printf(" and %d more", shown - 16);
    puts(shown == 0 ? "none" : "");
}

static bool is_known(epctx_str name) {
#define KNOWN_ROW(id, text, kind, member) \
    if (epctx_str_is(name, text)) return true;
    EPCTX_EPNODE_ATTR_LIST(KNOWN_ROW)
#undef KNOWN_ROW
    return false;
}

/* ORT makes all weights inputs of a weightless node, epctx none. */
static bool is_input(const epctx_node_view *node, epctx_str name) {
    epctx_cursor it = epctx_view_node_inputs(node);
    epctx_str input;
    while (epctx_next_str(&it, &input))
        if (epctx_str_eq(input, name)) return true;
    return false;
}

/* Attributes that the schema does not have: many EPs have their own. */
static void put_extras(const report_part *part) {
    epctx_cursor it = epctx_view_node_attrs(&part->view);
    epctx_attr_view attr;
    while (epctx_next_attr(&it, &attr)) {
        epctx_str rest = attr.s;
        epctx_outside_weight ref;
        size_t count = 0;
        bool inputs = false;
        if (is_known(attr.name)) continue;
        if (epctx_str_is(attr.name, EPCTX_WEIGHTS_ATTR) && attr.type == EPCTX_ATTR_STRING) {
            for (; epctx_outside_weight_next(&rest, &ref); count++)
                if (count == 0) inputs = is_input(&part->view, ref.name);
            printf("    %-20s %zu, %s\n", "weights", count,
                   inputs ? "inputs of the node" : "read from the source model");
            continue;
        }
        fputs("    attribute            ", stdout);
        cli_put(stdout, attr.name);
        if (attr.type == EPCTX_ATTR_INT) {
            printf(" = %" PRId64, attr.i);
        } else if (attr.type == EPCTX_ATTR_STRING && attr.s.size <= 120) {
            fputs(" = ", stdout);
            put_quoted(attr.s);
        } else if (attr.type == EPCTX_ATTR_STRING) {
            printf(", %zu bytes", attr.s.size);
        } else {
            printf(", %s", epctx_attr_type_name(attr.type));
        }
        putchar('\n');
    }
}

static void put_made(const char *word, epctx_str text) {
    if (text.size == 0) return;
    printf("    %-20s ", word);
    cli_put(stdout, text);
    putchar('\n');
}

/* Of the reference NPU's binary; false: it is another one's, or cannot be loaded. */
static bool read_kernels(const binary_context *context, epctx_arena *arena, info_kernels *out) {
    epctx_span bytes;
    if (context->facts.id.kind != EPCTX_BINARY_NPU) return false;
    bytes.data =
        context->mapped ? context->mapping.data : (const uint8_t *)context->place.context.data;
    bytes.size = context->mapped ? context->mapping.size : context->place.context.size;
    return info_read_kernels(bytes, arena, out);
}

static void put_kernels(const binary_context *context) {
    epctx_arena arena;
    info_kernels kernels;
    epctx_arena_init(&arena, NULL);
    if (read_kernels(context, &arena, &kernels))
        printf("    %-20s '%s'\n", "  kernels", kernels.option.data);
    epctx_arena_free(&arena);
}

static void json_kernels(json_writer *w, const binary_context *context) {
    epctx_arena arena;
    info_kernels kernels;
    epctx_arena_init(&arena, NULL);
    info_json_kernels(w, read_kernels(context, &arena, &kernels) ? &kernels : NULL);
    epctx_arena_free(&arena);
}

/* What the context itself tells, whatever the attributes say. */
static void put_binary(const binary_context *context) {
    const binary_facts *facts;
    if (context == NULL || context->facts.id.kind == EPCTX_BINARY_UNKNOWN) return;
    facts = &context->facts;
    put_made("the binary is", epctx_str_of(facts->id.name));
    if (info_has_target(facts)) {
        printf("    %-20s ", "  made for");
        info_put_target(facts);
        putchar('\n');
    }
    put_made("  SDK", facts->sdk);
    put_made("  told by", epctx_str_of(facts->told_by));
    put_kernels(context);
    if (facts->damage != NULL) printf("    %-20s it %s\n", "  warning:", facts->damage);
}

static void put_part(const report_part *part, const binary_context *context, size_t number) {
    const epctx_epnode *node = &part->node;
    printf("  #%zu ", number);
    put_quoted(node->name);
    if (part->graph.size > 0) {
        fputs(" in ", stdout);
        put_quoted(part->graph);
    }
    printf(", %" PRIu32 " input%s, %" PRIu32 " output%s%s\n", part->inputs,
           cli_plural(part->inputs), part->outputs, cli_plural(part->outputs),
           part->readable ? "" : ", broken");
    if (!part->readable) return;
    put_attr(node, EPCTX_EPNODE_SOURCE, "source", node->source);
    put_content(part);
    put_attr(node, EPCTX_EPNODE_EP_SDK_VERSION, "SDK version", node->ep_sdk_version);
    put_attr(node, EPCTX_EPNODE_HARDWARE_ARCHITECTURE, "architecture", node->hardware_architecture);
    put_attr(node, EPCTX_EPNODE_PARTITION_NAME, "partition name", node->partition_name);
    put_attr(node, EPCTX_EPNODE_ONNX_MODEL_FILENAME, "made from", node->onnx_model_filename);
    put_attr(node, EPCTX_EPNODE_NOTES, "notes", node->notes);
    if ((node->present & 1u << EPCTX_EPNODE_MAX_SIZE) != 0)
        printf("    %-20s %" PRId64 "\n", "max_size", node->max_size);
    put_binary(context);
    put_names("inputs", epctx_view_node_inputs(&part->view));
    put_names("outputs", epctx_view_node_outputs(&part->view));
    put_extras(part);
}

/* The path as the user would type it: what stands before the name is where it was looked for. */
static void put_file(const epctx_dependency *file) {
    fputs("  ", stdout);
    cli_put(stdout, epctx_str_of(file->folder));
    cli_put(stdout, file->name);
    printf(", %s, ", epctx_file_use_name(file->use));
    if (file->path != NULL)
        printf("%" PRIu64 " byte%s\n", file->size, cli_plural(file->size));
    else
        puts(file->required ? "missing or unusable"
                            : "not found, and not needed to load the model");
}

static void put_cpu(const report *all) {
    size_t i;
    printf("%-14s ", "on the CPU");
    if (all->op_count == 0) fputs("nothing", stdout);
    for (i = 0; i < all->op_count; i++) {
        printf("%s%" PRIu64 " ", i > 0 ? ", " : "", all->ops[i].count);
        cli_put(stdout, all->ops[i].name);
    }
    putchar('\n');
}

/* What the session will have to do, and which EPs it needs. */
static void put_state(const epctx_state *state) {
    static const char *const words[3] = {"not compiled; EPs compile when the model is loaded",
                                         "partly compiled", "fully compiled"};
    size_t i;
    printf("%-14s ", "state");
    if (state->broken_nodes > 0)
        printf(
            "%" PRIu64 " EPContext node%s that no EP takes, in a wrong domain or unreadable: see "
            "epctx lint%s",
            state->broken_nodes, cli_plural(state->broken_nodes), state->ep_nodes > 0 ? "; " : "");
    if (state->broken_nodes == 0 || state->ep_nodes > 0) fputs(words[state->compiled], stdout);
    if (state->weightless_inputs > 0)
        printf(", weightless: EPContext nodes take %" PRIu64 " initializer%s as input%s",
               state->weightless_inputs, cli_plural(state->weightless_inputs),
               cli_plural(state->weightless_inputs));
    putchar('\n');
    for (i = 0; i < state->maker_count; i++) {
        const epctx_maker *maker = &state->makers[i];
        printf("%-14s %" PRIu64 " node%s for ", "needs", maker->nodes, cli_plural(maker->nodes));
        cli_put(stdout, maker->source.size > 0 ? maker->source : epctx_str_of("an unnamed EP"));
        if (maker->sdk_version.size > 0) fputs(", SDK ", stdout);
        cli_put(stdout, maker->sdk_version);
        if (maker->architecture.size > 0) fputs(", for ", stdout);
        cli_put(stdout, maker->architecture);
        printf(" (profile %s)\n", maker->profile->name);
    }
    for (i = 0; i < state->compat_count; i++) {
        printf("%-14s ", "compatibility");
        cli_put(stdout, state->compat[i].ep);
        fputs(": ", stdout);
        cli_put(stdout, state->compat[i].value);
        putchar('\n');
    }
}

/* With which options the EPs compiled, and what they need of them again. */
static void put_builds(const report *all) {
    size_t i;
    for (i = 0; i < all->build_count; i++) {
        const given_build *build = &all->builds[i];
        printf("%-14s ", "compiled by");
        cli_put(stdout, epctx_str_of(build->source));
        if (build->device != NULL) fputs(" on ", stdout);
        cli_put(stdout, epctx_str_of(build->device));
        putchar('\n');
        if (build->count == 0) continue;
        printf("%-14s ", "compiled with");
        given_put(stdout, build, false);
        putchar('\n');
        if (build->needed == 0) continue;
        printf("%-14s ", "load with");
        given_put(stdout, build, true);
        putchar('\n');
    }
}

/* Entries that nothing else here shows. */
static void put_metadata(const report *all) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(all->model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair)) {
        if (is_compat(pair.key)) continue;
        printf("%-14s ", "metadata");
        cli_put(stdout, pair.key);
        if (pair.value.size > 120 || memchr(pair.value.data, '\n', pair.value.size) != NULL) {
            printf(", %zu byte%s\n", pair.value.size, cli_plural(pair.value.size));
            continue;
        }
        fputs(" = ", stdout);
        put_quoted(pair.value);
        putchar('\n');
    }
}

static const binary_context *context_of(const report *all, const report_part *part) {
    return part->readable ? binary_context_of(&all->contexts, &part->view, &part->node) : NULL;
}

static void print_text(const report *all, const epctx_state *state) {
    size_t i;
    put_head(all);
    put_state(state);
    put_builds(all);
    if (all->part_count == 0)
        puts("partitions     none, the model has no EPContext node");
    else
        printf("%-14s %zu\n", "partitions", all->part_count);
    for (i = 0; i < all->part_count; i++)
        put_part(&all->parts[i], context_of(all, &all->parts[i]), i + 1);
    if (all->file_count > 0) printf("%-14s %zu\n", "files", all->file_count);
    for (i = 0; i < all->file_count; i++) put_file(&all->files[i]);
    put_cpu(all);
    if (all->inner_nodes > 0)
        printf("%-14s %" PRIu64 " ordinary node%s in bodies and functions\n", "", all->inner_nodes,
               cli_plural(all->inner_nodes));
    put_metadata(all);
    for (i = 0; i < all->warning_count; i++) line("warning:", epctx_str_of(all->warnings[i]));
}

/* -- for programs -- */

static void json_head(json_writer *w, const report *all) {
    epctx_model_info info = epctx_model_read(all->model);
    epctx_cursor it = epctx_view_fields(info.view, EPCTX_FIELD_MODEL_OPSET_IMPORT);
    epctx_field field;
    json_text(w, "file", all->file);
    json_str(w, "producer_name", info.producer_name);
    json_str(w, "producer_version", info.producer_version);
    json_int(w, "ir_version", info.ir_version);
    json_array(w, "opsets", JSON_INLINE);
    while (epctx_next_field(&it, &field)) {
        if (field.wire != EPCTX_WIRE_LEN) continue;
        json_object(w, NULL, JSON_INLINE);
        json_str(w, "domain", ops_last_str(field.body, EPCTX_FIELD_OPSET_DOMAIN));
        json_int(w, "version", ops_last_int(field.body, EPCTX_FIELD_OPSET_VERSION));
        json_end(w);
    }
    json_end(w);
    json_str(w, "graph", epctx_model_graph(all->model).name);
    json_uint(w, "initializers", all->initializers);
}

/* A dimension is a number, its parameter's name, or null; `dims` is null without a shape. */
static void json_dims(json_writer *w, const epctx_value_view *value) {
    epctx_cursor dims = epctx_view_value_dims(value);
    epctx_dim dim;
    if (!value->has_shape) {
        json_null(w, "dims");
        return;
    }
    json_array(w, "dims", JSON_INLINE);
    while (epctx_next_dim(&dims, &dim))
        if (dim.known)
            json_int(w, NULL, dim.value);
        else if (dim.param.size > 0)
            json_str(w, NULL, dim.param);
        else
            json_null(w, NULL);
    json_end(w);
}

static void json_values(json_writer *w, const char *key, epctx_cursor values) {
    epctx_value_view value;
    json_array(w, key, JSON_HANGING);
    while (epctx_next_value(&values, &value)) {
        json_object(w, NULL, JSON_INLINE);
        json_str(w, "name", value.name);
        json_int(w, "elem_type", value.is_tensor ? value.elem_type : 0);
        json_dims(w, &value);
        json_end(w);
    }
    json_end(w);
}

/* null: the node does not have the attribute. */
static void json_attr(json_writer *w, const epctx_epnode *node, epctx_epnode_attr attr,
                      const char *key, epctx_str text) {
    if ((node->present & 1u << attr) != 0)
        json_str(w, key, text);
    else
        json_null(w, key);
}

static void json_names(json_writer *w, const char *key, epctx_cursor names) {
    epctx_str name;
    json_array(w, key, JSON_INLINE);
    while (epctx_next_str(&names, &name)) json_str(w, NULL, name);
    json_end(w);
}

/* Attributes outside of the schema: numbers and texts by value, others by the name of their
 * type. */
static void json_extras(json_writer *w, const report_part *part) {
    epctx_cursor it = epctx_view_node_attrs(&part->view);
    epctx_attr_view attr;
    json_object(w, "attributes", JSON_INLINE);
    while (epctx_next_attr(&it, &attr)) {
        if (is_known(attr.name)) continue;
        json_key(w, attr.name);
        if (attr.type == EPCTX_ATTR_INT) {
            json_int(w, NULL, attr.i);
        } else if (attr.type == EPCTX_ATTR_STRING && epctx_str_is_utf8(attr.s)) {
            json_str(w, NULL, attr.s);
        } else {
            json_object(w, NULL, JSON_INLINE);
            json_text(w, "type", epctx_attr_type_name(attr.type));
            json_end(w);
        }
    }
    json_end(w);
}

static void json_binary(json_writer *w, const binary_context *context) {
    const binary_facts *facts;
    if (context == NULL) {
        json_null(w, "binary");
        return;
    }
    facts = &context->facts;
    json_object(w, "binary", JSON_INLINE);
    json_text(w, "kind", facts->id.name);
    json_text(w, "told_by", facts->told_by);
    info_json_known(w, "sdk_version", facts->sdk);
    info_json_target(w, facts);
    json_kernels(w, context);
    json_text(w, "damage", facts->damage);
    json_end(w);
}

static void json_part(json_writer *w, const report_part *part, const binary_context *context) {
    const epctx_epnode *node = &part->node;
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "name", node->name);
    json_str(w, "graph", part->graph);
    json_bool(w, "readable", part->readable);
    json_uint(w, "inputs", part->inputs);
    json_uint(w, "outputs", part->outputs);
    json_names(w, "input_names", epctx_view_node_inputs(&part->view));
    json_names(w, "output_names", epctx_view_node_outputs(&part->view));
    json_extras(w, part);
    if (part->readable) {
        json_int(w, "main_context", node->main_context);
        json_int(w, "embed_mode", node->embed_mode);
        if (node->embed_mode == 1)
            json_uint(w, "payload_size", node->ep_cache_context.size);
        else
            json_attr(w, node, EPCTX_EPNODE_EP_CACHE_CONTEXT, "ep_cache_context",
                      node->ep_cache_context);
        json_attr(w, node, EPCTX_EPNODE_SOURCE, "source", node->source);
        json_attr(w, node, EPCTX_EPNODE_EP_SDK_VERSION, "ep_sdk_version", node->ep_sdk_version);
        json_attr(w, node, EPCTX_EPNODE_HARDWARE_ARCHITECTURE, "hardware_architecture",
                  node->hardware_architecture);
        json_attr(w, node, EPCTX_EPNODE_PARTITION_NAME, "partition_name", node->partition_name);
        json_attr(w, node, EPCTX_EPNODE_ONNX_MODEL_FILENAME, "onnx_model_filename",
                  node->onnx_model_filename);
        json_attr(w, node, EPCTX_EPNODE_NOTES, "notes", node->notes);
        json_int(w, "max_size", node->max_size);
        json_binary(w, context);
    }
    json_end(w);
}

static void json_file(json_writer *w, const epctx_dependency *file) {
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "name", file->name);
    json_text(w, "purpose", epctx_file_use_name(file->use));
    json_bool(w, "required", file->required);
    json_text(w, "path", file->path);
    if (file->path != NULL)
        json_uint(w, "size", file->size);
    else
        json_null(w, "size");
    json_end(w);
}

static void json_maker(json_writer *w, const epctx_maker *maker) {
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "source", maker->source);
    json_str(w, "ep_sdk_version", maker->sdk_version);
    json_str(w, "hardware_architecture", maker->architecture);
    json_text(w, "profile", maker->profile->name);
    json_uint(w, "nodes", maker->nodes);
    json_uint(w, "primaries", maker->primaries);
    json_uint(w, "embedded", maker->embedded);
    json_uint(w, "payload_size", maker->payload_size);
    json_end(w);
}

static void json_state(json_writer *w, const epctx_state *state) {
    static const char *const words[3] = {"plain", "partly", "fully"};
    size_t i;
    json_text(w, "state", words[state->compiled]);
    json_uint(w, "weightless_inputs", state->weightless_inputs);
    json_uint(w, "broken_nodes", state->broken_nodes);
    json_array(w, "makers", JSON_HANGING);
    for (i = 0; i < state->maker_count; i++) json_maker(w, &state->makers[i]);
    json_end(w);
    json_object(w, "compatibility", JSON_INLINE);
    for (i = 0; i < state->compat_count; i++) {
        json_key(w, state->compat[i].ep);
        json_str(w, NULL, state->compat[i].value);
    }
    json_end(w);
}

/* How many nodes of each kind, all metadata, and what is wrong. */
static void json_rest(json_writer *w, const report *all) {
    epctx_cursor metadata =
        epctx_view_fields(epctx_model_read(all->model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    size_t i;
    json_uint(w, "cpu_nodes", all->cpu_nodes);
    json_uint(w, "inner_nodes", all->inner_nodes);
    json_object(w, "cpu_ops", JSON_INLINE);
    for (i = 0; i < all->op_count; i++) {
        json_key(w, all->ops[i].name);
        json_uint(w, NULL, all->ops[i].count);
    }
    json_end(w);
    json_object(w, "metadata", JSON_HANGING);
    while (epctx_next_pair(&metadata, &pair)) {
        json_key(w, pair.key);
        json_str(w, NULL, pair.value);
    }
    json_end(w);
    json_array(w, "warnings", JSON_HANGING);
    for (i = 0; i < all->warning_count; i++) json_text(w, NULL, all->warnings[i]);
    json_end(w);
}

void report_put_json(json_writer *w, const report *all, const epctx_state *state) {
    epctx_graph_view graph = epctx_model_graph(all->model);
    size_t i;
    json_head(w, all);
    json_state(w, state);
    given_json(w, all->builds, all->build_count);
    json_values(w, "inputs", epctx_view_graph_inputs(graph));
    json_values(w, "outputs", epctx_view_graph_outputs(graph));
    json_bool(w, "ep_context", all->part_count > 0);
    json_array(w, "partitions", JSON_HANGING);
    for (i = 0; i < all->part_count; i++)
        json_part(w, &all->parts[i], context_of(all, &all->parts[i]));
    json_end(w);
    json_array(w, "files", JSON_HANGING);
    for (i = 0; i < all->file_count; i++) json_file(w, &all->files[i]);
    json_end(w);
    json_rest(w, all);
}

/* -- command -- */

static int info_model(const char *file, info_out *out) {
    epctx_model model;
    epctx_error error;
    epctx_state state;
    report all;
    size_t problems;
    epctx_status status = cli_open(&model, file, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    status = report_make(&all, &model, file, &out->asker, &error);
    if (status == EPCTX_OK) status = epctx_model_state(&model, &all.arena, &state, &error);
    if (status == EPCTX_OK && out->json) report_put_json(info_begin(out), &all, &state);
    if (status == EPCTX_OK && !out->json) print_text(&all, &state);
    if (status == EPCTX_OK) cli_warn_stale(&model, NULL);
    problems = all.warning_count;
    report_free(&all);
    epctx_model_close(&model);
    if (status != EPCTX_OK) return cli_fail(&error);
    if (problems > 0)
        cli_fail_text("%s: %zu required item%s missing or unusable; see the warnings", file,
                      problems, problems == 1 ? " is" : "s are");
    if (out->json) info_end(out);
    return problems > 0 ? CLI_FAILED : CLI_OK;
}

/* What is told of one file; several are told apart by an empty line. */
typedef struct info_work {
    info_out out;
    size_t told;
} info_work;

static int info(void *user, const char *file, bool in_folder) {
    info_work *work = (info_work *)user;
    int code;
    (void)in_folder;
    if (work->told++ > 0 && !work->out.json) putchar('\n');
    code = info_binary(file, &work->out);
    return code >= 0 ? code : info_model(file, &work->out);
}

static int run(const cli_args *args) {
    info_work work;
    int code;
    memset(&work, 0, sizeof work);
    if (!cli_binary_asker(args, &work.out.asker)) return CLI_USAGE;
    work.out.json = args->json;
    work.out.several = each_is_several(args);
    code = each_file(args, EACH_MODEL_OR_BINARY, CLI_FAILED, info, &work);
    info_close(&work.out, code == CLI_OK);
    return code;
}

const cli_command cli_info = {
    .name = "info",
    .group = CLI_LOOK,
    .operands = "FILE...",
    .least = 1,
    .summary = "show what a model or a context binary contains",
    .about = "Shows producer, versions, inputs and outputs, each EPContext node with its\n"
             "attributes, the files that the model needs, the nodes that are left to the CPU,\n"
             "the options that it was compiled with, and those that loading needs. Works for\n"
             "ordinary models and for EPContext models of any execution provider.\n"
             "Of each node's own context, also shows what the binary tells by itself: chip,\n"
             "architecture, VTCM and SDK, whatever the options and attributes say; of the\n"
             "reference NPU's also the kernels that it needs, as the option for firmware that\n"
             "includes only these (EPCTX_NPU_SELECT).\n"
             "Of a context binary (QNN's and its DLC, OpenVINO's container, blob and IR, the\n"
             "reference NPU's; TensorRT's and Vitis AI's by kind only), shows for what it was\n"
             "made, its graphs with inputs and outputs, and which other files it needs, as far\n"
             "as the file tells.\n"
             "Of a folder, shows the models and context binaries in it and in folders below.\n"
             "A missing file, and a damaged binary, cause a line that begins with 'warning:'\n"
             "and exit code 1. A context binary that does not match the build stamp of the\n"
             "model causes a warning on standard error.\n",
    .more = "Example: epctx info model_ctx.onnx\n",
    .run = run,
};
