/* What the system tells of the machine, without an EP: processor, accelerators and their drivers.
 * Linux tells; elsewhere it is the kind of processor alone. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#include "compile.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The first line of a file, without its end; "": there is none. */
static void read_line(const char *folder, const char *name, char *out, size_t size) {
    char path[PATH_MAX];
    FILE *in;
    out[0] = '\0';
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) return;
    in = fopen(path, "r");
    if (in != NULL && fgets(out, (int)size, in) != NULL) out[strcspn(out, "\n")] = '\0';
    if (in != NULL) fclose(in);
}

/* What decides which code a processor can run. */
static bool is_of_processor(const char *line) {
    static const char *const keys[] = {"vendor_id",       "cpu family", "model",    "flags",
                                       "CPU implementer", "CPU part",   "Features", "isa"};
    const size_t size = strcspn(line, "\t:");
    size_t i;
    for (i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strlen(keys[i]) == size && memcmp(keys[i], line, size) == 0) return true;
    return false;
}

/* Of the first processor, all that decides as a hash. */
static void put_processor(epctx_text *text) {
    char line[8192], name[128] = "";
    FILE *in = fopen("/proc/cpuinfo", "r");
    uint64_t hash = 0;
    while (in != NULL && fgets(line, sizeof line, in) != NULL && line[0] != '\n') {
        if (is_of_processor(line)) hash = epctx_hash(line, strlen(line), hash);
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL)
            snprintf(name, sizeof name, " %s", strchr(line, ':') + 2);
    }
    if (in != NULL) fclose(in);
    name[strcspn(name, "\n")] = '\0';
    if (hash != 0) epctx_text_put_format(text, "%s %x", name, hash);
}

static int is_device(const struct dirent *entry) {
    return strncmp(entry->d_name, "accel", 5) == 0 || strncmp(entry->d_name, "renderD", 7) == 0;
}

/* A driver that is part of the kernel has the kernel's version. */
static void put_device(epctx_text *text, const char *folder, const char *release) {
    char vendor[32], device[32], link[PATH_MAX], path[PATH_MAX], version[64];
    const char *driver;
    ssize_t size;
    read_line(folder, "device/vendor", vendor, sizeof vendor);
    read_line(folder, "device/device", device, sizeof device);
    if ((size_t)snprintf(path, sizeof path, "%s/device/driver", folder) >= sizeof path) return;
    size = readlink(path, link, sizeof link - 1);
    link[size > 0 ? size : 0] = '\0';
    driver = strrchr(link, '/') != NULL ? strrchr(link, '/') + 1 : link;
    read_line(path, "module/version", version, sizeof version);
    epctx_text_put_format(text, "; %s:%s %s %s", vendor, device, driver,
                          version[0] != '\0' ? version : release);
}

static void put_devices(epctx_text *text, const char *class_folder, const char *release) {
    struct dirent **entries = NULL;
    const int count = scandir(class_folder, &entries, is_device, alphasort);
    char folder[PATH_MAX];
    int i;
    for (i = 0; i < count; i++) {
        if ((size_t)snprintf(folder, sizeof folder, "%s/%s", class_folder, entries[i]->d_name) <
            sizeof folder)
            put_device(text, folder, release);
        free(entries[i]);
    }
    free(entries);
}

void compile_machine(char *out, size_t size) {
    struct utsname name;
    epctx_text text = epctx_text_of(out, size);
    const bool known = uname(&name) == 0;
    epctx_text_put_format(&text, "%s", known ? name.machine : "unknown");
    put_processor(&text);
    put_devices(&text, "/sys/class/accel", known ? name.release : "");
    put_devices(&text, "/sys/class/drm", known ? name.release : "");
    if (!epctx_str_is_utf8(epctx_text_str(&text))) snprintf(out, size, "unknown");
}
