/* What the commands of the epctx tool share. */
#ifndef EPCTX_CLI_H
#define EPCTX_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "epctx.h"
#include "guess.h"
#include "json_writer.h"

/* Exit codes; scripts may rely on them. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1, /* the file is bad, or the operation did not succeed */
    CLI_USAGE = 2   /* the command line is wrong; nothing was touched */
};

/* A function like printf, with its format at argument `at` and what is printed behind it. */
#if defined(__GNUC__)
#define CLI_FORMAT(at) __attribute__((format(printf, at, at + 1)))
#else
#define CLI_FORMAT(at)
#endif

/* In which part of `epctx help` a command stands. */
typedef enum cli_group {
    CLI_LOOK,
    CLI_JUDGE,
    CLI_CHANGE,
    CLI_MAKE,
    CLI_COMPARE,
    CLI_GROUP_COUNT
} cli_group;
extern const char *const cli_group_titles[CLI_GROUP_COUNT];

typedef struct cli_args cli_args; /* options.h */

/* One command. Its options are in options.def. */
typedef struct cli_command {
    const char *name;
    cli_group group;
    const char *operands; /* for the usage line */
    int least, most;      /* how many; most 0: any number */
    bool dash;            /* the last one may be "-", standard input or output */
    int failed;           /* exit code when the output cannot be written; 0: CLI_FAILED */
    const char *summary;  /* for the list of commands */
    const char *about;    /* what it does, in lines that end */
    const char *more;     /* below the options: exit codes, examples; NULL: nothing */
    int (*run)(const cli_args *args);
} cli_command;

/* All of them; the last one NULL. */
extern const cli_command *const cli_commands[];
extern const cli_command cli_copy, cli_dump, cli_npu_dump, cli_info, cli_compile, cli_run;
extern const cli_command cli_lint, cli_ls, cli_check, cli_scan, cli_get, cli_diff, cli_explain,
    cli_dot;
extern const cli_command cli_set, cli_unset, cli_prefix, cli_rename;
extern const cli_command cli_embed, cli_extract, cli_mv, cli_init, cli_weightless;
extern const cli_command cli_weights, cli_package;
extern const cli_command cli_merge, cli_split, cli_wrap, cli_repair, cli_stamp, cli_profiles,
    cli_view;
extern const cli_command cli_verify, cli_bench, cli_devices;

/* --hugging-face, which every command takes: EPCTX_PATH_HUGGING_FACE or 0, for epctx_open_opts. */
uint32_t cli_path_flags(void);
void cli_set_path_flags(uint32_t flags);
/* For commands that only look: cli_open sees each folder as it was when it was listed first. */
void cli_only_reads(void);
const epctx_io *cli_keep_listings(void); /* listings.c */
/* Opens a model with these flags. */
epctx_status cli_open(epctx_model *model, const char *file, epctx_error *error);
/* Prints "epctx: <message>" to standard error and returns CLI_FAILED. With --json the failure is
 * also in "failures" of what is printed: by cli_json_end or, where a command has printed no object,
 * at the end of the tool. */
int cli_fail(const epctx_error *error);
/* cli_fail with " (<cure>)" behind the message: what helps. */
CLI_FORMAT(2) int cli_fail_cure(const epctx_error *error, const char *format, ...);
/* Fills `error` with EPCTX_ERR_NOMEM and returns that. */
epctx_status cli_no_memory(epctx_error *error);
/* cli_fail with a text as of printf. */
CLI_FORMAT(1) int cli_fail_text(const char *format, ...);
/* cli_fail_text for a wrong command line; returns CLI_USAGE. */
CLI_FORMAT(1) int cli_misuse(const char *format, ...);
/* Whether a text of the command line may stand in a model; says so otherwise. NULL may. */
bool cli_may_stand(const char *what, const char *text);

/* cli_fail for a binary that is not that of the build stamp (EPCTX_ERR_VERSION): names the cure,
 * and `option`, which takes the binary all the same. */
int cli_fail_stale(const epctx_error *error, const char *option);
/* cli_fail for a node that cannot be renamed: --one-graph in the place of the API's one_graph, and
 * `more`, which may be empty, behind it. */
int cli_fail_graph_key(const epctx_error *error, const char *more);
/* More of the failure told last, as data: the file that it is about, and what cures it,
 * which standard error gets, too. */
void cli_fail_file(const char *file);
void cli_fail_with_cure(const char *cure);
/* Warns on standard error when a binary is not that of the build stamp. `context_path` may be
 * NULL. */
void cli_warn_stale(const epctx_model *model, const char *context_path);

/* Makes a folder and those above it that are missing. */
epctx_status cli_make_folder(const char *folder, epctx_error *error);
/* Files were written and stay: a failure to print the report is told as such. */
void cli_wrote_files(void);
bool cli_has_written(void);
/* For commands with exit codes of their own: the code when the output cannot be written. */
void cli_own_codes(int failed);
int cli_output_failed(void);
/* "s", or "" for one. */
const char *cli_plural(uint64_t count);

/* Text of our own, in lines of at most 80 columns, of which the first starts at column `indent`, as
 * do the others; ends the line. */
void cli_put_wrapped(FILE *out, const char *text, int indent);
/* Text from a model is hostile: what is not shown (epctx_char_is_shown) is written as \xHH, so that
 * nothing in it can move the cursor of a terminal or look like something else. */
void cli_put(FILE *out, epctx_str text);

/* printf to standard error, as cli_put would: names of models and arguments may be anybody's. */
CLI_FORMAT(1) void cli_say(const char *format, ...);

