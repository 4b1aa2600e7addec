/* cure.c - see cure.h. */
#include "cure.h"

#include "ops/contexts.h"
#include "ops/repair.h"

#include <stdio.h>
#include <string.h>

typedef enum cure_way { CURE_NONE, CURE_REPAIR, CURE_EXTRACT, CURE_EMBED, CURE_UNSET } cure_way;

void cures_begin(cures *list, const char *file, const epctx_check_opts *opts,
                 struct beside *files) {
    memset(list, 0, sizeof *list);
    list->file = file;
    list->opts = opts;
    list->files = files;
}

/* What may help, by the rule. */
static cure_way way_of(int rule) {
    if (rule == DELIVERY_G_EMBEDDED + RULE_DELIVERY || rule_wants_extract(rule))
        return CURE_EXTRACT;
    if (rule == EPCTX_RULE_ONLY_EMBEDDED) return CURE_EMBED;
    if (rule == EPCTX_RULE_PAYLOAD_IGNORED) return CURE_UNSET;
    return rule < EPCTX_RULE_COUNT && epctx_can_repair((epctx_rule)rule) ? CURE_REPAIR : CURE_NONE;
}

static bool is_nameless(int rule) {
    return rule == EPCTX_RULE_NO_SOURCE || rule == EPCTX_RULE_SOURCE_ABSENT;
}

/* ---------------------------------------------------------------- what must not be lost */

/* Attributes that hold a context or name one. */
static bool is_context(const epctx_attr_view *attr) {
    return epctx_str_is(attr->name, "ep_cache_context") ||
           epctx_str_is(attr->name, "ep_dlc_context");
}

/* All contexts of a model, as bytes or by name. */
typedef struct contexts {
    epctx_walk walk;
    epctx_cursor attrs;
    bool inside; /* `attrs` are those of a node */
} contexts;

static void contexts_begin(contexts *c, const epctx_model *model) {
    memset(c, 0, sizeof *c);
    epctx_walk_begin(&c->walk, model);
}

static bool contexts_next(contexts *c, epctx_str *value) {
    epctx_node_view node;
    epctx_attr_view attr;
    for (;;) {
        while (c->inside && epctx_next_attr(&c->attrs, &attr)) {
            *value = attr.s;
            if (is_context(&attr)) return true;
        }
        c->inside = epctx_walk_epnode(&c->walk, &node);
        if (!c->inside) return false;
        c->attrs = epctx_view_node_attrs(&node);
    }
}

/* Every context that a node had, as bytes or by name, is in some node. */
static bool keeps_contexts(const epctx_model *before, epctx_model *after) {
    contexts all;
    epctx_map there;
    epctx_str one;
    epctx_map_init(&there, &after->arena);
    contexts_begin(&all, after);
    while (contexts_next(&all, &one))
        if (one.size > 0 && epctx_map_put(&there, one, 1) != EPCTX_OK) return false;
    contexts_begin(&all, before);
    while (contexts_next(&all, &one))
        if (one.size > 0 && epctx_map_get(&there, one) == EPCTX_MAP_NONE) return false;
    return true;
}

static epctx_cursor metadata_of(const epctx_model *model) {
    return epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
}

static bool has_pair(const epctx_model *model, const epctx_pair *pair, bool any_value) {
    epctx_cursor it = metadata_of(model);
    epctx_pair one;
    while (epctx_next_pair(&it, &one))
        if (epctx_str_eq(one.key, pair->key) && (any_value || epctx_str_eq(one.value, pair->value)))
            return true;
    return false;
}

/* Whether each EP with a node has compatibility info: then that of another is not that of a node
 * whose source is wrong. */
static bool has_all_compat(const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &node)) {
        const epctx_str source = epctx_view_node_attr_str(&node, "source");
        epctx_cursor it = metadata_of(model);
        epctx_pair pair;
        bool found = false;
        while (!found && epctx_next_pair(&it, &pair)) {
            if (!epctx_str_starts(pair.key, EPCTX_COMPAT_PREFIX)) continue;
            pair.key.data += sizeof EPCTX_COMPAT_PREFIX - 1;
            pair.key.size -= sizeof EPCTX_COMPAT_PREFIX - 1;
            found = source.size > 0 && epctx_str_eq(pair.key, source);
        }
        if (!found) return false;
    }
    return true;
}

