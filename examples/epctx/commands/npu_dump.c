/* epctx npu-dump: what the reference NPU makes of a model, and where its time goes. */
#define _POSIX_C_SOURCE 200809L

#include "core/npu_graph.h"
#include "core/tensors.h"
#include "core/threads.h"
#include "core/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A step with texts and dimensions of its own. */
typedef struct kept_step {
    struct kept_step *next;
    epctx_npu_step step;
    epctx_value result;
} kept_step;

typedef struct dump {
    epctx_arena arena;
    kept_step *first, **end;
    double *times; /* the best of every command, in the order of the run */
    size_t at;     /* the command that ends next */
    bool no_memory;
} dump;

static epctx_str kept_text(dump *d, epctx_str text) {
    epctx_str copy = {epctx_arena_copy(&d->arena, text), text.size};
    d->no_memory = d->no_memory || copy.data == NULL;
    return copy;
}

static void keep(void *user, const epctx_npu_step *step) {
    dump *d = (dump *)user;
    const size_t rank = (size_t)step->result.rank;
    kept_step *kept = (kept_step *)epctx_arena_alloc(&d->arena, sizeof *kept);
    int64_t *dims = (int64_t *)epctx_arena_array(&d->arena, rank + 1, sizeof *dims);
    if (kept == NULL || dims == NULL) {
        d->no_memory = true;
        return;
    }
    kept->next = NULL;
    kept->step = *step;
    kept->step.node = kept_text(d, step->node);
    kept->step.result.name = kept_text(d, step->result.name);
    if (rank > 0) memcpy(dims, step->result.dims, rank * sizeof *dims);
    kept->step.result.dims = dims;
    *d->end = kept;
    d->end = &kept->next;
}

/* -- passes -- */

static void print_shape(const epctx_value *value) {
    int32_t i;
    printf("%s[", epctx_elem_name(value->elem_type));
    for (i = 0; i < value->rank; i++) printf("%s%" PRId64, i > 0 ? "," : "", value->dims[i]);
    putchar(']');
}

static void print_step(const epctx_npu_step *s) {
    uint32_t i;
    printf("  v%" PRIu32 " ", s->out);
    print_shape(&s->result);
    printf(" at m%" PRIu32 "+%" PRIu64 " = %s(", s->memory, s->offset, s->op);
    for (i = 0; i < s->in_count; i++) {
        if (i > 0) fputs(", ", stdout);
        if (s->in[i] == UINT32_MAX)
            putchar('-');
        else
            printf("%c%" PRIu32, s->constants >> i & 1 ? 'c' : 'v', s->in[i]);
    }
    printf(")  %.*s\n", (int)s->node.size, s->node.data);
}

static void print_passes(const dump *d) {
    const kept_step *k;
    for (k = d->first; k != NULL; k = k->next) {
        if (k->step.index == 0) printf("after pass %s\n", k->step.pass);
        print_step(&k->step);
    }
}

static void json_step(json_writer *w, const epctx_npu_step *s) {
    uint32_t i;
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "op", s->op);
    json_str(w, "node", s->node);
    json_uint(w, "value", s->out);
    json_str(w, "name", s->result.name);
    json_text(w, "type", epctx_elem_name(s->result.elem_type));
    json_array(w, "shape", JSON_INLINE);
    for (i = 0; i < (uint32_t)s->result.rank; i++) json_int(w, NULL, s->result.dims[i]);
    json_end(w);
    json_uint(w, "memory", s->memory);
    json_uint(w, "offset", s->offset);
    json_array(w, "inputs", JSON_INLINE);
    for (i = 0; i < s->in_count; i++) {
        if (s->in[i] == UINT32_MAX) {
            json_null(w, NULL);
            continue;
        }
        json_object(w, NULL, JSON_INLINE);
        json_uint(w, "value", s->in[i]);
        json_bool(w, "constant", (s->constants >> i & 1) != 0);
        json_end(w);
    }
    json_end(w);
    json_end(w);
}

static void json_passes(json_writer *w, const dump *d) {
    const kept_step *k = d->first;
    json_array(w, "passes", JSON_HANGING);
    while (k != NULL) {
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "pass", k->step.pass);
        json_array(w, "commands", JSON_HANGING);
        do {
            json_step(w, &k->step);
            k = k->next;
        } while (k != NULL && k->step.index != 0);
        json_end(w);
        json_end(w);
    }
    json_end(w);
}

/* -- commands -- */

