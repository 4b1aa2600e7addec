/* A backend that computes nothing: it writes down what it is asked to compile, and fails on demand.
 *
 * Its binary is text after "FAKE" and a byte that no text has: the number of graphs, and for each
 * one its name, its hash, and the names of its inputs and outputs. */
#ifndef EPCTX_TEST_FAKE_H
#define EPCTX_TEST_FAKE_H

#include "build.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

typedef enum fake_step {
    FAKE_NONE,
    FAKE_CAPABILITY,
    FAKE_BEGIN,
    FAKE_COMPILE,
    FAKE_FINISH,
    FAKE_LOAD,
    FAKE_FIND,
    FAKE_INFO
} fake_step;

typedef struct fake {
    const char *takes;                 /* op types, comma-separated; NULL: Take */
    fake_step fail;                    /* the step that fails ... */
    int fail_after;                    /* ... after succeeding this often */
    char log[1000];                    /* "in,in->out;" for each graph compiled */
    int64_t max_size;                  /* for fake_max_size */
    atomic_int alive;                  /* builds and contexts not yet released */
    atomic_int compiled, loads, finds; /* different contexts are used at once */
} fake;

typedef struct fake_graph {
    char name[100];
    uint64_t hash;
    char names[16][32];
    epctx_value values[16]; /* inputs, then outputs */
    size_t inputs, outputs;
} fake_graph;

typedef struct fake_context {
    fake_graph graphs[8];
    size_t count;
} fake_context;

typedef struct fake_made {
    uint64_t name; /* its hash */
    size_t outputs;
    uint32_t untyped; /* bit i: output i, of the first 32, has no type */
} fake_made;

typedef struct fake_build {
    bytes text;
    size_t count;
    fake_made *made;    /* one per graph */
    epctx_value *types; /* of the graph asked for last */
} fake_build;

static bool fake_fails(fake *f, fake_step step) {
    return f->fail == step && f->fail_after-- <= 0;
}

static epctx_status fake_failure(epctx_error *error) {
    return epctx_fail(error, EPCTX_ERR_BACKEND, "the fake fails as told");
}

static epctx_status fake_capability(void *self, const epctx_graph *graph, uint8_t *take,
                                    epctx_error *error) {
    fake *f = (fake *)self;
    if (fake_fails(f, FAKE_CAPABILITY)) return fake_failure(error);
    for (size_t i = 0; i < graph->node_count; i++) {
        char op[40], list[200];
        snprintf(op, sizeof op, ",%.*s,", (int)graph->nodes[i].op_type.size,
                 graph->nodes[i].op_type.data);
        snprintf(list, sizeof list, ",%s,", f->takes != NULL ? f->takes : "Take");
        take[i] = strstr(list, op) != NULL;
    }
    return EPCTX_OK;
}

static epctx_status fake_begin(void *self, void **build, epctx_error *error) {
    fake *f = (fake *)self;
    if (fake_fails(f, FAKE_BEGIN)) return fake_failure(error);
    *build = calloc(1, sizeof(fake_build));
    f->alive++;
    return *build != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
}

static void fake_put_names(bytes *text, const epctx_value *values, size_t count) {
    char number[24];
    snprintf(number, sizeof number, "%zu\n", count);
    bytes_add(text, number, strlen(number));
    for (size_t i = 0; i < count; i++) {
        bytes_add(text, values[i].name.data, values[i].name.size);
        bytes_add(text, "\n", 1);
    }
}

static void fake_log(fake *f, const epctx_value *values, size_t count, const char *end) {
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(f->log);
        snprintf(f->log + used, sizeof f->log - used, "%s%.*s", i > 0 ? "," : "",
                 (int)values[i].name.size, values[i].name.data);
    }
    strncat(f->log, end, sizeof f->log - strlen(f->log) - 1); /* what does not fit is not told */
}

static epctx_status fake_compile(void *self, void *build, const epctx_graph *graph, epctx_str name,
                                 uint64_t hash, epctx_error *error) {
    fake *f = (fake *)self;
    fake_build *b = (fake_build *)build;
    char number[24];
    if (fake_fails(f, FAKE_COMPILE)) return fake_failure(error);
    f->compiled++;
    fake_log(f, graph->inputs, graph->input_count, "->");
    fake_log(f, graph->outputs, graph->output_count, ";");
    bytes_add(&b->text, name.data, name.size);
    snprintf(number, sizeof number, "\n%" PRIx64 "\n", hash);
    bytes_add(&b->text, number, strlen(number));
    fake_put_names(&b->text, graph->inputs, graph->input_count);
    fake_put_names(&b->text, graph->outputs, graph->output_count);
    b->made = (fake_made *)realloc(b->made, (b->count + 1) * sizeof *b->made);
    memset(&b->made[b->count], 0, sizeof *b->made);
    b->made[b->count].name = epctx_hash(name.data, name.size, 0);
    b->made[b->count].outputs = graph->output_count;
    for (size_t i = 0; i < graph->output_count && i < 32; i++)
        b->made[b->count].untyped |= (uint32_t)(graph->outputs[i].elem_type == 0) << i;
    b->count++;
    return EPCTX_OK;
}

