/* lint_epnode.c - EPContext nodes, alone and per EP, and compatibility info. */
#include "lint_internal.h"

#include "place.h"

/* Nodes that share contexts: of one EP. */
typedef struct lint_party {
    const epctx_profile *profile;
    epctx_str source;
    size_t first, last; /* of its nodes, which are linked */
    uint64_t nodes, primaries, embedded, files;
    epctx_map keys; /* partition_name -> node that has it */
} lint_party;

/* -- types of values -- */

typedef struct lint_type_note {
    epctx_value_view value;
    int32_t elem_type;
    bool is_tensor, dynamic;
} lint_type_note;

static epctx_status lint_note_type(linter *l, lint_frame *scope, const epctx_value_view *value) {
    epctx_cursor dims = epctx_view_value_dims(value);
    lint_type_note note;
    lint_type_note *place;
    epctx_dim dim;
    note.value = *value;
    note.elem_type = value->elem_type;
    note.is_tensor = value->is_tensor;
    note.dynamic = !value->has_shape;
    while (epctx_next_dim(&dims, &dim)) note.dynamic = note.dynamic || !dim.known || dim.value < 0;
    if (epctx_type_of(value->type).kind == EPCTX_TYPE_NONE || ops_has(&scope->types, value->name))
        return EPCTX_OK;
    OPS_TRY(lint_append(l, &scope->notes, sizeof *place, &place));
    *place = note;
    return lint_set(l, &scope->types, value->name, (uint32_t)scope->notes.count - 1);
}

/* Types from a list of ValueInfoProtos. */
epctx_status lint_note_list(linter *l, lint_frame *scope, epctx_view owner, uint32_t number) {
    epctx_cursor it = epctx_view_fields(owner, number);
    epctx_value_view value;
    if (!scope->typed) {
        epctx_map_init(&scope->types, &l->arena);
        scope->typed = true;
    }
    while (epctx_next_value(&it, &value)) OPS_TRY(lint_note_type(l, scope, &value));
    return EPCTX_OK;
}

/* The types of a function are already known. */
static epctx_status lint_note_types(linter *l, lint_frame *scope, epctx_view graph) {
    static const uint8_t lists[3] = {EPCTX_FIELD_GRAPH_VALUE_INFO, EPCTX_FIELD_GRAPH_INPUT,
                                     EPCTX_FIELD_GRAPH_OUTPUT};
    int i;
    for (i = scope->typed ? 3 : 0; i < 3; i++) OPS_TRY(lint_note_list(l, scope, graph, lists[i]));
    return EPCTX_OK;
}

/* ORT's contrib_defs.cc: all tensor types but strings, complex numbers and those of eight bits and
 * less that are no integers. */
bool epctx_lint_allows(int32_t elem_type) {
    return (elem_type >= 1 && elem_type <= 7) || (elem_type >= 9 && elem_type <= 13) ||
           elem_type == 16;
}

/* For lint_binary.c. */
static epctx_status lint_note_io(linter *l, const lint_frame *scope, epctx_str name, bool output) {
    const uint32_t at = epctx_map_get(&scope->types, name);
    lint_io *io;
    OPS_TRY(lint_append(l, &l->ios, sizeof *io, &io));
    io->name = name;
    io->output = output;
    io->weight = !output && epctx_map_get(&scope->names, name) == 1;
    io->given = !output && epctx_map_get(&scope->names, name) == 0;
    io->known = at != EPCTX_MAP_NONE;
    if (io->known) io->info = ((const lint_type_note *)scope->notes.items + at)->value;
    return EPCTX_OK;
}

static void lint_value(linter *l, lint_frame *scope, const lint_judged *judged, epctx_str name,
                       bool output) {
    uint32_t at = epctx_map_get(&scope->types, name);
    const lint_type_note *note;
    /* Shapes of outputs follow from those of inputs; some EPs do not see it. */
    bool fixed = judged->profile != NULL && judged->ours &&
                 (judged->profile->traits &
                  (output ? EPCTX_TRAIT_STATIC_OUTPUTS : EPCTX_TRAIT_STATIC_SHAPES)) != 0;
    note = at != EPCTX_MAP_NONE ? (const lint_type_note *)scope->notes.items + at : NULL;
    if (note == NULL || (note->is_tensor && note->elem_type == 0)) {
        if (output) {
            lint_say(l, EPCTX_RULE_NO_VALUE_TYPE, judged->node.name, NULL,
                     "output '%S' has no type, neither in value_info nor as a graph output: ORT "
                     "cannot infer it",
                     &name);
        }
        return;
    }
    if (!note->is_tensor || !epctx_lint_allows(note->elem_type)) {
        lint_say(l, output ? EPCTX_RULE_OUTPUT_TYPE : EPCTX_RULE_VALUE_TYPE, judged->node.name,
                 NULL,
                 "%s '%S' is of type %s; EPContext supports tensors of integers of 8 to 64 bits, "
                 "floats of 16 to 64 bits and bool",
                 output ? "output" : "input", &name,
                 note->is_tensor ? epctx_elem_name(note->elem_type) : "not a tensor");
    } else if (note->dynamic && fixed) {
        lint_say(l, EPCTX_RULE_DYNAMIC_SHAPE, judged->node.name, NULL,
                 "%s '%S' has %s, but EP '%s' needs fixed shapes", output ? "output" : "input",
                 &name, note->value.has_shape ? "a dynamic dimension" : "no shape",
                 judged->profile->name);
    }
}

/* -- attributes -- */

static const char *const lint_epnode_attrs[EPCTX_EPNODE_ATTR_COUNT] = {
#define LINT_ATTR_NAME(id, name, type, member) name,
    EPCTX_EPNODE_ATTR_LIST(LINT_ATTR_NAME)
#undef LINT_ATTR_NAME
};

/* -- profiles that share a source -- */

/* In-tree EP and plugin write the same source. */
static bool lint_is_variant(const epctx_profile *a, const epctx_profile *b) {
    return a->sources[0] != NULL && b->sources[0] != NULL &&
           strcmp(a->sources[0], b->sources[0]) == 0;
}

