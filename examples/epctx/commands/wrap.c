/* epctx wrap: a vendor's binary becomes an EPContext model. */
#include "binary/context.h"
#include "core/asker.h"
#include "core/combine.h"
#include "epctx_npu.h"
#include "facts/facts.h"
#include "ops/wrap.h"
#include "core/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct wrap_wish {
    output out;
    epctx_wrap_opts opts;
    const char *ep, *inputs, *outputs, *io, *graph;
    bool quantized_io;
    binary_asker asker;
} wrap_wish;

/* -- the description of a QNN binary: what qnn-context-binary-utility prints, or the converter's
 * model_net.json -- */

/* The fact "datatype" of a type: by its name, or by its number in the converter's file. */
static const fact *find_type(const json *type) {
    size_t at = 0;
    const fact *f;
    while (type != NULL && (f = facts_next("datatype", &at)) != NULL)
        if (type->kind == JSON_STRING
                ? epctx_str_is(type->text, f->name)
                : type->kind == JSON_NUMBER && type->number == (double)fact_number(f, "number"))
            return f;
    return NULL;
}

static bool bad_io(const wrap_wish *w, epctx_str name, const char *what) {
    cli_misuse("%s: '%.*s': %s", w->io, (int)name.size, name.data, what);
    return false;
}

/* Whether a value says yes, as a word of QNN or as a number. */
static bool is_one_of(const json *value, const char *word, double number) {
    return value != NULL &&
           (value->kind == JSON_STRING ? epctx_str_is(value->text, word)
                                       : value->kind == JSON_NUMBER && value->number == number);
}

/* One tensor; `params` is its quantization with the names of that file. */
static bool read_tensor(wrap_wish *w, epctx_str name, const json *type, const json *dims,
                        const json *scale, const json *offset, epctx_wrap_value *out) {
    const fact *found = find_type(type);
    const json *dim;
    size_t rank = 0;
    int64_t *list;
    memset(out, 0, sizeof *out);
    out->value.name = name;
    if (name.size == 0) return bad_io(w, name, "a tensor has no name");
    if (found == NULL) return bad_io(w, name, "ONNX does not have this data type");
    if (dims == NULL || dims->kind != JSON_LIST) return bad_io(w, name, "dimensions are missing");
    for (dim = dims->first; dim != NULL; dim = dim->next) rank++;
    list = (int64_t *)epctx_arena_array(&w->out.arena, rank, sizeof *list);
    if (list == NULL) return bad_io(w, name, "out of memory");
    out->value.dims = list;
    for (dim = dims->first; dim != NULL; dim = dim->next) {
        if (dim->kind != JSON_NUMBER || dim->number < 0 || dim->number > 9e15)
            return bad_io(w, name, "a dimension is not a number");
        list[out->value.rank++] = (int64_t)dim->number;
    }
    out->value.elem_type = facts_element(epctx_str_of(fact_get(found, "onnx")));
    out->quantized = fact_get(found, "quantized") != NULL && !w->quantized_io;
    if (!out->quantized) return true;
    if (scale == NULL || offset == NULL || scale->kind != JSON_NUMBER ||
        offset->kind != JSON_NUMBER)
        return bad_io(w, name, "not quantized with a single scale and offset: use --quantized-io");
    out->scale = (float)scale->number;
    out->zero_point = -(int64_t)offset->number; /* QNN adds its offset, ONNX takes it away */
    return true;
}

static bool read_tensors(wrap_wish *w, const json *list, epctx_wrap_value *out, size_t *count) {
    const json *entry;
    for (entry = list != NULL ? list->first : NULL; entry != NULL; entry = entry->next) {
        const json *info = json_get(entry, "info");
        const json *name = json_get(info, "name");
        const json *params = json_get(info, "quantizeParams");
        bool defined = is_one_of(json_get(params, "definition"), "QNN_DEFINITION_DEFINED", 1) &&
                       is_one_of(json_get(params, "quantizationEncoding"),
                                 "QNN_QUANTIZATION_ENCODING_SCALE_OFFSET", 0);
        if (!read_tensor(w, name != NULL ? name->text : epctx_str_of(""),
                         json_get(info, "dataType"), json_get(info, "dimensions"),
                         defined ? json_find(params, "scaleOffset.scale") : NULL,
                         defined ? json_find(params, "scaleOffset.offset") : NULL,
                         &out[(*count)++]))
            return false;
    }
    return true;
}

