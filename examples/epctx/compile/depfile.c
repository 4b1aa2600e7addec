/* compile --depfile: what an output depends on, for make and ninja. */
#define _POSIX_C_SOURCE 200809L

#include "compile.h"
#include "core/neighbours.h"
#include "core/output.h"
#include "ops/needs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct depfile {
    const compile_settings *set;
    FILE *out, *empty; /* the rules, and those of the prerequisites, which have no recipe */
    epctx_arena arena;
    epctx_map known; /* prerequisites with such a rule */
    epctx_error *error;
} depfile;

/* Begins as put_rule does. */
static bool is_depfile(FILE *in) {
    char *line = NULL;
    size_t room = 0;
    const ssize_t size = getline(&line, &room, in);
    const bool is = size < 0 || (size > 4 && (size_t)size == strlen(line) &&
                                 strcmp(line + size - 4, ": \\\n") == 0);
    free(line);
    return is;
}

/* What is there and no depfile is not replaced, by no option: a slip would cost a model. */
static epctx_status check_place(const char *path, epctx_error *error) {
    struct stat there;
    FILE *in;
    bool ours;
    epctx_status status =
        epctx_output_check(epctx_io_files(), path, EPCTX_OVERWRITE_REPLACE, error);
    if (status != EPCTX_OK || lstat(path, &there) != 0) return status;
    in = S_ISREG(there.st_mode) ? fopen(path, "rb") : NULL;
    ours = in != NULL && is_depfile(in);
    if (in != NULL) fclose(in);
    if (ours) return EPCTX_OK;
    status = epctx_fail(error, EPCTX_ERR_EXISTS,
                        "--depfile: this is no depfile of an earlier run and would be lost: "
                        "choose another name, or remove it first");
    epctx_blame(error, path, NULL, NULL);
    return status;
}

/* The depfile is none of the files that it names. */
static epctx_status check_other(const depfile *d, const char *path) {
    epctx_status status = EPCTX_OK;
    if (!output_same(d->set->depfile, path)) return status;
    status = epctx_fail(d->error, EPCTX_ERR_PATH,
                        "--depfile: this is a model, a file that it names or a result: choose "
                        "another name");
    epctx_blame(d->error, d->set->depfile, NULL, NULL);
    return status;
}

/* ".IGNORE", ".SILENT" and their like tell make how to work: no name of a file, nor with "./". */
static bool is_special(const char *name) {
    while (strncmp(name, "./", 2) == 0) name += 2;
    return name[0] == '.' && name[1] != '\0' &&
           name[1 + strspn(name + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")] == '\0';
}

/* A name in the one form that both read. What they read differently, or not at all, is refused. */
static epctx_status put_name(depfile *d, FILE *to, const char *name) {
    const char *bad = is_special(name) ? name : name + strcspn(name, "\\:;=%*?[]|&\"'<>()~`");
    for (; *bad == '\0' && *name != '\0'; name++) {
        if ((unsigned char)*name < ' ') {
            bad = name;
            break;
        }
        if (*name == ' ' || *name == '#') fputc('\\', to);
        if (*name == '$') fputc('$', to);
        fputc(*name, to);
    }
    if (*bad == '\0') return EPCTX_OK;
    return epctx_fail(d->error, EPCTX_ERR_ARG,
                      "--depfile: make and ninja have no common form for the name %s", bad);
}

static epctx_status put_input(depfile *d, const char *path) {
    epctx_status status;
    const char *kept;
    fputs(" \\\n  ", d->out);
    status = check_other(d, path);
    if (status == EPCTX_OK) status = put_name(d, d->out, path);
    if (status != EPCTX_OK || epctx_map_get(&d->known, epctx_str_of(path)) != EPCTX_MAP_NONE)
        return status;
    /* A file that is gone is no error of make's: the command tells more. */
    put_name(d, d->empty, path);
    fputs(":\n", d->empty);
    kept = epctx_arena_copy(&d->arena, epctx_str_of(path));
    if (kept == NULL || epctx_map_put(&d->known, epctx_str_of(kept), 1) != EPCTX_OK)
        return epctx_fail(d->error, EPCTX_ERR_NOMEM, "out of memory");
    return EPCTX_OK;
}

/* The name of a file from where the tool runs, as a rule that makes it would have it. */
static const char *name_of(depfile *d, const char *model, const epctx_dependency *file) {
    const epctx_str folder = epctx_path_folder(epctx_str_of(model));
    const epctx_io *io = epctx_io_files();
    epctx_file_info found, named;
    char path[EPCTX_PATH_MAX];
    int size = snprintf(path, sizeof path, "%.*s%.*s", (int)folder.size, folder.data,
                        (int)file->name.size, file->name.data);
    if (size > 0 && (size_t)size < sizeof path &&
        io->stat_fn(io->user, file->path, &found, NULL) == EPCTX_OK &&
        io->stat_fn(io->user, path, &named, NULL) == EPCTX_OK && epctx_file_same(&found, &named))
        return epctx_arena_copy(&d->arena, epctx_str_of(path));
    return file->path;
}

/* A model and the files that it names. */
static epctx_status put_model(depfile *d, const char *path) {
    epctx_dependency *files = NULL;
    epctx_check_opts opts;
    epctx_model model;
    size_t count = 0, i;
    epctx_status status = put_input(d, path);
    if (status == EPCTX_OK) status = epctx_model_open_file(&model, path, &d->set->open, d->error);
    if (status != EPCTX_OK) return status;
    memset(&opts, 0, sizeof opts);
    opts.external_folder = d->set->open.external_folder;
    status = needs_of_model(&model, &opts, &d->arena, &files, &count, d->error);
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        const char *name = files[i].path != NULL ? name_of(d, path, &files[i]) : "";
        if (name == NULL)
            status = epctx_fail(d->error, EPCTX_ERR_NOMEM, "out of memory");
        else if (name[0] != '\0')
            status = put_input(d, name);
    }
    epctx_model_close(&model);
    return status;
}

/* The outputs of a model. Only the EP knows which binaries it writes: depfile_write looks again. */
static epctx_status put_outputs(depfile *d, const char *file) {
    const char *name = d->set->gen.initializers_file_name;
    char path[EPCTX_PATH_MAX], beside[EPCTX_PATH_MAX];
    epctx_status status = compile_output_path(file, d->set, path, d->error);
    epctx_str folder;
    if (status == EPCTX_OK) status = check_other(d, path);
    if (status == EPCTX_OK) status = put_name(d, d->out, path);
    folder = epctx_path_folder(epctx_str_of(path));
    if (status != EPCTX_OK || name == NULL) return status;
    snprintf(beside, sizeof beside, "%.*s%s", (int)folder.size, folder.data, name);
    return check_other(d, beside);
}

/* Models that are compiled together depend on all of their sources. */
static epctx_status put_rule(depfile *d, const char *const *files, int count,
                             const char *const *libraries) {
    epctx_status status = EPCTX_OK;
    int i;
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        if (i > 0) fputc(' ', d->out);
        status = put_outputs(d, files[i]);
    }
    fputc(':', d->out);
    for (i = 0; i < count && status == EPCTX_OK; i++) status = put_model(d, files[i]);
    for (; *libraries != NULL && status == EPCTX_OK; libraries++) status = put_input(d, *libraries);
    fputc('\n', d->out);
    return status;
}

