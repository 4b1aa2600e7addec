/* memory.c - memory of the device: allocators.
 *
 * The virtual NPU has memory of its own, so that every path a real one needs is here and tested:
 * ORT allocates with ep_allocator and copies with ep_transfer (transfer.c). That memory is the
 * machine's, aligned for DMA; a real device replaces the bodies of device_alloc and device_free.
 * The CPU device of this EP announces no memory: ORT's tensors reach the backend as they are.
 *
 * Allocator option "device_memory_limit" (EP option of a session, or given to
 * CreateSharedAllocator): the most bytes that may be in use at once.
 */
#include "ep.h"

#include <inttypes.h>
#include <stdio.h>

#define DEVICE_ALIGNMENT 64u

/* Header of an aligned block: its original address and size. */
typedef struct block_head {
    void *start;
    size_t size;
} block_head;

static void *device_alloc(size_t size) {
    const size_t extra = DEVICE_ALIGNMENT + sizeof(block_head);
    uint8_t *start, *aligned;
    block_head head;
    if (size > SIZE_MAX - extra) return NULL;
    start = (uint8_t *)malloc(size + extra);
    if (!start) return NULL;
    aligned = start + sizeof head;
    aligned += (DEVICE_ALIGNMENT - (uintptr_t)aligned % DEVICE_ALIGNMENT) % DEVICE_ALIGNMENT;
    head.start = start;
    head.size = size;
    memcpy(aligned - sizeof head, &head, sizeof head);
    return aligned;
}

static block_head head_of(const void *block) {
    block_head head;
    memcpy(&head, (const uint8_t *)block - sizeof head, sizeof head);
    return head;
}

static void device_free(void *block) {
    free(head_of(block).start);
}

/* --------------------------------------------------------------- allocator */

struct ep_allocator {
    OrtAllocator ort; /* first */
    const ep_factory *factory;
    const OrtMemoryInfo *info;
    size_t limit; /* SIZE_MAX: none */
    _Atomic size_t in_use, most_in_use, count;
};

static const ep_allocator *const_allocator_of(const OrtAllocator *self) {
    return (const ep_allocator *)(const void *)self;
}

static void *ORT_API_CALL allocator_alloc(OrtAllocator *self, size_t size) {
    ep_allocator *allocator = (ep_allocator *)(void *)self;
    size_t before, most;
    void *block;
    if (size == 0 || size > allocator->limit) return NULL;
    before = atomic_fetch_add(&allocator->in_use, size);
    block = before <= allocator->limit - size ? device_alloc(size) : NULL;
    if (!block) {
        atomic_fetch_sub(&allocator->in_use, size);
        return NULL;
    }
    atomic_fetch_add(&allocator->count, 1);
    most = atomic_load(&allocator->most_in_use);
    while (most < before + size &&
           !atomic_compare_exchange_weak(&allocator->most_in_use, &most, before + size)) {
    }
    return block;
}

static void ORT_API_CALL allocator_free(OrtAllocator *self, void *block) {
    ep_allocator *allocator = (ep_allocator *)(void *)self;
    if (!block) return;
    atomic_fetch_sub(&allocator->in_use, head_of(block).size);
    device_free(block);
}

static const OrtMemoryInfo *ORT_API_CALL allocator_info(const OrtAllocator *self) {
    return const_allocator_of(self)->info;
}

static void add_number(const OrtApi *ort, OrtKeyValuePairs *pairs, const char *key, size_t value) {
    char text[32];
    snprintf(text, sizeof text, "%zu", value);
    ort->AddKeyValuePair(pairs, key, text);
}

/* The keys that ORT's header names. */
static OrtStatus *ORT_API_CALL allocator_stats(const OrtAllocator *self, OrtKeyValuePairs **out) {
    const ep_allocator *allocator = const_allocator_of(self);
    const epctx_ort_api *api = &allocator->factory->api;
    OrtKeyValuePairs *pairs = NULL;
    *out = NULL;
    api->ort->CreateKeyValuePairs(&pairs);
    if (!pairs) return epctx_ort_no_memory(api);
    if (allocator->limit == SIZE_MAX)
        api->ort->AddKeyValuePair(pairs, "Limit", "-1");
    else
        add_number(api->ort, pairs, "Limit", allocator->limit);
    add_number(api->ort, pairs, "InUse", atomic_load(&allocator->in_use));
    add_number(api->ort, pairs, "MaxInUse", atomic_load(&allocator->most_in_use));
    add_number(api->ort, pairs, "NumAllocs", atomic_load(&allocator->count));
    *out = pairs;
    return NULL;
}

static OrtStatus *read_limit(const epctx_ort_api *api, const char *text, size_t *limit) {
    uint64_t number = SIZE_MAX;
    if (!text || epctx_str_number(epctx_str_of(text), &number)) {
        *limit = number < SIZE_MAX ? (size_t)number : SIZE_MAX;
        return NULL;
    }
    return epctx_ort_fail(api, EPCTX_ERR_ARG,
                          "device_memory_limit: a number of bytes is expected, found '%s'", text);
}

static bool is_info(const ep_factory *factory, const OrtMemoryInfo *info, size_t i) {
    int differs = 1;
    OrtStatus *status = factory->api.ort->CompareMemoryInfo(info, factory->memory[i], &differs);
    if (status) factory->api.ort->ReleaseStatus(status);
    return !status && !differs;
}