static size_t children(const json *list) {
    size_t count = 0;
    const json *child = list != NULL ? list->first : NULL;
    for (; child != NULL; child = child->next) count++;
    return count;
}

static bool read_binary_graph(wrap_wish *w, const json *root, const json *graph) {
    const json *inputs = json_find(graph, "info.graphInputs");
    const json *outputs = json_find(graph, "info.graphOutputs");
    const json *name = json_find(graph, "info.graphName");
    const json *build = json_find(root, "info.buildId");
    epctx_wrap_value *ins = (epctx_wrap_value *)epctx_arena_array(
        &w->out.arena, children(inputs) + children(outputs) + 1, sizeof *ins);
    epctx_wrap_value *outs = ins != NULL ? ins + children(inputs) : NULL;
    if (ins == NULL || !read_tensors(w, inputs, ins, &w->opts.input_count) ||
        !read_tensors(w, outputs, outs, &w->opts.output_count))
        return false;
    w->opts.inputs = ins;
    w->opts.outputs = outs;
    if (w->opts.name == NULL && name != NULL)
        w->opts.name = epctx_arena_copy(&w->out.arena, name->text);
    if (w->opts.sdk_version == NULL && build != NULL && build->kind == JSON_STRING)
        w->opts.sdk_version = epctx_arena_copy(&w->out.arena, build->text);
    return true;
}

static bool read_binary_io(wrap_wish *w, const json *root, const json *graphs) {
    const json *graph = graphs->first;
    const json *chosen = NULL;
    for (; graph != NULL; graph = graph->next) {
        const json *name = json_find(graph, "info.graphName");
        if (w->graph == NULL ? chosen == NULL : name != NULL && epctx_str_is(name->text, w->graph))
            chosen = graph;
    }
    if (chosen != NULL && (w->graph != NULL || children(graphs) == 1))
        return read_binary_graph(w, root, chosen);
    cli_misuse("%s: %s:", w->io,
               w->graph != NULL ? "no graph of that name; it has"
                                : "several graphs: wrap each (-o NAME_{graph}.onnx), or select one "
                                  "with --graph");
    for (graph = graphs->first; graph != NULL; graph = graph->next) {
        const json *name = json_find(graph, "info.graphName");
        if (name != NULL) cli_say("  %.*s\n", (int)name->text.size, name->text.data);
    }
    return false;
}

/* The converter's file lists all tensors; inputs are of type 0 and outputs of type 1, in the order
 * of their ids. */
static bool read_converter_io(wrap_wish *w, const json *tensors) {
    size_t most = children(tensors);
    epctx_wrap_value *values =
        (epctx_wrap_value *)epctx_arena_array(&w->out.arena, 2 * most + 1, sizeof *values);
    double *ids = (double *)epctx_arena_array(&w->out.arena, 2 * most + 1, sizeof *ids);
    const json *t;
    if (values == NULL || ids == NULL) return false;
    w->opts.inputs = values;
    w->opts.outputs = values + most;
    for (t = tensors->first; t != NULL; t = t->next) {
        const json *params = json_get(t, "quant_params");
        const json *id = json_get(t, "id");
        bool input = is_one_of(json_get(t, "type"), "", 0);
        bool defined = is_one_of(json_get(params, "definition"), "", 1) &&
                       is_one_of(json_get(params, "encoding"), "", 0);
        size_t *count = input ? &w->opts.input_count : &w->opts.output_count;
        size_t base = input ? 0 : most;
        size_t at = base + *count;
        epctx_wrap_value value;
        if (!input && !is_one_of(json_get(t, "type"), "", 1)) continue;
        if (!read_tensor(w, t->key, json_get(t, "data_type"), json_get(t, "dims"),
                         defined ? json_find(params, "scale_offset.scale") : NULL,
                         defined ? json_find(params, "scale_offset.offset") : NULL, &value))
            return false;
        ids[at] = id != NULL ? id->number : (double)at;
        while (at > base && ids[at - 1] > ids[at]) {
            double other = ids[at - 1];
            ids[at - 1] = ids[at];
            ids[at] = other;
            values[at] = values[at - 1];
            at--;
        }
        values[at] = value;
        ++*count;
    }
    return true;
}

