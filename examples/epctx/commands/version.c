/* epctx --version: with --json also how the tool was built, and which ONNX Runtime it takes. */
#include "ort/anyep.h"

#include <string.h>

#if defined(EPCTX_CLI_NO_PACKAGE)
#define HAS_PACKAGE false
#else
#define HAS_PACKAGE true
#endif

/* What a command with --ep and without --ort would open. */
static int json_ort(json_writer *w) {
    int code = CLI_OK;
#if defined(EPCTX_CLI_NO_ORT)
    json_null(w, "onnxruntime");
#else
    anyep_settings set;
    epctx_arena arena;
    size_t i;
    memset(&set, 0, sizeof set);
    epctx_arena_init(&arena, NULL);
    set.arena = &arena;
    if (!anyep_which_ort(&set)) code = CLI_FAILED;
    json_object(w, "onnxruntime", JSON_INLINE);
    json_text(w, "library", set.ort);
    json_text(w, "found_by", set.ort_from);
    json_array(w, "not_taken", JSON_INLINE);
    for (i = 0; i < set.passed_count; i++) json_text(w, NULL, set.passed[i]);
    json_end(w);
    json_end(w);
    epctx_arena_free(&arena);
#endif
    return code;
}

int cli_version(bool json) {
    json_writer *w;
    int code;
    if (!json) {
        printf("epctx %s\n", EPCTX_VERSION_STRING);
        return CLI_OK;
    }
    cli_json_wanted("version", true);
    w = cli_json_begin(stdout);
    json_text(w, "version", EPCTX_VERSION_STRING);
    json_bool(w, "package", HAS_PACKAGE);
    code = json_ort(w);
    cli_json_end();
    return code;
}
