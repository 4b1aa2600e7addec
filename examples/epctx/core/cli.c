/* Command line of the epctx tool, and what its commands ask of models. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "facts/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint32_t path_flags;

uint32_t cli_path_flags(void) {
    return path_flags;
}

void cli_set_path_flags(uint32_t flags) {
    path_flags = flags;
}

static const epctx_io *reading; /* NULL: files change */

void cli_only_reads(void) {
    reading = cli_keep_listings();
}

epctx_status cli_open(epctx_model *model, const char *file, epctx_error *error) {
    epctx_open_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.io = reading != NULL ? reading : epctx_io_files();
    opts.path_flags = path_flags;
    return epctx_model_open_file(model, file, &opts, error);
}

epctx_status cli_make_folder(const char *folder, epctx_error *error) {
    char path[EPCTX_PATH_MAX];
    size_t size = strlen(folder);
    size_t i;
    if (size == 0 || size >= sizeof path)
        return epctx_fail(error, EPCTX_ERR_ARG, "'%s' cannot be a folder", folder);
    memcpy(path, folder, size + 1);
    for (i = 1; i <= size; i++) {
        char kept = path[i];
        if (kept != '/' && kept != '\0') continue;
        path[i] = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return epctx_fail(error, EPCTX_ERR_IO, "%s: cannot create this folder: %s", path,
                              strerror(errno));
        path[i] = kept;
    }
    return EPCTX_OK;
}

static int output_failed = CLI_FAILED;
static bool wrote_files;

void cli_wrote_files(void) {
    wrote_files = true;
}

bool cli_has_written(void) {
    return wrote_files;
}

void cli_own_codes(int failed) {
    output_failed = failed;
}

int cli_output_failed(void) {
    return output_failed;
}

bool cli_is_ep(epctx_str ep, const char *name) {
    const epctx_profile *wanted = name != NULL ? cli_profile_of(name) : NULL;
    if (name == NULL || epctx_str_is(ep, name)) return true;
    if (wanted == NULL || (wanted->traits & EPCTX_TRAIT_ANY_EP) != 0)
        return ep.size == strlen(name) && strncasecmp(ep.data, name, ep.size) == 0;
    return epctx_profile_of(ep) == wanted;
}

bool cli_profile(const char *name, const epctx_profile **profile) {
    return name == NULL || cli_profile_for("--profile", name, profile);
}

const epctx_profile *cli_profile_of(const char *name) {
    size_t count, i, k;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++)
        if (strcasecmp(all[i].name, name) == 0) return &all[i];
    for (i = 0; i < count; i++)
        for (k = 0;
             k < sizeof all[i].sources / sizeof all[i].sources[0] && all[i].sources[k] != NULL; k++)
            if (strcasecmp(all[i].sources[k], name) == 0) return &all[i];
    return NULL;
}

bool cli_profile_for(const char *option, const char *name, const epctx_profile **profile) {
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    cli_guess guess = cli_guess_of(epctx_str_of(name));
    char list[256];
    epctx_text names = epctx_text_of(list, sizeof list);
    *profile = cli_profile_of(name);
    if (*profile != NULL) return true;
    for (i = 0; i < count; i++) {
        epctx_text_put_format(&names, " %s", all[i].name);
        cli_guess_word(&guess, all[i].name);
        if (all[i].sources[0] != NULL) cli_guess_word(&guess, all[i].sources[0]);
    }
    cli_misuse("%s: unknown EP or profile '%s'%s%s the profiles are%s", option, name,
               cli_guess_hint(&guess), guess.best != NULL ? "" : ";", list);
    return false;
}

double cli_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

bool cli_first_epnode(const epctx_model *model, epctx_node_view *node) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    while (epctx_next_node(&it, node))
        if (epctx_view_is_epnode(node)) return true;
    return false;
}

bool cli_numbered_epnode(const epctx_model *model, const char *name, epctx_node_view *node) {
    epctx_walk walk;
    char *end = NULL;
    unsigned long number;
    if (name == NULL || name[0] != '#' || name[1] < '1' || name[1] > '9') return false;
    number = strtoul(name + 1, &end, 10);
    if (*end != '\0') return false;
    epctx_walk_begin(&walk, model);
    while (number > 0 && epctx_walk_epnode(&walk, node)) number--;
    return number == 0;
}

bool cli_initializer_names(const epctx_model *model, epctx_map *names) {
    epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(model));
    epctx_tensor_view tensor;
    while (epctx_next_tensor(&it, &tensor))
        if (epctx_map_put(names, tensor.name, 1) != EPCTX_OK) return false;
    return true;
}

epctx_status cli_optional_inputs(epctx_model *model, bool remove, size_t *count,
                                 epctx_error *error) {
    epctx_cursor it = epctx_view_graph_inputs(epctx_model_graph(model));
    epctx_status status = EPCTX_OK;
    epctx_value_view value;
    epctx_arena arena;
    epctx_map names;
    epctx_error_clear(error);
    *count = 0;
    epctx_arena_init(&arena, NULL);
    epctx_map_init(&names, &arena);
    if (!cli_initializer_names(model, &names))
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    while (status == EPCTX_OK && epctx_next_value(&it, &value)) {
        if (epctx_map_get(&names, value.name) == EPCTX_MAP_NONE) continue;
        ++*count;
        if (remove) status = epctx_edit_remove(model, value.view, error);
    }
    epctx_arena_free(&arena);
    return status;
}