/* Floats of any shape where the model has no type. */
static epctx_status fake_types(void *self, void *build, epctx_str name, const epctx_value **outputs,
                               size_t *count, epctx_error *error) {
    fake_build *b = (fake_build *)build;
    size_t at = b->count - 1;
    (void)self, (void)error;
    while (at > 0 && b->made[at].name != epctx_hash(name.data, name.size, 0)) at--;
    *count = b->made[at].outputs;
    free(b->types);
    b->types = (epctx_value *)calloc(*count + 1, sizeof *b->types);
    for (size_t i = 0; i < *count; i++) {
        b->types[i].rank = -1;
        b->types[i].elem_type = i < 32 && b->made[at].untyped >> i & 1 ? EPCTX_ONNX_FLOAT : 0;
    }
    *outputs = b->types;
    return EPCTX_OK;
}

static void fake_discard(void *self, void *build) {
    fake *f = (fake *)self;
    fake_build *b = (fake_build *)build;
    bytes_free(&b->text);
    free(b->made);
    free(b->types);
    free(b);
    f->alive--;
}

static epctx_status fake_finish(void *self, void *build, epctx_buffer *out, epctx_error *error) {
    fake *f = (fake *)self;
    fake_build *b = (fake_build *)build;
    char head[32];
    epctx_status status;
    snprintf(head, sizeof head, "FAKE\001\n%zu\n", b->count);
    status = epctx_buffer_append(out, head, strlen(head));
    if (status == EPCTX_OK) status = epctx_buffer_append(out, b->text.data, b->text.size);
    fake_discard(self, build);
    return fake_fails(f, FAKE_FINISH) ? fake_failure(error) : status;
}

/* Takes one line; false at the end of the text. */
static bool fake_line(epctx_span *text, char *out, size_t room) {
    size_t size = 0;
    while (size < text->size && text->data[size] != '\n') size++;
    if (size == text->size || size >= room) return false;
    memcpy(out, text->data, size);
    out[size] = '\0';
    text->data += size + 1;
    text->size -= size + 1;
    return true;
}

static bool fake_read_names(epctx_span *text, fake_graph *graph, size_t from, size_t *count) {
    char number[24];
    if (!fake_line(text, number, sizeof number)) return false;
    *count = (size_t)strtoul(number, NULL, 10);
    if (*count > 16 - from) return false;
    for (size_t i = from; i < from + *count; i++) {
        if (!fake_line(text, graph->names[i], sizeof graph->names[i])) return false;
        graph->values[i].name = epctx_str_of(graph->names[i]);
        graph->values[i].elem_type = EPCTX_ONNX_FLOAT;
    }
    return true;
}

static bool fake_parse(epctx_span text, fake_context *c) {
    char line[100];
    size_t count;
    if (!fake_line(&text, line, sizeof line) || strcmp(line, "FAKE\001") != 0) return false;
    if (!fake_line(&text, line, sizeof line)) return false;
    count = (size_t)strtoul(line, NULL, 10);
    if (count > 8) return false;
    for (; c->count < count; c->count++) {
        fake_graph *g = &c->graphs[c->count];
        if (!fake_line(&text, g->name, sizeof g->name) || !fake_line(&text, line, sizeof line))
            return false;
        g->hash = strtoull(line, NULL, 16);
        if (!fake_read_names(&text, g, 0, &g->inputs) ||
            !fake_read_names(&text, g, g->inputs, &g->outputs))
            return false;
    }
    return text.size == 0;
}

static epctx_status fake_load(void *self, const epctx_load_in *in, void **context,
                              epctx_error *error) {
    fake *f = (fake *)self;
    fake_context *c;
    f->loads++;
    if (fake_fails(f, FAKE_LOAD)) return fake_failure(error);
    c = (fake_context *)calloc(1, sizeof *c);
    if (c == NULL || !fake_parse(in->binary, c)) {
        free(c);
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "the magic is not FAKE and 1, or the text is cut");
    }
    f->alive++;
    *context = c;
    return EPCTX_OK;
}

