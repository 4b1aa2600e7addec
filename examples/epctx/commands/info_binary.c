/* What is in a context binary: `epctx info BINARY`, and the files it needs: `epctx ls BINARY`. */
#include "info_binary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "binary/binary.h"
#include "core/options.h"
#include "ops/needs.h"
#include "epctx_npu.h"

/* A binary, mapped and read. */
typedef struct shown {
    const char *file;
    epctx_mapping mapping;
    epctx_span bytes;
    epctx_arena arena;
    binary_facts facts;
    /* Of the reference NPU: */
    bool npu;
    epctx_npu_blob blob;
    epctx_npu_context context;
    size_t memory;
    info_kernels kernels;
} shown;

/* -- kernels -- */

/* GatherND is EPCTX_NPU_OP(GATHER_ND). */
static epctx_str kernel_name(const char *op, epctx_arena *arena) {
    char name[64];
    epctx_text text = epctx_text_of(name, sizeof name);
    const char *at;
    for (at = op; *at != '\0'; at++) {
        const bool small = *at >= 'a' && *at <= 'z';
        if (at > op && !small && at[-1] >= 'a' && at[-1] <= 'z') epctx_text_put_char(&text, '_');
        epctx_text_put_char(&text, small ? (char)(*at - 'a' + 'A') : *at);
    }
    return epctx_str_of(epctx_arena_copy(arena, epctx_text_str(&text)));
}

static bool add_kernel(epctx_list *names, epctx_arena *arena, const char *op) {
    const epctx_str name = kernel_name(op, arena);
    epctx_str *place = (epctx_str *)names->items;
    size_t i;
    for (i = 0; i < names->count; i++)
        if (epctx_str_eq(place[i], name)) return true;
    place = name.size > 0 ? (epctx_str *)epctx_list_add(names, arena, sizeof *place) : NULL;
    if (place != NULL) *place = name;
    return place != NULL;
}

/* "-DEPCTX_NPU_SELECT=EPCTX_NPU_OP(CONV) | EPCTX_NPU_OP(GEMM)" */
static bool join_option(const info_kernels *kernels, epctx_arena *arena, epctx_str *option) {
    epctx_str text = epctx_str_of("-DEPCTX_NPU_SELECT=");
    epctx_error ignored;
    size_t i;
    for (i = 0; i < kernels->count; i++)
        if (ops_join(arena, text, epctx_str_of(i > 0 ? " | EPCTX_NPU_OP(" : "EPCTX_NPU_OP("), &text,
                     &ignored) != EPCTX_OK ||
            ops_join(arena, text, kernels->names[i], &text, &ignored) != EPCTX_OK ||
            ops_join(arena, text, epctx_str_of(")"), &text, &ignored) != EPCTX_OK)
            return false;
    return ops_join(arena, text, epctx_str_of(kernels->count > 0 ? "" : "0"), option, &ignored) ==
           EPCTX_OK;
}

/* Also of graphs that only make weights. */
static bool list_kernels(const epctx_npu_context *context, epctx_arena *arena, info_kernels *out) {
    epctx_npu_command command;
    epctx_list names;
    size_t i;
    memset(&names, 0, sizeof names);
    for (i = 0; i < context->total_count; i++) {
        uint32_t position = 0;
        while (epctx_npu_next_command(&context->graphs[i], &position, &command))
            if (!add_kernel(&names, arena, command.op)) return false;
    }
    out->names = (epctx_str *)names.items;
    out->count = names.count;
    return join_option(out, arena, &out->option);
}

bool info_read_kernels(epctx_span binary, epctx_arena *arena, info_kernels *out) {
    epctx_npu_context context;
    epctx_error ignored;
    return cli_load_binary(binary, arena, &context, NULL, &ignored) == EPCTX_OK &&
           list_kernels(&context, arena, out);
}

void info_json_kernels(json_writer *w, const info_kernels *kernels) {
    size_t i;
    if (kernels == NULL) {
        json_null(w, "kernels");
        json_null(w, "kernel_option");
        return;
    }
    json_array(w, "kernels", JSON_INLINE);
    for (i = 0; i < kernels->count; i++) json_str(w, NULL, kernels->names[i]);
    json_end(w);
    json_str(w, "kernel_option", kernels->option);
}

/* -- reading -- */

