/*
 * The template (examples/my_ep/device_mine.c) with one mistake of its author, which EPCTX_MISTAKE
 * names: a member of ep_device or epctx_backend that is forgotten ("device.NAME", "backend.NAME"),
 * or one of the list below. test_plugin.sh expects ONNX Runtime's user to read what is wrong.
 */
#define ep_device_get mine_device_get
#include "../../examples/my_ep/device_mine.c"
#undef ep_device_get

#include <stddef.h>

static bool mistake(const char *name) {
    const char *made = getenv("EPCTX_MISTAKE");
    return made && strcmp(made, name) == 0;
}

/* ---------------------------------------------------------------- forgotten members */

typedef struct member {
    const char *name;
    size_t at; /* a pointer: to a text, a list or a function */
} member;

#define OF_DEVICE(name) \
    { "device." #name, offsetof(ep_device, name) }
#define OF_BACKEND(name) \
    { "backend." #name, offsetof(epctx_backend, name) }

static const member device_members[] = {
    OF_DEVICE(ep_name), OF_DEVICE(vendor),   OF_DEVICE(version),
    OF_DEVICE(open_fn), OF_DEVICE(close_fn), OF_DEVICE(option_keys),
};

static const member backend_members[] = {
    OF_BACKEND(source),        OF_BACKEND(short_name),
    OF_BACKEND(sdk_version),   OF_BACKEND(hardware_architecture),
    OF_BACKEND(capability_fn), OF_BACKEND(begin_fn),
    OF_BACKEND(compile_fn),    OF_BACKEND(finish_fn),
    OF_BACKEND(discard_fn),    OF_BACKEND(load_fn),
    OF_BACKEND(unload_fn),     OF_BACKEND(find_fn),
    OF_BACKEND(info_fn),       OF_BACKEND(run_fn),
    OF_BACKEND(explain_fn),    OF_BACKEND(check_fn),
};

static void forget(void *object, const member *members, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        if (mistake(members[i].name)) memset((char *)object + members[i].at, 0, sizeof(void *));
}

/* ------------------------------------------------------- functions that do it wrong */

static epctx_status fails(epctx_error *error, const char *function) {
    return epctx_fail(error, EPCTX_ERR_BACKEND, "the SDK is not well in %s", function);
}

static epctx_status capability(void *self, const epctx_graph *graph, uint8_t *take,
                               epctx_error *error) {
    size_t i;
    if (mistake("capability_fails")) return fails(error, "capability_fn");
    for (i = 0; mistake("takes_everything") && i < graph->node_count; i++) take[i] = 1;
    return mistake("takes_everything") ? EPCTX_OK : mine_capability(self, graph, take, error);
}

static epctx_status explain(void *self, const epctx_graph *graph, size_t index,
                            epctx_error *error) {
    return mistake("explain_forgets") ? EPCTX_OK : mine_explain(self, graph, index, error);
}

static epctx_status begin(void *self, void **build, epctx_error *error) {
    if (mistake("begin_fails")) return fails(error, "begin_fn");
    return mine_begin(self, build, error);
}

static epctx_status compile(void *self, void *build, const epctx_graph *graph, epctx_str name,
                            uint64_t hash, epctx_error *error) {
    if (mistake("compile_fails")) return fails(error, "compile_fn");
    if (mistake("compile_fails_silently")) return EPCTX_ERR_BACKEND;
    if (mistake("compile_forgets")) return EPCTX_OK;
    return mine_compile(self, build, graph, name, mistake("hash_forgotten") ? 0 : hash, error);
}

static epctx_status finish(void *self, void *build, epctx_buffer *out, epctx_error *error) {
    if (mistake("finish_fails") || mistake("finish_forgets")) {
        mine_discard(self, build);
        return mistake("finish_fails") ? fails(error, "finish_fn") : EPCTX_OK;
    }
    return mine_finish(self, build, out, error);
}

static epctx_status load(void *self, const epctx_load_in *in, void **context, epctx_error *error) {
    return mistake("load_fails") ? fails(error, "load_fn") : mine_load(self, in, context, error);
}

static epctx_status find(void *self, void *context, epctx_str name, uint64_t hash, void **graph,
                         epctx_error *error) {
    if (mistake("find_fails")) return fails(error, "find_fn");
    return mistake("find_forgets") ? EPCTX_OK : mine_find(self, context, name, hash, graph, error);
}

static epctx_status info(void *self, void *graph, epctx_graph_info *out, epctx_error *error) {
    const epctx_status status = mine_info(self, graph, out, error);
    if (mistake("info_fails")) return fails(error, "info_fn");
    if (mistake("info_forgets")) memset(out, 0, sizeof *out);
    if (mistake("info_without_values")) out->inputs = NULL;
    if (mistake("info_without_outputs")) out->output_count = 0;
    if (mistake("scratch_without_end")) out->scratch_size = SIZE_MAX / 2;
    return status;
}

static epctx_status run(void *self, void *graph, const epctx_span *inputs,
                        const epctx_memory *outputs, void *scratch, size_t scratch_size,
                        epctx_error *error) {
    if (mistake("run_fails")) return fails(error, "run_fn");
    if (mistake("run_fails_silently")) return EPCTX_ERR_BACKEND;
    if (mistake("run_forgets")) return EPCTX_OK;
    return mine_run(self, graph, inputs, outputs, scratch, scratch_size, error);
}

static epctx_status check(void *self, const epctx_epnode *node, epctx_error *error) {
    return mistake("check_fails") ? fails(error, "check_fn") : mine_check(self, node, error);
}

/* ------------------------------------------------------------------------ the device */

static void set_functions(epctx_backend *backend) {
    backend->capability_fn = capability;
    backend->begin_fn = begin;
    backend->compile_fn = compile;
    backend->finish_fn = finish;
    backend->load_fn = load;
    backend->find_fn = find;
    backend->info_fn = info;
    backend->run_fn = run;
    backend->explain_fn = explain;
    backend->check_fn = check;
}

static epctx_status mistaken_open(const ep_options *options, epctx_backend *backend,
                                  epctx_error *error) {
    epctx_status status;
    if (mistake("open_fails")) return fails(error, "open_fn");
    if (mistake("open_fails_silently")) return EPCTX_ERR_BACKEND;
    if (mistake("open_fails_oddly")) return (epctx_status)12345;
    if (mistake("open_forgets")) return EPCTX_OK;
    status = mine_open(options, backend, error);
    if (status != EPCTX_OK) return status;
    set_functions(backend);
    forget(backend, backend_members, sizeof backend_members / sizeof *backend_members);
    if (mistake("old_version")) backend->version = EPCTX_BACKEND_VERSION - 1;
    if (mistake("empty_source")) backend->source = "";
    if (mistake("other_source")) backend->source = "AcornExecutionProvider";
    if (mistake("folder_in_short_name")) backend->short_name = "../mine";
    if (mistake("long_sdk_version")) {
        static char text[400];
        memset(text, '1', sizeof text - 1);
        backend->sdk_version = text;
    }
    if (mistake("half_weightless")) backend->weightless = EPCTX_WEIGHTLESS_ALL;
    return EPCTX_OK;
}

static epctx_status no_dynamic(epctx_backend *backend, const char *key, const char *value,
                               epctx_error *error) {
    (void)backend, (void)key, (void)value, (void)error;
    return EPCTX_OK;
}

static int no_convert(const epctx_backend *backend, const char *domain, const char *op_type) {
    (void)backend, (void)domain, (void)op_type;
    return 0;
}

static bool absent(void) {
    return false;
}

const ep_device *ep_device_get(void) {
    static const char *const keys[] = {"ep.dynamic.mode", NULL};
    static const char *const odd[] = {"colour", "red", "size", NULL};
    static ep_device mistaken;
    static char long_name[200];
    mistaken = device;
    mistaken.open_fn = mistaken_open;
    forget(&mistaken, device_members, sizeof device_members / sizeof *device_members);
    if (mistake("empty_name")) mistaken.ep_name = "";
    if (mistake("long_name")) {
        memset(long_name, 'x', sizeof long_name - 1);
        mistaken.ep_name = long_name;
    }
    if (mistake("dynamic_keys_alone")) mistaken.dynamic_keys = keys;
    if (mistake("dynamic_fn_alone")) mistaken.dynamic_fn = no_dynamic;
    if (mistake("convert_fn_alone")) mistaken.convert_fn = no_convert;
    if (mistake("metadata_odd")) mistaken.metadata = odd;
    if (mistake("absent")) mistaken.present_fn = absent;
    return mistake("no_device") ? NULL : &mistaken;
}
