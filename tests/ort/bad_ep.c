/* bad_ep.c - an EP with one fault. It loads a good one (the toy) from EPCTX_TOY_EP and puts itself
 * between it and ORT: what the good one hands to ORT and what it gets from ORT goes through here.
 * EPCTX_BAD_EP says which fault:
 *   data_transfer  OrtEpFactory::CreateDataTransfer is NULL, which its header allows
 *   compatibility  OrtEp::GetCompiledModelCompatibilityInfo returns NULL
 *   none           nothing: shows that the rest works
 *   vendor_id      OrtEpFactory::GetVendorId ends the process: does ORT ever call it?
 *   version        the same for OrtEpFactory::GetVersion
 *   only_embeds    no fault: refuses context binaries in files
 *   only_virtual   no fault: has no device but the virtual one
 *   no_sharing_here  no fault: shared binaries do not load on this machine
 *   pads_binary    no fault: zeros behind the binary, which it does not read
 *   prints         no fault: much, to stdout and stderr
 *   only_compiles  no fault: only_virtual, and sessions are refused
 *   count_kept     no fault: without hardware GetSupportedDevices leaves its count as it is
 *   coarse         no fault: results have five bits behind the point, less than bfloat16's
 *   registration_hangs, loading_hangs
 *   ignores_prefix, ignores_embed  no fault: what these options ask for is not done
 *   warns          no fault: logs a warning twice, a long one, and more of them than anybody reads
 *   weights_in_source  no fault: weightless contexts read their weights from the source model
 *   data_flags_N   OrtEp::GetEpContextDataSupport answers N
 *   data_flags_fail  it fails
 *   data_flags_names  ORT 1.30 with one of the four functions behind the callbacks
 *   data_flags_none   ORT 1.30 without them
 * and those of tests/faults.txt, which epctx-conformance must find. It works on one EP in one
 * process, and keeps its state in static variables.
 */
#define _GNU_SOURCE
#if !defined(_WIN32) /* tests/windows.h is in front of us */
#include <dlfcn.h>
#include <unistd.h>
#endif
#include <limits.h>
#include <onnxruntime_c_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ort131.h"

typedef OrtStatus *(*create_fn)(const char *, const OrtApiBase *, const OrtLogger *,
                                OrtEpFactory **, size_t, size_t *);
typedef OrtStatus *(*release_fn)(OrtEpFactory *);

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
EXPORT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base,
                                    const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                                    size_t *count);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

#define EP_NAME "ToyExecutionProvider"

/* What ORT gives, and what the good EP gets: copies with some functions replaced. */
static const OrtApi *real;
static const OrtEpApi *real_ep;
static const OrtModelEditorApi *real_editor;
static const ort131_ep_api *real_slots; /* NULL: an ONNX Runtime without them */
/* As long as ORT's own. */
static union {
    OrtApi known;
    ort131_api whole;
} api;
static union {
    OrtEpApi known;
    ort131_ep_api whole;
} epctx_ort_api;
static OrtModelEditorApi editor;
static OrtEpFactory factory; /* as the good one filled it in */
static OrtEp ep;             /* the same of the last session: all have the same functions */

static bool fault(const char *name) {
    const char *what = getenv("EPCTX_BAD_EP");
    return what && strcmp(what, name) == 0;
}

static void crash(void) {
    abort();
}

static pthread_t registrar; /* who registered the library */

/* Two at once in what only one may enter end the process. A thread that the application has beside
 * the first waits for another one, so that it does not depend on the load whether they meet. */
static void enter_alone(atomic_int *inside) {
    int i;
    if (atomic_fetch_add(inside, 1) > 0) crash();
    for (i = 0; i < 10 && !pthread_equal(pthread_self(), registrar); i++) usleep(500000);
}

static void leak_file(void) {
    if (!fopen(getenv("EPCTX_TOY_EP"), "rb")) crash();
}

/* Through a volatile: memory that nobody reads is not even taken, once a compiler optimises. */
static void leak(size_t size) {
    static void *volatile last;
    last = malloc(size);
    if (last) memset(last, 1, size);
}

/* Of the session that is made or compiled: the good EP asks for both before it uses them. */
static struct {
    char model[PATH_MAX], context[PATH_MAX];
    bool generates, embeds, shares, idle, stops, hides, weightless;
} session;

static const char *text_of(const OrtKeyValuePairs *config, const char *key) {
    const char *text = real->GetKeyValue(config, key);
    return text ? text : "";
}

/* ------------------------------------------------------------ session options */

static const OrtLogger *default_logger;

static void warn(const char *text) {
    OrtStatus *status = real->Logger_LogMessage(default_logger, ORT_LOGGING_LEVEL_WARNING, text,
                                                ORT_FILE, __LINE__, "log_warnings");
    if (status) real->ReleaseStatus(status);
}

static void log_warnings(void) {
    char text[1001];
    int i;
    warn("The chip is unknown.\nSo it is any one.");
    warn("The chip is unknown.");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    warn(text);
    for (i = 0; i < 9; i++) {
        snprintf(text, sizeof text, "warning %d", i);
        warn(text);
    }
}

static void change_config(OrtKeyValuePairs *config) {
    const char *folder = text_of(config, "session.model_external_initializers_file_folder_path");
    char path[PATH_MAX];
    if (fault("data_folder") && *folder) {
        snprintf(path, sizeof path, "%s/m_ctx.onnx", folder);
        real->AddKeyValuePair(config, "ep.context_file_path", path);
    }
    if (fault("stop_accepted") && session.stops && !session.shares)
        real->AddKeyValuePair(config, "ep.stop_share_ep_contexts", "0");
    if (fault("ignores_context_path") && !session.generates)
        real->AddKeyValuePair(config, "ep.context_file_path", "");
    if (fault("guesses_folder") && !session.generates && !*session.context)
        real->AddKeyValuePair(config, "ep.context_file_path", "out/x.onnx");
    if (fault("ignores_prefix")) real->AddKeyValuePair(config, "ep.context_node_name_prefix", "");
    if (fault("ignores_embed")) real->AddKeyValuePair(config, "ep.context_embed_mode", "0");
    if (fault("weightless_ignored")) real->AddKeyValuePair(config, "ep.enable_weightless", "0");
    if (fault("source_path_ignored"))
        real->AddKeyValuePair(config, "ep.context_source_model_path", "");
    if (fault("warns") && session.generates) log_warnings();
    if (fault("context_options_while_loading") && !session.generates) {
        if (*text_of(config, "ep.context_node_name_prefix")) crash();
    }
}

