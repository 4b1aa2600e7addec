/* epctx.h - read, edit, build, generate and load ONNX Runtime EPContext models. Version 0.1.0
 *
 * Single header, C99 and C++17, on top of nanopb. MIT licence, text in LICENSE.
 * Search for ">>" to jump from section to section.
 */

/* ================================================================================================
 * >>manual
 * ================================================================================================
 *
 * WHAT IT IS
 *   NPU compilers are slow, so ONNX Runtime (ORT) caches their output in "EPContext models": ONNX
 *   files whose com.microsoft::EPContext nodes carry a vendor binary (embed_mode 1) or the path of
 *   one (embed_mode 0). This header gives an execution provider (EP), a tool or a firmware:
 *   a lossless ONNX reader, editor and writer; EPContext nodes parsed and built; safe path
 *   resolution; and the generation and loading workflows of ORT's EP-context design.
 *   It is not an inference engine: the EP supplies an epctx_backend (epctx_npu.h is one).
 *
 * DO THIS
 *   In ONE file of your program, recommended as a two-line epctx.c of its own:
 *       #define EPCTX_IMPLEMENTATION
 *       #include "epctx.h"
 *   Everywhere else only #include "epctx.h". Link nanopb (Debian: -lprotobuf-nanopb).
 *   Any include order and any number of includes is fine.
 *
 * QUICK START: print the EPContext nodes of a model
 *       epctx_model model;
 *       epctx_error err;
 *       if (epctx_model_open_file(&model, "m_ctx.onnx", NULL, &err) != EPCTX_OK) {
 *           fprintf(stderr, "%s\n", err.message);
 *           return 1;
 *       }
 *       epctx_graph_view graph = epctx_model_graph(&model);
 *       epctx_cursor it = epctx_graph_nodes(graph);
 *       epctx_node_view node;
 *       epctx_epnode ep;
 *       while (epctx_next_node(&it, &node)) {
 *           if (epctx_is_epnode(&node) && epctx_epnode_read(&node, &ep, &err) == EPCTX_OK) {
 *               printf("%.*s\n", (int)ep.source.size, ep.source.data);
 *           }
 *       }
 *       epctx_model_close(&model);
 *
 * OPTIONS (macros)                effect                                    scope
 *   EPCTX_IMPLEMENTATION          emits the function bodies                 one file
 *   EPCTX_STATIC                  every function static, nothing exported   every file
 *   EPCTX_NO_MALLOC               no default allocator: pass buffers or an
 *                                 epctx_allocator; no malloc/free symbol    implementation file
 *   EPCTX_NO_STDIO                no file back-end: pass memory or your own
 *                                 epctx_io; no operating-system call        implementation file
 *   EPCTX_NO_WIRE                 leaves out everything that reads or
 *                                 writes model bytes, and nanopb with it    every file
 *   No option changes a public struct.
 *
 * MEMORY
 *   A model owns one arena: blocks from its allocator, or one fixed buffer of yours. Views and
 *   epctx_str / epctx_span borrow from the source bytes or from that arena; they live until the
 *   model is closed, and views of a message until that message is edited. Nothing is copied while
 *   reading. A path given to an open function is copied. A source buffer must outlive its model.
 *
 * THREADS
 *   No global state. Any number of threads may read one model; opening, editing, writing and
 *   closing need exclusive access. Different models never interact.
 *
 * ERRORS
 *   Every fallible function returns epctx_status and fills an optional epctx_error: the message
 *   names file, node and attribute, what was expected and what was found. The first error wins.
 *   epctx_status_to_ort() gives the OrtErrorCode value.
 *
 * TRUST
 *   Model bytes, context binaries and every path inside them are hostile. The wire grammar is
 *   libprotobuf's: what libprotobuf refuses is refused here, and the other way round (only the
 *   2 GiB limit of libprotobuf is not copied). After a successful open every view stays inside the
 *   source. Paths from a model cannot leave its folder. Depth, counts and sizes have limits
 *   (epctx_limits). Files are replaced by temp file + fsync + rename, never written in place.
 *
 * LOSSLESS
 *   Open + write without an edit gives the same bytes for every accepted input. An edit changes
 *   only what it says; unknown fields, field order, odd varints, functions and producer survive.
 *   epctx_undo() restores the former bytes exactly.
 *
 * NANOPB
 *   Used at tag, varint and stream level, never through message descriptors. pb.h must see the
 *   same PB_NO_ERRMSG, PB_FIELD_32BIT and PB_BUFFER_ONLY as the nanopb you link; a mismatch is
 *   found at the first open (EPCTX_ERR_CONFIG) instead of overwriting memory. Shared libraries
 *   should hide nanopb's symbols (-Wl,--exclude-libs,ALL).
 *
 * CONTENTS
 *   >>config >>basics >>io >>wire >>onnx >>record >>epnode >>path >>edit >>partition >>ep >>gen
 *   >>load >>implementation
 */

#ifndef EPCTX_H
#define EPCTX_H

/* ================================================================================================
 * >>config
 * ============================================================================================== */

#define EPCTX_VERSION_MAJOR  0
#define EPCTX_VERSION_MINOR  1
#define EPCTX_VERSION_PATCH  0
#define EPCTX_VERSION_STRING "0.1.0"

/* The file back-end needs POSIX declarations and 64-bit offsets. Feature macros only count before
 * the first system header; when it is too late the implementation stops with the cure. */
#if defined(EPCTX_IMPLEMENTATION) && !defined(EPCTX_NO_STDIO) && !defined(_WIN32)
#if !defined(_XOPEN_SOURCE) && !defined(_GNU_SOURCE)
#define _XOPEN_SOURCE 700
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef EPCTX_NO_WIRE
#include <pb_decode.h>
#include <pb_encode.h>
#ifdef PB_WITHOUT_64BIT
#error "epctx.h needs 64-bit varints: build nanopb without PB_WITHOUT_64BIT"
#endif
#endif

#if defined(EPCTX_STATIC) && (defined(__GNUC__) || defined(__clang__))
#define EPCTX_API static __attribute__((unused))
#elif defined(EPCTX_STATIC)
#define EPCTX_API static
#else
#define EPCTX_API extern
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ================================================================================================
 * >>basics: status, error, strings, allocator, arena
 * ============================================================================================== */

/* Name, OrtErrorCode value (onnxruntime_error_code.h), one-line meaning. Whatever goes wrong while
 * a context is loaded maps to ORT's INVALID_GRAPH (10), as the EP-context design demands. */
#define EPCTX_STATUS_LIST(X)                                                                       \
    X(OK, 0, "success")                                                                            \
    X(ERR_ARG, 2, "the caller passed an argument that is not allowed")                             \
    X(ERR_NOMEM, 1, "the allocator or the fixed buffer has no room")                               \
    X(ERR_CONFIG, 1, "library and nanopb were built with different options")                       \
    X(ERR_LIMIT, 2, "a limit of epctx_limits or of a format is exceeded")                          \
    X(ERR_IO, 1, "the operating system or an io callback reported a failure")                      \
    X(ERR_NOT_FOUND, 3, "a file does not exist")                                                   \
    X(ERR_EXISTS, 1, "an output exists and may not be overwritten")                                \
    X(ERR_PATH, 10, "a path is empty, absolute, or leaves the model's folder")                     \
    X(ERR_PROTOBUF, 7, "the bytes are not a protobuf that libprotobuf would accept")               \
    X(ERR_GRAPH, 10, "the model breaks a rule of ONNX or of the EPContext schema")                 \
    X(ERR_CONTEXT, 10, "a context binary cannot be loaded")                                        \
    X(ERR_VERSION, 10, "a context binary was made for another format, SDK or architecture")        \
    X(ERR_UNSUPPORTED, 9, "the backend does not implement this")                                   \
    X(ERR_NO_NODES, 1, "no node could be compiled")                                                \
    X(ERR_BACKEND, 11, "the backend failed")                                                       \
    X(ERR_CANCELLED, 12, "the caller cancelled the work")

typedef enum epctx_status {
#define EPCTX__STATUS_ENUM(name, ort, text) EPCTX_##name,
    EPCTX_STATUS_LIST(EPCTX__STATUS_ENUM)
#undef EPCTX__STATUS_ENUM
        EPCTX_STATUS_COUNT
} epctx_status;

/* Enumerator name ("EPCTX_ERR_PATH"), one-line meaning, OrtErrorCode value. Static strings, never
 * NULL; an unknown value gives "unknown status" and ORT_FAIL. */
EPCTX_API const char *epctx_status_name(epctx_status status);
EPCTX_API const char *epctx_status_text(epctx_status status);
EPCTX_API int epctx_status_to_ort(epctx_status status);

#define EPCTX_NO_OFFSET UINT64_MAX

/* What went wrong. Pass NULL where it does not matter. All strings are terminated; `file`, `node`
 * and `attribute` are empty when they do not apply, and `message` already contains them. */
typedef struct epctx_error {
    epctx_status status;
    uint64_t offset; /* byte position in `file`, or EPCTX_NO_OFFSET */
    char file[256];
    char node[128];
    char attribute[64];
    char message[640];
} epctx_error;