/* The one that a compatibility string of this EP tells, or NULL. */
static const epctx_profile *lint_told(const linter *l, const epctx_profile *one) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(l->model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair)) {
        epctx_str ep = pair.key;
        size_t count, i;
        const epctx_profile *all = epctx_profiles(&count);
        if (!epctx_str_starts(ep, EPCTX_COMPAT_PREFIX)) continue;
        ep.data += sizeof EPCTX_COMPAT_PREFIX - 1;
        ep.size -= sizeof EPCTX_COMPAT_PREFIX - 1;
        if (!lint_is_variant(epctx_profile_of(ep), one)) continue;
        for (i = 0; i < count; i++) {
            const fact *f = facts_find("profile", all[i].name);
            const char *starts = f != NULL ? fact_get(f, "compat_starts") : NULL;
            if (lint_is_variant(&all[i], one) && starts != NULL &&
                epctx_str_starts(pair.value, starts))
                return &all[i];
        }
    }
    return NULL;
}

/* Where a fact tells for which versions a rule holds, it decides, not the profile. */
static uint32_t lint_traits(const epctx_profile *profile) {
    const fact *f = facts_rule(epctx_rule_of(EPCTX_RULE_NO_PAYLOAD).id, profile->name);
    if (f == NULL) return profile->traits;
    return facts_hold(f, NULL) ? profile->traits | EPCTX_TRAIT_EMBED_ONE
                               : profile->traits & ~EPCTX_TRAIT_EMBED_ONE;
}

/* Makes `all` allow what `one` allows. What only leads to warnings counts for one of them, too. */
static void lint_allow(epctx_profile *all, const epctx_profile *one) {
    static const uint32_t either = EPCTX_TRAIT_ANY_CASE | EPCTX_TRAIT_NO_SOURCE |
                                   EPCTX_TRAIT_OWN_SOURCE | EPCTX_TRAIT_SECONDARY_CONTEXT |
                                   EPCTX_TRAIT_NO_DOTS | EPCTX_TRAIT_ANY_MAIN |
                                   EPCTX_TRAIT_XML_PAIR | EPCTX_TRAIT_STRIPPED_ENGINE;
    const uint32_t traits = lint_traits(one);
    all->traits = (all->traits & traits) | ((all->traits | traits) & either);
    all->required &= one->required;
    if (all->key != one->key) all->key = EPCTX_KEY_NONE;
    if (all->compat_fn != one->compat_fn) all->compat_fn = NULL;
}

/* The rules for nodes of a source: of the EP that the node (may be NULL) or the model tells, else
 * what any EP of this source accepts. */
static epctx_status lint_profile_of(linter *l, epctx_str source, const epctx_node_view *node,
                                    const epctx_profile **out) {
    const epctx_profile *one = epctx_profile_of(source);
    const epctx_profile *own = node != NULL ? epctx_profile_of_node(NULL, node) : one;
    const epctx_profile *told = own->attribute != NULL ? own : lint_told(l, one);
    size_t count, i, variants = 0;
    const epctx_profile *all = epctx_profiles(&count);
    epctx_profile *made, **place;
    for (i = 0; i < count; i++) variants += lint_is_variant(&all[i], one);
    *out = told != NULL ? told : one;
    if (told != NULL || variants < 2) return EPCTX_OK;
    for (i = 0; i < l->lenient.count; i++) {
        *out = ((epctx_profile **)l->lenient.items)[i];
        if (strcmp((*out)->name, one->name) == 0) return EPCTX_OK;
    }
    made = (epctx_profile *)epctx_arena_array(&l->arena, 1, sizeof *made);
    if (made == NULL) return ops_nomem(&l->arena, l->error);
    OPS_TRY(lint_append(l, &l->lenient, sizeof *place, &place));
    *made = *one;
    made->traits = lint_traits(one);
    for (i = 0; i < count; i++)
        if (lint_is_variant(&all[i], one)) lint_allow(made, &all[i]);
    *place = made;
    *out = made;
    return EPCTX_OK;
}

/* -- one node -- */

/* Reads one attribute as if the node had no others. */
static epctx_status lint_take(const epctx_attr_view *attr, epctx_epnode *out, epctx_error *error) {
    epctx_node record;
    epctx_attr one;
    memset(&record, 0, sizeof record);
    memset(&one, 0, sizeof one);
    one.name = attr->name;
    one.type = (epctx_attr_type)attr->type; /* 0 to 14, as attr views are read */
    one.i = attr->i;
    one.s = attr->s;
    record.attrs = &one;
    record.attr_count = 1;
    return epctx_epnode_from_record(&record, out, error);
}

/* Whether the EP that loads the node does not look at main_context. */
static epctx_status lint_skips_main(linter *l, const epctx_node_view *view, bool *skips) {
    const epctx_profile *forced = l->opts != NULL ? l->opts->profile : NULL;
    const epctx_profile *profile = forced;
    epctx_attr_view mode;
    if (forced == NULL)
        OPS_TRY(lint_profile_of(l, epctx_view_node_attr_str(view, "source"), view, &profile));
    *skips = (profile->traits & EPCTX_TRAIT_ANY_MAIN) != 0 &&
             epctx_view_node_find_attr(view, "embed_mode", &mode) && mode.i == 0;
    return EPCTX_OK;
}

