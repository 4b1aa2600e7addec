/* Options of --ort. */
#define _GNU_SOURCE
#include "anyep.h"
#include "core/combine.h"
#include "core/session_keys.h"
#include "ep_library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void anyep_take(anyep_settings *set, const cli_args *args) {
    size_t i;
    memset(set, 0, sizeof *set);
    set->args = args;
    set->ort = args->ort;
    if (args->ep != NULL) set->eps[set->ep_count++].given = args->ep;
    for (i = 0; i < args->eps.count && set->ep_count < ANYEP_MOST_EPS; i++)
        set->eps[set->ep_count++].given = args->eps.items[i];
    set->verbose = args->verbose;
}

bool anyep_asked(const anyep_settings *set) {
    const cli_args *args = set->args;
    return args->ort != NULL || set->ep_count > 0 || args->ep_opt.count > 0 ||
           args->option.count > 0 || args->device != 0 || args->devices.count > 0 ||
           args->timeout.given;
}

static bool refuse(const char *text, const char *what) {
    cli_misuse("%s%s", text, what);
    return false;
}

/* LIBRARY[:NAME], or the name of an EP that ORT has itself. */
static bool read_ep(anyep_ep *to, epctx_arena *arena) {
    ep_library ep;
    to->device_type = -1;
    if (!ep_library_read(to->given, arena, &ep)) return refuse("out of memory", "");
    if (ep.path != NULL && ep.name != NULL && ep.name[0] == '\0')
        return refuse("--ep: a name is missing behind the colon: ", to->given);
    to->library = ep.path;
    to->name = ep.path != NULL ? ep.name : ep.text;
    to->registration = ep.registration;
    if (ep.path != NULL) return true;
    if (strchr(ep.text, '/') != NULL || strstr(ep.text, ".so") != NULL || ep.name != NULL) {
        cli_misuse("--ep %s: %s", ep.text, strerror(ENOENT));
        return false;
    }
    return true;
}

static bool read_eps(anyep_settings *set) {
    size_t i, k;
    if (set->args->eps.count > ANYEP_MOST_EPS) {
        cli_misuse("too many --ep: %d at most", (int)ANYEP_MOST_EPS);
        return false;
    }
    for (i = 0; i < set->ep_count; i++) {
        for (k = 0; k < i; k++)
            if (strcmp(set->eps[i].given, set->eps[k].given) == 0)
                return refuse("the same --ep twice: ", set->eps[i].given);
        if (!read_ep(&set->eps[i], set->arena)) return false;
    }
    return true;
}

/* The EP to which an option at this place belongs: the one in front of it; the only one may follow.
 * NULL: what is wrong was printed. */
static anyep_ep *owner_of(anyep_settings *set, const char *option, const cli_list *list, size_t i) {
    const cli_list *eps = &set->args->eps;
    size_t count = 0;
    if (set->ep_count == 1) return &set->eps[0];
    while (count < set->ep_count && eps->at[count] < list->at[i]) count++;
    if (count > 0) return &set->eps[count - 1];
    cli_misuse("%s %s: of which EP? With several, give it behind its --ep", option, list->items[i]);
    return NULL;
}

