/* SPDX-License-Identifier: MIT
 * bridge.h - ORT's graph as records of epctx.h and EPContext nodes back to ORT, with ORT's C API
 * and nothing of this EP: graph.c, node.c, buffers.c and status.c are for any EP, also one in C++
 * (../embed_in_ep/epctx_ort.hpp). */
#ifndef EPCTX_ORT_BRIDGE_H
#define EPCTX_ORT_BRIDGE_H

#ifndef ORT_API_VERSION /* of API 24 or newer; an EP may have it under a longer name already */
#include <onnxruntime_c_api.h>
#endif
#include <stdio.h>

#include "epctx.h"
#include "ort131.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tables of function pointers that ORT gives us. A slot is only touched when the function
 * exists since EP_OLDEST_API, or in this `version`. */
typedef struct epctx_ort_api {
    const OrtApi *ort;
    const OrtEpApi *ep;
    const OrtModelEditorApi *editor;
    uint32_t version; /* epctx_ort_runtime */
} epctx_ort_api;

/* For ort_version_supported of every structure but OrtEp (epctx_ort_announce): these are as long as
 * in the headers, which may be older than this ORT. */
static inline uint32_t epctx_ort_layout(const epctx_ort_api *api) {
    return api->version < ORT_API_VERSION ? api->version : ORT_API_VERSION;
}

#if defined(__MINGW_PRINTF_FORMAT) /* Windows has two printf */
#define EPCTX_ORT_PRINTF(text, first) __attribute__((format(__MINGW_PRINTF_FORMAT, text, first)))
#elif defined(__GNUC__)
#define EPCTX_ORT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define EPCTX_ORT_PRINTF(text, first)
#endif

/* Every function of ORT returns NULL or a status that its receiver owns. */
#define EPCTX_ORT_TRY(call) \
    do { \
        OrtStatus *epctx_ort_status_ = (call); \
        if (epctx_ort_status_) return epctx_ort_status_; \
    } while (0)

/* ---------------------------------------------------------------- status.c */

/* The API of this ORT: "1.30.0" is 30. At most what is known here: asking GetApi for more makes ORT
 * print to stderr. */
uint32_t epctx_ort_runtime(const OrtApiBase *base);

/* NULL for EPCTX_OK, else an OrtStatus with the mapped code and the message of `error`. */
OrtStatus *epctx_ort_status(const epctx_ort_api *api, epctx_status status,
                            const epctx_error *error);
/* The same for a failure while a context is loaded: always INVALID_GRAPH, as the EP-context design
 * demands, whatever the reason. */
OrtStatus *epctx_ort_load_status(const epctx_ort_api *api, epctx_status status,
                                 const epctx_error *error);
/* A status of our own; the format is printf's. */
EPCTX_ORT_PRINTF(3, 4)
OrtStatus *epctx_ort_fail(const epctx_ort_api *api, epctx_status status, const char *format, ...);
OrtStatus *epctx_ort_no_memory(const epctx_ort_api *api);
/* Makes an epctx_error of an OrtStatus and releases it. */
epctx_status epctx_ort_absorb(const epctx_ort_api *api, OrtStatus *status, epctx_error *error);
/* Writes a line to ORT's log; ignores failures. */
EPCTX_ORT_PRINTF(4, 5)
void epctx_ort_log(const epctx_ort_api *api, const OrtLogger *logger, OrtLoggingLevel level,
                   const char *format, ...);
/* Where the log_fn of epctx_ort_hooks writes to. */
typedef struct epctx_ort_log_to {
    const epctx_ort_api *api;
    const OrtLogger *logger;
    const char *ep_name; /* before each line */
} epctx_ort_log_to;
/* Hooks that only log; `to` is borrowed. */
epctx_hooks epctx_ort_hooks(epctx_ort_log_to *to);

/* ----------------------------------------------------------------- graph.c */

/* An OrtGraph as records. Weights and names are borrowed from ORT: a record lives no longer than
 * the call (GetCapability, Compile) that brought the OrtGraph. */
typedef struct epctx_ort_record {
    const epctx_ort_api *api;
    epctx_arena arena;
    epctx_graph graph;
    const OrtNode **nodes;  /* at the positions of graph.nodes */
    const char *model_path; /* as ORT tells it, "" for a model from memory */
    int kind;               /* EPCTX_ORT_RECORD_HASHED, EPCTX_ORT_RECORD_BODY */
    OrtValue **held;        /* tensors of attributes */
    size_t held_count, held_room;
    struct epctx_ort_record *inner, *next; /* the bodies of its nodes, linked by `next` */
} epctx_ort_record;

/* Before, ORT cannot register what is compiled in two bodies of one model (seen with 1.24.3, not
 * with 1.29.0): bodies stay on the CPU. */
#define EPCTX_ORT_BODIES_API 29
/* The hash of bodies goes into `extra_hash` of their nodes. */
#define EPCTX_ORT_RECORD_HASHED 1
/* It is a body: values of outer graphs are found by their names, they are no inputs. */
#define EPCTX_ORT_RECORD_BODY 2

/* Bodies of control-flow nodes are in their attributes (since ORT 1.29).
 * `fused`: take inputs and outputs, and their order, from this node; NULL: from the graph.
 * With `fused` nodes have `extra_hash`, as epctx_graph_hash needs it.
 * The payload of EPContext nodes stays empty, it may be gigabytes: epctx_ort_context_node_read. */
