/* info_binary.h - files that are context binaries: what `info` and `ls` tell of them. */
#ifndef EPCTX_CLI_INFO_BINARY_H
#define EPCTX_CLI_INFO_BINARY_H

#include <stdbool.h>

#include "binary/binary.h"
#include "core/json_writer.h"

/* Where `info` prints: of several files, each is an element of "files". */
typedef struct info_out {
    bool json, several;
    binary_asker asker;
    json_writer *w; /* when it has begun */
} info_out;

/* Around what is told of a file, with --json. */
json_writer *info_begin(info_out *out);
void info_end(info_out *out);
/* Behind the last one; `ok`: also when there was none. */
void info_close(info_out *out, bool ok);

/* The exit code, or -1: the file cannot be read, or is no context binary. */
int info_binary(const char *file, info_out *out);

/* "CHIP, v79, 8388608 bytes of VTCM", or nothing: it does not tell. */
void info_put_target(const binary_facts *facts);
bool info_has_target(const binary_facts *facts);
/* The members "architecture", "chips" and "vtcm_size". */
void info_json_target(json_writer *w, const binary_facts *facts);
/* null: not told */
void info_json_known(json_writer *w, const char *key, epctx_str text);

/* The kernels that a binary of the reference NPU needs, as the firmware of a device names them for
 * EPCTX_NPU_SELECT. */
typedef struct info_kernels {
    epctx_str *names; /* "CONV", "GATHER_ND", in the order of their first use */
    size_t count;
    epctx_str option; /* for the compiler of the firmware: not quoted */
} info_kernels;
/* In the arena. False: they cannot be told, for want of memory, too. */
bool info_read_kernels(epctx_span binary, epctx_arena *arena, info_kernels *out);
/* The members "kernels" and "kernel_option"; `kernels` NULL: they are null. */
void info_json_kernels(json_writer *w, const info_kernels *kernels);

/* The files that a context binary refers to, as those of a model. False: as above. EPCTX_OK with
 * `*out` NULL: it needs none. */
bool info_binary_files(const char *file, const binary_asker *asker, epctx_arena *arena,
                       epctx_dependency **out, size_t *count, epctx_status *status,
                       epctx_error *error);

#endif
