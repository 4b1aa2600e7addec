/* listings.c - see cli_keep_listings in cli.h: each folder is listed once, however many models are
 * in it. */
#include "cli.h"

#include <string.h>

typedef struct listing {
    epctx_list names; /* of const char * */
} listing;

/* Until the process ends: the command is all that it does. */
static struct {
    epctx_arena arena;
    epctx_map index; /* folder -> in `folders` */
    epctx_list folders;
    epctx_io io;
} kept;

typedef struct adding {
    epctx_list names;
    bool no_memory;
} adding;

static bool add_name(void *state, const char *name) {
    adding *a = (adding *)state;
    const char **item = (const char **)epctx_list_add(&a->names, &kept.arena, sizeof *item);
    if (item != NULL) *item = epctx_arena_copy(&kept.arena, epctx_str_of(name));
    a->no_memory = item == NULL || *item == NULL;
    return !a->no_memory;
}

static epctx_status add_folder(const char *folder, epctx_error *error) {
    const epctx_io *io = epctx_io_files();
    const char *name = epctx_arena_copy(&kept.arena, epctx_str_of(folder));
    adding found;
    listing *item;
    epctx_status status;
    memset(&found, 0, sizeof found);
    status = io->list_fn(io->user, folder, add_name, &found, error);
    if (status != EPCTX_OK) return status;
    item = (listing *)epctx_list_add(&kept.folders, &kept.arena, sizeof *item);
    if (found.no_memory || name == NULL || item == NULL ||
        epctx_map_put(&kept.index, epctx_str_of(name), (uint32_t)kept.folders.count - 1) !=
            EPCTX_OK)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "%s: out of memory", folder);
    item->names = found.names;
    return EPCTX_OK;
}

static epctx_status list(void *user, const char *folder,
                         bool (*name_fn)(void *state, const char *name), void *state,
                         epctx_error *error) {
    uint32_t at = epctx_map_get(&kept.index, epctx_str_of(folder));
    const epctx_list *names;
    size_t i;
    (void)user;
    if (at == EPCTX_MAP_NONE) {
        const epctx_status status = add_folder(folder, error);
        if (status != EPCTX_OK) return status;
        at = (uint32_t)kept.folders.count - 1;
    }
    names = &((const listing *)kept.folders.items)[at].names;
    for (i = 0; i < names->count; i++)
        if (!name_fn(state, ((const char *const *)names->items)[i])) break;
    return EPCTX_OK;
}

const epctx_io *cli_keep_listings(void) {
    epctx_arena_init(&kept.arena, NULL);
    epctx_map_init(&kept.index, &kept.arena);
    kept.io = *epctx_io_files();
    kept.io.list_fn = list;
    return &kept.io;
}