/* `limit`: text of the option, NULL when not given. */
static OrtStatus *make_allocator(ep_factory *factory, const OrtMemoryInfo *info, const char *limit,
                                 OrtAllocator **out) {
    const epctx_ort_api *api = &factory->api;
    ep_allocator *allocator;
    size_t bytes = 0, i;
    *out = NULL;
    if (!info) return NULL; /* the CPU's */
    for (i = 0; i < EP_MEMORY_COUNT && !(factory->memory[i] && is_info(factory, info, i)); i++) {
    }
    if (i == EP_MEMORY_COUNT) {
        return epctx_ort_fail(api, EPCTX_ERR_ARG,
                              "no allocator for this memory: %s did not announce it",
                              factory->device->ep_name);
    }
    EPCTX_ORT_TRY(read_limit(api, limit, &bytes));
    allocator = atomic_exchange(&factory->spare[i], NULL);
    if (!allocator) allocator = (ep_allocator *)calloc(1, sizeof *allocator);
    if (!allocator) return epctx_ort_no_memory(api);
    allocator->ort.version = epctx_ort_layout(api);
    allocator->ort.Alloc = allocator_alloc;
    allocator->ort.Free = allocator_free;
    allocator->ort.Info = allocator_info;
    allocator->ort.GetStats = allocator_stats;
    allocator->factory = factory;
    allocator->info = factory->memory[i];
    allocator->limit = bytes;
    *out = &allocator->ort;
    return NULL;
}

static OrtStatus *ORT_API_CALL memory_for_all(OrtEpFactory *self, const OrtMemoryInfo *info,
                                              const OrtKeyValuePairs *options, OrtAllocator **out) {
    ep_factory *factory = (ep_factory *)(void *)self;
    return make_allocator(
        factory, info,
        options ? factory->api.ort->GetKeyValue(options, "device_memory_limit") : NULL, out);
}

static OrtStatus *ORT_API_CALL memory_for_session(OrtEp *self, const OrtMemoryInfo *info,
                                                  OrtAllocator **out) {
    const ep_session *session = (const ep_session *)(const void *)self;
    char key[256];
    ep_option_key(session, "device_memory_limit", key, sizeof key);
    return make_allocator(session->factory, info,
                          session->api->ort->GetKeyValue(session->config, key), out);
}

/* Used by the factory and its sessions. */
static void ORT_API_CALL release_allocator(OrtEpFactory *self, OrtAllocator *allocator) {
    const ep_factory *factory = (const ep_factory *)(const void *)self;
    const ep_allocator *a = const_allocator_of(allocator);
    size_t left;
    if (!a) return;
    left = atomic_load(&a->in_use);
    if (left) {
        epctx_ort_log(&factory->api, factory->logger, ORT_LOGGING_LEVEL_WARNING,
                      "%s: an allocator is released while %zu bytes of it are in use",
                      factory->device->ep_name, left);
    }
    free(allocator);
}

/* ------------------------------------------------------------ registration */

/* Whether memory is ours, of either kind. */
bool ep_memory_is_ours(const ep_factory *factory, const OrtMemoryDevice *device) {
    size_t i;
    for (i = 0; i < EP_MEMORY_COUNT; i++)
        if (factory->memory[i] &&
            factory->api.ep->MemoryDevice_AreEqual(
                device, factory->api.ep->MemoryInfo_GetMemoryDevice(factory->memory[i])))
            return true;
    return false;
}

static OrtStatus *make_info(ep_factory *factory, size_t i, const char *what,
                            OrtDeviceMemoryType type) {
    char name[200];
    if (factory->memory[i]) return NULL;
    snprintf(name, sizeof name, "%s %s", factory->device->ep_name, what);
    return factory->api.ort->CreateMemoryInfo_V2(
        name, OrtMemoryInfoDeviceType_NPU, factory->device->vendor_id, 0, type, DEVICE_ALIGNMENT,
        OrtDeviceAllocator, &factory->memory[i]);
}

/* Also makes what ORT asks for next, the allocators that all sessions share (and the transfer, in
 * transfer.c): when one of these calls fails, ORT 1.30 keeps devices of a library that it unloads,
 * and crashes. */
OrtStatus *ep_memory_announce(ep_factory *factory, OrtEpDevice *device) {
    size_t i;
    if (factory->api.version < EP_MEMORY_API) return NULL;
    EPCTX_ORT_TRY(make_info(factory, EP_MEMORY_DEVICE, "memory", OrtDeviceMemoryType_DEFAULT));
    EPCTX_ORT_TRY(
        make_info(factory, EP_MEMORY_HOST, "host memory", OrtDeviceMemoryType_HOST_ACCESSIBLE));
    for (i = 0; i < EP_MEMORY_COUNT; i++) {
        ep_allocator *spare = (ep_allocator *)calloc(1, sizeof *spare);
        if (!spare) return epctx_ort_no_memory(&factory->api);
        free(atomic_exchange(&factory->spare[i], spare));
        EPCTX_ORT_TRY(factory->api.ep->EpDevice_AddAllocatorInfo(device, factory->memory[i]));
    }
    return NULL;
}

void ep_memory_register(ep_factory *factory) {
    factory->ort.CreateAllocator = memory_for_all;
    factory->ort.ReleaseAllocator = release_allocator;
}

void ep_memory_register_session(ep_session *session) {
    session->ort.older.CreateAllocator = memory_for_session;
}

void ep_memory_release(ep_factory *factory) {
    size_t i;
    for (i = 0; i < EP_MEMORY_COUNT; i++) {
        if (factory->memory[i]) factory->api.ort->ReleaseMemoryInfo(factory->memory[i]);
        free(atomic_load(&factory->spare[i]));
    }
}