static OrtStatus *ORT_API_CALL read_config(const OrtSessionOptions *options,
                                           OrtKeyValuePairs **out) {
    OrtStatus *status = real->GetSessionOptionsConfigEntries(options, out);
    if (status) return status;
    memset(&session, 0, sizeof session);
    session.generates = strcmp(text_of(*out, "ep.context_enable"), "1") == 0;
    if (fault("always_embeds")) real->AddKeyValuePair(*out, "ep.context_embed_mode", "1");
    session.embeds = strcmp(text_of(*out, "ep.context_embed_mode"), "1") == 0;
    session.shares = strcmp(text_of(*out, "ep.share_ep_contexts"), "1") == 0;
    session.stops = strcmp(text_of(*out, "ep.stop_share_ep_contexts"), "1") == 0;
    session.idle = strcmp(text_of(*out, "session.compile_only"), "1") == 0 ||
                   (session.generates && session.shares);
    session.hides = *text_of(*out, "ep.context_node_name_prefix") != '\0';
    session.weightless = strcmp(text_of(*out, "ep.enable_weightless"), "1") == 0;
    snprintf(session.context, sizeof session.context, "%s", text_of(*out, "ep.context_file_path"));
    change_config(*out);
    return NULL;
}

static OrtStatus *ORT_API_CALL model_path(const OrtGraph *graph, const ORTCHAR_T **out) {
    OrtStatus *status = real->Graph_GetModelPath(graph, out);
#if !defined(_WIN32) /* paths are wide there: without the faults that are about them */
    if (!status) snprintf(session.model, sizeof session.model, "%s", *out);
    if (!status && fault("needs_current_folder")) {
        const char *slash = strrchr(*out, '/');
        if (slash) *out = slash + 1;
    }
#endif
    return status;
}

/* --------------------------------- the application's callbacks for context data */

/* What the application has set, as the good EP asked for it last. */
static ort131_read_fn app_read;
static ort131_write_fn app_write;
static void *read_state, *write_state;

/* As a path would be tidied up. */
static void tidy(const char *name, char *out, size_t size) {
    size_t used = 0;
    for (; *name && used + 1 < size; name++)
        if (*name != '/' || used == 0 || out[used - 1] != '/') out[used++] = *name;
    out[used] = '\0';
}

/* A failure gets words of the EP's own. */
static OrtStatus *retell(OrtStatus *status, const char *name) {
    const OrtErrorCode code = status ? real->GetErrorCode(status) : ORT_OK;
    if (!status || !fault(name)) return status;
    real->ReleaseStatus(status);
    return real->CreateStatus(code, "the context could not be read or written");
}

static OrtStatus *recode(OrtStatus *status, const char *name) {
    char text[400];
    if (!status || !fault(name)) return status;
    snprintf(text, sizeof text, "%s", real->GetErrorMessage(status));
    real->ReleaseStatus(status);
    return real->CreateStatus(ORT_EP_FAIL, text);
}

static OrtStatus *ORT_API_CALL bad_read(void *state, const char *name, OrtAllocator *allocator,
                                        void **data, size_t *size) {
    OrtStatus *status;
    char text[2 * PATH_MAX], *c;
    snprintf(text, sizeof text, "%s", name);
    if (fault("data_name_tidied")) tidy(name, text, sizeof text);
    if (fault("data_name_cut")) text[strlen(text) < 128 ? strlen(text) : 128] = '\0';
    if (fault("data_name_ascii"))
        for (c = text; *c; c++)
            if (*c & 0x80) *c = '_';
    status = app_read(state, text, allocator, data, size);
    if (!status && fault("data_kept")) leak(1 << 20);
    return recode(retell(status, "data_read_words"), "data_read_code");
}

static OrtStatus *ORT_API_CALL bad_write(void *state, const char *name, const void *data,
                                         size_t size) {
    char text[2 * PATH_MAX];
    snprintf(text, sizeof text, "%s%s", fault("data_other_name") ? "out/" : "", name);
    return recode(retell(app_write(state, text, data, size), "data_write_words"),
                  "data_write_code");
}

static OrtStatus *ORT_API_CALL get_read(const ort131_config *config, ort131_read_fn *out,
                                        void **state) {
    OrtStatus *status =
        real_slots->EpContextConfigGetEpContextDataReadFunc(config, &app_read, &read_state);
    if (status) return status;
    *state = read_state;
    *out = app_read && !fault("data_read_unused") ? bad_read : NULL;
    return NULL;
}

static OrtStatus *ORT_API_CALL get_write(const ort131_config *config, ort131_write_fn *out,
                                         void **state) {
    OrtStatus *status =
        real_slots->EpContextConfigGetEpContextDataWriteFunc(config, &app_write, &write_state);
    if (status) return status;
    *state = write_state;
    *out = app_write && !fault("data_write_unused") ? bad_write : NULL;
    return NULL;
}

/* Callbacks are called where nobody asked for it. */
static OrtStatus *call_too_often(void) {
    OrtAllocator *allocator = NULL;
    OrtStatus *status = real->GetAllocatorWithDefaultOptions(&allocator);
    void *data = NULL;
    size_t size = 0;
    if (!status && app_write && session.embeds && fault("data_written_twice"))
        status = app_write(write_state, "copy", "x", 1);
    if (status || !app_read || !fault("data_always_read")) return status;
    status = app_read(read_state, "cache", allocator, &data, &size);
    if (status) real->ReleaseStatus(status); /* there is none */
    return NULL;
}

static OrtStatus *ORT_API_CALL source_buffer(const OrtSessionOptions *options, const void **data,
                                             size_t *size) {
    OrtStatus *status = real_ep->SessionOptionsGetWeightlessSourceModelBuffer(options, data, size);
    if (status || !fault("source_buffer_ignored")) return status;
    *data = NULL;
    *size = 0;
    return NULL;
}

/* ------------------------------------------------------- attributes, as written */

static char written[PATH_MAX], renamed[PATH_MAX + 16]; /* of the binary: by the EP, in the node */
static char first_group[PATH_MAX];

/* The path of a context binary as the fault wants it, or NULL. */
static const char *bad_path(const char *path) {
    static char out[PATH_MAX + 16];
    char *dot;
    if (fault("parent_in_path")) {
        snprintf(out, sizeof out, "out/%s", path);
        return out;
    }
    if (fault("absolute_path")) {
        const char *slash = strrchr(session.context, '/');
        snprintf(out, sizeof out, "%.*s/%s", (int)(slash ? slash - session.context : 0),
                 session.context, path);
        return out;
    }
    if (fault("first_dot")) {
        snprintf(out, sizeof out, "%s", path);
        dot = strchr(out, '.');
        if (dot) strcpy(dot, ".bin");
        return out;
    }
    if (fault("stale_group") && session.shares) {
        if (!*first_group) snprintf(first_group, sizeof first_group, "%s", path);
        return first_group;
    }
    if (fault("own_binary_each") && session.shares) {
        static int n;
        snprintf(out, sizeof out, "%d_%s", n++, path);
        return out;
    }
    return NULL;
}

