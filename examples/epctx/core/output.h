/* What every command that changes a model shares: where the result goes, the plan and the report.
 *
 *     output out;
 *     if (!output_begin(&out, args, source)) code = CLI_USAGE;
 *     ... edit, with output_change(&out, ...) for each thing that changes ...
 *     code = output_model(&out, &model);      (or output_file for others, then output_done)
 *     output_free(&out);
 */
#ifndef EPCTX_CLI_OUTPUT_H
#define EPCTX_CLI_OUTPUT_H

#include "options.h"

/* A longer value is told by its size. */
enum { OUTPUT_LONGEST = 4096 };

/* What is changed. What does not apply is left zero. */
typedef struct output_item {
    const char *action;      /* "set", "add", "remove", "rename", "embed", "keep" ... */
    const char *kind;        /* "node", "value", "initializer", "metadata", "opset" ... */
    epctx_str name;          /* of it */
    epctx_str attribute;     /* of the node; or the field of model or graph */
    epctx_str before, after; /* values or names; data NULL: there was or is none */
    epctx_str file;          /* from or to which data is moved, or that is changed */
    uint64_t size;           /* bytes of what is moved; EPCTX_NO_OFFSET: unknown */
    uint64_t count;          /* of places that are changed at once; 0: one */
    size_t part;             /* number of the model on the command line from 1, of several */
    const char *rule;        /* of lint, which the change is about */
} output_item;

typedef struct output_line {
    struct output_line *next;
    char *text;
    output_item what; /* of a change */
} output_line;

typedef struct output_list {
    output_line *first, *last;
    size_t count;
} output_list;

typedef struct output_file_line {
    struct output_file_line *next;
    const char *action; /* "write", "remove", "rename", "keep" ... */
    char *path;
    char *note; /* NULL or what else there is to say: a backup, a new name */
    uint64_t size;
    bool sized;
} output_file_line;

typedef struct output {
    const char *path;           /* of the result; "-" is standard output */
    json_writer *several;       /* of several models: the array that gets the report as JSON */
    const char *of;             /* and whose it is */
    const char *const *sources; /* what the model is made of; NULL: of the file that it is from */
    size_t source_count;
    bool in_place, dry_run, json, allow_huge;
    bool has_policy; /* -f or --overwrite was given */
    /* set by output_begin */
    epctx_overwrite policy;
    bool to_stdout;
    /* private */
    epctx_arena arena;
    epctx_file_lock lock; /* of the file that is read, changed and replaced */
    output_list changes, notes;
    output_file_line *files, *last_file;
    uint64_t size; /* of the model as it is or would be */
    bool no_memory;
} output;

/* What the command line says of the output. */
void output_init(output *out, const cli_args *args);
/* output_init for a command that changes a model: fills `policy` and `to_stdout`, too. `source` is
 * the file that --in-place replaces. On a mistake prints what is wrong and returns false: the
 * command ends with CLI_USAGE. */
bool output_begin(output *out, const cli_args *args, const char *source);
void output_free(output *out);
/* --overwrite and -f; without both, `policy` stays. On a mistake prints what is wrong. */
bool output_policy(const cli_args *args, epctx_overwrite *policy);
/* Whether two paths are one file, or would be. */
bool output_same(const char *a, const char *b);
bool output_is_link(const char *path);
/* For a result that is no model: whether it would not replace `source`, otherwise says so. */
bool output_spares(const char *path, const char *source);
/* Opens the model that is to be changed. Where the result replaces it, nobody else changes it until
 * output_free. */
epctx_status output_open(output *out, epctx_model *model, const char *file, epctx_error *error);
/* One change of the model for plan and report: as data, and as printf for people; text from a model
 * as "%.*s". */
CLI_FORMAT(3) void output_change(output *out, const output_item *what, const char *format, ...);
/* An item of this kind, with nothing else known. */
output_item output_item_of(const char *action, const char *kind, epctx_str name);
/* What the user has to know besides, below the files; as printf. */
CLI_FORMAT(2) void output_note(output *out, const char *format, ...);
/* A file besides the model that is written (removed, renamed ...). `note` may be NULL. */
void output_file(output *out, const char *action, const char *path, const uint64_t *size,
                 const char *note);
/* Writes the edited model to where it goes and ends with output_done; with --dry-run only checks
 * that it could. What ONNX Runtime would refuse is not written, unless it refused the source, too
 * (core/judge.h). Returns the exit code. */
int output_model(output *out, epctx_model *model);
/* output_model with files beside the model, all or nothing. */
int output_group(output *out, epctx_model *model, epctx_output_file *files, size_t count);
/* Says why something was refused, and which option allows it. Returns the exit code. */
int output_refuse(const output *out, const epctx_error *error);
/* For commands that commit more files than the model themselves: the write options for the library;
 * output_done comes after. */
epctx_write_opts output_options(const output *out);
/* Prints plan or report; returns CLI_OK. */
int output_done(output *out);
/* The same for a command without a report: prints only which files the written model misses. */
int output_copied(output *out, const epctx_model *source);
/* Whether no other model loses what it needs when the result and the files beside it take their
 * places; else says so. Whoever writes without output_model and output_group asks first. */
bool output_allowed(const output *out, const epctx_model *model, const epctx_output_file *files,
                    size_t count);

#endif
