#include "wrap.h"

#include "lint.h"

typedef struct wrap {
    epctx_model *model;
    epctx_error *error;
    ops_report report;
    const epctx_wrap_opts *opts;
    epctx_map names;
    bool wide; /* a quantized type of 16 bits */
} wrap;

/* -- values -- */

static epctx_status refuse(const wrap *w, const epctx_wrap_value *v, const char *text) {
    return epctx_fail(w->error, EPCTX_ERR_ARG, "'%S' (%s): %s", &v->value.name,
                      epctx_elem_name(v->value.elem_type), text);
}

/* Types that can be quantized, with their ranges. */
typedef struct wrap_range {
    int32_t elem_type;
    int64_t least, most;
} wrap_range;

static const wrap_range *range_of(int32_t elem_type) {
    static const wrap_range ranges[] = {{EPCTX_ONNX_UINT8, 0, 255},
                                        {EPCTX_ONNX_INT8, -128, 127},
                                        {EPCTX_ONNX_UINT16, 0, 65535},
                                        {EPCTX_ONNX_INT16, -32768, 32767}};
    size_t i;
    for (i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].elem_type == elem_type) return &ranges[i];
    return NULL;
}

/* A name that no other value has: "<name><tail>". */
static epctx_status new_name(wrap *w, const epctx_wrap_value *v, const char *tail, epctx_str *out) {
    OPS_TRY(ops_join(&w->model->arena, v->value.name, epctx_str_of(tail), out, w->error));
    if (out->size == 0) return epctx_fail(w->error, EPCTX_ERR_ARG, "a value has no name");
    if (ops_has(&w->names, *out))
        return epctx_fail(w->error, EPCTX_ERR_ARG, "two values would be named '%S'", out);
    return ops_put(&w->names, *out, 1, w->error);
}

static epctx_status check_value(wrap *w, const epctx_wrap_value *v) {
    const wrap_range *range = range_of(v->value.elem_type);
    int32_t i;
    if (!epctx_lint_allows(v->value.elem_type)) {
        return refuse(w, v,
                      "EPContext takes tensors of integers of 8 to 64 bits, floats of 16 to "
                      "64 bits and bool");
    }
    for (i = 0; i < v->value.rank; i++)
        if (v->value.dims[i] < 0 && (w->opts->profile->traits & EPCTX_TRAIT_STATIC_SHAPES) != 0)
            return refuse(w, v, "this EP supports static shapes only");
    if (!v->quantized) return EPCTX_OK;
    if (range == NULL) return refuse(w, v, "only integers of 8 or 16 bits can be quantized");
    if (!(v->scale > 0.0f) || v->scale > 3.4e38f)
        return refuse(w, v, "the scale must be greater than 0");
    if (v->zero_point < range->least || v->zero_point > range->most)
        return refuse(w, v, "the zero point is outside of its range");
    w->wide = w->wide || range->most > 255;
    return EPCTX_OK;
}

/* A scalar initializer of `size` bytes. */
static epctx_status put_scalar(wrap *w, epctx_str name, int32_t elem_type, uint64_t bits) {
    epctx_tensor tensor;
    uint8_t *data;
    size_t i;
    memset(&tensor, 0, sizeof tensor);
    tensor.name = name;
    tensor.elem_type = elem_type;
    tensor.size = epctx_elem_size(elem_type);
    OPS_TRY(ops_array(&w->model->arena, tensor.size, 1, &data, w->error));
    for (i = 0; i < tensor.size; i++) data[i] = (uint8_t)(bits >> 8 * i);
    tensor.data = data;
    return epctx_edit_put_initializer(w->model, epctx_view_none(), &tensor, epctx_view_none(), NULL,
                                      w->error);
}

static epctx_status put_graph_value(wrap *w, const epctx_value *value, bool input) {
    return epctx_edit_put_value(w->model, epctx_view_none(),
                                input ? EPCTX_FIELD_GRAPH_INPUT : EPCTX_FIELD_GRAPH_OUTPUT, value,
                                epctx_view_none(), NULL, w->error);
}

