/* What the jobs of the child process share: ONNX Runtime and the EP, opened, and sessions. */
#define _GNU_SOURCE
#include "child.h"

#include "ops/dims.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

void child_doing(child *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->board->doing, sizeof c->board->doing, format, args);
    va_end(args);
}

bool child_fail(child *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    c->board->code = 0;
    vsnprintf(c->board->text, sizeof c->board->text, format, args);
    va_end(args);
    return false;
}

bool child_refused(child *c) {
    c->board->code = ort_code;
    snprintf(c->board->text, sizeof c->board->text, "%s", ort_text);
    return false;
}

/* ---------------------------------------------------------------- opening */

/* The file that the loader took for a name. */
static void put_path(child *c) {
    Dl_info info;
    void *function;
    char real[PATH_MAX];
    const char *path = c->set->ort;
    memcpy(&function, &ort_base->GetVersionString, sizeof function);
    if (dladdr(function, &info) != 0 && info.dli_fname != NULL) path = info.dli_fname;
    if (strchr(path, '/') != NULL && realpath(path, real) != NULL) path = real;
    snprintf(c->board->ort_path, sizeof c->board->ort_path, "%s", path);
}

static bool open_runtime(child *c) {
    bool ok;
    child_doing(c, "opening %s", c->set->ort);
    if (setenv("EPCTX_ORT_LIBRARY", c->set->ort, 1) != 0) return child_fail(c, "out of memory");
    ok = ort_open(false);
    child_doing(c, "opening ONNX Runtime"); /* whatever is said from here on names the path */
    if (ort_base != NULL) {
        snprintf(c->board->ort_version, sizeof c->board->ort_version, "%s",
                 ort_base->GetVersionString());
        put_path(c);
        c->board->too_old = ort_version > 0 && ort_version < 24;
    }
    if (c->board->too_old)
        return child_fail(c, "%s is ONNX Runtime %s, 1.24 or newer is needed", c->board->ort_path,
                          c->board->ort_version);
    return ok || child_refused(c);
}

static void free_dimensions(const anyep_settings *set) {
    size_t i;
    for (i = 0; i < set->dim_count; i++) {
        snprintf(ort_free_dims[i], sizeof ort_free_dims[i], "%s", set->dim_names[i]);
        ort_free_size[i] = set->dim_values[i];
    }
    ort_free_count = set->dim_count;
}

/* The EP's device of the wanted type, or its best one: some EPs accept every CPU, too. */
static const OrtEpDevice *find_device(const anyep_ep *ep) {
    static const OrtHardwareDeviceType best[] = {
        OrtHardwareDeviceType_NPU, OrtHardwareDeviceType_GPU, OrtHardwareDeviceType_CPU};
    const OrtEpDevice *device = NULL;
    size_t i;
    for (i = 0; device == NULL && i < sizeof best / sizeof best[0]; i++)
        if (ep->device_type < 0 || (int)best[i] == ep->device_type)
            device = ort_device_of(ep->library, ep->name, &best[i]);
    return device;
}

/* What an EP is registered as whose library nobody knows, and that does not care: the second one
 * "epctx2". */
static void name_of(const anyep_ep *ep, size_t i, char *out, size_t size) {
    if (ep->registration != NULL)
        snprintf(out, size, "%s", ep->registration);
    else if (i == 0)
        snprintf(out, size, "epctx");
    else
        snprintf(out, size, "epctx%zu", i + 1);
}

/* Some EPs take the name `registered` for their own, and write it into models: in those that are
 * kept it has to be right. */
static bool is_right_name(child *c, size_t i, const char *registered) {
    if (c->set->eps[i].registration != NULL || !c->job->keeps ||
        strcmp(ort->EpDevice_EpName(c->devices[i]), registered) != 0)
        return true;
    return child_fail(c, "this EP takes the name under which it is registered for its own, and "
                         "models name it by that: give the one of its applications, --ep "
                         "LIBRARY:NAME");
}

/* Registers the library; one without a device here once more, with its virtual ones. */
static bool open_library(child *c, size_t i) {
    const anyep_ep *ep = &c->set->eps[i];
    char name[256], with_virtual[sizeof name + 8], text[sizeof ort_text];
    name_of(ep, i, name, sizeof name);
    if (!ort_ok(ort->RegisterExecutionProviderLibrary(ort_env, name, ort_path(ep->library))))
        return child_refused(c);
    c->devices[i] = find_device(ep);
    if (c->devices[i] != NULL) return is_right_name(c, i, name);
    memcpy(text, ort_text, sizeof text);
    snprintf(with_virtual, sizeof with_virtual, "%s.virtual", name);
    if (ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, name)) &&
        ort_ok(ort->RegisterExecutionProviderLibrary(ort_env, with_virtual, ort_path(ep->library))))
        c->devices[i] = find_device(ep);
    c->board->eps[i].is_virtual = c->devices[i] != NULL;
    if (c->devices[i] != NULL) return is_right_name(c, i, with_virtual);
    memcpy(ort_text, text, sizeof text);
    return child_refused(c);
}

