/* given.c - models made of one of the user's, for an EP that takes nothing else. */
#define _GNU_SOURCE
#include "conformance.h"

enum { CUTS = 8 }; /* places that are tried */

bool can_change(model_kind kind) {
    return kind == MODEL_CHAIN || kind == MODEL_ISLAND || kind == MODEL_WEIGHTS ||
           kind == MODEL_WEXT || kind == MODEL_NAMES || kind == MODEL_OTHER || kind == MODEL_PAIR;
}

/* Elements in reverse order: numbers of the same size in other places. */
static void reverse(uint8_t *data, size_t size, size_t each) {
    size_t i, k;
    for (i = 0; i + each <= size - i - each; i += each) {
        for (k = 0; k < each; k++) {
            const uint8_t kept = data[i + k];
            data[i + k] = data[size - i - each + k];
            data[size - i - each + k] = kept;
        }
    }
}

/* Of weights in float32, uint8 and int8; scales and zero points are smaller. 0: to be left. */
static size_t element_of(const epctx_tensor *tensor) {
    if (tensor->size < 64) return 0;
    return tensor->elem_type == EPCTX_ONNX_FLOAT                                           ? 4
           : tensor->elem_type == EPCTX_ONNX_UINT8 || tensor->elem_type == EPCTX_ONNX_INT8 ? 1
                                                                                           : 0;
}

/* Initializers go into the model as raw data, wherever they are; with `change` they have other
 * numbers. */
static epctx_status take_in(epctx_model *model, bool change, size_t *changed, epctx_error *error) {
    epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(model));
    epctx_tensor_view view;
    epctx_status status = EPCTX_OK;
    *changed = 0;
    while (status == EPCTX_OK && epctx_next_tensor(&it, &view)) {
        epctx_tensor tensor;
        epctx_span data;
        size_t each;
        uint8_t *bytes;
        status = epctx_model_load_tensor(model, view.view, NULL, &tensor, error);
        if (status != EPCTX_OK || !tensor.data) continue;
        each = change ? element_of(&tensor) : 0;
        if (!each && !view.external && view.has_raw) continue;
        bytes = (uint8_t *)epctx_arena_alloc(&model->arena, tensor.size + 1);
        if (!bytes) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
        memcpy(bytes, tensor.data, tensor.size);
        if (each) reverse(bytes, tensor.size, each);
        *changed += each > 0;
        data.data = bytes;
        data.size = tensor.size;
        status = epctx_edit_set_tensor_raw(model, view.view, data, error);
    }
    return status;
}

static epctx_status rename_nodes(epctx_model *model, epctx_error *error) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    epctx_status status = EPCTX_OK;
    unsigned i = 0;
    while (status == EPCTX_OK && epctx_next_node(&it, &node)) {
        char *name = (char *)epctx_arena_alloc(&model->arena, 40);
        if (!name) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
        snprintf(name, 40, "/block 1/\xc3\xa9:%u", i++);
        status = epctx_edit_set_field_str(model, node.view, EPCTX_FIELD_NODE_NAME,
                                          epctx_str_of(name), error);
    }
    return status;
}

static epctx_status put_cast(epctx_model *model, epctx_str from, const char *to, int32_t type,
                             epctx_error *error) {
    const epctx_str out = epctx_str_of(to);
    epctx_node node;
    epctx_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.name = epctx_str_of("to");
    attr.type = EPCTX_ATTR_INT;
    attr.i = type;
    memset(&node, 0, sizeof node);
    node.op_type = epctx_str_of("Cast");
    node.inputs = &from;
    node.input_count = 1;
    node.outputs = &out;
    node.output_count = 1;
    node.attrs = &attr;
    node.attr_count = 1;
    return epctx_edit_put_node(model, epctx_view_none(), &node, epctx_view_none(), NULL, error);
}

/* Who reads the first output of node `at` reads it through float64, which changes no number and
 * which hardly an EP takes: whatever it claims is in two parts. `*read`: somebody reads it. */
