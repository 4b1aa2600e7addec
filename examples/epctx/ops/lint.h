/* lint.h - checks a model by the rules of ORT, of the design document and of each EP. */
#ifndef EPCTX_OPS_LINT_H
#define EPCTX_OPS_LINT_H

#include "epctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lint rules: symbol, id, name, problem, fix. Ids never change their meaning. E: an ORT session or
 * the EP fails. W: some readers fail, or the effect is surprising. I: worth knowing. */
#define EPCTX_RULE_LIST(X) \
    X(NO_GRAPH, "E002", "no-graph", "the model has no graph", "use the original model again") \
    X(WRONG_DOMAIN, "E003", "wrong-domain", "EPContext in a domain other than com.microsoft", \
      "set the node's domain to com.microsoft") \
    X(ATTRIBUTE_TYPE, "E004", "attribute-type", \
      "an attribute has another type than in the schema", "store it with the type of the schema") \
    X(ATTRIBUTE_VALUE, "E005", "attribute-value", "an attribute has an invalid value", \
      "use 0 or 1") \
    X(DOUBLED_ATTRIBUTE, "E006", "doubled-attribute", "a node has two attributes of one name", \
      "keep one of them") \
    X(DOUBLED_EPNODE, "E007", "doubled-epnode-name", "two EPContext nodes have the same name", \
      "generate with ep.context_node_name_prefix so that names differ") \
    X(DOUBLED_VALUE, "E008", "doubled-value", "a value is produced twice", "rename one of them") \
    X(DOUBLED_INITIALIZER, "E009", "doubled-initializer", \
      "two initializers of a body have the same name", "remove one of them") \
    X(UNDEFINED_VALUE, "E010", "undefined-value", "a node reads a value that nothing produces", \
      "add the input, initializer or node that produces the value") \
    X(DROPPED_VALUE, "E011", "dropped-outer-value", \
      "a body reads an outer value that does not exist", \
      "restore the initializer from the source model (see ORT issue 32131)") \
    X(NO_PRIMARY, "E012", "secondary-without-primary", "a secondary node without a primary one", \
      "one node of this EP needs main_context 1 and the context") \
    X(NO_CONTEXT, "E013", "main-without-context", "a primary node has no context", \
      "set ep_cache_context, or main_context 0 if another node has the context") \
    X(NO_PAYLOAD, "E014", "payload-missing", "this EP needs the context in every node", \
      "move the context to a file (epctx extract), or generate with ep.context_embed_mode 0") \
    X(MIXED_MODES, "E015", "mixed-embed-modes", "embedded and external contexts in one model", \
      "use one embed mode for all nodes of this EP, e.g. all in files (epctx extract)") \
    X(NO_SOURCE, "E016", "source-missing", "this EP ignores nodes without source", \
      "set source to the EP's name") \
    X(SOURCE_SPELLING, "E017", "source-spelling", "this EP compares source exactly", \
      "write source as the EP writes it") \
    X(NOT_OURS, "E018", "no-node-of-ep", "no node of the model is for this EP", \
      "use the EP that the nodes name, or compile the model for this EP") \
    X(PATH_EMPTY, "E019", "path-empty", "embed_mode 0 and no path", \
      "set ep_cache_context to the binary's name") \
    X(PATH_UNSAFE, "E020", "path-unsafe", "a path that is absolute or leaves the model's folder", \
      "store a path relative to the model, without '..'") \
    X(MEMORY_LOCATION, "E021", "memory-location", "a location in the memory of another process", \
      "write the model again with the data inside (ORT issue 28158)") \
    X(FILE_MISSING, "E022", "file-missing", "a file that the model needs does not exist", \
      "copy it beside the model; epctx repair finds one that is there with another path, and a " \
      "renamed binary by the build stamp or by what is inside of it") \
    X(FILE_IRREGULAR, "E023", "file-irregular", \
      "a file that the model needs is not a regular file", \
      "replace it with a regular, readable file") \
    X(FILE_EMPTY, "E024", "file-empty", "a file that the model needs has no bytes", \
      "copy it again, or compile the model again") \
    X(PATH_LINK, "E025", "path-through-link", "a link leads out of the model's folder", \
      "replace the link with the file") \
    X(VALUE_TYPE, "E026", "value-type", "EPContext does not allow this type", \
      "keep such values outside the partition") \
    X(NO_VALUE_TYPE, "E027", "value-type-missing", "an output of EPContext has no type", \
      "compile the source again, or set the type (epctx set value:NAME=float32[1,4])") \
    X(NO_OPSET, "E028", "opset-missing", "the domain of a node is not imported", \
      "add the opset import") \
    X(DYNAMIC_SHAPE, "E030", "dynamic-shape", "this EP supports static shapes only", \
      "fix the shape before compiling (epctx set dim:NAME=N or dim:INPUT[AXIS]=N; where there is " \
      "none value:NAME=float32[1,4])") \
    X(MORE_NODES, "E031", "more-than-one-node", "this EP loads graphs of exactly one node", \
      "compile the whole graph into one partition") \
    X(MODEL_SIZE, "E032", "model-too-large", "libprotobuf reads at most 2 GiB", \
      "move contexts (embed_mode 0) and initializers into files") \
    X(PAYLOAD_SIZE, "E033", "payload-too-large", "an embedded context of 2 GiB or more", \
      "move it to a file (epctx extract), or generate with ep.context_embed_mode 0") \
    X(EXTERNAL_RANGE, "E034", "external-range", "external data ends beyond its file", \
      "copy the data file again") \
    X(NO_LOCATION, "E035", "external-location-missing", "external data without a location", \
      "set the location of the data file") \
    X(NO_OUTPUT, "E036", "no-output", "an EPContext node without outputs", "remove the node") \
    X(OUTPUT_UNDEFINED, "E037", "output-undefined", "a graph output that nothing produces", \
      "connect the output") \
    X(ONLY_EMBEDDED, "E038", "file-not-read", "this EP reads embedded contexts only", \
      "embed the context") \
    X(NO_KEY, "E039", "key-missing", "the name by which the EP finds the graph is missing", \
      "set it to the name at the time of compiling") \
    X(DOUBLED_KEY, "E040", "key-doubled", "two nodes use the same graph of one context", \
      "generate with ep.context_node_name_prefix") \
    X(NO_ATTRIBUTE, "E041", "attribute-missing", "this EP needs the attribute to be stored", \
      "store the attribute") \
    X(MANY_PRIMARIES, "E042", "several-primaries", "this EP needs exactly one primary node", \
      "set main_context 0 on the others") \
    X(PROFILE, "E044", "profile-check", "a rule of this EP is broken", "see the message") \
    X(NO_BASE, "E045", "folder-unknown", "the model came from memory and needs files", \
      "set ep.context_file_path, or the folder of the initializers") \
    X(TENSOR_SIZE, "E046", "tensor-size", "the size of an initializer does not match its shape", \
      "take the model from its source again") \
    X(DOUBLED_NODE, "E047", "doubled-node-name", "two nodes of a graph have the same name", \
      "rename one of them") \
    X(CYCLE, "E048", "cycle", "nodes form a cycle", "take the model from its source again") \
    X(BODY_ORDER, "E049", "order-in-body", \
      "a body or function reads a value that a later node produces", \
      "sort the nodes: ORT sorts only the main graph") \
    X(IR_REFUSED, "E050", "ir-version", "no IR version, or one newer than ORT reads", \
      "set one that ORT reads (epctx set model:ir_version=N); a newer one also loads with a " \
      "newer " \
      "ORT") \
    X(OPSET_VERSION, "E051", "opset-version", \
      "ORT does not support this version of an operator set", \
      "load it with a newer ORT, or convert the model to an older version") \
    X(NO_OPSETS, "E052", "opsets-missing", "the model imports no operator set", \
      "add the opset imports") \
    X(NO_INPUT_TYPE, "E053", "input-type-missing", "a graph input has no type", \
      "set the type, as in the source model") \
    X(ELEMENT_TYPE, "E054", "element-type", \
      "an element type that does not exist, or that ORT does not support", \
      "take the model from its source again") \
    X(OUTER_NAME, "E055", "outer-name-redefined", "a body redefines the name of an outer value", \
      "rename the value in the body") \
    X(ATTRIBUTE_FORM, "E056", "attribute-form", \
      "an attribute without a name or type, or with a value of another type", \
      "take the model from its source again") \
    X(NODE_FORM, "E057", "node-form", "a node without op_type, or without inputs and outputs", \
      "remove the node") \
    X(NO_BODY_NAME, "E058", "body-name-missing", "a body has no name", "set a name") \
    X(NO_NODES, "E059", "no-nodes", "the graph has no nodes and no outputs", \
      "there is nothing to run: add an Identity node") \
    X(INITIALIZER_TYPE, "E060", "initializer-type", \
      "an initializer and its declaration differ in type or shape", "correct the declaration") \
    X(TENSOR_FORM, "E061", "tensor-form", \
      "the data of a tensor is in several fields or in the wrong one", \
      "store it in raw_data only") \
    X(NOT_AN_INPUT, "E062", "initializer-not-input", \
      "up to IR version 3, initializers must be graph inputs", \
      "set IR version 4 or newer, or list it as an input") \
    X(EXTERNAL_ENTRY, "E063", "external-entry", "external data with an entry that ORT rejects", \
      "keep location, offset, length and checksum, each once, offset and length as numbers") \
    X(NO_VALUE_NAME, "E064", "value-name-missing", "an input or initializer has no name", \
      "set a name") \
    X(OUTER_RESULT, "E065", "outer-result", "a body returns an outer value", \
      "add an Identity node between the value and the body's output") \
    X(RECURSION, "E066", "function-recursion", "functions call each other recursively", \
      "take the model from its source again") \
    X(FUNCTION_FORM, "E067", "function-form", \
      "a function's inputs and outputs, or a call of them, do not fit", \
      "take the model from its source again") \
    X(SPARSE_TENSOR, "E068", "sparse-tensor", \
      "values, indices and shape of a sparse initializer do not fit", \
      "take the model from its source again") \
    X(STALE_BINARY, "E069", "binary-stale", \
      "the context binary is not the one that the build stamp names", \
      "bring back the binary, or compile again, together with the models that share it; if it is " \
      "right: epctx stamp MODEL --in-place") \
    X(DOUBLED_FUNCTION, "E070", "doubled-function", \
      "two functions have one identifier: ORT refuses the model, older ones use the last", \
      "remove the one that is not meant") \
    X(EXPANSION, "E071", "function-expansion", \
      "inlining functions goes beyond a limit of ORT; older versions have none", \
      "make the constants of functions inputs, call fewer functions, or raise the session option " \
      "that the message names") \
    X(BODY_INPUT, "E072", "body-input-initializer", \
      "an input of a Loop's or Scan's body is also an initializer: ORT 1.31 refuses the model, " \
      "1.30 aborts", \
      "remove the initializer: the node gives the input its value") \
    X(REGISTRATION, "E073", "registration-name", \
      "source is the name under which epctx before 0.3 registered EPs: applications do not", \
      "compile again, or set source to the EP's name") \
    X(OTHER_EP, "E074", "source-changed", \
      "the build stamp says that another EP compiled the node's context: source was changed", \
      "set source to that EP's name again: epctx set MODEL source=NAME --in-place") \
    X(OP_SPELLING, "E075", "operator-spelling", \
      "an operator of com.microsoft that does not exist, and is nearly EPContext", \
      "correct op_type: it is EPContext") \
    X(FOREIGN_BINARY, "E076", "binary-foreign", "the context is surely no context binary", \
      "fetch or copy the binary again") \
    X(OTHER_BINARY, "E077", "binary-other-ep", "the context is of another EP than the node", \
      "use the binary that was compiled with the model, or set source to its EP") \
    X(DAMAGED_BINARY, "E078", "binary-damaged", "the context binary is cut off or damaged", \
      "fetch or copy the binary again, or compile again") \
    X(BINARY_GRAPH, "E079", "binary-graph", "the context binary does not have the node's graph", \
      "use the binary that was compiled with the model, and the names that it has") \
    X(BINARY_VALUES, "E080", "binary-values", \
      "inputs or outputs of the node are not those of its graph in the binary", \
      "use the binary that was compiled with the model") \
    X(BINARY_TARGET, "E081", "binary-target", \
      "the node says that its binary is for something else than it is", \
      "correct the attribute, or use the binary that was compiled with the model") \
    X(CONTEXT_PLACE, "E082", "context-place", \
      "the embedded context is in a node that the EP does not get first", \
      "move it to the first one (epctx repair)") \
    X(SHAPE_OUTSIDE, "E085", "shape-in-file", \
      "a constant that decides a shape is in a file, where ORT does not read it", \
      "bring it back into the model (epctx repair)") \
    X(NO_INPUT, "E086", "no-input", \
      "an EPContext node without inputs, of which older versions of ORT want one", \
      "load it with ORT 1.28.1 or newer, or give the node an input") \
    X(PAYLOAD_AS_PATH, "E087", "payload-as-path", \
      "embed_mode 0, but ep_cache_context holds a context binary, not a path", \
      "set embed_mode 1: the context is inside") \
    X(INLINED_NAME, "E088", "inlined-name", \
      "a name of the graph that ORT gives itself when it inlines a function", \
      "rename the value (epctx rename) or the node (epctx rename --nodes)") \
    X(EPCONTEXT_OPSET, "W001", "epcontext-opset", "com.microsoft is not imported", \
      "add the opset import com.microsoft, version 1 (epctx repair)") \
    X(SOURCE_ABSENT, "W002", "source-absent", "only some EPs accept a node without source", \
      "set source to the EP's name") \
    X(PAYLOAD_IGNORED, "W003", "payload-ignored", \
      "a secondary node has a context that is not read", \
      "remove ep_cache_context, or set main_context 1") \
    X(STALE_COMPAT, "W004", "compatibility-stale", "compatibility info of an EP without a node", \
      "remove the metadata entry") \
    X(COMPAT_SYNTAX, "W005", "compatibility-syntax", "compatibility info that the EP cannot read", \
      "remove the entry or compile again") \
    X(IN_BODY, "W006", "in-subgraph", "EPContext in a body or function", \
      "move it to the main graph: EPs load only nodes there") \
    X(BACKSLASH, "W007", "path-backslash", "a path with backslashes, which works on Windows only", \
      "use slashes") \
    X(BUILD_PATH, "W008", "build-path", "a path of the build machine is stored", \
      "store the file name only") \
    X(LIKE_PATH, "W009", "payload-like-path", "the embedded context looks like a file name", \
      "set embed_mode 0: the default is 1") \
    X(NO_NAME, "W010", "epnode-name-missing", "an EPContext node without a name", \
      "name it: ORT and EPs find nodes by name") \
    X(DOUBLED_METADATA, "W011", "metadata-doubled", "a metadata key occurs twice", "keep one") \
    X(DOUBLED_INFO, "W012", "value-info-doubled", "a value has two value_info entries", \
      "keep one") \
    X(NOT_UTF8, "W014", "not-utf8", "a string is not UTF-8", \
      "store it as UTF-8: readers in Python and Java fail") \
    X(DOTS, "W015", "path-dots", "'..' in a path, which this EP refuses even inside a name", \
      "rename the file or folder (epctx mv changes the nodes, too)") \
    X(NEAR_LIMIT, "W017", "near-size-limit", \
      "the model is close to the 2 GiB limit of libprotobuf", "move contexts into files") \
    X(ORDER, "W018", "order", "a node reads a value that a later node produces", \
      "sort the nodes: ORT sorts the main graph itself, other tools do not") \
    X(ANNOTATION, "W019", "annotation-dangling", "an annotation for a value that does not exist", \
      "remove the annotation, or rename it with its value") \
    X(CONFIGURATION, "W020", "configuration-undeclared", \
      "a node refers to a device configuration that does not exist", \
      "add it to the model's configuration list, or correct configuration_id") \
    X(SHARDING, "W021", "sharding-dangling", "a sharding for a value that the node does not have", \
      "use the present name of an input or output of the node") \
    X(BINDING, "W022", "training-binding", "a training binding with a missing end", \
      "bind each initializer once, to an output, by their present names") \
    X(TRAINING, "W023", "training-graph", "a training graph breaks a rule for graphs", \
      "see the message; sessions do not read training graphs") \
    X(NO_GRAPH_NAME, "W024", "graph-name-missing", "a graph has no name", "set a name") \
    X(DOUBLED_FIELD, "W025", "doubled-field", "a singular field occurs twice", \
      "write the model again with one reader, or do not trust it") \
    X(REDEFINED, "W026", "initializer-redefined", \
      "two initializers of the main graph have the same name", \
      "remove one of them: ORT uses the last one") \
    X(DOUBLED_OPSET, "W027", "opset-doubled", "a domain is imported twice", \
      "keep one import: ORT uses the last one") \
    X(DEFAULT_OPSET, "W028", "opset-defaulted", \
      "the domain of a node is not imported; ORT uses its newest version", "add the opset import") \
    X(IDLE_FUNCTION, "W029", "function-unused", "a function that nothing calls breaks a rule", \
      "remove the function") \
    X(IDLE_INITIALIZER, "W030", "initializer-unused", \
      "an initializer that nothing reads breaks a rule", "remove the initializer") \
    X(DETOUR, "W031", "path-detour", "a path with '..' that stays inside the model's folder", \
      "store it without '..': ORT loads it, other readers reject it") \
    X(OUTPUT_TYPE, "W032", "output-type", \
      "EPContext does not allow this output type; ORT does not check", \
      "keep such values outside the partition") \
    X(MISSPELLED_SOURCE, "W034", "source-misspelled", \
      "source is a letter or two off the name of an EP, and no EP's", \
      "correct source, unless the application registers the EP by this name") \
    X(REFERENCE, "W033", "attribute-reference", \
      "an attribute outside a function refers to one of a function", "store the value itself") \
    X(SHAPE_MAYBE, "W037", "shape-maybe-in-file", \
      "a constant that may decide a shape is in a file: ORT may refuse the model", \
      "bring it back into the model (epctx repair)") \
    X(DEFAULTS, "I001", "defaults-used", "main_context or embed_mode is absent and counts as 1", \
      "set both") \
    X(EXTRA_ATTRIBUTE, "I002", "extra-attribute", "an attribute that is not in the schema", \
      "none needed if the EP has its own attributes") \
    X(UNKNOWN_SOURCE, "I003", "unknown-source", \
      "checked by the design document: no profile matches", \
      "use the profile of a similar EP, or your own") \
    X(NO_COMPAT, "I004", "no-compatibility", "no compatibility info: ORT cannot check in advance", \
      "compile with an EP that writes it") \
    X(WEIGHTLESS, "I005", "weightless", "the node takes weights as inputs", \
      "keep the initializers with the model") \
    X(UNUSED, "I006", "unused-initializer", "nothing reads this initializer", "remove it") \
    X(BINARY_NAME, "I007", "binary-name", "the binary does not have the EP's default name", \
      "none needed: it was renamed, or several models share it") \
    X(FOREIGN, "I008", "foreign-node", "a node for another EP", "add that EP to the session") \
    X(NO_SDK, "I009", "sdk-unknown", "ep_sdk_version is not stored", "none needed") \
    X(UNKNOWN_BINARY, "I010", "binary-unknown", \
      "the context is of no format that is known of its EP", \
      "none needed for a newer format; else use the EP's own binary") \
    X(STALE_OVERRIDE, "I011", "override-unused", \
      "io_name_overrides has a name that the node does not have", \
      "store the new name, if the value was renamed (epctx rename does)")

