/* tools.c - what the experiments share: files, the EP in ORT, context models. */
#define _GNU_SOURCE
#include "conformance.h"

#include <dirent.h>
#include <dlfcn.h>
#include <ftw.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------- files */

const char *in_folder(trial *t, const char *name) {
    char *out = t->paths[t->path_count++ % 8];
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) here[0] = '\0';
    if ((size_t)snprintf(out, PATH_MAX, "%s/%s", here, name) >= PATH_MAX) out[0] = '\0';
    return out;
}

void make_folder(const char *path) {
    mkdir(path, 0777);
}

uint8_t *read_file(const char *path, size_t *size) {
    FILE *in = fopen(path, "rb");
    uint8_t *data = NULL, *more;
    size_t room = 0, got = 1;
    *size = 0;
    while (in && got > 0) {
        if (*size == room) {
            room = room ? 2 * room : 65536;
            more = (uint8_t *)realloc(data, room);
            if (!more) break;
            data = more;
        }
        got = fread(data + *size, 1, room - *size, in);
        *size += got;
    }
    if (in) fclose(in);
    return data;
}

bool write_file(const char *path, const void *data, size_t size) {
    FILE *out = fopen(path, "wb");
    const bool written = out && fwrite(data, 1, size, out) == size;
    return out && fclose(out) == 0 && written;
}

bool copy_file(const char *from, const char *to) {
    size_t size;
    uint8_t *data = read_file(from, &size);
    const bool ok = data && write_file(to, data, size);
    free(data);
    return ok;
}

bool file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp((const char *)a, (const char *)b);
}

