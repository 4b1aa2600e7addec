/* registration.c - the library as a file, its registration, what it tells of itself. */
#define _GNU_SOURCE
#include "conformance.h"

#include <ctype.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------ exports */

static void exports(trial *t) {
    static const char *const required[] = {"CreateEpFactories", "ReleaseEpFactory"};
    void *library;
    size_t i;
    judging(t, "PLG-001", "dlopen of the library");
    library = load_ep(t);
    if (!judge(t, "PLG-001", library != NULL, "cannot be loaded: %s", library ? "" : dlerror()))
        return;
    for (i = 0; i < 2; i++)
        judge(t, "PLG-001", dlsym(library, required[i]) != NULL, "%s is not exported", required[i]);
    judge(t, "PLG-001", !dlsym(library, "GetProvider"),
          "GetProvider is exported: ONNX Runtime takes the library for one of its own format");
}

/* ------------------------------------------------------------- registration */

/* Whether the library is in this process' memory. */
static bool is_mapped(trial *t) {
    FILE *in = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128], real[PATH_MAX];
    bool found = false;
    if (!realpath(t->wanted.library, real)) real[0] = '\0'; /* maps name no links */
    while (*real && in && fgets(line, sizeof line, in)) found |= strstr(line, real) != NULL;
    if (in) fclose(in);
    return found;
}

/* Threads that are there now, and were not `before`. What has ended is listed for a moment more. */
static size_t threads_left(size_t before) {
    const double start = seconds_now();
    size_t count = threads_now();
    while (count > before && seconds_now() - start < 2) {
        usleep(2000); /* and a thread whose code is gone crashes */
        count = threads_now();
    }
    return count > before ? count - before : 0;
}

/* C++ can do that to a library, too: its "unique" symbols keep it. */
static void still_mapped(trial *t) {
    remark(t, "PLG-048",
           "after unregistration the library is still in the process: something keeps it, "
           "a static of C++ (-fno-gnu-unique) or a second dlopen");
}

static size_t count_devices(void) {
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0;
    return ort_ok(ort->GetEpDevices(ort_env, &devices, &count)) ? count : 0;
}

/* Applications of an EP that takes the name of its registration have to know the right one: models
 * name the EP by it. */
static void judge_name(trial *t, const char *registration, const char *name, const char *first) {
    if (strcmp(name, registration) == 0 && strcmp(name, first) != 0) {
        remark(t, "PLG-042",
               "the EP takes the registration name for its own, and models name it by that: "
               "applications must all give the same (here LIBRARY:NAME)");
        return;
    }
    judge(t, "PLG-042", strcmp(name, first) == 0,
          "under the registration name '%.40s' the EP is called '%s', under another one '%s'",
          registration, name, first);
}

static bool register_as(trial *t, const char *registration, const char *first_name) {
    const size_t before = count_devices();
    const OrtEpDevice *device;
    judging(t, "PLG-048", "registration as '%.40s' after unregistration", registration);
    if (!judge(t, "PLG-041 PLG-044", register_ep(t, registration),
               "registration as '%.40s' after unregistration: expected success, found %s",
               registration, t->answer))
        return false;
    judging(t, "PLG-050", "GetEpDevices after registration");
    device = find_device(t);
    if (device) judge_name(t, registration, ort->EpDevice_EpName(device), first_name);
    judging(t, "PLG-048", "unregistration of '%.40s'", registration);
    if (!judge(t, "PLG-048", unregister_ep(registration), "expected success, found %s", t->answer))
        return false;
    return judge(t, "PLG-046 PLG-048", count_devices() == before,
                 "%zu devices are listed after unregistration, %zu before registration",
                 count_devices(), before);
}

static void registration(trial *t) {
    char long_name[201];
    const OrtEpDevice *device;
    char name[NAME];
    size_t before, left;
    if (!ort_open(false)) {
        give_up(t, "%s", ort_text);
        return;
    }
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    before = threads_now();
    judging(t, "PLG-041", "registration");
    if (!judge(t, "PLG-041 PLG-044", register_ep(t, "plain"), "expected success, found %s",
               t->answer)) {
        if (strstr(ort_text, "version")) judge(t, "PLG-030", false, "%s", ort_text);
        return;
    }
    device = find_device(t);
    snprintf(name, sizeof name, "%s", device ? ort->EpDevice_EpName(device) : "");
    if (device)
        holds(t, "PLG-045 PLG-046 PLG-050");
    else
        remark(t, "PLG-045 PLG-046 PLG-050", "%s", ort_text);
    judging(t, "PLG-048", "unregistration, where a thread whose code is gone crashes, too");
    if (!judge(t, "PLG-048", unregister_ep("plain"), "expected success, found %s", t->answer))
        return;
    judging(t, "PLG-049", "the time after unregistration");
    left = threads_left(before);
    if (!judge(t, "PLG-049", left == 0,
               "%zu thread%s more after unregistration than before registration: what the library "
               "starts has to end in ReleaseEpFactory",
               left, left == 1 ? "" : "s"))
        return;
    if (is_mapped(t)) still_mapped(t);
    if (register_as(t, "with.dots.in-it", name) && register_as(t, long_name, name))
        register_as(t, "plain", name);
}

