/* The context binaries of a model's EPContext nodes. */
#include "context.h"
#include "facts/facts.h"

#include <string.h>

/* Of one model; Qualcomm's library may be asked about each. */
enum { MOST_CONTEXTS = 4096 };

/* -- one context -- */

bool binary_place_of(const epctx_node_view *view, const epctx_epnode *node, binary_place *out) {
    const epctx_str dlc = epctx_view_node_attr_str(view, "ep_dlc_context");
    out->attribute = dlc.size > 0 ? "ep_dlc_context" : "ep_cache_context";
    out->context = dlc.size > 0 ? dlc : node->ep_cache_context;
    out->embedded = dlc.size == 0 && node->embed_mode == 1;
    return out->context.size > 0;
}

epctx_status binary_name_files(const epctx_dependency *files, size_t count, epctx_arena *arena,
                               epctx_map *named, epctx_error *error) {
    size_t i;
    epctx_map_init(named, arena);
    for (i = 0; i < count; i++)
        if (files[i].use == EPCTX_USE_CONTEXT && files[i].status == EPCTX_OK &&
            files[i].path != NULL && !ops_has(named, files[i].name))
            OPS_TRY(ops_put(named, files[i].name, (uint32_t)i, error));
    return EPCTX_OK;
}

epctx_status binary_read_for(const epctx_profile *profile, epctx_span bytes,
                             const binary_asker *asker, epctx_arena *arena, binary_facts *out,
                             epctx_error *error) {
    OPS_TRY(binary_read(bytes, asker, arena, out, error));
    if (out->id.kind == EPCTX_BINARY_UNKNOWN && asker != NULL && asker->ask_fn != NULL &&
        facts_ep_has(profile->name, "architecture", "htp")) {
        out->id.kind = EPCTX_BINARY_QNN;
        if (!asker->ask_fn(asker->user, bytes, arena, out)) out->id.kind = EPCTX_BINARY_UNKNOWN;
    }
    return EPCTX_OK;
}

epctx_status binary_check(const binary_facts *facts, const epctx_profile *profile,
                          epctx_error *error) {
    const epctx_binary_id *id = &facts->id;
    OPS_TRY(epctx_profile_check_binary(profile, id, error));
    if (id->profile != NULL && !binary_is_of(id->profile, profile)) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "is %s, but the node is for EP '%s': use the binary that was compiled "
                          "with the model, or set source to its EP",
                          id->name, profile->name);
    }
    if (facts->damage != NULL) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "is %s that %s: fetch or copy the binary again",
                          id->name, facts->damage);
    }
    return EPCTX_OK;
}

/* -- those of a model -- */

/* The file that a node names; NULL: embedded, or it cannot be read. */
static const epctx_dependency *file_of(const binary_contexts *all, const binary_place *place) {
    const uint32_t at =
        place->embedded ? EPCTX_MAP_NONE : epctx_map_get(&all->named, place->context);
    return at != EPCTX_MAP_NONE ? &all->files[at] : NULL;
}

/* What tells contexts apart: the address of the file's entry, or of the bytes; NULL: no context. */
static const void *address_of(const binary_contexts *all, const binary_place *place) {
    return place->embedded ? (const void *)place->context.data : (const void *)file_of(all, place);
}

static epctx_str key_of(const void *const *address) {
    epctx_str key;
    key.data = (const char *)address;
    key.size = sizeof *address;
    return key;
}

/* False: the file is gone meanwhile. */
static bool get_bytes(const binary_contexts *all, binary_context *context, epctx_span *bytes) {
    bytes->data = (const uint8_t *)context->place.context.data;
    bytes->size = context->place.context.size;
    if (context->place.embedded) return true;
    context->path = file_of(all, &context->place)->path;
    if (all->io == NULL || all->io->map_fn(all->io->user, NULL, context->path, false,
                                           &context->mapping, NULL) != EPCTX_OK)
        return false;
    context->mapped = true;
    bytes->data = context->mapping.data;
    bytes->size = context->mapping.size;
    return true;
}