OrtStatus *epctx_ort_record_read(epctx_ort_record *record, const epctx_ort_api *api,
                                 const OrtGraph *graph, const OrtNode *fused);
/* The control-flow node around `body` (as GetCapability gets it), as a graph of one node. */
OrtStatus *epctx_ort_record_read_parent(epctx_ort_record *record, const epctx_ort_api *api,
                                        const OrtGraph *body);
/* May be called on a zeroed record, and twice. */
void epctx_ort_record_free(epctx_ort_record *record);
/* Under session.model_external_initializers_file_folder_path (`folder`, "" when not set) ORT hides
 * the model's path behind a made-up one in that folder, where only initializers belong. */
bool epctx_ort_path_is_hidden(const char *model_path, const char *folder);
/* Size in bytes of an attribute's value. ORT answers a question for the size with an error unless
 * the size is 0. */
OrtStatus *epctx_ort_attr_size(const epctx_ort_api *api, const OrtOpAttr *attr, OrtOpAttrType type,
                               size_t *size);
bool epctx_ort_is_context_node(const epctx_node *node);
/* Whether ORT keeps an attribute of this node, or of one in its bodies, from EPs: then nobody but
 * ORT can compile it, whatever capability_fn says. */
bool epctx_ort_hides(const epctx_node *node);

/* ------------------------------------------------------------------ node.c */

/* Whether a node of ORT's is one of EPContext, of whatever EP, and (`source` not NULL) whether it
 * is that EP's. False for NULL, and for a node without that attribute or with one of another
 * type. */
OrtStatus *epctx_ort_node_is_context(const epctx_ort_api *api, const OrtNode *node,
                                     const char *source, bool *out);
/* Names of the node's inputs (outputs) in `arena`. */
OrtStatus *epctx_ort_node_names(const epctx_ort_api *api, const OrtNode *node, bool outputs,
                                epctx_arena *arena, const char ***names, size_t *count);
/* Node `index` of the record, an EPContext node, with what records leave out: its payload, or the
 * name of its file. The bytes are in `payload` (initialized, and freed by the caller also after a
 * failure), the attributes in `arena`. */
OrtStatus *epctx_ort_context_node_read(const epctx_ort_record *record, size_t index,
                                       epctx_buffer *payload, epctx_arena *arena, epctx_node *out);
/* The inputs and outputs of a new node. */
typedef enum epctx_ort_ends {
    EPCTX_ORT_ENDS_RECORD = 0, /* the record's: those of epctx_ep_context_nodes have no constants,
                                  unless the EP wants them (epctx_backend.weight_inputs) */
    EPCTX_ORT_ENDS_WEIGHTS,    /* the record's, and behind its inputs those of the fused node that
                                  its EPCTX_WEIGHTS_ATTR names: ORT copies their bytes into the
                                  context model */
    EPCTX_ORT_ENDS_FUSED /* the fused node's, first the record's inputs in its order, then those
                                  of its EPCTX_WEIGHTS_ATTR, then other constants: ORT copies the
                                  bytes of constants into the context model */
} epctx_ort_ends;

/* The node that ORT writes in the place of `fused`, with its name: ORT replaces the one by the
 * other by name. It has the attributes of `node`, and the own ones that `record` has, all of them
 * as epctx_epnode_check wants them (else EP_FAIL, as for a list that is NULL): of every type that
 * OrtApi::CreateOpAttr makes, others are NOT_IMPLEMENTED. The caller owns it. Make all nodes before
 * you write their binary. */
OrtStatus *epctx_ort_context_node_create(const epctx_ort_api *api, const OrtNode *fused,
                                         const epctx_node *record, const epctx_epnode *node,
                                         epctx_ort_ends ends, epctx_arena *arena, OrtNode **out);
/* A record of epctx_ep_context_nodes with its own attributes alone, those behind the schema's. */
epctx_node epctx_ort_context_node_own(const epctx_node *record);

/* --------------------------------------------------------------- buffers.c */

/* ORT's callbacks for data of EPContext nodes; NULL: files. */
typedef struct epctx_ort_buffers {
    ort131_read_fn read_fn;
    void *read_state;
    ort131_write_fn write_fn;
    void *write_state;
} epctx_ort_buffers;

/* Valid in CreateEp. Leaves NULL what the application did not set or this ORT does not have. */
OrtStatus *epctx_ort_buffers_open(const epctx_ort_api *api, const OrtSessionOptions *options,
                                  epctx_ort_buffers *out);
/* Tells ORT that this EP uses both callbacks: from API 31 on it refuses sessions with callbacks
 * before they begin if the EP does not. Sets ort_version_supported and the newest member. */
void epctx_ort_announce(const epctx_ort_api *api, ort131_ep *ep);

/* The epctx_io of binaries that the application's read callback gives: for epctx_load_opts.io, and
 * needed until epctx_unload. */
typedef struct epctx_ort_reader {
    epctx_io io;
    const epctx_ort_api *api;
    epctx_ort_buffers buffers;
    OrtStatus *refusal; /* the callback's own status: the one to return after a failure */
} epctx_ort_reader;

void epctx_ort_reader_init(epctx_ort_reader *reader, const epctx_ort_api *api,
                           const epctx_ort_buffers *buffers);
/* Hands the callback's status over, if there is one. */
OrtStatus *epctx_ort_reader_refusal(epctx_ort_reader *reader);
void epctx_ort_reader_free(epctx_ort_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
