/* bridge.h - ORT's graph as records of epctx.h and EPContext nodes back to ORT, with ORT's C API
 * and nothing of this EP: graph.c, node.c, buffers.c and status.c are for any EP, also one in C++
 * (../embed_in_ep/epctx_ort.hpp). */
#ifndef EP_BRIDGE_H
#define EP_BRIDGE_H

#include <onnxruntime_c_api.h>
#include <stdio.h>

#include "epctx.h"
#include "ort131.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tables of function pointers that ORT gives us. A slot is only touched when the function
 * exists since EP_OLDEST_API, or in this `version`. */
typedef struct ep_api {
    const OrtApi *ort;
    const OrtEpApi *ep;
    const OrtModelEditorApi *editor;
    uint32_t version; /* ep_runtime */
} ep_api;

/* For ort_version_supported of every structure but OrtEp (ep_announce): these are as long as in the
 * headers, which may be older than this ORT. */
static inline uint32_t ep_layout(const ep_api *api) {
    return api->version < ORT_API_VERSION ? api->version : ORT_API_VERSION;
}

#if defined(__MINGW_PRINTF_FORMAT) /* Windows has two printf */
#define EP_PRINTF(text, first) __attribute__((format(__MINGW_PRINTF_FORMAT, text, first)))
#elif defined(__GNUC__)
#define EP_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define EP_PRINTF(text, first)
#endif

/* Every function of ORT returns NULL or a status that its receiver owns. */
#define EP_TRY(call) \
    do { \
        OrtStatus *ep_status_ = (call); \
        if (ep_status_) return ep_status_; \
    } while (0)

/* ---------------------------------------------------------------- status.c */

/* The API of this ORT: "1.30.0" is 30. At most what is known here: asking GetApi for more makes ORT
 * print to stderr. */
uint32_t ep_runtime(const OrtApiBase *base);

/* NULL for EPCTX_OK, else an OrtStatus with the mapped code and the message of `error`. */
OrtStatus *ep_status(const ep_api *api, epctx_status status, const epctx_error *error);
/* The same for a failure while a context is loaded: always INVALID_GRAPH, as the EP-context design
 * demands, whatever the reason. */
OrtStatus *ep_load_status(const ep_api *api, epctx_status status, const epctx_error *error);
/* A status of our own; the format is printf's. */
EP_PRINTF(3, 4)
OrtStatus *ep_fail(const ep_api *api, epctx_status status, const char *format, ...);
OrtStatus *ep_no_memory(const ep_api *api);
/* Makes an epctx_error of an OrtStatus and releases it. */
epctx_status ep_absorb(const ep_api *api, OrtStatus *status, epctx_error *error);
/* Writes a line to ORT's log; ignores failures. */
EP_PRINTF(4, 5)
void ep_log(const ep_api *api, const OrtLogger *logger, OrtLoggingLevel level, const char *format,
            ...);

/* ----------------------------------------------------------------- graph.c */

/* An OrtGraph as records. Weights and names are borrowed from ORT: a record lives no longer than
 * the call (GetCapability, Compile) that brought the OrtGraph. */
typedef struct ep_record {
    const ep_api *api;
    epctx_arena arena;
    epctx_graph graph;
    const OrtNode **nodes;  /* at the positions of graph.nodes */
    const char *model_path; /* as ORT tells it, "" for a model from memory */
    int kind;               /* EP_RECORD_HASHED, EP_RECORD_BODY */
    OrtValue **held;        /* tensors of attributes */
    size_t held_count, held_room;
    struct ep_record *inner, *next; /* the bodies of its nodes, linked by `next` */
} ep_record;

/* Before, ORT cannot register what is compiled in two bodies of one model (seen with 1.24.3, not
 * with 1.29.0): bodies stay on the CPU. */
#define EP_BODIES_API 29
/* The hash of bodies goes into `rest` of their nodes. */
#define EP_RECORD_HASHED 1
/* It is a body: values of outer graphs are found by their names, they are no inputs. */
#define EP_RECORD_BODY 2

/* Bodies of control-flow nodes are in their attributes (since ORT 1.29).
 * `fused`: take inputs and outputs, and their order, from this node; NULL: from the graph.
 * With `fused` nodes have `rest`, as epctx_graph_hash needs it.
 * The payload of EPContext nodes stays empty, it may be gigabytes: ep_context_node_read. */
OrtStatus *ep_record_read(ep_record *record, const ep_api *api, const OrtGraph *graph,
                          const OrtNode *fused);
/* The control-flow node around `body` (as GetCapability gets it), as a graph of one node. */
OrtStatus *ep_record_read_parent(ep_record *record, const ep_api *api, const OrtGraph *body);
/* May be called on a zeroed record, and twice. */
void ep_record_free(ep_record *record);
/* Under session.model_external_initializers_file_folder_path (`folder`, "" when not set) ORT hides
 * the model's path behind a made-up one in that folder, where only initializers belong. */
bool ep_path_is_hidden(const char *model_path, const char *folder);
/* Size in bytes of an attribute's value. ORT answers a question for the size with an error unless
 * the size is 0. */
OrtStatus *ep_attr_size(const ep_api *api, const OrtOpAttr *attr, OrtOpAttrType type, size_t *size);
bool ep_is_context_node(const epctx_node *node);

/* ------------------------------------------------------------------ node.c */

/* Names of the node's inputs (outputs) in `arena`. */
OrtStatus *ep_node_names(const ep_api *api, const OrtNode *node, bool outputs, epctx_arena *arena,
                         const char ***names, size_t *count);
/* Node `index` of the record, an EPContext node, with what records leave out: its payload, or the
 * name of its file. The bytes are in `payload` (initialized, and freed by the caller also after a
 * failure), the attributes in `arena`. */
OrtStatus *ep_context_node_read(const ep_record *record, size_t index, epctx_buffer *payload,
                                epctx_arena *arena, epctx_node *out);
/* The node that ORT writes in the place of `fused`, with its name, inputs and outputs: ORT replaces
 * the one by the other by name. `weights`: EPCTX_WEIGHTS_ATTR, or empty. The caller owns it. */
OrtStatus *ep_context_node_create(const ep_api *api, const OrtNode *fused, const epctx_epnode *node,
                                  epctx_str weights, epctx_arena *arena, OrtNode **out);

/* --------------------------------------------------------------- buffers.c */

/* ORT's callbacks for data of EPContext nodes; NULL: files. */
typedef struct ep_buffers {
    ort131_read_fn read_fn;
    void *read_state;
    ort131_write_fn write_fn;
    void *write_state;
} ep_buffers;

/* Valid in CreateEp. Leaves NULL what the application did not set or this ORT does not have. */
OrtStatus *ep_buffers_open(const ep_api *api, const OrtSessionOptions *options, ep_buffers *out);
/* Tells ORT that this EP uses both callbacks: from API 31 on it refuses sessions with callbacks
 * before they begin if the EP does not. Sets ort_version_supported and the newest member. */
void ep_announce(const ep_api *api, ort131_ep *ep);

/* The epctx_io of binaries that the application's read callback gives: for epctx_load_opts.io, and
 * needed until epctx_unload. */
typedef struct ep_reader {
    epctx_io io;
    const ep_api *api;
    ep_buffers buffers;
    OrtStatus *refusal; /* the callback's own status: the one to return after a failure */
} ep_reader;

void ep_reader_init(ep_reader *reader, const ep_api *api, const ep_buffers *buffers);
/* Hands the callback's status over, if there is one. */
OrtStatus *ep_reader_refusal(ep_reader *reader);
void ep_reader_free(ep_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
