/* What the reference NPU executes, for the page of `epctx view`: its commands, and where the
 * compiler put their results. A binary does not tell the latter, so the source is compiled once
 * more in memory; it counts when the commands are those of the binary. */
#include "npu_dump.h"
#include "session.h"
#include "view.h"

#include <inttypes.h>
#include <string.h>

/* A command after the last pass. */
typedef struct planned {
    struct planned *next;
    epctx_str name;
    uint32_t in_count, memory;
    uint64_t bytes;
} planned;

typedef struct plan {
    epctx_arena arena;
    planned *first, **end;
    uint64_t hash; /* of the commands */
    bool no_memory;
} plan;

static epctx_str kept(plan *p, epctx_str text) {
    epctx_str copy = {epctx_arena_copy(&p->arena, text), text.size};
    p->no_memory = p->no_memory || copy.data == NULL;
    return copy;
}

static uint64_t value_bytes(const epctx_value *value) {
    uint64_t bytes = epctx_elem_size(value->elem_type);
    int32_t i;
    for (i = 0; i < value->rank; i++) bytes *= (uint64_t)value->dims[i];
    return bytes;
}

static void trace(void *user, const epctx_npu_step *step) {
    plan *p = (plan *)user;
    planned *one;
    if (strcmp(step->pass, "plan") != 0) return;
    one = (planned *)epctx_arena_alloc(&p->arena, sizeof *one);
    if (one == NULL) {
        p->no_memory = true;
        return;
    }
    one->name = kept(p, step->result.name);
    one->memory = step->memory;
    one->bytes = value_bytes(&step->result);
    one->in_count = step->in_count;
    *p->end = one;
    p->end = &one->next;
}

/* Whether two models execute the same: all that is known of each command. */
static uint64_t hash_commands(const session *s) {
    uint64_t hash = s->loaded.bound_count, numbers[4];
    size_t i;
    for (i = 0; i < s->loaded.bound_count; i++) {
        const epctx_npu_graph *graph = (const epctx_npu_graph *)s->loaded.bound[i].graph;
        uint32_t position = 0;
        epctx_npu_command c;
        hash = epctx_hash(&graph->command_count, sizeof graph->command_count, hash);
        while (epctx_npu_next_command(graph, &position, &c)) {
            numbers[0] = c.products;
            numbers[1] = c.elements;
            numbers[2] = c.bytes;
            numbers[3] = c.temporary;
            hash = epctx_hash(c.op, strlen(c.op), hash);
            hash = epctx_hash(c.name.data, c.name.size, hash);
            hash = epctx_hash(numbers, sizeof numbers, hash);
        }
    }
    return hash;
}

/* Compiles in memory and keeps where results are. What the session cannot run besides does not
 * matter. */
static epctx_status make_plan(plan *p, const char *source, epctx_error *error) {
    epctx_npu_opts opts;
    epctx_status status;
    session s;
    memset(&opts, 0, sizeof opts);
    opts.trace_fn = trace;
    opts.trace_user = p;
    cli_npu_opts(&opts);
    status = session_open(&s, source, NULL, error);
    if (s.loaded.bound_count > 0) status = EPCTX_OK;
    p->hash = hash_commands(&s);
    session_close(&s);
    memset(&opts, 0, sizeof opts);
    cli_npu_opts(&opts);
    if (p->no_memory) status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    return status;
}

/* The place of an operand in scratch, from the words of its command (examples/guides/binary.md);
 * UINT64_MAX: it is somewhere else. */
static uint64_t place_of(const uint32_t *words, uint32_t operand) {
    enum { HEAD = 4, WORDS = 4, SCRATCH = 1 };
    const uint32_t *place = words + HEAD + operand * WORDS;
    return place[0] == SCRATCH ? place[2] | (uint64_t)place[3] << 32 : UINT64_MAX;
}

/* What each command of a graph writes in scratch, and where it reads there. */
static const planned *put_plan(FILE *out, const epctx_npu_graph *graph, const planned *one) {
    uint32_t position = 0, at = 0, i;
    epctx_npu_command command;
    for (; one != NULL && epctx_npu_next_command(graph, &position, &command); one = one->next) {
        const uint32_t *words = graph->commands + at;
        const uint64_t result = place_of(words, one->in_count);
        const char *comma = "";
        fputs(at == 0 ? "\n  {" : ",\n  {", out);
        cli_put_member(out, "name", one->name, ", ");
        fprintf(out, "\"memory\": %" PRIu32 ", \"bytes\": %" PRIu64 ", \"offset\": ", one->memory,
                one->bytes);
        if (result == UINT64_MAX)
            fputs("null, \"reads\": [", out);
        else
            fprintf(out, "%" PRIu64 ", \"reads\": [", result);
        for (i = 0; i < one->in_count; i++) {
            if (place_of(words, i) == UINT64_MAX) continue;
            fprintf(out, "%s%" PRIu64, comma, place_of(words, i));
            comma = ", ";
        }
        fputs("]}", out);
        at = position;
    }
    return one;
}

static void put_graphs(FILE *out, const session *s, const plan *p, const char *problem) {
    const planned *at = p->first;
    size_t i;
    fputs("{\"graphs\": [", out);
    for (i = 0; i < s->loaded.bound_count; i++) {
        const epctx_bound *bound = &s->loaded.bound[i];
        fputs(i > 0 ? ",\n{" : "\n{", out);
        cli_put_member(out, "epnode", bound->node.name, ", \"binary\": ");
        npu_dump_put_graph(out, (const epctx_npu_graph *)bound->graph, NULL);
        fputs(", \"plan\": ", out);
        if (problem == NULL) {
            fputc('[', out);
            at = put_plan(out, (const epctx_npu_graph *)bound->graph, at);
            fputc(']', out);
        } else {
            fputs("null", out);
        }
        fputc('}', out);
    }
    fputs("], ", out);
    cli_put_member(out, "problem", epctx_str_of(problem), "}");
}

/* Why there is no plan, or NULL. */
static const char *plan_problem(plan *p, const char *source, epctx_error *error) {
    if (source == NULL)
        return "the source model is not beside this one: only a compiler knows where results are";
    return make_plan(p, source, error) == EPCTX_OK ? NULL : error->message;
}

bool view_has_npu(const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    epctx_backend backend;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view))
        if (epctx_epnode_read(&view, &node, NULL) == EPCTX_OK &&
            cli_own_backend(node.source, &backend))
            return true;
    return false;
}

epctx_status view_put_npu(FILE *out, const char *file, const char *source, epctx_error *error) {
    epctx_error why;
    const char *problem;
    epctx_status status;
    session s;
    plan p;
    memset(&p, 0, sizeof p);
    epctx_arena_init(&p.arena, NULL);
    p.end = &p.first;
    problem = plan_problem(&p, source, &why);
    status = session_open(&s, file, NULL, error);
    if (s.loaded.bound_count == 0) {
        fputs("{\"graphs\": [], ", out);
        cli_put_member(out, "problem", epctx_str_of(error->message), "}");
    } else {
        if (problem == NULL && hash_commands(&s) != p.hash)
            problem = "the source model beside this one compiles to other commands";
        put_graphs(out, &s, &p, problem);
    }
    status = status == EPCTX_ERR_NOMEM ? status : EPCTX_OK;
    session_close(&s);
    epctx_arena_free(&p.arena);
    return status;
}
