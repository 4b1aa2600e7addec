/* What `epctx compile` was asked for, and its parts: one model, or several that share a binary. */
#ifndef EPCTX_CLI_COMPILE_H
#define EPCTX_CLI_COMPILE_H

#include "core/chip.h"
#include "ops/cache.h"
#include "ort/anyep.h"

/* One NAME=VALUE or INPUT[AXIS]=VALUE of --dim. */
typedef struct compile_dim {
    epctx_str name;
    epctx_str input; /* empty: it has no such form */
    uint32_t axis;
    int64_t value;
    bool used; /* some model has it */
} compile_dim;

typedef struct compile_settings {
    epctx_gen_opts gen;
    epctx_open_opts open;
    epctx_options options; /* of -C */
    const cli_args *args;
    const char *arch;
    compile_dim *dims;
    size_t dim_count;
    const char *depfile;
    bool share;
    bool weightless;
    bool verbose;
    bool dry_run;
    bool json;
    /* With --ort: */
    int optimization; /* as ONNX Runtime numbers the levels; -1: its default */
    bool alone;       /* models do not share their contexts */
    bool no_load;     /* what was written is not tried in a session */
    bool by_session;  /* session options instead of the compile API */
    bool if_needed;
    double wait;               /* seconds for another process; negative: as long as it takes */
    const chip *chip;          /* of --chip, which the binaries must be for; NULL: any */
    const binary_asker *asker; /* of what is in them */
} compile_settings;

/* Notes for the end of the report, one line each. Zeroed but for the arena. */
typedef struct compile_notes {
    epctx_arena arena;
    const char **lines;
    size_t count;
} compile_notes;

/* Waits until nobody else compiles into the binary of `first`: what compile_check_binary finds
 * holds until compile_unlock. False: there is no lock, where nothing can be written, either. */
bool compile_lock(const char *first, const compile_settings *set, const epctx_backend *backend,
                  epctx_io_file *lock);
void compile_unlock(epctx_io_file *lock);
/* EPCTX_ERR_EXISTS when the binary that `files` give is there and models beside it need a graph
 * from it that none of them had: they would not load any more. `notes` gets the binaries that the
 * outputs named before and will not any more, with who needs them. */
epctx_status compile_check_binary(const char *const *files, int count, const compile_settings *set,
                                  const epctx_backend *backend, compile_notes *notes,
                                  epctx_error *error);
/* compile_check_binary for the binary `path`. `strict`: names of graphs in it tell nothing, every
 * model that names it needs it. */
epctx_status compile_check_path(const char *path, const char *const *files, int count,
                                const compile_settings *set, bool strict, compile_notes *notes,
                                epctx_error *error);
/* Notes the sources of weightless models, written before, that are not where these look for
 * them. */
epctx_status compile_note_sources(const char *const *files, int count, const compile_settings *set,
                                  compile_notes *notes, epctx_error *error);
/* Whether ONNX Runtime would load what was written; a note where it refused the source, too. */
epctx_status compile_judge(const char *const *files, int count, const compile_settings *set,
                           compile_notes *notes, epctx_error *error);
void compile_print_notes(FILE *out, const compile_notes *notes);
/* A line of a report about a file; `size` NULL: it has none. */
void compile_print_file(FILE *out, const char *word, const char *path, const uint64_t *size);
/* The notes as an array of JSON, the member `key`. */
void compile_json_notes(json_writer *w, const char *key, const compile_notes *notes);
epctx_status compile_add_note(compile_notes *notes, const char *line, epctx_error *error);

/* What another EP was asked for, and may have ignored. */
typedef struct compile_asked {
    const char *ep;     /* as its nodes name it */
    const char *prefix; /* of the names of nodes; NULL: none */
    bool embed;
} compile_asked;
/* Adds a note for each that the model, which will be `file`, does not have, with its cure. */
epctx_status compile_note_ignored(const epctx_model *model, const char *file,
                                  const compile_asked *asked, compile_notes *notes,
                                  epctx_error *error);
/* Reads --dim into `set`; says what is wrong otherwise. */
bool compile_read_dims(compile_settings *set, epctx_arena *arena);
/* "INPUT[AXIS]" in dim->name: fills `input` and `axis`. */
void compile_read_place(compile_dim *dim);
/* Sets one dimension; `count` (may be NULL) gets how many there were. */
epctx_status compile_fix_dim(epctx_model *model, const compile_dim *dim, size_t *count,
                             epctx_error *error);
/* Applies --dim. `alone`: a dimension that the model does not have is EPCTX_ERR_NOT_FOUND. */
epctx_status compile_fix_dims(epctx_model *model, const compile_settings *set, bool alone,
                              epctx_error *error);