struct binary_asker;

typedef enum epctx_rule {
#define OPS_RULE_ENUM(symbol, id, name, text, fix) EPCTX_RULE_##symbol,
    EPCTX_RULE_LIST(OPS_RULE_ENUM)
#undef OPS_RULE_ENUM
        EPCTX_RULE_COUNT
} epctx_rule;

/* Whether a rule compares a node with its context binary. */
static inline bool epctx_rule_is_of_binary(epctx_rule rule) {
    return rule >= EPCTX_RULE_FOREIGN_BINARY && rule <= EPCTX_RULE_BINARY_TARGET;
}

typedef enum epctx_severity {
    EPCTX_SEVERITY_ERROR = 0,
    EPCTX_SEVERITY_WARNING,
    EPCTX_SEVERITY_HINT,
    EPCTX_SEVERITY_COUNT
} epctx_severity;

/* A rule. The strings are static. */
typedef struct epctx_rule_info {
    const char *id;
    const char *name;
    const char *text;
    const char *fix;
    epctx_severity severity;
} epctx_rule_info;

epctx_rule_info epctx_rule_of(epctx_rule rule);

/* A finding. Strings are valid only during the callback. */
typedef struct epctx_finding {
    epctx_rule rule;
    epctx_rule_info info;
    epctx_str node;        /* the node, value or metadata key it is about; may be empty */
    epctx_str graph;       /* name of the body or function around it; empty: the main graph */
    const char *attribute; /* "" if it is not about an attribute */
    const char *message;   /* what was found and what was expected */
    const char *since;     /* "ort 1.31": the first version for which this is true; "": any */
    const char *until;     /* the first version for which it is not; "": none known */
} epctx_finding;

