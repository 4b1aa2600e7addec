/* Which ONNX Runtime: the one that is named, or the first good one of those that are here. Nothing
 * of the current folder is run or loaded, unless it is named. */
#define _GNU_SOURCE
#include "anyep.h"
#include "ort/places.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Seconds for Python's answer, and for opening a library. */
enum { ASK_LIMIT = 3, OPEN_LIMIT = 60 };

/* Prints where the package is, without importing it. -I leaves out the user's own packages. */
static const char question[] =
    "import importlib.util, os, site, sys\n"
    "sys.path.append(site.getusersitepackages())\n"
    "spec = importlib.util.find_spec('onnxruntime')\n"
    "print('\\nonnxruntime=' + (os.path.dirname(spec.origin) if spec and spec.origin else ''))\n";

/* Notes why a place gave nothing. */
CLI_FORMAT(2) static void pass_over(anyep_settings *set, const char *format, ...) {
    char text[2 * PATH_MAX];
    const char *copy;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    copy = epctx_arena_copy(set->arena, epctx_str_of(text));
    if (copy != NULL && set->passed_count < ANYEP_MOST_PASSED)
        set->passed[set->passed_count++] = copy;
}

/* ---------------------------------------------------------------- libraries */

#if defined(__ELF__)
enum { ELF_HEADER = 20 }; /* as far as the machine's number */

static bool read_header(const char *path, unsigned char *out) {
    FILE *in = fopen(path, "rb");
    const bool ok = in != NULL && fread(out, 1, ELF_HEADER, in) == ELF_HEADER;
    if (in != NULL) fclose(in);
    return ok;
}

/* The loader says of another processor's library that there is no such file. */
static const char *elf_problem(const char *path) {
    unsigned char header[ELF_HEADER], own[ELF_HEADER];
    if (!read_header(path, header) || memcmp(header, "\177ELF", 4) != 0) return "it is no library";
    if (!read_header("/proc/self/exe", own)) return NULL;
    /* class and byte order; machine */
    return memcmp(header + 4, own + 4, 2) != 0 || memcmp(header + 18, own + 18, 2) != 0
               ? "it is a library for another processor"
               : NULL;
}
#endif

/* Why the file is no library for this machine, or NULL. */
static const char *file_problem(const char *path) {
    struct stat there;
    if (stat(path, &there) != 0) return strerror(errno);
    if (!S_ISREG(there.st_mode)) return "it is no regular file";
    if (access(path, R_OK) != 0) return strerror(errno);
#if defined(__ELF__)
    return elf_problem(path);
#else
    return NULL;
#endif
}

/* Opens the library, in a child, and takes it if it is good; else `out` tells why not. */
static bool open_library(anyep_settings *set, const char *folder, const char *path,
                         anyep_result *out) {
    anyep_settings with = *set;
    anyep_job job;
    memset(&job, 0, sizeof job);
    with.ep_count = 0; /* its faults are none of the runtime's */
    with.ort = path;
    if (!(with.time_limit > 0) || with.time_limit > OPEN_LIMIT) with.time_limit = OPEN_LIMIT;
    job.set = &with;
    job.work = ANYEP_OPEN;
    job.folder = folder;
    anyep_do(&job, out);
    if (out->end != ANYEP_OK) return false;
    set->ort = epctx_arena_copy(set->arena, epctx_str_of(out->board->ort_path));
    return set->ort != NULL;
}

/* Its text names the library. */
static const char *why_not(const anyep_result *result) {
    if (result->end == ANYEP_OK) return "out of memory";
    return result->end == ANYEP_REFUSED ? result->board->text : result->words;
}

/* Opens the library and takes it; else notes why not. */
static bool take(anyep_settings *set, const char *folder, const char *path) {
    anyep_result result;
    const char *problem = strchr(path, '/') != NULL ? file_problem(path) : NULL;
    bool ok;
    if (problem != NULL) {
        pass_over(set, "%s: %s", path, problem);
        return false;
    }
    ok = open_library(set, folder, path, &result);
    if (!ok) {
        pass_over(set, "%s", why_not(&result));
        if (result.board != NULL && result.board->too_old)
            cli_say("epctx: note: %s: passed over\n", result.board->text);
    }
    anyep_free(&result);
    return ok;
}

/* ---------------------------------------------------------------- Python */