/* Borrowed bytes. */
typedef struct epctx_span {
    const uint8_t *data;
    size_t size;
} epctx_span;

/* Borrowed text, not terminated, may hold any byte. */
typedef struct epctx_str {
    const char *data;
    size_t size;
} epctx_str;

EPCTX_API epctx_str epctx_str_of(const char *text); /* NULL gives the empty string */
EPCTX_API bool epctx_str_is(epctx_str a, const char *b);
EPCTX_API bool epctx_str_eq(epctx_str a, epctx_str b);

/* XXH64 of the public specification (seed 0 unless given): the same value on every platform. Used
 * for graph hashes and checksums, not against deliberate collisions. */
EPCTX_API uint64_t epctx_hash(const void *data, size_t size, uint64_t seed);

/* Caller's memory. alloc_fn returns memory aligned for any type, or NULL. */
typedef struct epctx_allocator {
    void *user;
    void *(*alloc_fn)(void *user, size_t size);
    void (*free_fn)(void *user, void *memory);
} epctx_allocator;

/* Memory that is freed in one call: blocks from an allocator, or one fixed buffer. Zero-initialise,
 * then init. `used` is what was handed out; after EPCTX_ERR_NOMEM `missing` is the size of the
 * request that did not fit. */
typedef struct epctx_arena {
    epctx_allocator allocator;
    void *blocks;
    uint8_t *next;
    size_t left;
    size_t used;
    size_t missing;
} epctx_arena;

/* NULL allocator: malloc and free (not under EPCTX_NO_MALLOC). */
EPCTX_API void epctx_arena_init(epctx_arena *arena, const epctx_allocator *allocator);
/* Borrows `buffer` until epctx_arena_free. */
EPCTX_API void epctx_arena_init_fixed(epctx_arena *arena, void *buffer, size_t size);
/* Zeroed memory, aligned to 16 bytes, or NULL. Valid until epctx_arena_free. */
EPCTX_API void *epctx_arena_alloc(epctx_arena *arena, size_t size);
/* `count` elements of `size` bytes; NULL when the product overflows. */
EPCTX_API void *epctx_arena_array(epctx_arena *arena, size_t count, size_t size);
/* A terminated copy. */
EPCTX_API char *epctx_arena_copy(epctx_arena *arena, epctx_str text);
/* Legal on a zeroed arena and twice. */
EPCTX_API void epctx_arena_free(epctx_arena *arena);

/* Bytes that grow, owned by the allocator that was given to epctx_buffer_init. */
typedef struct epctx_buffer {
    epctx_allocator allocator;
    uint8_t *data;
    size_t size;
    size_t capacity;
} epctx_buffer;

EPCTX_API void epctx_buffer_init(epctx_buffer *buffer, const epctx_allocator *allocator);
/* Appends; `data` NULL appends zeros. EPCTX_ERR_NOMEM leaves the buffer as it was. */
EPCTX_API epctx_status epctx_buffer_append(epctx_buffer *buffer, const void *data, size_t size);
EPCTX_API void epctx_buffer_free(epctx_buffer *buffer);

/* String to number map (open addressing, in an arena, insert only). Keys are borrowed. */
typedef struct epctx_map {
    epctx_arena *arena;
    struct epctx__map_slot *slots;
    size_t count;
    size_t capacity;
} epctx_map;

#define EPCTX_MAP_NONE UINT32_MAX

EPCTX_API void epctx_map_init(epctx_map *map, epctx_arena *arena);
/* Value stored for `key`, or EPCTX_MAP_NONE. */
EPCTX_API uint32_t epctx_map_get(const epctx_map *map, epctx_str key);
/* Adds or replaces. EPCTX_ERR_NOMEM when the arena is full. */
EPCTX_API epctx_status epctx_map_put(epctx_map *map, epctx_str key, uint32_t value);

/* Limits on hostile input; a zero member means its default. */
typedef struct epctx_limits {
    uint32_t max_depth;    /* nested messages; default 100, libprotobuf's limit; at most 100 */
    uint64_t max_size;     /* bytes of a model; default no limit */
    uint64_t max_fields;   /* fields of the model and of its main graph; default no limit */
} epctx_limits;

/* Status setter for backends and callbacks: fills `error` (may be NULL, an error already set stays)
 * and returns `status`. The format knows %s (const char *), %S (const epctx_str *), %d (int64_t),
 * %u (uint64_t), %x (uint64_t) and %%: arguments must have exactly these types. */
EPCTX_API epctx_status epctx_fail(epctx_error *error, epctx_status status, const char *format, ...);
/* Names the culprit of the error just set; NULL keeps a part. Prefixes the message with it. */
EPCTX_API void epctx_blame(epctx_error *error, const char *file, const epctx_str *node,
                           const char *attribute);
/* Empties `error` (may be NULL). Every public function does this first. */
EPCTX_API void epctx_error_clear(epctx_error *error);

/* ================================================================================================
 * >>io: everything that touches a file
 * ============================================================================================== */

typedef enum epctx_file_kind {
    EPCTX_FILE_NONE = 0, /* nothing there */
    EPCTX_FILE_REGULAR,
    EPCTX_FILE_FOLDER,
    EPCTX_FILE_OTHER /* pipe, device, socket */
} epctx_file_kind;

/* A whole file in memory, read-only. `handle` belongs to the io. */
typedef struct epctx_mapping {
    const uint8_t *data;
    size_t size;
    void *handle;
} epctx_mapping;

/* Longest path this library builds, with its terminator. */
#define EPCTX_PATH_MAX 4096

/* A file being written: storage that the library provides and the io fills as it likes. */
typedef struct epctx_io_file {
    void *handle;
    int64_t descriptor;
    char path[EPCTX_PATH_MAX];
    char temp[EPCTX_PATH_MAX];
} epctx_io_file;

/* File access as a table of callbacks. Paths are UTF-8. A callback that fails returns a status and
 * fills the error with epctx_fail. A written file becomes visible under its name only in commit_fn:
 * create_fn opens a temporary file beside `path`, sync_fn makes its bytes durable, commit_fn moves
 * it to `path` (replacing a file, keeping its mode; through a link to the file it points to), and
 * abort_fn removes it. After create_fn succeeded exactly one of commit_fn (whether or not it
 * succeeds) and abort_fn is called last. sync_folder_fn makes the names in the folder of `path`
 * durable. */
typedef struct epctx_io {
    void *user;
    epctx_status (*map_fn)(void *user, const char *path, epctx_mapping *out, epctx_error *error);
    void (*unmap_fn)(void *user, epctx_mapping *mapping);
    epctx_status (*stat_fn)(void *user, const char *path, epctx_file_kind *kind, uint64_t *size,
                            epctx_error *error);
    /* Absolute path without links, "." or "..", terminated, of an existing file or folder. */
    epctx_status (*canonical_fn)(void *user, const char *path, char *out, size_t capacity,
                                 epctx_error *error);
    epctx_status (*create_fn)(void *user, const char *path, epctx_io_file *file,
                              epctx_error *error);
    epctx_status (*write_fn)(void *user, epctx_io_file *file, const void *data, size_t size,
                             epctx_error *error);
    epctx_status (*sync_fn)(void *user, epctx_io_file *file, epctx_error *error);
    epctx_status (*commit_fn)(void *user, epctx_io_file *file, epctx_error *error);
    void (*abort_fn)(void *user, epctx_io_file *file);
    epctx_status (*remove_fn)(void *user, const char *path, epctx_error *error);
    epctx_status (*sync_folder_fn)(void *user, const char *path, epctx_error *error);
} epctx_io;

/* The file system of the machine (mmap, fsync, rename), or NULL under EPCTX_NO_STDIO. */
EPCTX_API const epctx_io *epctx_io_files(void);

/* ================================================================================================
 * >>wire: protobuf fields
 * ============================================================================================== */

typedef enum epctx_wire {
    EPCTX_WIRE_VARINT = 0,
    EPCTX_WIRE_FIXED64 = 1,
    EPCTX_WIRE_LEN = 2,
    EPCTX_WIRE_GROUP = 3, /* a whole unknown group, start tag to end tag */
    EPCTX_WIRE_FIXED32 = 5
} epctx_wire;

/* A message: source bytes, or (slot != NULL) a message of the model's tree that may be edited. */
typedef struct epctx_view {
    const struct epctx_slot *slot;
    const uint8_t *data;
    size_t size;
} epctx_view;

/* One field of a message. */
typedef struct epctx_field {
    uint32_t number;
    epctx_wire wire;
    uint64_t value;  /* VARINT, FIXED64 and FIXED32: the bits */
    epctx_view body; /* LEN: the payload */
} epctx_field;

/* Position in a message, optionally only the fields with one number. Copy it to remember a place. */
typedef struct epctx_cursor {
    const struct epctx_slot *slot;
    const uint8_t *next;
    const uint8_t *end;
    const uint8_t *packed;     /* inside a packed field */
    const uint8_t *packed_end;
    uint32_t number; /* 0: every field */
} epctx_cursor;

#ifndef EPCTX_NO_WIRE

/* Fields of a message in file order; `number` 0 means all. Groups are fields of wire GROUP. */
EPCTX_API epctx_cursor epctx_fields(epctx_view message, uint32_t number);
EPCTX_API bool epctx_next_field(epctx_cursor *cursor, epctx_field *field);

