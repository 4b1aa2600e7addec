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
 *   resolution; and the generation, loading and weight-sharing workflows of ORT's EP-context
 *   design.
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
 *   EPCTX_SCAN_DEPTH 16           levels and bytes of text that a scan      every file, a
 *   EPCTX_SCAN_TEXT 96            has room for, here less than usual        plain number
 *   EPCTX_PTHREAD_LOCK or         epctx_lock_make gives a mutex for a
 *   EPCTX_WIN32_LOCK              workspace                                 implementation file
 *   No option but EPCTX_SCAN_DEPTH and EPCTX_SCAN_TEXT changes a public struct.
 *
 * MEMORY
 *   A model owns one arena: blocks from its allocator, or one fixed buffer of yours. Views and
 *   epctx_str / epctx_span borrow from the source bytes or from that arena; they live until the
 *   model is closed, and views of a message until that message is edited. Nothing is copied while
 *   reading. A path given to an open function is copied. A source buffer must outlive its model.
 *   Edits copy names and borrow payloads: tensor data, attribute values, parts of other models.
 *
 * THREADS
 *   No global state. Any number of threads may read one model; opening, editing, writing and
 *   closing need exclusive access. Different models never interact, but through a workspace: give
 *   it a lock (>>share). Run-time calls of one context may come from many threads (>>ep).
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
 *   only what it says, at any depth; unknown fields, field order, odd varints, functions and
 *   producer survive. epctx_undo() restores the former bytes exactly.
 *
 * NANOPB
 *   Used at tag, varint and stream level, never through message descriptors. pb.h must see the
 *   same PB_NO_ERRMSG, PB_FIELD_32BIT and PB_BUFFER_ONLY as the nanopb you link; a mismatch is
 *   found at the first open (EPCTX_ERR_CONFIG) instead of overwriting memory. Shared libraries
 *   should hide nanopb's symbols (-Wl,--exclude-libs,ALL).
 *
 * CONTENTS
 *   >>config >>basics >>io >>wire >>onnx >>record >>epnode >>profile >>path >>option >>check
 *   >>scan >>edit >>convert >>combine >>partition >>weights >>ep >>gen >>load >>share
 *   >>implementation
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
#if defined(__STRICT_ANSI__) && !defined(_XOPEN_SOURCE) && !defined(_GNU_SOURCE) &&                \
    !defined(_DEFAULT_SOURCE)
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
    X(ERR_CANCELLED, 12, "the caller cancelled the work")                                          \
    X(ERR_NOT_COMPILED, 13, "the model must be compiled first, and that is not allowed")

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
 * durable (through a link: in the folder of the file). */
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
    /* May be NULL. Maps root/name, both as canonical_fn gave them, and refuses (EPCTX_ERR_PATH)
     * when a part of `name` has become a link since. */
    epctx_status (*map_inside_fn)(void *user, const char *root, const char *name,
                                  epctx_mapping *out, epctx_error *error);
    /* May be NULL. Makes `to` a second name of the file `from`: EPCTX_ERR_EXISTS when there is a
     * `to`, EPCTX_ERR_UNSUPPORTED where files have one name only. */
    epctx_status (*link_fn)(void *user, const char *from, const char *to, epctx_error *error);
    /* May be NULL. Hands the name of each entry of a folder ("" the current one) to `name_fn`, in
     * any order, until that returns false. */
    epctx_status (*list_fn)(void *user, const char *folder,
                            bool (*name_fn)(void *state, const char *name), void *state,
                            epctx_error *error);
    /* May be NULL. When the bytes of a file were written and when anything about it changed last
     * (also by being moved there), in nanoseconds of one clock. */
    epctx_status (*times_fn)(void *user, const char *path, uint64_t *written, uint64_t *changed,
                             epctx_error *error);
    /* Both may be NULL. Waits until nobody else, in any process or thread, holds the lock called
     * `path` (a file that is made for it), and takes it. It ends with unlock_fn or the process. */
    epctx_status (*lock_fn)(void *user, const char *path, epctx_io_file *lock, epctx_error *error);
    void (*unlock_fn)(void *user, epctx_io_file *lock);
} epctx_io;

/* The file system of the machine (mmap, fsync, rename), or NULL under EPCTX_NO_STDIO. On Windows
 * names are UTF-8 all the same, canonical paths have "/", and a file that is mapped, such as the
 * source of an open model, cannot be replaced. */
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

/* The payload of a field, mostly a message. `slot` is its place in the model's tree: the field
 * itself or, while nothing around it was edited, the nearest field outside; NULL for bytes of no
 * model. */
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

/* Position in a message, optionally only the fields of one number. Copy it to keep a place. */
typedef struct epctx_cursor {
    const struct epctx_slot *owner; /* of the views it gives */
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
    uint32_t path_flags; /* EPCTX_PATH_HUGGING_FACE, for every file the model names */
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
    struct epctx_slot *root;        /* what is written and edited */
    struct epctx_slot *graph;
    struct epctx_slot *shown;       /* what is read: the same, or with doubled fields merged */
    struct epctx_slot *shown_graph;
    struct epctx__edit *edits;
    size_t edit_count;
    epctx_limits limits;
    uint32_t path_flags;
    bool duplicate; /* a singular message field stands twice: read as libprotobuf reads it */
    struct epctx_slot *merged; /* `shown` before epctx_repair made one of such fields, */
    size_t merged_at;          /* and at which edit */
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

/* -- the rest of the schema -- */

/* OperatorSetIdProto. */
typedef struct epctx_opset {
    epctx_str domain;
    int64_t version;
} epctx_opset;

/* StringStringEntryProto: metadata_props of any message, external_data, training bindings. */
typedef struct epctx_pair {
    epctx_str key, value;
} epctx_pair;

/* FunctionProto. */
typedef struct epctx_function_view {
    epctx_view view;
    epctx_str name, domain, overload, doc_string;
    uint32_t input_count, output_count, node_count;
} epctx_function_view;

/* SparseTensorProto. */
typedef struct epctx_sparse_view {
    epctx_view view;
    epctx_tensor_view values, indices; /* `values` has the name */
} epctx_sparse_view;

/* TensorAnnotation: the quantization parameters of a value. */
typedef struct epctx_annotation_view {
    epctx_view view;
    epctx_str tensor_name;
} epctx_annotation_view;

/* TrainingInfoProto. */
typedef struct epctx_training_view {
    epctx_view view;
    epctx_graph_view initialization, algorithm; /* view empty when absent */
} epctx_training_view;

/* DeviceConfigurationProto: a set of devices that nodes can be spread over. */
typedef struct epctx_device_config_view {
    epctx_view view;
    epctx_str name;
    int32_t num_devices;
} epctx_device_config_view;

/* NodeDeviceConfigurationProto: how a node is spread in one of these sets. */
typedef struct epctx_node_config_view {
    epctx_view view;
    epctx_str configuration_id; /* name of an epctx_device_config_view */
    bool has_stage;
    int32_t pipeline_stage;
} epctx_node_config_view;

/* ShardingSpecProto: how an input or output of the node is cut up. */
typedef struct epctx_sharding_view {
    epctx_view view;
    epctx_str tensor_name;
} epctx_sharding_view;

/* IntIntListEntryProto: a number that stands for a group of devices. */
typedef struct epctx_device_group_view {
    epctx_view view;
    int64_t key;
} epctx_device_group_view;

/* ShardedDimProto: how one axis is cut up. */
typedef struct epctx_sharded_dim_view {
    epctx_view view;
    int64_t axis;
} epctx_sharded_dim_view;

/* SimpleShardedDimProto: that many equal parts of a dimension. */
typedef struct epctx_simple_sharding {
    epctx_dim dim;
    int64_t num_shards;
} epctx_simple_sharding;

typedef enum epctx_type_kind { /* the member of TypeProto's oneof, by field number */
    EPCTX_TYPE_NONE = 0,
    EPCTX_TYPE_TENSOR = 1,
    EPCTX_TYPE_SEQUENCE = 4,
    EPCTX_TYPE_MAP = 5,
    EPCTX_TYPE_OPAQUE = 7,
    EPCTX_TYPE_SPARSE = 8,
    EPCTX_TYPE_OPTIONAL = 9
} epctx_type_kind;

/* TypeProto. */
typedef struct epctx_type_view {
    epctx_view view;
    epctx_type_kind kind;
    int32_t elem_type;  /* of tensors and sparse tensors; the key type of maps */
    bool has_shape;
    epctx_view shape;   /* TensorShapeProto */
    epctx_view element; /* TypeProto of a sequence's or optional's element, of a map's value */
    epctx_str denotation;
} epctx_type_view;

EPCTX_API epctx_cursor epctx_model_opsets(const epctx_model *model);
EPCTX_API epctx_cursor epctx_model_functions(const epctx_model *model);
EPCTX_API epctx_cursor epctx_model_trainings(const epctx_model *model);
EPCTX_API epctx_cursor epctx_graph_sparse(epctx_graph_view graph); /* sparse_initializer */
EPCTX_API epctx_cursor epctx_graph_annotations(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_function_opsets(const epctx_function_view *function);
EPCTX_API epctx_cursor epctx_function_nodes(const epctx_function_view *function);
EPCTX_API epctx_cursor epctx_function_inputs(const epctx_function_view *function);
EPCTX_API epctx_cursor epctx_function_outputs(const epctx_function_view *function);
EPCTX_API epctx_cursor epctx_training_bindings(const epctx_training_view *training, bool updates);
EPCTX_API epctx_cursor epctx_type_dims(const epctx_type_view *type);
EPCTX_API bool epctx_next_opset(epctx_cursor *cursor, epctx_opset *opset);
EPCTX_API bool epctx_next_pair(epctx_cursor *cursor, epctx_pair *pair);
EPCTX_API bool epctx_next_function(epctx_cursor *cursor, epctx_function_view *function);
EPCTX_API bool epctx_next_sparse(epctx_cursor *cursor, epctx_sparse_view *sparse);
EPCTX_API bool epctx_next_annotation(epctx_cursor *cursor, epctx_annotation_view *annotation);
EPCTX_API bool epctx_next_training(epctx_cursor *cursor, epctx_training_view *training);

/* What runs on which device: model.configuration, and below it what each node says about it. */
EPCTX_API epctx_cursor epctx_model_device_configs(const epctx_model *model);
/* epctx_next_str. */
EPCTX_API epctx_cursor epctx_device_config_devices(const epctx_device_config_view *config);
EPCTX_API epctx_cursor epctx_node_configs(const epctx_node_view *node);
EPCTX_API epctx_cursor epctx_node_config_shardings(const epctx_node_config_view *config);
/* epctx_next_int. */
EPCTX_API epctx_cursor epctx_sharding_devices(const epctx_sharding_view *sharding);
EPCTX_API epctx_cursor epctx_sharding_groups(const epctx_sharding_view *sharding);
EPCTX_API epctx_cursor epctx_sharding_dims(const epctx_sharding_view *sharding);
/* epctx_next_int. */
EPCTX_API epctx_cursor epctx_device_group_devices(const epctx_device_group_view *group);
EPCTX_API epctx_cursor epctx_sharded_dim_parts(const epctx_sharded_dim_view *dim);
EPCTX_API bool epctx_next_device_config(epctx_cursor *cursor, epctx_device_config_view *config);
EPCTX_API bool epctx_next_node_config(epctx_cursor *cursor, epctx_node_config_view *config);
EPCTX_API bool epctx_next_sharding(epctx_cursor *cursor, epctx_sharding_view *sharding);
EPCTX_API bool epctx_next_device_group(epctx_cursor *cursor, epctx_device_group_view *group);
EPCTX_API bool epctx_next_sharded_dim(epctx_cursor *cursor, epctx_sharded_dim_view *dim);
EPCTX_API bool epctx_next_simple_sharding(epctx_cursor *cursor, epctx_simple_sharding *part);

/* metadata_props of a model, graph, node, tensor, value or function, by what the view is. */
typedef enum epctx_owner {
    EPCTX_OF_MODEL = 14,
    EPCTX_OF_GRAPH = 16,
    EPCTX_OF_NODE = 9,
    EPCTX_OF_TENSOR = 16,
    EPCTX_OF_VALUE = 4,
    EPCTX_OF_FUNCTION = 14
} epctx_owner;

EPCTX_API epctx_cursor epctx_metadata(epctx_view view, epctx_owner owner); /* epctx_next_pair */
/* Quantization parameters: "SCALE_TENSOR" -> value name. For epctx_next_pair. */
EPCTX_API epctx_cursor epctx_annotation_pairs(const epctx_annotation_view *annotation);
/* The type of a value; kind EPCTX_TYPE_NONE when it has none. */
EPCTX_API epctx_type_view epctx_value_type(const epctx_value_view *value);
EPCTX_API epctx_type_view epctx_type_of(epctx_view view);

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

#define EPCTX_ONNX_FLOAT  1 /* onnx.proto TensorProto.DataType, the ones this library uses */
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

struct epctx_graph;

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
    uint32_t id; /* position in the source graph, which need not be sorted */
} epctx_node;

typedef struct epctx_graph {
    epctx_str name;
    const epctx_node *nodes; /* producers before readers */
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
 * >>profile: what each EP accepts
 *
 * The design document leaves much open, and EPs differ: an edit that is right for one breaks
 * another. A profile is what one EP's reader demands. Everything that judges or changes EPContext
 * nodes asks the profile of the EP, never the document alone.
 * ============================================================================================== */

/* Under which key a node finds its graph in a context that holds several. */
typedef enum epctx_key {
    EPCTX_KEY_NONE = 0,   /* one graph a context */
    EPCTX_KEY_NODE_NAME,  /* renaming a node breaks it */
    EPCTX_KEY_PARTITION   /* the attribute partition_name */
} epctx_key;

/* Which nodes carry ep_cache_context. */
typedef enum epctx_payload {
    EPCTX_PAYLOAD_SHARED = 0, /* primary nodes; secondary ones take their graph from there */
    EPCTX_PAYLOAD_EACH        /* every node has a context of its own */
} epctx_payload;

/* How the rules of a profile are known. */
typedef enum epctx_confidence {
    EPCTX_FROM_DOCUMENT = 0, /* the EP-context design and ORT's headers */
    EPCTX_FROM_SOURCE,       /* read in the EP's source */
    EPCTX_FROM_FILES,        /* read in the source, and genuine files agree */
    EPCTX_FROM_RELATIVE      /* the EP is closed; a related open one was read */
} epctx_confidence;

/* Bits of epctx_profile.traits. */
#define EPCTX_ANY_CASE          0x001u /* sources are compared without regard to case */
#define EPCTX_NO_SOURCE         0x002u /* a node without `source` is taken */
#define EPCTX_OWN_SOURCE        0x004u /* any source: the EP's registration name decides */
#define EPCTX_STATIC_SHAPES     0x008u /* no dynamic dimension at its nodes */
#define EPCTX_ONE_NODE          0x010u /* the graph must be one node */
#define EPCTX_NO_MIX            0x020u /* not both embed modes in one model */
#define EPCTX_ONE_MAIN          0x040u /* exactly one primary node */
#define EPCTX_SECONDARY_CONTEXT 0x080u /* main_context 0 beside a context of its own is normal */
#define EPCTX_NO_DOTS           0x100u /* refuses ".." anywhere in a path, also in "a..b" */
#define EPCTX_EMBED_ONE         0x200u /* embedded works with one partition only */
#define EPCTX_ONLY_EMBEDDED     0x400u /* reads no file */
#define EPCTX_IO_NAMES          0x800u /* finds inputs and outputs in the binary by value name */
#define EPCTX_ALL_NAME          0x1000u /* external: every node is primary and names the binary */

struct epctx_profile;
struct epctx_epnode;

/* What a check function may ask and say; `node` counts from 0 to node_count - 1. */
typedef struct epctx_profile_check {
    const struct epctx_profile *profile;
    const struct epctx_epnode *const *nodes;
    size_t node_count;
    void *state;
    /* Value of any STRING or INT attribute of a node, as epctx_attr; false when absent. */
    bool (*attr_fn)(void *state, size_t node, const char *name, struct epctx_attr *out);
    /* Reports a finding of rule E044. `attribute` may be NULL. */
    void (*say_fn)(void *state, size_t node, const char *attribute, const char *text);
} epctx_profile_check;

/* One EP. Make your own by filling one in; strings are borrowed for as long as it is used. */
typedef struct epctx_profile {
    const char *name;        /* "qnn" */
    const char *versions;    /* what was read or tested */
    epctx_confidence confidence;
    const char *sources[4];  /* accepted values of `source`, NULL behind the last; the first is what
                                the EP writes */
    uint32_t traits;         /* EPCTX_ANY_CASE ... */
    epctx_key key;
    epctx_payload payload;
    uint32_t required;       /* 1u << EPCTX_EP_x: must be stored in every node */
    uint32_t embed_default;  /* embed mode the EP writes when nothing is asked for */
    const char *binary;      /* name of its binary; {stem}: context model without extension,
                                {model}: without _ctx too, {file}: with extension, *: anything */
    const char *sidecars[4]; /* files beside the model that no attribute names; patterns as above */
    int load_failure;        /* OrtErrorCode when a context cannot be loaded */
    void (*check_fn)(const epctx_profile_check *check); /* may be NULL */
} epctx_profile;

/* The built-in profiles: qnn, qnn_plugin, openvino, tensorrt, nv_tensorrt_rtx, migraphx, vitisai,
 * telum, example, npu, and last generic, the design document to the letter. Static. */
EPCTX_API const epctx_profile *epctx_profiles(size_t *count);
/* Built-in profile by name, or NULL. */
EPCTX_API const epctx_profile *epctx_profile_find(epctx_str name);
/* Built-in profile of the EP that a `source` belongs to, in any case of letters; generic when no EP
 * claims it. */
EPCTX_API const epctx_profile *epctx_profile_of(epctx_str source);

/* Whether an EP takes a node. */
typedef enum epctx_claim {
    EPCTX_CLAIM_NO = 0,   /* for another EP */
    EPCTX_CLAIM_YES,
    EPCTX_CLAIM_SPELLING, /* meant for this EP, but it compares letter by letter */
    EPCTX_CLAIM_MISSING   /* no source, and this EP wants one */
} epctx_claim;

EPCTX_API epctx_claim epctx_profile_claims(const epctx_profile *profile,
                                           const struct epctx_epnode *node);

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
 * links resolved (a link out of the folder is EPCTX_ERR_PATH). `out` gets a terminated path. */
EPCTX_API epctx_status epctx_path_resolve(const epctx_io *io, epctx_str folder, epctx_str name,
                                          char *out, size_t capacity, epctx_error *error);
/* A snapshot of the Hugging Face cache keeps its files as links into blobs/ beside snapshots/: such
 * links may leave the model's folder, for that folder only (as ORT allows, PR 28725). */
#define EPCTX_PATH_HUGGING_FACE 1u
/* As epctx_path_resolve, with flags. */
EPCTX_API epctx_status epctx_path_find(const epctx_io *io, epctx_str folder, epctx_str name,
                                       uint32_t flags, char *out, size_t capacity,
                                       epctx_error *error);
/* Resolves and maps in one step, so that nobody can put another file or a link in between: what is
 * mapped lies inside the folder. `path` (may be NULL) gets the canonical path. */
EPCTX_API epctx_status epctx_path_map(const epctx_io *io, epctx_str folder, epctx_str name,
                                      uint32_t flags, epctx_mapping *out, char *path,
                                      size_t capacity, epctx_error *error);
/* "dir/model.onnx" -> "dir/model_ctx.onnx" (ep.context_file_path's default). */
EPCTX_API epctx_status epctx_path_context_model(epctx_str model_path, char *out, size_t capacity,
                                                epctx_error *error);
/* File name of the context binary, `[model]_[ep].bin`, from the path of the context model and the
 * EP's short name: "dir/model_ctx.onnx", "npu" -> "model_npu.bin" (no folder).
 * EPCTX_ERR_PATH when epctx_path_check would refuse the name. */
EPCTX_API epctx_status epctx_path_binary(epctx_str context_model_path, epctx_str ep, char *out,
                                         size_t capacity, epctx_error *error);

/* ================================================================================================
 * >>option: session options, and the files that they ask for
 *
 * An application asks for EPContext models through session configuration entries of ORT: pairs of
 * strings. Here they are read strictly. The options are not provider options of an EP. In an EP:
 * for every key of epctx_option_list ask ORT in CreateEp, give what is there to epctx_options_set,
 * then epctx_options_check.
 * ============================================================================================== */

typedef enum epctx_option_type {
    EPCTX_OPTION_TYPE_SWITCH = 0, /* "0" or "1", nothing else */
    EPCTX_OPTION_TYPE_TEXT,
    EPCTX_OPTION_TYPE_FILE,   /* path of a file */
    EPCTX_OPTION_TYPE_FOLDER, /* path of a folder */
    EPCTX_OPTION_TYPE_NAME,   /* file name without a folder */
    EPCTX_OPTION_TYPE_NUMBER, /* decimal, 0 to 2^64 - 1 */
    EPCTX_OPTION_TYPE_CHOICE  /* one of the words that `allowed` lists */
} epctx_option_type;

/* When an option has an effect. */
#define EPCTX_PHASE_NONE     0u /* not an EPContext option, only often taken for one */
#define EPCTX_PHASE_GENERATE 1u
#define EPCTX_PHASE_LOAD     2u
#define EPCTX_PHASE_BOTH     3u

/* Every option: symbol, key, ORT's constant in onnxruntime_session_options_config_keys.h without
 * "kOrtSessionOption" ("" where it is ours), type, default, phase, meaning. */
#define EPCTX_OPTION_LIST(X)                                                                       \
    X(CONTEXT_ENABLE, "ep.context_enable", "EpContextEnable", SWITCH, "0", GENERATE,               \
      "write an EPContext model")                                                                  \
    X(CONTEXT_FILE_PATH, "ep.context_file_path", "EpContextFilePath", FILE, "", BOTH,              \
      "the EPContext model; default <model>_ctx.onnx. Loading from memory: its folder has the "    \
      "binaries")                                                                                  \
    X(CONTEXT_EMBED_MODE, "ep.context_embed_mode", "EpContextEmbedMode", SWITCH, "0", GENERATE,    \
      "1: the binary goes into the model, 0: into a file of its own")                              \
    X(CONTEXT_NODE_NAME_PREFIX, "ep.context_node_name_prefix", "EpContextNodeNamePrefix", TEXT,    \
      "", GENERATE, "goes before node name, partition_name and graph name")                        \
    X(SHARE_EP_CONTEXTS, "ep.share_ep_contexts", "ShareEpContexts", SWITCH, "0", BOTH,             \
      "share one context with the other sessions of the group")                                    \
    X(STOP_SHARE_EP_CONTEXTS, "ep.stop_share_ep_contexts", "StopShareEpContexts", SWITCH, "0",     \
      BOTH, "the last session of the group")                                                       \
    X(EXTERNAL_INITIALIZERS_FILE, "ep.context_model_external_initializers_file_name",              \
      "sEpContextModelExternalInitializersFileName", NAME, "", GENERATE,                           \
      "file beside the EPContext model for all its initializers; default: inside the model")       \
    X(EXTERNAL_INITIALIZERS_FOLDER, "session.model_external_initializers_file_folder_path",        \
      "sModelExternalInitializersFileFolderPath", FOLDER, "", BOTH,                                \
      "folder of the source's external data; default: the model's")                                \
    X(WEIGHTLESS_NODES, "ep.enable_weightless_ep_context_nodes",                                   \
      "EpEnableWeightlessEpContextNodes", SWITCH, "0", GENERATE,                                   \
      "former name of ep.enable_weightless, external initializers only")                           \
    X(WEIGHTLESS, "ep.enable_weightless", "EpEnableWeightless", SWITCH, "0", BOTH,                 \
      "EPContext nodes take the weights as inputs")                                                \
    X(SOURCE_MODEL_PATH, "ep.context_source_model_path", "EpContextSourceModelPath", FILE, "",     \
      LOAD, "the source model, for the weights of a weightless EPContext model")                   \
    X(DISABLE_MODEL_COMPILE, "session.disable_model_compile", "sDisableModelCompile", SWITCH, "0", \
      LOAD, "a model that would have to be compiled is an error")                                  \
    X(FAIL_ON_SUBOPTIMAL, "session.fail_on_suboptimal_compiled_model",                             \
      "sFailOnSuboptimalCompiledModel", SWITCH, "0", LOAD,                                         \
      "a model that should better be compiled again is an error")                                  \
    X(COMPILE_ONLY, "session.compile_only", "CompileOnly", SWITCH, "0", GENERATE,                  \
      "the session will not run; set by ORT's compile API, not by users")                          \
    X(DISABLE_CPU_FALLBACK, "session.disable_cpu_ep_fallback", "sDisableCPUEPFallback", SWITCH,    \
      "0", BOTH, "a node left to the CPU is an error")                                             \
    X(RECORD_ASSIGNMENT, "session.record_ep_graph_assignment_info",                                \
      "sRecordEpGraphAssignmentInfo", SWITCH, "0", BOTH, "ORT remembers which EP took which node") \
    X(OPTIMIZED_MODEL_PATH, "session.optimized_model_filepath", "sConfigOptimizedModelFilePath",   \
      FILE, "", NONE, "ORT's optimized model, not the EPContext model")                            \
    X(OPTIMIZED_MODEL_FILE, "session.optimized_model_external_initializers_file_name",             \
      "sOptimizedModelExternalInitializersFileName", NAME, "", NONE,                               \
      "initializers of ORT's optimized model")                                                     \
    X(OPTIMIZED_MODEL_SIZE, "session.optimized_model_external_initializers_min_size_in_bytes",     \
      "sOptimizedModelExternalInitializersMinSizeInBytes", NUMBER, "1024", NONE,                   \
      "initializers of ORT's optimized model")                                                     \
    X(OVERWRITE, "epctx.overwrite", "", SWITCH, "0", GENERATE, "replace outputs that exist")       \
    X(NO_NODES, "epctx.no_nodes", "", CHOICE, "error", GENERATE,                                   \
      "when no node was compiled: error, copy (of the source model), nothing (is written)")

typedef enum epctx_option {
#define EPCTX__OPTION_ENUM(id, key, ort, type, fallback, phase, text) EPCTX_OPTION_##id,
    EPCTX_OPTION_LIST(EPCTX__OPTION_ENUM)
#undef EPCTX__OPTION_ENUM
        EPCTX_OPTION_COUNT
} epctx_option;

/* What to do when generation finds no node that it can compile. The words of epctx.no_nodes. */
typedef enum epctx_no_nodes {
    EPCTX_NO_NODES_ERROR = 0, /* EPCTX_ERR_NO_NODES, nothing is written */
    EPCTX_NO_NODES_COPY,      /* the source model under the output's name */
    EPCTX_NO_NODES_NOTHING    /* success, nothing is written */
} epctx_no_nodes;

/* What an option is. Static strings. */
typedef struct epctx_option_info {
    const char *key;
    const char *ort; /* name of ORT's constant behind "kOrtSessionOption"; "" for ours */
    epctx_option_type type;
    const char *fallback; /* value when it is not set; "" is "not set" for texts */
    const char *allowed;  /* the words of a CHOICE and of a SWITCH, separated by blanks; else "" */
    uint32_t phases;      /* EPCTX_PHASE_ bits */
    const char *text;
} epctx_option_info;

/* All options, in the order of the enum, for an EP that asks ORT for each key or a tool that prints
 * them. Static. */
EPCTX_API const epctx_option_info *epctx_option_list(size_t *count);

/* Options of one session. Zero-initialised means all defaults. A value set by hand is borrowed, the
 * functions below copy into `arena`; either lives as long as its owner. */
typedef struct epctx_options {
    const char *values[EPCTX_OPTION_COUNT]; /* NULL: not set */
    const epctx_profile *profile; /* may be NULL: whose defaults count when a value is not set */
    epctx_arena *arena;           /* borrowed; NULL is enough where nothing is parsed */
} epctx_options;

EPCTX_API void epctx_options_init(epctx_options *options, epctx_arena *arena);

/* Sets one option, as often as wanted: the last value counts. Key and value are copied (ORT's are
 * gone after CreateEp). A value that the type does not allow is EPCTX_ERR_ARG and says what is.
 * Keys of others are not an error: an EP may pass on everything it is given. But a key that is
 * meant for this table and is not in it is EPCTX_ERR_ARG and tells the nearest one: "epctx.x",
 * "ep.x" without a further dot ("ep.qnn.x" belongs to that EP), "session.x" one or two letters off,
 * and provider options that once did the same ("trt_ep_context_embed_mode"). */
EPCTX_API epctx_status epctx_options_set(epctx_options *options, epctx_str key, epctx_str value,
                                         epctx_error *error);
/* ORT's form on command lines: "key|value key|value". Values hold no blanks. A key that stands
 * twice is EPCTX_ERR_ARG. On failure no option of the list is set. */
EPCTX_API epctx_status epctx_options_set_list(epctx_options *options, const char *list,
                                              epctx_error *error);
/* The form of environment variables: "KEY=value", several separated by ";" or line ends. A key is
 * written as it is, or in capitals with "_" for ".": EP_CONTEXT_ENABLE=1. Otherwise as above. */
EPCTX_API epctx_status epctx_options_set_env(epctx_options *options, const char *text,
                                             epctx_error *error);

/* The effective value: what was set, else what the profile writes (embed mode), else the default.
 * `options` may be NULL. Text is "" when there is no value. */
EPCTX_API bool epctx_option_given(const epctx_options *options, epctx_option option);
EPCTX_API const char *epctx_option_text(const epctx_options *options, epctx_option option);
EPCTX_API bool epctx_option_on(const epctx_options *options, epctx_option option);
EPCTX_API uint64_t epctx_option_number(const epctx_options *options, epctx_option option);
EPCTX_API epctx_no_nodes epctx_option_no_nodes(const epctx_options *options);

/* Do the options fit together for a phase (EPCTX_PHASE_GENERATE or _LOAD)? `model_path` is empty or
 * NULL for a model from memory. EPCTX_ERR_ARG with the options to change: sharing with embed mode
 * 1, stop without share, generation from memory without ep.context_file_path, a folder as path. */
EPCTX_API epctx_status epctx_options_check(const epctx_options *options, uint32_t phase,
                                           const char *model_path, epctx_error *error);

/* What generation reads and what it is to write. Strings are borrowed during the call. */
typedef struct epctx_preflight_in {
    const epctx_io *io;        /* default epctx_io_files() */
    const char *model_path;    /* NULL or empty: from memory */
    const char *const *inputs; /* further files that are read (external data): never replaced */
    size_t input_count;
    const char *const *eps;    /* short names of the EPs that write a binary */
    size_t ep_count;
    const char *binary; /* file name that a group of sessions has chosen for the binary of the only
                           EP; default [model]_[ep].bin */
} epctx_preflight_in;

/* The files that will be written. Strings live in the arena. */
typedef struct epctx_outputs {
    const char *model;
    const char *initializers;    /* NULL: inside the model */
    const char *const *binaries; /* one for each EP, none when embedded */
    size_t binary_count;
} epctx_outputs;

/* To be called before anything is compiled: checks the options for generation and makes and checks
 * every output: its folder exists and a file can be made there (one is made and taken away again),
 * it is no folder, exists only where epctx.overwrite is 1, is no other output and no input.
 * Errors: ARG (options), NOT_FOUND (folder), EXISTS, PATH (clashes), IO (not writable), NOMEM. */
EPCTX_API epctx_status epctx_preflight(const epctx_options *options, const epctx_preflight_in *in,
                                       epctx_arena *arena, epctx_outputs *out, epctx_error *error);

/* ================================================================================================
 * >>check: walk, state, files, compatibility, lint
 * ============================================================================================== */

/* ORT's OrtCompiledModelCompatibility, the same numbers. */
typedef enum epctx_compat {
    EPCTX_COMPAT_NOT_APPLICABLE = 0, /* the string says nothing to this EP */
    EPCTX_COMPAT_OPTIMAL = 1,
    EPCTX_COMPAT_PREFER_RECOMPILATION = 2,
    EPCTX_COMPAT_UNSUPPORTED = 3
} epctx_compat;

/* "EP_SUPPORTED_OPTIMAL" ... as in onnxruntime_c_api.h. */
EPCTX_API const char *epctx_compat_name(epctx_compat compat);

/* metadata_props key "ep_compatibility_info.<EP>" starts with this. */
#define EPCTX_COMPAT_PREFIX "ep_compatibility_info."

/* Fields of QNN's string, "backend:sdk:api:blob:arch:driver". Versions are a.b.c. */
typedef struct epctx_compat_qnn {
    uint64_t backend;
    uint64_t sdk[3], api[3], blob[3];
    uint64_t arch;
    uint64_t user_driver;
} epctx_compat_qnn;

EPCTX_API bool epctx_compat_read_qnn(epctx_str text, epctx_compat_qnn *out);
/* Next part of a "name;key=value;key=value" string, from `*rest`; a part without "=" has an empty
 * key. False at the end. */
EPCTX_API bool epctx_compat_next(epctx_str *rest, epctx_str *key, epctx_str *value);
/* Does a model with the string `model` run on a machine whose EP would write `runtime`? QNN: ORT's
 * own rule. Others: equal strings are OPTIMAL; with the same keys, another hardware is UNSUPPORTED
 * and another version PREFER_RECOMPILATION; anything else is NOT_APPLICABLE. `why` (may be NULL)
 * gets the deciding field as its message. */
EPCTX_API epctx_compat epctx_compat_compare(const epctx_profile *profile, epctx_str model,
                                            epctx_str runtime, epctx_error *why);

/* Rules of lint: symbol, id, name, what is wrong, what to do. Ids never change their meaning.
 * E: an ORT session or the EP fails. W: it works for some or surprises. I: worth knowing. */
#define EPCTX_RULE_LIST(X)                                                                         \
    X(DOUBLED_FIELD, "E001", "doubled-field",                                                      \
      "a field that may stand once stands twice",                                                  \
      "write the model anew with one reader's choice, or do not trust it")                         \
    X(NO_GRAPH, "E002", "no-graph", "the model has no graph", "take it from its source again")     \
    X(WRONG_DOMAIN, "E003", "wrong-domain", "EPContext in another domain than com.microsoft",      \
      "set the node's domain to com.microsoft")                                                    \
    X(ATTRIBUTE_TYPE, "E004", "attribute-type", "an attribute of the schema has another type",     \
      "store it with the type of the schema")                                                      \
    X(ATTRIBUTE_VALUE, "E005", "attribute-value", "an attribute has a value without a meaning",    \
      "use 0 or 1, for max_size a number from 0 on")                                               \
    X(DOUBLED_ATTRIBUTE, "E006", "doubled-attribute", "an attribute stands twice in a node",       \
      "keep one of them")                                                                          \
    X(DOUBLED_EPNODE, "E007", "doubled-epnode-name", "two EPContext nodes have the same name",     \
      "generate with ep.context_node_name_prefix so that names differ")                            \
    X(DOUBLED_VALUE, "E008", "doubled-value", "a value is produced twice", "rename one of them")   \
    X(DOUBLED_INITIALIZER, "E009", "doubled-initializer", "two initializers have the same name",   \
      "remove one of them")                                                                        \
    X(UNDEFINED_VALUE, "E010", "undefined-value", "a node reads a value that nothing produces",    \
      "add the input, initializer or node that gives the value")                                   \
    X(DROPPED_VALUE, "E011", "dropped-outer-value",                                                \
      "a body reads an outer value that does not exist",                                           \
      "put the initializer back from the source model (ORT issue 32131 drops it)")                 \
    X(NO_MAIN, "E012", "secondary-without-main", "no primary node for a secondary one",            \
      "one node of this EP needs main_context 1 and the context")                                  \
    X(NO_CONTEXT, "E013", "main-without-context", "a primary node has no context",                 \
      "set ep_cache_context, or main_context 0 when another node has the context")                 \
    X(NO_PAYLOAD, "E014", "payload-missing", "this EP reads the context from every node",          \
      "generate with ep.context_embed_mode 0")                                                     \
    X(MIXED_MODES, "E015", "mixed-embed-modes", "embedded and external contexts in one model",     \
      "use one embed mode for all nodes of this EP")                                               \
    X(NO_SOURCE, "E016", "source-missing", "this EP takes no node without source",                 \
      "set source to the EP's name")                                                               \
    X(SOURCE_SPELLING, "E017", "source-spelling", "this EP compares source letter by letter",      \
      "write source as the EP writes it")                                                          \
    X(NOT_OURS, "E018", "no-node-of-ep", "no node of the model is for this EP",                    \
      "use the EP that the nodes name, or compile the model for this one")                         \
    X(PATH_EMPTY, "E019", "path-empty", "embed_mode 0 and no path",                                \
      "set ep_cache_context to the binary's name")                                                 \
    X(PATH_UNSAFE, "E020", "path-unsafe", "a path that is absolute or leaves the model's folder",  \
      "store a path relative to the model, without '..'")                                          \
    X(MEMORY_LOCATION, "E021", "memory-location", "a location inside a process that is gone",      \
      "write the model again with the data inside (ORT issue 28158)")                              \
    X(FILE_MISSING, "E022", "file-missing", "a file that the model needs does not exist",          \
      "copy it beside the model")                                                                  \
    X(FILE_IRREGULAR, "E023", "file-irregular", "a file that the model needs is not a plain file", \
      "put a regular, readable file there")                                                        \
    X(FILE_EMPTY, "E024", "file-empty", "a file that the model needs has no bytes",                \
      "copy it again, or compile again")                                                           \
    X(PATH_LINK, "E025", "path-through-link", "a link leads out of the model's folder",            \
      "replace the link by the file")                                                              \
    X(VALUE_TYPE, "E026", "value-type", "EPContext does not allow this type",                      \
      "keep such values outside of the partition")                                                 \
    X(NO_VALUE_TYPE, "E027", "value-type-missing", "an output of EPContext has no type",           \
      "add value_info for it: ORT cannot infer it")                                                \
    X(NO_OPSET, "E028", "opset-missing", "the domain of a node is not imported",                   \
      "add the opset import")                                                                      \
    X(DOUBLED_OPSET, "E029", "opset-doubled", "a domain is imported twice", "keep one import")     \
    X(DYNAMIC_SHAPE, "E030", "dynamic-shape", "this EP takes static shapes only",                  \
      "fix the dimension before compiling")                                                        \
    X(MORE_NODES, "E031", "more-than-one-node", "this EP loads graphs of exactly one node",        \
      "compile the whole graph into one partition")                                                \
    X(MODEL_SIZE, "E032", "model-too-large", "libprotobuf reads no more than 2 GiB",               \
      "move contexts (embed_mode 0) and initializers into files")                                  \
    X(PAYLOAD_SIZE, "E033", "payload-too-large", "an embedded context of 2 GiB or more",           \
      "generate with ep.context_embed_mode 0")                                                     \
    X(EXTERNAL_RANGE, "E034", "external-range", "external data ends beyond its file",              \
      "copy the data file again")                                                                  \
    X(NO_LOCATION, "E035", "external-location-missing", "external data without a location",        \
      "set the location of the data file")                                                         \
    X(NO_OUTPUT, "E036", "no-output", "an EPContext node without outputs", "remove the node")      \
    X(OUTPUT_UNDEFINED, "E037", "output-undefined", "a graph output that nothing produces",        \
      "connect the output")                                                                        \
    X(ONLY_EMBEDDED, "E038", "file-not-read", "this EP reads embedded contexts only",              \
      "embed the context")                                                                         \
    X(NO_KEY, "E039", "key-missing", "the name under which the EP finds the graph is missing",     \
      "set it as it was when the context was made")                                                \
    X(DOUBLED_KEY, "E040", "key-doubled", "two nodes ask one context for the same graph",          \
      "generate with ep.context_node_name_prefix")                                                 \
    X(NO_ATTRIBUTE, "E041", "attribute-missing", "this EP needs the attribute to be stored",       \
      "store the attribute")                                                                       \
    X(MANY_MAINS, "E042", "several-mains", "this EP wants exactly one primary node",               \
      "set main_context 0 on the others")                                                          \
    X(REFERENCE, "E043", "attribute-reference", "an attribute refers to one of a function",        \
      "store the value itself: this is not in a function")                                         \
    X(PROFILE, "E044", "profile-check", "a rule of this EP alone is broken", "see the message")    \
    X(NO_BASE, "E045", "folder-unknown", "the model came from memory and needs files",             \
      "set ep.context_file_path, or the folder of the initializers")                               \
    X(TENSOR_SIZE, "E046", "tensor-size", "an initializer has not the bytes that its shape needs", \
      "take the model from its source again")                                                      \
    X(EPCONTEXT_OPSET, "W001", "epcontext-opset", "com.microsoft is not imported",                 \
      "add the import: ORT does without, the ONNX checker does not")                               \
    X(SOURCE_ABSENT, "W002", "source-absent", "without source only some EPs take the node",        \
      "set source to the EP's name")                                                               \
    X(PAYLOAD_IGNORED, "W003", "payload-ignored", "a secondary node has a context that is unread", \
      "remove ep_cache_context, or set main_context 1")                                            \
    X(STALE_COMPAT, "W004", "compatibility-stale",                                                 \
      "compatibility info of an EP that has no node here", "remove the metadata entry")            \
    X(COMPAT_SYNTAX, "W005", "compatibility-syntax", "compatibility info that the EP cannot read", \
      "remove the entry or compile again")                                                         \
    X(IN_BODY, "W006", "in-subgraph", "EPContext inside of a body or function",                    \
      "EPs look at the main graph: expect that it is not loaded")                                  \
    X(BACKSLASH, "W007", "path-backslash", "a path with backslashes works on Windows only",        \
      "store it with slashes")                                                                     \
    X(BUILD_PATH, "W008", "build-path", "a path of the build machine is stored",                   \
      "store the file name only")                                                                  \
    X(LIKE_PATH, "W009", "payload-like-path", "the embedded context looks like a file name",       \
      "store embed_mode 0: absent means 1")                                                        \
    X(NO_NAME, "W010", "epnode-name-missing", "an EPContext node without a name",                  \
      "name it: ORT and EPs find nodes by name")                                                   \
    X(DOUBLED_METADATA, "W011", "metadata-doubled", "a metadata key stands twice", "keep one")     \
    X(DOUBLED_INFO, "W012", "value-info-doubled", "a value is described twice", "keep one")        \
    X(IR_VERSION, "W013", "ir-version", "an IR version that ORT 1.30 does not read",               \
      "expect that older tools refuse it")                                                         \
    X(NOT_UTF8, "W014", "name-not-utf8", "a name is not UTF-8", "rename it")                       \
    X(DOTS, "W015", "path-dots", "this EP refuses '..' anywhere in a path", "rename the file")     \
    X(DOUBLED_NODE, "W016", "node-name-doubled", "two nodes have the same name", "rename one")     \
    X(NEAR_LIMIT, "W017", "near-size-limit", "the model is close to the 2 GiB of libprotobuf",     \
      "move contexts into files")                                                                  \
    X(ORDER, "W018", "order", "a node reads a value that a later node produces",                   \
      "sort the nodes: ORT does so itself, other tools do not")                                    \
    X(ANNOTATION, "W019", "annotation-dangling", "an annotation of a value that does not exist",   \
      "remove the annotation, or rename it with its value")                                        \
    X(CONFIGURATION, "W020", "configuration-undeclared",                                           \
      "a node names a device configuration that the model does not have",                          \
      "add it to the model's configuration list, or correct configuration_id")                     \
    X(SHARDING, "W021", "sharding-dangling", "a sharding of a value that the node does not have",  \
      "name an input or output of the node, as it is called now")                                  \
    X(BINDING, "W022", "training-binding", "a training binding without its two ends",              \
      "bind an initializer, once, to an output; rename both with their values")                    \
    X(TRAINING, "W023", "training-graph", "a training graph breaks a rule of graphs",              \
      "see the message; sessions do not read training graphs")                                     \
    X(DEFAULTS, "I001", "defaults-used", "main_context or embed_mode absent: it counts as 1",      \
      "store both")                                                                                \
    X(EXTRA_ATTRIBUTE, "I002", "extra-attribute", "an attribute that the schema does not know",    \
      "nothing: some EPs use their own")                                                           \
    X(UNKNOWN_SOURCE, "I003", "unknown-source", "judged by the design document: no profile fits",  \
      "name a profile of your own")                                                                \
    X(NO_COMPAT, "I004", "no-compatibility", "no compatibility info: ORT cannot tell in advance",  \
      "let the EP write it")                                                                       \
    X(WEIGHTLESS, "I005", "weightless", "the node takes its weights as inputs",                    \
      "keep the initializers with the model")                                                      \
    X(UNUSED, "I006", "unused-initializer", "nothing reads this initializer", "remove it")         \
    X(BINARY_NAME, "I007", "binary-name", "the binary has not the name that the EP gives",         \
      "nothing, as long as the file is found")                                                     \
    X(FOREIGN, "I008", "foreign-node", "a node for another EP", "add that EP to the session")      \
    X(NO_SDK, "I009", "sdk-unknown", "ep_sdk_version is not stored", "nothing")

typedef enum epctx_rule {
#define EPCTX__RULE_ENUM(symbol, id, name, text, fix) EPCTX_RULE_##symbol,
    EPCTX_RULE_LIST(EPCTX__RULE_ENUM)
#undef EPCTX__RULE_ENUM
        EPCTX_RULE_COUNT
} epctx_rule;

typedef enum epctx_severity {
    EPCTX_SEVERITY_ERROR = 0,
    EPCTX_SEVERITY_WARNING,
    EPCTX_SEVERITY_HINT,
    EPCTX_SEVERITY_COUNT
} epctx_severity;

/* What a rule is. Static strings. */
typedef struct epctx_rule_info {
    const char *id;
    const char *name;
    const char *text;
    const char *fix;
    epctx_severity severity;
} epctx_rule_info;

EPCTX_API epctx_rule_info epctx_rule_of(epctx_rule rule);

/* One thing that lint found. Strings are valid during the callback only. */
typedef struct epctx_finding {
    epctx_rule rule;
    epctx_rule_info info;
    epctx_str node;        /* the node, value or metadata key it is about; may be empty */
    epctx_str graph;       /* name of the body or function around it; empty: the main graph */
    const char *attribute; /* "" when it is about no attribute */
    const char *message;   /* what was found and what was expected */
} epctx_finding;

typedef void (*epctx_finding_fn)(void *user, const epctx_finding *finding);

#ifndef EPCTX_NO_WIRE

/* Deepest nesting of graphs that a model can have: each takes three of 100 levels. */
#define EPCTX_WALK_DEPTH 34

typedef struct epctx_walk_level {
    epctx_str graph; /* its name, or the function's */
    epctx_cursor nodes, attrs, graphs;
} epctx_walk_level;

/* Position in a walk over all nodes of a model. */
typedef struct epctx_walk {
    epctx_cursor functions, trainings, training;
    uint32_t depth;   /* of the node just given: 0 in the main graph or a function's body */
    bool in_function;
    bool in_training;
    bool started;
    uint32_t count;   /* levels in use */
    epctx_walk_level levels[EPCTX_WALK_DEPTH];
} epctx_walk;

/* Every node: the main graph, bodies behind the node that owns them, functions, training graphs. */
EPCTX_API void epctx_walk_begin(epctx_walk *walk, const epctx_model *model);
EPCTX_API bool epctx_walk_next(epctx_walk *walk, epctx_node_view *node);
/* The next node of op_type EPContext, whatever its domain; epctx_is_epnode tells the real ones. */
EPCTX_API bool epctx_walk_epnode(epctx_walk *walk, epctx_node_view *node);

typedef enum epctx_compiled {
    EPCTX_PLAIN = 0,      /* no EPContext node: every EP compiles at load */
    EPCTX_PARTLY_COMPILED, /* some nodes are left to the session */
    EPCTX_FULLY_COMPILED  /* nothing but EPContext nodes */
} epctx_compiled;

/* EPContext nodes that agree in source, SDK version and architecture. */
typedef struct epctx_maker {
    epctx_str source, sdk_version, architecture;
    const epctx_profile *profile;
    uint64_t nodes, mains, embedded;
    uint64_t payload_size; /* bytes embedded in the model */
} epctx_maker;

/* One entry "ep_compatibility_info.<EP>" of the metadata. */
typedef struct epctx_compat_entry {
    epctx_str ep, value;
} epctx_compat_entry;

/* What can be told of a model without a session. Lists live in the arena given. */
typedef struct epctx_state {
    epctx_compiled compiled;
    uint64_t ep_nodes;     /* of the whole model, bodies and functions included */
    uint64_t broken_nodes; /* op_type EPContext but unreadable or in a wrong domain */
    uint64_t other_nodes;
    uint64_t weightless_inputs; /* initializers that EPContext nodes take as inputs */
    const epctx_maker *makers;
    size_t maker_count;
    const epctx_compat_entry *compat;
    size_t compat_count;
} epctx_state;

EPCTX_API epctx_status epctx_model_state(const epctx_model *model, epctx_arena *arena,
                                         epctx_state *out, epctx_error *error);

/* Where the files of a model are looked for, and what lint does. */
typedef struct epctx_check_opts {
    const char *context_file_path; /* ep.context_file_path: its folder has the binaries; default the
                                      model's folder */
    const char *external_folder;   /* session.model_external_initializers_file_folder_path: has the
                                      initializers; default as the model was opened */
    uint32_t path_flags;           /* EPCTX_PATH_HUGGING_FACE */
    bool no_files;                 /* touch no file */
    const epctx_profile *profile;  /* judge by this EP alone; default: each node by its source */
    const epctx_allocator *allocator; /* default malloc */
} epctx_check_opts;

typedef enum epctx_file_use {
    EPCTX_USE_CONTEXT = 0,
    EPCTX_USE_INITIALIZERS,
    EPCTX_USE_SOURCE_MODEL, /* onnx_model_filename; needed by weightless and stripped contexts */
    EPCTX_USE_COMPANION     /* goes with another file by convention: the .bin of an OpenVINO .xml */
} epctx_file_use;

/* "context binary" ... */
EPCTX_API const char *epctx_file_use_name(epctx_file_use use);

/* A file that a model depends on. */
typedef struct epctx_dependency {
    epctx_file_use use;
    bool required;         /* loading fails without it */
    epctx_str name;        /* as stored */
    epctx_str node;        /* the first node or initializer that names it */
    const char *attribute; /* "ep_cache_context", "location", "onnx_model_filename" */
    uint64_t users;        /* how many name it */
    const char *folder;    /* where it was looked for; "" the current one, NULL unknown */
    const char *path;      /* canonical, NULL when it cannot be used */
    uint64_t size;
    epctx_status status;   /* why not */
    const char *problem;   /* the same in words, NULL when all is well */
} epctx_dependency;

/* Files of one sidecar pattern that are listed: the first of them by name. */
#define EPCTX_MATCH_MAX 64

/* Every file a model depends on, each once. Of the profiles' sidecars those that exist; a pattern
 * gives the files that match it, by name, or itself (status EPCTX_ERR_UNSUPPORTED) when the io
 * cannot list folders. Lists live in `arena`. */
EPCTX_API epctx_status epctx_model_files(const epctx_model *model, const epctx_check_opts *opts,
                                         epctx_arena *arena, epctx_dependency **out, size_t *count,
                                         epctx_error *error);

/* Judges a model by every rule and hands each finding to `found_fn`. `counts` (may be NULL) gets
 * the numbers of errors, warnings and hints. Fails only when it could not judge (NOMEM). */
EPCTX_API epctx_status epctx_lint(const epctx_model *model, const epctx_check_opts *opts,
                                  epctx_finding_fn found_fn, void *user,
                                  uint64_t counts[EPCTX_SEVERITY_COUNT], epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>scan: EPContext nodes in constant memory
 *
 * For firmware that has no room for an index, and for models that are not in memory: one pass over
 * the bytes with the grammar of epctx_model_open, payloads skipped. The state is an epctx_scan (at
 * most 1.5 KiB; see EPCTX_SCAN_DEPTH and EPCTX_SCAN_TEXT for less) and nothing else.
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

/* Bytes that can be read at any place: SPI flash, a file. read_fn fills `out` with exactly `size`
 * bytes from `offset` on, or returns false. */
typedef struct epctx_source {
    void *user;
    bool (*read_fn)(void *user, uint64_t offset, void *out, size_t size);
    uint64_t size; /* of the whole model */
} epctx_source;

/* A place in the model. */
typedef struct epctx_range {
    uint64_t offset, length;
} epctx_range;

typedef enum epctx_scan_event {
    EPCTX_SCAN_END = 0,  /* the whole model was read and is well formed */
    EPCTX_SCAN_EPNODE,   /* `node`, `ranges`, `name`, `broken`, `depth` */
    EPCTX_SCAN_METADATA, /* `key`, `value`, `ranges[0]` and `[1]` of the same */
    EPCTX_SCAN_OPSET,    /* `key` is the domain, `version` */
    EPCTX_SCAN_EXTERNAL, /* a tensor whose data is in a file, at any depth: `key` is its name,
                            `value` the location, `data`, `location`, `depth` */
    EPCTX_SCAN_FAILED    /* see the error */
} epctx_scan_event;

/* Nested messages that a scan has room for. Below 100, libprotobuf's limit, a model that is nested
 * deeper is EPCTX_ERR_LIMIT: its end cannot be checked. Attributes of the main graph's nodes need 3
 * levels, value types up to 8, each body around a node 3 more. A level takes 6 bytes, every third
 * one 11. */
#ifndef EPCTX_SCAN_DEPTH
#define EPCTX_SCAN_DEPTH 100
#endif

/* Bytes for the strings of one event, which are kept until the next event. A string that does not
 * fit has its range only (data NULL). In an EPContext node the name, source and partition_name come
 * first: they push out, as far as needed and in this order, notes, onnx_model_filename,
 * ep_cache_context, hardware_architecture and ep_sdk_version; among themselves, and where an
 * attribute stores its value in front of its name, the first in the file is kept. */
#ifndef EPCTX_SCAN_TEXT
#define EPCTX_SCAN_TEXT 192
#endif

#if EPCTX_SCAN_DEPTH < 4 || EPCTX_SCAN_DEPTH > 100 || EPCTX_SCAN_TEXT < 1 ||                       \
    EPCTX_SCAN_TEXT > 65534
#error "epctx.h: EPCTX_SCAN_DEPTH is 4 to 100, EPCTX_SCAN_TEXT 1 to 65534"
#endif

/* Files that disagree on the two disagree on the size of epctx_scan: they must not link. */
#if EPCTX_SCAN_DEPTH != 100 || EPCTX_SCAN_TEXT != 192
#define EPCTX__SCAN_JOIN(name, depth, text) name##_##depth##_##text
#define EPCTX__SCAN_SIZED(name, depth, text) EPCTX__SCAN_JOIN(name, depth, text)
#define EPCTX__SCAN_NAME(name) EPCTX__SCAN_SIZED(name, EPCTX_SCAN_DEPTH, EPCTX_SCAN_TEXT)
#define epctx_scan_begin        EPCTX__SCAN_NAME(epctx_scan_begin)
#define epctx_scan_begin_stream EPCTX__SCAN_NAME(epctx_scan_begin_stream_of)
#endif

/* A scan and its last event. Do not copy: strings point inside. Members from `source` on are
 * private. */
typedef struct epctx_scan {
    epctx_epnode node; /* effective values; strings that were too long are empty */
    epctx_range ranges[EPCTX_EP_ATTR_COUNT]; /* where the strings are; the payload: that of
                                                EP_CACHE_CONTEXT */
    epctx_str key, value;
    epctx_range data;     /* in the file that `value` names; length UINT64_MAX: to its end */
    epctx_range location; /* where `value` is in the model */
    int64_t version;
    bool broken;          /* a wrong domain, or an attribute of a wrong type or value */
    uint32_t depth;       /* nodes around it; 0: in the main graph or a function */
    uint64_t node_count;  /* nodes seen so far, of every kind */
    uint64_t epnode_count;
    epctx_source source;  /* without a read_fn: `user` is a pb_istream_t */
    uint64_t at, end;     /* position; where the innermost message ends */
    const char *reason;
    int64_t attr_i;
    epctx_range attr_range, entry_range;
    uint64_t entry_number;
    epctx_status status;
    uint32_t ends_low[EPCTX_SCAN_DEPTH + 1]; /* of open messages; the number of open groups */
    uint32_t starts_low[(EPCTX_SCAN_DEPTH + 2) / 3]; /* of open nodes */
    uint8_t ends_high[EPCTX_SCAN_DEPTH + 1];
    uint8_t kinds[EPCTX_SCAN_DEPTH + 1];
    uint8_t starts_high[(EPCTX_SCAN_DEPTH + 2) / 3];
    uint8_t nodes;
    uint8_t levels;
    uint8_t outer;        /* what the leaf message being read is: its field number, or 0 */
    uint8_t attr_id;      /* epctx_epnode_attr, EPCTX_EP_ATTR_COUNT for another */
    uint8_t attr_type;
    uint8_t entry_key;
    bool external;
    bool flat;
    uint8_t buffer_at, buffer_size;
    uint16_t text_used, attr_mark, tensor_mark, entry_mark; /* in `text` */
    uint16_t attr_size, entry_size; /* of the strings at their marks; UINT16_MAX: too long */
    uint8_t buffer[24];
    char text[EPCTX_SCAN_TEXT];
} epctx_scan;

/* Starts a scan. The source is copied. */
EPCTX_API void epctx_scan_begin(epctx_scan *scan, const epctx_source *source);
/* The same over a nanopb stream, from its present position (ranges count from there). A stream
 * cannot go back: a node of op_type EPContext that has a graph inside is EPCTX_ERR_UNSUPPORTED,
 * because the state of the nodes inside takes the place of its own. */
EPCTX_API void epctx_scan_begin_stream(epctx_scan *scan, pb_istream_t *stream);
/* The next event. END and FAILED come again on every further call. */
EPCTX_API epctx_scan_event epctx_scan_next(epctx_scan *scan, epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>edit: change a model, write it
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

/* A graph record from the main graph: names, types, attributes, initializer bytes (typed fields are
 * converted to raw, external data is mapped through the model's io from the model's folder).
 * Everything lives until the model is closed. EPCTX_ERR_GRAPH for a malformed tensor, a cycle, or a
 * model without a graph, EPCTX_ERR_PATH / NOT_FOUND for external data. */
EPCTX_API epctx_status epctx_graph_load(epctx_model *model, epctx_graph *out, epctx_error *error);

/* -- edits --
 *
 * They take views at any depth, of any message of the model, and are visible at once in every view
 * that is made afterwards. What was read before stays readable, and a view from before still leads
 * an edit to its field while that exists. When an edit fails, the model is as before.
 *
 * Names and other text are copied into the model's arena. Payloads are borrowed and must stay valid
 * until the model is closed: the values of STRING and STRINGS attributes, the data of tensors,
 * epctx_set_data, and everything that is copied from a view.
 *
 * `after` says where a new field goes: behind that field; an empty view: behind the last of its
 * kind; the view of the message it goes into: in front of the first of its kind. Whoever adds many
 * saves a search when `after` is what was placed before. `placed` (may be NULL) gets the view of
 * the new field.
 * Errors: ARG for a view that is not of this model or that was removed, and for the wrong kind of
 * message; GRAPH when the model has singular messages twice, which can be read but not edited;
 * LIMIT when messages would be nested too deep; NOMEM. */

/* An empty model: an empty graph and the IR version. */
EPCTX_API epctx_status epctx_model_new(epctx_model *model, int64_t ir_version,
                                       const epctx_open_opts *opts, epctx_error *error);

/* Number to hand to epctx_undo; undo takes back every edit made since, to the byte. */
EPCTX_API size_t epctx_edit_mark(const epctx_model *model);
EPCTX_API void epctx_undo(epctx_model *model, size_t mark);

/* Removes the field that holds `view`. */
EPCTX_API epctx_status epctx_remove(epctx_model *model, epctx_view view, epctx_error *error);
/* Moves a field to another place in its message: nodes, graph inputs and outputs ... */
EPCTX_API epctx_status epctx_move(epctx_model *model, epctx_view view, epctx_view after,
                                  epctx_view *placed, epctx_error *error);
/* Adds the payload of `other` to `parent` as field `number`. `other` may be a view of this or of
 * another model, which must stay open as long as this one; it is copied as it is now. */
EPCTX_API epctx_status epctx_put_copy(epctx_model *model, epctx_view parent, uint32_t number,
                                      epctx_view other, epctx_view after, epctx_view *placed,
                                      epctx_error *error);

/* Sets a string, bytes or integer field of a message by its number in onnx.proto. However often it
 * stands there, one is left, in the place of the last; one that says the same stays as it is. An
 * over-long length keeps its width when the new one fits. */
EPCTX_API epctx_status epctx_set_str(epctx_model *model, epctx_view message, uint32_t number,
                                     epctx_str text, epctx_error *error);
EPCTX_API epctx_status epctx_set_int(epctx_model *model, epctx_view message, uint32_t number,
                                     int64_t value, epctx_error *error);
/* epctx_set_str that borrows. */
EPCTX_API epctx_status epctx_set_data(epctx_model *model, epctx_view message, uint32_t number,
                                      epctx_span data, epctx_error *error);
/* Removes every field of that number. */
EPCTX_API epctx_status epctx_clear_field(epctx_model *model, epctx_view message, uint32_t number,
                                         epctx_error *error);
/* Adds one string to a repeated field, e.g. an input to a node. */
EPCTX_API epctx_status epctx_put_str(epctx_model *model, epctx_view message, uint32_t number,
                                     epctx_str text, epctx_error *error);
/* Replaces one string, given by the body of its field, e.g. one input of a node. */
EPCTX_API epctx_status epctx_replace_str(epctx_model *model, epctx_view field, epctx_str text,
                                         epctx_error *error);

/* Sets an attribute of a node. One that is there keeps its place, its doc string and its unknown
 * fields; its type may change. All types that a record holds: numbers, strings and lists of them,
 * a tensor with its data (not of strings), a graph. Others are ERR_UNSUPPORTED: copy them. */
EPCTX_API epctx_status epctx_set_attr(epctx_model *model, epctx_view node, const epctx_attr *attr,
                                      epctx_error *error);
/* The same from an attribute of any node of any model. */
EPCTX_API epctx_status epctx_set_attr_copy(epctx_model *model, epctx_view node, epctx_view attr,
                                           epctx_error *error);
/* Removes an attribute; no error when there is none. */
EPCTX_API epctx_status epctx_unset_attr(epctx_model *model, epctx_view node, epctx_str name,
                                        epctx_error *error);

/* Adds a node to a graph or function; an empty view is the main graph, here and below. Attributes
 * as in epctx_set_attr. */
EPCTX_API epctx_status epctx_put_node(epctx_model *model, epctx_view graph, const epctx_node *node,
                                      epctx_view after, epctx_view *placed, epctx_error *error);
/* Adds a graph input, graph output, value_info, initializer (raw data). elem_type 0: no type. */
EPCTX_API epctx_status epctx_put_input(epctx_model *model, epctx_view graph,
                                       const epctx_value *value, epctx_view after,
                                       epctx_view *placed, epctx_error *error);
EPCTX_API epctx_status epctx_put_output(epctx_model *model, epctx_view graph,
                                        const epctx_value *value, epctx_view after,
                                        epctx_view *placed, epctx_error *error);
EPCTX_API epctx_status epctx_put_value(epctx_model *model, epctx_view graph,
                                       const epctx_value *value, epctx_view after,
                                       epctx_view *placed, epctx_error *error);
EPCTX_API epctx_status epctx_put_tensor(epctx_model *model, epctx_view graph,
                                        const epctx_tensor *tensor, epctx_view after,
                                        epctx_view *placed, epctx_error *error);

/* Adds an opset import, or does nothing when the domain is already imported. */
EPCTX_API epctx_status epctx_put_opset(epctx_model *model, epctx_str domain, int64_t version,
                                       epctx_error *error);
/* Adds an opset import, or changes the version of the one that is there. */
EPCTX_API epctx_status epctx_set_opset(epctx_model *model, epctx_str domain, int64_t version,
                                       epctx_error *error);
EPCTX_API epctx_status epctx_unset_opset(epctx_model *model, epctx_str domain, epctx_error *error);
/* Sets or removes an entry of a list of key/value pairs: metadata of any message (`number` is its
 * epctx_owner), external_data of a tensor (13). An entry with that key keeps its place. */
EPCTX_API epctx_status epctx_set_pair(epctx_model *model, epctx_view message, uint32_t number,
                                      epctx_str key, epctx_str value, epctx_error *error);
EPCTX_API epctx_status epctx_unset_pair(epctx_model *model, epctx_view message, uint32_t number,
                                        epctx_str key, epctx_error *error);
/* The same for the metadata_props of the model. */
EPCTX_API epctx_status epctx_put_metadata(epctx_model *model, epctx_str key, epctx_str value,
                                          epctx_error *error);
EPCTX_API epctx_status epctx_unset_metadata(epctx_model *model, epctx_str key, epctx_error *error);

/* How values and nodes get other names. NULL stands for all defaults. */
typedef struct epctx_name_opts {
    const epctx_profile *profile; /* default: of each node's source */
    bool one_graph; /* every binary holds the graph of one node, which the model cannot tell */
    bool any_io;    /* values at EPContext nodes may change in spite of EPCTX_IO_NAMES */
    bool all_nodes; /* epctx_prefix: not the EPContext nodes alone */
} epctx_name_opts;

/* Renames values of a graph (an empty view: the main graph) or function, from[i] to to[i], wherever
 * the name stands: nodes, graph inputs and outputs, initializers, value_info, quantization
 * annotations, sharding, training, and subgraphs that do not define the name themselves. Takes one
 * walk for any number of names; names may be swapped; names that do not occur are passed over.
 * `uses` (may be NULL) gets how many places changed. EPCTX_ERR_EXISTS when a new name is in use,
 * EPCTX_ERR_UNSUPPORTED for an input or output of an EPContext node that its EP finds in the binary
 * by name (EPCTX_IO_NAMES). */
EPCTX_API epctx_status epctx_rename_values(epctx_model *model, epctx_view scope,
                                           const epctx_str *from, const epctx_str *to, size_t count,
                                           const epctx_name_opts *opts, size_t *uses,
                                           epctx_error *error);

/* Renames a node. The name of an EPContext node may be the key into its binary (epctx_profile.key):
 * EPCTX_ERR_UNSUPPORTED, unless the context serves this node alone: it is embedded and the EP has
 * no secondary nodes, or opts->one_graph says so. EPCTX_ERR_EXISTS when another node has the
 * name. */
EPCTX_API epctx_status epctx_rename_node(epctx_model *model, epctx_view node, epctx_str name,
                                         const epctx_name_opts *opts, epctx_error *error);
/* Puts a prefix in front of the names of EPContext nodes, or of all nodes (functions, subgraphs and
 * training graphs included) that have a name. Refused as above; then no name changes.
 * partition_name stays: where it is a key, it is one into the binary. `count` (may be NULL) gets
 * the number of nodes. */
EPCTX_API epctx_status epctx_prefix(epctx_model *model, epctx_str prefix,
                                    const epctx_name_opts *opts, size_t *count, epctx_error *error);

/* Expands every message of the model, so that writing re-emits each one from its parts. The bytes
 * stay the same; tests use it. */
EPCTX_API epctx_status epctx_rebuild(epctx_model *model, epctx_error *error);

/* Exact size of the model as it would be written. */
EPCTX_API uint64_t epctx_model_size(epctx_model *model);
/* Writes the model to a nanopb stream. */
EPCTX_API epctx_status epctx_model_write_stream(epctx_model *model, pb_ostream_t *stream,
                                                epctx_error *error);

/* What happens to a file that an output would replace. */
typedef enum epctx_overwrite {
    EPCTX_OVERWRITE_REPLACE = 0,
    EPCTX_OVERWRITE_FAIL,  /* EPCTX_ERR_EXISTS */
    EPCTX_OVERWRITE_BACKUP /* it stays as FILE~, or when that exists FILE~2, FILE~3 ... */
} epctx_overwrite;

/* Longest model that protobuf readers take, ONNX Runtime among them. */
#define EPCTX_MODEL_MAX INT64_C(0x7fffffff)

typedef struct epctx_write_opts {
    epctx_overwrite overwrite;
    bool allow_huge; /* a model of more than EPCTX_MODEL_MAX bytes is EPCTX_ERR_LIMIT otherwise */
    char *backup;    /* gets the backup's path, "" when there is none; may be NULL */
    size_t backup_capacity;
} epctx_write_opts;

/* Writes to a file through the model's io: temp file, fsync, rename. The file keeps its mode, a
 * link stays a link. `opts` NULL means defaults. Windows does not replace a file that is mapped:
 * not the model's own source, then. */
EPCTX_API epctx_status epctx_model_write_file(epctx_model *model, const char *path,
                                              const epctx_write_opts *opts, epctx_error *error);
/* Whether a file may be written, before anything is: its folder exists (NOT_FOUND), it is no folder
 * or device (PATH), and `overwrite` allows it (EXISTS). */
EPCTX_API epctx_status epctx_output_check(const epctx_io *io, const char *path,
                                          epctx_overwrite overwrite, epctx_error *error);
/* Gives an existing file its backup name, as a second name or, where there is none, as a copy.
 * `backup` gets it. Call it last before the file is replaced. */
EPCTX_API epctx_status epctx_output_backup(const epctx_io *io, const char *path, char *backup,
                                           size_t capacity, epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>convert: contexts and weights, in the model or in files
 *
 * A conversion edits an open model and tells in epctx_changes what it did and which files must
 * stand beside the result; nothing is written. epctx_write_group then writes model and files so
 * that no crash can mix generations. Payloads are not copied: they stay in the mapped files until
 * they are written, so that a conversion of gigabytes needs no memory. epctx_undo takes back a
 * conversion as any other edit; one that fails leaves the model as it was.
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

/* A file that is written together with a model. */
typedef struct epctx_output_file {
    const char *path;        /* terminated */
    const char *name;        /* as the model names it: relative to the model's folder */
    const epctx_span *parts; /* its bytes, one after the other; data NULL: that many zeros */
    size_t part_count;
    uint64_t size; /* of all parts */
    bool kept;     /* set by epctx_write_group: it stood there already, with the same bytes */
} epctx_output_file;

typedef enum epctx_change_kind {
    EPCTX_CHANGE_EMBEDDED = 0, /* a context came into its node */
    EPCTX_CHANGE_EXTRACTED,    /* a context went into a file */
    EPCTX_CHANGE_FOLLOWED,     /* a secondary node has the embed mode of its primary one */
    EPCTX_CHANGE_INLINED,      /* an initializer came into the model */
    EPCTX_CHANGE_EXTERNAL,     /* an initializer went into a file, or refers to another one */
    EPCTX_CHANGE_PRUNED,       /* an initializer that nothing reads is gone */
    EPCTX_CHANGE_SOURCE,       /* a node names the source model `file`, or no longer does */
    EPCTX_CHANGE_SKIPPED,      /* left as it is; `reason` says why */
    EPCTX_CHANGE_COUNT
} epctx_change_kind;

/* "embedded", "extracted" ... */
EPCTX_API const char *epctx_change_name(epctx_change_kind kind);

typedef struct epctx_change {
    epctx_change_kind kind;
    epctx_str name;     /* of the node or of the initializer */
    epctx_str file;     /* the file it comes from or goes to; empty: none */
    uint64_t size;      /* bytes of the context or of the tensor */
    const char *reason; /* SKIPPED: why; otherwise NULL */
} epctx_change;

/* What a conversion did. Everything lives until the model is closed. */
typedef struct epctx_changes {
    const epctx_change *items; /* in the order of the model */
    size_t count;
    size_t done; /* items that are not SKIPPED */
    epctx_output_file *files;
    size_t file_count;
} epctx_changes;

typedef struct epctx_convert_opts {
    const char *node;              /* only nodes of this name; default every EPContext node */
    const epctx_profile *profile;  /* the rules of this EP; default: each node by its source */
    const char *context_file_path; /* ep.context_file_path: its folder has the binaries; default the
                                      model's folder */
    const char *output_path;       /* where the model will be written: names and folder of new files
                                      come from it; default the path it was opened from */
    const char *name;              /* file name of a context or of the weights, relative to the
                                      model, with {stem} {model} {file} as in epctx_profile.binary
                                      and {node}; default the EP's own, for weights {file}.data */
    uint64_t threshold;            /* initializers of fewer bytes stay; epctx_init_external */
    uint64_t alignment;            /* of each tensor in the file; default 4096, as ONNX advises */
    const char *source;            /* model with the weights, relative to the model's folder;
                                      default onnx_model_filename; epctx_weightless */
} epctx_convert_opts;

/* Contexts from files into their nodes: embed_mode 1. Every EP has its own rules (epctx_profile):
 * secondary nodes follow where the EP stores the mode in them; where all nodes name one binary
 * (OpenVINO) the first one takes it. EPCTX_ERR_UNSUPPORTED where the EP could not load the result,
 * EPCTX_ERR_LIMIT where the model would have 2 GiB or more, EPCTX_ERR_NO_NODES without an EPContext
 * node, EPCTX_ERR_NOT_FOUND / PATH for the node or a file. `opts` may be NULL, here and below. */
EPCTX_API epctx_status epctx_embed(epctx_model *model, const epctx_convert_opts *opts,
                                   epctx_changes *changes, epctx_error *error);
/* The way back: embedded contexts into files, embed_mode 0. Equal contexts become one file. */
EPCTX_API epctx_status epctx_extract(epctx_model *model, const epctx_convert_opts *opts,
                                     epctx_changes *changes, epctx_error *error);

/* External initializers of the main graph and of its bodies come into the model. */
EPCTX_API epctx_status epctx_init_inline(epctx_model *model, const epctx_convert_opts *opts,
                                         epctx_changes *changes, epctx_error *error);
/* Initializers of `threshold` bytes and more go into one file. Strings, sparse initializers and
 * attribute tensors stay, because ORT does not look for them in files. */
EPCTX_API epctx_status epctx_init_external(epctx_model *model, const epctx_convert_opts *opts,
                                           epctx_changes *changes, epctx_error *error);
/* Initializers that nothing reads go. One that makes an input optional, that a body captures or
 * that a quantization annotation or training names is read. */
EPCTX_API epctx_status epctx_init_prune(epctx_model *model, const epctx_convert_opts *opts,
                                        epctx_changes *changes, epctx_error *error);

/* A weightless model has EPContext nodes that take their weights as inputs (ORT's
 * ep.enable_weightless). Its initializers are copies of those of the source model: this one makes
 * each of them a reference into the source model (or into its data file) where the bytes are equal,
 * and stores onnx_model_filename where it is missing. EPCTX_ERR_UNSUPPORTED when no EPContext node
 * takes weights: they are in its binary, out of reach for everyone but the EP. */
EPCTX_API epctx_status epctx_weightless(epctx_model *model, const epctx_convert_opts *opts,
                                        epctx_changes *changes, epctx_error *error);
/* The way back: the weights that EPContext nodes take come into the model, and a node that took
 * weights forgets onnx_model_filename. EPCTX_ERR_UNSUPPORTED for binaries without weights. */
EPCTX_API epctx_status epctx_self_contained(epctx_model *model, const epctx_convert_opts *opts,
                                            epctx_changes *changes, epctx_error *error);

/* Writes a model to `path` and `files` beside it, all or nothing: every file is complete and
 * durable under a temporary name before the first one is replaced. After a crash at any point there
 * is the old set, the new set, or files without a model; never a model with a file of another
 * generation. `opts` are those of epctx_model_write_file, for the model; `overwrite` says what
 * happens to files: one that stands there with the same bytes is kept in any case. A failure puts
 * back what was there. A file is one call of write_fn where it is one part. */
EPCTX_API epctx_status epctx_write_group(epctx_model *model, const char *path,
                                         const epctx_write_opts *opts, epctx_output_file *files,
                                         size_t count, epctx_overwrite overwrite,
                                         epctx_error *error);
/* Whether epctx_write_group could write, as far as can be known beforehand. Changes nothing. */
EPCTX_API epctx_status epctx_check_group(epctx_model *model, const char *path,
                                         const epctx_write_opts *opts, epctx_output_file *files,
                                         size_t count, epctx_overwrite overwrite,
                                         epctx_error *error);

typedef struct epctx_move_opts {
    const epctx_profile *profile;     /* default: each node by its source */
    const epctx_io *io;               /* default epctx_io_files() */
    const epctx_allocator *allocator; /* default malloc */
    bool dry_run;                     /* judge only */
} epctx_move_opts;

typedef struct epctx_move_report {
    size_t model_count; /* models that named the file, */
    size_t node_count;  /* with how many nodes */
    uint64_t size;      /* of the file */
    bool linked;        /* nothing had to be copied */
} epctx_move_report;

/* Renames a context binary, also into another folder, together with every node of `models` that
 * names it. The new name is made first, then each model is replaced, then the old name goes: every
 * state in between loads, and the same call again completes what a crash interrupted. Models that
 * do not name the file are left alone; EPCTX_ERR_NOT_FOUND when none does. `moved_fn` (may be NULL)
 * hears the path of each model with its number of nodes. `report` may be NULL. */
EPCTX_API epctx_status epctx_move_binary(const char *from, const char *to,
                                         const char *const *models, size_t count,
                                         const epctx_move_opts *opts,
                                         void (*moved_fn)(void *user, const char *model,
                                                          size_t nodes),
                                         void *user, epctx_move_report *report,
                                         epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>combine: several models into one, a part of one, a binary into a model, repair
 *
 * Everything here edits open models and tells what it did; nothing is written. epctx_write_group
 * then writes the model with the files that must stand beside it. A call that fails leaves its
 * model as it was, epctx_undo takes back one that succeeded.
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

/* One thing that was done, in words: "value 'x' is now 'm2_x'". */
typedef struct epctx_step {
    size_t part; /* number of the model in the list, from 0 */
    epctx_str name;
    const char *text;
} epctx_step;

/* What was done, and the files that must be written beside the result (none for those that are
 * there already). Everything lives until the resulting model is closed. */
typedef struct epctx_combined {
    const epctx_step *steps;
    size_t step_count;
    epctx_output_file *files;
    size_t file_count;
} epctx_combined;

/* A model of a merge. `prefix` goes in front of the names of its nodes and values; NULL: a name
 * gets a prefix only where it clashes ("m2_" in the second model); "": a clash is an error. Names
 * that are keys of a compiled binary keep what they are, and a clash of such names is an error. */
typedef struct epctx_part {
    epctx_model *model;
    const char *prefix;
} epctx_part;

#define EPCTX_ANY_PART SIZE_MAX

/* An output of an earlier model that feeds an input of a later one, by their names in the models.
 * Numbers count from 0; EPCTX_ANY_PART: the last earlier model that has the output, every later
 * model that has the input. */
typedef struct epctx_connection {
    size_t from;
    epctx_str output;
    size_t to;
    epctx_str input;
} epctx_connection;

/* What to do with a metadata key that two models store with different values. */
typedef enum epctx_metadata_policy {
    EPCTX_METADATA_REFUSE = 0,
    EPCTX_METADATA_FIRST, /* the value of the earlier model stays */
    EPCTX_METADATA_PREFIX /* the later one gets the prefix of its model in front of the key */
} epctx_metadata_policy;

typedef struct epctx_merge_opts {
    bool chain; /* every input that has the name of an earlier output is fed by it */
    const epctx_connection *connections; /* and these */
    size_t connection_count;
    bool keep_outputs; /* outputs that feed an input stay outputs of the result */
    bool share_inputs; /* inputs of the same name and type become one */
    bool force_opset;  /* of different versions of an operator set take the newer one */
    epctx_metadata_policy metadata;
    const char *output_path; /* where the result will be written: files go to its folder; default
                                the path of the first model */
} epctx_merge_opts;

/* Adds the models parts[1..] to parts[0].model, side by side, or connected (chain, connections).
 * The others are as before afterwards and must stay open as long as the result. IR version: the
 * newest. Operator sets must have the same version unless one of the models does not use them.
 * Functions: equal ones once. Context binaries and external data are among `out->files` where they
 * are not in the folder of the result, under another name where names clash. The result breaks no
 * rule of lint that its parts keep. Training information cannot be merged.
 * Errors: EXISTS for names that clash and may not change, GRAPH for models that do not go together
 * (opsets, functions, metadata, types of a connection, rules of the EP), NOT_FOUND for a connection
 * that fits nothing or a missing file, UNSUPPORTED for training information. `opts` and `out` may
 * be NULL, here and below. */
EPCTX_API epctx_status epctx_merge(const epctx_part *parts, size_t count,
                                   const epctx_merge_opts *opts, epctx_combined *out,
                                   epctx_error *error);

typedef struct epctx_split_opts {
    const epctx_value *inputs; /* where to cut; elem_type 0: the model knows the type. None: the
                                  inputs of the model, as far as they are needed */
    size_t input_count;
    const epctx_value *outputs; /* none: the outputs of the model */
    size_t output_count;
    const char *output_path; /* as in epctx_merge_opts */
} epctx_split_opts;

/* Reduces the model to what lies between the inputs and the outputs: nodes, initializers, types,
 * annotations, functions, and the files that are still needed. When the node with the context goes,
 * the first of its secondary nodes takes over the context.
 * Errors: NOT_FOUND for a value that does not exist, ARG for an input that nothing reads or that is
 * an output, GRAPH when the outputs need more inputs than given, or when no type is known. */
EPCTX_API epctx_status epctx_split(epctx_model *model, const epctx_split_opts *opts,
                                   epctx_combined *out, epctx_error *error);

/* One input or output of a binary. */
typedef struct epctx_wrap_value {
    epctx_value value; /* as the binary has it; -1: a dynamic dimension */
    bool quantized; /* the application sees "NAME_dq" of float32: real = (x - zero_point) * scale */
    float scale;
    int64_t zero_point;
} epctx_wrap_value;

typedef struct epctx_wrap_opts {
    const epctx_profile *profile; /* the EP that made the binary; required */
    const char *source;           /* default what the EP writes */
    const char *name;             /* of the graph in the binary and so of the node; required */
    const char *partition_name;   /* default `name` */
    const char *sdk_version, *hardware_architecture, *notes; /* NULL: not stored */
    int64_t max_size;             /* 0: not stored */
    bool embed;
    const char *binary_name; /* how the model names the file; required unless embedded */
    const epctx_wrap_value *inputs;
    size_t input_count;
    const epctx_wrap_value *outputs;
    size_t output_count;
    const char *output_path;
} epctx_wrap_opts;

/* Makes a model of one EPContext node around a binary that a vendor's tool wrote, with
 * QuantizeLinear and DequantizeLinear around it where values are quantized. `binary` is borrowed
 * until the model is closed; when it is not embedded it is the one file of `out`. `open` is for the
 * new model. Errors: ARG for values, types and shapes that EPContext or the EP do not take, LIMIT
 * for an embedded binary of 2 GiB, GRAPH for other rules of the EP. */
EPCTX_API epctx_status epctx_wrap(epctx_model *model, epctx_span binary,
                                  const epctx_wrap_opts *opts, const epctx_open_opts *open,
                                  epctx_combined *out, epctx_error *error);

/* One finding of lint that was repaired or was not. Strings are valid during the callback. */
typedef struct epctx_repair_note {
    epctx_rule rule;
    epctx_rule_info info;
    bool done;        /* else `text` says why not */
    epctx_str name;   /* of the node, value or metadata key; may be empty */
    const char *text; /* what was done */
} epctx_repair_note;

typedef void (*epctx_repair_fn)(void *user, const epctx_repair_note *note);

typedef struct epctx_repair_opts {
    const epctx_rule *rules; /* only these; default every error and warning */
    size_t rule_count;
    epctx_check_opts check;    /* where files are, which EP judges */
    epctx_model *source; /* the model before it was compiled, open: has types and data that are
                            lost in this one; may be NULL, must stay open as long */
} epctx_repair_opts;

/* Repairs what lint finds, where the right answer is in the model, beside it, or in `source`.
 * Nothing is guessed: what has more than one answer is reported as not done. A model with doubled
 * fields becomes what libprotobuf reads in it. `done` and `left` (may be NULL) get the numbers of
 * repairs and of findings that remain. */
EPCTX_API epctx_status epctx_repair(epctx_model *model, const epctx_repair_opts *opts,
                                    epctx_repair_fn note_fn, void *user, size_t *done, size_t *left,
                                    epctx_error *error);
/* Whether epctx_repair knows a repair for a rule. */
EPCTX_API bool epctx_can_repair(epctx_rule rule);

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
 * do not form partitions of their own. Results live in `arena`.
 * Errors: GRAPH when a value is produced twice or read before it is produced, LIMIT when copies of
 * constant nodes would be many times the graph, NOMEM. */
EPCTX_API epctx_status epctx_partition_graph(const epctx_graph *graph, const uint8_t *take,
                                             epctx_arena *arena, epctx_partition **partitions,
                                             size_t *count, epctx_error *error);

/* ================================================================================================
 * >>weights: equal bytes are stored once
 *
 * A content-addressed table for the weight section of a context binary, or of anything else. It
 * holds no bytes: it says where they go, and asks for those it has placed. Usable alone.
 *
 * Two weights share their place only when every byte agrees, so a hash cannot make a wrong place,
 * it only saves comparisons. A table that hashes every byte wants XXH3, twice as fast as epctx_hash
 * and longer than this section by thousands of lines. This one seldom hashes a byte. There are four
 * steps, each taken only for what the one before could not tell apart: the size; epctx_hash (XXH64)
 * of a sample, EPCTX_WEIGHTS_SAMPLE bytes from all over the weight; byte by byte against the first
 * EPCTX_WEIGHTS_TRIES of that size and sample; for more of them epctx_hash of all bytes, then byte
 * by byte. So distinct weights of 64 KiB go in 16 times as fast as XXH3 alone would hash them, of 4
 * KiB as fast; the worst case, weights made to agree in the sample, runs at half of its speed and
 * still reads every byte a bounded number of times. Only weights made to collide in all 64 bits of
 * XXH64 cost more, against which there is the seed. `make bench` measures this.
 * ============================================================================================== */

#define EPCTX_WEIGHTS_SAMPLE 256u
#define EPCTX_WEIGHTS_TRIES  4u

/* Zero-initialised: a growing table, whose bytes the caller keeps in a buffer of the table. */
typedef struct epctx_weights_opts {
    const epctx_allocator *allocator; /* for the table; default malloc; copied */
    void *memory;                     /* fixed memory instead of the allocator; borrowed */
    size_t memory_size;               /* epctx_weights_memory tells how much is needed */
    uint64_t seed;                    /* unknown to whoever makes the weights; the places do not
                                         depend on it */
    epctx_buffer *binary; /* borrowed: weights are appended to it and compared with it; offsets
                             count from its size at epctx_weights_init */
    /* Without `binary`: bytes of the section that were placed before, at most 64 KiB a call; valid
     * until the next call. */
    epctx_status (*fetch_fn)(void *user, uint64_t offset, size_t size, const uint8_t **data,
                             epctx_error *error);
    void *user;
} epctx_weights_opts;

/* One place of the section. */
typedef struct epctx_weight {
    uint64_t offset;
    uint64_t size;
    uint32_t kind;
    uint32_t index; /* places count from 0, in the order in which they were first seen */
    bool fresh;     /* not there before: without `binary` the caller now stores the bytes there */
} epctx_weight;

typedef struct epctx_weights_stats {
    uint64_t added, added_bytes;   /* what came in */
    uint64_t stored, stored_bytes; /* places, without padding */
    uint64_t shared, shared_bytes; /* what was there already */
    uint64_t padding;
    uint64_t sampled;        /* hashes of samples made */
    uint64_t hashed_bytes;   /* read for hashes */
    uint64_t compared_bytes; /* compared byte by byte, until the first difference */
} epctx_weights_stats;

/* Members are private; zero-initialised is a legal state to free. */
typedef struct epctx_weights {
    epctx_weights_opts opts;
    epctx_allocator allocator;
    struct epctx__weight *entries;
    uint32_t *heads; /* hash tables: size, sample, all bytes */
    size_t count;
    size_t capacity; /* of the entries, a power of two, and of each hash table */
    size_t start;    /* of the section in opts.binary */
    uint64_t end;    /* of the section */
    epctx_weights_stats stats;
} epctx_weights;

/* Bytes of fixed memory for `count` places; 0 when that does not fit an address. */
EPCTX_API size_t epctx_weights_memory(size_t count);
/* `opts` are copied. EPCTX_ERR_ARG without `binary` and `fetch_fn`. */
EPCTX_API epctx_status epctx_weights_init(epctx_weights *weights, const epctx_weights_opts *opts,
                                          epctx_error *error);
/* Finds a place for `size` bytes: that of equal bytes of the same `kind` (any number; weights of
 * different kinds share nothing) whose offset fits `alignment`, or a new one at the end. Alignment
 * is a power of two; 0 counts as 1. No bytes at all are a place of their own, shared by all such.
 * `data` does not lie in `binary`, which may move.
 * On failure nothing has changed. Errors: ARG, NOMEM, LIMIT (2^31 places), what fetch_fn says. */
EPCTX_API epctx_status epctx_weights_add(epctx_weights *weights, const void *data, size_t size,
                                         uint32_t alignment, uint32_t kind, epctx_weight *out,
                                         epctx_error *error);
/* Place `index`; false when there is none. */
EPCTX_API bool epctx_weights_at(const epctx_weights *weights, uint32_t index, epctx_weight *out);
EPCTX_API epctx_weights_stats epctx_weights_statistics(const epctx_weights *weights);
/* Legal twice. Leaves fixed memory and `binary` to their owners. */
EPCTX_API void epctx_weights_free(epctx_weights *weights);

/* ================================================================================================
 * >>ep: what an EP implements
 * ============================================================================================== */

#define EPCTX_BACKEND_VERSION 2

typedef enum epctx_log {
    EPCTX_LOG_INFO = 0,
    EPCTX_LOG_WARNING
} epctx_log;

/* What long work tells and asks. Every member may be NULL. Hooks are called on the thread that does
 * the work, must return, and must not use the objects that are being worked on. */
typedef struct epctx_hooks {
    void *user;
    /* `done` of `total` steps of `work` ("compile", "write") are done. */
    void (*progress_fn)(void *user, const char *work, uint64_t done, uint64_t total);
    /* true: stop. The call ends with EPCTX_ERR_CANCELLED and leaves everything as it was. */
    bool (*cancel_fn)(void *user);
    void (*log_fn)(void *user, epctx_log level, const char *text);
} epctx_hooks;

/* EPCTX_ERR_CANCELLED when the caller wants to stop. `hooks` may be NULL. For backends, too. */
EPCTX_API epctx_status epctx_cancelled(const epctx_hooks *hooks, epctx_error *error);

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

/* How a context is to be built. */
typedef struct epctx_build_opts {
    const epctx_hooks *hooks; /* may be NULL; valid until finish_fn or discard_fn returns */
    bool prepare_only; /* nothing of it will run in this process: what only running needs may be
                          left out (session.compile_only) */
} epctx_build_opts;

/* The EP's side: a table of functions, each called with `self`. A member that may be NULL says so.
 *
 * Order       capability, (explain), begin, (setup), compile and (types, max_size) once per
 *             partition, then finish or discard; load, find, info, run in any number, unload.
 *             A context that several sessions share gets the partitions of all of them between one
 *             begin and one finish.
 * Ownership   `build` belongs to whoever called begin_fn until finish_fn or discard_fn is called,
 *             which release it, finish_fn also when it fails. A failed begin_fn or load_fn leaves
 *             nothing behind. Graph handles belong to their context and end with it. Arguments are
 *             borrowed during the call; `binary` of load_fn until unload_fn.
 * Failure     A failed compile_fn leaves `build` as it was: other partitions may follow. A status
 *             goes to the caller as it is, with the message set by epctx_fail; what goes wrong in
 *             load_fn, find_fn, info_fn and check_fn becomes ORT's INVALID_GRAPH (NOMEM stays).
 * Threads     run_fn may be called from several threads at once, also on one graph, each call with
 *             its own scratch. Calls for one `build` or one context come one at a time, those for
 *             different ones possibly at once; load, find, info and unload of one context never
 *             while it is being unloaded, but while graphs of it run.
 * Nothing may throw or longjmp through this library. */
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
    /* May be NULL. After compile_fn of that graph: the types of its outputs, in order, as far as
     * the compiler inferred them; they become value_info. Valid until finish. */
    epctx_status (*types_fn)(void *self, void *build, epctx_str name, const epctx_value **outputs,
                             size_t *count, epctx_error *error);
    /* Appends the context binary to `out` and releases `build`, also on failure. */
    epctx_status (*finish_fn)(void *self, void *build, epctx_buffer *out, epctx_error *error);
    void (*discard_fn)(void *self, void *build);
    /* `binary` stays valid and unchanged until unload_fn; it is hostile. */
    epctx_status (*load_fn)(void *self, epctx_span binary, void **context, epctx_error *error);
    void (*unload_fn)(void *self, void *context);
    /* The graph called `name`; EPCTX_ERR_CONTEXT when there is none. An empty name: the only graph.
     * `hash` 0: not checked, else a graph of another generation is EPCTX_ERR_VERSION. The same
     * graph gives the same handle every time. */
    epctx_status (*find_fn)(void *self, void *context, epctx_str name, uint64_t hash, void **graph,
                            epctx_error *error);
    epctx_status (*info_fn)(void *self, void *graph, epctx_graph_info *info, epctx_error *error);
    epctx_status (*run_fn)(void *self, void *graph, const epctx_span *inputs,
                           const epctx_memory *outputs, void *scratch, size_t scratch_size,
                           epctx_error *error);
    /* May be NULL. Why capability_fn does not take node `index` of `graph`:
     * EPCTX_ERR_UNSUPPORTED and the reason. For messages to the user. */
    epctx_status (*explain_fn)(void *self, const epctx_graph *graph, size_t index,
                               epctx_error *error);
    /* May be NULL. Before the context of an EPContext node is opened: EPCTX_ERR_VERSION when its
     * driver, SDK version or hardware architecture cannot run here. */
    epctx_status (*check_fn)(void *self, const epctx_epnode *node, epctx_error *error);
    /* May be NULL. Right after begin_fn. On failure discard_fn follows. */
    epctx_status (*setup_fn)(void *self, void *build, const epctx_build_opts *opts,
                             epctx_error *error);
    /* May be NULL. After compile_fn of that graph: the bytes it wants for the EPContext attribute
     * max_size. The largest of all graphs of a context goes into each of their nodes. */
    epctx_status (*max_size_fn)(void *self, void *build, epctx_str name, int64_t *bytes,
                                epctx_error *error);
} epctx_backend;

/* What ORT keeps in model metadata as ep_compatibility_info.<source> and hands back before a
 * compiled model is loaded: "epctx=1;source=<source>;sdk=<version>;arch=<architecture>".
 * EPCTX_ERR_LIMIT when `out` is too small: cut off it would name another version. */
EPCTX_API epctx_status epctx_backend_compatibility(const epctx_backend *backend, char *out,
                                                   size_t capacity, epctx_error *error);

/* Hash that an EPContext node records in `notes` ("graph_hash=<16 hex digits>") and that the binary
 * repeats: names, types, attributes and constants of a graph, the same on every platform. */
EPCTX_API uint64_t epctx_graph_hash(const epctx_graph *graph);
/* The hash in `notes`, or 0. */
EPCTX_API uint64_t epctx_notes_hash(epctx_str notes);

/* -- one EP at work on one model: pieces of its graph become EPContext nodes and a binary -- */

typedef struct epctx_ep_opts {
    const char *name_prefix; /* ep.context_node_name_prefix; default "" */
    uint64_t model_hash;     /* goes into the names: epctx_graph_hash of the whole model */
    bool embed;              /* ep.context_embed_mode */
    const char *binary;      /* not embedded: path of the binary as the nodes record it */
    bool prepare_only;       /* as in epctx_build_opts */
    const epctx_hooks *hooks;         /* may be NULL; valid until epctx_ep_finish */
    const epctx_allocator *allocator; /* for a binary that is not embedded; default malloc */
} epctx_ep_opts;

/* Zero-initialised is a legal state to end. Members are private. */
typedef struct epctx_ep {
    const epctx_backend *backend;
    epctx_ep_opts opts;
    epctx_arena *arena;
    void *build;
    struct epctx__known *shared; /* the graphs of `build` when it belongs to a group */
    struct epctx__piece *pieces;
    size_t count, room;
    epctx_node *nodes;
    epctx_buffer binary;
    int64_t max_size;
} epctx_ep;

/* Starts a context for at most `room` pieces. `arena` is borrowed and holds nodes and an embedded
 * binary. Errors: the backend's, NOMEM. */
EPCTX_API epctx_status epctx_ep_begin(epctx_ep *ep, const epctx_backend *backend,
                                      const epctx_ep_opts *opts, size_t room, epctx_arena *arena,
                                      epctx_error *error);
/* Compiles a piece under the name "<prefix><source>_<model hash>_<index>", which is the name of the
 * graph in the binary, of the node, and its partition_name alike. `piece` is borrowed until
 * epctx_ep_finish. */
EPCTX_API epctx_status epctx_ep_compile(epctx_ep *ep, const epctx_graph *piece, epctx_error *error);
/* Makes the binary and the nodes. */
EPCTX_API epctx_status epctx_ep_finish(epctx_ep *ep, epctx_error *error);
/* The design document's GetEpContextNodes(): one EPContext node per piece, in the order compiled,
 * the first with main_context 1. Empty before epctx_ep_finish; valid until epctx_ep_end. */
EPCTX_API const epctx_node *epctx_ep_context_nodes(const epctx_ep *ep, size_t *count);
/* The context binary; empty before epctx_ep_finish. Valid until epctx_ep_end. */
EPCTX_API epctx_span epctx_ep_binary(const epctx_ep *ep);
/* Legal on a zeroed object and twice; discards a context that was not finished. */
EPCTX_API void epctx_ep_end(epctx_ep *ep);

/* ================================================================================================
 * >>gen: ordinary model -> EPContext model
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

/* A partition that the caller chose: epctx_node.id of its nodes, in any order. */
typedef struct epctx_node_set {
    const uint32_t *nodes;
    size_t node_count;
} epctx_node_set;

/* Strings are borrowed during the call. */
typedef struct epctx_gen_opts {
    const char *context_file_path; /* ep.context_file_path; default <model>_ctx.onnx */
    bool embed;                    /* ep.context_embed_mode; default 0: binary in its own file */
    const char *name_prefix;       /* ep.context_node_name_prefix; default "" */
    bool overwrite;                /* replace existing outputs; default EPCTX_ERR_EXISTS */
    bool require_all;              /* a node left for the CPU is an error */
    const epctx_allocator *allocator; /* for the binary; default malloc */
    const char *binary; /* the binary's path relative to the EPContext model, its folder must exist;
                           default [model]_[ep].bin */
    const char *initializers_file_name; /* ep.context_model_external_initializers_file_name: a file
                                           beside the EPContext model for what stays; default: all
                                           inside the model */
    uint64_t initializers_min_size; /* smaller ones stay inside; default 0: all go out */
    epctx_no_nodes no_nodes;        /* when nothing can be compiled */
    const epctx_node_set *sets;     /* partitions; default: what the backend takes */
    size_t set_count;
    const char *build_options; /* anything else that the binary depends on, for the build stamp */
    bool prepare_only;         /* as in epctx_build_opts */
    bool verify; /* load the new binary and find every graph in it before anything is written */
    const epctx_hooks *hooks;
} epctx_gen_opts;

typedef struct epctx_gen_report {
    size_t partition_count;
    size_t compiled_nodes; /* source nodes that went into partitions */
    size_t cpu_nodes;      /* ordinary nodes that stay */
    size_t other_nodes;    /* EPContext nodes of other EPs, which stay, too */
    uint64_t binary_size;  /* 0 in a group, until its last session */
    uint64_t initializers_size;
    int64_t max_size;
    const epctx_node *nodes; /* the EPContext nodes made (GetEpContextNodes), one per partition;
                                valid until the model is closed */
    char context_path[EPCTX_PATH_MAX];
    char binary_path[EPCTX_PATH_MAX];       /* empty when embedded */
    char initializers_path[EPCTX_PATH_MAX]; /* empty when all are inside */
} epctx_gen_report;

/* Compiles what the backend takes and writes the EPContext model by editing `model`, which then
 * holds it. One EPContext node per partition: exactly the partition's boundary, main_context 1 for
 * the first and 0 for the rest, one binary. EPContext nodes of other EPs stay as they are. What the
 * nodes that stay need from external data comes inside, in bodies of If, Loop and Scan and in
 * functions, too: the result needs no file of the source. Compatibility info and build stamp of
 * this EP are written, those of EPs without a node here removed.
 *
 * Outputs are checked before anything is compiled (EXISTS, PATH, NOT_FOUND for a missing folder);
 * all files are committed together: a crash leaves the old ones, the new ones, or binaries without
 * a model. Node sets must be such that no set depends on itself, also when the others are taken as
 * one node each: EPCTX_ERR_GRAPH names the way. No node taken: see `no_nodes`. On failure the model
 * is as before and nothing was replaced. The same model and options give the same bytes. `report`
 * may be NULL. */
EPCTX_API epctx_status epctx_generate(epctx_model *model, const epctx_backend *backend,
                                      const epctx_gen_opts *opts, epctx_gen_report *report,
                                      epctx_error *error);

/* -- is an EPContext model still what its source would give? --
 *
 * The build stamp is the metadata entry "epctx.build.<source>": lines of a word and its values,
 *     source <bytes> <XXH64 of the file, 16 hex digits> <file name>
 *     data <bytes> <XXH64> <location>      once per file of external data
 *     options <XXH64 of what was asked for>
 *     sdk <ep_sdk_version>
 *     arch <hardware_architecture>
 * with "%25" and "%0A" for "%" and a line end. It holds no time: the same source must give the same
 * bytes. The fast way asks for the times of the files themselves (epctx_io.times_fn). */

#define EPCTX_BUILD_PREFIX "epctx.build."

typedef enum epctx_freshness {
    EPCTX_FRESH = 0,
    EPCTX_STALE,        /* the source, the options, the SDK or the architecture changed */
    EPCTX_FRESH_UNKNOWN /* no stamp of this EP, or the source is not there */
} epctx_freshness;

typedef struct epctx_fresh_opts {
    const char *source_path; /* default: the file the stamp names, beside the EPContext model */
    const epctx_gen_opts *gen; /* compared when given */
    bool fast; /* sizes, and no hash when no source file changed since the model was written */
} epctx_fresh_opts;

/* Judges an open EPContext model that came from a file. `source` is the EP, `backend` (may be NULL)
 * gives SDK and architecture to compare. `why` (may be NULL) says what differs. */
EPCTX_API epctx_freshness epctx_check_fresh(const epctx_model *model, const char *source,
                                            const epctx_backend *backend,
                                            const epctx_fresh_opts *opts, epctx_error *why);

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>load: EPContext model -> contexts that run
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

/* Context binaries from the application instead of from files (ORT's named-buffer callbacks). */
typedef struct epctx_reader {
    void *user;
    /* The whole binary that nodes call `name`, as the model stores it: relative, without "..", but
     * chosen by whoever made the model. `out` belongs to the application until release_fn. */
    epctx_status (*read_fn)(void *user, epctx_str name, epctx_mapping *out, epctx_error *error);
    void (*release_fn)(void *user, epctx_mapping *mapping);
} epctx_reader;

typedef struct epctx_load_opts {
    const char *context_file_path;    /* ep.context_file_path: gives the folder of the binaries */
    const epctx_allocator *allocator; /* for the loaded set; default malloc */
    const epctx_profile *profile; /* which nodes are ours and their key; default: `source` is the
                                     backend's, letter by letter, and the key is partition_name */
    const epctx_reader *reader;   /* may be NULL; copied */
    const epctx_hooks *hooks;     /* may be NULL */
} epctx_load_opts;

/* An EPContext node of this backend, bound to the graph that runs it. */
typedef struct epctx_bound {
    epctx_epnode node;
    epctx_node_view view;
    void *graph;
    epctx_graph_info info;
    struct epctx__entry *entry; /* private: where a shared graph came from */
} epctx_bound;

/* Everything that was loaded for one model. Members are private but for those up to `cpu_nodes`. */
typedef struct epctx_loaded {
    epctx_bound *bound; /* in node order */
    size_t bound_count;
    const epctx_node_view *others; /* nodes of the main graph that are not ours, in order: for the
                                      CPU, or (epctx_is_epnode) for other EPs */
    size_t other_nodes;
    size_t cpu_nodes; /* of them for the CPU */
    const epctx_backend *backend;
    epctx_arena arena;
    struct epctx__context *contexts;
    size_t context_count;
    const epctx_io *io;
    uint32_t path_flags;
    epctx_reader reader;
    const epctx_profile *profile;
    const struct epctx__sharing *sharing;
    struct epctx_workspace *workspace;
} epctx_loaded;

/* Loads every primary context that is ours, any number, each file once, and binds every node by the
 * profile's key, secondary ones to the primary that has their graph (EP-context design, inference
 * workflow). A context comes from the node itself, from `reader`, or from a file beside the model
 * (beside ep.context_file_path when that is set). A model without nodes of ours loads as nothing.
 * Whatever is wrong with a context, a version, an architecture or a generation is ORT's
 * INVALID_GRAPH, with the node and the reason. The model must stay open until epctx_unload. */
EPCTX_API epctx_status epctx_load(epctx_loaded *loaded, const epctx_model *model,
                                  const epctx_backend *backend, const epctx_load_opts *opts,
                                  epctx_error *error);
/* Legal on a zeroed set and twice. */
EPCTX_API void epctx_unload(epctx_loaded *loaded);

/* -- the EPContext model as a cache -- */

typedef enum epctx_origin {
    EPCTX_FROM_CACHE = 0, /* the EPContext model was there and fresh */
    EPCTX_FROM_COMPILER,  /* it was compiled now */
    EPCTX_FROM_FALLBACK   /* nothing is open: fallback_fn did the rest */
} epctx_origin;

typedef struct epctx_cache_opts {
    const epctx_open_opts *open; /* for the source and for the EPContext model */
    const epctx_gen_opts *gen;   /* `overwrite` counts as true */
    const epctx_load_opts *load;
    bool no_compile; /* session.disable_model_compile */
    bool fast;       /* as in epctx_fresh_opts */
    void *user;
    /* May be NULL. Called when there is no usable EPContext model and compiling is not allowed, or
     * takes no node. OK: the call succeeds with EPCTX_FROM_FALLBACK. */
    epctx_status (*fallback_fn)(void *user, const char *model_path, const epctx_error *why);
} epctx_cache_opts;

/* Do not move: `loaded` points into `model`. */
typedef struct epctx_opened {
    epctx_model model;
    epctx_loaded loaded;
    epctx_origin origin;
    epctx_error reason; /* why the EPContext model that was there was not used */
} epctx_opened;

/* Uses <stem>_ctx.onnx (or gen->context_file_path) when it is there, loads, and is what the source
 * would give now; otherwise compiles and writes it. A source that is gone needs no comparing. Safe
 * when several processes start at once: one compiles, the others wait (epctx_io.lock_fn, a file
 * <model>.lock that goes again) and use the result; nobody sees half of it.
 * Errors: those of epctx_generate and epctx_load; NOT_COMPILED under no_compile (ORT's
 * MODEL_REQUIRES_COMPILATION). */
EPCTX_API epctx_status epctx_open_or_compile(epctx_opened *opened, const char *model_path,
                                             const epctx_backend *backend,
                                             const epctx_cache_opts *opts, epctx_error *error);
/* Legal on a zeroed object and twice. */
EPCTX_API void epctx_opened_close(epctx_opened *opened);

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>share: one context for several sessions (EP-context design, weight sharing)
 *
 * A workspace is the "EP singleton" of the design document, as an object that the application or
 * the EP holds. Generating, the sessions of a group compile into one context, which the last one
 * writes: N models give N + 1 files. Loading, the first session loads that binary and uses its own
 * graph; the others wait in the workspace and are moved to the sessions that ask for them, which do
 * not open the binary. Everything is counted: workspace and sessions may end in any order.
 * ============================================================================================== */

/* A lock of the caller's. All NULL: the workspace and its sessions are used from one thread. */
typedef struct epctx_lock {
    void *user;
    void (*lock_fn)(void *user);
    void (*unlock_fn)(void *user);
    void (*free_fn)(void *user); /* may be NULL: called once, when the workspace is gone */
} epctx_lock;

/* A lock of the machine: a mutex of pthreads when the implementation file was compiled with
 * EPCTX_PTHREAD_LOCK, an SRWLOCK of Windows with EPCTX_WIN32_LOCK, else EPCTX_ERR_UNSUPPORTED.
 * Memory comes from `allocator` (default malloc), free_fn gives it back. */
EPCTX_API epctx_status epctx_lock_make(epctx_lock *lock, const epctx_allocator *allocator,
                                       epctx_error *error);

/* What happens to a session whose graph another one has. */
typedef enum epctx_taken {
    EPCTX_TAKEN_RELOAD = 0, /* it loads the binary once more, for itself and for others to come */
    EPCTX_TAKEN_ERROR       /* EPCTX_ERR_CONTEXT */
} epctx_taken;

typedef struct epctx_workspace_opts {
    const epctx_allocator *allocator; /* default malloc; copied; called under the lock only */
    epctx_lock lock;                  /* copied */
    epctx_taken taken;
} epctx_workspace_opts;

/* One for each EP of a process, or as many as the application likes: sessions of different
 * workspaces never meet. In one workspace EPs are kept apart by `source`, loaded binaries by
 * canonical path and content, groups under construction by a name. */
typedef struct epctx_workspace epctx_workspace;

/* An empty workspace. `opts` NULL means defaults. Errors: NOMEM. */
EPCTX_API epctx_status epctx_workspace_open(epctx_workspace **workspace,
                                            const epctx_workspace_opts *opts, epctx_error *error);
/* Gives the handle back. Sessions go on; the memory goes with the last of them. Groups that were
 * not finished are given up: nothing of them was or will be written. NULL is fine. */
EPCTX_API void epctx_workspace_close(epctx_workspace *workspace);
/* Empties it: the next session is a first one. Graphs in use stay with their sessions. */
EPCTX_API void epctx_workspace_clear(epctx_workspace *workspace);

/* -- loading -- */

/* A context binary in a file. */
typedef struct epctx_binary_file {
    const epctx_io *io;
    epctx_str folder, name; /* as for epctx_path_find */
    uint32_t path_flags;
} epctx_binary_file;

/* A graph that was moved out of the workspace. `graph` and `info` are valid until it is given
 * back. */
typedef struct epctx_shared {
    void *graph;
    epctx_graph_info info;
    struct epctx__entry *entry;
} epctx_shared;

/* Takes the graph `key` (EPContext attribute partition_name or node name) with `hash` (0: any) of a
 * binary. It comes from the workspace when it waits there, and then no file is opened; otherwise
 * the binary is loaded. For EPs that read no model bytes; epctx_share_load does it for a model.
 * Errors as for epctx_load, and CONTEXT when the graph is taken under EPCTX_TAKEN_ERROR. */
EPCTX_API epctx_status epctx_share_take(epctx_workspace *workspace, const epctx_backend *backend,
                                        const epctx_binary_file *binary, epctx_str key,
                                        uint64_t hash, epctx_shared *out, epctx_error *error);
/* Gives a graph back, so that another session can have it; the context goes with the last graph
 * that is in use. Once for every take, before the session's last hold on the workspace ends. */
EPCTX_API void epctx_share_give(epctx_workspace *workspace, epctx_shared *shared);

#ifndef EPCTX_NO_WIRE

/* epctx_load with ep.share_ep_contexts = 1: binaries in files are shared through the workspace,
 * embedded ones are the session's own. A failed session gives back what it took. epctx_unload ends
 * the session. EPCTX_ERR_ARG with a reader: it has no paths to tell binaries apart. */
EPCTX_API epctx_status epctx_share_load(epctx_workspace *workspace, epctx_loaded *loaded,
                                        const epctx_model *model, const epctx_backend *backend,
                                        const epctx_load_opts *opts, epctx_error *error);

/* -- generating -- */

/* epctx_generate with ep.share_ep_contexts = 1, as a session of the group called `group` (NULL: the
 * only one of this EP). The first session begins the group and names the binary after its model;
 * all EPContext models go beside it. The session with `stop` (ep.stop_share_ep_contexts) is the
 * last: it writes the binary and the EPContext models of all sessions, together. Before that
 * nothing is visible: until then the models are kept in memory. A session that fails leaves the
 * group as it was, ready for the next one (graphs it had compiled stay in the context and are used
 * when it tries again). When the last session fails while writing, the group is given up.
 * `backend` and the model's io must live until the group ends.
 * Errors: ARG when embedded, with another backend object than the group's or in another folder. */
EPCTX_API epctx_status epctx_share_generate(epctx_workspace *workspace, const char *group,
                                            epctx_model *model, const epctx_backend *backend,
                                            const epctx_gen_opts *opts, bool stop,
                                            epctx_gen_report *report, epctx_error *error);
/* Ends a group without a further session, as `stop` would. `binary_size` may be NULL.
 * EPCTX_ERR_NOT_FOUND: there is no such group. */
EPCTX_API epctx_status epctx_share_finish(epctx_workspace *workspace, const char *group,
                                          const char *source, const epctx_hooks *hooks,
                                          uint64_t *binary_size, epctx_error *error);

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

#if defined(EPCTX_PTHREAD_LOCK)
#include <pthread.h>
#endif

#if defined(_WIN32) && (defined(EPCTX_WIN32_LOCK) || !defined(EPCTX_NO_STDIO))
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#endif

#ifndef EPCTX_NO_STDIO
#ifdef _WIN32
#if !defined(_WIN32_WINNT) || _WIN32_WINNT < 0x0600
#error "epctx.h: needs Windows Vista or newer: define _WIN32_WINNT 0x0600 first"
#endif
#else
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if !defined(O_CLOEXEC) ||                                                                         \
    (defined(__GLIBC__) && !defined(__USE_XOPEN_EXTENDED) && !defined(__USE_MISC))
#error "epctx.h: a system header came first without _XOPEN_SOURCE 700: use the two-line epctx.c"
#endif
#if !defined(PATH_MAX) || PATH_MAX > EPCTX_PATH_MAX
#error "epctx.h: EPCTX_PATH_MAX is smaller than the longest path of this system"
#endif
/* A negative size here: a system header came first without _FILE_OFFSET_BITS 64. */
typedef char epctx__needs_64_bit_offsets[sizeof(off_t) >= 8 ? 1 : -1];
#endif /* _WIN32 */
#endif /* EPCTX_NO_STDIO */

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
    if (node != NULL && node->size > 0 && error->node[0] == '\0') {
        epctx__keep(error->node, sizeof error->node, node->data, node->size);
        epctx__prefix(error, "node", error->node);
    }
    if (file != NULL && file[0] != '\0' && error->file[0] == '\0') {
        epctx__keep(error->file, sizeof error->file, file, strlen(file));
        epctx__prefix(error, NULL, error->file);
    }
}

static epctx_status epctx__nomem(epctx_error *error, uint64_t size)
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
    size_t room = last == NULL ? 4096 : last->size;
    if (last != NULL && last->size < ((size_t)1 << 20)) {
        room *= 2;
    }
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

/* The address of the table is the seed: names in a file cannot be made to collide without knowing
 * it. Nothing depends on the order of the slots. */
static struct epctx__map_slot *epctx__map_find(const epctx_map *map, epctx_str key)
{
    uint64_t seed = (uint64_t)(uintptr_t)map->slots;
    size_t at = (size_t)epctx_hash(key.data, key.size, seed) & (map->capacity - 1);
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

#elif defined(_WIN32)

/* Names are UTF-8 outside and UTF-16 with the prefix that lifts the limit of 260 characters inside.
 * Paths that come back have "/" as their separator. */
#define EPCTX__WIDE_MAX (EPCTX_PATH_MAX + 8)

static epctx_status epctx__io_error(epctx_error *error, const char *what, const char *path)
{
    DWORD code = GetLastError();
    bool missing = code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND ||
                   code == ERROR_INVALID_NAME || code == ERROR_BAD_NETPATH ||
                   code == ERROR_BAD_NET_NAME;
    epctx_status status = missing ? EPCTX_ERR_NOT_FOUND : EPCTX_ERR_IO;
    WCHAR wide[256];
    char text[512];
    int size = 0;
    DWORD count = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL,
                                 code, 0, wide, 256, NULL);
    while (count > 0 && (wide[count - 1] <= L' ' || wide[count - 1] == L'.')) {
        count--;
    }
    if (count > 0) {
        size = WideCharToMultiByte(CP_UTF8, 0, wide, (int)count, text, sizeof text - 1, NULL, NULL);
    }
    text[size > 0 ? size : 0] = '\0';
    epctx_fail(error, status, "cannot %s: error %u%s%s", what, (uint64_t)code, size > 0 ? ", " : "",
               text);
    epctx_blame(error, path, NULL, NULL);
    return status;
}

static epctx_status epctx__wide(const char *path, WCHAR out[EPCTX__WIDE_MAX], epctx_error *error)
{
    WCHAR given[EPCTX_PATH_MAX];
    WCHAR *full = out + 8;
    DWORD size;
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, given, EPCTX_PATH_MAX) == 0) {
        epctx_fail(error, EPCTX_ERR_PATH, "the path is not UTF-8, or too long");
        epctx_blame(error, path, NULL, NULL);
        return EPCTX_ERR_PATH;
    }
    size = GetFullPathNameW(given, EPCTX_PATH_MAX, full, NULL);
    if (size == 0 || size >= EPCTX_PATH_MAX) {
        epctx_fail(error, EPCTX_ERR_PATH, "the path cannot be made absolute, or is too long");
        epctx_blame(error, path, NULL, NULL);
        return EPCTX_ERR_PATH;
    }
    if (wcsncmp(full, L"\\\\?\\", 4) == 0 || wcsncmp(full, L"\\\\.\\", 4) == 0) {
        memmove(out, full, (size + 1) * sizeof *out);
    } else if (wcsncmp(full, L"\\\\", 2) == 0) {
        memcpy(out, L"\\\\?\\UNC\\", 8 * sizeof *out);
        memmove(out + 8, full + 2, (size - 1) * sizeof *out);
    } else {
        memcpy(out, L"\\\\?\\", 4 * sizeof *out);
        memmove(out + 4, full, (size + 1) * sizeof *out);
    }
    return EPCTX_OK;
}

/* Opens a file or folder; through a link. */
static epctx_status epctx__open(const char *path, DWORD access, HANDLE *out, epctx_error *error)
{
    WCHAR wide[EPCTX__WIDE_MAX];
    epctx_status status = epctx__wide(path, wide, error);
    *out = INVALID_HANDLE_VALUE;
    if (status == EPCTX_OK) {
        DWORD share = FILE_SHARE_READ | FILE_SHARE_DELETE; /* who reads wants no changes */
        *out = CreateFileW(wide, access, access == 0 ? share | FILE_SHARE_WRITE : share, NULL,
                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
        if (*out == INVALID_HANDLE_VALUE) {
            status = epctx__io_error(error, "open", path);
        }
    }
    return status;
}

static epctx_status epctx__examine(HANDLE file, const char *path, epctx_file_kind *kind,
                                   uint64_t *size, epctx_error *error)
{
    BY_HANDLE_FILE_INFORMATION info;
    *kind = EPCTX_FILE_OTHER;
    *size = 0;
    if (GetFileType(file) != FILE_TYPE_DISK) {
        return EPCTX_OK;
    }
    if (!GetFileInformationByHandle(file, &info)) {
        return epctx__io_error(error, "examine", path);
    }
    *kind = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? EPCTX_FILE_FOLDER
                                                                   : EPCTX_FILE_REGULAR;
    *size = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
    return EPCTX_OK;
}

static epctx_status epctx__not_regular(epctx_file_kind kind, const char *path, epctx_error *error)
{
    epctx_fail(error, EPCTX_ERR_IO, "is %s, a regular file was expected",
               kind == EPCTX_FILE_FOLDER ? "a folder" : "a device or pipe");
    epctx_blame(error, path, NULL, NULL);
    return EPCTX_ERR_IO;
}

static epctx_status epctx__map_handle(HANDLE file, const char *path, epctx_mapping *out,
                                      epctx_error *error)
{
    epctx_file_kind kind;
    uint64_t size;
    HANDLE section;
    epctx_status status = epctx__examine(file, path, &kind, &size, error);
    if (status != EPCTX_OK || (kind == EPCTX_FILE_REGULAR && size == 0)) {
        return status;
    }
    if (kind != EPCTX_FILE_REGULAR) {
        return epctx__not_regular(kind, path, error);
    }
    if (size > SIZE_MAX) {
        epctx_fail(error, EPCTX_ERR_LIMIT, "has %u bytes, more than can be addressed", size);
        epctx_blame(error, path, NULL, NULL);
        return EPCTX_ERR_LIMIT;
    }
    section = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
    if (section != NULL) {
        out->handle = MapViewOfFile(section, FILE_MAP_READ, 0, 0, (size_t)size);
    }
    if (section == NULL || out->handle == NULL) {
        status = epctx__io_error(error, "map", path);
    } else {
        out->data = (const uint8_t *)out->handle;
        out->size = (size_t)size;
    }
    if (section != NULL) {
        CloseHandle(section);
    }
    return status;
}

static epctx_status epctx__file_map(void *user, const char *path, epctx_mapping *out,
                                    epctx_error *error)
{
    HANDLE file;
    epctx_status status = epctx__open(path, GENERIC_READ, &file, error);
    (void)user;
    memset(out, 0, sizeof *out);
    if (status == EPCTX_OK) {
        status = epctx__map_handle(file, path, out, error);
        CloseHandle(file);
    }
    return status;
}

static void epctx__file_unmap(void *user, epctx_mapping *mapping)
{
    (void)user;
    if (mapping->handle != NULL) {
        UnmapViewOfFile(mapping->handle);
    }
    memset(mapping, 0, sizeof *mapping);
}

static epctx_status epctx__file_stat(void *user, const char *path, epctx_file_kind *kind,
                                     uint64_t *size, epctx_error *error)
{
    epctx_error reason;
    HANDLE file;
    epctx_status status = epctx__open(path, 0, &file, &reason);
    (void)user;
    *kind = EPCTX_FILE_NONE;
    *size = 0;
    if (status == EPCTX_OK) {
        status = epctx__examine(file, path, kind, size, error);
        CloseHandle(file);
    } else if (status == EPCTX_ERR_NOT_FOUND) {
        status = EPCTX_OK;
    } else if (error != NULL) {
        *error = reason;
    }
    return status;
}

/* The path of an open file, without links, as "C:/folder/file" or "//server/share/file". */
static epctx_status epctx__path_of(HANDLE file, const char *path, char *out, size_t capacity,
                                   epctx_error *error)
{
    WCHAR wide[EPCTX__WIDE_MAX];
    const WCHAR *from = wide;
    DWORD count = GetFinalPathNameByHandleW(file, wide, EPCTX__WIDE_MAX, 0);
    int size = 0;
    int i;
    if (count == 0) {
        return epctx__io_error(error, "resolve", path);
    }
    if (count < EPCTX__WIDE_MAX) {
        if (wcsncmp(wide, L"\\\\?\\UNC\\", 8) == 0) {
            from = wide + 6;
            wide[6] = L'\\';
        } else if (wcsncmp(wide, L"\\\\?\\", 4) == 0) {
            from = wide + 4;
        }
        size = WideCharToMultiByte(CP_UTF8, 0, from, -1, out,
                                   capacity < INT32_MAX ? (int)capacity : INT32_MAX, NULL, NULL);
    }
    if (size == 0) {
        epctx_fail(error, EPCTX_ERR_LIMIT, "the path is longer than %u bytes",
                   (uint64_t)capacity - 1);
        epctx_blame(error, path, NULL, NULL);
        return EPCTX_ERR_LIMIT;
    }
    for (i = 0; i < size; i++) {
        out[i] = out[i] == '\\' ? '/' : out[i];
    }
    return EPCTX_OK;
}

static epctx_status epctx__file_canonical(void *user, const char *path, char *out, size_t capacity,
                                          epctx_error *error)
{
    HANDLE file;
    epctx_status status = epctx__open(path, 0, &file, error);
    (void)user;
    if (status == EPCTX_OK) {
        status = epctx__path_of(file, path, out, capacity, error);
        CloseHandle(file);
    }
    return status;
}

/* Opens, and looks afterwards where the file really is. */
static epctx_status epctx__file_map_inside(void *user, const char *root, const char *name,
                                           epctx_mapping *out, epctx_error *error)
{
    char path[EPCTX_PATH_MAX];
    char real[EPCTX_PATH_MAX];
    size_t root_size = strlen(root);
    size_t name_size = strlen(name);
    size_t slash = root_size > 0 && root[root_size - 1] == '/' ? 0 : 1;
    HANDLE file;
    epctx_status status;
    (void)user;
    memset(out, 0, sizeof *out);
    if (root_size + slash + name_size >= sizeof path) {
        return epctx_fail(error, EPCTX_ERR_LIMIT, "a path is longer than %u bytes",
                          (uint64_t)sizeof path - 1);
    }
    memcpy(path, root, root_size);
    path[root_size] = '/';
    memcpy(path + root_size + slash, name, name_size + 1);
    status = epctx__open(path, GENERIC_READ, &file, error);
    if (status != EPCTX_OK) {
        return status;
    }
    status = epctx__path_of(file, path, real, sizeof real, error);
    if (status == EPCTX_OK && strcmp(real, path) != 0) {
        status = epctx_fail(error, EPCTX_ERR_PATH, "'%s' became a link while it was opened", name);
    }
    if (status == EPCTX_OK) {
        status = epctx__map_handle(file, path, out, error);
    }
    CloseHandle(file);
    return status;
}

/* "<path>.<process>-<attempt>.tmp" */
static bool epctx__temp_name(epctx_io_file *file, unsigned attempt)
{
    char digits[32];
    size_t at = sizeof digits;
    size_t size = strlen(file->path);
    uint64_t numbers[2];
    int i;
    static const char end[] = ".tmp";
    numbers[0] = GetCurrentProcessId();
    numbers[1] = attempt;
    for (i = 1; i >= 0; i--) {
        do {
            digits[--at] = (char)('0' + numbers[i] % 10);
            numbers[i] /= 10;
        } while (numbers[i] > 0);
        digits[--at] = i == 1 ? '-' : '.';
    }
    if (size + (sizeof digits - at) + sizeof end > sizeof file->temp) {
        return false;
    }
    memcpy(file->temp, file->path, size);
    memcpy(file->temp + size, digits + at, sizeof digits - at);
    memcpy(file->temp + size + (sizeof digits - at), end, sizeof end);
    return true;
}

static epctx_status epctx__file_create(void *user, const char *path, epctx_io_file *file,
                                       epctx_error *error)
{
    WCHAR wide[EPCTX__WIDE_MAX];
    epctx_file_kind kind;
    uint64_t size;
    unsigned attempt;
    epctx_status status = epctx__file_stat(user, path, &kind, &size, error);
    memset(file, 0, sizeof *file);
    if (status == EPCTX_OK && kind != EPCTX_FILE_NONE && kind != EPCTX_FILE_REGULAR) {
        status = epctx__not_regular(kind, path, error);
    }
    if (status == EPCTX_OK && kind == EPCTX_FILE_REGULAR) { /* through a link: what it points to */
        status = epctx__file_canonical(user, path, file->path, sizeof file->path, error);
    } else if (status == EPCTX_OK && strlen(path) < sizeof file->path) {
        memcpy(file->path, path, strlen(path) + 1);
    } else if (status == EPCTX_OK) {
        status = epctx_fail(error, EPCTX_ERR_LIMIT, "a path is longer than %u bytes",
                            (uint64_t)sizeof file->path - 1);
    }
    for (attempt = 0; status == EPCTX_OK && attempt < 1000; attempt++) {
        if (!epctx__temp_name(file, attempt)) {
            return epctx_fail(error, EPCTX_ERR_LIMIT, "a path is longer than %u bytes",
                              (uint64_t)sizeof file->temp - 1);
        }
        status = epctx__wide(file->temp, wide, error);
        if (status != EPCTX_OK) {
            break;
        }
        file->handle = CreateFileW(wide, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL,
                                   NULL);
        if (file->handle != INVALID_HANDLE_VALUE) {
            return EPCTX_OK;
        }
        if (GetLastError() != ERROR_FILE_EXISTS) {
            return epctx__io_error(error, "create a temporary file for", path);
        }
    }
    return status != EPCTX_OK ? status
                              : epctx__io_error(error, "create a temporary file for", path);
}

static epctx_status epctx__file_write(void *user, epctx_io_file *file, const void *data,
                                      size_t size, epctx_error *error)
{
    const char *p = (const char *)data;
    (void)user;
    while (size > 0) {
        DWORD part = size < 0x40000000 ? (DWORD)size : 0x40000000;
        DWORD written = 0;
        if (!WriteFile(file->handle, p, part, &written, NULL) || written == 0) {
            return epctx__io_error(error, "write", file->path);
        }
        p += written;
        size -= written;
    }
    return EPCTX_OK;
}

static epctx_status epctx__file_sync(void *user, epctx_io_file *file, epctx_error *error)
{
    (void)user;
    return FlushFileBuffers(file->handle) ? EPCTX_OK
                                          : epctx__io_error(error, "flush", file->path);
}

static void epctx__remove_temp(epctx_io_file *file)
{
    WCHAR wide[EPCTX__WIDE_MAX];
    if (epctx__wide(file->temp, wide, NULL) == EPCTX_OK) {
        DeleteFileW(wide);
    }
}

static void epctx__file_abort(void *user, epctx_io_file *file)
{
    (void)user;
    CloseHandle(file->handle);
    epctx__remove_temp(file);
}

/* A file that somebody has mapped cannot be replaced on Windows: the new one is then given up. */
static epctx_status epctx__file_commit(void *user, epctx_io_file *file, epctx_error *error)
{
    WCHAR from[EPCTX__WIDE_MAX];
    WCHAR to[EPCTX__WIDE_MAX];
    epctx_status status = epctx__wide(file->temp, from, error);
    (void)user;
    CloseHandle(file->handle);
    if (status == EPCTX_OK) {
        status = epctx__wide(file->path, to, error);
    }
    if (status == EPCTX_OK &&
        !MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) {
        status = epctx__io_error(error, "replace", file->path);
    }
    if (status != EPCTX_OK) {
        epctx__remove_temp(file);
    }
    return status;
}

static epctx_status epctx__file_remove(void *user, const char *path, epctx_error *error)
{
    WCHAR wide[EPCTX__WIDE_MAX];
    epctx_status status = epctx__wide(path, wide, error);
    (void)user;
    if (status == EPCTX_OK && !DeleteFileW(wide)) {
        status = epctx__io_error(error, "remove", path);
    }
    return status;
}

static epctx_status epctx__file_link(void *user, const char *from, const char *to,
                                     epctx_error *error)
{
    WCHAR wide_from[EPCTX__WIDE_MAX];
    WCHAR wide_to[EPCTX__WIDE_MAX];
    DWORD code;
    epctx_status status = epctx__wide(from, wide_from, error);
    (void)user;
    if (status == EPCTX_OK) {
        status = epctx__wide(to, wide_to, error);
    }
    if (status != EPCTX_OK || CreateHardLinkW(wide_to, wide_from, NULL)) {
        return status;
    }
    code = GetLastError();
    if (code == ERROR_ALREADY_EXISTS || code == ERROR_FILE_EXISTS) {
        epctx_fail(error, EPCTX_ERR_EXISTS, "exists already");
        epctx_blame(error, to, NULL, NULL);
        return EPCTX_ERR_EXISTS;
    }
    if (code == ERROR_NOT_SUPPORTED || code == ERROR_INVALID_FUNCTION ||
        code == ERROR_TOO_MANY_LINKS || code == ERROR_NOT_SAME_DEVICE) {
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "'%s' cannot have a second name", from);
    }
    return epctx__io_error(error, "link", to);
}

static epctx_status epctx__file_list(void *user, const char *folder,
                                     bool (*name_fn)(void *state, const char *name), void *state,
                                     epctx_error *error)
{
    WCHAR wide[EPCTX__WIDE_MAX + 2];
    WIN32_FIND_DATAW entry;
    char name[EPCTX_PATH_MAX];
    HANDLE search;
    size_t size;
    epctx_status status = epctx__wide(folder[0] != '\0' ? folder : ".", wide, error);
    (void)user;
    if (status != EPCTX_OK) {
        return status;
    }
    size = wcslen(wide);
    memcpy(wide + size, wide[size - 1] == L'\\' ? L"*" : L"\\*",
           wide[size - 1] == L'\\' ? 2 * sizeof *wide : 3 * sizeof *wide);
    search = FindFirstFileW(wide, &entry);
    if (search == INVALID_HANDLE_VALUE) {
        return epctx__io_error(error, "list", folder);
    }
    do { /* a name that is not Unicode cannot be said */
        if (WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, entry.cFileName, -1, name,
                                sizeof name, NULL, NULL) > 0 &&
            !name_fn(state, name)) {
            break;
        }
    } while (FindNextFileW(search, &entry));
    FindClose(search);
    return EPCTX_OK;
}

/* MOVEFILE_WRITE_THROUGH has done it. */
static epctx_status epctx__file_sync_folder(void *user, const char *path, epctx_error *error)
{
    (void)user;
    (void)path;
    (void)error;
    return EPCTX_OK;
}

/* No time that moving a file into place changes is to be had by name: hashes have to do. */
static epctx_status epctx__file_times(void *user, const char *path, uint64_t *written,
                                      uint64_t *changed, epctx_error *error)
{
    (void)user;
    *written = *changed = 0;
    epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "Windows does not tell when a file was moved");
    epctx_blame(error, path, NULL, NULL);
    return EPCTX_ERR_UNSUPPORTED;
}

/* Whoever has the file open has the lock; it goes with the handle. */
static epctx_status epctx__file_lock(void *user, const char *path, epctx_io_file *lock,
                                     epctx_error *error)
{
    WCHAR wide[EPCTX__WIDE_MAX];
    epctx_status status = epctx__wide(path, wide, error);
    (void)user;
    while (status == EPCTX_OK) {
        DWORD code;
        lock->handle = CreateFileW(wide, GENERIC_READ | DELETE, 0, NULL, OPEN_ALWAYS,
                                   FILE_ATTRIBUTE_NORMAL | FILE_FLAG_DELETE_ON_CLOSE, NULL);
        if (lock->handle != INVALID_HANDLE_VALUE) {
            return EPCTX_OK;
        }
        code = GetLastError();
        /* ACCESS_DENIED: it is just being deleted. */
        if (code != ERROR_SHARING_VIOLATION && code != ERROR_ACCESS_DENIED) {
            return epctx__io_error(error, "open the lock", path);
        }
        Sleep(10);
    }
    return status;
}

static void epctx__file_unlock(void *user, epctx_io_file *lock)
{
    (void)user;
    CloseHandle(lock->handle);
}

#else

static epctx_status epctx__io_error(epctx_error *error, const char *what, const char *path)
{
    int code = errno;
    epctx_status status = code == ENOENT || code == ENOTDIR ? EPCTX_ERR_NOT_FOUND : EPCTX_ERR_IO;
    epctx_fail(error, status, "cannot %s%s: %s", what, path[0] == '\0' ? " an empty path" : "",
               strerror(code));
    epctx_blame(error, path, NULL, NULL);
    return status;
}

/* Maps an open file and closes it. */
static epctx_status epctx__map_descriptor(int fd, const char *path, epctx_mapping *out,
                                          epctx_error *error)
{
    struct stat info;
    epctx_status status = EPCTX_OK;
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

static epctx_status epctx__file_map(void *user, const char *path, epctx_mapping *out,
                                    epctx_error *error)
{
    /* A pipe must not block us before we see that it is one. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    (void)user;
    memset(out, 0, sizeof *out);
    return fd < 0 ? epctx__io_error(error, "open", path)
                  : epctx__map_descriptor(fd, path, out, error);
}

/* Opens `name` below the folder `fd`, one component at a time and through no link. Closes `fd`. */
static int epctx__open_below(int fd, const char *name)
{
    while (fd >= 0) {
        char part[256];
        size_t size = strcspn(name, "/");
        bool last = name[size] == '\0';
        int next = -1;
        int code = ENAMETOOLONG;
        if (size < sizeof part) {
            memcpy(part, name, size);
            part[size] = '\0';
            next = openat(fd, part, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW |
                                        (last ? 0 : O_DIRECTORY));
            code = errno;
        }
        close(fd);
        errno = code;
        if (last) {
            return next;
        }
        fd = next;
        name += size + 1;
    }
    return -1;
}

static epctx_status epctx__file_map_inside(void *user, const char *root, const char *name,
                                           epctx_mapping *out, epctx_error *error)
{
    int fd = open(root, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    (void)user;
    memset(out, 0, sizeof *out);
    fd = fd < 0 ? -1 : epctx__open_below(fd, name);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
        return epctx_fail(error, EPCTX_ERR_PATH, "'%s' became a link while it was opened", name);
    }
    return fd < 0 ? epctx__io_error(error, "open", name)
                  : epctx__map_descriptor(fd, name, out, error);
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
    char real[EPCTX_PATH_MAX]; /* not from realpath's malloc */
    epctx_status status = EPCTX_OK;
    (void)user;
    if (realpath(path, real) == NULL) {
        return epctx__io_error(error, "resolve", path);
    }
    if (strlen(real) >= capacity) {
        status = epctx_fail(error, EPCTX_ERR_LIMIT, "the path is longer than %u bytes",
                            (uint64_t)capacity - 1);
        epctx_blame(error, path, NULL, NULL);
    } else {
        memcpy(out, real, strlen(real) + 1);
    }
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
    if (exists && !S_ISREG(info.st_mode)) {
        epctx_status status = epctx_fail(error, EPCTX_ERR_IO,
                                         "is %s, a regular file was expected",
                                         S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe");
        epctx_blame(error, path, NULL, NULL);
        return status;
    }
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
        /* A stricter mode holds from the start: who opens the file now could read it later. */
        fd = open(file->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                  exists ? info.st_mode & 0666 : 0666);
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
    if (errno == ENOENT || errno == ENOTDIR) {
        epctx_fail(error, EPCTX_ERR_NOT_FOUND, "cannot be written, its folder does not exist");
        epctx_blame(error, path, NULL, NULL);
        return EPCTX_ERR_NOT_FOUND;
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

static epctx_status epctx__file_link(void *user, const char *from, const char *to,
                                     epctx_error *error)
{
    (void)user;
    if (link(from, to) == 0) {
        return EPCTX_OK;
    }
    if (errno == EEXIST) {
        epctx_fail(error, EPCTX_ERR_EXISTS, "exists already");
        epctx_blame(error, to, NULL, NULL);
        return EPCTX_ERR_EXISTS;
    }
    if (errno == EPERM || errno == EMLINK || errno == EXDEV || errno == ENOSYS ||
        errno == EOPNOTSUPP) {
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "'%s' cannot have a second name", from);
    }
    return epctx__io_error(error, "link", to);
}

static epctx_status epctx__file_sync_folder(void *user, const char *path, epctx_error *error)
{
    char folder[EPCTX_PATH_MAX];
    char real[EPCTX_PATH_MAX];
    /* Through a link the folder of the file, which is where create_fn put it. */
    epctx_str name = epctx_path_folder(epctx_str_of(realpath(path, real) != NULL ? real : path));
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

static epctx_status epctx__file_list(void *user, const char *folder,
                                     bool (*name_fn)(void *state, const char *name), void *state,
                                     epctx_error *error)
{
    DIR *entries = opendir(folder[0] != '\0' ? folder : ".");
    const struct dirent *entry;
    (void)user;
    if (entries == NULL) {
        return epctx__io_error(error, "list", folder);
    }
    do {
        entry = readdir(entries);
    } while (entry != NULL && name_fn(state, entry->d_name));
    closedir(entries);
    return EPCTX_OK;
}

static uint64_t epctx__nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static epctx_status epctx__file_times(void *user, const char *path, uint64_t *written,
                                      uint64_t *changed, epctx_error *error)
{
    struct stat info;
    (void)user;
    if (stat(path, &info) != 0) {
        return epctx__io_error(error, "examine", path);
    }
#if defined(__APPLE__)
    *written = epctx__nanoseconds(info.st_mtimespec);
    *changed = epctx__nanoseconds(info.st_ctimespec);
#else
    *written = epctx__nanoseconds(info.st_mtim);
    *changed = epctx__nanoseconds(info.st_ctim);
#endif
    return EPCTX_OK;
}

/* The file of a lock goes when the lock is released, so who has waited may hold one that is gone:
 * then it starts again with the file that is there now. */
static epctx_status epctx__file_lock(void *user, const char *path, epctx_io_file *lock,
                                     epctx_error *error)
{
    size_t size = strlen(path);
    (void)user;
    if (size >= sizeof lock->path) {
        return epctx_fail(error, EPCTX_ERR_LIMIT, "the path of a lock is too long");
    }
    memcpy(lock->path, path, size + 1);
    for (;;) {
        struct stat ours, there;
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0) {
            return epctx__io_error(error, "open the lock", path);
        }
        while (flock(fd, LOCK_EX) != 0) {
            if (errno != EINTR) {
                epctx_status status = epctx__io_error(error, "lock", path);
                close(fd);
                return status;
            }
        }
        if (fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
            ours.st_dev == there.st_dev) {
            lock->descriptor = fd;
            return EPCTX_OK;
        }
        close(fd);
    }
}

static void epctx__file_unlock(void *user, epctx_io_file *lock)
{
    (void)user;
    unlink(lock->path);
    close((int)lock->descriptor);
}

#endif /* system */

#ifndef EPCTX_NO_STDIO

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
        epctx__file_map_inside,
        epctx__file_link,
        epctx__file_list,
        epctx__file_times,
        epctx__file_lock,
        epctx__file_unlock,
    };
    return &files;
}

#endif /* EPCTX_NO_STDIO */

#ifndef EPCTX_NO_WIRE

/* ================================================================================================
 * >>wire
 *
 * The grammar is that of libprotobuf's C++ parser: tags and lengths of at most five bytes, varints
 * of at most ten, field number 0 and wire types 6 and 7 refused, groups must close with their own
 * number, and at most max_depth nested messages and groups.
 * ============================================================================================== */

static epctx_str epctx__str(const uint8_t *data, size_t size)
{
    epctx_str s;
    s.data = (const char *)data;
    s.size = size;
    return s;
}

typedef struct epctx__token {
    uint32_t number;
    epctx_wire wire;
    uint64_t value;
    const uint8_t *start; /* of the tag */
    const uint8_t *body;  /* LEN: of the payload, which ends where the field ends */
} epctx__token;

/* Returns the byte after the varint, or NULL when it is cut off or longer than `most` bytes. */
static const uint8_t *epctx__varint(const uint8_t *p, const uint8_t *end, unsigned most,
                                    uint64_t *value)
{
    uint64_t v = 0;
    unsigned i;
    for (i = 0; i < most && p < end; i++) {
        uint8_t byte = *p++;
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = v;
            return p;
        }
    }
    return NULL;
}

/* A tag's bits beyond the 32nd are dropped, as libprotobuf drops them. */
static const uint8_t *epctx__tag(const uint8_t *p, const uint8_t *end, uint32_t *tag)
{
    uint64_t v;
    if (p < end && *p < 0x80) {
        *tag = *p;
        return p + 1;
    }
    p = epctx__varint(p, end, 5, &v);
    *tag = p != NULL ? (uint32_t)(v & UINT32_MAX) : 0;
    return p;
}

/* Skips what follows a start-group tag up to and including its end-group tag. */
static const uint8_t *epctx__skip_group(const uint8_t *p, const uint8_t *end, uint32_t number,
                                        uint32_t depth);

/* Reads one field. NULL: malformed. An end-group tag is malformed here; epctx__skip_group sees it
 * first. `depth` is how many more levels may open. */
static const uint8_t *epctx__next(const uint8_t *p, const uint8_t *end, uint32_t depth,
                                  epctx__token *t)
{
    uint32_t tag;
    uint64_t size;
    t->start = p;
    /* Nearly every field of a real model has a tag and a length of one byte each. */
    if (end - p >= 2 && (p[0] & 0x87) == EPCTX_WIRE_LEN && p[0] >= 8 && p[1] < 0x80 &&
        p[1] <= end - p - 2) {
        t->number = (uint32_t)p[0] >> 3;
        t->wire = EPCTX_WIRE_LEN;
        t->value = 0;
        t->body = p + 2;
        return p + 2 + p[1];
    }
    p = epctx__tag(p, end, &tag);
    if (p == NULL || tag >> 3 == 0) {
        return NULL;
    }
    t->number = tag >> 3;
    t->wire = (epctx_wire)(tag & 7);
    t->value = 0;
    t->body = p;
    switch (tag & 7) {
    case EPCTX_WIRE_VARINT:
        return epctx__varint(p, end, 10, &t->value);
    case EPCTX_WIRE_FIXED64:
        if (end - p < 8) {
            return NULL;
        }
        t->value = epctx__le64(p);
        return p + 8;
    case EPCTX_WIRE_LEN:
        p = epctx__varint(p, end, 5, &size);
        if (p == NULL || size > (uint64_t)(end - p)) {
            return NULL;
        }
        t->body = p;
        return p + size;
    case EPCTX_WIRE_GROUP:
        return depth == 0 ? NULL : epctx__skip_group(p, end, t->number, depth - 1);
    case EPCTX_WIRE_FIXED32:
        if (end - p < 4) {
            return NULL;
        }
        t->value = epctx__le32(p);
        return p + 4;
    default:
        return NULL;
    }
}

static const uint8_t *epctx__skip_group(const uint8_t *p, const uint8_t *end, uint32_t number,
                                        uint32_t depth)
{
    while (p != NULL && p < end) {
        epctx__token t;
        uint32_t tag;
        const uint8_t *after = epctx__tag(p, end, &tag);
        if (after != NULL && (tag & 7) == 4) {
            return tag >> 3 == number ? after : NULL;
        }
        p = epctx__next(p, end, depth, &t);
    }
    return NULL;
}

/* -- the schema: which fields hold messages, which hold packed numbers -- */

typedef enum epctx__type {
    EPCTX__T_NONE = 0,
    EPCTX__T_MODEL,
    EPCTX__T_GRAPH,
    EPCTX__T_NODE,
    EPCTX__T_ATTR,
    EPCTX__T_TENSOR,
    EPCTX__T_SEGMENT,
    EPCTX__T_SPARSE,
    EPCTX__T_VALUE,
    EPCTX__T_TYPE,
    EPCTX__T_TYPE_TENSOR, /* also SparseTensor: the same fields */
    EPCTX__T_TYPE_ELEM,   /* Sequence and Optional */
    EPCTX__T_TYPE_MAP,
    EPCTX__T_SHAPE,
    EPCTX__T_LEAF, /* only strings and numbers: dimension, opset, key/value pair, Opaque ... */
    EPCTX__T_FUNCTION,
    EPCTX__T_TRAINING,
    EPCTX__T_ANNOTATION,
    EPCTX__T_NODE_DEVICE,
    EPCTX__T_SHARDING,
    EPCTX__T_SHARDED_DIM,
    EPCTX__T_GROUP_MAP, /* IntIntListEntryProto */
    EPCTX__T_DEVICES,   /* DeviceConfigurationProto */
    EPCTX__T_COUNT
} epctx__type;

/* A table entry: 0 is "nothing to look into"; else the message type, with EPCTX__ONE when the field
 * is singular; or the width class of a packed field. */
#define EPCTX__ONE    0x20u
#define EPCTX__VARINT 0x40u
#define EPCTX__FIX32  0x41u
#define EPCTX__FIX64  0x42u

/* onnx.proto, IR version 13; the index is the field number. */
static const uint8_t epctx__fields_model[27] = {
    0, 0, 0, 0, 0, 0, 0, EPCTX__T_GRAPH | EPCTX__ONE, EPCTX__T_LEAF, 0, 0, 0, 0, 0, EPCTX__T_LEAF,
    0, 0, 0, 0, 0, EPCTX__T_TRAINING, 0, 0, 0, 0, EPCTX__T_FUNCTION, EPCTX__T_DEVICES};
static const uint8_t epctx__fields_graph[17] = {
    0, EPCTX__T_NODE, 0, 0, 0, EPCTX__T_TENSOR, 0, 0, 0, 0, 0, EPCTX__T_VALUE, EPCTX__T_VALUE,
    EPCTX__T_VALUE, EPCTX__T_ANNOTATION, EPCTX__T_SPARSE, EPCTX__T_LEAF};
static const uint8_t epctx__fields_node[11] = {
    0, 0, 0, 0, 0, EPCTX__T_ATTR, 0, 0, 0, EPCTX__T_LEAF, EPCTX__T_NODE_DEVICE};
static const uint8_t epctx__fields_attr[24] = {
    0, 0, 0, 0, 0, EPCTX__T_TENSOR | EPCTX__ONE, EPCTX__T_GRAPH | EPCTX__ONE, EPCTX__FIX32,
    EPCTX__VARINT, 0, EPCTX__T_TENSOR, EPCTX__T_GRAPH, 0, 0, EPCTX__T_TYPE | EPCTX__ONE,
    EPCTX__T_TYPE, 0, 0, 0, 0, 0, 0, EPCTX__T_SPARSE | EPCTX__ONE, EPCTX__T_SPARSE};
static const uint8_t epctx__fields_tensor[17] = {
    0, EPCTX__VARINT, 0, EPCTX__T_SEGMENT | EPCTX__ONE, EPCTX__FIX32, EPCTX__VARINT, 0,
    EPCTX__VARINT, 0, 0, EPCTX__FIX64, EPCTX__VARINT, 0, EPCTX__T_LEAF, 0, 0, EPCTX__T_LEAF};
static const uint8_t epctx__fields_sparse[4] = {
    0, EPCTX__T_TENSOR | EPCTX__ONE, EPCTX__T_TENSOR | EPCTX__ONE, EPCTX__VARINT};
static const uint8_t epctx__fields_value[5] = {0, 0, EPCTX__T_TYPE | EPCTX__ONE, 0, EPCTX__T_LEAF};
static const uint8_t epctx__fields_type[10] = {
    0, EPCTX__T_TYPE_TENSOR | EPCTX__ONE, 0, 0, EPCTX__T_TYPE_ELEM | EPCTX__ONE,
    EPCTX__T_TYPE_MAP | EPCTX__ONE, 0, EPCTX__T_LEAF | EPCTX__ONE,
    EPCTX__T_TYPE_TENSOR | EPCTX__ONE,
    EPCTX__T_TYPE_ELEM | EPCTX__ONE};
static const uint8_t epctx__fields_type_tensor[3] = {0, 0, EPCTX__T_SHAPE | EPCTX__ONE};
static const uint8_t epctx__fields_type_elem[2] = {0, EPCTX__T_TYPE | EPCTX__ONE};
static const uint8_t epctx__fields_type_map[3] = {0, 0, EPCTX__T_TYPE | EPCTX__ONE};
static const uint8_t epctx__fields_shape[2] = {0, EPCTX__T_LEAF};
static const uint8_t epctx__fields_function[15] = {
    0, 0, 0, 0, 0, 0, 0, EPCTX__T_NODE, 0, EPCTX__T_LEAF, 0, EPCTX__T_ATTR, EPCTX__T_VALUE, 0,
    EPCTX__T_LEAF};
static const uint8_t epctx__fields_training[5] = {
    0, EPCTX__T_GRAPH | EPCTX__ONE, EPCTX__T_GRAPH | EPCTX__ONE, EPCTX__T_LEAF, EPCTX__T_LEAF};
static const uint8_t epctx__fields_annotation[3] = {0, 0, EPCTX__T_LEAF};
static const uint8_t epctx__fields_node_device[3] = {0, 0, EPCTX__T_SHARDING};
static const uint8_t epctx__fields_sharding[5] = {0, 0, EPCTX__VARINT, EPCTX__T_GROUP_MAP,
                                                  EPCTX__T_SHARDED_DIM};
static const uint8_t epctx__fields_sharded_dim[3] = {0, 0, EPCTX__T_LEAF};
static const uint8_t epctx__fields_group_map[3] = {0, 0, EPCTX__VARINT};

typedef struct epctx__schema {
    const uint8_t *fields;
    uint32_t count;
} epctx__schema;

#define EPCTX__SCHEMA(table) {table, (uint32_t)sizeof(table)}
static const epctx__schema epctx__schemas[EPCTX__T_COUNT] = {
    {NULL, 0},
    EPCTX__SCHEMA(epctx__fields_model),
    EPCTX__SCHEMA(epctx__fields_graph),
    EPCTX__SCHEMA(epctx__fields_node),
    EPCTX__SCHEMA(epctx__fields_attr),
    EPCTX__SCHEMA(epctx__fields_tensor),
    {NULL, 0}, /* SEGMENT */
    EPCTX__SCHEMA(epctx__fields_sparse),
    EPCTX__SCHEMA(epctx__fields_value),
    EPCTX__SCHEMA(epctx__fields_type),
    EPCTX__SCHEMA(epctx__fields_type_tensor),
    EPCTX__SCHEMA(epctx__fields_type_elem),
    EPCTX__SCHEMA(epctx__fields_type_map),
    EPCTX__SCHEMA(epctx__fields_shape),
    {NULL, 0}, /* LEAF */
    EPCTX__SCHEMA(epctx__fields_function),
    EPCTX__SCHEMA(epctx__fields_training),
    EPCTX__SCHEMA(epctx__fields_annotation),
    EPCTX__SCHEMA(epctx__fields_node_device),
    EPCTX__SCHEMA(epctx__fields_sharding),
    EPCTX__SCHEMA(epctx__fields_sharded_dim),
    EPCTX__SCHEMA(epctx__fields_group_map),
    {NULL, 0}, /* DEVICES */
};
#undef EPCTX__SCHEMA

static uint32_t epctx__field_kind(epctx__type type, uint32_t number)
{
    const epctx__schema *schema = &epctx__schemas[type];
    return number < schema->count ? schema->fields[number] : 0;
}

static bool epctx__is_message(uint32_t kind)
{
    return kind != 0 && kind < EPCTX__VARINT;
}

static epctx__type epctx__message_type(uint32_t kind)
{
    return (epctx__type)(kind & (EPCTX__ONE - 1));
}

/* -- the check of a whole message -- */

typedef struct epctx__check {
    uint64_t fields;     /* still allowed */
    const uint8_t *bad;  /* where the first fault is */
    const char *reason;
    epctx_status status;
    bool duplicate;
} epctx__check;

static bool epctx__refuse(epctx__check *check, epctx_status status, const uint8_t *at,
                          const char *reason)
{
    if (check->reason == NULL) {
        check->status = status;
        check->bad = at;
        check->reason = reason;
    }
    return false;
}

static bool epctx__check_packed(epctx__check *check, uint32_t kind, const uint8_t *p,
                                const uint8_t *end)
{
    size_t width = kind == EPCTX__FIX32 ? 4 : 8;
    uint64_t value;
    if (kind != EPCTX__VARINT) {
        return (size_t)(end - p) % width == 0 ||
               epctx__refuse(check, EPCTX_ERR_PROTOBUF, p, "a packed field ends inside a number");
    }
    while (p < end) {
        const uint8_t *after = epctx__varint(p, end, 10, &value);
        if (after == NULL) {
            return epctx__refuse(check, EPCTX_ERR_PROTOBUF, p,
                                 "a packed field ends inside a varint");
        }
        p = after;
    }
    return true;
}

static bool epctx__check_message(epctx__check *check, epctx__type type, const uint8_t *p,
                                 const uint8_t *end, uint32_t depth);

/* What is inside one field of a message of type `type`. */
static bool epctx__check_field(epctx__check *check, epctx__type type, const epctx__token *t,
                               const uint8_t *end, uint32_t depth, uint32_t *seen)
{
    uint32_t kind = t->wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, t->number) : 0;
    if (check->fields == 0) {
        return epctx__refuse(check, EPCTX_ERR_LIMIT, t->start,
                             "the model has more fields than epctx_limits.max_fields allows");
    }
    check->fields--;
    if (kind == 0) {
        return true;
    }
    if (!epctx__is_message(kind)) {
        return epctx__check_packed(check, kind, t->body, end);
    }
    if ((kind & EPCTX__ONE) != 0) {
        uint32_t bit = UINT32_C(1) << t->number;
        check->duplicate = check->duplicate || (*seen & bit) != 0;
        *seen |= bit;
    }
    if (depth == 0) {
        return epctx__refuse(check, EPCTX_ERR_PROTOBUF, t->start,
                             "messages are nested deeper than the limit");
    }
    return epctx__check_message(check, epctx__message_type(kind), t->body, end, depth - 1);
}

static bool epctx__check_message(epctx__check *check, epctx__type type, const uint8_t *p,
                                 const uint8_t *end, uint32_t depth)
{
    uint32_t seen = 0;
    while (p < end) {
        epctx__token t;
        const uint8_t *after = epctx__next(p, end, depth, &t);
        if (after == NULL) {
            return epctx__refuse(check, EPCTX_ERR_PROTOBUF, p, "there is no valid protobuf field");
        }
        if (!epctx__check_field(check, type, &t, after, depth, &seen)) {
            return false;
        }
        p = after;
    }
    return true;
}

/* -- the tree --
 *
 * A message that was not touched is its bytes. A message that was opened up (the model, its main
 * graph, whatever an edit needs) is a list of slots, one a field. A slot keeps its source bytes and
 * writes them back unless something inside it changed. Lists make edits and their undoing O(1). */

typedef struct epctx__message {
    struct epctx_slot *first;
    struct epctx_slot *last;
    struct epctx_slot *hint; /* last one that epctx__child_at found */
    uint32_t edits; /* live edits in this message and below; 0: the source bytes are still right */
    uint64_t size;  /* of the payload, set by epctx__measure */
} epctx__message;

struct epctx_slot {
    struct epctx_slot *next;
    struct epctx_slot *parent;
    const uint8_t *data; /* whole field from the tag on; if `split`, only the payload */
    size_t size;
    epctx__message *message; /* opened payload, or NULL */
    uint32_t number;
    uint8_t wire;
    uint8_t head;  /* bytes of tag and length in front of the payload */
    uint8_t split; /* not 0: `data` is the payload alone, its length takes at least so many bytes */
    bool removed;
};
typedef struct epctx_slot epctx_slot;

/* One edit, for undo. */
typedef struct epctx__edit {
    struct epctx__edit *before;
    epctx_slot *slot;
    epctx_slot *previous; /* inserted slots: the slot in front, NULL for the first */
    bool inserted;        /* else removed */
} epctx__edit;

static epctx_view epctx__slot_view(const epctx_slot *slot)
{
    epctx_view view;
    view.slot = slot;
    view.data = slot->data != NULL ? slot->data + slot->head : NULL;
    view.size = slot->size - slot->head;
    return view;
}

static epctx_view epctx__no_view(void)
{
    epctx_view view = {NULL, NULL, 0};
    return view;
}

/* Bytes inside the payload of `owner`, which may be NULL. */
static epctx_view epctx__bytes_view(const epctx_slot *owner, const uint8_t *data, size_t size)
{
    epctx_view view;
    view.slot = owner;
    view.data = data;
    view.size = size;
    return view;
}

/* Whether a view is the payload of its slot, not something inside. */
static bool epctx__is_whole(epctx_view view)
{
    epctx_view whole = epctx__slot_view(view.slot);
    return view.data == whole.data && view.size == whole.size;
}

static bool epctx__has_view(epctx_view view)
{
    return view.slot != NULL || view.data != NULL;
}

EPCTX_API epctx_cursor epctx_fields(epctx_view message, uint32_t number)
{
    epctx_cursor cursor = {NULL, NULL, NULL, NULL, NULL, NULL, 0};
    cursor.number = number;
    cursor.owner = message.slot;
    if (message.slot != NULL && message.slot->message != NULL && epctx__is_whole(message)) {
        cursor.slot = message.slot->message->first;
    } else if (message.data != NULL) {
        cursor.next = message.data;
        cursor.end = message.data + message.size;
    }
    return cursor;
}

static void epctx__field_of(const epctx__token *t, const uint8_t *after, const epctx_slot *owner,
                            epctx_field *field)
{
    field->number = t->number;
    field->wire = t->wire;
    field->value = t->value;
    field->body = t->wire == EPCTX_WIRE_LEN
                      ? epctx__bytes_view(owner, t->body, (size_t)(after - t->body))
                      : epctx__no_view();
}

static void epctx__slot_field(const epctx_slot *slot, epctx_field *field)
{
    epctx__token t;
    if (slot->wire == EPCTX_WIRE_LEN) {
        field->number = slot->number;
        field->wire = EPCTX_WIRE_LEN;
        field->value = 0;
        field->body = epctx__slot_view(slot);
        return;
    }
    epctx__field_of(&t, epctx__next(slot->data, slot->data + slot->size, 100, &t), slot, field);
}

EPCTX_API bool epctx_next_field(epctx_cursor *cursor, epctx_field *field)
{
    while (cursor->slot != NULL) {
        const epctx_slot *slot = cursor->slot;
        cursor->slot = slot->next;
        if (!slot->removed && (cursor->number == 0 || slot->number == cursor->number)) {
            epctx__slot_field(slot, field);
            return true;
        }
    }
    while (cursor->next != NULL && cursor->next < cursor->end) {
        epctx__token t;
        const uint8_t *after = epctx__next(cursor->next, cursor->end, 100, &t);
        cursor->next = after; /* NULL ends the walk: bytes that open did not check */
        if (after != NULL && (cursor->number == 0 || t.number == cursor->number)) {
            epctx__field_of(&t, after, cursor->owner, field);
            return true;
        }
    }
    return false;
}

/* Moves to the next field that may hold repeated scalars of the given unpacked wire type. */
static bool epctx__next_scalar(epctx_cursor *cursor, epctx_wire wire, uint64_t *value)
{
    epctx_field field;
    for (;;) {
        if (cursor->packed != NULL && cursor->packed < cursor->packed_end) {
            if (wire == EPCTX_WIRE_VARINT) {
                cursor->packed = epctx__varint(cursor->packed, cursor->packed_end, 10, value);
            } else if (cursor->packed_end - cursor->packed >= 4) {
                *value = epctx__le32(cursor->packed);
                cursor->packed += 4;
            } else {
                cursor->packed = NULL;
            }
            if (cursor->packed != NULL) {
                return true;
            }
        }
        if (!epctx_next_field(cursor, &field)) {
            return false;
        }
        if (field.wire == wire) {
            *value = field.value;
            return true;
        }
        if (field.wire == EPCTX_WIRE_LEN) {
            cursor->packed = field.body.data;
            cursor->packed_end = field.body.data + field.body.size;
        }
    }
}

EPCTX_API bool epctx_next_int(epctx_cursor *cursor, int64_t *value)
{
    uint64_t bits;
    if (!epctx__next_scalar(cursor, EPCTX_WIRE_VARINT, &bits)) {
        return false;
    }
    *value = (int64_t)bits;
    return true;
}

static float epctx__float(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

EPCTX_API bool epctx_next_float(epctx_cursor *cursor, float *value)
{
    uint64_t bits;
    if (!epctx__next_scalar(cursor, EPCTX_WIRE_FIXED32, &bits)) {
        return false;
    }
    *value = epctx__float(bits);
    return true;
}

static epctx_str epctx__view_str(epctx_view view)
{
    return epctx__str(view.data, view.size);
}

EPCTX_API bool epctx_next_str(epctx_cursor *cursor, epctx_str *value)
{
    epctx_field field;
    while (epctx_next_field(cursor, &field)) {
        if (field.wire == EPCTX_WIRE_LEN) {
            *value = epctx__view_str(field.body);
            return true;
        }
    }
    return false;
}

/* The next field with a payload. */
static bool epctx__next_body(epctx_cursor *cursor, epctx_view *body)
{
    epctx_field field;
    while (epctx_next_field(cursor, &field)) {
        if (field.wire == EPCTX_WIRE_LEN) {
            *body = field.body;
            return true;
        }
    }
    return false;
}

static size_t epctx__count(epctx_cursor cursor)
{
    epctx_view body;
    size_t count = 0;
    while (epctx__next_body(&cursor, &body)) {
        count++;
    }
    return count;
}

/* -- nanopb: is the linked library built like the header we see? -- */

typedef struct epctx__probe {
    pb_istream_t stream;
    uint8_t guard[32];
    bool called;
} epctx__probe;

#ifndef PB_BUFFER_ONLY
static bool epctx__probe_read(pb_istream_t *stream, pb_byte_t *out, size_t count)
{
    const uint8_t *p = (const uint8_t *)stream->state;
    ((epctx__probe *)(void *)stream)->called = true;
    if (out != NULL) {
        memcpy(out, p, count);
    }
    stream->state = (void *)((uintptr_t)p + count);
    return true;
}
#endif

/* PB_NO_ERRMSG and PB_BUFFER_ONLY change pb_istream_t but no symbol. Decoding a constant with our
 * own callback and then provoking an error shows both before a real stream is at stake. */
static bool epctx__nanopb_matches(void)
{
    static const uint8_t bytes[4] = {0x08, 0x96, 0x01, 0x0f};
    epctx__probe probe;
    pb_wire_type_t wire;
    uint32_t tag = 0;
    uint64_t value = 0;
    bool eof = false;
    size_t i;
    memset(&probe, 0, sizeof probe);
    memset(probe.guard, 0xa5, sizeof probe.guard);
#ifdef PB_BUFFER_ONLY
    probe.stream = pb_istream_from_buffer(bytes, sizeof bytes);
    probe.called = true;
#else
    probe.stream.callback = epctx__probe_read;
    probe.stream.state = (void *)(uintptr_t)bytes;
    probe.stream.bytes_left = sizeof bytes;
#endif
    if (!pb_decode_tag(&probe.stream, &wire, &tag, &eof) || wire != PB_WT_VARINT || tag != 1 ||
        !pb_decode_varint(&probe.stream, &value) || value != 150 || !probe.called ||
        pb_skip_field(&probe.stream, (pb_wire_type_t)7)) {
        return false;
    }
#ifndef PB_NO_ERRMSG
    if (probe.stream.errmsg == NULL) {
        return false;
    }
#endif
    for (i = 0; i < sizeof probe.guard; i++) {
        if (probe.guard[i] != 0xa5) {
            return false;
        }
    }
    return true;
}

/* ================================================================================================
 * >>onnx
 * ============================================================================================== */

/* External data that was mapped for a graph record. */
typedef struct epctx__file {
    struct epctx__file *next;
    const char *path;
    epctx_str name; /* as the model stores it */
    epctx_mapping mapping;
} epctx__file;

static epctx_slot *epctx__append_slot(epctx_arena *arena, epctx_slot *parent, const epctx__token *t,
                                      const uint8_t *after)
{
    epctx_slot *slot = (epctx_slot *)epctx__arena_raw(arena, sizeof *slot);
    if (slot == NULL) {
        return NULL;
    }
    slot->next = NULL;
    slot->parent = parent;
    slot->data = t->start;
    slot->size = (size_t)(after - t->start);
    slot->message = NULL;
    slot->number = t->number;
    slot->wire = (uint8_t)t->wire;
    slot->head = (uint8_t)(t->wire == EPCTX_WIRE_LEN ? t->body - t->start : 0);
    slot->split = 0;
    slot->removed = false;
    if (parent->message->last != NULL) {
        parent->message->last->next = slot;
    } else {
        parent->message->first = slot;
    }
    parent->message->last = slot;
    return slot;
}

static bool epctx__open_slot(epctx_arena *arena, epctx_slot *slot, epctx__type type,
                             epctx__check *check, uint32_t depth);

/* Makes the slots of a message that has none yet. */
static bool epctx__fill_message(epctx_arena *arena, epctx_slot *slot, epctx__type type,
                                epctx__check *check, uint32_t depth)
{
    epctx_view body = epctx__slot_view(slot);
    const uint8_t *p = body.data;
    const uint8_t *end = body.size > 0 ? body.data + body.size : body.data;
    uint32_t seen = 0;
    while (p < end) {
        epctx__token t;
        epctx_slot *child;
        const uint8_t *after = epctx__next(p, end, depth, &t);
        if (after == NULL) {
            return check != NULL && epctx__refuse(check, EPCTX_ERR_PROTOBUF, p,
                                                  "there is no valid protobuf field");
        }
        child = epctx__append_slot(arena, slot, &t, after);
        if (child == NULL) {
            return false;
        }
        if (check != NULL && type == EPCTX__T_MODEL && t.number == 7 && t.wire == EPCTX_WIRE_LEN &&
            depth > 0 && (seen & 1u << 7) == 0) {
            seen |= 1u << 7; /* a second one is noticed below */
            if (!epctx__open_slot(arena, child, EPCTX__T_GRAPH, check, depth - 1)) {
                return false;
            }
        } else if (check != NULL && !epctx__check_field(check, type, &t, after, depth, &seen)) {
            return false;
        }
        p = after;
    }
    return true;
}

/* Opens the payload of a slot up into slots, all of them or none: half a message would be written
 * as half a message. `check` NULL: the bytes were checked before. With it, everything below is
 * checked on the way, and a main graph is opened too. */
static bool epctx__open_slot(epctx_arena *arena, epctx_slot *slot, epctx__type type,
                             epctx__check *check, uint32_t depth)
{
    slot->message = (epctx__message *)epctx_arena_alloc(arena, sizeof *slot->message);
    if (slot->message == NULL) {
        return false;
    }
    if (!epctx__fill_message(arena, slot, type, check, depth)) {
        slot->message = NULL;
        return false;
    }
    return true;
}

/* Files that people take for models. Looked at only when the bytes were refused. */
static const char *epctx__lookalike(epctx_span bytes)
{
    static const char lfs[] = "version https://git-lfs";
    if (bytes.size >= sizeof lfs - 1 && memcmp(bytes.data, lfs, sizeof lfs - 1) == 0) {
        return "this is a git-lfs pointer, not the model: run 'git lfs pull'";
    }
    if (bytes.size >= 8 && memcmp(bytes.data + 4, "ORTM", 4) == 0) {
        return "this is an .ort file (flatbuffers), an ONNX protobuf was expected";
    }
    if (bytes.size >= 2 && bytes.data[0] == 0x1f && bytes.data[1] == 0x8b) {
        return "this is a gzip archive: unpack it first";
    }
    if (bytes.size >= 4 && memcmp(bytes.data, "PK\003\004", 4) == 0) {
        return "this is a zip archive: unpack it first";
    }
    return NULL;
}

/* The most frequent damage is a file that was cut off: then a field is longer than what is left. */
static void epctx__refused_field(const uint8_t *p, const uint8_t *end, epctx__text *text)
{
    uint64_t size = 0;
    uint32_t tag = 0;
    const uint8_t *after = epctx__tag(p, end, &tag);
    if (after != NULL && (tag & 7) == EPCTX_WIRE_LEN && tag >> 3 != 0) {
        after = epctx__varint(after, end, 5, &size);
        if (after != NULL && size > (uint64_t)(end - after)) {
            epctx__text_str(text, "field ", 6);
            epctx__text_number(text, tag >> 3, 10);
            epctx__text_str(text, " wants ", 7);
            epctx__text_number(text, size, 10);
            epctx__text_str(text, " bytes, the file has ", 21);
            epctx__text_number(text, (uint64_t)(end - after), 10);
            epctx__text_str(text, " left: is it cut off?", 21);
        }
    }
    text->data[text->size] = '\0';
}

static epctx_status epctx__refused(const epctx_model *model, const epctx__check *check,
                                   epctx_error *error)
{
    char more[128];
    epctx__text text = epctx__text_of(more, sizeof more);
    const char *lookalike = epctx__lookalike(model->source);
    uint64_t at;
    if (check->reason == NULL) {
        return epctx__nomem(error, model->arena.missing);
    }
    at = (uint64_t)(check->bad - model->source.data);
    if (lookalike != NULL) {
        epctx_fail(error, check->status, "%s", lookalike);
    } else {
        epctx__refused_field(check->bad, model->source.data + model->source.size, &text);
        epctx_fail(error, check->status, "not an ONNX protobuf: byte %u of %u: %s", at,
                   (uint64_t)model->source.size, more[0] != '\0' ? more : check->reason);
    }
    if (error != NULL) {
        error->offset = at;
    }
    return check->status;
}

static epctx_slot *epctx__find_graph(epctx_slot *root)
{
    epctx_slot *slot = root->message->first;
    while (slot != NULL && (slot->number != 7 || slot->wire != EPCTX_WIRE_LEN || slot->removed)) {
        slot = slot->next;
    }
    return slot;
}

static epctx_slot *epctx__new_root(epctx_model *model)
{
    epctx_slot *root = (epctx_slot *)epctx_arena_alloc(&model->arena, sizeof *root);
    if (root != NULL) {
        root->data = model->source.data;
        root->size = model->source.size;
        root->wire = EPCTX_WIRE_LEN;
    }
    return root;
}

/* libprotobuf merges a singular message that stands twice: the fields of the second follow those of
 * the first. In TypeProto, where the messages are a oneof, another member in between throws the
 * first away. Opens everything, which only models with such fields pay for. */
static bool epctx__merge_doubled(epctx_arena *arena, epctx_slot *slot, epctx__type type,
                                 uint32_t depth)
{
    epctx_slot *seen[24] = {NULL};
    epctx_slot *child;
    uint32_t i;
    if (slot->message == NULL && !epctx__open_slot(arena, slot, type, NULL, 100)) {
        return false;
    }
    for (child = slot->message->first; child != NULL; child = child->next) {
        uint32_t kind = epctx__field_kind(type, child->number);
        epctx_slot *first;
        bool good;
        if (child->wire != EPCTX_WIRE_LEN || !epctx__is_message(kind) ||
            (kind & EPCTX__ONE) == 0) {
            continue;
        }
        for (i = 0; type == EPCTX__T_TYPE && i < 24; i++) {
            if (seen[i] != NULL && i != child->number) {
                seen[i]->removed = true;
                seen[i] = NULL;
            }
        }
        first = seen[child->number];
        if (first == NULL) {
            seen[child->number] = child;
            continue;
        }
        if (first->message == NULL &&
            !epctx__open_slot(arena, first, epctx__message_type(kind), NULL, 100)) {
            return false;
        }
        /* Its fields go straight behind those of the first. */
        child->message = first->message;
        good = epctx__fill_message(arena, child, epctx__message_type(kind), NULL, 100);
        child->message = NULL;
        child->removed = true;
        if (!good) {
            return false;
        }
    }
    for (child = slot->message->first; child != NULL; child = child->next) {
        uint32_t kind = epctx__field_kind(type, child->number);
        if (child->wire == EPCTX_WIRE_LEN && epctx__is_message(kind) && !child->removed &&
            depth > 0 &&
            !epctx__merge_doubled(arena, child, epctx__message_type(kind), depth - 1)) {
            return false;
        }
    }
    return true;
}

/* Builds the tree over model->source. */
static epctx_status epctx__model_parse(epctx_model *model, epctx_error *error)
{
    epctx__check check;
    memset(&check, 0, sizeof check);
    check.fields = model->limits.max_fields;
    if (model->source.size == 0) {
        return epctx_fail(error, EPCTX_ERR_PROTOBUF, "the model is empty (0 bytes)");
    }
    if (model->source.size > model->limits.max_size) {
        return epctx_fail(error, EPCTX_ERR_LIMIT,
                          "the model has %u bytes, epctx_limits.max_size allows %u",
                          (uint64_t)model->source.size, model->limits.max_size);
    }
    model->root = model->shown = epctx__new_root(model);
    if (model->root == NULL) {
        return epctx__nomem(error, model->arena.missing);
    }
    if (!epctx__open_slot(&model->arena, model->root, EPCTX__T_MODEL, &check,
                          model->limits.max_depth)) {
        return epctx__refused(model, &check, error);
    }
    model->duplicate = check.duplicate;
    if (model->duplicate) {
        model->shown = epctx__new_root(model);
        if (model->shown == NULL ||
            !epctx__merge_doubled(&model->arena, model->shown, EPCTX__T_MODEL, 100)) {
            return epctx__nomem(error, model->arena.missing);
        }
    }
    model->graph = epctx__find_graph(model->root);
    model->shown_graph = epctx__find_graph(model->shown);
    return EPCTX_OK;
}

static epctx_limits epctx__limits(const epctx_limits *limits)
{
    epctx_limits out = {100, UINT64_MAX, UINT64_MAX};
    if (limits->max_depth != 0 && limits->max_depth < out.max_depth) {
        out.max_depth = limits->max_depth;
    }
    if (limits->max_size != 0) {
        out.max_size = limits->max_size;
    }
    if (limits->max_fields != 0) {
        out.max_fields = limits->max_fields;
    }
    return out;
}

static epctx_status epctx__model_init(epctx_model *model, const char *path,
                                      const epctx_open_opts *opts, epctx_error *error)
{
    static const epctx_open_opts defaults = {NULL, NULL, 0, NULL, NULL, {0, 0, 0}, 0};
    const epctx_open_opts *o = opts != NULL ? opts : &defaults;
    epctx_error_clear(error);
    memset(model, 0, sizeof *model);
    if (!epctx__nanopb_matches()) {
        return epctx_fail(error, EPCTX_ERR_CONFIG,
                          "nanopb was built with other PB_NO_ERRMSG or PB_BUFFER_ONLY settings "
                          "than this program");
    }
    if (o->buffer != NULL) {
        epctx_arena_init_fixed(&model->arena, o->buffer, o->buffer_size);
    } else {
        epctx_arena_init(&model->arena, o->allocator);
    }
    model->io = o->io != NULL ? o->io : epctx_io_files();
    model->limits = epctx__limits(&o->limits);
    model->path_flags = o->path_flags;
    model->path = epctx_arena_copy(&model->arena, epctx_str_of(path));
    model->external_folder =
        epctx_arena_copy(&model->arena, epctx_str_of(o->external_folder));
    if (model->path == NULL || model->external_folder == NULL) {
        return epctx__nomem(error, model->arena.missing);
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_model_open_file(epctx_model *model, const char *path,
                                             const epctx_open_opts *opts, epctx_error *error)
{
    epctx_status status;
    if (model == NULL || path == NULL) {
        epctx_error_clear(error);
        return epctx_fail(error, EPCTX_ERR_ARG, "model and path must not be NULL");
    }
    status = epctx__model_init(model, path, opts, error);
    if (status == EPCTX_OK && model->io == NULL) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    }
    if (status == EPCTX_OK) {
        status = model->io->map_fn(model->io->user, path, &model->mapping, error);
    }
    if (status == EPCTX_OK) {
        model->source.data = model->mapping.data;
        model->source.size = model->mapping.size;
        status = epctx__model_parse(model, error);
    }
    if (status != EPCTX_OK) {
        epctx_blame(error, path, NULL, NULL);
        epctx_model_close(model);
    }
    return status;
}

EPCTX_API epctx_status epctx_model_open_memory(epctx_model *model, const void *data, size_t size,
                                               const epctx_open_opts *opts, epctx_error *error)
{
    epctx_status status;
    if (model == NULL || (data == NULL && size > 0)) {
        epctx_error_clear(error);
        return epctx_fail(error, EPCTX_ERR_ARG, "model and data must not be NULL");
    }
    status = epctx__model_init(model, "", opts, error);
    if (status == EPCTX_OK) {
        model->source.data = (const uint8_t *)data;
        model->source.size = size;
        status = epctx__model_parse(model, error);
    }
    if (status != EPCTX_OK) {
        epctx_model_close(model);
    }
    return status;
}

EPCTX_API void epctx_model_close(epctx_model *model)
{
    epctx__file *file;
    if (model == NULL) {
        return;
    }
    for (file = model->files; file != NULL; file = file->next) {
        model->io->unmap_fn(model->io->user, &file->mapping);
    }
    if (model->mapping.handle != NULL) {
        model->io->unmap_fn(model->io->user, &model->mapping);
    }
    epctx_arena_free(&model->arena);
    memset(model, 0, sizeof *model);
}

EPCTX_API epctx_model_info epctx_model_read(const epctx_model *model)
{
    epctx_model_info info;
    epctx_cursor it;
    epctx_field f;
    memset(&info, 0, sizeof info);
    info.view = epctx__slot_view(model->shown);
    it = epctx_fields(info.view, 0);
    while (epctx_next_field(&it, &f)) {
        bool len = f.wire == EPCTX_WIRE_LEN;
        if (f.number == 1 && f.wire == EPCTX_WIRE_VARINT) {
            info.ir_version = (int64_t)f.value;
        } else if (f.number == 2 && len) {
            info.producer_name = epctx__view_str(f.body);
        } else if (f.number == 3 && len) {
            info.producer_version = epctx__view_str(f.body);
        } else if (f.number == 4 && len) {
            info.domain = epctx__view_str(f.body);
        } else if (f.number == 5 && f.wire == EPCTX_WIRE_VARINT) {
            info.model_version = (int64_t)f.value;
        } else if (f.number == 6 && len) {
            info.doc_string = epctx__view_str(f.body);
        } else if (f.number == 25 && len) {
            info.function_count++;
        }
    }
    return info;
}

EPCTX_API bool epctx_model_has_graph(const epctx_model *model)
{
    return model->shown_graph != NULL;
}

EPCTX_API epctx_graph_view epctx_model_graph(const epctx_model *model)
{
    return epctx_graph_of(model->shown_graph != NULL ? epctx__slot_view(model->shown_graph)
                                                     : epctx__no_view());
}

EPCTX_API epctx_graph_view epctx_graph_of(epctx_view view)
{
    epctx_graph_view graph;
    epctx_cursor it = epctx_fields(view, 2);
    epctx_str text;
    memset(&graph, 0, sizeof graph);
    graph.view = view;
    while (epctx_next_str(&it, &text)) {
        graph.name = text;
    }
    it = epctx_fields(view, 10);
    while (epctx_next_str(&it, &text)) {
        graph.doc_string = text;
    }
    return graph;
}

EPCTX_API epctx_node_view epctx_node_of(epctx_view view)
{
    epctx_node_view node;
    epctx_cursor it = epctx_fields(view, 0);
    epctx_field f;
    memset(&node, 0, sizeof node);
    node.view = view;
    while (epctx_next_field(&it, &f)) {
        if (f.wire != EPCTX_WIRE_LEN) {
            continue;
        }
        switch (f.number) {
        case 1:
            node.input_count++;
            break;
        case 2:
            node.output_count++;
            break;
        case 3:
            node.name = epctx__view_str(f.body);
            break;
        case 4:
            node.op_type = epctx__view_str(f.body);
            break;
        case 5:
            node.attr_count++;
            break;
        case 6:
            node.doc_string = epctx__view_str(f.body);
            break;
        case 7:
            node.domain = epctx__view_str(f.body);
            break;
        case 8:
            node.overload = epctx__view_str(f.body);
            break;
        default:
            break;
        }
    }
    return node;
}

EPCTX_API epctx_attr_view epctx_attr_of(epctx_view view)
{
    epctx_attr_view attr;
    epctx_cursor it = epctx_fields(view, 0);
    epctx_field f;
    memset(&attr, 0, sizeof attr);
    attr.view = view;
    while (epctx_next_field(&it, &f)) {
        bool len = f.wire == EPCTX_WIRE_LEN;
        if (f.number == 1 && len) {
            attr.name = epctx__view_str(f.body);
        } else if (f.number == 2 && f.wire == EPCTX_WIRE_FIXED32) {
            attr.f = epctx__float(f.value);
        } else if (f.number == 3 && f.wire == EPCTX_WIRE_VARINT) {
            attr.i = (int64_t)f.value;
        } else if (f.number == 4 && len) {
            attr.s = epctx__view_str(f.body);
        } else if (f.number == 5 && len) {
            attr.t = f.body;
        } else if (f.number == 6 && len) {
            attr.g = f.body;
        } else if (f.number == 20 && f.wire == EPCTX_WIRE_VARINT && (uint32_t)f.value <= 14) {
            attr.type = (int32_t)(uint32_t)f.value;
        } else if (f.number == 21 && len) {
            attr.ref_attr_name = epctx__view_str(f.body);
        }
    }
    return attr;
}

/* Decimal text as external_data stores it; UINT64_MAX when it is not a number. */
static uint64_t epctx__decimal(epctx_str text)
{
    uint64_t value = 0;
    size_t i;
    for (i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10) {
            return UINT64_MAX;
        }
        value = value * 10 + digit;
    }
    return text.size > 0 ? value : UINT64_MAX;
}

/* StringStringEntryProto. */
static void epctx__pair(epctx_view view, epctx_str *key, epctx_str *value)
{
    epctx_cursor it = epctx_fields(view, 0);
    epctx_field f;
    *key = *value = epctx_str_of(NULL);
    while (epctx_next_field(&it, &f)) {
        if (f.wire == EPCTX_WIRE_LEN && f.number == 1) {
            *key = epctx__view_str(f.body);
        } else if (f.wire == EPCTX_WIRE_LEN && f.number == 2) {
            *value = epctx__view_str(f.body);
        }
    }
}

static void epctx__external_entry(epctx_tensor_view *tensor, epctx_view view)
{
    epctx_str key, value;
    epctx__pair(view, &key, &value);
    if (epctx_str_is(key, "location")) {
        tensor->location = value;
    } else if (epctx_str_is(key, "offset")) {
        tensor->offset = epctx__decimal(value);
    } else if (epctx_str_is(key, "length")) {
        tensor->length = epctx__decimal(value);
    }
}

EPCTX_API epctx_tensor_view epctx_tensor_of(epctx_view view)
{
    epctx_tensor_view tensor;
    epctx_cursor it = epctx_fields(view, 0);
    epctx_field f;
    int64_t dim;
    memset(&tensor, 0, sizeof tensor);
    tensor.view = view;
    tensor.length = UINT64_MAX;
    while (epctx_next_field(&it, &f)) {
        bool len = f.wire == EPCTX_WIRE_LEN;
        if (f.number == 2 && f.wire == EPCTX_WIRE_VARINT) {
            tensor.elem_type = (int32_t)(uint32_t)f.value;
        } else if (f.number == 8 && len) {
            tensor.name = epctx__view_str(f.body);
        } else if (f.number == 9 && len) {
            tensor.has_raw = true;
            tensor.raw.data = f.body.data;
            tensor.raw.size = f.body.size;
        } else if (f.number == 13 && len) {
            epctx__external_entry(&tensor, f.body);
        } else if (f.number == 14 && f.wire == EPCTX_WIRE_VARINT && (uint32_t)f.value <= 1) {
            tensor.external = (uint32_t)f.value == 1;
        }
    }
    it = epctx_tensor_dims(&tensor);
    while (epctx_next_int(&it, &dim)) {
        tensor.rank++;
    }
    return tensor;
}

EPCTX_API epctx_value_view epctx_value_of(epctx_view view)
{
    epctx_value_view value;
    epctx_cursor it = epctx_fields(view, 0);
    epctx_view type = epctx__no_view();
    epctx_view tensor = epctx__no_view();
    epctx_field f;
    memset(&value, 0, sizeof value);
    value.view = view;
    while (epctx_next_field(&it, &f)) {
        if (f.number == 1 && f.wire == EPCTX_WIRE_LEN) {
            value.name = epctx__view_str(f.body);
        } else if (f.number == 2 && f.wire == EPCTX_WIRE_LEN) {
            value.has_type = true;
            type = f.body;
        }
    }
    /* TypeProto.value is a oneof: the last member wins. */
    it = epctx_fields(type, 0);
    while (epctx_next_field(&it, &f)) {
        if (f.wire == EPCTX_WIRE_LEN && f.number != 6 &&
            epctx__field_kind(EPCTX__T_TYPE, f.number) != 0) {
            value.is_tensor = f.number == 1;
            tensor = f.body;
        }
    }
    it = epctx_fields(value.is_tensor ? tensor : epctx__no_view(), 0);
    while (epctx_next_field(&it, &f)) {
        if (f.number == 1 && f.wire == EPCTX_WIRE_VARINT) {
            value.elem_type = (int32_t)(uint32_t)f.value;
        } else if (f.number == 2 && f.wire == EPCTX_WIRE_LEN) {
            value.has_shape = true;
            value.shape = f.body;
        }
    }
    return value;
}

EPCTX_API epctx_cursor epctx_graph_nodes(epctx_graph_view graph)
{
    return epctx_fields(graph.view, 1);
}

EPCTX_API epctx_cursor epctx_graph_inputs(epctx_graph_view graph)
{
    return epctx_fields(graph.view, 11);
}

EPCTX_API epctx_cursor epctx_graph_outputs(epctx_graph_view graph)
{
    return epctx_fields(graph.view, 12);
}

EPCTX_API epctx_cursor epctx_graph_values(epctx_graph_view graph)
{
    return epctx_fields(graph.view, 13);
}

EPCTX_API epctx_cursor epctx_graph_initializers(epctx_graph_view graph)
{
    return epctx_fields(graph.view, 5);
}

EPCTX_API epctx_cursor epctx_node_inputs(const epctx_node_view *node)
{
    return epctx_fields(node->view, 1);
}

EPCTX_API epctx_cursor epctx_node_outputs(const epctx_node_view *node)
{
    return epctx_fields(node->view, 2);
}

EPCTX_API epctx_cursor epctx_node_attrs(const epctx_node_view *node)
{
    return epctx_fields(node->view, 5);
}

EPCTX_API epctx_cursor epctx_tensor_dims(const epctx_tensor_view *tensor)
{
    return epctx_fields(tensor->view, 1);
}

EPCTX_API epctx_cursor epctx_value_dims(const epctx_value_view *value)
{
    return epctx_fields(value->shape, 1);
}

EPCTX_API bool epctx_next_node(epctx_cursor *cursor, epctx_node_view *node)
{
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    *node = epctx_node_of(body);
    return true;
}

EPCTX_API bool epctx_next_attr(epctx_cursor *cursor, epctx_attr_view *attr)
{
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    *attr = epctx_attr_of(body);
    return true;
}

EPCTX_API bool epctx_next_tensor(epctx_cursor *cursor, epctx_tensor_view *tensor)
{
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    *tensor = epctx_tensor_of(body);
    return true;
}

EPCTX_API bool epctx_next_value(epctx_cursor *cursor, epctx_value_view *value)
{
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    *value = epctx_value_of(body);
    return true;
}

/* A oneof of dimension and dim_param, as fields 1 and 2: the last member wins. */
static void epctx__dim(epctx_view view, epctx_dim *dim)
{
    epctx_cursor it = epctx_fields(view, 0);
    epctx_field f;
    memset(dim, 0, sizeof *dim);
    while (epctx_next_field(&it, &f)) {
        if (f.number == 1 && f.wire == EPCTX_WIRE_VARINT) {
            dim->known = true;
            dim->value = (int64_t)f.value;
            dim->param = epctx_str_of(NULL);
        } else if (f.number == 2 && f.wire == EPCTX_WIRE_LEN) {
            dim->known = false;
            dim->value = 0;
            dim->param = epctx__view_str(f.body);
        }
    }
}

EPCTX_API bool epctx_next_dim(epctx_cursor *cursor, epctx_dim *dim)
{
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    epctx__dim(body, dim);
    return true;
}

EPCTX_API epctx_cursor epctx_model_opsets(const epctx_model *model)
{
    return epctx_fields(epctx__slot_view(model->shown), 8);
}

EPCTX_API epctx_cursor epctx_model_functions(const epctx_model *model)
{
    return epctx_fields(epctx__slot_view(model->shown), 25);
}

EPCTX_API epctx_cursor epctx_model_trainings(const epctx_model *model)
{
    return epctx_fields(epctx__slot_view(model->shown), 20);
}

EPCTX_API epctx_cursor epctx_graph_sparse(epctx_graph_view graph)
{
    return epctx_fields(graph.view, 15);
}

EPCTX_API epctx_cursor epctx_graph_annotations(epctx_graph_view graph)
{
    return epctx_fields(graph.view, 14);
}

EPCTX_API epctx_cursor epctx_function_opsets(const epctx_function_view *function)
{
    return epctx_fields(function->view, 9);
}

EPCTX_API epctx_cursor epctx_function_nodes(const epctx_function_view *function)
{
    return epctx_fields(function->view, 7);
}

EPCTX_API epctx_cursor epctx_function_inputs(const epctx_function_view *function)
{
    return epctx_fields(function->view, 4);
}

EPCTX_API epctx_cursor epctx_function_outputs(const epctx_function_view *function)
{
    return epctx_fields(function->view, 5);
}

EPCTX_API epctx_cursor epctx_training_bindings(const epctx_training_view *training, bool updates)
{
    return epctx_fields(training->view, updates ? 4 : 3);
}

EPCTX_API epctx_cursor epctx_type_dims(const epctx_type_view *type)
{
    return epctx_fields(type->shape, 1);
}

EPCTX_API epctx_cursor epctx_metadata(epctx_view view, epctx_owner owner)
{
    return epctx_fields(view, (uint32_t)owner);
}

EPCTX_API epctx_cursor epctx_annotation_pairs(const epctx_annotation_view *annotation)
{
    return epctx_fields(annotation->view, 2);
}

EPCTX_API bool epctx_next_opset(epctx_cursor *cursor, epctx_opset *opset)
{
    epctx_cursor it;
    epctx_field f;
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    memset(opset, 0, sizeof *opset);
    it = epctx_fields(body, 0);
    while (epctx_next_field(&it, &f)) {
        if (f.number == 1 && f.wire == EPCTX_WIRE_LEN) {
            opset->domain = epctx__view_str(f.body);
        } else if (f.number == 2 && f.wire == EPCTX_WIRE_VARINT) {
            opset->version = (int64_t)f.value;
        }
    }
    return true;
}

EPCTX_API bool epctx_next_pair(epctx_cursor *cursor, epctx_pair *pair)
{
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    epctx__pair(body, &pair->key, &pair->value);
    return true;
}

EPCTX_API bool epctx_next_function(epctx_cursor *cursor, epctx_function_view *function)
{
    epctx_cursor it;
    epctx_field f;
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    memset(function, 0, sizeof *function);
    function->view = body;
    it = epctx_fields(body, 0);
    while (epctx_next_field(&it, &f)) {
        if (f.wire != EPCTX_WIRE_LEN) {
            continue;
        }
        function->input_count += f.number == 4;
        function->output_count += f.number == 5;
        function->node_count += f.number == 7;
        if (f.number == 1) {
            function->name = epctx__view_str(f.body);
        } else if (f.number == 8) {
            function->doc_string = epctx__view_str(f.body);
        } else if (f.number == 10) {
            function->domain = epctx__view_str(f.body);
        } else if (f.number == 13) {
            function->overload = epctx__view_str(f.body);
        }
    }
    return true;
}

EPCTX_API bool epctx_next_sparse(epctx_cursor *cursor, epctx_sparse_view *sparse)
{
    epctx_cursor it;
    epctx_field f;
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    memset(sparse, 0, sizeof *sparse);
    sparse->view = body;
    it = epctx_fields(body, 0);
    while (epctx_next_field(&it, &f)) {
        if (f.wire == EPCTX_WIRE_LEN && f.number == 1) {
            sparse->values = epctx_tensor_of(f.body);
        } else if (f.wire == EPCTX_WIRE_LEN && f.number == 2) {
            sparse->indices = epctx_tensor_of(f.body);
        }
    }
    return true;
}

EPCTX_API bool epctx_next_annotation(epctx_cursor *cursor, epctx_annotation_view *annotation)
{
    epctx_cursor it;
    if (!epctx__next_body(cursor, &annotation->view)) {
        return false;
    }
    annotation->tensor_name = epctx_str_of(NULL);
    it = epctx_fields(annotation->view, 1);
    while (epctx_next_str(&it, &annotation->tensor_name)) {
    }
    return true;
}

EPCTX_API bool epctx_next_training(epctx_cursor *cursor, epctx_training_view *training)
{
    epctx_cursor it;
    epctx_field f;
    epctx_view body;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    memset(training, 0, sizeof *training);
    training->view = body;
    it = epctx_fields(body, 0);
    while (epctx_next_field(&it, &f)) {
        if (f.wire == EPCTX_WIRE_LEN && f.number == 1) {
            training->initialization = epctx_graph_of(f.body);
        } else if (f.wire == EPCTX_WIRE_LEN && f.number == 2) {
            training->algorithm = epctx_graph_of(f.body);
        }
    }
    return true;
}

EPCTX_API epctx_cursor epctx_model_device_configs(const epctx_model *model)
{
    return epctx_fields(epctx__slot_view(model->shown), 26);
}

EPCTX_API epctx_cursor epctx_device_config_devices(const epctx_device_config_view *config)
{
    return epctx_fields(config->view, 3);
}

EPCTX_API epctx_cursor epctx_node_configs(const epctx_node_view *node)
{
    return epctx_fields(node->view, 10);
}

EPCTX_API epctx_cursor epctx_node_config_shardings(const epctx_node_config_view *config)
{
    return epctx_fields(config->view, 2);
}

EPCTX_API epctx_cursor epctx_sharding_devices(const epctx_sharding_view *sharding)
{
    return epctx_fields(sharding->view, 2);
}

EPCTX_API epctx_cursor epctx_sharding_groups(const epctx_sharding_view *sharding)
{
    return epctx_fields(sharding->view, 3);
}

EPCTX_API epctx_cursor epctx_sharding_dims(const epctx_sharding_view *sharding)
{
    return epctx_fields(sharding->view, 4);
}

EPCTX_API epctx_cursor epctx_device_group_devices(const epctx_device_group_view *group)
{
    return epctx_fields(group->view, 2);
}

EPCTX_API epctx_cursor epctx_sharded_dim_parts(const epctx_sharded_dim_view *dim)
{
    return epctx_fields(dim->view, 2);
}

/* The string in field 1 and the number in field `number` of a message, as libprotobuf reads them:
 * the last ones. False when the number is not stored. */
static bool epctx__text_and_number(epctx_view view, epctx_str *text, uint32_t number,
                                   uint64_t *value)
{
    epctx_cursor it = epctx_fields(view, 0);
    epctx_field f;
    bool found = false;
    *text = epctx_str_of(NULL);
    *value = 0;
    while (epctx_next_field(&it, &f)) {
        if (f.number == 1 && f.wire == EPCTX_WIRE_LEN) {
            *text = epctx__view_str(f.body);
        } else if (f.number == number && f.wire == EPCTX_WIRE_VARINT) {
            *value = f.value;
            found = true;
        }
    }
    return found;
}

EPCTX_API bool epctx_next_device_config(epctx_cursor *cursor, epctx_device_config_view *config)
{
    uint64_t value;
    if (!epctx__next_body(cursor, &config->view)) {
        return false;
    }
    epctx__text_and_number(config->view, &config->name, 2, &value);
    config->num_devices = (int32_t)(uint32_t)value;
    return true;
}

EPCTX_API bool epctx_next_node_config(epctx_cursor *cursor, epctx_node_config_view *config)
{
    uint64_t value;
    if (!epctx__next_body(cursor, &config->view)) {
        return false;
    }
    config->has_stage =
        epctx__text_and_number(config->view, &config->configuration_id, 3, &value);
    config->pipeline_stage = (int32_t)(uint32_t)value;
    return true;
}

EPCTX_API bool epctx_next_sharding(epctx_cursor *cursor, epctx_sharding_view *sharding)
{
    uint64_t value;
    if (!epctx__next_body(cursor, &sharding->view)) {
        return false;
    }
    epctx__text_and_number(sharding->view, &sharding->tensor_name, 0, &value);
    return true;
}

EPCTX_API bool epctx_next_device_group(epctx_cursor *cursor, epctx_device_group_view *group)
{
    epctx_str text;
    uint64_t value;
    if (!epctx__next_body(cursor, &group->view)) {
        return false;
    }
    epctx__text_and_number(group->view, &text, 1, &value);
    group->key = (int64_t)value;
    return true;
}

EPCTX_API bool epctx_next_sharded_dim(epctx_cursor *cursor, epctx_sharded_dim_view *dim)
{
    epctx_str text;
    uint64_t value;
    if (!epctx__next_body(cursor, &dim->view)) {
        return false;
    }
    epctx__text_and_number(dim->view, &text, 1, &value);
    dim->axis = (int64_t)value;
    return true;
}

EPCTX_API bool epctx_next_simple_sharding(epctx_cursor *cursor, epctx_simple_sharding *part)
{
    epctx_view body;
    epctx_str text;
    uint64_t value;
    if (!epctx__next_body(cursor, &body)) {
        return false;
    }
    epctx__dim(body, &part->dim);
    epctx__text_and_number(body, &text, 3, &value);
    part->num_shards = (int64_t)value;
    return true;
}

static epctx_type_kind epctx__type_kind(uint32_t number)
{
    static const epctx_type_kind kinds[10] = {
        EPCTX_TYPE_NONE, EPCTX_TYPE_TENSOR, EPCTX_TYPE_NONE,   EPCTX_TYPE_NONE,
        EPCTX_TYPE_SEQUENCE, EPCTX_TYPE_MAP, EPCTX_TYPE_NONE,  EPCTX_TYPE_OPAQUE,
        EPCTX_TYPE_SPARSE, EPCTX_TYPE_OPTIONAL};
    return number < 10 ? kinds[number] : EPCTX_TYPE_NONE;
}

EPCTX_API epctx_type_view epctx_type_of(epctx_view view)
{
    epctx_type_view type;
    epctx_view member = epctx__no_view();
    epctx_cursor it = epctx_fields(view, 0);
    epctx_field f;
    bool tensor;
    memset(&type, 0, sizeof type);
    type.view = view;
    /* A oneof: the last member wins. */
    while (epctx_next_field(&it, &f)) {
        if (f.wire == EPCTX_WIRE_LEN && f.number == 6) {
            type.denotation = epctx__view_str(f.body);
        } else if (f.wire == EPCTX_WIRE_LEN && epctx__type_kind(f.number) != EPCTX_TYPE_NONE) {
            type.kind = epctx__type_kind(f.number);
            member = f.body;
        }
    }
    tensor = type.kind == EPCTX_TYPE_TENSOR || type.kind == EPCTX_TYPE_SPARSE;
    it = epctx_fields(type.kind == EPCTX_TYPE_OPAQUE ? epctx__no_view() : member, 0);
    while (epctx_next_field(&it, &f)) {
        if (f.number == 1 && f.wire == EPCTX_WIRE_VARINT) {
            type.elem_type = (int32_t)(uint32_t)f.value;
        } else if (f.wire == EPCTX_WIRE_LEN && tensor && f.number == 2) {
            type.has_shape = true;
            type.shape = f.body;
        } else if (f.wire == EPCTX_WIRE_LEN && !tensor &&
                   f.number == (type.kind == EPCTX_TYPE_MAP ? 2u : 1u)) {
            type.element = f.body;
        }
    }
    return type;
}

EPCTX_API epctx_type_view epctx_value_type(const epctx_value_view *value)
{
    epctx_cursor it = epctx_fields(value->view, 2);
    epctx_view body;
    epctx_view last = epctx__no_view();
    while (epctx__next_body(&it, &body)) {
        last = body;
    }
    return epctx_type_of(last);
}

/* The default domain has two spellings. */
static bool epctx__same_domain(epctx_str a, epctx_str b)
{
    epctx_str empty = epctx_str_of(NULL);
    return epctx_str_eq(epctx_str_is(a, "ai.onnx") ? empty : a,
                        epctx_str_is(b, "ai.onnx") ? empty : b);
}

EPCTX_API int64_t epctx_model_opset(const epctx_model *model, epctx_str domain)
{
    epctx_cursor it = epctx_model_opsets(model);
    epctx_opset opset;
    int64_t version = 0;
    while (epctx_next_opset(&it, &opset)) {
        if (epctx__same_domain(opset.domain, domain)) {
            version = opset.version;
        }
    }
    return version;
}

EPCTX_API bool epctx_model_metadata(const epctx_model *model, epctx_str key, epctx_str *value)
{
    epctx_cursor it = epctx_fields(epctx__slot_view(model->shown), 14);
    epctx_view body;
    bool found = false;
    while (epctx__next_body(&it, &body)) {
        epctx_str name, text;
        epctx__pair(body, &name, &text);
        if (epctx_str_eq(name, key)) {
            *value = text;
            found = true;
        }
    }
    return found;
}

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>record
 * ============================================================================================== */

EPCTX_API size_t epctx_elem_size(int32_t elem_type)
{
    /* Index: TensorProto.DataType. Strings and types below one byte have no element size. */
    static const uint8_t sizes[25] = {0, 4, 1, 1, 2, 2,  4, 8, 0, 1, 2, 8, 4,
                                      8, 8, 16, 2, 1, 1, 1, 1, 0, 0, 0, 1};
    return elem_type >= 0 && elem_type < (int32_t)sizeof sizes ? sizes[elem_type] : 0;
}

EPCTX_API const char *epctx_elem_name(int32_t elem_type)
{
    static const char *const names[27] = {
        "unknown",    "float32",   "uint8",    "int8",       "uint16",         "int16",
        "int32",      "int64",     "string",   "bool",       "float16",        "float64",
        "uint32",     "uint64",    "complex64", "complex128", "bfloat16",      "float8e4m3fn",
        "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4",     "float4e2m1",
        "float8e8m0", "uint2",     "int2"};
    return elem_type > 0 && elem_type < 27 ? names[elem_type] : names[0];
}

EPCTX_API const epctx_attr *epctx_node_attr(const epctx_node *node, const char *name)
{
    size_t i;
    for (i = 0; i < node->attr_count; i++) {
        if (epctx_str_is(node->attrs[i].name, name)) {
            return &node->attrs[i];
        }
    }
    return NULL;
}

EPCTX_API int64_t epctx_node_int(const epctx_node *node, const char *name, int64_t fallback)
{
    const epctx_attr *attr = epctx_node_attr(node, name);
    return attr != NULL && attr->type == EPCTX_ATTR_INT ? attr->i : fallback;
}

EPCTX_API float epctx_node_float(const epctx_node *node, const char *name, float fallback)
{
    const epctx_attr *attr = epctx_node_attr(node, name);
    return attr != NULL && attr->type == EPCTX_ATTR_FLOAT ? attr->f : fallback;
}

/* The k-th value that a node reads: its inputs, then what its subgraphs read. */
static epctx_str epctx__reads(const epctx_node *node, size_t k)
{
    return k < node->input_count ? node->inputs[k] : node->captures[k - node->input_count];
}

static size_t epctx__read_count(const epctx_node *node)
{
    return node->input_count + node->capture_count;
}

/* ================================================================================================
 * >>epnode
 * ============================================================================================== */

static const char *epctx__epnode_attr_name(epctx_epnode_attr id)
{
    static const char *const names[EPCTX_EP_ATTR_COUNT] = {
#define EPCTX__EPNODE_NAME(id, name, type, member) name,
        EPCTX_EPNODE_ATTR_LIST(EPCTX__EPNODE_NAME)
#undef EPCTX__EPNODE_NAME
    };
    return names[id];
}

/* The member of an attribute: exactly one of the two pointers is set. */
static void epctx__epnode_member(epctx_epnode *node, epctx_epnode_attr id, int64_t **number,
                                 epctx_str **text)
{
    *number = NULL;
    *text = NULL;
    switch (id) {
#define EPCTX__MEMBER_INT(member)    *number = &node->member
#define EPCTX__MEMBER_STRING(member) *text = &node->member
#define EPCTX__EPNODE_CASE(id, name, type, member)                                                 \
    case EPCTX_EP_##id:                                                                            \
        EPCTX__MEMBER_##type(member);                                                              \
        break;
        EPCTX_EPNODE_ATTR_LIST(EPCTX__EPNODE_CASE)
#undef EPCTX__EPNODE_CASE
#undef EPCTX__MEMBER_INT
#undef EPCTX__MEMBER_STRING
    default:
        break;
    }
}

EPCTX_API epctx_epnode epctx_epnode_default(void)
{
    epctx_epnode node;
    memset(&node, 0, sizeof node);
    node.main_context = 1;
    node.embed_mode = 1;
    return node;
}

EPCTX_API size_t epctx_epnode_attrs(const epctx_epnode *node, epctx_attr out[EPCTX_EP_ATTR_COUNT])
{
    epctx_epnode copy = *node;
    size_t count = 0;
    int id;
    for (id = 0; id < EPCTX_EP_ATTR_COUNT; id++) {
        int64_t *number;
        epctx_str *text;
        epctx_attr *attr = &out[count];
        if ((node->present >> id & 1) == 0) {
            continue;
        }
        epctx__epnode_member(&copy, (epctx_epnode_attr)id, &number, &text);
        memset(attr, 0, sizeof *attr);
        attr->name = epctx_str_of(epctx__epnode_attr_name((epctx_epnode_attr)id));
        attr->type = number != NULL ? EPCTX_ATTR_INT : EPCTX_ATTR_STRING;
        if (number != NULL) {
            attr->i = *number;
        } else {
            attr->s = *text;
        }
        count++;
    }
    return count;
}

/* Takes one attribute of a node; attributes that the schema does not know are left alone. */
static epctx_status epctx__epnode_take(epctx_epnode *node, epctx_str name, int32_t type, int64_t i,
                                       epctx_str s, epctx_error *error)
{
    int id;
    for (id = 0; id < EPCTX_EP_ATTR_COUNT; id++) {
        const char *known = epctx__epnode_attr_name((epctx_epnode_attr)id);
        int64_t *number;
        epctx_str *text;
        int32_t want;
        if (!epctx_str_is(name, known)) {
            continue;
        }
        epctx__epnode_member(node, (epctx_epnode_attr)id, &number, &text);
        want = number != NULL ? EPCTX_ATTR_INT : EPCTX_ATTR_STRING;
        if (type != want) {
            epctx_fail(error, EPCTX_ERR_GRAPH, "has attribute type %d, expected %d (%s)",
                       (int64_t)type, (int64_t)want, number != NULL ? "INT" : "STRING");
            epctx_blame(error, NULL, &node->name, known);
            return EPCTX_ERR_GRAPH;
        }
        if (number != NULL) {
            *number = i;
        } else {
            *text = s;
        }
        node->present |= 1u << id;
        if ((id == EPCTX_EP_MAIN_CONTEXT || id == EPCTX_EP_EMBED_MODE) && i != 0 && i != 1) {
            epctx_fail(error, EPCTX_ERR_GRAPH, "is %d, only 0 and 1 are allowed", i);
            epctx_blame(error, NULL, &node->name, known);
            return EPCTX_ERR_GRAPH;
        }
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_epnode_from_record(const epctx_node *record, epctx_epnode *out,
                                                epctx_error *error)
{
    size_t i;
    epctx_error_clear(error);
    *out = epctx_epnode_default();
    out->name = record->name;
    for (i = 0; i < record->attr_count; i++) {
        const epctx_attr *attr = &record->attrs[i];
        epctx_status status =
            epctx__epnode_take(out, attr->name, (int32_t)attr->type, attr->i, attr->s, error);
        if (status != EPCTX_OK) {
            return status;
        }
    }
    return EPCTX_OK;
}

#ifndef EPCTX_NO_WIRE

EPCTX_API bool epctx_is_epnode(const epctx_node_view *node)
{
    return epctx_str_is(node->op_type, EPCTX_OP_TYPE) && epctx_str_is(node->domain, EPCTX_DOMAIN);
}

EPCTX_API epctx_status epctx_epnode_read(const epctx_node_view *node, epctx_epnode *out,
                                         epctx_error *error)
{
    epctx_cursor it = epctx_node_attrs(node);
    epctx_attr_view attr;
    epctx_error_clear(error);
    *out = epctx_epnode_default();
    out->name = node->name;
    while (epctx_next_attr(&it, &attr)) {
        epctx_status status =
            epctx__epnode_take(out, attr.name, attr.type, attr.i, attr.s, error);
        if (status != EPCTX_OK) {
            return status;
        }
    }
    return EPCTX_OK;
}

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>profile
 *
 * Where the facts are from. ORT: microsoft/onnxruntime main at 1.30-dev, below
 * onnxruntime/core/providers unless said otherwise. QNNP: onnxruntime/onnxruntime-qnn.
 * ============================================================================================== */

static char epctx__lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool epctx__same_letters(epctx_str a, epctx_str b)
{
    size_t i;
    for (i = 0; i < a.size && a.size == b.size; i++) {
        if (epctx__lower(a.data[i]) != epctx__lower(b.data[i])) {
            return false;
        }
    }
    return a.size == b.size;
}

static bool epctx__ends_with(epctx_str text, const char *end)
{
    size_t size = strlen(end);
    return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

/* ORT openvino/onnx_ctx_model_helper.cc, ov_bin_manager.cc: blobs are looked up by partition_name
 * in the container; an ".xml" path is a plain OpenVINO IR that needs none (OVIR encapsulation,
 * test data mul_1_ep_ctx_ovir.onnx). */
static void epctx__check_openvino(const epctx_profile_check *check)
{
    size_t i;
    for (i = 0; i < check->node_count; i++) {
        const epctx_epnode *node = check->nodes[i];
        bool wraps_ir = node->embed_mode == 0 && epctx__ends_with(node->ep_cache_context, ".xml");
        if (node->partition_name.size == 0 && !wraps_ir) {
            check->say_fn(check->state, i, "partition_name",
                          "is missing: OpenVINO finds the graph in its container by this name");
        }
    }
}

/* ORT tensorrt/onnx_ctx_model_helper.cc: a name ending in .stripped.engine is an engine without
 * weights, refitted from the model that onnx_model_filename names. */
static void epctx__check_tensorrt(const epctx_profile_check *check)
{
    size_t i;
    for (i = 0; i < check->node_count; i++) {
        const epctx_epnode *node = check->nodes[i];
        if (node->embed_mode == 0 &&
            epctx__ends_with(node->ep_cache_context, ".stripped.engine") &&
            node->onnx_model_filename.size == 0) {
            check->say_fn(check->state, i, "onnx_model_filename",
                          "is missing: the engine has no weights and is refitted from this model");
        }
    }
}

/* ROCm/hip-ep morphizen_compile_model.cpp: `index` numbers the partitions, node 0 is the main one.
 * The closed VitisAI library is of the same lineage; only MorphiZen's own nodes are held to it. */
static void epctx__check_vitisai(const epctx_profile_check *check)
{
    size_t i;
    for (i = 0; i < check->node_count; i++) {
        epctx_attr attr;
        if (epctx_str_is(check->nodes[i]->source, "MorphiZenExecutionProvider") &&
            !check->attr_fn(check->state, i, "index", &attr)) {
            check->say_fn(check->state, i, "index",
                          "is missing: MorphiZen takes the partition's number from it");
        }
    }
}

/* QNNP docs/execution_providers/QNN-ExecutionProvider.md, PRs 482 and 544: a node may wrap a DLC
 * instead of a context binary. */
static void epctx__check_qnn_plugin(const epctx_profile_check *check)
{
    size_t i;
    for (i = 0; i < check->node_count; i++) {
        epctx_attr type;
        epctx_attr path;
        if (!check->attr_fn(check->state, i, "ep_context_type", &type)) {
            continue;
        }
        if (!epctx_str_is(type.s, "bin") && !epctx_str_is(type.s, "dlc")) {
            check->say_fn(check->state, i, "ep_context_type", "is neither 'bin' nor 'dlc'");
        } else if (epctx_str_is(type.s, "dlc") &&
                   (!check->attr_fn(check->state, i, "ep_dlc_context", &path) ||
                    path.s.size == 0)) {
            check->say_fn(check->state, i, "ep_dlc_context",
                          "is missing: ep_context_type says that the node wraps a DLC");
        }
    }
}

#define EPCTX__BIT(attr) (1u << EPCTX_EP_##attr)

static const epctx_profile epctx__profiles[] = {
    /* ORT qnn/builder/onnx_ctx_model_helper.cc and qnn_execution_provider.cc: sources lower-cased;
     * the graph is found by the node's name; one binary, node 0 is main; file name since PR 24461;
     * no dynamic shapes (EP page); embedded with several partitions cannot be loaded (issue 31977);
     * inputs and outputs are matched by name (qnn/builder/qnn_model.cc); load failures are
     * INVALID_GRAPH (PR 18485). Genuine: test data qnn_ctx. */
    {"qnn", "ORT 1.30-dev, files of ORT 1.18", EPCTX_FROM_FILES,
     {"QNNExecutionProvider", "QNN", NULL, NULL},
     EPCTX_ANY_CASE | EPCTX_STATIC_SHAPES | EPCTX_EMBED_ONE | EPCTX_IO_NAMES,
     EPCTX_KEY_NODE_NAME,
     EPCTX_PAYLOAD_SHARED, 0, 0, "{stem}_qnn.bin",
     {"qnn_op_trace.json", "*_schematic.bin", NULL, NULL}, 10, NULL},
    /* QNNP onnx_ctx_model_helper.cc and docs: as qnn, also QAIRTExport (Olive's wrapper); any ".."
     * in a path is refused; a DLC may take the place of the binary, with tmp*.json beside it. */
    {"qnn_plugin", "onnxruntime-qnn 2026-03 to EP 2.3.0", EPCTX_FROM_SOURCE,
     {"QNNExecutionProvider", "QNN", "QAIRTExport", NULL},
     EPCTX_ANY_CASE | EPCTX_STATIC_SHAPES | EPCTX_EMBED_ONE | EPCTX_NO_DOTS | EPCTX_IO_NAMES,
     EPCTX_KEY_NODE_NAME,
     EPCTX_PAYLOAD_SHARED, 0, 0, "{stem}_qnn.bin",
     {"qnn_op_trace.json", "*_schematic.bin", "tmp*.json", NULL}, 10, epctx__check_qnn_plugin},
    /* ORT openvino/onnx_ctx_model_helper.cc: exact source; embed_mode and ep_cache_context must be
     * stored; embed modes do not mix; all nodes name one container, or the first embeds it and the
     * rest store an empty string. Inputs and outputs are matched by name (openvino/backends/
     * basic_backend.h). Genuine: mul_1_ep_ctx_ovir.onnx. */
    {"openvino", "ORT 1.30-dev, files of OpenVINO 2025.2", EPCTX_FROM_FILES,
     {"OpenVINOExecutionProvider", NULL, NULL, NULL},
     EPCTX_NO_MIX | EPCTX_IO_NAMES | EPCTX_ALL_NAME, EPCTX_KEY_PARTITION, EPCTX_PAYLOAD_SHARED,
     EPCTX__BIT(EMBED_MODE) | EPCTX__BIT(EP_CACHE_CONTEXT), 0,
     "{stem}_OpenVINOExecutionProvider.bin", {NULL, NULL, NULL, NULL}, 11, epctx__check_openvino},
    /* ORT tensorrt/onnx_ctx_model_helper.cc: the graph must be exactly one node; a missing source
     * is taken; embed mode and path come from provider options of its own. The engine's tensors are
     * matched by name; one that is not found gets input 0 (tensorrt_execution_provider.cc). */
    {"tensorrt", "ORT 1.30-dev", EPCTX_FROM_SOURCE,
     {"TensorrtExecutionProvider", NULL, NULL, NULL},
     EPCTX_NO_SOURCE | EPCTX_ONE_NODE | EPCTX_IO_NAMES, EPCTX_KEY_NONE, EPCTX_PAYLOAD_EACH, 0, 0,
     "*.engine", {NULL, NULL, NULL, NULL}, 11, epctx__check_tensorrt},
    /* ORT nv_tensorrt_rtx/onnx_ctx_model_helper.cc and nv_execution_provider.cc: main_context 0 on
     * every node although each has its own engine; embedded unless told otherwise; tensors are
     * matched as in tensorrt; failures come out as FAIL. */
    {"nv_tensorrt_rtx", "ORT 1.30-dev", EPCTX_FROM_SOURCE,
     {"NvTensorRTRTXExecutionProvider", NULL, NULL, NULL},
     EPCTX_NO_SOURCE | EPCTX_SECONDARY_CONTEXT | EPCTX_IO_NAMES, EPCTX_KEY_NONE,
     EPCTX_PAYLOAD_EACH, 0, 1, "*.engine", {NULL, NULL, NULL, NULL}, 1, NULL},
    /* onnxruntime/onnxruntime-ep-amdgpu src/migraphx/mgx_ep_ctx.cc: one .mxr for each node; the
     * first node without source is taken; dynamic shapes and contexts exclude each other; the
     * program's parameters are matched by name. */
    {"migraphx", "onnxruntime-ep-amdgpu 2026-08", EPCTX_FROM_SOURCE,
     {"MIGraphXExecutionProvider", NULL, NULL, NULL},
     EPCTX_NO_SOURCE | EPCTX_STATIC_SHAPES | EPCTX_IO_NAMES, EPCTX_KEY_NONE, EPCTX_PAYLOAD_EACH, 0,
     0, "*.mxr", {NULL, NULL, NULL, NULL}, 11, NULL},
    /* ORT 1.18 vitisai (PR 20926) asserts that the three attributes are stored; the rest from the
     * open MorphiZen EP (ROCm/hip-ep): one main node, embedded unless told otherwise. */
    {"vitisai", "ORT 1.18 (PR 20926), MorphiZen 2026-08", EPCTX_FROM_RELATIVE,
     {"VitisAIExecutionProvider", "MorphiZenExecutionProvider", NULL, NULL}, EPCTX_ONE_MAIN,
     EPCTX_KEY_NONE, EPCTX_PAYLOAD_SHARED,
     EPCTX__BIT(EMBED_MODE) | EPCTX__BIT(EP_CACHE_CONTEXT) | EPCTX__BIT(SOURCE), 1,
     "{file}_MORPHIZEN.bin", {NULL, NULL, NULL, NULL}, 11, epctx__check_vitisai},
    /* IBM/onnxruntime-ep-telum: always embedded, a text payload for each node, source is the EP's
     * own name. */
    {"telum", "onnxruntime-ep-telum 2026-08", EPCTX_FROM_SOURCE,
     {"TelumPluginExecutionProvider", "telum", NULL, NULL},
     EPCTX_ONLY_EMBEDDED, EPCTX_KEY_NONE, EPCTX_PAYLOAD_EACH,
     EPCTX__BIT(EP_CACHE_CONTEXT) | EPCTX__BIT(SOURCE), 1, "", {NULL, NULL, NULL, NULL}, 11, NULL},
    /* ORT test/autoep/library/example_plugin_ep/ep.cc: source is the registration name; loading is
     * NOT_IMPLEMENTED. Genuine: written by ORT 1.30.0 through that EP. */
    {"example", "ORT 1.30", EPCTX_FROM_FILES, {"example_ep", NULL, NULL, NULL},
     EPCTX_OWN_SOURCE, EPCTX_KEY_NONE, EPCTX_PAYLOAD_EACH, EPCTX__BIT(SOURCE), 0, "*.ctx",
     {NULL, NULL, NULL, NULL}, 9, NULL},
    /* epctx_npu.h. */
    {"npu", "epctx 0.1", EPCTX_FROM_FILES, {"EpctxNpuExecutionProvider", NULL, NULL, NULL},
     EPCTX_STATIC_SHAPES, EPCTX_KEY_PARTITION, EPCTX_PAYLOAD_SHARED,
     EPCTX__BIT(EMBED_MODE) | EPCTX__BIT(SOURCE) | EPCTX__BIT(PARTITION_NAME), 0,
     "{model}_npu.bin", {NULL, NULL, NULL, NULL}, 10, NULL},
    /* ORT docs/execution-providers/EP-Context-Design. */
    {"generic", "EP-context design", EPCTX_FROM_DOCUMENT, {NULL, NULL, NULL, NULL},
     EPCTX_OWN_SOURCE | EPCTX_NO_SOURCE, EPCTX_KEY_NONE, EPCTX_PAYLOAD_SHARED, 0, 0,
     "{model}_*.bin", {NULL, NULL, NULL, NULL}, 10, NULL},
};

#define EPCTX__PROFILE_COUNT (sizeof epctx__profiles / sizeof epctx__profiles[0])

EPCTX_API const epctx_profile *epctx_profiles(size_t *count)
{
    if (count != NULL) {
        *count = EPCTX__PROFILE_COUNT;
    }
    return epctx__profiles;
}

EPCTX_API const epctx_profile *epctx_profile_find(epctx_str name)
{
    size_t i;
    for (i = 0; i < EPCTX__PROFILE_COUNT; i++) {
        if (epctx_str_is(name, epctx__profiles[i].name)) {
            return &epctx__profiles[i];
        }
    }
    return NULL;
}

/* Number of the accepted source that `source` equals, or -1. */
static int epctx__source_index(const epctx_profile *profile, epctx_str source, bool any_case)
{
    int i;
    for (i = 0; i < 4 && profile->sources[i] != NULL; i++) {
        epctx_str accepted = epctx_str_of(profile->sources[i]);
        if (any_case ? epctx__same_letters(source, accepted) : epctx_str_eq(source, accepted)) {
            return i;
        }
    }
    return -1;
}

EPCTX_API const epctx_profile *epctx_profile_of(epctx_str source)
{
    size_t i;
    for (i = 0; i < EPCTX__PROFILE_COUNT; i++) {
        if (epctx__source_index(&epctx__profiles[i], source, true) >= 0) {
            return &epctx__profiles[i];
        }
    }
    return &epctx__profiles[EPCTX__PROFILE_COUNT - 1];
}

EPCTX_API epctx_claim epctx_profile_claims(const epctx_profile *profile, const epctx_epnode *node)
{
    bool any_case = (profile->traits & EPCTX_ANY_CASE) != 0;
    if ((node->present & EPCTX__BIT(SOURCE)) == 0) {
        return (profile->traits & EPCTX_NO_SOURCE) != 0 ? EPCTX_CLAIM_YES : EPCTX_CLAIM_MISSING;
    }
    if ((profile->traits & EPCTX_OWN_SOURCE) != 0 ||
        epctx__source_index(profile, node->source, any_case) >= 0) {
        return EPCTX_CLAIM_YES;
    }
    return epctx__source_index(profile, node->source, true) >= 0 ? EPCTX_CLAIM_SPELLING
                                                                 : EPCTX_CLAIM_NO;
}

/* ================================================================================================
 * >>path
 * ============================================================================================== */

static bool epctx__is_separator(char c)
{
    return c == '/' || c == '\\';
}

static bool epctx__is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A model may have been written on Windows and be read elsewhere, or the other way round: both
 * kinds of root and both separators are refused or split at on every system. */
static const char *epctx__path_fault(epctx_str name)
{
    size_t start = 0;
    size_t i;
    if (name.size == 0) {
        return "is empty";
    }
    if (memchr(name.data, '\0', name.size) != NULL) {
        return "contains a NUL byte";
    }
    if (epctx__is_separator(name.data[0]) ||
        (name.size >= 2 && epctx__is_letter(name.data[0]) && name.data[1] == ':')) {
        return "is absolute, a path relative to the model is expected";
    }
    if (name.size >= 2 && memcmp(name.data, "*/", 2) == 0) {
        return "is a marker of ORT for data in memory, not a file";
    }
#ifdef _WIN32
    if (memchr(name.data, ':', name.size) != NULL) {
        return "names a stream of a file, a file is expected";
    }
#endif
    for (i = 0; i <= name.size; i++) {
        if (i == name.size || epctx__is_separator(name.data[i])) {
            if (i - start == 2 && memcmp(name.data + start, "..", 2) == 0) {
                return "leaves the model's folder through '..'";
            }
            start = i + 1;
        }
    }
    return NULL;
}

EPCTX_API epctx_status epctx_path_check(epctx_str name, epctx_error *error)
{
    const char *fault = epctx__path_fault(name);
    epctx_error_clear(error);
    if (fault == NULL) {
        return EPCTX_OK;
    }
    return epctx_fail(error, EPCTX_ERR_PATH, "path '%S' %s", &name, fault);
}

EPCTX_API epctx_str epctx_path_folder(epctx_str path)
{
#ifdef _WIN32
    while (path.size > 0 && !epctx__is_separator(path.data[path.size - 1]) &&
           path.data[path.size - 1] != ':') {
#else
    while (path.size > 0 && path.data[path.size - 1] != '/') {
#endif
        path.size--;
    }
    return path;
}

EPCTX_API epctx_str epctx_path_file(epctx_str path)
{
    size_t folder = epctx_path_folder(path).size;
    path.data = path.size > 0 ? path.data + folder : path.data;
    path.size -= folder;
    return path;
}

EPCTX_API epctx_status epctx_path_base(epctx_str model_path, epctx_str context_file_path,
                                       epctx_str *folder, epctx_error *error)
{
    epctx_error_clear(error);
    if (context_file_path.size == 0 && model_path.size == 0) {
        return epctx_fail(error, EPCTX_ERR_PATH,
                          "the model came from memory: set ep.context_file_path, its folder is "
                          "where context binaries are looked for");
    }
    *folder = epctx_path_folder(context_file_path.size > 0 ? context_file_path : model_path);
    return EPCTX_OK;
}

/* Terminated concatenation; `what` is for the message. */
static epctx_status epctx__join(char *out, size_t capacity, const epctx_str *parts, size_t count,
                                const char *what, epctx_error *error)
{
    size_t at = 0;
    size_t i;
    for (i = 0; i < count; i++) {
        if (parts[i].size >= capacity - at) {
            return epctx_fail(error, EPCTX_ERR_LIMIT, "%s is longer than %u bytes", what,
                              (uint64_t)capacity - 1);
        }
        if (parts[i].size > 0) {
            memcpy(out + at, parts[i].data, parts[i].size);
        }
        at += parts[i].size;
    }
    out[at] = '\0';
    return EPCTX_OK;
}

static epctx_status epctx__path_join(char *out, size_t capacity, const epctx_str *parts,
                                     size_t count, epctx_error *error)
{
    return epctx__join(out, capacity, parts, count, "a path", error);
}

/* Is the canonical path `file` inside the canonical folder `folder`? */
static bool epctx__path_inside(const char *folder, const char *file)
{
    size_t size = strlen(folder);
    if (strncmp(folder, file, size) != 0) {
        return false;
    }
    return (size > 0 && epctx__is_separator(folder[size - 1])) || epctx__is_separator(file[size]);
}

static epctx_status epctx__path_usable(const epctx_io *io, const char *path, epctx_str name,
                                       epctx_error *error)
{
    epctx_file_kind kind = EPCTX_FILE_NONE;
    uint64_t size = 0;
    epctx_status status = io->stat_fn(io->user, path, &kind, &size, error);
    if (status != EPCTX_OK) {
        return status;
    }
    if (kind == EPCTX_FILE_NONE) {
        return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "file '%S' does not exist (looked at %s)",
                          &name, path);
    }
    if (kind != EPCTX_FILE_REGULAR) {
        return epctx_fail(error, EPCTX_ERR_PATH, "'%s' is %s, a regular file is expected", path,
                          kind == EPCTX_FILE_FOLDER ? "a folder" : "a device or pipe");
    }
    if (size == 0) {
        return epctx_fail(error, EPCTX_ERR_PATH, "file '%s' is empty (0 bytes)", path);
    }
    return EPCTX_OK;
}

/* Is the canonical path `file` a blob of the Hugging Face cache whose snapshot the canonical folder
 * `folder` is or lies in? Then cuts `folder` to the common root. */
static bool epctx__path_blob(char *folder, const char *file)
{
    static const char snapshots[] = "/snapshots/";
    static const char blobs[] = "/blobs/";
    size_t root = strlen(folder);
    size_t size = strlen(file);
    /* The last folder of that name which has something behind it. */
    while (root > 0 && (strncmp(folder + root, snapshots, sizeof snapshots - 1) != 0 ||
                        folder[root + sizeof snapshots - 1] == '\0')) {
        root--;
    }
    if (root == 0 || strncmp(folder, file, root) != 0 ||
        strncmp(file + root, blobs, sizeof blobs - 1) != 0 ||
        memchr(file + root + sizeof blobs - 1, '/', size - root - (sizeof blobs - 1)) != NULL) {
        return false;
    }
    folder[root] = '\0';
    return true;
}

/* `out` gets the canonical path of the file, `root` the canonical folder that it lies in. */
static epctx_status epctx__path_locate(const epctx_io *io, epctx_str folder, epctx_str name,
                                       uint32_t flags, char *out, size_t capacity,
                                       char root[EPCTX_PATH_MAX], epctx_error *error)
{
    char full[EPCTX_PATH_MAX];
    epctx_str parts[2];
    epctx_status status = epctx_path_check(name, error);
    if (status == EPCTX_OK && io == NULL) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    }
    parts[0] = folder.size > 0 ? folder : epctx_str_of("./");
    parts[1] = epctx_str_of(epctx__is_separator(parts[0].data[parts[0].size - 1]) ? "" : "/");
    if (status == EPCTX_OK) {
        status = epctx__path_join(root, EPCTX_PATH_MAX, parts, 2, error);
    }
    if (status == EPCTX_OK) {
        parts[0] = epctx_str_of(root);
        parts[1] = name;
        status = epctx__path_join(full, sizeof full, parts, 2, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__path_usable(io, full, name, error);
    }
    if (status == EPCTX_OK) {
        status = io->canonical_fn(io->user, full, out, capacity, error);
    }
    if (status == EPCTX_OK) {
        memcpy(full, root, strlen(root) + 1);
        status = io->canonical_fn(io->user, full, root, EPCTX_PATH_MAX, error);
    }
    if (status == EPCTX_OK && !epctx__path_inside(root, out) &&
        !((flags & EPCTX_PATH_HUGGING_FACE) != 0 && epctx__path_blob(root, out))) {
        status = epctx_fail(error, EPCTX_ERR_PATH,
                            "path '%S' leaves the model's folder through a link: it is %s", &name,
                            out);
    }
    return status;
}

EPCTX_API epctx_status epctx_path_find(const epctx_io *io, epctx_str folder, epctx_str name,
                                       uint32_t flags, char *out, size_t capacity,
                                       epctx_error *error)
{
    char root[EPCTX_PATH_MAX];
    return epctx__path_locate(io, folder, name, flags, out, capacity, root, error);
}

EPCTX_API epctx_status epctx_path_resolve(const epctx_io *io, epctx_str folder, epctx_str name,
                                          char *out, size_t capacity, epctx_error *error)
{
    return epctx_path_find(io, folder, name, 0, out, capacity, error);
}

EPCTX_API epctx_status epctx_path_map(const epctx_io *io, epctx_str folder, epctx_str name,
                                      uint32_t flags, epctx_mapping *out, char *path,
                                      size_t capacity, epctx_error *error)
{
    char root[EPCTX_PATH_MAX];
    char full[EPCTX_PATH_MAX];
    const char *inside;
    epctx_status status =
        epctx__path_locate(io, folder, name, flags, full, sizeof full, root, error);
    memset(out, 0, sizeof *out);
    if (status == EPCTX_OK && path != NULL) {
        epctx_str whole = epctx_str_of(full);
        status = epctx__path_join(path, capacity, &whole, 1, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    inside = full + strlen(root);
    inside += epctx__is_separator(*inside) ? 1 : 0;
    status = io->map_inside_fn != NULL ? io->map_inside_fn(io->user, root, inside, out, error)
                                       : io->map_fn(io->user, full, out, error);
    if (status == EPCTX_OK && out->size == 0) {
        io->unmap_fn(io->user, out);
        status = epctx_fail(error, EPCTX_ERR_PATH, "file '%s' is empty (0 bytes)", full);
    }
    return status;
}

/* File name without the extension; a leading dot is part of the name. */
static epctx_str epctx__path_stem(epctx_str file)
{
    size_t i;
    for (i = file.size; i > 1; i--) {
        if (file.data[i - 1] == '.') {
            file.size = i - 1;
            break;
        }
    }
    return file;
}

EPCTX_API epctx_status epctx_path_context_model(epctx_str model_path, char *out, size_t capacity,
                                                epctx_error *error)
{
    epctx_str parts[3];
    epctx_error_clear(error);
    parts[0] = epctx_path_folder(model_path);
    parts[1] = epctx__path_stem(epctx_path_file(model_path));
    parts[2] = epctx_str_of("_ctx.onnx");
    if (parts[1].size == 0) {
        return epctx_fail(error, EPCTX_ERR_PATH,
                          "there is no model file name to start from: set ep.context_file_path");
    }
    return epctx__path_join(out, capacity, parts, 3, error);
}

EPCTX_API epctx_status epctx_path_binary(epctx_str context_model_path, epctx_str ep, char *out,
                                         size_t capacity, epctx_error *error)
{
    epctx_str parts[4];
    epctx_status status;
    epctx_error_clear(error);
    parts[0] = epctx__path_stem(epctx_path_file(context_model_path));
    parts[1] = epctx_str_of("_");
    parts[2] = ep;
    parts[3] = epctx_str_of(".bin");
    if (parts[0].size > 4 && memcmp(parts[0].data + parts[0].size - 4, "_ctx", 4) == 0) {
        parts[0].size -= 4;
    }
    if (parts[0].size == 0 || ep.size == 0) {
        return epctx_fail(error, EPCTX_ERR_PATH,
                          "a context binary needs a model name and an EP name");
    }
    status = epctx__path_join(out, capacity, parts, 4, error);
    /* "C:m_ctx.onnx" is a fine file here, but readers would refuse the binary's name. */
    return status == EPCTX_OK ? epctx_path_check(epctx_str_of(out), error) : status;
}

/* ================================================================================================
 * >>option
 * ============================================================================================== */

#define EPCTX__OPTION_WORDS_SWITCH "0 1"
#define EPCTX__OPTION_WORDS_TEXT   ""
#define EPCTX__OPTION_WORDS_FILE   ""
#define EPCTX__OPTION_WORDS_FOLDER ""
#define EPCTX__OPTION_WORDS_NAME   ""
#define EPCTX__OPTION_WORDS_NUMBER ""
#define EPCTX__OPTION_WORDS_CHOICE "error copy nothing" /* in the order of epctx_no_nodes */

static const epctx_option_info epctx__options[EPCTX_OPTION_COUNT] = {
#define EPCTX__OPTION_ROW(id, key, ort, type, fallback, phase, text)                               \
    {key, ort, EPCTX_OPTION_TYPE_##type, fallback, EPCTX__OPTION_WORDS_##type,                     \
     EPCTX_PHASE_##phase, text},
    EPCTX_OPTION_LIST(EPCTX__OPTION_ROW)
#undef EPCTX__OPTION_ROW
};

/* Options of EPs, some of them gone, that do what a session option does. */
typedef struct epctx__option_alias {
    const char *key;
    epctx_option option;
} epctx__option_alias;

static const epctx__option_alias epctx__option_aliases[] = {
    {"trt_dump_ep_context_model", EPCTX_OPTION_CONTEXT_ENABLE},
    {"trt_ep_context_file_path", EPCTX_OPTION_CONTEXT_FILE_PATH},
    {"trt_ep_context_embed_mode", EPCTX_OPTION_CONTEXT_EMBED_MODE},
    {"ort_migraphx_dump_ep_context_model", EPCTX_OPTION_CONTEXT_ENABLE},
    {"qnn_context_cache_enable", EPCTX_OPTION_CONTEXT_ENABLE},
    {"qnn_context_cache_path", EPCTX_OPTION_CONTEXT_FILE_PATH},
    {"qnn_context_embed_mode", EPCTX_OPTION_CONTEXT_EMBED_MODE},
};

EPCTX_API const epctx_option_info *epctx_option_list(size_t *count)
{
    if (count != NULL) {
        *count = EPCTX_OPTION_COUNT;
    }
    return epctx__options;
}

EPCTX_API void epctx_options_init(epctx_options *options, epctx_arena *arena)
{
    memset(options, 0, sizeof *options);
    options->arena = arena;
}

/* -- keys -- */

#define EPCTX__KEY_MOST 96u /* longer than any key of the table */

/* Edit distance without regard to case; `most` + 1 stands for everything above `most`. */
static size_t epctx__key_distance(epctx_str a, epctx_str b, size_t most)
{
    size_t row[EPCTX__KEY_MOST + 1];
    size_t i, k;
    if (a.size > EPCTX__KEY_MOST || b.size > EPCTX__KEY_MOST) {
        return most + 1;
    }
    for (k = 0; k <= b.size; k++) {
        row[k] = k;
    }
    for (i = 0; i < a.size; i++) {
        size_t before = row[0];
        row[0] = i + 1;
        for (k = 0; k < b.size; k++) {
            bool same = epctx__lower(a.data[i]) == epctx__lower(b.data[k]);
            size_t best = before + (same ? 0 : 1);
            before = row[k + 1];
            best = best < before + 1 ? best : before + 1;
            row[k + 1] = best < row[k] + 1 ? best : row[k] + 1;
        }
    }
    return row[b.size] <= most ? row[b.size] : most + 1;
}

/* The nearest key of the table. */
static const char *epctx__nearest_key(epctx_str key, size_t *distance)
{
    const char *nearest = epctx__options[0].key;
    size_t i;
    *distance = EPCTX__KEY_MOST + 1;
    for (i = 0; i < EPCTX_OPTION_COUNT; i++) {
        size_t d = epctx__key_distance(key, epctx_str_of(epctx__options[i].key), EPCTX__KEY_MOST);
        if (d < *distance) {
            *distance = d;
            nearest = epctx__options[i].key;
        }
    }
    return nearest;
}

static bool epctx__starts_with(epctx_str text, const char *start)
{
    size_t size = strlen(start);
    return text.size >= size && memcmp(text.data, start, size) == 0;
}

/* Is the key meant for this table? */
static bool epctx__key_is_ours(epctx_str key)
{
    if (epctx__starts_with(key, "ep.")) {
        return memchr(key.data + 3, '.', key.size - 3) == NULL;
    }
    return epctx__starts_with(key, "epctx.") || epctx__starts_with(key, "EP_CONTEXT_");
}

/* An unknown key: somebody else's, or a mistake. */
static epctx_status epctx__option_unknown(epctx_str key, epctx_error *error)
{
    size_t distance;
    const char *nearest = epctx__nearest_key(key, &distance);
    size_t i;
    for (i = 0; i < sizeof epctx__option_aliases / sizeof epctx__option_aliases[0]; i++) {
        if (epctx__same_letters(key, epctx_str_of(epctx__option_aliases[i].key))) {
            return epctx_fail(error, EPCTX_ERR_ARG,
                              "'%S' is an option of one EP: the session option is %s", &key,
                              epctx__options[epctx__option_aliases[i].option].key);
        }
    }
    if (distance > 2 && !epctx__key_is_ours(key)) {
        return EPCTX_OK;
    }
    return epctx_fail(error, EPCTX_ERR_ARG, "there is no session option '%S', the nearest is %s",
                      &key, nearest);
}

static bool epctx__option_find(epctx_str key, size_t *id)
{
    size_t i;
    for (i = 0; i < EPCTX_OPTION_COUNT; i++) {
        if (epctx_str_is(key, epctx__options[i].key)) {
            *id = i;
            return true;
        }
    }
    return false;
}

/* As a shell can name it: capitals, and "_" for ".". */
static bool epctx__option_find_env(epctx_str key, size_t *id)
{
    size_t i, k;
    for (i = 0; i < EPCTX_OPTION_COUNT; i++) {
        const char *name = epctx__options[i].key;
        for (k = 0; k < key.size && name[k] != '\0'; k++) {
            char want = name[k] == '.' ? '_' : name[k];
            want = want >= 'a' && want <= 'z' ? (char)(want - 'a' + 'A') : want;
            if (key.data[k] != want) {
                break;
            }
        }
        if (k == key.size && name[k] == '\0') {
            *id = i;
            return true;
        }
    }
    return false;
}

/* -- values -- */

#define EPCTX__OPTION_VALUE_MOST 8192u /* ORT's limit for a value */

/* Position of `word` in a list separated by blanks; false when it is not in it. */
static bool epctx__word_index(const char *words, epctx_str word, size_t *index)
{
    size_t at = 0;
    for (*index = 0; words[at] != '\0'; (*index)++) {
        epctx_str one;
        one.data = words + at;
        for (one.size = 0; words[at] != '\0' && words[at] != ' '; at++) {
            one.size++;
        }
        if (epctx_str_eq(one, word)) {
            return true;
        }
        at += words[at] == ' ' ? 1 : 0;
    }
    return false;
}

static bool epctx__option_decimal(epctx_str text, uint64_t *value)
{
    size_t i;
    *value = 0;
    for (i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - (unsigned)'0';
        if (digit > 9 || *value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        *value = *value * 10 + digit;
    }
    return text.size > 0;
}

static epctx_status epctx__option_value(const epctx_option_info *info, epctx_str value,
                                        epctx_error *error)
{
    const char *fault;
    size_t index;
    uint64_t number;
    if (value.size > EPCTX__OPTION_VALUE_MOST ||
        (value.size > 0 && memchr(value.data, '\0', value.size) != NULL)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "%s: a value of at most %u bytes without NUL is expected, found %u bytes",
                          info->key, (uint64_t)EPCTX__OPTION_VALUE_MOST, (uint64_t)value.size);
    }
    switch (info->type) {
    case EPCTX_OPTION_TYPE_SWITCH:
    case EPCTX_OPTION_TYPE_CHOICE:
        if (!epctx__word_index(info->allowed, value, &index)) {
            return epctx_fail(error, EPCTX_ERR_ARG, "%s: one of %s is expected, found '%S'",
                              info->key, info->allowed, &value);
        }
        return EPCTX_OK;
    case EPCTX_OPTION_TYPE_NUMBER:
        return epctx__option_decimal(value, &number)
                   ? EPCTX_OK
                   : epctx_fail(error, EPCTX_ERR_ARG,
                                "%s: a decimal number is expected, found '%S'", info->key, &value);
    case EPCTX_OPTION_TYPE_NAME:
        fault = value.size > 0 ? epctx__path_fault(value) : NULL;
        if (fault == NULL && value.size > 0 &&
            (memchr(value.data, '/', value.size) != NULL ||
             memchr(value.data, '\\', value.size) != NULL)) {
            fault = "has a folder";
        }
        return fault == NULL
                   ? EPCTX_OK
                   : epctx_fail(error, EPCTX_ERR_ARG,
                                "%s: '%S' %s: a file name is expected, the file lies beside the "
                                "model",
                                info->key, &value, fault);
    case EPCTX_OPTION_TYPE_TEXT:
    case EPCTX_OPTION_TYPE_FILE:
    case EPCTX_OPTION_TYPE_FOLDER:
        break;
    }
    return EPCTX_OK;
}

static epctx_status epctx__option_store(epctx_options *options, size_t id, epctx_str value,
                                        epctx_error *error)
{
    epctx_status status = epctx__option_value(&epctx__options[id], value, error);
    const char *copy;
    if (status == EPCTX_OK && options->arena == NULL) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "the options have no arena to copy values into");
    }
    if (status != EPCTX_OK) {
        return status;
    }
    copy = epctx_arena_copy(options->arena, value);
    if (copy == NULL) {
        return epctx__nomem(error, options->arena->missing);
    }
    options->values[id] = copy;
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_options_set(epctx_options *options, epctx_str key, epctx_str value,
                                         epctx_error *error)
{
    size_t id;
    epctx_error_clear(error);
    return epctx__option_find(key, &id) ? epctx__option_store(options, id, value, error)
                                        : epctx__option_unknown(key, error);
}

static bool epctx__is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* One entry of a list: `bar` stands between key and value. */
static epctx_status epctx__option_entry(epctx_options *options, epctx_str entry, char bar,
                                        bool seen[EPCTX_OPTION_COUNT], epctx_error *error)
{
    const char *middle = (const char *)memchr(entry.data, bar, entry.size);
    epctx_str key = entry;
    epctx_str value = entry;
    size_t id;
    if (middle == NULL || middle == entry.data) {
        char form[2];
        form[0] = bar;
        form[1] = '\0';
        return epctx_fail(error, EPCTX_ERR_ARG, "key%svalue is expected, found '%S'", form, &entry);
    }
    key.size = (size_t)(middle - entry.data);
    value.data = middle + 1;
    value.size = entry.size - key.size - 1;
    if (!epctx__option_find(key, &id) && !(bar == '=' && epctx__option_find_env(key, &id))) {
        return epctx__option_unknown(key, error);
    }
    if (seen[id]) {
        return epctx_fail(error, EPCTX_ERR_ARG, "%s stands twice: keep one",
                          epctx__options[id].key);
    }
    seen[id] = true;
    return epctx__option_store(options, id, value, error);
}

/* Cuts `text` at `ends`; blanks around an entry do not belong to it. */
static epctx_status epctx__option_entries(epctx_options *options, const char *text,
                                          const char *ends, char bar, epctx_error *error)
{
    epctx_options changed = *options;
    bool seen[EPCTX_OPTION_COUNT];
    epctx_status status = EPCTX_OK;
    memset(seen, 0, sizeof seen);
    epctx_error_clear(error);
    while (status == EPCTX_OK && text != NULL && *text != '\0') {
        epctx_str entry;
        entry.data = text;
        for (entry.size = 0; *text != '\0' && memchr(ends, *text, strlen(ends)) == NULL; text++) {
            entry.size++;
        }
        text += *text != '\0' ? 1 : 0;
        for (; entry.size > 0 && epctx__is_blank(entry.data[0]); entry.size--) {
            entry.data++;
        }
        while (entry.size > 0 && epctx__is_blank(entry.data[entry.size - 1])) {
            entry.size--;
        }
        if (entry.size > 0) {
            status = epctx__option_entry(&changed, entry, bar, seen, error);
        }
    }
    if (status == EPCTX_OK) {
        *options = changed;
    }
    return status;
}

EPCTX_API epctx_status epctx_options_set_list(epctx_options *options, const char *list,
                                              epctx_error *error)
{
    return epctx__option_entries(options, list, " \t\r\n", '|', error);
}

EPCTX_API epctx_status epctx_options_set_env(epctx_options *options, const char *text,
                                             epctx_error *error)
{
    return epctx__option_entries(options, text, ";\r\n", '=', error);
}

/* -- effective values -- */

EPCTX_API bool epctx_option_given(const epctx_options *options, epctx_option option)
{
    return options != NULL && options->values[option] != NULL;
}

EPCTX_API const char *epctx_option_text(const epctx_options *options, epctx_option option)
{
    if (epctx_option_given(options, option)) {
        return options->values[option];
    }
    /* One binary for several models cannot be inside of one of them. */
    if (option == EPCTX_OPTION_CONTEXT_EMBED_MODE && options != NULL && options->profile != NULL &&
        options->profile->embed_default != 0 &&
        !epctx_option_on(options, EPCTX_OPTION_SHARE_EP_CONTEXTS)) {
        return "1";
    }
    return epctx__options[option].fallback;
}

EPCTX_API bool epctx_option_on(const epctx_options *options, epctx_option option)
{
    return strcmp(epctx_option_text(options, option), "1") == 0;
}

EPCTX_API uint64_t epctx_option_number(const epctx_options *options, epctx_option option)
{
    uint64_t value;
    epctx_str text = epctx_str_of(epctx_option_text(options, option));
    return epctx__option_decimal(text, &value) ? value : 0;
}

EPCTX_API epctx_no_nodes epctx_option_no_nodes(const epctx_options *options)
{
    size_t index;
    epctx_str word = epctx_str_of(epctx_option_text(options, EPCTX_OPTION_NO_NODES));
    return epctx__word_index(EPCTX__OPTION_WORDS_CHOICE, word, &index) ? (epctx_no_nodes)index
                                                                       : EPCTX_NO_NODES_ERROR;
}

/* -- combinations -- */

static epctx_status epctx__options_share(const epctx_options *o, epctx_error *error)
{
    bool share = epctx_option_on(o, EPCTX_OPTION_SHARE_EP_CONTEXTS);
    if (!share && epctx_option_on(o, EPCTX_OPTION_STOP_SHARE_EP_CONTEXTS)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "ep.stop_share_ep_contexts is 1 without ep.share_ep_contexts: the last "
                          "session of a group needs both");
    }
    if (share && epctx_option_on(o, EPCTX_OPTION_CONTEXT_EMBED_MODE)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "ep.share_ep_contexts and ep.context_embed_mode are both 1: a shared "
                          "binary is a file of its own, set ep.context_embed_mode to 0");
    }
    return EPCTX_OK;
}

static epctx_status epctx__options_profile(const epctx_options *o, epctx_error *error)
{
    const epctx_profile *profile = o->profile;
    const char *key = NULL;
    if (profile == NULL || (profile->traits & EPCTX_ONLY_EMBEDDED) == 0) {
        return EPCTX_OK;
    }
    if (epctx_option_on(o, EPCTX_OPTION_SHARE_EP_CONTEXTS)) {
        key = "ep.share_ep_contexts is 1";
    } else if (!epctx_option_on(o, EPCTX_OPTION_CONTEXT_EMBED_MODE)) {
        key = "ep.context_embed_mode is 0";
    }
    return key == NULL ? EPCTX_OK
                       : epctx_fail(error, EPCTX_ERR_ARG, "%s, but %s reads no file", key,
                                    profile->name);
}

/* ORT takes a name without an extension for a folder. */
static epctx_status epctx__options_file(const char *path, bool extension, epctx_error *error)
{
    epctx_str file = epctx_path_file(epctx_str_of(path));
    bool folder = file.size == 0 || file.data[file.size - 1] == '\\' || epctx_str_is(file, ".") ||
                  epctx_str_is(file, "..");
    if (path[0] != '\0' && (folder || (extension && epctx__path_stem(file).size == file.size))) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "ep.context_file_path '%s' should not point to a folder: a file name "
                          "with an extension is expected",
                          path);
    }
    return EPCTX_OK;
}

static epctx_status epctx__options_generate(const epctx_options *o, const char *model_path,
                                            epctx_error *error)
{
    if (model_path[0] == '\0' && epctx_option_text(o, EPCTX_OPTION_CONTEXT_FILE_PATH)[0] == '\0') {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "the model came from memory, so the output has no name: set "
                          "ep.context_file_path");
    }
    if (epctx_option_on(o, EPCTX_OPTION_DISABLE_MODEL_COMPILE)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "session.disable_model_compile is 1: it forbids to generate");
    }
    if (epctx_option_given(o, EPCTX_OPTION_WEIGHTLESS) &&
        epctx_option_given(o, EPCTX_OPTION_WEIGHTLESS_NODES) &&
        epctx_option_on(o, EPCTX_OPTION_WEIGHTLESS) !=
            epctx_option_on(o, EPCTX_OPTION_WEIGHTLESS_NODES)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "ep.enable_weightless and its former name "
                          "ep.enable_weightless_ep_context_nodes differ: keep the first");
    }
    if (epctx_option_on(o, EPCTX_OPTION_DISABLE_CPU_FALLBACK) &&
        epctx_option_no_nodes(o) != EPCTX_NO_NODES_ERROR) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "session.disable_cpu_ep_fallback is 1, so a model for the CPU alone is "
                          "an error: leave epctx.no_nodes at error");
    }
    return epctx__options_profile(o, error);
}

EPCTX_API epctx_status epctx_options_check(const epctx_options *options, uint32_t phase,
                                           const char *model_path, epctx_error *error)
{
    bool generates = (phase & EPCTX_PHASE_GENERATE) != 0;
    epctx_options defaults;
    epctx_status status;
    size_t i;
    epctx_error_clear(error);
    epctx_options_init(&defaults, NULL);
    options = options != NULL ? options : &defaults;
    for (i = 0, status = EPCTX_OK; status == EPCTX_OK && i < EPCTX_OPTION_COUNT; i++) {
        if (options->values[i] != NULL) { /* may have been set by hand */
            status =
                epctx__option_value(&epctx__options[i], epctx_str_of(options->values[i]), error);
        }
    }
    if (status == EPCTX_OK) {
        status = epctx__options_share(options, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__options_file(epctx_option_text(options, EPCTX_OPTION_CONTEXT_FILE_PATH),
                                     generates, error);
    }
    if (status == EPCTX_OK && generates) {
        status = epctx__options_generate(options, model_path != NULL ? model_path : "", error);
    }
    return status;
}

/* -- preflight -- */

typedef struct epctx__preflight {
    const epctx_io *io;
    bool overwrite;
    epctx_arena *arena;
    epctx_error *error;
    const char **paths; /* all outputs */
    const char **real;  /* the same without links: what tells whether two are one file */
    size_t count;
} epctx__preflight;

static epctx_status epctx__preflight_copy(epctx__preflight *p, const char *text, const char **out)
{
    *out = epctx_arena_copy(p->arena, epctx_str_of(text));
    return *out != NULL ? EPCTX_OK : epctx__nomem(p->error, p->arena->missing);
}

/* Adds an output `folder` + `name`. */
static epctx_status epctx__preflight_add(epctx__preflight *p, epctx_str folder, epctx_str name,
                                         const char **out)
{
    char path[EPCTX_PATH_MAX];
    epctx_str parts[2];
    epctx_status status;
    parts[0] = folder;
    parts[1] = name;
    status = epctx__path_join(path, sizeof path, parts, 2, p->error);
    if (status == EPCTX_OK) {
        status = epctx__preflight_copy(p, path, out);
    }
    if (status == EPCTX_OK) {
        p->paths[p->count++] = *out;
    }
    return status;
}

static epctx_status epctx__preflight_names(epctx__preflight *p, const epctx_options *options,
                                           const epctx_preflight_in *in, epctx_outputs *out)
{
    const char *wanted = epctx_option_text(options, EPCTX_OPTION_CONTEXT_FILE_PATH);
    const char *file = epctx_option_text(options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FILE);
    bool embed = epctx_option_on(options, EPCTX_OPTION_CONTEXT_EMBED_MODE);
    char name[EPCTX_PATH_MAX];
    epctx_str folder = epctx_str_of("");
    epctx_status status = EPCTX_OK;
    const char **binaries;
    size_t i;
    if (wanted[0] == '\0') {
        status =
            epctx_path_context_model(epctx_str_of(in->model_path), name, sizeof name, p->error);
        wanted = name;
    }
    if (status == EPCTX_OK) {
        status = epctx__preflight_add(p, folder, epctx_str_of(wanted), &out->model);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    folder = epctx_path_folder(epctx_str_of(out->model));
    if (file[0] != '\0') {
        status = epctx__preflight_add(p, folder, epctx_str_of(file), &out->initializers);
    }
    binaries = (const char **)epctx_arena_array(p->arena, in->ep_count, sizeof *binaries);
    if (binaries == NULL) {
        return epctx__nomem(p->error, p->arena->missing);
    }
    out->binaries = binaries;
    for (i = 0; status == EPCTX_OK && !embed && i < in->ep_count; i++) {
        epctx_str binary = epctx_str_of(in->binary);
        if (binary.size == 0) {
            status = epctx_path_binary(epctx_str_of(out->model), epctx_str_of(in->eps[i]), name,
                                       sizeof name, p->error);
            binary = epctx_str_of(name);
        } else {
            status = epctx_path_check(binary, p->error);
        }
        if (status == EPCTX_OK) {
            status = epctx__preflight_add(p, folder, binary, &binaries[i]);
        }
        out->binary_count = status == EPCTX_OK ? i + 1 : i;
    }
    return status;
}

/* `path` without links; of a file that does not exist: its folder without links, and its name. */
static epctx_status epctx__preflight_real(epctx__preflight *p, const char *path, bool exists,
                                          const char **out)
{
    char real[EPCTX_PATH_MAX];
    char folder[EPCTX_PATH_MAX];
    epctx_str parts[3];
    epctx_status status;
    if (exists) {
        status = p->io->canonical_fn(p->io->user, path, real, sizeof real, p->error);
        return status == EPCTX_OK ? epctx__preflight_copy(p, real, out) : status;
    }
    parts[0] = epctx_path_folder(epctx_str_of(path));
    parts[1] = epctx_str_of(parts[0].size > 0 ? "" : ".");
    status = epctx__path_join(folder, sizeof folder, parts, 2, p->error);
    if (status == EPCTX_OK) {
        status = p->io->canonical_fn(p->io->user, folder, real, sizeof real, p->error);
    }
    parts[0] = epctx_str_of(status == EPCTX_OK ? real : "");
    parts[1] = epctx_str_of(
        parts[0].size > 0 && epctx__is_separator(real[parts[0].size - 1]) ? "" : "/");
    parts[2] = epctx_path_file(epctx_str_of(path));
    if (status == EPCTX_OK) {
        status = epctx__path_join(folder, sizeof folder, parts, 3, p->error);
    }
    return status == EPCTX_OK ? epctx__preflight_copy(p, folder, out) : status;
}

/* The folder exists; the file does not, or it is one and may be replaced. */
static epctx_status epctx__preflight_place(epctx__preflight *p, size_t index)
{
    const epctx_io *io = p->io;
    char folder[EPCTX_PATH_MAX];
    epctx_str part = epctx_path_folder(epctx_str_of(p->paths[index]));
    epctx_file_kind kind;
    uint64_t size;
    epctx_status status;
    part = part.size > 0 ? part : epctx_str_of(".");
    status = epctx__path_join(folder, sizeof folder, &part, 1, p->error);
    if (status == EPCTX_OK) {
        status = io->stat_fn(io->user, folder, &kind, &size, p->error);
    }
    if (status == EPCTX_OK && kind != EPCTX_FILE_FOLDER) {
        return epctx_fail(p->error, EPCTX_ERR_NOT_FOUND, "its folder does not exist");
    }
    if (status == EPCTX_OK) {
        status = io->stat_fn(io->user, p->paths[index], &kind, &size, p->error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    if (kind != EPCTX_FILE_NONE && kind != EPCTX_FILE_REGULAR) {
        return epctx_fail(p->error, EPCTX_ERR_PATH,
                          "is a folder or a device, a file is expected");
    }
    if (kind == EPCTX_FILE_REGULAR && !p->overwrite) {
        return epctx_fail(p->error, EPCTX_ERR_EXISTS,
                          "exists already: remove it or allow overwriting");
    }
    return epctx__preflight_real(p, p->paths[index], kind == EPCTX_FILE_REGULAR, &p->real[index]);
}

/* No output is another output, and none is a file that is read. */
static epctx_status epctx__preflight_clash(epctx__preflight *p, size_t index,
                                           const epctx_preflight_in *in)
{
    char real[EPCTX_PATH_MAX];
    epctx_error ignored;
    size_t i;
    for (i = 0; i < index; i++) {
        if (strcmp(p->real[i], p->real[index]) == 0) {
            return epctx_fail(p->error, EPCTX_ERR_PATH,
                              "two outputs would be this file: change one of the names");
        }
    }
    for (i = 0; i <= in->input_count; i++) {
        const char *input = i < in->input_count ? in->inputs[i] : in->model_path;
        epctx_error_clear(&ignored);
        if (input != NULL && input[0] != '\0' &&
            p->io->canonical_fn(p->io->user, input, real, sizeof real, &ignored) == EPCTX_OK &&
            strcmp(real, p->real[index]) == 0) {
            return epctx_fail(p->error, EPCTX_ERR_PATH,
                              "belongs to the source model: it must not be overwritten by its own "
                              "output");
        }
    }
    return EPCTX_OK;
}

/* Only writing tells whether one can write. */
static epctx_status epctx__preflight_write(epctx__preflight *p, size_t index, epctx_io_file *file)
{
    epctx_status status = p->io->create_fn(p->io->user, p->paths[index], file, p->error);
    if (status == EPCTX_OK) {
        p->io->abort_fn(p->io->user, file);
    }
    return status;
}

EPCTX_API epctx_status epctx_preflight(const epctx_options *options, const epctx_preflight_in *in,
                                       epctx_arena *arena, epctx_outputs *out, epctx_error *error)
{
    epctx__preflight p;
    epctx_io_file *file;
    epctx_status status = epctx_options_check(options, EPCTX_PHASE_GENERATE, in->model_path, error);
    size_t i;
    memset(out, 0, sizeof *out);
    memset(&p, 0, sizeof p);
    if (status != EPCTX_OK) {
        return status;
    }
    p.io = in->io != NULL ? in->io : epctx_io_files();
    p.overwrite = epctx_option_on(options, EPCTX_OPTION_OVERWRITE);
    p.arena = arena;
    p.error = error;
    if (p.io == NULL || (in->binary != NULL && in->ep_count > 1)) {
        return epctx_fail(error, EPCTX_ERR_ARG, p.io == NULL
                                                    ? "EPCTX_NO_STDIO: pass an epctx_io"
                                                    : "one name for the binaries of several EPs");
    }
    file = (epctx_io_file *)epctx_arena_alloc(arena, sizeof *file);
    p.paths = (const char **)epctx_arena_array(arena, in->ep_count + 2, sizeof *p.paths);
    p.real = (const char **)epctx_arena_array(arena, in->ep_count + 2, sizeof *p.real);
    if (file == NULL || p.paths == NULL || p.real == NULL) {
        return epctx__nomem(error, arena->missing);
    }
    status = epctx__preflight_names(&p, options, in, out);
    for (i = 0; status == EPCTX_OK && i < p.count; i++) {
        status = epctx__preflight_place(&p, i);
        if (status == EPCTX_OK) {
            status = epctx__preflight_clash(&p, i, in);
        }
        if (status == EPCTX_OK) {
            status = epctx__preflight_write(&p, i, file);
        }
        if (status != EPCTX_OK) {
            epctx_blame(error, p.paths[i], NULL, NULL);
        }
    }
    return status;
}

/* ================================================================================================
 * >>check
 * ============================================================================================== */

EPCTX_API const char *epctx_compat_name(epctx_compat compat)
{
    switch (compat) {
    case EPCTX_COMPAT_NOT_APPLICABLE:
        return "EP_NOT_APPLICABLE";
    case EPCTX_COMPAT_OPTIMAL:
        return "EP_SUPPORTED_OPTIMAL";
    case EPCTX_COMPAT_PREFER_RECOMPILATION:
        return "EP_SUPPORTED_PREFER_RECOMPILATION";
    case EPCTX_COMPAT_UNSUPPORTED:
        return "EP_UNSUPPORTED";
    default:
        return "unknown";
    }
}

/* Cuts the text up to `separator` off the front of `*rest`; false when nothing is left. */
static bool epctx__cut(epctx_str *rest, char separator, epctx_str *part)
{
    size_t i = 0;
    if (rest->data == NULL) {
        return false;
    }
    while (i < rest->size && rest->data[i] != separator) {
        i++;
    }
    part->data = rest->data;
    part->size = i;
    if (i == rest->size) {
        *rest = epctx_str_of(NULL);
    } else {
        rest->data += i + 1;
        rest->size -= i + 1;
    }
    return true;
}

static bool epctx__cut_number(epctx_str *rest, char separator, uint64_t *value)
{
    epctx_str part;
    size_t i;
    if (!epctx__cut(rest, separator, &part) || part.size == 0 || part.size > 18) {
        return false;
    }
    *value = 0;
    for (i = 0; i < part.size; i++) {
        if (part.data[i] < '0' || part.data[i] > '9') {
            return false;
        }
        *value = *value * 10 + (uint64_t)(part.data[i] - '0');
    }
    return true;
}

static bool epctx__cut_version(epctx_str *rest, uint64_t version[3])
{
    epctx_str part;
    return epctx__cut(rest, ':', &part) && epctx__cut_number(&part, '.', &version[0]) &&
           epctx__cut_number(&part, '.', &version[1]) &&
           epctx__cut_number(&part, '.', &version[2]) && part.data == NULL;
}

/* Format and rule: the compatibility string of the QNN plugin EP (onnxruntime-qnn, 2026-03). */
EPCTX_API bool epctx_compat_read_qnn(epctx_str text, epctx_compat_qnn *out)
{
    memset(out, 0, sizeof *out);
    return text.data != NULL && epctx__cut_number(&text, ':', &out->backend) &&
           epctx__cut_version(&text, out->sdk) && epctx__cut_version(&text, out->api) &&
           epctx__cut_version(&text, out->blob) && epctx__cut_number(&text, ':', &out->arch) &&
           epctx__cut_number(&text, ':', &out->user_driver) && text.data == NULL;
}

EPCTX_API bool epctx_compat_next(epctx_str *rest, epctx_str *key, epctx_str *value)
{
    epctx_str part;
    size_t i;
    if (rest->size == 0 || !epctx__cut(rest, ';', &part)) {
        return false;
    }
    *key = epctx_str_of("");
    *value = part;
    for (i = 0; i < part.size; i++) {
        if (part.data[i] == '=') {
            key->data = part.data;
            key->size = i;
            value->data = part.data + i + 1;
            value->size = part.size - i - 1;
            break;
        }
    }
    return true;
}

static epctx_compat epctx__compat_verdict(epctx_error *why, epctx_compat compat, const char *text)
{
    epctx_error_clear(why);
    if (why != NULL) {
        epctx_fail(why, EPCTX_ERR_VERSION, "%s", text);
        why->status = EPCTX_OK;
    }
    return compat;
}

/* -1, 0, 1: major and minor of `a` against `b`. */
static int epctx__compare_version(const uint64_t a[3], const uint64_t b[3], int parts)
{
    int i;
    for (i = 0; i < parts; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

static epctx_compat epctx__compare_qnn(epctx_str model, epctx_str runtime, epctx_error *why)
{
    epctx_compat_qnn m;
    epctx_compat_qnn r;
    if (!epctx_compat_read_qnn(model, &m)) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_NOT_APPLICABLE,
                                     "the model's string has not QNN's six fields");
    }
    if (!epctx_compat_read_qnn(runtime, &r)) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_NOT_APPLICABLE,
                                     "the machine's string has not QNN's six fields");
    }
    if (m.backend != r.backend) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_UNSUPPORTED, "another QNN backend");
    }
    if (epctx__compare_version(m.api, r.api, 2) > 0 ||
        epctx__compare_version(m.sdk, r.sdk, 2) > 0) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_UNSUPPORTED,
                                     "made with a newer SDK than the machine has");
    }
    if (epctx__compare_version(m.blob, r.blob, 3) > 0) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_UNSUPPORTED,
                                     "the binary's version is newer than the machine can read");
    }
    if (m.arch > r.arch) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_UNSUPPORTED,
                                     "made for a newer HTP architecture");
    }
    if (m.arch < r.arch) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_PREFER_RECOMPILATION,
                                     "made for an older HTP architecture");
    }
    return epctx__compat_verdict(why, EPCTX_COMPAT_OPTIMAL, "same backend and architecture");
}

static bool epctx__compat_find(epctx_str text, epctx_str key, epctx_str *value)
{
    epctx_str k;
    while (epctx_compat_next(&text, &k, value)) {
        if (epctx_str_eq(k, key)) {
            return true;
        }
    }
    return false;
}

static epctx_compat epctx__compare_pairs(epctx_str model, epctx_str runtime, epctx_error *why)
{
    epctx_str rest = model;
    epctx_str key;
    epctx_str value;
    epctx_str other;
    epctx_compat verdict = EPCTX_COMPAT_OPTIMAL;
    if (epctx_str_eq(model, runtime)) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_OPTIMAL, "equal strings");
    }
    while (epctx_compat_next(&rest, &key, &value)) {
        if (!epctx__compat_find(runtime, key, &other)) {
            return epctx__compat_verdict(why, EPCTX_COMPAT_NOT_APPLICABLE,
                                         "the strings have different keys");
        }
        if (epctx_str_eq(value, other)) {
            continue;
        }
        if (key.size == 0) {
            return epctx__compat_verdict(why, EPCTX_COMPAT_NOT_APPLICABLE,
                                         "the strings are of different EPs");
        }
        if (epctx_str_is(key, "hardware_architecture") || epctx_str_is(key, "arch")) {
            return epctx__compat_verdict(why, EPCTX_COMPAT_UNSUPPORTED, "another architecture");
        }
        verdict = EPCTX_COMPAT_PREFER_RECOMPILATION;
    }
    return epctx__compat_verdict(why, verdict,
                                 verdict == EPCTX_COMPAT_OPTIMAL ? "the same values"
                                                                 : "another version");
}

EPCTX_API epctx_compat epctx_compat_compare(const epctx_profile *profile, epctx_str model,
                                            epctx_str runtime, epctx_error *why)
{
    bool qnn = profile != NULL && strncmp(profile->name, "qnn", 3) == 0;
    if (model.size == 0 || runtime.size == 0) {
        return epctx__compat_verdict(why, EPCTX_COMPAT_NOT_APPLICABLE,
                                     "there is no compatibility string");
    }
    return qnn ? epctx__compare_qnn(model, runtime, why)
               : epctx__compare_pairs(model, runtime, why);
}

EPCTX_API epctx_rule_info epctx_rule_of(epctx_rule rule)
{
    static const epctx_rule_info rules[EPCTX_RULE_COUNT + 1] = {
#define EPCTX__RULE_INFO(symbol, id, name, text, fix)                                              \
    {id, name, text, fix,                                                                          \
     (id)[0] == 'E'   ? EPCTX_SEVERITY_ERROR                                                       \
     : (id)[0] == 'W' ? EPCTX_SEVERITY_WARNING                                                     \
                      : EPCTX_SEVERITY_HINT},
        EPCTX_RULE_LIST(EPCTX__RULE_INFO)
#undef EPCTX__RULE_INFO
        {"", "unknown", "", "", EPCTX_SEVERITY_HINT},
    };
    return rules[(unsigned)rule < (unsigned)EPCTX_RULE_COUNT ? (int)rule : (int)EPCTX_RULE_COUNT];
}

#ifndef EPCTX_NO_WIRE

/* -- walk -- */

static void epctx__walk_push(epctx_walk *walk, epctx_str graph, epctx_cursor nodes)
{
    epctx_walk_level *level;
    if (walk->count < EPCTX_WALK_DEPTH) {
        level = &walk->levels[walk->count++];
        memset(level, 0, sizeof *level);
        level->graph = graph;
        level->nodes = nodes;
    }
}

EPCTX_API void epctx_walk_begin(epctx_walk *walk, const epctx_model *model)
{
    epctx_graph_view graph = epctx_model_graph(model);
    epctx_view root = epctx__slot_view(model->shown);
    memset(walk, 0, sizeof *walk);
    walk->functions = epctx_fields(root, 25);
    walk->trainings = epctx_fields(root, 20);
    epctx__walk_push(walk, graph.name, epctx_graph_nodes(graph));
}

/* Starts on the next function or training graph; false when there is none left. */
static bool epctx__walk_more(epctx_walk *walk)
{
    epctx_view body;
    epctx_field field;
    if (epctx__next_body(&walk->functions, &body)) {
        epctx_cursor names = epctx_fields(body, 1);
        epctx_str name = epctx_str_of(NULL);
        while (epctx_next_str(&names, &name)) {
        }
        walk->in_function = true;
        epctx__walk_push(walk, name, epctx_fields(body, 7));
        return true;
    }
    walk->in_function = false;
    for (;;) {
        while (epctx_next_field(&walk->training, &field)) {
            if (field.wire == EPCTX_WIRE_LEN && (field.number == 1 || field.number == 2)) {
                epctx_graph_view graph = epctx_graph_of(field.body);
                walk->in_training = true;
                epctx__walk_push(walk, graph.name, epctx_graph_nodes(graph));
                return true;
            }
        }
        if (!epctx__next_body(&walk->trainings, &body)) {
            return false;
        }
        walk->training = epctx_fields(body, 0);
    }
}

EPCTX_API bool epctx_walk_next(epctx_walk *walk, epctx_node_view *node)
{
    for (;;) {
        epctx_walk_level *level;
        epctx_field field;
        epctx_view body;
        bool descended = false;
        if (walk->count == 0) {
            if (!epctx__walk_more(walk)) {
                return false;
            }
            continue;
        }
        level = &walk->levels[walk->count - 1];
        while (!descended && epctx_next_field(&level->graphs, &field)) {
            if (field.wire == EPCTX_WIRE_LEN && (field.number == 6 || field.number == 11)) {
                epctx_graph_view graph = epctx_graph_of(field.body);
                epctx__walk_push(walk, graph.name, epctx_graph_nodes(graph));
                descended = true;
            }
        }
        if (descended) {
            continue;
        }
        if (epctx__next_body(&level->attrs, &body)) {
            level->graphs = epctx_fields(body, 0);
        } else if (epctx_next_node(&level->nodes, node)) {
            level->attrs = epctx_node_attrs(node);
            walk->depth = walk->count - 1;
            return true;
        } else {
            walk->count--;
        }
    }
}

EPCTX_API bool epctx_walk_epnode(epctx_walk *walk, epctx_node_view *node)
{
    while (epctx_walk_next(walk, node)) {
        if (epctx_str_is(node->op_type, EPCTX_OP_TYPE)) {
            return true;
        }
    }
    return false;
}

/* -- state -- */

/* Room for one more element of a list that grows in an arena. */
static bool epctx__list_room(epctx_arena *arena, void **list, size_t count, size_t *room,
                             size_t size)
{
    void *more;
    size_t want = *room == 0 ? 8 : *room * 2;
    if (count < *room) {
        return true;
    }
    more = *room > SIZE_MAX / 2 ? NULL : epctx_arena_array(arena, want, size);
    if (more == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(more, *list, count * size);
    }
    *list = more;
    *room = want;
    return true;
}

/* "a\0b\0c" in the arena. */
static bool epctx__join_key(epctx_arena *arena, const epctx_str *parts, size_t count,
                            epctx_str *out)
{
    size_t size = 0;
    size_t i;
    char *text;
    for (i = 0; i < count; i++) {
        if (parts[i].size >= SIZE_MAX - size) {
            return false;
        }
        size += parts[i].size + 1;
    }
    text = (char *)epctx_arena_alloc(arena, size);
    out->data = text;
    out->size = size;
    for (i = 0; text != NULL && i < count; i++) {
        if (parts[i].size > 0) {
            memcpy(text, parts[i].data, parts[i].size);
        }
        text += parts[i].size + 1;
    }
    return text != NULL;
}

typedef struct epctx__gather {
    epctx_arena *arena;
    epctx_state *state;
    epctx_map seen, initializers;
    void *makers;
    size_t room;
} epctx__gather;

static bool epctx__gather_maker(epctx__gather *g, const epctx_epnode *node)
{
    epctx_str parts[3];
    epctx_str key;
    epctx_maker *maker;
    uint32_t at;
    parts[0] = node->source;
    parts[1] = node->ep_sdk_version;
    parts[2] = node->hardware_architecture;
    if (!epctx__join_key(g->arena, parts, 3, &key)) {
        return false;
    }
    at = epctx_map_get(&g->seen, key);
    if (at == EPCTX_MAP_NONE) {
        at = (uint32_t)g->state->maker_count;
        if (!epctx__list_room(g->arena, &g->makers, at, &g->room, sizeof *maker) ||
            epctx_map_put(&g->seen, key, at) != EPCTX_OK) {
            return false;
        }
        maker = (epctx_maker *)g->makers + at;
        maker->source = parts[0];
        maker->sdk_version = parts[1];
        maker->architecture = parts[2];
        maker->profile = epctx_profile_of(node->source);
        g->state->makers = (const epctx_maker *)g->makers;
        g->state->maker_count++;
    }
    maker = (epctx_maker *)g->makers + at;
    maker->nodes++;
    maker->mains += node->main_context == 1;
    if (node->embed_mode == 1) {
        maker->embedded++;
        maker->payload_size += node->ep_cache_context.size;
    }
    return true;
}

static bool epctx__gather_nodes(epctx__gather *g, const epctx_model *model)
{
    epctx_cursor tensors = epctx_graph_initializers(epctx_model_graph(model));
    epctx_view body;
    epctx_walk walk;
    epctx_node_view node;
    while (epctx__next_body(&tensors, &body)) {
        if (epctx_map_put(&g->initializers, epctx_tensor_of(body).name, 1) != EPCTX_OK) {
            return false;
        }
    }
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) {
        epctx_epnode ep;
        epctx_cursor inputs;
        epctx_str name;
        if (!epctx_str_is(node.op_type, EPCTX_OP_TYPE)) {
            g->state->other_nodes++;
            continue;
        }
        if (!epctx_is_epnode(&node) || epctx_epnode_read(&node, &ep, NULL) != EPCTX_OK) {
            g->state->broken_nodes++;
            continue;
        }
        g->state->ep_nodes++;
        if (!epctx__gather_maker(g, &ep)) {
            return false;
        }
        inputs = epctx_node_inputs(&node);
        while (walk.depth == 0 && !walk.in_function && epctx_next_str(&inputs, &name)) {
            g->state->weightless_inputs +=
                epctx_map_get(&g->initializers, name) != EPCTX_MAP_NONE;
        }
    }
    return true;
}

static bool epctx__gather_compat(epctx__gather *g, const epctx_model *model)
{
    epctx_cursor it = epctx_fields(epctx__slot_view(model->shown), 14);
    epctx_view body;
    void *list = NULL;
    size_t room = 0;
    while (epctx__next_body(&it, &body)) {
        epctx_compat_entry entry;
        epctx__pair(body, &entry.ep, &entry.value);
        if (!epctx__starts_with(entry.ep, EPCTX_COMPAT_PREFIX)) {
            continue;
        }
        entry.ep.data += sizeof EPCTX_COMPAT_PREFIX - 1;
        entry.ep.size -= sizeof EPCTX_COMPAT_PREFIX - 1;
        if (!epctx__list_room(g->arena, &list, g->state->compat_count, &room, sizeof entry)) {
            return false;
        }
        ((epctx_compat_entry *)list)[g->state->compat_count++] = entry;
    }
    g->state->compat = (const epctx_compat_entry *)list;
    return true;
}

EPCTX_API epctx_status epctx_model_state(const epctx_model *model, epctx_arena *arena,
                                         epctx_state *out, epctx_error *error)
{
    epctx__gather gather;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    memset(&gather, 0, sizeof gather);
    gather.arena = arena;
    gather.state = out;
    epctx_map_init(&gather.seen, arena);
    epctx_map_init(&gather.initializers, arena);
    if (!epctx__gather_nodes(&gather, model) || !epctx__gather_compat(&gather, model)) {
        return epctx__nomem(error, arena->missing);
    }
    out->compiled = out->ep_nodes == 0      ? EPCTX_PLAIN
                    : out->other_nodes == 0 ? EPCTX_FULLY_COMPILED
                                            : EPCTX_PARTLY_COMPILED;
    return EPCTX_OK;
}

/* -- files -- */

EPCTX_API const char *epctx_file_use_name(epctx_file_use use)
{
    switch (use) {
    case EPCTX_USE_CONTEXT:
        return "context binary";
    case EPCTX_USE_INITIALIZERS:
        return "initializers";
    case EPCTX_USE_SOURCE_MODEL:
        return "source model";
    case EPCTX_USE_COMPANION:
        return "companion";
    default:
        return "unknown";
    }
}

typedef struct epctx__files {
    const epctx_model *model;
    epctx_arena *arena;
    epctx_map seen;
    void *list;
    size_t count, room;
    const char *context_folder;  /* NULL: unknown */
    const char *external_folder;
    epctx_str model_file;         /* the context model's name, for patterns */
    const epctx_profile *profile; /* given by the caller, or NULL */
    bool optional;                /* what is named now is not needed by a session */
    uint32_t flags;
    bool no_files;
} epctx__files;

static bool epctx__files_begin(epctx__files *f, const epctx_model *model,
                               const epctx_check_opts *opts, epctx_arena *arena)
{
    epctx_str path = epctx_str_of(model->path);
    epctx_str folder = epctx_str_of("");
    epctx_str external = epctx_str_of(model->external_folder);
    memset(f, 0, sizeof *f);
    f->model = model;
    f->arena = arena;
    f->flags = model->path_flags | (opts != NULL ? opts->path_flags : 0);
    f->no_files = opts != NULL && opts->no_files;
    f->profile = opts != NULL ? opts->profile : NULL;
    f->model_file = epctx_path_file(opts != NULL && opts->context_file_path != NULL
                                        ? epctx_str_of(opts->context_file_path)
                                        : path);
    epctx_map_init(&f->seen, arena);
    if (opts != NULL && opts->external_folder != NULL) {
        external = epctx_str_of(opts->external_folder);
    }
    if (epctx_path_base(path, epctx_str_of(opts != NULL ? opts->context_file_path : NULL), &folder,
                        NULL) == EPCTX_OK) {
        f->context_folder = epctx_arena_copy(arena, folder);
        if (f->context_folder == NULL) {
            return false;
        }
    }
    if (external.size > 0 || path.size > 0) {
        f->external_folder =
            epctx_arena_copy(arena, external.size > 0 ? external : epctx_path_folder(path));
        return f->external_folder != NULL;
    }
    return true;
}

static bool epctx__file_look(epctx__files *f, epctx_dependency *file)
{
    const epctx_io *io = f->model->io;
    epctx_error error;
    epctx_file_kind kind;
    char path[EPCTX_PATH_MAX];
    epctx_error_clear(&error);
    if (file->folder == NULL) {
        file->status = epctx_fail(&error, EPCTX_ERR_PATH,
                                  "the model came from memory: the folder is not known");
    } else if (f->no_files || io == NULL) {
        file->status = epctx_path_check(file->name, &error);
    } else {
        file->status = epctx_path_find(io, epctx_str_of(file->folder), file->name, f->flags, path,
                                       sizeof path, &error);
        if (file->status == EPCTX_OK) {
            file->status = io->stat_fn(io->user, path, &kind, &file->size, &error);
        }
        if (file->status == EPCTX_OK) {
            file->path = epctx_arena_copy(f->arena, epctx_str_of(path));
            return file->path != NULL;
        }
    }
    if (file->status != EPCTX_OK) {
        file->problem = epctx_arena_copy(f->arena, epctx_str_of(error.message));
        return file->problem != NULL;
    }
    return true;
}

/* The entry for a file, made when it is new; NULL when memory ran out. */
static epctx_dependency *epctx__file_add(epctx__files *f, epctx_file_use use, epctx_str name,
                                         epctx_str node, const char *attribute, bool required)
{
    epctx_str parts[2];
    epctx_str key;
    epctx_dependency *file;
    uint32_t at;
    parts[0] = epctx_str_of(use == EPCTX_USE_INITIALIZERS ? "i" : "c");
    parts[1] = name;
    if (!epctx__join_key(f->arena, parts, 2, &key)) {
        return NULL;
    }
    at = epctx_map_get(&f->seen, key);
    if (at == EPCTX_MAP_NONE) {
        at = (uint32_t)f->count;
        if (!epctx__list_room(f->arena, &f->list, f->count, &f->room, sizeof *file) ||
            epctx_map_put(&f->seen, key, at) != EPCTX_OK) {
            return NULL;
        }
        f->count++;
        file = (epctx_dependency *)f->list + at;
        memset(file, 0, sizeof *file);
        file->use = use;
        file->name = name;
        file->node = node;
        file->attribute = attribute;
        file->folder = use == EPCTX_USE_INITIALIZERS ? f->external_folder : f->context_folder;
        if (!epctx__file_look(f, file)) {
            return NULL;
        }
    }
    file = (epctx_dependency *)f->list + at;
    file->users++;
    file->required = file->required || required;
    return file;
}

/* OpenVINO's IR is a pair: "x.xml" says what to do, "x.bin" has the weights. */
static bool epctx__files_companion(epctx__files *f, const epctx_epnode *node)
{
    epctx_str name = node->ep_cache_context;
    char *bin;
    if (!epctx__ends_with(name, ".xml")) {
        return true;
    }
    bin = epctx_arena_copy(f->arena, name);
    if (bin == NULL) {
        return false;
    }
    memcpy(bin + name.size - 4, ".bin", 4);
    name.data = bin;
    return epctx__file_add(f, EPCTX_USE_COMPANION, name, node->name, "ep_cache_context", true) !=
           NULL;
}

/* Value of a STRING attribute of any node; empty when absent. */
static epctx_str epctx__attr_str(const epctx_node_view *node, const char *name)
{
    epctx_cursor it = epctx_node_attrs(node);
    epctx_attr_view attr;
    epctx_str found = epctx_str_of(NULL);
    while (epctx_next_attr(&it, &attr)) {
        if (epctx_str_is(attr.name, name) && attr.type == EPCTX_ATTR_STRING) {
            found = attr.s;
        }
    }
    return found;
}

/* A file name by a profile's pattern, beside the context model `file`. '*' matches anything. */
static bool epctx__name_fits(const char *pattern, epctx_str name, epctx_str file)
{
    epctx_str stem = epctx__path_stem(file);
    epctx_str model = stem;
    if (epctx__ends_with(model, "_ctx")) {
        model.size -= 4;
    }
    while (*pattern != '\0') {
        epctx_str part;
        size_t i;
        if (*pattern == '*') {
            for (i = 0; i <= name.size; i++) {
                epctx_str rest;
                rest.data = name.data + i;
                rest.size = name.size - i;
                if (epctx__ends_with(rest, pattern + 1) &&
                    rest.size == strlen(pattern + 1)) {
                    return true;
                }
            }
            return false;
        }
        if (strncmp(pattern, "{stem}", 6) == 0) {
            part = stem;
            pattern += 6;
        } else if (strncmp(pattern, "{model}", 7) == 0) {
            part = model;
            pattern += 7;
        } else if (strncmp(pattern, "{file}", 6) == 0) {
            part = file;
            pattern += 6;
        } else {
            part.data = pattern++;
            part.size = 1;
        }
        if (name.size < part.size ||
            (part.size > 0 && memcmp(name.data, part.data, part.size) != 0)) {
            return false;
        }
        name.data += part.size;
        name.size -= part.size;
    }
    return name.size == 0;
}

/* The first names in a folder that fit a pattern. */
typedef struct epctx__matches {
    epctx_arena *arena;
    const char *pattern;
    epctx_str model;
    const char *names[EPCTX_MATCH_MAX]; /* sorted */
    int count;
    bool full_memory;
} epctx__matches;

static bool epctx__match_name(void *state, const char *name)
{
    epctx__matches *m = (epctx__matches *)state;
    char *copy;
    int at = m->count;
    if (!epctx__name_fits(m->pattern, epctx_str_of(name), m->model)) {
        return true;
    }
    while (at > 0 && strcmp(m->names[at - 1], name) > 0) {
        at--;
    }
    if (at == EPCTX_MATCH_MAX) {
        return true; /* behind all that are kept */
    }
    copy = epctx_arena_copy(m->arena, epctx_str_of(name));
    if (copy == NULL) {
        m->full_memory = true;
        return false;
    }
    m->count += m->count < EPCTX_MATCH_MAX;
    memmove(&m->names[at + 1], &m->names[at], (size_t)(m->count - 1 - at) * sizeof m->names[0]);
    m->names[at] = copy;
    return true;
}

/* A file beside the model is listed when it exists. */
static bool epctx__files_sidecar(epctx__files *f, epctx_str name)
{
    char path[EPCTX_PATH_MAX];
    return epctx_path_find(f->model->io, epctx_str_of(f->context_folder), name, f->flags, path,
                           sizeof path, NULL) != EPCTX_OK ||
           epctx__file_add(f, EPCTX_USE_COMPANION, name, epctx_str_of(""), "", false) != NULL;
}

static bool epctx__files_pattern(epctx__files *f, const char *pattern)
{
    const epctx_io *io = f->model->io;
    epctx__matches found;
    epctx_dependency *file;
    int i;
    memset(&found, 0, sizeof found);
    found.arena = f->arena;
    found.pattern = pattern;
    found.model = f->model_file;
    if (io->list_fn == NULL) {
        file = epctx__file_add(f, EPCTX_USE_COMPANION, epctx_str_of(pattern), epctx_str_of(""), "",
                               false);
        if (file != NULL) {
            file->status = EPCTX_ERR_UNSUPPORTED;
            file->problem = "a pattern: this epctx_io cannot list folders";
        }
        return file != NULL;
    }
    /* A folder that cannot be listed has no sidecars for us. */
    if (io->list_fn(io->user, f->context_folder, epctx__match_name, &found, NULL) != EPCTX_OK) {
        return true;
    }
    for (i = 0; i < found.count && !found.full_memory; i++) {
        if (!epctx__files_sidecar(f, epctx_str_of(found.names[i]))) {
            return false;
        }
    }
    return !found.full_memory;
}

/* Sidecars stand beside the model under names of their own, once for all nodes of an EP. */
static bool epctx__files_sidecars(epctx__files *f, const epctx_profile *profile)
{
    epctx_str parts[2];
    epctx_str key;
    int i;
    parts[0] = epctx_str_of("p");
    parts[1] = epctx_str_of(profile->name);
    if (f->no_files || f->context_folder == NULL || f->model->io == NULL ||
        profile->sidecars[0] == NULL) {
        return true;
    }
    if (!epctx__join_key(f->arena, parts, 2, &key)) {
        return false;
    }
    if (epctx_map_get(&f->seen, key) != EPCTX_MAP_NONE) {
        return true;
    }
    if (epctx_map_put(&f->seen, key, 0) != EPCTX_OK) {
        return false;
    }
    for (i = 0; i < 4 && profile->sidecars[i] != NULL; i++) {
        const char *name = profile->sidecars[i];
        size_t size = strlen(name);
        bool pattern = memchr(name, '*', size) != NULL || memchr(name, '{', size) != NULL;
        if (!(pattern ? epctx__files_pattern(f, name)
                      : epctx__files_sidecar(f, epctx_str_of(name)))) {
            return false;
        }
    }
    return true;
}

static bool epctx__files_epnode(epctx__files *f, const epctx_node_view *view)
{
    epctx_epnode node;
    const epctx_profile *profile;
    epctx_str dlc = epctx__attr_str(view, "ep_dlc_context");
    if (epctx_epnode_read(view, &node, NULL) != EPCTX_OK) {
        return true;
    }
    profile = f->profile != NULL && epctx_profile_claims(f->profile, &node) == EPCTX_CLAIM_YES
                  ? f->profile
                  : epctx_profile_of(node.source);
    if (node.embed_mode == 0 && dlc.size == 0 &&
        (node.main_context == 1 || (profile->traits & EPCTX_SECONDARY_CONTEXT) != 0 ||
         node.ep_cache_context.size > 0) &&
        (epctx__file_add(f, EPCTX_USE_CONTEXT, node.ep_cache_context, node.name, "ep_cache_context",
                         true) == NULL ||
         !epctx__files_companion(f, &node))) {
        return false;
    }
    if (dlc.size > 0 && epctx__file_add(f, EPCTX_USE_CONTEXT, dlc, node.name, "ep_dlc_context",
                                        true) == NULL) {
        return false;
    }
    if (node.onnx_model_filename.size > 0 &&
        epctx__file_add(f, EPCTX_USE_SOURCE_MODEL, node.onnx_model_filename, node.name,
                        "onnx_model_filename",
                        epctx__ends_with(node.ep_cache_context, ".stripped.engine")) == NULL) {
        return false;
    }
    return epctx__files_sidecars(f, profile);
}

static bool epctx__files_tensor(epctx__files *f, epctx_view view)
{
    epctx_tensor_view tensor = epctx_tensor_of(view);
    return !tensor.external || epctx__file_add(f, EPCTX_USE_INITIALIZERS, tensor.location,
                                               tensor.name, "location", !f->optional) != NULL;
}

/* A sparse tensor is two tensors. */
static bool epctx__files_sparse(epctx__files *f, epctx_view view)
{
    epctx_cursor it = epctx_fields(view, 0);
    epctx_field field;
    while (epctx_next_field(&it, &field)) {
        if (field.wire == EPCTX_WIRE_LEN && (field.number == 1 || field.number == 2) &&
            !epctx__files_tensor(f, field.body)) {
            return false;
        }
    }
    return true;
}

static bool epctx__files_graph(epctx__files *f, epctx_view graph, uint32_t depth);

static bool epctx__files_attr(epctx__files *f, epctx_view attr, uint32_t depth)
{
    epctx_cursor it = epctx_fields(attr, 0);
    epctx_field field;
    bool good = true;
    while (good && epctx_next_field(&it, &field)) {
        if (field.wire != EPCTX_WIRE_LEN) {
            continue;
        }
        if (field.number == 5 || field.number == 10) {
            good = epctx__files_tensor(f, field.body);
        } else if (field.number == 6 || field.number == 11) {
            good = epctx__files_graph(f, field.body, depth - 1);
        } else if (field.number == 22 || field.number == 23) {
            good = epctx__files_sparse(f, field.body);
        }
    }
    return good;
}

static bool epctx__files_nodes(epctx__files *f, epctx_cursor nodes, uint32_t depth)
{
    epctx_view node;
    epctx_view attr;
    while (depth > 0 && epctx__next_body(&nodes, &node)) {
        epctx_cursor attrs = epctx_fields(node, 5);
        while (epctx__next_body(&attrs, &attr)) {
            if (!epctx__files_attr(f, attr, depth)) {
                return false;
            }
        }
    }
    return true;
}

/* Tensors with external data: initializers and attribute values of a graph and its bodies. */
static bool epctx__files_graph(epctx__files *f, epctx_view graph, uint32_t depth)
{
    epctx_cursor it = epctx_fields(graph, 5);
    epctx_view body;
    while (epctx__next_body(&it, &body)) {
        if (!epctx__files_tensor(f, body)) {
            return false;
        }
    }
    it = epctx_fields(graph, 15);
    while (epctx__next_body(&it, &body)) {
        if (!epctx__files_sparse(f, body)) {
            return false;
        }
    }
    return epctx__files_nodes(f, epctx_fields(graph, 1), depth);
}

/* Sessions do not read training graphs, but who moves the model moves their files too. */
static bool epctx__files_trainings(epctx__files *f)
{
    epctx_cursor it = epctx_model_trainings(f->model);
    epctx_training_view training;
    bool good = true;
    f->optional = true;
    while (good && epctx_next_training(&it, &training)) {
        good = epctx__files_graph(f, training.initialization.view, 100) &&
               epctx__files_graph(f, training.algorithm.view, 100);
    }
    f->optional = false;
    return good;
}

static bool epctx__files_model(epctx__files *f)
{
    epctx_cursor functions = epctx_model_functions(f->model);
    epctx_walk walk;
    epctx_node_view node;
    epctx_view function;
    epctx_walk_begin(&walk, f->model);
    while (epctx_walk_epnode(&walk, &node)) {
        if (epctx_is_epnode(&node) && !epctx__files_epnode(f, &node)) {
            return false;
        }
    }
    if (!epctx__files_graph(f, epctx_model_graph(f->model).view, 100)) {
        return false;
    }
    while (epctx__next_body(&functions, &function)) {
        if (!epctx__files_nodes(f, epctx_fields(function, 7), 100)) {
            return false;
        }
    }
    return epctx__files_trainings(f);
}

EPCTX_API epctx_status epctx_model_files(const epctx_model *model, const epctx_check_opts *opts,
                                         epctx_arena *arena, epctx_dependency **out, size_t *count,
                                         epctx_error *error)
{
    epctx__files files;
    epctx_error_clear(error);
    if (!epctx__files_begin(&files, model, opts, arena) || !epctx__files_model(&files)) {
        return epctx__nomem(error, arena->missing);
    }
    *out = (epctx_dependency *)files.list;
    *count = files.count;
    return EPCTX_OK;
}

/* -- lint -- */

/* An EPContext node and what was learnt about it. */
typedef struct epctx__judged {
    epctx_epnode node;
    epctx_node_view view;
    const epctx_profile *profile;
    epctx_str graph;
    bool context; /* it has one: a payload, a path or a DLC */
    bool ours;    /* judged by its profile; else it is for another EP */
} epctx__judged;

/* Nodes that share contexts: of one EP. */
typedef struct epctx__party {
    const epctx_profile *profile;
    epctx_str source;
    size_t first; /* a node of it */
    uint64_t nodes, mains, embedded, files;
    epctx_map keys; /* partition_name -> node that has it */
} epctx__party;

typedef struct epctx__lint {
    const epctx_model *model;
    const epctx_check_opts *opts;
    epctx_arena arena;
    epctx_finding_fn found_fn;
    void *user;
    uint64_t counts[EPCTX_SEVERITY_COUNT];
    epctx_str graph;       /* around what is being looked at; empty: the main graph */
    bool in_function;
    bool in_training;
    void *nodes;           /* epctx__judged */
    size_t node_count, node_room;
    void *parties;
    size_t party_count, party_room;
    epctx_map party_of;
    epctx_map epnode_names;
    epctx_map unknown_sources;
    epctx_map imports;     /* domain -> 1, of the model or of the function looked at */
    epctx_map configurations;
    uint64_t main_nodes;
    bool short_of_memory;
    epctx_error scratch;
} epctx__lint;

#define EPCTX__MESSAGE 512

static void epctx__say(epctx__lint *l, epctx_rule rule, epctx_str node, const char *attribute,
                       const char *format, ...)
{
    char message[EPCTX__MESSAGE];
    epctx__text text = epctx__text_of(message, sizeof message);
    epctx_finding finding;
    va_list args;
    va_start(args, format);
    epctx__text_format(&text, format, args);
    va_end(args);
    message[text.size] = '\0';
    /* Sessions do not read training graphs: nothing in them is an error to a session. */
    if (l->in_training && epctx_rule_of(rule).severity == EPCTX_SEVERITY_ERROR) {
        rule = EPCTX_RULE_TRAINING;
    }
    finding.rule = rule;
    finding.info = epctx_rule_of(rule);
    finding.node = node;
    finding.graph = l->graph;
    finding.attribute = attribute != NULL ? attribute : "";
    finding.message = message;
    l->counts[finding.info.severity]++;
    if (l->found_fn != NULL) {
        l->found_fn(l->user, &finding);
    }
}

/* Maps and lists of lint live in its arena; one failure ends the work. */
static uint32_t epctx__remember(epctx__lint *l, epctx_map *map, epctx_str key, uint32_t value)
{
    uint32_t before = epctx_map_get(map, key);
    if (before == EPCTX_MAP_NONE && epctx_map_put(map, key, value) != EPCTX_OK) {
        l->short_of_memory = true;
    }
    return before;
}

/* -- lint: what stands twice -- */

/* Singular scalar fields of each message type, as bit masks of field numbers, by wire type. The
 * messages among them are in epctx__schemas. */
typedef struct epctx__singles {
    uint32_t len, varint, fix32;
} epctx__singles;

#define EPCTX__F(n) (UINT32_C(1) << (n))

static const epctx__singles epctx__singular[EPCTX__T_COUNT] = {
    {0, 0, 0},
    {EPCTX__F(2) | EPCTX__F(3) | EPCTX__F(4) | EPCTX__F(6), EPCTX__F(1) | EPCTX__F(5), 0},
    {EPCTX__F(2) | EPCTX__F(10), 0, 0},
    {EPCTX__F(3) | EPCTX__F(4) | EPCTX__F(6) | EPCTX__F(7) | EPCTX__F(8), 0, 0},
    {EPCTX__F(1) | EPCTX__F(4) | EPCTX__F(13) | EPCTX__F(21), EPCTX__F(3) | EPCTX__F(20),
     EPCTX__F(2)},
    {EPCTX__F(8) | EPCTX__F(9) | EPCTX__F(12), EPCTX__F(2) | EPCTX__F(14), 0},
    {0, EPCTX__F(1) | EPCTX__F(2), 0},                /* SEGMENT */
    {0, 0, 0},                                        /* SPARSE */
    {EPCTX__F(1) | EPCTX__F(3), 0, 0},                /* VALUE */
    {EPCTX__F(6), 0, 0},                              /* TYPE */
    {0, EPCTX__F(1), 0},                              /* TYPE_TENSOR */
    {0, 0, 0},                                        /* TYPE_ELEM */
    {0, EPCTX__F(1), 0},                              /* TYPE_MAP */
    {0, 0, 0},                                        /* SHAPE */
    {EPCTX__F(1) | EPCTX__F(2) | EPCTX__F(3), EPCTX__F(1) | EPCTX__F(2) | EPCTX__F(3), 0},
    {EPCTX__F(1) | EPCTX__F(8) | EPCTX__F(10) | EPCTX__F(13), 0, 0}, /* FUNCTION */
    {0, 0, 0},                                        /* TRAINING */
    {EPCTX__F(1), 0, 0},                              /* ANNOTATION */
    {EPCTX__F(1), EPCTX__F(3), 0},                    /* NODE_DEVICE */
    {EPCTX__F(1), 0, 0},                              /* SHARDING */
    {0, EPCTX__F(1), 0},                              /* SHARDED_DIM */
    {0, EPCTX__F(1), 0},                              /* GROUP_MAP */
    {EPCTX__F(1), EPCTX__F(2), 0},                    /* DEVICES */
};

static const char *epctx__type_name(epctx__type type)
{
    static const char *const names[EPCTX__T_COUNT] = {
        "",           "ModelProto",    "GraphProto",   "NodeProto",    "AttributeProto",
        "TensorProto", "Segment",      "SparseTensorProto", "ValueInfoProto", "TypeProto",
        "Tensor type", "Element type", "Map type",     "TensorShapeProto", "entry",
        "FunctionProto", "TrainingInfoProto", "TensorAnnotation", "NodeDeviceConfigurationProto",
        "ShardingSpecProto", "ShardedDimProto", "IntIntListEntryProto", "DeviceConfigurationProto"};
    return names[type];
}

/* `node` is the name of the innermost node. */
static void epctx__lint_doubled(epctx__lint *l, epctx__type type, epctx_view message,
                                epctx_str node, epctx_str attr, uint32_t depth)
{
    epctx_cursor it = epctx_fields(message, 0);
    epctx_field field;
    uint32_t seen = 0;
    char attribute[64];
    if (type == EPCTX__T_NODE) {
        node = epctx_node_of(message).name;
    } else if (type == EPCTX__T_ATTR) {
        attr = epctx_attr_of(message).name;
    }
    epctx__keep(attribute, sizeof attribute, attr.data, attr.size);
    while (epctx_next_field(&it, &field)) {
        uint32_t kind =
            field.wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, field.number) : 0;
        uint32_t bit = field.number < 32 ? EPCTX__F(field.number) : 0;
        const epctx__singles *single = &epctx__singular[type];
        uint32_t mask = field.wire == EPCTX_WIRE_LEN       ? single->len
                        : field.wire == EPCTX_WIRE_VARINT  ? single->varint
                        : field.wire == EPCTX_WIRE_FIXED32 ? single->fix32
                                                           : 0;
        bool one = (mask & bit) != 0 || (kind & EPCTX__ONE) != 0;
        if (one && epctx__is_message(kind) && type == EPCTX__T_TYPE) {
            bit = EPCTX__F(1); /* a oneof: any second member counts */
        }
        if (one && (seen & bit) != 0) {
            epctx__say(l, EPCTX_RULE_DOUBLED_FIELD, node, attribute,
                       "field %u of a %s stands twice: readers differ in which one they take",
                       (uint64_t)field.number, epctx__type_name(type));
        }
        seen |= one ? bit : 0;
        if (epctx__is_message(kind) && depth > 0) {
            epctx__lint_doubled(l, epctx__message_type(kind), field.body, node, attr, depth - 1);
        }
    }
}

/* -- lint: the model's own fields -- */

static bool epctx__utf8(epctx_str text)
{
    const unsigned char *p = (const unsigned char *)text.data;
    size_t i = 0;
    while (i < text.size) {
        size_t n = p[i] < 0x80   ? 1
                   : p[i] < 0xc2 ? 0
                   : p[i] < 0xe0 ? 2
                   : p[i] < 0xf0 ? 3
                   : p[i] < 0xf5 ? 4
                                 : 0;
        size_t k;
        if (n == 0 || n > text.size - i || (p[i] == 0xe0 && p[i + 1] < 0xa0) ||
            (p[i] == 0xed && p[i + 1] > 0x9f) || (p[i] == 0xf0 && p[i + 1] < 0x90) ||
            (p[i] == 0xf4 && p[i + 1] > 0x8f)) {
            return false;
        }
        for (k = 1; k < n; k++) {
            if ((p[i + k] & 0xc0) != 0x80) {
                return false;
            }
        }
        i += n;
    }
    return true;
}

static void epctx__lint_name(epctx__lint *l, epctx_str name)
{
    if (!epctx__utf8(name)) {
        epctx__say(l, EPCTX_RULE_NOT_UTF8, name, NULL, "the name '%S' is not UTF-8", &name);
    }
}

static epctx_str epctx__canonical_domain(epctx_str domain)
{
    return epctx_str_is(domain, "ai.onnx") ? epctx_str_of("") : domain;
}

/* Opset imports of the model or of a function. */
static void epctx__lint_opsets(epctx__lint *l, epctx_cursor imports)
{
    epctx_opset opset;
    epctx_map_init(&l->imports, &l->arena);
    while (epctx_next_opset(&imports, &opset)) {
        epctx_str domain = epctx__canonical_domain(opset.domain);
        if (epctx__remember(l, &l->imports, domain, 1) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_DOUBLED_OPSET, domain, NULL, "domain '%S' is imported twice",
                       &domain);
        }
    }
}

/* ORT adds these imports itself when they are missing (graph.cc, from its registered schemas). */
static bool epctx__ort_domain(epctx_str domain)
{
    return epctx_str_is(domain, "com.microsoft") || epctx__starts_with(domain, "com.microsoft.") ||
           epctx__starts_with(domain, "ai.onnx.") || epctx_str_is(domain, "com.ms.internal.nhwc") ||
           epctx_str_is(domain, "org.pytorch.aten");
}

static void epctx__lint_domain(epctx__lint *l, const epctx_node_view *node)
{
    epctx_str domain = epctx__canonical_domain(node->domain);
    if (epctx_map_get(&l->imports, domain) != EPCTX_MAP_NONE) {
        return;
    }
    if (!epctx__ort_domain(domain)) {
        epctx__say(l, EPCTX_RULE_NO_OPSET, node->name, NULL,
                   "operator %S is of domain '%S', which the %s does not import", &node->op_type,
                   &domain, l->in_function ? "function" : "model");
    } else if (epctx_str_is(domain, EPCTX_DOMAIN)) {
        epctx__say(l, EPCTX_RULE_EPCONTEXT_OPSET, node->name, NULL,
                   "domain com.microsoft is not imported: ORT loads it, the ONNX checker does not");
    }
    epctx__remember(l, &l->imports, domain, 1); /* once is enough */
}

static void epctx__lint_metadata(epctx__lint *l)
{
    epctx_cursor it = epctx_fields(epctx__slot_view(l->model->shown), 14);
    epctx_map keys;
    epctx_view body;
    epctx_map_init(&keys, &l->arena);
    while (epctx__next_body(&it, &body)) {
        epctx_str key;
        epctx_str value;
        epctx__pair(body, &key, &value);
        if (epctx__remember(l, &keys, key, 1) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_DOUBLED_METADATA, key, NULL,
                       "metadata key '%S' stands twice", &key);
        }
    }
}

static void epctx__lint_model(epctx__lint *l)
{
    epctx_model_info info = epctx_model_read(l->model);
    uint64_t size = l->model->source.size;
    epctx_str none = epctx_str_of("");
    epctx_cursor configs = epctx_model_device_configs(l->model);
    epctx_device_config_view config;
    if (info.ir_version < 3 || info.ir_version > 13) {
        epctx__say(l, EPCTX_RULE_IR_VERSION, none, NULL, "ir_version is %d, ORT 1.30 reads 3 to 13",
                   info.ir_version);
    }
    if (size > INT32_MAX) {
        epctx__say(l, EPCTX_RULE_MODEL_SIZE, none, NULL,
                   "the model has %u bytes, libprotobuf and ORT read at most %u", size,
                   (uint64_t)INT32_MAX);
    } else if (size > (uint64_t)INT32_MAX / 4 * 3) {
        epctx__say(l, EPCTX_RULE_NEAR_LIMIT, none, NULL, "the model has %u bytes of at most %u",
                   size, (uint64_t)INT32_MAX);
    }
    if (!epctx_model_has_graph(l->model)) {
        epctx__say(l, EPCTX_RULE_NO_GRAPH, none, NULL, "there is no GraphProto in the model");
    }
    while (epctx_next_device_config(&configs, &config)) {
        epctx__remember(l, &l->configurations, config.name, 1);
    }
    epctx__lint_opsets(l, epctx_model_opsets(l->model));
    epctx__lint_metadata(l);
}

/* -- lint: values and nodes of a graph -- */

typedef struct epctx__type_note {
    int32_t elem_type;
    bool has_type, is_tensor, dynamic;
} epctx__type_note;

/* A graph whose nodes are being looked at. */
typedef struct epctx__frame {
    struct epctx__frame *outer;
    epctx_map names; /* value -> 0 input, 1 initializer, 2 + position of the node that makes it */
    epctx_map used;  /* initializers that something reads */
    uint32_t at;     /* position of the current node */
    bool joined;     /* one graph with `outer`, of which it is the continuation */
    bool typed;      /* the two below are filled in */
    epctx_map types; /* value -> position in `notes` */
    void *notes;
    size_t note_count, note_room;
} epctx__frame;

static void epctx__note_type(epctx__lint *l, epctx__frame *scope, const epctx_value_view *value)
{
    epctx_cursor dims = epctx_value_dims(value);
    epctx__type_note note;
    epctx_dim dim;
    note.elem_type = value->elem_type;
    note.has_type = value->has_type;
    note.is_tensor = value->is_tensor;
    note.dynamic = !value->has_shape;
    while (epctx_next_dim(&dims, &dim)) {
        note.dynamic = note.dynamic || !dim.known || dim.value < 0;
    }
    if (!note.has_type || epctx_map_get(&scope->types, value->name) != EPCTX_MAP_NONE) {
        return;
    }
    if (!epctx__list_room(&l->arena, &scope->notes, scope->note_count, &scope->note_room,
                          sizeof note)) {
        l->short_of_memory = true;
        return;
    }
    ((epctx__type_note *)scope->notes)[scope->note_count] = note;
    epctx__remember(l, &scope->types, value->name, (uint32_t)scope->note_count++);
}

static void epctx__note_types(epctx__lint *l, epctx__frame *scope, epctx_view graph)
{
    static const uint8_t lists[3] = {13, 11, 12}; /* value_info, input, output */
    int i;
    if (scope->typed) {
        return;
    }
    scope->typed = true;
    epctx_map_init(&scope->types, &l->arena);
    for (i = 0; i < 3; i++) {
        epctx_cursor it = epctx_fields(graph, lists[i]);
        epctx_value_view value;
        while (epctx_next_value(&it, &value)) {
            epctx__note_type(l, scope, &value);
        }
    }
}

/* Reads of a value by a node or, `position` UINT32_MAX, by the graph's end. */
static void epctx__lint_read(epctx__lint *l, epctx__frame *scope, epctx_str node, epctx_str name)
{
    epctx__frame *s;
    for (s = scope; s != NULL; s = s->outer) {
        uint32_t made = epctx_map_get(&s->names, name);
        if (made == EPCTX_MAP_NONE) {
            continue;
        }
        if (made == 1) {
            epctx__remember(l, &s->used, name, 1);
        }
        if (made >= 2 && made - 2 >= s->at) {
            epctx__say(l, EPCTX_RULE_ORDER, node, NULL,
                       "value '%S' is read before the node that produces it", &name);
        }
        return;
    }
    if (scope->outer != NULL) {
        epctx__say(l, EPCTX_RULE_DROPPED_VALUE, node, NULL,
                   "the body reads '%S', which neither it nor a graph around it has", &name);
    } else {
        epctx__say(l, EPCTX_RULE_UNDEFINED_VALUE, node, NULL,
                   "input '%S' is no graph input, no initializer and no output of a node", &name);
    }
}

/* Types that the schema of EPContext allows (ORT contrib_defs.cc: all tensor types but strings,
 * complex numbers and those of eight bits and less that are no integers). */
static bool epctx__type_allowed(const epctx__type_note *note)
{
    return note->is_tensor &&
           ((note->elem_type >= 1 && note->elem_type <= 7) ||
            (note->elem_type >= 9 && note->elem_type <= 13) || note->elem_type == 16);
}

static void epctx__lint_value(epctx__lint *l, epctx__frame *scope, const epctx__judged *judged,
                              epctx_str name, bool output)
{
    uint32_t at = epctx_map_get(&scope->types, name);
    const epctx__type_note *note;
    bool fixed = judged->profile != NULL && judged->ours &&
                 (judged->profile->traits & EPCTX_STATIC_SHAPES) != 0;
    note = at != EPCTX_MAP_NONE ? (const epctx__type_note *)scope->notes + at : NULL;
    if (note == NULL || (note->is_tensor && note->elem_type == 0)) {
        if (output) {
            epctx__say(l, EPCTX_RULE_NO_VALUE_TYPE, judged->node.name, NULL,
                       "output '%S' is in no value_info and no graph output: ORT cannot infer it",
                       &name);
        }
        return;
    }
    if (!epctx__type_allowed(note)) {
        epctx__say(l, EPCTX_RULE_VALUE_TYPE, judged->node.name, NULL,
                   "%s '%S' is of type %s, EPContext takes tensors of integers of 8 to 64 bits, "
                   "floats of 16 to 64 bits and bool",
                   output ? "output" : "input", &name,
                   note->is_tensor ? epctx_elem_name(note->elem_type) : "no tensor");
    } else if (note->dynamic && fixed && !output) {
        /* What comes out follows from what goes in: the compiled graph knows its shapes. */
        epctx__say(l, EPCTX_RULE_DYNAMIC_SHAPE, judged->node.name, NULL,
                   "input '%S' has a dimension without a number, EP '%s' wants fixed shapes",
                   &name, judged->profile->name);
    }
}

/* -- lint: one EPContext node -- */

static void epctx__lint_attrs(epctx__lint *l, const epctx_node_view *view, bool *readable)
{
    epctx_cursor it = epctx_node_attrs(view);
    epctx_map names;
    epctx_attr_view attr;
    *readable = true;
    epctx_map_init(&names, &l->arena);
    while (epctx_next_attr(&it, &attr)) {
        epctx_epnode node = epctx_epnode_default();
        const char *known = NULL;
        char text[64];
        int id;
        epctx__keep(text, sizeof text, attr.name.data, attr.name.size);
        if (epctx__remember(l, &names, attr.name, 1) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_DOUBLED_ATTRIBUTE, view->name, text,
                       "attribute '%S' stands twice: readers differ in which one they take",
                       &attr.name);
        }
        if (attr.ref_attr_name.size > 0 && !l->in_function) {
            epctx__say(l, EPCTX_RULE_REFERENCE, view->name, text,
                       "refers to attribute '%S' of a function, but is in none",
                       &attr.ref_attr_name);
        }
        for (id = 0; id < EPCTX_EP_ATTR_COUNT; id++) {
            const char *name = epctx__epnode_attr_name((epctx_epnode_attr)id);
            known = epctx_str_is(attr.name, name) ? name : known;
        }
        if (known == NULL) {
            epctx__say(l, EPCTX_RULE_EXTRA_ATTRIBUTE, view->name, text,
                       "the schema has no attribute '%S'", &attr.name);
            continue;
        }
        epctx_error_clear(&l->scratch);
        if (epctx__epnode_take(&node, attr.name, attr.type, attr.i, attr.s, &l->scratch) !=
            EPCTX_OK) {
            bool type = node.present == 0;
            *readable = false;
            epctx__say(l, type ? EPCTX_RULE_ATTRIBUTE_TYPE : EPCTX_RULE_ATTRIBUTE_VALUE, view->name,
                       text, "%s", l->scratch.message);
        } else if (epctx_str_is(attr.name, "max_size") && attr.i < 0) {
            epctx__say(l, EPCTX_RULE_ATTRIBUTE_VALUE, view->name, text,
                       "max_size is %d, a number from 0 on is expected", attr.i);
        }
    }
}

/* Which profile judges a node, and what its source tells. */
static void epctx__lint_source(epctx__lint *l, epctx__judged *judged)
{
    const epctx_epnode *node = &judged->node;
    const epctx_profile *forced = l->opts != NULL ? l->opts->profile : NULL;
    epctx_claim claim;
    judged->profile = forced != NULL ? forced : epctx_profile_of(node->source);
    claim = epctx_profile_claims(judged->profile, node);
    judged->ours = claim != EPCTX_CLAIM_NO;
    if (claim == EPCTX_CLAIM_MISSING) {
        epctx__say(l, EPCTX_RULE_NO_SOURCE, node->name, "source",
                   "is missing, EP '%s' takes only nodes with '%s'", judged->profile->name,
                   judged->profile->sources[0] != NULL ? judged->profile->sources[0] : "its name");
    } else if (claim == EPCTX_CLAIM_SPELLING) {
        epctx__say(l, EPCTX_RULE_SOURCE_SPELLING, node->name, "source",
                   "is '%S', this EP takes '%s' only, letter by letter", &node->source,
                   judged->profile->sources[0]);
    } else if (claim == EPCTX_CLAIM_NO) {
        epctx__say(l, EPCTX_RULE_FOREIGN, node->name, "source",
                   "is '%S': the node is for another EP than '%s'", &node->source,
                   judged->profile->name);
    } else if ((node->present & 1u << EPCTX_EP_SOURCE) == 0) {
        epctx__say(l, EPCTX_RULE_SOURCE_ABSENT, node->name, "source",
                   "is missing: only some EPs take such a node");
    } else if (forced == NULL && strcmp(judged->profile->name, "generic") == 0 &&
               epctx__remember(l, &l->unknown_sources, node->source, 1) == EPCTX_MAP_NONE) {
        epctx__say(l, EPCTX_RULE_UNKNOWN_SOURCE, node->name, "source",
                   "is '%S', no built-in profile knows it", &node->source);
    }
}

static bool epctx__looks_like_path(epctx_str text)
{
    static const char *const ends[] = {".bin", ".xml", ".engine", ".mxr", ".ctx", ".dlc", ".mep"};
    size_t i;
    if (text.size == 0 || text.size > 260) {
        return false;
    }
    for (i = 0; i < text.size; i++) {
        if ((unsigned char)text.data[i] < 0x20) {
            return false;
        }
    }
    for (i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (epctx__ends_with(text, ends[i])) {
            return true;
        }
    }
    return false;
}

/* Payload and attributes of a node, by its profile. */
static void epctx__lint_context(epctx__lint *l, epctx__judged *judged)
{
    const epctx_epnode *node = &judged->node;
    const epctx_profile *profile = judged->profile;
    epctx_str context = node->ep_cache_context;
    bool each = profile->payload == EPCTX_PAYLOAD_EACH;
    bool needs = node->main_context == 1 || each;
    bool dlc = epctx__attr_str(&judged->view, "ep_dlc_context").size > 0;
    int id;
    judged->context = context.size > 0 || dlc;
    for (id = 0; id < EPCTX_EP_ATTR_COUNT; id++) {
        const char *name = epctx__epnode_attr_name((epctx_epnode_attr)id);
        if ((profile->required & ~node->present & 1u << id) != 0 && id != EPCTX_EP_SOURCE) {
            epctx__say(l, EPCTX_RULE_NO_ATTRIBUTE, node->name, name,
                       "is not stored, EP '%s' does not use the default", profile->name);
        }
    }
    if (!judged->context && node->embed_mode == 0 && needs) {
        epctx__say(l, EPCTX_RULE_PATH_EMPTY, node->name, "ep_cache_context",
                   "%s, the path of the context binary is expected (embed_mode is 0)",
                   (node->present & 1u << EPCTX_EP_EP_CACHE_CONTEXT) != 0 ? "is empty"
                                                                         : "is missing");
    } else if (!judged->context && node->main_context == 1) {
        epctx__say(l, EPCTX_RULE_NO_CONTEXT, node->name, "ep_cache_context",
                   "%s, but main_context is 1 and embed_mode is 1: the context is expected here",
                   (node->present & 1u << EPCTX_EP_EP_CACHE_CONTEXT) != 0 ? "is empty"
                                                                         : "is missing");
    } else if (!judged->context && each) {
        epctx__say(l, EPCTX_RULE_NO_PAYLOAD, node->name, "ep_cache_context",
                   "is missing: with EP '%s' every node has a context of its own", profile->name);
    } else if (judged->context && node->main_context == 0 && !each &&
               (profile->traits & EPCTX_SECONDARY_CONTEXT) == 0) {
        epctx__say(l, EPCTX_RULE_PAYLOAD_IGNORED, node->name, "ep_cache_context",
                   "has %u bytes, but main_context is 0: nobody reads them",
                   (uint64_t)context.size);
    }
    if (node->embed_mode == 1 && context.size >= (size_t)INT32_MAX) {
        epctx__say(l, EPCTX_RULE_PAYLOAD_SIZE, node->name, "ep_cache_context",
                   "has %u bytes: ORT's C API creates attributes of less than 2 GiB",
                   (uint64_t)context.size);
    }
    if (node->embed_mode == 1 && epctx__looks_like_path(context)) {
        epctx__say(l, EPCTX_RULE_LIKE_PATH, node->name, "ep_cache_context",
                   "is '%S': a file name? embed_mode is %s", &context,
                   (node->present & 1u << EPCTX_EP_EMBED_MODE) != 0 ? "1"
                                                                    : "absent, which means 1");
    }
    if (node->embed_mode == 0 && (profile->traits & EPCTX_ONLY_EMBEDDED) != 0) {
        epctx__say(l, EPCTX_RULE_ONLY_EMBEDDED, node->name, "embed_mode",
                   "is 0, but EP '%s' reads no files", profile->name);
    }
}

static void epctx__lint_epnode(epctx__lint *l, epctx__frame *scope, const epctx_node_view *view,
                               epctx_view graph)
{
    const uint32_t both = 1u << EPCTX_EP_MAIN_CONTEXT | 1u << EPCTX_EP_EMBED_MODE;
    epctx__judged judged;
    epctx_cursor it;
    epctx_str name;
    bool readable;
    memset(&judged, 0, sizeof judged);
    judged.view = *view;
    judged.graph = l->graph;
    judged.node = epctx_epnode_default();
    judged.node.name = view->name;
    if (!epctx_str_is(view->domain, EPCTX_DOMAIN)) {
        epctx__say(l, EPCTX_RULE_WRONG_DOMAIN, view->name, NULL,
                   "op_type EPContext has domain '%S', com.microsoft is expected", &view->domain);
        return;
    }
    if (view->name.size == 0) {
        epctx__say(l, EPCTX_RULE_NO_NAME, view->name, NULL, "an EPContext node has no name");
    } else if (epctx__remember(l, &l->epnode_names, view->name, 1) != EPCTX_MAP_NONE) {
        epctx__say(l, EPCTX_RULE_DOUBLED_EPNODE, view->name, NULL,
                   "another EPContext node has the same name: ORT and EPs find nodes by name");
    }
    if (view->output_count == 0) {
        epctx__say(l, EPCTX_RULE_NO_OUTPUT, view->name, NULL,
                   "the node has no output, the schema wants at least one");
    }
    if (l->in_function || l->in_training || (scope != NULL && scope->outer != NULL)) {
        epctx__say(l, EPCTX_RULE_IN_BODY, view->name, NULL,
                   "the node is inside of '%S': no known EP loads it there", &l->graph);
    }
    epctx__lint_attrs(l, view, &readable);
    if (readable) {
        epctx_epnode_read(view, &judged.node, NULL);
        if ((judged.node.present & both) != both) {
            epctx__say(l, EPCTX_RULE_DEFAULTS, view->name, NULL,
                       "main_context or embed_mode is not stored and counts as 1");
        }
        if ((judged.node.present & 1u << EPCTX_EP_EP_SDK_VERSION) == 0) {
            epctx__say(l, EPCTX_RULE_NO_SDK, view->name, "ep_sdk_version", "is not stored");
        }
        epctx__lint_source(l, &judged);
        if (judged.ours) {
            epctx__lint_context(l, &judged);
        }
        if (l->in_training) {
            judged.ours = false; /* no EP sees it, so it stands with no other node */
        } else if (epctx__list_room(&l->arena, &l->nodes, l->node_count, &l->node_room,
                                    sizeof judged)) {
            ((epctx__judged *)l->nodes)[l->node_count++] = judged;
        } else {
            l->short_of_memory = true;
        }
    }
    if (scope == NULL) {
        return;
    }
    epctx__note_types(l, scope, graph);
    it = epctx_node_inputs(view);
    while (epctx_next_str(&it, &name)) {
        epctx__lint_value(l, scope, &judged, name, false);
        if (epctx_map_get(&scope->names, name) == 1) {
            epctx__say(l, EPCTX_RULE_WEIGHTLESS, view->name, NULL,
                       "input '%S' is an initializer: the context holds no copy of it", &name);
        }
    }
    it = epctx_node_outputs(view);
    while (epctx_next_str(&it, &name)) {
        if (name.size > 0) {
            epctx__lint_value(l, scope, &judged, name, true);
        }
    }
}

/* -- lint: graphs -- */

static unsigned epctx__elem_bits(int32_t elem_type)
{
    switch (elem_type) {
    case 21: /* uint4, int4, float4e2m1 */
    case 22:
    case 23:
        return 4;
    case 25: /* uint2, int2 */
    case 26:
        return 2;
    default:
        return (unsigned)epctx_elem_size(elem_type) * 8;
    }
}

/* Bytes of a tensor's data; false when the shape is impossible or the type has no fixed size. */
static bool epctx__tensor_bytes(const epctx_tensor_view *tensor, uint64_t *bytes)
{
    epctx_cursor it = epctx_tensor_dims(tensor);
    unsigned bits = epctx__elem_bits(tensor->elem_type);
    uint64_t count = 1;
    int64_t dim;
    bool zero = false;
    bool huge = bits == 0;
    while (epctx_next_int(&it, &dim)) {
        zero = zero || dim == 0;
        if (dim < 0 || (dim > 0 && count > (UINT64_MAX >> 8) / (uint64_t)dim)) {
            huge = true;
        } else if (dim > 0) {
            count *= (uint64_t)dim;
        }
    }
    *bytes = zero ? 0 : (count * bits + 7) / 8;
    return !huge;
}

static void epctx__lint_tensor(epctx__lint *l, epctx_view view)
{
    epctx_tensor_view tensor = epctx_tensor_of(view);
    epctx_cursor it = epctx_tensor_dims(&tensor);
    uint64_t bytes = 0;
    int64_t dim;
    bool known = epctx__tensor_bytes(&tensor, &bytes);
    while (epctx_next_int(&it, &dim)) {
        if (dim < 0) {
            epctx__say(l, EPCTX_RULE_TENSOR_SIZE, tensor.name, NULL,
                       "initializer '%S' has a dimension of %d", &tensor.name, dim);
            return;
        }
    }
    if (tensor.external && tensor.location.size == 0) {
        epctx__say(l, EPCTX_RULE_NO_LOCATION, tensor.name, "location",
                   "initializer '%S' has external data, but no location", &tensor.name);
    } else if (tensor.external && known && tensor.length != UINT64_MAX && tensor.length != bytes) {
        epctx__say(l, EPCTX_RULE_TENSOR_SIZE, tensor.name, "length",
                   "initializer '%S' has a length of %u bytes, its shape needs %u", &tensor.name,
                   tensor.length, bytes);
    } else if (!tensor.external && tensor.has_raw && known && tensor.raw.size != bytes) {
        epctx__say(l, EPCTX_RULE_TENSOR_SIZE, tensor.name, NULL,
                   "initializer '%S' has %u bytes, its shape needs %u", &tensor.name,
                   (uint64_t)tensor.raw.size, bytes);
    }
}

static epctx_str epctx__sparse_name(epctx_view sparse)
{
    epctx_cursor it = epctx_fields(sparse, 1);
    epctx_view values;
    epctx_str name = epctx_str_of("");
    while (epctx__next_body(&it, &values)) {
        name = epctx_tensor_of(values).name;
    }
    return name;
}

/* The main graph has a value of this name, and the graph continues the main graph. */
static bool epctx__made_before(const epctx__frame *scope, epctx_str name)
{
    return scope->joined && epctx_map_get(&scope->outer->names, name) != EPCTX_MAP_NONE;
}

/* Also of a name that is listed as a graph input, as IR versions below 4 demand. */
static void epctx__scope_constant(epctx__lint *l, epctx__frame *scope, epctx_str name)
{
    if (epctx__made_before(scope, name)) {
        epctx__say(l, EPCTX_RULE_DOUBLED_INITIALIZER, name, NULL,
                   "initializer '%S' is also a value of the main graph", &name);
    }
    if (epctx_map_put(&scope->names, name, 1) != EPCTX_OK) {
        l->short_of_memory = true;
    }
}

/* Fills the names that a graph defines before its nodes run. */
static void epctx__scope_values(epctx__lint *l, epctx__frame *scope, epctx_view graph)
{
    epctx_cursor it = epctx_fields(graph, 11);
    epctx_map infos;
    epctx_value_view value;
    epctx_view body;
    while (epctx_next_value(&it, &value)) {
        epctx__lint_name(l, value.name);
        if (epctx__remember(l, &scope->names, value.name, 0) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_DOUBLED_VALUE, value.name, NULL,
                       "'%S' is a graph input twice", &value.name);
        } else if (epctx__made_before(scope, value.name)) {
            epctx__say(l, EPCTX_RULE_DOUBLED_VALUE, value.name, NULL,
                       "graph input '%S' is also a value of the main graph", &value.name);
        }
    }
    epctx_map_init(&infos, &l->arena);
    it = epctx_fields(graph, 5);
    while (epctx__next_body(&it, &body)) {
        epctx_str name = epctx_tensor_of(body).name;
        epctx__lint_tensor(l, body);
        if (epctx__remember(l, &infos, name, 1) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_DOUBLED_INITIALIZER, name, NULL,
                       "there are two initializers '%S'", &name);
        }
        epctx__scope_constant(l, scope, name);
    }
    it = epctx_fields(graph, 15);
    while (epctx__next_body(&it, &body)) {
        epctx_str name = epctx__sparse_name(body);
        if (epctx__remember(l, &infos, name, 1) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_DOUBLED_INITIALIZER, name, NULL,
                       "there are two initializers '%S'", &name);
        }
        epctx__scope_constant(l, scope, name);
    }
    epctx_map_init(&infos, &l->arena);
    it = epctx_fields(graph, 13);
    while (epctx_next_value(&it, &value)) {
        if (epctx__remember(l, &infos, value.name, 1) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_DOUBLED_INFO, value.name, NULL,
                       "there are two value_info entries for '%S'", &value.name);
        }
    }
}

static void epctx__scope_nodes(epctx__lint *l, epctx__frame *scope, epctx_cursor nodes)
{
    epctx_node_view node;
    epctx_map names;
    uint32_t at = 0;
    epctx_map_init(&names, &l->arena);
    for (; epctx_next_node(&nodes, &node); at++) {
        epctx_cursor it = epctx_node_outputs(&node);
        epctx_str name;
        epctx__lint_name(l, node.name);
        if (node.name.size > 0 && !epctx_str_is(node.op_type, EPCTX_OP_TYPE) &&
            epctx__remember(l, &names, node.name, 1) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_DOUBLED_NODE, node.name, NULL,
                       "two nodes of the graph are called '%S'", &node.name);
        }
        while (epctx_next_str(&it, &name)) {
            if (name.size > 0 &&
                (epctx__remember(l, &scope->names, name, at + 2) != EPCTX_MAP_NONE ||
                 epctx__made_before(scope, name))) {
                epctx__say(l, EPCTX_RULE_DOUBLED_VALUE, node.name, NULL,
                           "output '%S' is also made elsewhere in the graph", &name);
            }
        }
    }
}

static void epctx__lint_graph(epctx__lint *l, epctx_view graph, epctx__frame *outer,
                              uint32_t depth);
static void epctx__lint_frame(epctx__lint *l, epctx__frame *scope, epctx_view graph,
                              uint32_t depth);

static void epctx__lint_bodies(epctx__lint *l, const epctx_node_view *node, epctx__frame *scope,
                               uint32_t depth)
{
    epctx_cursor attrs = epctx_node_attrs(node);
    epctx_view attr;
    while (depth > 0 && epctx__next_body(&attrs, &attr)) {
        epctx_cursor parts = epctx_fields(attr, 0);
        epctx_field field;
        while (epctx_next_field(&parts, &field)) {
            if (field.wire == EPCTX_WIRE_LEN && (field.number == 6 || field.number == 11)) {
                epctx_str before = l->graph;
                l->graph = epctx_graph_of(field.body).name;
                epctx__lint_graph(l, field.body, scope, depth - 1);
                l->graph = before;
            }
        }
    }
}

static void epctx__lint_sharding(epctx__lint *l, const epctx_node_view *node,
                                 epctx_cursor shardings, epctx_map *values)
{
    epctx_sharding_view sharding;
    epctx_str name;
    while (epctx_next_sharding(&shardings, &sharding)) {
        if (values->arena == NULL) {
            epctx_cursor lists[2];
            int i;
            lists[0] = epctx_node_inputs(node);
            lists[1] = epctx_node_outputs(node);
            epctx_map_init(values, &l->arena);
            for (i = 0; i < 2; i++) {
                while (epctx_next_str(&lists[i], &name)) {
                    epctx__remember(l, values, name, 1);
                }
            }
        }
        if (sharding.tensor_name.size == 0 ||
            epctx_map_get(values, sharding.tensor_name) == EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_SHARDING, node->name, NULL,
                       "the sharding is of '%S', which is no input or output of the node",
                       &sharding.tensor_name);
        }
    }
}

/* onnx.proto at NodeDeviceConfigurationProto and ShardingSpecProto: the id is the name of one of
 * the model's configurations, the tensor an input or output of the node. */
static void epctx__lint_devices(epctx__lint *l, const epctx_node_view *node)
{
    epctx_cursor it = epctx_node_configs(node);
    epctx_node_config_view config;
    epctx_map values; /* of the node, once something asks */
    values.arena = NULL;
    while (epctx_next_node_config(&it, &config)) {
        if (epctx_map_get(&l->configurations, config.configuration_id) == EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_CONFIGURATION, node->name, NULL,
                       "configuration_id is '%S', no configuration of the model has this name",
                       &config.configuration_id);
        }
        epctx__lint_sharding(l, node, epctx_node_config_shardings(&config), &values);
    }
}

static void epctx__lint_nodes(epctx__lint *l, epctx__frame *scope, epctx_cursor nodes,
                              epctx_view graph, uint32_t depth)
{
    epctx_node_view node;
    for (scope->at = 0; epctx_next_node(&nodes, &node) && !l->short_of_memory; scope->at++) {
        epctx_cursor it = epctx_node_inputs(&node);
        epctx_str name;
        epctx__lint_domain(l, &node);
        while (epctx_next_str(&it, &name)) {
            if (name.size > 0) {
                epctx__lint_read(l, scope, node.name, name);
            }
        }
        if (epctx_str_is(node.op_type, EPCTX_OP_TYPE)) {
            epctx__lint_epnode(l, scope, &node, graph);
        }
        epctx__lint_devices(l, &node);
        epctx__lint_bodies(l, &node, scope, depth);
    }
}

static void epctx__lint_outputs(epctx__lint *l, epctx__frame *scope, epctx_view graph)
{
    epctx_cursor it = epctx_fields(graph, 12);
    epctx_value_view value;
    scope->at = UINT32_MAX;
    while (epctx_next_value(&it, &value)) {
        epctx__frame *s = scope;
        while (s != NULL && epctx_map_get(&s->names, value.name) == EPCTX_MAP_NONE) {
            s = s->outer;
        }
        if (s == NULL) {
            epctx__say(l, EPCTX_RULE_OUTPUT_UNDEFINED, value.name, NULL,
                       "nothing produces graph output '%S'", &value.name);
        } else {
            epctx__remember(l, &s->used, value.name, 1);
        }
    }
}

/* Quantization annotations name the value and the values of its parameters. */
static void epctx__lint_annotations(epctx__lint *l, epctx__frame *scope, epctx_view graph)
{
    epctx_cursor it = epctx_fields(graph, 14);
    epctx_annotation_view annotation;
    epctx_pair pair;
    while (epctx_next_annotation(&it, &annotation)) {
        epctx_cursor pairs = epctx_annotation_pairs(&annotation);
        if (epctx_map_get(&scope->names, annotation.tensor_name) == EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_ANNOTATION, annotation.tensor_name, NULL,
                       "the annotated value '%S' does not exist", &annotation.tensor_name);
        }
        while (epctx_next_pair(&pairs, &pair)) {
            if (epctx_map_get(&scope->names, pair.value) == EPCTX_MAP_NONE) {
                epctx__say(l, EPCTX_RULE_ANNOTATION, annotation.tensor_name, NULL,
                           "%S of the annotation is '%S', which does not exist", &pair.key,
                           &pair.value);
            } else {
                epctx__remember(l, &scope->used, pair.value, 1);
            }
        }
    }
}

/* Names of a list of values. */
static void epctx__name_values(epctx__lint *l, epctx_map *names, epctx_view graph, uint32_t list)
{
    epctx_cursor it = epctx_fields(graph, list);
    epctx_value_view value;
    while (epctx_next_value(&it, &value)) {
        epctx__remember(l, names, value.name, 1);
    }
}

/* Initializers have the number 1 among the names of a frame. */
static bool epctx__is_initializer(const epctx__frame *scope, epctx_str name)
{
    return scope != NULL && epctx_map_get(&scope->names, name) == 1;
}

/* onnx.proto at TrainingInfoProto: a key is an initializer of the main graph or of `algorithm`; a
 * value an output of `initialization`, or for updates of `algorithm` or the main graph. `keys` has
 * the keys seen. `algorithm` and `more` are NULL when there are none. */
static void epctx__lint_bindings(epctx__lint *l, epctx_cursor bindings, epctx__frame *graph,
                                 const epctx__frame *algorithm, const epctx_map *outputs,
                                 const epctx_map *more, epctx_map *keys)
{
    epctx_pair pair;
    while (epctx_next_pair(&bindings, &pair)) {
        if (epctx__remember(l, keys, pair.key, 1) != EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_BINDING, pair.key, NULL,
                       "'%S' is bound twice: which value it gets is not defined", &pair.key);
        }
        if (!epctx__is_initializer(graph, pair.key) &&
            !epctx__is_initializer(algorithm, pair.key)) {
            epctx__say(l, EPCTX_RULE_BINDING, pair.key, NULL,
                       "'%S' is no initializer of the main graph or of the algorithm", &pair.key);
        }
        epctx__remember(l, &graph->used, pair.key, 1);
        if (epctx_map_get(outputs, pair.value) == EPCTX_MAP_NONE &&
            (more == NULL || epctx_map_get(more, pair.value) == EPCTX_MAP_NONE)) {
            epctx__say(l, EPCTX_RULE_BINDING, pair.key, NULL,
                       "'%S' is bound to '%S', which is no output of the training graph",
                       &pair.key, &pair.value);
        }
    }
}

/* `initialization` stands alone; `algorithm` continues the main graph and sees its values.
 * `results` has the main graph's outputs, `keys` what was updated so far. */
static void epctx__lint_training(epctx__lint *l, const epctx_training_view *training,
                                 epctx__frame *graph, const epctx_map *results, epctx_map *keys)
{
    epctx__frame algorithm;
    epctx_map outputs[2];
    bool has = epctx__has_view(training->algorithm.view);
    epctx_map initialized;
    memset(&algorithm, 0, sizeof algorithm);
    l->in_training = true;
    if (epctx__has_view(training->initialization.view)) {
        epctx__frame alone;
        memset(&alone, 0, sizeof alone);
        l->graph = training->initialization.name;
        epctx__lint_frame(l, &alone, training->initialization.view, 100);
    }
    if (has) {
        algorithm.outer = graph;
        algorithm.joined = true;
        l->graph = training->algorithm.name;
        epctx__lint_frame(l, &algorithm, training->algorithm.view, 100);
    }
    l->graph = epctx_str_of("");
    epctx_map_init(&outputs[0], &l->arena);
    epctx_map_init(&outputs[1], &l->arena);
    epctx_map_init(&initialized, &l->arena);
    epctx__name_values(l, &outputs[0], training->initialization.view, 12);
    epctx__name_values(l, &outputs[1], training->algorithm.view, 12);
    epctx__lint_bindings(l, epctx_training_bindings(training, false), graph,
                         has ? &algorithm : NULL, &outputs[0], NULL, &initialized);
    epctx__lint_bindings(l, epctx_training_bindings(training, true), graph,
                         has ? &algorithm : NULL, &outputs[1], results, keys);
    l->in_training = false;
}

static void epctx__lint_trainings(epctx__lint *l, epctx__frame *graph)
{
    epctx_cursor it = epctx_model_trainings(l->model);
    epctx_training_view training;
    epctx_map keys; /* of all updates: an initializer is assigned once */
    epctx_map results;
    epctx_map_init(&keys, &l->arena);
    epctx_map_init(&results, &l->arena);
    epctx__name_values(l, &results, epctx_model_graph(l->model).view, 12);
    while (epctx_next_training(&it, &training) && !l->short_of_memory) {
        epctx__lint_training(l, &training, graph, &results, &keys);
    }
}

static void epctx__lint_unused(epctx__lint *l, epctx__frame *scope, epctx_view graph)
{
    epctx_cursor it = epctx_fields(graph, 5);
    epctx_view body;
    while (epctx__next_body(&it, &body)) {
        epctx_str name = epctx_tensor_of(body).name;
        if (epctx_map_get(&scope->used, name) == EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_UNUSED, name, NULL, "nothing reads initializer '%S'", &name);
        }
    }
}

/* Everything about a graph but what needs to know its readers. `scope` has its surroundings. */
static void epctx__lint_frame(epctx__lint *l, epctx__frame *scope, epctx_view graph, uint32_t depth)
{
    epctx_map_init(&scope->names, &l->arena);
    epctx_map_init(&scope->used, &l->arena);
    epctx__scope_values(l, scope, graph);
    epctx__scope_nodes(l, scope, epctx_fields(graph, 1));
    epctx__lint_nodes(l, scope, epctx_fields(graph, 1), graph, depth);
    epctx__lint_outputs(l, scope, graph);
    epctx__lint_annotations(l, scope, graph);
}

static void epctx__lint_graph(epctx__lint *l, epctx_view graph, epctx__frame *outer, uint32_t depth)
{
    epctx__frame scope;
    memset(&scope, 0, sizeof scope);
    scope.outer = outer;
    epctx__lint_frame(l, &scope, graph, depth);
    if (outer == NULL) {
        epctx__lint_trainings(l, &scope); /* they read values of the main graph */
    }
    epctx__lint_unused(l, &scope, graph);
}

static void epctx__lint_function(epctx__lint *l, epctx_view function)
{
    epctx__frame scope;
    epctx_cursor it = epctx_fields(function, 1);
    epctx_str name;
    memset(&scope, 0, sizeof scope);
    l->graph = epctx_str_of("");
    while (epctx_next_str(&it, &name)) {
        l->graph = name;
    }
    l->in_function = true;
    epctx__lint_opsets(l, epctx_fields(function, 9));
    epctx_map_init(&scope.names, &l->arena);
    epctx_map_init(&scope.used, &l->arena);
    it = epctx_fields(function, 4);
    while (epctx_next_str(&it, &name)) {
        epctx__remember(l, &scope.names, name, 0);
    }
    epctx__scope_nodes(l, &scope, epctx_fields(function, 7));
    epctx__lint_nodes(l, &scope, epctx_fields(function, 7), epctx__no_view(), 100);
    it = epctx_fields(function, 5);
    while (epctx_next_str(&it, &name)) {
        if (epctx_map_get(&scope.names, name) == EPCTX_MAP_NONE) {
            epctx__say(l, EPCTX_RULE_OUTPUT_UNDEFINED, name, NULL,
                       "nothing produces output '%S' of the function", &name);
        }
    }
    l->in_function = false;
    l->graph = epctx_str_of("");
}

/* -- lint: nodes of one EP together -- */

static epctx__judged *epctx__judged_at(const epctx__lint *l, size_t i)
{
    return (epctx__judged *)l->nodes + i;
}

static epctx__party *epctx__party_of(epctx__lint *l, const epctx__judged *judged, size_t at)
{
    bool own = (judged->profile->traits & EPCTX_OWN_SOURCE) != 0;
    epctx_str key = own ? judged->node.source : epctx_str_of(judged->profile->name);
    uint32_t found = epctx_map_get(&l->party_of, key);
    epctx__party *party;
    if (found == EPCTX_MAP_NONE) {
        found = (uint32_t)l->party_count;
        if (!epctx__list_room(&l->arena, &l->parties, l->party_count, &l->party_room,
                              sizeof *party) ||
            epctx_map_put(&l->party_of, key, found) != EPCTX_OK) {
            l->short_of_memory = true;
            return NULL;
        }
        party = (epctx__party *)l->parties + found;
        memset(party, 0, sizeof *party);
        party->profile = judged->profile;
        party->source = judged->node.source;
        party->first = at;
        epctx_map_init(&party->keys, &l->arena);
        l->party_count++;
    }
    return (epctx__party *)l->parties + found;
}

static void epctx__lint_count(epctx__lint *l)
{
    size_t i;
    for (i = 0; i < l->node_count && !l->short_of_memory; i++) {
        epctx__judged *judged = epctx__judged_at(l, i);
        epctx__party *party = judged->ours ? epctx__party_of(l, judged, i) : NULL;
        if (party != NULL) {
            party->nodes++;
            party->mains += judged->node.main_context == 1 || judged->context;
            if (judged->context && judged->node.embed_mode == 1) {
                party->embedded++;
            } else if (judged->context) {
                party->files++;
            }
        }
    }
}

/* A name under which two nodes would get the same graph of one context. */
static void epctx__lint_key(epctx__lint *l, epctx__party *party, size_t i)
{
    epctx__judged *judged = epctx__judged_at(l, i);
    const epctx_epnode *node = &judged->node;
    epctx_str key = party->profile->key == EPCTX_KEY_NODE_NAME ? node->name : node->partition_name;
    uint32_t other;
    if (party->profile->key == EPCTX_KEY_NONE) {
        return;
    }
    if (key.size == 0) {
        bool stored = (party->profile->required & 1u << EPCTX_EP_PARTITION_NAME) != 0;
        if (party->nodes > 1 && !stored) {
            epctx__say(l, EPCTX_RULE_NO_KEY, node->name,
                       party->profile->key == EPCTX_KEY_PARTITION ? "partition_name" : NULL,
                       "is missing: EP '%s' finds the graph in the context by it",
                       party->profile->name);
        }
        return;
    }
    if (party->profile->key == EPCTX_KEY_NODE_NAME) {
        return; /* equal names are reported for every EP */
    }
    other = epctx__remember(l, &party->keys, key, (uint32_t)i);
    if (other != EPCTX_MAP_NONE) {
        const epctx_epnode *first = &epctx__judged_at(l, other)->node;
        bool one = node->main_context == 0 || first->main_context == 0 ||
                   (node->embed_mode == 0 && first->embed_mode == 0 &&
                    epctx_str_eq(node->ep_cache_context, first->ep_cache_context));
        if (one) {
            epctx__say(l, EPCTX_RULE_DOUBLED_KEY, node->name, "partition_name",
                       "is '%S', as in node '%S': both would get the same graph", &key,
                       &first->name);
        }
    }
}

static void epctx__lint_party_node(epctx__lint *l, epctx__party *party, size_t i)
{
    epctx__judged *judged = epctx__judged_at(l, i);
    const epctx_epnode *node = &judged->node;
    const epctx_profile *profile = party->profile;
    epctx__lint_key(l, party, i);
    if (node->main_context == 0 && profile->payload == EPCTX_PAYLOAD_SHARED && !judged->context) {
        if (party->mains == 0) {
            epctx__say(l, EPCTX_RULE_NO_MAIN, node->name, "main_context",
                       "is 0, but no node of source '%S' has main_context 1 and a context",
                       &node->source);
        } else if (node->embed_mode == 1 && (profile->traits & EPCTX_EMBED_ONE) != 0) {
            epctx__say(l, EPCTX_RULE_NO_PAYLOAD, node->name, "ep_cache_context",
                       "is missing: EP '%s' cannot load several embedded partitions and takes the "
                       "missing context for an empty path (ORT issue 31977)",
                       profile->name);
        }
    }
}

static bool epctx__profile_attr(void *state, size_t node, const char *name, epctx_attr *out);
static void epctx__profile_say(void *state, size_t node, const char *attribute, const char *text);

/* What the check function of a profile sees. */
typedef struct epctx__profile_call {
    epctx__lint *lint;
    const size_t *index; /* node -> position in lint's list */
} epctx__profile_call;

static bool epctx__profile_attr(void *state, size_t node, const char *name, epctx_attr *out)
{
    epctx__profile_call *call = (epctx__profile_call *)state;
    epctx_cursor it = epctx_node_attrs(&epctx__judged_at(call->lint, call->index[node])->view);
    epctx_attr_view attr;
    bool found = false;
    memset(out, 0, sizeof *out);
    while (epctx_next_attr(&it, &attr)) {
        if (epctx_str_is(attr.name, name)) {
            out->name = attr.name;
            out->type = (epctx_attr_type)attr.type; /* 0 to 14, as attr views are read */
            out->i = attr.i;
            out->f = attr.f;
            out->s = attr.s;
            found = true;
        }
    }
    return found;
}

static void epctx__profile_say(void *state, size_t node, const char *attribute, const char *text)
{
    epctx__profile_call *call = (epctx__profile_call *)state;
    epctx_str name = epctx__judged_at(call->lint, call->index[node])->node.name;
    epctx__say(call->lint, EPCTX_RULE_PROFILE, name, attribute, "%s", text);
}

static void epctx__lint_profile(epctx__lint *l, const epctx__party *party)
{
    epctx_profile_check check;
    epctx__profile_call call;
    const epctx_epnode **nodes;
    size_t *index;
    size_t count = 0;
    size_t i;
    if (party->profile->check_fn == NULL) {
        return;
    }
    nodes = (const epctx_epnode **)epctx_arena_array(&l->arena, (size_t)party->nodes,
                                                     sizeof(const epctx_epnode *));
    index = (size_t *)epctx_arena_array(&l->arena, (size_t)party->nodes, sizeof *index);
    if (nodes == NULL || index == NULL) {
        l->short_of_memory = true;
        return;
    }
    for (i = 0; i < l->node_count && count < party->nodes; i++) {
        epctx__judged *judged = epctx__judged_at(l, i);
        if (judged->ours && judged->profile == party->profile &&
            ((party->profile->traits & EPCTX_OWN_SOURCE) == 0 ||
             epctx_str_eq(judged->node.source, party->source))) {
            nodes[count] = &judged->node;
            index[count++] = i;
        }
    }
    call.lint = l;
    call.index = index;
    check.profile = party->profile;
    check.nodes = nodes;
    check.node_count = count;
    check.state = &call;
    check.attr_fn = epctx__profile_attr;
    check.say_fn = epctx__profile_say;
    party->profile->check_fn(&check);
}

static void epctx__lint_party(epctx__lint *l, const epctx__party *party)
{
    const epctx_profile *profile = party->profile;
    const epctx_epnode *first = &epctx__judged_at(l, party->first)->node;
    if ((profile->traits & EPCTX_NO_MIX) != 0 && party->embedded > 0 && party->files > 0) {
        epctx__say(l, EPCTX_RULE_MIXED_MODES, first->name, "embed_mode",
                   "%u contexts are embedded and %u are files, EP '%s' takes one kind in a model",
                   party->embedded, party->files, profile->name);
    }
    if ((profile->traits & EPCTX_ONE_MAIN) != 0 && party->mains > 1) {
        epctx__say(l, EPCTX_RULE_MANY_MAINS, first->name, "main_context",
                   "%u nodes are primary, EP '%s' wants exactly one", party->mains, profile->name);
    }
    if ((profile->traits & EPCTX_ONE_NODE) != 0 && l->main_nodes != 1) {
        epctx__say(l, EPCTX_RULE_MORE_NODES, first->name, NULL,
                   "the graph has %u nodes, EP '%s' recognises a compiled model of exactly one",
                   l->main_nodes, profile->name);
    }
    epctx__lint_profile(l, party);
}

/* -- lint: compatibility entries, files -- */

/* The text in small letters, in the arena. */
static epctx_str epctx__lowered(epctx__lint *l, epctx_str text)
{
    epctx_str out = text;
    char *copy = epctx_arena_copy(&l->arena, text);
    size_t i;
    if (copy == NULL) {
        l->short_of_memory = true;
        return text;
    }
    for (i = 0; i < text.size; i++) {
        copy[i] = epctx__lower(copy[i]);
    }
    out.data = copy;
    return out;
}

static bool epctx__has_party(const epctx__lint *l, const epctx_profile *profile)
{
    return (profile->traits & EPCTX_OWN_SOURCE) == 0 &&
           epctx_map_get(&l->party_of, epctx_str_of(profile->name)) != EPCTX_MAP_NONE;
}

/* One entry of the metadata. `sources` has the sources of the nodes in small letters; `told` gets
 * the EPs that an entry is for. */
static void epctx__lint_compat_entry(epctx__lint *l, epctx_str key, epctx_str value,
                                     const epctx_map *sources, epctx_map *told)
{
    const epctx_profile *profile;
    epctx_compat_qnn qnn;
    epctx_str ep;
    epctx_str lowered;
    ep.data = key.data + sizeof EPCTX_COMPAT_PREFIX - 1;
    ep.size = key.size - (sizeof EPCTX_COMPAT_PREFIX - 1);
    profile = epctx_profile_of(ep);
    lowered = epctx__lowered(l, ep);
    epctx__remember(l, told, lowered, 1);
    epctx__remember(l, told, epctx_str_of(profile->name), 1);
    if (l->party_count > 0 && epctx_map_get(sources, lowered) == EPCTX_MAP_NONE &&
        !epctx__has_party(l, profile)) {
        epctx__say(l, EPCTX_RULE_STALE_COMPAT, key, NULL,
                   "no node is for EP '%S': left over from an earlier compilation?", &ep);
    }
    if (value.size == 0) {
        epctx__say(l, EPCTX_RULE_COMPAT_SYNTAX, key, NULL, "the entry for EP '%S' is empty", &ep);
    } else if (strncmp(profile->name, "qnn", 3) == 0 && !epctx_compat_read_qnn(value, &qnn)) {
        epctx__say(l, EPCTX_RULE_COMPAT_SYNTAX, key, NULL,
                   "is '%S', EP '%S' writes six fields separated by ':'", &value, &ep);
    }
}

static void epctx__lint_compat(epctx__lint *l)
{
    epctx_cursor it = epctx_fields(epctx__slot_view(l->model->shown), 14);
    epctx_map sources;
    epctx_map told;
    epctx_view body;
    size_t i;
    epctx_map_init(&sources, &l->arena);
    epctx_map_init(&told, &l->arena);
    for (i = 0; i < l->party_count; i++) {
        const epctx__party *party = (const epctx__party *)l->parties + i;
        epctx__remember(l, &sources, epctx__lowered(l, party->source), 1);
    }
    while (epctx__next_body(&it, &body) && !l->short_of_memory) {
        epctx_str key;
        epctx_str value;
        epctx__pair(body, &key, &value);
        if (epctx__starts_with(key, EPCTX_COMPAT_PREFIX)) {
            epctx__lint_compat_entry(l, key, value, &sources, &told);
        }
    }
    for (i = 0; i < l->party_count && !l->short_of_memory; i++) {
        const epctx__party *party = (const epctx__party *)l->parties + i;
        bool own = (party->profile->traits & EPCTX_OWN_SOURCE) != 0;
        if (epctx_map_get(&told, epctx__lowered(l, party->source)) == EPCTX_MAP_NONE &&
            (own ||
             epctx_map_get(&told, epctx_str_of(party->profile->name)) == EPCTX_MAP_NONE)) {
            epctx__say(l, EPCTX_RULE_NO_COMPAT, party->source, NULL,
                       "there is no metadata entry " EPCTX_COMPAT_PREFIX "%S", &party->source);
        }
    }
}

/* The rule that a file which cannot be used breaks. */
static epctx_rule epctx__file_rule(const epctx__lint *l, const epctx_dependency *file)
{
    const epctx_io *io = l->model->io;
    epctx_str tag = epctx_str_of("*/");
    if (file->name.size == 0) {
        return file->use == EPCTX_USE_INITIALIZERS ? EPCTX_RULE_NO_LOCATION : EPCTX_RULE_PATH_EMPTY;
    }
    if (file->name.size >= tag.size && memcmp(file->name.data, tag.data, tag.size) == 0) {
        return EPCTX_RULE_MEMORY_LOCATION;
    }
    if (epctx_path_check(file->name, NULL) != EPCTX_OK) {
        return EPCTX_RULE_PATH_UNSAFE;
    }
    if (file->folder == NULL) {
        return EPCTX_RULE_NO_BASE;
    }
    if (file->status == EPCTX_ERR_NOT_FOUND) {
        return EPCTX_RULE_FILE_MISSING;
    }
    if (file->status == EPCTX_ERR_PATH && io != NULL) {
        epctx_file_kind kind = EPCTX_FILE_NONE;
        uint64_t size = 0;
        char path[EPCTX_PATH_MAX];
        epctx_str parts[3];
        parts[0] = epctx_str_of(file->folder);
        parts[1] = epctx_str_of(parts[0].size == 0 ||
                                        epctx__is_separator(parts[0].data[parts[0].size - 1])
                                    ? ""
                                    : "/");
        parts[2] = file->name;
        if (epctx__path_join(path, sizeof path, parts, 3, NULL) == EPCTX_OK &&
            io->stat_fn(io->user, path, &kind, &size, NULL) == EPCTX_OK &&
            kind == EPCTX_FILE_REGULAR) {
            return size == 0 ? EPCTX_RULE_FILE_EMPTY : EPCTX_RULE_PATH_LINK;
        }
    }
    return EPCTX_RULE_FILE_IRREGULAR;
}

static void epctx__lint_file(epctx__lint *l, const epctx_dependency *file)
{
    epctx_str name = file->name;
    if (file->use == EPCTX_USE_SOURCE_MODEL) {
        if (memchr(name.data, '/', name.size) != NULL ||
            memchr(name.data, '\\', name.size) != NULL) {
            epctx__say(l, EPCTX_RULE_BUILD_PATH, file->node, file->attribute,
                       "is '%S': the folder is that of the machine that compiled", &name);
        }
    }
    if (!file->required) {
        return; /* a sidecar, or a file of a training graph: no session misses it */
    }
    if (file->status != EPCTX_OK) {
        epctx__say(l, epctx__file_rule(l, file), file->node, file->attribute, "%s",
                   file->problem != NULL ? file->problem : epctx_status_text(file->status));
    }
    if (name.size > 0 && memchr(name.data, '\\', name.size) != NULL) {
        epctx__say(l, EPCTX_RULE_BACKSLASH, file->node, file->attribute,
                   "is '%S': a backslash separates folders on Windows only", &name);
    }
}

static bool epctx__lint_files(epctx__lint *l, epctx__files *files)
{
    epctx_str model_file;
    size_t i;
    if (!epctx__files_begin(files, l->model, l->opts, &l->arena) || !epctx__files_model(files)) {
        return false;
    }
    model_file = files->model_file;
    for (i = 0; i < files->count; i++) {
        const epctx_dependency *file = (const epctx_dependency *)files->list + i;
        /* An empty path or location is reported with the node or initializer. */
        if (file->name.size > 0) {
            epctx__lint_file(l, file);
        }
    }
    for (i = 0; i < l->node_count; i++) {
        const epctx__judged *judged = epctx__judged_at(l, i);
        epctx_str name = judged->node.ep_cache_context;
        bool path = judged->ours && judged->node.embed_mode == 0 && name.size > 0;
        size_t k;
        if (path && model_file.size > 0 &&
            !epctx__name_fits(judged->profile->binary, epctx_path_file(name), model_file)) {
            epctx__say(l, EPCTX_RULE_BINARY_NAME, judged->node.name, "ep_cache_context",
                       "is '%S', EP '%s' writes '%s'", &name, judged->profile->name,
                       judged->profile->binary);
        }
        for (k = 1; path && k < name.size; k++) {
            if ((judged->profile->traits & EPCTX_NO_DOTS) != 0 && name.data[k] == '.' &&
                name.data[k - 1] == '.') {
                epctx__say(l, EPCTX_RULE_DOTS, judged->node.name, "ep_cache_context",
                           "is '%S': EP '%s' refuses any '..'", &name, judged->profile->name);
                break;
            }
        }
    }
    return true;
}

/* Ranges of external initializers against the size of their file. */
static void epctx__lint_ranges(epctx__lint *l, const epctx__files *files)
{
    epctx_cursor it = epctx_graph_initializers(epctx_model_graph(l->model));
    epctx_tensor_view tensor;
    while (epctx_next_tensor(&it, &tensor) && !l->short_of_memory) {
        const epctx_dependency *file;
        epctx_str parts[2];
        epctx_str key;
        uint32_t at;
        uint64_t need = tensor.length;
        if (!tensor.external) {
            continue;
        }
        parts[0] = epctx_str_of("i");
        parts[1] = tensor.location;
        if (!epctx__join_key(&l->arena, parts, 2, &key)) {
            l->short_of_memory = true;
            return;
        }
        at = epctx_map_get(&files->seen, key);
        file = at != EPCTX_MAP_NONE ? (const epctx_dependency *)files->list + at : NULL;
        if (need == UINT64_MAX && !epctx__tensor_bytes(&tensor, &need)) {
            continue;
        }
        if (file != NULL && file->path != NULL &&
            (tensor.offset > file->size || need > file->size - tensor.offset)) {
            epctx__say(l, EPCTX_RULE_EXTERNAL_RANGE, tensor.name, "location",
                       "initializer '%S' needs bytes %u to %u, the file has %u", &tensor.name,
                       tensor.offset, tensor.offset > UINT64_MAX - need ? UINT64_MAX
                                                                        : tensor.offset + need,
                       file->size);
        }
    }
}

static void epctx__lint_run(epctx__lint *l)
{
    const epctx_profile *forced = l->opts != NULL ? l->opts->profile : NULL;
    epctx_graph_view graph = epctx_model_graph(l->model);
    epctx_cursor functions = epctx_fields(epctx__slot_view(l->model->shown), 25);
    epctx__files files;
    epctx_view body;
    size_t i;
    epctx__lint_doubled(l, EPCTX__T_MODEL, epctx__slot_view(l->model->root), epctx_str_of(""),
                        epctx_str_of(""), 100);
    epctx__lint_model(l);
    l->main_nodes = epctx__count(epctx_graph_nodes(graph));
    epctx__lint_graph(l, graph.view, NULL, 100);
    while (epctx__next_body(&functions, &body)) {
        epctx__lint_function(l, body);
    }
    epctx__lint_count(l);
    for (i = 0; i < l->node_count && !l->short_of_memory; i++) {
        epctx__judged *judged = epctx__judged_at(l, i);
        epctx__party *party = judged->ours ? epctx__party_of(l, judged, i) : NULL;
        if (party != NULL) {
            l->graph = judged->graph;
            epctx__lint_party_node(l, party, i);
        }
    }
    l->graph = epctx_str_of("");
    for (i = 0; i < l->party_count && !l->short_of_memory; i++) {
        epctx__lint_party(l, (const epctx__party *)l->parties + i);
    }
    if (forced != NULL && l->party_count == 0) {
        epctx__say(l, EPCTX_RULE_NOT_OURS, epctx_str_of(""), NULL,
                   "none of the %u EPContext nodes is for EP '%s'", (uint64_t)l->node_count,
                   forced->name);
    }
    epctx__lint_compat(l);
    if (!l->short_of_memory && epctx__lint_files(l, &files)) {
        epctx__lint_ranges(l, &files);
    } else {
        l->short_of_memory = true;
    }
}

EPCTX_API epctx_status epctx_lint(const epctx_model *model, const epctx_check_opts *opts,
                                  epctx_finding_fn found_fn, void *user,
                                  uint64_t counts[EPCTX_SEVERITY_COUNT], epctx_error *error)
{
    epctx__lint lint;
    epctx_status status = EPCTX_OK;
    epctx_error_clear(error);
    memset(&lint, 0, sizeof lint);
    lint.model = model;
    lint.opts = opts;
    lint.found_fn = found_fn;
    lint.user = user;
    lint.graph = epctx_str_of("");
    epctx_arena_init(&lint.arena, opts != NULL ? opts->allocator : NULL);
    epctx_map_init(&lint.party_of, &lint.arena);
    epctx_map_init(&lint.epnode_names, &lint.arena);
    epctx_map_init(&lint.unknown_sources, &lint.arena);
    epctx_map_init(&lint.configurations, &lint.arena);
    epctx__lint_run(&lint);
    if (counts != NULL) {
        memcpy(counts, lint.counts, sizeof lint.counts);
    }
    if (lint.short_of_memory) {
        status = epctx__nomem(error, lint.arena.missing);
    }
    epctx_arena_free(&lint.arena);
    return status;
}

#endif /* EPCTX_NO_WIRE */

#ifndef EPCTX_NO_WIRE

/* ================================================================================================
 * >>scan
 *
 * Levels are open messages (kind: message type and flags) and open groups (kind 0). Nothing about a
 * node is believed before its end: domain and embed_mode come after the payload in real files.
 * ============================================================================================== */

#define EPCTX__SCAN_TYPE    0x1fu
#define EPCTX__SCAN_OP      0x20u /* NODE: op_type is EPContext */
#define EPCTX__SCAN_DOMAIN  0x40u /* NODE: domain is com.microsoft */
#define EPCTX__SCAN_ENDLESS UINT64_C(0xffffffffff)
#define EPCTX__SCAN_CLOBBER 0x80u /* NODE: a node inside used the state that belongs to it */
#define EPCTX__SCAN_ENTRY   13u   /* epctx_scan.outer: an entry of a tensor's external_data */

static bool epctx__scan_refuse(epctx_scan *s, epctx_status status, const char *reason)
{
    if (s->status == EPCTX_OK) {
        s->status = status;
        s->reason = reason;
    }
    return false;
}

/* The stream that is read, NULL when it is a source. */
static pb_istream_t *epctx__scan_stream(const epctx_scan *s)
{
    return s->source.read_fn == NULL ? (pb_istream_t *)s->source.user : NULL;
}

static bool epctx__scan_fill(epctx_scan *s)
{
    uint64_t left = s->source.size - s->at;
    s->buffer_at = 0;
    s->buffer_size = (uint8_t)(left < sizeof s->buffer ? left : sizeof s->buffer);
    if (s->buffer_size == 0 ||
        !s->source.read_fn(s->source.user, s->at, s->buffer, s->buffer_size)) {
        s->buffer_size = 0;
        return epctx__scan_refuse(s, EPCTX_ERR_IO, "the source could not be read");
    }
    return true;
}

static bool epctx__scan_cut(epctx_scan *s)
{
    return epctx__scan_refuse(s, epctx__scan_stream(s)->bytes_left == 0 ? EPCTX_ERR_PROTOBUF
                                                                        : EPCTX_ERR_IO,
                              "the stream ends inside a field");
}

static bool epctx__scan_byte(epctx_scan *s, uint8_t *byte)
{
    if (epctx__scan_stream(s) != NULL) {
        if (!pb_read(epctx__scan_stream(s), byte, 1)) {
            return epctx__scan_cut(s);
        }
    } else {
        if (s->buffer_at == s->buffer_size && !epctx__scan_fill(s)) {
            return false;
        }
        *byte = s->buffer[s->buffer_at++];
    }
    s->at++;
    return true;
}

static bool epctx__scan_skip(epctx_scan *s, uint64_t count)
{
    while (epctx__scan_stream(s) != NULL && count > 0) {
        size_t part = count < 0x10000 ? (size_t)count : 0x10000;
        if (!pb_read(epctx__scan_stream(s), NULL, part)) {
            return epctx__scan_cut(s);
        }
        s->at += part;
        count -= part;
    }
    if (count <= (uint64_t)(s->buffer_size - s->buffer_at)) {
        s->buffer_at = (uint8_t)(s->buffer_at + count);
    } else {
        s->buffer_at = s->buffer_size = 0;
    }
    s->at += count;
    return true;
}

static bool epctx__scan_varint(epctx_scan *s, unsigned most, uint64_t *value)
{
    unsigned i;
    *value = 0;
    for (i = 0; i < most && s->at < s->end; i++) {
        uint8_t byte;
        if (!epctx__scan_byte(s, &byte)) {
            return false;
        }
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            return true;
        }
    }
    return epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF, "there is no valid protobuf field");
}

/* The end of the innermost message: groups have none of their own. */
static void epctx__scan_bound(epctx_scan *s)
{
    uint8_t i = s->levels;
    while (i > 0 && (s->kinds[i - 1] & EPCTX__SCAN_TYPE) == 0) {
        i--;
    }
    s->end = i > 0 ? (uint64_t)s->ends_high[i - 1] << 32 | s->ends_low[i - 1] : 0;
    if (s->end == EPCTX__SCAN_ENDLESS) {
        s->end = UINT64_MAX; /* a stream that does not know its length */
    }
}

static bool epctx__scan_deep(epctx_scan *s)
{
    return epctx__scan_refuse(s, EPCTX_SCAN_DEPTH < 100 ? EPCTX_ERR_LIMIT : EPCTX_ERR_PROTOBUF,
                              "messages are nested deeper than the limit");
}

static bool epctx__scan_push(epctx_scan *s, unsigned kind, uint64_t end)
{
    if (end >= EPCTX__SCAN_ENDLESS && s->levels > 0) {
        return epctx__scan_refuse(s, EPCTX_ERR_LIMIT, "the model has a terabyte or more");
    }
    if (s->levels >= sizeof s->kinds) {
        return epctx__scan_deep(s);
    }
    s->kinds[s->levels] = (uint8_t)kind;
    s->ends_low[s->levels] = (uint32_t)(end & UINT32_MAX);
    s->ends_high[s->levels] = (uint8_t)(end >> 32);
    s->levels++;
    epctx__scan_bound(s);
    return true;
}

static unsigned epctx__scan_type(const epctx_scan *s, unsigned back)
{
    return s->levels > back ? s->kinds[s->levels - 1 - back] & EPCTX__SCAN_TYPE : 0;
}

/* Reads a string into the text pool, as far as it fits there; always moves past it. */
static bool epctx__scan_string(epctx_scan *s, uint64_t length, epctx_str *text)
{
    char *out = s->text + s->text_used;
    uint64_t i;
    text->data = NULL;
    text->size = 0;
    if (length > (uint64_t)(sizeof s->text - s->text_used)) {
        return epctx__scan_skip(s, length);
    }
    for (i = 0; i < length; i++) {
        uint8_t byte;
        if (!epctx__scan_byte(s, &byte)) {
            return false;
        }
        out[i] = (char)byte;
    }
    text->data = out;
    text->size = (size_t)length;
    s->text_used = (uint16_t)(s->text_used + length);
    return true;
}

/* A string in the text pool, by its place; UINT16_MAX: there is none. */
static epctx_str epctx__scan_at(const epctx_scan *s, uint16_t at, uint16_t size)
{
    epctx_str text = {NULL, 0};
    if (size != UINT16_MAX) {
        text.data = s->text + at;
        text.size = size;
    }
    return text;
}

/* Is the string of `length` bytes that follows equal to `want`? Moves past it. */
static bool epctx__scan_same(epctx_scan *s, uint64_t length, const char *want, bool *same)
{
    uint64_t i;
    *same = length == strlen(want);
    if (!*same) {
        return epctx__scan_skip(s, length);
    }
    for (i = 0; i < length; i++) {
        uint8_t byte;
        if (!epctx__scan_byte(s, &byte)) {
            return false;
        }
        *same = *same && (char)byte == want[i];
    }
    return true;
}

static void epctx__scan_mark(epctx_scan *s, unsigned flag, bool on)
{
    uint8_t *kind = &s->kinds[s->levels - 1];
    *kind = (uint8_t)(on ? *kind | flag : *kind & ~flag);
}

/* State of the node whose body starts here. */
static void epctx__scan_node_begin(epctx_scan *s)
{
    memset(s->ranges, 0, sizeof s->ranges);
    s->node = epctx_epnode_default();
    s->broken = false;
    s->text_used = 0;
}

/* Strings of a node that make room for its name, source and partition_name, worst first; then those
 * three. */
static epctx_str *epctx__scan_kept(epctx_scan *s, int i)
{
    switch (i) {
    case 0:
        return &s->node.notes;
    case 1:
        return &s->node.onnx_model_filename;
    case 2:
        return &s->node.ep_cache_context;
    case 3:
        return &s->node.hardware_architecture;
    case 4:
        return &s->node.ep_sdk_version;
    case 5:
        return &s->node.partition_name;
    case 6:
        return &s->node.source;
    default:
        return &s->node.name;
    }
}

/* Takes a string out of the text pool; those behind it move down. */
static void epctx__scan_drop(epctx_scan *s, epctx_str *victim)
{
    size_t at = (size_t)(victim->data - s->text);
    size_t size = victim->size;
    int i;
    memmove(s->text + at, s->text + at + size, s->text_used - at - size);
    *victim = epctx_str_of(NULL);
    for (i = 0; i < 8; i++) {
        epctx_str *kept = epctx__scan_kept(s, i);
        if (kept->size > 0 && (size_t)(kept->data - s->text) > at) {
            kept->data -= size;
        }
    }
    s->text_used = (uint16_t)(s->text_used - size);
    s->attr_mark = s->text_used; /* the attribute being read has no text yet */
}

/* Makes room for a string of a node that is more important than others. `back` is how many levels
 * up the node is. A node whose state was taken by nodes inside is read again: not now. */
static void epctx__scan_room(epctx_scan *s, unsigned back, uint64_t length)
{
    int i;
    if (epctx__scan_type(s, back) != EPCTX__T_NODE ||
        (s->kinds[s->levels - 1 - back] & EPCTX__SCAN_CLOBBER) != 0 || length > sizeof s->text) {
        return;
    }
    for (i = 0; i < 5 && length > (uint64_t)(sizeof s->text - s->text_used); i++) {
        if (epctx__scan_kept(s, i)->size > 0) {
            epctx__scan_drop(s, epctx__scan_kept(s, i));
        }
    }
}

/* Reads up to `room` bytes that are compared with words; anything longer is none of them. */
static bool epctx__scan_word(epctx_scan *s, uint64_t length, char *word, size_t room,
                             epctx_str *out)
{
    size_t i;
    *out = epctx__str((const uint8_t *)word, 0);
    if (length > room) {
        return epctx__scan_skip(s, length);
    }
    for (i = 0; i < length; i++) {
        uint8_t byte;
        if (!epctx__scan_byte(s, &byte)) {
            return false;
        }
        word[i] = (char)byte;
    }
    out->size = (size_t)length;
    return true;
}

static bool epctx__scan_attr_name(epctx_scan *s, uint64_t length)
{
    char word[24];
    epctx_str name;
    int id;
    s->attr_id = EPCTX_EP_ATTR_COUNT;
    if (!epctx__scan_word(s, length, word, sizeof word, &name)) {
        return false;
    }
    for (id = 0; id < EPCTX_EP_ATTR_COUNT; id++) {
        if (epctx_str_is(name, epctx__epnode_attr_name((epctx_epnode_attr)id))) {
            s->attr_id = (uint8_t)id;
        }
    }
    return true;
}

/* Entries of external_data that are of interest. */
#define EPCTX__ENTRY_LOCATION 1u
#define EPCTX__ENTRY_OFFSET   2u
#define EPCTX__ENTRY_LENGTH   3u

static bool epctx__scan_entry_key(epctx_scan *s, uint64_t length)
{
    char word[8];
    epctx_str key;
    if (!epctx__scan_word(s, length, word, sizeof word, &key)) {
        return false;
    }
    s->entry_key = epctx_str_is(key, "location") ? EPCTX__ENTRY_LOCATION
                   : epctx_str_is(key, "offset") ? EPCTX__ENTRY_OFFSET
                   : epctx_str_is(key, "length") ? EPCTX__ENTRY_LENGTH
                                                 : 0;
    return true;
}

/* A value before or after its key: kept as text, as far as it fits, and as a number. */
static bool epctx__scan_entry_value(epctx_scan *s, uint64_t length)
{
    char *out = s->text + s->entry_mark;
    bool fits = length <= (uint64_t)(sizeof s->text - s->entry_mark);
    bool number = length > 0;
    uint64_t value = 0;
    uint64_t i;
    s->entry_range.offset = s->at;
    s->entry_range.length = length;
    for (i = 0; i < length && (fits || number); i++) {
        uint8_t byte;
        unsigned digit;
        if (!epctx__scan_byte(s, &byte)) {
            return false;
        }
        digit = (unsigned)byte - '0';
        number = number && digit <= 9 && value <= (UINT64_MAX - digit) / 10;
        value = number ? value * 10 + digit : 0;
        if (fits) {
            out[i] = (char)byte;
        }
    }
    s->entry_size = fits ? (uint16_t)length : UINT16_MAX;
    s->entry_number = number ? value : UINT64_MAX;
    s->text_used = (uint16_t)(s->entry_mark + (fits ? length : 0));
    return epctx__scan_skip(s, length - i);
}

static void epctx__scan_entry_end(epctx_scan *s)
{
    if (s->entry_key == EPCTX__ENTRY_LOCATION) {
        s->value = epctx__scan_at(s, s->entry_mark, s->entry_size);
        s->location = s->entry_range;
        return;
    }
    s->text_used = s->entry_mark;
    if (s->entry_key == EPCTX__ENTRY_OFFSET) {
        s->data.offset = s->entry_number;
    } else if (s->entry_key == EPCTX__ENTRY_LENGTH) {
        s->data.length = s->entry_number;
    }
}

/* An integer field that something wants to know. */
static void epctx__scan_number(epctx_scan *s, unsigned type, uint32_t number, uint64_t value)
{
    if (type == EPCTX__T_ATTR && number == 3) {
        s->attr_i = (int64_t)value;
    } else if (type == EPCTX__T_ATTR && number == 20 && (uint32_t)value <= 14) {
        s->attr_type = (uint8_t)value;
    } else if (type == EPCTX__T_LEAF && s->outer == 8 && number == 2) {
        s->version = (int64_t)value;
    } else if (type == EPCTX__T_TENSOR && number == 14 && (uint32_t)value <= 1) {
        s->external = (uint32_t)value == 1;
    }
}

/* A string field: kept when something wants it, skipped otherwise. */
static bool epctx__scan_text(epctx_scan *s, unsigned type, uint32_t number, uint64_t length)
{
    bool same;
    epctx_range range;
    epctx_str text;
    range.offset = s->at;
    range.length = length;
    if (type == EPCTX__T_NODE && number == 3) {
        epctx__scan_room(s, 0, length);
        return epctx__scan_string(s, length, &s->node.name);
    }
    if (type == EPCTX__T_NODE && (number == 4 || number == 7)) {
        if (!epctx__scan_same(s, length, number == 4 ? EPCTX_OP_TYPE : EPCTX_DOMAIN, &same)) {
            return false;
        }
        epctx__scan_mark(s, number == 4 ? EPCTX__SCAN_OP : EPCTX__SCAN_DOMAIN, same);
        return true;
    }
    if (type == EPCTX__T_ATTR && number == 1) {
        return epctx__scan_attr_name(s, length);
    }
    if (type == EPCTX__T_ATTR && number == 4) {
        s->attr_range = range;
        s->text_used = s->attr_mark;
        if (s->attr_id == EPCTX_EP_SOURCE || s->attr_id == EPCTX_EP_PARTITION_NAME) {
            epctx__scan_room(s, 1, length);
        }
        if (!epctx__scan_string(s, length, &text)) {
            return false;
        }
        s->attr_size = text.data != NULL ? (uint16_t)text.size : UINT16_MAX;
        return true;
    }
    if (type == EPCTX__T_TENSOR && number == 8) {
        return epctx__scan_string(s, length, &s->key);
    }
    if (type == EPCTX__T_LEAF && s->outer == EPCTX__SCAN_ENTRY && (number == 1 || number == 2)) {
        return number == 1 ? epctx__scan_entry_key(s, length)
                           : epctx__scan_entry_value(s, length);
    }
    if (type == EPCTX__T_LEAF && s->outer != 0 && (number == 1 || number == 2)) {
        s->ranges[number - 1] = range;
        return epctx__scan_string(s, length, number == 1 ? &s->key : &s->value);
    }
    return epctx__scan_skip(s, length);
}

static bool epctx__scan_packed(epctx_scan *s, uint32_t kind, uint64_t length)
{
    uint64_t outer = s->end;
    uint64_t value;
    bool good = true;
    if (kind != EPCTX__VARINT) {
        return length % (kind == EPCTX__FIX32 ? 4 : 8) == 0
                   ? epctx__scan_skip(s, length)
                   : epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF,
                                        "a packed field ends inside a number");
    }
    s->end = s->at + length;
    while (good && s->at < s->end) {
        good = epctx__scan_varint(s, 10, &value);
    }
    s->end = outer;
    return good;
}

static bool epctx__scan_enter(epctx_scan *s, epctx__type type, uint32_t number, uint64_t length)
{
    unsigned parent = epctx__scan_type(s, 0);
    uint8_t i;
    if (type == EPCTX__T_NODE) {
        for (i = 0; i < s->levels; i++) {
            if ((s->kinds[i] & EPCTX__SCAN_TYPE) == EPCTX__T_NODE) {
                s->kinds[i] = (uint8_t)(s->kinds[i] | EPCTX__SCAN_CLOBBER);
            }
        }
        if (s->nodes >= sizeof s->starts_high) {
            return epctx__scan_deep(s);
        }
        s->starts_low[s->nodes] = (uint32_t)(s->at & UINT32_MAX);
        s->starts_high[s->nodes++] = (uint8_t)(s->at >> 32);
        epctx__scan_node_begin(s);
        s->node_count++;
    } else if (type == EPCTX__T_ATTR) {
        s->attr_i = 0;
        s->attr_type = EPCTX_ATTR_UNDEFINED;
        s->attr_id = EPCTX_EP_ATTR_COUNT;
        s->attr_size = UINT16_MAX;
        memset(&s->attr_range, 0, sizeof s->attr_range);
        s->attr_mark = s->text_used;
    } else if (type == EPCTX__T_TENSOR) {
        s->tensor_mark = s->text_used;
        s->key = s->value = epctx_str_of(NULL);
        s->data.offset = 0;
        s->data.length = UINT64_MAX;
        memset(&s->location, 0, sizeof s->location);
        s->external = false;
    } else if (type == EPCTX__T_LEAF) {
        bool entry = parent == EPCTX__T_TENSOR && number == EPCTX__SCAN_ENTRY;
        s->outer = parent == EPCTX__T_MODEL || entry ? (uint8_t)number : 0;
        if (entry) {
            s->entry_key = 0;
            s->entry_mark = s->text_used;
            s->entry_size = UINT16_MAX;
            s->entry_number = UINT64_MAX;
            memset(&s->entry_range, 0, sizeof s->entry_range);
        } else if (s->outer != 0) {
            s->text_used = 0;
            s->key = s->value = epctx_str_of("");
            s->version = 0;
            memset(s->ranges, 0, sizeof s->ranges);
        }
    }
    return epctx__scan_push(s, (unsigned)type, s->at + length);
}

static bool epctx__scan_len(epctx_scan *s, unsigned type, uint32_t number)
{
    uint32_t kind = type != 0 ? epctx__field_kind((epctx__type)type, number) : 0;
    uint64_t length;
    if (!epctx__scan_varint(s, 5, &length)) {
        return false;
    }
    if (length > s->end - s->at) {
        return epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF, "there is no valid protobuf field");
    }
    if (kind == 0) {
        return epctx__scan_text(s, type, number, length);
    }
    if (!epctx__is_message(kind)) {
        return epctx__scan_packed(s, kind, length);
    }
    /* The second look at a node does not go into its graphs again. */
    if (s->flat && type == EPCTX__T_ATTR) {
        return epctx__scan_skip(s, length);
    }
    return epctx__scan_enter(s, epctx__message_type(kind), number, length);
}

static bool epctx__scan_field(epctx_scan *s)
{
    unsigned type = epctx__scan_type(s, 0);
    uint64_t tag;
    uint64_t value;
    uint32_t number;
    if (!epctx__scan_varint(s, 5, &tag)) {
        return false;
    }
    tag &= UINT32_MAX;
    number = (uint32_t)(tag >> 3);
    switch (number == 0 ? 7 : (unsigned)(tag & 7)) {
    case EPCTX_WIRE_VARINT:
        if (!epctx__scan_varint(s, 10, &value)) {
            return false;
        }
        epctx__scan_number(s, type, number, value);
        return true;
    case EPCTX_WIRE_FIXED64:
    case EPCTX_WIRE_FIXED32:
        value = (tag & 7) == EPCTX_WIRE_FIXED64 ? 8 : 4;
        return value <= s->end - s->at
                   ? epctx__scan_skip(s, value)
                   : epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF, "there is no valid protobuf field");
    case EPCTX_WIRE_LEN:
        return epctx__scan_len(s, type, number);
    case EPCTX_WIRE_GROUP:
        return epctx__scan_push(s, 0, number);
    case 4:
        if (type == 0 && s->ends_low[s->levels - 1] == number) {
            s->levels--;
            epctx__scan_bound(s);
            return true;
        }
        break;
    default:
        break;
    }
    return epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF, "there is no valid protobuf field");
}

/* The attribute that ended becomes a member of the node. */
static void epctx__scan_attr_end(epctx_scan *s)
{
    epctx_str name;
    if (s->attr_id == EPCTX_EP_ATTR_COUNT) {
        s->text_used = s->attr_mark;
        return;
    }
    name = epctx_str_of(epctx__epnode_attr_name((epctx_epnode_attr)s->attr_id));
    s->ranges[s->attr_id] = s->attr_range;
    s->broken = epctx__epnode_take(&s->node, name, s->attr_type, s->attr_i,
                                   epctx__scan_at(s, s->attr_mark, s->attr_size), NULL) !=
                    EPCTX_OK ||
                s->broken;
}

/* Goes back to the start of the node that ends here, to read it without what is inside. */
static int epctx__scan_again(epctx_scan *s)
{
    epctx__scan_mark(s, EPCTX__SCAN_CLOBBER | EPCTX__SCAN_OP | EPCTX__SCAN_DOMAIN, false);
    s->at = (uint64_t)s->starts_high[s->nodes - 1] << 32 | s->starts_low[s->nodes - 1];
    s->buffer_at = s->buffer_size = 0;
    s->flat = true;
    epctx__scan_node_begin(s);
    return -1;
}

/* Ends of messages. Returns the event that is due, or -1. */
static int epctx__scan_leave(epctx_scan *s)
{
    unsigned kind = s->kinds[s->levels - 1];
    unsigned type = kind & EPCTX__SCAN_TYPE;
    if (type == 0) {
        epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF, "there is no valid protobuf field");
        return -1;
    }
    if (type == EPCTX__T_NODE && (kind & EPCTX__SCAN_OP) != 0 &&
        (kind & EPCTX__SCAN_CLOBBER) != 0 && !s->flat) {
        if (epctx__scan_stream(s) != NULL) {
            epctx__scan_refuse(s, EPCTX_ERR_UNSUPPORTED,
                               "an EPContext node with a graph inside needs a source that can go "
                               "back");
            return -1;
        }
        return epctx__scan_again(s);
    }
    s->levels--;
    epctx__scan_bound(s);
    if (type == EPCTX__T_ATTR && epctx__scan_type(s, 0) == EPCTX__T_NODE) {
        epctx__scan_attr_end(s);
    } else if (type == EPCTX__T_NODE) {
        s->flat = false;
        s->nodes--;
        if ((kind & EPCTX__SCAN_OP) == 0) {
            return -1;
        }
        s->epnode_count++;
        s->broken = s->broken || (kind & EPCTX__SCAN_DOMAIN) == 0;
        s->depth = s->nodes;
        return EPCTX_SCAN_EPNODE;
    } else if (type == EPCTX__T_TENSOR) {
        s->text_used = s->tensor_mark; /* nothing is written there before the next event */
        s->depth = s->nodes;
        return s->external ? (int)EPCTX_SCAN_EXTERNAL : -1;
    } else if (type == EPCTX__T_LEAF && s->outer == EPCTX__SCAN_ENTRY) {
        s->outer = 0;
        epctx__scan_entry_end(s);
    } else if (type == EPCTX__T_LEAF && s->outer == 14) {
        s->outer = 0;
        return EPCTX_SCAN_METADATA;
    } else if (type == EPCTX__T_LEAF && s->outer == 8) {
        s->outer = 0;
        return EPCTX_SCAN_OPSET;
    }
    return -1;
}

static void epctx__scan_start(epctx_scan *s, uint64_t size)
{
    s->node = epctx_epnode_default();
    if (!epctx__nanopb_matches()) {
        epctx__scan_refuse(s, EPCTX_ERR_CONFIG,
                           "nanopb was built with other PB_NO_ERRMSG or PB_BUFFER_ONLY settings");
    } else if (size == 0) {
        epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF, "the model is empty (0 bytes)");
    } else if (size != UINT64_MAX && size >= EPCTX__SCAN_ENDLESS) {
        epctx__scan_refuse(s, EPCTX_ERR_LIMIT, "the model has a terabyte or more");
    }
    epctx__scan_push(s, EPCTX__T_MODEL, size == UINT64_MAX ? EPCTX__SCAN_ENDLESS : size);
}

EPCTX_API void epctx_scan_begin(epctx_scan *scan, const epctx_source *source)
{
    memset(scan, 0, sizeof *scan);
    scan->source = *source;
    epctx__scan_start(scan, source->size);
}

EPCTX_API void epctx_scan_begin_stream(epctx_scan *scan, pb_istream_t *stream)
{
    memset(scan, 0, sizeof *scan);
    scan->source.user = stream;
    epctx__scan_start(scan, stream->bytes_left == SIZE_MAX ? UINT64_MAX : stream->bytes_left);
}

/* A field, or the end of a stream that did not know its length: it may come between two fields of
 * the model and nowhere else. Returns false at that end. */
static bool epctx__scan_step(epctx_scan *s)
{
    uint64_t before = s->at;
    if (epctx__scan_field(s) || epctx__scan_stream(s) == NULL || s->end != UINT64_MAX ||
        s->levels != 1 || s->at != before || s->status != EPCTX_ERR_PROTOBUF || s->at == 0) {
        return true;
    }
    s->status = EPCTX_OK;
    s->reason = NULL;
    return false;
}

static epctx_scan_event epctx__scan_failed(const epctx_scan *s, epctx_error *error)
{
    epctx_fail(error, s->status, "%sbyte %u: %s",
               s->status == EPCTX_ERR_PROTOBUF ? "not an ONNX protobuf: " : "", s->at, s->reason);
    if (error != NULL) {
        error->offset = s->at;
    }
    return EPCTX_SCAN_FAILED;
}

EPCTX_API epctx_scan_event epctx_scan_next(epctx_scan *scan, epctx_error *error)
{
    epctx_error_clear(error);
    while (scan->status == EPCTX_OK) {
        int event;
        if (scan->at < scan->end) {
            if (!epctx__scan_step(scan)) {
                return EPCTX_SCAN_END;
            }
            continue;
        }
        if (scan->levels == 1) {
            if (scan->at > 0) {
                return EPCTX_SCAN_END;
            }
            epctx__scan_refuse(scan, EPCTX_ERR_PROTOBUF, "the model is empty (0 bytes)");
            break;
        }
        event = epctx__scan_leave(scan);
        if (event >= 0) {
            return (epctx_scan_event)event;
        }
    }
    return epctx__scan_failed(scan, error);
}

#endif /* EPCTX_NO_WIRE */

#ifndef EPCTX_NO_WIRE

/* ================================================================================================
 * >>edit
 * ============================================================================================== */

/* -- model bytes -> record -- */

typedef struct epctx__loader {
    epctx_model *model;
    epctx_arena *arena;
    epctx_error *error;
    epctx_map initializers; /* name -> 1 */
    epctx_map domains;      /* of opset imports, "ai.onnx" as "" -> position in `versions` */
    int64_t *versions;
    int64_t ir_version;
} epctx__loader;

static void *epctx__load_array(epctx__loader *l, size_t count, size_t size)
{
    void *memory = epctx_arena_array(l->arena, count, size);
    if (memory == NULL) {
        epctx__nomem(l->error, l->arena->missing);
    }
    return memory;
}

static bool epctx__load_strs(epctx__loader *l, epctx_cursor it, const epctx_str **out,
                             size_t *count)
{
    epctx_str *strs;
    size_t n = 0;
    *count = epctx__count(it);
    strs = (epctx_str *)epctx__load_array(l, *count, sizeof *strs);
    *out = strs;
    while (strs != NULL && n < *count && epctx_next_str(&it, &strs[n])) {
        n++;
    }
    return strs != NULL;
}

static bool epctx__load_ints(epctx__loader *l, epctx_cursor it, const int64_t **out, size_t *count)
{
    epctx_cursor counter = it;
    int64_t value;
    int64_t *ints;
    size_t n = 0;
    for (*count = 0; epctx_next_int(&counter, &value);) {
        ++*count;
    }
    ints = (int64_t *)epctx__load_array(l, *count, sizeof *ints);
    *out = ints;
    while (ints != NULL && n < *count && epctx_next_int(&it, &ints[n])) {
        n++;
    }
    return ints != NULL;
}

static bool epctx__load_floats(epctx__loader *l, epctx_cursor it, const float **out, size_t *count)
{
    epctx_cursor counter = it;
    float value;
    float *floats;
    size_t n = 0;
    for (*count = 0; epctx_next_float(&counter, &value);) {
        ++*count;
    }
    floats = (float *)epctx__load_array(l, *count, sizeof *floats);
    *out = floats;
    while (floats != NULL && n < *count && epctx_next_float(&it, &floats[n])) {
        n++;
    }
    return floats != NULL;
}

static bool epctx__tensor_fault(epctx__loader *l, const epctx_tensor *tensor, const char *what,
                                uint64_t found, uint64_t expected)
{
    epctx_fail(l->error, EPCTX_ERR_GRAPH, "initializer '%S': %s %u, expected %u", &tensor->name,
               what, found, expected);
    return false;
}

/* Number of elements; false when a dimension is negative or the product overflows. */
static bool epctx__elements(const int64_t *dims, int32_t rank, uint64_t *count)
{
    int32_t i;
    bool zero = false;
    *count = 1;
    for (i = 0; i < rank; i++) {
        if (dims[i] < 0) {
            return false;
        }
        zero = zero || dims[i] == 0;
    }
    for (i = 0; i < rank && !zero; i++) {
        if (*count > (uint64_t)INT64_MAX / (uint64_t)dims[i]) {
            return false;
        }
        *count *= (uint64_t)dims[i];
    }
    *count = zero ? 0 : *count;
    return true;
}

/* The typed field that holds the elements of a type (onnx.proto, comments at TensorProto), or 0. */
static uint32_t epctx__typed_field(int32_t elem_type)
{
    switch (elem_type) {
    case 1:
    case 14:
        return 4; /* float_data */
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 9:
    case 10:
    case 16:
    case 17:
    case 18:
    case 19:
    case 20:
    case 24:
        return 5; /* int32_data */
    case 7:
        return 7; /* int64_data */
    case 11:
    case 15:
        return 10; /* double_data */
    case 12:
    case 13:
        return 11; /* uint64_data */
    default:
        return 0;
    }
}

/* Typed fields -> packed little-endian bytes. */
static bool epctx__load_typed(epctx__loader *l, epctx_view view, epctx_tensor *tensor, size_t need)
{
    uint32_t number = epctx__typed_field(tensor->elem_type);
    epctx_cursor it = epctx_fields(view, number);
    epctx_wire wire = number == 4 ? EPCTX_WIRE_FIXED32 : EPCTX_WIRE_VARINT;
    size_t width = epctx_elem_size(tensor->elem_type);
    uint8_t *out;
    size_t at = 0;
    uint64_t bits;
    /* A complex number is two elements of its field. */
    width = tensor->elem_type == 14 || tensor->elem_type == 15 ? width / 2 : width;
    if (number == 10) { /* packed doubles are read as they are */
        epctx_view body;
        epctx_field field;
        out = (uint8_t *)epctx__load_array(l, need, 1);
        while (out != NULL && epctx_next_field(&it, &field)) {
            body = field.body;
            if (field.wire == EPCTX_WIRE_FIXED64 && need - at >= 8) {
                size_t i;
                for (i = 0; i < 8; i++) {
                    out[at++] = (uint8_t)(field.value >> 8 * i);
                }
            } else if (field.wire == EPCTX_WIRE_LEN && body.size <= need - at) {
                memcpy(out + at, body.data, body.size);
                at += body.size;
            }
        }
    } else {
        out = (uint8_t *)epctx__load_array(l, need, 1);
        while (out != NULL && need - at >= width && epctx__next_scalar(&it, wire, &bits)) {
            size_t i;
            for (i = 0; i < width; i++) {
                out[at++] = (uint8_t)(bits >> 8 * i);
            }
        }
    }
    tensor->data = out;
    tensor->size = need;
    if (out == NULL) {
        return false;
    }
    return at == need || epctx__tensor_fault(l, tensor, "its typed field holds bytes:", at, need);
}

/* The mapping of an external data file; each file is mapped once. */
static const epctx__file *epctx__external_file(epctx__loader *l, epctx_str location)
{
    char path[EPCTX_PATH_MAX];
    epctx_model *model = l->model;
    epctx__file *file;
    epctx_str folder = epctx_str_of(model->external_folder);
    epctx_status status = EPCTX_OK;
    if (folder.size == 0) {
        if (model->path[0] == '\0') {
            epctx_fail(l->error, EPCTX_ERR_PATH,
                       "external data '%S': the model came from memory, set external_folder",
                       &location);
            return NULL;
        }
        folder = epctx_path_folder(epctx_str_of(model->path));
    }
    status = epctx_path_find(model->io, folder, location, model->path_flags, path, sizeof path,
                             l->error);
    for (file = model->files; status == EPCTX_OK && file != NULL; file = file->next) {
        if (strcmp(file->path, path) == 0) {
            return file;
        }
    }
    file = status == EPCTX_OK ? (epctx__file *)epctx__load_array(l, 1, sizeof *file) : NULL;
    if (file == NULL) {
        return NULL;
    }
    file->path = epctx_arena_copy(l->arena, epctx_str_of(path));
    file->name = location;
    if (file->path == NULL) {
        epctx__nomem(l->error, l->arena->missing);
        return NULL;
    }
    if (epctx_path_map(model->io, folder, location, model->path_flags, &file->mapping, NULL, 0,
                       l->error) != EPCTX_OK) {
        return NULL;
    }
    file->next = model->files;
    model->files = file;
    return file;
}

static bool epctx__load_external(epctx__loader *l, const epctx_tensor_view *view,
                                 epctx_tensor *tensor)
{
    const epctx__file *file = epctx__external_file(l, view->location);
    uint64_t size;
    if (file == NULL) {
        return false;
    }
    size = file->mapping.size;
    if (view->offset > size) {
        return epctx__tensor_fault(l, tensor, "external data starts beyond the file: offset",
                                   view->offset, size);
    }
    size -= view->offset;
    if (view->length != UINT64_MAX && view->length > size) {
        return epctx__tensor_fault(l, tensor, "external data is longer than the file: length",
                                   view->length, size);
    }
    size = view->length != UINT64_MAX ? view->length : size;
    tensor->data = file->mapping.data + view->offset;
    tensor->size = (size_t)size;
    return true;
}

static bool epctx__load_tensor(epctx__loader *l, epctx_view view, epctx_tensor *out)
{
    epctx_tensor_view t = epctx_tensor_of(view);
    size_t rank;
    uint64_t count;
    size_t width = epctx_elem_size(t.elem_type);
    memset(out, 0, sizeof *out);
    out->name = t.name;
    out->elem_type = t.elem_type;
    if (!epctx__load_ints(l, epctx_tensor_dims(&t), &out->dims, &rank)) {
        return false;
    }
    if (rank > INT32_MAX || !epctx__elements(out->dims, (int32_t)rank, &count) ||
        (width > 0 && count > (uint64_t)(SIZE_MAX / 2) / width)) {
        return epctx__tensor_fault(l, out, "has impossible dimensions, rank", rank, 0);
    }
    out->rank = (int32_t)rank;
    if (t.external) {
        if (!epctx__load_external(l, &t, out)) {
            return false;
        }
    } else if (t.has_raw) {
        out->data = t.raw.data;
        out->size = t.raw.size;
    } else if (width > 0 && epctx__typed_field(t.elem_type) != 0) {
        /* The bytes must be there: claimed dimensions alone must not make us allocate. */
        if (count > l->model->source.size) {
            return epctx__tensor_fault(l, out, "the model is smaller than its elements:",
                                       l->model->source.size, count);
        }
        return epctx__load_typed(l, view, out, (size_t)count * width);
    }
    if (out->data != NULL && width > 0 && out->size != count * width) {
        return epctx__tensor_fault(l, out, "data has bytes:", out->size, count * width);
    }
    return true;
}

static bool epctx__load_attr(epctx__loader *l, const epctx_attr_view *view, epctx_attr *out)
{
    memset(out, 0, sizeof *out);
    out->name = view->name;
    out->type = view->type >= 0 && view->type <= 14 ? (epctx_attr_type)view->type
                                                    : EPCTX_ATTR_UNDEFINED;
    out->i = view->i;
    out->f = view->f;
    out->s = view->s;
    switch (out->type) {
    case EPCTX_ATTR_INTS:
        return epctx__load_ints(l, epctx_fields(view->view, 8), &out->ints, &out->count);
    case EPCTX_ATTR_FLOATS:
        return epctx__load_floats(l, epctx_fields(view->view, 7), &out->floats, &out->count);
    case EPCTX_ATTR_STRINGS:
        return epctx__load_strs(l, epctx_fields(view->view, 9), &out->strings, &out->count);
    case EPCTX_ATTR_TENSOR: {
        epctx_tensor *tensor = (epctx_tensor *)epctx__load_array(l, 1, sizeof *tensor);
        out->t = tensor;
        return tensor != NULL && epctx__load_tensor(l, view->t, tensor);
    }
    default:
        return true;
    }
}

/* The names that a subgraph defines itself; what it reads beyond them it captures. */
typedef struct epctx__scope {
    const struct epctx__scope *outer;
    epctx_map names;
} epctx__scope;

typedef struct epctx__captures {
    epctx_str *out; /* NULL while they are counted */
    size_t count;
} epctx__captures;

static void epctx__capture_name(const epctx__scope *scope, epctx_str name, epctx__captures *found)
{
    for (; scope != NULL; scope = scope->outer) {
        if (epctx_map_get(&scope->names, name) != EPCTX_MAP_NONE) {
            return;
        }
    }
    if (name.size == 0) {
        return; /* an optional input that is not there */
    }
    if (found->out != NULL) {
        found->out[found->count] = name;
    }
    found->count++;
}

static bool epctx__scope_add(epctx__loader *l, epctx__scope *scope, epctx_str name)
{
    if (epctx_map_put(&scope->names, name, 1) != EPCTX_OK) {
        epctx__nomem(l->error, l->arena->missing);
        return false;
    }
    return true;
}

/* Inputs, initializers and node outputs of a subgraph. */
static bool epctx__scope_fill(epctx__loader *l, epctx__scope *scope, epctx_view graph)
{
    epctx_graph_view view = epctx_graph_of(graph);
    epctx_cursor inputs = epctx_graph_inputs(view);
    epctx_cursor initializers = epctx_graph_initializers(view);
    epctx_cursor nodes = epctx_graph_nodes(view);
    epctx_value_view value;
    epctx_tensor_view tensor;
    epctx_view node;
    while (epctx_next_value(&inputs, &value)) {
        if (!epctx__scope_add(l, scope, value.name)) {
            return false;
        }
    }
    while (epctx_next_tensor(&initializers, &tensor)) {
        if (!epctx__scope_add(l, scope, tensor.name)) {
            return false;
        }
    }
    while (epctx__next_body(&nodes, &node)) {
        epctx_cursor outputs = epctx_fields(node, 2);
        epctx_str name;
        while (epctx_next_str(&outputs, &name)) {
            if (!epctx__scope_add(l, scope, name)) {
                return false;
            }
        }
    }
    return true;
}

static bool epctx__capture_node(epctx__loader *l, epctx_view node, const epctx__scope *outer,
                                epctx__captures *found, uint32_t depth);

static bool epctx__capture_graph(epctx__loader *l, epctx_view graph, const epctx__scope *outer,
                                 epctx__captures *found, uint32_t depth)
{
    epctx_cursor nodes = epctx_fields(graph, 1);
    epctx_cursor outputs = epctx_fields(graph, 12);
    epctx_value_view value;
    epctx__scope scope;
    epctx_view node;
    scope.outer = outer;
    epctx_map_init(&scope.names, l->arena);
    if (!epctx__scope_fill(l, &scope, graph)) {
        return false;
    }
    while (epctx__next_body(&nodes, &node)) {
        epctx_cursor inputs = epctx_fields(node, 1);
        epctx_str name;
        while (epctx_next_str(&inputs, &name)) {
            epctx__capture_name(&scope, name, found);
        }
        if (!epctx__capture_node(l, node, &scope, found, depth)) {
            return false;
        }
    }
    /* A body may hand an outer value straight through. */
    while (epctx_next_value(&outputs, &value)) {
        epctx__capture_name(&scope, value.name, found);
    }
    return true;
}

/* What the subgraphs in the attributes of a node read from outside. */
static bool epctx__capture_node(epctx__loader *l, epctx_view node, const epctx__scope *outer,
                                epctx__captures *found, uint32_t depth)
{
    epctx_cursor attrs = epctx_fields(node, 5);
    epctx_view attr;
    while (depth > 0 && epctx__next_body(&attrs, &attr)) {
        epctx_cursor fields = epctx_fields(attr, 0);
        epctx_field field;
        while (epctx_next_field(&fields, &field)) {
            if (field.wire == EPCTX_WIRE_LEN && (field.number == 6 || field.number == 11) &&
                !epctx__capture_graph(l, field.body, outer, found, depth - 1)) { /* g, graphs */
                return false;
            }
        }
    }
    return true;
}

static bool epctx__load_node(epctx__loader *l, const epctx_node_view *view, epctx_node *out)
{
    epctx_cursor it = epctx_node_attrs(view);
    epctx_attr_view attr;
    epctx_attr *attrs;
    epctx__captures captures = {NULL, 0};
    uint32_t domain;
    out->name = view->name;
    out->op_type = view->op_type;
    out->domain = epctx_str_is(view->domain, "ai.onnx") ? epctx_str_of("") : view->domain;
    domain = epctx_map_get(&l->domains, out->domain);
    out->version = domain != EPCTX_MAP_NONE ? l->versions[domain] : 0;
    attrs = (epctx_attr *)epctx__load_array(l, view->attr_count, sizeof *attrs);
    if (attrs == NULL ||
        !epctx__load_strs(l, epctx_node_inputs(view), &out->inputs, &out->input_count) ||
        !epctx__load_strs(l, epctx_node_outputs(view), &out->outputs, &out->output_count)) {
        return false;
    }
    out->attrs = attrs;
    while (out->attr_count < view->attr_count && epctx_next_attr(&it, &attr)) {
        if (!epctx__load_attr(l, &attr, &attrs[out->attr_count])) {
            epctx_blame(l->error, NULL, &view->name, NULL);
            return false;
        }
        out->attr_count++;
    }
    if (!epctx__capture_node(l, view->view, NULL, &captures, 100)) {
        return false;
    }
    out->capture_count = captures.count;
    if (captures.count == 0) {
        return true;
    }
    captures.out = (epctx_str *)epctx__load_array(l, captures.count, sizeof *captures.out);
    captures.count = 0;
    out->captures = captures.out;
    return captures.out != NULL && epctx__capture_node(l, view->view, NULL, &captures, 100);
}

static bool epctx__load_value(epctx__loader *l, const epctx_value_view *view, epctx_value *out)
{
    epctx_cursor it = epctx_value_dims(view);
    epctx_dim dim;
    int64_t *dims;
    size_t rank = epctx__count(it);
    memset(out, 0, sizeof *out);
    out->name = view->name;
    out->elem_type = view->is_tensor ? view->elem_type : 0;
    out->rank = -1;
    if (!view->has_shape || rank > INT32_MAX) {
        return true;
    }
    dims = (int64_t *)epctx__load_array(l, rank, sizeof *dims);
    if (dims == NULL) {
        return false;
    }
    out->rank = (int32_t)rank;
    out->dims = dims;
    for (rank = 0; rank < (size_t)out->rank && epctx_next_dim(&it, &dim); rank++) {
        dims[rank] = dim.known && dim.value >= 0 ? dim.value : -1;
    }
    return true;
}

static bool epctx__load_values(epctx__loader *l, epctx_cursor it, bool skip_constants,
                               const epctx_value **out, size_t *count)
{
    epctx_value_view view;
    epctx_value *values =
        (epctx_value *)epctx__load_array(l, epctx__count(it), sizeof *values);
    *out = values;
    *count = 0;
    while (values != NULL && epctx_next_value(&it, &view)) {
        /* Before IR version 4 every initializer had to be listed as an input. */
        if (skip_constants && l->ir_version < 4 &&
            epctx_map_get(&l->initializers, view.name) != EPCTX_MAP_NONE) {
            continue;
        }
        if (!epctx__load_value(l, &view, &values[*count])) {
            return false;
        }
        ++*count;
    }
    return values != NULL;
}

static bool epctx__load_initializers(epctx__loader *l, epctx_graph_view view, epctx_graph *out)
{
    epctx_cursor it = epctx_graph_initializers(view);
    epctx_cursor inputs = epctx_graph_inputs(view);
    epctx_map overridable;
    epctx_value_view value;
    epctx_view body;
    epctx_tensor *tensors =
        (epctx_tensor *)epctx__load_array(l, epctx__count(it), sizeof *tensors);
    out->initializers = tensors;
    epctx_map_init(&overridable, l->arena);
    while (l->ir_version >= 4 && epctx_next_value(&inputs, &value)) {
        if (epctx_map_put(&overridable, value.name, 1) != EPCTX_OK) {
            epctx__nomem(l->error, l->arena->missing);
            return false;
        }
    }
    while (tensors != NULL && epctx__next_body(&it, &body)) {
        epctx_tensor *tensor = &tensors[out->initializer_count];
        if (!epctx__load_tensor(l, body, tensor)) {
            return false;
        }
        if (epctx_map_get(&overridable, tensor->name) != EPCTX_MAP_NONE) {
            continue; /* the application may replace it: an input, not a constant */
        }
        if (epctx_map_put(&l->initializers, tensor->name, 1) != EPCTX_OK) {
            epctx__nomem(l->error, l->arena->missing);
            return false;
        }
        out->initializer_count++;
    }
    return tensors != NULL;
}

/* Nodes look their version up, and both may be many. Of a domain imported twice the last counts. */
static bool epctx__load_opsets(epctx__loader *l)
{
    epctx_cursor it = epctx_model_opsets(l->model);
    epctx_opset opset;
    uint32_t count = 0;
    epctx_map_init(&l->domains, l->arena);
    l->versions = (int64_t *)epctx__load_array(l, epctx__count(it), sizeof *l->versions);
    while (l->versions != NULL && epctx_next_opset(&it, &opset)) {
        bool onnx = epctx_str_is(opset.domain, "ai.onnx");
        l->versions[count] = opset.version;
        if (epctx_map_put(&l->domains, onnx ? epctx_str_of("") : opset.domain, count++) !=
            EPCTX_OK) {
            epctx__nomem(l->error, l->arena->missing);
            return false;
        }
    }
    return l->versions != NULL;
}

static bool epctx__load_nodes(epctx__loader *l, epctx_graph_view view, epctx_graph *out)
{
    epctx_cursor it = epctx_graph_nodes(view);
    epctx_node_view node;
    epctx_node *nodes = (epctx_node *)epctx__load_array(l, epctx__count(it), sizeof *nodes);
    out->nodes = nodes;
    while (nodes != NULL && epctx_next_node(&it, &node)) {
        if (!epctx__load_node(l, &node, &nodes[out->node_count])) {
            return false;
        }
        nodes[out->node_count].id = (uint32_t)out->node_count;
        out->node_count++;
    }
    return nodes != NULL;
}

/* -- topological order -- */

#define EPCTX__NO_UNIT UINT32_MAX

typedef struct epctx__edges {
    uint32_t *from;
    uint32_t *to; /* waits for `from` */
    size_t count;
} epctx__edges;

/* A heap of units, smallest key on top. */
static void epctx__heap_push(uint32_t *heap, size_t *count, uint32_t unit, const uint32_t *key)
{
    size_t at = (*count)++;
    while (at > 0 && key[heap[(at - 1) / 2]] > key[unit]) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = unit;
}

static uint32_t epctx__heap_pop(uint32_t *heap, size_t *count, const uint32_t *key)
{
    uint32_t top = heap[0];
    uint32_t last = heap[--*count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < *count && key[heap[child + 1]] < key[heap[child]]) {
            child++;
        }
        if (child >= *count || key[heap[child]] >= key[last]) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* Units in an order where each stands behind those it waits for, by key where that leaves a choice.
 * A unit with key EPCTX__NO_UNIT does not exist. `count` falls short of the units that exist when
 * there is a cycle. */
static bool epctx__sort_units(epctx_arena *arena, epctx_error *error, const uint32_t *key,
                              size_t units, const epctx__edges *edges, uint32_t *sequence,
                              size_t *count)
{
    uint32_t *missing = (uint32_t *)epctx_arena_array(arena, units, sizeof *missing);
    uint32_t *heap = (uint32_t *)epctx_arena_array(arena, units, sizeof *heap);
    size_t *first = (size_t *)epctx_arena_array(arena, units, sizeof *first); /* 1 + edge, or 0 */
    size_t *next = (size_t *)epctx_arena_array(arena, edges->count, sizeof *next);
    size_t heaped = 0;
    size_t i;
    *count = 0;
    if (missing == NULL || heap == NULL || first == NULL || next == NULL) {
        epctx__nomem(error, arena->missing);
        return false;
    }
    for (i = 0; i < edges->count; i++) {
        missing[edges->to[i]]++;
        next[i] = first[edges->from[i]];
        first[edges->from[i]] = i + 1;
    }
    for (i = 0; i < units; i++) {
        if (key[i] != EPCTX__NO_UNIT && missing[i] == 0) {
            epctx__heap_push(heap, &heaped, (uint32_t)i, key);
        }
    }
    while (heaped > 0) {
        uint32_t unit = epctx__heap_pop(heap, &heaped, key);
        size_t edge;
        sequence[(*count)++] = unit;
        for (edge = first[unit]; edge != 0; edge = next[edge - 1]) {
            if (--missing[edges->to[edge - 1]] == 0) {
                epctx__heap_push(heap, &heaped, edges->to[edge - 1], key);
            }
        }
    }
    return true;
}

/* Edges between the nodes of a record; `sorted` tells whether the nodes are in order already. */
static bool epctx__node_edges(epctx__loader *l, const epctx_graph *graph, epctx__edges *edges,
                              bool *sorted)
{
    epctx_map producers;
    size_t most = 0;
    size_t i, k;
    epctx_map_init(&producers, l->arena);
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        most += epctx__read_count(node);
        for (k = 0; k < node->output_count; k++) {
            if (node->outputs[k].size > 0 &&
                epctx_map_put(&producers, node->outputs[k], (uint32_t)i) != EPCTX_OK) {
                epctx__nomem(l->error, l->arena->missing);
                return false;
            }
        }
    }
    edges->from = (uint32_t *)epctx__load_array(l, most, sizeof *edges->from);
    edges->to = (uint32_t *)epctx__load_array(l, most, sizeof *edges->to);
    edges->count = 0;
    *sorted = true;
    for (i = 0; edges->from != NULL && edges->to != NULL && i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; k < epctx__read_count(node); k++) {
            uint32_t from = epctx_map_get(&producers, epctx__reads(node, k));
            if (from != EPCTX_MAP_NONE) {
                *sorted = *sorted && from < i;
                edges->from[edges->count] = from;
                edges->to[edges->count++] = (uint32_t)i;
            }
        }
    }
    return edges->from != NULL && edges->to != NULL;
}

/* ONNX wants nodes in topological order, but ORT accepts any order and also writes such models. */
static bool epctx__sort_nodes(epctx__loader *l, epctx_graph *graph)
{
    epctx__edges edges;
    epctx_node *nodes;
    uint32_t *sequence;
    uint32_t *key;
    size_t count = 0;
    size_t i;
    bool sorted;
    if (!epctx__node_edges(l, graph, &edges, &sorted)) {
        return false;
    }
    if (sorted) {
        return true;
    }
    nodes = (epctx_node *)epctx__load_array(l, graph->node_count, sizeof *nodes);
    sequence = (uint32_t *)epctx__load_array(l, graph->node_count, sizeof *sequence);
    key = (uint32_t *)epctx__load_array(l, graph->node_count, sizeof *key);
    if (nodes == NULL || sequence == NULL || key == NULL) {
        return false;
    }
    for (i = 0; i < graph->node_count; i++) {
        key[i] = (uint32_t)i;
    }
    if (!epctx__sort_units(l->arena, l->error, key, graph->node_count, &edges, sequence, &count)) {
        return false;
    }
    if (count != graph->node_count) {
        epctx_fail(l->error, EPCTX_ERR_GRAPH,
                   "%u nodes depend on themselves: the graph has a cycle",
                   (uint64_t)(graph->node_count - count));
        return false;
    }
    for (i = 0; i < count; i++) {
        nodes[i] = graph->nodes[sequence[i]];
    }
    graph->nodes = nodes;
    return true;
}

EPCTX_API epctx_status epctx_graph_load(epctx_model *model, epctx_graph *out, epctx_error *error)
{
    epctx__loader loader;
    epctx_graph_view view = epctx_model_graph(model);
    epctx_error local;
    epctx_error_clear(error);
    epctx_error_clear(&local);
    memset(out, 0, sizeof *out);
    loader.error = error != NULL ? error : &local;
    if (model->shown_graph == NULL) {
        epctx_fail(loader.error, EPCTX_ERR_GRAPH, "the model has no graph");
        epctx_blame(loader.error, model->path, NULL, NULL);
        return loader.error->status;
    }
    loader.model = model;
    loader.arena = &model->arena;
    loader.ir_version = epctx_model_read(model).ir_version;
    epctx_map_init(&loader.initializers, loader.arena);
    out->name = view.name;
    if (!epctx__load_opsets(&loader) || !epctx__load_initializers(&loader, view, out) ||
        !epctx__load_values(&loader, epctx_graph_inputs(view), true, &out->inputs,
                            &out->input_count) ||
        !epctx__load_values(&loader, epctx_graph_outputs(view), false, &out->outputs,
                            &out->output_count) ||
        !epctx__load_values(&loader, epctx_graph_values(view), false, &out->values,
                            &out->value_count) ||
        !epctx__load_nodes(&loader, view, out) || !epctx__sort_nodes(&loader, out)) {
        epctx_blame(loader.error, model->path, NULL, NULL);
        return loader.error->status;
    }
    return EPCTX_OK;
}

/* -- edits: the journal -- */

static void epctx__touch(epctx_slot *slot, bool made)
{
    for (; slot != NULL; slot = slot->parent) {
        if (slot->message != NULL) {
            slot->message->edits += made ? 1u : UINT32_MAX; /* UINT32_MAX: minus one */
        }
    }
}

static epctx_status epctx__record(epctx_model *model, epctx_slot *slot, epctx_slot *previous,
                                  bool inserted, epctx_error *error)
{
    epctx__edit *edit = (epctx__edit *)epctx_arena_alloc(&model->arena, sizeof *edit);
    if (edit == NULL) {
        return epctx__nomem(error, model->arena.missing);
    }
    edit->before = model->edits;
    edit->slot = slot;
    edit->previous = previous;
    edit->inserted = inserted;
    model->edits = edit;
    model->edit_count++;
    epctx__touch(slot->parent, true);
    return EPCTX_OK;
}

EPCTX_API size_t epctx_edit_mark(const epctx_model *model)
{
    return model->edit_count;
}

static void epctx__unlink(epctx_slot *slot, epctx_slot *previous)
{
    epctx__message *message = slot->parent->message;
    if (previous != NULL) {
        previous->next = slot->next;
    } else {
        message->first = slot->next;
    }
    if (message->last == slot) {
        message->last = previous;
    }
    message->hint = NULL;
}

/* The main graph came or went. */
static void epctx__graph_moved(epctx_model *model, const epctx_slot *slot)
{
    if (slot->parent == model->root && slot->number == 7) {
        model->graph = model->shown_graph = epctx__find_graph(model->root);
    }
}

EPCTX_API void epctx_undo(epctx_model *model, size_t mark)
{
    while (model->edit_count > mark && model->edits != NULL) {
        epctx__edit *edit = model->edits;
        epctx__touch(edit->slot->parent, false);
        if (edit->inserted) {
            epctx__unlink(edit->slot, edit->previous);
        }
        edit->slot->removed = edit->inserted;
        epctx__graph_moved(model, edit->slot);
        model->edits = edit->before;
        model->edit_count--;
    }
    if (model->merged != NULL && model->edit_count <= model->merged_at) {
        model->shown = model->merged;
        model->shown_graph = epctx__find_graph(model->shown);
        model->merged = NULL;
        model->duplicate = true;
    }
}

static epctx_status epctx__remove_slot(epctx_model *model, epctx_slot *slot, epctx_error *error)
{
    epctx_status status = epctx__record(model, slot, NULL, false, error);
    if (status == EPCTX_OK) {
        slot->removed = true;
        epctx__graph_moved(model, slot);
    }
    return status;
}

/* Links `slot` into `parent` behind `previous` (NULL: first). */
static epctx_status epctx__insert(epctx_model *model, epctx_slot *parent, epctx_slot *previous,
                                  epctx_slot *slot, epctx_error *error)
{
    epctx_status status;
    slot->parent = parent;
    status = epctx__record(model, slot, previous, true, error);
    if (status != EPCTX_OK) {
        return status;
    }
    slot->next = previous != NULL ? previous->next : parent->message->first;
    if (previous != NULL) {
        previous->next = slot;
    } else {
        parent->message->first = slot;
    }
    if (parent->message->last == previous) {
        parent->message->last = slot;
    }
    epctx__graph_moved(model, slot);
    return EPCTX_OK;
}

/* -- edits: from a view to its slot -- */

/* The slot is part of what will be written. */
static bool epctx__is_live(const epctx_model *model, const epctx_slot *slot)
{
    while (slot->parent != NULL && !slot->removed) {
        slot = slot->parent;
    }
    return slot == model->root;
}

static epctx__type epctx__slot_type(const epctx_slot *slot)
{
    uint32_t kind;
    if (slot->parent == NULL) {
        return EPCTX__T_MODEL;
    }
    kind = epctx__field_kind(epctx__slot_type(slot->parent), slot->number);
    return epctx__is_message(kind) && slot->wire == EPCTX_WIRE_LEN ? epctx__message_type(kind)
                                                                   : EPCTX__T_NONE;
}

/* How many more levels of messages may stand below a slot. */
static uint32_t epctx__depth_left(const epctx_model *model, const epctx_slot *slot)
{
    uint32_t left = model->limits.max_depth;
    for (; slot->parent != NULL && left > 0; slot = slot->parent) {
        left--;
    }
    return left;
}

/* The field around a place in the source. Fields that were read keep the order of their addresses,
 * so the search goes on where the last one ended: a pass over all of them is linear. */
static epctx_slot *epctx__child_at(const epctx__message *message, const uint8_t *place)
{
    uintptr_t at = (uintptr_t)place;
    epctx_slot *start = message->hint;
    epctx_slot *slot = start != NULL ? start : message->first;
    while (slot != NULL) {
        uintptr_t data = (uintptr_t)slot->data;
        if (!slot->split && !slot->removed && at > data && at - data <= slot->size) {
            return slot;
        }
        slot = slot->next;
        if (slot == NULL && start != NULL) {
            slot = message->first;
            start = NULL; /* once around; what was seen is seen again at most once */
        }
    }
    return NULL;
}

/* Opens a message that has no slots yet. */
static epctx_status epctx__open_message(epctx_model *model, epctx_slot *slot, epctx_error *error)
{
    if (slot->message == NULL &&
        !epctx__open_slot(&model->arena, slot, epctx__slot_type(slot), NULL, 100)) {
        return epctx__nomem(error, model->arena.missing);
    }
    return EPCTX_OK;
}

static bool epctx__is_slot_of(const epctx_slot *slot, epctx_view view)
{
    return slot != NULL && slot->wire == EPCTX_WIRE_LEN && slot->data != NULL &&
           slot->data + slot->head == view.data && slot->size - slot->head == view.size;
}

static epctx_status epctx__editable(const epctx_model *model, epctx_error *error)
{
    return !model->duplicate
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_GRAPH,
                            "a field that must be single stands twice: it can be read, not edited");
}

/* The slot of a view, which may lie in messages that nobody opened yet. The tree belongs to the
 * model, which the caller gave us to edit; views only show it as const. */
static epctx_status epctx__locate(epctx_model *model, epctx_view view, epctx_slot **out,
                                  epctx_error *error)
{
    epctx_slot *slot = (epctx_slot *)(uintptr_t)view.slot;
    bool found;
    epctx_status status = epctx__editable(model, error);
    *out = NULL;
    if (status != EPCTX_OK) {
        return status;
    }
    found = slot != NULL && epctx__is_live(model, slot);
    if (found && !epctx__is_whole(view)) {
        while (found && !epctx__is_slot_of(slot, view)) {
            found = epctx__slot_type(slot) != EPCTX__T_NONE && view.data != NULL;
            if (found && epctx__open_message(model, slot, error) != EPCTX_OK) {
                return EPCTX_ERR_NOMEM;
            }
            if (found) {
                epctx_slot *child = epctx__child_at(slot->message, view.data);
                slot->message->hint = child;
                slot = child;
                found = slot != NULL;
            }
        }
    }
    if (!found) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "the view is not a field of this model, or it was removed");
    }
    *out = slot;
    return EPCTX_OK;
}

/* The slot of a message, opened. */
static epctx_status epctx__locate_message(epctx_model *model, epctx_view view, epctx_slot **out,
                                          epctx_error *error)
{
    epctx_status status = epctx__locate(model, view, out, error);
    if (status == EPCTX_OK && epctx__slot_type(*out) == EPCTX__T_NONE) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "the view is a string or a number, no message");
    }
    return status == EPCTX_OK ? epctx__open_message(model, *out, error) : status;
}

/* The same for a graph or function; an empty view is the main graph. */
static epctx_status epctx__locate_graph(epctx_model *model, epctx_view view, epctx_slot **out,
                                        epctx_error *error)
{
    epctx_status status;
    epctx__type type;
    if (!epctx__has_view(view)) {
        if (model->graph == NULL) {
            return epctx_fail(error, EPCTX_ERR_GRAPH, "the model has no graph to edit");
        }
        view = epctx__slot_view(model->graph);
    }
    status = epctx__locate_message(model, view, out, error);
    if (status != EPCTX_OK) {
        return status;
    }
    type = epctx__slot_type(*out);
    return type == EPCTX__T_GRAPH || type == EPCTX__T_FUNCTION
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_ARG, "the view is no graph");
}

/* The last field with this number, else the last field at all. */
static epctx_slot *epctx__last_of(const epctx_slot *parent, uint32_t number)
{
    epctx_slot *slot;
    epctx_slot *found = parent->message->last;
    if (found != NULL && found->number == number && !found->removed) {
        return found;
    }
    for (slot = parent->message->first; slot != NULL; slot = slot->next) {
        if (slot->number == number && !slot->removed) {
            found = slot;
        }
    }
    return found;
}

/* The slot in front of the first field with this number, NULL when there is none in front; without
 * such a field the last field at all. */
static epctx_slot *epctx__before_first(const epctx_slot *parent, uint32_t number)
{
    epctx_slot *slot;
    epctx_slot *before = NULL;
    for (slot = parent->message->first; slot != NULL; slot = slot->next) {
        if (slot->number == number && !slot->removed) {
            break;
        }
        before = slot;
    }
    return before;
}

/* The slot behind which a new field goes: `after`; for an empty view the last of its kind; for the
 * parent itself in front of the first of its kind. */
static epctx_status epctx__place_of(epctx_model *model, epctx_slot *parent, uint32_t number,
                                    epctx_view after, epctx_slot **previous, epctx_error *error)
{
    epctx_status status;
    epctx_slot *slot;
    if (!epctx__has_view(after)) {
        *previous = epctx__last_of(parent, number);
        return EPCTX_OK;
    }
    status = epctx__locate(model, after, &slot, error);
    if (status == EPCTX_OK && slot == parent) {
        *previous = epctx__before_first(parent, number);
        return EPCTX_OK;
    }
    if (status == EPCTX_OK && slot->parent != parent) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "`after` is a field of another message");
    }
    *previous = slot;
    return status;
}

/* -- new messages: appended to a slot that is not linked into the tree yet -- */

typedef struct epctx__builder {
    epctx_arena *arena;
    bool failed; /* out of memory */
} epctx__builder;

static epctx__builder epctx__builder_of(epctx_model *model)
{
    epctx__builder b;
    b.arena = &model->arena;
    b.failed = false;
    return b;
}

static epctx_slot *epctx__new_slot(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                   epctx_wire wire)
{
    epctx_slot *slot = (epctx_slot *)epctx_arena_alloc(b->arena, sizeof *slot);
    if (slot == NULL) {
        b->failed = true;
        return NULL;
    }
    slot->parent = parent;
    slot->number = number;
    slot->wire = (uint8_t)wire;
    if (parent != NULL) {
        if (parent->message->last != NULL) {
            parent->message->last->next = slot;
        } else {
            parent->message->first = slot;
        }
        parent->message->last = slot;
    }
    return slot;
}

/* Borrows the bytes. */
static epctx_slot *epctx__add_bytes(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                    const void *data, size_t size)
{
    epctx_slot *slot = b->failed ? NULL : epctx__new_slot(b, parent, number, EPCTX_WIRE_LEN);
    if (slot != NULL) {
        slot->data = (const uint8_t *)(data != NULL ? data : "");
        slot->size = size;
        slot->split = 1;
    }
    return slot;
}

/* Copies the text. */
static epctx_slot *epctx__add_str(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                  epctx_str text)
{
    const char *copy = "";
    if (!b->failed && text.size > 0) {
        copy = epctx_arena_copy(b->arena, text);
        b->failed = copy == NULL;
    }
    return epctx__add_bytes(b, parent, number, copy, text.size);
}

/* Tag and value of a scalar field in arena memory. */
static epctx_slot *epctx__add_scalar(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                     epctx_wire wire, uint64_t value)
{
    uint8_t bytes[16];
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof bytes);
    uint32_t word = (uint32_t)value;
    epctx_slot *slot = b->failed ? NULL : epctx__new_slot(b, parent, number, wire);
    uint8_t *copy;
    if (slot == NULL) {
        return NULL;
    }
    if (wire == EPCTX_WIRE_VARINT) {
        b->failed =
            !pb_encode_tag(&stream, PB_WT_VARINT, number) || !pb_encode_varint(&stream, value);
    } else {
        b->failed =
            !pb_encode_tag(&stream, PB_WT_32BIT, number) || !pb_encode_fixed32(&stream, &word);
    }
    copy = (uint8_t *)epctx_arena_alloc(b->arena, stream.bytes_written);
    if (copy == NULL) {
        b->failed = true;
        return slot;
    }
    memcpy(copy, bytes, stream.bytes_written);
    slot->data = copy;
    slot->size = stream.bytes_written;
    return slot;
}

static epctx_slot *epctx__add_varint(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                     int64_t value)
{
    return epctx__add_scalar(b, parent, number, EPCTX_WIRE_VARINT, (uint64_t)value);
}

static void epctx__add_float(epctx__builder *b, epctx_slot *parent, uint32_t number, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    epctx__add_scalar(b, parent, number, EPCTX_WIRE_FIXED32, bits);
}

/* An empty list of slots for a payload without source bytes. */
static void epctx__make_message(epctx__builder *b, epctx_slot *slot)
{
    slot->message = (epctx__message *)epctx_arena_alloc(b->arena, sizeof *slot->message);
    if (slot->message == NULL) {
        b->failed = true;
        return;
    }
    slot->message->edits = 1; /* it has no source bytes to fall back to */
}

/* A message to be filled; NULL after a failure. */
static epctx_slot *epctx__add_message(epctx__builder *b, epctx_slot *parent, uint32_t number)
{
    epctx_slot *slot = b->failed ? NULL : epctx__new_slot(b, parent, number, EPCTX_WIRE_LEN);
    if (slot == NULL) {
        return NULL;
    }
    slot->split = 1;
    epctx__make_message(b, slot);
    return b->failed ? NULL : slot;
}

static void epctx__build_dims(epctx__builder *b, epctx_slot *tensor, const epctx_value *value)
{
    epctx_slot *shape = epctx__add_message(b, tensor, 2);
    int32_t i;
    for (i = 0; i < value->rank && !b->failed; i++) {
        epctx_slot *dim = epctx__add_message(b, shape, 1);
        if (value->dims[i] >= 0) {
            epctx__add_varint(b, dim, 1, value->dims[i]);
        }
    }
}

/* ValueInfoProto. */
static epctx_slot *epctx__build_value(epctx__builder *b, epctx_slot *graph, uint32_t number,
                                      const epctx_value *value)
{
    epctx_slot *slot = epctx__add_message(b, graph, number);
    epctx__add_str(b, slot, 1, value->name);
    if (value->elem_type != 0) {
        epctx_slot *tensor = epctx__add_message(b, epctx__add_message(b, slot, 2), 1);
        epctx__add_varint(b, tensor, 1, value->elem_type);
        if (value->rank >= 0) {
            epctx__build_dims(b, tensor, value);
        }
    }
    return slot;
}

/* TensorProto; borrows the data. */
static epctx_slot *epctx__build_tensor(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                       const epctx_tensor *tensor)
{
    epctx_slot *slot = epctx__add_message(b, parent, number);
    int32_t i;
    for (i = 0; i < tensor->rank; i++) {
        epctx__add_varint(b, slot, 1, tensor->dims[i]);
    }
    epctx__add_varint(b, slot, 2, tensor->elem_type);
    if (tensor->name.size > 0) {
        epctx__add_str(b, slot, 8, tensor->name);
    }
    epctx__add_bytes(b, slot, 9, tensor->data, tensor->size);
    return slot;
}

static void epctx__build_node_fields(epctx__builder *b, epctx_slot *slot, const epctx_node *node);

/* GraphProto. */
static void epctx__build_graph(epctx__builder *b, epctx_slot *attr, const epctx_graph *graph)
{
    epctx_slot *slot = epctx__add_message(b, attr, 6);
    size_t i;
    for (i = 0; i < graph->node_count && !b->failed; i++) {
        epctx__build_node_fields(b, epctx__add_message(b, slot, 1), &graph->nodes[i]);
    }
    epctx__add_str(b, slot, 2, graph->name);
    for (i = 0; i < graph->initializer_count && !b->failed; i++) {
        epctx__build_tensor(b, slot, 5, &graph->initializers[i]);
    }
    for (i = 0; i < graph->input_count && !b->failed; i++) {
        epctx__build_value(b, slot, 11, &graph->inputs[i]);
    }
    for (i = 0; i < graph->output_count && !b->failed; i++) {
        epctx__build_value(b, slot, 12, &graph->outputs[i]);
    }
    for (i = 0; i < graph->value_count && !b->failed; i++) {
        epctx__build_value(b, slot, 13, &graph->values[i]);
    }
}

/* The fields of an AttributeProto that hold its value. */
static void epctx__build_payload(epctx__builder *b, epctx_slot *slot, const epctx_attr *attr)
{
    size_t i;
    if (attr->type == EPCTX_ATTR_INT) {
        epctx__add_varint(b, slot, 3, attr->i);
    } else if (attr->type == EPCTX_ATTR_FLOAT) {
        epctx__add_float(b, slot, 2, attr->f);
    } else if (attr->type == EPCTX_ATTR_STRING) {
        epctx__add_bytes(b, slot, 4, attr->s.data, attr->s.size);
    } else if (attr->type == EPCTX_ATTR_TENSOR) {
        epctx__build_tensor(b, slot, 5, attr->t);
    } else if (attr->type == EPCTX_ATTR_GRAPH) {
        epctx__build_graph(b, slot, attr->g);
    }
    for (i = 0; i < attr->count && !b->failed; i++) {
        if (attr->type == EPCTX_ATTR_INTS) {
            epctx__add_varint(b, slot, 8, attr->ints[i]);
        } else if (attr->type == EPCTX_ATTR_FLOATS) {
            epctx__add_float(b, slot, 7, attr->floats[i]);
        } else if (attr->type == EPCTX_ATTR_STRINGS) {
            epctx__add_bytes(b, slot, 9, attr->strings[i].data, attr->strings[i].size);
        }
    }
}

static epctx_slot *epctx__build_attr(epctx__builder *b, epctx_slot *node, const epctx_attr *attr)
{
    epctx_slot *slot = epctx__add_message(b, node, 5);
    if (slot != NULL) {
        epctx__add_str(b, slot, 1, attr->name);
        epctx__build_payload(b, slot, attr);
        epctx__add_varint(b, slot, 20, (int64_t)attr->type);
    }
    return slot;
}

static void epctx__build_node_fields(epctx__builder *b, epctx_slot *slot, const epctx_node *node)
{
    size_t i;
    for (i = 0; i < node->input_count && !b->failed; i++) {
        epctx__add_str(b, slot, 1, node->inputs[i]);
    }
    for (i = 0; i < node->output_count && !b->failed; i++) {
        epctx__add_str(b, slot, 2, node->outputs[i]);
    }
    epctx__add_str(b, slot, 3, node->name);
    epctx__add_str(b, slot, 4, node->op_type);
    for (i = 0; i < node->attr_count && !b->failed; i++) {
        epctx__build_attr(b, slot, &node->attrs[i]);
    }
    if (node->domain.size > 0) {
        epctx__add_str(b, slot, 7, node->domain);
    }
}

/* An unlinked NodeProto. */
static epctx_slot *epctx__build_node(epctx__builder *b, const epctx_node *node)
{
    epctx_slot *slot = epctx__add_message(b, NULL, 1);
    epctx__build_node_fields(b, slot, node);
    return slot;
}

/* -- copies of fields -- */

static bool epctx__is_changed(const epctx_slot *slot)
{
    return slot->message != NULL && slot->message->edits != 0;
}

static void epctx__clone_children(epctx__builder *b, epctx_slot *to, const epctx_slot *from);

/* A field as it is now, with its tag and the width of its length. Bytes are borrowed. */
static epctx_slot *epctx__clone(epctx__builder *b, epctx_slot *parent, const epctx_slot *slot)
{
    epctx_slot *copy =
        b->failed ? NULL : epctx__new_slot(b, parent, slot->number, (epctx_wire)slot->wire);
    if (copy == NULL) {
        return NULL;
    }
    copy->data = slot->data;
    copy->size = slot->size;
    copy->head = slot->head;
    copy->split = slot->split;
    if (epctx__is_changed(slot)) {
        epctx__clone_children(b, copy, slot);
    }
    return copy;
}

static void epctx__clone_children(epctx__builder *b, epctx_slot *to, const epctx_slot *from)
{
    const epctx_slot *child;
    epctx__make_message(b, to);
    for (child = from->message->first; child != NULL && !b->failed; child = child->next) {
        if (!child->removed) {
            epctx__clone(b, to, child);
        }
    }
}

/* The slot of a view without opening anything: NULL when its bytes are what they were. */
static const epctx_slot *epctx__seen_slot(epctx_view view)
{
    const epctx_slot *slot = view.slot;
    if (slot == NULL || epctx__is_whole(view)) {
        return slot;
    }
    while (slot != NULL && !epctx__is_slot_of(slot, view)) {
        slot = slot->message != NULL && view.data != NULL
                   ? epctx__child_at(slot->message, view.data)
                   : NULL;
    }
    return slot;
}

/* The payload of a view, of whatever model, as an unlinked field. */
static epctx_slot *epctx__copy_view(epctx__builder *b, uint32_t number, epctx_view view)
{
    const epctx_slot *from = epctx__seen_slot(view);
    epctx_slot *slot;
    if (from == NULL || !epctx__is_changed(from)) {
        return epctx__add_bytes(b, NULL, number, view.data, view.size);
    }
    slot = epctx__add_message(b, NULL, number);
    if (slot != NULL) {
        epctx__clone_children(b, slot, from);
    }
    return slot;
}

/* What was built or copied must be readable where it goes: proper messages, not nested too deep. */
static bool epctx__check_slot(epctx__check *check, epctx__type type, const epctx_slot *slot,
                              uint32_t depth)
{
    const epctx_slot *child;
    epctx_view body = epctx__slot_view(slot);
    uint32_t kind = slot->wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, slot->number) : 0;
    if (!epctx__is_message(kind) && epctx__is_changed(slot)) {
        return epctx__refuse(check, EPCTX_ERR_GRAPH, NULL, "it is a message, the field holds none");
    }
    if (!epctx__is_message(kind)) {
        return kind == 0 || body.size == 0 ||
               epctx__check_packed(check, kind, body.data, body.data + body.size);
    }
    if (depth == 0) {
        return epctx__refuse(check, EPCTX_ERR_LIMIT, NULL, "messages are nested too deep");
    }
    if (!epctx__is_changed(slot)) {
        return body.size == 0 || epctx__check_message(check, epctx__message_type(kind), body.data,
                                                      body.data + body.size, depth - 1);
    }
    for (child = slot->message->first; child != NULL; child = child->next) {
        if (!child->removed &&
            !epctx__check_slot(check, epctx__message_type(kind), child, depth - 1)) {
            return false;
        }
    }
    return true;
}

/* Links what was built into the tree. */
static epctx_status epctx__place(epctx_model *model, epctx__builder *b, epctx_slot *parent,
                                 epctx_slot *previous, epctx_slot *slot, epctx_error *error)
{
    epctx__check check;
    memset(&check, 0, sizeof check);
    check.fields = UINT64_MAX;
    if (b->failed) {
        return epctx__nomem(error, model->arena.missing);
    }
    if (!epctx__check_slot(&check, epctx__slot_type(parent), slot,
                           epctx__depth_left(model, parent))) {
        return epctx_fail(error,
                          check.status == EPCTX_ERR_LIMIT ? EPCTX_ERR_LIMIT : EPCTX_ERR_GRAPH,
                          "this cannot become field %u: %s", (uint64_t)slot->number, check.reason);
    }
    if (check.duplicate) {
        return epctx_fail(error, EPCTX_ERR_GRAPH,
                          "in this message a field that must be single stands twice");
    }
    if (parent == model->root && slot->number == 7 && slot->message == NULL &&
        !epctx__open_slot(&model->arena, slot, EPCTX__T_GRAPH, NULL, 100)) {
        return epctx__nomem(error, model->arena.missing);
    }
    return epctx__insert(model, parent, previous, slot, error);
}

/* -- edits: fields -- */

EPCTX_API epctx_status epctx_remove(epctx_model *model, epctx_view view, epctx_error *error)
{
    epctx_slot *slot;
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate(model, view, &slot, error);
    if (status == EPCTX_OK && slot->parent == NULL) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "the model itself cannot be removed");
    }
    return status == EPCTX_OK ? epctx__remove_slot(model, slot, error) : status;
}

/* Bytes that a length prefix needs. */
static unsigned epctx__varint_size(uint64_t value)
{
    unsigned size = 1;
    for (; value >= 0x80; value >>= 7) {
        size++;
    }
    return size;
}

/* Bytes of the tag, which are in front of the length in a field that was read. */
static unsigned epctx__tag_size(const epctx_slot *slot)
{
    unsigned size = 1;
    if (slot->split) {
        return epctx__varint_size((uint64_t)slot->number << 3);
    }
    while (slot->data[size - 1] >= 0x80) {
        size++;
    }
    return size;
}

/* The least width of a field's length: one that was longer than it had to be stays so. */
static unsigned epctx__length_width(const epctx_slot *slot)
{
    unsigned had = slot->split;
    if (slot->split == 0) {
        had = (unsigned)slot->head - epctx__tag_size(slot);
        had = had > epctx__varint_size(slot->size - slot->head) ? had : 1;
    }
    return had;
}

/* Text of which it may be asked whether it is the same; what is longer is not read. */
#define EPCTX__COMPARE_MAX 65536u

static bool epctx__same_bytes(epctx_view a, epctx_view b)
{
    return a.size == b.size &&
           (a.data == b.data || a.size == 0 ||
            (a.size <= EPCTX__COMPARE_MAX && memcmp(a.data, b.data, a.size) == 0));
}

static bool epctx__same_field(const epctx_slot *a, const epctx_slot *b)
{
    epctx_field x, y;
    if (a->wire != b->wire || a->number != b->number || epctx__is_changed(a) ||
        epctx__is_changed(b)) {
        return false;
    }
    if (a->wire == EPCTX_WIRE_LEN) {
        return epctx__same_bytes(epctx__slot_view(a), epctx__slot_view(b));
    }
    epctx__slot_field(a, &x);
    epctx__slot_field(b, &y);
    return x.value == y.value;
}

/* Makes `fresh` (NULL: nothing) the only field of its number, in the place of the last one. A field
 * that says the same already keeps its bytes. */
static epctx_status epctx__set_field(epctx_model *model, epctx__builder *b, epctx_slot *parent,
                                     uint32_t number, epctx_slot *fresh, epctx_error *error)
{
    size_t mark = epctx_edit_mark(model);
    epctx_status status = EPCTX_OK;
    epctx_slot *last = NULL;
    epctx_slot *slot;
    size_t count = 0;
    if (b->failed) {
        return epctx__nomem(error, model->arena.missing);
    }
    for (slot = parent->message->first; slot != NULL; slot = slot->next) {
        if (slot->number == number && !slot->removed) {
            last = slot;
            count++;
        }
    }
    if (fresh != NULL && count == 1 && epctx__same_field(last, fresh)) {
        return EPCTX_OK;
    }
    if (fresh != NULL && last != NULL && last->wire == EPCTX_WIRE_LEN && fresh->split) {
        fresh->split = (uint8_t)epctx__length_width(last);
    }
    if (fresh != NULL) {
        status = epctx__place(model, b, parent, last != NULL ? last : parent->message->last, fresh,
                              error);
    }
    for (slot = parent->message->first; slot != NULL && status == EPCTX_OK && count > 0;
         slot = slot->next) {
        if (slot->number == number && !slot->removed && slot != fresh) {
            status = epctx__remove_slot(model, slot, error);
        }
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    return status;
}

/* The message whose plain field is to be set. */
static epctx_status epctx__plain_field(epctx_model *model, epctx_view message, uint32_t number,
                                       epctx_slot **slot, epctx_error *error)
{
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate_message(model, message, slot, error);
    if (status == EPCTX_OK &&
        (number == 0 || epctx__field_kind(epctx__slot_type(*slot), number) != 0)) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "field %u of this message is no string or number",
                            (uint64_t)number);
    }
    return status;
}

EPCTX_API epctx_status epctx_set_str(epctx_model *model, epctx_view message, uint32_t number,
                                     epctx_str text, epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *slot;
    epctx_status status = epctx__plain_field(model, message, number, &slot, error);
    return status == EPCTX_OK ? epctx__set_field(model, &b, slot, number,
                                                 epctx__add_str(&b, NULL, number, text), error)
                              : status;
}

EPCTX_API epctx_status epctx_set_data(epctx_model *model, epctx_view message, uint32_t number,
                                      epctx_span data, epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *slot;
    epctx_status status = epctx__plain_field(model, message, number, &slot, error);
    return status == EPCTX_OK
               ? epctx__set_field(model, &b, slot, number,
                                  epctx__add_bytes(&b, NULL, number, data.data, data.size), error)
               : status;
}

EPCTX_API epctx_status epctx_set_int(epctx_model *model, epctx_view message, uint32_t number,
                                     int64_t value, epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *slot;
    epctx_status status = epctx__plain_field(model, message, number, &slot, error);
    return status == EPCTX_OK ? epctx__set_field(model, &b, slot, number,
                                                 epctx__add_varint(&b, NULL, number, value), error)
                              : status;
}

EPCTX_API epctx_status epctx_clear_field(epctx_model *model, epctx_view message, uint32_t number,
                                         epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *slot;
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate_message(model, message, &slot, error);
    return status == EPCTX_OK ? epctx__set_field(model, &b, slot, number, NULL, error) : status;
}

EPCTX_API epctx_status epctx_put_str(epctx_model *model, epctx_view message, uint32_t number,
                                     epctx_str text, epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *slot;
    epctx_status status = epctx__plain_field(model, message, number, &slot, error);
    return status == EPCTX_OK ? epctx__place(model, &b, slot, epctx__last_of(slot, number),
                                             epctx__add_str(&b, NULL, number, text), error)
                              : status;
}

/* `fresh` takes the place of `old`. */
static epctx_status epctx__replace(epctx_model *model, epctx__builder *b, epctx_slot *old,
                                   epctx_slot *fresh, epctx_error *error)
{
    size_t mark = epctx_edit_mark(model);
    epctx_status status;
    if (!b->failed && old->wire == EPCTX_WIRE_LEN && fresh->split) {
        fresh->split = (uint8_t)epctx__length_width(old);
    }
    status = epctx__place(model, b, old->parent, old, fresh, error);
    if (status == EPCTX_OK) {
        status = epctx__remove_slot(model, old, error);
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    return status;
}

/* For text that was located already. */
static epctx_status epctx__replace_text(epctx_model *model, epctx_view field, epctx_str text,
                                        epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *slot;
    epctx_status status = epctx__locate(model, field, &slot, error);
    if (status == EPCTX_OK &&
        (slot->parent == NULL ||
         epctx__field_kind(epctx__slot_type(slot->parent), slot->number) != 0)) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "the view is no string");
    }
    if (status != EPCTX_OK || epctx_str_eq(epctx__view_str(epctx__slot_view(slot)), text)) {
        return status;
    }
    return epctx__replace(model, &b, slot, epctx__add_str(&b, NULL, slot->number, text), error);
}

EPCTX_API epctx_status epctx_replace_str(epctx_model *model, epctx_view field, epctx_str text,
                                         epctx_error *error)
{
    epctx_error_clear(error);
    return epctx__replace_text(model, field, text, error);
}

EPCTX_API epctx_status epctx_put_copy(epctx_model *model, epctx_view parent, uint32_t number,
                                      epctx_view other, epctx_view after, epctx_view *placed,
                                      epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *owner, *previous, *slot;
    epctx_status status;
    uint32_t kind;
    epctx_error_clear(error);
    status = epctx__locate_message(model, parent, &owner, error);
    if (status == EPCTX_OK) {
        status = epctx__place_of(model, owner, number, after, &previous, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    if (number == 0) {
        return epctx_fail(error, EPCTX_ERR_ARG, "there is no field number 0");
    }
    kind = epctx__field_kind(epctx__slot_type(owner), number);
    if (epctx__is_message(kind) && (kind & EPCTX__ONE) != 0) {
        slot = epctx__last_of(owner, number);
        if (slot != NULL && slot->number == number && !slot->removed) {
            return epctx_fail(error, EPCTX_ERR_ARG, "the message has a field %u already",
                              (uint64_t)number);
        }
    }
    slot = epctx__copy_view(&b, number, other);
    status = epctx__place(model, &b, owner, previous, slot, error);
    if (status == EPCTX_OK && placed != NULL) {
        *placed = epctx__slot_view(slot);
    }
    return status;
}

EPCTX_API epctx_status epctx_move(epctx_model *model, epctx_view view, epctx_view after,
                                  epctx_view *placed, epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *slot, *previous, *next;
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate(model, view, &slot, error);
    if (status == EPCTX_OK && slot->parent == NULL) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "the model itself cannot be moved");
    }
    if (status == EPCTX_OK) {
        status = epctx__place_of(model, slot->parent, slot->number, after, &previous, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    next = previous == NULL ? slot->parent->message->first : previous->next;
    if (previous != slot && next != slot) { /* it stands somewhere else */
        epctx_slot *copy = epctx__clone(&b, NULL, slot);
        size_t mark = epctx_edit_mark(model);
        status = epctx__place(model, &b, slot->parent, previous, copy, error);
        if (status == EPCTX_OK) {
            status = epctx__remove_slot(model, slot, error);
        }
        if (status != EPCTX_OK) {
            epctx_undo(model, mark);
            return status;
        }
        slot = copy;
    }
    if (placed != NULL) {
        *placed = epctx__slot_view(slot);
    }
    return EPCTX_OK;
}

/* -- edits: attributes -- */

static epctx_status epctx__check_node_record(const epctx_node *node, uint32_t depth,
                                             epctx_error *error);

static epctx_status epctx__check_tensor_record(const epctx_tensor *tensor, epctx_error *error)
{
    uint64_t count;
    size_t width = tensor != NULL ? epctx_elem_size(tensor->elem_type) : 0;
    if (tensor == NULL || tensor->elem_type == EPCTX_ONNX_STRING ||
        (tensor->data == NULL && tensor->size > 0)) {
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                          "a tensor of strings or without data cannot be written from a record");
    }
    if (!epctx__elements(tensor->dims, tensor->rank, &count) ||
        (width > 0 &&
         (count > (uint64_t)(SIZE_MAX / 2) / width || count * width != tensor->size))) {
        return epctx_fail(error, EPCTX_ERR_ARG, "tensor '%S': %u bytes do not fit its dimensions",
                          &tensor->name, (uint64_t)tensor->size);
    }
    return EPCTX_OK;
}

static epctx_status epctx__check_graph_record(const epctx_graph *graph, uint32_t depth,
                                              epctx_error *error)
{
    epctx_status status = EPCTX_OK;
    size_t i;
    if (graph == NULL) {
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "a graph attribute has no record");
    }
    if (depth == 0) {
        return epctx_fail(error, EPCTX_ERR_LIMIT, "graphs are nested too deep");
    }
    for (i = 0; i < graph->node_count && status == EPCTX_OK; i++) {
        status = epctx__check_node_record(&graph->nodes[i], depth - 1, error);
    }
    for (i = 0; i < graph->initializer_count && status == EPCTX_OK; i++) {
        status = epctx__check_tensor_record(&graph->initializers[i], error);
    }
    return status;
}

static epctx_status epctx__check_attr_record(const epctx_attr *attr, uint32_t depth,
                                             epctx_error *error)
{
    switch (attr->type) {
    case EPCTX_ATTR_INT:
    case EPCTX_ATTR_FLOAT:
    case EPCTX_ATTR_STRING:
    case EPCTX_ATTR_INTS:
    case EPCTX_ATTR_FLOATS:
    case EPCTX_ATTR_STRINGS:
        return EPCTX_OK;
    case EPCTX_ATTR_TENSOR:
        return epctx__check_tensor_record(attr->t, error);
    case EPCTX_ATTR_GRAPH:
        return epctx__check_graph_record(attr->g, depth, error);
    default:
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                          "attribute '%S' has type %d: a record cannot hold it, copy it from a "
                          "view",
                          &attr->name, (int64_t)attr->type);
    }
}

static epctx_status epctx__check_node_record(const epctx_node *node, uint32_t depth,
                                             epctx_error *error)
{
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < node->attr_count && status == EPCTX_OK; i++) {
        status = epctx__check_attr_record(&node->attrs[i], depth, error);
    }
    return status;
}

/* Graphs in a record: each takes three levels of messages. */
#define EPCTX__RECORD_DEPTH 33u

/* Fields of an AttributeProto that hold a value. */
static bool epctx__is_value_field(uint32_t number)
{
    return (number >= 2 && number <= 11) || number == 14 || number == 15 ||
           (number >= 21 && number <= 23);
}

/* The first attribute of that name, or NULL. */
static epctx_slot *epctx__find_attr(const epctx_slot *node, epctx_str name)
{
    epctx_slot *slot;
    for (slot = node->message->first; slot != NULL; slot = slot->next) {
        if (slot->number == 5 && slot->wire == EPCTX_WIRE_LEN && !slot->removed &&
            epctx_str_eq(epctx_attr_of(epctx__slot_view(slot)).name, name)) {
            return slot;
        }
    }
    return NULL;
}

/* Whether the values of an attribute are what `fresh` would make them. */
static bool epctx__same_values(const epctx_slot *attr, const epctx_slot *fresh)
{
    const epctx_slot *a = attr->message->first;
    const epctx_slot *b = fresh->message->first;
    for (;;) {
        while (a != NULL && (a->removed || !epctx__is_value_field(a->number))) {
            a = a->next;
        }
        if (a == NULL || b == NULL) {
            return a == NULL && b == NULL;
        }
        if (!epctx__same_field(a, b)) {
            return false;
        }
        a = a->next;
        b = b->next;
    }
}

/* The values in `fresh` (a list that is taken apart) replace those of an attribute. */
static epctx_status epctx__set_values(epctx_model *model, epctx__builder *b, epctx_slot *attr,
                                      epctx_slot *fresh, epctx_error *error)
{
    epctx_status status = EPCTX_OK;
    epctx_slot *previous = attr->message->last;
    epctx_slot *old = NULL;
    epctx_slot *slot, *next;
    size_t mark = epctx_edit_mark(model);
    for (slot = attr->message->first; slot != NULL; slot = slot->next) {
        if (!slot->removed && epctx__is_value_field(slot->number)) {
            old = previous = slot;
        }
    }
    /* Old ones go first: what they look like is needed until then. */
    slot = fresh->message->first;
    if (slot != NULL && slot->next == NULL && old != NULL && old->wire == EPCTX_WIRE_LEN &&
        slot->split && slot->number == old->number) {
        slot->split = (uint8_t)epctx__length_width(old);
    }
    for (old = attr->message->first; old != NULL && status == EPCTX_OK; old = old->next) {
        if (!old->removed && epctx__is_value_field(old->number)) {
            status = epctx__remove_slot(model, old, error);
        }
    }
    for (; slot != NULL && status == EPCTX_OK; slot = next) {
        next = slot->next;
        status = epctx__place(model, b, attr, previous, slot, error);
        previous = slot;
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    return status;
}

/* Removes the attributes of that name but for `keep`. */
static epctx_status epctx__drop_attrs(epctx_model *model, epctx_slot *node, epctx_str name,
                                      const epctx_slot *keep, epctx_error *error)
{
    epctx_status status = EPCTX_OK;
    epctx_slot *slot;
    for (slot = node->message->first; slot != NULL && status == EPCTX_OK; slot = slot->next) {
        if (slot != keep && slot->number == 5 && slot->wire == EPCTX_WIRE_LEN && !slot->removed &&
            epctx_str_eq(epctx_attr_of(epctx__slot_view(slot)).name, name)) {
            status = epctx__remove_slot(model, slot, error);
        }
    }
    return status;
}

static epctx_status epctx__locate_node(epctx_model *model, epctx_view view, epctx_slot **node,
                                       epctx_error *error)
{
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate_message(model, view, node, error);
    if (status == EPCTX_OK && epctx__slot_type(*node) != EPCTX__T_NODE) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "the view is no node");
    }
    return status;
}

static epctx_status epctx__change_attr(epctx_model *model, epctx_slot *slot, const epctx_attr *attr,
                                       epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *fresh = epctx__add_message(&b, NULL, 5);
    epctx_status status = epctx__open_message(model, slot, error);
    if (status != EPCTX_OK) {
        return status;
    }
    if (fresh != NULL) {
        epctx__build_payload(&b, fresh, attr);
    }
    if (b.failed) {
        return epctx__nomem(error, model->arena.missing);
    }
    if (!epctx__same_values(slot, fresh)) {
        status = epctx__set_values(model, &b, slot, fresh, error);
    }
    return status == EPCTX_OK
               ? epctx__set_field(model, &b, slot, 20,
                                  epctx__add_varint(&b, NULL, 20, (int64_t)attr->type), error)
               : status;
}

EPCTX_API epctx_status epctx_set_attr(epctx_model *model, epctx_view node, const epctx_attr *attr,
                                      epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *owner, *slot;
    epctx_status status = epctx__locate_node(model, node, &owner, error);
    size_t mark = epctx_edit_mark(model);
    if (status == EPCTX_OK) {
        status = epctx__check_attr_record(attr, EPCTX__RECORD_DEPTH, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    slot = epctx__find_attr(owner, attr->name);
    if (slot == NULL) {
        return epctx__place(model, &b, owner, epctx__last_of(owner, 5),
                            epctx__build_attr(&b, NULL, attr), error);
    }
    status = epctx__change_attr(model, slot, attr, error);
    if (status == EPCTX_OK) {
        status = epctx__drop_attrs(model, owner, attr->name, slot, error);
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    return status;
}

EPCTX_API epctx_status epctx_set_attr_copy(epctx_model *model, epctx_view node, epctx_view attr,
                                           epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_str name = epctx_attr_of(attr).name;
    epctx_slot *owner, *old, *fresh;
    epctx_status status = epctx__locate_node(model, node, &owner, error);
    size_t mark = epctx_edit_mark(model);
    if (status != EPCTX_OK) {
        return status;
    }
    old = epctx__find_attr(owner, name);
    fresh = epctx__copy_view(&b, 5, attr);
    status = old != NULL ? epctx__replace(model, &b, old, fresh, error)
                         : epctx__place(model, &b, owner, epctx__last_of(owner, 5), fresh, error);
    if (status == EPCTX_OK) {
        status = epctx__drop_attrs(model, owner, name, fresh, error);
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    return status;
}

EPCTX_API epctx_status epctx_unset_attr(epctx_model *model, epctx_view node, epctx_str name,
                                        epctx_error *error)
{
    epctx_slot *owner;
    epctx_status status = epctx__locate_node(model, node, &owner, error);
    size_t mark = epctx_edit_mark(model);
    if (status == EPCTX_OK) {
        status = epctx__drop_attrs(model, owner, name, NULL, error);
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    return status;
}

/* -- edits: nodes, values, initializers -- */

static epctx_status epctx__put_slot(epctx_model *model, epctx__builder *b, epctx_slot *graph,
                                    epctx_slot *slot, epctx_view after, epctx_view *placed,
                                    epctx_error *error)
{
    epctx_slot *previous = NULL;
    epctx_status status = EPCTX_OK;
    if (!b->failed) {
        status = epctx__place_of(model, graph, slot->number, after, &previous, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__place(model, b, graph, previous, slot, error);
    }
    if (status == EPCTX_OK && placed != NULL) {
        *placed = epctx__slot_view(slot);
    }
    return status;
}

EPCTX_API epctx_status epctx_put_node(epctx_model *model, epctx_view graph, const epctx_node *node,
                                      epctx_view after, epctx_view *placed, epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *owner, *slot;
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate_graph(model, graph, &owner, error);
    if (status == EPCTX_OK) {
        status = epctx__check_node_record(node, EPCTX__RECORD_DEPTH, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    slot = epctx__build_node(&b, node);
    if (slot != NULL && epctx__slot_type(owner) == EPCTX__T_FUNCTION) {
        slot->number = 7;
    }
    return epctx__put_slot(model, &b, owner, slot, after, placed, error);
}

/* A graph, not a function. */
static epctx_status epctx__graph_only(epctx_model *model, epctx_view view, epctx_slot **graph,
                                      epctx_error *error)
{
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate_graph(model, view, graph, error);
    if (status == EPCTX_OK && epctx__slot_type(*graph) != EPCTX__T_GRAPH) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "the view is a function, no graph");
    }
    return status;
}

static epctx_status epctx__put_typed(epctx_model *model, epctx_view graph, uint32_t number,
                                     const epctx_value *value, epctx_view after, epctx_view *placed,
                                     epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *owner;
    epctx_status status = epctx__graph_only(model, graph, &owner, error);
    return status == EPCTX_OK
               ? epctx__put_slot(model, &b, owner, epctx__build_value(&b, NULL, number, value),
                                 after, placed, error)
               : status;
}

EPCTX_API epctx_status epctx_put_input(epctx_model *model, epctx_view graph,
                                       const epctx_value *value, epctx_view after,
                                       epctx_view *placed, epctx_error *error)
{
    return epctx__put_typed(model, graph, 11, value, after, placed, error);
}

EPCTX_API epctx_status epctx_put_output(epctx_model *model, epctx_view graph,
                                        const epctx_value *value, epctx_view after,
                                        epctx_view *placed, epctx_error *error)
{
    return epctx__put_typed(model, graph, 12, value, after, placed, error);
}

EPCTX_API epctx_status epctx_put_value(epctx_model *model, epctx_view graph,
                                       const epctx_value *value, epctx_view after,
                                       epctx_view *placed, epctx_error *error)
{
    return epctx__put_typed(model, graph, 13, value, after, placed, error);
}

EPCTX_API epctx_status epctx_put_tensor(epctx_model *model, epctx_view graph,
                                        const epctx_tensor *tensor, epctx_view after,
                                        epctx_view *placed, epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *owner;
    epctx_status status = epctx__graph_only(model, graph, &owner, error);
    if (status == EPCTX_OK) {
        status = epctx__check_tensor_record(tensor, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    return epctx__put_slot(model, &b, owner, epctx__build_tensor(&b, NULL, 5, tensor), after,
                           placed, error);
}

/* -- edits: opset imports, key/value pairs -- */

/* The last opset import of a domain, or NULL. */
static epctx_slot *epctx__find_opset(const epctx_slot *owner, uint32_t number, epctx_str domain)
{
    epctx_slot *slot;
    epctx_slot *found = NULL;
    for (slot = owner->message->first; slot != NULL; slot = slot->next) {
        epctx_str name = epctx_str_of(NULL);
        epctx_cursor it;
        if (slot->number != number || slot->wire != EPCTX_WIRE_LEN || slot->removed) {
            continue;
        }
        it = epctx_fields(epctx__slot_view(slot), 1);
        while (epctx_next_str(&it, &name)) {
            continue;
        }
        found = epctx__same_domain(name, domain) ? slot : found;
    }
    return found;
}

EPCTX_API epctx_status epctx_put_opset(epctx_model *model, epctx_str domain, int64_t version,
                                       epctx_error *error)
{
    epctx_error_clear(error);
    return epctx_model_opset(model, domain) != 0 ? EPCTX_OK
                                                 : epctx_set_opset(model, domain, version, error);
}

EPCTX_API epctx_status epctx_set_opset(epctx_model *model, epctx_str domain, int64_t version,
                                       epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *root, *slot;
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate_message(model, epctx__slot_view(model->root), &root, error);
    if (status != EPCTX_OK) {
        return status;
    }
    slot = epctx__find_opset(root, 8, domain);
    if (slot != NULL) {
        return epctx_set_int(model, epctx__slot_view(slot), 2, version, error);
    }
    slot = epctx__add_message(&b, NULL, 8);
    epctx__add_str(&b, slot, 1, domain);
    epctx__add_varint(&b, slot, 2, version);
    return epctx__place(model, &b, root, epctx__last_of(root, 8), slot, error);
}

EPCTX_API epctx_status epctx_unset_opset(epctx_model *model, epctx_str domain, epctx_error *error)
{
    epctx_slot *root, *slot;
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate_message(model, epctx__slot_view(model->root), &root, error);
    while (status == EPCTX_OK && (slot = epctx__find_opset(root, 8, domain)) != NULL) {
        status = epctx__remove_slot(model, slot, error);
    }
    return status;
}

/* Pairs with a key: all but the last one go, or that one, too. Returns it. */
static epctx_status epctx__one_pair(epctx_model *model, epctx_slot *owner, uint32_t number,
                                    epctx_str key, bool keep, epctx_slot **found,
                                    epctx_error *error)
{
    epctx_status status = EPCTX_OK;
    epctx_slot *slot;
    *found = NULL;
    for (slot = owner->message->first; slot != NULL && status == EPCTX_OK; slot = slot->next) {
        epctx_str name, text;
        if (slot->number != number || slot->wire != EPCTX_WIRE_LEN || slot->removed) {
            continue;
        }
        epctx__pair(epctx__slot_view(slot), &name, &text);
        if (!epctx_str_eq(name, key)) {
            continue;
        }
        if (*found != NULL || !keep) {
            status = epctx__remove_slot(model, *found != NULL ? *found : slot, error);
        }
        *found = keep ? slot : NULL;
    }
    return status;
}

static epctx_status epctx__pair_owner(epctx_model *model, epctx_view message, uint32_t number,
                                      epctx_slot **owner, epctx_error *error)
{
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__locate_message(model, message, owner, error);
    if (status == EPCTX_OK &&
        epctx__field_kind(epctx__slot_type(*owner), number) != EPCTX__T_LEAF) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "field %u of this message holds no pairs",
                            (uint64_t)number);
    }
    return status;
}

EPCTX_API epctx_status epctx_set_pair(epctx_model *model, epctx_view message, uint32_t number,
                                      epctx_str key, epctx_str value, epctx_error *error)
{
    epctx__builder b = epctx__builder_of(model);
    epctx_slot *owner, *slot;
    epctx_status status = epctx__pair_owner(model, message, number, &owner, error);
    size_t mark = epctx_edit_mark(model);
    if (status == EPCTX_OK) {
        status = epctx__one_pair(model, owner, number, key, true, &slot, error);
    }
    if (status == EPCTX_OK && slot != NULL) {
        status = epctx_set_str(model, epctx__slot_view(slot), 2, value, error);
    } else if (status == EPCTX_OK) {
        slot = epctx__add_message(&b, NULL, number);
        epctx__add_str(&b, slot, 1, key);
        epctx__add_str(&b, slot, 2, value);
        status = epctx__place(model, &b, owner, epctx__last_of(owner, number), slot, error);
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    return status;
}

EPCTX_API epctx_status epctx_unset_pair(epctx_model *model, epctx_view message, uint32_t number,
                                        epctx_str key, epctx_error *error)
{
    epctx_slot *owner, *slot;
    epctx_status status = epctx__pair_owner(model, message, number, &owner, error);
    size_t mark = epctx_edit_mark(model);
    if (status == EPCTX_OK) {
        status = epctx__one_pair(model, owner, number, key, false, &slot, error);
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    return status;
}

EPCTX_API epctx_status epctx_put_metadata(epctx_model *model, epctx_str key, epctx_str value,
                                          epctx_error *error)
{
    return epctx_set_pair(model, epctx__slot_view(model->root), EPCTX_OF_MODEL, key, value, error);
}

EPCTX_API epctx_status epctx_unset_metadata(epctx_model *model, epctx_str key, epctx_error *error)
{
    return epctx_unset_pair(model, epctx__slot_view(model->root), EPCTX_OF_MODEL, key, error);
}

/* -- edits: names of values -- */

static epctx_name_opts epctx__name_opts(const epctx_name_opts *opts)
{
    epctx_name_opts out = {NULL, false, false, false};
    return opts != NULL ? *opts : out;
}

static const epctx_profile *epctx__profile_for(const epctx_name_opts *opts,
                                               const epctx_epnode *node)
{
    return opts->profile != NULL ? opts->profile : epctx_profile_of(node->source);
}

typedef struct epctx__renaming {
    epctx_model *model;
    epctx_error *error;
    epctx_map from;         /* old name -> index */
    epctx_map taken;        /* new name -> index */
    const epctx_str *names; /* the old and new ones */
    const epctx_str *to;
    uint32_t *hidden; /* graphs around the place that define the old name themselves */
    epctx_name_opts opts;
    bool apply; /* else only look for clashes */
    epctx_status status;
    size_t uses;
} epctx__renaming;

/* A place where the name of a value stands; false ends the walk. */
static bool epctx__rename_at(epctx__renaming *r, epctx_view field)
{
    epctx_str name = epctx__view_str(field);
    uint32_t i = name.size > 0 ? epctx_map_get(&r->from, name) : EPCTX_MAP_NONE;
    if (i != EPCTX_MAP_NONE && r->hidden[i] == 0) {
        r->uses++;
        if (r->apply) {
            r->status = epctx__replace_text(r->model, field, r->to[i], r->error);
        }
    } else if (!r->apply && name.size > 0) {
        i = epctx_map_get(&r->taken, name);
        if (i != EPCTX_MAP_NONE) {
            r->status = epctx_fail(r->error, EPCTX_ERR_EXISTS,
                                   "value '%S' cannot be called '%S': that name is in use",
                                   &r->names[i], &name);
        }
    }
    return r->status == EPCTX_OK;
}

/* Every string field with this number. */
static bool epctx__rename_strs(epctx__renaming *r, epctx_view message, uint32_t number)
{
    epctx_cursor it = epctx_fields(message, number);
    epctx_view text;
    while (epctx__next_body(&it, &text)) {
        if (!epctx__rename_at(r, text)) {
            return false;
        }
    }
    return true;
}

/* The same one level down: field `inner` of every field `number`. */
static bool epctx__rename_below(epctx__renaming *r, epctx_view message, uint32_t number,
                                uint32_t inner)
{
    epctx_cursor it = epctx_fields(message, number);
    epctx_view body;
    while (epctx__next_body(&it, &body)) {
        if (!epctx__rename_strs(r, body, inner)) {
            return false;
        }
    }
    return true;
}

/* A name that a graph defines. In a subgraph it hides the outer one; around the scope it must not
 * be one of the new names. */
typedef enum epctx__defined { EPCTX__HIDE, EPCTX__SHOW, EPCTX__OUTSIDE } epctx__defined;

static bool epctx__rename_defined(epctx__renaming *r, epctx_view field, epctx__defined what)
{
    epctx_str name = epctx__view_str(field);
    uint32_t i = name.size > 0 ? epctx_map_get(&r->from, name) : EPCTX_MAP_NONE;
    if (what == EPCTX__OUTSIDE) {
        i = epctx_map_get(&r->taken, name);
        if (i != EPCTX_MAP_NONE) {
            r->status = epctx_fail(r->error, EPCTX_ERR_EXISTS,
                                   "value '%S' cannot be called '%S': a graph around it has that "
                                   "name",
                                   &r->names[i], &name);
        }
    } else if (i != EPCTX_MAP_NONE) {
        r->hidden[i] += what == EPCTX__HIDE ? 1u : UINT32_MAX; /* UINT32_MAX: minus one */
    }
    return r->status == EPCTX_OK;
}

static bool epctx__rename_names(epctx__renaming *r, epctx_view message, uint32_t number,
                                epctx__defined what)
{
    epctx_cursor it = epctx_fields(message, number);
    epctx_view text;
    while (epctx__next_body(&it, &text)) {
        if (!epctx__rename_defined(r, text, what)) {
            return false;
        }
    }
    return true;
}

/* All names that a graph defines: inputs, initializers, outputs of nodes. */
static bool epctx__rename_scope(epctx__renaming *r, epctx_view graph, epctx__defined what)
{
    epctx_cursor it = epctx_fields(graph, 0);
    epctx_field f;
    while (epctx_next_field(&it, &f)) {
        bool ok = true;
        if (f.wire != EPCTX_WIRE_LEN) {
            continue;
        }
        if (f.number == 1) {
            ok = epctx__rename_names(r, f.body, 2, what);
        } else if (f.number == 5) {
            ok = epctx__rename_names(r, f.body, 8, what);
        } else if (f.number == 11) {
            ok = epctx__rename_names(r, f.body, 1, what);
        } else if (f.number == 15) {
            epctx_cursor values = epctx_fields(f.body, 1);
            epctx_view tensor;
            while (ok && epctx__next_body(&values, &tensor)) {
                ok = epctx__rename_names(r, tensor, 8, what);
            }
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool epctx__rename_graph(epctx__renaming *r, epctx_view graph, uint32_t depth);

/* A graph inside the scope: what it defines itself is not what is renamed. */
static bool epctx__rename_nested(epctx__renaming *r, epctx_view graph, uint32_t depth)
{
    return epctx__rename_scope(r, graph, EPCTX__HIDE) && epctx__rename_graph(r, graph, depth) &&
           epctx__rename_scope(r, graph, EPCTX__SHOW);
}

static bool epctx__rename_attr(epctx__renaming *r, epctx_view attr, uint32_t depth)
{
    epctx_cursor it = epctx_fields(attr, 0);
    epctx_field f;
    while (depth > 0 && epctx_next_field(&it, &f)) {
        if (f.wire == EPCTX_WIRE_LEN && (f.number == 6 || f.number == 11) &&
            !epctx__rename_nested(r, f.body, depth - 1)) {
            return false;
        }
    }
    return true;
}

/* A value at a node has a new name: may it, if this is an EPContext node? */
static bool epctx__rename_allowed(epctx__renaming *r, epctx_view node, epctx_str value)
{
    epctx_node_view view = epctx_node_of(node);
    epctx_epnode ep;
    if (!epctx_is_epnode(&view) || epctx_epnode_read(&view, &ep, NULL) != EPCTX_OK ||
        (epctx__profile_for(&r->opts, &ep)->traits & EPCTX_IO_NAMES) == 0) {
        return true;
    }
    r->status = epctx_fail(r->error, EPCTX_ERR_UNSUPPORTED,
                           "value '%S' cannot have another name: %s finds it in its binary by name",
                           &value, epctx__profile_for(&r->opts, &ep)->name);
    epctx_blame(r->error, r->model->path, &view.name, NULL);
    return false;
}

static bool epctx__rename_node(epctx__renaming *r, epctx_view node, uint32_t depth)
{
    epctx_cursor it = epctx_fields(node, 0);
    epctx_field f;
    while (epctx_next_field(&it, &f)) {
        bool ok = true;
        if (f.wire != EPCTX_WIRE_LEN) {
            continue;
        }
        if (f.number == 1 || f.number == 2) {
            size_t uses = r->uses;
            ok = epctx__rename_at(r, f.body);
            if (ok && r->uses > uses && !r->apply && !r->opts.any_io) {
                ok = epctx__rename_allowed(r, node, epctx__view_str(f.body));
            }
        } else if (f.number == 5) {
            ok = epctx__rename_attr(r, f.body, depth);
        } else if (f.number == 10) {
            ok = epctx__rename_below(r, f.body, 2, 1); /* sharding_spec, tensor_name */
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool epctx__rename_graph(epctx__renaming *r, epctx_view graph, uint32_t depth)
{
    epctx_cursor it = epctx_fields(graph, 0);
    epctx_field f;
    while (epctx_next_field(&it, &f)) {
        bool ok = true;
        if (f.wire != EPCTX_WIRE_LEN) {
            continue;
        }
        switch (f.number) {
        case 1:
            ok = epctx__rename_node(r, f.body, depth);
            break;
        case 5:
            ok = epctx__rename_strs(r, f.body, 8);
            break;
        case 11:
        case 12:
        case 13:
            ok = epctx__rename_strs(r, f.body, 1);
            break;
        case 14: /* tensor_name, quant_parameter_tensor_names */
            ok = epctx__rename_strs(r, f.body, 1) && epctx__rename_below(r, f.body, 2, 2);
            break;
        case 15: /* the name of a sparse initializer is that of its values */
            ok = epctx__rename_below(r, f.body, 1, 8);
            break;
        default:
            break;
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool epctx__rename_function(epctx__renaming *r, epctx_view function)
{
    epctx_cursor it = epctx_fields(function, 7);
    epctx_view node;
    if (!epctx__rename_strs(r, function, 4) || !epctx__rename_strs(r, function, 5) ||
        !epctx__rename_below(r, function, 12, 1)) {
        return false;
    }
    while (epctx__next_body(&it, &node)) {
        if (!epctx__rename_node(r, node, 100)) {
            return false;
        }
    }
    return true;
}

/* TrainingInfoProto: its graphs see the main graph's values. The key of a binding is an initializer
 * of the algorithm or of the main graph, its value an output of the graph in question. */
static bool epctx__rename_training(epctx__renaming *r, epctx_view training)
{
    uint32_t number;
    for (number = 1; number <= 2; number++) { /* initialization, algorithm */
        epctx_cursor it = epctx_fields(training, number);
        epctx_view graph = epctx__no_view();
        while (epctx__next_body(&it, &graph)) {
            if (!epctx__rename_nested(r, graph, 100)) {
                return false;
            }
        }
        if (!epctx__rename_scope(r, graph, EPCTX__HIDE) ||
            !epctx__rename_below(r, training, number + 2, 2) ||
            (number == 2 && (!epctx__rename_below(r, training, 3, 1) ||
                             !epctx__rename_below(r, training, 4, 1))) ||
            !epctx__rename_scope(r, graph, EPCTX__SHOW)) {
            return false;
        }
    }
    return true;
}

/* Everything that sees the values of `scope`. */
static bool epctx__rename_walk(epctx__renaming *r, const epctx_slot *scope)
{
    epctx_cursor it;
    epctx_view training;
    epctx_view view = epctx__slot_view(scope);
    if (epctx__slot_type(scope) == EPCTX__T_FUNCTION) {
        return epctx__rename_function(r, view);
    }
    if (!epctx__rename_graph(r, view, 100)) {
        return false;
    }
    it = epctx_fields(epctx__slot_view(r->model->root), 20);
    while (scope == r->model->graph && epctx__next_body(&it, &training)) {
        if (!epctx__rename_training(r, training)) {
            return false;
        }
    }
    return true;
}

/* The names of the graphs around `scope` are not free. */
static bool epctx__rename_around(epctx__renaming *r, const epctx_slot *scope)
{
    const epctx_slot *slot;
    for (slot = scope->parent; slot != NULL; slot = slot->parent) {
        if (epctx__slot_type(slot) == EPCTX__T_GRAPH &&
            !epctx__rename_scope(r, epctx__slot_view(slot), EPCTX__OUTSIDE)) {
            return false;
        }
    }
    return true;
}

static epctx_status epctx__rename_plan(epctx__renaming *r, const epctx_str *from,
                                       const epctx_str *to, size_t count)
{
    size_t i;
    epctx_map_init(&r->from, &r->model->arena);
    epctx_map_init(&r->taken, &r->model->arena);
    r->names = from;
    r->to = to;
    r->hidden = (uint32_t *)epctx_arena_array(&r->model->arena, count, sizeof *r->hidden);
    if (count >= EPCTX_MAP_NONE || r->hidden == NULL) {
        return epctx__nomem(r->error, r->model->arena.missing);
    }
    for (i = 0; i < count; i++) {
        if (from[i].size == 0 || to[i].size == 0) {
            return epctx_fail(r->error, EPCTX_ERR_ARG, "the name of a value must not be empty");
        }
        if (epctx_str_eq(from[i], to[i])) {
            continue;
        }
        if (epctx_map_get(&r->from, from[i]) != EPCTX_MAP_NONE) {
            return epctx_fail(r->error, EPCTX_ERR_ARG, "value '%S' has two new names", &from[i]);
        }
        if (epctx_map_get(&r->taken, to[i]) != EPCTX_MAP_NONE) {
            return epctx_fail(r->error, EPCTX_ERR_EXISTS, "two values are to be called '%S'",
                              &to[i]);
        }
        if (epctx_map_put(&r->from, from[i], (uint32_t)i) != EPCTX_OK ||
            epctx_map_put(&r->taken, to[i], (uint32_t)i) != EPCTX_OK) {
            return epctx__nomem(r->error, r->model->arena.missing);
        }
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_rename_values(epctx_model *model, epctx_view scope,
                                           const epctx_str *from, const epctx_str *to, size_t count,
                                           const epctx_name_opts *opts, size_t *uses,
                                           epctx_error *error)
{
    epctx__renaming r;
    epctx_slot *slot;
    size_t mark = epctx_edit_mark(model);
    epctx_error_clear(error);
    memset(&r, 0, sizeof r);
    r.model = model;
    r.error = error;
    r.opts = epctx__name_opts(opts);
    r.status = epctx__locate_graph(model, scope, &slot, error);
    if (r.status == EPCTX_OK) {
        r.status = epctx__rename_plan(&r, from, to, count);
    }
    if (r.status == EPCTX_OK && epctx__rename_around(&r, slot) && epctx__rename_walk(&r, slot)) {
        r.apply = true;
        r.uses = 0;
        epctx__rename_walk(&r, slot);
    }
    if (r.status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    if (uses != NULL) {
        *uses = r.status == EPCTX_OK ? r.uses : 0;
    }
    return r.status;
}

/* -- edits: names of nodes -- */

/* What the EPContext nodes of a model say about each other: needed to know whether a binary holds
 * one graph. */
typedef struct epctx__contexts {
    epctx_map files;       /* path of a binary -> primary nodes that name it */
    epctx_map secondaries; /* name of a profile -> its secondary nodes */
} epctx__contexts;

static epctx_status epctx__count_up(epctx_map *map, epctx_str key, epctx_error *error)
{
    uint32_t count = epctx_map_get(map, key);
    return epctx_map_put(map, key, count == EPCTX_MAP_NONE ? 1 : count + 1) == EPCTX_OK
               ? EPCTX_OK
               : epctx__nomem(error, map->arena->missing);
}

static epctx_status epctx__find_contexts(epctx_model *model, const epctx_name_opts *opts,
                                         epctx__contexts *out, epctx_error *error)
{
    epctx_status status = EPCTX_OK;
    epctx_walk walk;
    epctx_node_view view;
    epctx_map_init(&out->files, &model->arena);
    epctx_map_init(&out->secondaries, &model->arena);
    epctx_walk_begin(&walk, model);
    while (status == EPCTX_OK && epctx_walk_epnode(&walk, &view)) {
        epctx_epnode node;
        if (!epctx_is_epnode(&view) || epctx_epnode_read(&view, &node, NULL) != EPCTX_OK) {
            continue;
        }
        if (node.main_context == 0) {
            status = epctx__count_up(&out->secondaries,
                                     epctx_str_of(epctx__profile_for(opts, &node)->name), error);
        } else if (node.embed_mode == 0) {
            status = epctx__count_up(&out->files, node.ep_cache_context, error);
        }
    }
    return status;
}

/* Why the name of an EPContext node must stay, or NULL. */
static const char *epctx__name_is_key(const epctx__contexts *contexts, const epctx_name_opts *opts,
                                      const epctx_epnode *node)
{
    const epctx_profile *profile = epctx__profile_for(opts, node);
    if (profile->key != EPCTX_KEY_NODE_NAME) {
        return NULL;
    }
    if (node->main_context == 0 ||
        epctx_map_get(&contexts->secondaries, epctx_str_of(profile->name)) != EPCTX_MAP_NONE) {
        return "several nodes share a context, and the EP finds the graph in it by the node's name";
    }
    if (node->embed_mode == 1) {
        return NULL; /* the only node of its context, and nobody else can reach that */
    }
    if (epctx_map_get(&contexts->files, node->ep_cache_context) > 1) {
        return "several nodes name this binary, and the EP finds the graph in it by the node's "
               "name";
    }
    return opts->one_graph ? NULL
                           : "the EP finds the graph in the binary by the node's name, unless the "
                             "binary holds this graph alone (then say so: one_graph)";
}

static epctx_status epctx__check_name(const epctx_model *model, const epctx__contexts *contexts,
                                      const epctx_name_opts *opts, const epctx_node_view *view,
                                      epctx_error *error)
{
    epctx_epnode node;
    const char *why;
    epctx_status status;
    if (!epctx_is_epnode(view)) {
        return EPCTX_OK;
    }
    status = epctx_epnode_read(view, &node, error);
    why = status == EPCTX_OK ? epctx__name_is_key(contexts, opts, &node) : NULL;
    if (why != NULL) {
        status = epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "%s EPContext node cannot be renamed: %s",
                            epctx__profile_for(opts, &node)->name, why);
    }
    if (status != EPCTX_OK) {
        epctx_blame(error, model->path, &view->name, NULL);
    }
    return status;
}

EPCTX_API epctx_status epctx_rename_node(epctx_model *model, epctx_view node, epctx_str name,
                                         const epctx_name_opts *opts, epctx_error *error)
{
    epctx_name_opts o = epctx__name_opts(opts);
    epctx__contexts contexts;
    epctx_node_view view, other;
    epctx_walk walk;
    epctx_slot *slot;
    epctx_status status = epctx__locate_node(model, node, &slot, error);
    if (status == EPCTX_OK) {
        view = epctx_node_of(epctx__slot_view(slot));
        if (epctx_str_eq(view.name, name)) {
            return EPCTX_OK;
        }
        status = epctx__find_contexts(model, &o, &contexts, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__check_name(model, &contexts, &o, &view, error);
    }
    epctx_walk_begin(&walk, model);
    while (status == EPCTX_OK && name.size > 0 && epctx_walk_next(&walk, &other)) {
        if (epctx_str_eq(other.name, name)) {
            status = epctx_fail(error, EPCTX_ERR_EXISTS, "cannot be called '%S': another node is",
                                &name);
            epctx_blame(error, model->path, &view.name, NULL);
        }
    }
    return status == EPCTX_OK ? epctx_set_str(model, epctx__slot_view(slot), 3, name, error)
                              : status;
}

/* Nodes that epctx_prefix renames. */
static bool epctx__takes_prefix(const epctx_name_opts *opts, const epctx_node_view *node)
{
    return node->name.size > 0 && (opts->all_nodes || epctx_is_epnode(node));
}

/* What a name becomes, in the arena. */
static epctx_status epctx__prefixed(epctx_model *model, epctx_str prefix, epctx_str name,
                                    epctx_str *out, epctx_error *error)
{
    char *text = name.size <= SIZE_MAX - prefix.size
                     ? (char *)epctx__arena_raw(&model->arena, prefix.size + name.size)
                     : NULL;
    if (text == NULL) {
        return epctx__nomem(error, model->arena.missing);
    }
    memcpy(text, prefix.data, prefix.size);
    memcpy(text + prefix.size, name.data, name.size);
    out->data = text;
    out->size = prefix.size + name.size;
    return EPCTX_OK;
}

/* Checks every node and that no new name meets one that stays. */
static epctx_status epctx__check_prefix(epctx_model *model, epctx_str prefix,
                                        const epctx_name_opts *opts, epctx_error *error)
{
    epctx__contexts contexts;
    epctx_node_view node;
    epctx_map staying;
    epctx_walk walk;
    epctx_status status = epctx__find_contexts(model, opts, &contexts, error);
    epctx_map_init(&staying, &model->arena);
    epctx_walk_begin(&walk, model);
    while (status == EPCTX_OK && epctx_walk_next(&walk, &node)) {
        if (epctx__takes_prefix(opts, &node)) {
            status = epctx__check_name(model, &contexts, opts, &node, error);
        } else if (epctx_map_put(&staying, node.name, 1) != EPCTX_OK) {
            status = epctx__nomem(error, model->arena.missing);
        }
    }
    epctx_walk_begin(&walk, model);
    while (status == EPCTX_OK && epctx_walk_next(&walk, &node)) {
        epctx_str name = node.name;
        if (epctx__takes_prefix(opts, &node)) {
            status = epctx__prefixed(model, prefix, node.name, &name, error);
        }
        if (status == EPCTX_OK && epctx__takes_prefix(opts, &node) &&
            epctx_map_get(&staying, name) != EPCTX_MAP_NONE) {
            status = epctx_fail(error, EPCTX_ERR_EXISTS, "cannot be called '%S': another node is",
                                &name);
            epctx_blame(error, model->path, &node.name, NULL);
        }
    }
    return status;
}

EPCTX_API epctx_status epctx_prefix(epctx_model *model, epctx_str prefix,
                                    const epctx_name_opts *opts, size_t *count, epctx_error *error)
{
    epctx_name_opts o = epctx__name_opts(opts);
    epctx_node_view node;
    epctx_walk walk;
    size_t mark = epctx_edit_mark(model);
    size_t done = 0;
    epctx_status status;
    epctx_error_clear(error);
    status = prefix.size > 0 ? epctx__editable(model, error)
                             : epctx_fail(error, EPCTX_ERR_ARG, "the prefix is empty");
    if (status == EPCTX_OK) {
        status = epctx__check_prefix(model, prefix, &o, error);
    }
    epctx_walk_begin(&walk, model);
    while (status == EPCTX_OK && epctx_walk_next(&walk, &node)) {
        epctx_str name;
        if (!epctx__takes_prefix(&o, &node)) {
            continue;
        }
        status = epctx__prefixed(model, prefix, node.name, &name, error);
        if (status == EPCTX_OK) {
            epctx_span text;
            text.data = (const uint8_t *)name.data; /* in the arena already */
            text.size = name.size;
            status = epctx_set_data(model, node.view, 3, text, error);
        }
        done++;
    }
    if (status != EPCTX_OK) {
        epctx_undo(model, mark);
    }
    if (count != NULL) {
        *count = status == EPCTX_OK ? done : 0;
    }
    return status;
}

/* -- edits: a new model -- */

EPCTX_API epctx_status epctx_model_new(epctx_model *model, int64_t ir_version,
                                       const epctx_open_opts *opts, epctx_error *error)
{
    static const uint8_t graph[2] = {0x3a, 0x00};
    epctx_status status = epctx_model_open_memory(model, graph, sizeof graph, opts, error);
    if (status == EPCTX_OK) {
        status = epctx_set_int(model, epctx__slot_view(model->root), 1, ir_version, error);
        if (status != EPCTX_OK) {
            epctx_model_close(model);
        }
    }
    return status;
}

/* Opens every message below `slot` and marks it as changed, so that nothing is copied whole. */
static bool epctx__rebuild_slot(epctx_model *model, epctx_slot *slot, epctx__type type,
                                uint32_t depth)
{
    epctx_slot *child;
    if (slot->message == NULL && !epctx__open_slot(&model->arena, slot, type, NULL, 100)) {
        return false;
    }
    slot->message->edits++;
    for (child = slot->message->first; child != NULL; child = child->next) {
        uint32_t kind = epctx__field_kind(type, child->number);
        if (child->wire == EPCTX_WIRE_LEN && epctx__is_message(kind) && depth > 0 &&
            !epctx__rebuild_slot(model, child, epctx__message_type(kind), depth - 1)) {
            return false;
        }
    }
    return true;
}

EPCTX_API epctx_status epctx_rebuild(epctx_model *model, epctx_error *error)
{
    epctx_error_clear(error);
    return epctx__rebuild_slot(model, model->root, EPCTX__T_MODEL, 100)
               ? EPCTX_OK
               : epctx__nomem(error, model->arena.missing);
}

/* -- writing -- */

/* Bytes of the length prefix: an over-long one keeps its width while the new value fits. */
static unsigned epctx__length_size(const epctx_slot *slot, uint64_t size)
{
    unsigned need = epctx__varint_size(size);
    unsigned width = epctx__length_width(slot);
    return width > need ? width : need;
}

/* Size of a field as it will be written; also leaves the payload size of changed messages. */
static uint64_t epctx__measure(epctx_slot *slot)
{
    uint64_t size = slot->size;
    if (slot->removed) {
        return 0;
    }
    if (epctx__is_changed(slot)) {
        epctx_slot *child;
        size = 0;
        for (child = slot->message->first; child != NULL; child = child->next) {
            size += epctx__measure(child);
        }
        slot->message->size = size;
    } else if (!slot->split) {
        return size;
    }
    if (slot->parent == NULL) {
        return size; /* the model itself has no tag */
    }
    return epctx__tag_size(slot) + epctx__length_size(slot, size) + size;
}

EPCTX_API uint64_t epctx_model_size(epctx_model *model)
{
    return epctx__measure(model->root);
}

/* Untouched neighbours in the source leave in one piece. */
typedef struct epctx__writer {
    pb_ostream_t *stream;
    const uint8_t *run;
    size_t run_size;
} epctx__writer;

static bool epctx__flush_run(epctx__writer *w)
{
    bool ok = w->run_size == 0 || pb_write(w->stream, w->run, w->run_size);
    w->run_size = 0;
    return ok;
}

static bool epctx__write_bytes(epctx__writer *w, const uint8_t *data, size_t size)
{
    if (size == 0) {
        return true;
    }
    if (w->run_size > 0 && w->run + w->run_size == data) {
        w->run_size += size;
        return true;
    }
    if (!epctx__flush_run(w)) {
        return false;
    }
    w->run = data;
    w->run_size = size;
    return true;
}

static bool epctx__write_head(epctx__writer *w, const epctx_slot *slot, uint64_t size)
{
    uint8_t length[10];
    unsigned count = epctx__length_size(slot, size);
    unsigned i;
    for (i = 0; i < count; i++) {
        length[i] = (uint8_t)((size & 0x7f) | (i + 1 < count ? 0x80 : 0));
        size >>= 7;
    }
    if (slot->split) {
        return epctx__flush_run(w) && pb_encode_tag(w->stream, PB_WT_STRING, slot->number) &&
               pb_write(w->stream, length, count);
    }
    return epctx__write_bytes(w, slot->data, epctx__tag_size(slot)) && epctx__flush_run(w) &&
           pb_write(w->stream, length, count);
}

static bool epctx__write_slot(epctx__writer *w, const epctx_slot *slot)
{
    const epctx_slot *child;
    if (slot->removed) {
        return true;
    }
    if (!epctx__is_changed(slot)) {
        return (!slot->split || epctx__write_head(w, slot, slot->size)) &&
               epctx__write_bytes(w, slot->data, slot->size);
    }
    if (slot->parent != NULL && !epctx__write_head(w, slot, slot->message->size)) {
        return false;
    }
    for (child = slot->message->first; child != NULL; child = child->next) {
        if (!epctx__write_slot(w, child)) {
            return false;
        }
    }
    return true;
}

EPCTX_API epctx_status epctx_model_write_stream(epctx_model *model, pb_ostream_t *stream,
                                                epctx_error *error)
{
    epctx__writer w;
    epctx_error_clear(error);
    memset(&w, 0, sizeof w);
    w.stream = stream;
    epctx__measure(model->root);
    if (!epctx__write_slot(&w, model->root) || !epctx__flush_run(&w)) {
        return epctx_fail(error, EPCTX_ERR_IO, "the output stream failed: %s",
                          PB_GET_ERROR(stream));
    }
    return EPCTX_OK;
}

/* -- files -- */

/* A file under construction as a nanopb stream. Small writes are gathered. */
typedef struct epctx__output {
    const epctx_io *io;
    epctx_io_file file;
    bool open;
    size_t used;
    epctx_error *error;
    uint8_t gathered[16384];
} epctx__output;

static epctx_status epctx__output_flush(epctx__output *out)
{
    size_t used = out->used;
    out->used = 0;
    if (used == 0) {
        return EPCTX_OK;
    }
    return out->io->write_fn(out->io->user, &out->file, out->gathered, used, out->error);
}

static epctx_status epctx__output_write(epctx__output *out, const void *data, size_t size)
{
    epctx_status status = EPCTX_OK;
    if (size > sizeof out->gathered - out->used) {
        status = epctx__output_flush(out);
    }
    if (status != EPCTX_OK || size == 0) {
        return status;
    }
    if (size > sizeof out->gathered) {
        return out->io->write_fn(out->io->user, &out->file, data, size, out->error);
    }
    memcpy(out->gathered + out->used, data, size);
    out->used += size;
    return EPCTX_OK;
}

static bool epctx__output_stream(pb_ostream_t *stream, const pb_byte_t *data, size_t size)
{
    return epctx__output_write((epctx__output *)stream->state, data, size) == EPCTX_OK;
}

static epctx_status epctx__output_open(epctx__output *out, const epctx_io *io, const char *path,
                                       epctx_error *error)
{
    epctx_status status = io->create_fn(io->user, path, &out->file, error);
    out->io = io;
    out->error = error;
    out->open = status == EPCTX_OK;
    out->used = 0;
    return status;
}

static void epctx__output_abort(epctx__output *out)
{
    if (out->open) {
        out->io->abort_fn(out->io->user, &out->file);
        out->open = false;
    }
}

static epctx_status epctx__output_commit(epctx__output *out)
{
    out->open = false;
    return out->io->commit_fn(out->io->user, &out->file, out->error);
}

/* The whole model into an open output, durable on return. */
static epctx_status epctx__output_model(epctx__output *out, epctx_model *model)
{
    pb_ostream_t stream = {NULL, NULL, SIZE_MAX, 0
#ifndef PB_NO_ERRMSG
                           ,
                           NULL
#endif
    };
    epctx_error ignored;
    epctx_status status;
    stream.callback = epctx__output_stream;
    stream.state = out;
    /* The io's own message is better than the stream's, and is already in out->error. */
    status = epctx_model_write_stream(model, &stream, &ignored);
    if (status != EPCTX_OK && out->error != NULL && out->error->status != EPCTX_OK) {
        status = out->error->status;
    }
    if (status == EPCTX_OK) {
        status = epctx__output_flush(out);
    }
    if (status == EPCTX_OK) {
        status = out->io->sync_fn(out->io->user, &out->file, out->error);
    }
    return status;
}

/* -- overwriting -- */

EPCTX_API epctx_status epctx_output_check(const epctx_io *io, const char *path,
                                          epctx_overwrite overwrite, epctx_error *error)
{
    char folder[EPCTX_PATH_MAX];
    epctx_str part = epctx_path_folder(epctx_str_of(path));
    epctx_file_kind kind = EPCTX_FILE_NONE;
    uint64_t size;
    epctx_status status;
    epctx_error_clear(error);
    part = part.size > 0 ? part : epctx_str_of(".");
    status = epctx__path_join(folder, sizeof folder, &part, 1, error);
    if (status == EPCTX_OK) {
        status = io->stat_fn(io->user, folder, &kind, &size, error);
    }
    if (status == EPCTX_OK && kind != EPCTX_FILE_FOLDER) {
        status = epctx_fail(error, EPCTX_ERR_NOT_FOUND, "its folder does not exist");
    }
    if (status == EPCTX_OK) {
        status = io->stat_fn(io->user, path, &kind, &size, error);
    }
    if (status == EPCTX_OK && kind == EPCTX_FILE_REGULAR && overwrite == EPCTX_OVERWRITE_FAIL) {
        status =
            epctx_fail(error, EPCTX_ERR_EXISTS, "exists already: remove it or allow overwriting");
    } else if (status == EPCTX_OK && kind != EPCTX_FILE_NONE && kind != EPCTX_FILE_REGULAR) {
        status = epctx_fail(error, EPCTX_ERR_PATH, "is a folder or a device, a file is expected");
    }
    if (status != EPCTX_OK) {
        epctx_blame(error, path, NULL, NULL);
    }
    return status;
}

static epctx_status epctx__copy_file(const epctx_io *io, const char *from, const char *to,
                                     epctx_error *error)
{
    epctx_mapping mapping;
    epctx_io_file file;
    epctx_status status = io->map_fn(io->user, from, &mapping, error);
    if (status != EPCTX_OK) {
        return status;
    }
    status = io->create_fn(io->user, to, &file, error);
    if (status == EPCTX_OK) {
        status = io->write_fn(io->user, &file, mapping.data, mapping.size, error);
        if (status == EPCTX_OK) {
            status = io->sync_fn(io->user, &file, error);
        }
        if (status == EPCTX_OK) {
            status = io->commit_fn(io->user, &file, error);
        } else {
            io->abort_fn(io->user, &file);
        }
    }
    io->unmap_fn(io->user, &mapping);
    return status;
}

/* `path`~ and a number above 1. */
static epctx_status epctx__backup_name(const char *path, unsigned number, char *out,
                                       size_t capacity, epctx_error *error)
{
    char digits[8];
    epctx_str parts[3];
    epctx__text text = epctx__text_of(digits, sizeof digits);
    if (number > 1) {
        epctx__text_number(&text, number, 10);
    }
    digits[text.size] = '\0';
    parts[0] = epctx_str_of(path);
    parts[1] = epctx_str_of("~");
    parts[2] = epctx_str_of(digits);
    return epctx__path_join(out, capacity, parts, 3, error);
}

/* Names one file; a name that is taken is EPCTX_ERR_EXISTS. */
static epctx_status epctx__backup_as(const epctx_io *io, const char *path, const char *backup,
                                     epctx_error *error)
{
    epctx_status status = EPCTX_ERR_UNSUPPORTED;
    epctx_file_kind kind;
    uint64_t size;
    if (io->link_fn != NULL) {
        status = io->link_fn(io->user, path, backup, error);
    }
    if (status != EPCTX_ERR_UNSUPPORTED) {
        return status;
    }
    epctx_error_clear(error);
    status = io->stat_fn(io->user, backup, &kind, &size, error);
    if (status == EPCTX_OK && kind != EPCTX_FILE_NONE) {
        return epctx_fail(error, EPCTX_ERR_EXISTS, "exists already");
    }
    return status == EPCTX_OK ? epctx__copy_file(io, path, backup, error) : status;
}

EPCTX_API epctx_status epctx_output_backup(const epctx_io *io, const char *path, char *backup,
                                           size_t capacity, epctx_error *error)
{
    char real[EPCTX_PATH_MAX];
    unsigned number;
    epctx_status status;
    epctx_error_clear(error);
    /* Through a link the file is replaced, so it is the file that is kept. */
    status = io->canonical_fn(io->user, path, real, sizeof real, error);
    for (number = 1; status == EPCTX_OK; number++) {
        status = epctx__backup_name(real, number, backup, capacity, error);
        if (status == EPCTX_OK) {
            status = epctx__backup_as(io, real, backup, error);
        }
        if (status != EPCTX_ERR_EXISTS || number == 999) {
            break;
        }
        epctx_error_clear(error);
        status = EPCTX_OK;
    }
    if (status == EPCTX_ERR_EXISTS) {
        epctx_error_clear(error);
        status = epctx_fail(error, EPCTX_ERR_EXISTS, "has 999 backups already: remove some");
    }
    if (status != EPCTX_OK) {
        backup[0] = '\0';
        epctx_blame(error, path, NULL, NULL);
    }
    return status;
}

/* The output is complete: the former file gets its backup name, the new one the real name. */
static epctx_status epctx__output_replace(epctx__output *out, const char *path,
                                          const epctx_write_opts *opts)
{
    const epctx_io *io = out->io;
    char own[EPCTX_PATH_MAX];
    char *backup = opts->backup != NULL ? opts->backup : own;
    size_t capacity = opts->backup != NULL ? opts->backup_capacity : sizeof own;
    epctx_file_kind kind = EPCTX_FILE_NONE;
    uint64_t size;
    epctx_status status = EPCTX_OK;
    own[0] = '\0';
    if (opts->overwrite == EPCTX_OVERWRITE_BACKUP) {
        status = io->stat_fn(io->user, path, &kind, &size, out->error);
    }
    if (status == EPCTX_OK && kind == EPCTX_FILE_REGULAR) {
        status = epctx_output_backup(io, path, backup, capacity, out->error);
    }
    if (status != EPCTX_OK) {
        epctx__output_abort(out);
        return status;
    }
    status = epctx__output_commit(out);
    if (status != EPCTX_OK && kind == EPCTX_FILE_REGULAR) {
        io->remove_fn(io->user, backup, NULL); /* the file itself is still there */
        backup[0] = '\0';
    }
    return status;
}

static epctx_status epctx__check_huge(epctx_model *model, epctx_error *error)
{
    uint64_t size = epctx_model_size(model);
    if (size <= (uint64_t)EPCTX_MODEL_MAX) {
        return EPCTX_OK;
    }
    return epctx_fail(error, EPCTX_ERR_LIMIT,
                      "the model would have %u bytes, protobuf readers such as ONNX Runtime take "
                      "at most %u: keep the context in its own file (embed_mode 0) and large "
                      "initializers in an external file, or allow it",
                      size, (uint64_t)EPCTX_MODEL_MAX);
}

EPCTX_API epctx_status epctx_model_write_file(epctx_model *model, const char *path,
                                              const epctx_write_opts *opts, epctx_error *error)
{
    static const epctx_write_opts defaults = {EPCTX_OVERWRITE_REPLACE, false, NULL, 0};
    const epctx_write_opts *o = opts != NULL ? opts : &defaults;
    epctx__output *out = NULL;
    epctx_status status = EPCTX_OK;
    epctx_error_clear(error);
    if (o->backup != NULL && o->backup_capacity > 0) {
        o->backup[0] = '\0';
    }
    if (model->io == NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    }
    if (!o->allow_huge) {
        status = epctx__check_huge(model, error);
    }
    if (status == EPCTX_OK && o->overwrite == EPCTX_OVERWRITE_FAIL) {
        status = epctx_output_check(model->io, path, o->overwrite, error);
    }
    if (status == EPCTX_OK) {
        out = (epctx__output *)epctx_arena_alloc(&model->arena, sizeof *out);
        status = out != NULL ? epctx__output_open(out, model->io, path, error)
                             : epctx__nomem(error, model->arena.missing);
    }
    if (status == EPCTX_OK) {
        status = epctx__output_model(out, model);
        if (status == EPCTX_OK) {
            status = epctx__output_replace(out, path, o);
        } else {
            epctx__output_abort(out);
        }
    }
    if (status == EPCTX_OK) {
        status = model->io->sync_folder_fn(model->io->user, path, error);
    }
    if (status != EPCTX_OK) {
        epctx_blame(error, path, NULL, NULL);
    }
    return status;
}

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>convert
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

EPCTX_API const char *epctx_change_name(epctx_change_kind kind)
{
    switch (kind) {
    case EPCTX_CHANGE_EMBEDDED:
        return "embedded";
    case EPCTX_CHANGE_EXTRACTED:
        return "extracted";
    case EPCTX_CHANGE_FOLLOWED:
        return "followed";
    case EPCTX_CHANGE_INLINED:
        return "inlined";
    case EPCTX_CHANGE_EXTERNAL:
        return "external";
    case EPCTX_CHANGE_PRUNED:
        return "pruned";
    case EPCTX_CHANGE_SOURCE:
        return "source";
    case EPCTX_CHANGE_SKIPPED:
        return "skipped";
    default:
        return "unknown";
    }
}

/* -- what conversions share -- */

/* EPContext nodes of one EP: they have their contexts in common. */
typedef struct epctx__ep_nodes {
    const epctx_profile *profile;
    size_t carriers[2]; /* nodes with a context of their own, by embed mode */
    size_t converted;
    size_t bare; /* secondary nodes without one */
    size_t first;            /* embedding: number of the first node that is converted, */
    const epctx__file *file; /* its binary, */
    bool several;            /* and whether another node has another one */
    uint32_t payload;        /* extracting: the first payload, or EPCTX_MAP_NONE */
} epctx__ep_nodes;

typedef struct epctx__job {
    epctx_view view;
    epctx_epnode node;
    const epctx_profile *profile;
    uint32_t group;
    bool chosen;
    bool carrier; /* has a context of its own */
    bool bare;    /* takes its graph from another node's context */
    const epctx__file *file; /* embedding: where the context is */
    uint32_t payload;        /* extracting: number of the payload, or EPCTX_MAP_NONE */
} epctx__job;

/* A different embedded context. */
typedef struct epctx__payload {
    epctx_span bytes;
    epctx_str name; /* of its file */
    uint32_t next;  /* one of the same size and hash, or EPCTX_MAP_NONE */
} epctx__payload;

typedef struct epctx__convert {
    epctx_model *model;
    epctx_arena *arena;
    epctx_error *error;
    epctx_convert_opts opts;
    epctx_str path;   /* of the result */
    epctx_str folder; /* of the result, with its separator */
    epctx__job *jobs;
    size_t job_count;
    epctx__ep_nodes *groups;
    size_t group_count;
    void *payloads;
    size_t payload_count, payload_room;
    void *items;
    size_t item_count, item_room, done;
    void *files;
    size_t file_count, file_room;
    void *parts; /* of the file with the weights */
    size_t part_count, part_room;
    uint64_t data_size;
    bool name_used; /* by weights that are in a file already */
    bool inner;     /* past the main graph, in its bodies */
} epctx__convert;

static bool epctx__convert_nomem(epctx__convert *c)
{
    epctx__nomem(c->error, c->arena->missing);
    return false;
}

static void *epctx__convert_array(epctx__convert *c, size_t count, size_t size)
{
    void *memory = epctx_arena_array(c->arena, count, size);
    if (memory == NULL) {
        epctx__convert_nomem(c);
    }
    return memory;
}

static bool epctx__convert_note(epctx__convert *c, epctx_change_kind kind, epctx_str name,
                                epctx_str file, uint64_t size, const char *reason)
{
    epctx_change *item;
    if (!epctx__list_room(c->arena, &c->items, c->item_count, &c->item_room, sizeof *item)) {
        return epctx__convert_nomem(c);
    }
    item = (epctx_change *)c->items + c->item_count++;
    item->kind = kind;
    item->name = name;
    item->file = file;
    item->size = size;
    item->reason = reason;
    c->done += kind != EPCTX_CHANGE_SKIPPED;
    return true;
}

static bool epctx__convert_skip(epctx__convert *c, epctx_str name, uint64_t size,
                                const char *reason)
{
    return epctx__convert_note(c, EPCTX_CHANGE_SKIPPED, name, epctx_str_of(NULL), size, reason);
}

/* A refusal that names a node; the caller returns it. */
static bool epctx__convert_refuse(epctx__convert *c, const epctx_epnode *node,
                                  const char *attribute)
{
    epctx_blame(c->error, NULL, &node->name, attribute);
    return false;
}

/* The file `name` in `folder`, mapped for as long as the model is open; each file once. */
static const epctx__file *epctx__convert_map(epctx__convert *c, epctx_str folder, epctx_str name)
{
    char path[EPCTX_PATH_MAX];
    epctx_mapping mapping;
    epctx_model *model = c->model;
    epctx__file *file;
    if (epctx_path_find(model->io, folder, name, model->path_flags, path, sizeof path, c->error) !=
        EPCTX_OK) {
        return NULL;
    }
    for (file = model->files; file != NULL; file = file->next) {
        if (strcmp(file->path, path) == 0) {
            return file;
        }
    }
    file = (epctx__file *)epctx__convert_array(c, 1, sizeof *file);
    if (file == NULL) {
        return NULL;
    }
    file->path = epctx_arena_copy(c->arena, epctx_str_of(path));
    if (file->path == NULL) {
        epctx__convert_nomem(c);
        return NULL;
    }
    if (epctx_path_map(model->io, folder, name, model->path_flags, &mapping, NULL, 0, c->error) !=
        EPCTX_OK) {
        return NULL;
    }
    file->mapping = mapping;
    file->next = model->files;
    model->files = file;
    return file;
}

static bool epctx__convert_int(epctx__convert *c, epctx_view node, const char *name, int64_t value)
{
    epctx_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.name = epctx_str_of(name);
    attr.type = EPCTX_ATTR_INT;
    attr.i = value;
    return epctx_set_attr(c->model, node, &attr, c->error) == EPCTX_OK;
}

static bool epctx__convert_str(epctx__convert *c, epctx_view node, const char *name,
                               epctx_str value)
{
    epctx_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.name = epctx_str_of(name);
    attr.type = EPCTX_ATTR_STRING;
    attr.s = value;
    return epctx_set_attr(c->model, node, &attr, c->error) == EPCTX_OK;
}

/* Consumers read no model of 2 GiB or more. */
static bool epctx__convert_fits(epctx__convert *c, const char *cure)
{
    uint64_t size = epctx_model_size(c->model);
    if (size <= (uint64_t)EPCTX_MODEL_MAX) {
        return true;
    }
    epctx_fail(c->error, EPCTX_ERR_LIMIT,
               "the model would have %u bytes, protobuf readers such as ONNX Runtime take at most "
               "%u: %s",
               size, (uint64_t)EPCTX_MODEL_MAX, cure);
    return false;
}

/* Adds a file of the result. `name` is relative to its folder. */
static bool epctx__convert_file(epctx__convert *c, epctx_str name, const epctx_span *parts,
                                size_t part_count, uint64_t size)
{
    epctx_output_file *file;
    epctx_str join[2];
    char path[EPCTX_PATH_MAX];
    join[0] = c->folder;
    join[1] = name;
    if (epctx__path_join(path, sizeof path, join, 2, c->error) != EPCTX_OK) {
        return false;
    }
    if (!epctx__list_room(c->arena, &c->files, c->file_count, &c->file_room, sizeof *file)) {
        return epctx__convert_nomem(c);
    }
    file = (epctx_output_file *)c->files + c->file_count;
    file->path = epctx_arena_copy(c->arena, epctx_str_of(path));
    file->name = epctx_arena_copy(c->arena, name);
    file->parts = parts;
    file->part_count = part_count;
    file->size = size;
    if (file->path == NULL || file->name == NULL) {
        return epctx__convert_nomem(c);
    }
    c->file_count++;
    return true;
}

/* -- names of new files -- */

/* What stands for {node}: letters that every file system takes. */
static void epctx__plain_name(epctx__text *text, epctx_str name)
{
    size_t i;
    for (i = 0; i < name.size; i++) {
        char ch = name.data[i];
        bool plain = epctx__is_letter(ch) || (ch >= '0' && ch <= '9') || ch == '_' || ch == '-' ||
                     (ch == '.' && i > 0 && name.data[i - 1] != '.');
        epctx__text_char(text, plain ? ch : '_');
    }
}

/* What stands for * in the EP's pattern: the short name of the EP where nodes share a binary, else
 * the node's own key. */
static void epctx__star_name(epctx__text *text, const epctx__job *job)
{
    static const char tail[] = "executionprovider";
    epctx_str name = job->node.source;
    size_t i;
    if (job->profile->payload == EPCTX_PAYLOAD_EACH) {
        name = job->node.partition_name.size > 0 ? job->node.partition_name : job->node.name;
        epctx__plain_name(text, name.size > 0 ? name : epctx_str_of("context"));
        return;
    }
    if (name.size > sizeof tail - 1) {
        epctx_str end;
        end.data = name.data + name.size - (sizeof tail - 1);
        end.size = sizeof tail - 1;
        name.size -= epctx__same_letters(end, epctx_str_of(tail)) ? end.size : 0;
    }
    name = name.size > 0 ? name : epctx_str_of("ctx");
    for (i = 0; i < name.size; i++) {
        char lower = epctx__lower(name.data[i]);
        epctx_str one;
        one.data = &lower;
        one.size = 1;
        epctx__plain_name(text, one);
    }
}

/* Fills a pattern in. `job` NULL: there is no node; `star`: a * is to be filled in, too. */
static bool epctx__fill_pattern(epctx__convert *c, const char *pattern, const epctx__job *job,
                                bool star, char out[EPCTX_PATH_MAX])
{
    epctx__text text = epctx__text_of(out, EPCTX_PATH_MAX - 1);
    epctx_str file = epctx_path_file(c->path);
    epctx_str stem = epctx__path_stem(file);
    epctx_str model = stem;
    const char *p = pattern;
    if (model.size > 4 && memcmp(model.data + model.size - 4, "_ctx", 4) == 0) {
        model.size -= 4;
    }
    while (*p != '\0') {
        if (strncmp(p, "{stem}", 6) == 0) {
            epctx__text_str(&text, stem.data, stem.size);
            p += 6;
        } else if (strncmp(p, "{model}", 7) == 0) {
            epctx__text_str(&text, model.data, model.size);
            p += 7;
        } else if (strncmp(p, "{file}", 6) == 0) {
            epctx__text_str(&text, file.data, file.size);
            p += 6;
        } else if (strncmp(p, "{node}", 6) == 0 && job != NULL) {
            epctx__plain_name(&text, job->node.name);
            p += 6;
        } else if (*p == '*' && star) {
            epctx__star_name(&text, job);
            p++;
        } else {
            epctx__text_char(&text, *p++);
        }
    }
    out[text.size] = '\0';
    if (text.size >= EPCTX_PATH_MAX - 1) {
        epctx_fail(c->error, EPCTX_ERR_LIMIT, "the file name that '%s' gives is too long", pattern);
        return false;
    }
    return true;
}

/* A new file's name must be one that a model may hold, and not the model's own. */
static bool epctx__convert_name(epctx__convert *c, epctx_str name, const epctx_profile *profile)
{
    epctx_error reason;
    size_t i;
    if (epctx_path_check(name, &reason) != EPCTX_OK) {
        epctx_fail(c->error, EPCTX_ERR_PATH, "new file: %s; choose another name", reason.message);
        return false;
    }
    for (i = 0; profile != NULL && (profile->traits & EPCTX_NO_DOTS) != 0 && i + 1 < name.size;
         i++) {
        if (name.data[i] == '.' && name.data[i + 1] == '.') {
            epctx_fail(c->error, EPCTX_ERR_PATH,
                       "new file '%S': the EP %s refuses '..' anywhere in a name; choose another",
                       &name, profile->name);
            return false;
        }
    }
    if (epctx__is_separator(name.data[name.size - 1])) {
        epctx_fail(c->error, EPCTX_ERR_PATH, "new file '%S' is a folder; choose a file's name",
                   &name);
        return false;
    }
    if (epctx_str_eq(name, epctx_path_file(c->path))) {
        epctx_fail(c->error, EPCTX_ERR_PATH,
                   "new file '%S' would be the model itself; choose another name", &name);
        return false;
    }
    return true;
}

static bool epctx__convert_begin(epctx__convert *c, epctx_model *model,
                                 const epctx_convert_opts *opts, epctx_error *error)
{
    memset(c, 0, sizeof *c);
    c->model = model;
    c->arena = &model->arena;
    c->error = error;
    if (opts != NULL) {
        c->opts = *opts;
    }
    c->path = epctx_str_of(c->opts.output_path != NULL ? c->opts.output_path : model->path);
    c->folder = epctx_path_folder(c->path);
    return epctx__editable(model, error) == EPCTX_OK;
}

typedef bool (*epctx__convert_step)(epctx__convert *c);

/* Runs a conversion; a failure takes its edits back. */
static epctx_status epctx__convert_run(epctx_model *model, const epctx_convert_opts *opts,
                                       epctx__convert_step step, epctx_changes *changes,
                                       epctx_error *error)
{
    epctx__convert c;
    epctx_error local;
    size_t mark = epctx_edit_mark(model);
    epctx_error *use = error != NULL ? error : &local;
    epctx_error_clear(use);
    if (changes != NULL) {
        memset(changes, 0, sizeof *changes);
    }
    if (!epctx__convert_begin(&c, model, opts, use) || !step(&c)) {
        epctx_undo(model, mark);
        epctx_blame(use, model->path[0] != '\0' ? model->path : NULL, NULL, NULL);
        return use->status;
    }
    if (changes != NULL) {
        changes->items = (const epctx_change *)c.items;
        changes->count = c.item_count;
        changes->done = c.done;
        changes->files = (epctx_output_file *)c.files;
        changes->file_count = c.file_count;
    }
    return EPCTX_OK;
}

/* -- contexts -- */

static bool epctx__job_read(epctx__convert *c, const epctx_node_view *view, epctx__job *job,
                            epctx_map *groups)
{
    epctx_str parts[2];
    epctx_str key;
    memset(job, 0, sizeof *job);
    if (epctx_epnode_read(view, &job->node, c->error) != EPCTX_OK) {
        return false;
    }
    job->view = view->view;
    job->profile = c->opts.profile != NULL ? c->opts.profile : epctx_profile_of(job->node.source);
    job->chosen = c->opts.node == NULL || epctx_str_is(job->node.name, c->opts.node);
    job->payload = EPCTX_MAP_NONE;
    if (epctx__attr_str(view, "ep_dlc_context").size == 0) {
        bool own = job->node.main_context == 1 || job->profile->payload == EPCTX_PAYLOAD_EACH ||
                   (job->profile->traits & EPCTX_SECONDARY_CONTEXT) != 0;
        job->carrier = own;
        job->bare = !own && job->node.ep_cache_context.size == 0;
    }
    parts[0] = epctx_str_of(job->profile->name);
    parts[1] = job->node.source;
    if (!epctx__join_key(c->arena, parts, 2, &key)) {
        return epctx__convert_nomem(c);
    }
    job->group = epctx_map_get(groups, key);
    if (job->group == EPCTX_MAP_NONE) {
        job->group = (uint32_t)c->group_count++;
        c->groups[job->group].profile = job->profile;
        c->groups[job->group].payload = EPCTX_MAP_NONE;
        if (epctx_map_put(groups, key, job->group) != EPCTX_OK) {
            return epctx__convert_nomem(c);
        }
    }
    c->groups[job->group].carriers[job->node.embed_mode] += job->carrier;
    c->groups[job->group].bare += job->bare;
    return true;
}

static bool epctx__jobs_missing(epctx__convert *c)
{
    if (c->job_count == 0) {
        epctx_fail(c->error, EPCTX_ERR_NO_NODES,
                   "there is no EPContext node: compile the model first");
    } else {
        epctx_fail(c->error, EPCTX_ERR_NO_NODES,
                   "there is no EPContext node '%s', but for example '%S'", c->opts.node,
                   &c->jobs[0].node.name);
    }
    return false;
}

/* Every EPContext node of the model. */
static bool epctx__jobs_collect(epctx__convert *c)
{
    epctx_walk walk;
    epctx_node_view view;
    epctx_map groups;
    size_t count = 0;
    size_t chosen = 0;
    epctx_walk_begin(&walk, c->model);
    while (epctx_walk_epnode(&walk, &view)) {
        count += epctx_is_epnode(&view);
    }
    c->jobs = (epctx__job *)epctx__convert_array(c, count, sizeof *c->jobs);
    c->groups = (epctx__ep_nodes *)epctx__convert_array(c, count, sizeof *c->groups);
    if (c->jobs == NULL || c->groups == NULL) {
        return false;
    }
    epctx_map_init(&groups, c->arena);
    epctx_walk_begin(&walk, c->model);
    while (epctx_walk_epnode(&walk, &view)) {
        if (!epctx_is_epnode(&view)) {
            continue;
        }
        if (!epctx__job_read(c, &view, &c->jobs[c->job_count], &groups)) {
            return false;
        }
        chosen += c->jobs[c->job_count++].chosen;
    }
    return chosen > 0 || epctx__jobs_missing(c);
}

/* Whether the conversion to `mode` concerns a node; what it leaves alone it notes. */
static bool epctx__job_due(epctx__convert *c, const epctx__job *job, int64_t mode, bool *due)
{
    const epctx_epnode *node = &job->node;
    *due = job->chosen && job->carrier && node->embed_mode != mode;
    if (*due || !job->chosen || (job->bare && c->opts.node == NULL)) {
        return true;
    }
    if (job->bare) {
        return epctx__convert_skip(c, node->name, 0,
                                   "is secondary: the context is in its primary node");
    }
    if (job->carrier) {
        return epctx__convert_skip(c, node->name, node->ep_cache_context.size,
                                   mode == 1 ? "is embedded already" : "is in a file already");
    }
    return epctx__convert_skip(c, node->name, node->ep_cache_context.size,
                               node->main_context == 0
                                   ? "is secondary: its EP does not read this context"
                                   : "wraps a DLC, not a context");
}

/* After the contexts: secondary nodes repeat the mode of their primary one, and EPs that take one
 * mode only must find one. */
static bool epctx__jobs_settle(epctx__convert *c, int64_t mode)
{
    size_t i;
    for (i = 0; i < c->job_count; i++) {
        epctx__job *job = &c->jobs[i];
        const epctx__ep_nodes *group = &c->groups[job->group];
        bool mixed = group->carriers[!mode] > group->converted;
        if (group->converted == 0) {
            continue;
        }
        if (mixed && (group->profile->traits & EPCTX_NO_MIX) != 0) {
            epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                       "the EP %s refuses models with embedded and external contexts: convert all "
                       "of its nodes",
                       group->profile->name);
            return false;
        }
        if (job->bare && !mixed && job->node.embed_mode != mode &&
            (job->node.present & EPCTX__BIT(EMBED_MODE)) != 0) {
            if (!epctx__convert_int(c, job->view, "embed_mode", mode) ||
                !epctx__convert_note(c, EPCTX_CHANGE_FOLLOWED, job->node.name, epctx_str_of(NULL),
                                     0, NULL)) {
                return false;
            }
        }
    }
    return true;
}

/* -- embed -- */

static bool epctx__embed_allowed(epctx__convert *c, const epctx__job *job)
{
    const epctx_epnode *node = &job->node;
    const epctx__ep_nodes *group = &c->groups[job->group];
    if (strcmp(job->profile->name, "openvino") == 0 &&
        epctx__ends_with(node->ep_cache_context, ".xml")) {
        epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                   "names an OpenVINO IR, whose weights are in a .bin beside it: the two must stay "
                   "files");
    } else if (strcmp(job->profile->name, "tensorrt") == 0 &&
               epctx__ends_with(node->ep_cache_context, ".stripped.engine")) {
        epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                   "names an engine without weights, which TensorRT knows by its file name: it "
                   "must stay a file");
    } else if ((job->profile->traits & EPCTX_EMBED_ONE) != 0 && group->bare > 0) {
        epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                   "%u more nodes take their graphs from this context, and the EP %s finds them in "
                   "a file only (ORT issue 31977): keep the binary",
                   (uint64_t)group->bare, job->profile->name);
    } else {
        return true;
    }
    return epctx__convert_refuse(c, node, "ep_cache_context");
}

static bool epctx__embed_map(epctx__convert *c, epctx_str folder, size_t index)
{
    epctx__job *job = &c->jobs[index];
    epctx__ep_nodes *group = &c->groups[job->group];
    job->file = epctx__convert_map(c, folder, job->node.ep_cache_context);
    if (job->file == NULL) {
        return epctx__convert_refuse(c, &job->node, "ep_cache_context");
    }
    if (job->file->mapping.size > (uint64_t)EPCTX_MODEL_MAX) {
        epctx_fail(c->error, EPCTX_ERR_LIMIT,
                   "the context has %u bytes, and an embedded one cannot have more than %u: keep "
                   "the binary",
                   (uint64_t)job->file->mapping.size, (uint64_t)EPCTX_MODEL_MAX);
        return epctx__convert_refuse(c, &job->node, "ep_cache_context");
    }
    if (group->converted++ == 0) {
        group->first = index;
        group->file = job->file;
    }
    group->several = group->several || group->file != job->file;
    return true;
}

/* Where all nodes name one binary (OpenVINO), the first takes it and the others store nothing. */
static bool epctx__embed_store(epctx__convert *c, size_t index)
{
    epctx__job *job = &c->jobs[index];
    const epctx__ep_nodes *group = &c->groups[job->group];
    epctx_str bytes = epctx__str(job->file->mapping.data, job->file->mapping.size);
    bool emptied = (job->profile->traits & EPCTX_ALL_NAME) != 0 && index != group->first;
    if (emptied && group->several) {
        epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                   "the EP %s loads one embedded context, and its nodes name several binaries: "
                   "keep them",
                   job->profile->name);
        return epctx__convert_refuse(c, &job->node, "ep_cache_context");
    }
    if (emptied) {
        bytes.size = 0;
        if (!epctx__convert_int(c, job->view, "main_context", 0)) {
            return false;
        }
    }
    return epctx__convert_str(c, job->view, "ep_cache_context", bytes) &&
           epctx__convert_int(c, job->view, "embed_mode", 1) &&
           epctx__convert_note(c, emptied ? EPCTX_CHANGE_FOLLOWED : EPCTX_CHANGE_EMBEDDED,
                               job->node.name, job->node.ep_cache_context, bytes.size, NULL);
}

static bool epctx__embed_step(epctx__convert *c)
{
    epctx_str folder = epctx_str_of(NULL);
    size_t i;
    bool due;
    if (!epctx__jobs_collect(c)) {
        return false;
    }
    for (i = 0; i < c->job_count; i++) {
        epctx__job *job = &c->jobs[i];
        if (!epctx__job_due(c, job, 1, &due)) {
            return false;
        }
        if (!due) {
            continue;
        }
        if (epctx_path_base(epctx_str_of(c->model->path),
                            epctx_str_of(c->opts.context_file_path), &folder,
                            c->error) != EPCTX_OK ||
            !epctx__embed_allowed(c, job) || !epctx__embed_map(c, folder, i)) {
            return false;
        }
    }
    for (i = 0; i < c->job_count; i++) {
        if (c->jobs[i].file != NULL && !epctx__embed_store(c, i)) {
            return false;
        }
    }
    return epctx__jobs_settle(c, 1) &&
           epctx__convert_fits(c, "keep contexts in files, or choose a node");
}

EPCTX_API epctx_status epctx_embed(epctx_model *model, const epctx_convert_opts *opts,
                                   epctx_changes *changes, epctx_error *error)
{
    return epctx__convert_run(model, opts, epctx__embed_step, changes, error);
}

/* -- extract -- */

/* Equal contexts of one EP get one number. Only contexts of a size that occurs twice are hashed. */
static bool epctx__extract_number(epctx__convert *c, epctx__job *job, const epctx_map *sizes,
                                  epctx_map *seen)
{
    epctx__payload *payload;
    uint64_t *key = (uint64_t *)epctx__convert_array(c, 3, sizeof *key);
    epctx_str name;
    uint32_t at;
    uint32_t tries = 0;
    if (key == NULL) {
        return false;
    }
    key[0] = job->node.ep_cache_context.size;
    name = epctx__str((const uint8_t *)key, sizeof *key);
    key[1] = job->group;
    if (epctx_map_get(sizes, name) > 1) {
        key[2] = epctx_hash(job->node.ep_cache_context.data, job->node.ep_cache_context.size, 0);
    }
    name.size = 3 * sizeof *key;
    /* A hash can be forged: contexts of one hash beyond a few are not looked through. */
    for (at = epctx_map_get(seen, name); at != EPCTX_MAP_NONE && tries < 16; tries++) {
        payload = (epctx__payload *)c->payloads + at;
        if (memcmp(payload->bytes.data, job->node.ep_cache_context.data, payload->bytes.size) ==
            0) {
            job->payload = at;
            return true;
        }
        at = payload->next;
    }
    if (!epctx__list_room(c->arena, &c->payloads, c->payload_count, &c->payload_room,
                          sizeof *payload)) {
        return epctx__convert_nomem(c);
    }
    payload = (epctx__payload *)c->payloads + c->payload_count;
    payload->bytes.data = (const uint8_t *)job->node.ep_cache_context.data;
    payload->bytes.size = job->node.ep_cache_context.size;
    payload->next = epctx_map_get(seen, name);
    job->payload = (uint32_t)c->payload_count;
    if (epctx_map_put(seen, name, job->payload) != EPCTX_OK) {
        return epctx__convert_nomem(c);
    }
    c->payload_count++;
    return true;
}

static bool epctx__extract_allowed(epctx__convert *c, const epctx__job *job)
{
    const epctx__ep_nodes *group = &c->groups[job->group];
    if ((job->profile->traits & EPCTX_ONLY_EMBEDDED) != 0) {
        epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                   "the EP %s reads embedded contexts only: leave the model as it is",
                   job->profile->name);
    } else if (job->node.ep_cache_context.size == 0) {
        epctx_fail(c->error, EPCTX_ERR_GRAPH,
                   "is empty: there is no context to extract; compile the model again");
    } else if ((job->profile->traits & EPCTX_ALL_NAME) != 0 && group->bare > 0 &&
               group->carriers[0] + group->carriers[1] > 1) {
        epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                   "the EP %s wants every node to name its binary, and %u nodes do not tell which "
                   "of several it is: set it by hand",
                   job->profile->name, (uint64_t)group->bare);
    } else {
        return true;
    }
    return epctx__convert_refuse(c, &job->node, "ep_cache_context");
}

/* "name.ext" -> "name_2.ext". */
static bool epctx__numbered(epctx__convert *c, const char *name, uint64_t number,
                            char out[EPCTX_PATH_MAX])
{
    epctx_str whole = epctx_str_of(name);
    epctx_str folder = epctx_path_folder(whole);
    epctx_str stem = epctx__path_stem(epctx_path_file(whole));
    char digits[24];
    epctx__text text = epctx__text_of(digits, sizeof digits);
    epctx_str parts[3];
    epctx__text_char(&text, '_');
    epctx__text_number(&text, number, 10);
    parts[0].data = name;
    parts[0].size = folder.size + stem.size;
    parts[1].data = digits;
    parts[1].size = text.size;
    parts[2] = epctx_str_of(name + parts[0].size);
    return epctx__path_join(out, EPCTX_PATH_MAX, parts, 3, c->error) == EPCTX_OK;
}

/* The first name of its kind that no other context of the model has; `taken` maps a name to the
 * next number to try. */
static bool epctx__extract_name(epctx__convert *c, const epctx__job *job, epctx_map *taken)
{
    epctx__payload *payload = (epctx__payload *)c->payloads + job->payload;
    const char *pattern = c->opts.name != NULL ? c->opts.name : job->profile->binary;
    char base[EPCTX_PATH_MAX];
    char name[EPCTX_PATH_MAX];
    char *kept;
    uint32_t number;
    if (!epctx__fill_pattern(c, pattern, job, c->opts.name == NULL, base)) {
        return false;
    }
    memcpy(name, base, strlen(base) + 1);
    number = epctx_map_get(taken, epctx_str_of(name));
    if (number != EPCTX_MAP_NONE && c->opts.name != NULL) {
        epctx_fail(c->error, EPCTX_ERR_PATH,
                   "'%s' is the name of another context of this model: choose a node, or a name "
                   "with {node}",
                   name);
        return epctx__convert_refuse(c, &job->node, "ep_cache_context");
    }
    while (number != EPCTX_MAP_NONE && epctx_map_get(taken, epctx_str_of(name)) != EPCTX_MAP_NONE) {
        if (!epctx__numbered(c, base, number++, name)) {
            return false;
        }
    }
    if (number != EPCTX_MAP_NONE) { /* the key of `taken` is borrowed, and this one is there */
        epctx_map_put(taken, epctx_str_of(base), number);
    }
    kept = epctx_arena_copy(c->arena, epctx_str_of(name));
    if (kept == NULL || epctx_map_put(taken, epctx_str_of(kept), 1) != EPCTX_OK) {
        return epctx__convert_nomem(c);
    }
    payload->name = epctx_str_of(kept);
    return epctx__convert_name(c, payload->name, job->profile) &&
           epctx__convert_file(c, payload->name, &payload->bytes, 1, payload->bytes.size);
}

static bool epctx__extract_store(epctx__convert *c, epctx__job *job)
{
    const epctx__payload *payload = (const epctx__payload *)c->payloads + job->payload;
    return epctx__convert_str(c, job->view, "ep_cache_context", payload->name) &&
           epctx__convert_int(c, job->view, "embed_mode", 0) &&
           epctx__convert_note(c, EPCTX_CHANGE_EXTRACTED, job->node.name, payload->name,
                               payload->bytes.size, NULL);
}

/* EPs that want every node to name the binary: secondary nodes become primary ones. */
static bool epctx__extract_bare(epctx__convert *c, epctx__job *job)
{
    uint32_t at = c->groups[job->group].payload;
    epctx_str name;
    if (at == EPCTX_MAP_NONE) {
        return true;
    }
    job->bare = false;
    name = ((const epctx__payload *)c->payloads + at)->name;
    return epctx__convert_int(c, job->view, "main_context", 1) &&
           epctx__convert_str(c, job->view, "ep_cache_context", name) &&
           epctx__convert_int(c, job->view, "embed_mode", 0) &&
           epctx__convert_note(c, EPCTX_CHANGE_FOLLOWED, job->node.name, name, 0, NULL);
}

/* Contexts to be extracted are numbered, names of files that stay are taken. */
static bool epctx__extract_plan(epctx__convert *c, epctx_map *taken)
{
    epctx_map sizes, seen;
    size_t i;
    bool due;
    epctx_map_init(&sizes, c->arena);
    epctx_map_init(&seen, c->arena);
    for (i = 0; i < c->job_count; i++) {
        epctx_epnode *node = &c->jobs[i].node;
        epctx_str key;
        uint64_t *size = (uint64_t *)epctx__convert_array(c, 1, sizeof *size);
        uint32_t count;
        if (size == NULL) {
            return false;
        }
        *size = node->ep_cache_context.size;
        key = epctx__str((const uint8_t *)size, sizeof *size);
        count = epctx_map_get(&sizes, key);
        if (node->embed_mode == 1 &&
            epctx_map_put(&sizes, key, count == EPCTX_MAP_NONE ? 1 : 2) != EPCTX_OK) {
            return epctx__convert_nomem(c);
        }
        if (node->embed_mode == 0 && epctx_map_put(taken, node->ep_cache_context, 1) != EPCTX_OK) {
            return epctx__convert_nomem(c);
        }
    }
    for (i = 0; i < c->job_count; i++) {
        epctx__job *job = &c->jobs[i];
        if (!epctx__job_due(c, job, 0, &due)) {
            return false;
        }
        if (due) {
            if (!epctx__extract_allowed(c, job) || !epctx__extract_number(c, job, &sizes, &seen)) {
                return false;
            }
            if (c->groups[job->group].converted++ == 0) {
                c->groups[job->group].payload = job->payload;
            }
        }
    }
    return true;
}

static bool epctx__extract_step(epctx__convert *c)
{
    epctx_map taken;
    size_t i;
    epctx_map_init(&taken, c->arena);
    if (!epctx__jobs_collect(c)) {
        return false;
    }
    if (epctx_path_file(c->path).size == 0) {
        epctx_fail(c->error, EPCTX_ERR_PATH,
                   "the model came from memory: say where it will be written (output_path)");
        return false;
    }
    if (!epctx__extract_plan(c, &taken)) {
        return false;
    }
    for (i = 0; i < c->job_count; i++) {
        epctx__job *job = &c->jobs[i];
        bool named = job->payload != EPCTX_MAP_NONE &&
                     ((const epctx__payload *)c->payloads + job->payload)->name.size > 0;
        if (job->payload != EPCTX_MAP_NONE &&
            ((!named && !epctx__extract_name(c, job, &taken)) || !epctx__extract_store(c, job))) {
            return false;
        }
    }
    for (i = 0; i < c->job_count; i++) {
        epctx__job *job = &c->jobs[i];
        if (job->bare && (job->profile->traits & EPCTX_ALL_NAME) != 0 &&
            !epctx__extract_bare(c, job)) {
            return false;
        }
    }
    return epctx__jobs_settle(c, 0);
}

EPCTX_API epctx_status epctx_extract(epctx_model *model, const epctx_convert_opts *opts,
                                     epctx_changes *changes, epctx_error *error)
{
    return epctx__convert_run(model, opts, epctx__extract_step, changes, error);
}

/* -- initializers: what a tensor stores -- */

/* TensorProto's fields for data: the typed ones, raw_data, external_data, data_location. */
static bool epctx__is_storage(uint32_t number)
{
    return (number >= 4 && number <= 7) || number == 9 || number == 10 || number == 11 ||
           number == 13 || number == 14;
}

/* Behind the fields with numbers up to `number`, where a writer in field order puts it. */
static epctx_slot *epctx__sorted_place(const epctx_slot *parent, uint32_t number)
{
    epctx_slot *slot;
    epctx_slot *previous = NULL;
    for (slot = parent->message->first; slot != NULL; slot = slot->next) {
        if (!slot->removed && slot->number > number) {
            break;
        }
        previous = slot;
    }
    return previous;
}

static bool epctx__convert_place(epctx__convert *c, epctx__builder *b, epctx_slot *tensor,
                                 epctx_slot *fresh)
{
    epctx_slot *previous = fresh != NULL ? epctx__sorted_place(tensor, fresh->number) : NULL;
    return epctx__place(c->model, b, tensor, previous, fresh, c->error) == EPCTX_OK;
}

/* Takes the data out of a tensor; what else it has stays where it is. */
static epctx_slot *epctx__tensor_strip(epctx__convert *c, epctx_view view)
{
    epctx_slot *tensor;
    epctx_slot *slot;
    if (epctx__locate_message(c->model, view, &tensor, c->error) != EPCTX_OK) {
        return NULL;
    }
    for (slot = tensor->message->first; slot != NULL; slot = slot->next) {
        if (!slot->removed && epctx__is_storage(slot->number) &&
            epctx__remove_slot(c->model, slot, c->error) != EPCTX_OK) {
            return NULL;
        }
    }
    return tensor;
}

static bool epctx__tensor_raw(epctx__convert *c, epctx_view view, const uint8_t *data, size_t size)
{
    epctx__builder b = epctx__builder_of(c->model);
    epctx_slot *tensor = epctx__tensor_strip(c, view);
    return tensor != NULL &&
           epctx__convert_place(c, &b, tensor, epctx__add_bytes(&b, NULL, 9, data, size));
}

static bool epctx__tensor_pair(epctx__convert *c, epctx_slot *tensor, const char *key,
                               epctx_str value)
{
    epctx__builder b = epctx__builder_of(c->model);
    epctx_slot *entry = epctx__add_message(&b, NULL, 13);
    if (entry != NULL) {
        epctx__add_str(&b, entry, 1, epctx_str_of(key));
        epctx__add_str(&b, entry, 2, value);
    }
    return epctx__convert_place(c, &b, tensor, entry);
}

static epctx_str epctx__convert_decimal(epctx__convert *c, uint64_t number)
{
    char digits[24];
    epctx__text text = epctx__text_of(digits, sizeof digits);
    epctx_str out;
    epctx__text_number(&text, number, 10);
    out.data = digits;
    out.size = text.size;
    out.data = epctx_arena_copy(c->arena, out);
    out.size = out.data != NULL ? out.size : 0;
    return out;
}

static bool epctx__tensor_refer(epctx__convert *c, epctx_view view, epctx_str location,
                                uint64_t offset, uint64_t length)
{
    epctx__builder b = epctx__builder_of(c->model);
    epctx_str from = epctx__convert_decimal(c, offset);
    epctx_str size = epctx__convert_decimal(c, length);
    epctx_slot *tensor;
    if (from.size == 0 || size.size == 0) {
        return epctx__convert_nomem(c);
    }
    tensor = epctx__tensor_strip(c, view);
    if (tensor == NULL || !epctx__tensor_pair(c, tensor, "location", location) ||
        !epctx__tensor_pair(c, tensor, "offset", from) ||
        !epctx__tensor_pair(c, tensor, "length", size)) {
        return false;
    }
    return epctx__convert_place(c, &b, tensor, epctx__add_varint(&b, NULL, 14, 1)); /* EXTERNAL */
}

/* The bytes of a tensor, wherever they are. `why` says why there are none to be had; false is a
 * failure. */
static bool epctx__tensor_read(epctx__convert *c, epctx_model *model, epctx_view view,
                               epctx_tensor *out, const char **why)
{
    epctx_tensor_view t = epctx_tensor_of(view);
    epctx__loader loader;
    *why = NULL;
    memset(&loader, 0, sizeof loader);
    loader.model = model;
    loader.arena = &model->arena;
    loader.error = c->error;
    if (!epctx__load_tensor(&loader, view, out)) {
        return false;
    }
    if (out->data == NULL && out->elem_type == EPCTX_ONNX_STRING) {
        *why = "strings cannot be in a file";
    } else if (out->data == NULL && out->size == 0 && !t.has_raw) {
        *why = "its data is in fields of a packed type that cannot be moved";
    }
    return true;
}

/* -- initializers: all of a graph and its bodies -- */

typedef bool (*epctx__graph_step)(epctx__convert *c, epctx_view graph);

static bool epctx__each_graph(epctx__convert *c, epctx_view graph, epctx__graph_step step,
                              uint32_t depth)
{
    epctx_cursor nodes = epctx_fields(graph, 1);
    epctx_view node;
    if (!step(c, graph)) {
        return false;
    }
    while (depth > 0 && epctx__next_body(&nodes, &node)) {
        epctx_cursor attrs = epctx_fields(node, 5);
        epctx_view attr;
        while (epctx__next_body(&attrs, &attr)) {
            epctx_cursor fields = epctx_fields(attr, 0);
            epctx_field field;
            while (epctx_next_field(&fields, &field)) {
                if (field.wire == EPCTX_WIRE_LEN && (field.number == 6 || field.number == 11) &&
                    !epctx__each_graph(c, field.body, step, depth - 1)) { /* g, graphs */
                    return false;
                }
            }
        }
    }
    return true;
}

static bool epctx__every_graph(epctx__convert *c, epctx__graph_step step)
{
    return epctx__each_graph(c, epctx_model_graph(c->model).view, step, EPCTX_WALK_DEPTH);
}

/* -- inline -- */

static bool epctx__inline_tensor(epctx__convert *c, const epctx_tensor_view *tensor)
{
    epctx_tensor loaded;
    const char *why;
    if (!epctx__tensor_read(c, c->model, tensor->view, &loaded, &why)) {
        return false;
    }
    if (loaded.elem_type == EPCTX_ONNX_STRING) {
        epctx_fail(c->error, EPCTX_ERR_GRAPH, "initializer '%S': strings cannot be in a file",
                   &loaded.name);
        return false;
    }
    return epctx__tensor_raw(c, tensor->view, loaded.data, loaded.size) &&
           epctx__convert_note(c, EPCTX_CHANGE_INLINED, tensor->name, tensor->location,
                               loaded.size, NULL);
}

static bool epctx__inline_graph(epctx__convert *c, epctx_view graph)
{
    epctx_cursor it = epctx_fields(graph, 5);
    epctx_tensor_view tensor;
    while (epctx_next_tensor(&it, &tensor)) {
        if (tensor.external && !epctx__inline_tensor(c, &tensor)) {
            return false;
        }
    }
    return true;
}

static bool epctx__inline_step(epctx__convert *c)
{
    return epctx__every_graph(c, epctx__inline_graph) &&
           epctx__convert_fits(c, "keep initializers in a file");
}

EPCTX_API epctx_status epctx_init_inline(epctx_model *model, const epctx_convert_opts *opts,
                                         epctx_changes *changes, epctx_error *error)
{
    return epctx__convert_run(model, opts, epctx__inline_step, changes, error);
}

/* -- external -- */

static bool epctx__external_part(epctx__convert *c, const uint8_t *data, size_t size)
{
    epctx_span *part;
    if (size == 0) {
        return true;
    }
    if (!epctx__list_room(c->arena, &c->parts, c->part_count, &c->part_room, sizeof *part)) {
        return epctx__convert_nomem(c);
    }
    part = (epctx_span *)c->parts + c->part_count++;
    part->data = data;
    part->size = size;
    c->data_size += size;
    return true;
}

static bool epctx__external_tensor(epctx__convert *c, const epctx_tensor_view *tensor,
                                   epctx_str file)
{
    epctx_tensor loaded;
    const char *why;
    uint64_t offset;
    if (!epctx__tensor_read(c, c->model, tensor->view, &loaded, &why)) {
        return false;
    }
    if (why != NULL) {
        return epctx__convert_skip(c, tensor->name, 0, why);
    }
    if (loaded.size < c->opts.threshold) {
        return true;
    }
    offset = c->data_size + (0 - c->data_size) % c->opts.alignment;
    return epctx__external_part(c, NULL, (size_t)(offset - c->data_size)) &&
           epctx__external_part(c, loaded.data, loaded.size) &&
           epctx__tensor_refer(c, tensor->view, file, offset, loaded.size) &&
           epctx__convert_note(c, EPCTX_CHANGE_EXTERNAL, tensor->name, file, loaded.size, NULL);
}

static bool epctx__external_graph(epctx__convert *c, epctx_view graph)
{
    epctx_cursor it = epctx_fields(graph, 5);
    epctx_tensor_view tensor;
    while (epctx_next_tensor(&it, &tensor)) {
        if (tensor.external) {
            c->name_used = c->name_used || epctx_str_is(tensor.location, c->opts.name);
        } else if (!epctx__external_tensor(c, &tensor, epctx_str_of(c->opts.name))) {
            return false;
        }
    }
    return true;
}

/* Tensors that are attributes and large enough to be missed. */
static bool epctx__external_attrs(epctx__convert *c, epctx_view graph)
{
    epctx_cursor nodes = epctx_fields(graph, 1);
    epctx_view node;
    while (epctx__next_body(&nodes, &node)) {
        epctx_cursor attrs = epctx_fields(node, 5);
        epctx_attr_view attr;
        while (epctx_next_attr(&attrs, &attr)) {
            if (epctx__has_view(attr.t) && attr.t.size >= c->opts.threshold &&
                !epctx__convert_skip(c, epctx_node_of(node).name, attr.t.size,
                                     "attribute tensors stay: ORT looks into files for "
                                     "initializers only")) {
                return false;
            }
        }
    }
    return true;
}

static bool epctx__external_sparse(epctx__convert *c, epctx_view graph)
{
    epctx_cursor it = epctx_graph_sparse(epctx_graph_of(graph));
    epctx_sparse_view sparse;
    while (epctx_next_sparse(&it, &sparse)) {
        if (!epctx__convert_skip(c, sparse.values.name, 0,
                                 "sparse initializers stay in the model")) {
            return false;
        }
    }
    return true;
}

static bool epctx__external_step(epctx__convert *c)
{
    char name[EPCTX_PATH_MAX];
    if (epctx_path_file(c->path).size == 0) {
        epctx_fail(c->error, EPCTX_ERR_PATH,
                   "the model came from memory: say where it will be written (output_path)");
        return false;
    }
    c->opts.alignment = c->opts.alignment != 0 ? c->opts.alignment : 4096;
    if ((c->opts.alignment & (c->opts.alignment - 1)) != 0 || c->opts.alignment > 1u << 30) {
        epctx_fail(c->error, EPCTX_ERR_ARG, "alignment %u is not a power of two up to 2^30",
                   c->opts.alignment);
        return false;
    }
    if (!epctx__fill_pattern(c, c->opts.name != NULL ? c->opts.name : "{file}.data", NULL, false,
                             name) ||
        !epctx__convert_name(c, epctx_str_of(name), NULL)) {
        return false;
    }
    c->opts.name = epctx_arena_copy(c->arena, epctx_str_of(name));
    if (c->opts.name == NULL) {
        return epctx__convert_nomem(c);
    }
    if (!epctx__every_graph(c, epctx__external_graph) ||
        !epctx__every_graph(c, epctx__external_attrs) ||
        !epctx__every_graph(c, epctx__external_sparse)) {
        return false;
    }
    if (c->name_used && c->part_count > 0) {
        epctx_fail(c->error, EPCTX_ERR_PATH,
                   "'%s' has weights of this model already: bring them in first, or choose another "
                   "name",
                   c->opts.name);
        return false;
    }
    return c->part_count == 0 ||
           epctx__convert_file(c, epctx_str_of(c->opts.name), (const epctx_span *)c->parts,
                               c->part_count, c->data_size);
}

EPCTX_API epctx_status epctx_init_external(epctx_model *model, const epctx_convert_opts *opts,
                                           epctx_changes *changes, epctx_error *error)
{
    return epctx__convert_run(model, opts, epctx__external_step, changes, error);
}

/* -- prune -- */

static bool epctx__prune_use(epctx__convert *c, epctx_map *used, epctx_str name)
{
    return epctx_map_put(used, name, 1) == EPCTX_OK || epctx__convert_nomem(c);
}

static bool epctx__prune_captures(epctx__convert *c, epctx_map *used, epctx_view node)
{
    epctx__loader loader;
    epctx__captures captures = {NULL, 0};
    size_t i;
    memset(&loader, 0, sizeof loader);
    loader.model = c->model;
    loader.arena = c->arena;
    loader.error = c->error;
    if (!epctx__capture_node(&loader, node, NULL, &captures, 100)) {
        return false;
    }
    if (captures.count == 0) {
        return true;
    }
    captures.out = (epctx_str *)epctx__convert_array(c, captures.count, sizeof *captures.out);
    captures.count = 0;
    if (captures.out == NULL || !epctx__capture_node(&loader, node, NULL, &captures, 100)) {
        return false;
    }
    for (i = 0; i < captures.count; i++) {
        if (!epctx__prune_use(c, used, captures.out[i])) {
            return false;
        }
    }
    return true;
}

/* What a graph reads, its bodies included, and what its interface and annotations name. */
static bool epctx__prune_used(epctx__convert *c, epctx_map *used, epctx_graph_view graph)
{
    epctx_cursor nodes = epctx_graph_nodes(graph);
    epctx_cursor inputs = epctx_graph_inputs(graph);
    epctx_cursor outputs = epctx_graph_outputs(graph);
    epctx_cursor annotations = epctx_graph_annotations(graph);
    epctx_annotation_view annotation;
    epctx_value_view value;
    epctx_view node;
    while (epctx__next_body(&nodes, &node)) {
        epctx_cursor names = epctx_fields(node, 1);
        epctx_str name;
        while (epctx_next_str(&names, &name)) {
            if (!epctx__prune_use(c, used, name)) {
                return false;
            }
        }
        if (!epctx__prune_captures(c, used, node)) {
            return false;
        }
    }
    while (epctx_next_value(&inputs, &value) || epctx_next_value(&outputs, &value)) {
        if (!epctx__prune_use(c, used, value.name)) {
            return false;
        }
    }
    while (epctx_next_annotation(&annotations, &annotation)) {
        epctx_cursor pairs = epctx_annotation_pairs(&annotation);
        epctx_pair pair;
        if (!epctx__prune_use(c, used, annotation.tensor_name)) {
            return false;
        }
        while (epctx_next_pair(&pairs, &pair)) {
            if (!epctx__prune_use(c, used, pair.value)) {
                return false;
            }
        }
    }
    return true;
}

/* Training graphs read and replace initializers of the main graph. */
static bool epctx__prune_training(epctx__convert *c, epctx_map *used)
{
    epctx_cursor it = epctx_model_trainings(c->model);
    epctx_training_view training;
    int updates;
    while (epctx_next_training(&it, &training)) {
        if (!epctx__prune_used(c, used, training.initialization) ||
            !epctx__prune_used(c, used, training.algorithm)) {
            return false;
        }
        for (updates = 0; updates < 2; updates++) {
            epctx_cursor pairs = epctx_training_bindings(&training, updates == 1);
            epctx_pair pair;
            while (epctx_next_pair(&pairs, &pair)) {
                if (!epctx__prune_use(c, used, pair.key) ||
                    !epctx__prune_use(c, used, pair.value)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static bool epctx__prune_one(epctx__convert *c, const epctx_map *used, epctx_view view,
                             epctx_str name)
{
    return epctx_map_get(used, name) != EPCTX_MAP_NONE ||
           (epctx_remove(c->model, view, c->error) == EPCTX_OK &&
            epctx__convert_note(c, EPCTX_CHANGE_PRUNED, name, epctx_str_of(NULL), view.size,
                                NULL));
}

static bool epctx__prune_graph(epctx__convert *c, epctx_view graph)
{
    epctx_graph_view view = epctx_graph_of(graph);
    epctx_cursor tensors = epctx_graph_initializers(view);
    epctx_cursor sparses = epctx_graph_sparse(view);
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    epctx_map used;
    epctx_map_init(&used, c->arena);
    if (!epctx__prune_used(c, &used, view) || (!c->inner && !epctx__prune_training(c, &used))) {
        return false;
    }
    c->inner = true;
    while (epctx_next_tensor(&tensors, &tensor)) {
        if (!epctx__prune_one(c, &used, tensor.view, tensor.name)) {
            return false;
        }
    }
    while (epctx_next_sparse(&sparses, &sparse)) {
        if (!epctx__prune_one(c, &used, sparse.view, sparse.values.name)) {
            return false;
        }
    }
    return true;
}

static bool epctx__prune_step(epctx__convert *c)
{
    return epctx__every_graph(c, epctx__prune_graph);
}

EPCTX_API epctx_status epctx_init_prune(epctx_model *model, const epctx_convert_opts *opts,
                                        epctx_changes *changes, epctx_error *error)
{
    return epctx__convert_run(model, opts, epctx__prune_step, changes, error);
}

/* -- weightless and self-contained -- */

/* Names that EPContext nodes of the main graph take; a job gets `payload` 0 when it takes any. */
static bool epctx__weight_names(epctx__convert *c, epctx_map *weights)
{
    epctx_cursor it = epctx_graph_initializers(epctx_model_graph(c->model));
    epctx_tensor_view tensor;
    epctx_map initializers;
    size_t i;
    epctx_map_init(&initializers, c->arena);
    while (epctx_next_tensor(&it, &tensor)) {
        if (epctx_map_put(&initializers, tensor.name, 1) != EPCTX_OK) {
            return epctx__convert_nomem(c);
        }
    }
    for (i = 0; i < c->job_count; i++) {
        epctx_cursor names = epctx_fields(c->jobs[i].view, 1);
        epctx_str name;
        while (c->jobs[i].chosen && epctx_next_str(&names, &name)) {
            if (epctx_map_get(&initializers, name) == EPCTX_MAP_NONE) {
                continue;
            }
            c->jobs[i].payload = 0;
            if (epctx_map_put(weights, name, 1) != EPCTX_OK) {
                return epctx__convert_nomem(c);
            }
        }
    }
    return true;
}

/* The source model's name: given, or what the first node that takes weights stores. */
static bool epctx__weight_source(epctx__convert *c, epctx_str *name)
{
    size_t i;
    *name = epctx_str_of(c->opts.source);
    for (i = 0; i < c->job_count && name->size == 0; i++) {
        if (c->jobs[i].payload == 0) {
            *name = c->jobs[i].node.onnx_model_filename;
        }
    }
    if (name->size > 0) {
        return true;
    }
    epctx_fail(c->error, EPCTX_ERR_ARG,
               "no node stores onnx_model_filename: say which model has the weights (--source)");
    return false;
}

/* Where the data of a tensor of the source is, as this model would name it. */
static bool epctx__weight_origin(epctx__convert *c, const epctx_model *source, epctx_str name,
                                const epctx_tensor_view *tensor, epctx_str *location,
                                uint64_t *offset)
{
    epctx_str parts[2];
    char path[EPCTX_PATH_MAX];
    *location = name;
    if (!tensor->external) {
        *offset = (uint64_t)(tensor->raw.data - source->source.data);
        return true;
    }
    parts[0] = epctx_path_folder(name);
    parts[1] = tensor->location;
    *offset = tensor->offset;
    if (epctx__path_join(path, sizeof path, parts, 2, c->error) != EPCTX_OK) {
        return false;
    }
    location->data = epctx_arena_copy(c->arena, epctx_str_of(path));
    location->size = strlen(path);
    return location->data != NULL || epctx__convert_nomem(c);
}

static bool epctx__same_dims(const epctx_tensor *a, const epctx_tensor *b)
{
    return a->elem_type == b->elem_type && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static bool epctx__weight_refer(epctx__convert *c, epctx_model *source, epctx_str source_name,
                                const epctx_tensor_view *mine, epctx_view theirs)
{
    epctx_tensor_view view = epctx_tensor_of(theirs);
    epctx_tensor a, b;
    epctx_str location;
    uint64_t offset;
    const char *why;
    if (!epctx__tensor_read(c, c->model, mine->view, &a, &why) ||
        (why == NULL && !epctx__tensor_read(c, source, theirs, &b, &why))) {
        return false;
    }
    if (why == NULL && (!epctx__same_dims(&a, &b) || a.size != b.size ||
                        (a.size > 0 && memcmp(a.data, b.data, a.size) != 0))) {
        why = "the source model has another tensor of this name";
    }
    if (why == NULL && !view.external && !view.has_raw) {
        why = "the source model stores it in typed fields, which cannot be referred to";
    }
    if (why == NULL && a.size == 0) {
        why = "has no bytes";
    }
    if (why != NULL) {
        return epctx__convert_skip(c, mine->name, a.size, why);
    }
    return epctx__weight_origin(c, source, source_name, &view, &location, &offset) &&
           epctx__tensor_refer(c, mine->view, location, offset, a.size) &&
           epctx__convert_note(c, EPCTX_CHANGE_EXTERNAL, mine->name, location, a.size, NULL);
}

static bool epctx__weight_each(epctx__convert *c, epctx_model *source, epctx_str source_name,
                               const epctx_map *weights)
{
    epctx_cursor it = epctx_graph_initializers(epctx_model_graph(source));
    epctx_tensor_view tensor;
    epctx_view *views;
    epctx_map theirs;
    uint32_t count = 0;
    views = (epctx_view *)epctx__convert_array(c, epctx__count(it), sizeof *views);
    epctx_map_init(&theirs, c->arena);
    while (views != NULL && epctx_next_tensor(&it, &tensor)) {
        views[count] = tensor.view;
        if (epctx_map_put(&theirs, tensor.name, count++) != EPCTX_OK) {
            return epctx__convert_nomem(c);
        }
    }
    it = epctx_graph_initializers(epctx_model_graph(c->model));
    while (views != NULL && epctx_next_tensor(&it, &tensor)) {
        uint32_t at = epctx_map_get(&theirs, tensor.name);
        if (epctx_map_get(weights, tensor.name) == EPCTX_MAP_NONE) {
            continue;
        }
        if (at == EPCTX_MAP_NONE) {
            if (!epctx__convert_skip(c, tensor.name, 0, "the source model does not have it")) {
                return false;
            }
        } else if (!epctx__weight_refer(c, source, source_name, &tensor, views[at])) {
            return false;
        }
    }
    return views != NULL;
}

static bool epctx__weight_open(epctx__convert *c, epctx_str name, epctx_model *source)
{
    char path[EPCTX_PATH_MAX];
    epctx_open_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.io = c->model->io;
    opts.path_flags = c->model->path_flags;
    opts.allocator =
        c->arena->allocator.alloc_fn != NULL ? &c->arena->allocator : NULL;
    return epctx_path_find(c->model->io, epctx_path_folder(epctx_str_of(c->model->path)), name,
                           c->model->path_flags, path, sizeof path, c->error) == EPCTX_OK &&
           epctx_model_open_file(source, path, &opts, c->error) == EPCTX_OK;
}

static bool epctx__weightless_step(epctx__convert *c)
{
    epctx_model source;
    epctx_map weights;
    epctx_str name;
    size_t i;
    bool ok;
    epctx_map_init(&weights, c->arena);
    memset(&source, 0, sizeof source);
    if (!epctx__jobs_collect(c) || !epctx__weight_names(c, &weights)) {
        return false;
    }
    if (weights.count == 0) {
        epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                   "no EPContext node takes weights as inputs: they are in its binary, and only "
                   "the EP can make one without (ep.enable_weightless at compilation)");
        return false;
    }
    if (!epctx__weight_source(c, &name)) {
        return false;
    }
    ok = epctx__weight_open(c, name, &source) && epctx__weight_each(c, &source, name, &weights);
    epctx_model_close(&source);
    for (i = 0; ok && c->done > 0 && i < c->job_count; i++) {
        if (c->jobs[i].payload == 0 && c->jobs[i].node.onnx_model_filename.size == 0) {
            ok = epctx__convert_str(c, c->jobs[i].view, "onnx_model_filename", name) &&
                 epctx__convert_note(c, EPCTX_CHANGE_SOURCE, c->jobs[i].node.name, name, 0, NULL);
        }
    }
    return ok;
}

EPCTX_API epctx_status epctx_weightless(epctx_model *model, const epctx_convert_opts *opts,
                                        epctx_changes *changes, epctx_error *error)
{
    return epctx__convert_run(model, opts, epctx__weightless_step, changes, error);
}

/* A binary that has no weights itself gets them at load, from the source model. */
static bool epctx__self_allowed(epctx__convert *c, const epctx__job *job)
{
    if (!job->chosen || !epctx__ends_with(job->node.ep_cache_context, ".stripped.engine")) {
        return true;
    }
    epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
               "names an engine without weights: only the EP can put them in; compile again "
               "without trt_weight_stripped_engine_enable");
    return epctx__convert_refuse(c, &job->node, "ep_cache_context");
}

static bool epctx__self_step(epctx__convert *c)
{
    epctx_cursor it;
    epctx_tensor_view tensor;
    epctx_map weights;
    size_t i;
    epctx_map_init(&weights, c->arena);
    if (!epctx__jobs_collect(c) || !epctx__weight_names(c, &weights)) {
        return false;
    }
    it = epctx_graph_initializers(epctx_model_graph(c->model));
    while (epctx_next_tensor(&it, &tensor)) {
        if (tensor.external && epctx_map_get(&weights, tensor.name) != EPCTX_MAP_NONE &&
            !epctx__inline_tensor(c, &tensor)) {
            return false;
        }
    }
    for (i = 0; i < c->job_count; i++) {
        const epctx__job *job = &c->jobs[i];
        if (!epctx__self_allowed(c, job)) {
            return false;
        }
        if (job->payload == 0 && (job->node.present & EPCTX__BIT(ONNX_MODEL_FILENAME)) != 0 &&
            (epctx_unset_attr(c->model, job->view, epctx_str_of("onnx_model_filename"),
                              c->error) != EPCTX_OK ||
             !epctx__convert_note(c, EPCTX_CHANGE_SOURCE, job->node.name, epctx_str_of(NULL), 0,
                                  NULL))) {
            return false;
        }
    }
    return epctx__convert_fits(c, "keep the weights in a file (init --external)");
}

EPCTX_API epctx_status epctx_self_contained(epctx_model *model, const epctx_convert_opts *opts,
                                            epctx_changes *changes, epctx_error *error)
{
    return epctx__convert_run(model, opts, epctx__self_step, changes, error);
}

/* -- several files at once -- */

typedef struct epctx__member {
    epctx_io_file out;
    epctx_mapping old; /* what stands there, for the way back */
    bool exists;
    bool open; /* complete under its temporary name */
    bool done; /* visible */
} epctx__member;

typedef struct epctx__group_write {
    epctx_model *model;
    const epctx_io *io;
    const char *path;
    epctx_write_opts opts;
    epctx_overwrite overwrite;
    epctx_output_file *files;
    size_t count;
    epctx__member *members;
    epctx__output *out;        /* of the model */
    epctx_mapping old;         /* the model that stands at `path`, */
    char real[EPCTX_PATH_MAX]; /* its name without links, */
    bool removed;              /* and whether it was taken away */
    char backup[EPCTX_PATH_MAX]; /* of the model, "" when there is none */
    epctx_error *error;
} epctx__group_write;

static bool epctx__parts_equal(const epctx_output_file *file, const epctx_mapping *mapping)
{
    uint64_t at = 0;
    size_t i, k;
    if (file->size != mapping->size) {
        return false;
    }
    for (i = 0; i < file->part_count; i++) {
        const epctx_span *part = &file->parts[i];
        if (part->size > mapping->size - at) {
            return false;
        }
        if (part->data != NULL && memcmp(mapping->data + at, part->data, part->size) != 0) {
            return false;
        }
        for (k = 0; part->data == NULL && k < part->size; k++) {
            if (mapping->data[at + k] != 0) {
                return false;
            }
        }
        at += part->size;
    }
    return at == mapping->size;
}

/* A file that the model itself is read from must not be written over. */
static epctx_status epctx__group_source(epctx__group_write *g, const char *path)
{
    const epctx__file *file;
    char real[EPCTX_PATH_MAX];
    char model[EPCTX_PATH_MAX];
    epctx_status status = g->io->canonical_fn(g->io->user, path, real, sizeof real, g->error);
    bool same = status == EPCTX_OK && strcmp(real, g->real) == 0;
    for (file = g->model->files; file != NULL && !same && status == EPCTX_OK; file = file->next) {
        same = strcmp(real, file->path) == 0;
    }
    if (status == EPCTX_OK && !same && g->model->path[0] != '\0') {
        epctx_error ignored;
        epctx_error_clear(&ignored);
        same = g->io->canonical_fn(g->io->user, g->model->path, model, sizeof model, &ignored) ==
                   EPCTX_OK &&
               strcmp(real, model) == 0;
    }
    return !same ? status
                 : epctx_fail(g->error, EPCTX_ERR_PATH,
                              "belongs to the model that is converted and would be overwritten: "
                              "choose another name");
}

/* What stands at the place of a file. */
static epctx_status epctx__group_look(epctx__group_write *g, size_t index)
{
    epctx_output_file *file = &g->files[index];
    epctx__member *member = &g->members[index];
    epctx_file_kind kind = EPCTX_FILE_NONE;
    uint64_t size;
    epctx_status status =
        epctx_output_check(g->io, file->path, EPCTX_OVERWRITE_REPLACE, g->error);
    file->kept = false;
    if (status == EPCTX_OK) {
        status = g->io->stat_fn(g->io->user, file->path, &kind, &size, g->error);
    }
    if (status != EPCTX_OK || kind == EPCTX_FILE_NONE) {
        return status;
    }
    member->exists = true;
    status = g->io->map_fn(g->io->user, file->path, &member->old, g->error);
    if (status == EPCTX_OK) {
        file->kept = epctx__parts_equal(file, &member->old);
    }
    if (status == EPCTX_OK && !file->kept && g->overwrite == EPCTX_OVERWRITE_FAIL) {
        status = epctx_fail(g->error, EPCTX_ERR_EXISTS,
                            "exists already with other bytes: choose another name, remove it, or "
                            "allow overwriting");
    }
    return status == EPCTX_OK && !file->kept ? epctx__group_source(g, file->path) : status;
}

/* Everything that can be known before something is written. */
static epctx_status epctx__group_check(epctx__group_write *g)
{
    epctx_file_kind kind = EPCTX_FILE_NONE;
    uint64_t size;
    size_t i;
    epctx_status status =
        g->opts.allow_huge ? EPCTX_OK : epctx__check_huge(g->model, g->error);
    if (status == EPCTX_OK) {
        status = epctx_output_check(g->io, g->path, g->opts.overwrite, g->error);
    }
    if (status == EPCTX_OK) {
        status = g->io->stat_fn(g->io->user, g->path, &kind, &size, g->error);
    }
    if (status == EPCTX_OK && kind == EPCTX_FILE_REGULAR) {
        status = g->io->canonical_fn(g->io->user, g->path, g->real, sizeof g->real, g->error);
    }
    if (status != EPCTX_OK) {
        epctx_blame(g->error, g->path, NULL, NULL);
    }
    for (i = 0; i < g->count && status == EPCTX_OK; i++) {
        status = epctx__group_look(g, i);
        if (status != EPCTX_OK) {
            epctx_blame(g->error, g->files[i].path, NULL, NULL);
        }
    }
    return status;
}

static epctx_status epctx__parts_write(const epctx_io *io, epctx_io_file *out,
                                       const epctx_output_file *file, epctx_error *error)
{
    static const uint8_t zeros[4096] = {0};
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < file->part_count; i++) {
        size_t left = file->parts[i].size;
        if (file->parts[i].data != NULL && left > 0) {
            status = io->write_fn(io->user, out, file->parts[i].data, left, error);
            left = 0;
        }
        while (status == EPCTX_OK && left > 0) {
            size_t piece = left < sizeof zeros ? left : sizeof zeros;
            status = io->write_fn(io->user, out, zeros, piece, error);
            left -= piece;
        }
        if (status != EPCTX_OK) {
            return status;
        }
    }
    return io->sync_fn(io->user, out, error);
}

/* All that is new, complete and durable under temporary names. */
static epctx_status epctx__group_prepare(epctx__group_write *g)
{
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < g->count && status == EPCTX_OK; i++) {
        epctx__member *member = &g->members[i];
        if (g->files[i].kept) {
            continue;
        }
        status = g->io->create_fn(g->io->user, g->files[i].path, &member->out, g->error);
        member->open = status == EPCTX_OK;
        if (member->open) {
            status = epctx__parts_write(g->io, &member->out, &g->files[i], g->error);
        }
        if (status != EPCTX_OK) {
            epctx_blame(g->error, g->files[i].path, NULL, NULL);
        }
    }
    if (status == EPCTX_OK) {
        status = epctx__output_open(g->out, g->io, g->path, g->error);
        if (status == EPCTX_OK) {
            status = epctx__output_model(g->out, g->model);
        }
        if (status != EPCTX_OK) {
            epctx_blame(g->error, g->path, NULL, NULL);
        }
    }
    return status;
}

/* What is asked for as a backup stays under another name. */
static epctx_status epctx__group_backups(epctx__group_write *g)
{
    char backup[EPCTX_PATH_MAX];
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < g->count && status == EPCTX_OK; i++) {
        if (g->members[i].exists && !g->files[i].kept && g->overwrite == EPCTX_OVERWRITE_BACKUP) {
            status = epctx_output_backup(g->io, g->files[i].path, backup, sizeof backup, g->error);
        }
    }
    if (status == EPCTX_OK && g->real[0] != '\0' && g->opts.overwrite == EPCTX_OVERWRITE_BACKUP) {
        status = epctx_output_backup(g->io, g->real, g->backup, sizeof g->backup, g->error);
    }
    return status;
}

/* The old model must not meet a new file: it goes first, where a file is replaced. */
static epctx_status epctx__group_clear(epctx__group_write *g)
{
    bool replaces = false;
    epctx_status status;
    size_t i;
    for (i = 0; i < g->count; i++) {
        replaces = replaces || (g->members[i].exists && !g->files[i].kept);
    }
    if (!replaces || g->real[0] == '\0') {
        return EPCTX_OK;
    }
    status = g->io->map_fn(g->io->user, g->real, &g->old, g->error);
    if (status == EPCTX_OK) {
        status = g->io->remove_fn(g->io->user, g->real, g->error);
    }
    if (status == EPCTX_OK) {
        g->removed = true;
        status = g->io->sync_folder_fn(g->io->user, g->real, g->error);
    }
    if (status != EPCTX_OK) {
        epctx_blame(g->error, g->real, NULL, NULL);
    }
    return status;
}

static epctx_status epctx__write_commit(epctx__group_write *g)
{
    epctx_status status = epctx__group_backups(g);
    size_t i;
    if (status == EPCTX_OK) {
        status = epctx__group_clear(g);
    }
    for (i = 0; i < g->count && status == EPCTX_OK; i++) {
        epctx__member *member = &g->members[i];
        if (!member->open) {
            continue;
        }
        member->open = false;
        status = g->io->commit_fn(g->io->user, &member->out, g->error);
        if (status == EPCTX_OK) {
            member->done = true;
            status = g->io->sync_folder_fn(g->io->user, g->files[i].path, g->error);
        }
        if (status != EPCTX_OK) {
            epctx_blame(g->error, g->files[i].path, NULL, NULL);
        }
    }
    if (status == EPCTX_OK) {
        status = epctx__output_commit(g->out);
        if (status != EPCTX_OK) {
            epctx_blame(g->error, g->path, NULL, NULL);
        }
    }
    return status;
}

/* Puts bytes back under a name, as well as it goes. */
static void epctx__group_restore(const epctx_io *io, epctx_io_file *out, const char *path,
                                 const epctx_mapping *bytes)
{
    epctx_error ignored;
    epctx_output_file file;
    epctx_span part;
    epctx_error_clear(&ignored);
    part.data = bytes->data;
    part.size = bytes->size;
    memset(&file, 0, sizeof file);
    file.parts = &part;
    file.part_count = 1;
    if (io->create_fn(io->user, path, out, &ignored) != EPCTX_OK) {
        return;
    }
    if (epctx__parts_write(io, out, &file, &ignored) == EPCTX_OK) {
        io->commit_fn(io->user, out, &ignored);
    } else {
        io->abort_fn(io->user, out);
    }
}

/* After a failure: temporary files go, and what was replaced comes back, the model last. */
static void epctx__group_rollback(epctx__group_write *g)
{
    epctx_error ignored;
    size_t i;
    epctx_error_clear(&ignored);
    epctx__output_abort(g->out);
    for (i = 0; i < g->count; i++) {
        epctx__member *member = &g->members[i];
        if (member->open) {
            g->io->abort_fn(g->io->user, &member->out);
        } else if (member->done && member->exists) {
            epctx__group_restore(g->io, &member->out, g->files[i].path, &member->old);
        } else if (member->done) {
            g->io->remove_fn(g->io->user, g->files[i].path, &ignored);
        }
    }
    if (g->removed) {
        epctx__group_restore(g->io, &g->out->file, g->real, &g->old);
    }
    if (g->backup[0] != '\0') {
        epctx_error_clear(&ignored);
        g->io->remove_fn(g->io->user, g->backup, &ignored);
    }
}

static epctx_status epctx__group_run(epctx__group_write *g)
{
    epctx_status status = epctx__group_prepare(g);
    if (status == EPCTX_OK) {
        status = epctx__write_commit(g);
    }
    if (status != EPCTX_OK) {
        epctx__group_rollback(g);
        return status;
    }
    if (g->opts.backup != NULL && g->backup[0] != '\0') {
        epctx_str whole = epctx_str_of(g->backup);
        status = epctx__path_join(g->opts.backup, g->opts.backup_capacity, &whole, 1, g->error);
    }
    return status == EPCTX_OK ? g->io->sync_folder_fn(g->io->user, g->path, g->error) : status;
}

static epctx_status epctx__group_call(epctx__group_write *g, bool check_only)
{
    epctx_status status = epctx__group_check(g);
    size_t i;
    if (status == EPCTX_OK && !check_only) {
        status = epctx__group_run(g);
    }
    for (i = 0; i < g->count; i++) {
        if (g->members[i].old.handle != NULL) {
            g->io->unmap_fn(g->io->user, &g->members[i].old);
        }
    }
    if (g->old.handle != NULL) {
        g->io->unmap_fn(g->io->user, &g->old);
    }
    return status;
}

static epctx_status epctx__write_begin(epctx_model *model, size_t count, epctx__group_write **out,
                                       epctx_error *error)
{
    epctx__group_write *g;
    epctx_error_clear(error);
    if (model->io == NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    }
    g = (epctx__group_write *)epctx_arena_alloc(&model->arena, sizeof *g);
    *out = g;
    if (g != NULL) {
        g->members = (epctx__member *)epctx_arena_array(&model->arena, count, sizeof *g->members);
        g->out = (epctx__output *)epctx_arena_alloc(&model->arena, sizeof *g->out);
    }
    if (g == NULL || g->members == NULL || g->out == NULL) {
        return epctx__nomem(error, model->arena.missing);
    }
    g->model = model;
    g->io = model->io;
    g->count = count;
    g->error = error;
    return EPCTX_OK;
}

static epctx_status epctx__group_start(epctx_model *model, const char *path,
                                       const epctx_write_opts *opts, epctx_output_file *files,
                                       size_t count, epctx_overwrite overwrite, bool check_only,
                                       epctx_error *error)
{
    epctx__group_write *g = NULL;
    epctx_status status = epctx__write_begin(model, count, &g, error);
    if (status != EPCTX_OK) {
        return status;
    }
    if (opts != NULL) {
        g->opts = *opts;
    }
    if (g->opts.backup != NULL && g->opts.backup_capacity > 0) {
        g->opts.backup[0] = '\0';
    }
    g->path = path;
    g->files = files;
    g->overwrite = overwrite;
    return epctx__group_call(g, check_only);
}

EPCTX_API epctx_status epctx_write_group(epctx_model *model, const char *path,
                                         const epctx_write_opts *opts, epctx_output_file *files,
                                         size_t count, epctx_overwrite overwrite,
                                         epctx_error *error)
{
    return epctx__group_start(model, path, opts, files, count, overwrite, false, error);
}

EPCTX_API epctx_status epctx_check_group(epctx_model *model, const char *path,
                                         const epctx_write_opts *opts, epctx_output_file *files,
                                         size_t count, epctx_overwrite overwrite,
                                         epctx_error *error)
{
    return epctx__group_start(model, path, opts, files, count, overwrite, true, error);
}

/* -- a context binary under another name -- */

typedef struct epctx__moved {
    epctx_model model;
    const char *path;
    epctx__output *out; /* NULL: the model does not name the binary */
    size_t nodes;
    bool done;
} epctx__moved;

typedef struct epctx__move {
    const epctx_io *io;
    const epctx_move_opts *opts;
    epctx_arena arena;
    char from[EPCTX_PATH_MAX]; /* without links */
    char to[EPCTX_PATH_MAX];
    bool made;                 /* the new name, by us */
    epctx__moved *models;
    size_t count;
    epctx_move_report report;
    epctx_error *error;
} epctx__move;

/* `to` without links: its folder's, and its own name. */
static epctx_status epctx__move_target(epctx__move *m, const char *to)
{
    char folder[EPCTX_PATH_MAX];
    epctx_str whole = epctx_str_of(to);
    epctx_str parts[3];
    epctx_status status = epctx_output_check(m->io, to, EPCTX_OVERWRITE_REPLACE, m->error);
    if (status == EPCTX_OK && epctx_path_file(whole).size == 0) {
        status = epctx_fail(m->error, EPCTX_ERR_PATH, "is a folder, a file's name is expected");
    }
    parts[0] = epctx_path_folder(whole);
    parts[0] = parts[0].size > 0 ? parts[0] : epctx_str_of(".");
    if (status == EPCTX_OK) {
        status = epctx__path_join(m->to, sizeof m->to, parts, 1, m->error);
    }
    if (status == EPCTX_OK) {
        status = m->io->canonical_fn(m->io->user, m->to, folder, sizeof folder, m->error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    parts[0] = epctx_str_of(folder);
    parts[1] = epctx_str_of(epctx__is_separator(folder[parts[0].size - 1]) ? "" : "/");
    parts[2] = epctx_path_file(whole);
    return epctx__path_join(m->to, sizeof m->to, parts, 3, m->error);
}

static bool epctx__same_suffix(const char *suffix, epctx_str a, epctx_str b)
{
    return epctx__ends_with(a, suffix) == epctx__ends_with(b, suffix);
}

/* Whether the EP of a node would take the new name. */
static epctx_status epctx__move_allowed(epctx__move *m, const epctx_epnode *node, epctx_str name)
{
    const epctx_profile *profile =
        m->opts->profile != NULL ? m->opts->profile : epctx_profile_of(node->source);
    epctx_status status = epctx_path_check(name, m->error);
    size_t i;
    for (i = 0; status == EPCTX_OK && (profile->traits & EPCTX_NO_DOTS) != 0 && i + 1 < name.size;
         i++) {
        if (name.data[i] == '.' && name.data[i + 1] == '.') {
            status = epctx_fail(m->error, EPCTX_ERR_UNSUPPORTED,
                                "the EP %s refuses '..' anywhere in a name: choose another",
                                profile->name);
        }
    }
    if (status == EPCTX_OK && strcmp(profile->name, "openvino") == 0 &&
        epctx__ends_with(node->ep_cache_context, ".xml")) {
        status = epctx_fail(m->error, EPCTX_ERR_UNSUPPORTED,
                            "is an OpenVINO IR: the .bin beside it has to keep the same name, so "
                            "rename the two by hand and set ep_cache_context");
    }
    if (status == EPCTX_OK && strcmp(profile->name, "tensorrt") == 0 &&
        !epctx__same_suffix(".stripped.engine", node->ep_cache_context, name)) {
        status = epctx_fail(m->error, EPCTX_ERR_UNSUPPORTED,
                            "TensorRT knows engines without weights by the end .stripped.engine: "
                            "keep it, or do not add it");
    }
    return status;
}

/* The new name as a model in `folder` (without links) stores it: with slashes on every system. */
static epctx_status epctx__move_name(epctx__move *m, const char *folder, epctx_str *name)
{
    char *copy;
    if (!epctx__path_inside(folder, m->to)) {
        return epctx_fail(m->error, EPCTX_ERR_PATH,
                          "'%s' is outside of the model's folder %s, where the model cannot name "
                          "it: choose a place inside",
                          m->to, folder);
    }
    *name = epctx_str_of(m->to + strlen(folder));
    while (name->size > 0 && epctx__is_separator(name->data[0])) {
        name->data++;
        name->size--;
    }
    copy = epctx_arena_copy(&m->arena, *name);
    if (copy == NULL) {
        return epctx__nomem(m->error, m->arena.missing);
    }
    name->data = copy;
#ifdef _WIN32
    for (; *copy != '\0'; copy++) {
        *copy = *copy == '\\' ? '/' : *copy;
    }
#endif
    return EPCTX_OK;
}

/* Renames in one node, when it names the binary. */
static epctx_status epctx__move_node(epctx__move *m, epctx__moved *moved, epctx_str folder,
                                     const char *root, const epctx_node_view *view)
{
    char path[EPCTX_PATH_MAX];
    epctx_epnode node;
    epctx_error ignored;
    epctx_attr attr;
    epctx_status status;
    if (!epctx_is_epnode(view) || epctx_epnode_read(view, &node, &ignored) != EPCTX_OK ||
        node.embed_mode != 0) {
        return EPCTX_OK;
    }
    status = epctx_path_find(m->io, folder, node.ep_cache_context, moved->model.path_flags, path,
                             sizeof path, &ignored);
    if (status != EPCTX_OK && status != EPCTX_ERR_NOT_FOUND && status != EPCTX_ERR_PATH) {
        /* It may be the binary, and a model left out would lose it. */
        epctx_fail(m->error, status, "%s", ignored.message);
        epctx_blame(m->error, moved->path, &node.name, "ep_cache_context");
        return status;
    }
    if (status != EPCTX_OK || strcmp(path, m->from) != 0) {
        return EPCTX_OK;
    }
    memset(&attr, 0, sizeof attr);
    attr.name = epctx_str_of("ep_cache_context");
    attr.type = EPCTX_ATTR_STRING;
    status = epctx__move_name(m, root, &attr.s);
    if (status == EPCTX_OK) {
        status = epctx__move_allowed(m, &node, attr.s);
    }
    if (status == EPCTX_OK) {
        status = epctx_set_attr(&moved->model, view->view, &attr, m->error);
    }
    if (status != EPCTX_OK) {
        epctx_blame(m->error, moved->path, &node.name, "ep_cache_context");
    }
    moved->nodes++;
    return status;
}

/* Opens a model and renames in it; nothing is written yet. */
static epctx_status epctx__move_edit(epctx__move *m, epctx__moved *moved)
{
    char root[EPCTX_PATH_MAX];
    epctx_open_opts opts;
    epctx_walk walk;
    epctx_node_view view;
    epctx_str folder = epctx_path_folder(epctx_str_of(moved->path));
    epctx_str base = folder.size > 0 ? folder : epctx_str_of(".");
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    opts.io = m->io;
    opts.allocator = m->opts->allocator;
    status = epctx_model_open_file(&moved->model, moved->path, &opts, m->error);
    if (status == EPCTX_OK) {
        status = epctx__path_join(root, sizeof root, &base, 1, m->error);
    }
    if (status == EPCTX_OK) {
        char place[EPCTX_PATH_MAX];
        memcpy(place, root, strlen(root) + 1);
        status = m->io->canonical_fn(m->io->user, place, root, sizeof root, m->error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    epctx_walk_begin(&walk, &moved->model);
    while (status == EPCTX_OK && epctx_walk_epnode(&walk, &view)) {
        status = epctx__move_node(m, moved, folder, root, &view);
    }
    m->report.model_count += moved->nodes > 0;
    m->report.node_count += moved->nodes;
    return status;
}

static epctx_status epctx__move_edits(epctx__move *m)
{
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < m->count && status == EPCTX_OK; i++) {
        status = epctx__move_edit(m, &m->models[i]);
    }
    if (status == EPCTX_OK && m->report.node_count == 0) {
        status = epctx_fail(m->error, EPCTX_ERR_NOT_FOUND,
                            "no EPContext node of these models names it: nothing is renamed");
        epctx_blame(m->error, m->from, NULL, NULL);
    }
    return status;
}

/* The models with the new name, complete and durable under temporary names. */
static epctx_status epctx__move_prepare(epctx__move *m)
{
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < m->count && status == EPCTX_OK; i++) {
        epctx__moved *moved = &m->models[i];
        if (moved->nodes == 0) {
            continue;
        }
        moved->out = (epctx__output *)epctx_arena_alloc(&m->arena, sizeof *moved->out);
        if (moved->out == NULL) {
            return epctx__nomem(m->error, m->arena.missing);
        }
        status = epctx__output_open(moved->out, m->io, moved->path, m->error);
        if (status == EPCTX_OK) {
            status = epctx__output_model(moved->out, &moved->model);
        }
        if (status != EPCTX_OK) {
            epctx_blame(m->error, moved->path, NULL, NULL);
        }
    }
    return status;
}

static epctx_status epctx__move_copy(epctx__move *m, const epctx_mapping *from)
{
    epctx_io_file *out = (epctx_io_file *)epctx_arena_alloc(&m->arena, sizeof *out);
    epctx_output_file file;
    epctx_span part;
    epctx_status status;
    if (out == NULL) {
        return epctx__nomem(m->error, m->arena.missing);
    }
    part.data = from->data;
    part.size = from->size;
    memset(&file, 0, sizeof file);
    file.parts = &part;
    file.part_count = 1;
    status = m->io->create_fn(m->io->user, m->to, out, m->error);
    if (status != EPCTX_OK) {
        return status;
    }
    status = epctx__parts_write(m->io, out, &file, m->error);
    if (status == EPCTX_OK) {
        return m->io->commit_fn(m->io->user, out, m->error);
    }
    m->io->abort_fn(m->io->user, out);
    return status;
}

/* What stands at the new name: nothing, or the same bytes from an attempt that was interrupted. */
static epctx_status epctx__move_look(epctx__move *m, const epctx_mapping *from, bool *there)
{
    epctx_file_kind kind = EPCTX_FILE_NONE;
    epctx_mapping mapping;
    uint64_t size;
    epctx_status status = m->io->stat_fn(m->io->user, m->to, &kind, &size, m->error);
    *there = status == EPCTX_OK && kind != EPCTX_FILE_NONE;
    if (!*there) {
        return status;
    }
    if (kind == EPCTX_FILE_REGULAR && size == from->size) {
        status = m->io->map_fn(m->io->user, m->to, &mapping, m->error);
        if (status != EPCTX_OK) {
            return status;
        }
        *there = mapping.size == from->size && memcmp(mapping.data, from->data, from->size) == 0;
        m->io->unmap_fn(m->io->user, &mapping);
        if (*there) {
            return EPCTX_OK;
        }
    }
    return epctx_fail(m->error, EPCTX_ERR_EXISTS,
                      "exists already: choose another name, or remove it");
}

static epctx_status epctx__move_make(epctx__move *m, const epctx_mapping *from)
{
    epctx_error refused;
    epctx_status status = EPCTX_ERR_UNSUPPORTED;
    epctx_error_clear(&refused);
    if (m->io->link_fn != NULL) {
        status = m->io->link_fn(m->io->user, m->from, m->to, &refused);
        m->report.linked = status == EPCTX_OK;
    }
    if (status == EPCTX_ERR_EXISTS) { /* since we looked */
        return epctx_fail(m->error, status, "exists already: choose another name, or remove it");
    }
    if (status != EPCTX_OK) { /* not every file system has links */
        status = epctx__move_copy(m, from);
    }
    m->made = status == EPCTX_OK;
    return status == EPCTX_OK ? m->io->sync_folder_fn(m->io->user, m->to, m->error) : status;
}

/* After a failure: models that have the new name get back the old one, which is still there. */
static void epctx__move_rollback(epctx__move *m)
{
    epctx_write_opts any;
    epctx_error ignored;
    bool safe = true;
    size_t i;
    memset(&any, 0, sizeof any);
    any.allow_huge = true;
    for (i = 0; i < m->count; i++) {
        epctx__moved *moved = &m->models[i];
        if (moved->out != NULL) {
            epctx__output_abort(moved->out);
        }
        if (moved->done) {
            epctx_undo(&moved->model, 0);
            safe = epctx_model_write_file(&moved->model, moved->path, &any, &ignored) == EPCTX_OK &&
                   safe;
        }
    }
    if (m->made && safe) { /* otherwise a model still needs the new name */
        epctx_error_clear(&ignored);
        m->io->remove_fn(m->io->user, m->to, &ignored);
    }
}

static epctx_status epctx__move_switch(epctx__move *m)
{
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < m->count && status == EPCTX_OK; i++) {
        epctx__moved *moved = &m->models[i];
        if (moved->out == NULL) {
            continue;
        }
        status = epctx__output_commit(moved->out);
        if (status == EPCTX_OK) {
            moved->done = true;
            status = m->io->sync_folder_fn(m->io->user, moved->path, m->error);
        }
        if (status != EPCTX_OK) {
            epctx_blame(m->error, moved->path, NULL, NULL);
        }
    }
    return status;
}

static epctx_status epctx__move_run(epctx__move *m, const epctx_mapping *from)
{
    bool there = false;
    epctx_status status = epctx__move_edits(m);
    if (status == EPCTX_OK) {
        status = epctx__move_look(m, from, &there);
        if (status != EPCTX_OK) {
            epctx_blame(m->error, m->to, NULL, NULL);
        }
    }
    if (status != EPCTX_OK || m->opts->dry_run) {
        return status;
    }
    status = epctx__move_prepare(m);
    if (status == EPCTX_OK && !there) {
        status = epctx__move_make(m, from);
        if (status != EPCTX_OK) {
            epctx_blame(m->error, m->to, NULL, NULL);
        }
    }
    if (status == EPCTX_OK) {
        status = epctx__move_switch(m);
    }
    if (status == EPCTX_OK) {
        status = m->io->remove_fn(m->io->user, m->from, m->error);
        if (status != EPCTX_OK) {
            epctx_blame(m->error, m->from, NULL, NULL);
        }
    }
    if (status != EPCTX_OK) {
        epctx__move_rollback(m);
        return status;
    }
    return m->io->sync_folder_fn(m->io->user, m->from, m->error);
}

/* Resolves both names and maps the binary. */
static epctx_status epctx__move_begin(epctx__move *m, const char *from, const char *to,
                                      epctx_mapping *mapping)
{
    epctx_status status = epctx__path_usable(m->io, from, epctx_str_of(from), m->error);
    if (status == EPCTX_OK) {
        status = m->io->canonical_fn(m->io->user, from, m->from, sizeof m->from, m->error);
    }
    if (status != EPCTX_OK) {
        epctx_blame(m->error, from, NULL, NULL);
        return status;
    }
    status = epctx__move_target(m, to);
    if (status == EPCTX_OK && strcmp(m->from, m->to) == 0) {
        status = epctx_fail(m->error, EPCTX_ERR_ARG, "has this name already");
    }
    if (status != EPCTX_OK) {
        epctx_blame(m->error, to, NULL, NULL);
        return status;
    }
    return m->io->map_fn(m->io->user, m->from, mapping, m->error);
}

EPCTX_API epctx_status epctx_move_binary(const char *from, const char *to,
                                         const char *const *models, size_t count,
                                         const epctx_move_opts *opts,
                                         void (*moved_fn)(void *user, const char *model,
                                                          size_t nodes),
                                         void *user, epctx_move_report *report,
                                         epctx_error *error)
{
    static const epctx_move_opts defaults = {NULL, NULL, NULL, false};
    epctx__move m;
    epctx_mapping mapping;
    epctx_error local;
    epctx_status status;
    size_t i;
    memset(&m, 0, sizeof m);
    memset(&mapping, 0, sizeof mapping);
    m.opts = opts != NULL ? opts : &defaults;
    m.error = error != NULL ? error : &local;
    m.io = m.opts->io != NULL ? m.opts->io : epctx_io_files();
    epctx_error_clear(m.error);
    if (m.io == NULL) {
        return epctx_fail(m.error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    }
    epctx_arena_init(&m.arena, m.opts->allocator);
    m.models = (epctx__moved *)epctx_arena_array(&m.arena, count, sizeof *m.models);
    if (m.models == NULL) {
        return epctx__nomem(m.error, m.arena.missing);
    }
    for (m.count = 0; m.count < count; m.count++) {
        m.models[m.count].path = models[m.count];
    }
    status = epctx__move_begin(&m, from, to, &mapping);
    if (status == EPCTX_OK) {
        m.report.size = mapping.size;
        status = epctx__move_run(&m, &mapping);
    }
    for (i = 0; i < count; i++) {
        if (status == EPCTX_OK && moved_fn != NULL && m.models[i].nodes > 0) {
            moved_fn(user, m.models[i].path, m.models[i].nodes);
        }
        epctx_model_close(&m.models[i].model);
    }
    if (mapping.handle != NULL) {
        m.io->unmap_fn(m.io->user, &mapping);
    }
    epctx_arena_free(&m.arena);
    if (report != NULL) {
        *report = m.report;
    }
    return status;
}

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>combine
 * ============================================================================================== */

#ifndef EPCTX_NO_WIRE

/* -- what the operations share: steps, lists of names, files that go along -- */

/* A file of the result. */
typedef struct epctx__carried {
    epctx_str name;   /* in the result */
    const char *path; /* where it is now, canonical */
    const uint8_t *data;
    size_t size;
    uint64_t hash;
} epctx__carried;

/* `c` comes first: steps of conversions are used with it. */
typedef struct epctx__combine {
    epctx__convert c;
    void *steps;
    size_t step_count, step_room;
    void *carried;
    size_t carried_count, carried_room;
    epctx_map files; /* name in the result -> number in `carried` */
    epctx_map paths; /* canonical path -> the same */
} epctx__combine;

static bool epctx__combine_begin(epctx__combine *m, epctx_model *model, const char *output_path,
                                 epctx_error *error)
{
    epctx_convert_opts opts;
    memset(m, 0, sizeof *m);
    memset(&opts, 0, sizeof opts);
    opts.output_path = output_path;
    if (!epctx__convert_begin(&m->c, model, &opts, error)) {
        return false;
    }
    epctx_map_init(&m->files, m->c.arena);
    epctx_map_init(&m->paths, m->c.arena);
    return true;
}

/* The whole sentence, however many names are in it; NULL without memory. */
static epctx_str epctx__combine_text(epctx__combine *m, const char *format, va_list args)
{
    size_t capacity = 256;
    epctx__text text;
    epctx_str none = {NULL, 0};
    do {
        va_list again;
        capacity *= 2;
        text = epctx__text_of((char *)epctx_arena_alloc(m->c.arena, capacity), capacity);
        if (text.data == NULL) {
            epctx__convert_nomem(&m->c);
            return none;
        }
        va_copy(again, args);
        epctx__text_format(&text, format, again);
        va_end(again);
    } while (text.size + 1 >= capacity);
    text.data[text.size] = '\0';
    return epctx__str((const uint8_t *)text.data, text.size);
}

static bool epctx__combine_say(epctx__combine *m, size_t part, epctx_str name, const char *format,
                               ...)
{
    epctx_step *step;
    epctx_str text;
    va_list args;
    va_start(args, format);
    text = epctx__combine_text(m, format, args);
    va_end(args);
    if (text.data == NULL) {
        return false;
    }
    if (!epctx__list_room(m->c.arena, &m->steps, m->step_count, &m->step_room, sizeof *step)) {
        return epctx__convert_nomem(&m->c);
    }
    step = (epctx_step *)m->steps + m->step_count++;
    step->part = part;
    step->name = name;
    step->text = text.data;
    return true;
}

static void epctx__combine_end(const epctx__combine *m, epctx_combined *out)
{
    if (out != NULL) {
        out->steps = (const epctx_step *)m->steps;
        out->step_count = m->step_count;
        out->files = (epctx_output_file *)m->c.files;
        out->file_count = m->c.file_count;
    }
}

static bool epctx__combine_put(epctx__combine *m, epctx_map *map, epctx_str key, uint32_t value)
{
    return key.size == 0 || epctx_map_put(map, key, value) == EPCTX_OK ||
           epctx__convert_nomem(&m->c);
}

static bool epctx__has(const epctx_map *map, epctx_str key)
{
    return epctx_map_get(map, key) != EPCTX_MAP_NONE;
}

/* "<a><b>" in the arena of the result. */
static bool epctx__combine_join(epctx__combine *m, epctx_str a, epctx_str b, epctx_str *out)
{
    char *text = a.size < SIZE_MAX - b.size
                     ? (char *)epctx_arena_alloc(m->c.arena, a.size + b.size + 1)
                     : NULL;
    if (text == NULL) {
        return epctx__convert_nomem(&m->c);
    }
    if (a.size > 0) {
        memcpy(text, a.data, a.size);
    }
    if (b.size > 0) {
        memcpy(text + a.size, b.data, b.size);
    }
    out->data = text;
    out->size = a.size + b.size;
    return true;
}

/* The names that a graph defines: inputs, initializers, outputs of nodes. */
typedef struct epctx__definitions {
    epctx_cursor inputs, tensors, sparses, nodes, outputs;
} epctx__definitions;

static epctx__definitions epctx__definitions_of(epctx_view graph)
{
    epctx__definitions d;
    epctx_graph_view view = epctx_graph_of(graph);
    d.inputs = epctx_graph_inputs(view);
    d.tensors = epctx_graph_initializers(view);
    d.sparses = epctx_graph_sparse(view);
    d.nodes = epctx_graph_nodes(view);
    d.outputs = epctx_fields(epctx__no_view(), 0);
    return d;
}

static bool epctx__next_definition(epctx__definitions *d, epctx_str *name)
{
    epctx_value_view value;
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    epctx_view node;
    for (;;) {
        if (epctx_next_value(&d->inputs, &value)) {
            *name = value.name;
        } else if (epctx_next_tensor(&d->tensors, &tensor)) {
            *name = tensor.name;
        } else if (epctx_next_sparse(&d->sparses, &sparse)) {
            *name = sparse.values.name;
        } else if (!epctx_next_str(&d->outputs, name)) {
            if (!epctx__next_body(&d->nodes, &node)) {
                return false;
            }
            d->outputs = epctx_fields(node, 2);
            continue;
        }
        if (name->size > 0) {
            return true;
        }
    }
}

/* The tensors of a node's attributes that may have their data in a file. */
typedef bool (*epctx__tensor_step)(epctx__convert *c, epctx_view tensor, void *user);

static bool epctx__sparse_tensors(epctx__convert *c, epctx_view sparse, epctx__tensor_step step,
                                  void *user)
{
    epctx_cursor fields = epctx_fields(sparse, 0);
    epctx_field field;
    while (epctx_next_field(&fields, &field)) {
        if (field.wire == EPCTX_WIRE_LEN && (field.number == 1 || field.number == 2) &&
            !step(c, field.body, user)) { /* values, indices */
            return false;
        }
    }
    return true;
}

static bool epctx__graph_tensors(epctx__convert *c, epctx_view graph, epctx__tensor_step step,
                                 void *user, uint32_t depth);

static bool epctx__node_tensors(epctx__convert *c, epctx_view node, epctx__tensor_step step,
                                void *user, uint32_t depth)
{
    epctx_cursor attrs = epctx_fields(node, 5);
    epctx_view attr;
    while (epctx__next_body(&attrs, &attr)) {
        epctx_cursor fields = epctx_fields(attr, 0);
        epctx_field field;
        while (epctx_next_field(&fields, &field)) {
            bool ok = true;
            if (field.wire != EPCTX_WIRE_LEN) {
                continue;
            }
            if (field.number == 5 || field.number == 10) { /* t, tensors */
                ok = step(c, field.body, user);
            } else if (field.number == 22 || field.number == 23) { /* sparse tensors */
                ok = epctx__sparse_tensors(c, field.body, step, user);
            } else if ((field.number == 6 || field.number == 11) && depth > 0) { /* graphs */
                ok = epctx__graph_tensors(c, field.body, step, user, depth - 1);
            }
            if (!ok) {
                return false;
            }
        }
    }
    return true;
}

static bool epctx__graph_tensors(epctx__convert *c, epctx_view graph, epctx__tensor_step step,
                                 void *user, uint32_t depth)
{
    epctx_cursor fields = epctx_fields(graph, 0);
    epctx_field field;
    while (epctx_next_field(&fields, &field)) {
        bool ok = true;
        if (field.wire != EPCTX_WIRE_LEN) {
            continue;
        }
        if (field.number == 1) {
            ok = epctx__node_tensors(c, field.body, step, user, depth);
        } else if (field.number == 5) {
            ok = step(c, field.body, user);
        } else if (field.number == 15) {
            ok = epctx__sparse_tensors(c, field.body, step, user);
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* Every tensor of a model, functions included. */
static bool epctx__model_tensors(epctx__convert *c, epctx__tensor_step step, void *user)
{
    epctx_cursor functions = epctx_model_functions(c->model);
    epctx_function_view function;
    if (!epctx__graph_tensors(c, epctx_model_graph(c->model).view, step, user, EPCTX_WALK_DEPTH)) {
        return false;
    }
    while (epctx_next_function(&functions, &function)) {
        epctx_cursor nodes = epctx_function_nodes(&function);
        epctx_view node;
        while (epctx__next_body(&nodes, &node)) {
            if (!epctx__node_tensors(c, node, step, user, EPCTX_WALK_DEPTH)) {
                return false;
            }
        }
    }
    return true;
}

/* Views that are collected before the model is edited. */
typedef struct epctx__views {
    void *list;
    size_t count, room;
} epctx__views;

static bool epctx__views_add(epctx__convert *c, epctx__views *views, epctx_view view)
{
    if (!epctx__list_room(c->arena, &views->list, views->count, &views->room, sizeof view)) {
        return epctx__convert_nomem(c);
    }
    ((epctx_view *)views->list)[views->count++] = view;
    return true;
}

static bool epctx__views_remove(epctx__convert *c, const epctx__views *views)
{
    size_t i;
    for (i = 0; i < views->count; i++) {
        if (epctx_remove(c->model, ((const epctx_view *)views->list)[i], c->error) != EPCTX_OK) {
            return false;
        }
    }
    return true;
}

/* -- rules that the result breaks and its parts do not -- */

typedef struct epctx__verdict {
    uint64_t counts[EPCTX_RULE_COUNT];
    const uint64_t *allowed; /* per rule: how many there may be */
    epctx_error *error;
    bool refused;
} epctx__verdict;

static void epctx__verdict_found(void *user, const epctx_finding *finding)
{
    epctx__verdict *v = (epctx__verdict *)user;
    v->counts[finding->rule]++;
    if (v->allowed != NULL && !v->refused && finding->info.severity == EPCTX_SEVERITY_ERROR &&
        v->counts[finding->rule] > v->allowed[finding->rule]) {
        v->refused = true;
        epctx_fail(v->error, EPCTX_ERR_GRAPH, "the result would break rule %s: %s (%s)",
                   finding->info.id, finding->message, finding->info.fix);
    }
}

/* Counts the findings of a model, files apart. With `allowed` more errors than that are refused. */
static bool epctx__verdict_of(const epctx_model *model, const epctx_profile *profile,
                              const uint64_t *allowed, uint64_t *sum, epctx_error *error)
{
    epctx_check_opts opts;
    epctx__verdict v;
    size_t i;
    memset(&opts, 0, sizeof opts);
    memset(&v, 0, sizeof v);
    opts.no_files = true;
    opts.profile = profile;
    opts.allocator = model->arena.allocator.alloc_fn != NULL ? &model->arena.allocator : NULL;
    if (model->path[0] == '\0') { /* where a new model will stand is not its fault */
        opts.context_file_path = "model.onnx";
        opts.external_folder = ".";
    }
    v.allowed = allowed;
    v.error = error;
    if (epctx_lint(model, &opts, epctx__verdict_found, &v, NULL, error) != EPCTX_OK || v.refused) {
        return false;
    }
    for (i = 0; sum != NULL && i < EPCTX_RULE_COUNT; i++) {
        sum[i] += v.counts[i];
    }
    return true;
}

/* -- files that go along with a model -- */

typedef struct epctx__relocation {
    epctx_str from, to;
    void *views; /* of the tensors */
    size_t count, room;
} epctx__relocation;

static bool epctx__relocate_tensor(epctx__convert *c, epctx_view view, void *user)
{
    epctx__relocation *r = (epctx__relocation *)user;
    epctx_tensor_view tensor = epctx_tensor_of(view);
    if (!tensor.external || !epctx_str_eq(tensor.location, r->from)) {
        return true;
    }
    if (!epctx__list_room(c->arena, &r->views, r->count, &r->room, sizeof view)) {
        return epctx__convert_nomem(c);
    }
    ((epctx_view *)r->views)[r->count++] = view;
    return true;
}

/* Names a file anew wherever the model names it in that use. */
static bool epctx__relocate(epctx__convert *c, const epctx_dependency *file, epctx_str to)
{
    epctx__relocation r;
    size_t i;
    memset(&r, 0, sizeof r);
    r.from = file->name;
    r.to = to;
    if (file->use == EPCTX_USE_INITIALIZERS) {
        if (!epctx__model_tensors(c, epctx__relocate_tensor, &r)) {
            return false;
        }
    } else {
        epctx_walk walk;
        epctx_node_view node;
        epctx_walk_begin(&walk, c->model);
        while (epctx_walk_epnode(&walk, &node)) {
            if (epctx_str_eq(epctx__attr_str(&node, file->attribute), file->name)) {
                if (!epctx__list_room(c->arena, &r.views, r.count, &r.room, sizeof node.view)) {
                    return epctx__convert_nomem(c);
                }
                ((epctx_view *)r.views)[r.count++] = node.view;
            }
        }
    }
    for (i = 0; i < r.count; i++) {
        epctx_view view = ((const epctx_view *)r.views)[i];
        bool ok = file->use == EPCTX_USE_INITIALIZERS
                      ? epctx_set_pair(c->model, view, 13, epctx_str_of("location"), to,
                                       c->error) == EPCTX_OK
                      : epctx__convert_str(c, view, file->attribute, to);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool epctx__carry_refuse(epctx__combine *m, const epctx_dependency *file,
                                epctx_status status, const char *text)
{
    epctx_fail(m->c.error, status, "%s '%S' of '%S': %s", epctx_file_use_name(file->use),
               &file->name, &file->node, text);
    return false;
}

/* The number of a carried file with the same bytes, or EPCTX_MAP_NONE. */
static uint32_t epctx__carried_equal(const epctx__combine *m, const epctx__carried *file)
{
    const epctx__carried *list = (const epctx__carried *)m->carried;
    size_t i;
    for (i = 0; i < m->carried_count; i++) {
        if (list[i].size == file->size && list[i].hash == file->hash &&
            memcmp(list[i].data, file->data, file->size) == 0) {
            return (uint32_t)i;
        }
    }
    return EPCTX_MAP_NONE;
}

/* Puts a file among those of the result, under a name that no other has. */
static bool epctx__carry_new(epctx__combine *m, const epctx_dependency *dep, epctx__carried *file,
                             bool may_rename)
{
    char name[EPCTX_PATH_MAX];
    char real[EPCTX_PATH_MAX];
    char whole[EPCTX_PATH_MAX];
    epctx_error ignored;
    epctx_span *part;
    uint64_t number = 2;
    const char *text = epctx_arena_copy(m->c.arena, dep->name);
    epctx_str parts[2];
    if (text == NULL) {
        return epctx__convert_nomem(&m->c);
    }
    file->name = epctx_str_of(text);
    while (epctx__has(&m->files, file->name)) {
        if (!may_rename) {
            return epctx__carry_refuse(m, dep, EPCTX_ERR_EXISTS,
                                       "another file of the result has this name, and this one "
                                       "cannot have another: rename it beforehand");
        }
        if (!epctx__numbered(&m->c, text, number++, name)) {
            return false;
        }
        file->name = epctx_str_of(epctx_arena_copy(m->c.arena, epctx_str_of(name)));
    }
    if (!epctx__list_room(m->c.arena, &m->carried, m->carried_count, &m->carried_room,
                          sizeof *file)) {
        return epctx__convert_nomem(&m->c);
    }
    ((epctx__carried *)m->carried)[m->carried_count] = *file;
    if (!epctx__combine_put(m, &m->files, file->name, (uint32_t)m->carried_count) ||
        !epctx__combine_put(m, &m->paths, epctx_str_of(file->path), (uint32_t)m->carried_count)) {
        return false;
    }
    m->carried_count++;
    parts[0] = m->c.folder;
    parts[1] = file->name;
    epctx_error_clear(&ignored);
    if (epctx__path_join(whole, sizeof whole, parts, 2, m->c.error) != EPCTX_OK) {
        return false;
    }
    if (m->c.model->io->canonical_fn(m->c.model->io->user, whole, real, sizeof real, &ignored) ==
            EPCTX_OK &&
        strcmp(real, file->path) == 0) {
        return true; /* it is where it should be */
    }
    part = (epctx_span *)epctx__convert_array(&m->c, 1, sizeof *part);
    if (part == NULL) {
        return false;
    }
    part->data = file->data;
    part->size = file->size;
    return epctx__convert_name(&m->c, file->name, NULL) &&
           epctx__convert_file(&m->c, file->name, part, 1, part->size);
}

/* One file of the model that `c` edits. `alone`: it must not be shared with another model. */
static bool epctx__carry(epctx__combine *m, epctx__convert *c, size_t number,
                         const epctx_dependency *dep, bool alone)
{
    bool may_rename = dep->use == EPCTX_USE_CONTEXT || dep->use == EPCTX_USE_INITIALIZERS;
    const epctx__file *mapped;
    epctx__carried file;
    uint32_t at;
    if (dep->status != EPCTX_OK || dep->path == NULL) {
        return !dep->required || epctx__carry_refuse(m, dep, EPCTX_ERR_NOT_FOUND,
                                                     dep->problem != NULL ? dep->problem
                                                                          : "cannot be read");
    }
    at = alone ? EPCTX_MAP_NONE : epctx_map_get(&m->paths, epctx_str_of(dep->path));
    if (at == EPCTX_MAP_NONE) {
        memset(&file, 0, sizeof file);
        mapped = epctx__convert_map(c, epctx_str_of(dep->folder), dep->name);
        if (mapped == NULL) {
            return false;
        }
        file.path = mapped->path;
        file.data = mapped->mapping.data;
        file.size = mapped->mapping.size;
        file.hash = epctx_hash(file.data, file.size, 0);
        at = alone || !may_rename ? EPCTX_MAP_NONE : epctx__carried_equal(m, &file);
        if (at == EPCTX_MAP_NONE) {
            if (!epctx__carry_new(m, dep, &file, may_rename)) {
                return false;
            }
            at = (uint32_t)m->carried_count - 1;
        }
    }
    file = ((const epctx__carried *)m->carried)[at];
    if (epctx_str_eq(file.name, dep->name)) {
        return true;
    }
    if (!may_rename) {
        return epctx__carry_refuse(m, dep, EPCTX_ERR_EXISTS,
                                   "the same file has another name in the result");
    }
    return epctx__combine_say(m, number, dep->name, "file '%S' is now '%S'", &dep->name,
                              &file.name) &&
           epctx__relocate(c, dep, file.name);
}

/* A model may name files that only sessions with other options need. */
static bool epctx__carry_wanted(const epctx_dependency *dep)
{
    return dep->use == EPCTX_USE_CONTEXT || dep->use == EPCTX_USE_INITIALIZERS || dep->required;
}

static bool epctx__carry_files(epctx__combine *m, epctx__convert *c, size_t number, bool alone)
{
    epctx_dependency *files;
    epctx_check_opts opts;
    size_t count, i;
    memset(&opts, 0, sizeof opts);
    opts.path_flags = c->model->path_flags;
    if (epctx_model_files(c->model, &opts, c->arena, &files, &count, c->error) != EPCTX_OK) {
        return false;
    }
    for (i = 0; i < count; i++) {
        bool context = files[i].use == EPCTX_USE_CONTEXT;
        if (epctx__carry_wanted(&files[i]) &&
            !epctx__carry(m, c, number, &files[i], alone && context)) {
            return false;
        }
    }
    return true;
}

/* -- merge -- */

/* A value that may feed inputs of later models. */
typedef struct epctx__end {
    size_t part;
    epctx_str name; /* in its model */
    epctx_str now;  /* in the result */
    epctx_view value;
    bool input;     /* a graph input, for share_inputs */
    uint32_t before; /* an earlier end of the same name, or EPCTX_MAP_NONE */
} epctx__end;

typedef struct epctx__merge {
    epctx__combine m;
    const epctx_part *parts;
    size_t count;
    epctx_merge_opts opts;
    int64_t ir_version;
    epctx_map outer, inner; /* names of values in the result's main graph; in its bodies */
    epctx_map nodes;        /* names of nodes */
    epctx_map partitions;   /* partition names that are keys -> number of the model */
    epctx_map twice;        /* those that more than one model has */
    epctx_map domains;      /* operator sets that nodes of the result use */
    epctx_map functions;    /* domain, name, overload -> number in the result */
    uint32_t function_count;
    void *ends;
    size_t end_count, end_room;
    epctx_map end_names;    /* name -> last end */
    epctx_map fed;          /* names (now) of outputs that feed an input */
    bool *used;             /* per connection */
    uint64_t allowed[EPCTX_RULE_COUNT];
} epctx__merge;

/* A model that is being added. `c` comes first. */
typedef struct epctx__guest {
    epctx__convert c;
    epctx__merge *w;
    size_t number;
    epctx_str prefix; /* explicit, or what clashes get */
    bool always;      /* every name gets it */
    bool never;       /* clashes are errors */
    epctx_map fixed;  /* values that a compiled node finds by name */
    epctx_map own;    /* names of the model, before and after */
    epctx_map from;   /* names of the main graph -> 1 + number in `pairs` */
    epctx_map joined; /* inputs (before) that an output feeds -> number of the end */
    epctx_map inits;  /* names of initializers */
    void *pairs;      /* epctx_str before, after */
    size_t pair_count, pair_room;
    void *bodies;
    size_t body_count, body_room;
    uint32_t linked;
} epctx__guest;

static bool epctx__merge_refuse(epctx__guest *g, epctx_status status)
{
    char number[40];
    epctx__text text = epctx__text_of(number, sizeof number);
    epctx__text_str(&text, "model ", 6);
    epctx__text_number(&text, (uint64_t)g->number + 1, 10);
    number[text.size] = '\0';
    epctx_fail(g->c.error, status, "cannot be merged");
    epctx_blame(g->c.error, g->c.model->path[0] != '\0' ? g->c.model->path : number, NULL, NULL);
    return false;
}

static const epctx_profile *epctx__merge_profile(const epctx_node_view *node)
{
    return epctx_profile_of(epctx__attr_str(node, "source"));
}

/* What a model brings: bodies, values that are keys, names of initializers. */
static bool epctx__guest_body(epctx__convert *c, epctx_view graph)
{
    epctx__guest *g = (epctx__guest *)(void *)c;
    epctx__definitions d = epctx__definitions_of(graph);
    epctx_str name;
    while (epctx__next_definition(&d, &name)) {
        if (!epctx__combine_put(&g->w->m, &g->own, name, 1)) {
            return false;
        }
    }
    if (!epctx__list_room(c->arena, &g->bodies, g->body_count, &g->body_room, sizeof graph)) {
        return epctx__convert_nomem(c);
    }
    ((epctx_view *)g->bodies)[g->body_count++] = graph; /* the first is the main graph */
    return true;
}

static bool epctx__guest_fixed(epctx__guest *g, const epctx_node_view *node)
{
    int k;
    if ((epctx__merge_profile(node)->traits & EPCTX_IO_NAMES) == 0) {
        return true;
    }
    for (k = 0; k < 2; k++) {
        epctx_cursor names = k == 0 ? epctx_node_inputs(node) : epctx_node_outputs(node);
        epctx_str name;
        while (epctx_next_str(&names, &name)) {
            if (!epctx__combine_put(&g->w->m, &g->fixed, name, 1)) {
                return false;
            }
        }
    }
    return true;
}

static bool epctx__guest_look(epctx__guest *g)
{
    epctx_graph_view graph = epctx_model_graph(g->c.model);
    epctx_cursor tensors = epctx_graph_initializers(graph);
    epctx_cursor sparses = epctx_graph_sparse(graph);
    epctx_cursor nodes = epctx_graph_nodes(graph);
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    epctx_node_view node;
    if (!epctx__every_graph(&g->c, epctx__guest_body)) {
        return false;
    }
    while (epctx_next_tensor(&tensors, &tensor)) {
        if (!epctx__combine_put(&g->w->m, &g->inits, tensor.name, 1)) {
            return false;
        }
    }
    while (epctx_next_sparse(&sparses, &sparse)) {
        if (!epctx__combine_put(&g->w->m, &g->inits, sparse.values.name, 1)) {
            return false;
        }
    }
    while (epctx_next_node(&nodes, &node)) {
        if (epctx_is_epnode(&node) && !epctx__guest_fixed(g, &node)) {
            return false;
        }
    }
    return true;
}

static void epctx__guest_begin(epctx__guest *g, epctx__merge *w, size_t number)
{
    const epctx_part *part = &w->parts[number];
    memset(g, 0, sizeof *g);
    g->c.model = part->model;
    g->c.arena = &part->model->arena;
    g->c.error = w->m.c.error;
    g->w = w;
    g->number = number;
    g->never = part->prefix != NULL && part->prefix[0] == '\0';
    g->always = part->prefix != NULL && part->prefix[0] != '\0';
    g->prefix = epctx_str_of(part->prefix);
    epctx_map_init(&g->fixed, g->c.arena);
    epctx_map_init(&g->own, g->c.arena);
    epctx_map_init(&g->from, g->c.arena);
    epctx_map_init(&g->joined, g->c.arena);
    epctx_map_init(&g->inits, g->c.arena);
}

/* "m<number>_" for models without a prefix of their own. */
static bool epctx__guest_prefix(epctx__guest *g)
{
    char text[32];
    epctx__text out = epctx__text_of(text, sizeof text);
    if (g->always || g->never) {
        return true;
    }
    epctx__text_char(&out, 'm');
    epctx__text_number(&out, (uint64_t)g->number + 1, 10);
    epctx__text_char(&out, '_');
    return epctx__combine_join(&g->w->m, epctx__str((const uint8_t *)text, out.size),
                               epctx_str_of(NULL), &g->prefix);
}

static bool epctx__taken(const epctx__guest *g, epctx_str name)
{
    return epctx__has(&g->w->outer, name) || epctx__has(&g->w->inner, name);
}

/* A name with the prefix, as often as needed to be new everywhere. */
static bool epctx__guest_fresh(epctx__guest *g, epctx_str name, epctx_str *out)
{
    *out = name;
    do {
        if (!epctx__combine_join(&g->w->m, g->prefix, *out, out)) {
            return false;
        }
    } while (epctx__taken(g, *out) || epctx__has(&g->own, *out));
    return epctx__combine_put(&g->w->m, &g->own, *out, 1);
}

static bool epctx__guest_clash(epctx__guest *g, const char *what, epctx_str name, const char *cure)
{
    epctx_fail(g->c.error, EPCTX_ERR_EXISTS, "%s '%S' is in an earlier model, too%s", what, &name,
               cure);
    return epctx__merge_refuse(g, EPCTX_ERR_EXISTS);
}

/* The new name of a value of the main graph that nothing feeds. */
static bool epctx__guest_name(epctx__guest *g, epctx_str name, epctx_str *out)
{
    bool fixed = epctx__has(&g->fixed, name);
    *out = name;
    if (fixed && epctx__taken(g, name)) {
        return epctx__guest_clash(g, "value", name,
                                  ": its EP finds the inputs and outputs of a compiled node by "
                                  "name, so it cannot be renamed; compile one of the models with "
                                  "other names");
    }
    if (!fixed && g->always) {
        if (!epctx__combine_join(&g->w->m, g->prefix, name, out)) {
            return false;
        }
        if (epctx__taken(g, *out)) {
            return epctx__guest_clash(g, "value", *out, ": choose another prefix");
        }
        return true;
    }
    if (!epctx__taken(g, name)) {
        return true;
    }
    if (g->never) {
        return epctx__guest_clash(g, "value", name, ": give the model a prefix");
    }
    return epctx__guest_fresh(g, name, out);
}

static bool epctx__guest_pair(epctx__guest *g, epctx_str before, epctx_str after)
{
    epctx_str *pair;
    if (!epctx__list_room(g->c.arena, &g->pairs, g->pair_count, &g->pair_room, 2 * sizeof *pair)) {
        return epctx__convert_nomem(&g->c);
    }
    pair = (epctx_str *)g->pairs + 2 * g->pair_count++;
    pair[0] = before;
    pair[1] = after;
    return epctx__combine_put(&g->w->m, &g->from, before, (uint32_t)g->pair_count);
}

static bool epctx__same_type(const epctx_value_view *a, const epctx_value_view *b)
{
    epctx_cursor x = epctx_value_dims(a);
    epctx_cursor y = epctx_value_dims(b);
    epctx_dim p, q;
    if (!a->has_type || !b->has_type) {
        return true;
    }
    if (a->is_tensor != b->is_tensor || (a->is_tensor && a->elem_type != b->elem_type)) {
        return a->is_tensor && b->is_tensor && (a->elem_type == 0 || b->elem_type == 0);
    }
    if (!a->is_tensor || !a->has_shape || !b->has_shape) {
        return true;
    }
    for (;;) {
        bool more = epctx_next_dim(&x, &p);
        if (epctx_next_dim(&y, &q) != more) {
            return false;
        }
        if (!more) {
            return true;
        }
        if (p.known && q.known && p.value != q.value) {
            return false;
        }
    }
}

/* What feeds an input: an explicit connection, the output of the same name, the same input. */
static bool epctx__guest_source(epctx__guest *g, const epctx_value_view *input, uint32_t *end)
{
    epctx__merge *w = g->w;
    const epctx__end *ends = (const epctx__end *)w->ends;
    size_t i;
    *end = EPCTX_MAP_NONE;
    for (i = 0; i < w->opts.connection_count; i++) {
        const epctx_connection *link = &w->opts.connections[i];
        uint32_t at;
        if ((link->to != EPCTX_ANY_PART && link->to != g->number) ||
            !epctx_str_eq(link->input, input->name)) {
            continue;
        }
        at = epctx_map_get(&w->end_names, link->output);
        while (at != EPCTX_MAP_NONE &&
               (ends[at].input || (link->from != EPCTX_ANY_PART && ends[at].part != link->from))) {
            at = ends[at].before;
        }
        if (at == EPCTX_MAP_NONE && link->to == EPCTX_ANY_PART) {
            continue;
        }
        if (at == EPCTX_MAP_NONE) {
            epctx_fail(g->c.error, EPCTX_ERR_NOT_FOUND,
                       "no earlier model has the output '%S' for the input '%S'", &link->output,
                       &link->input);
            return epctx__merge_refuse(g, EPCTX_ERR_NOT_FOUND);
        }
        if (*end != EPCTX_MAP_NONE && *end != at) {
            epctx_fail(g->c.error, EPCTX_ERR_ARG, "the input '%S' is connected twice",
                       &input->name);
            return epctx__merge_refuse(g, EPCTX_ERR_ARG);
        }
        w->used[i] = true;
        *end = at;
    }
    if (*end == EPCTX_MAP_NONE && !epctx__has(&g->inits, input->name)) {
        uint32_t at = epctx_map_get(&w->end_names, input->name);
        while (at != EPCTX_MAP_NONE &&
               !(ends[at].input ? w->opts.share_inputs : w->opts.chain)) {
            at = ends[at].before;
        }
        *end = at;
    }
    return true;
}

/* Decides which inputs are fed, and takes their types at their word. */
static bool epctx__guest_join(epctx__guest *g)
{
    epctx_cursor inputs = epctx_graph_inputs(epctx_model_graph(g->c.model));
    epctx_value_view input;
    while (epctx_next_value(&inputs, &input)) {
        const epctx__end *end;
        epctx_value_view value;
        uint32_t at;
        if (!epctx__guest_source(g, &input, &at)) {
            return false;
        }
        if (at == EPCTX_MAP_NONE) {
            continue;
        }
        end = (const epctx__end *)g->w->ends + at;
        value = epctx_value_of(end->value);
        if (!epctx__same_type(&value, &input)) {
            epctx_fail(g->c.error, EPCTX_ERR_GRAPH,
                       "%s '%S' has another type or shape than the input '%S' that it would feed",
                       end->input ? "input" : "output", &end->name, &input.name);
            return epctx__merge_refuse(g, EPCTX_ERR_GRAPH);
        }
        if (!epctx__combine_put(&g->w->m, &g->joined, input.name, at) ||
            (!end->input && !epctx__combine_put(&g->w->m, &g->w->fed, end->now, 1)) ||
            !epctx__combine_say(&g->w->m, g->number, input.name,
                                "input '%S' is %s '%S' of model %u", &input.name, end->input ? "input" : "fed by output", &end->name,
                                (uint64_t)end->part + 1)) {
            return false;
        }
        g->linked += !end->input;
    }
    if (g->number > 0 && g->w->opts.chain && g->linked == 0) {
        epctx_fail(g->c.error, EPCTX_ERR_NOT_FOUND,
                   "none of its inputs has the name of an output of an earlier model: name the "
                   "connections");
        return epctx__merge_refuse(g, EPCTX_ERR_NOT_FOUND);
    }
    return true;
}

/* New names for the values of the main graph. */
static bool epctx__guest_values(epctx__guest *g)
{
    epctx__definitions d = epctx__definitions_of(epctx_model_graph(g->c.model).view);
    epctx_str name;
    while (epctx__next_definition(&d, &name)) {
        uint32_t at;
        epctx_str now;
        if (epctx__has(&g->from, name)) {
            continue;
        }
        at = epctx_map_get(&g->joined, name);
        if (at != EPCTX_MAP_NONE) {
            now = ((const epctx__end *)g->w->ends)[at].now;
            /* Where the name is a key, a node in between gives the value its second name. */
            if (epctx__has(&g->fixed, name) && !epctx_str_eq(now, name) &&
                !epctx__guest_name(g, name, &now)) {
                return false;
            }
        } else if (!epctx__guest_name(g, name, &now)) {
            return false;
        }
        if (!epctx__guest_pair(g, name, now)) {
            return false;
        }
        if (at == EPCTX_MAP_NONE && !epctx_str_eq(now, name) &&
            !epctx__combine_say(&g->w->m, g->number, name, "value '%S' is now '%S'", &name, &now)) {
            return false;
        }
    }
    return true;
}

static epctx_status epctx__guest_rename(epctx__guest *g, epctx_view scope, const void *pairs,
                                        size_t count)
{
    epctx_str *from = (epctx_str *)epctx__convert_array(&g->c, count, sizeof *from);
    epctx_str *to = (epctx_str *)epctx__convert_array(&g->c, count, sizeof *to);
    const epctx_str *pair = (const epctx_str *)pairs;
    size_t changed = 0;
    size_t i;
    if (from == NULL || to == NULL) {
        return EPCTX_ERR_NOMEM;
    }
    for (i = 0; i < count; i++) {
        if (!epctx_str_eq(pair[2 * i], pair[2 * i + 1])) {
            from[changed] = pair[2 * i];
            to[changed++] = pair[2 * i + 1];
        }
    }
    return changed == 0 ? EPCTX_OK
                        : epctx_rename_values(g->c.model, scope, from, to, changed, NULL,
                                              NULL, g->c.error);
}

/* Names in a body must not hide values of the main graphs. */
static bool epctx__guest_body_names(epctx__guest *g, epctx_view body, const epctx_map *now)
{
    epctx__definitions d = epctx__definitions_of(body);
    epctx_str name;
    void *pairs = NULL;
    size_t count = 0;
    size_t room = 0;
    epctx_map seen;
    epctx_map_init(&seen, g->c.arena);
    while (epctx__next_definition(&d, &name)) {
        epctx_str *pair;
        if (epctx__has(&seen, name) ||
            !(epctx__has(&g->w->outer, name) ||
              (epctx__has(now, name) && !epctx__has(&g->from, name)))) {
            continue;
        }
        if (!epctx__combine_put(&g->w->m, &seen, name, 1)) {
            return false;
        }
        if (!epctx__list_room(g->c.arena, &pairs, count, &room, 2 * sizeof *pair)) {
            return epctx__convert_nomem(&g->c);
        }
        pair = (epctx_str *)pairs + 2 * count++;
        pair[0] = name;
        if (g->never) {
            return epctx__guest_clash(g, "value", name, ": give the model a prefix");
        }
        if (!epctx__guest_fresh(g, name, &pair[1]) ||
            !epctx__combine_say(&g->w->m, g->number, name, "value '%S' of a body is now '%S'",
                                &name, &pair[1])) {
            return false;
        }
    }
    return count == 0 || epctx__guest_rename(g, body, pairs, count) == EPCTX_OK;
}

static bool epctx__guest_rename_all(epctx__guest *g)
{
    const epctx_str *pairs = (const epctx_str *)g->pairs;
    epctx_map now;
    size_t i;
    epctx_map_init(&now, g->c.arena);
    for (i = 0; i < g->pair_count; i++) {
        if (!epctx__combine_put(&g->w->m, &now, pairs[2 * i + 1], 1)) {
            return false;
        }
    }
    for (i = 1; i < g->body_count; i++) {
        if (!epctx__guest_body_names(g, ((const epctx_view *)g->bodies)[i], &now)) {
            return epctx__merge_refuse(g, EPCTX_ERR_GRAPH);
        }
    }
    return epctx__guest_rename(g, epctx__no_view(), g->pairs, g->pair_count) == EPCTX_OK ||
           epctx__merge_refuse(g, EPCTX_ERR_GRAPH);
}

/* The new name of a node. */
static bool epctx__guest_node_name(epctx__guest *g, const epctx_node_view *node, epctx_str *out)
{
    bool key = epctx_is_epnode(node) && epctx__merge_profile(node)->key == EPCTX_KEY_NODE_NAME;
    *out = node->name;
    if (node->name.size == 0) {
        return true;
    }
    if (key) {
        if (epctx__has(&g->w->nodes, node->name)) {
            return epctx__guest_clash(g, "EPContext node", node->name,
                                      ": its EP finds the graph in the binary by this name, so it "
                                      "cannot be renamed; generate one of the models with "
                                      "ep.context_node_name_prefix");
        }
        return true;
    }
    if (g->always) {
        if (!epctx__combine_join(&g->w->m, g->prefix, node->name, out)) {
            return false;
        }
        return !epctx__has(&g->w->nodes, *out) ||
               epctx__guest_clash(g, "node", *out, ": choose another prefix");
    }
    while (g->number > 0 && epctx__has(&g->w->nodes, *out)) {
        if (g->never) {
            return epctx__guest_clash(g, "node", *out, ": give the model a prefix");
        }
        if (!epctx__combine_join(&g->w->m, g->prefix, *out, out)) {
            return false;
        }
    }
    return true;
}

/* Names of nodes that are renamed must not meet names of this model, so those come first. */
static bool epctx__guest_nodes(epctx__guest *g)
{
    epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(g->c.model));
    epctx_map own;
    epctx_node_view node;
    epctx_map_init(&own, g->c.arena);
    while (epctx_next_node(&nodes, &node)) {
        if (!epctx__combine_put(&g->w->m, &own, node.name, 1)) {
            return false;
        }
    }
    nodes = epctx_graph_nodes(epctx_model_graph(g->c.model));
    while (epctx_next_node(&nodes, &node)) {
        epctx_str name;
        if (!epctx__guest_node_name(g, &node, &name)) {
            return false;
        }
        while (!g->always && !epctx_str_eq(name, node.name) &&
               (epctx__has(&own, name) || epctx__has(&g->w->nodes, name))) {
            if (!epctx__combine_join(&g->w->m, g->prefix, name, &name)) {
                return false;
            }
        }
        if (!epctx_str_eq(name, node.name)) {
            if (!epctx__combine_say(&g->w->m, g->number, node.name, "node '%S' is now '%S'",
                                    &node.name, &name) ||
                epctx_set_str(g->c.model, node.view, 3, name, g->c.error) != EPCTX_OK) {
                return false;
            }
        }
    }
    return true;
}

/* Whether a node finds its graph by its partition name in a context that others share. */
static bool epctx__by_partition(const epctx_node_view *node, epctx_epnode *ep)
{
    const epctx_profile *profile = epctx__merge_profile(node);
    return epctx_is_epnode(node) && profile->key == EPCTX_KEY_PARTITION &&
           profile->payload == EPCTX_PAYLOAD_SHARED &&
           epctx_epnode_read(node, ep, NULL) == EPCTX_OK;
}

/* Which partition names more than one model has. */
static bool epctx__merge_partitions(epctx__merge *w, size_t number)
{
    epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(w->parts[number].model));
    epctx_node_view node;
    while (epctx_next_node(&nodes, &node)) {
        epctx_epnode ep;
        uint32_t part;
        if (!epctx__by_partition(&node, &ep)) {
            continue;
        }
        part = epctx_map_get(&w->partitions, ep.partition_name);
        if (part != EPCTX_MAP_NONE && part != (uint32_t)number &&
            !epctx__combine_put(&w->m, &w->twice, ep.partition_name, 1)) {
            return false;
        }
        if (!epctx__combine_put(&w->m, &w->partitions, ep.partition_name, (uint32_t)number)) {
            return false;
        }
    }
    return true;
}

/* Two nodes that ask one context for the same partition would be one: where the names clash, the
 * binary of the later model stays a file of its own, and secondary nodes name theirs themselves. */
static bool epctx__guest_partitions(epctx__guest *g, bool *alone)
{
    epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(g->c.model));
    epctx_node_view node;
    epctx_str file = epctx_str_of("");
    epctx__views views;
    size_t mains = 0;
    size_t i;
    memset(&views, 0, sizeof views);
    *alone = false;
    while (epctx_next_node(&nodes, &node)) {
        epctx_epnode ep;
        bool twice;
        if (!epctx__by_partition(&node, &ep)) {
            continue;
        }
        twice = epctx__has(&g->w->twice, ep.partition_name);
        *alone = *alone || (twice && g->number > 0);
        if (ep.main_context == 1 && ep.embed_mode == 0) {
            mains += !epctx_str_eq(ep.ep_cache_context, file);
            file = ep.ep_cache_context;
        } else if (ep.main_context == 0 && twice &&
                   !epctx__views_add(&g->c, &views, node.view)) {
            return false;
        }
    }
    /* With several binaries lint says what is wrong with the result. */
    for (i = 0; i < views.count && mains == 1; i++) {
        epctx_view view = ((const epctx_view *)views.list)[i];
        node = epctx_node_of(view);
        if (!epctx__convert_int(&g->c, view, "main_context", 1) ||
            !epctx__convert_int(&g->c, view, "embed_mode", 0) ||
            !epctx__convert_str(&g->c, view, "ep_cache_context", file) ||
            !epctx__combine_say(&g->w->m, g->number, node.name,
                                "node '%S' names the binary itself: another model has a partition "
                                "of the same name",
                                &node.name)) {
            return false;
        }
    }
    return true;
}

/* Everything that a model changes before it is copied. */
static bool epctx__guest_prepare(epctx__guest *g)
{
    bool alone;
    return epctx__guest_look(g) && epctx__guest_prefix(g) && epctx__guest_join(g) &&
           epctx__guest_values(g) && epctx__guest_nodes(g) && epctx__guest_rename_all(g) &&
           epctx__guest_partitions(g, &alone) &&
           (epctx__carry_files(&g->w->m, &g->c, g->number, alone) ||
            epctx__merge_refuse(g, EPCTX_ERR_GRAPH));
}

static bool epctx__merge_end(epctx__merge *w, size_t part, epctx_str name, epctx_str now,
                             epctx_view value, bool input)
{
    epctx__end *end;
    if (!epctx__list_room(w->m.c.arena, &w->ends, w->end_count, &w->end_room, sizeof *end)) {
        return epctx__convert_nomem(&w->m.c);
    }
    end = (epctx__end *)w->ends + w->end_count;
    end->part = part;
    end->name = name;
    end->now = now;
    end->value = value;
    end->input = input;
    end->before = epctx_map_get(&w->end_names, name);
    return epctx__combine_put(&w->m, &w->end_names, name, (uint32_t)w->end_count++);
}

/* The inputs and outputs of a model by the names they had; the views show the result. */
static bool epctx__guest_ends(epctx__guest *g)
{
    epctx_graph_view graph = epctx_model_graph(g->w->m.c.model);
    const epctx_str *pairs = (const epctx_str *)g->pairs;
    epctx_map before;
    size_t i;
    int k;
    epctx_map_init(&before, g->c.arena);
    for (i = 0; i < g->pair_count; i++) {
        if (!epctx__has(&g->joined, pairs[2 * i]) &&
            !epctx__combine_put(&g->w->m, &before, pairs[2 * i + 1], (uint32_t)i)) {
            return false;
        }
    }
    for (k = 0; k < 2; k++) {
        epctx_cursor values = k == 0 ? epctx_graph_inputs(graph) : epctx_graph_outputs(graph);
        epctx_value_view value;
        while (epctx_next_value(&values, &value)) {
            uint32_t at = epctx_map_get(&before, value.name);
            epctx_str name;
            if (at == EPCTX_MAP_NONE) {
                continue;
            }
            name.size = pairs[2 * at].size;
            name.data = epctx_arena_copy(g->w->m.c.arena, pairs[2 * at]);
            if (name.data == NULL) {
                return epctx__convert_nomem(&g->c);
            }
            if (!epctx__merge_end(g->w, g->number, name, value.name, value.view, k == 0)) {
                return false;
            }
        }
    }
    return true;
}

/* -- merge: copying -- */

/* Whether a field of the graph of a model goes into the result. */
static bool epctx__guest_copies(const epctx__guest *g, const epctx_field *field,
                                const epctx_map *fed)
{
    epctx_str name;
    switch (field->number) {
    case 1:
    case 12:
    case 14:
    case 15:
        return true;
    case 5:
        name = epctx_tensor_of(field->body).name;
        return !epctx__has(fed, name);
    case 13:
        name = epctx_value_of(field->body).name;
        return !epctx__has(fed, name);
    case 11:
        name = epctx_value_of(field->body).name;
        /* Before IR version 4 initializers had to be listed as inputs; now that would make them
         * replaceable. */
        return !epctx__has(fed, name) &&
               !(g->w->ir_version >= 4 && epctx_model_read(g->c.model).ir_version < 4 &&
                 epctx__has(&g->inits, name));
    default:
        return false;
    }
}

/* An input that is fed but must keep its name is produced by a node of its own. */
static bool epctx__guest_bridge(epctx__guest *g, const epctx_value_view *input, epctx_str now,
                                epctx_view *last)
{
    epctx_model *model = g->w->m.c.model;
    epctx_view none = epctx__no_view();
    epctx_str name;
    epctx_node node;
    memset(&node, 0, sizeof node);
    if (!epctx__combine_join(&g->w->m, epctx_str_of("connect_"), input->name, &name)) {
        return false;
    }
    while (epctx__has(&g->w->nodes, name)) {
        if (!epctx__combine_join(&g->w->m, name, epctx_str_of("_"), &name)) {
            return false;
        }
    }
    node.name = name;
    node.op_type = epctx_str_of("Identity");
    node.inputs = &now;
    node.input_count = 1;
    node.outputs = &input->name;
    node.output_count = 1;
    return epctx__combine_put(&g->w->m, &g->w->nodes, name, 1) &&
           epctx__combine_put(&g->w->m, &g->w->domains, epctx_str_of("ai.onnx"), 1) &&
           epctx_put_opset(model, epctx_str_of(""), 13, g->c.error) == EPCTX_OK &&
           epctx_put_node(model, none, &node, *last, last, g->c.error) == EPCTX_OK &&
           epctx_put_copy(model, epctx_model_graph(model).view, 13, input->view, none, NULL,
                          g->c.error) == EPCTX_OK &&
           epctx__combine_say(&g->w->m, g->number, input->name,
                              "node '%S' gives '%S' the name '%S', under which the EP finds it",
                              &name, &now, &input->name);
}

static bool epctx__guest_bridges(epctx__guest *g, epctx_map *fed, epctx_view *last)
{
    epctx_cursor inputs = epctx_graph_inputs(epctx_model_graph(g->c.model));
    epctx_map now;
    epctx_value_view input;
    const epctx_str *pairs = (const epctx_str *)g->pairs;
    size_t i;
    epctx_map_init(&now, g->c.arena);
    for (i = 0; i < g->pair_count; i++) {
        uint32_t at = epctx_map_get(&g->joined, pairs[2 * i]);
        if (at != EPCTX_MAP_NONE && (!epctx__combine_put(&g->w->m, &now, pairs[2 * i + 1], at) ||
                                     !epctx__combine_put(&g->w->m, fed, pairs[2 * i + 1], 1))) {
            return false;
        }
    }
    while (epctx_next_value(&inputs, &input)) {
        uint32_t at = epctx_map_get(&now, input.name);
        const epctx__end *end;
        if (at == EPCTX_MAP_NONE) {
            continue;
        }
        end = (const epctx__end *)g->w->ends + at;
        if (!epctx_str_eq(end->now, input.name) &&
            !epctx__guest_bridge(g, &input, end->now, last)) {
            return false;
        }
    }
    return true;
}

static bool epctx__guest_copy(epctx__guest *g)
{
    epctx_model *model = g->w->m.c.model;
    epctx_view into = epctx_model_graph(model).view;
    epctx_cursor fields = epctx_fields(epctx_model_graph(g->c.model).view, 0);
    epctx_view last[16];
    epctx_map fed;
    epctx_field field;
    memset(last, 0, sizeof last);
    epctx_map_init(&fed, g->c.arena);
    if (!epctx__guest_bridges(g, &fed, &last[1])) {
        return false;
    }
    while (epctx_next_field(&fields, &field)) {
        if (field.wire != EPCTX_WIRE_LEN || field.number > 15 ||
            !epctx__guest_copies(g, &field, &fed)) {
            continue;
        }
        if (epctx_put_copy(model, into, field.number, field.body, last[field.number],
                           &last[field.number], g->c.error) != EPCTX_OK) {
            return false;
        }
    }
    return true;
}

/* -- merge: what stands once in a model -- */

/* Which operator sets the nodes of a model use; functions bring their own imports. */
static bool epctx__merge_domains(epctx__merge *w, const epctx_model *model, epctx_map *domains)
{
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) {
        epctx_str domain = node.domain.size > 0 ? node.domain : epctx_str_of("ai.onnx");
        if (!walk.in_function && !epctx__combine_put(&w->m, domains, domain, 1)) {
            return false;
        }
    }
    return true;
}

static bool epctx__guest_opsets(epctx__guest *g)
{
    epctx__merge *w = g->w;
    epctx_model *model = w->m.c.model;
    epctx_cursor imports = epctx_model_opsets(g->c.model);
    epctx_map used;
    epctx_opset opset;
    epctx_map_init(&used, g->c.arena);
    if (!epctx__merge_domains(w, g->c.model, &used)) {
        return false;
    }
    while (epctx_next_opset(&imports, &opset)) {
        epctx_str domain = opset.domain.size > 0 ? opset.domain : epctx_str_of("ai.onnx");
        int64_t have = epctx_model_opset(model, opset.domain);
        bool here = epctx__has(&used, domain);
        bool there = epctx__has(&w->domains, domain);
        epctx_status status = EPCTX_OK;
        if (have == 0) {
            status = epctx_put_opset(model, opset.domain, opset.version, g->c.error);
        } else if (have != opset.version && here && !there) {
            status = epctx_set_opset(model, opset.domain, opset.version, g->c.error);
        } else if (have != opset.version && here && !w->opts.force_opset) {
            epctx_fail(g->c.error, EPCTX_ERR_GRAPH,
                       "its nodes are of operator set %S version %d, those of earlier models of "
                       "version %d: convert one of them (onnx.version_converter), or force the "
                       "newer version for both",
                       &domain, opset.version, have);
            return epctx__merge_refuse(g, EPCTX_ERR_GRAPH);
        } else if (have < opset.version && here) {
            status = epctx_set_opset(model, opset.domain, opset.version, g->c.error);
        }
        if (status != EPCTX_OK) {
            return false;
        }
        if (have != 0 && have != opset.version &&
            !epctx__combine_say(&w->m, g->number, domain,
                                "operator set %S: version %d here, %d before; the result has %d",
                                &domain, opset.version, have,
                                epctx_model_opset(model, opset.domain))) {
            return false;
        }
    }
    return true;
}

static bool epctx__guest_metadata_one(epctx__guest *g, epctx_view owner, epctx_owner kind,
                                      const epctx_pair *pair, epctx_str old)
{
    epctx_str compat = epctx_str_of(EPCTX_COMPAT_PREFIX);
    bool is_compat = kind == EPCTX_OF_MODEL && pair->key.size > compat.size &&
                     memcmp(pair->key.data, compat.data, compat.size) == 0;
    epctx_str key;
    if (g->w->opts.metadata == EPCTX_METADATA_FIRST) {
        return epctx__combine_say(&g->w->m, g->number, pair->key,
                                  "metadata '%S': the earlier value stays", &pair->key);
    }
    if (g->w->opts.metadata == EPCTX_METADATA_REFUSE || is_compat) {
        epctx_fail(g->c.error, EPCTX_ERR_GRAPH,
                   "metadata '%S' is '%S', in an earlier model '%S': keep the first%s, or change "
                   "one of them",
                   &pair->key, &pair->value, &old, is_compat ? "" : ", use a prefix");
        return epctx__merge_refuse(g, EPCTX_ERR_GRAPH);
    }
    if (!epctx__combine_join(&g->w->m, g->prefix, pair->key, &key)) {
        return false;
    }
    return epctx_set_pair(g->w->m.c.model, owner, (uint32_t)kind, key, pair->value, g->c.error) ==
               EPCTX_OK &&
           epctx__combine_say(&g->w->m, g->number, pair->key, "metadata '%S' is now '%S'",
                              &pair->key, &key);
}

/* The result is not what the source of one of its parts would give. */
static bool epctx__drop_builds(epctx__combine *m)
{
    epctx_view model = epctx_model_read(m->c.model).view;
    for (;;) {
        epctx_cursor it = epctx_metadata(model, EPCTX_OF_MODEL);
        epctx_pair pair;
        bool found = false;
        while (!found && epctx_next_pair(&it, &pair)) {
            found = epctx__starts_with(pair.key, EPCTX_BUILD_PREFIX);
        }
        if (!found) {
            return true;
        }
        if (!epctx__combine_say(m, 0, pair.key, "metadata '%S' goes: it is about another model",
                                &pair.key) ||
            epctx_unset_metadata(m->c.model, pair.key, m->c.error) != EPCTX_OK) {
            return false;
        }
    }
}

static bool epctx__guest_metadata(epctx__guest *g, epctx_view from, epctx_view into,
                                  epctx_owner kind)
{
    epctx_cursor theirs = epctx_metadata(from, kind);
    epctx_pair pair;
    while (epctx_next_pair(&theirs, &pair)) {
        epctx_cursor ours = epctx_metadata(into, kind);
        epctx_pair old;
        bool found = false;
        if (kind == EPCTX_OF_MODEL && epctx__starts_with(pair.key, EPCTX_BUILD_PREFIX)) {
            continue;
        }
        while (!found && epctx_next_pair(&ours, &old)) {
            found = epctx_str_eq(old.key, pair.key);
        }
        if (found ? !epctx_str_eq(old.value, pair.value) &&
                        !epctx__guest_metadata_one(g, into, kind, &pair, old.value)
                  : epctx_set_pair(g->w->m.c.model, into, (uint32_t)kind, pair.key, pair.value,
                                   g->c.error) != EPCTX_OK) {
            return false;
        }
    }
    return true;
}

static bool epctx__function_key(epctx_arena *arena, epctx_str domain, epctx_str name,
                                epctx_str overload, epctx_str *key)
{
    epctx_str parts[3];
    parts[0] = epctx_str_is(domain, "ai.onnx") ? epctx_str_of("") : domain;
    parts[1] = name;
    parts[2] = overload;
    return epctx__join_key(arena, parts, 3, key);
}

/* Functions that are the same, once. */
static bool epctx__guest_functions(epctx__guest *g)
{
    epctx__merge *w = g->w;
    epctx_cursor theirs = epctx_model_functions(g->c.model);
    epctx_function_view function;
    while (epctx_next_function(&theirs, &function)) {
        epctx_str key;
        uint32_t at;
        if (!epctx__function_key(w->m.c.arena, function.domain, function.name, function.overload,
                                 &key)) {
            return epctx__convert_nomem(&g->c);
        }
        at = epctx_map_get(&w->functions, key);
        if (at != EPCTX_MAP_NONE) {
            epctx_cursor ours = epctx_model_functions(w->m.c.model);
            epctx_function_view other;
            while (epctx_next_function(&ours, &other) && at > 0) {
                at--;
            }
            if (!epctx__same_bytes(other.view, function.view)) {
                epctx_fail(g->c.error, EPCTX_ERR_GRAPH,
                           "function '%S' of domain '%S' is another one in an earlier model: "
                           "rename one of them",
                           &function.name, &function.domain);
                return epctx__merge_refuse(g, EPCTX_ERR_GRAPH);
            }
            w->function_count += g->number == 0;
            continue;
        }
        if (!epctx__combine_put(&w->m, &w->functions, key, w->function_count++) ||
            (g->number > 0 &&
             epctx_put_copy(w->m.c.model, epctx_model_read(w->m.c.model).view, 25, function.view,
                            epctx__no_view(), NULL, g->c.error) != EPCTX_OK)) {
            return false;
        }
    }
    return true;
}

/* -- merge: one model after the other -- */

/* What the result has now, for the models that follow. */
static bool epctx__guest_settle(epctx__guest *g)
{
    epctx__merge *w = g->w;
    epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(g->c.model));
    epctx_node_view node;
    size_t i;
    for (i = 0; i < g->body_count; i++) {
        epctx__definitions d = epctx__definitions_of(((const epctx_view *)g->bodies)[i]);
        epctx_str name;
        while (epctx__next_definition(&d, &name)) {
            if (!epctx__combine_put(&w->m, i == 0 ? &w->outer : &w->inner, name, 1)) {
                return false;
            }
        }
    }
    while (epctx_next_node(&nodes, &node)) {
        if (!epctx__combine_put(&w->m, &w->nodes, node.name, 1)) {
            return false;
        }
    }
    return true;
}

/* Bodies again: renaming has made other messages of them. */
static bool epctx__guest_look_again(epctx__guest *g)
{
    g->body_count = 0;
    return epctx__every_graph(&g->c, epctx__guest_body);
}

static bool epctx__merge_first(epctx__merge *w)
{
    epctx__guest g;
    epctx_model *model = w->m.c.model;
    epctx_cursor inputs;
    epctx_value_view input;
    void *views = NULL;
    size_t count = 0;
    size_t room = 0;
    bool old = epctx_model_read(model).ir_version < 4;
    epctx__guest_begin(&g, w, 0);
    if (!epctx__guest_prepare(&g) || !epctx__guest_look_again(&g) || !epctx__guest_settle(&g) ||
        !epctx__guest_ends(&g) || !epctx__guest_functions(&g) ||
        !epctx__merge_domains(w, model, &w->domains)) {
        return false;
    }
    inputs = epctx_graph_inputs(epctx_model_graph(model));
    while (old && w->ir_version >= 4 && epctx_next_value(&inputs, &input)) {
        epctx_str now = input.name;
        epctx_cursor tensors = epctx_graph_initializers(epctx_model_graph(model));
        epctx_tensor_view tensor;
        bool found = false;
        while (!found && epctx_next_tensor(&tensors, &tensor)) {
            found = epctx_str_eq(tensor.name, now);
        }
        if (found) {
            if (!epctx__list_room(w->m.c.arena, &views, count, &room, sizeof input.view)) {
                return epctx__convert_nomem(&w->m.c);
            }
            ((epctx_view *)views)[count++] = input.view;
        }
    }
    while (count > 0) {
        if (epctx_remove(model, ((const epctx_view *)views)[--count], w->m.c.error) != EPCTX_OK) {
            return false;
        }
    }
    return epctx_model_read(model).ir_version == w->ir_version ||
           epctx_set_int(model, epctx_model_read(model).view, 1, w->ir_version, w->m.c.error) ==
               EPCTX_OK;
}

static bool epctx__merge_next(epctx__merge *w, size_t number)
{
    epctx__guest g;
    epctx_model *model = w->m.c.model;
    size_t mark = epctx_edit_mark(w->parts[number].model);
    bool ok;
    epctx__guest_begin(&g, w, number);
    ok = epctx__guest_prepare(&g) && epctx__guest_copy(&g) && epctx__guest_opsets(&g) &&
         epctx__guest_functions(&g) &&
         epctx__guest_metadata(&g, epctx_model_read(g.c.model).view, epctx_model_read(model).view,
                               EPCTX_OF_MODEL) &&
         epctx__guest_metadata(&g, epctx_model_graph(g.c.model).view,
                               epctx_model_graph(model).view, EPCTX_OF_GRAPH) &&
         epctx__guest_look_again(&g) && epctx__guest_settle(&g) && epctx__guest_ends(&g) &&
         epctx__merge_domains(w, g.c.model, &w->domains);
    epctx_undo(g.c.model, mark);
    return ok;
}

/* Outputs that feed an input are outputs no more; their types stay as value_info. */
static bool epctx__merge_outputs(epctx__merge *w)
{
    epctx_model *model = w->m.c.model;
    epctx_graph_view graph = epctx_model_graph(model);
    epctx_cursor outputs = epctx_graph_outputs(graph);
    epctx_cursor values = epctx_graph_values(graph);
    epctx_map typed;
    epctx_value_view value;
    void *views = NULL;
    size_t count = 0;
    size_t room = 0;
    size_t i;
    if (w->opts.keep_outputs || w->fed.count == 0) {
        return true;
    }
    epctx_map_init(&typed, w->m.c.arena);
    while (epctx_next_value(&values, &value)) {
        if (!epctx__combine_put(&w->m, &typed, value.name, 1)) {
            return false;
        }
    }
    while (epctx_next_value(&outputs, &value)) {
        if (epctx__has(&w->fed, value.name)) {
            if (!epctx__list_room(w->m.c.arena, &views, count, &room, sizeof value.view)) {
                return epctx__convert_nomem(&w->m.c);
            }
            ((epctx_view *)views)[count++] = value.view;
        }
    }
    for (i = 0; i < count; i++) {
        epctx_view view = ((const epctx_view *)views)[i];
        value = epctx_value_of(view);
        if (value.has_type && !epctx__has(&typed, value.name) &&
            epctx_put_copy(model, epctx_model_graph(model).view, 13, view, epctx__no_view(), NULL,
                           w->m.c.error) != EPCTX_OK) {
            return false;
        }
        if (epctx_remove(model, view, w->m.c.error) != EPCTX_OK) {
            return false;
        }
    }
    outputs = epctx_graph_outputs(epctx_model_graph(model));
    if (!epctx_next_value(&outputs, &value)) {
        epctx_fail(w->m.c.error, EPCTX_ERR_GRAPH,
                   "every output feeds an input: keep the outputs, or connect less");
        return false;
    }
    return true;
}

/* What must hold of every model before anything is edited. */
static bool epctx__merge_check(epctx__merge *w)
{
    size_t i, k;
    for (i = 0; i < w->count; i++) {
        epctx_model *model = w->parts[i].model;
        epctx_cursor trainings = epctx_model_trainings(model);
        epctx_training_view training;
        epctx_model_info info = epctx_model_read(model);
        epctx_error *error = w->m.c.error;
        bool ok = epctx__editable(model, error) == EPCTX_OK;
        for (k = 0; k < i && ok; k++) {
            if (w->parts[k].model == model) {
                epctx_fail(error, EPCTX_ERR_ARG, "the same model twice: open its file twice");
                ok = false;
            }
        }
        if (ok && i > 0 && epctx_next_training(&trainings, &training)) {
            epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "training information cannot be merged");
            ok = false;
        }
        if (!ok || !epctx__verdict_of(model, NULL, NULL, w->allowed, error) ||
            !epctx__merge_partitions(w, i)) {
            epctx_blame(error, model->path, NULL, NULL);
            return false;
        }
        w->ir_version = info.ir_version > w->ir_version ? info.ir_version : w->ir_version;
    }
    return true;
}

static bool epctx__merge_run(epctx__merge *w)
{
    size_t i;
    if (!epctx__merge_check(w) || !epctx__merge_first(w)) {
        return false;
    }
    for (i = 1; i < w->count; i++) {
        if (!epctx__merge_next(w, i)) {
            return false;
        }
    }
    for (i = 0; i < w->opts.connection_count; i++) {
        if (!w->used[i]) {
            epctx_fail(w->m.c.error, EPCTX_ERR_NOT_FOUND,
                       "no model behind that with the output '%S' has the input '%S'",
                       &w->opts.connections[i].output, &w->opts.connections[i].input);
            return false;
        }
    }
    return epctx__merge_outputs(w) && epctx__drop_builds(&w->m) &&
           epctx__verdict_of(w->m.c.model, NULL, w->allowed, NULL, w->m.c.error) &&
           epctx__convert_fits(&w->m.c, "move contexts and initializers into files beforehand");
}

EPCTX_API epctx_status epctx_merge(const epctx_part *parts, size_t count,
                                   const epctx_merge_opts *opts, epctx_combined *out,
                                   epctx_error *error)
{
    epctx__merge w;
    epctx_error local;
    epctx_error *use = error != NULL ? error : &local;
    size_t mark;
    epctx_error_clear(use);
    memset(&w, 0, sizeof w);
    if (out != NULL) {
        memset(out, 0, sizeof *out);
    }
    if (parts == NULL || count == 0 || count > UINT32_MAX) {
        return epctx_fail(use, EPCTX_ERR_ARG, "at least one model is expected");
    }
    mark = epctx_edit_mark(parts[0].model);
    if (opts != NULL) {
        w.opts = *opts;
    }
    if (!epctx__combine_begin(&w.m, parts[0].model, w.opts.output_path, use)) {
        epctx_blame(use, parts[0].model->path, NULL, NULL);
        return use->status;
    }
    w.parts = parts;
    w.count = count;
    epctx_map_init(&w.outer, w.m.c.arena);
    epctx_map_init(&w.inner, w.m.c.arena);
    epctx_map_init(&w.nodes, w.m.c.arena);
    epctx_map_init(&w.partitions, w.m.c.arena);
    epctx_map_init(&w.twice, w.m.c.arena);
    epctx_map_init(&w.domains, w.m.c.arena);
    epctx_map_init(&w.functions, w.m.c.arena);
    epctx_map_init(&w.end_names, w.m.c.arena);
    epctx_map_init(&w.fed, w.m.c.arena);
    w.used = (bool *)epctx__convert_array(&w.m.c, w.opts.connection_count, sizeof *w.used);
    if (w.used == NULL || !epctx__merge_run(&w)) {
        epctx_undo(parts[0].model, mark);
        return use->status;
    }
    epctx__combine_end(&w.m, out);
    return EPCTX_OK;
}

/* -- split -- */

typedef struct epctx__split {
    epctx__combine m;
    epctx_split_opts opts;
    epctx_node_view *nodes;
    size_t node_count;
    uint8_t *needed;     /* per node */
    epctx_map producers; /* name -> number of the node */
    epctx_map inits;     /* names of initializers */
    epctx_map inputs;    /* names of graph inputs */
    epctx_map cuts;      /* names of the inputs wanted -> number */
    epctx_map seen;      /* names that the outputs need */
    epctx_map ends;      /* names of inputs and outputs of the result */
    uint8_t *reached;    /* per cut */
    void *stack;
    size_t stack_count, stack_room;
} epctx__split;

static bool epctx__split_index(epctx__split *s)
{
    epctx_graph_view graph = epctx_model_graph(s->m.c.model);
    epctx_cursor nodes = epctx_graph_nodes(graph);
    epctx_cursor inputs = epctx_graph_inputs(graph);
    epctx_cursor tensors = epctx_graph_initializers(graph);
    epctx_cursor sparses = epctx_graph_sparse(graph);
    epctx_value_view value;
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    size_t count = epctx__count(nodes);
    bool ok = count < UINT32_MAX;
    s->nodes = (epctx_node_view *)epctx__convert_array(&s->m.c, count, sizeof *s->nodes);
    s->needed = (uint8_t *)epctx__convert_array(&s->m.c, count, 1);
    if (!ok || s->nodes == NULL || s->needed == NULL) {
        return false;
    }
    while (ok && epctx_next_node(&nodes, &s->nodes[s->node_count])) {
        epctx_cursor outputs = epctx_node_outputs(&s->nodes[s->node_count]);
        epctx_str name;
        while (ok && epctx_next_str(&outputs, &name)) {
            ok = epctx__combine_put(&s->m, &s->producers, name, (uint32_t)s->node_count);
        }
        if (++s->node_count == count) {
            break;
        }
    }
    while (ok && epctx_next_value(&inputs, &value)) {
        ok = epctx__combine_put(&s->m, &s->inputs, value.name, 1);
    }
    while (ok && epctx_next_tensor(&tensors, &tensor)) {
        ok = epctx__combine_put(&s->m, &s->inits, tensor.name, 1);
    }
    while (ok && epctx_next_sparse(&sparses, &sparse)) {
        ok = epctx__combine_put(&s->m, &s->inits, sparse.values.name, 1);
    }
    return ok;
}

/* Without a wish the inputs and outputs of the model. */
static bool epctx__split_defaults(epctx__split *s, epctx_cursor it, const epctx_value **list,
                                  size_t *count, bool inputs)
{
    epctx_value_view value;
    epctx_value *values =
        (epctx_value *)epctx__convert_array(&s->m.c, epctx__count(it), sizeof *values);
    *count = 0;
    while (values != NULL && epctx_next_value(&it, &value)) {
        if (!inputs || !epctx__has(&s->inits, value.name)) {
            values[(*count)++].name = value.name;
        }
    }
    *list = values;
    return values != NULL;
}

static bool epctx__split_unknown(epctx__split *s, epctx_str name)
{
    epctx_fail(s->m.c.error, EPCTX_ERR_NOT_FOUND,
               "the main graph has no value '%S' (values inside of bodies cannot be cut)", &name);
    return false;
}

static bool epctx__split_known(const epctx__split *s, epctx_str name)
{
    return epctx__has(&s->producers, name) || epctx__has(&s->inits, name) ||
           epctx__has(&s->inputs, name);
}

static bool epctx__split_wishes(epctx__split *s)
{
    epctx_graph_view graph = epctx_model_graph(s->m.c.model);
    size_t i;
    bool inputs_wanted = s->opts.input_count > 0;
    bool outputs_wanted = s->opts.output_count > 0;
    if ((!outputs_wanted &&
         !epctx__split_defaults(s, epctx_graph_outputs(graph), &s->opts.outputs,
                                &s->opts.output_count, false)) ||
        (!inputs_wanted && !epctx__split_defaults(s, epctx_graph_inputs(graph), &s->opts.inputs,
                                                  &s->opts.input_count, true))) {
        return false;
    }
    s->reached = (uint8_t *)epctx__convert_array(&s->m.c, s->opts.input_count, 1);
    for (i = 0; s->reached != NULL && i < s->opts.input_count; i++) {
        epctx_str name = s->opts.inputs[i].name;
        if (!epctx__split_known(s, name)) {
            return epctx__split_unknown(s, name);
        }
        if (epctx__has(&s->cuts, name)) {
            epctx_fail(s->m.c.error, EPCTX_ERR_ARG, "the input '%S' is named twice", &name);
            return false;
        }
        if (!epctx__combine_put(&s->m, &s->cuts, name, (uint32_t)i) ||
            !epctx__combine_put(&s->m, &s->ends, name, 1)) {
            return false;
        }
    }
    for (i = 0; s->reached != NULL && i < s->opts.output_count; i++) {
        epctx_str name = s->opts.outputs[i].name;
        if (!epctx__split_known(s, name)) {
            return epctx__split_unknown(s, name);
        }
        /* A model may hand an input straight through; a part of it that does is none. */
        if (epctx__has(&s->ends, name) && (inputs_wanted || outputs_wanted)) {
            epctx_fail(s->m.c.error, EPCTX_ERR_ARG, "'%S' is named as input and output, or twice",
                       &name);
            return false;
        }
        if (!epctx__combine_put(&s->m, &s->ends, name, 1)) {
            return false;
        }
    }
    return s->reached != NULL;
}

static bool epctx__split_push(epctx__split *s, epctx_str name)
{
    if (name.size == 0 || epctx__has(&s->seen, name)) {
        return true;
    }
    if (!epctx__list_room(s->m.c.arena, &s->stack, s->stack_count, &s->stack_room, sizeof name)) {
        return epctx__convert_nomem(&s->m.c);
    }
    ((epctx_str *)s->stack)[s->stack_count++] = name;
    return epctx__combine_put(&s->m, &s->seen, name, 1);
}

/* What a node reads, its bodies included. */
static bool epctx__split_reads(epctx__split *s, const epctx_node_view *node)
{
    epctx_cursor inputs = epctx_node_inputs(node);
    epctx__loader loader;
    epctx__captures captures = {NULL, 0};
    epctx_str name;
    size_t i;
    while (epctx_next_str(&inputs, &name)) {
        if (!epctx__split_push(s, name)) {
            return false;
        }
    }
    memset(&loader, 0, sizeof loader);
    loader.model = s->m.c.model;
    loader.arena = s->m.c.arena;
    loader.error = s->m.c.error;
    if (!epctx__capture_node(&loader, node->view, NULL, &captures, 100)) {
        return false;
    }
    if (captures.count == 0) {
        return true;
    }
    captures.out =
        (epctx_str *)epctx__convert_array(&s->m.c, captures.count, sizeof *captures.out);
    captures.count = 0;
    if (captures.out == NULL ||
        !epctx__capture_node(&loader, node->view, NULL, &captures, 100)) {
        return false;
    }
    for (i = 0; i < captures.count; i++) {
        if (!epctx__split_push(s, captures.out[i])) {
            return false;
        }
    }
    return true;
}

static bool epctx__split_walk(epctx__split *s)
{
    size_t i;
    for (i = 0; i < s->opts.output_count; i++) {
        if (!epctx__split_push(s, s->opts.outputs[i].name)) {
            return false;
        }
    }
    while (s->stack_count > 0) {
        epctx_str name = ((const epctx_str *)s->stack)[--s->stack_count];
        uint32_t cut = epctx_map_get(&s->cuts, name);
        uint32_t node = epctx_map_get(&s->producers, name);
        if (cut != EPCTX_MAP_NONE) {
            s->reached[cut] = 1;
        } else if (node != EPCTX_MAP_NONE) {
            if (s->needed[node] == 0 && !epctx__split_reads(s, &s->nodes[node])) {
                return false;
            }
            s->needed[node] = 1;
        } else if (epctx__has(&s->inits, name)) {
            continue;
        } else {
            epctx_fail(s->m.c.error, EPCTX_ERR_GRAPH,
                       epctx__has(&s->inputs, name)
                           ? "the outputs also need the input '%S': name it, or a value behind it, "
                             "as an input"
                           : "a node reads '%S', which nothing produces",
                       &name);
            return false;
        }
    }
    return true;
}

static bool epctx__split_unread(epctx__split *s, bool wanted)
{
    size_t i;
    for (i = 0; wanted && i < s->opts.input_count; i++) {
        if (s->reached[i] == 0) {
            epctx_fail(s->m.c.error, EPCTX_ERR_ARG,
                       "the input '%S' does not cut: nothing between the inputs and the outputs "
                       "reads it",
                       &s->opts.inputs[i].name);
            return false;
        }
    }
    return true;
}

/* -- split: the context of nodes that stay -- */

/* Hands the context over to the first secondary node that stays. */
static bool epctx__split_promote(epctx__split *s, size_t from, size_t to)
{
    static const char *const names[] = {"main_context", "embed_mode", "ep_cache_context",
                                        "max_size"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        epctx_cursor attrs = epctx_node_attrs(&s->nodes[from]);
        epctx_attr_view attr;
        while (epctx_next_attr(&attrs, &attr)) {
            if (epctx_str_is(attr.name, names[i]) &&
                epctx_set_attr_copy(s->m.c.model, s->nodes[to].view, attr.view, s->m.c.error) !=
                    EPCTX_OK) {
                return false;
            }
        }
    }
    return epctx__convert_int(&s->m.c, s->nodes[to].view, "main_context", 1) &&
           epctx__combine_say(&s->m, 0, s->nodes[to].name,
                              "node '%S' takes over the context of '%S', which goes",
                              &s->nodes[to].name, &s->nodes[from].name);
}

static bool epctx__split_contexts(epctx__split *s)
{
    epctx_map mains; /* source -> number of the only main node, or UINT32_MAX - 1 */
    epctx_map kept;
    const uint32_t many = UINT32_MAX - 1;
    size_t i;
    epctx_map_init(&mains, s->m.c.arena);
    epctx_map_init(&kept, s->m.c.arena);
    for (i = 0; i < s->node_count; i++) {
        epctx_epnode ep;
        epctx_str key;
        if (!epctx_is_epnode(&s->nodes[i]) ||
            epctx_epnode_read(&s->nodes[i], &ep, NULL) != EPCTX_OK || ep.main_context != 1) {
            continue;
        }
        if (!epctx__join_key(s->m.c.arena, &ep.source, 1, &key)) {
            return epctx__convert_nomem(&s->m.c);
        }
        if (!epctx__combine_put(&s->m, &mains, key,
                                epctx__has(&mains, key) ? many : (uint32_t)i) ||
            (s->needed[i] != 0 && !epctx__combine_put(&s->m, &kept, key, 1))) {
            return false;
        }
    }
    for (i = 0; i < s->node_count; i++) {
        epctx_epnode ep;
        epctx_str key;
        uint32_t from;
        const epctx_profile *profile;
        if (s->needed[i] == 0 || !epctx_is_epnode(&s->nodes[i]) ||
            epctx_epnode_read(&s->nodes[i], &ep, NULL) != EPCTX_OK || ep.main_context != 0) {
            continue;
        }
        profile = epctx_profile_of(ep.source);
        if (profile->payload == EPCTX_PAYLOAD_EACH ||
            (profile->traits & EPCTX_SECONDARY_CONTEXT) != 0) {
            continue;
        }
        if (!epctx__join_key(s->m.c.arena, &ep.source, 1, &key)) {
            return epctx__convert_nomem(&s->m.c);
        }
        from = epctx_map_get(&mains, key);
        if (from == EPCTX_MAP_NONE || (from != many && epctx__has(&kept, key))) {
            continue;
        }
        if (from == many) {
            epctx_fail(s->m.c.error, EPCTX_ERR_UNSUPPORTED,
                       "the node has its graph in the context of one of several nodes: which one "
                       "is known to the EP only");
            epctx_blame(s->m.c.error, NULL, &ep.name, NULL);
            return false;
        }
        if (!epctx__split_promote(s, from, i) || !epctx__combine_put(&s->m, &kept, key, 1)) {
            return false;
        }
    }
    return true;
}

/* -- split: what goes and what comes -- */

/* Whether a value exists in the result. */
static bool epctx__split_lives(const epctx__split *s, epctx_str name)
{
    uint32_t node = epctx_map_get(&s->producers, name);
    if (epctx__has(&s->cuts, name)) {
        return epctx__has(&s->seen, name);
    }
    return node != EPCTX_MAP_NONE ? s->needed[node] != 0 : epctx__has(&s->seen, name);
}

/* What knows the type of a value that becomes an input or output. */
static bool epctx__split_types(epctx__split *s, epctx_map *types, epctx__views *values)
{
    epctx_graph_view graph = epctx_model_graph(s->m.c.model);
    int k;
    for (k = 0; k < 3; k++) {
        epctx_cursor it = k == 0   ? epctx_graph_values(graph)
                          : k == 1 ? epctx_graph_outputs(graph)
                                   : epctx_graph_inputs(graph);
        epctx_value_view value;
        while (epctx_next_value(&it, &value)) {
            if (!epctx__has(&s->ends, value.name)) {
                continue;
            }
            if (!epctx__combine_put(&s->m, types, value.name, (uint32_t)values->count) ||
                !epctx__views_add(&s->m.c, values, value.view)) {
                return false;
            }
        }
    }
    return true;
}

/* The type of an initializer that becomes an input. */
static bool epctx__split_tensor_type(epctx__split *s, epctx_str name, epctx_value *out)
{
    epctx_cursor tensors = epctx_graph_initializers(epctx_model_graph(s->m.c.model));
    epctx_tensor_view tensor;
    while (epctx__has(&s->inits, name) && epctx_next_tensor(&tensors, &tensor)) {
        epctx_cursor dims = epctx_tensor_dims(&tensor);
        int64_t *list;
        if (!epctx_str_eq(tensor.name, name)) {
            continue;
        }
        list = (int64_t *)epctx__convert_array(&s->m.c, tensor.rank, sizeof *list);
        if (list == NULL || tensor.rank > INT32_MAX) {
            return false;
        }
        out->name = name;
        out->elem_type = tensor.elem_type;
        out->dims = list;
        while (out->rank < (int32_t)tensor.rank && epctx_next_int(&dims, &list[out->rank])) {
            out->rank++;
        }
        return true;
    }
    return true;
}

static bool epctx__split_end(epctx__split *s, const epctx_value *wish, bool input,
                             const epctx_map *types, const epctx__views *values, epctx_view *last)
{
    epctx_model *model = s->m.c.model;
    epctx_view none = epctx__no_view();
    uint32_t at = epctx_map_get(types, wish->name);
    epctx_value value;
    if (wish->elem_type == 0 && at != EPCTX_MAP_NONE) {
        return epctx_put_copy(model, epctx_model_graph(model).view, input ? 11 : 12,
                              ((const epctx_view *)values->list)[at], *last, last,
                              s->m.c.error) == EPCTX_OK;
    }
    memset(&value, 0, sizeof value);
    if (wish->elem_type != 0) {
        value = *wish;
    } else if (!epctx__split_tensor_type(s, wish->name, &value)) {
        return false;
    }
    if (value.elem_type == 0 && input) {
        epctx_fail(s->m.c.error, EPCTX_ERR_GRAPH,
                   "the model does not say of which type '%S' is: give type and shape, or add "
                   "value_info (onnx.shape_inference)",
                   &wish->name);
        return false;
    }
    if (value.elem_type == 0) {
        value.name = wish->name;
        value.rank = -1;
        if (!epctx__combine_say(&s->m, 0, wish->name,
                                "output '%S' has no type: ONNX Runtime infers it, the ONNX checker "
                                "wants one",
                                &wish->name)) {
            return false;
        }
    }
    return (input ? epctx_put_input : epctx_put_output)(model, none, &value, *last, last,
                                                        s->m.c.error) == EPCTX_OK;
}

/* Inputs that only make an initializer replaceable stay with it. */
static bool epctx__split_ends(epctx__split *s, bool inputs_wanted, bool outputs_wanted)
{
    epctx_graph_view graph = epctx_model_graph(s->m.c.model);
    epctx_cursor it = epctx_graph_inputs(graph);
    epctx_value_view value;
    epctx_map types;
    epctx__views values, gone;
    epctx_view last = epctx__no_view();
    size_t i;
    memset(&values, 0, sizeof values);
    memset(&gone, 0, sizeof gone);
    epctx_map_init(&types, s->m.c.arena);
    if (!epctx__split_types(s, &types, &values)) {
        return false;
    }
    while (epctx_next_value(&it, &value)) {
        bool optional = epctx__has(&s->inits, value.name) && epctx__has(&s->seen, value.name) &&
                        !epctx__has(&s->cuts, value.name);
        bool stays = !inputs_wanted && epctx__has(&s->seen, value.name);
        if (!optional && !stays && !epctx__views_add(&s->m.c, &gone, value.view)) {
            return false;
        }
    }
    for (i = 0; inputs_wanted && i < s->opts.input_count; i++) {
        if (!epctx__split_end(s, &s->opts.inputs[i], true, &types, &values, &last)) {
            return false;
        }
    }
    it = epctx_graph_outputs(graph);
    while (outputs_wanted && epctx_next_value(&it, &value)) {
        if (!epctx__views_add(&s->m.c, &gone, value.view)) {
            return false;
        }
    }
    last = epctx__no_view();
    for (i = 0; outputs_wanted && i < s->opts.output_count; i++) {
        if (!epctx__split_end(s, &s->opts.outputs[i], false, &types, &values, &last)) {
            return false;
        }
    }
    return epctx__views_remove(&s->m.c, &gone);
}

static bool epctx__split_graph(epctx__split *s)
{
    epctx_graph_view graph = epctx_model_graph(s->m.c.model);
    epctx_cursor tensors = epctx_graph_initializers(graph);
    epctx_cursor sparses = epctx_graph_sparse(graph);
    epctx_cursor values = epctx_graph_values(graph);
    epctx_cursor annotations = epctx_graph_annotations(graph);
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    epctx_value_view value;
    epctx_annotation_view annotation;
    epctx__views gone;
    size_t i;
    bool ok = true;
    memset(&gone, 0, sizeof gone);
    for (i = 0; ok && i < s->node_count; i++) {
        ok = s->needed[i] != 0 || epctx__views_add(&s->m.c, &gone, s->nodes[i].view);
    }
    if (!ok || !epctx__combine_say(&s->m, 0, graph.name, "%u of %u nodes stay",
                                   (uint64_t)(s->node_count - gone.count),
                                   (uint64_t)s->node_count)) {
        return false;
    }
    while (ok && epctx_next_annotation(&annotations, &annotation)) {
        epctx_cursor pairs = epctx_annotation_pairs(&annotation);
        epctx_pair pair;
        if (!epctx__split_lives(s, annotation.tensor_name)) {
            ok = epctx__views_add(&s->m.c, &gone, annotation.view);
            continue;
        }
        while (ok && epctx_next_pair(&pairs, &pair)) { /* its scale is needed, too */
            ok = !epctx__has(&s->inits, pair.value) ||
                 epctx__combine_put(&s->m, &s->seen, pair.value, 1);
        }
    }
    while (ok && epctx_next_tensor(&tensors, &tensor)) {
        ok = (epctx__has(&s->seen, tensor.name) && !epctx__has(&s->cuts, tensor.name)) ||
             epctx__views_add(&s->m.c, &gone, tensor.view);
    }
    while (ok && epctx_next_sparse(&sparses, &sparse)) {
        ok = (epctx__has(&s->seen, sparse.values.name) &&
              !epctx__has(&s->cuts, sparse.values.name)) ||
             epctx__views_add(&s->m.c, &gone, sparse.view);
    }
    while (ok && epctx_next_value(&values, &value)) {
        ok = (epctx__split_lives(s, value.name) && !epctx__has(&s->ends, value.name)) ||
             epctx__views_add(&s->m.c, &gone, value.view);
    }
    return ok && epctx__views_remove(&s->m.c, &gone);
}

/* -- split: functions, training, metadata -- */

/* Functions by key, and those whose bodies are still to be looked at. */
typedef struct epctx__calls {
    epctx_function_view *functions;
    epctx_map numbers;
    uint8_t *used;
    uint32_t *stack;
    size_t waiting;
} epctx__calls;

static bool epctx__split_call(epctx__split *s, const epctx_node_view *node, epctx__calls *calls)
{
    epctx_str key;
    uint32_t at;
    if (!epctx__function_key(s->m.c.arena, node->domain, node->op_type, node->overload, &key)) {
        return epctx__convert_nomem(&s->m.c);
    }
    at = epctx_map_get(&calls->numbers, key);
    if (at != EPCTX_MAP_NONE && calls->used[at] == 0) {
        calls->used[at] = 1;
        calls->stack[calls->waiting++] = at;
    }
    return true;
}

static bool epctx__split_calls_in(epctx__split *s, epctx_cursor nodes, epctx__calls *calls,
                                  uint32_t depth)
{
    epctx_node_view node;
    while (depth > 0 && epctx_next_node(&nodes, &node)) {
        epctx_cursor attrs = epctx_fields(node.view, 5);
        epctx_view attr;
        if (!epctx__split_call(s, &node, calls)) {
            return false;
        }
        while (epctx__next_body(&attrs, &attr)) {
            epctx_cursor fields = epctx_fields(attr, 0);
            epctx_field field;
            while (epctx_next_field(&fields, &field)) {
                if (field.wire == EPCTX_WIRE_LEN && (field.number == 6 || field.number == 11) &&
                    !epctx__split_calls_in(s, epctx_fields(field.body, 1), calls, depth - 1)) {
                    return false;
                }
            }
        }
    }
    return true;
}

/* Functions that nothing calls any more go. */
static bool epctx__split_functions(epctx__split *s)
{
    epctx_cursor it = epctx_model_functions(s->m.c.model);
    size_t count = epctx__count(it);
    epctx__calls calls;
    epctx__views gone;
    size_t i;
    memset(&gone, 0, sizeof gone);
    memset(&calls, 0, sizeof calls);
    epctx_map_init(&calls.numbers, s->m.c.arena);
    calls.functions =
        (epctx_function_view *)epctx__convert_array(&s->m.c, count, sizeof *calls.functions);
    calls.used = (uint8_t *)epctx__convert_array(&s->m.c, count, 1);
    calls.stack = (uint32_t *)epctx__convert_array(&s->m.c, count, sizeof *calls.stack);
    if (calls.functions == NULL || calls.used == NULL || calls.stack == NULL) {
        return false;
    }
    for (i = 0; i < count && epctx_next_function(&it, &calls.functions[i]); i++) {
        const epctx_function_view *f = &calls.functions[i];
        epctx_str key;
        if (!epctx__function_key(s->m.c.arena, f->domain, f->name, f->overload, &key)) {
            return epctx__convert_nomem(&s->m.c);
        }
        if (!epctx__combine_put(&s->m, &calls.numbers, key, (uint32_t)i)) {
            return false;
        }
    }
    if (!epctx__split_calls_in(s, epctx_graph_nodes(epctx_model_graph(s->m.c.model)), &calls,
                               EPCTX_WALK_DEPTH)) {
        return false;
    }
    while (calls.waiting > 0) {
        const epctx_function_view *f = &calls.functions[calls.stack[--calls.waiting]];
        if (!epctx__split_calls_in(s, epctx_function_nodes(f), &calls, EPCTX_WALK_DEPTH)) {
            return false;
        }
    }
    for (i = 0; i < count; i++) {
        const epctx_function_view *f = &calls.functions[i];
        if (calls.used[i] == 0 &&
            (!epctx__views_add(&s->m.c, &gone, f->view) ||
             !epctx__combine_say(&s->m, 0, f->name, "function '%S' goes: nothing calls it",
                                 &f->name))) {
            return false;
        }
    }
    return epctx__views_remove(&s->m.c, &gone);
}

static bool epctx__drop_stale(epctx__combine *m);

static bool epctx__split_training(epctx__split *s)
{
    epctx_cursor trainings = epctx_model_trainings(s->m.c.model);
    epctx_training_view training;
    epctx__views gone;
    memset(&gone, 0, sizeof gone);
    while (epctx_next_training(&trainings, &training)) {
        if (!epctx__views_add(&s->m.c, &gone, training.view)) {
            return false;
        }
    }
    return gone.count == 0 ||
           (epctx__views_remove(&s->m.c, &gone) &&
            epctx__combine_say(&s->m, 0, epctx_str_of(NULL),
                               "training information goes: it is about the whole model"));
}

static bool epctx__split_run(epctx__split *s)
{
    bool inputs_wanted = s->opts.input_count > 0;
    bool outputs_wanted = s->opts.output_count > 0;
    uint64_t allowed[EPCTX_RULE_COUNT];
    memset(allowed, 0, sizeof allowed);
    return epctx__verdict_of(s->m.c.model, NULL, NULL, allowed, s->m.c.error) &&
           epctx__split_index(s) && epctx__split_wishes(s) && epctx__split_walk(s) &&
           epctx__split_unread(s, inputs_wanted) && epctx__split_contexts(s) &&
           epctx__split_ends(s, inputs_wanted, outputs_wanted) && epctx__split_graph(s) &&
           epctx__split_functions(s) && epctx__split_training(s) && epctx__drop_stale(&s->m) &&
           epctx__drop_builds(&s->m) &&
           epctx__carry_files(&s->m, &s->m.c, 0, false) &&
           epctx__verdict_of(s->m.c.model, NULL, allowed, NULL, s->m.c.error);
}

EPCTX_API epctx_status epctx_split(epctx_model *model, const epctx_split_opts *opts,
                                   epctx_combined *out, epctx_error *error)
{
    epctx__split s;
    epctx_error local;
    epctx_error *use = error != NULL ? error : &local;
    size_t mark = epctx_edit_mark(model);
    bool ok;
    epctx_error_clear(use);
    memset(&s, 0, sizeof s);
    if (out != NULL) {
        memset(out, 0, sizeof *out);
    }
    if (opts != NULL) {
        s.opts = *opts;
    }
    ok = epctx__combine_begin(&s.m, model, s.opts.output_path, use);
    if (ok) {
        epctx_map_init(&s.producers, s.m.c.arena);
        epctx_map_init(&s.inits, s.m.c.arena);
        epctx_map_init(&s.inputs, s.m.c.arena);
        epctx_map_init(&s.cuts, s.m.c.arena);
        epctx_map_init(&s.seen, s.m.c.arena);
        epctx_map_init(&s.ends, s.m.c.arena);
        ok = epctx__split_run(&s);
    }
    if (!ok) {
        epctx_undo(model, mark);
        epctx_fail(use, EPCTX_ERR_GRAPH, "the model cannot be split");
        epctx_blame(use, model->path, NULL, NULL);
        return use->status;
    }
    epctx__combine_end(&s.m, out);
    return EPCTX_OK;
}

/* -- wrap -- */

typedef struct epctx__wrap {
    epctx__combine m;
    const epctx_wrap_opts *opts;
    epctx_map names;
    bool wide; /* a quantized type of 16 bits */
} epctx__wrap;

static bool epctx__wrap_refuse(epctx__wrap *w, const epctx_wrap_value *v, const char *text)
{
    epctx_fail(w->m.c.error, EPCTX_ERR_ARG, "'%S' (%s): %s", &v->value.name,
               epctx_elem_name(v->value.elem_type), text);
    return false;
}

/* Range of a quantized type; false for others. */
static bool epctx__quantized_range(int32_t elem_type, int64_t *least, int64_t *most)
{
    switch (elem_type) {
    case EPCTX_ONNX_UINT8:
        *least = 0;
        *most = 255;
        return true;
    case EPCTX_ONNX_INT8:
        *least = -128;
        *most = 127;
        return true;
    case 4: /* uint16 */
        *least = 0;
        *most = 65535;
        return true;
    case 5: /* int16 */
        *least = -32768;
        *most = 32767;
        return true;
    default:
        return false;
    }
}

static bool epctx__wrap_name(epctx__wrap *w, const epctx_wrap_value *v, const char *tail,
                             epctx_str *out)
{
    if (!epctx__combine_join(&w->m, v->value.name, epctx_str_of(tail), out)) {
        return false;
    }
    if (out->size == 0 || epctx__has(&w->names, *out)) {
        epctx_fail(w->m.c.error, EPCTX_ERR_ARG,
                   out->size == 0 ? "a value without a name" : "two values would be called '%S'",
                   out);
        return false;
    }
    return epctx__combine_put(&w->m, &w->names, *out, 1);
}

static bool epctx__wrap_check(epctx__wrap *w, const epctx_wrap_value *v)
{
    epctx__type_note note;
    int64_t least, most;
    int32_t i;
    memset(&note, 0, sizeof note);
    note.is_tensor = true;
    note.elem_type = v->value.elem_type;
    if (!epctx__type_allowed(&note)) {
        return epctx__wrap_refuse(w, v, "EPContext takes tensors of integers of 8 to 64 bits, "
                                        "floats of 16 to 64 bits and bool");
    }
    for (i = 0; i < v->value.rank; i++) {
        if (v->value.dims[i] < 0 && (w->opts->profile->traits & EPCTX_STATIC_SHAPES) != 0) {
            return epctx__wrap_refuse(w, v, "this EP takes static shapes only");
        }
    }
    if (!v->quantized) {
        return true;
    }
    if (!epctx__quantized_range(v->value.elem_type, &least, &most)) {
        return epctx__wrap_refuse(w, v, "integers of 8 or 16 bits can be quantized");
    }
    if (!(v->scale > 0.0f) || v->scale > 3.4e38f) {
        return epctx__wrap_refuse(w, v, "the scale must be greater than 0");
    }
    if (v->zero_point < least || v->zero_point > most) {
        return epctx__wrap_refuse(w, v, "the zero point is outside of its range");
    }
    w->wide = w->wide || most > 255 || least < -128;
    return true;
}

static bool epctx__wrap_tensor(epctx__wrap *w, epctx_str name, int32_t elem_type, uint64_t bits,
                               size_t size)
{
    epctx_tensor tensor;
    uint8_t *data = (uint8_t *)epctx__convert_array(&w->m.c, size, 1);
    size_t i;
    for (i = 0; data != NULL && i < size; i++) {
        data[i] = (uint8_t)(bits >> 8 * i);
    }
    memset(&tensor, 0, sizeof tensor);
    tensor.name = name;
    tensor.elem_type = elem_type;
    tensor.data = data;
    tensor.size = size;
    return data != NULL && epctx_put_tensor(w->m.c.model, epctx__no_view(), &tensor,
                                            epctx__no_view(), NULL, w->m.c.error) == EPCTX_OK;
}

/* A graph input or output, with the node that makes it float32. */
static bool epctx__wrap_value(epctx__wrap *w, const epctx_wrap_value *v, bool input)
{
    epctx_view none = epctx__no_view();
    epctx_model *model = w->m.c.model;
    epctx_error *error = w->m.c.error;
    epctx_value outside = v->value;
    epctx_str inside, names[3];
    epctx_node node;
    uint32_t scale;
    if (!epctx__wrap_check(w, v) || !epctx__wrap_name(w, v, "", &inside)) {
        return false;
    }
    if (v->quantized) {
        if (!epctx__wrap_name(w, v, "_dq", &outside.name) ||
            !epctx__wrap_name(w, v, "_scale", &names[1]) ||
            !epctx__wrap_name(w, v, "_zp", &names[2])) {
            return false;
        }
        outside.elem_type = EPCTX_ONNX_FLOAT;
    }
    if ((input ? epctx_put_input : epctx_put_output)(model, none, &outside, none, NULL, error) !=
        EPCTX_OK) {
        return false;
    }
    if (!v->quantized) {
        return true;
    }
    memcpy(&scale, &v->scale, sizeof scale);
    memset(&node, 0, sizeof node);
    names[0] = input ? outside.name : inside;
    node.name = input ? inside : outside.name;
    node.op_type = epctx_str_of(input ? "QuantizeLinear" : "DequantizeLinear");
    node.inputs = names;
    node.input_count = 3;
    node.outputs = input ? &inside : &outside.name;
    node.output_count = 1;
    return epctx__wrap_tensor(w, names[1], EPCTX_ONNX_FLOAT, scale, 4) &&
           epctx__wrap_tensor(w, names[2], v->value.elem_type, (uint64_t)v->zero_point,
                              epctx_elem_size(v->value.elem_type)) &&
           epctx_put_value(model, none, &v->value, none, NULL, error) == EPCTX_OK &&
           epctx_put_node(model, none, &node, none, NULL, error) == EPCTX_OK &&
           epctx__combine_say(&w->m, 0, outside.name, "%s '%S' is float32, the binary has %s",
                              input ? "input" : "output", &outside.name,
                              epctx_elem_name(v->value.elem_type));
}

static void epctx__wrap_text(epctx_epnode *ep, epctx_epnode_attr attr, epctx_str *member,
                             const char *text)
{
    if (text != NULL) {
        *member = epctx_str_of(text);
        ep->present |= 1u << attr;
    }
}

static bool epctx__wrap_node(epctx__wrap *w, epctx_span binary)
{
    const epctx_wrap_opts *o = w->opts;
    epctx_attr attrs[EPCTX_EP_ATTR_COUNT];
    epctx_epnode ep = epctx_epnode_default();
    epctx_node node;
    epctx_str *names = (epctx_str *)epctx__convert_array(
        &w->m.c, o->input_count + o->output_count, sizeof *names);
    size_t i;
    if (names == NULL) {
        return false;
    }
    for (i = 0; i < o->input_count + o->output_count; i++) {
        names[i] = i < o->input_count ? o->inputs[i].value.name
                                      : o->outputs[i - o->input_count].value.name;
    }
    ep.present = 1u << EPCTX_EP_MAIN_CONTEXT | 1u << EPCTX_EP_EMBED_MODE;
    ep.embed_mode = o->embed;
    epctx__wrap_text(&ep, EPCTX_EP_EP_CACHE_CONTEXT, &ep.ep_cache_context, o->binary_name);
    if (o->embed) {
        ep.ep_cache_context = epctx__str(binary.data, binary.size);
        ep.present |= 1u << EPCTX_EP_EP_CACHE_CONTEXT;
    }
    epctx__wrap_text(&ep, EPCTX_EP_PARTITION_NAME, &ep.partition_name,
                     o->partition_name != NULL ? o->partition_name : o->name);
    epctx__wrap_text(&ep, EPCTX_EP_SOURCE, &ep.source,
                     o->source != NULL ? o->source : o->profile->sources[0]);
    epctx__wrap_text(&ep, EPCTX_EP_EP_SDK_VERSION, &ep.ep_sdk_version, o->sdk_version);
    epctx__wrap_text(&ep, EPCTX_EP_HARDWARE_ARCHITECTURE, &ep.hardware_architecture,
                     o->hardware_architecture);
    epctx__wrap_text(&ep, EPCTX_EP_NOTES, &ep.notes, o->notes);
    ep.max_size = o->max_size;
    ep.present |= o->max_size != 0 ? 1u << EPCTX_EP_MAX_SIZE : 0;
    memset(&node, 0, sizeof node);
    node.name = epctx_str_of(o->name);
    node.op_type = epctx_str_of(EPCTX_OP_TYPE);
    node.domain = epctx_str_of(EPCTX_DOMAIN);
    node.inputs = names;
    node.input_count = o->input_count;
    node.outputs = names + o->input_count;
    node.output_count = o->output_count;
    node.attrs = attrs;
    node.attr_count = epctx_epnode_attrs(&ep, attrs);
    return epctx_put_node(w->m.c.model, epctx__no_view(), &node, epctx__no_view(), NULL,
                          w->m.c.error) == EPCTX_OK;
}

static bool epctx__wrap_file(epctx__wrap *w, epctx_span binary)
{
    epctx_str name = epctx_str_of(w->opts->binary_name);
    epctx_span *part;
    if (w->opts->embed) {
        return true;
    }
    part = (epctx_span *)epctx__convert_array(&w->m.c, 1, sizeof *part);
    if (part == NULL) {
        return false;
    }
    *part = binary;
    return epctx__convert_name(&w->m.c, name, w->opts->profile) &&
           epctx__convert_file(&w->m.c, name, part, 1, binary.size);
}

static bool epctx__wrap_run(epctx__wrap *w, epctx_span binary)
{
    const epctx_wrap_opts *o = w->opts;
    epctx_model *model = w->m.c.model;
    epctx_error *error = w->m.c.error;
    uint64_t none[EPCTX_RULE_COUNT];
    size_t i;
    memset(none, 0, sizeof none);
    for (i = 0; i < o->input_count; i++) {
        if (!epctx__wrap_value(w, &o->inputs[i], true)) {
            return false;
        }
    }
    if (!epctx__wrap_node(w, binary)) {
        return false;
    }
    for (i = 0; i < o->output_count; i++) {
        if (!epctx__wrap_value(w, &o->outputs[i], false)) {
            return false;
        }
    }
    /* QuantizeLinear takes 16 bits since version 21, which came with IR version 10. */
    return epctx_put_opset(model, epctx_str_of(""), w->wide ? 21 : 13, error) == EPCTX_OK &&
           epctx_put_opset(model, epctx_str_of(EPCTX_DOMAIN), 1, error) == EPCTX_OK &&
           epctx_set_int(model, epctx_model_read(model).view, 1, w->wide ? 10 : 8, error) ==
               EPCTX_OK &&
           epctx_set_str(model, epctx_model_graph(model).view, 2, epctx_str_of(o->name), error) ==
               EPCTX_OK &&
           epctx__wrap_file(w, binary) && epctx__verdict_of(model, o->profile, none, NULL, error) &&
           epctx__convert_fits(&w->m.c, "do not embed the binary");
}

static epctx_status epctx__wrap_arguments(epctx_span binary, const epctx_wrap_opts *o,
                                          epctx_error *error)
{
    if (o == NULL || o->profile == NULL || o->name == NULL || o->name[0] == '\0' ||
        o->output_count == 0 || (!o->embed && o->binary_name == NULL)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "a profile, a name, at least one output and the name of the file are "
                          "expected");
    }
    if (binary.size == 0) {
        return epctx_fail(error, EPCTX_ERR_ARG, "the binary is empty");
    }
    if (!o->embed && (o->profile->traits & EPCTX_ONLY_EMBEDDED) != 0) {
        return epctx_fail(error, EPCTX_ERR_ARG, "EP '%s' reads no files: embed the binary",
                          o->profile->name);
    }
    if (o->source == NULL && o->profile->sources[0] == NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG, "EP '%s' has no name of its own: give the source",
                          o->profile->name);
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_wrap(epctx_model *model, epctx_span binary,
                                  const epctx_wrap_opts *opts, const epctx_open_opts *open,
                                  epctx_combined *out, epctx_error *error)
{
    epctx__wrap w;
    epctx_error local;
    epctx_error *use = error != NULL ? error : &local;
    epctx_status status;
    epctx_error_clear(use);
    memset(&w, 0, sizeof w);
    memset(model, 0, sizeof *model);
    if (out != NULL) {
        memset(out, 0, sizeof *out);
    }
    status = epctx__wrap_arguments(binary, opts, use);
    if (status == EPCTX_OK) {
        status = epctx_model_new(model, 8, open, use);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    w.opts = opts;
    if (!epctx__combine_begin(&w.m, model, opts->output_path, use)) {
        epctx_model_close(model);
        return use->status;
    }
    epctx_map_init(&w.names, w.m.c.arena);
    if (!epctx__wrap_run(&w, binary)) {
        epctx_fail(use, EPCTX_ERR_GRAPH, "the binary cannot be wrapped");
        epctx_model_close(model);
        return use->status;
    }
    epctx__combine_end(&w.m, out);
    return EPCTX_OK;
}

/* -- repair -- */

typedef struct epctx__repair {
    epctx__combine m;
    const epctx_repair_opts *opts;
    epctx_repair_fn note_fn;
    void *user;
    bool wanted[EPCTX_RULE_COUNT];
    uint64_t found[EPCTX_RULE_COUNT];
    epctx_map sources; /* name of a tensor or value of the source model -> number in `views` */
    epctx__views views;
    size_t done, left;
} epctx__repair;

static bool epctx__repair_say(epctx__repair *r, epctx_rule rule, epctx_str name, const char *format,
                              ...)
{
    epctx_repair_note note;
    epctx_str text;
    va_list args;
    va_start(args, format);
    text = epctx__combine_text(&r->m, format, args);
    va_end(args);
    if (text.data == NULL) {
        return false;
    }
    r->done++;
    memset(&note, 0, sizeof note);
    note.rule = rule;
    note.info = epctx_rule_of(rule);
    note.done = true;
    note.name = name;
    note.text = text.data;
    if (r->note_fn != NULL) {
        r->note_fn(r->user, &note);
    }
    return true;
}

static const epctx_profile *epctx__repair_profile(const epctx__repair *r, epctx_str source)
{
    return r->opts->check.profile != NULL ? r->opts->check.profile : epctx_profile_of(source);
}

/* The EPContext nodes of the whole model, whatever their domain. */
static bool epctx__repair_nodes(epctx__repair *r, epctx__views *views)
{
    epctx_walk walk;
    epctx_node_view node;
    memset(views, 0, sizeof *views);
    epctx_walk_begin(&walk, r->m.c.model);
    while (epctx_walk_epnode(&walk, &node)) {
        if (!epctx__views_add(&r->m.c, views, node.view)) {
            return false;
        }
    }
    return true;
}

static epctx_node_view epctx__node_at(const epctx__views *views, size_t i)
{
    return epctx_node_of(((const epctx_view *)views->list)[i]);
}

/* -- repair: fields that stand twice -- */

/* The fields of `second` behind those of `first`, as libprotobuf merges them. */
static bool epctx__repair_merge(epctx__repair *r, epctx_slot *first, epctx_slot *second)
{
    epctx_model *model = r->m.c.model;
    epctx_error *error = r->m.c.error;
    const epctx_slot *child;
    if (epctx__open_message(model, first, error) != EPCTX_OK ||
        epctx__open_message(model, second, error) != EPCTX_OK) {
        return false;
    }
    for (child = second->message->first; child != NULL; child = child->next) {
        epctx__builder b = epctx__builder_of(model);
        epctx_slot *copy;
        if (child->removed) {
            continue;
        }
        copy = epctx__clone(&b, NULL, child);
        if (b.failed) {
            return epctx__convert_nomem(&r->m.c);
        }
        if (epctx__insert(model, first, first->message->last, copy, error) != EPCTX_OK) {
            return false;
        }
    }
    return epctx__remove_slot(model, second, error) == EPCTX_OK;
}

static bool epctx__repair_slot(epctx__repair *r, epctx_slot *slot, epctx__type type,
                               epctx_str node, uint32_t depth)
{
    const epctx__singles *single = &epctx__singular[type];
    epctx_model *model = r->m.c.model;
    epctx_slot *seen[32];
    epctx_slot *child;
    memset(seen, 0, sizeof seen);
    if (epctx__open_message(model, slot, r->m.c.error) != EPCTX_OK) {
        return false;
    }
    node = type == EPCTX__T_NODE ? epctx_node_of(epctx__slot_view(slot)).name : node;
    for (child = slot->message->first; child != NULL; child = child->next) {
        uint32_t kind =
            child->wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, child->number) : 0;
        uint32_t mask = child->wire == EPCTX_WIRE_LEN       ? single->len
                        : child->wire == EPCTX_WIRE_VARINT  ? single->varint
                        : child->wire == EPCTX_WIRE_FIXED32 ? single->fix32
                                                            : 0;
        bool message = epctx__is_message(kind) && (kind & EPCTX__ONE) != 0;
        uint32_t at = message && type == EPCTX__T_TYPE ? 1 : child->number;
        epctx_slot *first;
        if (child->removed || child->number >= 32 ||
            (!message && (mask & EPCTX__F(child->number)) == 0)) {
            continue;
        }
        first = seen[at];
        seen[at] = child;
        if (first == NULL) {
            continue;
        }
        if (message && first->number == child->number) {
            seen[at] = first;
            if (!epctx__repair_merge(r, first, child)) {
                return false;
            }
        } else if (epctx__remove_slot(model, first, r->m.c.error) != EPCTX_OK) {
            return false;
        }
        if (!epctx__repair_say(r, EPCTX_RULE_DOUBLED_FIELD, node,
                               message ? "field %u of a %s: the two are one now"
                                       : "field %u of a %s: the last one stays",
                               (uint64_t)child->number, epctx__type_name(type))) {
            return false;
        }
    }
    for (child = slot->message->first; child != NULL; child = child->next) {
        uint32_t kind =
            child->wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, child->number) : 0;
        if (!child->removed && epctx__is_message(kind) && depth > 0 &&
            !epctx__repair_slot(r, child, epctx__message_type(kind), node, depth - 1)) {
            return false;
        }
    }
    return true;
}

/* Makes the model what libprotobuf reads in it. From here on it can be edited. */
static bool epctx__repair_doubled(epctx__repair *r)
{
    epctx_model *model = r->m.c.model;
    if (model->duplicate) {
        model->merged = model->shown;
        model->merged_at = model->edit_count;
        model->duplicate = false;
        model->shown = model->root;
    }
    return epctx__repair_slot(r, model->root, EPCTX__T_MODEL, epctx_str_of(NULL), 100) &&
           (model->graph = model->shown_graph = epctx__find_graph(model->root), true);
}

/* -- repair: EPContext nodes -- */

static bool epctx__repair_domain(epctx__repair *r)
{
    epctx__views views;
    size_t i;
    if (!epctx__repair_nodes(r, &views)) {
        return false;
    }
    for (i = 0; i < views.count; i++) {
        epctx_node_view node = epctx__node_at(&views, i);
        if (!epctx_str_is(node.domain, EPCTX_DOMAIN) &&
            (epctx_set_str(r->m.c.model, node.view, 7, epctx_str_of(EPCTX_DOMAIN),
                           r->m.c.error) != EPCTX_OK ||
             !epctx__repair_say(r, EPCTX_RULE_WRONG_DOMAIN, node.name,
                                "domain '%S' is now com.microsoft", &node.domain))) {
            return false;
        }
    }
    return true;
}

static bool epctx__repair_import(epctx__repair *r)
{
    return epctx_put_opset(r->m.c.model, epctx_str_of(EPCTX_DOMAIN), 1, r->m.c.error) ==
               EPCTX_OK &&
           epctx__repair_say(r, EPCTX_RULE_EPCONTEXT_OPSET, epctx_str_of(EPCTX_DOMAIN),
                             "com.microsoft is imported, version 1");
}

/* Other imports: only the source model knows the version. */
static bool epctx__repair_imports(epctx__repair *r)
{
    epctx_walk walk;
    epctx_node_view node;
    if (r->opts->source == NULL) {
        return true;
    }
    epctx_walk_begin(&walk, r->m.c.model);
    while (epctx_walk_next(&walk, &node)) {
        int64_t version = epctx_model_opset(r->opts->source, node.domain);
        if (walk.in_function || version == 0 ||
            epctx_model_opset(r->m.c.model, node.domain) != 0) {
            continue;
        }
        if (epctx_put_opset(r->m.c.model, node.domain, version, r->m.c.error) != EPCTX_OK ||
            !epctx__repair_say(r, EPCTX_RULE_NO_OPSET, node.domain,
                               "'%S' is imported, version %d as in the source model", &node.domain,
                               version)) {
            return false;
        }
    }
    return true;
}

static bool epctx__repair_source(epctx__repair *r, epctx_rule rule, const epctx_node_view *node,
                                 const char *source)
{
    return epctx__convert_str(&r->m.c, node->view, "source", epctx_str_of(source)) &&
           epctx__repair_say(r, rule, node->name, "source is now '%s'", source);
}

static bool epctx__repair_sources(epctx__repair *r)
{
    epctx__views views;
    size_t i;
    if (!epctx__repair_nodes(r, &views)) {
        return false;
    }
    for (i = 0; i < views.count; i++) {
        epctx_node_view node = epctx__node_at(&views, i);
        const epctx_profile *profile;
        epctx_epnode ep;
        int at;
        if (epctx_epnode_read(&node, &ep, NULL) != EPCTX_OK) {
            continue;
        }
        profile = epctx__repair_profile(r, ep.source);
        at = epctx__source_index(profile, ep.source, true);
        if (epctx_profile_claims(profile, &ep) == EPCTX_CLAIM_SPELLING && at >= 0 &&
            r->wanted[EPCTX_RULE_SOURCE_SPELLING] &&
            !epctx__repair_source(r, EPCTX_RULE_SOURCE_SPELLING, &node, profile->sources[at])) {
            return false;
        }
        /* Whose node it is nobody knows but the caller. */
        if ((ep.present & 1u << EPCTX_EP_SOURCE) == 0 && r->opts->check.profile != NULL &&
            profile->sources[0] != NULL) {
            epctx_rule rule = (profile->traits & EPCTX_NO_SOURCE) != 0 ? EPCTX_RULE_SOURCE_ABSENT
                                                                       : EPCTX_RULE_NO_SOURCE;
            if (r->wanted[rule] &&
                !epctx__repair_source(r, rule, &node, profile->sources[0])) {
                return false;
            }
        }
    }
    return true;
}

static bool epctx__repair_default(epctx__repair *r, epctx_rule rule, const epctx_node_view *node,
                                  const epctx_epnode *ep, epctx_epnode_attr attr,
                                  const char *name, int64_t value)
{
    return (ep->present & 1u << attr) != 0 ||
           (epctx__convert_int(&r->m.c, node->view, name, value) &&
            epctx__repair_say(r, rule, node->name, "%s %d is stored", name, value));
}

/* Attributes whose schema default is what an absent one means. */
static bool epctx__repair_attributes(epctx__repair *r)
{
    epctx__views views;
    size_t i;
    if (!epctx__repair_nodes(r, &views)) {
        return false;
    }
    for (i = 0; i < views.count; i++) {
        epctx_node_view node = epctx__node_at(&views, i);
        bool all = r->wanted[EPCTX_RULE_DEFAULTS];
        epctx_rule rule = all ? EPCTX_RULE_DEFAULTS : EPCTX_RULE_NO_ATTRIBUTE;
        uint32_t need;
        epctx_epnode ep;
        if (epctx_epnode_read(&node, &ep, NULL) != EPCTX_OK) {
            continue;
        }
        need = r->wanted[EPCTX_RULE_NO_ATTRIBUTE]
                   ? epctx__repair_profile(r, ep.source)->required
                   : 0;
        need |= all ? 1u << EPCTX_EP_MAIN_CONTEXT | 1u << EPCTX_EP_EMBED_MODE : 0;
        if (((need & 1u << EPCTX_EP_MAIN_CONTEXT) != 0 &&
             !epctx__repair_default(r, rule, &node, &ep, EPCTX_EP_MAIN_CONTEXT, "main_context",
                                    1)) ||
            ((need & 1u << EPCTX_EP_EMBED_MODE) != 0 &&
             !epctx__repair_default(r, rule, &node, &ep, EPCTX_EP_EMBED_MODE, "embed_mode", 1)) ||
            ((need & 1u << EPCTX_EP_MAX_SIZE) != 0 &&
             !epctx__repair_default(r, rule, &node, &ep, EPCTX_EP_MAX_SIZE, "max_size", 0))) {
            return false;
        }
        /* A secondary node of an embedded context: OpenVINO stores an empty string there. */
        if ((need & 1u << EPCTX_EP_EP_CACHE_CONTEXT) != 0 && ep.main_context == 0 &&
            ep.embed_mode == 1 && (ep.present & 1u << EPCTX_EP_EP_CACHE_CONTEXT) == 0 &&
            (!epctx__convert_str(&r->m.c, node.view, "ep_cache_context", epctx_str_of("")) ||
             !epctx__repair_say(r, rule, node.name, "an empty ep_cache_context is stored"))) {
            return false;
        }
    }
    return true;
}

static bool epctx__repair_doubled_attributes(epctx__repair *r)
{
    epctx__views views;
    size_t i;
    if (!epctx__repair_nodes(r, &views)) {
        return false;
    }
    for (i = 0; i < views.count; i++) {
        epctx_node_view node = epctx__node_at(&views, i);
        epctx_cursor attrs = epctx_node_attrs(&node);
        epctx__views all, gone;
        epctx_map names;
        epctx_attr_view attr;
        memset(&all, 0, sizeof all);
        memset(&gone, 0, sizeof gone);
        epctx_map_init(&names, r->m.c.arena);
        while (epctx_next_attr(&attrs, &attr)) {
            uint32_t at = epctx_map_get(&names, attr.name);
            if (at != EPCTX_MAP_NONE &&
                epctx__same_bytes(((const epctx_view *)all.list)[at], attr.view)) {
                if (!epctx__views_add(&r->m.c, &gone, attr.view)) {
                    return false;
                }
                if (!epctx__repair_say(r, EPCTX_RULE_DOUBLED_ATTRIBUTE, node.name,
                                       "attribute '%S' stands once: the two were equal",
                                       &attr.name)) {
                    return false;
                }
            } else if (at == EPCTX_MAP_NONE &&
                       (!epctx__combine_put(&r->m, &names, attr.name, (uint32_t)all.count) ||
                        !epctx__views_add(&r->m.c, &all, attr.view))) {
                return false;
            }
        }
        if (!epctx__views_remove(&r->m.c, &gone)) {
            return false;
        }
    }
    return true;
}

/* embed_mode was forgotten: what counts as the payload is the name of a file that is there. */
static bool epctx__repair_like_path(epctx__repair *r)
{
    epctx__views views;
    size_t i;
    epctx_str folder = epctx_path_folder(epctx_str_of(r->m.c.model->path));
    if (r->opts->check.no_files || r->m.c.model->path[0] == '\0') {
        return true;
    }
    if (!epctx__repair_nodes(r, &views)) {
        return false;
    }
    for (i = 0; i < views.count; i++) {
        epctx_node_view node = epctx__node_at(&views, i);
        char path[EPCTX_PATH_MAX];
        epctx_epnode ep;
        if (epctx_epnode_read(&node, &ep, NULL) == EPCTX_OK && ep.embed_mode == 1 &&
            ep.ep_cache_context.size > 0 && ep.ep_cache_context.size < 1024 &&
            epctx_path_find(r->m.c.model->io, folder, ep.ep_cache_context,
                            r->m.c.model->path_flags, path, sizeof path, NULL) == EPCTX_OK &&
            (!epctx__convert_int(&r->m.c, node.view, "embed_mode", 0) ||
             !epctx__repair_say(r, EPCTX_RULE_LIKE_PATH, node.name,
                                "embed_mode is now 0: '%S' is a file beside the model",
                                &ep.ep_cache_context))) {
            return false;
        }
    }
    return true;
}

/* -- repair: names -- */

static bool epctx__repair_free_name(epctx__repair *r, epctx_map *names, epctx_str name,
                                    epctx_str *out)
{
    uint64_t number = 2;
    *out = name;
    while (epctx__has(names, *out)) {
        char digits[24];
        epctx__text text = epctx__text_of(digits, sizeof digits);
        epctx__text_char(&text, '_');
        epctx__text_number(&text, number++, 10);
        if (!epctx__combine_join(&r->m, name, epctx__str((const uint8_t *)digits, text.size),
                                 out)) {
            return false;
        }
    }
    return epctx__combine_put(&r->m, names, *out, 1);
}

/* Equal names of nodes differ afterwards, and EPContext nodes have one; names that are keys of a
 * binary stay. `number` goes on where the last one of that name stopped. */
static bool epctx__repair_names(epctx__repair *r)
{
    epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(r->m.c.model));
    epctx__views views;
    epctx_map all, seen;
    epctx_node_view node;
    size_t i;
    memset(&views, 0, sizeof views);
    epctx_map_init(&all, r->m.c.arena);
    epctx_map_init(&seen, r->m.c.arena);
    while (epctx_next_node(&nodes, &node)) {
        if (!epctx__views_add(&r->m.c, &views, node.view) ||
            !epctx__combine_put(&r->m, &all, node.name, 1)) {
            return false;
        }
    }
    for (i = 0; i < views.count; i++) {
        bool compiled;
        epctx_rule rule;
        epctx_str name;
        node = epctx__node_at(&views, i);
        compiled = epctx_is_epnode(&node);
        rule = !compiled ? EPCTX_RULE_DOUBLED_NODE
               : node.name.size > 0 ? EPCTX_RULE_DOUBLED_EPNODE
                                    : EPCTX_RULE_NO_NAME;
        name = node.name;
        if (node.name.size == 0 && compiled) {
            name = epctx__attr_str(&node, "partition_name");
            name = name.size > 0 ? name : epctx_str_of(EPCTX_OP_TYPE);
        } else if (node.name.size == 0 || !epctx__has(&seen, node.name)) {
            if (!epctx__combine_put(&r->m, &seen, node.name, 1)) {
                return false;
            }
            continue;
        }
        if (!r->wanted[rule] ||
            (compiled &&
             epctx__repair_profile(r, epctx__attr_str(&node, "source"))->key ==
                 EPCTX_KEY_NODE_NAME)) {
            continue;
        }
        if (!epctx__repair_free_name(r, &all, name, &name) ||
            epctx_set_str(r->m.c.model, node.view, 3, name, r->m.c.error) != EPCTX_OK ||
            !epctx__repair_say(r, rule, node.name, "the node's name is now '%S'", &name)) {
            return false;
        }
    }
    return true;
}

/* -- repair: entries that stand twice -- */

typedef epctx_str (*epctx__name_fn)(epctx_view view);

static epctx_str epctx__name_of_value(epctx_view view)
{
    return epctx_value_of(view).name;
}

static epctx_str epctx__name_of_tensor(epctx_view view)
{
    return epctx_tensor_of(view).name;
}

static epctx_str epctx__name_of_pair(epctx_view view)
{
    epctx_str key, value;
    epctx__pair(view, &key, &value);
    return key;
}

static epctx_str epctx__name_of_opset(epctx_view view)
{
    epctx_cursor names = epctx_fields(view, 1);
    epctx_str domain = epctx_str_of("");
    while (epctx_next_str(&names, &domain)) {
    }
    return domain.size > 0 ? domain : epctx_str_of("ai.onnx");
}

/* Entries of a list that say the same as an earlier one go; others are not ours to choose. */
static bool epctx__repair_equal(epctx__repair *r, epctx_rule rule, epctx_view owner,
                                uint32_t number, epctx__name_fn name_fn)
{
    epctx_cursor it = epctx_fields(owner, number);
    epctx__views all, gone;
    epctx_map names;
    epctx_view view;
    memset(&all, 0, sizeof all);
    memset(&gone, 0, sizeof gone);
    epctx_map_init(&names, r->m.c.arena);
    while (epctx__next_body(&it, &view)) {
        epctx_str name = name_fn(view);
        uint32_t at = epctx_map_get(&names, name);
        if (at == EPCTX_MAP_NONE) {
            if (!epctx__combine_put(&r->m, &names, name, (uint32_t)all.count) ||
                !epctx__views_add(&r->m.c, &all, view)) {
                return false;
            }
        } else if (epctx__same_bytes(((const epctx_view *)all.list)[at], view)) {
            if (!epctx__views_add(&r->m.c, &gone, view) ||
                !epctx__repair_say(r, rule, name, "'%S' stands once: the two were equal", &name)) {
                return false;
            }
        }
    }
    return epctx__views_remove(&r->m.c, &gone);
}

/* -- repair: files -- */

/* Where a file is that a model names wrongly: the parts of the name behind each separator. */
static bool epctx__repair_candidate(epctx__repair *r, const epctx_dependency *file, epctx_str *out)
{
    char *text = epctx_arena_copy(r->m.c.arena, file->name);
    char path[EPCTX_PATH_MAX];
    size_t i, start = 0;
    if (text == NULL || memchr(text, '\0', file->name.size) != NULL) {
        return false;
    }
    for (i = 0; i < file->name.size; i++) {
        text[i] = text[i] == '\\' ? '/' : text[i];
    }
    for (;;) {
        out->data = text + start;
        out->size = file->name.size - start;
        if (!epctx_str_eq(*out, file->name) && epctx_path_check(*out, NULL) == EPCTX_OK &&
            epctx_path_find(r->m.c.model->io, epctx_str_of(file->folder), *out,
                            r->m.c.model->path_flags, path, sizeof path, NULL) == EPCTX_OK) {
            return true;
        }
        while (start < file->name.size && text[start] != '/') {
            start++;
        }
        while (start < file->name.size && text[start] == '/') {
            start++;
        }
        if (start >= file->name.size) {
            return false;
        }
    }
}

static bool epctx__repair_files(epctx__repair *r)
{
    epctx_dependency *files;
    size_t count, i;
    if (r->opts->check.no_files || r->m.c.model->io == NULL) {
        return true;
    }
    if (epctx_model_files(r->m.c.model, &r->opts->check, r->m.c.arena, &files, &count,
                          r->m.c.error) != EPCTX_OK) {
        return false;
    }
    for (i = 0; i < count; i++) {
        const epctx_dependency *file = &files[i];
        epctx_rule rule = EPCTX_RULE_FILE_MISSING;
        epctx_str found;
        if ((file->use != EPCTX_USE_CONTEXT && file->use != EPCTX_USE_INITIALIZERS) ||
            file->status == EPCTX_OK || file->folder == NULL || file->name.size == 0 ||
            !epctx__repair_candidate(r, file, &found)) {
            continue;
        }
        if (memchr(file->name.data, '\\', file->name.size) != NULL) {
            rule = EPCTX_RULE_BACKSLASH;
        } else if (epctx_path_check(file->name, NULL) != EPCTX_OK) {
            rule = EPCTX_RULE_PATH_UNSAFE;
        }
        if (r->wanted[rule] &&
            (!epctx__relocate(&r->m.c, file, found) ||
             !epctx__repair_say(r, rule, file->node, "%s '%S' is now '%S', which is there",
                                epctx_file_use_name(file->use), &file->name, &found))) {
            return false;
        }
    }
    return true;
}

static bool epctx__repair_build_path(epctx__repair *r)
{
    epctx__views views;
    size_t i;
    if (!epctx__repair_nodes(r, &views)) {
        return false;
    }
    for (i = 0; i < views.count; i++) {
        epctx_node_view node = epctx__node_at(&views, i);
        epctx_str name = epctx__attr_str(&node, "onnx_model_filename");
        epctx_str file = name;
        size_t k;
        for (k = 0; k < name.size; k++) {
            if (name.data[k] == '/' || name.data[k] == '\\') {
                file.data = name.data + k + 1;
                file.size = name.size - k - 1;
            }
        }
        if (file.size > 0 && file.size < name.size &&
            (!epctx__convert_str(&r->m.c, node.view, "onnx_model_filename", file) ||
             !epctx__repair_say(r, EPCTX_RULE_BUILD_PATH, node.name,
                                "onnx_model_filename is now '%S'", &file))) {
            return false;
        }
    }
    return true;
}

/* -- repair: what the source model knows -- */

static bool epctx__repair_remember(epctx__convert *c, epctx_view tensor, void *user)
{
    epctx__repair *r = (epctx__repair *)(void *)c;
    epctx_str name = epctx_tensor_of(tensor).name;
    (void)user;
    return epctx__has(&r->sources, name) ||
           (epctx__combine_put(&r->m, &r->sources, name, (uint32_t)r->views.count) &&
            epctx__views_add(c, &r->views, tensor));
}

/* Its tensors by name. */
static bool epctx__repair_index(epctx__repair *r)
{
    epctx_model *model = r->m.c.model;
    bool ok;
    if (r->opts->source == NULL || r->views.count > 0) {
        return true;
    }
    r->m.c.model = r->opts->source;
    ok = epctx__model_tensors(&r->m.c, epctx__repair_remember, NULL);
    r->m.c.model = model;
    return ok;
}

static bool epctx__repair_data(epctx__repair *r, epctx_str name, epctx_tensor *out)
{
    uint32_t at = epctx_map_get(&r->sources, name);
    epctx__loader loader;
    if (at == EPCTX_MAP_NONE) {
        return false;
    }
    memset(&loader, 0, sizeof loader);
    loader.model = r->opts->source;
    loader.arena = &r->opts->source->arena;
    return epctx__load_tensor(&loader, ((const epctx_view *)r->views.list)[at], out) &&
           out->data != NULL;
}

static bool epctx__repair_find_memory(epctx__convert *c, epctx_view view, void *user)
{
    epctx_tensor_view tensor = epctx_tensor_of(view);
    return !tensor.external ||
           !epctx__starts_with(tensor.location, "*/_ORT_MEM_ADDR_/*") ||
           epctx__views_add(c, (epctx__views *)user, view);
}

static bool epctx__repair_memory(epctx__repair *r)
{
    epctx__views views;
    size_t i;
    memset(&views, 0, sizeof views);
    if (!epctx__repair_index(r) ||
        !epctx__model_tensors(&r->m.c, epctx__repair_find_memory, &views)) {
        return false;
    }
    for (i = 0; i < views.count; i++) {
        epctx_view view = ((const epctx_view *)views.list)[i];
        epctx_tensor_view tensor = epctx_tensor_of(view);
        epctx_cursor dims = epctx_tensor_dims(&tensor);
        epctx_tensor data;
        int64_t dim;
        int32_t k = 0;
        if (!epctx__repair_data(r, tensor.name, &data) || data.elem_type != tensor.elem_type ||
            data.rank != (int32_t)tensor.rank) {
            continue;
        }
        while (k < data.rank && epctx_next_int(&dims, &dim) && dim == data.dims[k]) {
            k++;
        }
        if (k == data.rank &&
            (!epctx__tensor_raw(&r->m.c, view, data.data, data.size) ||
             !epctx__repair_say(r, EPCTX_RULE_MEMORY_LOCATION, tensor.name,
                                "%u bytes come from the source model", (uint64_t)data.size))) {
            return false;
        }
    }
    return true;
}

/* Initializers that only bodies read, which ORT drops. */
static bool epctx__repair_dropped(epctx__repair *r)
{
    epctx_model *model = r->m.c.model;
    epctx__definitions d = epctx__definitions_of(epctx_model_graph(model).view);
    epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(model));
    epctx_map made, read;
    epctx_view node;
    epctx_str name;
    void *names = NULL;
    size_t count = 0;
    size_t room = 0;
    size_t i;
    epctx_map_init(&made, r->m.c.arena);
    epctx_map_init(&read, r->m.c.arena);
    if (!epctx__repair_index(r)) {
        return false;
    }
    while (epctx__next_definition(&d, &name)) {
        if (!epctx__combine_put(&r->m, &made, name, 1)) {
            return false;
        }
    }
    while (epctx__next_body(&nodes, &node)) {
        epctx_map one;
        uint32_t k;
        epctx_map_init(&one, r->m.c.arena);
        if (!epctx__prune_captures(&r->m.c, &one, node)) {
            return false;
        }
        for (k = 0; k < one.capacity; k++) {
            name = one.slots[k].key;
            if (name.size == 0 || epctx__has(&made, name) || epctx__has(&read, name)) {
                continue;
            }
            if (!epctx__list_room(r->m.c.arena, &names, count, &room, sizeof name)) {
                return epctx__convert_nomem(&r->m.c);
            }
            ((epctx_str *)names)[count++] = name;
            if (!epctx__combine_put(&r->m, &read, name, 1)) {
                return false;
            }
        }
    }
    for (i = 0; i < count; i++) {
        epctx_tensor data;
        name = ((const epctx_str *)names)[i];
        if (epctx__repair_data(r, name, &data) &&
            (epctx_put_tensor(model, epctx__no_view(), &data, epctx__no_view(), NULL,
                              r->m.c.error) != EPCTX_OK ||
             !epctx__repair_say(r, EPCTX_RULE_DROPPED_VALUE, name,
                                "the initializer comes from the source model, %u bytes",
                                (uint64_t)data.size))) {
            return false;
        }
    }
    return true;
}

/* -- repair: types -- */

typedef struct epctx__typing {
    epctx_map known;  /* value -> its element type */
    epctx_map source; /* value of the source model -> number in `views` */
    epctx__views views;
} epctx__typing;

static bool epctx__typing_values(epctx__repair *r, epctx__typing *t, epctx_cursor it, bool source)
{
    epctx_value_view value;
    while (epctx_next_value(&it, &value)) {
        if (!value.has_type) {
            continue;
        }
        if (source ? !epctx__combine_put(&r->m, &t->source, value.name,
                                         (uint32_t)t->views.count) ||
                         !epctx__views_add(&r->m.c, &t->views, value.view)
                   : !epctx__combine_put(&r->m, &t->known, value.name,
                                         value.is_tensor ? (uint32_t)value.elem_type : 0)) {
            return false;
        }
    }
    return true;
}

static bool epctx__typing_graph(epctx__repair *r, epctx__typing *t, const epctx_model *model,
                                bool source)
{
    epctx_graph_view graph = epctx_model_graph(model);
    epctx_cursor tensors = epctx_graph_initializers(graph);
    epctx_tensor_view tensor;
    if (!epctx__typing_values(r, t, epctx_graph_values(graph), source) ||
        !epctx__typing_values(r, t, epctx_graph_inputs(graph), source) ||
        !epctx__typing_values(r, t, epctx_graph_outputs(graph), source)) {
        return false;
    }
    while (!source && epctx_next_tensor(&tensors, &tensor)) {
        if (!epctx__combine_put(&r->m, &t->known, tensor.name, (uint32_t)tensor.elem_type)) {
            return false;
        }
    }
    return true;
}

/* Operators whose inputs are all of one type. */
static bool epctx__one_type(epctx_str op)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "MatMul", "Gemm", "Conv",
                                      "Concat", "Max", "Min", "Sum", "Mean", "PRelu", "Equal",
                                      "Less", "Greater", "ConvTranspose"};
    size_t i;
    for (i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (epctx_str_is(op, ops[i])) {
            return true;
        }
    }
    return false;
}

/* Which type the other inputs of a reader leave for a value, or 0. */
static uint32_t epctx__typing_reader(const epctx__typing *t, const epctx_node_view *node,
                                     epctx_str wanted)
{
    epctx_cursor inputs = epctx_node_inputs(node);
    bool standard = node->domain.size == 0 || epctx_str_is(node->domain, "ai.onnx");
    bool unpack = standard && epctx_str_is(node->op_type, "DequantizeLinear");
    bool pack = standard && epctx_str_is(node->op_type, "QuantizeLinear");
    uint32_t at, found = 0;
    epctx_str name;
    for (at = 0; epctx_next_str(&inputs, &name); at++) {
        uint32_t type = epctx_map_get(&t->known, name);
        if (at == 0 && (unpack || pack) && !epctx_str_eq(name, wanted)) {
            return 0;
        }
        type = type == EPCTX_MAP_NONE ? 0 : type;
        if ((unpack && at == 2) || (pack && at == 1) ||
            (standard && epctx__one_type(node->op_type) && !epctx_str_eq(name, wanted))) {
            found = type != 0 ? type : found;
        }
    }
    return found;
}

static bool epctx__repair_type(epctx__repair *r, epctx__typing *t, const epctx_node_view *ep,
                               epctx_str name, uint32_t elem)
{
    epctx_model *model = r->m.c.model;
    uint32_t at = epctx_map_get(&t->source, name);
    epctx_value value;
    memset(&value, 0, sizeof value);
    value.name = name;
    value.elem_type = (int32_t)elem;
    value.rank = -1;
    if (at != EPCTX_MAP_NONE) {
        value.elem_type = epctx_value_of(((const epctx_view *)t->views.list)[at]).elem_type;
        return epctx_put_copy(model, epctx_model_graph(model).view, 13,
                              ((const epctx_view *)t->views.list)[at], epctx__no_view(), NULL,
                              r->m.c.error) == EPCTX_OK &&
               epctx__repair_say(r, EPCTX_RULE_NO_VALUE_TYPE, ep->name,
                                 "'%S' has the type that it has in the source model", &name);
    }
    if (elem == 0) {
        return true;
    }
    return epctx_put_value(model, epctx__no_view(), &value, epctx__no_view(), NULL,
                           r->m.c.error) == EPCTX_OK &&
           epctx__repair_say(r, EPCTX_RULE_NO_VALUE_TYPE, ep->name,
                             "'%S' is %s: the node that reads it takes nothing else", &name,
                             epctx_elem_name(value.elem_type));
}

/* An output of EPContext that nothing gives a type. */
static bool epctx__repair_types(epctx__repair *r)
{
    epctx_graph_view graph = epctx_model_graph(r->m.c.model);
    epctx_cursor nodes = epctx_graph_nodes(graph);
    epctx__typing t;
    epctx_map wanted; /* untyped output -> what its readers want */
    epctx__views compiled;
    epctx_node_view node;
    epctx_str name;
    size_t i;
    memset(&t, 0, sizeof t);
    memset(&compiled, 0, sizeof compiled);
    epctx_map_init(&t.known, r->m.c.arena);
    epctx_map_init(&t.source, r->m.c.arena);
    epctx_map_init(&wanted, r->m.c.arena);
    if (!epctx__typing_graph(r, &t, r->m.c.model, false) ||
        (r->opts->source != NULL && !epctx__typing_graph(r, &t, r->opts->source, true))) {
        return false;
    }
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor outputs = epctx_node_outputs(&node);
        if (!epctx_is_epnode(&node)) {
            continue;
        }
        if (!epctx__views_add(&r->m.c, &compiled, node.view)) {
            return false;
        }
        while (epctx_next_str(&outputs, &name)) {
            if (!epctx__has(&t.known, name) && !epctx__combine_put(&r->m, &wanted, name, 0)) {
                return false;
            }
        }
    }
    nodes = epctx_graph_nodes(graph);
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor inputs = epctx_node_inputs(&node);
        while (epctx_next_str(&inputs, &name)) {
            if (epctx_map_get(&wanted, name) == 0 &&
                !epctx__combine_put(&r->m, &wanted, name,
                                    epctx__typing_reader(&t, &node, name))) {
                return false;
            }
        }
    }
    for (i = 0; i < compiled.count; i++) {
        epctx_cursor outputs;
        node = epctx__node_at(&compiled, i);
        outputs = epctx_node_outputs(&node);
        while (epctx_next_str(&outputs, &name)) {
            uint32_t elem = epctx_map_get(&wanted, name);
            if (elem != EPCTX_MAP_NONE && !epctx__repair_type(r, &t, &node, name, elem)) {
                return false;
            }
        }
    }
    return true;
}

/* -- repair: metadata and annotations -- */

typedef struct epctx__stale {
    epctx__combine *m;
    void *names;
    size_t count, room;
    bool failed;
} epctx__stale;

static void epctx__stale_found(void *user, const epctx_finding *finding)
{
    epctx__stale *s = (epctx__stale *)user;
    epctx_str name;
    if (finding->rule != EPCTX_RULE_STALE_COMPAT) {
        return;
    }
    name.size = finding->node.size;
    name.data = epctx_arena_copy(s->m->c.arena, finding->node);
    if (name.data == NULL ||
        !epctx__list_room(s->m->c.arena, &s->names, s->count, &s->room, sizeof name)) {
        s->failed = true;
        return;
    }
    ((epctx_str *)s->names)[s->count++] = name;
}

/* Compatibility information of EPs without a node; when no node is compiled, of all. */
static bool epctx__stale_keys(epctx__combine *m, epctx__stale *s)
{
    epctx_check_opts opts;
    epctx_walk walk;
    epctx_node_view node;
    memset(&opts, 0, sizeof opts);
    memset(s, 0, sizeof *s);
    opts.no_files = true;
    opts.allocator = m->c.arena->allocator.alloc_fn != NULL ? &m->c.arena->allocator : NULL;
    s->m = m;
    epctx_walk_begin(&walk, m->c.model);
    if (epctx_walk_epnode(&walk, &node)) {
        if (epctx_lint(m->c.model, &opts, epctx__stale_found, s, NULL, m->c.error) != EPCTX_OK) {
            return false;
        }
    } else {
        epctx_cursor it = epctx_metadata(epctx_model_read(m->c.model).view, EPCTX_OF_MODEL);
        epctx_finding finding;
        epctx_pair pair;
        memset(&finding, 0, sizeof finding);
        finding.rule = EPCTX_RULE_STALE_COMPAT;
        while (epctx_next_pair(&it, &pair)) {
            if (epctx__starts_with(pair.key, EPCTX_COMPAT_PREFIX)) {
                finding.node = pair.key;
                epctx__stale_found(s, &finding);
            }
        }
    }
    return !s->failed || epctx__convert_nomem(&m->c);
}

static bool epctx__drop_stale(epctx__combine *m)
{
    epctx__stale s;
    size_t i;
    if (!epctx__stale_keys(m, &s)) {
        return false;
    }
    for (i = 0; i < s.count; i++) {
        epctx_str name = ((const epctx_str *)s.names)[i];
        if (epctx_unset_metadata(m->c.model, name, m->c.error) != EPCTX_OK ||
            !epctx__combine_say(m, 0, name, "metadata '%S' goes: that EP has no node here",
                                &name)) {
            return false;
        }
    }
    return true;
}

static bool epctx__repair_stale(epctx__repair *r)
{
    epctx__stale s;
    size_t i;
    if (!epctx__stale_keys(&r->m, &s)) {
        return false;
    }
    for (i = 0; i < s.count; i++) {
        epctx_str name = ((const epctx_str *)s.names)[i];
        if (epctx_unset_metadata(r->m.c.model, name, r->m.c.error) != EPCTX_OK ||
            !epctx__repair_say(r, EPCTX_RULE_STALE_COMPAT, name,
                               "the entry goes: that EP has no node here")) {
            return false;
        }
    }
    return true;
}

static bool epctx__repair_annotations(epctx__repair *r)
{
    epctx_graph_view graph = epctx_model_graph(r->m.c.model);
    epctx__definitions d = epctx__definitions_of(graph.view);
    epctx_cursor it = epctx_graph_annotations(graph);
    epctx_annotation_view annotation;
    epctx__views gone;
    epctx_map made;
    epctx_str name;
    memset(&gone, 0, sizeof gone);
    epctx_map_init(&made, r->m.c.arena);
    while (epctx__next_definition(&d, &name)) {
        if (!epctx__combine_put(&r->m, &made, name, 1)) {
            return false;
        }
    }
    while (epctx_next_annotation(&it, &annotation)) {
        epctx_cursor pairs = epctx_annotation_pairs(&annotation);
        bool whole = epctx__has(&made, annotation.tensor_name);
        epctx_pair pair;
        while (whole && epctx_next_pair(&pairs, &pair)) {
            whole = epctx__has(&made, pair.value);
        }
        if (!whole && (!epctx__views_add(&r->m.c, &gone, annotation.view) ||
                       !epctx__repair_say(r, EPCTX_RULE_ANNOTATION, annotation.tensor_name,
                                          "the annotation goes: what it names is not there"))) {
            return false;
        }
    }
    return epctx__views_remove(&r->m.c, &gone);
}

static bool epctx__repair_unused(epctx__repair *r)
{
    epctx_changes changes;
    size_t i;
    if (epctx_init_prune(r->m.c.model, NULL, &changes, r->m.c.error) != EPCTX_OK) {
        return false;
    }
    for (i = 0; i < changes.count; i++) {
        if (changes.items[i].kind == EPCTX_CHANGE_PRUNED &&
            !epctx__repair_say(r, EPCTX_RULE_UNUSED, changes.items[i].name,
                               "the initializer goes, %u bytes", changes.items[i].size)) {
            return false;
        }
    }
    return true;
}

static bool epctx__repair_infos(epctx__repair *r)
{
    return epctx__repair_equal(r, EPCTX_RULE_DOUBLED_INFO, epctx_model_graph(r->m.c.model).view,
                               13, epctx__name_of_value);
}

static bool epctx__repair_tensors(epctx__repair *r)
{
    return epctx__repair_equal(r, EPCTX_RULE_DOUBLED_INITIALIZER,
                               epctx_model_graph(r->m.c.model).view, 5, epctx__name_of_tensor);
}

static bool epctx__repair_metadata(epctx__repair *r)
{
    return epctx__repair_equal(r, EPCTX_RULE_DOUBLED_METADATA,
                               epctx_model_read(r->m.c.model).view, 14, epctx__name_of_pair);
}

static bool epctx__repair_opsets(epctx__repair *r)
{
    return epctx__repair_equal(r, EPCTX_RULE_DOUBLED_OPSET, epctx_model_read(r->m.c.model).view, 8,
                               epctx__name_of_opset);
}

/* -- repair: which rule is for whom -- */

/* In the order in which they must run: what later ones read, earlier ones have put right. */
static const struct epctx__repairer {
    epctx_rule rule;
    bool (*repair_fn)(epctx__repair *r);
    bool source; /* works with the source model only */
} epctx__repairers[] = {
    {EPCTX_RULE_DOUBLED_FIELD, epctx__repair_doubled, false},
    {EPCTX_RULE_DOUBLED_OPSET, epctx__repair_opsets, false},
    {EPCTX_RULE_DOUBLED_METADATA, epctx__repair_metadata, false},
    {EPCTX_RULE_DOUBLED_INFO, epctx__repair_infos, false},
    {EPCTX_RULE_DOUBLED_INITIALIZER, epctx__repair_tensors, false},
    {EPCTX_RULE_DOUBLED_ATTRIBUTE, epctx__repair_doubled_attributes, false},
    {EPCTX_RULE_WRONG_DOMAIN, epctx__repair_domain, false},
    {EPCTX_RULE_EPCONTEXT_OPSET, epctx__repair_import, false},
    {EPCTX_RULE_NO_OPSET, epctx__repair_imports, true},
    {EPCTX_RULE_LIKE_PATH, epctx__repair_like_path, false},
    {EPCTX_RULE_SOURCE_SPELLING, epctx__repair_sources, false},
    {EPCTX_RULE_NO_SOURCE, epctx__repair_sources, false},
    {EPCTX_RULE_SOURCE_ABSENT, epctx__repair_sources, false},
    {EPCTX_RULE_NO_ATTRIBUTE, epctx__repair_attributes, false},
    {EPCTX_RULE_DEFAULTS, epctx__repair_attributes, false},
    {EPCTX_RULE_DOUBLED_EPNODE, epctx__repair_names, false},
    {EPCTX_RULE_DOUBLED_NODE, epctx__repair_names, false},
    {EPCTX_RULE_NO_NAME, epctx__repair_names, false},
    {EPCTX_RULE_MEMORY_LOCATION, epctx__repair_memory, true},
    {EPCTX_RULE_DROPPED_VALUE, epctx__repair_dropped, true},
    {EPCTX_RULE_BACKSLASH, epctx__repair_files, false},
    {EPCTX_RULE_PATH_UNSAFE, epctx__repair_files, false},
    {EPCTX_RULE_FILE_MISSING, epctx__repair_files, false},
    {EPCTX_RULE_BUILD_PATH, epctx__repair_build_path, false},
    {EPCTX_RULE_NO_VALUE_TYPE, epctx__repair_types, false},
    {EPCTX_RULE_ANNOTATION, epctx__repair_annotations, false},
    {EPCTX_RULE_STALE_COMPAT, epctx__repair_stale, false},
    {EPCTX_RULE_UNUSED, epctx__repair_unused, false},
};

#define EPCTX__REPAIRER_COUNT (sizeof epctx__repairers / sizeof epctx__repairers[0])

EPCTX_API bool epctx_can_repair(epctx_rule rule)
{
    size_t i;
    for (i = 0; i < EPCTX__REPAIRER_COUNT; i++) {
        if (epctx__repairers[i].rule == rule) {
            return true;
        }
    }
    return false;
}

static void epctx__repair_count(void *user, const epctx_finding *finding)
{
    ((epctx__repair *)user)->found[finding->rule]++;
}

static void epctx__repair_left(void *user, const epctx_finding *finding)
{
    epctx__repair *r = (epctx__repair *)user;
    char line[1024];
    epctx_str parts[4];
    const char *why = finding->info.fix;
    epctx_repair_note note;
    size_t i;
    if (!r->wanted[finding->rule]) {
        return;
    }
    for (i = 0; i < EPCTX__REPAIRER_COUNT; i++) {
        if (epctx__repairers[i].rule == finding->rule && r->opts->source == NULL &&
            (epctx__repairers[i].source || finding->rule == EPCTX_RULE_NO_VALUE_TYPE)) {
            why = "only the model before compilation knows: give it as the source";
        }
    }
    parts[0] = epctx_str_of(finding->message);
    parts[1] = epctx_str_of(" (");
    parts[2] = epctx_str_of(why);
    parts[3] = epctx_str_of(")");
    if (epctx__join(line, sizeof line, parts, 4, "a message", NULL) != EPCTX_OK) {
        line[0] = '\0';
    }
    r->left++;
    memset(&note, 0, sizeof note);
    note.rule = finding->rule;
    note.info = finding->info;
    note.name = finding->node;
    note.text = line;
    if (r->note_fn != NULL) {
        r->note_fn(r->user, &note);
    }
}

static bool epctx__repair_run(epctx__repair *r)
{
    const epctx_check_opts *check = &r->opts->check;
    epctx_model *model = r->m.c.model;
    bool (*last)(epctx__repair * r) = NULL;
    size_t i;
    if (epctx_lint(model, check, epctx__repair_count, r, NULL, r->m.c.error) != EPCTX_OK) {
        return false;
    }
    for (i = 0; i < EPCTX__REPAIRER_COUNT; i++) {
        epctx_rule rule = epctx__repairers[i].rule;
        bool (*repair_fn)(epctx__repair *r) = epctx__repairers[i].repair_fn;
        if (!r->wanted[rule] || r->found[rule] == 0 || repair_fn == last) {
            continue;
        }
        if (model->duplicate && rule != EPCTX_RULE_DOUBLED_FIELD) {
            continue; /* it can only be read */
        }
        last = repair_fn;
        if (!repair_fn(r)) {
            return false;
        }
        /* What was right before may be judged only now: a node in another domain was not. */
        if ((rule == EPCTX_RULE_DOUBLED_FIELD || rule == EPCTX_RULE_WRONG_DOMAIN ||
             rule == EPCTX_RULE_LIKE_PATH || rule == EPCTX_RULE_SOURCE_ABSENT) &&
            epctx_lint(model, check, epctx__repair_count, r, NULL, r->m.c.error) != EPCTX_OK) {
            return false;
        }
    }
    return epctx_lint(model, check, epctx__repair_left, r, NULL, r->m.c.error) == EPCTX_OK;
}

EPCTX_API epctx_status epctx_repair(epctx_model *model, const epctx_repair_opts *opts,
                                    epctx_repair_fn note_fn, void *user, size_t *done, size_t *left,
                                    epctx_error *error)
{
    epctx_repair_opts defaults;
    epctx__repair r;
    epctx_error local;
    epctx_error *use = error != NULL ? error : &local;
    size_t mark = epctx_edit_mark(model);
    size_t i;
    epctx_error_clear(use);
    memset(&r, 0, sizeof r);
    memset(&defaults, 0, sizeof defaults);
    r.opts = opts != NULL ? opts : &defaults;
    r.m.c.model = model;
    r.m.c.arena = &model->arena;
    r.m.c.error = use;
    r.note_fn = note_fn;
    r.user = user;
    epctx_map_init(&r.sources, r.m.c.arena);
    for (i = 0; i < EPCTX_RULE_COUNT && r.opts->rule_count == 0; i++) {
        r.wanted[i] = epctx_rule_of((epctx_rule)i).severity != EPCTX_SEVERITY_HINT;
    }
    for (i = 0; i < r.opts->rule_count; i++) {
        r.wanted[r.opts->rules[i] < EPCTX_RULE_COUNT ? r.opts->rules[i] : 0] = true;
    }
    if (!epctx__repair_run(&r)) {
        epctx_undo(model, mark);
        epctx_blame(use, model->path, NULL, NULL);
        return use->status;
    }
    if (done != NULL) {
        *done = r.done;
    }
    if (left != NULL) {
        *left = r.left;
    }
    return EPCTX_OK;
}

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>partition
 *
 * Levels: a node's level is the number of changes between taken and not taken nodes on the longest
 * path that leads to it. Every edge leads to an equal or a higher level, and to a strictly higher
 * one when it changes sides. So all taken nodes of one level may form one group: nothing that
 * leaves the group can come back, also when the other groups are contracted.
 * ============================================================================================== */

#define EPCTX__NOBODY   UINT32_MAX       /* not in a partition */
#define EPCTX__CONSTANT (UINT32_MAX - 1) /* copied into whoever uses it */

/* A constant node on the way to the constants behind it. */
typedef struct epctx__visit {
    uint32_t node;
    size_t input; /* to look at next */
} epctx__visit;

typedef struct epctx__grouping {
    const epctx_graph *graph;
    const uint8_t *take;
    epctx_arena *arena;
    epctx_error *error;
    epctx_map producers;    /* value -> node */
    epctx_map initializers; /* value -> initializer */
    epctx_map types;        /* value -> index: inputs, then outputs, then values */
    epctx_map wanted;       /* value -> 1: a graph output, or read outside its partition */
    uint32_t *group;        /* node -> partition, EPCTX__NOBODY or EPCTX__CONSTANT */
    uint32_t count;         /* partitions */
    uint32_t *stamp;        /* node -> 1 + the last partition that took it as a constant */
    epctx__visit *stack;    /* for walking back through constants */
    uint64_t copies;        /* constant nodes in all partitions so far */
    uint32_t *list;         /* the nodes of the partition that is being collected */
} epctx__grouping;

static bool epctx__put(epctx__grouping *g, epctx_map *map, epctx_str key, size_t value)
{
    if (epctx_map_put(map, key, (uint32_t)value) != EPCTX_OK) {
        epctx__nomem(g->error, g->arena->missing);
        return false;
    }
    return true;
}

static void *epctx__group_array(epctx__grouping *g, size_t count, size_t size)
{
    void *memory = epctx_arena_array(g->arena, count, size);
    if (memory == NULL) {
        epctx__nomem(g->error, g->arena->missing);
    }
    return memory;
}

/* Is there a node, an initializer or an input of the graph with this name? */
static bool epctx__is_defined(const epctx__grouping *g, epctx_str name)
{
    return epctx_map_get(&g->producers, name) != EPCTX_MAP_NONE ||
           epctx_map_get(&g->initializers, name) != EPCTX_MAP_NONE ||
           epctx_map_get(&g->types, name) < g->graph->input_count;
}

/* Names of the graph -> where they come from. Also finds values that a node produces although they
 * come from elsewhere, too: what follows relies on one origin each. */
static bool epctx__group_names(epctx__grouping *g)
{
    const epctx_graph *graph = g->graph;
    size_t i, k;
    epctx_map_init(&g->producers, g->arena);
    epctx_map_init(&g->initializers, g->arena);
    epctx_map_init(&g->types, g->arena);
    epctx_map_init(&g->wanted, g->arena);
    for (i = 0; i < graph->value_count; i++) {
        if (!epctx__put(g, &g->types, graph->values[i].name,
                        graph->input_count + graph->output_count + i)) {
            return false;
        }
    }
    for (i = 0; i < graph->output_count; i++) {
        if (!epctx__put(g, &g->types, graph->outputs[i].name, graph->input_count + i) ||
            !epctx__put(g, &g->wanted, graph->outputs[i].name, 1)) {
            return false;
        }
    }
    for (i = 0; i < graph->input_count; i++) {
        if (!epctx__put(g, &g->types, graph->inputs[i].name, i)) {
            return false;
        }
    }
    for (i = 0; i < graph->initializer_count; i++) {
        if (!epctx__put(g, &g->initializers, graph->initializers[i].name, i)) {
            return false;
        }
    }
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; k < node->output_count; k++) {
            if (node->outputs[k].size == 0) {
                continue;
            }
            if (epctx__is_defined(g, node->outputs[k])) {
                epctx_fail(g->error, EPCTX_ERR_GRAPH, "value '%S' is produced twice",
                           &node->outputs[k]);
                epctx_blame(g->error, NULL, &node->name, NULL);
                return false;
            }
            if (!epctx__put(g, &g->producers, node->outputs[k], i)) {
                return false;
            }
        }
    }
    return true;
}

/* Are all inputs constant? Such a node is folded by whoever compiles its readers. */
static bool epctx__is_constant(const epctx__grouping *g, size_t index)
{
    const epctx_node *node = &g->graph->nodes[index];
    size_t k;
    for (k = 0; k < node->input_count; k++) {
        uint32_t producer = epctx_map_get(&g->producers, node->inputs[k]);
        if (node->inputs[k].size > 0 &&
            (producer == EPCTX_MAP_NONE ||
             g->group[producer] != EPCTX__CONSTANT) &&
            epctx_map_get(&g->initializers, node->inputs[k]) == EPCTX_MAP_NONE) {
            return false;
        }
    }
    return g->take[index] != 0 && node->capture_count == 0;
}

/* Levels, then numbers for the levels that have taken nodes, in ascending order. */
static bool epctx__group_levels(epctx__grouping *g)
{
    const epctx_graph *graph = g->graph;
    uint32_t *level = (uint32_t *)epctx__group_array(g, graph->node_count, sizeof *level);
    uint32_t *number = (uint32_t *)epctx__group_array(g, graph->node_count + 1, sizeof *number);
    size_t i, k;
    if (level == NULL || number == NULL) {
        return false;
    }
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        if (epctx__is_constant(g, i)) {
            g->group[i] = EPCTX__CONSTANT;
            continue;
        }
        g->group[i] = EPCTX__NOBODY;
        for (k = 0; k < epctx__read_count(node); k++) {
            epctx_str name = epctx__reads(node, k);
            uint32_t producer = epctx_map_get(&g->producers, name);
            uint32_t least;
            if (producer == EPCTX_MAP_NONE || g->group[producer] == EPCTX__CONSTANT) {
                continue;
            }
            if (producer >= i) {
                epctx_fail(g->error, EPCTX_ERR_GRAPH,
                           "input '%S' is produced by a later node: the graph is not sorted",
                           &name);
                epctx_blame(g->error, NULL, &node->name, NULL);
                return false;
            }
            least = level[producer] + ((g->take[producer] != 0) != (g->take[i] != 0) ? 1u : 0u);
            level[i] = level[i] < least ? least : level[i];
        }
        if (g->take[i] != 0) {
            number[level[i]] = 1;
        }
    }
    for (i = 0; i <= graph->node_count; i++) {
        number[i] = number[i] != 0 ? g->count++ : EPCTX__NOBODY;
    }
    for (i = 0; i < graph->node_count; i++) {
        if (g->group[i] != EPCTX__CONSTANT && g->take[i] != 0) {
            g->group[i] = number[level[i]];
        }
    }
    return true;
}

/* Values that leave their partition: read by another node's group or kept by the graph. */
static bool epctx__group_wanted(epctx__grouping *g)
{
    const epctx_graph *graph = g->graph;
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; k < epctx__read_count(node); k++) {
            epctx_str name = epctx__reads(node, k);
            uint32_t producer = epctx_map_get(&g->producers, name);
            if (producer != EPCTX_MAP_NONE && g->group[producer] != g->group[i] &&
                !epctx__put(g, &g->wanted, name, 1)) {
                return false;
            }
        }
    }
    return true;
}

static epctx_value epctx__typed(const epctx__grouping *g, epctx_str name)
{
    const epctx_graph *graph = g->graph;
    uint32_t at = epctx_map_get(&g->types, name);
    epctx_value value;
    memset(&value, 0, sizeof value);
    if (at == EPCTX_MAP_NONE) {
        value.rank = -1;
    } else if (at < graph->input_count) {
        value = graph->inputs[at];
    } else if (at < graph->input_count + graph->output_count) {
        value = graph->outputs[at - graph->input_count];
    } else {
        value = graph->values[at - graph->input_count - graph->output_count];
    }
    value.name = name;
    return value;
}

/* Appends the constant nodes behind `first` to the list, producers before readers. No recursion:
 * the stack is a path through the graph, and every node remembers which input comes next. */
static size_t epctx__list_constants(epctx__grouping *g, uint32_t first, uint32_t mark, size_t count)
{
    size_t top = 0;
    uint32_t next = first;
    for (;;) {
        epctx__visit *at;
        if (next != EPCTX_MAP_NONE && g->stamp[next] != mark) {
            g->stack[top].node = next;
            g->stack[top++].input = 0;
        }
        if (top == 0) {
            return count;
        }
        at = &g->stack[top - 1];
        next = EPCTX_MAP_NONE;
        if (at->input < g->graph->nodes[at->node].input_count) {
            next = epctx_map_get(&g->producers, g->graph->nodes[at->node].inputs[at->input++]);
        } else {
            g->stamp[at->node] = mark;
            g->list[count++] = at->node;
            top--;
        }
    }
}

/* The nodes of a partition with the constants they need, in order. */
static bool epctx__collect_nodes(epctx__grouping *g, epctx_partition *part, uint32_t id)
{
    epctx_node *nodes;
    size_t count = 0;
    size_t i, k;
    for (i = 0; i < part->node_count; i++) {
        const epctx_node *node = &g->graph->nodes[part->nodes[i]];
        for (k = 0; k < epctx__read_count(node); k++) {
            uint32_t producer = epctx_map_get(&g->producers, epctx__reads(node, k));
            if (producer != EPCTX_MAP_NONE && g->group[producer] == EPCTX__CONSTANT) {
                count = epctx__list_constants(g, producer, id + 1, count);
            }
        }
        g->list[count++] = part->nodes[i];
    }
    g->copies += count - part->node_count;
    if (g->copies > (uint64_t)g->graph->node_count * 16 + 4096) {
        epctx_fail(g->error, EPCTX_ERR_LIMIT,
                   "the constant nodes would be copied more than %u times into %u partitions",
                   (uint64_t)g->graph->node_count * 16 + 4096, (uint64_t)g->count);
        return false;
    }
    nodes = (epctx_node *)epctx__group_array(g, count, sizeof *nodes);
    for (i = 0; nodes != NULL && i < count; i++) {
        nodes[i] = g->graph->nodes[g->list[i]];
    }
    part->graph.nodes = nodes;
    part->graph.node_count = count;
    return nodes != NULL;
}

/* Boundary inputs in order of first use, and the initializers. */
static bool epctx__collect_reads(epctx__grouping *g, epctx_partition *part, uint32_t id)
{
    epctx_graph *graph = &part->graph;
    epctx_value *inputs;
    epctx_tensor *initializers;
    epctx_map seen;
    size_t reads = 0;
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        reads += epctx__read_count(&graph->nodes[i]);
    }
    inputs = (epctx_value *)epctx__group_array(g, reads, sizeof *inputs);
    initializers = (epctx_tensor *)epctx__group_array(g, reads, sizeof *initializers);
    graph->inputs = inputs;
    graph->initializers = initializers;
    if (inputs == NULL || initializers == NULL) {
        return false;
    }
    epctx_map_init(&seen, g->arena);
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; k < epctx__read_count(node); k++) {
            epctx_str name = epctx__reads(node, k);
            uint32_t producer = epctx_map_get(&g->producers, name);
            uint32_t initializer = epctx_map_get(&g->initializers, name);
            if (name.size == 0 || epctx_map_get(&seen, name) != EPCTX_MAP_NONE ||
                (producer != EPCTX_MAP_NONE &&
                 (g->group[producer] == id || g->group[producer] == EPCTX__CONSTANT))) {
                continue;
            }
            if (producer == EPCTX_MAP_NONE && initializer != EPCTX_MAP_NONE) {
                initializers[graph->initializer_count++] = g->graph->initializers[initializer];
            } else {
                inputs[graph->input_count++] = epctx__typed(g, name);
            }
            if (!epctx__put(g, &seen, name, 1)) {
                return false;
            }
        }
    }
    return true;
}

/* Boundary outputs in order of production. */
static bool epctx__collect_writes(epctx__grouping *g, epctx_partition *part)
{
    epctx_graph *graph = &part->graph;
    epctx_value *outputs;
    size_t made = 0;
    size_t i, k;
    for (i = 0; i < part->node_count; i++) {
        made += g->graph->nodes[part->nodes[i]].output_count;
    }
    outputs = (epctx_value *)epctx__group_array(g, made, sizeof *outputs);
    graph->outputs = outputs;
    for (i = 0; outputs != NULL && i < part->node_count; i++) {
        const epctx_node *node = &g->graph->nodes[part->nodes[i]];
        for (k = 0; k < node->output_count; k++) {
            if (node->outputs[k].size > 0 &&
                epctx_map_get(&g->wanted, node->outputs[k]) != EPCTX_MAP_NONE) {
                outputs[graph->output_count++] = epctx__typed(g, node->outputs[k]);
            }
        }
    }
    return outputs != NULL;
}

/* The members of every partition in one array, sorted by partition, and where each begins. */
static bool epctx__group_members(epctx__grouping *g, uint32_t **members, size_t **begins)
{
    size_t n = g->graph->node_count;
    size_t *begin = (size_t *)epctx__group_array(g, (size_t)g->count + 2, sizeof *begin);
    uint32_t *member = (uint32_t *)epctx__group_array(g, n, sizeof *member);
    size_t i;
    if (begin == NULL || member == NULL) {
        return false;
    }
    for (i = 0; i < n; i++) {
        if (g->group[i] < g->count) {
            begin[g->group[i] + 2]++;
        }
    }
    for (i = 2; i < (size_t)g->count + 2; i++) {
        begin[i] += begin[i - 1];
    }
    for (i = 0; i < n; i++) {
        if (g->group[i] < g->count) {
            member[begin[g->group[i] + 1]++] = (uint32_t)i;
        }
    }
    *members = member;
    *begins = begin;
    return true;
}

static bool epctx__grouping_begin(epctx__grouping *g, const epctx_graph *graph, const uint8_t *take,
                               epctx_arena *arena, epctx_error *error)
{
    size_t n = graph->node_count;
    memset(g, 0, sizeof *g);
    g->graph = graph;
    g->take = take;
    g->arena = arena;
    g->error = error;
    if (n >= EPCTX__CONSTANT) {
        epctx_fail(error, EPCTX_ERR_LIMIT, "the graph has %u nodes", (uint64_t)n);
        return false;
    }
    g->group = (uint32_t *)epctx__group_array(g, n, sizeof *g->group);
    g->stamp = (uint32_t *)epctx__group_array(g, n, sizeof *g->stamp);
    g->stack = (epctx__visit *)epctx__group_array(g, n, sizeof *g->stack);
    g->list = (uint32_t *)epctx__group_array(g, n, sizeof *g->list);
    return g->group != NULL && g->stamp != NULL && g->stack != NULL && g->list != NULL &&
           epctx__group_names(g);
}

/* The partitions, once every node has its group. */
static epctx_status epctx__group_collect(epctx__grouping *g, epctx_partition **partitions,
                                         size_t *count)
{
    uint32_t *members = NULL;
    size_t *begin = NULL;
    uint32_t i;
    if (!epctx__group_wanted(g) || !epctx__group_members(g, &members, &begin)) {
        return g->error->status;
    }
    *partitions = (epctx_partition *)epctx__group_array(g, g->count, sizeof **partitions);
    for (i = 0; *partitions != NULL && i < g->count; i++) {
        epctx_partition *part = &(*partitions)[i];
        part->nodes = members + begin[i];
        part->node_count = begin[i + 1] - begin[i];
        part->graph.name = g->graph->name;
        part->graph.values = g->graph->values;
        part->graph.value_count = g->graph->value_count;
        if (!epctx__collect_nodes(g, part, i) || !epctx__collect_reads(g, part, i) ||
            !epctx__collect_writes(g, part)) {
            return g->error->status;
        }
    }
    *count = g->count;
    return g->error->status;
}

EPCTX_API epctx_status epctx_partition_graph(const epctx_graph *graph, const uint8_t *take,
                                             epctx_arena *arena, epctx_partition **partitions,
                                             size_t *count, epctx_error *error)
{
    epctx__grouping g;
    epctx_error local;
    epctx_error_clear(error);
    epctx_error_clear(&local);
    *partitions = NULL;
    *count = 0;
    if (!epctx__grouping_begin(&g, graph, take, arena, error != NULL ? error : &local) ||
        !epctx__group_levels(&g)) {
        return g.error->status;
    }
    return epctx__group_collect(&g, partitions, count);
}

/* ================================================================================================
 * >>weights
 * ============================================================================================== */

#define EPCTX__WEIGHT_PIECE 65536u /* read at once */
#define EPCTX__WEIGHT_BLOCK 16u    /* a sample is made of these */
#define EPCTX__WEIGHT_NONE  UINT32_MAX

/* Which hash tables an entry is in. */
#define EPCTX__WEIGHT_BY_SIZE   1u /* the first of its size and kind */
#define EPCTX__WEIGHT_BY_SAMPLE 2u /* one of the first EPCTX_WEIGHTS_TRIES of its sample */
#define EPCTX__WEIGHT_BY_BYTES  4u

struct epctx__weight {
    uint64_t offset, size;
    uint64_t sample, bytes; /* hashes, as far as they have been needed */
    uint32_t kind;
    uint32_t in;            /* EPCTX__WEIGHT_BY_ bits */
    uint32_t next[3];       /* in the same slot of each table */
};

static size_t epctx__weights_bytes(size_t capacity)
{
    return capacity * (sizeof(struct epctx__weight) + 3 * sizeof(uint32_t));
}

/* A power of two, so small that no size of a table overflows. */
#define EPCTX__WEIGHTS_MOST ((size_t)1 << (sizeof(size_t) > 4 ? 31 : 24))

EPCTX_API size_t epctx_weights_memory(size_t count)
{
    size_t capacity = 16;
    if (count > EPCTX__WEIGHTS_MOST) {
        return 0;
    }
    while (capacity < count) {
        capacity *= 2;
    }
    return epctx__weights_bytes(capacity) + EPCTX__ALIGN;
}

static void epctx__weights_use(epctx_weights *w, void *memory, size_t capacity)
{
    w->entries = (struct epctx__weight *)memory;
    w->heads = (uint32_t *)(void *)(w->entries + capacity);
    w->capacity = capacity;
    memset(w->heads, 0xff, 3 * capacity * sizeof *w->heads);
}

EPCTX_API epctx_status epctx_weights_init(epctx_weights *weights, const epctx_weights_opts *opts,
                                          epctx_error *error)
{
    size_t skip, capacity;
    epctx_error_clear(error);
    memset(weights, 0, sizeof *weights);
    if (opts == NULL || (opts->binary == NULL && opts->fetch_fn == NULL)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "a weight table needs a binary or a fetch_fn to compare with");
    }
    weights->opts = *opts;
    weights->allocator = epctx__allocator(opts->allocator);
    weights->start = opts->binary != NULL ? opts->binary->size : 0;
    if (opts->memory == NULL) {
        return EPCTX_OK;
    }
    skip = (size_t)(0 - (uintptr_t)opts->memory) & (EPCTX__ALIGN - 1);
    for (capacity = EPCTX__WEIGHTS_MOST; capacity >= 16; capacity /= 2) {
        if (opts->memory_size >= skip &&
            opts->memory_size - skip >= epctx__weights_bytes(capacity)) {
            epctx__weights_use(weights, (uint8_t *)opts->memory + skip, capacity);
            return EPCTX_OK;
        }
    }
    return epctx__nomem(error, epctx_weights_memory(1) - opts->memory_size);
}

EPCTX_API void epctx_weights_free(epctx_weights *weights)
{
    if (weights->entries != NULL && weights->opts.memory == NULL) {
        weights->allocator.free_fn(weights->allocator.user, weights->entries);
    }
    memset(weights, 0, sizeof *weights);
}

EPCTX_API epctx_weights_stats epctx_weights_statistics(const epctx_weights *weights)
{
    return weights->stats;
}

EPCTX_API bool epctx_weights_at(const epctx_weights *weights, uint32_t index, epctx_weight *out)
{
    if (index >= weights->count) {
        return false;
    }
    out->offset = weights->entries[index].offset;
    out->size = weights->entries[index].size;
    out->kind = weights->entries[index].kind;
    out->index = index;
    out->fresh = false;
    return true;
}

/* -- the three hash tables -- */

static uint64_t epctx__weight_size_hash(const epctx_weights *w, uint64_t size, uint32_t kind)
{
    uint64_t h = (size + w->opts.seed) * EPCTX__P1 + kind * EPCTX__P3;
    h = (h ^ h >> 33) * EPCTX__P2;
    return h ^ h >> 29;
}

static uint32_t *epctx__weight_head(const epctx_weights *w, unsigned table, uint64_t hash)
{
    return &w->heads[table * w->capacity + ((size_t)hash & (w->capacity - 1))];
}

static void epctx__weight_link(epctx_weights *w, uint32_t index, unsigned table, uint64_t hash)
{
    uint32_t *head = epctx__weight_head(w, table, hash);
    w->entries[index].next[table] = *head;
    w->entries[index].in |= 1u << table;
    *head = index;
}

/* Room for one more place. */
static epctx_status epctx__weights_grow(epctx_weights *w, epctx_error *error)
{
    size_t capacity = w->capacity == 0 ? 64 : w->capacity * 2;
    struct epctx__weight *old = w->entries;
    void *memory = NULL;
    uint32_t i;
    if (w->count < w->capacity) {
        return EPCTX_OK;
    }
    if (capacity > EPCTX__WEIGHTS_MOST) {
        return epctx_fail(error, EPCTX_ERR_LIMIT, "more than %u weights", (uint64_t)w->capacity);
    }
    if (w->opts.memory == NULL && w->allocator.alloc_fn != NULL) {
        memory = w->allocator.alloc_fn(w->allocator.user, epctx__weights_bytes(capacity));
    }
    if (memory == NULL) {
        return epctx_fail(error, EPCTX_ERR_NOMEM,
                          "out of memory: the weight table holds %u places, for %u it needs %u "
                          "bytes",
                          (uint64_t)w->capacity, (uint64_t)capacity,
                          (uint64_t)epctx_weights_memory(capacity));
    }
    epctx__weights_use(w, memory, capacity);
    if (old != NULL) {
        memcpy(w->entries, old, w->count * sizeof *old);
        w->allocator.free_fn(w->allocator.user, old);
    }
    for (i = 0; i < w->count; i++) {
        const struct epctx__weight *e = &w->entries[i];
        if ((e->in & EPCTX__WEIGHT_BY_SIZE) != 0) {
            epctx__weight_link(w, i, 0, epctx__weight_size_hash(w, e->size, e->kind));
        }
        if ((e->in & EPCTX__WEIGHT_BY_SAMPLE) != 0) {
            epctx__weight_link(w, i, 1, e->sample);
        }
        if ((e->in & EPCTX__WEIGHT_BY_BYTES) != 0) {
            epctx__weight_link(w, i, 2, e->bytes);
        }
    }
    return EPCTX_OK;
}

/* -- bytes -- */

/* Bytes of the caller (`data`), or of a place in the section. */
typedef struct epctx__weight_bytes {
    const uint8_t *data;
    uint64_t offset;
    size_t size;
} epctx__weight_bytes;

static epctx__weight_bytes epctx__weight_stored(const epctx_weights *w, uint32_t index)
{
    epctx__weight_bytes b;
    b.data = NULL;
    b.offset = w->entries[index].offset;
    b.size = (size_t)w->entries[index].size;
    if (w->opts.binary != NULL && b.size > 0) {
        b.data = w->opts.binary->data + w->start + (size_t)b.offset;
    }
    return b;
}

static epctx_status epctx__weight_piece(const epctx_weights *w, const epctx__weight_bytes *b,
                                        size_t at, size_t size, const uint8_t **out,
                                        epctx_error *error)
{
    epctx_status status;
    if (b->data != NULL || size == 0) {
        *out = b->data != NULL ? b->data + at : NULL;
        return EPCTX_OK;
    }
    status = w->opts.fetch_fn(w->opts.user, b->offset + at, size, out, error);
    return status == EPCTX_OK ? status
                              : epctx_fail(error, status, "weights at offset %u cannot be read",
                                           b->offset + at);
}

static size_t epctx__weight_left(size_t size, size_t at)
{
    return size - at < EPCTX__WEIGHT_PIECE ? size - at : EPCTX__WEIGHT_PIECE;
}

/* Blocks at equal distances, the first and the last one included. */
static epctx_status epctx__weight_sample(epctx_weights *w, const epctx__weight_bytes *b,
                                         uint64_t *hash, epctx_error *error)
{
    const size_t blocks = EPCTX_WEIGHTS_SAMPLE / EPCTX__WEIGHT_BLOCK;
    uint8_t sample[EPCTX_WEIGHTS_SAMPLE];
    const uint8_t *piece = NULL;
    epctx_status status = EPCTX_OK;
    size_t size = b->size;
    size_t i;
    if (size <= EPCTX_WEIGHTS_SAMPLE) {
        status = epctx__weight_piece(w, b, 0, size, &piece, error);
    } else {
        size_t step = (size - EPCTX__WEIGHT_BLOCK) / (blocks - 1);
        for (i = 0; status == EPCTX_OK && i < blocks; i++) {
            size_t at = i + 1 < blocks ? i * step : size - EPCTX__WEIGHT_BLOCK;
            status = epctx__weight_piece(w, b, at, EPCTX__WEIGHT_BLOCK, &piece, error);
            if (status == EPCTX_OK) {
                memcpy(sample + i * EPCTX__WEIGHT_BLOCK, piece, EPCTX__WEIGHT_BLOCK);
            }
        }
        piece = sample;
        size = sizeof sample;
    }
    if (status == EPCTX_OK) {
        *hash = epctx_hash(piece, size, w->opts.seed);
        w->stats.sampled++;
        w->stats.hashed_bytes += size;
    }
    return status;
}

static epctx_status epctx__weight_hash(epctx_weights *w, const epctx__weight_bytes *b,
                                       uint64_t *hash, epctx_error *error)
{
    const uint8_t *piece = NULL;
    size_t at, size;
    *hash = w->opts.seed;
    for (at = 0; at < b->size; at += size) {
        epctx_status status;
        size = epctx__weight_left(b->size, at);
        status = epctx__weight_piece(w, b, at, size, &piece, error);
        if (status != EPCTX_OK) {
            return status;
        }
        *hash = epctx_hash(piece, size, *hash);
    }
    w->stats.hashed_bytes += b->size;
    return EPCTX_OK;
}

static epctx_status epctx__weight_equal(epctx_weights *w, const epctx__weight_bytes *a,
                                        uint32_t index, bool *equal, epctx_error *error)
{
    epctx__weight_bytes b = epctx__weight_stored(w, index);
    const uint8_t *piece = NULL;
    size_t at, size;
    *equal = true;
    for (at = 0; *equal && at < a->size; at += size) {
        epctx_status status;
        size = epctx__weight_left(a->size, at);
        status = epctx__weight_piece(w, &b, at, size, &piece, error);
        if (status != EPCTX_OK) {
            return status;
        }
        *equal = memcmp(a->data + at, piece, size) == 0;
        w->stats.compared_bytes += size;
    }
    return EPCTX_OK;
}

/* -- adding -- */

/* A weight that is looked for. */
typedef struct epctx__weight_search {
    epctx__weight_bytes bytes;
    uint32_t kind, alignment;
    uint64_t sample, hash;
    uint32_t in; /* the tables it will be in if it is new */
} epctx__weight_search;

static bool epctx__weight_like(const struct epctx__weight *e, const epctx__weight_search *s)
{
    return e->size == s->bytes.size && e->kind == s->kind;
}

static epctx_status epctx__weight_try(epctx_weights *w, const epctx__weight_search *s,
                                      uint32_t index, uint32_t *found, epctx_error *error)
{
    bool equal = false;
    epctx_status status = EPCTX_OK;
    if ((w->entries[index].offset & (s->alignment - 1)) == 0) {
        status = epctx__weight_equal(w, &s->bytes, index, &equal, error);
    }
    *found = status == EPCTX_OK && equal ? index : EPCTX__WEIGHT_NONE;
    return status;
}

/* More of one sample than is worth trying: by the hash of all bytes. */
static epctx_status epctx__weight_find_bytes(epctx_weights *w, epctx__weight_search *s,
                                             const uint32_t tries[EPCTX_WEIGHTS_TRIES],
                                             uint32_t *found, epctx_error *error)
{
    epctx_status status = EPCTX_OK;
    uint32_t at;
    size_t i;
    for (i = EPCTX_WEIGHTS_TRIES; status == EPCTX_OK && i-- > 0;) { /* the oldest is the last */
        struct epctx__weight *e = &w->entries[tries[i]];
        epctx__weight_bytes b = epctx__weight_stored(w, tries[i]);
        if ((e->in & EPCTX__WEIGHT_BY_BYTES) == 0) {
            status = epctx__weight_hash(w, &b, &e->bytes, error);
            if (status == EPCTX_OK) {
                epctx__weight_link(w, tries[i], 2, e->bytes);
            }
        }
    }
    if (status == EPCTX_OK) {
        status = epctx__weight_hash(w, &s->bytes, &s->hash, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    s->in = EPCTX__WEIGHT_BY_BYTES;
    for (at = *epctx__weight_head(w, 2, s->hash);
         status == EPCTX_OK && at != EPCTX__WEIGHT_NONE && *found == EPCTX__WEIGHT_NONE;
         at = w->entries[at].next[2]) {
        if (epctx__weight_like(&w->entries[at], s) && w->entries[at].bytes == s->hash) {
            status = epctx__weight_try(w, s, at, found, error);
        }
    }
    return status;
}

static epctx_status epctx__weight_find_sample(epctx_weights *w, epctx__weight_search *s,
                                              uint32_t *found, epctx_error *error)
{
    uint32_t tries[EPCTX_WEIGHTS_TRIES];
    size_t count = 0;
    uint32_t at;
    epctx_status status = epctx__weight_sample(w, &s->bytes, &s->sample, error);
    size_t i;
    if (status != EPCTX_OK) {
        return status;
    }
    s->in = EPCTX__WEIGHT_BY_SAMPLE;
    for (at = *epctx__weight_head(w, 1, s->sample);
         at != EPCTX__WEIGHT_NONE && count < EPCTX_WEIGHTS_TRIES; at = w->entries[at].next[1]) {
        if (epctx__weight_like(&w->entries[at], s) && w->entries[at].sample == s->sample) {
            tries[count++] = at;
        }
    }
    if (count == EPCTX_WEIGHTS_TRIES) {
        return epctx__weight_find_bytes(w, s, tries, found, error);
    }
    for (i = 0; status == EPCTX_OK && i < count && *found == EPCTX__WEIGHT_NONE; i++) {
        status = epctx__weight_try(w, s, tries[i], found, error);
    }
    return status;
}

static epctx_status epctx__weight_find(epctx_weights *w, epctx__weight_search *s, uint32_t *found,
                                       epctx_error *error)
{
    uint64_t hash = epctx__weight_size_hash(w, s->bytes.size, s->kind);
    uint32_t at = *epctx__weight_head(w, 0, hash);
    *found = EPCTX__WEIGHT_NONE;
    while (at != EPCTX__WEIGHT_NONE && !epctx__weight_like(&w->entries[at], s)) {
        at = w->entries[at].next[0];
    }
    if (at == EPCTX__WEIGHT_NONE) {
        s->in = EPCTX__WEIGHT_BY_SIZE; /* a size seen once is never hashed */
        return EPCTX_OK;
    }
    if ((w->entries[at].in & (EPCTX__WEIGHT_BY_SAMPLE | EPCTX__WEIGHT_BY_BYTES)) == 0) {
        epctx__weight_bytes b = epctx__weight_stored(w, at);
        epctx_status status = epctx__weight_sample(w, &b, &w->entries[at].sample, error);
        if (status != EPCTX_OK) {
            return status;
        }
        epctx__weight_link(w, at, 1, w->entries[at].sample);
    }
    return epctx__weight_find_sample(w, s, found, error);
}

/* A new place at the end. */
static epctx_status epctx__weight_place(epctx_weights *w, const epctx__weight_search *s,
                                        epctx_error *error)
{
    epctx_buffer *binary = w->opts.binary;
    uint32_t index = (uint32_t)w->count;
    struct epctx__weight *e = &w->entries[index];
    uint64_t end = binary != NULL ? binary->size - w->start : w->end;
    uint64_t padding = (0 - end) & (s->alignment - 1);
    if (s->bytes.size > UINT64_MAX - end || padding > UINT64_MAX - end - s->bytes.size) {
        return epctx_fail(error, EPCTX_ERR_LIMIT, "the weights have more than 2^64 bytes");
    }
    if (binary != NULL) {
        size_t before = binary->size;
        epctx_status status = epctx_buffer_append(binary, NULL, (size_t)padding);
        if (status == EPCTX_OK) {
            status = epctx_buffer_append(binary, s->bytes.data, s->bytes.size);
        }
        if (status != EPCTX_OK) {
            binary->size = before;
            return epctx__nomem(error, s->bytes.size);
        }
    }
    memset(e, 0, sizeof *e);
    e->offset = end + padding;
    e->size = s->bytes.size;
    e->kind = s->kind;
    e->sample = s->sample;
    e->bytes = s->hash;
    w->count++;
    w->end = e->offset + e->size;
    if ((s->in & EPCTX__WEIGHT_BY_SIZE) != 0) {
        epctx__weight_link(w, index, 0, epctx__weight_size_hash(w, e->size, e->kind));
    } else if ((s->in & EPCTX__WEIGHT_BY_SAMPLE) != 0) {
        epctx__weight_link(w, index, 1, e->sample);
    } else {
        epctx__weight_link(w, index, 2, e->bytes);
    }
    w->stats.stored++;
    w->stats.stored_bytes += e->size;
    w->stats.padding += padding;
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_weights_add(epctx_weights *weights, const void *data, size_t size,
                                         uint32_t alignment, uint32_t kind, epctx_weight *out,
                                         epctx_error *error)
{
    static const uint8_t nothing[1] = {0};
    epctx__weight_search s;
    uint32_t found = EPCTX__WEIGHT_NONE;
    epctx_status status;
    epctx_error_clear(error);
    memset(&s, 0, sizeof s);
    s.bytes.data = size > 0 ? (const uint8_t *)data : nothing;
    s.bytes.size = size;
    s.kind = kind;
    s.alignment = alignment > 0 ? alignment : 1;
    if (s.bytes.data == NULL || (s.alignment & (s.alignment - 1)) != 0) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "bytes and an alignment that is a power of two are expected, found %s%u",
                          s.bytes.data == NULL ? "no bytes and " : "", (uint64_t)alignment);
    }
    status = weights->capacity > 0 ? EPCTX_OK : epctx__weights_grow(weights, error);
    if (status == EPCTX_OK) {
        status = epctx__weight_find(weights, &s, &found, error);
    }
    if (status == EPCTX_OK && found == EPCTX__WEIGHT_NONE) {
        status = epctx__weights_grow(weights, error);
        if (status == EPCTX_OK) {
            status = epctx__weight_place(weights, &s, error);
        }
    }
    if (status != EPCTX_OK) {
        return status;
    }
    weights->stats.added++;
    weights->stats.added_bytes += size;
    epctx_weights_at(weights, found != EPCTX__WEIGHT_NONE ? found : (uint32_t)weights->count - 1,
                     out);
    out->fresh = found == EPCTX__WEIGHT_NONE;
    if (!out->fresh) {
        weights->stats.shared++;
        weights->stats.shared_bytes += size;
    }
    return EPCTX_OK;
}

/* ================================================================================================
 * >>ep
 * ============================================================================================== */

EPCTX_API epctx_status epctx_backend_compatibility(const epctx_backend *backend, char *out,
                                                   size_t capacity, epctx_error *error)
{
    epctx_str parts[6];
    epctx_error_clear(error);
    parts[0] = epctx_str_of("epctx=1;source=");
    parts[1] = epctx_str_of(backend->source);
    parts[2] = epctx_str_of(";sdk=");
    parts[3] = epctx_str_of(backend->sdk_version);
    parts[4] = epctx_str_of(";arch=");
    parts[5] = epctx_str_of(backend->hardware_architecture);
    return epctx__join(out, capacity, parts, 6, "the compatibility string", error);
}

static uint64_t epctx__hash_number(uint64_t h, uint64_t value)
{
    uint8_t bytes[8];
    size_t i;
    for (i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(value >> 8 * i);
    }
    return epctx_hash(bytes, sizeof bytes, h);
}

static uint64_t epctx__hash_str(uint64_t h, epctx_str text)
{
    return epctx_hash(text.data, text.size, epctx__hash_number(h, text.size));
}

static uint64_t epctx__hash_float(uint64_t h, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return epctx__hash_number(h, bits);
}

static uint64_t epctx__hash_dims(uint64_t h, int32_t elem_type, int32_t rank, const int64_t *dims)
{
    int32_t i;
    h = epctx__hash_number(epctx__hash_number(h, (uint64_t)elem_type), (uint64_t)rank);
    for (i = 0; i < rank; i++) {
        h = epctx__hash_number(h, (uint64_t)dims[i]);
    }
    return h;
}

static uint64_t epctx__hash_values(uint64_t h, const epctx_value *values, size_t count)
{
    size_t i;
    h = epctx__hash_number(h, count);
    for (i = 0; i < count; i++) {
        h = epctx__hash_str(h, values[i].name);
        h = epctx__hash_dims(h, values[i].elem_type, values[i].rank, values[i].dims);
    }
    return h;
}

static uint64_t epctx__hash_tensor(uint64_t h, const epctx_tensor *tensor)
{
    h = epctx__hash_dims(epctx__hash_str(h, tensor->name), tensor->elem_type, tensor->rank,
                         tensor->dims);
    return epctx_hash(tensor->data, tensor->data != NULL ? tensor->size : 0, h);
}

static uint64_t epctx__hash_attr(uint64_t h, const epctx_attr *attr)
{
    size_t i;
    h = epctx__hash_number(epctx__hash_str(h, attr->name), (uint64_t)attr->type);
    h = epctx__hash_float(epctx__hash_number(h, (uint64_t)attr->i), attr->f);
    h = epctx__hash_number(epctx__hash_str(h, attr->s), attr->count);
    for (i = 0; i < attr->count; i++) {
        if (attr->type == EPCTX_ATTR_INTS) {
            h = epctx__hash_number(h, (uint64_t)attr->ints[i]);
        } else if (attr->type == EPCTX_ATTR_FLOATS) {
            h = epctx__hash_float(h, attr->floats[i]);
        } else if (attr->type == EPCTX_ATTR_STRINGS) {
            h = epctx__hash_str(h, attr->strings[i]);
        }
    }
    return attr->t != NULL ? epctx__hash_tensor(h, attr->t) : h;
}

EPCTX_API uint64_t epctx_graph_hash(const epctx_graph *graph)
{
    uint64_t h = epctx__hash_number(0, graph->node_count);
    size_t i, k;
    h = epctx__hash_values(h, graph->inputs, graph->input_count);
    h = epctx__hash_values(h, graph->outputs, graph->output_count);
    for (i = 0; i < graph->initializer_count; i++) {
        h = epctx__hash_tensor(h, &graph->initializers[i]);
    }
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        h = epctx__hash_str(epctx__hash_str(epctx__hash_str(h, node->op_type), node->domain),
                            node->name);
        h = epctx__hash_number(h, (uint64_t)node->version);
        for (k = 0; k < node->input_count; k++) {
            h = epctx__hash_str(h, node->inputs[k]);
        }
        for (k = 0; k < node->output_count; k++) {
            h = epctx__hash_str(h, node->outputs[k]);
        }
        for (k = 0; k < node->attr_count; k++) {
            h = epctx__hash_attr(h, &node->attrs[k]);
        }
    }
    return h != 0 ? h : 1; /* 0 means "no hash" */
}

#define EPCTX__HASH_KEY "graph_hash="

/* 16 hexadecimal digits; 0 when they are none. */
static uint64_t epctx__hex(epctx_str digits)
{
    uint64_t hash = 0;
    size_t i;
    for (i = 0; i < 16; i++) {
        char c = i < digits.size ? digits.data[i] : '?';
        if (c >= '0' && c <= '9') {
            hash = hash << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            hash = hash << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return 0;
        }
    }
    return hash;
}

EPCTX_API uint64_t epctx_notes_hash(epctx_str notes)
{
    const size_t key = sizeof EPCTX__HASH_KEY - 1;
    if (notes.size < key + 16 || memcmp(notes.data, EPCTX__HASH_KEY, key) != 0) {
        return 0;
    }
    notes.data += key;
    notes.size = 16;
    return epctx__hex(notes);
}

EPCTX_API epctx_status epctx_cancelled(const epctx_hooks *hooks, epctx_error *error)
{
    if (hooks != NULL && hooks->cancel_fn != NULL && hooks->cancel_fn(hooks->user)) {
        return epctx_fail(error, EPCTX_ERR_CANCELLED, "cancelled by the caller");
    }
    return EPCTX_OK;
}

static void epctx__progress(const epctx_hooks *hooks, const char *work, uint64_t done,
                            uint64_t total)
{
    if (hooks != NULL && hooks->progress_fn != NULL) {
        hooks->progress_fn(hooks->user, work, done, total);
    }
}

/* -- one EP at work -- */

typedef struct epctx__piece {
    const epctx_graph *graph;
    epctx_str name;
    uint64_t hash;
    const epctx_value *types; /* of its outputs as the backend inferred them, or NULL */
} epctx__piece;

/* The graphs that a shared context holds already, whoever compiled them. */
typedef struct epctx__known {
    epctx_buffer names;   /* each with a size_t in front */
    epctx_buffer hashes;
    int64_t max_size;
} epctx__known;

/* Whether the shared context has this very graph; another one of that name is an error. */
static epctx_status epctx__known_find(const epctx__known *known, epctx_str name, uint64_t hash,
                                      bool *found, epctx_error *error)
{
    size_t at = 0;
    size_t i = 0;
    *found = false;
    while (at < known->names.size) {
        epctx_str other;
        uint64_t has;
        memcpy(&other.size, known->names.data + at, sizeof other.size);
        other.data = (const char *)known->names.data + at + sizeof other.size;
        memcpy(&has, known->hashes.data + i++ * sizeof has, sizeof has);
        at += sizeof other.size + other.size;
        if (!epctx_str_eq(name, other)) {
            continue;
        }
        *found = has == hash;
        return *found ? EPCTX_OK
                      : epctx_fail(error, EPCTX_ERR_ARG,
                                   "the shared context has another graph '%S': generate with "
                                   "ep.context_node_name_prefix",
                                   &name);
    }
    return EPCTX_OK;
}

static epctx_status epctx__known_add(epctx__known *known, epctx_str name, uint64_t hash,
                                     epctx_error *error)
{
    size_t names = known->names.size;
    epctx_status status = epctx_buffer_append(&known->names, &name.size, sizeof name.size);
    if (status == EPCTX_OK) {
        status = epctx_buffer_append(&known->names, name.data, name.size);
    }
    if (status == EPCTX_OK) {
        status = epctx_buffer_append(&known->hashes, &hash, sizeof hash);
    }
    if (status != EPCTX_OK) {
        known->names.size = names;
        return epctx__nomem(error, name.size);
    }
    return EPCTX_OK;
}

static void *epctx__ep_array(epctx_ep *ep, size_t count, size_t size, epctx_error *error)
{
    void *memory = epctx_arena_array(ep->arena, count, size);
    if (memory == NULL) {
        epctx__nomem(error, ep->arena->missing);
    }
    return memory;
}

/* A binary inside a model lives as long as the model: in its arena. */
static void *epctx__arena_alloc_fn(void *user, size_t size)
{
    return epctx__arena_raw((epctx_arena *)user, size);
}

static void epctx__arena_free_fn(void *user, void *memory)
{
    (void)user;
    (void)memory;
}

/* Everything of epctx_ep_begin but the context. */
static epctx_status epctx__ep_open(epctx_ep *ep, const epctx_backend *backend,
                                   const epctx_ep_opts *opts, size_t room, epctx_arena *arena,
                                   epctx_error *error)
{
    epctx_allocator in_arena;
    memset(ep, 0, sizeof *ep);
    ep->backend = backend;
    ep->opts = *opts;
    ep->arena = arena;
    ep->room = room;
    in_arena.user = arena;
    in_arena.alloc_fn = epctx__arena_alloc_fn;
    in_arena.free_fn = epctx__arena_free_fn;
    epctx_buffer_init(&ep->binary, opts->embed ? &in_arena : opts->allocator);
    ep->pieces = (epctx__piece *)epctx__ep_array(ep, room, sizeof *ep->pieces, error);
    return ep->pieces != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
}

static epctx_status epctx__build_begin(const epctx_backend *b, const epctx_build_opts *opts,
                                       void **build, epctx_error *error)
{
    epctx_status status;
    *build = NULL;
    status = b->begin_fn(b->self, build, error);
    if (status != EPCTX_OK) {
        *build = NULL;
        return status;
    }
    if (b->setup_fn != NULL) {
        status = b->setup_fn(b->self, *build, opts, error);
        if (status != EPCTX_OK) {
            b->discard_fn(b->self, *build);
            *build = NULL;
        }
    }
    return status;
}

EPCTX_API epctx_status epctx_ep_begin(epctx_ep *ep, const epctx_backend *backend,
                                      const epctx_ep_opts *opts, size_t room, epctx_arena *arena,
                                      epctx_error *error)
{
    epctx_build_opts how;
    epctx_status status;
    epctx_error_clear(error);
    if (backend == NULL || backend->version != EPCTX_BACKEND_VERSION) {
        return epctx_fail(error, EPCTX_ERR_ARG, "a backend of version %u is expected",
                          (uint64_t)EPCTX_BACKEND_VERSION);
    }
    status = epctx__ep_open(ep, backend, opts, room, arena, error);
    if (status == EPCTX_OK) {
        how.hooks = opts->hooks;
        how.prepare_only = opts->prepare_only;
        status = epctx__build_begin(backend, &how, &ep->build, error);
    }
    return status;
}

/* "<prefix><source>_<hash of the model's graph>_<index>": unique in the model and across models. */
static epctx_status epctx__ep_name(epctx_ep *ep, epctx_str *name, epctx_error *error)
{
    const char *prefix = ep->opts.name_prefix != NULL ? ep->opts.name_prefix : "";
    const char *source = ep->backend->source;
    size_t capacity = strlen(prefix) + strlen(source) + 48;
    epctx__text text = epctx__text_of((char *)epctx__ep_array(ep, capacity, 1, error), capacity);
    if (text.data == NULL) {
        return EPCTX_ERR_NOMEM;
    }
    while (*prefix != '\0') {
        epctx__text_char(&text, *prefix++);
    }
    while (*source != '\0') {
        epctx__text_char(&text, *source++);
    }
    epctx__text_char(&text, '_');
    epctx__text_number(&text, ep->opts.model_hash, 16);
    epctx__text_char(&text, '_');
    epctx__text_number(&text, ep->count, 10);
    name->data = text.data;
    name->size = text.size;
    return EPCTX_OK;
}

/* Copies what types_fn tells: it is gone after finish. */
static epctx_status epctx__ep_types(epctx_ep *ep, epctx__piece *piece, epctx_error *error)
{
    const epctx_value *found = NULL;
    epctx_value *copy;
    size_t count = 0;
    size_t i;
    epctx_status status;
    if (ep->backend->types_fn == NULL) {
        return EPCTX_OK;
    }
    status = ep->backend->types_fn(ep->backend->self, ep->build, piece->name, &found, &count,
                                   error);
    if (status != EPCTX_OK) {
        return status;
    }
    if (count != piece->graph->output_count) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "types_fn gave %u outputs, expected %u",
                          (uint64_t)count, (uint64_t)piece->graph->output_count);
    }
    copy = (epctx_value *)epctx__ep_array(ep, count, sizeof *copy, error);
    for (i = 0; copy != NULL && i < count; i++) {
        size_t rank = found[i].rank > 0 ? (size_t)found[i].rank : 0;
        int64_t *dims = (int64_t *)epctx__ep_array(ep, rank, sizeof *dims, error);
        if (dims == NULL) {
            return EPCTX_ERR_NOMEM;
        }
        copy[i] = found[i];
        copy[i].name = piece->graph->outputs[i].name;
        if (rank > 0) {
            memcpy(dims, found[i].dims, rank * sizeof *dims);
        }
        copy[i].dims = dims;
    }
    piece->types = copy;
    return copy != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
}

static epctx_status epctx__ep_max_size(epctx_ep *ep, const epctx__piece *piece, epctx_error *error)
{
    const epctx_backend *b = ep->backend;
    int64_t bytes = 0;
    epctx_status status = EPCTX_OK;
    if (b->max_size_fn != NULL) {
        status = b->max_size_fn(b->self, ep->build, piece->name, &bytes, error);
    }
    if (status == EPCTX_OK && bytes < 0) {
        status = epctx_fail(error, EPCTX_ERR_BACKEND, "max_size_fn gave %d bytes", bytes);
    }
    if (status == EPCTX_OK && bytes > ep->max_size) {
        ep->max_size = bytes;
    }
    return status;
}

EPCTX_API epctx_status epctx_ep_compile(epctx_ep *ep, const epctx_graph *piece, epctx_error *error)
{
    const epctx_backend *b = ep->backend;
    epctx__piece *p = &ep->pieces[ep->count];
    bool known = false;
    epctx_status status;
    epctx_error_clear(error);
    if (ep->build == NULL || ep->count >= ep->room) {
        return epctx_fail(error, EPCTX_ERR_ARG, "there is room for %u pieces", (uint64_t)ep->room);
    }
    p->graph = piece;
    p->hash = epctx_graph_hash(piece);
    status = epctx_cancelled(ep->opts.hooks, error);
    if (status == EPCTX_OK) {
        status = epctx__ep_name(ep, &p->name, error);
    }
    if (status == EPCTX_OK && ep->shared != NULL) {
        status = epctx__known_find(ep->shared, p->name, p->hash, &known, error);
    }
    if (status == EPCTX_OK && !known) {
        status = b->compile_fn(b->self, ep->build, piece, p->name, p->hash, error);
        if (status == EPCTX_OK && ep->shared != NULL) {
            status = epctx__known_add(ep->shared, p->name, p->hash, error);
        }
    }
    if (status == EPCTX_OK) {
        status = epctx__ep_types(ep, p, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__ep_max_size(ep, p, error);
    }
    if (status == EPCTX_OK) {
        ep->count++;
        epctx__progress(ep->opts.hooks, "compile", ep->count, ep->room);
    }
    return status;
}

static epctx_str epctx__ep_notes(epctx_ep *ep, uint64_t hash, epctx_error *error)
{
    const size_t key = sizeof EPCTX__HASH_KEY - 1;
    char *text = (char *)epctx__ep_array(ep, key + 16, 1, error);
    epctx_str notes;
    size_t i;
    notes.data = text;
    notes.size = text != NULL ? key + 16 : 0;
    for (i = 0; text != NULL && i < key; i++) {
        text[i] = EPCTX__HASH_KEY[i];
    }
    for (i = 0; text != NULL && i < 16; i++) {
        text[key + i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
    }
    return notes;
}

static const epctx_str *epctx__ep_names(epctx_ep *ep, const epctx_value *values, size_t count,
                                        epctx_error *error)
{
    epctx_str *names = (epctx_str *)epctx__ep_array(ep, count, sizeof *names, error);
    size_t i;
    for (i = 0; names != NULL && i < count; i++) {
        names[i] = values[i].name;
    }
    return names;
}

/* The EPContext node of a piece: exactly the piece's boundary. */
static epctx_status epctx__ep_node(epctx_ep *ep, size_t index, epctx_error *error)
{
    const epctx__piece *piece = &ep->pieces[index];
    epctx_node *node = &ep->nodes[index];
    epctx_attr *attrs =
        (epctx_attr *)epctx__ep_array(ep, EPCTX_EP_ATTR_COUNT, sizeof *attrs, error);
    epctx_epnode ep_node = epctx_epnode_default();
    ep_node.present = 1u << EPCTX_EP_MAIN_CONTEXT | 1u << EPCTX_EP_EMBED_MODE |
                      1u << EPCTX_EP_EP_SDK_VERSION | 1u << EPCTX_EP_HARDWARE_ARCHITECTURE |
                      1u << EPCTX_EP_PARTITION_NAME | 1u << EPCTX_EP_SOURCE | 1u << EPCTX_EP_NOTES;
    ep_node.main_context = index == 0;
    ep_node.embed_mode = ep->opts.embed;
    ep_node.ep_sdk_version = epctx_str_of(ep->backend->sdk_version);
    ep_node.hardware_architecture = epctx_str_of(ep->backend->hardware_architecture);
    ep_node.partition_name = piece->name;
    ep_node.source = epctx_str_of(ep->backend->source);
    ep_node.notes = epctx__ep_notes(ep, piece->hash, error);
    if (index == 0) {
        ep_node.present |= 1u << EPCTX_EP_EP_CACHE_CONTEXT;
        ep_node.ep_cache_context = epctx_str_of(ep->opts.binary);
        if (ep->opts.embed) {
            ep_node.ep_cache_context.data = (const char *)ep->binary.data;
            ep_node.ep_cache_context.size = ep->binary.size;
        }
    }
    if (ep->backend->max_size_fn != NULL) {
        ep_node.present |= 1u << EPCTX_EP_MAX_SIZE;
        ep_node.max_size = ep->max_size;
    }
    node->name = piece->name;
    node->op_type = epctx_str_of(EPCTX_OP_TYPE);
    node->domain = epctx_str_of(EPCTX_DOMAIN);
    node->version = 1;
    node->inputs = epctx__ep_names(ep, piece->graph->inputs, piece->graph->input_count, error);
    node->input_count = piece->graph->input_count;
    node->outputs = epctx__ep_names(ep, piece->graph->outputs, piece->graph->output_count, error);
    node->output_count = piece->graph->output_count;
    if (attrs == NULL || ep_node.notes.size == 0 || node->inputs == NULL ||
        node->outputs == NULL) {
        return EPCTX_ERR_NOMEM;
    }
    node->attrs = attrs;
    node->attr_count = epctx_epnode_attrs(&ep_node, attrs);
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_ep_finish(epctx_ep *ep, epctx_error *error)
{
    const epctx_backend *b = ep->backend;
    epctx_status status;
    size_t i;
    epctx_error_clear(error);
    status = epctx_cancelled(ep->opts.hooks, error);
    if (status == EPCTX_OK && ep->shared == NULL) {
        void *build = ep->build;
        ep->build = NULL;
        status = b->finish_fn(b->self, build, &ep->binary, error);
    }
    if (status == EPCTX_OK) {
        ep->nodes = (epctx_node *)epctx__ep_array(ep, ep->count, sizeof *ep->nodes, error);
        status = ep->nodes != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
    }
    for (i = 0; status == EPCTX_OK && i < ep->count; i++) {
        status = epctx__ep_node(ep, i, error);
    }
    if (status != EPCTX_OK) {
        ep->nodes = NULL;
    }
    return status;
}

EPCTX_API const epctx_node *epctx_ep_context_nodes(const epctx_ep *ep, size_t *count)
{
    *count = ep->nodes != NULL ? ep->count : 0;
    return ep->nodes;
}

EPCTX_API epctx_span epctx_ep_binary(const epctx_ep *ep)
{
    epctx_span span;
    span.data = ep->binary.data;
    span.size = ep->binary.size;
    return span;
}

EPCTX_API void epctx_ep_end(epctx_ep *ep)
{
    if (ep->backend == NULL) {
        return;
    }
    if (ep->build != NULL && ep->shared == NULL) {
        ep->backend->discard_fn(ep->backend->self, ep->build);
    }
    epctx_buffer_free(&ep->binary);
    memset(ep, 0, sizeof *ep);
}

#ifndef EPCTX_NO_WIRE

/* ================================================================================================
 * >>gen
 * ============================================================================================== */

/* An initializer that goes into the file of initializers. */
typedef struct epctx__aside {
    struct epctx__aside *next;
    uint64_t offset;
    epctx_span bytes;
} epctx__aside;

/* A file of another EP's nodes: none of our outputs may replace it. */
typedef struct epctx__foreign {
    struct epctx__foreign *next;
    const char *path; /* canonical */
} epctx__foreign;

typedef struct epctx__generation {
    epctx_model *model;
    const epctx_backend *backend;
    const epctx_gen_opts *opts;
    epctx_gen_report *report;
    epctx_error *error;
    epctx_arena *arena;
    epctx_graph graph;
    uint8_t *take;
    epctx_partition *parts;
    size_t part_count;
    epctx_ep ep;
    const epctx_node *nodes; /* the EPContext nodes */
    void *build;             /* of the group; NULL: a context of its own */
    epctx__known *known;     /* what is in it */
    bool joins;              /* the group has begun: it knows its binary */
    const char *binary;      /* name of the group's binary; NULL: to be made */
    epctx__foreign *foreign;
    epctx__aside *moved;
    epctx__aside *moved_last;
} epctx__generation;

static void *epctx__gen_array(epctx__generation *g, size_t count, size_t size)
{
    void *memory = epctx_arena_array(g->arena, count, size);
    if (memory == NULL) {
        epctx__nomem(g->error, g->arena->missing);
    }
    return memory;
}

/* Where a file goes: its folder must exist, itself may not, unless it may be overwritten. */
static epctx_status epctx__check_output(const epctx__generation *g, const char *path)
{
    return epctx_output_check(
        g->model->io, path,
        g->opts->overwrite ? EPCTX_OVERWRITE_REPLACE : EPCTX_OVERWRITE_FAIL, g->error);
}

/* An output must replace neither the file that the model was read from nor one that it needs. */
static epctx_status epctx__check_source(const epctx__generation *g, const char *path)
{
    const epctx_io *io = g->model->io;
    const epctx__file *file;
    const epctx__foreign *other;
    char a[EPCTX_PATH_MAX];
    char b[EPCTX_PATH_MAX];
    epctx_error ignored;
    bool same = false;
    epctx_error_clear(&ignored);
    if (io->canonical_fn(io->user, path, a, sizeof a, &ignored) != EPCTX_OK) {
        return EPCTX_OK; /* it does not exist yet */
    }
    if (g->model->path[0] != '\0' &&
        io->canonical_fn(io->user, g->model->path, b, sizeof b, &ignored) == EPCTX_OK) {
        same = strcmp(a, b) == 0;
    }
    for (file = g->model->files; file != NULL && !same; file = file->next) {
        same = strcmp(a, file->path) == 0;
    }
    for (other = g->foreign; other != NULL && !same; other = other->next) {
        same = strcmp(a, other->path) == 0;
    }
    return same ? epctx_fail(g->error, EPCTX_ERR_PATH,
                             "'%s' belongs to the source model: it must not be overwritten by its "
                             "own output",
                             path)
                : EPCTX_OK;
}

/* A file beside the EPContext model, or in a folder below. */
static epctx_status epctx__beside(epctx__generation *g, epctx_str name, char *out)
{
    epctx_str parts[2];
    epctx_status status = epctx_path_check(name, g->error);
    parts[0] = epctx_path_folder(epctx_str_of(g->report->context_path));
    parts[1] = name;
    return status != EPCTX_OK ? status
                              : epctx__path_join(out, EPCTX_PATH_MAX, parts, 2, g->error);
}

static epctx_status epctx__gen_context_path(epctx__generation *g)
{
    epctx_gen_report *r = g->report;
    epctx_str wanted = epctx_str_of(g->opts->context_file_path);
    epctx_str file = epctx_path_file(wanted);
    epctx_status status;
    if (wanted.size == 0) {
        return epctx_path_context_model(epctx_str_of(g->model->path), r->context_path,
                                        sizeof r->context_path, g->error);
    }
    status = epctx__path_join(r->context_path, sizeof r->context_path, &wanted, 1, g->error);
    /* ORT's rule for ep.context_file_path: a name without an extension means a folder. */
    if (status == EPCTX_OK && epctx__path_stem(file).size == file.size) {
        status = epctx_fail(g->error, EPCTX_ERR_PATH,
                            "context_file_path '%S' should not point to a folder: a file name "
                            "with an extension is expected",
                            &wanted);
    }
    return status;
}

static epctx_status epctx__gen_binary_path(epctx__generation *g)
{
    char *name = (char *)epctx__gen_array(g, EPCTX_PATH_MAX, 1);
    epctx_status status = name != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
    if (status == EPCTX_OK && g->binary == NULL) {
        if (g->opts->binary != NULL && g->opts->binary[0] != '\0') {
            epctx_str part = epctx_str_of(g->opts->binary);
            status = epctx__path_join(name, EPCTX_PATH_MAX, &part, 1, g->error);
        } else {
            status = epctx_path_binary(epctx_str_of(g->report->context_path),
                                       epctx_str_of(g->backend->short_name), name, EPCTX_PATH_MAX,
                                       g->error);
        }
        g->binary = name;
    }
    return status == EPCTX_OK
               ? epctx__beside(g, epctx_str_of(g->binary), g->report->binary_path)
               : status;
}

/* A file is begun and given up: what would fail after a long compile fails now. */
static epctx_status epctx__check_target(const epctx__generation *g, const char *path)
{
    const epctx_io *io = g->model->io;
    epctx_io_file probe;
    epctx_status status = epctx__check_output(g, path);
    if (status == EPCTX_OK) {
        status = epctx__check_source(g, path);
    }
    if (status == EPCTX_OK) {
        status = io->create_fn(io->user, path, &probe, g->error);
    }
    if (status == EPCTX_OK) {
        io->abort_fn(io->user, &probe);
    }
    return status;
}

static epctx_status epctx__gen_paths(epctx__generation *g)
{
    epctx_gen_report *r = g->report;
    const char *paths[3];
    size_t i, k;
    epctx_status status = epctx__gen_context_path(g);
    if (status == EPCTX_OK && !g->opts->embed) {
        status = epctx__gen_binary_path(g);
    }
    if (status == EPCTX_OK && g->opts->initializers_file_name != NULL &&
        g->opts->initializers_file_name[0] != '\0') {
        status = epctx__beside(g, epctx_str_of(g->opts->initializers_file_name),
                               r->initializers_path);
    }
    paths[0] = r->context_path;
    paths[1] = r->binary_path;
    paths[2] = r->initializers_path;
    for (i = 0; i < 3; i++) {
        /* The group's binary was checked by the session that named it. */
        if (status == EPCTX_OK && paths[i][0] != '\0' && (i != 1 || !g->joins)) {
            status = epctx__check_target(g, paths[i]);
        }
        for (k = 0; status == EPCTX_OK && k < i; k++) {
            if (paths[i][0] != '\0' && strcmp(paths[i], paths[k]) == 0) {
                status = epctx_fail(g->error, EPCTX_ERR_PATH, "'%s' is the path of two outputs",
                                    paths[i]);
            }
        }
    }
    return status;
}

static bool epctx__is_ep_record(const epctx_node *node)
{
    return epctx_str_is(node->op_type, EPCTX_OP_TYPE) && epctx_str_is(node->domain, EPCTX_DOMAIN);
}

/* Another EP's node stays. Its binary, too, must be beside the new model. */
static epctx_status epctx__gen_foreign(epctx__generation *g, const epctx_epnode *node)
{
    const epctx_io *io = g->model->io;
    char real[EPCTX_PATH_MAX];
    char from[EPCTX_PATH_MAX];
    char to[EPCTX_PATH_MAX];
    epctx_str folder;
    epctx__foreign *file;
    epctx_status status;
    if (node->embed_mode != 0 || node->ep_cache_context.size == 0) {
        return EPCTX_OK;
    }
    folder = epctx_path_folder(epctx_str_of(g->report->context_path));
    status = epctx_path_find(io, folder, node->ep_cache_context, g->model->path_flags, to,
                             sizeof to, g->error);
    if (g->model->path[0] != '\0') {
        epctx_error ignored;
        epctx_status source;
        folder = epctx_path_folder(epctx_str_of(g->model->path));
        source = epctx_path_find(io, folder, node->ep_cache_context, g->model->path_flags, from,
                                 sizeof from, &ignored);
        if (source == EPCTX_OK && (status != EPCTX_OK || strcmp(from, to) != 0)) {
            epctx_error_clear(g->error);
            status = epctx_fail(g->error, EPCTX_ERR_PATH,
                                "needs '%S' beside the model, which another EP made: write the new "
                                "model into the folder of the source",
                                &node->ep_cache_context);
        }
    }
    if (status != EPCTX_OK) {
        return status;
    }
    file = (epctx__foreign *)epctx__gen_array(g, 1, sizeof *file);
    if (file == NULL || io->canonical_fn(io->user, to, real, sizeof real, g->error) != EPCTX_OK) {
        return g->error->status;
    }
    file->path = epctx_arena_copy(g->arena, epctx_str_of(real));
    file->next = g->foreign;
    g->foreign = file;
    return file->path != NULL ? EPCTX_OK : epctx__nomem(g->error, g->arena->missing);
}

/* The source may hold EPContext nodes of other EPs. One of this EP means that it is compiled
 * already: ORT's rule is to refuse. */
static epctx_status epctx__gen_source(epctx__generation *g)
{
    size_t i;
    epctx_status status = epctx_graph_load(g->model, &g->graph, g->error);
    if (status == EPCTX_OK) {
        status = epctx__editable(g->model, g->error);
    }
    if (status == EPCTX_OK) {
        status = epctx__gen_context_path(g);
    }
    for (i = 0; status == EPCTX_OK && i < g->graph.node_count; i++) {
        const epctx_node *node = &g->graph.nodes[i];
        epctx_epnode ep;
        if (!epctx_str_is(node->op_type, EPCTX_OP_TYPE)) {
            continue;
        }
        if (!epctx__is_ep_record(node)) {
            status = epctx_fail(g->error, EPCTX_ERR_GRAPH,
                                "is EPContext in domain '%S', expected com.microsoft",
                                &node->domain);
        } else {
            status = epctx_epnode_from_record(node, &ep, g->error);
        }
        if (status == EPCTX_OK &&
            (ep.source.size == 0 || epctx_str_is(ep.source, g->backend->source))) {
            status = epctx_fail(g->error, EPCTX_ERR_GRAPH,
                                "is an EPContext node of source '%S': the model is compiled "
                                "already",
                                &ep.source);
        }
        if (status == EPCTX_OK) {
            g->report->other_nodes++;
            status = epctx__gen_foreign(g, &ep);
        }
        epctx_blame(g->error, g->model->path, &node->name, NULL);
    }
    return status;
}

/* Why a node stays on the CPU. */
static epctx_status epctx__gen_refusal(const epctx__generation *g, size_t index, epctx_error *error)
{
    const epctx_backend *b = g->backend;
    const epctx_node *node = &g->graph.nodes[index];
    if (b->explain_fn != NULL) {
        b->explain_fn(b->self, &g->graph, index, error);
    }
    epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "%s does not take operator %S (domain '%S', opset %d)",
               b->source, &node->op_type, &node->domain, node->version);
    epctx_blame(error, NULL, &node->name, NULL);
    return EPCTX_ERR_UNSUPPORTED;
}

static epctx_status epctx__gen_nothing(epctx__generation *g)
{
    epctx_error why;
    size_t first = 0;
    epctx_error_clear(&why);
    if (g->opts->no_nodes != EPCTX_NO_NODES_ERROR) {
        return EPCTX_OK;
    }
    while (first < g->graph.node_count &&
           (g->take[first] != 0 || epctx__is_ep_record(&g->graph.nodes[first]))) {
        first++;
    }
    if (first < g->graph.node_count) {
        epctx__gen_refusal(g, first, &why);
    }
    return epctx_fail(g->error, EPCTX_ERR_NO_NODES, "%s compiles none of the %u nodes%s%s",
                      g->backend->source, (uint64_t)g->graph.node_count,
                      why.message[0] != '\0' ? ": " : "", why.message);
}

/* -- partitions that the caller chose -- */

/* The caller's sets as groups of the grouping. */
static bool epctx__sets_read(epctx__generation *g, epctx__grouping *grouping)
{
    const epctx_graph *graph = &g->graph;
    uint32_t *index = (uint32_t *)epctx__gen_array(g, graph->node_count, sizeof *index);
    size_t i, k;
    if (index == NULL) {
        return false;
    }
    for (i = 0; i < graph->node_count; i++) {
        index[graph->nodes[i].id] = (uint32_t)i;
        grouping->group[i] = EPCTX__NOBODY;
    }
    for (i = 0; i < g->opts->set_count; i++) {
        const epctx_node_set *set = &g->opts->sets[i];
        for (k = 0; k < set->node_count; k++) {
            uint32_t at;
            if (set->nodes[k] >= graph->node_count) {
                epctx_fail(g->error, EPCTX_ERR_ARG,
                           "node set %u names node %u, the graph has %u", (uint64_t)i,
                           (uint64_t)set->nodes[k], (uint64_t)graph->node_count);
                return false;
            }
            at = index[set->nodes[k]];
            if (grouping->group[at] != EPCTX__NOBODY || epctx__is_ep_record(&graph->nodes[at])) {
                epctx_fail(g->error, EPCTX_ERR_ARG, "node set %u has node '%S', which %s",
                           (uint64_t)i, &graph->nodes[at].name,
                           grouping->group[at] != EPCTX__NOBODY
                               ? "is in a set already"
                               : "is an EPContext node");
                return false;
            }
            grouping->group[at] = (uint32_t)i;
            g->take[at] = 1;
        }
        if (set->node_count == 0) {
            epctx_fail(g->error, EPCTX_ERR_ARG, "node set %u is empty", (uint64_t)i);
            return false;
        }
    }
    return true;
}

/* Sets and single nodes that wait for each other; says which set does and through what. */
static void epctx__sets_circle(epctx__generation *g, const epctx__edges *edges, uint32_t *waits,
                               const uint8_t *done, size_t units)
{
    size_t sets = g->opts->set_count;
    uint32_t at = EPCTX__NO_UNIT;
    uint32_t set = EPCTX__NO_UNIT;
    size_t i;
    for (i = 0; i < units; i++) {
        waits[i] = EPCTX__NO_UNIT;
    }
    for (i = 0; i < edges->count; i++) {
        if (!done[edges->from[i]] && !done[edges->to[i]]) {
            waits[edges->to[i]] = edges->from[i];
            at = edges->to[i];
        }
    }
    /* Every unit left waits for one that is left: after as many steps we are on a circle. */
    for (i = 0; i < units && at != EPCTX__NO_UNIT; i++) {
        at = waits[at];
    }
    for (i = 0; i < units && at != EPCTX__NO_UNIT && set == EPCTX__NO_UNIT; i++) {
        set = at < sets ? at : EPCTX__NO_UNIT;
        at = waits[at];
    }
    if (set == EPCTX__NO_UNIT || at == EPCTX__NO_UNIT) {
        epctx_fail(g->error, EPCTX_ERR_GRAPH, "the node sets depend on each other in a circle");
    } else if (at < sets) {
        epctx_fail(g->error, EPCTX_ERR_GRAPH,
                   "node set %u depends on itself through node set %u: they cannot both be "
                   "partitions",
                   (uint64_t)set, (uint64_t)at);
    } else {
        epctx_fail(g->error, EPCTX_ERR_GRAPH,
                   "node set %u depends on itself through node '%S', which is not in it",
                   (uint64_t)set, &g->graph.nodes[at - sets].name);
    }
}

/* Is there an order with every set in one piece? */
static bool epctx__sets_convex(epctx__generation *g, const epctx__grouping *grouping)
{
    const epctx_graph *graph = &g->graph;
    size_t sets = g->opts->set_count;
    size_t units = sets + graph->node_count;
    size_t exist = sets;
    size_t most = 0;
    size_t count = 0;
    size_t i, k;
    epctx__edges edges;
    uint32_t *key = (uint32_t *)epctx__gen_array(g, units, sizeof *key);
    uint32_t *sequence = (uint32_t *)epctx__gen_array(g, units, sizeof *sequence);
    uint8_t *done = (uint8_t *)epctx__gen_array(g, units, 1);
    for (i = 0; i < graph->node_count; i++) {
        most += epctx__read_count(&graph->nodes[i]);
    }
    edges.count = 0;
    edges.from = (uint32_t *)epctx__gen_array(g, most, sizeof *edges.from);
    edges.to = (uint32_t *)epctx__gen_array(g, most, sizeof *edges.to);
    if (key == NULL || sequence == NULL || done == NULL || edges.from == NULL ||
        edges.to == NULL) {
        return false;
    }
    for (i = 0; i < sets; i++) {
        key[i] = (uint32_t)i;
    }
    for (i = 0; i < graph->node_count; i++) {
        bool single = grouping->group[i] == EPCTX__NOBODY;
        uint32_t to = single ? (uint32_t)(sets + i) : grouping->group[i];
        key[sets + i] = single ? (uint32_t)(sets + i) : EPCTX__NO_UNIT;
        exist += single;
        for (k = 0; k < epctx__read_count(&graph->nodes[i]); k++) {
            uint32_t made = epctx_map_get(&grouping->producers,
                                          epctx__reads(&graph->nodes[i], k));
            uint32_t from;
            if (made == EPCTX_MAP_NONE) {
                continue;
            }
            from = grouping->group[made] == EPCTX__NOBODY ? (uint32_t)(sets + made)
                                                          : grouping->group[made];
            if (from != to) {
                edges.from[edges.count] = from;
                edges.to[edges.count++] = to;
            }
        }
    }
    if (!epctx__sort_units(g->arena, g->error, key, units, &edges, sequence, &count)) {
        return false;
    }
    for (i = 0; i < count; i++) {
        done[sequence[i]] = 1;
    }
    if (count != exist) {
        epctx__sets_circle(g, &edges, key, done, units);
    }
    return count == exist;
}

static epctx_status epctx__gen_sets(epctx__generation *g)
{
    epctx__grouping grouping;
    if (!epctx__grouping_begin(&grouping, &g->graph, g->take, g->arena, g->error) ||
        !epctx__sets_read(g, &grouping) || !epctx__sets_convex(g, &grouping)) {
        return g->error->status;
    }
    grouping.count = (uint32_t)g->opts->set_count;
    return epctx__group_collect(&grouping, &g->parts, &g->part_count);
}

static epctx_status epctx__gen_capability(epctx__generation *g)
{
    size_t i;
    epctx_status status =
        g->backend->capability_fn(g->backend->self, &g->graph, g->take, g->error);
    for (i = 0; i < g->graph.node_count; i++) {
        if (epctx_str_is(g->graph.nodes[i].op_type, EPCTX_OP_TYPE)) {
            g->take[i] = 0;
        }
    }
    return status == EPCTX_OK ? epctx_partition_graph(&g->graph, g->take, g->arena, &g->parts,
                                                      &g->part_count, g->error)
                              : status;
}

static epctx_status epctx__gen_partition(epctx__generation *g)
{
    epctx_status status;
    size_t i;
    g->take = (uint8_t *)epctx__gen_array(g, g->graph.node_count, 1);
    if (g->take == NULL) {
        return EPCTX_ERR_NOMEM;
    }
    status = g->opts->sets != NULL ? epctx__gen_sets(g) : epctx__gen_capability(g);
    for (i = 0; status == EPCTX_OK && g->opts->require_all && i < g->graph.node_count; i++) {
        if (g->take[i] == 0 && !epctx__is_ep_record(&g->graph.nodes[i])) {
            status = epctx__gen_refusal(g, i, g->error);
        }
    }
    if (status == EPCTX_OK && g->part_count == 0) {
        status = epctx__gen_nothing(g);
    }
    if (status != EPCTX_OK) {
        epctx_blame(g->error, g->model->path, NULL, NULL);
    }
    return status;
}

/* The binary as the application will meet it. */
static epctx_status epctx__verify_binary(const epctx_backend *b, epctx_span binary,
                                         const epctx_ep *ep, epctx_error *error)
{
    void *context = NULL;
    size_t i;
    epctx_status status = b->load_fn(b->self, binary, &context, error);
    for (i = 0; status == EPCTX_OK && i < ep->count; i++) {
        void *graph;
        status = b->find_fn(b->self, context, ep->pieces[i].name, ep->pieces[i].hash, &graph,
                            error);
    }
    if (context != NULL) {
        b->unload_fn(b->self, context);
    }
    return status;
}

static epctx_status epctx__gen_compile(epctx__generation *g)
{
    epctx_ep_opts how;
    epctx_status status;
    size_t i, count;
    memset(&how, 0, sizeof how);
    how.name_prefix = g->opts->name_prefix;
    how.model_hash = epctx_graph_hash(&g->graph);
    how.embed = g->opts->embed;
    how.binary = g->binary;
    how.prepare_only = g->opts->prepare_only;
    how.hooks = g->opts->hooks;
    how.allocator = g->opts->allocator;
    if (g->build != NULL) {
        status = epctx__ep_open(&g->ep, g->backend, &how, g->part_count, g->arena, g->error);
        g->ep.build = g->build;
        g->ep.shared = g->known;
        g->ep.max_size = g->known->max_size;
    } else {
        status = epctx_ep_begin(&g->ep, g->backend, &how, g->part_count, g->arena, g->error);
    }
    for (i = 0; status == EPCTX_OK && i < g->part_count; i++) {
        status = epctx_ep_compile(&g->ep, &g->parts[i].graph, g->error);
    }
    if (status == EPCTX_OK) {
        status = epctx_ep_finish(&g->ep, g->error);
    }
    if (status == EPCTX_OK && g->opts->verify && g->build == NULL) {
        status = epctx__verify_binary(g->backend, epctx_ep_binary(&g->ep), &g->ep, g->error);
    }
    if (status != EPCTX_OK) {
        epctx_blame(g->error, g->model->path, NULL, NULL);
    }
    g->nodes = epctx_ep_context_nodes(&g->ep, &count);
    g->report->nodes = g->nodes;
    g->report->max_size = g->ep.max_size;
    return status;
}

/* -- the rewrite of the model -- */

typedef struct epctx__rewrite {
    epctx__generation *g;
    epctx_slot **slots;  /* position in the source -> the node's slot */
    uint32_t *unit;      /* node -> partition, part_count + node if it stays, or EPCTX__GONE */
    epctx_map used;      /* names that the new graph reads */
    epctx_map made;      /* names that the new graph produces or defines */
    epctx_map inputs;    /* run-time inputs: all of them stay */
} epctx__rewrite;

#define EPCTX__GONE UINT32_MAX

static bool epctx__mark(epctx__rewrite *w, epctx_map *map, epctx_str name)
{
    /* The empty name stands for an optional value that is not there. */
    if (name.size > 0 && epctx_map_put(map, name, 1) != EPCTX_OK) {
        epctx__nomem(w->g->error, w->g->arena->missing);
        return false;
    }
    return true;
}

static bool epctx__mark_reads(epctx__rewrite *w, const epctx_node *node)
{
    size_t k;
    for (k = 0; k < epctx__read_count(node); k++) {
        if (!epctx__mark(w, &w->used, epctx__reads(node, k))) {
            return false;
        }
    }
    return true;
}

static bool epctx__mark_writes(epctx__rewrite *w, const epctx_node *node)
{
    size_t k;
    for (k = 0; k < node->output_count; k++) {
        if (!epctx__mark(w, &w->made, node->outputs[k])) {
            return false;
        }
    }
    return true;
}

/* Which nodes stay: all that are in no partition, but constant nodes only if somebody still reads
 * them. Backwards, so that chains of constants go together. */
static bool epctx__rewrite_units(epctx__rewrite *w)
{
    epctx__generation *g = w->g;
    const epctx_graph *graph = &g->graph;
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        w->unit[i] = (uint32_t)(g->part_count + i);
    }
    for (i = 0; i < g->part_count; i++) {
        for (k = 0; k < g->parts[i].node_count; k++) {
            w->unit[g->parts[i].nodes[k]] = (uint32_t)i;
        }
        if (!epctx__mark_reads(w, &g->nodes[i]) || !epctx__mark_writes(w, &g->nodes[i])) {
            return false;
        }
    }
    for (i = 0; i < graph->output_count; i++) {
        if (!epctx__mark(w, &w->used, graph->outputs[i].name)) {
            return false;
        }
    }
    for (i = graph->node_count; i-- > 0;) {
        const epctx_node *node = &graph->nodes[i];
        bool read = false;
        if (w->unit[i] < g->part_count) {
            continue;
        }
        for (k = 0; k < node->output_count; k++) {
            read = read || epctx_map_get(&w->used, node->outputs[k]) != EPCTX_MAP_NONE;
        }
        /* take != 0 here: a constant that was copied into the partitions that use it */
        if (!read && g->take[i] != 0) {
            w->unit[i] = EPCTX__GONE;
        } else if (!epctx__mark_reads(w, node) || !epctx__mark_writes(w, node)) {
            return false;
        }
    }
    return true;
}

/* Which unit waits for which: readers for producers. */
static bool epctx__rewrite_edges(epctx__rewrite *w, epctx__edges *edges)
{
    epctx__generation *g = w->g;
    const epctx_graph *graph = &g->graph;
    size_t most = 0;
    size_t i, k;
    epctx_map producers;
    epctx_map_init(&producers, g->arena);
    for (i = 0; i < graph->node_count; i++) {
        most += epctx__read_count(&graph->nodes[i]);
        for (k = 0; w->unit[i] != EPCTX__GONE && k < graph->nodes[i].output_count; k++) {
            if (epctx_map_put(&producers, graph->nodes[i].outputs[k], w->unit[i]) != EPCTX_OK) {
                epctx__nomem(g->error, g->arena->missing);
                return false;
            }
        }
    }
    edges->from = (uint32_t *)epctx__gen_array(g, most, sizeof *edges->from);
    edges->to = (uint32_t *)epctx__gen_array(g, most, sizeof *edges->to);
    edges->count = 0;
    for (i = 0; edges->from != NULL && edges->to != NULL && i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; w->unit[i] != EPCTX__GONE && k < epctx__read_count(node); k++) {
            epctx_str name = epctx__reads(node, k);
            uint32_t from = name.size > 0 ? epctx_map_get(&producers, name) : EPCTX_MAP_NONE;
            if (from != EPCTX_MAP_NONE && from != w->unit[i]) {
                edges->from[edges->count] = from;
                edges->to[edges->count++] = w->unit[i];
            }
        }
    }
    return edges->from != NULL && edges->to != NULL;
}

/* The units of the new graph in order. */
static bool epctx__rewrite_order(epctx__rewrite *w, uint32_t **sequence, size_t *count)
{
    epctx__generation *g = w->g;
    size_t nodes = g->graph.node_count;
    size_t units = g->part_count + nodes;
    epctx__edges edges;
    uint32_t *key;
    size_t i;
    *sequence = (uint32_t *)epctx__gen_array(g, units, sizeof **sequence);
    key = (uint32_t *)epctx__gen_array(g, units, sizeof *key);
    if (*sequence == NULL || key == NULL || !epctx__rewrite_edges(w, &edges)) {
        return false;
    }
    for (i = 0; i < units; i++) {
        key[i] = EPCTX__NO_UNIT;
    }
    /* A partition stands where its last node stood: what feeds it was in front of that. */
    for (i = 0; i < nodes; i++) {
        uint32_t unit = w->unit[i];
        if (unit != EPCTX__GONE &&
            (key[unit] == EPCTX__NO_UNIT || key[unit] < g->graph.nodes[i].id)) {
            key[unit] = g->graph.nodes[i].id;
        }
    }
    return epctx__sort_units(g->arena, g->error, key, units, &edges, *sequence, count);
}

static bool epctx__drop(epctx__rewrite *w, epctx_slot *slot)
{
    return epctx_remove(w->g->model, epctx__slot_view(slot), w->g->error) == EPCTX_OK;
}

/* Brings the node fields of the graph into the new sequence: nodes that keep their relative place
 * are not touched, others move, partitions appear. */
static bool epctx__rewrite_nodes(epctx__rewrite *w, const uint32_t *sequence, size_t count)
{
    epctx__generation *g = w->g;
    epctx_model *model = g->model;
    epctx_slot *previous = NULL;
    epctx_slot *slot;
    size_t kept = 0; /* source position behind the last node that was left in place */
    size_t i;
    for (i = 0; i < g->graph.node_count; i++) {
        if ((w->unit[i] < g->part_count || w->unit[i] == EPCTX__GONE) &&
            !epctx__drop(w, w->slots[g->graph.nodes[i].id])) {
            return false;
        }
    }
    /* New nodes before the first old one go in front of the first node field. */
    for (slot = model->graph->message->first; slot != NULL && slot != w->slots[0];
         slot = slot->next) {
        previous = slot;
    }
    for (i = 0; i < count; i++) {
        epctx__builder b = epctx__builder_of(model);
        uint32_t unit = sequence[i];
        uint32_t at = unit < g->part_count ? 0 : g->graph.nodes[unit - g->part_count].id;
        if (unit < g->part_count) {
            slot = epctx__build_node(&b, &g->nodes[unit]);
        } else if (at >= kept) {
            kept = (size_t)at + 1;
            previous = w->slots[at];
            continue;
        } else { /* moved: a second slot over the same bytes */
            slot = epctx__clone(&b, NULL, w->slots[at]);
            if (slot != NULL && !epctx__drop(w, w->slots[at])) {
                return false;
            }
        }
        if (epctx__place(model, &b, model->graph, previous, slot, g->error) != EPCTX_OK) {
            return false;
        }
        previous = slot;
    }
    return true;
}

/* -- external data: the new model must not depend on the source's files (EP-context design) -- */

/* Takes a field anywhere in the model out, as epctx_remove does for the main graph's. */
static bool epctx__drop_slot(epctx__rewrite *w, epctx_slot *slot)
{
    if (epctx__record(w->g->model, slot, NULL, false, w->g->error) != EPCTX_OK) {
        return false;
    }
    slot->removed = true;
    return true;
}

static void epctx__add_pair(epctx__builder *b, epctx_slot *tensor, const char *key, epctx_str value)
{
    epctx_slot *pair = epctx__add_message(b, tensor, 13);
    if (pair != NULL) {
        epctx__add_str(b, pair, 1, epctx_str_of(key));
        epctx__add_str(b, pair, 2, value);
    }
}

static epctx_str epctx__gen_decimal(epctx__generation *g, uint64_t value)
{
    epctx__text text = epctx__text_of((char *)epctx__gen_array(g, 24, 1), 24);
    epctx_str out;
    if (text.data != NULL) {
        epctx__text_number(&text, value, 10);
    }
    out.data = text.data;
    out.size = text.data != NULL ? text.size : 0;
    return out;
}

/* Space for a tensor in the file of initializers, aligned like a cache line. */
static epctx__aside *epctx__set_aside(epctx__generation *g, const epctx_tensor *tensor)
{
    epctx__aside *moved = (epctx__aside *)epctx__gen_array(g, 1, sizeof *moved);
    if (moved == NULL) {
        return NULL;
    }
    moved->offset = (g->report->initializers_size + 63) & ~(uint64_t)63;
    moved->bytes.data = tensor->data;
    moved->bytes.size = tensor->size;
    g->report->initializers_size = moved->offset + tensor->size;
    if (g->moved_last != NULL) {
        g->moved_last->next = moved;
    } else {
        g->moved = moved;
    }
    g->moved_last = moved;
    return moved;
}

/* Replaces a tensor by one with the same head and its bytes inside or in the new file. */
static bool epctx__store_tensor(epctx__rewrite *w, epctx_slot *slot, const epctx_tensor *tensor,
                                bool outside)
{
    epctx__generation *g = w->g;
    epctx__builder b = epctx__builder_of(g->model);
    epctx_slot *fresh = epctx__add_message(&b, NULL, slot->number);
    epctx_view body = epctx__slot_view(slot);
    const uint8_t *p = body.data;
    const uint8_t *end = body.data + body.size;
    while (!b.failed && p != NULL && p < end) {
        epctx__token t;
        const uint8_t *after = epctx__next(p, end, 100, &t);
        bool storage = (t.number >= 4 && t.number <= 7) || (t.number >= 9 && t.number <= 11) ||
                       t.number == 13 || t.number == 14;
        if (after != NULL && !storage &&
            epctx__append_slot(b.arena, fresh, &t, after) == NULL) {
            b.failed = true;
        }
        p = after;
    }
    if (fresh != NULL && outside) {
        const epctx__aside *moved = epctx__set_aside(g, tensor);
        if (moved == NULL) {
            return false;
        }
        epctx__add_pair(&b, fresh, "location", epctx_str_of(g->opts->initializers_file_name));
        epctx__add_pair(&b, fresh, "offset", epctx__gen_decimal(g, moved->offset));
        epctx__add_pair(&b, fresh, "length", epctx__gen_decimal(g, tensor->size));
        epctx__add_varint(&b, fresh, 14, 1);
    } else if (fresh != NULL) {
        epctx__add_bytes(&b, fresh, 9, tensor->data, tensor->size);
    }
    return epctx__place(g->model, &b, slot->parent, slot, fresh, g->error) == EPCTX_OK &&
           epctx__drop_slot(w, slot);
}

/* A tensor of the new model: initializers may go out, external data comes in or moves. */
static bool epctx__settle_tensor(epctx__rewrite *w, epctx_slot *slot, bool initializer)
{
    epctx__generation *g = w->g;
    epctx_tensor_view view = epctx_tensor_of(epctx__slot_view(slot));
    bool outside = initializer && g->report->initializers_path[0] != '\0' &&
                   view.elem_type != EPCTX_ONNX_STRING;
    epctx__loader loader;
    epctx_tensor tensor;
    if (!outside && !view.external) {
        return true;
    }
    memset(&loader, 0, sizeof loader);
    loader.model = g->model;
    loader.arena = g->arena;
    loader.error = g->error;
    if (!epctx__load_tensor(&loader, epctx__slot_view(slot), &tensor)) {
        return false;
    }
    outside = outside && tensor.data != NULL && tensor.size >= g->opts->initializers_min_size &&
              tensor.size > 0;
    return (!outside && !view.external) || epctx__store_tensor(w, slot, &tensor, outside);
}

/* Messages that can hold tensors. */
static bool epctx__holds_tensors(epctx__type type)
{
    return type == EPCTX__T_GRAPH || type == EPCTX__T_NODE || type == EPCTX__T_ATTR ||
           type == EPCTX__T_TENSOR || type == EPCTX__T_SPARSE || type == EPCTX__T_FUNCTION;
}

/* Is there a tensor to settle somewhere in a message? `all`: also initializers that are inside. */
static bool epctx__needs_settling(epctx_view message, epctx__type type, bool all, uint32_t depth)
{
    epctx_cursor it = epctx_fields(message, 0);
    epctx_field field;
    while (depth > 0 && epctx_next_field(&it, &field)) {
        uint32_t kind = field.wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, field.number) : 0;
        epctx__type inner = epctx__is_message(kind) ? epctx__message_type(kind) : EPCTX__T_NONE;
        if (inner == EPCTX__T_TENSOR) {
            if ((all && type == EPCTX__T_GRAPH) || epctx_tensor_of(field.body).external) {
                return true;
            }
        } else if (epctx__holds_tensors(inner) &&
                   epctx__needs_settling(field.body, inner, all, depth - 1)) {
            return true;
        }
    }
    return false;
}

/* Settles every tensor below a field: initializers of bodies, constants, sparse tensors. Opens only
 * what it has to change. */
static bool epctx__settle(epctx__rewrite *w, epctx_slot *slot, epctx__type type, uint32_t depth)
{
    bool all = w->g->report->initializers_path[0] != '\0';
    epctx_slot *child;
    epctx_slot *next;
    if (depth == 0 || !epctx__needs_settling(epctx__slot_view(slot), type, all, depth)) {
        return true;
    }
    if (slot->message == NULL &&
        !epctx__open_slot(&w->g->model->arena, slot, type, NULL, 100)) {
        epctx__nomem(w->g->error, w->g->model->arena.missing);
        return false;
    }
    for (child = slot->message->first; child != NULL; child = next) {
        uint32_t kind =
            child->wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, child->number) : 0;
        epctx__type inner = epctx__is_message(kind) ? epctx__message_type(kind) : EPCTX__T_NONE;
        next = child->next;
        if (child->removed || !epctx__holds_tensors(inner)) {
            continue;
        }
        if (inner == EPCTX__T_TENSOR
                ? !epctx__settle_tensor(w, child, type == EPCTX__T_GRAPH)
                : !epctx__settle(w, child, inner, depth - 1)) {
            return false;
        }
    }
    return true;
}

static bool epctx__settle_model(epctx__rewrite *w)
{
    epctx_slot *slot;
    for (slot = w->g->model->root->message->first; slot != NULL; slot = slot->next) {
        epctx__type type = slot->number == 7    ? EPCTX__T_GRAPH
                           : slot->number == 25 ? EPCTX__T_FUNCTION
                                                : EPCTX__T_NONE;
        if (slot->wire == EPCTX_WIRE_LEN && !slot->removed && type != EPCTX__T_NONE &&
            !epctx__settle(w, slot, type, 100)) {
            return false;
        }
    }
    return true;
}

static bool epctx__is_kept(const epctx__rewrite *w, epctx_str name)
{
    return epctx_map_get(&w->used, name) != EPCTX_MAP_NONE ||
           epctx_map_get(&w->inputs, name) != EPCTX_MAP_NONE;
}

/* Quantization annotations of values that are gone go; those that stay need their parameters. */
static bool epctx__rewrite_annotations(epctx__rewrite *w)
{
    epctx_slot *slot;
    for (slot = w->g->model->graph->message->first; slot != NULL; slot = slot->next) {
        epctx_annotation_view annotation;
        epctx_cursor it;
        epctx_pair pair;
        epctx_cursor one;
        if (slot->number != 14 || slot->wire != EPCTX_WIRE_LEN || slot->removed) {
            continue;
        }
        memset(&annotation, 0, sizeof annotation);
        annotation.view = epctx__slot_view(slot);
        one = epctx_fields(annotation.view, 1);
        while (epctx_next_str(&one, &annotation.tensor_name)) {
        }
        if (!epctx__is_kept(w, annotation.tensor_name) &&
            epctx_map_get(&w->made, annotation.tensor_name) == EPCTX_MAP_NONE) {
            if (!epctx__drop(w, slot)) {
                return false;
            }
            continue;
        }
        it = epctx_annotation_pairs(&annotation);
        while (epctx_next_pair(&it, &pair)) {
            if (!epctx__mark(w, &w->used, pair.value)) {
                return false;
            }
        }
    }
    return true;
}

/* Initializers that nobody reads any more go, unless they are what makes an input optional. */
static bool epctx__rewrite_initializers(epctx__rewrite *w)
{
    epctx_slot *slot;
    for (slot = w->g->model->graph->message->first; slot != NULL; slot = slot->next) {
        epctx_view body;
        epctx_str name;
        if (slot->wire != EPCTX_WIRE_LEN || slot->removed ||
            (slot->number != 5 && slot->number != 15)) {
            continue;
        }
        body = epctx__slot_view(slot);
        if (slot->number == 15) { /* sparse: the name is the one of its values */
            epctx_cursor it = epctx_fields(body, 1);
            if (!epctx__next_body(&it, &body)) {
                continue;
            }
        }
        name = epctx_tensor_of(body).name;
        if (!epctx__is_kept(w, name) && !epctx__drop(w, slot)) {
            return false;
        }
    }
    return true;
}

/* Graph inputs that only named an initializer (IR version < 4) go with it. */
static bool epctx__rewrite_inputs(epctx__rewrite *w)
{
    epctx_slot *slot;
    for (slot = w->g->model->graph->message->first; slot != NULL; slot = slot->next) {
        epctx_str name;
        if (slot->number != 11 || slot->wire != EPCTX_WIRE_LEN || slot->removed) {
            continue;
        }
        name = epctx_value_of(epctx__slot_view(slot)).name;
        if (!epctx__is_kept(w, name) && !epctx__drop(w, slot)) {
            return false;
        }
    }
    return true;
}

/* value_info of values that are gone goes; EPContext outputs that lack one get one, because ORT has
 * no shape inference for EPContext. */
static bool epctx__rewrite_values(epctx__rewrite *w)
{
    epctx__generation *g = w->g;
    epctx_model *model = g->model;
    epctx_map typed;
    epctx_slot *slot;
    size_t i, k;
    epctx_map_init(&typed, g->arena);
    for (i = 0; i < g->graph.output_count; i++) {
        if (!epctx__mark(w, &typed, g->graph.outputs[i].name)) {
            return false;
        }
    }
    for (slot = model->graph->message->first; slot != NULL; slot = slot->next) {
        epctx_value_view value;
        if (slot->number != 13 || slot->wire != EPCTX_WIRE_LEN || slot->removed) {
            continue;
        }
        value = epctx_value_of(epctx__slot_view(slot));
        if (epctx_map_get(&w->made, value.name) == EPCTX_MAP_NONE &&
            epctx_map_get(&w->used, value.name) == EPCTX_MAP_NONE) {
            if (!epctx__drop(w, slot)) {
                return false;
            }
        } else if (!epctx__mark(w, &typed, value.name)) {
            return false;
        }
    }
    for (i = 0; i < g->part_count; i++) {
        const epctx_graph *part = &g->parts[i].graph;
        const epctx_value *types = g->ep.pieces[i].types;
        for (k = 0; k < part->output_count; k++) {
            const epctx_value *value = types != NULL ? &types[k] : &part->outputs[k];
            if (value->elem_type != 0 &&
                epctx_map_get(&typed, value->name) == EPCTX_MAP_NONE &&
                epctx_put_value(model, epctx__no_view(), value, epctx__no_view(), NULL,
                                g->error) != EPCTX_OK) {
                return false;
            }
        }
    }
    return true;
}

/* -- metadata -- */

/* Does the new model have a node of the EP that a metadata key names? */
static bool epctx__has_ep(const epctx__generation *g, epctx_str ep)
{
    const epctx_profile *profile = epctx_profile_of(ep);
    size_t profiles;
    bool known = profile != &epctx_profiles(&profiles)[0] + profiles - 1; /* generic is last */
    size_t i;
    if (epctx_str_is(ep, g->backend->source)) {
        return g->part_count > 0;
    }
    for (i = 0; i < g->graph.node_count; i++) {
        const epctx_attr *source;
        if (!epctx__is_ep_record(&g->graph.nodes[i])) {
            continue;
        }
        source = epctx_node_attr(&g->graph.nodes[i], "source");
        if (source != NULL && (epctx_str_eq(source->s, ep) ||
                               (known && epctx_profile_of(source->s) == profile))) {
            return true;
        }
    }
    return false;
}

/* What the source tells of EPs that have no node here any more misleads who reads it. */
static bool epctx__rewrite_metadata(epctx__rewrite *w)
{
    static const char *const prefixes[] = {EPCTX_COMPAT_PREFIX, EPCTX_BUILD_PREFIX};
    epctx_slot *slot;
    size_t i;
    for (slot = w->g->model->root->message->first; slot != NULL; slot = slot->next) {
        epctx_str key, value;
        if (slot->number != 14 || slot->wire != EPCTX_WIRE_LEN || slot->removed) {
            continue;
        }
        epctx__pair(epctx__slot_view(slot), &key, &value);
        for (i = 0; i < 2; i++) {
            size_t size = strlen(prefixes[i]);
            epctx_str ep = key;
            if (key.size < size || memcmp(key.data, prefixes[i], size) != 0) {
                continue;
            }
            ep.data += size;
            ep.size -= size;
            if (!epctx__has_ep(w->g, ep) && !epctx__drop(w, slot)) {
                return false;
            }
        }
    }
    return true;
}

static epctx_status epctx__gen_metadata(epctx__generation *g, const char *prefix, epctx_str value)
{
    epctx_str parts[2];
    size_t size = strlen(prefix) + strlen(g->backend->source) + 1;
    char *key = (char *)epctx__gen_array(g, size, 1);
    epctx_status status = key != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
    parts[0] = epctx_str_of(prefix);
    parts[1] = epctx_str_of(g->backend->source);
    if (status == EPCTX_OK) {
        status = epctx__join(key, size, parts, 2, "a metadata key", g->error);
    }
    return status == EPCTX_OK ? epctx_put_metadata(g->model, epctx_str_of(key), value, g->error)
                              : status;
}

/* The metadata that ORT reads before it loads the model. */
static epctx_status epctx__gen_compatibility(epctx__generation *g)
{
    const epctx_backend *b = g->backend;
    size_t size =
        strlen(b->source) + strlen(b->sdk_version) + strlen(b->hardware_architecture) + 64;
    char *text = (char *)epctx__gen_array(g, size, 1);
    epctx_status status = text != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
    if (status == EPCTX_OK) {
        status = epctx_backend_compatibility(b, text, size, g->error);
    }
    return status == EPCTX_OK ? epctx__gen_metadata(g, EPCTX_COMPAT_PREFIX, epctx_str_of(text))
                              : status;
}

/* Everything asked for that changes what is compiled. Not where it goes (embed mode, file names):
 * that may be changed afterwards by embed, mv or init. */
static uint64_t epctx__options_hash(const epctx_gen_opts *o)
{
    uint64_t h = epctx__hash_number(0, 1); /* version of this list */
    size_t i, k;
    h = epctx__hash_number(h, (uint64_t)o->require_all | (uint64_t)o->prepare_only << 1);
    h = epctx__hash_str(h, epctx_str_of(o->name_prefix));
    h = epctx__hash_str(h, epctx_str_of(o->build_options));
    h = epctx__hash_number(h, o->sets != NULL ? o->set_count + 1 : 0);
    for (i = 0; o->sets != NULL && i < o->set_count; i++) {
        h = epctx__hash_number(h, o->sets[i].node_count);
        for (k = 0; k < o->sets[i].node_count; k++) {
            h = epctx__hash_number(h, o->sets[i].nodes[k]);
        }
    }
    return h;
}

static bool epctx__stamp_text(epctx_buffer *out, const char *text)
{
    return epctx_buffer_append(out, text, strlen(text)) == EPCTX_OK;
}

static bool epctx__stamp_name(epctx_buffer *out, epctx_str name)
{
    size_t i;
    for (i = 0; i < name.size; i++) {
        char c = name.data[i];
        if (c == '%' ? !epctx__stamp_text(out, "%25")
            : c == '\n' ? !epctx__stamp_text(out, "%0A")
                        : epctx_buffer_append(out, &c, 1) != EPCTX_OK) {
            return false;
        }
    }
    return epctx__stamp_text(out, "\n");
}

static bool epctx__stamp_number(epctx_buffer *out, uint64_t value, unsigned base)
{
    char memory[32];
    epctx__text text = epctx__text_of(memory, sizeof memory);
    size_t i;
    epctx__text_number(&text, value, base);
    for (i = text.size; base == 16 && i < 16; i++) {
        if (!epctx__stamp_text(out, "0")) {
            return false;
        }
    }
    return epctx_buffer_append(out, text.data, text.size) == EPCTX_OK;
}

/* "<word> <bytes> <hash> <name>" */
static bool epctx__stamp_file(epctx_buffer *out, const char *word, const uint8_t *data, size_t size,
                              epctx_str name)
{
    return epctx__stamp_text(out, word) && epctx__stamp_number(out, size, 10) &&
           epctx__stamp_text(out, " ") && epctx__stamp_number(out, epctx_hash(data, size, 0), 16) &&
           epctx__stamp_text(out, " ") && epctx__stamp_name(out, name);
}

static epctx_status epctx__gen_stamp(epctx__generation *g)
{
    const epctx_model *model = g->model;
    const epctx__file *file;
    epctx_allocator in_arena;
    epctx_buffer text;
    epctx_str value;
    bool ok;
    in_arena.user = g->arena;
    in_arena.alloc_fn = epctx__arena_alloc_fn;
    in_arena.free_fn = epctx__arena_free_fn;
    epctx_buffer_init(&text, &in_arena);
    ok = epctx__stamp_file(&text, "source ", model->source.data, model->source.size,
                           epctx_path_file(epctx_str_of(model->path)));
    for (file = model->files; ok && file != NULL; file = file->next) {
        ok = epctx__stamp_file(&text, "data ", file->mapping.data, file->mapping.size, file->name);
    }
    ok = ok && epctx__stamp_text(&text, "options ") &&
         epctx__stamp_number(&text, epctx__options_hash(g->opts), 16) &&
         epctx__stamp_text(&text, "\nsdk ") &&
         epctx__stamp_name(&text, epctx_str_of(g->backend->sdk_version)) &&
         epctx__stamp_text(&text, "arch ") &&
         epctx__stamp_name(&text, epctx_str_of(g->backend->hardware_architecture));
    if (!ok) {
        return epctx__nomem(g->error, g->arena->missing);
    }
    value.data = (const char *)text.data;
    value.size = text.size - 1; /* without the last line end */
    return epctx__gen_metadata(g, EPCTX_BUILD_PREFIX, value);
}

static epctx_status epctx__gen_rewrite(epctx__generation *g)
{
    epctx__rewrite w;
    uint32_t *sequence = NULL;
    size_t count = 0;
    size_t nodes = 0;
    size_t i;
    epctx_slot *slot;
    epctx_status status;
    memset(&w, 0, sizeof w);
    w.g = g;
    w.unit = (uint32_t *)epctx__gen_array(g, g->graph.node_count, sizeof *w.unit);
    w.slots = (epctx_slot **)epctx__gen_array(g, g->graph.node_count, sizeof *w.slots);
    epctx_map_init(&w.used, g->arena);
    epctx_map_init(&w.made, g->arena);
    epctx_map_init(&w.inputs, g->arena);
    if (w.unit == NULL || w.slots == NULL) {
        return EPCTX_ERR_NOMEM;
    }
    for (i = 0; i < g->graph.input_count; i++) {
        if (!epctx__mark(&w, &w.inputs, g->graph.inputs[i].name)) {
            return EPCTX_ERR_NOMEM;
        }
    }
    for (slot = g->model->graph->message->first; slot != NULL; slot = slot->next) {
        if (slot->number == 1 && slot->wire == EPCTX_WIRE_LEN && !slot->removed) {
            w.slots[nodes++] = slot;
        }
    }
    if (!epctx__rewrite_units(&w) || !epctx__rewrite_order(&w, &sequence, &count) ||
        !epctx__rewrite_nodes(&w, sequence, count) || !epctx__rewrite_annotations(&w) ||
        !epctx__rewrite_initializers(&w) || !epctx__rewrite_inputs(&w) ||
        !epctx__rewrite_values(&w) || !epctx__rewrite_metadata(&w) || !epctx__settle_model(&w)) {
        return g->error->status;
    }
    for (i = 0; i < g->graph.node_count; i++) {
        if (w.unit[i] < g->part_count || w.unit[i] == EPCTX__GONE) {
            g->report->compiled_nodes++;
        } else if (!epctx__is_ep_record(&g->graph.nodes[i])) {
            g->report->cpu_nodes++;
        }
    }
    if (g->moved == NULL) {
        g->report->initializers_path[0] = '\0'; /* nothing to put there */
    }
    if (g->part_count == 0) {
        return EPCTX_OK;
    }
    status = epctx_put_opset(g->model, epctx_str_of(EPCTX_DOMAIN), 1, g->error);
    if (status == EPCTX_OK) {
        status = epctx__gen_compatibility(g);
    }
    return status == EPCTX_OK ? epctx__gen_stamp(g) : status;
}

/* -- several files become visible together --
 *
 * All are durable beforehand, the old models go first, binaries come, and the new models come last.
 * Whatever a crash leaves, no model meets a binary of another generation. */

typedef struct epctx__commit_file {
    const char *path;
    epctx__output *out;
    bool is_model;
} epctx__commit_file;

typedef struct epctx__commit {
    const epctx_io *io;
    epctx_arena *arena;
    epctx_error *error;
    const epctx_hooks *hooks;
    epctx__commit_file *files;
    size_t count;
} epctx__commit;

static epctx_status epctx__commit_begin(epctx__commit *c, const epctx_io *io, epctx_arena *arena,
                                        size_t room, const epctx_hooks *hooks, epctx_error *error)
{
    memset(c, 0, sizeof *c);
    c->io = io;
    c->arena = arena;
    c->error = error;
    c->hooks = hooks;
    c->files = (epctx__commit_file *)epctx_arena_array(arena, room, sizeof *c->files);
    return c->files != NULL ? EPCTX_OK : epctx__nomem(error, arena->missing);
}

/* A temporary file that will be `path`. To be filled with epctx__output_write or _model. */
static epctx_status epctx__commit_add(epctx__commit *c, const char *path, bool is_model,
                                      epctx__output **out)
{
    epctx__commit_file *file = &c->files[c->count];
    epctx_status status;
    file->path = path;
    file->is_model = is_model;
    file->out = (epctx__output *)epctx_arena_alloc(c->arena, sizeof *file->out);
    *out = file->out;
    if (file->out == NULL) {
        return epctx__nomem(c->error, c->arena->missing);
    }
    status = epctx__output_open(file->out, c->io, path, c->error);
    c->count += status == EPCTX_OK;
    return status;
}

static epctx_status epctx__commit_bytes(epctx__commit *c, const char *path, const uint8_t *data,
                                        size_t size)
{
    epctx__output *out;
    epctx_status status = epctx__commit_add(c, path, false, &out);
    if (status == EPCTX_OK && size > 0) {
        status = c->io->write_fn(c->io->user, &out->file, data, size, c->error);
    }
    return status == EPCTX_OK ? c->io->sync_fn(c->io->user, &out->file, c->error) : status;
}

/* An old model goes, itself: a link to it stays, as commit_fn leaves it. */
static epctx_status epctx__commit_clear(epctx__commit *c, const char *path)
{
    const epctx_io *io = c->io;
    char old[EPCTX_PATH_MAX];
    epctx_file_kind kind;
    uint64_t size;
    epctx_status status = io->stat_fn(io->user, path, &kind, &size, c->error);
    if (status != EPCTX_OK || kind == EPCTX_FILE_NONE) {
        return status;
    }
    status = io->canonical_fn(io->user, path, old, sizeof old, c->error);
    if (status == EPCTX_OK) {
        status = io->remove_fn(io->user, old, c->error);
    }
    return status == EPCTX_OK ? io->sync_folder_fn(io->user, old, c->error) : status;
}

static epctx_status epctx__commit_kind(epctx__commit *c, bool models)
{
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; status == EPCTX_OK && i < c->count; i++) {
        if (c->files[i].is_model != models) {
            continue;
        }
        status = epctx__output_commit(c->files[i].out);
        if (status == EPCTX_OK) {
            status = c->io->sync_folder_fn(c->io->user, c->files[i].path, c->error);
        }
        epctx__progress(c->hooks, "write", i + 1, c->count);
    }
    return status;
}

/* Ends the commit, whether or not it succeeds. `status`: how filling the files went. */
static epctx_status epctx__commit_end(epctx__commit *c, epctx_status status)
{
    bool others = false;
    size_t i;
    for (i = 0; i < c->count; i++) {
        others = others || !c->files[i].is_model;
    }
    if (status == EPCTX_OK) {
        status = epctx_cancelled(c->hooks, c->error);
    }
    /* A model alone is replaced in one step. */
    for (i = 0; status == EPCTX_OK && others && i < c->count; i++) {
        if (c->files[i].is_model) {
            status = epctx__commit_clear(c, c->files[i].path);
        }
    }
    if (status == EPCTX_OK) {
        status = epctx__commit_kind(c, false);
    }
    if (status == EPCTX_OK) {
        status = epctx__commit_kind(c, true);
    }
    for (i = 0; i < c->count; i++) {
        epctx__output_abort(c->files[i].out);
    }
    return status;
}

static epctx_status epctx__commit_moved(epctx__commit *c, const char *path,
                                        const epctx__aside *moved)
{
    static const uint8_t zeros[64] = {0};
    epctx__output *out;
    uint64_t at = 0;
    epctx_status status = epctx__commit_add(c, path, false, &out);
    for (; status == EPCTX_OK && moved != NULL; moved = moved->next) {
        status = epctx__output_write(out, zeros, (size_t)(moved->offset - at));
        if (status == EPCTX_OK) {
            status = epctx__output_write(out, moved->bytes.data, moved->bytes.size);
        }
        at = moved->offset + moved->bytes.size;
    }
    if (status == EPCTX_OK) {
        status = epctx__output_flush(out);
    }
    return status == EPCTX_OK ? c->io->sync_fn(c->io->user, &out->file, c->error) : status;
}

static epctx_status epctx__gen_commit(epctx__generation *g)
{
    epctx_span binary = epctx_ep_binary(&g->ep);
    epctx__commit c;
    epctx__output *out;
    epctx_status status =
        epctx__commit_begin(&c, g->model->io, g->arena, 3, g->opts->hooks, g->error);
    if (status == EPCTX_OK && !g->opts->embed && g->part_count > 0) {
        status = epctx__commit_bytes(&c, g->report->binary_path, binary.data, binary.size);
    }
    if (status == EPCTX_OK && g->moved != NULL) {
        status = epctx__commit_moved(&c, g->report->initializers_path, g->moved);
    }
    if (status == EPCTX_OK) {
        status = epctx__commit_add(&c, g->report->context_path, true, &out);
    }
    if (status == EPCTX_OK) {
        status = epctx__output_model(out, g->model);
    }
    return epctx__commit_end(&c, status);
}

/* Everything but the writing. */
static epctx_status epctx__gen_make(epctx__generation *g)
{
    epctx_status status = epctx__gen_source(g);
    if (status == EPCTX_OK) {
        status = epctx__gen_paths(g);
    }
    if (status == EPCTX_OK) {
        status = epctx__gen_partition(g);
    }
    if (status == EPCTX_OK && g->part_count > 0) {
        status = epctx__gen_compile(g);
    }
    if (status == EPCTX_OK && (g->part_count > 0 || g->opts->no_nodes == EPCTX_NO_NODES_COPY)) {
        status = epctx__gen_rewrite(g);
    }
    if (status == EPCTX_OK && epctx_model_size(g->model) > INT32_MAX) {
        status = epctx_fail(g->error, EPCTX_ERR_LIMIT,
                            "the EPContext model would have %u bytes, protobuf readers take less "
                            "than 2 GiB: %s",
                            epctx_model_size(g->model),
                            g->opts->embed ? "do not embed the context binary"
                                           : "give initializers a file of their own");
    }
    g->report->partition_count = g->part_count;
    g->report->binary_size = epctx_ep_binary(&g->ep).size;
    if (g->part_count == 0) {
        g->report->binary_path[0] = '\0';
    }
    return status;
}

static epctx_status epctx__gen_begin(epctx__generation *g, epctx_model *model,
                                     const epctx_backend *backend, const epctx_gen_opts *opts,
                                     epctx_error *error)
{
    memset(g, 0, sizeof *g);
    if (model == NULL || backend == NULL || backend->version != EPCTX_BACKEND_VERSION ||
        model->root == NULL || model->io == NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "an open model with an io and a backend of version %u are expected",
                          (uint64_t)EPCTX_BACKEND_VERSION);
    }
    g->model = model;
    g->backend = backend;
    g->opts = opts;
    g->error = error;
    g->arena = &model->arena;
    g->report = (epctx_gen_report *)epctx__gen_array(g, 1, sizeof *g->report);
    return g->report != NULL ? EPCTX_OK : EPCTX_ERR_NOMEM;
}

EPCTX_API epctx_status epctx_generate(epctx_model *model, const epctx_backend *backend,
                                      const epctx_gen_opts *opts, epctx_gen_report *report,
                                      epctx_error *error)
{
    epctx_gen_opts defaults;
    epctx__generation g;
    epctx_error local;
    size_t mark;
    epctx_status status;
    epctx_error_clear(error);
    epctx_error_clear(&local);
    memset(&defaults, 0, sizeof defaults);
    status = epctx__gen_begin(&g, model, backend, opts != NULL ? opts : &defaults,
                              error != NULL ? error : &local);
    if (status != EPCTX_OK) {
        return status;
    }
    mark = epctx_edit_mark(model);
    status = epctx__gen_make(&g);
    if (status == EPCTX_OK && (g.part_count > 0 || g.opts->no_nodes == EPCTX_NO_NODES_COPY)) {
        status = epctx__gen_commit(&g);
    } else if (status == EPCTX_OK) {
        g.report->context_path[0] = '\0';
    }
    if (status != EPCTX_OK) {
        epctx_fail(g.error, status, "%s failed without a message", backend->source);
        epctx_undo(model, mark);
    }
    if (report != NULL && status == EPCTX_OK) {
        *report = *g.report;
    }
    epctx_ep_end(&g.ep);
    return status;
}

/* -- freshness -- */

/* One line of a stamp: its word, up to two numbers, and what follows. */
typedef struct epctx__stamp_line {
    epctx_str word;
    uint64_t size, hash;
    epctx_str name; /* as stored: escaped */
} epctx__stamp_line;

static epctx_str epctx__word_until(epctx_str *rest, char at)
{
    epctx_str part = *rest;
    size_t i = 0;
    while (i < rest->size && rest->data[i] != at) {
        i++;
    }
    part.size = i;
    i += i < rest->size;
    rest->data += i;
    rest->size -= i;
    return part;
}

static bool epctx__stamp_next(epctx_str *rest, epctx__stamp_line *line)
{
    epctx_str text;
    epctx_str number;
    size_t i;
    if (rest->size == 0) {
        return false;
    }
    memset(line, 0, sizeof *line);
    text = epctx__word_until(rest, '\n');
    line->word = epctx__word_until(&text, ' ');
    if (epctx_str_is(line->word, "source") || epctx_str_is(line->word, "data")) {
        number = epctx__word_until(&text, ' ');
        for (i = 0; i < number.size && number.data[i] >= '0' && number.data[i] <= '9'; i++) {
            line->size = line->size * 10 + (uint64_t)(number.data[i] - '0');
        }
        number = epctx__word_until(&text, ' ');
        line->hash = epctx__hex(number);
    } else if (epctx_str_is(line->word, "options")) {
        line->hash = epctx__hex(text);
    }
    line->name = text;
    return true;
}

/* Does a name of the stamp, escaped, stand for `plain`? */
static bool epctx__stamp_is(epctx_str escaped, const char *plain)
{
    size_t i = 0;
    for (; *plain != '\0'; plain++) {
        const char *code = *plain == '%' ? "%25" : *plain == '\n' ? "%0A" : NULL;
        const char *want = code != NULL ? code : plain;
        size_t size = code != NULL ? 3 : 1;
        if (escaped.size - i < size || memcmp(escaped.data + i, want, size) != 0) {
            return false;
        }
        i += size;
    }
    return i == escaped.size;
}

static bool epctx__stamp_plain(epctx_str escaped, char *out, size_t capacity)
{
    size_t i = 0;
    size_t used = 0;
    while (i < escaped.size && used + 1 < capacity) {
        bool code = escaped.data[i] == '%' && escaped.size - i >= 3;
        out[used++] = !code ? escaped.data[i] : escaped.data[i + 1] == '0' ? '\n' : '%';
        i += code ? 3 : 1;
    }
    out[used] = '\0';
    return i == escaped.size;
}

/* Is the file what the line says? */
static epctx_freshness epctx__fresh_file(const epctx_model *model, const epctx__stamp_line *line,
                                         const char *path, bool fast, epctx_error *why)
{
    const epctx_io *io = model->io;
    epctx_file_kind kind;
    epctx_mapping mapping;
    uint64_t size, changed, written, ignored;
    bool same;
    if (io->stat_fn(io->user, path, &kind, &size, why) != EPCTX_OK ||
        kind != EPCTX_FILE_REGULAR) {
        epctx_fail(why, EPCTX_ERR_NOT_FOUND, "'%s' is not there to compare with", path);
        return EPCTX_FRESH_UNKNOWN;
    }
    if (size != line->size) {
        epctx_fail(why, EPCTX_ERR_VERSION, "'%s' has %u bytes, it was compiled from %u", path, size,
                   line->size);
        return EPCTX_STALE;
    }
    if (fast && io->times_fn != NULL &&
        io->times_fn(io->user, path, &ignored, &changed, NULL) == EPCTX_OK &&
        io->times_fn(io->user, model->path, &written, &ignored, NULL) == EPCTX_OK &&
        changed < written) {
        return EPCTX_FRESH;
    }
    if (io->map_fn(io->user, path, &mapping, why) != EPCTX_OK) {
        return EPCTX_FRESH_UNKNOWN;
    }
    same = epctx_hash(mapping.data, mapping.size, 0) == line->hash;
    io->unmap_fn(io->user, &mapping);
    if (!same) {
        epctx_fail(why, EPCTX_ERR_VERSION, "'%s' has changed since it was compiled", path);
    }
    return same ? EPCTX_FRESH : EPCTX_STALE;
}

/* The path of a file that a line names, in the folder of the source. */
static epctx_status epctx__fresh_path(const epctx_model *model, const epctx__stamp_line *line,
                                      const epctx_fresh_opts *opts, char *out, epctx_error *why)
{
    char name[EPCTX_PATH_MAX];
    epctx_str parts[2];
    bool source = epctx_str_is(line->word, "source");
    const char *given = opts->source_path;
    epctx_status status;
    if (source && given != NULL) {
        parts[0] = epctx_str_of(given);
        return epctx__path_join(out, EPCTX_PATH_MAX, parts, 1, why);
    }
    if (!epctx__stamp_plain(line->name, name, sizeof name)) {
        return epctx_fail(why, EPCTX_ERR_LIMIT, "a name in the build stamp is too long");
    }
    status = epctx_path_check(epctx_str_of(name), why); /* the stamp is as hostile as the model */
    parts[0] = epctx_path_folder(epctx_str_of(given != NULL ? given : model->path));
    parts[1] = epctx_str_of(name);
    return status == EPCTX_OK ? epctx__path_join(out, EPCTX_PATH_MAX, parts, 2, why) : status;
}

static epctx_freshness epctx__fresh_line(const epctx_model *model, const epctx__stamp_line *line,
                                         const epctx_backend *backend,
                                         const epctx_fresh_opts *opts, epctx_error *why)
{
    char path[EPCTX_PATH_MAX];
    if (epctx_str_is(line->word, "source") || epctx_str_is(line->word, "data")) {
        return epctx__fresh_path(model, line, opts, path, why) == EPCTX_OK
                   ? epctx__fresh_file(model, line, path, opts->fast, why)
                   : EPCTX_FRESH_UNKNOWN;
    }
    if (epctx_str_is(line->word, "options") && opts->gen != NULL &&
        line->hash != epctx__options_hash(opts->gen)) {
        epctx_fail(why, EPCTX_ERR_VERSION, "it was compiled with other options");
        return EPCTX_STALE;
    }
    if (backend != NULL && epctx_str_is(line->word, "sdk") &&
        !epctx__stamp_is(line->name, backend->sdk_version)) {
        epctx_fail(why, EPCTX_ERR_VERSION, "it was compiled by SDK %S, this is %s", &line->name,
                   backend->sdk_version);
        return EPCTX_STALE;
    }
    if (backend != NULL && epctx_str_is(line->word, "arch") &&
        !epctx__stamp_is(line->name, backend->hardware_architecture)) {
        epctx_fail(why, EPCTX_ERR_VERSION, "it was compiled for %S, this is %s", &line->name,
                   backend->hardware_architecture);
        return EPCTX_STALE;
    }
    return EPCTX_FRESH;
}

EPCTX_API epctx_freshness epctx_check_fresh(const epctx_model *model, const char *source,
                                            const epctx_backend *backend,
                                            const epctx_fresh_opts *opts, epctx_error *why)
{
    char key[sizeof EPCTX_BUILD_PREFIX + 256];
    epctx_fresh_opts defaults;
    epctx__stamp_line line;
    epctx_freshness verdict = EPCTX_FRESH;
    epctx_str parts[2];
    epctx_str rest;
    bool has_source = false;
    epctx_error_clear(why);
    memset(&defaults, 0, sizeof defaults);
    parts[0] = epctx_str_of(EPCTX_BUILD_PREFIX);
    parts[1] = epctx_str_of(source);
    if (epctx__join(key, sizeof key, parts, 2, "a metadata key", why) != EPCTX_OK ||
        !epctx_model_metadata(model, epctx_str_of(key), &rest)) {
        epctx_fail(why, EPCTX_ERR_NOT_FOUND, "the model has no build stamp of %s", source);
        epctx_blame(why, model->path, NULL, NULL);
        return EPCTX_FRESH_UNKNOWN;
    }
    while (verdict == EPCTX_FRESH && epctx__stamp_next(&rest, &line)) {
        has_source = has_source || epctx_str_is(line.word, "source");
        verdict = epctx__fresh_line(model, &line, backend, opts != NULL ? opts : &defaults, why);
    }
    if (verdict == EPCTX_FRESH && !has_source) {
        epctx_fail(why, EPCTX_ERR_NOT_FOUND, "the build stamp names no source");
        verdict = EPCTX_FRESH_UNKNOWN;
    }
    if (verdict == EPCTX_FRESH) {
        epctx_error_clear(why);
    }
    epctx_blame(why, model->path, NULL, NULL);
    return verdict;
}

/* ================================================================================================
 * >>load
 * ============================================================================================== */

/* One loaded context binary. */
typedef struct epctx__context {
    const char *path; /* canonical, or the name given to the reader; NULL: embedded in the node */
    epctx_span payload;
    epctx_mapping mapping;
    bool mapped;
    void *context; /* NULL: the workspace has it */
} epctx__context;

/* What a node looks for. */
typedef struct epctx__wanted {
    epctx_str folder, name; /* of the binary */
    const char *path;       /* its canonical path, "" when it is not there */
    epctx_str key;
    uint64_t hash;
} epctx__wanted;

/* How graphs come from a workspace and go back. */
typedef struct epctx__sharing {
    epctx_status (*take_fn)(epctx_loaded *loaded, const epctx__wanted *wanted, epctx_bound *bound,
                            epctx_error *error);
    void (*give_fn)(epctx_loaded *loaded, epctx_bound *bound);
    void (*leave_fn)(struct epctx_workspace *workspace);
} epctx__sharing;

/* Whatever fails while a context is loaded is reported as INVALID_GRAPH. */
static epctx_status epctx__load_failed(epctx_status status, epctx_error *error, const char *file,
                                       const epctx_str *node, const char *attribute)
{
    if (epctx_status_to_ort(status) != 10 && status != EPCTX_ERR_ARG &&
        status != EPCTX_ERR_NOMEM && status != EPCTX_ERR_CANCELLED) {
        status = EPCTX_ERR_CONTEXT;
    }
    if (error != NULL && error->status != EPCTX_OK) {
        error->status = status;
    }
    epctx_fail(error, status, "the context cannot be loaded");
    epctx_blame(error, file, node, attribute);
    return status;
}

static void epctx__context_unmap(epctx_loaded *loaded, epctx__context *c)
{
    if (c->mapped && loaded->reader.read_fn != NULL) {
        if (loaded->reader.release_fn != NULL) {
            loaded->reader.release_fn(loaded->reader.user, &c->mapping);
        }
    } else if (c->mapped) {
        loaded->io->unmap_fn(loaded->io->user, &c->mapping);
    }
    c->mapped = false;
}

static epctx_status epctx__load_bytes(epctx_loaded *loaded, epctx__context *c, epctx_error *error)
{
    epctx_status status = loaded->backend->load_fn(loaded->backend->self, c->payload, &c->context,
                                                   error);
    if (status == EPCTX_OK) {
        loaded->context_count++;
    } else {
        c->context = NULL;
        epctx__context_unmap(loaded, c);
    }
    return status;
}

/* A binary outside of the model. */
static epctx_status epctx__load_outside(epctx_loaded *loaded, epctx__context *c,
                                        const epctx__wanted *wanted, epctx_error *error)
{
    epctx_status status;
    c->path = epctx_arena_copy(&loaded->arena, epctx_str_of(wanted->path));
    if (c->path == NULL) {
        return epctx__nomem(error, loaded->arena.missing);
    }
    if (loaded->reader.read_fn != NULL) {
        status = loaded->reader.read_fn(loaded->reader.user, wanted->name, &c->mapping, error);
    } else {
        status = epctx_path_map(loaded->io, wanted->folder, wanted->name, loaded->path_flags,
                                &c->mapping, NULL, 0, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    c->mapped = true;
    c->payload.data = c->mapping.data;
    c->payload.size = c->mapping.size;
    if (c->payload.size == 0 || c->payload.data == NULL) {
        epctx__context_unmap(loaded, c);
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "'%S' is empty", &wanted->name);
    }
    return epctx__load_bytes(loaded, c, error);
}

/* Where a binary is. Under a reader its name is all there is. */
static epctx_status epctx__load_locate(const epctx_loaded *loaded, const epctx__wanted *wanted,
                                       char *path, size_t capacity, epctx_error *error)
{
    if (loaded->reader.read_fn != NULL) {
        epctx_status status = epctx_path_check(wanted->name, error);
        return status == EPCTX_OK
                   ? epctx__join(path, capacity, &wanted->name, 1, "a name", error)
                   : status;
    }
    return epctx_path_find(loaded->io, wanted->folder, wanted->name, loaded->path_flags, path,
                           capacity, error);
}

/* The context of a node: loaded now, or already there because another node names the same file. */
static epctx_status epctx__load_primary(epctx_loaded *loaded, const epctx_epnode *node,
                                        epctx_str folder, const epctx__context **out,
                                        epctx_error *error)
{
    char path[EPCTX_PATH_MAX];
    epctx__context *c = &loaded->contexts[loaded->context_count];
    epctx__wanted wanted;
    epctx_status status;
    size_t i;
    *out = c;
    if (node->embed_mode == 1) {
        c->payload.data = (const uint8_t *)node->ep_cache_context.data;
        c->payload.size = node->ep_cache_context.size;
        if (c->payload.size == 0) {
            return epctx_fail(error, EPCTX_ERR_CONTEXT,
                              "is empty: main_context 1 and embed_mode 1 need the payload here");
        }
        return epctx__load_bytes(loaded, c, error);
    }
    memset(&wanted, 0, sizeof wanted);
    wanted.folder = folder;
    wanted.name = node->ep_cache_context;
    wanted.path = path;
    status = epctx__load_locate(loaded, &wanted, path, sizeof path, error);
    for (i = 0; status == EPCTX_OK && i < loaded->context_count; i++) {
        if (loaded->contexts[i].path != NULL && strcmp(loaded->contexts[i].path, path) == 0) {
            *out = &loaded->contexts[i];
            return EPCTX_OK;
        }
    }
    return status == EPCTX_OK ? epctx__load_outside(loaded, c, &wanted, error) : status;
}

/* Under which name the graph of a node is in its context. */
static epctx_str epctx__load_key(const epctx_loaded *loaded, const epctx_epnode *node)
{
    epctx_key key = loaded->profile != NULL ? loaded->profile->key : EPCTX_KEY_PARTITION;
    if (key == EPCTX_KEY_NONE) {
        return epctx_str_of(NULL);
    }
    return key == EPCTX_KEY_PARTITION && node->partition_name.size > 0 ? node->partition_name
                                                                        : node->name;
}

/* Does this node come with a context of its own? */
static bool epctx__load_has_own(const epctx_loaded *loaded, const epctx_epnode *node)
{
    if (node->main_context != 0) {
        return true;
    }
    return loaded->profile != NULL && node->ep_cache_context.size > 0 &&
           (loaded->profile->payload == EPCTX_PAYLOAD_EACH ||
            (loaded->profile->traits & EPCTX_SECONDARY_CONTEXT) != 0);
}

/* A graph from the workspace: from the node's own binary, else from those of the model's others. */
static epctx_status epctx__bind_shared(epctx_loaded *loaded, size_t index, epctx_str folder,
                                       bool *tried, epctx_error *error)
{
    epctx_bound *bound = &loaded->bound[index];
    bool own = epctx__load_has_own(loaded, &bound->node);
    epctx__wanted wanted;
    char path[EPCTX_PATH_MAX];
    epctx_status status = EPCTX_ERR_CONTEXT;
    size_t i;
    memset(&wanted, 0, sizeof wanted);
    wanted.folder = folder;
    wanted.path = path;
    wanted.key = epctx__load_key(loaded, &bound->node);
    wanted.hash = epctx_notes_hash(bound->node.notes);
    for (i = 0; i < loaded->bound_count && status == EPCTX_ERR_CONTEXT; i++) {
        const epctx_epnode *node = &loaded->bound[i].node;
        epctx_error ignored;
        if ((own && i != index) || !epctx__load_has_own(loaded, node) || node->embed_mode != 0) {
            continue;
        }
        epctx_error_clear(error);
        *tried = true;
        wanted.name = node->ep_cache_context;
        status = epctx_path_check(wanted.name, error);
        /* It need not be there any more when the workspace has its graphs. */
        if (status == EPCTX_OK &&
            epctx__load_locate(loaded, &wanted, path, sizeof path, &ignored) != EPCTX_OK) {
            path[0] = '\0';
        }
        if (status == EPCTX_OK) {
            status = loaded->sharing->take_fn(loaded, &wanted, bound, error);
        }
    }
    return status;
}

/* The graph of a node: in its own context, or for a secondary node in any primary of the model. */
static epctx_status epctx__bind(epctx_loaded *loaded, epctx_bound *bound, const epctx__context *own,
                                epctx_error *error)
{
    const epctx_backend *b = loaded->backend;
    epctx_str key = epctx__load_key(loaded, &bound->node);
    uint64_t hash = epctx_notes_hash(bound->node.notes);
    epctx_status status = EPCTX_ERR_CONTEXT;
    size_t i;
    if (own != NULL) {
        status = b->find_fn(b->self, own->context, key, hash, &bound->graph, error);
    } else if (loaded->context_count == 0) {
        epctx_fail(error, EPCTX_ERR_CONTEXT,
                   "is 0, but no node of source '%s' in this model has main_context 1", b->source);
    }
    for (i = 0; own == NULL && status == EPCTX_ERR_CONTEXT && i < loaded->context_count; i++) {
        epctx_error_clear(error);
        status = b->find_fn(b->self, loaded->contexts[i].context, key, hash, &bound->graph, error);
    }
    if (status == EPCTX_OK) {
        status = b->info_fn(b->self, bound->graph, &bound->info, error);
    }
    return status;
}

static epctx_str epctx__source_of(const epctx_node_view *node)
{
    epctx_cursor it = epctx_node_attrs(node);
    epctx_attr_view attr;
    epctx_str source = epctx_str_of(NULL);
    while (epctx_next_attr(&it, &attr)) {
        if (attr.type == EPCTX_ATTR_STRING && epctx_str_is(attr.name, "source")) {
            source = attr.s;
        }
    }
    return source;
}

/* The source decides first: what is wrong with another EP's node is that EP's business. */
static bool epctx__load_is_ours(const epctx_loaded *loaded, const epctx_node_view *view)
{
    epctx_epnode node = epctx_epnode_default();
    if (!epctx_is_epnode(view)) {
        return false;
    }
    node.source = epctx__source_of(view);
    node.present = node.source.size > 0 ? 1u << EPCTX_EP_SOURCE : 0;
    return loaded->profile != NULL
               ? epctx_profile_claims(loaded->profile, &node) == EPCTX_CLAIM_YES
               : epctx_str_is(node.source, loaded->backend->source);
}

static epctx_status epctx__load_collect(epctx_loaded *loaded, const epctx_model *model,
                                        epctx_error *error)
{
    epctx_cursor it = epctx_graph_nodes(epctx_model_graph(model));
    size_t count = epctx__count(it);
    epctx_node_view node;
    epctx_node_view *others =
        (epctx_node_view *)epctx_arena_array(&loaded->arena, count, sizeof *others);
    loaded->others = others;
    loaded->bound = (epctx_bound *)epctx_arena_array(&loaded->arena, count, sizeof *loaded->bound);
    loaded->contexts =
        (epctx__context *)epctx_arena_array(&loaded->arena, count, sizeof *loaded->contexts);
    if (loaded->bound == NULL || loaded->contexts == NULL || others == NULL) {
        return epctx__nomem(error, loaded->arena.missing);
    }
    while (epctx_next_node(&it, &node)) {
        epctx_bound *bound = &loaded->bound[loaded->bound_count];
        if (!epctx__load_is_ours(loaded, &node)) {
            others[loaded->other_nodes++] = node;
            loaded->cpu_nodes += !epctx_is_epnode(&node);
            continue;
        }
        if (epctx_epnode_read(&node, &bound->node, error) != EPCTX_OK) {
            return EPCTX_ERR_GRAPH;
        }
        bound->view = node;
        loaded->bound_count++;
    }
    return EPCTX_OK;
}

/* Loads the context that a node brings, unless the workspace does. */
static epctx_status epctx__load_own(epctx_loaded *loaded, const epctx_epnode *node,
                                    epctx_str folder, const epctx__context **own,
                                    epctx_error *error)
{
    if (!epctx__load_has_own(loaded, node) ||
        (loaded->sharing != NULL && node->embed_mode == 0)) {
        return EPCTX_OK;
    }
    return epctx__load_primary(loaded, node, folder, own, error);
}

static epctx_status epctx__load_all(epctx_loaded *loaded, const epctx_model *model,
                                    const epctx_load_opts *opts, epctx_error *error)
{
    const epctx_backend *b = loaded->backend;
    epctx_str folder = epctx_str_of(NULL);
    const epctx__context **own = (const epctx__context **)epctx_arena_array(
        &loaded->arena, loaded->bound_count, sizeof *own);
    size_t i;
    epctx_status status = own != NULL ? EPCTX_OK : epctx__nomem(error, loaded->arena.missing);
    for (i = 0; status == EPCTX_OK && i < loaded->bound_count; i++) {
        const epctx_epnode *node = &loaded->bound[i].node;
        status = epctx_cancelled(opts->hooks, error);
        if (status == EPCTX_OK && b->check_fn != NULL) {
            status = b->check_fn(b->self, node, error);
        }
        if (status != EPCTX_OK) {
            return epctx__load_failed(status, error, model->path, &node->name, NULL);
        }
        if (node->embed_mode == 0 && epctx__load_has_own(loaded, node) &&
            loaded->reader.read_fn == NULL) {
            status = epctx_path_base(epctx_str_of(model->path),
                                     epctx_str_of(opts->context_file_path), &folder, error);
        }
        if (status == EPCTX_OK) {
            status = epctx__load_own(loaded, node, folder, &own[i], error);
        }
        if (status != EPCTX_OK) {
            return epctx__load_failed(status, error, model->path, &node->name, "ep_cache_context");
        }
    }
    for (i = 0; status == EPCTX_OK && i < loaded->bound_count; i++) {
        epctx_bound *bound = &loaded->bound[i];
        bool shared = loaded->sharing != NULL && own[i] == NULL &&
                      (bound->node.main_context == 0 || bound->node.embed_mode == 0);
        bool tried = false;
        if (shared) {
            status = epctx__bind_shared(loaded, i, folder, &tried, error);
        }
        /* A secondary node of a model that has embedded contexts, too, may belong to those. */
        if (!tried || (status == EPCTX_ERR_CONTEXT && loaded->context_count > 0)) {
            epctx_error_clear(error);
            status = epctx__bind(loaded, bound, own[i], error);
        }
        if (status != EPCTX_OK) {
            return epctx__load_failed(status, error, model->path, &bound->node.name,
                                      own[i] == NULL && bound->node.main_context == 0
                                          ? "main_context"
                                          : NULL);
        }
        epctx__progress(opts->hooks, "load", i + 1, loaded->bound_count);
    }
    return status;
}

/* `loaded` is zeroed but for what sharing needs. */
static epctx_status epctx__load_model(epctx_loaded *loaded, const epctx_model *model,
                                      const epctx_backend *backend, const epctx_load_opts *opts,
                                      epctx_error *error)
{
    epctx_load_opts defaults;
    epctx_status status;
    memset(&defaults, 0, sizeof defaults);
    opts = opts != NULL ? opts : &defaults;
    loaded->backend = backend;
    loaded->io = model->io;
    loaded->path_flags = model->path_flags;
    loaded->profile = opts->profile;
    if (opts->reader != NULL) {
        loaded->reader = *opts->reader;
    }
    epctx_arena_init(&loaded->arena, opts->allocator);
    status = epctx__load_collect(loaded, model, error);
    if (status == EPCTX_OK) {
        status = epctx__load_all(loaded, model, opts, error);
    }
    if (status != EPCTX_OK) {
        epctx_blame(error, model->path, NULL, NULL);
        epctx_unload(loaded);
    }
    return status;
}

static epctx_status epctx__load_args(const epctx_loaded *loaded, const epctx_model *model,
                                     const epctx_backend *backend, epctx_error *error)
{
    if (loaded == NULL || model == NULL || model->root == NULL || backend == NULL ||
        backend->version != EPCTX_BACKEND_VERSION) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "an open model and a backend of version %u are expected",
                          (uint64_t)EPCTX_BACKEND_VERSION);
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_load(epctx_loaded *loaded, const epctx_model *model,
                                  const epctx_backend *backend, const epctx_load_opts *opts,
                                  epctx_error *error)
{
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__load_args(loaded, model, backend, error);
    if (status != EPCTX_OK) {
        return status;
    }
    memset(loaded, 0, sizeof *loaded);
    return epctx__load_model(loaded, model, backend, opts, error);
}

EPCTX_API void epctx_unload(epctx_loaded *loaded)
{
    const epctx__sharing *sharing;
    struct epctx_workspace *workspace;
    size_t i;
    if (loaded == NULL) {
        return;
    }
    for (i = 0; loaded->bound != NULL && i < loaded->bound_count; i++) {
        if (loaded->bound[i].entry != NULL) {
            loaded->sharing->give_fn(loaded, &loaded->bound[i]);
        }
    }
    for (i = 0; i < loaded->context_count; i++) {
        epctx__context *c = &loaded->contexts[i];
        loaded->backend->unload_fn(loaded->backend->self, c->context);
        epctx__context_unmap(loaded, c);
    }
    sharing = loaded->sharing;
    workspace = loaded->workspace;
    epctx_arena_free(&loaded->arena);
    memset(loaded, 0, sizeof *loaded);
    if (sharing != NULL) {
        sharing->leave_fn(workspace);
    }
}

/* -- the EPContext model as a cache -- */

EPCTX_API void epctx_opened_close(epctx_opened *opened)
{
    epctx_unload(&opened->loaded);
    epctx_model_close(&opened->model);
}

/* Opens and loads the EPContext model when it is there, fresh and complete. What is wrong stays in
 * opened->reason. */
static bool epctx__open_cache(epctx_opened *opened, const char *model_path, const char *path,
                              const epctx_backend *backend, const epctx_cache_opts *o)
{
    const epctx_io *io = o->open != NULL && o->open->io != NULL ? o->open->io : epctx_io_files();
    epctx_fresh_opts fresh;
    epctx_file_kind kind = EPCTX_FILE_NONE;
    epctx_freshness verdict = EPCTX_STALE;
    uint64_t size;
    bool ok = epctx_model_open_file(&opened->model, path, o->open, &opened->reason) == EPCTX_OK;
    memset(&fresh, 0, sizeof fresh);
    fresh.source_path = model_path;
    fresh.gen = o->gen;
    fresh.fast = o->fast;
    if (ok) {
        verdict = epctx_check_fresh(&opened->model, backend->source, backend, &fresh,
                                    &opened->reason);
        if (verdict == EPCTX_FRESH_UNKNOWN &&
            io->stat_fn(io->user, model_path, &kind, &size, NULL) == EPCTX_OK &&
            kind == EPCTX_FILE_NONE) {
            verdict = EPCTX_FRESH; /* delivered without its source */
        }
    }
    if (verdict == EPCTX_FRESH && epctx_load(&opened->loaded, &opened->model, backend, o->load,
                                             &opened->reason) == EPCTX_OK) {
        if (opened->loaded.bound_count > 0) {
            return true;
        }
        epctx_fail(&opened->reason, EPCTX_ERR_GRAPH, "the model has no node of %s",
                   backend->source);
        epctx_blame(&opened->reason, path, NULL, NULL);
    }
    epctx_opened_close(opened);
    return false;
}

static epctx_status epctx__cache_compile(const char *model_path, const char *path,
                                         const epctx_backend *backend, const epctx_cache_opts *o,
                                         epctx_error *error)
{
    epctx_gen_opts gen;
    epctx_model source;
    epctx_status status = epctx_model_open_file(&source, model_path, o->open, error);
    memset(&gen, 0, sizeof gen);
    if (o->gen != NULL) {
        gen = *o->gen;
    }
    gen.context_file_path = path;
    gen.overwrite = true;
    gen.no_nodes = EPCTX_NO_NODES_ERROR;
    if (status == EPCTX_OK) {
        status = epctx_generate(&source, backend, &gen, NULL, error);
    }
    epctx_model_close(&source);
    return status;
}

static epctx_status epctx__cache_fallback(epctx_opened *opened, const char *model_path,
                                          const epctx_cache_opts *o, epctx_status status,
                                          epctx_error *error)
{
    if (o->fallback_fn == NULL) {
        return status;
    }
    status = o->fallback_fn(o->user, model_path, error);
    if (status == EPCTX_OK) {
        epctx_error_clear(error);
        opened->origin = EPCTX_FROM_FALLBACK;
    }
    return status;
}

/* The other processes wait meanwhile. */
static epctx_status epctx__cache_fill(epctx_opened *opened, const char *model_path,
                                      const char *path, const epctx_backend *backend,
                                      const epctx_cache_opts *o, epctx_error *error)
{
    epctx_error why;
    epctx_status status;
    if (epctx__open_cache(opened, model_path, path, backend, o)) {
        return EPCTX_OK; /* somebody was quicker */
    }
    why = opened->reason;
    status = epctx__cache_compile(model_path, path, backend, o, error);
    if (status == EPCTX_OK && !epctx__open_cache(opened, model_path, path, backend, o)) {
        status = opened->reason.status;
        *error = opened->reason;
    } else if (status == EPCTX_OK) {
        opened->origin = EPCTX_FROM_COMPILER;
        opened->reason = why;
    }
    return status;
}

EPCTX_API epctx_status epctx_open_or_compile(epctx_opened *opened, const char *model_path,
                                             const epctx_backend *backend,
                                             const epctx_cache_opts *opts, epctx_error *error)
{
    char path[EPCTX_PATH_MAX];
    char lock_path[EPCTX_PATH_MAX];
    epctx_cache_opts o;
    epctx_io_file lock;
    epctx_error local;
    epctx_str parts[2];
    const epctx_io *io;
    epctx_status status;
    epctx_error_clear(error);
    epctx_error_clear(&local);
    error = error != NULL ? error : &local;
    memset(opened, 0, sizeof *opened);
    memset(&o, 0, sizeof o);
    if (opts != NULL) {
        o = *opts;
    }
    io = o.open != NULL && o.open->io != NULL ? o.open->io : epctx_io_files();
    if (io == NULL || backend == NULL || backend->version != EPCTX_BACKEND_VERSION) {
        return epctx_fail(error, EPCTX_ERR_ARG, "an io and a backend of version %u are expected",
                          (uint64_t)EPCTX_BACKEND_VERSION);
    }
    parts[0] = epctx_str_of(o.gen != NULL ? o.gen->context_file_path : NULL);
    status = parts[0].size > 0
                 ? epctx__path_join(path, sizeof path, parts, 1, error)
                 : epctx_path_context_model(epctx_str_of(model_path), path, sizeof path, error);
    parts[0] = epctx_str_of(path);
    parts[1] = epctx_str_of(".lock");
    if (status == EPCTX_OK) {
        status = epctx__path_join(lock_path, sizeof lock_path, parts, 2, error);
    }
    if (status != EPCTX_OK || epctx__open_cache(opened, model_path, path, backend, &o)) {
        return status;
    }
    if (o.no_compile) {
        status = epctx_fail(error, EPCTX_ERR_NOT_COMPILED,
                            "the model must be compiled, which is not allowed "
                            "(session.disable_model_compile): %s",
                            opened->reason.message);
        return epctx__cache_fallback(opened, model_path, &o, status, error);
    }
    if (io->lock_fn != NULL) {
        status = io->lock_fn(io->user, lock_path, &lock, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__cache_fill(opened, model_path, path, backend, &o, error);
        if (io->lock_fn != NULL) {
            io->unlock_fn(io->user, &lock);
        }
    }
    return status == EPCTX_ERR_NO_NODES
               ? epctx__cache_fallback(opened, model_path, &o, status, error)
               : status;
}

#endif /* EPCTX_NO_WIRE */

/* ================================================================================================
 * >>share
 * ============================================================================================== */

#if defined(EPCTX_PTHREAD_LOCK)

static void epctx__lock_lock(void *user)
{
    pthread_mutex_lock((pthread_mutex_t *)user);
}

static void epctx__lock_unlock(void *user)
{
    pthread_mutex_unlock((pthread_mutex_t *)user);
}

#elif defined(EPCTX_WIN32_LOCK)

static void epctx__lock_lock(void *user)
{
    AcquireSRWLockExclusive((SRWLOCK *)user);
}

static void epctx__lock_unlock(void *user)
{
    ReleaseSRWLockExclusive((SRWLOCK *)user);
}

#endif

#if defined(EPCTX_PTHREAD_LOCK) || defined(EPCTX_WIN32_LOCK)

/* The mutex first: its address is what the lock functions get. */
typedef struct epctx__mutex {
#ifdef EPCTX_PTHREAD_LOCK
    pthread_mutex_t mutex;
#else
    SRWLOCK mutex;
#endif
    epctx_allocator allocator;
} epctx__mutex;

static void epctx__lock_free(void *user)
{
    epctx__mutex *mutex = (epctx__mutex *)user;
    epctx_allocator allocator = mutex->allocator;
#ifdef EPCTX_PTHREAD_LOCK
    pthread_mutex_destroy(&mutex->mutex);
#endif
    allocator.free_fn(allocator.user, mutex);
}

EPCTX_API epctx_status epctx_lock_make(epctx_lock *lock, const epctx_allocator *allocator,
                                       epctx_error *error)
{
    epctx_allocator a = epctx__allocator(allocator);
    epctx__mutex *mutex;
    epctx_error_clear(error);
    memset(lock, 0, sizeof *lock);
    mutex = a.alloc_fn != NULL ? (epctx__mutex *)a.alloc_fn(a.user, sizeof *mutex) : NULL;
    if (mutex == NULL) {
        return epctx__nomem(error, sizeof *mutex);
    }
    memset(mutex, 0, sizeof *mutex);
    mutex->allocator = a;
#ifdef EPCTX_PTHREAD_LOCK
    if (pthread_mutex_init(&mutex->mutex, NULL) != 0) {
        a.free_fn(a.user, mutex);
        return epctx_fail(error, EPCTX_ERR_IO, "the system has no further mutex");
    }
#else
    InitializeSRWLock(&mutex->mutex);
#endif
    lock->user = mutex;
    lock->lock_fn = epctx__lock_lock;
    lock->unlock_fn = epctx__lock_unlock;
    lock->free_fn = epctx__lock_free;
    return EPCTX_OK;
}

#else

EPCTX_API epctx_status epctx_lock_make(epctx_lock *lock, const epctx_allocator *allocator,
                                       epctx_error *error)
{
    (void)allocator;
    epctx_error_clear(error);
    memset(lock, 0, sizeof *lock);
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                      "compile the implementation with EPCTX_PTHREAD_LOCK or EPCTX_WIN32_LOCK");
}

#endif

/* A loaded binary. It lives as long as somebody uses one of its graphs. */
typedef struct epctx__entry {
    struct epctx__entry *next;
    epctx_backend backend;
    const epctx_io *io;
    epctx_arena arena; /* paths */
    const char *path;  /* canonical */
    const char *alias; /* canonical folder and the name in the model: known when the file is gone */
    uint64_t content;
    epctx_mapping mapping;
    void *context;
    epctx_buffer taken; /* void *: graphs in use */
    bool closed;        /* not to be found any more */
} epctx__entry;

struct epctx_workspace {
    epctx_allocator allocator;
    epctx_lock lock;
    epctx_taken taken;
    size_t holds; /* the owner's, and one for each session */
    epctx__entry *entries;
    struct epctx__group *groups;
};

static void epctx__workspace_lock(epctx_workspace *w)
{
    if (w->lock.lock_fn != NULL) {
        w->lock.lock_fn(w->lock.user);
    }
}

static void epctx__workspace_unlock(epctx_workspace *w)
{
    if (w->lock.unlock_fn != NULL) {
        w->lock.unlock_fn(w->lock.user);
    }
}

static void epctx__groups_drop(epctx_workspace *w);

EPCTX_API epctx_status epctx_workspace_open(epctx_workspace **workspace,
                                            const epctx_workspace_opts *opts, epctx_error *error)
{
    epctx_allocator a = epctx__allocator(opts != NULL ? opts->allocator : NULL);
    epctx_workspace *w;
    epctx_error_clear(error);
    *workspace = NULL;
    if (a.alloc_fn == NULL) {
        return epctx_fail(error, EPCTX_ERR_NOMEM, "EPCTX_NO_MALLOC: pass an allocator");
    }
    w = (epctx_workspace *)a.alloc_fn(a.user, sizeof *w);
    if (w == NULL) {
        return epctx__nomem(error, sizeof *w);
    }
    memset(w, 0, sizeof *w);
    w->allocator = a;
    w->holds = 1;
    if (opts != NULL) {
        w->lock = opts->lock;
        w->taken = opts->taken;
    }
    *workspace = w;
    return EPCTX_OK;
}

static void epctx__workspace_clear(epctx_workspace *w)
{
    epctx__entry *entry;
    for (entry = w->entries; entry != NULL; entry = entry->next) {
        entry->closed = true;
    }
    epctx__groups_drop(w);
}

EPCTX_API void epctx_workspace_clear(epctx_workspace *workspace)
{
    epctx__workspace_lock(workspace);
    epctx__workspace_clear(workspace);
    epctx__workspace_unlock(workspace);
}

static void epctx__workspace_leave(epctx_workspace *w)
{
    epctx_lock lock = w->lock;
    epctx_allocator a = w->allocator;
    size_t holds;
    epctx__workspace_lock(w);
    holds = --w->holds;
    epctx__workspace_unlock(w);
    if (holds == 0) { /* nobody else can come in */
        a.free_fn(a.user, w);
        if (lock.free_fn != NULL) {
            lock.free_fn(lock.user);
        }
    }
}

EPCTX_API void epctx_workspace_close(epctx_workspace *workspace)
{
    if (workspace != NULL) {
        epctx_workspace_clear(workspace);
        epctx__workspace_leave(workspace);
    }
}

/* -- loading -- */

/* What tells two binaries of one path apart without reading all of them: size, both ends, and
 * places between. Graphs are told apart by their own hashes. */
static uint64_t epctx__content(epctx_span binary)
{
    const size_t block = 65536;
    uint64_t h = epctx__hash_number(0, binary.size);
    size_t i;
    if (binary.size <= 16 * block) {
        return epctx_hash(binary.data, binary.size, h);
    }
    for (i = 0; i < 16; i++) {
        size_t at = (binary.size - block) / 15 * i;
        h = epctx_hash(binary.data + (i < 15 ? at : binary.size - block), block, h);
    }
    return h;
}

static bool epctx__is_taken(const epctx__entry *entry, const void *graph)
{
    size_t at;
    for (at = 0; at < entry->taken.size; at += sizeof graph) {
        void *other;
        memcpy(&other, entry->taken.data + at, sizeof other);
        if (other == graph) {
            return true;
        }
    }
    return false;
}

static void epctx__entry_free(epctx_workspace *w, epctx__entry *entry)
{
    epctx__entry **link = &w->entries;
    while (*link != NULL && *link != entry) {
        link = &(*link)->next;
    }
    if (*link == entry) {
        *link = entry->next;
    }
    if (entry->context != NULL) {
        entry->backend.unload_fn(entry->backend.self, entry->context);
    }
    if (entry->mapping.handle != NULL) {
        entry->io->unmap_fn(entry->io->user, &entry->mapping);
    }
    epctx_buffer_free(&entry->taken);
    epctx_arena_free(&entry->arena);
    w->allocator.free_fn(w->allocator.user, entry);
}

static epctx_status epctx__entry_take(epctx__entry *entry, void *graph, epctx_shared *out,
                                      epctx_error *error)
{
    const epctx_backend *b = &entry->backend;
    epctx_status status = b->info_fn(b->self, graph, &out->info, error);
    if (status == EPCTX_OK &&
        epctx_buffer_append(&entry->taken, &graph, sizeof graph) != EPCTX_OK) {
        status = epctx__nomem(error, sizeof graph);
    }
    if (status == EPCTX_OK) {
        out->graph = graph;
        out->entry = entry;
    }
    return status;
}

/* Names under which a binary is known. */
typedef struct epctx__names {
    char path[EPCTX_PATH_MAX];  /* canonical; empty: the file is not there */
    char alias[EPCTX_PATH_MAX]; /* empty: neither is the folder */
} epctx__names;

static epctx_status epctx__names_find(const epctx_binary_file *binary, epctx__names *place,
                                      epctx_error *error)
{
    const epctx_io *io = binary->io;
    char folder[EPCTX_PATH_MAX];
    epctx_str parts[3];
    epctx_error ignored;
    epctx_status status = epctx_path_check(binary->name, error);
    place->path[0] = place->alias[0] = '\0';
    if (status != EPCTX_OK) {
        return status;
    }
    parts[0] = binary->folder.size > 0 ? binary->folder : epctx_str_of(".");
    if (epctx__path_join(folder, sizeof folder, parts, 1, &ignored) == EPCTX_OK &&
        io->canonical_fn(io->user, folder, place->path, sizeof place->path, &ignored) ==
            EPCTX_OK) {
        parts[0] = epctx_str_of(place->path);
        parts[1] = epctx_str_of("/");
        parts[2] = binary->name;
        status = epctx__path_join(place->alias, sizeof place->alias, parts, 3, error);
    }
    if (status == EPCTX_OK &&
        epctx_path_find(io, binary->folder, binary->name, binary->path_flags, place->path,
                        sizeof place->path, &ignored) != EPCTX_OK) {
        place->path[0] = '\0';
    }
    return status;
}

static bool epctx__entry_is(const epctx__entry *entry, const epctx_backend *backend,
                            const epctx__names *place)
{
    if (entry->closed || entry->backend.self != backend->self ||
        strcmp(entry->backend.source, backend->source) != 0) {
        return false;
    }
    return (place->alias[0] != '\0' && strcmp(entry->alias, place->alias) == 0) ||
           (place->path[0] != '\0' && strcmp(entry->path, place->path) == 0);
}

/* Loads a binary into a new entry, which belongs to nobody yet. */
static epctx_status epctx__entry_load(epctx_workspace *w, const epctx_backend *backend,
                                      const epctx_binary_file *binary,
                                      const epctx__names *place, epctx__entry **out,
                                      epctx_error *error)
{
    epctx__entry *entry = (epctx__entry *)w->allocator.alloc_fn(w->allocator.user, sizeof *entry);
    epctx_span bytes;
    epctx_status status;
    *out = NULL;
    if (entry == NULL) {
        return epctx__nomem(error, sizeof *entry);
    }
    memset(entry, 0, sizeof *entry);
    entry->backend = *backend;
    entry->io = binary->io;
    epctx_arena_init(&entry->arena, &w->allocator);
    epctx_buffer_init(&entry->taken, &w->allocator);
    entry->path = epctx_arena_copy(&entry->arena, epctx_str_of(place->path));
    entry->alias = epctx_arena_copy(&entry->arena, epctx_str_of(place->alias));
    status = entry->path != NULL && entry->alias != NULL
                 ? EPCTX_OK
                 : epctx__nomem(error, entry->arena.missing);
    if (status == EPCTX_OK) {
        status = epctx_path_map(binary->io, binary->folder, binary->name, binary->path_flags,
                                &entry->mapping, NULL, 0, error);
    }
    bytes.data = entry->mapping.data;
    bytes.size = entry->mapping.size;
    if (status == EPCTX_OK) {
        entry->content = epctx__content(bytes);
        status = backend->load_fn(backend->self, bytes, &entry->context, error);
    }
    if (status != EPCTX_OK) {
        entry->context = NULL;
        epctx__entry_free(w, entry);
        return status;
    }
    entry->next = w->entries;
    w->entries = entry;
    *out = entry;
    return EPCTX_OK;
}

/* A graph that waits in the workspace. `graph` stays NULL when there is none; `used` tells whether
 * somebody has it. */
static epctx_status epctx__entry_search(epctx_workspace *w, const epctx_backend *backend,
                                        const epctx__names *place, epctx_str key, uint64_t hash,
                                        epctx_shared *out, bool *used, epctx_error *error)
{
    epctx__entry *entry;
    for (entry = w->entries; entry != NULL; entry = entry->next) {
        epctx_error ignored;
        void *graph = NULL;
        epctx_error_clear(&ignored);
        if (!epctx__entry_is(entry, backend, place) ||
            backend->find_fn(backend->self, entry->context, key, hash, &graph, &ignored) !=
                EPCTX_OK) {
            continue;
        }
        if (!epctx__is_taken(entry, graph)) {
            return epctx__entry_take(entry, graph, out, error);
        }
        *used = true;
    }
    return EPCTX_OK;
}

static epctx_status epctx__take(epctx_workspace *w, const epctx_backend *backend,
                                const epctx_binary_file *binary, epctx_str key, uint64_t hash,
                                epctx_shared *out, epctx_error *error)
{
    epctx__names place;
    epctx__entry *entry = NULL;
    void *graph = NULL;
    bool used = false;
    epctx_status status = epctx__names_find(binary, &place, error);
    if (status == EPCTX_OK) {
        status = epctx__entry_search(w, backend, &place, key, hash, out, &used, error);
    }
    if (status != EPCTX_OK || out->entry != NULL) {
        return status;
    }
    if (used && w->taken == EPCTX_TAKEN_ERROR) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "graph '%S' of '%S' is in use by another session of this workspace", &key,
                          &binary->name);
    }
    status = epctx__entry_load(w, backend, binary, &place, &entry, error);
    if (status == EPCTX_OK) {
        status = backend->find_fn(backend->self, entry->context, key, hash, &graph, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__entry_take(entry, graph, out, error);
    }
    if (status != EPCTX_OK && entry != NULL) {
        epctx__entry_free(w, entry);
    }
    return status;
}

static void epctx__give(epctx_workspace *w, epctx_shared *shared)
{
    epctx__entry *entry = shared->entry;
    size_t at;
    for (at = 0; entry != NULL && at < entry->taken.size; at += sizeof shared->graph) {
        void *graph;
        memcpy(&graph, entry->taken.data + at, sizeof graph);
        if (graph == shared->graph) {
            entry->taken.size -= sizeof graph;
            memmove(entry->taken.data + at, entry->taken.data + entry->taken.size, sizeof graph);
            break;
        }
    }
    if (entry != NULL && entry->taken.size == 0) {
        epctx__entry_free(w, entry);
    }
    memset(shared, 0, sizeof *shared);
}

EPCTX_API epctx_status epctx_share_take(epctx_workspace *workspace, const epctx_backend *backend,
                                        const epctx_binary_file *binary, epctx_str key,
                                        uint64_t hash, epctx_shared *out, epctx_error *error)
{
    epctx_status status;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    if (workspace == NULL || backend == NULL || backend->version != EPCTX_BACKEND_VERSION ||
        binary->io == NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "a workspace, an io and a backend of version %u are expected",
                          (uint64_t)EPCTX_BACKEND_VERSION);
    }
    epctx__workspace_lock(workspace);
    status = epctx__take(workspace, backend, binary, key, hash, out, error);
    workspace->holds += status == EPCTX_OK;
    epctx__workspace_unlock(workspace);
    return status;
}

EPCTX_API void epctx_share_give(epctx_workspace *workspace, epctx_shared *shared)
{
    if (shared->entry == NULL) {
        return;
    }
    epctx__workspace_lock(workspace);
    epctx__give(workspace, shared);
    epctx__workspace_unlock(workspace);
    epctx__workspace_leave(workspace);
}

#ifdef EPCTX_NO_WIRE

static void epctx__groups_drop(epctx_workspace *w)
{
    (void)w;
}

#else

static epctx_status epctx__sharing_take(epctx_loaded *loaded, const epctx__wanted *wanted,
                                        epctx_bound *bound, epctx_error *error)
{
    epctx_binary_file binary;
    epctx_shared shared;
    epctx_status status;
    binary.io = loaded->io;
    binary.folder = wanted->folder;
    binary.name = wanted->name;
    binary.path_flags = loaded->path_flags;
    status = epctx_share_take(loaded->workspace, loaded->backend, &binary, wanted->key,
                              wanted->hash, &shared, error);
    if (status == EPCTX_OK) {
        bound->graph = shared.graph;
        bound->info = shared.info;
        bound->entry = shared.entry;
    }
    return status;
}

static void epctx__sharing_give(epctx_loaded *loaded, epctx_bound *bound)
{
    epctx_shared shared;
    shared.graph = bound->graph;
    shared.info = bound->info;
    shared.entry = bound->entry;
    epctx_share_give(loaded->workspace, &shared);
    bound->entry = NULL;
}

EPCTX_API epctx_status epctx_share_load(epctx_workspace *workspace, epctx_loaded *loaded,
                                        const epctx_model *model, const epctx_backend *backend,
                                        const epctx_load_opts *opts, epctx_error *error)
{
    static const epctx__sharing sharing = {epctx__sharing_take, epctx__sharing_give,
                                           epctx__workspace_leave};
    epctx_status status;
    epctx_error_clear(error);
    status = epctx__load_args(loaded, model, backend, error);
    if (status != EPCTX_OK) {
        return status;
    }
    memset(loaded, 0, sizeof *loaded);
    if (workspace == NULL || model->io == NULL || (opts != NULL && opts->reader != NULL)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "sharing needs a workspace and files: an io and no reader");
    }
    epctx__workspace_lock(workspace);
    workspace->holds++;
    epctx__workspace_unlock(workspace);
    loaded->sharing = &sharing;
    loaded->workspace = workspace;
    return epctx__load_model(loaded, model, backend, opts, error);
}

/* -- generating -- */

/* A session that waits for the last one. */
typedef struct epctx__pending {
    struct epctx__pending *next;
    const char *path;
    epctx_buffer model;
    epctx__output *initializers; /* a temporary file, or NULL */
    const char *initializers_path;
} epctx__pending;

/* A context under construction. */
typedef struct epctx__group {
    struct epctx__group *next;
    const char *name;
    const epctx_backend *backend;
    const epctx_io *io;
    epctx_arena arena;
    void *build;
    epctx__known known;
    char folder[EPCTX_PATH_MAX]; /* canonical */
    const char *binary;          /* as the nodes name it; NULL until the first session is through */
    const char *binary_path;
    epctx__pending *pending; /* in order */
    epctx__pending **pending_end;
    size_t pending_count;
} epctx__group;

static void epctx__group_free(epctx_workspace *w, epctx__group *group)
{
    epctx__group **link = &w->groups;
    epctx__pending *p;
    while (*link != NULL && *link != group) {
        link = &(*link)->next;
    }
    if (*link == group) {
        *link = group->next;
    }
    if (group->build != NULL) {
        group->backend->discard_fn(group->backend->self, group->build);
    }
    for (p = group->pending; p != NULL; p = p->next) {
        epctx_buffer_free(&p->model);
        if (p->initializers != NULL) {
            epctx__output_abort(p->initializers);
        }
    }
    epctx_buffer_free(&group->known.names);
    epctx_buffer_free(&group->known.hashes);
    epctx_arena_free(&group->arena);
    w->allocator.free_fn(w->allocator.user, group);
}

static void epctx__groups_drop(epctx_workspace *w)
{
    while (w->groups != NULL) {
        epctx__group_free(w, w->groups);
    }
}

static epctx__group *epctx__group_find(const epctx_workspace *w, const char *name,
                                       const char *source)
{
    epctx__group *group;
    for (group = w->groups; group != NULL; group = group->next) {
        if (strcmp(group->name, name != NULL ? name : "") == 0 &&
            strcmp(group->backend->source, source) == 0) {
            return group;
        }
    }
    return NULL;
}

static epctx_status epctx__group_make(epctx_workspace *w, const char *name,
                                      const epctx_backend *backend, const epctx_io *io,
                                      const epctx_gen_opts *opts, epctx__group **out,
                                      epctx_error *error)
{
    epctx__group *group = (epctx__group *)w->allocator.alloc_fn(w->allocator.user, sizeof *group);
    epctx_build_opts how;
    epctx_status status;
    *out = NULL;
    if (group == NULL) {
        return epctx__nomem(error, sizeof *group);
    }
    memset(group, 0, sizeof *group);
    group->backend = backend;
    group->io = io;
    group->pending_end = &group->pending;
    epctx_arena_init(&group->arena, &w->allocator);
    epctx_buffer_init(&group->known.names, &w->allocator);
    epctx_buffer_init(&group->known.hashes, &w->allocator);
    group->name = epctx_arena_copy(&group->arena, epctx_str_of(name));
    how.hooks = NULL; /* the group outlives the session whose hooks they would be */
    how.prepare_only = opts->prepare_only;
    status = group->name != NULL ? epctx__build_begin(backend, &how, &group->build, error)
                                 : epctx__nomem(error, group->arena.missing);
    if (status != EPCTX_OK) {
        epctx__group_free(w, group);
        return status;
    }
    group->next = w->groups;
    w->groups = group;
    *out = group;
    return EPCTX_OK;
}

/* Does another session write this file? All are below one folder: what stands behind it tells. */
static epctx_status epctx__group_clash(const epctx__group *group, const epctx__generation *g,
                                       const char *path)
{
    size_t folder = epctx_path_folder(epctx_str_of(g->report->context_path)).size;
    const epctx__pending *p;
    bool same = strcmp(path + folder, group->binary) == 0;
    for (p = group->pending; p != NULL && !same; p = p->next) {
        size_t other = epctx_path_folder(epctx_str_of(p->path)).size;
        same = strcmp(path + folder, p->path + other) == 0 ||
               (p->initializers_path[0] != '\0' &&
                strcmp(path + folder, p->initializers_path + other) == 0);
    }
    return same ? epctx_fail(g->error, EPCTX_ERR_ARG,
                             "another session of the group writes '%s': each needs a name of its "
                             "own",
                             path)
                : EPCTX_OK;
}

/* All files of a group are in one folder, and each model has a name of its own. */
static epctx_status epctx__group_accepts(epctx__group *group, epctx__generation *g)
{
    const epctx_io *io = g->model->io;
    const char *path = g->report->context_path;
    char folder[EPCTX_PATH_MAX];
    char real[EPCTX_PATH_MAX];
    epctx_str part = epctx_path_folder(epctx_str_of(path));
    epctx_status status;
    part = part.size > 0 ? part : epctx_str_of(".");
    status = epctx__path_join(folder, sizeof folder, &part, 1, g->error);
    if (status == EPCTX_OK) {
        status = io->canonical_fn(io->user, folder, real, sizeof real, g->error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    if (group->binary == NULL) {
        memcpy(group->folder, real, strlen(real) + 1);
        return EPCTX_OK;
    }
    if (strcmp(group->folder, real) != 0) {
        return epctx_fail(g->error, EPCTX_ERR_ARG,
                          "'%s' is not in the group's folder '%s': models that share a binary are "
                          "beside it",
                          path, group->folder);
    }
    status = epctx__group_clash(group, g, path);
    if (status == EPCTX_OK && g->opts->initializers_file_name != NULL &&
        g->opts->initializers_file_name[0] != '\0') {
        status = epctx__beside(g, epctx_str_of(g->opts->initializers_file_name),
                               g->report->initializers_path);
        if (status == EPCTX_OK) {
            status = epctx__group_clash(group, g, g->report->initializers_path);
        }
    }
    if (status != EPCTX_OK) {
        return status;
    }
    return EPCTX_OK;
}

static bool epctx__buffer_stream(pb_ostream_t *stream, const pb_byte_t *data, size_t size)
{
    return epctx_buffer_append((epctx_buffer *)stream->state, data, size) == EPCTX_OK;
}

static epctx_status epctx__buffer_model(epctx_buffer *buffer, epctx_model *model,
                                        epctx_error *error)
{
    pb_ostream_t stream = {NULL, NULL, SIZE_MAX, 0
#ifndef PB_NO_ERRMSG
                           ,
                           NULL
#endif
    };
    epctx_error ignored;
    stream.callback = epctx__buffer_stream;
    stream.state = buffer;
    return epctx_model_write_stream(model, &stream, &ignored) == EPCTX_OK
               ? EPCTX_OK
               : epctx__nomem(error, epctx_model_size(model));
}

/* What the session would write, kept until the group is written. */
static epctx_status epctx__group_add(epctx_workspace *w, epctx__group *group, epctx__generation *g)
{
    epctx__pending *p = (epctx__pending *)epctx_arena_alloc(&group->arena, sizeof *p);
    epctx__commit c;
    epctx_status status;
    if (p == NULL) {
        return epctx__nomem(g->error, group->arena.missing);
    }
    epctx_buffer_init(&p->model, &w->allocator);
    p->path = epctx_arena_copy(&group->arena, epctx_str_of(g->report->context_path));
    p->initializers_path =
        epctx_arena_copy(&group->arena, epctx_str_of(g->report->initializers_path));
    if (group->binary == NULL) {
        group->binary_path = epctx_arena_copy(&group->arena, epctx_str_of(g->report->binary_path));
        group->binary = epctx_arena_copy(&group->arena, epctx_str_of(g->binary));
    }
    if (p->path == NULL || p->initializers_path == NULL || group->binary == NULL ||
        group->binary_path == NULL) {
        group->binary = NULL;
        return epctx__nomem(g->error, group->arena.missing);
    }
    status = epctx__buffer_model(&p->model, g->model, g->error);
    if (status == EPCTX_OK && g->moved != NULL) {
        status = epctx__commit_begin(&c, group->io, &group->arena, 1, NULL, g->error);
        if (status == EPCTX_OK) {
            status = epctx__commit_moved(&c, p->initializers_path, g->moved);
            p->initializers = c.count > 0 ? c.files[0].out : NULL;
        }
    }
    if (status != EPCTX_OK) {
        if (p->initializers != NULL) {
            epctx__output_abort(p->initializers);
        }
        epctx_buffer_free(&p->model);
        return status;
    }
    *group->pending_end = p;
    group->pending_end = &p->next;
    group->pending_count++;
    return EPCTX_OK;
}

/* The largest max_size of the group goes into every node: spill buffers are shared like the
 * context. */
static epctx_status epctx__resize(epctx_workspace *w, epctx__group *group, epctx__pending *p,
                                  epctx_error *error)
{
    epctx_open_opts open;
    epctx_model model;
    epctx_node_view view;
    epctx_cursor it;
    epctx_buffer fresh;
    epctx_attr max_size;
    epctx_status status;
    memset(&max_size, 0, sizeof max_size);
    max_size.name = epctx_str_of("max_size");
    max_size.type = EPCTX_ATTR_INT;
    memset(&open, 0, sizeof open);
    open.allocator = &w->allocator;
    open.io = group->io;
    status = epctx_model_open_memory(&model, p->model.data, p->model.size, &open, error);
    if (status != EPCTX_OK) {
        return status;
    }
    epctx_buffer_init(&fresh, &w->allocator);
    it = epctx_graph_nodes(epctx_model_graph(&model));
    while (status == EPCTX_OK && epctx_next_node(&it, &view)) {
        epctx_epnode ep;
        if (!epctx_is_epnode(&view) ||
            !epctx_str_is(epctx__source_of(&view), group->backend->source) ||
            epctx_epnode_read(&view, &ep, NULL) != EPCTX_OK ||
            ep.max_size == group->known.max_size) {
            continue;
        }
        max_size.i = group->known.max_size;
        status = epctx_set_attr(&model, view.view, &max_size, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__buffer_model(&fresh, &model, error);
    }
    epctx_model_close(&model);
    if (status == EPCTX_OK) {
        epctx_buffer_free(&p->model);
        p->model = fresh;
    } else {
        epctx_buffer_free(&fresh);
    }
    return status;
}

static epctx_status epctx__group_commit(epctx__group *group, const epctx_buffer *binary,
                                        const epctx_hooks *hooks, epctx_error *error)
{
    epctx__commit c;
    epctx__pending *p;
    epctx_status status = epctx__commit_begin(&c, group->io, &group->arena,
                                              2 * group->pending_count + 1, hooks, error);
    if (status != EPCTX_OK) {
        return status;
    }
    if (group->known.hashes.size > 0) {
        status = epctx__commit_bytes(&c, group->binary_path, binary->data, binary->size);
    }
    for (p = group->pending; status == EPCTX_OK && p != NULL; p = p->next) {
        epctx__output *out;
        if (p->initializers != NULL) {
            c.files[c.count].path = p->initializers_path;
            c.files[c.count].out = p->initializers;
            c.files[c.count].out->error = error;
            c.count++;
        }
        status = epctx__commit_add(&c, p->path, true, &out);
        if (status == EPCTX_OK) {
            status = group->io->write_fn(group->io->user, &out->file, p->model.data, p->model.size,
                                         error);
        }
        if (status == EPCTX_OK) {
            status = group->io->sync_fn(group->io->user, &out->file, error);
        }
    }
    return epctx__commit_end(&c, status);
}

/* Writes a group and ends it, whether or not that succeeds. */
static epctx_status epctx__group_finish(epctx_workspace *w, epctx__group *group,
                                        const epctx_hooks *hooks, uint64_t *binary_size,
                                        epctx_error *error)
{
    const epctx_backend *b = group->backend;
    void *build = group->build;
    epctx_buffer binary;
    epctx__pending *p;
    epctx_status status;
    epctx_buffer_init(&binary, &w->allocator);
    group->build = NULL;
    status = b->finish_fn(b->self, build, &binary, error);
    for (p = group->pending; status == EPCTX_OK && b->max_size_fn != NULL && p != NULL;
         p = p->next) {
        status = epctx__resize(w, group, p, error);
    }
    if (status == EPCTX_OK) {
        status = epctx__group_commit(group, &binary, hooks, error);
    }
    if (status != EPCTX_OK) {
        epctx_fail(error, status, "%s failed without a message", b->source);
    }
    if (binary_size != NULL) {
        *binary_size = binary.size;
    }
    epctx_buffer_free(&binary);
    epctx__group_free(w, group);
    return status;
}

static epctx_status epctx__group_session(epctx_workspace *w, epctx__group *group,
                                         epctx__generation *g)
{
    epctx_status status;
    g->build = group->build;
    g->known = &group->known;
    g->joins = group->binary != NULL;
    if (g->joins) {
        g->binary = epctx_arena_copy(g->arena, epctx_str_of(group->binary));
        if (g->binary == NULL) {
            return epctx__nomem(g->error, g->arena->missing);
        }
    }
    status = epctx__gen_context_path(g);
    if (status == EPCTX_OK) {
        status = epctx__group_accepts(group, g);
    }
    if (status == EPCTX_OK) {
        status = epctx__gen_make(g);
    }
    if (status == EPCTX_OK && (g->part_count > 0 || g->opts->no_nodes == EPCTX_NO_NODES_COPY)) {
        status = epctx__group_add(w, group, g);
    } else if (status == EPCTX_OK) {
        g->report->context_path[0] = '\0';
    }
    if (status == EPCTX_OK && g->report->max_size > group->known.max_size) {
        group->known.max_size = g->report->max_size;
    }
    return status;
}

static epctx_status epctx__share_generate(epctx_workspace *w, const char *name,
                                          epctx__generation *g, bool stop)
{
    epctx__group *group = epctx__group_find(w, name, g->backend->source);
    epctx_status status = EPCTX_OK;
    size_t mark = epctx_edit_mark(g->model);
    if (group == NULL) {
        status = epctx__group_make(w, name, g->backend, g->model->io, g->opts, &group, g->error);
    } else if (group->backend->self != g->backend->self || group->io != g->model->io) {
        status = epctx_fail(g->error, EPCTX_ERR_ARG,
                            "the group was begun with another backend object or another io");
    }
    if (status != EPCTX_OK) {
        return status;
    }
    status = epctx__group_session(w, group, g);
    if (status == EPCTX_OK && stop) {
        status = epctx__group_finish(w, group, g->opts->hooks, &g->report->binary_size, g->error);
    } else if (group->pending_count == 0) {
        epctx__group_free(w, group); /* still empty: the next session is the first */
    }
    if (status != EPCTX_OK) {
        epctx_fail(g->error, status, "%s failed without a message", g->backend->source);
        epctx_undo(g->model, mark);
    }
    return status;
}

EPCTX_API epctx_status epctx_share_generate(epctx_workspace *workspace, const char *group,
                                            epctx_model *model, const epctx_backend *backend,
                                            const epctx_gen_opts *opts, bool stop,
                                            epctx_gen_report *report, epctx_error *error)
{
    epctx_gen_opts defaults;
    epctx__generation g;
    epctx_error local;
    epctx_status status;
    epctx_error_clear(error);
    epctx_error_clear(&local);
    memset(&defaults, 0, sizeof defaults);
    opts = opts != NULL ? opts : &defaults;
    if (workspace == NULL || opts->embed) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          workspace == NULL
                              ? "a workspace is expected"
                              : "ep.context_embed_mode 1 and ep.share_ep_contexts exclude each "
                                "other: a shared binary is a file");
    }
    status = epctx__gen_begin(&g, model, backend, opts, error != NULL ? error : &local);
    if (status != EPCTX_OK) {
        return status;
    }
    epctx__workspace_lock(workspace);
    status = epctx__share_generate(workspace, group, &g, stop);
    epctx__workspace_unlock(workspace);
    if (report != NULL && status == EPCTX_OK) {
        *report = *g.report;
    }
    epctx_ep_end(&g.ep);
    return status;
}

EPCTX_API epctx_status epctx_share_finish(epctx_workspace *workspace, const char *group,
                                          const char *source, const epctx_hooks *hooks,
                                          uint64_t *binary_size, epctx_error *error)
{
    epctx__group *found;
    epctx_error local;
    epctx_status status;
    epctx_error_clear(error);
    epctx_error_clear(&local);
    error = error != NULL ? error : &local;
    epctx__workspace_lock(workspace);
    found = epctx__group_find(workspace, group, source);
    status = found != NULL ? epctx__group_finish(workspace, found, hooks, binary_size, error)
                           : epctx_fail(error, EPCTX_ERR_NOT_FOUND,
                                        "the workspace has no group '%s' of %s",
                                        group != NULL ? group : "", source);
    epctx__workspace_unlock(workspace);
    return status;
}

#endif /* EPCTX_NO_WIRE */

#ifdef __cplusplus
}
#endif

#endif /* EPCTX_IMPLEMENTATION */
