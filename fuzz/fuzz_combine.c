/*
 * Any model merged with others, split at its values, wrapped as if it were a context binary, and
 * repaired: what comes out opens again and breaks no rule that its parts keep, undoing gives the
 * first bytes, and a failure changes nothing.
 */
#include "../examples/epctx/ops/lint.h"
#include "../examples/epctx/ops/merge.h"
#include "../examples/epctx/ops/repair.h"
#include "../examples/epctx/ops/split.h"
#include "../examples/epctx/ops/wrap.h"
#include "../tests/build.h"
#include "fuzz.h"
#include "mutate.h"

/* What all operations share: the model made from the input, and its bytes. */
typedef struct input {
    const uint8_t *data;
    size_t size;
    uint64_t random;
    uint64_t errors; /* that lint finds in it */
} input;

static uint32_t any(input *in, uint32_t below) {
    in->random = in->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(in->random >> 33) % below;
}

static void require_same(epctx_model *model, const void *data, size_t size) {
    bytes out = written(model);
    require(bytes_equal(&out, data, size));
    bytes_free(&out);
}

static bool telling; /* set with EPCTX_FUZZ_TELL, to see what is wrong with a result */

static void tell(void *user, const epctx_finding *found) {
    (void)user;
    if (telling && found->info.severity == EPCTX_SEVERITY_ERROR)
        fprintf(stderr, "%s %s\n", found->info.id, found->message);
}

static epctx_check_opts judge_opts(void) {
    epctx_check_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.no_files = true;
    opts.context_file_path = "/m/m_ctx.onnx";
    opts.external_folder = "/m";
    return opts;
}

/* Errors of a model, and of what is written of it. */
static uint64_t errors_of(const epctx_model *model) {
    epctx_check_opts opts;
    uint64_t counts[EPCTX_SEVERITY_COUNT];
    opts = judge_opts();
    require(epctx_lint(model, &opts, tell, NULL, counts, NULL) == EPCTX_OK);
    return counts[EPCTX_SEVERITY_ERROR];
}

static uint64_t reopen(epctx_model *model) {
    bytes out = written(model);
    epctx_model again;
    uint64_t errors = 0;
    if (out.size > 0) {
        require(epctx_model_open_memory(&again, out.data, out.size, NULL, NULL) == EPCTX_OK);
        require_same(&again, out.data, out.size);
        errors = errors_of(&again);
        require(errors == errors_of(model));
        epctx_model_close(&again);
    }
    bytes_free(&out);
    return errors;
}

static void check_result(const epctx_combined *out) {
    size_t i, k;
    for (i = 0; i < out->step_count; i++) require(out->steps[i].text[0] != '\0');
    for (i = 0; i < out->file_count; i++) {
        const epctx_output_file *file = &out->files[i];
        uint64_t sum = 0;
        for (k = 0; k < file->part_count; k++) sum += file->parts[k].size;
        require(sum == file->size && epctx_path_check(epctx_str_of(file->name), NULL) == EPCTX_OK);
    }
}

/* -- the partners -- */

static const int64_t vector[] = {4, -1};

/* x -> Add w -> t -> Relu -> y */
static bytes plain(void) {
    static const float weights[] = {1, 2, 3, 4};
    bytes graph = {0};
    add_node(&graph, "Add", "first", "x,w", "t");
    add_node(&graph, "Relu", "second", "t", "y");
    put_str(&graph, 2, "g");
    add_floats(&graph, "w", weights, 4);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    return new_model(&graph);
}

static bytes compiled(void) {
    bytes graph = {0}, model;
    add_epnode(&graph, "n0", "x", "t", 1, 1, "EpctxNpuExecutionProvider", "p0", "payload", 7);
    add_epnode(&graph, "n1", "t", "y", 0, 1, "EpctxNpuExecutionProvider", "p1", NULL, 0);
    put_str(&graph, 2, "g");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* -- the operations -- */

static void merge(epctx_model *model, input *in, const uint8_t *other, size_t size, bool first) {
    epctx_merge_opts opts;
    epctx_part parts[2];
    epctx_combined out;
    epctx_connection link;
    epctx_model second;
    epctx_model *into = first ? model : &second;
    epctx_error error;
    epctx_status status;
    uint64_t errors;
    memset(&opts, 0, sizeof opts);
    memset(parts, 0, sizeof parts);
    if (epctx_model_open_memory(&second, other, size, NULL, NULL) != EPCTX_OK) return;
    errors = in->errors + errors_of(&second);
    parts[first ? 0 : 1].model = model;
    parts[first ? 1 : 0].model = &second;
    parts[1].prefix = any(in, 3) == 0 ? "q_" : NULL;
    opts.share_inputs = any(in, 2) != 0;
    opts.force_opset = any(in, 3) != 0;
    opts.keep_outputs = any(in, 2) != 0;
    opts.metadata = (epctx_metadata_policy)any(in, 3);
    if (any(in, 2) != 0) {
        opts.chain = any(in, 2) != 0;
        link.from = link.to = EPCTX_ANY_PART;
        link.output = epctx_str_of("y");
        link.input = epctx_str_of("x");
        opts.connections = &link;
        opts.connection_count = opts.chain ? 0 : 1;
    }
    status = epctx_merge(parts, 2, &opts, &out, &error);
    require((status == EPCTX_OK) == (error.message[0] == '\0'));
    if (status == EPCTX_OK) {
        check_result(&out);
        require(reopen(into) == 0 || errors > 0);
        epctx_edit_undo(into, 0);
    }
    require_same(model, in->data, in->size);
    require_same(&second, other, size);
    epctx_model_close(&second);
}

/* A name that nodes read or write. */
static epctx_str any_value(const epctx_model *model, input *in, bool output) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model)), names;
    epctx_str found = epctx_str_of("x"), name;
    epctx_node_view node;
    uint32_t seen = 0;
    while (seen < 200 && epctx_next_node(&it, &node)) {
        names = output ? epctx_view_node_outputs(&node) : epctx_view_node_inputs(&node);
        while (seen < 200 && epctx_next_str(&names, &name))
            if (any(in, ++seen) == 0) found = name;
    }
    return found;
}

