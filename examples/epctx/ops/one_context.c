#include "one_context.h"

#include "../binary/join.h"

/* A context of a model: a file, or what a node embeds. */
typedef struct one_context_own {
    size_t part, ep;
    bool embedded;
    epctx_str name; /* of the file */
    epctx_str node; /* the first one that has it */
    epctx_span bytes;
    size_t source; /* of the new context: equal ones are one */
} one_context_own;

/* A node that finds its graph in one of them: number `number` of the main graph. */
typedef struct one_context_node {
    size_t part, number, ep;
    size_t context; /* SIZE_MAX: it has none itself */
} one_context_node;

/* The nodes of a source. */
typedef struct one_context_ep {
    epctx_str source;
    const epctx_profile *profile;
    bool active;       /* what follows is made */
    bool embeds;       /* as the first context */
    bool given;        /* a node has the new context */
    epctx_str context; /* the bytes, or the name of the file */
    binary_joined joined;
} one_context_ep;

static one_context_own *own_at(const one_context *j, size_t i) {
    return (one_context_own *)j->contexts.items + i;
}

static one_context_ep *ep_at(const one_context *j, size_t i) {
    return (one_context_ep *)j->eps.items + i;
}

static bool next_node(epctx_cursor *it, epctx_node_view *node, size_t *number) {
    if (!epctx_next_node(it, node)) return false;
    ++*number;
    return true;
}

/* -- what the models have -- */

static epctx_status find_ep(one_context *j, const epctx_profile *profile, epctx_str source,
                            size_t *at) {
    one_context_ep *ep;
    for (*at = 0; *at < j->eps.count; ++*at)
        if (epctx_str_eq(ep_at(j, *at)->source, source)) return EPCTX_OK;
    OPS_TRY(ops_add(&j->eps, j->arena, sizeof *ep, &ep, j->files->error));
    ep->profile = profile;
    return ops_join(j->arena, source, epctx_str_of(""), &ep->source, j->files->error);
}

/* The context that a node has itself, or SIZE_MAX. */
static epctx_status find_context(one_context *j, const one_context_node *at,
                                 const epctx_epnode *node, size_t *context) {
    one_context_own *own;
    for (*context = 0; *context < j->contexts.count; ++*context) {
        own = own_at(j, *context);
        if (node->embed_mode == 0 && own->part == at->part && own->ep == at->ep && !own->embedded &&
            epctx_str_eq(own->name, node->ep_cache_context))
            return EPCTX_OK;
    }
    if (node->ep_cache_context.size == 0) {
        *context = SIZE_MAX;
        return EPCTX_OK;
    }
    OPS_TRY(ops_add(&j->contexts, j->arena, sizeof *own, &own, j->files->error));
    own->part = at->part;
    own->ep = at->ep;
    own->node = node->name;
    own->embedded = node->embed_mode == 1;
    if (own->embedded) {
        own->bytes.data = (const uint8_t *)node->ep_cache_context.data;
        own->bytes.size = node->ep_cache_context.size;
    } else {
        own->name = node->ep_cache_context;
    }
    return EPCTX_OK;
}

static epctx_status look_at(one_context *j, size_t part) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(j->parts[part].model));
    epctx_node_view view;
    size_t number = 0;
    while (next_node(&it, &view, &number)) {
        const epctx_profile *profile = epctx_profile_of_node(NULL, &view);
        one_context_node at, *node;
        epctx_epnode ep;
        if (!epctx_view_is_epnode(&view) || epctx_view_read_epnode(&view, &ep, NULL) != EPCTX_OK)
            continue;
        if (ep.embed_mode == 0)
            OPS_TRY(ops_put(&j->taken, ep.ep_cache_context, 1, j->files->error));
        if ((profile->traits & EPCTX_TRAIT_ONE_CONTEXT) == 0 ||
            (ep.embed_mode == 0 && ops_ends(ep.ep_cache_context, ".xml")))
            continue;
        at.part = part;
        at.number = number;
        OPS_TRY(find_ep(j, profile, ep.source, &at.ep));
        OPS_TRY(find_context(j, &at, &ep, &at.context));
        OPS_TRY(ops_add(&j->nodes, j->arena, sizeof *node, &node, j->files->error));
        *node = at;
    }
    return EPCTX_OK;
}

/* -- the new context -- */

/* The first context of an EP in a model (SIZE_MAX: any), or SIZE_MAX. */
static size_t first_of(const one_context *j, size_t ep, size_t part) {
    size_t i;
    for (i = 0; i < j->contexts.count; i++)
        if (own_at(j, i)->ep == ep && (part == SIZE_MAX || own_at(j, i)->part == part)) return i;
    return SIZE_MAX;
}