static uint64_t now(void *unused) {
    struct timespec t;
    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void note_time(void *user, const epctx_npu_command *command, uint64_t time) {
    dump *d = (dump *)user;
    (void)command;
    if (d->times != NULL && (d->times[d->at] <= 0 || (double)time < d->times[d->at]))
        d->times[d->at] = (double)time;
    d->at++;
}

static const epctx_npu_graph *graph_at(const session *s, size_t i) {
    return (const epctx_npu_graph *)s->loaded.bound[i].graph;
}

static void print_commands(const session *s, const double *times) {
    epctx_npu_command c;
    size_t i;
    for (i = 0; i < s->loaded.bound_count; i++) {
        const epctx_npu_graph *graph = graph_at(s, i);
        uint32_t position = 0;
        printf("graph %.*s: %" PRIu32 " commands, %" PRIu64 " operations, %zu bytes of scratch\n",
               (int)graph->info.name.size, graph->info.name.data, graph->command_count, graph->work,
               graph->info.scratch_size);
        printf("%10s %12s %12s %10s %10s  %-16s %s\n", "us", "products", "bytes", "workspace",
               "elements", "command", "node");
        while (epctx_npu_next_command(graph, &position, &c))
            printf("%10.1f %12" PRIu64 " %12" PRIu64 " %10" PRIu64 " %10" PRIu64 "  %-16s %.*s\n",
                   *times++ / 1000, c.products, c.bytes, c.temporary, c.elements, c.op,
                   (int)c.name.size, c.name.data);
    }
}

static void json_commands(json_writer *w, const session *s, const double *times) {
    size_t i;
    json_array(w, "graphs", JSON_HANGING);
    for (i = 0; i < s->loaded.bound_count; i++) {
        npu_graph_put(w, NULL, graph_at(s, i), times);
        times += graph_at(s, i)->command_count;
    }
    json_end(w);
}

static void print_json(const session *s, const dump *d) {
    json_writer *w = cli_json_begin(stdout);
    json_indent(w, 0, 1);
    json_passes(w, d);
    json_commands(w, s, d->times);
    cli_json_end();
}

/* -- the command -- */

static epctx_status measure(session *s, dump *d, uint64_t repeat, epctx_error *error) {
    size_t i, count = 0;
    uint64_t n;
    for (i = 0; i < s->loaded.bound_count; i++) count += graph_at(s, i)->command_count;
    d->times = (double *)epctx_arena_array(&d->arena, count + 1, sizeof *d->times);
    if (d->times == NULL || d->no_memory)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    for (i = 0; i < s->input_count; i++) tensors_fill(s->inputs[i], 1, i);
    for (n = 0; n < repeat; n++) {
        epctx_status status;
        d->at = 0;
        status = session_run(s, error);
        if (status != EPCTX_OK) return status;
    }
    return EPCTX_OK;
}

static int dump_model(const char *file, const char *source, uint64_t threads, uint64_t repeat,
                      bool json) {
    epctx_npu_run_opts run;
    epctx_npu_opts opts;
    epctx_error error;
    epctx_status status;
    session s;
    dump d;
    memset(&d, 0, sizeof d);
    epctx_arena_init(&d.arena, NULL);
    d.end = &d.first;
    run = threads_opts((uint32_t)threads);
    run.user = &d;
    run.clock_fn = now;
    run.profile_fn = note_time;
    memset(&opts, 0, sizeof opts);
    opts.run = &run;
    opts.trace_fn = keep;
    opts.trace_user = &d;
    cli_npu_opts(&opts);
    status = session_open(&s, file, source, &error);
    if (status == EPCTX_OK) status = measure(&s, &d, repeat, &error);
    if (status == EPCTX_OK && json) {
        print_json(&s, &d);
    } else if (status == EPCTX_OK) {
        print_passes(&d);
        print_commands(&s, d.times);
    }
    session_close(&s);
    epctx_arena_free(&d.arena);
    return status == EPCTX_OK ? CLI_OK : cli_fail(&error);
}

static int run(const cli_args *args) {
    return dump_model(args->operands[0], args->source, cli_number_or(args->threads, 1),
                      cli_number_or(args->repeat, 3), args->json);
}

const cli_command cli_npu_dump = {
    .name = "npu-dump",
    .group = CLI_COMPARE,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "show what the reference NPU executes, and how long it takes",
    .about = "Runs a model of the reference NPU and prints its commands: time in microseconds,\n"
             "products, bytes read and written, workspace, elements of the result, and the\n"
             "ONNX node. For an ordinary model, which is compiled in memory, prints before\n"
             "that the commands after each pass of the compiler: vN are values, cN constants,\n"
             "and mN+M is a place in memory.\n",
    .more = "Example: epctx npu-dump model_ctx.onnx\n",
    .run = run,
};
