/* report.c - what was found, for people, for programs (JSON) and for build servers (JUnit XML). */
#define _GNU_SOURCE
#include "conformance.h"

static const char *const verdict_names[] = {"not judged", "not applicable", "passed", "FAILED"};

outcome outcome_of(const trial *t, size_t rule_index) {
    outcome out = {NOT_JUDGED, NULL};
    size_t i;
    for (i = 0; i < t->board->count; i++) {
        const finding *f = &t->board->findings[i];
        const bool better = f->verdict > out.verdict ||
                            (f->verdict == out.verdict && !*out.shown->text && *f->text);
        if (f->rule != rule_index || !better) continue;
        out.verdict = f->verdict;
        out.shown = f;
    }
    return out;
}

static void count_verdicts(const trial *t, size_t counts[FAILED + 1]) {
    size_t i;
    memset(counts, 0, (FAILED + 1) * sizeof *counts);
    for (i = 0; i < rule_count; i++) counts[outcome_of(t, i).verdict]++;
}

/* --------------------------------------------------------------------- text */

void report_text(const trial *t, FILE *out) {
    const ep_facts *ep = &t->board->ep;
    size_t counts[FAILED + 1], i;
    fprintf(out, "EP          %s%s%s, version %s\n", *ep->name ? ep->name : "(no device)",
            *ep->vendor ? ", of " : "", ep->vendor, *ep->version ? ep->version : "(none)");
    for (i = 0; i < t->board->fact_count; i++)
        fprintf(out, "%-30s %s\n", t->board->facts[i].name, t->board->facts[i].text);
    for (i = 0; i < rule_count; i++) {
        const outcome o = outcome_of(t, i);
        if (o.verdict == NOT_JUDGED) continue;
        fprintf(out, "%-14s  %s  %s\n", verdict_names[o.verdict], rules[i].id, rules[i].words);
        if (o.shown && *o.shown->text)
            fprintf(out, "                %s: %s\n", o.shown->experiment, o.shown->text);
    }
    count_verdicts(t, counts);
    fprintf(out, "%zu passed, %zu failed, %zu not applicable\n", counts[PASSED], counts[FAILED],
            counts[NOT_APPLICABLE]);
}

void report_rules(FILE *out) {
    size_t i;
    for (i = 0; i < rule_count; i++) fprintf(out, "%s\t%s\n", rules[i].id, rules[i].words);
}

/* --------------------------------------------------------------------- JSON */

/* Whatever an EP put into a message: bytes that are no UTF-8 become "?". */
static void put_escaped(FILE *out, const char *text, bool xml) {
    const unsigned char *c = (const unsigned char *)text;
    for (; *c; c++)
        if (xml && (*c == '<' || *c == '>' || *c == '&' || *c == '"'))
            fprintf(out, "&#%u;", *c);
        else if (!xml && (*c == '"' || *c == '\\'))
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20)
            fputc(' ', out);
        else
            fputc(*c < 0x7f ? *c : '?', out);
}

static void put_json(FILE *out, const char *key, const char *value) {
    fprintf(out, "\"%s\": \"", key);
    put_escaped(out, value, false);
    fputc('"', out);
}

void report_json(const trial *t, FILE *out) {
    const ep_facts *ep = &t->board->ep;
    size_t counts[FAILED + 1], i;
    const char *comma = "";
    count_verdicts(t, counts);
    fputs("{", out);
    put_json(out, "ep", ep->name);
    fputs(", ", out);
    put_json(out, "vendor", ep->vendor);
    fputs(", ", out);
    put_json(out, "version", ep->version);
    fprintf(out, ", \"passed\": %zu, \"failed\": %zu, \"not_applicable\": %zu,\n \"facts\": {",
            counts[PASSED], counts[FAILED], counts[NOT_APPLICABLE]);
    for (i = 0; i < t->board->fact_count; i++) {
        fputs(i ? ", " : "", out);
        put_json(out, t->board->facts[i].name, t->board->facts[i].text);
    }
    fputs("},\n \"rules\": [", out);
    for (i = 0; i < rule_count; i++) {
        static const char *const words[] = {"", "not_applicable", "passed", "failed"};
        const outcome o = outcome_of(t, i);
        if (o.verdict == NOT_JUDGED) continue;
        fprintf(out, "%s\n  {\"rule\": \"%s\", \"verdict\": \"%s\", ", comma, rules[i].id,
                words[o.verdict]);
        put_json(out, "words", rules[i].words);
        fputs(", ", out);
        put_json(out, "experiment", o.shown ? o.shown->experiment : "");
        fputs(", ", out);
        put_json(out, "text", o.shown ? o.shown->text : "");
        fputs("}", out);
        comma = ",";
    }
    fputs("]}\n", out);
}

/* -------------------------------------------------------------------- JUnit */

static void put_case(const trial *t, FILE *out, size_t rule_index) {
    const outcome o = outcome_of(t, rule_index);
    const char *text = o.shown ? o.shown->text : "";
    fprintf(out, "  <testcase classname=\"%.3s\" name=\"%s ", rules[rule_index].id,
            rules[rule_index].id);
    put_escaped(out, rules[rule_index].words, true);
    fputs("\">", out);
    if (o.verdict == FAILED) {
        fputs("<failure message=\"", out);
        put_escaped(out, text, true);
        fputs("\"/>", out);
    } else if (o.verdict == NOT_APPLICABLE) {
        fputs("<skipped message=\"", out);
        put_escaped(out, text, true);
        fputs("\"/>", out);
    } else if (*text) {
        fputs("<system-out>", out);
        put_escaped(out, text, true);
        fputs("</system-out>", out);
    }
    fputs("</testcase>\n", out);
}

void report_junit(const trial *t, FILE *out) {
    size_t counts[FAILED + 1], i;
    count_verdicts(t, counts);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"", out);
    put_escaped(out, *t->board->ep.name ? t->board->ep.name : t->wanted.library, true);
    fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n",
            counts[PASSED] + counts[FAILED] + counts[NOT_APPLICABLE], counts[FAILED],
            counts[NOT_APPLICABLE]);
    for (i = 0; i < rule_count; i++)
        if (outcome_of(t, i).verdict != NOT_JUDGED) put_case(t, out, i);
    fputs("</testsuite>\n", out);
}
