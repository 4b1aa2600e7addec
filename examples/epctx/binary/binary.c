/* Context binaries: which reader a file goes to. */
#include "facts/facts.h"
#include "reader.h"

typedef void read_fn(binary_reading *r);

static read_fn *reader_of(epctx_binary_kind kind) {
    switch (kind) {
    case EPCTX_BINARY_NPU: return binary_read_npu;
    case EPCTX_BINARY_TOY: return binary_read_toy;
    case EPCTX_BINARY_QNN: return binary_read_qnn;
    case EPCTX_BINARY_QNN_DLC: return binary_read_dlc;
    case EPCTX_BINARY_OPENVINO_CONTAINER: return binary_read_openvino_container;
    case EPCTX_BINARY_OPENVINO_BLOB: return binary_read_openvino_blob;
    case EPCTX_BINARY_OPENVINO_IR: return binary_read_openvino_ir;
    default: return NULL;
    }
}

static void finish(const binary_reading *r) {
    binary_facts *facts = r->facts;
    facts->graphs = (binary_graph *)r->graphs.items;
    facts->graph_count = r->too_many ? 0 : r->graphs.count;
    facts->graphs_known = facts->graphs_known && !r->too_many;
    facts->needs = (binary_need *)r->needs.items;
    facts->need_count = r->needs.count;
    facts->chips = (epctx_str *)r->chips.items;
    facts->chip_count = r->chips.count;
}

bool binary_is_of(const char *writes, const epctx_profile *reads) {
    return (reads->traits & EPCTX_TRAIT_ANY_EP) != 0 || facts_same_ep(writes, reads->name) ||
           fact_list_has(facts_of_ep(reads->name, "binaries_of"), epctx_str_of(writes));
}

epctx_status binary_read(epctx_span file, const binary_asker *asker, epctx_arena *arena,
                         binary_facts *out, epctx_error *error) {
    binary_reading r;
    read_fn *read;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    memset(&r, 0, sizeof r);
    r.file = file;
    r.arena = arena;
    r.facts = out;
    epctx_binary_identify(file, file, file.size, &out->id);
    out->told_by = "the file";
    if (out->id.expected > file.size)
        binary_damage(&r, "%s: it should have %u bytes, it has %u", out->id.damage,
                      out->id.expected, (uint64_t)file.size);
    else if (out->id.damage != NULL)
        binary_damage(&r, "%s", out->id.damage);
    read = reader_of(out->id.kind);
    if (read != NULL) read(&r);
    finish(&r);
    if (r.no_memory) return ops_nomem(arena, error);
    if (asker != NULL && asker->ask_fn != NULL && !out->graphs_known &&
        out->id.sort == EPCTX_BINARY_SORT_CONTEXT)
        (void)asker->ask_fn(asker->user, file, arena, out);
    return EPCTX_OK;
}

epctx_status binary_read_needs(epctx_span file, epctx_arena *arena, binary_need **out,
                               size_t *count, epctx_error *error) {
    binary_facts facts;
    binary_reading r;
    epctx_binary_id id;
    epctx_error_clear(error);
    memset(&facts, 0, sizeof facts);
    memset(&r, 0, sizeof r);
    r.file = file;
    r.arena = arena;
    r.facts = &facts;
    r.needs_only = true;
    epctx_binary_identify(file, file, file.size, &id);
    if (id.kind == EPCTX_BINARY_OPENVINO_CONTAINER) binary_read_openvino_container(&r);
    if (id.kind == EPCTX_BINARY_OPENVINO_IR) binary_read_openvino_ir(&r);
    *out = (binary_need *)r.needs.items;
    *count = r.needs.count;
    return r.no_memory ? ops_nomem(arena, error) : EPCTX_OK;
}