static epctx_status put_rules(depfile *d, const char *const *files, int count,
                              const char *const *libraries) {
    epctx_status status = EPCTX_OK;
    int i;
    if (!d->set->alone) return put_rule(d, files, count, libraries);
    for (i = 0; i < count && status == EPCTX_OK; i++) status = put_rule(d, &files[i], 1, libraries);
    return status;
}

bool depfile_make(const char *const *files, int count, const compile_settings *set,
                  const char *const *libraries, char **text) {
    char *empty = NULL;
    size_t size = 0, empty_size = 0;
    epctx_status status = EPCTX_ERR_NOMEM;
    epctx_error error;
    depfile d;
    epctx_error_clear(&error);
    memset(&d, 0, sizeof d);
    *text = NULL;
    d.set = set;
    d.error = &error;
    epctx_arena_init(&d.arena, NULL);
    epctx_map_init(&d.known, &d.arena);
    d.out = open_memstream(text, &size);
    d.empty = open_memstream(&empty, &empty_size);
    if (d.out != NULL && d.empty != NULL) status = check_place(set->depfile, &error);
    if (status == EPCTX_OK) status = put_rules(&d, files, count, libraries);
    if (d.empty != NULL && fclose(d.empty) != 0) status = EPCTX_ERR_NOMEM;
    if (d.out != NULL && empty != NULL) fputs(empty, d.out);
    if (d.out != NULL && fclose(d.out) != 0) status = EPCTX_ERR_NOMEM;
    if (status != EPCTX_OK && error.message[0] == '\0')
        epctx_fail(&error, EPCTX_ERR_NOMEM, "out of memory");
    free(empty);
    epctx_arena_free(&d.arena);
    if (status == EPCTX_OK) return true;
    cli_fail(&error);
    free(*text);
    *text = NULL;
    return false;
}

int depfile_write(const char *path, const char *text) {
    epctx_write_opts opts;
    epctx_error error;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = EPCTX_OVERWRITE_REPLACE;
    if (check_place(path, &error) == EPCTX_OK && neighbours_allow_file(path, &error) == EPCTX_OK &&
        epctx_write_bytes(cli_io(), path, text, strlen(text), &opts, &error) == EPCTX_OK)
        return CLI_OK;
    return cli_fail(&error);
}
