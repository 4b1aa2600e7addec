/* Facts over the built-in ones: what files say is read, judged and put in its place. */
#include "facts_internal.h"

#include <string.h>

/* Texts and tables of all that was loaded: later facts lie over earlier ones. */
static epctx_arena arenas[FACTS_MOST_LOADS];
static size_t arena_count;

void facts_unload(void) {
    static const facts_overlay none;
    facts_use(&none);
    while (arena_count > 0) epctx_arena_free(&arenas[--arena_count]);
}

static bool is_replaced(const facts_read *r, const char *kind) {
    size_t i;
    for (i = 0; i < r->replaced_count; i++)
        if (strcmp(r->replaced[i], kind) == 0 || strcmp(r->replaced[i], "all") == 0) return true;
    return false;
}

/* The place of a fact of this kind and name in a list, or `count`. */
static size_t place_of(const fact **list, size_t count, const fact *f) {
    size_t i = 0;
    while (i < count && strcmp(list[i]->name, f->name) != 0) i++;
    return i;
}

/* The facts of one kind: those there are, unless replaced, and those that were read. The profile
 * for EPs without one stays the last. */
static size_t merge_kind(const facts_read *r, const char *kind, const fact **out) {
    size_t count = 0, at = 0, i;
    const fact *f;
    while (!is_replaced(r, kind) && (f = facts_next(kind, &at)) != NULL) out[count++] = f;
    for (i = 0; i < r->count; i++) {
        const fact *new_fact = r->facts[i];
        if (strcmp(new_fact->kind, kind) != 0) continue;
        at = place_of(out, count, new_fact);
        out[at] = new_fact;
        count += at == count;
    }
    if (strcmp(kind, "profile") == 0)
        for (i = 0; i + 1 < count; i++) {
            if (!fact_has(out[i], "traits", epctx_str_of("any_ep"))) continue;
            f = out[i];
            memmove(out + i, out + i + 1, (count - i - 1) * sizeof *out);
            out[count - 1] = f;
            break;
        }
    return count;
}

static bool add_kind(facts_overlay *o, const char *name) {
    size_t i;
    for (i = 0; i < o->kind_count; i++)
        if (strcmp(o->kinds[i].name, name) == 0) return true;
    if (o->kind_count == 64) return false;
    o->kinds[o->kind_count++].name = name;
    return true;
}

/* What there would be with the facts that were read; false: no memory. */
static bool make_overlay(facts_read *r, facts_overlay *o) {
    size_t now_count, i, most = r->count, count = 0;
    const fact_kind *now = facts_kinds(&now_count);
    for (i = 0; i < now_count; i++) most += now[i].count;
    o->facts = (const fact **)epctx_arena_array(&r->arena, most + 1, sizeof *o->facts);
    o->kinds = (fact_kind *)epctx_arena_array(&r->arena, 64, sizeof *o->kinds);
    if (o->facts == NULL || o->kinds == NULL) return false;
    for (i = 0; i < now_count; i++) (void)add_kind(o, now[i].name);
    for (i = 0; i < r->count; i++) (void)add_kind(o, r->facts[i]->kind);
    for (i = 0; i < o->kind_count; i++) {
        o->kinds[i].first = (uint32_t)count;
        o->kinds[i].count = (uint32_t)merge_kind(r, o->kinds[i].name, o->facts + count);
        count += o->kinds[i].count;
    }
    return true;
}

static bool make_profiles(facts_read *r, facts_overlay *o) {
    size_t i = 0;
    while (i < o->kind_count && strcmp(o->kinds[i].name, "profile") != 0) i++;
    if (i == o->kind_count) return true;
    o->profile_count = o->kinds[i].count;
    o->profiles = facts_make_profiles(&r->arena, o->facts + o->kinds[i].first, o->profile_count);
    return o->profiles != NULL;
}

/* Reads, judges, and with `o` makes what there would be. */
static void read_all(facts_read *r, const char *path, facts_overlay *o) {
    memset(o, 0, sizeof *o);
    facts_read_path(r, path);
    if (!r->no_memory && r->problems == 0 && !make_overlay(r, o)) r->no_memory = true;
    if (!r->no_memory && r->problems == 0) facts_judge_all(r, o->facts, o->kinds, o->kind_count);
    if (!r->no_memory && r->problems == 0 && !make_profiles(r, o)) r->no_memory = true;
    if (r->no_memory) facts_problem(r, path, 0, "out of memory");
}

size_t facts_judge(const char *path, facts_say_fn say, void *user, size_t *count) {
    facts_read r;
    facts_overlay o;
    memset(&r, 0, sizeof r);
    r.io = epctx_io_files();
    r.say = say;
    r.user = user;
    epctx_arena_init(&r.arena, NULL);
    read_all(&r, path, &o);
    *count = r.count;
    epctx_arena_free(&r.arena);
    return r.problems;
}

static void keep_first(void *user, const char *file, uint32_t line, const char *problem) {
    epctx_error *error = (epctx_error *)user;
    if (error == NULL || error->status != EPCTX_OK) return;
    if (line > 0)
        epctx_fail(error, EPCTX_ERR_ARG, "%s:%u: %s", file, (uint64_t)line, problem);
    else
        epctx_fail(error, EPCTX_ERR_ARG, "%s: %s", file, problem);
}

epctx_status facts_load_from(const epctx_io *io, const epctx_allocator *allocator, const char *path,
                             epctx_error *error) {
    facts_read r;
    facts_overlay o;
    epctx_error_clear(error);
    if (arena_count == FACTS_MOST_LOADS)
        return epctx_fail(error, EPCTX_ERR_LIMIT, "%s: facts were read from %d places already",
                          path, (int64_t)FACTS_MOST_LOADS);
    memset(&r, 0, sizeof r);
    r.io = io != NULL ? io : epctx_io_files();
    r.say = keep_first;
    r.user = error;
    epctx_arena_init(&r.arena, allocator);
    read_all(&r, path, &o);
    if (r.no_memory) {
        epctx_arena_free(&r.arena);
        epctx_error_clear(error);
        return epctx_fail(error, EPCTX_ERR_NOMEM, "%s: out of memory", path);
    }
    if (r.problems > 0) {
        epctx_arena_free(&r.arena);
        return EPCTX_ERR_ARG;
    }
    arenas[arena_count++] = r.arena;
    facts_use(&o);
    return EPCTX_OK;
}

epctx_status facts_load(const char *path, epctx_error *error) {
    return facts_load_from(NULL, NULL, path, error);
}