static OrtStatus *ORT_API_CALL make_attr(const char *name, const void *data, int size,
                                         OrtOpAttrType type, OrtOpAttr **out) {
    static const int64_t one = 1;
    char text[PATH_MAX];
    const char *bad = NULL;
    const bool is_text = type == ORT_OP_ATTR_STRING && size < (int)sizeof text;
    snprintf(text, sizeof text, "%.*s", is_text ? size : 0, is_text ? (const char *)data : "");
    if (strcmp(name, "ep_cache_context") == 0 && strlen(text) > 4 &&
        strcmp(text + strlen(text) - 4, ".bin") == 0) {
        snprintf(written, sizeof written, "%s", text);
        bad = bad_path(text);
        snprintf(renamed, sizeof renamed, "%s", bad ? bad : text);
    }
    if (strcmp(name, "main_context") == 0 && fault("empty_primaries")) data = &one;
    if (strcmp(name, "embed_mode") == 0 && fault("always_embed_mode")) data = &one;
    if (strcmp(name, "source") == 0 && fault("no_source")) bad = "";
    if (strcmp(name, "onnx_model_filename") == 0 && fault("weights_nowhere")) bad = "none.onnx";
    if (strcmp(name, "onnx_model_filename") == 0 && fault("source_folder")) bad = session.model;
    if (strcmp(name, "partition_name") == 0 && fault("needs_source")) { /* where it was compiled */
        snprintf(text, sizeof text, "%s", session.model);
        setenv("EPCTX_BAD_EP_SOURCE", session.model, 1);
    }
    if (bad) return real->CreateOpAttr(name, bad, (int)strlen(bad), type, out);
    return real->CreateOpAttr(name, data, size, type, out);
}

/* ---------------------------------------------------------- attributes, as read */

static OrtStatus *give_text(const void *text, size_t size, void *data, size_t room, size_t *out) {
    *out = size;
    if (room < size) return real->CreateStatus(ORT_FAIL, "too small");
    if (size) memcpy(data, text, size);
    return NULL;
}

/* The node does not take its weights as inputs: its EP reads the source model. */
static bool keeps_weights_in_source(void) {
    return fault("weights_in_source") || fault("weights_nowhere") || fault("source_path_ignored") ||
           fault("source_buffer_ignored");
}

/* Bytes of the binary that was padded last. */
static size_t unpadded;

/* A file named by a node, wherever it is: with the whole path, or beside the model. */
static size_t read_named(const char *name, char *out, size_t room) {
    char path[2 * PATH_MAX];
    const char *base = *session.context && !session.generates ? session.context : session.model;
    const char *slash = strrchr(base, '/');
    FILE *in;
    size_t size;
    if (*name == '/')
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%.*s%s", (int)(slash ? slash - base + 1 : 0), base, name);
    in = fopen(path, "rb");
    if (!in) return 0;
    size = fread(out, 1, room, in);
    fclose(in);
    return size;
}

/* Opened as if it were to be written, and a byte of it written again. */
static void write_again(const char *name) {
    char path[2 * PATH_MAX];
    const char *slash = strrchr(session.model, '/');
    FILE *file;
    int first;
    snprintf(path, sizeof path, "%.*s%.*s", (int)(slash ? slash - session.model + 1 : 0),
             session.model, PATH_MAX - 1, name);
    file = fopen(path, "r+b");
    if (!file) return;
    first = fgetc(file);
    rewind(file);
    if (first != EOF) fputc(first, file);
    fclose(file);
}

/* From the current folder, if a file of that name is there, else from beside the model. */
static size_t read_here(const char *name, char *out, size_t room) {
    FILE *in = fopen(name, "rb");
    size_t size;
    if (!in) return read_named(name, out, room);
    size = fread(out, 1, room, in);
    fclose(in);
    return size;
}

static OrtStatus *read_context(const OrtOpAttr *attr, void *data, size_t room, size_t *out) {
    static char text[1 << 20], file[1 << 20];
    size_t size = 0, got;
    OrtStatus *status = real->ReadOpAttr(attr, ORT_OP_ATTR_STRING, text, sizeof text - 1, &size);
    if (status) return status;
    text[size] = '\0';
    if (fault("temporary_file") && size > 200) {
        FILE *temporary = fopen("unpacked.bin", "wb");
        if (temporary) fclose(temporary);
    }
    if (fault("follows_paths") ||
        (fault("follows_links") && strstr(text, "link"))) { /* as the suite calls them */
        got = size < PATH_MAX ? read_named(text, file, sizeof file) : 0;
        if (got) return give_text(file, got, data, room, out);
    }
    if (fault("binary_written") && size < PATH_MAX) write_again(text);
    if (fault("current_folder_first") && size < PATH_MAX) {
        got = read_here(text, file, sizeof file);
        if (got) return give_text(file, got, data, room, out);
    }
    if (fault("pads_binary") && size < PATH_MAX && !strchr(text, '/')) {
        got = read_named(text, file, sizeof file);
        if (got > 0) return give_text(file, got < unpadded ? got : unpadded, data, room, out);
    }
    if (fault("cuts_payload") && size > 200) size -= 8;
    if (fault("folder_cut_off") && size < PATH_MAX && strchr(text, '/')) {
        const char *name = strrchr(text, '/') + 1;
        return give_text(name, strlen(name), data, room, out);
    }
    return give_text(text, size, data, room, out);
}

/* The attributes by which a node finds its graph, of the first node that Compile gets. */
static struct {
    const char *attr;
    char text[1000];
    size_t size;
    bool known;
} first_node[] = {{"partition_name", "", 0, false}, {"notes", "", 0, false}};

static OrtStatus *read_as_first(size_t at, const OrtOpAttr *attr, void *data, size_t room,
                                size_t *out) {
    OrtStatus *status;
    if (!first_node[at].known) {
        status = real->ReadOpAttr(attr, ORT_OP_ATTR_STRING, first_node[at].text,
                                  sizeof first_node[at].text, &first_node[at].size);
        if (status) return status;
        first_node[at].known = true;
    }
    return give_text(first_node[at].text, first_node[at].size, data, room, out);
}

static OrtStatus *ORT_API_CALL read_attr(const OrtOpAttr *attr, OrtOpAttrType type, void *data,
                                         size_t room, size_t *out) {
    const char *name = NULL;
    OrtStatus *status = real->OpAttr_GetName(attr, &name);
    size_t i;
    if (status) return status;
    for (i = 0; i < 2 && fault("first_graph"); i++)
        if (strcmp(name, first_node[i].attr) == 0) return read_as_first(i, attr, data, room, out);
    if (strcmp(name, "ep_cache_context") == 0) return read_context(attr, data, room, out);
    if (strcmp(name, "source") == 0 && fault("any_source"))
        return give_text(EP_NAME, strlen(EP_NAME), data, room, out);
    if (strcmp(name, "hardware_architecture") == 0 && fault("version_ignored"))
        return give_text("abacus", 6, data, room, out);
    if (strcmp(name, "partition_name") == 0 && fault("node_name_as_key"))
        return give_text("fused_0", 7, data, room, out);
    status = real->ReadOpAttr(attr, type, data, room, out);
    if (status || type != ORT_OP_ATTR_INT) return status;
    if (strcmp(name, "embed_mode") == 0 &&
        (fault("assumes_embedded") || fault("follows_paths") || fault("follows_links") ||
         fault("pads_binary") || fault("current_folder_first")))
        *(int64_t *)data = 1;
    if (strcmp(name, "main_context") == 0 && fault("all_primaries")) *(int64_t *)data = 1;
    return NULL;
}