static bool keeps_metadata(const epctx_model *before, const epctx_model *after, int rule) {
    const bool compat = rule == EPCTX_RULE_STALE_COMPAT && has_all_compat(after);
    epctx_cursor it = metadata_of(before);
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair))
        if (!has_pair(after, &pair, epctx_str_starts(pair.key, EPCTX_BUILD_PREFIX)) &&
            !(compat && epctx_str_starts(pair.key, EPCTX_COMPAT_PREFIX)))
            return false;
    return true;
}

/* Names of files are what some repairs put right. */
static bool renames_files(int rule) {
    return rule == EPCTX_RULE_BACKSLASH || rule == EPCTX_RULE_PATH_UNSAFE ||
           rule == EPCTX_RULE_BUILD_PATH;
}

static bool keeps(const epctx_model *before, epctx_model *after, int rule, cure_way way) {
    const bool moves = way == CURE_EXTRACT || way == CURE_EMBED || renames_files(rule);
    return (moves || keeps_contexts(before, after)) && keeps_metadata(before, after, rule);
}

/* ---------------------------------------------------------------- trying */

typedef struct trial {
    const cures *list;
    int rule;
    cure_way way;
    epctx_str node;
    const char *source;
    epctx_model before, after;
    epctx_model from;      /* the source model, of which `after` borrows */
    epctx_check_opts opts; /* of lint */
} trial;

static void count_rule(void *user, const epctx_finding *finding) {
    ((uint64_t *)user)[finding->rule]++;
}

static bool repair(trial *t, epctx_model *source) {
    const epctx_rule rule = (epctx_rule)t->rule;
    epctx_repair_opts opts;
    epctx_error ignored;
    size_t done = 0, left = 0;
    memset(&opts, 0, sizeof opts);
    opts.rules = &rule;
    opts.rule_count = 1;
    opts.source = source;
    opts.files = t->list->files;
    if (is_nameless(t->rule))
        opts.check.profile = epctx_profile_find(epctx_str_of(t->list->profile));
    return epctx_repair(&t->after, &opts, NULL, NULL, &done, &left, &ignored) == EPCTX_OK &&
           done > 0 && left == 0;
}

static bool repair_with_source(trial *t) {
    epctx_error ignored;
    if (t->source == NULL) return repair(t, NULL);
    return cli_open(&t->from, t->source, &ignored) == EPCTX_OK && repair(t, &t->from);
}

/* A new file takes no other one's place. */
static bool move(trial *t) {
    const epctx_io *io = epctx_io_files();
    ops_changes changes;
    epctx_error ignored;
    epctx_file_info info;
    size_t i;
    const epctx_status status = t->way == CURE_EXTRACT
                                    ? ops_extract(&t->after, NULL, &changes, &ignored)
                                    : ops_embed(&t->after, NULL, &changes, &ignored);
    if (status != EPCTX_OK || changes.done == 0) return false;
    for (i = 0; i < changes.file_count; i++)
        if (io->stat_fn(io->user, changes.files[i].path, &info, NULL) != EPCTX_OK ||
            info.kind != EPCTX_FILE_NONE)
            return false;
    t->opts.no_files = t->way == CURE_EXTRACT; /* they are not there yet */
    return true;
}

/* The command knows a node by its name alone. */
static bool unset(trial *t) {
    epctx_walk walk;
    epctx_node_view node, found;
    epctx_error ignored;
    size_t count = 0;
    memset(&found, 0, sizeof found);
    epctx_walk_begin(&walk, &t->after);
    while (epctx_walk_next(&walk, &node)) {
        if (!epctx_str_eq(node.name, t->node)) continue;
        found = node;
        count++;
    }
    return count == 1 &&
           epctx_edit_remove_attr(&t->after, found.view, epctx_str_of("ep_cache_context"),
                                  &ignored) == EPCTX_OK;
}

/* Nothing new is found, and what was to be cured no more; of one node less. */
static bool is_better(const trial *t) {
    uint64_t before[EPCTX_RULE_COUNT] = {0}, after[EPCTX_RULE_COUNT] = {0};
    epctx_error ignored;
    int i;
    if (epctx_lint(&t->before, &t->opts, count_rule, before, NULL, &ignored) != EPCTX_OK ||
        epctx_lint(&t->after, &t->opts, count_rule, after, NULL, &ignored) != EPCTX_OK)
        return false;
    for (i = 0; i < EPCTX_RULE_COUNT; i++)
        if (after[i] > before[i] && epctx_rule_of((epctx_rule)i).severity != EPCTX_SEVERITY_HINT)
            return false;
    /* Of two attributes with one name, moving keeps one. */
    if ((t->way == CURE_EXTRACT || t->way == CURE_EMBED) &&
        before[EPCTX_RULE_DOUBLED_ATTRIBUTE] > 0)
        return false;
    return t->rule >= EPCTX_RULE_COUNT || after[t->rule] == 0 ||
           (t->way == CURE_UNSET && after[t->rule] < before[t->rule]);
}

