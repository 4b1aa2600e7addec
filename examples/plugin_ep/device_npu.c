/* device_npu.c - the reference NPU of epctx_npu.h as a device of the plugin EP. To serve your own
 * device, write one file like this one and leave the others alone (examples/README.md). */
#define EPCTX_NPU_IMPLEMENTATION
#include "epctx_npu.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "device.h"

typedef struct npu_session {
    epctx_npu npu; /* first: it is backend->self */
    epctx_hooks hooks;
    epctx_npu_run_opts run;
    atomic_bool cancelled;
} npu_session;

static bool npu_cancelled(void *user) {
    return atomic_load_explicit(&((npu_session *)user)->cancelled, memory_order_relaxed);
}

/* hardware_architecture: one of epctx_npu_arch_list. check_weights: whether loading a context also
 * reads its weights and compares their checksum: never, auto (epctx_npu_check), always. direct: 1:
 * no Winograd, whose results round more. threads: how many of ORT's threads share a run, at most;
 * by default all that the session has. */
static const char *const option_keys[] = {"hardware_architecture", "check_weights", "direct",
                                          "threads", NULL};

/* For the size of the scratch; npu_run has ORT's threads. */
static void in_turn(void *user, uint32_t count, void (*work_fn)(void *work, uint32_t i),
                    void *work) {
    uint32_t i;
    (void)user;
    for (i = 0; i < count; i++) work_fn(work, i);
}

static epctx_status npu_open(const ep_options *options, epctx_backend *backend,
                             epctx_error *error) {
    epctx_npu_opts opts = {0};
    npu_session *session;
    unsigned check; /* in the order of epctx_npu_check */
    uint32_t threads = 1;
    epctx_status status = ep_option_choice(options, "check_weights", &check, error);
    if (status == EPCTX_OK) status = ep_option_switch(options, "direct", &opts.direct, error);
    if (status == EPCTX_OK)
        status = ep_option_number(options, "threads", 1, 64, ep_processors(), &threads, error);
    if (status != EPCTX_OK) return status;
    opts.check_weights = (epctx_npu_check)check;
    session = (npu_session *)calloc(1, sizeof *session);
    if (!session) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for the NPU's state");
    session->hooks.user = session;
    session->hooks.cancel_fn = npu_cancelled;
    session->run.hooks = &session->hooks;
    session->run.parallel_fn = in_turn;
    session->run.threads = threads;
    opts.run = &session->run;
    opts.allocator = &ep_payload_allocator;
    opts.architecture = ep_option_get(options, "hardware_architecture");
    status = epctx_npu_init(&session->npu, &opts, backend, error);
    if (status != EPCTX_OK) free(session);
    return status;
}

static void npu_close(epctx_backend *backend) {
    free(backend->self);
}

static epctx_status npu_run(const epctx_backend *backend, void *graph, const epctx_span *inputs,
                            const epctx_memory *outputs, void *scratch, size_t scratch_size,
                            const ep_helpers *helpers, epctx_error *error) {
    epctx_npu_run_opts opts = ((const npu_session *)backend->self)->run;
    opts.user = helpers->user;
    opts.parallel_fn = helpers->parallel_fn;
    if (opts.threads > helpers->threads) opts.threads = helpers->threads;
    return epctx_npu_run_with((const epctx_npu_graph *)graph, inputs, outputs, scratch,
                              scratch_size, &opts, error);
}

/* ep.dynamic.cancel_runs: 1: runs of the session, those under way and those to come, fail before
 * their next command; 0: they do not. RunOptionsSetTerminate ends a run between two nodes of ORT
 * only: no function of its API lets an EP see that flag. */
static const char *const dynamic_keys[] = {"ep.dynamic.cancel_runs", NULL};

static epctx_status npu_dynamic(epctx_backend *backend, const char *key, const char *value,
                                epctx_error *error) {
    const bool on = strcmp(value, "1") == 0;
    if (!on && strcmp(value, "0") != 0)
        return epctx_fail(error, EPCTX_ERR_ARG, "%s: 0 or 1 is expected, found '%s'", key, value);
    atomic_store(&((npu_session *)backend->self)->cancelled, on);
    return EPCTX_OK;
}

/* As in its EPContext nodes. */
static const char *const metadata[] = {"hardware_architecture", "generic", "ep_sdk_version",
                                       EPCTX_NPU_SDK_VERSION, NULL};

/* The device uses CPU memory: a number that is no PCI vendor id. */
static const ep_device device = {
    "EpctxNpuExecutionProvider",
    "epctx",
    0xe9c7,
    EPCTX_VERSION_STRING,
    npu_open,
    npu_close,
    dynamic_keys,
    npu_dynamic,
    NULL, /* channels first */
    NULL,
    option_keys,
    NULL, /* it is software, and always there */
    metadata,
    npu_run,
};

const ep_device *ep_device_get(void) {
    return &device;
}