/* A built-in profile by its name, by the EP's name or by another value of `source`, in any case;
 * NULL: none. Every option that names an EP is read so. */
const epctx_profile *cli_profile_of(const char *name);
/* Whether `ep` is the EP that --ep names, by any of its names; without --ep (NULL) every EP is. */
bool cli_is_ep(epctx_str ep, const char *name);
/* The same; prints what is wrong with the value of `option` when there is none. */
bool cli_profile_for(const char *option, const char *name, const epctx_profile **profile);
/* For --profile; NULL, not given, leaves `profile`. */
bool cli_profile(const char *name, const epctx_profile **profile);
/* What --json prints is one object (examples/epctx/schema): begin prints the version and the name
 * of the command, its writer takes the members that follow, and end adds the failures so far and
 * closes it. */
json_writer *cli_json_begin(FILE *out);
/* The members that the object begins with; for a command that prints several in one. */
void cli_json_head(json_writer *w);
void cli_json_end(void);
/* epctx --version */
int cli_version(bool json);
/* The command that runs, and whether it is to print JSON. */
void cli_json_wanted(const char *command, bool wanted);
/* Where an object goes that only tells failures, if that is not standard output. */
void cli_json_to(FILE *out);
/* At the end of main: the object of a command that failed without printing one. */
void cli_json_failed(int code);
/* Whether escape sequences are wanted: on a terminal, and NO_COLOR is not set. */
bool cli_colour(FILE *out);

/* Milliseconds of a clock that only goes forward. */
double cli_now(void);

/* Progress of work that takes long: a line on standard error, drawn when standard error is a
 * terminal, a second has gone by and --no-progress is not given; otherwise these do nothing.
 * `total` 0: nobody knows, and what is added are bytes. One at a time. */
void cli_progress_begin(const char *what, uint64_t total);
void cli_progress_add(uint64_t done);
void cli_progress_set(uint64_t done);
/* Removes the line, for something else to be printed; the next add or set brings it back. */
void cli_progress_hide(void);
void cli_progress_end(void);
/* --no-progress was given. */
void cli_progress_forbid(void);
/* ORT needs shapes and the like as constants when it loads a model, and does not read them from
 * files: initializers of fewer bytes stay in the model, as in ORT's own tools. */
enum { CLI_SMALL_INITIALIZER = 1024 };
/* Bytes of a file, 0 when that cannot be told. */
uint64_t cli_file_size(const char *file);

/* The io of everything that is written: the files', with progress. A signal that ends the tool
 * removes what is unfinished; while names change it waits until the tool is done. */
const epctx_io *cli_io(void);

/* For dry runs: whether a file or folder `path` can be made, or replaced through links. Errors: IO
 * (the folder may not be written). */
epctx_status cli_writable(const char *path, epctx_error *error);

/* Removes a folder with all that is in it, also folders that may not be written; no link is
 * followed. Of "." only what is in it. */
void cli_remove_tree(const char *path);

/* For epctx_hooks: what was read leaves memory, if a file that cli_io mapped is there. */
void cli_spent(void *user, const void *data, size_t size);
/* Files with these names in a folder, all of them or none; existing ones are replaced, links are
 * not followed. */
typedef struct cli_file {
    const char *name;
    const void *data;
    size_t size;
} cli_file;
epctx_status cli_write_files(const char *folder, const cli_file *files, size_t count,
                             epctx_error *error);
/* At the beginning and at the end of main; the end is that of the process when a signal waits. */
void cli_signals_begin(void);
void cli_signals_end(void);
/* Between two of these a signal waits, too, and writing fails then, for a caller that has to remove
 * more than files. */
void cli_signals_keep(bool keep);
/* Whether one waits: the caller should end. */
bool cli_signals_waiting(void);
/* In a child process: signals end it, as if there were no tool. */
void cli_signals_forget(void);

/* The EPContext node that "#N" means, the Nth of `epctx info`; false when `name` is no such thing
 * or there is none. */
bool cli_numbered_epnode(const epctx_model *model, const char *name, epctx_node_view *node);
/* The first EPContext node of the main graph; false when there is none. */
bool cli_first_epnode(const epctx_model *model, epctx_node_view *node);

/* Puts the names of the main graph's initializers into `names`; false: no memory. */
bool cli_initializer_names(const epctx_model *model, epctx_map *names);

/* Inputs of the main graph that have an initializer: callers may leave them out, and then the
 * initializer is their value. Counts them, and with `remove` makes constants of them. */
epctx_status cli_optional_inputs(epctx_model *model, bool remove, size_t *count,
                                 epctx_error *error);

/* The reference NPU as a backend. `arch` NULL is its default architecture. */
epctx_status cli_backend(const char *arch, epctx_backend *backend, epctx_error *error);
/* The backend of the nodes with this `source`, if this tool has it: that of the reference NPU. */
bool cli_own_backend(epctx_str source, epctx_backend *backend);
/* From then on backends run by these options, but for architecture and check_weights; what they
 * point to is borrowed. */
struct epctx_npu_opts;
void cli_npu_opts(const struct epctx_npu_opts *opts);
/* The context of a binary of it, in memory of the arena; `size` (may be NULL) gets its bytes. */
struct epctx_npu_context;
epctx_status cli_load_binary(epctx_span binary, epctx_arena *arena,
                             struct epctx_npu_context *context, size_t *size, epctx_error *error);
/* Bytes of weights that the graph it compiled last stored, and that it found stored already. */
void cli_weight_bytes(uint64_t *stored, uint64_t *shared);

#endif
