/* report.c - what was found, for people, for programs (JSON) and for build servers (JUnit XML). */
#define _GNU_SOURCE
#include "conformance.h"

static const char *const verdict_names[] = {"", "not applicable", "passed", "not judged", "FAILED"};
static const char *const verdict_words[] = {"", "not_applicable", "passed", "not_judged", "failed"};

/* The worst that was found counts, and of that the first with words. */
static void add_finding(outcome *out, const finding *f) {
    const bool more =
        f->verdict > out->verdict || (f->verdict == out->verdict && !*out->shown->text && *f->text);
    if (!more) return;
    out->verdict = f->verdict;
    out->shown = f;
}

outcome outcome_of(const trial *t, size_t rule_index) {
    outcome out = {NOT_SEEN, NULL};
    size_t i;
    for (i = 0; i < t->board->count; i++)
        if (t->board->findings[i].rule == rule_index) add_finding(&out, &t->board->findings[i]);
    return out;
}

/* Rules that are not judged because of what the probe failed at. */
static size_t count_blocked(const trial *t) {
    size_t count = 0, i;
    for (i = 0; i < rule_count; i++) {
        const outcome o = outcome_of(t, i);
        count += o.verdict == NOT_JUDGED && o.shown->blocked;
    }
    return count;
}

size_t root_of(const trial *t) {
    /* What the EP must do before anything else can work. */
    static const char basis[] = "PLG-001 PLG-002 PLG-006 PLG-008 PLG-009 PLG-010 PLG-032 PLG-041 "
                                "EPC-003 EPC-104";
    size_t failed = 0, i;
    if (count_blocked(t) > 0) return (size_t)(t->board->blocker - rules);
    for (i = 0; i < rule_count; i++) failed += outcome_of(t, i).verdict == FAILED;
    if (failed < 2) return rule_count;
    for (i = 0; i < t->board->count; i++) { /* in the order of experiments */
        const finding *f = &t->board->findings[i];
        if (f->verdict == FAILED && strstr(basis, rules[f->rule].id)) return f->rule;
    }
    return rule_count;
}

/* The rule of the report's row `n`: the root is before the others. */
static size_t rule_at(size_t n, size_t root) {
    if (root == rule_count || n > root) return n;
    return n == 0 ? root : n - 1;
}

verdict verdict_of_model(const trial *t, size_t model) {
    bool seen[FAILED + 1] = {false};
    verdict v = FAILED;
    size_t i;
    for (i = 0; i < t->board->count; i++)
        if (t->board->findings[i].model == (int)model) seen[t->board->findings[i].verdict] = true;
    if (seen[NOT_JUDGED] && !seen[FAILED]) return NOT_JUDGED;
    while (v > NOT_SEEN && !seen[v]) v--;
    return v;
}

/* The next finding about a model that says something, from `*at`; NULL: none. */
static const finding *next_words(const trial *t, size_t model, size_t *at) {
    while (*at < t->board->count) {
        const finding *f = &t->board->findings[(*at)++];
        if (f->model == (int)model && *f->text) return f;
    }
    return NULL;
}

static void count_verdicts(const trial *t, size_t counts[FAILED + 1]) {
    size_t i;
    memset(counts, 0, (FAILED + 1) * sizeof *counts);
    for (i = 0; i < rule_count; i++) counts[outcome_of(t, i).verdict]++;
}

static void count_models(const trial *t, size_t counts[FAILED + 1]) {
    size_t i;
    memset(counts, 0, (FAILED + 1) * sizeof *counts);
    for (i = 0; i < t->wanted.model_count; i++) counts[verdict_of_model(t, i)]++;
}

/* --------------------------------------------------------------------- text */

static void put_models(const trial *t, FILE *out) {
    const finding *f;
    size_t i, at;
    for (i = 0; i < t->wanted.model_count; i++) {
        const verdict v = verdict_of_model(t, i);
        if (v == NOT_SEEN) continue;
        fprintf(out, "%-14s  %s\n", verdict_names[v], t->wanted.words[i]);
        for (at = 0; (f = next_words(t, i, &at)) != NULL;)
            if (f->verdict != NOT_APPLICABLE || v == NOT_APPLICABLE)
                fprintf(out, "                %s: %s\n", rules[f->rule].id, f->text);
    }
}

static void put_sums(const char *what, const size_t counts[FAILED + 1], FILE *out) {
    fprintf(out, "%s%zu passed, %zu failed, %zu not applicable", what, counts[PASSED],
            counts[FAILED], counts[NOT_APPLICABLE]);
    if (counts[NOT_JUDGED]) fprintf(out, ", %zu not judged", counts[NOT_JUDGED]);
    fputc('\n', out);
}

/* The program that shows a failure again; "": none was kept. */
static void again_of(const trial *t, size_t rule_index, verdict v, char path[PATH_MAX]) {
    path[0] = '\0';
    if (!t->wanted.keep || v != FAILED) return;
    snprintf(path, PATH_MAX, "%.*s/%s/again.py", PATH_MAX - 32, t->wanted.keep,
             rules[rule_index].id);
    if (!file_exists(path)) path[0] = '\0';
}