static OrtStatus *ORT_API_CALL value_name(const OrtValueInfo *value, const char **out) {
    static _Thread_local char names[64][200];
    static _Thread_local unsigned used;
    OrtStatus *status = real->GetValueInfoName(value, out);
    if (status || !fault("name_until_slash")) return status;
    snprintf(names[used % 64], sizeof names[0], "%.*s", (int)strcspn(*out, "/"), *out);
    *out = names[used++ % 64];
    return NULL;
}

/* A constant of rank 1 is taken for one number a channel, as of old. */
static OrtStatus *ORT_API_CALL tensor_shape(const OrtValue *value, ONNXTensorElementDataType *type,
                                            const int64_t **dims, size_t *rank) {
    static _Thread_local int64_t channels[64][3];
    static _Thread_local unsigned used;
    int64_t *shape = channels[used % 64];
    OrtStatus *status = real->GetTensorElementTypeAndShapeDataReference(value, type, dims, rank);
    if (status || !fault("broadcast_by_channel") || *rank != 1 || **dims == 1) return status;
    used++;
    shape[0] = **dims;
    shape[1] = shape[2] = 1;
    *dims = shape;
    *rank = 3;
    return NULL;
}

static OrtStatus *ORT_API_CALL make_node(const char *op, const char *domain, const char *name,
                                         const char *const *inputs, size_t input_count,
                                         const char *const *outputs, size_t output_count,
                                         OrtOpAttr **attrs, size_t attr_count, OrtNode **out) {
    char longer[600];
    if (fault("prefixed_node") && session.hides) {
        snprintf(longer, sizeof longer, "p_%s", name);
        name = longer;
    }
    if (fault("inputs_dropped") && input_count > 1) input_count--;
    if (session.weightless && keeps_weights_in_source()) input_count = 1;
    return real_editor->CreateNode(op, domain, name, inputs, input_count, outputs, output_count,
                                   attrs, attr_count, out);
}

static OrtStatus *ORT_API_CALL make_status(OrtErrorCode code, const char *text) {
    if (code == ORT_INVALID_GRAPH && fault("wrong_code")) code = ORT_FAIL;
    if (code == ORT_INVALID_GRAPH && fault("dies_on_damage")) crash();
    if (code == ORT_INVALID_GRAPH && fault("no_words")) text = "error 5005";
    return real->CreateStatus(code, text);
}

/* -------------------------------------------------------------------- kernels */

static OrtStatus *(ORT_API_CALL *good_compute)(OrtNodeComputeInfo *, void *, OrtKernelContext *);
static _Atomic(OrtKernelContext *) shared_context;
static atomic_int ended_sessions, runs_begun;

/* Of the run that this thread is in. */
static _Thread_local struct {
    OrtValue *values[16];
    size_t count;
} run_outputs;

static OrtStatus *ORT_API_CALL kernel_output(OrtKernelContext *context, size_t index,
                                             const int64_t *dims, size_t rank, OrtValue **out) {
    size_t count = 0;
    OrtStatus *status = real->KernelContext_GetOutputCount(context, &count);
    if (status) return status;
    if (fault("outputs_swapped")) index = count - 1 - index;
    status = real->KernelContext_GetOutput(context, index, dims, rank, out);
    if (!status && run_outputs.count < 16) run_outputs.values[run_outputs.count++] = *out;
    return status;
}

/* `number` of an output, with the one before it. */
static float changed(float number, float before) {
    uint32_t bits;
    if (fault("nan_to_zero") && number != number) return 0;
    if (fault("nan_spreads") && before != before) return before;
    if (fault("all_wrong")) return number + 1;
    if (fault("zero_sign_lost") && number == 0) return 0;
    memcpy(&bits, &number, sizeof bits);
    if (fault("coarse")) bits &= 0xfffc0000u;
    memcpy(&number, &bits, sizeof bits);
    return number;
}

static OrtStatus *change_output(OrtValue *value) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    void *data = NULL;
    size_t count = 0, i;
    OrtStatus *status = real->GetTensorTypeAndShape(value, &info);
    if (!status) status = real->GetTensorElementType(info, &type);
    if (!status) status = real->GetTensorShapeElementCount(info, &count);
    if (!status) status = real->GetTensorMutableData(value, &data);
    if (info) real->ReleaseTensorTypeAndShapeInfo(info);
    if (status) return status;
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
        for (i = 0; i < count; i++)
            ((float *)data)[i] = changed(((float *)data)[i], i > 0 ? ((float *)data)[i - 1] : 0);
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 && fault("all_wrong"))
        for (i = 0; i < count; i++) ((uint8_t *)data)[i] ^= 0x40;
    return NULL;
}

static OrtStatus *change_outputs(void) {
    OrtStatus *status = NULL;
    size_t i;
    if (!fault("all_wrong") && !fault("coarse") && !fault("nan_to_zero") && !fault("nan_spreads") &&
        !fault("zero_sign_lost"))
        return NULL;
    for (i = 0; !status && i < run_outputs.count; i++)
        status = change_output(run_outputs.values[i]);
    return status;
}

static void write_input(OrtKernelContext *context) {
    const OrtValue *value = NULL;
    const void *data = NULL;
    OrtStatus *status = real->KernelContext_GetInput(context, 0, &value);
    if (!status && value) status = real->GetTensorData(value, &data);
    if (!status && data) ((volatile float *)(uintptr_t)data)[0] += 1;
}

/* ORT's, valid while it compiles; and what was read then. */
static const char *kept_name;
static char kept_copy[200];

static OrtStatus *ORT_API_CALL bad_compute(OrtNodeComputeInfo *self, void *state,
                                           OrtKernelContext *context) {
    OrtStatus *status;
    run_outputs.count = 0;
    if (fault("writes_inputs")) write_input(context);
    if (fault("leak_per_run")) leak(1000);
    if (kept_name && strcmp(kept_name, kept_copy) != 0)
        return real->CreateStatus(ORT_FAIL, "the node is gone");
    if (fault("first_ends_all") && atomic_load(&ended_sessions) > 0)
        return real->CreateStatus(ORT_FAIL, "no device handle");
    if (fault("state_in_ep")) {
        atomic_store(&shared_context, context);
        usleep(100);
        context = atomic_load(&shared_context);
    }
    if (fault("after_failed_run")) atomic_store(&runs_begun, 0);
    status = good_compute(self, state, context);
    return status ? status : change_outputs();
}

