/* A plugin EP's library, and what it is registered as. */
#define _GNU_SOURCE
#include "ep_library.h"
#include "core/vendors.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A link stays one: the library finds others beside the path by which it was opened ($ORIGIN). */
static char *absolute(const char *path, epctx_arena *arena) {
    char folder[PATH_MAX], whole[2 * PATH_MAX];
    if (access(path, F_OK) != 0) return NULL;
    if (path[0] == '/') return epctx_arena_copy(arena, epctx_str_of(path));
    if (getcwd(folder, sizeof folder) == NULL) return NULL;
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    return epctx_arena_copy(arena, epctx_str_of(whole));
}

bool ep_library_read(const char *word, epctx_arena *arena, ep_library *out) {
    char *text = epctx_arena_copy(arena, epctx_str_of(word));
    char *colon = text != NULL ? strrchr(text, ':') : NULL;
    memset(out, 0, sizeof *out);
    if (text == NULL) return false;
    out->text = text;
    out->path = absolute(text, arena);
    if (out->path == NULL && colon != NULL) {
        *colon = '\0';
        out->name = colon + 1;
        out->path = absolute(text, arena);
    }
    if (out->path != NULL)
        out->registration =
            out->name != NULL ? out->name : vendor_registration(epctx_str_of(out->path));
    return true;
}