static epctx_status lint_attrs(linter *l, const epctx_node_view *view, bool *readable) {
    epctx_cursor it = epctx_view_node_attrs(view);
    epctx_attr_view attr;
    *readable = true;
    while (epctx_next_attr(&it, &attr)) {
        epctx_epnode node;
        epctx_error error;
        const char *known = NULL;
        char text[LINT_ATTR_TEXT];
        int id;
        lint_attr_text(text, attr.name);
        if (attr.ref_attr_name.size > 0 && !l->in_function) {
            lint_say(l, EPCTX_RULE_REFERENCE, view->name, text,
                     "refers to attribute '%S' of a function, but is not in a function",
                     &attr.ref_attr_name);
        }
        for (id = 0; id < EPCTX_EPNODE_ATTR_COUNT; id++) {
            const char *name = lint_epnode_attrs[id];
            known = epctx_str_is(attr.name, name) ? name : known;
        }
        if (epctx_str_is(attr.name, EPCTX_WEIGHTS_ATTR)) continue; /* our own */
        if (known == NULL) {
            lint_say(l, EPCTX_RULE_EXTRA_ATTRIBUTE, view->name, text,
                     "attribute '%S' is not in the schema", &attr.name);
            continue;
        }
        if (lint_take(&attr, &node, &error) != EPCTX_OK) {
            bool type = node.present == 0, skips = false;
            *readable = false;
            if (!type && strcmp(known, "main_context") == 0)
                OPS_TRY(lint_skips_main(l, view, &skips));
            if (skips) continue;
            lint_say(l, type ? EPCTX_RULE_ATTRIBUTE_TYPE : EPCTX_RULE_ATTRIBUTE_VALUE, view->name,
                     text, "%s", error.message);
        }
    }
    return EPCTX_OK;
}

bool epctx_lint_is_misspelt(const epctx_node_view *node) {
    static const char *const names[] = {EPCTX_OP_TYPE, NULL};
    return epctx_str_is(node->domain, EPCTX_DOMAIN) && node->op_type.size >= 6 &&
           !epctx_str_is(node->op_type, EPCTX_OP_TYPE) &&
           epctx_nearest_name(node->op_type, names) != NULL;
}

void lint_op_spelling(linter *l, const epctx_node_view *node) {
    if (!epctx_lint_is_misspelt(node)) return;
    lint_say(l, EPCTX_RULE_OP_SPELLING, node->name, NULL,
             "operator '%S' of com.microsoft does not exist, did you mean " EPCTX_OP_TYPE "?",
             &node->op_type);
}

/* Whether names differ in one place, of at most two letters. */
static bool lint_is_near(epctx_str a, epctx_str b) {
    const size_t least = a.size < b.size ? a.size : b.size;
    const size_t most = a.size < b.size ? b.size : a.size;
    size_t front = 0, back = 0;
    while (front < least && a.data[front] == b.data[front]) front++;
    while (back < least - front && a.data[a.size - back - 1] == b.data[b.size - back - 1]) back++;
    return least > 6 && most - front - back <= 2;
}

/* The name of an EP that an unknown source nearly is, or NULL. */
static const char *lint_near_source(epctx_str source) {
    size_t count, i, k;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++)
        for (k = 0; k < 4 && all[i].sources[k] != NULL; k++)
            if (lint_is_near(source, epctx_str_of(all[i].sources[k]))) return all[i].sources[k];
    return NULL;
}

static epctx_status lint_unknown_source(linter *l, const epctx_epnode *node) {
    const char *near = lint_near_source(node->source);
    if (ops_has(&l->unknown_sources, node->source)) return EPCTX_OK;
    if (near != NULL)
        lint_say(l, EPCTX_RULE_MISSPELLED_SOURCE, node->name, "source",
                 "is '%S', did you mean '%s'?", &node->source, near);
    else
        lint_say(l, EPCTX_RULE_UNKNOWN_SOURCE, node->name, "source",
                 "is '%S', which no built-in profile knows", &node->source);
    return lint_set(l, &l->unknown_sources, node->source, 1);
}

/* A name under which epctx before 0.3 registered EPs. */
static bool lint_is_registration(epctx_str name) {
    return epctx_str_is(name, "epctx") || epctx_str_is(name, "epctx.virtual");
}

/* Chooses the profile for a node and checks its source. */
static epctx_status lint_source(linter *l, lint_judged *judged) {
    const epctx_epnode *node = &judged->node;
    const epctx_profile *forced = l->opts != NULL ? l->opts->profile : NULL;
    epctx_claim claim;
    judged->profile = forced;
    if (forced == NULL) OPS_TRY(lint_profile_of(l, node->source, &judged->view, &judged->profile));
    claim = epctx_profile_claims(judged->profile, node);
    judged->ours = claim != EPCTX_CLAIM_NO;
    if (claim == EPCTX_CLAIM_MISSING) {
        lint_say(l, EPCTX_RULE_NO_SOURCE, node->name, "source",
                 "is missing; EP '%s' accepts only nodes with '%s'", judged->profile->name,
                 judged->profile->sources[0] != NULL ? judged->profile->sources[0] : "its name");
    } else if (claim == EPCTX_CLAIM_SPELLING) {
        lint_say(l, EPCTX_RULE_SOURCE_SPELLING, node->name, "source",
                 "is '%S', but this EP accepts only '%s', exactly", &node->source,
                 judged->profile->sources[0]);
    } else if (claim == EPCTX_CLAIM_NO) {
        lint_say(l, EPCTX_RULE_FOREIGN, node->name, "source",
                 "is '%S': the node is not for EP '%s'", &node->source, judged->profile->name);
    } else if (node->source.size == 0) {
        lint_say(l, EPCTX_RULE_SOURCE_ABSENT, node->name, "source",
                 "is %s: only some EPs accept such a node",
                 (node->present & 1u << EPCTX_EPNODE_SOURCE) == 0 ? "missing" : "empty");
    } else if (lint_is_registration(node->source)) {
        lint_say(l, EPCTX_RULE_REGISTRATION, node->name, "source",
                 "is '%S': the EP took it for its name while compiling", &node->source);
    } else if (forced == NULL && (judged->profile->traits & EPCTX_TRAIT_ANY_EP) != 0) {
        OPS_TRY(lint_unknown_source(l, node));
    }
    return EPCTX_OK;
}

