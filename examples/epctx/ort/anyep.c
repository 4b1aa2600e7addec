/* Options of --ort. */
#define _GNU_SOURCE
#include "anyep.h"
#include "core/session_keys.h"
#include "ep_library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void anyep_take(anyep_settings *set, const cli_args *args) {
    memset(set, 0, sizeof *set);
    set->args = args;
    set->ort = args->ort;
    set->ep = args->ep;
    set->verbose = args->verbose;
}

bool anyep_asked(const anyep_settings *set) {
    const cli_args *args = set->args;
    return args->ort != NULL || args->ep != NULL || args->ep_opt.count > 0 ||
           args->option.count > 0 || args->device != 0 || args->timeout.given;
}

static bool refuse(const char *text, const char *what) {
    cli_misuse("%s%s", text, what);
    return false;
}

/* LIBRARY[:NAME], or the name of an EP that ORT has itself. */
static bool read_ep(anyep_settings *set) {
    ep_library ep;
    if (!ep_library_read(set->ep, set->arena, &ep)) return refuse("out of memory", "");
    if (ep.path != NULL && ep.name != NULL && ep.name[0] == '\0')
        return refuse("--ep: a name is missing behind the colon: ", set->ep);
    set->library = ep.path;
    set->name = ep.path != NULL ? ep.name : ep.text;
    set->registration = ep.registration;
    if (ep.path != NULL) return true;
    if (strchr(ep.text, '/') != NULL || strstr(ep.text, ".so") != NULL || ep.name != NULL) {
        cli_misuse("--ep %s: %s", ep.text, strerror(ENOENT));
        return false;
    }
    return true;
}

bool anyep_add(anyep_settings *set, const char ***list, const char *key, const char *value) {
    const char **more;
    size_t count = 0;
    for (; *list != NULL && (*list)[count] != NULL; count += 2) {
        if (strcmp((*list)[count], key) != 0) continue;
        return strcmp((*list)[count + 1], value) == 0 ||
               refuse("a command-line option contradicts this one: ", key);
    }
    more = (const char **)epctx_arena_array(set->arena, count + 3, sizeof *more);
    if (more == NULL) return refuse("out of memory", "");
    if (count > 0) memcpy(more, *list, count * sizeof *more);
    more[count] = key;
    more[count + 1] = value;
    more[count + 2] = NULL;
    *list = more;
    return true;
}

bool anyep_is_option(const char *option, const char *key) {
    cli_guess guess;
    switch (session_key_judge(epctx_str_of(key), &guess)) {
    case SESSION_KEY_UNKNOWN:
        if (strncmp(key, "ep.context_", 11) == 0) break;
        fprintf(stderr,
                "epctx: %s: ONNX Runtime up to 1.31 has no session option '%s' and ignores it%s\n",
                option, key, cli_guess_hint(&guess));
        return true;
    case SESSION_KEY_MISSPELLED: break;
    default: return true;
    }
    cli_misuse("%s: ONNX Runtime has no session option '%s'%s", option, key,
               cli_guess_hint(&guess));
    return false;
}

/* K=V of --ep-opt and --option. */
static bool read_pairs(anyep_settings *set, const char *option, const cli_list *given,
                       const char ***list) {
    size_t i;
    for (i = 0; i < given->count; i++) {
        const char *text = given->items[i];
        char *copy = epctx_arena_copy(set->arena, epctx_str_of(text));
        char *equals = copy != NULL ? strchr(copy, '=') : NULL;
        if (equals == NULL || equals == copy) {
            cli_misuse("%s: '%s' is not KEY=VALUE", option, text);
            return false;
        }
        *equals = '\0';
        if (given == &set->args->ep_opt && strncmp(copy, "ep.context_", 11) == 0)
            return refuse("--ep-opt: this is an option of the session, EPs do not read it here: "
                          "use --option ",
                          text);
        if (given == &set->args->option && !anyep_is_option(option, copy)) return false;
        if (!anyep_add(set, list, copy, equals + 1)) return false;
    }
    return true;
}

