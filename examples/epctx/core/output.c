/* Where results go, the plan and the report of commands that change models. */
#define _POSIX_C_SOURCE 200809L

#include "output.h"
#include "judge.h"
#include "neighbours.h"
#include "ops/needs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void output_free(output *out) {
    epctx_file_lock_drop(&out->lock);
    epctx_arena_free(&out->arena);
}

static bool refuse(const char *text) {
    cli_misuse("%s", text);
    return false;
}

bool output_policy(const cli_args *args, epctx_overwrite *policy) {
    static const epctx_overwrite policies[] = {EPCTX_OVERWRITE_FAIL, EPCTX_OVERWRITE_REPLACE,
                                               EPCTX_OVERWRITE_BACKUP}; /* as in the table */
    if (args->force && args->overwrite != 0) return refuse("-f and --overwrite cannot be combined");
    if (args->force) *policy = EPCTX_OVERWRITE_REPLACE;
    if (args->overwrite != 0) *policy = policies[args->overwrite - 1];
    return true;
}

static bool read_options(output *out, const cli_args *args, const char *source) {
    if (out->path == NULL && !out->in_place && !out->dry_run)
        return refuse("specify the output: -o OUT, -o - or --in-place (--dry-run writes "
                      "nothing)");
    if (out->path != NULL && out->in_place) return refuse("-o and --in-place cannot be combined");
    out->policy = out->in_place ? EPCTX_OVERWRITE_REPLACE : EPCTX_OVERWRITE_FAIL;
    if (!output_policy(args, &out->policy)) return false;
    if (out->in_place && out->policy == EPCTX_OVERWRITE_FAIL)
        return refuse("with --in-place, --overwrite must be replace or backup");
    if (out->in_place) out->path = source;
    out->to_stdout = out->path != NULL && strcmp(out->path, "-") == 0 && !out->in_place;
    if (out->to_stdout && !out->dry_run) cli_json_to(stderr);
    return true;
}

void output_init(output *out, const cli_args *args) {
    memset(out, 0, sizeof *out);
    epctx_arena_init(&out->arena, NULL);
    out->path = args->output;
    out->in_place = args->in_place;
    out->dry_run = args->dry_run;
    out->json = args->json;
    out->allow_huge = args->allow_huge;
    out->has_policy = args->force || args->overwrite != 0;
}

bool output_begin(output *out, const cli_args *args, const char *source) {
    output_init(out, args);
    return read_options(out, args, source);
}

epctx_write_opts output_options(const output *out) {
    epctx_write_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = out->policy;
    opts.allow_huge = out->allow_huge;
    if (out->lock.held) opts.lock = &out->lock;
    return opts;
}

/* The canonical folder of a file that need not be there. */
static bool folder_of(const char *path, char *out) {
    const epctx_io *io = epctx_io_files();
    const epctx_str folder = epctx_path_folder(epctx_str_of(path));
    char text[EPCTX_PATH_MAX];
    const int size = snprintf(text, sizeof text, "%.*s.", (int)folder.size, folder.data);
    return size > 0 && (size_t)size < sizeof text &&
           io->canonical_fn(io->user, text, out, EPCTX_PATH_MAX, NULL) == EPCTX_OK;
}

bool output_same(const char *a, const char *b) {
    const epctx_io *io = epctx_io_files();
    char one[EPCTX_PATH_MAX], other[EPCTX_PATH_MAX];
    epctx_file_info first, second;
    if (io->stat_fn(io->user, a, &first, NULL) == EPCTX_OK &&
        io->stat_fn(io->user, b, &second, NULL) == EPCTX_OK && epctx_file_same(&first, &second))
        return true;
    return epctx_str_eq(epctx_path_file(epctx_str_of(a)), epctx_path_file(epctx_str_of(b))) &&
           folder_of(a, one) && folder_of(b, other) && strcmp(one, other) == 0;
}

bool output_spares(const char *path, const char *source) {
    epctx_error error;
    if (path == NULL || !output_same(path, source)) return true;
    epctx_error_clear(&error);
    epctx_fail(&error, EPCTX_ERR_PATH,
               "belongs to the source model: an output must not overwrite it");
    epctx_blame(&error, path, NULL, NULL);
    cli_fail(&error);
    return false;
}

/* Whether the result goes where a file is read from, whatever the two are called. */
static bool is_replaced(const output *out, const char *file) {
    if (out->path == NULL || out->to_stdout || out->dry_run) return false;
    return out->in_place || output_same(out->path, file);
}

