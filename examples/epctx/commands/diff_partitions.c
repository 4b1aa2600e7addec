/* epctx diff: which ordinary nodes of the old model an EPContext node of the new one stands for. */
#define _POSIX_C_SOURCE 200809L

#include "diff_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How it is found: from the outputs of the EPContext node back to its inputs in the old model,
 * through all nodes that the new model has no longer. A value that another node of the new model
 * makes ends the way, too. Each node is passed once, whatever the number of partitions. */

enum { NAMES_TOLD = 6 };

typedef struct search {
    facts *old, *now;
    epctx_map makers; /* of values: number of the thing in `old` */
    epctx_map made;   /* of values of `now`: number of the thing there */
    epctx_map inputs; /* of the node at hand and of those before it: number of the thing in `now` */
    uint32_t *todo;   /* things of `old` that were reached, in their order */
    size_t count;
} search;

/* What one partition took from the old model. */
typedef struct taken {
    uint64_t initializers, values;
} taken;

static const fact *fact_of(const facts *f, const char *key) {
    uint32_t at = epctx_map_get(&f->at, epctx_str_of(key));
    return at != EPCTX_MAP_NONE ? &f->list[at] : NULL;
}

static bool is_context(const facts *f, const thing *t) {
    return t->end > t->first && strcmp(f->list[t->first].value, "com.microsoft:EPContext") == 0;
}

/* Of a node, "node 'a'" without the words; a name that was cut stays as it is. */
static epctx_str node_name(const thing *t) {
    static const char word[] = "node '";
    epctx_str name = epctx_str_of(t->owner);
    const size_t before = strlen(t->at) + sizeof word - 1;
    if (name.size <= before || name.data[name.size - 1] != '\'') return name;
    name.data += before;
    name.size -= before + 1;
    return name;
}

/* A value and the graph that it stands in. */
static epctx_str place_of(facts *f, const char *at, const char *value) {
    return diff_text(f, "%s %s", value, at);
}

static void note(facts *f, epctx_map *map, const char *at, const char *value, size_t number) {
    const char *key = diff_keep(f, place_of(f, at, value));
    if (epctx_map_put(map, epctx_str_of(key), (uint32_t)number) != EPCTX_OK)
        f->short_of_memory = true;
}

/* The values that nodes make, each in the graph of its node. */
static void note_makers(facts *f, epctx_map *map) {
    size_t number, i;
    epctx_map_init(map, &f->arena);
    for (number = 0; number < f->thing_count; number++) {
        const thing *t = &f->things[number];
        size_t inner = number + 1;
        for (i = t->first; i < t->end; i++) {
            /* The nodes of its bodies note theirs themselves. */
            while (inner < f->thing_count && f->things[inner].end <= i) inner++;
            if (inner < f->thing_count && f->things[inner].first <= i) {
                i = f->things[inner].end - 1;
                continue;
            }
            if (f->list[i].kind == FACT_OUTPUT) note(f, map, t->at, f->list[i].value, number);
        }
    }
}

/* The new model has a node of this name that computes. */
static bool stays(const search *s, const thing *t) {
    const fact *other = fact_of(s->now, t->owner);
    return other != NULL && strcmp(other->value, "com.microsoft:EPContext") != 0;
}

/* Takes the node of the old model that makes a value, if the partition stands for it. */
static void take_maker(search *s, uint32_t partition, const char *value) {
    const thing *context = &s->now->things[partition];
    const epctx_str place = place_of(s->old, context->at, value);
    const uint32_t maker = epctx_map_get(&s->makers, place);
    const uint32_t other = epctx_map_get(&s->made, place);
    thing *t;
    if (maker == EPCTX_MAP_NONE || epctx_map_get(&s->inputs, place) == partition) return;
    if (other != EPCTX_MAP_NONE && other != partition) return;
    t = &s->old->things[maker];
    if (t->partition != 0 || stays(s, t) || is_context(s->old, t)) return;
    t->partition = partition + 1;
    s->todo[s->count++] = maker;
}

/* A fact that only the old model has is told by the partition's line. */
static bool tell(search *s, const char *key, bool all) {
    const uint32_t at = epctx_map_get(&s->old->at, epctx_str_of(key));
    if (at == EPCTX_MAP_NONE || s->old->list[at].told || fact_of(s->now, key) != NULL) return false;
    s->old->list[at].told = !all;
    return true;
}

/* What the old model says of a value that a node of the partition reads or makes. */
static void take_value(search *s, const char *at, const char *value, bool all, taken *sum) {
    facts *f = s->old;
    if (tell(s, diff_text(f, "%stype of %s", at, value).data, all)) sum->values++;
    if (tell(s, diff_text(f, "%sinitializer '%s'", at, value).data, all)) sum->initializers++;
    if (tell(s, diff_text(f, "%ssparse initializer '%s'", at, value).data, all))
        sum->initializers++;
}

/* The nodes between the outputs and the inputs of one EPContext node. */
static taken take_nodes(search *s, uint32_t partition, bool all) {
    const thing *context = &s->now->things[partition];
    taken sum = {0, 0};
    size_t i, done;
    s->count = 0;
    for (i = context->first; i < context->end; i++)
        if (s->now->list[i].kind == FACT_INPUT)
            note(s->now, &s->inputs, context->at, s->now->list[i].value, partition);
    for (i = context->first; i < context->end; i++)
        if (s->now->list[i].kind == FACT_OUTPUT) take_maker(s, partition, s->now->list[i].value);
    for (done = 0; done < s->count; done++) {
        const thing *t = &s->old->things[s->todo[done]];
        for (i = t->first; i < t->end; i++) {
            fact *said = &s->old->list[i];
            if (said->kind == FACT_INPUT) take_maker(s, partition, said->value);
            if (said->kind != FACT_OTHER) take_value(s, t->at, said->value, all, &sum);
            said->told = !all;
        }
    }
    return sum;
}

