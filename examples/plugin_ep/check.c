/* check.c - what the author of a device can forget: said with its name when the library is
 * registered or a session is made. Without that ORT or this folder would crash on it later. */
#include "ep.h"

typedef struct member {
    const char *name;
    bool there;
} member;

/* An empty text is a missing one. */
static bool text(const char *given) {
    return given && *given;
}

static const char *missing(const member *members, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        if (!members[i].there) return members[i].name;
    return NULL;
}

epctx_status ep_device_check(const ep_device *device, epctx_error *error) {
    size_t i;
    if (!device) return epctx_fail(error, EPCTX_ERR_CONFIG, "ep_device_get returns NULL");
    {
        const member members[] = {{"ep_name", text(device->ep_name)},
                                  {"vendor", text(device->vendor)},
                                  {"version", text(device->version)},
                                  {"open_fn", device->open_fn != NULL},
                                  {"close_fn", device->close_fn != NULL}};
        const char *name = missing(members, sizeof members / sizeof *members);
        if (name) return epctx_fail(error, EPCTX_ERR_CONFIG, "ep_device.%s is not set", name);
    }
    if (strlen(device->ep_name) > EP_NAME_MAX) {
        return epctx_fail(error, EPCTX_ERR_CONFIG, "ep_device.ep_name has more than %u characters",
                          (uint64_t)EP_NAME_MAX);
    }
    if (!device->dynamic_keys != !device->dynamic_fn) {
        return epctx_fail(
            error, EPCTX_ERR_CONFIG,
            "ep_device.dynamic_keys and dynamic_fn are for each other: only %s is set",
            device->dynamic_fn ? "dynamic_fn" : "dynamic_keys");
    }
    for (i = 0; device->metadata && device->metadata[i]; i += 2) {
        if (device->metadata[i + 1]) continue;
        return epctx_fail(error, EPCTX_ERR_CONFIG, "ep_device.metadata: key '%s' has no value",
                          device->metadata[i]);
    }
    if (device->convert_fn && !device->channels_last_fn) {
        return epctx_fail(error, EPCTX_ERR_CONFIG,
                          "ep_device.convert_fn is set without channels_last_fn");
    }
    return EPCTX_OK;
}

static epctx_status check_backend(const ep_device *device, const epctx_backend *backend,
                                  epctx_error *error) {
    const bool weightless = backend->weightless != EPCTX_WEIGHTLESS_NONE;
    const member members[] = {
        {"source", text(backend->source)},
        {"short_name", text(backend->short_name)},
        {"sdk_version", backend->sdk_version != NULL},
        {"hardware_architecture", backend->hardware_architecture != NULL},
        {"capability_fn", backend->capability_fn != NULL},
        {"begin_fn", backend->begin_fn != NULL},
        {"compile_fn", backend->compile_fn != NULL},
        {"finish_fn", backend->finish_fn != NULL},
        {"discard_fn", backend->discard_fn != NULL},
        {"load_fn", backend->load_fn != NULL},
        {"unload_fn", backend->unload_fn != NULL},
        {"find_fn", backend->find_fn != NULL},
        {"info_fn", backend->info_fn != NULL},
        {"run_fn", backend->run_fn != NULL},
        {"setup_fn", backend->setup_fn || !weightless},
        {"weights_fn", backend->weights_fn || !weightless},
    };
    const char *name;
    if (backend->version != EPCTX_BACKEND_VERSION) {
        return epctx_fail(error, EPCTX_ERR_CONFIG, "backend version %u, expected %u",
                          (uint64_t)backend->version, (uint64_t)EPCTX_BACKEND_VERSION);
    }
    name = missing(members, sizeof members / sizeof *members);
    if (name) return epctx_fail(error, EPCTX_ERR_CONFIG, "epctx_backend.%s is not set", name);
    if (strcmp(backend->source, device->ep_name) != 0) {
        return epctx_fail(error, EPCTX_ERR_CONFIG,
                          "epctx_backend.source is '%s', expected the EP's name '%s'",
                          backend->source, device->ep_name);
    }
    if (strpbrk(backend->short_name, "/\\")) {
        return epctx_fail(error, EPCTX_ERR_CONFIG,
                          "epctx_backend.short_name is '%s', expected a part of a file name",
                          backend->short_name);
    }
    return EPCTX_OK;
}

epctx_status ep_backend_open(const ep_device *device, const ep_options *options, epctx_backend *out,
                             epctx_error *error) {
    epctx_status status;
    memset(out, 0, sizeof *out);
    epctx_error_clear(error);
    status = device->open_fn(options, out, error);
    if (status != EPCTX_OK) {
        return *error->message ? status
                               : epctx_fail(error, status, "open_fn of %s fails without a message",
                                            device->ep_name);
    }
    status = check_backend(device, out, error);
    if (status != EPCTX_OK) device->close_fn(out);
    return status;
}
