/*
 * An application of ONNX Runtime's public C API, reduced to what epctx-conformance, the tests and
 * the tool (examples/epctx/ort) need: load the library, register a plugin EP, make sessions from a
 * path or from memory, compile, run with made-up inputs, compare outputs. Functions answer true on
 * success; otherwise ort_code and ort_text hold the code and message that ORT gave this thread.
 */
#ifndef ORT_DRIVER_H
#define ORT_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "epctx.h"

#if !defined(ORT_API_VERSION) /* else ONNX Runtime's own header came first */
#include "abi.h"
#endif

extern const OrtApi *ort;
/* Of that table: functions that came later are not in it. Those of API 30 and 31 have no official
 * headers, but examples/plugin_ep/ort131.h. */
extern uint32_t ort_version;
enum { ORT_NEWEST_API = 31 };
extern const OrtApiBase *ort_base;
extern const OrtCompileApi *ort_compile;
extern OrtEnv *ort_env;
extern _Thread_local int ort_code;
extern _Thread_local char ort_text[4096];
extern char ort_log[1 << 16]; /* warnings, errors and ORT_LEFT since ort_log_clear() */

/* Lines that hold this text are kept in ort_log whatever their level. */
extern const char *ort_log_also;

/* What the plugin EP says at level INFO of a node that it does not take, and why. */
#define ORT_LEFT "is left to other EPs"

/* Takes the status. */
bool ort_ok(OrtStatus *status);
void ort_log_clear(void);
/* Writes to ort_log. */
void ORT_API_CALL ort_logger(void *param, OrtLoggingLevel severity, const char *category,
                             const char *logid, const char *code, const char *message);
/* An exported function of a library, without a cast between pointer kinds. */
bool ort_symbol(void *library, const char *name, void *function, size_t size);
/* A path as ORT takes it, on Windows wide; valid until eight further calls of this thread. */
const ORTCHAR_T *ort_path(const char *path);
/* The words of the command line in UTF-8. */
char **ort_words(int count, char **given);
/* The value of --ep-opt: KEY=VALUE, which is cut in two. False: see ort_text. An ort_spec may have
 * one option more. */
enum { ORT_MAX_OPTIONS = 255 };
typedef struct ort_ep_options {
    const char *list[2 * ORT_MAX_OPTIONS + 1]; /* key, value, ..., NULL */
    size_t count;                              /* of words */
} ort_ep_options;
bool ort_read_option(char *text, ort_ep_options *to);
/* The path of libonnxruntime: EPCTX_ORT_LIBRARY, or what tests/deps.sh fetched. */
bool ort_library(char *out, size_t size);
/* Loads ONNX Runtime and makes its environment. */
bool ort_open(bool virtual_devices);

/* ---------------------------------------------------------------- sessions */

struct ort_output;

/* What a session is made of; everything optional. Lists are key, value, ..., NULL. */
typedef struct ort_spec {
    const char *ep;   /* EP to append, NULL: CPU only */
    const char *path; /* model, or */
    const void *data;
    size_t size;
    const char *const *config;   /* session config entries */
    const char *const *options;  /* EP options */
    bool allow_cpu;              /* else session.disable_cpu_ep_fallback=1 when there is an EP */
    bool prefer_npu;             /* policy instead of the device */
    bool npu;                    /* the EP's NPU instead of its CPU device */
    const OrtEpDevice *device;   /* this one; NULL: found by `ep` and `npu` */
    bool by_name;                /* an EP inside ORT that has no device */
    const struct ort_spec *next; /* a further EP, with all that is about EPs */
    const char *profile;         /* prefix of ORT's profile of the session */
    void (*more)(OrtSessionOptions *options, void *user); /* anything else */
    void *user;                                           /* of `more` */
    /* Told of each session, and of each compilation (`to`), before it is made. */
    void (*seen)(const struct ort_spec *spec, const struct ort_output *to);
    void (*done)(const struct ort_spec *spec, bool ok); /* and when it is there, or not */
    void *seen_by;                                      /* of both */
    bool plain;                          /* the graph as it is: no optimization by ORT */
    const GraphOptimizationLevel *level; /* another one; NULL: ORT's default */
    int threads;                         /* 0: one, -1: as many as ORT likes */
    bool tell;                           /* ORT_LEFT goes into ort_log */
} ort_spec;

/* Free dimensions that get a number in every session: ort_free_size unless it is 0, those of a
 * batch 1, others ort_free_length. */
