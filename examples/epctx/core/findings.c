/* findings.c - what lint finds: chosen, counted and printed. */
#include "findings.h"

#include <inttypes.h>
#include <string.h>

static const char *const severities[EPCTX_SEVERITY_COUNT] = {"error", "warning", "hint"};

void findings_init(findings *out) {
    memset(out, 0, sizeof *out);
    epctx_arena_init(&out->arena, NULL);
    beside_init(&out->beside, NULL);
    epctx_buffer_init(&out->text, NULL);
}

void findings_free(findings *out) {
    const epctx_io *io = epctx_io_files();
    if (out->ignore_file != NULL) io->unmap_fn(io->user, &out->ignore_text);
    epctx_buffer_free(&out->text);
    epctx_arena_free(&out->arena);
    beside_free(&out->beside);
}

bool findings_choose(findings *out, const char *rules) {
    out->chosen = true;
    return rule_list(rules, out->wanted);
}

static epctx_str text_of(const findings *out) {
    epctx_str text;
    text.data = (const char *)out->text.data;
    text.size = out->text.size;
    return text;
}

/* -- what is ignored -- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of a line, or with `all` the rest of it. */
static epctx_str take_word(epctx_str *line, bool all) {
    epctx_str word;
    while (line->size > 0 && is_blank(line->data[0])) {
        line->data++;
        line->size--;
    }
    word.data = line->data;
    word.size = 0;
    while (word.size < line->size && (all || !is_blank(line->data[word.size]))) word.size++;
    line->data += word.size;
    line->size -= word.size;
    while (word.size > 0 && is_blank(word.data[word.size - 1])) word.size--;
    return word;
}

static bool read_entry(findings *out, epctx_str line, unsigned number, findings_ignored *entry) {
    epctx_str rule = take_word(&line, false);
    char where[300];
    memset(entry, 0, sizeof *entry);
    entry->pattern = take_word(&line, false);
    entry->reason = take_word(&line, true);
    entry->line = number;
    entry->rule = rule_find(rule);
    if (entry->rule == RULE_COUNT) {
        snprintf(where, sizeof where, "%.280s:%u", out->ignore_file, number);
        rule_unknown(where, rule);
        return false;
    }
    if (entry->pattern.size > 0 && entry->reason.size > 0) return true;
    cli_misuse("%s:%u: 'RULE PATTERN reason' is expected, e.g. "
               "'W008 old/*.onnx the vendor's build'; %s is missing",
               out->ignore_file, number, entry->pattern.size == 0 ? "the pattern" : "the reason");
    return false;
}

bool findings_ignore(findings *out, const char *file) {
    const epctx_io *io = epctx_io_files();
    epctx_str rest;
    epctx_error error;
    unsigned number = 0;
    size_t lines = 1, i;
    epctx_error_clear(&error);
    if (io->map_fn(io->user, NULL, file, false, &out->ignore_text, &error) != EPCTX_OK) {
        cli_fail(&error);
        return false;
    }
    out->ignore_file = file;
    rest.data = (const char *)out->ignore_text.data;
    rest.size = out->ignore_text.size;
    for (i = 0; i < rest.size; i++) lines += rest.data[i] == '\n';
    out->ignored = (findings_ignored *)epctx_arena_array(&out->arena, lines, sizeof *out->ignored);
    if (out->ignored == NULL) {
        cli_fail_text("out of memory");
        return false;
    }
    while (rest.data != NULL && rest.size > 0) {
        epctx_str line = epctx_str_cut(&rest, '\n'), start = line;
        epctx_str word = take_word(&start, false);
        number++;
        if (word.size == 0 || word.data[0] == '#') continue;
        if (!read_entry(out, line, number, &out->ignored[out->ignored_count++])) return false;
    }
    return true;
}