/* The file of --io in the arena, or NULL: it is no JSON. */
static const json *load_io(wrap_wish *w) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping mapping;
    epctx_error error;
    const json *root;
    epctx_str text;
    size_t at = 0;
    epctx_error_clear(&error);
    if (io->map_fn(io->user, NULL, w->io, false, &mapping, &error) != EPCTX_OK) {
        cli_fail(&error);
        return NULL;
    }
    text.data = (const char *)mapping.data;
    text.size = mapping.size;
    root = json_read(text, &w->out.arena, &at);
    io->unmap_fn(io->user, &mapping);
    if (root == NULL) cli_misuse("%s: invalid JSON at byte %zu", w->io, at);
    return root;
}

static bool read_io(wrap_wish *w) {
    const json *root = load_io(w);
    if (root == NULL) return false;
    if (json_find(root, "info.graphs") != NULL)
        return read_binary_io(w, root, json_find(root, "info.graphs"));
    if (json_find(root, "graph.tensors") != NULL)
        return read_converter_io(w, json_find(root, "graph.tensors"));
    cli_misuse("%s: neither the output of qnn-context-binary-utility (info.graphs) nor the "
               "converter's file (graph.tensors)",
               w->io);
    return false;
}

/* -- what the binary tells itself, or its vendor's library -- */

static bool no_values(const char *why) {
    cli_misuse("specify its inputs and outputs: --inputs and --outputs, or --io FILE.json%s", why);
    return false;
}

static bool take_told(wrap_wish *w, const binary_value *told, size_t count,
                      const epctx_wrap_value **out) {
    epctx_wrap_value *values =
        (epctx_wrap_value *)epctx_arena_array(&w->out.arena, count + 1, sizeof *values);
    size_t i;
    if (values == NULL) return no_values(": out of memory");
    for (i = 0; i < count; i++) {
        memset(&values[i], 0, sizeof values[i]);
        if (told[i].name.size == 0 || told[i].elem_type == 0 || !told[i].shaped)
            return no_values(": the binary does not tell name, type and shape of each");
        values[i].value.name = told[i].name;
        values[i].value.elem_type = told[i].elem_type;
        values[i].value.dims = told[i].dims;
        values[i].value.rank = (int32_t)told[i].rank; /* BINARY_MOST_RANK at most */
    }
    *out = values;
    return true;
}

/* The only graph, or the one of --graph. */
static const binary_graph *choose_graph(const wrap_wish *w, const binary_facts *facts) {
    size_t i;
    for (i = 0; w->graph != NULL && i < facts->graph_count; i++)
        if (epctx_str_is(facts->graphs[i].name, w->graph)) return &facts->graphs[i];
    if (w->graph == NULL && facts->graph_count == 1) return &facts->graphs[0];
    cli_misuse("%s: in the binary are:", w->graph != NULL
                                             ? "no graph of the name of --graph"
                                             : "several graphs, select one with --graph");
    for (i = 0; i < facts->graph_count; i++)
        cli_say("  %.*s\n", (int)facts->graphs[i].name.size, facts->graphs[i].name.data);
    return NULL;
}

/* Values of types that are quantized in the binary are what they are there, as with
 * --quantized-io: scales are not told. */