extern char ort_free_dims[8][64];
extern bool ort_free_batch[8];
extern int64_t ort_free_size[8];
extern size_t ort_free_count;
extern int64_t ort_free_length;

int64_t ort_free_value(size_t i);

/* The device of the EP called `name` with hardware of `type`, or NULL. */
const OrtEpDevice *ort_device(const char *name, OrtHardwareDeviceType type);
/* Whether ORT has an EP of this name inside, with or without a device. */
bool ort_has_inside(const char *name);
/* The first device of a registered library (its real path; NULL: any) whose EP is called `name`
 * (NULL: any) and whose hardware is of `type` (NULL: any); NULL: see ort_text. */
const OrtEpDevice *ort_device_of(const char *library, const char *name,
                                 const OrtHardwareDeviceType *type);
/* Whether a device's EP comes from this file; NULL: from any. */
bool ort_is_of(const OrtEpDevice *device, const char *library);
bool ort_options(const ort_spec *spec, OrtSessionOptions **out);
bool ort_session(const ort_spec *spec, OrtSession **out);
/* How many nodes of the session's model run on the EP (NULL: on any); SIZE_MAX on an error. */
size_t ort_assigned(const OrtSession *session, const char *ep);

/* --------------------------------------------------------------------- run */

enum { ORT_MAX_VALUES = 32 };

/* Values of a model's inputs or outputs. */
typedef struct ort_values {
    size_t count;
    char *names[ORT_MAX_VALUES];
    OrtValue *values[ORT_MAX_VALUES];
} ort_values;

void ort_values_free(ort_values *v);
size_t ort_elem_size(ONNXTensorElementDataType type); /* 0: ort_fill does not know it */
/* Fills `data` with small numbers around zero, integers from 0 to 3; the same for the same seed. */
void ort_fill(void *data, size_t count, ONNXTensorElementDataType type, uint32_t seed);
/* A tensor's type, free dimensions as 1. */
typedef struct ort_type {
    ONNXTensorElementDataType elem;
    size_t rank;
    int64_t dims[16];
} ort_type;

/* Input number `index`; `name` is the allocator's. */
bool ort_input_type(const OrtSession *session, size_t index, OrtAllocator *allocator, char **name,
                    ort_type *out);
bool ort_make_input(const OrtSession *session, size_t index, OrtAllocator *allocator, uint32_t seed,
                    ort_values *out);
/* Runs on inputs made from `seed`, with the options of a run (may be NULL); the caller frees
 * `outputs`. */
bool ort_run_with(OrtSession *session, const OrtRunOptions *options, uint32_t seed,
                  ort_values *outputs);
bool ort_run(OrtSession *session, uint32_t seed, ort_values *outputs);

/* Further tolerance of ort_same for deep models: a part of the output's largest number. Then one
 * number in a hundred may also be off by up to a twelfth of it, and bytes by that part of 255, but
 * by 1 at least: in a quantized model a rounding that falls the other way moves a value by a whole
 * step. ORT's CPU EP differs that much from itself between optimization levels. */
extern double ort_relative;

/* Same shapes, same types, same numbers (floats within rtol 1e-3 and atol 1e-5, and 1e-5 of the
 * largest number: sums are ordered differently). */
bool ort_same(const ort_values *a, const ort_values *b);

/* ----------------------------------------------------------------- compile */

/* Where OrtCompileApi puts the model: a path, or memory (freed by the caller with free()). */
typedef struct ort_output {
    const char *path;
    bool to_function; /* through a write function instead of ORT's buffer */
    bool embed;
    const char *folder, *name; /* SetEpContextBinaryInformation */
    const char *initializers;  /* SetOutputModelExternalInitializersFile, */
    size_t threshold;          /* for those of as many bytes */
    uint32_t flags;
    void (*more)(OrtModelCompilationOptions *options, void *user); /* anything else */
    void *user;                                                    /* of `more` */
    void *data;                                                    /* result */
    size_t size;
} ort_output;

bool ort_compile_model(const ort_spec *spec, ort_output *out);

#ifndef EPCTX_NO_WIRE

/* The EPContext nodes of a model; their texts are the model's. */
typedef struct ort_contexts {
    epctx_model model;
    size_t count, others, primaries;
    epctx_epnode list[16];
    epctx_node_view views[16];
} ort_contexts;

/* epctx_model_close(&out->model) in any case. */
bool ort_read_contexts(const char *path, ort_contexts *out);

#endif /* EPCTX_NO_WIRE */

#endif
