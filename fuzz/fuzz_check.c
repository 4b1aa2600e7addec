/*
 * Judges any bytes as a model: lint under every profile, state, files and the walk over all nodes;
 * and scan, from memory and as a stream, must give the verdict of the index.
 */
#include "examples/epctx/ops/lint.h"
#include "examples/epctx/ops/state.h"
#include "fuzz.h"
#include "mutate.h"

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static bool read_at(void *user, uint64_t offset, void *out, size_t size) {
    const input *in = (const input *)user;
    require(offset <= in->size && size <= in->size - offset);
    memcpy(out, in->data + offset, size);
    return true;
}

static void found(void *user, const epctx_finding *finding) {
    uint64_t *counts = (uint64_t *)user;
    require(finding->message[0] != '\0' && finding->info.id[0] != '\0');
    counts[finding->info.severity]++;
}

/* Every event stays inside the input; returns whether the whole of it was accepted. */
static bool scan(epctx_scan *s, const input *in, bool *twice) {
    epctx_scan_event event;
    epctx_error error;
    int i;
    while ((event = epctx_scan_next(s, &error)) != EPCTX_SCAN_END && event != EPCTX_SCAN_FAILED) {
        for (i = 0; event == EPCTX_SCAN_EPNODE && i < EPCTX_EPNODE_ATTR_COUNT; i++)
            require(s->ranges[i].offset <= in->size &&
                    s->ranges[i].length <= in->size - s->ranges[i].offset);
    }
    *twice = event == EPCTX_SCAN_FAILED && error.status == EPCTX_ERR_UNSUPPORTED;
    return event == EPCTX_SCAN_END;
}

/* Any metadata as a build stamp: its options, without escapes, fit into what is stored. */
static void read_stamps(const epctx_model *model) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_stamp_option option;
    epctx_pair pair;
    char plain[64];
    while (epctx_next_pair(&it, &pair)) {
        while (epctx_stamp_next_option(&pair.value, &option)) {
            require(option.told || option.value.size == 0);
            require(epctx_stamp_plain(option.key, plain, sizeof plain) ||
                    option.key.size >= sizeof plain);
            require(epctx_stamp_plain(option.value, plain, sizeof plain) ||
                    option.value.size >= sizeof plain);
        }
    }
}

static void judge(const epctx_model *model) {
    epctx_check_opts opts;
    epctx_walk walk;
    epctx_node_view node;
    epctx_arena arena;
    epctx_state state;
    epctx_dependency *files;
    size_t count, i;
    uint64_t nodes = 0;
    const epctx_profile *profiles = epctx_profiles(&count);
    memset(&opts, 0, sizeof opts);
    opts.no_files = true;
    opts.context_file_path = "/m/model_ctx.onnx";
    for (i = 0; i <= count; i++) {
        uint64_t told[EPCTX_SEVERITY_COUNT] = {0, 0, 0};
        uint64_t counted[EPCTX_SEVERITY_COUNT];
        opts.profile = i < count ? &profiles[i] : NULL;
        require(epctx_lint(model, &opts, found, told, counted, NULL) == EPCTX_OK);
        require(memcmp(told, counted, sizeof told) == 0);
    }
    read_stamps(model);
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) nodes++;
    epctx_arena_init(&arena, NULL);
    require(epctx_model_state(model, &arena, &state, NULL) == EPCTX_OK);
    require(state.ep_nodes + state.broken_nodes + state.other_nodes == nodes);
    for (i = 0; i < state.compat_count; i++)
        epctx_compat_compare(epctx_profile_of(state.compat[i].ep), state.compat[i].value,
                             state.compat[0].value, NULL);
    require(epctx_model_files(model, &opts, &arena, &files, &count, NULL) == EPCTX_OK);
    epctx_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    epctx_reader source = {&in, read_at, size};
    epctx_model model;
    epctx_scan s;
    pb_istream_t stream = pb_istream_from_buffer(data, size);
    bool opened = epctx_model_open_memory(&model, data, size, NULL, NULL) == EPCTX_OK;
    bool twice;
    epctx_scan_begin(&s, &source);
    require(scan(&s, &in, &twice) == opened);
    epctx_scan_begin_stream(&s, &stream);
    require(scan(&s, &in, &twice) == opened || twice);
    if (opened) judge(&model);
    epctx_model_close(&model);
    return 0;
}
