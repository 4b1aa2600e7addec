/* lint_internal.h - common declarations of the lint files. */
#ifndef EPCTX_OPS_LINT_INTERNAL_H
#define EPCTX_OPS_LINT_INTERNAL_H

#include "lint.h"
#include "ops.h"
#include "../facts/facts.h"

/* Prevents inlining into a recursive caller, where its variables would occupy the stack of each
 * level. */
#if defined(__GNUC__) || defined(__clang__)
#define LINT_APART __attribute__((noinline))
#else
#define LINT_APART
#endif

#define LINT_MESSAGE 512

/* Name of an attribute in a finding. */
#define LINT_ATTR_TEXT 64

typedef struct linter {
    const epctx_model *model;
    const epctx_check_opts *opts;
    epctx_arena arena;
    epctx_finding_fn found_fn;
    void *user;
    uint64_t counts[EPCTX_SEVERITY_COUNT];
    epctx_str graph; /* that is being checked; empty: the main graph */
    bool in_function;
    bool in_training;
    bool unread;             /* in a function that ORT never sees */
    epctx_rule demoted;      /* the rule that errors count as; EPCTX_RULE_COUNT: none */
    const char *profile;     /* of the nodes that are being checked, or NULL */
    const char *until;       /* of the next finding, or NULL */
    char ort[FACTS_RELEASE]; /* the version of ORT that is judged for, "1.31" */
    epctx_list nodes;        /* lint_judged */
    epctx_list ios;          /* lint_io, of all of these */
    epctx_list binaries;     /* of lint_binary.c */
    const struct binary_asker *asker;
    bool no_payloads;   /* contexts are not looked into */
    epctx_list parties; /* lint_party */
    epctx_map party_of;
    epctx_map epnode_names;
    epctx_map unknown_sources;
    epctx_list lenient;  /* epctx_profile *, of EPs that one source does not tell apart */
    epctx_map imports;   /* domain -> 1, or 2 for a version that ORT does not support */
    epctx_map functions; /* ops_function_id -> position in the list */
    epctx_list callees;  /* lint_callee */
    char *identifier;    /* for one of theirs; the longest fits */
    size_t identifier_size;
    epctx_map idle_files; /* location -> number of unread initializers that name it */
    epctx_map body_files; /* locations in subgraphs, where ORT checks all files */
    epctx_dependency *files;
    size_t file_count;
    size_t looked;            /* for missing files, around their places */
    epctx_map external_files; /* location -> position in `files` */
    int64_t ir_version;
    epctx_map configurations;
    uint64_t main_nodes;
    epctx_error *error;
} linter;

/* An EPContext node and what is known about it. */
typedef struct lint_judged {
    epctx_epnode node;
    epctx_node_view view;
    const epctx_profile *profile;
    epctx_str graph;
    bool context;              /* it has one: a payload, a path or a DLC */
    bool ours;                 /* checked by its profile; else it is for another EP */
    size_t party;              /* if `ours`: position in linter.parties */
    size_t next;               /* 1 + position of the next one of the party; 0: the last */
    size_t first_io, io_count; /* in linter.ios */
} lint_judged;

/* An input or output of an EPContext node. */
typedef struct lint_io {
    epctx_str name;
    bool output;
    bool weight; /* an initializer, which the context may have itself */
    bool given;  /* an input of the graph: whoever runs it chooses the shape */
    bool known;  /* `info` is what the model says of it */
    epctx_value_view info;
} lint_io;

/* A function of the model. */
typedef struct lint_callee {
    epctx_function_view view;
    bool called;
    bool replaced;  /* by a later one of the same identifier */
    uint64_t nodes; /* of its own, those of bodies included */
    uint64_t bytes; /* of its own constants */
    uint64_t times; /* that ORT expands it, at most UINT64_MAX */
} lint_callee;

/* Node `to` reads what node `from` produces. */
typedef struct lint_edge {
    uint32_t from, to;
} lint_edge;

/* A subgraph and node `producer` of the main graph define the same name: an error if ORT orders
 * `producer` before `owner`, the node with the subgraph. */
typedef struct lint_shadow_note {
    uint32_t producer, owner;
    epctx_str name, node, graph;
} lint_shadow_note;

/* A tensor and the name of its value. */
typedef struct lint_constant_note {
    epctx_view view;
    epctx_str name;
} lint_constant_note;

/* A graph whose nodes are being checked. */
typedef struct lint_frame {
    struct lint_frame *outer;
    const epctx_node_view *node; /* the current one */
    epctx_map names;    /* value -> 0: input, 1: initializer, else 2 + position of its producer */
    epctx_map used;     /* initializers that something reads */
    uint32_t at;        /* position of the current node */
    uint8_t *constants; /* which nodes are Constant, which ORT treats as initializers */
    epctx_list edges;   /* main graph: which node reads from which, bodies included */
    epctx_list shadows; /* main graph: lint_shadow_note */
    bool unsorted;      /* a node reads the output of a later one */
    bool bare;          /* IR 3 and older: an initializer is not in `inputs` */
    epctx_map inputs;
    size_t node_count; /* without those constants */
    epctx_map tensors; /* initializer -> position of the last of the name in `tensor_list` */
    epctx_list
        tensor_list; /* lint_constant_note: initializers, then Constant nodes of the main graph */
    size_t initializer_count;
    epctx_map declared;       /* initializer -> position in `declared_list` */
    epctx_list declared_list; /* epctx_value_view */
    bool joined;              /* one graph with `outer`, of which it is the continuation */
    bool typed;               /* the two below are filled in */
    epctx_map types;          /* value -> position in `notes` */
    epctx_list notes;         /* lint_type_note */
} lint_frame;

