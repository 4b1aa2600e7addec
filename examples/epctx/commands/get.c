/* epctx get: one value out of a model, byte for byte. */
#define _POSIX_C_SOURCE 200809L

#include "core/neighbours.h"
#include "core/target.h"
#include "ops/views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct get_work {
    const char *file, *what, *node, *out, *context_path;
    bool json, force;
    epctx_overwrite policy;
    epctx_model model;
    epctx_mapping mapping; /* of a context binary */
    epctx_error error;
} get_work;

/* What --node can be; a model may have thousands of them. */
static void list_nodes(const get_work *work) {
    epctx_walk walk;
    epctx_node_view node;
    int count = 0;
    epctx_walk_begin(&walk, &work->model);
    while (epctx_walk_epnode(&walk, &node)) {
        if (count++ == 20) {
            fputs("  ...\n", stderr);
            return;
        }
        fprintf(stderr, "  #%d '", count);
        cli_put(stderr, node.name);
        fputs("'\n", stderr);
    }
}

/* Chooses the node: by name, or the only one there is. */
static bool find_node(get_work *work, epctx_node_view *found) {
    epctx_walk walk;
    epctx_node_view node;
    uint64_t count = 0;
    epctx_walk_begin(&walk, &work->model);
    while (epctx_walk_epnode(&walk, &node)) {
        if (work->node != NULL && !epctx_str_is(node.name, work->node)) continue;
        if (count++ == 0) *found = node;
    }
    if (count == 1 || (count == 0 && cli_numbered_epnode(&work->model, work->node, found)))
        return true;
    if (count > 0 && work->node != NULL)
        cli_fail_text("%s: %" PRIu64 " EPContext nodes are named '%s', select one by number, e.g. "
                      "--node '#1'",
                      work->file, count, work->node);
    else if (count > 0)
        cli_fail_text("%s: there are %" PRIu64 " EPContext nodes, select one with --node",
                      work->file, count);
    else if (work->node != NULL)
        cli_fail_text("%s: there is no EPContext node '%s'", work->file, work->node);
    else
        cli_fail_text("%s: there is no EPContext node", work->file);
    list_nodes(work);
    return false;
}

/* The context of a node, wherever it is. */
static epctx_status get_context(get_work *work, const epctx_node_view *view, epctx_str *value) {
    epctx_epnode node;
    epctx_str folder;
    char room[EPCTX_PATH_MAX];
    epctx_status status = epctx_view_read_epnode(view, &node, &work->error);
    if (status != EPCTX_OK) return status;
    *value = node.ep_cache_context;
    if (node.embed_mode == 1) return EPCTX_OK;
    status = epctx_profile_path_base(epctx_profile_of_node(NULL, view), epctx_io_files(),
                                     epctx_str_of(work->file), work->context_path, room, &folder,
                                     &work->error);
    if (status == EPCTX_OK)
        status = epctx_path_map(epctx_io_files(), folder, node.ep_cache_context, cli_path_flags(),
                                &work->mapping, NULL, &work->error);
    epctx_blame(&work->error, work->file, &node.name, "ep_cache_context");
    value->data = (const char *)work->mapping.data;
    value->size = work->mapping.size;
    return status;
}

static int write_file(get_work *work, epctx_str value) {
    epctx_write_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = work->policy;
    if (work->policy != EPCTX_OVERWRITE_FAIL &&
        neighbours_allow_file(work->out, &work->error) != EPCTX_OK)
        return cli_fail(&work->error);
    cli_progress_begin("get", value.size);
    switch (epctx_write_bytes(cli_io(), work->out, value.data, value.size, &opts, &work->error)) {
    case EPCTX_OK: return CLI_OK;
    case EPCTX_ERR_EXISTS:
        return cli_fail_cure(&work->error, "-f replaces it, --overwrite backup keeps it");
    default: return cli_fail(&work->error);
    }
}

static void put_base64(json_writer *w, epctx_str bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = (const unsigned char *)bytes.data;
    size_t i;
    json_begin_text(w, "value");
    for (i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        uint32_t group = (uint32_t)from[i] << 16;
        char four[5] = {0};
        if (left > 1) group |= (uint32_t)from[i + 1] << 8;
        if (left > 2) group |= from[i + 2];
        four[0] = digits[group >> 18];
        four[1] = digits[group >> 12 & 63];
        four[2] = left > 1 ? digits[group >> 6 & 63] : '=';
        four[3] = left > 2 ? digits[group & 63] : '=';
        json_add_text(w, epctx_str_of(four));
    }
    json_end_text(w);
}

