/* What goes wrong: for people on standard error, and with --json as data. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* The version of all that --json prints: examples/epctx/schema. Members may be added to an object
 * without a new number; what is there keeps its name and meaning. */
enum { FORMAT_VERSION = 1 };

/* The failures so far, for "failures". */
typedef struct failure {
    struct failure *next;
    const char *status; /* NULL: none that the library knows */
    char *message;
    const char *cure; /* NULL: not known */
    char file[256], node[128], attribute[64];
    uint64_t offset;
} failure;

static struct {
    const char *command;
    failure *first, *last; /* from malloc: for the time of the tool */
    bool wanted, begun;
    FILE *out; /* NULL: standard output */
    json_writer writer;
} json;

/* -- for people -- */

static void say(const char *text) {
    const char *end;
    cli_progress_hide();
    for (; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        const epctx_str line = {text, (size_t)(end - text)};
        cli_put(stderr, line);
        fputc('\n', stderr);
    }
    cli_put(stderr, epctx_str_of(text));
}

void cli_say(const char *format, ...) {
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    say(text);
}

/* -- and for programs -- */

/* Without memory a failure is not in "failures"; standard error has it. */
static failure *add_failure(const char *status, const char *message, const char *cure) {
    const size_t size = strlen(message) + 1, more = cure != NULL ? strlen(cure) + 1 : 0;
    failure *made = json.wanted ? (failure *)calloc(1, sizeof *made) : NULL;
    if (made != NULL) made->message = (char *)malloc(size + more);
    if (made == NULL || made->message == NULL) {
        free(made);
        return NULL;
    }
    memcpy(made->message, message, size);
    if (cure != NULL) {
        memcpy(made->message + size, cure, more);
        made->cure = made->message + size;
    }
    made->status = status;
    made->offset = EPCTX_NO_OFFSET;
    if (json.last != NULL)
        json.last->next = made;
    else
        json.first = made;
    json.last = made;
    return made;
}

static int fail(const epctx_error *error, const char *cure) {
    const char *message = error->message;
    failure *made;
    if (message[0] == '\0') message = epctx_status_text(error->status);
    cli_say(cure != NULL ? "epctx: %s (%s)\n" : "epctx: %s\n", message, cure);
    made = add_failure(epctx_status_name(error->status), message, cure);
    if (made == NULL) return CLI_FAILED;
    memcpy(made->file, error->file, sizeof made->file);
    memcpy(made->node, error->node, sizeof made->node);
    memcpy(made->attribute, error->attribute, sizeof made->attribute);
    made->offset = error->offset;
    return CLI_FAILED;
}

epctx_status cli_no_memory(epctx_error *error) {
    return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
}

int cli_fail(const epctx_error *error) {
    return fail(error, NULL);
}

int cli_fail_cure(const epctx_error *error, const char *format, ...) {
    char cure[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(cure, sizeof cure, format, args);
    va_end(args);
    return fail(error, cure);
}

/* What follows the first line, how the command is used, is for people. */
static int fail_text(const char *status, const char *format, va_list args, int code) {
    char text[8192];
    vsnprintf(text, sizeof text, format, args);
    say("epctx: ");
    say(text);
    fputc('\n', stderr);
    text[strcspn(text, "\n")] = '\0';
    (void)add_failure(status, text, NULL);
    return code;
}

int cli_fail_text(const char *format, ...) {
    va_list args;
    int code;
    va_start(args, format);
    code = fail_text(NULL, format, args, CLI_FAILED);
    va_end(args);
    return code;
}

int cli_misuse(const char *format, ...) {
    va_list args;
    int code;
    va_start(args, format);
    code = fail_text("usage", format, args, CLI_USAGE);
    va_end(args);
    return code;
}

void cli_fail_file(const char *file) {
    epctx_error error;
    if (json.last == NULL || json.last->file[0] != '\0') return;
    epctx_error_clear(&error);
    epctx_fail(&error, EPCTX_ERR_IO, "%s", json.last->message);
    epctx_blame(&error, file, NULL, NULL);
    memcpy(json.last->file, error.file, sizeof json.last->file);
}

void cli_fail_with_cure(const char *cure) {
    cli_say("epctx: %s\n", cure);
    if (json.last != NULL && json.last->cure == NULL) json.last->cure = strdup(cure);
}

bool cli_may_stand(const char *what, const char *text) {
    if (text == NULL || epctx_str_is_utf8(epctx_str_of(text))) return true;
    cli_misuse("%s '%s': the text is not UTF-8, as ONNX requires", what, text);
    return false;
}

int cli_fail_stale(const epctx_error *error, const char *option) {
    if (error->status != EPCTX_ERR_VERSION) return cli_fail(error);
    return cli_fail_cure(error, "compile the model again; %s accepts the binary", option);
}

int cli_fail_graph_key(const epctx_error *error, const char *more) {
    epctx_error short_one = *error;
    char *cure = strstr(short_one.message, "; set one_graph");
    if (cure == NULL) return more[0] != '\0' ? cli_fail_cure(error, "%s", more) : cli_fail(error);
    *cure = '\0';
    return cli_fail_cure(&short_one, "use --one-graph if it does not%s%s",
                         more[0] != '\0' ? "; " : "", more);
}

void cli_warn_stale(const epctx_model *model, const char *context_path) {
    epctx_error error;
    if (epctx_model_check_binary(model, context_path, &error) != EPCTX_ERR_VERSION) return;
    cli_say("epctx: warning: %s; compile the model again\n", error.message);
}

/* -- JSON -- */

void cli_json_wanted(const char *command, bool wanted) {
    json.command = command;
    json.wanted = wanted;
}

void cli_json_to(FILE *out) {
    json.out = out;
}

void cli_json_head(json_writer *w) {
    json_int(w, "format_version", FORMAT_VERSION);
    json_text(w, "command", json.command);
}

json_writer *cli_json_begin(FILE *out) {
    json_writer *w = &json.writer;
    json.begun = true;
    json_to_file(w, out);
    json_object(w, NULL, JSON_LINES);
    cli_json_head(w);
    return w;
}

/* What is not known is null. */
static void put_known(json_writer *w, const char *key, const char *text) {
    json_text(w, key, text != NULL && text[0] != '\0' ? text : NULL);
}

static void put_failure(json_writer *w, const failure *one) {
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "message", one->message);
    put_known(w, "status", one->status);
    put_known(w, "file", one->file);
    put_known(w, "node", one->node);
    put_known(w, "attribute", one->attribute);
    if (one->offset != EPCTX_NO_OFFSET)
        json_uint(w, "offset", one->offset);
    else
        json_null(w, "offset");
    put_known(w, "cure", one->cure);
    json_end(w);
}

void cli_json_end(void) {
    json_writer *w = &json.writer;
    const failure *one = json.first;
    if (one != NULL) json_array(w, "failures", JSON_LINES);
    for (; one != NULL; one = one->next) put_failure(w, one);
    if (json.first != NULL) json_end(w);
    json_end(w);
    fputc('\n', w->file);
}

void cli_json_failed(int code) {
    json_writer *w;
    if (!json.wanted || json.begun || json.first == NULL) return;
    w = cli_json_begin(json.out != NULL ? json.out : stdout);
    json_int(w, "exit_code", code);
    cli_json_end();
}