static bool lint_looks_like_path(epctx_str text) {
    static const char *const formats[] = {".bin", ".xml", ".dlc", ".mep"};
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    if (text.size == 0 || text.size > 260) return false;
    for (i = 0; i < text.size; i++)
        if ((unsigned char)text.data[i] < 0x20) return false;
    for (i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (ops_ends(text, formats[i])) return true;
    for (i = 0; i < count; i++) { /* as EPs name what they write */
        const char *end = strrchr(all[i].binary, '.');
        if (end != NULL && ops_ends(text, end)) return true;
    }
    return false;
}

/* Checks payload and attributes of a node by its profile. */
static void lint_context(linter *l, lint_judged *judged) {
    const epctx_epnode *node = &judged->node;
    const epctx_profile *profile = judged->profile;
    epctx_str context = node->ep_cache_context;
    bool each = (profile->traits & EPCTX_TRAIT_EACH_CONTEXT) != 0;
    bool needs = node->main_context == 1 || each;
    bool dlc = epctx_view_node_attr_str(&judged->view, "ep_dlc_context").size > 0;
    int id;
    judged->context = context.size > 0 || dlc;
    for (id = 0; id < EPCTX_EPNODE_ATTR_COUNT; id++) {
        const char *name = lint_epnode_attrs[id];
        if ((profile->required & ~node->present & 1u << id) != 0 && id != EPCTX_EPNODE_SOURCE) {
            lint_say(l, EPCTX_RULE_NO_ATTRIBUTE, node->name, name,
                     "is not stored, and EP '%s' does not use the default", profile->name);
        }
    }
    if (!judged->context && node->embed_mode == 0 && needs) {
        lint_say(l, EPCTX_RULE_PATH_EMPTY, node->name, "ep_cache_context",
                 "%s, expected the path of the context binary (embed_mode is 0)",
                 (node->present & 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT) != 0 ? "is empty"
                                                                            : "is missing");
    } else if (!judged->context && node->main_context == 1) {
        lint_say(l, EPCTX_RULE_NO_CONTEXT, node->name, "ep_cache_context",
                 "%s, but main_context and embed_mode are 1: expected the context here",
                 (node->present & 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT) != 0 ? "is empty"
                                                                            : "is missing");
    } else if (!judged->context && each) {
        lint_say(l, EPCTX_RULE_NO_PAYLOAD, node->name, "ep_cache_context",
                 "is missing: with EP '%s' every node has its own context", profile->name);
    } else if (judged->context && node->main_context == 0 && !each &&
               (profile->traits & EPCTX_TRAIT_SECONDARY_CONTEXT) == 0 &&
               ((profile->traits & EPCTX_TRAIT_ANY_MAIN) == 0 || node->embed_mode == 1)) {
        lint_say(l, EPCTX_RULE_PAYLOAD_IGNORED, node->name, "ep_cache_context",
                 "has %u bytes, but main_context is 0: they are not read", (uint64_t)context.size);
    }
    if (node->embed_mode == 1 && context.size >= (size_t)INT32_MAX) {
        lint_say(l, EPCTX_RULE_PAYLOAD_SIZE, node->name, "ep_cache_context",
                 "has %u bytes: ORT's C API creates attributes of less than 2 GiB only",
                 (uint64_t)context.size);
    }
    if (node->embed_mode == 1 && lint_looks_like_path(context)) {
        lint_say(l, EPCTX_RULE_LIKE_PATH, node->name, "ep_cache_context",
                 "is '%S': a file name? embed_mode is %s", &context,
                 (node->present & 1u << EPCTX_EPNODE_EMBED_MODE) != 0 ? "1"
                                                                      : "absent, which means 1");
    }
    if (node->embed_mode == 0 && epctx_lint_is_payload(context)) {
        lint_say(l, EPCTX_RULE_PAYLOAD_AS_PATH, node->name, "ep_cache_context",
                 "has %u bytes that are no path, but embed_mode is 0: expected the path of a file",
                 (uint64_t)context.size);
    }
    if (node->embed_mode == 0 && (profile->traits & EPCTX_TRAIT_ONLY_EMBEDDED) != 0) {
        lint_say(l, EPCTX_RULE_ONLY_EMBEDDED, node->name, "embed_mode",
                 "is 0, but EP '%s' reads no files", profile->name);
    }
}

epctx_status lint_epnode(linter *l, lint_frame *scope, const epctx_node_view *view,
                         epctx_view graph) {
    lint_judged *place = NULL;
    const uint32_t both = 1u << EPCTX_EPNODE_MAIN_CONTEXT | 1u << EPCTX_EPNODE_EMBED_MODE;
    lint_judged judged;
    epctx_cursor it;
    epctx_str name;
    bool readable;
    memset(&judged, 0, sizeof judged);
    judged.view = *view;
    judged.graph = l->graph;
    judged.node = epctx_epnode_default();
    judged.node.name = view->name;
    if (!epctx_str_is(view->domain, EPCTX_DOMAIN)) {
        lint_say(l, EPCTX_RULE_WRONG_DOMAIN, view->name, NULL,
                 "op_type EPContext has domain '%S', expected com.microsoft", &view->domain);
        return EPCTX_OK;
    }
    if (view->name.size == 0) {
        lint_say(l, EPCTX_RULE_NO_NAME, view->name, NULL, "an EPContext node has no name");
    } else if (ops_has(&l->epnode_names, view->name)) {
        lint_say(l, EPCTX_RULE_DOUBLED_EPNODE, view->name, NULL,
                 "another EPContext node has the same name: ORT and EPs find nodes by name");
    } else {
        OPS_TRY(lint_set(l, &l->epnode_names, view->name, 1));
    }
    if (view->input_count == 0) {
        lint_say(l, EPCTX_RULE_NO_INPUT, view->name, NULL,
                 "the node has no input, but the schema of ORT before 1.28.1 requires one");
    }
    if (view->output_count == 0) {
        lint_say(l, EPCTX_RULE_NO_OUTPUT, view->name, NULL,
                 "the node has no output, but the schema requires one");
    }
    if (l->in_function || l->in_training || scope->outer != NULL) {
        lint_say(l, EPCTX_RULE_IN_BODY, view->name, NULL,
                 "the node is inside '%S', where no known EP loads it", &l->graph);
    }
    OPS_TRY(lint_attrs(l, view, &readable));
    if (readable) {
        epctx_view_read_epnode(view, &judged.node, NULL);
        if ((judged.node.present & both) != both) {
            lint_say(l, EPCTX_RULE_DEFAULTS, view->name, NULL,
                     "main_context or embed_mode is not stored and counts as 1");
        }
        if ((judged.node.present & 1u << EPCTX_EPNODE_EP_SDK_VERSION) == 0)
            lint_say(l, EPCTX_RULE_NO_SDK, view->name, "ep_sdk_version", "is not stored");
        OPS_TRY(lint_source(l, &judged));
        l->profile = judged.ours ? judged.profile->name : NULL;
        if (judged.ours) lint_context(l, &judged);
        l->profile = NULL;
        if (l->in_training)
            judged.ours = false; /* no EP sees it, so it belongs to no party */
        else
            OPS_TRY(lint_append(l, &l->nodes, sizeof *place, &place));
    }
    OPS_TRY(lint_note_types(l, scope, graph));
    judged.first_io = l->ios.count;
    it = epctx_view_node_inputs(view);
    while (epctx_next_str(&it, &name)) {
        lint_value(l, scope, &judged, name, false);
        if (epctx_map_get(&scope->names, name) == 1)
            lint_say(l, EPCTX_RULE_WEIGHTLESS, view->name, NULL,
                     "input '%S' is an initializer: the context does not contain it", &name);
        if (name.size > 0) OPS_TRY(lint_note_io(l, scope, name, false));
    }
    it = epctx_view_node_outputs(view);
    while (epctx_next_str(&it, &name)) {
        if (name.size == 0) continue;
        lint_value(l, scope, &judged, name, true);
        OPS_TRY(lint_note_io(l, scope, name, true));
    }
    judged.io_count = l->ios.count - judged.first_io;
    if (place != NULL) *place = judged;
    return EPCTX_OK;
}

/* -- nodes of one EP together -- */

lint_judged *lint_judged_at(const linter *l, size_t i) {
    return (lint_judged *)l->nodes.items + i;
}

static lint_party *lint_party_at(const linter *l, size_t i) {
    return (lint_party *)l->parties.items + i;
}

/* Adds a node to its party, which the first node creates. */
static epctx_status lint_join_party(linter *l, size_t at) {
    lint_judged *judged = lint_judged_at(l, at);
    bool own = (judged->profile->traits & EPCTX_TRAIT_OWN_SOURCE) != 0;
    epctx_str key = own ? judged->node.source : epctx_str_of(judged->profile->name);
    lint_party *party;
    uint32_t found;
    OPS_TRY(lint_add(l, &l->party_of, key, (uint32_t)l->parties.count, &found));
    if (found == EPCTX_MAP_NONE) {
        found = (uint32_t)l->parties.count;
        OPS_TRY(lint_append(l, &l->parties, sizeof *party, &party));
        party->profile = judged->profile;
        party->source = judged->node.source;
        party->first = at;
        epctx_map_init(&party->keys, &l->arena);
    }
    party = lint_party_at(l, found);
    if (party->nodes++ > 0) lint_judged_at(l, party->last)->next = at + 1;
    party->last = at;
    judged->party = found;
    party->primaries += judged->node.main_context == 1;
    party->embedded += judged->context && judged->node.embed_mode == 1;
    party->files += judged->context && judged->node.embed_mode == 0;
    return EPCTX_OK;
}

/* Reports a key by which two nodes would get the same graph of one context. */
static epctx_status lint_key(linter *l, lint_party *party, size_t i) {
    lint_judged *judged = lint_judged_at(l, i);
    const epctx_epnode *node = &judged->node;
    epctx_str key = party->profile->key == EPCTX_KEY_NODE_NAME ? node->name : node->partition_name;
    uint32_t other;
    if (party->profile->key == EPCTX_KEY_NONE) return EPCTX_OK;
    if (key.size == 0) {
        bool stored = (party->profile->required & 1u << EPCTX_EPNODE_PARTITION_NAME) != 0;
        if (party->nodes > 1 && !stored) {
            lint_say(l, EPCTX_RULE_NO_KEY, node->name,
                     party->profile->key == EPCTX_KEY_PARTITION ? "partition_name" : NULL,
                     "is missing: EP '%s' finds the graph in the context by it",
                     party->profile->name);
        }
        return EPCTX_OK;
    }
    if (party->profile->key == EPCTX_KEY_NODE_NAME)
        return EPCTX_OK; /* equal names are reported for every EP */
    OPS_TRY(lint_add(l, &party->keys, key, (uint32_t)i, &other));
    if (other != EPCTX_MAP_NONE) {
        const epctx_epnode *first = &lint_judged_at(l, other)->node;
        bool one = node->main_context == 0 || first->main_context == 0 ||
                   (node->embed_mode == 0 && first->embed_mode == 0 &&
                    epctx_str_eq(node->ep_cache_context, first->ep_cache_context));
        if (one) {
            lint_say(l, EPCTX_RULE_DOUBLED_KEY, node->name, "partition_name",
                     "is '%S', as in node '%S': both would get the same graph", &key, &first->name);
        }
    }
    return EPCTX_OK;
}

static epctx_status lint_party_node(linter *l, lint_party *party, size_t i) {
    lint_judged *judged = lint_judged_at(l, i);
    const epctx_epnode *node = &judged->node;
    const epctx_profile *profile = party->profile;
    OPS_TRY(lint_key(l, party, i));
    if (node->main_context == 1 || (profile->traits & EPCTX_TRAIT_EACH_CONTEXT) != 0 ||
        (profile->traits & EPCTX_TRAIT_SECONDARY_CONTEXT) != 0)
        return EPCTX_OK;
    if (node->embed_mode == 0 && (profile->traits & EPCTX_TRAIT_ANY_MAIN) != 0) return EPCTX_OK;
    if (judged->context && (profile->traits & EPCTX_TRAIT_ANY_EP) != 0)
        return EPCTX_OK; /* some EPs have a context in each node and never look at main_context */
    if (party->primaries == 0) {
        lint_say(l, EPCTX_RULE_NO_PRIMARY, node->name, "main_context",
                 "is 0, but no node of source '%S' has main_context 1", &node->source);
    } else if (!judged->context && node->embed_mode == 1 &&
               (lint_traits(profile) & EPCTX_TRAIT_EMBED_ONE) != 0) {
        lint_say(l, EPCTX_RULE_NO_PAYLOAD, node->name, "ep_cache_context",
                 "is missing: EP '%s' cannot load several embedded partitions and reads the "
                 "missing context as an empty path (ORT issue 31977)",
                 profile->name);
    }
    return EPCTX_OK;
}

static bool lint_fits(const char *pattern, epctx_str path) {
    return epctx_profile_name_fits(pattern, path, epctx_str_of(""));
}

/* Whether a node names no binary that could hold several graphs, but an IR: it is one graph. */
static bool lint_wraps_ir(const lint_judged *judged) {
    return (judged->profile->traits & EPCTX_TRAIT_XML_PAIR) != 0 && judged->node.embed_mode == 0 &&
           lint_fits("*.xml", judged->node.ep_cache_context);
}

/* An EP that looks its graph up by partition_name needs one, although it does not insist on the
 * attribute (`required`, which has a rule of its own). */
static void lint_partition(linter *l, const lint_judged *judged) {
    const epctx_profile *profile = judged->profile;
    if (profile->key == EPCTX_KEY_PARTITION &&
        (profile->required & 1u << EPCTX_EPNODE_PARTITION_NAME) == 0 &&
        judged->node.partition_name.size == 0 && !lint_wraps_ir(judged))
        lint_say(l, EPCTX_RULE_PROFILE, judged->node.name, "partition_name",
                 "is missing: EP '%s' finds the graph in the container by this name",
                 profile->name);
}

/* An engine without weights is refitted from the model that onnx_model_filename names. */
static void lint_stripped(linter *l, const lint_judged *judged) {
    const epctx_epnode *node = &judged->node;
    if ((judged->profile->traits & EPCTX_TRAIT_STRIPPED_ENGINE) != 0 && node->embed_mode == 0 &&
        lint_fits("*.stripped.engine", node->ep_cache_context) &&
        node->onnx_model_filename.size == 0)
        lint_say(l, EPCTX_RULE_PROFILE, node->name, "onnx_model_filename",
                 "is missing: the engine has no weights and is refitted from this model");
}

/* Whether the fact "attribute" holds for a node: of any source, or of that of the fact; always, or
 * if another attribute has a value, "NAME VALUE". */
static bool lint_is_meant(const fact *f, const lint_judged *judged) {
    const char *source = fact_get(f, "source");
    epctx_str value = epctx_str_of(fact_get(f, "when"));
    const epctx_str name = epctx_str_cut(&value, ' ');
    epctx_cursor it = epctx_view_node_attrs(&judged->view);
    epctx_attr_view attr;
    if (source != NULL && !epctx_str_is(judged->node.source, source)) return false;
    while (name.size > 0 && epctx_next_attr(&it, &attr))
        if (epctx_str_eq(attr.name, name) && epctx_str_eq(attr.s, value)) return true;
    return name.size == 0;
}

static bool lint_has_value(const lint_judged *judged, epctx_str name) {
    epctx_cursor inputs = epctx_view_node_inputs(&judged->view);
    epctx_cursor outputs = epctx_view_node_outputs(&judged->view);
    epctx_str one;
    while (epctx_next_str(&inputs, &one))
        if (epctx_str_eq(one, name)) return true;
    while (epctx_next_str(&outputs, &one))
        if (epctx_str_eq(one, name)) return true;
    return false;
}

/* Pairs NAME=NAME IN THE BINARY;... of inputs and outputs. The EP writes names that the node does
 * not have itself, where ONNX Runtime renamed an output; whether one that the node has is found,
 * only the binary tells (lint_binary.c). */
static void lint_renames(linter *l, const lint_judged *judged, const char *attribute,
                         const char *what_happens) {
    epctx_str rest = epctx_view_node_attr_str(&judged->view, attribute);
    while (rest.size > 0) {
        epctx_str pair = epctx_str_cut(&rest, ';');
        const epctx_str name = epctx_str_cut(&pair, '=');
        if (name.size > 0 && !lint_has_value(judged, name))
            lint_say(l, EPCTX_RULE_STALE_OVERRIDE, judged->node.name, attribute,
                     "has '%S', which is neither an input nor an output of the node: %s", &name,
                     what_happens);
    }
}

/* What a fact "attribute" says of a node of its EP. */
static void lint_attribute(linter *l, const lint_judged *judged, const fact *f) {
    const char *name = strchr(f->name, ' ') + 1; /* "EP ATTRIBUTE" */
    const char *why = fact_get(f, "why"), *words = fact_get(f, "words");
    const char *renames = fact_get(f, "renames");
    epctx_attr_view attr;
    const bool found = epctx_view_node_find_attr(&judged->view, name, &attr);
    if (why != NULL && (!found || (attr.type == EPCTX_ATTR_STRING && attr.s.size == 0)))
        lint_say(l, EPCTX_RULE_PROFILE, judged->node.name, name, "is missing: %s", why);
    else if (found && words != NULL && !fact_list_has(words, attr.s))
        lint_say(l, EPCTX_RULE_PROFILE, judged->node.name, name, "is '%S', expected one of: %s",
                 &attr.s, words);
    if (renames != NULL) lint_renames(l, judged, name, renames);
}

/* Rules of single EPs for their nodes: of the profile, and of the facts about their attributes. */
static void lint_profile(linter *l, const lint_party *party) {
    const epctx_str name = epctx_str_of(party->profile->name);
    size_t at = party->first;
    size_t k;
    for (k = 0; k < party->nodes; k++) {
        const lint_judged *judged = lint_judged_at(l, at);
        size_t next = 0;
        const fact *f;
        lint_partition(l, judged);
        lint_stripped(l, judged);
        while ((f = facts_next("attribute", &next)) != NULL)
            if (fact_has(f, "profiles", name) && lint_is_meant(f, judged))
                lint_attribute(l, judged, f);
        at = judged->next - 1;
    }
}

/* A path without "./" in front, which names the same file. */
static epctx_str lint_plain_path(epctx_str path) {
    while (epctx_str_starts(path, "./")) {
        path.data += 2;
        path.size -= 2;
    }
    return path;
}

/* Contexts beside the first one, which the EP takes for all nodes. An OpenVINO IR is none. */
static void lint_one_context(linter *l, const lint_party *party) {
    const epctx_epnode *first = NULL;
    size_t at = party->first, k;
    for (k = 0; k < party->nodes; k++) {
        const lint_judged *judged = lint_judged_at(l, at);
        const epctx_epnode *node = &judged->node;
        at = judged->next - 1;
        if (!judged->context || lint_wraps_ir(judged)) continue;
        if (first == NULL) {
            first = node;
        } else if (node->embed_mode == 1 || first->embed_mode == 1 ||
                   !epctx_str_eq(lint_plain_path(node->ep_cache_context),
                                 lint_plain_path(first->ep_cache_context))) {
            lint_say(l, EPCTX_RULE_PROFILE, node->name, "ep_cache_context",
                     "is a second context: EP '%s' reads one for a model, that of node '%S'",
                     party->profile->name, &first->name);
        }
    }
}

static void lint_judge_party(linter *l, const lint_party *party) {
    const epctx_profile *profile = party->profile;
    const epctx_epnode *first = &lint_judged_at(l, party->first)->node;
    if ((profile->traits & EPCTX_TRAIT_NO_MIX) != 0 && party->embedded > 0 && party->files > 0) {
        lint_say(
            l, EPCTX_RULE_MIXED_MODES, first->name, "embed_mode",
            "%u contexts are embedded and %u are files; EP '%s' accepts only one kind in a model",
            party->embedded, party->files, profile->name);
    }
    if ((profile->traits & EPCTX_TRAIT_ONE_PRIMARY) != 0 && party->primaries > 1) {
        lint_say(l, EPCTX_RULE_MANY_PRIMARIES, first->name, "main_context",
                 "%u nodes are primary, but EP '%s' needs exactly one", party->primaries,
                 profile->name);
    }
    if ((profile->traits & EPCTX_TRAIT_ONE_NODE) != 0 && l->main_nodes != 1) {
        lint_say(l, EPCTX_RULE_MORE_NODES, first->name, NULL,
                 "the graph has %u nodes, but EP '%s' needs exactly one in a compiled model",
                 l->main_nodes, profile->name);
    }
    if ((profile->traits & EPCTX_TRAIT_ONE_CONTEXT) != 0) lint_one_context(l, party);
    lint_profile(l, party);
}

/* An embedded context of one that is read for a model, in a node that never comes first. */
static epctx_status lint_places(linter *l) {
    epctx_list groups;
    size_t i;
    OPS_TRY(place_find(l->model, &l->arena, &groups, l->error));
    for (i = 0; i < groups.count; i++) {
        const place_group *group = (const place_group *)groups.items + i;
        bool late = false;
        if (group->held && group->first_number != group->holder_number)
            OPS_TRY(place_is_late(l->model, group, &l->arena, &late, l->error));
        if (late) {
            lint_say(l, EPCTX_RULE_CONTEXT_PLACE, group->holder.name, "ep_cache_context",
                     "is here, but the EP reads it at the node that ORT hands over first, '%S'",
                     &group->first.name);
        }
    }
    return EPCTX_OK;
}

static bool lint_wants_places(const linter *l) {
    size_t i;
    for (i = 0; i < l->parties.count; i++) {
        const lint_party *party = lint_party_at(l, i);
        if ((party->profile->traits & EPCTX_TRAIT_ONE_CONTEXT) != 0 && party->embedded > 0 &&
            party->nodes > 1)
            return true;
    }
    return false;
}

epctx_status lint_parties(linter *l) {
    size_t i;
    for (i = 0; i < l->nodes.count; i++)
        if (lint_judged_at(l, i)->ours) OPS_TRY(lint_join_party(l, i));
    for (i = 0; i < l->nodes.count; i++) {
        const lint_judged *judged = lint_judged_at(l, i);
        if (judged->ours) {
            l->graph = judged->graph;
            l->profile = judged->profile->name;
            OPS_TRY(lint_party_node(l, lint_party_at(l, judged->party), i));
        }
    }
    l->graph = epctx_str_of("");
    for (i = 0; i < l->parties.count; i++) {
        l->profile = lint_party_at(l, i)->profile->name;
        lint_judge_party(l, lint_party_at(l, i));
    }
    l->profile = NULL;
    return lint_wants_places(l) ? lint_places(l) : EPCTX_OK;
}

/* -- build stamps -- */

/* How many nodes have a context that this stamp may be about: nodes of no other stamp, and none of
 * the EP itself. 0: there are others, or nothing is certain. */
static size_t lint_orphans(const linter *l, epctx_str ep) {
    const epctx_profile *profile = epctx_profile_of(ep);
    size_t count = 0, i;
    epctx_str stamp;
    for (i = 0; i < l->nodes.count; i++) {
        const lint_judged *judged = lint_judged_at(l, i);
        const epctx_epnode *node = &judged->node;
        const epctx_profile *named = epctx_profile_of(node->source);
        const bool stamped = epctx_model_get_stamp(l->model, node->source, &stamp);
        if (epctx_str_eq(node->source, ep)) return 0;
        if ((profile->traits & EPCTX_TRAIT_ANY_EP) == 0 &&
            epctx_profile_claims(profile, node) == EPCTX_CLAIM_YES)
            return 0;
        if (stamped || node->ep_cache_context.size == 0) continue;
        /* A name that nobody knows may be that under which the EP is registered. */
        if (node->source.size > 0 && (named->traits & EPCTX_TRAIT_ANY_EP) != 0) return 0;
        count++;
    }
    return count;
}

/* The stamp of an EP that no node is for, while as many nodes as it has contexts have none. */
static void lint_stamp(linter *l, epctx_str ep, epctx_str stamp) {
    epctx_stamp_line line;
    epctx_str text;
    size_t binaries = 0, i;
    while (epctx_stamp_next_line(&stamp, &line)) binaries += epctx_str_is(line.word, "binary");
    if (binaries == 0 || lint_orphans(l, ep) != binaries) return;
    for (i = 0; i < l->nodes.count; i++) {
        const epctx_epnode *node = &lint_judged_at(l, i)->node;
        if (node->ep_cache_context.size == 0 ||
            epctx_model_get_stamp(l->model, node->source, &text))
            continue;
        lint_say(l, EPCTX_RULE_OTHER_EP, node->name, "source",
                 "is '%S', but the build stamp says that EP '%S' compiled the context",
                 &node->source, &ep);
    }
}

void lint_stamps(linter *l) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(l->model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair)) {
        epctx_str ep = pair.key;
        if (!epctx_str_starts(ep, EPCTX_BUILD_PREFIX)) continue;
        ep.data += sizeof EPCTX_BUILD_PREFIX - 1;
        ep.size -= sizeof EPCTX_BUILD_PREFIX - 1;
        /* E073 has the source of these corrected, which leaves the stamp. */
        if (!lint_is_registration(ep)) lint_stamp(l, ep, pair.value);
    }
}

