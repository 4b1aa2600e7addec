/* findings.h - what lint finds, in any number of files: chosen, counted and printed.
 *
 *     findings out;
 *     findings_init(&out);
 *     ... its options, findings_choose, findings_ignore ...
 *     findings_begin(&out);
 *     for each file: findings_file(&out, file), findings_add(&out, ...)... and
 *                    findings_file_end(&out)
 *     code = findings_end(&out);
 *     findings_free(&out);
 */
#ifndef EPCTX_CLI_FINDINGS_H
#define EPCTX_CLI_FINDINGS_H

#include "cure.h"
#include "ops/beside.h"

typedef enum findings_format {
    FINDINGS_TEXT,
    FINDINGS_JSON,
    FINDINGS_SARIF, /* 2.1.0 */
    FINDINGS_GITHUB /* commands of a GitHub workflow, which become annotations */
} findings_format;

/* A line of a file of --ignore. */
typedef struct findings_ignored {
    int rule;
    epctx_str pattern, reason;
    unsigned line;
    bool used;
} findings_ignored;

typedef struct findings {
    findings_format format;
    bool hints, strict;
    bool several; /* several files, or folders: JSON has a list of them */
    /* private */
    bool colour, chosen;
    bool wanted[RULE_COUNT];
    const char *ignore_file;
    epctx_mapping ignore_text;
    findings_ignored *ignored;
    size_t ignored_count;
    epctx_arena arena;
    epctx_buffer text;
    const char *file; /* that is being judged */
    cures cures;      /* of it; its opts may be set after findings_file */
    beside beside;    /* files among which missing ones are looked for */
    uint64_t files;
    uint64_t counts[EPCTX_SEVERITY_COUNT], suppressed; /* of the file */
    uint64_t totals[EPCTX_SEVERITY_COUNT], total_suppressed;
    struct findings_verdict *verdict; /* of the EP, on this file; NULL: none */
    json_writer *json;                /* the object that is being printed */
    json_writer sarif;
} findings;

/* A finding of any rule. */
typedef struct finding {
    int rule;
    epctx_str node, graph; /* may be empty */
    const char *attribute; /* may be "" */
    const char *message;
    unsigned line; /* of a text file; 0: none */
    /* "ort 1.31": the first version for which it is true, and the first for which it is not; NULL
     * or "": none is known. */
    const char *since, *until;
} finding;

/* What the EP of --ep says of a file. */
typedef struct findings_verdict {
    const char *ep, *ep_version, *ort_version;
    const char *word;  /* "loads", "refuses" or "needs device" */
    const char *words; /* the EP's own; "": none */
} findings_verdict;

void findings_init(findings *out);
void findings_free(findings *out);
/* Only these rules: their ids or names with commas between. Prints what is wrong otherwise. */
bool findings_choose(findings *out, const char *rules);
/* Reads the file of --ignore; prints what is wrong otherwise. */
bool findings_ignore(findings *out, const char *file);

void findings_begin(findings *out);
void findings_file(findings *out, const char *file);
void findings_add(findings *out, const finding *what);
/* One of the file as a whole. */
void findings_say(findings *out, int rule, const char *message);
/* For the file's end; the texts are copied. */
void findings_judged(findings *out, const findings_verdict *verdict);
void findings_file_end(findings *out);
/* A file of which this finding is all that is said. */
void findings_alone(findings *out, const char *file, int rule, const char *message);
/* The totals; returns the exit code. */
int findings_end(findings *out);

/* One finding as an element of an array. `text` is for the command that cures it. */
void findings_put(json_writer *w, const finding *what, cures *list, epctx_buffer *text);

#endif