/* The node that converts a value of the binary to or from float32. */
static epctx_status put_quantizer(wrap *w, const epctx_wrap_value *v, bool input,
                                  epctx_str outside) {
    epctx_step step;
    epctx_view none = epctx_view_none();
    epctx_str inside = v->value.name;
    epctx_str names[3];
    epctx_node node;
    uint32_t scale;
    memcpy(&scale, &v->scale, sizeof scale);
    memset(&node, 0, sizeof node);
    OPS_TRY(new_name(w, v, "_scale", &names[1]));
    OPS_TRY(new_name(w, v, "_zp", &names[2]));
    names[0] = input ? outside : inside;
    node.name = input ? inside : outside;
    node.op_type = epctx_str_of(input ? "QuantizeLinear" : "DequantizeLinear");
    node.inputs = names;
    node.input_count = 3;
    node.outputs = input ? &inside : &outside;
    node.output_count = 1;
    OPS_TRY(put_scalar(w, names[1], EPCTX_ONNX_FLOAT, scale));
    OPS_TRY(put_scalar(w, names[2], v->value.elem_type, (uint64_t)v->zero_point));
    OPS_TRY(epctx_edit_put_value(w->model, none, EPCTX_FIELD_GRAPH_VALUE_INFO, &v->value, none,
                                 NULL, w->error));
    OPS_TRY(epctx_edit_put_node(w->model, none, &node, none, NULL, w->error));
    step = ops_step(0, "add", input ? "input" : "output", outside);
    return ops_say(&w->report, &step, w->error, "%s '%S' is float32, the binary has %s",
                   input ? "input" : "output", &outside, epctx_elem_name(v->value.elem_type));
}

/* A graph input or output, with the node that makes it float32. */
static epctx_status put_value(wrap *w, const epctx_wrap_value *v, bool input) {
    epctx_value outside = v->value;
    epctx_str inside;
    OPS_TRY(check_value(w, v));
    OPS_TRY(new_name(w, v, "", &inside));
    if (!v->quantized) return put_graph_value(w, &outside, input);
    OPS_TRY(new_name(w, v, "_dq", &outside.name));
    outside.elem_type = EPCTX_ONNX_FLOAT;
    OPS_TRY(put_graph_value(w, &outside, input));
    return put_quantizer(w, v, input, outside.name);
}

/* -- the node -- */

static void set_text(epctx_epnode *ep, epctx_epnode_attr attr, epctx_str *member, epctx_str text) {
    if (text.data != NULL) {
        *member = text;
        ep->present |= 1u << attr;
    }
}

static epctx_epnode epnode_of(const epctx_wrap_opts *o, epctx_span binary) {
    epctx_epnode ep = epctx_epnode_default();
    epctx_str context = epctx_str_of(o->binary_name);
    if (o->embed) {
        context.data = (const char *)binary.data;
        context.size = binary.size;
    }
    ep.present = 1u << EPCTX_EPNODE_MAIN_CONTEXT | 1u << EPCTX_EPNODE_EMBED_MODE;
    ep.embed_mode = o->embed;
    set_text(&ep, EPCTX_EPNODE_EP_CACHE_CONTEXT, &ep.ep_cache_context, context);
    set_text(&ep, EPCTX_EPNODE_PARTITION_NAME, &ep.partition_name,
             epctx_str_of(o->partition_name != NULL ? o->partition_name : o->name));
    set_text(&ep, EPCTX_EPNODE_SOURCE, &ep.source,
             epctx_str_of(o->source != NULL ? o->source : o->profile->sources[0]));
    set_text(&ep, EPCTX_EPNODE_EP_SDK_VERSION, &ep.ep_sdk_version, epctx_str_of(o->sdk_version));
    set_text(&ep, EPCTX_EPNODE_HARDWARE_ARCHITECTURE, &ep.hardware_architecture,
             epctx_str_of(o->hardware_architecture));
    set_text(&ep, EPCTX_EPNODE_NOTES, &ep.notes, epctx_str_of(o->notes));
    set_text(&ep, EPCTX_EPNODE_ONNX_MODEL_FILENAME, &ep.onnx_model_filename,
             epctx_str_of(o->source_model));
    ep.max_size = o->max_size;
    return ep;
}

