/* ep.h - what the files of the plugin EP share. ORT-facing: needs ORT's C headers.
 *
 *   factory.c        the two exported functions, devices
 *   session.c        one EP instance per session: which nodes to claim, Compile
 *   options.c        its options
 *   graph.c          OrtGraph -> epctx_graph
 *   node.c           EPContext nodes from and to ORT
 *   compile.c        context binaries and EPContext nodes, built and written
 *   load.c           found again, and loaded
 *   context.c        what of either the kernels share
 *   share.c          contexts of several sessions (ep.share_ep_contexts), built and written
 *   sharing.c        what outlives these sessions
 *   buffers.c        context binaries from and to the application's callbacks
 *   kernel.c         one fused node: Compute
 *   compatibility.c  what may run where: compiled models, package variants, hardware
 *   run.c            run options and dynamic options
 *   memory.c         allocators of a device with memory of its own
 *   transfer.c       copies from and to it
 *   stream.c         the order of its work
 *   profiler.c       its work in ORT's profile
 *   status.c         errors of epctx.h as OrtStatus, log
 *
 * No two files need each other: a file that must run what stands above it gets it as a function in
 * one of ORT's tables.
 * Nothing here is global and mutable: what outlives a session is in the ep_factory.
 */
#ifndef EP_H
#define EP_H

#include <stdatomic.h>
#include <stdio.h>

#include "bridge.h"
#include "device.h"

#if ORT_API_VERSION < 29
#error "plugin_ep: compile it with ONNX Runtime's headers of API 29 or newer, for any ORT from 1.24"
#endif

/* The oldest API that has every function this EP calls: ORT 1.24. */
#define EP_OLDEST_API     24
#define EP_WEIGHTLESS_API 29
/* Before OrtEp::GetDefaultMemoryDevice there was, ORT refuses sessions on devices of different
 * memory, and a policy like PREFER_NPU makes them of all devices of an EP: there the virtual NPU
 * has the machine's memory, and no streams. */
#define EP_MEMORY_API 27

/* Since then ORT writes control flow into context models rightly, but for one thing: session.c. */
#define EP_CONTROL_FLOW_API 31

/* Since then ORT tells when a session is complete and its context model written. */
#define EP_INITIALIZED_API 27

/* ----------------------------------------------------------------- check.c */

/* Of ep_device.ep_name: it is a part of keys and names. */
enum { EP_NAME_MAX = 128 };

/* Is everything there that nobody asks about later? `device` may be NULL. */
epctx_status ep_device_check(const ep_device *device, epctx_error *error);
/* open_fn, and the same question for what it made. The caller calls close_fn after a success. */
epctx_status ep_backend_open(const ep_device *device, const ep_options *options, epctx_backend *out,
                             epctx_error *error);

/* --------------------------------------------------------------- session.c */

struct ep_options {
    const OrtApi *ort;
    const OrtKeyValuePairs *pairs;
    char prefix[160]; /* "ep.<name>." */
};

typedef struct ep_sharing ep_sharing; /* sharing.c */
/* The two kinds of memory of the virtual NPU. */
enum { EP_MEMORY_DEVICE, EP_MEMORY_HOST, EP_MEMORY_COUNT };

typedef struct ep_allocator ep_allocator;
typedef struct ep_transfer ep_transfer;

typedef struct ep_factory {
    OrtEpFactory ort; /* first: ORT's pointer is ours */
    epctx_ort_api api;
    const ep_device *device;
    const OrtLogger *logger;
    OrtHardwareDevice *virtual_npu; /* owned; NULL unless the application allows virtual devices */
    ep_sharing *sharing;            /* owned */
    OrtMemoryInfo *memory[EP_MEMORY_COUNT];         /* owned; NULL without a virtual NPU */
    _Atomic(ep_allocator *) spare[EP_MEMORY_COUNT]; /* made beforehand */
    ep_transfer *transfer;
} ep_factory;

/* Runs of a session, from any thread. */
typedef struct ep_runs {
    _Atomic uint32_t under_way, started, refused;
    _Atomic uint32_t streams, open_streams, flushes;
    _Atomic uint32_t alone; /* commands in parts that only the thread of the run computed */
    _Atomic bool helped;    /* another one took part in one */
    _Atomic bool efficient; /* ep.dynamic.workload_type */
    char limit_key[256];    /* a run option, asked for in every run */
} ep_runs;

typedef struct ep_profiler ep_profiler;