epctx_status output_open(output *out, epctx_model *model, const char *file, epctx_error *error) {
    epctx_open_opts opts;
    epctx_status status = EPCTX_OK;
    memset(&opts, 0, sizeof opts);
    opts.io = cli_io();
    opts.path_flags = cli_path_flags();
    if (!out->lock.held && is_replaced(out, file))
        status = epctx_file_lock_take(&out->lock, opts.io, out->path, error);
    return status == EPCTX_OK ? epctx_model_open_file(model, file, &opts, error) : status;
}

output_item output_item_of(const char *action, const char *kind, epctx_str name) {
    output_item item;
    memset(&item, 0, sizeof item);
    item.action = action;
    item.kind = kind;
    item.name = name;
    item.size = EPCTX_NO_OFFSET;
    return item;
}

/* Copies what the report shows: a model changes, and is closed before the report. */
static bool keep(output *out, epctx_str *text) {
    if (text->data == NULL || text->size > OUTPUT_LONGEST) return true;
    text->data = epctx_arena_copy(&out->arena, *text);
    return text->data != NULL;
}

static void add_line(output *out, output_list *list, const output_item *what, const char *format,
                     va_list args) {
    output_line *line = (output_line *)epctx_arena_alloc(&out->arena, sizeof *line);
    va_list again;
    int size;
    va_copy(again, args);
    size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (line != NULL && size >= 0)
        line->text = (char *)epctx_arena_alloc(&out->arena, (size_t)size + 1);
    if (line == NULL || line->text == NULL) {
        out->no_memory = true;
        return;
    }
    vsnprintf(line->text, (size_t)size + 1, format, args);
    if (what != NULL) line->what = *what;
    if (what != NULL && !(keep(out, &line->what.name) && keep(out, &line->what.attribute) &&
                          keep(out, &line->what.before) && keep(out, &line->what.after) &&
                          keep(out, &line->what.file)))
        out->no_memory = true;
    if (list->last != NULL)
        list->last->next = line;
    else
        list->first = line;
    list->last = line;
    list->count++;
}

void output_change(output *out, const output_item *what, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_line(out, &out->changes, what, format, args);
    va_end(args);
}

void output_note(output *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_line(out, &out->notes, NULL, format, args);
    va_end(args);
}

void output_file(output *out, const char *action, const char *path, const uint64_t *size,
                 const char *note) {
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

/* What is long or no text is told by its size: the file has it. */
static void put_value(json_writer *w, const char *key, epctx_str value) {
    if (value.data == NULL) return;
    if (value.size <= OUTPUT_LONGEST && epctx_str_is_utf8(value)) {
        json_str(w, key, value);
        return;
    }
    json_object(w, key, JSON_INLINE);
    json_uint(w, "size", value.size);
    json_end(w);
}

static void put_change(json_writer *w, const output_line *line) {
    const output_item *what = &line->what;
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "action", what->action);
    json_text(w, "kind", what->kind);
    if (what->part > 0) json_uint(w, "model", what->part);
    if (what->rule != NULL) json_text(w, "rule", what->rule);
    put_value(w, "name", what->name);
    put_value(w, "attribute", what->attribute);
    put_value(w, "before", what->before);
    put_value(w, "after", what->after);
    put_value(w, "file", what->file);
    if (what->count > 0) json_uint(w, "count", what->count);
    if (what->size != EPCTX_NO_OFFSET) json_uint(w, "size", what->size);
    json_text(w, "text", line->text);
    json_end(w);
}

static void put_list(json_writer *w, const char *key, const output_list *list) {
    const output_line *line;
    json_array(w, key, JSON_ROWS);
    for (line = list->first; line != NULL; line = line->next)
        if (line->what.action != NULL)
            put_change(w, line);
        else
            json_text(w, NULL, line->text);
    json_end(w);
}

static void print_json(const output *out, FILE *to) {
    json_writer *w = out->several != NULL ? out->several : cli_json_begin(to);
    const output_file_line *file;
    if (out->several != NULL) {
        json_object(w, NULL, JSON_LINES);
        json_text(w, "file", out->of);
    }
    json_bool(w, "dry_run", out->dry_run);
    json_uint(w, "size", out->size);
    put_list(w, "changes", &out->changes);
    put_list(w, "notes", &out->notes);
    json_array(w, "files", JSON_ROWS);
    for (file = out->files; file != NULL; file = file->next) {
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "action", file->action);
        json_text(w, "path", file->path);
        if (file->sized) json_uint(w, "size", file->size);
        if (file->note != NULL) json_text(w, "note", file->note);
        json_end(w);
    }
    json_end(w);
    if (out->several != NULL)
        json_end(w);
    else
        cli_json_end();
}

static void print_notes(const output *out) {
    const output_line *note;
    for (note = out->notes.first; note != NULL; note = note->next) {
        fputs("note: ", stdout);
        cli_put(stdout, epctx_str_of(note->text));
        putchar('\n');
    }
}