/* -- compatibility entries -- */

/* The text in lower case, in the arena. */
static epctx_status lint_lowered(linter *l, epctx_str text, epctx_str *out) {
    char *copy = epctx_arena_copy(&l->arena, text);
    size_t i;
    if (copy == NULL) return ops_nomem(&l->arena, l->error);
    for (i = 0; i < text.size; i++)
        copy[i] = (char)(copy[i] >= 'A' && copy[i] <= 'Z' ? copy[i] - 'A' + 'a' : copy[i]);
    out->data = copy;
    out->size = text.size;
    return EPCTX_OK;
}

static bool lint_has_party(const linter *l, const epctx_profile *profile) {
    return (profile->traits & EPCTX_TRAIT_OWN_SOURCE) == 0 &&
           epctx_map_get(&l->party_of, epctx_str_of(profile->name)) != EPCTX_MAP_NONE;
}

/* Nodes of other EPs than the one that was asked about are in no party: their source, and the
 * profile that it tells. */
static epctx_status lint_foreign_sources(linter *l, epctx_map *sources) {
    size_t i;
    for (i = 0; i < l->nodes.count; i++) {
        const lint_judged *judged = lint_judged_at(l, i);
        const epctx_profile *own = epctx_profile_of(judged->node.source);
        epctx_str source;
        if (judged->ours) continue;
        OPS_TRY(lint_lowered(l, judged->node.source, &source));
        OPS_TRY(lint_set(l, sources, source, 1));
        if ((own->traits & EPCTX_TRAIT_ANY_EP) == 0)
            OPS_TRY(lint_set(l, sources, epctx_str_of(own->name), 1));
    }
    return EPCTX_OK;
}