static int read_binary(wrap_wish *w, const char *file, const binary_facts *facts) {
    epctx_arena *arena = &w->out.arena;
    const binary_graph *graph;
    epctx_error error;
    epctx_error_clear(&error);
    if (binary_check(facts, w->opts.profile, &error) != EPCTX_OK) {
        epctx_blame(&error, file, NULL, NULL);
        return cli_fail(&error);
    }
    if (!facts->graphs_known || facts->graph_count == 0) {
        no_values(facts->id.kind == EPCTX_BINARY_QNN
                      ? "; Qualcomm's libQnnSystem.so tells them: --qnn-system"
                      : "");
        return CLI_USAGE;
    }
    graph = choose_graph(w, facts);
    if (graph == NULL) return CLI_USAGE;
    if (!graph->values_known) {
        no_values(": the binary does not tell them");
        return CLI_USAGE;
    }
    w->opts.input_count = graph->input_count;
    w->opts.output_count = graph->output_count;
    if (w->opts.name == NULL && graph->name.size > 0)
        w->opts.name = epctx_arena_copy(arena, graph->name);
    if (w->opts.partition_name == NULL && graph->name.size > 0)
        w->opts.partition_name = epctx_arena_copy(arena, graph->name);
    if (w->opts.sdk_version == NULL && facts->sdk.size > 0)
        w->opts.sdk_version = epctx_arena_copy(arena, facts->sdk);
    return take_told(w, graph->inputs, graph->input_count, &w->opts.inputs) &&
                   take_told(w, graph->outputs, graph->output_count, &w->opts.outputs)
               ? CLI_OK
               : CLI_USAGE;
}

/* -- names that the user gave beside those in the binary -- */

/* The graph that the names given mean, or the only one; NULL: it is not told. */
static const binary_graph *meant_graph(const wrap_wish *w, const binary_facts *facts) {
    const char *name = w->opts.partition_name != NULL ? w->opts.partition_name : w->opts.name;
    size_t i;
    if (facts->damage != NULL || !facts->graphs_known) return NULL;
    for (i = 0; name != NULL && i < facts->graph_count; i++)
        if (epctx_str_is(facts->graphs[i].name, name)) return &facts->graphs[i];
    return facts->graph_count == 1 ? &facts->graphs[0] : NULL;
}

static bool is_told(const epctx_wrap_value *value, const binary_value *told, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        if (epctx_str_eq(told[i].name, value->value.name)) return true;
    return false;
}

/* One side of io_name_overrides: nothing where all names are the binary's, else by position. False:
 * there is no telling which is which. */
static bool put_side(epctx_text *out, const epctx_wrap_value *values, size_t count,
                     const binary_value *told, size_t told_count) {
    size_t i, known = 0;
    for (i = 0; i < count; i++) known += is_told(&values[i], told, told_count);
    if (known == count) return true;
    if (count != told_count || known > 0) return false;
    for (i = 0; i < count; i++) {
        if (told[i].name.size == 0 || !ops_may_override(values[i].value.name) ||
            !ops_may_override(told[i].name))
            return false;
        epctx_text_put(out, values[i].value.name);
        epctx_text_put_char(out, '=');
        epctx_text_put(out, told[i].name);
        epctx_text_put_char(out, ';');
    }
    return true;
}

/* Names that the binary has not are matched by position: where the EP takes them, that is written
 * down. */
static bool put_overrides(wrap_wish *w, const binary_graph *graph) {
    const epctx_wrap_opts *o = &w->opts;
    size_t room = 1, i;
    char *bytes;
    epctx_text text;
    if ((o->profile->traits & EPCTX_TRAIT_IO_OVERRIDES) == 0 || !graph->values_known) return true;
    for (i = 0; i < o->input_count; i++) room += o->inputs[i].value.name.size + 2;
    for (i = 0; i < o->output_count; i++) room += o->outputs[i].value.name.size + 2;
    for (i = 0; i < graph->input_count; i++) room += graph->inputs[i].name.size;
    for (i = 0; i < graph->output_count; i++) room += graph->outputs[i].name.size;
    bytes = (char *)epctx_arena_alloc(&w->out.arena, room);
    if (bytes == NULL) return false;
    text = epctx_text_of(bytes, room);
    if (put_side(&text, o->inputs, o->input_count, graph->inputs, graph->input_count) &&
        put_side(&text, o->outputs, o->output_count, graph->outputs, graph->output_count) &&
        text.size > 0)
        w->opts.overrides = bytes;
    return true;
}