static epctx_status cut_behind(epctx_model *model, size_t at, bool *read, epctx_error *error) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_str value = {NULL, 0};
    epctx_node_view node;
    epctx_status status = EPCTX_OK;
    size_t i;
    *read = false;
    for (i = 0; epctx_next_node(&it, &node); i++) {
        epctx_cursor outputs = epctx_view_node_outputs(&node);
        if (i == at) epctx_next_str(&outputs, &value);
    }
    it = epctx_view_graph_nodes(epctx_model_graph(model));
    while (value.size && status == EPCTX_OK && epctx_next_node(&it, &node)) {
        epctx_cursor inputs = epctx_view_fields(node.view, EPCTX_FIELD_NODE_INPUT);
        epctx_view name;
        while (status == EPCTX_OK && epctx_next_view(&inputs, &name)) {
            if (!epctx_str_eq(epctx_view_str(name), value)) continue;
            *read = true;
            status = epctx_edit_replace_str(model, name, epctx_str_of("conformance.back"), error);
        }
    }
    if (status != EPCTX_OK || !*read) return status;
    status = put_cast(model, value, "conformance.double", EPCTX_ONNX_DOUBLE, error);
    if (status != EPCTX_OK) return status;
    return put_cast(model, epctx_str_of("conformance.double"), "conformance.back", EPCTX_ONNX_FLOAT,
                    error);
}

bool make_external(epctx_model *model, const char *path, epctx_error *error) {
    char folder[PATH_MAX], file[PATH_MAX + 32];
    epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(model));
    epctx_tensor_view tensor;
    epctx_status status = EPCTX_OK;
    FILE *out;
    uint64_t at = 0;
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s/data", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    snprintf(file, sizeof file, "%s/weights.bin", folder);
    make_folder(folder);
    out = fopen(file, "wb");
    while (out && status == EPCTX_OK && epctx_next_tensor(&it, &tensor)) {
        const size_t size = tensor.raw.size;
        if (size < 64) continue;
        fwrite(tensor.raw.data, 1, size, out);
        status = epctx_edit_set_tensor_external(model, tensor.view,
                                                epctx_str_of("data/weights.bin"), at, size, error);
        at += size;
    }
    return out && fclose(out) == 0 && status == EPCTX_OK && at > 0;
}

/* The user's model with its weights inside, changed by `kind`; with MODEL_ISLAND cut behind node
 * `at`. False: see ort_text. */
static bool change_given(trial *t, model_kind kind, size_t at, const char *path) {
    const char *source = t->wanted.models[t->board->ep.given];
    epctx_model model;
    epctx_error error;
    size_t changed = 0;
    bool ok;
    epctx_error_clear(&error);
    ok = epctx_model_open_file(&model, source, NULL, &error) == EPCTX_OK &&
         take_in(&model, kind == MODEL_OTHER, &changed, &error) == EPCTX_OK;
    if (ok && kind == MODEL_OTHER) ok = changed > 0;
    if (ok && kind == MODEL_NAMES) ok = rename_nodes(&model, &error) == EPCTX_OK;
    if (ok && kind == MODEL_WEXT) ok = make_external(&model, path, &error);
    if (ok && kind == MODEL_ISLAND) {
        bool read;
        ok = cut_behind(&model, at, &read, &error) == EPCTX_OK && read;
    }
    ok = ok && epctx_model_write_file(&model, path, NULL, &error) == EPCTX_OK;
    ort_code = ORT_FAIL;
    snprintf(ort_text, sizeof ort_text, "%s",
             *error.message ? error.message : "it cannot be made of the user's model");
    epctx_model_close(&model);
    return ok;
}

static size_t count_nodes(const char *path) {
    epctx_model model;
    epctx_error error;
    size_t count = 0;
    epctx_error_clear(&error);
    if (epctx_model_open_file(&model, path, NULL, &error) == EPCTX_OK)
        count = epctx_cursor_count(epctx_view_graph_nodes(epctx_model_graph(&model)));
    epctx_model_close(&model);
    return count;
}

bool make_given(trial *t, model_kind kind, const char *path) {
    const size_t count = count_nodes(t->wanted.models[t->board->ep.given]);
    ort_spec cpu;
    size_t i;
    if (kind != MODEL_ISLAND) return change_given(t, kind, 0, path);
    memset(&cpu, 0, sizeof cpu);
    cpu.path = path;
    cpu.plain = true;
    /* From the middle on; a value that is not of float32 cannot be cut so: the CPU EP tells. */
    for (i = 0; i < CUTS && i < count; i++)
        if (change_given(t, kind, (count / 2 + count - 1 + i) % count, path) && session_opens(&cpu))
            return true;
    return false;
}
