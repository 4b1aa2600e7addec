/* Where results go, the plan and the report of commands that change models. */
#define _POSIX_C_SOURCE 200809L

#include "output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void output_init(output *out)
{
    memset(out, 0, sizeof *out);
    epctx_arena_init(&out->arena, NULL);
}

void output_free(output *out)
{
    epctx_file_lock_drop(&out->lock);
    epctx_arena_free(&out->arena);
}

static bool refuse(const char *text)
{
    cli_say("epctx: %s\n", text);
    return false;
}

bool output_check(output *out, const char *source)
{
    bool replace = out->in_place || out->force;
    if (out->path == NULL && !out->in_place && !out->dry_run)
        return refuse("specify the output: -o OUT, -o - or --in-place (--dry-run writes "
                      "nothing)");
    if (out->path != NULL && out->in_place) return refuse("-o and --in-place cannot be combined");
    if (out->force && out->overwrite != NULL)
        return refuse("-f and --overwrite cannot be combined");
    if (out->overwrite != NULL && strcmp(out->overwrite, "fail") != 0 &&
        strcmp(out->overwrite, "replace") != 0 && strcmp(out->overwrite, "backup") != 0)
        return refuse("--overwrite must be fail, replace or backup");
    if (out->overwrite != NULL && strcmp(out->overwrite, "fail") == 0 && out->in_place)
        return refuse("with --in-place, --overwrite must be replace or backup");
    if (out->overwrite != NULL) replace = strcmp(out->overwrite, "replace") == 0;
    out->policy = replace ? EPCTX_OVERWRITE_REPLACE : EPCTX_OVERWRITE_FAIL;
    if (out->overwrite != NULL && strcmp(out->overwrite, "backup") == 0)
        out->policy = EPCTX_OVERWRITE_BACKUP;
    if (out->in_place) out->path = source;
    out->to_stdout = out->path != NULL && strcmp(out->path, "-") == 0 && !out->in_place;
    return true;
}

epctx_write_opts output_options(const output *out)
{
    epctx_write_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = out->policy;
    opts.allow_huge = out->allow_huge;
    if (out->lock.held) opts.lock = &out->lock;
    return opts;
}

/* Whether the result goes where a file is read from, whatever the two are called. */
static bool is_replaced(const output *out, const char *file)
{
    const epctx_io *io = epctx_io_files();
    epctx_file_info result, source;
    if (out->path == NULL || out->to_stdout || out->dry_run) return false;
    return out->in_place ||
           (io->stat_fn(io->user, out->path, &result, NULL) == EPCTX_OK &&
            io->stat_fn(io->user, file, &source, NULL) == EPCTX_OK &&
            epctx_file_same(&result, &source));
}

epctx_status output_open(output *out, epctx_model *model, const char *file, epctx_error *error)
{
    epctx_open_opts opts;
    epctx_status status = EPCTX_OK;
    memset(&opts, 0, sizeof opts);
    opts.io = cli_io();
    opts.path_flags = cli_path_flags();
    if (!out->lock.held && is_replaced(out, file))
        status = epctx_file_lock_take(&out->lock, opts.io, out->path, error);
    return status == EPCTX_OK ? epctx_model_open_file(model, file, &opts, error) : status;
}

void output_change(output *out, const char *format, ...)
{
    output_line *line = (output_line *)epctx_arena_alloc(&out->arena, sizeof *line);
    va_list args;
    int size;
    va_start(args, format);
    size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (line != NULL && size >= 0)
        line->text = (char *)epctx_arena_alloc(&out->arena, (size_t)size + 1);
    if (line == NULL || line->text == NULL) {
        out->no_memory = true;
        return;
    }
    va_start(args, format);
    vsnprintf(line->text, (size_t)size + 1, format, args);
    va_end(args);
    if (out->last_change != NULL)
        out->last_change->next = line;
    else
        out->changes = line;
    out->last_change = line;
    out->change_count++;
}