/* The name by which the EP finds the graph, unless it was given. */
static int name_graph(wrap_wish *w, const binary_facts *facts) {
    const binary_graph *graph = meant_graph(w, facts);
    if (graph == NULL) return CLI_OK;
    if (w->opts.partition_name == NULL && graph->name.size > 0)
        w->opts.partition_name = epctx_arena_copy(&w->out.arena, graph->name);
    if (w->opts.name == NULL && graph->name.size > 0)
        w->opts.name = epctx_arena_copy(&w->out.arena, graph->name);
    return put_overrides(w, graph) ? CLI_OK : cli_fail_text("out of memory");
}

/* -- the command -- */

static bool take_values(wrap_wish *w, const char *option, const char *text,
                        const epctx_wrap_value **out, size_t *count) {
    epctx_arena *arena = &w->out.arena;
    value_spec *specs;
    epctx_wrap_value *values;
    size_t i;
    if (text == NULL) return true;
    if (!read_values(option, text, true, arena, &specs, count)) return false;
    values = (epctx_wrap_value *)epctx_arena_array(arena, *count, sizeof *values);
    for (i = 0; i < *count && values != NULL; i++) {
        values[i].value = specs[i].value;
        values[i].quantized = specs[i].quantized && !w->quantized_io;
        values[i].scale = specs[i].scale;
        values[i].zero_point = specs[i].zero_point;
    }
    *out = values;
    return values != NULL;
}

static bool check_wish(wrap_wish *w) {
    if (w->ep == NULL) {
        cli_misuse("specify the EP of the binary: --profile qnn, openvino ...");
        return false;
    }
    if (w->io != NULL && (w->inputs != NULL || w->outputs != NULL)) {
        cli_misuse("--io cannot be combined with --inputs and --outputs");
        return false;
    }
    if (w->io == NULL && w->inputs != NULL && w->outputs == NULL) return no_values("");
    if (w->outputs != NULL && w->graph != NULL) {
        cli_misuse("--graph selects a graph of --io FILE.json, or of the binary");
        return false;
    }
    if (w->opts.embed && w->opts.binary_name != NULL) {
        cli_misuse("--binary names a file, --embed stores the binary in the model: omit one");
        return false;
    }
    return cli_may_stand("--name", w->opts.name) &&
           cli_may_stand("--partition", w->opts.partition_name) &&
           cli_may_stand("--source", w->opts.source) && cli_may_stand("--inputs", w->inputs) &&
           cli_may_stand("--outputs", w->outputs);
}

/* The reference NPU finds a graph by its name: the only one of the binary, unless --name tells. */
static int name_npu_graph(wrap_wish *w, const char *file, epctx_span binary) {
    epctx_npu_context context;
    epctx_error error;
    size_t i;
    epctx_error_clear(&error);
    if (cli_load_binary(binary, &w->out.arena, &context, NULL, &error) != EPCTX_OK) {
        epctx_blame(&error, file, NULL, NULL);
        return cli_fail(&error);
    }
    if (context.graph_count == 1) {
        w->opts.name = epctx_arena_copy(&w->out.arena, context.graphs[0].info.name);
        return w->opts.name != NULL ? CLI_OK : cli_fail_text("out of memory");
    }
    cli_fail_text("%s: there are %zu graphs, select one with --name:", file, context.graph_count);
    for (i = 0; i < context.graph_count; i++)
        cli_say("  %.*s\n", (int)context.graphs[i].info.name.size,
                context.graphs[i].info.name.data);
    return CLI_FAILED;
}

static bool find_profile(wrap_wish *w) {
    if (cli_profile(w->ep, &w->opts.profile)) return true;
    cli_misuse("for any other EP: --profile generic --source %s", w->ep);
    return false;
}