/* An EP of ONNX Runtime itself: not all of them list devices. */
static bool open_inside(child *c, size_t i) {
    const anyep_ep *ep = &c->set->eps[i];
    c->devices[i] = find_device(ep);
    if (c->devices[i] != NULL) return true;
    if (!ort_has_inside(ep->name))
        return child_fail(c,
                          "there is no such library, and ONNX Runtime %s has no EP of this name "
                          "itself (epctx devices lists them)",
                          c->board->ort_version);
    if (ep->device_type >= 0 && ort_device_of(NULL, ep->name, NULL) != NULL)
        return child_fail(c, "it has no device of this type");
    return ep->device_type < 0 ||
           child_fail(c, "ONNX Runtime lists no devices of this EP, which is inside it: instead of "
                         "--device, use an option of the EP (--ep-opt)");
}

static bool open_ep(child *c, size_t i) {
    const anyep_ep *ep = &c->set->eps[i];
    ort_spec *spec = &c->specs[i];
    child_doing(c, "registering %s", ep->given);
    if (!(ep->library != NULL ? open_library(c, i) : open_inside(c, i))) return false;
    spec->device = c->devices[i];
    spec->by_name = spec->device == NULL;
    spec->ep = spec->by_name ? ep->name : ort->EpDevice_EpName(spec->device);
    spec->options = ep->options;
    if (i > 0) c->specs[i - 1].next = spec;
    return true;
}

bool child_open(child *c) {
    size_t i;
    free_dimensions(c->set);
    if (!open_runtime(c)) return false;
    for (i = 0; i < c->set->ep_count && !c->job->cpu; i++)
        if (!open_ep(c, i)) return false;
    c->ep_count = i;
    return true;
}

/* ---------------------------------------------------------------- sessions */

ort_spec child_spec(const child *c) {
    static GraphOptimizationLevel level;
    ort_spec spec;
    spec = c->specs[0]; /* empty without an EP; the others follow it */
    spec.config = c->set->session;
    spec.allow_cpu = !c->job->require_all;
    spec.threads = c->job->threads;
    spec.tell = c->set->verbose;
    level = (GraphOptimizationLevel)c->job->optimization;
    if (c->job->optimization >= 0) spec.level = &level;
    return spec;
}

/* The model with the dimensions of --dim INPUT[AXIS]=N. */
static epctx_status fix_places(const child *c, epctx_model *model, epctx_error *error) {
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < c->set->place_count && status == EPCTX_OK; i++)
        status = epctx_fix_input_dim(model, epctx_str_of(c->set->places[i].input),
                                     c->set->places[i].axis, c->set->places[i].value, NULL, error);
    return status;
}

/* Into memory that lives as long as the process. */
static epctx_status write_model(epctx_model *model, ort_spec *spec, epctx_error *error) {
    const uint64_t size = epctx_model_size(model);
    pb_byte_t *data = size <= (uint64_t)EPCTX_MODEL_MAX ? (pb_byte_t *)malloc((size_t)size) : NULL;
    pb_ostream_t stream;
    if (data == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "the model is too big for memory");
    stream = pb_ostream_from_buffer(data, (size_t)size);
    spec->path = NULL;
    spec->data = data;
    spec->size = (size_t)size;
    return epctx_model_write_stream(model, &stream, error);
}

/* One entry more than the session has; it lives as long as the process. */
static bool add_entry(child *c, ort_spec *spec, const char *key, const char *value) {
    const char **config;
    size_t count = 0;
    while (spec->config != NULL && spec->config[count] != NULL) count++;
    config = (const char **)calloc(count + 3, sizeof *config);
    if (config == NULL) return child_fail(c, "out of memory");
    if (count > 0) memcpy(config, spec->config, count * sizeof *config);
    config[count] = key;
    config[count + 1] = value;
    spec->config = config;
    return true;
}

/* Where a model from memory has its external data. */
static bool add_folder(child *c, const char *file, ort_spec *spec) {
    const epctx_str folder = epctx_path_folder(epctx_str_of(file));
    return add_entry(c, spec, "session.model_external_initializers_file_folder_path",
                     folder.size > 0 ? epctx_arena_copy(c->set->arena, folder) : ".");
}

/* On CPUs with AVX2 alone, ORT's kernels for uint8 times int8 saturate by default: the reference
 * would be wrong, not the EP. Before 1.30 the switch can make ORT abort. A value that the user
 * gives stays. */
static bool add_exact(child *c, ort_spec *spec) {
    static const char key[] = "session.x64quantprecision";
    const char *const *given = spec->config;
    if (!c->set->exact || ort_version < 30) return true;
    for (; given != NULL && *given != NULL; given += 2)
        if (strcmp(*given, key) == 0) return true;
    return add_entry(c, spec, key, "1");
}

bool child_is_file(child *c, const char *file) {
    struct stat there;
    return stat(file, &there) != 0 || S_ISREG(there.st_mode) ||
           child_fail(c, "%s is no regular file", file);
}

/* ORT overrides dimensions by name only: by place it gets the changed model, from memory. A context
 * model has no free dimensions any more. */
bool child_model(child *c, const char *file, ort_spec *spec) {
    epctx_model model;
    epctx_node_view node;
    epctx_error error;
    epctx_status status;
    if (!child_is_file(c, file) || !add_exact(c, spec)) return false;
    spec->path = file;
    if (c->set->place_count == 0) return true;
    status = cli_open(&model, file, &error);
    if (status != EPCTX_OK || !cli_first_epnode(&model, &node)) {
        if (status == EPCTX_OK) status = fix_places(c, &model, &error);
        if (status == EPCTX_OK) status = write_model(&model, spec, &error);
    }
    epctx_model_close(&model);
    if (status != EPCTX_OK) return child_fail(c, "%s", error.message);
    return spec->path != NULL || add_folder(c, file, spec);
}