/* '*' is anything, '?' one byte. */
static bool fits(epctx_str pattern, epctx_str text) {
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;
    while (t < text.size) {
        if (p < pattern.size && pattern.data[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.size &&
                   (pattern.data[p] == '?' || pattern.data[p] == text.data[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.size && pattern.data[p] == '*') p++;
    return p == pattern.size;
}

/* The file or the end of its path, alone or with ":NODE" behind it. */
static bool entry_fits(findings *out, const findings_ignored *entry, epctx_str node) {
    size_t file = strlen(out->file), i;
    epctx_buffer *text = &out->text;
    text->size = 0;
    if (epctx_buffer_append(text, out->file, file) != EPCTX_OK ||
        epctx_buffer_append(text, ":", 1) != EPCTX_OK ||
        (node.size > 0 && epctx_buffer_append(text, node.data, node.size) != EPCTX_OK))
        return false;
    for (i = 0; i < file; i++) {
        epctx_str tail;
        if (i > 0 && out->file[i - 1] != '/') continue;
        tail.data = (const char *)text->data + i;
        tail.size = file - i;
        if (fits(entry->pattern, tail)) return true;
        tail.size = text->size - i;
        if (node.size > 0 && fits(entry->pattern, tail)) return true;
    }
    return false;
}

/* The entry that lets a finding pass; NULL: none. */
static const findings_ignored *find_entry(findings *out, const finding *what) {
    const findings_ignored *found = NULL;
    size_t i;
    for (i = 0; i < out->ignored_count; i++) {
        findings_ignored *entry = &out->ignored[i];
        if (entry->rule != what->rule || !entry_fits(out, entry, what->node)) continue;
        entry->used = true;
        if (found == NULL) found = entry;
    }
    return found;
}

static bool is_told(const char *version) {
    return version != NULL && version[0] != '\0';
}

static void put_versions(json_writer *w, const finding *what) {
    if (is_told(what->since)) json_text(w, "since", what->since);
    if (is_told(what->until)) json_text(w, "until", what->until);
}

/* -- text -- */

static void put_text(findings *out, const finding *what) {
    static const char *const colours[EPCTX_SEVERITY_COUNT] = {"\033[31m", "\033[33m", "\033[36m"};
    const epctx_rule_info info = rule_info(what->rule);
    cli_put(stdout, epctx_str_of(out->file));
    if (what->line > 0) printf(":%u", what->line);
    printf(": %s%s %s%s %s: ", out->colour ? colours[info.severity] : "", severities[info.severity],
           info.id, out->colour ? "\033[0m" : "", info.name);
    if (what->graph.size > 0) {
        fputs("in '", stdout);
        cli_put(stdout, what->graph);
        fputs("': ", stdout);
    }
    if (what->node.size > 0) {
        putchar('\'');
        cli_put(stdout, what->node);
        fputs("': ", stdout);
    }
    if (what->attribute[0] != '\0') {
        cli_put(stdout, epctx_str_of(what->attribute));
        putchar(' ');
    }
    cli_put(stdout, epctx_str_of(what->message));
    if (is_told(what->since) || is_told(what->until))
        printf("\n    holds: %s%s%s%s%s", is_told(what->since) ? "since " : "",
               is_told(what->since) ? what->since : "",
               is_told(what->since) && is_told(what->until) ? ", " : "",
               is_told(what->until) ? "until " : "", is_told(what->until) ? what->until : "");
    printf("\n    fix: %s\n", info.fix);
    if (!cures_command(&out->cures, what->rule, what->node, &out->text)) return;
    fputs("    run: ", stdout);
    cli_put(stdout, text_of(out));
    putchar('\n');
}

static void put_counts(const uint64_t counts[EPCTX_SEVERITY_COUNT], uint64_t suppressed,
                       bool hints) {
    int i;
    for (i = 0; i < EPCTX_SEVERITY_COUNT; i++)
        printf("%s%" PRIu64 " %s%s", i > 0 ? ", " : "", counts[i], severities[i],
               cli_plural(counts[i]));
    if (counts[EPCTX_SEVERITY_HINT] > 0 && !hints) fputs(" (--hints shows them)", stdout);
    if (suppressed > 0) printf(", %" PRIu64 " ignored", suppressed);
    putchar('\n');
}

/* -- JSON -- */

void findings_put(json_writer *w, const finding *what, cures *list, epctx_buffer *text) {
    const epctx_rule_info info = rule_info(what->rule);
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "id", info.id);
    json_text(w, "rule", info.name);
    json_text(w, "severity", severities[info.severity]);
    json_str(w, "node", what->node);
    json_str(w, "graph", what->graph);
    json_text(w, "attribute", what->attribute);
    json_text(w, "message", what->message);
    json_text(w, "fix", info.fix);
    put_versions(w, what);
    if (cures_command(list, what->rule, what->node, text)) {
        const epctx_str command = {(const char *)text->data, text->size};
        json_str(w, "command", command);
    }
    if (what->line > 0) json_uint(w, "line", what->line);
    json_end(w);
}

static void put_json_counts(const findings *out, const uint64_t counts[EPCTX_SEVERITY_COUNT],
                            uint64_t suppressed) {
    json_uint(out->json, "errors", counts[0]);
    json_uint(out->json, "warnings", counts[1]);
    json_uint(out->json, "hints", counts[2]);
    if (out->ignore_file != NULL) json_uint(out->json, "ignored", suppressed);
}

/* Of several files each is an object that stands where one alone would. */
static void begin_json(findings *out) {
    out->json = cli_json_begin(stdout);
    if (!out->several) return;
    json_indent(out->json, 0, 0);
    json_array(out->json, "files", JSON_HANGING);
}

static void begin_json_file(findings *out, const char *file) {
    if (out->several)
        json_object(out->json, NULL, JSON_LINES);
    else
        begin_json(out);
    json_text(out->json, "file", file);
    json_indent(out->json, 0, 2);
    json_array(out->json, "findings", JSON_HANGING);
    json_indent(out->json, 0, 0);
}

static void json_verdict(json_writer *w, const findings_verdict *verdict) {
    json_object(w, "ep", JSON_INLINE);
    json_text(w, "name", verdict->ep);
    json_text(w, "version", verdict->ep_version);
    json_text(w, "onnxruntime", verdict->ort_version);
    json_text(w, "verdict", verdict->word);
    json_text(w, "message", verdict->words);
    json_end(w);
}

static void end_json_file(const findings *out) {
    json_end(out->json);
    if (out->verdict != NULL) json_verdict(out->json, out->verdict);
    put_json_counts(out, out->counts, out->suppressed);
    if (out->several) json_end(out->json);
}

static void end_json(const findings *out) {
    if (out->several) {
        json_end(out->json);
        put_json_counts(out, out->totals, out->total_suppressed);
    }
    json_indent(out->json, 0, 2);
    cli_json_end();
}

/* -- SARIF -- */

/* A path as a URI: relative, or of the scheme "file". */
static void put_uri(json_writer *w, const char *path) {
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    json_begin_text(w, "uri");
    if (path[0] == '/') json_add_text(w, epctx_str_of("file://"));
    for (; *path != '\0'; path++) {
        char shown[4];
        snprintf(shown, sizeof shown, strchr(safe, *path) != NULL ? "%c" : "%%%02X",
                 (unsigned char)*path);
        json_add_text(w, epctx_str_of(shown));
    }
    json_end_text(w);
}

static const char *sarif_level(epctx_severity severity) {
    return severity == EPCTX_SEVERITY_HINT ? "note" : severities[severity];
}

/* "key": {"text": "..."}, as SARIF has its messages. */
static void put_message(json_writer *w, const char *key, const char *before, const char *text) {
    json_object(w, key, JSON_INLINE);
    json_begin_text(w, "text");
    json_add_text(w, epctx_str_of(before));
    if (before[0] != '\0') json_add_text(w, epctx_str_of(" "));
    json_add_text(w, epctx_str_of(text));
    json_end_text(w);
    json_end(w);
}

/* The node, or what it stands in. */
static void put_logical(json_writer *w, const finding *what) {
    json_array(w, "logicalLocations", JSON_INLINE);
    json_object(w, NULL, JSON_INLINE);
    json_str(w, "name", what->node.size > 0 ? what->node : what->graph);
    if (what->node.size > 0 && what->graph.size > 0) {
        json_begin_text(w, "fullyQualifiedName");
        json_add_text(w, what->graph);
        json_add_text(w, epctx_str_of("/"));
        json_add_text(w, what->node);
        json_end_text(w);
    }
    json_end(w);
    json_end(w);
}

static void put_location(json_writer *w, const char *file, const finding *what) {
    json_array(w, "locations", JSON_INLINE);
    json_object(w, NULL, JSON_INLINE);
    json_object(w, "physicalLocation", JSON_INLINE);
    json_object(w, "artifactLocation", JSON_INLINE);
    put_uri(w, file);
    json_end(w);
    /* Services show nothing without a line; a binary file has one. */
    json_object(w, "region", JSON_INLINE);
    json_uint(w, "startLine", what->line > 0 ? what->line : 1);
    json_end(w);
    json_end(w);
    if (what->node.size > 0 || what->graph.size > 0) put_logical(w, what);
    json_end(w);
    json_end(w);
}

/* What stays the same of a finding from one run to the next: services know by it that they have
 * seen it before. */
static void put_fingerprint(json_writer *w, const char *file, const finding *what) {
    const epctx_str parts[] = {
        epctx_str_of(rule_info(what->rule).id), epctx_str_of(file),         what->graph, what->node,
        epctx_str_of(what->attribute),          epctx_str_of(what->message)};
    uint64_t hash = 0;
    char text[24];
    size_t i;
    for (i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hash = epctx_hash(parts[i].data, parts[i].size, hash);
    snprintf(text, sizeof text, "%016" PRIx64 ":1", hash);
    json_object(w, "partialFingerprints", JSON_INLINE);
    json_text(w, "primaryLocationLineHash", text);
    json_end(w);
}

static void put_sarif(findings *out, const finding *what, const findings_ignored *entry) {
    const epctx_rule_info info = rule_info(what->rule);
    json_writer *w = out->json;
    bool command;
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "ruleId", info.id);
    json_int(w, "ruleIndex", what->rule);
    json_text(w, "level", sarif_level(info.severity));
    put_message(w, "message", what->attribute, what->message);
    put_location(w, out->file, what);
    put_fingerprint(w, out->file, what);
    command = cures_command(&out->cures, what->rule, what->node, &out->text);
    if (command || is_told(what->since) || is_told(what->until)) {
        json_object(w, "properties", JSON_INLINE);
        if (command) json_str(w, "command", text_of(out));
        put_versions(w, what);
        json_end(w);
    }
    if (entry != NULL) {
        json_array(w, "suppressions", JSON_INLINE);
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "kind", "external");
        json_str(w, "justification", entry->reason);
        json_end(w);
        json_end(w);
    }
    json_end(w);
}

static void put_sarif_rule(json_writer *w, const epctx_rule_info *info) {
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "id", info->id);
    json_text(w, "name", info->name);
    put_message(w, "shortDescription", "", info->text);
    put_message(w, "help", "", info->fix);
    json_object(w, "defaultConfiguration", JSON_INLINE);
    json_text(w, "level", sarif_level(info->severity));
    json_end(w);
    json_end(w);
}

static void begin_sarif(findings *out) {
    json_writer *w = out->json = &out->sarif;
    int i;
    json_to_file(w, stdout);
    json_object(w, NULL, JSON_LINES);
    json_text(w, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_text(w, "version", "2.1.0");
    json_array(w, "runs", JSON_LINES);
    json_object(w, NULL, JSON_LINES);
    json_object(w, "tool", JSON_INLINE);
    json_object(w, "driver", JSON_INLINE);
    json_text(w, "name", "epctx");
    json_text(w, "version", EPCTX_VERSION_STRING);
    json_array(w, "rules", JSON_LINES);
    for (i = 0; i < RULE_COUNT; i++) {
        const epctx_rule_info info = rule_info(i);
        put_sarif_rule(w, &info);
    }
    json_end(w);
    json_end(w);
    json_end(w);
    json_text(w, "columnKind", "utf16CodeUnits");
    json_array(w, "results", JSON_LINES);
}

static void end_sarif(const findings *out) {
    while (out->json->depth > 0) json_end(out->json);
    putchar('\n');
}

/* -- GitHub -- */

/* Text of a workflow command: what cannot be shown as elsewhere, and what has a meaning there as
 * GitHub wants it. */
static void put_github_text(epctx_str text, bool property) {
    uint32_t code, before = 0;
    size_t i, k, size;
    for (i = 0; i < text.size; i += size, before = code) {
        code = epctx_str_char(text, i, &size);
        if (code == '%' || (property && (code == ':' || code == ',')))
            printf("%%%02X", (unsigned)code);
        else if (epctx_char_is_shown(code, before))
            fwrite(text.data + i, 1, size, stdout);
        else
            for (k = i; k < i + size; k++) printf("\\x%02x", (unsigned char)text.data[k]);
    }
}

static void put_github(findings *out, const finding *what) {
    static const char *const words[EPCTX_SEVERITY_COUNT] = {"error", "warning", "notice"};
    const epctx_rule_info info = rule_info(what->rule);
    printf("::%s file=", words[info.severity]);
    put_github_text(epctx_str_of(out->file), true);
    printf(",line=%u,title=%s %s::", what->line > 0 ? what->line : 1, info.id, info.name);
    if (what->node.size > 0) {
        putchar('\'');
        put_github_text(what->node, false);
        fputs("': ", stdout);
    }
    if (what->attribute[0] != '\0') {
        put_github_text(epctx_str_of(what->attribute), false);
        putchar(' ');
    }
    put_github_text(epctx_str_of(what->message), false);
    printf("%%0Afix: ");
    put_github_text(epctx_str_of(info.fix), false);
    if (cures_command(&out->cures, what->rule, what->node, &out->text)) {
        fputs("%0Arun: ", stdout);
        put_github_text(text_of(out), false);
    }
    putchar('\n');
}

/* -- all of them -- */

void findings_begin(findings *out) {
    out->colour = out->format == FINDINGS_TEXT && cli_colour(stdout);
    if (out->format == FINDINGS_SARIF) begin_sarif(out);
    if (out->format == FINDINGS_JSON && out->several) begin_json(out);
}

void findings_file(findings *out, const char *file) {
    memset(out->counts, 0, sizeof out->counts);
    out->suppressed = 0;
    out->verdict = NULL;
    out->file = file;
    cures_begin(&out->cures, file, NULL, &out->beside);
    if (out->format == FINDINGS_JSON) begin_json_file(out, file);
    out->files++;
}

/* What could not be judged, and what the EP says that was asked for. */
static bool is_always_told(int rule) {
    return rule == RULE_UNREADABLE || rule == RULE_EP_REFUSES || rule == RULE_EP_LOADS ||
           rule == RULE_EP_DEVICE;
}

void findings_add(findings *out, const finding *what) {
    const epctx_severity severity = rule_info(what->rule).severity;
    const findings_ignored *entry;
    if (out->chosen && !out->wanted[what->rule] && !is_always_told(what->rule)) return;
    entry = find_entry(out, what);
    if (entry != NULL)
        out->suppressed++;
    else
        out->counts[severity]++;
    if (entry != NULL && out->format != FINDINGS_SARIF) return;
    /* Who asks for a hint by name wants to see it. */
    if (severity == EPCTX_SEVERITY_HINT && !out->hints && !out->chosen) return;
    cli_progress_hide();
    switch (out->format) {
    case FINDINGS_TEXT: put_text(out, what); break;
    case FINDINGS_JSON: findings_put(out->json, what, &out->cures, &out->text); break;
    case FINDINGS_SARIF: put_sarif(out, what, entry); break;
    case FINDINGS_GITHUB: put_github(out, what); break;
    }
    cli_progress_add(0);
}

void findings_judged(findings *out, const findings_verdict *verdict) {
    findings_verdict *copy = (findings_verdict *)epctx_arena_array(&out->arena, 1, sizeof *copy);
    if (copy == NULL) return;
    copy->ep = epctx_arena_copy(&out->arena, epctx_str_of(verdict->ep));
    copy->ep_version = epctx_arena_copy(&out->arena, epctx_str_of(verdict->ep_version));
    copy->ort_version = epctx_arena_copy(&out->arena, epctx_str_of(verdict->ort_version));
    copy->word = verdict->word;
    copy->words = epctx_arena_copy(&out->arena, epctx_str_of(verdict->words));
    if (copy->ep != NULL && copy->ep_version != NULL && copy->ort_version != NULL &&
        copy->words != NULL)
        out->verdict = copy;
}

static void put_verdict(const findings *out) {
    const findings_verdict *verdict = out->verdict;
    cli_put(stdout, epctx_str_of(out->file));
    fputs(": ", stdout);
    cli_put(stdout, epctx_str_of(verdict->ep));
    putchar(' ');
    cli_put(stdout, epctx_str_of(verdict->ep_version));
    printf(" %s, ONNX Runtime ", strcmp(verdict->word, "loads") == 0     ? "loads it"
                                 : strcmp(verdict->word, "refuses") == 0 ? "does not load it"
                                                                         : "needs its device");
    cli_put(stdout, epctx_str_of(verdict->ort_version));
    putchar('\n');
}

void findings_file_end(findings *out) {
    int i;
    if (out->format == FINDINGS_TEXT && out->verdict != NULL) put_verdict(out);
    if (out->format == FINDINGS_JSON) {
        end_json_file(out);
    } else if (out->format == FINDINGS_TEXT) {
        cli_put(stdout, epctx_str_of(out->file));
        fputs(": ", stdout);
        put_counts(out->counts, out->suppressed, out->hints || out->chosen);
    }
    for (i = 0; i < EPCTX_SEVERITY_COUNT; i++) out->totals[i] += out->counts[i];
    out->total_suppressed += out->suppressed;
}

void findings_say(findings *out, int rule, const char *message) {
    const finding what = {rule, epctx_str_of(""), epctx_str_of(""), "", message, 0, NULL, NULL};
    findings_add(out, &what);
}

void findings_alone(findings *out, const char *file, int rule, const char *message) {
    findings_file(out, file);
    findings_say(out, rule, message);
    findings_file_end(out);
}

/* Entries that have outlived what they were for. */
static void add_unused(findings *out) {
    bool begun = false;
    size_t i;
    for (i = 0; i < out->ignored_count; i++) {
        const findings_ignored *entry = &out->ignored[i];
        char message[600];
        epctx_text text = epctx_text_of(message, sizeof message);
        finding what = {
            RULE_IGNORE_UNUSED, epctx_str_of(""), epctx_str_of(""), "", message, 0, NULL, NULL};
        if (entry->used || (out->chosen && !out->wanted[entry->rule])) continue;
        if (!begun) findings_file(out, out->ignore_file);
        begun = true;
        epctx_text_put_format(&text, "%s %S matches no finding", rule_info(entry->rule).id,
                              &entry->pattern);
        what.line = entry->line;
        findings_add(out, &what);
    }
    if (begun) findings_file_end(out);
}

int findings_end(findings *out) {
    add_unused(out);
    if (out->format == FINDINGS_JSON && (out->several || out->files > 0)) end_json(out);
    if (out->format == FINDINGS_SARIF) end_sarif(out);
    if ((out->format == FINDINGS_TEXT && out->files != 1) || out->format == FINDINGS_GITHUB) {
        printf("%" PRIu64 " file%s: ", out->files, cli_plural(out->files));
        put_counts(out->totals, out->total_suppressed, out->hints || out->chosen);
    }
    return out->totals[EPCTX_SEVERITY_ERROR] > 0 ||
                   (out->strict && out->totals[EPCTX_SEVERITY_WARNING] > 0)
               ? CLI_FAILED
               : CLI_OK;
}
