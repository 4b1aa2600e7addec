/* Facts: the built-in table, what lies over it, and how to ask. */
#include "facts_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build/facts_table.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Built-in facts with others over them: instead of the table, when something was loaded. The tool
 * loads before it asks, so that nothing here changes while somebody looks at it. */
static struct overlay {
    const fact **facts;
    fact_kind *kinds;
    size_t kind_count;
    epctx_profile *profiles;
    size_t profile_count;
} over;

/* Texts and tables of all that was loaded: later facts lie over earlier ones. */
static epctx_arena arenas[FACTS_MOST_LOADS];
static size_t arena_count;

/* -- asking -- */

static const fact_kind *kind_of(const char *name) {
    const fact_kind *kinds = over.facts != NULL ? over.kinds : built_in_kinds;
    const size_t count = over.facts != NULL ? over.kind_count : COUNT(built_in_kinds);
    size_t i;
    for (i = 0; i < count; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

static const fact *fact_at(size_t at) {
    return over.facts != NULL ? over.facts[at] : &built_in_facts[at];
}

const fact *facts_next(const char *kind, size_t *at) {
    const fact_kind *all = kind_of(kind);
    if (all == NULL || *at >= all->count) return NULL;
    return fact_at(all->first + (*at)++);
}

const fact *facts_find(const char *kind, const char *name) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next(kind, &at)) != NULL && strcmp(f->name, name) != 0)
        ;
    return f;
}

const char *fact_get(const fact *f, const char *key) {
    uint32_t i;
    for (i = 0; i < f->count; i++)
        if (strcmp(f->pairs[i].key, key) == 0) return f->pairs[i].value;
    return f->defaults != NULL ? fact_get(f->defaults, key) : NULL;
}

uint32_t fact_number(const fact *f, const char *key) {
    const char *text = fact_get(f, key);
    return text != NULL ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

bool fact_next_word(epctx_str *rest, epctx_str *word) {
    if (rest->data == NULL || rest->size == 0) return false;
    *word = epctx_str_cut(rest, ',');
    while (rest->size > 0 && *rest->data == ' ') {
        rest->data++;
        rest->size--;
    }
    return true;
}

bool fact_has(const fact *f, const char *key, epctx_str word) {
    epctx_str rest = epctx_str_of(fact_get(f, key)), one;
    while (fact_next_word(&rest, &one))
        if (epctx_str_eq(one, word)) return true;
    return false;
}

const char *facts_of_ep(const char *profile, const char *key) {
    const epctx_str name = epctx_str_of(profile);
    const fact *f = facts_find("profile", profile);
    const char *value = f != NULL ? fact_get(f, key) : NULL;
    size_t at = 0;
    if (value != NULL) return value;
    while ((f = facts_next("ep", &at)) != NULL)
        if (fact_has(f, "profiles", name)) return fact_get(f, key);
    return NULL;
}

/* -- versions -- */

/* Takes a number off the front; what is no number is 0. */
static uint64_t take_part(epctx_str *version) {
    uint64_t number = 0;
    if (version->size > 0 && !epctx_str_take_number(version, &number)) version->size = 0;
    if (version->size > 0 && *version->data == '.') {
        version->data++;
        version->size--;
    }
    return number;
}

int facts_compare_versions(epctx_str a, epctx_str b) {
    epctx_str word_a = a, word_b = b;
    a = epctx_str_cut(&word_a, '-');
    b = epctx_str_cut(&word_b, '-');
    while (a.size > 0 || b.size > 0) {
        const uint64_t x = take_part(&a), y = take_part(&b);
        if (x != y) return x < y ? -1 : 1;
    }
    return (word_a.size == 0) - (word_b.size == 0);
}

/* The version of a product in "ort=1.29,qnn=2.6"; empty: it is not named. */
static epctx_str version_of(const char *versions, epctx_str product) {
    epctx_str rest = epctx_str_of(versions), one;
    while (fact_next_word(&rest, &one)) {
        const epctx_str name = epctx_str_cut(&one, '=');
        if (epctx_str_eq(name, product)) return one;
    }
    return epctx_str_of("");
}

/* Whether the version asked about is at or behind that of every entry of "ort 1.24, qnn 2.6" (all),
 * or of one of them. */
static bool reached(const char *list, const char *versions, bool all) {
    epctx_str rest = epctx_str_of(list), version;
    while (fact_next_word(&rest, &version)) {
        const epctx_str product = epctx_str_cut(&version, ' ');
        const epctx_str asked = version_of(versions, product);
        const bool here = asked.size == 0 || facts_compare_versions(asked, version) >= 0;
        if (here != all) return here;
    }
    return all;
}

bool facts_hold(const fact *f, const char *versions) {
    return reached(fact_get(f, "since"), versions, true) &&
           !reached(fact_get(f, "until"), versions, false);
}

static bool is_version(epctx_str text) {
    uint64_t number;
    epctx_str word = text;
    text = epctx_str_cut(&word, '-');
    while (epctx_str_take_number(&text, &number)) {
        if (text.size == 0) return true;
        if (*text.data != '.') return false;
        text.data++;
        text.size--;
    }
    return false;
}

static bool is_product(epctx_str name) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("product", &at)) != NULL)
        if (epctx_str_is(name, f->name)) return true;
    return false;
}

