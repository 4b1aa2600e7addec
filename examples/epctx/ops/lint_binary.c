/* lint_binary.c - EPContext nodes beside what their context binaries tell of themselves. */
#include "lint_internal.h"
#include "../binary/context.h"

/* A context of an EP: a file, which several nodes may name, or what a node embeds. */
typedef struct lint_binary {
    const lint_judged *owner; /* the first node that has it */
    const char *attribute;    /* of it, that has the context */
    const char *path;         /* NULL: embedded */
    bool usable;              /* its graphs can be believed */
    size_t next;              /* 1 + index of one of another party in the file; 0: the last */
    epctx_map graphs;         /* name -> index */
    size_t any;               /* index of the first that has no name, which any node means */
    epctx_mapping mapping;
    binary_facts facts;
} lint_binary;

static lint_binary *lint_binary_at(const linter *l, size_t i) {
    return (lint_binary *)l->binaries.items + i;
}

/* -- reading -- */

/* Files by what nodes name, and the contexts read from each. */
typedef struct lint_lookup {
    epctx_map files; /* name -> index of the linter's */
    size_t *first;   /* of each file: 1 + index of the first context, then lint_binary.next */
} lint_lookup;

static epctx_status lint_begin_lookup(linter *l, lint_lookup *lookup) {
    const bool unread = l->opts != NULL && l->opts->no_files;
    OPS_TRY(ops_array(&l->arena, l->file_count, sizeof *lookup->first, &lookup->first, l->error));
    return binary_name_files(l->files, unread ? 0 : l->file_count, &l->arena, &lookup->files,
                             l->error);
}

/* The context of a file that a party has read; SIZE_MAX: none yet. */
static size_t lint_read_before(const linter *l, size_t first, size_t party) {
    while (first != 0 && lint_binary_at(l, first - 1)->owner->party != party)
        first = lint_binary_at(l, first - 1)->next;
    return first - 1;
}

static epctx_status lint_note_graphs(linter *l, lint_binary *binary) {
    const binary_facts *facts = &binary->facts;
    size_t i;
    epctx_map_init(&binary->graphs, &l->arena);
    binary->any = facts->id.kind == EPCTX_BINARY_OPENVINO_IR ? 0 : SIZE_MAX;
    for (i = 0; i < facts->graph_count; i++)
        if (facts->graphs[i].name.size == 0)
            binary->any = i < binary->any ? i : binary->any;
        else if (!ops_has(&binary->graphs, facts->graphs[i].name))
            OPS_TRY(lint_set(l, &binary->graphs, facts->graphs[i].name, (uint32_t)i));
    return EPCTX_OK;
}

/* What a node has itself: `at` of the list, or SIZE_MAX. */
static epctx_status lint_binary_of(linter *l, lint_lookup *lookup, const lint_judged *judged,
                                   size_t *at) {
    const epctx_io *io = epctx_model_io(l->model);
    binary_place place;
    lint_binary *binary;
    epctx_span bytes;
    uint32_t file = EPCTX_MAP_NONE;
    *at = SIZE_MAX;
    if (!binary_place_of(&judged->view, &judged->node, &place)) return EPCTX_OK;
    if (!place.embedded) {
        file = epctx_map_get(&lookup->files, place.context);
        if (file == EPCTX_MAP_NONE || io == NULL) return EPCTX_OK;
        *at = lint_read_before(l, lookup->first[file], judged->party);
        if (*at != SIZE_MAX) return EPCTX_OK;
    }
    OPS_TRY(lint_append(l, &l->binaries, sizeof *binary, &binary));
    binary->owner = judged;
    binary->attribute = place.attribute;
    bytes.data = (const uint8_t *)place.context.data;
    bytes.size = place.context.size;
    if (!place.embedded) {
        binary->path = l->files[file].path;
        if (io->map_fn(io->user, NULL, binary->path, false, &binary->mapping, NULL) != EPCTX_OK) {
            l->binaries.count--; /* it is gone meanwhile */
            return EPCTX_OK;
        }
        bytes.data = binary->mapping.data;
        bytes.size = binary->mapping.size;
        binary->next = lookup->first[file];
        lookup->first[file] = l->binaries.count;
    }
    *at = l->binaries.count - 1;
    OPS_TRY(binary_read_for(judged->profile, bytes, l->asker, &l->arena, &binary->facts, l->error));
    return lint_note_graphs(l, binary);
}

