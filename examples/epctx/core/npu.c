/* The reference NPU behind the commands that compile and run. */
#include "cli.h"
#include "epctx_npu.h"

#include <string.h>

static epctx_npu npu; /* the backend borrows it; one is enough for one command */
static epctx_npu_opts settings;

void cli_npu_opts(const epctx_npu_opts *opts) {
    settings = *opts;
}

/* Names the architectures that there are. */
static epctx_status unknown(const char *arch, epctx_error *error) {
    char names[160] = "";
    size_t count, i;
    const epctx_npu_arch *all = epctx_npu_arch_list(&count);
    for (i = 0; i < count; i++) {
        if (!all[i].runnable || strlen(names) + strlen(all[i].name) + 2 > sizeof names) continue;
        strcat(strcat(names, " "), all[i].name);
    }
    epctx_error_clear(error);
    return epctx_fail(error, EPCTX_ERR_ARG, "unknown hardware architecture '%s'; available:%s",
                      arch, names);
}

epctx_status cli_backend(const char *arch, epctx_backend *backend, epctx_error *error) {
    epctx_npu_opts opts = settings;
    opts.architecture = arch;
    opts.check_weights = EPCTX_NPU_CHECK_ALWAYS; /* who comes here with a file suspects it */
    if (arch != NULL && epctx_npu_arch_find(epctx_str_of(arch)) == NULL)
        return unknown(arch, error);
    return epctx_npu_init(&npu, &opts, backend, error);
}

bool cli_own_backend(epctx_str source, epctx_backend *backend) {
    epctx_error ignored;
    return cli_backend(NULL, backend, &ignored) == EPCTX_OK &&
           epctx_profile_of(source) == epctx_profile_of(epctx_str_of(backend->source));
}

epctx_status cli_load_binary(epctx_span binary, epctx_arena *arena,
                             struct epctx_npu_context *context, size_t *size, epctx_error *error) {
    size_t needed = 0;
    epctx_status status = epctx_npu_load_size(binary, &needed, error);
    void *memory = status == EPCTX_OK ? epctx_arena_alloc(arena, needed) : NULL;
    if (size != NULL) *size = needed;
    if (status == EPCTX_OK && memory == NULL)
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for %u bytes", (uint64_t)needed);
    return status == EPCTX_OK ? epctx_npu_load(context, binary, memory, needed, error) : status;
}

void cli_weight_bytes(uint64_t *stored, uint64_t *shared) {
    *stored = npu.stats.weight_size;
    *shared = npu.stats.weight_saved;
}