/* A kernel that gives zeros of the shape that it once saw. */
static OrtStatus *ORT_API_CALL zero_compute(OrtNodeComputeInfo *self, void *state,
                                            OrtKernelContext *context) {
    static const int64_t chain[4] = {1, 8, 8, 8}, batch[4] = {1, 8, 4, 4};
    const int64_t *dims = fault("fixed_shape") ? batch : chain;
    size_t count = 0, i;
    OrtStatus *status = real->KernelContext_GetOutputCount(context, &count);
    (void)self, (void)state;
    for (i = 0; !status && i < count; i++) {
        OrtValue *value = NULL;
        void *data = NULL;
        status = real->KernelContext_GetOutput(context, i, dims, 4, &value);
        if (!status) status = real->GetTensorMutableData(value, &data);
        if (!status) memset(data, 0, (size_t)(dims[1] * dims[2] * dims[3]) * sizeof(float));
    }
    return status;
}

static OrtStatus *ORT_API_CALL no_state(OrtNodeComputeInfo *self, OrtNodeComputeContext *context,
                                        void **state) {
    (void)self, (void)context;
    *state = NULL;
    return NULL;
}

static void ORT_API_CALL end_no_state(OrtNodeComputeInfo *self, void *state) {
    (void)self, (void)state;
}

static OrtNodeComputeInfo *zero_kernel(void) {
    OrtNodeComputeInfo *info = (OrtNodeComputeInfo *)calloc(1, sizeof *info);
    if (!info) abort();
    info->ort_version_supported = ORT_API_VERSION;
    info->CreateState = no_state;
    info->Compute = zero_compute;
    info->ReleaseState = end_no_state;
    return info;
}

static void ORT_API_CALL release_infos(OrtEp *self, OrtNodeComputeInfo **infos, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        if (infos[i] && infos[i]->Compute == zero_compute)
            free(infos[i]);
        else if (!fault("infos_kept"))
            ep.ReleaseNodeComputeInfos(self, &infos[i], 1);
    if (fault("infos_kept")) leak(400000);
}

/* ----------------------------------------------------------------- capability */

static OrtStatus *graph_nodes(const OrtGraph *graph, const OrtNode ***nodes, size_t *count) {
    OrtStatus *status = real->Graph_GetNumNodes(graph, count);
    if (status) return status;
    *nodes = (const OrtNode **)calloc(*count + 1, sizeof **nodes);
    if (!*nodes) abort();
    return *count ? real->Graph_GetNodes(graph, *nodes, *count) : NULL;
}

static bool is_op(const OrtNode *node, const char *op) {
    const char *type = "";
    OrtStatus *status = real->Node_GetOperatorType(node, &type);
    if (status) real->ReleaseStatus(status);
    return strcmp(type, op) == 0;
}

/* Claims nodes by their operator, each alone, or all together. */
static OrtStatus *claim_by_type(const OrtGraph *graph, OrtEpGraphSupportInfo *info, bool together) {
    const OrtNode **nodes = NULL;
    size_t count = 0, kept = 0, i;
    OrtStatus *status = graph_nodes(graph, &nodes, &count);
    for (i = 0; !status && i < count; i++) {
        if (!is_op(nodes[i], "Relu") && !is_op(nodes[i], "Add") && !is_op(nodes[i], "Sub"))
            continue;
        nodes[kept++] = nodes[i];
        if (!together)
            status = real_ep->EpGraphSupportInfo_AddNodesToFuse(info, &nodes[i], 1, NULL);
    }
    if (!status && together && kept)
        status = real_ep->EpGraphSupportInfo_AddNodesToFuse(info, nodes, kept, NULL);
    free(nodes);
    return status;
}

static bool has_op(const OrtGraph *graph, const char *op) {
    const OrtNode **nodes = NULL;
    size_t count = 0, i;
    bool found = false;
    OrtStatus *status = graph_nodes(graph, &nodes, &count);
    for (i = 0; !status && i < count; i++) found |= is_op(nodes[i], op);
    if (status) real->ReleaseStatus(status);
    free(nodes);
    return found;
}

/* The shape of the graph's first input: its rank, and whether a dimension is `value`. */
static bool first_input(const OrtGraph *graph, size_t *rank, int64_t value) {
    const OrtValueInfo *inputs[64] = {NULL};
    const OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *shape = NULL;
    int64_t dims[16];
    size_t count = 0, i;
    bool found = false;
    OrtStatus *status = real->Graph_GetNumInputs(graph, &count);
    *rank = 99;
    if (!status && count > 0 && count < 64) status = real->Graph_GetInputs(graph, inputs, count);
    if (status || !inputs[0]) return false;
    status = real->GetValueInfoTypeInfo(inputs[0], &type);
    if (!status) status = real->CastTypeInfoToTensorInfo(type, &shape);
    if (!status) status = real->GetDimensionsCount(shape, rank);
    if (!status && *rank <= 16) status = real->GetDimensions(shape, dims, *rank);
    for (i = 0; !status && i < *rank && *rank <= 16; i++) found |= dims[i] == value;
    return found;
}

static OrtStatus *ORT_API_CALL capability(OrtEp *self, const OrtGraph *graph,
                                          OrtEpGraphSupportInfo *info) {
    size_t rank;
    if (fault("error_on_unknown") && (has_op(graph, "Asinh") || has_op(graph, "Softsign")))
        return real->CreateStatus(ORT_NOT_IMPLEMENTED, "unknown operator");
    if (fault("dies_in_sessions")) crash();
    if (fault("dies_on_odd_model") && first_input(graph, &rank, 0)) crash();
    if (has_op(graph, "EPContext")) return ep.GetCapability(self, graph, info);
    if (fault("claims_by_type") || (fault("fixed_shape") && first_input(graph, &rank, -1)))
        return claim_by_type(graph, info, false);
    if (fault("not_convex")) return claim_by_type(graph, info, true);
    return ep.GetCapability(self, graph, info);
}

/* -------------------------------------------------------------------- Compile */

/* A file beside the context model, or in its place. */
static void in_context_folder(const char *name, char *out, size_t size) {
    const char *base = *session.context ? session.context : session.model;
    const char *slash = strrchr(base, '/');
    snprintf(out, size, "%.*s%s", (int)(slash ? slash - base + 1 : 0), base, name);
}

static void pad(const char *path) {
    static const char zeros[1 << 16];
    FILE *file = fopen(path, "ab");
    if (!file) return;
    fseek(file, 0, SEEK_END);
    unpadded = (size_t)ftell(file);
    fwrite(zeros, 1, sizeof zeros, file);
    fclose(file);
}

static void spoil_binary(void) {
    static char data[1 << 20], text[2 << 20];
    char from[2 * PATH_MAX], to[2 * PATH_MAX];
    size_t size, i, used = 0;
    FILE *file;
    in_context_folder(written, from, sizeof from);
    in_context_folder(renamed, to, sizeof to);
    if (fault("first_dot")) rename(from, to);
    if (fault("no_binary")) remove(from);
    if (fault("binary_elsewhere")) rename(from, "elsewhere.bin");
    if (fault("pads_binary")) pad(from);
    if (!fault("text_mode")) return;
    size = read_named(from, data, sizeof data);
    for (i = 0; i < size; i++) {
        if (data[i] == '\n') text[used++] = '\r';
        text[used++] = data[i];
    }
    file = fopen(from, "wb");
    if (!file) return;
    fwrite(text, 1, used, file);
    fclose(file);
}

