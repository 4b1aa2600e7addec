/* What a result of another EP depends on beside the model, as its build stamp tells it: known
 * before the EP is loaded, so that --if-needed can compare. */
#define _GNU_SOURCE
#include "compile.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LIBRARIES = 128 };

/* Of what was asked for, all that has an effect on the result. */
const char *identity_options(const compile_settings *set, const anyep_settings *any,
                             epctx_arena *arena) {
    const anyep_ep *ep = &any->eps[0];
    const char **lists[2] = {ep->options, any->session};
    const char *name = ep->name != NULL ? ep->name : ep->registration;
    char *text = NULL;
    const char *copy = NULL;
    size_t size = 0, i, k;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    fprintf(out, "%s %d %d %d %d %d %d %s", name != NULL ? name : "", ep->device_type,
            (int)set->weightless, set->optimization, (int)set->gen.embed, (int)set->gen.require_all,
            (int)set->by_session,
            set->gen.initializers_file_name != NULL ? set->gen.initializers_file_name : "");
    for (i = 0; i < 2; i++)
        for (k = 0; lists[i] != NULL && lists[i][k] != NULL; k++)
            fprintf(out, "%c%s", k % 2 == 0 ? '\n' : '=', lists[i][k]);
    for (i = 0; i < any->dim_count; i++)
        fprintf(out, "\n%s=%" PRId64, any->dim_names[i], any->dim_values[i]);
    for (i = 0; i < any->place_count; i++)
        fprintf(out, "\n%s[%u]=%" PRId64, any->places[i].input, (unsigned)any->places[i].axis,
                any->places[i].value);
    if (fclose(out) == 0) copy = epctx_arena_copy(arena, epctx_str_of(text));
    free(text);
    return copy;
}

/* ---------------------------------------------------------------- libraries */

typedef struct libraries {
    const char *paths[MOST_LIBRARIES + 1];
    size_t count;
    epctx_arena *arena;
    bool no_memory;
} libraries;

static bool is_there(const libraries *all, const char *path) {
    const char *const one[] = {path, NULL};
    size_t i;
    for (i = 0; i < all->count; i++)
        if (strcmp(all->paths[i], path) == 0 ||
            strcmp(epctx_stamp_library(all->paths, i), epctx_stamp_library(one, 0)) == 0)
            return true;
    return false;
}

/* Adds a regular file, once. */
static void add(libraries *all, const char *path) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    char real[PATH_MAX];
    const char *copy;
    if (all->count == MOST_LIBRARIES || realpath(path, real) == NULL ||
        io->stat_fn(io->user, real, &info, NULL) != EPCTX_OK || info.kind != EPCTX_FILE_REGULAR ||
        is_there(all, real))
        return;
    copy = epctx_arena_copy(all->arena, epctx_str_of(real));
    all->no_memory = all->no_memory || copy == NULL;
    if (copy != NULL) all->paths[all->count++] = copy;
}

/* Those beside the EP's own, of which `names` has a line each, from a stamp perhaps. */
static void add_beside(libraries *all, const char *names) {
    const epctx_str folder = epctx_path_folder(epctx_str_of(all->paths[0]));
    epctx_str rest = epctx_str_of(names);
    char path[EPCTX_PATH_MAX];
    while (rest.size > 0) {
        const epctx_str name = epctx_str_cut(&rest, '\n');
        epctx_error ignored;
        if (name.size > 0 && epctx_path_check(name, &ignored) == EPCTX_OK &&
            epctx_path_join(folder, name, path, sizeof path, &ignored) == EPCTX_OK)
            add(all, path);
    }
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *identity_libraries(const anyep_settings *any, const char *names,
                                      epctx_arena *arena) {
    const char **options = any->eps[0].options;
    libraries *all = (libraries *)epctx_arena_alloc(arena, sizeof *all);
    size_t i;
    if (all == NULL) return NULL;
    memset(all, 0, sizeof *all);
    all->arena = arena;
    if (any->eps[0].library != NULL) {
        add(all, any->eps[0].library);
        if (all->count > 0) add_beside(all, names);
        if (all->count > 1) qsort(all->paths + 1, all->count - 1, sizeof all->paths[0], by_text);
    }
    add(all, any->ort);
    for (i = 0; options != NULL && options[i] != NULL; i += 2) add(all, options[i + 1]);
    return all->no_memory ? NULL : all->paths;
}

/* The names of libraries in a stamp, a line each. */
const char *identity_names(epctx_str stamp, epctx_arena *arena) {
    epctx_stamp_line line;
    char *out = (char *)epctx_arena_alloc(arena, stamp.size + 1);
    size_t used = 0;
    if (out == NULL) return NULL;
    while (epctx_stamp_next_line(&stamp, &line)) {
        if (!epctx_str_is(line.word, "library")) continue;
        if (!epctx_stamp_plain(line.text, out + used, line.text.size + 1)) continue;
        used += strlen(out + used);
        out[used++] = '\n';
    }
    out[used > 0 ? used - 1 : 0] = '\0';
    return out;
}
