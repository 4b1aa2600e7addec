/* epctx.h - read, edit, build, generate and load ONNX Runtime EPContext models. Version 0.3.0
 *
 * Single header, C99 and C++17, on top of nanopb. MIT licence, text in LICENSE.
 * Search for ">>" to jump from section to section.
 */

/* ============================================================
 * >>manual
 * ============================================================
 *
 * WHAT IT IS
 *   NPU compilers are slow, so ONNX Runtime (ORT) caches their output in "EPContext models": ONNX
 *   files whose com.microsoft::EPContext nodes carry a vendor binary (embed_mode 1) or the path of
 *   one (embed_mode 0). This header gives an execution provider (EP), a tool or a firmware: a
 *   lossless ONNX reader, editor and writer; EPContext nodes parsed and built; safe path
 *   resolution; and the generation, loading and weight-sharing workflows of ORT's EP-context
 *   design. It is not an inference engine: the EP supplies an epctx_backend (epctx_npu.h is one).
 *
 * DO THIS
 *   In exactly one source file of your program; a two-line epctx.c is best:
 *       #define EPCTX_IMPLEMENTATION
 *       #include "epctx.h"
 *   Elsewhere only #include "epctx.h", in any order. Link nanopb (Debian: -lprotobuf-nanopb).
 *
 * QUICK START: print the EPContext nodes of a model
 *       epctx_model model;
 *       epctx_error err;
 *       if (epctx_model_open_file(&model, "m_ctx.onnx", NULL, &err) != EPCTX_OK) {
 *           fprintf(stderr, "%s\n", err.message);
 *           return 1;
 *       }
 *       epctx_graph_view graph = epctx_model_graph(&model);
 *       epctx_cursor it = epctx_view_graph_nodes(graph);
 *       epctx_node_view node;
 *       epctx_epnode ep;
 *       while (epctx_next_node(&it, &node)) {
 *           if (epctx_view_is_epnode(&node) &&
 *               epctx_view_read_epnode(&node, &ep, &err) == EPCTX_OK) {
 *               printf("%.*s\n", (int)ep.source.size, ep.source.data);
 *           }
 *       }
 *       epctx_model_close(&model);
 *
 * QUICK START: compile a model with a backend
 *       // backend: your epctx_backend, or the one that epctx_npu_init fills
 *       epctx_gen_opts opts; // all zero: the defaults
 *       epctx_gen_report report;
 *       epctx_model model;
 *       epctx_error err;
 *       epctx_status status = epctx_model_open_file(&model, "m.onnx", NULL, &err);
 *       memset(&opts, 0, sizeof opts);
 *       opts.overwrite = true;
 *       if (status == EPCTX_OK) {
 *           status = epctx_generate(&model, &backend, &opts, &report, &err);
 *           epctx_model_close(&model);
 *       }
 *       if (status != EPCTX_OK) {
 *           fprintf(stderr, "%s\n", err.message);
 *           return 1;
 *       }
 *       printf("%s and %s\n", report.context_path, report.binary_path);
 *   A model may lack the types of what its partitions give: infer_fn or types_fn supply them.
 *
 * QUICK START: load it again
 *       epctx_loaded loaded;
 *       epctx_model model;
 *       epctx_error err;
 *       epctx_status status = epctx_model_open_file(&model, "m_ctx.onnx", NULL, &err);
 *       memset(&loaded, 0, sizeof loaded);
 *       if (status == EPCTX_OK) status = epctx_load(&loaded, &model, &backend, NULL, &err);
 *       for (size_t i = 0; i < loaded.bound_count; i++) {
 *           printf("node %u has a graph of %s\n", (unsigned)i, backend.source);
 *       }
 *       epctx_unload(&loaded);
 *       epctx_model_close(&model);
 *       if (status != EPCTX_OK) {
 *           fprintf(stderr, "%s\n", err.message);
 *           return 1;
 *       }
 *
 * THE FUNCTIONS YOU NEED FIRST
 *   read        epctx_model_open_file, epctx_model_close, epctx_model_graph,
 *               epctx_view_graph_nodes, epctx_next_node, epctx_view_is_epnode,
 *               epctx_view_read_epnode
 *   compile     epctx_generate; inside ORT: epctx_backend_partition, epctx_ep_begin,
 *               epctx_ep_compile, epctx_ep_finish, epctx_ep_context_nodes, epctx_ep_end, with
 *               options by epctx_options_init and epctx_options_read
 *   load        epctx_load, epctx_unload; inside ORT: epctx_load_nodes; weights shared by several
 *               models: epctx_workspace_open, epctx_workspace_close
 *   change      epctx_edit_embed, epctx_edit_extract, epctx_edit_prefix, epctx_model_write_file
 *   firmware    epctx_scan_begin and epctx_scan_next find the context without a heap
 *   The rest is for what these do not do; each section of CONTENTS begins with what it is for.
 *
 * WORDS
 *   source            the name of the EP that a node is for, its attribute `source`
 *   context binary    what a compiler made: one or several graphs; embedded, it is the payload
 *   primary           an EPContext node with main_context 1: it has or names a context binary
 *   secondary         one with main_context 0: its graph is in the binary of a primary node
 *   partition         nodes of a graph that are compiled together and become one EPContext node
 *   piece             a partition as a graph by itself, which a backend compiles
 *   backend           your compiler and loader, as a table of functions (epctx_backend)
 *   record            plain structs that anybody can fill: epctx_graph, epctx_node, epctx_epnode
 *   view              a look into model bytes, borrowed: epctx_graph_view, epctx_node_view
 *   group             models that are compiled into one context binary, to share weights
 *   workspace         what the sessions of a group have in common
 *   build stamp       what a model was made from, in its metadata, to know whether it is stale
 *   profile           what the EP of a vendor reads and writes
 *   weightless        a context without initializers: they stay in the source model
 *   outside weight    one that a weightless context refers to, by name, size and hash
 *   sidecar           a file beside a model that no attribute names
 *   guarded           only this user and root can write it: such files need no copy
 *   trait             what an EP does otherwise than the design: a bit of its profile
 *   claim             an EP's word that a node is its own, by `source` or to compile it
 *   unit              nodes that a backend wants in one partition or in none (units_fn)
 *   slot              a field of a model in the tree that edits change; a view knows its slot
 *   turn              the time in which one thread works on an object of a workspace, which does
 *                     not hold the lock meanwhile; others wait for its end
 *
 * OPTIONS: macros that you define before the header. In "all" files that include it, or only in the
 * "one" with the implementation; those in all must be the same everywhere.
 *   macro                 in   default  effect
 *   EPCTX_IMPLEMENTATION  one           emits the function bodies
 *   EPCTX_STATIC          all           every function is static: each file has its own bodies
 *   EPCTX_API             all  extern   stands before every declaration. In a shared library the
 *                                       functions are hidden; to export them, set the visibility
 *                                       "default"
 *   EPCTX_NO_MALLOC       one           no default allocator and no malloc or free symbol: pass
 *                                       buffers or an epctx_allocator
 *   EPCTX_NO_STDIO        one           no file back-end and no system call: pass memory or your
 *                                       own epctx_io
 *   EPCTX_NO_WIRE         all           leaves out what reads or writes model bytes; no nanopb
 *   EPCTX_NO_EDIT         all           leaves out what makes, changes or writes models: edit,
 *                                       payload, models in commit, gen
 *   EPCTX_ARENA_BLOCK     one  4096     bytes of an arena's first block; further ones double up to
 *                                       256 times as much
 *   EPCTX_SCAN_DEPTH      all  100      nesting levels that a scan can hold: a literal number from
 *                                       4 to 100
 *   EPCTX_SCAN_TEXT       all  192      bytes for the strings of a scan's event: 1 to 65534. This
 *                                       option and EPCTX_SCAN_DEPTH alone change a public struct
 *   EPCTX_PROFILES        one           epctx_profiles is your function of this name, not a static
 *                                       one: the EPs that you know (>>profile)
 *   EPCTX_DEBUG           one           abort() where a guard against impossible states is wrong:
 *                                       for tests
 *   EPCTX_PTHREAD_LOCK    one           epctx_lock_make gives a mutex for a workspace, of POSIX
 *   EPCTX_WIN32_LOCK      one           ... or of Windows
 *
 * MEMORY
 *   A model owns one arena: blocks from its allocator, or one fixed buffer of yours. Views and
 *   epctx_str / epctx_span borrow from the source bytes or from that arena until the model is
 *   closed; views of a message, until that message is edited. Reading copies nothing. Open
 *   functions copy their path. A source buffer must outlive its model. Edits copy names and borrow
 *   payloads: tensor data, attribute values, parts of other models. Do not put these on a small
 *   stack: epctx_walk (9 KiB), epctx_gen_report (13), epctx_file_lock (9), epctx_io_file (5).
 *
 * THREADS
 *   No global state. Any number of threads may call functions that take a const epctx_model; all
 *   others (open, edit, write, close) need exclusive access. Different models interact only through
 *   a workspace: give it a lock (>>share). Run-time calls of one context may come from many threads
 *   (>>ep).
 *
 * ERRORS
 *   Every fallible function returns epctx_status, clears an optional epctx_error and fills it on
 *   failure: the message names file, node and attribute, what was expected and what was found.
 *   Within one call the first error stays: epctx_fail does not overwrite it.
 *   epctx_status_to_ort() gives the OrtErrorCode value.
 *
 * TRUST
 *   Model bytes, context binaries and every path inside them are hostile. The wire grammar accepts
 *   exactly what libprotobuf accepts, without its 2 GiB limit. After a successful open every view
 *   stays inside the source, even when another process changes a mapped file; where others may
 *   truncate files, map none (>>io). Paths from a model cannot leave its folder, for reading or for
 *   writing: only a path that you name may be a link. Depth, counts and sizes have limits
 *   (epctx_limits). Files are replaced by temp file + fsync + rename, never written in place.
 *
 * WRITING
 *   Outputs of one call appear together or not at all. Whatever stops the process, a model's name
 *   has the old model or its complete successor, with the binary that belongs to it. A failure,
 *   also a full disk, restores the old files. Writers of one name wait for each other (FILE.lock,
 *   while finished files are moved into place); EPCTX_ERR_CHANGED means that another writer changed
 *   a model since it was opened. Hold epctx_file_lock_take to make read, change and write atomic. A
 *   killed process may leave these files: FILE.<process>-<number>.tmp and FILE.lock, which you may
 *   remove; FILE.new, which the model may still name and which disappears at the next write; and,
 *   without hard links, FILE.old, the former model.
 *
 * LOSSLESS
 *   Open + write without an edit gives the same bytes for every accepted input. An edit changes
 *   only its target, at any depth; unknown fields, field order, odd varints, functions and producer
 *   survive. epctx_edit_undo() restores the former bytes exactly.
 *
 * NANOPB
 *   Used at tag, varint and stream level, never through message descriptors. PB_NO_ERRMSG must be
 *   the same here and in the nanopb you link. A nanopb with PB_BUFFER_ONLY cannot write to streams:
 *   define it here, too, and EPCTX_NO_EDIT. The first open finds a mismatch (EPCTX_ERR_CONFIG)
 *   before it overwrites memory. PB_FIELD_32BIT may differ: it only changes descriptors. Shared
 *   libraries should hide nanopb's symbols (-Wl,--exclude-libs,ALL).
 *
 * OTHER LANGUAGES
 *   A binding holds epctx_version() and epctx_struct_size("epctx_model") against what it was made
 *   from. Strings, spans, views, cursors, records, options and errors may be copied and moved like
 *   numbers; what they borrow must stay. Keep these at one address from their first call to their
 *   last, because pointers may lead into them, and copy only pointers to them: epctx_arena,
 *   epctx_map, epctx_model, epctx_walk, epctx_scan, epctx_ep, epctx_commit, epctx_weights,
 *   epctx_loaded, epctx_file_lock. Callbacks may come on any thread that calls the library, and
 *   must not unwind through it. Public constants are enumerators or plain numbers.
 *
 * CONTENTS
 *   basics     status, error, text, memory      >>config >>basics
 *   files      paths, files and other io        >>path >>io >>files
 *   models     messages, files, views, records  >>wire >>binary >>onnx >>reads >>record
 *   EPs        nodes, profiles, options         >>epnode >>profile >>option >>state >>scan
 *   changes    edits, writing, build stamps     >>edit >>write >>commit >>stamp >>payload
 *   compiling  partitions, weights, EPs         >>partition >>weights >>ep >>preflight
 *   sessions   groups, generating, loading      >>share >>gen >>fresh >>load
 *   bindings   version, sizes of structs        >>abi
 *   The bodies follow in this order, from       >>implementation
 */

#ifndef EPCTX_H
#define EPCTX_H

/* ============================================================
 * >>config
 * ============================================================ */

#define EPCTX_VERSION_MAJOR  0
#define EPCTX_VERSION_MINOR  3
#define EPCTX_VERSION_PATCH  0
#define EPCTX_VERSION_STRING "0.3.0"

/* The file back-end needs POSIX and 64-bit offsets; set before the first system header. */
#if defined(EPCTX_IMPLEMENTATION) && !defined(EPCTX_NO_STDIO) && !defined(_WIN32)
#if defined(__STRICT_ANSI__) && !defined(_XOPEN_SOURCE) && !defined(_GNU_SOURCE) && \
    !defined(_DEFAULT_SOURCE)
#define _XOPEN_SOURCE 700
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#endif

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef EPCTX_NO_WIRE
#undef EPCTX_NO_EDIT /* without model bytes there is nothing to edit */
#define EPCTX_NO_EDIT
#else
#include <pb_decode.h>
#include <pb_encode.h>
#ifdef PB_WITHOUT_64BIT
#error "epctx.h needs 64-bit varints: build nanopb without PB_WITHOUT_64BIT"
#endif
#endif

/* Hidden: two libraries of one process, each with its own version, must not meet. */
#if defined(EPCTX_STATIC) && (defined(__GNUC__) || defined(__clang__))
#undef EPCTX_API
#define EPCTX_API static __attribute__((unused))
#elif defined(EPCTX_STATIC)
#undef EPCTX_API
#define EPCTX_API static
#elif !defined(EPCTX_API) && (defined(__ELF__) || defined(__APPLE__))
#define EPCTX_API extern __attribute__((visibility("hidden")))
#elif !defined(EPCTX_API)
#define EPCTX_API extern
#endif

/* Returns a failure to the caller. */
#define EPCTX__TRY(call) \
    do { \
        epctx_status epctx__tried = (call); \
        if (epctx__tried != EPCTX_OK) { \
            return epctx__tried; \
        } \
    } while (0)

#ifdef __cplusplus
extern "C" {
#endif

/* ============================================================
 * >>basics: status, error, strings, allocator, arena
 * ============================================================ */

/* Name, OrtErrorCode (INVALID_GRAPH, 10, when a context fails to load), meaning. */
#define EPCTX_STATUS_LIST(X) \
    X(OK, 0, "success") \
    X(ERR_ARG, 2, "the caller passed an argument that is not allowed") \
    X(ERR_NOMEM, 1, "the allocator or the fixed buffer has no room") \
    X(ERR_CONFIG, 1, "library and nanopb were built with different options") \
    X(ERR_LIMIT, 2, "a limit of epctx_limits or of a format is exceeded") \
    X(ERR_IO, 1, "the operating system or an io callback reported a failure") \
    X(ERR_NOT_FOUND, 3, "a file does not exist") \
    X(ERR_EXISTS, 1, "an output exists and may not be overwritten") \
    X(ERR_PATH, 10, "a path is empty, absolute, or leaves the model's folder") \
    X(ERR_PROTOBUF, 7, "the bytes are not a protobuf that libprotobuf would accept") \
    X(ERR_GRAPH, 10, "the model breaks a rule of ONNX or of the EPContext schema") \
    X(ERR_CONTEXT, 10, "a context binary cannot be loaded") \
    X(ERR_VERSION, 10, "a context binary was made for another format, SDK or architecture") \
    X(ERR_UNSUPPORTED, 9, "the backend does not implement this") \
    X(ERR_NO_NODES, 1, "no node could be compiled") \
    X(ERR_BACKEND, 11, "the backend failed") \
    X(ERR_CANCELLED, 12, "the caller cancelled the work") \
    X(ERR_NOT_COMPILED, 13, "the model must be compiled first, and that is not allowed") \
    X(ERR_CHANGED, 1, "a file is no longer the one that was read")

typedef enum epctx_status {
#define EPCTX__STATUS_ENUM(name, ort, text) EPCTX_##name,
    EPCTX_STATUS_LIST(EPCTX__STATUS_ENUM)
#undef EPCTX__STATUS_ENUM
        EPCTX_STATUS_COUNT
} epctx_status;

/* Name ("EPCTX_ERR_PATH") and meaning, both static, and OrtErrorCode. Any other value gives
 * "unknown status" and ORT_FAIL. */
EPCTX_API const char *epctx_status_name(epctx_status status);
EPCTX_API const char *epctx_status_text(epctx_status status);
EPCTX_API int epctx_status_to_ort(epctx_status status);

#define EPCTX_NO_OFFSET UINT64_MAX

/* Details of a failure. Pass NULL if you do not need them. `message` contains `file`, `node` and
 * `attribute`, which may be empty; all are terminated. */
typedef struct epctx_error {
    epctx_status status;
    uint64_t offset; /* byte position in `file`, or EPCTX_NO_OFFSET */
    char file[256], node[128], attribute[64], message[640];
} epctx_error;

/* Borrowed bytes. */
typedef struct epctx_span {
    const uint8_t *data;
    size_t size;
} epctx_span;

/* Borrowed text: any bytes, not terminated. */
typedef struct epctx_str {
    const char *data;
    size_t size;
} epctx_str;

EPCTX_API epctx_str epctx_str_of(const char *text); /* NULL gives the empty string */
EPCTX_API bool epctx_str_is(epctx_str a, const char *b);
EPCTX_API bool epctx_str_eq(epctx_str a, epctx_str b);
EPCTX_API bool epctx_str_eq_nocase(epctx_str a, epctx_str b); /* ASCII letters */
EPCTX_API bool epctx_str_starts(epctx_str text, const char *start);
EPCTX_API bool epctx_str_is_utf8(epctx_str text);
/* Takes the part before `separator`, and the separator, off `*rest`; without a separator takes all,
 * and rest->data becomes NULL. */
EPCTX_API epctx_str epctx_str_cut(epctx_str *rest, char separator);
/* The whole text as a decimal number; false when it is not one below 2^64. */
EPCTX_API bool epctx_str_number(epctx_str text, uint64_t *out);
/* Takes a decimal number off the start of `*rest`; false leaves `*rest` unchanged. */
EPCTX_API bool epctx_str_take_number(epctx_str *rest, uint64_t *out);

#define EPCTX_NO_CHAR UINT32_MAX
/* The code point at text.data[at]; `*size` gets its length in bytes. Invalid UTF-8 gives
 * EPCTX_NO_CHAR and length 1. */
EPCTX_API uint32_t epctx_str_char(epctx_str text, size_t at, size_t *size);
/* False for control, bidirectional, line separator, zero-width and tag characters, and for
 * EPCTX_NO_CHAR. `before`: the preceding character, or 0; the joiners U+200C and U+200D are shown
 * after letters of joining scripts and emoji. */
EPCTX_API bool epctx_char_is_shown(uint32_t code, uint32_t before);

/* XXH64: the same on every platform. Does not resist deliberate collisions. */
EPCTX_API uint64_t epctx_hash(const void *data, size_t size, uint64_t seed);

/* Where memory comes from; alloc_fn returns memory aligned for any type, or NULL. */
typedef struct epctx_allocator {
    void *user;
    void *(*alloc_fn)(void *user, size_t size);
    void (*free_fn)(void *user, void *memory);
} epctx_allocator;

/* Memory freed in one call: blocks of an allocator, or one fixed buffer. `used`: bytes allocated;
 * `missing`: after EPCTX_ERR_NOMEM, the bytes that the request lacked. */
typedef struct epctx_arena {
    epctx_allocator allocator;
    struct epctx__block *blocks;
    uint8_t *next;
    size_t left, used, missing;
} epctx_arena;

/* NULL allocator: malloc and free (not under EPCTX_NO_MALLOC). */
EPCTX_API void epctx_arena_init(epctx_arena *arena, const epctx_allocator *allocator);
/* Borrows `buffer` until epctx_arena_free. */
EPCTX_API void epctx_arena_init_fixed(epctx_arena *arena, void *buffer, size_t size);
/* Zeroed, aligned to 16 bytes, until epctx_arena_free; NULL without memory. */
EPCTX_API void *epctx_arena_alloc(epctx_arena *arena, size_t size);
EPCTX_API void *epctx_arena_array(epctx_arena *arena, size_t count, size_t size);
EPCTX_API char *epctx_arena_copy(epctx_arena *arena, epctx_str text); /* terminated */
/* May be called twice, and on a zeroed arena. */
EPCTX_API void epctx_arena_free(epctx_arena *arena);

/* A growing array in an arena. Zero-initialise it. */
typedef struct epctx_list {
    void *items;
    size_t count, room;
} epctx_list;

/* Appends a zeroed element of `size` bytes; NULL without memory. The next call may move it. */
EPCTX_API void *epctx_list_add(epctx_list *list, epctx_arena *arena, size_t size);

/* A growing byte array. */
typedef struct epctx_buffer {
    epctx_allocator allocator;
    uint8_t *data;
    size_t size, capacity;
} epctx_buffer;

/* Empty. NULL allocator: as in epctx_arena_init. */
EPCTX_API void epctx_buffer_init(epctx_buffer *buffer, const epctx_allocator *allocator);
/* `data`, which lies elsewhere, or zeros (NULL). EPCTX_ERR_NOMEM leaves the buffer as it was. */
EPCTX_API epctx_status epctx_buffer_append(epctx_buffer *buffer, const void *data, size_t size);
/* May be called twice. */
EPCTX_API void epctx_buffer_free(epctx_buffer *buffer);

/* Borrowed strings to numbers, in an arena; O(log n) comparisons per call for any strings. */
typedef struct epctx_map {
    epctx_arena *arena;
    struct epctx__map_node *nodes;
    uint32_t *heads;
    size_t count, capacity;
} epctx_map;

#define EPCTX_MAP_NONE UINT32_MAX

/* Empty; borrows `arena`. */
EPCTX_API void epctx_map_init(epctx_map *map, epctx_arena *arena);
EPCTX_API uint32_t epctx_map_get(const epctx_map *map, epctx_str key); /* or EPCTX_MAP_NONE */
/* Adds or replaces. Errors: NOMEM. */
EPCTX_API epctx_status epctx_map_put(epctx_map *map, epctx_str key, uint32_t value);

/* Limits on hostile input; 0 means the default. */
typedef struct epctx_limits {
    uint32_t max_depth;  /* nested messages; default and most 100, libprotobuf's limit */
    uint64_t max_size;   /* bytes of a model; default no limit */
    uint64_t max_fields; /* fields of the model and of its main graph; default no limit */
} epctx_limits;

/* Text in the caller's buffer, always terminated; `cut`: something did not fit. */
typedef struct epctx_text {
    char *data;
    size_t capacity, size; /* capacity counts the terminator, size does not */
    bool cut;
} epctx_text;

/* Empty text in `buffer`; NULL and 0 bytes have no room. */
EPCTX_API epctx_text epctx_text_of(char *buffer, size_t capacity);
EPCTX_API epctx_str epctx_text_str(const epctx_text *text); /* borrowed from the buffer */
EPCTX_API void epctx_text_put_char(epctx_text *text, char c);
EPCTX_API void epctx_text_put(epctx_text *text, epctx_str part); /* as it is */
/* Untrusted text: what is not shown (epctx_char_is_shown) becomes \xHH, and "..." follows the first
 * 200 bytes. No character is cut. */
EPCTX_API void epctx_text_put_shown(epctx_text *text, epctx_str part);
EPCTX_API void epctx_text_put_number(epctx_text *text, uint64_t value);
/* The formats of epctx_fail, %s and %S as epctx_text_put_shown. */
EPCTX_API void epctx_text_put_format(epctx_text *text, const char *format, ...);
EPCTX_API void epctx_text_put_args(epctx_text *text, const char *format, va_list args);

/* Fills `error` (may be NULL; the first error stays) and returns `status`. Formats, with exactly
 * these argument types: %s (const char *), %S (const epctx_str *), %d (int64_t), %u and %x
 * (uint64_t), %%. */
EPCTX_API epctx_status epctx_fail(epctx_error *error, epctx_status status, const char *format, ...);
/* Puts these names before the message of the error just set; each may be NULL. */
EPCTX_API void epctx_blame(epctx_error *error, const char *file, const epctx_str *node,
                           const char *attribute);
/* Empties `error` (may be NULL). Every public function does this first. */
EPCTX_API void epctx_error_clear(epctx_error *error);

/* -- hooks -- */

typedef enum epctx_log { EPCTX_LOG_INFO = 0, EPCTX_LOG_WARNING } epctx_log;

struct epctx_node;

/* Called during long work, on its thread; each member may be NULL. A hook must return and must not
 * use the objects of the call, except a workspace. */
typedef struct epctx_hooks {
    void *user;
    /* `done` of `total` steps of `work` ("compile", "write") are done. */
    void (*progress_fn)(void *user, const char *work, uint64_t done, uint64_t total);
    /* True stops the call with EPCTX_ERR_CANCELLED, without effect. */
    bool (*cancel_fn)(void *user);
    void (*log_fn)(void *user, epctx_log level, const char *text);
    /* epctx_generate, before compiling: `node` stays on the CPU, and why (the first 200 nodes
     * with the reason of explain_fn). */
    void (*refused_fn)(void *user, const struct epctx_node *node, const epctx_error *why);
    /* A backend that compiles has read these bytes of a model and will not need them soon: the
     * pages of a mapped file may be dropped. */
    void (*spent_fn)(void *user, const void *data, size_t size);
} epctx_hooks;

/* EPCTX_ERR_CANCELLED when cancel_fn returns true. `hooks` may be NULL. For backends, too. */
EPCTX_API epctx_status epctx_cancelled(const epctx_hooks *hooks, epctx_error *error);

/* ============================================================
 * >>path: names of files
 * ============================================================ */

/* `folder` and `name`, with a separator if needed; without a folder the name. EPCTX_ERR_LIMIT
 * without room. */
EPCTX_API epctx_status epctx_path_join(epctx_str folder, epctx_str name, char *out, size_t capacity,
                                       epctx_error *error);
/* Checks a name stored in a model (ep_cache_context, external data location) without touching the
 * disk: not empty, no control character (those below U+0020, U+007F: a payload in the place of a
 * name), not absolute (POSIX root, drive letter, UNC, backslash root), no ".." component, no ORT
 * in-memory tag. "a..b.bin" and subfolders are fine. EPCTX_ERR_PATH. */
EPCTX_API epctx_status epctx_path_check(epctx_str name, epctx_error *error);
/* Folder of a path with its separator, or ""; the name after it. Borrowed. */
EPCTX_API epctx_str epctx_path_folder(epctx_str path);
EPCTX_API epctx_str epctx_path_file(epctx_str path);
/* The folder for names in a model: of `context_file_path` (session option ep.context_file_path)
 * when set, else of `model_path`; what stands before the last separator, so that "dir/" is that
 * folder, and "dir" a file beside it, whatever is there (what loads, generates and lists files
 * looks for EPs that do: EPCTX_TRAIT_CONTEXT_FOLDER). EPCTX_ERR_PATH when both are empty: a model
 * from memory needs ep.context_file_path (EP-context design, inference workflow); or for "." and
 * "..". */
EPCTX_API epctx_status epctx_path_base(epctx_str model_path, epctx_str context_file_path,
                                       epctx_str *folder, epctx_error *error);
/* `path` relative to `folder`, both canonical; borrowed. EPCTX_ERR_PATH when it is outside. */
EPCTX_API epctx_status epctx_path_relative(epctx_str folder, epctx_str path, epctx_str *name,
                                           epctx_error *error);
/* "dir/model.onnx" -> "dir/model_ctx.onnx" (ep.context_file_path's default). */
EPCTX_API epctx_status epctx_path_context_model(epctx_str model_path, char *out, size_t capacity,
                                                epctx_error *error);
/* File name of the context binary, `[model]_[ep].bin`: context model path and EP's short name
 * "dir/model_ctx.onnx", "npu" -> "model_npu.bin" (no folder). EPCTX_ERR_PATH when epctx_path_check
 * refuses it. */
EPCTX_API epctx_status epctx_path_binary(epctx_str context_model_path, epctx_str short_name,
                                         char *out, size_t capacity, epctx_error *error);
/* "dir/name.ext", 2 -> "dir/name_2.ext". */
EPCTX_API epctx_status epctx_path_numbered(epctx_str name, uint64_t number, char *out,
                                           size_t capacity, epctx_error *error);

/* ============================================================
 * >>io: everything that touches a file
 * ============================================================ */

typedef enum epctx_file_kind {
    EPCTX_FILE_NONE = 0, /* nothing there */
    EPCTX_FILE_REGULAR,
    EPCTX_FILE_FOLDER,
    EPCTX_FILE_OTHER, /* pipe, device, socket */
    EPCTX_FILE_LINK   /* never from stat_fn */
} epctx_file_kind;

/* Links are followed. Times are in nanoseconds of one clock. */
typedef struct epctx_file_info {
    epctx_file_kind kind;
    uint64_t size;
    uint64_t device, inode; /* identity; both 0: unknown */
    uint64_t written;       /* last write to the content (mtime); 0: unknown */
    uint64_t changed;       /* last change of content, name or mode (ctime); 0: unknown */
    bool guarded; /* only this user and root can write it, by owner and mode; Windows: true */
} epctx_file_info;

/* Whether both are one file with the same bytes; false when unknown. */
EPCTX_API bool epctx_file_same(const epctx_file_info *a, const epctx_file_info *b);

/* A whole file in memory, read-only; `handle` NULL: nothing to unmap.
 *
 * A mapping shows what other processes write to the file; after they truncate it the next access
 * kills this process (SIGBUS; Windows forbids both). So this library replaces files, never writes
 * in place; context binaries are copied, so that the checked bytes run (unless
 * EPCTX_PATH_IN_PLACE); models and external data are mapped: changes alter what is read, but no
 * access leaves the mapping. Where others may truncate files use epctx_io_private(). */
typedef struct epctx_mapping {
    const uint8_t *data;
    size_t size;
    void *handle, *file;  /* the io's */
    bool shared;          /* others can change the bytes */
    epctx_file_info info; /* of the file, when the io can tell */
} epctx_mapping;

#define EPCTX_PATH_MAX 4096 /* bytes of the longest path, with the terminator */
#define EPCTX_NAME_MAX 256  /* bytes of the longest name of a new file, with the terminator */

/* A file being written, or a lock: the library's storage, for the io's use except `alone` and
 * `try_only`. It does not move. */
typedef struct epctx_io_file {
    void *handle;
    intptr_t descriptor;
    intptr_t folder; /* POSIX: descriptor of its folder */
    uint32_t state;
    uint64_t written; /* bytes of it, so far */
    bool alone;       /* set before commit_fn: back_fn will not be called */
    bool try_only;    /* set before lock_fn: EPCTX_ERR_CHANGED instead of waiting */
    char path[EPCTX_PATH_MAX];
    char temp[EPCTX_NAME_MAX];   /* temporary name, or "" */
    char kept[EPCTX_NAME_MAX];   /* name that keeps the old file, or "" */
    char second[EPCTX_NAME_MAX]; /* second_fn */
} epctx_io_file;

/* What happens to a file that an output would replace. */
typedef enum epctx_overwrite {
    EPCTX_OVERWRITE_REPLACE = 0,
    EPCTX_OVERWRITE_FAIL,  /* EPCTX_ERR_EXISTS */
    EPCTX_OVERWRITE_BACKUP /* keep it as FILE~ or, if that exists, FILE~2, FILE~3 ... */
} epctx_overwrite;

/* File access as callbacks. Paths are UTF-8. Errors are set with epctx_fail.
 *
 * With `root` NULL, `name` is a path of the caller's choice, and links are followed. Otherwise
 * `name` is below the canonical folder `root`: no part of it may be a link (EPCTX_ERR_PATH), or
 * become one during the call.
 *
 * create_fn opens a temporary file, sync_fn makes its bytes durable, commit_fn gives it its name,
 * close_fn ends every file; until then back_fn can restore the old one. */
typedef struct epctx_io {
    void *user;
    /* `copy`: into private memory; EPCTX_ERR_IO when the file changes meanwhile. unmap_fn
     * releases either. */
    epctx_status (*map_fn)(void *user, const char *root, const char *name, bool copy,
                           epctx_mapping *out, epctx_error *error);
    void (*unmap_fn)(void *user, epctx_mapping *mapping);
    /* A missing file is EPCTX_FILE_NONE, no error. */
    epctx_status (*stat_fn)(void *user, const char *path, epctx_file_info *info,
                            epctx_error *error);
    /* Absolute path without links, "." or "..", terminated, of an existing file or folder. */
    epctx_status (*canonical_fn)(void *user, const char *path, char *out, size_t capacity,
                                 epctx_error *error);
    epctx_status (*create_fn)(void *user, const char *root, const char *name, epctx_io_file *file,
                              epctx_error *error);
    epctx_status (*write_fn)(void *user, epctx_io_file *file, const void *data, size_t size,
                             epctx_error *error);
    epctx_status (*sync_fn)(void *user, epctx_io_file *file, epctx_error *error);
    /* Durable on return. The file keeps the mode of the one that it replaces; file->kept names the
     * backup. EPCTX_ERR_EXISTS under EPCTX_OVERWRITE_FAIL. */
    epctx_status (*commit_fn)(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                              epctx_error *error);
    /* After commit_fn or clear_fn, also a failed one: restores the old file (or none) and removes
     * the backup. False: that failed, the new file is still there. */
    bool (*back_fn)(void *user, epctx_io_file *file);
    /* Ends a file or a lock. Removes a file that was not committed. */
    void (*close_fn)(void *user, epctx_io_file *file);
    /* Before commit_fn: removes the old file; back_fn restores it. */
    epctx_status (*clear_fn)(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                             epctx_error *error);
    /* Durable on return. */
    epctx_status (*remove_fn)(void *user, const char *root, const char *name, epctx_error *error);

    /* The following may be NULL. The first two are durable on return; EPCTX_ERR_EXISTS: the name is
     * taken; EPCTX_ERR_UNSUPPORTED: no hard links. */

    /* Before commit_fn: gives a complete file a second name in its folder, until close_fn. */
    epctx_status (*second_fn)(void *user, epctx_io_file *file, const char *name,
                              epctx_error *error);
    /* Makes `to` a second name of the file `from`. */
    epctx_status (*link_fn)(void *user, const char *root, const char *from, const char *to,
                            epctx_error *error);
    /* Passes the name of each entry of a folder ("": the current one) to `name_fn`, in any order,
     * until that returns false. */
    epctx_status (*list_fn)(void *user, const char *folder,
                            bool (*name_fn)(void *state, const char *name), void *state,
                            epctx_error *error);
    /* Waits for the lock of that name (an empty file, removed afterwards), which excludes all other
     * processes and threads until close_fn or the end of the process. `lock` is zeroed, except
     * `try_only`. */
    epctx_status (*lock_fn)(void *user, const char *root, const char *name, epctx_io_file *lock,
                            epctx_error *error);
} epctx_io;

/* The file system; NULL under EPCTX_NO_STDIO. On Windows names are UTF-8, too, canonical paths have
 * "/", and a mapped file, such as an open model, cannot be replaced. */
EPCTX_API const epctx_io *epctx_io_files(void);
/* As epctx_io_files, but reads files into memory instead of mapping them: later changes have no
 * effect, changes meanwhile are EPCTX_ERR_IO. */
EPCTX_API const epctx_io *epctx_io_private(void);

/* ============================================================
 * >>files: whole files, their locks, buffers in the place of files, and paths from a model
 * ============================================================ */

/* Appends a whole file to `out`. `most`: more bytes are EPCTX_ERR_LIMIT (0: any). EPCTX_ERR_IO when
 * the file changes meanwhile; for a moment its bytes are in memory twice. `io` NULL: the default.
 * The counterpart of epctx_write_bytes. */
EPCTX_API epctx_status epctx_read_bytes(const epctx_io *io, const char *path, uint64_t most,
                                        epctx_buffer *out, epctx_error *error);

/* The lock of a file: this library takes it while finished files are moved into place. A program
 * takes it to read, change and write a model without losing changes of other writers
 * (epctx_write_opts.lock). */
typedef struct epctx_file_lock {
    const epctx_io *io;
    epctx_io_file file;
    char path[EPCTX_PATH_MAX]; /* FILE.lock */
    bool held;                 /* false when the io has no locks */
} epctx_file_lock;

/* Waits for the lock of `path`, whose folder must exist. `io` NULL: the default. */
EPCTX_API epctx_status epctx_file_lock_take(epctx_file_lock *lock, const epctx_io *io,
                                            const char *path, epctx_error *error);
/* Does not wait: EPCTX_ERR_CHANGED when another process or thread holds the lock. */
EPCTX_API epctx_status epctx_file_lock_try(epctx_file_lock *lock, const epctx_io *io,
                                           const char *path, epctx_error *error);
/* May be called twice, and on a zeroed lock. */
EPCTX_API void epctx_file_lock_drop(epctx_file_lock *lock);

/* Files as buffers of the application (encrypted, in a database, in memory), each read or written
 * whole, as with ONNX Runtime's OrtReadNamedBufferFunc and OrtWriteNamedBufferFunc. A name is a
 * normalised path (no redundant ".", "..", "//"), but in epctx_load_opts.io what the node says,
 * whatever that is. It may come from a model: do not trust it. A failing callback may fill the
 * error. Callbacks run on the threads that call the library, possibly at the same time. */
typedef struct epctx_buffer_io {
    void *user;
    /* The buffer must not change until free_fn. EPCTX_ERR_NOT_FOUND: no buffer has that name.
     * NULL: nothing can be read. */
    epctx_status (*read_fn)(void *user, const char *name, void **data, size_t *size,
                            epctx_error *error);
    /* Releases a buffer of read_fn. May be NULL. */
    void (*free_fn)(void *user, void *data, size_t size);
    /* Size in bytes; errors as read_fn. NULL: uses read_fn. */
    epctx_status (*size_fn)(void *user, const char *name, uint64_t *size, epctx_error *error);
    /* Replaces the whole buffer or, on failure, nothing; `data` is borrowed. NULL: read-only. */
    epctx_status (*write_fn)(void *user, const char *name, const void *data, size_t size,
                             epctx_error *error);
    /* NULL: calls that must remove a buffer (replacing a model and its binary) fail. */
    epctx_status (*remove_fn)(void *user, const char *name, epctx_error *error);
    const epctx_allocator *allocator; /* for pending writes; default malloc */
} epctx_buffer_io;

/* An io over the callbacks; borrows `buffers`. Every folder exists and has no links; no backups.
 * Writes are collected in memory until commit_fn. */
EPCTX_API epctx_io epctx_io_buffers(epctx_buffer_io *buffers);

/* -- names from a model become paths -- */

/* Links may leave the model's folder for blobs/ beside snapshots/, as in the Hugging Face cache (as
 * ORT allows, PR 28725). */
#define EPCTX_PATH_HUGGING_FACE 1u
/* Context binaries stay in their mapped file or model instead of being copied: only for folders
 * without other writers, and for backends that copy what they check (see epctx_mapping). */
#define EPCTX_PATH_IN_PLACE 2u
/* EPCTX_PATH_IN_PLACE for a `guarded` file in a `guarded` folder; others are copied. */
#define EPCTX_PATH_GUARDED 8u
/* A name may contain ".." if it ends up in the folder, as in ORT's external data locations. */
#define EPCTX_PATH_DETOURS 4u
/* The canonical, terminated path of `name`, an existing regular, non-empty file in `folder` (a link
 * out of the folder is EPCTX_ERR_PATH). */
EPCTX_API epctx_status epctx_path_find(const epctx_io *io, epctx_str folder, epctx_str name,
                                       uint32_t flags, char *out, size_t capacity,
                                       epctx_error *error);
/* Finds and maps, safe against links made meanwhile. `path` (NULL or EPCTX_PATH_MAX bytes) gets the
 * canonical path. */
EPCTX_API epctx_status epctx_path_map(const epctx_io *io, epctx_str folder, epctx_str name,
                                      uint32_t flags, epctx_mapping *out, char *path,
                                      epctx_error *error);
/* Whether a file may be written: its folder exists (NOT_FOUND), it is no folder or device (PATH),
 * and `overwrite` allows it (EXISTS). */
EPCTX_API epctx_status epctx_output_check(const epctx_io *io, const char *path,
                                          epctx_overwrite overwrite, epctx_error *error);

/* ============================================================
 * >>wire: protobuf fields
 * ============================================================ */

typedef enum epctx_wire {
    EPCTX_WIRE_VARINT = 0,
    EPCTX_WIRE_FIXED64 = 1,
    EPCTX_WIRE_LEN = 2,
    EPCTX_WIRE_GROUP = 3, /* a whole group, start tag to end tag */
    EPCTX_WIRE_FIXED32 = 5
} epctx_wire;

/* The payload of a field, mostly a message. `slot` is its place in the model's tree, or the nearest
 * open one around it if nothing there was edited; NULL for bytes of no model. */
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

/* Position among the fields of a message. Copy it to keep a place. */
typedef struct epctx_cursor {
    const struct epctx_slot *owner, *slot; /* of the views it gives; the next one */
    const uint8_t *next, *end;
    const uint8_t *packed, *packed_end; /* inside a packed field */
    uint32_t number;                    /* 0: every field */
} epctx_cursor;

#ifndef EPCTX_NO_WIRE

/* -- the schema: onnx.proto, IR version 13 -- */

/* clang-format off */
/* Messages: symbol, name in onnx.proto. */
#define EPCTX_MESSAGE_LIST(X) \
    X(MODEL, "ModelProto") \
    X(GRAPH, "GraphProto") \
    X(NODE, "NodeProto") \
    X(ATTR, "AttributeProto") \
    X(TENSOR, "TensorProto") \
    X(SEGMENT, "TensorProto.Segment") \
    X(SPARSE, "SparseTensorProto") \
    X(VALUE, "ValueInfoProto") \
    X(TYPE, "TypeProto") \
    X(TYPE_TENSOR, "TypeProto.Tensor") \
    X(TYPE_SPARSE, "TypeProto.SparseTensor") \
    X(TYPE_SEQUENCE, "TypeProto.Sequence") \
    X(TYPE_OPTIONAL, "TypeProto.Optional") \
    X(TYPE_MAP, "TypeProto.Map") \
    X(TYPE_OPAQUE, "TypeProto.Opaque") \
    X(SHAPE, "TensorShapeProto") \
    X(DIM, "TensorShapeProto.Dimension") \
    X(FUNCTION, "FunctionProto") \
    X(TRAINING, "TrainingInfoProto") \
    X(ANNOTATION, "TensorAnnotation") \
    X(OPSET, "OperatorSetIdProto") \
    X(PAIR, "StringStringEntryProto") \
    X(NODE_CONFIG, "NodeDeviceConfigurationProto") \
    X(SHARDING, "ShardingSpecProto") \
    X(SHARDED_DIM, "ShardedDimProto") \
    X(SIMPLE_SHARDING, "SimpleShardedDimProto") \
    X(DEVICE_GROUP, "IntIntListEntryProto") \
    X(DEVICE_CONFIG, "DeviceConfigurationProto")

/* Their fields, ONE or MANY (repeated): message, symbol (the name in onnx.proto, in capitals),
 * number, type: a message, INT (a varint), FLOAT, DOUBLE, STRING or BYTES. */
#define EPCTX_FIELD_LIST(ONE, MANY) \
    ONE(MODEL, IR_VERSION, 1, INT) \
    ONE(MODEL, PRODUCER_NAME, 2, STRING) \
    ONE(MODEL, PRODUCER_VERSION, 3, STRING) \
    ONE(MODEL, DOMAIN, 4, STRING) \
    ONE(MODEL, MODEL_VERSION, 5, INT) \
    ONE(MODEL, DOC_STRING, 6, STRING) \
    ONE(MODEL, GRAPH, 7, GRAPH) \
    MANY(MODEL, OPSET_IMPORT, 8, OPSET) \
    MANY(MODEL, METADATA_PROPS, 14, PAIR) \
    MANY(MODEL, TRAINING_INFO, 20, TRAINING) \
    MANY(MODEL, FUNCTIONS, 25, FUNCTION) \
    MANY(MODEL, CONFIGURATION, 26, DEVICE_CONFIG) \
    MANY(GRAPH, NODE, 1, NODE) \
    ONE(GRAPH, NAME, 2, STRING) \
    MANY(GRAPH, INITIALIZER, 5, TENSOR) \
    ONE(GRAPH, DOC_STRING, 10, STRING) \
    MANY(GRAPH, INPUT, 11, VALUE) \
    MANY(GRAPH, OUTPUT, 12, VALUE) \
    MANY(GRAPH, VALUE_INFO, 13, VALUE) \
    MANY(GRAPH, QUANTIZATION_ANNOTATION, 14, ANNOTATION) \
    MANY(GRAPH, SPARSE_INITIALIZER, 15, SPARSE) \
    MANY(GRAPH, METADATA_PROPS, 16, PAIR) \
    MANY(NODE, INPUT, 1, STRING) \
    MANY(NODE, OUTPUT, 2, STRING) \
    ONE(NODE, NAME, 3, STRING) \
    ONE(NODE, OP_TYPE, 4, STRING) \
    MANY(NODE, ATTRIBUTE, 5, ATTR) \
    ONE(NODE, DOC_STRING, 6, STRING) \
    ONE(NODE, DOMAIN, 7, STRING) \
    ONE(NODE, OVERLOAD, 8, STRING) \
    MANY(NODE, METADATA_PROPS, 9, PAIR) \
    MANY(NODE, DEVICE_CONFIGURATIONS, 10, NODE_CONFIG) \
    ONE(ATTR, NAME, 1, STRING) \
    ONE(ATTR, F, 2, FLOAT) \
    ONE(ATTR, I, 3, INT) \
    ONE(ATTR, S, 4, BYTES) \
    ONE(ATTR, T, 5, TENSOR) \
    ONE(ATTR, G, 6, GRAPH) \
    MANY(ATTR, FLOATS, 7, FLOAT) \
    MANY(ATTR, INTS, 8, INT) \
    MANY(ATTR, STRINGS, 9, BYTES) \
    MANY(ATTR, TENSORS, 10, TENSOR) \
    MANY(ATTR, GRAPHS, 11, GRAPH) \
    ONE(ATTR, DOC_STRING, 13, STRING) \
    ONE(ATTR, TP, 14, TYPE) \
    MANY(ATTR, TYPE_PROTOS, 15, TYPE) \
    ONE(ATTR, TYPE, 20, INT) \
    ONE(ATTR, REF_ATTR_NAME, 21, STRING) \
    ONE(ATTR, SPARSE_TENSOR, 22, SPARSE) \
    MANY(ATTR, SPARSE_TENSORS, 23, SPARSE) \
    MANY(TENSOR, DIMS, 1, INT) \
    ONE(TENSOR, DATA_TYPE, 2, INT) \
    ONE(TENSOR, SEGMENT, 3, SEGMENT) \
    MANY(TENSOR, FLOAT_DATA, 4, FLOAT) \
    MANY(TENSOR, INT32_DATA, 5, INT) \
    MANY(TENSOR, STRING_DATA, 6, BYTES) \
    MANY(TENSOR, INT64_DATA, 7, INT) \
    ONE(TENSOR, NAME, 8, STRING) \
    ONE(TENSOR, RAW_DATA, 9, BYTES) \
    MANY(TENSOR, DOUBLE_DATA, 10, DOUBLE) \
    MANY(TENSOR, UINT64_DATA, 11, INT) \
    ONE(TENSOR, DOC_STRING, 12, STRING) \
    MANY(TENSOR, EXTERNAL_DATA, 13, PAIR) \
    ONE(TENSOR, DATA_LOCATION, 14, INT) \
    MANY(TENSOR, METADATA_PROPS, 16, PAIR) \
    ONE(SEGMENT, BEGIN, 1, INT) \
    ONE(SEGMENT, END, 2, INT) \
    ONE(SPARSE, VALUES, 1, TENSOR) \
    ONE(SPARSE, INDICES, 2, TENSOR) \
    MANY(SPARSE, DIMS, 3, INT) \
    ONE(VALUE, NAME, 1, STRING) \
    ONE(VALUE, TYPE, 2, TYPE) \
    ONE(VALUE, DOC_STRING, 3, STRING) \
    MANY(VALUE, METADATA_PROPS, 4, PAIR) \
    ONE(TYPE, TENSOR_TYPE, 1, TYPE_TENSOR) \
    ONE(TYPE, SEQUENCE_TYPE, 4, TYPE_SEQUENCE) \
    ONE(TYPE, MAP_TYPE, 5, TYPE_MAP) \
    ONE(TYPE, DENOTATION, 6, STRING) \
    ONE(TYPE, OPAQUE_TYPE, 7, TYPE_OPAQUE) \
    ONE(TYPE, SPARSE_TENSOR_TYPE, 8, TYPE_SPARSE) \
    ONE(TYPE, OPTIONAL_TYPE, 9, TYPE_OPTIONAL) \
    ONE(TYPE_TENSOR, ELEM_TYPE, 1, INT) \
    ONE(TYPE_TENSOR, SHAPE, 2, SHAPE) \
    ONE(TYPE_SPARSE, ELEM_TYPE, 1, INT) \
    ONE(TYPE_SPARSE, SHAPE, 2, SHAPE) \
    ONE(TYPE_SEQUENCE, ELEM_TYPE, 1, TYPE) \
    ONE(TYPE_OPTIONAL, ELEM_TYPE, 1, TYPE) \
    ONE(TYPE_MAP, KEY_TYPE, 1, INT) \
    ONE(TYPE_MAP, VALUE_TYPE, 2, TYPE) \
    ONE(TYPE_OPAQUE, DOMAIN, 1, STRING) \
    ONE(TYPE_OPAQUE, NAME, 2, STRING) \
    MANY(SHAPE, DIM, 1, DIM) \
    ONE(DIM, DIM_VALUE, 1, INT) \
    ONE(DIM, DIM_PARAM, 2, STRING) \
    ONE(DIM, DENOTATION, 3, STRING) \
    ONE(FUNCTION, NAME, 1, STRING) \
    MANY(FUNCTION, INPUT, 4, STRING) \
    MANY(FUNCTION, OUTPUT, 5, STRING) \
    MANY(FUNCTION, ATTRIBUTE, 6, STRING) \
    MANY(FUNCTION, NODE, 7, NODE) \
    ONE(FUNCTION, DOC_STRING, 8, STRING) \
    MANY(FUNCTION, OPSET_IMPORT, 9, OPSET) \
    ONE(FUNCTION, DOMAIN, 10, STRING) \
    MANY(FUNCTION, ATTRIBUTE_PROTO, 11, ATTR) \
    MANY(FUNCTION, VALUE_INFO, 12, VALUE) \
    ONE(FUNCTION, OVERLOAD, 13, STRING) \
    MANY(FUNCTION, METADATA_PROPS, 14, PAIR) \
    ONE(TRAINING, INITIALIZATION, 1, GRAPH) \
    ONE(TRAINING, ALGORITHM, 2, GRAPH) \
    MANY(TRAINING, INITIALIZATION_BINDING, 3, PAIR) \
    MANY(TRAINING, UPDATE_BINDING, 4, PAIR) \
    ONE(ANNOTATION, TENSOR_NAME, 1, STRING) \
    MANY(ANNOTATION, QUANT_PARAMETER_TENSOR_NAMES, 2, PAIR) \
    ONE(OPSET, DOMAIN, 1, STRING) \
    ONE(OPSET, VERSION, 2, INT) \
    ONE(PAIR, KEY, 1, STRING) \
    ONE(PAIR, VALUE, 2, STRING) \
    ONE(NODE_CONFIG, CONFIGURATION_ID, 1, STRING) \
    MANY(NODE_CONFIG, SHARDING_SPEC, 2, SHARDING) \
    ONE(NODE_CONFIG, PIPELINE_STAGE, 3, INT) \
    ONE(SHARDING, TENSOR_NAME, 1, STRING) \
    MANY(SHARDING, DEVICE, 2, INT) \
    MANY(SHARDING, INDEX_TO_DEVICE_GROUP_MAP, 3, DEVICE_GROUP) \
    MANY(SHARDING, SHARDED_DIM, 4, SHARDED_DIM) \
    ONE(SHARDED_DIM, AXIS, 1, INT) \
    MANY(SHARDED_DIM, SIMPLE_SHARDING, 2, SIMPLE_SHARDING) \
    ONE(SIMPLE_SHARDING, DIM_VALUE, 1, INT) \
    ONE(SIMPLE_SHARDING, DIM_PARAM, 2, STRING) \
    ONE(SIMPLE_SHARDING, NUM_SHARDS, 3, INT) \
    ONE(DEVICE_GROUP, KEY, 1, INT) \
    MANY(DEVICE_GROUP, VALUE, 2, INT) \
    ONE(DEVICE_CONFIG, NAME, 1, STRING) \
    ONE(DEVICE_CONFIG, NUM_DEVICES, 2, INT) \
    MANY(DEVICE_CONFIG, DEVICE, 3, STRING)
/* clang-format on */

typedef enum epctx_kind {
    EPCTX_KIND_NONE = 0, /* not in the schema */
#define EPCTX__KIND_ENUM(message, name) EPCTX_KIND_##message,
    EPCTX_MESSAGE_LIST(EPCTX__KIND_ENUM)
#undef EPCTX__KIND_ENUM
        EPCTX_KIND_INT,
    EPCTX_KIND_FLOAT,
    EPCTX_KIND_DOUBLE,
    EPCTX_KIND_STRING,
    EPCTX_KIND_BYTES,
    EPCTX_KIND_COUNT
} epctx_kind;

/* Field numbers: EPCTX_FIELD_NODE_INPUT ... */
enum epctx_field_number {
#define EPCTX__FIELD_ENUM(message, symbol, number, kind) EPCTX_FIELD_##message##_##symbol = number,
    EPCTX_FIELD_LIST(EPCTX__FIELD_ENUM, EPCTX__FIELD_ENUM)
#undef EPCTX__FIELD_ENUM
};

/* A field of the schema. */
typedef struct epctx_field_info {
    epctx_kind message; /* it belongs to */
    const char *name;   /* in capitals: "IR_VERSION" */
    uint32_t number;
    bool repeated;
    epctx_kind kind;
} epctx_field_info;

/* A field of the schema, static; NULL: not in it. */
EPCTX_API const epctx_field_info *epctx_field_find(epctx_kind message, uint32_t number);
/* Whether the wire type is the field's own (packed numbers aside); if not, the field is unknown. */
EPCTX_API bool epctx_field_fits(const epctx_field_info *info, epctx_wire wire);
/* "ModelProto" ... or "unknown"; static. */
EPCTX_API const char *epctx_message_name(epctx_kind message);

/* -- reading -- */

/* Fields of a message in file order; `number` 0: all. */
EPCTX_API epctx_cursor epctx_view_fields(epctx_view message, uint32_t number);
EPCTX_API bool epctx_next_field(epctx_cursor *cursor, epctx_field *field);

/* Repeated scalars (packed or not) and strings, in order; false at the end. */
EPCTX_API bool epctx_next_int(epctx_cursor *cursor, int64_t *value);
EPCTX_API bool epctx_next_float(epctx_cursor *cursor, float *value);
EPCTX_API bool epctx_next_str(epctx_cursor *cursor, epctx_str *value);
/* The next field with a payload, and how many there are. */
EPCTX_API bool epctx_next_view(epctx_cursor *cursor, epctx_view *body);
EPCTX_API size_t epctx_cursor_count(epctx_cursor cursor);

/* What an absent field gives. */
EPCTX_API epctx_view epctx_view_none(void);
EPCTX_API bool epctx_view_exists(epctx_view view);   /* not epctx_view_none */
EPCTX_API epctx_str epctx_view_str(epctx_view view); /* the payload as text */

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>binary: what a file is
 *
 * One recognition for every file that a model, a delivery or a command line names: context binaries
 * of EPs, models, and what is surely neither. Formats as seen in 2026: an unknown one is unknown,
 * never wrong.
 * ============================================================ */

/* What a file can be taken for. */
typedef enum epctx_binary_sort {
    EPCTX_BINARY_SORT_UNKNOWN = 0, /* nothing is known of it: it may be any EP's */
    EPCTX_BINARY_SORT_CONTEXT,     /* something that an EPContext node may hold or name */
    EPCTX_BINARY_SORT_MODEL,       /* an ONNX model */
    EPCTX_BINARY_SORT_FOREIGN      /* surely neither */
} epctx_binary_sort;

/* Kind, sort, what messages call it, the profile of the EP that writes it, cure. */
#define EPCTX_BINARY_LIST(X) \
    X(UNKNOWN, UNKNOWN, "a file of no known kind", NULL, NULL) \
    X(NPU, CONTEXT, "a context binary of the reference NPU", "npu", NULL) \
    X(QNN, CONTEXT, "a QNN context binary", "qnn", NULL) \
    X(QNN_DLC, CONTEXT, "a QNN DLC", "qnn", NULL) \
    X(OPENVINO_CONTAINER, CONTEXT, "a container of OpenVINO blobs", "openvino_plugin", NULL) \
    X(OPENVINO_BLOB, CONTEXT, "an OpenVINO blob", "openvino", NULL) \
    X(OPENVINO_IR, CONTEXT, "an OpenVINO IR", "openvino", NULL) \
    X(TENSORRT, CONTEXT, "a TensorRT engine", "tensorrt", NULL) \
    X(VITISAI, CONTEXT, "a Vitis AI cache", "vitisai", NULL) \
    X(TOY, CONTEXT, "a context binary of the tests' toy device", NULL, NULL) \
    X(ONNX, MODEL, "an ONNX model", NULL, NULL) \
    X(EMPTY, FOREIGN, "an empty file", NULL, "fetch or write it again") \
    X(ONE_BYTE, FOREIGN, "a file of one repeated byte", NULL, "fetch or write it again") \
    X(LFS_POINTER, FOREIGN, "a Git LFS pointer", NULL, "run 'git lfs pull'") \
    X(HTML, FOREIGN, "an HTML page", NULL, "download the file itself, not the page about it") \
    X(XML, FOREIGN, "an XML document", NULL, \
      "it may be a server's error: download the file again") \
    X(JSON, FOREIGN, "a JSON document", NULL, \
      "it may be a server's error: download the file again") \
    X(TEXT, FOREIGN, "a text file", NULL, "fetch the file itself again") \
    X(CRLF, FOREIGN, "a binary file whose line ends were converted to CRLF", NULL, \
      "fetch it again as a binary file (in Git: mark it '-text' in .gitattributes)") \
    X(UTF8, FOREIGN, "a binary file that was converted to UTF-8 as if it were text", NULL, \
      "fetch it again as a binary file") \
    X(GZIP, FOREIGN, "a gzip archive", NULL, "unpack it first") \
    X(ZIP, FOREIGN, "a zip archive", NULL, "unpack it first") \
    X(TAR, FOREIGN, "a tar archive", NULL, "unpack it first") \
    X(ORT, FOREIGN, "an .ort model (flatbuffers)", NULL, "use the ONNX model that it was made from")

/* The kinds of EPCTX_BINARY_LIST. */
typedef enum epctx_binary_kind {
#define EPCTX__BINARY_ENUM(kind, sort, name, profile, cure) EPCTX_BINARY_##kind,
    EPCTX_BINARY_LIST(EPCTX__BINARY_ENUM)
#undef EPCTX__BINARY_ENUM
        EPCTX_BINARY_KIND_COUNT /* how many there are */
} epctx_binary_kind;

/* What a file is. Texts are static; NULL: none. */
typedef struct epctx_binary_id {
    epctx_binary_kind kind; /* its format */
    epctx_binary_sort sort; /* what that means for a model that names it */
    const char *name;       /* for messages: "a Git LFS pointer" */
    const char *profile;    /* of an EP that writes it: "qnn" */
    const char *cure;       /* what to do about a foreign file: "run 'git lfs pull'" */
    const char *damage;     /* what is surely wrong with it: "is cut off" */
    uint64_t expected;      /* bytes that it should have at least; 0: it does not say so */
} epctx_binary_id;

/* How many bytes of each end are looked at. */
#define EPCTX_BINARY_WINDOW 65536u

/* Says what a file of `size` bytes is, hostile or not, by its `first` bytes and its `last`: as many
 * as the caller has, best EPCTX_BINARY_WINDOW of each; they may overlap, as of a whole file in
 * memory, which is both. Allocates nothing. A file is FOREIGN only if that is certain. */
EPCTX_API void epctx_binary_identify(epctx_span first, epctx_span last, uint64_t size,
                                     epctx_binary_id *out);

/* ============================================================
 * >>onnx: the model, and views over its messages
 * ============================================================ */

/* TensorProto.DataType (onnx.proto). */
#define EPCTX_ONNX_FLOAT      1  /* 32 bits */
#define EPCTX_ONNX_UINT8      2  /* 8 bits, unsigned */
#define EPCTX_ONNX_INT8       3  /* 8 bits, signed */
#define EPCTX_ONNX_UINT16     4  /* 16 bits, unsigned */
#define EPCTX_ONNX_INT16      5  /* 16 bits, signed */
#define EPCTX_ONNX_INT32      6  /* 32 bits, signed */
#define EPCTX_ONNX_INT64      7  /* 64 bits, signed */
#define EPCTX_ONNX_STRING     8  /* UTF-8 */
#define EPCTX_ONNX_BOOL       9  /* a byte */
#define EPCTX_ONNX_FLOAT16    10 /* IEEE 754 half */
#define EPCTX_ONNX_DOUBLE     11 /* 64 bits */
#define EPCTX_ONNX_UINT32     12 /* 32 bits, unsigned */
#define EPCTX_ONNX_UINT64     13 /* 64 bits, unsigned */
#define EPCTX_ONNX_COMPLEX64  14 /* two floats */
#define EPCTX_ONNX_COMPLEX128 15 /* two doubles */
#define EPCTX_ONNX_BFLOAT16   16 /* the high half of a float */

/* Bytes of one element of a TensorProto.DataType; 0 for strings, sub-byte and unknown types. */
EPCTX_API size_t epctx_elem_size(int32_t elem_type);
/* Bits of one element (below 8 they are packed); 0 for strings and unknown types. */
EPCTX_API unsigned epctx_elem_bits(int32_t elem_type);
/* "float32", "int64" ... or "unknown". */
EPCTX_API const char *epctx_elem_name(int32_t elem_type);

typedef struct epctx_node_view {
    epctx_view view;
    epctx_str name, op_type, domain, overload, doc_string;
    uint32_t input_count, output_count, attr_count;
} epctx_node_view;

#ifndef EPCTX_NO_WIRE

typedef struct epctx_open_opts {
    const epctx_allocator *allocator; /* default malloc; copied */
    void *buffer;                     /* fixed arena instead of the allocator; borrowed */
    size_t buffer_size; /* to read: 1 KiB, and 48 bytes per field of the model and of its graph */
    const epctx_io *io; /* default epctx_io_files(); borrowed */
    const char *external_folder; /* of external initializers, copied; default: the model's folder
                                    (session.model_external_initializers_file_folder_path) */
    epctx_limits limits;
    uint32_t path_flags; /* how files are found and read: EPCTX_PATH_HUGGING_FACE, and for context
                            binaries EPCTX_PATH_IN_PLACE or EPCTX_PATH_GUARDED */
} epctx_open_opts;

/* An open model. All but `bytes`, `path`, `limits` and `path_flags`, which you may read, and
 * `arena`, which you may use, is private. */
typedef struct epctx_model {
    epctx_arena arena;
    const epctx_io *io; /* as given: epctx_model_io */
    epctx_mapping mapping;
    epctx_span bytes; /* of the whole model */
    const char *path; /* empty when opened from memory */
    const char *external_folder;
    struct epctx__file *files; /* external data that is mapped */
    epctx_map file_paths;      /* canonical path -> index in `file_list` (pointers) */
    epctx_list file_list;
    uint64_t external_there; /* bytes of these files */
    uint64_t external_asked; /* bytes of their tensors loaded since the last graph load began */
    struct epctx_slot *root; /* what is written and edited */
    struct epctx_slot *graph;
    struct epctx_slot *shown; /* what is read: the same or, with doubled fields, merged */
    struct epctx_slot *shown_graph;
    struct epctx__edit *edits;
    size_t edit_count;
    epctx_limits limits;
    uint32_t path_flags;
    bool duplicate;            /* a singular message field occurs twice */
    struct epctx_slot *merged; /* tree for reading before epctx_edit_merge_doubled, for undo */
    size_t merged_at;          /* the edit that merged it */
    epctx_file_info id;        /* of the model's file, if the io provides it */
} epctx_model;

/* Opens a model and checks all of it: grammar, nesting, limits; payloads are skipped. `opts` may be
 * NULL. On failure the model is closed. NOT_FOUND, IO, LIMIT, NOMEM (arena.missing set), ARG (no
 * memory or io to use), CONFIG, PROTOBUF (offset set; the message says what else the file is, see
 * >>binary). */
EPCTX_API epctx_status epctx_model_open_file(epctx_model *model, const char *path,
                                             const epctx_open_opts *opts, epctx_error *error);
/* Opens bytes in memory, which are borrowed until close. Errors as epctx_model_open_file, but the
 * message does not say what else they are. */
EPCTX_API epctx_status epctx_model_open_memory(epctx_model *model, const void *data, size_t size,
                                               const epctx_open_opts *opts, epctx_error *error);
/* May be called twice, and on a zeroed model. Invalidates all its views. */
EPCTX_API void epctx_model_close(epctx_model *model);
/* The io of its options, else epctx_io_files(); NULL: none (EPCTX_NO_STDIO). */
EPCTX_API const epctx_io *epctx_model_io(const epctx_model *model);

/* -- views: messages as structs. Of a singular field that occurs twice the last one counts. -- */

typedef struct epctx_model_info {
    epctx_view view;
    int64_t ir_version, model_version;
    epctx_str producer_name, producer_version, domain, doc_string;
    uint32_t function_count;
} epctx_model_info;

typedef struct epctx_graph_view {
    epctx_view view;
    epctx_str name, doc_string;
} epctx_graph_view;

typedef struct epctx_attr_view {
    epctx_view view;
    epctx_str name, ref_attr_name;
    int32_t type; /* as stored; EPCTX_ATTR_UNDEFINED when absent */
    int64_t i;
    float f;
    epctx_str s;
    epctx_view t, g; /* epctx_view_none when absent */
} epctx_attr_view;

/* TensorProto. Its data is raw, in typed fields (epctx_view_fields), or in an external file. */
typedef struct epctx_tensor_view {
    epctx_view view;
    epctx_str name;
    int32_t elem_type; /* onnx.proto TensorProto.DataType */
    uint32_t rank;
    bool has_raw;
    epctx_span raw; /* little-endian, unaligned */
    bool external;
    epctx_str location;      /* relative path */
    uint64_t offset, length; /* as stored: epctx_view_tensor_extent says how many bytes are meant */
    epctx_str wrong_key;     /* "offset" or "length", if that is not a number; else empty */
    epctx_str wrong_number;  /* the text found there instead */
} epctx_tensor_view;

/* ValueInfoProto. */
typedef struct epctx_value_view {
    epctx_view view;
    epctx_str name;
    epctx_view type; /* TypeProto */
    bool has_type;
    bool is_tensor; /* else sequence, map, optional, sparse or no type */
    int32_t elem_type;
    bool has_shape;
    epctx_view shape; /* TensorShapeProto */
} epctx_value_view;

/* A dimension: a number, a parameter name, or neither. */
typedef struct epctx_dim {
    bool known;
    int64_t value;
    epctx_str param;
} epctx_dim;

typedef struct epctx_opset {
    epctx_str domain;
    int64_t version;
} epctx_opset;

/* StringStringEntryProto: metadata_props, external_data, training bindings. */
typedef struct epctx_pair {
    epctx_str key, value;
} epctx_pair;

/* The ModelProto's own fields; absent ones are zero or empty. */
EPCTX_API epctx_model_info epctx_model_read(const epctx_model *model);
/* The ModelProto as it is written: doubled fields are not merged. */
EPCTX_API epctx_view epctx_model_root(const epctx_model *model);
/* The main graph; all members empty if there is none. */
EPCTX_API epctx_graph_view epctx_model_graph(const epctx_model *model);
EPCTX_API bool epctx_model_has_graph(const epctx_model *model);

/* A message, e.g. one found with epctx_view_fields. */
EPCTX_API epctx_graph_view epctx_view_as_graph(epctx_view view);
EPCTX_API epctx_node_view epctx_view_as_node(epctx_view view);
EPCTX_API epctx_attr_view epctx_view_as_attr(epctx_view view);
EPCTX_API epctx_tensor_view epctx_view_as_tensor(epctx_view view);
EPCTX_API epctx_value_view epctx_view_as_value(epctx_view view);
EPCTX_API epctx_dim epctx_view_as_dim(epctx_view view);
EPCTX_API epctx_opset epctx_view_as_opset(epctx_view view);
EPCTX_API epctx_pair epctx_view_as_pair(epctx_view view);

/* Cursors over one field. Read node_inputs and node_outputs with epctx_next_str, tensor_dims with
 * epctx_next_int, model_functions with epctx_next_view. */
EPCTX_API epctx_cursor epctx_model_opsets(const epctx_model *model);
EPCTX_API epctx_cursor epctx_model_functions(const epctx_model *model);
EPCTX_API epctx_cursor epctx_view_graph_nodes(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_view_graph_inputs(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_view_graph_outputs(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_view_graph_values(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_view_graph_initializers(epctx_graph_view graph);
EPCTX_API epctx_cursor epctx_view_node_inputs(const epctx_node_view *node);
EPCTX_API epctx_cursor epctx_view_node_outputs(const epctx_node_view *node);
EPCTX_API epctx_cursor epctx_view_node_attrs(const epctx_node_view *node);
EPCTX_API epctx_cursor epctx_view_tensor_dims(const epctx_tensor_view *tensor);
EPCTX_API epctx_cursor epctx_view_value_dims(const epctx_value_view *value);
/* Bytes that the data of its type and shape takes; UINT64_MAX: of strings, or of no possible
 * shape. */
EPCTX_API uint64_t epctx_view_tensor_bytes(const epctx_tensor_view *tensor);
/* Bytes of external data, which begin at `offset`, in a file of `file_size` bytes: `length`, or
 * what the shape needs if there is none, or 0 as in ORT. GRAPH: an entry is not a number, or the
 * file ends before. */
EPCTX_API epctx_status epctx_view_tensor_extent(const epctx_tensor_view *tensor, uint64_t file_size,
                                                uint64_t *size, epctx_error *error);
/* The next message of a cursor; false at the end. */
EPCTX_API bool epctx_next_node(epctx_cursor *cursor, epctx_node_view *out);
EPCTX_API bool epctx_next_attr(epctx_cursor *cursor, epctx_attr_view *out);
EPCTX_API bool epctx_next_tensor(epctx_cursor *cursor, epctx_tensor_view *out);
EPCTX_API bool epctx_next_value(epctx_cursor *cursor, epctx_value_view *out);
EPCTX_API bool epctx_next_dim(epctx_cursor *cursor, epctx_dim *out);
EPCTX_API bool epctx_next_opset(epctx_cursor *cursor, epctx_opset *out);
EPCTX_API bool epctx_next_pair(epctx_cursor *cursor, epctx_pair *out);

/* The last attribute of that name; false: none. */
EPCTX_API bool epctx_view_node_find_attr(const epctx_node_view *node, const char *name,
                                         epctx_attr_view *out);
/* The value of a STRING attribute; empty when absent. */
EPCTX_API epctx_str epctx_view_node_attr_str(const epctx_node_view *node, const char *name);
/* The version imported for `domain` ("" and "ai.onnx" are the same); 0: not imported. */
EPCTX_API int64_t epctx_model_opset(const epctx_model *model, epctx_str domain);
/* The value of a metadata_props key; false when absent. */
EPCTX_API bool epctx_model_metadata(const epctx_model *model, epctx_str key, epctx_str *value);

/* The kind of message that a view of a model is; NONE for strings and removed fields. */
EPCTX_API epctx_kind epctx_view_kind(epctx_view view);
/* Whether two payloads, with their edits, have the same fields in the same order. Where neither was
 * edited every byte counts; in an edited message a group equals nothing. */
EPCTX_API bool epctx_view_equal(epctx_view a, epctx_view b);

/* -- walk -- */

/* Deepest nesting of graphs: each takes three of 100 levels. */
#define EPCTX_WALK_DEPTH 34
/* Deepest nesting of messages: epctx_limits.max_depth, and the model itself. */
#define EPCTX_WALK_LEVELS 101

typedef struct epctx_walk_level {
    epctx_kind kind;
    uint32_t depth;
    epctx_view view;
    epctx_cursor fields;
} epctx_walk_level;

/* A walk over the graphs, nodes, attributes, tensors, sparse tensors, functions and training
 * information of a model. It may be edited meanwhile: what stays where it is is given once; what is
 * put in, moved or removed in a message that the walk has entered may be given or not. */
typedef struct epctx_walk {
    /* Kind of the current message: EPCTX_KIND_GRAPH, NODE, ATTR, TENSOR, SPARSE, FUNCTION or
     * TRAINING. */
    epctx_kind kind;
    epctx_view view; /* the message */
    uint32_t depth;  /* subgraphs around it, or that it is: 0 in the main graph or a function */
    bool in_function;
    bool in_training;
    uint32_t level;                             /* number of messages of the walk around it */
    epctx_walk_level levels[EPCTX_WALK_LEVELS]; /* these, outermost first */
    bool first, entering;                       /* private */
    uint32_t root;
} epctx_walk;

/* The whole model: main graph, functions, training graphs. */
EPCTX_API void epctx_walk_begin(epctx_walk *walk, const epctx_model *model);
/* One message of these kinds and everything in it. */
EPCTX_API void epctx_walk_below(epctx_walk *walk, epctx_view view, epctx_kind kind);
/* The next message: parents first, otherwise in file order; false at the end. */
EPCTX_API bool epctx_walk_step(epctx_walk *walk);
/* The next message of one kind. epctx_walk_epnode also gives nodes EPContext of foreign domains,
 * which no EP takes: ask epctx_view_is_epnode. */
EPCTX_API bool epctx_walk_next(epctx_walk *walk, epctx_node_view *node);
EPCTX_API bool epctx_walk_epnode(epctx_walk *walk, epctx_node_view *node);
EPCTX_API bool epctx_walk_tensor(epctx_walk *walk, epctx_tensor_view *tensor);
EPCTX_API bool epctx_walk_graph(epctx_walk *walk, epctx_graph_view *graph);

/* ============================================================
 * >>reads: which values the nodes of a graph read
 * ============================================================ */

/* Outer values that a node's subgraphs read, one per read: borrowed names, listed in `arena`. */
EPCTX_API epctx_status epctx_view_node_captures(epctx_view node, epctx_arena *arena,
                                                const epctx_str **out, size_t *count,
                                                epctx_error *error);
/* The order in which ORT (1.31) hands the nodes of a graph to EPs, as their numbers in the model:
 * depth first, from the last node that no other reads, at each node by the last one that it reads.
 * Nodes of a cycle may be missing. Listed in `arena`. Errors: NOMEM. */
EPCTX_API epctx_status epctx_view_graph_order(epctx_graph_view graph, epctx_arena *arena,
                                              const uint32_t **out, size_t *count,
                                              epctx_error *error);

/* Which inputs of an operator ORT reads while it infers shapes, if they are constants: bits, by
 * position. It reads them from the model only, and refuses a model that has them in a file. */
typedef struct epctx_shape_reader {
    const char *domain;  /* "": ai.onnx */
    const char *op_type; /* the operator */
    uint32_t reads;      /* bits of the inputs that some version of the operator reads */
    uint32_t sure;       /* of these, those that every version reads once they are all constants */
    bool always;         /* true: whatever input 0 is; false: only if its shape is known */
} epctx_shape_reader;

/* NULL: it reads none. */
EPCTX_API const epctx_shape_reader *epctx_shape_reader_of(epctx_str domain, epctx_str op_type);
/* Adds the names of all values that such inputs have, in any graph of the model, also of constants
 * that come there through Identity, Cast or calls of functions: of initializers and Constant nodes
 * that must stay in the model. Errors: NOMEM. */
EPCTX_API epctx_status epctx_model_shape_names(const epctx_model *model, epctx_map *names,
                                               epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>record: a graph as plain structs
 *
 * What a backend compiles: made by epctx_model_load_graph, or by an EP from its own graph objects
 * (ORT's OrtGraph). All pointers are borrowed from the maker of the record.
 * ============================================================ */

/* AttributeProto.AttributeType: "FLOAT", "TENSORS" ... or "unknown". */
EPCTX_API const char *epctx_attr_type_name(int32_t attr_type);

typedef struct epctx_value {
    epctx_str name;
    int32_t elem_type;   /* 0 unknown or not a tensor */
    int32_t rank;        /* -1 unknown */
    const int64_t *dims; /* -1 where not fixed */
} epctx_value;

typedef struct epctx_tensor {
    epctx_str name;
    int32_t elem_type;
    int32_t rank;
    const int64_t *dims;
    const uint8_t *data; /* packed, little-endian, maybe unaligned; NULL: not loaded */
    size_t size;
    epctx_str location;  /* the external data file; empty: the model itself */
    uint64_t offset;     /* of the data in that file; 0 if the data is not contiguous */
    uint64_t extra_hash; /* hash of elements that `data` cannot represent: strings, typed fields of
                           sub-byte types; 0: none */
} epctx_tensor;

/* onnx.proto AttributeProto.AttributeType. */
typedef enum epctx_attr_type {
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
    const struct epctx_graph *g; /* NULL: nested deeper than 8 graphs, or not known */
    size_t count;                /* of ints, floats or strings, by `type` */
    const int64_t *ints;
    const float *floats;
    const epctx_str *strings;
} epctx_attr;

typedef struct epctx_node {
    epctx_str name, op_type, domain; /* domain "" is ai.onnx */
    int64_t version;                 /* of its opset; 0 unknown */
    const epctx_str *inputs;         /* an empty name: an omitted optional input */
    size_t input_count;
    const epctx_str *outputs;
    size_t output_count;
    const epctx_attr *attrs;
    size_t attr_count;
    const epctx_str *captures; /* outer values that its subgraphs read */
    size_t capture_count;
    uint32_t id; /* position in the source graph, which need not be sorted */
    uint64_t
        extra_hash; /* hash of what no member holds: subgraphs and other attributes, functions that
                      it calls; 0: nothing */
} epctx_node;

typedef struct epctx_graph {
    epctx_str name;
    const epctx_node *nodes; /* producers before readers */
    size_t node_count;
    const epctx_value *inputs; /* run-time inputs, without constant initializers */
    size_t input_count;
    const epctx_value *outputs;
    size_t output_count;
    const epctx_tensor *initializers; /* constants only: overridable ones are inputs */
    size_t initializer_count;
    const epctx_value *values; /* types of inner values, as far as known */
    size_t value_count;
} epctx_graph;

/* Attribute by name, or NULL. */
EPCTX_API const epctx_attr *epctx_node_attr(const epctx_node *node, const char *name);
/* The same, for an attribute that must have this type: *out is NULL when it is absent.
 * EPCTX_ERR_GRAPH names node and attribute when it has another type. */
EPCTX_API epctx_status epctx_node_get_attr(const epctx_node *node, const char *name,
                                           epctx_attr_type type, const epctx_attr **out,
                                           epctx_error *error);
/* The value of an attribute, or `fallback` when absent or of another type. */
EPCTX_API int64_t epctx_node_int(const epctx_node *node, const char *name, int64_t fallback);
EPCTX_API float epctx_node_float(const epctx_node *node, const char *name, float fallback);

#ifndef EPCTX_NO_WIRE
/* The main graph: names, types, attributes, initializer bytes (typed fields converted to raw,
 * external data mapped from its folder). Valid until the model is closed. GRAPH: malformed tensor,
 * cycle, no graph. PATH, NOT_FOUND: external data. LIMIT: tensors overlap there and exceed 1 GiB
 * plus 16 times the size of the files. */
EPCTX_API epctx_status epctx_model_load_graph(epctx_model *model, epctx_graph *out,
                                              epctx_error *error);
/* Loads one tensor as epctx_model_load_graph loads initializers. out->data is NULL for strings and
 * typed fields of sub-byte types. `arena` (NULL: the model's) receives converted data. */
EPCTX_API epctx_status epctx_model_load_tensor(epctx_model *model, epctx_view tensor,
                                               epctx_arena *arena, epctx_tensor *out,
                                               epctx_error *error);
/* Maps the file `name` in `folder`, each file once, until the model is closed. */
EPCTX_API epctx_status epctx_model_map_file(epctx_model *model, epctx_str folder, epctx_str name,
                                            epctx_span *bytes, epctx_error *error);
#endif

/* ============================================================
 * >>epnode: one EPContext node (com.microsoft, since version 1)
 * ============================================================ */

#define EPCTX_OP_TYPE "EPContext"
#define EPCTX_DOMAIN  "com.microsoft"
/* Our own attribute: which weights a weightless context takes from the source model (>>ep). */
#define EPCTX_WEIGHTS_ATTR "epctx_weights"

/* The ten attributes of the schema: name, AttributeType, member of epctx_epnode. */
#define EPCTX_EPNODE_ATTR_LIST(X) \
    X(MAIN_CONTEXT, "main_context", INT, main_context) \
    X(EP_CACHE_CONTEXT, "ep_cache_context", STRING, ep_cache_context) \
    X(EMBED_MODE, "embed_mode", INT, embed_mode) \
    X(EP_SDK_VERSION, "ep_sdk_version", STRING, ep_sdk_version) \
    X(ONNX_MODEL_FILENAME, "onnx_model_filename", STRING, onnx_model_filename) \
    X(HARDWARE_ARCHITECTURE, "hardware_architecture", STRING, hardware_architecture) \
    X(PARTITION_NAME, "partition_name", STRING, partition_name) \
    X(SOURCE, "source", STRING, source) \
    X(NOTES, "notes", STRING, notes) \
    X(MAX_SIZE, "max_size", INT, max_size)

typedef enum epctx_epnode_attr {
#define EPCTX__EPNODE_ENUM(id, name, type, member) EPCTX_EPNODE_##id,
    EPCTX_EPNODE_ATTR_LIST(EPCTX__EPNODE_ENUM)
#undef EPCTX__EPNODE_ENUM
        EPCTX_EPNODE_ATTR_COUNT
} epctx_epnode_attr;

/* Attributes of an EPContext node. Bit (1u << EPCTX_EPNODE_x) of `present`: stored; else the member
 * has the schema default (main_context 1, embed_mode 1, max_size 0, strings empty). For writing,
 * the bits matter only to store a default: another value is stored in any case. ep_cache_context is
 * the payload (any bytes) or the path, depending on embed_mode. */
typedef struct epctx_epnode {
    epctx_str name; /* of the node */
    uint32_t present;
    int64_t main_context, embed_mode, max_size;
    epctx_str ep_cache_context;
    epctx_str ep_sdk_version, onnx_model_filename, hardware_architecture;
    epctx_str partition_name, source, notes;
} epctx_epnode;

/* Nothing present, every member at its default: what to begin with. */
EPCTX_API epctx_epnode epctx_epnode_default(void);
/* The attributes to store, in schema order, borrowed from `node`, as for OrtApi::CreateOpAttr and
 * epctx_edit_put_node; returns how many. */
EPCTX_API size_t epctx_epnode_attrs(const epctx_epnode *node,
                                    epctx_attr out[EPCTX_EPNODE_ATTR_COUNT]);
/* Reads the attributes of a record. EPCTX_ERR_GRAPH names an attribute of a wrong type or with a
 * value other than 0 and 1 (main_context, embed_mode). */
EPCTX_API epctx_status epctx_epnode_from_record(const epctx_node *record, epctx_epnode *out,
                                                epctx_error *error);
#ifndef EPCTX_NO_WIRE
/* op_type EPContext in domain com.microsoft. */
EPCTX_API bool epctx_view_is_epnode(const epctx_node_view *node);
/* Parses an EPContext node of an open model, as epctx_epnode_from_record parses a record. */
EPCTX_API epctx_status epctx_view_read_epnode(const epctx_node_view *node, epctx_epnode *out,
                                              epctx_error *error);
#endif

/* ============================================================
 * >>profile: what each EP accepts
 *
 * The design document leaves much open, and EPs differ. A profile describes what one EP accepts;
 * everything that checks or changes EPContext nodes consults it.
 * ============================================================ */

/* The key of a node's graph in a context of several graphs. */
typedef enum epctx_key {
    EPCTX_KEY_NONE = 0,  /* one graph per context */
    EPCTX_KEY_NODE_NAME, /* renaming a node breaks it */
    EPCTX_KEY_PARTITION  /* the attribute partition_name */
} epctx_key;

/* Bits of epctx_profile.traits. */
#define EPCTX_TRAIT_ANY_CASE          0x001u   /* `source` is compared without regard to case */
#define EPCTX_TRAIT_NO_SOURCE         0x002u   /* accepts nodes without `source` */
#define EPCTX_TRAIT_OWN_SOURCE        0x004u   /* any source: the EP's registration name decides */
#define EPCTX_TRAIT_STATIC_SHAPES     0x008u   /* no dynamic dimensions */
#define EPCTX_TRAIT_ONE_NODE          0x010u   /* the graph must be one node */
#define EPCTX_TRAIT_NO_MIX            0x020u   /* one embed mode per model */
#define EPCTX_TRAIT_ONE_PRIMARY       0x040u   /* exactly one primary node */
#define EPCTX_TRAIT_SECONDARY_CONTEXT 0x080u   /* main_context 0 with its own context is normal */
#define EPCTX_TRAIT_NO_DOTS           0x100u   /* refuses ".." anywhere in a path, also in "a..b" */
#define EPCTX_TRAIT_EMBED_ONE         0x200u   /* embedded: one partition only */
#define EPCTX_TRAIT_ONLY_EMBEDDED     0x400u   /* reads no file */
#define EPCTX_TRAIT_IO_NAMES          0x800u   /* matches inputs and outputs by value name */
#define EPCTX_TRAIT_ALL_NAME          0x1000u  /* in a file: every node is primary and names it */
#define EPCTX_TRAIT_ANY_EP            0x2000u  /* generic: for EPs without a profile */
#define EPCTX_TRAIT_STATIC_OUTPUTS    0x4000u  /* no dynamic outputs either, though inputs tell */
#define EPCTX_TRAIT_XML_PAIR          0x8000u  /* *.xml is an OpenVINO IR, beside its .bin */
#define EPCTX_TRAIT_STRIPPED_ENGINE   0x10000u /* *.stripped.engine has no weights */
#define EPCTX_TRAIT_EACH_CONTEXT      0x20000u /* a node never uses a primary node's context */
#define EPCTX_TRAIT_EMBEDS            0x40000u /* embed_mode is 1 unless the user sets it */
#define EPCTX_TRAIT_CONTEXT_FOLDER    0x80000u /* an existing ep.context_file_path is a folder */
#define EPCTX_TRAIT_ANY_MAIN          0x100000u /* in a file: main_context is not looked at */
#define EPCTX_TRAIT_ONE_CONTEXT       0x200000u /* all nodes share one context, but *.xml */
#define EPCTX_TRAIT_IO_OVERRIDES      0x400000u /* matches io by io_name_overrides, or position */

/* Values of ORT's OrtCompiledModelCompatibility. */
typedef enum epctx_compat {
    EPCTX_COMPAT_NOT_APPLICABLE = 0, /* not a string of this EP */
    EPCTX_COMPAT_OPTIMAL = 1,
    EPCTX_COMPAT_PREFER_RECOMPILATION = 2,
    EPCTX_COMPAT_UNSUPPORTED = 3
} epctx_compat;

/* One EP; you may define your own. Strings are borrowed while it is used. */
typedef struct epctx_profile {
    const char *name;       /* "qnn" */
    const char *sources[4]; /* accepted values of `source`; the first is what the EP writes */
    uint32_t traits;        /* EPCTX_TRAIT_ANY_CASE ... */
    epctx_key key;
    uint32_t required;       /* 1u << EPCTX_EPNODE_x: must be stored in every node */
    const char *binary;      /* name of its binary; {stem}: context model without extension,
                                {model}: without _ctx too, {file}: with extension, *: anything */
    const char *sidecars[4]; /* files beside the model without an attribute; patterns as above */
    const char *attribute;   /* only its nodes have it, which tells them from those of another
                                profile with the same sources; NULL: nothing does */
    /* The EP's own rule for its compatibility strings, as epctx_compat_compare says; NULL: key by
     * key. Both have 1 to 4096 bytes, any. `*why`: static text that names the deciding field; "" is
     * there, and NULL counts as "". An answer that is no epctx_compat is NOT_APPLICABLE. May be
     * called by several threads. */
    epctx_compat (*compat_fn)(const struct epctx_profile *profile, epctx_str model,
                              epctx_str runtime, const char **why);
} epctx_profile;

/* The profiles: the built-in ones, or those of the function that EPCTX_PROFILES names. The last one
 * is generic, the design document to the letter. */
EPCTX_API const epctx_profile *epctx_profiles(size_t *count);
/* The built-in profiles: static. */
EPCTX_API const epctx_profile *epctx_profiles_built_in(size_t *count);
/* Profile by name, or NULL. */
EPCTX_API const epctx_profile *epctx_profile_find(epctx_str name);
/* Profile for a `source`, in any case; else generic. */
EPCTX_API const epctx_profile *epctx_profile_of(epctx_str source);
/* Profile for a `source` where the caller has named an EP: `wanted` is for that EP's nodes and for
 * those whose source tells no EP with a profile; a node of another EP keeps that EP's rules. NULL:
 * as above. */
EPCTX_API const epctx_profile *epctx_profile_for(const epctx_profile *wanted, epctx_str source);
/* EPCTX_ERR_CONTEXT, with what the file is and the cure, if a file that was identified is surely no
 * context of the EP. An EP of which nothing is known may have archives or documents as contexts. */
EPCTX_API epctx_status epctx_profile_check_binary(const epctx_profile *profile,
                                                  const epctx_binary_id *id, epctx_error *error);
#ifndef EPCTX_NO_WIRE
/* epctx_profile_for a node, which may tell of which EP with its `source` it is. */
EPCTX_API const epctx_profile *epctx_profile_of_node(const epctx_profile *wanted,
                                                     const epctx_node_view *node);
#endif

/* Prefix of the metadata_props key "ep_compatibility_info.<EP>". */
#define EPCTX_COMPAT_PREFIX "ep_compatibility_info."

/* Can a model with the string `model` run where the EP writes `runtime`? Only UNSUPPORTED prevents
 * an ORT session. The profile's compat_fn decides; without one, or without a profile:
 *   Strings of epctx_backend_compatibility: another source is NOT_APPLICABLE, another architecture
 *   or major SDK version UNSUPPORTED, another minor version PREFER_RECOMPILATION.
 *   "name;key=value;..." with the same name and keys: another architecture is UNSUPPORTED, other
 *   values PREFER_RECOMPILATION. Anything else is NOT_APPLICABLE.
 * The message of `why` (may be NULL) names the deciding field. */
EPCTX_API epctx_compat epctx_compat_compare(const epctx_profile *profile, epctx_str model,
                                            epctx_str runtime, epctx_error *why);

/* Whether an EP takes a node. */
typedef enum epctx_claim {
    EPCTX_CLAIM_NO = 0, /* for another EP */
    EPCTX_CLAIM_YES,
    EPCTX_CLAIM_SPELLING, /* differs in case, which this EP does not accept */
    EPCTX_CLAIM_MISSING   /* no source, but this EP requires one */
} epctx_claim;

/* Compares the node's `source` by the rules of the profile. */
EPCTX_API epctx_claim epctx_profile_claims(const epctx_profile *profile, const epctx_epnode *node);

/* Before a node is written: can it ever be loaded? `own`: its attributes besides those of the
 * schema; `arena`: room to work.
 *   main_context, embed_mode  0 or 1
 *   source                    not empty
 *   ep_cache_context          there, if the node is primary (QNN's ep_dlc_context will do); with
 *                             embed_mode 0 a name that epctx_path_check takes. A secondary node has
 *                             none, unless the profile of its EP says that it is read
 *   own                       each once, with a value, and a name that the schema does not have;
 *                             EPCTX_WEIGHTS_ATTR is a STRING
 * EPCTX_ERR_BACKEND names node, attribute, what is expected and found. */
EPCTX_API epctx_status epctx_epnode_check(const epctx_epnode *node, const epctx_attr *own,
                                          size_t own_count, epctx_arena *arena, epctx_error *error);
/* epctx_path_base as the EP does it: for one that looks (EPCTX_TRAIT_CONTEXT_FOLDER), an existing
 * folder as `context_file_path` (NULL or "": not set) is meant itself; `room` holds `folder`. */
EPCTX_API epctx_status epctx_profile_path_base(const epctx_profile *profile, const epctx_io *io,
                                               epctx_str model_path, const char *context_file_path,
                                               char room[EPCTX_PATH_MAX], epctx_str *folder,
                                               epctx_error *error);
/* Whether a file name matches a pattern of a profile (`binary`, `sidecars`); `model` is the context
 * model's file name. One '*' matches anything; what follows it is literal. */
EPCTX_API bool epctx_profile_name_fits(const char *pattern, epctx_str name, epctx_str model);
/* Makes a file name from a pattern. With a `node`, {node} is its name in portable characters. With
 * a `profile` as well, * is the short name of the EP or, with EPCTX_TRAIT_EACH_CONTEXT, the node's
 * key. ARG: another word in {}; LIMIT. */
EPCTX_API epctx_status epctx_profile_fill_name(const char *pattern, const epctx_profile *profile,
                                               const epctx_epnode *node, epctx_str model, char *out,
                                               size_t capacity, epctx_error *error);

/* ============================================================
 * >>option: session options
 *
 * Applications request EPContext models through ORT's session configuration entries, pairs of
 * strings. In CreateEp, an EP hands those that ORT lists to epctx_options_read.
 * ============================================================ */

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
#define EPCTX_PHASE_NONE     0u /* not an EPContext option, but often mistaken for one */
#define EPCTX_PHASE_GENERATE 1u
#define EPCTX_PHASE_LOAD     2u
#define EPCTX_PHASE_BOTH     3u

/* Every option: symbol, key, ORT's constant without "kOrtSessionOption" ("": ours), type, default,
 * phase, meaning. */
/* -- facts: options -- */
/* Made of examples/epctx/facts/options.facts by `make facts`. */
/* clang-format off */
#define EPCTX_OPTION_LIST(X) \
    X(CONTEXT_ENABLE, "ep.context_enable", "EpContextEnable", SWITCH, "0", GENERATE, \
      "write an EPContext model") \
    X(CONTEXT_FILE_PATH, "ep.context_file_path", "EpContextFilePath", FILE, "", BOTH, \
      "the EPContext model; default <model>_ctx.onnx. Loading from memory: its folder has the " \
      "binaries") \
    X(CONTEXT_EMBED_MODE, "ep.context_embed_mode", "EpContextEmbedMode", SWITCH, "0", GENERATE, \
      "1: the binary goes into the model, 0: into a file of its own") \
    X(CONTEXT_NODE_NAME_PREFIX, "ep.context_node_name_prefix", "EpContextNodeNamePrefix", TEXT, \
      "", GENERATE, "goes before node name, partition_name and graph name") \
    X(SHARE_EP_CONTEXTS, "ep.share_ep_contexts", "ShareEpContexts", SWITCH, "0", BOTH, \
      "share one context with the other sessions of the group") \
    X(STOP_SHARE_EP_CONTEXTS, "ep.stop_share_ep_contexts", "StopShareEpContexts", SWITCH, "0", \
      BOTH, "the last session of the group") \
    X(EXTERNAL_INITIALIZERS_FILE, "ep.context_model_external_initializers_file_name", \
      "sEpContextModelExternalInitializersFileName", NAME, "", GENERATE, \
      "file beside the EPContext model for all its initializers; default: inside the model") \
    X(EXTERNAL_INITIALIZERS_FOLDER, "session.model_external_initializers_file_folder_path", \
      "sModelExternalInitializersFileFolderPath", FOLDER, "", BOTH, \
      "folder of the source's external data; default: the model's") \
    X(WEIGHTLESS_NODES, "ep.enable_weightless_ep_context_nodes", \
      "EpEnableWeightlessEpContextNodes", SWITCH, "0", GENERATE, \
      "former name of ep.enable_weightless, external initializers only") \
    X(WEIGHTLESS, "ep.enable_weightless", "EpEnableWeightless", SWITCH, "0", BOTH, \
      "EPContext nodes take the weights as inputs") \
    X(SOURCE_MODEL_PATH, "ep.context_source_model_path", "EpContextSourceModelPath", FILE, "", \
      LOAD, "the source model, for the weights of a weightless EPContext model") \
    X(DISABLE_MODEL_COMPILE, "session.disable_model_compile", "sDisableModelCompile", SWITCH, "0", \
      LOAD, "a model that would have to be compiled is an error") \
    X(FAIL_ON_SUBOPTIMAL, "session.fail_on_suboptimal_compiled_model", \
      "sFailOnSuboptimalCompiledModel", SWITCH, "0", LOAD, \
      "a model that should better be compiled again is an error") \
    X(COMPILE_ONLY, "session.compile_only", "CompileOnly", SWITCH, "0", GENERATE, \
      "the session will not run; set by ORT's compile API, not by users") \
    X(DISABLE_CPU_FALLBACK, "session.disable_cpu_ep_fallback", "sDisableCPUEPFallback", SWITCH, \
      "0", BOTH, "a node left to the CPU is an error") \
    X(RECORD_ASSIGNMENT, "session.record_ep_graph_assignment_info", \
      "sRecordEpGraphAssignmentInfo", SWITCH, "0", BOTH, "ORT remembers which EP took which node") \
    X(OPTIMIZED_MODEL_PATH, "session.optimized_model_filepath", "sConfigOptimizedModelFilePath", \
      FILE, "", NONE, "ORT's optimized model, not the EPContext model") \
    X(OPTIMIZED_MODEL_FILE, "session.optimized_model_external_initializers_file_name", \
      "sOptimizedModelExternalInitializersFileName", NAME, "", NONE, \
      "initializers of ORT's optimized model") \
    X(OPTIMIZED_MODEL_SIZE, "session.optimized_model_external_initializers_min_size_in_bytes", \
      "sOptimizedModelExternalInitializersMinSizeInBytes", NUMBER, "1024", NONE, \
      "initializers of ORT's optimized model") \
    X(OVERWRITE, "epctx.overwrite", "", SWITCH, "0", GENERATE, "replace outputs that exist") \
    X(NO_NODES, "epctx.no_nodes", "", CHOICE, "error", GENERATE, \
      "when no node was compiled: error, copy (of the source model), nothing (is written)")
/* clang-format on */
/* -- end of facts -- */

typedef enum epctx_option {
#define EPCTX__OPTION_ENUM(id, key, ort, type, fallback, phase, text) EPCTX_OPTION_##id,
    EPCTX_OPTION_LIST(EPCTX__OPTION_ENUM)
#undef EPCTX__OPTION_ENUM
        EPCTX_OPTION_COUNT
} epctx_option;

/* What generation does when no node can be compiled: the words of epctx.no_nodes. */
typedef enum epctx_no_nodes {
    EPCTX_NO_NODES_ERROR = 0, /* EPCTX_ERR_NO_NODES, nothing written */
    EPCTX_NO_NODES_COPY,      /* the source model under the output's name */
    EPCTX_NO_NODES_NOTHING    /* success, nothing written */
} epctx_no_nodes;

/* An option; static strings. `ort` and `phases` as in the list. */
typedef struct epctx_option_info {
    const char *key;
    const char *ort;
    epctx_option_type type;
    const char *fallback; /* the default; "" for texts: not set */
    const char *allowed;  /* CHOICE, SWITCH: the words, separated by spaces; else "" */
    uint32_t phases;
    const char *text;
} epctx_option_info;

/* All options, in the order of the enum. Static. */
EPCTX_API const epctx_option_info *epctx_option_list(size_t *count);

/* Options of one session; zeroed: all defaults. Values set directly are borrowed; the functions
 * below copy into `arena`. */
typedef struct epctx_options {
    const char *values[EPCTX_OPTION_COUNT]; /* NULL: not set */
    const epctx_profile *profile;           /* its defaults apply to unset values; may be NULL */
    epctx_arena *arena;                     /* borrowed; may be NULL if nothing is parsed */
} epctx_options;

/* Nothing set; borrows `arena`. */
EPCTX_API void epctx_options_init(epctx_options *options, epctx_arena *arena);

/* Sets one option to a copy of the value; the last one counts. EPCTX_ERR_ARG: a value that the type
 * does not allow, or a key that looks like one of this table but is not in it (the message suggests
 * the nearest): "epctx.x", "ep.x" without a further dot ("ep.qnn.x" is that EP's), a key one or two
 * letters off, and provider options with the same purpose ("trt_ep_context_embed_mode"). Other keys
 * are ignored. */
EPCTX_API epctx_status epctx_options_set(epctx_options *options, epctx_str key, epctx_str value,
                                         epctx_error *error);
/* ORT's command line form: "key|value key|value", no spaces in values. EPCTX_ERR_ARG: a key occurs
 * twice. On failure nothing is set. */
EPCTX_API epctx_status epctx_options_set_list(epctx_options *options, const char *list,
                                              epctx_error *error);
/* The name (of `names`, NULL at the end) nearest to `word` if at most a third of the letters
 * differ, else NULL. For messages about unknown names. */
EPCTX_API const char *epctx_nearest_name(epctx_str word, const char *const *names);

/* Whether it was set. `options` may be NULL here and below. */
EPCTX_API bool epctx_option_given(const epctx_options *options, epctx_option option);
/* The effective value: as set, else the profile's default (embed mode), else the option's; "" if
 * there is none. */
EPCTX_API const char *epctx_option_text(const epctx_options *options, epctx_option option);
/* Whether the effective value is "1". */
EPCTX_API bool epctx_option_on(const epctx_options *options, epctx_option option);

/* Checks values and combinations that a phase (EPCTX_PHASE_GENERATE or _LOAD) needs. `model_path`:
 * empty or NULL for a model from memory. EPCTX_ERR_ARG names the options to change. */
EPCTX_API epctx_status epctx_options_check(const epctx_options *options, uint32_t phase,
                                           const char *model_path, epctx_error *error);

/* What an application asks of a session: its configuration entries, as ORT lists them. Borrowed. */
typedef struct epctx_entries {
    const char *const *keys, *const *values; /* `count` of each */
    size_t count;                            /* of the entries */
    const char *ep_name;    /* the EP's own options are "ep.<name in lower case>.<option>" */
    const char *const *own; /* the names of these, NULL at the end; NULL: there are none */
} epctx_entries;

/* Reads the options of a session, in CreateEp; `options` were initialized with an arena. Its phase
 * is GENERATE if ep.context_enable is 1 (as in ORT), else LOAD. EPCTX_ERR_ARG: a value or a
 * combination that the phase needs is wrong, or an option of the EP's own is not among them.
 * Warnings (hooks->log_fn): a wrong value that it does not need, which stays unset; a combination
 * that only GENERATE needs; a key that epctx_options_set would refuse. Left to ORT, which answers
 * with codes of its own: session.disable_model_compile, and a folder as ep.context_file_path. */
EPCTX_API epctx_status epctx_options_read(epctx_options *options, const epctx_entries *entries,
                                          const epctx_hooks *hooks, epctx_error *error);

/* ============================================================
 * >>state: the files of a model
 * ============================================================ */

#ifndef EPCTX_NO_WIRE

/* Where to look for the files of a model. */
typedef struct epctx_check_opts {
    const char *context_file_path; /* ep.context_file_path: binaries are in its folder; default: the
                                      model's folder */
    const char *external_folder;   /* session.model_external_initializers_file_folder_path; default:
                                      as when the model was opened */
    uint32_t path_flags;           /* EPCTX_PATH_HUGGING_FACE */
    bool no_files;                 /* access no file */
    const epctx_profile *profile;  /* of the EP that will load it; default: by each source */
    const epctx_allocator *allocator; /* default malloc */
} epctx_check_opts;

typedef enum epctx_file_use {
    EPCTX_USE_CONTEXT = 0,
    EPCTX_USE_INITIALIZERS,
    EPCTX_USE_SOURCE_MODEL, /* onnx_model_filename; required by weightless and stripped contexts */
    EPCTX_USE_COMPANION     /* belongs to another file, as the .bin of an OpenVINO .xml */
} epctx_file_use;

/* A file that a model depends on. */
typedef struct epctx_dependency {
    epctx_file_use use;
    bool required;         /* loading fails without it */
    epctx_str name;        /* as stored */
    epctx_str node;        /* the first node or initializer that names it */
    const char *attribute; /* "ep_cache_context", "location", "onnx_model_filename" */
    uint64_t users;        /* how many name it */
    const char *folder;    /* searched; "" the current one, NULL unknown */
    const char *path;      /* canonical; NULL: unusable */
    uint64_t size;
    epctx_status status; /* why it is unusable */
    const char *problem; /* the same in words, or NULL */
} epctx_dependency;

/* At most so many files of one sidecar pattern are listed, first by name. */
#define EPCTX_MATCH_MAX 64

/* Every file a model depends on, each once, in `arena`. Sidecars are listed if they exist; a
 * pattern gives the matching files by name, or itself (EPCTX_ERR_UNSUPPORTED) if the io cannot
 * list folders. */
EPCTX_API epctx_status epctx_model_files(const epctx_model *model, const epctx_check_opts *opts,
                                         epctx_arena *arena, epctx_dependency **out, size_t *count,
                                         epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>scan: EPContext nodes in constant memory
 *
 * For firmware and models outside of memory: one pass with the grammar of
 * epctx_model_open_file,
 * payloads skipped. The state is an epctx_scan, at most 1.5 KiB.
 * ============================================================ */

#ifndef EPCTX_NO_WIRE

/* Random-access bytes: SPI flash, a file. read_fn fills `out` with exactly `size` bytes from
 * `offset` on, or returns false. */
typedef struct epctx_reader {
    void *user;
    bool (*read_fn)(void *user, uint64_t offset, void *out, size_t size);
    uint64_t size; /* of the whole model */
} epctx_reader;

/* A place in the model. */
typedef struct epctx_range {
    uint64_t offset, length;
} epctx_range;

typedef enum epctx_scan_event {
    EPCTX_SCAN_END = 0,  /* the whole model is well formed */
    EPCTX_SCAN_EPNODE,   /* `node`, `ranges`, `broken`, `depth` */
    EPCTX_SCAN_METADATA, /* `key`, `value`, `ranges[0]` and `[1]` of the same */
    EPCTX_SCAN_EXTERNAL, /* a tensor with external data, at any depth: `key` is its name, `value`
                            the location; `data`, `location`, `depth` */
    EPCTX_SCAN_FAILED    /* see the error */
} epctx_scan_event;

/* Levels of nesting; if below 100, libprotobuf's limit, deeper models are EPCTX_ERR_LIMIT.
 * Attributes of the main graph's nodes need 3, value types up to 8, each subgraph around a node 3
 * more. A level takes 6 bytes, every third one 11. */
#ifndef EPCTX_SCAN_DEPTH
#define EPCTX_SCAN_DEPTH 100
#endif

/* Bytes for the strings of one event. A string that does not fit has its range only (data NULL). In
 * an EPContext node the name, source and partition_name take precedence: for them strings are
 * dropped in the order notes, onnx_model_filename, ep_cache_context, hardware_architecture,
 * ep_sdk_version, and for the source also the partition_name. */
#ifndef EPCTX_SCAN_TEXT
#define EPCTX_SCAN_TEXT 192
#endif

#if EPCTX_SCAN_DEPTH < 4 || EPCTX_SCAN_DEPTH > 100 || EPCTX_SCAN_TEXT < 1 || EPCTX_SCAN_TEXT > 65534
#error "epctx.h: EPCTX_SCAN_DEPTH is 4 to 100, EPCTX_SCAN_TEXT 1 to 65534"
#endif

/* Files with different settings have different epctx_scan: they must not link. */
#if EPCTX_SCAN_DEPTH != 100 || EPCTX_SCAN_TEXT != 192
#define EPCTX__SCAN_JOIN(name, depth, text)  name##_##depth##_##text
#define EPCTX__SCAN_SIZED(name, depth, text) EPCTX__SCAN_JOIN(name, depth, text)

#define EPCTX__SCAN_NAME(name)  EPCTX__SCAN_SIZED(name, EPCTX_SCAN_DEPTH, EPCTX_SCAN_TEXT)
#define epctx_scan_begin        EPCTX__SCAN_NAME(epctx_scan_begin)
#define epctx_scan_begin_stream EPCTX__SCAN_NAME(epctx_scan_begin_stream_of)
#endif

/* Private: an attribute or external_data entry; name and value come in any order. */
typedef struct epctx__scan_part {
    uint16_t mark, size; /* of its string in `text`; size UINT16_MAX: none, or too long */
    uint8_t word, type;
} epctx__scan_part;

/* A scan and its last event. Do not copy: strings point into it. Private from `stream` on. */
typedef struct epctx_scan {
    epctx_epnode node; /* effective values; strings that do not fit are empty */
    epctx_range
        ranges[EPCTX_EPNODE_ATTR_COUNT]; /* of the strings; EP_CACHE_CONTEXT: of the payload */
    epctx_str key, value;
    epctx_range data;     /* in the file `value`; length UINT64_MAX: to its end */
    epctx_range location; /* of `value` in the model */
    uint32_t node_count;  /* of all nodes so far */
    uint32_t epnode_count;
    uint32_t depth; /* nodes around it; 0: in the main graph or a function */
    bool broken;    /* wrong domain, or attribute of wrong type or value */
    bool stream;    /* `reader` reads a pb_istream_t */
    bool external, flat;
    epctx_reader reader;
    uint64_t at, end; /* position; end of the innermost message */
    epctx__scan_part attr, entry;
    epctx_status status;
    const char *reason;
    uint8_t levels, nodes; /* that are open */
    uint8_t owner;         /* `nodes` at the node whose state this is */
    uint8_t buffer_at, buffer_size;
    uint16_t text_used, tensor_mark;     /* in `text` */
    uint32_t ends_low[EPCTX_SCAN_DEPTH]; /* around the open messages; the number of open groups */
    uint32_t starts_low[(EPCTX_SCAN_DEPTH + 2) / 3]; /* of open nodes */
    uint8_t ends_high[EPCTX_SCAN_DEPTH];
    uint8_t starts_high[(EPCTX_SCAN_DEPTH + 2) / 3];
    uint8_t kinds[EPCTX_SCAN_DEPTH + 1];
    uint8_t buffer[EPCTX_SCAN_TEXT < 128 ? 8 : 24];
    char text[EPCTX_SCAN_TEXT];
} epctx_scan;

/* Starts a scan; copies the reader. */
EPCTX_API void epctx_scan_begin(epctx_scan *scan, const epctx_reader *reader);
/* Starts a scan of a nanopb stream at its current position (ranges are relative to it). An
 * EPContext node with a subgraph is EPCTX_ERR_UNSUPPORTED: a stream cannot go back. */
EPCTX_API void epctx_scan_begin_stream(epctx_scan *scan, pb_istream_t *stream);
/* The next event; END and FAILED repeat. */
EPCTX_API epctx_scan_event epctx_scan_next(epctx_scan *scan, epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>edit: change a model, write it
 * ============================================================ */

#ifndef EPCTX_NO_EDIT

/* -- edits --
 *
 * An edit takes a view of any message of the model; views made afterwards show it. Older views stay
 * readable and still locate their field while it exists. A failed edit leaves the model unchanged.
 *
 * Names and other text are copied into the model's arena. Payloads are borrowed and must stay valid
 * until the model is closed: values of STRING and STRINGS attributes, tensor data, copies of views
 * and of bytes.
 *
 * A new field goes behind the field `after`. If that is an empty view, it goes behind the last
 * field of its number; if it is the view of the message that gets the field, before the first.
 * `placed` (may be NULL) gets the view of the new field: to add many quickly, pass it as the next
 * `after`.
 *
 * Errors: ARG for a view of another model, a removed one or the wrong kind of message; GRAPH when
 * a singular field occurs twice (such a model is read-only); LIMIT when messages would be nested
 * too deep; NOMEM. */

/* A model with an empty graph. */
EPCTX_API epctx_status epctx_model_new(epctx_model *model, int64_t ir_version,
                                       const epctx_open_opts *opts, epctx_error *error);

/* Undo reverts every edit since the mark, to the byte. */
EPCTX_API size_t epctx_edit_mark(const epctx_model *model);
EPCTX_API void epctx_edit_undo(epctx_model *model, size_t mark);

/* Makes an older view show later edits; `parent` (may be NULL) gets the message around it, an empty
 * view for the ModelProto. */
EPCTX_API epctx_status epctx_edit_refresh(epctx_model *model, epctx_view *view, epctx_view *parent,
                                          epctx_error *error);
/* Removes the field that holds `view`. */
EPCTX_API epctx_status epctx_edit_remove(epctx_model *model, epctx_view view, epctx_error *error);
/* Moves a field within its message. */
EPCTX_API epctx_status epctx_edit_move(epctx_model *model, epctx_view view, epctx_view after,
                                       epctx_view *placed, epctx_error *error);
/* Adds the current payload of `other` as field `number`: a view of this or another model (which
 * must stay open as long as this one), borrowed bytes ({NULL, data, size}), or none: an empty
 * message. In a TypeProto it replaces a type of another kind. */
EPCTX_API epctx_status epctx_edit_put_copy(epctx_model *model, epctx_view parent, uint32_t number,
                                           epctx_view other, epctx_view after, epctx_view *placed,
                                           epctx_error *error);

/* Sets a string, bytes or integer field by its number in onnx.proto. It replaces the last of
 * several and removes the others and other members of a oneof; an equal single one keeps its bytes.
 * Fields of another wire type are unknown and stay. An over-long length stays so if possible. */
EPCTX_API epctx_status epctx_edit_set_field_str(epctx_model *model, epctx_view message,
                                                uint32_t number, epctx_str text,
                                                epctx_error *error);
EPCTX_API epctx_status epctx_edit_set_field_int(epctx_model *model, epctx_view message,
                                                uint32_t number, int64_t value, epctx_error *error);
/* Removes every field of that number, whatever its wire type. */
EPCTX_API epctx_status epctx_edit_remove_field(epctx_model *model, epctx_view message,
                                               uint32_t number, epctx_error *error);
/* Replaces one string; `field` is the body of its field. */
EPCTX_API epctx_status epctx_edit_replace_str(epctx_model *model, epctx_view field, epctx_str text,
                                              epctx_error *error);

/* Sets an attribute of a node. An existing one keeps its place, doc string and unknown fields; its
 * type may change. Accepts numbers, strings, lists of them, a tensor with data (not of strings), a
 * graph; others are ERR_UNSUPPORTED: copy them. */
EPCTX_API epctx_status epctx_edit_set_attr(epctx_model *model, epctx_view node,
                                           const epctx_attr *attr, epctx_error *error);
/* Copies an attribute from any node of any model. */
EPCTX_API epctx_status epctx_edit_copy_attr(epctx_model *model, epctx_view node, epctx_view attr,
                                            epctx_error *error);
/* Sets one number or (borrowed) string. */
EPCTX_API epctx_status epctx_edit_set_attr_int(epctx_model *model, epctx_view node,
                                               const char *name, int64_t value, epctx_error *error);
EPCTX_API epctx_status epctx_edit_set_attr_str(epctx_model *model, epctx_view node,
                                               const char *name, epctx_str value,
                                               epctx_error *error);
/* Not an error when absent. */
EPCTX_API epctx_status epctx_edit_remove_attr(epctx_model *model, epctx_view node, epctx_str name,
                                              epctx_error *error);

/* Adds a node to a graph or function; here and below an empty view means the main graph. */
EPCTX_API epctx_status epctx_edit_put_node(epctx_model *model, epctx_view graph,
                                           const epctx_node *node, epctx_view after,
                                           epctx_view *placed, epctx_error *error);
/* Adds a value as EPCTX_FIELD_GRAPH_INPUT, _OUTPUT or _VALUE_INFO. elem_type 0: no type. */
EPCTX_API epctx_status epctx_edit_put_value(epctx_model *model, epctx_view graph, uint32_t number,
                                            const epctx_value *value, epctx_view after,
                                            epctx_view *placed, epctx_error *error);
/* Adds an initializer with raw data. */
EPCTX_API epctx_status epctx_edit_put_initializer(epctx_model *model, epctx_view graph,
                                                  const epctx_tensor *tensor, epctx_view after,
                                                  epctx_view *placed, epctx_error *error);

/* Replaces a tensor's data with raw data (borrowed) or a reference to bytes in a file. */
EPCTX_API epctx_status epctx_edit_set_tensor_raw(epctx_model *model, epctx_view tensor,
                                                 epctx_span data, epctx_error *error);
EPCTX_API epctx_status epctx_edit_set_tensor_external(epctx_model *model, epctx_view tensor,
                                                      epctx_str location, uint64_t offset,
                                                      uint64_t length, epctx_error *error);

/* Adds an opset import; does nothing when the domain is already imported. */
EPCTX_API epctx_status epctx_edit_put_opset(epctx_model *model, epctx_str domain, int64_t version,
                                            epctx_error *error);
/* Adds an opset import or changes its version. */
EPCTX_API epctx_status epctx_edit_set_opset(epctx_model *model, epctx_str domain, int64_t version,
                                            epctx_error *error);
/* Not an error when absent. */
EPCTX_API epctx_status epctx_edit_remove_opset(epctx_model *model, epctx_str domain,
                                               epctx_error *error);
/* Sets (in place) or removes a key/value pair: metadata of any message
 * (EPCTX_FIELD_NODE_METADATA_PROPS ...), EPCTX_FIELD_TENSOR_EXTERNAL_DATA. */
EPCTX_API epctx_status epctx_edit_set_pair(epctx_model *model, epctx_view message, uint32_t number,
                                           epctx_str key, epctx_str value, epctx_error *error);
EPCTX_API epctx_status epctx_edit_remove_pair(epctx_model *model, epctx_view message,
                                              uint32_t number, epctx_str key, epctx_error *error);
/* metadata_props of the model. */
EPCTX_API epctx_status epctx_edit_set_metadata(epctx_model *model, epctx_str key, epctx_str value,
                                               epctx_error *error);
EPCTX_API epctx_status epctx_edit_remove_metadata(epctx_model *model, epctx_str key,
                                                  epctx_error *error);

/* A file named in a model, and its new name. */
typedef struct epctx_file_rename {
    epctx_file_use use; /* EPCTX_USE_INITIALIZERS; anything else: a context binary */
    epctx_str from, to;
} epctx_file_rename;

/* Replaces file names: locations of tensors, ep_cache_context and ep_dlc_context of EPContext
 * nodes. Names may be swapped and need not occur. `to` is borrowed until the model is closed. */
EPCTX_API epctx_status epctx_edit_rename_files(epctx_model *model, const epctx_file_rename *renames,
                                               size_t count, epctx_error *error);

/* False while a singular field occurs twice. */
EPCTX_API bool epctx_model_is_editable(const epctx_model *model);
/* Makes singular fields single again: merges messages, otherwise keeps the last field. Calls
 * `doubled_fn` (may be NULL) for each with the name of its node; if that fails, nothing changes. */
typedef epctx_status (*epctx_doubled_fn)(void *user, const epctx_field_info *field, epctx_str node,
                                         epctx_error *error);
EPCTX_API epctx_status epctx_edit_merge_doubled(epctx_model *model, epctx_doubled_fn doubled_fn,
                                                void *user, epctx_error *error);

/* ============================================================
 * >>write: a model as bytes
 * ============================================================ */

/* Exact size of the written model. */
EPCTX_API uint64_t epctx_model_size(epctx_model *model);
/* Writes the model to a nanopb stream. */
EPCTX_API epctx_status epctx_model_write_stream(epctx_model *model, pb_ostream_t *stream,
                                                epctx_error *error);

#endif /* EPCTX_NO_EDIT */

/* ============================================================
 * >>commit: files come into place together or not at all (>>manual, WRITING)
 * ============================================================ */

typedef struct epctx_write_opts {
    epctx_overwrite overwrite;
    bool allow_huge; /* else a model above EPCTX_MODEL_MAX bytes is EPCTX_ERR_LIMIT */
    bool derived;    /* the user did not choose the path: it must not be a link */
    bool dry_run;    /* epctx_model_write_group: only checks */
    char *backup;    /* gets the backup's path, "" without one; may be NULL */
    size_t backup_capacity;
    const epctx_file_lock *lock;      /* the file's lock if the caller holds it; NULL: take it */
    const epctx_allocator *allocator; /* of epctx_write_bytes; default malloc */
} epctx_write_opts;

/* Writes one file, complete and durable or not at all. `opts` NULL: defaults; `io` NULL: files. */
EPCTX_API epctx_status epctx_write_bytes(const epctx_io *io, const char *path, const void *data,
                                         size_t size, const epctx_write_opts *opts,
                                         epctx_error *error);

/* A file written together with others. */
typedef struct epctx_output_file {
    const char *path;        /* terminated */
    const char *name;        /* in the model: relative to its folder, cannot leave it;
                                NULL: the caller chose `path`, which may be a link */
    const epctx_span *parts; /* its bytes in order; data NULL: that many zeros */
    size_t part_count;
    uint64_t size; /* of all parts */
    bool kept;     /* set by the library: it existed with the same bytes */
    bool is_model; /* an ONNX model: comes into place after all other files */
} epctx_output_file;

/* Files that come into place together or not at all (>>manual, WRITING). Entries are checked, then
 * borrowed until the commit is filled or run, models until it is closed; closing without running is
 * a dry run. */
typedef struct epctx_commit {
    /* May be set after epctx_commit_begin: */
    const struct epctx_hooks *hooks;
    const epctx_file_lock *lock; /* held by the caller */
    bool keep;                   /* an existing file with the same bytes stays */
    /* Set after a failure: an old file could not be restored. */
    bool stuck;
    /* Private: */
    const epctx_io *io;
    epctx_arena *arena;
    epctx_error *error;
    const char *folder; /* canonical, with a separator at its end */
    struct epctx__commit_file *files;
    struct epctx__output *placed; /* the last one */
} epctx_commit;

/* `io` NULL: files. Takes about 30 KB of `arena` per written file. */
EPCTX_API epctx_status epctx_commit_begin(epctx_commit *commit, const epctx_io *io,
                                          epctx_arena *arena, epctx_error *error);
/* The folder of epctx_output_file.name. epctx_commit_put_model sets it to the model's. */
EPCTX_API epctx_status epctx_commit_set_folder(epctx_commit *commit, const char *folder,
                                               epctx_error *error);
#ifndef EPCTX_NO_EDIT
/* The commit fails with EPCTX_ERR_CHANGED if `path` is the file that the model was opened from and
 * has been written since. */
EPCTX_API epctx_status epctx_commit_put_model(epctx_commit *commit, epctx_model *model,
                                              const char *path, const epctx_write_opts *opts,
                                              epctx_error *error);
#endif
/* Adds a file. */
EPCTX_API epctx_status epctx_commit_put_file(epctx_commit *commit, epctx_output_file *file,
                                             epctx_overwrite overwrite, epctx_error *error);
/* Removes the file `name` of the commit's folder once all others are in place. */
EPCTX_API epctx_status epctx_commit_remove(epctx_commit *commit, const char *name,
                                           epctx_error *error);
/* Writes all entries so far to temporary files; their bytes are no longer needed. On failure
 * unwritten entries leave the commit. */
EPCTX_API epctx_status epctx_commit_fill(epctx_commit *commit, epctx_error *error);
/* Writes the rest and puts everything into place; call it once. */
EPCTX_API epctx_status epctx_commit_run(epctx_commit *commit, epctx_error *error);
/* Ends it, run or not; may be called twice and on a zeroed commit. */
EPCTX_API void epctx_commit_close(epctx_commit *commit);

#ifndef EPCTX_NO_EDIT

/* Size limit of protobuf readers such as ONNX Runtime. */
#define EPCTX_MODEL_MAX INT64_C(0x7fffffff)
/* Writes to a file through the model's io. A replaced file keeps its mode, except set-uid, set-gid
 * and sticky bits and rights that the new owner and group did not have; a link stays a link.
 * Errors as epctx_commit_put_model. `opts` NULL: defaults. Windows cannot replace a mapped file,
 * such as the model's own source. */
EPCTX_API epctx_status epctx_model_write_file(epctx_model *model, const char *path,
                                              const epctx_write_opts *opts, epctx_error *error);
/* Writes a model to `path` and `files` beside it, all or nothing (>>manual, WRITING). `opts` apply
 * to the model, `overwrite` to the files: an equal one is kept, one that the opened model uses is
 * EPCTX_ERR_PATH. A file of one part is one call of write_fn. */
EPCTX_API epctx_status epctx_model_write_group(epctx_model *model, const char *path,
                                               const epctx_write_opts *opts,
                                               epctx_output_file *files, size_t count,
                                               epctx_overwrite overwrite, epctx_error *error);

#endif /* EPCTX_NO_EDIT */

/* ============================================================
 * >>stamp: what a model was compiled from
 *
 * The build stamp of an EPContext model is the metadata entry "epctx.build.<source>" with the lines
 *     epctx 2                              format; absent in the first one
 *     source <bytes> <XXH64 of the file, 16 hex digits> <file name>
 *     data <bytes> <XXH64> <location>      once per file of external data
 *     options <XXH64 of what was asked for>
 *     ep_option <key>=<value>              one of the EP, as it was given; "<key>" alone when its
 *     session_option <key>=<value>         value is not told; the same of the session
 *     ort, ep, driver <version>            of ONNX Runtime, the EP and its driver
 *     device <name>                        for which the EP compiled
 *     machine <text>                       where it was compiled, for results that are kept for it
 *     library <bytes> <XXH64> <name>       of the EP and of what works with it, a line each
 *     sdk <ep_sdk_version>
 *     arch <hardware_architecture>
 *     replaces <XXH64 of the build stamp that was here before>
 *     binary <bytes> <XXH64>               of a node's context
 *     graphs <number>                      in this binary, those of other models included
 *     beside <bytes> <XXH64>               of the .bin of a node's OpenVINO .xml
 *     needs <bytes> <XXH64> <name>         of a file to which contexts refer, beside the model
 * with "%25" and "%0A" for "%" and a line end, in keys "%3D" for "=". What is not known has no
 * line, and readers skip lines that they do not know. The nodes of the main graph that have a
 * context of their own, or name a DLC, have a line `binary` each, in their order; if there are more
 * or fewer of them, as in a model that another tool merged, nobody knows which is whose: no binary
 * is judged. The stamp contains no time, so that the output depends on the source alone, and no
 * name of a binary, which may be embedded, extracted or renamed. A stamp of the first format has
 * one line `binary`, which counts only if all primary nodes have the same context.
 * ============================================================ */

#ifndef EPCTX_NO_WIRE

/* Prefix of a build stamp's metadata key. */
#define EPCTX_BUILD_PREFIX "epctx.build."

/* The format that is written; the first one is read, too. */
#define EPCTX_STAMP_FORMAT 2

/* A line of a stamp; numbers that it does not have are 0. */
typedef struct epctx_stamp_line {
    epctx_str word;  /* the first one: what it is about */
    uint64_t size;   /* of a file, in bytes */
    uint64_t hash;   /* of a file, of options, of a stamp */
    uint64_t graphs; /* in a binary; 0: not known */
    epctx_str text;  /* what follows, as stored */
} epctx_stamp_line;

/* The stamp of an EP, in the model's bytes; false: there is none. */
EPCTX_API bool epctx_model_get_stamp(const epctx_model *model, epctx_str source, epctx_str *out);
/* Takes the next line off a stamp; false: there is none. Malformed numbers are 0. */
EPCTX_API bool epctx_stamp_next_line(epctx_str *rest, epctx_stamp_line *line);
/* An option in a stamp. */
typedef struct epctx_stamp_option {
    bool session;         /* of the session; else of the EP */
    bool told;            /* false: only that it was given */
    epctx_str key, value; /* as stored: see epctx_stamp_plain */
} epctx_stamp_option;

/* Takes lines off a stamp until it has found the next option; false: there is no more. */
EPCTX_API bool epctx_stamp_next_option(epctx_str *rest, epctx_stamp_option *option);
/* A text of a stamp without its escapes, ended with 0; false: `out` has no room for all of it. */
EPCTX_API bool epctx_stamp_plain(epctx_str stored, char *out, size_t capacity);
/* The line of a context: what a node of EP `source` has in ep_cache_context or ep_dlc_context.
 * False when the stamp has none. */
EPCTX_API bool epctx_model_stamp_line(const epctx_model *model, epctx_str source, epctx_str context,
                                      epctx_stamp_line *out);
/* Checks that the context binaries, the .bin beside an .xml and the files to which binaries refer
 * are those of the build: compares size and hash with the build stamp of each EP (the first 16),
 * without copying a binary. Also OK if there is no stamp, or no file: loading reports the latter.
 * EPCTX_ERR_VERSION names file, node, expected and found; other errors as epctx_path_map.
 * `context_file_path` (may be NULL) as in epctx_check_opts. */
EPCTX_API epctx_status epctx_model_check_binary(const epctx_model *model,
                                                const char *context_file_path, epctx_error *error);
/* Whether the context of an EPContext node holds only this node's graph, by the stamp of this very
 * binary: other models may use it, too. */
EPCTX_API bool epctx_model_holds_one_graph(const epctx_model *model, const epctx_epnode *node);

#ifndef EPCTX_NO_EDIT

/* What a stamp tells besides the model itself. */
typedef struct epctx_stamp_opts {
    const epctx_model *source_model; /* what was compiled, from its file; NULL: not known, and only
                                        the binary can be compared */
    const char *options;             /* what was asked for, in any form; may be NULL */
    /* The EP's options as text, for those who load the model; may be NULL. Key, value, ..., NULL,
     * in the order in which they are stored; a value may be empty, or NULL: it is not told. Leave
     * out secrets, and paths of the machine that compiled. */
    const char *const *ep_options;
    const char *const *session_options; /* the same of the session */
    uint64_t graphs;                    /* in each binary; 0: not known */
    const char *ort, *ep;               /* versions of ONNX Runtime and of the EP; may be NULL */
    const char *driver;                 /* version of the EP's driver; may be NULL */
    const char *device;                 /* name of the device compiled for; may be NULL */
    const char *machine;                /* what the system tells of this machine; may be NULL */
    /* Paths of the EP's library and of those that it uses, ended by NULL; may be NULL. Their names
     * are relative to the folder of the first one, or those of the files alone. */
    const char *const *libraries;
    /* Names of files beside the model to which its contexts refer, such as weights that stay in a
     * file of the source, ended by NULL; may be NULL. */
    const char *const *needs;
    const char *needs_folder; /* where they are looked for; default: the model's folder */
    bool keep; /* what is not given stays as in the stamp that is there: source and options, and if
                  the binaries are the same, graphs, versions, device, machine, libraries, needs */
} epctx_stamp_opts;

/* The name that a stamp has for libraries[index]. */
EPCTX_API const char *epctx_stamp_library(const char *const *libraries, size_t index);

/* Adds or replaces the build stamp of one EP in a model that another tool, such as ORT, compiled.
 * `source`: attribute `source` of its nodes. The new stamp notes the hash of the old one unless
 * both say the same. SDK and architecture are those of the first node that has them. All files must
 * exist. EPCTX_ERR_NOT_FOUND: no node of that EP, or a missing file. */
EPCTX_API epctx_status epctx_edit_stamp(epctx_model *model, const char *source,
                                        const epctx_stamp_opts *opts, epctx_error *error);

#endif /* EPCTX_NO_EDIT */

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>payload: embed and extract contexts, prefix names of nodes
 *
 * A conversion edits an open model; epctx_changes lists its changes and the new files, which
 * epctx_model_write_group writes with the model so that no crash can mix generations. Contexts stay
 * in mapped files until they are written: gigabytes need no memory. epctx_edit_undo reverts a
 * conversion; a failed one leaves the model unchanged.
 * ============================================================ */

#ifndef EPCTX_NO_EDIT

/* Describes a new file `name`, relative to the model's output `path` (NULL: where it was opened
 * from). Borrows the parts, copies the names into the model's arena. */
EPCTX_API epctx_status epctx_model_output_file(epctx_model *model, const char *path, epctx_str name,
                                               const epctx_span *parts, size_t part_count,
                                               epctx_output_file *out, epctx_error *error);
/* EPCTX_ERR_PATH unless a model at `path` may name a new file `name`: valid in a model, not a
 * folder, not the model itself, accepted by the EP of `profile` (may be NULL). */
EPCTX_API epctx_status epctx_output_name_check(epctx_str name, epctx_str path,
                                               const epctx_profile *profile, epctx_error *error);

typedef enum epctx_change_kind {
    EPCTX_CHANGE_EMBEDDED = 0, /* context moved into its node */
    EPCTX_CHANGE_EXTRACTED,    /* context moved into a file */
    EPCTX_CHANGE_FOLLOWED,     /* secondary node: embed mode of its primary one */
    EPCTX_CHANGE_SKIPPED,      /* unchanged for `reason` */
    EPCTX_CHANGE_COUNT
} epctx_change_kind;

typedef struct epctx_change {
    epctx_change_kind kind;
    epctx_str name;     /* of the node */
    epctx_str file;     /* old or new file; empty: none */
    uint64_t size;      /* bytes of the context */
    const char *reason; /* of SKIPPED, else NULL */
} epctx_change;

/* The result of a conversion; valid until the model is closed. */
typedef struct epctx_changes {
    epctx_change *items; /* in the order of the model */
    size_t count;
    size_t done; /* items that are not SKIPPED */
    epctx_output_file *files;
    size_t file_count;
    size_t room, file_room; /* private */
} epctx_changes;

typedef struct epctx_convert_opts {
    const char *node;              /* nodes of this name; default every EPContext node */
    const epctx_profile *profile;  /* rules of this EP (epctx_profile_for) */
    const char *context_file_path; /* ep.context_file_path: binaries are in its folder; default the
                                      model's folder */
    const char *output_path;       /* of the model: gives names and folder of new files; default the
                                      path it was opened from */
    const char *name;              /* file name of a context, relative to the model, with {stem}
                                      {model} {file} as in epctx_profile.binary and {node}, which
                                      is numbered where two nodes give the same; default the EP's
                                      own */
    bool allow_stale;              /* despite a different build stamp */
} epctx_convert_opts;

/* Moves contexts from files into their nodes: embed_mode 1. The EP sets the rules (epctx_profile):
 * secondary nodes follow if the EP stores the mode in them; if all nodes name one binary
 * (OpenVINO), the first one takes it. Errors: UNSUPPORTED if the EP could not load the result,
 * LIMIT for a model of 2 GiB or more, NO_NODES without an EPContext node, NOT_FOUND / PATH for a
 * file, VERSION if the binary does not match the build stamp. `opts` and `changes` may be NULL. */
EPCTX_API epctx_status epctx_edit_embed(epctx_model *model, const epctx_convert_opts *opts,
                                        epctx_changes *changes, epctx_error *error);
/* The reverse: embed_mode 0. Equal contexts become one file. Errors as above. */
EPCTX_API epctx_status epctx_edit_extract(epctx_model *model, const epctx_convert_opts *opts,
                                          epctx_changes *changes, epctx_error *error);

/* NULL stands for all defaults. */
typedef struct epctx_prefix_opts {
    const epctx_profile *profile; /* rules of this EP (epctx_profile_for) */
    bool one_graph;               /* the caller knows that each binary contains one graph only */
    bool all_nodes;               /* not only the EPContext nodes */
} epctx_prefix_opts;

/* Adds a prefix to the names of EPContext nodes, or of all nodes (including those of functions,
 * subgraphs and training graphs). EPCTX_ERR_UNSUPPORTED for a name that is a key into a binary
 * (epctx_profile.key), unless the binary contains only the graph of this node, according to
 * epctx_model_holds_one_graph or `one_graph`. Does not change partition_name, which is such a key.
 * EPCTX_ERR_EXISTS if another node has the new name. `count` (may be NULL) gets the number of
 * nodes. */
EPCTX_API epctx_status epctx_edit_prefix(epctx_model *model, epctx_str prefix,
                                         const epctx_prefix_opts *opts, size_t *count,
                                         epctx_error *error);

#endif /* EPCTX_NO_EDIT */

/* ============================================================
 * >>partition: which nodes belong together
 * ============================================================ */

/* A subgraph for the backend. `nodes` are positions in the graph, ascending; the constant nodes
 * (all inputs constant) it uses are copied into it and may serve several partitions. `claims`: what
 * an EP asks ORT to fuse, which does not copy: `nodes`, and the constant nodes whose values nobody
 * outside reads, ascending. */
typedef struct epctx_partition {
    const uint32_t *nodes, *claims;
    size_t node_count, claim_count;
    epctx_graph graph; /* its nodes, boundary inputs and outputs in order, constants */
} epctx_partition;

/* Groups the nodes with take[i] != 0 into partitions so that none depends on itself through the
 * rest of the graph, even with the others contracted. Nodes whose take[] differs never share one,
 * except constant nodes, which are with their readers. Constant nodes whose values are graph
 * outputs belong to the first partition, or to one of their own if there is no other. A partition
 * whose values nobody outside reads is left out: each one has an output. Results live in `arena`.
 * Errors: GRAPH when a value is produced twice or read before it is produced, LIMIT when copies of
 * constant nodes would be many times the graph, NOMEM. */
EPCTX_API epctx_status epctx_graph_partition(const epctx_graph *graph, const uint8_t *take,
                                             epctx_arena *arena, epctx_partition **partitions,
                                             size_t *count, epctx_error *error);

/* ============================================================
 * >>weights: equal bytes are stored once
 *
 * A content-addressed table for the weight section of a context binary or any other file. It stores
 * offsets, no bytes, and reads placed bytes back. Usable on its own.
 *
 * Two weights share a place only when every byte agrees; hashes only save comparisons. Three steps,
 * each for weights that the previous one cannot distinguish: size, kind and epctx_hash of a sample
 * from all over the weight; a fast hash of all bytes; all bytes. With crafted collisions of both
 * hashes one of n weights is read up to log n times.
 * ============================================================ */

#define EPCTX_WEIGHTS_SAMPLE 256u

/* Zero-initialise. */
typedef struct epctx_weights_opts {
    const epctx_allocator *allocator; /* for the table; default malloc; copied */
    uint64_t seed;                    /* of the samples' hashes; does not affect the places */
    epctx_buffer *binary; /* borrowed: weights are appended to it and compared with it; offsets
                             count from its size at epctx_weights_init */
    /* Without `binary`: reads placed bytes, at most 64 KiB; valid until the next call. */
    epctx_status (*fetch_fn)(void *user, uint64_t offset, size_t size, const uint8_t **data,
                             epctx_error *error);
    void *user;
} epctx_weights_opts;

/* One place of the section. */
typedef struct epctx_weight {
    uint64_t offset;
    uint64_t size;
    uint32_t kind;
    uint32_t index; /* from 0, in order of first use */
    bool fresh;     /* new: without `binary` the caller must store the bytes there */
} epctx_weight;

typedef struct epctx_weights_stats {
    uint64_t added, added_bytes;   /* all weights */
    uint64_t stored, stored_bytes; /* places, without padding */
    uint64_t shared, shared_bytes; /* weights that had a place */
    uint64_t padding;
    uint64_t sampled;        /* samples hashed */
    uint64_t hashed_bytes;   /* read for these and for full hashes */
    uint64_t compared_bytes; /* until the first difference */
} epctx_weights_stats;

/* All but `stats` is private; zero-initialised it may be freed. */
typedef struct epctx_weights {
    epctx_weights_opts opts;
    epctx_allocator allocator;
    struct epctx__weight *entries;
    uint32_t *heads; /* hash table */
    size_t count;
    size_t capacity; /* of the entries, a power of two */
    size_t start;    /* of the section in opts.binary */
    uint64_t end;    /* of the section */
    bool alike;      /* the last weight had another one's sample */
    epctx_weights_stats stats;
} epctx_weights;

/* `opts` are copied. EPCTX_ERR_ARG without `binary` and `fetch_fn`. */
EPCTX_API epctx_status epctx_weights_init(epctx_weights *weights, const epctx_weights_opts *opts,
                                          epctx_error *error);
/* Finds a place for `size` bytes: that of equal bytes of the same `kind` (any number) whose offset
 * fits `alignment` (a power of two; 0 counts as 1), or a new one at the end. An empty weight gets a
 * place, too. `data` must not lie in `binary`, which may move. A failure changes nothing.
 * Errors: ARG, NOMEM, LIMIT (2^31 places), those of fetch_fn. */
EPCTX_API epctx_status epctx_weights_add(epctx_weights *weights, const void *data, size_t size,
                                         uint32_t alignment, uint32_t kind, epctx_weight *out,
                                         epctx_error *error);
/* Place `index`; false if it does not exist. */
EPCTX_API bool epctx_weights_at(const epctx_weights *weights, uint32_t index, epctx_weight *out);
/* May be called twice. Leaves `binary` to its owner. */
EPCTX_API void epctx_weights_free(epctx_weights *weights);

/* ============================================================
 * >>ep: what an EP implements
 * ============================================================ */

#define EPCTX_BACKEND_VERSION 4

/* Memory of one run-time tensor. */
typedef struct epctx_memory {
    void *data;
    size_t size;
} epctx_memory;

/* One graph of a loaded context. Borrowed from the context. */
typedef struct epctx_graph_info {
    epctx_str name;
    const epctx_value *inputs; /* order of run_fn's arguments; with type and, if fixed, shape */
    size_t input_count;
    const epctx_value *outputs; /* likewise */
    size_t output_count;
    size_t scratch_size; /* bytes that run_fn needs, aligned to 64 */
} epctx_graph_info;

/* Initializers that a context binary can omit: values of ORT's OrtWeightlessSupport. */
typedef enum epctx_weightless_support {
    EPCTX_WEIGHTLESS_NONE = 0,
    EPCTX_WEIGHTLESS_EXTERNAL_ONLY = 1, /* those in the source's external data */
    EPCTX_WEIGHTLESS_ALL = 2
} epctx_weightless_support;

/* How to build a context. */
typedef struct epctx_build_opts {
    const epctx_hooks *hooks; /* may be NULL; valid until finish_fn or discard_fn returns */
    bool prepare_only;        /* session.compile_only: nothing runs in this process; skip what only
                          running needs */
    /* Not NONE (only if the backend supports it): the binary must not contain the bytes of
     * initializers (ALL, or those with a `location`); weights_fn gets them. Values computed from
     * them and initializers smaller than a reference may stay. */
    epctx_weightless_support weightless;
} epctx_build_opts;

/* A context to load. All is borrowed during the call, `binary` until unload_fn. Later versions may
 * add members at the end. */
typedef struct epctx_load_in {
    /* Untrusted; without EPCTX_PATH_IN_PLACE it does not change before unload_fn. NULL and 0: open
     * `path` (opens_path). */
    epctx_span binary;
    /* Canonical path of its file; "": it is embedded in the node, or not from epctx_io_files or
     * epctx_io_private, such as the application's buffers. */
    const char *path;
    epctx_file_info file; /* of that file; all zero: there is none */
    /* The node that has or names it. A payload there may change while `binary` does not: use that.
     * With the defaults and `source` alone when `verify` loads what no node names yet. */
    const epctx_epnode *node;
    /* `node` with every attribute, whoever defines it. In those of epctx_load `version` is 0, and t
     * and g of attributes are NULL. */
    const epctx_node *record;
    bool first;               /* no context was loaded before in this load; false in plan_fn */
    const epctx_hooks *hooks; /* of epctx_load_opts; may be NULL */
} epctx_load_in;

/* The EP's side: a table of functions, each called with `self`. A member that may be NULL says so.
 * Compiling needs every other member up to discard_fn. Loading and `verify` need `source` and
 * load_fn to info_fn. EPCTX_ERR_ARG if one is missing. The library never calls run_fn.
 *
 * Order       capability, (explain), begin, (setup), compile and (types, max_size, node) once per
 *             partition, then finish or discard; check, (plan), load, find, info, run in any
 *             number, unload.
 *             A context that sessions share gets the partitions of all between one begin and one
 *             finish; for a graph that it has already, types to node are called again, compile is
 *             not. A graph of a weightless context gets its weights between find and run and
 *             loses them before unload.
 * Ownership   `build` belongs to whoever called begin_fn; finish_fn (also when it fails) and
 *             discard_fn release it. A failed begin_fn or load_fn leaves nothing behind. Graph
 *             handles end with their context. Arguments are borrowed during the call; `binary` of
 *             epctx_load_in until unload_fn, `weights` of weights_fn until it is called without.
 * Failure     A failed compile_fn leaves `build` as it was: other partitions may follow. A status
 *             reaches the caller with the message of epctx_fail; failures of load_fn, find_fn,
 *             info_fn, weights_fn, check_fn and plan_fn while loading become ORT's INVALID_GRAPH
 *             (NOMEM, ARG and CANCELLED stay).
 * Threads     run_fn: several at once, also on one graph, each with its own scratch. Calls for one
 *             `build` or context come one at a time, for different ones at once; but graphs may run
 *             meanwhile (not while they get weights), and weights_fn, one at a time for a graph,
 *             may meet find, info and weights_fn for others. capability, explain, check: any time.
 * Nothing may throw or longjmp through this library. */
typedef struct epctx_backend {
    uint32_t version; /* EPCTX_BACKEND_VERSION */
    void *self;
    const char *source;                /* EPContext attribute `source`, the EP's name */
    const char *short_name;            /* [ep] in [model]_[ep].bin */
    const char *sdk_version;           /* EPContext attribute ep_sdk_version */
    const char *hardware_architecture; /* EPContext attribute hardware_architecture */
    /* Sets take[i] = 1 for each node of `graph` that compile accepts; or, to keep nodes apart, any
     * number but 0: only nodes of one number share a partition (epctx_backend_partition). */
    epctx_status (*capability_fn)(void *self, const epctx_graph *graph, uint8_t *take,
                                  epctx_error *error);
    /* A context under construction. */
    epctx_status (*begin_fn)(void *self, void **build, epctx_error *error);
    /* Adds `graph` as `name`; find_fn gets the same `hash`. Copies what it keeps. */
    epctx_status (*compile_fn)(void *self, void *build, const epctx_graph *graph, epctx_str name,
                               uint64_t hash, epctx_error *error);
    /* May be NULL. After compile_fn: the inferred types of the outputs, in order, for value_info;
     * needed if the model lacks them, as ORT infers none. Valid until finish. */
    epctx_status (*types_fn)(void *self, void *build, epctx_str name, const epctx_value **outputs,
                             size_t *count, epctx_error *error);
    /* Appends the context binary to `out`. */
    epctx_status (*finish_fn)(void *self, void *build, epctx_buffer *out, epctx_error *error);
    void (*discard_fn)(void *self, void *build);
    epctx_status (*load_fn)(void *self, const epctx_load_in *in, void **context,
                            epctx_error *error);
    void (*unload_fn)(void *self, void *context);
    /* The graph `name`, always the same handle; EPCTX_ERR_CONTEXT if there is none. Empty name: the
     * only graph. `hash` not 0: EPCTX_ERR_VERSION for another generation. */
    epctx_status (*find_fn)(void *self, void *context, epctx_str name, uint64_t hash, void **graph,
                            epctx_error *error);
    epctx_status (*info_fn)(void *self, void *graph, epctx_graph_info *info, epctx_error *error);
    epctx_status (*run_fn)(void *self, void *graph, const epctx_span *inputs,
                           const epctx_memory *outputs, void *scratch, size_t scratch_size,
                           epctx_error *error);
    /* May be NULL. Why capability_fn rejects node `index`: EPCTX_ERR_UNSUPPORTED and the reason. */
    epctx_status (*explain_fn)(void *self, const epctx_graph *graph, size_t index,
                               epctx_error *error);
    /* May be NULL. Before a node's context is opened: EPCTX_ERR_VERSION if its driver, SDK or
     * hardware architecture cannot run here. */
    epctx_status (*check_fn)(void *self, const epctx_epnode *node, epctx_error *error);
    /* May be NULL. Right after begin_fn; on failure discard_fn follows. */
    epctx_status (*setup_fn)(void *self, void *build, const epctx_build_opts *opts,
                             epctx_error *error);
    /* May be NULL: nodes have no max_size. After compile_fn: bytes of spill buffers (>= 0) for the
     * EPContext attribute max_size. All nodes get the largest of their context. */
    epctx_status (*max_size_fn)(void *self, void *build, epctx_str name, int64_t *bytes,
                                epctx_error *error);
    /* May be NULL. After compile_fn: makes the EPContext node of `graph` the EP's own. `node` has
     * the name that compile_fn got, the graph's inputs and outputs, and no attributes; what is set
     * is in `arena` or lives as long.
     *   name     of no other node. Inside ORT the fused node's stays, by which ORT finds it
     *   inputs   any of the graph's, in any order; its initializers, too, with weight_inputs
     *   outputs  the graph's, each once, in any order
     *   attrs    of any type a record holds, but those of the schema and EPCTX_WEIGHTS_ATTR
     * Otherwise EPCTX_ERR_BACKEND names node, attribute, what is expected and found. */
    epctx_status (*node_fn)(void *self, void *build, const epctx_graph *graph, epctx_arena *arena,
                            epctx_node *node, epctx_error *error);
    /* May be NULL. After capability_fn: units[i] is 0, or a number up to the node count: nodes of
     * one number are in one partition, or none of them is taken. None is if one of them is not, if
     * take[] differs, if a path between them leads through a node that is not taken or kept apart,
     * or if they are more than most_nodes. For constant nodes it has no meaning. */
    epctx_status (*units_fn)(void *self, const epctx_graph *graph, const uint8_t *take,
                             uint32_t *units, epctx_error *error);
    size_t most_nodes; /* of a partition, without its constant nodes; 0: any number */
    /* The initializers of a graph are inputs of its EPContext node, behind the others, and stay in
     * the EPContext model. False: they are in the binary alone. */
    bool weight_inputs;
    /* What setup_fn can request (ORT's GetWeightlessSupport). Not NONE: needs setup_fn and
     * weights_fn. */
    epctx_weightless_support weightless;
    /* NULL without weightless support. Sets the weights that the graph's EPContext node names, in
     * its order, after info_fn and never while the graph runs. `data` was verified by hash but is
     * mapped: copy it if a later change of the file could matter. Called for another node of the
     * graph, it replaces the weights. NULL and 0 remove them, which cannot fail (`error` may be
     * NULL). On failure the graph has no weights. */
    epctx_status (*weights_fn)(void *self, void *graph, const epctx_tensor *weights, size_t count,
                               epctx_error *error);
    /* May be NULL. Before capability_fn: fixed-shape types missing in `graph` that can be inferred,
     * also through other nodes; they are added to it. In `arena`, except names. */
    epctx_status (*infer_fn)(void *self, const epctx_graph *graph, epctx_arena *arena,
                             epctx_value **values, size_t *count, epctx_error *error);
    /* load_fn opens in->path itself where there is one: the file is neither read nor mapped.
     * What is embedded, of another io, or loaded by `verify` comes as bytes all the same.
     * Checked before: it is a regular, non-empty file in its folder, no link leads out of that,
     * and it has the size in the build stamp. Checked afterwards: the path leads to that file,
     * unwritten (else EPCTX_ERR_CHANGED, and the context is released). Not promised: which file
     * you open, and what it holds. Who can write to the folder can exchange both in between, and
     * undo it. Against that open without following links and compare with in->file, or take the
     * bytes: only they are copied. */
    bool opens_path;
    /* May be NULL. Once in a load, after check_fn for all nodes and before the first load_fn: all
     * nodes of the model for this backend, with `binary` and `file` empty. *first is `count`: set
     * it to a node with a context of its own that is to be loaded before the others, such as that
     * with the largest spill buffer. A workspace may have its context already. */
    epctx_status (*plan_fn)(void *self, const epctx_load_in *nodes, size_t count, size_t *first,
                            epctx_error *error);
} epctx_backend;

/* What find_fn returns for a name that is not in its context: EPCTX_ERR_CONTEXT, with the names of
 * the `count` graphs that are, as far as there is room. name_fn gives that of number `index`. */
EPCTX_API epctx_status epctx_fail_no_graph(epctx_error *error, epctx_str name, const void *graphs,
                                           size_t count,
                                           epctx_str (*name_fn)(const void *graphs, size_t index));

/* epctx_graph_partition by the rules of the backend as well: units_fn, most_nodes. `take` is as
 * capability_fn set it, nodes may be cleared since. Errors: BACKEND (a unit's number), those of
 * units_fn. */
EPCTX_API epctx_status epctx_backend_partition(const epctx_backend *backend,
                                               const epctx_graph *graph, const uint8_t *take,
                                               epctx_arena *arena, epctx_partition **partitions,
                                               size_t *count, epctx_error *error);

/* The string that ORT stores in model metadata as ep_compatibility_info.<source> and returns before
 * it loads a compiled model: "epctx=1;source=<source>;sdk=<version>;arch=<architecture>".
 * EPCTX_ERR_LIMIT if `out` is too small. */
EPCTX_API epctx_status epctx_backend_compatibility(const epctx_backend *backend, char *out,
                                                   size_t capacity, epctx_error *error);

/* Hash of names, types, attributes, bodies and constants, equal on all platforms. EPContext nodes
 * record it in `notes` ("graph_hash=<16 hex digits>"), the binary repeats it. Without
 * epctx_model_load_graph the caller fills `extra_hash` of nodes and tensors. */
EPCTX_API uint64_t epctx_graph_hash(const epctx_graph *graph);
/* The hash in `notes`, or 0. */
EPCTX_API uint64_t epctx_notes_hash(epctx_str notes);

/* -- weightless contexts (ORT's ep.enable_weightless): the weights stay in the source model --
 *
 * An EPContext node names the source model in onnx_model_filename and its graph's weights in
 * EPCTX_WEIGHTS_ATTR, one per line:
 *     <bytes> <XXH64, 16 hex digits> <offset> <bytes of name> <name> <bytes of location> <location>
 * Location (empty: in the model) and offset record where it was. Weights are found by name, as the
 * source may have been saved again, and verified by size and hash. */

typedef struct epctx_outside_weight {
    uint64_t size, hash, offset;
    epctx_str name, location;
} epctx_outside_weight;

/* Iterates over a copy of the attribute's text; false at the end and at a malformed line (then
 * `rest` is not empty). */
EPCTX_API bool epctx_outside_weight_next(epctx_str *rest, epctx_outside_weight *out);
/* Is this the compiled weight? EPCTX_ERR_CONTEXT names `file`, initializer, expected and found.
 * `tensor` NULL: not in `file`. */
EPCTX_API epctx_status epctx_outside_weight_verify(const epctx_outside_weight *ref,
                                                   const epctx_tensor *tensor, const char *file,
                                                   epctx_error *error);

/* -- one EP and one model: pieces of its graph become EPContext nodes and a binary -- */

/* Copied; strings are borrowed until epctx_ep_end. */
typedef struct epctx_ep_opts {
    const char *name_prefix; /* ep.context_node_name_prefix; default "" */
    uint64_t model_hash;     /* part of the names: epctx_graph_hash of the whole model */
    bool embed;              /* ep.context_embed_mode */
    const char *binary;      /* not embedded: its path in the nodes */
    bool prepare_only;       /* as in epctx_build_opts */
    epctx_weightless_support weightless; /* as in epctx_build_opts; limited to the backend's */
    const char *source_model;            /* weightless: onnx_model_filename of the nodes */
    const epctx_hooks *hooks;            /* may be NULL; valid until epctx_ep_finish */
    const epctx_allocator *allocator;    /* for a binary that is not embedded; default malloc */
} epctx_ep_opts;

/* Members are private. A zeroed object may be passed to epctx_ep_end. */
typedef struct epctx_ep {
    const epctx_backend *backend;
    epctx_ep_opts opts;
    epctx_arena *arena;
    void *build;
    struct epctx__known *shared; /* the graphs of `build` when it belongs to a group */
    struct epctx__piece *pieces;
    struct epctx__known_graph *graphs; /* of the pieces */
    size_t count, room;
    epctx_node *nodes;
    epctx_buffer binary;
    int64_t max_size;
} epctx_ep;

/* Starts a context for at most `room` pieces. `backend` and `arena` (for nodes and an embedded
 * binary) are borrowed until epctx_ep_end, which is not needed after a failure. ARG: wrong backend
 * version; UNSUPPORTED: the EP has no weightless support. */
EPCTX_API epctx_status epctx_ep_begin(epctx_ep *ep, const epctx_backend *backend,
                                      const epctx_ep_opts *opts, size_t room, epctx_arena *arena,
                                      epctx_error *error);
/* Compiles a piece, borrowed until epctx_ep_finish. "<prefix><source>_<model hash>_<index>" names
 * the graph in the binary and the node, and is its partition_name. */
EPCTX_API epctx_status epctx_ep_compile(epctx_ep *ep, const epctx_graph *piece, epctx_error *error);
/* Makes the binary and the nodes, once; may be called again after CANCELLED. ARG without a context
 * under construction. */
EPCTX_API epctx_status epctx_ep_finish(epctx_ep *ep, epctx_error *error);
/* GetEpContextNodes() of the design document: one EPContext node per piece, in the order compiled,
 * main_context 1 in the first. Empty before epctx_ep_finish; valid until epctx_ep_end. */
EPCTX_API const epctx_node *epctx_ep_context_nodes(const epctx_ep *ep, size_t *count);
/* The context binary; valid as long as the nodes. */
EPCTX_API epctx_span epctx_ep_binary(const epctx_ep *ep);
/* May be called on a zeroed object and twice; discards an unfinished context. */
EPCTX_API void epctx_ep_end(epctx_ep *ep);

/* ============================================================
 * >>preflight: the files that compiling writes, named and checked before
 * ============================================================ */

/* What generation reads and writes. Strings are borrowed during the call. */
typedef struct epctx_preflight_in {
    const epctx_io *io;        /* default epctx_io_files() */
    const char *model_path;    /* NULL or "": from memory */
    const char *const *inputs; /* further files read (external data): never replaced */
    size_t input_count;
    const char *short_name; /* of the EP */
    const char *binary;     /* relative to the EPContext model, its folder must exist; default
                           [model]_[ep].bin */
    bool binary_joined;     /* checked by an earlier session of the group: may exist */
} epctx_preflight_in;

/* The output files. Strings are in the arena. */
typedef struct epctx_outputs {
    const char *model;
    const char *initializers; /* NULL: inside the model */
    const char *binary;       /* NULL: embedded */
} epctx_outputs;

/* Before compiling: checks the options for generation, names and checks every output. Its folder
 * exists, a file can be created there (one is, and is removed), it is no folder, exists only if
 * epctx.overwrite is 1, and is no other output and no input. Errors: ARG (options), NOT_FOUND
 * (folder), EXISTS, PATH (clashes), IO (not writable), NOMEM. */
EPCTX_API epctx_status epctx_preflight(const epctx_options *options, const epctx_preflight_in *in,
                                       epctx_arena *arena, epctx_outputs *out, epctx_error *error);

/* ============================================================
 * >>share: one context for several sessions (EP-context design, weight sharing)
 *
 * A workspace is the "EP singleton" of the design document, held by the application or the EP.
 * When generating, the sessions of a group compile into one context, which the last one writes: N
 * models give N + 1 files. When loading, the first session loads that binary and uses its graph;
 * the other graphs wait in the workspace for their sessions, which do not open the binary.
 * Workspace and sessions may end in any order.
 *
 * QUICK START: two models compiled into one binary, and both loaded from it
 *       const char *files[2] = {"prefill.onnx", "decode.onnx"};
 *       const char *contexts[2] = {"prefill_ctx.onnx", "decode_ctx.onnx"};
 *       epctx_workspace *workspace;
 *       epctx_model models[2];
 *       epctx_loaded loaded[2];
 *       epctx_gen_opts opts;
 *       epctx_load_opts load;
 *       epctx_error err;
 *       epctx_status status = epctx_workspace_open(&workspace, NULL, &err);
 *       memset(&opts, 0, sizeof opts);
 *       memset(&load, 0, sizeof load);
 *       opts.overwrite = true; // and `backend` is yours, or epctx_npu_init's
 *       opts.workspace = load.workspace = workspace;
 *       for (int i = 0; status == EPCTX_OK && i < 2; i++) {
 *           opts.stop = i == 1;
 *           status = epctx_model_open_file(&models[i], files[i], NULL, &err);
 *           if (status == EPCTX_OK) {
 *               status = epctx_generate(&models[i], &backend, &opts, NULL, &err);
 *           }
 *           epctx_model_close(&models[i]);
 *       }
 *       memset(models, 0, sizeof models);
 *       memset(loaded, 0, sizeof loaded);
 *       for (int i = 0; status == EPCTX_OK && i < 2; i++) {
 *           status = epctx_model_open_file(&models[i], contexts[i], NULL, &err);
 *           if (status == EPCTX_OK) {
 *               status = epctx_load(&loaded[i], &models[i], &backend, &load, &err);
 *           }
 *       }
 *       if (status == EPCTX_OK) {
 *           printf("%u and %u nodes share one binary\n", (unsigned)loaded[0].bound_count,
 *                  (unsigned)loaded[1].bound_count);
 *       } else {
 *           fprintf(stderr, "%s\n", err.message);
 *       }
 *       for (int i = 0; i < 2; i++) {
 *           epctx_unload(&loaded[i]);
 *           epctx_model_close(&models[i]);
 *       }
 *       epctx_workspace_close(workspace);
 *
 * Always compile the models of a group together: compiling again without one of them drops its
 * graphs from the binary. Loading detects this by the build stamp.
 * ============================================================ */

/* A lock of the caller's. All NULL: the workspace and its sessions are used from one thread.
 *
 * It is never held while a backend, an io or a hook is called: these may use the workspace, too.
 * While one session loads a binary or compiles into a group, others that want it wait without the
 * lock. With thread_fn, who would wait for itself (a backend that asks for the binary it is
 * loading, two threads that each want what the other is at) gets an error instead. */
typedef struct epctx_lock {
    void *user;
    void (*lock_fn)(void *user);
    void (*unlock_fn)(void *user);
    void (*free_fn)(void *user); /* may be NULL: called once, after the workspace is freed */
    /* Both or none, called with the lock held: wait_fn releases it until wake_fn is called (or
     * earlier) and returns with it held; wake_fn wakes all waiters. NULL: waiters retake the lock
     * repeatedly. */
    void (*wait_fn)(void *user);
    void (*wake_fn)(void *user);
    uintptr_t (*thread_fn)(void *user); /* may be NULL: a unique number per thread */
} epctx_lock;

/* A complete system lock: pthreads if the implementation was compiled with EPCTX_PTHREAD_LOCK,
 * Windows with EPCTX_WIN32_LOCK, else EPCTX_ERR_UNSUPPORTED. Memory comes from `allocator` (default
 * malloc) and is freed by free_fn. */
EPCTX_API epctx_status epctx_lock_make(epctx_lock *lock, const epctx_allocator *allocator,
                                       epctx_error *error);

/* When another session uses the graph that a session asks for: */
typedef enum epctx_taken {
    EPCTX_TAKEN_RELOAD = 0, /* load the binary again, for this session and later ones */
    EPCTX_TAKEN_ERROR       /* EPCTX_ERR_CONTEXT */
} epctx_taken;

typedef struct epctx_workspace_opts {
    const epctx_allocator *allocator; /* default malloc; copied; called only under the lock */
    epctx_lock lock;                  /* copied */
    epctx_taken taken;
} epctx_workspace_opts;

/* One per EP of a process, or more: sessions of different workspaces are independent. A workspace
 * distinguishes EPs by `source` and `self`, loaded binaries by canonical path, their graphs by the
 * hash in the node, groups under construction by name. */
typedef struct epctx_workspace epctx_workspace;

/* An empty workspace. `opts` may be NULL. Errors: NOMEM. */
EPCTX_API epctx_status epctx_workspace_open(epctx_workspace **workspace,
                                            const epctx_workspace_opts *opts, epctx_error *error);
/* Releases the handle; the memory goes with the last session, which may continue. Unfinished groups
 * are abandoned: nothing of them is written, and a session that compiles into one fails with
 * EPCTX_ERR_CONTEXT. NULL is allowed. */
EPCTX_API void epctx_workspace_close(epctx_workspace *workspace);

/* -- generating: a session of the group has its model --
 *
 * epctx_generate with `workspace`. The first session begins the group and names the binary after
 * its model; all EPContext models go beside it. The session with `stop` is the last: it writes the
 * binary and the EPContext models of all sessions, which are in memory until then, together.
 * A session that fails leaves the group as it was, but for compiled graphs, which are used when it
 * tries again. When the last one fails while writing, the group is given up.
 * `backend` and the model's io must live until the group ends.
 * Errors: ARG when embedded, with another backend object than the group's or in another folder. */

/* -- generating inside ONNX Runtime: ORT owns the model --
 *
 * For an EP inside ONNX Runtime, which leaves the EPContext models to ORT. A session calls
 * epctx_share_compile in Compile; the last one, when its model is written, epctx_share_finish
 * (OnSessionInitializationEnd). Until then the models do not load. They have no build stamp.
 * A session that fails in epctx_share_compile is not in the group; one whose model is not written,
 * also the last one, must epctx_share_withdraw, or its place stays taken. When epctx_share_finish
 * fails, the group is gone, and its sessions start over. */

typedef struct epctx_share_opts {
    const char *group; /* NULL: the only one of this EP */
    const epctx_graph *const *pieces;
    size_t piece_count;
    const epctx_io *io;       /* default epctx_io_files(); lives until the group ends */
    const char *context_path; /* the EPContext model to be written. The first session's names
                                 the binary; the others are in its folder */
    const char *name_prefix;  /* ep.context_node_name_prefix; default "" */
    uint64_t model_hash;      /* part of the names, as in epctx_ep_opts; 0: hash of the pieces */
    bool overwrite;           /* the binary may replace a file; default EPCTX_ERR_EXISTS */
    bool prepare_only;        /* as in epctx_build_opts; the first session's counts */
    epctx_weightless_support weightless; /* as in epctx_build_opts; the same for a whole group */
    const char *source_model;            /* as in epctx_ep_opts */
    bool verify; /* before writing, load the binary and find every graph of the group */
    const epctx_hooks *hooks; /* may be NULL */
} epctx_share_opts;

/* Compiles the pieces of one model into the group's context. nodes[i] of pieces[i] is in `arena`,
 * as epctx_ep_context_nodes would return it; max_size is the group's largest so far. On failure the
 * group is unchanged except for compiled graphs; without a session it is abandoned. `opts` is
 * borrowed during the call, `backend` until the group ends. Errors: ARG (another backend object, io
 * or folder than the group's, a path of another session), EXISTS, NOT_FOUND, PATH, IO (destination
 * of the binary, before compiling). */
EPCTX_API epctx_status epctx_share_compile(epctx_workspace *workspace, const epctx_backend *backend,
                                           const epctx_share_opts *opts, epctx_arena *arena,
                                           const epctx_node **nodes, epctx_error *error);
/* The session's model is written (optional). A group whose models were all written and are deleted
 * again is abandoned when a session in another folder comes, which is refused otherwise. A model
 * that is not at `context_path` is nobody's affair. Errors: NOT_FOUND (no such session), NOMEM. */
EPCTX_API epctx_status epctx_share_written(epctx_workspace *workspace, const char *group,
                                           const char *source, const char *context_path,
                                           epctx_error *error);
/* The session for `context_path` did not write it. Its graphs stay in the context; a group without
 * another session is abandoned, so the next session is the first. */
EPCTX_API void epctx_share_withdraw(epctx_workspace *workspace, const char *group,
                                    const char *source, const char *context_path);

/* Ends a group without a further session, like `stop`: writes the binary and the models of sessions
 * that have them. On failure the group is abandoned, and an existing binary is the old or the new
 * one, whole. `binary_size` may be NULL. EPCTX_ERR_NOT_FOUND: no such group. */
EPCTX_API epctx_status epctx_share_finish(epctx_workspace *workspace, const char *group,
                                          const char *source, const epctx_hooks *hooks,
                                          uint64_t *binary_size, epctx_error *error);

#ifndef EPCTX_NO_EDIT

/* ============================================================
 * >>gen: ordinary model -> EPContext model
 * ============================================================ */

/* Results in memory instead of files. The buffers are the caller's, with his allocator; each is
 * replaced, and empty after a failure. */
typedef struct epctx_gen_memory {
    epctx_buffer *model;        /* may be NULL: the open model is the result */
    epctx_buffer *binary;       /* NULL: only if it is embedded */
    epctx_buffer *initializers; /* NULL: only without initializers_file_name */
} epctx_gen_memory;

/* Strings are borrowed during the call. */
typedef struct epctx_gen_opts {
    const char *context_file_path;      /* ep.context_file_path; default <model>_ctx.onnx */
    bool embed;                         /* ep.context_embed_mode; default 0: a binary file */
    const char *name_prefix;            /* ep.context_node_name_prefix; default "" */
    bool overwrite;                     /* replace existing outputs; default EPCTX_ERR_EXISTS */
    bool require_all;                   /* a node left for the CPU is an error */
    const epctx_allocator *allocator;   /* for the binary; default malloc */
    const char *binary;                 /* as in epctx_preflight_in */
    const char *initializers_file_name; /* ep.context_model_external_initializers_file_name, beside
                                           the EPContext model; default: all inside */
    uint64_t initializers_min_size;     /* smaller ones stay inside; default 0: all go out */
    epctx_no_nodes no_nodes;            /* when nothing can be compiled */
    const char *build_options;          /* further inputs of the binary, for the build stamp */
    const epctx_stamp_opts *tools;      /* its libraries and machine are inputs, too; may be NULL */
    bool prepare_only;                  /* as in epctx_build_opts */
    epctx_weightless_support weightless; /* ep.enable_weightless is ALL, its former name
                                            EXTERNAL_ONLY: loading needs the source model */
    bool verify; /* before writing, load the new binary and find every graph in it */
    const epctx_hooks *hooks;
    const epctx_file_lock *lock; /* the caller's lock of the EPContext model; may be NULL */
    epctx_workspace *workspace;  /* ep.share_ep_contexts: a session of a group (>>share) */
    const char *group;           /* its name; NULL: the only one of this EP */
    bool stop;                   /* ep.stop_share_ep_contexts: the last session of the group */
    /* May be NULL: files. Else no file is written, and none looked at but those of the source:
     * paths are names alone, of a model without one those of "model.onnx"; `overwrite` and `lock`
     * mean nothing. Not for a group. */
    const epctx_gen_memory *memory;
} epctx_gen_opts;

/* From and to session options; members without an option are zero. Strings are borrowed. */
EPCTX_API epctx_gen_opts epctx_options_to_gen(const epctx_options *options);
EPCTX_API epctx_options epctx_options_of_gen(const epctx_gen_opts *opts);

typedef struct epctx_gen_report {
    size_t partition_count;
    size_t compiled_nodes; /* source nodes in partitions */
    size_t cpu_nodes;      /* ordinary nodes that stay */
    size_t other_nodes;    /* EPContext nodes of other EPs: they stay */
    uint64_t binary_size;  /* in a group 0 until its last session */
    uint64_t initializers_size;
    size_t outside_count;  /* weightless: weights that stay in the source model, */
    uint64_t outside_size; /* their bytes */
    int64_t max_size;
    const epctx_node *nodes; /* the new EPContext nodes (GetEpContextNodes), one per partition;
                                valid until the model is closed */
    char context_path[EPCTX_PATH_MAX];
    char binary_path[EPCTX_PATH_MAX];       /* empty when embedded */
    char initializers_path[EPCTX_PATH_MAX]; /* empty when all are inside */
} epctx_gen_report;

/* Compiles what the backend takes and writes the EPContext model by editing `model`, which then
 * holds it. One EPContext node per partition: exactly the partition's boundary, main_context 1 for
 * the first and 0 for the rest, one binary. EPContext nodes of other EPs stay. External data that
 * is still needed comes inside, also in bodies and functions: the result needs no file of the
 * source. Compatibility info and build stamp of this EP are written, those of EPs without a node
 * here removed.
 *
 * Outputs are checked before anything is compiled, with the errors of epctx_preflight, and written
 * together or not at all; with `memory` there is nothing to check but names. On failure the model
 * is as before. The same model and options give the same bytes. `report` may be NULL. */
EPCTX_API epctx_status epctx_generate(epctx_model *model, const epctx_backend *backend,
                                      const epctx_gen_opts *opts, epctx_gen_report *report,
                                      epctx_error *error);

/* ============================================================
 * >>fresh: is an EPContext model up to date? Compares its build stamp.
 * ============================================================ */

typedef enum epctx_freshness {
    EPCTX_FRESH = 0,
    EPCTX_STALE,        /* source, options, SDK, architecture or binary changed, e.g. the binary
                           was compiled again without this model */
    EPCTX_FRESH_UNKNOWN /* no stamp of this EP, or no source */
} epctx_freshness;

typedef struct epctx_fresh_opts {
    const char *source_path;   /* default: named by the stamp, beside the EPContext model */
    const epctx_gen_opts *gen; /* compared when given */
    /* What the stamp would tell if the source were compiled now: options as text, ONNX Runtime, EP,
     * driver, device, machine and libraries are compared, each if it is given; may be NULL. */
    const epctx_stamp_opts *now;
    bool fast; /* skip hashes of the binary and of files unchanged since the model was written */
    /* Gets each difference, in the order of the stamp; without it only the first one is looked for,
     * which decides. `why` as that of epctx_model_check_fresh. May be NULL. */
    void (*differs_fn)(void *user, const epctx_error *why);
    void *user; /* of differs_fn */
} epctx_fresh_opts;

/* For an EPContext model opened from a file. `source` is the EP, `backend` (may be NULL) gives SDK
 * and architecture to compare. A missing binary is ignored: loading reports it. `why` (may be NULL)
 * gets the difference. */
EPCTX_API epctx_freshness epctx_model_check_fresh(const epctx_model *model, const char *source,
                                                  const epctx_backend *backend,
                                                  const epctx_fresh_opts *opts, epctx_error *why);

#endif /* EPCTX_NO_EDIT */

/* ============================================================
 * >>load: EPContext nodes -> contexts that run
 * ============================================================ */

struct epctx_bound;

/* All zero: the defaults. */
typedef struct epctx_load_opts {
    epctx_workspace *workspace;    /* ep.share_ep_contexts: shares binaries in files, not embedded
                                   ones. NULL: nothing is shared */
    const char *context_file_path; /* ep.context_file_path: its folder has the binaries */
    const char *second_folder;     /* searched next, for those that are missing there: OpenVINO's
                                      .xml is beside the model, its .bin beside the output. NULL:
                                      none. Not with `io`, nor for a source model, nor for a model
                                      from memory without `context_file_path` */
    const epctx_io *io;            /* source of the binaries, e.g. the application's buffers
                           (epctx_io_buffers), by their names in the nodes as they stand, like
                           "vault://k//1" or "../x": ORT's rule. Lives until epctx_unload. NULL:
                           files beside the model */
    const epctx_profile *profile;  /* which nodes are ours and their key; default: `source` equals
                                     the backend's, and the key is partition_name */
    const epctx_allocator *allocator; /* for the loaded set; default malloc */
    const epctx_hooks *hooks;         /* may be NULL. The log gets a line for each context: node,
                                         bytes, file, loaded now or shared with another session */
    /* Weightless contexts. Returns the weight ref->name after epctx_outside_weight_verify; its data
     * live until epctx_unload. NULL or EPCTX_ERR_NOT_FOUND: it is in the source model. */
    epctx_status (*weight_fn)(void *user, const struct epctx_bound *bound,
                              const epctx_outside_weight *ref, epctx_tensor *out,
                              epctx_error *error);
    void *weight_user;
    epctx_span source_model;       /* its bytes, borrowed until epctx_unload. Its external data: in
                                external_folder, else beside the model. Not with EPCTX_NO_WIRE */
    const char *source_model_path; /* else this file (ep.context_source_model_path), anywhere; else
                                      onnx_model_filename beside the model */
    /* epctx_load_nodes: */
    const char *model_path;      /* of the EPContext model; NULL or "": from memory */
    uint32_t path_flags;         /* as in epctx_open_opts; epctx_load uses the model's */
    const char *external_folder; /* as in epctx_open_opts; epctx_load uses the model's */
} epctx_load_opts;

/* An EPContext node of this backend, bound to the graph that runs it. */
typedef struct epctx_bound {
    epctx_epnode node;
    size_t index;         /* of the node in `nodes` or in the main graph */
    epctx_str weights;    /* attribute EPCTX_WEIGHTS_ATTR */
    epctx_node_view view; /* epctx_load only */
    void *graph;
    epctx_graph_info info;
    struct epctx__owner *owner; /* private from here */
    uint64_t made[2];           /* size and hash of its context by the stamp; 0 0: not known */
    struct epctx__entry *entry; /* from which the graph was taken */
    bool weighted;              /* weights are set */
} epctx_bound;

/* Everything loaded for one model. Members from `backend` on are private. */
typedef struct epctx_loaded {
    epctx_bound *bound; /* in node order */
    size_t bound_count;
    size_t other_nodes; /* not ours */
    const epctx_backend *backend;
    epctx_arena arena;
    epctx_workspace *workspace;
    struct epctx__weight_model *sources; /* models that weights come from */
    struct epctx__ready *opened;         /* contexts, without a workspace */
} epctx_loaded;

/* For an EP that has nodes and no model bytes, e.g. inside ONNX Runtime: loads the EPContext nodes
 * of `backend` among `nodes` and binds each to its graph. Other nodes are left out.
 *   1. A primary node brings a context, any number of them, each file loaded once: from the node
 *      (embed_mode 1), from opts->io, or from a file beside the model (ep.context_file_path).
 *   2. Each node gets the graph of its key (profile) and hash (notes): a primary one from its own
 *      context, a secondary one from whichever has it; after 131,072 misses that search ends.
 *   3. A node of a weightless context gets its weights, each compared with what was compiled.
 * With a workspace a graph that waits there is moved to this session, without a file. A failure
 * gives everything back. The nodes' bytes must stay until epctx_unload; with a workspace `backend`
 * and the io as long as any session uses a graph of these binaries.
 * Errors, with the node and the reason: CONTEXT (also a file that is missing or cannot be read),
 * VERSION, PATH, GRAPH, all of them ORT's INVALID_GRAPH; ARG, NOMEM, CANCELLED. */
EPCTX_API epctx_status epctx_load_nodes(epctx_loaded *loaded, const epctx_node *nodes, size_t count,
                                        const epctx_backend *backend, const epctx_load_opts *opts,
                                        epctx_error *error);
/* Ends the session. May be called on a zeroed set and twice. */
EPCTX_API void epctx_unload(epctx_loaded *loaded);

#ifndef EPCTX_NO_WIRE

/* Loads the EPContext nodes in the main graph of a model as epctx_load_nodes does. The model must
 * stay open until epctx_unload. Weights that are inputs of their node are the model's own
 * initializers. A binary file must have the size in the build stamp; its hash is compared only
 * after a failure, for the message. */
EPCTX_API epctx_status epctx_load(epctx_loaded *loaded, const epctx_model *model,
                                  const epctx_backend *backend, const epctx_load_opts *opts,
                                  epctx_error *error);

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>abi: for programs in other languages
 * ============================================================ */

/* EPCTX_VERSION_STRING of the implementation: the header that a binding was made from must have the
 * same major and minor version. */
EPCTX_API const char *epctx_version(void);
/* sizeof a public struct by its name, "epctx_model", to be held against the binding's; 0: there is
 * none of that name in this build. */
EPCTX_API size_t epctx_struct_size(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* EPCTX_H: end of the declarations. Stop here if you only use the library. */

/* ============================================================
 * >>implementation
 * ============================================================ */

#if defined(EPCTX_IMPLEMENTATION) && !defined(EPCTX_IMPLEMENTED)
#define EPCTX_IMPLEMENTED

#include <string.h>

#if !defined(EPCTX_NO_MALLOC) || defined(EPCTX_DEBUG)
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
#define EPCTX__STOP /* compiles nothing below */
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
#if !defined(O_CLOEXEC) || \
    (defined(__GLIBC__) && !defined(__USE_XOPEN_EXTENDED) && !defined(__USE_MISC))
#error "epctx.h: a system header came first without _XOPEN_SOURCE 700: use the two-line epctx.c"
#define EPCTX__STOP
#elif !defined(PATH_MAX) || PATH_MAX > EPCTX_PATH_MAX
#error "epctx.h: EPCTX_PATH_MAX is smaller than the longest path of this system"
#define EPCTX__STOP
#endif
/* In POSIX since 2024: strict feature macros may hide it. */
#if defined(MAP_ANONYMOUS)
#define EPCTX__MAP_ANONYMOUS MAP_ANONYMOUS
#elif defined(MAP_ANON)
#define EPCTX__MAP_ANONYMOUS MAP_ANON
#elif defined(__linux__) && (defined(__mips__) || defined(__xtensa__))
#define EPCTX__MAP_ANONYMOUS 0x800
#elif defined(__linux__) && (defined(__alpha__) || defined(__hppa__))
#define EPCTX__MAP_ANONYMOUS 0x10
#elif defined(__linux__)
#define EPCTX__MAP_ANONYMOUS 0x20
#else
#define EPCTX__MAP_ANONYMOUS 0x1000 /* the BSDs and macOS */
#endif
#ifndef EPCTX__STOP
/* Negative size: a system header came first without _FILE_OFFSET_BITS 64. */
typedef char epctx__needs_64_bit_offsets[sizeof(off_t) >= 8 ? 1 : -1];
#endif
#endif /* _WIN32 */
#endif /* EPCTX_NO_STDIO */

#ifndef EPCTX__STOP

#ifdef __cplusplus
extern "C" {
#endif

/* Guards: conditions that are false, or true, for any input that a test can have. EPCTX_DEBUG
 * aborts on a wrong one, EPCTX_COVERAGE removes the untestable branch. */
#if defined(EPCTX_COVERAGE)
#define EPCTX__NEVER(condition)  false
#define EPCTX__ALWAYS(condition) true
#elif defined(EPCTX_DEBUG)
#define EPCTX__NEVER(condition)  ((condition) ? (abort(), true) : false)
#define EPCTX__ALWAYS(condition) ((condition) ? true : (abort(), false))
#else
#define EPCTX__NEVER(condition)  (condition)
#define EPCTX__ALWAYS(condition) (condition)
#endif

#if defined(__GNUC__) || defined(__clang__)
#define EPCTX__UNUSED __attribute__((unused))
/* Keeps its variables off the stack frame of a recursive caller. */
#define EPCTX__APART __attribute__((noinline))
#else
#define EPCTX__UNUSED
#define EPCTX__APART
#endif

/* ============================================================
 * >>basics
 * ============================================================ */

static const struct {
    const char *name, *text;
    int ort;
} epctx__statuses[] = {
#define EPCTX__STATUS_ROW(name, ort, text) {"EPCTX_" #name, text, ort},
    EPCTX_STATUS_LIST(EPCTX__STATUS_ROW)
#undef EPCTX__STATUS_ROW
        {"unknown status", "unknown status", 1}};

static unsigned epctx__status_row(epctx_status status) {
    return (unsigned)((unsigned)status < EPCTX_STATUS_COUNT ? status : EPCTX_STATUS_COUNT);
}

EPCTX_API const char *epctx_status_name(epctx_status status) {
    return epctx__statuses[epctx__status_row(status)].name;
}

EPCTX_API const char *epctx_status_text(epctx_status status) {
    return epctx__statuses[epctx__status_row(status)].text;
}

EPCTX_API int epctx_status_to_ort(epctx_status status) {
    return epctx__statuses[epctx__status_row(status)].ort;
}

static epctx_str epctx__str(const void *data, size_t size) {
    epctx_str s = {(const char *)data, size};
    return s;
}

EPCTX_API epctx_str epctx_str_of(const char *text) {
    return epctx__str(text, text != NULL ? strlen(text) : 0);
}

EPCTX_API bool epctx_str_eq(epctx_str a, epctx_str b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

EPCTX_API bool epctx_str_is(epctx_str a, const char *b) {
    return epctx_str_eq(a, epctx_str_of(b));
}

static char epctx__lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

EPCTX_API bool epctx_str_eq_nocase(epctx_str a, epctx_str b) {
    size_t i;
    for (i = 0; i < a.size && a.size == b.size; i++)
        if (epctx__lower(a.data[i]) != epctx__lower(b.data[i])) return false;
    return a.size == b.size;
}

EPCTX_API bool epctx_str_starts(epctx_str text, const char *start) {
    size_t size = strlen(start);
    return text.size >= size && (size == 0 || memcmp(text.data, start, size) == 0);
}

static void epctx__str_skip(epctx_str *rest, size_t size) {
    if (size > 0) { /* an empty text may have no data */
        rest->data += size;
        rest->size -= size;
    }
}

/* strcspn(), which a target without a C library lacks. */
static size_t epctx__until(const char *text, const char *ends) {
    size_t size = 0;
    while (text[size] != '\0' && memchr(ends, text[size], strlen(ends)) == NULL) size++;
    return size;
}

EPCTX_API epctx_str epctx_str_cut(epctx_str *rest, char separator) {
    epctx_str part = *rest;
    /* No object is larger than PTRDIFF_MAX: gcc -O3 warns unless it is told. */
    const bool any = part.size > 0 && part.size <= PTRDIFF_MAX;
    const void *end = any ? memchr(part.data, separator, part.size) : NULL;
    if (end == NULL) {
        *rest = epctx_str_of(NULL);
    } else {
        part.size = (size_t)((const char *)end - part.data);
        epctx__str_skip(rest, part.size + 1);
    }
    return part;
}

/* False: not a digit, or overflow. */
static bool epctx__digit(uint64_t *number, char c) {
    unsigned digit = (unsigned)(unsigned char)c - (unsigned)'0';
    if (digit > 9 || *number > UINT64_MAX / 10 ||
        (*number == UINT64_MAX / 10 && digit > UINT64_MAX % 10))
        return false;
    *number = *number * 10 + digit;
    return true;
}

EPCTX_API bool epctx_str_take_number(epctx_str *rest, uint64_t *out) {
    size_t i = 0;
    *out = 0;
    while (i < rest->size && epctx__digit(out, rest->data[i])) i++;
    if (i == 0 || (i < rest->size && rest->data[i] >= '0' && rest->data[i] <= '9')) return false;
    epctx__str_skip(rest, i);
    return true;
}

EPCTX_API bool epctx_str_number(epctx_str text, uint64_t *out) {
    return epctx_str_take_number(&text, out) && text.size == 0;
}

static bool epctx__str_take_hash(epctx_str *rest, uint64_t *out) {
    static const char digits[] = "0123456789abcdef";
    uint64_t hash = 0;
    size_t i;
    *out = 0;
    for (i = 0; i < 16; i++) {
        const void *digit = i < rest->size ? memchr(digits, rest->data[i], 16) : NULL;
        if (digit == NULL) return false;
        hash = hash << 4 | (uint64_t)((const char *)digit - digits);
    }
    *out = hash;
    epctx__str_skip(rest, 16);
    return true;
}

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
EPCTX_API uint32_t epctx_str_char(epctx_str text, size_t at, size_t *size) {
    const unsigned char *p = (const unsigned char *)text.data + at;
    const unsigned lead = p[0];
    unsigned least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    size_t n = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t code = n == 1 ? lead : lead & (0x7fu >> n);
    size_t k;
    *size = 1;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || n > text.size - at) return EPCTX_NO_CHAR;
    for (k = 1; k < n; k++) {
        if (p[k] < least || p[k] > most) return EPCTX_NO_CHAR;
        code = code << 6 | (p[k] & 0x3fu);
        least = 0x80;
        most = 0xbf;
    }
    *size = n;
    return code;
}

EPCTX_API bool epctx_str_is_utf8(epctx_str text) {
    size_t i, n;
    for (i = 0; i < text.size; i += n)
        if (epctx_str_char(text, i, &n) == EPCTX_NO_CHAR) return false;
    return true;
}

static bool epctx__is_hidden(uint32_t code) {
    static const uint32_t hidden[][2] = {
        {0, 0x1f},          {0x7f, 0x9f},          {0xad, 0xad},     {0x61c, 0x61c},
        {0x180e, 0x180e},   {0x200b, 0x200b},      {0x200e, 0x200f}, {0x2028, 0x202e},
        {0x2060, 0x206f},   {0xfeff, 0xfeff},      {0xfff9, 0xfffb}, {0x1d173, 0x1d17a},
        {0xe0000, 0xe007f}, {0x110000, UINT32_MAX}};
    size_t i;
    for (i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i][0] && code <= hidden[i][1]) return true;
    return false;
}

EPCTX_API bool epctx_char_is_shown(uint32_t code, uint32_t before) {
    if (code == 0x200c || code == 0x200d) { /* joining scripts start at U+0590; U+2000 to U+206F is
                                               punctuation and joiners */
        return before >= 0x590 && (before < 0x2000 || before > 0x206f) && !epctx__is_hidden(before);
    }
    return !epctx__is_hidden(code);
}

/* -- text -- */

EPCTX_API epctx_text epctx_text_of(char *buffer, size_t capacity) {
    const bool room = buffer != NULL && capacity > 0;
    epctx_text text = {room ? buffer : NULL, room ? capacity : 1, 0, false};
    if (room) buffer[0] = '\0';
    return text;
}

EPCTX_API epctx_str epctx_text_str(const epctx_text *text) {
    return epctx__str(text->data, text->size);
}

EPCTX_API void epctx_text_put_char(epctx_text *text, char c) {
    epctx_text_put(text, epctx__str(&c, 1));
}

EPCTX_API void epctx_text_put(epctx_text *text, epctx_str part) {
    size_t left = text->capacity - text->size - 1;
    size_t size = part.size < left ? part.size : left;
    text->cut = text->cut || size < part.size;
    if (size > 0) {
        memcpy(text->data + text->size, part.data, size);
        text->size += size;
        text->data[text->size] = '\0';
    }
}

static void epctx__text_digits(epctx_text *text, uint64_t value, unsigned base, size_t least) {
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0 || sizeof digits - at < least);
    epctx_text_put(text, epctx__str(digits + at, sizeof digits - at));
}

/* At least `digits` digits. */
static void epctx__text_put_hex(epctx_text *text, uint64_t value, unsigned digits) {
    epctx__text_digits(text, value, 16, digits < 16 ? digits : 16);
}

/* Leaves room for the rest of a message. */
EPCTX_API void epctx_text_put_shown(epctx_text *text, epctx_str part) {
    const size_t most = text->size + 200;
    uint32_t before = 0;
    size_t i, k, n;
    for (i = 0; i < part.size; i += n) {
        uint32_t code = epctx_str_char(part, i, &n);
        bool shown = epctx_char_is_shown(code, before);
        size_t room = text->size + (shown ? n : 4 * n);
        if (room > most || room >= text->capacity) {
            text->cut = true;
            epctx_text_put(text, epctx_str_of("..."));
            return;
        }
        for (k = i; k < i + n; k++) {
            if (shown) {
                epctx_text_put_char(text, part.data[k]);
            } else {
                epctx_text_put(text, epctx_str_of("\\x"));
                epctx__text_put_hex(text, (unsigned char)part.data[k], 2);
            }
        }
        before = code;
    }
}

EPCTX_API void epctx_text_put_number(epctx_text *text, uint64_t value) {
    epctx__text_digits(text, value, 10, 1);
}

EPCTX_API void epctx_text_put_args(epctx_text *text, const char *format, va_list args) {
    for (; *format != '\0'; format++) {
        int64_t value;
        if (*format != '%') {
            epctx_text_put_char(text, *format);
            continue;
        }
        switch (*++format) {
        case 's': epctx_text_put_shown(text, epctx_str_of(va_arg(args, const char *))); break;
        case 'S': epctx_text_put_shown(text, *va_arg(args, const epctx_str *)); break;
        case 'd':
            value = va_arg(args, int64_t);
            epctx_text_put(text, epctx_str_of(value < 0 ? "-" : ""));
            epctx_text_put_number(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
            break;
        case 'u': epctx_text_put_number(text, va_arg(args, uint64_t)); break;
        case 'x': epctx__text_put_hex(text, va_arg(args, uint64_t), 1); break;
        case '\0': return;
        default: epctx_text_put_char(text, *format);
        }
    }
}

EPCTX_API void epctx_text_put_format(epctx_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    epctx_text_put_args(text, format, args);
    va_end(args);
}

/* -- errors -- */

EPCTX_API void epctx_error_clear(epctx_error *error) {
    if (error != NULL) {
        error->status = EPCTX_OK;
        error->offset = EPCTX_NO_OFFSET;
        error->file[0] = error->node[0] = error->attribute[0] = error->message[0] = '\0';
    }
}

EPCTX_API epctx_status epctx_fail(epctx_error *error, epctx_status status, const char *format,
                                  ...) {
    if (error != NULL && error->status == EPCTX_OK) {
        epctx_text text = epctx_text_of(error->message, sizeof error->message);
        va_list args;
        va_start(args, format);
        epctx_text_put_args(&text, format, args);
        va_end(args);
        error->status = status;
    }
    return status;
}

/* Puts "<what> '<name>': " (or "<name>: ") before the message. */
static void epctx__prefix(epctx_error *error, const char *what, const char *name) {
    char prefix[288];
    epctx_text text = epctx_text_of(prefix, sizeof prefix);
    size_t rest;
    if (error == NULL || error->status == EPCTX_OK) return;
    rest = strlen(error->message);
    epctx_text_put_format(&text, what != NULL ? "%s '%s': " : "%s%s: ", what, name);
    if (rest > sizeof error->message - 1 - text.size) {
        rest = sizeof error->message - 1 - text.size;
        while (rest > 0 && ((unsigned char)error->message[rest] & 0xc0) == 0x80)
            rest--; /* to the start of a character */
    }
    memmove(error->message + text.size, error->message, rest);
    memcpy(error->message, prefix, text.size);
    error->message[text.size + rest] = '\0';
}

/* The first name stays. */
static void epctx__blame_part(epctx_error *error, const char *what, epctx_str name, char *kept,
                              size_t room) {
    if (name.size > 0 && kept[0] == '\0') {
        epctx_text text = epctx_text_of(kept, room);
        epctx_text_put_shown(&text, name);
        epctx__prefix(error, what, kept);
    }
}

EPCTX_API void epctx_blame(epctx_error *error, const char *file, const epctx_str *node,
                           const char *attribute) {
    if (error != NULL && error->status != EPCTX_OK) {
        epctx__blame_part(error, "attribute", epctx_str_of(attribute), error->attribute,
                          sizeof error->attribute);
        epctx__blame_part(error, "node", node != NULL ? *node : epctx_str_of(NULL), error->node,
                          sizeof error->node);
        epctx__blame_part(error, NULL, epctx_str_of(file), error->file, sizeof error->file);
    }
}

static void epctx__error_add(epctx_error *error, const char *text) {
    if (error != NULL && error->status != EPCTX_OK) {
        size_t at = strlen(error->message);
        epctx_text more = epctx_text_of(error->message + at, sizeof error->message - at);
        epctx_text_put(&more, epctx_str_of("; "));
        epctx_text_put(&more, epctx_str_of(text));
    }
}

static epctx_status epctx__nomem(epctx_error *error, uint64_t size) {
    return epctx_fail(error, EPCTX_ERR_NOMEM,
                      "out of memory: %u more bytes of the allocator or buffer were needed", size);
}

/* -- hash: XXH64, for any byte order -- */

#define EPCTX__P1 UINT64_C(0x9E3779B185EBCA87)
#define EPCTX__P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define EPCTX__P3 UINT64_C(0x165667B19E3779F9)
#define EPCTX__P4 UINT64_C(0x85EBCA77C2B2AE63)
#define EPCTX__P5 UINT64_C(0x27D4EB2F165667C5)

static inline uint32_t epctx__le32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t epctx__le64(const uint8_t *p) {
    return (uint64_t)epctx__le32(p) | (uint64_t)epctx__le32(p + 4) << 32;
}

static uint64_t epctx__rotl(uint64_t x, unsigned bits) {
    return x << bits | x >> (64 - bits);
}

static uint64_t epctx__hash_lane(uint64_t lane, uint64_t input) {
    return epctx__rotl(lane + input * EPCTX__P2, 31) * EPCTX__P1;
}

static uint64_t epctx__hash_tail(uint64_t h, const uint8_t *p, size_t left) {
    for (; left >= 8; p += 8, left -= 8)
        h = epctx__rotl(h ^ epctx__hash_lane(0, epctx__le64(p)), 27) * EPCTX__P1 + EPCTX__P4;
    if (left >= 4) {
        h = epctx__rotl(h ^ epctx__le32(p) * EPCTX__P1, 23) * EPCTX__P2 + EPCTX__P3;
        p += 4;
        left -= 4;
    }
    for (; left > 0; p++, left--) h = epctx__rotl(h ^ *p * EPCTX__P5, 11) * EPCTX__P1;
    h = (h ^ h >> 33) * EPCTX__P2;
    h = (h ^ h >> 29) * EPCTX__P3;
    return h ^ h >> 32;
}

EPCTX_API uint64_t epctx_hash(const void *data, size_t size, uint64_t seed) {
    const uint8_t *p = (const uint8_t *)data;
    uint64_t lanes[4] = {seed + EPCTX__P1 + EPCTX__P2, seed + EPCTX__P2, seed, seed - EPCTX__P1};
    uint64_t h = seed + EPCTX__P5;
    size_t left, i;
    for (left = size; left >= 32; p += 32, left -= 32)
        for (i = 0; i < 4; i++) lanes[i] = epctx__hash_lane(lanes[i], epctx__le64(p + 8 * i));
    if (size >= 32) {
        h = epctx__rotl(lanes[0], 1) + epctx__rotl(lanes[1], 7) + epctx__rotl(lanes[2], 12) +
            epctx__rotl(lanes[3], 18);
        for (i = 0; i < 4; i++) h = (h ^ epctx__hash_lane(0, lanes[i])) * EPCTX__P1 + EPCTX__P4;
    }
    return epctx__hash_tail(h + size, p, left);
}

static uint64_t epctx__hash_number(uint64_t h, uint64_t value) {
    uint8_t bytes[8];
    size_t i;
    for (i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    return epctx_hash(bytes, sizeof bytes, h);
}

/* -- memory -- */

#ifndef EPCTX_NO_MALLOC
static void *epctx__malloc(void *user, size_t size) {
    (void)user;
    return malloc(size);
}

static void epctx__mfree(void *user, void *memory) {
    (void)user;
    free(memory);
}
#endif

static epctx_allocator epctx__allocator(const epctx_allocator *allocator) {
#ifdef EPCTX_NO_MALLOC
    static const epctx_allocator standard = {NULL, NULL, NULL};
#else
    static const epctx_allocator standard = {NULL, epctx__malloc, epctx__mfree};
#endif
    return allocator != NULL ? *allocator : standard;
}

static void *epctx__alloc(const epctx_allocator *allocator, size_t size) {
    return allocator->alloc_fn != NULL ? allocator->alloc_fn(allocator->user, size) : NULL;
}

#define EPCTX__ALIGN 16u

#ifndef EPCTX_ARENA_BLOCK
#define EPCTX_ARENA_BLOCK 4096
#endif

/* Smaller blocks are not worth the search for them. */
#define EPCTX__RELEASE (EPCTX_ARENA_BLOCK == 0 ? 1u : 65536u)

typedef struct epctx__block {
    struct epctx__block *next;
    size_t size, after; /* of its memory; least size of the next block */
} epctx__block;

EPCTX_API void epctx_arena_init(epctx_arena *arena, const epctx_allocator *allocator) {
    memset(arena, 0, sizeof *arena);
    arena->allocator = epctx__allocator(allocator);
}

/* Bytes to the next multiple of EPCTX__ALIGN. */
static size_t epctx__padding(const void *memory) {
    return (size_t)(0 - (uintptr_t)memory) & (EPCTX__ALIGN - 1);
}

EPCTX_API void epctx_arena_init_fixed(epctx_arena *arena, void *buffer, size_t size) {
    size_t skip = epctx__padding(buffer);
    memset(arena, 0, sizeof *arena);
    if (skip < size) {
        arena->next = (uint8_t *)buffer + skip;
        arena->left = (size - skip) & ~(size_t)(EPCTX__ALIGN - 1);
    }
}

static uint8_t *epctx__block_memory(epctx__block *block) {
    return (uint8_t *)(block + 1) + epctx__padding(block + 1);
}

/* Adds a block for `size` bytes (at most SIZE_MAX - 4096). Blocks double, but a large request does
 * not enlarge the next ones. */
static bool epctx__arena_grow(epctx_arena *arena, size_t size) {
    size_t usual = arena->blocks != NULL ? arena->blocks->after : EPCTX_ARENA_BLOCK;
    size_t room = usual < size ? size : usual;
    epctx__block *block =
        (epctx__block *)epctx__alloc(&arena->allocator, sizeof *block + EPCTX__ALIGN + room);
    if (block == NULL) return false;
    block->next = arena->blocks;
    block->size = room;
    block->after = usual <= 128 * (size_t)EPCTX_ARENA_BLOCK ? 2 * usual : usual;
    arena->blocks = block;
    arena->next = epctx__block_memory(block);
    arena->left = room;
    return true;
}

/* Frees the former memory of a grown list if it has its own block: this halves the memory use. */
static void epctx__arena_release(epctx_arena *arena, void *memory, size_t size) {
    epctx__block **link = &arena->blocks;
    if (size < EPCTX__RELEASE) return;
    while (*link != NULL && (void *)epctx__block_memory(*link) != memory) link = &(*link)->next;
    if (*link != NULL && (*link)->size - size < EPCTX__ALIGN) {
        epctx__block *block = *link;
        *link = block->next;
        arena->used -= block->size;
        arena->allocator.free_fn(arena->allocator.user, block);
    }
}

/* Uninitialised. */
static void *epctx__arena_raw(epctx_arena *arena, size_t size) {
    uint8_t *memory;
    size_t padded = ((size > 0 ? size : 1) + EPCTX__ALIGN - 1) & ~(size_t)(EPCTX__ALIGN - 1);
    if (size > SIZE_MAX - 4096) {
        arena->missing = size;
        return NULL;
    }
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

EPCTX_API void *epctx_arena_alloc(epctx_arena *arena, size_t size) {
    void *memory = epctx__arena_raw(arena, size);
    if (memory != NULL) memset(memory, 0, size);
    return memory;
}

EPCTX_API void *epctx_arena_array(epctx_arena *arena, size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / size) {
        arena->missing = SIZE_MAX;
        return NULL;
    }
    return epctx_arena_alloc(arena, count * size);
}

EPCTX_API char *epctx_arena_copy(epctx_arena *arena, epctx_str text) {
    char *copy = text.size < SIZE_MAX ? (char *)epctx__arena_raw(arena, text.size + 1) : NULL;
    if (copy != NULL) {
        if (text.size > 0) memcpy(copy, text.data, text.size);
        copy[text.size] = '\0';
    }
    return copy;
}

EPCTX_API void epctx_arena_free(epctx_arena *arena) {
    epctx__block *block = arena->blocks;
    while (block != NULL) {
        epctx__block *next = block->next;
        arena->allocator.free_fn(arena->allocator.user, block);
        block = next;
    }
    memset(arena, 0, sizeof *arena);
}

/* Makes room for one more element. */
static bool epctx__list_room(epctx_arena *arena, void **list, size_t count, size_t *room,
                             size_t size) {
    void *more;
    size_t want = *room == 0 ? 8 : *room * 2;
    if (count < *room) return true;
    more = epctx_arena_array(arena, want, size);
    if (more == NULL) return false;
    if (count > 0) {
        memcpy(more, *list, count * size);
        epctx__arena_release(arena, *list, *room * size);
    }
    *list = more;
    *room = want;
    return true;
}

EPCTX_API void *epctx_list_add(epctx_list *list, epctx_arena *arena, size_t size) {
    if (!epctx__list_room(arena, &list->items, list->count, &list->room, size)) return NULL;
    return memset((uint8_t *)list->items + size * list->count++, 0, size);
}

EPCTX_API void epctx_buffer_init(epctx_buffer *buffer, const epctx_allocator *allocator) {
    memset(buffer, 0, sizeof *buffer);
    buffer->allocator = epctx__allocator(allocator);
}

EPCTX_API epctx_status epctx_buffer_append(epctx_buffer *buffer, const void *data, size_t size) {
    if (size > SIZE_MAX - buffer->size) return EPCTX_ERR_NOMEM;
    if (buffer->size + size > buffer->capacity) {
        epctx_buffer grown = *buffer;
        grown.capacity = grown.capacity < 256 ? 256 : grown.capacity;
        while (grown.capacity < buffer->size + size) {
            grown.capacity =
                grown.capacity > SIZE_MAX / 2 ? buffer->size + size : grown.capacity * 2;
        }
        grown.data = (uint8_t *)epctx__alloc(&grown.allocator, grown.capacity);
        if (grown.data == NULL) return EPCTX_ERR_NOMEM;
        if (buffer->size > 0) memcpy(grown.data, buffer->data, buffer->size);
        epctx_buffer_free(buffer);
        *buffer = grown;
    }
    if (size > 0 && data != NULL)
        memcpy(buffer->data + buffer->size, data, size);
    else if (size > 0)
        memset(buffer->data + buffer->size, 0, size);
    buffer->size += size;
    return EPCTX_OK;
}

EPCTX_API void epctx_buffer_free(epctx_buffer *buffer) {
    if (buffer->data != NULL) buffer->allocator.free_fn(buffer->allocator.user, buffer->data);
    buffer->data = NULL;
    buffer->size = buffer->capacity = 0;
}

/* -- hash tables of balanced trees --
 *
 * Names are hostile and may collide, and without global state there is no secret seed on every
 * platform. So each head has an AA tree, usually of one node: a search takes O(log n) for any
 * names, and runs are reproducible. */

#define EPCTX__NO_NODE    UINT32_MAX
#define EPCTX__TREE_DEPTH 66 /* 2 log2(2^32 nodes), new node, head */
#define EPCTX__TAG        0x3ffffffu

/* How a node hangs in its tree. Nodes are indices into an array. */
typedef struct epctx__links {
    uint32_t link[2];
    uint32_t level : 6;
    uint32_t tag : 26; /* of the hash */
} epctx__links;

/* The links from the head to where the new node belongs. */
typedef struct epctx__path {
    uint32_t *link[EPCTX__TREE_DEPTH];
    size_t depth;
} epctx__path;

/* Nodes are ordered by tag, then by order_fn: above 0 when `search` comes after the node (NULL:
 * after all). */
typedef struct epctx__table {
    epctx__links *links;
    size_t stride;
    uint32_t *heads;
    size_t capacity; /* of the heads, a power of two */
    int (*order_fn)(void *search, uint32_t index);
} epctx__table;

static epctx__links *epctx__links_at(const epctx__table *table, uint32_t index) {
    return (epctx__links *)(void *)((uint8_t *)table->links + index * table->stride);
}

/* The equal node or EPCTX__NO_NODE; `path` leads to its place. */
static uint32_t epctx__table_find(const epctx__table *table, uint64_t hash, void *search,
                                  epctx__path *path) {
    const uint32_t tag = hash & EPCTX__TAG;
    uint32_t *link = &table->heads[tag & (table->capacity - 1)];
    path->depth = 0;
    for (;;) {
        epctx__links *node;
        int order;
        path->link[path->depth++] = link;
        if (*link == EPCTX__NO_NODE) return *link;
        node = epctx__links_at(table, *link);
        order = tag != node->tag          ? (tag > node->tag) - (tag < node->tag)
                : table->order_fn != NULL ? table->order_fn(search, *link)
                                          : 1;
        if (order == 0) return *link;
        link = &node->link[order > 0];
    }
}

static bool epctx__on_level(const epctx__table *table, uint32_t index, uint32_t level) {
    return index != EPCTX__NO_NODE && epctx__links_at(table, index)->level == level;
}

/* AA tree: skew, then split. Above a new node, a right child exists. */
static void epctx__tree_balance(const epctx__table *table, uint32_t *link) {
    epctx__links *top = epctx__links_at(table, *link);
    uint32_t child = top->link[0];
    epctx__links *middle;
    if (epctx__on_level(table, child, top->level)) {
        middle = epctx__links_at(table, child);
        top->link[0] = middle->link[1];
        middle->link[1] = *link;
        *link = child;
        top = middle;
    }
    child = top->link[1];
    middle = epctx__links_at(table, child);
    if (epctx__on_level(table, middle->link[1], top->level)) {
        top->link[1] = middle->link[0];
        middle->link[0] = *link;
        middle->level++;
        *link = child;
    }
}

/* Adds a node at the end of a failed search. */
static void epctx__table_add(const epctx__table *table, uint64_t hash, epctx__path *path,
                             uint32_t index) {
    epctx__links *node = epctx__links_at(table, index);
    node->link[0] = node->link[1] = EPCTX__NO_NODE;
    node->level = 1;
    node->tag = hash & EPCTX__TAG;
    *path->link[--path->depth] = index;
    while (path->depth > 0) epctx__tree_balance(table, path->link[--path->depth]);
}

/* Moves the nodes of a smaller table, with these heads, in their order: each goes to the end of its
 * new tree without comparisons. */
static void epctx__table_fill(const epctx__table *table, const uint32_t *heads, size_t capacity) {
    uint32_t left[EPCTX__TREE_DEPTH]; /* nodes whose left subtrees were moved */
    epctx__table behind = *table;
    epctx__path path;
    size_t head, depth = 0;
    behind.order_fn = NULL;
    memset(table->heads, 0xff, table->capacity * sizeof *table->heads);
    for (head = 0; head < capacity; head++) {
        uint32_t next = heads[head];
        while (next != EPCTX__NO_NODE || depth > 0) {
            epctx__links *node;
            for (; next != EPCTX__NO_NODE; next = epctx__links_at(table, next)->link[0])
                left[depth++] = next;
            node = epctx__links_at(table, left[--depth]);
            next = node->link[1];
            epctx__table_find(&behind, node->tag, NULL, &path);
            epctx__table_add(&behind, node->tag, &path, left[depth]);
        }
    }
}

/* -- map -- */

struct epctx__map_node {
    epctx__links links;
    uint32_t value;
    epctx_str key;
};

typedef struct epctx__map_search {
    const struct epctx__map_node *nodes;
    epctx_str key;
} epctx__map_search;

static int epctx__map_order(void *search, uint32_t index) {
    const epctx__map_search *s = (const epctx__map_search *)search;
    epctx_str key = s->nodes[index].key;
    int order = (s->key.size > key.size) - (s->key.size < key.size);
    return order != 0 || key.size == 0 ? order : memcmp(s->key.data, key.data, key.size);
}

static epctx__table epctx__map_table(const epctx_map *map) {
    epctx__table table = {(epctx__links *)(void *)map->nodes, sizeof *map->nodes, map->heads,
                          map->capacity, epctx__map_order};
    return table;
}

EPCTX_API void epctx_map_init(epctx_map *map, epctx_arena *arena) {
    memset(map, 0, sizeof *map);
    map->arena = arena;
}

static uint32_t epctx__map_find(const epctx_map *map, epctx_str key, uint64_t hash,
                                epctx__path *path) {
    epctx__table table = epctx__map_table(map);
    epctx__map_search search = {map->nodes, key};
    return map->capacity > 0 ? epctx__table_find(&table, hash, &search, path) : EPCTX__NO_NODE;
}

EPCTX_API uint32_t epctx_map_get(const epctx_map *map, epctx_str key) {
    epctx__path path;
    uint32_t index = epctx__map_find(map, key, epctx_hash(key.data, key.size, 0), &path);
    return index != EPCTX__NO_NODE ? map->nodes[index].value : EPCTX_MAP_NONE;
}

static epctx_status epctx__map_grow(epctx_map *map) {
    const size_t each = sizeof *map->nodes + sizeof *map->heads;
    epctx_map grown = *map;
    epctx__table table;
    grown.capacity = map->capacity == 0 ? 16 : map->capacity * 2;
    grown.nodes = (struct epctx__map_node *)epctx_arena_array(map->arena, grown.capacity, each);
    if (grown.nodes == NULL || grown.capacity > (size_t)1 << 31) /* not taken: 2^31 names */
        return EPCTX_ERR_NOMEM;
    grown.heads = (uint32_t *)(void *)(grown.nodes + grown.capacity);
    if (map->count > 0) memcpy(grown.nodes, map->nodes, map->count * sizeof *map->nodes);
    table = epctx__map_table(&grown);
    epctx__table_fill(&table, map->heads, map->capacity);
    epctx__arena_release(map->arena, map->nodes, map->capacity * each);
    *map = grown;
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_map_put(epctx_map *map, epctx_str key, uint32_t value) {
    uint64_t hash = epctx_hash(key.data, key.size, 0);
    epctx__path path;
    uint32_t index = epctx__map_find(map, key, hash, &path);
    if (index == EPCTX__NO_NODE) {
        epctx__table table;
        if (map->count == map->capacity) {
            EPCTX__TRY(epctx__map_grow(map));
            epctx__map_find(map, key, hash, &path);
        }
        table = epctx__map_table(map);
        index = (uint32_t)map->count++;
        map->nodes[index].key = key;
        epctx__table_add(&table, hash, &path, index);
    }
    map->nodes[index].value = value;
    return EPCTX_OK;
}

static EPCTX__UNUSED bool epctx__has(const epctx_map *map, epctx_str key) {
    return epctx_map_get(map, key) != EPCTX_MAP_NONE;
}

/* -- allocation with an error -- */

/* Makes `out` an array of zeros. */
#define EPCTX__NEW(out, type, count, arena, error) \
    do { \
        (out) = (type *)epctx_arena_array(arena, count, sizeof(type)); \
        if ((out) == NULL) { \
            epctx__nomem(error, (arena)->missing); \
            return EPCTX_ERR_NOMEM; /* so that compilers see a failure */ \
        } \
    } while (0)

static EPCTX__UNUSED epctx_status epctx__copy(epctx_arena *arena, epctx_str text, const char **out,
                                              epctx_error *error) {
    *out = epctx_arena_copy(arena, text);
    return *out != NULL ? EPCTX_OK : epctx__nomem(error, arena->missing);
}

static EPCTX__UNUSED epctx_status epctx__map_set(epctx_map *map, epctx_str key, size_t value,
                                                 epctx_error *error) {
    return epctx_map_put(map, key, (uint32_t)value) == EPCTX_OK
               ? EPCTX_OK
               : epctx__nomem(error, map->arena->missing);
}

/* For binaries that live as long as their model. */
static EPCTX__UNUSED void *epctx__arena_alloc_fn(void *user, size_t size) {
    return epctx__arena_raw((epctx_arena *)user, size);
}

static EPCTX__UNUSED void epctx__arena_free_fn(void *user, void *memory) {
    (void)user;
    (void)memory;
}

static EPCTX__UNUSED epctx_allocator epctx__in_arena(epctx_arena *arena) {
    epctx_allocator in_arena = {arena, epctx__arena_alloc_fn, epctx__arena_free_fn};
    return in_arena;
}

static bool epctx__ends_with(epctx_str text, const char *end) {
    size_t size = strlen(end);
    return text.size >= size && (size == 0 || memcmp(text.data + text.size - size, end, size) == 0);
}

EPCTX_API epctx_status epctx_cancelled(const epctx_hooks *hooks, epctx_error *error) {
    if (hooks != NULL && hooks->cancel_fn != NULL && hooks->cancel_fn(hooks->user))
        return epctx_fail(error, EPCTX_ERR_CANCELLED, "cancelled by the caller");
    return EPCTX_OK;
}

static void epctx__progress(const epctx_hooks *hooks, const char *work, uint64_t done,
                            uint64_t total) {
    if (hooks != NULL && hooks->progress_fn != NULL)
        hooks->progress_fn(hooks->user, work, done, total);
}

/* ============================================================
 * >>path
 * ============================================================ */

/* On every system: models are portable. */
static bool epctx__is_separator(char c) {
    return c == '/' || c == '\\';
}

/* Bytes of a context, say. ORT opens external data by any name. */
static bool epctx__has_controls(epctx_str name) {
    size_t i;
    for (i = 0; i < name.size; i++)
        if ((uint8_t)name.data[i] < 0x20 || name.data[i] == 0x7f) return true;
    return false;
}

/* Why a name from a model is refused, or NULL: the same answer on every system. */
static const char *epctx__path_fault(epctx_str name, uint32_t flags) {
    size_t start = 0;
    size_t i;
    if (name.size == 0) return "is empty";
    if (memchr(name.data, '\0', name.size) != NULL) return "contains a NUL byte";
    if ((flags & EPCTX_PATH_DETOURS) == 0 && epctx__has_controls(name))
        return "contains a control character, expected the name of a file";
    if (epctx__is_separator(name.data[0]) ||
        (name.size >= 2 && name.data[1] == ':' && ((unsigned)name.data[0] | 0x20u) - 'a' < 26))
        return "is absolute, expected a path relative to the model";
    if (name.size >= 2 && memcmp(name.data, "*/", 2) == 0)
        return "is ORT's tag for data in memory, not a file";
#ifdef _WIN32
    if (memchr(name.data, ':', name.size) != NULL)
        return "names a stream of a file, a file is expected";
#endif
    for (i = 0; i <= name.size && (flags & EPCTX_PATH_DETOURS) == 0; i++) {
        if (i == name.size || epctx__is_separator(name.data[i])) {
            if (i - start == 2 && memcmp(name.data + start, "..", 2) == 0) return "contains '..'";
            start = i + 1;
        }
    }
    return NULL;
}

static epctx_status epctx__path_check(epctx_str name, uint32_t flags, epctx_error *error) {
    const char *fault = epctx__path_fault(name, flags);
    epctx_error_clear(error);
    return fault == NULL ? EPCTX_OK
                         : epctx_fail(error, EPCTX_ERR_PATH, "path '%S' %s", &name, fault);
}

EPCTX_API epctx_status epctx_path_check(epctx_str name, epctx_error *error) {
    return epctx__path_check(name, 0, error);
}

EPCTX_API epctx_str epctx_path_folder(epctx_str path) {
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

EPCTX_API epctx_str epctx_path_file(epctx_str path) {
    size_t folder = epctx_path_folder(path).size;
    path.data = path.size > 0 ? path.data + folder : path.data;
    path.size -= folder;
    return path;
}

/* Whether a path that ends in `file` can only be that of a folder. */
static bool epctx__names_folder(epctx_str file) {
    return file.size == 0 || file.data[file.size - 1] == '\\' || epctx_str_is(file, ".") ||
           epctx_str_is(file, "..");
}

EPCTX_API epctx_status epctx_path_base(epctx_str model_path, epctx_str context_file_path,
                                       epctx_str *folder, epctx_error *error) {
    epctx_str file = epctx_path_file(context_file_path);
    epctx_error_clear(error);
    if (file.size > 0 && epctx__names_folder(file)) {
        return epctx_fail(error, EPCTX_ERR_PATH,
                          "ep.context_file_path '%S' should not point to a folder: the path of a "
                          "file in it is expected, or a separator at the end",
                          &context_file_path);
    }
    *folder = epctx_path_folder(context_file_path.size > 0 ? context_file_path : model_path);
    if (context_file_path.size == 0 && model_path.size == 0) {
        return epctx_fail(error, EPCTX_ERR_PATH,
                          "no path of the model is known, as of one from memory: set "
                          "ep.context_file_path; its folder is searched for context binaries");
    }
    return EPCTX_OK;
}

/* Concatenates; `what` is for the message. */
static epctx_status epctx__join(char *out, size_t capacity, const epctx_str *parts, size_t count,
                                const char *what, epctx_error *error) {
    size_t at = 0;
    size_t i;
    for (i = 0; i < count; i++) {
        if (parts[i].size >= capacity - at) {
            return epctx_fail(error, EPCTX_ERR_LIMIT, "%s is longer than %u bytes", what,
                              (uint64_t)capacity - 1);
        }
        if (parts[i].size > 0) memcpy(out + at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    out[at] = '\0';
    return EPCTX_OK;
}

static epctx_status epctx__path_join(char *out, size_t capacity, const epctx_str *parts,
                                     size_t count, epctx_error *error) {
    epctx_error_clear(error);
    return epctx__join(out, capacity, parts, count, "a path", error);
}

EPCTX_API epctx_status epctx_path_join(epctx_str folder, epctx_str name, char *out, size_t capacity,
                                       epctx_error *error) {
    epctx_str parts[3];
    char end = folder.size > 0 ? folder.data[folder.size - 1] : '/';
    parts[0] = folder;
    parts[1] = epctx_str_of(epctx__is_separator(end) ? "" : "/");
    parts[2] = name;
#ifdef _WIN32
    if (end == ':') parts[1] = epctx_str_of("./"); /* "C:" is the current folder, not the root */
#endif
    return epctx__path_join(out, capacity, parts, 3, error);
}

EPCTX_API epctx_status epctx_path_relative(epctx_str folder, epctx_str path, epctx_str *name,
                                           epctx_error *error) {
    size_t size = folder.size;
    epctx_error_clear(error);
    while (size > 0 && epctx__is_separator(folder.data[size - 1])) size--;
    *name = path;
    if (path.size <= size || (size > 0 && memcmp(folder.data, path.data, size) != 0) ||
        !epctx__is_separator(path.data[size])) {
        return epctx_fail(error, EPCTX_ERR_PATH, "'%S' is outside of the folder '%S'", &path,
                          &folder);
    }
    while (size < path.size && epctx__is_separator(path.data[size])) size++;
    name->data += size;
    name->size -= size;
    return EPCTX_OK;
}

/* Without the extension; a leading dot belongs to the name. */
static epctx_str epctx__path_stem(epctx_str file) {
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
                                                epctx_error *error) {
    epctx_str parts[3];
    epctx_error_clear(error);
    parts[0] = epctx_path_folder(model_path);
    parts[1] = epctx__path_stem(epctx_path_file(model_path));
    parts[2] = epctx_str_of("_ctx.onnx");
    return parts[1].size > 0
               ? epctx__path_join(out, capacity, parts, 3, error)
               : epctx_fail(error, EPCTX_ERR_PATH,
                            "there is no model file name to start from: set ep.context_file_path");
}

EPCTX_API epctx_status epctx_path_binary(epctx_str context_model_path, epctx_str short_name,
                                         char *out, size_t capacity, epctx_error *error) {
    epctx_str parts[4];
    epctx_error_clear(error);
    parts[0] = epctx__path_stem(epctx_path_file(context_model_path));
    parts[1] = epctx_str_of("_");
    parts[2] = short_name;
    parts[3] = epctx_str_of(".bin");
    if (parts[0].size > 4 && epctx__ends_with(parts[0], "_ctx")) parts[0].size -= 4;
    if (parts[0].size == 0 || short_name.size == 0) {
        return epctx_fail(error, EPCTX_ERR_PATH,
                          "a context binary needs a model name and an EP name");
    }
    EPCTX__TRY(epctx__path_join(out, capacity, parts, 4, error));
    /* Readers would refuse the binary's name of "C:m_ctx.onnx". */
    return epctx_path_check(epctx_str_of(out), error);
}

EPCTX_API epctx_status epctx_path_numbered(epctx_str name, uint64_t number, char *out,
                                           size_t capacity, epctx_error *error) {
    char digits[24];
    epctx_text text = epctx_text_of(digits, sizeof digits);
    epctx_str parts[3];
    epctx_text_put_format(&text, "_%u", number);
    parts[0] = name;
    parts[0].size = epctx_path_folder(name).size + epctx__path_stem(epctx_path_file(name)).size;
    parts[1] = epctx_text_str(&text);
    parts[2] = name;
    epctx__str_skip(&parts[2], parts[0].size);
    return epctx__path_join(out, capacity, parts, 3, error);
}

/* ============================================================
 * >>io
 *
 * All other sections reach files through an epctx_io, a table of callbacks. There are three:
 * epctx_io_files and epctx_io_private, which differ only in map_fn, and epctx_io_buffers over the
 * named buffers of an application. The callbacks for files (epctx__file_...) rest on a few system
 * calls (epctx__sys_...), which are written twice: for Windows and for POSIX.
 *
 * A name never shows half a file: that is the invariant. epctx__file_make creates the new file
 * without a name (O_TMPFILE) or with a temporary one; write_fn and sync_fn complete it. Only then
 * does epctx__file_place give it its name. If nothing has that name, it makes a hard link, which
 * fails when a file has appeared meanwhile (without hard links, it renames). If an old file has the
 * name, it gives that file a second name first (`kept`: a hard link, else a durable copy) and
 * renames the new file over it. back_fn renames the old file back; close_fn removes the names that
 * are left. Wherever a process is killed, the name shows the old file or the new one, or nothing
 * after clear_fn.
 *
 * Names from a model are hostile. The callbacks get the model's folder as `root` and follow no link
 * below it: POSIX opens each part with O_NOFOLLOW, Windows compares the path of the open file with
 * the one asked for. A link that somebody puts there after the check is therefore an error. On
 * POSIX all later steps use the open folder, so renaming it does not redirect them.
 * epctx__map_handle accepts only regular files, and fails if a file changes while it is copied into
 * private memory.
 *
 * The tables are constant and each epctx_io_file has one user, so threads need no mutex. lock_fn
 * holds an empty file, with flock or on Windows by opening it exclusively; the system releases it
 * when the process dies. Speed comes from mapping instead of reading, and from epctx__sys_start, by
 * which Linux writes 8 MiB to the disk while the next are prepared: the final fsync is short.
 * ============================================================ */

EPCTX_API bool epctx_file_same(const epctx_file_info *a, const epctx_file_info *b) {
    return (a->device != 0 || a->inode != 0) && a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->written == b->written;
}

static epctx_status epctx__file_failed(epctx_error *error, epctx_status status, const char *what,
                                       const char *path) {
    epctx_fail(error, status, "%s", what);
    epctx_blame(error, path, NULL, NULL);
    return status;
}

/* Joins `base`, `mark` and, from 2 on, `number`: FILE~, FILE~2 ... Cuts `base` between two UTF-8
 * characters so that the name has at most `most` bytes. */
static void epctx__name_end(char out[EPCTX_NAME_MAX], const char *base, const char *mark,
                            unsigned number, size_t most) {
    char end[64];
    epctx_text text = epctx_text_of(end, sizeof end);
    size_t size = strlen(base);
    epctx_text_put_format(&text, number > 1 ? "%s%u" : "%s", mark, (uint64_t)number);
    if (size + text.size > most) {
        size = most - text.size;
        while (size > 0 && ((unsigned char)base[size] & 0xc0) == 0x80) size--;
    }
    memcpy(out, base, size);
    memcpy(out + size, end, text.size + 1);
}

static epctx_status epctx__file_exists(const char *path, epctx_error *error) {
    return epctx__file_failed(error, EPCTX_ERR_EXISTS,
                              "exists already: remove it or allow overwriting", path);
}

#define EPCTX__NAME_MOST (EPCTX_NAME_MAX - 1)
#define EPCTX__TEMP_MOST 140 /* bytes that every file system allows in a name */
#define EPCTX__ATTEMPTS  1000u
#define EPCTX__AHEAD     (8u << 20) /* bytes that go to the disk while the next are written */

#ifdef EPCTX_NO_STDIO
#define EPCTX__FILES   NULL
#define EPCTX__PRIVATE NULL
#else

/* State of an epctx_io_file. */
enum {
    EPCTX__FILE_INSIDE = 1,  /* no link allowed */
    EPCTX__FILE_BACKUP = 2,  /* `kept` stays */
    EPCTX__FILE_CLEARED = 4, /* `kept` is the only name of the old file */
    EPCTX__FILE_PLACED = 8,  /* in place */
    EPCTX__FILE_LOCK = 16
};

static const char *epctx__base(const epctx_io_file *file) {
    return epctx_path_file(epctx_str_of(file->path)).data;
}

/* After a failed system call: "cannot `what`". */
static epctx_status epctx__io_error(epctx_error *error, const char *what, const char *path);

/* -- the system: errors are in errno or GetLastError() -- */

#ifdef _WIN32

/* Names are UTF-8 outside and UTF-16 inside, with the prefix that lifts the limit of 260
 * characters. Returned paths have "/" as separator. */
#define EPCTX__WIDE_MAX       (EPCTX_PATH_MAX + 8)
#define EPCTX__NO_HANDLE      INVALID_HANDLE_VALUE
#define EPCTX__CLOSE(file)    CloseHandle(file)
/* Keeps the file of a mapping open: Windows then lets nobody write it. */
#define EPCTX__LEAVE(m, from) ((m)->shared ? ((m)->file = (from)) != NULL : CloseHandle(from))
#define EPCTX__UNMAP(m)       (UnmapViewOfFile((m)->handle), (m)->file && CloseHandle((m)->file))
#define EPCTX__PROCESS()      GetCurrentProcessId()
#define EPCTX__REASON()       GetLastError()
#define EPCTX__LINKED()       (GetLastError() == ERROR_CANT_RESOLVE_FILENAME)

typedef HANDLE epctx__handle;
typedef DWORD epctx__stat; /* attributes */

static const DWORD epctx__reasons[][2] = {
    {ERROR_FILE_NOT_FOUND, EPCTX_ERR_NOT_FOUND},     {ERROR_PATH_NOT_FOUND, EPCTX_ERR_NOT_FOUND},
    {ERROR_INVALID_NAME, EPCTX_ERR_NOT_FOUND},       {ERROR_BAD_NETPATH, EPCTX_ERR_NOT_FOUND},
    {ERROR_BAD_NET_NAME, EPCTX_ERR_NOT_FOUND},       {ERROR_ALREADY_EXISTS, EPCTX_ERR_EXISTS},
    {ERROR_FILE_EXISTS, EPCTX_ERR_EXISTS},           {ERROR_NOT_SUPPORTED, EPCTX_ERR_UNSUPPORTED},
    {ERROR_INVALID_FUNCTION, EPCTX_ERR_UNSUPPORTED}, {ERROR_TOO_MANY_LINKS, EPCTX_ERR_UNSUPPORTED},
    {ERROR_NOT_SAME_DEVICE, EPCTX_ERR_UNSUPPORTED},  {ERROR_CANT_RESOLVE_FILENAME, EPCTX_ERR_PATH},
    {ERROR_FILENAME_EXCED_RANGE, EPCTX_ERR_PATH},    {ERROR_NO_UNICODE_TRANSLATION, EPCTX_ERR_PATH},
};

static const char *epctx__sys_text(char out[512]) {
    const DWORD how = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
                      FORMAT_MESSAGE_MAX_WIDTH_MASK; /* in one line */
    WCHAR wide[256];
    DWORD code = GetLastError();
    DWORD count = FormatMessageW(how, NULL, code, 0, wide, 256, NULL);
    int size =
        count > 0 ? WideCharToMultiByte(CP_UTF8, 0, wide, (int)count, out, 480, NULL, NULL) : 0;
    epctx_text end = epctx_text_of(out + size, 512 - (size_t)size);
    epctx_text_put_format(&end, "(error %u)", (uint64_t)code);
    return code == ERROR_NO_UNICODE_TRANSLATION ? "its name is not UTF-8" : out;
}

/* A path, or a name in the folder of `file`. */
static bool epctx__wide(const epctx_io_file *file, const char *name, WCHAR out[EPCTX__WIDE_MAX]) {
    char path[EPCTX_PATH_MAX];
    WCHAR given[EPCTX_PATH_MAX];
    WCHAR *full = out + 8;
    const WCHAR *prefix = L"\\\\?\\";
    epctx_str folder = epctx_path_folder(epctx_str_of(file != NULL ? file->path : ""));
    DWORD size = EPCTX_PATH_MAX;
    if (epctx_path_join(folder, epctx_str_of(name), path, sizeof path, NULL) == EPCTX_OK) {
        if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, given, EPCTX_PATH_MAX) ==
            0)
            return false;
        size = GetFullPathNameW(given, EPCTX_PATH_MAX, full, NULL);
    }
    if (size >= EPCTX_PATH_MAX) SetLastError(ERROR_FILENAME_EXCED_RANGE);
    if (size == 0 || size >= EPCTX_PATH_MAX) return false;
    if (wcsncmp(full, L"\\\\?\\", 4) == 0 || wcsncmp(full, L"\\\\.\\", 4) == 0) {
        prefix = L"";
    } else if (wcsncmp(full, L"\\\\", 2) == 0) {
        prefix = L"\\\\?\\UNC\\";
        full += 2;
    }
    memmove(out + wcslen(prefix), full, (wcslen(full) + 1) * sizeof *out);
    memcpy(out, prefix, wcslen(prefix) * sizeof *out);
    return true;
}

/* The length of an open file's path without links, 0 on an error. Wine has room for 260 characters
 * only: there a longer path is on the drive of `asked`. */
static DWORD epctx__wide_real(HANDLE file, const WCHAR *asked, WCHAR out[EPCTX__WIDE_MAX]) {
    DWORD size = GetFinalPathNameByHandleW(file, out, EPCTX__WIDE_MAX, 0);
    if (size == 0 && GetLastError() == ERROR_MORE_DATA && asked[5] == L':' &&
        GetFileInformationByHandleEx(file, FileNameInfo, out + 4, 2 * EPCTX_PATH_MAX)) {
        memcpy(&size, out + 4, sizeof size); /* in front of the name */
        size = 6 + size / 2;
        memcpy(out, asked, 12);
        out[size] = L'\0';
    }
    return size < EPCTX__WIDE_MAX ? size : 0;
}

/* Opens a file or folder (`access` 0: to examine it), or creates a file to write. `inside`: through
 * no link. */
static HANDLE epctx__wide_open(const epctx_io_file *file, const char *name, DWORD access,
                               bool inside) {
    const bool make = access == GENERIC_WRITE;
    DWORD share = FILE_SHARE_DELETE | (make ? 0 : FILE_SHARE_READ) |
                  (access == 0 ? FILE_SHARE_WRITE : 0); /* readers want no changes */
    WCHAR wide[EPCTX__WIDE_MAX];
    WCHAR real[EPCTX__WIDE_MAX];
    HANDLE opened;
    DWORD size;
    if (!epctx__wide(file, name, wide)) return EPCTX__NO_HANDLE;
    opened = CreateFileW(wide, access, share, NULL, make ? CREATE_NEW : OPEN_EXISTING,
                         FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (opened == EPCTX__NO_HANDLE || !inside) return opened;
    size = epctx__wide_real(opened, wide, real);
    if (size > 0 && wcsncmp(real, wide, size) == 0 &&
        (wide[size] == L'\0' || wcscmp(wide + size, L"\\") == 0))
        return opened;
    CloseHandle(opened);
    if (make) DeleteFileW(wide);
    SetLastError(ERROR_CANT_RESOLVE_FILENAME);
    return EPCTX__NO_HANDLE;
}

static HANDLE epctx__sys_open(const char *root, const char *name) {
    char path[EPCTX_PATH_MAX];
    if (epctx_path_join(epctx_str_of(root), epctx_str_of(name), path, sizeof path, NULL) !=
        EPCTX_OK) {
        SetLastError(ERROR_FILENAME_EXCED_RANGE);
        return EPCTX__NO_HANDLE;
    }
    return epctx__wide_open(NULL, path, GENERIC_READ, root != NULL);
}

/* Examines the file at `path`; if that is NULL, the open file. */
static bool epctx__sys_stat(const char *path, HANDLE file, epctx_file_info *out) {
    BY_HANDLE_FILE_INFORMATION info;
    file = path != NULL ? epctx__wide_open(NULL, path, 0, false) : file;
    if (file == EPCTX__NO_HANDLE) return false;
    memset(out, 0, sizeof *out);
    out->kind = EPCTX_FILE_OTHER;
    out->guarded = true;
    if (GetFileType(file) == FILE_TYPE_DISK && GetFileInformationByHandle(file, &info)) {
        out->kind = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? EPCTX_FILE_FOLDER
                                                                            : EPCTX_FILE_REGULAR;
        out->size = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
        out->device = info.dwVolumeSerialNumber;
        out->inode = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
        /* In units of 100 ns. Windows has no `changed`. */
        out->written = ((uint64_t)info.ftLastWriteTime.dwHighDateTime << 32 |
                        info.ftLastWriteTime.dwLowDateTime) *
                       100;
    }
    if (path != NULL) CloseHandle(file);
    return true;
}

static int64_t epctx__sys_read(HANDLE file, void *out, uint64_t size, uint64_t at) {
    DWORD count = 0;
    (void)at; /* where the last call ended */
    return ReadFile(file, out, size < 0x40000000 ? (DWORD)size : 0x40000000, &count, NULL)
               ? (int64_t)count
               : -1;
}

static int64_t epctx__sys_write(HANDLE file, const void *data, size_t size) {
    DWORD count = 0;
    return WriteFile(file, data, (DWORD)size, &count, NULL) ? (int64_t)count : -1;
}

/* Maps a file for reading, or (EPCTX__NO_HANDLE) private memory for writing. */
static void *epctx__sys_map(HANDLE file, size_t size) {
    bool own = file == EPCTX__NO_HANDLE;
    void *data = NULL;
    HANDLE section =
        CreateFileMappingW(file, NULL, own ? PAGE_READWRITE : PAGE_READONLY,
                           (DWORD)((uint64_t)size >> 32), (DWORD)(size & 0xffffffffu), NULL);
    if (section != NULL) {
        data = MapViewOfFile(section, own ? FILE_MAP_WRITE : FILE_MAP_READ, 0, 0, size);
        CloseHandle(section);
    }
    return data;
}

/* The path without links, as "C:/folder/file" or "//server/share/file". */
static bool epctx__sys_real(const char *path, char out[EPCTX_PATH_MAX]) {
    HANDLE file = epctx__wide_open(NULL, path, 0, false);
    WCHAR asked[EPCTX__WIDE_MAX];
    WCHAR wide[EPCTX__WIDE_MAX];
    WCHAR *from = wide;
    DWORD size;
    if (file == EPCTX__NO_HANDLE) return false;
    size = epctx__wide(NULL, path, asked) ? epctx__wide_real(file, asked, wide) : 0;
    CloseHandle(file);
    if (size == 0) return false;
    if (wcsncmp(wide, L"\\\\?\\UNC\\", 8) == 0) {
        from = wide + 6;
        *from = L'\\';
    } else if (wcsncmp(wide, L"\\\\?\\", 4) == 0) {
        from = wide + 4;
    }
    size = (DWORD)WideCharToMultiByte(CP_UTF8, 0, from, -1, out, EPCTX_PATH_MAX, NULL, NULL);
    for (; size > 0 && *out != '\0'; out++) *out = *out == '\\' ? '/' : *out;
    return size > 0;
}

static epctx_status epctx__file_list(void *user, const char *folder,
                                     bool (*name_fn)(void *state, const char *name), void *state,
                                     epctx_error *error) {
    WCHAR wide[EPCTX__WIDE_MAX];
    WIN32_FIND_DATAW entry;
    char name[EPCTX_PATH_MAX];
    HANDLE search;
    (void)user;
    EPCTX__TRY(epctx_path_join(epctx_str_of(folder), epctx_str_of("*"), name, sizeof name, error));
    search = epctx__wide(NULL, name, wide) ? FindFirstFileW(wide, &entry) : INVALID_HANDLE_VALUE;
    if (search == INVALID_HANDLE_VALUE) return epctx__io_error(error, "list", folder);
    do { /* skips names that are not Unicode */
        if (WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, entry.cFileName, -1, name,
                                sizeof name, NULL, NULL) > 0 &&
            !name_fn(state, name))
            break;
    } while (FindNextFileW(search, &entry));
    FindClose(search);
    return EPCTX_OK;
}

/* Below a root, checks that the folder of file->path is reached through no link. */
static bool epctx__sys_enter(const char *root, const char *folder, epctx_io_file *file) {
    HANDLE there = root != NULL ? epctx__wide_open(file, ".", 0, true) : EPCTX__NO_HANDLE;
    (void)folder;
    return root == NULL || (there != EPCTX__NO_HANDLE && CloseHandle(there));
}

#define epctx__sys_mode(file, old) true

static epctx_file_kind epctx__sys_look(const epctx_io_file *file, const char *name, DWORD *there) {
    WCHAR wide[EPCTX__WIDE_MAX];
    name = name != NULL ? name : epctx__base(file);
    *there = epctx__wide(file, name, wide) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
    if (*there == INVALID_FILE_ATTRIBUTES) return EPCTX_FILE_NONE;
    if ((*there & FILE_ATTRIBUTE_REPARSE_POINT) != 0) return EPCTX_FILE_LINK;
    return (*there & FILE_ATTRIBUTE_DIRECTORY) != 0 ? EPCTX_FILE_FOLDER : EPCTX_FILE_REGULAR;
}

static HANDLE epctx__sys_make(const epctx_io_file *file, const char *name, int mode) {
    return name == NULL ? EPCTX__NO_HANDLE
                        : epctx__wide_open(file, name, mode == 0 ? GENERIC_READ : GENERIC_WRITE,
                                           mode != 0 && (file->state & EPCTX__FILE_INSIDE) != 0);
}

/* MOVEFILE_WRITE_THROUGH flushes folders. */
static epctx_status epctx__flush(const epctx_io_file *file, bool folder, epctx_error *error) {
    return folder || FlushFileBuffers((HANDLE)file->descriptor)
               ? EPCTX_OK
               : epctx__io_error(error, "flush", file->path);
}

static bool epctx__sys_link(const epctx_io_file *from, const char *name, const epctx_io_file *to,
                            const char *made) {
    WCHAR old[EPCTX__WIDE_MAX];
    WCHAR wide[EPCTX__WIDE_MAX];
    return epctx__wide(from, name != NULL ? name : from->temp, old) &&
           epctx__wide(to, made, wide) && CreateHardLinkW(wide, old, NULL);
}

static void epctx__sys_close(epctx_io_file *file) {
    if ((HANDLE)file->descriptor != EPCTX__NO_HANDLE) {
        CloseHandle((HANDLE)file->descriptor);
        file->descriptor = (intptr_t)EPCTX__NO_HANDLE;
    }
}

/* Windows cannot move what is open or mapped. */
static bool epctx__sys_move(epctx_io_file *file, const char *from, const char *to) {
    WCHAR old[EPCTX__WIDE_MAX];
    WCHAR wide[EPCTX__WIDE_MAX];
    if (to != NULL || from == file->temp) epctx__sys_close(file);
    if (from[0] == '\0' || !epctx__wide(file, from, old) ||
        (to != NULL && !epctx__wide(file, to, wide)))
        return false;
    return to != NULL
               ? MoveFileExW(old, wide, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) != 0
               : DeleteFileW(old) != 0;
}

/* The lock is the open file; closing it removes it. */
static epctx_status epctx__sys_lock(epctx_io_file *lock, epctx_error *error) {
    WCHAR wide[EPCTX__WIDE_MAX];
    if (!epctx__wide(NULL, lock->path, wide))
        return epctx__io_error(error, "open the lock", lock->path);
    for (;;) {
        HANDLE file = CreateFileW(wide, GENERIC_READ | DELETE, 0, NULL, OPEN_ALWAYS,
                                  FILE_ATTRIBUTE_NORMAL, NULL);
        DWORD code = GetLastError();
        lock->descriptor = (intptr_t)file;
        if (file != EPCTX__NO_HANDLE) {
            FILE_DISPOSITION_INFO gone = {TRUE}; /* with the handle, unless it has content */
            LARGE_INTEGER size;
            if (GetFileSizeEx(file, &size) && size.QuadPart == 0)
                SetFileInformationByHandle(file, FileDispositionInfo, &gone, sizeof gone);
            return EPCTX_OK;
        }
        /* ACCESS_DENIED: it is being deleted. */
        if (code != ERROR_SHARING_VIOLATION && code != ERROR_ACCESS_DENIED)
            return epctx__io_error(error, "open the lock", lock->path);
        if (lock->try_only) return EPCTX_ERR_CHANGED;
        Sleep(10);
    }
}

#else

#define EPCTX__NO_HANDLE           (-1)
#define EPCTX__CLOSE(file)         close(file)
#define EPCTX__LEAVE(m, from)      close(from)
#define EPCTX__UNMAP(m)            munmap((m)->handle, (m)->size)
#define EPCTX__PROCESS()           getpid()
#define EPCTX__REASON()            errno
#define epctx__sys_text(out)       ((void)(out), strerror(errno))
#define epctx__sys_real(path, out) (realpath(path, out) != NULL)        /* without malloc */
#define EPCTX__LINKED()            (errno == ELOOP || errno == ENOTDIR) /* below a root */

typedef int epctx__handle;
typedef struct stat epctx__stat;

static const int epctx__reasons[][2] = {
    {ENOENT, EPCTX_ERR_NOT_FOUND},   {ENOTDIR, EPCTX_ERR_NOT_FOUND},
    {EEXIST, EPCTX_ERR_EXISTS},      {EPERM, EPCTX_ERR_UNSUPPORTED},
    {EMLINK, EPCTX_ERR_UNSUPPORTED}, {EXDEV, EPCTX_ERR_UNSUPPORTED},
    {ENOSYS, EPCTX_ERR_UNSUPPORTED}, {EOPNOTSUPP, EPCTX_ERR_UNSUPPORTED},
};

/* Opens a file or folder for reading; below `root` by component and through no link. O_NONBLOCK: a
 * pipe must not block. */
static int epctx__sys_open(const char *root, const char *name) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    int fd = root != NULL ? open(root, flags | O_DIRECTORY) : open(name, flags);
    while (root != NULL && fd >= 0) {
        char part[256];
        size_t size = epctx__until(name, "/");
        bool last = name[size] == '\0';
        int next = -1;
        int code = ENAMETOOLONG;
        if (size < sizeof part) {
            memcpy(part, name, size);
            part[size] = '\0';
            next = openat(fd, part, flags | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
            code = errno;
        }
        close(fd);
        errno = code;
        if (last) return next;
        fd = next;
        name += size + 1;
    }
    return fd;
}

/* Examines the file at `path`; if that is NULL, the open file. */
static bool epctx__sys_stat(const char *path, int fd, epctx_file_info *info) {
    struct stat from;
    if ((path != NULL ? stat(path, &from) : fstat(fd, &from)) == 0) {
#if defined(__APPLE__)
        struct timespec written = from.st_mtimespec, changed = from.st_ctimespec;
#else
        struct timespec written = from.st_mtim, changed = from.st_ctim;
#endif
        info->kind = S_ISREG(from.st_mode)   ? EPCTX_FILE_REGULAR
                     : S_ISDIR(from.st_mode) ? EPCTX_FILE_FOLDER
                                             : EPCTX_FILE_OTHER;
        info->size = (uint64_t)from.st_size;
        info->device = (uint64_t)from.st_dev;
        info->inode = (uint64_t)from.st_ino;
        info->guarded = (from.st_uid == 0 || from.st_uid == geteuid()) &&
                        (from.st_mode & (S_IWGRP | S_IWOTH)) == 0;
        info->written = (uint64_t)written.tv_sec * 1000000000u + (uint64_t)written.tv_nsec;
        info->changed = (uint64_t)changed.tv_sec * 1000000000u + (uint64_t)changed.tv_nsec;
        return true;
    }
    return false;
}

static int64_t epctx__sys_read(int fd, void *out, uint64_t size, uint64_t at) {
    ssize_t count;
    do {
        count = pread(fd, out, size < 0x40000000 ? (size_t)size : 0x40000000, (off_t)at);
    } while (count < 0 && errno == EINTR);
    return count;
}

static int64_t epctx__sys_write(int fd, const void *data, size_t size) {
    ssize_t count;
    do {
        count = write(fd, data, size);
    } while (count < 0 && errno == EINTR);
    return count;
}

/* Maps a file for reading, or (EPCTX__NO_HANDLE) private memory for writing. */
static void *epctx__sys_map(int fd, size_t size) {
    void *data =
        fd < 0 ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | EPCTX__MAP_ANONYMOUS, -1, 0)
               : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    return data != MAP_FAILED ? data : NULL;
}

static epctx_status epctx__file_list(void *user, const char *folder,
                                     bool (*name_fn)(void *state, const char *name), void *state,
                                     epctx_error *error) {
    DIR *entries = opendir(folder[0] != '\0' ? folder : ".");
    const struct dirent *entry;
    (void)user;
    if (entries == NULL) return epctx__io_error(error, "list", folder);
    do {
        entry = readdir(entries);
    } while (entry != NULL && name_fn(state, entry->d_name));
    closedir(entries);
    return EPCTX_OK;
}

/* All names are relative to this descriptor, even if the path of the folder changes. */
static bool epctx__sys_enter(const char *root, const char *folder, epctx_io_file *file) {
    file->folder = epctx__sys_open(root, folder);
    return file->folder >= 0;
}

/* A name in the file's folder, without following links; NULL: the open file. */
static epctx_file_kind epctx__sys_look(const epctx_io_file *file, const char *name,
                                       struct stat *there) {
    if ((name != NULL ? fstatat((int)file->folder, name, there, AT_SYMLINK_NOFOLLOW)
                      : fstat((int)file->descriptor, there)) != 0)
        return EPCTX_FILE_NONE;
    return S_ISREG(there->st_mode)   ? EPCTX_FILE_REGULAR
           : S_ISDIR(there->st_mode) ? EPCTX_FILE_FOLDER
           : S_ISLNK(there->st_mode) ? EPCTX_FILE_LINK
                                     : EPCTX_FILE_OTHER;
}

#if defined(O_TMPFILE)
#define EPCTX__TMPFILE O_TMPFILE
#elif defined(__O_TMPFILE) /* strict feature macros hide it */
#define EPCTX__TMPFILE (__O_TMPFILE | O_DIRECTORY)
#endif

static void epctx__proc_name(int fd, char out[48]) {
    epctx_text text = epctx_text_of(out, 48);
    epctx_text_put_format(&text, "/proc/self/fd/%u", (uint64_t)fd);
}

/* Creates a file to write, if possible without a name (NULL): a killed process leaves nothing.
 * `mode` 0: opens an existing one to read. */
static int epctx__sys_make(const epctx_io_file *file, const char *name, int mode) {
    int fd = -1;
    if (name != NULL) {
        return openat((int)file->folder, name,
                      O_CLOEXEC | O_NOFOLLOW |
                          (mode == 0 ? O_RDONLY | O_NONBLOCK : O_WRONLY | O_CREAT | O_EXCL),
                      (mode_t)mode);
    }
#ifdef EPCTX__TMPFILE
    fd = openat((int)file->folder, ".", EPCTX__TMPFILE | O_WRONLY | O_CLOEXEC, (mode_t)mode);
    if (fd >= 0) {
        char proc[48];
        epctx__proc_name(fd, proc);
        if (access(proc, F_OK) != 0) {
            close(fd);
            fd = -1;
        }
    }
#endif
    return fd;
}

/* The new file must not give more rights than the old one: its mode without set-uid, set-gid and
 * sticky bits; without the group's rights where the group cannot be kept; writable by us only where
 * the owner differs. */
static bool epctx__sys_mode(int fd, const struct stat *old) {
    mode_t mode = old->st_mode & 0777;
    struct stat now;
    bool known = fstat(fd, &now) == 0;
    if (known && now.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) == 0)
        known = fstat(fd, &now) == 0;
    if (!known || now.st_gid != old->st_gid) { /* old group -> others -> new group */
        mode_t least = mode >> 3 & mode & 07;
        mode = (mode & 0700) | least << 3 | least;
    }
    if (!known || now.st_uid != old->st_uid) mode &= 0755;
    return fchmod(fd, mode) == 0;
}

/* EINVAL: the file system cannot flush folders. */
static epctx_status epctx__flush(const epctx_io_file *file, bool folder, epctx_error *error) {
    return fsync((int)(folder ? file->folder : file->descriptor)) == 0 ||
                   (folder && errno == EINVAL)
               ? EPCTX_OK
               : epctx__io_error(error, "flush", file->path);
}

/* Gives the file `name` in the folder of `from` (NULL: the new file) the further name `made`. */
static bool epctx__sys_link(const epctx_io_file *from, const char *name, const epctx_io_file *to,
                            const char *made) {
    char proc[48];
    if (name == NULL && from->temp[0] == '\0') {
        epctx__proc_name((int)from->descriptor, proc);
        return linkat(AT_FDCWD, proc, (int)to->folder, made, AT_SYMLINK_FOLLOW) == 0;
    }
    return linkat((int)from->folder, name != NULL ? name : from->temp, (int)to->folder, made, 0) ==
           0;
}

static void epctx__sys_close(epctx_io_file *file) {
    if ((file->state & EPCTX__FILE_LOCK) != 0)
        flock((int)file->descriptor, LOCK_UN); /* a forked process may have it open */
    if (file->descriptor >= 0) close((int)file->descriptor);
    close((int)file->folder);
    file->descriptor = file->folder = -1;
}

/* Renames a file in the folder, or (`to` NULL) removes it; `from` "" fails. */
static bool epctx__sys_move(epctx_io_file *file, const char *from, const char *to) {
    int folder = (int)file->folder;
    return from[0] != '\0' &&
           (to != NULL ? renameat(folder, from, folder, to) : unlinkat(folder, from, 0)) == 0;
}

/* Releasing a lock removes its file: a waiter that got a removed one starts again. */
static epctx_status epctx__sys_lock(epctx_io_file *lock, epctx_error *error) {
    const char *base = epctx__base(lock);
    for (;;) {
        struct stat ours, there;
        int fd = openat((int)lock->folder, base, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        lock->descriptor = fd;
        if (fd < 0) return epctx__io_error(error, "open the lock", lock->path);
        while (flock(fd, LOCK_EX | (lock->try_only ? LOCK_NB : 0)) != 0) {
            if (errno != EINTR) {
                return errno == EWOULDBLOCK ? EPCTX_ERR_CHANGED
                                            : epctx__io_error(error, "lock", lock->path);
            }
        }
        if (fstat(fd, &ours) == 0 && epctx__sys_look(lock, base, &there) != EPCTX_FILE_NONE &&
            ours.st_ino == there.st_ino && ours.st_dev == there.st_dev) {
            /* A file with content is not ours and stays. */
            if (S_ISREG(ours.st_mode) && ours.st_size == 0)
                epctx__name_end(lock->temp, base, "", 0, EPCTX__NAME_MOST);
            return EPCTX_OK;
        }
        close(fd);
    }
}

#endif /* system */

/* Starts writing the last EPCTX__AHEAD bytes to the disk. fsync reports what fails there. */
#if defined(__linux__) && !defined(_WIN32) && !defined(__ANDROID__)
#ifndef SYNC_FILE_RANGE_WRITE /* strict feature macros hide it */
#define SYNC_FILE_RANGE_WRITE 2
int sync_file_range(int fd, off_t offset, off_t count, unsigned flags);
#endif
static void epctx__sys_start(const epctx_io_file *file) {
    sync_file_range((int)file->descriptor, (off_t)(file->written - EPCTX__AHEAD), EPCTX__AHEAD,
                    SYNC_FILE_RANGE_WRITE);
}
#else
#define epctx__sys_start(file) ((void)0)
#endif

/* -- the callbacks -- */

/* Why a call failed. EPCTX_ERR_UNSUPPORTED: the file system has no hard links; EPCTX_ERR_PATH: the
 * path is impossible or a link. */
static epctx_status epctx__sys_status(void) {
    size_t i;
    for (i = 0; i < sizeof epctx__reasons / sizeof epctx__reasons[0]; i++)
        if (epctx__reasons[i][0] == EPCTX__REASON()) return (epctx_status)epctx__reasons[i][1];
    return EPCTX_ERR_IO;
}

static epctx_status epctx__io_error(epctx_error *error, const char *what, const char *path) {
    char text[512];
    epctx_status status = epctx__sys_status();
    if (status == EPCTX_ERR_EXISTS || status == EPCTX_ERR_UNSUPPORTED) status = EPCTX_ERR_IO;
    epctx_fail(error, status, "cannot %s%s: %s", what, path[0] == '\0' ? " an empty path" : "",
               epctx__sys_text(text));
    epctx_blame(error, path, NULL, NULL);
    return status;
}

static epctx_status epctx__open_failed(const char *root, const char *what, const char *path,
                                       epctx_error *error) {
    return root != NULL && EPCTX__LINKED()
               ? epctx__file_failed(error, EPCTX_ERR_PATH,
                                    "is a link or lies behind one: names from a model stay inside "
                                    "the model's folder",
                                    path)
               : epctx__io_error(error, what, path);
}

static epctx_status epctx__not_regular(epctx_file_kind kind, const char *path, epctx_error *error) {
    return epctx__file_failed(error, EPCTX_ERR_IO,
                              kind == EPCTX_FILE_FOLDER
                                  ? "is a folder, a regular file was expected"
                                  : "is a device or pipe, a regular file was expected",
                              path);
}

static void epctx__file_unmap(void *user, epctx_mapping *mapping) {
    (void)user;
    if (mapping->handle != NULL) EPCTX__UNMAP(mapping);
    memset(mapping, 0, sizeof *mapping);
}

/* Maps an open file or copies it into private memory. */
static epctx_status epctx__map_handle(epctx__handle file, const char *path, bool copy,
                                      epctx_mapping *out, epctx_error *error) {
    epctx_file_info info, now;
    epctx_status status = EPCTX_OK;
    int64_t count = 1;
    uint64_t at = 0;
    uint8_t *data;
    if (!epctx__sys_stat(NULL, file, &info)) return epctx__io_error(error, "examine", path);
    if (info.kind != EPCTX_FILE_REGULAR) return epctx__not_regular(info.kind, path, error);
    if (info.size > (uint64_t)PTRDIFF_MAX) /* differences of pointers into it must fit */
        return epctx__file_failed(error, EPCTX_ERR_LIMIT, "is larger than the address space", path);
    if (info.size == 0) return EPCTX_OK;
    data = (uint8_t *)epctx__sys_map(copy ? EPCTX__NO_HANDLE : file, (size_t)info.size);
    if (data == NULL) return epctx__io_error(error, copy ? "find memory for" : "map", path);
    out->data = data;
    out->size = (size_t)info.size;
    out->handle = data;
    out->shared = !copy;
    out->info = info;
    while (copy && at < info.size && count > 0) {
        count = epctx__sys_read(file, data + at, info.size - at, at);
        at += count > 0 ? (uint64_t)count : 0;
    }
    if (count < 0)
        status = epctx__io_error(error, "read", path);
    else if (copy && (at < info.size || !epctx__sys_stat(NULL, file, &now) ||
                      now.size != info.size || now.written != info.written))
        status = epctx__file_failed(error, EPCTX_ERR_IO, "was changed while it was read", path);
    if (status != EPCTX_OK) epctx__file_unmap(NULL, out);
    return status;
}

static epctx_status epctx__file_map(void *user, const char *root, const char *name, bool copy,
                                    epctx_mapping *out, epctx_error *error) {
    epctx__handle file = epctx__sys_open(root, name);
    epctx_status status;
    (void)user;
    memset(out, 0, sizeof *out);
    if (file == EPCTX__NO_HANDLE) return epctx__open_failed(root, "open", name, error);
    status = epctx__map_handle(file, name, copy, out, error);
    EPCTX__LEAVE(out, file);
    return status;
}

/* The map_fn of epctx_io_private: always copies. */
static epctx_status epctx__file_read(void *user, const char *root, const char *name, bool copy,
                                     epctx_mapping *out, epctx_error *error) {
    (void)copy;
    return epctx__file_map(user, root, name, true, out, error);
}

static epctx_status epctx__file_stat(void *user, const char *path, epctx_file_info *info,
                                     epctx_error *error) {
    (void)user;
    memset(info, 0, sizeof *info);
    return epctx__sys_stat(path, EPCTX__NO_HANDLE, info) ||
                   epctx__sys_status() == EPCTX_ERR_NOT_FOUND
               ? EPCTX_OK
               : epctx__io_error(error, "examine", path);
}

static epctx_status epctx__file_canonical(void *user, const char *path, char *out, size_t capacity,
                                          epctx_error *error) {
    char real[EPCTX_PATH_MAX];
    (void)user;
    return epctx__sys_real(path, real)
               ? epctx_path_join(epctx_str_of(""), epctx_str_of(real), out, capacity, error)
               : epctx__io_error(error, "resolve", path);
}

/* Fills in the path and enters its folder. */
static epctx_status epctx__file_at(const char *root, const char *name, epctx_io_file *file,
                                   epctx_error *error) {
    char folder[EPCTX_PATH_MAX];
    memset(file, 0, sizeof *file);
    EPCTX__TRY(epctx_path_join(epctx_str_of(root), epctx_str_of(name), file->path,
                               sizeof file->path, error));
    EPCTX__TRY(epctx_path_join(epctx_path_folder(epctx_str_of(name)), epctx_str_of("."), folder,
                               sizeof folder, error));
    file->descriptor = (intptr_t)EPCTX__NO_HANDLE;
    file->state = root != NULL ? EPCTX__FILE_INSIDE : 0;
    return epctx__sys_enter(root, folder, file)
               ? EPCTX_OK
               : epctx__open_failed(root, "open the folder of", file->path, error);
}

/* FILE.<process>-<attempt>.tmp */
static void epctx__temp_name(const epctx_io_file *file, unsigned attempt,
                             char out[EPCTX_NAME_MAX]) {
    char end[64];
    epctx_text text = epctx_text_of(end, sizeof end);
    epctx_text_put_format(&text, ".%u-%u.tmp", (uint64_t)EPCTX__PROCESS(), (uint64_t)attempt);
    epctx__name_end(out, epctx__base(file), end, 0, EPCTX__TEMP_MOST);
}

static void epctx__file_close(void *user, epctx_io_file *file) {
    bool only = (file->state & (EPCTX__FILE_CLEARED | EPCTX__FILE_PLACED)) == EPCTX__FILE_CLEARED;
    (void)user;
    epctx__sys_move(file, file->second, NULL);
    epctx__sys_move(file, file->temp, NULL); /* of a lock, while held: waiters see it */
    if ((file->state & EPCTX__FILE_BACKUP) == 0 && !only) epctx__sys_move(file, file->kept, NULL);
    epctx__sys_close(file);
}

/* Looks at the old file. Fails if it must not be replaced. */
static epctx_status epctx__file_free(const epctx_io_file *file, epctx_overwrite overwrite,
                                     epctx_file_kind *kind, epctx__stat *there,
                                     epctx_error *error) {
    *kind = epctx__sys_look(file, epctx__base(file), there);
    if (*kind == EPCTX_FILE_LINK && (file->state & EPCTX__FILE_INSIDE) != 0) {
        return epctx__file_failed(error, EPCTX_ERR_PATH,
                                  "is a link: a file whose name comes from a model is not written "
                                  "through links; remove it or choose another name",
                                  file->path);
    }
    return *kind != EPCTX_FILE_NONE && overwrite == EPCTX_OVERWRITE_FAIL
               ? epctx__file_exists(file->path, error)
               : EPCTX_OK;
}

/* Creates the new file, unnamed or with a temporary name. */
static epctx_status epctx__file_make(epctx_io_file *file, epctx_error *error) {
    epctx__stat old;
    epctx_file_kind kind;
    epctx__handle made;
    unsigned attempt;
    int mode;
    EPCTX__TRY(epctx__file_free(file, EPCTX_OVERWRITE_REPLACE, &kind, &old, error));
    if (kind == EPCTX_FILE_FOLDER || kind == EPCTX_FILE_OTHER)
        return epctx__not_regular(kind, file->path, error);
    /* Strict from the start: a reader that opens it now could read all of it later. */
    mode = kind == EPCTX_FILE_REGULAR ? 0600 : 0666;
    made = epctx__sys_make(file, NULL, mode);
    for (attempt = 0; made == EPCTX__NO_HANDLE && attempt < EPCTX__ATTEMPTS &&
                      (attempt == 0 || epctx__sys_status() == EPCTX_ERR_EXISTS);
         attempt++) {
        epctx__temp_name(file, attempt, file->temp);
        made = epctx__sys_make(file, file->temp, mode);
    }
    if (made == EPCTX__NO_HANDLE) {
        file->temp[0] = '\0';
        return epctx__io_error(error, "create a temporary file beside it", file->path);
    }
    file->descriptor = (intptr_t)made;
    return kind != EPCTX_FILE_REGULAR || epctx__sys_mode(made, &old)
               ? EPCTX_OK
               : epctx__io_error(error, "set the mode of", file->path);
}

/* Through a link of the caller's: replaces its target, not the link. */
static epctx_status epctx__file_create(void *user, const char *root, const char *name,
                                       epctx_io_file *file, epctx_error *error) {
    char real[EPCTX_PATH_MAX];
    epctx_status status;
    (void)user;
    if (root == NULL && strlen(name) < EPCTX_PATH_MAX) {
        if (epctx__sys_real(name, real))
            name = real;
        else if (epctx__sys_status() != EPCTX_ERR_NOT_FOUND)
            return epctx__io_error(error, "resolve", name);
    }
    EPCTX__TRY(epctx__file_at(root, name, file, error));
    status = epctx__file_make(file, error);
    if (status != EPCTX_OK) epctx__file_close(NULL, file);
    return status;
}

static epctx_status epctx__file_write(void *user, epctx_io_file *file, const void *data,
                                      size_t size, epctx_error *error) {
    /* In pieces, so that the system reads the pages of a mapped payload ahead. They end at
     * multiples of their size in the file, so that it caches them in large pages. */
    const size_t piece = (size_t)1 << 20;
    const char *from = (const char *)data;
    (void)user;
    while (size > 0) {
        size_t room = piece - (size_t)(file->written % piece);
        int64_t count =
            epctx__sys_write((epctx__handle)file->descriptor, from, size < room ? size : room);
        if (count <= 0) return epctx__io_error(error, "write", file->path);
        from += count;
        size -= (size_t)count;
        file->written += (uint64_t)count;
        if (file->written % EPCTX__AHEAD == 0) epctx__sys_start(file);
    }
    return EPCTX_OK;
}

static epctx_status epctx__file_sync(void *user, epctx_io_file *file, epctx_error *error) {
    (void)user;
    return epctx__flush(file, false, error);
}

/* As epctx__sys_link. `exists` NULL: no message for EPCTX_ERR_EXISTS and EPCTX_ERR_UNSUPPORTED (no
 * hard links). */
static epctx_status epctx__link_names(const epctx_io_file *from, const char *name,
                                      const epctx_io_file *to, const char *made, const char *exists,
                                      epctx_error *error) {
    epctx_status status;
    if (epctx__sys_link(from, name, to, made)) return EPCTX_OK;
    status = epctx__sys_status();
    if (status != EPCTX_ERR_EXISTS && status != EPCTX_ERR_UNSUPPORTED) {
        const char *what = name != NULL ? "keep" : "replace";
        return epctx__io_error(error, exists != NULL ? "link" : what, to->path);
    }
    if (exists != NULL) {
        epctx_fail(error, status,
                   status == EPCTX_ERR_EXISTS ? exists : "cannot have a second name");
        epctx_blame(error, to->path, NULL, NULL);
    }
    return status;
}

/* Makes a durable copy of the old file. */
static epctx_status epctx__file_copy(const epctx_io_file *file, const char *to,
                                     epctx_error *error) {
    epctx_io_file copy = *file;
    epctx_mapping old;
    epctx__stat there;
    epctx__handle opened = epctx__sys_make(file, epctx__base(file), 0);
    epctx_status status;
    memset(&old, 0, sizeof old);
    if (opened == EPCTX__NO_HANDLE) return epctx__io_error(error, "keep", file->path);
    copy.descriptor = (intptr_t)opened;
    status = epctx__sys_look(&copy, NULL, &there) != EPCTX_FILE_NONE
                 ? epctx__map_handle(opened, file->path, false, &old, error)
                 : epctx__io_error(error, "keep", file->path);
    EPCTX__CLOSE(opened);
    EPCTX__TRY(status);
    opened = epctx__sys_make(file, to, 0600);
    if (opened == EPCTX__NO_HANDLE) {
        status = epctx__sys_status() == EPCTX_ERR_EXISTS
                     ? EPCTX_ERR_EXISTS
                     : epctx__io_error(error, "keep", file->path);
    } else {
        copy.descriptor = (intptr_t)opened;
        copy.written = 0;
        status = epctx__sys_mode(opened, &there)
                     ? epctx__file_write(NULL, &copy, old.data, old.size, error)
                     : epctx__io_error(error, "set the mode of", file->path);
        if (status == EPCTX_OK) status = epctx__flush(&copy, false, error);
        EPCTX__CLOSE(opened);
        if (status != EPCTX_OK) epctx__sys_move(&copy, to, NULL);
    }
    epctx__file_unmap(NULL, &old);
    return status;
}

/* Gives the file `from` of the folder (NULL: the new file) the first free name: FILE and `mark`
 * (NULL: a temporary name). Copies `from` where there are no hard links. */
static epctx_status epctx__file_name(epctx_io_file *file, const char *from, const char *mark,
                                     char out[EPCTX_NAME_MAX], epctx_error *error) {
    epctx_status status = EPCTX_ERR_EXISTS;
    char name[EPCTX_NAME_MAX];
    unsigned number;
    for (number = 1; status == EPCTX_ERR_EXISTS && number < EPCTX__ATTEMPTS; number++) {
        if (mark != NULL)
            epctx__name_end(name, epctx__base(file), mark, number, EPCTX__NAME_MOST);
        else
            epctx__temp_name(file, number, name);
        status = epctx__link_names(file, from, file, name, NULL, error);
        if (status == EPCTX_ERR_UNSUPPORTED && from != NULL)
            status = epctx__file_copy(file, name, error);
    }
    if (status == EPCTX_OK) {
        memcpy(out, name, sizeof name);
        file->state |= mark != NULL && mark[0] == '~' ? EPCTX__FILE_BACKUP : 0;
        return EPCTX_OK;
    }
    if (from == NULL && (status == EPCTX_ERR_EXISTS || status == EPCTX_ERR_UNSUPPORTED))
        return epctx__io_error(error, "replace", file->path);
    return status == EPCTX_ERR_EXISTS
               ? epctx__file_failed(error, status, "has 999 backups already: remove some",
                                    file->path)
               : status;
}

/* One attempt. EPCTX_ERR_CHANGED, without a message: the old file appeared or vanished. */
static epctx_status epctx__file_place(epctx_io_file *file, epctx_overwrite overwrite,
                                      epctx_error *error) {
    const char *base = epctx__base(file);
    const char *mark = overwrite == EPCTX_OVERWRITE_BACKUP ? "~" : NULL;
    epctx_status status;
    epctx_file_kind kind;
    epctx__stat there;
    EPCTX__TRY(epctx__file_free(file, overwrite, &kind, &there, error));
    if (kind == EPCTX_FILE_NONE) { /* never replaces a file made meanwhile */
        status = epctx__link_names(file, NULL, file, base, NULL, error);
        if (status != EPCTX_ERR_UNSUPPORTED)
            return status == EPCTX_ERR_EXISTS ? EPCTX_ERR_CHANGED : status;
    } else if (kind != EPCTX_FILE_LINK && file->kept[0] == '\0') {
        status = epctx__file_name(file, base, mark, file->kept, error);
        if (status == EPCTX_ERR_NOT_FOUND) {
            epctx_error_clear(error);
            return EPCTX_ERR_CHANGED;
        }
        EPCTX__TRY(status);
    }
    if (file->temp[0] == '\0') EPCTX__TRY(epctx__file_name(file, NULL, NULL, file->temp, error));
    if (!epctx__sys_move(file, file->temp, base))
        return epctx__io_error(error, "replace", file->path);
    file->temp[0] = '\0';
    return EPCTX_OK;
}

static epctx_status epctx__file_commit(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                       epctx_error *error) {
    epctx_status status = EPCTX_ERR_CHANGED;
    unsigned attempt;
    (void)user;
    for (attempt = 0; status == EPCTX_ERR_CHANGED && attempt < 100; attempt++)
        status = epctx__file_place(file, overwrite, error);
    if (status == EPCTX_ERR_CHANGED) {
        return epctx__file_failed(error, EPCTX_ERR_IO,
                                  "another process keeps creating and removing this file",
                                  file->path);
    }
    EPCTX__TRY(status);
    file->state |= EPCTX__FILE_PLACED;
    return epctx__flush(file, true, error);
}

static epctx_status epctx__file_clear(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                      epctx_error *error) {
    const char *base = epctx__base(file);
    const char *mark = overwrite == EPCTX_OVERWRITE_BACKUP ? "~" : ".old";
    epctx_file_kind kind;
    epctx__stat there;
    (void)user;
    EPCTX__TRY(epctx__file_free(file, overwrite, &kind, &there, error));
    if (kind == EPCTX_FILE_NONE) return EPCTX_OK;
    EPCTX__TRY(epctx__file_name(file, base, mark, file->kept, error));
    if (!epctx__sys_move(file, base, NULL)) return epctx__io_error(error, "remove", file->path);
    file->state |= EPCTX__FILE_CLEARED;
    return epctx__flush(file, true, error);
}

static bool epctx__file_back(void *user, epctx_io_file *file) {
    const char *base = epctx__base(file);
    bool done = true;
    (void)user;
    if ((file->state & (EPCTX__FILE_PLACED | EPCTX__FILE_CLEARED)) != 0) {
        done = file->kept[0] != '\0' ? epctx__sys_move(file, file->kept, base)
                                     : epctx__sys_move(file, base, NULL);
        file->kept[0] = '\0'; /* a file not restored stays under this name */
        (void)epctx__flush(file, true, NULL);
    }
    file->state &= ~(uint32_t)(EPCTX__FILE_PLACED | EPCTX__FILE_CLEARED | EPCTX__FILE_BACKUP);
    return done;
}

static epctx_status epctx__file_second(void *user, epctx_io_file *file, const char *name,
                                       epctx_error *error) {
    (void)user;
    EPCTX__TRY(epctx__link_names(file, NULL, file, name, "its second name is taken", error));
    memcpy(file->second, name, strlen(name) + 1);
    return epctx__flush(file, true, error);
}

static epctx_status epctx__file_remove(void *user, const char *root, const char *name,
                                       epctx_error *error) {
    epctx_io_file file;
    epctx_status status;
    (void)user;
    EPCTX__TRY(epctx__file_at(root, name, &file, error));
    status = epctx__sys_move(&file, epctx__base(&file), NULL)
                 ? EPCTX_OK
                 : epctx__io_error(error, "remove", file.path);
    (void)epctx__flush(&file, true, NULL);
    epctx__sys_close(&file);
    return status;
}

static epctx_status epctx__file_link(void *user, const char *root, const char *from, const char *to,
                                     epctx_error *error) {
    epctx_io_file old, made;
    epctx_status status;
    (void)user;
    EPCTX__TRY(epctx__file_at(root, from, &old, error));
    status = epctx__file_at(root, to, &made, error);
    if (status == EPCTX_OK) {
        const char *base = epctx__base(&made);
        status = epctx__link_names(&old, epctx__base(&old), &made, base, "exists already", error);
        if (status == EPCTX_OK) {
            status = epctx__flush(&made, true, error);
            if (status != EPCTX_OK) epctx__sys_move(&made, base, NULL);
        }
        epctx__sys_close(&made);
    }
    epctx__sys_close(&old);
    return status;
}

static epctx_status epctx__file_lock(void *user, const char *root, const char *name,
                                     epctx_io_file *lock, epctx_error *error) {
    bool try_only = lock->try_only;
    epctx_status status;
    (void)user;
    EPCTX__TRY(epctx__file_at(root, name, lock, error));
    lock->try_only = try_only;
    status = epctx__sys_lock(lock, error);
    if (status == EPCTX_OK) {
        lock->state |= EPCTX__FILE_LOCK;
        return EPCTX_OK;
    }
    epctx__sys_close(lock);
    return status == EPCTX_ERR_CHANGED
               ? epctx__file_failed(error, status, "another writer holds the lock: try again",
                                    lock->path)
               : status;
}

/* clang-format off */
#define EPCTX__CALLBACKS(map_fn) \
    {NULL, map_fn, epctx__file_unmap, epctx__file_stat, epctx__file_canonical, epctx__file_create, \
     epctx__file_write, epctx__file_sync, epctx__file_commit, epctx__file_back, epctx__file_close, \
     epctx__file_clear, epctx__file_remove, epctx__file_second, epctx__file_link, \
     epctx__file_list, epctx__file_lock}
/* clang-format on */
static const epctx_io epctx__io_files = EPCTX__CALLBACKS(epctx__file_map);
static const epctx_io epctx__io_private = EPCTX__CALLBACKS(epctx__file_read);
#define EPCTX__FILES   (&epctx__io_files)
#define EPCTX__PRIVATE (&epctx__io_private)

#endif /* EPCTX_NO_STDIO */

EPCTX_API const epctx_io *epctx_io_files(void) {
    return EPCTX__FILES;
}

EPCTX_API const epctx_io *epctx_io_private(void) {
    return EPCTX__PRIVATE;
}

/* ============================================================
 * >>files
 *
 * epctx_io_buffers is an epctx_io without a file: its callbacks ask the application for whole
 * buffers, by a name that is folder and name in the model, joined and normalised as text
 * (epctx__buf_name).
 *
 * Names from a model are hostile. epctx__path_locate refuses those that lead out of the model's
 * folder; the callbacks of >>io follow no link below it. A path that the user gave may be a link:
 * epctx__path_real and epctx__path_place resolve its folder, and leave the last name to whoever
 * replaces it.
 *
 * A lock is an empty file beside the one that it is for (FILE.lock).
 * ============================================================ */

/* -- buffers of the application -- */

#ifdef _WIN32
#define EPCTX__SLASHES "/\\"
#else
#define EPCTX__SLASHES "/"
#endif

/* Normalises a path; a relative one begins with "./" or "../". */
static epctx_status epctx__buf_canonical(void *user, const char *path, char *out, size_t capacity,
                                         epctx_error *error) {
    epctx_text text = epctx_text_of(out, capacity);
    size_t least; /* not removed by ".." */
    (void)user;
    epctx_text_put(
        &text,
        epctx_str_of(path[0] != '\0' && epctx__until(path, EPCTX__SLASHES) == 0 ? "/" : "./"));
    least = text.size;
    while (*path != '\0') {
        epctx_str part = epctx_str_of(path);
        bool up;
        part.size = epctx__until(path, EPCTX__SLASHES);
        path += part.size + (path[part.size] != '\0');
        up = epctx_str_is(part, "..");
        if (up && text.size > least) {
            do {
                text.size--;
            } while (text.size > least && out[text.size - 1] != '/');
        } else if (part.size > 0 && !epctx_str_is(part, ".") && !(up && out[0] == '/')) {
            text.size = up && least == 2 ? 0 : text.size; /* "../" in place of "./" */
            epctx_text_put(&text, part);
            epctx_text_put_char(&text, '/');
            least = up ? text.size : least;
        }
    }
    text.size -= text.size > least; /* folders end without "/", too */
    out[text.size] = '\0';
    return text.cut ? epctx_fail(error, EPCTX_ERR_LIMIT, "the path is too long") : EPCTX_OK;
}

/* The name for the application. */
static epctx_status epctx__buf_name(const char *root, const char *name, char out[EPCTX_PATH_MAX],
                                    epctx_error *error) {
    char path[EPCTX_PATH_MAX];
    EPCTX__TRY(epctx_path_join(epctx_str_of(root), epctx_str_of(name), path, sizeof path, error));
    EPCTX__TRY(epctx__buf_canonical(NULL, path, out, EPCTX_PATH_MAX, error));
    if (out[0] == '.' && out[1] == '/') memmove(out, out + 2, strlen(out + 2) + 1);
    return EPCTX_OK;
}

/* Adds a message to a failure of the application. */
static epctx_status epctx__buf_done(epctx_status status, const char *what, const char *name,
                                    epctx_error *error) {
    if (status != EPCTX_OK) {
        epctx_fail(error, status, "the application did not %s the buffer: %s", what,
                   epctx_status_text(status));
        epctx_blame(error, name, NULL, NULL);
    }
    return status;
}

/* Reads the buffer of exactly this name. */
static epctx_status epctx__buf_take(void *user, const char *name, epctx_mapping *out,
                                    epctx_error *error) {
    const epctx_buffer_io *b = (const epctx_buffer_io *)user;
    epctx_status status = EPCTX_ERR_NOT_FOUND;
    void *data = NULL;
    size_t size = 0;
    memset(out, 0, sizeof *out);
    if (b->read_fn != NULL) status = b->read_fn(b->user, name, &data, &size, error);
    if (status == EPCTX_OK && data == NULL && size > 0)
        status = epctx_fail(error, EPCTX_ERR_IO, "the application returned a size but no data");
    EPCTX__TRY(epctx__buf_done(status, "read", name, error));
    out->data = (const uint8_t *)data;
    out->size = size;
    out->handle = data != NULL ? data : user; /* an empty buffer is mapped, too */
    return EPCTX_OK;
}

static epctx_status epctx__buf_map(void *user, const char *root, const char *name, bool copy,
                                   epctx_mapping *out, epctx_error *error) {
    char plain[EPCTX_PATH_MAX];
    (void)copy; /* buffers do not change */
    memset(out, 0, sizeof *out);
    EPCTX__TRY(epctx__buf_name(root, name, plain, error));
    return epctx__buf_take(user, plain, out, error);
}

static void epctx__buf_unmap(void *user, epctx_mapping *mapping) {
    const epctx_buffer_io *b = (const epctx_buffer_io *)user;
    if (mapping->handle != NULL && mapping->handle != user && b->free_fn != NULL)
        b->free_fn(b->user, mapping->handle, mapping->size);
    memset(mapping, 0, sizeof *mapping);
}

static epctx_status epctx__buf_stat(void *user, const char *path, epctx_file_info *info,
                                    epctx_error *error) {
    const epctx_buffer_io *b = (const epctx_buffer_io *)user;
    epctx_str last = epctx_path_file(epctx_str_of(path));
    char name[EPCTX_PATH_MAX];
    uint64_t size = 0;
    epctx_mapping mapping;
    epctx_status status;
    memset(info, 0, sizeof *info);
    EPCTX__TRY(epctx__buf_name(NULL, path, name, error));
    if (last.size == 0 || epctx_str_is(last, ".") || epctx_str_is(last, "..")) {
        info->kind = EPCTX_FILE_FOLDER;
        return EPCTX_OK;
    }
    if (b->size_fn != NULL) {
        status = b->size_fn(b->user, name, &size, error);
        epctx__buf_done(status, "report the size of", name, error);
    } else {
        status = epctx__buf_map(user, NULL, name, false, &mapping, error);
        size = mapping.size;
        epctx__buf_unmap(user, &mapping);
    }
    if (status == EPCTX_ERR_NOT_FOUND) {
        epctx_error_clear(error);
        return EPCTX_OK;
    }
    EPCTX__TRY(status);
    info->kind = EPCTX_FILE_REGULAR;
    info->size = size;
    return EPCTX_OK;
}

/* A buffer being written, and the old one. */
typedef struct epctx__buf_file {
    epctx_buffer pending;
    epctx_mapping old;
    bool held;    /* the old buffer is known: `old`, or none */
    bool changed; /* to be restored after a failure */
} epctx__buf_file;

static epctx_status epctx__buf_create(void *user, const char *root, const char *name,
                                      epctx_io_file *file, epctx_error *error) {
    const epctx_buffer_io *b = (const epctx_buffer_io *)user;
    epctx_buffer memory;
    memset(file, 0, sizeof *file);
    EPCTX__TRY(epctx__buf_name(root, name, file->path, error));
    if (b->write_fn == NULL) {
        return epctx__file_failed(error, EPCTX_ERR_UNSUPPORTED, "the application writes no buffers",
                                  file->path);
    }
    epctx_buffer_init(&memory, b->allocator);
    if (epctx_buffer_append(&memory, NULL, sizeof(epctx__buf_file)) != EPCTX_OK)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for a buffer to write");
    file->handle = memory.data;
    epctx_buffer_init(&((epctx__buf_file *)file->handle)->pending, b->allocator);
    return EPCTX_OK;
}

static epctx_status epctx__buf_write(void *user, epctx_io_file *file, const void *data, size_t size,
                                     epctx_error *error) {
    epctx__buf_file *f = (epctx__buf_file *)file->handle;
    epctx_status status = epctx_buffer_append(&f->pending, data, size);
    (void)user;
    return status == EPCTX_OK
               ? status
               : epctx__file_failed(error, status, "no memory for a buffer to write", file->path);
}

static epctx_status epctx__buf_sync(void *user, epctx_io_file *file, epctx_error *error) {
    (void)user, (void)file, (void)error;
    return EPCTX_OK;
}

static epctx_status epctx__buf_put(const epctx_buffer_io *b, const char *name, const void *data,
                                   size_t size, epctx_error *error) {
    data = size > 0 ? data : "";
    return epctx__buf_done(b->write_fn(b->user, name, data, size, error), "write", name, error);
}

static epctx_status epctx__buf_remove(void *user, const char *root, const char *name,
                                      epctx_error *error) {
    const epctx_buffer_io *b = (const epctx_buffer_io *)user;
    char plain[EPCTX_PATH_MAX];
    EPCTX__TRY(epctx__buf_name(root, name, plain, error));
    if (b->remove_fn == NULL) {
        return epctx__file_failed(error, EPCTX_ERR_UNSUPPORTED,
                                  "the application has no callback that removes a buffer", plain);
    }
    return epctx__buf_done(b->remove_fn(b->user, plain, error), "remove", plain, error);
}

/* Reads the old buffer, to restore it. */
static epctx_status epctx__buf_hold(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                    epctx_error *error) {
    epctx__buf_file *f = (epctx__buf_file *)file->handle;
    epctx_file_info info;
    if (f->held || (file->alone && overwrite == EPCTX_OVERWRITE_REPLACE)) return EPCTX_OK;
    EPCTX__TRY(epctx__buf_stat(user, file->path, &info, error));
    f->held = true;
    if (info.kind == EPCTX_FILE_NONE) return EPCTX_OK;
    if (overwrite == EPCTX_OVERWRITE_FAIL) return epctx__file_exists(file->path, error);
    return overwrite == EPCTX_OVERWRITE_BACKUP
               ? epctx__file_failed(error, EPCTX_ERR_UNSUPPORTED, "a buffer cannot have a backup",
                                    file->path)
               : epctx__buf_map(user, NULL, file->path, false, &f->old, error);
}

static epctx_status epctx__buf_commit(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                      epctx_error *error) {
    epctx__buf_file *f = (epctx__buf_file *)file->handle;
    EPCTX__TRY(epctx__buf_hold(user, file, overwrite, error));
    EPCTX__TRY(epctx__buf_put((const epctx_buffer_io *)user, file->path, f->pending.data,
                              f->pending.size, error));
    f->changed = f->held;
    return EPCTX_OK;
}

static epctx_status epctx__buf_clear(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                     epctx_error *error) {
    epctx__buf_file *f = (epctx__buf_file *)file->handle;
    EPCTX__TRY(epctx__buf_hold(user, file, overwrite, error));
    if (f->old.handle != NULL) {
        EPCTX__TRY(epctx__buf_remove(user, NULL, file->path, error));
        f->changed = true;
    }
    return EPCTX_OK;
}

static bool epctx__buf_back(void *user, epctx_io_file *file) {
    epctx__buf_file *f = (epctx__buf_file *)file->handle;
    bool changed = f->changed;
    f->changed = false;
    return !changed ||
           (f->old.handle != NULL ? epctx__buf_put((const epctx_buffer_io *)user, file->path,
                                                   f->old.data, f->old.size, NULL)
                                  : epctx__buf_remove(user, NULL, file->path, NULL)) == EPCTX_OK;
}

static void epctx__buf_close(void *user, epctx_io_file *file) {
    epctx__buf_file *f = (epctx__buf_file *)file->handle;
    epctx_allocator allocator = f->pending.allocator;
    epctx__buf_unmap(user, &f->old);
    epctx_buffer_free(&f->pending);
    allocator.free_fn(allocator.user, f);
    file->handle = NULL;
}

EPCTX_API epctx_io epctx_io_buffers(epctx_buffer_io *buffers) {
    /* clang-format off */
    epctx_io io = {
        NULL, epctx__buf_map, epctx__buf_unmap, epctx__buf_stat, epctx__buf_canonical,
        epctx__buf_create, epctx__buf_write, epctx__buf_sync, epctx__buf_commit, epctx__buf_back,
        epctx__buf_close, epctx__buf_clear, epctx__buf_remove, NULL, NULL, NULL, NULL};
    /* clang-format on */
    io.user = buffers;
    return io;
}

/* -- whole files -- */

EPCTX_API epctx_status epctx_read_bytes(const epctx_io *io, const char *path, uint64_t most,
                                        epctx_buffer *out, epctx_error *error) {
    epctx_file_info info;
    epctx_mapping bytes;
    epctx_status status;
    epctx_error_clear(error);
    io = io != NULL ? io : epctx_io_files();
    if (io == NULL) return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    EPCTX__TRY(io->stat_fn(io->user, path, &info, error)); /* before its bytes take memory */
    if (info.kind == EPCTX_FILE_REGULAR && most != 0 && info.size > most) {
        epctx_fail(error, EPCTX_ERR_LIMIT, "has %u bytes, at most %u are expected", info.size,
                   most);
        epctx_blame(error, path, NULL, NULL);
        return EPCTX_ERR_LIMIT;
    }
    EPCTX__TRY(io->map_fn(io->user, NULL, path, true, &bytes, error));
    status = bytes.size != info.size
                 ? epctx__file_failed(error, EPCTX_ERR_IO, "was changed while it was read", path)
                 : epctx_buffer_append(out, bytes.data, bytes.size);
    if (status == EPCTX_ERR_NOMEM) epctx__nomem(error, info.size);
    if (bytes.handle != NULL) io->unmap_fn(io->user, &bytes);
    return status;
}

/* -- names from a model become paths -- */

/* Whether canonical `file` is a blob of the Hugging Face cache with canonical `folder` in its
 * snapshots; then cuts `folder` to their common root. */
static bool epctx__path_blob(char *folder, const char *file) {
    static const char snapshots[] = "/snapshots/";
    static const char blobs[] = "/blobs/";
    size_t root = strlen(folder);
    while (root > 0 && strncmp(folder + root, snapshots, sizeof snapshots - 1) != 0) root--;
    if (root == 0 || strncmp(folder, file, root) != 0 ||
        strncmp(file + root, blobs, sizeof blobs - 1) != 0 ||
        memchr(file + root + sizeof blobs - 1, '/', strlen(file + root + sizeof blobs - 1)) != NULL)
        return false;
    folder[root] = '\0';
    return true;
}

/* Internal flag: the folder is the second of two, which messages tell. */
#define EPCTX__PATH_SECOND 0x10000000u

/* `out`: canonical path of the file; `root`: of its folder. */
static epctx_status epctx__path_locate(const epctx_io *io, epctx_str folder, epctx_str name,
                                       uint32_t flags, char *out, size_t capacity,
                                       char root[EPCTX_PATH_MAX], epctx_error *error) {
    char full[EPCTX_PATH_MAX];
    epctx_file_info info;
    epctx_str part = folder.size > 0 ? folder : epctx_str_of(".");
    EPCTX__TRY(epctx__path_check(name, flags, error));
    if (io == NULL) return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    EPCTX__TRY(epctx_path_join(part, name, full, sizeof full, error));
    EPCTX__TRY(io->stat_fn(io->user, full, &info, error));
    if (info.kind == EPCTX_FILE_NONE) {
        return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "file '%S' does not exist (path %s)", &name,
                          full);
    }
    if (info.kind != EPCTX_FILE_REGULAR) {
        return epctx_fail(error, EPCTX_ERR_PATH, "'%s' is %s, a regular file is expected", full,
                          info.kind == EPCTX_FILE_FOLDER ? "a folder" : "a device or pipe");
    }
    if (info.size == 0)
        return epctx_fail(error, EPCTX_ERR_PATH, "file '%s' is empty (0 bytes)", full);
    EPCTX__TRY(io->canonical_fn(io->user, full, out, capacity, error));
    full[strlen(full) - name.size] = '\0'; /* the folder and its separator */
    EPCTX__TRY(io->canonical_fn(io->user, full, root, EPCTX_PATH_MAX, error));
    if (epctx_path_relative(epctx_str_of(root), epctx_str_of(out), &part, NULL) != EPCTX_OK &&
        !((flags & EPCTX_PATH_HUGGING_FACE) != 0 && epctx__path_blob(root, out))) {
        return epctx_fail(
            error, EPCTX_ERR_PATH, "path '%S' leaves the %s through a link: it is %s", &name,
            (flags & EPCTX__PATH_SECOND) != 0 ? "second folder" : "model's folder", out);
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_path_find(const epctx_io *io, epctx_str folder, epctx_str name,
                                       uint32_t flags, char *out, size_t capacity,
                                       epctx_error *error) {
    char root[EPCTX_PATH_MAX];
    return epctx__path_locate(io, folder, name, flags, out, capacity, root, error);
}

/* A flag for epctx_path_map: copies into private memory, under EPCTX_PATH_GUARDED only what others
 * can write. */
#define EPCTX__PATH_COPY 0x20000000u

EPCTX_API epctx_status epctx_path_map(const epctx_io *io, epctx_str folder, epctx_str name,
                                      uint32_t flags, epctx_mapping *out, char *path,
                                      epctx_error *error) {
    bool copy = (flags & EPCTX__PATH_COPY) != 0;
    char root[EPCTX_PATH_MAX];
    char full[EPCTX_PATH_MAX];
    epctx_file_info info;
    epctx_str inside;
    memset(out, 0, sizeof *out);
    EPCTX__TRY(epctx__path_locate(io, folder, name, flags, full, sizeof full, root, error));
    if (path != NULL) memcpy(path, full, strlen(full) + 1);
    (void)epctx_path_relative(epctx_str_of(root), epctx_str_of(full), &inside, NULL);
    if (copy && (flags & EPCTX_PATH_GUARDED) != 0) {
        EPCTX__TRY(io->stat_fn(io->user, root, &info, error));
        copy = !info.guarded;
    }
    EPCTX__TRY(io->map_fn(io->user, root, inside.data, copy, out, error));
    if ((flags & EPCTX__PATH_COPY) != 0 && !copy && !out->info.guarded) {
        io->unmap_fn(io->user, out);
        EPCTX__TRY(io->map_fn(io->user, root, inside.data, true, out, error));
    }
    if (out->size == 0) {
        io->unmap_fn(io->user, out);
        return epctx_fail(error, EPCTX_ERR_PATH, "file '%s' is empty (0 bytes)", full);
    }
    return EPCTX_OK;
}

/* -- outputs -- */

/* The canonical folder of `path`, with its name unresolved. */
static epctx_status epctx__path_place(const epctx_io *io, const char *path,
                                      char out[EPCTX_PATH_MAX], epctx_error *error) {
    char given[EPCTX_PATH_MAX];
    char folder[EPCTX_PATH_MAX];
    epctx_str part = epctx_path_folder(epctx_str_of(path));
    epctx_status status;
    part = part.size > 0 ? part : epctx_str_of(".");
    EPCTX__TRY(epctx__path_join(given, sizeof given, &part, 1, error));
    status = io->canonical_fn(io->user, given, folder, sizeof folder, error);
    if (status == EPCTX_ERR_NOT_FOUND) {
        epctx_error_clear(error);
        return epctx__file_failed(error, status, "its folder does not exist", path);
    }
    if (status != EPCTX_OK && error != NULL) {
        error->file[0] = '\0'; /* the culprit is the file that was asked for */
        epctx_blame(error, path, NULL, NULL);
    }
    EPCTX__TRY(status);
    return epctx_path_join(epctx_str_of(folder), epctx_path_file(epctx_str_of(path)), out,
                           EPCTX_PATH_MAX, error);
}

/* Canonical path; the file need not exist, its folder must. */
static epctx_status epctx__path_real(const epctx_io *io, const char *path, char out[EPCTX_PATH_MAX],
                                     epctx_error *error) {
    epctx_status status = io->canonical_fn(io->user, path, out, EPCTX_PATH_MAX, error);
    if (status != EPCTX_ERR_NOT_FOUND) return status;
    epctx_error_clear(error);
    return epctx__path_place(io, path, out, error);
}

/* The folder for names in the model at `path`: of the path, or of the target of a link into another
 * folder (in `room`). */
static EPCTX__UNUSED epctx_str epctx__path_beside(const epctx_io *io, const char *path,
                                                  char room[EPCTX_PATH_MAX]) {
    epctx_str folder = epctx_path_folder(epctx_str_of(path));
    char place[EPCTX_PATH_MAX];
    if (io == NULL || path == NULL || path[0] == '\0' ||
        io->canonical_fn(io->user, path, room, EPCTX_PATH_MAX, NULL) != EPCTX_OK ||
        epctx__path_place(io, path, place, NULL) != EPCTX_OK)
        return folder;
    room[epctx_path_folder(epctx_str_of(room)).size] = '\0';
    place[epctx_path_folder(epctx_str_of(place)).size] = '\0';
    return strcmp(room, place) == 0 ? folder : epctx_str_of(room);
}

EPCTX_API epctx_status epctx_output_check(const epctx_io *io, const char *path,
                                          epctx_overwrite overwrite, epctx_error *error) {
    char place[EPCTX_PATH_MAX];
    epctx_file_info info;
    epctx_error_clear(error);
    if (io == NULL) return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    EPCTX__TRY(epctx__path_place(io, path, place, error));
    EPCTX__TRY(io->stat_fn(io->user, path, &info, error));
    if (info.kind == EPCTX_FILE_REGULAR && overwrite == EPCTX_OVERWRITE_FAIL)
        return epctx__file_exists(path, error);
    if (info.kind != EPCTX_FILE_NONE && info.kind != EPCTX_FILE_REGULAR) {
        return epctx__file_failed(error, EPCTX_ERR_PATH,
                                  "is a folder or a device, a file is expected", path);
    }
    return EPCTX_OK;
}

/* epctx_output_check for a name from a model, below a canonical folder: no part may be a link. */
static epctx_status epctx__path_check_new(const epctx_io *io, epctx_str folder, epctx_str name,
                                          epctx_overwrite overwrite, char path[EPCTX_PATH_MAX],
                                          epctx_error *error) {
    char now[EPCTX_PATH_MAX];
    EPCTX__TRY(epctx_path_join(folder, name, path, EPCTX_PATH_MAX, error));
    EPCTX__TRY(epctx_output_check(io, path, overwrite, error));
    EPCTX__TRY(epctx__path_real(io, path, now, error));
    if (strcmp(now, path) != 0) {
        return epctx_fail(error, EPCTX_ERR_PATH,
                          "is a link to %s or lies behind one: a file whose name comes from a "
                          "model is not written through links; remove it or choose another name",
                          now);
    }
    return EPCTX_OK;
}

/* `real` + `end`; a name that gets too long is cut before `end`. */
static epctx_status epctx__path_end(const char *real, const char *end, char out[EPCTX_PATH_MAX],
                                    epctx_error *error) {
    char name[EPCTX_NAME_MAX];
    epctx__name_end(name, epctx_path_file(epctx_str_of(real)).data, end, 0, EPCTX__NAME_MOST);
    return epctx_path_join(epctx_path_folder(epctx_str_of(real)), epctx_str_of(name), out,
                           EPCTX_PATH_MAX, error);
}

static epctx_status epctx__io_of(const epctx_io *io, const epctx_io **out, epctx_error *error) {
    *out = io != NULL ? io : epctx_io_files();
    return *out != NULL ? EPCTX_OK
                        : epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
}

/* -- locks of files -- */

static epctx_status epctx__file_lock_ask(epctx_file_lock *lock, const epctx_io *io,
                                         const char *path, bool try_only, epctx_error *error) {
    char real[EPCTX_PATH_MAX];
    epctx_status status;
    epctx_error_clear(error);
    memset(lock, 0, sizeof *lock);
    EPCTX__TRY(epctx__io_of(io, &lock->io, error));
    io = lock->io;
    EPCTX__TRY(epctx__path_real(io, path, real, error));
    EPCTX__TRY(epctx__path_end(real, ".lock", lock->path, error));
    if (io->lock_fn == NULL) return EPCTX_OK;
    lock->file.try_only = try_only;
    status = io->lock_fn(io->user, NULL, lock->path, &lock->file, error);
    lock->held = status == EPCTX_OK;
    if (try_only && status == EPCTX_ERR_CHANGED) {
        epctx_error_clear(error);
        epctx_fail(error, status, "'%s' is held by another process or thread", lock->path);
    }
    return status;
}

EPCTX_API epctx_status epctx_file_lock_take(epctx_file_lock *lock, const epctx_io *io,
                                            const char *path, epctx_error *error) {
    return epctx__file_lock_ask(lock, io, path, false, error);
}

EPCTX_API epctx_status epctx_file_lock_try(epctx_file_lock *lock, const epctx_io *io,
                                           const char *path, epctx_error *error) {
    return epctx__file_lock_ask(lock, io, path, true, error);
}

EPCTX_API void epctx_file_lock_drop(epctx_file_lock *lock) {
    if (lock->held) lock->io->close_fn(lock->io->user, &lock->file);
    memset(lock, 0, sizeof *lock);
}

/* ============================================================
 * >>wire
 *
 * The grammar is that of libprotobuf's C++ parser: tags and lengths of at most five bytes, varints
 * of at most ten, field number 0 and wire types 6 and 7 refused, groups must close with their own
 * number, and at most max_depth nested messages and groups.
 * ============================================================ */

/* Returns the byte after the varint, or NULL when it is cut off or longer than `most` bytes. */
static const uint8_t *epctx__varint(const uint8_t *p, const uint8_t *end, unsigned most,
                                    uint64_t *value) {
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

/* Drops a tag's bits beyond the 32nd, as libprotobuf does. */
static const uint8_t *epctx__tag(const uint8_t *p, const uint8_t *end, uint32_t *tag) {
    uint64_t value = 0;
    p = epctx__varint(p, end, 5, &value);
    *tag = (uint32_t)(value & UINT32_MAX);
    return p;
}

#ifndef EPCTX_NO_WIRE

typedef struct epctx__token {
    uint32_t number;
    epctx_wire wire;
    uint64_t value;
    const uint8_t *start; /* of the tag */
    const uint8_t *body;  /* LEN: of the payload, which ends where the field ends */
} epctx__token;

/* Reads a value of the wire types VARINT, FIXED64 and FIXED32; returns the byte behind it, or
 * NULL. */
static const uint8_t *epctx__number(const uint8_t *p, const uint8_t *end, epctx_wire wire,
                                    uint64_t *value) {
    size_t width = wire == EPCTX_WIRE_FIXED64 ? 8 : 4;
    if (wire == EPCTX_WIRE_VARINT) return epctx__varint(p, end, 10, value);
    if ((size_t)(end - p) < width) return NULL;
    *value = width == 8 ? epctx__le64(p) : epctx__le32(p);
    return p + width;
}

/* epctx__next for fields of any form. */
static const uint8_t *epctx__next_long(const uint8_t *p, const uint8_t *end, uint32_t depth,
                                       epctx__token *t) {
    uint32_t tag;
    uint64_t size;
    t->start = p;
    p = epctx__tag(p, end, &tag);
    if (p == NULL || tag >> 3 == 0) return NULL;
    t->number = tag >> 3;
    t->wire = (epctx_wire)(tag & 7);
    t->value = 0;
    t->body = p;
    switch (tag & 7) {
    case EPCTX_WIRE_VARINT:
    case EPCTX_WIRE_FIXED64:
    case EPCTX_WIRE_FIXED32: return epctx__number(p, end, t->wire, &t->value);
    case EPCTX_WIRE_LEN:
        t->body = p = epctx__varint(p, end, 5, &size);
        return p != NULL && size <= (uint64_t)(end - p) ? p + size : NULL;
    case EPCTX_WIRE_GROUP:
        while (depth > 0 && p != NULL && p < end) {
            epctx__token inner;
            const uint8_t *after = epctx__tag(p, end, &tag);
            if (after != NULL && (tag & 7) == 4) /* the end of a group */
                return tag >> 3 == t->number ? after : NULL;
            p = epctx__next_long(p, end, depth - 1, &inner);
        }
        return NULL;
    default: return NULL;
    }
}

/* Reads one field; NULL: malformed. `depth`: levels that may still open. Nearly every field has a
 * tag and a length or value of one byte each. */
static inline const uint8_t *epctx__next(const uint8_t *p, const uint8_t *end, uint32_t depth,
                                         epctx__token *t) {
    uint32_t wire = p[0] & 7u;
    if (end - p < 2 || p[0] >= 0x80 || p[0] < 8 || p[1] >= 0x80 ||
        (wire != EPCTX_WIRE_VARINT && (wire != EPCTX_WIRE_LEN || p[1] > end - p - 2)))
        return epctx__next_long(p, end, depth, t);
    t->start = p;
    t->number = (uint32_t)p[0] >> 3;
    t->wire = (epctx_wire)wire;
    t->value = wire == EPCTX_WIRE_VARINT ? p[1] : 0;
    t->body = p + 2;
    return wire == EPCTX_WIRE_VARINT ? p + 2 : p + 2 + p[1];
}

/* -- the schema -- */

#define EPCTX__ONE 0x20u /* added to the kind of a singular message */

/* What opening must check: the kind of a message, with EPCTX__ONE if it is singular, or of repeated
 * numbers, which may be packed; else 0. Compilers turn the switch into a table. */
static inline uint32_t epctx__field_kind(epctx_kind message, uint32_t number) {
#define EPCTX__CASE_ONE(message, symbol, number, kind) \
    case (uint32_t)EPCTX_KIND_##message << 5 | number: \
        return EPCTX_KIND_##kind < EPCTX_KIND_INT ? EPCTX_KIND_##kind | EPCTX__ONE : 0u;
#define EPCTX__CASE_MANY(message, symbol, number, kind) \
    case (uint32_t)EPCTX_KIND_##message << 5 | number: \
        return EPCTX_KIND_##kind < EPCTX_KIND_STRING ? (uint32_t)EPCTX_KIND_##kind : 0u;
    switch (number < 32 ? (uint32_t)message << 5 | number : 0) {
        EPCTX_FIELD_LIST(EPCTX__CASE_ONE, EPCTX__CASE_MANY)
    default: return 0;
    }
#undef EPCTX__CASE_MANY
#undef EPCTX__CASE_ONE
}

EPCTX_API const epctx_field_info *epctx_field_find(epctx_kind message, uint32_t number) {
#define EPCTX__ROW_ONE(message, symbol, number, kind) \
    {EPCTX_KIND_##message, #symbol, number, false, EPCTX_KIND_##kind},
#define EPCTX__ROW_MANY(message, symbol, number, kind) \
    {EPCTX_KIND_##message, #symbol, number, true, EPCTX_KIND_##kind},
    static const epctx_field_info fields[] = {EPCTX_FIELD_LIST(EPCTX__ROW_ONE, EPCTX__ROW_MANY)};
#undef EPCTX__ROW_MANY
#undef EPCTX__ROW_ONE
    size_t i = 0;
    while (i < sizeof fields / sizeof *fields &&
           (fields[i].message != message || fields[i].number != number))
        i++;
    return i < sizeof fields / sizeof *fields ? &fields[i] : NULL;
}

EPCTX_API bool epctx_field_fits(const epctx_field_info *info, epctx_wire wire) {
    return wire == (info->kind == EPCTX_KIND_INT      ? EPCTX_WIRE_VARINT
                    : info->kind == EPCTX_KIND_FLOAT  ? EPCTX_WIRE_FIXED32
                    : info->kind == EPCTX_KIND_DOUBLE ? EPCTX_WIRE_FIXED64
                                                      : EPCTX_WIRE_LEN);
}

EPCTX_API const char *epctx_message_name(epctx_kind message) {
#define EPCTX__MESSAGE_NAME(message, name) name,
    static const char *const names[] = {"unknown", EPCTX_MESSAGE_LIST(EPCTX__MESSAGE_NAME)};
#undef EPCTX__MESSAGE_NAME
    return names[(unsigned)message < (unsigned)EPCTX_KIND_INT ? message : EPCTX_KIND_NONE];
}

/* Whether a field is a member of its message's only oneof. */
static bool epctx__is_choice(epctx_kind message, uint32_t number, epctx_wire wire) {
    if (message == EPCTX_KIND_DIM || message == EPCTX_KIND_SIMPLE_SHARDING) {
        return number == (wire == EPCTX_WIRE_VARINT ? (uint32_t)EPCTX_FIELD_DIM_DIM_VALUE
                          : wire == EPCTX_WIRE_LEN  ? (uint32_t)EPCTX_FIELD_DIM_DIM_PARAM
                                                    : 0u);
    }
    return message == EPCTX_KIND_TYPE && wire == EPCTX_WIRE_LEN &&
           epctx__field_kind(message, number) != 0;
}

static epctx_kind epctx__message_kind(uint32_t kind) {
    return (epctx_kind)(kind & (EPCTX__ONE - 1));
}

static bool epctx__is_message(uint32_t kind) {
    return kind != 0 && epctx__message_kind(kind) < EPCTX_KIND_INT;
}

/* -- the check of a whole message -- */

typedef struct epctx__check {
    uint64_t fields;    /* still allowed */
    const uint8_t *bad; /* where the first fault is */
    const char *reason;
    epctx_status status;
    bool duplicate;
} epctx__check;

static bool epctx__refuse(epctx__check *c, epctx_status status, const uint8_t *at,
                          const char *reason) {
    c->status = status;
    c->bad = at;
    c->reason = reason;
    return false;
}

static bool epctx__check_packed(epctx__check *c, uint32_t kind, const uint8_t *p,
                                const uint8_t *end) {
    const bool ints = kind == (uint32_t)EPCTX_KIND_INT;
    if (!ints && (end - p) % (kind == (uint32_t)EPCTX_KIND_FLOAT ? 4 : 8) != 0)
        return epctx__refuse(c, EPCTX_ERR_PROTOBUF, p, "a packed field ends inside a number");
    while (ints && p < end) {
        uint64_t value;
        const uint8_t *at = p;
        p = epctx__varint(p, end, 10, &value);
        if (p == NULL)
            return epctx__refuse(c, EPCTX_ERR_PROTOBUF, at, "a packed field ends inside a varint");
    }
    return true;
}

static bool epctx__check_message(epctx__check *c, epctx_kind type, const uint8_t *p,
                                 const uint8_t *end, uint32_t depth);

static inline bool epctx__check_field(epctx__check *c, epctx_kind type, const epctx__token *t,
                                      const uint8_t *end, uint32_t depth, uint32_t *seen) {
    uint32_t kind = t->wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, t->number) : 0;
    if (c->fields == 0) {
        return epctx__refuse(c, EPCTX_ERR_LIMIT, t->start,
                             "the model has more fields than epctx_limits.max_fields allows");
    }
    c->fields--;
    if (!epctx__is_message(kind)) return kind == 0 || epctx__check_packed(c, kind, t->body, end);
    if ((kind & EPCTX__ONE) != 0) {
        c->duplicate = c->duplicate || (*seen >> t->number & 1) != 0;
        *seen |= UINT32_C(1) << t->number;
    }
    if (depth == 0) {
        return epctx__refuse(c, EPCTX_ERR_PROTOBUF, t->start,
                             "messages are nested deeper than the limit");
    }
    return epctx__check_message(c, epctx__message_kind(kind), t->body, end, depth - 1);
}

static bool epctx__check_message(epctx__check *c, epctx_kind type, const uint8_t *p,
                                 const uint8_t *end, uint32_t depth) {
    uint32_t seen = 0;
    while (p < end) {
        epctx__token t;
        const uint8_t *after = epctx__next(p, end, depth, &t);
        if (after == NULL)
            return epctx__refuse(c, EPCTX_ERR_PROTOBUF, p, "no valid protobuf field");
        if (!epctx__check_field(c, type, &t, after, depth, &seen)) return false;
        p = after;
    }
    return true;
}

/* -- the tree --
 *
 * A message is its bytes until it is opened (the model, its main graph, whatever an edit needs)
 * into a list of slots, one per field. A slot keeps its source bytes, which are written unless
 * something inside changed. Lists make edit and undo O(1). */

typedef struct epctx__message {
    struct epctx_slot *first, *last, *hint; /* the hint: what epctx__child_at found last */
    uint32_t edits; /* live edits in this message and below; 0: the source bytes are valid */
    uint64_t size;  /* of the payload, set by epctx__measure */
} epctx__message;

struct epctx_slot {
    struct epctx_slot *next, *parent;
    const uint8_t *data; /* whole field from the tag on; if `split`, only the payload */
    size_t size;
    epctx__message *message; /* opened payload, or NULL */
    uint32_t number;
    uint8_t wire;
    uint8_t head;  /* bytes of tag and length in front of the payload */
    uint8_t split; /* not 0: `data` is the payload only; minimum width of its length */
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

/* Bytes inside the payload of `owner`, which may be NULL. */
static epctx_view epctx__bytes_view(const epctx_slot *owner, const uint8_t *data, size_t size) {
    epctx_view view = {owner, data, size};
    return view;
}

static epctx_view epctx__slot_view(const epctx_slot *slot) {
    const uint8_t *data = slot->data != NULL ? slot->data + slot->head : NULL;
    return epctx__bytes_view(slot, data, slot->size - slot->head);
}

EPCTX_API epctx_view epctx_view_none(void) {
    return epctx__bytes_view(NULL, NULL, 0);
}

EPCTX_API bool epctx_view_exists(epctx_view view) {
    return view.slot != NULL || view.data != NULL;
}

EPCTX_API epctx_cursor epctx_view_fields(epctx_view message, uint32_t number) {
    epctx_cursor it = {message.slot, NULL, NULL, NULL, NULL, NULL, number};
    if (message.slot != NULL && message.slot->message != NULL &&
        message.data == epctx__slot_view(message.slot).data) { /* not something inside */
        it.slot = message.slot->message->first;
    } else if (message.data != NULL) {
        it.next = message.data;
        it.end = message.data + message.size;
    }
    return it;
}

static void epctx__field_of(const epctx__token *t, const uint8_t *after, const epctx_slot *owner,
                            epctx_field *f) {
    f->number = t->number;
    f->wire = t->wire;
    f->value = t->value;
    f->body = t->wire == EPCTX_WIRE_LEN
                  ? epctx__bytes_view(owner, t->body, (size_t)(after - t->body))
                  : epctx_view_none();
}

/* Reads only the value again: the bytes of a mapped file may have changed since opening. */
static void epctx__slot_field(const epctx_slot *slot, epctx_field *f) {
    epctx__token t;
    bool bytes = slot->wire == EPCTX_WIRE_LEN;
    f->number = slot->number;
    f->wire = (epctx_wire)slot->wire;
    f->body = bytes ? epctx__slot_view(slot) : epctx_view_none();
    f->value = 0;
    if (!bytes && epctx__next(slot->data, slot->data + slot->size, 100, &t) != NULL)
        f->value = t.value;
}

EPCTX_API bool epctx_next_field(epctx_cursor *cursor, epctx_field *field) {
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

/* The next repeated scalar of the given unpacked wire type, packed or not. */
static bool epctx__next_scalar(epctx_cursor *it, epctx_wire wire, uint64_t *value) {
    epctx_field f;
    for (;;) {
        if (it->packed != NULL) {
            it->packed = epctx__number(it->packed, it->packed_end, wire, value);
            if (it->packed != NULL) return true;
        }
        if (!epctx_next_field(it, &f)) return false;
        if (f.wire == wire) {
            *value = f.value;
            return true;
        }
        if (f.wire == EPCTX_WIRE_LEN && f.body.size > 0) { /* an empty one may have no bytes */
            it->packed = f.body.data;
            it->packed_end = f.body.data + f.body.size;
        }
    }
}

EPCTX_API bool epctx_next_int(epctx_cursor *cursor, int64_t *value) {
    uint64_t bits;
    if (!epctx__next_scalar(cursor, EPCTX_WIRE_VARINT, &bits)) return false;
    *value = (int64_t)bits;
    return true;
}

static float epctx__float(uint64_t bits) {
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

EPCTX_API bool epctx_next_float(epctx_cursor *cursor, float *value) {
    uint64_t bits;
    if (!epctx__next_scalar(cursor, EPCTX_WIRE_FIXED32, &bits)) return false;
    *value = epctx__float(bits);
    return true;
}

EPCTX_API epctx_str epctx_view_str(epctx_view view) {
    return epctx__str(view.data, view.size);
}

EPCTX_API bool epctx_next_view(epctx_cursor *cursor, epctx_view *body) {
    epctx_field f;
    while (epctx_next_field(cursor, &f)) {
        if (f.wire == EPCTX_WIRE_LEN) {
            *body = f.body;
            return true;
        }
    }
    return false;
}

EPCTX_API bool epctx_next_str(epctx_cursor *cursor, epctx_str *value) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    *value = epctx_view_str(body);
    return true;
}

EPCTX_API size_t epctx_cursor_count(epctx_cursor cursor) {
    epctx_view body;
    size_t count = 0;
    while (epctx_next_view(&cursor, &body)) count++;
    return count;
}

/* -- nanopb: do the linked library and its header match? -- */

#if !defined(PB_BUFFER_ONLY)
static bool epctx__probe_read(pb_istream_t *stream, pb_byte_t *out, size_t count) {
    (void)stream;
    memset(out, 0x5a, count);
    return true;
}
#elif !defined(EPCTX_NO_EDIT)
#error "epctx.h: with PB_BUFFER_ONLY nanopb writes to memory only: define EPCTX_NO_EDIT"
#endif

/* PB_NO_ERRMSG and PB_BUFFER_ONLY change pb_istream_t but no symbol. Reading a byte with our own
 * callback, then provoking an error, detects both. */
static bool epctx__nanopb_matches(void) {
    pb_byte_t source = 0, byte = 0;
    struct {
        pb_istream_t stream;
        const char *guard[4]; /* nanopb with messages writes one here if we expect none */
    } probe;
    bool ended, told = true;
    memset(&probe, 0, sizeof probe);
#ifdef PB_BUFFER_ONLY
    source = 0x5a;
    probe.stream = pb_istream_from_buffer(&source, 1);
#else
    probe.stream.callback = epctx__probe_read;
    probe.stream.state = &source; /* read by a nanopb without callbacks */
    probe.stream.bytes_left = 1;
#endif
    pb_read(&probe.stream, &byte, 1);
    ended = !pb_read(&probe.stream, &source, 1);
#ifndef PB_NO_ERRMSG
    told = probe.stream.errmsg != NULL;
#endif
    return byte == 0x5a && ended && told && probe.guard[0] == NULL; /* not taken: another nanopb */
}

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>binary
 *
 * From the surest to the weakest evidence: the text of a Git LFS pointer; what a conversion as text
 * leaves behind, whatever the file was before; the bytes that a format begins with; layouts whose
 * numbers must agree; files that are text as a whole; the fields of an ONNX model. A wrong
 * "foreign" would refuse what works, so each such verdict needs evidence that chance, or a binary
 * with texts in it, does not give.
 * ============================================================ */

static const struct {
    const char *name, *profile, *cure;
    epctx_binary_sort sort;
} epctx__binaries[] = {
#define EPCTX__BINARY_ROW(kind, sort, name, profile, cure) \
    {name, profile, cure, EPCTX_BINARY_SORT_##sort},
    EPCTX_BINARY_LIST(EPCTX__BINARY_ROW)
#undef EPCTX__BINARY_ROW
};

/* A file as far as it is known. */
typedef struct epctx__ends {
    epctx_str first, last; /* at most a window each; `last` begins after `first` */
    epctx_str end;         /* the last bytes, a window or all; empty: not known */
    uint64_t size;
} epctx__ends;

static epctx__ends epctx__ends_of(epctx_span first, epctx_span last, uint64_t size) {
    epctx__ends e;
    uint64_t after;
    size_t most = EPCTX_BINARY_WINDOW;
    const bool whole = first.size >= size;
    memset(&e, 0, sizeof e);
    e.size = size;
    if (whole) last = first, last.size = (size_t)size; /* which may be more than a window */
    if (first.size > size) first.size = (size_t)size;
    if (last.size > size) last.data += last.size - (size_t)size, last.size = (size_t)size;
    e.first = epctx__str(first.data, first.size < most ? first.size : most);
    if (last.size < most) most = last.size;
    if (most > 0) e.end = epctx__str(last.data + (last.size - most), most);
    after = size - e.first.size;
    if (after < most) most = (size_t)after;
    if (most > 0) e.last = epctx__str(e.end.data + (e.end.size - most), most);
    return e;
}

/* Whether `word` stands somewhere in `text`. */
static bool epctx__holds(epctx_str text, const char *word) {
    const size_t size = strlen(word);
    while (text.size >= size) {
        const void *at = memchr(text.data, word[0], text.size - size + 1);
        if (at == NULL) return false;
        epctx__str_skip(&text, (size_t)((const char *)at - text.data));
        if (memcmp(text.data, word, size) == 0) return true;
        epctx__str_skip(&text, 1);
    }
    return false;
}

static bool epctx__holds_at(epctx_str text, size_t at, const char *bytes, size_t size) {
    return text.size >= at && text.size - at >= size && memcmp(text.data + at, bytes, size) == 0;
}

static uint64_t epctx__number_at(epctx_str text, size_t at) {
    return text.size >= 8 && text.size - 8 >= at ? epctx__le64((const uint8_t *)text.data + at) : 0;
}

/* -- text, and what was treated as text -- */

/* What the bytes of both windows are. */
typedef struct epctx__traits {
    size_t controls; /* NUL and others that no text has */
    size_t feeds;    /* line feeds, */
    size_t bare;     /* those without a carriage return before, */
    size_t stuck;    /* and those with one, in the middle of what is no text */
    size_t wrong;    /* bytes that are not UTF-8, */
    size_t replaced; /* U+FFFD and the controls U+0080 to U+009F, which no text has */
} epctx__traits;

static bool epctx__is_control(uint8_t c) {
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7f;
}

/* Whether a byte near `at` is no text: a line end there is one by chance. */
static bool epctx__among_binary(const uint8_t *p, size_t size, size_t at) {
    size_t from = at >= 3 ? at - 3 : 0, to = size - at > 3 ? at + 3 : size;
    for (; from < to; from++)
        if (epctx__is_control(p[from]) || p[from] >= 0x80) return true;
    return false;
}

static void epctx__look_at(epctx__traits *t, epctx_str part, bool cut) {
    const uint8_t *p = (const uint8_t *)part.data;
    size_t i, n;
    for (i = 0; i < part.size; i++) {
        t->controls += epctx__is_control(p[i]);
        if (p[i] != '\n' || (i == 0 && cut)) continue;
        t->feeds++;
        if (i == 0 || p[i - 1] != '\r')
            t->bare++;
        else
            t->stuck += epctx__among_binary(p, part.size, i);
    }
    /* A character may be cut at either end of a window. */
    for (i = 0; cut && i < 3 && i < part.size && (p[i] & 0xc0) == 0x80; i++) continue;
    for (; i < part.size; i += n) {
        const uint32_t code = p[i] < 0x80 ? (n = 1, p[i]) : epctx_str_char(part, i, &n);
        if (code == EPCTX_NO_CHAR)
            t->wrong += part.size - i > 3;
        else
            t->replaced += code == 0xfffd || (code >= 0x80 && code < 0xa0);
    }
}

/* As unix2dos or a checkout with autocrlf leaves a binary file: every line feed has a carriage
 * return before it. */
static bool epctx__is_crlf(const epctx__traits *t) {
    return t->bare == 0 && t->stuck >= 8 && t->controls >= t->feeds;
}

/* As a program leaves it that reads text of any encoding and writes UTF-8: not one wrong byte. */
static bool epctx__is_utf8_converted(const epctx__traits *t) {
    return t->wrong == 0 && t->replaced >= 16 && t->controls >= 16;
}

static epctx_str epctx__trimmed(epctx_str text) {
    static const char blank[] = " \t\r\n\f";
    if (epctx_str_starts(text, "\xef\xbb\xbf")) epctx__str_skip(&text, 3);
    while (text.size > 0 && memchr(blank, text.data[0], sizeof blank) != NULL)
        epctx__str_skip(&text, 1);
    while (text.size > 0 && memchr(blank, text.data[text.size - 1], sizeof blank) != NULL)
        text.size--;
    return text;
}

static bool epctx__starts_nocase(epctx_str text, const char *start) {
    const size_t size = strlen(start);
    return text.size >= size &&
           epctx_str_eq_nocase(epctx__str(text.data, size), epctx_str_of(start));
}

static epctx_binary_kind epctx__xml_kind(const epctx__ends *e, epctx_str text, bool plain) {
    if (epctx__holds(text, "<net ") && epctx__holds(text, "<layer"))
        return EPCTX_BINARY_OPENVINO_IR;
    if (epctx__starts_nocase(text, "<!doctype html") || epctx__starts_nocase(text, "<html") ||
        epctx__holds(text, "<html") || epctx__holds(text, "<HTML"))
        return plain ? EPCTX_BINARY_HTML : EPCTX_BINARY_UNKNOWN;
    /* Blobs of older versions of OpenVINO begin with one. */
    if (epctx__holds(text, "<cnndata") || epctx__holds(text, "<compiled_blob"))
        return EPCTX_BINARY_OPENVINO_BLOB;
    return plain && e->end.size > 0 && epctx_str_starts(text, "<?xml") ? EPCTX_BINARY_XML
                                                                       : EPCTX_BINARY_UNKNOWN;
}

static epctx_binary_kind epctx__json_kind(const epctx__ends *e, epctx_str text) {
    const epctx_str end = epctx__trimmed(e->end);
    const char closing = text.data[0] == '{' ? '}' : ']';
    epctx_str inside = text;
    if (end.size < 2 || end.data[end.size - 1] != closing) return EPCTX_BINARY_UNKNOWN;
    epctx__str_skip(&inside, 1);
    inside = epctx__trimmed(inside);
    if (closing == '}' && inside.data[0] != '"' && inside.data[0] != '}')
        return EPCTX_BINARY_UNKNOWN;
    /* Of ONNX Runtime before 1.20: {"backend_cache_dir": ..., "backend_cache_key": ...} */
    return epctx__holds(text, "\"backend_cache_") ? EPCTX_BINARY_VITISAI : EPCTX_BINARY_JSON;
}

/* One line may be anything, an EP's context too, but not what servers send instead of a file. */
static bool epctx__is_answer(epctx_str text) {
    static const char *const answers[] = {"404: Not Found",
                                          "404 Not Found",
                                          "Not Found",
                                          "Entry not found",
                                          "File not found",
                                          "403 Forbidden",
                                          "Invalid username or password."};
    size_t i;
    for (i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (epctx_str_is(text, answers[i])) return true;
    return false;
}

static epctx_binary_kind epctx__text_kind(const epctx__ends *e, const epctx__traits *t) {
    const epctx_str text = epctx__trimmed(e->first);
    const bool plain = t->controls == 0 && t->wrong == 0;
    if (text.size < 2) return EPCTX_BINARY_UNKNOWN;
    if (text.data[0] == '<') return epctx__xml_kind(e, text, plain);
    if (!plain) return EPCTX_BINARY_UNKNOWN;
    if (text.data[0] == '{' || text.data[0] == '[') return epctx__json_kind(e, text);
    return (t->feeds >= 3 && e->size >= 64) || epctx__is_answer(text) ? EPCTX_BINARY_TEXT
                                                                      : EPCTX_BINARY_UNKNOWN;
}

/* -- formats by their first bytes -- */

/* The directory at the end of a ZIP file, as far as it is known; empty: there is none. */
static epctx_str epctx__zip_directory(const epctx__ends *e) {
    epctx_str none = {NULL, 0}, end = e->end;
    uint64_t size = 0;
    size_t at;
    for (at = end.size; at >= 22 && !epctx__holds_at(end, at - 22, "PK\5\6", 4); at--) continue;
    if (at < 22) return none;
    at -= 22;
    size = epctx__number_at(end, at + 12) & UINT32_MAX;
    if (size == UINT32_MAX && at >= 76 && epctx__holds_at(end, at - 76, "PK\6\6", 4)) {
        at -= 76; /* of large files, or of programs that do not care */
        size = epctx__number_at(end, at + 40);
    }
    end.size = at;
    if (size < end.size) epctx__str_skip(&end, end.size - (size_t)size);
    return end;
}

/* What a zip or a tar is, by the names of its entries: also a DLC or what the Vitis AI EP makes. */
static epctx_binary_kind epctx__archive_kind(const epctx__ends *e, epctx_binary_kind kind) {
    epctx_str names = epctx__str(e->first.data, e->first.size < 100 ? e->first.size : 100);
    if (kind == EPCTX_BINARY_TAR) /* of whole models, or of a repository */
        return epctx__holds(names, ".onnx") || epctx_str_starts(names, "pax_global_header")
                   ? kind
                   : EPCTX_BINARY_VITISAI;
    if (epctx__holds_at(e->first, 30, "htp.", 4)) return EPCTX_BINARY_QNN_DLC;
    names = epctx__zip_directory(e);
    return epctx__holds(names, "dlc.metadata") || epctx__holds(names, "htp.cache.")
               ? EPCTX_BINARY_QNN_DLC
               : kind;
}

static epctx_binary_kind epctx__magic_kind(const epctx__ends *e) {
    static const struct {
        size_t at, size;
        const char *bytes;
        epctx_binary_kind kind;
    } known[] = {
        {0, 8, "EPCTXNPU", EPCTX_BINARY_NPU},
        {0, 4, "TOY1", EPCTX_BINARY_TOY},
        {0, 8, "OVEP_BIN", EPCTX_BINARY_OPENVINO_CONTAINER}, /* plugin EP 1.8.1 */
        {0, 8, "RR_UPCVO", EPCTX_BINARY_OPENVINO_BLOB},      /* CPU plugin, 2026.4 */
        {0, 8, "\0\0\0\2\0\0\0\2", EPCTX_BINARY_QNN},        /* QAIRT 2.22 */
        {0, 8, "\0\0\0\2\0\0\0\3", EPCTX_BINARY_QNN},        /* QAIRT 2.51 */
        {0, 4, "ftrt", EPCTX_BINARY_TENSORRT},
        {0, 4, "ptrt", EPCTX_BINARY_TENSORRT},
        {0, 3, "\x1f\x8b\x08", EPCTX_BINARY_GZIP},
        {0, 4, "PK\3\4", EPCTX_BINARY_ZIP},
        {0, 4, "PK\5\6", EPCTX_BINARY_ZIP}, /* without entries */
        {257, 5, "ustar", EPCTX_BINARY_TAR},
        {4, 4, "ORTM", EPCTX_BINARY_ORT},
    };
    size_t i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!epctx__holds_at(e->first, known[i].at, known[i].bytes, known[i].size)) continue;
        return known[i].kind == EPCTX_BINARY_ZIP || known[i].kind == EPCTX_BINARY_TAR
                   ? epctx__archive_kind(e, known[i].kind)
                   : known[i].kind;
    }
    return EPCTX_BINARY_UNKNOWN;
}

/* -- formats whose numbers agree -- */

enum { EPCTX__MODEL_GRAPH = 7, EPCTX__MODEL_OPSETS = 8 }; /* also with EPCTX_NO_WIRE */

/* What OpenVINO's CPU plugin writes before its data: offset and size of options, constants and
 * model, one after the other (2024 to 2026). Gives the size of all, or 0. */
static uint64_t epctx__openvino_size(epctx_str at) {
    const uint64_t options = epctx__number_at(at, 0), constants = epctx__number_at(at, 16);
    const uint64_t model = epctx__number_at(at, 32), size = epctx__number_at(at, 40);
    const uint64_t most = UINT64_MAX / 4; /* sums stay in range */
    if (at.size < 48 || options != 48 || constants > most || model > most || size > most ||
        size == 0)
        return 0;
    if (constants < options || epctx__number_at(at, 8) != constants - options ||
        model < constants || epctx__number_at(at, 24) != model - constants)
        return 0;
    return model + size;
}

/* The size that the fields of an ONNX model need at least, as far as its beginning shows them; 0:
 * it is none. `*told`: the fields that were seen, a bit each. What stands behind a graph may be
 * damaged. */
static uint64_t epctx__model_bytes(epctx_str text, uint32_t *told) {
    const uint8_t *const start = (const uint8_t *)text.data, *const end = start + text.size;
    const uint8_t *p = start;
    while (p < end) {
        const uint64_t rest = (*told & 1u << EPCTX__MODEL_GRAPH) != 0 ? (uint64_t)(p - start) : 0;
        const uint8_t *after;
        uint64_t value = 0;
        uint32_t tag = 0, number;
        after = epctx__tag(p, end, &tag);
        number = tag >> 3;
        if (after == NULL) break; /* cut by the window */
        /* Those of ModelProto: ir_version and model_version are numbers. */
        if (number > 26 || (UINT32_C(0x61041fe) >> number & 1) == 0 ||
            (tag & 7) != (number == 1 || number == 5 ? EPCTX_WIRE_VARINT : EPCTX_WIRE_LEN))
            return rest;
        after = epctx__varint(after, end, 10, &value);
        if (after == NULL) break;
        if (number == 2 && value > 0 && after < end && *after < 0x20) return rest; /* no name */
        if (number == 1 && value > 1000) return rest;
        *told |= 1u << number;
        p = after;
        if ((tag & 7) == EPCTX_WIRE_VARINT) continue;
        if (value > (uint64_t)(end - p))
            return value > UINT32_MAX ? rest : (uint64_t)(p - start) + value;
        p += value;
    }
    return (uint64_t)(p - start);
}

static bool epctx__is_model(const epctx__ends *e) {
    uint32_t told = 0;
    const uint64_t size = epctx__model_bytes(e->first, &told);
    const uint32_t content = 1u << EPCTX__MODEL_GRAPH | 1u << EPCTX__MODEL_OPSETS;
    if (size == 0) return false;
    /* A beginning that is cut off may show its head only. */
    return (told & content) != 0 || (size > e->first.size && (told & 2) != 0 && told != 2);
}

static epctx_binary_kind epctx__layout_kind(const epctx__ends *e) {
    const size_t size = e->end.size;
    if (epctx__openvino_size(e->first) != 0) return EPCTX_BINARY_OPENVINO_BLOB;
    /* Metadata behind a blob for an NPU (OpenVINO since 2025). */
    if (size >= 5 && epctx__holds_at(e->end, size - 5, "OVNPU", 5))
        return EPCTX_BINARY_OPENVINO_BLOB;
    return epctx__is_model(e) ? EPCTX_BINARY_ONNX : EPCTX_BINARY_UNKNOWN;
}

/* -- verdict -- */

static bool epctx__is_one_byte(epctx_str text, char byte) {
    const size_t windows = text.size / EPCTX_BINARY_WINDOW;
    const size_t step = windows > 256 ? windows / 256 : 1; /* of large files a part */
    size_t i, at;
    for (at = 0; at <= windows; at += step) {
        const size_t from = at * EPCTX_BINARY_WINDOW;
        const size_t end =
            text.size - from > EPCTX_BINARY_WINDOW ? from + EPCTX_BINARY_WINDOW : text.size;
        for (i = from; i < end && text.data[i] == byte; i++) continue;
        if (i < end) return false;
    }
    return true;
}

/* The whole file is there to be seen: a sparse one with contents in its middle is not meant. */
static bool epctx__is_uniform(epctx_span first, epctx_span last, uint64_t size) {
    char byte;
    if (size < 16 || first.size == 0 || first.size + last.size < first.size ||
        (first.size < size && first.size + last.size < size))
        return false;
    byte = (char)first.data[0];
    return epctx__is_one_byte(epctx__str(first.data, first.size), byte) &&
           (last.data == first.data || epctx__is_one_byte(epctx__str(last.data, last.size), byte));
}

/* Bytes that a file of this kind must have, by what it says at its beginning; 0: it does not. */
static uint64_t epctx__expected_size(const epctx__ends *e, epctx_binary_kind kind) {
    const uint64_t most = UINT64_MAX / 4;
    uint64_t at = 0, size = 0;
    uint32_t told = 0;
    switch (kind) {
    case EPCTX_BINARY_NPU: return epctx__number_at(e->first, 56);
    case EPCTX_BINARY_OPENVINO_CONTAINER: /* its directory; the reader looks at the rest */
        at = epctx__number_at(e->first, 24), size = epctx__number_at(e->first, 32);
        return at <= most && size <= most ? at + size : UINT64_MAX;
    case EPCTX_BINARY_OPENVINO_BLOB:
        if (epctx_str_starts(e->first, "RR_UPCVO")) { /* u32 version, u64 size and text of what it
                                                         is for */
            at = epctx__number_at(e->first, 12);
            if (at > e->first.size - 8 || e->first.size < 20 || at > e->first.size - 20) return 0;
            at += 20;
        }
        size = epctx__openvino_size(epctx__str(e->first.data + at, (size_t)(e->first.size - at)));
        return size > 0 ? at + size : 0;
    case EPCTX_BINARY_ONNX: return epctx__model_bytes(e->first, &told);
    default: return 0;
    }
}

static epctx_binary_kind epctx__kind_of(const epctx__ends *e) {
    epctx__traits t;
    epctx_binary_kind kind = epctx__magic_kind(e);
    /* Whatever converts line ends or characters changes the size. */
    const bool converts = kind == EPCTX_BINARY_UNKNOWN || epctx__expected_size(e, kind) != e->size;
    memset(&t, 0, sizeof t);
    epctx__look_at(&t, e->first, false);
    epctx__look_at(&t, e->last, true);
    if (epctx_str_starts(e->first, "version https://git-lfs")) return EPCTX_BINARY_LFS_POINTER;
    if (converts && epctx__is_crlf(&t)) return EPCTX_BINARY_CRLF;
    if (converts && epctx__is_utf8_converted(&t)) return EPCTX_BINARY_UTF8;
    if (kind == EPCTX_BINARY_UNKNOWN) kind = epctx__text_kind(e, &t);
    return kind != EPCTX_BINARY_UNKNOWN ? kind : epctx__layout_kind(e);
}

/* Whether fields of a model stand behind what its beginning tells. */
static bool epctx__model_ends(const epctx__ends *e, uint64_t expected) {
    const uint64_t left = e->size - expected;
    uint32_t told = 1u << EPCTX__MODEL_GRAPH;
    if (left > e->end.size) return true; /* not seen */
    return epctx__model_bytes(epctx__str(e->end.data + (e->end.size - (size_t)left), (size_t)left),
                              &told) == left;
}

/* Formats that have something at their end. */
static const char *epctx__end_damage(const epctx__ends *e, epctx_binary_kind kind,
                                     uint64_t expected) {
    const uint64_t most = e->size < EPCTX_BINARY_WINDOW ? e->size : EPCTX_BINARY_WINDOW;
    if (e->end.size < most) return NULL; /* not seen */
    if (kind == EPCTX_BINARY_ONNX && expected > 0 && !epctx__model_ends(e, expected))
        return "is damaged: what stands behind its graph is no part of a model";
    if ((kind == EPCTX_BINARY_QNN_DLC || kind == EPCTX_BINARY_ZIP) &&
        epctx__zip_directory(e).data == NULL)
        return "is cut off: the directory at its end is missing";
    if (kind == EPCTX_BINARY_OPENVINO_IR && !epctx__holds(e->end, "</net>"))
        return "is cut off: </net> at its end is missing";
    return NULL;
}

EPCTX_API void epctx_binary_identify(epctx_span first, epctx_span last, uint64_t size,
                                     epctx_binary_id *out) {
    const epctx__ends e = epctx__ends_of(first, last, size);
    memset(out, 0, sizeof *out);
    out->kind = size == 0 ? EPCTX_BINARY_EMPTY : epctx__kind_of(&e);
    if (out->kind == EPCTX_BINARY_UNKNOWN && size >= 16 && epctx__is_uniform(first, last, size))
        out->kind = EPCTX_BINARY_ONE_BYTE;
    out->sort = epctx__binaries[out->kind].sort;
    out->name = epctx__binaries[out->kind].name;
    out->profile = epctx__binaries[out->kind].profile;
    out->cure = epctx__binaries[out->kind].cure;
    out->expected = epctx__expected_size(&e, out->kind);
    out->damage =
        out->expected > size ? "is cut off" : epctx__end_damage(&e, out->kind, out->expected);
}

/* ============================================================
 * >>onnx
 *
 * A model is a tree of slots, one per field of the bytes; a slot with a message is opened into the
 * slots of its fields when something below it is needed (epctx__open_slot). The first open checks
 * the whole wire grammar once, in epctx__model_parse, and opens the model and its main graph;
 * whatever is read or opened later cannot fail for its bytes.
 *
 * protobuf lets a singular field occur twice: of numbers and strings the last one counts, messages
 * are merged. Where a model has such messages, epctx__single_below builds a second tree in which
 * they are merged. `root` is the tree that edits change and writing walks; `shown` is the one that
 * reading walks; mostly both are the same.
 *
 * A view is a payload, and the slot around it if there is one. Functions such as epctx_view_as_node
 * fill a struct from the fields of a message by a table of its members (epctx__read_members). A
 * walk keeps one cursor per level on a stack of its own, so it needs neither recursion nor memory.
 * ============================================================ */

/* TensorProto.DataType in order: number, name, bits of an element (0: not of one size). */
/* clang-format off */
#define EPCTX__ELEM_LIST(X) \
    X(0, "unknown", 0) \
    X(1, "float32", 32) \
    X(2, "uint8", 8) \
    X(3, "int8", 8) \
    X(4, "uint16", 16) \
    X(5, "int16", 16) \
    X(6, "int32", 32) \
    X(7, "int64", 64) \
    X(8, "string", 0) \
    X(9, "bool", 8) \
    X(10, "float16", 16) \
    X(11, "float64", 64) \
    X(12, "uint32", 32) \
    X(13, "uint64", 64) \
    X(14, "complex64", 64) \
    X(15, "complex128", 128) \
    X(16, "bfloat16", 16) \
    X(17, "float8e4m3fn", 8) \
    X(18, "float8e4m3fnuz", 8) \
    X(19, "float8e5m2", 8) \
    X(20, "float8e5m2fnuz", 8) \
    X(21, "uint4", 4) \
    X(22, "int4", 4) \
    X(23, "float4e2m1", 4) \
    X(24, "float8e8m0", 8) \
    X(25, "uint2", 2) \
    X(26, "int2", 2)
/* clang-format on */

EPCTX_API unsigned epctx_elem_bits(int32_t elem_type) {
#define EPCTX__BITS(number, name, bits) bits,
    static const uint8_t all[] = {EPCTX__ELEM_LIST(EPCTX__BITS)};
#undef EPCTX__BITS
    return elem_type >= 0 && elem_type < (int32_t)sizeof all ? all[elem_type] : 0;
}

EPCTX_API size_t epctx_elem_size(int32_t elem_type) {
    return epctx_elem_bits(elem_type) / 8;
}

EPCTX_API const char *epctx_elem_name(int32_t elem_type) {
#define EPCTX__NAME(number, name, bits) name,
    static const char *const all[] = {EPCTX__ELEM_LIST(EPCTX__NAME)};
#undef EPCTX__NAME
    const int32_t count = (int32_t)(sizeof all / sizeof *all);
    return all[elem_type > 0 && elem_type < count ? elem_type : 0];
}

#ifndef EPCTX_NO_WIRE

typedef struct epctx__file { /* of external data */
    struct epctx__file *next;
    const char *path; /* canonical */
    epctx_str name;   /* as the model stores it */
    epctx_mapping mapping;
    uint64_t hashed; /* bytes in hashes of subgraphs so far */
    uint64_t whole;  /* hash of the file; 0: unknown */
    uint64_t stamp;  /* another, for the build stamp */
} epctx__file;

/* Links a slot into its parent behind `previous` (NULL: first). */
static void epctx__link_slot(epctx_slot *parent, epctx_slot *previous, epctx_slot *slot) {
    epctx_slot **place = previous != NULL ? &previous->next : &parent->message->first;
    slot->parent = parent;
    slot->next = *place;
    *place = slot;
    if (parent->message->last == previous) parent->message->last = slot;
}

/* The first field from `slot` on with this number and a payload, or NULL. */
static epctx_slot *epctx__live(epctx_slot *slot, uint32_t number) {
    while (slot != NULL &&
           (slot->number != number || slot->wire != EPCTX_WIRE_LEN || slot->removed))
        slot = slot->next;
    return slot;
}

static bool epctx__open_slot(epctx_arena *arena, epctx_slot *slot, epctx_kind type, epctx__check *c,
                             uint32_t depth);

static bool epctx__fill_message(epctx_arena *arena, epctx_slot *slot, epctx_kind type,
                                epctx__check *c, uint32_t depth) {
    epctx_view body = epctx__slot_view(slot);
    const uint8_t *p = body.data;
    const uint8_t *end = body.size > 0 ? body.data + body.size : body.data;
    uint32_t seen = 0;
    while (p < end) {
        epctx__token t;
        epctx_slot *child;
        const uint8_t *after = epctx__next(p, end, depth, &t);
        if (after == NULL) { /* without `c`: a mapped file changed */
            if (c != NULL) epctx__refuse(c, EPCTX_ERR_PROTOBUF, p, "no valid protobuf field");
            return false;
        }
        child = (epctx_slot *)epctx__arena_raw(arena, sizeof *child);
        if (child == NULL) return false;
        child->data = t.start;
        child->size = (size_t)(after - t.start);
        child->message = NULL;
        child->number = t.number;
        child->wire = (uint8_t)t.wire;
        child->head = (uint8_t)(t.wire == EPCTX_WIRE_LEN ? t.body - t.start : 0);
        child->split = 0;
        child->removed = false;
        epctx__link_slot(slot, slot->message->last, child);
        if (c != NULL && type == EPCTX_KIND_MODEL && t.number == EPCTX_FIELD_MODEL_GRAPH &&
            t.wire == EPCTX_WIRE_LEN && (seen & 1u << EPCTX_FIELD_MODEL_GRAPH) == 0) {
            seen |= 1u << EPCTX_FIELD_MODEL_GRAPH; /* a second one is found below */
            if (!epctx__open_slot(arena, child, EPCTX_KIND_GRAPH, c, depth - 1)) return false;
        } else if (c != NULL && !epctx__check_field(c, type, &t, after, depth, &seen)) {
            return false;
        }
        p = after;
    }
    return true;
}

/* Opens the payload of a slot, completely or not at all. With `c`, checks everything below and
 * opens the main graph too; NULL: already checked. */
static bool epctx__open_slot(epctx_arena *arena, epctx_slot *slot, epctx_kind type, epctx__check *c,
                             uint32_t depth) {
    slot->message = (epctx__message *)epctx_arena_alloc(arena, sizeof *slot->message);
    if (slot->message != NULL && !epctx__fill_message(arena, slot, type, c, depth))
        slot->message = NULL;
    return slot->message != NULL;
}

static epctx_status epctx__refused(const epctx_model *model, const epctx__check *c,
                                   epctx_error *error) {
    const uint8_t *end = model->bytes.data + model->bytes.size;
    const uint8_t *after;
    uint64_t at, size = 0;
    uint32_t tag = 0;
    if (c->reason == NULL) return epctx__nomem(error, model->arena.missing);
    at = (uint64_t)(c->bad - model->bytes.data);
    after = epctx__tag(c->bad, end, &tag);
    if (after != NULL && (tag & 7) == EPCTX_WIRE_LEN && tag >> 3 != 0)
        after = epctx__varint(after, end, 5, &size);
    if (after != NULL && size > (uint64_t)(end - after)) { /* the most frequent damage */
        epctx_fail(error, c->status,
                   "not an ONNX protobuf: byte %u of %u: field %u wants %u bytes, the file has %u "
                   "left: is it cut off?",
                   at, (uint64_t)model->bytes.size, (uint64_t)(tag >> 3), size,
                   (uint64_t)(end - after));
    } else {
        epctx_fail(error, c->status, "not an ONNX protobuf: byte %u of %u: %s", at,
                   (uint64_t)model->bytes.size, c->reason);
    }
    if (error != NULL) error->offset = at;
    return c->status;
}

static epctx_slot *epctx__find_graph(const epctx_slot *root) {
    return epctx__live(root->message->first, EPCTX_FIELD_MODEL_GRAPH);
}

static epctx_status epctx__new_root(epctx_model *model, epctx_slot **root, epctx_error *error) {
    EPCTX__NEW(*root, epctx_slot, 1, &model->arena, error);
    (*root)->data = model->bytes.data;
    (*root)->size = model->bytes.size;
    (*root)->wire = EPCTX_WIRE_LEN;
    return EPCTX_OK;
}

/* Opens a message that has no slots yet. */
static epctx_status epctx__open_as(epctx_model *model, epctx_slot *slot, epctx_kind type,
                                   epctx_error *error) {
    return slot->message != NULL || epctx__open_slot(&model->arena, slot, type, NULL, 100)
               ? EPCTX_OK
               : epctx__nomem(error, model->arena.missing);
}

/* Merges singular fields that occur twice: only messages, without a journal, in the tree for
 * reading; all, with one, in the tree for writing (>>edit). */
typedef struct epctx__doubled {
    epctx_model *model;
    epctx_error *error;
    /* Appends the fields of `gone` to those of `into` (may be NULL), as libprotobuf does, and
     * removes it. */
    epctx_status (*merge_fn)(const struct epctx__doubled *d, epctx_slot *into, epctx_slot *gone,
                             epctx_kind type);
    bool scalars;
    epctx_status (*doubled_fn)(void *user, const epctx_field_info *field, epctx_str node,
                               epctx_error *error); /* may be NULL */
    void *user;
} epctx__doubled;

static epctx_status epctx__merge_shown(const epctx__doubled *d, epctx_slot *into, epctx_slot *gone,
                                       epctx_kind type) {
    bool good = true;
    if (into != NULL) {
        EPCTX__TRY(epctx__open_as(d->model, into, type, d->error));
        gone->message = into->message;
        good = epctx__fill_message(&d->model->arena, gone, type, NULL, 100);
        gone->message = NULL;
    }
    gone->removed = true;
    return good ? EPCTX_OK : epctx__nomem(d->error, d->model->arena.missing);
}

/* Makes singular fields of an open message unique. `node`: its name, if it is one. */
EPCTX__APART static epctx_status epctx__single_fields(const epctx__doubled *d, epctx_slot *slot,
                                                      epctx_kind type, epctx_str *node) {
    epctx_slot *seen[32];
    epctx_slot *child;
    memset(seen, 0, sizeof seen);
    if (type == EPCTX_KIND_NODE && d->doubled_fn != NULL)
        *node = epctx_view_as_node(epctx__slot_view(slot)).name;
    for (child = slot->message->first; child != NULL; child = child->next) {
        const epctx_field_info *info = epctx_field_find(type, child->number);
        bool message = info != NULL && info->kind < EPCTX_KIND_INT;
        epctx_slot *first;
        uint32_t at;
        if (child->removed || info == NULL || info->repeated || (!message && !d->scalars) ||
            !epctx_field_fits(info, (epctx_wire)child->wire))
            continue;
        at = type == EPCTX_KIND_TYPE && message ? 31 : child->number; /* oneof */
        first = seen[at];
        seen[at] = child;
        if (first != NULL && message && first->number == child->number) {
            seen[at] = first;
            EPCTX__TRY(d->merge_fn(d, first, child, info->kind));
        } else if (first != NULL) {
            EPCTX__TRY(d->merge_fn(d, NULL, first, info->kind));
        }
        if (first != NULL && d->doubled_fn != NULL)
            EPCTX__TRY(d->doubled_fn(d->user, info, *node, d->error));
    }
    return EPCTX_OK;
}

static epctx_status epctx__single_below(const epctx__doubled *d, epctx_slot *slot, epctx_kind type,
                                        epctx_str node) {
    epctx_slot *child;
    EPCTX__TRY(epctx__open_as(d->model, slot, type, d->error));
    EPCTX__TRY(epctx__single_fields(d, slot, type, &node));
    for (child = slot->message->first; child != NULL; child = child->next) {
        uint32_t kind = epctx__field_kind(type, child->number);
        if (!child->removed && child->wire == EPCTX_WIRE_LEN && epctx__is_message(kind))
            EPCTX__TRY(epctx__single_below(d, child, epctx__message_kind(kind), node));
    }
    return EPCTX_OK;
}

static epctx_status epctx__model_parse(epctx_model *model, epctx_error *error) {
    epctx__check c;
    memset(&c, 0, sizeof c);
    c.fields = model->limits.max_fields;
    if (model->bytes.size == 0)
        return epctx_fail(error, EPCTX_ERR_PROTOBUF, "the model is empty (0 bytes)");
    if (model->bytes.size > model->limits.max_size) {
        return epctx_fail(error, EPCTX_ERR_LIMIT,
                          "the model has %u bytes, epctx_limits.max_size allows %u",
                          (uint64_t)model->bytes.size, model->limits.max_size);
    }
    EPCTX__TRY(epctx__new_root(model, &model->root, error));
    model->shown = model->root;
    if (!epctx__open_slot(&model->arena, model->root, EPCTX_KIND_MODEL, &c,
                          model->limits.max_depth))
        return epctx__refused(model, &c, error);
    model->duplicate = c.duplicate;
    if (model->duplicate) {
        epctx__doubled d;
        memset(&d, 0, sizeof d);
        d.model = model;
        d.error = error;
        d.merge_fn = epctx__merge_shown;
        EPCTX__TRY(epctx__new_root(model, &model->shown, error));
        EPCTX__TRY(epctx__single_below(&d, model->shown, EPCTX_KIND_MODEL, epctx_str_of(NULL)));
    }
    model->graph = epctx__find_graph(model->root);
    model->shown_graph = epctx__find_graph(model->shown);
    return EPCTX_OK;
}

EPCTX_API const epctx_io *epctx_model_io(const epctx_model *model) {
    return model->io != NULL ? model->io : epctx_io_files();
}

/* All but the source. */
static epctx_status epctx__model_begin(epctx_model *model, const char *path, bool given,
                                       const epctx_open_opts *opts, epctx_error *error) {
    epctx_limits *limits;
    epctx_open_opts defaults;
    epctx_error_clear(error);
    if (model != NULL) memset(model, 0, sizeof *model);
    if (model == NULL || !given)
        return epctx_fail(error, EPCTX_ERR_ARG, "model, path and data must not be NULL");
    memset(&defaults, 0, sizeof defaults);
    opts = opts != NULL ? opts : &defaults;
    if (!epctx__nanopb_matches()) {
        return epctx_fail(error, EPCTX_ERR_CONFIG,
                          "nanopb was built with other PB_NO_ERRMSG or PB_BUFFER_ONLY settings "
                          "than this program");
    }
    if (opts->buffer != NULL) {
        epctx_arena_init_fixed(&model->arena, opts->buffer, opts->buffer_size);
    } else {
        epctx_arena_init(&model->arena, opts->allocator);
        if (model->arena.allocator.alloc_fn == NULL)
            return epctx_fail(error, EPCTX_ERR_ARG, "pass a buffer or an epctx_allocator");
    }
    model->io = opts->io;
    limits = &model->limits;
    *limits = opts->limits;
    limits->max_depth = limits->max_depth != 0 && limits->max_depth < 100 ? limits->max_depth : 100;
    limits->max_size = limits->max_size != 0 ? limits->max_size : UINT64_MAX;
    limits->max_fields = limits->max_fields != 0 ? limits->max_fields : UINT64_MAX;
    model->path_flags = opts->path_flags;
    EPCTX__TRY(epctx__copy(&model->arena, epctx_str_of(path), &model->path, error));
    return epctx__copy(&model->arena, epctx_str_of(opts->external_folder), &model->external_folder,
                       error);
}

/* Says what a file is that is no model. */
static epctx_status epctx__other_file(const epctx_model *model, epctx_status status,
                                      epctx_error *error) {
    const uint64_t at = error != NULL ? error->offset : 0;
    epctx_span file;
    epctx_binary_id id;
    if (status != EPCTX_ERR_PROTOBUF) return status;
    file.data = model->bytes.data;
    file.size = model->bytes.size;
    epctx_binary_identify(file, file, file.size, &id);
    if (id.sort != EPCTX_BINARY_SORT_FOREIGN && id.sort != EPCTX_BINARY_SORT_CONTEXT) return status;
    epctx_error_clear(error);
    epctx_fail(error, status, "this is %s, not an ONNX model%s%s", id.name,
               id.cure != NULL ? ": " : "", id.cure);
    if (error != NULL) error->offset = at;
    return status;
}

/* A program that opens models in memory only does not link the files' io nor the recognition of
 * binaries: nothing but this names them on the way to a model. */
static epctx_status epctx__model_load(epctx_model *model, const char *path, epctx_error *error) {
    model->io = epctx_model_io(model);
    if (model->io == NULL)
        return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    EPCTX__TRY(model->io->map_fn(model->io->user, NULL, path, false, &model->mapping, error));
    model->id = model->mapping.info;
    model->bytes.data = model->mapping.data;
    model->bytes.size = model->mapping.size;
    return epctx__other_file(model, epctx__model_parse(model, error), error);
}

static epctx_status epctx__model_end(epctx_model *model, const char *path, epctx_status status,
                                     epctx_error *error) {
    if (status != EPCTX_OK && model != NULL) {
        size_t missing = model->arena.missing;
        epctx_blame(error, path, NULL, NULL);
        epctx_model_close(model);
        model->arena.missing = missing;
    }
    return status;
}

EPCTX_API epctx_status epctx_model_open_file(epctx_model *model, const char *path,
                                             const epctx_open_opts *opts, epctx_error *error) {
    epctx_status status = epctx__model_begin(model, path, path != NULL, opts, error);
    status = status == EPCTX_OK ? epctx__model_load(model, path, error) : status;
    return epctx__model_end(model, path, status, error);
}

EPCTX_API epctx_status epctx_model_open_memory(epctx_model *model, const void *data, size_t size,
                                               const epctx_open_opts *opts, epctx_error *error) {
    epctx_status status = epctx__model_begin(model, NULL, data != NULL || size == 0, opts, error);
    if (status == EPCTX_OK) {
        model->bytes.data = (const uint8_t *)data;
        model->bytes.size = size;
        status = epctx__model_parse(model, error);
    }
    return epctx__model_end(model, NULL, status, error);
}

static epctx_status epctx__check_open(const epctx_model *model, epctx_error *error) {
    return model != NULL && model->root != NULL
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_ARG, "an open model is expected");
}

EPCTX_API void epctx_model_close(epctx_model *model) {
    epctx__file *file;
    if (model == NULL) return;
    for (file = model->files; file != NULL; file = file->next)
        model->io->unmap_fn(model->io->user, &file->mapping);
    if (model->mapping.handle != NULL) model->io->unmap_fn(model->io->user, &model->mapping);
    epctx_arena_free(&model->arena);
    memset(model, 0, sizeof *model);
}

/* -- onnx: views -- */

static epctx_view epctx__last_view(epctx_view message, uint32_t number) {
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_view last = epctx_view_none();
    while (epctx_next_view(&it, &last)) {
    }
    return last;
}

/* How a member of a view holds a field. */
typedef enum epctx__member_type {
    EPCTX__STR,
    EPCTX__BODY,  /* epctx_view */
    EPCTX__COUNT, /* uint32_t: how many there are */
    EPCTX__TYPE,  /* int32_t: an epctx_attr_type; others are unknown fields */
    EPCTX__INT32,
    EPCTX__INT64,
    EPCTX__FLOAT,
    EPCTX__TENSOR_DATA, /* a field with members of epctx_tensor_view */
    EPCTX__SELF,        /* epctx_view of the message; ends the list */
    EPCTX__END
} epctx__member_type;

typedef struct epctx__member {
    uint32_t number;
    epctx__member_type type;
    size_t place; /* in the struct */
} epctx__member;

/* A number of external_data. */
static void epctx__read_place(epctx_tensor_view *tensor, const epctx_pair *pair, uint64_t *number) {
    if (epctx_str_number(pair->value, number)) return;
    tensor->wrong_key = pair->key;
    tensor->wrong_number = pair->value;
}

static void epctx__read_tensor_data(epctx_tensor_view *tensor, const epctx_field *f) {
    uint32_t key = f->number << 3 | (uint32_t)f->wire;
    const uint8_t *p = f->body.data;
    epctx_pair pair;
    uint64_t dim;
    switch (key) {
    case EPCTX_FIELD_TENSOR_DIMS << 3 | EPCTX_WIRE_VARINT: tensor->rank++; break;
    case EPCTX_FIELD_TENSOR_DIMS << 3 | EPCTX_WIRE_LEN:
        while (p != NULL &&
               (p = epctx__number(p, f->body.data + f->body.size, EPCTX_WIRE_VARINT, &dim)) != NULL)
            tensor->rank++;
        break;
    case EPCTX_FIELD_TENSOR_RAW_DATA << 3 | EPCTX_WIRE_LEN:
        tensor->has_raw = true;
        tensor->raw.data = f->body.data;
        tensor->raw.size = f->body.size;
        break;
    case EPCTX_FIELD_TENSOR_DATA_LOCATION << 3 | EPCTX_WIRE_VARINT:
        tensor->external = (uint32_t)f->value <= 1 ? (uint32_t)f->value == 1 : tensor->external;
        break;
    case EPCTX_FIELD_TENSOR_EXTERNAL_DATA << 3 | EPCTX_WIRE_LEN:
        pair = epctx_view_as_pair(f->body);
        if (epctx_str_is(pair.key, "location"))
            tensor->location = pair.value;
        else if (epctx_str_is(pair.key, "offset"))
            epctx__read_place(tensor, &pair, &tensor->offset);
        else if (epctx_str_is(pair.key, "length"))
            epctx__read_place(tensor, &pair, &tensor->length);
        break;
    default: break;
    }
}

static inline void epctx__read_field(const epctx__member *m, const epctx_field *f, void *out) {
    void *place;
    epctx_wire wire;
    while (m->number != f->number) m++;
    place = (char *)out + m->place;
    wire = m->type < EPCTX__TYPE    ? EPCTX_WIRE_LEN
           : m->type < EPCTX__FLOAT ? EPCTX_WIRE_VARINT
                                    : EPCTX_WIRE_FIXED32;
    if (f->wire != wire && m->type != EPCTX__TENSOR_DATA) return;
    switch (m->type) {
    case EPCTX__STR: *(epctx_str *)place = epctx_view_str(f->body); break;
    case EPCTX__BODY: *(epctx_view *)place = f->body; break;
    case EPCTX__COUNT: ++*(uint32_t *)place; break;
    case EPCTX__TYPE:
        if ((uint32_t)f->value <= (uint32_t)EPCTX_ATTR_TYPE_PROTOS)
            *(int32_t *)place = (int32_t)(uint32_t)f->value;
        break;
    case EPCTX__INT32: *(int32_t *)place = (int32_t)(uint32_t)f->value; break;
    case EPCTX__INT64: *(int64_t *)place = (int64_t)f->value; break;
    case EPCTX__FLOAT: *(float *)place = epctx__float(f->value); break;
    default: epctx__read_tensor_data((epctx_tensor_view *)out, f);
    }
}

/* Reads a message into a struct that holds zeros and defaults. */
static void epctx__read_members(epctx_view view, const epctx__member *members, void *out) {
    epctx_cursor it = epctx_view_fields(view, 0);
    const uint8_t *p = it.next;
    const epctx__member *m;
    uint32_t numbers = 0; /* of the fields to read */
    epctx_field f;
    for (m = members; m->type < EPCTX__SELF; m++) numbers |= UINT32_C(1) << m->number;
    if (m->type == EPCTX__SELF) *(epctx_view *)(void *)((char *)out + m->place) = view;
    for (; it.slot != NULL; it.slot = it.slot->next) {
        if (!it.slot->removed && it.slot->number < 32 && (numbers >> it.slot->number & 1) != 0) {
            epctx__slot_field(it.slot, &f);
            epctx__read_field(members, &f, out);
        }
    }
    while (p != NULL && p < it.end) {
        epctx__token t;
        p = epctx__next(p, it.end, 100, &t);
        if (p != NULL && t.number < 32 && (numbers >> t.number & 1) != 0) {
            epctx__field_of(&t, p, it.owner, &f);
            epctx__read_field(members, &f, out);
        }
    }
}

/* clang-format off */
#define EPCTX__AT(f, type, of, m) {EPCTX_FIELD_##f, EPCTX__##type, offsetof(epctx_##of, m)}
#define EPCTX__VIEW(of)           {0, EPCTX__SELF, offsetof(epctx_##of, view)}

static const epctx__member epctx__graph_members[] = {
    EPCTX__AT(GRAPH_NAME, STR, graph_view, name),
    EPCTX__AT(GRAPH_DOC_STRING, STR, graph_view, doc_string), EPCTX__VIEW(graph_view)};

static const epctx__member epctx__node_members[] = {
    EPCTX__AT(NODE_INPUT, COUNT, node_view, input_count),
    EPCTX__AT(NODE_OUTPUT, COUNT, node_view, output_count),
    EPCTX__AT(NODE_NAME, STR, node_view, name), EPCTX__AT(NODE_OP_TYPE, STR, node_view, op_type),
    EPCTX__AT(NODE_ATTRIBUTE, COUNT, node_view, attr_count),
    EPCTX__AT(NODE_DOC_STRING, STR, node_view, doc_string),
    EPCTX__AT(NODE_DOMAIN, STR, node_view, domain),
    EPCTX__AT(NODE_OVERLOAD, STR, node_view, overload), EPCTX__VIEW(node_view)};

static const epctx__member epctx__attr_members[] = {
    EPCTX__AT(ATTR_NAME, STR, attr_view, name), EPCTX__AT(ATTR_F, FLOAT, attr_view, f),
    EPCTX__AT(ATTR_I, INT64, attr_view, i), EPCTX__AT(ATTR_S, STR, attr_view, s),
    EPCTX__AT(ATTR_T, BODY, attr_view, t), EPCTX__AT(ATTR_G, BODY, attr_view, g),
    EPCTX__AT(ATTR_TYPE, TYPE, attr_view, type),
    EPCTX__AT(ATTR_REF_ATTR_NAME, STR, attr_view, ref_attr_name), EPCTX__VIEW(attr_view)};

static const epctx__member epctx__tensor_members[] = {
    EPCTX__AT(TENSOR_DIMS, TENSOR_DATA, tensor_view, rank),
    EPCTX__AT(TENSOR_DATA_TYPE, INT32, tensor_view, elem_type),
    EPCTX__AT(TENSOR_NAME, STR, tensor_view, name),
    EPCTX__AT(TENSOR_RAW_DATA, TENSOR_DATA, tensor_view, raw),
    EPCTX__AT(TENSOR_EXTERNAL_DATA, TENSOR_DATA, tensor_view, location),
    EPCTX__AT(TENSOR_DATA_LOCATION, TENSOR_DATA, tensor_view, external), EPCTX__VIEW(tensor_view)};

static const epctx__member epctx__opset_members[] = {
    EPCTX__AT(OPSET_DOMAIN, STR, opset, domain), EPCTX__AT(OPSET_VERSION, INT64, opset, version),
    {0, EPCTX__END, 0}};

static const epctx__member epctx__pair_members[] = {
    EPCTX__AT(PAIR_KEY, STR, pair, key), EPCTX__AT(PAIR_VALUE, STR, pair, value),
    {0, EPCTX__END, 0}};

static const epctx__member epctx__model_members[] = {
    EPCTX__AT(MODEL_IR_VERSION, INT64, model_info, ir_version),
    EPCTX__AT(MODEL_PRODUCER_NAME, STR, model_info, producer_name),
    EPCTX__AT(MODEL_PRODUCER_VERSION, STR, model_info, producer_version),
    EPCTX__AT(MODEL_DOMAIN, STR, model_info, domain),
    EPCTX__AT(MODEL_MODEL_VERSION, INT64, model_info, model_version),
    EPCTX__AT(MODEL_DOC_STRING, STR, model_info, doc_string),
    EPCTX__AT(MODEL_FUNCTIONS, COUNT, model_info, function_count), EPCTX__VIEW(model_info)};

static const epctx__member epctx__value_members[] = {
    EPCTX__AT(VALUE_NAME, STR, value_view, name), EPCTX__AT(VALUE_TYPE, BODY, value_view, type),
    EPCTX__VIEW(value_view)};

static const epctx__member epctx__type_members[] = {
    EPCTX__AT(TYPE_TENSOR_ELEM_TYPE, INT32, value_view, elem_type),
    EPCTX__AT(TYPE_TENSOR_SHAPE, BODY, value_view, shape), {0, EPCTX__END, 0}};
#undef EPCTX__VIEW
#undef EPCTX__AT
/* clang-format on */

EPCTX_API epctx_graph_view epctx_view_as_graph(epctx_view view) {
    epctx_graph_view graph;
    memset(&graph, 0, sizeof graph);
    epctx__read_members(view, epctx__graph_members, &graph);
    return graph;
}

EPCTX_API epctx_node_view epctx_view_as_node(epctx_view view) {
    epctx_node_view node;
    memset(&node, 0, sizeof node);
    epctx__read_members(view, epctx__node_members, &node);
    return node;
}

EPCTX_API epctx_attr_view epctx_view_as_attr(epctx_view view) {
    epctx_attr_view attr;
    memset(&attr, 0, sizeof attr);
    epctx__read_members(view, epctx__attr_members, &attr);
    return attr;
}

EPCTX_API epctx_opset epctx_view_as_opset(epctx_view view) {
    epctx_opset opset;
    memset(&opset, 0, sizeof opset);
    epctx__read_members(view, epctx__opset_members, &opset);
    return opset;
}

EPCTX_API epctx_pair epctx_view_as_pair(epctx_view view) {
    epctx_pair pair;
    memset(&pair, 0, sizeof pair);
    epctx__read_members(view, epctx__pair_members, &pair);
    return pair;
}

EPCTX_API epctx_tensor_view epctx_view_as_tensor(epctx_view view) {
    epctx_tensor_view tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.length = UINT64_MAX;
    epctx__read_members(view, epctx__tensor_members, &tensor);
    return tensor;
}

/* TypeProto's oneof: the last member wins. */
EPCTX_API epctx_value_view epctx_view_as_value(epctx_view view) {
    epctx_value_view value;
    epctx_cursor it;
    epctx_view type = epctx_view_none();
    epctx_field f;
    memset(&value, 0, sizeof value);
    epctx__read_members(view, epctx__value_members, &value);
    value.has_type = epctx_view_exists(value.type);
    it = epctx_view_fields(value.type, 0);
    while (epctx_next_field(&it, &f)) {
        if (epctx__is_choice(EPCTX_KIND_TYPE, f.number, f.wire)) {
            value.is_tensor = f.number == EPCTX_FIELD_TYPE_TENSOR_TYPE;
            type = f.body;
        }
    }
    if (value.is_tensor) {
        epctx__read_members(type, epctx__type_members, &value);
        value.has_shape = epctx_view_exists(value.shape);
    }
    return value;
}

/* A oneof: the last member wins. */
EPCTX_API epctx_dim epctx_view_as_dim(epctx_view view) {
    epctx_dim dim;
    epctx_cursor it = epctx_view_fields(view, 0);
    epctx_field f;
    memset(&dim, 0, sizeof dim);
    while (epctx_next_field(&it, &f)) {
        if (epctx__is_choice(EPCTX_KIND_DIM, f.number, f.wire)) {
            dim.known = f.wire == EPCTX_WIRE_VARINT;
            dim.value = (int64_t)f.value;
            dim.param = epctx_view_str(f.body);
        }
    }
    return dim;
}

EPCTX_API bool epctx_next_node(epctx_cursor *cursor, epctx_node_view *out) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    *out = epctx_view_as_node(body);
    return true;
}

EPCTX_API bool epctx_next_attr(epctx_cursor *cursor, epctx_attr_view *out) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    *out = epctx_view_as_attr(body);
    return true;
}

EPCTX_API bool epctx_next_tensor(epctx_cursor *cursor, epctx_tensor_view *out) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    *out = epctx_view_as_tensor(body);
    return true;
}

EPCTX_API bool epctx_next_value(epctx_cursor *cursor, epctx_value_view *out) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    *out = epctx_view_as_value(body);
    return true;
}

EPCTX_API bool epctx_next_dim(epctx_cursor *cursor, epctx_dim *out) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    *out = epctx_view_as_dim(body);
    return true;
}

EPCTX_API bool epctx_next_opset(epctx_cursor *cursor, epctx_opset *out) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    *out = epctx_view_as_opset(body);
    return true;
}

EPCTX_API bool epctx_next_pair(epctx_cursor *cursor, epctx_pair *out) {
    epctx_view body;
    if (!epctx_next_view(cursor, &body)) return false;
    *out = epctx_view_as_pair(body);
    return true;
}

EPCTX_API uint64_t epctx_view_tensor_bytes(const epctx_tensor_view *tensor) {
    epctx_cursor it = epctx_view_tensor_dims(tensor);
    const unsigned bits = epctx_elem_bits(tensor->elem_type);
    uint64_t count = 1;
    int64_t dim;
    bool zero = false, huge = bits == 0;
    while (epctx_next_int(&it, &dim)) {
        zero = zero || dim == 0;
        if (dim < 0 || (dim > 0 && count > (UINT64_MAX >> 8) / (uint64_t)dim))
            huge = true;
        else if (dim > 0)
            count *= (uint64_t)dim;
    }
    if (huge) return UINT64_MAX;
    return zero ? 0 : (count * bits + 7) / 8;
}

EPCTX_API epctx_status epctx_view_tensor_extent(const epctx_tensor_view *tensor, uint64_t file_size,
                                                uint64_t *size, epctx_error *error) {
    const bool stored = tensor->length != UINT64_MAX && tensor->length != 0;
    *size = stored ? tensor->length : epctx_view_tensor_bytes(tensor);
    if (tensor->wrong_key.size > 0) {
        return epctx_fail(error, EPCTX_ERR_GRAPH,
                          "initializer '%S': the %S of its external data is '%S', not a number",
                          &tensor->name, &tensor->wrong_key, &tensor->wrong_number);
    }
    if (tensor->offset > file_size) {
        return epctx_fail(error, EPCTX_ERR_GRAPH,
                          "initializer '%S': its external data starts at byte %u, the file has %u",
                          &tensor->name, tensor->offset, file_size);
    }
    if (!stored && *size == UINT64_MAX) *size = file_size - tensor->offset;
    if (*size <= file_size - tensor->offset) return EPCTX_OK;
    return epctx_fail(
        error, EPCTX_ERR_GRAPH,
        "initializer '%S': its external data %s %u, the file has behind its offset %u",
        &tensor->name, stored ? "has a length of" : "needs by its shape", *size,
        file_size - tensor->offset);
}

/* No message, as in a closed model, is an empty view. */
static epctx_view epctx__view_of(const epctx_slot *slot) {
    return slot != NULL ? epctx__slot_view(slot) : epctx_view_none();
}

static epctx_view epctx__shown(const epctx_model *model) {
    return epctx__view_of(model->shown);
}

EPCTX_API epctx_cursor epctx_model_opsets(const epctx_model *model) {
    return epctx_view_fields(epctx__shown(model), EPCTX_FIELD_MODEL_OPSET_IMPORT);
}

EPCTX_API epctx_cursor epctx_model_functions(const epctx_model *model) {
    return epctx_view_fields(epctx__shown(model), EPCTX_FIELD_MODEL_FUNCTIONS);
}

EPCTX_API epctx_cursor epctx_view_graph_nodes(epctx_graph_view graph) {
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_NODE);
}

EPCTX_API epctx_cursor epctx_view_graph_inputs(epctx_graph_view graph) {
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_INPUT);
}

EPCTX_API epctx_cursor epctx_view_graph_outputs(epctx_graph_view graph) {
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_OUTPUT);
}

EPCTX_API epctx_cursor epctx_view_graph_values(epctx_graph_view graph) {
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_VALUE_INFO);
}

EPCTX_API epctx_cursor epctx_view_graph_initializers(epctx_graph_view graph) {
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_INITIALIZER);
}

EPCTX_API epctx_cursor epctx_view_node_inputs(const epctx_node_view *node) {
    return epctx_view_fields(node->view, EPCTX_FIELD_NODE_INPUT);
}

EPCTX_API epctx_cursor epctx_view_node_outputs(const epctx_node_view *node) {
    return epctx_view_fields(node->view, EPCTX_FIELD_NODE_OUTPUT);
}

EPCTX_API epctx_cursor epctx_view_node_attrs(const epctx_node_view *node) {
    return epctx_view_fields(node->view, EPCTX_FIELD_NODE_ATTRIBUTE);
}

EPCTX_API epctx_cursor epctx_view_tensor_dims(const epctx_tensor_view *tensor) {
    return epctx_view_fields(tensor->view, EPCTX_FIELD_TENSOR_DIMS);
}

EPCTX_API epctx_cursor epctx_view_value_dims(const epctx_value_view *value) {
    return epctx_view_fields(value->shape, EPCTX_FIELD_SHAPE_DIM);
}

EPCTX_API epctx_view epctx_model_root(const epctx_model *model) {
    return epctx__view_of(model->root);
}

EPCTX_API epctx_model_info epctx_model_read(const epctx_model *model) {
    epctx_model_info info;
    memset(&info, 0, sizeof info);
    epctx__read_members(epctx__shown(model), epctx__model_members, &info);
    return info;
}

EPCTX_API bool epctx_model_has_graph(const epctx_model *model) {
    return model->shown_graph != NULL;
}

EPCTX_API epctx_graph_view epctx_model_graph(const epctx_model *model) {
    return epctx_view_as_graph(epctx__view_of(model->shown_graph));
}

EPCTX_API bool epctx_view_node_find_attr(const epctx_node_view *node, const char *name,
                                         epctx_attr_view *out) {
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    bool found = false;
    while (epctx_next_attr(&it, &attr)) {
        if (epctx_str_is(attr.name, name)) {
            *out = attr;
            found = true;
        }
    }
    return found;
}

EPCTX_API epctx_str epctx_view_node_attr_str(const epctx_node_view *node, const char *name) {
    epctx_attr_view attr;
    return epctx_view_node_find_attr(node, name, &attr) && attr.type == EPCTX_ATTR_STRING
               ? attr.s
               : epctx_str_of(NULL);
}

/* The default domain has two spellings. */
static epctx_str epctx__plain_domain(epctx_str domain) {
    return epctx_str_is(domain, "ai.onnx") ? epctx_str_of("") : domain;
}

static bool epctx__same_domain(epctx_str a, epctx_str b) {
    return epctx_str_eq(epctx__plain_domain(a), epctx__plain_domain(b));
}

EPCTX_API int64_t epctx_model_opset(const epctx_model *model, epctx_str domain) {
    epctx_cursor it = epctx_model_opsets(model);
    epctx_opset opset;
    int64_t version = 0;
    while (epctx_next_opset(&it, &opset))
        if (epctx__same_domain(opset.domain, domain)) version = opset.version;
    return version;
}

EPCTX_API bool epctx_model_metadata(const epctx_model *model, epctx_str key, epctx_str *value) {
    epctx_cursor it = epctx_view_fields(epctx__shown(model), EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    bool found = false;
    while (epctx_next_pair(&it, &pair)) {
        if (epctx_str_eq(pair.key, key)) {
            *value = pair.value;
            found = true;
        }
    }
    return found;
}

/* -- onnx: the slot and kind of a view -- */

/* The field around a place in the source. The search resumes where the last one ended, which makes
 * a pass over all fields linear. */
static epctx_slot *epctx__child_at(const epctx__message *message, const uint8_t *place) {
    uintptr_t at = (uintptr_t)place;
    epctx_slot *start = message->hint;
    epctx_slot *slot = start != NULL ? start : message->first;
    while (slot != NULL) {
        uintptr_t data = (uintptr_t)slot->data;
        if (!slot->split && !slot->removed && at > data && at - data <= slot->size) return slot;
        slot = slot->next;
        if (slot == NULL && start != NULL) {
            slot = message->first;
            start = NULL; /* wrap around once */
        }
    }
    return NULL;
}

static bool epctx__is_slot_of(const epctx_slot *slot, epctx_view view) {
    return slot->wire == EPCTX_WIRE_LEN && epctx__slot_view(slot).data == view.data;
}

static bool epctx__is_changed(const epctx_slot *slot) {
    return slot->message != NULL && slot->message->edits != 0;
}

/* The innermost slot around a view without opening anything; NULL when it was removed. */
static const epctx_slot *epctx__slot_around(epctx_view view) {
    const epctx_slot *slot = view.slot;
    while (slot != NULL && slot->message != NULL && !epctx__is_slot_of(slot, view))
        slot = epctx__child_at(slot->message, view.data);
    return slot;
}

/* The slot of a view that was edited; NULL: unchanged. */
static const epctx_slot *epctx__changed_slot(epctx_view view) {
    const epctx_slot *slot = epctx__slot_around(view);
    return slot != NULL && epctx__is_slot_of(slot, view) && epctx__is_changed(slot) ? slot : NULL;
}

/* The kind of message in a field. */
static epctx_kind epctx__child_kind(epctx_kind message, uint32_t number) {
    uint32_t kind = epctx__field_kind(message, number);
    return epctx__is_message(kind) ? epctx__message_kind(kind) : EPCTX_KIND_NONE;
}

static epctx_kind epctx__slot_type(const epctx_slot *slot) {
    return slot->parent == NULL ? EPCTX_KIND_MODEL
           : slot->wire == EPCTX_WIRE_LEN
               ? epctx__child_kind(epctx__slot_type(slot->parent), slot->number)
               : EPCTX_KIND_NONE;
}

EPCTX_API epctx_kind epctx_view_kind(epctx_view view) {
    const epctx_slot *slot = epctx__slot_around(view);
    epctx_kind kind = slot != NULL ? epctx__slot_type(slot) : EPCTX_KIND_NONE;
    epctx_view around = epctx__view_of(slot);
    uintptr_t at = (uintptr_t)view.data;
    while (kind != EPCTX_KIND_NONE && around.data != view.data) {
        epctx_cursor it = epctx_view_fields(around, 0);
        epctx_kind outer = kind;
        epctx_field f;
        kind = EPCTX_KIND_NONE;
        while (kind == EPCTX_KIND_NONE && epctx_next_field(&it, &f)) {
            uintptr_t start = (uintptr_t)f.body.data;
            if (f.wire == EPCTX_WIRE_LEN && at >= start && at - start <= f.body.size) {
                kind = epctx__child_kind(outer, f.number);
                around = f.body;
                it = epctx_view_fields(epctx_view_none(), 0);
            }
        }
    }
    return kind;
}

EPCTX_API bool epctx_view_equal(epctx_view a, epctx_view b) {
    epctx_cursor it_a, it_b;
    epctx_field x, y;
    bool more = true;
    if (epctx__changed_slot(a) == NULL && epctx__changed_slot(b) == NULL) {
        return a.size == b.size &&
               (a.data == b.data || a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
    }
    it_a = epctx_view_fields(a, 0);
    it_b = epctx_view_fields(b, 0);
    while (more) {
        more = epctx_next_field(&it_a, &x);
        if (epctx_next_field(&it_b, &y) != more ||
            (more && (x.number != y.number || x.wire != y.wire || x.value != y.value ||
                      x.wire == EPCTX_WIRE_GROUP ||
                      (x.wire == EPCTX_WIRE_LEN && !epctx_view_equal(x.body, y.body)))))
            return false;
    }
    return true;
}

/* -- onnx: walk -- */

/* Three passes over the root's fields: the main graph comes first. */
static const uint32_t epctx__walk_roots[] = {EPCTX_FIELD_MODEL_GRAPH, EPCTX_FIELD_MODEL_FUNCTIONS,
                                             EPCTX_FIELD_MODEL_TRAINING_INFO};

EPCTX_API void epctx_walk_below(epctx_walk *walk, epctx_view view, epctx_kind kind) {
    walk->kind = kind;
    walk->view = view;
    walk->depth = 0;
    walk->in_function = kind == EPCTX_KIND_FUNCTION;
    walk->in_training = kind == EPCTX_KIND_TRAINING;
    walk->first = true;
    walk->entering = true;
    walk->root = 2;
    walk->level = 0;
}

EPCTX_API void epctx_walk_begin(epctx_walk *walk, const epctx_model *model) {
    epctx_walk_below(walk, epctx__shown(model), EPCTX_KIND_MODEL);
    walk->root = 0;
    walk->first = false;
}

/* The next message to return at the innermost level. */
static bool epctx__walk_find(epctx_walk *w, epctx_walk_level *level) {
    const uint32_t given = UINT32_C(1) << EPCTX_KIND_GRAPH | UINT32_C(1) << EPCTX_KIND_NODE |
                           UINT32_C(1) << EPCTX_KIND_ATTR | UINT32_C(1) << EPCTX_KIND_TENSOR |
                           UINT32_C(1) << EPCTX_KIND_SPARSE | UINT32_C(1) << EPCTX_KIND_FUNCTION |
                           UINT32_C(1) << EPCTX_KIND_TRAINING;
    epctx_field f;
    while (epctx_next_field(&level->fields, &f)) {
        bool len = f.wire == EPCTX_WIRE_LEN;
        epctx_kind kind = len ? epctx__child_kind(level->kind, f.number) : EPCTX_KIND_NONE;
        if ((given >> kind & 1) != 0) {
            w->kind = kind;
            w->view = f.body;
            w->depth = level->depth + (level->kind == EPCTX_KIND_ATTR && kind == EPCTX_KIND_GRAPH);
            if (level->kind == EPCTX_KIND_MODEL) {
                w->in_function = kind == EPCTX_KIND_FUNCTION;
                w->in_training = kind == EPCTX_KIND_TRAINING;
            }
            w->entering = kind != EPCTX_KIND_TENSOR;
            return true;
        }
    }
    return false;
}

EPCTX_API bool epctx_walk_step(epctx_walk *walk) {
    epctx_walk_level *level;
    if (walk->first) {
        walk->first = false;
        return true;
    }
    if (walk->entering && walk->level < EPCTX_WALK_LEVELS) { /* deeper: bytes of no model */
        level = &walk->levels[walk->level++];
        level->kind = walk->kind;
        level->view = walk->view;
        level->depth = walk->depth;
        level->fields = epctx_view_fields(walk->view, 0);
        if (walk->kind == EPCTX_KIND_MODEL && walk->root == 0)
            level->fields.number = epctx__walk_roots[0];
        walk->entering = false;
    }
    while (walk->level > 0) {
        level = &walk->levels[walk->level - 1];
        if (epctx__walk_find(walk, level)) return true;
        if (level->kind == EPCTX_KIND_MODEL && walk->root < 2)
            level->fields = epctx_view_fields(level->view, epctx__walk_roots[++walk->root]);
        else
            walk->level--;
    }
    return false;
}

/* The next message of this kind. */
static bool epctx__walk_to(epctx_walk *walk, epctx_kind kind) {
    bool more = epctx_walk_step(walk);
    while (more && walk->kind != kind) more = epctx_walk_step(walk);
    return more;
}

EPCTX_API bool epctx_walk_next(epctx_walk *walk, epctx_node_view *node) {
    if (!epctx__walk_to(walk, EPCTX_KIND_NODE)) return false;
    *node = epctx_view_as_node(walk->view);
    return true;
}

EPCTX_API bool epctx_walk_tensor(epctx_walk *walk, epctx_tensor_view *tensor) {
    if (!epctx__walk_to(walk, EPCTX_KIND_TENSOR)) return false;
    *tensor = epctx_view_as_tensor(walk->view);
    return true;
}

EPCTX_API bool epctx_walk_graph(epctx_walk *walk, epctx_graph_view *graph) {
    if (!epctx__walk_to(walk, EPCTX_KIND_GRAPH)) return false;
    *graph = epctx_view_as_graph(walk->view);
    return true;
}

EPCTX_API bool epctx_walk_epnode(epctx_walk *walk, epctx_node_view *node) {
    bool more = epctx_walk_next(walk, node);
    while (more && !epctx_str_is(node->op_type, EPCTX_OP_TYPE)) more = epctx_walk_next(walk, node);
    return more;
}

/* ============================================================
 * >>reads
 *
 * Three questions about names of values; nothing is loaded, and memory is needed for names only.
 *
 * Captures: a walk below the node opens a scope for each graph, with every name that the graph
 * defines. A name that no open scope has comes from outside.
 *
 * Shapes: the operators of epctx__shape_readers read constants while ORT infers shapes. A walk
 * collects the names of these inputs, and as aliases what Identity, Cast and calls of functions
 * pass on. Then each name found stands for all its aliases, each looked at once.
 *
 * Order: every reading of a value is an edge between two nodes, listed by reader and by producer. A
 * walk in depth from the nodes that nobody reads, with a stack of its own, leaves the nodes in
 * ORT's order.
 * ============================================================ */

/* -- captures -- */

/* The names that a subgraph defines; it captures all others that it reads. */
typedef struct epctx__scope {
    struct epctx__scope *outer;
    uint32_t level; /* of the subgraph in the walk */
    epctx_map names;
} epctx__scope;

typedef struct epctx__capturing {
    epctx_arena *arena;
    epctx_error *error;
    epctx__scope *scope;
    epctx_list found; /* of epctx_str */
} epctx__capturing;

static epctx_status epctx__capture_name(epctx__capturing *c, epctx_str name) {
    const epctx__scope *scope = c->scope;
    epctx_str *found;
    while (scope != NULL && !epctx__has(&scope->names, name)) scope = scope->outer;
    if (scope != NULL || name.size == 0)
        return EPCTX_OK; /* its own, or an omitted optional input */
    found = (epctx_str *)epctx_list_add(&c->found, c->arena, sizeof *found);
    if (found == NULL) return epctx__nomem(c->error, c->arena->missing);
    *found = name;
    return EPCTX_OK;
}

/* Opens a subgraph's scope; its outputs may be outer values. */
static epctx_status epctx__capture_graph(epctx__capturing *c, const epctx_walk *walk) {
    epctx_cursor it = epctx_view_fields(walk->view, 0);
    epctx__scope *scope;
    epctx_value_view value;
    epctx_field f;
    EPCTX__NEW(scope, epctx__scope, 1, c->arena, c->error);
    scope->outer = c->scope;
    scope->level = walk->level;
    c->scope = scope;
    epctx_map_init(&scope->names, c->arena);
    while (epctx_next_field(&it, &f)) {
        bool node = f.number == EPCTX_FIELD_GRAPH_NODE;
        epctx_cursor outputs =
            epctx_view_fields(node ? f.body : epctx_view_none(), EPCTX_FIELD_NODE_OUTPUT);
        epctx_str name =
            f.number == EPCTX_FIELD_GRAPH_INPUT         ? epctx_view_as_value(f.body).name
            : f.number == EPCTX_FIELD_GRAPH_INITIALIZER ? epctx_view_as_tensor(f.body).name
            : f.number == EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER
                ? epctx_view_as_tensor(epctx__last_view(f.body, EPCTX_FIELD_SPARSE_VALUES)).name
                : epctx_str_of(NULL);
        if (name.size > 0) EPCTX__TRY(epctx__map_set(&scope->names, name, 1, c->error));
        while (epctx_next_str(&outputs, &name))
            EPCTX__TRY(epctx__map_set(&scope->names, name, 1, c->error));
    }
    it = epctx_view_fields(walk->view, EPCTX_FIELD_GRAPH_OUTPUT);
    while (epctx_next_value(&it, &value)) EPCTX__TRY(epctx__capture_name(c, value.name));
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_view_node_captures(epctx_view node, epctx_arena *arena,
                                                const epctx_str **out, size_t *count,
                                                epctx_error *error) {
    epctx__capturing c;
    epctx_walk walk;
    epctx_str name;
    memset(&c, 0, sizeof c);
    c.arena = arena;
    c.error = error;
    *out = NULL;
    *count = 0;
    epctx_error_clear(error);
    epctx_walk_below(&walk, node, EPCTX_KIND_NODE);
    while (epctx_walk_step(&walk)) {
        while (c.scope != NULL && c.scope->level >= walk.level) c.scope = c.scope->outer;
        if (walk.kind == EPCTX_KIND_GRAPH) {
            EPCTX__TRY(epctx__capture_graph(&c, &walk));
        } else if (walk.kind == EPCTX_KIND_NODE && walk.level > 0) {
            epctx_cursor inputs = epctx_view_fields(walk.view, EPCTX_FIELD_NODE_INPUT);
            while (epctx_next_str(&inputs, &name)) EPCTX__TRY(epctx__capture_name(&c, name));
        }
    }
    *out = (const epctx_str *)c.found.items;
    *count = c.found.count;
    return EPCTX_OK;
}

/* -- what ORT reads while it infers shapes -- */

/* -- facts: shapes -- */
/* Made of examples/epctx/facts/shapes.facts by `make facts`. */
/* clang-format off */
static const epctx_shape_reader epctx__shape_readers[] = {
    {"", "AffineGrid", 0x2, 0x2, false},
    {"", "BlackmanWindow", 0x1, 0x1, true},
    {"", "CenterCropPad", 0x2, 0x2, false},
    {"", "Col2Im", 0x6, 0x6, false},
    {"", "ConstantOfShape", 0x1, 0x1, true},
    {"", "DFT", 0x6, 0x6, false},
    {"", "Expand", 0x2, 0x2, false},
    {"", "HammingWindow", 0x1, 0x1, true},
    {"", "HannWindow", 0x1, 0x1, true},
    {"", "MelWeightMatrix", 0x3, 0x3, true},
    {"", "OneHot", 0x2, 0x2, false},
    {"", "Pad", 0xa, 0xa, false},
    {"", "Range", 0x7, 0x7, true},
    {"", "ReduceL1", 0x2, 0x2, false},
    {"", "ReduceL2", 0x2, 0x2, false},
    {"", "ReduceLogSum", 0x2, 0x2, false},
    {"", "ReduceLogSumExp", 0x2, 0x2, false},
    {"", "ReduceMax", 0x2, 0x2, false},
    {"", "ReduceMean", 0x2, 0x2, false},
    {"", "ReduceMin", 0x2, 0x2, false},
    {"", "ReduceProd", 0x2, 0x2, false},
    {"", "ReduceSum", 0x2, 0x2, false},
    {"", "ReduceSumSquare", 0x2, 0x2, false},
    {"", "Reshape", 0x2, 0x2, true},
    {"", "Resize", 0xe, 0xc, false},
    {"", "STFT", 0xa, 0xa, false},
    {"", "Slice", 0x1e, 0x1e, false},
    {"", "Split", 0x2, 0x2, false},
    {"", "SplitToSequence", 0x2, 0x2, false},
    {"", "Squeeze", 0x2, 0x2, false},
    {"", "Tile", 0x2, 0x2, false},
    {"", "TopK", 0x2, 0x2, false},
    {"", "Unsqueeze", 0x2, 0x2, false},
    {"", "Upsample", 0x2, 0x2, false},
    {"com.microsoft", "BeamSearch", 0x1a, 0x1a, false},
    {"com.microsoft", "ConvTransposeWithDynamicPads", 0x4, 0x4, false},
    {"com.microsoft", "ExpandDims", 0x2, 0x2, false},
    {"com.microsoft", "GreedySearch", 0x2, 0x2, false},
    {"com.microsoft", "Range", 0x7, 0x7, true},
    {"com.microsoft", "Sampling", 0x2, 0x2, false},
    {"com.microsoft", "WhisperBeamSearch", 0x1a, 0x1a, false},
};
/* clang-format on */
/* -- end of facts -- */

EPCTX_API const epctx_shape_reader *epctx_shape_reader_of(epctx_str domain, epctx_str op_type) {
    const size_t count = sizeof epctx__shape_readers / sizeof *epctx__shape_readers;
    size_t i;
    if (epctx_str_is(domain, "ai.onnx")) domain = epctx_str_of("");
    for (i = 0; i < count; i++)
        if (epctx_str_is(op_type, epctx__shape_readers[i].op_type) &&
            epctx_str_is(domain, epctx__shape_readers[i].domain))
            return &epctx__shape_readers[i];
    return NULL;
}

/* Where a value that is known by one name has another. */
typedef struct epctx__passed_on {
    epctx_str name;
    uint32_t next; /* of the same value; EPCTX_MAP_NONE: no more */
} epctx__passed_on;

typedef struct epctx__shape_search {
    epctx_arena *arena;
    epctx_map *names;    /* found */
    epctx_list fresh;    /* epctx_str: found, and their aliases not yet looked at */
    epctx_map aliases;   /* name -> the first one in `list` */
    epctx_list list;     /* epctx__passed_on */
    epctx_map functions; /* "domain:name" -> position in `bodies` */
    epctx_list bodies;   /* epctx_view of FunctionProtos */
    epctx_error *error;
} epctx__shape_search;

static epctx_status epctx__shape_found(epctx__shape_search *s, epctx_str name) {
    epctx_str *place;
    if (name.size == 0 || epctx__has(s->names, name)) return EPCTX_OK;
    place = (epctx_str *)epctx_list_add(&s->fresh, s->arena, sizeof *place);
    if (place == NULL) return epctx__nomem(s->error, s->arena->missing);
    *place = name;
    return epctx__map_set(s->names, name, 1, s->error);
}

/* Whoever needs `name` needs `other`. */
static epctx_status epctx__shape_alias(epctx__shape_search *s, epctx_str name, epctx_str other) {
    const uint32_t at = (uint32_t)s->list.count;
    epctx__passed_on *alias;
    if (name.size == 0 || other.size == 0) return EPCTX_OK;
    alias = (epctx__passed_on *)epctx_list_add(&s->list, s->arena, sizeof *alias);
    if (alias == NULL) return epctx__nomem(s->error, s->arena->missing);
    alias->name = other;
    alias->next = epctx_map_get(&s->aliases, name);
    return epctx__map_set(&s->aliases, name, at, s->error);
}

static epctx_status epctx__function_key(epctx__shape_search *s, epctx_str domain, epctx_str name,
                                        epctx_str *key) {
    const size_t size = domain.size + name.size + 2;
    char *bytes = (char *)epctx_arena_alloc(s->arena, size);
    epctx_text text = epctx_text_of(bytes, size);
    if (bytes == NULL) return epctx__nomem(s->error, s->arena->missing);
    epctx_text_put(&text, domain);
    epctx_text_put_char(&text, ':');
    epctx_text_put(&text, name);
    *key = epctx_text_str(&text);
    return EPCTX_OK;
}

static epctx_status epctx__shape_functions(epctx__shape_search *s, const epctx_model *model) {
    epctx_cursor it = epctx_model_functions(model);
    epctx_view function, *place;
    epctx_str key;
    while (epctx_next_view(&it, &function)) {
        EPCTX__TRY(epctx__function_key(
            s, epctx_view_str(epctx__last_view(function, EPCTX_FIELD_FUNCTION_DOMAIN)),
            epctx_view_str(epctx__last_view(function, EPCTX_FIELD_FUNCTION_NAME)), &key));
        EPCTX__TRY(epctx__map_set(&s->functions, key, s->bodies.count, s->error));
        place = (epctx_view *)epctx_list_add(&s->bodies, s->arena, sizeof *place);
        if (place == NULL) return epctx__nomem(s->error, s->arena->missing);
        *place = function;
    }
    return EPCTX_OK;
}

/* The inputs of a function are those of its call. */
static epctx_status epctx__shape_call(epctx__shape_search *s, const epctx_node_view *node) {
    epctx_cursor given = epctx_view_node_inputs(node), formal;
    epctx_str key, name, other;
    uint32_t at;
    if (s->bodies.count == 0) return EPCTX_OK;
    EPCTX__TRY(epctx__function_key(s, node->domain, node->op_type, &key));
    at = epctx_map_get(&s->functions, key);
    if (at == EPCTX_MAP_NONE) return EPCTX_OK;
    formal =
        epctx_view_fields(((const epctx_view *)s->bodies.items)[at], EPCTX_FIELD_FUNCTION_INPUT);
    while (epctx_next_str(&formal, &name) && epctx_next_str(&given, &other))
        EPCTX__TRY(epctx__shape_alias(s, name, other));
    return EPCTX_OK;
}

static epctx_status epctx__shape_node(epctx__shape_search *s, const epctx_node_view *node) {
    const epctx_shape_reader *reader = epctx_shape_reader_of(node->domain, node->op_type);
    epctx_cursor it = epctx_view_node_inputs(node);
    epctx_str name, output;
    uint32_t i;
    /* ORT removes these before it infers shapes once more. */
    if (epctx_str_is(node->op_type, "Identity") || epctx_str_is(node->op_type, "Cast")) {
        epctx_cursor outputs = epctx_view_node_outputs(node);
        if (epctx_next_str(&it, &name) && epctx_next_str(&outputs, &output))
            return epctx__shape_alias(s, output, name);
        return EPCTX_OK;
    }
    if (reader == NULL) return epctx__shape_call(s, node);
    for (i = 0; i < 32 && epctx_next_str(&it, &name); i++)
        if ((reader->reads >> i & 1) != 0) EPCTX__TRY(epctx__shape_found(s, name));
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_model_shape_names(const epctx_model *model, epctx_map *names,
                                               epctx_error *error) {
    epctx__shape_search s;
    epctx_walk walk;
    epctx_node_view node;
    uint32_t at;
    memset(&s, 0, sizeof s);
    s.arena = names->arena;
    s.names = names;
    s.error = error;
    epctx_error_clear(error);
    epctx_map_init(&s.aliases, s.arena);
    epctx_map_init(&s.functions, s.arena);
    EPCTX__TRY(epctx__shape_functions(&s, model));
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) EPCTX__TRY(epctx__shape_node(&s, &node));
    while (s.fresh.count > 0) {
        const epctx_str name = ((const epctx_str *)s.fresh.items)[--s.fresh.count];
        for (at = epctx_map_get(&s.aliases, name); at != EPCTX_MAP_NONE;
             at = ((const epctx__passed_on *)s.list.items)[at].next)
            EPCTX__TRY(epctx__shape_found(&s, ((const epctx__passed_on *)s.list.items)[at].name));
    }
    return EPCTX_OK;
}

/* -- ORT's order of a graph -- */

typedef struct epctx__reading {
    uint32_t from, to; /* reads `from` */
    size_t of_from;    /* 1 + the next one from the same node, or 0 */
    size_t of_to;      /* likewise, to the same node */
} epctx__reading;

typedef struct epctx__ordering {
    epctx_arena *arena;
    epctx_error *error;
    epctx_map producers;
    epctx_list readings;
    size_t nodes;
    uint32_t *stack, *out;
    size_t waiting, count;
    uint8_t *state; /* of a node: entered, left */
} epctx__ordering;

static epctx_status epctx__order_read(epctx__ordering *o, uint32_t node, epctx_str name) {
    const uint32_t from = epctx_map_get(&o->producers, name);
    epctx__reading *reading;
    if (from == EPCTX_MAP_NONE) return EPCTX_OK;
    reading = (epctx__reading *)epctx_list_add(&o->readings, o->arena, sizeof *reading);
    if (reading == NULL) return epctx__nomem(o->error, o->arena->missing);
    reading->from = from;
    reading->to = node;
    return EPCTX_OK;
}

static epctx_status epctx__order_look(epctx__ordering *o, epctx_graph_view graph) {
    epctx_cursor it = epctx_view_graph_nodes(graph), names;
    epctx_node_view node;
    epctx_str name;
    uint32_t at;
    for (at = 0; epctx_next_node(&it, &node); at++) {
        names = epctx_view_node_outputs(&node);
        while (epctx_next_str(&names, &name))
            if (name.size > 0) EPCTX__TRY(epctx__map_set(&o->producers, name, at, o->error));
    }
    o->nodes = at;
    it = epctx_view_graph_nodes(graph);
    for (at = 0; epctx_next_node(&it, &node); at++) {
        const epctx_str *captures;
        size_t count, i;
        names = epctx_view_node_inputs(&node);
        while (epctx_next_str(&names, &name)) EPCTX__TRY(epctx__order_read(o, at, name));
        EPCTX__TRY(epctx_view_node_captures(node.view, o->arena, &captures, &count, o->error));
        for (i = 0; i < count; i++) EPCTX__TRY(epctx__order_read(o, at, captures[i]));
    }
    return EPCTX_OK;
}

static void epctx__order_walk(epctx__ordering *o, const size_t *first) {
    const epctx__reading *readings = (const epctx__reading *)o->readings.items;
    while (o->waiting > 0) {
        const uint32_t node = o->stack[--o->waiting];
        size_t at;
        if (o->state[node] == 2) continue;
        if (o->state[node]++ == 1) {
            o->out[o->count++] = node;
            continue;
        }
        o->stack[o->waiting++] = node; /* to be left */
        for (at = first[node]; at != 0; at = readings[at - 1].of_to)
            if (o->state[readings[at - 1].from] == 0)
                o->stack[o->waiting++] = readings[at - 1].from;
    }
}

/* Begins with the nodes that nobody reads; what each node reads is listed by number. */
static epctx_status epctx__order_run(epctx__ordering *o) {
    epctx__reading *readings = (epctx__reading *)o->readings.items;
    size_t *of_from, *of_to, i, at;
    EPCTX__NEW(of_from, size_t, o->nodes, o->arena, o->error);
    EPCTX__NEW(of_to, size_t, o->nodes, o->arena, o->error);
    EPCTX__NEW(o->out, uint32_t, o->nodes, o->arena, o->error);
    EPCTX__NEW(o->state, uint8_t, o->nodes, o->arena, o->error);
    /* Each node is on it to be left, and once for each that reads it or as one nobody reads. */
    EPCTX__NEW(o->stack, uint32_t, 2 * o->nodes + o->readings.count, o->arena, o->error);
    for (i = 0; i < o->readings.count; i++) {
        readings[i].of_from = of_from[readings[i].from];
        of_from[readings[i].from] = i + 1;
    }
    for (i = o->nodes; i > 0; i--) {
        for (at = of_from[i - 1]; at != 0; at = readings[at - 1].of_from) {
            readings[at - 1].of_to = of_to[readings[at - 1].to];
            of_to[readings[at - 1].to] = at;
        }
    }
    for (i = 0; i < o->nodes; i++)
        if (of_from[i] == 0) o->stack[o->waiting++] = (uint32_t)i;
    epctx__order_walk(o, of_to);
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_view_graph_order(epctx_graph_view graph, epctx_arena *arena,
                                              const uint32_t **out, size_t *count,
                                              epctx_error *error) {
    epctx__ordering o;
    memset(&o, 0, sizeof o);
    epctx_error_clear(error);
    *out = NULL;
    *count = 0;
    o.arena = arena;
    o.error = error;
    epctx_map_init(&o.producers, arena);
    EPCTX__TRY(epctx__order_look(&o, graph));
    EPCTX__TRY(epctx__order_run(&o));
    *out = o.out;
    *count = o.count;
    return EPCTX_OK;
}

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>record
 *
 * epctx_model_load_graph turns the views of a graph into plain structs, which backends work on.
 * epctx__recording holds what all its parts are read with: opset imports, functions, and the hash
 * of both. What no member can hold (graphs below a certain depth, tensors of strings) goes into
 * `extra_hash` of its node, so that two nodes that differ there differ in their records, too. The
 * hash follows the meaning, not the bytes: epctx__digest adds up what fields say, whatever their
 * encoding and the order of different fields.
 *
 * External data is mapped once per file (epctx__model_map); how many bytes of it hashes may read is
 * bounded, because many tensors may name one range. Bodies of nodes are graphs again, down to
 * EPCTX__BODY_DEPTH. ORT accepts nodes in any order, backends need producers first:
 * epctx__sort_nodes sorts topologically and takes, of the nodes that are ready, the one that comes
 * first in the model, so a model in order keeps its order.
 * ============================================================ */

EPCTX_API const char *epctx_attr_type_name(int32_t attr_type) {
    static const char *const names[15] = {
        "UNDEFINED",      "FLOAT",      "INT",        "STRING",  "TENSOR", "GRAPH",
        "FLOATS",         "INTS",       "STRINGS",    "TENSORS", "GRAPHS", "SPARSE_TENSOR",
        "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
    return attr_type >= 0 && attr_type < 15 ? names[attr_type] : "unknown";
}

EPCTX_API const epctx_attr *epctx_node_attr(const epctx_node *node, const char *name) {
    size_t i;
    for (i = 0; i < node->attr_count; i++)
        if (epctx_str_is(node->attrs[i].name, name)) return &node->attrs[i];
    return NULL;
}

static epctx_status epctx__attr_type_check(int32_t found, int32_t expected, epctx_error *error) {
    return found == expected
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_GRAPH, "has attribute type %d (%s), expected %s",
                            (int64_t)found, epctx_attr_type_name(found),
                            epctx_attr_type_name(expected));
}

EPCTX_API epctx_status epctx_node_get_attr(const epctx_node *node, const char *name,
                                           epctx_attr_type type, const epctx_attr **out,
                                           epctx_error *error) {
    const epctx_attr *attr = epctx_node_attr(node, name);
    epctx_status status;
    epctx_error_clear(error);
    *out = NULL;
    if (attr == NULL) return EPCTX_OK;
    status = epctx__attr_type_check((int32_t)attr->type, (int32_t)type, error);
    if (status == EPCTX_OK) *out = attr;
    epctx_blame(error, NULL, &node->name, name);
    return status;
}

EPCTX_API int64_t epctx_node_int(const epctx_node *node, const char *name, int64_t fallback) {
    const epctx_attr *attr = epctx_node_attr(node, name);
    return attr != NULL && attr->type == EPCTX_ATTR_INT ? attr->i : fallback;
}

EPCTX_API float epctx_node_float(const epctx_node *node, const char *name, float fallback) {
    const epctx_attr *attr = epctx_node_attr(node, name);
    return attr != NULL && attr->type == EPCTX_ATTR_FLOAT ? attr->f : fallback;
}

/* The k-th value that a node reads: inputs, then captures. */
static epctx_str epctx__reads(const epctx_node *node, size_t k) {
    return k < node->input_count ? node->inputs[k] : node->captures[k - node->input_count];
}

static size_t epctx__read_count(const epctx_node *node) {
    return node->input_count + node->capture_count;
}

#ifndef EPCTX_NO_WIRE

/* -- record: from model bytes -- */

typedef struct epctx__recording {
    epctx_model *model;
    epctx_arena *arena;
    epctx_error *error;
    epctx_map initializers; /* name -> 1 */
    epctx_map domains;      /* of opset imports, "ai.onnx" as "" -> index in `versions` */
    int64_t *versions;
    int64_t ir_version;
    epctx_map functions; /* names -> 1 */
    uint64_t around;     /* hash of functions and opset imports; 0: unknown */
    int depth;           /* of the graph being loaded */
} epctx__recording;

static epctx__recording epctx__recording_of(epctx_model *model, epctx_arena *arena,
                                            epctx_error *error) {
    epctx__recording l;
    memset(&l, 0, sizeof l);
    l.model = model;
    l.arena = arena;
    l.error = error;
    epctx_map_init(&l.initializers, arena);
    epctx_map_init(&l.domains, arena);
    epctx_map_init(&l.functions, arena);
    return l;
}

/* Counts first; if a mapped file changes, the second pass may find fewer. */
#define EPCTX__LOAD_LIST(name, type) \
    static epctx_status epctx__record_##name##s(const epctx__recording *l, epctx_cursor it, \
                                                const type **out, size_t *count) { \
        epctx_cursor again = it; \
        type *items, item; \
        size_t n; \
        for (*count = 0; epctx_next_##name(&it, &item); ++*count) { \
        } \
        EPCTX__NEW(items, type, *count, l->arena, l->error); \
        *out = items; \
        for (n = 0; n < *count && epctx_next_##name(&again, &items[n]); n++) { \
        } \
        return EPCTX_OK; \
    }
EPCTX__LOAD_LIST(str, epctx_str)
EPCTX__LOAD_LIST(int, int64_t)
EPCTX__LOAD_LIST(float, float)
#undef EPCTX__LOAD_LIST

/* -- record: tensors -- */

/* "<what> <found>, <against> <limit>" */
static epctx_status epctx__tensor_fault(const epctx__recording *l, const epctx_tensor *tensor,
                                        const char *what, uint64_t found, const char *against,
                                        uint64_t limit) {
    return epctx_fail(l->error, EPCTX_ERR_GRAPH, "initializer '%S': %s %u, %s %u", &tensor->name,
                      what, found, against, limit);
}

/* Number of elements; false when a dimension is negative or the product overflows. */
static bool epctx__elements(const int64_t *dims, int32_t rank, uint64_t *count) {
    int32_t i;
    bool zero = false, fits = true;
    *count = 1;
    for (i = 0; i < rank; i++) {
        if (dims[i] < 0) return false;
        zero = zero || dims[i] == 0;
        fits = fits && (zero || *count <= (uint64_t)INT64_MAX / (uint64_t)dims[i]);
        *count *= (uint64_t)dims[i];
    }
    return fits || zero;
}

/* Typed fields (onnx.proto, comments at TensorProto) -> packed little-endian bytes. Complex numbers
 * are pairs. */
static epctx_status epctx__record_typed(const epctx__recording *l, epctx_view view,
                                        epctx_tensor *tensor, size_t need) {
    int32_t type = tensor->elem_type;
    bool single = type == EPCTX_ONNX_FLOAT || type == EPCTX_ONNX_COMPLEX64;
    bool twice = type == EPCTX_ONNX_DOUBLE || type == EPCTX_ONNX_COMPLEX128;
    bool wide = type == EPCTX_ONNX_UINT32 || type == EPCTX_ONNX_UINT64;
    epctx_wire wire = single ? EPCTX_WIRE_FIXED32 : twice ? EPCTX_WIRE_FIXED64 : EPCTX_WIRE_VARINT;
    size_t width = single ? 4 : twice ? 8 : epctx_elem_size(type);
    uint32_t number = single                     ? EPCTX_FIELD_TENSOR_FLOAT_DATA
                      : twice                    ? EPCTX_FIELD_TENSOR_DOUBLE_DATA
                      : type == EPCTX_ONNX_INT64 ? EPCTX_FIELD_TENSOR_INT64_DATA
                      : wide                     ? EPCTX_FIELD_TENSOR_UINT64_DATA
                                                 : EPCTX_FIELD_TENSOR_INT32_DATA;
    epctx_cursor it = epctx_view_fields(view, number);
    uint64_t found = 0; /* bytes, even beyond `need` */
    uint64_t bits;
    uint8_t *out;
    EPCTX__NEW(out, uint8_t, need, l->arena, l->error);
    for (; epctx__next_scalar(&it, wire, &bits); found += width) {
        size_t i;
        for (i = 0; i < width && found + width <= need; i++)
            out[found + i] = (uint8_t)(bits >> 8 * i);
    }
    tensor->data = out;
    tensor->size = need;
    return found == need ? EPCTX_OK
                         : epctx__tensor_fault(l, tensor, "its typed field holds bytes:", found,
                                               "its shape needs", need);
}

/* epctx_model_map_file with the file's entry. */
static epctx_status epctx__model_map(epctx_model *model, epctx_str folder, epctx_str name,
                                     epctx__file **out, epctx_error *error) {
    char path[EPCTX_PATH_MAX];
    epctx__file *file, **entry;
    uint32_t at;
    model->io = epctx_model_io(model); /* for closing */
    EPCTX__TRY(
        epctx_path_find(model->io, folder, name, model->path_flags, path, sizeof path, error));
    model->file_paths.arena = &model->arena; /* the caller may have moved the model */
    at = epctx_map_get(&model->file_paths, epctx_str_of(path));
    if (at != EPCTX_MAP_NONE) {
        *out = ((epctx__file **)model->file_list.items)[at];
        return EPCTX_OK;
    }
    at = (uint32_t)model->file_list.count;
    EPCTX__NEW(file, epctx__file, 1, &model->arena, error);
    EPCTX__TRY(epctx__copy(&model->arena, epctx_str_of(path), &file->path, error));
    entry = (epctx__file **)epctx_list_add(&model->file_list, &model->arena, sizeof file);
    if (entry == NULL) return epctx__nomem(error, model->arena.missing);
    EPCTX__TRY(
        epctx_path_map(model->io, folder, name, model->path_flags, &file->mapping, NULL, error));
    *entry = file;
    file->name = name;
    file->next = model->files; /* from here on closing unmaps it */
    model->files = file;
    model->external_there += file->mapping.size;
    *out = file;
    return epctx__map_set(&model->file_paths, epctx_str_of(file->path), at, error);
}

EPCTX_API epctx_status epctx_model_map_file(epctx_model *model, epctx_str folder, epctx_str name,
                                            epctx_span *bytes, epctx_error *error) {
    epctx__file *file;
    epctx_error_clear(error);
    EPCTX__TRY(epctx__model_map(model, folder, name, &file, error));
    bytes->data = file->mapping.data;
    bytes->size = file->mapping.size;
    return EPCTX_OK;
}

/* Tensors may overlap in a file; this bounds the work of reading them all. */
#define EPCTX__EXTERNAL_TIMES 16u
#define EPCTX__EXTERNAL_FREE  (UINT64_C(1) << 30)

static epctx_status epctx__record_external(const epctx__recording *l, const epctx_tensor_view *view,
                                           epctx_tensor *tensor, epctx__file **file) {
    epctx_model *model = l->model;
    epctx_str folder = epctx_str_of(model->external_folder);
    uint64_t size;
    if (folder.size == 0 && model->path[0] == '\0') {
        return epctx_fail(l->error, EPCTX_ERR_PATH,
                          "external data '%S': the model came from memory, set external_folder "
                          "(session.model_external_initializers_file_folder_path)",
                          &view->location);
    }
    folder = folder.size > 0 ? folder : epctx_path_folder(epctx_str_of(model->path));
    EPCTX__TRY(epctx__model_map(model, folder, view->location, file, l->error));
    EPCTX__TRY(epctx_view_tensor_extent(view, (*file)->mapping.size, &size, l->error));
    model->external_asked += size;
    if (model->external_asked > EPCTX__EXTERNAL_FREE &&
        (model->external_asked - EPCTX__EXTERNAL_FREE) / EPCTX__EXTERNAL_TIMES >
            model->external_there) {
        return epctx_fail(l->error, EPCTX_ERR_LIMIT,
                          "initializer '%S': tensors overlap in the external data: together they "
                          "have %u bytes, the files only %u",
                          &tensor->name, model->external_asked, model->external_there);
    }
    tensor->data = (*file)->mapping.data + view->offset;
    tensor->size = (size_t)size;
    tensor->location = view->location;
    tensor->offset = view->offset;
    return EPCTX_OK;
}

/* Strings, and typed fields of sub-byte types. */
static uint64_t epctx__hash_elements(epctx_view tensor) {
    epctx_cursor strings = epctx_view_fields(tensor, EPCTX_FIELD_TENSOR_STRING_DATA);
    epctx_cursor numbers = epctx_view_fields(tensor, EPCTX_FIELD_TENSOR_INT32_DATA);
    uint64_t h = 1;
    int64_t number;
    epctx_str text;
    while (epctx_next_str(&strings, &text))
        h = epctx_hash(text.data, text.size, epctx__hash_number(h, text.size));
    while (epctx_next_int(&numbers, &number)) h = epctx__hash_number(h, (uint64_t)number);
    return h + (h == 0);
}

static epctx_status epctx__record_tensor(const epctx__recording *l, epctx_view view,
                                         epctx_tensor *out) {
    epctx_tensor_view t = epctx_view_as_tensor(view);
    size_t width = epctx_elem_size(t.elem_type);
    epctx__file *file;
    size_t rank;
    uint64_t count = 0;
    memset(out, 0, sizeof *out);
    out->name = t.name;
    out->elem_type = t.elem_type;
    EPCTX__TRY(epctx__record_ints(l, epctx_view_tensor_dims(&t), &out->dims, &rank));
    if (EPCTX__NEVER(rank > INT32_MAX) || !epctx__elements(out->dims, (int32_t)rank, &count) ||
        (width > 0 && count > (uint64_t)(SIZE_MAX / 2) / width)) {
        return epctx_fail(l->error, EPCTX_ERR_GRAPH,
                          "initializer '%S': a dimension is negative, or the shape too large",
                          &out->name);
    }
    out->rank = (int32_t)rank;
    if (t.external) {
        EPCTX__TRY(epctx__record_external(l, &t, out, &file));
    } else if (t.has_raw) {
        uint64_t at = (uintptr_t)t.raw.data - (uintptr_t)l->model->bytes.data;
        out->data = t.raw.data;
        out->size = t.raw.size;
        out->offset = at < l->model->bytes.size ? at : 0;   /* outside: edited */
    } else if (width > 0 && count > l->model->bytes.size) { /* never allocate by dims alone */
        return epctx__tensor_fault(l, out, "its shape has elements:", count,
                                   "the whole model has bytes:", l->model->bytes.size);
    } else if (width > 0) {
        return epctx__record_typed(l, view, out, (size_t)count * width);
    } else if (count > 0) {
        out->extra_hash = epctx__hash_elements(view);
    }
    return out->data == NULL || width == 0 || out->size == count * width
               ? EPCTX_OK
               : epctx__tensor_fault(l, out, "its data has bytes:", out->size, "its shape needs",
                                     count * width);
}

EPCTX_API epctx_status epctx_model_load_tensor(epctx_model *model, epctx_view tensor,
                                               epctx_arena *arena, epctx_tensor *out,
                                               epctx_error *error) {
    epctx__recording l = epctx__recording_of(model, arena != NULL ? arena : &model->arena, error);
    epctx_error_clear(error);
    return epctx__record_tensor(&l, tensor, out);
}

/* -- record: the hash of what no member holds, independent of the encoding -- */

/* Order matters only among fields of the same number. */
static void epctx__digest_add(uint64_t *sum, uint32_t number, uint32_t *places, uint64_t value) {
    uint32_t place = places[number < 32 ? number : 0]++;
    *sum += epctx__hash_number(epctx__hash_number(epctx__hash_number(0, number), place), value);
}

EPCTX__APART static void epctx__digest_packed(const epctx_field *f, uint32_t kind, uint32_t *places,
                                              uint64_t *sum) {
    const uint8_t *p = f->body.data;
    const uint8_t *end = p + f->body.size;
    epctx_wire wire = kind == (uint32_t)EPCTX_KIND_INT     ? EPCTX_WIRE_VARINT
                      : kind == (uint32_t)EPCTX_KIND_FLOAT ? EPCTX_WIRE_FIXED32
                                                           : EPCTX_WIRE_FIXED64;
    uint64_t value;
    for (p = epctx__number(p, end, wire, &value); p != NULL;
         p = epctx__number(p, end, wire, &value))
        epctx__digest_add(sum, f->number, places, value);
}

/* Adds a tensor's external data. Ranges may overlap: once they exceed the file's size, the hash of
 * the whole file is used. */
EPCTX__APART static epctx_status epctx__digest_external(epctx__recording *l, epctx_view message,
                                                        uint64_t *sum) {
    epctx_tensor_view view = epctx_view_as_tensor(message);
    epctx_tensor tensor;
    epctx__file *file;
    if (!view.external) return EPCTX_OK;
    memset(&tensor, 0, sizeof tensor);
    tensor.name = view.name;
    EPCTX__TRY(epctx__record_external(l, &view, &tensor, &file));
    if (tensor.size <= file->mapping.size - file->hashed) {
        file->hashed += tensor.size;
        *sum += epctx_hash(tensor.data, tensor.size, 0);
    } else {
        file->whole =
            file->whole != 0 ? file->whole : epctx_hash(file->mapping.data, file->mapping.size, 1);
        *sum += file->whole;
    }
    return EPCTX_OK;
}

/* Continues a hash; the result is never 0. */
static void epctx__rest_add(uint64_t *rest, uint64_t digest) {
    *rest = epctx__hash_number(*rest, digest);
    if (*rest == 0) *rest = 1; /* 0: no hash */
}

/* Recursion: nested messages, bounded by open. */
static epctx_status epctx__digest(epctx__recording *l, epctx_kind type, epctx_view message,
                                  uint64_t *out) {
    epctx_cursor it = epctx_view_fields(message, 0);
    uint32_t places[32];
    uint64_t sum = 1;
    epctx_field f;
    memset(places, 0, sizeof places);
    while (epctx_next_field(&it, &f)) {
        uint32_t kind = f.wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, f.number) : 0;
        uint64_t value = f.value;
        if (epctx__is_message(kind)) {
            EPCTX__TRY(epctx__digest(l, epctx__message_kind(kind), f.body, &value));
        } else if (kind != 0) {
            epctx__digest_packed(&f, kind, places, &sum);
            continue;
        } else if (f.wire == EPCTX_WIRE_LEN) {
            value = epctx_hash(f.body.data, f.body.size, 0);
        }
        epctx__digest_add(&sum, f.number, places, value);
    }
    if (type == EPCTX_KIND_TENSOR) EPCTX__TRY(epctx__digest_external(l, message, &sum));
    *out = 0;
    epctx__rest_add(out, sum);
    return EPCTX_OK;
}

/* Subgraphs and calls depend on the model's functions and opset imports. */
static epctx_status epctx__rest_around(epctx__recording *l, epctx_node *node) {
    epctx_cursor it = epctx_view_fields(epctx__slot_view(l->model->shown), 0);
    epctx_field f;
    uint64_t sum = 1;
    while (l->around == 0 && epctx_next_field(&it, &f)) {
        epctx_kind kind = epctx__child_kind(EPCTX_KIND_MODEL, f.number);
        uint64_t value;
        if (f.wire == EPCTX_WIRE_LEN && (kind == EPCTX_KIND_OPSET || kind == EPCTX_KIND_FUNCTION)) {
            EPCTX__TRY(epctx__digest(l, kind, f.body, &value));
            sum += value;
        }
    }
    if (l->around == 0) l->around = sum + (sum == 0);
    epctx__rest_add(&node->extra_hash, l->around);
    return EPCTX_OK;
}

/* -- record: nodes -- */

/* Graphs within graphs that are loaded. */
#define EPCTX__BODY_DEPTH 8

static epctx_status epctx__record_graph(epctx__recording *l, epctx_graph_view view,
                                        epctx_graph *out);

/* The body of a node: a graph of its own, but for the values it captures. */
static epctx_status epctx__record_body(epctx__recording *l, epctx_view view,
                                       const epctx_graph **out) {
    const epctx_map initializers = l->initializers;
    epctx_graph *body;
    epctx_status status;
    if (l->depth == EPCTX__BODY_DEPTH) return EPCTX_OK;
    EPCTX__NEW(body, epctx_graph, 1, l->arena, l->error);
    epctx_map_init(&l->initializers, l->arena);
    l->depth++;
    status = epctx__record_graph(l, epctx_view_as_graph(view), body);
    l->depth--;
    l->initializers = initializers;
    *out = body;
    return status;
}

/* An attribute without tensors and graphs: these need the model. */
static epctx_status epctx__record_plain_attr(const epctx__recording *l, const epctx_attr_view *view,
                                             epctx_attr *out) {
    out->name = view->name;
    out->type = (epctx_attr_type)view->type; /* 0 to 14, as attr views are read */
    out->i = view->i;
    out->f = view->f;
    out->s = view->s;
    switch (out->type) {
    case EPCTX_ATTR_INTS:
        return epctx__record_ints(l, epctx_view_fields(view->view, EPCTX_FIELD_ATTR_INTS),
                                  &out->ints, &out->count);
    case EPCTX_ATTR_FLOATS:
        return epctx__record_floats(l, epctx_view_fields(view->view, EPCTX_FIELD_ATTR_FLOATS),
                                    &out->floats, &out->count);
    case EPCTX_ATTR_STRINGS:
        return epctx__record_strs(l, epctx_view_fields(view->view, EPCTX_FIELD_ATTR_STRINGS),
                                  &out->strings, &out->count);
    default: return EPCTX_OK;
    }
}

/* Reads an attribute; a value that no member can hold goes into node->extra_hash. */
static epctx_status epctx__record_attr(epctx__recording *l, const epctx_attr_view *view,
                                       epctx_node *node, epctx_attr *out) {
    epctx_tensor *tensor;
    uint64_t digest;
    EPCTX__TRY(epctx__record_plain_attr(l, view, out));
    switch (out->type) {
    case EPCTX_ATTR_INT:
    case EPCTX_ATTR_FLOAT:
    case EPCTX_ATTR_STRING:
    case EPCTX_ATTR_INTS:
    case EPCTX_ATTR_FLOATS:
    case EPCTX_ATTR_STRINGS: return EPCTX_OK;
    case EPCTX_ATTR_TENSOR:
        EPCTX__NEW(tensor, epctx_tensor, 1, l->arena, l->error);
        out->t = tensor;
        return epctx__record_tensor(l, view->t, tensor);
    default:
        EPCTX__TRY(epctx__digest(l, EPCTX_KIND_ATTR, view->view, &digest));
        epctx__rest_add(&node->extra_hash, digest);
        if (out->type == EPCTX_ATTR_GRAPH || out->type == EPCTX_ATTR_GRAPHS)
            EPCTX__TRY(epctx__rest_around(l, node));
        return out->type == EPCTX_ATTR_GRAPH ? epctx__record_body(l, view->g, &out->g) : EPCTX_OK;
    }
}

static epctx_status epctx__record_attrs(epctx__recording *l, const epctx_node_view *view,
                                        epctx_node *out) {
    epctx_cursor it = epctx_view_node_attrs(view);
    epctx_attr_view attr;
    epctx_attr *attrs;
    EPCTX__NEW(attrs, epctx_attr, view->attr_count, l->arena, l->error);
    out->attrs = attrs;
    while (out->attr_count < view->attr_count && epctx_next_attr(&it, &attr)) {
        epctx_attr *next = &attrs[out->attr_count++];
        epctx_status status = l->model != NULL ? epctx__record_attr(l, &attr, out, next)
                                               : epctx__record_plain_attr(l, &attr, next);
        if (status != EPCTX_OK) {
            epctx_blame(l->error, NULL, &view->name, NULL);
            return status;
        }
    }
    return EPCTX_OK;
}

/* -- record: the graph --
 *
 * Model and graph are open: they have as many fields as counted, even if a mapped file changes. */

static epctx_status epctx__record_values(epctx__recording *l, epctx_cursor it, bool skip_constants,
                                         const epctx_value **out, size_t *count) {
    epctx_value_view view;
    epctx_value *value;
    *count = 0;
    EPCTX__NEW(value, epctx_value, epctx_cursor_count(it), l->arena, l->error);
    *out = value;
    while (epctx_next_value(&it, &view)) {
        epctx_cursor dims = epctx_view_value_dims(&view);
        size_t rank = epctx_cursor_count(dims);
        epctx_dim dim;
        int64_t *numbers;
        /* Before IR version 4 every initializer had to be listed as an input. */
        if (skip_constants && l->ir_version < 4 && epctx__has(&l->initializers, view.name))
            continue;
        value->name = view.name;
        value->elem_type = view.elem_type;
        value->rank = -1;
        if (view.has_shape && EPCTX__ALWAYS(rank <= INT32_MAX)) {
            EPCTX__NEW(numbers, int64_t, rank, l->arena, l->error);
            value->dims = numbers;
            value->rank = 0;
            while ((size_t)value->rank < rank && epctx_next_dim(&dims, &dim))
                numbers[value->rank++] = dim.known && dim.value >= 0 ? dim.value : -1;
        }
        value++;
        ++*count;
    }
    return EPCTX_OK;
}

static epctx_status epctx__record_initializers(epctx__recording *l, epctx_graph_view view,
                                               epctx_graph *out) {
    epctx_cursor it = epctx_view_graph_initializers(view);
    epctx_cursor inputs = epctx_view_graph_inputs(view);
    epctx_map overridable;
    epctx_value_view value;
    epctx_view body;
    epctx_tensor *tensor;
    EPCTX__NEW(tensor, epctx_tensor, epctx_cursor_count(it), l->arena, l->error);
    out->initializers = tensor;
    epctx_map_init(&overridable, l->arena);
    while (l->ir_version >= 4 && epctx_next_value(&inputs, &value))
        EPCTX__TRY(epctx__map_set(&overridable, value.name, 1, l->error));
    while (epctx_next_view(&it, &body)) {
        EPCTX__TRY(epctx__record_tensor(l, body, tensor));
        /* An overridable initializer is an input, not a constant. */
        if (!epctx__has(&overridable, tensor->name)) {
            EPCTX__TRY(epctx__map_set(&l->initializers, tensor++->name, 1, l->error));
            out->initializer_count++;
        }
    }
    return EPCTX_OK;
}

/* Opset imports (of a domain imported twice the last counts) and functions. */
static epctx_status epctx__record_imports(epctx__recording *l) {
    epctx_cursor opsets = epctx_model_opsets(l->model);
    epctx_cursor functions = epctx_model_functions(l->model);
    epctx_opset opset;
    epctx_view function;
    size_t count;
    EPCTX__NEW(l->versions, int64_t, epctx_cursor_count(opsets), l->arena, l->error);
    for (count = 0; epctx_next_opset(&opsets, &opset); count++) {
        l->versions[count] = opset.version;
        EPCTX__TRY(epctx__map_set(&l->domains, epctx__plain_domain(opset.domain), count, l->error));
    }
    while (epctx_next_view(&functions, &function)) {
        epctx_str name = epctx_view_str(epctx__last_view(function, EPCTX_FIELD_FUNCTION_NAME));
        EPCTX__TRY(epctx__map_set(&l->functions, name, 1, l->error));
    }
    return EPCTX_OK;
}

/* What a node is called, reads and writes. */
static epctx_status epctx__record_ends(const epctx__recording *l, const epctx_node_view *view,
                                       epctx_node *out) {
    out->name = view->name;
    out->op_type = view->op_type;
    out->domain = epctx__plain_domain(view->domain);
    EPCTX__TRY(
        epctx__record_strs(l, epctx_view_node_inputs(view), &out->inputs, &out->input_count));
    return epctx__record_strs(l, epctx_view_node_outputs(view), &out->outputs, &out->output_count);
}

/* One node without its model: see epctx_load_in.record. */
static epctx_status epctx__record_plain_node(const epctx_node_view *view, epctx_arena *arena,
                                             epctx_node *out, epctx_error *error) {
    epctx__recording l = epctx__recording_of(NULL, arena, error);
    EPCTX__TRY(epctx__record_ends(&l, view, out));
    return epctx__record_attrs(&l, view, out);
}

static epctx_status epctx__record_nodes(epctx__recording *l, epctx_graph_view graph,
                                        epctx_graph *out) {
    epctx_cursor it = epctx_view_graph_nodes(graph);
    epctx_node_view view;
    epctx_node *node;
    EPCTX__NEW(node, epctx_node, epctx_cursor_count(it), l->arena, l->error);
    out->nodes = node;
    for (; epctx_next_node(&it, &view); node++) {
        uint32_t domain;
        node->id = (uint32_t)out->node_count++;
        EPCTX__TRY(epctx__record_ends(l, &view, node));
        domain = epctx_map_get(&l->domains, node->domain);
        node->version = domain != EPCTX_MAP_NONE ? l->versions[domain] : 0;
        EPCTX__TRY(epctx__record_attrs(l, &view, node));
        EPCTX__TRY(epctx_view_node_captures(view.view, l->arena, &node->captures,
                                            &node->capture_count, l->error));
        if (epctx__has(&l->functions, view.op_type)) EPCTX__TRY(epctx__rest_around(l, node));
    }
    return EPCTX_OK;
}

/* -- record: topological order -- */

#define EPCTX__NO_ITEM UINT32_MAX

typedef struct epctx__edges {
    uint32_t *from;
    uint32_t *to; /* waits for `from` */
    size_t count;
} epctx__edges;

/* A heap of items, smallest key on top. */
static void epctx__heap_push(uint32_t *heap, size_t *count, uint32_t item, const uint32_t *key) {
    size_t at;
    for (at = (*count)++; at > 0 && key[heap[(at - 1) / 2]] > key[item]; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

static uint32_t epctx__heap_pop(uint32_t *heap, size_t *count, const uint32_t *key) {
    uint32_t top = heap[0];
    uint32_t last = heap[--*count];
    size_t at = 0, child;
    for (child = 1; child < *count; child = 2 * at + 1) {
        child += child + 1 < *count && key[heap[child + 1]] < key[heap[child]];
        if (key[heap[child]] >= key[last]) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return top;
}

/* Sorts items topologically, ties by key. Key EPCTX__NO_ITEM: no such item. `count` < `items`:
 * there is a cycle. */
static epctx_status epctx__sort_items(epctx_arena *arena, epctx_error *error, const uint32_t *key,
                                      size_t items, const epctx__edges *edges, uint32_t *sequence,
                                      size_t *count) {
    uint32_t *missing, *heap;
    size_t *first, *next; /* 1 + edge, or 0 */
    size_t heaped = 0, i;
    *count = 0;
    EPCTX__NEW(missing, uint32_t, items, arena, error);
    EPCTX__NEW(heap, uint32_t, items, arena, error);
    EPCTX__NEW(first, size_t, items, arena, error);
    EPCTX__NEW(next, size_t, edges->count, arena, error);
    for (i = 0; i < edges->count; i++) {
        missing[edges->to[i]]++;
        next[i] = first[edges->from[i]];
        first[edges->from[i]] = i + 1;
    }
    for (i = 0; i < items; i++)
        if (key[i] != EPCTX__NO_ITEM && missing[i] == 0)
            epctx__heap_push(heap, &heaped, (uint32_t)i, key);
    while (heaped > 0) {
        uint32_t item = epctx__heap_pop(heap, &heaped, key);
        size_t edge;
        sequence[(*count)++] = item;
        for (edge = first[item]; edge != 0; edge = next[edge - 1])
            if (--missing[edges->to[edge - 1]] == 0)
                epctx__heap_push(heap, &heaped, edges->to[edge - 1], key);
    }
    return EPCTX_OK;
}

/* Edges between the nodes of a record; `sorted`: they are in order already. */
static epctx_status epctx__node_edges(epctx__recording *l, const epctx_graph *graph,
                                      epctx__edges *edges, bool *sorted) {
    epctx_map producers;
    size_t most = 0, i, k;
    epctx_map_init(&producers, l->arena);
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        most += epctx__read_count(node);
        for (k = 0; k < node->output_count; k++)
            if (node->outputs[k].size > 0)
                EPCTX__TRY(epctx__map_set(&producers, node->outputs[k], (uint32_t)i, l->error));
    }
    EPCTX__NEW(edges->from, uint32_t, most, l->arena, l->error);
    EPCTX__NEW(edges->to, uint32_t, most, l->arena, l->error);
    edges->count = 0;
    *sorted = true;
    for (i = 0; i < graph->node_count; i++) {
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
    return EPCTX_OK;
}

/* ONNX requires topological order, but ORT accepts and writes any. */
static epctx_status epctx__sort_nodes(epctx__recording *l, epctx_graph *graph) {
    epctx__edges edges;
    epctx_node *nodes;
    uint32_t *sequence, *key;
    size_t count = 0, i;
    bool sorted = false;
    EPCTX__TRY(epctx__node_edges(l, graph, &edges, &sorted));
    if (sorted) return EPCTX_OK;
    EPCTX__NEW(nodes, epctx_node, graph->node_count, l->arena, l->error);
    EPCTX__NEW(sequence, uint32_t, graph->node_count, l->arena, l->error);
    EPCTX__NEW(key, uint32_t, graph->node_count, l->arena, l->error);
    for (i = 0; i < graph->node_count; i++) key[i] = (uint32_t)i;
    EPCTX__TRY(
        epctx__sort_items(l->arena, l->error, key, graph->node_count, &edges, sequence, &count));
    if (count != graph->node_count) {
        return epctx_fail(l->error, EPCTX_ERR_GRAPH,
                          "%u nodes depend on themselves: the graph has a cycle",
                          (uint64_t)(graph->node_count - count));
    }
    for (i = 0; i < count; i++) nodes[i] = graph->nodes[sequence[i]];
    graph->nodes = nodes;
    return EPCTX_OK;
}

static epctx_status epctx__record_graph(epctx__recording *l, epctx_graph_view view,
                                        epctx_graph *out) {
    out->name = view.name;
    EPCTX__TRY(epctx__record_initializers(l, view, out));
    EPCTX__TRY(epctx__record_values(l, epctx_view_graph_inputs(view), true, &out->inputs,
                                    &out->input_count));
    EPCTX__TRY(epctx__record_values(l, epctx_view_graph_outputs(view), false, &out->outputs,
                                    &out->output_count));
    EPCTX__TRY(epctx__record_values(l, epctx_view_graph_values(view), false, &out->values,
                                    &out->value_count));
    EPCTX__TRY(epctx__record_nodes(l, view, out));
    return epctx__sort_nodes(l, out);
}

EPCTX_API epctx_status epctx_model_load_graph(epctx_model *model, epctx_graph *out,
                                              epctx_error *error) {
    epctx__recording l = epctx__recording_of(model, &model->arena, error);
    epctx__file *file;
    epctx_status status;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    model->external_asked = 0;
    for (file = model->files; file != NULL; file = file->next) file->hashed = 0;
    l.ir_version = epctx_model_read(model).ir_version;
    status = epctx_model_has_graph(model)
                 ? epctx__record_imports(&l)
                 : epctx_fail(error, EPCTX_ERR_GRAPH, "the model has no graph");
    if (status == EPCTX_OK) status = epctx__record_graph(&l, epctx_model_graph(model), out);
    if (status != EPCTX_OK) epctx_blame(error, model->path, NULL, NULL);
    return status;
}

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>epnode
 * ============================================================ */

static const struct {
    const char *name;
    epctx_attr_type type;
    size_t place;
} epctx__epnode_attrs[EPCTX_EPNODE_ATTR_COUNT] = {
#define EPCTX__EPNODE_ATTR(id, name, type, member) \
    {name, EPCTX_ATTR_##type, offsetof(epctx_epnode, member)},
    EPCTX_EPNODE_ATTR_LIST(EPCTX__EPNODE_ATTR)
#undef EPCTX__EPNODE_ATTR
};

EPCTX_API epctx_epnode epctx_epnode_default(void) {
    epctx_epnode node;
    memset(&node, 0, sizeof node);
    node.main_context = 1;
    node.embed_mode = 1;
    return node;
}

EPCTX_API size_t epctx_epnode_attrs(const epctx_epnode *node,
                                    epctx_attr out[EPCTX_EPNODE_ATTR_COUNT]) {
    const epctx_epnode plain = epctx_epnode_default();
    size_t count = 0;
    int id;
    for (id = 0; id < EPCTX_EPNODE_ATTR_COUNT; id++) {
        const void *place = (const char *)node + epctx__epnode_attrs[id].place;
        const void *usual = (const char *)&plain + epctx__epnode_attrs[id].place;
        epctx_attr *attr = &out[count];
        bool other = epctx__epnode_attrs[id].type == EPCTX_ATTR_INT
                         ? *(const int64_t *)place != *(const int64_t *)usual
                         : ((const epctx_str *)place)->size > 0;
        if (other || (node->present >> id & 1) != 0) {
            memset(attr, 0, sizeof *attr);
            attr->name = epctx_str_of(epctx__epnode_attrs[id].name);
            attr->type = epctx__epnode_attrs[id].type;
            if (attr->type == EPCTX_ATTR_INT)
                attr->i = *(const int64_t *)place;
            else
                attr->s = *(const epctx_str *)place;
            count++;
        }
    }
    return count;
}

/* EPCTX_EPNODE_ATTR_COUNT: it is not in the schema. */
static int epctx__epnode_attr_of(epctx_str name) {
    int id = 0;
    while (id < EPCTX_EPNODE_ATTR_COUNT && !epctx_str_is(name, epctx__epnode_attrs[id].name)) id++;
    return id;
}

static epctx_status epctx__flag_check(int64_t value, epctx_status status, epctx_error *error) {
    return value == 0 || value == 1 ? EPCTX_OK
                                    : epctx_fail(error, status, "is %d, must be 0 or 1", value);
}

/* Stores one attribute; ignores those that are not in the schema. */
static epctx_status epctx__epnode_take(epctx_epnode *node, epctx_str name, int32_t type, int64_t i,
                                       epctx_str s, epctx_error *error) {
    const int id = epctx__epnode_attr_of(name);
    epctx_status status;
    void *place;
    if (id == EPCTX_EPNODE_ATTR_COUNT) return EPCTX_OK;
    place = (char *)node + epctx__epnode_attrs[id].place;
    status = epctx__attr_type_check(type, (int32_t)epctx__epnode_attrs[id].type, error);
    if (status == EPCTX_OK) {
        if (type == EPCTX_ATTR_INT)
            *(int64_t *)place = i;
        else
            *(epctx_str *)place = s;
        node->present |= 1u << id;
        if (id == EPCTX_EPNODE_MAIN_CONTEXT || id == EPCTX_EPNODE_EMBED_MODE)
            status = epctx__flag_check(i, EPCTX_ERR_GRAPH, error);
    }
    if (status != EPCTX_OK) epctx_blame(error, NULL, &node->name, epctx__epnode_attrs[id].name);
    return status;
}

EPCTX_API epctx_status epctx_epnode_from_record(const epctx_node *record, epctx_epnode *out,
                                                epctx_error *error) {
    size_t i;
    epctx_error_clear(error);
    *out = epctx_epnode_default();
    out->name = record->name;
    for (i = 0; i < record->attr_count; i++) {
        const epctx_attr *attr = &record->attrs[i];
        EPCTX__TRY(
            epctx__epnode_take(out, attr->name, (int32_t)attr->type, attr->i, attr->s, error));
    }
    return EPCTX_OK;
}

/* The member that an attribute's type wants and that is NULL; "": no such type, or no TENSOR or
 * GRAPH; NULL: all is there. */
static const char *epctx__attr_lacks(const epctx_attr *attr) {
    size_t i;
    switch (attr->type) {
    case EPCTX_ATTR_FLOAT:
    case EPCTX_ATTR_INT: return NULL;
    case EPCTX_ATTR_STRING: return attr->s.size == 0 || attr->s.data != NULL ? NULL : "s.data";
    case EPCTX_ATTR_TENSOR: return attr->t != NULL ? NULL : "";
    case EPCTX_ATTR_GRAPH: return attr->g != NULL ? NULL : "";
    case EPCTX_ATTR_FLOATS: return attr->count == 0 || attr->floats != NULL ? NULL : "floats";
    case EPCTX_ATTR_INTS: return attr->count == 0 || attr->ints != NULL ? NULL : "ints";
    case EPCTX_ATTR_STRINGS: break;
    default: return "";
    }
    for (i = 0; attr->strings != NULL && i < attr->count; i++)
        if (attr->strings[i].size > 0 && attr->strings[i].data == NULL) return "the data of one";
    return attr->count == 0 || attr->strings != NULL ? NULL : "strings";
}

static epctx_status epctx__attr_value_check(const epctx_attr *attr, epctx_error *error) {
    const char *lacks = epctx__attr_lacks(attr);
    const bool list = attr->type != EPCTX_ATTR_STRING;
    if (lacks == NULL) return EPCTX_OK;
    if (lacks[0] == '\0') {
        return epctx_fail(error, EPCTX_ERR_BACKEND,
                          "has type %d (%s) and no value: ONNX Runtime makes INT, FLOAT, STRING "
                          "and lists of these",
                          (int64_t)attr->type, epctx_attr_type_name((int32_t)attr->type));
    }
    return epctx_fail(error, EPCTX_ERR_BACKEND, "is %s with %s %u, and %s is NULL",
                      epctx_attr_type_name((int32_t)attr->type), list ? "count" : "size",
                      (uint64_t)(list ? attr->count : attr->s.size), lacks);
}

/* Attribute `index` of the EP's own; `before`: the place of another one of its name, or
 * EPCTX_MAP_NONE. A member of epctx_epnode has the name of its attribute. */
static epctx_status epctx__own_attr_check(const epctx_attr *attr, uint64_t index, uint32_t before,
                                          epctx_error *error) {
    if (attr->name.size == 0) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "own attribute %u has no name, one is expected",
                          index);
    }
    if (epctx__epnode_attr_of(attr->name) != EPCTX_EPNODE_ATTR_COUNT) {
        return epctx_fail(error, EPCTX_ERR_BACKEND,
                          "own attribute %u has this name of the schema: set epctx_epnode.%S, or "
                          "take a name of the EP's own",
                          index, &attr->name);
    }
    if (before != EPCTX_MAP_NONE) {
        return epctx_fail(error, EPCTX_ERR_BACKEND,
                          "own attributes %u and %u have this name: each is expected once",
                          (uint64_t)before, index);
    }
    if (epctx_str_is(attr->name, EPCTX_WEIGHTS_ATTR) && attr->type != EPCTX_ATTR_STRING) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "has type %d (%s), STRING is expected",
                          (int64_t)attr->type, epctx_attr_type_name((int32_t)attr->type));
    }
    return epctx__attr_value_check(attr, error);
}

static epctx_status epctx__own_attrs_check(const epctx_attr *own, size_t count, epctx_arena *arena,
                                           epctx_error *error) {
    epctx_map names;
    size_t i;
    if (count > 0 && own == NULL) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "there are %u own attributes, and no list",
                          (uint64_t)count);
    }
    epctx_map_init(&names, arena);
    for (i = 0; i < count; i++) {
        const epctx_str name = own[i].name;
        epctx_status status = epctx__own_attr_check(&own[i], i, epctx_map_get(&names, name), error);
        if (status != EPCTX_OK && error != NULL)
            epctx__blame_part(error, "attribute", name, error->attribute, sizeof error->attribute);
        EPCTX__TRY(status);
        EPCTX__TRY(epctx__map_set(&names, name, i, error));
    }
    return EPCTX_OK;
}

/* Bytes of a payload, which may be secret and must not appear in a message. */
static bool epctx__is_no_path(epctx_str given) {
    return epctx__has_controls(given) || given.size >= EPCTX_PATH_MAX;
}

/* Text as a name has it. */
static bool epctx__may_be_path(epctx_str payload) {
    return payload.size > 0 && !epctx__is_no_path(payload) && epctx_str_is_utf8(payload);
}

static epctx_status epctx__fail_no_path(epctx_str given, epctx_status status, epctx_error *error) {
    return epctx_fail(error, status,
                      "embed_mode is 0: expected a path, found %u bytes that are none; if they "
                      "are the context, embed_mode must be 1",
                      (uint64_t)given.size);
}

/* The context of a node that is to be written. `elsewhere`: an own attribute names it. */
static epctx_status epctx__context_check(const epctx_epnode *node, bool elsewhere,
                                         epctx_error *error) {
    const epctx_str context = node->ep_cache_context;
    epctx_error why;
    if (context.size == 0) {
        return node->main_context == 0 || elsewhere
                   ? EPCTX_OK
                   : epctx_fail(error, EPCTX_ERR_BACKEND,
                                "is empty: main_context 1 and embed_mode %d need the %s here",
                                node->embed_mode, node->embed_mode == 1 ? "payload" : "path");
    }
    if (node->embed_mode == 1) return EPCTX_OK;
    if (epctx__is_no_path(context)) return epctx__fail_no_path(context, EPCTX_ERR_BACKEND, error);
    return epctx_path_check(context, &why) == EPCTX_OK
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_BACKEND, "%s", why.message);
}

#ifndef EPCTX_NO_WIRE

EPCTX_API bool epctx_view_is_epnode(const epctx_node_view *node) {
    return epctx_str_is(node->op_type, EPCTX_OP_TYPE) && epctx_str_is(node->domain, EPCTX_DOMAIN);
}

EPCTX_API epctx_status epctx_view_read_epnode(const epctx_node_view *node, epctx_epnode *out,
                                              epctx_error *error) {
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    epctx_error_clear(error);
    *out = epctx_epnode_default();
    out->name = node->name;
    while (epctx_next_attr(&it, &attr))
        EPCTX__TRY(epctx__epnode_take(out, attr.name, attr.type, attr.i, attr.s, error));
    return EPCTX_OK;
}

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>profile
 *
 * The profiles are facts, in a table that `make facts` writes. An EP is found by the attribute
 * `source` of a node; where several EPs write one `source`, an attribute of the EP's own decides
 * (epctx_profile_of_node). epctx_profile_claims says whether the EP itself would take the node,
 * which is stricter: some compare `source` letter by letter.
 *
 * File names in a profile are patterns: "*" stands for any text, {file}, {stem} and {model} for the
 * name of the model or a part of it. One reader of patterns (epctx__pattern_part) serves both
 * directions: epctx_profile_name_fits compares a name, epctx_profile_fill_name makes one.
 * ============================================================ */

/* -- compatibility strings --
 *
 * Those of an EP with a rule of its own are judged by the compat_fn of its profile, all others key
 * by key. They come from models and are read in place, without allocation: EPCTX__COMPAT_MOST
 * bounds their length, and epctx__json_value the nesting of JSON. */

static bool epctx__cut_number(epctx_str *rest, char separator, uint64_t *value) {
    return epctx_str_number(epctx_str_cut(rest, separator), value);
}

/* QNN: "backend:sdk:api:blob:arch:driver"; sdk, api and blob are versions a.b.c. Format and rule
 * follow the QNN plugin EP (onnxruntime-qnn, 2026-03). */
static bool epctx__read_qnn(epctx_str text, uint64_t out[12]) {
    static const char ends[] = ":..:..:..::";
    size_t i = 0;
    while (i < 12 && epctx__cut_number(&text, ends[i], &out[i])) i++;
    return i == 12 && text.data == NULL;
}

/* Next part of "name;key=value;key=value"; one without "=" has an empty key. False at the end. */
static bool epctx__compat_next(epctx_str *rest, epctx_str *key, epctx_str *value) {
    if (rest->size == 0) return false;
    *value = epctx_str_cut(rest, ';');
    *key = epctx_str_cut(value, '=');
    if (value->data == NULL) {
        *value = *key;
        *key = epctx_str_of("");
    }
    return true;
}

/* Is version `a` newer than `b` in its first `parts` (2 or 3) numbers? */
static bool epctx__is_newer(const uint64_t a[3], const uint64_t b[3], int parts) {
    int i = 0;
    while (i < parts - 1 && a[i] == b[i]) i++;
    return a[i] > b[i];
}

/* Lists of the second form, with a number for each chip. `vtcms` may be empty instead. */
typedef struct epctx__chips {
    epctx_str archs, vtcms;
} epctx__chips;

static bool epctx__next_chip(epctx__chips *chips, uint64_t *arch, uint64_t *vtcm) {
    *vtcm = 0;
    if (chips->vtcms.size > 0) (void)epctx__cut_number(&chips->vtcms, ',', vtcm);
    return epctx__cut_number(&chips->archs, ',', arch);
}

/* The second form (EP 2.3.0): "v2:backend:sdk:api:archs:socs:vtcms:driver". Fills `out` like the
 * first form, but leaves the places of blob and arch alone. */
static bool epctx__read_qnn2(epctx_str text, uint64_t out[12], epctx__chips *chips) {
    static const char ends[] = "::..:..:";
    uint64_t number = 0;
    epctx_str a, socs, v;
    size_t i = 1;
    if (!epctx_str_is(epctx_str_cut(&text, ':'), "v2")) return false;
    while (i < 8 && epctx__cut_number(&text, ends[i], &out[i - 1])) i++;
    a = chips->archs = epctx_str_cut(&text, ':');
    socs = epctx_str_cut(&text, ':');
    v = chips->vtcms = epctx_str_cut(&text, ':');
    if (i < 8 || !epctx_str_number(text, &out[11])) return false;
    while (a.data != NULL)
        if (!epctx__cut_number(&a, ',', &number) || !epctx__cut_number(&socs, ',', &number) ||
            (chips->vtcms.size > 0 && !epctx__cut_number(&v, ',', &number)))
            return false;
    return socs.data == NULL && (chips->vtcms.size == 0 || v.data == NULL);
}

/* The chip of the model that fits this one best. v6x and v7x exclude each other; 0 is not known. */
static epctx_compat epctx__fit_chip(epctx__chips model, uint64_t arch, uint64_t vtcm,
                                    const char **why) {
    epctx_compat best = EPCTX_COMPAT_UNSUPPORTED;
    uint64_t a = 0, v = 0;
    *why = "made for another HTP architecture or VTCM";
    while (best != EPCTX_COMPAT_OPTIMAL && epctx__next_chip(&model, &a, &v)) {
        if (a == arch && v == vtcm) {
            best = EPCTX_COMPAT_OPTIMAL;
            *why = "same backend, architecture and VTCM";
        } else if ((a == 0 || a >= 73 || arch < 73) && a <= arch && (v <= vtcm || vtcm == 0)) {
            best = EPCTX_COMPAT_PREFER_RECOMPILATION;
            *why = a == 0 ? "the model's string does not tell the HTP architecture"
                   : a == arch && (v == 0 || vtcm == 0)
                       ? "same backend and architecture; one string does not tell VTCM"
                       : "made for an older or smaller chip";
        }
    }
    if (best == EPCTX_COMPAT_OPTIMAL || arch != 0) return best;
    *why = "this machine's string does not tell its HTP architecture";
    return EPCTX_COMPAT_NOT_APPLICABLE;
}

/* A string with several chips stands for as many machines: the one that fits least decides. */
static epctx_compat epctx__compare_chips(epctx__chips model, epctx__chips runtime,
                                         const char **why) {
    epctx_compat worst = EPCTX_COMPAT_NOT_APPLICABLE;
    uint64_t arch = 0, vtcm = 0;
    while (epctx__next_chip(&runtime, &arch, &vtcm)) {
        const char *text;
        const epctx_compat one = epctx__fit_chip(model, arch, vtcm, &text);
        if (one > worst || one == EPCTX_COMPAT_NOT_APPLICABLE) *why = text;
        if (one == EPCTX_COMPAT_NOT_APPLICABLE) return one;
        if (one > worst) worst = one;
    }
    return worst;
}

/* The architecture of the first chip; false: it is not known. */
static bool epctx__first_arch(epctx__chips chips, uint64_t *arch) {
    uint64_t vtcm;
    return epctx__next_chip(&chips, arch, &vtcm) && *arch != 0;
}

/* A machine whose EP writes the second form reads both. If it lists several chips, the model must
 * have one for each. */
static epctx_compat epctx__compare_qnn(const epctx_profile *profile, epctx_str model,
                                       epctx_str runtime, const char **why) {
    enum { EPCTX__BACKEND = 0, EPCTX__SDK = 1, EPCTX__API = 4, EPCTX__BLOB = 7, EPCTX__ARCH = 10 };
    epctx_compat verdict = EPCTX_COMPAT_UNSUPPORTED;
    epctx__chips own, theirs;
    uint64_t m[12], r[12];
    const bool second = epctx__read_qnn2(runtime, r, &own);
    const bool chips = second && epctx__read_qnn2(model, m, &theirs);
    (void)profile;
    if ((!chips && !epctx__read_qnn(model, m)) || (!second && !epctx__read_qnn(runtime, r))) {
        *why = "a string does not have QNN's six fields, or eight if this machine writes eight";
        return EPCTX_COMPAT_NOT_APPLICABLE;
    }
    if (m[EPCTX__BACKEND] != r[EPCTX__BACKEND]) {
        *why = "another QNN backend";
    } else if (second && m[11] == 1 && r[11] != 1) {
        *why = "made for QNN's user driver, which this machine does not use";
    } else if (((!second || r[11] != 1) && epctx__is_newer(m + EPCTX__API, r + EPCTX__API, 2)) ||
               ((!second || r[11] == 1) && epctx__is_newer(m + EPCTX__SDK, r + EPCTX__SDK, 2))) {
        *why = "made with a newer SDK than this machine has";
    } else if (!second && epctx__is_newer(m + EPCTX__BLOB, r + EPCTX__BLOB, 3)) {
        *why = "the binary is too new for this machine";
    } else if (chips) {
        return epctx__compare_chips(theirs, own, why);
    } else if (second && !epctx__first_arch(own, &r[EPCTX__ARCH])) {
        *why = "this machine's string does not tell its HTP architecture";
        return EPCTX_COMPAT_NOT_APPLICABLE;
    } else if (m[EPCTX__ARCH] > r[EPCTX__ARCH]) {
        *why = "made for a newer HTP architecture";
    } else {
        bool same = m[EPCTX__ARCH] == r[EPCTX__ARCH];
        *why = same ? "same backend and architecture" : "made for an older HTP architecture";
        verdict = same ? EPCTX_COMPAT_OPTIMAL : EPCTX_COMPAT_PREFER_RECOMPILATION;
    }
    return verdict;
}

static bool epctx__compat_find(epctx_str text, epctx_str key, epctx_str *value) {
    epctx_str k;
    while (epctx__compat_next(&text, &k, value))
        if (epctx_str_eq(k, key)) return true;
    *value = epctx_str_of("");
    return false;
}

/* Is the key's value the same in both, or absent from both? */
static bool epctx__compat_same(epctx_str a, epctx_str b, const char *key, bool major) {
    epctx_str x, y;
    (void)epctx__compat_find(a, epctx_str_of(key), &x);
    (void)epctx__compat_find(b, epctx_str_of(key), &y);
    return major ? epctx_str_eq(epctx_str_cut(&x, '.'), epctx_str_cut(&y, '.'))
                 : epctx_str_eq(x, y);
}

/* Bounds the search of every key in the other string. */
#define EPCTX__COMPAT_MOST 4096u

/* `own`: strings of epctx_backend_compatibility, whose unknown keys are ignored. Must not load: a
 * context of another architecture (EPC-111) or major SDK version (EPC-112). May load: of another
 * minor version (EPC-113). */
static epctx_compat epctx__compare_pairs(epctx_str model, epctx_str runtime, bool own,
                                         const char **why) {
    static const struct {
        const char *key;
        bool own, major;
        epctx_compat verdict; /* when the values differ */
        const char *text;
    } rules[] = {
        {"epctx", true, false, EPCTX_COMPAT_NOT_APPLICABLE, "different string formats"},
        {"source", true, false, EPCTX_COMPAT_NOT_APPLICABLE, "different EPs"},
        {"", false, false, EPCTX_COMPAT_NOT_APPLICABLE, "different EPs"},
        {"arch", true, false, EPCTX_COMPAT_UNSUPPORTED, "another architecture"},
        {"arch", false, false, EPCTX_COMPAT_UNSUPPORTED, "another architecture"},
        {"hardware_architecture", false, false, EPCTX_COMPAT_UNSUPPORTED, "another architecture"},
        {"sdk", true, true, EPCTX_COMPAT_UNSUPPORTED, "another major version of the SDK"},
        {"sdk", true, false, EPCTX_COMPAT_PREFER_RECOMPILATION, "another version"}};
    epctx_str key, value, other, rest;
    size_t i;
    *why = "the same values";
    for (i = 0; i < 2 && !own; i++) {
        rest = i == 0 ? model : runtime;
        while (epctx__compat_next(&rest, &key, &value)) {
            if (!epctx__compat_find(i == 0 ? runtime : model, key, &other)) {
                *why = "the strings have different keys";
                return EPCTX_COMPAT_NOT_APPLICABLE;
            }
        }
    }
    for (i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].own == own &&
            !epctx__compat_same(model, runtime, rules[i].key, rules[i].major)) {
            *why = rules[i].text;
            return rules[i].verdict;
        }
    }
    while (!own && !epctx_str_eq(model, runtime) && epctx__compat_next(&model, &key, &value)) {
        (void)epctx__compat_find(runtime, key, &other);
        if (!epctx_str_eq(value, other)) {
            *why = "another version";
            return EPCTX_COMPAT_PREFER_RECOMPILATION;
        }
    }
    return EPCTX_COMPAT_OPTIMAL;
}

/* -- JSON, for OpenVINO's string: read in place, nothing is allocated -- */

static bool epctx__json_take(epctx_str *rest, const char *word) {
    if (!epctx_str_starts(*rest, word)) return false;
    epctx__str_skip(rest, strlen(word));
    return true;
}

static void epctx__json_space(epctx_str *rest) {
    while (rest->size > 0 && memchr(" \t\r\n", *rest->data, 4) != NULL) epctx__str_skip(rest, 1);
}

/* The code unit of UTF-16 of an escape "\uXXXX" at the start, or EPCTX_NO_CHAR. */
static uint32_t epctx__json_unit(epctx_str text) {
    static const char digits[] = "0123456789abcdefABCDEF";
    uint32_t unit = 0;
    size_t i;
    if (text.size < 6 || !epctx_str_starts(text, "\\u")) return EPCTX_NO_CHAR;
    for (i = 2; i < 6; i++) {
        const char *digit = (const char *)memchr(digits, text.data[i], sizeof digits - 1);
        if (digit == NULL) return EPCTX_NO_CHAR;
        unit = unit << 4 | (uint32_t)(digit - digits < 16 ? digit - digits : digit - digits - 6);
    }
    return unit;
}

/* The character of an escape at the start and its bytes, or EPCTX_NO_CHAR. */
static uint32_t epctx__json_escape(epctx_str text, size_t *size) {
    static const char letters[] = "\"\\/bfnrt", codes[] = "\"\\/\b\f\n\r\t";
    const char *letter =
        text.size > 1 ? (const char *)memchr(letters, text.data[1], sizeof letters - 1) : NULL;
    uint32_t unit = epctx__json_unit(text), low;
    *size = 6;
    if (letter != NULL) {
        *size = 2;
        return (uint32_t)codes[letter - letters];
    }
    if (unit < 0xd800 || unit > 0xdfff) return unit;
    epctx__str_skip(&text, 6);
    low = epctx__json_unit(text);
    *size = 12;
    return unit < 0xdc00 && low >= 0xdc00 && low <= 0xdfff
               ? 0x10000 + ((unit - 0xd800) << 10 | (low - 0xdc00))
               : EPCTX_NO_CHAR;
}

/* Takes a character of a string. At its end and before invalid JSON it takes none and
 * returns EPCTX_NO_CHAR. */
static uint32_t epctx__json_char(epctx_str *rest) {
    size_t size = 0;
    uint32_t code = rest->size > 0 ? epctx_str_char(*rest, 0, &size) : EPCTX_NO_CHAR;
    if (code == '"' || code < 0x20) return EPCTX_NO_CHAR;
    if (code == '\\') code = epctx__json_escape(*rest, &size);
    if (code != EPCTX_NO_CHAR) epctx__str_skip(rest, size);
    return code;
}

/* Takes a string; `text` is what is between its quotes, with the escapes. */
static bool epctx__json_text(epctx_str *rest, epctx_str *text) {
    if (!epctx__json_take(rest, "\"")) return false;
    *text = *rest;
    while (epctx__json_char(rest) != EPCTX_NO_CHAR) {
    }
    text->size -= rest->size;
    return epctx__json_take(rest, "\"");
}

/* Whether two such texts are equal. */
static bool epctx__json_same(epctx_str a, epctx_str b) {
    uint32_t x, y;
    do {
        x = epctx__json_char(&a);
        y = epctx__json_char(&b);
    } while (x == y && x != EPCTX_NO_CHAR);
    return x == y;
}

static bool epctx__json_digits(epctx_str *rest) {
    const size_t before = rest->size;
    while (rest->size > 0 && *rest->data >= '0' && *rest->data <= '9') epctx__str_skip(rest, 1);
    return rest->size < before;
}

static bool epctx__json_number(epctx_str *rest) {
    (void)epctx__json_take(rest, "-");
    if (!epctx__json_take(rest, "0") && !epctx__json_digits(rest)) return false;
    if (epctx__json_take(rest, ".") && !epctx__json_digits(rest)) return false;
    if (!epctx__json_take(rest, "e") && !epctx__json_take(rest, "E")) return true;
    if (!epctx__json_take(rest, "+")) (void)epctx__json_take(rest, "-");
    return epctx__json_digits(rest);
}

/* A member of the outermost object: of several of one name the last counts. */
typedef struct epctx__json_field {
    const char *name;
    epctx_str text; /* without data if the value is not a string */
} epctx__json_field;

typedef struct epctx__json_fields {
    epctx__json_field *list;
    size_t count;
} epctx__json_fields;

static bool epctx__json_value(epctx_str *rest, unsigned deepest, const epctx__json_fields *members);

/* The rest of an object. `members` may be NULL. */
static bool epctx__json_object(epctx_str *rest, unsigned deepest,
                               const epctx__json_fields *members) {
    epctx_str name, value;
    size_t i;
    epctx__json_space(rest);
    if (epctx__json_take(rest, "}")) return true;
    do {
        epctx__json_space(rest);
        if (!epctx__json_text(rest, &name)) return false;
        epctx__json_space(rest);
        if (!epctx__json_take(rest, ":")) return false;
        epctx__json_space(rest);
        value = *rest;
        if (!epctx__json_value(rest, deepest, NULL)) return false;
        for (i = 0; members != NULL && i < members->count; i++) {
            epctx__json_field *m = &members->list[i];
            if (!epctx__json_same(name, epctx_str_of(m->name))) continue;
            if (!epctx__json_text(&value, &m->text)) m->text = epctx_str_of(NULL);
        }
        epctx__json_space(rest);
    } while (epctx__json_take(rest, ","));
    return epctx__json_take(rest, "}");
}

static bool epctx__json_list(epctx_str *rest, unsigned deepest) {
    epctx__json_space(rest);
    if (epctx__json_take(rest, "]")) return true;
    do {
        epctx__json_space(rest);
        if (!epctx__json_value(rest, deepest, NULL)) return false;
        epctx__json_space(rest);
    } while (epctx__json_take(rest, ","));
    return epctx__json_take(rest, "]");
}

/* Takes a value with at most `deepest` lists in each other; fills in `members` of an object. */
static bool epctx__json_value(epctx_str *rest, unsigned deepest,
                              const epctx__json_fields *members) {
    epctx_str text;
    if (epctx_str_starts(*rest, "\"")) return epctx__json_text(rest, &text);
    if (epctx__json_take(rest, "true") || epctx__json_take(rest, "false") ||
        epctx__json_take(rest, "null"))
        return true;
    if (deepest > 0 && epctx__json_take(rest, "{"))
        return epctx__json_object(rest, deepest - 1, members);
    if (deepest > 0 && epctx__json_take(rest, "[")) return epctx__json_list(rest, deepest - 1);
    return epctx__json_number(rest);
}

/* -- OpenVINO -- */

/* "1.1": the major version as the EP reads it, which is C++'s stoi(). False: none. */
static bool epctx__ov_major(epctx_str text, int64_t *major) {
    uint32_t c = epctx__json_char(&text);
    int64_t sign = 1;
    bool found = false;
    *major = 0;
    while (c == ' ' || (c >= '\t' && c <= '\r')) c = epctx__json_char(&text);
    if (c == '-') sign = -1;
    if (c == '-' || c == '+') c = epctx__json_char(&text);
    for (; c >= '0' && c <= '9' && *major <= INT32_MAX; c = epctx__json_char(&text)) {
        *major = *major * 10 + (c - '0');
        found = true;
    }
    *major *= sign;
    return found && *major >= INT32_MIN && *major <= INT32_MAX;
}

enum { EPCTX__OV_FORM = 0, EPCTX__OV_BIN, EPCTX__OV_OWN, EPCTX__OV_COUNT };

/* False if `text` is not JSON. `*object` tells whether it is an object. A missing member is an
 * empty string. */
static bool epctx__read_openvino(epctx_str text, epctx__json_field out[EPCTX__OV_COUNT],
                                 bool *object) {
    static const char *const names[EPCTX__OV_COUNT] = {"ovep_compat_ver", "ovep_bin_ver",
                                                       "ov_compat_string"};
    enum { EPCTX__JSON_DEEPEST = 64 };
    epctx__json_fields members;
    size_t i;
    members.list = out;
    members.count = EPCTX__OV_COUNT;
    for (i = 0; i < EPCTX__OV_COUNT; i++) {
        out[i].name = names[i];
        out[i].text = epctx_str_of("");
    }
    (void)epctx__json_take(&text, "\xef\xbb\xbf");
    epctx__json_space(&text);
    *object = epctx_str_starts(text, "{");
    if (!epctx__json_value(&text, EPCTX__JSON_DEEPEST, &members)) return false;
    epctx__json_space(&text);
    return text.size == 0;
}

/* OpenVINO's own string must be equal; that of a CPU is "meta=1.0;ov=2026.4.1;isa=Intel AVX2".
 * Only the driver of another device knows which other strings it accepts. */
static epctx_compat epctx__compare_ov_own(epctx_str model, epctx_str runtime, const char **why) {
    epctx_str isa;
    *why = "the same version of OpenVINO, instruction set and container";
    if (epctx__json_same(model, runtime)) return EPCTX_COMPAT_OPTIMAL;
    if (!epctx__compat_find(runtime, epctx_str_of("isa"), &isa)) {
        *why = "other texts in ov_compat_string, which only the device's driver can compare";
        return EPCTX_COMPAT_NOT_APPLICABLE;
    }
    *why = !epctx__compat_same(model, runtime, "ov", false)    ? "another version of OpenVINO"
           : !epctx__compat_same(model, runtime, "isa", false) ? "made for another instruction set"
                                                               : "another text in ov_compat_string";
    return EPCTX_COMPAT_UNSUPPORTED;
}

/* Answers like OpenVINO's plugin EP 1.8.1: three members of the object count, in this order. */
static epctx_compat epctx__compare_openvino(const epctx_profile *profile, epctx_str model,
                                            epctx_str runtime, const char **why) {
    epctx__json_field m[EPCTX__OV_COUNT], r[EPCTX__OV_COUNT];
    int64_t made = 0, reads = 0;
    bool object;
    (void)profile;
    if (!epctx__read_openvino(runtime, r, &object) || !object || r[EPCTX__OV_FORM].text.size == 0 ||
        !epctx__ov_major(r[EPCTX__OV_BIN].text, &reads) || r[EPCTX__OV_OWN].text.size == 0) {
        *why = "this machine's string is not JSON with ovep_compat_ver, ovep_bin_ver and "
               "ov_compat_string";
        return EPCTX_COMPAT_NOT_APPLICABLE;
    }
    if (!epctx__read_openvino(model, m, &object)) {
        *why = "the model's string is no JSON";
        return EPCTX_COMPAT_UNSUPPORTED;
    }
    if (!object || !epctx__json_same(m[EPCTX__OV_FORM].text, r[EPCTX__OV_FORM].text)) {
        *why = "another ovep_compat_ver: this EP does not read the string";
    } else if (m[EPCTX__OV_BIN].text.data == NULL) {
        *why = "ovep_bin_ver is no string";
    } else if (!epctx__ov_major(m[EPCTX__OV_BIN].text, &made) || made != reads) {
        *why = "another major version of the container (ovep_bin_ver)";
        return EPCTX_COMPAT_UNSUPPORTED;
    } else if (m[EPCTX__OV_OWN].text.size == 0) {
        *why = "there is no ov_compat_string, so the EP does not ask OpenVINO";
    } else {
        return epctx__compare_ov_own(m[EPCTX__OV_OWN].text, r[EPCTX__OV_OWN].text, why);
    }
    return EPCTX_COMPAT_NOT_APPLICABLE;
}

EPCTX_API epctx_compat epctx_compat_compare(const epctx_profile *profile, epctx_str model,
                                            epctx_str runtime, epctx_error *why) {
    epctx_compat verdict = EPCTX_COMPAT_NOT_APPLICABLE;
    const char *text = "";
    epctx_str format;
    if (model.size == 0 || runtime.size == 0) {
        text = "no compatibility string";
    } else if (model.size > EPCTX__COMPAT_MOST || runtime.size > EPCTX__COMPAT_MOST) {
        text = "the compatibility string is too long";
    } else if (profile != NULL && profile->compat_fn != NULL) {
        verdict = profile->compat_fn(profile, model, runtime, &text);
        if ((uint32_t)verdict > EPCTX_COMPAT_UNSUPPORTED) {
            verdict = EPCTX_COMPAT_NOT_APPLICABLE;
            text = "compat_fn gave no epctx_compat";
        }
    } else {
        bool own = epctx__compat_find(runtime, epctx_str_of("epctx"), &format);
        verdict = epctx__compare_pairs(model, runtime, own, &text);
    }
    epctx_error_clear(why);
    epctx_fail(why, EPCTX_ERR_VERSION, "%s", text != NULL ? text : "");
    if (why != NULL) why->status = EPCTX_OK;
    return verdict;
}

/* -- profiles -- */

#define EPCTX__BIT(attr) (1u << EPCTX_EPNODE_##attr)

/* -- facts: profiles -- */
/* Made of examples/epctx/facts/profiles.facts by `make facts`. ORT: microsoft/onnxruntime main at
 * 1.30-dev, below onnxruntime/core/providers unless stated otherwise. QNNP:
 * onnxruntime/onnxruntime-qnn. */
/* clang-format off */
static const epctx_profile epctx__profiles[] = {
    /* ORT qnn/builder/onnx_ctx_model_helper.cc and qnn_execution_provider.cc: sources lower-cased;
     * the graph is found by the node's name; one binary, node 0 is main; file name since PR 24461;
     * no dynamic shapes (EP page); cannot load several embedded partitions (issue 31977); inputs
     * and outputs are matched by name (qnn/builder/qnn_model.cc). Genuine: test data qnn_ctx of ORT
     * 1.18. */
    {/* name     */ "qnn",
     /* sources  */ {"QNNExecutionProvider", "QNN"},
     /* traits   */ EPCTX_TRAIT_ANY_CASE | EPCTX_TRAIT_STATIC_SHAPES | EPCTX_TRAIT_STATIC_OUTPUTS |
                    EPCTX_TRAIT_EMBED_ONE | EPCTX_TRAIT_IO_NAMES,
     /* key      */ EPCTX_KEY_NODE_NAME,
     /* required */ 0,
     /* binary   */ "{stem}_qnn.bin",
     /* sidecars */ {"qnn_op_trace.json", "*_schematic.bin"},
     /* attribute */ NULL,
     /* compat_fn */ epctx__compare_qnn},
    /* QNNP 2026-03 to EP 2.3.0, onnx_ctx_model_helper.cc and docs: as qnn, also QAIRTExport
     * (Olive's wrapper); refuses any ".." in a path; a DLC may replace the binary, with tmp*.json
     * beside it. Plugin EP 2.7.0 on the bench: several embedded partitions load; inputs and outputs
     * are matched by io_name_overrides, else by names if they are the binary's, else by position,
     * which is right only if the node's order is the binary's; its nodes have
     * is_multi_soc_ep_context. */
    {/* name     */ "qnn_plugin",
     /* sources  */ {"QNNExecutionProvider", "QNN", "QAIRTExport"},
     /* traits   */ EPCTX_TRAIT_ANY_CASE | EPCTX_TRAIT_STATIC_SHAPES | EPCTX_TRAIT_STATIC_OUTPUTS |
                    EPCTX_TRAIT_NO_DOTS | EPCTX_TRAIT_IO_OVERRIDES,
     /* key      */ EPCTX_KEY_NODE_NAME,
     /* required */ 0,
     /* binary   */ "{stem}_qnn.bin",
     /* sidecars */ {"qnn_op_trace.json", "*_schematic.bin", "tmp*.json"},
     /* attribute */ "is_multi_soc_ep_context",
     /* compat_fn */ epctx__compare_qnn},
    /* ORT openvino/onnx_ctx_model_helper.cc: exact source; embed_mode and ep_cache_context must be
     * stored; embed modes do not mix; all nodes name one container, or the first embeds it and the
     * rest store an empty string. Inputs and outputs are matched by name
     * (openvino/backends/basic_backend.h). Genuine: mul_1_ep_ctx_ovir.onnx (OpenVINO 2025.2). The
     * compatibility string is compared as onnxruntime-ep-openvino 1.8.1 answered 188 of 190
     * strings; not a number too large for a double, and lists deeper than 64. */
    {/* name     */ "openvino",
     /* sources  */ {"OpenVINOExecutionProvider"},
     /* traits   */ EPCTX_TRAIT_NO_MIX | EPCTX_TRAIT_IO_NAMES | EPCTX_TRAIT_ALL_NAME |
                    EPCTX_TRAIT_XML_PAIR | EPCTX_TRAIT_ONE_CONTEXT,
     /* key      */ EPCTX_KEY_PARTITION,
     /* required */ EPCTX__BIT(EP_CACHE_CONTEXT) | EPCTX__BIT(EMBED_MODE),
     /* binary   */ "{stem}_OpenVINOExecutionProvider.bin",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ epctx__compare_openvino},
    /* plugin EP 1.8.1 (OpenVINO 2026.4.1) on its CPU device: one container for a model, looked up
     * by partition_name; external nodes load with main_context 0, 2 or none, all must name it;
     * embedded the first node in ORT's order (epctx_view_graph_order) has the container and the
     * others no ep_cache_context, or an empty one; ep_sdk_version is not looked at. A model whose
     * compatibility string is JSON is of this EP. */
    {/* name     */ "openvino_plugin",
     /* sources  */ {"OpenVINOExecutionProvider"},
     /* traits   */ EPCTX_TRAIT_NO_MIX | EPCTX_TRAIT_IO_NAMES | EPCTX_TRAIT_ALL_NAME |
                    EPCTX_TRAIT_XML_PAIR | EPCTX_TRAIT_ANY_MAIN | EPCTX_TRAIT_ONE_CONTEXT,
     /* key      */ EPCTX_KEY_PARTITION,
     /* required */ 0,
     /* binary   */ "{stem}_OpenVINOExecutionProvider.bin",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ epctx__compare_openvino},
    /* ORT tensorrt/onnx_ctx_model_helper.cc: the graph must be exactly one node; a missing source
     * is taken; embed mode and path come from provider options of its own, and a folder that is
     * there is the folder of model and engines (GetCtxModelPath, GetPathOrParentPathOfCtxModel).
     * The engine's tensors are matched by name; one that is not found gets input 0
     * (tensorrt_execution_provider.cc). */
    {/* name     */ "tensorrt",
     /* sources  */ {"TensorrtExecutionProvider"},
     /* traits   */ EPCTX_TRAIT_NO_SOURCE | EPCTX_TRAIT_ONE_NODE | EPCTX_TRAIT_IO_NAMES |
                    EPCTX_TRAIT_STRIPPED_ENGINE | EPCTX_TRAIT_EACH_CONTEXT |
                    EPCTX_TRAIT_CONTEXT_FOLDER,
     /* key      */ EPCTX_KEY_NONE,
     /* required */ 0,
     /* binary   */ "*.engine",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ NULL},
    /* ORT nv_tensorrt_rtx/onnx_ctx_model_helper.cc and nv_execution_provider.cc: main_context 0 on
     * every node although each has its own engine; embedded by default; tensors are matched, and a
     * folder as path is taken, as in tensorrt. */
    {/* name     */ "nv_tensorrt_rtx",
     /* sources  */ {"NvTensorRTRTXExecutionProvider"},
     /* traits   */ EPCTX_TRAIT_NO_SOURCE | EPCTX_TRAIT_SECONDARY_CONTEXT | EPCTX_TRAIT_IO_NAMES |
                    EPCTX_TRAIT_EACH_CONTEXT | EPCTX_TRAIT_EMBEDS | EPCTX_TRAIT_CONTEXT_FOLDER,
     /* key      */ EPCTX_KEY_NONE,
     /* required */ 0,
     /* binary   */ "*.engine",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ NULL},
    /* onnxruntime/onnxruntime-ep-amdgpu 2026-08 src/migraphx/mgx_ep_ctx.cc: one .mxr for each node;
     * the first node without source is taken; dynamic shapes and contexts exclude each other; the
     * program's parameters are matched by name. */
    {/* name     */ "migraphx",
     /* sources  */ {"MIGraphXExecutionProvider"},
     /* traits   */ EPCTX_TRAIT_NO_SOURCE | EPCTX_TRAIT_STATIC_SHAPES | EPCTX_TRAIT_IO_NAMES |
                    EPCTX_TRAIT_EACH_CONTEXT,
     /* key      */ EPCTX_KEY_NONE,
     /* required */ 0,
     /* binary   */ "*.mxr",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ NULL},
    /* ORT 1.18 vitisai (PR 20926) asserts that the three attributes are stored; the rest from the
     * open MorphiZen EP (ROCm/hip-ep 2026-08): one main node, embedded by default. */
    {/* name     */ "vitisai",
     /* sources  */ {"VitisAIExecutionProvider", "MorphiZenExecutionProvider"},
     /* traits   */ EPCTX_TRAIT_ONE_PRIMARY | EPCTX_TRAIT_EMBEDS,
     /* key      */ EPCTX_KEY_NONE,
     /* required */ EPCTX__BIT(EP_CACHE_CONTEXT) | EPCTX__BIT(EMBED_MODE) | EPCTX__BIT(SOURCE),
     /* binary   */ "{file}_MORPHIZEN.bin",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ NULL},
    /* IBM/onnxruntime-ep-telum 2026-08: always embedded, a text payload per node, source is the
     * EP's own name. */
    {/* name     */ "telum",
     /* sources  */ {"TelumPluginExecutionProvider", "telum"},
     /* traits   */ EPCTX_TRAIT_ONLY_EMBEDDED | EPCTX_TRAIT_EACH_CONTEXT | EPCTX_TRAIT_EMBEDS,
     /* key      */ EPCTX_KEY_NONE,
     /* required */ EPCTX__BIT(EP_CACHE_CONTEXT) | EPCTX__BIT(SOURCE),
     /* binary   */ "",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ NULL},
    /* ORT test/autoep/library/example_plugin_ep/ep.cc: source is the registration name; loading is
     * not implemented. Genuine: written by ORT 1.30.0 through that EP. */
    {/* name     */ "example",
     /* sources  */ {"example_ep"},
     /* traits   */ EPCTX_TRAIT_OWN_SOURCE | EPCTX_TRAIT_EACH_CONTEXT,
     /* key      */ EPCTX_KEY_NONE,
     /* required */ EPCTX__BIT(SOURCE),
     /* binary   */ "*.ctx",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ NULL},
    /* epctx_npu.h: compiles fixed shapes; a context runs where a dimension of the context model is
     * free, too, with inputs of the compiled shape. */
    {/* name     */ "npu",
     /* sources  */ {"EpctxNpuExecutionProvider"},
     /* traits   */ 0,
     /* key      */ EPCTX_KEY_PARTITION,
     /* required */ EPCTX__BIT(EMBED_MODE) | EPCTX__BIT(PARTITION_NAME) | EPCTX__BIT(SOURCE),
     /* binary   */ "{model}_npu.bin",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ NULL},
    /* ORT docs/execution-providers/EP-Context-Design */
    {/* name     */ "generic",
     /* sources  */ {NULL},
     /* traits   */ EPCTX_TRAIT_NO_SOURCE | EPCTX_TRAIT_OWN_SOURCE | EPCTX_TRAIT_ANY_EP,
     /* key      */ EPCTX_KEY_NONE,
     /* required */ 0,
     /* binary   */ "{model}_*.bin",
     /* sidecars */ {NULL},
     /* attribute */ NULL,
     /* compat_fn */ NULL},
};
/* clang-format on */
/* -- end of facts -- */

EPCTX_API const epctx_profile *epctx_profiles_built_in(size_t *count) {
    if (count != NULL) *count = sizeof epctx__profiles / sizeof epctx__profiles[0];
    return epctx__profiles;
}

#ifdef EPCTX_PROFILES
extern const epctx_profile *EPCTX_PROFILES(size_t *count);
#else
#define EPCTX_PROFILES epctx_profiles_built_in
#endif

EPCTX_API const epctx_profile *epctx_profiles(size_t *count) {
    return EPCTX_PROFILES(count);
}

EPCTX_API const epctx_profile *epctx_profile_find(epctx_str name) {
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++)
        if (epctx_str_is(name, all[i].name)) return &all[i];
    return NULL;
}

static bool epctx__takes_source(const epctx_profile *profile, epctx_str source, bool any_case) {
    int i;
    for (i = 0; i < 4 && profile->sources[i] != NULL; i++) {
        epctx_str accepted = epctx_str_of(profile->sources[i]);
        if (any_case ? epctx_str_eq_nocase(source, accepted) : epctx_str_eq(source, accepted))
            return true;
    }
    return false;
}

static bool epctx__is_folder(const epctx_io *io, const char *path) {
    epctx_file_info info;
    return io != NULL && io->stat_fn != NULL && path != NULL && path[0] != '\0' &&
           io->stat_fn(io->user, path, &info, NULL) == EPCTX_OK && info.kind == EPCTX_FILE_FOLDER;
}

/* An existing folder as ep.context_file_path, for an EP that takes it for what it is: `room` gets
 * it, with a separator at its end. Else it is "". */
static epctx_status epctx__context_folder_in(const epctx_profile *profile, const epctx_io *io,
                                             const char *path, char room[EPCTX_PATH_MAX],
                                             epctx_error *error) {
    epctx_str parts[2];
    room[0] = '\0';
    if ((profile->traits & EPCTX_TRAIT_CONTEXT_FOLDER) == 0 || !epctx__is_folder(io, path))
        return EPCTX_OK;
    parts[0] = epctx_str_of(path);
    parts[1] = epctx_str_of(epctx_path_file(parts[0]).size > 0 ? "/" : "");
    return epctx__path_join(room, EPCTX_PATH_MAX, parts, 2, error);
}

/* *path becomes that folder, in `arena`, or stays. */
static epctx_status epctx__context_folder(const epctx_profile *profile, const epctx_io *io,
                                          const char **path, epctx_arena *arena,
                                          epctx_error *error) {
    char room[EPCTX_PATH_MAX];
    EPCTX__TRY(epctx__context_folder_in(profile, io, *path, room, error));
    return room[0] != '\0' ? epctx__copy(arena, epctx_str_of(room), path, error) : EPCTX_OK;
}

EPCTX_API epctx_status epctx_profile_path_base(const epctx_profile *profile, const epctx_io *io,
                                               epctx_str model_path, const char *context_file_path,
                                               char room[EPCTX_PATH_MAX], epctx_str *folder,
                                               epctx_error *error) {
    epctx_error_clear(error);
    EPCTX__TRY(epctx__context_folder_in(profile, io, context_file_path, room, error));
    return epctx_path_base(model_path, epctx_str_of(room[0] != '\0' ? room : context_file_path),
                           folder, error);
}

EPCTX_API const epctx_profile *epctx_profile_of(epctx_str source) {
    size_t count, i = 0;
    const epctx_profile *all = epctx_profiles(&count);
    while (i < count - 1 && !epctx__takes_source(&all[i], source, true)) i++;
    return &all[i];
}

/* Does any EP of this source read the context of a secondary node? */
static bool epctx__reads_secondary(epctx_str source) {
    const uint32_t read =
        EPCTX_TRAIT_EACH_CONTEXT | EPCTX_TRAIT_SECONDARY_CONTEXT | EPCTX_TRAIT_ANY_MAIN;
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++)
        if ((all[i].traits & read) != 0 && epctx__takes_source(&all[i], source, true)) return true;
    return false;
}

/* `attribute` names the one that an error is about. */
static epctx_status epctx__schema_check(const epctx_epnode *node, bool elsewhere,
                                        const char **attribute, epctx_error *error) {
    const epctx_str context = node->ep_cache_context;
    *attribute = "main_context";
    EPCTX__TRY(epctx__flag_check(node->main_context, EPCTX_ERR_BACKEND, error));
    *attribute = "embed_mode";
    EPCTX__TRY(epctx__flag_check(node->embed_mode, EPCTX_ERR_BACKEND, error));
    *attribute = "source";
    if (node->source.size == 0)
        return epctx_fail(error, EPCTX_ERR_BACKEND, "is empty, the name of the EP is expected");
    *attribute = "ep_cache_context";
    EPCTX__TRY(epctx__context_check(node, elsewhere, error));
    *attribute = "main_context";
    return node->main_context == 1 || context.size == 0 || epctx__reads_secondary(node->source)
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_BACKEND,
                            "is 0, expected 1: ep_cache_context has %u bytes, which are not read",
                            (uint64_t)context.size);
}

EPCTX_API epctx_status epctx_epnode_check(const epctx_epnode *node, const epctx_attr *own,
                                          size_t own_count, epctx_arena *arena,
                                          epctx_error *error) {
    const char *attribute = NULL;
    epctx_status status;
    bool elsewhere = false;
    size_t i;
    epctx_error_clear(error);
    for (i = 0; own != NULL && i < own_count; i++)
        elsewhere = elsewhere || epctx_str_is(own[i].name, "ep_dlc_context");
    status = epctx__schema_check(node, elsewhere, &attribute, error);
    if (status == EPCTX_OK) {
        attribute = NULL;
        status = epctx__own_attrs_check(own, own_count, arena, error);
    }
    epctx_blame(error, NULL, &node->name, attribute);
    return status;
}

EPCTX_API const epctx_profile *epctx_profile_for(const epctx_profile *wanted, epctx_str source) {
    const epctx_profile *own = epctx_profile_of(source);
    bool other = (own->traits & EPCTX_TRAIT_ANY_EP) == 0;
    return wanted == NULL || (other && !epctx__takes_source(wanted, source, true)) ? own : wanted;
}

static bool epctx__profile_is_foreign(const epctx_profile *profile, const epctx_binary_id *id) {
    if (id->sort != EPCTX_BINARY_SORT_FOREIGN && id->sort != EPCTX_BINARY_SORT_MODEL) return false;
    if ((profile->traits & EPCTX_TRAIT_ANY_EP) == 0) return true;
    switch (id->kind) {
    case EPCTX_BINARY_ONNX:
    case EPCTX_BINARY_ONE_BYTE:
    case EPCTX_BINARY_XML:
    case EPCTX_BINARY_JSON:
    case EPCTX_BINARY_TEXT:
    case EPCTX_BINARY_GZIP:
    case EPCTX_BINARY_ZIP:
    case EPCTX_BINARY_TAR: return false;
    default: return true;
    }
}

EPCTX_API epctx_status epctx_profile_check_binary(const epctx_profile *profile,
                                                  const epctx_binary_id *id, epctx_error *error) {
    if (!epctx__profile_is_foreign(profile, id)) return EPCTX_OK;
    return epctx_fail(error, EPCTX_ERR_CONTEXT, "is %s, no context binary%s%s", id->name,
                      id->cure != NULL ? ": " : "", id->cure != NULL ? id->cure : "");
}

static epctx_status epctx__refuse_foreign(const epctx_profile *profile, epctx_span payload,
                                          epctx_error *error) {
    epctx_binary_id id;
    epctx_binary_identify(payload, payload, payload.size, &id);
    return epctx_profile_check_binary(profile, &id, error);
}

#ifndef EPCTX_NO_WIRE
EPCTX_API const epctx_profile *epctx_profile_of_node(const epctx_profile *wanted,
                                                     const epctx_node_view *node) {
    const epctx_str source = epctx_view_node_attr_str(node, "source");
    const epctx_profile *own = epctx_profile_for(wanted, source);
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    epctx_attr_view attr;
    for (i = 0; own != wanted && (own->traits & EPCTX_TRAIT_ANY_EP) == 0 && i < count; i++)
        if (all[i].attribute != NULL && epctx__takes_source(&all[i], source, true) &&
            epctx_view_node_find_attr(node, all[i].attribute, &attr))
            return &all[i];
    return own;
}
#endif /* EPCTX_NO_WIRE */

EPCTX_API epctx_claim epctx_profile_claims(const epctx_profile *profile, const epctx_epnode *node) {
    bool any_case = (profile->traits & EPCTX_TRAIT_ANY_CASE) != 0;
    if ((node->present & EPCTX__BIT(SOURCE)) == 0 && node->source.size == 0)
        return (profile->traits & EPCTX_TRAIT_NO_SOURCE) != 0 ? EPCTX_CLAIM_YES
                                                              : EPCTX_CLAIM_MISSING;
    if ((profile->traits & EPCTX_TRAIT_OWN_SOURCE) != 0 ||
        epctx__takes_source(profile, node->source, any_case))
        return EPCTX_CLAIM_YES;
    return epctx__takes_source(profile, node->source, true) ? EPCTX_CLAIM_SPELLING : EPCTX_CLAIM_NO;
}

/* -- names of files -- */

/* Expands and consumes the first part of a pattern: a word in {}, or one character. */
static epctx_str epctx__pattern_part(const char **pattern, epctx_str model) {
    static const char *const words[] = {"{file}", "{stem}", "{model}"};
    epctx_str part;
    size_t i;
    for (i = 0; i < 3; i++) {
        if (epctx_str_starts(epctx_str_of(*pattern), words[i])) {
            part = i == 0 ? model : epctx__path_stem(model);
            part.size -= i == 2 && part.size > 4 && epctx__ends_with(part, "_ctx") ? 4 : 0;
            *pattern += strlen(words[i]);
            return part;
        }
    }
    part.data = (*pattern)++;
    part.size = 1;
    return part;
}

EPCTX_API bool epctx_profile_name_fits(const char *pattern, epctx_str name, epctx_str model) {
    while (*pattern != '\0') {
        epctx_str part;
        if (*pattern == '*') return epctx__ends_with(name, pattern + 1);
        part = epctx__pattern_part(&pattern, model);
        if (name.size < part.size || !epctx_str_eq(epctx__str(name.data, part.size), part))
            return false;
        epctx__str_skip(&name, part.size);
    }
    return name.size == 0;
}

/* Appends a name in portable characters. */
static void epctx__plain_name(epctx_text *text, epctx_str name, bool lower) {
    size_t i;
    for (i = 0; i < name.size; i++) {
        char ch = name.data[i];
        char low = epctx__lower(ch);
        bool plain = (low >= 'a' && low <= 'z') || (ch >= '0' && ch <= '9') || ch == '_' ||
                     ch == '-' || (ch == '.' && !lower && i > 0 && name.data[i - 1] != '.');
        epctx_text_put_char(text, !plain ? '_' : lower ? low : ch);
    }
}

static void epctx__star_name(epctx_text *text, const epctx_profile *profile,
                             const epctx_epnode *node) {
    static const char tail[] = "executionprovider";
    epctx_str name = node->source;
    epctx_str end = name;
    if ((profile->traits & EPCTX_TRAIT_EACH_CONTEXT) != 0) {
        name = node->partition_name.size > 0 ? node->partition_name : node->name;
        epctx__plain_name(text, name.size > 0 ? name : epctx_str_of("context"), false);
        return;
    }
    epctx__str_skip(&end, name.size > sizeof tail - 1 ? name.size - (sizeof tail - 1) : 0);
    name.size -=
        name.size > end.size && epctx_str_eq_nocase(end, epctx_str_of(tail)) ? end.size : 0;
    epctx__plain_name(text, name.size > 0 ? name : epctx_str_of("ctx"), true);
}

EPCTX_API epctx_status epctx_profile_fill_name(const char *pattern, const epctx_profile *profile,
                                               const epctx_epnode *node, epctx_str model, char *out,
                                               size_t capacity, epctx_error *error) {
    epctx_text text = epctx_text_of(out, capacity);
    const char *p = pattern;
    epctx_error_clear(error);
    while (*p != '\0') {
        epctx_str part;
        if (*p == '*' && profile != NULL && node != NULL) {
            epctx__star_name(&text, profile, node);
            p++;
            continue;
        }
        if (node != NULL && epctx_str_starts(epctx_str_of(p), "{node}")) {
            epctx__plain_name(&text, node->name.size > 0 ? node->name : epctx_str_of("context"),
                              false);
            p += 6;
            continue;
        }
        part = epctx__pattern_part(&p, model);
        if (part.size == 1 && part.data + 1 == p && *part.data == '{' &&
            memchr(p, '}', strlen(p)) != NULL) {
            return epctx_fail(error, EPCTX_ERR_ARG,
                              "name '%s': text in {} must be one of {stem} {model} {file}%s",
                              pattern, node != NULL ? " {node}" : "");
        }
        epctx_text_put(&text, part);
    }
    return text.cut ? epctx_fail(error, EPCTX_ERR_LIMIT,
                                 "the file name that '%s' gives is too long", pattern)
                    : EPCTX_OK;
}

/* ============================================================
 * >>option
 *
 * EPCTX_OPTION_LIST has a row per option; everything here walks over it. Values are checked as they
 * come (epctx__option_value), combinations in epctx_options_check, when it is known whether the
 * session generates or loads: an option that the phase does not use may be wrong, and is only
 * warned about. A key that is near a known one is an error, because it would have no effect. So is
 * one of the options that EPs had before there were session options (facts: aliases): the message
 * names the one of today.
 * ============================================================ */

#define EPCTX__OPTION_WORDS_SWITCH "0 1"
#define EPCTX__OPTION_WORDS_TEXT   ""
#define EPCTX__OPTION_WORDS_FILE   ""
#define EPCTX__OPTION_WORDS_FOLDER ""
#define EPCTX__OPTION_WORDS_NAME   ""
#define EPCTX__OPTION_WORDS_NUMBER ""
#define EPCTX__OPTION_WORDS_CHOICE "error copy nothing" /* in the order of epctx_no_nodes */

/* clang-format off */
static const epctx_option_info epctx__options[EPCTX_OPTION_COUNT] = {
#define EPCTX__OPTION_ROW(id, key, ort, type, fallback, phase, text) \
    {key, ort, EPCTX_OPTION_TYPE_##type, fallback, EPCTX__OPTION_WORDS_##type, \
     EPCTX_PHASE_##phase, text},
    EPCTX_OPTION_LIST(EPCTX__OPTION_ROW)
#undef EPCTX__OPTION_ROW
};
/* clang-format on */

/* An option of one EP, some of them obsolete, that equals a session option. */
typedef struct epctx__option_alias {
    const char *key;
    epctx_option option;
} epctx__option_alias;

/* -- facts: aliases -- */
/* Made of examples/epctx/facts/options.facts by `make facts`. */
/* clang-format off */
static const epctx__option_alias epctx__option_aliases[] = {
    {"trt_dump_ep_context_model", EPCTX_OPTION_CONTEXT_ENABLE},
    {"ort_migraphx_dump_ep_context_model", EPCTX_OPTION_CONTEXT_ENABLE},
    {"qnn_context_cache_enable", EPCTX_OPTION_CONTEXT_ENABLE},
    {"trt_ep_context_file_path", EPCTX_OPTION_CONTEXT_FILE_PATH},
    {"qnn_context_cache_path", EPCTX_OPTION_CONTEXT_FILE_PATH},
    {"trt_ep_context_embed_mode", EPCTX_OPTION_CONTEXT_EMBED_MODE},
    {"qnn_context_embed_mode", EPCTX_OPTION_CONTEXT_EMBED_MODE},
};
/* clang-format on */
/* -- end of facts -- */

EPCTX_API const epctx_option_info *epctx_option_list(size_t *count) {
    if (count != NULL) *count = EPCTX_OPTION_COUNT;
    return epctx__options;
}

EPCTX_API void epctx_options_init(epctx_options *options, epctx_arena *arena) {
    memset(options, 0, sizeof *options);
    options->arena = arena;
}

/* -- keys -- */

#define EPCTX__KEY_MOST 96u /* more than any key has */

/* Edit distance without regard to case. */
static size_t epctx__key_distance(epctx_str a, epctx_str b) {
    size_t row[EPCTX__KEY_MOST + 1];
    size_t i, k;
    if (a.size > EPCTX__KEY_MOST || b.size > EPCTX__KEY_MOST) return EPCTX__KEY_MOST + 1;
    for (k = 0; k <= b.size; k++) row[k] = k;
    for (i = 0; i < a.size; i++) {
        size_t before = row[0];
        row[0] = i + 1;
        for (k = 0; k < b.size; k++) {
            size_t best = before + (epctx__lower(a.data[i]) != epctx__lower(b.data[k]));
            before = row[k + 1];
            best = best < before + 1 ? best : before + 1;
            row[k + 1] = best < row[k] + 1 ? best : row[k] + 1;
        }
    }
    return row[b.size];
}

EPCTX_API const char *epctx_nearest_name(epctx_str word, const char *const *names) {
    const char *nearest = NULL;
    size_t best = word.size <= EPCTX__KEY_MOST ? word.size / 3 + 1 : 0;
    for (; *names != NULL; names++) {
        size_t distance = epctx__key_distance(word, epctx_str_of(*names));
        if (distance < best) {
            best = distance;
            nearest = *names;
        }
    }
    return nearest;
}

/* An unknown key: another component's, or a mistake. */
static epctx_status epctx__option_unknown(epctx_str key, epctx_error *error) {
    const char *nearest = NULL; /* of a key that is too long to be compared */
    size_t distance = EPCTX__KEY_MOST + 1;
    bool ours = epctx_str_starts(key, "epctx.") || epctx_str_starts(key, "EP_CONTEXT_") ||
                (epctx_str_starts(key, "ep.") && memchr(key.data + 3, '.', key.size - 3) == NULL);
    size_t i;
    for (i = 0; i < sizeof epctx__option_aliases / sizeof epctx__option_aliases[0]; i++) {
        if (epctx_str_eq_nocase(key, epctx_str_of(epctx__option_aliases[i].key))) {
            return epctx_fail(error, EPCTX_ERR_ARG,
                              "'%S' is an option of one EP: the session option is %s", &key,
                              epctx__options[epctx__option_aliases[i].option].key);
        }
    }
    for (i = 0; i < EPCTX_OPTION_COUNT; i++) {
        size_t d = epctx__key_distance(key, epctx_str_of(epctx__options[i].key));
        nearest = d < distance ? epctx__options[i].key : nearest;
        distance = d < distance ? d : distance;
    }
    return distance > 2 && !ours
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_ARG, "there is no session option '%S'%s%s", &key,
                            nearest != NULL ? ", the nearest is " : "",
                            nearest != NULL ? nearest : "");
}

/* EPCTX_OPTION_COUNT: none. */
static size_t epctx__option_find(epctx_str key) {
    size_t id = 0;
    while (id < EPCTX_OPTION_COUNT && !epctx_str_is(key, epctx__options[id].key)) id++;
    return id;
}

/* -- values -- */

#define EPCTX__OPTION_VALUE_MOST 8192u /* ORT's limit for a value */

/* Index of `word` in a list separated by spaces; false: not found. */
static bool epctx__word_index(const char *words, epctx_str word, size_t *index) {
    epctx_str rest = epctx_str_of(words);
    for (*index = 0; rest.size > 0; (*index)++)
        if (epctx_str_eq(epctx_str_cut(&rest, ' '), word)) return true;
    return false;
}

static epctx_status epctx__option_value(const epctx_option_info *info, epctx_str value,
                                        epctx_error *error) {
    const char *fault = NULL;
    size_t index;
    uint64_t number;
    if (value.size > EPCTX__OPTION_VALUE_MOST ||
        (value.size > 0 && memchr(value.data, '\0', value.size) != NULL)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "%s: a value of at most %u bytes without NUL is expected, found %u bytes",
                          info->key, (uint64_t)EPCTX__OPTION_VALUE_MOST, (uint64_t)value.size);
    }
    if (info->allowed[0] != '\0' && !epctx__word_index(info->allowed, value, &index)) {
        return epctx_fail(error, EPCTX_ERR_ARG, "%s: one of %s is expected, found '%S'", info->key,
                          info->allowed, &value);
    }
    if (info->type == EPCTX_OPTION_TYPE_NUMBER && !epctx_str_number(value, &number)) {
        return epctx_fail(error, EPCTX_ERR_ARG, "%s: a decimal number is expected, found '%S'",
                          info->key, &value);
    }
    if (info->type == EPCTX_OPTION_TYPE_NAME && value.size > 0) {
        fault = epctx__path_fault(value, 0);
        if (fault == NULL && (memchr(value.data, '/', value.size) != NULL ||
                              memchr(value.data, '\\', value.size) != NULL))
            fault = "has a folder";
    }
    return fault == NULL
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_ARG,
                            "%s: '%S' %s: a file name is expected, the file lies beside the model",
                            info->key, &value, fault);
}

static epctx_status epctx__option_store(epctx_options *o, size_t id, epctx_str value,
                                        epctx_error *error) {
    EPCTX__TRY(epctx__option_value(&epctx__options[id], value, error));
    if (o->arena == NULL)
        return epctx_fail(error, EPCTX_ERR_ARG, "the options have no arena to copy values into");
    return epctx__copy(o->arena, value, &o->values[id], error);
}

EPCTX_API epctx_status epctx_options_set(epctx_options *options, epctx_str key, epctx_str value,
                                         epctx_error *error) {
    size_t id = epctx__option_find(key);
    epctx_error_clear(error);
    return id < EPCTX_OPTION_COUNT ? epctx__option_store(options, id, value, error)
                                   : epctx__option_unknown(key, error);
}

EPCTX_API epctx_status epctx_options_set_list(epctx_options *options, const char *list,
                                              epctx_error *error) {
    epctx_options changed = *options;
    bool seen[EPCTX_OPTION_COUNT] = {false};
    epctx_error_clear(error);
    while (list != NULL && *list != '\0') {
        epctx_str entry, key, value;
        size_t id;
        entry.data = list;
        entry.size = epctx__until(list, " \t\r\n");
        list += entry.size + (list[entry.size] != '\0');
        if (entry.size == 0) continue;
        value = entry;
        key = epctx_str_cut(&value, '|');
        if (value.data == NULL || key.size == 0)
            return epctx_fail(error, EPCTX_ERR_ARG, "key|value is expected, found '%S'", &entry);
        id = epctx__option_find(key);
        if (id == EPCTX_OPTION_COUNT) {
            EPCTX__TRY(epctx__option_unknown(key, error));
            continue;
        }
        if (seen[id]) {
            return epctx_fail(error, EPCTX_ERR_ARG, "%s is set twice: keep one",
                              epctx__options[id].key);
        }
        seen[id] = true;
        EPCTX__TRY(epctx__option_store(&changed, id, value, error));
    }
    *options = changed;
    return EPCTX_OK;
}

/* -- effective values -- */

EPCTX_API bool epctx_option_given(const epctx_options *options, epctx_option option) {
    return options != NULL && options->values[option] != NULL;
}

EPCTX_API const char *epctx_option_text(const epctx_options *options, epctx_option option) {
    if (epctx_option_given(options, option)) return options->values[option];
    /* A shared binary cannot be embedded. */
    if (option == EPCTX_OPTION_CONTEXT_EMBED_MODE && options != NULL && options->profile != NULL &&
        (options->profile->traits & EPCTX_TRAIT_EMBEDS) != 0 &&
        !epctx_option_on(options, EPCTX_OPTION_SHARE_EP_CONTEXTS))
        return "1";
    return epctx__options[option].fallback;
}

EPCTX_API bool epctx_option_on(const epctx_options *options, epctx_option option) {
    return strcmp(epctx_option_text(options, option), "1") == 0;
}

static epctx_no_nodes epctx__option_no_nodes(const epctx_options *options) {
    size_t index;
    epctx_str word = epctx_str_of(epctx_option_text(options, EPCTX_OPTION_NO_NODES));
    return epctx__word_index(EPCTX__OPTION_WORDS_CHOICE, word, &index) ? (epctx_no_nodes)index
                                                                       : EPCTX_NO_NODES_ERROR;
}

/* -- combinations -- */

/* The conflict between options of sharing, or NULL. */
static const char *epctx__sharing_fault(const epctx_options *o) {
    bool share = epctx_option_on(o, EPCTX_OPTION_SHARE_EP_CONTEXTS);
    if (!share && epctx_option_on(o, EPCTX_OPTION_STOP_SHARE_EP_CONTEXTS)) {
        return "ep.stop_share_ep_contexts is 1 without ep.share_ep_contexts: the last session of a "
               "group needs both";
    }
    if (share && epctx_option_on(o, EPCTX_OPTION_CONTEXT_EMBED_MODE)) {
        return "ep.share_ep_contexts and ep.context_embed_mode are both 1: a shared binary is a "
               "file of its own, set ep.context_embed_mode to 0";
    }
    return NULL;
}

/* The conflict between options while generating, or NULL. Loading has none. */
static const char *epctx__options_fault(const epctx_options *o, bool memory, bool folder) {
    const char *path = epctx_option_text(o, EPCTX_OPTION_CONTEXT_FILE_PATH);
    epctx_str file = epctx_path_file(epctx_str_of(path));
    /* ORT treats a name without extension as a folder, except from its compile API. */
    bool extension = !epctx_option_on(o, EPCTX_OPTION_COMPILE_ONLY);
    const char *fault = epctx__sharing_fault(o);
    if (fault != NULL) return fault;
    if (path[0] != '\0' && !folder &&
        (epctx__names_folder(file) || (extension && epctx__path_stem(file).size == file.size))) {
        return "ep.context_file_path '%s' should not point to a folder: a file name with an "
               "extension is expected";
    }
    if (memory && path[0] == '\0')
        return "the model came from memory, so the output has no name: set ep.context_file_path";
    if (epctx_option_on(o, EPCTX_OPTION_DISABLE_MODEL_COMPILE))
        return "session.disable_model_compile is 1: it forbids to generate";
    if (epctx_option_given(o, EPCTX_OPTION_WEIGHTLESS) &&
        epctx_option_given(o, EPCTX_OPTION_WEIGHTLESS_NODES) &&
        epctx_option_on(o, EPCTX_OPTION_WEIGHTLESS) !=
            epctx_option_on(o, EPCTX_OPTION_WEIGHTLESS_NODES)) {
        return "ep.enable_weightless and its former name ep.enable_weightless_ep_context_nodes "
               "differ: keep the first";
    }
    if (epctx_option_on(o, EPCTX_OPTION_DISABLE_CPU_FALLBACK) &&
        epctx__option_no_nodes(o) != EPCTX_NO_NODES_ERROR) {
        return "session.disable_cpu_ep_fallback is 1, so a model for the CPU alone is an error: "
               "leave epctx.no_nodes at error";
    }
    return NULL;
}

/* `folder`: ep.context_file_path may be one. */
static epctx_status epctx__options_check(const epctx_options *options, uint32_t phase,
                                         const char *model_path, bool folder, epctx_error *error) {
    bool share = epctx_option_on(options, EPCTX_OPTION_SHARE_EP_CONTEXTS);
    const epctx_profile *profile = options != NULL ? options->profile : NULL;
    const char *fault;
    size_t i;
    epctx_error_clear(error);
    for (i = 0; options != NULL && i < EPCTX_OPTION_COUNT; i++)
        if (options->values[i] != NULL && (epctx__options[i].phases & phase) != 0) /* set by hand */
            EPCTX__TRY(
                epctx__option_value(&epctx__options[i], epctx_str_of(options->values[i]), error));
    if ((phase & EPCTX_PHASE_GENERATE) == 0) return EPCTX_OK;
    fault = epctx__options_fault(options, model_path == NULL || model_path[0] == '\0', folder);
    if (fault != NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG, fault,
                          epctx_option_text(options, EPCTX_OPTION_CONTEXT_FILE_PATH));
    }
    if (profile != NULL && (profile->traits & EPCTX_TRAIT_ONLY_EMBEDDED) != 0 &&
        (share || !epctx_option_on(options, EPCTX_OPTION_CONTEXT_EMBED_MODE))) {
        return epctx_fail(error, EPCTX_ERR_ARG, "%s, but %s reads no file",
                          share ? "ep.share_ep_contexts is 1" : "ep.context_embed_mode is 0",
                          profile->name);
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_options_check(const epctx_options *options, uint32_t phase,
                                           const char *model_path, epctx_error *error) {
    const epctx_profile *profile = options != NULL ? options->profile : NULL;
    return epctx__options_check(
        options, phase, model_path,
        profile != NULL && (profile->traits & EPCTX_TRAIT_CONTEXT_FOLDER) != 0, error);
}

/* -- of a session -- */

static void epctx__warn(const epctx_hooks *hooks, const char *text) {
    if (hooks != NULL && hooks->log_fn != NULL) hooks->log_fn(hooks->user, EPCTX_LOG_WARNING, text);
}

/* The name of an option of the EP's own; empty: `key` is none. */
static epctx_str epctx__own_option(const char *ep_name, epctx_str key) {
    size_t size = strlen(ep_name);
    size_t i;
    if (!epctx_str_starts(key, "ep.") || key.size <= size + 4 || key.data[size + 3] != '.')
        return epctx__str(NULL, 0);
    for (i = 0; i < size; i++)
        if (key.data[i + 3] != epctx__lower(ep_name[i])) return epctx__str(NULL, 0);
    return epctx__str(key.data + size + 4, key.size - size - 4);
}

/* A misspelled option would have no effect. */
static epctx_status epctx__own_check(const epctx_entries *in, epctx_str name, epctx_error *error) {
    static const char *const none[] = {NULL};
    const char *const *own = in->own != NULL ? in->own : none;
    const char *nearest = epctx_nearest_name(name, own);
    char room[400];
    epctx_text known = epctx_text_of(room, sizeof room);
    size_t i;
    for (i = 0; own[i] != NULL; i++) {
        if (epctx_str_is(name, own[i])) return EPCTX_OK;
        epctx_text_put_format(&known, "%s%s", i > 0 ? ", " : "", own[i]);
    }
    return epctx_fail(error, EPCTX_ERR_ARG, "%s has no option '%S'%s%s%s%s%s", in->ep_name, &name,
                      nearest != NULL ? ", did you mean '" : "", nearest != NULL ? nearest : "",
                      nearest != NULL ? "'?" : "", i > 0 ? ": it knows " : ", it has none", room);
}

/* One entry. What the phase does not need may be wrong. */
static epctx_status epctx__option_read(epctx_options *o, const epctx_entries *in, size_t at,
                                       uint32_t phase, const epctx_hooks *hooks,
                                       epctx_error *error) {
    epctx_str key = epctx_str_of(in->keys[at]);
    epctx_str own = epctx__own_option(in->ep_name, key);
    size_t id = epctx__option_find(key);
    epctx_error why;
    epctx_status status;
    if (own.size > 0) return epctx__own_check(in, own, error);
    status = epctx_options_set(o, key, epctx_str_of(in->values[at]), &why);
    if (status == EPCTX_OK) return EPCTX_OK;
    if (status != EPCTX_ERR_ARG ||
        (id < EPCTX_OPTION_COUNT && (epctx__options[id].phases & phase) != 0)) {
        if (error != NULL) *error = why;
        return status;
    }
    epctx__warn(hooks, why.message);
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_options_read(epctx_options *options, const epctx_entries *entries,
                                          const epctx_hooks *hooks, epctx_error *error) {
    const char *decides = epctx__options[EPCTX_OPTION_CONTEXT_ENABLE].key;
    epctx_options asked;
    uint32_t phase = EPCTX_PHASE_LOAD;
    size_t i;
    epctx_error_clear(error);
    if (options->arena == NULL)
        return epctx_fail(error, EPCTX_ERR_ARG, "the options have no arena to copy values into");
    for (i = 0; i < entries->count; i++)
        if (strcmp(entries->keys[i], decides) == 0 && strcmp(entries->values[i], "1") == 0)
            phase = EPCTX_PHASE_GENERATE;
    for (i = 0; i < entries->count; i++)
        EPCTX__TRY(epctx__option_read(options, entries, i, phase, hooks, error));
    asked = *options;
    asked.values[EPCTX_OPTION_CONTEXT_FILE_PATH] = NULL;
    asked.values[EPCTX_OPTION_DISABLE_MODEL_COMPILE] = NULL;
    if (phase == EPCTX_PHASE_LOAD && epctx__sharing_fault(options) != NULL)
        epctx__warn(hooks, epctx__sharing_fault(options));
    return epctx_options_check(&asked, phase, "model", error); /* the model is not known yet */
}

/* ============================================================
 * >>state
 *
 * epctx_model_files lists the files that a model needs: context binaries and what stands beside
 * them, the model that a weightless context reads, sidecars of the EP, external data of tensors. It
 * walks over the EPContext nodes, then over the tensors. Each file is looked at once, whoever names
 * it (epctx__file_look); of one that cannot be used the list says why not.
 * ============================================================ */

#ifndef EPCTX_NO_WIRE

typedef struct epctx__files {
    const epctx_model *model;
    epctx_arena *arena;
    epctx_error *error;
    epctx_map seen[2], sidecars; /* files of initializers and others; profiles */
    epctx_list list;
    epctx_dependency *last;     /* added */
    const char *context_folder; /* of the current node's binary; NULL: unknown */
    epctx_str model_file;       /* the context model's name, for patterns */
    const char *external_folder;
    const char *base, *given;     /* folders that ep.context_file_path means: for most EPs, and for
                                     EPCTX_TRAIT_CONTEXT_FOLDER, if it is one */
    const char *named;            /* the path that names the model */
    const epctx_profile *profile; /* given by the caller, or NULL */
    bool optional;                /* sessions do not need the current file */
    uint32_t flags;
    bool no_files;
} epctx__files;

/* Finds a file; records its path, or why it is unusable. */
static epctx_status epctx__file_look(epctx__files *f, epctx_dependency *file) {
    const epctx_io *io = epctx_model_io(f->model);
    epctx_error error;
    epctx_file_info info;
    char path[EPCTX_PATH_MAX];
    bool look = !f->no_files && io != NULL && file->folder != NULL;
    epctx_error_clear(&error);
    if (file->folder == NULL) {
        file->status = epctx_fail(&error, EPCTX_ERR_PATH,
                                  "the model came from memory: the folder is not known");
    } else if (!look) {
        file->status = epctx_path_check(file->name, &error);
    } else {
        file->status = epctx_path_find(io, epctx_str_of(file->folder), file->name, f->flags, path,
                                       sizeof path, &error);
        if (file->status == EPCTX_OK) {
            file->status = io->stat_fn(io->user, path, &info, &error);
            file->size = file->status == EPCTX_OK ? info.size : 0;
        }
    }
    if (file->status != EPCTX_OK)
        return epctx__copy(f->arena, epctx_str_of(error.message), &file->problem, f->error);
    return look ? epctx__copy(f->arena, epctx_str_of(path), &file->path, f->error) : EPCTX_OK;
}

/* Finds or adds the entry of a file. */
static epctx_status epctx__file_add(epctx__files *f, epctx_file_use use, epctx_str name,
                                    epctx_str node, const char *attribute, bool required) {
    bool initializers = use == EPCTX_USE_INITIALIZERS;
    epctx_map *seen = &f->seen[initializers];
    uint32_t at = epctx_map_get(seen, name);
    epctx_dependency *file;
    if (at == EPCTX_MAP_NONE) {
        at = (uint32_t)f->list.count;
        file = (epctx_dependency *)epctx_list_add(&f->list, f->arena, sizeof *file);
        if (file == NULL) return epctx__nomem(f->error, f->arena->missing);
        EPCTX__TRY(epctx__map_set(seen, name, at, f->error));
        file->use = use;
        file->name = name;
        file->node = node;
        file->attribute = attribute;
        file->folder = initializers ? f->external_folder : f->context_folder;
        EPCTX__TRY(epctx__file_look(f, file));
    }
    file = (epctx_dependency *)f->list.items + at;
    f->last = file;
    file->users++;
    file->required = file->required || (required && !f->optional);
    return EPCTX_OK;
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

static bool epctx__match_name(void *state, const char *name) {
    epctx__matches *m = (epctx__matches *)state;
    char *copy;
    int at = m->count;
    if (!epctx_profile_name_fits(m->pattern, epctx_str_of(name), m->model)) return true;
    while (at > 0 && strcmp(m->names[at - 1], name) > 0) at--;
    if (at == EPCTX_MATCH_MAX) return true; /* behind all that are kept */
    copy = epctx_arena_copy(m->arena, epctx_str_of(name));
    m->full_memory = copy == NULL;
    if (copy != NULL) {
        m->count += m->count < EPCTX_MATCH_MAX;
        memmove(&m->names[at + 1], &m->names[at], (size_t)(m->count - 1 - at) * sizeof m->names[0]);
        m->names[at] = copy;
    }
    return copy != NULL;
}

/* Lists the existing sidecars of one name or pattern. */
static epctx_status epctx__files_sidecar(epctx__files *f, const char *name) {
    const epctx_io *io = epctx_model_io(f->model);
    const epctx_str nobody = epctx_str_of("");
    char path[EPCTX_PATH_MAX];
    epctx__matches found;
    int i;
    memset(&found, 0, sizeof found);
    found.arena = f->arena;
    found.pattern = name;
    found.model = f->model_file;
    if (name[epctx__until(name, "*{")] == '\0') {
        found.names[found.count++] = name;
    } else if (io->list_fn == NULL) {
        EPCTX__TRY(epctx__file_add(f, EPCTX_USE_COMPANION, epctx_str_of(name), nobody, "", false));
        f->last->status = EPCTX_ERR_UNSUPPORTED;
        f->last->problem = "a pattern: this epctx_io cannot list folders";
    } else if (io->list_fn(io->user, f->context_folder, epctx__match_name, &found, NULL) !=
               EPCTX_OK) {
        return EPCTX_OK; /* cannot be listed: no sidecars */
    }
    if (found.full_memory) return epctx__nomem(f->error, f->arena->missing);
    for (i = 0; i < found.count; i++) {
        epctx_str file = epctx_str_of(found.names[i]);
        if (epctx_path_find(io, epctx_str_of(f->context_folder), file, f->flags, path, sizeof path,
                            NULL) == EPCTX_OK)
            EPCTX__TRY(epctx__file_add(f, EPCTX_USE_COMPANION, file, nobody, "", false));
    }
    return EPCTX_OK;
}

/* Sidecars have fixed names beside the model, once for all nodes of an EP. */
static epctx_status epctx__files_sidecars(epctx__files *f, const epctx_profile *profile) {
    epctx_str key = epctx_str_of(profile->name);
    int i;
    if (f->no_files || f->context_folder == NULL || epctx_model_io(f->model) == NULL ||
        epctx__has(&f->sidecars, key))
        return EPCTX_OK;
    EPCTX__TRY(epctx__map_set(&f->sidecars, key, 0, f->error));
    for (i = 0; i < 4 && profile->sidecars[i] != NULL; i++)
        EPCTX__TRY(epctx__files_sidecar(f, profile->sidecars[i]));
    return EPCTX_OK;
}

/* An OpenVINO IR has its weights in a file with ".bin" instead of ".xml". */
static bool epctx__has_beside(epctx_str context) {
    return epctx__ends_with(context, ".xml");
}

static epctx_status epctx__files_epnode(epctx__files *f, const epctx_node_view *view) {
    epctx_epnode node;
    const epctx_profile *profile;
    bool looks;
    epctx_str dlc = epctx_view_node_attr_str(view, "ep_dlc_context");
    if (epctx_view_read_epnode(view, &node, NULL) != EPCTX_OK) return EPCTX_OK;
    profile = epctx_profile_of_node(f->profile, view);
    looks = (profile->traits & EPCTX_TRAIT_CONTEXT_FOLDER) != 0 && f->given != NULL;
    f->context_folder = looks ? f->given : f->base;
    f->model_file = epctx_path_file(epctx_str_of(looks ? f->model->path : f->named));
    if (node.embed_mode == 0 && dlc.size == 0 &&
        (node.main_context == 1 || (profile->traits & EPCTX_TRAIT_SECONDARY_CONTEXT) != 0 ||
         node.ep_cache_context.size > 0)) {
        epctx_str name = node.ep_cache_context;
        EPCTX__TRY(
            epctx__file_add(f, EPCTX_USE_CONTEXT, name, node.name, "ep_cache_context", true));
        if (epctx__has_beside(name)) {
            char *bin = epctx_arena_copy(f->arena, name);
            if (bin == NULL) return epctx__nomem(f->error, f->arena->missing);
            memcpy(bin + name.size - 4, ".bin", 4);
            name.data = bin;
            EPCTX__TRY(
                epctx__file_add(f, EPCTX_USE_COMPANION, name, node.name, "ep_cache_context", true));
        }
    }
    if (dlc.size > 0)
        EPCTX__TRY(epctx__file_add(f, EPCTX_USE_CONTEXT, dlc, node.name, "ep_dlc_context", true));
    if (node.onnx_model_filename.size > 0) {
        EPCTX__TRY(epctx__file_add(
            f, EPCTX_USE_SOURCE_MODEL, node.onnx_model_filename, node.name, "onnx_model_filename",
            epctx__ends_with(node.ep_cache_context, ".stripped.engine") ||
                epctx_view_node_attr_str(view, EPCTX_WEIGHTS_ATTR).size > 0));
    }
    return epctx__files_sidecars(f, profile);
}

EPCTX_API epctx_status epctx_model_files(const epctx_model *model, const epctx_check_opts *opts,
                                         epctx_arena *arena, epctx_dependency **out, size_t *count,
                                         epctx_error *error) {
    static const epctx_check_opts defaults = {NULL, NULL, 0, false, NULL, NULL};
    epctx_str path = epctx_str_of(model->path);
    epctx_str folder = epctx_str_of(""), wanted, external;
    epctx_walk walk;
    epctx_node_view node;
    epctx_tensor_view tensor;
    epctx__files f;
    epctx_error_clear(error);
    opts = opts != NULL ? opts : &defaults;
    wanted = epctx_str_of(opts->context_file_path);
    external = epctx_str_of(opts->external_folder != NULL ? opts->external_folder
                                                          : model->external_folder);
    memset(&f, 0, sizeof f);
    f.model = model;
    f.arena = arena;
    f.error = error;
    f.flags = model->path_flags | opts->path_flags;
    f.no_files = opts->no_files;
    f.profile = opts->profile;
    f.named = opts->context_file_path != NULL ? opts->context_file_path : model->path;
    epctx_map_init(&f.seen[0], arena);
    epctx_map_init(&f.seen[1], arena);
    epctx_map_init(&f.sidecars, arena);
    if (epctx_path_base(path, wanted, &folder, NULL) == EPCTX_OK)
        EPCTX__TRY(epctx__copy(arena, folder, &f.base, error));
    if (!f.no_files && wanted.size > 0 &&
        epctx__is_folder(epctx_model_io(model), opts->context_file_path))
        f.given = opts->context_file_path;
    if (external.size > 0 || path.size > 0) {
        EPCTX__TRY(epctx__copy(arena, external.size > 0 ? external : epctx_path_folder(path),
                               &f.external_folder, error));
    }
    /* Sessions do not read training graphs, but their files move with the model. */
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &node)) {
        f.optional = walk.in_training;
        if (epctx_view_is_epnode(&node)) EPCTX__TRY(epctx__files_epnode(&f, &node));
    }
    epctx_walk_begin(&walk, model);
    while (epctx_walk_tensor(&walk, &tensor)) {
        f.optional = walk.in_training;
        if (tensor.external) {
            EPCTX__TRY(epctx__file_add(&f, EPCTX_USE_INITIALIZERS, tensor.location, tensor.name,
                                       "location", true));
        }
    }
    *out = (epctx_dependency *)f.list.items;
    *count = f.list.count;
    return EPCTX_OK;
}

#endif /* EPCTX_NO_WIRE */

#ifndef EPCTX_NO_WIRE

/* ============================================================
 * >>scan
 *
 * The whole state is one epctx_scan: a stack of open messages and groups, the one EPContext node
 * that is being read, and a pool for its strings. There is no heap and no recursion.
 * epctx_scan_next reads fields, each with epctx__scan_field, until epctx__scan_leave ends a message
 * that makes an event.
 *
 * A level of the stack is a message (`kinds`: its kind and flags) or a group (kind 0). The
 * invariant: `at` <= `end` <= the end of every outer level <= the size of the source. Each length
 * is compared with what is left of the innermost message before anything is read or skipped, so a
 * hostile model can neither lead outside the source nor close a message in the middle of a field. A
 * model that is nested deeper than the stack is refused. After a failure the status stays, and no
 * event follows.
 *
 * In real files domain and embed_mode come after the payload. So a node is judged at its end, and a
 * string is kept as a range of the source, plus as text if the pool has room (epctx__scan_room).
 * Name and value of an attribute come in any order: epctx__scan_part collects them,
 * epctx__scan_attr_end makes them a member of the node. A node inside a subgraph overwrites the
 * state; `owner` tells that this happened. If the outer node then turns out to be an EPContext
 * node, it is read once more from its start, `flat`: without the messages in its attributes. A
 * stream cannot go back: there such a node is an error.
 *
 * Payloads and raw data are skipped, not read, so the work depends on the number of fields and
 * packed integers, not on the size of the model; none is read more than twice. Single bytes come
 * from a small buffer, so that flash or a file sees few reads. Only a stream hands over every byte,
 * skipped ones in pieces of 32 KiB.
 * ============================================================ */

#define EPCTX__SCAN_KIND   0x1fu
#define EPCTX__SCAN_OP     0x20u                  /* NODE: op_type is EPContext */
#define EPCTX__SCAN_DOMAIN 0x40u                  /* NODE: domain is com.microsoft */
#define EPCTX__SCAN_MOST   UINT64_C(0xffffffffff) /* ends have 40 bits; a stream without a size */

/* The ranges of attributes that hold numbers are free. They serve the current attribute and
 * external_data entry: the places of their strings, and their numbers (`offset`, `length`). */
#define EPCTX__SCAN_ATTR    EPCTX_EPNODE_MAIN_CONTEXT
#define EPCTX__SCAN_PAIR    EPCTX_EPNODE_EMBED_MODE
#define EPCTX__SCAN_NUMBERS EPCTX_EPNODE_MAX_SIZE

/* The pairs to read get kinds that no message has: entries of external_data, of metadata_props. */
#define EPCTX__SCAN_ENTRY    EPCTX_KIND_INT
#define EPCTX__SCAN_METADATA EPCTX_KIND_FLOAT

/* The place of a field: kind of message and number. */
#define EPCTX__SCAN_AT(message, field) \
    ((uint32_t)EPCTX_KIND_##message << 5 | (uint32_t)EPCTX_FIELD_##message##_##field)
#define EPCTX__SCAN_IN(kind, number) ((uint32_t)(kind) << 5 | (uint32_t)(number))

static epctx_status epctx__scan_refuse(epctx_scan *s, epctx_status status, const char *reason) {
    s->status = status;
    s->reason = reason;
    return status;
}

static epctx_status epctx__scan_malformed(epctx_scan *s) {
    return epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF, "no valid protobuf field");
}

static epctx_status epctx__scan_unread(epctx_scan *s) {
    if (!s->stream) return epctx__scan_refuse(s, EPCTX_ERR_IO, "the source could not be read");
    return epctx__scan_refuse(
        s,
        ((const pb_istream_t *)s->reader.user)->bytes_left == 0 ? EPCTX_ERR_PROTOBUF : EPCTX_ERR_IO,
        "the stream ends inside a field: is it cut off?");
}

/* The next byte, or -1. */
static int epctx__scan_byte(epctx_scan *s) {
    if (s->buffer_at == s->buffer_size) {
        size_t size = s->stream ? 1 : sizeof s->buffer;
        if (size > s->reader.size - s->at) size = (size_t)(s->reader.size - s->at);
        if (!s->reader.read_fn(s->reader.user, s->at, s->buffer, size)) {
            epctx__scan_unread(s);
            return -1;
        }
        s->buffer_at = 0;
        s->buffer_size = (uint8_t)size;
    }
    s->at++;
    return s->buffer[s->buffer_at++];
}

static epctx_status epctx__scan_skip(epctx_scan *s, uint64_t count) {
    if (count <= (unsigned)(s->buffer_size - s->buffer_at))
        s->buffer_at = (uint8_t)(s->buffer_at + count);
    else
        s->buffer_at = s->buffer_size = 0;
    while (s->stream && count > 0) {
        size_t part = count < 0x8000 ? (size_t)count : 0x8000;
        if (!s->reader.read_fn(s->reader.user, s->at, NULL, part)) return epctx__scan_unread(s);
        s->at += part;
        count -= part;
    }
    s->at += count;
    return EPCTX_OK;
}

static epctx_status epctx__scan_varint(epctx_scan *s, unsigned most, uint64_t *value) {
    unsigned i;
    *value = 0;
    for (i = 0; i < most && s->at < s->end; i++) {
        int byte = epctx__scan_byte(s);
        if (byte < 0) return s->status;
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) return EPCTX_OK;
    }
    return epctx__scan_malformed(s);
}

static epctx_status epctx__scan_push(epctx_scan *s, unsigned kind, uint64_t end) {
    if (s->levels == EPCTX_SCAN_DEPTH) {
        return epctx__scan_refuse(s, EPCTX_SCAN_DEPTH < 100 ? EPCTX_ERR_LIMIT : EPCTX_ERR_PROTOBUF,
                                  "messages are nested deeper than the limit");
    }
    s->ends_low[s->levels] = (uint32_t)(s->end & UINT32_MAX);
    s->ends_high[s->levels] = (uint8_t)(s->end >> 32);
    s->kinds[++s->levels] = (uint8_t)kind;
    s->end = end;
    return EPCTX_OK;
}

/* -- strings -- */

/* Reads a string into the text pool if it fits; always moves past it. */
static epctx_status epctx__scan_string(epctx_scan *s, uint64_t length, epctx_str *text) {
    *text = epctx_str_of(NULL);
    if (length > sizeof s->text - s->text_used) return epctx__scan_skip(s, length);
    text->data = s->text + s->text_used;
    for (; text->size < length; text->size++) {
        int byte = epctx__scan_byte(s);
        if (byte < 0) return s->status;
        s->text[s->text_used++] = (char)byte;
    }
    return EPCTX_OK;
}

/* The value of an entry: as text, if it fits, and as a number (UINT64_MAX: malformed). */
static epctx_status epctx__scan_entry_value(epctx_scan *s, uint64_t length) {
    uint64_t *number = &s->ranges[EPCTX__SCAN_NUMBERS].length;
    uint64_t end = s->at + length;
    bool fits = length <= sizeof s->text - s->entry.mark;
    bool digits = length > 0;
    *number = 0;
    s->text_used = s->entry.mark;
    s->entry.size = fits ? (uint16_t)length : UINT16_MAX;
    while (s->at < end && (fits || digits)) {
        int byte = epctx__scan_byte(s);
        if (byte < 0) return s->status;
        digits = digits && epctx__digit(number, (char)byte);
        if (fits) s->text[s->text_used++] = (char)byte;
    }
    *number = digits ? *number : UINT64_MAX;
    return epctx__scan_skip(s, end - s->at);
}

static epctx_str epctx__scan_part_text(const epctx_scan *s, const epctx__scan_part *part) {
    return part->size != UINT16_MAX ? epctx__str((const uint8_t *)s->text + part->mark, part->size)
                                    : epctx_str_of(NULL);
}

/* Words: names of attributes, by epctx_epnode_attr, and these. */
#define EPCTX__WORD_OP_TYPE  10u
#define EPCTX__WORD_DOMAIN   11u
#define EPCTX__WORD_LOCATION 12u
#define EPCTX__WORD_OFFSET   13u
#define EPCTX__WORD_LENGTH   14u
#define EPCTX__WORD_NONE     15u

/* Matches the next string with the words `first` to `last`; moves past it. */
static epctx_status epctx__scan_word(epctx_scan *s, uint64_t length, unsigned first, unsigned last,
                                     uint8_t *word) {
    static const char *const words[] = {
#define EPCTX__SCAN_ROW(id, name, type, member) name,
        EPCTX_EPNODE_ATTR_LIST(EPCTX__SCAN_ROW)
#undef EPCTX__SCAN_ROW
            EPCTX_OP_TYPE,
        EPCTX_DOMAIN, "location", "offset", "length"};
    unsigned left = (2u << last) - (1u << first); /* words that match so far */
    uint32_t at;
    unsigned i;
    for (at = 0; at < length && left != 0; at++) {
        int byte = epctx__scan_byte(s);
        if (byte < 0) return s->status;
        for (i = first; i <= last; i++)
            if ((left >> i & 1) != 0 && (byte == 0 || byte != (unsigned char)words[i][at]))
                left -= 1u << i;
    }
    *word = EPCTX__WORD_NONE;
    for (i = first; i <= last; i++)
        if ((left >> i & 1) != 0 && words[i][at] == '\0') *word = (uint8_t)i;
    return epctx__scan_skip(s, length - at);
}

/* The member for an attribute of type STRING, else NULL. */
static epctx_str *epctx__scan_str(epctx_scan *s, unsigned id) {
    bool text = epctx__epnode_attrs[id].type == EPCTX_ATTR_STRING;
    return text ? (epctx_str *)(void *)((char *)&s->node + epctx__epnode_attrs[id].place) : NULL;
}

/* Makes room in the text pool for a more important string. Does nothing if inner nodes have
 * overwritten the node's state: it will be read again. */
static void epctx__scan_room(epctx_scan *s, uint64_t length) {
    static const uint8_t order[] = {EPCTX_EPNODE_NOTES,
                                    EPCTX_EPNODE_ONNX_MODEL_FILENAME,
                                    EPCTX_EPNODE_EP_CACHE_CONTEXT,
                                    EPCTX_EPNODE_HARDWARE_ARCHITECTURE,
                                    EPCTX_EPNODE_EP_SDK_VERSION,
                                    EPCTX_EPNODE_PARTITION_NAME};
    size_t count =
        sizeof order - (s->attr.word != EPCTX_EPNODE_SOURCE); /* the source comes first */
    size_t i;
    if (s->owner != s->nodes || length > sizeof s->text) return;
    for (i = 0; i < count && length > sizeof s->text - s->text_used; i++) {
        epctx_str *text = epctx__scan_str(s, order[i]);
        epctx_str victim = *text;
        unsigned id;
        if (victim.size == 0) continue;
        *text = epctx_str_of(NULL);
        s->text_used = (uint16_t)(s->text_used - victim.size);
        s->attr.mark = s->text_used; /* the attribute being read has no text yet */
        id = (unsigned)(victim.data - s->text);
        memmove(s->text + id, victim.data + victim.size, s->text_used - id);
        for (id = 0; id <= EPCTX_EPNODE_ATTR_COUNT; id++) { /* the strings behind it have moved */
            text = id < EPCTX_EPNODE_ATTR_COUNT ? epctx__scan_str(s, id) : &s->node.name;
            if (text != NULL && text->size > 0 && text->data > victim.data)
                text->data -= victim.size;
        }
    }
}

/* -- fields -- */

static void epctx__scan_number(epctx_scan *s, uint32_t place, uint64_t value) {
    if (place == EPCTX__SCAN_AT(ATTR, I))
        s->ranges[EPCTX__SCAN_NUMBERS].offset = value;
    else if (place == EPCTX__SCAN_AT(ATTR, TYPE) && (uint32_t)value <= EPCTX_ATTR_TYPE_PROTOS)
        s->attr.type = (uint8_t)value;
    else if (place == EPCTX__SCAN_AT(TENSOR, DATA_LOCATION) && (uint32_t)value <= 1)
        s->external = (uint32_t)value == 1;
}

/* Compares a string with one word. */
static epctx_status epctx__scan_flag(epctx_scan *s, uint64_t length, unsigned want, unsigned flag) {
    uint8_t *kind = &s->kinds[s->levels];
    uint8_t word;
    EPCTX__TRY(epctx__scan_word(s, length, want, want, &word));
    *kind = (uint8_t)(word == want ? *kind | flag : *kind & ~flag);
    return EPCTX_OK;
}

/* Reads a string field if it is of interest, else skips it. */
static epctx_status epctx__scan_text(epctx_scan *s, uint32_t place, uint64_t length) {
    epctx_range range;
    epctx_str text;
    range.offset = s->at;
    range.length = length;
    switch (place) {
    case EPCTX__SCAN_AT(NODE, NAME):
        epctx__scan_room(s, length);
        return epctx__scan_string(s, length, &s->node.name);
    case EPCTX__SCAN_AT(NODE, OP_TYPE):
        return epctx__scan_flag(s, length, EPCTX__WORD_OP_TYPE, EPCTX__SCAN_OP);
    case EPCTX__SCAN_AT(NODE, DOMAIN):
        return epctx__scan_flag(s, length, EPCTX__WORD_DOMAIN, EPCTX__SCAN_DOMAIN);
    case EPCTX__SCAN_AT(ATTR, NAME):
        return epctx__scan_word(s, length, 0, EPCTX_EPNODE_ATTR_COUNT - 1, &s->attr.word);
    case EPCTX__SCAN_AT(ATTR, S):
        s->ranges[EPCTX__SCAN_ATTR] = range;
        s->text_used = s->attr.mark;
        if (s->attr.word == EPCTX_EPNODE_SOURCE || s->attr.word == EPCTX_EPNODE_PARTITION_NAME)
            epctx__scan_room(s, length);
        EPCTX__TRY(epctx__scan_string(s, length, &text));
        s->attr.size = text.data != NULL ? (uint16_t)length : UINT16_MAX;
        return EPCTX_OK;
    case EPCTX__SCAN_AT(TENSOR, NAME): return epctx__scan_string(s, length, &s->key);
    case EPCTX__SCAN_IN(EPCTX__SCAN_ENTRY, EPCTX_FIELD_PAIR_KEY):
        return epctx__scan_word(s, length, EPCTX__WORD_LOCATION, EPCTX__WORD_LENGTH,
                                &s->entry.word);
    case EPCTX__SCAN_IN(EPCTX__SCAN_ENTRY, EPCTX_FIELD_PAIR_VALUE):
        s->ranges[EPCTX__SCAN_PAIR] = range;
        return epctx__scan_entry_value(s, length);
    case EPCTX__SCAN_IN(EPCTX__SCAN_METADATA, EPCTX_FIELD_PAIR_KEY):
        s->ranges[0] = range;
        return epctx__scan_string(s, length, &s->key);
    case EPCTX__SCAN_IN(EPCTX__SCAN_METADATA, EPCTX_FIELD_PAIR_VALUE):
        s->ranges[1] = range;
        return epctx__scan_string(s, length, &s->value);
    default: return epctx__scan_skip(s, length);
    }
}

/* Resets the state for a node. */
static void epctx__scan_node_begin(epctx_scan *s) {
    memset(&s->node, 0, sizeof s->node); /* as epctx_epnode_default, with less stack */
    s->node.main_context = s->node.embed_mode = 1;
    memset(s->ranges, 0, sizeof s->ranges);
    s->broken = false;
    s->text_used = 0;
    s->owner = s->nodes;
}

static void epctx__scan_part_begin(const epctx_scan *s, epctx__scan_part *part) {
    memset(part, 0, sizeof *part);
    part->mark = s->text_used;
    part->size = UINT16_MAX;
    part->word = EPCTX__WORD_NONE;
}

static epctx_status epctx__scan_enter(epctx_scan *s, unsigned kind, uint32_t place,
                                      uint64_t length) {
    uint64_t end = s->at + length;
    if (kind == EPCTX_KIND_NODE) {
        s->starts_low[s->nodes] = (uint32_t)(s->at & UINT32_MAX);
        s->starts_high[s->nodes++] = (uint8_t)(s->at >> 32);
        s->node_count++;
        epctx__scan_node_begin(s);
    } else if (kind == EPCTX_KIND_ATTR) {
        memset(&s->ranges[EPCTX__SCAN_ATTR], 0, sizeof s->ranges[0]);
        s->ranges[EPCTX__SCAN_NUMBERS].offset = 0;
        epctx__scan_part_begin(s, &s->attr);
    } else if (kind == EPCTX_KIND_TENSOR) {
        s->tensor_mark = s->text_used;
        s->key = s->value = epctx_str_of(NULL);
        memset(&s->location, 0, sizeof s->location);
        s->data.offset = 0;
        s->data.length = UINT64_MAX;
        s->external = false;
    } else if (place == EPCTX__SCAN_AT(TENSOR, EXTERNAL_DATA)) {
        kind = EPCTX__SCAN_ENTRY;
        memset(&s->ranges[EPCTX__SCAN_PAIR], 0, sizeof s->ranges[0]);
        epctx__scan_part_begin(s, &s->entry);
        s->ranges[EPCTX__SCAN_NUMBERS].length = UINT64_MAX;
    } else if (place == EPCTX__SCAN_AT(MODEL, METADATA_PROPS)) {
        kind = EPCTX__SCAN_METADATA;
        s->text_used = 0;
        s->key = s->value = epctx_str_of("");
        memset(s->ranges, 0, sizeof s->ranges);
    }
    return epctx__scan_push(s, kind, end);
}

static epctx_status epctx__scan_len(epctx_scan *s, unsigned message, uint32_t number,
                                    uint32_t place) {
    uint32_t kind = message != 0 ? epctx__field_kind((epctx_kind)message, number) : 0;
    uint64_t length, outer = s->end, value;
    EPCTX__TRY(epctx__scan_varint(s, 5, &length));
    if (length > s->end - s->at) {
        return epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF,
                                  length > s->reader.size - s->at
                                      ? "a field is longer than what is left: is it cut off?"
                                      : "no valid protobuf field");
    }
    if (kind == 0) return epctx__scan_text(s, place, length);
    /* The second pass over a node skips its subgraphs. */
    if (epctx__is_message(kind)) {
        return s->flat && message == EPCTX_KIND_ATTR
                   ? epctx__scan_skip(s, length)
                   : epctx__scan_enter(s, (unsigned)epctx__message_kind(kind), place, length);
    }
    if (kind != (uint32_t)EPCTX_KIND_INT) {
        return (length & (kind == (uint32_t)EPCTX_KIND_FLOAT ? 3u : 7u)) == 0
                   ? epctx__scan_skip(s, length)
                   : epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF,
                                        "a packed field ends inside a number");
    }
    for (s->end = s->at + length; s->at < s->end;) EPCTX__TRY(epctx__scan_varint(s, 10, &value));
    s->end = outer;
    return EPCTX_OK;
}

static epctx_status epctx__scan_field(epctx_scan *s) {
    unsigned message = s->kinds[s->levels] & EPCTX__SCAN_KIND;
    uint32_t number, place;
    uint64_t value;
    EPCTX__TRY(epctx__scan_varint(s, 5, &value));
    number = (uint32_t)value >> 3;
    place = number < 32 ? EPCTX__SCAN_IN(message, number) : 0;
    switch (number == 0 ? 7 : (unsigned)(value & 7)) {
    case EPCTX_WIRE_VARINT:
        EPCTX__TRY(epctx__scan_varint(s, 10, &value));
        epctx__scan_number(s, place, value);
        return EPCTX_OK;
    case EPCTX_WIRE_FIXED64:
    case EPCTX_WIRE_FIXED32:
        value = (value & 7) == EPCTX_WIRE_FIXED64 ? 8 : 4;
        return value <= s->end - s->at ? epctx__scan_skip(s, value) : epctx__scan_malformed(s);
    case EPCTX_WIRE_LEN: return epctx__scan_len(s, message, number, place);
    case EPCTX_WIRE_GROUP:
        EPCTX__TRY(epctx__scan_push(s, 0, s->end));
        s->ends_low[s->levels - 1] = number;
        return EPCTX_OK;
    case 4:
        if (message == 0 && s->ends_low[s->levels - 1] == number) {
            s->levels--;
            return EPCTX_OK;
        }
        break;
    default: break;
    }
    return epctx__scan_malformed(s);
}

/* -- ends of messages -- */

/* The attribute that ended becomes a member of the node. */
static void epctx__scan_attr_end(epctx_scan *s) {
    const epctx__scan_part *attr = &s->attr;
    int64_t number = (int64_t)s->ranges[EPCTX__SCAN_NUMBERS].offset;
    epctx_str *text;
    if (attr->word == EPCTX__WORD_NONE) {
        s->text_used = attr->mark;
        return;
    }
    text = epctx__scan_str(s, attr->word);
    if (text != NULL) s->ranges[attr->word] = s->ranges[EPCTX__SCAN_ATTR];
    if (attr->type != (uint8_t)epctx__epnode_attrs[attr->word].type) {
        s->broken = true;
        return;
    }
    s->node.present |= 1u << attr->word;
    if (text != NULL) {
        *text = epctx__scan_part_text(s, attr);
        return;
    }
    memcpy((char *)&s->node + epctx__epnode_attrs[attr->word].place, &number, sizeof number);
    s->broken = s->broken || (attr->word != EPCTX_EPNODE_MAX_SIZE && (number & ~INT64_C(1)) != 0);
}

static void epctx__scan_entry_end(epctx_scan *s) {
    if (s->entry.word == EPCTX__WORD_LOCATION) {
        s->value = epctx__scan_part_text(s, &s->entry);
        s->location = s->ranges[EPCTX__SCAN_PAIR];
        return;
    }
    s->text_used = s->entry.mark;
    if (s->entry.word == EPCTX__WORD_OFFSET)
        s->data.offset = s->ranges[EPCTX__SCAN_NUMBERS].length;
    else if (s->entry.word == EPCTX__WORD_LENGTH)
        s->data.length = s->ranges[EPCTX__SCAN_NUMBERS].length;
}

/* Ends a message, or fails at a group without end. Returns the event, or -1. */
static int epctx__scan_leave(epctx_scan *s) {
    unsigned flags = s->kinds[s->levels];
    unsigned kind = flags & EPCTX__SCAN_KIND;
    if (kind == 0) {
        epctx__scan_malformed(s);
        return -1;
    }
    if ((flags & EPCTX__SCAN_OP) != 0 && s->owner != s->nodes) {
        if (s->stream) {
            epctx__scan_refuse(s, EPCTX_ERR_UNSUPPORTED,
                               "a node with a graph inside needs a source that can go back");
            return -1;
        }
        /* Read it again, without its subgraphs. */
        s->kinds[s->levels] = EPCTX_KIND_NODE;
        s->at = (uint64_t)s->starts_high[s->nodes - 1] << 32 | s->starts_low[s->nodes - 1];
        s->buffer_at = s->buffer_size = 0;
        s->flat = true;
        epctx__scan_node_begin(s);
        return -1;
    }
    s->levels--;
    s->end = (uint64_t)s->ends_high[s->levels] << 32 | s->ends_low[s->levels];
    s->depth = s->nodes;
    switch (kind) {
    case EPCTX_KIND_ATTR:
        if ((s->kinds[s->levels] & EPCTX__SCAN_KIND) == EPCTX_KIND_NODE) epctx__scan_attr_end(s);
        return -1;
    case EPCTX_KIND_NODE:
        s->flat = false;
        s->depth = --s->nodes;
        if ((flags & EPCTX__SCAN_OP) == 0) return -1;
        s->epnode_count++;
        s->broken = s->broken || (flags & EPCTX__SCAN_DOMAIN) == 0;
        return EPCTX_SCAN_EPNODE;
    case EPCTX_KIND_TENSOR:
        s->text_used = s->tensor_mark; /* kept until the next event */
        return s->external ? (int)EPCTX_SCAN_EXTERNAL : -1;
    case EPCTX__SCAN_ENTRY: epctx__scan_entry_end(s); return -1;
    case EPCTX__SCAN_METADATA: return EPCTX_SCAN_METADATA;
    default: return -1;
    }
}

static void epctx__scan_start(epctx_scan *s, uint64_t size) {
    epctx__scan_node_begin(s);
    s->kinds[0] = EPCTX_KIND_MODEL;
    s->reader.size = s->end = size;
    if (size == 0)
        epctx__scan_refuse(s, EPCTX_ERR_PROTOBUF, "the model is empty (0 bytes)");
    else if (size > EPCTX__SCAN_MOST || (size == EPCTX__SCAN_MOST && !s->stream))
        epctx__scan_refuse(s, EPCTX_ERR_LIMIT, "the model has a terabyte or more");
}

EPCTX_API void epctx_scan_begin(epctx_scan *scan, const epctx_reader *reader) {
    memset(scan, 0, sizeof *scan);
    scan->reader = *reader;
    epctx__scan_start(scan, reader->size);
}

static bool epctx__scan_pull(void *user, uint64_t offset, void *out, size_t size) {
    (void)offset; /* the stream's position */
    return pb_read((pb_istream_t *)user, (pb_byte_t *)out, size);
}

EPCTX_API void epctx_scan_begin_stream(epctx_scan *scan, pb_istream_t *stream) {
    memset(scan, 0, sizeof *scan);
    scan->stream = true;
    scan->reader.user = stream;
    scan->reader.read_fn = epctx__scan_pull;
    epctx__scan_start(scan, stream->bytes_left == SIZE_MAX ? EPCTX__SCAN_MOST : stream->bytes_left);
    if (!epctx__nanopb_matches()) {
        epctx__scan_refuse(scan, EPCTX_ERR_CONFIG,
                           "nanopb was built with other PB_NO_ERRMSG or PB_BUFFER_ONLY settings");
    }
}

static epctx_scan_event epctx__scan_failed(const epctx_scan *s, epctx_error *error) {
    const char *what = s->status == EPCTX_ERR_PROTOBUF ? "not an ONNX protobuf: " : "";
    if (s->stream)
        epctx_fail(error, s->status, "%sbyte %u: %s", what, s->at, s->reason);
    else
        epctx_fail(error, s->status, "%sbyte %u of %u: %s", what, s->at, s->reader.size, s->reason);
    if (error != NULL) error->offset = s->at;
    return EPCTX_SCAN_FAILED;
}

EPCTX_API epctx_scan_event epctx_scan_next(epctx_scan *scan, epctx_error *error) {
    epctx_error_clear(error);
    while (scan->status == EPCTX_OK) {
        uint64_t before = scan->at;
        if (before == scan->end) {
            int event = scan->levels > 0 ? epctx__scan_leave(scan) : (int)EPCTX_SCAN_END;
            if (event >= 0) return (epctx_scan_event)event;
        } else if (epctx__scan_field(scan) != EPCTX_OK && before > 0 && scan->at == before &&
                   scan->levels == 0 && scan->end == EPCTX__SCAN_MOST &&
                   scan->status == EPCTX_ERR_PROTOBUF) {
            scan->status = EPCTX_OK; /* a stream of unknown length may end between two fields */
            scan->end = before;
        }
    }
    return epctx__scan_failed(scan, error);
}

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>edit
 *
 * An edit works on the tree of slots that >>wire describes. It never changes the bytes of a slot:
 * it links a new slot into the list of its parent, or marks one as removed. Replacing does both. In
 * the tree that is written only epctx__journal does either, and it keeps a record, so that
 * epctx_edit_undo can take the last edits back in the reverse order; each then finds its
 * neighbours as it left them. The invariant: `edits` of a message counts the live edits in it and
 * below. While it is 0, the source bytes of the message are what has to be written.
 *
 * Every public function takes the same steps. epctx__builder_of refuses models in which a singular
 * field occurs twice. epctx__locate leads from a view to its slot and opens the messages on the
 * way; slots are never freed, so an old view finds its field as long as that exists. The functions
 * epctx__add_... and epctx__build_... make the new field in the arena, still unlinked. epctx__place
 * checks it as if it were read from a file (depth, packed fields, fields that occur twice) and
 * links it. After a failure the next steps do nothing, and epctx__build_end undoes what was done.
 *
 * Writing has two passes. epctx__measure computes, from the leaves up, the payload size of messages
 * that changed; epctx__write_slot emits them from the top down. What did not change is copied with
 * its odd varints and unknown fields; epctx__write_run joins neighbours, so an unedited model is
 * one write. An over-long length keeps its width while the new value fits.
 *
 * All recursion is bounded by depth. A mapped file that changes alters what an edit reads, or makes
 * it fail, but no access leaves the mapping. Linking and undoing cost one step per level, payloads
 * are borrowed, and the `hint` of a message keeps a pass over all its fields linear.
 * ============================================================ */

#ifndef EPCTX_NO_EDIT

/* -- edits: the journal -- */

/* Updates the messages around an edited (`made`) or restored field. */
static void epctx__touch(epctx_model *model, const epctx_slot *slot, bool made) {
    const epctx_slot *up;
    for (up = slot->parent; up != NULL; up = up->parent)
        up->message->edits += made ? 1u : UINT32_MAX; /* UINT32_MAX: minus one */
    if (slot->parent == model->root && slot->number == EPCTX_FIELD_MODEL_GRAPH)
        model->graph = model->shown_graph = epctx__find_graph(model->root);
}

/* Links a new slot into `parent` behind `previous` (NULL: first); `parent` NULL: removes one. */
static epctx_status epctx__journal(epctx_model *model, epctx_slot *parent, epctx_slot *previous,
                                   epctx_slot *slot, epctx_error *error) {
    epctx__edit *edit;
    EPCTX__NEW(edit, epctx__edit, 1, &model->arena, error);
    edit->before = model->edits;
    edit->slot = slot;
    edit->previous = previous;
    edit->inserted = parent != NULL;
    if (edit->inserted) epctx__link_slot(parent, previous, slot);
    slot->removed = !edit->inserted;
    model->edits = edit;
    model->edit_count++;
    epctx__touch(model, slot, true);
    return EPCTX_OK;
}

EPCTX_API size_t epctx_edit_mark(const epctx_model *model) {
    return model->edit_count;
}

EPCTX_API void epctx_edit_undo(epctx_model *model, size_t mark) {
    while (model->edit_count > mark) {
        epctx__edit *edit = model->edits;
        epctx_slot *slot = edit->slot;
        epctx__message *message = slot->parent->message;
        if (edit->inserted) {
            *(edit->previous != NULL ? &edit->previous->next : &message->first) = slot->next;
            message->last = message->last == slot ? edit->previous : message->last;
            message->hint = NULL;
        }
        slot->removed = edit->inserted;
        epctx__touch(model, slot, false);
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

static epctx_status epctx__editable(const epctx_model *model, epctx_error *error) {
    EPCTX__TRY(epctx__check_open(model, error));
    return !model->duplicate
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_GRAPH,
                            "a singular field occurs twice, so the model is read-only: "
                            "'epctx repair' merges the two");
}

/* An edit in several steps: after a failure the next steps do nothing, slots may be NULL, and
 * epctx__build_end undoes the previous ones. */
typedef struct epctx__builder {
    epctx_model *model;
    epctx_error *error;
    epctx_status status;
    size_t mark;
    uint32_t depth; /* levels left for graphs of records */
} epctx__builder;

#define EPCTX__RECORD_DEPTH 33u /* a graph takes three levels of messages */
static epctx__builder epctx__builder_of(epctx_model *model, epctx_error *error) {
    epctx__builder b = {model, error, EPCTX_OK, model->edit_count, EPCTX__RECORD_DEPTH};
    epctx_error_clear(error);
    b.status = epctx__editable(model, error);
    return b;
}

static epctx_status epctx__build_end(const epctx__builder *b) {
    if (b->status != EPCTX_OK) epctx_edit_undo(b->model, b->mark);
    return b->status;
}

/* Fails; `value` is for a "%u". */
static epctx_slot *epctx__reject(epctx__builder *b, epctx_status status, const char *format,
                                 uint64_t value) {
    if (b->status == EPCTX_OK) b->status = epctx_fail(b->error, status, format, value);
    return NULL;
}

static void epctx__remove(epctx__builder *b, epctx_slot *slot) {
    if (b->status == EPCTX_OK && !slot->removed)
        b->status = epctx__journal(b->model, NULL, NULL, slot, b->error);
}

/* -- edits: from a view to its slot -- */

static epctx_slot *epctx__opened(epctx__builder *b, epctx_slot *slot) {
    if (b->status == EPCTX_OK)
        b->status = epctx__open_as(b->model, slot, epctx__slot_type(slot), b->error);
    return b->status == EPCTX_OK ? slot : NULL;
}

/* The slot of a view, which may lie in unopened messages. Views show the tree of the model, which
 * the caller lets us edit, as const. */
static epctx_slot *epctx__locate(epctx__builder *b, epctx_view view) {
    epctx_slot *slot = (epctx_slot *)(uintptr_t)view.slot;
    const epctx_slot *up = slot;
    while (up != NULL && up->parent != NULL && !up->removed) up = up->parent;
    slot = up == b->model->root ? slot : NULL;
    while (b->status == EPCTX_OK && slot != NULL && !epctx__is_slot_of(slot, view)) {
        epctx_slot *child = NULL;
        if (epctx__slot_type(slot) != EPCTX_KIND_NONE && epctx__opened(b, slot) != NULL)
            child = slot->message->hint = epctx__child_at(slot->message, view.data);
        slot = child;
    }
    return slot != NULL && b->status == EPCTX_OK
               ? slot
               : epctx__reject(b, EPCTX_ERR_ARG,
                               "the view is not a field of this model or was removed", 0);
}

/* The slot of a message, opened; NONE: of any kind. */
static epctx_slot *epctx__locate_message(epctx__builder *b, epctx_view view, epctx_kind kind) {
    epctx_slot *slot = epctx__locate(b, view);
    epctx_kind type = slot != NULL ? epctx__slot_type(slot) : EPCTX_KIND_NONE;
    if (type == EPCTX_KIND_NONE)
        return epctx__reject(b, EPCTX_ERR_ARG, "expected a message, found a string or number", 0);
    if (kind != EPCTX_KIND_NONE && type != kind) {
        b->status =
            epctx_fail(b->error, EPCTX_ERR_ARG, "the view is not a %s", epctx_message_name(kind));
    }
    return epctx__opened(b, slot);
}

/* The slot of a graph (NONE: or of a function), opened; an empty view is the main graph. */
static epctx_slot *epctx__locate_graph(epctx__builder *b, epctx_view view, epctx_kind kind) {
    epctx_slot *slot;
    epctx_kind type;
    if (!epctx_view_exists(view)) {
        if (b->model->graph == NULL)
            return epctx__reject(b, EPCTX_ERR_GRAPH, "the model has no graph to edit", 0);
        view = epctx__slot_view(b->model->graph);
    }
    slot = epctx__locate_message(b, view, EPCTX_KIND_NONE);
    type = slot != NULL ? epctx__slot_type(slot) : EPCTX_KIND_NONE;
    return type == EPCTX_KIND_GRAPH || (type == EPCTX_KIND_FUNCTION && kind == EPCTX_KIND_NONE)
               ? slot
               : epctx__reject(b, EPCTX_ERR_ARG, "the view is not a graph", 0);
}

/* The slot of the message whose field `number` is to be set: a pair, else a string or number. */
static epctx_slot *epctx__locate_owner(epctx__builder *b, epctx_view message, uint32_t number,
                                       bool pairs) {
    epctx_slot *slot = epctx__locate_message(b, message, EPCTX_KIND_NONE);
    epctx_kind type = slot != NULL ? epctx__slot_type(slot) : EPCTX_KIND_NONE;
    if (pairs) {
        return epctx__child_kind(type, number) == EPCTX_KIND_PAIR
                   ? slot
                   : epctx__reject(b, EPCTX_ERR_ARG, "field %u of this message holds no pairs",
                                   number);
    }
    return number != 0 && epctx__field_kind(type, number) == 0
               ? slot
               : epctx__reject(b, EPCTX_ERR_ARG,
                               "field %u of this message is not a string or number", number);
}

EPCTX_API epctx_status epctx_edit_refresh(epctx_model *model, epctx_view *view, epctx_view *parent,
                                          epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    const epctx_slot *slot = epctx__locate(&b, *view);
    EPCTX__TRY(b.status);
    *view = epctx__slot_view(slot);
    if (parent != NULL)
        *parent = slot->parent != NULL ? epctx__slot_view(slot->parent) : epctx_view_none();
    return EPCTX_OK;
}

/* The first field from `slot` on with this number and the text `key` in its field 1: an attribute,
 * an opset import (no other has its number), a pair. */
static epctx_slot *epctx__keyed_from(epctx_slot *slot, uint32_t number, epctx_str key) {
    for (slot = epctx__live(slot, number); slot != NULL; slot = epctx__live(slot->next, number)) {
        epctx_cursor it = epctx_view_fields(epctx__slot_view(slot), EPCTX_FIELD_PAIR_KEY);
        epctx_str name = epctx_str_of(NULL);
        while (epctx_next_str(&it, &name)) {
        }
        if (number == EPCTX_FIELD_MODEL_OPSET_IMPORT ? epctx__same_domain(name, key)
                                                     : epctx_str_eq(name, key))
            return slot;
    }
    return NULL;
}

/* Removes the fields with that key except `keep`. */
static void epctx__drop_keyed(epctx__builder *b, const epctx_slot *owner, uint32_t number,
                              epctx_str key, const epctx_slot *keep) {
    epctx_slot *slot = b->status == EPCTX_OK ? owner->message->first : NULL;
    while ((slot = epctx__keyed_from(slot, number, key)) != NULL) {
        if (slot != keep) epctx__remove(b, slot);
        slot = slot->next;
    }
}

/* The slot behind which a new field goes (NULL: it becomes the first), as the declarations say for
 * `after`; the last of all if the message has no field of that number. */
static epctx_slot *epctx__place_of(epctx__builder *b, const epctx_slot *parent, uint32_t number,
                                   epctx_view after) {
    epctx_slot *slot = parent->message->first;
    epctx_slot *found = parent->message->last;
    if (epctx_view_exists(after)) {
        found = epctx__locate(b, after);
        if (found != parent) {
            return found == NULL || found->parent == parent
                       ? found
                       : epctx__reject(b, EPCTX_ERR_ARG, "`after` is a field of another message",
                                       0);
        }
        for (found = NULL; slot != NULL && (slot->removed || slot->number != number);
             slot = slot->next)
            found = slot;
    } else if (found != NULL && (found->removed || found->number != number)) {
        for (; slot != NULL; slot = slot->next)
            found = !slot->removed && slot->number == number ? slot : found;
    }
    return found;
}

/* -- new messages: appended to an unlinked slot -- */

/* Zeroed memory; NULL after a failure. */
static void *epctx__build_alloc(epctx__builder *b, size_t size) {
    void *memory = b->status == EPCTX_OK ? epctx_arena_alloc(&b->model->arena, size) : NULL;
    if (memory == NULL && b->status == EPCTX_OK)
        b->status = epctx__nomem(b->error, b->model->arena.missing);
    return memory;
}

/* Makes a field and borrows `data`: its payload if `wire` is LEN, else its tag and value. */
static epctx_slot *epctx__add_slot(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                   epctx_wire wire, const void *data, size_t size) {
    epctx_slot *slot = (epctx_slot *)epctx__build_alloc(b, sizeof *slot);
    if (slot != NULL) {
        slot->number = number;
        slot->wire = (uint8_t)wire;
        slot->split = wire == EPCTX_WIRE_LEN;
        slot->data = (const uint8_t *)data;
        slot->size = size;
        if (parent != NULL) epctx__link_slot(parent, parent->message->last, slot);
    }
    return slot;
}

static epctx_slot *epctx__add_bytes(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                    const void *data, size_t size) {
    return epctx__add_slot(b, parent, number, EPCTX_WIRE_LEN, data != NULL ? data : "", size);
}

static epctx_slot *epctx__add_str(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                  epctx_str text) {
    char *copy = text.size > 0 ? (char *)epctx__build_alloc(b, text.size) : NULL;
    if (copy != NULL) memcpy(copy, text.data, text.size);
    return epctx__add_bytes(b, parent, number, copy, text.size);
}

/* Tag and value of a scalar field in arena memory. */
static epctx_slot *epctx__add_scalar(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                     epctx_wire wire, uint64_t value) {
    const size_t most = 16; /* tag and varint: at most 15 bytes */
    const bool varint = wire == EPCTX_WIRE_VARINT;
    uint8_t *bytes = (uint8_t *)epctx__build_alloc(b, most);
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, most);
    uint32_t word = (uint32_t)value;
    if (bytes != NULL) {
        (void)pb_encode_tag(&stream, varint ? PB_WT_VARINT : PB_WT_32BIT, number);
        (void)(varint ? pb_encode_varint(&stream, value) : pb_encode_fixed32(&stream, &word));
    }
    return epctx__add_slot(b, parent, number, wire, bytes, stream.bytes_written);
}

static epctx_slot *epctx__add_varint(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                     int64_t value) {
    return epctx__add_scalar(b, parent, number, EPCTX_WIRE_VARINT, (uint64_t)value);
}

static void epctx__add_float(epctx__builder *b, epctx_slot *parent, uint32_t number, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    epctx__add_scalar(b, parent, number, EPCTX_WIRE_FIXED32, bits);
}

/* An empty list of slots. */
static void epctx__make_message(epctx__builder *b, epctx_slot *slot) {
    epctx__message *message = (epctx__message *)epctx__build_alloc(b, sizeof *message);
    if (message != NULL) {
        message->edits = 1; /* there are no source bytes */
        slot->message = message;
    }
}

/* An empty message; NULL after a failure. */
static epctx_slot *epctx__add_message(epctx__builder *b, epctx_slot *parent, uint32_t number) {
    epctx_slot *slot = epctx__add_slot(b, parent, number, EPCTX_WIRE_LEN, NULL, 0);
    epctx__make_message(b, slot);
    return b->status == EPCTX_OK ? slot : NULL;
}

static epctx_slot *epctx__build_value(epctx__builder *b, epctx_slot *graph, uint32_t number,
                                      const epctx_value *value) {
    epctx_slot *slot = epctx__add_message(b, graph, number);
    epctx_slot *type, *tensor, *shape;
    int32_t i;
    epctx__add_str(b, slot, EPCTX_FIELD_VALUE_NAME, value->name);
    if (value->elem_type == 0) return slot;
    type = epctx__add_message(b, slot, EPCTX_FIELD_VALUE_TYPE);
    tensor = epctx__add_message(b, type, EPCTX_FIELD_TYPE_TENSOR_TYPE);
    epctx__add_varint(b, tensor, EPCTX_FIELD_TYPE_TENSOR_ELEM_TYPE, value->elem_type);
    shape = value->rank >= 0 ? epctx__add_message(b, tensor, EPCTX_FIELD_TYPE_TENSOR_SHAPE) : NULL;
    for (i = 0; i < value->rank; i++) {
        epctx_slot *dim = epctx__add_message(b, shape, EPCTX_FIELD_SHAPE_DIM);
        if (value->dims[i] >= 0)
            epctx__add_varint(b, dim, EPCTX_FIELD_DIM_DIM_VALUE, value->dims[i]);
    }
    return slot;
}

static epctx_status epctx__check_tensor_record(const epctx_tensor *tensor, epctx_error *error) {
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

static epctx_slot *epctx__build_tensor(epctx__builder *b, epctx_slot *parent, uint32_t number,
                                       const epctx_tensor *tensor) {
    epctx_slot *slot = epctx__add_message(b, parent, number);
    int32_t i;
    if (b->status == EPCTX_OK) b->status = epctx__check_tensor_record(tensor, b->error);
    if (b->status != EPCTX_OK) return NULL;
    for (i = 0; i < tensor->rank; i++)
        epctx__add_varint(b, slot, EPCTX_FIELD_TENSOR_DIMS, tensor->dims[i]);
    epctx__add_varint(b, slot, EPCTX_FIELD_TENSOR_DATA_TYPE, tensor->elem_type);
    if (tensor->name.size > 0) epctx__add_str(b, slot, EPCTX_FIELD_TENSOR_NAME, tensor->name);
    epctx__add_bytes(b, slot, EPCTX_FIELD_TENSOR_RAW_DATA, tensor->data, tensor->size);
    return slot;
}

static epctx_slot *epctx__build_node(epctx__builder *b, epctx_slot *graph, uint32_t number,
                                     const epctx_node *node);

static void epctx__build_graph(epctx__builder *b, epctx_slot *attr, const epctx_graph *graph) {
    epctx_slot *slot = epctx__add_message(b, attr, EPCTX_FIELD_ATTR_G);
    size_t i;
    if (graph == NULL)
        epctx__reject(b, EPCTX_ERR_UNSUPPORTED, "a graph attribute has no record", 0);
    else if (b->depth == 0)
        epctx__reject(b, EPCTX_ERR_LIMIT, "graphs are nested too deep", 0);
    if (b->status != EPCTX_OK) return;
    b->depth--;
    for (i = 0; i < graph->node_count; i++)
        epctx__build_node(b, slot, EPCTX_FIELD_GRAPH_NODE, &graph->nodes[i]);
    epctx__add_str(b, slot, EPCTX_FIELD_GRAPH_NAME, graph->name);
    for (i = 0; i < graph->initializer_count; i++)
        epctx__build_tensor(b, slot, EPCTX_FIELD_GRAPH_INITIALIZER, &graph->initializers[i]);
    for (i = 0; i < graph->input_count; i++)
        epctx__build_value(b, slot, EPCTX_FIELD_GRAPH_INPUT, &graph->inputs[i]);
    for (i = 0; i < graph->output_count; i++)
        epctx__build_value(b, slot, EPCTX_FIELD_GRAPH_OUTPUT, &graph->outputs[i]);
    for (i = 0; i < graph->value_count; i++)
        epctx__build_value(b, slot, EPCTX_FIELD_GRAPH_VALUE_INFO, &graph->values[i]);
    b->depth++;
}

/* The fields of an AttributeProto that hold its value. */
static void epctx__build_payload(epctx__builder *b, epctx_slot *slot, const epctx_attr *attr) {
    size_t i;
    switch (attr->type) {
    case EPCTX_ATTR_INT: epctx__add_varint(b, slot, EPCTX_FIELD_ATTR_I, attr->i); break;
    case EPCTX_ATTR_FLOAT: epctx__add_float(b, slot, EPCTX_FIELD_ATTR_F, attr->f); break;
    case EPCTX_ATTR_STRING:
        epctx__add_bytes(b, slot, EPCTX_FIELD_ATTR_S, attr->s.data, attr->s.size);
        break;
    case EPCTX_ATTR_TENSOR: epctx__build_tensor(b, slot, EPCTX_FIELD_ATTR_T, attr->t); break;
    case EPCTX_ATTR_GRAPH: epctx__build_graph(b, slot, attr->g); break;
    case EPCTX_ATTR_INTS:
        for (i = 0; i < attr->count; i++)
            epctx__add_varint(b, slot, EPCTX_FIELD_ATTR_INTS, attr->ints[i]);
        break;
    case EPCTX_ATTR_FLOATS:
        for (i = 0; i < attr->count; i++)
            epctx__add_float(b, slot, EPCTX_FIELD_ATTR_FLOATS, attr->floats[i]);
        break;
    case EPCTX_ATTR_STRINGS:
        for (i = 0; i < attr->count; i++) {
            epctx__add_bytes(b, slot, EPCTX_FIELD_ATTR_STRINGS, attr->strings[i].data,
                             attr->strings[i].size);
        }
        break;
    default:
        if (b->status == EPCTX_OK) {
            b->status = epctx_fail(b->error, EPCTX_ERR_UNSUPPORTED,
                                   "attribute '%S' of type %s cannot be written from a record: "
                                   "copy it from a view",
                                   &attr->name, epctx_attr_type_name((int32_t)attr->type));
        }
    }
}

static epctx_slot *epctx__build_attr(epctx__builder *b, epctx_slot *node, const epctx_attr *attr) {
    epctx_slot *slot = epctx__add_message(b, node, EPCTX_FIELD_NODE_ATTRIBUTE);
    epctx__add_str(b, slot, EPCTX_FIELD_ATTR_NAME, attr->name);
    epctx__build_payload(b, slot, attr);
    epctx__add_varint(b, slot, EPCTX_FIELD_ATTR_TYPE, (int64_t)attr->type);
    return slot;
}

static epctx_slot *epctx__build_node(epctx__builder *b, epctx_slot *graph, uint32_t number,
                                     const epctx_node *node) {
    epctx_slot *slot = epctx__add_message(b, graph, number);
    size_t i;
    for (i = 0; i < node->input_count; i++)
        epctx__add_str(b, slot, EPCTX_FIELD_NODE_INPUT, node->inputs[i]);
    for (i = 0; i < node->output_count; i++)
        epctx__add_str(b, slot, EPCTX_FIELD_NODE_OUTPUT, node->outputs[i]);
    epctx__add_str(b, slot, EPCTX_FIELD_NODE_NAME, node->name);
    epctx__add_str(b, slot, EPCTX_FIELD_NODE_OP_TYPE, node->op_type);
    for (i = 0; i < node->attr_count; i++) epctx__build_attr(b, slot, &node->attrs[i]);
    if (node->domain.size > 0) epctx__add_str(b, slot, EPCTX_FIELD_NODE_DOMAIN, node->domain);
    return slot;
}

/* -- copies of fields -- */

/* Copies a field as it is now, with its tag and the width of its length. Borrows the bytes. */
static epctx_slot *epctx__clone(epctx__builder *b, epctx_slot *parent, const epctx_slot *slot);

static void epctx__clone_children(epctx__builder *b, epctx_slot *to, const epctx_slot *from) {
    const epctx_slot *child = from->message->first;
    for (; child != NULL && b->status == EPCTX_OK; child = child->next)
        if (!child->removed) epctx__clone(b, to, child);
}

static epctx_slot *epctx__clone(epctx__builder *b, epctx_slot *parent, const epctx_slot *slot) {
    epctx_slot *copy =
        epctx__add_slot(b, parent, slot->number, (epctx_wire)slot->wire, slot->data, slot->size);
    if (copy == NULL) return NULL;
    copy->head = slot->head;
    copy->split = slot->split;
    if (epctx__is_changed(slot)) {
        epctx__make_message(b, copy);
        epctx__clone_children(b, copy, slot);
    }
    return copy;
}

/* The payload of a view of any model as an unlinked field. */
static epctx_slot *epctx__copy_view(epctx__builder *b, uint32_t number, epctx_view view) {
    const epctx_slot *from = epctx__changed_slot(view);
    epctx_slot *slot;
    if (from == NULL) return epctx__add_bytes(b, NULL, number, view.data, view.size);
    slot = epctx__add_message(b, NULL, number);
    epctx__clone_children(b, slot, from);
    return slot;
}

/* A new field must be readable in its place. */
static bool epctx__check_slot(epctx__check *check, epctx_kind type, const epctx_slot *slot,
                              uint32_t depth) {
    const epctx_slot *child;
    epctx_view body = epctx__slot_view(slot);
    uint32_t kind = slot->wire == EPCTX_WIRE_LEN ? epctx__field_kind(type, slot->number) : 0;
    if (!epctx__is_message(kind)) {
        return epctx__is_changed(slot)
                   ? epctx__refuse(check, EPCTX_ERR_GRAPH, NULL, "expected no message, found one")
                   : kind == 0 || body.size == 0 ||
                         epctx__check_packed(check, kind, body.data, body.data + body.size);
    }
    if (depth == 0)
        return epctx__refuse(check, EPCTX_ERR_LIMIT, NULL, "messages are nested too deep");
    if (!epctx__is_changed(slot)) {
        return body.size == 0 || epctx__check_message(check, epctx__message_kind(kind), body.data,
                                                      body.data + body.size, depth - 1);
    }
    for (child = slot->message->first; child != NULL; child = child->next)
        if (!epctx__check_slot(check, epctx__message_kind(kind), child, depth - 1)) return false;
    return true;
}

/* Removes the fields that `fresh` replaces, or only counts them (`count` not NULL), and returns the
 * last one. A field of another wire type is unknown. */
static epctx_slot *epctx__former(epctx__builder *b, const epctx_slot *parent,
                                 const epctx_slot *fresh, size_t *count) {
    epctx_kind type = epctx__slot_type(parent);
    bool choice = epctx__is_choice(type, fresh->number, (epctx_wire)fresh->wire);
    epctx_slot *slot;
    epctx_slot *last = NULL;
    for (slot = parent->message->first; slot != NULL; slot = slot->next) {
        if (!slot->removed && slot != fresh &&
            ((slot->number == fresh->number && slot->wire == fresh->wire) ||
             (choice && epctx__is_choice(type, slot->number, (epctx_wire)slot->wire)))) {
            last = slot;
            if (count != NULL)
                ++*count;
            else
                epctx__remove(b, slot);
        }
    }
    return last;
}

/* Links a new field behind `previous` (NULL: first); it replaces other members of a oneof. */
static epctx_status epctx__place(epctx__builder *b, epctx_slot *parent, epctx_slot *previous,
                                 epctx_slot *fresh) {
    const epctx_slot *up;
    epctx_kind type;
    epctx__check check;
    uint32_t depth = b->model->limits.max_depth;
    EPCTX__TRY(b->status);
    memset(&check, 0, sizeof check);
    check.fields = UINT64_MAX;
    type = epctx__slot_type(parent);
    for (up = parent; up->parent != NULL; up = up->parent) depth--;
    if (!epctx__check_slot(&check, type, fresh, depth)) {
        b->status = epctx_fail(
            b->error, check.status == EPCTX_ERR_LIMIT ? EPCTX_ERR_LIMIT : EPCTX_ERR_GRAPH,
            "this cannot become field %u: %s", (uint64_t)fresh->number, check.reason);
    } else if (check.duplicate) {
        epctx__reject(b, EPCTX_ERR_GRAPH, "a singular field of this message occurs twice", 0);
    } else if (type == EPCTX_KIND_MODEL && fresh->number == EPCTX_FIELD_MODEL_GRAPH) {
        b->status = epctx__open_as(b->model, fresh, EPCTX_KIND_GRAPH, b->error);
    }
    if (b->status == EPCTX_OK)
        b->status = epctx__journal(b->model, parent, previous, fresh, b->error);
    if (epctx__is_choice(type, fresh->number, (epctx_wire)fresh->wire))
        epctx__former(b, parent, fresh, NULL);
    return b->status;
}

static void epctx__put(epctx__builder *b, epctx_slot *parent, epctx_slot *fresh, epctx_view after,
                       epctx_view *placed) {
    epctx_slot *previous =
        b->status == EPCTX_OK ? epctx__place_of(b, parent, fresh->number, after) : NULL;
    if (epctx__place(b, parent, previous, fresh) == EPCTX_OK && placed != NULL)
        *placed = epctx__slot_view(fresh);
}

/* -- edits: fields -- */

EPCTX_API epctx_status epctx_edit_remove(epctx_model *model, epctx_view view, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__locate(&b, view);
    if (slot == model->root)
        epctx__reject(&b, EPCTX_ERR_ARG, "the model itself cannot be removed", 0);
    epctx__remove(&b, slot);
    return epctx__build_end(&b);
}

static unsigned epctx__varint_size(uint64_t value) {
    unsigned size = 1;
    for (; value >= 0x80; value >>= 7) size++;
    return size;
}

/* Bytes of the tag. */
static unsigned epctx__tag_size(const epctx_slot *slot) {
    unsigned size = 1;
    if (slot->split) return epctx__varint_size((uint64_t)slot->number << 3);
    while (size + 1u < slot->head && slot->data[size - 1] >= 0x80) size++;
    return size;
}

/* The least width of a field's length: an over-long one stays so. */
static unsigned epctx__length_width(const epctx_slot *slot) {
    unsigned had = slot->split;
    if (slot->split == 0) {
        had = (unsigned)slot->head - epctx__tag_size(slot);
        had = had > epctx__varint_size(slot->size - slot->head) ? had : 1;
    }
    return had;
}

static bool epctx__same_field(const epctx_slot *a, const epctx_slot *b) {
    epctx_field x, y;
    if (a->wire != b->wire || a->number != b->number) return false;
    epctx__slot_field(a, &x);
    epctx__slot_field(b, &y);
    return a->wire == EPCTX_WIRE_LEN ? epctx_view_equal(x.body, y.body) : x.value == y.value;
}

/* `fresh` replaces the fields of its number; a single equal one keeps its bytes. */
static void epctx__set_field(epctx__builder *b, epctx_slot *parent, epctx_slot *fresh) {
    epctx_slot *last;
    size_t count = 0;
    if (b->status != EPCTX_OK) return;
    last = epctx__former(b, parent, fresh, &count);
    if (count == 1 && epctx__same_field(last, fresh)) return;
    if (last != NULL && last->wire == EPCTX_WIRE_LEN && fresh->split)
        fresh->split = (uint8_t)epctx__length_width(last);
    epctx__place(b, parent, last != NULL ? last : parent->message->last, fresh);
    epctx__former(b, parent, fresh, NULL);
}

EPCTX_API epctx_status epctx_edit_set_field_str(epctx_model *model, epctx_view message,
                                                uint32_t number, epctx_str text,
                                                epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__locate_owner(&b, message, number, false);
    epctx__set_field(&b, slot, epctx__add_str(&b, NULL, number, text));
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_set_field_int(epctx_model *model, epctx_view message,
                                                uint32_t number, int64_t value,
                                                epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__locate_owner(&b, message, number, false);
    epctx__set_field(&b, slot, epctx__add_varint(&b, NULL, number, value));
    return epctx__build_end(&b);
}

static epctx_status epctx__edit_set_data(epctx_model *model, epctx_view message, uint32_t number,
                                         epctx_span data, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__locate_owner(&b, message, number, false);
    epctx__set_field(&b, slot, epctx__add_bytes(&b, NULL, number, data.data, data.size));
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_remove_field(epctx_model *model, epctx_view message,
                                               uint32_t number, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__locate_message(&b, message, EPCTX_KIND_NONE);
    for (slot = slot != NULL ? slot->message->first : NULL; slot != NULL; slot = slot->next)
        if (slot->number == number) epctx__remove(&b, slot);
    return epctx__build_end(&b);
}

/* `fresh` replaces `old`; both have a payload. */
static void epctx__replace(epctx__builder *b, epctx_slot *old, epctx_slot *fresh) {
    if (b->status == EPCTX_OK) {
        fresh->split = (uint8_t)epctx__length_width(old);
        epctx__place(b, old->parent, old, fresh);
        epctx__remove(b, old);
    }
}

EPCTX_API epctx_status epctx_edit_replace_str(epctx_model *model, epctx_view field, epctx_str text,
                                              epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__locate(&b, field);
    if (slot == NULL || slot->parent == NULL ||
        epctx__field_kind(epctx__slot_type(slot->parent), slot->number) != 0)
        epctx__reject(&b, EPCTX_ERR_ARG, "the view is not a string", 0);
    else if (!epctx_str_eq(epctx_view_str(epctx__slot_view(slot)), text))
        epctx__replace(&b, slot, epctx__add_str(&b, NULL, slot->number, text));
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_put_copy(epctx_model *model, epctx_view parent, uint32_t number,
                                           epctx_view other, epctx_view after, epctx_view *placed,
                                           epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *owner = epctx__locate_message(&b, parent, EPCTX_KIND_NONE);
    const epctx_field_info *info =
        owner != NULL ? epctx_field_find(epctx__slot_type(owner), number) : NULL;
    if (number == 0)
        epctx__reject(&b, EPCTX_ERR_ARG, "expected a field number, found 0", 0);
    else if (info != NULL && !info->repeated && info->kind < EPCTX_KIND_INT &&
             epctx__live(owner->message->first, number) != NULL)
        epctx__reject(&b, EPCTX_ERR_ARG, "the message has a field %u already", number);
    epctx__put(&b, owner, epctx__copy_view(&b, number, other), after, placed);
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_move(epctx_model *model, epctx_view view, epctx_view after,
                                       epctx_view *placed, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__locate(&b, view);
    epctx_slot *previous, *next;
    if (slot == model->root)
        epctx__reject(&b, EPCTX_ERR_ARG, "the model itself cannot be moved", 0);
    EPCTX__TRY(b.status);
    previous = epctx__place_of(&b, slot->parent, slot->number, after);
    next = previous == NULL ? slot->parent->message->first : previous->next;
    if (previous != slot && next != slot) {
        epctx_slot *old = slot;
        slot = epctx__clone(&b, NULL, old);
        epctx__place(&b, old->parent, previous, slot);
        epctx__remove(&b, old);
    }
    if (b.status == EPCTX_OK && placed != NULL) *placed = epctx__slot_view(slot);
    return epctx__build_end(&b);
}

/* -- edits: attributes -- */

/* Fields of an AttributeProto that hold a value; those of other wire types are unknown. */
static bool epctx__is_value_field(const epctx_slot *slot) {
    const epctx_field_info *info = epctx_field_find(EPCTX_KIND_ATTR, slot->number);
    return info != NULL && !slot->removed && slot->number != EPCTX_FIELD_ATTR_NAME &&
           slot->number != EPCTX_FIELD_ATTR_DOC_STRING && slot->number != EPCTX_FIELD_ATTR_TYPE &&
           (epctx_field_fits(info, (epctx_wire)slot->wire) ||
            (info->repeated && slot->wire == EPCTX_WIRE_LEN));
}

/* The new value replaces the last one; an equal one keeps its bytes. */
static void epctx__change_attr(epctx__builder *b, epctx_slot *attr, const epctx_attr *record) {
    epctx_slot *fresh = epctx__add_message(b, NULL, EPCTX_FIELD_NODE_ATTRIBUTE);
    epctx_slot *slot, *next, *last = NULL;
    bool same = true;
    epctx__opened(b, attr);
    epctx__build_payload(b, fresh, record);
    if (b->status != EPCTX_OK) return;
    next = fresh->message->first;
    for (slot = attr->message->first; slot != NULL; slot = slot->next) {
        if (epctx__is_value_field(slot)) {
            last = slot;
            same = same && next != NULL && epctx__same_field(slot, next);
            next = same ? next->next : next;
        }
    }
    if (!same || next != NULL) {
        epctx_slot *previous = last != NULL ? last : attr->message->last;
        next = fresh->message->first;
        if (last != NULL && next != NULL && next->next == NULL && next->split &&
            last->wire == EPCTX_WIRE_LEN && next->number == last->number)
            next->split = (uint8_t)epctx__length_width(last);
        for (slot = attr->message->first; slot != NULL; slot = slot->next)
            if (epctx__is_value_field(slot)) epctx__remove(b, slot);
        for (slot = next; slot != NULL; slot = next) {
            next = slot->next; /* linking changes it */
            epctx__place(b, attr, previous, slot);
            previous = slot;
        }
    }
    epctx__set_field(b, attr,
                     epctx__add_varint(b, NULL, EPCTX_FIELD_ATTR_TYPE, (int64_t)record->type));
}

/* The first attribute of the name becomes `attr` (NULL: a copy of `copy`); others are removed. */
static epctx_status epctx__set_attr(epctx_model *model, epctx_view node, const epctx_attr *attr,
                                    epctx_view copy, epctx_error *error) {
    const uint32_t number = EPCTX_FIELD_NODE_ATTRIBUTE;
    epctx__builder b = epctx__builder_of(model, error);
    epctx_str name = attr != NULL ? attr->name : epctx_view_as_attr(copy).name;
    epctx_slot *owner = epctx__locate_message(&b, node, EPCTX_KIND_NODE);
    epctx_slot *old = owner != NULL ? epctx__keyed_from(owner->message->first, number, name) : NULL;
    epctx_slot *fresh = old;
    if (old != NULL && attr != NULL) {
        epctx__change_attr(&b, old, attr);
    } else {
        fresh =
            attr != NULL ? epctx__build_attr(&b, NULL, attr) : epctx__copy_view(&b, number, copy);
        if (old != NULL)
            epctx__replace(&b, old, fresh);
        else
            epctx__put(&b, owner, fresh, epctx_view_none(), NULL);
    }
    epctx__drop_keyed(&b, owner, number, name, fresh);
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_set_attr(epctx_model *model, epctx_view node,
                                           const epctx_attr *attr, epctx_error *error) {
    return epctx__set_attr(model, node, attr, epctx_view_none(), error);
}

EPCTX_API epctx_status epctx_edit_copy_attr(epctx_model *model, epctx_view node, epctx_view attr,
                                            epctx_error *error) {
    return epctx__set_attr(model, node, NULL, attr, error);
}

EPCTX_API epctx_status epctx_edit_set_attr_int(epctx_model *model, epctx_view node,
                                               const char *name, int64_t value,
                                               epctx_error *error) {
    epctx_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.name = epctx_str_of(name);
    attr.type = EPCTX_ATTR_INT;
    attr.i = value;
    return epctx_edit_set_attr(model, node, &attr, error);
}

EPCTX_API epctx_status epctx_edit_set_attr_str(epctx_model *model, epctx_view node,
                                               const char *name, epctx_str value,
                                               epctx_error *error) {
    epctx_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.name = epctx_str_of(name);
    attr.type = EPCTX_ATTR_STRING;
    attr.s = value;
    return epctx_edit_set_attr(model, node, &attr, error);
}

EPCTX_API epctx_status epctx_edit_remove_attr(epctx_model *model, epctx_view node, epctx_str name,
                                              epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *owner = epctx__locate_message(&b, node, EPCTX_KIND_NODE);
    epctx__drop_keyed(&b, owner, EPCTX_FIELD_NODE_ATTRIBUTE, name, NULL);
    return epctx__build_end(&b);
}

/* -- edits: nodes, values, initializers -- */

EPCTX_API epctx_status epctx_edit_put_node(epctx_model *model, epctx_view graph,
                                           const epctx_node *node, epctx_view after,
                                           epctx_view *placed, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *owner = epctx__locate_graph(&b, graph, EPCTX_KIND_NONE);
    uint32_t number = EPCTX_FIELD_GRAPH_NODE;
    if (owner != NULL && epctx__slot_type(owner) == EPCTX_KIND_FUNCTION)
        number = EPCTX_FIELD_FUNCTION_NODE;
    epctx__put(&b, owner, epctx__build_node(&b, NULL, number, node), after, placed);
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_put_value(epctx_model *model, epctx_view graph, uint32_t number,
                                            const epctx_value *value, epctx_view after,
                                            epctx_view *placed, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *owner = epctx__locate_graph(&b, graph, EPCTX_KIND_GRAPH);
    if (epctx__child_kind(EPCTX_KIND_GRAPH, number) != EPCTX_KIND_VALUE)
        epctx__reject(&b, EPCTX_ERR_ARG, "field %u of a graph holds no values", number);
    epctx__put(&b, owner, epctx__build_value(&b, NULL, number, value), after, placed);
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_put_initializer(epctx_model *model, epctx_view graph,
                                                  const epctx_tensor *tensor, epctx_view after,
                                                  epctx_view *placed, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *owner = epctx__locate_graph(&b, graph, EPCTX_KIND_GRAPH);
    epctx__put(&b, owner, epctx__build_tensor(&b, NULL, EPCTX_FIELD_GRAPH_INITIALIZER, tensor),
               after, placed);
    return epctx__build_end(&b);
}

/* -- edits: the data of tensors -- */

#define EPCTX__BIT_OF(name) (UINT32_C(1) << EPCTX_FIELD_TENSOR_##name)

/* Removes the data of a tensor; other fields stay. */
static epctx_slot *epctx__drop_data(epctx__builder *b, epctx_view view) {
    const uint32_t data =
        EPCTX__BIT_OF(FLOAT_DATA) | EPCTX__BIT_OF(INT32_DATA) | EPCTX__BIT_OF(STRING_DATA) |
        EPCTX__BIT_OF(INT64_DATA) | EPCTX__BIT_OF(RAW_DATA) | EPCTX__BIT_OF(DOUBLE_DATA) |
        EPCTX__BIT_OF(UINT64_DATA) | EPCTX__BIT_OF(EXTERNAL_DATA) | EPCTX__BIT_OF(DATA_LOCATION);
    epctx_slot *tensor = epctx__locate_message(b, view, EPCTX_KIND_TENSOR);
    epctx_slot *slot = tensor != NULL ? tensor->message->first : NULL;
    for (; slot != NULL; slot = slot->next)
        if (slot->number < 32 && (data >> slot->number & 1) != 0) epctx__remove(b, slot);
    return tensor;
}

#undef EPCTX__BIT_OF

/* Links a field in field order. */
static void epctx__put_sorted(epctx__builder *b, epctx_slot *parent, epctx_slot *fresh) {
    epctx_slot *previous = NULL;
    epctx_slot *slot = b->status == EPCTX_OK ? parent->message->first : NULL;
    for (; slot != NULL && (slot->removed || slot->number <= fresh->number); slot = slot->next)
        previous = slot;
    epctx__place(b, parent, previous, fresh);
}

EPCTX_API epctx_status epctx_edit_set_tensor_raw(epctx_model *model, epctx_view tensor,
                                                 epctx_span data, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__drop_data(&b, tensor);
    epctx__put_sorted(
        &b, slot, epctx__add_bytes(&b, NULL, EPCTX_FIELD_TENSOR_RAW_DATA, data.data, data.size));
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_set_tensor_external(epctx_model *model, epctx_view tensor,
                                                      epctx_str location, uint64_t offset,
                                                      uint64_t length, epctx_error *error) {
    static const char *const keys[] = {"location", "offset", "length"};
    const uint64_t numbers[3] = {0, offset, length};
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__drop_data(&b, tensor);
    char digits[24];
    size_t i;
    for (i = 0; i < 3; i++) {
        epctx_slot *entry = epctx__add_message(&b, NULL, EPCTX_FIELD_TENSOR_EXTERNAL_DATA);
        epctx_text text = epctx_text_of(digits, sizeof digits);
        epctx_text_put_number(&text, numbers[i]);
        epctx__add_str(&b, entry, EPCTX_FIELD_PAIR_KEY, epctx_str_of(keys[i]));
        epctx__add_str(&b, entry, EPCTX_FIELD_PAIR_VALUE,
                       i == 0 ? location : epctx_text_str(&text));
        epctx__put_sorted(&b, slot, entry);
    }
    epctx__put_sorted(&b, slot, epctx__add_varint(&b, NULL, EPCTX_FIELD_TENSOR_DATA_LOCATION, 1));
    return epctx__build_end(&b);
}

/* -- edits: fields that occur twice -- */

static epctx_status epctx__merge_into(const epctx__doubled *d, epctx_slot *into, epctx_slot *gone,
                                      epctx_kind type) {
    epctx__builder b = epctx__builder_of(d->model, d->error);
    const epctx_slot *child = NULL;
    if (into != NULL) {
        EPCTX__TRY(epctx__open_as(d->model, into, type, d->error));
        EPCTX__TRY(epctx__open_as(d->model, gone, type, d->error));
        child = gone->message->first;
    }
    for (; child != NULL; child = child->next) {
        if (EPCTX__ALWAYS(!child->removed)) { /* the model was read-only */
            epctx_slot *copy = epctx__clone(&b, NULL, child);
            EPCTX__TRY(b.status);
            EPCTX__TRY(epctx__journal(d->model, into, into->message->last, copy, d->error));
        }
    }
    return epctx__journal(d->model, NULL, NULL, gone, d->error);
}

EPCTX_API bool epctx_model_is_editable(const epctx_model *model) {
    return !model->duplicate;
}

EPCTX_API epctx_status epctx_edit_merge_doubled(epctx_model *model, epctx_doubled_fn doubled_fn,
                                                void *user, epctx_error *error) {
    const epctx__doubled d = {model, error, epctx__merge_into, true, doubled_fn, user};
    epctx__builder b;
    if (model->duplicate) { /* epctx_edit_undo restores it */
        model->merged = model->shown;
        model->merged_at = model->edit_count;
        model->duplicate = false;
        model->shown = model->root;
    }
    b = epctx__builder_of(model, error);
    EPCTX__TRY(b.status);
    b.status = epctx__single_below(&d, model->root, EPCTX_KIND_MODEL, epctx_str_of(NULL));
    EPCTX__TRY(epctx__build_end(&b));
    model->graph = model->shown_graph = epctx__find_graph(model->root);
    return EPCTX_OK;
}

/* -- edits: opset imports, key/value pairs -- */

/* The last entry with that key or a new one. */
static epctx_slot *epctx__keyed_entry(epctx__builder *b, epctx_slot *owner, uint32_t number,
                                      epctx_str key) {
    epctx_slot *entry = NULL;
    epctx_slot *slot = b->status == EPCTX_OK ? owner->message->first : NULL;
    while ((slot = epctx__keyed_from(slot, number, key)) != NULL) {
        entry = slot;
        slot = slot->next;
    }
    if (entry == NULL) {
        entry = epctx__add_message(b, NULL, number);
        epctx__add_str(b, entry, EPCTX_FIELD_PAIR_KEY, key);
        epctx__put(b, owner, entry, epctx_view_none(), NULL);
    }
    return epctx__opened(b, entry);
}

EPCTX_API epctx_status epctx_edit_put_opset(epctx_model *model, epctx_str domain, int64_t version,
                                            epctx_error *error) {
    epctx_error_clear(error);
    return epctx_model_opset(model, domain) != 0
               ? EPCTX_OK
               : epctx_edit_set_opset(model, domain, version, error);
}

EPCTX_API epctx_status epctx_edit_set_opset(epctx_model *model, epctx_str domain, int64_t version,
                                            epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *slot = epctx__keyed_entry(&b, model->root, EPCTX_FIELD_MODEL_OPSET_IMPORT, domain);
    epctx__set_field(&b, slot, epctx__add_varint(&b, NULL, EPCTX_FIELD_OPSET_VERSION, version));
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_remove_opset(epctx_model *model, epctx_str domain,
                                               epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx__drop_keyed(&b, model->root, EPCTX_FIELD_MODEL_OPSET_IMPORT, domain, NULL);
    return epctx__build_end(&b);
}

/* Of several pairs with the key the last one stays. */
EPCTX_API epctx_status epctx_edit_set_pair(epctx_model *model, epctx_view message, uint32_t number,
                                           epctx_str key, epctx_str value, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *owner = epctx__locate_owner(&b, message, number, true);
    epctx_slot *slot = epctx__keyed_entry(&b, owner, number, key);
    epctx__drop_keyed(&b, owner, number, key, slot);
    epctx__set_field(&b, slot, epctx__add_str(&b, NULL, EPCTX_FIELD_PAIR_VALUE, value));
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_remove_pair(epctx_model *model, epctx_view message,
                                              uint32_t number, epctx_str key, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx_slot *owner = epctx__locate_owner(&b, message, number, true);
    epctx__drop_keyed(&b, owner, number, key, NULL);
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_set_metadata(epctx_model *model, epctx_str key, epctx_str value,
                                               epctx_error *error) {
    return epctx_edit_set_pair(model, epctx_model_root(model), EPCTX_FIELD_MODEL_METADATA_PROPS,
                               key, value, error);
}

EPCTX_API epctx_status epctx_edit_remove_metadata(epctx_model *model, epctx_str key,
                                                  epctx_error *error) {
    return epctx_edit_remove_pair(model, epctx_model_root(model), EPCTX_FIELD_MODEL_METADATA_PROPS,
                                  key, error);
}

/* -- edits: names of files -- */

static uint32_t epctx__renamed_to(const epctx_map *map, epctx_str name) {
    return name.size < EPCTX_PATH_MAX ? epctx_map_get(map, name) : EPCTX_MAP_NONE;
}

EPCTX_API epctx_status epctx_edit_rename_files(epctx_model *model, const epctx_file_rename *renames,
                                               size_t count, epctx_error *error) {
    static const char *const attributes[] = {"ep_cache_context", "ep_dlc_context"};
    size_t mark = epctx_edit_mark(model);
    epctx_status status = EPCTX_OK;
    epctx_map maps[2]; /* contexts, tensors: old name -> index in `renames` */
    epctx_walk walk;
    epctx_tensor_view tensor;
    epctx_node_view node;
    uint32_t at;
    size_t i;
    epctx_error_clear(error);
    epctx_map_init(&maps[0], &model->arena);
    epctx_map_init(&maps[1], &model->arena);
    for (i = 0; i < count; i++) {
        if (renames[i].from.size > 0) {
            EPCTX__TRY(epctx__map_set(&maps[renames[i].use == EPCTX_USE_INITIALIZERS],
                                      renames[i].from, i, error));
        }
    }
    epctx_walk_begin(&walk, model);
    while (status == EPCTX_OK && maps[1].count > 0 && epctx_walk_tensor(&walk, &tensor)) {
        at = tensor.external ? epctx__renamed_to(&maps[1], tensor.location) : EPCTX_MAP_NONE;
        if (at != EPCTX_MAP_NONE) {
            status = epctx_edit_set_pair(model, tensor.view, EPCTX_FIELD_TENSOR_EXTERNAL_DATA,
                                         epctx_str_of("location"), renames[at].to, error);
        }
    }
    epctx_walk_begin(&walk, model);
    while (status == EPCTX_OK && maps[0].count > 0 && epctx_walk_epnode(&walk, &node)) {
        for (i = 0; i < 2 && status == EPCTX_OK; i++) {
            at = epctx__renamed_to(&maps[0], epctx_view_node_attr_str(&node, attributes[i]));
            if (at != EPCTX_MAP_NONE)
                status =
                    epctx_edit_set_attr_str(model, node.view, attributes[i], renames[at].to, error);
        }
    }
    if (status != EPCTX_OK) epctx_edit_undo(model, mark);
    return status;
}

/* -- edits: a new model -- */

EPCTX_API epctx_status epctx_model_new(epctx_model *model, int64_t ir_version,
                                       const epctx_open_opts *opts, epctx_error *error) {
    static const uint8_t graph[2] = {0x3a, 0x00};
    epctx_status status;
    EPCTX__TRY(epctx_model_open_memory(model, graph, sizeof graph, opts, error));
    status = epctx_edit_set_field_int(model, epctx__slot_view(model->root),
                                      EPCTX_FIELD_MODEL_IR_VERSION, ir_version, error);
    if (status != EPCTX_OK) epctx_model_close(model);
    return status;
}

/* ============================================================
 * >>write
 *
 * A model is written from the tree of slots. epctx__measure goes down to what was changed and
 * stores the size of each changed message there; epctx_model_write_stream follows the same way, and
 * copies everything else as it was read.
 * ============================================================ */

/* Bytes of the length prefix: an over-long one keeps its width while the new value fits. */
static unsigned epctx__length_size(const epctx_slot *slot, uint64_t size) {
    unsigned need = epctx__varint_size(size);
    unsigned width = epctx__length_width(slot);
    return width > need ? width : need;
}

/* Size of a written field; stores the payload size of changed messages. */
static uint64_t epctx__measure(epctx_slot *slot) {
    uint64_t size = slot->size;
    if (slot->removed) return 0;
    if (epctx__is_changed(slot)) {
        epctx_slot *child;
        size = 0;
        for (child = slot->message->first; child != NULL; child = child->next)
            size += epctx__measure(child);
        slot->message->size = size;
    } else if (!slot->split) {
        return size;
    }
    if (slot->parent == NULL) return size; /* the model has no tag */
    return epctx__tag_size(slot) + epctx__length_size(slot, size) + size;
}

EPCTX_API uint64_t epctx_model_size(epctx_model *model) {
    return model->root != NULL ? epctx__measure(model->root) : 0;
}

/* Joins bytes that are neighbours in the source to one write. */
typedef struct epctx__writer {
    pb_ostream_t *stream;
    const uint8_t *run;
    size_t run_size;
} epctx__writer;

/* `data` NULL: flushes. */
static bool epctx__write_run(epctx__writer *w, const uint8_t *data, size_t size) {
    if (w->run_size > 0 && data != w->run + w->run_size) {
        if (!pb_write(w->stream, w->run, w->run_size)) return false;
        w->run_size = 0;
    }
    w->run = w->run_size > 0 ? w->run : data;
    w->run_size += size;
    return true;
}

static bool epctx__write_head(epctx__writer *w, const epctx_slot *slot, uint64_t size) {
    uint8_t length[10];
    unsigned count = epctx__length_size(slot, size);
    unsigned i;
    for (i = 0; i < count; i++) {
        length[i] = (uint8_t)((size & 0x7f) | (i + 1 < count ? 0x80 : 0));
        size >>= 7;
    }
    return (slot->split || epctx__write_run(w, slot->data, epctx__tag_size(slot))) &&
           epctx__write_run(w, NULL, 0) &&
           (!slot->split || pb_encode_tag(w->stream, PB_WT_STRING, slot->number)) &&
           pb_write(w->stream, length, count);
}

static bool epctx__write_slot(epctx__writer *w, const epctx_slot *slot) {
    const epctx_slot *child;
    if (slot->removed) return true;
    if (!epctx__is_changed(slot)) {
        return (!slot->split || epctx__write_head(w, slot, slot->size)) &&
               epctx__write_run(w, slot->data, slot->size);
    }
    if (slot->parent != NULL && !epctx__write_head(w, slot, slot->message->size)) return false;
    for (child = slot->message->first; child != NULL; child = child->next)
        if (!epctx__write_slot(w, child)) return false;
    return true;
}

EPCTX_API epctx_status epctx_model_write_stream(epctx_model *model, pb_ostream_t *stream,
                                                epctx_error *error) {
    epctx__writer w;
    epctx_error_clear(error);
    EPCTX__TRY(epctx__check_open(model, error));
    memset(&w, 0, sizeof w);
    w.stream = stream;
    epctx__measure(model->root);
    if (!epctx__write_slot(&w, model->root) || !epctx__write_run(&w, NULL, 0)) {
        return epctx_fail(error, EPCTX_ERR_IO, "the output stream failed: %s",
                          PB_GET_ERROR(stream)); /* not taken: nanopb always has a message */
    }
    return EPCTX_OK;
}

static epctx_status epctx__buffer_model(epctx_buffer *buffer, epctx_model *model,
                                        epctx_error *error) {
    const size_t size = (size_t)epctx_model_size(model);
    pb_ostream_t stream;
    if (epctx_buffer_append(buffer, NULL, size) != EPCTX_OK) return epctx__nomem(error, size);
    stream = pb_ostream_from_buffer(buffer->data, size);
    return epctx_model_write_stream(model, &stream, error);
}

#endif /* EPCTX_NO_EDIT */

/* ============================================================
 * >>commit
 *
 * An epctx_commit is a list of epctx__commit_file. epctx__commit_judge checks an entry and resolves
 * its path before anything is written. epctx_commit_fill makes an epctx__output for each: a
 * complete and durable temporary file. epctx__commit_all does the rest: it takes the locks, asks
 * whether files that were read or kept are still those (epctx__commit_review), places files, then
 * models, and in the end removes what epctx_commit_remove named.
 *
 * The invariant: whenever a name shows a model, the files that this model names belong to it. For a
 * model with a new name it is enough to come after its files. But an old model may name a file that
 * is replaced. epctx__commit_detour therefore gives the new file a second name, FILE.new, and
 * places a variant of the new model that names FILE.new. Then FILE is replaced, then the variant by
 * the model itself. Each of these steps leaves a model with its own files. Without hard links the
 * old model is removed first; a killed process leaves it as FILE.old.
 *
 * A replaced file keeps a temporary name until the end. A failure moves the old files back in the
 * reverse order (the list `placed`), so that each state on the way is consistent, too. If one
 * cannot be moved back, the commit is `stuck`: it stops there, and FILE.new stays for the model
 * that may name it.
 *
 * Locks exclude other writers, be they processes or threads. All commits take them in one order,
 * epctx__lock_order, and only try those that come before a lock which the caller holds, so that no
 * two wait for each other. Waiting is short, because all bytes but those of a variant are durable
 * before. Names from a model stay below the commit's folder and may not be links. Models are
 * streamed from their source bytes; small pieces are gathered in 16 KiB, large ones go out
 * directly; with `keep`, an equal file is not written again.
 * ============================================================ */

/* A file being written, buffered. */
typedef struct epctx__output {
    const epctx_io *io;
    epctx_io_file file;
    bool open;
    bool placed;                  /* back_fn restores the old file */
    struct epctx__output *before; /* placed before it */
    size_t used;
    epctx_status status; /* of the last write */
    epctx_error *error;
    uint8_t gathered[16384];
} epctx__output;

typedef struct epctx__commit_file {
    struct epctx__commit_file *next; /* in lock order */
    const char *path;                /* the caller's */
    const char *real;                /* canonical folder and name */
    const char *root;                /* of `name` and the lock's name, for the io's callbacks */
    const char *name;
    const char *lock; /* its whole path */
    size_t inside;    /* where the lock's name begins in it */
    epctx_write_opts opts;
    struct epctx_model *model; /* the content: a model or bytes */
    epctx_output_file *file;
    bool is_model, filled, held; /* held: `locked` is to be released */
    bool goes;                   /* is removed at the end */
    bool names_replaced;         /* the old model names a replaced file */
    epctx_file_info there;
    epctx_file_info *seen;       /* the file expected there, a model's is renewed; NULL: any */
    epctx__output *out, *detour; /* detour: the model with second names */
    epctx_io_file locked;
} epctx__commit_file;

static epctx_status epctx__output_flush(epctx__output *out) {
    size_t used = out->used;
    out->used = 0;
    return used == 0
               ? EPCTX_OK
               : out->io->write_fn(out->io->user, &out->file, out->gathered, used, out->error);
}

/* `data` NULL: zeros. */
static epctx_status epctx__output_write(epctx__output *out, const uint8_t *data, size_t size) {
    if (data != NULL && size > sizeof out->gathered - out->used) {
        EPCTX__TRY(epctx__output_flush(out));
        if (size > sizeof out->gathered)
            return out->io->write_fn(out->io->user, &out->file, data, size, out->error);
    }
    while (size > 0) {
        size_t room = sizeof out->gathered - out->used;
        size_t piece = size < room ? size : room;
        if (data != NULL)
            memcpy(out->gathered + out->used, data, piece);
        else
            memset(out->gathered + out->used, 0, piece);
        out->used += piece;
        size -= piece;
        if (out->used == sizeof out->gathered) EPCTX__TRY(epctx__output_flush(out));
    }
    return EPCTX_OK;
}

static void epctx__output_close(epctx__output *out) {
    if (out != NULL && out->open) {
        out->io->close_fn(out->io->user, &out->file);
        out->open = false;
    }
}

#ifndef EPCTX_NO_EDIT

static bool epctx__output_stream(pb_ostream_t *stream, const pb_byte_t *data, size_t size) {
    epctx__output *out = (epctx__output *)stream->state;
    out->status = epctx__output_write(out, data, size);
    return out->status == EPCTX_OK;
}

static epctx_status epctx__output_model(epctx__output *out, epctx_model *model) {
    pb_ostream_t stream;
    memset(&stream, 0, sizeof stream);
    stream.callback = epctx__output_stream;
    stream.state = out;
    stream.max_size = SIZE_MAX;
    /* out->error has the io's own message, which is better than the stream's. */
    return epctx_model_write_stream(model, &stream, NULL) == EPCTX_OK ? EPCTX_OK : out->status;
}

/* Consumers read no model of 2 GiB or more. */
static epctx_status epctx__check_huge(epctx_model *model, const char *cure, epctx_error *error) {
    uint64_t size = epctx_model_size(model);
    return size <= (uint64_t)EPCTX_MODEL_MAX
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_LIMIT,
                            "the model would have %u bytes, protobuf readers such as ONNX Runtime "
                            "accept at most %u: %s",
                            size, (uint64_t)EPCTX_MODEL_MAX, cure);
}

#endif /* EPCTX_NO_EDIT */

/* Makes a complete and durable temporary file of `model` or, if that is NULL, of the entry's
 * bytes. */
static epctx_status epctx__output_make(const epctx_commit *c, const epctx__commit_file *entry,
                                       struct epctx_model *model, epctx__output **made) {
    epctx__output *out;
    size_t i;
    EPCTX__NEW(out, epctx__output, 1, c->arena, c->error);
    *made = out;
    out->io = c->io;
    out->error = c->error;
    EPCTX__TRY(c->io->create_fn(c->io->user, entry->root, entry->name, &out->file, c->error));
    out->open = true;
#ifndef EPCTX_NO_EDIT
    if (model != NULL) EPCTX__TRY(epctx__output_model(out, model));
#endif
    for (i = 0; model == NULL && i < entry->file->part_count; i++) {
        const epctx_span *part = &entry->file->parts[i];
        EPCTX__TRY(epctx__output_write(out, part->data, part->size));
    }
    EPCTX__TRY(epctx__output_flush(out));
    return c->io->sync_fn(c->io->user, &out->file, c->error);
}

/* -- entries -- */

EPCTX_API epctx_status epctx_commit_begin(epctx_commit *commit, const epctx_io *io,
                                          epctx_arena *arena, epctx_error *error) {
    epctx_error_clear(error);
    memset(commit, 0, sizeof *commit);
    commit->arena = arena;
    return epctx__io_of(io, &commit->io, error);
}

/* `folder` is canonical. */
static epctx_status epctx__commit_folder(epctx_commit *c, epctx_str folder) {
    char whole[EPCTX_PATH_MAX];
    EPCTX__TRY(epctx_path_join(folder, epctx_str_of(""), whole, sizeof whole, c->error));
    return epctx__copy(c->arena, epctx_str_of(whole), &c->folder, c->error);
}

EPCTX_API epctx_status epctx_commit_set_folder(epctx_commit *commit, const char *folder,
                                               epctx_error *error) {
    char real[EPCTX_PATH_MAX];
    epctx_error_clear(error);
    commit->error = error;
    EPCTX__TRY(commit->io->canonical_fn(commit->io->user, folder[0] != '\0' ? folder : ".", real,
                                        sizeof real, error));
    return epctx__commit_folder(commit, epctx_str_of(real));
}

static bool epctx__parts_equal(const epctx_output_file *file, const epctx_mapping *mapping) {
    bool same = file->size == mapping->size;
    uint64_t at = 0;
    size_t i;
    for (i = 0; i < file->part_count && same; i++) {
        const epctx_span *part = &file->parts[i];
        same = part->size <= mapping->size - at;
        if (same && part->size > 0) {
            const uint8_t *there = mapping->data + at;
            same = part->data != NULL
                       ? memcmp(there, part->data, part->size) == 0
                       : there[0] == 0 && memcmp(there, there + 1, part->size - 1) == 0;
        }
        at += part->size;
    }
    return same && at == mapping->size;
}

/* Keeps a file that has these bytes already. epctx__commit_review sees if it changes until then. */
static epctx_status epctx__commit_kept(epctx_commit *c, epctx__commit_file *entry) {
    epctx_output_file *file = entry->file;
    epctx_mapping old;
    memset(&old, 0, sizeof old);
    EPCTX__TRY(c->io->stat_fn(c->io->user, entry->real, &entry->there, c->error));
    if (entry->there.kind == EPCTX_FILE_NONE) return EPCTX_OK;
    EPCTX__TRY(c->io->map_fn(c->io->user, entry->root, entry->name, false, &old, c->error));
    entry->there = old.info;
    file->kept = epctx__parts_equal(file, &old);
    c->io->unmap_fn(c->io->user, &old); /* Windows cannot replace mapped files */
    if (file->kept && entry->there.inode != 0) entry->seen = &entry->there;
    return file->kept || entry->opts.overwrite != EPCTX_OVERWRITE_FAIL
               ? EPCTX_OK
               : epctx_fail(c->error, EPCTX_ERR_EXISTS,
                            "exists with other bytes: choose another name, remove it, or allow "
                            "overwriting");
}

/* `name` is relative to the commit's folder; NULL: the caller chose the path. */
static epctx_status epctx__commit_judge(epctx_commit *c, epctx__commit_file *entry,
                                        const char *name) {
    bool keep = c->keep && entry->file != NULL;
    epctx_overwrite overwrite = keep ? EPCTX_OVERWRITE_REPLACE : entry->opts.overwrite;
    char real[EPCTX_PATH_MAX];
    char lock[EPCTX_PATH_MAX];
    if (entry->opts.derived) {
        EPCTX__TRY(epctx__path_place(c->io, entry->path, real, c->error));
        EPCTX__TRY(epctx__commit_folder(c, epctx_path_folder(epctx_str_of(real))));
        name = epctx_path_file(epctx_str_of(entry->path)).data;
    }
#ifndef EPCTX_NO_EDIT
    if (entry->model != NULL && !entry->opts.allow_huge) {
        EPCTX__TRY(epctx__check_huge(entry->model,
                                     "keep the context in its own file (embed_mode 0) and large "
                                     "initializers in an external file, or allow it",
                                     c->error));
    }
#endif
    if (name == NULL || name[0] == '\0') {
        EPCTX__TRY(epctx_output_check(c->io, entry->path, overwrite, c->error));
        EPCTX__TRY(epctx__path_real(c->io, entry->path, real, c->error));
    } else if (c->folder != NULL) {
        EPCTX__TRY(epctx__path_check_new(c->io, epctx_str_of(c->folder), epctx_str_of(name),
                                         overwrite, real, c->error));
        entry->root = c->folder;
        entry->inside = strlen(c->folder);
    } else {
        return epctx_fail(c->error, EPCTX_ERR_ARG, "the commit has no folder for this name");
    }
    EPCTX__TRY(epctx__path_end(real, ".lock", lock, c->error));
    EPCTX__TRY(epctx__copy(c->arena, epctx_str_of(real), &entry->real, c->error));
    EPCTX__TRY(epctx__copy(c->arena, epctx_str_of(lock), &entry->lock, c->error));
    entry->name = entry->root != NULL ? entry->real + entry->inside : entry->path;
#ifndef EPCTX_NO_EDIT
    if (entry->model != NULL) {
        epctx_model *model = entry->model;
        /* The model's own path, wherever it leads now, or another path of that file. */
        bool own =
            strcmp(model->path, entry->path) == 0 ||
            (c->io->canonical_fn(c->io->user, model->path, lock, sizeof lock, NULL) == EPCTX_OK &&
             strcmp(lock, real) == 0);
        entry->seen = own && model->id.inode != 0 ? &model->id : NULL;
        return epctx__commit_folder(c, epctx_path_folder(epctx_str_of(real)));
    }
#endif
    return keep ? epctx__commit_kept(c, entry) : EPCTX_OK;
}

/* One order prevents deadlocks: names of models first, so that the holder of a model's lock can
 * wait for its files; then by name. */
static int epctx__lock_order(const char *a, const char *b) {
    bool first = epctx__ends_with(epctx_str_of(a), ".onnx.lock");
    bool second = epctx__ends_with(epctx_str_of(b), ".onnx.lock");
    return first != second ? (first ? -1 : 1) : strcmp(a, b);
}

static epctx_status epctx__commit_entry(epctx_commit *c, const char *path, epctx_error *error,
                                        epctx__commit_file **out) {
    epctx_error_clear(error);
    c->error = error;
    EPCTX__NEW(*out, epctx__commit_file, 1, c->arena, error);
    return epctx__copy(c->arena, epctx_str_of(path), &(*out)->path, error);
}

/* Checks an entry and adds it. */
static epctx_status epctx__commit_put(epctx_commit *c, epctx__commit_file *entry,
                                      const char *name) {
    epctx__commit_file **link = &c->files;
    epctx_status status = epctx__commit_judge(c, entry, name);
    epctx_blame(c->error, entry->path, NULL, NULL);
    EPCTX__TRY(status);
    c->lock = entry->opts.lock != NULL ? entry->opts.lock : c->lock;
    while (*link != NULL && epctx__lock_order((*link)->lock, entry->lock) <= 0)
        link = &(*link)->next;
    entry->next = *link;
    *link = entry;
    return EPCTX_OK;
}

#ifndef EPCTX_NO_EDIT

EPCTX_API epctx_status epctx_commit_put_model(epctx_commit *commit, epctx_model *model,
                                              const char *path, const epctx_write_opts *opts,
                                              epctx_error *error) {
    epctx__commit_file *entry;
    if (opts != NULL && opts->backup != NULL && opts->backup_capacity > 0) opts->backup[0] = '\0';
    EPCTX__TRY(epctx__commit_entry(commit, path, error, &entry));
    EPCTX__TRY(epctx__check_open(model, error));
    entry->model = model;
    entry->is_model = true;
    if (opts != NULL) entry->opts = *opts;
    return epctx__commit_put(commit, entry, NULL);
}

#endif /* EPCTX_NO_EDIT */

static epctx_status epctx__commit_put_file(epctx_commit *c, epctx_output_file *file,
                                           const epctx_write_opts *opts, epctx_error *error) {
    epctx__commit_file *entry;
    EPCTX__TRY(epctx__commit_entry(c, file->path, error, &entry));
    file->kept = false;
    entry->file = file;
    entry->is_model = file->is_model;
    if (opts != NULL) entry->opts = *opts;
    return epctx__commit_put(c, entry, file->name);
}

EPCTX_API epctx_status epctx_commit_put_file(epctx_commit *commit, epctx_output_file *file,
                                             epctx_overwrite overwrite, epctx_error *error) {
    epctx_write_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = overwrite;
    return epctx__commit_put_file(commit, file, &opts, error);
}

EPCTX_API epctx_status epctx_commit_remove(epctx_commit *commit, const char *name,
                                           epctx_error *error) {
    epctx__commit_file *entry;
    EPCTX__TRY(epctx__commit_entry(commit, name, error, &entry));
    entry->goes = true;
    EPCTX__TRY(epctx__commit_put(commit, entry, name));
    entry->path = entry->real; /* for messages */
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_commit_fill(epctx_commit *commit, epctx_error *error) {
    epctx__commit_file **link, *entry;
    epctx_status status = EPCTX_OK;
    int models;
    epctx_error_clear(error);
    commit->error = error;
    for (models = 0; models < 2; models++) {
        link = &commit->files;
        while ((entry = *link) != NULL) {
            if (status == EPCTX_OK && !entry->filled && entry->is_model == (models == 1)) {
                if (entry->model != NULL || (entry->file != NULL && !entry->file->kept)) {
                    status = epctx__output_make(commit, entry, entry->model, &entry->out);
                    epctx_blame(error, entry->path, NULL, NULL);
                }
                entry->filled = status == EPCTX_OK;
            }
            if (entry->filled || models == 0) {
                link = &entry->next;
            } else {
                epctx__output_close(entry->out);
                *link = entry->next;
            }
        }
    }
    return status;
}

/* -- locks -- */

static epctx_status epctx__commit_lock(epctx_commit *c) {
    const char *held = c->lock != NULL && c->lock->held ? c->lock->path : "";
    const char *last = "";
    epctx__commit_file *entry;
    for (entry = c->files; entry != NULL && c->io->lock_fn != NULL; entry = entry->next) {
        if (strcmp(entry->lock, last) != 0 && strcmp(entry->lock, held) != 0) {
            entry->locked.try_only = held[0] != '\0' && epctx__lock_order(entry->lock, held) < 0;
            EPCTX__TRY(c->io->lock_fn(c->io->user, entry->root, entry->lock + entry->inside,
                                      &entry->locked, c->error));
            entry->held = true;
        }
        last = entry->lock;
    }
    return EPCTX_OK;
}

/* -- committing -- */

/* Under the locks: files that were read or kept must be unchanged. */
static epctx_status epctx__commit_review(epctx_commit *c) {
    epctx__commit_file *entry;
    for (entry = c->files; entry != NULL; entry = entry->next) {
        epctx_file_info now;
        if (entry->seen == NULL) continue;
        EPCTX__TRY(c->io->stat_fn(c->io->user, entry->real, &now, c->error));
        /* If a model is gone, nothing is lost. */
        if (!(now.kind == EPCTX_FILE_NONE && entry->is_model) &&
            !epctx_file_same(&now, entry->seen)) {
            return epctx__file_failed(c->error, EPCTX_ERR_CHANGED,
                                      "changed since it was read: another process wrote it; "
                                      "nothing was replaced, start again from the new file",
                                      entry->path);
        }
    }
    return EPCTX_OK;
}

/* Puts a file into its place or, with `clear`, removes the old one. From now on a failure has to
 * restore the old one. */
static epctx_status epctx__commit_place(epctx_commit *c, const epctx__commit_file *entry,
                                        epctx__output *out, bool clear) {
    const epctx_io *io = c->io;
    /* The detour has put this commit's own file there: replace it whatever the option says. */
    bool ours = entry->names_replaced && out == entry->out && !clear;
    epctx_status status;
    if (!out->placed) {
        out->placed = true;
        out->before = c->placed;
        c->placed = out;
    }
    out->file.alone = c->files->next == NULL;
    status = (clear ? io->clear_fn : io->commit_fn)(
        io->user, &out->file, ours ? EPCTX_OVERWRITE_REPLACE : entry->opts.overwrite, c->error);
    epctx_blame(c->error, entry->path, NULL, NULL);
    return status;
}

#ifndef EPCTX_NO_EDIT

/* -- a new model where an old one is in use -- */

/* The files that the model at `path` names; none if it is not a model. */
static epctx_status epctx__files_at(const epctx_io *io, const char *path, epctx_arena *arena,
                                    epctx_dependency **files, size_t *count, epctx_error *error) {
    epctx_allocator in_arena = epctx__in_arena(arena);
    epctx_model model;
    epctx_open_opts open;
    epctx_check_opts check;
    epctx_status status;
    *count = 0;
    memset(&open, 0, sizeof open);
    memset(&check, 0, sizeof check);
    open.io = io;
    open.allocator = check.allocator = &in_arena;
    open.path_flags = EPCTX_PATH_HUGGING_FACE;
    status = epctx_model_open_file(&model, path, &open, error);
    if (status == EPCTX_OK) {
        status = epctx_model_files(&model, &check, arena, files, count, error);
        epctx_model_close(&model);
    } else if (status != EPCTX_ERR_NOMEM && status != EPCTX_ERR_IO) {
        epctx_error_clear(error);
        status = EPCTX_OK;
    }
    return status;
}

/* This commit's new file (not a model) at the path that a model names, or NULL. */
static epctx__commit_file *epctx__detour_file(const epctx_commit *c, const epctx_dependency *used) {
    epctx__commit_file *entry = used->path != NULL ? c->files : NULL;
    while (entry != NULL &&
           (entry->is_model || entry->out == NULL || strcmp(used->path, entry->real) != 0))
        entry = entry->next;
    return entry;
}

/* Gives second names to the replaced files that the old model of `entry` names: FILE.new, or if
 * that exists FILE.new2 ...; clears `seconds` if the file system has none. */
EPCTX__APART static epctx_status epctx__detour_look(const epctx_commit *c,
                                                    epctx__commit_file *entry, bool *seconds) {
    epctx_dependency *used = NULL;
    char name[EPCTX_NAME_MAX];
    size_t count, i;
    EPCTX__TRY(epctx__files_at(c->io, entry->real, c->arena, &used, &count, c->error));
    for (i = 0; i < count; i++) {
        epctx__commit_file *other = epctx__detour_file(c, &used[i]);
        bool named = other == NULL || other->out->file.second[0] != '\0';
        epctx_status status = named || !*seconds ? EPCTX_OK : EPCTX_ERR_EXISTS;
        unsigned number;
        entry->names_replaced = entry->names_replaced || other != NULL;
        for (number = 1; status == EPCTX_ERR_EXISTS && number < EPCTX__ATTEMPTS; number++) {
            epctx_error_clear(c->error);
            epctx__name_end(name, epctx_path_file(epctx_str_of(other->real)).data, ".new", number,
                            EPCTX__NAME_MOST);
            status = c->io->second_fn(c->io->user, &other->out->file, name, c->error);
        }
        *seconds = *seconds && status != EPCTX_ERR_UNSUPPORTED;
        EPCTX__TRY(*seconds ? status : EPCTX_OK);
    }
    return EPCTX_OK;
}

/* Puts the second names into a model. */
EPCTX__APART static epctx_status
epctx__detour_rename(const epctx_commit *c, const epctx__commit_file *entry, epctx_model *model) {
    epctx_str folder = epctx_path_folder(epctx_str_of(entry->real));
    char path[EPCTX_PATH_MAX]; /* as long as entry->real */
    epctx_text text = epctx_text_of(path, sizeof path);
    epctx_check_opts check;
    epctx_dependency *used = NULL;
    epctx_file_rename *renames;
    size_t count = 0, rename_count = 0, i;
    epctx_text_put(&text, folder);
    memset(&check, 0, sizeof check);
    check.context_file_path = entry->real;
    check.external_folder = path;
    check.path_flags = EPCTX_PATH_HUGGING_FACE | EPCTX_PATH_DETOURS;
    EPCTX__TRY(epctx_model_files(model, &check, &model->arena, &used, &count, c->error));
    EPCTX__NEW(renames, epctx_file_rename, count, &model->arena, c->error);
    for (i = 0; i < count; i++) {
        const epctx__commit_file *other = epctx__detour_file(c, &used[i]);
        epctx_file_rename *next = &renames[rename_count];
        epctx_str name;
        if (used[i].status == EPCTX_ERR_IO)
            return epctx_fail(c->error, EPCTX_ERR_IO, "%s", used[i].problem);
        if (other == NULL || used[i].use == EPCTX_USE_SOURCE_MODEL ||
            epctx_path_relative(folder, epctx_str_of(other->real), &name, NULL) != EPCTX_OK)
            continue;
        /* not taken: FILE.lock fits, and only the 100th second name, in "/", is longer */
        EPCTX__TRY(epctx_path_join(epctx_path_folder(name), epctx_str_of(other->out->file.second),
                                   path, sizeof path, c->error));
        EPCTX__TRY(epctx__copy(&model->arena, epctx_str_of(path), &next->to.data, c->error));
        next->to.size = strlen(path);
        next->use = used[i].use;
        next->from = used[i].name;
        rename_count++;
    }
    return epctx_edit_rename_files(model, renames, rename_count, c->error);
}

/* The new model with second names, complete and durable. */
static epctx_status epctx__detour_model(epctx_commit *c, epctx__commit_file *entry) {
    epctx_allocator in_arena = epctx__in_arena(c->arena);
    epctx_open_opts open;
    epctx_model bytes;
    epctx_model *model = entry->model;
    epctx_status status;
    size_t mark;
    memset(&bytes, 0, sizeof bytes);
    if (model == NULL) { /* in one part */
        memset(&open, 0, sizeof open);
        open.allocator = &in_arena;
        open.io = c->io;
        EPCTX__TRY(epctx_model_open_memory(&bytes, entry->file->parts[0].data,
                                           entry->file->parts[0].size, &open, c->error));
        model = &bytes;
    }
    mark = epctx_edit_mark(model);
    status = epctx__detour_rename(c, entry, model);
    if (status == EPCTX_OK) status = epctx__output_make(c, entry, model, &entry->detour);
    epctx_edit_undo(model, mark);
    epctx_model_close(&bytes);
    return status;
}

/* If an old model would meet new files, first places the new one with second names, or without such
 * names removes the old one. */
static epctx_status epctx__commit_detour(epctx_commit *c) {
    bool seconds = c->io->second_fn != NULL;
    bool others = false;
    epctx__commit_file *entry;
    for (entry = c->files; entry != NULL; entry = entry->next)
        others = others || (!entry->is_model && entry->out != NULL);
    for (entry = c->files; entry != NULL && others; entry = entry->next)
        if (entry->is_model && entry->out != NULL)
            EPCTX__TRY(epctx__detour_look(c, entry, &seconds));
    epctx_error_clear(c->error); /* of unsupported second names */
    for (entry = c->files; entry != NULL; entry = entry->next) {
        if (entry->names_replaced && seconds) EPCTX__TRY(epctx__detour_model(c, entry));
        if (entry->names_replaced)
            EPCTX__TRY(
                epctx__commit_place(c, entry, seconds ? entry->detour : entry->out, !seconds));
    }
    return EPCTX_OK;
}

#endif /* EPCTX_NO_EDIT */

static epctx_status epctx__commit_all(epctx_commit *c) {
    epctx__commit_file *entry;
    uint64_t done = 0;
    uint64_t total = 0;
    int models;
    epctx_status status = EPCTX_OK;
    EPCTX__TRY(epctx_commit_fill(c, c->error));
    EPCTX__TRY(epctx_cancelled(c->hooks, c->error));
    EPCTX__TRY(epctx__commit_lock(c));
    EPCTX__TRY(epctx__commit_review(c));
#ifndef EPCTX_NO_EDIT
    EPCTX__TRY(epctx__commit_detour(c));
#endif
    for (entry = c->files; entry != NULL; entry = entry->next) total += entry->out != NULL;
    for (models = 0; models < 2; models++) {
        for (entry = c->files; entry != NULL; entry = entry->next) {
            if (entry->is_model == (models == 1) && entry->out != NULL) {
                EPCTX__TRY(epctx__commit_place(c, entry, entry->out, false));
                epctx__progress(c->hooks, "write", ++done, total);
            }
        }
    }
    for (entry = c->files; entry != NULL && status == EPCTX_OK; entry = entry->next) {
        if (entry->goes) {
            status = c->io->remove_fn(c->io->user, entry->root, entry->name, c->error);
            epctx_blame(c->error, entry->path, NULL, NULL);
        }
    }
    return status;
}

/* Fills the callers' results after success. */
static epctx_status epctx__commit_report(epctx_commit *c) {
    epctx_status status = EPCTX_OK;
    epctx__commit_file *entry;
    for (entry = c->files; entry != NULL; entry = entry->next) {
        const epctx_write_opts *o = &entry->opts;
        const epctx__output *out = entry->detour != NULL ? entry->detour : entry->out;
        if (status == EPCTX_OK && out != NULL && o->overwrite == EPCTX_OVERWRITE_BACKUP &&
            out->file.kept[0] != '\0' && o->backup != NULL && o->backup_capacity > 0) {
            status = epctx_path_join(epctx_path_folder(epctx_str_of(entry->real)),
                                     epctx_str_of(out->file.kept), o->backup, o->backup_capacity,
                                     c->error);
        }
        if (entry->is_model && entry->seen != NULL &&
            c->io->stat_fn(c->io->user, entry->real, entry->seen, NULL) != EPCTX_OK)
            memset(entry->seen, 0, sizeof *entry->seen);
    }
    return status;
}

EPCTX_API epctx_status epctx_commit_run(epctx_commit *commit, epctx_error *error) {
    epctx__output *out;
    epctx__commit_file *entry;
    epctx_status status;
    epctx_error_clear(error);
    commit->error = error;
    status = epctx__commit_all(commit);
    if (status == EPCTX_OK) return epctx__commit_report(commit);
    /* In reverse order: each state on the way is consistent. The first failure ends it; then files
     * keep the second names that a model may use. */
    for (out = commit->placed; out != NULL && !commit->stuck; out = out->before)
        commit->stuck = !commit->io->back_fn(commit->io->user, &out->file);
    for (entry = commit->files; entry != NULL && commit->stuck; entry = entry->next)
        if (entry->out != NULL) entry->out->file.second[0] = '\0';
    epctx_commit_close(commit);
    return status;
}

EPCTX_API void epctx_commit_close(epctx_commit *commit) {
    epctx__commit_file *entry;
    for (entry = commit->files; entry != NULL; entry = entry->next) {
        epctx__output_close(entry->out);
        epctx__output_close(entry->detour);
    }
    for (entry = commit->files; entry != NULL; entry = entry->next)
        if (entry->held) commit->io->close_fn(commit->io->user, &entry->locked);
    commit->files = NULL;
}

EPCTX_API epctx_status epctx_write_bytes(const epctx_io *io, const char *path, const void *data,
                                         size_t size, const epctx_write_opts *opts,
                                         epctx_error *error) {
    epctx_output_file file;
    epctx_arena arena;
    epctx_commit commit;
    epctx_span part;
    epctx_status status;
    memset(&file, 0, sizeof file);
    part.data = (const uint8_t *)data;
    part.size = size;
    file.path = path;
    file.parts = &part;
    file.part_count = 1;
    file.size = size;
    epctx_arena_init(&arena, opts != NULL ? opts->allocator : NULL);
    status = epctx_commit_begin(&commit, io, &arena, error);
    if (status == EPCTX_OK) status = epctx__commit_put_file(&commit, &file, opts, error);
    if (status == EPCTX_OK) status = epctx_commit_run(&commit, error);
    epctx_commit_close(&commit);
    epctx_arena_free(&arena);
    return status;
}

#ifndef EPCTX_NO_EDIT

static epctx_status epctx__commit_both(epctx_commit *c, epctx_model *model, const char *path,
                                       const epctx_write_opts *opts, epctx_output_file *files,
                                       size_t count, epctx_overwrite overwrite,
                                       epctx_error *error) {
    epctx_dependency *used = NULL;
    size_t used_count = 0;
    char source[EPCTX_PATH_MAX] = "";
    const epctx__commit_file *entry;
    const char *target;
    size_t i;
    EPCTX__TRY(epctx_commit_begin(c, epctx_model_io(model), &model->arena, error));
    EPCTX__TRY(epctx_commit_put_model(c, model, path, opts, error));
    target = c->files->real;
    if (count > 0 && model->path[0] != '\0') {
        EPCTX__TRY(epctx__files_at(c->io, model->path, &model->arena, &used, &used_count, error));
        (void)c->io->canonical_fn(c->io->user, model->path, source, sizeof source, NULL);
    }
    c->keep = true;
    for (i = 0; i < count; i++) EPCTX__TRY(epctx_commit_put_file(c, &files[i], overwrite, error));
    /* Files that the model is read from are not overwritten: those named in its file, and those it
     * has open. */
    for (entry = c->files; entry != NULL; entry = entry->next) {
        const epctx__file *file = model->files;
        bool same = strcmp(entry->real, target) == 0 || strcmp(entry->real, source) == 0;
        for (i = 0; i < used_count && !same; i++)
            same = used[i].path != NULL && strcmp(entry->real, used[i].path) == 0;
        for (; file != NULL && !same; file = file->next)
            same = strcmp(entry->real, file->path) == 0;
        if (same && entry->file != NULL && !entry->file->kept) {
            return epctx__file_failed(error, EPCTX_ERR_PATH,
                                      "would overwrite a file of the converted model: choose "
                                      "another name",
                                      entry->path);
        }
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_model_write_group(epctx_model *model, const char *path,
                                               const epctx_write_opts *opts,
                                               epctx_output_file *files, size_t count,
                                               epctx_overwrite overwrite, epctx_error *error) {
    epctx_commit commit;
    epctx_status status =
        epctx__commit_both(&commit, model, path, opts, files, count, overwrite, error);
    if (status == EPCTX_OK && (opts == NULL || !opts->dry_run))
        status = epctx_commit_run(&commit, error);
    epctx_commit_close(&commit);
    return status;
}

EPCTX_API epctx_status epctx_model_write_file(epctx_model *model, const char *path,
                                              const epctx_write_opts *opts, epctx_error *error) {
    return epctx_model_write_group(model, path, opts, NULL, 0, EPCTX_OVERWRITE_FAIL, error);
}

#endif /* EPCTX_NO_EDIT */

/* ============================================================
 * >>stamp
 *
 * A build stamp is text in the metadata of a model: a line per fact, a word and its values.
 * Whatever stands in it is untrusted.
 *
 * The first half reads. epctx__made walks over the nodes that have a context of their own and over
 * the lines "binary" and "beside" of the stamp, side by side, because the lines name no nodes. If
 * their numbers do not agree and not all nodes read one binary, it is unknown which line is whose,
 * and nothing is said (epctx__lines_fit). epctx__check_made then compares each context with its
 * line: first the size, which costs nothing, then the hash.
 *
 * The second half writes. The functions epctx__stamp_put_... append lines to one text: the format,
 * the source and its external data, what was asked for, tools and machine, target, contexts. Names
 * and texts are escaped, so no value can make a line. A stamp that is made again keeps the lines
 * that the caller says nothing about.
 * ============================================================ */

/* `name` empty: embedded. `hash`: the numbers are hashes, not sizes. */
static epctx_status epctx__other_binary(epctx_str name, bool hash, uint64_t found,
                                        uint64_t expected, epctx_error *error) {
    static const char *const formats[] = {
        "%s%S%s has %S bytes, the model was compiled with one of %S: %s",
        "%s%S%s has hash %S, the model was compiled with one of hash %S: %s"};
    const uint64_t numbers[2] = {found, expected};
    char digits[2][24];
    epctx_str shown[2];
    int i;
    for (i = 0; i < 2; i++) {
        epctx_text text = epctx_text_of(digits[i], sizeof digits[i]);
        if (hash)
            epctx__text_put_hex(&text, numbers[i], 16);
        else
            epctx_text_put_number(&text, numbers[i]);
        shown[i] = epctx_text_str(&text);
    }
    return epctx_fail(error, EPCTX_ERR_VERSION, formats[hash],
                      name.size > 0 ? "context binary '" : "the embedded context", &name,
                      name.size > 0 ? "'" : "", &shown[0], &shown[1],
                      "it is damaged, or was compiled again without this model (compile all that "
                      "share it together)");
}

#ifndef EPCTX_NO_WIRE

/* -- reading -- */

EPCTX_API bool epctx_model_get_stamp(const epctx_model *model, epctx_str source, epctx_str *out) {
    char key[sizeof EPCTX_BUILD_PREFIX + 256];
    epctx_str parts[2];
    parts[0] = epctx_str_of(EPCTX_BUILD_PREFIX);
    parts[1] = source;
    return epctx__join(key, sizeof key, parts, 2, "a metadata key", NULL) == EPCTX_OK &&
           epctx_model_metadata(model, epctx_str_of(key), out);
}

EPCTX_API bool epctx_stamp_next_line(epctx_str *rest, epctx_stamp_line *line) {
    epctx_str text, number;
    size_t index;
    bool file;
    if (rest->size == 0) return false;
    memset(line, 0, sizeof *line);
    text = epctx_str_cut(rest, '\n');
    line->word = epctx_str_cut(&text, ' ');
    file = epctx__word_index("source data library binary beside needs", line->word, &index);
    if (file) {
        number = epctx_str_cut(&text, ' ');
        if (!epctx_str_number(number, &line->size)) line->size = 0;
    }
    if (file || epctx__word_index("options replaces", line->word, &index)) {
        number = epctx_str_cut(&text, ' ');
        epctx__str_take_hash(&number, &line->hash);
    }
    if (epctx_str_is(line->word, "binary") && epctx_str_starts(*rest, "graphs ")) {
        epctx_str next = *rest;
        number = epctx_str_cut(&next, '\n');
        epctx__str_skip(&number, sizeof "graphs " - 1);
        if (!epctx_str_number(number, &line->graphs)) line->graphs = 0;
    }
    line->text = text;
    return true;
}

EPCTX_API bool epctx_stamp_next_option(epctx_str *rest, epctx_stamp_option *option) {
    epctx_stamp_line line;
    size_t index;
    while (epctx_stamp_next_line(rest, &line)) {
        if (!epctx__word_index("ep_option session_option", line.word, &index)) continue;
        option->session = index == 1;
        option->told = line.text.size > 0 && memchr(line.text.data, '=', line.text.size) != NULL;
        option->key = epctx_str_cut(&line.text, '=');
        option->value = line.text;
        return true;
    }
    return false;
}

EPCTX_API bool epctx_stamp_plain(epctx_str stored, char *out, size_t capacity) {
    size_t i = 0;
    size_t used = 0;
    while (i < stored.size && used + 1 < capacity) {
        bool code = stored.data[i] == '%' && stored.size - i >= 3;
        char kind = code ? stored.data[i + 1] : '\0';
        out[used++] = !code ? stored.data[i] : kind == '0' ? '\n' : kind == '3' ? '=' : '%';
        i += code ? 3 : 1;
    }
    out[used] = '\0';
    return i == stored.size;
}

/* The format of a stamp: its first line, which the first format lacks. 0: not known. */
static uint64_t epctx__stamp_format(epctx_str stamp) {
    epctx_str line = epctx_str_cut(&stamp, '\n');
    uint64_t format;
    if (!epctx_str_is(epctx_str_cut(&line, ' '), "epctx")) return 1;
    return epctx_str_number(line, &format) && format == EPCTX_STAMP_FORMAT ? format : 0;
}

/* The file or the bytes that a node reads. */
typedef struct epctx__context {
    epctx_str value; /* name of the file, or the bytes */
    const char *attribute;
    bool embedded;
} epctx__context;

static bool epctx__context_same(const epctx__context *a, const epctx__context *b) {
    return a->embedded == b->embedded && epctx_str_eq(a->value, b->value);
}

/* False: the node uses that of another one. `format`: of the stamp, the first of which has only
 * those of primary nodes. */
static bool epctx__context_of(const epctx_node_view *view, const epctx_epnode *node,
                              uint64_t format, epctx__context *out) {
    const uint32_t own = EPCTX_TRAIT_EACH_CONTEXT | EPCTX_TRAIT_SECONDARY_CONTEXT;
    const epctx_str dlc = epctx_view_node_attr_str(view, "ep_dlc_context");
    out->value = node->ep_cache_context;
    out->attribute = "ep_cache_context";
    out->embedded = node->embed_mode == 1;
    if (format == 1) return node->main_context != 0;
    if (dlc.size > 0) {
        out->value = dlc;
        out->attribute = "ep_dlc_context";
        out->embedded = false;
        return true;
    }
    if (node->main_context != 0) return true;
    return out->value.size > 0 && (epctx_profile_of(node->source)->traits & own) != 0;
}

/* The next node of an EP in the main graph that has a context of its own. */
static bool epctx__next_context(epctx_cursor *it, epctx_str source, uint64_t format,
                                epctx_node_view *view, epctx_epnode *node, epctx__context *out) {
    while (epctx_next_node(it, view))
        if (epctx_view_is_epnode(view) && epctx_view_read_epnode(view, node, NULL) == EPCTX_OK &&
            epctx_str_eq(node->source, source) && epctx__context_of(view, node, format, out))
            return true;
    return false;
}

/* Do all nodes of an EP that have a context have the same? `count`: how many there are. */
static bool epctx__only_context(const epctx_model *model, epctx_str source, uint64_t format,
                                size_t *count) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view view;
    epctx_epnode node;
    epctx__context first, one;
    bool only = true;
    memset(&first, 0, sizeof first);
    for (*count = 0; epctx__next_context(&it, source, format, &view, &node, &one); ++*count) {
        if (*count == 0) first = one;
        only = only && epctx__context_same(&one, &first);
    }
    return only && (first.embedded || first.value.size > 0);
}

/* Is it clear which line is whose? There are as many as contexts, or both are of one binary, which
 * fewer nodes name when it is embedded. */
static bool epctx__lines_fit(const epctx_model *model, epctx_str source, uint64_t format,
                             epctx_str stamp) {
    epctx_stamp_line line, first;
    size_t lines = 0, contexts;
    bool alike = epctx__only_context(model, source, format, &contexts);
    if (format == 1) return alike;
    memset(&first, 0, sizeof first);
    while (epctx_stamp_next_line(&stamp, &line)) {
        if (!epctx_str_is(line.word, "binary")) continue;
        if (lines++ == 0) first = line;
        alike = alike && line.size == first.size && line.hash == first.hash;
    }
    return lines == contexts || (alike && lines > 0);
}

/* What a stamp says of each node with a context of its own, as they come. */
typedef struct epctx__made {
    uint64_t format;             /* 0: no stamp that could be compared */
    epctx_str source;            /* the EP */
    epctx_str binaries, besides; /* what follows the last line of each kind */
    epctx_stamp_line binary;     /* of the node; no word: none */
    epctx_stamp_line beside;     /* of the file beside its own */
} epctx__made;

static bool epctx__made_begin(epctx__made *m, const epctx_model *model, epctx_str source) {
    epctx_str stamp;
    memset(m, 0, sizeof *m);
    if (!epctx_model_get_stamp(model, source, &stamp)) return false;
    m->format = epctx__stamp_format(stamp);
    if (!epctx__lines_fit(model, source, m->format, stamp)) m->format = 0;
    m->source = source;
    m->binaries = m->besides = stamp;
    return m->format != 0;
}

/* Takes the next line of this kind; behind the last one, that one stays. */
static void epctx__made_take(epctx_str *rest, const char *word, epctx_stamp_line *line) {
    epctx_stamp_line next;
    while (epctx_stamp_next_line(rest, &next)) {
        if (epctx_str_is(next.word, word)) {
            *line = next;
            return;
        }
    }
}

/* For the next node of the EP in the main graph: has its context a line? */
static bool epctx__made_next(epctx__made *m, const epctx__context *context) {
    epctx__made_take(&m->binaries, "binary", &m->binary);
    if (m->format > 1 && !context->embedded && epctx__has_beside(context->value))
        epctx__made_take(&m->besides, "beside", &m->beside);
    return m->binary.word.size > 0;
}

EPCTX_API bool epctx_model_stamp_line(const epctx_model *model, epctx_str source, epctx_str context,
                                      epctx_stamp_line *out) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view view;
    epctx_epnode node;
    epctx__context one;
    epctx__made m;
    if (!epctx__made_begin(&m, model, source)) return false;
    while (epctx__next_context(&it, source, m.format, &view, &node, &one)) {
        if (epctx__made_next(&m, &one) && epctx_str_eq(one.value, context)) {
            *out = m.binary;
            return true;
        }
    }
    return false;
}

/* Compares a binary with the stamp; `name` empty: embedded. `fast`: only its size. */
static epctx_status epctx__stamp_verify(const epctx_stamp_line *line, epctx_str name,
                                        const void *data, uint64_t size, bool fast,
                                        epctx_error *error) {
    uint64_t hash;
    if (size != line->size) return epctx__other_binary(name, false, size, line->size, error);
    hash = fast ? line->hash : epctx_hash(data, (size_t)size, 0);
    return hash == line->hash ? EPCTX_OK : epctx__other_binary(name, true, hash, line->hash, error);
}

/* Compares a file in the folder of `context_file_path` (NULL: of the model) with a line of the
 * stamp. */
static epctx_status epctx__verify_file(const epctx_model *model, const epctx_stamp_line *line,
                                       epctx_str name, const char *context_file_path, bool fast,
                                       epctx_error *error) {
    const epctx_io *io = epctx_model_io(model);
    epctx_str folder = epctx_path_folder(
        epctx_str_of(context_file_path != NULL ? context_file_path : model->path));
    char path[EPCTX_PATH_MAX];
    epctx_file_info info;
    epctx_mapping mapping;
    epctx_status status;
    EPCTX__TRY(epctx_path_find(io, folder, name, model->path_flags, path, sizeof path, error));
    EPCTX__TRY(io->stat_fn(io->user, path, &info, error));
    if (fast || info.size != line->size)
        return epctx__stamp_verify(line, name, NULL, info.size, true, error);
    EPCTX__TRY(epctx_path_map(io, folder, name, model->path_flags, &mapping, NULL, error));
    status = epctx__stamp_verify(line, name, mapping.data, mapping.size, false, error);
    io->unmap_fn(io->user, &mapping);
    return status;
}

/* Compares another file with its line. `fast`: no hash where it is older than the model. */
static epctx_status epctx__stamp_compare(const epctx_model *model, const epctx_stamp_line *line,
                                         const char *path, bool fast, epctx_error *why) {
    const epctx_io *io = epctx_model_io(model);
    epctx_file_info info, own;
    epctx_mapping mapping;
    uint64_t hash;
    if (io->stat_fn(io->user, path, &info, why) != EPCTX_OK || info.kind != EPCTX_FILE_REGULAR)
        return epctx_fail(why, EPCTX_ERR_NOT_FOUND, "'%s' is not there to compare with", path);
    if (info.size != line->size) {
        return epctx_fail(why, EPCTX_ERR_VERSION, "'%s' has %u bytes, it was compiled from %u",
                          path, info.size, line->size);
    }
    if (fast && info.changed != 0 && io->stat_fn(io->user, model->path, &own, NULL) == EPCTX_OK &&
        info.changed < own.written)
        return EPCTX_OK;
    EPCTX__TRY(io->map_fn(io->user, NULL, path, false, &mapping, why));
    hash = epctx_hash(mapping.data, mapping.size, 0);
    io->unmap_fn(io->user, &mapping);
    return hash == line->hash
               ? EPCTX_OK
               : epctx_fail(why, EPCTX_ERR_VERSION,
                            "'%s' has changed since it was compiled: XXH64 %x, it was %x", path,
                            hash, line->hash);
}

/* The name of the file beside an .xml. */
static epctx_status epctx__beside_name(epctx_str xml, char out[EPCTX_PATH_MAX],
                                       epctx_error *error) {
    epctx_str parts[2];
    parts[0] = epctx__str(xml.data, xml.size - 4);
    parts[1] = epctx_str_of(".bin");
    return epctx__path_join(out, EPCTX_PATH_MAX, parts, 2, error);
}

/* Compares the context that a node reads, embedded or in a file, with its line of the stamp. */
static epctx_status epctx__verify_context(const epctx_model *model, const epctx__made *m,
                                          const epctx__context *context,
                                          const char *context_file_path, bool fast,
                                          epctx_error *error) {
    const epctx_str value = context->value;
    char beside[EPCTX_PATH_MAX];
    if (context->embedded) {
        return epctx__stamp_verify(&m->binary, epctx_str_of(NULL), value.data, value.size, fast,
                                   error);
    }
    EPCTX__TRY(epctx__verify_file(model, &m->binary, value, context_file_path, fast, error));
    if (!epctx__has_beside(value) || m->beside.word.size == 0) return EPCTX_OK;
    EPCTX__TRY(epctx__beside_name(value, beside, error));
    return epctx__verify_file(model, &m->beside, epctx_str_of(beside), context_file_path, fast,
                              error);
}

/* Where differences go: the first one decides, and each is told to whoever asks. */
typedef struct epctx__differences {
    void (*differs_fn)(void *user, const epctx_error *why);
    void *user;
    const char *path;    /* of the model */
    epctx_status status; /* of the first one */
    epctx_error *first;  /* may be NULL */
} epctx__differences;

/* Whether to look for more after `status`. */
static bool epctx__differs(epctx__differences *d, epctx_status status, epctx_error *why) {
    if (status == EPCTX_OK) return true;
    epctx_blame(why, d->path, NULL, NULL);
    if (d->status == EPCTX_OK) {
        d->status = status;
        if (d->first != NULL) *d->first = *why;
    }
    if (d->differs_fn == NULL || status == EPCTX_ERR_NOMEM || status == EPCTX_ERR_IO) return false;
    d->differs_fn(d->user, why);
    epctx_error_clear(why);
    return true;
}

/* Compares the files beside the model to which its contexts refer with their lines. Loading reports
 * a missing one. `beside`: a path in the model's folder. */
static epctx_status epctx__check_needs(const epctx_model *model, epctx_str stamp,
                                       const char *beside, bool fast, epctx__differences *d,
                                       epctx_error *error) {
    epctx_stamp_line line;
    while (epctx_stamp_next_line(&stamp, &line)) {
        char name[EPCTX_PATH_MAX], path[EPCTX_PATH_MAX];
        epctx_str parts[2];
        epctx_status status;
        if (!epctx_str_is(line.word, "needs")) continue;
        if (!epctx_stamp_plain(line.text, name, sizeof name))
            return epctx_fail(error, EPCTX_ERR_LIMIT, "a name in the build stamp is too long");
        parts[0] = epctx_path_folder(epctx_str_of(beside));
        parts[1] = epctx_str_of(name);
        status = epctx_path_check(parts[1], error); /* untrusted */
        if (status == EPCTX_OK) status = epctx__path_join(path, sizeof path, parts, 2, error);
        if (status == EPCTX_OK) status = epctx__stamp_compare(model, &line, path, fast, error);
        if (status == EPCTX_ERR_NOT_FOUND) {
            epctx_error_clear(error);
            continue;
        }
        if (d == NULL || !epctx__differs(d, status, error)) EPCTX__TRY(status);
    }
    return EPCTX_OK;
}

/* Compares the binaries of one EP with its stamp, if any, each once if nodes that follow each other
 * share it. Loading reports a missing file. `d`: gets the differences; NULL: the first one is
 * returned. */
static epctx_status epctx__check_made(const epctx_model *model, epctx_str source,
                                      const char *context_file_path, bool fast,
                                      epctx__differences *d, epctx_error *error) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view view;
    epctx_epnode node;
    epctx__context one, last;
    epctx__made m;
    epctx_str stamp;
    char room[EPCTX_PATH_MAX];
    uint64_t hash = 0;
    memset(&last, 0, sizeof last);
    if (!epctx_model_get_stamp(model, source, &stamp) || epctx__stamp_format(stamp) == 0)
        return EPCTX_OK;
    EPCTX__TRY(epctx__context_folder_in(epctx_profile_of(source), epctx_model_io(model),
                                        context_file_path, room, error));
    if (room[0] != '\0') context_file_path = room;
    EPCTX__TRY(epctx__check_needs(
        model, stamp, model->path[0] != '\0' ? model->path : context_file_path, fast, d, error));
    if (!epctx__made_begin(&m, model, source)) return EPCTX_OK;
    while (epctx__next_context(&it, source, m.format, &view, &node, &one)) {
        epctx_status status;
        if (!epctx__made_next(&m, &one) ||
            (last.value.size > 0 && m.binary.hash == hash && epctx__context_same(&one, &last)))
            continue;
        hash = m.binary.hash;
        last = one;
        status = epctx__verify_context(model, &m, &one, context_file_path, fast, error);
        if (status == EPCTX_ERR_NOT_FOUND) {
            epctx_error_clear(error);
            continue;
        }
        epctx_blame(error, NULL, &node.name, one.attribute);
        if (d == NULL || !epctx__differs(d, status, error)) EPCTX__TRY(status);
    }
    return EPCTX_OK;
}

#define EPCTX__STAMPS_MAX 16 /* models have few EPs; a hostile one may have a million stamps */

EPCTX_API epctx_status epctx_model_check_binary(const epctx_model *model,
                                                const char *context_file_path, epctx_error *error) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    int stamps = 0;
    epctx_error_clear(error);
    while (stamps < EPCTX__STAMPS_MAX && epctx_next_pair(&it, &pair)) {
        if (epctx_str_starts(pair.key, EPCTX_BUILD_PREFIX)) {
            epctx_status status;
            epctx__str_skip(&pair.key, sizeof EPCTX_BUILD_PREFIX - 1);
            status = epctx__check_made(model, pair.key, context_file_path, false, NULL, error);
            epctx_blame(error, model->path, NULL, NULL);
            EPCTX__TRY(status);
            stamps++;
        }
    }
    return EPCTX_OK;
}

EPCTX_API bool epctx_model_holds_one_graph(const epctx_model *model, const epctx_epnode *node) {
    epctx__context context;
    epctx__made m;
    memset(&m, 0, sizeof m);
    context.value = node->ep_cache_context;
    context.embedded = node->embed_mode == 1;
    return epctx_model_stamp_line(model, node->source, context.value, &m.binary) &&
           m.binary.graphs == 1 &&
           epctx__verify_context(model, &m, &context, NULL, false, NULL) == EPCTX_OK;
}

#ifndef EPCTX_NO_EDIT

/* -- making -- */

typedef struct epctx__stamp_text {
    epctx_allocator in_arena;
    epctx_buffer text;
    bool failed;
} epctx__stamp_text;

static void epctx__stamp_begin(epctx__stamp_text *s, epctx_arena *arena) {
    s->in_arena = epctx__in_arena(arena);
    s->failed = false;
    epctx_buffer_init(&s->text, &s->in_arena);
}

static void epctx__stamp_put(epctx__stamp_text *s, epctx_str part) {
    s->failed = s->failed || epctx_buffer_append(&s->text, part.data, part.size) != EPCTX_OK;
}

/* Starts a line. */
static void epctx__stamp_put_word(epctx__stamp_text *s, const char *word) {
    epctx__stamp_put(s, epctx_str_of(s->text.size > 0 ? "\n" : ""));
    epctx__stamp_put(s, epctx_str_of(word));
}

static void epctx__stamp_put_number(epctx__stamp_text *s, uint64_t value, bool hash) {
    char digits[24];
    epctx_text text = epctx_text_of(digits, sizeof digits);
    epctx_text_put_char(&text, ' ');
    if (hash)
        epctx__text_put_hex(&text, value, 16);
    else
        epctx_text_put_number(&text, value);
    epctx__stamp_put(s, epctx_text_str(&text));
}

/* A character as written in a name; `one` has room for it. */
static epctx_str epctx__stamp_escape(char c, char *one) {
    epctx_str as_is;
    *one = c;
    as_is.data = one;
    as_is.size = 1;
    return c == '%' ? epctx_str_of("%25") : c == '\n' ? epctx_str_of("%0A") : as_is;
}

static void epctx__stamp_put_escaped(epctx__stamp_text *s, epctx_str text) {
    size_t i;
    char one;
    for (i = 0; i < text.size; i++) epctx__stamp_put(s, epctx__stamp_escape(text.data[i], &one));
}

static void epctx__stamp_put_name(epctx__stamp_text *s, epctx_str name) {
    epctx__stamp_put(s, epctx_str_of(" "));
    epctx__stamp_put_escaped(s, name);
}

static void epctx__stamp_put_file(epctx__stamp_text *s, const char *word, uint64_t size,
                                  uint64_t hash, epctx_str name) {
    epctx__stamp_put_word(s, word);
    epctx__stamp_put_number(s, size, false);
    epctx__stamp_put_number(s, hash, true);
    if (name.data != NULL) epctx__stamp_put_name(s, name);
}

static void epctx__stamp_put_format(epctx__stamp_text *s) {
    epctx__stamp_put_word(s, "epctx");
    epctx__stamp_put_number(s, EPCTX_STAMP_FORMAT, false);
}

/* 0: unknown. */
static void epctx__stamp_put_graphs(epctx__stamp_text *s, uint64_t graphs) {
    if (graphs == 0) return;
    epctx__stamp_put_word(s, "graphs");
    epctx__stamp_put_number(s, graphs, false);
}

/* The binary of the only primary node. */
static void epctx__stamp_put_binary(epctx__stamp_text *s, epctx_span binary, uint64_t graphs) {
    epctx__stamp_put_file(s, "binary", binary.size, epctx_hash(binary.data, binary.size, 0),
                          epctx_str_of(NULL));
    epctx__stamp_put_graphs(s, graphs);
}

static void epctx__stamp_put_target(epctx__stamp_text *s, epctx_str sdk, epctx_str arch) {
    epctx__stamp_put_word(s, "sdk");
    epctx__stamp_put_name(s, sdk);
    epctx__stamp_put_word(s, "arch");
    epctx__stamp_put_name(s, arch);
}

/* A metadata entry of one EP. */
static epctx_status epctx__ep_metadata(epctx_model *model, const char *prefix, const char *source,
                                       epctx_str value, epctx_error *error) {
    epctx__stamp_text key;
    epctx__stamp_begin(&key, &model->arena);
    epctx__stamp_put(&key, epctx_str_of(prefix));
    epctx__stamp_put(&key, epctx_str_of(source));
    return key.failed ? epctx__nomem(error, model->arena.missing)
                      : epctx_edit_set_metadata(model, epctx__str(key.text.data, key.text.size),
                                                value, error);
}

static epctx_status epctx__stamp_write(const epctx__stamp_text *s, epctx_model *model,
                                       const char *source, epctx_error *error) {
    return s->failed ? epctx__nomem(error, model->arena.missing)
                     : epctx__ep_metadata(model, EPCTX_BUILD_PREFIX, source,
                                          epctx__str(s->text.data, s->text.size), error);
}

/* What a line says of a file. */
typedef struct epctx__stamp_file {
    uint64_t size, hash;
} epctx__stamp_file;

static epctx_status epctx__hash_path(const epctx_io *io, const char *path, epctx__stamp_file *out,
                                     epctx_error *error) {
    epctx_mapping mapping;
    EPCTX__TRY(io->map_fn(io->user, NULL, path, false, &mapping, error));
    out->size = mapping.size;
    out->hash = epctx_hash(mapping.data, mapping.size, 0);
    io->unmap_fn(io->user, &mapping);
    return EPCTX_OK;
}

EPCTX_API const char *epctx_stamp_library(const char *const *libraries, size_t index) {
    const epctx_str folder = epctx_path_folder(epctx_str_of(libraries[0]));
    const char *path = libraries[index];
    return folder.size > 0 && strncmp(path, folder.data, folder.size) == 0
               ? path + folder.size
               : epctx_path_file(epctx_str_of(path)).data;
}

static epctx_status epctx__stamp_put_libraries(epctx__stamp_text *s, const epctx_io *io,
                                               const char *const *libraries, epctx_error *error) {
    size_t i;
    for (i = 0; libraries != NULL && libraries[i] != NULL; i++) {
        epctx__stamp_file file;
        EPCTX__TRY(epctx__hash_path(io, libraries[i], &file, error));
        epctx__stamp_put_file(s, "library", file.size, file.hash,
                              epctx_str_of(epctx_stamp_library(libraries, i)));
    }
    return EPCTX_OK;
}

static epctx_status epctx__stamp_put_needs(epctx__stamp_text *s, const epctx_model *model,
                                           const epctx_stamp_opts *opts, epctx_error *error) {
    const epctx_io *io = epctx_model_io(model);
    const epctx_str folder = opts->needs_folder != NULL
                                 ? epctx_str_of(opts->needs_folder)
                                 : epctx_path_folder(epctx_str_of(model->path));
    size_t i;
    for (i = 0; opts->needs[i] != NULL; i++) {
        const epctx_str name = epctx_str_of(opts->needs[i]);
        epctx_mapping mapping;
        epctx_status status =
            epctx_path_map(io, folder, name, model->path_flags, &mapping, NULL, error);
        epctx_blame(error, model->path, NULL, NULL);
        EPCTX__TRY(status);
        epctx__stamp_put_file(s, "needs", mapping.size, epctx_hash(mapping.data, mapping.size, 0),
                              name);
        io->unmap_fn(io->user, &mapping);
    }
    return EPCTX_OK;
}

/* The source, and each file of external data by its name. */
static epctx_status epctx__stamp_put_source(epctx__stamp_text *s, const epctx_model *source,
                                            epctx_arena *arena, epctx_error *error) {
    const epctx_io *io = epctx_model_io(source);
    epctx_dependency *files;
    size_t count, i;
    epctx__stamp_put_file(s, "source", source->bytes.size,
                          epctx_hash(source->bytes.data, source->bytes.size, 0),
                          epctx_path_file(epctx_str_of(source->path)));
    EPCTX__TRY(epctx_model_files(source, NULL, arena, &files, &count, error));
    for (i = 0; i < count; i++) {
        epctx_mapping mapping;
        if (files[i].use != EPCTX_USE_INITIALIZERS) continue;
        EPCTX__TRY(epctx_path_map(io, epctx_str_of(files[i].folder), files[i].name,
                                  source->path_flags | EPCTX_PATH_DETOURS, &mapping, NULL, error));
        epctx__stamp_put_file(s, "data", mapping.size, epctx_hash(mapping.data, mapping.size, 0),
                              files[i].name);
        io->unmap_fn(io->user, &mapping);
    }
    return EPCTX_OK;
}

static epctx_status epctx__hash_file(const epctx_model *model, epctx_str name,
                                     epctx__stamp_file *out, epctx_error *error) {
    const epctx_io *io = epctx_model_io(model);
    epctx_mapping mapping;
    EPCTX__TRY(epctx_path_map(io, epctx_path_folder(epctx_str_of(model->path)), name,
                              model->path_flags, &mapping, NULL, error));
    out->size = mapping.size;
    out->hash = epctx_hash(mapping.data, mapping.size, 0);
    io->unmap_fn(io->user, &mapping);
    return EPCTX_OK;
}

static epctx_status epctx__hash_context(const epctx_model *model, const epctx__context *context,
                                        epctx__stamp_file *out, epctx_error *error) {
    if (!context->embedded) return epctx__hash_file(model, context->value, out, error);
    out->size = context->value.size;
    out->hash = epctx_hash(context->value.data, context->value.size, 0);
    return EPCTX_OK;
}

/* The graphs in the binary of the next node by an older stamp, if it is the same. */
static uint64_t epctx__graphs_before(epctx__made *before, const epctx__context *context,
                                     const epctx__stamp_file *now) {
    const epctx_stamp_line *line = &before->binary;
    return before->format != 0 && epctx__made_next(before, context) && line->size == now->size &&
                   line->hash == now->hash
               ? line->graphs
               : 0;
}

/* The contexts of an EP's nodes, embedded or in their files, and the files beside these. `before`:
 * the stamp that is there, from which the number of graphs is kept. */
static epctx_status epctx__stamp_put_contexts(epctx__stamp_text *s, const epctx_model *model,
                                              epctx_str source, uint64_t graphs,
                                              epctx__made *before, epctx_error *error) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view view;
    epctx_epnode node;
    epctx__context one, last;
    epctx__stamp_file binary, beside;
    memset(&last, 0, sizeof last);
    memset(&beside, 0, sizeof beside);
    binary = beside;
    while (epctx__next_context(&it, source, EPCTX_STAMP_FORMAT, &view, &node, &one)) {
        const bool weights = !one.embedded && epctx__has_beside(one.value);
        char name[EPCTX_PATH_MAX];
        if (last.value.size == 0 || !epctx__context_same(&one, &last)) {
            epctx_status status = epctx__hash_context(model, &one, &binary, error);
            if (status == EPCTX_OK && weights) status = epctx__beside_name(one.value, name, error);
            if (status == EPCTX_OK && weights)
                status = epctx__hash_file(model, epctx_str_of(name), &beside, error);
            epctx_blame(error, model->path, &node.name, one.attribute);
            EPCTX__TRY(status);
            last = one;
        }
        epctx__stamp_put_file(s, "binary", binary.size, binary.hash, epctx_str_of(NULL));
        epctx__stamp_put_graphs(s,
                                graphs > 0 ? graphs : epctx__graphs_before(before, &one, &binary));
        if (weights)
            epctx__stamp_put_file(s, "beside", beside.size, beside.hash, epctx_str_of(NULL));
    }
    return EPCTX_OK;
}

/* The options as text. */
static void epctx__stamp_put_options(epctx__stamp_text *s, const char *word,
                                     const char *const *options) {
    for (; options != NULL && options[0] != NULL; options += 2) {
        const char *at;
        epctx__stamp_put_word(s, word);
        epctx__stamp_put(s, epctx_str_of(" "));
        for (at = options[0]; *at != '\0'; at++) {
            char one;
            epctx__stamp_put(s, *at == '=' ? epctx_str_of("%3D") : epctx__stamp_escape(*at, &one));
        }
        if (options[1] == NULL) continue;
        epctx__stamp_put(s, epctx_str_of("="));
        epctx__stamp_put_escaped(s, epctx_str_of(options[1]));
    }
}

/* Copies the lines with one of these words, as they are. */
static void epctx__stamp_keep(epctx__stamp_text *s, epctx_str before, const char *words) {
    size_t index;
    while (before.size > 0) {
        const epctx_str line = epctx_str_cut(&before, '\n');
        epctx_str rest = line;
        if (!epctx__word_index(words, epctx_str_cut(&rest, ' '), &index)) continue;
        epctx__stamp_put_word(s, "");
        epctx__stamp_put(s, line);
    }
}

/* What was asked for: the new options without any of the old ones, or all of these. */
static void epctx__stamp_put_asked(epctx__stamp_text *s, const epctx_stamp_opts *opts,
                                   epctx_str before) {
    if (opts->options == NULL && opts->ep_options == NULL && opts->session_options == NULL) {
        epctx__stamp_keep(s, before, "options ep_option session_option");
        return;
    }
    if (opts->options != NULL) {
        epctx__stamp_put_word(s, "options");
        epctx__stamp_put_number(s, epctx_hash(opts->options, strlen(opts->options), 0), true);
    }
    epctx__stamp_put_options(s, "ep_option", opts->ep_options);
    epctx__stamp_put_options(s, "session_option", opts->session_options);
}

/* A line with a text; NULL: as before. */
static void epctx__stamp_put_known(epctx__stamp_text *s, const char *word, const char *text,
                                   epctx_str before) {
    if (text == NULL) {
        epctx__stamp_keep(s, before, word);
        return;
    }
    epctx__stamp_put_word(s, word);
    epctx__stamp_put_name(s, epctx_str_of(text));
}

/* Whether `before` is `now`, or that and the line of what it replaced. */
static bool epctx__stamp_says(epctx_str before, epctx_str now) {
    if (before.size < now.size || memcmp(before.data, now.data, now.size) != 0) return false;
    epctx__str_skip(&before, now.size);
    return before.size == 0 || epctx_str_starts(before, "\nreplaces ");
}

/* SDK and architecture of the first nodes that have them; how many nodes there are. */
static size_t epctx__stamp_target(const epctx_model *model, epctx_str ep, epctx_str *sdk,
                                  epctx_str *arch) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    size_t count = 0;
    *sdk = *arch = epctx_str_of("");
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view)) {
        if (epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK ||
            !epctx_str_eq(node.source, ep))
            continue;
        *sdk = sdk->size > 0 ? *sdk : node.ep_sdk_version;
        *arch = arch->size > 0 ? *arch : node.hardware_architecture;
        count++;
    }
    return count;
}

EPCTX_API epctx_status epctx_edit_stamp(epctx_model *model, const char *source,
                                        const epctx_stamp_opts *opts, epctx_error *error) {
    const epctx_str wanted = epctx_str_of(source);
    epctx_str sdk, arch, old, kept;
    epctx__made before;
    epctx__stamp_text s;
    epctx_error_clear(error);
    if (epctx__stamp_target(model, wanted, &sdk, &arch) == 0)
        return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "there is no EPContext node of %s", source);
    if (!epctx_model_get_stamp(model, wanted, &old)) old = epctx_str_of(NULL);
    kept = opts->keep ? old : epctx_str_of(NULL);
    memset(&before, 0, sizeof before);
    if (kept.size > 0) (void)epctx__made_begin(&before, model, wanted);
    epctx__stamp_begin(&s, &model->arena);
    epctx__stamp_put_format(&s);
    if (opts->source_model != NULL)
        EPCTX__TRY(epctx__stamp_put_source(&s, opts->source_model, &model->arena, error));
    else
        epctx__stamp_keep(&s, kept, "source data");
    epctx__stamp_put_asked(&s, opts, kept);
    if (before.format == 0 || epctx__check_made(model, wanted, NULL, false, NULL, NULL) != EPCTX_OK)
        kept = epctx_str_of(NULL);
    epctx__stamp_put_known(&s, "ort", opts->ort, kept);
    epctx__stamp_put_known(&s, "ep", opts->ep, kept);
    epctx__stamp_put_known(&s, "driver", opts->driver, kept);
    epctx__stamp_put_known(&s, "device", opts->device, kept);
    epctx__stamp_put_known(&s, "machine", opts->machine, kept);
    if (opts->libraries != NULL)
        EPCTX__TRY(epctx__stamp_put_libraries(&s, epctx_model_io(model), opts->libraries, error));
    else
        epctx__stamp_keep(&s, kept, "library");
    epctx__stamp_put_target(&s, sdk, arch);
    EPCTX__TRY(epctx__stamp_put_contexts(&s, model, wanted, opts->graphs, &before, error));
    if (opts->needs != NULL)
        EPCTX__TRY(epctx__stamp_put_needs(&s, model, opts, error));
    else
        epctx__stamp_keep(&s, kept, "needs");
    if (!s.failed && epctx__stamp_says(old, epctx__str(s.text.data, s.text.size))) return EPCTX_OK;
    if (old.size > 0) {
        epctx__stamp_put_word(&s, "replaces");
        epctx__stamp_put_number(&s, epctx_hash(old.data, old.size, 0), true);
    }
    return epctx__stamp_write(&s, model, source, error);
}

/* Is an escaped name `plain`? */
static bool epctx__stamp_is(epctx_str escaped, const char *plain) {
    char one;
    for (; *plain != '\0'; plain++) {
        epctx_str want = epctx__stamp_escape(*plain, &one);
        if (escaped.size < want.size || memcmp(escaped.data, want.data, want.size) != 0)
            return false;
        epctx__str_skip(&escaped, want.size);
    }
    return escaped.size == 0;
}

#endif /* EPCTX_NO_EDIT */

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>payload
 *
 * Embedding and extracting are one engine, epctx__convert_contexts, which gets the new embed mode.
 * epctx__convert_collect walks the whole model and fills an epctx__context_node per EPContext node
 * and an epctx__context_ep per `source`. The traits of the EP's profile tell which nodes have a
 * context of their own and what that EP can load; nodes with a context in the other mode are due.
 * Two passes over them follow: epctx__embed_plan or epctx__extract_plan checks every node before
 * epctx__embed_store or epctx__extract_store edits the first. Secondary nodes follow at the end,
 * and epctx__convert_settle refuses a mixture that the EP cannot load.
 *
 * The invariant: after a failure the model is as before, because epctx__build_end undoes every
 * edit. The bytes of contexts stay where they are, in a mapped file or in the model. Nodes and new
 * files borrow them until epctx_model_write_group writes all files together, so a context of
 * gigabytes needs no second copy in memory.
 *
 * A binary that a model names must lie where epctx_path_find allows and must not be of a foreign
 * format. A context that moves must agree with the build stamp (unless allow_stale is set): a wrong
 * file is found now, not when a session loads the model. Extracting hashes only contexts of equal
 * size, and two nodes share a file only if every byte agrees.
 *
 * epctx_edit_prefix proceeds in the same way: epctx__prefix_check_all looks at every node before
 * epctx__prefix_node renames the first. If the EP finds a graph by the name of its node, the node
 * is renamed only when its binary is known to contain no other graph.
 * ============================================================ */

#ifndef EPCTX_NO_EDIT

/* -- new files beside a model -- */

EPCTX_API epctx_status epctx_model_output_file(epctx_model *model, const char *path, epctx_str name,
                                               const epctx_span *parts, size_t part_count,
                                               epctx_output_file *out, epctx_error *error) {
    char room[EPCTX_PATH_MAX];
    char whole[EPCTX_PATH_MAX];
    size_t i;
    epctx_str folder =
        epctx__path_beside(epctx_model_io(model), path != NULL ? path : model->path, room);
    memset(out, 0, sizeof *out);
    EPCTX__TRY(epctx_path_join(folder, name, whole, sizeof whole, error));
    EPCTX__TRY(epctx__copy(&model->arena, epctx_str_of(whole), &out->path, error));
    EPCTX__TRY(epctx__copy(&model->arena, name, &out->name, error));
    out->parts = parts;
    out->part_count = part_count;
    for (i = 0; i < part_count; i++) out->size += parts[i].size;
    return EPCTX_OK;
}

/* Whether a name contains "..": EPs with EPCTX_TRAIT_NO_DOTS refuse it. */
static bool epctx__path_has_dots(epctx_str name) {
    size_t i;
    for (i = 1; i < name.size; i++)
        if (name.data[i - 1] == '.' && name.data[i] == '.') return true;
    return false;
}

EPCTX_API epctx_status epctx_output_name_check(epctx_str name, epctx_str path,
                                               const epctx_profile *profile, epctx_error *error) {
    epctx_error reason;
    const char *why = NULL;
    const char *ep = "";
    epctx_error_clear(error);
    if (epctx_path_check(name, &reason) != EPCTX_OK) {
        return epctx_fail(error, EPCTX_ERR_PATH, "new file: %s; choose another name",
                          reason.message);
    }
    if (profile != NULL && (profile->traits & EPCTX_TRAIT_NO_DOTS) != 0 &&
        epctx__path_has_dots(name)) {
        why = " refuses '..' anywhere in a name";
        ep = profile->name;
    } else if (epctx__is_separator(name.data[name.size - 1])) {
        why = "it is a folder";
    } else if (epctx_str_eq(name, epctx_path_file(path))) {
        why = "it would be the model itself";
    }
    return why == NULL ? EPCTX_OK
                       : epctx_fail(error, EPCTX_ERR_PATH,
                                    "new file '%S': %s%s; choose another name", &name, ep, why);
}

/* -- embed and extract -- */

struct epctx__context_node;

/* The EPContext nodes of one `source`, which share contexts. */
typedef struct epctx__context_ep {
    const epctx_profile *profile;
    size_t owners[2];   /* nodes with their own context, by embed mode */
    size_t secondaries; /* nodes that use another node's context */
    size_t converted;
    struct epctx__context_node *first; /* converted; embedding: the first in ORT's order */
    bool several;                      /* embedding: the nodes have several files */
    epctx__made made;                  /* reads the build stamp, node by node */
    const void *verified;              /* the context that was compared last */
    uint64_t verified_hash;            /* the hash with which it agreed */
} epctx__context_ep;

typedef struct epctx__context_node {
    epctx_view view;
    epctx_epnode node;
    epctx__context_ep *ep;
    bool chosen, owner, secondary;
    bool listed;  /* in the main graph */
    bool due;     /* to be converted */
    bool stamped; /* the build stamp has `made`, a line for this context */
    epctx_stamp_line made;
    epctx_span bytes;        /* the context */
    const epctx__file *file; /* embedding: of the context */
    /* Extracting: */
    uint64_t key[3];                  /* size of the context, index of its EP, hash */
    struct epctx__context_node *same; /* the first node with the same context */
    epctx_str name;                   /* of the new file, only in that first node */
} epctx__context_node;

typedef struct epctx__convert {
    epctx_model *model;
    epctx_arena *arena;
    epctx_error *error;
    epctx_convert_opts opts;
    epctx_changes *changes;
    epctx_str path; /* of the result */
    int64_t mode;   /* the new embed mode */
    epctx__context_node *nodes;
    size_t node_count;
    epctx__context_ep *eps;
    size_t ep_count;
    /* Extracting: */
    epctx_map sizes; /* size of a context -> 2 if several contexts have it, else 1 */
    epctx_map seen;  /* epctx__context_node.key -> its index */
    epctx_map taken; /* file name -> next number to try */
} epctx__convert;

static epctx_status epctx__convert_note(epctx__convert *c, epctx_change_kind kind,
                                        const epctx__context_node *n, epctx_str file, uint64_t size,
                                        const char *reason) {
    epctx_changes *changes = c->changes;
    const epctx_change change = {kind, n->node.name, file, size, reason};
    void *items = changes->items;
    if (!epctx__list_room(c->arena, &items, changes->count, &changes->room, sizeof change))
        return epctx__nomem(c->error, c->arena->missing);
    changes->items = (epctx_change *)items;
    changes->items[changes->count++] = change;
    changes->done += kind != EPCTX_CHANGE_SKIPPED;
    return EPCTX_OK;
}

/* A context that moves must match the build stamp, if any: else the error would show up only when
 * the model is loaded. */
static epctx_status epctx__convert_count(epctx__convert *c, epctx__context_node *n) {
    epctx__context_ep *ep = n->ep;
    const epctx_str name = n->node.embed_mode == 1 ? epctx_str_of(NULL) : n->node.ep_cache_context;
    if (n->stamped && (ep->verified != n->bytes.data || ep->verified_hash != n->made.hash)) {
        EPCTX__TRY(
            epctx__stamp_verify(&n->made, name, n->bytes.data, n->bytes.size, false, c->error));
        ep->verified = n->bytes.data;
        ep->verified_hash = n->made.hash;
    }
    if (ep->converted++ == 0) ep->first = n;
    return EPCTX_OK;
}

/* Reads a node, finds its EP (`eps`: source -> index) and decides whether the node is due. */
static epctx_status epctx__convert_read(epctx__convert *c, const epctx_node_view *view, bool listed,
                                        epctx_map *eps, epctx__context_node *n) {
    epctx__context_ep *ep;
    epctx__context context;
    const char *reason;
    uint32_t at;
    EPCTX__TRY(epctx_view_read_epnode(view, &n->node, c->error));
    at = epctx_map_get(eps, n->node.source);
    n->ep = ep = &c->eps[at != EPCTX_MAP_NONE ? at : c->ep_count];
    if (at == EPCTX_MAP_NONE) {
        EPCTX__TRY(epctx__map_set(eps, n->node.source, c->ep_count++, c->error));
        ep->profile = epctx_profile_of_node(c->opts.profile, view);
        if (!c->opts.allow_stale && c->ep_count <= EPCTX__STAMPS_MAX)
            (void)epctx__made_begin(&ep->made, c->model, n->node.source);
    }
    if (listed && ep->made.format != 0 &&
        epctx__context_of(view, &n->node, ep->made.format, &context)) {
        n->stamped = epctx__made_next(&ep->made, &context);
        n->made = ep->made.binary;
    }
    n->view = view->view;
    n->listed = listed;
    n->chosen = c->opts.node == NULL || epctx_str_is(n->node.name, c->opts.node);
    if (epctx_view_node_attr_str(view, "ep_dlc_context").size == 0) {
        n->owner = n->node.main_context == 1 ||
                   (ep->profile->traits &
                    (EPCTX_TRAIT_EACH_CONTEXT | EPCTX_TRAIT_SECONDARY_CONTEXT)) != 0 ||
                   ((ep->profile->traits & EPCTX_TRAIT_ANY_MAIN) != 0 && n->node.embed_mode == 0 &&
                    n->node.ep_cache_context.size > 0);
        n->secondary = !n->owner && n->node.ep_cache_context.size == 0;
    }
    ep->owners[n->node.embed_mode] += n->owner;
    ep->secondaries += n->secondary;
    n->due = n->chosen && n->owner && n->node.embed_mode != c->mode;
    if (n->due || !n->chosen || (n->secondary && c->opts.node == NULL)) return EPCTX_OK;
    if (n->secondary) {
        reason = "is secondary: the context is in its primary node";
    } else if (n->owner) {
        reason = c->mode == 1 ? "is embedded already" : "is in a file already";
    } else {
        reason = n->node.main_context == 0 ? "is secondary: its EP does not read this context"
                                           : "wraps a DLC, not a context";
    }
    return epctx__convert_note(c, EPCTX_CHANGE_SKIPPED, n, epctx_str_of(NULL),
                               n->node.ep_cache_context.size, reason);
}

static epctx_status epctx__convert_collect(epctx__convert *c) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_map eps;
    size_t count = 0;
    size_t chosen = 0;
    epctx_walk_begin(&walk, c->model);
    while (epctx_walk_epnode(&walk, &view)) count += epctx_view_is_epnode(&view);
    if (count == 0) {
        return epctx_fail(c->error, EPCTX_ERR_NO_NODES,
                          "there is no EPContext node: compile the model first");
    }
    EPCTX__NEW(c->nodes, epctx__context_node, count, c->arena, c->error);
    EPCTX__NEW(c->eps, epctx__context_ep, count, c->arena, c->error);
    epctx_map_init(&eps, c->arena);
    epctx_walk_begin(&walk, c->model);
    while (epctx_walk_epnode(&walk, &view)) {
        if (epctx_view_is_epnode(&view)) {
            epctx__context_node *n = &c->nodes[c->node_count++];
            const bool listed = walk.depth == 0 && !walk.in_function && !walk.in_training;
            EPCTX__TRY(epctx__convert_read(c, &view, listed, &eps, n));
            chosen += n->chosen;
        }
    }
    return chosen > 0 ? EPCTX_OK
                      : epctx_fail(c->error, EPCTX_ERR_NO_NODES,
                                   "there is no EPContext node '%s', but for example '%S'",
                                   c->opts.node, &c->nodes[0].node.name);
}

/* Puts a context into its node: `context` has its bytes, or the name of its file. */
static epctx_status epctx__convert_store(epctx__convert *c, const epctx__context_node *n,
                                         epctx_str context) {
    EPCTX__TRY(epctx_edit_set_attr_str(c->model, n->view, "ep_cache_context", context, c->error));
    return epctx_edit_set_attr_int(c->model, n->view, "embed_mode", c->mode, c->error);
}

/* Secondary nodes repeat the mode of their primary one; some EPs refuse mixed modes. */
static epctx_status epctx__convert_settle(epctx__convert *c) {
    size_t i;
    for (i = 0; i < c->node_count; i++) {
        const epctx__context_node *n = &c->nodes[i];
        const epctx_profile *profile = n->ep->profile;
        bool mixed = n->ep->owners[!c->mode] > n->ep->converted;
        if (n->ep->converted == 0) continue;
        if (mixed && (profile->traits & EPCTX_TRAIT_NO_MIX) != 0) {
            return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                              "the EP %s refuses models with embedded and external contexts: "
                              "convert all of its nodes",
                              profile->name);
        }
        if (n->secondary && !mixed && n->node.embed_mode != c->mode &&
            (n->node.present & EPCTX__BIT(EMBED_MODE)) != 0) {
            EPCTX__TRY(epctx_edit_set_attr_int(c->model, n->view, "embed_mode", c->mode, c->error));
            EPCTX__TRY(
                epctx__convert_note(c, EPCTX_CHANGE_FOLLOWED, n, epctx_str_of(NULL), 0, NULL));
        }
    }
    return EPCTX_OK;
}

/* -- embed -- */

static epctx_status epctx__embed_plan(epctx__convert *c, epctx__context_node *n) {
    const epctx__context_ep *ep = n->ep;
    const uint32_t traits = ep->profile->traits;
    epctx_str name = n->node.ep_cache_context;
    char room[EPCTX_PATH_MAX];
    epctx__file *file;
    epctx_str folder;
    if ((traits & EPCTX_TRAIT_XML_PAIR) != 0 && epctx__ends_with(name, ".xml")) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "names an OpenVINO IR, whose weights are in a .bin beside it: the two "
                          "must stay files");
    }
    if ((traits & EPCTX_TRAIT_STRIPPED_ENGINE) != 0 && epctx__ends_with(name, ".stripped.engine")) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "names an engine without weights, which TensorRT knows by its file "
                          "name: it must stay a file");
    }
    if ((traits & EPCTX_TRAIT_EMBED_ONE) != 0 && ep->secondaries > 0) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "%u more nodes use this context, and the EP %s finds their graphs only "
                          "in a file (ORT issue 31977): keep the binary",
                          (uint64_t)ep->secondaries, ep->profile->name);
    }
    EPCTX__TRY(epctx_profile_path_base(ep->profile, epctx_model_io(c->model),
                                       epctx_str_of(c->model->path), c->opts.context_file_path,
                                       room, &folder, c->error));
    EPCTX__TRY(epctx__model_map(c->model, folder, name, &file, c->error));
    if (file->mapping.size > (uint64_t)EPCTX_MODEL_MAX) {
        return epctx_fail(c->error, EPCTX_ERR_LIMIT,
                          "the context has %u bytes, an embedded one can have %u: keep the binary",
                          (uint64_t)file->mapping.size, (uint64_t)EPCTX_MODEL_MAX);
    }
    n->bytes.data = file->mapping.data;
    n->bytes.size = file->mapping.size;
    EPCTX__TRY(epctx__refuse_foreign(ep->profile, n->bytes, c->error));
    EPCTX__TRY(epctx__convert_count(c, n));
    n->file = file;
    n->ep->several = ep->several || ep->first->file != file;
    return EPCTX_OK;
}

/* If the EP wants every node to name the binary (OpenVINO), the first node in ORT's order takes it
 * when it is embedded. */
static epctx_status epctx__embed_first(epctx__convert *c) {
    const epctx_graph_view graph = epctx_model_graph(c->model);
    epctx_cursor it = epctx_view_graph_nodes(graph);
    epctx__context_node **nodes;
    const uint32_t *order;
    epctx_view view;
    size_t count, i = 0, k;
    EPCTX__NEW(nodes, epctx__context_node *, epctx_cursor_count(it), c->arena, c->error);
    for (k = 0; epctx_next_view(&it, &view); k++) {
        while (i < c->node_count && !c->nodes[i].listed) i++;
        if (i < c->node_count && c->nodes[i].view.slot == view.slot) nodes[k] = &c->nodes[i++];
    }
    EPCTX__TRY(epctx_view_graph_order(graph, c->arena, &order, &count, c->error));
    while (count-- > 0) {
        epctx__context_node *n = nodes[order[count]];
        if (n != NULL && n->due && (n->ep->profile->traits & EPCTX_TRAIT_ALL_NAME) != 0)
            n->ep->first = n;
    }
    return EPCTX_OK;
}

/* The other nodes of such an EP become secondary and store no context. */
static epctx_status epctx__embed_follow(epctx__convert *c, epctx__context_node *n) {
    const epctx_profile *profile = n->ep->profile;
    if (n->ep->several) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "the EP %s loads one embedded context, its nodes name several "
                          "binaries: keep them",
                          profile->name);
    }
    EPCTX__TRY(epctx_edit_set_attr_int(c->model, n->view, "main_context", 0, c->error));
    EPCTX__TRY(epctx__convert_store(c, n, epctx_str_of("")));
    if ((profile->required & EPCTX__BIT(EP_CACHE_CONTEXT)) == 0) {
        EPCTX__TRY(
            epctx_edit_remove_attr(c->model, n->view, epctx_str_of("ep_cache_context"), c->error));
    }
    return epctx__convert_note(c, EPCTX_CHANGE_FOLLOWED, n, n->node.ep_cache_context, 0, NULL);
}

static epctx_status epctx__embed_store(epctx__convert *c, epctx__context_node *n) {
    epctx_str bytes = epctx__str(n->bytes.data, n->bytes.size);
    if ((n->ep->profile->traits & EPCTX_TRAIT_ALL_NAME) != 0) {
        if (n != n->ep->first) return epctx__embed_follow(c, n);
        if (n->node.main_context != 1)
            EPCTX__TRY(epctx_edit_set_attr_int(c->model, n->view, "main_context", 1, c->error));
    }
    EPCTX__TRY(epctx__convert_store(c, n, bytes));
    return epctx__convert_note(c, EPCTX_CHANGE_EMBEDDED, n, n->node.ep_cache_context, bytes.size,
                               NULL);
}

/* -- extract -- */

/* The first `count` numbers of the node's key, borrowed, as a key of a map. */
static epctx_str epctx__extract_key(const epctx__context_node *n, size_t count) {
    return epctx__str((const uint8_t *)n->key, count * sizeof *n->key);
}

/* Collects the names of existing files and the sizes of contexts. */
static epctx_status epctx__extract_begin(epctx__convert *c) {
    size_t i;
    if (epctx_path_file(c->path).size == 0) {
        return epctx_fail(c->error, EPCTX_ERR_PATH,
                          "the model came from memory: say where it will be written (output_path)");
    }
    for (i = 0; i < c->node_count; i++) {
        epctx__context_node *n = &c->nodes[i];
        epctx_str context = n->node.ep_cache_context;
        n->key[0] = context.size;
        if (n->node.embed_mode == 1) {
            epctx_str key = epctx__extract_key(n, 1);
            EPCTX__TRY(
                epctx__map_set(&c->sizes, key, epctx__has(&c->sizes, key) ? 2 : 1, c->error));
        } else if (context.size > 0) {
            EPCTX__TRY(epctx__map_set(&c->taken, context, 1, c->error));
        }
    }
    return EPCTX_OK;
}

/* Finds the first node of the EP with the same context; hashes only contexts of equal size. */
static epctx_status epctx__extract_plan(epctx__convert *c, epctx__context_node *n) {
    const epctx__context_ep *ep = n->ep;
    epctx_str context = n->node.ep_cache_context;
    uint32_t at;
    if ((ep->profile->traits & EPCTX_TRAIT_ONLY_EMBEDDED) != 0) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "the EP %s reads embedded contexts only: leave the model as it is",
                          ep->profile->name);
    }
    if (context.size == 0) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "is empty: there is no context to extract; compile the model again");
    }
    if ((ep->profile->traits & EPCTX_TRAIT_ALL_NAME) != 0 && ep->secondaries > 0 &&
        ep->owners[0] + ep->owners[1] > 1) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "the EP %s requires every node to name its binary, and %u nodes do not "
                          "tell which of several it is: set it by hand",
                          ep->profile->name, (uint64_t)ep->secondaries);
    }
    n->bytes.data = (const uint8_t *)context.data;
    n->bytes.size = context.size;
    EPCTX__TRY(epctx__convert_count(c, n));
    n->key[1] = (uint64_t)(ep - c->eps);
    if (epctx_map_get(&c->sizes, epctx__extract_key(n, 1)) > 1)
        n->key[2] = epctx_hash(context.data, context.size, 0);
    at = epctx_map_get(&c->seen, epctx__extract_key(n, 3));
    n->same = at != EPCTX_MAP_NONE ? &c->nodes[at] : n;
    if (at != EPCTX_MAP_NONE && memcmp(n->same->bytes.data, context.data, context.size) == 0)
        return EPCTX_OK;
    n->same = n; /* or a hash collision */
    return epctx__map_set(&c->seen, epctx__extract_key(n, 3), (size_t)(n - c->nodes), c->error);
}

static epctx_status epctx__convert_put_file(epctx__convert *c, const epctx_output_file *file) {
    epctx_changes *changes = c->changes;
    void *files = changes->files;
    if (!epctx__list_room(c->arena, &files, changes->file_count, &changes->file_room, sizeof *file))
        return epctx__nomem(c->error, c->arena->missing);
    changes->files = (epctx_output_file *)files;
    changes->files[changes->file_count++] = *file;
    return EPCTX_OK;
}

static bool epctx__has_node_word(const char *pattern) {
    while (*pattern != '\0' && !epctx_str_starts(epctx_str_of(pattern), "{node}")) pattern++;
    return *pattern != '\0';
}

/* A file for a context, with the first free name. */
static epctx_status epctx__extract_file(epctx__convert *c, epctx__context_node *n) {
    const epctx_profile *profile = n->ep->profile;
    const char *pattern = c->opts.name != NULL ? c->opts.name : profile->binary;
    char base[EPCTX_PATH_MAX];
    char name[EPCTX_PATH_MAX];
    epctx_output_file file;
    uint32_t number;
    EPCTX__TRY(epctx_profile_fill_name(pattern, c->opts.name == NULL ? profile : NULL, &n->node,
                                       epctx_path_file(c->path), base, sizeof base, c->error));
    memcpy(name, base, strlen(base) + 1);
    number = epctx_map_get(&c->taken, epctx_str_of(base));
    if (number != EPCTX_MAP_NONE) {
        /* Names of nodes may differ only in what no file name takes. */
        if (c->opts.name != NULL && !epctx__has_node_word(c->opts.name)) {
            return epctx_fail(c->error, EPCTX_ERR_PATH,
                              "another context of this model is named '%s': choose a node, or a "
                              "name with {node}",
                              name);
        }
        while (epctx__has(&c->taken, epctx_str_of(name))) {
            EPCTX__TRY(
                epctx_path_numbered(epctx_str_of(base), number++, name, sizeof name, c->error));
        }
        /* The map keeps its key, which lives longer. */
        epctx_map_put(&c->taken, epctx_str_of(base), number);
    }
    EPCTX__TRY(epctx__copy(c->arena, epctx_str_of(name), &n->name.data, c->error));
    n->name.size = strlen(name);
    EPCTX__TRY(epctx_output_name_check(n->name, c->path, profile, c->error));
    EPCTX__TRY(epctx__map_set(&c->taken, n->name, 1, c->error));
    EPCTX__TRY(
        epctx_model_output_file(c->model, c->path.data, n->name, &n->bytes, 1, &file, c->error));
    return epctx__convert_put_file(c, &file);
}

static epctx_status epctx__extract_store(epctx__convert *c, epctx__context_node *n) {
    EPCTX__TRY(n->same == n ? epctx__extract_file(c, n) : EPCTX_OK);
    EPCTX__TRY(epctx__convert_store(c, n, n->same->name));
    return epctx__convert_note(c, EPCTX_CHANGE_EXTRACTED, n, n->same->name, n->bytes.size, NULL);
}

/* -- both -- */

static epctx_status epctx__convert_contexts(epctx__convert *c) {
    const bool embed = c->mode == 1;
    size_t i, store;
    EPCTX__TRY(epctx__convert_collect(c));
    EPCTX__TRY(embed ? EPCTX_OK : epctx__extract_begin(c));
    for (store = 0; store < 2; store++) { /* check all before storing the first */
        if (embed && store == 1) EPCTX__TRY(epctx__embed_first(c));
        for (i = 0; i < c->node_count; i++) {
            epctx__context_node *n = &c->nodes[i];
            if (n->due) {
                epctx_status status =
                    embed   ? store ? epctx__embed_store(c, n) : epctx__embed_plan(c, n)
                      : store ? epctx__extract_store(c, n)
                            : epctx__extract_plan(c, n);
                epctx_blame(c->error, NULL, &n->node.name, "ep_cache_context");
                EPCTX__TRY(status);
            }
        }
    }
    for (i = 0; i < c->node_count && !embed; i++) {
        epctx__context_node *n = &c->nodes[i];
        if (n->secondary && n->ep->converted > 0 &&
            (n->ep->profile->traits & EPCTX_TRAIT_ALL_NAME) != 0) {
            epctx_str name = n->ep->first->same->name;
            n->secondary = false; /* the EP requires every node to name the binary */
            EPCTX__TRY(epctx_edit_set_attr_int(c->model, n->view, "main_context", 1, c->error));
            EPCTX__TRY(epctx__convert_store(c, n, name));
            EPCTX__TRY(epctx__convert_note(c, EPCTX_CHANGE_FOLLOWED, n, name, 0, NULL));
        }
    }
    EPCTX__TRY(epctx__convert_settle(c));
    return embed ? epctx__check_huge(c->model, "keep contexts in files, or choose a node", c->error)
                 : EPCTX_OK;
}

static epctx_status epctx__convert_run(epctx_model *model, const epctx_convert_opts *opts,
                                       int64_t mode, epctx_changes *changes, epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx__convert c;
    epctx_changes ignored;
    memset(&c, 0, sizeof c);
    c.model = model;
    c.arena = &model->arena;
    c.error = error;
    c.mode = mode;
    c.changes = changes != NULL ? changes : &ignored;
    memset(c.changes, 0, sizeof *c.changes);
    if (opts != NULL) c.opts = *opts;
    c.path = epctx_str_of(c.opts.output_path != NULL ? c.opts.output_path : model->path);
    c.sizes.arena = c.seen.arena = c.taken.arena = c.arena;
    if (b.status == EPCTX_OK) b.status = epctx__convert_contexts(&c);
    if (b.status != EPCTX_OK) {
        memset(c.changes, 0, sizeof *c.changes);
        epctx_blame(error, model->path, NULL, NULL);
    }
    return epctx__build_end(&b);
}

EPCTX_API epctx_status epctx_edit_embed(epctx_model *model, const epctx_convert_opts *opts,
                                        epctx_changes *changes, epctx_error *error) {
    return epctx__convert_run(model, opts, 1, changes, error);
}

EPCTX_API epctx_status epctx_edit_extract(epctx_model *model, const epctx_convert_opts *opts,
                                          epctx_changes *changes, epctx_error *error) {
    return epctx__convert_run(model, opts, 0, changes, error);
}

/* -- prefix -- */

typedef struct epctx__prefixing {
    epctx_model *model;
    epctx_error *error;
    epctx_str prefix;
    epctx_prefix_opts opts;
    epctx_map files;             /* binaries of EPs that find a graph by the name of its node */
    epctx_map staying;           /* names of the other nodes */
    const epctx_profile *unsaid; /* of the first node whose binary may hold other graphs */
    epctx_str unsaid_name;
    size_t count;
} epctx__prefixing;

static epctx_status epctx__prefix_refused(const epctx__prefixing *p, const epctx_profile *profile,
                                          const char *why) {
    return epctx_fail(p->error, EPCTX_ERR_UNSUPPORTED, "%s EPContext node cannot be renamed: %s",
                      profile->name, why);
}

/* Refuses a node whose name is the key to its graph in a binary that may have several graphs. */
static epctx_status epctx__prefix_check(epctx__prefixing *p, const epctx_node_view *view) {
    const epctx_profile *profile;
    epctx_epnode node;
    EPCTX__TRY(epctx_view_read_epnode(view, &node, p->error));
    profile = epctx_profile_of_node(p->opts.profile, view);
    if (profile->key != EPCTX_KEY_NODE_NAME) return EPCTX_OK;
    if (node.main_context == 0) {
        return epctx__prefix_refused(p, profile,
                                     "several nodes share a context, and the EP finds the graph "
                                     "in it by the node's name");
    }
    if (node.embed_mode == 0 && epctx__has(&p->files, node.ep_cache_context)) {
        return epctx__prefix_refused(p, profile,
                                     "several nodes name this binary, and the EP finds the graph "
                                     "in it by the node's name");
    }
    if (!p->opts.one_graph && p->unsaid == NULL && !epctx_model_holds_one_graph(p->model, &node)) {
        p->unsaid = profile;
        p->unsaid_name = node.name;
    }
    return node.embed_mode == 0 ? epctx__map_set(&p->files, node.ep_cache_context, 1, p->error)
                                : EPCTX_OK;
}

static epctx_status epctx__prefix_check_all(epctx__prefixing *p) {
    epctx_node_view node;
    epctx_walk walk;
    epctx_walk_begin(&walk, p->model);
    while (epctx_walk_next(&walk, &node)) {
        epctx_status status = EPCTX_OK;
        if (epctx_view_is_epnode(&node))
            status = epctx__prefix_check(p, &node);
        else if (!p->opts.all_nodes)
            status = epctx__map_set(&p->staying, node.name, 1, p->error);
        epctx_blame(p->error, NULL, &node.name, NULL);
        EPCTX__TRY(status);
    }
    if (p->unsaid != NULL) {
        epctx__prefix_refused(p, p->unsaid,
                              "the EP finds the graph in the binary by the node's name, and the "
                              "binary may contain other graphs; set one_graph if it does not");
        epctx_blame(p->error, NULL, &p->unsaid_name, NULL);
        return EPCTX_ERR_UNSUPPORTED;
    }
    return EPCTX_OK;
}

static epctx_status epctx__prefix_node(epctx__prefixing *p, const epctx_node_view *node) {
    epctx_str name;
    epctx_span bytes;
    char *text;
    name.size = p->prefix.size + node->name.size; /* both are in memory: no overflow */
    EPCTX__NEW(text, char, name.size, &p->model->arena, p->error);
    memcpy(text, p->prefix.data, p->prefix.size);
    memcpy(text + p->prefix.size, node->name.data, node->name.size);
    name.data = text;
    if (epctx__has(&p->staying, name)) {
        return epctx_fail(p->error, EPCTX_ERR_EXISTS,
                          "cannot be renamed to '%S': another node has that name", &name);
    }
    bytes.data = (const uint8_t *)text;
    bytes.size = name.size;
    p->count++;
    return epctx__edit_set_data(p->model, node->view, EPCTX_FIELD_NODE_NAME, bytes, p->error);
}

static epctx_status epctx__prefix_run(epctx__prefixing *p) {
    epctx_node_view node;
    epctx_walk walk;
    if (p->prefix.size == 0) return epctx_fail(p->error, EPCTX_ERR_ARG, "the prefix is empty");
    EPCTX__TRY(epctx__prefix_check_all(p));
    epctx_walk_begin(&walk, p->model);
    while (epctx_walk_next(&walk, &node)) {
        if (node.name.size > 0 && (p->opts.all_nodes || epctx_view_is_epnode(&node))) {
            epctx_status status = epctx__prefix_node(p, &node);
            epctx_blame(p->error, NULL, &node.name, NULL);
            EPCTX__TRY(status);
        }
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_edit_prefix(epctx_model *model, epctx_str prefix,
                                         const epctx_prefix_opts *opts, size_t *count,
                                         epctx_error *error) {
    epctx__builder b = epctx__builder_of(model, error);
    epctx__prefixing p;
    memset(&p, 0, sizeof p);
    p.model = model;
    p.error = error;
    p.prefix = prefix;
    if (opts != NULL) p.opts = *opts;
    epctx_map_init(&p.files, &model->arena);
    epctx_map_init(&p.staying, &model->arena);
    b.status = b.status == EPCTX_OK ? epctx__prefix_run(&p) : b.status;
    epctx_blame(error, model->path, NULL, NULL);
    if (count != NULL) *count = b.status == EPCTX_OK ? p.count : 0;
    return epctx__build_end(&b);
}

#endif /* EPCTX_NO_EDIT */

/* ============================================================
 * >>partition
 *
 * A node's level is the maximum number of changes of take[] on a path to it. An edge never leads to
 * a lower level, and to a higher one if take[] changes. So the nodes of a level with one take[] can
 * form a group: no path leaves it and returns, even with the other groups contracted.
 *
 * Constant nodes have no level: taken nodes that capture nothing and have only constant inputs.
 * Each partition that reads such a node gets a copy, so that it never ties two partitions together.
 *
 * A unit is a set of nodes that stay together. A path that leaves a unit and returns makes a circle
 * of units; so units and nodes that are strongly connected form a component, which has one level,
 * or else is dissolved: then the nodes of its units are not taken. A group that is too large is cut
 * into partitions of components in their order, producers first, so no path returns to one.
 *
 * epctx__partition works on an epctx__grouping, in five steps. epctx__part_names maps each value
 * to its producer, initializer and type. epctx__part_nodes tells which nodes are constant.
 * epctx__part_components finds the components (without units each node is one).
 * epctx__part_levels goes over them once and numbers the groups as the levels ascend.
 * epctx__part_constants finds the constants that are graph outputs and those that stay with a
 * reader that is not taken.
 * epctx__part_collect makes each partition: its nodes with the constants they need, then its
 * boundary. At the end epctx__part_owners decides which partition may claim a constant node
 * itself, for ORT, which does not copy nodes.
 *
 * The graph may be hostile. A value with two producers (unless Constant nodes repeat it) and a node
 * that reads the value of a later one are errors that name value and node; the second check also
 * refuses every cycle. Constants are followed with a stack of their own instead of recursion, and
 * the number of copies has a limit, since many partitions could each copy a long chain.
 *
 * The time grows in proportion to nodes, reads and copies: values are found in hash maps, and
 * epctx__nodes_by sorts nodes into levels and groups by counting.
 * ============================================================ */

#define EPCTX__NOBODY   UINT32_MAX       /* not in a partition */
#define EPCTX__CONSTANT (UINT32_MAX - 1) /* copied into its users */

/* Why a node that the backend takes is in no partition. BESIDE: a constant that stays beside the
 * nodes that read it. SPLIT: of a unit that is dissolved. */
#define EPCTX__BESIDE 2
#define EPCTX__SPLIT  3

/* A constant node whose inputs are being visited. */
typedef struct epctx__visit {
    uint32_t node;
    size_t input; /* to look at next */
} epctx__visit;

typedef struct epctx__grouping {
    const epctx_graph *graph;
    uint8_t *take;         /* dissolved units are cleared */
    const uint32_t *units; /* node -> its unit, or 0; NULL: there are none */
    size_t most;           /* nodes of a partition; 0: any number */
    epctx_arena *arena;
    epctx_error *error;
    epctx_map producers;    /* value -> node */
    epctx_map initializers; /* value -> initializer */
    epctx_map types;        /* value -> index: inputs, then outputs, then values */
    epctx_map wanted;       /* value -> 1: a graph output, or read outside its partition */
    uint32_t *group;        /* node -> partition, EPCTX__NOBODY or EPCTX__CONSTANT */
    uint8_t *constant;      /* node -> are all inputs constant? */
    uint8_t *stays;         /* node -> EPCTX__BESIDE, EPCTX__SPLIT or 0 */
    uint32_t *component;    /* node -> its component, or EPCTX__NOBODY for constants */
    size_t component_count; /* producers come first */
    uint32_t count;         /* partitions */
    uint32_t *stamp;        /* node -> 1 + the last partition that copied it */
    uint32_t *owner;        /* node -> partition that claims it, or EPCTX__NOBODY */
    epctx__visit *stack;    /* a path back through constants */
    uint64_t copies;        /* of constant nodes so far */
    uint32_t *list;         /* nodes of the current partition */
} epctx__grouping;

/* The producer of a value that a node reads, or EPCTX_MAP_NONE. */
static uint32_t epctx__producer(const epctx__grouping *g, const epctx_node *node, size_t read) {
    return epctx_map_get(&g->producers, epctx__reads(node, read));
}

static epctx_status epctx__part_refuse(epctx__grouping *g, const char *problem, epctx_str value,
                                       epctx_str node) {
    epctx_fail(g->error, EPCTX_ERR_GRAPH, problem, &value);
    epctx_blame(g->error, NULL, &node, NULL);
    return EPCTX_ERR_GRAPH;
}

/* A Constant node may redefine the value of an earlier one of the same type; the last one wins, as
 * in ONNX Runtime, which turns them into initializers. */
static bool epctx__remakes(const epctx_graph *graph, uint32_t first, const epctx_node *again) {
    const epctx_node *node = first != EPCTX_MAP_NONE ? &graph->nodes[first] : again;
    const epctx_tensor *a = node->attr_count == 1 ? node->attrs[0].t : NULL;
    const epctx_tensor *b = again->attr_count == 1 ? again->attrs[0].t : NULL;
    return node != again && epctx_str_is(node->op_type, "Constant") && node->domain.size == 0 &&
           epctx_str_is(again->op_type, "Constant") && again->domain.size == 0 && a != NULL &&
           b != NULL && a->elem_type == b->elem_type && a->rank == b->rank && a->rank >= 0 &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

/* Maps each value to its origin and its type. A second origin is an error. */
static epctx_status epctx__part_names(epctx__grouping *g) {
    const epctx_graph *graph = g->graph;
    size_t i, k;
    g->producers.arena = g->initializers.arena = g->types.arena = g->wanted.arena = g->arena;
    for (i = 0; i < graph->value_count; i++) {
        EPCTX__TRY(epctx__map_set(&g->types, graph->values[i].name,
                                  graph->input_count + graph->output_count + i, g->error));
    }
    for (i = 0; i < graph->output_count; i++) {
        epctx_str name = graph->outputs[i].name;
        EPCTX__TRY(epctx__map_set(&g->types, name, graph->input_count + i, g->error));
        EPCTX__TRY(epctx__map_set(&g->wanted, name, 1, g->error));
    }
    for (i = 0; i < graph->input_count; i++)
        EPCTX__TRY(epctx__map_set(&g->types, graph->inputs[i].name, i, g->error));
    for (i = 0; i < graph->initializer_count; i++)
        EPCTX__TRY(epctx__map_set(&g->initializers, graph->initializers[i].name, i, g->error));
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; k < node->output_count; k++) {
            epctx_str name = node->outputs[k];
            uint32_t before = epctx_map_get(&g->producers, name);
            if (name.size == 0) continue;
            if ((before != EPCTX_MAP_NONE || epctx__has(&g->initializers, name) ||
                 epctx_map_get(&g->types, name) < graph->input_count) &&
                !epctx__remakes(graph, before, node))
                return epctx__part_refuse(g, "value '%S' is produced twice", name, node->name);
            EPCTX__TRY(epctx__map_set(&g->producers, name, i, g->error));
        }
    }
    return EPCTX_OK;
}

/* Sorts the nodes by their number, if it is below `count`: those with number n are nodes[begin[n]]
 * up to nodes[begin[n + 1]], in the order of the graph. `begin` has count + 1 places. */
static epctx_status epctx__nodes_by(epctx__grouping *g, const uint32_t *numbers, size_t count,
                                    size_t **begin, uint32_t **nodes) {
    size_t i;
    size_t *at; /* counts are two places up: filling `nodes` turns them into `begin` */
    EPCTX__NEW(at, size_t, count + 2, g->arena, g->error);
    EPCTX__NEW(*nodes, uint32_t, g->graph->node_count, g->arena, g->error);
    for (i = 0; i < g->graph->node_count; i++)
        if (numbers[i] < count) at[numbers[i] + 2]++;
    for (i = 2; i < count + 2; i++) at[i] += at[i - 1];
    for (i = 0; i < g->graph->node_count; i++)
        if (numbers[i] < count) (*nodes)[at[numbers[i] + 1]++] = (uint32_t)i;
    *begin = at;
    return EPCTX_OK;
}

/* Which nodes are constant; every node reads what earlier ones produce. */
static epctx_status epctx__part_nodes(epctx__grouping *g) {
    const epctx_graph *graph = g->graph;
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        bool constant = g->take[i] != 0 && node->capture_count == 0;
        for (k = 0; constant && k < node->input_count; k++) {
            uint32_t producer = epctx_map_get(&g->producers, node->inputs[k]);
            constant = node->inputs[k].size == 0 ||
                       (producer != EPCTX_MAP_NONE && g->constant[producer] != 0) ||
                       epctx__has(&g->initializers, node->inputs[k]);
        }
        g->constant[i] = constant; /* the compiler of its readers folds it */
        g->group[i] = constant ? EPCTX__CONSTANT : EPCTX__NOBODY;
        for (k = 0; !constant && k < epctx__read_count(node); k++) {
            uint32_t producer = epctx__producer(g, node, k);
            if (producer != EPCTX_MAP_NONE && g->constant[producer] == 0 && producer >= i) {
                return epctx__part_refuse(
                    g, "input '%S' is produced by a later node: the graph is not sorted",
                    epctx__reads(node, k), node->name);
            }
        }
    }
    return EPCTX_OK;
}

/* -- components: Tarjan's algorithm over units, with a stack instead of recursion -- */

typedef struct epctx__unit_walk {
    epctx__grouping *g;
    uint32_t *vertex; /* node -> the first of its unit, or itself */
    uint32_t *next;   /* node -> the next of its unit, or EPCTX__NOBODY */
    uint32_t *seen;   /* vertex -> when it was reached, from 1; 0: not yet */
    uint32_t *low;    /* vertex -> the earliest on the path that it reaches */
    uint32_t *path;   /* reached vertices without a component */
    size_t reached, path_count, top;
} epctx__unit_walk;

/* Links the nodes of each unit. */
static epctx_status epctx__unit_link(epctx__unit_walk *j) {
    epctx__grouping *g = j->g;
    const size_t n = g->graph->node_count;
    uint32_t *last; /* unit - 1 -> its last node so far and 1; 0: none */
    size_t i;
    EPCTX__NEW(last, uint32_t, n, g->arena, g->error);
    for (i = 0; i < n; i++) {
        const size_t unit = g->constant[i] != 0 ? 0 : g->units[i];
        j->vertex[i] = (uint32_t)i;
        j->next[i] = EPCTX__NOBODY;
        if (unit == 0) continue;
        if (last[unit - 1] > 0) {
            j->vertex[i] = j->vertex[last[unit - 1] - 1];
            j->next[last[unit - 1] - 1] = (uint32_t)i;
        }
        last[unit - 1] = (uint32_t)i + 1;
    }
    return EPCTX_OK;
}

static void epctx__unit_reach(epctx__unit_walk *j, uint32_t vertex) {
    j->seen[vertex] = j->low[vertex] = (uint32_t)++j->reached;
    j->path[j->path_count++] = vertex;
    j->g->stack[j->top].node = vertex;
    j->g->stack[j->top++].input = 0;
}

/* All that `vertex` reads is done. */
static void epctx__unit_leave(epctx__unit_walk *j, uint32_t vertex) {
    epctx__grouping *g = j->g;
    if (j->low[vertex] == j->seen[vertex]) { /* it reaches nothing earlier: a component */
        do {
            g->component[j->path[--j->path_count]] = (uint32_t)g->component_count;
        } while (j->path[j->path_count] != vertex);
        g->component_count++;
    }
    if (--j->top > 0) {
        uint32_t reader = j->vertex[g->stack[j->top - 1].node];
        if (j->low[vertex] < j->low[reader]) j->low[reader] = j->low[vertex];
    }
}

/* Components from the stack's first vertex on. */
static void epctx__unit_walk_from(epctx__unit_walk *j, uint32_t first) {
    epctx__grouping *g = j->g;
    epctx__unit_reach(j, first);
    while (j->top > 0) {
        epctx__visit *at = &g->stack[j->top - 1];
        const epctx_node *node = &g->graph->nodes[at->node];
        const uint32_t vertex = j->vertex[at->node];
        if (at->input < epctx__read_count(node)) {
            uint32_t producer = epctx__producer(g, node, at->input++);
            if (producer == EPCTX_MAP_NONE || g->constant[producer] != 0) continue;
            producer = j->vertex[producer];
            if (j->seen[producer] == 0)
                epctx__unit_reach(j, producer);
            else if (g->component[producer] == EPCTX__NOBODY && j->seen[producer] < j->low[vertex])
                j->low[vertex] = j->seen[producer];
        } else if (j->next[at->node] != EPCTX__NOBODY) {
            at->node = j->next[at->node];
            at->input = 0;
        } else {
            epctx__unit_leave(j, vertex);
        }
    }
}

/* The nodes of each component, ascending: see epctx__nodes_by. */
typedef struct epctx__components {
    size_t *begin;
    uint32_t *nodes;
    uint8_t *joined; /* component -> its nodes stay together */
} epctx__components;

/* How many nodes of component `at`, from any on, stay together. */
static size_t epctx__joined_count(const epctx__components *c, size_t at) {
    return c->joined[at] != 0 ? c->begin[at + 1] - c->begin[at] : 1;
}

/* Components with units that cannot be in one partition lose them. */
static void epctx__part_dissolve(epctx__grouping *g, const epctx__components *c) {
    size_t at, i;
    for (at = 0; at < g->component_count; at++) {
        const uint32_t *nodes = c->nodes + c->begin[at];
        const size_t count = c->begin[at + 1] - c->begin[at];
        bool fits = (g->most == 0 || count <= g->most) && count > 0 && g->take[nodes[0]] != 0;
        for (i = 0; i < count; i++) fits = fits && g->take[nodes[i]] == g->take[nodes[0]];
        c->joined[at] = fits;
        for (i = 0; !fits && i < count; i++) {
            if (g->units[nodes[i]] == 0 || g->take[nodes[i]] == 0) continue;
            g->take[nodes[i]] = 0;
            g->stays[nodes[i]] = EPCTX__SPLIT;
        }
    }
}

static epctx_status epctx__part_components(epctx__grouping *g, epctx__components *out) {
    const size_t n = g->graph->node_count;
    epctx__unit_walk j;
    size_t i;
    memset(&j, 0, sizeof j);
    j.g = g;
    memset(g->component, 0xff, n * sizeof *g->component);
    g->component_count = n;
    EPCTX__NEW(out->joined, uint8_t, n, g->arena, g->error);
    if (g->units == NULL) {
        for (i = 0; i < n; i++)
            if (g->constant[i] == 0) g->component[i] = (uint32_t)i;
        return epctx__nodes_by(g, g->component, n, &out->begin, &out->nodes);
    }
    EPCTX__NEW(j.vertex, uint32_t, n, g->arena, g->error);
    EPCTX__NEW(j.next, uint32_t, n, g->arena, g->error);
    EPCTX__NEW(j.seen, uint32_t, n, g->arena, g->error);
    EPCTX__NEW(j.low, uint32_t, n, g->arena, g->error);
    EPCTX__NEW(j.path, uint32_t, n, g->arena, g->error);
    EPCTX__TRY(epctx__unit_link(&j));
    g->component_count = 0;
    for (i = 0; i < n; i++)
        if (g->constant[i] == 0 && j.seen[j.vertex[i]] == 0) epctx__unit_walk_from(&j, j.vertex[i]);
    for (i = 0; i < n; i++)
        if (g->constant[i] == 0) g->component[i] = g->component[j.vertex[i]];
    EPCTX__TRY(epctx__nodes_by(g, g->component, g->component_count, &out->begin, &out->nodes));
    epctx__part_dissolve(g, out);
    return EPCTX_OK;
}

/* Cuts the groups that are too large: group numbers become partition numbers, in the same order. */
static epctx_status epctx__part_cut(epctx__grouping *g, const epctx__components *c) {
    uint32_t *cut;   /* node -> partition within its group */
    uint32_t *parts; /* group -> its partitions */
    size_t *full;    /* group -> nodes of its last partition */
    size_t at, i, k, step;
    uint32_t total = 0;
    if (g->most == 0) return EPCTX_OK;
    EPCTX__NEW(cut, uint32_t, g->graph->node_count, g->arena, g->error);
    EPCTX__NEW(parts, uint32_t, (size_t)g->count + 1, g->arena, g->error);
    EPCTX__NEW(full, size_t, g->count, g->arena, g->error);
    for (at = 0; at < g->component_count; at++) {
        const uint32_t *nodes = c->nodes + c->begin[at];
        const size_t count = c->begin[at + 1] - c->begin[at];
        step = epctx__joined_count(c, at);
        for (i = 0; i < count; i += step) {
            const uint32_t group = g->group[nodes[i]];
            if (group == EPCTX__NOBODY) continue;
            if (parts[group] == 0 || full[group] + step > g->most) {
                parts[group]++;
                full[group] = 0;
            }
            full[group] += step;
            for (k = i; k < i + step; k++) cut[nodes[k]] = parts[group] - 1;
        }
    }
    for (i = 0; i < g->count; i++) {
        uint32_t first = total;
        total += parts[i];
        parts[i] = first;
    }
    for (i = 0; i < g->graph->node_count; i++)
        if (g->group[i] < g->count) g->group[i] = parts[g->group[i]] + cut[i];
    g->count = total;
    return EPCTX_OK;
}

/* One group for each take[] of a level, numbered as levels ascend. */
static epctx_status epctx__part_number(epctx__grouping *g, const uint32_t *level) {
    uint32_t number[UINT8_MAX + 1];
    uint32_t *nodes;
    size_t *begin;
    size_t at, i;
    EPCTX__TRY(epctx__nodes_by(g, level, g->graph->node_count, &begin, &nodes));
    for (at = 0; at < g->graph->node_count; at++) {
        memset(number, 0xff, sizeof number);
        for (i = begin[at]; i < begin[at + 1]; i++) {
            uint8_t take = g->take[nodes[i]];
            if (take == 0 || g->group[nodes[i]] == EPCTX__CONSTANT) continue;
            if (number[take] == EPCTX__NOBODY) number[take] = g->count++;
            g->group[nodes[i]] = number[take];
        }
    }
    return EPCTX_OK;
}

/* The level that the producers of a node ask for. */
static uint32_t epctx__level_of(const epctx__grouping *g, const uint32_t *level, uint32_t node) {
    const epctx_node *reader = &g->graph->nodes[node];
    uint32_t most = 0;
    size_t k;
    for (k = 0; k < epctx__read_count(reader); k++) {
        uint32_t producer = epctx__producer(g, reader, k);
        uint32_t least;
        if (producer == EPCTX_MAP_NONE || g->constant[producer] != 0) continue;
        least = level[producer] + (g->take[producer] != g->take[node] ? 1u : 0u);
        most = most < least ? least : most;
    }
    return most;
}

static epctx_status epctx__part_levels(epctx__grouping *g, const epctx__components *c) {
    uint32_t *level;
    size_t at, i, k, step;
    EPCTX__NEW(level, uint32_t, g->graph->node_count, g->arena, g->error);
    for (at = 0; at < g->component_count; at++) {
        const uint32_t *nodes = c->nodes + c->begin[at];
        const size_t count = c->begin[at + 1] - c->begin[at];
        step = epctx__joined_count(c, at);
        for (i = 0; i < count; i += step) {
            uint32_t most = 0;
            for (k = i; k < i + step; k++) {
                uint32_t least = epctx__level_of(g, level, nodes[k]);
                most = most < least ? least : most;
            }
            for (k = i; k < i + step; k++) level[nodes[k]] = most;
        }
    }
    EPCTX__TRY(epctx__part_number(g, level));
    return epctx__part_cut(g, c);
}

/* Constants that are graph outputs belong to the first partition; those read by a node that is not
 * taken stay outside with it. */
static void epctx__part_constants(epctx__grouping *g) {
    const epctx_graph *graph = g->graph;
    size_t i, k;
    for (i = graph->node_count; i-- > 0;) {
        const epctx_node *node = &graph->nodes[i];
        bool given = false;
        for (k = 0; (g->take[i] == 0 || g->stays[i] != 0) && k < epctx__read_count(node); k++) {
            uint32_t producer = epctx__producer(g, node, k);
            if (producer != EPCTX_MAP_NONE && g->constant[producer] != 0)
                g->stays[producer] = EPCTX__BESIDE;
        }
        for (k = 0; g->constant[i] != 0 && g->stays[i] == 0 && k < node->output_count; k++) {
            given = given || (epctx_map_get(&g->wanted, node->outputs[k]) != EPCTX_MAP_NONE &&
                              epctx_map_get(&g->producers, node->outputs[k]) == i);
        }
        if (given) {
            g->group[i] = 0;
            if (g->count == 0) g->count = 1;
        }
    }
}

static epctx_value epctx__typed(const epctx__grouping *g, epctx_str name) {
    const epctx_graph *graph = g->graph;
    size_t at = epctx_map_get(&g->types, name);
    epctx_value value;
    memset(&value, 0, sizeof value);
    value.rank = -1;
    if (at < graph->input_count)
        value = graph->inputs[at];
    else if (at - graph->input_count < graph->output_count)
        value = graph->outputs[at - graph->input_count];
    else if (at != EPCTX_MAP_NONE)
        value = graph->values[at - graph->input_count - graph->output_count];
    value.name = name;
    return value;
}

/* Appends `first` and the constants it needs to the list, producers before readers. No recursion:
 * the stack is a path through the graph with the next input of each node. */
static size_t epctx__list_constants(epctx__grouping *g, uint32_t first, uint32_t mark,
                                    size_t count) {
    size_t top = 0;
    uint32_t next = first;
    for (;;) {
        epctx__visit *at;
        if (next != EPCTX_MAP_NONE && g->stamp[next] != mark) {
            g->stack[top].node = next;
            g->stack[top++].input = 0;
        }
        if (top == 0) return count;
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
static epctx_status epctx__collect_nodes(epctx__grouping *g, epctx_partition *part, uint32_t id) {
    epctx_node *nodes;
    size_t count = 0;
    size_t i, k;
    for (i = 0; i < part->node_count; i++) {
        const epctx_node *node = &g->graph->nodes[part->nodes[i]];
        for (k = 0; k < epctx__read_count(node); k++) {
            uint32_t producer = epctx__producer(g, node, k);
            if (producer != EPCTX_MAP_NONE && g->constant[producer] != 0)
                count = epctx__list_constants(g, producer, id + 1, count);
        }
        g->stamp[part->nodes[i]] = id + 1;
        g->list[count++] = part->nodes[i];
    }
    g->copies += count - part->node_count;
    if (g->copies > (uint64_t)g->graph->node_count * 16 + 4096) {
        return epctx_fail(g->error, EPCTX_ERR_LIMIT,
                          "constant nodes would be copied more than %u times into %u partitions",
                          (uint64_t)g->graph->node_count * 16 + 4096, (uint64_t)g->count);
    }
    EPCTX__NEW(nodes, epctx_node, count, g->arena, g->error);
    for (i = 0; i < count; i++) nodes[i] = g->graph->nodes[g->list[i]];
    part->graph.nodes = nodes;
    part->graph.node_count = count;
    return EPCTX_OK;
}

/* Boundary inputs in order of first use, initializers, boundary outputs in order of production. */
static epctx_status epctx__collect_edges(epctx__grouping *g, epctx_partition *part, uint32_t id) {
    epctx_graph *graph = &part->graph;
    epctx_value *inputs, *outputs;
    epctx_tensor *initializers;
    epctx_map seen;
    size_t reads = 0, made = 0;
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        reads += epctx__read_count(&graph->nodes[i]);
        made += graph->nodes[i].output_count;
    }
    EPCTX__NEW(inputs, epctx_value, reads, g->arena, g->error);
    EPCTX__NEW(initializers, epctx_tensor, reads, g->arena, g->error);
    EPCTX__NEW(outputs, epctx_value, made, g->arena, g->error);
    graph->inputs = inputs;
    graph->initializers = initializers;
    graph->outputs = outputs;
    epctx_map_init(&seen, g->arena);
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; k < epctx__read_count(node); k++) {
            epctx_str name = epctx__reads(node, k);
            uint32_t producer = epctx__producer(g, node, k);
            uint32_t initializer = epctx_map_get(&g->initializers, name);
            if (name.size == 0 || epctx__has(&seen, name) ||
                (producer != EPCTX_MAP_NONE &&
                 (g->group[producer] == id || g->constant[producer] != 0)))
                continue;
            if (producer == EPCTX_MAP_NONE && initializer != EPCTX_MAP_NONE)
                initializers[graph->initializer_count++] = g->graph->initializers[initializer];
            else
                inputs[graph->input_count++] = epctx__typed(g, name);
            EPCTX__TRY(epctx__map_set(&seen, name, 1, g->error));
        }
    }
    for (i = 0; i < part->node_count; i++) {
        const epctx_node *node = &g->graph->nodes[part->nodes[i]];
        for (k = 0; k < node->output_count; k++)
            if (node->outputs[k].size > 0 && epctx__has(&g->wanted, node->outputs[k]))
                outputs[graph->output_count++] = epctx__typed(g, node->outputs[k]);
    }
    return EPCTX_OK;
}

/* A constant node belongs to the partition of all its readers. If somebody else needs its value
 * (another partition, a node that is left, the application) it is nobody's: inside, its partition
 * would have to deliver the value, also to nodes that it may depend on itself. What such a node
 * reads is then needed outside, too; hence backwards. */
static void epctx__part_owners(epctx__grouping *g) {
    const epctx_graph *graph = g->graph;
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) g->owner[i] = g->group[i];
    for (i = 0; i < graph->output_count; i++) {
        uint32_t from = epctx_map_get(&g->producers, graph->outputs[i].name);
        if (from != EPCTX_MAP_NONE && g->group[from] == EPCTX__CONSTANT)
            g->owner[from] = EPCTX__NOBODY;
    }
    for (i = graph->node_count; i-- > 0;) {
        if (g->owner[i] == EPCTX__CONSTANT) g->owner[i] = EPCTX__NOBODY; /* no reader */
        for (k = 0; k < epctx__read_count(&graph->nodes[i]); k++) {
            uint32_t from = epctx__producer(g, &graph->nodes[i], k);
            if (from == EPCTX_MAP_NONE || g->group[from] != EPCTX__CONSTANT) continue;
            if (g->owner[from] == EPCTX__CONSTANT)
                g->owner[from] = g->owner[i];
            else if (g->owner[from] != g->owner[i])
                g->owner[from] = EPCTX__NOBODY;
        }
    }
}

/* Makes the partitions from the groups. */
static epctx_status epctx__part_collect(epctx__grouping *g, epctx_partition *parts) {
    const epctx_graph *graph = g->graph;
    uint32_t *members; /* of all partitions in order */
    size_t *begin;     /* of each */
    size_t i, k;
    EPCTX__TRY(epctx__nodes_by(g, g->group, g->count, &begin, &members));
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; k < epctx__read_count(node); k++) { /* values that leave their partition */
            uint32_t producer = epctx__producer(g, node, k);
            if (producer != EPCTX_MAP_NONE && g->group[producer] != g->group[i])
                EPCTX__TRY(epctx__map_set(&g->wanted, epctx__reads(node, k), 1, g->error));
        }
    }
    for (i = 0; i < g->count; i++) {
        parts[i].nodes = members + begin[i];
        parts[i].node_count = begin[i + 1] - begin[i];
        parts[i].graph.name = graph->name;
        parts[i].graph.values = graph->values;
        parts[i].graph.value_count = graph->value_count;
        EPCTX__TRY(epctx__collect_nodes(g, &parts[i], (uint32_t)i));
        EPCTX__TRY(epctx__collect_edges(g, &parts[i], (uint32_t)i));
    }
    epctx__part_owners(g);
    EPCTX__TRY(epctx__nodes_by(g, g->owner, g->count, &begin, &members));
    for (i = 0; i < g->count; i++) {
        parts[i].claims = members + begin[i];
        parts[i].claim_count = begin[i + 1] - begin[i];
    }
    return EPCTX_OK;
}

/* `units` may be NULL, `most` 0; `stays` (may be NULL) tells which taken nodes stay, and why. */
static epctx_status epctx__partition(const epctx_graph *graph, const uint8_t *take,
                                     const uint32_t *units, size_t most, epctx_arena *arena,
                                     epctx_partition **partitions, size_t *count,
                                     const uint8_t **stays, epctx_error *error) {
    size_t n = graph->node_count;
    epctx__components components;
    epctx__grouping g;
    size_t i;
    epctx_error_clear(error);
    *partitions = NULL;
    *count = 0;
    memset(&g, 0, sizeof g);
    g.graph = graph;
    g.units = units;
    g.most = most;
    g.arena = arena;
    g.error = error;
    if (n >= EPCTX__CONSTANT)
        return epctx_fail(error, EPCTX_ERR_LIMIT, "the graph has %u nodes", (uint64_t)n);
    EPCTX__NEW(g.take, uint8_t, n, arena, error);
    if (n > 0) memcpy(g.take, take, n);
    EPCTX__NEW(g.group, uint32_t, n, arena, error);
    EPCTX__NEW(g.component, uint32_t, n, arena, error);
    EPCTX__NEW(g.constant, uint8_t, n, arena, error);
    EPCTX__NEW(g.stays, uint8_t, n, arena, error);
    EPCTX__NEW(g.stamp, uint32_t, n, arena, error);
    EPCTX__NEW(g.owner, uint32_t, n, arena, error);
    EPCTX__NEW(g.stack, epctx__visit, n, arena, error);
    EPCTX__NEW(g.list, uint32_t, n, arena, error);
    EPCTX__TRY(epctx__part_names(&g));
    EPCTX__TRY(epctx__part_nodes(&g));
    EPCTX__TRY(epctx__part_components(&g, &components));
    EPCTX__TRY(epctx__part_levels(&g, &components));
    epctx__part_constants(&g);
    if (stays != NULL) *stays = g.stays;
    EPCTX__NEW(*partitions, epctx_partition, g.count, arena, error);
    EPCTX__TRY(epctx__part_collect(&g, *partitions));
    for (i = 0; i < g.count; i++) /* what nobody reads is left out: it makes no EPContext node */
        if ((*partitions)[i].graph.output_count > 0) (*partitions)[(*count)++] = (*partitions)[i];
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_graph_partition(const epctx_graph *graph, const uint8_t *take,
                                             epctx_arena *arena, epctx_partition **partitions,
                                             size_t *count, epctx_error *error) {
    return epctx__partition(graph, take, NULL, 0, arena, partitions, count, NULL, error);
}

/* ============================================================
 * >>weights
 *
 * epctx_weights_add first hashes a sample of the weight. The table is keyed by that hash; the first
 * weight with a sample is stored under it, further ones under the hash of all their bytes, so that
 * weights which differ early cost 256 bytes, and only those that look alike are read whole. Equal
 * hashes prove nothing: epctx__weight_compare compares all bytes, those placed before in pieces
 * from `binary` or fetch_fn. Equal bytes at places of another alignment form a list (`next`). After
 * a weight that looked like another one, the next is hashed whole at once: memory is read fastest
 * in order.
 * ============================================================ */

#define EPCTX__WEIGHT_PIECE  65536u /* read at once */
#define EPCTX__WEIGHT_FIRST  4096u  /* the first piece: most weights differ early */
#define EPCTX__WEIGHT_BLOCK  16u    /* of a sample */
#define EPCTX__WEIGHT_STRIDE 64u
#define EPCTX__WEIGHT_HEADS  4u /* per place: an empty one saves reading the entry */
/* A power of two; table sizes cannot overflow. */
#define EPCTX__WEIGHTS_MOST ((size_t)1 << (sizeof(size_t) > 4 ? 31 : 24))

struct epctx__weight {
    uint64_t offset, size;
    uint64_t key;   /* hash of its sample if it is the first with it, else of all bytes */
    uint64_t whole; /* `hashed`: the first one's hash of all bytes */
    epctx__links links;
    uint32_t kind;
    uint32_t next; /* equal bytes at another alignment */
    bool first, hashed;
};

EPCTX_API epctx_status epctx_weights_init(epctx_weights *weights, const epctx_weights_opts *opts,
                                          epctx_error *error) {
    epctx_error_clear(error);
    memset(weights, 0, sizeof *weights);
    if (opts == NULL || (opts->binary == NULL && opts->fetch_fn == NULL)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "a weight table needs a binary or a fetch_fn to compare with");
    }
    weights->opts = *opts;
    weights->allocator = epctx__allocator(opts->allocator);
    weights->start = opts->binary != NULL ? opts->binary->size : 0;
    return EPCTX_OK;
}

EPCTX_API void epctx_weights_free(epctx_weights *weights) {
    if (weights->entries != NULL)
        weights->allocator.free_fn(weights->allocator.user, weights->entries);
    memset(weights, 0, sizeof *weights);
}

EPCTX_API bool epctx_weights_at(const epctx_weights *weights, uint32_t index, epctx_weight *out) {
    if (index >= weights->count) return false;
    out->offset = weights->entries[index].offset;
    out->size = weights->entries[index].size;
    out->kind = weights->entries[index].kind;
    out->index = index;
    out->fresh = false;
    return true;
}

/* -- bytes -- */

/* A search for a weight. */
typedef struct epctx__weight_search {
    epctx_weights *table;
    const uint8_t *data;
    size_t size;
    uint32_t kind;
    bool first;
    uint64_t key;        /* as in epctx__weight */
    epctx_status status; /* of fetch_fn */
    epctx_error *error;
} epctx__weight_search;

/* Reads placed bytes. */
static bool epctx__weight_piece(epctx__weight_search *s, uint32_t index, size_t at, size_t size,
                                const uint8_t **out) {
    const epctx_weights *w = s->table;
    uint64_t offset = w->entries[index].offset + at;
    if (w->opts.binary != NULL) {
        *out = w->opts.binary->data + w->start + (size_t)offset;
        return true;
    }
    s->status = w->opts.fetch_fn(w->opts.user, offset, size, out, s->error);
    if (s->status != EPCTX_OK)
        epctx_fail(s->error, s->status, "weights at offset %u cannot be read", offset);
    return s->status == EPCTX_OK;
}

/* Hashes equidistant blocks including the first and the last. */
static uint64_t epctx__weight_sample(epctx__weight_search *s) {
    const size_t blocks = EPCTX_WEIGHTS_SAMPLE / EPCTX__WEIGHT_BLOCK;
    const uint64_t seed = s->table->opts.seed + s->size * EPCTX__P1 + s->kind * EPCTX__P3;
    uint8_t sample[EPCTX_WEIGHTS_SAMPLE];
    size_t size = s->size < sizeof sample ? s->size : sizeof sample;
    size_t i;
    s->table->stats.sampled++;
    s->table->stats.hashed_bytes += size;
    if (s->size <= sizeof sample) return epctx_hash(s->data, size, seed);
    for (i = 0; i < blocks; i++) {
        size_t last = s->size - EPCTX__WEIGHT_BLOCK;
        size_t at = i + 1 < blocks ? i * (last / (blocks - 1)) : last;
        memcpy(sample + i * EPCTX__WEIGHT_BLOCK, s->data + at, EPCTX__WEIGHT_BLOCK);
    }
    return epctx_hash(sample, size, seed);
}

/* Folds the halves of a 128-bit product. */
static uint64_t epctx__fold(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 epctx__wide;
    epctx__wide product = (epctx__wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t al = a & UINT32_MAX, ah = a >> 32, bl = b & UINT32_MAX, bh = b >> 32;
    uint64_t low = al * bl, one = ah * bl + (low >> 32), two = al * bh + (one & UINT32_MAX);
    return (two << 32 | (low & UINT32_MAX)) ^ (ah * bh + (one >> 32) + (two >> 32));
#endif
}

/* Mixes whole strides into four lanes: fast, but collisions can be crafted. */
static void epctx__weight_mix(uint64_t lanes[4], const uint8_t *p, size_t size) {
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
    for (; size >= EPCTX__WEIGHT_STRIDE; p += EPCTX__WEIGHT_STRIDE, size -= EPCTX__WEIGHT_STRIDE) {
        a = epctx__fold(epctx__le64(p) ^ EPCTX__P1, epctx__le64(p + 8) ^ a);
        b = epctx__fold(epctx__le64(p + 16) ^ EPCTX__P2, epctx__le64(p + 24) ^ b);
        c = epctx__fold(epctx__le64(p + 32) ^ EPCTX__P3, epctx__le64(p + 40) ^ c);
        d = epctx__fold(epctx__le64(p + 48) ^ EPCTX__P5, epctx__le64(p + 56) ^ d);
    }
    lanes[0] = a;
    lanes[1] = b;
    lanes[2] = c;
    lanes[3] = d;
}

/* Hashes all bytes of `data`, or (NULL) of a place. */
static uint64_t epctx__weight_whole(epctx__weight_search *s, const uint8_t *data, uint32_t index) {
    uint64_t lanes[4] = {EPCTX__P1, EPCTX__P2, EPCTX__P3, EPCTX__P4};
    uint8_t rest[EPCTX__WEIGHT_STRIDE] = {0};
    size_t at, size, tail;
    for (at = 0; at < s->size; at += size) {
        const uint8_t *piece = data + at;
        size = s->size - at < EPCTX__WEIGHT_PIECE ? s->size - at : EPCTX__WEIGHT_PIECE;
        if (data == NULL && !epctx__weight_piece(s, index, at, size, &piece)) return 0;
        epctx__weight_mix(lanes, piece, size);
        tail = size % EPCTX__WEIGHT_STRIDE; /* only at the end */
        memcpy(rest, piece + size - tail, tail);
    }
    epctx__weight_mix(lanes, rest, sizeof rest);
    s->table->stats.hashed_bytes += s->size;
    return epctx__fold(epctx__fold(lanes[0] ^ EPCTX__P4, lanes[1]) ^ EPCTX__P1,
                       epctx__fold(lanes[2] ^ EPCTX__P5, lanes[3]) ^ EPCTX__P2);
}

/* The first difference; `size` if there is none. */
static size_t epctx__first_difference(const uint8_t *a, const uint8_t *b, size_t size) {
    const size_t block = 1024;
    size_t at = 0;
    while (size - at > block && memcmp(a + at, b + at, block) == 0) at += block;
    while (at < size && a[at] == b[at]) at++;
    return at;
}

/* Compares all bytes: 0 when equal, also after a failure. */
static int epctx__weight_compare(epctx__weight_search *s, uint32_t index) {
    size_t most = EPCTX__WEIGHT_FIRST;
    size_t at, size;
    for (at = 0; at < s->size; at += size, most = EPCTX__WEIGHT_PIECE) {
        const uint8_t *piece = NULL;
        size_t equal;
        size = s->size - at < most ? s->size - at : most;
        if (!epctx__weight_piece(s, index, at, size, &piece)) return 0;
        equal = epctx__first_difference(s->data + at, piece, size);
        s->table->stats.compared_bytes += equal < size ? equal + 1 : size;
        if (equal < size) return s->data[at + equal] > piece[equal] ? 1 : -1;
    }
    return 0;
}

/* -- the table -- */

static int epctx__weight_order(void *search, uint32_t index) {
    epctx__weight_search *s = (epctx__weight_search *)search;
    const struct epctx__weight *e = &s->table->entries[index];
    if (s->key != e->key) return s->key > e->key ? 1 : -1;
    if (s->size != e->size) return s->size > e->size ? 1 : -1;
    if (s->kind != e->kind || s->first != e->first)
        return s->kind != e->kind ? (s->kind > e->kind ? 1 : -1) : (s->first ? 1 : -1);
    return s->first ? 0 : epctx__weight_compare(s, index);
}

static epctx__table epctx__weight_table(const epctx_weights *w) {
    epctx__table table;
    table.links = &w->entries->links;
    table.stride = sizeof *w->entries;
    table.heads = w->heads;
    table.capacity = w->capacity * EPCTX__WEIGHT_HEADS;
    table.order_fn = epctx__weight_order;
    return table;
}

static epctx_status epctx__weights_grow(epctx_weights *w, epctx_error *error) {
    const size_t bytes = EPCTX__WEIGHT_HEADS * sizeof *w->heads;
    size_t capacity = w->capacity == 0 ? 64 : w->capacity * 2;
    size_t size = capacity * (sizeof(struct epctx__weight) + bytes);
    epctx_weights former = *w;
    void *memory;
    if (EPCTX__NEVER(w->capacity == EPCTX__WEIGHTS_MOST)) /* 2^31 weights */
        return epctx_fail(error, EPCTX_ERR_LIMIT, "more than %u weights", (uint64_t)w->capacity);
    memory = epctx__alloc(&w->allocator, size);
    if (memory == NULL) {
        return epctx_fail(error, EPCTX_ERR_NOMEM,
                          "out of memory: the weight table needs %u bytes for %u places",
                          (uint64_t)size, (uint64_t)capacity);
    }
    w->entries = (struct epctx__weight *)memory;
    w->heads = (uint32_t *)(void *)(w->entries + capacity);
    w->capacity = capacity;
    memset(w->heads, 0xff, capacity * bytes);
    if (former.entries != NULL) {
        epctx__table table = epctx__weight_table(w);
        memcpy(w->entries, former.entries, w->count * sizeof *w->entries);
        epctx__table_fill(&table, former.heads, former.capacity * EPCTX__WEIGHT_HEADS);
        w->allocator.free_fn(w->allocator.user, former.entries);
    }
    return EPCTX_OK;
}

/* -- adding -- */

/* Finds equal bytes, or the key of a new weight: `key`, `first` and `path`. If the last one's
 * sample was not unique, hashes all bytes first: memory is read fastest in order. */
static epctx_status epctx__weight_find(epctx__weight_search *s, epctx__path *path,
                                       uint32_t *equal) {
    epctx_weights *w = s->table;
    epctx__table table = epctx__weight_table(w);
    bool hashed = w->alike;
    struct epctx__weight *first;
    uint64_t whole = 0;
    if (hashed) {
        whole = epctx__weight_whole(s, s->data, 0);
#if defined(__GNUC__)
        __builtin_prefetch(&w->heads[(whole & EPCTX__TAG) & (table.capacity - 1)]);
#endif
    }
    s->first = true;
    s->key = epctx__weight_sample(s);
    *equal = epctx__table_find(&table, s->key, s, path);
    w->alike = false;
    if (*equal == EPCTX__NO_NODE) return EPCTX_OK;
    first = &w->entries[*equal];
    if (!first->hashed) {
        if (epctx__weight_compare(s, *equal) == 0) return s->status;
        first->whole = epctx__weight_whole(s, NULL, *equal);
        EPCTX__TRY(s->status);
        first->hashed = true;
    }
    w->alike = true;
    if (!hashed) whole = epctx__weight_whole(s, s->data, 0);
    if (whole == first->whole && epctx__weight_compare(s, *equal) == 0) return s->status;
    s->first = false;
    s->key = whole;
    *equal = epctx__table_find(&table, s->key, s, path);
    return s->status;
}

/* A new place at the end. */
static epctx_status epctx__weight_place(const epctx__weight_search *s, uint32_t alignment) {
    epctx_weights *w = s->table;
    epctx_buffer *binary = w->opts.binary;
    struct epctx__weight *e = &w->entries[w->count];
    uint64_t end = binary != NULL ? binary->size - w->start : w->end;
    uint64_t padding = (0 - end) & (alignment - 1);
    if (s->size > UINT64_MAX - end || padding > UINT64_MAX - end - s->size)
        return epctx_fail(s->error, EPCTX_ERR_LIMIT, "the weights have more than 2^64 bytes");
    if (binary != NULL) {
        size_t before = binary->size;
        if (epctx_buffer_append(binary, NULL, (size_t)padding) != EPCTX_OK ||
            epctx_buffer_append(binary, s->data, s->size) != EPCTX_OK) {
            binary->size = before;
            return epctx__nomem(s->error, s->size);
        }
    }
    memset(e, 0, sizeof *e);
    e->offset = end + padding;
    e->size = s->size;
    e->kind = s->kind;
    e->key = s->key;
    e->first = s->first;
    e->next = EPCTX__NO_NODE;
    w->count++;
    w->end = e->offset + e->size;
    w->stats.stored++;
    w->stats.stored_bytes += e->size;
    w->stats.padding += padding;
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_weights_add(epctx_weights *weights, const void *data, size_t size,
                                         uint32_t alignment, uint32_t kind, epctx_weight *out,
                                         epctx_error *error) {
    static const uint8_t nothing[1] = {0};
    const uint32_t mask = alignment > 0 ? alignment - 1 : 0;
    epctx_status full = EPCTX_OK;
    uint32_t equal = EPCTX__NO_NODE, found;
    epctx__weight_search s;
    epctx__path path;
    epctx_error_clear(error);
    memset(&s, 0, sizeof s);
    s.table = weights;
    s.data = size > 0 ? (const uint8_t *)data : nothing;
    s.size = size;
    s.kind = kind;
    s.error = error;
    if (s.data == NULL || (alignment & mask) != 0) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "expected bytes and an alignment that is a power of two, found %s%u",
                          s.data == NULL ? "no bytes and " : "", (uint64_t)alignment);
    }
    if (weights->count == weights->capacity) full = epctx__weights_grow(weights, error);
    if (weights->capacity > 0) EPCTX__TRY(epctx__weight_find(&s, &path, &equal));
    found = equal; /* an equal place serves if its offset fits */
    while (found != EPCTX__NO_NODE && (weights->entries[found].offset & mask) != 0)
        found = weights->entries[found].next;
    if (found == EPCTX__NO_NODE) {
        EPCTX__TRY(full);
        EPCTX__TRY(epctx__weight_place(&s, mask + 1));
        if (equal != EPCTX__NO_NODE) {
            weights->entries[weights->count - 1].next = weights->entries[equal].next;
            weights->entries[equal].next = (uint32_t)weights->count - 1;
        } else {
            epctx__table table = epctx__weight_table(weights);
            epctx__table_add(&table, s.key, &path, (uint32_t)weights->count - 1);
        }
    } else {
        epctx_error_clear(error);
        weights->stats.shared++;
        weights->stats.shared_bytes += size;
    }
    weights->stats.added++;
    weights->stats.added_bytes += size;
    epctx_weights_at(weights, found != EPCTX__NO_NODE ? found : (uint32_t)weights->count - 1, out);
    out->fresh = found == EPCTX__NO_NODE;
    return EPCTX_OK;
}

/* ============================================================
 * >>ep
 *
 * The section has three parts. epctx_graph_hash identifies a graph. epctx_outside_weight_next and
 * epctx_outside_weight_verify read and check the references of a weightless context. The rest is
 * the compile engine, epctx_ep: it turns pieces of a graph into one context binary and one
 * EPContext node per piece.
 *
 * Everything rests on the name and the hash of a graph. epctx_ep_compile passes both to compile_fn
 * for the binary, and the node repeats them in partition_name and notes. The loader hands them to
 * find_fn, so a node gets the graph that was compiled for it or an error.
 *
 * epctx_ep_begin starts a context. epctx_ep_compile adds a piece and copies its output types, which
 * the backend may drop later. epctx_ep_finish first takes the binary, because an embedded one goes
 * into the first node, and then makes the nodes. In a group epctx__ep_share lends the context and
 * the list of its graphs (epctx__known): a graph in that list is not compiled again, and finishing
 * makes only the nodes. A failed piece is not counted, so the next one may follow.
 *
 * A context is released exactly once. epctx_ep_finish clears `build` before it calls finish_fn,
 * which releases the context even when it fails; epctx_ep_end discards what is left, unless a group
 * owns it. What a backend reports is checked: the number
 * of output types, the sign of max_size, an empty binary.
 * ============================================================ */

static epctx_span epctx__span(const void *data, size_t size) {
    epctx_span span;
    span.data = (const uint8_t *)data;
    span.size = size;
    return span;
}

EPCTX_API epctx_status epctx_backend_compatibility(const epctx_backend *backend, char *out,
                                                   size_t capacity, epctx_error *error) {
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

static uint64_t epctx__hash_str(uint64_t h, epctx_str text) {
    return epctx_hash(text.data, text.size, epctx__hash_number(h, text.size));
}

static uint64_t epctx__hash_float(uint64_t h, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return epctx__hash_number(h, bits);
}

static uint64_t epctx__hash_dims(uint64_t h, int32_t elem_type, int32_t rank, const int64_t *dims) {
    int32_t i;
    h = epctx__hash_number(epctx__hash_number(h, (uint64_t)elem_type), (uint64_t)rank);
    for (i = 0; i < rank; i++) h = epctx__hash_number(h, (uint64_t)dims[i]);
    return h;
}

static uint64_t epctx__hash_values(uint64_t h, const epctx_value *values, size_t count) {
    size_t i;
    h = epctx__hash_number(h, count);
    for (i = 0; i < count; i++) {
        h = epctx__hash_str(h, values[i].name);
        h = epctx__hash_dims(h, values[i].elem_type, values[i].rank, values[i].dims);
    }
    return h;
}

static uint64_t epctx__hash_tensor(uint64_t h, const epctx_tensor *tensor) {
    h = epctx__hash_dims(epctx__hash_str(h, tensor->name), tensor->elem_type, tensor->rank,
                         tensor->dims);
    h = epctx_hash(tensor->data, tensor->data != NULL ? tensor->size : 0, h);
    return tensor->extra_hash != 0 ? epctx__hash_number(h, tensor->extra_hash) : h;
}

static uint64_t epctx__hash_attr(uint64_t h, const epctx_attr *attr) {
    size_t i;
    h = epctx__hash_number(epctx__hash_str(h, attr->name), (uint64_t)attr->type);
    h = epctx__hash_float(epctx__hash_number(h, (uint64_t)attr->i), attr->f);
    h = epctx__hash_number(epctx__hash_str(h, attr->s), attr->count);
    for (i = 0; i < attr->count; i++)
        if (attr->type == EPCTX_ATTR_INTS)
            h = epctx__hash_number(h, (uint64_t)attr->ints[i]);
        else if (attr->type == EPCTX_ATTR_FLOATS)
            h = epctx__hash_float(h, attr->floats[i]);
        else if (attr->type == EPCTX_ATTR_STRINGS)
            h = epctx__hash_str(h, attr->strings[i]);
    return attr->t != NULL ? epctx__hash_tensor(h, attr->t) : h;
}

EPCTX_API uint64_t epctx_graph_hash(const epctx_graph *graph) {
    uint64_t h = epctx__hash_number(0, graph->node_count);
    size_t i, k;
    h = epctx__hash_values(h, graph->inputs, graph->input_count);
    h = epctx__hash_values(h, graph->outputs, graph->output_count);
    for (i = 0; i < graph->initializer_count; i++)
        h = epctx__hash_tensor(h, &graph->initializers[i]);
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        h = epctx__hash_str(epctx__hash_str(epctx__hash_str(h, node->op_type), node->domain),
                            node->name);
        h = epctx__hash_number(h, (uint64_t)node->version);
        for (k = 0; k < node->input_count + node->output_count; k++) {
            h = epctx__hash_str(h, k < node->input_count ? node->inputs[k]
                                                         : node->outputs[k - node->input_count]);
        }
        for (k = 0; k < node->attr_count; k++) h = epctx__hash_attr(h, &node->attrs[k]);
        h = node->extra_hash != 0 ? epctx__hash_number(h, node->extra_hash) : h;
    }
    return EPCTX__ALWAYS(h != 0) ? h : 1; /* 0, one hash of 2^64, means "no hash" */
}

#define EPCTX__HASH_KEY "graph_hash="

EPCTX_API uint64_t epctx_notes_hash(epctx_str notes) {
    uint64_t hash = 0;
    if (epctx_str_starts(notes, EPCTX__HASH_KEY)) {
        epctx__str_skip(&notes, sizeof EPCTX__HASH_KEY - 1);
        epctx__str_take_hash(&notes, &hash);
    }
    return hash;
}

/* -- weightless contexts -- */

/* Text after its length and before `end`. */
static bool epctx__ref_text(epctx_str *rest, char end, epctx_str *out) {
    uint64_t size;
    if (!epctx__cut_number(rest, ' ', &size) || size >= rest->size || rest->data[size] != end)
        return false;
    *out = epctx__str(rest->data, (size_t)size);
    epctx__str_skip(rest, out->size + 1);
    return true;
}

EPCTX_API bool epctx_outside_weight_next(epctx_str *rest, epctx_outside_weight *out) {
    epctx_str at = *rest;
    bool sized = epctx__cut_number(&at, ' ', &out->size);
    epctx_str hash = epctx_str_cut(&at, ' ');
    if (!sized || !epctx__str_take_hash(&hash, &out->hash) || hash.size > 0 ||
        !epctx__cut_number(&at, ' ', &out->offset) || !epctx__ref_text(&at, ' ', &out->name) ||
        !epctx__ref_text(&at, '\n', &out->location))
        return false;
    *rest = at;
    return true;
}

EPCTX_API epctx_status epctx_outside_weight_verify(const epctx_outside_weight *ref,
                                                   const epctx_tensor *tensor, const char *file,
                                                   epctx_error *error) {
    bool found = tensor != NULL && tensor->data != NULL;
    uint64_t hash;
    epctx_error_clear(error);
    if (!found || tensor->size != ref->size) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          found ? "source model '%s': initializer '%S' was compiled with %u bytes, "
                                  "found %u: it is another model, compile again"
                                : "source model '%s': initializer '%S' was compiled with %u bytes, "
                                  "found none: it is another model, compile again",
                          file, &ref->name, ref->size, (uint64_t)(found ? tensor->size : 0));
    }
    hash = epctx_hash(tensor->data, tensor->size, 0);
    return hash == ref->hash
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_CONTEXT,
                            "source model '%s': initializer '%S' has hash %x, expected %x as "
                            "compiled: it has changed, compile again",
                            file, &ref->name, hash, ref->hash);
}

/* -- one EP at work -- */

typedef struct epctx__known_graph {
    epctx_str name;
    uint64_t hash;
} epctx__known_graph;

typedef struct epctx__piece {
    const epctx_graph *graph;
    const epctx_value *types; /* of its outputs, from the backend, or NULL */
    epctx_node node;          /* name, inputs, outputs and the EP's own attributes */
} epctx__piece;

/* The graphs of a shared context. */
typedef struct epctx__known {
    epctx_list graphs; /* epctx__known_graph, in the index's arena */
    epctx_map index;   /* name -> position among them */
    int64_t max_size;
} epctx__known;

/* Adds a graph to a shared context unless `found`. A different graph of that name is an error. */
static epctx_status epctx__known_add(epctx__known *known, const epctx__known_graph *graph,
                                     bool *found, epctx_error *error) {
    const epctx__known_graph *graphs = (const epctx__known_graph *)known->graphs.items;
    size_t count = known->graphs.count;
    uint32_t at = epctx_map_get(&known->index, graph->name);
    epctx__known_graph *added;
    epctx_str name = graph->name;
    /* The index keeps removed graphs. */
    *found = at < count && epctx_str_eq(graphs[at].name, name);
    if (*found) {
        return graphs[at].hash == graph->hash
                   ? EPCTX_OK
                   : epctx_fail(error, EPCTX_ERR_ARG,
                                "the shared context has another graph '%S': set "
                                "ep.context_node_name_prefix",
                                &name);
    }
    EPCTX__TRY(epctx__copy(known->index.arena, name, &name.data, error));
    EPCTX__TRY(epctx__map_set(&known->index, name, count, error));
    added = (epctx__known_graph *)epctx_list_add(&known->graphs, known->index.arena, sizeof *added);
    if (added == NULL) return epctx__nomem(error, known->index.arena->missing);
    added->name = name;
    added->hash = graph->hash;
    return EPCTX_OK;
}

/* Limits `asked` to what the backend supports. */
static epctx_status epctx__weightless_agree(const epctx_backend *b, epctx_weightless_support *asked,
                                            epctx_error *error) {
    if (*asked != EPCTX_WEIGHTLESS_NONE && b->weightless == EPCTX_WEIGHTLESS_NONE) {
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                          "%s has no weightless support (ep.enable_weightless): its binary needs "
                          "the weights inside",
                          b->source);
    }
    *asked = *asked < b->weightless ? *asked : b->weightless;
    return EPCTX_OK;
}

/* The first missing member that compiling or loading needs, or NULL. */
static const char *epctx__backend_lacks(const epctx_backend *b, bool compiles, bool loads) {
    const struct {
        const char *name;
        bool used, there;
    } members[] = {{"source", true, b->source != NULL},
                   {"short_name", compiles, b->short_name != NULL},
                   {"sdk_version", compiles, b->sdk_version != NULL},
                   {"hardware_architecture", compiles, b->hardware_architecture != NULL},
                   {"capability_fn", compiles, b->capability_fn != NULL},
                   {"begin_fn", compiles, b->begin_fn != NULL},
                   {"compile_fn", compiles, b->compile_fn != NULL},
                   {"finish_fn", compiles, b->finish_fn != NULL},
                   {"discard_fn", compiles, b->discard_fn != NULL},
                   {"load_fn", loads, b->load_fn != NULL},
                   {"unload_fn", loads, b->unload_fn != NULL},
                   {"find_fn", loads, b->find_fn != NULL},
                   {"info_fn", loads, b->info_fn != NULL}};
    size_t i;
    for (i = 0; i < sizeof members / sizeof *members; i++)
        if (members[i].used && !members[i].there) return members[i].name;
    return NULL;
}

static epctx_status epctx__backend_check(const epctx_backend *b, bool compiles, bool loads,
                                         epctx_error *error) {
    const char *lacks;
    if (b == NULL || b->version != EPCTX_BACKEND_VERSION) {
        return epctx_fail(error, EPCTX_ERR_ARG, "a backend of version %u is expected",
                          (uint64_t)EPCTX_BACKEND_VERSION);
    }
    lacks = epctx__backend_lacks(b, compiles, loads);
    return lacks == NULL ? EPCTX_OK
                         : epctx_fail(error, EPCTX_ERR_ARG, "the backend has no %s", lacks);
}

EPCTX_API epctx_status epctx_fail_no_graph(epctx_error *error, epctx_str name, const void *graphs,
                                           size_t count,
                                           epctx_str (*name_fn)(const void *graphs, size_t index)) {
    char names[200]; /* epctx_fail truncates text to this length */
    epctx_text text = epctx_text_of(names, sizeof names);
    size_t i;
    epctx_text_put(&text, epctx_str_of(count == 0 ? "none" : ""));
    for (i = 0; i < count; i++) {
        const size_t room = text.capacity - text.size;
        epctx_str graph = name_fn(graphs, i);
        const bool fits = graph.size + 12 <= room; /* quotes, comma and "..." take less */
        if (!fits && i > 0) {
            epctx_text_put(&text, epctx_str_of(", ..."));
            break;
        }
        if (!fits) graph.size = room - 12;
        epctx_text_put(&text, epctx_str_of(i > 0 ? ", '" : "'"));
        epctx_text_put(&text, graph);
        epctx_text_put(&text, epctx_str_of(fits ? "'" : "...'"));
    }
    return epctx_fail(error, EPCTX_ERR_CONTEXT, "context binary: expected graph '%S', found %s",
                      &name, names);
}

/* `units` gets the backend's units, or NULL. */
static epctx_status epctx__backend_rules(const epctx_backend *b, const epctx_graph *graph,
                                         const uint8_t *take, epctx_arena *arena, uint32_t **units,
                                         epctx_error *error) {
    size_t i;
    *units = NULL;
    if (b->units_fn == NULL) return EPCTX_OK;
    EPCTX__NEW(*units, uint32_t, graph->node_count, arena, error);
    EPCTX__TRY(b->units_fn(b->self, graph, take, *units, error));
    for (i = 0; i < graph->node_count; i++) {
        if ((*units)[i] > graph->node_count) {
            epctx_fail(error, EPCTX_ERR_BACKEND,
                       "units_fn of %s gave unit %u, expected a number up to %u", b->source,
                       (uint64_t)(*units)[i], (uint64_t)graph->node_count);
            epctx_blame(error, NULL, &graph->nodes[i].name, NULL);
            return EPCTX_ERR_BACKEND;
        }
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_backend_partition(const epctx_backend *backend,
                                               const epctx_graph *graph, const uint8_t *take,
                                               epctx_arena *arena, epctx_partition **partitions,
                                               size_t *count, epctx_error *error) {
    uint32_t *units;
    epctx_error_clear(error);
    *partitions = NULL;
    *count = 0;
    EPCTX__TRY(epctx__backend_rules(backend, graph, take, arena, &units, error));
    return epctx__partition(graph, take, units, backend->most_nodes, arena, partitions, count, NULL,
                            error);
}

/* epctx_ep_begin without the context. */
static epctx_status epctx__ep_open(epctx_ep *ep, const epctx_backend *backend,
                                   const epctx_ep_opts *opts, size_t room, epctx_arena *arena,
                                   epctx_error *error) {
    epctx_allocator in_arena = epctx__in_arena(arena);
    memset(ep, 0, sizeof *ep);
    EPCTX__TRY(epctx__backend_check(backend, true, false, error));
    ep->backend = backend;
    ep->opts = *opts;
    ep->arena = arena;
    ep->room = room;
    EPCTX__TRY(epctx__weightless_agree(backend, &ep->opts.weightless, error));
    epctx_buffer_init(&ep->binary, opts->embed ? &in_arena : opts->allocator);
    EPCTX__NEW(ep->pieces, epctx__piece, room, arena, error);
    EPCTX__NEW(ep->graphs, epctx__known_graph, room, arena, error);
    return EPCTX_OK;
}

/* From here on `ep` compiles into a group's context. */
static void epctx__ep_share(epctx_ep *ep, void *build, epctx__known *known) {
    ep->build = build;
    ep->shared = known;
    ep->max_size = known->max_size;
}

static epctx_status epctx__build_begin(const epctx_backend *b, const epctx_build_opts *opts,
                                       void **build, epctx_error *error) {
    epctx_build_opts how = *opts;
    epctx_status status = EPCTX_OK;
    void *made = NULL;
    *build = NULL;
    EPCTX__TRY(epctx__weightless_agree(b, &how.weightless, error));
    EPCTX__TRY(b->begin_fn(b->self, &made, error));
    if (b->setup_fn != NULL) status = b->setup_fn(b->self, made, &how, error);
    if (status != EPCTX_OK) {
        b->discard_fn(b->self, made);
        return status;
    }
    *build = made;
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_ep_begin(epctx_ep *ep, const epctx_backend *backend,
                                      const epctx_ep_opts *opts, size_t room, epctx_arena *arena,
                                      epctx_error *error) {
    epctx_build_opts how;
    epctx_error_clear(error);
    EPCTX__TRY(epctx__ep_open(ep, backend, opts, room, arena, error));
    how.hooks = opts->hooks;
    how.prepare_only = opts->prepare_only;
    how.weightless = opts->weightless;
    return epctx__build_begin(backend, &how, &ep->build, error);
}

/* "<prefix><source>_<model hash>_<index>": unique in the model and across models. */
static epctx_status epctx__ep_name(epctx_ep *ep, epctx_str *name, epctx_error *error) {
    const char *prefix = ep->opts.name_prefix != NULL ? ep->opts.name_prefix : "";
    const char *source = ep->backend->source;
    size_t capacity = strlen(prefix) + strlen(source) + 48;
    epctx_text text;
    char *memory;
    EPCTX__NEW(memory, char, capacity, ep->arena, error);
    text = epctx_text_of(memory, capacity);
    epctx_text_put(&text, epctx_str_of(prefix));
    epctx_text_put(&text, epctx_str_of(source));
    epctx_text_put_format(&text, "_%x_%u", ep->opts.model_hash, (uint64_t)ep->count);
    *name = epctx_text_str(&text);
    return EPCTX_OK;
}

/* Copies the result of types_fn, which is invalid after finish. */
static epctx_status epctx__ep_types(epctx_ep *ep, epctx_str name, epctx__piece *piece,
                                    epctx_error *error) {
    const epctx_value *found = NULL;
    epctx_value *copy;
    size_t count = 0;
    size_t i;
    if (ep->backend->types_fn == NULL) return EPCTX_OK;
    EPCTX__TRY(ep->backend->types_fn(ep->backend->self, ep->build, name, &found, &count, error));
    if (count != piece->graph->output_count) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "types_fn gave %u outputs, expected %u",
                          (uint64_t)count, (uint64_t)piece->graph->output_count);
    }
    EPCTX__NEW(copy, epctx_value, count, ep->arena, error);
    for (i = 0; i < count; i++) {
        size_t rank = found[i].rank > 0 ? (size_t)found[i].rank : 0;
        int64_t *dims;
        EPCTX__NEW(dims, int64_t, rank, ep->arena, error);
        copy[i] = found[i];
        copy[i].name = piece->graph->outputs[i].name;
        if (rank > 0) memcpy(dims, found[i].dims, rank * sizeof *dims);
        copy[i].dims = dims;
    }
    piece->types = copy;
    return EPCTX_OK;
}

/* Compiles a graph unless the shared context has it. */
static epctx_status epctx__ep_graph(epctx_ep *ep, const epctx_graph *graph,
                                    const epctx__known_graph *id, epctx_error *error) {
    const epctx_backend *b = ep->backend;
    bool found = false;
    epctx_status status;
    if (ep->shared != NULL) {
        /* Before compiling: a compiled but unknown graph would be compiled again. */
        EPCTX__TRY(epctx__known_add(ep->shared, id, &found, error));
        if (found) return EPCTX_OK;
    }
    status = b->compile_fn(b->self, ep->build, graph, id->name, id->hash, error);
    if (status != EPCTX_OK && ep->shared != NULL) ep->shared->graphs.count--;
    return status;
}

/* The node of a graph: its boundary, with the initializers if the EP wants them. */
static epctx_status epctx__ep_boundary(epctx_ep *ep, const epctx_graph *graph, epctx_node *node,
                                       epctx_error *error) {
    const size_t weights = ep->backend->weight_inputs ? graph->initializer_count : 0;
    epctx_str *inputs, *outputs;
    size_t i;
    EPCTX__NEW(inputs, epctx_str, graph->input_count + weights, ep->arena, error);
    EPCTX__NEW(outputs, epctx_str, graph->output_count, ep->arena, error);
    for (i = 0; i < graph->input_count; i++) inputs[i] = graph->inputs[i].name;
    for (i = 0; i < weights; i++) inputs[graph->input_count + i] = graph->initializers[i].name;
    for (i = 0; i < graph->output_count; i++) outputs[i] = graph->outputs[i].name;
    node->inputs = inputs;
    node->input_count = graph->input_count + weights;
    node->outputs = outputs;
    node->output_count = graph->output_count;
    return EPCTX_OK;
}

/* Attributes from node_fn. */
static epctx_status epctx__own_attrs(const epctx_ep *ep, const epctx_node *node,
                                     epctx_error *error) {
    epctx_status status = EPCTX_ERR_BACKEND;
    if (epctx_node_attr(node, EPCTX_WEIGHTS_ATTR) != NULL) {
        epctx_fail(error, status, "epctx makes this one: an attribute of the EP's own is expected");
        epctx_blame(error, NULL, NULL, EPCTX_WEIGHTS_ATTR);
    } else {
        status = epctx__own_attrs_check(node->attrs, node->attr_count, ep->arena, error);
    }
    if (status != EPCTX_OK) epctx__prefix(error, NULL, "node_fn");
    return status;
}

/* Inputs and outputs from node_fn are values of the graph. */
static epctx_status epctx__own_values(epctx_ep *ep, const epctx_graph *graph,
                                      const epctx_node *node, epctx_error *error) {
    const size_t weights = ep->backend->weight_inputs ? graph->initializer_count : 0;
    epctx_map values; /* -> 1: it may be an input; 2: an output; 0: an output that is there */
    size_t i;
    epctx_map_init(&values, ep->arena);
    for (i = 0; i < graph->input_count; i++)
        EPCTX__TRY(epctx__map_set(&values, graph->inputs[i].name, 1, error));
    for (i = 0; i < weights; i++)
        EPCTX__TRY(epctx__map_set(&values, graph->initializers[i].name, 1, error));
    for (i = 0; i < node->input_count; i++) {
        if (epctx_map_get(&values, node->inputs[i]) != 1) {
            return epctx_fail(error, EPCTX_ERR_BACKEND,
                              "node_fn gave input %u, '%S': one of the %u inputs and %u "
                              "weight inputs of the partition is expected",
                              (uint64_t)i, &node->inputs[i], (uint64_t)graph->input_count,
                              (uint64_t)weights);
        }
    }
    for (i = 0; i < graph->output_count; i++)
        EPCTX__TRY(epctx__map_set(&values, graph->outputs[i].name, 2, error));
    for (i = 0; i < node->output_count; i++) {
        if (epctx_map_get(&values, node->outputs[i]) != 2) {
            return epctx_fail(error, EPCTX_ERR_BACKEND,
                              "node_fn gave output %u, '%S': the %u outputs of the partition, each "
                              "once, are expected",
                              (uint64_t)i, &node->outputs[i], (uint64_t)graph->output_count);
        }
        EPCTX__TRY(epctx__map_set(&values, node->outputs[i], 0, error));
    }
    return node->output_count == graph->output_count
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_BACKEND, "node_fn gave %u outputs, expected %u",
                            (uint64_t)node->output_count, (uint64_t)graph->output_count);
}

/* A name from node_fn is of no other piece, and finds its graph. */
static epctx_status epctx__own_name(const epctx_ep *ep, const epctx_node *node, epctx_str name,
                                    epctx_error *error) {
    size_t i;
    if (node->name.size == 0 || node->name.data == NULL)
        return epctx_fail(error, EPCTX_ERR_BACKEND, "node_fn gave no name, one is expected");
    for (i = 0; i < ep->count; i++) {
        if (epctx_str_eq(node->name, ep->pieces[i].node.name)) {
            return epctx_fail(error, EPCTX_ERR_BACKEND,
                              "node_fn gave the name '%S', which partition '%S' has: each needs "
                              "its own",
                              &node->name, &ep->graphs[i].name);
        }
    }
    if (!epctx_str_eq(node->name, name) &&
        epctx_profile_of(epctx_str_of(ep->backend->source))->key == EPCTX_KEY_NODE_NAME) {
        return epctx_fail(error, EPCTX_ERR_BACKEND,
                          "node_fn gave the name '%S', expected '%S': %s finds graphs by names of "
                          "nodes",
                          &node->name, &name, ep->backend->source);
    }
    return EPCTX_OK;
}

/* The node as the backend wants it. */
static epctx_status epctx__ep_own(epctx_ep *ep, epctx__piece *piece, epctx_str name,
                                  epctx_error *error) {
    const epctx_backend *b = ep->backend;
    const epctx_graph *graph = piece->graph;
    epctx_node *node = &piece->node;
    epctx_status status;
    memset(node, 0, sizeof *node);
    node->name = name;
    EPCTX__TRY(epctx__ep_boundary(ep, graph, node, error));
    if (b->node_fn == NULL) return EPCTX_OK;
    EPCTX__TRY(b->node_fn(b->self, ep->build, graph, ep->arena, node, error));
    if ((node->input_count > 0 && node->inputs == NULL) ||
        (node->output_count > 0 && node->outputs == NULL) ||
        (node->attr_count > 0 && node->attrs == NULL)) {
        status = epctx_fail(error, EPCTX_ERR_BACKEND,
                            "node_fn gave %u inputs, %u outputs and %u attributes, and no list of "
                            "some",
                            (uint64_t)node->input_count, (uint64_t)node->output_count,
                            (uint64_t)node->attr_count);
    } else {
        status = epctx__own_name(ep, node, name, error);
        if (status == EPCTX_OK) status = epctx__own_values(ep, graph, node, error);
        if (status == EPCTX_OK) status = epctx__own_attrs(ep, node, error);
    }
    epctx_blame(error, NULL, &node->name, NULL);
    return status;
}

/* Compiles the next piece and asks for its types, its max_size and its node. */
static epctx_status epctx__ep_piece(epctx_ep *ep, epctx__piece *piece, const epctx__known_graph *id,
                                    epctx_error *error) {
    const epctx_backend *b = ep->backend;
    int64_t bytes = 0;
    EPCTX__TRY(epctx__ep_graph(ep, piece->graph, id, error));
    EPCTX__TRY(epctx__ep_types(ep, id->name, piece, error));
    if (b->max_size_fn != NULL)
        EPCTX__TRY(b->max_size_fn(b->self, ep->build, id->name, &bytes, error));
    if (bytes < 0) return epctx_fail(error, EPCTX_ERR_BACKEND, "max_size_fn gave %d bytes", bytes);
    EPCTX__TRY(epctx__ep_own(ep, piece, id->name, error));
    ep->max_size = bytes > ep->max_size ? bytes : ep->max_size;
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_ep_compile(epctx_ep *ep, const epctx_graph *piece,
                                        epctx_error *error) {
    epctx__known_graph *id;
    epctx_status status;
    epctx_error_clear(error);
    if (ep->build == NULL)
        return epctx_fail(error, EPCTX_ERR_ARG, "there is no context under construction");
    if (ep->count >= ep->room)
        return epctx_fail(error, EPCTX_ERR_ARG, "there is room for %u pieces", (uint64_t)ep->room);
    ep->pieces[ep->count].graph = piece;
    id = &ep->graphs[ep->count];
    id->hash = epctx_graph_hash(piece);
    EPCTX__TRY(epctx_cancelled(ep->opts.hooks, error));
    EPCTX__TRY(epctx__ep_name(ep, &id->name, error));
    status = epctx__ep_piece(ep, &ep->pieces[ep->count], id, error);
    if (status != EPCTX_OK) {
        epctx_fail(error, status, "%s", epctx_status_text(status));
        epctx__prefix(error, "partition", id->name.data);
        return status;
    }
    ep->count++;
    epctx__progress(ep->opts.hooks, "compile", ep->count, ep->room);
    return EPCTX_OK;
}

/* Does this initializer stay in the source model? */
static bool epctx__stays_outside(const epctx_tensor *t, epctx_weightless_support weightless) {
    return t->data != NULL && t->size > 0 &&
           (weightless == EPCTX_WEIGHTLESS_ALL ||
            (weightless == EPCTX_WEIGHTLESS_EXTERNAL_ONLY && t->location.size > 0));
}

static void epctx__ref_put_text(epctx_text *text, epctx_str part, char end) {
    epctx_text_put_format(text, "%u ", (uint64_t)part.size);
    epctx_text_put(text, part);
    epctx_text_put_char(text, end);
}

/* The attribute that names a piece's weights; empty if none is outside. */
static epctx_status epctx__ep_weights(epctx_ep *ep, const epctx_graph *piece, epctx_str *out,
                                      epctx_error *error) {
    const size_t numbers = 5 * 21 + 20; /* most bytes of a line without names */
    size_t capacity = 0;
    size_t i;
    epctx_text text;
    char *memory;
    *out = epctx_str_of(NULL);
    for (i = 0; i < piece->initializer_count; i++) {
        const epctx_tensor *t = &piece->initializers[i];
        if (epctx__stays_outside(t, ep->opts.weightless))
            capacity += numbers + t->name.size + t->location.size;
    }
    if (capacity == 0) return EPCTX_OK;
    EPCTX__NEW(memory, char, capacity, ep->arena, error);
    text = epctx_text_of(memory, capacity);
    for (i = 0; i < piece->initializer_count; i++) {
        const epctx_tensor *t = &piece->initializers[i];
        if (epctx__stays_outside(t, ep->opts.weightless)) {
            epctx_text_put_format(&text, "%u ", (uint64_t)t->size);
            epctx__text_put_hex(&text, epctx_hash(t->data, t->size, 0), 16);
            epctx_text_put_format(&text, " %u ", t->offset);
            epctx__ref_put_text(&text, t->name, ' ');
            epctx__ref_put_text(&text, t->location, '\n');
        }
    }
    *out = epctx_text_str(&text);
    return EPCTX_OK;
}

/* The EPContext node of a piece. The EP's own attributes come last. */
static epctx_status epctx__ep_node(epctx_ep *ep, size_t index, epctx_node *node,
                                   epctx_error *error) {
    const size_t notes_size = sizeof EPCTX__HASH_KEY + 16;
    const epctx__piece *piece = &ep->pieces[index];
    const epctx_node *own = &piece->node;
    epctx_epnode out = epctx_epnode_default();
    epctx_attr *attrs;
    epctx_str weights;
    epctx_text notes;
    char *memory;
    if (own->attr_count > SIZE_MAX - EPCTX_EPNODE_ATTR_COUNT - 1)
        return epctx__nomem(error, SIZE_MAX);
    EPCTX__NEW(attrs, epctx_attr, EPCTX_EPNODE_ATTR_COUNT + 1 + own->attr_count, ep->arena, error);
    EPCTX__NEW(memory, char, notes_size, ep->arena, error);
    EPCTX__TRY(epctx__ep_weights(ep, piece->graph, &weights, error));
    notes = epctx_text_of(memory, notes_size);
    epctx_text_put(&notes, epctx_str_of(EPCTX__HASH_KEY));
    epctx__text_put_hex(&notes, ep->graphs[index].hash, 16);
    out.present = 1u << EPCTX_EPNODE_MAIN_CONTEXT | 1u << EPCTX_EPNODE_EMBED_MODE |
                  1u << EPCTX_EPNODE_EP_SDK_VERSION | 1u << EPCTX_EPNODE_HARDWARE_ARCHITECTURE |
                  1u << EPCTX_EPNODE_PARTITION_NAME | 1u << EPCTX_EPNODE_SOURCE |
                  1u << EPCTX_EPNODE_NOTES;
    out.main_context = index == 0;
    out.embed_mode = ep->opts.embed;
    out.ep_sdk_version = epctx_str_of(ep->backend->sdk_version);
    out.hardware_architecture = epctx_str_of(ep->backend->hardware_architecture);
    out.partition_name = ep->graphs[index].name;
    out.source = epctx_str_of(ep->backend->source);
    out.notes = epctx_text_str(&notes);
    if (index == 0) {
        out.present |= 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT;
        out.ep_cache_context = epctx_str_of(ep->opts.binary);
        if (ep->opts.embed) out.ep_cache_context = epctx__str(ep->binary.data, ep->binary.size);
    }
    if (ep->backend->max_size_fn != NULL) {
        out.present |= 1u << EPCTX_EPNODE_MAX_SIZE;
        out.max_size = ep->max_size;
    }
    if (weights.size > 0) out.onnx_model_filename = epctx_str_of(ep->opts.source_model);
    node->name = own->name;
    node->op_type = epctx_str_of(EPCTX_OP_TYPE);
    node->domain = epctx_str_of(EPCTX_DOMAIN);
    node->version = 1;
    node->inputs = own->inputs;
    node->input_count = own->input_count;
    node->outputs = own->outputs;
    node->output_count = own->output_count;
    node->attrs = attrs;
    node->attr_count = epctx_epnode_attrs(&out, attrs);
    if (weights.size > 0) {
        epctx_attr *attr = &attrs[node->attr_count++];
        attr->name = epctx_str_of(EPCTX_WEIGHTS_ATTR);
        attr->type = EPCTX_ATTR_STRING;
        attr->s = weights;
    }
    if (own->attr_count > 0) /* memcpy takes no NULL */
        memcpy(attrs + node->attr_count, own->attrs, own->attr_count * sizeof *attrs);
    node->attr_count += own->attr_count;
    return EPCTX_OK;
}

/* Finishes a context. If it has graphs, its binary must not be empty: a backend that forgets to
 * write reports no error. */
static epctx_status epctx__build_finish(const epctx_backend *b, void *build, epctx_buffer *out,
                                        size_t graphs, epctx_error *error) {
    EPCTX__TRY(b->finish_fn(b->self, build, out, error));
    if (out->size > 0 || graphs == 0) return EPCTX_OK;
    return epctx_fail(error, EPCTX_ERR_BACKEND, "finish_fn of %s makes an empty binary", b->source);
}

EPCTX_API epctx_status epctx_ep_finish(epctx_ep *ep, epctx_error *error) {
    void *build = ep->build;
    epctx_status status = EPCTX_OK;
    epctx_node *nodes;
    size_t i;
    epctx_error_clear(error);
    if (build == NULL)
        return epctx_fail(error, EPCTX_ERR_ARG, "there is no context under construction");
    EPCTX__TRY(epctx_cancelled(ep->opts.hooks, error));
    if (ep->shared == NULL) { /* else others follow */
        ep->build = NULL;
        status = epctx__build_finish(ep->backend, build, &ep->binary, ep->count, error);
    }
    if (status != EPCTX_OK) {
        return epctx_fail(error, status, "the context of %s cannot be made: %s",
                          ep->backend->source, epctx_status_text(status));
    }
    EPCTX__NEW(nodes, epctx_node, ep->count, ep->arena, error);
    for (i = 0; i < ep->count; i++) EPCTX__TRY(epctx__ep_node(ep, i, &nodes[i], error));
    ep->nodes = nodes;
    return EPCTX_OK;
}

EPCTX_API const epctx_node *epctx_ep_context_nodes(const epctx_ep *ep, size_t *count) {
    *count = ep->nodes != NULL ? ep->count : 0;
    return ep->nodes;
}

EPCTX_API epctx_span epctx_ep_binary(const epctx_ep *ep) {
    return epctx__span(ep->binary.data, ep->binary.size);
}

/* Calls load_fn. Success without a context is a failure, too. */
static epctx_status epctx__context_load(const epctx_backend *b, const epctx_load_in *in,
                                        void **context, epctx_error *error) {
    epctx_status status = b->load_fn(b->self, in, context, error);
    if (status == EPCTX_OK && *context == NULL)
        status = epctx_fail(error, EPCTX_ERR_BACKEND, "load_fn sets no context");
    if (status != EPCTX_OK) *context = NULL;
    return status;
}

static epctx_status epctx__verify_binary(const epctx_backend *b, epctx_span binary,
                                         const epctx__known_graph *graphs, size_t count,
                                         epctx_error *error) {
    epctx_epnode node = epctx_epnode_default();
    epctx_node record;
    epctx_load_in in;
    void *context = NULL;
    void *graph;
    size_t i;
    epctx_status status = EPCTX_OK;
    memset(&record, 0, sizeof record);
    memset(&in, 0, sizeof in);
    node.source = epctx_str_of(b->source);
    record.op_type = epctx_str_of(EPCTX_OP_TYPE);
    record.domain = epctx_str_of(EPCTX_DOMAIN);
    in.binary = binary;
    in.path = "";
    in.node = &node;
    in.record = &record;
    in.first = true;
    EPCTX__TRY(epctx__context_load(b, &in, &context, error));
    for (i = 0; status == EPCTX_OK && i < count; i++)
        status = b->find_fn(b->self, context, graphs[i].name, graphs[i].hash, &graph, error);
    b->unload_fn(b->self, context);
    return status;
}

/* A group's context, lent to each of its sessions. */
typedef struct epctx__lent {
    void *build;
    epctx__known *known;
} epctx__lent;

/* What there is to compile. */
typedef struct epctx__job {
    const epctx_backend *backend;
    const epctx_ep_opts *opts;
    const epctx__lent *lent; /* NULL: a context of its own, whose binary is in the result */
    const epctx_graph *const *pieces;
    size_t count;
    bool verify; /* a context of its own: load it and find every graph */
} epctx__job;

/* The one way to a context: of a model alone, of a session of a group with its model or without.
 * The caller ends `ep`, also after a failure. */
static epctx_status epctx__ep_run(epctx_ep *ep, const epctx__job *job, epctx_arena *arena,
                                  epctx_error *error) {
    size_t i;
    if (job->lent == NULL) {
        EPCTX__TRY(epctx_ep_begin(ep, job->backend, job->opts, job->count, arena, error));
    } else {
        EPCTX__TRY(epctx__ep_open(ep, job->backend, job->opts, job->count, arena, error));
        epctx__ep_share(ep, job->lent->build, job->lent->known);
    }
    for (i = 0; i < job->count; i++) EPCTX__TRY(epctx_ep_compile(ep, job->pieces[i], error));
    EPCTX__TRY(epctx_ep_finish(ep, error));
    return job->verify && job->lent == NULL
               ? epctx__verify_binary(job->backend, epctx_ep_binary(ep), ep->graphs, ep->count,
                                      error)
               : EPCTX_OK;
}

EPCTX_API void epctx_ep_end(epctx_ep *ep) {
    if (ep->build != NULL && ep->shared == NULL)
        ep->backend->discard_fn(ep->backend->self, ep->build);
    epctx_buffer_free(&ep->binary);
    memset(ep, 0, sizeof *ep);
}

/* -- a context binary, loaded: for one session (>>load) or for those of a workspace (>>share) -- */

/* A context binary in a file. */
typedef struct epctx__binary_file {
    const epctx_io *io;
    epctx_str folder, name; /* as for epctx_path_find */
    uint32_t path_flags;
} epctx__binary_file;

typedef struct epctx__names {
    char path[EPCTX_PATH_MAX];  /* canonical; empty: no such file */
    char alias[EPCTX_PATH_MAX]; /* empty: no such folder */
} epctx__names;

/* Internal flag: the io has the binary by name, without a folder. */
#define EPCTX__PATH_BARE 0x40000000u

/* A context binary that a node has or names. */
typedef struct epctx__wanted {
    epctx__binary_file file;      /* no name: embedded */
    const char *path, *alias;     /* of epctx__names */
    epctx_span payload;           /* not empty: the embedded context */
    bool changes;                 /* `payload` may change: it is copied */
    uint64_t size;                /* expected; 0: any */
    const epctx_profile *profile; /* of its EP */
    epctx_load_in in;             /* for load_fn, but for bytes, path and file */
} epctx__wanted;

/* A context binary that is loaded. All zero: nothing to release. */
typedef struct epctx__ready {
    struct epctx__ready *next; /* of one session: the one loaded before it */
    const epctx_io *io;        /* of `mapping`; NULL: none */
    epctx_mapping mapping;
    void *copy;    /* of an embedded payload, or NULL */
    uint64_t size; /* of the binary */
    void *context;
} epctx__ready;

/* Does this io take a name for a path in the file system? Then a name from a model must not lead
 * out of its folder. */
static bool epctx__opens_files(const epctx_io *io) {
    const epctx_io *files = epctx_io_files();
    return files != NULL &&
           (io->map_fn == files->map_fn || io->map_fn == epctx_io_private()->map_fn);
}

/* Has it a path that the backend can open, too? */
static bool epctx__binary_is_file(const epctx__binary_file *binary) {
    return (binary->path_flags & EPCTX__PATH_BARE) == 0 && epctx__opens_files(binary->io);
}

static epctx_status epctx__names_find(const epctx__binary_file *binary, epctx__names *place,
                                      epctx_error *error) {
    const epctx_io *io = binary->io;
    char folder[EPCTX_PATH_MAX];
    epctx_str parts[3];
    place->path[0] = place->alias[0] = '\0';
    if (io == NULL) return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    if (epctx__opens_files(io)) EPCTX__TRY(epctx_path_check(binary->name, error));
    if ((binary->path_flags & EPCTX__PATH_BARE) != 0) {
        if (binary->name.size == 0 || memchr(binary->name.data, '\0', binary->name.size) != NULL) {
            return epctx_fail(error, EPCTX_ERR_PATH,
                              "buffer '%S' cannot be asked for: a name without NUL is expected",
                              &binary->name);
        }
        return epctx__path_join(place->alias, EPCTX_PATH_MAX, &binary->name, 1, error);
    }
    parts[0] = binary->folder.size > 0 ? binary->folder : epctx_str_of(".");
    if (epctx__path_join(folder, sizeof folder, parts, 1, NULL) == EPCTX_OK &&
        io->canonical_fn(io->user, folder, place->path, EPCTX_PATH_MAX, NULL) == EPCTX_OK) {
        parts[0] = epctx_str_of(place->path);
        parts[1] = epctx_str_of("/");
        parts[2] = binary->name;
        EPCTX__TRY(epctx__path_join(place->alias, EPCTX_PATH_MAX, parts, 3, error));
    }
    if (epctx_path_find(io, binary->folder, binary->name, binary->path_flags, place->path,
                        EPCTX_PATH_MAX, NULL) != EPCTX_OK)
        place->path[0] = '\0';
    return EPCTX_OK;
}

/* `path`: canonical, or the name that the io knows. */
static epctx_status epctx__binary_read(const epctx__binary_file *binary, epctx_mapping *out,
                                       char path[EPCTX_PATH_MAX], epctx_error *error) {
    const epctx_io *io = binary->io;
    if ((binary->path_flags & EPCTX__PATH_BARE) == 0) {
        uint32_t copy = (binary->path_flags & EPCTX_PATH_IN_PLACE) == 0 ? EPCTX__PATH_COPY : 0;
        return epctx_path_map(io, binary->folder, binary->name, binary->path_flags | copy, out,
                              path, error);
    }
    /* epctx__names_find did that, too */
    (void)epctx__path_join(path, EPCTX_PATH_MAX, &binary->name, 1, error);
    EPCTX__TRY(io->map_fn == epctx__buf_map
                   ? epctx__buf_take(io->user, path, out, error) /* no path: as it stands */
                   : io->map_fn(io->user, NULL, path, false, out, error));
    if (out->size == 0 || out->data == NULL) {
        io->unmap_fn(io->user, out);
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "'%S' is empty", &binary->name);
    }
    return EPCTX_OK;
}

/* What load_fn gets: the bytes, or the checked file of a backend that opens it itself. */
static epctx_status epctx__ready_read(epctx__ready *opened, const epctx_backend *b,
                                      const epctx__wanted *binary, const epctx_allocator *a,
                                      char path[EPCTX_PATH_MAX], epctx_load_in *in,
                                      epctx_error *error) {
    const epctx__binary_file *file = &binary->file;
    const bool is_file = binary->payload.size == 0 && epctx__binary_is_file(file);
    *in = binary->in;
    in->path = is_file ? path : "";
    in->binary = binary->payload;
    if (is_file && b->opens_path) {
        EPCTX__TRY(epctx_path_find(file->io, file->folder, file->name, file->path_flags, path,
                                   EPCTX_PATH_MAX, error));
        EPCTX__TRY(file->io->stat_fn(file->io->user, path, &in->file, error));
    } else if (binary->payload.size == 0) {
        EPCTX__TRY(epctx__binary_read(file, &opened->mapping, path, error));
        opened->io = file->io;
        in->binary = epctx__span(opened->mapping.data, opened->mapping.size);
        if (is_file) in->file = opened->mapping.info;
    } else if (binary->changes) {
        opened->copy = a->alloc_fn(a->user, in->binary.size);
        if (opened->copy == NULL) return epctx__nomem(error, in->binary.size);
        memcpy(opened->copy, in->binary.data, in->binary.size);
        in->binary.data = (const uint8_t *)opened->copy;
    }
    opened->size = in->binary.data != NULL ? in->binary.size : in->file.size;
    return binary->size == 0 || binary->size == opened->size
               ? EPCTX_OK
               : epctx__other_binary(file->name, false, opened->size, binary->size, error);
}

/* A file that was replaced or written while the backend opened it may not be the one checked. */
static epctx_status epctx__ready_same(const epctx_io *io, const epctx_load_in *in,
                                      epctx_error *error) {
    epctx_file_info now;
    EPCTX__TRY(io->stat_fn(io->user, in->path, &now, error));
    return epctx_file_same(&in->file, &now)
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_CHANGED,
                            "changed while it was opened: it had %u bytes, and has %u",
                            in->file.size, now.size);
}

/* Loads a binary from node or file. Also after a failure, epctx__ready_close releases it. */
static epctx_status epctx__ready_load(epctx__ready *opened, const epctx_backend *b,
                                      const epctx__wanted *binary, const epctx_allocator *a,
                                      epctx_error *error) {
    char path[EPCTX_PATH_MAX];
    epctx_load_in in;
    epctx_status status;
    EPCTX__TRY(epctx__ready_read(opened, b, binary, a, path, &in, error));
    /* What is surely no context never comes before the EP's own code. */
    status = in.binary.data != NULL ? epctx__refuse_foreign(binary->profile, in.binary, error)
                                    : EPCTX_OK;
    if (status == EPCTX_OK) status = epctx__context_load(b, &in, &opened->context, error);
    if (status == EPCTX_OK && in.binary.data == NULL)
        status = epctx__ready_same(binary->file.io, &in, error);
    if (status != EPCTX_OK && binary->payload.size == 0)
        epctx__prefix(error, "binary", binary->path[0] != '\0' ? binary->path : binary->alias);
    return status;
}

static void epctx__ready_close(epctx__ready *opened, const epctx_backend *b,
                               const epctx_allocator *a) {
    if (opened->context != NULL) b->unload_fn(b->self, opened->context);
    if (opened->io != NULL) opened->io->unmap_fn(opened->io->user, &opened->mapping);
    if (opened->copy != NULL) a->free_fn(a->user, opened->copy);
}

/* Looks up the graph in a context. */
static epctx_status epctx__ready_ask(const epctx__ready *opened, const epctx_backend *b,
                                     epctx_str key, uint64_t hash, epctx_bound *out,
                                     epctx_error *error) {
    epctx_status status;
    out->graph = NULL;
    status = b->find_fn(b->self, opened->context, key, hash, &out->graph, error);
    if (status == EPCTX_OK && out->graph == NULL)
        status = epctx_fail(error, EPCTX_ERR_BACKEND, "find_fn sets no graph");
    return status == EPCTX_OK ? b->info_fn(b->self, out->graph, &out->info, error) : status;
}

/* ============================================================
 * >>preflight
 *
 * The outputs of a session are entries of a commit that never runs: adding a file to it is what
 * checks its folder, its name and whether it may be replaced. Two more questions are asked of each:
 * whether it is a file that the session reads, and whether a file can be created in its folder.
 * ============================================================ */

static epctx_overwrite epctx__overwrite(bool allowed) {
    return allowed ? EPCTX_OVERWRITE_REPLACE : EPCTX_OVERWRITE_FAIL;
}

static void epctx__output_one(epctx_output_file *file, const char *path, const char *name,
                              const epctx_span *bytes) {
    file->path = path;
    file->name = name;
    file->parts = bytes;
    file->part_count = 1;
    file->size = bytes->size;
}

typedef struct epctx__preflight {
    const epctx_preflight_in *in;
    epctx_commit commit; /* checks the outputs; never run */
    epctx_str folder;    /* prefix of their paths, except for a model named by the caller */
    epctx_overwrite overwrite;
    bool given;  /* the next output is the model named by the caller */
    bool joined; /* the next output is the group's binary, which may exist */
    epctx_error *error;
} epctx__preflight;

/* No two outputs are one file, and none is an input. */
static epctx_status epctx__preflight_clash(epctx__preflight *p, const epctx__commit_file *file) {
    const epctx_preflight_in *in = p->in;
    const epctx_io *io = p->commit.io;
    const epctx__commit_file *other;
    char real[EPCTX_PATH_MAX];
    size_t i;
    for (other = p->commit.files; other != NULL; other = other->next) {
        if (other != file && strcmp(other->real, file->real) == 0) {
            return epctx_fail(p->error, EPCTX_ERR_PATH,
                              "two outputs would be this file: change one of the names");
        }
    }
    for (i = 0; i <= in->input_count; i++) {
        const char *input = i < in->input_count ? in->inputs[i] : in->model_path;
        if (input != NULL && input[0] != '\0' &&
            io->canonical_fn(io->user, input, real, sizeof real, NULL) == EPCTX_OK &&
            strcmp(real, file->real) == 0) {
            return epctx_fail(p->error, EPCTX_ERR_PATH,
                              "belongs to the source model: an output must not overwrite it");
        }
    }
    return EPCTX_OK;
}

/* Adds and checks the output `name`. */
EPCTX__APART static epctx_status epctx__preflight_add(epctx__preflight *p, epctx_str name,
                                                      const char **out) {
    const epctx_io *io = p->commit.io;
    char path[EPCTX_PATH_MAX];
    epctx_str parts[2];
    const epctx__commit_file *entry;
    epctx_output_file *file;
    epctx_io_file probe;
    epctx_status status;
    EPCTX__NEW(file, epctx_output_file, 1, p->commit.arena, p->error);
    parts[0] = p->folder;
    parts[1] = name;
    EPCTX__TRY(epctx__path_join(path, sizeof path, parts, 2, p->error));
    EPCTX__TRY(epctx__copy(p->commit.arena, epctx_str_of(path), out, p->error));
    file->path = *out;
    file->name = p->given ? NULL : *out + p->folder.size;
    status = epctx_output_check(io, *out, p->overwrite, p->error);
    if (status == EPCTX_OK && !p->given && p->commit.folder == NULL) {
        path[p->folder.size] = '\0';
        status = epctx_commit_set_folder(&p->commit, path, p->error);
    }
    if (status == EPCTX_OK)
        status = epctx_commit_put_file(&p->commit, file, p->overwrite, p->error);
    entry = p->commit.files;
    while (entry != NULL && entry->file != file) entry = entry->next;
    if (status == EPCTX_OK) status = epctx__preflight_clash(p, entry);
    if (status == EPCTX_OK && !p->joined) { /* is the folder writable? */
        status = io->create_fn(io->user, entry->root, entry->name, &probe, p->error);
        if (status == EPCTX_OK) io->close_fn(io->user, &probe);
    }
    epctx_blame(p->error, *out, NULL, NULL);
    return status;
}

static epctx_status epctx__preflight_binary(epctx__preflight *p, epctx_outputs *out) {
    epctx_str binary = epctx_str_of(p->in->binary);
    char name[EPCTX_PATH_MAX];
    p->joined = p->in->binary_joined;
    p->overwrite = p->joined ? EPCTX_OVERWRITE_REPLACE : p->overwrite;
    if (binary.size > 0) {
        EPCTX__TRY(epctx_path_check(binary, p->error));
    } else {
        EPCTX__TRY(epctx_path_binary(epctx_str_of(out->model), epctx_str_of(p->in->short_name),
                                     name, sizeof name, p->error));
        binary = epctx_str_of(name);
    }
    return epctx__preflight_add(p, binary, &out->binary);
}

EPCTX_API epctx_status epctx_preflight(const epctx_options *options, const epctx_preflight_in *in,
                                       epctx_arena *arena, epctx_outputs *out, epctx_error *error) {
    const char *wanted = epctx_option_text(options, EPCTX_OPTION_CONTEXT_FILE_PATH);
    const char *file = epctx_option_text(options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FILE);
    char room[EPCTX_PATH_MAX];
    epctx__preflight p;
    bool folder;
    memset(out, 0, sizeof *out);
    memset(&p, 0, sizeof p);
    p.in = in;
    p.overwrite = epctx__overwrite(epctx_option_on(options, EPCTX_OPTION_OVERWRITE));
    p.error = error;
    EPCTX__TRY(epctx_commit_begin(&p.commit, in->io, arena, error));
    if (options != NULL && options->profile != NULL)
        EPCTX__TRY(epctx__context_folder(options->profile, p.commit.io, &wanted, arena, error));
    folder = wanted != epctx_option_text(options, EPCTX_OPTION_CONTEXT_FILE_PATH);
    EPCTX__TRY(epctx__options_check(options, EPCTX_PHASE_GENERATE, in->model_path, folder, error));
    p.given = wanted[0] != '\0' && !folder;
    if (p.given) {
        EPCTX__TRY(epctx__preflight_add(&p, epctx_str_of(wanted), &out->model));
        p.folder = epctx__path_beside(p.commit.io, out->model, room);
        p.given = false;
    } else {
        EPCTX__TRY(
            epctx_path_context_model(epctx_str_of(in->model_path), room, sizeof room, error));
        p.folder = folder ? epctx_str_of(wanted) : epctx_path_folder(epctx_str_of(room));
        EPCTX__TRY(epctx__preflight_add(&p, epctx_path_file(epctx_str_of(room)), &out->model));
    }
    if (file[0] != '\0')
        EPCTX__TRY(epctx__preflight_add(&p, epctx_str_of(file), &out->initializers));
    return epctx_option_on(options, EPCTX_OPTION_CONTEXT_EMBED_MODE)
               ? EPCTX_OK
               : epctx__preflight_binary(&p, out);
}

/* ============================================================
 * >>share
 *
 * A workspace has two halves: loaded binaries (epctx__entry) and contexts under construction
 * (epctx__group). Both rest on one rule: the lock protects lists and counters, and is never held
 * while a backend, an io or a hook runs. Whoever works on an object without the lock has its turn
 * (epctx__turn). Others wait in epctx__turn_wait and then look everything up again, because
 * anything may have changed. A thread waits for one turn at most, so the chain of waiters shows
 * whether a turn depends on the calling thread. With thread_fn, that thread gets an error instead
 * of a deadlock.
 *
 * Loading: epctx__take asks each loaded entry of the binary for the graph, waits for an entry that
 * another call is loading, and otherwise loads the binary itself. The new entry is in the list
 * before loading begins, so nobody loads the same file beside it. A graph's handle serves one
 * session at a time. An entry counts graphs in use and calls at work; at zero epctx__entry_release
 * takes it out of the list and unloads it. What is loaded, and how, is the affair of epctx__ready
 * (>>ep).
 *
 * Generating: epctx__group_join finds or begins a group and takes its turn. A session (a hosted one
 * here, one that has its model in >>gen) compiles into the group's context and becomes a member in
 * its last step, epctx__group_append. A session that
 * fails before that leaves at most compiled graphs behind, and its next attempt uses them. Finished
 * models wait in memory as epctx__pending. epctx__group_finish makes the binary, adds to the models
 * what the whole group decides (max_size, the binary in the build stamp) and writes all files in
 * one commit. Models of hosted sessions are left to the program that hosts them, such as ORT.
 *
 * `holds` counts the owner, sessions and calls of a workspace; the last one frees it. Closing takes
 * the groups out of the list, and a group at work is freed at the end of its turn.
 * ============================================================ */

#if defined(EPCTX_PTHREAD_LOCK) || defined(EPCTX_WIN32_LOCK)

typedef struct epctx__mutex {
#ifdef EPCTX_PTHREAD_LOCK
    pthread_mutex_t mutex;
    pthread_cond_t changed;
#else
    SRWLOCK mutex;
    CONDITION_VARIABLE changed;
#endif
    epctx_allocator allocator;
} epctx__mutex;

static void epctx__lock_lock(void *user) {
#ifdef EPCTX_PTHREAD_LOCK
    pthread_mutex_lock(&((epctx__mutex *)user)->mutex);
#else
    AcquireSRWLockExclusive(&((epctx__mutex *)user)->mutex);
#endif
}

static void epctx__lock_unlock(void *user) {
#ifdef EPCTX_PTHREAD_LOCK
    pthread_mutex_unlock(&((epctx__mutex *)user)->mutex);
#else
    ReleaseSRWLockExclusive(&((epctx__mutex *)user)->mutex);
#endif
}

static uintptr_t epctx__lock_thread(void *user) {
#ifdef EPCTX_PTHREAD_LOCK
    pthread_t self = pthread_self();
    uintptr_t number = 0;
    memcpy(&number, &self, sizeof self < sizeof number ? sizeof self : sizeof number);
#else
    uintptr_t number = GetCurrentThreadId();
#endif
    (void)user;
    return number;
}

static void epctx__lock_wait(void *user) {
    epctx__mutex *mutex = (epctx__mutex *)user;
#ifdef EPCTX_PTHREAD_LOCK
    pthread_cond_wait(&mutex->changed, &mutex->mutex);
#else
    SleepConditionVariableSRW(&mutex->changed, &mutex->mutex, INFINITE, 0);
#endif
}

static void epctx__lock_wake(void *user) {
    epctx__mutex *mutex = (epctx__mutex *)user;
#ifdef EPCTX_PTHREAD_LOCK
    pthread_cond_broadcast(&mutex->changed);
#else
    WakeAllConditionVariable(&mutex->changed);
#endif
}

static void epctx__lock_free(void *user) {
    epctx__mutex *mutex = (epctx__mutex *)user;
    epctx_allocator allocator = mutex->allocator;
#ifdef EPCTX_PTHREAD_LOCK
    pthread_cond_destroy(&mutex->changed);
    pthread_mutex_destroy(&mutex->mutex);
#endif
    allocator.free_fn(allocator.user, mutex);
}

#endif

EPCTX_API epctx_status epctx_lock_make(epctx_lock *lock, const epctx_allocator *allocator,
                                       epctx_error *error) {
#if defined(EPCTX_PTHREAD_LOCK) || defined(EPCTX_WIN32_LOCK)
    epctx_allocator a = epctx__allocator(allocator);
    epctx__mutex *mutex;
#ifdef EPCTX_PTHREAD_LOCK
    bool made;
#endif
    epctx_error_clear(error);
    memset(lock, 0, sizeof *lock);
    mutex = (epctx__mutex *)epctx__alloc(&a, sizeof *mutex);
    if (mutex == NULL) return epctx__nomem(error, sizeof *mutex);
    memset(mutex, 0, sizeof *mutex);
    mutex->allocator = a;
#ifdef EPCTX_PTHREAD_LOCK
    made = pthread_mutex_init(&mutex->mutex, NULL) == 0;
    if (made && pthread_cond_init(&mutex->changed, NULL) != 0) {
        pthread_mutex_destroy(&mutex->mutex);
        made = false;
    }
    if (!made) {
        a.free_fn(a.user, mutex);
        return epctx_fail(error, EPCTX_ERR_IO, "no mutex available");
    }
#else
    InitializeSRWLock(&mutex->mutex);
    InitializeConditionVariable(&mutex->changed);
#endif
    lock->user = mutex;
    lock->lock_fn = epctx__lock_lock;
    lock->unlock_fn = epctx__lock_unlock;
    lock->free_fn = epctx__lock_free;
    lock->wait_fn = epctx__lock_wait;
    lock->wake_fn = epctx__lock_wake;
    lock->thread_fn = epctx__lock_thread;
    return EPCTX_OK;
#else
    (void)allocator;
    epctx_error_clear(error);
    memset(lock, 0, sizeof *lock);
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                      "compile the implementation with EPCTX_PTHREAD_LOCK or EPCTX_WIN32_LOCK");
#endif
}

/* The turn of a thread to work on an object without the lock. */
typedef struct epctx__turn {
    bool busy;
    uintptr_t thread;
} epctx__turn;

/* A thread waiting for the end of a turn. */
typedef struct epctx__waiter {
    struct epctx__waiter *next;
    uintptr_t thread;
    const epctx__turn *turn; /* NULL: ended */
} epctx__waiter;

/* A binary, loading or loaded; lives while one of its graphs is in use. */
typedef struct epctx__entry {
    struct epctx__entry *next;
    epctx__turn turn; /* of loading it: nothing in `opened` yet */
    size_t users;     /* calls that use it */
    epctx_backend backend;
    epctx_arena arena; /* paths */
    const char *path;  /* canonical; "": embedded in a model, not shared */
    const char *alias; /* canonical folder and name in the model: known even if the file is gone */
    epctx__ready opened;
    epctx_map graphs; /* bytes of a graph's handle -> 1 in use, 0 free */
    size_t taken;     /* graphs in use */
} epctx__entry;

/* A request for a graph, and its result. */
typedef struct epctx__asked {
    const epctx_backend *backend;
    const epctx__wanted *binary; /* embedded: not shared */
    const epctx_map *own;        /* graphs of this session: nodes of one model may share a graph */
    epctx_str key;
    uint64_t hash;
    bool missed; /* no context has the graph, or (`used`) another session uses it */
    bool used;
    bool loaded; /* false: the binary cannot be loaded */
    bool opened; /* it was loaded just now */
} epctx__asked;

struct epctx_workspace {
    epctx_allocator memory;    /* the caller's: under the lock */
    epctx_allocator allocator; /* the same without the lock */
    epctx_lock lock;
    epctx_taken taken;
    size_t holds; /* of the owner, each session and each call */
    epctx__entry *entries;
    size_t loads; /* entries ever made */
    struct epctx__group *groups;
    epctx__waiter *waiters;
};

static void epctx__lock(epctx_workspace *w) {
    if (w->lock.lock_fn != NULL) w->lock.lock_fn(w->lock.user);
}

static void epctx__unlock(epctx_workspace *w) {
    if (w->lock.unlock_fn != NULL) w->lock.unlock_fn(w->lock.user);
}

static void *epctx__workspace_alloc(void *user, size_t size) {
    epctx_workspace *w = (epctx_workspace *)user;
    void *memory;
    epctx__lock(w);
    memory = w->memory.alloc_fn(w->memory.user, size);
    epctx__unlock(w);
    return memory;
}

static void epctx__workspace_free(void *user, void *memory) {
    epctx_workspace *w = (epctx_workspace *)user;
    epctx__lock(w);
    w->memory.free_fn(w->memory.user, memory);
    epctx__unlock(w);
}

/* -- turns; called with the lock held -- */

static uintptr_t epctx__thread(const epctx_workspace *w) {
    return w->lock.thread_fn != NULL ? w->lock.thread_fn(w->lock.user) : 0;
}

static void epctx__turn_begin(const epctx_workspace *w, epctx__turn *turn) {
    turn->busy = true;
    turn->thread = epctx__thread(w);
}

static void epctx__turn_end(epctx_workspace *w, epctx__turn *turn) {
    epctx__waiter *waiter;
    turn->busy = false;
    for (waiter = w->waiters; waiter != NULL; waiter = waiter->next)
        if (waiter->turn == turn) waiter->turn = NULL; /* `turn` may be freed before it wakes up */
    if (w->lock.wake_fn != NULL) w->lock.wake_fn(w->lock.user);
}

/* Waits for the end of a turn without the lock: afterwards everything may have changed, and the
 * turn may not have ended. False: the turn depends on the calling thread. The chain followed ends:
 * each thread waits for one turn at most, and never in a circle. */
static bool epctx__turn_wait(epctx_workspace *w, const epctx__turn *turn) {
    const epctx__turn *next = w->lock.thread_fn != NULL ? turn : NULL;
    const epctx__waiter *waiter;
    epctx__waiter me;
    epctx__waiter **link = &w->waiters;
    me.thread = epctx__thread(w);
    me.turn = turn;
    me.next = w->waiters;
    while (next != NULL && next->thread != me.thread) {
        waiter = w->waiters;
        while (waiter != NULL && waiter->thread != next->thread) waiter = waiter->next;
        next = waiter != NULL ? waiter->turn : NULL;
    }
    if (w->lock.lock_fn == NULL || next != NULL) return false;
    w->waiters = &me;
    if (w->lock.wait_fn != NULL) {
        w->lock.wait_fn(w->lock.user);
    } else {
        epctx__unlock(w);
        epctx__lock(w);
    }
    while (*link != &me) link = &(*link)->next;
    *link = me.next;
    return true;
}

EPCTX_API epctx_status epctx_workspace_open(epctx_workspace **workspace,
                                            const epctx_workspace_opts *opts, epctx_error *error) {
    epctx_allocator a = epctx__allocator(opts != NULL ? opts->allocator : NULL);
    epctx_workspace *w;
    epctx_error_clear(error);
    *workspace = NULL;
    w = (epctx_workspace *)epctx__alloc(&a, sizeof *w);
    if (w == NULL) return epctx__nomem(error, sizeof *w);
    memset(w, 0, sizeof *w);
    w->memory = a;
    w->allocator.user = w;
    w->allocator.alloc_fn = epctx__workspace_alloc;
    w->allocator.free_fn = epctx__workspace_free;
    w->holds = 1;
    if (opts != NULL) {
        w->lock = opts->lock;
        w->taken = opts->taken;
    }
    *workspace = w;
    return EPCTX_OK;
}

static void epctx__workspace_leave(epctx_workspace *w) {
    epctx_lock lock = w->lock;
    epctx_allocator a = w->memory;
    size_t holds;
    epctx__lock(w);
    holds = --w->holds;
    epctx__unlock(w);
    if (holds == 0) { /* no other user */
        a.free_fn(a.user, w);
        if (lock.free_fn != NULL) lock.free_fn(lock.user);
    }
}

/* -- loading; called with the lock held -- */

/* A handle as a map key; borrowed from `graph`. */
static epctx_str epctx__handle_key(void *const *graph) {
    return epctx__str(graph, sizeof *graph);
}

static void epctx__entry_release(epctx_workspace *w, epctx__entry *entry) {
    epctx__entry **link = &w->entries;
    if (entry->taken > 0 || entry->users > 0) return;
    while (*link != entry) link = &(*link)->next;
    *link = entry->next; /* unreachable for others */
    epctx__unlock(w);
    epctx__ready_close(&entry->opened, &entry->backend, &w->allocator);
    epctx__lock(w);
    epctx_arena_free(&entry->arena);
    w->memory.free_fn(w->memory.user, entry);
}

static void epctx__entry_leave(epctx_workspace *w, epctx__entry *entry) {
    if (entry != NULL) {
        entry->users--;
        epctx__entry_release(w, entry);
    }
}

static bool epctx__entry_is(const epctx__entry *entry, const epctx__asked *asked) {
    const epctx__wanted *binary = asked->binary;
    if (entry->backend.self != asked->backend->self ||
        strcmp(entry->backend.source, asked->backend->source) != 0 ||
        (!entry->turn.busy && binary->size != 0 && binary->size != entry->opened.size))
        return false;
    return (binary->alias[0] != '\0' && strcmp(entry->alias, binary->alias) == 0) ||
           (binary->path[0] != '\0' && strcmp(entry->path, binary->path) == 0);
}

/* A new entry that the caller loads; others find it and wait. */
static epctx_status epctx__entry_make(epctx_workspace *w, const epctx__asked *asked,
                                      epctx__entry **out, epctx_error *error) {
    epctx__entry *entry = (epctx__entry *)w->memory.alloc_fn(w->memory.user, sizeof *entry);
    const epctx__wanted *binary = asked->binary;
    if (entry == NULL) return epctx__nomem(error, sizeof *entry);
    memset(entry, 0, sizeof *entry);
    entry->backend = *asked->backend;
    epctx_arena_init(&entry->arena, &w->memory);
    epctx_map_init(&entry->graphs, &entry->arena);
    if (epctx__copy(&entry->arena, epctx_str_of(binary->path), &entry->path, error) != EPCTX_OK ||
        epctx__copy(&entry->arena, epctx_str_of(binary->alias), &entry->alias, error) != EPCTX_OK) {
        epctx_arena_free(&entry->arena);
        w->memory.free_fn(w->memory.user, entry);
        return EPCTX_ERR_NOMEM;
    }
    entry->users = 1;
    epctx__turn_begin(w, &entry->turn);
    entry->next = w->entries;
    w->entries = *out = entry;
    w->loads++;
    return EPCTX_OK;
}

/* Looks up the graph in an entry held by the caller. `out` gets no entry for a graph that the
 * session already has: there is nothing to release. */
static epctx_status epctx__entry_ask(epctx_workspace *w, epctx__entry *entry, epctx__asked *asked,
                                     epctx_bound *out, epctx_error *error) {
    void **key = &out->graph;
    uint32_t taken;
    epctx_status status;
    asked->missed = true;
    epctx_error_clear(error);
    epctx__unlock(w);
    status = epctx__ready_ask(&entry->opened, &entry->backend, asked->key, asked->hash, out, error);
    epctx__lock(w);
    EPCTX__TRY(status);
    taken = epctx_map_get(&entry->graphs, epctx__handle_key(key));
    if (taken == 1) {
        bool own = epctx__has(asked->own, epctx__handle_key(key));
        asked->missed = asked->used = !own;
        return own ? EPCTX_OK : EPCTX_ERR_CONTEXT;
    }
    asked->missed = false;
    if (taken == EPCTX_MAP_NONE) {
        EPCTX__NEW(key, void *, 1, &entry->arena, error);
        *key = out->graph;
    }
    EPCTX__TRY(epctx__map_set(&entry->graphs, epctx__handle_key(key), 1, error));
    entry->taken++;
    out->entry = entry;
    return EPCTX_OK;
}

/* Asks every loaded entry of this binary. The lock is released in between: an entry stays in the
 * list while held, and each is held until the next one is. */
static epctx_status epctx__entries_ask(epctx_workspace *w, epctx__asked *asked, epctx_bound *out,
                                       epctx_error *error) {
    epctx__entry *entry = w->entries;
    epctx__entry *held = NULL;
    epctx_status status = EPCTX_ERR_CONTEXT;
    asked->missed = true;
    for (; entry != NULL && status != EPCTX_OK && asked->missed; entry = entry->next) {
        if (!entry->turn.busy && epctx__entry_is(entry, asked)) {
            entry->users++;
            epctx__entry_leave(w, held);
            held = entry;
            status = epctx__entry_ask(w, entry, asked, out, error);
        }
    }
    epctx__entry_leave(w, held);
    return status;
}

/* Takes a graph of a binary; without `load` only if it waits in the workspace. */
static epctx_status epctx__take(epctx_workspace *w, epctx__asked *asked, bool load,
                                epctx_bound *out, epctx_error *error) {
    epctx__entry *entry;
    epctx_status status;
    for (;;) {
        size_t loads = w->loads;
        asked->used = false;
        asked->loaded = true;
        status = epctx__entries_ask(w, asked, out, error);
        if (status == EPCTX_OK || !asked->missed) return status;
        entry = w->entries;
        while (entry != NULL && !(entry->turn.busy && epctx__entry_is(entry, asked)))
            entry = entry->next;
        if (entry != NULL && !epctx__turn_wait(w, &entry->turn)) {
            epctx_error_clear(error);
            return epctx_fail(error, EPCTX_ERR_CONTEXT,
                              "deadlock: '%S' is being loaded by a call that waits for this one",
                              &asked->binary->file.name);
        }
        if (entry == NULL && loads == w->loads)
            break; /* else it is loading or was loaded meanwhile */
    }
    epctx_error_clear(error);
    if (asked->used && w->taken == EPCTX_TAKEN_ERROR) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "graph '%S' of '%S' is in use by another session of this workspace",
                          &asked->key, &asked->binary->file.name);
    }
    if (!load) return EPCTX_ERR_CONTEXT;
    EPCTX__TRY(epctx__entry_make(w, asked, &entry, error));
    epctx__unlock(w);
    status =
        epctx__ready_load(&entry->opened, &entry->backend, asked->binary, &w->allocator, error);
    epctx__lock(w);
    asked->loaded = asked->opened = status == EPCTX_OK;
    if (asked->loaded) status = epctx__entry_ask(w, entry, asked, out, error);
    epctx__turn_end(w, &entry->turn);
    epctx__entry_leave(w, entry);
    return status;
}

static void epctx__give(epctx_workspace *w, epctx__entry *entry, void *graph) {
    epctx_str key = epctx__handle_key(&graph);
    if (EPCTX__ALWAYS(epctx_map_get(&entry->graphs, key) == 1)) {
        (void)epctx_map_put(&entry->graphs, key, 0); /* cannot fail: it has the key */
        entry->taken--;
    }
    epctx__entry_release(w, entry);
}

/* -- generating -- */

/* A session waiting for the last one. */
typedef struct epctx__pending {
    struct epctx__pending *next;
    const char *path, *name;          /* of its EPContext model, and its file name */
    const char *initializers_name;    /* its file of initializers, or "" */
    const char *binary, *binary_path; /* the group's, in the first session */
    bool overwrite;
    bool hosted; /* another program writes the model, and the members from `derived` are unused */
    const char *written; /* the hosted model's canonical path, or NULL */
    bool derived;
    epctx_buffer model;
    epctx_output_file file, initializers;
    epctx_span bytes; /* of the complete `model` */
} epctx__pending;

/* A context under construction. Whoever has the turn owns it, except `turn`, `dropped` and
 * `finishing`, which the lock protects. */
typedef struct epctx__group {
    struct epctx__group *next;
    epctx__turn turn;
    bool dropped;   /* removed from the list: the workspace was closed */
    bool finishing; /* closed for joining and leaving */
    const char *name;
    const epctx_backend *backend;
    const epctx_io *io;
    epctx_arena arena;
    epctx__known known;
    epctx__lent context; /* with `known` */
    bool verify;
    epctx_weightless_support weightless; /* as asked for */
    char folder[EPCTX_PATH_MAX];         /* canonical */
    const char *binary; /* name in the nodes; NULL until the first session is done */
    const char *binary_path;
    bool overwrite;          /* the binary may replace a file */
    epctx__pending *pending; /* in order */
    epctx_commit commit;
} epctx__group;

/* For a group that is not in the list; without the lock. */
static void epctx__group_free(epctx_workspace *w, epctx__group *group) {
    epctx__pending *p;
    if (group->context.build != NULL)
        group->backend->discard_fn(group->backend->self, group->context.build);
    epctx_commit_close(&group->commit);
    for (p = group->pending; p != NULL; p = p->next) epctx_buffer_free(&p->model);
    epctx_arena_free(&group->arena);
    w->allocator.free_fn(w->allocator.user, group);
}

EPCTX_API void epctx_workspace_close(epctx_workspace *workspace) {
    epctx__group *idle = NULL;
    epctx__group *group;
    if (workspace == NULL) return;
    epctx__lock(workspace);
    while ((group = workspace->groups) != NULL) {
        workspace->groups = group->next;
        group->dropped = true;
        if (!group->turn.busy) { /* else freed when the turn ends */
            group->next = idle;
            idle = group;
        }
    }
    epctx__unlock(workspace);
    while ((group = idle) != NULL) {
        idle = group->next;
        epctx__group_free(workspace, group);
    }
    epctx__workspace_leave(workspace);
}

/* The group of that name, in the caller's turn until epctx__group_leave; if there is none, `fresh`
 * becomes it (may be NULL). ARG: its turn waits for this call; then `*out` is the group if the turn
 * is this thread's, else NULL. */
static epctx_status epctx__group_enter(epctx_workspace *w, const char *name, const char *source,
                                       epctx__group *fresh, epctx__group **out,
                                       epctx_error *error) {
    epctx__group *group;
    epctx_status status = EPCTX_OK;
    epctx__lock(w);
    do {
        for (group = w->groups; group != NULL; group = group->next)
            if (strcmp(group->name, name != NULL ? name : "") == 0 &&
                strcmp(group->backend->source, source) == 0)
                break;
    } while (group != NULL && group->turn.busy && epctx__turn_wait(w, &group->turn));
    if (group != NULL && group->turn.busy) {
        group = group->turn.thread == epctx__thread(w) ? group : NULL;
        status =
            epctx_fail(error, EPCTX_ERR_ARG,
                       "deadlock: the group is being compiled or written by a call that waits for "
                       "this one");
    } else if (group != NULL || fresh != NULL) {
        if (group == NULL) {
            group = fresh;
            group->next = w->groups;
            w->groups = group;
        }
        epctx__turn_begin(w, &group->turn);
        w->holds++;
    }
    epctx__unlock(w);
    *out = group;
    return status;
}

/* Ends a turn and removes a group without a session. */
static epctx_status epctx__group_leave(epctx_workspace *w, epctx__group *group, epctx_status status,
                                       epctx_error *error) {
    const char *source = group->backend->source;
    epctx__group **link = &w->groups;
    bool dropped, gone;
    epctx__lock(w);
    dropped = group->dropped;
    gone = dropped || group->finishing || group->pending == NULL;
    while (gone && *link != NULL && *link != group) link = &(*link)->next;
    if (gone && *link == group) *link = group->next;
    epctx__turn_end(w, &group->turn);
    epctx__unlock(w);
    if (dropped && !group->finishing && status == EPCTX_OK) {
        status = epctx_fail(error, EPCTX_ERR_CONTEXT,
                            "the workspace was closed while the group was compiled");
    }
    if (status != EPCTX_OK) epctx_fail(error, status, "%s failed without a message", source);
    if (gone) epctx__group_free(w, group);
    epctx__workspace_leave(w);
    return status;
}

/* Joins or begins a group, which is the session's turn until epctx__group_leave. */
static epctx_status epctx__group_join(epctx_workspace *w, const char *name,
                                      const epctx_backend *backend, const epctx_io *io,
                                      bool prepare_only, epctx_weightless_support weightless,
                                      epctx__group **out, epctx_error *error) {
    epctx__group *fresh = (epctx__group *)w->allocator.alloc_fn(w->allocator.user, sizeof *fresh);
    epctx__group *group = NULL;
    epctx_build_opts how;
    epctx_status status;
    if (fresh == NULL) return epctx__nomem(error, sizeof *fresh);
    memset(fresh, 0, sizeof *fresh); /* if there is none */
    fresh->backend = backend;
    fresh->io = io;
    fresh->weightless = weightless;
    epctx_arena_init(&fresh->arena, &w->allocator);
    epctx_map_init(&fresh->known.index, &fresh->arena);
    status = epctx__copy(&fresh->arena, epctx_str_of(name), &fresh->name, error);
    if (status == EPCTX_OK) status = epctx_commit_begin(&fresh->commit, io, &fresh->arena, error);
    if (status == EPCTX_OK)
        status = epctx__group_enter(w, name, backend->source, fresh, &group, error);
    if (group != fresh) epctx__group_free(w, fresh);
    EPCTX__TRY(status);
    *out = group;
    if (group == fresh) {
        how.hooks = NULL; /* the group outlives the session */
        how.prepare_only = prepare_only;
        how.weightless = weightless;
        group->context.known = &group->known;
        status = epctx__build_begin(backend, &how, &group->context.build, error);
    } else if (group->backend->self != backend->self || group->io != io) {
        status = epctx_fail(error, EPCTX_ERR_ARG,
                            "the group has another backend object (other EP options?) or "
                            "another io");
    } else if (group->weightless != weightless) {
        status = epctx_fail(error, EPCTX_ERR_ARG,
                            "one session of the group is weightless (ep.enable_weightless), "
                            "another is not");
    }
    return status == EPCTX_OK ? status : epctx__group_leave(w, group, status, error);
}

/* Does another session write this name? All files are in one folder. */
static epctx_status epctx__group_clash(const epctx__group *group, const char *name,
                                       epctx_error *error) {
    const epctx__pending *p;
    bool same = strcmp(name, group->binary) == 0;
    for (p = group->pending; p != NULL; p = p->next)
        same = same || strcmp(name, p->name) == 0 || strcmp(name, p->initializers_name) == 0;
    return same ? epctx_fail(error, EPCTX_ERR_ARG,
                             "another session of the group writes '%s': each needs a name of its "
                             "own",
                             name)
                : EPCTX_OK;
}

/* The folder of the model at `path`, canonical; `folder` has EPCTX_PATH_MAX places. */
static epctx_status epctx__group_place(const epctx__group *group, const char *path, char *folder,
                                       epctx_error *error) {
    char room[EPCTX_PATH_MAX];
    epctx_str beside = epctx__path_beside(group->io, path, room);
    beside = beside.size > 0 ? beside : epctx_str_of(".");
    EPCTX__TRY(epctx__path_join(folder, EPCTX_PATH_MAX, &beside, 1, error));
    memcpy(room, folder, strlen(folder) + 1);
    return group->io->canonical_fn(group->io->user, room, folder, EPCTX_PATH_MAX, error);
}

/* Checks that the model is in the group's folder and has its own name. */
static epctx_status epctx__group_accepts(epctx__group *group, const char *path,
                                         epctx_error *error) {
    char folder[EPCTX_PATH_MAX];
    EPCTX__TRY(epctx__group_place(group, path, folder, error));
    if (group->binary == NULL) {
        memcpy(group->folder, folder, strlen(folder) + 1);
        return EPCTX_OK;
    }
    if (strcmp(group->folder, folder) != 0) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "'%s' is not in the group's folder '%s': first end that group, with its "
                          "last session%s",
                          path, group->folder,
                          group->pending != NULL && group->pending->hosted
                              ? " (ep.stop_share_ep_contexts=1), or delete its EPContext models"
                              : "");
    }
    return epctx__group_clash(group, epctx_path_file(epctx_str_of(path)).data, error);
}

/* A new session, not yet in the group. */
static epctx_status epctx__pending_make(epctx__group *group, const char *path,
                                        const char *initializers_name, const char *binary,
                                        const char *binary_path, epctx__pending **out,
                                        epctx_error *error) {
    epctx_arena *arena = &group->arena;
    epctx__pending *p;
    EPCTX__NEW(p, epctx__pending, 1, arena, error);
    epctx_buffer_init(&p->model, &arena->allocator);
    *out = p;
    EPCTX__TRY(epctx__copy(arena, epctx_str_of(path), &p->path, error));
    EPCTX__TRY(epctx__copy(arena, epctx_str_of(initializers_name), &p->initializers_name, error));
    EPCTX__TRY(epctx__copy(arena, epctx_str_of(binary), &p->binary, error));
    p->name = epctx_path_file(epctx_str_of(p->path)).data;
    return epctx__copy(arena, epctx_str_of(binary_path), &p->binary_path, error);
}

static void epctx__group_append(epctx__group *group, epctx__pending *p) {
    epctx__pending **link = &group->pending;
    if (group->binary == NULL) {
        group->binary = p->binary;
        group->binary_path = p->binary_path;
        group->overwrite = p->overwrite;
    }
    while (*link != NULL) link = &(*link)->next;
    *link = p;
}

#ifndef EPCTX_NO_EDIT

/* Adds what depends on the whole group: the largest max_size in every node (spill buffers are
 * shared like the context), and the binary in the build stamp (a copy of a model without nodes for
 * this EP has none). */
static epctx_status epctx__pending_edit(const epctx__group *group, epctx_model *model,
                                        epctx_span binary, epctx_error *error) {
    const char *source = group->backend->source;
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view view;
    epctx_epnode ep;
    epctx_attr max_size;
    epctx__stamp_text stamp;
    epctx_str value;
    memset(&max_size, 0, sizeof max_size);
    max_size.name = epctx_str_of("max_size");
    max_size.type = EPCTX_ATTR_INT;
    max_size.i = group->known.max_size;
    while (group->backend->max_size_fn != NULL && epctx_next_node(&it, &view)) {
        if (epctx_view_is_epnode(&view) &&
            epctx_str_is(epctx_view_node_attr_str(&view, "source"), source)) {
            (void)epctx_view_read_epnode(&view, &ep, error); /* epctx made it */
            if (ep.max_size != max_size.i)
                EPCTX__TRY(epctx_edit_set_attr(model, view.view, &max_size, error));
        }
    }
    if (!epctx_model_get_stamp(model, epctx_str_of(source), &value)) return EPCTX_OK;
    epctx__stamp_begin(&stamp, &model->arena);
    epctx__stamp_put(&stamp, value);
    epctx__stamp_put_binary(&stamp, binary, group->known.graphs.count);
    return epctx__stamp_write(&stamp, model, source, error);
}

static epctx_status epctx__pending_put(epctx_workspace *w, epctx__group *group, epctx__pending *p,
                                       epctx_span binary, epctx_error *error) {
    epctx_open_opts open;
    epctx_model model;
    epctx_buffer old = p->model;
    epctx_status status;
    memset(&open, 0, sizeof open);
    open.allocator = &w->allocator;
    open.io = group->io;
    EPCTX__TRY(epctx_model_open_memory(&model, old.data, old.size, &open, error));
    epctx_buffer_init(&p->model, &w->allocator);
    status = epctx__pending_edit(group, &model, binary, error);
    if (status == EPCTX_OK) status = epctx__buffer_model(&p->model, &model, error);
    epctx_model_close(&model);
    epctx_buffer_free(&old);
    EPCTX__TRY(status);
    p->bytes = epctx__span(p->model.data, p->model.size);
    epctx__output_one(&p->file, p->path, p->derived ? p->name : NULL, &p->bytes);
    p->file.is_model = true;
    return epctx_commit_put_file(&group->commit, &p->file, epctx__overwrite(p->overwrite), error);
}

#endif /* EPCTX_NO_EDIT */

static epctx_status epctx__group_write(epctx_workspace *w, epctx__group *group,
                                       epctx_buffer *binary, const epctx_hooks *hooks,
                                       epctx_error *error) {
    const epctx_backend *b = group->backend;
    epctx_commit *c = &group->commit;
    void *build = group->context.build;
    const epctx__known_graph *graphs = (const epctx__known_graph *)group->known.graphs.items;
    size_t count = group->known.graphs.count;
    epctx__pending *p;
    epctx_output_file file;
    epctx_span bytes;
    group->context.build = NULL;
    EPCTX__TRY(epctx__build_finish(b, build, binary, count, error));
    bytes = epctx__span(binary->data, binary->size);
    if (group->verify && count > 0)
        EPCTX__TRY(epctx__verify_binary(b, bytes, graphs, count, error));
    memset(&file, 0, sizeof file);
    epctx__output_one(&file, group->binary_path, group->binary, &bytes);
    c->hooks = hooks;
    EPCTX__TRY(epctx_commit_set_folder(c, group->folder, error));
    if (count > 0)
        EPCTX__TRY(epctx_commit_put_file(c, &file, epctx__overwrite(group->overwrite), error));
    for (p = group->pending; p != NULL; p = p->next) {
#ifndef EPCTX_NO_EDIT
        EPCTX__TRY(p->hosted ? EPCTX_OK : epctx__pending_put(w, group, p, bytes, error));
#else
        (void)w;
#endif
    }
    return epctx_commit_run(c, error);
}

/* Writes a group, which ends with its turn even on failure. */
static epctx_status epctx__group_finish(epctx_workspace *w, epctx__group *group,
                                        const epctx_hooks *hooks, uint64_t *binary_size,
                                        epctx_error *error) {
    epctx_buffer binary;
    epctx_status status;
    epctx__lock(w);
    group->finishing = !group->dropped;
    epctx__unlock(w);
    if (!group->finishing) return EPCTX_OK; /* epctx__group_leave reports it */
    epctx_buffer_init(&binary, &w->allocator);
    status = epctx__group_write(w, group, &binary, hooks, error);
    if (binary_size != NULL) *binary_size = binary.size;
    epctx_buffer_free(&binary);
    return status;
}

/* -- a session without its model -- */

/* Names and checks the group's binary before a long compile. */
static epctx_status epctx__group_target(epctx__group *group, const epctx_share_opts *opts,
                                        epctx_outputs *out, epctx_error *error) {
    epctx_preflight_in in;
    epctx__preflight p;
    char room[EPCTX_PATH_MAX];
    epctx_status status;
    memset(&in, 0, sizeof in);
    memset(&p, 0, sizeof p);
    in.short_name = group->backend->short_name;
    p.in = &in;
    p.folder = epctx__path_beside(group->io, opts->context_path, room);
    p.overwrite = epctx__overwrite(opts->overwrite);
    p.error = error;
    out->model = opts->context_path;
    /* not taken: the group has an io */
    EPCTX__TRY(epctx_commit_begin(&p.commit, group->io, &group->arena, error));
    status = epctx__preflight_binary(&p, out);
    epctx_blame(error, status == EPCTX_OK ? NULL : opts->context_path, NULL, NULL);
    return status;
}

static epctx_status epctx__group_compile(epctx__group *group, const epctx_share_opts *opts,
                                         epctx_arena *arena, const epctx_node **nodes,
                                         epctx_error *error) {
    const size_t count = opts->piece_count;
    epctx_outputs out;
    epctx__pending *p;
    epctx_ep ep;
    epctx_ep_opts how;
    epctx__job job;
    epctx_status status;
    size_t i;
    memset(&how, 0, sizeof how);
    memset(&job, 0, sizeof job);
    EPCTX__TRY(epctx__group_accepts(group, opts->context_path, error));
    out.binary = group->binary;
    if (group->binary == NULL) EPCTX__TRY(epctx__group_target(group, opts, &out, error));
    EPCTX__TRY(epctx__pending_make(group, opts->context_path, "",
                                   epctx_path_file(epctx_str_of(out.binary)).data, out.binary, &p,
                                   error));
    p->hosted = true;
    p->overwrite = opts->overwrite;
    /* The nodes use them after this call. */
    how.binary = group->binary != NULL ? group->binary : p->binary;
    EPCTX__TRY(epctx__copy(arena, epctx_str_of(how.binary), &how.binary, error));
    EPCTX__TRY(epctx__copy(arena, epctx_str_of(opts->source_model), &how.source_model, error));
    how.name_prefix = opts->name_prefix;
    how.weightless = opts->weightless;
    how.hooks = opts->hooks;
    how.model_hash = opts->model_hash != 0 ? opts->model_hash : epctx__hash_number(0, count);
    for (i = 0; opts->model_hash == 0 && i < count; i++) /* only the pieces are known */
        how.model_hash = epctx__hash_number(how.model_hash, epctx_graph_hash(opts->pieces[i]));
    job.backend = group->backend;
    job.opts = &how;
    job.lent = &group->context;
    job.pieces = opts->pieces;
    job.count = count;
    status = epctx__ep_run(&ep, &job, arena, error);
    if (status == EPCTX_OK) {
        *nodes = epctx_ep_context_nodes(&ep, &i);
        group->known.max_size = ep.max_size;
        group->verify = group->verify || opts->verify;
        epctx__group_append(group, p);
    }
    epctx_ep_end(&ep);
    return status;
}

/* Was every model of the group written and deleted again? */
static bool epctx__group_is_deleted(const epctx__group *group) {
    const epctx__pending *p;
    epctx_file_info now;
    for (p = group->pending; p != NULL; p = p->next)
        if (p->written == NULL ||
            group->io->stat_fn(group->io->user, p->written, &now, NULL) != EPCTX_OK ||
            now.kind != EPCTX_FILE_NONE)
            return false;
    return true;
}

/* Abandons the group if it is in another folder than `path` and its models are deleted: nobody
 * needs it, and this session, which cannot join it, begins another. */
static void epctx__group_give_way(epctx_workspace *w, const char *name, const char *source,
                                  const char *path) {
    epctx__group *group;
    char folder[EPCTX_PATH_MAX];
    if (epctx__group_enter(w, name, source, NULL, &group, NULL) != EPCTX_OK || group == NULL)
        return;
    if (epctx__group_place(group, path, folder, NULL) == EPCTX_OK &&
        strcmp(group->folder, folder) != 0 && epctx__group_is_deleted(group))
        group->pending = NULL;
    (void)epctx__group_leave(w, group, EPCTX_OK, NULL);
}

EPCTX_API epctx_status epctx_share_compile(epctx_workspace *workspace, const epctx_backend *backend,
                                           const epctx_share_opts *opts, epctx_arena *arena,
                                           const epctx_node **nodes, epctx_error *error) {
    epctx__group *joined = NULL;
    epctx_error local;
    const epctx_io *io = opts != NULL && opts->io != NULL ? opts->io : epctx_io_files();
    epctx_status status;
    error = error != NULL ? error : &local;
    epctx_error_clear(error);
    *nodes = NULL;
    if (workspace == NULL || io == NULL || opts == NULL || opts->piece_count == 0 ||
        epctx_str_of(opts->context_path).size == 0) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "pass a workspace, an io, pieces and a context_path");
    }
    EPCTX__TRY(epctx__backend_check(backend, true, opts->verify, error));
    epctx__group_give_way(workspace, opts->group, backend->source, opts->context_path);
    EPCTX__TRY(epctx__group_join(workspace, opts->group, backend, io, opts->prepare_only,
                                 opts->weightless, &joined, error));
    status = epctx__group_compile(joined, opts, arena, nodes, error);
    status = epctx__group_leave(workspace, joined, status, error);
    *nodes = status == EPCTX_OK ? *nodes : NULL;
    return status;
}

static epctx_status epctx__pending_note(epctx__group *group, epctx__pending *p,
                                        epctx_error *error) {
    const epctx_io *io = group->io;
    epctx_file_info info;
    char path[EPCTX_PATH_MAX];
    if (io->stat_fn(io->user, p->path, &info, NULL) != EPCTX_OK || info.kind == EPCTX_FILE_NONE ||
        io->canonical_fn(io->user, p->path, path, sizeof path, NULL) != EPCTX_OK)
        return EPCTX_OK; /* in memory, or somewhere else */
    return epctx__copy(&group->arena, epctx_str_of(path), &p->written, error);
}

EPCTX_API epctx_status epctx_share_written(epctx_workspace *workspace, const char *group,
                                           const char *source, const char *context_path,
                                           epctx_error *error) {
    epctx__group *found;
    epctx__pending *p;
    epctx_error local;
    epctx_status status;
    error = error != NULL ? error : &local;
    epctx_error_clear(error);
    EPCTX__TRY(epctx__group_enter(workspace, group, source, NULL, &found, error));
    for (p = found != NULL ? found->pending : NULL; p != NULL; p = p->next)
        if (p->hosted && strcmp(p->path, context_path) == 0) break;
    status = p != NULL ? epctx__pending_note(found, p, error)
                       : epctx_fail(error, EPCTX_ERR_NOT_FOUND, "no session of %s compiles '%s'",
                                    source, context_path);
    return found != NULL ? epctx__group_leave(workspace, found, status, error) : status;
}

EPCTX_API void epctx_share_withdraw(epctx_workspace *workspace, const char *group,
                                    const char *source, const char *context_path) {
    epctx__group *found;
    /* If that fails, the turn may be this thread's: a hook or the backend calls. */
    bool entered = epctx__group_enter(workspace, group, source, NULL, &found, NULL) == EPCTX_OK;
    epctx__pending **link;
    if (found == NULL || found->finishing) return;
    for (link = &found->pending; *link != NULL; link = &(*link)->next) {
        if ((*link)->hosted && strcmp((*link)->path, context_path) == 0) {
            *link = (*link)->next;
            break;
        }
    }
    if (entered) (void)epctx__group_leave(workspace, found, EPCTX_OK, NULL);
}

EPCTX_API epctx_status epctx_share_finish(epctx_workspace *workspace, const char *group,
                                          const char *source, const epctx_hooks *hooks,
                                          uint64_t *binary_size, epctx_error *error) {
    epctx__group *found;
    epctx_error local;
    epctx_status status;
    error = error != NULL ? error : &local;
    epctx_error_clear(error);
    EPCTX__TRY(epctx__group_enter(workspace, group, source, NULL, &found, error));
    if (found == NULL) {
        return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "the workspace has no group '%s' of %s",
                          group != NULL ? group : "", source);
    }
    status = epctx__group_finish(workspace, found, hooks, binary_size, error);
    return epctx__group_leave(workspace, found, status, error);
}

#ifndef EPCTX_NO_EDIT

/* ============================================================
 * >>gen
 *
 * What epctx_generate is given is an epctx__gen_in, which nothing changes. epctx__gen_plan decides,
 * without compiling, what there is to do: read the source, name and check the outputs, partition.
 * epctx__gen_make carries the plan out (compile, rewrite), and what it makes is an epctx__gen.
 * Three functions differ only in where that goes: epctx__gen_alone writes model, binary and
 * initializers in one commit, epctx__gen_in_memory puts them into buffers, and epctx__gen_grouped
 * joins a group of >>share and leaves them there until its last session.
 *
 * Two rules make this safe. Errors that can be found without compiling are found first:
 * epctx_preflight refuses names that clash and files that must stay, and creates and removes a
 * trial file where an output will be. Until the commit only the open model changes, and
 * epctx_generate undoes its edits after a failure.
 *
 * epctx__gen_partition asks the backend which nodes it takes and forms partitions of them. Taken
 * nodes whose results nobody needs are in no partition and disappear. epctx__gen_rewrite then edits
 * the source instead of building a model, so whatever stays keeps its bytes. It treats each
 * partition and each remaining node as an item, sorts the items, moves only nodes that lose their
 * relative place, and lets an EPContext node stand for each partition. Marks on the names of values
 * tell which initializers, inputs and types the new graph still needs. External data that is still
 * needed moves into the model or into the new file of initializers, so only weightless contexts
 * need the source later.
 *
 * The file of initializers is a list of spans until the commit writes it. epctx__gen_plan hashes
 * the source and its external data before the backend compiles, because afterwards they would have
 * to be read into memory again. explain_fn may analyze the whole graph, so EPCTX__ASKED limits its
 * calls.
 * ============================================================ */

/* NULL: not set, or empty. */
static const char *epctx__option_set(const epctx_options *o, epctx_option option) {
    const char *text = epctx_option_text(o, option);
    return text[0] != '\0' ? text : NULL;
}

EPCTX_API epctx_gen_opts epctx_options_to_gen(const epctx_options *options) {
    epctx_gen_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.context_file_path = epctx__option_set(options, EPCTX_OPTION_CONTEXT_FILE_PATH);
    opts.embed = epctx_option_on(options, EPCTX_OPTION_CONTEXT_EMBED_MODE);
    opts.name_prefix = epctx__option_set(options, EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX);
    opts.overwrite = epctx_option_on(options, EPCTX_OPTION_OVERWRITE);
    opts.require_all = epctx_option_on(options, EPCTX_OPTION_DISABLE_CPU_FALLBACK);
    opts.initializers_file_name =
        epctx__option_set(options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FILE);
    opts.no_nodes = epctx__option_no_nodes(options);
    opts.prepare_only = epctx_option_on(options, EPCTX_OPTION_COMPILE_ONLY);
    opts.weightless = epctx_option_on(options, EPCTX_OPTION_WEIGHTLESS) ? EPCTX_WEIGHTLESS_ALL
                      : epctx_option_on(options, EPCTX_OPTION_WEIGHTLESS_NODES)
                          ? EPCTX_WEIGHTLESS_EXTERNAL_ONLY
                          : EPCTX_WEIGHTLESS_NONE;
    return opts;
}

EPCTX_API epctx_options epctx_options_of_gen(const epctx_gen_opts *opts) {
    static const char *const no_nodes[] = {"error", "copy", "nothing"};
    epctx_options options;
    const char **values = options.values;
    epctx_options_init(&options, NULL);
    values[EPCTX_OPTION_CONTEXT_ENABLE] = "1";
    values[EPCTX_OPTION_CONTEXT_FILE_PATH] = opts->context_file_path;
    values[EPCTX_OPTION_CONTEXT_EMBED_MODE] = opts->embed ? "1" : "0";
    values[EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX] = opts->name_prefix;
    values[EPCTX_OPTION_SHARE_EP_CONTEXTS] = opts->workspace != NULL ? "1" : "0";
    values[EPCTX_OPTION_OVERWRITE] = opts->overwrite ? "1" : "0";
    values[EPCTX_OPTION_DISABLE_CPU_FALLBACK] = opts->require_all ? "1" : "0";
    values[EPCTX_OPTION_EXTERNAL_INITIALIZERS_FILE] = opts->initializers_file_name;
    values[EPCTX_OPTION_NO_NODES] = no_nodes[opts->no_nodes];
    values[EPCTX_OPTION_COMPILE_ONLY] = opts->prepare_only ? "1" : "0";
    values[EPCTX_OPTION_WEIGHTLESS] = opts->weightless == EPCTX_WEIGHTLESS_ALL ? "1" : NULL;
    values[EPCTX_OPTION_WEIGHTLESS_NODES] =
        opts->weightless == EPCTX_WEIGHTLESS_EXTERNAL_ONLY ? "1" : NULL;
    return options;
}

/* Another value of epctx__gen_planned.take, beside EPCTX__BESIDE and EPCTX__SPLIT (>>partition):
 * nobody needs the results of this node. It disappears, because its partition would have no
 * output. */
#define EPCTX__UNREAD 4

/* What a session is given; nothing changes it. */
typedef struct epctx__gen_in {
    epctx_model *model; /* edited when the result is made */
    const epctx_backend *backend;
    const epctx_gen_opts *opts;
    epctx_options options;   /* the same as session options */
    const epctx__lent *lent; /* the group's context; NULL: its own */
    const char *binary;      /* name of the group's binary; NULL: no session has named it */
    epctx_arena *arena;
    epctx_error *error;
} epctx__gen_in;

/* What is decided before anything is compiled. */
typedef struct epctx__gen_planned {
    epctx_graph graph;
    uint8_t *take; /* 0: not taken; 1: compiled; EPCTX__BESIDE, EPCTX__SPLIT, EPCTX__UNREAD */
    epctx_partition *parts;
    size_t part_count;
    size_t other_nodes;
    bool derived;        /* the EPContext model has the default name */
    const char *binary;  /* name of the binary in the nodes, or NULL */
    const char **inputs; /* files of the source and of other EPs */
    size_t input_count;
    uint64_t source_hash;
    char context_path[EPCTX_PATH_MAX];
    char binary_path[EPCTX_PATH_MAX];       /* empty when embedded */
    char initializers_path[EPCTX_PATH_MAX]; /* empty when all stay inside */
} epctx__gen_planned;

/* What is made, according to a plan. */
typedef struct epctx__gen {
    const epctx__gen_in *in;
    const epctx__gen_planned *plan;
    epctx_gen_report *report;
    epctx_ep ep;
    epctx_buffer initializers; /* the file of initializers: epctx_span of gap, tensor, gap, ... */
    epctx_map inside;          /* names of those that ORT reads in the model only */
} epctx__gen;

static epctx_status epctx__gen_context_path(const epctx__gen_in *in, epctx__gen_planned *plan) {
    const epctx_io *io = in->opts->memory == NULL ? epctx_model_io(in->model) : NULL;
    const char *path = in->model->path, *given = in->opts->context_file_path;
    epctx_str wanted = epctx_str_of(given);
    char name[EPCTX_PATH_MAX];
    bool folder;
    if (in->opts->memory != NULL && path[0] == '\0') path = "model.onnx";
    if (in->options.profile != NULL)
        EPCTX__TRY(epctx__context_folder(in->options.profile, io, &given, in->arena, in->error));
    folder = given != in->opts->context_file_path;
    plan->derived = wanted.size == 0 || folder;
    EPCTX__TRY(epctx__options_check(&in->options, EPCTX_PHASE_GENERATE, path, folder, in->error));
    if (plan->derived) {
        EPCTX__TRY(epctx_path_context_model(epctx_str_of(path), name, sizeof name, in->error));
        wanted = folder ? epctx_path_file(epctx_str_of(name)) : epctx_str_of(name);
    }
    return epctx_path_join(epctx_str_of(folder ? given : ""), wanted, plan->context_path,
                           sizeof plan->context_path, in->error);
}

static bool epctx__is_ep_record(const epctx_node *node) {
    return epctx_str_is(node->op_type, EPCTX_OP_TYPE) && epctx_str_is(node->domain, EPCTX_DOMAIN);
}

/* An EPContext node of this EP: the model is already compiled, which ORT refuses. Another EP's
 * stays, and its binary must be beside the new model. */
static epctx_status epctx__gen_source_node(const epctx__gen_in *in, epctx__gen_planned *plan,
                                           const epctx_node *node) {
    const epctx_model *model = in->model;
    const epctx_io *io = epctx_model_io(model);
    char from[EPCTX_PATH_MAX];
    char to[EPCTX_PATH_MAX];
    epctx_epnode ep;
    epctx_status status;
    if (!epctx_str_is(node->op_type, EPCTX_OP_TYPE)) return EPCTX_OK;
    if (!epctx__is_ep_record(node)) {
        return epctx_fail(in->error, EPCTX_ERR_GRAPH,
                          "is EPContext in domain '%S', expected com.microsoft", &node->domain);
    }
    EPCTX__TRY(epctx_epnode_from_record(node, &ep, in->error));
    if (ep.source.size == 0 || epctx_str_is(ep.source, in->backend->source)) {
        return epctx_fail(in->error, EPCTX_ERR_GRAPH,
                          "is an EPContext node of source '%S': the model is compiled already",
                          &ep.source);
    }
    plan->other_nodes++;
    if (in->opts->memory != NULL || ep.embed_mode != 0 || ep.ep_cache_context.size == 0)
        return EPCTX_OK;
    status = epctx_path_find(io, epctx_path_folder(epctx_str_of(plan->context_path)),
                             ep.ep_cache_context, model->path_flags, to, sizeof to, in->error);
    if (model->path[0] != '\0' &&
        epctx_path_find(io, epctx_path_folder(epctx_str_of(model->path)), ep.ep_cache_context,
                        model->path_flags, from, sizeof from, NULL) == EPCTX_OK &&
        (status != EPCTX_OK || strcmp(from, to) != 0)) {
        epctx_error_clear(in->error);
        return epctx_fail(in->error, EPCTX_ERR_PATH,
                          "needs '%S' beside the model, which another EP made: write the new model "
                          "into the folder of the source",
                          &ep.ep_cache_context);
    }
    EPCTX__TRY(status);
    EPCTX__TRY(io->canonical_fn(io->user, to, from, sizeof from, in->error));
    return epctx__copy(in->arena, epctx_str_of(from), &plan->inputs[plan->input_count++],
                       in->error);
}

static epctx_status epctx__gen_source(const epctx__gen_in *in, epctx__gen_planned *plan) {
    const epctx__file *file;
    size_t most, i;
    EPCTX__TRY(epctx_model_load_graph(in->model, &plan->graph, in->error));
    EPCTX__TRY(epctx__editable(in->model, in->error));
    EPCTX__TRY(epctx__gen_context_path(in, plan));
    most = plan->graph.node_count;
    for (file = in->model->files; file != NULL; file = file->next) most++;
    EPCTX__NEW(plan->inputs, const char *, most, in->arena, in->error);
    for (file = in->model->files; file != NULL; file = file->next)
        plan->inputs[plan->input_count++] = file->path;
    for (i = 0; i < plan->graph.node_count; i++) {
        epctx_status status = epctx__gen_source_node(in, plan, &plan->graph.nodes[i]);
        epctx_blame(in->error, in->model->path, &plan->graph.nodes[i].name, NULL);
        EPCTX__TRY(status);
    }
    return EPCTX_OK;
}

/* Names of what goes into memory: as they would be beside the model. */
static epctx_status epctx__gen_names(const epctx__gen_in *in, epctx__gen_planned *plan) {
    const char *initializers_name = in->opts->initializers_file_name;
    epctx_str binary = epctx_str_of(in->opts->binary);
    epctx_str initializers = epctx_str_of(initializers_name); /* the options are checked */
    if (initializers.size > 0)
        EPCTX__TRY(epctx__path_join(plan->initializers_path, sizeof plan->initializers_path,
                                    &initializers, 1, in->error));
    if (in->opts->embed) return EPCTX_OK;
    if (binary.size > 0) {
        EPCTX__TRY(epctx_path_check(binary, in->error));
        EPCTX__TRY(
            epctx__path_join(plan->binary_path, sizeof plan->binary_path, &binary, 1, in->error));
    } else {
        EPCTX__TRY(epctx_path_binary(epctx_str_of(plan->context_path),
                                     epctx_str_of(in->backend->short_name), plan->binary_path,
                                     sizeof plan->binary_path, in->error));
    }
    plan->binary = plan->binary_path;
    return epctx_str_is(initializers, plan->binary)
               ? epctx_fail(in->error, EPCTX_ERR_PATH,
                            "the binary and the initializers would both be '%s': change one of the "
                            "names",
                            plan->binary)
               : EPCTX_OK;
}

static epctx_status epctx__gen_paths(const epctx__gen_in *in, epctx__gen_planned *plan) {
    epctx_preflight_in ask;
    epctx_outputs out;
    memset(&ask, 0, sizeof ask);
    ask.io = epctx_model_io(in->model);
    ask.model_path = in->model->path;
    ask.inputs = plan->inputs;
    ask.input_count = plan->input_count;
    ask.short_name = in->backend->short_name;
    ask.binary = in->binary != NULL ? in->binary : in->opts->binary;
    ask.binary_joined = in->binary != NULL;
    EPCTX__TRY(epctx_preflight(&in->options, &ask, in->arena, &out, in->error));
    /* Paths of the preflight fit. */
    if (out.binary != NULL) {
        memcpy(plan->binary_path, out.binary, strlen(out.binary) + 1);
        plan->binary = epctx_str_of(ask.binary).size > 0
                           ? ask.binary
                           : epctx_path_file(epctx_str_of(out.binary)).data;
    }
    if (out.initializers != NULL)
        memcpy(plan->initializers_path, out.initializers, strlen(out.initializers) + 1);
    return EPCTX_OK;
}

/* Why a node stays on the CPU; `ask`: from the backend, if it can explain. */
static epctx_status epctx__gen_refusal(const epctx__gen_in *in, const epctx__gen_planned *plan,
                                       size_t index, bool ask, epctx_error *error) {
    const epctx_backend *b = in->backend;
    const epctx_node *node = &plan->graph.nodes[index];
    if (plan->take[index] == EPCTX__BESIDE) {
        epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                   "operator %S has only constant inputs and stays beside its reader, which is not "
                   "taken",
                   &node->op_type);
    } else if (plan->take[index] == EPCTX__SPLIT) {
        epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                   "operator %S is one of several nodes that %s takes together, and they do not "
                   "fit into one partition",
                   &node->op_type, b->source);
    } else if (ask && b->explain_fn != NULL) {
        b->explain_fn(b->self, &plan->graph, index, error);
    }
    epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "%s does not take operator %S (domain '%S', opset %d)",
               b->source, &node->op_type, &node->domain, node->version);
    epctx_blame(error, NULL, &node->name, NULL);
    return EPCTX_ERR_UNSUPPORTED;
}

/* Limit on explain_fn calls: each may analyze the whole graph again. */
#define EPCTX__ASKED 200

static void epctx__gen_tell(const epctx__gen_in *in, const epctx__gen_planned *plan) {
    const epctx_hooks *hooks = in->opts->hooks;
    epctx_error why;
    size_t i;
    int asked = 0;
    for (i = 0; hooks != NULL && hooks->refused_fn != NULL && i < plan->graph.node_count; i++) {
        if ((plan->take[i] == 0 || plan->take[i] == EPCTX__BESIDE ||
             plan->take[i] == EPCTX__SPLIT) &&
            !epctx__is_ep_record(&plan->graph.nodes[i])) {
            epctx_error_clear(&why);
            epctx__gen_refusal(in, plan, i, asked++ < EPCTX__ASKED, &why);
            hooks->refused_fn(hooks->user, &plan->graph.nodes[i], &why);
        }
    }
}

static epctx_status epctx__gen_infer(const epctx__gen_in *in, epctx__gen_planned *plan) {
    const epctx_backend *b = in->backend;
    epctx_value *inferred = NULL;
    epctx_value *all;
    size_t known = plan->graph.value_count;
    size_t count = 0;
    if (b->infer_fn != NULL)
        EPCTX__TRY(b->infer_fn(b->self, &plan->graph, in->arena, &inferred, &count, in->error));
    if (count == 0) return EPCTX_OK;
    EPCTX__NEW(all, epctx_value, known + count, in->arena, in->error);
    if (known > 0) memcpy(all, plan->graph.values, known * sizeof *all);
    memcpy(all + known, inferred, count * sizeof *all);
    plan->graph.values = all;
    plan->graph.value_count = known + count;
    return EPCTX_OK;
}

/* Sets `unread` of the nodes that are taken and on which no output and no other node depends. */
static epctx_status epctx__gen_unread(const epctx__gen_in *in, const epctx__gen_planned *plan,
                                      uint8_t *unread) {
    const epctx_graph *graph = &plan->graph;
    epctx_map read;
    size_t i, k;
    epctx_map_init(&read, in->arena);
    for (i = 0; i < graph->output_count; i++)
        EPCTX__TRY(epctx__map_set(&read, graph->outputs[i].name, 1, in->error));
    for (i = graph->node_count; i-- > 0;) { /* sorted: readers come later */
        const epctx_node *node = &graph->nodes[i];
        unread[i] = plan->take[i] != 0;
        for (k = 0; k < node->output_count && unread[i] != 0; k++)
            unread[i] = node->outputs[k].size == 0 || !epctx__has(&read, node->outputs[k]);
        for (k = 0; unread[i] == 0 && k < epctx__read_count(node); k++)
            EPCTX__TRY(epctx__map_set(&read, epctx__reads(node, k), 1, in->error));
    }
    return EPCTX_OK;
}

static epctx_status epctx__gen_partition(const epctx__gen_in *in, epctx__gen_planned *plan) {
    const epctx_graph *graph = &plan->graph;
    const size_t count = graph->node_count;
    const uint8_t *stays = NULL;
    uint8_t *unread;
    uint32_t *units;
    size_t left = 0; /* the first node that is not taken */
    size_t i;
    epctx_error why;
    EPCTX__NEW(plan->take, uint8_t, count, in->arena, in->error);
    EPCTX__TRY(epctx__gen_infer(in, plan));
    EPCTX__TRY(in->backend->capability_fn(in->backend->self, graph, plan->take, in->error));
    for (i = 0; i < count; i++)
        if (epctx_str_is(graph->nodes[i].op_type, EPCTX_OP_TYPE)) plan->take[i] = 0;
    EPCTX__NEW(unread, uint8_t, count, in->arena, in->error);
    EPCTX__TRY(epctx__gen_unread(in, plan, unread));
    for (i = 0; i < count; i++)
        if (unread[i] != 0) plan->take[i] = 0;
    EPCTX__TRY(epctx__backend_rules(in->backend, graph, plan->take, in->arena, &units, in->error));
    for (i = 0; i < count && units != NULL; i++)
        if (unread[i] != 0) units[i] = 0; /* it goes anyway */
    EPCTX__TRY(epctx__partition(graph, plan->take, units, in->backend->most_nodes, in->arena,
                                &plan->parts, &plan->part_count, &stays, in->error));
    for (i = 0; i < count; i++)
        plan->take[i] = unread[i] != 0  ? EPCTX__UNREAD
                        : stays[i] != 0 ? stays[i]
                                        : plan->take[i] != 0;
    epctx__gen_tell(in, plan);
    while (left < count && (plan->take[left] != 0 || epctx__is_ep_record(&graph->nodes[left])))
        left++;
    if (in->opts->require_all && left < count)
        return epctx__gen_refusal(in, plan, left, true, in->error);
    if (plan->part_count > 0 || in->opts->no_nodes != EPCTX_NO_NODES_ERROR) return EPCTX_OK;
    epctx_error_clear(&why);
    if (left < count) epctx__gen_refusal(in, plan, left, true, &why);
    return epctx_fail(in->error, EPCTX_ERR_NO_NODES, "%s compiles none of the %u nodes%s%s",
                      in->backend->source, (uint64_t)count, why.message[0] != '\0' ? ": " : "",
                      why.message);
}

static void epctx__hash_files(epctx_model *model) {
    epctx__file *file;
    for (file = model->files; file != NULL; file = file->next)
        if (file->stamp == 0) file->stamp = epctx_hash(file->mapping.data, file->mapping.size, 0);
}

/* Everything that can be decided, and can go wrong, without compiling. */
static epctx_status epctx__gen_plan(const epctx__gen_in *in, epctx__gen_planned *plan) {
    epctx_status status;
    EPCTX__TRY(epctx__gen_source(in, plan));
    EPCTX__TRY(in->opts->memory != NULL ? epctx__gen_names(in, plan) : epctx__gen_paths(in, plan));
    status = epctx__gen_partition(in, plan);
    if (status == EPCTX_OK && plan->part_count > 0) {
        /* After compiling, the files would have to be read into memory again. */
        plan->source_hash = epctx_hash(in->model->bytes.data, in->model->bytes.size, 0);
        epctx__hash_files(in->model);
    }
    epctx_blame(in->error, status == EPCTX_OK ? NULL : in->model->path, NULL, NULL);
    return status;
}

/* The source's name in weightless nodes: relative if it is beside the EPContext model or below,
 * else only its file name, so no path of this machine is stored. */
static epctx_status epctx__gen_source_name(epctx__gen *g, const char **out) {
    const epctx_io *io = epctx_model_io(g->in->model);
    const char *path = g->in->model->path;
    char beside[EPCTX_PATH_MAX];
    char source[EPCTX_PATH_MAX];
    epctx_str name;
    if (path[0] == '\0' || g->in->opts->memory != NULL ||
        epctx__path_place(io, g->report->context_path, beside, NULL) != EPCTX_OK ||
        io->canonical_fn(io->user, path, source, sizeof source, NULL) != EPCTX_OK ||
        epctx_path_relative(epctx_path_folder(epctx_str_of(beside)), epctx_str_of(source), &name,
                            NULL) != EPCTX_OK)
        name = epctx_path_file(epctx_str_of(path));
    if (name.size > 0) EPCTX__TRY(epctx_path_check(name, g->in->error)); /* else loading fails */
    return epctx__copy(g->in->arena, name, out, g->in->error);
}

static epctx_status epctx__gen_compile(epctx__gen *g) {
    epctx_gen_report *r = g->report;
    const epctx_graph **pieces;
    epctx_ep_opts how;
    epctx__job job;
    size_t i, k, count;
    memset(&how, 0, sizeof how);
    memset(&job, 0, sizeof job);
    EPCTX__NEW(pieces, const epctx_graph *, g->plan->part_count, g->in->arena, g->in->error);
    for (i = 0; i < g->plan->part_count; i++) pieces[i] = &g->plan->parts[i].graph;
    if (g->in->opts->weightless != EPCTX_WEIGHTLESS_NONE)
        EPCTX__TRY(epctx__gen_source_name(g, &how.source_model));
    how.name_prefix = g->in->opts->name_prefix;
    how.model_hash = epctx_graph_hash(&g->plan->graph);
    how.embed = g->in->opts->embed;
    how.binary = g->plan->binary;
    how.prepare_only = g->in->opts->prepare_only;
    how.weightless = g->in->opts->weightless;
    how.hooks = g->in->opts->hooks;
    how.allocator = g->in->opts->allocator;
    job.backend = g->in->backend;
    job.opts = &how;
    job.lent = g->in->lent;
    job.pieces = pieces;
    job.count = g->plan->part_count;
    job.verify = g->in->opts->verify;
    EPCTX__TRY(epctx__ep_run(&g->ep, &job, g->in->arena, g->in->error));
    r->nodes = epctx_ep_context_nodes(&g->ep, &count);
    r->max_size = g->ep.max_size;
    for (i = 0; i < g->plan->part_count; i++) {
        for (k = 0; k < g->plan->parts[i].graph.initializer_count; k++) {
            const epctx_tensor *t = &g->plan->parts[i].graph.initializers[k];
            bool outside = epctx__stays_outside(t, g->ep.opts.weightless);
            r->outside_count += outside;
            r->outside_size += outside ? t->size : 0;
        }
    }
    return EPCTX_OK;
}

/* -- the rewrite of the model -- */

/* Uses of a name in the new graph. */
#define EPCTX__USED  1u /* read, or an output */
#define EPCTX__MADE  2u /* produced */
#define EPCTX__INPUT 4u /* a run-time input: all of them stay */
#define EPCTX__TYPED 8u /* has a type */

typedef struct epctx__rewrite {
    epctx__gen *g;
    epctx_slot **slots; /* position in the source -> the node's slot */
    uint32_t *item;     /* node -> partition, part_count + node if it stays, or EPCTX__GONE */
    epctx_map marks;    /* name -> EPCTX__USED ... */
} epctx__rewrite;

#define EPCTX__GONE UINT32_MAX

static bool epctx__is_marked(const epctx__rewrite *w, epctx_str name, uint32_t marks) {
    uint32_t is = epctx_map_get(&w->marks, name);
    return is != EPCTX_MAP_NONE && (is & marks) != 0;
}

static epctx_status epctx__mark(epctx__rewrite *w, epctx_str name, uint32_t mark) {
    uint32_t is = epctx_map_get(&w->marks, name);
    if (name.size == 0 || (is != EPCTX_MAP_NONE && (is & mark) != 0))
        return EPCTX_OK; /* empty name: an absent optional value */
    return epctx__map_set(&w->marks, name, is != EPCTX_MAP_NONE ? is | mark : mark,
                          w->g->in->error);
}

static epctx_status epctx__mark_node(epctx__rewrite *w, const epctx_node *node) {
    size_t k;
    for (k = 0; k < epctx__read_count(node); k++)
        EPCTX__TRY(epctx__mark(w, epctx__reads(node, k), EPCTX__USED));
    for (k = 0; k < node->output_count; k++)
        EPCTX__TRY(epctx__mark(w, node->outputs[k], EPCTX__MADE));
    return EPCTX_OK;
}

/* Nodes outside partitions stay, constants only if still read. Backwards, so that chains of
 * constants go together. */
static epctx_status epctx__rewrite_items(epctx__rewrite *w) {
    epctx__gen *g = w->g;
    const epctx_graph *graph = &g->plan->graph;
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) w->item[i] = (uint32_t)(g->plan->part_count + i);
    for (i = 0; i < g->plan->part_count; i++) {
        for (k = 0; k < g->plan->parts[i].node_count; k++)
            w->item[g->plan->parts[i].nodes[k]] = (uint32_t)i;
        EPCTX__TRY(epctx__mark_node(w, &g->report->nodes[i]));
    }
    for (i = 0; i < graph->output_count; i++)
        EPCTX__TRY(epctx__mark(w, graph->outputs[i].name, EPCTX__USED));
    for (i = graph->node_count; i-- > 0;) {
        const epctx_node *node = &graph->nodes[i];
        bool read = false;
        if (w->item[i] < g->plan->part_count) continue;
        for (k = 0; k < node->output_count; k++)
            read = read || epctx__is_marked(w, node->outputs[k], EPCTX__USED);
        /* take != 0: a constant that the partitions have copied, or EPCTX__UNREAD */
        if (!read && g->plan->take[i] != 0)
            w->item[i] = EPCTX__GONE;
        else
            EPCTX__TRY(epctx__mark_node(w, node));
    }
    return EPCTX_OK;
}

/* The items of the new graph, producers before readers. */
static epctx_status epctx__rewrite_order(epctx__rewrite *w, uint32_t **sequence, size_t *count) {
    epctx__gen *g = w->g;
    epctx__recording l = epctx__recording_of(g->in->model, g->in->arena, g->in->error);
    size_t items = g->plan->part_count + g->plan->graph.node_count;
    size_t kept = 0;
    epctx__edges edges;
    uint32_t *key;
    bool sorted;
    size_t i;
    EPCTX__NEW(*sequence, uint32_t, items, g->in->arena, g->in->error);
    EPCTX__NEW(key, uint32_t, items, g->in->arena, g->in->error);
    EPCTX__TRY(epctx__node_edges(&l, &g->plan->graph, &edges, &sorted));
    for (i = 0; i < edges.count; i++) {
        uint32_t from = w->item[edges.from[i]];
        uint32_t to = w->item[edges.to[i]];
        if (from != to && from != EPCTX__GONE && to != EPCTX__GONE) {
            edges.from[kept] = from;
            edges.to[kept++] = to;
        }
    }
    edges.count = kept;
    for (i = 0; i < items; i++) key[i] = EPCTX__NO_ITEM;
    /* A partition replaces its last node: its producers precede that. */
    for (i = 0; i < g->plan->graph.node_count; i++) {
        uint32_t item = w->item[i];
        if (item != EPCTX__GONE &&
            (key[item] == EPCTX__NO_ITEM || key[item] < g->plan->graph.nodes[i].id))
            key[item] = g->plan->graph.nodes[i].id;
    }
    return epctx__sort_items(g->in->arena, g->in->error, key, items, &edges, *sequence, count);
}

static epctx_status epctx__drop(epctx__rewrite *w, epctx_slot *slot) {
    return epctx_edit_remove(w->g->in->model, epctx__slot_view(slot), w->g->in->error);
}

/* ONNX Runtime loads no model with two nodes of one name. */
static epctx_status epctx__rewrite_names(const epctx__rewrite *w) {
    const epctx__gen *g = w->g;
    epctx_map names;
    size_t i;
    epctx_map_init(&names, g->in->arena);
    for (i = 0; i < g->plan->part_count; i++)
        EPCTX__TRY(epctx__map_set(&names, g->report->nodes[i].name, 1, g->in->error));
    for (i = 0; i < g->plan->graph.node_count; i++) {
        const epctx_node *node = &g->plan->graph.nodes[i];
        if (w->item[i] < g->plan->part_count || w->item[i] == EPCTX__GONE ||
            !epctx__has(&names, node->name))
            continue;
        epctx_fail(g->in->error, EPCTX_ERR_GRAPH,
                   "has the name of an EPContext node of %s: rename it, or set "
                   "ep.context_node_name_prefix",
                   g->in->backend->source);
        epctx_blame(g->in->error, g->in->model->path, &node->name, NULL);
        return EPCTX_ERR_GRAPH;
    }
    return EPCTX_OK;
}

/* Orders the node fields: nodes that keep their relative place are not touched, others move,
 * partitions are added. */
static epctx_status epctx__rewrite_nodes(epctx__rewrite *w) {
    epctx__gen *g = w->g;
    epctx_model *model = g->in->model;
    epctx_slot *previous = NULL;
    epctx_slot *slot;
    uint32_t *sequence;
    size_t kept = 0; /* source position after the last node left in place */
    size_t count = 0;
    size_t i;
    EPCTX__TRY(epctx__rewrite_order(w, &sequence, &count));
    for (i = 0; i < g->plan->graph.node_count; i++) {
        if (w->item[i] < g->plan->part_count || w->item[i] == EPCTX__GONE) {
            EPCTX__TRY(epctx__drop(w, w->slots[g->plan->graph.nodes[i].id]));
            g->report->compiled_nodes++;
        } else if (!epctx__is_ep_record(&g->plan->graph.nodes[i])) {
            g->report->cpu_nodes++;
        }
    }
    /* New nodes before the first old one go in front of the first node field. */
    for (slot = model->graph->message->first; slot != NULL && slot != w->slots[0];
         slot = slot->next)
        previous = slot;
    for (i = 0; i < count; i++) {
        epctx__builder b = epctx__builder_of(model, g->in->error);
        uint32_t item = sequence[i];
        uint32_t at =
            item < g->plan->part_count ? 0 : g->plan->graph.nodes[item - g->plan->part_count].id;
        if (item < g->plan->part_count) {
            slot = epctx__build_node(&b, NULL, EPCTX_FIELD_GRAPH_NODE, &g->report->nodes[item]);
        } else if (at >= kept) {
            kept = (size_t)at + 1;
            previous = w->slots[at];
            continue;
        } else { /* moved: a new slot for the same bytes */
            slot = epctx__clone(&b, NULL, w->slots[at]);
            if (slot != NULL) EPCTX__TRY(epctx__drop(w, w->slots[at]));
        }
        EPCTX__TRY(epctx__place(&b, model->graph, previous, slot));
        previous = slot;
    }
    return EPCTX_OK;
}

/* Removes unneeded fields about values, each kind by its own marks. Annotations come first: they
 * use the parameters they name. Initializers that make an input optional stay; inputs that only
 * named an initializer (IR version < 4) go. */
static epctx_status epctx__rewrite_fields(epctx__rewrite *w) {
    static const struct {
        uint32_t number, name, marks;
    } fields[] = {
        {EPCTX_FIELD_GRAPH_QUANTIZATION_ANNOTATION, EPCTX_FIELD_ANNOTATION_TENSOR_NAME,
         EPCTX__USED | EPCTX__INPUT | EPCTX__MADE},
        {EPCTX_FIELD_GRAPH_INITIALIZER, EPCTX_FIELD_TENSOR_NAME, EPCTX__USED | EPCTX__INPUT},
        {EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER, EPCTX_FIELD_TENSOR_NAME, EPCTX__USED | EPCTX__INPUT},
        {EPCTX_FIELD_GRAPH_INPUT, EPCTX_FIELD_VALUE_NAME, EPCTX__USED | EPCTX__INPUT},
        {EPCTX_FIELD_GRAPH_VALUE_INFO, EPCTX_FIELD_VALUE_NAME, EPCTX__USED | EPCTX__MADE}};
    size_t i;
    for (i = 0; i < sizeof fields / sizeof *fields; i++) {
        const uint32_t number = fields[i].number;
        epctx_slot *slot = epctx__live(w->g->in->model->graph->message->first, number);
        for (; slot != NULL; slot = epctx__live(slot->next, number)) {
            epctx_view annotation;
            epctx_str name = epctx_str_of(NULL);
            epctx_view named;
            epctx_pair pair;
            epctx_cursor it;
            annotation = epctx__slot_view(slot);
            named = annotation;
            it = epctx_view_fields(named, EPCTX_FIELD_SPARSE_VALUES);
            if (number == EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER && !epctx_next_view(&it, &named))
                continue; /* its values would have the name */
            it = epctx_view_fields(named, fields[i].name);
            while (epctx_next_str(&it, &name)) { /* the last one counts */
            }
            if (!epctx__is_marked(w, name, fields[i].marks)) {
                EPCTX__TRY(epctx__drop(w, slot));
            } else if (number == EPCTX_FIELD_GRAPH_VALUE_INFO) {
                (void)epctx__mark(w, name, EPCTX__TYPED); /* its mark changes */
            } else if (number == EPCTX_FIELD_GRAPH_QUANTIZATION_ANNOTATION) {
                it = epctx_view_fields(annotation,
                                       EPCTX_FIELD_ANNOTATION_QUANT_PARAMETER_TENSOR_NAMES);
                while (epctx_next_pair(&it, &pair))
                    EPCTX__TRY(epctx__mark(w, pair.value, EPCTX__USED));
            }
        }
    }
    return EPCTX_OK;
}

/* Adds missing value_info of EPContext outputs, as ORT has no shape inference for them. */
static epctx_status epctx__rewrite_values(epctx__rewrite *w) {
    epctx__gen *g = w->g;
    size_t i, k;
    for (i = 0; i < g->plan->part_count; i++) {
        const epctx_graph *part = &g->plan->parts[i].graph;
        const epctx_value *types = g->ep.pieces[i].types;
        for (k = 0; k < part->output_count; k++) {
            const epctx_value *value = &part->outputs[k];
            value = types != NULL && types[k].elem_type != 0 ? &types[k] : value;
            if (value->elem_type == 0) {
                return epctx_fail(g->in->error, EPCTX_ERR_UNSUPPORTED,
                                  "output '%S' of a partition has no type: run shape inference on "
                                  "the model, or give the backend infer_fn or types_fn (those of "
                                  "epctx_npu_init will do)",
                                  &value->name);
            }
            if (!epctx__is_marked(w, value->name, EPCTX__TYPED)) {
                EPCTX__TRY(epctx_edit_put_value(g->in->model, epctx_view_none(),
                                                EPCTX_FIELD_GRAPH_VALUE_INFO, value,
                                                epctx_view_none(), NULL, g->in->error));
            }
        }
    }
    return EPCTX_OK;
}

/* A tensor of the new model, which must not depend on the source's files (EP-context design):
 * initializers may move out, external data moves in or to the new file. */
static epctx_status epctx__settle_tensor(epctx__gen *g, const epctx_tensor_view *view,
                                         bool initializer) {
    epctx_gen_report *r = g->report;
    bool outside = initializer && r->initializers_path[0] != '\0' &&
                   view->elem_type != EPCTX_ONNX_STRING && !epctx__has(&g->inside, view->name);
    uint64_t at = (r->initializers_size + 63) & ~(uint64_t)63; /* aligned like a cache line */
    epctx_tensor tensor;
    epctx_span parts[2];
    if (!outside && !view->external) return EPCTX_OK;
    EPCTX__TRY(
        epctx_model_load_tensor(g->in->model, view->view, g->in->arena, &tensor, g->in->error));
    parts[0] = epctx__span(NULL, (size_t)(at - r->initializers_size));
    parts[1] = epctx__span(tensor.data, tensor.size);
    if (!outside || tensor.size == 0 || tensor.size < g->in->opts->initializers_min_size) {
        return view->external
                   ? epctx_edit_set_tensor_raw(g->in->model, view->view, parts[1], g->in->error)
                   : EPCTX_OK;
    }
    if (epctx_buffer_append(&g->initializers, parts, sizeof parts) != EPCTX_OK)
        return epctx__nomem(g->in->error, g->in->arena->missing);
    r->initializers_size = at + tensor.size;
    return epctx_edit_set_tensor_external(g->in->model, view->view,
                                          epctx_str_of(g->in->opts->initializers_file_name), at,
                                          tensor.size, g->in->error);
}

static bool epctx__has_ep(const epctx__gen *g, epctx_str ep) {
    const epctx_profile *profile = epctx_profile_of(ep);
    bool known = (profile->traits & EPCTX_TRAIT_ANY_EP) == 0;
    size_t i;
    if (epctx_str_is(ep, g->in->backend->source)) return g->plan->part_count > 0;
    for (i = 0; i < g->plan->graph.node_count; i++) {
        const epctx_node *node = &g->plan->graph.nodes[i];
        const epctx_attr *source =
            epctx__is_ep_record(node) ? epctx_node_attr(node, "source") : NULL;
        if (source != NULL &&
            (epctx_str_eq(source->s, ep) || (known && epctx_profile_of(source->s) == profile)))
            return true;
    }
    return false;
}

/* Removes metadata of EPs without a node in the new model. */
static epctx_status epctx__rewrite_metadata(epctx__rewrite *w) {
    static const char *const prefixes[] = {EPCTX_COMPAT_PREFIX, EPCTX_BUILD_PREFIX};
    const uint32_t number = EPCTX_FIELD_MODEL_METADATA_PROPS;
    epctx_slot *slot = epctx__live(w->g->in->model->root->message->first, number);
    size_t i;
    for (; slot != NULL; slot = epctx__live(slot->next, number)) {
        epctx_str key = epctx_view_as_pair(epctx__slot_view(slot)).key;
        for (i = 0; i < 2; i++) {
            epctx_str ep = key;
            if (epctx_str_starts(key, prefixes[i])) {
                epctx__str_skip(&ep, strlen(prefixes[i]));
                EPCTX__TRY(epctx__has_ep(w->g, ep) ? EPCTX_OK : epctx__drop(w, slot));
            }
        }
    }
    return EPCTX_OK;
}

/* Hash of the options that change what is compiled, not where it goes (embed mode, file names),
 * which may change later. */
static uint64_t epctx__options_hash(const epctx_gen_opts *o) {
    uint64_t h = epctx__hash_number(0, 1); /* version of this list */
    h = epctx__hash_number(h, (uint64_t)o->require_all | (uint64_t)o->prepare_only << 1 |
                                  (uint64_t)o->weightless << 2);
    h = epctx__hash_str(h, epctx_str_of(o->name_prefix));
    h = epctx__hash_str(h, epctx_str_of(o->build_options));
    return epctx__hash_number(h, 0);
}

/* Opset import, the metadata that ORT reads before it loads the model, and the build stamp. */
static epctx_status epctx__gen_metadata(epctx__gen *g) {
    const epctx_backend *b = g->in->backend;
    const epctx_model *model = g->in->model;
    const epctx__file *file;
    epctx__stamp_text s;
    size_t size =
        strlen(b->source) + strlen(b->sdk_version) + strlen(b->hardware_architecture) + 64;
    char *text;
    EPCTX__TRY(epctx_edit_put_opset(g->in->model, epctx_str_of(EPCTX_DOMAIN), 1, g->in->error));
    EPCTX__NEW(text, char, size, g->in->arena, g->in->error);
    (void)epctx_backend_compatibility(b, text, size, g->in->error); /* it fits */
    EPCTX__TRY(epctx__ep_metadata(g->in->model, EPCTX_COMPAT_PREFIX, b->source, epctx_str_of(text),
                                  g->in->error));
    epctx__stamp_begin(&s, g->in->arena);
    epctx__stamp_put_format(&s);
    epctx__stamp_put_file(&s, "source", model->bytes.size, g->plan->source_hash,
                          epctx_path_file(epctx_str_of(model->path)));
    epctx__hash_files(g->in->model); /* the others */
    for (file = model->files; file != NULL; file = file->next)
        epctx__stamp_put_file(&s, "data", file->mapping.size, file->stamp, file->name);
    epctx__stamp_put_word(&s, "options");
    epctx__stamp_put_number(&s, epctx__options_hash(g->in->opts), true);
    if (g->in->opts->tools != NULL) {
        epctx__stamp_put_known(&s, "machine", g->in->opts->tools->machine, epctx_str_of(NULL));
        EPCTX__TRY(epctx__stamp_put_libraries(&s, epctx_model_io(model),
                                              g->in->opts->tools->libraries, g->in->error));
    }
    epctx__stamp_put_target(&s, epctx_str_of(b->sdk_version),
                            epctx_str_of(b->hardware_architecture));
    /* A group's last session adds its binary: epctx__pending_edit. */
    if (g->in->lent == NULL) epctx__stamp_put_binary(&s, epctx_ep_binary(&g->ep), g->ep.count);
    return epctx__stamp_write(&s, g->in->model, b->source, g->in->error);
}

static epctx_status epctx__gen_rewrite(epctx__gen *g) {
    const uint32_t number = EPCTX_FIELD_GRAPH_NODE;
    epctx_slot *slot = epctx__live(g->in->model->graph->message->first, number);
    epctx_tensor_view tensor;
    epctx_walk walk;
    epctx__rewrite w;
    size_t nodes = 0;
    size_t i;
    w.g = g;
    epctx_map_init(&w.marks, g->in->arena);
    EPCTX__NEW(w.item, uint32_t, g->plan->graph.node_count, g->in->arena, g->in->error);
    EPCTX__NEW(w.slots, epctx_slot *, g->plan->graph.node_count, g->in->arena, g->in->error);
    for (; slot != NULL; slot = epctx__live(slot->next, number)) w.slots[nodes++] = slot;
    for (i = 0; i < g->plan->graph.input_count; i++)
        EPCTX__TRY(epctx__mark(&w, g->plan->graph.inputs[i].name, EPCTX__INPUT));
    for (i = 0; i < g->plan->graph.output_count; i++)
        if (g->plan->graph.outputs[i].elem_type != 0)
            EPCTX__TRY(epctx__mark(&w, g->plan->graph.outputs[i].name, EPCTX__TYPED));
    EPCTX__TRY(epctx__rewrite_items(&w));
    EPCTX__TRY(epctx__rewrite_names(&w));
    EPCTX__TRY(epctx__rewrite_nodes(&w));
    EPCTX__TRY(epctx__rewrite_fields(&w));
    EPCTX__TRY(epctx__rewrite_values(&w));
    EPCTX__TRY(epctx__rewrite_metadata(&w));
    epctx_map_init(&g->inside, g->in->arena);
    if (g->report->initializers_path[0] != '\0')
        EPCTX__TRY(epctx_model_shape_names(g->in->model, &g->inside, g->in->error));
    /* Every tensor except training's: initializers of bodies, constants, sparse tensors. */
    g->in->model->external_asked = 0;
    epctx_walk_begin(&walk, g->in->model);
    while (epctx_walk_tensor(&walk, &tensor) && !walk.in_training) {
        bool initializer = walk.levels[walk.level - 1].kind == EPCTX_KIND_GRAPH;
        EPCTX__TRY(epctx__settle_tensor(g, &tensor, initializer));
    }
    if (g->initializers.size == 0) g->report->initializers_path[0] = '\0'; /* no initializers */
    return g->plan->part_count > 0 ? epctx__gen_metadata(g) : EPCTX_OK;
}

static epctx_status epctx__gen_put_initializers(const epctx__gen *g, epctx_commit *c,
                                                epctx_output_file *file) {
    if (g->initializers.size == 0) return EPCTX_OK;
    file->path = g->report->initializers_path;
    file->name = g->in->opts->initializers_file_name;
    file->parts = (const epctx_span *)(const void *)g->initializers.data;
    file->part_count = g->initializers.size / sizeof(epctx_span);
    file->size = g->report->initializers_size;
    return epctx_commit_put_file(c, file, epctx__overwrite(g->in->opts->overwrite), g->in->error);
}

static void epctx__gen_report_plan(const epctx__gen_planned *plan, epctx_gen_report *r) {
    r->partition_count = plan->part_count;
    r->other_nodes = plan->other_nodes;
    memcpy(r->context_path, plan->context_path, sizeof r->context_path);
    memcpy(r->initializers_path, plan->initializers_path, sizeof r->initializers_path);
    if (plan->part_count > 0) memcpy(r->binary_path, plan->binary_path, sizeof r->binary_path);
}

/* Everything except writing. report.context_path is empty if there is no model to write. */
static epctx_status epctx__gen_make(const epctx__gen_in *in, epctx__gen_planned *plan,
                                    epctx__gen *g) {
    epctx_gen_report *r = g->report;
    epctx_status status = EPCTX_OK;
    EPCTX__TRY(epctx__gen_plan(in, plan));
    g->in = in;
    g->plan = plan;
    epctx__gen_report_plan(plan, r);
    if (plan->part_count > 0) status = epctx__gen_compile(g);
    epctx_blame(in->error, status == EPCTX_OK ? NULL : in->model->path, NULL, NULL);
    EPCTX__TRY(status);
    if (plan->part_count > 0 || in->opts->no_nodes == EPCTX_NO_NODES_COPY)
        EPCTX__TRY(epctx__gen_rewrite(g));
    else
        r->context_path[0] = '\0';
    EPCTX__TRY(epctx__check_huge(in->model,
                                 in->opts->embed ? "do not embed the context binary"
                                                 : "give initializers a file of their own",
                                 in->error));
    r->binary_size = epctx_ep_binary(&g->ep).size;
    return EPCTX_OK;
}

/* Can the results go where the caller wants them? */
static epctx_status epctx__memory_check(const epctx_gen_opts *opts, epctx_error *error) {
    const epctx_gen_memory *m = opts->memory;
    const char *lacks =
        !opts->embed && m->binary == NULL ? "binary"
        : epctx_str_of(opts->initializers_file_name).size > 0 && m->initializers == NULL
            ? "initializers"
            : NULL;
    if (opts->workspace != NULL)
        return epctx_fail(error, EPCTX_ERR_ARG, "a group writes files: `memory` is not for it");
    return lacks == NULL ? EPCTX_OK
                         : epctx_fail(error, EPCTX_ERR_ARG,
                                      "`memory` has no buffer for the %s: pass one, or %s", lacks,
                                      lacks[0] == 'b' ? "`embed`" : "no initializers_file_name");
}

static void epctx__memory_clear(const epctx_gen_memory *m) {
    if (m->model != NULL) m->model->size = 0;
    if (m->binary != NULL) m->binary->size = 0;
    if (m->initializers != NULL) m->initializers->size = 0;
}

static epctx_status epctx__memory_fill(const epctx__gen *g) {
    const epctx_gen_memory *m = g->in->opts->memory;
    const epctx_span binary = epctx_ep_binary(&g->ep);
    const epctx_span *parts = (const epctx_span *)(const void *)g->initializers.data;
    size_t i;
    if (m->model != NULL) EPCTX__TRY(epctx__buffer_model(m->model, g->in->model, g->in->error));
    if (!g->in->opts->embed && epctx_buffer_append(m->binary, binary.data, binary.size) != EPCTX_OK)
        return epctx__nomem(g->in->error, binary.size);
    for (i = 0; i < g->initializers.size / sizeof *parts; i++)
        if (epctx_buffer_append(m->initializers, parts[i].data, parts[i].size) != EPCTX_OK)
            return epctx__nomem(g->in->error, parts[i].size);
    return EPCTX_OK;
}

static epctx_status epctx__gen_in_memory(const epctx__gen_in *in, epctx__gen_planned *plan,
                                         epctx__gen *g) {
    const epctx_gen_memory *m = in->opts->memory;
    epctx_status status;
    EPCTX__TRY(epctx__memory_check(in->opts, in->error));
    epctx__memory_clear(m);
    EPCTX__TRY(epctx__gen_make(in, plan, g));
    if (g->report->context_path[0] == '\0') return EPCTX_OK;
    status = epctx__memory_fill(g);
    if (status != EPCTX_OK) epctx__memory_clear(m);
    return status;
}

static epctx_status epctx__gen_alone(const epctx__gen_in *in, epctx__gen_planned *plan,
                                     epctx__gen *g) {
    epctx_output_file files[2];
    epctx_write_opts opts;
    epctx_commit c;
    epctx_span binary;
    epctx_status status;
    EPCTX__TRY(epctx__gen_make(in, plan, g));
    if (g->report->context_path[0] == '\0') return EPCTX_OK;
    memset(files, 0, sizeof files);
    memset(&opts, 0, sizeof opts);
    opts.overwrite = epctx__overwrite(in->opts->overwrite);
    opts.derived = plan->derived;
    opts.allow_huge = true;
    opts.lock = in->opts->lock;
    binary = epctx_ep_binary(&g->ep);
    /* not taken: the model has an io */
    EPCTX__TRY(epctx_commit_begin(&c, epctx_model_io(in->model), in->arena, in->error));
    c.hooks = in->opts->hooks;
    EPCTX__TRY(epctx_commit_put_model(&c, in->model, g->report->context_path, &opts, in->error));
    if (!in->opts->embed && plan->part_count > 0) {
        epctx__output_one(&files[0], g->report->binary_path, plan->binary, &binary);
        EPCTX__TRY(epctx_commit_put_file(&c, &files[0], opts.overwrite, in->error));
    }
    EPCTX__TRY(epctx__gen_put_initializers(g, &c, &files[1]));
    status = epctx_commit_run(&c, in->error);
    epctx_commit_close(&c);
    return status;
}

/* -- a session of a group -- */

/* Keeps the session's output until the group is written. Its initializers go into a temporary file
 * now, while its model is open. */
static epctx_status epctx__pending_fill(epctx__group *group, epctx__pending *p,
                                        const epctx__gen *g) {
    p->derived = g->plan->derived;
    p->overwrite = g->in->opts->overwrite;
    EPCTX__TRY(epctx__buffer_model(&p->model, g->in->model, g->in->error));
    if (g->initializers.size == 0) return EPCTX_OK;
    EPCTX__TRY(epctx_commit_set_folder(&group->commit, group->folder, g->in->error));
    EPCTX__TRY(epctx__gen_put_initializers(g, &group->commit, &p->initializers));
    return epctx_commit_fill(&group->commit, g->in->error);
}

static epctx_status epctx__group_session(epctx__group *group, const epctx__gen_in *given,
                                         epctx__gen_planned *plan, epctx__gen *g) {
    const char *initializers_name = given->opts->initializers_file_name;
    epctx__gen_in *in;
    epctx__pending *p;
    epctx_status status;
    EPCTX__NEW(in, epctx__gen_in, 1, given->arena, given->error); /* the result refers to it */
    *in = *given;
    in->lent = &group->context;
    EPCTX__TRY(epctx__gen_context_path(in, plan));
    EPCTX__TRY(epctx__group_accepts(group, plan->context_path, in->error));
    if (group->binary != NULL) {
        EPCTX__TRY(epctx__copy(in->arena, epctx_str_of(group->binary), &in->binary, in->error));
        if (epctx_str_of(initializers_name).size > 0) /* no other session may write it */
            EPCTX__TRY(epctx__group_clash(group, initializers_name, in->error));
    }
    EPCTX__TRY(epctx__gen_make(in, plan, g));
    if (g->report->context_path[0] != '\0') {
        EPCTX__TRY(epctx__pending_make(group, plan->context_path,
                                       g->initializers.size > 0 ? initializers_name : "",
                                       plan->binary, plan->binary_path, &p, in->error));
        status = epctx__pending_fill(group, p, g);
        if (status != EPCTX_OK) {
            epctx_buffer_free(&p->model);
            return status;
        }
        epctx__group_append(group, p);
    }
    group->verify = group->verify || in->opts->verify;
    if (g->report->max_size > group->known.max_size) group->known.max_size = g->report->max_size;
    return EPCTX_OK;
}

static epctx_status epctx__gen_grouped(const epctx__gen_in *in, epctx__gen_planned *plan,
                                       epctx__gen *g) {
    const epctx_gen_opts *opts = in->opts;
    epctx__group *group;
    epctx_status status;
    EPCTX__TRY(epctx__group_join(opts->workspace, opts->group, in->backend,
                                 epctx_model_io(in->model), opts->prepare_only, opts->weightless,
                                 &group, in->error));
    status = epctx__group_session(group, in, plan, g);
    if (status == EPCTX_OK && opts->stop) {
        status = epctx__group_finish(opts->workspace, group, opts->hooks, &g->report->binary_size,
                                     in->error);
    }
    return epctx__group_leave(opts->workspace, group, status, in->error);
}

/* -- generating -- */

EPCTX_API epctx_status epctx_generate(epctx_model *model, const epctx_backend *backend,
                                      const epctx_gen_opts *opts, epctx_gen_report *report,
                                      epctx_error *error) {
    const epctx_profile *profile;
    epctx_gen_opts defaults;
    epctx_allocator in_arena;
    epctx__gen_in in;
    epctx__gen_planned *plan;
    epctx__gen g;
    epctx_error local;
    size_t mark;
    epctx_status status;
    error = error != NULL ? error : &local;
    epctx_error_clear(error);
    memset(&defaults, 0, sizeof defaults);
    memset(&in, 0, sizeof in);
    memset(&g, 0, sizeof g);
    in.model = model;
    in.backend = backend;
    in.opts = opts != NULL ? opts : &defaults;
    in.error = error;
    if (model == NULL || model->root == NULL ||
        (epctx_model_io(model) == NULL && in.opts->memory == NULL))
        return epctx_fail(error, EPCTX_ERR_ARG, "an open model with an io is expected");
    EPCTX__TRY(epctx__backend_check(backend, true, in.opts->verify, error));
    if (in.opts->workspace == NULL && (in.opts->stop || in.opts->group != NULL))
        return epctx_fail(error, EPCTX_ERR_ARG, "`stop` and `group` need a `workspace`");
    in.options = epctx_options_of_gen(in.opts);
    profile = epctx_profile_of(epctx_str_of(backend->source)); /* the options say the rest */
    if ((profile->traits & EPCTX_TRAIT_CONTEXT_FOLDER) != 0) in.options.profile = profile;
    in.options.arena = in.arena = &model->arena;
    in_arena = epctx__in_arena(in.arena);
    epctx_buffer_init(&g.initializers, &in_arena);
    EPCTX__NEW(plan, epctx__gen_planned, 1, in.arena, error);
    EPCTX__NEW(g.report, epctx_gen_report, 1, in.arena, error);
    mark = epctx_edit_mark(model);
    status = in.opts->memory != NULL      ? epctx__gen_in_memory(&in, plan, &g)
             : in.opts->workspace != NULL ? epctx__gen_grouped(&in, plan, &g)
                                          : epctx__gen_alone(&in, plan, &g);
    if (status != EPCTX_OK) {
        epctx_fail(error, status, "%s failed without a message", backend->source);
        epctx_blame(error, model->path, NULL, NULL);
        epctx_edit_undo(model, mark);
    } else if (report != NULL) {
        *report = *g.report;
    }
    epctx_ep_end(&g.ep);
    return status;
}

/* ============================================================
 * >>fresh
 *
 * epctx_model_check_fresh compares the build stamp line by line with the files and versions that
 * are there now. A stamp is untrusted: its file names must pass epctx_path_check.
 * ============================================================ */

/* Compares the file of a stamp line, in the source's folder, with that line. */
static epctx_status epctx__fresh_file(const epctx_model *model, const epctx_stamp_line *line,
                                      const epctx_fresh_opts *opts, epctx_error *why) {
    const char *given = opts->source_path;
    char name[EPCTX_PATH_MAX];
    char path[EPCTX_PATH_MAX];
    epctx_str parts[2];
    parts[0] = epctx_str_of(given);
    parts[1] = epctx_str_of("");
    if (given == NULL || !epctx_str_is(line->word, "source")) {
        if (!epctx_stamp_plain(line->text, name, sizeof name))
            return epctx_fail(why, EPCTX_ERR_LIMIT, "a name in the build stamp is too long");
        parts[0] = epctx_path_folder(epctx_str_of(given != NULL ? given : model->path));
        parts[1] = epctx_str_of(name);
        EPCTX__TRY(epctx_path_check(parts[1], why)); /* untrusted */
    }
    EPCTX__TRY(epctx__path_join(path, sizeof path, parts, 2, why));
    return epctx__stamp_compare(model, line, path, opts->fast, why);
}

/* Compares a line `library` with the file of that name that is used now. */
static epctx_status epctx__fresh_library(const epctx_io *io, const epctx_stamp_line *line,
                                         const char *const *libraries, epctx_error *why) {
    epctx__stamp_file now;
    size_t i = 0;
    while (libraries[i] != NULL && !epctx__stamp_is(line->text, epctx_stamp_library(libraries, i)))
        i++;
    if (libraries[i] == NULL)
        return epctx_fail(why, EPCTX_ERR_VERSION,
                          "it was compiled with the library '%S', which is not there now",
                          &line->text);
    EPCTX__TRY(epctx__hash_path(io, libraries[i], &now, why));
    return now.size == line->size && now.hash == line->hash
               ? EPCTX_OK
               : epctx_fail(why, EPCTX_ERR_VERSION,
                            "the library '%s' has changed: it has %u bytes, XXH64 %x, and had %u, "
                            "%x",
                            libraries[i], now.size, now.hash, line->size, line->hash);
}

/* Whether the stamp has a line for each library that is used now. */
static epctx_status epctx__fresh_libraries(epctx_str stamp, const char *const *libraries,
                                           epctx_error *why) {
    size_t i;
    for (i = 0; libraries[i] != NULL; i++) {
        const char *name = epctx_stamp_library(libraries, i);
        epctx_str rest = stamp;
        epctx_stamp_line line;
        bool found = false;
        while (!found && epctx_stamp_next_line(&rest, &line))
            found = epctx_str_is(line.word, "library") && epctx__stamp_is(line.text, name);
        if (!found)
            return epctx_fail(why, EPCTX_ERR_VERSION,
                              "the library '%s' is new: it was compiled without it", libraries[i]);
    }
    return EPCTX_OK;
}

/* Compares a line with what compiling would write now. */
static epctx_status epctx__fresh_now(const epctx_io *io, const epctx_stamp_line *line,
                                     const epctx_stamp_opts *now, epctx_error *why) {
    const struct {
        const char *word, *what, *text;
    } known[] = {{"ort", "by ONNX Runtime", now->ort},
                 {"ep", "by the EP's version", now->ep},
                 {"driver", "with the driver", now->driver},
                 {"device", "for the device", now->device},
                 {"machine", "for the machine", now->machine}};
    size_t i;
    if (epctx_str_is(line->word, "library") && now->libraries != NULL)
        return epctx__fresh_library(io, line, now->libraries, why);
    if (epctx_str_is(line->word, "options") && now->options != NULL &&
        line->hash != epctx_hash(now->options, strlen(now->options), 0))
        return epctx_fail(why, EPCTX_ERR_VERSION, "it was compiled with other options");
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].text != NULL && epctx_str_is(line->word, known[i].word) &&
            !epctx__stamp_is(line->text, known[i].text))
            return epctx_fail(why, EPCTX_ERR_VERSION, "it was compiled %s '%S', this is '%s'",
                              known[i].what, &line->text, known[i].text);
    return EPCTX_OK;
}

/* EPCTX_ERR_NOT_FOUND unless each context of the EP, and each file beside one, is in its stamp. */
static epctx_status epctx__stamp_covers(const epctx_model *model, epctx_str source,
                                        epctx_error *why) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    epctx__context one;
    epctx__made m;
    const char *missing = NULL;
    const bool readable = epctx__made_begin(&m, model, source);
    size_t nodes = 0;
    epctx_walk_begin(&walk, model);
    while (readable && missing == NULL && epctx_walk_epnode(&walk, &view)) {
        if (!epctx_view_is_epnode(&view) ||
            epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK ||
            !epctx_str_eq(node.source, source))
            continue;
        nodes++;
        if (!epctx__context_of(&view, &node, EPCTX_STAMP_FORMAT, &one)) continue;
        if (walk.depth > 0 || walk.in_function || walk.in_training)
            missing = "is not about nodes outside of the main graph: they were";
        else if ((m.format == 1 && (node.main_context == 0 ||
                                    epctx_view_node_attr_str(&view, "ep_dlc_context").size > 0)) ||
                 !epctx__made_next(&m, &one))
            missing = "has no hash of the context binary: it was";
        else if (!one.embedded && epctx__has_beside(one.value) && m.beside.word.size == 0)
            missing = "has no hash of the .bin with the weights: it was";
    }
    if (missing == NULL && readable && nodes > 0) return EPCTX_OK;
    if (!readable)
        missing = epctx__stamp_format(m.binaries) == 0
                      ? "is of a newer version: the context binaries were"
                      : "is of fewer or more context binaries: they were";
    else if (nodes == 0)
        missing = "is of an EP without a node: nothing was";
    epctx_fail(why, EPCTX_ERR_NOT_FOUND, "the build stamp %s not compared", missing);
    if (readable && nodes > 0) epctx_blame(why, NULL, &node.name, NULL);
    return EPCTX_ERR_NOT_FOUND;
}

/* Does a line `needs` of the stamp name this file, too? */
static bool epctx__is_needed(epctx_str stamp, epctx_str name) {
    epctx_stamp_line line;
    while (epctx_stamp_next_line(&stamp, &line))
        if (epctx_str_is(line.word, "needs") && epctx_str_eq(line.text, name)) return true;
    return false;
}

/* Compares a line with what is there, and with what would be written now. */
static epctx_status epctx__fresh_line(const epctx_model *model, const epctx_stamp_line *line,
                                      epctx_str stamp, const epctx_backend *backend,
                                      const epctx_fresh_opts *opts, epctx_error *why) {
    const epctx_stamp_opts *now =
        opts->now != NULL || opts->gen == NULL ? opts->now : opts->gen->tools;
    const bool sdk = epctx_str_is(line->word, "sdk");
    const bool data = epctx_str_is(line->word, "data");
    const bool compared = data && opts->source_path == NULL && epctx__is_needed(stamp, line->text);
    if (epctx_str_is(line->word, "source") || (data && !compared))
        EPCTX__TRY(epctx__fresh_file(model, line, opts, why));
    if (opts->gen != NULL && epctx_str_is(line->word, "options") &&
        line->hash != epctx__options_hash(opts->gen))
        return epctx_fail(why, EPCTX_ERR_VERSION, "it was compiled with other options");
    if (backend != NULL && (sdk || epctx_str_is(line->word, "arch"))) {
        const char *known = sdk ? backend->sdk_version : backend->hardware_architecture;
        if (!epctx__stamp_is(line->text, known))
            return epctx_fail(why, EPCTX_ERR_VERSION, "it was compiled %s %S, this is %s",
                              sdk ? "by SDK" : "for", &line->text, known);
    }
    return now != NULL ? epctx__fresh_now(epctx_model_io(model), line, now, why) : EPCTX_OK;
}

/* Compares all that a stamp tells. */
static void epctx__fresh_stamp(const epctx_model *model, const char *source, epctx_str stamp,
                               const epctx_backend *backend, const epctx_fresh_opts *opts,
                               epctx__differences *d) {
    const epctx_stamp_opts *now =
        opts->now != NULL || opts->gen == NULL ? opts->now : opts->gen->tools;
    epctx_str rest = stamp;
    epctx_stamp_line line;
    epctx_error why;
    bool more;
    epctx_error_clear(&why);
    more = epctx__check_made(model, epctx_str_of(source), NULL, opts->fast, d, &why) == EPCTX_OK;
    /* PATH: an empty file, a folder: no model loads from that */
    if (d->status == EPCTX_ERR_PATH) d->status = EPCTX_ERR_VERSION;
    while (more && epctx_stamp_next_line(&rest, &line))
        more = epctx__differs(d, epctx__fresh_line(model, &line, stamp, backend, opts, &why), &why);
    if (more && now != NULL && now->libraries != NULL)
        more = epctx__differs(d, epctx__fresh_libraries(stamp, now->libraries, &why), &why);
    if (more && d->status == EPCTX_OK)
        (void)epctx__differs(d, epctx__stamp_covers(model, epctx_str_of(source), &why), &why);
}

EPCTX_API epctx_freshness epctx_model_check_fresh(const epctx_model *model, const char *source,
                                                  const epctx_backend *backend,
                                                  const epctx_fresh_opts *opts, epctx_error *why) {
    epctx_fresh_opts defaults;
    epctx__differences d;
    epctx_stamp_line line;
    epctx_str stamp;
    bool has_source = false;
    epctx_error_clear(why);
    memset(&defaults, 0, sizeof defaults);
    memset(&d, 0, sizeof d);
    opts = opts != NULL ? opts : &defaults;
    d.differs_fn = opts->differs_fn;
    d.user = opts->user;
    d.path = model->path;
    d.first = why;
    if (!epctx_model_get_stamp(model, epctx_str_of(source), &stamp)) {
        d.status =
            epctx_fail(why, EPCTX_ERR_NOT_FOUND, "the model has no build stamp of %s", source);
    } else {
        epctx__fresh_stamp(model, source, stamp, backend, opts, &d);
        while (epctx_stamp_next_line(&stamp, &line))
            has_source = has_source || epctx_str_is(line.word, "source");
        if (d.status == EPCTX_OK && !has_source)
            d.status = epctx_fail(why, EPCTX_ERR_NOT_FOUND, "the build stamp names no source");
    }
    epctx_blame(why, model->path, NULL, NULL);
    return d.status == EPCTX_OK            ? EPCTX_FRESH
           : d.status == EPCTX_ERR_VERSION ? EPCTX_STALE
                                           : EPCTX_FRESH_UNKNOWN;
}

#endif /* EPCTX_NO_EDIT */

/* ============================================================
 * >>load
 *
 * epctx_load reads views of a model and epctx_load_nodes reads records; both list the nodes of this
 * backend in an epctx__loading and call epctx__load_bound. An epctx_bound is a node with its graph,
 * an epctx__owner the context of a node that has its own. Three passes follow: check every node and
 * locate its context, bind the nodes with a context of their own (that which plan_fn chooses
 * first), bind the others to graphs of any context. So no context is opened before all nodes have
 * passed check_fn. epctx__load_take gets a graph: from a context of this session alone
 * (epctx__load_own), or through the caller's workspace (epctx__load_shared); epctx__ready is a
 * loaded context in both cases.
 *
 * The rule behind the clean-up: whatever the session keeps is recorded in epctx_loaded at once. So
 * epctx_unload ends a complete session and also one that failed halfway: it takes the weights from
 * the graphs, gives the graphs back and closes the models with weights. epctx__load_end drops the
 * contexts that the owners held for the other nodes.
 *
 * Nodes are hostile. The source decides first, because a node of another EP may be invalid.
 * epctx__load_named tells a path from a payload, which may be secret and must not appear in a
 * message. A file must have the size in the build stamp, if there is one, find_fn checks the hash
 * of the graph, and each weight from a source model must have the size and hash that were compiled.
 * EPCTX__MISSES bounds the search for secondary nodes. While nodes are bound, only
 * epctx__load_shared holds the lock of the workspace, and >>share releases it around calls of the
 * backend.
 *
 * Nodes of other EPs take no memory. Nodes of one set share a loaded file, a source model is opened
 * once, and each of its weights is hashed once. epctx__load_judge hashes a binary only after a
 * failure, to tell whether it belongs to another compilation.
 * ============================================================ */

/* The context of a node that has its own. */
typedef struct epctx__owner {
    const epctx_bound *bound; /* the node */
    epctx__wanted binary;
    epctx__ready *opened; /* its context */
    epctx__entry *entry;  /* with a workspace: that of its context, held until loading ends */
} epctx__owner;

/* Loading under way. */
typedef struct epctx__loading {
    epctx_loaded *loaded;
    epctx_load_opts opts;
    const char *model_path;
    epctx__binary_file file; /* folder and io of the files */
    bool changes;            /* the mapped file of embedded contexts may change */
    epctx_list ours;         /* epctx_bound, none for nodes of others: there may be millions */
    epctx__owner *owners;
    size_t owner_count;
    const epctx_node *nodes;            /* epctx_load_nodes */
    bool any;                           /* a context has been loaded */
    epctx_map files;                    /* canonical path -> owner that has it open */
    epctx_map taken;                    /* graphs of this set, in a workspace */
    epctx_map told;                     /* entries of it that were told to the log */
    size_t misses;                      /* contexts without the graph of a node */
    const char *attribute;              /* to name in the message of a failure, or NULL */
    const epctx__owner *tried;          /* the last one that was asked for a graph */
    const struct epctx_model *model;    /* epctx_load */
    const epctx_bound *first;           /* to be loaded before the others, or NULL */
    const epctx_bound *weighted;        /* last node whose weights were loaded */
    struct epctx__weight_model *source; /* the model with them */
} epctx__loading;

#ifndef EPCTX_NO_WIRE

typedef struct epctx__source_weight {
    epctx_view view;
    epctx_tensor tensor; /* without data until verified with this hash */
    uint64_t hash;
} epctx__source_weight;

/* A model with weights, open while contexts use them. */
typedef struct epctx__weight_model {
    struct epctx__weight_model *next;
    epctx_model model;
    epctx_map names; /* initializer -> index in `weights` */
    epctx__source_weight *weights;
} epctx__weight_model;

#endif

/* Failures to load become ORT's INVALID_GRAPH, except ARG, NOMEM and CANCELLED. */
static epctx_status epctx__load_failed(const epctx__loading *l, const epctx_str *node,
                                       epctx_status status, epctx_error *error) {
    const bool of_context = epctx_str_is(epctx_str_of(l->attribute), "ep_cache_context");
    epctx_error also;
    if (status == EPCTX_ERR_NOT_FOUND && of_context && l->opts.second_folder != NULL &&
        l->opts.io == NULL) {
        epctx_error_clear(&also);
        epctx_fail(&also, status, "it is not in the second folder '%s' either",
                   l->opts.second_folder);
        epctx__error_add(error, also.message);
    }
    if (status == EPCTX_ERR_NOT_FOUND && l->opts.workspace != NULL && l->attribute != NULL) {
        epctx__error_add(error, "the last session of the group that generates the models writes "
                                "their binary (ep.stop_share_ep_contexts=1)");
    }
    if (epctx_status_to_ort(status) != 10 && status != EPCTX_ERR_ARG && status != EPCTX_ERR_NOMEM &&
        status != EPCTX_ERR_CANCELLED)
        status = EPCTX_ERR_CONTEXT;
    if (error != NULL && error->status != EPCTX_OK) error->status = status;
    epctx_fail(error, status, "the context cannot be loaded");
    epctx_blame(error, l->model_path, node, l->attribute);
    return status;
}

static epctx_key epctx__load_key_kind(const epctx__loading *l) {
    return l->opts.profile != NULL ? l->opts.profile->key : EPCTX_KEY_PARTITION;
}

static bool epctx__load_by_partition(const epctx__loading *l, const epctx_epnode *node) {
    return epctx__load_key_kind(l) == EPCTX_KEY_PARTITION && node->partition_name.size > 0;
}

/* The name of a node's graph in its context. */
static epctx_str epctx__load_key(const epctx__loading *l, const epctx_epnode *node) {
    if (epctx__load_key_kind(l) == EPCTX_KEY_NONE) return epctx_str_of(NULL);
    return epctx__load_by_partition(l, node) ? node->partition_name : node->name;
}

/* Does this node have its own context? */
static bool epctx__load_has_own(const epctx__loading *l, const epctx_epnode *node) {
    const epctx_profile *profile = l->opts.profile;
    return node->main_context != 0 ||
           (profile != NULL && node->ep_cache_context.size > 0 &&
            (profile->traits & (EPCTX_TRAIT_EACH_CONTEXT | EPCTX_TRAIT_SECONDARY_CONTEXT)) != 0);
}

/* The source decides first: another EP's node may be invalid. */
static bool epctx__load_claims(const epctx__loading *l, epctx_str source) {
    epctx_epnode node = epctx_epnode_default();
    node.source = source;
    return l->opts.profile != NULL ? epctx_profile_claims(l->opts.profile, &node) == EPCTX_CLAIM_YES
                                   : epctx_str_is(source, l->loaded->backend->source);
}

/* The folder of a binary: of the model or of ep.context_file_path; the second, if the name is not
 * in that. What is there, but must not be used, is no reason to look elsewhere. */
static epctx_status epctx__load_folder(const epctx__loading *l, epctx__binary_file *file,
                                       epctx_error *error) {
    epctx_str second = epctx_str_of(l->opts.second_folder);
    char path[EPCTX_PATH_MAX];
    EPCTX__TRY(epctx_path_base(epctx_str_of(l->model_path), epctx_str_of(l->opts.context_file_path),
                               &file->folder, error));
    if (second.size > 0 &&
        epctx_path_find(file->io, file->folder, file->name, file->path_flags, path, sizeof path,
                        NULL) == EPCTX_ERR_NOT_FOUND &&
        epctx_path_find(file->io, second, file->name, file->path_flags, path, sizeof path, NULL) !=
            EPCTX_ERR_NOT_FOUND) {
        file->folder = second;
        file->path_flags |= EPCTX__PATH_SECOND;
    }
    return EPCTX_OK;
}

/* Is this a name? Else it is a payload, which may be secret and must not appear in a message. POSIX
 * allows names in any encoding; one that is not UTF-8 counts if there is such a file. */
static bool epctx__load_named(const epctx__loading *l, epctx_str given, char path[EPCTX_PATH_MAX]) {
    epctx__binary_file file = l->file;
    if (epctx__is_no_path(given)) return false;
    file.name = given;
    return l->opts.io != NULL || epctx_str_is_utf8(given) ||
           (epctx__load_folder(l, &file, NULL) == EPCTX_OK &&
            epctx_path_find(file.io, file.folder, given, file.path_flags, path, EPCTX_PATH_MAX,
                            NULL) == EPCTX_OK);
}

/* Finds a node's context. The file may be missing if the workspace has its graphs. */
static epctx_status epctx__load_locate(epctx__loading *l, const epctx_bound *bound,
                                       epctx__owner *owner, epctx_error *error) {
    epctx_arena *arena = &l->loaded->arena;
    epctx_str given = bound->node.ep_cache_context;
    epctx__names place;
    if (bound->node.embed_mode == 1) {
        owner->binary.path = owner->binary.alias = "";
        owner->binary.payload = epctx__span(given.data, given.size);
        return given.size > 0 ? EPCTX_OK
                              : epctx_fail(error, EPCTX_ERR_CONTEXT,
                                           "is empty: main_context 1 and embed_mode 1 need the "
                                           "payload here");
    }
    if (!epctx__load_named(l, given, place.path))
        return epctx__fail_no_path(given, EPCTX_ERR_PATH, error);
    owner->binary.file = l->file;
    owner->binary.file.name = given;
    if (l->opts.io == NULL) EPCTX__TRY(epctx__load_folder(l, &owner->binary.file, error));
    EPCTX__TRY(epctx__names_find(&owner->binary.file, &place, error));
    EPCTX__TRY(epctx__copy(arena, epctx_str_of(place.path), &owner->binary.path, error));
    return epctx__copy(arena, epctx_str_of(place.alias), &owner->binary.alias, error);
}

static epctx_status epctx__load_check(epctx__loading *l, epctx_bound *bound, epctx_error *error) {
    const epctx_backend *b = l->loaded->backend;
    l->attribute = NULL;
    EPCTX__TRY(epctx_cancelled(l->opts.hooks, error));
    if (b->check_fn != NULL) EPCTX__TRY(b->check_fn(b->self, &bound->node, error));
    if (epctx__load_has_own(l, &bound->node)) {
        bound->owner = &l->owners[l->owner_count++];
        bound->owner->bound = bound;
        bound->owner->binary.size = bound->made[0];
        bound->owner->binary.changes = l->changes;
        bound->owner->binary.profile =
            l->opts.profile != NULL ? l->opts.profile : epctx_profile_of(epctx_str_of(b->source));
        l->attribute = "ep_cache_context";
        return epctx__load_locate(l, bound, bound->owner, error);
    }
    return EPCTX_OK;
}

static epctx_status epctx__load_record(epctx__loading *l, const epctx_bound *bound,
                                       const epctx_node **out, epctx_error *error) {
#ifndef EPCTX_NO_WIRE
    epctx_node *record;
    if (l->nodes == NULL) {
        EPCTX__NEW(record, epctx_node, 1, &l->loaded->arena, error);
        record->id = (uint32_t)bound->index;
        EPCTX__TRY(epctx__record_plain_node(&bound->view, &l->loaded->arena, record, error));
        *out = record;
        return EPCTX_OK;
    }
#endif
    (void)error;
    *out = &l->nodes[bound->index];
    return EPCTX_OK;
}

/* Limits failed lookups of secondary nodes in other contexts (more than any real model has): else
 * the time grows with nodes times contexts. */
#define EPCTX__MISSES 131072u

/* Where a graph comes from: an open context, the workspace, or a context loaded now. */
enum { EPCTX__LOAD_OPEN, EPCTX__LOAD_WAITS, EPCTX__LOAD_NOW };

/* What load_fn is to know besides the bytes. */
static epctx_status epctx__load_prepare(epctx__loading *l, epctx__owner *owner,
                                        epctx_error *error) {
    epctx_load_in *in = &owner->binary.in;
    l->attribute = NULL;
    in->node = &owner->bound->node;
    in->first = !l->any;
    in->hooks = l->opts.hooks;
    return in->record != NULL ? EPCTX_OK : epctx__load_record(l, owner->bound, &in->record, error);
}

/* Tells the log which context a node has, and whether an earlier session had loaded it. */
static void epctx__load_tell(const epctx__loading *l, const epctx__owner *owner,
                             const epctx__ready *context, bool loaded) {
    const epctx_hooks *hooks = l->opts.hooks;
    const epctx__wanted *binary = &owner->binary;
    const bool embedded = binary->payload.size > 0;
    epctx_error text;
    if (hooks == NULL || hooks->log_fn == NULL) return;
    epctx_error_clear(&text);
    epctx_fail(&text, EPCTX_ERR_CONTEXT, "node '%S' %s its context, %u bytes %s%s%s",
               &owner->bound->node.name, loaded ? "loads" : "shares", context->size,
               embedded                              ? "in the model"
               : epctx__opens_files(binary->file.io) ? "from '"
                                                     : "from the application's buffer '",
               embedded                  ? ""
               : binary->path[0] != '\0' ? binary->path
                                         : binary->alias,
               embedded ? "" : "'");
    hooks->log_fn(hooks->user, EPCTX_LOG_INFO, text.message);
}

/* The context of a node, for this session alone: a file is loaded once for all nodes that name it.
 * Whatever is loaded is in the set at once, so that epctx_unload releases it. */
static epctx_status epctx__load_own(epctx__loading *l, epctx__owner *owner, epctx_error *error) {
    const epctx__wanted *binary = &owner->binary;
    epctx_loaded *loaded = l->loaded;
    epctx_str key = epctx_str_of(binary->path[0] != '\0' ? binary->path : binary->alias);
    uint32_t at = key.size > 0 ? epctx_map_get(&l->files, key) : EPCTX_MAP_NONE;
    epctx__ready *opened;
    if (at != EPCTX_MAP_NONE) {
        owner->opened = opened = l->owners[at].opened;
        return binary->size == 0 || binary->size == opened->size
                   ? EPCTX_OK
                   : epctx__other_binary(binary->file.name, false, opened->size, binary->size,
                                         error);
    }
    EPCTX__NEW(opened, epctx__ready, 1, &loaded->arena, error);
    opened->next = loaded->opened;
    loaded->opened = opened;
    EPCTX__TRY(epctx__ready_load(opened, loaded->backend, binary, &loaded->arena.allocator, error));
    owner->opened = opened;
    l->any = true;
    epctx__load_tell(l, owner, opened, true);
    return key.size > 0 ? epctx__map_set(&l->files, key, (size_t)(owner - l->owners), error)
                        : EPCTX_OK;
}

/* A graph through the workspace. `opened`: its context is open now. */
static epctx_status epctx__load_shared(epctx__loading *l, epctx_bound *bound, epctx__owner *owner,
                                       int how, bool *opened, epctx_error *error) {
    epctx_workspace *w = l->loaded->workspace;
    epctx__asked asked;
    epctx_status status;
    memset(&asked, 0, sizeof asked);
    asked.backend = l->loaded->backend;
    asked.binary = &owner->binary;
    asked.own = &l->taken;
    asked.key = epctx__load_key(l, &bound->node);
    asked.hash = epctx_notes_hash(bound->node.notes);
    epctx__lock(w);
    if (how == EPCTX__LOAD_OPEN) {
        asked.loaded = true;
        status = epctx__entry_ask(w, owner->entry, &asked, bound, error);
    } else {
        status = epctx__take(w, &asked, how == EPCTX__LOAD_NOW, bound, error);
        if (owner->entry == NULL && bound->entry != NULL) {
            owner->entry = bound->entry;
            bound->entry->users++;
        }
    }
    epctx__unlock(w);
    l->any = l->any || asked.opened;
    *opened = asked.loaded;
    EPCTX__TRY(status);
    if (l->opts.hooks != NULL && owner->entry != NULL &&
        !epctx__has(&l->told, epctx__str(&owner->entry, sizeof owner->entry))) {
        epctx__load_tell(l, owner, &owner->entry->opened, asked.opened);
        EPCTX__TRY(
            epctx__map_set(&l->told, epctx__str(&owner->entry, sizeof owner->entry), 1, error));
    }
    /* epctx_unload releases it, also after a failure */
    return epctx__map_set(&l->taken, epctx__handle_key(&bound->graph), 1, error);
}

static epctx_status epctx__load_take(epctx__loading *l, epctx_bound *bound, epctx__owner *owner,
                                     int how, epctx_error *error) {
    const char *about = owner == bound->owner ? NULL : "main_context";
    epctx_status status = EPCTX_OK;
    bool opened;
    l->tried = owner;
    epctx_error_clear(error);
    if (how == EPCTX__LOAD_NOW) EPCTX__TRY(epctx__load_prepare(l, owner, error));
    if (l->loaded->workspace != NULL) {
        status = epctx__load_shared(l, bound, owner, how, &opened, error);
    } else {
        if (owner->opened == NULL) status = epctx__load_own(l, owner, error);
        opened = status == EPCTX_OK;
        if (opened) {
            status = epctx__ready_ask(owner->opened, l->loaded->backend,
                                      epctx__load_key(l, &bound->node),
                                      epctx_notes_hash(bound->node.notes), bound, error);
        }
    }
    l->attribute = "ep_cache_context";
    if (opened) {
        const bool missing = status == EPCTX_ERR_CONTEXT && bound->graph == NULL;
        l->attribute =
            missing && epctx__load_by_partition(l, &bound->node) ? "partition_name" : about;
    } else if (status != EPCTX_OK && bound->node.embed_mode == 1 && owner == bound->owner &&
               epctx__may_be_path(bound->node.ep_cache_context)) {
        epctx__error_add(error, "embed_mode is 1, also where it is absent: if this is the path of "
                                "the context, embed_mode must be 0");
    }
    return status;
}

/* A secondary node may belong to any context; open ones come first. */
static epctx_status epctx__load_find(epctx__loading *l, epctx_bound *bound, epctx_error *error) {
    const int ways = l->opts.workspace != NULL ? EPCTX__LOAD_NOW : EPCTX__LOAD_OPEN;
    size_t i;
    int how;
    l->attribute = "main_context";
    epctx_fail(error, EPCTX_ERR_CONTEXT,
               "is 0, but no node of source '%s' in this model has main_context 1",
               l->loaded->backend->source);
    for (how = EPCTX__LOAD_OPEN; how <= ways; how++) {
        for (i = 0; i < l->owner_count; i++) {
            epctx__owner *owner = &l->owners[i];
            epctx_status status;
            if (how == EPCTX__LOAD_OPEN ? owner->entry == NULL && owner->opened == NULL
                                        : owner->binary.file.name.size == 0)
                continue;
            status = epctx__load_take(l, bound, owner, how, error);
            if (status != EPCTX_ERR_CONTEXT) return status;
            if (++l->misses > EPCTX__MISSES) {
                epctx_error_clear(error);
                return epctx_fail(error, EPCTX_ERR_LIMIT,
                                  "too many secondary nodes and contexts to search");
            }
        }
    }
    return EPCTX_ERR_CONTEXT;
}

#ifndef EPCTX_NO_WIRE

/* Canonical path of the source: from the caller, else from the node, beside the model. */
static epctx_status epctx__weights_find(const epctx__loading *l, const epctx_open_opts *how,
                                        epctx_str name, char *path, epctx_error *error) {
    epctx_str folder = epctx_str_of(l->opts.source_model_path);
    epctx_error why;
    epctx_status status;
    if (folder.size > 0) return epctx__path_join(path, EPCTX_PATH_MAX, &folder, 1, error);
    if (name.size == 0) {
        return epctx_fail(error, EPCTX_ERR_NOT_FOUND,
                          "the weights are in the source model, which the node does not name: set "
                          "ep.context_source_model_path");
    }
    epctx_error_clear(&why);
    status = epctx_path_base(epctx_str_of(l->model_path), epctx_str_of(l->opts.context_file_path),
                             &folder, &why);
    if (status == EPCTX_OK) {
        status =
            epctx_path_find(how->io, folder, name, how->path_flags, path, EPCTX_PATH_MAX, &why);
    }
    if (status != EPCTX_OK) {
        epctx_fail(error, status,
                   "the weights are in the source model '%S', which is not beside this one (%s): "
                   "set ep.context_source_model_path",
                   &name, why.message);
    }
    return status;
}

/* The model with a node's weights, opened once even if nodes write its path in different ways.
 * Where they are inputs of the node: the EPContext model. */
static epctx_status epctx__weights_source(epctx__loading *l, const epctx_bound *bound,
                                          epctx_error *error) {
    const epctx_model *model = l->model;
    epctx_span bytes = model != NULL && bound->view.input_count > bound->info.input_count
                           ? model->bytes
                           : l->opts.source_model;
    epctx_arena *arena = &l->loaded->arena;
    epctx__weight_model *source = l->loaded->sources;
    char path[EPCTX_PATH_MAX];
    epctx_open_opts how;
    epctx_str folder;
    epctx_cursor it;
    epctx_tensor_view tensor;
    size_t count = 0;
    memset(&how, 0, sizeof how);
    how.allocator = &arena->allocator;
    how.io = epctx_io_files();
    how.path_flags = l->opts.path_flags;
    how.external_folder = l->opts.external_folder;
    if (model != NULL) {
        how.io = epctx_model_io(model);
        how.limits = model->limits;
    }
    if (bytes.data == NULL)
        EPCTX__TRY(epctx__weights_find(l, &how, bound->node.onnx_model_filename, path, error));
    while (source != NULL && (bytes.data != NULL ? source->model.bytes.data != bytes.data
                                                 : strcmp(source->model.path, path) != 0))
        source = source->next;
    l->source = source;
    if (source != NULL) return EPCTX_OK;
    EPCTX__NEW(source, epctx__weight_model, 1, arena, error);
    if (bytes.data == NULL) {
        EPCTX__TRY(epctx_model_open_file(&source->model, path, &how, error));
    } else { /* bytes have no folder */
        if (epctx_str_of(how.external_folder).size == 0 &&
            epctx_path_base(epctx_str_of(l->model_path), epctx_str_of(l->opts.context_file_path),
                            &folder, NULL) == EPCTX_OK) {
            EPCTX__TRY(epctx__copy(arena, folder.size > 0 ? folder : epctx_str_of("."),
                                   &how.external_folder, error));
        }
        EPCTX__TRY(epctx_model_open_memory(&source->model, bytes.data, bytes.size, &how, error));
    }
    source->next = l->loaded->sources;
    l->loaded->sources = l->source = source;
    it = epctx_view_graph_initializers(epctx_model_graph(&source->model));
    EPCTX__NEW(source->weights, epctx__source_weight, epctx_cursor_count(it), arena, error);
    epctx_map_init(&source->names, arena);
    for (; epctx_next_tensor(&it, &tensor); count++) {
        source->weights[count].view = tensor.view;
        EPCTX__TRY(epctx__map_set(&source->names, tensor.name, count, error));
    }
    return EPCTX_OK;
}

/* A weight of a node, from the model with its weights. Each is verified once. */
static epctx_status epctx__weight_get(epctx__loading *l, const epctx_bound *bound,
                                      const epctx_outside_weight *ref, epctx_tensor *out,
                                      epctx_error *error) {
    epctx__source_weight *weight;
    const char *file;
    uint32_t at;
    if (l->weighted != bound) {
        EPCTX__TRY(epctx__weights_source(l, bound, error));
        l->weighted = bound;
    }
    file = l->source->model.path[0] != '\0' ? l->source->model.path : "(from memory)";
    at = epctx_map_get(&l->source->names, ref->name);
    if (at == EPCTX_MAP_NONE) return epctx_outside_weight_verify(ref, NULL, file, error);
    weight = &l->source->weights[at];
    if (weight->tensor.data == NULL || weight->tensor.size != ref->size ||
        weight->hash != ref->hash) {
        EPCTX__TRY(epctx_model_load_tensor(&l->source->model, weight->view, &l->loaded->arena, out,
                                           error));
        EPCTX__TRY(epctx_outside_weight_verify(ref, out, file, error));
        weight->tensor = *out;
        weight->hash = ref->hash;
    }
    *out = weight->tensor;
    return EPCTX_OK;
}

#endif

static epctx_status epctx__load_weight(epctx__loading *l, const epctx_bound *bound,
                                       const epctx_outside_weight *ref, epctx_tensor *out,
                                       epctx_error *error) {
    epctx_status status = EPCTX_ERR_NOT_FOUND;
    if (l->opts.weight_fn != NULL)
        status = l->opts.weight_fn(l->opts.weight_user, bound, ref, out, error);
    if (status != EPCTX_ERR_NOT_FOUND) return status;
    epctx_error_clear(error);
#ifndef EPCTX_NO_WIRE
    return epctx__weight_get(l, bound, ref, out, error);
#else
    return epctx_fail(error, EPCTX_ERR_CONTEXT, "weight '%S' is no input of its node", &ref->name);
#endif
}

static epctx_status epctx__load_weights(epctx__loading *l, epctx_bound *bound, epctx_error *error) {
    const epctx_backend *b = l->loaded->backend;
    epctx_str rest = bound->weights;
    epctx_outside_weight ref;
    epctx_tensor *tensors;
    size_t count = 0;
    size_t i;
    if (bound->weights.size == 0) return EPCTX_OK;
    l->attribute = EPCTX_WEIGHTS_ATTR;
    epctx_error_clear(error);
    while (epctx_outside_weight_next(&rest, &ref)) count++;
    if (rest.size > 0) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "line %u does not name a weight",
                          (uint64_t)count + 1);
    }
    if (b->weights_fn == NULL) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "the context is weightless, which this %s cannot load", b->source);
    }
    EPCTX__NEW(tensors, epctx_tensor, count, &l->loaded->arena, error);
    rest = bound->weights;
    for (i = 0; epctx_outside_weight_next(&rest, &ref); i++)
        EPCTX__TRY(epctx__load_weight(l, bound, &ref, &tensors[i], error));
    EPCTX__TRY(b->weights_fn(b->self, bound->graph, tensors, count, error));
    bound->weighted = true;
    return EPCTX_OK;
}

#ifndef EPCTX_NO_WIRE
/* A node may have weights as inputs, too, and fewer outputs: ONNX Runtime drops those that nothing
 * reads. */
static epctx_status epctx__load_agrees(const epctx_bound *bound, epctx_error *error) {
    const epctx_graph_info *info = &bound->info;
    const epctx_node_view *view = &bound->view;
    if (view->input_count >= info->input_count && view->output_count <= info->output_count)
        return EPCTX_OK;
    return epctx_fail(error, EPCTX_ERR_CONTEXT,
                      "the node has %u inputs and %u outputs, its graph '%S' in the context %u and "
                      "%u",
                      (uint64_t)view->input_count, (uint64_t)view->output_count, &info->name,
                      (uint64_t)info->input_count, (uint64_t)info->output_count);
}
#endif

static epctx_status epctx__load_bind(epctx__loading *l, epctx_bound *bound, epctx_error *error) {
    l->attribute = NULL;
    EPCTX__TRY(bound->owner != NULL
                   ? epctx__load_take(l, bound, bound->owner, EPCTX__LOAD_NOW, error)
                   : epctx__load_find(l, bound, error));
    l->attribute = NULL;
#ifndef EPCTX_NO_WIRE
    if (l->model != NULL) EPCTX__TRY(epctx__load_agrees(bound, error));
#endif
    return epctx__load_weights(l, bound, error);
}

static epctx_status epctx__load_add(epctx__loading *l, size_t index, epctx_bound **out,
                                    epctx_error *error) {
    *out = (epctx_bound *)epctx_list_add(&l->ours, &l->loaded->arena, sizeof **out);
    if (*out == NULL) return epctx__nomem(error, l->loaded->arena.missing);
    (*out)->index = index;
    return EPCTX_OK;
}

/* Lets the backend look at all nodes and say which context comes first. */
static epctx_status epctx__load_plan(epctx__loading *l, epctx_error *error) {
    const epctx_backend *b = l->loaded->backend;
    const size_t count = l->loaded->bound_count;
    size_t first = count;
    size_t i;
    epctx_load_in *nodes;
    if (b->plan_fn == NULL || count == 0) return EPCTX_OK;
    EPCTX__NEW(nodes, epctx_load_in, count, &l->loaded->arena, error);
    for (i = 0; i < count; i++) {
        const epctx_bound *bound = &l->loaded->bound[i];
        const epctx__owner *owner = bound->owner;
        EPCTX__TRY(epctx__load_record(l, bound, &nodes[i].record, error));
        nodes[i].node = &bound->node;
        nodes[i].hooks = l->opts.hooks;
        nodes[i].path = owner != NULL && owner->binary.file.name.size > 0 &&
                                epctx__binary_is_file(&owner->binary.file)
                            ? owner->binary.path
                            : "";
        if (owner != NULL) bound->owner->binary.in.record = nodes[i].record;
    }
    EPCTX__TRY(b->plan_fn(b->self, nodes, count, &first, error));
    if (first != count && (first > count || l->loaded->bound[first].owner == NULL)) {
        return epctx_fail(error, EPCTX_ERR_BACKEND,
                          "plan_fn chooses node %u of %u, expected one with a context of its own",
                          (uint64_t)first, (uint64_t)count);
    }
    l->first = first < count ? &l->loaded->bound[first] : NULL;
    return EPCTX_OK;
}

enum { EPCTX__LOAD_CHECK, EPCTX__LOAD_FIRST, EPCTX__LOAD_PRIMARY, EPCTX__LOAD_SECONDARY };

/* The step in which a node is bound. */
static int epctx__load_step(const epctx__loading *l, const epctx_bound *bound) {
    if (bound == l->first) return EPCTX__LOAD_FIRST;
    return bound->owner != NULL ? EPCTX__LOAD_PRIMARY : EPCTX__LOAD_SECONDARY;
}

static epctx_status epctx__load_bound(epctx__loading *l, epctx_error *error) {
    epctx_loaded *loaded = l->loaded;
    epctx_status status = EPCTX_OK;
    size_t done = 0;
    size_t i;
    int step;
    loaded->bound = (epctx_bound *)l->ours.items;
    loaded->bound_count = l->ours.count;
    EPCTX__NEW(l->owners, epctx__owner, loaded->bound_count, &loaded->arena, error);
    for (step = EPCTX__LOAD_CHECK; step <= EPCTX__LOAD_SECONDARY; step++) {
        for (i = 0; i < loaded->bound_count; i++) {
            epctx_bound *bound = &loaded->bound[i];
            if (step == EPCTX__LOAD_CHECK) {
                status = epctx__load_check(l, bound, error);
            } else if (epctx__load_step(l, bound) == step) {
                status = epctx__load_bind(l, bound, error);
                done += status == EPCTX_OK;
            } else {
                continue;
            }
            if (status != EPCTX_OK) return epctx__load_failed(l, &bound->node.name, status, error);
            if (step != EPCTX__LOAD_CHECK)
                epctx__progress(l->opts.hooks, "load", done, loaded->bound_count);
        }
        l->attribute = NULL;
        if (step == EPCTX__LOAD_CHECK) status = epctx__load_plan(l, error);
        if (status != EPCTX_OK) return epctx__load_failed(l, NULL, status, error);
    }
    return EPCTX_OK;
}

static epctx_status epctx__load_begin(epctx__loading *l, epctx_loaded *loaded,
                                      const epctx_backend *backend, const epctx_load_opts *opts,
                                      epctx_error *error) {
    epctx_error_clear(error);
    memset(l, 0, sizeof *l);
    if (loaded == NULL) return epctx_fail(error, EPCTX_ERR_ARG, "pass a set to load into");
    memset(loaded, 0, sizeof *loaded);
    EPCTX__TRY(epctx__backend_check(backend, false, true, error));
    if (opts != NULL) l->opts = *opts;
    if (l->opts.workspace != NULL && l->opts.io != NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "binaries in the application's io have no paths to tell them apart in a "
                          "workspace");
    }
    l->loaded = loaded;
    l->model_path = l->opts.model_path != NULL ? l->opts.model_path : "";
    l->file.io = l->opts.io != NULL ? l->opts.io : epctx_io_files();
    l->file.path_flags = l->opts.path_flags | (l->opts.io != NULL ? EPCTX__PATH_BARE : 0);
    loaded->backend = backend;
    loaded->workspace = l->opts.workspace;
    if (loaded->workspace != NULL) {
        epctx__lock(loaded->workspace);
        loaded->workspace->holds++;
        epctx__unlock(loaded->workspace);
    }
    epctx_arena_init(&loaded->arena, l->opts.allocator);
    epctx_map_init(&l->files, &loaded->arena);
    epctx_map_init(&l->taken, &loaded->arena);
    epctx_map_init(&l->told, &loaded->arena);
    return EPCTX_OK;
}

/* An EP may take a folder as ep.context_file_path for what it is. */
static epctx_status epctx__load_paths(epctx__loading *l, epctx_error *error) {
    const epctx_profile *profile = l->opts.profile;
    if (profile == NULL) profile = epctx_profile_of(epctx_str_of(l->loaded->backend->source));
    return epctx__context_folder(profile, l->opts.io == NULL ? l->file.io : NULL,
                                 &l->opts.context_file_path, &l->loaded->arena, error);
}

static epctx_status epctx__load_end(epctx__loading *l, epctx_status status, epctx_error *error) {
    epctx_workspace *w = l->loaded->workspace;
    size_t i;
    if (w != NULL) {
        epctx__lock(w);
        for (i = 0; i < l->owner_count; i++) epctx__entry_leave(w, l->owners[i].entry);
        epctx__unlock(w);
    }
    if (status != EPCTX_OK) {
        epctx_blame(error, l->model_path, NULL, NULL);
        epctx_unload(l->loaded);
    }
    return status;
}

static void epctx__load_give(epctx_loaded *loaded) {
    epctx_workspace *w = loaded->workspace;
    size_t i;
    epctx__lock(w);
    for (i = 0; i < loaded->bound_count; i++)
        if (loaded->bound[i].entry != NULL) /* the first of several nodes with one graph */
            epctx__give(w, loaded->bound[i].entry, loaded->bound[i].graph);
    epctx__unlock(w);
}

EPCTX_API void epctx_unload(epctx_loaded *loaded) {
    const epctx_backend *b = loaded != NULL ? loaded->backend : NULL;
    epctx_workspace *w;
    size_t i;
    if (b == NULL) return;
    w = loaded->workspace;
    for (i = 0; i < loaded->bound_count; i++) {
        epctx_bound *bound = &loaded->bound[i];
        if (bound->weighted) b->weights_fn(b->self, bound->graph, NULL, 0, NULL);
    }
    if (w != NULL) epctx__load_give(loaded);
    for (; loaded->opened != NULL; loaded->opened = loaded->opened->next)
        epctx__ready_close(loaded->opened, b, &loaded->arena.allocator);
#ifndef EPCTX_NO_WIRE
    for (; loaded->sources != NULL; loaded->sources = loaded->sources->next)
        epctx_model_close(&loaded->sources->model);
#endif
    epctx_arena_free(&loaded->arena);
    memset(loaded, 0, sizeof *loaded);
    if (w != NULL) epctx__workspace_leave(w);
}

static epctx_status epctx__load_records(epctx__loading *l, const epctx_node *nodes, size_t count,
                                        epctx_error *error) {
    epctx_bound *bound;
    size_t i;
    l->nodes = nodes;
    for (i = 0; i < count; i++) {
        const epctx_attr *source = epctx_node_attr(&nodes[i], "source");
        const epctx_attr *weights;
        if (epctx_str_is(nodes[i].op_type, EPCTX_OP_TYPE) &&
            epctx_str_is(nodes[i].domain, EPCTX_DOMAIN) &&
            epctx__load_claims(l, source != NULL ? source->s : epctx_str_of(NULL))) {
            EPCTX__TRY(epctx__load_add(l, i, &bound, error));
            EPCTX__TRY(epctx_epnode_from_record(&nodes[i], &bound->node, error));
            EPCTX__TRY(epctx_node_get_attr(&nodes[i], EPCTX_WEIGHTS_ATTR, EPCTX_ATTR_STRING,
                                           &weights, error));
            bound->weights = weights != NULL ? weights->s : epctx_str_of(NULL);
        }
    }
    l->loaded->other_nodes = count - l->ours.count;
    return epctx__load_bound(l, error);
}

EPCTX_API epctx_status epctx_load_nodes(epctx_loaded *loaded, const epctx_node *nodes, size_t count,
                                        const epctx_backend *backend, const epctx_load_opts *opts,
                                        epctx_error *error) {
    epctx__loading l;
    epctx_status status;
    EPCTX__TRY(epctx__load_begin(&l, loaded, backend, opts, error));
    status = epctx__load_paths(&l, error);
    if (status == EPCTX_OK) status = epctx__load_records(&l, nodes, count, error);
    return epctx__load_end(&l, status, error);
}

#ifndef EPCTX_NO_WIRE

/* -- a model's bytes -- */

/* Adds to the message if the refused binary is of another compilation. Another size is already
 * reported. */
static void epctx__load_judge(const epctx__loading *l, epctx_status status, epctx_error *error) {
    const epctx__owner *owner = l->tried;
    const uint64_t *made = owner != NULL ? owner->bound->made : NULL;
    char path[EPCTX_PATH_MAX];
    epctx_mapping mapping;
    epctx_error why;
    uint64_t hash;
    if (error == NULL || made == NULL || made[0] == 0 || owner->binary.path == NULL ||
        (status != EPCTX_ERR_CONTEXT && status != EPCTX_ERR_VERSION) ||
        epctx__binary_read(&owner->binary.file, &mapping, path, NULL) != EPCTX_OK)
        return;
    hash = mapping.size == made[0] ? epctx_hash(mapping.data, mapping.size, 0) : made[1];
    owner->binary.file.io->unmap_fn(owner->binary.file.io->user, &mapping);
    epctx_error_clear(&why);
    if (hash == made[1]) return;
    epctx__other_binary(owner->binary.file.name, true, hash, made[1], &why);
    epctx__error_add(error, why.message);
}

/* Notes the size and hash that the build stamp gives for the file of the next node. */
static void epctx__load_stamped(epctx__made *m, const epctx_node_view *view, epctx_bound *bound) {
    epctx_epnode node;
    epctx__context one;
    if (m->format == 0 || epctx_view_read_epnode(view, &node, NULL) != EPCTX_OK ||
        !epctx_str_eq(node.source, m->source) || !epctx__context_of(view, &node, m->format, &one) ||
        !epctx__made_next(m, &one) || bound == NULL || one.embedded)
        return;
    bound->made[0] = m->binary.size;
    bound->made[1] = m->binary.hash;
}

static epctx_status epctx__load_weights_attr(epctx_bound *bound, epctx_error *error) {
    epctx_attr_view attr;
    epctx_status status;
    if (!epctx_view_node_find_attr(&bound->view, EPCTX_WEIGHTS_ATTR, &attr)) return EPCTX_OK;
    status = epctx__attr_type_check(attr.type, EPCTX_ATTR_STRING, error);
    bound->weights = attr.s;
    epctx_blame(error, NULL, &bound->node.name, EPCTX_WEIGHTS_ATTR);
    return status;
}

static epctx_status epctx__load_views(epctx__loading *l, epctx_error *error) {
    const char *source = l->loaded->backend->source;
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(l->model));
    epctx_node_view node;
    epctx__made made;
    size_t index;
    (void)epctx__made_begin(&made, l->model, epctx_str_of(source));
    for (index = 0; epctx_next_node(&it, &node); index++) {
        epctx_bound *bound = NULL;
        if (!epctx_view_is_epnode(&node)) continue;
        if (epctx__load_claims(l, epctx_view_node_attr_str(&node, "source"))) {
            EPCTX__TRY(epctx__load_add(l, index, &bound, error));
            EPCTX__TRY(epctx_view_read_epnode(&node, &bound->node, error));
            bound->view = node;
            EPCTX__TRY(epctx__load_weights_attr(bound, error));
        }
        epctx__load_stamped(&made, &node, bound);
    }
    l->loaded->other_nodes = index - l->ours.count;
    return epctx__load_bound(l, error);
}

EPCTX_API epctx_status epctx_load(epctx_loaded *loaded, const epctx_model *model,
                                  const epctx_backend *backend, const epctx_load_opts *opts,
                                  epctx_error *error) {
    epctx__loading l;
    epctx_status status;
    epctx_error_clear(error);
    EPCTX__TRY(epctx__load_begin(&l, loaded, backend, opts, error));
    status = epctx__check_open(model, error);
    if (status != EPCTX_OK) return epctx__load_end(&l, status, error);
    l.model = model;
    l.model_path = model->path;
    if (l.opts.io == NULL) {
        l.file.io = epctx_model_io(model);
        l.file.path_flags = model->path_flags;
    }
    status = epctx__load_paths(&l, error);
    if (status != EPCTX_OK) return epctx__load_end(&l, status, error);
    l.opts.path_flags = model->path_flags;
    l.opts.external_folder = model->external_folder;
    l.changes = model->mapping.shared && (model->path_flags & EPCTX_PATH_IN_PLACE) == 0 &&
                !(model->mapping.info.guarded && (model->path_flags & EPCTX_PATH_GUARDED) != 0);
    status = epctx__load_views(&l, error);
    if (status != EPCTX_OK) epctx__load_judge(&l, status, error);
    return epctx__load_end(&l, status, error);
}

#endif /* EPCTX_NO_WIRE */

/* ============================================================
 * >>abi
 *
 * All public structs, in the order of their declarations, by what a build has: those of model
 * bytes are not in one with EPCTX_NO_WIRE, those of edits not in one with EPCTX_NO_EDIT.
 * ============================================================ */

#define EPCTX__STRUCTS(X) \
    X(epctx_error) \
    X(epctx_span) \
    X(epctx_str) \
    X(epctx_allocator) \
    X(epctx_arena) \
    X(epctx_list) \
    X(epctx_buffer) \
    X(epctx_map) \
    X(epctx_limits) \
    X(epctx_text) \
    X(epctx_hooks) \
    X(epctx_file_info) \
    X(epctx_mapping) \
    X(epctx_io_file) \
    X(epctx_io) \
    X(epctx_file_lock) \
    X(epctx_buffer_io) \
    X(epctx_view) \
    X(epctx_field) \
    X(epctx_cursor) \
    X(epctx_binary_id) \
    X(epctx_node_view) \
    X(epctx_value) \
    X(epctx_tensor) \
    X(epctx_attr) \
    X(epctx_node) \
    X(epctx_graph) \
    X(epctx_epnode) \
    X(epctx_profile) \
    X(epctx_option_info) \
    X(epctx_options) \
    X(epctx_entries) \
    X(epctx_write_opts) \
    X(epctx_output_file) \
    X(epctx_commit) \
    X(epctx_partition) \
    X(epctx_weights_opts) \
    X(epctx_weight) \
    X(epctx_weights_stats) \
    X(epctx_weights) \
    X(epctx_memory) \
    X(epctx_graph_info) \
    X(epctx_build_opts) \
    X(epctx_load_in) \
    X(epctx_backend) \
    X(epctx_outside_weight) \
    X(epctx_ep_opts) \
    X(epctx_ep) \
    X(epctx_preflight_in) \
    X(epctx_outputs) \
    X(epctx_lock) \
    X(epctx_workspace_opts) \
    X(epctx_share_opts) \
    X(epctx_load_opts) \
    X(epctx_bound) \
    X(epctx_loaded)

#ifndef EPCTX_NO_WIRE
#define EPCTX__WIRE_STRUCTS(X) \
    X(epctx_field_info) \
    X(epctx_open_opts) \
    X(epctx_model) \
    X(epctx_model_info) \
    X(epctx_graph_view) \
    X(epctx_attr_view) \
    X(epctx_tensor_view) \
    X(epctx_value_view) \
    X(epctx_dim) \
    X(epctx_opset) \
    X(epctx_pair) \
    X(epctx_walk_level) \
    X(epctx_walk) \
    X(epctx_shape_reader) \
    X(epctx_check_opts) \
    X(epctx_dependency) \
    X(epctx_reader) \
    X(epctx_range) \
    X(epctx_scan) \
    X(epctx_stamp_line) \
    X(epctx_stamp_option)
#else
#define EPCTX__WIRE_STRUCTS(X)
#endif

#ifndef EPCTX_NO_EDIT
#define EPCTX__EDIT_STRUCTS(X) \
    X(epctx_file_rename) \
    X(epctx_stamp_opts) \
    X(epctx_change) \
    X(epctx_changes) \
    X(epctx_convert_opts) \
    X(epctx_prefix_opts) \
    X(epctx_gen_memory) \
    X(epctx_gen_opts) \
    X(epctx_gen_report) \
    X(epctx_fresh_opts)
#else
#define EPCTX__EDIT_STRUCTS(X)
#endif

EPCTX_API const char *epctx_version(void) {
    return EPCTX_VERSION_STRING;
}

#define EPCTX__STRUCT_ROW(name) {#name, sizeof(name)},

EPCTX_API size_t epctx_struct_size(const char *name) {
    static const struct {
        const char *name;
        size_t size;
    } all[] = {EPCTX__STRUCTS(EPCTX__STRUCT_ROW) EPCTX__WIRE_STRUCTS(EPCTX__STRUCT_ROW)
                   EPCTX__EDIT_STRUCTS(EPCTX__STRUCT_ROW)};
    const epctx_str wanted = epctx_str_of(name);
    size_t i;
    for (i = 0; i < sizeof all / sizeof all[0]; i++)
        if (epctx_str_is(wanted, all[i].name)) return all[i].size;
    return 0;
}

#ifdef __cplusplus
}
#endif

#endif /* EPCTX__STOP */

#endif /* EPCTX_IMPLEMENTATION */