/* EPCTX_ERR_NOT_FOUND for a dimension that none of the models had. */
epctx_status compile_unused_dim(const compile_settings *set, epctx_error *error);
/* Says so if the model has EPContext nodes, and returns true. */
bool compile_tell_compiled(const epctx_model *model, const char *file);
/* Which inputs have no fixed shape, and the cure, as a text that the caller frees; "": none. */
epctx_status compile_open_inputs(const epctx_model *model, char **text, epctx_error *error);

/* -- what another EP's results depend on beside the model -- */

/* What was asked for, as text; NULL: no memory. */
const char *identity_options(const compile_settings *set, const anyep_settings *any,
                             epctx_arena *arena);
/* The libraries that decide: the EP's own, those of `names` (a line each) beside it, ONNX Runtime's
 * and files that options name; ended by NULL. NULL: no memory. */
const char *const *identity_libraries(const anyep_settings *any, const char *names,
                                      epctx_arena *arena);
/* The libraries' names in a stamp, for `names`; NULL: no memory. */
const char *identity_names(epctx_str stamp, epctx_arena *arena);
/* Processor, accelerators and drivers, as the system tells them. */
void compile_machine(char *out, size_t size);

/* -- --if-needed -- */

/* Zeroed but for the first members. */
typedef struct compile_needed {
    const char *source, *path; /* the model, and the EPContext model of it */
    /* The reference NPU; or another EP, and what was asked for: */
    const epctx_backend *backend;
    const epctx_gen_opts *gen;
    const anyep_settings *any;
    const char *options, *machine;
    const char *const *session; /* options of the session, with those of the tool */
    double wait;                /* as in compile_settings */
    bool replaces;              /* -f: whatever is there */
    /* What was found: */
    bool current;        /* nothing has to be compiled */
    bool existed;        /* there was something */
    bool waited;         /* for another process, which compiled it */
    bool older;          /* what is there is used, though another process is compiling it again */
    uint64_t generation; /* of the files that are used or written; 0: of none */
    epctx_error why;
    epctx_file_lock lock;
    epctx_generation next; /* names of the files to be written */
} compile_needed;

/* Decides. Unless nothing has to be done the lock of `path` is held, until needed_end. */
epctx_status needed_begin(compile_needed *n, bool dry_run, epctx_error *error);
/* Whether what is at `path` may be replaced: an EPContext model that was made from this source, by
 * this EP (NULL: by any); with -f, anything that no other model needs. Else EPCTX_ERR_EXISTS. */
epctx_status needed_allow(const compile_needed *n, const char *ep, epctx_error *error);
/* May be called twice, and on a zeroed one. */
void needed_end(compile_needed *n);
/* What was decided and why: a line; members of a JSON object, NULL: none; a whole report for a
 * model that stays. */
void needed_print(const compile_needed *n);
void needed_json(json_writer *w, const compile_needed *n);
void needed_report(const compile_needed *n, bool json);

/* Why nodes stay on the CPU: a reason, how many nodes have it, and one of them. */
typedef struct left_reason {
    const char *text, *op_type, *node;
    size_t count;
} left_reason;

typedef struct left_nodes {
    epctx_arena arena;
    epctx_map kinds;
    left_reason *reasons;
    size_t count, room;
} left_nodes;

void left_begin(left_nodes *left);
void left_end(left_nodes *left);
/* epctx_hooks.refused_fn; `user` is the list. */
void left_note(void *user, const epctx_node *node, const epctx_error *why);
void left_print(FILE *out, left_nodes *left);
void left_json(json_writer *w, left_nodes *left);
/* Where the model goes that is made of `file`, with room for EPCTX_PATH_MAX. */
epctx_status compile_output_path(const char *file, const compile_settings *set, char *out,
                                 epctx_error *error);
/* Names and checks the outputs of one model, by epctx_preflight: none replaces the model or a file
 * that it names. `binary` NULL: to be named; `joined`: that of a group, which may exist. `ep`: its
 * short name; NULL: another EP names its binary. */
epctx_status compile_outputs(const char *file, const char *ep, const char *binary, bool joined,
                             const compile_settings *set, epctx_arena *arena, epctx_outputs *out,
                             epctx_error *error);
/* Models of a group are beside its binary, with unique names: all[count] fits those before it. */
epctx_status compile_fits_group(const epctx_outputs *all, int count, epctx_error *error);
/* --depfile: rules of make for what is written, which depends on the models, the files that they
 * name and `libraries` (the last one NULL), as text that the caller frees. Says what is wrong
 * otherwise. */
bool depfile_make(const char *const *files, int count, const compile_settings *set,
                  const char *const *libraries, char **text);
/* Writes it; returns the exit code. */
int depfile_write(const char *path, const char *text);
/* --dry-run: says what would be written, or why it would fail before anything is compiled. */
int compile_plan(const char *const *files, int count, const compile_settings *set);
/* --ort: another EP's models. */
int compile_ort(const char *const *files, int count, const compile_settings *set,
                const anyep_settings *any);
/* Several models, one binary. */
int compile_group(const char *const *files, int count, const compile_settings *set);

#endif