/* BINARY_BESIDE of an IR has its name; others have theirs. */
static epctx_status name_needs(shown *s, epctx_error *error) {
    const epctx_str model = epctx_path_file(epctx_str_of(s->file));
    char buffer[EPCTX_PATH_MAX];
    size_t i;
    for (i = 0; i < s->facts.need_count; i++) {
        binary_need *need = &s->facts.needs[i];
        const char *copy;
        if (!epctx_str_is(need->location, BINARY_BESIDE)) continue;
        EPCTX__TRY(epctx_profile_fill_name(BINARY_BESIDE, NULL, NULL, model, buffer, sizeof buffer,
                                           error));
        copy = epctx_arena_copy(&s->arena, epctx_str_of(buffer));
        if (copy == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
        need->location = epctx_str_of(copy);
    }
    return EPCTX_OK;
}

/* False: not there, or no context binary. The status is that of a context binary. */
static bool open_binary(shown *s, const char *file, const binary_asker *asker, epctx_status *status,
                        epctx_error *error) {
    const epctx_io *io = epctx_io_files();
    epctx_binary_id id;
    memset(s, 0, sizeof *s);
    s->file = file;
    if (io->map_fn(io->user, NULL, file, false, &s->mapping, error) != EPCTX_OK) return false;
    s->bytes.data = s->mapping.data;
    s->bytes.size = s->mapping.size;
    epctx_binary_identify(s->bytes, s->bytes, s->bytes.size, &id);
    if (id.sort != EPCTX_BINARY_SORT_CONTEXT) {
        io->unmap_fn(io->user, &s->mapping);
        return false;
    }
    epctx_arena_init(&s->arena, NULL);
    *status = binary_read(s->bytes, asker, &s->arena, &s->facts, error);
    if (*status == EPCTX_OK) *status = name_needs(s, error);
    s->npu = id.kind == EPCTX_BINARY_NPU;
    if (*status == EPCTX_OK && s->npu) *status = epctx_npu_peek(s->bytes, &s->blob, error);
    if (*status == EPCTX_OK && s->npu)
        *status = cli_load_binary(s->bytes, &s->arena, &s->context, &s->memory, error);
    if (*status == EPCTX_OK && s->npu && !list_kernels(&s->context, &s->arena, &s->kernels))
        *status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    return true;
}

static const epctx_error *damage_of(const shown *s, epctx_error *error) {
    epctx_fail(error, EPCTX_ERR_CONTEXT, "%s %s", s->facts.id.name, s->facts.damage);
    epctx_blame(error, s->file, NULL, NULL);
    return error;
}

static void close_binary(shown *s) {
    const epctx_io *io = epctx_io_files();
    epctx_arena_free(&s->arena);
    io->unmap_fn(io->user, &s->mapping);
}

/* Memory that a graph takes between its commands; false: not told. */
static bool scratch_of(const shown *s, epctx_str name, uint64_t *size) {
    size_t i;
    for (i = 0; s->npu && i < s->context.graph_count; i++) {
        if (!epctx_str_eq(s->context.graphs[i].info.name, name)) continue;
        *size = s->context.graphs[i].info.scratch_size;
        return true;
    }
    return false;
}

/* -- for people -- */

static void put_value(const char *word, const binary_value *value) {
    const char *comma = "";
    size_t i;
    printf("%-14s '", word);
    cli_put(stdout, value->name);
    fputs("' ", stdout);
    if (value->elem_type != 0)
        fputs(epctx_elem_name(value->elem_type), stdout);
    else
        cli_put(stdout, value->type.size > 0 ? value->type : epctx_str_of("of unknown type"));
    fputs(value->shaped ? "[" : ", no shape", stdout);
    for (i = 0; i < value->rank; i++, comma = ",")
        if (value->dims[i] < 0)
            printf("%s?", comma);
        else
            printf("%s%" PRId64, comma, value->dims[i]);
    fputs(value->shaped ? "]" : "", stdout);
    if (value->aliases.size > 0) fputs(", also ", stdout);
    cli_put(stdout, value->aliases);
    putchar('\n');
}

static void put_graph(const shown *s, const binary_graph *graph) {
    uint64_t scratch;
    size_t i;
    fputs("graph          '", stdout);
    cli_put(stdout, graph->name);
    putchar('\'');
    if (graph->values_known)
        printf(", inputs: %zu, outputs: %zu", graph->input_count, graph->output_count);
    else
        fputs(", inputs and outputs are not told", stdout);
    if (scratch_of(s, graph->name, &scratch))
        printf(", scratch memory: %" PRIu64 " bytes", scratch);
    putchar('\n');
    for (i = 0; i < graph->input_count; i++) put_value("input", &graph->inputs[i]);
    for (i = 0; i < graph->output_count; i++) put_value("output", &graph->outputs[i]);
}

bool info_has_target(const binary_facts *facts) {
    return facts->chip_count > 0 || facts->architecture.size > 0 || facts->vtcm_size > 0;
}

void info_put_target(const binary_facts *facts) {
    const char *comma = "";
    size_t i;
    for (i = 0; i < facts->chip_count; i++, comma = ", ") {
        fputs(comma, stdout);
        cli_put(stdout, facts->chips[i]);
    }
    if (facts->architecture.size > 0) fputs(comma, stdout), comma = ", ";
    cli_put(stdout, facts->architecture);
    if (facts->vtcm_size > 0) printf("%s%" PRIu64 " bytes of VTCM", comma, facts->vtcm_size);
}

static void put_line(const char *word, epctx_str text) {
    if (text.size == 0) return;
    printf("%-14s ", word);
    cli_put(stdout, text);
    putchar('\n');
}

/* "HTP, API 5.51.0, core API 2.40.0" */
static void put_backend(const binary_facts *facts) {
    if (facts->backend.size == 0) return;
    printf("%-14s ", "backend");
    cli_put(stdout, facts->backend);
    fputs(facts->backend_api.size > 0 ? ", API " : "", stdout);
    cli_put(stdout, facts->backend_api);
    fputs(facts->core_api.size > 0 ? ", core API " : "", stdout);
    cli_put(stdout, facts->core_api);
    putchar('\n');
}

static void put_head(const shown *s) {
    const binary_facts *facts = &s->facts;
    printf("%-14s %s, %zu byte%s", "binary", s->file, s->bytes.size, cli_plural(s->bytes.size));
    if (s->npu) printf(", %" PRIu64 " of them weights", s->blob.weight_size);
    putchar('\n');
    if (s->npu) {
        printf("made for       reference NPU '%s', SDK %s\n", s->blob.architecture,
               s->blob.sdk_version);
        printf("memory         %zu bytes to load it here; less on a 32-bit machine\n", s->memory);
        printf("kernels        '%s'\n", s->kernels.option.data);
        return;
    }
    put_line("kind", epctx_str_of(facts->id.name));
    put_line("version", facts->format_version);
    put_line("made by", facts->producer);
    put_line("SDK", facts->sdk);
    put_backend(facts);
    if (!info_has_target(facts)) return;
    printf("%-14s ", "made for");
    info_put_target(facts);
    putchar('\n');
}

static void print_text(const shown *s) {
    const binary_facts *facts = &s->facts;
    size_t i;
    put_head(s);
    if (!facts->graphs_known) printf("%-14s not told by %s\n", "graphs", facts->told_by);
    for (i = 0; facts->graphs_known && i < facts->graph_count; i++) put_graph(s, &facts->graphs[i]);
    for (i = 0; i < facts->need_count; i++) {
        const binary_need *need = &facts->needs[i];
        printf("%-14s ", "needs");
        cli_put(stdout, need->location);
        printf(", %" PRIu64 " byte%s from %" PRIu64 " on\n", need->size, cli_plural(need->size),
               need->offset);
    }
    if (facts->damage != NULL) printf("%-14s it %s\n", "warning:", facts->damage);
}

/* -- for programs -- */

void info_json_known(json_writer *w, const char *key, epctx_str text) {
    if (text.size > 0)
        json_str(w, key, text);
    else
        json_null(w, key);
}

static void json_values(json_writer *w, const char *key, const binary_value *values, size_t count) {
    size_t i, k;
    json_array(w, key, JSON_INLINE);
    for (i = 0; i < count; i++) {
        const binary_value *value = &values[i];
        json_object(w, NULL, JSON_INLINE);
        json_str(w, "name", value->name);
        json_str(w, "aliases", value->aliases);
        json_int(w, "elem_type", value->elem_type);
        json_str(w, "type", value->type);
        if (value->shaped) json_array(w, "dims", JSON_INLINE);
        for (k = 0; k < value->rank; k++)
            if (value->dims[k] >= 0)
                json_int(w, NULL, value->dims[k]);
            else
                json_null(w, NULL);
        if (value->shaped)
            json_end(w);
        else
            json_null(w, "dims");
        json_end(w);
    }
    json_end(w);
}

static void json_count(json_writer *w, const char *key, bool known, uint64_t count) {
    if (known)
        json_uint(w, key, count);
    else
        json_null(w, key);
}

static void json_graph(json_writer *w, const shown *s, const binary_graph *graph) {
    uint64_t scratch = 0;
    const bool told = scratch_of(s, graph->name, &scratch);
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "name", graph->name);
    json_count(w, "inputs", graph->values_known, graph->input_count);
    json_count(w, "outputs", graph->values_known, graph->output_count);
    json_count(w, "scratch", told, scratch);
    json_values(w, "input_values", graph->inputs, graph->input_count);
    json_values(w, "output_values", graph->outputs, graph->output_count);
    json_end(w);
}