static void lint_close_binaries(linter *l) {
    const epctx_io *io = epctx_model_io(l->model);
    size_t i;
    for (i = 0; i < l->binaries.count; i++) {
        lint_binary *binary = lint_binary_at(l, i);
        if (binary->path != NULL) io->unmap_fn(io->user, &binary->mapping);
    }
}

/* -- the kind of file -- */

/* Whether the formats of a profile's EP are known, so that another one is worth a word. */
static bool lint_knows_formats(const epctx_profile *profile) {
#define LINT_WRITER(kind, sort, name, profile, cure) profile,
    static const char *const writers[] = {EPCTX_BINARY_LIST(LINT_WRITER)};
#undef LINT_WRITER
    size_t i;
    if ((profile->traits & EPCTX_TRAIT_ANY_EP) != 0) return false;
    for (i = 0; i < sizeof writers / sizeof writers[0]; i++)
        if (writers[i] != NULL && binary_is_of(writers[i], profile)) return true;
    return false;
}

/* No EP reads the node, but an EP that requires a source wrote its context. */
static void lint_binary_source(linter *l, const lint_binary *binary) {
    const epctx_epnode *node = &binary->owner->node;
    const epctx_binary_id *id = &binary->facts.id;
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count), *needs = NULL;
    if (node->source.size > 0 || id->profile == NULL) return;
    for (i = 0; i < count; i++) {
        if ((all[i].traits & EPCTX_TRAIT_ANY_EP) != 0 || !binary_is_of(id->profile, &all[i]))
            continue;
        if (epctx_profile_claims(&all[i], node) == EPCTX_CLAIM_YES) return;
        needs = needs == NULL ? &all[i] : needs;
    }
    if (needs == NULL || needs->sources[0] == NULL) return;
    lint_say(l, EPCTX_RULE_NO_SOURCE, node->name, "source",
             "is missing, but the context is %s: its EP accepts only nodes with '%s'", id->name,
             needs->sources[0]);
}

/* Of the whole context, told at the first node that has it. False: nothing more can be said. */
static bool lint_binary_kind(linter *l, const lint_binary *binary) {
    const lint_judged *judged = binary->owner;
    const epctx_binary_id *id = &binary->facts.id;
    const char *attribute = binary->attribute;
    epctx_error foreign;
    if (l->opts == NULL || l->opts->profile == NULL) lint_binary_source(l, binary);
    epctx_error_clear(&foreign);
    if (epctx_profile_check_binary(judged->profile, id, &foreign) != EPCTX_OK) {
        lint_say(l, EPCTX_RULE_FOREIGN_BINARY, judged->node.name, attribute, "%s", foreign.message);
    } else if (id->profile != NULL && !binary_is_of(id->profile, judged->profile)) {
        lint_say(l, EPCTX_RULE_OTHER_BINARY, judged->node.name, attribute,
                 "is %s, but the node is for EP '%s'", id->name, judged->profile->name);
    } else if (binary->facts.damage != NULL) {
        lint_say(l, EPCTX_RULE_DAMAGED_BINARY, judged->node.name, attribute, "is %s that %s",
                 id->name, binary->facts.damage);
    } else if (id->kind == EPCTX_BINARY_UNKNOWN && lint_knows_formats(judged->profile)) {
        lint_say(l, EPCTX_RULE_UNKNOWN_BINARY, judged->node.name, attribute,
                 "is of no format that is known of EP '%s'", judged->profile->name);
    } else {
        /* How an unknown EP finds graphs in another one's format is not known. */
        return id->profile == NULL || (judged->profile->traits & EPCTX_TRAIT_ANY_EP) == 0;
    }
    return false;
}

/* -- graphs -- */

/* The first graph that a node means. Qualcomm's EP finds the only graph of a binary by no name, but
 * writes the graph's into both. */