/* One entry of the metadata. `sources` has the sources of the nodes in small letters; `told` gets
 * the EPs that an entry is for. */
static epctx_status lint_compat_entry(linter *l, epctx_str key, epctx_str value,
                                      const epctx_map *sources, epctx_map *told) {
    const epctx_profile *profile;
    epctx_str ep;
    epctx_str lowered;
    ep.data = key.data + sizeof EPCTX_COMPAT_PREFIX - 1;
    ep.size = key.size - (sizeof EPCTX_COMPAT_PREFIX - 1);
    OPS_TRY(lint_profile_of(l, ep, NULL, &profile));
    OPS_TRY(lint_lowered(l, ep, &lowered));
    OPS_TRY(lint_set(l, told, lowered, 1));
    OPS_TRY(lint_set(l, told, epctx_str_of(profile->name), 1));
    if (l->parties.count > 0 && epctx_map_get(sources, lowered) == EPCTX_MAP_NONE &&
        epctx_map_get(sources, epctx_str_of("")) == EPCTX_MAP_NONE && /* it may be for any EP */
        epctx_map_get(sources, epctx_str_of(profile->name)) == EPCTX_MAP_NONE &&
        !lint_has_party(l, profile)) {
        lint_say(l, EPCTX_RULE_STALE_COMPAT, key, NULL,
                 "no node is for EP '%S': left over from an earlier compilation?", &ep);
    }
    if (value.size == 0) {
        lint_say(l, EPCTX_RULE_COMPAT_SYNTAX, key, NULL, "the entry for EP '%S' is empty", &ep);
    } else if (facts_layout(profile->name, value) != NULL &&
               epctx_compat_compare(profile, value, value, NULL) == EPCTX_COMPAT_NOT_APPLICABLE) {
        lint_say(l, EPCTX_RULE_COMPAT_SYNTAX, key, NULL,
                 "is '%S', but EP '%S' writes six fields separated by ':', or v2 and seven", &value,
                 &ep);
    }
    return EPCTX_OK;
}