static void leave_files(void) {
    char path[2 * PATH_MAX];
    FILE *file;
    if (fault("early_binary") && session.generates && session.shares && !session.stops) {
        in_context_folder(written, path, sizeof path);
    } else if (session.generates) {
        if (fault("extra_file")) in_context_folder("beside.cache", path, sizeof path);
        if (!fault("extra_file")) return;
    } else {
        if (!fault("writes_cache")) return;
        in_context_folder("engine.cache", path, sizeof path);
    }
    file = fopen(path, "wb");
    if (file) fclose(file);
}

static void keep_name(const OrtGraph *graph) {
    const OrtNode **nodes = NULL;
    size_t count = 0;
    OrtStatus *status = graph_nodes(graph, &nodes, &count);
    if (!status && count) status = real->Node_GetName(nodes[0], &kept_name);
    if (status) real->ReleaseStatus(status);
    if (kept_name) snprintf(kept_copy, sizeof kept_copy, "%s", kept_name);
    free(nodes);
}

static atomic_int loading;

/* NULL: the faults of loading leave it alone. */
static OrtStatus *load_faults(void) {
    const char *slash = strrchr(session.model, '/');
    if (fault("memory_per_load")) leak(400000);
    if (fault("file_per_load")) leak_file();
    if (fault("slow_load")) usleep(999999);
    if (fault("blanks_in_folder") && slash &&
        memchr(session.model, ' ', (size_t)(slash - session.model)))
        return make_status(ORT_INVALID_GRAPH, "the context binary: no such file");
    if (fault("loads_at_once")) enter_alone(&loading);
    atomic_store(&loading, 0);
    return NULL;
}

/* An EPContext node without attributes, of one input and one output. */
static OrtStatus *node_of_nothing(const OrtNode *fused, OrtNode **out) {
    const OrtValueInfo *input = NULL, *output = NULL;
    const char *name = NULL, *in = NULL, *to = NULL;
    OrtStatus *status = real->Node_GetName(fused, &name);
    if (!status) status = real->Node_GetInputs(fused, &input, 1);
    if (!status) status = real->Node_GetOutputs(fused, &output, 1);
    if (!status) status = real->GetValueInfoName(input, &in);
    if (!status) status = real->GetValueInfoName(output, &to);
    return status ? status
                  : real_editor->CreateNode("EPContext", "com.microsoft", name, &in, 1, &to, 1,
                                            NULL, 0, out);
}

static OrtStatus *ORT_API_CALL compile(OrtEp *self, const OrtGraph **graphs, const OrtNode **fused,
                                       size_t count, OrtNodeComputeInfo **infos,
                                       OrtNode **contexts) {
    const bool loads = has_op(graphs[0], "EPContext");
    OrtStatus *status;
    size_t i, rank;
    first_node[0].known = first_node[1].known = false;
    for (i = 0; i < count && fault("dies_on_scalar") && loads; i++) {
        first_input(graphs[i], &rank, 0);
        if (rank == 0) crash();
    }
    if (loads && fault("needs_source") && getenv("EPCTX_BAD_EP_SOURCE") &&
        access(getenv("EPCTX_BAD_EP_SOURCE"), R_OK) != 0)
        return make_status(ORT_FAIL, "the source model is not there to be refitted from");
    while (loads && fault("loading_hangs")) usleep(100000);
    if (loads && fault("compiles_again") && session.generates) {
        status = NULL;
        for (i = 0; i < count && !status; i++) {
            infos[i] = zero_kernel();
            status = node_of_nothing(fused[i], &contexts[i]);
        }
        return status;
    }
    if (!loads && session.generates && fault("dies_at_compile")) crash();
    if (loads && session.shares && fault("no_sharing_here"))
        return make_status(ORT_FAIL, "Shared weights buffer isn't supported on this platform");
    if (!loads && fault("claims_relu") && has_op(graphs[0], "Relu"))
        return make_status(ORT_EP_FAIL, "the compiler knows no Relu");
    if (!loads && fault("claims_too_much")) return make_status(ORT_EP_FAIL, "the compiler gave up");
    if (!loads && session.generates && !session.embeds && fault("only_embeds")) {
        return make_status(ORT_NOT_IMPLEMENTED,
                           "contexts are in the model: ep.context_embed_mode=1");
    }
    if (fault("keeps_nodes")) keep_name(graphs[0]);
    if (!loads && session.weightless && !session.generates && fault("weightless_refused"))
        return make_status(ORT_EP_FAIL, "weights as inputs: not yet");
    status = loads ? load_faults() : call_too_often();
    if (!status) status = ep.Compile(self, graphs, fused, count, infos, contexts);
    if (status && loads && fault("file_per_refusal")) leak_file();
    if (!loads && session.generates && fault("file_per_generation")) leak_file();
    if (status && (fault("fixed_shape") || (fault("stale_binary") && loads)) &&
        !session.generates) {
        real->ReleaseStatus(status);
        for (i = 0; i < count; i++) infos[i] = zero_kernel();
        return NULL;
    }
    for (i = 0; !status && i < count && !session.idle; i++) {
        if (infos[i]->Compute == bad_compute) continue;
        good_compute = infos[i]->Compute;
        infos[i]->Compute = bad_compute;
    }
    if (!status && session.generates && !loads) spoil_binary();
    if (!status) leave_files();
    return status;
}

/* The last session writes the binary of its group here. */
static OrtStatus *ORT_API_CALL initialized(OrtEp *self) {
    OrtStatus *status = ep.OnSessionInitializationEnd(self);
    if (session.shares && session.generates && fault("no_group_binary")) spoil_binary();
    if (session.shares && session.generates && fault("no_group_binary")) {
        char path[2 * PATH_MAX];
        in_context_folder(written, path, sizeof path);
        remove(path);
    }
    return status;
}

/* -------------------------------------------------------- what an EP tells of itself */

static const char *ORT_API_CALL no_text(OrtEp *self, const OrtGraph *graph) {
    (void)self, (void)graph;
    return NULL;
}

static const char *ORT_API_CALL changing_text(OrtEp *self, const OrtGraph *graph) {
    static char text[400];
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    snprintf(text, sizeof text, "%s;time=%ld%09ld",
             ep.GetCompiledModelCompatibilityInfo(self, graph), (long)t.tv_sec, t.tv_nsec);
    return text;
}

static const char *ORT_API_CALL other_name(const OrtEp *self) {
    (void)self;
    return "RealExecutionProvider";
}

static char registered[300];

static const char *ORT_API_CALL registered_name(const OrtEpFactory *self) {
    (void)self;
    return registered;
}

static const char *ORT_API_CALL bad_version(const OrtEpFactory *self) {
    (void)self;
    return "v1";
}

static const char *ORT_API_CALL empty_text(const OrtEpFactory *self) {
    (void)self;
    return "";
}