static bool apply(trial *t) {
    switch (t->way) {
    case CURE_REPAIR: return repair_with_source(t);
    case CURE_EXTRACT:
    case CURE_EMBED: return move(t);
    case CURE_UNSET: return unset(t);
    case CURE_NONE: break;
    }
    return false;
}

/* Two models of one file, of which one is changed. */
static bool helps(const cures *list, int rule, epctx_str node, const char *source) {
    trial t;
    epctx_error ignored;
    bool ok;
    memset(&t, 0, sizeof t);
    t.list = list;
    t.rule = rule;
    t.way = way_of(rule);
    t.node = node;
    t.source = source;
    if (list->opts != NULL) t.opts = *list->opts;
    ok = cli_open(&t.before, list->file, &ignored) == EPCTX_OK &&
         cli_open(&t.after, list->file, &ignored) == EPCTX_OK && apply(&t) && is_better(&t) &&
         keeps(&t.before, &t.after, rule, t.way);
    epctx_model_close(&t.before);
    epctx_model_close(&t.after);
    epctx_model_close(&t.from);
    return ok;
}

/* ---------------------------------------------------------------- what a command has to name */

/* The file of a stamp's line "source", if it is still that one. */
static bool find_source(cures *list, epctx_str stamp) {
    const epctx_io *io = epctx_io_files();
    const epctx_str folder = epctx_path_folder(epctx_str_of(list->file));
    char name[EPCTX_PATH_MAX];
    epctx_stamp_line line;
    epctx_mapping mapping;
    epctx_error ignored;
    bool found = false, same;
    while (!found && epctx_stamp_next_line(&stamp, &line))
        found = epctx_str_is(line.word, "source");
    if (!found || !epctx_stamp_plain(line.text, name, sizeof name) ||
        epctx_path_check(epctx_str_of(name), &ignored) != EPCTX_OK ||
        epctx_path_join(folder, epctx_str_of(name), list->source, sizeof list->source, &ignored) !=
            EPCTX_OK ||
        io->map_fn(io->user, NULL, list->source, false, &mapping, &ignored) != EPCTX_OK)
        return false;
    same = mapping.size == line.size && epctx_hash(mapping.data, mapping.size, 0) == line.hash;
    io->unmap_fn(io->user, &mapping);
    return same;
}

/* The one EP that metadata and other nodes name, if there is a profile of it. */
static void take_ep(cures *list, epctx_str ep, bool *several) {
    const epctx_profile *profile = epctx_profile_of(ep);
    if (ep.size == 0 || (profile->traits & EPCTX_TRAIT_ANY_EP) != 0) return;
    *several = *several || (list->profile != NULL && strcmp(list->profile, profile->name) != 0);
    list->profile = profile->name;
}

static void look(cures *list) {
    static const char *const prefixes[] = {EPCTX_BUILD_PREFIX, EPCTX_COMPAT_PREFIX};
    epctx_model model;
    epctx_error ignored;
    epctx_cursor it;
    epctx_pair pair;
    epctx_walk walk;
    epctx_node_view node;
    bool several = false, found = false;
    size_t i;
    list->looked = true;
    if (cli_open(&model, list->file, &ignored) == EPCTX_OK) {
        it = metadata_of(&model);
        while (epctx_next_pair(&it, &pair))
            for (i = 0; i < 2; i++) {
                epctx_str ep = pair.key;
                if (!epctx_str_starts(ep, prefixes[i])) continue;
                ep.data += strlen(prefixes[i]);
                ep.size -= strlen(prefixes[i]);
                take_ep(list, ep, &several);
                if (i == 0) found = found || find_source(list, pair.value);
            }
        epctx_walk_begin(&walk, &model);
        while (epctx_walk_epnode(&walk, &node))
            take_ep(list, epctx_view_node_attr_str(&node, "source"), &several);
    }
    epctx_model_close(&model);
    if (several) list->profile = NULL;
    if (!found) list->source[0] = '\0';
}

/* Without the source model if that does. */
static bool try_rule(cures *list, int rule, epctx_str node) {
    const bool wants_source =
        rule < EPCTX_RULE_COUNT && epctx_repair_wants_source((epctx_rule)rule);
    if ((wants_source || is_nameless(rule)) && !list->looked) look(list);
    if (is_nameless(rule) && list->profile == NULL) return false;
    list->rules[rule].source = false;
    if (helps(list, rule, node, NULL)) return true;
    list->rules[rule].source = wants_source && list->source[0] != '\0';
    return list->rules[rule].source && helps(list, rule, node, list->source);
}

