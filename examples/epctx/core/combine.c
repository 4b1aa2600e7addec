/* What merge, split, wrap and repair share. */
#include "combine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool next_part(const char **rest, epctx_arena *arena, epctx_str *part) {
    const char *p = *rest;
    char *out;
    size_t size = 0;
    int depth = 0;
    if (p == NULL || *p == '\0') return false;
    out = (char *)epctx_arena_alloc(arena, strlen(p) + 1);
    if (out == NULL) return false;
    for (; *p != '\0' && (*p != ',' || depth > 0); p++) {
        if (*p == '\\' && (p[1] == ',' || p[1] == '\\')) p++;
        depth += *p == '[' ? 1 : *p == ']' && depth > 0 ? -1 : 0;
        out[size++] = *p;
    }
    *rest = *p == ',' ? p + 1 : p;
    part->data = out;
    part->size = size;
    return true;
}

/* NULL: none has this name. */
static const dim_spec *dim_of(const epctx_list *dims, const epctx_map *known, epctx_str name) {
    const uint32_t at = epctx_map_get(known, name);
    return at != EPCTX_MAP_NONE ? (const dim_spec *)dims->items + at : NULL;
}

static bool read_dim(epctx_str part, epctx_arena *arena, epctx_list *dims, epctx_map *known) {
    char *text = epctx_arena_copy(arena, part);
    char *equals = text != NULL ? strrchr(text, '=') : NULL;
    const dim_spec *before;
    dim_spec *dim;
    uint64_t value;
    if (text == NULL) return cli_fail_text("out of memory") == CLI_OK;
    if (equals == NULL || equals == text) {
        cli_misuse("--dim: '%s' is not NAME=VALUE or INPUT[AXIS]=VALUE", text);
        return false;
    }
    if (!cli_number_of("--dim", equals + 1, 1, INT32_MAX, &value)) return false;
    *equals = '\0';
    before = dim_of(dims, known, epctx_str_of(text));
    if (before != NULL && before->value != (int64_t)value) {
        cli_misuse("--dim: '%s' is %" PRId64 " and %" PRIu64, text, before->value, value);
        return false;
    }
    if (before != NULL) return true;
    dim = epctx_map_put(known, epctx_str_of(text), (uint32_t)dims->count) == EPCTX_OK
              ? (dim_spec *)epctx_list_add(dims, arena, sizeof *dim)
              : NULL;
    if (dim == NULL) return cli_fail_text("out of memory") == CLI_OK;
    dim->name = epctx_str_of(text);
    dim->value = (int64_t)value;
    return true;
}

bool read_dim_lists(const cli_list *lists, epctx_arena *arena, dim_spec **dims, size_t *count) {
    epctx_list list;
    epctx_map known;
    epctx_str part;
    size_t i;
    memset(&list, 0, sizeof list);
    epctx_map_init(&known, arena);
    for (i = 0; i < lists->count; i++) {
        const char *rest = lists->items[i];
        while (next_part(&rest, arena, &part))
            if (!read_dim(part, arena, &list, &known)) return false;
    }
    *dims = (dim_spec *)list.items;
    *count = list.count;
    return true;
}

int32_t elem_type_of(epctx_str name) {
    int32_t type;
    for (type = 1; type < 32; type++)
        if (epctx_str_is(name, epctx_elem_name(type)) && !epctx_str_is(name, "unknown"))
            return type;
    return epctx_str_is(name, "float") ? EPCTX_ONNX_FLOAT : 0;
}

static bool bad_value(const char *option, epctx_str text, const char *what) {
    cli_misuse("%s: '%.*s': %s", option, (int)text.size, text.data, what);
    return false;
}

/* "1,3,?" */
static bool read_dims(const char *text, size_t size, epctx_arena *arena, epctx_value *value) {
    size_t most = size / 2 + 1;
    int64_t *dims = (int64_t *)epctx_arena_array(arena, most, sizeof *dims);
    const char *end = text + size;
    value->dims = dims;
    value->rank = 0;
    while (dims != NULL && text < end) {
        if (*text == '?') {
            dims[value->rank++] = -1;
            text++;
        } else {
            char *after = NULL;
            errno = 0;
            if (*text < '0' || *text > '9') return false;
            dims[value->rank++] = strtoll(text, &after, 10);
            if (errno != 0) return false;
            text = after;
        }
        if (text < end && *text++ != ',') return false;
        if (text == end && text[-1] == ',') return false;
    }
    return dims != NULL;
}

/* "/SCALE[/ZERO]" behind the type. */
static bool read_quantization(const char *text, value_spec *spec) {
    char *after = NULL;
    errno = 0;
    spec->quantized = true;
    spec->scale = strtof(text, &after);
    if (after == text || errno != 0) return false;
    if (*after == '\0') return true;
    if (*after != '/') return false;
    text = after + 1;
    spec->zero_point = strtoll(text, &after, 10);
    return after != text && *after == '\0' && errno == 0;
}

/* Whether what follows the last colon must be meant as a type: it has dimensions, or begins like
 * one. */
static bool like_type(epctx_str text) {
    static const char *const types[] = {"float", "int", "uint", "bfloat", "double", "bool"};
    size_t at = text.size, i;
    while (at > 0 && text.data[at - 1] != ':') at--;
    for (i = 0; at > 0 && i < sizeof types / sizeof types[0]; i++) {
        size_t size = strlen(types[i]);
        if (text.size - at >= size && memcmp(text.data + at, types[i], size) == 0) return true;
    }
    return at > 0 && at + 1 < text.size && text.data[text.size - 1] == ']' &&
           memchr(text.data + at, '[', text.size - at) != NULL;
}