/* Repeated scalars and strings of a message, packed or not, in order; false at the end. */
EPCTX_API bool epctx_next_int(epctx_cursor *cursor, int64_t *value);
EPCTX_API bool epctx_next_float(epctx_cursor *cursor, float *value);
EPCTX_API bool epctx_next_str(epctx_cursor *cursor, epctx_str *value);

/* ================================================================================================
 * >>onnx: the model, and views over its messages
 * ============================================================================================== */

typedef struct epctx_open_opts {
    const epctx_allocator *allocator; /* default malloc; copied */
    void *buffer;                     /* fixed arena instead of the allocator; borrowed */
    size_t buffer_size;
    const epctx_io *io; /* default epctx_io_files(); borrowed */
    const char *external_folder; /* session.model_external_initializers_file_folder_path: where
                                    external initializers are; default the model's folder; copied */
    epctx_limits limits;
} epctx_open_opts;

/* An open model. Members are private; zero-initialised or closed is a legal state to close. */
typedef struct epctx_model {
    epctx_arena arena;
    const epctx_io *io;
    epctx_mapping mapping;
    epctx_span source;
    const char *path; /* empty when opened from memory */
    const char *external_folder;
    struct epctx__file *files; /* external data that epctx_graph_load mapped */
    struct epctx_slot *root;
    struct epctx_slot *graph;
    struct epctx__edit *edits;
    size_t edit_count;
    epctx_limits limits;
    bool duplicate; /* a singular message field stands twice */
} epctx_model;

/* Opens and checks a whole model: grammar, nesting, limits. Costs one pass over the field headers;
 * payloads are skipped. `opts` NULL means defaults. On failure the model is closed.
 * Errors: NOT_FOUND, IO, PROTOBUF (offset set; git-lfs pointers, .ort files, gzip and zip archives
 * are named in the message), LIMIT, NOMEM, CONFIG. */
EPCTX_API epctx_status epctx_model_open_file(epctx_model *model, const char *path,
                                             const epctx_open_opts *opts, epctx_error *error);
/* Same for bytes in memory, borrowed until close. */
EPCTX_API epctx_status epctx_model_open_memory(epctx_model *model, const void *data, size_t size,
                                               const epctx_open_opts *opts, epctx_error *error);
/* Legal on a zeroed model and twice. Ends the life of every view of it. */
EPCTX_API void epctx_model_close(epctx_model *model);

/* ModelProto without its repeated fields. */
typedef struct epctx_model_info {
    epctx_view view;
    int64_t ir_version;
    epctx_str producer_name, producer_version, domain, doc_string;
    int64_t model_version;
    uint32_t function_count;
} epctx_model_info;

typedef struct epctx_graph_view {
    epctx_view view;
    epctx_str name, doc_string;
} epctx_graph_view;

typedef struct epctx_node_view {
    epctx_view view;
    epctx_str name, op_type, domain, overload, doc_string;
    uint32_t input_count, output_count, attr_count;
} epctx_node_view;

typedef struct epctx_attr_view {
    epctx_view view;
    epctx_str name, ref_attr_name;
    int32_t type; /* as stored; EPCTX_ATTR_UNDEFINED when the field is absent */
    int64_t i;
    float f;
    epctx_str s;
    epctx_view t, g; /* data NULL and slot NULL when absent */
} epctx_attr_view;

/* TensorProto. Exactly one storage is in use: raw, typed fields (epctx_fields on `view`), or an
 * external file. */
typedef struct epctx_tensor_view {
    epctx_view view;
    epctx_str name;
    int32_t elem_type; /* onnx.proto TensorProto.DataType */
    uint32_t rank;
    bool has_raw;
    epctx_span raw; /* little-endian, unaligned */
    bool external;
    epctx_str location; /* relative path; then byte range, length UINT64_MAX = to the end */
    uint64_t offset, length;
} epctx_tensor_view;

/* ValueInfoProto. */
typedef struct epctx_value_view {
    epctx_view view;
    epctx_str name;
    bool is_tensor; /* otherwise sequence, map, optional, sparse or no type at all */
    bool has_type;
    int32_t elem_type;
    bool has_shape;
    epctx_view shape; /* TensorShapeProto */
} epctx_value_view;

/* One dimension of a value: a number, a parameter name, or neither. */
typedef struct epctx_dim {
    bool known;
    int64_t value;
    epctx_str param;
} epctx_dim;

EPCTX_API epctx_model_info epctx_model_read(const epctx_model *model);
/* The main graph; all members empty when the model has none. */
EPCTX_API epctx_graph_view epctx_model_graph(const epctx_model *model);
EPCTX_API bool epctx_model_has_graph(const epctx_model *model);
/* A GraphProto, NodeProto ... found through epctx_fields, e.g. a subgraph of an attribute. */
EPCTX_API epctx_graph_view epctx_graph_of(epctx_view view);
EPCTX_API epctx_node_view epctx_node_of(epctx_view view);
EPCTX_API epctx_attr_view epctx_attr_of(epctx_view view);
EPCTX_API epctx_tensor_view epctx_tensor_of(epctx_view view);
EPCTX_API epctx_value_view epctx_value_of(epctx_view view);