/* ---------------------------------------------------------------- the command */

/* A word of a shell's command line, as it stands if that is safe. What cannot be shown is escaped
 * in the form $'...', which bash, zsh and ksh know. */
static epctx_status put_word(epctx_buffer *out, epctx_str word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./-+,:@%=";
    bool simple = word.size > 0, shown = true;
    uint32_t code, before = 0;
    size_t i, k, size;
    epctx_status status;
    for (i = 0; i < word.size; i += size, before = code) {
        code = epctx_str_char(word, i, &size);
        shown = shown && epctx_char_is_shown(code, before);
        simple = simple && size == 1 && memchr(plain, word.data[i], sizeof plain - 1) != NULL;
    }
    if (simple) return epctx_buffer_append(out, word.data, word.size);
    status = epctx_buffer_append(out, shown ? "'" : "$'", shown ? 1 : 2);
    for (i = 0, before = 0; status == EPCTX_OK && i < word.size; i += size, before = code) {
        code = epctx_str_char(word, i, &size);
        if (word.data[i] == '\'') {
            status = epctx_buffer_append(out, shown ? "'\\''" : "\\'", shown ? 4 : 2);
        } else if (shown || (epctx_char_is_shown(code, before) && code != '\\')) {
            status = epctx_buffer_append(out, word.data + i, size);
        } else {
            for (k = i; status == EPCTX_OK && k < i + size; k++) {
                char hex[8];
                snprintf(hex, sizeof hex, "\\x%02x", (unsigned char)word.data[k]);
                status = epctx_buffer_append(out, hex, 4);
            }
        }
    }
    return status == EPCTX_OK ? epctx_buffer_append(out, "'", 1) : status;
}

static epctx_status put_text(epctx_buffer *out, const char *text) {
    return epctx_buffer_append(out, text, strlen(text));
}

/* A name like an option gets its folder. */
static epctx_status put_file(epctx_buffer *out, const char *file) {
    const epctx_status status = put_text(out, file[0] == '-' ? "./" : "");
    return status == EPCTX_OK ? put_word(out, epctx_str_of(file)) : status;
}

static epctx_status put_repair(const cures *list, int rule, epctx_buffer *out) {
    epctx_status status = put_text(out, "epctx repair --in-place --rules ");
    if (status == EPCTX_OK) status = put_text(out, rule_info(rule).id);
    if (status == EPCTX_OK && list->rules[rule].source) {
        status = put_text(out, " --source ");
        if (status == EPCTX_OK) status = put_file(out, list->source);
    }
    if (status == EPCTX_OK && is_nameless(rule)) {
        status = put_text(out, " --profile ");
        if (status == EPCTX_OK) status = put_text(out, list->profile);
    }
    return status == EPCTX_OK ? put_text(out, " ") : status;
}

static epctx_status put_start(const cures *list, int rule, epctx_str node, epctx_buffer *out) {
    epctx_status status = EPCTX_OK;
    switch (way_of(rule)) {
    case CURE_REPAIR: return put_repair(list, rule, out);
    case CURE_EXTRACT: return put_text(out, "epctx extract --in-place ");
    case CURE_EMBED: return put_text(out, "epctx embed --in-place ");
    case CURE_UNSET:
        status = put_text(out, "epctx unset --in-place --node=");
        if (status == EPCTX_OK) status = put_word(out, node);
        return status == EPCTX_OK ? put_text(out, " ") : status;
    case CURE_NONE: break;
    }
    return status;
}

bool cures_command(cures *list, int rule, epctx_str node, epctx_buffer *out) {
    const cure_way way = way_of(rule);
    epctx_status status;
    if (way == CURE_NONE || (way == CURE_UNSET && node.size == 0)) return false;
    /* Of nodes each has its own. */
    if (!list->rules[rule].tried || way == CURE_UNSET)
        list->rules[rule].helps = try_rule(list, rule, node);
    list->rules[rule].tried = true;
    if (!list->rules[rule].helps) return false;
    out->size = 0;
    status = put_start(list, rule, node, out);
    if (status == EPCTX_OK) status = put_file(out, list->file);
    if (status == EPCTX_OK && way == CURE_UNSET) status = put_text(out, " ep_cache_context");
    return status == EPCTX_OK;
}