static const binary_graph *lint_graph_in(const lint_binary *binary, const lint_judged *judged) {
    const binary_facts *facts = &binary->facts;
    const bool by_node =
        facts->id.kind == EPCTX_BINARY_QNN || facts->id.kind == EPCTX_BINARY_QNN_DLC;
    const uint32_t node = epctx_map_get(&binary->graphs, judged->node.name);
    const uint32_t partition = epctx_map_get(&binary->graphs, judged->node.partition_name);
    size_t found = binary->any;
    if (by_node && node < found) found = node;
    if ((!by_node || facts->graph_count == 1) && partition < found) found = partition;
    return found < facts->graph_count ? &facts->graphs[found] : NULL;
}

/* "'a', 'b', 'c' and others" */
static const char *lint_list_graphs(linter *l, const lint_binary *binary) {
    char *text = (char *)epctx_arena_array(&l->arena, LINT_MESSAGE, 1);
    epctx_text out = epctx_text_of(text, text != NULL ? LINT_MESSAGE : 0);
    size_t i, most = binary->facts.graph_count < 3 ? binary->facts.graph_count : 3;
    if (text == NULL) return "others";
    for (i = 0; i < most; i++) {
        if (i > 0) epctx_text_put(&out, epctx_str_of(", "));
        epctx_text_put_char(&out, '\'');
        epctx_text_put(&out, binary->facts.graphs[i].name);
        epctx_text_put_char(&out, '\'');
    }
    if (most < binary->facts.graph_count) epctx_text_put(&out, epctx_str_of(" and others"));
    return text;
}

/* -- inputs and outputs -- */

/* One side of a graph by name. */
typedef struct lint_names {
    epctx_arena arena;
    epctx_map values;    /* names and aliases -> index */
    epctx_map overrides; /* a name of the node -> where what replaces it is in `text` */
    epctx_str text;      /* of io_name_overrides */
} lint_names;

static epctx_status lint_name(epctx_map *map, epctx_str name, size_t value) {
    return ops_has(map, name) ? EPCTX_OK : epctx_map_put(map, name, (uint32_t)value);
}

/* Of several with a name the first one counts. */
static epctx_status lint_read_names(lint_names *names, const lint_judged *judged,
                                    const binary_value *values, size_t count) {
    epctx_str rest = epctx_view_node_attr_str(&judged->view, "io_name_overrides");
    size_t i;
    epctx_map_init(&names->values, &names->arena);
    epctx_map_init(&names->overrides, &names->arena);
    names->text = rest;
    for (i = 0; i < count; i++) {
        epctx_str aliases = values[i].aliases;
        OPS_TRY(lint_name(&names->values, values[i].name, i));
        while (aliases.size > 0)
            OPS_TRY(lint_name(&names->values, epctx_str_cut(&aliases, ','), i));
    }
    while (rest.size > 0) {
        epctx_str entry = epctx_str_cut(&rest, ';');
        const epctx_str name = epctx_str_cut(&entry, '=');
        if (name.size > 0 && entry.size > 0) /* else QNN passes it over */
            OPS_TRY(lint_name(&names->overrides, name, (size_t)(entry.data - names->text.data)));
    }
    return EPCTX_OK;
}

/* By the name that replaces the node's, else by the node's; SIZE_MAX: the binary has neither. */
static size_t lint_value_named(const lint_names *names, epctx_str name) {
    const uint32_t at = epctx_map_get(&names->overrides, name);
    uint32_t found = EPCTX_MAP_NONE;
    if (at != EPCTX_MAP_NONE) {
        epctx_str rest = {names->text.data + at, names->text.size - at};
        found = epctx_map_get(&names->values, epctx_str_cut(&rest, ';'));
    }
    if (found == EPCTX_MAP_NONE) found = epctx_map_get(&names->values, name);
    return found != EPCTX_MAP_NONE ? found : SIZE_MAX;
}

static bool lint_has_value(const lint_names *names, epctx_str name) {
    return names != NULL && lint_value_named(names, name) != SIZE_MAX;
}

/* How the EP of a format matches values, as seen on the bench. */
enum {
    LINT_BY_NAME = 1,       /* by name; one that the node has twice is no error */
    LINT_BY_POSITION = 2,   /* by position, if no name is the binary's and none is replaced */
    LINT_OUTPUT_SHAPES = 4, /* compares the shapes of outputs, if they have as many dimensions */
    LINT_OUTPUT_RANKS = 8,  /* and if they have not */
    LINT_INPUT_BYTES = 16,  /* of inputs only how many elements they have */
    LINT_INPUTS_SHAPED = 32,
    LINT_OUTPUTS_SHAPED = 64, /* refuses those without a shape */
    LINT_OUTPUTS_FIXED = 128, /* asks nothing of an output whose size the run decides */
    LINT_GIVEN_SHAPED = 256   /* refuses, when it runs, inputs of the graph of other shapes */
};

