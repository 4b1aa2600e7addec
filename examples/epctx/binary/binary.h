/* binary.h - what a context binary says about itself: its graphs with their inputs and outputs,
 * what it was built for, the other files that it needs. */
#ifndef EPCTX_BINARY_H
#define EPCTX_BINARY_H

#include "../ops/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bounds of what is read. Of a binary with more graphs or values none is told. */
enum {
    BINARY_MOST_GRAPHS = 4096,
    BINARY_MOST_VALUES = 65536, /* inputs and outputs of all graphs */
    BINARY_MOST_RANK = 32,
    BINARY_MOST_NEEDS = 65536
};

/* An input or output of a graph. */
typedef struct binary_value {
    epctx_str name;      /* empty: not told */
    epctx_str aliases;   /* further names of it, separated by commas; mostly empty */
    int32_t elem_type;   /* as in a TensorProto; 0: not told, or a type that ONNX has not */
    epctx_str type;      /* in the format's own words; may be empty */
    bool shaped;         /* else `dims` is not told */
    const int64_t *dims; /* -1: any */
    size_t rank;
} binary_value;

typedef struct binary_graph {
    epctx_str name;                 /* what a node names it by; empty: not told */
    bool values_known;              /* else the two lists are empty because they are not told */
    binary_value *inputs, *outputs; /* in the format's order */
    size_t input_count, output_count;
} binary_graph;

/* The location of a file that has the binary's own name. */
#define BINARY_BESIDE "{stem}.bin"

/* A part of another file that the binary refers to. */
typedef struct binary_need {
    epctx_str location; /* as it stands there: beside the model; or BINARY_BESIDE */
    uint64_t offset, size;
    epctx_str value; /* the input of a graph that it becomes; may be empty */
} binary_need;

/* Strings and lists live in the arena or in the file. */
typedef struct binary_facts {
    epctx_binary_id id;  /* of epctx_binary_identify */
    const char *told_by; /* "the file", or the vendor's library that was asked */
    const char *damage; /* what is surely wrong, behind id.name: "is cut off: ..."; NULL: nothing */
    bool graphs_known;  /* else `graphs` is empty because nobody told */
    binary_graph *graphs;
    size_t graph_count;
    binary_need *needs;
    size_t need_count;
    /* Each may be empty: not told. */
    epctx_str format_version;        /* of the container */
    epctx_str producer;              /* the program that wrote the file */
    epctx_str sdk;                   /* that built what is in it */
    epctx_str backend;               /* the part of the SDK that runs it: "HTP" */
    epctx_str core_api, backend_api; /* versions of the vendor's interfaces */
    epctx_str architecture;          /* "v79"; of several, "v73,v79" */
    epctx_str *chips;                /* that it is for, in capitals */
    size_t chip_count;
    uint64_t vtcm_size; /* bytes; 0: not told */
} binary_facts;

/* What may be asked besides the file itself. */
typedef struct binary_asker {
    void *user;
    /* Fills in what a vendor's library tells of a binary of a kind that only it reads. Returns
     * false, with nothing changed, when it cannot be asked. */
    bool (*ask_fn)(void *user, epctx_span file, epctx_arena *arena, binary_facts *facts);
} binary_asker;

/* Whether the EP of a profile reads what that of profile `writes` writes: the names of in-tree EPs,
 * plugins and relatives contain each other. */
bool binary_is_of(const char *writes, const epctx_profile *reads);

/* Reads `file`, hostile or not, in memory that does not depend on its size. A file that is damaged
 * or of an unknown kind is no error: `out` says so. `asker` may be NULL. Errors: NOMEM. */
epctx_status binary_read(epctx_span file, const binary_asker *asker, epctx_arena *arena,
                         binary_facts *out, epctx_error *error);
/* Of all that only the parts of other files that it refers to: whatever the size of `file`, only
 * its directory is read. The locations are in `file`. */
epctx_status binary_read_needs(epctx_span file, epctx_arena *arena, binary_need **out,
                               size_t *count, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