static void print_text(const output *out) {
    const output_line *change;
    const output_file_line *file;
    for (change = out->changes.first; change != NULL; change = change->next) {
        cli_put(stdout, epctx_str_of(change->text));
        putchar('\n');
    }
    if (out->changes.count == 0) puts("no changes");
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
    print_notes(out);
    if (out->dry_run && out->size > 0)
        printf("dry run, nothing was written: the model would have %" PRIu64 " bytes\n", out->size);
    else if (out->dry_run)
        puts("dry run, nothing was written");
}

int output_done(output *out) {
    if (out->no_memory) return cli_fail_text("out of memory");
    if (out->json)
        print_json(out, out->to_stdout && !out->dry_run ? stderr : stdout);
    else if (!out->to_stdout || out->dry_run)
        print_text(out);
    return CLI_OK;
}

/* Files that the written model looks for in vain. */
typedef struct missing {
    epctx_str first;
    size_t count;
    epctx_map names;
} missing;

static void add_missing(missing *m, epctx_str name) {
    if (epctx_map_get(&m->names, name) != EPCTX_MAP_NONE) return;
    if (m->count++ == 0) m->first = name;
    (void)epctx_map_put(&m->names, name, 1); /* without memory it is counted twice */
}

/* Those that it names. */
static void find_missing(output *out, missing *m) {
    epctx_dependency *files = NULL;
    epctx_model model;
    epctx_error ignored;
    size_t count = 0, i;
    if (cli_open(&model, out->path, &ignored) == EPCTX_OK)
        (void)needs_of_model(&model, NULL, &out->arena, &files, &count, &ignored);
    for (i = 0; i < count; i++) {
        if (!files[i].required || files[i].status != EPCTX_ERR_NOT_FOUND) continue;
        if (keep(out, &files[i].name)) add_missing(m, files[i].name);
    }
    epctx_model_close(&model);
}

/* Those to which the files refer that the source has: they may not have come along themselves. */
static void find_left(output *out, missing *m, const epctx_model *source) {
    const epctx_str folder = epctx_path_folder(epctx_str_of(out->path));
    epctx_dependency *files = NULL;
    epctx_error ignored;
    size_t count = 0, i;
    char path[EPCTX_PATH_MAX];
    (void)needs_of_model(source, NULL, &out->arena, &files, &count, &ignored);
    for (i = 0; i < count; i++)
        if (files[i].required && files[i].use == EPCTX_USE_COMPANION && files[i].path != NULL &&
            epctx_path_find(cli_io(), folder, files[i].name, cli_path_flags(), path, sizeof path,
                            NULL) == EPCTX_ERR_NOT_FOUND)
            add_missing(m, files[i].name);
}

static void note_missing(output *out, const epctx_model *source) {
    missing m;
    memset(&m, 0, sizeof m);
    epctx_map_init(&m.names, &out->arena);
    find_missing(out, &m);
    find_left(out, &m, source);
    if (m.count > 1)
        output_note(out,
                    "%s needs '%.*s' and %zu more file%s, which are not in its folder: copy them "
                    "there",
                    out->path, (int)m.first.size, m.first.data, m.count - 1,
                    cli_plural(m.count - 1));
    else if (m.count == 1)
        output_note(out, "%s needs '%.*s', which is not in its folder: copy it there", out->path,
                    (int)m.first.size, m.first.data);
}

int output_copied(output *out, const epctx_model *source) {
    note_missing(out, source);
    if (out->no_memory) return cli_fail_text("out of memory");
    print_notes(out);
    return CLI_OK;
}

/* -- the model -- */

static bool write_stdout(pb_ostream_t *stream, const pb_byte_t *data, size_t size) {
    (void)stream;
    return fwrite(data, 1, size, stdout) == size;
}

static int refuse_size(const output *out) {
    return cli_fail_text("the model would have %" PRIu64 " bytes, but ONNX Runtime reads at "
                         "most %" PRId64 ": store contexts and initializers in files "
                         "(--allow-huge writes it anyway)",
                         out->size, EPCTX_MODEL_MAX);
}