void output_file(output *out, const char *action, const char *path, const uint64_t *size,
                 const char *note)
{
    output_file_line *line = (output_file_line *)epctx_arena_alloc(&out->arena, sizeof *line);
    if (line != NULL) line->path = epctx_arena_copy(&out->arena, epctx_str_of(path));
    if (line != NULL && note != NULL)
        line->note = epctx_arena_copy(&out->arena, epctx_str_of(note));
    if (line == NULL || line->path == NULL || (note != NULL && line->note == NULL)) {
        out->no_memory = true;
        return;
    }
    if (!out->dry_run && strcmp(action, "write") == 0 && strcmp(path, "-") != 0) cli_wrote_files();
    line->action = action;
    line->sized = size != NULL;
    line->size = size != NULL ? *size : 0;
    if (out->last_file != NULL)
        out->last_file->next = line;
    else
        out->files = line;
    out->last_file = line;
}

/* -- plan and report -- */

static void print_json(const output *out, FILE *to)
{
    const output_line *change;
    const output_file_line *file;
    fprintf(to, "{\n\"dry_run\": %s,\n\"size\": %" PRIu64 ",\n\"changes\": [",
            out->dry_run ? "true" : "false", out->size);
    for (change = out->changes; change != NULL; change = change->next) {
        fputs("\n  ", to);
        cli_put_json(to, epctx_str_of(change->text));
        fputs(change->next != NULL ? "," : "\n", to);
    }
    fputs("],\n\"files\": [", to);
    for (file = out->files; file != NULL; file = file->next) {
        fprintf(to, "\n  {\"action\": \"%s\", \"path\": ", file->action);
        cli_put_json(to, epctx_str_of(file->path));
        if (file->sized) fprintf(to, ", \"size\": %" PRIu64, file->size);
        if (file->note != NULL) {
            fputs(", \"note\": ", to);
            cli_put_json(to, epctx_str_of(file->note));
        }
        fputs(file->next != NULL ? "}," : "}\n", to);
    }
    fputs("]\n}\n", to);
}

static void print_text(const output *out)
{
    const output_line *change;
    const output_file_line *file;
    for (change = out->changes; change != NULL; change = change->next) {
        cli_put(stdout, epctx_str_of(change->text));
        putchar('\n');
    }
    if (out->change_count == 0) puts("no changes");
    for (file = out->files; file != NULL; file = file->next) {
        printf("%s ", file->action);
        cli_put(stdout, epctx_str_of(file->path));
        if (file->sized) printf(", %" PRIu64 " bytes", file->size);
        if (file->note != NULL) {
            fputs(", ", stdout);
            cli_put(stdout, epctx_str_of(file->note));
        }
        putchar('\n');
    }
    if (out->dry_run && out->size > 0)
        printf("dry run, nothing was written: the model would have %" PRIu64 " bytes\n", out->size);
    else if (out->dry_run)
        puts("dry run, nothing was written");
}

int output_done(output *out)
{
    if (out->no_memory) return cli_fail_text("out of memory");
    if (out->json)
        print_json(out, out->to_stdout && !out->dry_run ? stderr : stdout);
    else if (!out->to_stdout || out->dry_run)
        print_text(out);
    return CLI_OK;
}

/* -- the model -- */

static bool write_stdout(pb_ostream_t *stream, const pb_byte_t *data, size_t size)
{
    (void)stream;
    return fwrite(data, 1, size, stdout) == size;
}

static int refuse_size(const output *out)
{
    return cli_fail_text("the model would have %" PRIu64 " bytes, but ONNX Runtime reads at "
                         "most %" PRId64 ": store contexts and initializers in files "
                         "(--allow-huge writes it anyway)",
                         out->size, EPCTX_MODEL_MAX);
}

static int model_to_stdout(output *out, epctx_model *model)
{
    pb_ostream_t stream;
    epctx_error error;
    if (isatty(STDOUT_FILENO))
        return cli_fail_text(
            "a model is binary and not written to a terminal: use -o FILE or a pipe");
    if (out->size > (uint64_t)EPCTX_MODEL_MAX && !out->allow_huge) return refuse_size(out);
    memset(&stream, 0, sizeof stream);
    stream.callback = write_stdout;
    stream.max_size = SIZE_MAX;
    if (epctx_model_write_stream(model, &stream, &error) != EPCTX_OK || fflush(stdout) != 0)
        return cli_fail_text("standard output: %s", strerror(errno));
    output_file(out, "write", "-", &out->size, NULL);
    return output_done(out);
}