typedef void (*epctx_finding_fn)(void *user, const epctx_finding *finding);

/* Checks a model by all rules and passes each finding to `found_fn`. `counts` (may be NULL) gets
 * the numbers of errors, warnings and hints. Fails only if out of memory. */
epctx_status epctx_lint(const epctx_model *model, const epctx_check_opts *opts,
                        epctx_finding_fn found_fn, void *user,
                        uint64_t counts[EPCTX_SEVERITY_COUNT], epctx_error *error);
/* The same; `asker` (../binary/binary.h, may be NULL) may tell of binaries that only a vendor's
 * library reads. */
epctx_status epctx_lint_asking(const epctx_model *model, const epctx_check_opts *opts,
                               const struct binary_asker *asker, epctx_finding_fn found_fn,
                               void *user, uint64_t counts[EPCTX_SEVERITY_COUNT],
                               epctx_error *error);

/* Whether ORT does not report what breaks this rule: only an EP does, or nobody before it fails. */
bool epctx_lint_is_for_ep(epctx_rule rule);
/* Adds to `counts` how often a model breaks each rule, without looking at files. `profile` NULL:
 * use the rules of each node's source. */
epctx_status epctx_lint_count(const epctx_model *model, const epctx_profile *profile,
                              uint64_t counts[EPCTX_RULE_COUNT], epctx_error *error);