/* -- lint.c -- */

void lint_say(linter *l, epctx_rule rule, epctx_str node, const char *attribute, const char *format,
              ...);
/* Maps and lists live in lint's arena. Unlike ops_put, accepts an empty key. */
epctx_status lint_set(linter *l, epctx_map *map, epctx_str key, uint32_t value);
/* Does not change an existing key: `before` gets its value, else EPCTX_MAP_NONE. */
epctx_status lint_add(linter *l, epctx_map *map, epctx_str key, uint32_t value, uint32_t *before);
/* A zeroed element. `out` is the address of a pointer to it. */
epctx_status lint_append(linter *l, epctx_list *list, size_t size, void *out);
void lint_attr_text(char out[LINT_ATTR_TEXT], epctx_str name);
/* Opset imports of the model or of a function. For each domain the last one counts, as in ORT. */
epctx_status lint_opsets(linter *l, epctx_cursor imports);
epctx_status lint_domain(linter *l, const epctx_node_view *node, bool inner);
bool lint_is_body(const epctx_field *field);
/* Singular fields that occur twice, and strings that are not UTF-8. `node`: the innermost node. */
void lint_fields(linter *l, epctx_kind type, epctx_view message, epctx_str node, epctx_str attr);
/* What the model itself has besides its graph. */
epctx_status lint_model(linter *l);

/* -- lint_function.c -- */

/* Lists the functions, and which of them the main graph calls, itself or through others. */
epctx_status lint_callees(linter *l);
lint_callee *lint_callee_at(const linter *l, size_t i);
/* The function that a node calls: its position, or EPCTX_MAP_NONE. */
uint32_t lint_callee_of(const linter *l, const epctx_node_view *node);
epctx_status lint_add_edge(linter *l, epctx_list *edges, uint32_t from, uint32_t to);
/* Orders nodes as ORT does. `order` gets the position of each; UINT32_MAX for nodes in a cycle and
 * those that depend on one. */
epctx_status lint_ort_order(linter *l, const epctx_list *edges, uint32_t nodes, uint32_t *order,
                            bool *circle);

/* -- lint_graph.c -- */

epctx_status lint_graph(linter *l, epctx_view graph, lint_frame *outer);
/* Whether this is the main graph, whose nodes ORT sorts. */
bool lint_is_main(const linter *l, const lint_frame *scope);
epctx_status lint_scope_nodes(linter *l, lint_frame *scope, epctx_cursor nodes);
epctx_status lint_nodes(linter *l, lint_frame *scope, epctx_cursor nodes, epctx_view graph);

/* -- lint_inlined.c -- */

epctx_status lint_inlined(linter *l);

/* -- lint_callee.c -- */

epctx_status lint_function(linter *l, const lint_callee *callee);

/* -- lint_tensor.c -- */

bool lint_elem_known(int32_t elem_type);
/* The rule of the ONNX checker, which ORT applies to every node, for a tensor in an attribute or a
 * subgraph: its data is in exactly one field, that of its type or raw_data. */
void lint_tensor_form(linter *l, epctx_view view, epctx_str node);
/* An initializer that something reads. */
void lint_tensor(linter *l, epctx_view view, epctx_str name);
void lint_sparse(linter *l, const epctx_sparse_view *sparse, epctx_str name);

/* -- lint_shape.c -- */

/* Constants that ORT reads while it infers shapes, and that are in files. After lint_list_files. */
epctx_status lint_shape_constants(linter *l);

/* -- lint_epnode.c -- */

epctx_status lint_epnode(linter *l, lint_frame *scope, const epctx_node_view *view,
                         epctx_view graph);
/* Another operator that is nearly EPContext. */
void lint_op_spelling(linter *l, const epctx_node_view *node);
/* Notes the types of values, for EPContext nodes, from a list of ValueInfoProtos. */
epctx_status lint_note_list(linter *l, lint_frame *scope, epctx_view owner, uint32_t number);
lint_judged *lint_judged_at(const linter *l, size_t i);
/* Checks the EPContext nodes of each EP together. */
epctx_status lint_parties(linter *l);
/* Compatibility entries of the metadata. */
epctx_status lint_compat(linter *l);
/* Build stamps of EPs that no node is for. */
void lint_stamps(linter *l);

/* -- lint_binary.c -- */

/* Compares nodes with what their contexts tell. After lint_parties. */
epctx_status lint_binaries(linter *l);

/* -- lint_file.c -- */

/* Lists the files of the model, for the other checks. */
epctx_status lint_list_files(linter *l);
void lint_files(linter *l);

#endif