typedef struct ep_session {
    ort131_ep ort; /* first */
    ep_factory *factory;
    const epctx_ort_api *api;
    const OrtLogger *logger;
    epctx_backend backend;
    bool backend_open;        /* and ours: that of a sharing session belongs to the factory */
    OrtKeyValuePairs *config; /* a copy: ORT's options are gone after CreateEp */
    epctx_arena arena;
    epctx_options options; /* in that arena; the most used ones: */
    bool generate;         /* ep.context_enable */
    bool embed;            /* ep.context_embed_mode */
    bool compile_only;     /* session.compile_only: nobody will run this session, so its context
                                 may be for hardware that is elsewhere */
    epctx_weightless_support weightless; /* ep.enable_weightless, if the backend supports it */
    bool share;                          /* ep.share_ep_contexts */
    bool stop;                           /* ep.stop_share_ep_contexts */
    char *joined; /* context model of this session in a group that is generated; NULL: none, or it
                     is written */
    struct ep_binary_file *unconfirmed; /* new, and its context model is not known to be written */
    const char *context_path;           /* ep.context_file_path, "" when not set */
    epctx_span source_model; /* SessionOptionsSetWeightlessSourceModelBuffer: the application's
                                 bytes, there as long as the session */
    const char *prefix;      /* ep.context_node_name_prefix */
    uint32_t path_flags;     /* of binaries that are loaded */
    epctx_status refusal;    /* set in GetCapability, which cannot fail a session, for Compile */
    epctx_error refusal_text;
    char compatibility[256];
    epctx_ort_buffers buffers;
    ep_runs runs;
    ep_profiler *profilers; /* under the lock */
    atomic_flag profilers_lock;
    _Atomic uint32_t profiler_count;
} ep_session;

OrtStatus *ep_session_create(ep_factory *factory, const OrtSessionOptions *options,
                             const OrtLogger *logger, ep_session **out);
void ep_session_release(ep_session *session);

/* --------------------------------------------------------------- threads.c */

/* ORT's threads, as of one run. */
typedef struct ep_pool {
    ep_session *session;
    const OrtKernelContext *context;
} ep_pool;

/* ep_helpers.parallel_fn; `user`: an ep_pool. */
void ep_share_work(void *user, uint32_t count, void (*work_fn)(void *work, uint32_t i), void *work);
/* How many may work at once in a run of this session. */
uint32_t ep_threads(const ep_session *session);

/* --------------------------------------------------------------- options.c */

/* What ORT and applications ask of a session, into the members of `session`. */
OrtStatus *ep_options_read(ep_session *session);
/* "ep.<ep name in lower case>.<key>", as ORT stores the options of this EP. */
void ep_option_key(const ep_session *session, const char *key, char *out, size_t size);

/* Reads the options of the EP itself; valid as long as `session`. */
void ep_options_of(const ep_session *session, ep_options *out);

/* --------------------------------------------------------------- context.c */

/* What one Compile made or loaded, for the kernels of its graphs. ORT calls Compile and
 * ReleaseNodeComputeInfos of one session from one thread: a plain counter does. */
typedef struct ep_context {
    ep_session *session;
    size_t references;
    epctx_arena arena;
    epctx_ep made;          /* what was compiled in this session */
    epctx_buffer *payloads; /* of EPContext nodes */
    size_t payload_count;
    epctx_io made_io;        /* of the binary in `made`, which is in no file yet */
    epctx_ort_reader reader; /* of the application's binaries */
    epctx_loaded loaded;
} ep_context;

/* For `count` EPContext nodes. One reference, for the caller. NULL: no memory. */
ep_context *ep_context_new(ep_session *session, size_t count);
void ep_context_drop(ep_context *context); /* `context` may be NULL. */

/* ORT does not tell where the model is. */
bool ep_model_is_hidden(const ep_session *session, const epctx_ort_record *record);
/* The path of the model that was opened; "" when it came from memory or ORT does not tell. */
const char *ep_model_path(const ep_session *session, const epctx_ort_record *record);

#define EP_HIDDEN \
    "session.model_external_initializers_file_folder_path is set, and with it ONNX Runtime does " \
    "not tell where the model is: set ep.context_file_path"

/* --------------------------------------------------------------- sharing.c */

/* One per factory: what sharing sessions have in common. NULL is fine for ep_sharing_free. */
OrtStatus *ep_sharing_make(ep_factory *factory);
void ep_sharing_free(ep_factory *factory);
/* The backend of sharing sessions with these EP options. It lives as long as the factory, because
 * what they share must outlive each of them. */