static void split(epctx_model *model, input *in) {
    static const int64_t dims[] = {2, -1};
    epctx_value values[2];
    epctx_split_opts opts;
    epctx_combined out;
    epctx_error error;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    memset(values, 0, sizeof values);
    values[0].name = any_value(model, in, false);
    values[1].name = any_value(model, in, true);
    values[0].rank = values[1].rank = -1;
    if (any(in, 2) != 0) {
        values[0].elem_type = EPCTX_ONNX_FLOAT;
        values[0].rank = 2;
        values[0].dims = dims;
    }
    opts.inputs = &values[0];
    opts.input_count = any(in, 2);
    opts.outputs = &values[1];
    opts.output_count = any(in, 2);
    status = epctx_split(model, &opts, &out, &error);
    require((status == EPCTX_OK) == (error.message[0] == '\0'));
    if (status == EPCTX_OK) {
        check_result(&out);
        require(reopen(model) == 0 || in->errors > 0);
        epctx_edit_undo(model, 0);
    }
    require_same(model, in->data, in->size);
}

/* The types of the model's inputs and outputs, around the model as if it were a binary. */
static void wrap(const epctx_model *model, input *in) {
    static const int64_t dims[] = {1, 2, 3};
    epctx_wrap_value values[8];
    epctx_wrap_opts opts;
    epctx_combined out;
    epctx_model made;
    epctx_error error;
    epctx_span binary = {in->data, in->size};
    size_t count, i;
    const epctx_profile *profiles = epctx_profiles(&count);
    epctx_cursor it = epctx_view_graph_inputs(epctx_model_graph(model));
    epctx_value_view value;
    memset(&opts, 0, sizeof opts);
    memset(values, 0, sizeof values);
    for (i = 0; i < 8; i++) {
        if (i == 4) it = epctx_view_graph_outputs(epctx_model_graph(model));
        if (!epctx_next_value(&it, &value)) continue;
        values[i].value.name = value.name;
        values[i].value.elem_type = value.elem_type;
        values[i].value.rank = (int32_t)any(in, 5) - 1;
        values[i].value.rank = values[i].value.rank > 3 ? 3 : values[i].value.rank;
        values[i].value.dims = dims;
        values[i].quantized = any(in, 2) != 0;
        values[i].scale = 0.5f;
        values[i].zero_point = (int64_t)any(in, 300) - 20;
        if (i < 4)
            opts.input_count++;
        else
            opts.output_count++;
    }
    opts.inputs = values;
    opts.outputs = values + 4;
    opts.profile = &profiles[any(in, (uint32_t)count)];
    opts.name = "g";
    opts.embed = any(in, 2) != 0;
    opts.binary_name = "b.bin";
    opts.notes = any(in, 2) != 0 ? "notes" : NULL;
    if (epctx_wrap(&made, binary, &opts, NULL, &out, &error) == EPCTX_OK) {
        check_result(&out);
        require(out.file_count == (opts.embed ? 0u : 1u));
        require(reopen(&made) == 0);
    } else {
        require(error.message[0] != '\0');
    }
    epctx_model_close(&made);
}

static void tell_repair(void *user, const epctx_repair_note *note) {
    (void)user;
    if (telling && note->done) fprintf(stderr, "repaired %s %s\n", note->info.id, note->text);
}

static void repair(epctx_model *model, input *in, epctx_model *source) {
    epctx_repair_opts opts;
    epctx_error error;
    size_t done, left;
    memset(&opts, 0, sizeof opts);
    opts.check = judge_opts();
    opts.source = source;
    if (epctx_repair(model, &opts, NULL, NULL, &done, &left, &error) == EPCTX_OK) {
        require(reopen(model) == 0 || in->errors > 0);
        require(epctx_repair(model, &opts, tell_repair, NULL, &done, &left, &error) == EPCTX_OK);
        epctx_edit_undo(model, 0);
    } else {
        require(error.message[0] != '\0');
    }
    require_same(model, in->data, in->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bytes partners[2];
    input in = {data, size, epctx_hash(data, size, 2), 0};
    epctx_model model, source;
    int i;
    if (partners[0].size == 0) {
        telling = getenv("EPCTX_FUZZ_TELL") != NULL;
        partners[0] = plain();
        partners[1] = compiled();
    }
    if (epctx_model_open_memory(&model, data, size, NULL, NULL) == EPCTX_OK) {
        in.errors = errors_of(&model);
        for (i = 0; i < 2; i++) {
            merge(&model, &in, partners[i].data, partners[i].size, i == 0);
            split(&model, &in);
        }
        merge(&model, &in, data, size, true);
        wrap(&model, &in);
        repair(&model, &in, NULL);
        require(epctx_model_open_memory(&source, partners[0].data, partners[0].size, NULL, NULL) ==
                EPCTX_OK);
        repair(&model, &in, &source);
        epctx_model_close(&source);
    }
    epctx_model_close(&model);
    return 0;
}
