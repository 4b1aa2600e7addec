/* Which libraries beside the EP's own the child has loaded: what is compiled depends on them. */
#define _GNU_SOURCE
#include "child.h"

#include <limits.h>
#include <stdlib.h>

/* The path behind the five columns of a line of /proc/self/maps; NULL: there is none. */
static char *path_of(char *line) {
    char *path = strchr(line, '/');
    line[strcspn(line, "\n")] = '\0';
    return path;
}

static bool has_line(const char *lines, const char *one) {
    epctx_str rest = epctx_str_of(lines);
    while (rest.size > 0)
        if (epctx_str_is(epctx_str_cut(&rest, '\n'), one)) return true;
    return false;
}

/* Adds a line; what has no room stays out. */
static void add(char *lines, size_t room, const char *name) {
    const size_t used = strlen(lines), size = strlen(name);
    if (has_line(lines, name) || used + size + 2 > room) return;
    memcpy(lines + used, name, size);
    memcpy(lines + used + size, "\n", 2);
}

/* A data file is no library, and what was replaced meanwhile cannot be compared. */
static bool is_library(const char *name) {
    static const char gone[] = " (deleted)";
    const size_t size = strlen(name), end = sizeof gone - 1;
    const char *suffix = strstr(name, ".so");
    return suffix != NULL && (suffix[3] == '\0' || suffix[3] == '.') &&
           (size < end || strcmp(name + size - end, gone) != 0);
}

void child_note_libraries(child *c) {
    const char *library = c->set->ep_count > 0 ? c->set->eps[0].library : NULL;
    char real[PATH_MAX], line[PATH_MAX + 128];
    size_t folder;
    FILE *in;
    if (library == NULL || realpath(library, real) == NULL) return;
    folder = epctx_path_folder(epctx_str_of(real)).size;
    in = fopen("/proc/self/maps", "r"); /* Linux has it */
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        const char *path = path_of(line);
        if (path != NULL && strncmp(path, real, folder) == 0 && strcmp(path, real) != 0 &&
            is_library(path + folder))
            add(c->board->libraries, sizeof c->board->libraries, path + folder);
    }
    if (in != NULL) fclose(in);
}