static unsigned lint_matching_of(const lint_binary *binary) {
    switch (binary->facts.id.kind) {
    case EPCTX_BINARY_OPENVINO_CONTAINER:
    case EPCTX_BINARY_OPENVINO_BLOB:
    case EPCTX_BINARY_OPENVINO_IR:
        return LINT_BY_NAME | LINT_OUTPUT_SHAPES | LINT_INPUTS_SHAPED | LINT_OUTPUTS_SHAPED |
               LINT_OUTPUTS_FIXED;
    case EPCTX_BINARY_QNN:
    case EPCTX_BINARY_QNN_DLC:
        return LINT_BY_NAME | LINT_BY_POSITION | LINT_OUTPUT_SHAPES | LINT_OUTPUT_RANKS |
               LINT_INPUT_BYTES;
    case EPCTX_BINARY_NPU: return LINT_BY_POSITION | LINT_GIVEN_SHAPED;
    default: return LINT_BY_POSITION;
    }
}

/* "[1,?,3]" */
static const char *lint_dims_text(linter *l, const int64_t *dims, size_t rank) {
    char *text = (char *)epctx_arena_array(&l->arena, 256, 1);
    epctx_text out = epctx_text_of(text, text != NULL ? 256 : 0);
    size_t i;
    if (text == NULL) return "[...]";
    epctx_text_put_char(&out, '[');
    for (i = 0; i < rank; i++) {
        if (i > 0) epctx_text_put_char(&out, ',');
        if (dims[i] < 0)
            epctx_text_put_char(&out, '?');
        else
            epctx_text_put_number(&out, (uint64_t)dims[i]);
    }
    epctx_text_put_char(&out, ']');
    return text;
}

/* -1: it is not known. */
static int64_t lint_elements(const int64_t *dims, size_t rank) {
    int64_t count = 1;
    size_t i;
    for (i = 0; i < rank; i++) {
        if (dims[i] < 0 || (dims[i] > 0 && count > INT64_MAX / dims[i])) return -1;
        count *= dims[i];
    }
    return count;
}

/* Whether a shape of the model and one of the binary can be the same. Compilers give scalars a
 * dimension of 1. */
static bool lint_dims_agree(const int64_t *a, size_t a_rank, const int64_t *b, size_t b_rank) {
    size_t i;
    if (a_rank == 0 && b_rank == 1 && b[0] == 1) return true;
    if (b_rank == 0 && a_rank == 1 && a[0] == 1) return true;
    if (a_rank != b_rank) return false;
    for (i = 0; i < a_rank; i++)
        if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return false;
    return true;
}

static void lint_shape_agrees(linter *l, unsigned matching, const lint_judged *judged,
                              const lint_io *io, const binary_value *value) {
    const char *what = io->output ? "output" : "input";
    int64_t dims[BINARY_MOST_RANK];
    epctx_cursor it = epctx_view_value_dims(&io->info);
    epctx_dim dim;
    size_t rank = 0;
    while (epctx_next_dim(&it, &dim) && rank < BINARY_MOST_RANK)
        dims[rank++] = dim.known ? dim.value : -1;
    if (io->output && rank != value->rank && (matching & LINT_OUTPUT_RANKS) == 0) return;
    if (!io->output && (matching & LINT_INPUT_BYTES) != 0 &&
        lint_elements(dims, rank) == lint_elements(value->dims, value->rank))
        return;
    if (!lint_dims_agree(dims, rank, value->dims, value->rank)) {
        lint_say(l, EPCTX_RULE_BINARY_VALUES, judged->node.name, NULL,
                 "%s '%S' has the shape %s, in the binary it has %s", what, &io->name,
                 lint_dims_text(l, dims, rank), lint_dims_text(l, value->dims, value->rank));
    }
}