/* No byte is lost: what is no text comes in base64. */
static void put_json(const get_work *work, epctx_str value) {
    json_writer *w = cli_json_begin(stdout);
    bool is_text = epctx_str_is_utf8(value);
    json_text(w, "file", work->file);
    json_text(w, "what", work->what);
    json_uint(w, "size", value.size);
    json_text(w, "encoding", is_text ? "utf-8" : "base64");
    if (is_text)
        json_str(w, "value", value);
    else
        put_base64(w, value);
    cli_json_end();
}

static int put_value(get_work *work, epctx_str value) {
    if (work->out != NULL) return write_file(work, value);
    if (work->json)
        put_json(work, value);
    else if (isatty(STDOUT_FILENO)) {
        if (value.size > 4096)
            return cli_fail_text("%zu bytes are too much for a terminal: use -o FILE", value.size);
        cli_put(stdout, value);
        putchar('\n');
    } else if (value.size > 0)
        fwrite(value.data, 1, value.size, stdout);
    return CLI_OK;
}

static int no_attr(const get_work *work, const epctx_node_view *node) {
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    cli_guess guess = target_guess_attr(node, epctx_str_of(work->what));
    cli_fail_text("%s: the node has no attribute '%s'%s only these:", work->file, work->what,
                  guess.best != NULL ? cli_guess_hint(&guess) : ",");
    while (epctx_next_attr(&it, &attr)) {
        fputs("  ", stderr);
        cli_put(stderr, attr.name);
        fputc('\n', stderr);
    }
    return CLI_FAILED;
}

/* Names of inputs or outputs as `epctx set` takes them. */
static bool put_names(FILE *out, epctx_cursor values) {
    const char *comma = "";
    epctx_value_view value;
    size_t i;
    for (; epctx_next_value(&values, &value); comma = ",") {
        fputs(comma, out);
        for (i = 0; i < value.name.size; i++) {
            if (value.name.data[i] == ',' || value.name.data[i] == '\\') fputc('\\', out);
            fputc(value.name.data[i], out);
        }
    }
    return !ferror(out);
}

/* model:FIELD, graph:FIELD and opset:DOMAIN, under the names that `epctx set` writes. */
static int get_target(get_work *work) {
    epctx_graph_view graph = epctx_model_graph(&work->model);
    epctx_str value = epctx_str_of(NULL);
    char digits[24], *names = NULL;
    size_t size = 0;
    FILE *out;
    target what;
    int code;
    if (!target_parse(epctx_str_of(work->what), &what)) return CLI_USAGE;
    if (what.kind == TARGET_OPSET) {
        int64_t version = epctx_model_opset(&work->model, what.name);
        if (version == 0)
            return cli_fail_text("%s: the model does not import '%s'", work->file, work->what);
        snprintf(digits, sizeof digits, "%" PRId64, version);
        return put_value(work, epctx_str_of(digits));
    }
    if (what.number != EPCTX_FIELD_GRAPH_INPUT && what.number != EPCTX_FIELD_GRAPH_OUTPUT) {
        epctx_view message = target_message(&work->model, &what);
        snprintf(digits, sizeof digits, "%" PRId64, ops_last_int(message, what.number));
        value = what.is_text ? ops_last_str(message, what.number) : epctx_str_of(digits);
        return put_value(work, value);
    }
    out = open_memstream(&names, &size);
    if (out == NULL) return cli_fail_text("out of memory");
    put_names(out, what.number == EPCTX_FIELD_GRAPH_INPUT ? epctx_view_graph_inputs(graph)
                                                          : epctx_view_graph_outputs(graph));
    code = fclose(out) == 0 ? CLI_OK : cli_fail_text("out of memory");
    value.data = names;
    value.size = size;
    if (code == CLI_OK) code = put_value(work, value);
    free(names);
    return code;
}

/* The items of a list, as `epctx set` takes them; false, with the reason told: it does not. */
static bool put_items(const get_work *work, FILE *out, const epctx_attr_view *attr) {
    static const uint32_t fields[] = {EPCTX_FIELD_ATTR_FLOATS, EPCTX_FIELD_ATTR_INTS,
                                      EPCTX_FIELD_ATTR_STRINGS};
    epctx_cursor it =
        epctx_view_fields(attr->view, fields[attr->type - (int32_t)EPCTX_ATTR_FLOATS]);
    const char *comma = "";
    epctx_str text;
    int64_t number;
    float real;
    for (;; comma = ",") {
        if (attr->type == EPCTX_ATTR_INTS && epctx_next_int(&it, &number)) {
            fprintf(out, "%s%" PRId64, comma, number);
        } else if (attr->type == EPCTX_ATTR_FLOATS && epctx_next_float(&it, &real)) {
            fprintf(out, "%s%.9g", comma, (double)real);
        } else if (attr->type == EPCTX_ATTR_STRINGS && epctx_next_str(&it, &text)) {
            if (text.size == 0 || memchr(text.data, ',', text.size) != NULL) {
                cli_fail_text("%s: attribute '%s' has an item that is empty or has a comma: epctx "
                              "dump shows the list",
                              work->file, work->what);
                return false;
            }
            fputs(comma, out);
            fwrite(text.data, 1, text.size, out);
        } else {
            return true;
        }
    }
}