OrtStatus *ep_sharing_backend(ep_factory *factory, const ep_options *options, epctx_backend *out);

/* The group keeps a pointer to its backend: the factory's, not the session's copy. */
const epctx_backend *ep_sharing_lasting(const ep_session *session);
/* What sharing sessions load through. */
epctx_workspace *ep_sharing_workspace(const ep_factory *factory);

/* ---------------------------------------------------------------- kernel.c */

/* The kernel of a fused node in sessions that only compile: it cannot run. */
OrtStatus *ep_kernel_create_idle(ep_context *context, OrtNodeComputeInfo **out);
/* `inputs` and `outputs` are the boundary's value names in the order of the context's graph; ORT's
 * order is that of `fused`. Takes a reference of `context`. */
OrtStatus *ep_kernel_create(ep_context *context, const epctx_bound *bound,
                            const char *const *inputs, size_t input_count,
                            const char *const *outputs, size_t output_count, const OrtNode *fused,
                            OrtNodeComputeInfo **out);
void ep_kernel_release(OrtNodeComputeInfo *info);

/* ------------------------------------------------------------------ load.c */

/* Graphs of one EPContext node each: loads the binaries they refer to. */
OrtStatus *ep_load_graphs(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                          size_t count, OrtNodeComputeInfo **infos);
/* Loads what was just compiled in `context`, for its kernels; `records` are the graphs. */
OrtStatus *ep_load_made(ep_context *context, epctx_ort_record *records, size_t count);

/* --------------------------------------------------------------- compile.c */

/* Refuses to generate if ORT would write the context model to an unexpected place. */
OrtStatus *ep_check_place(const ep_session *session, const epctx_ort_record *record);
/* Path of the context model that ORT will write. `model_path` is "" for a model from memory. */
OrtStatus *ep_context_model_path(const ep_session *session, const char *model_path, char *out,
                                 size_t capacity);
/* The nodes that ORT writes into the context model, from those that epctx.h made. Name, inputs and
 * outputs are those of the fused nodes: ORT replaces the one by the other by name. */
OrtStatus *ep_give_nodes(const ep_session *session, const epctx_ort_record *records,
                         const epctx_node *nodes, const OrtNode **fused, size_t count,
                         epctx_span payload, epctx_arena *arena, OrtNode **out);

/* Ordinary graphs: compiles all of them into one context binary. */
OrtStatus *ep_compile_graphs(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                             size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes);
/* ORT has written the context model of the binary. */
void ep_binary_confirm(ep_session *session);
/* The session ends. If ORT did not write its model, a binary that is new goes. */
void ep_binary_withdraw(ep_session *session);

/* ----------------------------------------------------------------- share.c */

/* Generating: compiles the graphs into the context of the group. */
OrtStatus *ep_share_compile(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                            size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes);
/* ORT has written the session's context model. The last session writes the binary. */
OrtStatus *ep_share_written(ep_session *session);
/* The session ends. If ORT did not write its model, it leaves the group. */
void ep_share_leave(ep_session *session);

/* ------------------------------- rows that ORT calls if they are there, file by file */

void ep_compatibility_register(ep_factory *factory);
void ep_compatibility_register_session(ep_session *session);
/* Whether an EP of this factory can run on the device. */
bool ep_factory_supports(const ep_factory *factory, const OrtHardwareDevice *device);

void ep_runs_register(ep_session *session);
void ep_runs_report(const ep_session *session); /* written to the log at the end */

void ep_memory_register(ep_factory *factory);
void ep_memory_register_session(ep_session *session);
/* The memory of this device, made when the first one needs it. */
OrtStatus *ep_memory_announce(ep_factory *factory, OrtEpDevice *device);
bool ep_memory_is_ours(const ep_factory *factory, const OrtMemoryDevice *device);
void ep_memory_release(ep_factory *factory);

void ep_transfer_register(ep_factory *factory);
/* Copies from and to the memory that is announced. */
OrtStatus *ep_transfer_announce(ep_factory *factory);
void ep_transfer_release(ep_factory *factory);

void ep_stream_register(ep_factory *factory);
void ep_stream_register_session(ep_session *session);
void ep_stream_copied(const ep_factory *factory, OrtSyncStream *stream);

void ep_profiler_register(ep_session *session);
void ep_profiler_detach(ep_session *session);
/* 0 without a profiler; ep_profile_end then does nothing. */
int64_t ep_profile_begin(const ep_session *session);
void ep_profile_end(ep_session *session, epctx_str name, int64_t start_ns);

#endif