static void lint_value_agrees(linter *l, unsigned matching, const lint_judged *judged,
                              const lint_io *io, const binary_value *value) {
    const char *what = io->output ? "output" : "input";
    const unsigned shaped = io->output  ? LINT_OUTPUTS_SHAPED
                            : io->given ? LINT_INPUTS_SHAPED | LINT_GIVEN_SHAPED
                                        : LINT_INPUTS_SHAPED;
    const bool judged_shape =
        value->shaped && !(io->output && (matching & LINT_OUTPUTS_FIXED) != 0 &&
                           lint_elements(value->dims, value->rank) < 0);
    if (!io->known || !io->info.is_tensor) return;
    if (value->elem_type != 0 && io->info.elem_type != 0 &&
        value->elem_type != io->info.elem_type) {
        lint_say(l, EPCTX_RULE_BINARY_VALUES, judged->node.name, NULL,
                 "%s '%S' is of type %s, in the binary it is of type %s", what, &io->name,
                 epctx_elem_name(io->info.elem_type), epctx_elem_name(value->elem_type));
    } else if (judged_shape && !io->info.has_shape && (matching & shaped) != 0) {
        lint_say(l, EPCTX_RULE_BINARY_VALUES, judged->node.name, NULL,
                 "%s '%S' has no shape, in the binary it has %s", what, &io->name,
                 lint_dims_text(l, value->dims, value->rank));
    } else if (judged_shape && io->info.has_shape &&
               (!io->output || (matching & LINT_OUTPUT_SHAPES) != 0)) {
        lint_shape_agrees(l, matching, judged, io, value);
    }
}

/* One side of a node, whose names are read where they count. */
static void lint_side_by(linter *l, const lint_names *names, const lint_binary *binary,
                         const lint_judged *judged, const binary_graph *graph, bool output) {
    const binary_value *values = output ? graph->outputs : graph->inputs;
    const size_t there = output ? graph->output_count : graph->input_count;
    const lint_io *ios = (const lint_io *)l->ios.items + judged->first_io;
    const unsigned matching = lint_matching_of(binary);
    const char *what = output ? "output" : "input";
    const epctx_str nothing = epctx_str_of("");
    size_t count = 0, named = 0, weights = 0, inputs = 0, i, position = 0;
    bool by_name;
    for (i = 0; i < judged->io_count; i++) {
        const bool found = lint_has_value(names, ios[i].name);
        if (ios[i].output != output) continue;
        count++;
        named += found;
        weights += ios[i].weight && !found;
    }
    by_name = names != NULL &&
              (named > 0 || names->overrides.count > 0 || (matching & LINT_BY_POSITION) == 0);
    if (!by_name && count < there + weights) /* the first ones are inputs of the graph, too */
        inputs = there + weights - count < weights ? there + weights - count : weights;
    count -= weights - inputs;
    if (by_name ? count < there && !output : count != there) {
        lint_say(l, EPCTX_RULE_BINARY_VALUES, judged->node.name, NULL,
                 "the node has %u %ss, its graph in the binary has %u", (uint64_t)count, what,
                 (uint64_t)there);
        return;
    }
    for (i = 0; i < judged->io_count; i++) {
        size_t at;
        if (ios[i].output != output) continue;
        if (weights > 0 && ios[i].weight && !lint_has_value(names, ios[i].name)) continue;
        at = by_name ? lint_value_named(names, ios[i].name) : position++;
        if (at < there) {
            lint_value_agrees(l, matching, judged, &ios[i], &values[at]);
        } else {
            lint_say(l, EPCTX_RULE_BINARY_VALUES, judged->node.name, NULL,
                     "%s '%S' is not in the binary, which has %u: '%S'%s", what, &ios[i].name,
                     (uint64_t)there, there > 0 ? &values[0].name : &nothing,
                     there > 1 ? " and others" : "");
        }
    }
}

static epctx_status lint_side(linter *l, const lint_binary *binary, const lint_judged *judged,
                              const binary_graph *graph, bool output) {
    const bool by_name = (lint_matching_of(binary) & LINT_BY_NAME) != 0;
    lint_names names;
    epctx_status status = EPCTX_OK;
    epctx_arena_init(&names.arena, &l->arena.allocator);
    if (by_name)
        status = lint_read_names(&names, judged, output ? graph->outputs : graph->inputs,
                                 output ? graph->output_count : graph->input_count);
    if (status == EPCTX_OK)
        lint_side_by(l, by_name ? &names : NULL, binary, judged, graph, output);
    else
        status = ops_nomem(&names.arena, l->error);
    epctx_arena_free(&names.arena);
    return status;
}