static int get_list(get_work *work, const epctx_attr_view *attr) {
    epctx_str value;
    char *items = NULL;
    FILE *out = open_memstream(&items, &value.size);
    bool good;
    int code;
    if (out == NULL) return cli_fail_text("out of memory");
    good = put_items(work, out, attr);
    code = fclose(out) == 0 ? CLI_OK : cli_fail_text("out of memory");
    value.data = items;
    if (code == CLI_OK) code = good ? put_value(work, value) : CLI_FAILED;
    free(items);
    return code;
}

static int get_attr(get_work *work, const epctx_node_view *node) {
    epctx_attr_view attr;
    char digits[24];
    if (!target_attr(node, epctx_str_of(work->what), &attr)) return no_attr(work, node);
    switch (attr.type) {
    case EPCTX_ATTR_STRING: return put_value(work, attr.s);
    case EPCTX_ATTR_INT: snprintf(digits, sizeof digits, "%" PRId64, attr.i); break;
    case EPCTX_ATTR_FLOAT: snprintf(digits, sizeof digits, "%.9g", (double)attr.f); break;
    case EPCTX_ATTR_INTS:
    case EPCTX_ATTR_FLOATS:
    case EPCTX_ATTR_STRINGS: return get_list(work, &attr);
    default:
        return cli_fail_text("%s: attribute '%s' is of type %s: epctx dump shows it", work->file,
                             work->what, epctx_attr_type_name(attr.type));
    }
    return put_value(work, epctx_str_of(digits));
}

static int get(get_work *work) {
    epctx_str value = epctx_str_of(NULL);
    epctx_node_view node;
    if (strncmp(work->what, "metadata:", 9) == 0) {
        if (!epctx_model_metadata(&work->model, epctx_str_of(work->what + 9), &value))
            return cli_fail_text("%s: there is no metadata key '%s'", work->file, work->what + 9);
        return put_value(work, value);
    }
    if (strncmp(work->what, "opset:", 6) == 0 || strncmp(work->what, "model:", 6) == 0 ||
        strncmp(work->what, "graph:", 6) == 0)
        return get_target(work);
    if (!find_node(work, &node)) return CLI_FAILED;
    if (strcmp(work->what, "context") == 0) {
        if (get_context(work, &node, &value) != EPCTX_OK) return cli_fail(&work->error);
        cli_warn_stale(&work->model, work->context_path);
        return put_value(work, value);
    }
    return get_attr(work, &node);
}

static int run(const cli_args *args) {
    get_work work;
    int code;
    memset(&work, 0, sizeof work);
    work.policy = EPCTX_OVERWRITE_FAIL;
    work.file = args->operands[0];
    work.what = args->operands[1];
    work.node = args->node;
    work.out = args->output;
    work.json = args->json;
    work.context_path = args->context_path;
    if (!output_policy(args, &work.policy)) return CLI_USAGE;
    if (work.out != NULL && strcmp(work.out, "-") == 0) work.out = NULL; /* as without -o */
    if (!output_spares(work.out, work.file)) return CLI_FAILED;
    if (cli_open(&work.model, work.file, &work.error) != EPCTX_OK) return cli_fail(&work.error);
    code = get(&work);
    if (work.mapping.handle != NULL) epctx_io_files()->unmap_fn(NULL, &work.mapping);
    epctx_model_close(&work.model);
    return code;
}

const cli_command cli_get = {
    .name = "get",
    .group = CLI_LOOK,
    .operands = "FILE WHAT",
    .least = 2,
    .most = 2,
    .summary = "print one value of a model, byte for byte",
    .about = "WHAT is the name of an attribute, 'context' for the context itself (embedded or\n"
             "from its file), or metadata:KEY, opset:DOMAIN, model:FIELD or graph:FIELD as in\n"
             "`epctx set`. Prints the raw bytes; on a terminal, prints control characters as\n"
             "\\xHH. Warns on standard error if the context does not match the build stamp of\n"
             "the model.\n",
    .more = "Example: epctx get model_ctx.onnx context -o context.bin\n",
    .run = run,
};