/* --device of several EPs. */
static bool read_devices(anyep_settings *set) {
    static const char *const types[] = {"cpu", "gpu", "npu"}; /* as ORT numbers them */
    const cli_list *list = &set->args->devices;
    size_t i;
    int type;
    if (set->args->device != 0) set->eps[0].device_type = (int)set->args->device - 1;
    for (i = 0; i < list->count; i++) {
        anyep_ep *ep = owner_of(set, "--device", list, i);
        if (ep == NULL) return false;
        if (ep->device_type >= 0) return refuse("--device given twice for --ep ", ep->given);
        for (type = 0; strcmp(types[type], list->items[i]) != 0; type++) continue;
        ep->device_type = type;
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

static size_t list_length(const char **list) {
    size_t n = 0;
    while (list != NULL && list[n] != NULL) n++;
    return n;
}

const char **anyep_ep_options(const anyep_settings *set) {
    size_t total = 1, n = 0, i;
    const char **all;
    for (i = 0; i < set->ep_count; i++) total += list_length(set->eps[i].options);
    all = (const char **)epctx_arena_array(set->arena, total, sizeof *all);
    for (i = 0; all != NULL && i < set->ep_count; i++) {
        const size_t count = list_length(set->eps[i].options);
        if (count > 0) memcpy(all + n, set->eps[i].options, count * sizeof *all);
        n += count;
    }
    return all;
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

void anyep_judge_ep_option(const anyep_settings *set, const anyep_ep *ep, const char *option,
                           const char *key) {
    const char *name = ep->registration != NULL ? ep->registration : ep->name;
    const char *list =
        name != NULL ? facts_of_ep(epctx_profile_of(epctx_str_of(name))->name, "options") : NULL;
    epctx_str rest = epctx_str_of(list), word;
    cli_guess guess = cli_guess_of(epctx_str_of(key));
    while (list != NULL && fact_next_word(&rest, &word)) {
        const char *known = epctx_arena_copy(set->arena, word);
        if (known != NULL && strcmp(known, key) == 0) return;
        if (known != NULL) cli_guess_word(&guess, known);
    }
    if (list != NULL)
        cli_say("epctx: %s: %s is not known to have the option '%s', and ignores it%s\n", option,
                name, key, cli_guess_hint(&guess));
}

/* K=V of --option, and of --ep-opt: for the EP that it belongs to. */
static bool read_pairs(anyep_settings *set, const char *option, const cli_list *given) {
    const bool of_ep = given == &set->args->ep_opt;
    size_t i;
    for (i = 0; i < given->count; i++) {
        const char *text = given->items[i];
        char *copy = epctx_arena_copy(set->arena, epctx_str_of(text));
        char *equals = copy != NULL ? strchr(copy, '=') : NULL;
        anyep_ep *ep = NULL;
        if (equals == NULL || equals == copy) {
            cli_misuse("%s: '%s' is not KEY=VALUE", option, text);
            return false;
        }
        *equals = '\0';
        if (of_ep && strncmp(copy, "ep.context_", 11) == 0)
            return refuse("--ep-opt: this is an option of the session, EPs do not read it here: "
                          "use --option ",
                          text);
        if (!of_ep && !anyep_is_option(option, copy)) return false;
        if (of_ep && (ep = owner_of(set, option, given, i)) == NULL) return false;
        if (of_ep) anyep_judge_ep_option(set, ep, option, copy);
        if (!anyep_add(set, of_ep ? &ep->options : &set->session, copy, equals + 1)) return false;
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

static bool read_dimensions(anyep_settings *set) {
    dim_spec *dims;
    size_t count, i;
    if (!read_dim_lists(&set->args->dim, set->arena, &dims, &count)) return false;
    for (i = 0; i < count; i++) {
        char *name = epctx_arena_copy(set->arena, dims[i].name);
        if (name == NULL) return refuse("out of memory", "");
        if (set->dim_count == ANYEP_MOST_DIMS || dims[i].name.size > 63)
            return refuse("--dim: too many dimensions, or too long a name: ", name);
        if (read_place(set, name, dims[i].value)) continue;
        set->dim_names[set->dim_count] = name;
        set->dim_values[set->dim_count++] = dims[i].value;
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
        it = epctx_view_graph_inputs(epctx_model_graph(&model));
        while (!found && epctx_next_value(&it, &value)) {
            dims = epctx_view_value_dims(&value);
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
    if (set->ep_count == 0 && needs_ep)
        return refuse("which EP? Give its plugin library with --ep LIBRARY[:NAME]", "");
    if (set->ep_count == 0 &&
        (args->ep_opt.count > 0 || args->device != 0 || args->devices.count > 0))
        return refuse("--ep-opt and --device are for an EP: give it with --ep LIBRARY[:NAME]", "");
    set->time_limit = (double)cli_number_or(args->timeout, limit);
    return read_eps(set) && read_devices(set) && read_pairs(set, "--ep-opt", &args->ep_opt) &&
           read_pairs(set, "--option", &args->option) && read_dimensions(set);
}