static epctx_status add(binary_contexts *all, const epctx_node_view *view, const epctx_epnode *node,
                        const binary_asker *asker, epctx_arena *arena, epctx_error *error) {
    binary_context *context = &all->items[all->count];
    const void **address;
    epctx_span bytes;
    memset(context, 0, sizeof *context);
    if (!binary_place_of(view, node, &context->place) || address_of(all, &context->place) == NULL ||
        binary_context_of(all, view, node) != NULL || !get_bytes(all, context, &bytes))
        return EPCTX_OK;
    all->count++;
    context->node = node->name;
    context->source = node->source;
    context->profile = epctx_profile_of_node(NULL, view);
    OPS_TRY(ops_array(arena, 1, sizeof *address, &address, error));
    *address = address_of(all, &context->place);
    if (epctx_map_put(&all->at, key_of(address), (uint32_t)all->count - 1) != EPCTX_OK)
        return ops_nomem(arena, error);
    return binary_read_for(context->profile, bytes, asker, arena, &context->facts, error);
}

epctx_status binary_contexts_read(const epctx_model *model, const epctx_dependency *files,
                                  size_t file_count, const binary_asker *asker, epctx_arena *arena,
                                  binary_contexts *out, epctx_error *error) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    size_t count = 0;
    memset(out, 0, sizeof *out);
    out->io = epctx_model_io(model);
    out->files = files;
    epctx_map_init(&out->at, arena);
    OPS_TRY(binary_name_files(files, file_count, arena, &out->named, error));
    epctx_walk_begin(&walk, model);
    while (count < MOST_CONTEXTS && epctx_walk_epnode(&walk, &view)) count++;
    OPS_TRY(ops_array(arena, count, sizeof *out->items, &out->items, error));
    epctx_walk_begin(&walk, model);
    while (out->count < count && epctx_walk_epnode(&walk, &view))
        if (epctx_view_is_epnode(&view) && epctx_view_read_epnode(&view, &node, NULL) == EPCTX_OK)
            OPS_TRY(add(out, &view, &node, asker, arena, error));
    return EPCTX_OK;
}

const binary_context *binary_context_of(const binary_contexts *all, const epctx_node_view *view,
                                        const epctx_epnode *node) {
    binary_place place;
    const void *address;
    uint32_t at;
    if (all->count == 0 || !binary_place_of(view, node, &place)) return NULL;
    address = address_of(all, &place);
    at = address != NULL ? epctx_map_get(&all->at, key_of(&address)) : EPCTX_MAP_NONE;
    return at != EPCTX_MAP_NONE ? &all->items[at] : NULL;
}

void binary_contexts_close(binary_contexts *all) {
    size_t i;
    for (i = 0; i < all->count; i++)
        if (all->items[i].mapped) all->io->unmap_fn(all->io->user, &all->items[i].mapping);
    all->count = 0;
}

static epctx_status check_all(const epctx_model *model, const char *ep, epctx_arena *arena,
                              binary_contexts *all, epctx_error *error) {
    epctx_dependency *files = NULL;
    size_t count = 0, i;
    OPS_TRY(epctx_model_files(model, NULL, arena, &files, &count, error));
    OPS_TRY(binary_contexts_read(model, files, count, NULL, arena, all, error));
    for (i = 0; i < all->count; i++) {
        const binary_context *context = &all->items[i];
        binary_facts facts = context->facts;
        epctx_status status = EPCTX_OK;
        if (facts.id.damage == NULL) facts.damage = NULL;
        if (ep == NULL || epctx_str_is(context->source, ep))
            status = binary_check(&facts, context->profile, error);
        epctx_blame(error, model->path, &context->node, context->place.attribute);
        OPS_TRY(status);
    }
    return EPCTX_OK;
}

epctx_status binary_check_contexts(const epctx_model *model, const char *ep, epctx_error *error) {
    epctx_arena arena;
    binary_contexts all;
    epctx_status status;
    epctx_error_clear(error);
    memset(&all, 0, sizeof all);
    epctx_arena_init(&arena, &model->arena.allocator);
    status = check_all(model, ep, &arena, &all, error);
    binary_contexts_close(&all);
    epctx_arena_free(&arena);
    return status;
}
