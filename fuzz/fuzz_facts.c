/*
 * Files of facts about vendors, over the built-in ones. What is refused changes nothing and names
 * the file; what is taken has an origin, is found again, makes profiles of which one is for any EP,
 * and printed it is read as the same facts.
 *
 * The first byte says which allocation fails (0: none); the rest is the file.
 */
#include "fuzz.h"

#include "examples/epctx/facts/facts.h"

#define FILE_NAME "/my.facts"
#define AGAIN     "/again.facts"

static const char *const kinds[] = {
    "product", "ep",      "plain",  "other", "provider", "origin", "chip",   "profile", "code",
    "range",   "message", "option", "genai", "opset",    "ir",     "compat", "rule",    "datatype"};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

/* -- a disk with one file, and memory that ends -- */

typedef struct source {
    const char *path;
    const uint8_t *data;
    size_t size;
    int maps;
} source;

static epctx_status look(void *user, const char *path, epctx_file_info *info, epctx_error *error) {
    const source *s = (const source *)user;
    (void)error;
    memset(info, 0, sizeof *info);
    info->kind = strcmp(path, s->path) == 0 ? EPCTX_FILE_REGULAR : EPCTX_FILE_NONE;
    info->size = s->size;
    return EPCTX_OK;
}

static epctx_status map(void *user, const char *root, const char *name, bool copy,
                        epctx_mapping *out, epctx_error *error) {
    source *s = (source *)user;
    (void)root, (void)copy, (void)error;
    require(strcmp(name, s->path) == 0);
    memset(out, 0, sizeof *out);
    out->data = s->data;
    out->size = s->size;
    s->maps++;
    return EPCTX_OK;
}

static void unmap(void *user, epctx_mapping *mapping) {
    (void)mapping;
    ((source *)user)->maps--;
}

typedef struct memory {
    unsigned calls, fails;
    int alive;
} memory;

static void *take(void *user, size_t size) {
    memory *m = (memory *)user;
    void *block = ++m->calls == m->fails ? NULL : malloc(size > 0 ? size : 1);
    m->alive += block != NULL;
    return block;
}

static void give(void *user, void *block) {
    ((memory *)user)->alive -= block != NULL;
    free(block);
}

static epctx_status load(const char *path, const void *data, size_t size, memory *m,
                         epctx_error *error) {
    source s = {path, (const uint8_t *)data, size, 0};
    const epctx_allocator allocator = {m, take, give};
    epctx_status status;
    epctx_io io;
    memset(&io, 0, sizeof io);
    io.user = &s;
    io.stat_fn = look;
    io.map_fn = map;
    io.unmap_fn = unmap;
    status = facts_load_from(&io, &allocator, path, error);
    require(s.maps == 0);
    return status;
}

/* -- what was taken -- */

static bool is_ours(const fact *f) {
    return strcmp(f->file, FILE_NAME) == 0;
}

static void judge_facts(void) {
    static const char *const origin[] = {"who", "seen", "from", "date"};
    size_t i, k, at;
    const fact *f;
    for (i = 0; i < KIND_COUNT; i++)
        for (at = 0; (f = facts_next(kinds[i], &at)) != NULL;) {
            require(strcmp(f->kind, kinds[i]) == 0 && f->line > 0 && f->name[0] != '\0');
            for (k = 0; k < 4; k++) require(fact_get(f, origin[k]) != NULL);
            if (is_ours(f)) require(facts_find(kinds[i], f->name) == f);
            (void)facts_hold(f, NULL);
            (void)facts_hold(f, "ort=1.29,qnn=2.6");
        }
}

static void judge_profiles(void) {
    size_t count, i, any = 0;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++) {
        any += (all[i].traits & EPCTX_TRAIT_ANY_EP) != 0;
        require(epctx_profile_find(epctx_str_of(all[i].name)) == &all[i]);
        (void)facts_of_ep(all[i].name, "library");
    }
    require(any == 1 && (all[count - 1].traits & EPCTX_TRAIT_ANY_EP) != 0);
}

/* -- printed -- */

static void put(char **to, const char *key, const char *value) {
    *to += sprintf(*to, "%s: %s\n", key, value);
}

/* Its keys, those of its default, too; false: a first line like several, or too many keys. */
static bool put_fact(char **to, const fact *f) {
    const size_t size = strlen(f->name);
    uint32_t i, count = f->count;
    if (strstr(f->name, "; ") != NULL || f->name[size - 1] == ';') return false;
    put(to, f->kind, f->name);
    for (i = 0; i < f->count; i++) put(to, f->pairs[i].key, f->pairs[i].value);
    for (i = 0; f->defaults != NULL && i < f->defaults->count; i++) {
        const fact_pair *pair = &f->defaults->pairs[i];
        if (fact_get(f, pair->key) != pair->value) continue;
        put(to, pair->key, pair->value);
        count++;
    }
    *(*to)++ = '\n';
    return count < FACTS_MOST_PAIRS;
}

static bool same_pairs(const fact *a, const fact *b) {
    uint32_t i;
    for (i = 0; i < b->count; i++)
        if (strcmp(fact_get(a, b->pairs[i].key), b->pairs[i].value) != 0) return false;
    return a->count <= b->count;
}

/* Prints the facts of the file into `text`, keeps them in `list`; -1: one cannot be printed so. */
static int print(char *text, const fact **list, int room) {
    char *to = text + sprintf(text, "facts: 1\n\n");
    size_t i, at;
    int count = 0;
    const fact *f;
    for (i = 0; i < KIND_COUNT; i++)
        for (at = 0; (f = facts_next(kinds[i], &at)) != NULL;) {
            if (!is_ours(f)) continue;
            require(count < room);
            list[count++] = f;
            if (!put_fact(&to, f)) return -1;
        }
    *to = '\0';
    return count;
}

static void judge_printed(size_t size) {
    enum { MOST = 1000 };
    const fact *list[MOST];
    memory m = {0, 0, 0};
    epctx_error error;
    /* A default is printed with each of its facts. */
    char *text = (char *)malloc(64 + size * (size / 4 + 2));
    int i, count;
    require(text != NULL);
    count = print(text, list, MOST);
    if (count > 0) {
        require(load(AGAIN, text, strlen(text), &m, &error) == EPCTX_OK);
        for (i = 0; i < count; i++) {
            const fact *f = facts_find(list[i]->kind, list[i]->name);
            require(f != NULL && strcmp(f->file, AGAIN) == 0 && same_pairs(list[i], f));
        }
    }
    facts_unload();
    require(m.alive == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const epctx_profile *const before = epctx_profiles(NULL);
    const fact *const chip = facts_find("chip", "SM8550");
    memory m = {0, 0, 0};
    epctx_error error;
    epctx_status status;
    if (size == 0 || size > 4000) return 0;
    m.fails = data[0] % 32;
    epctx_error_clear(&error);
    status = load(FILE_NAME, data + 1, size - 1, &m, &error);
    if (status == EPCTX_OK) {
        judge_facts();
        judge_profiles();
        judge_printed(size);
    } else {
        require(status == EPCTX_ERR_ARG || (status == EPCTX_ERR_NOMEM && m.fails > 0));
        require(strncmp(error.message, FILE_NAME ":", strlen(FILE_NAME) + 1) == 0);
    }
    facts_unload();
    require(m.alive == 0 && epctx_profiles(NULL) == before && facts_find("chip", "SM8550") == chip);
    return 0;
}