static bool in_several_models(const one_context *j, size_t ep, size_t first) {
    size_t i;
    for (i = first; i < j->contexts.count; i++)
        if (own_at(j, i)->ep == ep && own_at(j, i)->part != own_at(j, first)->part) return true;
    return false;
}

static epctx_status read_file(one_context *j, one_context_own *own) {
    epctx_model *model = j->parts[own->part].model;
    epctx_str folder;
    epctx_status status =
        epctx_path_base(epctx_str_of(model->path), epctx_str_of(NULL), &folder, j->files->error);
    if (status == EPCTX_OK)
        status = epctx_model_map_file(model, folder, own->name, &own->bytes, j->files->error);
    if (status != EPCTX_OK)
        epctx_blame(j->files->error, model->path, &own->node, "ep_cache_context");
    return status;
}

/* Those that are not equal to an earlier one are the sources. */
static epctx_status put_sources(one_context *j, size_t ep, binary_source *sources, size_t *count) {
    size_t i, k;
    for (i = 0; i < j->contexts.count; i++) {
        one_context_own *own = own_at(j, i);
        char prefix[32];
        epctx_text text = epctx_text_of(prefix, sizeof prefix);
        if (own->ep != ep) continue;
        if (!own->embedded) OPS_TRY(read_file(j, own));
        for (k = 0; k < *count; k++)
            if (sources[k].bytes.size == own->bytes.size &&
                memcmp(sources[k].bytes.data, own->bytes.data, own->bytes.size) == 0)
                break;
        own->source = k;
        if (k < *count) continue;
        sources[k].bytes = own->bytes;
        sources[k].name = own->embedded ? own->node : own->name;
        epctx_text_put_format(&text, "m%u_", (uint64_t)own->part + 1);
        OPS_TRY(ops_join(j->arena, epctx_text_str(&text), epctx_str_of(""), &sources[k].prefix,
                         j->files->error));
        ++*count;
    }
    return EPCTX_OK;
}

/* One piece of memory with the whole context. */
static epctx_status embed(one_context *j, one_context_ep *ep) {
    const binary_joined *joined = &ep->joined;
    char *bytes;
    size_t i;
    if (joined->size > (uint64_t)EPCTX_MODEL_MAX)
        return epctx_fail(j->files->error, EPCTX_ERR_LIMIT,
                          "the joined context has %u bytes, an embedded one can have %u: first "
                          "extract the contexts",
                          joined->size, (uint64_t)EPCTX_MODEL_MAX);
    OPS_TRY(ops_array(j->arena, (size_t)joined->size, 1, &bytes, j->files->error));
    ep->context.data = bytes;
    for (i = 0; i < joined->part_count; i++) {
        memcpy(bytes + ep->context.size, joined->parts[i].data, joined->parts[i].size);
        ep->context.size += joined->parts[i].size;
    }
    return EPCTX_OK;
}

/* A file with a name that none of the models has, so that theirs stay what they are. */
static epctx_status put_file(one_context *j, one_context_ep *ep) {
    const epctx_str model = epctx_path_file(epctx_str_of(j->files->path));
    char base[EPCTX_PATH_MAX], name[EPCTX_PATH_MAX];
    epctx_error *error = j->files->error;
    uint64_t number = 2;
    OPS_TRY(epctx_profile_fill_name(ep->profile->binary, ep->profile, NULL, model, base,
                                    sizeof base, error));
    memcpy(name, base, strlen(base) + 1);
    while (ops_has(&j->taken, epctx_str_of(name)))
        OPS_TRY(epctx_path_numbered(epctx_str_of(base), number++, name, sizeof name, error));
    OPS_TRY(ops_join(j->arena, epctx_str_of(name), epctx_str_of(""), &ep->context, error));
    OPS_TRY(ops_put(&j->taken, ep->context, 1, error));
    return carry_new(j->files, ep->context, ep->joined.parts, ep->joined.part_count);
}

static epctx_status make(one_context *j, one_context_ep *ep, const binary_source *sources,
                         size_t count) {
    epctx_step step;
    if (count > 1) OPS_TRY(binary_join(sources, count, j->arena, &ep->joined, j->files->error));
    if (count == 1) { /* all embed the same */
        ep->context.data = (const char *)sources[0].bytes.data;
        ep->context.size = sources[0].bytes.size;
        return EPCTX_OK;
    }
    OPS_TRY(ep->embeds ? embed(j, ep) : put_file(j, ep));
    step = ops_step(0, "add", ep->embeds ? "item" : "file", ep->embeds ? ep->source : ep->context);
    return ops_say(j->files->report, &step, j->files->error,
                   "%u context binaries of %S are joined in one of %u bytes", (uint64_t)count,
                   &ep->source, ep->joined.size);
}

