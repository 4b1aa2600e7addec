/* compile --dim, set dim: dimensions that the model leaves open get numbers. */
#define _POSIX_C_SOURCE 200809L

#include "core/combine.h"
#include "compile.h"
#include "ops/dims.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_SHOWN = 6 };

/* -- the option -- */

void compile_read_place(compile_dim *dim) {
    size_t at = dim->name.size, digits = 0;
    uint64_t axis = 0, unit = 1;
    if (at == 0 || dim->name.data[--at] != ']') return;
    while (at > 0 && digits < 6 && dim->name.data[at - 1] >= '0' && dim->name.data[at - 1] <= '9') {
        axis += unit * (uint64_t)(dim->name.data[--at] - '0');
        unit *= 10;
        digits++;
    }
    if (digits == 0 || at < 2 || dim->name.data[at - 1] != '[') return;
    dim->input.data = dim->name.data;
    dim->input.size = at - 1;
    dim->axis = (uint32_t)axis;
}

/* All lists of --dim as one, with commas between. */
static const char *join(const cli_list *dims, epctx_arena *arena) {
    size_t size = 1, i;
    char *text, *at;
    for (i = 0; i < dims->count; i++) size += strlen(dims->items[i]) + 1;
    text = at = (char *)epctx_arena_alloc(arena, size);
    if (text == NULL) return NULL;
    *at = '\0';
    for (i = 0; i < dims->count; i++) at += sprintf(at, "%s%s", i > 0 ? "," : "", dims->items[i]);
    return text;
}

bool compile_read_dims(compile_settings *set, epctx_arena *arena) {
    const char *all = join(&set->args->dim, arena);
    dim_spec *dims;
    size_t i;
    if (all == NULL || *all == '\0') return all != NULL;
    if (!read_dim_lists(&set->args->dim, arena, &dims, &set->dim_count)) return false;
    set->gen.build_options = all; /* another binary */
    set->dims = (compile_dim *)epctx_arena_array(arena, set->dim_count + 1, sizeof *set->dims);
    for (i = 0; set->dims != NULL && i < set->dim_count; i++) {
        set->dims[i].name = dims[i].name;
        set->dims[i].value = dims[i].value;
        compile_read_place(&set->dims[i]);
    }
    return set->dims != NULL;
}

epctx_status compile_fix_dim(epctx_model *model, const compile_dim *dim, size_t *count,
                             epctx_error *error) {
    epctx_status status = epctx_fix_dim(model, dim->name, dim->value, count, error);
    if (status == EPCTX_ERR_NOT_FOUND && dim->input.size > 0)
        status = epctx_fix_input_dim(model, dim->input, dim->axis, dim->value, count, error);
    return status;
}

epctx_status compile_fix_dims(epctx_model *model, const compile_settings *set, bool alone,
                              epctx_error *error) {
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < set->dim_count && status == EPCTX_OK; i++) {
        compile_dim *dim = &set->dims[i];
        status = compile_fix_dim(model, dim, NULL, error);
        dim->used = dim->used || status == EPCTX_OK;
        if (status != EPCTX_ERR_NOT_FOUND || alone) continue;
        status = EPCTX_OK; /* another one's */
        epctx_error_clear(error);
    }
    return status;
}

epctx_status compile_unused_dim(const compile_settings *set, epctx_error *error) {
    size_t i;
    for (i = 0; i < set->dim_count; i++)
        if (!set->dims[i].used)
            return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "--dim: no model has a dimension '%S'",
                              &set->dims[i].name);
    return EPCTX_OK;
}

/* -- what is open -- */

static bool is_open(const epctx_value_view *value) {
    epctx_cursor dims = epctx_view_value_dims(value);
    epctx_dim dim;
    while (epctx_next_dim(&dims, &dim))
        if (!dim.known || dim.value < 0) return true;
    return !value->has_shape;
}

static void put_shape(FILE *out, const epctx_value_view *value) {
    epctx_cursor dims = epctx_view_value_dims(value);
    const char *comma = "";
    epctx_dim dim;
    fputc('\'', out);
    cli_put(out, value->name);
    fputs(value->has_shape ? "' [" : "' without any shape", out);
    for (; epctx_next_dim(&dims, &dim); comma = ",") {
        fputs(comma, out);
        if (dim.known)
            fprintf(out, "%" PRId64, dim.value);
        else
            cli_put(out, dim.param.size > 0 ? dim.param : epctx_str_of("?"));
    }
    if (value->has_shape) fputc(']', out);
}

/* "NAME=N" for each dimension that is not in the list yet. */
static size_t put_options(FILE *out, const epctx_value_view *value, epctx_str *known,
                          size_t count) {
    epctx_cursor dims = epctx_view_value_dims(value);
    uint32_t axis = 0;
    epctx_dim dim;
    size_t i;
    for (; epctx_next_dim(&dims, &dim); axis++) {
        if ((dim.known && dim.value >= 0) || count == MOST_SHOWN) continue;
        for (i = 0; i < count && (dim.param.size == 0 || !epctx_str_eq(known[i], dim.param)); i++)
            continue;
        if (i < count) continue;
        fputs(count > 0 ? "," : "set them with --dim '", out);
        cli_put(out, dim.param.size > 0 ? dim.param : value->name);
        if (dim.param.size == 0) fprintf(out, "[%" PRIu32 "]", axis);
        fputs("=N", out);
        known[count++] = dim.param;
    }
    return count;
}

static void put_open_inputs(FILE *out, const epctx_model *model, const epctx_map *initializers) {
    epctx_cursor it = epctx_view_graph_inputs(epctx_model_graph(model));
    epctx_value_view values[MOST_SHOWN], value;
    epctx_str known[MOST_SHOWN];
    size_t count = 0, options = 0, i;
    while (epctx_next_value(&it, &value)) {
        if (!value.is_tensor || !is_open(&value) ||
            epctx_map_get(initializers, value.name) != EPCTX_MAP_NONE)
            continue;
        if (count < MOST_SHOWN) values[count] = value;
        count++;
    }
    if (count == 0) return;
    fprintf(out, "input%s without a fixed shape: ", cli_plural(count));
    for (i = 0; i < count && i < MOST_SHOWN; i++) {
        if (i > 0) fputs(", ", out);
        put_shape(out, &values[i]);
    }
    if (count > MOST_SHOWN) fprintf(out, " and %zu more", count - MOST_SHOWN);
    fputs("; NPUs need fixed shapes: ", out);
    for (i = 0; i < count && i < MOST_SHOWN; i++)
        options = put_options(out, &values[i], known, options);
    fputs(options > 0 ? "'" : "set them with the tool that made the model", out);
}

epctx_status compile_open_inputs(const epctx_model *model, char **text, epctx_error *error) {
    size_t size = 0;
    FILE *out = open_memstream(text, &size);
    epctx_arena arena;
    epctx_map initializers;
    bool good = out != NULL;
    epctx_arena_init(&arena, NULL);
    epctx_map_init(&initializers, &arena);
    good = good && cli_initializer_names(model, &initializers);
    if (good) put_open_inputs(out, model, &initializers);
    good = out != NULL && fclose(out) == 0 && good;
    epctx_arena_free(&arena);
    return good ? EPCTX_OK : epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
}