static void put_rule(const trial *t, FILE *out, size_t i, size_t root) {
    const outcome o = outcome_of(t, i);
    char again[PATH_MAX];
    if (o.verdict == NOT_SEEN) return;
    fprintf(out, "%-14s  %s  %s\n", verdict_names[o.verdict], rules[i].id, rules[i].words);
    if (o.shown && *o.shown->text)
        fprintf(out, "                %s: %s\n", o.shown->experiment, o.shown->text);
    again_of(t, i, o.verdict, again);
    if (*again && *o.shown->lacks)
        fprintf(out, "                kept: %s (again.py cannot show it: needs %s)\n", again,
                o.shown->lacks);
    else if (*again)
        fprintf(out,
                "                without the suite, by a Python with numpy and onnxruntime: %s\n",
                again);
    if (i != root) return;
    fputs("                begin here: ", out);
    if (count_blocked(t) == 0)
        fputs("other failures may follow from it\n", out);
    else
        fprintf(out, "%zu rules could not be judged because of it\n", count_blocked(t));
}

void report_text(const trial *t, FILE *out) {
    const ep_facts *ep = &t->board->ep;
    const size_t root = root_of(t);
    size_t counts[FAILED + 1], i;
    fprintf(out, "EP          %s%s%s, version %s\n", *ep->name ? ep->name : "(no device)",
            *ep->vendor ? ", of " : "", ep->vendor, *ep->version ? ep->version : "(none)");
    for (i = 0; i < t->board->fact_count; i++)
        fprintf(out, "%-30s %s\n", t->board->facts[i].name, t->board->facts[i].text);
    for (i = 0; i < rule_count; i++) put_rule(t, out, rule_at(i, root), root);
    put_models(t, out);
    count_models(t, counts);
    if (counts[NOT_SEEN] < t->wanted.model_count) put_sums("models: ", counts, out);
    count_verdicts(t, counts);
    put_sums("", counts, out);
}

void report_rules(FILE *out) {
    size_t i;
    for (i = 0; i < rule_count; i++) fprintf(out, "%s\t%s\n", rules[i].id, rules[i].words);
}

/* --------------------------------------------------------------------- JSON */

/* Whatever an EP put into a message: what is not shown, and bytes that are no UTF-8, become "?". */
static void put_escaped(FILE *out, const char *text, bool xml) {
    const epctx_str all = epctx_str_of(text);
    uint32_t before = 0;
    size_t at, size;
    for (at = 0; at < all.size; at += size) {
        const uint32_t code = epctx_str_char(all, at, &size);
        if (xml && (code == '<' || code == '>' || code == '&' || code == '"'))
            fprintf(out, "&#%u;", (unsigned)code);
        else if (!xml && (code == '"' || code == '\\'))
            fprintf(out, "\\%c", (int)code);
        else if (code < 0x20)
            fputc(' ', out);
        else if (epctx_char_is_shown(code, before))
            fwrite(text + at, 1, size, out);
        else
            fputc('?', out);
        before = code;
    }
}

static void put_json(FILE *out, const char *key, const char *value) {
    fprintf(out, "\"%s\": \"", key);
    put_escaped(out, value, false);
    fputc('"', out);
}

static void put_rule_json(const trial *t, FILE *out, size_t i, const outcome *o) {
    char again[PATH_MAX];
    fprintf(out, "\n  {\"rule\": \"%s\", \"verdict\": \"%s\", ", rules[i].id,
            verdict_words[o->verdict]);
    put_json(out, "words", rules[i].words);
    fputs(", ", out);
    put_json(out, "experiment", o->shown ? o->shown->experiment : "");
    fputs(", ", out);
    put_json(out, "text", o->shown ? o->shown->text : "");
    again_of(t, i, o->verdict, again);
    if (*again) {
        fputs(", ", out);
        put_json(out, "again", again);
        fputs(", ", out);
        put_json(out, "again_lacks", o->shown->lacks);
    }
    fputs("}", out);
}

static void put_model_json(const trial *t, FILE *out, size_t i) {
    const finding *f;
    const char *comma = "";
    size_t at = 0;
    fputs("\n  {", out);
    put_json(out, "model", t->wanted.words[i]);
    fprintf(out, ", \"verdict\": \"%s\", \"findings\": [", verdict_words[verdict_of_model(t, i)]);
    while ((f = next_words(t, i, &at)) != NULL) {
        fprintf(out, "%s\n    {\"rule\": \"%s\", \"verdict\": \"%s\", ", comma, rules[f->rule].id,
                verdict_words[f->verdict]);
        put_json(out, "text", f->text);
        fputs("}", out);
        comma = ",";
    }
    fputs("]}", out);
}

static void put_models_json(const trial *t, FILE *out) {
    const char *comma = "";
    size_t i;
    fputs("],\n \"models\": [", out);
    for (i = 0; i < t->wanted.model_count; i++) {
        if (verdict_of_model(t, i) == NOT_SEEN) continue;
        fputs(comma, out);
        put_model_json(t, out, i);
        comma = ",";
    }
}

