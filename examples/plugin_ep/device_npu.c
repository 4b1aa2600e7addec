/* device_npu.c - the reference NPU of epctx_npu.h as a device of the plugin EP. To serve your own
 * device, write one file like this one and leave the others alone (examples/README.md). */
#define EPCTX_NPU_IMPLEMENTATION
#include "epctx_npu.h"

#include <stdlib.h>

#include "device.h"

/* hardware_architecture: one of epctx_npu_arch_list. check_weights: 1: loading a context also reads
 * its weights and compares their checksum; 0, the default: a damaged weight computes damaged
 * numbers. */
static const char *const option_keys[] = {"hardware_architecture", "check_weights", NULL};

static epctx_status npu_open(const ep_options *options, epctx_backend *backend, epctx_error *error)
{
    epctx_npu_opts opts = {0};
    epctx_npu *npu;
    epctx_status status = ep_option_switch(options, "check_weights", &opts.check_weights, error);
    if (status != EPCTX_OK) return status;
    npu = (epctx_npu *)calloc(1, sizeof *npu);
    if (!npu) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for the NPU's state");
    opts.architecture = ep_option_get(options, "hardware_architecture");
    status = epctx_npu_init(npu, &opts, backend, error);
    if (status != EPCTX_OK) free(npu);
    return status;
}

static void npu_close(epctx_backend *backend)
{
    free(backend->self);
}

/* ORT's session works in CPU memory: a number nobody's PCI bus knows. */
static const ep_device device = {
    "EpctxNpuExecutionProvider",
    "epctx",
    0xe9c7,
    EPCTX_VERSION_STRING,
    npu_open,
    npu_close,
    NULL, /* the default rule for compiled models */
    NULL, /* nothing to change in a living session */
    NULL,
    NULL, /* channels first */
    NULL,
    option_keys,
};

const ep_device *ep_device_get(void)
{
    return &device;
}