/* The type begins at the last colon that a type follows: names may have colons themselves. */
static bool read_value(const char *option, epctx_str text, bool typed, epctx_arena *arena,
                       value_spec *spec) {
    size_t at;
    memset(spec, 0, sizeof *spec);
    spec->value.rank = -1;
    spec->value.name = text;
    for (at = text.size; at-- > 0;) {
        size_t end = at + 1;
        epctx_str type;
        int32_t elem;
        if (text.data[at] != ':') continue;
        while (end < text.size && text.data[end] != '[' && text.data[end] != '/') end++;
        type.data = text.data + at + 1;
        type.size = end - at - 1;
        elem = elem_type_of(type);
        if (elem == 0) continue;
        spec->value.name.size = at;
        spec->value.elem_type = elem;
        if (end < text.size && text.data[end] == '[') {
            size_t close = end;
            while (close < text.size && text.data[close] != ']') close++;
            if (close == text.size ||
                !read_dims(text.data + end + 1, close - end - 1, arena, &spec->value))
                return bad_value(option, text,
                                 "dimensions must be numbers, or ? if not fixed (names are not "
                                 "kept): [1,3,?]");
            end = close + 1;
        }
        if (end < text.size &&
            (text.data[end] != '/' || !read_quantization(text.data + end + 1, spec)))
            return bad_value(option, text, "write /SCALE or /SCALE/ZERO_POINT after the type");
        break;
    }
    if (spec->value.elem_type == 0 && like_type(text))
        return bad_value(option, text,
                         "unknown type; use float32, float16, float64, int8 to int64, uint8 to "
                         "uint64 or bool, as in x:float32[1,3]");
    if (spec->value.name.size == 0) return bad_value(option, text, "missing name");
    if (typed && spec->value.elem_type == 0)
        return bad_value(option, text, "missing type: NAME:TYPE[DIMS], e.g. x:float32[1,3]");
    return true;
}

bool read_values(const char *option, const char *text, bool typed, epctx_arena *arena,
                 value_spec **values, size_t *count) {
    const char *rest = text;
    epctx_str part;
    *count = 0;
    *values = NULL;
    if (text == NULL) return true;
    *values = (value_spec *)epctx_arena_array(arena, strlen(text) + 1, sizeof **values);
    while (*values != NULL && next_part(&rest, arena, &part))
        if (!read_value(option, part, typed, arena, &(*values)[(*count)++])) return false;
    return *values != NULL;
}

void tell_steps(output *out, const epctx_combined *combined, size_t parts) {
    size_t i;
    for (i = 0; i < combined->step_count; i++) {
        const epctx_step *step = &combined->steps[i];
        output_item what = output_item_of(step->action, step->kind, step->name);
        if (step->now.size > 0) {
            what.before = step->name;
            what.after = step->now;
        }
        if (parts > 1) {
            what.part = step->part + 1;
            output_change(out, &what, "model %zu: %s", step->part + 1, step->text);
        } else {
            output_change(out, &what, "%s", step->text);
        }
    }
}

static bool is_missing(const char *folder) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    return io->stat_fn(io->user, folder, &info, NULL) == EPCTX_OK && info.kind == EPCTX_FILE_NONE;
}

/* Makes the folders of a file that the model names with one. `made` gets them, one per line of
 * EPCTX_PATH_MAX bytes, those above others first. */
static int make_folders(const epctx_output_file *file, char *made, size_t *count) {
    size_t stem = strlen(file->path) - strlen(file->name), i;
    epctx_error error;
    for (i = 0; file->name[i] != '\0' && stem + i < EPCTX_PATH_MAX; i++) {
        char *folder = made + *count * EPCTX_PATH_MAX;
        if (file->name[i] != '/') continue;
        memcpy(folder, file->path, stem + i);
        folder[stem + i] = '\0';
        if (!is_missing(folder)) continue;
        if (cli_make_folder(folder, &error) != EPCTX_OK) return cli_fail(&error);
        ++*count;
    }
    return CLI_OK;
}

/* Files may lie in folders below the model's: they are made, and stay when all is written. */
static int write_into_folders(output *out, epctx_model *model, const epctx_combined *combined) {
    size_t count = 0, most = 1, i, k;
    int code = CLI_OK;
    char *made;
    for (i = 0; i < combined->file_count; i++)
        for (k = 0; combined->files[i].name[k] != '\0'; k++)
            most += combined->files[i].name[k] == '/';
    made = (char *)epctx_arena_array(&out->arena, most, EPCTX_PATH_MAX);
    if (made == NULL) return cli_fail_text("out of memory");
    for (i = 0; i < combined->file_count && code == CLI_OK; i++)
        code = make_folders(&combined->files[i], made, &count);
    if (code == CLI_OK) code = output_group(out, model, combined->files, combined->file_count);
    while (count > 0 && (code != CLI_OK || out->dry_run)) rmdir(made + --count * EPCTX_PATH_MAX);
    return code;
}

int write_combined(output *out, epctx_model *model, epctx_combined *combined) {
    if (out->to_stdout && combined->file_count > 0)
        return cli_fail_text("the result consists of several files: use -o FILE");
    if (out->path == NULL || out->to_stdout || out->no_memory) return output_model(out, model);
    return write_into_folders(out, model, combined);
}