/* -- the target -- */

static void lint_target(linter *l, const lint_binary *binary, const lint_judged *judged) {
    const binary_facts *facts = &binary->facts;
    const epctx_str arch = judged->node.hardware_architecture;
    epctx_attr_view multi;
    if (facts->id.kind == EPCTX_BINARY_TOY && facts->architecture.size > 0 && arch.size > 0 &&
        !epctx_str_eq(arch, facts->architecture)) {
        lint_say(l, EPCTX_RULE_BINARY_TARGET, judged->node.name, "hardware_architecture",
                 "is '%S', the binary is for '%S'", &arch, &facts->architecture);
    }
    if (epctx_view_node_find_attr(&judged->view, "is_multi_soc_ep_context", &multi) &&
        (facts->id.kind == EPCTX_BINARY_QNN || facts->id.kind == EPCTX_BINARY_QNN_DLC) &&
        (multi.i != 0) != (facts->id.kind == EPCTX_BINARY_QNN_DLC)) {
        lint_say(l, EPCTX_RULE_BINARY_TARGET, judged->node.name, "is_multi_soc_ep_context",
                 "is %d, but the binary is %s", multi.i, facts->id.name);
    }
}

/* -- nodes -- */

/* The graph of a node that has no context itself is in one of those of its EP. */
static epctx_status lint_beside_binary(linter *l, const lint_judged *judged, size_t own) {
    const binary_graph *graph = NULL;
    const lint_binary *binary = NULL;
    size_t i, first = own != SIZE_MAX ? own : 0;
    const size_t end = own != SIZE_MAX ? own + 1 : l->binaries.count;
    for (i = first; i < end && graph == NULL; i++) {
        const lint_binary *one = lint_binary_at(l, i);
        if (one->owner->party != judged->party) continue;
        if (!one->facts.graphs_known || !one->usable) return EPCTX_OK;
        binary = one;
        graph = lint_graph_in(one, judged);
    }
    if (binary == NULL) return EPCTX_OK;
    if (graph != NULL) {
        if (!graph->values_known) return EPCTX_OK;
        OPS_TRY(lint_side(l, binary, judged, graph, false));
        OPS_TRY(lint_side(l, binary, judged, graph, true));
    } else if (binary->facts.graph_count == 0) {
        lint_say(l, EPCTX_RULE_BINARY_GRAPH, judged->node.name, NULL, "no graph is in the binary");
    } else {
        lint_say(l, EPCTX_RULE_BINARY_GRAPH, judged->node.name, NULL,
                 "its graph is not in the binary, which has %s", lint_list_graphs(l, binary));
    }
    return EPCTX_OK;
}

epctx_status lint_binaries(linter *l) {
    size_t *own, i;
    lint_lookup lookup;
    epctx_status status = EPCTX_OK;
    if (l->nodes.count == 0 || l->no_payloads) return EPCTX_OK;
    OPS_TRY(lint_begin_lookup(l, &lookup));
    OPS_TRY(ops_array(&l->arena, l->nodes.count, sizeof *own, &own, l->error));
    for (i = 0; i < l->nodes.count && status == EPCTX_OK; i++) {
        const lint_judged *judged = lint_judged_at(l, i);
        own[i] = SIZE_MAX;
        if (judged->ours && judged->context) status = lint_binary_of(l, &lookup, judged, &own[i]);
    }
    for (i = 0; i < l->binaries.count && status == EPCTX_OK; i++) {
        lint_binary *binary = lint_binary_at(l, i);
        l->profile = binary->owner->profile->name;
        binary->usable = lint_binary_kind(l, binary);
    }
    for (i = 0; i < l->nodes.count && status == EPCTX_OK; i++) {
        const lint_judged *judged = lint_judged_at(l, i);
        if (!judged->ours) continue;
        l->profile = judged->profile->name;
        if (own[i] != SIZE_MAX && lint_binary_at(l, own[i])->usable)
            lint_target(l, lint_binary_at(l, own[i]), judged);
        status = lint_beside_binary(l, judged, own[i]);
    }
    l->profile = NULL;
    lint_close_binaries(l);
    return status;
}