/* EPCTX_ERR_GRAPH, with the rule in the message, if an error occurs more often than in `allowed`
 * (NULL: at all): finds what an operation has broken. Does not look at files. */
epctx_status epctx_lint_verify(const epctx_model *model, const epctx_profile *profile,
                               const uint64_t *allowed, epctx_error *error);
/* The same by the rules alone that mean that ORT refuses the model, whatever its EPs do. */
epctx_status epctx_lint_verify_ort(const epctx_model *model, const uint64_t *allowed,
                                   epctx_error *error);

/* The newest version of a domain that ORT supports, of the version that is judged for: it rejects
 * newer ones, and imports the domain itself if the model does not. 0: not one of its domains. */
int32_t epctx_lint_opset(epctx_str domain);
/* Whether an ep_cache_context is surely no path: it has control characters, and either more bytes
 * than a name of a file or a format that is known. A path that ends in NUL is still a path. */
bool epctx_lint_is_payload(epctx_str context);
/* Whether a node's operator is EPContext but for a few letters. */
bool epctx_lint_is_misspelt(const epctx_node_view *node);
/* Whether the node gives the inputs of its body their values one by one, as Loop and Scan do. */
bool epctx_lint_gives_inputs(const epctx_model *model, const epctx_node_view *node);
/* Whether the schema of EPContext allows tensors of this type of elements. */
bool epctx_lint_allows(int32_t elem_type);

#ifdef __cplusplus
}
#endif

#endif