/* What is to be written, or CLI_FAILED. */
static int wrap_binary(wrap_wish *w, const char *file, epctx_span binary) {
    epctx_combined combined;
    binary_facts facts;
    epctx_model model;
    epctx_open_opts opts;
    epctx_backend backend;
    epctx_error error;
    int code;
    epctx_error_clear(&error);
    if (binary_read(binary, &w->asker, &w->out.arena, &facts, &error) != EPCTX_OK)
        return cli_fail(&error);
    code =
        w->io == NULL && w->outputs == NULL ? read_binary(w, file, &facts) : name_graph(w, &facts);
    if (code != CLI_OK) return code;
    if (w->opts.name == NULL &&
        cli_own_backend(epctx_str_of(w->opts.profile->sources[0]), &backend) &&
        name_npu_graph(w, file, binary) != CLI_OK)
        return CLI_FAILED;
    if (w->opts.name == NULL) w->opts.name = "EPContext";
    if (w->opts.binary_name == NULL) w->opts.binary_name = epctx_path_file(epctx_str_of(file)).data;
    w->opts.output_path = w->out.to_stdout ? NULL : w->out.path;
    memset(&opts, 0, sizeof opts);
    opts.io = cli_io();
    if (epctx_wrap(&model, binary, &w->opts, &opts, &combined, &error) != EPCTX_OK) {
        if (error.status == EPCTX_ERR_CONTEXT) epctx_blame(&error, file, NULL, NULL);
        return cli_fail(&error);
    }
    tell_steps(&w->out, &combined, 1);
    code = write_combined(&w->out, &model, &combined);
    epctx_model_close(&model);
    return code;
}

static int wrap(wrap_wish *w, const char *file) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping mapping;
    epctx_span binary;
    epctx_error error;
    int code;
    epctx_error_clear(&error);
    if (io->map_fn(io->user, NULL, file, false, &mapping, &error) != EPCTX_OK) {
        epctx_blame(&error, file, NULL, NULL);
        return cli_fail(&error);
    }
    binary.data = mapping.data;
    binary.size = mapping.size;
    code = wrap_binary(w, file, binary);
    io->unmap_fn(io->user, &mapping);
    return code;
}

/* One graph of the binary, as the options say. `report`: the array that gets it as JSON. */
static int wrap_graph(const cli_args *args, json_writer *report) {
    const char *file = args->operands[0];
    wrap_wish w;
    int code = CLI_USAGE;
    memset(&w, 0, sizeof w);
    w.ep = args->profile;
    w.inputs = args->inputs;
    w.outputs = args->outputs;
    w.io = args->io;
    w.graph = args->graph;
    w.quantized_io = args->quantized_io;
    w.opts.name = args->name;
    w.opts.partition_name = args->partition;
    w.opts.source = args->source;
    w.opts.sdk_version = args->sdk;
    w.opts.hardware_architecture = args->arch;
    w.opts.notes = args->notes;
    w.opts.source_model = args->model;
    w.opts.max_size = (int64_t)args->max_size.value;
    w.opts.embed = args->embed;
    w.opts.binary_name = args->binary;
    w.opts.asker = &w.asker;
    if (output_begin(&w.out, args, file) && check_wish(&w) && find_profile(&w) &&
        cli_binary_asker(args, &w.asker) &&
        take_values(&w, "--inputs", w.inputs, &w.opts.inputs, &w.opts.input_count) &&
        take_values(&w, "--outputs", w.outputs, &w.opts.outputs, &w.opts.output_count)) {
        w.out.several = report;
        w.out.of = args->output;
        if (w.io != NULL && !read_io(&w))
            code = CLI_FAILED;
        else
            code = wrap(&w, file);
    }
    output_free(&w.out);
    return code;
}

/* -- each graph of a binary: a model of its own, with the graph's name in that of its file -- */

static const char graph_word[] = "{graph}";

/* Whether a graph's name can be a part of a file's. */
static bool is_for_file(epctx_str name) {
    size_t i;
    for (i = 0; i < name.size; i++)
        if ((unsigned char)name.data[i] < ' ' || memchr("/\\:*?\"<>|", name.data[i], 9) != NULL)
            return false;
    return name.size > 0;
}