void report_json(const trial *t, FILE *out) {
    const ep_facts *ep = &t->board->ep;
    const size_t root = root_of(t);
    size_t counts[FAILED + 1], i;
    const char *comma = "";
    count_verdicts(t, counts);
    fputs("{", out);
    put_json(out, "ep", ep->name);
    fputs(", ", out);
    put_json(out, "vendor", ep->vendor);
    fputs(", ", out);
    put_json(out, "version", ep->version);
    fprintf(out,
            ", \"passed\": %zu, \"failed\": %zu, \"not_applicable\": %zu, \"not_judged\": "
            "%zu, \"root\": \"%s\",\n \"facts\": {",
            counts[PASSED], counts[FAILED], counts[NOT_APPLICABLE], counts[NOT_JUDGED],
            root < rule_count ? rules[root].id : "");
    for (i = 0; i < t->board->fact_count; i++) {
        fputs(i ? ", " : "", out);
        put_json(out, t->board->facts[i].name, t->board->facts[i].text);
    }
    fputs("},\n \"rules\": [", out);
    for (i = 0; i < rule_count; i++) {
        const size_t index = rule_at(i, root);
        const outcome o = outcome_of(t, index);
        if (o.verdict == NOT_SEEN) continue;
        fputs(comma, out);
        put_rule_json(t, out, index, &o);
        comma = ",";
    }
    put_models_json(t, out);
    fputs("]}\n", out);
}

/* -------------------------------------------------------------------- JUnit */

/* A verdict with its words; what begins it is written already. */
static void put_verdict(FILE *out, verdict v, const char *text) {
    static const char *const begin[] = {"", "<skipped message=\"", "<system-out>",
                                        "<skipped message=\"not judged: ", "<failure message=\""};
    if (v == PASSED && !*text) return;
    fputs(begin[v], out);
    put_escaped(out, text, true);
    fputs(v == PASSED ? "</system-out>" : "\"/>", out);
}

static void put_case(const trial *t, FILE *out, size_t rule_index) {
    const outcome o = outcome_of(t, rule_index);
    fprintf(out, "  <testcase classname=\"%.3s\" name=\"%s ", rules[rule_index].id,
            rules[rule_index].id);
    put_escaped(out, rules[rule_index].words, true);
    fputs("\">", out);
    put_verdict(out, o.verdict, o.shown ? o.shown->text : "");
    fputs("</testcase>\n", out);
}

static void put_model_case(const trial *t, FILE *out, size_t model) {
    const verdict v = verdict_of_model(t, model);
    const finding *f;
    size_t at = 0;
    fputs("  <testcase classname=\"model\" name=\"", out);
    put_escaped(out, t->wanted.words[model], true);
    fputs("\">", out);
    while ((f = next_words(t, model, &at)) != NULL && f->verdict != v) {
    }
    put_verdict(out, v, f ? f->text : "");
    fputs("</testcase>\n", out);
}

void report_junit(const trial *t, FILE *out) {
    const size_t root = root_of(t);
    size_t of_rules[FAILED + 1], of_models[FAILED + 1], counts[FAILED + 1], i, all = 0;
    count_verdicts(t, of_rules);
    count_models(t, of_models);
    for (i = 0; i <= FAILED; i++) counts[i] = of_rules[i] + of_models[i];
    for (i = NOT_APPLICABLE; i <= FAILED; i++) all += counts[i];
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"", out);
    put_escaped(out, *t->board->ep.name ? t->board->ep.name : t->wanted.library, true);
    fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n", all, counts[FAILED],
            counts[NOT_APPLICABLE] + counts[NOT_JUDGED]);
    for (i = 0; i < rule_count; i++)
        if (outcome_of(t, rule_at(i, root)).verdict != NOT_SEEN) put_case(t, out, rule_at(i, root));
    for (i = 0; i < t->wanted.model_count; i++)
        if (verdict_of_model(t, i) != NOT_SEEN) put_model_case(t, out, i);
    fputs("</testsuite>\n", out);
}

/* -------------------------------------------------------------------- badge */

/* Of rules and of models, as the exit code. */
void report_badge(const trial *t, FILE *out) {
    size_t of_rules[FAILED + 1], of_models[FAILED + 1], failed, open_ones;
    count_verdicts(t, of_rules);
    count_models(t, of_models);
    failed = of_rules[FAILED] + of_models[FAILED];
    open_ones = of_rules[NOT_JUDGED] + of_models[NOT_JUDGED];
    fprintf(out, "{\"schemaVersion\": 1, \"label\": \"epctx-conformance\", \"message\": \"%zu",
            of_rules[PASSED] + of_models[PASSED]);
    fputs(" passed", out);
    if (failed) fprintf(out, ", %zu failed", failed);
    if (open_ones) fprintf(out, ", %zu not judged", open_ones);
    fprintf(out, "\", \"color\": \"%s\"}\n", failed ? "red" : open_ones ? "yellow" : "brightgreen");
}