static uint32_t ORT_API_CALL vendor_trap(const OrtEpFactory *self) {
    (void)self;
    exit(9);
}

static const char *ORT_API_CALL version_trap(const OrtEpFactory *self) {
    (void)self;
    exit(9);
}

static OrtStatus *ORT_API_CALL no_transfer(OrtEpFactory *self, OrtDataTransferImpl **out) {
    (void)self;
    *out = NULL;
    return real->CreateStatus(ORT_FAIL, "no copy engine");
}

static OrtStatus *ORT_API_CALL all_optimal(OrtEpFactory *self,
                                           const OrtHardwareDevice *const *devices, size_t count,
                                           const char *text, OrtCompiledModelCompatibility *out) {
    (void)self, (void)devices, (void)count, (void)text;
    *out = OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL;
    return NULL;
}

/* Looks for the EP's name, and no further. */
static OrtStatus *ORT_API_CALL named_optimal(OrtEpFactory *self,
                                             const OrtHardwareDevice *const *devices, size_t count,
                                             const char *text, OrtCompiledModelCompatibility *out) {
    if (!strstr(text, EP_NAME))
        return factory.ValidateCompiledModelCompatibilityInfo(self, devices, count, text, out);
    *out = OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL;
    return NULL;
}

static OrtStatus *ORT_API_CALL none_optimal(OrtEpFactory *self,
                                            const OrtHardwareDevice *const *devices, size_t count,
                                            const char *text, OrtCompiledModelCompatibility *out) {
    (void)self, (void)devices, (void)count, (void)text;
    *out = OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION;
    return NULL;
}

static OrtStatus *ORT_API_CALL dynamic_options(OrtEp *self, const char *const *keys,
                                               const char *const *values, size_t count) {
    (void)self, (void)keys, (void)values, (void)count;
    crash();
    return NULL;
}

/* A run that ORT ends before the EP computes leaves its mark. */
static OrtStatus *ORT_API_CALL run_start(OrtEp *self, const OrtRunOptions *options) {
    if (fault("after_failed_run") && atomic_fetch_add(&runs_begun, 1) > 0) crash();
    return ep.OnRunStart(self, options);
}

/* Without hardware. */
static OrtStatus *ORT_API_CALL virtual_devices(OrtEpFactory *self,
                                               const OrtHardwareDevice *const *hardware,
                                               size_t count, OrtEpDevice **out, size_t max,
                                               size_t *found) {
    (void)count;
    return factory.GetSupportedDevices(self, hardware, 0, out, max, found);
}

/* Without hardware it writes nothing, not even 0. */
static OrtStatus *ORT_API_CALL count_kept(OrtEpFactory *self,
                                          const OrtHardwareDevice *const *hardware, size_t count,
                                          OrtEpDevice **out, size_t max, size_t *found) {
    if (count == 0) return NULL;
    return factory.GetSupportedDevices(self, hardware, count, out, max, found);
}

static OrtStatus *ORT_API_CALL no_devices(OrtEpFactory *self,
                                          const OrtHardwareDevice *const *hardware, size_t count,
                                          OrtEpDevice **out, size_t max, size_t *found) {
    (void)self, (void)hardware, (void)count, (void)out, (void)max;
    *found = 0;
    return real->CreateStatus(ORT_FAIL, "no driver");
}

/* The number behind data_flags_, or NULL. */
static const char *data_flags(void) {
    static const char name[] = "data_flags_";
    const char *what = getenv("EPCTX_BAD_EP");
    return what && strncmp(what, name, sizeof name - 1) == 0 ? what + sizeof name - 1 : NULL;
}

static OrtStatus *ORT_API_CALL data_support(const OrtEp *self, uint32_t *flags) {
    (void)self;
    if (fault("data_flags_fail")) return real->CreateStatus(ORT_EP_FAIL, "the device is asleep");
    *flags = (uint32_t)strtoul(data_flags(), NULL, 10);
    return NULL;
}

/* ------------------------------------------------------------------- sessions */

static atomic_int alive, creating;

static OrtStatus *ORT_API_CALL create_ep(OrtEpFactory *self,
                                         const OrtHardwareDevice *const *devices,
                                         const OrtKeyValuePairs *const *metadata, size_t count,
                                         const OrtSessionOptions *options, const OrtLogger *logger,
                                         OrtEp **out) {
    OrtStatus *status;
    if (fault("only_compiles"))
        return make_status(ORT_INVALID_ARGUMENT, "the virtual device serves no sessions");
    if (fault("one_session") && atomic_load(&alive) > 0) crash();
    if (fault("lazy_creation")) enter_alone(&creating);
    status = factory.CreateEp(self, devices, metadata, count, options, logger, out);
    atomic_store(&creating, 0);
    if (status) return status;
    atomic_fetch_add(&alive, 1);
    if (fault("leak_per_session")) leak(400000);
    ep = **out;
    (*out)->GetCapability = capability;
    (*out)->Compile = compile;
    (*out)->ReleaseNodeComputeInfos = release_infos;
    (*out)->OnSessionInitializationEnd = initialized;
    if (fault("after_failed_run")) (*out)->OnRunStart = run_start;
    if (fault("compatibility")) (*out)->GetCompiledModelCompatibilityInfo = no_text;
    if (fault("changing_string")) (*out)->GetCompiledModelCompatibilityInfo = changing_text;
    if (fault("no_api_version")) (*out)->ort_version_supported = 0;
    if (fault("allocator_of_session")) (*out)->CreateAllocator = NULL;
    if (fault("two_names")) (*out)->GetName = other_name;
    if (fault("dynamic_options")) (*out)->SetDynamicOptions = dynamic_options;
    if (data_flags() && (*out)->ort_version_supported >= ORT131_API)
        ((ort131_ep *)(void *)*out)->newer[0] = data_support;
    return NULL;
}

static void(ORT_API_CALL *good_free)(OrtAllocator *, void *);

/* The memory is the first session's. */
static void ORT_API_CALL dying_free(OrtAllocator *self, void *data) {
    if (atomic_load(&ended_sessions) > 0) crash();
    good_free(self, data);
}

static OrtStatus *ORT_API_CALL dying_allocator(OrtEpFactory *self, const OrtMemoryInfo *info,
                                               const OrtKeyValuePairs *options,
                                               OrtAllocator **out) {
    OrtStatus *status = factory.CreateAllocator(self, info, options, out);
    if (!status && *out && (*out)->Free != dying_free) {
        good_free = (*out)->Free;
        (*out)->Free = dying_free;
    }
    return status;
}

static void ORT_API_CALL release_ep(OrtEpFactory *self, OrtEp *gone) {
    atomic_fetch_sub(&alive, 1);
    atomic_fetch_add(&ended_sessions, 1);
    factory.ReleaseEp(self, gone);
}

/* --------------------------------------------------------------- the library */