EPCTX_API epctx_cursor epctx_graph_nodes(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_graph_inputs(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_graph_outputs(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_graph_values(epctx_graph_view graph); /* value_info */
EPCTX_API epctx_cursor epctx_graph_initializers(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_node_inputs(const epctx_node_view *node);  /* epctx_next_str */
EPCTX_API epctx_cursor epctx_node_outputs(const epctx_node_view *node); /* epctx_next_str */
EPCTX_API epctx_cursor epctx_node_attrs(const epctx_node_view *node);
EPCTX_API epctx_cursor epctx_tensor_dims(const epctx_tensor_view *tensor); /* epctx_next_int */
EPCTX_API epctx_cursor epctx_value_dims(const epctx_value_view *value);
EPCTX_API bool epctx_next_node(epctx_cursor *cursor, epctx_node_view *node);
EPCTX_API bool epctx_next_attr(epctx_cursor *cursor, epctx_attr_view *attr);
EPCTX_API bool epctx_next_tensor(epctx_cursor *cursor, epctx_tensor_view *tensor);
EPCTX_API bool epctx_next_value(epctx_cursor *cursor, epctx_value_view *value);
EPCTX_API bool epctx_next_dim(epctx_cursor *cursor, epctx_dim *dim);

/* The version imported for `domain` ("" and "ai.onnx" are the same), 0 when it is not imported. */
EPCTX_API int64_t epctx_model_opset(const epctx_model *model, epctx_str domain);
/* Value of a metadata_props key; false when absent. */
EPCTX_API bool epctx_model_metadata(const epctx_model *model, epctx_str key, epctx_str *value);

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>record: a graph as plain structs
 *
 * What a backend compiles. Made from model bytes by epctx_graph_load, or by an EP from its own
 * graph objects (ORT's OrtGraph). All pointers are borrowed from whoever made the record.
 * ============================================================================================== */

#define EPCTX_ONNX_FLOAT  1 /* onnx.proto TensorProto.DataType, the ones this library computes with */
#define EPCTX_ONNX_UINT8  2
#define EPCTX_ONNX_INT8   3
#define EPCTX_ONNX_INT32  6
#define EPCTX_ONNX_INT64  7
#define EPCTX_ONNX_STRING 8
#define EPCTX_ONNX_BOOL   9

/* Bytes of one element of a TensorProto.DataType; 0 for strings, sub-byte and unknown types. */
EPCTX_API size_t epctx_elem_size(int32_t elem_type);
/* "float32", "int64" ...; "unknown" otherwise. */
EPCTX_API const char *epctx_elem_name(int32_t elem_type);

typedef struct epctx_value {
    epctx_str name;
    int32_t elem_type;   /* 0 unknown or not a tensor */
    int32_t rank;        /* -1 unknown */
    const int64_t *dims; /* -1 where it is not a fixed number */
} epctx_value;

typedef struct epctx_tensor {
    epctx_str name;
    int32_t elem_type;
    int32_t rank;
    const int64_t *dims;
    const uint8_t *data; /* packed, little-endian, maybe unaligned; NULL when it was not loaded */
    size_t size;
} epctx_tensor;

struct epctx_graph;

typedef enum epctx_attr_type { /* onnx.proto AttributeProto.AttributeType */
    EPCTX_ATTR_UNDEFINED = 0,
    EPCTX_ATTR_FLOAT = 1,
    EPCTX_ATTR_INT = 2,
    EPCTX_ATTR_STRING = 3,
    EPCTX_ATTR_TENSOR = 4,
    EPCTX_ATTR_GRAPH = 5,
    EPCTX_ATTR_FLOATS = 6,
    EPCTX_ATTR_INTS = 7,
    EPCTX_ATTR_STRINGS = 8,
    EPCTX_ATTR_TENSORS = 9,
    EPCTX_ATTR_GRAPHS = 10,
    EPCTX_ATTR_SPARSE_TENSOR = 11,
    EPCTX_ATTR_SPARSE_TENSORS = 12,
    EPCTX_ATTR_TYPE_PROTO = 13,
    EPCTX_ATTR_TYPE_PROTOS = 14
} epctx_attr_type;

typedef struct epctx_attr {
    epctx_str name;
    epctx_attr_type type;
    int64_t i;
    float f;
    epctx_str s;
    const epctx_tensor *t;
    const struct epctx_graph *g;
    size_t count; /* of ints, floats or strings, whichever `type` says */
    const int64_t *ints;
    const float *floats;
    const epctx_str *strings;
} epctx_attr;

typedef struct epctx_node {
    epctx_str name, op_type, domain; /* domain "" is ai.onnx */
    int64_t version;                 /* of the opset import that governs it; 0 unknown */
    const epctx_str *inputs;         /* an empty name is an omitted optional input */
    size_t input_count;
    const epctx_str *outputs;
    size_t output_count;
    const epctx_attr *attrs;
    size_t attr_count;
    const epctx_str *captures; /* outer values that its subgraphs use */
    size_t capture_count;
    uint32_t id; /* position in the source graph */
} epctx_node;

typedef struct epctx_graph {
    epctx_str name;
    const epctx_node *nodes;
    size_t node_count;
    const epctx_value *inputs; /* run-time inputs: initializers are not among them */
    size_t input_count;
    const epctx_value *outputs;
    size_t output_count;
    const epctx_tensor *initializers; /* constants only: overridable ones count as inputs */
    size_t initializer_count;
    const epctx_value *values; /* types of values in between, as far as the source tells */
    size_t value_count;
} epctx_graph;

/* Attribute by name, or NULL. */
EPCTX_API const epctx_attr *epctx_node_attr(const epctx_node *node, const char *name);
/* Integer attribute, or `fallback` when absent or of another type. Same for float. */
EPCTX_API int64_t epctx_node_int(const epctx_node *node, const char *name, int64_t fallback);
EPCTX_API float epctx_node_float(const epctx_node *node, const char *name, float fallback);

/* ================================================================================================
 * >>epnode: one EPContext node (com.microsoft, since version 1)
 * ============================================================================================== */

#define EPCTX_OP_TYPE "EPContext"
#define EPCTX_DOMAIN  "com.microsoft"

/* The ten attributes of the schema: name, AttributeType, member of epctx_epnode. */
#define EPCTX_EPNODE_ATTR_LIST(X)                                                                  \
    X(MAIN_CONTEXT, "main_context", INT, main_context)                                             \
    X(EP_CACHE_CONTEXT, "ep_cache_context", STRING, ep_cache_context)                              \
    X(EMBED_MODE, "embed_mode", INT, embed_mode)                                                   \
    X(EP_SDK_VERSION, "ep_sdk_version", STRING, ep_sdk_version)                                    \
    X(ONNX_MODEL_FILENAME, "onnx_model_filename", STRING, onnx_model_filename)                     \
    X(HARDWARE_ARCHITECTURE, "hardware_architecture", STRING, hardware_architecture)               \
    X(PARTITION_NAME, "partition_name", STRING, partition_name)                                    \
    X(SOURCE, "source", STRING, source)                                                            \
    X(NOTES, "notes", STRING, notes)                                                               \
    X(MAX_SIZE, "max_size", INT, max_size)

typedef enum epctx_epnode_attr {
#define EPCTX__EPNODE_ENUM(id, name, type, member) EPCTX_EP_##id,
    EPCTX_EPNODE_ATTR_LIST(EPCTX__EPNODE_ENUM)
#undef EPCTX__EPNODE_ENUM
        EPCTX_EP_ATTR_COUNT
} epctx_epnode_attr;

/* Attributes of an EPContext node. Bit (1u << EPCTX_EP_x) of `present` tells that the attribute is
 * stored; the member is the effective value: schema default when absent (main_context 1, embed_mode
 * 1, max_size 0, strings empty). ep_cache_context is the payload or the path by embed_mode; it may
 * hold any bytes. */
typedef struct epctx_epnode {
    epctx_str name; /* of the node */
    uint32_t present;
    int64_t main_context, embed_mode, max_size;
    epctx_str ep_cache_context;
    epctx_str ep_sdk_version, onnx_model_filename, hardware_architecture;
    epctx_str partition_name, source, notes;
} epctx_epnode;

/* An epnode without attributes and with the schema defaults as effective values. */
EPCTX_API epctx_epnode epctx_epnode_default(void);
/* The present attributes as records, in schema order; returns how many (<= 10). `out` borrows from
 * `node`. What an EP hands to OrtApi::CreateOpAttr, and what epctx_put_node writes. */
EPCTX_API size_t epctx_epnode_attrs(const epctx_epnode *node,
                                    epctx_attr out[EPCTX_EP_ATTR_COUNT]);
/* The same from an epctx_node record. EPCTX_ERR_GRAPH names the attribute that has a wrong type or
 * a value outside 0..1 (main_context, embed_mode). */
EPCTX_API epctx_status epctx_epnode_from_record(const epctx_node *record, epctx_epnode *out,
                                                epctx_error *error);
#ifndef EPCTX_NO_WIRE
/* op_type EPContext in domain com.microsoft. */
EPCTX_API bool epctx_is_epnode(const epctx_node_view *node);
EPCTX_API epctx_status epctx_epnode_read(const epctx_node_view *node, epctx_epnode *out,
                                         epctx_error *error);
#endif

/* ================================================================================================
 * >>path: names from a model become paths, names of outputs are made
 * ============================================================================================== */

/* Checks a name stored in a model (ep_cache_context, external data location) without touching the
 * disk: not empty, no NUL, not absolute (POSIX root, drive letter, UNC, backslash root), no ".."
 * component, no ORT in-memory tag. "a..b.bin" and subfolders are fine. EPCTX_ERR_PATH. */
EPCTX_API epctx_status epctx_path_check(epctx_str name, epctx_error *error);
/* Folder of a path including the last separator; "" for a bare name. Borrowed from `path`. */
EPCTX_API epctx_str epctx_path_folder(epctx_str path);
/* File name after the last separator. Borrowed. */
EPCTX_API epctx_str epctx_path_file(epctx_str path);
/* The folder against which names in a model are resolved: of `context_file_path` (session option
 * ep.context_file_path) when set, else of `model_path`. EPCTX_ERR_PATH when both are empty: a model
 * from memory needs ep.context_file_path (EP-context design, inference workflow). */
EPCTX_API epctx_status epctx_path_base(epctx_str model_path, epctx_str context_file_path,
                                       epctx_str *folder, epctx_error *error);
/* `folder` + `name` as the canonical path of an existing regular, non-empty file inside `folder`,
 * links resolved (a link that leaves the folder is EPCTX_ERR_PATH). `out` gets a terminated path. */
EPCTX_API epctx_status epctx_path_resolve(const epctx_io *io, epctx_str folder, epctx_str name,
                                          char *out, size_t capacity, epctx_error *error);
/* "dir/model.onnx" -> "dir/model_ctx.onnx" (ep.context_file_path's default). */
EPCTX_API epctx_status epctx_path_context_model(epctx_str model_path, char *out, size_t capacity,
                                                epctx_error *error);
/* File name of the context binary, `[model]_[ep].bin`, from the path of the context model and the
 * EP's short name: "dir/model_ctx.onnx", "npu" -> "model_npu.bin" (no folder). */
EPCTX_API epctx_status epctx_path_binary(epctx_str context_model_path, epctx_str ep, char *out,
                                         size_t capacity, epctx_error *error);

/* ================================================================================================
 * >>edit: change a model, write it
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

/* A graph record from the main graph: names, types, attributes, initializer bytes (typed fields are
 * converted to raw, external data is mapped through the model's io from the model's folder).
 * Everything lives until the model is closed. EPCTX_ERR_GRAPH for a malformed tensor or a model that
 * has no graph, EPCTX_ERR_PATH / NOT_FOUND for external data. */
EPCTX_API epctx_status epctx_graph_load(epctx_model *model, epctx_graph *out, epctx_error *error);

/* The edits below take views of the main graph's direct children (nodes, initializers, values) or
 * of the model's (opset imports, metadata). They are visible at once in every new view. */

/* Number to hand to epctx_undo; undo takes back every edit made since, to the byte. */
EPCTX_API size_t epctx_edit_mark(const epctx_model *model);
EPCTX_API void epctx_undo(epctx_model *model, size_t mark);
/* Removes the field that holds `view`. */
EPCTX_API epctx_status epctx_remove(epctx_model *model, epctx_view view, epctx_error *error);
/* Inserts a node after `after` (an empty view: after the last node). Attributes of type INT, FLOAT,
 * STRING, INTS, FLOATS and STRINGS. Strings are not copied: they must stay valid until the model is
 * closed. `placed` (may be NULL) gets the view of the new node. */
EPCTX_API epctx_status epctx_put_node(epctx_model *model, const epctx_node *node, epctx_view after,
                                      epctx_view *placed, epctx_error *error);
/* Adds value_info to the main graph. Names are not copied here and below, as in epctx_put_node. */
EPCTX_API epctx_status epctx_put_value(epctx_model *model, const epctx_value *value,
                                       epctx_error *error);
/* Adds an opset import, or does nothing when the domain is already imported. */
EPCTX_API epctx_status epctx_put_opset(epctx_model *model, epctx_str domain, int64_t version,
                                       epctx_error *error);
/* Sets a metadata_props entry; an entry with that key keeps its place. */
EPCTX_API epctx_status epctx_put_metadata(epctx_model *model, epctx_str key, epctx_str value,
                                          epctx_error *error);
/* Expands every message of the model, so that writing re-emits each one from its parts. The bytes
 * stay the same; tests use it. */
EPCTX_API epctx_status epctx_rebuild(epctx_model *model, epctx_error *error);

/* Exact size of the model as it would be written. */
EPCTX_API uint64_t epctx_model_size(epctx_model *model);
/* Writes the model to a nanopb stream. */
EPCTX_API epctx_status epctx_model_write_stream(epctx_model *model, pb_ostream_t *stream,
                                                epctx_error *error);
/* Writes to a file through the model's io: temp file, fsync, rename. */
EPCTX_API epctx_status epctx_model_write_file(epctx_model *model, const char *path,
                                              epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>partition: which nodes belong together
 * ============================================================================================== */

/* One piece of a graph for the backend. `nodes` are positions in the graph, in its order; constant
 * nodes (all inputs constant) that it uses are copied into it and may serve several partitions. */
typedef struct epctx_partition {
    const uint32_t *nodes;
    size_t node_count;
    epctx_graph graph; /* the piece: its nodes, boundary inputs and outputs in order, constants */
} epctx_partition;

/* Groups the nodes with take[i] != 0 into partitions such that no group depends on itself through
 * the rest of the graph, also with the other groups contracted. Nodes whose inputs are all constant
 * do not form partitions of their own. Results live in `arena`. */
EPCTX_API epctx_status epctx_partition_graph(const epctx_graph *graph, const uint8_t *take,
                                             epctx_arena *arena, epctx_partition **partitions,
                                             size_t *count, epctx_error *error);

/* ================================================================================================
 * >>ep: what an EP implements
 * ============================================================================================== */

#define EPCTX_BACKEND_VERSION 1

/* Memory for one run-time tensor. */
typedef struct epctx_memory {
    void *data;
    size_t size;
} epctx_memory;

/* One graph of a loaded context. Borrowed from the context. */
typedef struct epctx_graph_info {
    epctx_str name;
    const epctx_value *inputs; /* order of run_fn's arguments */
    size_t input_count;
    const epctx_value *outputs;
    size_t output_count;
    size_t scratch_size; /* bytes that run_fn needs, aligned to 64 */
} epctx_graph_info;

/* The EP's side. Every call gets `self`. Order: capability, begin, compile once per partition,
 * finish (or discard at any time after begin); load, find, info, run in any number, unload.
 * Callbacks must not throw or longjmp; an error status is passed on with its message. run_fn may be
 * called from several threads on one graph, each with its own scratch; everything else from one. */
typedef struct epctx_backend {
    uint32_t version; /* EPCTX_BACKEND_VERSION */
    void *self;
    const char *source;                /* EPContext attribute `source`, the EP's name */
    const char *short_name;            /* [ep] in [model]_[ep].bin */
    const char *sdk_version;           /* EPContext attribute ep_sdk_version */
    const char *hardware_architecture; /* EPContext attribute hardware_architecture */
    /* Sets take[i] = 1 for every node of `graph` that compile would accept. */
    epctx_status (*capability_fn)(void *self, const epctx_graph *graph, uint8_t *take,
                                  epctx_error *error);
    /* A context under construction. */
    epctx_status (*begin_fn)(void *self, void **build, epctx_error *error);
    /* Adds `graph` under `name`; `hash` comes back at find_fn. Copies what it keeps. */
    epctx_status (*compile_fn)(void *self, void *build, const epctx_graph *graph, epctx_str name,
                               uint64_t hash, epctx_error *error);
    /* May be NULL. After compile_fn of that graph: the types of its outputs, in order, as far as the
     * compiler inferred them; they become value_info. Valid until finish. */
    epctx_status (*types_fn)(void *self, void *build, epctx_str name, const epctx_value **outputs,
                             size_t *count, epctx_error *error);
    /* Appends the context binary to `out` and releases `build`, also on failure. */
    epctx_status (*finish_fn)(void *self, void *build, epctx_buffer *out, epctx_error *error);
    void (*discard_fn)(void *self, void *build);
    /* `binary` stays valid and unchanged until unload_fn; it is hostile. */
    epctx_status (*load_fn)(void *self, epctx_span binary, void **context, epctx_error *error);
    void (*unload_fn)(void *self, void *context);
    /* The graph called `name`; EPCTX_ERR_CONTEXT when there is none. `hash` 0: not checked, else a
     * graph of another generation is EPCTX_ERR_VERSION. */
    epctx_status (*find_fn)(void *self, void *context, epctx_str name, uint64_t hash, void **graph,
                            epctx_error *error);
    epctx_status (*info_fn)(void *self, void *graph, epctx_graph_info *info, epctx_error *error);
    epctx_status (*run_fn)(void *self, void *graph, const epctx_span *inputs,
                           const epctx_memory *outputs, void *scratch, size_t scratch_size,
                           epctx_error *error);
} epctx_backend;

/* Hash that an EPContext node records in `notes` ("graph_hash=<16 hex digits>") and that the binary
 * repeats: names, types, attributes and constants of a graph, the same on every platform. */
EPCTX_API uint64_t epctx_graph_hash(const epctx_graph *graph);
/* The hash in `notes`, or 0. */
EPCTX_API uint64_t epctx_notes_hash(epctx_str notes);

/* ================================================================================================
 * >>gen: ordinary model -> EPContext model
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

typedef struct epctx_gen_opts {
    const char *context_file_path; /* ep.context_file_path; default <model>_ctx.onnx */
    bool embed;                    /* ep.context_embed_mode; default 0: binary in its own file */
    const char *name_prefix;       /* ep.context_node_name_prefix; default "" */
    bool overwrite;                /* replace existing outputs; default EPCTX_ERR_EXISTS */
    bool require_all;              /* a node left for the CPU is an error */
    const epctx_allocator *allocator; /* for the binary; default malloc */
} epctx_gen_opts;

typedef struct epctx_gen_report {
    size_t partition_count;
    size_t compiled_nodes; /* source nodes that went into partitions */
    size_t cpu_nodes;      /* ordinary nodes that stay */
    uint64_t binary_size;
    char context_path[EPCTX_PATH_MAX];
    char binary_path[EPCTX_PATH_MAX]; /* empty when embedded */
} epctx_gen_report;

/* Compiles what the backend takes and writes the EPContext model by editing `model`, which then
 * holds it. One EPContext node per partition: exactly the partition's boundary, main_context 1 for
 * the first and 0 for the rest, one binary. Outputs are checked before anything is compiled
 * (EXISTS, PATH, NOT_FOUND for a missing folder); binary and model are committed together: a crash
 * leaves the old pair, the new pair, or a binary without a model. No node taken: EPCTX_ERR_NO_NODES,
 * nothing is written. On failure the model is as before. `report` may be NULL. */
EPCTX_API epctx_status epctx_generate(epctx_model *model, const epctx_backend *backend,
                                      const epctx_gen_opts *opts, epctx_gen_report *report,
                                      epctx_error *error);

/* ================================================================================================
 * >>load: EPContext model -> contexts that run
 * ============================================================================================== */

typedef struct epctx_load_opts {
    const char *context_file_path;    /* ep.context_file_path: gives the folder of the binaries */
    const epctx_allocator *allocator; /* for the loaded set; default malloc */
} epctx_load_opts;

/* An EPContext node of this backend, bound to the graph that runs it. */
typedef struct epctx_bound {
    epctx_epnode node;
    epctx_node_view view;
    void *graph;
    epctx_graph_info info;
} epctx_bound;

/* Everything that was loaded for one model. Members are private but for `bound`. */
typedef struct epctx_loaded {
    epctx_bound *bound; /* in node order */
    size_t bound_count;
    size_t other_nodes; /* nodes of the main graph that are not ours: CPU or other EPs */
    const epctx_backend *backend;
    epctx_arena arena;
    struct epctx__context *contexts;
    size_t context_count;
    const epctx_io *io;
} epctx_loaded;

/* Loads every primary context whose source is the backend's, once per file, and binds secondaries
 * by partition_name (EP-context design, inference workflow). Any failure maps to INVALID_GRAPH.
 * The model must stay open until epctx_unload. */
EPCTX_API epctx_status epctx_load(epctx_loaded *loaded, const epctx_model *model,
                                  const epctx_backend *backend, const epctx_load_opts *opts,
                                  epctx_error *error);
/* Legal on a zeroed set and twice. */
EPCTX_API void epctx_unload(epctx_loaded *loaded);

#endif /* EPCTX_NO_WIRE */

#ifdef __cplusplus
}
#endif

#endif /* EPCTX_H: end of the declarations. Stop here if you only use the library. */

/* ================================================================================================
 * >>implementation
 * ============================================================================================== */

#if defined(EPCTX_IMPLEMENTATION) && !defined(EPCTX_IMPLEMENTED)
#define EPCTX_IMPLEMENTED

#include <stdarg.h>
#include <string.h>

#ifndef EPCTX_NO_MALLOC
#include <stdlib.h>
#endif

#ifndef EPCTX_NO_STDIO
#ifdef _WIN32
#error "epctx.h has no Windows file back-end yet: define EPCTX_NO_STDIO and pass your own epctx_io"
#endif
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(O_CLOEXEC) ||                                                                         \
    (defined(__GLIBC__) && !defined(__USE_XOPEN_EXTENDED) && !defined(__USE_MISC))
#error "epctx.h: a system header came first without _XOPEN_SOURCE 700: use the two-line epctx.c"
#endif
/* A negative size here: a system header came first without _FILE_OFFSET_BITS 64. */
typedef char epctx__needs_64_bit_offsets[sizeof(off_t) >= 8 ? 1 : -1];
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define EPCTX__UNUSED __attribute__((unused))
#else
#define EPCTX__UNUSED
#endif

/* ================================================================================================
 * >>basics
 * ============================================================================================== */

EPCTX_API const char *epctx_status_name(epctx_status status)
{
    switch (status) {
#define EPCTX__STATUS_CASE(name, ort, text)                                                        \
    case EPCTX_##name:                                                                             \
        return "EPCTX_" #name;
        EPCTX_STATUS_LIST(EPCTX__STATUS_CASE)
#undef EPCTX__STATUS_CASE
    default:
        return "unknown status";
    }
}

EPCTX_API const char *epctx_status_text(epctx_status status)
{
    switch (status) {
#define EPCTX__STATUS_CASE(name, ort, text)                                                        \
    case EPCTX_##name:                                                                             \
        return text;
        EPCTX_STATUS_LIST(EPCTX__STATUS_CASE)
#undef EPCTX__STATUS_CASE
    default:
        return "unknown status";
    }
}

EPCTX_API int epctx_status_to_ort(epctx_status status)
{
    switch (status) {
#define EPCTX__STATUS_CASE(name, ort, text)                                                        \
    case EPCTX_##name:                                                                             \
        return ort;
        EPCTX_STATUS_LIST(EPCTX__STATUS_CASE)
#undef EPCTX__STATUS_CASE
    default:
        return 1;
    }
}

EPCTX_API epctx_str epctx_str_of(const char *text)
{
    epctx_str s;
    s.data = text;
    s.size = text != NULL ? strlen(text) : 0;
    return s;
}

EPCTX_API bool epctx_str_eq(epctx_str a, epctx_str b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

EPCTX_API bool epctx_str_is(epctx_str a, const char *b)
{
    return epctx_str_eq(a, epctx_str_of(b));
}

static EPCTX__UNUSED epctx_str epctx__str(const uint8_t *data, size_t size)
{
    epctx_str s;
    s.data = (const char *)data;
    s.size = size;
    return s;
}

/* -- errors -- */

typedef struct epctx__text {
    char *data;
    size_t capacity; /* with the terminator */
    size_t size;
} epctx__text;

static void epctx__text_char(epctx__text *text, char c)
{
    if (text->size + 1 < text->capacity) {
        text->data[text->size++] = c;
    }
}

/* Text of hostile origin: control characters must not reach a terminal or a log, and one long name
 * must not push the rest of the message out. */
static void epctx__text_str(epctx__text *text, const char *data, size_t size)
{
    const size_t most = 200;
    size_t i;
    for (i = 0; i < size && i < most; i++) {
        unsigned char c = (unsigned char)data[i];
        epctx__text_char(text, c < 0x20 || c == 0x7f ? '?' : data[i]);
    }
    for (i = 0; size > most && i < 3; i++) {
        epctx__text_char(text, '.');
    }
}

static void epctx__text_number(epctx__text *text, uint64_t value, unsigned base)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    while (count > 0) {
        epctx__text_char(text, digits[--count]);
    }
}

/* The formats of epctx_fail. */
static void epctx__text_format(epctx__text *text, const char *format, va_list args)
{
    for (; *format != '\0'; format++) {
        if (*format != '%') {
            epctx__text_char(text, *format);
            continue;
        }
        switch (*++format) {
        case 's': {
            const char *s = va_arg(args, const char *);
            epctx__text_str(text, s != NULL ? s : "", s != NULL ? strlen(s) : 0);
            break;
        }
        case 'S': {
            const epctx_str *s = va_arg(args, const epctx_str *);
            epctx__text_str(text, s->data, s->size);
            break;
        }
        case 'd': {
            int64_t value = va_arg(args, int64_t);
            if (value < 0) {
                epctx__text_char(text, '-');
            }
            epctx__text_number(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10);
            break;
        }
        case 'u':
            epctx__text_number(text, va_arg(args, uint64_t), 10);
            break;
        case 'x':
            epctx__text_number(text, va_arg(args, uint64_t), 16);
            break;
        case '\0':
            return;
        default:
            epctx__text_char(text, *format);
            break;
        }
    }
}

static epctx__text epctx__text_of(char *data, size_t capacity)
{
    epctx__text text;
    text.data = data;
    text.capacity = capacity;
    text.size = 0;
    return text;
}

EPCTX_API void epctx_error_clear(epctx_error *error)
{
    if (error != NULL) {
        error->status = EPCTX_OK;
        error->offset = EPCTX_NO_OFFSET;
        error->file[0] = error->node[0] = error->attribute[0] = error->message[0] = '\0';
    }
}

EPCTX_API epctx_status epctx_fail(epctx_error *error, epctx_status status, const char *format, ...)
{
    if (error != NULL && error->status == EPCTX_OK) {
        epctx__text text = epctx__text_of(error->message, sizeof error->message);
        va_list args;
        va_start(args, format);
        epctx__text_format(&text, format, args);
        va_end(args);
        text.data[text.size] = '\0';
        error->status = status;
    }
    return status;
}

/* Puts "<what> '<name>': " (or "<name>: " without `what`) before the message. */
static void epctx__prefix(epctx_error *error, const char *what, const char *name)
{
    char prefix[288];
    epctx__text text = epctx__text_of(prefix, sizeof prefix);
    size_t rest;
    if (what != NULL) {
        epctx__text_str(&text, what, strlen(what));
        epctx__text_str(&text, " '", 2);
    }
    epctx__text_str(&text, name, strlen(name));
    if (what != NULL) {
        epctx__text_char(&text, '\'');
    }
    epctx__text_str(&text, ": ", 2);
    rest = strlen(error->message);
    if (rest > sizeof error->message - 1 - text.size) {
        rest = sizeof error->message - 1 - text.size;
    }
    memmove(error->message + text.size, error->message, rest);
    memcpy(error->message, prefix, text.size);
    error->message[text.size + rest] = '\0';
}

static void epctx__keep(char *out, size_t capacity, const char *data, size_t size)
{
    epctx__text text = epctx__text_of(out, capacity);
    epctx__text_str(&text, data, size);
    out[text.size] = '\0';
}

EPCTX_API void epctx_blame(epctx_error *error, const char *file, const epctx_str *node,
                           const char *attribute)
{
    if (error == NULL || error->status == EPCTX_OK) {
        return;
    }
    if (attribute != NULL && error->attribute[0] == '\0') {
        epctx__keep(error->attribute, sizeof error->attribute, attribute, strlen(attribute));
        epctx__prefix(error, "attribute", error->attribute);
    }
    if (node != NULL && error->node[0] == '\0') {
        epctx__keep(error->node, sizeof error->node, node->data, node->size);
        epctx__prefix(error, "node", error->node);
    }
    if (file != NULL && file[0] != '\0' && error->file[0] == '\0') {
        epctx__keep(error->file, sizeof error->file, file, strlen(file));
        epctx__prefix(error, NULL, error->file);
    }
}

static EPCTX__UNUSED epctx_status epctx__nomem(epctx_error *error, uint64_t size)
{
    return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory: %u more bytes were needed", size);
}

/* -- hash: XXH64 as published, byte order independent -- */

#define EPCTX__P1 UINT64_C(0x9E3779B185EBCA87)
#define EPCTX__P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define EPCTX__P3 UINT64_C(0x165667B19E3779F9)
#define EPCTX__P4 UINT64_C(0x85EBCA77C2B2AE63)
#define EPCTX__P5 UINT64_C(0x27D4EB2F165667C5)

static uint32_t epctx__le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t epctx__le64(const uint8_t *p)
{
    return (uint64_t)epctx__le32(p) | (uint64_t)epctx__le32(p + 4) << 32;
}

static uint64_t epctx__rotl(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static uint64_t epctx__hash_lane(uint64_t lane, uint64_t input)
{
    return epctx__rotl(lane + input * EPCTX__P2, 31) * EPCTX__P1;
}

static uint64_t epctx__hash_tail(uint64_t h, const uint8_t *p, size_t left)
{
    for (; left >= 8; p += 8, left -= 8) {
        h = epctx__rotl(h ^ epctx__hash_lane(0, epctx__le64(p)), 27) * EPCTX__P1 + EPCTX__P4;
    }
    if (left >= 4) {
        h = epctx__rotl(h ^ epctx__le32(p) * EPCTX__P1, 23) * EPCTX__P2 + EPCTX__P3;
        p += 4;
        left -= 4;
    }
    for (; left > 0; p++, left--) {
        h = epctx__rotl(h ^ *p * EPCTX__P5, 11) * EPCTX__P1;
    }
    h = (h ^ h >> 33) * EPCTX__P2;
    h = (h ^ h >> 29) * EPCTX__P3;
    return h ^ h >> 32;
}

EPCTX_API uint64_t epctx_hash(const void *data, size_t size, uint64_t seed)
{
    const uint8_t *p = (const uint8_t *)data;
    uint64_t lanes[4];
    uint64_t h;
    size_t left = size;
    size_t i;
    if (size < 32) {
        return epctx__hash_tail(seed + EPCTX__P5 + size, p, size);
    }
    lanes[0] = seed + EPCTX__P1 + EPCTX__P2;
    lanes[1] = seed + EPCTX__P2;
    lanes[2] = seed;
    lanes[3] = seed - EPCTX__P1;
    for (; left >= 32; p += 32, left -= 32) {
        for (i = 0; i < 4; i++) {
            lanes[i] = epctx__hash_lane(lanes[i], epctx__le64(p + 8 * i));
        }
    }
    h = epctx__rotl(lanes[0], 1) + epctx__rotl(lanes[1], 7) + epctx__rotl(lanes[2], 12) +
        epctx__rotl(lanes[3], 18);
    for (i = 0; i < 4; i++) {
        h = (h ^ epctx__hash_lane(0, lanes[i])) * EPCTX__P1 + EPCTX__P4;
    }
    return epctx__hash_tail(h + size, p, left);
}

/* -- memory -- */

#ifndef EPCTX_NO_MALLOC
static void *epctx__malloc(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void epctx__mfree(void *user, void *memory)
{
    (void)user;
    free(memory);
}
#endif

static epctx_allocator epctx__allocator(const epctx_allocator *allocator)
{
    epctx_allocator chosen = {NULL, NULL, NULL};
    if (allocator != NULL) {
        return *allocator;
    }
#ifndef EPCTX_NO_MALLOC
    chosen.alloc_fn = epctx__malloc;
    chosen.free_fn = epctx__mfree;
#endif
    return chosen;
}

#define EPCTX__ALIGN 16u

typedef struct epctx__block {
    struct epctx__block *next;
    size_t size;
} epctx__block;

EPCTX_API void epctx_arena_init(epctx_arena *arena, const epctx_allocator *allocator)
{
    memset(arena, 0, sizeof *arena);
    arena->allocator = epctx__allocator(allocator);
}

EPCTX_API void epctx_arena_init_fixed(epctx_arena *arena, void *buffer, size_t size)
{
    size_t skip = buffer != NULL ? (size_t)(0 - (uintptr_t)buffer) & (EPCTX__ALIGN - 1) : 0;
    memset(arena, 0, sizeof *arena);
    if (skip < size) {
        arena->next = (uint8_t *)buffer + skip;
        arena->left = (size - skip) & ~(size_t)(EPCTX__ALIGN - 1);
    }
}

/* Adds a block with room for `size` bytes. Blocks double so that their number stays small. */
static bool epctx__arena_grow(epctx_arena *arena, size_t size)
{
    const size_t head = (sizeof(epctx__block) + EPCTX__ALIGN - 1) & ~(size_t)(EPCTX__ALIGN - 1);
    epctx__block *last = (epctx__block *)arena->blocks;
    epctx__block *block;
    size_t room = last == NULL ? 4096 : last->size < ((size_t)1 << 20) ? last->size * 2 : last->size;
    if (room < size) {
        room = size;
    }
    if (arena->allocator.alloc_fn == NULL || room > SIZE_MAX - head - EPCTX__ALIGN) {
        return false;
    }
    block = (epctx__block *)arena->allocator.alloc_fn(arena->allocator.user,
                                                      room + head + EPCTX__ALIGN);
    if (block == NULL) {
        return false;
    }
    block->next = last;
    block->size = room;
    arena->blocks = block;
    arena->next = (uint8_t *)block + head;
    arena->next += (size_t)(0 - (uintptr_t)arena->next) & (EPCTX__ALIGN - 1);
    arena->left = room;
    return true;
}

/* Arena memory that the caller fills completely. */
static void *epctx__arena_raw(epctx_arena *arena, size_t size)
{
    uint8_t *memory;
    size_t padded;
    if (size > SIZE_MAX - 4096) {
        arena->missing = size;
        return NULL;
    }
    padded = size == 0 ? EPCTX__ALIGN : (size + EPCTX__ALIGN - 1) & ~(size_t)(EPCTX__ALIGN - 1);
    if (padded > arena->left && !epctx__arena_grow(arena, padded)) {
        arena->missing = padded - arena->left;
        return NULL;
    }
    memory = arena->next;
    arena->next += padded;
    arena->left -= padded;
    arena->used += padded;
    return memory;
}

EPCTX_API void *epctx_arena_alloc(epctx_arena *arena, size_t size)
{
    void *memory = epctx__arena_raw(arena, size);
    if (memory != NULL) {
        memset(memory, 0, size);
    }
    return memory;
}

EPCTX_API void *epctx_arena_array(epctx_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        arena->missing = SIZE_MAX;
        return NULL;
    }
    return epctx_arena_alloc(arena, count * size);
}

EPCTX_API char *epctx_arena_copy(epctx_arena *arena, epctx_str text)
{
    char *copy = text.size < SIZE_MAX ? (char *)epctx__arena_raw(arena, text.size + 1) : NULL;
    if (copy != NULL) {
        if (text.size > 0) {
            memcpy(copy, text.data, text.size);
        }
        copy[text.size] = '\0';
    }
    return copy;
}

EPCTX_API void epctx_arena_free(epctx_arena *arena)
{
    epctx__block *block = (epctx__block *)arena->blocks;
    while (block != NULL) {
        epctx__block *next = block->next;
        arena->allocator.free_fn(arena->allocator.user, block);
        block = next;
    }
    memset(arena, 0, sizeof *arena);
}

EPCTX_API void epctx_buffer_init(epctx_buffer *buffer, const epctx_allocator *allocator)
{
    memset(buffer, 0, sizeof *buffer);
    buffer->allocator = epctx__allocator(allocator);
}

static epctx_status epctx__buffer_reserve(epctx_buffer *buffer, size_t need)
{
    size_t capacity = buffer->capacity < 256 ? 256 : buffer->capacity;
    uint8_t *data;
    while (capacity < need) {
        capacity = capacity > SIZE_MAX / 2 ? need : capacity * 2;
    }
    if (buffer->allocator.alloc_fn == NULL) {
        return EPCTX_ERR_NOMEM;
    }
    data = (uint8_t *)buffer->allocator.alloc_fn(buffer->allocator.user, capacity);
    if (data == NULL) {
        return EPCTX_ERR_NOMEM;
    }
    if (buffer->data != NULL) {
        memcpy(data, buffer->data, buffer->size);
        buffer->allocator.free_fn(buffer->allocator.user, buffer->data);
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_buffer_append(epctx_buffer *buffer, const void *data, size_t size)
{
    if (size == 0) {
        return EPCTX_OK;
    }
    if (size > SIZE_MAX - buffer->size) {
        return EPCTX_ERR_NOMEM;
    }
    if (buffer->size + size > buffer->capacity) {
        epctx_status status = epctx__buffer_reserve(buffer, buffer->size + size);
        if (status != EPCTX_OK) {
            return status;
        }
    }
    if (data != NULL) {
        memcpy(buffer->data + buffer->size, data, size);
    } else {
        memset(buffer->data + buffer->size, 0, size);
    }
    buffer->size += size;
    return EPCTX_OK;
}

EPCTX_API void epctx_buffer_free(epctx_buffer *buffer)
{
    if (buffer->data != NULL) {
        buffer->allocator.free_fn(buffer->allocator.user, buffer->data);
    }
    buffer->data = NULL;
    buffer->size = buffer->capacity = 0;
}

/* -- map -- */

struct epctx__map_slot {
    epctx_str key; /* data NULL: free */
    uint32_t value;
};

EPCTX_API void epctx_map_init(epctx_map *map, epctx_arena *arena)
{
    memset(map, 0, sizeof *map);
    map->arena = arena;
}

static struct epctx__map_slot *epctx__map_find(const epctx_map *map, epctx_str key)
{
    size_t at = (size_t)epctx_hash(key.data, key.size, 0) & (map->capacity - 1);
    while (map->slots[at].key.data != NULL && !epctx_str_eq(map->slots[at].key, key)) {
        at = (at + 1) & (map->capacity - 1);
    }
    return &map->slots[at];
}

EPCTX_API uint32_t epctx_map_get(const epctx_map *map, epctx_str key)
{
    const struct epctx__map_slot *slot;
    if (map->count == 0) {
        return EPCTX_MAP_NONE;
    }
    slot = epctx__map_find(map, key);
    return slot->key.data != NULL ? slot->value : EPCTX_MAP_NONE;
}

static epctx_status epctx__map_grow(epctx_map *map)
{
    epctx_map bigger = *map;
    size_t i;
    bigger.capacity = map->capacity == 0 ? 16 : map->capacity * 2;
    bigger.slots = (struct epctx__map_slot *)epctx_arena_array(map->arena, bigger.capacity,
                                                               sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        return EPCTX_ERR_NOMEM;
    }
    for (i = 0; i < map->capacity; i++) {
        if (map->slots[i].key.data != NULL) {
            *epctx__map_find(&bigger, map->slots[i].key) = map->slots[i];
        }
    }
    *map = bigger;
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_map_put(epctx_map *map, epctx_str key, uint32_t value)
{
    struct epctx__map_slot *slot;
    if (map->count + map->count / 2 >= map->capacity) {
        epctx_status status = epctx__map_grow(map);
        if (status != EPCTX_OK) {
            return status;
        }
    }
    slot = epctx__map_find(map, key);
    if (slot->key.data == NULL) {
        slot->key.data = key.data != NULL ? key.data : "";
        slot->key.size = key.size;
        map->count++;
    }
    slot->value = value;
    return EPCTX_OK;
}

/* ================================================================================================
 * >>io
 * ============================================================================================== */

#ifdef EPCTX_NO_STDIO

EPCTX_API const epctx_io *epctx_io_files(void)
{
    return NULL;
}

#else

static epctx_status epctx__io_error(epctx_error *error, const char *what, const char *path)
{
    int code = errno;
    epctx_status status = code == ENOENT || code == ENOTDIR ? EPCTX_ERR_NOT_FOUND : EPCTX_ERR_IO;
    epctx_fail(error, status, "cannot %s: %s", what, strerror(code));
    epctx_blame(error, path, NULL, NULL);
    return status;
}

static epctx_status epctx__file_map(void *user, const char *path, epctx_mapping *out,
                                    epctx_error *error)
{
    struct stat info;
    epctx_status status = EPCTX_OK;
    /* A pipe must not block us before we see that it is one. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    (void)user;
    memset(out, 0, sizeof *out);
    if (fd < 0) {
        return epctx__io_error(error, "open", path);
    }
    if (fstat(fd, &info) != 0) {
        status = epctx__io_error(error, "examine", path);
    } else if (!S_ISREG(info.st_mode)) {
        status = epctx_fail(error, EPCTX_ERR_IO, "is %s, a regular file was expected",
                            S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe");
        epctx_blame(error, path, NULL, NULL);
    } else if ((uint64_t)info.st_size > SIZE_MAX) {
        status = epctx_fail(error, EPCTX_ERR_LIMIT, "has %u bytes, more than can be addressed",
                            (uint64_t)info.st_size);
        epctx_blame(error, path, NULL, NULL);
    } else if (info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = epctx__io_error(error, "map", path);
        } else {
            out->data = (const uint8_t *)data;
            out->size = (size_t)info.st_size;
            out->handle = data;
        }
    }
    close(fd);
    return status;
}

static void epctx__file_unmap(void *user, epctx_mapping *mapping)
{
    (void)user;
    if (mapping->handle != NULL) {
        munmap(mapping->handle, mapping->size);
    }
    memset(mapping, 0, sizeof *mapping);
}

static epctx_status epctx__file_stat(void *user, const char *path, epctx_file_kind *kind,
                                     uint64_t *size, epctx_error *error)
{
    struct stat info;
    (void)user;
    *kind = EPCTX_FILE_NONE;
    *size = 0;
    if (stat(path, &info) != 0) {
        return errno == ENOENT || errno == ENOTDIR ? EPCTX_OK
                                                   : epctx__io_error(error, "examine", path);
    }
    *kind = S_ISREG(info.st_mode)   ? EPCTX_FILE_REGULAR
            : S_ISDIR(info.st_mode) ? EPCTX_FILE_FOLDER
                                    : EPCTX_FILE_OTHER;
    *size = (uint64_t)info.st_size;
    return EPCTX_OK;
}

static epctx_status epctx__file_canonical(void *user, const char *path, char *out, size_t capacity,
                                          epctx_error *error)
{
    char *real = realpath(path, NULL);
    epctx_status status = EPCTX_OK;
    (void)user;
    if (real == NULL) {
        return epctx__io_error(error, "resolve", path);
    }
    if (strlen(real) >= capacity) {
        status = epctx_fail(error, EPCTX_ERR_LIMIT, "the path is longer than %u bytes",
                            (uint64_t)capacity - 1);
        epctx_blame(error, path, NULL, NULL);
    } else {
        memcpy(out, real, strlen(real) + 1);
    }
    free(real);
    return status;
}

static epctx_status epctx__file_create(void *user, const char *path, epctx_io_file *file,
                                       epctx_error *error)
{
    struct stat info;
    unsigned attempt;
    bool exists = stat(path, &info) == 0;
    (void)user;
    memset(file, 0, sizeof *file);
    /* Through a link we replace the file it points to, not the link. */
    if (exists) {
        epctx_status status = epctx__file_canonical(user, path, file->path, sizeof file->path,
                                                    error);
        if (status != EPCTX_OK) {
            return status;
        }
    } else if (strlen(path) < sizeof file->path) {
        memcpy(file->path, path, strlen(path) + 1);
    } else {
        return epctx_fail(error, EPCTX_ERR_LIMIT, "a path has %u bytes, at most %u are possible",
                          (uint64_t)strlen(path), (uint64_t)sizeof file->path - 1);
    }
    for (attempt = 0; attempt < 1000; attempt++) {
        int fd;
        int n = snprintf(file->temp, sizeof file->temp, "%s.%ld-%u.tmp", file->path, (long)getpid(),
                         attempt);
        if (n < 0 || (size_t)n >= sizeof file->temp) {
            return epctx_fail(error, EPCTX_ERR_LIMIT, "a path is longer than %u bytes",
                              (uint64_t)sizeof file->temp - 1);
        }
        fd = open(file->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            file->descriptor = fd;
            if (exists && fchmod(fd, info.st_mode & 07777) != 0) {
                epctx_status status = epctx__io_error(error, "set the mode of", file->temp);
                close(fd);
                unlink(file->temp);
                return status;
            }
            return EPCTX_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return epctx__io_error(error, "create a temporary file for", path);
}

static epctx_status epctx__file_write(void *user, epctx_io_file *file, const void *data,
                                      size_t size, epctx_error *error)
{
    const char *p = (const char *)data;
    (void)user;
    while (size > 0) {
        /* Linux writes at most 0x7ffff000 bytes a call. */
        ssize_t n = write((int)file->descriptor, p, size < 0x40000000 ? size : 0x40000000);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return epctx__io_error(error, "write", file->path);
        }
        p += n;
        size -= (size_t)n;
    }
    return EPCTX_OK;
}

static epctx_status epctx__file_sync(void *user, epctx_io_file *file, epctx_error *error)
{
    (void)user;
    return fsync((int)file->descriptor) == 0 ? EPCTX_OK
                                             : epctx__io_error(error, "flush", file->path);
}

static void epctx__file_abort(void *user, epctx_io_file *file)
{
    (void)user;
    close((int)file->descriptor);
    unlink(file->temp);
}

static epctx_status epctx__file_commit(void *user, epctx_io_file *file, epctx_error *error)
{
    epctx_status status;
    if (rename(file->temp, file->path) == 0) {
        close((int)file->descriptor);
        return EPCTX_OK;
    }
    status = epctx__io_error(error, "replace", file->path);
    epctx__file_abort(user, file);
    return status;
}

static epctx_status epctx__file_remove(void *user, const char *path, epctx_error *error)
{
    (void)user;
    return unlink(path) == 0 ? EPCTX_OK : epctx__io_error(error, "remove", path);
}

static epctx_status epctx__file_sync_folder(void *user, const char *path, epctx_error *error)
{
    char folder[EPCTX_PATH_MAX];
    epctx_str name = epctx_path_folder(epctx_str_of(path));
    int fd;
    epctx_status status = EPCTX_OK;
    (void)user;
    if (name.size >= sizeof folder) {
        return epctx_fail(error, EPCTX_ERR_LIMIT, "a folder's path is too long");
    }
    memcpy(folder, name.size > 0 ? name.data : ".", name.size > 0 ? name.size : 1);
    folder[name.size > 0 ? name.size : 1] = '\0';
    fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd < 0) {
        return epctx__io_error(error, "open", folder);
    }
    /* Some file systems cannot flush a folder and say EINVAL: nothing more can be done there. */
    if (fsync(fd) != 0 && errno != EINVAL) {
        status = epctx__io_error(error, "flush", folder);
    }
    close(fd);
    return status;
}

EPCTX_API const epctx_io *epctx_io_files(void)
{
    static const epctx_io files = {
        NULL,
        epctx__file_map,
        epctx__file_unmap,
        epctx__file_stat,
        epctx__file_canonical,
        epctx__file_create,
        epctx__file_write,
        epctx__file_sync,
        epctx__file_commit,
        epctx__file_abort,
        epctx__file_remove,
        epctx__file_sync_folder,
    };
    return &files;
}

#endif /* EPCTX_NO_STDIO */

#ifdef __cplusplus
}
#endif

#endif /* EPCTX_IMPLEMENTATION */