void info_json_target(json_writer *w, const binary_facts *facts) {
    size_t i;
    info_json_known(w, "architecture", facts->architecture);
    json_array(w, "chips", JSON_INLINE);
    for (i = 0; i < facts->chip_count; i++) json_str(w, NULL, facts->chips[i]);
    json_end(w);
    json_count(w, "vtcm_size", facts->vtcm_size > 0, facts->vtcm_size);
}

static void json_head(json_writer *w, const shown *s) {
    const binary_facts *facts = &s->facts;
    json_text(w, "binary", s->file);
    json_text(w, "kind", facts->id.name);
    json_text(w, "profile", facts->id.profile);
    json_text(w, "told_by", facts->told_by);
    info_json_known(w, "container_version", facts->format_version);
    info_json_known(w, "producer", facts->producer);
    info_json_known(w, "sdk_version", facts->sdk);
    info_json_known(w, "backend", facts->backend);
    info_json_known(w, "backend_api", facts->backend_api);
    info_json_known(w, "core_api", facts->core_api);
    info_json_target(w, facts);
    json_uint(w, "bytes", s->bytes.size);
    json_count(w, "weights", s->npu, s->blob.weight_size);
    json_count(w, "memory", s->npu, s->memory);
    info_json_kernels(w, s->npu ? &s->kernels : NULL);
}