/* "INPUT[AXIS]", which is cut in two; false: it has another form. */
static bool read_place(anyep_settings *set, char *text, int64_t value) {
    char *bracket = strrchr(text, '['), *end = NULL;
    const size_t size = strlen(text);
    unsigned long axis;
    if (bracket == NULL || bracket == text || text[size - 1] != ']' || bracket[1] < '0' ||
        bracket[1] > '9' || set->place_count == ANYEP_MOST_DIMS)
        return false;
    axis = strtoul(bracket + 1, &end, 10);
    if (end != text + size - 1 || axis > 63) return false;
    *bracket = '\0';
    set->places[set->place_count].input = text;
    set->places[set->place_count].axis = (uint32_t)axis;
    set->places[set->place_count++].value = value;
    return true;
}

static bool read_dims(anyep_settings *set) {
    const cli_list *dims = &set->args->dim;
    size_t i;
    for (i = 0; i < dims->count; i++) {
        char *copy = epctx_arena_copy(set->arena, epctx_str_of(dims->items[i]));
        char *rest = NULL, *part = copy != NULL ? strtok_r(copy, ",", &rest) : NULL;
        for (; part != NULL; part = strtok_r(NULL, ",", &rest)) {
            char *equals = strrchr(part, '=');
            uint64_t value;
            if (equals == NULL || equals == part)
                return refuse("--dim: this is not NAME=VALUE: ", part);
            if (set->dim_count == ANYEP_MOST_DIMS || equals - part > 63)
                return refuse("--dim: too many dimensions, or too long a name: ", part);
            if (!cli_number_of("--dim", equals + 1, 1, INT32_MAX, &value)) return false;
            *equals = '\0';
            if (read_place(set, part, (int64_t)value)) continue;
            set->dim_names[set->dim_count] = part;
            set->dim_values[set->dim_count++] = (int64_t)value;
        }
    }
    return true;
}

static bool has_dim(const char *file, const char *name) {
    epctx_model model;
    epctx_error error;
    epctx_value_view value;
    epctx_cursor it, dims;
    epctx_dim dim;
    bool found = cli_open(&model, file, &error) != EPCTX_OK;
    if (!found) {
        it = epctx_graph_inputs(epctx_model_graph(&model));
        while (!found && epctx_next_value(&it, &value)) {
            dims = epctx_value_dims(&value);
            while (!found && epctx_next_dim(&dims, &dim))
                found = !dim.known && epctx_str_is(dim.param, name);
        }
    }
    epctx_model_close(&model);
    return found;
}

bool anyep_check_dims(const anyep_settings *set, const char *const *models, size_t count) {
    size_t i, k;
    for (i = 0; i < set->dim_count; i++) {
        for (k = 0; k < count && !has_dim(models[k], set->dim_names[i]); k++) continue;
        if (k < count) continue;
        cli_misuse("--dim: no input%s has a dimension '%s'", count > 1 ? " of the models" : "",
                   set->dim_names[i]);
        return false;
    }
    return true;
}

bool anyep_read(anyep_settings *set, epctx_arena *arena, bool needs_ep, unsigned limit) {
    const cli_args *args = set->args;
    set->arena = arena;
#if defined(EPCTX_CLI_NO_ORT)
    return refuse("this build of epctx is a static program, which cannot open ONNX Runtime: "
                  "build it with the libraries of its system (make build/epctx)",
                  "");
#endif
    if (set->ep == NULL && needs_ep)
        return refuse("which EP? Give its plugin library with --ep LIBRARY[:NAME]", "");
    if (set->ep == NULL && (args->ep_opt.count > 0 || args->device != 0))
        return refuse("--ep-opt and --device are for an EP: give it with --ep LIBRARY[:NAME]", "");
    set->device_type = (int)args->device - 1; /* OrtHardwareDeviceType, as the table's words */
    set->time_limit = (double)cli_number_or(args->timeout, limit);
    return (set->ep == NULL || read_ep(set)) &&
           read_pairs(set, "--ep-opt", &args->ep_opt, &set->ep_options) &&
           read_pairs(set, "--option", &args->option, &set->session) && read_dims(set);
}
