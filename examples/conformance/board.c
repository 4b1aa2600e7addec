/* board.c - what an experiment says of the EP: verdicts on rules, remarks, facts. */
#define _GNU_SOURCE
#include "conformance.h"

#include <stdarg.h>

const char step_load[] = "loading the library";
const char step_register[] = "registration";
const char step_session[] = "ONNX Runtime created the session";
const char step_compile[] = "ONNX Runtime compiled the model";
const char step_run[] = "ONNX Runtime ran the session";
const char several_sessions[] = "several sessions at a time";

/* The command line, or an experiment, names a rule that there is not: nothing to go on with. */
static size_t rule_index(const char *id, size_t length) {
    size_t i;
    for (i = 0; i < rule_count; i++)
        if (strlen(rules[i].id) == length && memcmp(rules[i].id, id, length) == 0) return i;
    fprintf(stderr, "epctx-conformance: no rule '%.*s'\n", (int)length, id);
    exit(2);
}

bool next_id(const char **list, size_t *index) {
    size_t length;
    *list += strspn(*list, " ");
    length = strcspn(*list, " ");
    if (length == 0) return false;
    *index = rule_index(*list, length);
    *list += length;
    return true;
}

void put_finding(trial *t, size_t index, verdict v, const char *text) {
    finding *f = &t->board->findings[t->board->count];
    const char *lacks = v == FAILED && t->failed ? t->failed(t, rules[index].id, text) : "";
    if (v == FAILED && t->board->probing) t->board->blocker = &rules[index];
    if (t->board->count == MAX_FINDINGS) return;
    f->rule = index;
    f->experiment = t->board->experiment;
    f->model = t->board->model;
    f->verdict = v;
    f->lacks = lacks;
    f->blocked = v == NOT_JUDGED && t->board->blocked;
    snprintf(f->text, sizeof f->text, "%s", text);
    t->board->count++;
}

bool is_platform(const char *text) {
    static const char *const said[] = {"cannot open shared object file", "version `GLIBC",
                                       "version `CXXABI", "supported on this platform",
                                       /* QNN's error 1000: a device would do it */
                                       "not supported by implementation"};
    size_t i;
    for (i = 0; i < sizeof said / sizeof said[0]; i++)
        if (strstr(text, said[i])) return true;
    return false;
}

/* One line, as long as a message of ORT's may be. */
static void put_text(trial *t, char text[], size_t size, const char *format, va_list args) {
    size_t i;
    snprintf(t->answer, sizeof t->answer, "%d: %s", ort_code, ort_text);
    if (ort_code == 0) snprintf(t->answer, sizeof t->answer, "%s", ort_text);
    vsnprintf(text, size, format, args);
    for (i = 0; text[i]; i++)
        if (text[i] == '\n') text[i] = ' ';
}

static void put_findings(trial *t, const char *ids, verdict v, const char *format, va_list args) {
    char text[sizeof t->answer + 600];
    size_t index;
    put_text(t, text, sizeof text, format, args);
    while (next_id(&ids, &index)) put_finding(t, index, v, text);
}

/* One event is one failure, whichever rules it would break. */
static void put_failure(trial *t, const char *ids, const char *format, va_list args) {
    char text[sizeof t->answer + 600], same[60];
    size_t index;
    bool platform;
    put_text(t, text, sizeof text, format, args);
    platform =
        is_platform(text) || (t->log_from < strlen(ort_log) && is_platform(ort_log + t->log_from));
    t->board->platform |= platform;
    if (!next_id(&ids, &index)) return;
    put_finding(t, index, platform ? NOT_JUDGED : FAILED, text);
    snprintf(same, sizeof same, "what is reported at %s is in the way", rules[index].id);
    while (next_id(&ids, &index)) put_finding(t, index, NOT_JUDGED, platform ? text : same);
}

void judging(trial *t, const char *rule_id, const char *format, ...) {
    va_list args;
    /* What an EP does not say in its status it may have logged. */
    if (strlen(ort_log) > sizeof ort_log / 2) ort_log_clear();
    t->log_from = strlen(ort_log);
    snprintf(t->board->judging, sizeof t->board->judging, "%s", rule_id);
    va_start(args, format);
    vsnprintf(t->board->doing, sizeof t->board->doing, format, args);
    va_end(args);
}

void holds(trial *t, const char *ids) {
    size_t index;
    while (next_id(&ids, &index)) put_finding(t, index, PASSED, "");
}

bool judge(trial *t, const char *ids, bool ok, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (ok)
        holds(t, ids);
    else
        put_failure(t, ids, format, args);
    va_end(args);
    return ok;
}

void remark(trial *t, const char *ids, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_findings(t, ids, PASSED, format, args);
    va_end(args);
}

void does_not_apply(trial *t, const char *ids, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_findings(t, ids, NOT_APPLICABLE, format, args);
    va_end(args);
}

void cannot_judge(trial *t, const char *ids, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_findings(t, ids, NOT_JUDGED, format, args);
    va_end(args);
}

bool give_up(trial *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(t->board->gave_up, sizeof t->board->gave_up, format, args);
    va_end(args);
    return false;
}

void tell_fact(trial *t, const char *name, const char *format, ...) {
    fact *f = &t->board->facts[t->board->fact_count];
    va_list args;
    if (t->board->fact_count == MAX_FACTS) return;
    t->board->fact_count++;
    snprintf(f->name, sizeof f->name, "%s", name);
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

static bool is_judged(trial *t, size_t index, size_t from) {
    size_t i;
    for (i = from; i < t->board->count; i++)
        if (t->board->findings[i].rule == index) return true;
    return false;
}

void put_rest(trial *t, const char *ids, size_t from, verdict v, const char *why) {
    size_t index;
    while (next_id(&ids, &index))
        if (!is_judged(t, index, from)) put_finding(t, index, v, why);
}