size_t list_files(const char *folder, char names[][256], size_t room) {
    DIR *open = opendir(folder);
    struct dirent *entry;
    size_t count = 0;
    while (open && count < room && (entry = readdir(open)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        snprintf(names[count++], 256, "%s", entry->d_name);
    }
    if (open) closedir(open);
    qsort(names, count, 256, by_name);
    return count;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st, (void)ftw;
    if (kind == FTW_D || kind == FTW_DP) chmod(path, 0700);
    return remove(path) != 0 && kind == FTW_D;
}

void remove_tree(const char *path) {
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

size_t affordable(double each, size_t least, size_t most) {
    const double seconds = 2;
    if (each * (double)most <= seconds) return most;
    return each * (double)least >= seconds ? least : (size_t)(seconds / each);
}

size_t memory_now(void) {
    FILE *in = fopen("/proc/self/statm", "r");
    unsigned long total = 0, resident = 0;
    if (in && fscanf(in, "%lu %lu", &total, &resident) != 2) resident = 0;
    if (in) fclose(in);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* ------------------------------------------------------------------ the EP */

void *load_ep(trial *t) {
    void *library;
    t->board->step = step_load;
    library = dlopen(t->wanted.library, RTLD_NOW | RTLD_LOCAL);
    t->board->step = NULL;
    return library;
}

void note_answer(const trial *t, bool ok) {
    last_session *last = &t->board->last;
    last->end = ok ? END_DONE : END_REFUSED;
    last->code = ok ? 0 : ort_code;
    snprintf(last->said, sizeof last->said, "%.590s", ok ? "" : ort_text);
}

bool register_ep(trial *t, const char *registration) {
    bool ok;
    /* Devices compute in float16, and round quantized values their way: by one step. */
    allow(t, t->board->ep.form == FORM_QDQ ? 0.05 : t->board->ep.form == FORM_INT8 ? 0.02 : 0.005);
    snprintf(t->board->registered, sizeof t->board->registered, "%s", registration);
    t->board->step = step_register;
    ok = ort_ok(
        ort->RegisterExecutionProviderLibrary(ort_env, registration, ort_path(t->wanted.library)));
    t->board->step = NULL;
    if (t->board->sessions == 0) note_answer(t, ok);
    return ok;
}

const char *registration_of(trial *t, const char *name) {
    if (t->board->ep.is_virtual) return virtual_registration_of(t, name);
    return t->wanted.registration ? t->wanted.registration : name;
}

/* The end of the name allows virtual devices. */
const char *virtual_registration_of(trial *t, const char *name) {
    char *out = t->registration;
    snprintf(out, sizeof t->registration, "%s.virtual",
             t->wanted.registration ? t->wanted.registration : name);
    return out;
}

bool is_own_device(const trial *t, const OrtEpDevice *device) {
    const char *name = ort->EpDevice_EpName(device);
    return ort_is_of(device, t->wanted.library) &&
           (strcmp(name, t->board->ep.name) == 0 || strcmp(name, t->board->registered) == 0);
}

bool unregister_ep(const char *registration) {
    return ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, registration));
}

const OrtEpDevice *find_device(trial *t) {
    const OrtEpDevice *device = ort_device_of(t->wanted.library, t->wanted.name, NULL);
    char text[sizeof ort_text];
    if (device || !t->wanted.name) return device;
    memcpy(text, ort_text, sizeof text);
    device = ort_device_of(t->wanted.library, t->board->registered,
                           NULL); /* an EP that takes that name */
    if (!device) memcpy(ort_text, text, sizeof text);
    return device;
}

void allow(const trial *t, double usual) {
    ort_relative = t->wanted.tolerance > 0 ? t->wanted.tolerance : usual;
}

bool open_ep(trial *t) {
    if (!ort_open(false)) return false;
    judging(t, "PLG-041", "registration");
    return register_ep(t, registration_of(t, "conformance")) && find_device(t);
}

static void begin_step(const ort_spec *spec, const ort_output *to) {
    const trial *t = (const trial *)spec->seen_by;
    t->board->step = to ? step_compile : step_session;
    if (t->seen) t->seen(spec, to);
}

static void end_step(const ort_spec *spec, bool ok) {
    const trial *t = (const trial *)spec->seen_by;
    t->board->step = NULL;
    if (t->done) t->done(spec, ok);
}

ort_spec spec_of(trial *t, const char *path) {
    ort_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.ep = t->board->ep.name;
    spec.device = find_device(t);
    spec.options = t->wanted.options.list;
    spec.path = path;
    spec.allow_cpu = true;
    spec.plain = true;
    spec.seen = begin_step;
    spec.done = end_step;
    spec.seen_by = t;
    return spec;
}

/* What it writes at its end is the session's, too. */
static void end_session(const ort_spec *spec, OrtSession *session) {
    if (!session) return;
    ort->ReleaseSession(session);
    if (spec->done) spec->done(spec, true);
}

bool session_opens(const ort_spec *spec) {
    OrtSession *session = NULL;
    const bool ok = ort_session(spec, &session);
    end_session(spec, session);
    return ok;
}

/* ------------------------------------------------------------ what is left */

static size_t count_entries(const char *folder) {
    DIR *open = opendir(folder);
    size_t count = 0;
    while (open && readdir(open)) count++;
    if (open) closedir(open);
    return count;
}

size_t threads_now(void) {
    return count_entries("/proc/self/task");
}

static size_t more(size_t now_there, size_t before) {
    return now_there > before ? now_there - before : 0;
}

bool sessions_leave(const ort_spec *spec, bool opens, size_t count, remains *out) {
    size_t second = 0, last = 0, i;
    memset(out, 0, sizeof *out);
    for (i = 0; i < count; i++) {
        if (session_opens(spec) != opens) return false;
        if (i == 2 * count / 3) last = memory_now();
        if (i != count / 3) continue;
        second = memory_now();
        out->files = count_entries("/proc/self/fd");
        out->threads = threads_now();
    }
    second = more(last, second); /* a cache fills up, a leak goes on */
    last = more(memory_now(), last);
    out->memory = 2 * (second < last ? second : last);
    out->files = more(count_entries("/proc/self/fd"), out->files);
    out->threads = more(threads_now(), out->threads);
    return true;
}

/* A leak is there when it is looked for again; the noise of a busy machine is not. */
static bool leaves_less(const ort_spec *spec, bool opens, size_t count, size_t limit,
                        remains *left) {
    remains again;
    if (left->memory < limit) return true;
    if (sessions_leave(spec, opens, count, &again)) left->memory = again.memory;
    return left->memory < limit;
}

void judge_left(trial *t, const char *what, const ort_spec *ours, bool opens, const ort_spec *cpu,
                size_t count) {
    remains left, usual;
    if (!sessions_leave(cpu, true, count, &usual)) {
        give_up(t, "%s", ort_text);
        return;
    }
    judging(t, "PLG-011", "%zu %s after each other", count, what);
    if (!judge(t, "PLG-032", sessions_leave(ours, opens, count, &left),
               "one of %zu %s: expected %s, found %s", count, what, opens ? "success" : "an error",
               opens ? t->answer : "a session"))
        return;
    judge(t, "PLG-033 PLG-011",
          leaves_less(ours, opens, count, 4 * usual.memory + count * 100 * 1024, &left),
          "%zu %s after each other leave %zu bytes, sessions on the CPU EP %zu", 2 * count / 3,
          what, left.memory, usual.memory);
    judge(t, "PLG-033", left.files <= usual.files && left.threads <= usual.threads,
          "%zu %s after each other leave %zu open files and %zu threads", 2 * count / 3, what,
          left.files, left.threads);
}

bool equals_cpu(const trial *t, OrtSession *session, const char *reference, uint32_t seed) {
    OrtSession *cpu = NULL;
    ort_values ours, theirs;
    ort_spec spec;
    bool ok;
    memset(&spec, 0, sizeof spec);
    spec.path = reference;
    spec.plain = true;
    t->board->step = step_run;
    ok = ort_run(session, seed, &ours);
    t->board->step = NULL;
    if (!ok && t->ran) t->ran(t, reference, seed, false);
    if (!ok) return false;
    ok = ort_session(&spec, &cpu) && ort_run(cpu, seed, &theirs);
    if (ok) {
        ok = ort_same(&ours, &theirs);
        ort_values_free(&theirs);
    }
    if (cpu) ort->ReleaseSession(cpu);
    ort_values_free(&ours);
    if (t->ran) t->ran(t, reference, seed, ok);
    return ok;
}

bool runs_as(const ort_spec *spec, const char *reference) {
    OrtSession *session = NULL;
    const trial *t = (const trial *)spec->seen_by;
    const bool ok = ort_session(spec, &session) && equals_cpu(t, session, reference, 1) &&
                    equals_cpu(t, session, reference, 2);
    end_session(spec, session);
    return ok;
}

fate fate_of(const ort_spec *spec, const char *reference) {
    OrtSession *session = NULL;
    fate f = FATE_WRONG;
    if (!ort_session(spec, &session))
        return ort_code == ORT_INVALID_GRAPH ? FATE_INVALID_GRAPH : FATE_OTHER_CODE;
    if (equals_cpu((const trial *)spec->seen_by, session, reference, 1)) f = FATE_RIGHT;
    end_session(spec, session);
    return f;
}

/* -------------------------------------------------------------- generating */

bool generate(trial *t, const char *source, const char *out, bool embed) {
    ort_spec spec = spec_of(t, source);
    ort_output to;
    memset(&to, 0, sizeof to);
    to.path = out;
    to.embed = embed;
    return ort_compile_model(&spec, &to);
}

bool generate_by_options(trial *t, const char *source, const char *const *more) {
    const char *config[24] = {"ep.context_enable", "1"};
    ort_spec spec = spec_of(t, source);
    size_t i;
    for (i = 0; more && more[i] && i < 20; i++) config[i + 2] = more[i];
    spec.config = config;
    return session_opens(&spec);
}

bool binary_of(const char *model, const char *folder, char *out, size_t size) {
    ort_contexts c;
    bool found = false;
    size_t i;
    if (ort_read_contexts(model, &c)) {
        for (i = 0; i < c.count && !found; i++) {
            const epctx_epnode *node = &c.list[i];
            if (node->main_context != 1 || node->embed_mode != 0) continue;
            found =
                (size_t)snprintf(out, size, "%s/%.*s", folder, STR(node->ep_cache_context)) < size;
        }
    }
    epctx_model_close(&c.model);
    return found;
}

bool change_attr(const char *from, const char *to, const char *attr, const char *value,
                 size_t size) {
    ort_contexts c;
    epctx_error error;
    epctx_status status = EPCTX_OK;
    epctx_write_opts opts;
    size_t i;
    bool ok = ort_read_contexts(from, &c);
    epctx_error_clear(&error);
    memset(&opts, 0, sizeof opts);
    for (i = 0; ok && i < c.count && status == EPCTX_OK; i++) {
        epctx_str text;
        text.data = value;
        text.size = size;
        status =
            value ? epctx_edit_set_attr_str(&c.model, c.views[i].view, attr, text, &error)
                  : epctx_edit_remove_attr(&c.model, c.views[i].view, epctx_str_of(attr), &error);
    }
    if (ok && status == EPCTX_OK) status = epctx_model_write_file(&c.model, to, &opts, &error);
    if (ok && status != EPCTX_OK) snprintf(ort_text, sizeof ort_text, "%s", error.message);
    epctx_model_close(&c.model);
    return ok && status == EPCTX_OK;
}