static int fail(const output *out, const epctx_error *error)
{
    if (error->status == EPCTX_ERR_EXISTS)
        return cli_fail_text("%s (-f replaces it, --overwrite backup keeps it as %s~)",
                             error->message, out->path);
    if (error->status == EPCTX_ERR_LIMIT && !out->allow_huge)
        return cli_fail_text("%s (--allow-huge writes it anyway)", error->message);
    return cli_fail(error);
}

/* What --dry-run can know: the size and whether the place is free. */
static int plan_model(output *out, epctx_model *model)
{
    epctx_error error;
    if (out->size > (uint64_t)EPCTX_MODEL_MAX && !out->allow_huge) return refuse_size(out);
    if (out->path != NULL && !out->to_stdout &&
        epctx_output_check(epctx_model_io(model), out->path, out->policy, &error) != EPCTX_OK)
        return fail(out, &error);
    if (out->path != NULL) output_file(out, "write", out->path, &out->size, NULL);
    return output_done(out);
}

/* With --in-place, a model without a change keeps its file, inode and time. */
static bool is_kept(output *out, const epctx_model *model)
{
    if (!out->in_place || epctx_model_mark(model) > 0) return false;
    output_file(out, "keep", out->path, &out->size, NULL);
    return true;
}

int output_model(output *out, epctx_model *model)
{
    static char backup[EPCTX_PATH_MAX];
    static char note[EPCTX_PATH_MAX + 32];
    epctx_write_opts opts = output_options(out);
    epctx_status status;
    epctx_error error;
    if (out->no_memory) return cli_fail_text("out of memory");
    out->size = epctx_model_size(model);
    if (is_kept(out, model)) return output_done(out);
    if (out->dry_run) return plan_model(out, model);
    if (out->to_stdout) return model_to_stdout(out, model);
    opts.backup = backup;
    opts.backup_capacity = sizeof backup;
    cli_progress_begin("write", out->size);
    status = epctx_model_write_file(model, out->path, &opts, &error);
    cli_progress_end();
    if (status != EPCTX_OK) return fail(out, &error);
    snprintf(note, sizeof note, "the old file is now %s", backup);
    output_file(out, "write", out->path, &out->size, backup[0] != '\0' ? note : NULL);
    return output_done(out);
}

int output_refuse(const output *out, const epctx_error *error)
{
    if (error->status == EPCTX_ERR_EXISTS)
        return cli_fail_text("%s (-f replaces it, --overwrite backup keeps it)", error->message);
    if (error->status == EPCTX_ERR_LIMIT && !out->allow_huge)
        return cli_fail_text("%s (--allow-huge writes it anyway)", error->message);
    return cli_fail(error);
}

int output_group(output *out, epctx_model *model, epctx_output_file *files, size_t count)
{
    static char backup[EPCTX_PATH_MAX];
    static char note[EPCTX_PATH_MAX + 32];
    epctx_write_opts opts = output_options(out);
    epctx_overwrite policy =
        out->force || out->overwrite != NULL ? out->policy : EPCTX_OVERWRITE_FAIL;
    epctx_error error;
    epctx_status status;
    size_t i;
    out->size = epctx_model_size(model);
    if (count == 0 && is_kept(out, model)) return output_done(out);
    opts.backup = backup;
    opts.backup_capacity = sizeof backup;
    epctx_error_clear(&error);
    opts.dry_run = out->dry_run;
    status = epctx_write_group(model, out->path, &opts, files, count, policy, &error);
    if (status != EPCTX_OK) return output_refuse(out, &error);
    for (i = 0; i < count; i++)
        output_file(out, files[i].kept ? "keep" : "write", files[i].path, &files[i].size, NULL);
    snprintf(note, sizeof note, "the old file is now %s", backup);
    output_file(out, "write", out->path, &out->size, backup[0] != '\0' ? note : NULL);
    return output_done(out);
}