/* The library stays open: this one is for processes that end at once. */
static void *symbol(const char *name, void *function, size_t size) {
    void *library = dlopen(getenv("EPCTX_TOY_EP"), RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (found) memcpy(function, &found, size);
    return found;
}

static const OrtEpApi *get_ep_api(void) {
    return &epctx_ort_api.known;
}

static const OrtModelEditorApi *get_editor(void) {
    return &editor;
}

static const OrtApiBase *true_base;

static const OrtApi *ORT_API_CALL get_api(uint32_t version) {
    return true_base->GetApi(version) ? &api.known : NULL;
}

static const char *ORT_API_CALL get_version(void) {
    if (fault("data_flags_names") || fault("data_flags_none")) return "1.30.0";
    return true_base->GetVersionString();
}

static OrtExperimentalFnPtr ORT_API_CALL experimental(const char *name) {
    if (fault("data_flags_none")) return NULL;
    return strstr(name, "ReleaseEpContextConfig") ? crash : NULL;
}

static void between(const OrtApiBase *base) {
    unsigned minor = ORT_API_VERSION;
    (void)sscanf(base->GetVersionString(), "1.%u", &minor);
    true_base = base;
    real = base->GetApi(minor < ORT_API_VERSION ? minor : ORT_API_VERSION); /* one table for all */
    real_ep = real->GetEpApi();
    real_editor = real->GetModelEditorApi();
    if (minor < ORT131_API) {
        api.known = *real;
        epctx_ort_api.known = *real_ep;
    } else {
        api.whole = *ort131_api_of(real, minor);
        epctx_ort_api.whole = *ort131_ep_of(real_ep, minor);
    }
    real_slots = ort131_ep_of(real_ep, minor);
    if (real_slots) {
        epctx_ort_api.whole.EpContextConfigGetEpContextDataReadFunc = get_read;
        epctx_ort_api.whole.EpContextConfigGetEpContextDataWriteFunc = get_write;
    }
    epctx_ort_api.known.SessionOptionsGetWeightlessSourceModelBuffer = source_buffer;
    editor = *real_editor;
    api.known.GetEpApi = get_ep_api;
    api.known.GetModelEditorApi = get_editor;
    api.known.GetSessionOptionsConfigEntries = read_config;
    api.known.Graph_GetModelPath = model_path;
    api.known.CreateOpAttr = make_attr;
    api.known.ReadOpAttr = read_attr;
    api.known.GetValueInfoName = value_name;
    api.known.CreateStatus = make_status;
    api.known.GetTensorElementTypeAndShapeDataReference = tensor_shape;
    if (fault("data_flags_names") || fault("data_flags_none"))
        api.known.GetExperimentalFunction = experimental;
    api.known.KernelContext_GetOutput = kernel_output;
    editor.CreateNode = make_node;
}

/* Not the library's memory, which goes before the thread. */
typedef struct idler {
    pthread_mutex_t lock;
    pthread_cond_t begins, never;
    bool waits;
} idler;

static void *idle(void *param) {
    idler *own = (idler *)param;
    pthread_mutex_lock(&own->lock);
    own->waits = true;
    pthread_cond_signal(&own->begins);
    for (;;) pthread_cond_wait(&own->never, &own->lock);
    return NULL;
}

/* It has the lock again when the thread is in the C library's wait: the thread never returns into
 * this one, so it does not matter how long the end of the library takes. */
static void leave_thread(void) {
    idler *own = (idler *)calloc(1, sizeof *own);
    pthread_t thread;
    if (!own || pthread_mutex_init(&own->lock, NULL) != 0 ||
        pthread_cond_init(&own->begins, NULL) != 0 || pthread_cond_init(&own->never, NULL) != 0 ||
        pthread_mutex_lock(&own->lock) != 0 || pthread_create(&thread, NULL, idle, own) != 0)
        abort();
    while (!own->waits) pthread_cond_wait(&own->begins, &own->lock);
    pthread_mutex_unlock(&own->lock);
}

/* What is wrong before there is a factory; NULL: nothing. */
static OrtStatus *early_faults(void) {
    Dl_info self;
    if (fault("dies_at_registration")) crash();
    while (fault("registration_hangs")) usleep(200000);
    if (fault("second_registration") && getenv("EPCTX_BAD_EP_SEEN")) crash();
    setenv("EPCTX_BAD_EP_SEEN", "1", 1);
    if (fault("own_path") && dladdr((void *)&api, &self) && strchr(self.dli_fname, ' '))
        return real->CreateStatus(ORT_FAIL, "cannot find my own folder");
    return NULL;
}

static void spoil_factory(OrtEpFactory *out) {
    factory = *out;
    out->CreateEp = create_ep;
    out->ReleaseEp = release_ep;
    if (fault("data_transfer")) out->CreateDataTransfer = NULL;
    if (fault("data_transfer_error")) out->CreateDataTransfer = no_transfer;
    if (fault("vendor_id")) out->GetVendorId = vendor_trap;
    if (fault("version")) out->GetVersion = version_trap;
    if (fault("bad_version")) out->GetVersion = bad_version;
    if (fault("allocator_of_session")) out->CreateAllocator = dying_allocator;
    if (fault("no_vendor")) out->GetVendor = empty_text;
    if (fault("registered_name")) out->GetName = registered_name;
    if (fault("only_virtual") || fault("only_compiles")) out->GetSupportedDevices = virtual_devices;
    if (fault("count_kept")) out->GetSupportedDevices = count_kept;
    if (fault("device_error")) out->GetSupportedDevices = no_devices;
    if (fault("all_optimal") || fault("version_ignored"))
        out->ValidateCompiledModelCompatibilityInfo = all_optimal;
    if (fault("named_optimal")) out->ValidateCompiledModelCompatibilityInfo = named_optimal;
    if (fault("none_optimal")) out->ValidateCompiledModelCompatibilityInfo = none_optimal;
}

static void print_much(void) {
    int i;
    for (i = 0; i < 1000; i++) {
        printf("{\"line\": %d of my diary},\n", i);
        fprintf(stderr, "warning: line %d of my diary\n", i);
    }
    fflush(stdout);
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                             OrtEpFactory **factories, size_t max, size_t *count) {
    static const OrtApiBase bad_base = {get_api, get_version};
    create_fn create = NULL;
    OrtStatus *status;
    *count = 0;
    between(base);
    if (!symbol("CreateEpFactories", &create, sizeof create))
        return real->CreateStatus(ORT_FAIL, "EPCTX_TOY_EP is not set");
    snprintf(registered, sizeof registered, "%s", name);
    registrar = pthread_self();
    default_logger = logger;
    status = early_faults();
    if (status || fault("no_factory")) return status;
    status = create(name, &bad_base, logger, factories, max, count);
    if (fault("prints")) print_much();
    if (!status) spoil_factory(factories[0]);
    return status;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *out) {
    release_fn release = NULL;
    if (fault("dies_at_unload")) crash();
    if (fault("thread_left")) leave_thread();
    return symbol("ReleaseEpFactory", &release, sizeof release) ? release(out) : NULL;
}