/* How a process ends that does `what` with the library. */
static int end_of(trial *t, int what) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        ort_spec spec;
        if (!ort_open(false) || !register_ep(t, registration_of(t, "end"))) _exit(77);
        if (t->board->ep.device) {
            spec = spec_of(t, in_folder(t, "src/m.onnx"));
            session_opens(&spec);
        }
        if (what == 1) ort->ReleaseEnv(ort_env);
        exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void ends(trial *t) {
    int code;
    make_model(t, MODEL_CHAIN, in_folder(t, "src/m.onnx"));
    judging(t, "PLG-003", "ReleaseEnv with the library registered");
    code = end_of(t, 1);
    judge(t, "PLG-003", code == 0,
          "ReleaseEnv with the library registered: expected exit code 0, "
          "found %d%s",
          code, code > 128 ? " (a signal)" : "");
    code = end_of(t, 0);
    judge(t, "PLG-003 PLG-049", code == 0,
          "end of a process that does not unregister the library: expected exit code 0, found %d%s",
          code, code > 128 ? " (a signal)" : "");
}

/* A folder with blanks and other letters, under another name. */
static void other_place(trial *t) {
    const char *library = t->wanted.library;
    const char *copy;
    make_folder("with blanks and \xc3\xa9");
    copy = in_folder(t, "with blanks and \xc3\xa9/a copy.so");
    if (!copy_file(library, copy) || !ort_open(false)) {
        give_up(t, "the library cannot be copied");
        return;
    }
    t->wanted.library = copy;
    judging(t, "PLG-042", "registration from '%s'", copy);
    /* A library that needs others beside it cannot be copied alone. */
    if (!register_ep(t, registration_of(t, "copy")) && is_platform(ort_text)) {
        does_not_apply(t, "PLG-041", "a copy of the library alone cannot be loaded: %s", ort_text);
        return;
    }
    judge(t, "PLG-041", ort_code == 0 && find_device(t) != NULL,
          "from a folder with blanks and other letters than ASCII: %s", ort_text);
}

/* ----------------------------------------------------------------- identity */

static bool is_utf8(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    while (*c) {
        const int more = *c < 0x80       ? 0
                         : *c >> 5 == 6  ? 1
                         : *c >> 4 == 14 ? 2
                         : *c >> 3 == 30 ? 3
                                         : -1;
        int i;
        if (more < 0) return false;
        for (i = 1; i <= more; i++)
            if (c[i] >> 6 != 2) return false;
        c += more + 1;
    }
    return true;
}

/* A number without a needless 0. */
static const char *skip_number(const char *c) {
    if (!isdigit((unsigned char)*c) || (c[0] == '0' && isdigit((unsigned char)c[1]))) return NULL;
    while (isdigit((unsigned char)*c)) c++;
    return c;
}

/* Semantic Versioning 2.0: three numbers, then -prerelease and +build. */
static bool is_semver(const char *text) {
    int i;
    for (i = 0; i < 3; i++) {
        text = skip_number(text);
        if (!text || (i < 2 && *text++ != '.')) return false;
    }
    if (*text && ((*text != '-' && *text != '+') || !text[1])) return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("-+.", *text)) return false;
    return true;
}

static void identity(trial *t) {
    const OrtEpDevice *device;
    const OrtEpDevice *const *devices = NULL;
    const char *name, *vendor, *version, *tail = "ExecutionProvider";
    size_t count = 0, i, own = 0, factories = 0;
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    device = find_device(t);
    name = ort->EpDevice_EpName(device);
    vendor = ort->EpDevice_EpVendor(device);
    version = ort->GetKeyValue(ort->EpDevice_EpMetadata(device), "version");
    judge(t, "PLG-007", *name && is_utf8(name), "the EP's name is empty or no UTF-8");
    if (strlen(name) < strlen(tail) || strcmp(name + strlen(name) - strlen(tail), tail) != 0)
        remark(t, "PLG-007", "'%s' does not end in ExecutionProvider", name);
    judge(t, "PLG-028", vendor && *vendor && is_utf8(vendor), "the vendor is empty or no UTF-8");
    judge(t, "PLG-030", version && is_semver(version),
          "version '%s' is not as in Semantic Versioning 2.0 (1.2.3)", version ? version : "");
    if (!ort_ok(ort->GetEpDevices(ort_env, &devices, &count))) return;
    for (i = 0; i < count; i++) {
        if (!ort_is_of(devices[i], t->wanted.library)) continue;
        own++;
        factories += strcmp(ort->EpDevice_EpName(devices[i]), name) != 0;
        judge(t, "PLG-004 PLG-031", ort->EpDevice_Device(devices[i]) != NULL,
              "a device without hardware");
    }
    if (own > 1)
        holds(t, "PLG-047 PLG-060");
    else
        does_not_apply(t, "PLG-047 PLG-060", "the EP lists one device here");
    if (factories)
        holds(t, "PLG-062 PLG-064");
    else
        does_not_apply(t, "PLG-062 PLG-064", "the library has one EP");
    does_not_apply(t, "EPC-088", "one EP is tried, beside the CPU's");
}

const experiment registration_experiments[] = {
    {"exports", exports, ONLY_LOADS, "PLG-001"},
    {"registration", registration, 0,
     "PLG-030 PLG-041 PLG-042 PLG-044 PLG-045 PLG-046 PLG-048 PLG-049 PLG-050"},
    {NULL, NULL, 0, NULL},
};

/* After the probe, which opens the EP for the first time. */
const experiment identity_experiments[] = {
    {"identity", identity, NEEDS_DEVICE,
     "EPC-088 PLG-004 PLG-007 PLG-028 PLG-030 PLG-031 PLG-047 PLG-060 PLG-062 PLG-064"},
    {"another place", other_place, NEEDS_DEVICE, "PLG-041"},
    {"the end of a process", ends, NEEDS_DEVICE, "PLG-003 PLG-049"},
    {NULL, NULL, 0, NULL},
};