static void fake_unload(void *self, void *context) {
    fake *f = (fake *)self;
    free(context);
    f->alive--;
}

static epctx_str fake_name(const void *graphs, size_t index) {
    return epctx_str_of(((const fake_graph *)graphs)[index].name);
}

static epctx_status fake_find(void *self, void *context, epctx_str name, uint64_t hash,
                              void **graph, epctx_error *error) {
    fake *f = (fake *)self;
    fake_context *c = (fake_context *)context;
    f->finds++;
    if (fake_fails(f, FAKE_FIND)) return fake_failure(error);
    for (size_t i = 0; i < c->count; i++) {
        if (!epctx_str_is(name, c->graphs[i].name)) continue;
        if (hash != 0 && hash != c->graphs[i].hash)
            return epctx_fail(error, EPCTX_ERR_VERSION, "the graph is of another generation");
        *graph = &c->graphs[i];
        return EPCTX_OK;
    }
    return epctx_fail_no_graph(error, name, c->graphs, c->count, fake_name);
}

static epctx_status fake_info(void *self, void *graph, epctx_graph_info *info, epctx_error *error) {
    const fake_graph *g = (const fake_graph *)graph;
    if (fake_fails((fake *)self, FAKE_INFO)) return fake_failure(error);
    memset(info, 0, sizeof *info);
    info->name = epctx_str_of(g->name);
    info->inputs = g->values;
    info->input_count = g->inputs;
    info->outputs = g->values + g->inputs;
    info->output_count = g->outputs;
    return EPCTX_OK;
}

static epctx_status fake_run(void *self, void *graph, const epctx_span *inputs,
                             const epctx_memory *outputs, void *scratch, size_t scratch_size,
                             epctx_error *error) {
    (void)self, (void)graph, (void)inputs, (void)outputs, (void)scratch, (void)scratch_size;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "the fake does not run");
}

/* Members of a backend that may be NULL. */
BUILD_UNUSED static epctx_status fake_max_size(void *self, void *build, epctx_str name,
                                               int64_t *size, epctx_error *error) {
    (void)build, (void)name, (void)error;
    *size = ((const fake *)self)->max_size;
    return EPCTX_OK;
}

BUILD_UNUSED static epctx_status fake_any_weights(void *self, void *graph,
                                                  const epctx_tensor *weights, size_t count,
                                                  epctx_error *error) {
    (void)self, (void)graph, (void)weights, (void)count, (void)error;
    return EPCTX_OK;
}

static epctx_backend fake_backend(fake *f) {
    epctx_backend b;
    memset(&b, 0, sizeof b);
    b.version = EPCTX_BACKEND_VERSION;
    b.self = f;
    b.source = "FakeEP";
    b.short_name = "fake";
    b.sdk_version = "1.0";
    b.hardware_architecture = "paper";
    b.capability_fn = fake_capability;
    b.begin_fn = fake_begin;
    b.compile_fn = fake_compile;
    b.types_fn = fake_types;
    b.finish_fn = fake_finish;
    b.discard_fn = fake_discard;
    b.load_fn = fake_load;
    b.unload_fn = fake_unload;
    b.find_fn = fake_find;
    b.info_fn = fake_info;
    b.run_fn = fake_run;
    return b;
}

/* A record of one node "Take", in -> out, as a host would give it. */
typedef struct fake_piece {
    epctx_graph graph;
    epctx_node node;
    epctx_value in, out;
    epctx_str in_name, out_name;
} fake_piece;

BUILD_UNUSED static const epctx_graph *fake_make_piece(fake_piece *p, const char *in,
                                                       const char *out) {
    memset(p, 0, sizeof *p);
    p->in_name = p->in.name = epctx_str_of(in);
    p->out_name = p->out.name = epctx_str_of(out);
    p->in.elem_type = p->out.elem_type = EPCTX_ONNX_FLOAT;
    p->node.op_type = epctx_str_of("Take");
    p->node.inputs = &p->in_name;
    p->node.outputs = &p->out_name;
    p->node.input_count = p->node.output_count = 1;
    p->graph.name = epctx_str_of("piece");
    p->graph.nodes = &p->node;
    p->graph.node_count = 1;
    p->graph.inputs = &p->in;
    p->graph.outputs = &p->out;
    p->graph.input_count = p->graph.output_count = 1;
    return &p->graph;
}

#endif