static char *path_of(epctx_arena *arena, const char *pattern, epctx_str graph) {
    const char *at = strstr(pattern, graph_word);
    const size_t room = strlen(pattern) + graph.size + 1;
    char *path = (char *)epctx_arena_alloc(arena, room);
    if (path != NULL)
        snprintf(path, room, "%.*s%.*s%s", (int)(at - pattern), pattern, (int)graph.size,
                 graph.data, at + sizeof graph_word - 1);
    return path;
}

static int wrap_next(const cli_args *args, epctx_arena *arena, epctx_str graph,
                     json_writer *report) {
    cli_args one = *args;
    one.graph = epctx_arena_copy(arena, graph);
    one.output = path_of(arena, args->output, graph);
    if (one.graph == NULL || one.output == NULL) return cli_fail_text("out of memory");
    return wrap_graph(&one, report);
}

/* The names are judged before the first model is written. */
static bool check_graphs(const wrap_wish *w, const json *graphs) {
    const json *graph, *other;
    if (graphs == NULL || graphs->first == NULL) {
        cli_misuse("%s: no list of graphs (info.graphs) for %s", w->io, graph_word);
        return false;
    }
    for (graph = graphs->first; graph != NULL; graph = graph->next) {
        const json *name = json_find(graph, "info.graphName");
        if (name == NULL || name->kind != JSON_STRING || !is_for_file(name->text))
            return bad_io(w, name != NULL ? name->text : epctx_str_of(""),
                          "a graph's name that cannot be a part of a file's: use --graph");
        for (other = graphs->first; other != graph; other = other->next)
            if (epctx_str_eq(json_find(other, "info.graphName")->text, name->text))
                return bad_io(w, name->text, "two graphs have this name");
    }
    return true;
}

static int wrap_graphs(const cli_args *args) {
    const json *root, *graphs = NULL, *graph;
    json_writer *report = NULL;
    wrap_wish w;
    int code = CLI_OK;
    memset(&w, 0, sizeof w);
    w.io = args->io;
    output_init(&w.out, args);
    root = load_io(&w);
    if (root != NULL) graphs = json_find(root, "info.graphs");
    if (root == NULL || !check_graphs(&w, graphs)) {
        output_free(&w.out);
        return CLI_FAILED;
    }
    if (args->json) {
        report = cli_json_begin(stdout);
        json_array(report, "models", JSON_HANGING);
    }
    for (graph = graphs->first; graph != NULL && code == CLI_OK; graph = graph->next)
        code = wrap_next(args, &w.out.arena, json_find(graph, "info.graphName")->text, report);
    if (report != NULL) {
        json_end(report);
        cli_json_end();
    }
    output_free(&w.out);
    return code;
}

static int run(const cli_args *args) {
    const bool each = args->output != NULL && strstr(args->output, graph_word) != NULL;
    if (!each || args->graph != NULL) return wrap_graph(args, NULL);
    if (args->io != NULL && args->name == NULL && args->partition == NULL) return wrap_graphs(args);
    cli_misuse("%s in -o stands for each graph of --io FILE.json, by its own name: no --name, no "
               "--partition",
               graph_word);
    return CLI_USAGE;
}

const cli_command cli_wrap = {
    .name = "wrap",
    .group = CLI_MAKE,
    .operands = "BINARY",
    .least = 1,
    .most = 1,
    .summary = "create an EPContext model for a vendor's binary",
    .about = "Creates an EPContext model for a context binary, engine or blob of a vendor's\n"
             "tool; ONNX Runtime can load it with that EP. Values are NAME:TYPE[DIMS],\n"
             "separated by commas. If a value is quantized in the binary, add\n"
             "/SCALE/ZERO_POINT; the application then uses NAME_dq in float32. Example:\n"
             "x:uint8[1,224,224,3]/0.0078/128\n"
             "Without any, what the binary tells of itself is taken (OpenVINO's container; of\n"
             "QNN with --qnn-system). Node and binary must agree as far as it tells.\n"
             "With {graph} in OUT, each graph of --io FILE.json gets a model of its own; they\n"
             "share the binary.\n",
    .more = "Example: epctx wrap model.bin --profile qnn --io model.json -o model_ctx.onnx\n",
    .run = run,
};