static epctx_status make_one(one_context *j, size_t at) {
    one_context_ep *ep = ep_at(j, at);
    const size_t first = first_of(j, at, SIZE_MAX);
    epctx_error *error = j->files->error;
    binary_source *sources;
    size_t count = 0;
    epctx_status status;
    epctx_error why;
    if (first == SIZE_MAX || !in_several_models(j, at, first)) return EPCTX_OK;
    OPS_TRY(ops_array(j->arena, j->contexts.count, sizeof *sources, &sources, error));
    OPS_TRY(put_sources(j, at, sources, &count));
    ep->embeds = own_at(j, first)->embedded;
    if (count == 1 && !ep->embeds) return EPCTX_OK; /* equal files become one anyway */
    ep->active = true;
    status = make(j, ep, sources, count);
    if (status != EPCTX_ERR_UNSUPPORTED || error == NULL) return status;
    why = *error;
    epctx_error_clear(error);
    return epctx_fail(error, status, "EP '%s' reads one context for a model, these have %u: %s",
                      ep->profile->name, (uint64_t)count, why.message);
}

epctx_status one_context_begin(one_context *j, const epctx_part *parts, size_t count,
                               carry *files) {
    size_t i;
    memset(j, 0, sizeof *j);
    j->parts = parts;
    j->count = count;
    j->files = files;
    j->arena = &files->result->arena;
    epctx_map_init(&j->taken, j->arena);
    for (i = 0; i < count; i++) OPS_TRY(look_at(j, i));
    for (i = 0; i < j->eps.count; i++) OPS_TRY(make_one(j, i));
    return EPCTX_OK;
}

/* -- the nodes -- */

/* The name that the graph of a node has now. */
static epctx_status rename_graph(one_context *j, const one_context_ep *ep, size_t source,
                                 size_t part, const epctx_node_view *view) {
    const epctx_str name = epctx_view_node_attr_str(view, "partition_name");
    const epctx_step step = ops_step(part, "change", "node", view->name);
    size_t i;
    for (i = 0; i < ep->joined.renamed_count; i++) {
        const binary_renamed *renamed = &ep->joined.renamed[i];
        if (renamed->source != source || !epctx_str_eq(renamed->from, name)) continue;
        OPS_TRY(epctx_edit_set_attr_str(j->parts[part].model, view->view, "partition_name",
                                        renamed->to, j->files->error));
        return ops_say(j->files->report, &step, j->files->error,
                       "node '%S': its graph '%S' is now '%S', an earlier context has one of this "
                       "name",
                       &view->name, &name, &renamed->to);
    }
    return EPCTX_OK;
}

/* A file is named by every node; embedded, the first node has it, and EPs differ in whether the
 * others have an empty attribute or none. */
static epctx_status give(one_context *j, one_context_ep *ep, epctx_model *model,
                         const epctx_node_view *view) {
    epctx_error *error = j->files->error;
    const bool main = !ep->embeds || !ep->given;
    epctx_attr_view attr;
    OPS_TRY(epctx_edit_set_attr_int(model, view->view, "main_context", main, error));
    OPS_TRY(epctx_edit_set_attr_int(model, view->view, "embed_mode", ep->embeds, error));
    ep->given = true;
    if (!main && !epctx_view_node_find_attr(view, "ep_cache_context", &attr)) return EPCTX_OK;
    return epctx_edit_set_attr_str(model, view->view, "ep_cache_context",
                                   main ? ep->context : epctx_str_of(""), error);
}

epctx_status one_context_settle(one_context *j, size_t part) {
    epctx_model *model = j->parts[part].model;
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view view;
    size_t number = 0;
    while (j->settled < j->nodes.count && next_node(&it, &view, &number)) {
        const one_context_node *node = (const one_context_node *)j->nodes.items + j->settled;
        size_t context = node->context;
        if (node->part != part || node->number != number) continue;
        if (context == SIZE_MAX) context = first_of(j, node->ep, part);
        j->settled++;
        if (!ep_at(j, node->ep)->active || context == SIZE_MAX) continue;
        OPS_TRY(rename_graph(j, ep_at(j, node->ep), own_at(j, context)->source, part, &view));
        OPS_TRY(give(j, ep_at(j, node->ep), model, &view));
    }
    return EPCTX_OK;
}