epctx_status lint_compat(linter *l) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(l->model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_map sources;
    epctx_map told;
    epctx_pair pair;
    epctx_str source;
    size_t i;
    epctx_map_init(&sources, &l->arena);
    epctx_map_init(&told, &l->arena);
    for (i = 0; i < l->parties.count; i++) {
        const lint_party *party = lint_party_at(l, i);
        OPS_TRY(lint_lowered(l, party->source, &source));
        OPS_TRY(lint_set(l, &sources, source, 1));
    }
    OPS_TRY(lint_foreign_sources(l, &sources));
    while (epctx_next_pair(&it, &pair))
        if (epctx_str_starts(pair.key, EPCTX_COMPAT_PREFIX))
            OPS_TRY(lint_compat_entry(l, pair.key, pair.value, &sources, &told));
    for (i = 0; i < l->parties.count; i++) {
        const lint_party *party = lint_party_at(l, i);
        bool own = (party->profile->traits & EPCTX_TRAIT_OWN_SOURCE) != 0;
        OPS_TRY(lint_lowered(l, party->source, &source));
        if (!ops_has(&told, source) &&
            (own || !ops_has(&told, epctx_str_of(party->profile->name)))) {
            lint_say(l, EPCTX_RULE_NO_COMPAT, party->source, NULL,
                     "there is no metadata entry " EPCTX_COMPAT_PREFIX "%S", &party->source);
        }
    }
    return EPCTX_OK;
}