static epctx_status put_epnode(wrap *w, epctx_span binary) {
    epctx_step step;
    const epctx_wrap_opts *o = w->opts;
    epctx_epnode ep = epnode_of(o, binary);
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT + 1];
    epctx_node node;
    epctx_str *names;
    size_t i;
    OPS_TRY(ops_array(&w->model->arena, o->input_count + o->output_count, sizeof *names, &names,
                      w->error));
    for (i = 0; i < o->input_count; i++) names[i] = o->inputs[i].value.name;
    for (i = 0; i < o->output_count; i++) names[o->input_count + i] = o->outputs[i].value.name;
    memset(&node, 0, sizeof node);
    node.name = epctx_str_of(o->name);
    node.op_type = epctx_str_of(EPCTX_OP_TYPE);
    node.domain = epctx_str_of(EPCTX_DOMAIN);
    node.inputs = names;
    node.input_count = o->input_count;
    node.outputs = names + o->input_count;
    node.output_count = o->output_count;
    node.attrs = attrs;
    node.attr_count = epctx_epnode_attrs(&ep, attrs);
    if (o->overrides != NULL) {
        epctx_attr *attr = &attrs[node.attr_count++];
        memset(attr, 0, sizeof *attr);
        attr->name = epctx_str_of("io_name_overrides");
        attr->type = EPCTX_ATTR_STRING;
        attr->s = epctx_str_of(o->overrides);
    }
    OPS_TRY(
        epctx_edit_put_node(w->model, epctx_view_none(), &node, epctx_view_none(), NULL, w->error));
    step = ops_step(0, "add", "node", node.name);
    return ops_say(&w->report, &step, w->error,
                   "node '%S' of EP '%s' around %u bytes, %u inputs, %u outputs", &node.name,
                   o->profile->name, (uint64_t)binary.size, (uint64_t)o->input_count,
                   (uint64_t)o->output_count);
}

/* -- the model -- */

static epctx_status put_binary(wrap *w, epctx_span binary) {
    const epctx_wrap_opts *o = w->opts;
    epctx_str name = epctx_str_of(o->binary_name);
    epctx_output_file file;
    if (o->embed) return EPCTX_OK;
    OPS_TRY(epctx_output_name_check(name, epctx_str_of(o->output_path), o->profile, w->error));
    OPS_TRY(ops_file_of(w->model, o->output_path, name, binary, &file, w->error));
    return ops_put_file(&w->report, &file, w->error);
}

/* -- node and binary -- */

typedef struct wrap_judge {
    uint64_t count;
    char text[640]; /* of the first finding */
} wrap_judge;

static void judge_found(void *user, const epctx_finding *finding) {
    wrap_judge *judge = (wrap_judge *)user;
    epctx_text text;
    if (!epctx_rule_is_of_binary(finding->rule) || judge->count++ > 0) return;
    text = epctx_text_of(judge->text, sizeof judge->text);
    epctx_text_put_format(&text, "%s (%s)", finding->message, finding->info.id);
}

/* As lint judges the model; while it does, the binary is embedded, for it has no file yet. */
static epctx_status judge_binary(wrap *w, epctx_span binary) {
    const size_t mark = epctx_edit_mark(w->model);
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(w->model));
    const epctx_str bytes = {(const char *)binary.data, binary.size};
    const epctx_str name = epctx_str_of(w->opts->name);
    epctx_check_opts check;
    epctx_node_view node;
    epctx_status status = EPCTX_OK;
    wrap_judge judge;
    memset(&check, 0, sizeof check);
    memset(&judge, 0, sizeof judge);
    check.no_files = true;
    check.profile = w->opts->profile;
    check.allocator =
        w->model->arena.allocator.alloc_fn != NULL ? &w->model->arena.allocator : NULL;
    while (epctx_next_node(&it, &node) && !epctx_view_is_epnode(&node)) {
    }
    if (!w->opts->embed) {
        status = epctx_edit_set_attr_str(w->model, node.view, "ep_cache_context", bytes, w->error);
        if (status == EPCTX_OK)
            status = epctx_edit_set_attr_int(w->model, node.view, "embed_mode", 1, w->error);
    }
    if (status == EPCTX_OK)
        status = epctx_lint_asking(w->model, &check, w->opts->asker, judge_found, &judge, NULL,
                                   w->error);
    epctx_edit_undo(w->model, mark);
    if (status != EPCTX_OK || judge.count == 0) return status;
    epctx_fail(w->error, EPCTX_ERR_CONTEXT, "the binary does not fit: %s", judge.text);
    epctx_blame(w->error, NULL, &name, NULL);
    return EPCTX_ERR_CONTEXT;
}