/* The first program of this name in the folders of $PATH, but for relative ones. */
static bool find_program(const char *name, char *out, size_t size) {
    const char *path = getenv("PATH");
    if (path == NULL) path = "/usr/local/bin:/usr/bin:/bin";
    while (*path != '\0') {
        const size_t length = strcspn(path, ":");
        struct stat there;
        if (path[0] == '/' &&
            (size_t)snprintf(out, size, "%.*s/%s", (int)length, path, name) < size &&
            stat(out, &there) == 0 && S_ISREG(there.st_mode) && access(out, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

/* The path behind the last "onnxruntime=" at the beginning of a line of the log; "": there is
 * none. */
static void read_answer(const char *folder, char *out, size_t size) {
    static const char key[] = "onnxruntime=";
    char log[EPCTX_PATH_MAX + 8], line[PATH_MAX + sizeof key + 1];
    bool whole = true; /* the line begins here */
    FILE *in;
    out[0] = '\0';
    snprintf(log, sizeof log, "%s/log", folder);
    in = fopen(log, "r");
    if (in == NULL) return;
    while (fgets(line, sizeof line, in) != NULL) {
        const size_t length = strcspn(line, "\n");
        if (whole && line[length] == '\n' && strncmp(line, key, sizeof key - 1) == 0)
            snprintf(out, size, "%.*s", (int)(length - (sizeof key - 1)), line + sizeof key - 1);
        whole = line[length] == '\n';
    }
    fclose(in);
}

static bool from_python(anyep_settings *set, const char *folder) {
    char python[PATH_MAX], package[PATH_MAX], capi[PATH_MAX + 8], library[2 * PATH_MAX];
    const char *const words[] = {python, "-I", "-c", question, NULL};
    anyep_settings with = *set;
    anyep_result result;
    anyep_job job;
    bool answered;
    if (!find_program("python3", python, sizeof python)) {
        pass_over(set, "python3: there is none in PATH");
        return false;
    }
    memset(&job, 0, sizeof job);
    with.time_limit = ASK_LIMIT;
    job.set = &with;
    job.work = ANYEP_EXEC;
    job.folder = folder;
    job.words = words;
    anyep_do(&job, &result);
    answered = result.end == ANYEP_EXITED && result.number == 0;
    if (result.end == ANYEP_HUNG) {
        pass_over(set, "%s: no answer after %d s", python, ASK_LIMIT);
        cli_say("epctx: note: %s: no answer after %d s: passed over\n", python, ASK_LIMIT);
    } else if (!answered)
        pass_over(set, "%s: it cannot be asked for its packages", python);
    anyep_free(&result);
    if (!answered) return false;
    read_answer(folder, package, sizeof package);
    if (package[0] != '/') {
        pass_over(set, "%s: it has no package onnxruntime", python);
        return false;
    }
    snprintf(capi, sizeof capi, "%s/capi", package);
    if (!ort_places_in(capi, library, sizeof library)) {
        pass_over(set, "%s: its package %s holds no capi/libonnxruntime.so*", python, package);
        return false;
    }
    set->ort_from = "python";
    set->ort_where = epctx_arena_copy(set->arena, epctx_str_of(python));
    return take(set, folder, library);
}

/* ---------------------------------------------------------------- loader and cache */

static bool from_loader(anyep_settings *set, const char *folder) {
    set->ort_from = "loader";
    set->ort_where = NULL;
    return take(set, folder, "libonnxruntime.so.1") || take(set, folder, "libonnxruntime.so");
}

static bool from_cache(anyep_settings *set, const char *folder) {
    char cache[PATH_MAX], library[2 * PATH_MAX];
    const char *given = getenv("EPCTX_CACHE");
    ort_cached list[ORT_MOST_CACHED + 1];
    size_t count, i;
    if (given != NULL && given[0] != '\0' && given[0] != '/')
        pass_over(set, "EPCTX_CACHE: %s is no absolute path", given);
    if (given == NULL || given[0] == '\0')
        pass_over(set, "EPCTX_CACHE: it is %s", given != NULL ? "empty" : "not set");
    if (!ort_places_cache(cache, sizeof cache)) return false;
    set->ort_from = "cache";
    set->ort_where = epctx_arena_copy(set->arena, epctx_str_of(cache));
    count = ort_places_cached(cache, list);
    if (count == 0) pass_over(set, "%s: there is no ONNX Runtime in it", cache);
    for (i = 0; i < count; i++) {
        snprintf(library, sizeof library, "%s/%s/libonnxruntime.so.1", cache, list[i].name);
        if (take(set, folder, library)) return true;
    }
    return false;
}

/* ---------------------------------------------------------------- the choice */

static bool is_folder(const char *path) {
    struct stat there;
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

/* A path of the library or of a folder that holds it, or a name that the loader finds. Prints what
 * is wrong. */
static bool take_named(anyep_settings *set, const char *option) {
    const char *given = set->ort;
    char real[PATH_MAX], library[2 * PATH_MAX], folder[EPCTX_PATH_MAX];
    const char *path, *problem = NULL;
    anyep_result result;
    bool ok;
    if (is_folder(given) && ort_places_find(given, library, sizeof library)) given = library;
    path = realpath(given, real); /* NULL: a name for the loader, or nothing */
    if (is_folder(given))
        problem = "it holds no " ORT_PLACES;
    else if (path != NULL)
        problem = file_problem(path);
    else if (strchr(given, '/') != NULL || given[0] == '\0')
        problem = strerror(errno);
    if (problem != NULL) {
        cli_fail_text("%s %s: %s", option, given, problem);
        return false;
    }
    if (!anyep_folder(NULL, folder, sizeof folder)) return false;
    ok = open_library(set, folder, path != NULL ? path : given, &result);
    if (!ok) cli_fail_text("%s: %s", option, why_not(&result));
    anyep_free(&result);
    anyep_remove(folder);
    return ok;
}

static void tell_none(const anyep_settings *set) {
    size_t i;
    cli_fail_text("no ONNX Runtime is here: give its library (libonnxruntime.so.1, 1.24 or newer) "
                  "with --ort or in EPCTX_ORT_LIBRARY, or install the Python package onnxruntime");
    for (i = 0; i < set->passed_count; i++) cli_say("  %s\n", set->passed[i]);
}

/* Without --ort and EPCTX_ORT_LIBRARY; `*told` changes when one could be searched for. */
static bool search(anyep_settings *set, bool *told) {
    char folder[EPCTX_PATH_MAX];
    bool found;
    pass_over(set, "EPCTX_ORT_LIBRARY: it is %s",
              getenv("EPCTX_ORT_LIBRARY") != NULL ? "empty" : "not set");
    if (!anyep_folder(NULL, folder, sizeof folder)) return false;
    *told = false;
    found = from_python(set, folder) || (!cli_signals_waiting() && from_loader(set, folder)) ||
            (!cli_signals_waiting() && from_cache(set, folder));
    anyep_remove(folder);
    return found;
}

/* `*told`: what is wrong was printed. */
static bool find(anyep_settings *set, bool *told) {
    const char *given = getenv("EPCTX_ORT_LIBRARY");
    *told = true;
    if (set->ort != NULL) {
        set->ort_from = "option";
        return take_named(set, "--ort");
    }
    if (given != NULL && given[0] != '\0') {
        set->ort = given;
        set->ort_from = "environment";
        return take_named(set, "EPCTX_ORT_LIBRARY");
    }
    return search(set, told);
}

bool anyep_find_ort(anyep_settings *set) {
    bool told;
    if (find(set, &told)) return true;
    if (!told && !cli_signals_waiting()) tell_none(set);
    return false;
}

bool anyep_which_ort(anyep_settings *set) {
    bool told;
    if (find(set, &told)) return true;
    set->ort = set->ort_from = set->ort_where = NULL;
    return !told;
}

void anyep_ort_reason(const anyep_settings *set, char *out, size_t size) {
    const char *from = set->ort_from;
    const char *where = set->ort_where != NULL ? set->ort_where : "";
    if (strcmp(from, "option") == 0) snprintf(out, size, "--ort");
    if (strcmp(from, "environment") == 0) snprintf(out, size, "EPCTX_ORT_LIBRARY");
    if (strcmp(from, "python") == 0) snprintf(out, size, "the package onnxruntime of %s", where);
    if (strcmp(from, "loader") == 0) snprintf(out, size, "the loader's path");
    if (strcmp(from, "cache") == 0) snprintf(out, size, "the cache %s", where);
}
