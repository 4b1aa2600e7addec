/* around.c - where a file may be that is not where a model names it. */
#include "around.h"

typedef struct around_search {
    epctx_str file; /* without its folders */
    char found[EPCTX_PATH_MAX];
    around_kind kind;
} around_search;

static bool is_partly(epctx_str entry, epctx_str file) {
    static const char *const ends[] = {".crdownload", ".part",       ".partial",
                                       ".download",   ".incomplete", ".tmp"};
    epctx_str rest;
    size_t i;
    if (entry.size <= file.size || memcmp(entry.data, file.data, file.size) != 0) return false;
    rest.data = entry.data + file.size;
    rest.size = entry.size - file.size;
    for (i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (epctx_str_is(rest, ends[i])) return true;
    return false;
}

/* The best of all entries, and of equally good ones the first by name: folders have no order. */
static bool look_at(void *state, const char *name) {
    around_search *s = (around_search *)state;
    const epctx_str entry = epctx_str_of(name);
    const around_kind kind = epctx_str_eq_nocase(entry, s->file) ? AROUND_LETTERS
                             : is_partly(entry, s->file)         ? AROUND_PARTLY
                                                                 : AROUND_NOWHERE;
    if (kind == AROUND_NOWHERE || epctx_str_eq(entry, s->file) || entry.size >= sizeof s->found)
        return true;
    if (s->kind != AROUND_NOWHERE &&
        (kind > s->kind || (kind == s->kind && strcmp(name, s->found) > 0)))
        return true;
    s->kind = kind;
    memcpy(s->found, name, entry.size + 1);
    return true;
}

around_kind around_find(const epctx_io *io, const char *folder, epctx_str name, uint32_t flags,
                        char *text) {
    const epctx_str inner = epctx_path_folder(name);
    char path[EPCTX_PATH_MAX], place[EPCTX_PATH_MAX];
    around_search s;
    epctx_text out = epctx_text_of(text, EPCTX_PATH_MAX);
    if (io == NULL || epctx_path_check(name, NULL) != EPCTX_OK) return AROUND_NOWHERE;
    epctx_text_put_format(&out, "bin/%S", &name);
    if (inner.size == 0 && epctx_path_find(io, epctx_str_of(folder), epctx_text_str(&out), flags,
                                           path, sizeof path, NULL) == EPCTX_OK)
        return AROUND_FOLDER;
    memset(&s, 0, sizeof s);
    s.file = epctx_path_file(name);
    if (io->list_fn == NULL ||
        epctx_path_join(epctx_str_of(folder), inner, place, sizeof place, NULL) != EPCTX_OK ||
        io->list_fn(io->user, place, look_at, &s, NULL) != EPCTX_OK || s.kind == AROUND_NOWHERE)
        return AROUND_NOWHERE;
    out = epctx_text_of(text, EPCTX_PATH_MAX);
    epctx_text_put_format(&out, "%S%s", &inner, s.found);
    return s.kind;
}