static int model_to_stdout(output *out, epctx_model *model) {
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

static int fail(const output *out, const epctx_error *error) {
    if (error->status == EPCTX_ERR_EXISTS)
        return cli_fail_cure(error, "-f replaces it, --overwrite backup keeps it as %s~",
                             out->path);
    if (error->status == EPCTX_ERR_LIMIT && !out->allow_huge)
        return cli_fail_cure(error, "--allow-huge writes it anyway");
    return cli_fail(error);
}

/* What --dry-run can know: the size, and whether the place is free and can be written. */
static int plan_model(output *out, epctx_model *model) {
    epctx_error error;
    if (out->size > (uint64_t)EPCTX_MODEL_MAX && !out->allow_huge) return refuse_size(out);
    if (out->path != NULL && !out->to_stdout &&
        (epctx_output_check(epctx_model_io(model), out->path, out->policy, &error) != EPCTX_OK ||
         cli_writable(out->path, &error) != EPCTX_OK))
        return fail(out, &error);
    if (out->path != NULL) output_file(out, "write", out->path, &out->size, NULL);
    return output_done(out);
}

/* With --in-place, a model without a change keeps its file, inode and time. */
static bool is_kept(output *out, const epctx_model *model) {
    if (!out->in_place || epctx_edit_mark(model) > 0) return false;
    output_file(out, "keep", out->path, &out->size, NULL);
    return true;
}

static bool is_loadable(output *out, const epctx_model *model) {
    const char *const own[] = {model->path};
    const bool from_file = model->path != NULL && model->path[0] != '\0';
    epctx_error before, error;
    if (judge_made(model, out->sources != NULL ? out->sources : own,
                   out->sources != NULL ? out->source_count : from_file, out->allow_huge, &before,
                   &error) != EPCTX_OK) {
        cli_fail_cure(&error, "ONNX Runtime would refuse the model: nothing was written");
        return false;
    }
    if (before.message[0] != '\0')
        output_note(out, "ONNX Runtime refuses the model, as it did before: epctx lint tells why");
    return true;
}

bool output_allowed(const output *out, const epctx_model *model, const epctx_output_file *files,
                    size_t count) {
    neighbours_plan plan;
    epctx_error error;
    if (!out->in_place && !out->has_policy) return true; /* nothing is replaced */
    memset(&plan, 0, sizeof plan);
    plan.files = files;
    plan.file_count = count;
    plan.models = &out->path;
    plan.model_count = out->path != NULL && !out->to_stdout;
    plan.source = model->path;
    if (neighbours_allow(&plan, &error) == EPCTX_OK) return true;
    cli_fail(&error);
    return false;
}

int output_model(output *out, epctx_model *model) {
    static char backup[EPCTX_PATH_MAX];
    static char note[EPCTX_PATH_MAX + 32];
    epctx_write_opts opts = output_options(out);
    epctx_status status;
    epctx_error error;
    if (out->no_memory) return cli_fail_text("out of memory");
    out->size = epctx_model_size(model);
    if (is_kept(out, model)) return output_done(out);
    if (!output_allowed(out, model, NULL, 0) || !is_loadable(out, model)) return CLI_FAILED;
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
    if (!out->in_place) note_missing(out, model);
    return output_done(out);
}

int output_refuse(const output *out, const epctx_error *error) {
    if (error->status == EPCTX_ERR_EXISTS)
        return cli_fail_cure(error, "-f replaces it, --overwrite backup keeps it");
    if (error->status == EPCTX_ERR_LIMIT && !out->allow_huge)
        return cli_fail_cure(error, "--allow-huge writes it anyway");
    return cli_fail(error);
}

/* The new files are where the link leads, and readers look for them where it is. */
bool output_is_link(const char *path) {
    struct stat there;
    return lstat(path, &there) == 0 && S_ISLNK(there.st_mode);
}

int output_group(output *out, epctx_model *model, epctx_output_file *files, size_t count) {
    static char backup[EPCTX_PATH_MAX];
    static char note[EPCTX_PATH_MAX + 32];
    epctx_write_opts opts = output_options(out);
    epctx_overwrite policy = out->has_policy ? out->policy : EPCTX_OVERWRITE_FAIL;
    epctx_error error;
    epctx_status status;
    size_t i;
    out->size = epctx_model_size(model);
    if (count == 0 && is_kept(out, model)) return output_done(out);
    if (!output_allowed(out, model, files, count) || !is_loadable(out, model)) return CLI_FAILED;
    opts.backup = backup;
    opts.backup_capacity = sizeof backup;
    epctx_error_clear(&error);
    opts.dry_run = out->dry_run;
    status = epctx_model_write_group(model, out->path, &opts, files, count, policy, &error);
    if (status == EPCTX_OK && out->dry_run) status = cli_writable(out->path, &error);
    if (status != EPCTX_OK) return output_refuse(out, &error);
    for (i = 0; i < count; i++)
        output_file(out, files[i].kept ? "keep" : "write", files[i].path, &files[i].size, NULL);
    snprintf(note, sizeof note, "the old file is now %s", backup);
    output_file(out, "write", out->path, &out->size, backup[0] != '\0' ? note : NULL);
    if (!out->dry_run && (!out->in_place || output_is_link(out->path))) note_missing(out, model);
    return output_done(out);
}