static void print_json(json_writer *w, const shown *s) {
    const binary_facts *facts = &s->facts;
    size_t i;
    json_head(w, s);
    if (facts->graphs_known) json_array(w, "graphs", JSON_HANGING);
    for (i = 0; facts->graphs_known && i < facts->graph_count; i++)
        json_graph(w, s, &facts->graphs[i]);
    if (facts->graphs_known)
        json_end(w);
    else
        json_null(w, "graphs");
    json_array(w, "needs", JSON_HANGING);
    for (i = 0; i < facts->need_count; i++) {
        json_object(w, NULL, JSON_INLINE);
        json_str(w, "location", facts->needs[i].location);
        json_uint(w, "offset", facts->needs[i].offset);
        json_uint(w, "size", facts->needs[i].size);
        json_end(w);
    }
    json_end(w);
    json_text(w, "damage", facts->damage);
}

static void begin_several(info_out *out) {
    if (out->w != NULL) return;
    out->w = cli_json_begin(stdout);
    json_array(out->w, "files", JSON_HANGING);
}

json_writer *info_begin(info_out *out) {
    if (!out->several) return cli_json_begin(stdout);
    begin_several(out);
    json_object(out->w, NULL, JSON_LINES);
    cli_json_head(out->w);
    return out->w;
}

void info_end(info_out *out) {
    if (out->several)
        json_end(out->w);
    else
        cli_json_end();
}

void info_close(info_out *out, bool ok) {
    if (out->json && out->several && ok) begin_several(out);
    if (out->w == NULL) return;
    json_end(out->w);
    cli_json_end();
}

int info_binary(const char *file, info_out *out) {
    shown s;
    epctx_error error;
    epctx_status status = EPCTX_OK;
    int code = CLI_OK;
    if (!open_binary(&s, file, &out->asker, &status, &error)) return -1;
    epctx_blame(&error, file, NULL, NULL);
    if (status != EPCTX_OK) {
        close_binary(&s);
        return cli_fail(&error);
    }
    if (out->json)
        print_json(info_begin(out), &s);
    else
        print_text(&s);
    if (s.facts.damage != NULL) code = cli_fail(damage_of(&s, &error));
    if (out->json) info_end(out);
    close_binary(&s);
    return code;
}

/* -- the files that it needs -- */

bool info_binary_files(const char *file, const binary_asker *asker, epctx_arena *arena,
                       epctx_dependency **out, size_t *count, epctx_status *status,
                       epctx_error *error) {
    shown s;
    *out = NULL;
    *count = 0;
    *status = EPCTX_OK;
    if (!open_binary(&s, file, asker, status, error)) return false;
    if (*status == EPCTX_OK && s.facts.damage != NULL) *status = damage_of(&s, error)->status;
    if (*status == EPCTX_OK) *status = needs_of_binary(file, &s.facts, arena, out, count, error);
    epctx_blame(error, file, NULL, NULL);
    close_binary(&s);
    return true;
}