/* -- report -- */

static int by_number(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void put_line(const search *s, const thing *context, const taken *sum, bool all) {
    size_t i;
    fputs("> partition ", stdout);
    cli_put(stdout, node_name(context));
    fputs(" replaces ", stdout);
    for (i = 0; i < s->count && (all || i < NAMES_TOLD); i++) {
        if (i > 0) fputs(", ", stdout);
        cli_put(stdout, node_name(&s->old->things[s->todo[i]]));
    }
    if (i < s->count) printf(", ... (%zu nodes)", s->count);
    fputs(sum->initializers + sum->values > 0 ? "; with them went" : "", stdout);
    if (sum->initializers > 0)
        printf(" %" PRIu64 " initializer%s", sum->initializers, cli_plural(sum->initializers));
    if (sum->initializers > 0 && sum->values > 0) fputs(" and", stdout);
    if (sum->values > 0)
        printf(" the types of %" PRIu64 " value%s", sum->values, cli_plural(sum->values));
    putchar('\n');
}

static void put_json(json_writer *w, const search *s, const thing *context, const taken *sum) {
    size_t i;
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "change", "replaced");
    json_text(w, "what", context->owner);
    json_array(w, "nodes", JSON_INLINE);
    for (i = 0; i < s->count; i++) json_str(w, NULL, node_name(&s->old->things[s->todo[i]]));
    json_end(w);
    json_uint(w, "initializers", sum->initializers);
    json_uint(w, "values", sum->values);
    json_end(w);
}

/* The type of a value at the partition's border, which the old model did not tell. */
static void tell_type(search *s, const char *at, const char *value, bool all) {
    const char *key = diff_text(s->now, "%stype of %s", at, value).data;
    const uint32_t type = epctx_map_get(&s->now->at, epctx_str_of(key));
    if (type != EPCTX_MAP_NONE && fact_of(s->old, key) == NULL) s->now->list[type].told = !all;
}

static void put_partition(json_writer *w, search *s, uint32_t number, const taken *sum, bool all) {
    thing *context = &s->now->things[number];
    size_t i;
    qsort(s->todo, s->count, sizeof *s->todo, by_number); /* in the order of the file */
    if (w != NULL)
        put_json(w, s, context, sum);
    else
        put_line(s, context, sum, all);
    context->partition = number + 1;
    for (i = context->first; i < context->end; i++) {
        fact *said = &s->now->list[i];
        said->told = !all;
        if (said->kind != FACT_OTHER) tell_type(s, context->at, said->value, all);
    }
}

/* -- types of values that the old model does not have -- */

/* An exporter left them, and compiling dropped them. */
static bool is_left(const search *s, const fact *type) {
    static const char word[] = "type of ";
    facts *f = s->old;
    const int at = (int)type->at_size;
    const char *value = type->key + type->at_size + sizeof word - 1;
    const char *initializer = diff_text(f, "%.*sinitializer '%s'", at, type->key, value).data;
    return epctx_map_get(&s->makers, diff_text(f, "%s %.*s", value, at, type->key)) ==
               EPCTX_MAP_NONE &&
           fact_of(f, initializer) == NULL && fact_of(s->now, type->key) == NULL;
}

static size_t put_left(json_writer *w, search *s) {
    facts *f = s->old;
    size_t count = 0, i;
    for (i = 0; i < f->count; i++) {
        fact *type = &f->list[i];
        if (type->kind != FACT_TYPE || type->told || !is_left(s, type)) continue;
        type->told = true;
        count++;
    }
    if (count == 0) return 0;
    if (w == NULL) {
        printf("- types of %zu value%s that the old model does not have\n", count,
               cli_plural(count));
        return 1;
    }
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "change", "removed");
    json_text(w, "what", "types of values that the old model does not have");
    json_uint(w, "values", count);
    json_end(w);
    return 1;
}

size_t diff_put_partitions(json_writer *w, facts *old, facts *now, bool all) {
    search s;
    size_t count = 0;
    uint32_t i;
    memset(&s, 0, sizeof s);
    s.old = old;
    s.now = now;
    s.todo = (uint32_t *)malloc((old->thing_count + 1) * sizeof *s.todo);
    if (s.todo == NULL) old->short_of_memory = true;
    epctx_map_init(&s.inputs, &now->arena);
    note_makers(old, &s.makers);
    note_makers(now, &s.made);
    for (i = 0; i < now->thing_count && !old->short_of_memory && !now->short_of_memory; i++) {
        const thing *t = &now->things[i];
        const fact *before = fact_of(old, t->owner);
        taken sum;
        if (!is_context(now, t)) continue;
        if (before != NULL && strcmp(before->value, now->list[t->first].value) == 0) continue;
        sum = take_nodes(&s, i, all);
        if (s.count == 0) continue;
        put_partition(w, &s, i, &sum, all);
        count++;
    }
    free(s.todo);
    if (count > 0 && !all) count += put_left(w, &s);
    return count;
}