epctx_status facts_check_versions(const char *versions, epctx_error *error) {
    epctx_str rest = epctx_str_of(versions), version;
    epctx_error_clear(error);
    if (rest.size == 0) return epctx_fail(error, EPCTX_ERR_ARG, "expected PRODUCT=VERSION,...");
    while (fact_next_word(&rest, &version)) {
        const epctx_str product = epctx_str_cut(&version, '=');
        if (!is_product(product))
            return epctx_fail(error, EPCTX_ERR_ARG, "'%S' is no product that the facts know",
                              &product);
        if (!is_version(version))
            return epctx_fail(error, EPCTX_ERR_ARG, "%S: expected a version such as 1.30.0",
                              &product);
    }
    return EPCTX_OK;
}

/* -- other facts -- */

void facts_problem(facts_read *r, const char *file, uint32_t line, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->problems++;
    if (r->say != NULL) r->say(r->user, file, line, text);
}

void facts_unload(void) {
    while (arena_count > 0) epctx_arena_free(&arenas[--arena_count]);
    memset(&over, 0, sizeof over);
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

static bool add_kind(struct overlay *o, const char *name) {
    size_t i;
    for (i = 0; i < o->kind_count; i++)
        if (strcmp(o->kinds[i].name, name) == 0) return true;
    if (o->kind_count == 64) return false;
    o->kinds[o->kind_count++].name = name;
    return true;
}

/* What there would be with the facts that were read; false: no memory. */
static bool make_overlay(facts_read *r, struct overlay *o) {
    const fact_kind *now = over.facts != NULL ? over.kinds : built_in_kinds;
    const size_t now_count = over.facts != NULL ? over.kind_count : COUNT(built_in_kinds);
    size_t i, most = r->count, count = 0;
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

static bool make_profiles(facts_read *r, struct overlay *o) {
    size_t i = 0;
    while (i < o->kind_count && strcmp(o->kinds[i].name, "profile") != 0) i++;
    if (i == o->kind_count) return true;
    o->profile_count = o->kinds[i].count;
    o->profiles = facts_make_profiles(&r->arena, o->facts + o->kinds[i].first, o->profile_count);
    return o->profiles != NULL;
}

/* Reads, judges, and with `o` makes what there would be. */
static void read_all(facts_read *r, const char *path, struct overlay *o) {
    epctx_arena_init(&r->arena, NULL);
    memset(o, 0, sizeof *o);
    facts_read_path(r, path);
    if (!r->no_memory && r->problems == 0 && !make_overlay(r, o)) r->no_memory = true;
    if (!r->no_memory && r->problems == 0) facts_judge_all(r, o->facts, o->kinds, o->kind_count);
    if (!r->no_memory && r->problems == 0 && !make_profiles(r, o)) r->no_memory = true;
    if (r->no_memory) facts_problem(r, path, 0, "out of memory");
}

size_t facts_judge(const char *path, facts_say_fn say, void *user, size_t *count) {
    facts_read r;
    struct overlay o;
    memset(&r, 0, sizeof r);
    r.say = say;
    r.user = user;
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

epctx_status facts_load(const char *path, epctx_error *error) {
    facts_read r;
    struct overlay o;
    epctx_error_clear(error);
    if (arena_count == FACTS_MOST_LOADS)
        return epctx_fail(error, EPCTX_ERR_LIMIT, "%s: facts were read from %d places already",
                          path, (int64_t)FACTS_MOST_LOADS);
    memset(&r, 0, sizeof r);
    r.say = keep_first;
    r.user = error;
    read_all(&r, path, &o);
    if (r.problems > 0) {
        epctx_arena_free(&r.arena);
        return error != NULL ? error->status : EPCTX_ERR_ARG;
    }
    arenas[arena_count++] = r.arena;
    over = o;
    return EPCTX_OK;
}

const epctx_profile *facts_profiles(size_t *count) {
    if (over.profiles == NULL) return epctx_profiles_built_in(count);
    if (count != NULL) *count = over.profile_count;
    return over.profiles;
}