static epctx_status wrap_run(wrap *w, epctx_span binary) {
    const epctx_wrap_opts *o = w->opts;
    epctx_model *model = w->model;
    size_t i;
    for (i = 0; i < o->input_count; i++) OPS_TRY(put_value(w, &o->inputs[i], true));
    OPS_TRY(put_epnode(w, binary));
    for (i = 0; i < o->output_count; i++) OPS_TRY(put_value(w, &o->outputs[i], false));
    /* QuantizeLinear takes 16 bits since version 21, which came with IR version 10. */
    OPS_TRY(epctx_edit_put_opset(model, epctx_str_of(""), w->wide ? 21 : 13, w->error));
    OPS_TRY(epctx_edit_put_opset(model, epctx_str_of(EPCTX_DOMAIN), 1, w->error));
    OPS_TRY(epctx_edit_set_field_int(model, epctx_model_root(model), EPCTX_FIELD_MODEL_IR_VERSION,
                                     w->wide ? 10 : 8, w->error));
    OPS_TRY(epctx_edit_set_field_str(model, epctx_model_graph(model).view, EPCTX_FIELD_GRAPH_NAME,
                                     epctx_str_of(o->name), w->error));
    OPS_TRY(put_binary(w, binary));
    OPS_TRY(epctx_lint_verify(model, o->profile, NULL, w->error));
    OPS_TRY(ops_check_size(model, "do not embed the binary", w->error));
    return judge_binary(w, binary);
}

static epctx_status check_arguments(epctx_span binary, const epctx_wrap_opts *o,
                                    epctx_error *error) {
    if (o == NULL || o->profile == NULL || o->name == NULL || o->name[0] == '\0' ||
        o->output_count == 0 || (!o->embed && o->binary_name == NULL)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "expected a profile, a name, at least one output and the name of the "
                          "file");
    }
    if (binary.size == 0) return epctx_fail(error, EPCTX_ERR_ARG, "the binary is empty");
    if (!o->embed && (o->profile->traits & EPCTX_TRAIT_ONLY_EMBEDDED) != 0) {
        return epctx_fail(error, EPCTX_ERR_ARG, "EP '%s' reads no files: embed the binary",
                          o->profile->name);
    }
    if (o->source == NULL && o->profile->sources[0] == NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG, "EP '%s' has no default source: specify it",
                          o->profile->name);
    }
    return EPCTX_OK;
}

epctx_status epctx_wrap(epctx_model *model, epctx_span binary, const epctx_wrap_opts *opts,
                        const epctx_open_opts *open, epctx_combined *out, epctx_error *error) {
    wrap w;
    epctx_status status;
    epctx_error_clear(error);
    memset(&w, 0, sizeof w);
    memset(model, 0, sizeof *model);
    if (out != NULL) memset(out, 0, sizeof *out);
    OPS_TRY(check_arguments(binary, opts, error));
    OPS_TRY(epctx_model_new(model, 8, open, error));
    w.model = model;
    w.error = error;
    w.report.arena = &model->arena;
    w.opts = opts;
    epctx_map_init(&w.names, &model->arena);
    status = wrap_run(&w, binary);
    if (status != EPCTX_OK) {
        epctx_model_close(model);
        return status;
    }
    ops_report_end(&w.report, out);
    return EPCTX_OK;
}
