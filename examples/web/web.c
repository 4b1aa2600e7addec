/* The tool's commands that only look, for WebAssembly: files come from the page (worker.js), which
 * answers the system calls of WASI for them. Nothing is written but to standard output. */
#include "../epctx/commands/lint_ep.h"
#include "../epctx/core/asker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- files: mapped by reading them -- */

static epctx_status file_failed(epctx_error *error, const char *what, const char *path) {
    return epctx_fail(error, errno == ENOENT ? EPCTX_ERR_NOT_FOUND : EPCTX_ERR_IO,
                      "cannot %s '%s': %s", what, path, strerror(errno));
}

static epctx_status stat_file(void *user, const char *path, epctx_file_info *info,
                              epctx_error *error) {
    struct stat found;
    (void)user;
    memset(info, 0, sizeof *info);
    if (stat(path, &found) != 0)
        return errno == ENOENT || errno == ENOTDIR ? EPCTX_OK : file_failed(error, "examine", path);
    info->kind = S_ISDIR(found.st_mode)   ? EPCTX_FILE_FOLDER
                 : S_ISREG(found.st_mode) ? EPCTX_FILE_REGULAR
                                          : EPCTX_FILE_OTHER;
    info->size = (uint64_t)found.st_size;
    return EPCTX_OK;
}

static epctx_status read_whole(int fd, const char *path, size_t size, uint8_t *to,
                               epctx_error *error) {
    size_t done = 0;
    while (done < size) {
        const ssize_t count = pread(fd, to + done, size - done, (off_t)done);
        if (count <= 0) return file_failed(error, "read", path);
        done += (size_t)count;
    }
    return EPCTX_OK;
}

static epctx_status map_file(void *user, const char *root, const char *name, bool copy,
                             epctx_mapping *out, epctx_error *error) {
    char path[EPCTX_PATH_MAX];
    epctx_status status;
    struct stat found;
    uint8_t *data;
    int fd;
    (void)user;
    (void)copy;
    memset(out, 0, sizeof *out);
    status = epctx_path_join(epctx_str_of(root), epctx_str_of(name), path, sizeof path, error);
    if (status != EPCTX_OK) return status;
    fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &found) != 0) {
        status = file_failed(error, "open", path);
        if (fd >= 0) close(fd);
        return status;
    }
    data = found.st_size < INT32_MAX ? (uint8_t *)malloc((size_t)found.st_size + 1) : NULL;
    status = data != NULL
                 ? read_whole(fd, path, (size_t)found.st_size, data, error)
                 : epctx_fail(error, EPCTX_ERR_NOMEM, "'%s': a page has no memory for %u bytes",
                              path, (uint64_t)found.st_size);
    close(fd);
    if (status != EPCTX_OK) {
        free(data);
        return status;
    }
    out->data = data;
    out->handle = data;
    out->size = (size_t)found.st_size;
    out->info.kind = EPCTX_FILE_REGULAR;
    out->info.size = (uint64_t)found.st_size;
    return EPCTX_OK;
}

static void unmap_file(void *user, epctx_mapping *mapping) {
    (void)user;
    free(mapping->handle);
    memset(mapping, 0, sizeof *mapping);
}

/* There are no links: the words of the path are all there is to it. */
static epctx_status canonical(void *user, const char *path, char *out, size_t capacity,
                              epctx_error *error) {
    epctx_str rest = epctx_str_of(path);
    size_t used = 0;
    (void)user;
    while (rest.size > 0) {
        const epctx_str word = epctx_str_cut(&rest, '/');
        if (word.size == 0 || epctx_str_is(word, ".")) continue;
        if (epctx_str_is(word, "..")) {
            while (used > 0 && out[--used] != '/') {
            }
            continue;
        }
        if (used + word.size + 2 > capacity)
            return epctx_fail(error, EPCTX_ERR_LIMIT, "'%s' is too long", path);
        out[used++] = '/';
        memcpy(out + used, word.data, word.size);
        used += word.size;
    }
    if (used == 0) out[used++] = '/';
    out[used] = '\0';
    return EPCTX_OK;
}

static epctx_status list_folder(void *user, const char *folder,
                                bool (*name_fn)(void *state, const char *name), void *state,
                                epctx_error *error) {
    DIR *entries = opendir(folder[0] != '\0' ? folder : ".");
    const struct dirent *entry;
    (void)user;
    if (entries == NULL) return file_failed(error, "list", folder);
    do {
        entry = readdir(entries);
    } while (entry != NULL && name_fn(state, entry->d_name));
    closedir(entries);
    return EPCTX_OK;
}

/* In the place of the header's, which is built without files. */
const epctx_io *web_io_files(void);
const epctx_io *web_io_files(void) {
    static epctx_io io;
    io.map_fn = map_file;
    io.unmap_fn = unmap_file;
    io.stat_fn = stat_file;
    io.canonical_fn = canonical;
    io.list_fn = list_folder;
    return &io;
}

const epctx_io *cli_io(void) {
    return web_io_files();
}

/* -- progress and signals: the page shows its own progress, and no signals reach it -- */

void cli_progress_begin(const char *what, uint64_t total) {
    (void)what;
    (void)total;
}
void cli_progress_set(uint64_t done) {
    (void)done;
}
void cli_progress_add(uint64_t done) {
    (void)done;
}
void cli_progress_hide(void) {
}
void cli_progress_end(void) {
}
void cli_progress_forbid(void) {
}
bool cli_signals_waiting(void) {
    return false;
}

uint64_t cli_file_size(const char *file) {
    epctx_file_info info;
    return stat_file(NULL, file, &info, NULL) == EPCTX_OK ? info.size : 0;
}

/* -- no other programs: neither an EP nor a vendor's library can be asked -- */

bool cli_binary_asker(const cli_args *args, binary_asker *asker) {
    (void)args;
    memset(asker, 0, sizeof *asker);
    return true;
}

bool lint_ep_begin(lint_ep *judge, const cli_args *args, int *code) {
    memset(judge, 0, sizeof *judge);
    *code = CLI_USAGE;
    if (args == NULL || args->eps.count == 0) return true;
    cli_misuse("--ep: no EP can be loaded in this page");
    return false;
}
void lint_ep_ask(lint_ep *judge, findings *out, const char *file, const char *context_path,
                 const char *external_folder, const char *errors) {
    (void)judge, (void)out, (void)file;
    (void)context_path, (void)external_folder, (void)errors;
}
void lint_ep_end(lint_ep *judge) {
    (void)judge;
}

/* -- commands -- */

int main(int argc, char **argv) {
    static const cli_command *const commands[] = {&cli_view, &cli_lint,    &cli_info, &cli_ls,
                                                  &cli_scan, &cli_explain, &cli_diff};
    size_t i;
    cli_json_wanted(argv[1], false);
    for (i = 0; argc > 1 && i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i]->name, argv[1]) == 0)
            return cli_call(commands[i], argc - 2, argv + 2);
    fputs("epctx: this command is not in the page\n", stderr);
    return CLI_USAGE;
}
