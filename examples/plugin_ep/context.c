/* context.c - a context: what one Compile made or loaded, as long as one of its kernels lives. */
#include "ep.h"

#define PAYLOAD_ALIGNMENT 64u

/* A payload in memory is aligned like one in a mapped file. */
static void *aligned_alloc_fn(void *user, size_t size) {
    uint8_t *block, *aligned;
    (void)user;
    if (size > SIZE_MAX - PAYLOAD_ALIGNMENT - sizeof(void *)) return NULL;
    block = (uint8_t *)malloc(size + PAYLOAD_ALIGNMENT + sizeof(void *));
    if (!block) return NULL;
    aligned = block + sizeof(void *);
    aligned += (PAYLOAD_ALIGNMENT - (uintptr_t)aligned % PAYLOAD_ALIGNMENT) % PAYLOAD_ALIGNMENT;
    memcpy(aligned - sizeof(void *), &block, sizeof block);
    return aligned;
}

static void aligned_free_fn(void *user, void *memory) {
    uint8_t *block;
    (void)user;
    if (!memory) return;
    memcpy(&block, (uint8_t *)memory - sizeof(void *), sizeof block);
    free(block);
}

const epctx_allocator ep_payload_allocator = {NULL, aligned_alloc_fn, aligned_free_fn};

/* The binary just compiled. */
static epctx_status map_made(void *user, const char *root, const char *name, bool copy,
                             epctx_mapping *out, epctx_error *error) {
    const epctx_span made = epctx_ep_binary(&((ep_context *)user)->made);
    (void)root;
    (void)name;
    (void)copy;
    (void)error;
    memset(out, 0, sizeof *out);
    out->data = made.data;
    out->size = made.size;
    return EPCTX_OK;
}

static void unmap_made(void *user, epctx_mapping *mapping) {
    (void)user;
    (void)mapping;
}

ep_context *ep_context_new(ep_session *session, size_t count) {
    ep_context *context = (ep_context *)calloc(1, sizeof *context);
    if (!context) return NULL;
    context->payloads = (epctx_buffer *)calloc(count + 1, sizeof *context->payloads);
    if (!context->payloads) {
        free(context);
        return NULL;
    }
    context->payload_count = count;
    context->session = session;
    context->references = 1;
    context->made_io.user = context;
    context->made_io.map_fn = map_made;
    context->made_io.unmap_fn = unmap_made;
    epctx_ort_reader_init(&context->reader, session->api, &session->buffers);
    epctx_arena_init(&context->arena, NULL);
    return context;
}

void ep_context_drop(ep_context *context) {
    size_t i;
    if (!context || --context->references > 0) return;
    epctx_unload(&context->loaded);
    epctx_ort_reader_free(&context->reader);
    for (i = 0; i < context->payload_count; i++) epctx_buffer_free(&context->payloads[i]);
    epctx_ep_end(&context->made);
    epctx_arena_free(&context->arena);
    free(context->payloads);
    free(context);
}

/* ----------------------------------------------------------- the model's place */

bool ep_model_is_hidden(const ep_session *session, const epctx_ort_record *record) {
    return epctx_ort_path_is_hidden(
        record->model_path,
        epctx_option_text(&session->options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER));
}

const char *ep_model_path(const ep_session *session, const epctx_ort_record *record) {
    return ep_model_is_hidden(session, record) ? "" : record->model_path;
}
