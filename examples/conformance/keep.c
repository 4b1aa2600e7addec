/* keep.c - what a rule failed on, for who has no suite: the files of the experiment as they were
 * then, and a program in Python that does again what led to it: again.py. FOLDER.kept, beside the
 * experiment's folder, has the lines of that program (steps.py), the bytes that they need (steps/),
 * and the files as the last session has left them (now/): what has changed since is the suite's
 * doing, and the program does it, too. */
#define _GNU_SOURCE
#include "conformance.h"

#include "build/again.h"

#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 8, NAMES = 64, MOST_SESSIONS = 60 };

/* A path below a folder. */
typedef struct path_text {
    char text[PATH_MAX + 320];
} path_text;

static path_text join(const char *folder, const char *name) {
    path_text out;
    snprintf(out.text, sizeof out.text, "%.*s/%.*s", PATH_MAX, folder, 300, name);
    return out;
}

static path_text kept(const trial *t, const char *name) {
    path_text out;
    snprintf(out.text, sizeof out.text, "%.*s.kept/%.300s", PATH_MAX, t->folder, name);
    return out;
}

void forget_sessions(const trial *t) {
    static const char *const folders[] = {"", "now", "steps"};
    size_t i;
    if (!t->wanted.keep) return;
    remove_tree(kept(t, "").text);
    for (i = 0; i < sizeof folders / sizeof folders[0]; i++) make_folder(kept(t, folders[i]).text);
}

static size_t keep_blob(const trial *t, const void *data, size_t size) {
    char name[40];
    snprintf(name, sizeof name, "steps/%zu", ++t->board->last.blobs);
    write_file(kept(t, name).text, data, size);
    return t->board->last.blobs;
}

/* ------------------------------------------------------------------- Python */

/* What is no UTF-8, as of a message that was cut, becomes "?". */
static void put_quoted(FILE *out, const char *text) {
    const epctx_str all = epctx_str_of(text);
    uint32_t before = 0;
    size_t at, size;
    fputc('\'', out);
    for (at = 0; at < all.size; at += size) {
        const uint32_t code = epctx_str_char(all, at, &size);
        if (code < 0x20)
            fprintf(out, "\\x%02x", (unsigned)code);
        else if (code == '\'' || code == '\\')
            fprintf(out, "\\%c", (int)code);
        else if (epctx_char_is_shown(code, before))
            fwrite(text + at, 1, size, out);
        else
            fputc('?', out);
        before = code;
    }
    fputc('\'', out);
}

/* A text; a path in the experiment's folder is in the program's. */
static void put_path(const trial *t, FILE *out, const char *path) {
    const size_t length = strlen(t->folder);
    const bool inside =
        strncmp(path, t->folder, length) == 0 && (path[length] == '/' || !path[length]);
    if (inside) fputs("here(", out);
    put_quoted(out, !inside ? path : path[length] ? path + length + 1 : "");
    if (inside) fputc(')', out);
}

static void put_pairs(const trial *t, FILE *out, const char *const *pairs) {
    size_t i;
    fputc('{', out);
    for (i = 0; pairs && pairs[i]; i += 2) {
        put_quoted(out, pairs[i]);
        fputs(": ", out);
        put_path(t, out, pairs[i + 1]);
        fputs(pairs[i + 2] ? ", " : "", out);
    }
    fputs("}, ", out);
}

static void put_flag(FILE *out, const char *name, bool value) {
    fprintf(out, "%s=%s, ", name, value ? "True" : "False");
}

/* -------------------------------------------------------------------- files */

typedef void (*visit_fn)(void *state, const char *path, const struct stat *st);

/* Visits what is below root/path, folders before what is in them. */
static void walk(const char *root, const char *path, unsigned depth, visit_fn visit, void *state) {
    char names[NAMES][256];
    const size_t count = depth < DEPTH ? list_files(join(root, path).text, names, NAMES) : 0;
    struct stat st;
    size_t i;
    for (i = 0; i < count; i++) {
        const path_text one = *path ? join(path, names[i]) : join(".", names[i]);
        const char *below = *path ? one.text : names[i];
        if (lstat(join(root, below).text, &st) != 0) continue;
        visit(state, below, &st);
        if (S_ISDIR(st.st_mode)) walk(root, below, depth + 1, visit, state);
    }
}

static bool holds_bytes(const char *path, const void *data, size_t size) {
    size_t there = 0;
    uint8_t *bytes = read_file(path, &there);
    const bool same = there == size && (size == 0 || (bytes && memcmp(bytes, data, size) == 0));
    free(bytes);
    return same;
}

/* A file of the same bytes, below `root`. */
typedef struct search {
    const char *root;
    const void *data;
    size_t size;
    char found[300]; /* "": none */
} search;

static void look_at(void *state, const char *path, const struct stat *st) {
    search *s = (search *)state;
    if (*s->found || !S_ISREG(st->st_mode) || (uint64_t)st->st_size != s->size) return;
    if (holds_bytes(join(s->root, path).text, s->data, s->size))
        snprintf(s->found, sizeof s->found, "%s", path);
}

static search look_for(const char *root, const void *data, size_t size) {
    search s;
    memset(&s, 0, sizeof s);
    s.root = root;
    s.data = data;
    s.size = size;
    if (size > 0) walk(root, "", 0, look_at, &s);
    return s;
}

/* Where the bytes come from: "how, what" of files() in the program. What an EP wrote is taken from
 * what it writes then, unless `frozen`. */
static void put_source(const trial *t, FILE *out, const void *data, size_t size, bool frozen) {
    const path_text now = kept(t, "now");
    const search s = look_for(now.text, data, size);
    if (*s.found && !frozen) {
        fputs("'was', ", out);
        put_quoted(out, s.found);
    } else {
        fprintf(out, "'kept', '%zu'", keep_blob(t, data, size));
    }
}

/* What the suite has done to the experiment's files since the last session. */
typedef struct changes {
    const trial *t;
    FILE *out;
    bool any;
    /* A context model or binary was edited. It fits the others that were written with it, and none
     * that are written later: names of graphs come from the source's path. */
    bool frozen;
} changes;

static void begin_change(changes *c, const char *path) {
    fputs(c->any ? "    (" : "files([\n    (", c->out);
    c->any = true;
    put_quoted(c->out, path);
    fputs(", ", c->out);
}

static void put_link(changes *c, const char *path, const char *full, const char *before) {
    char target[2][PATH_MAX] = {"", ""};
    const ssize_t length = readlink(full, target[0], PATH_MAX - 1);
    if (length < 0 ||
        (readlink(before, target[1], PATH_MAX - 1) == length && strcmp(target[0], target[1]) == 0))
        return;
    begin_change(c, path);
    fputs("'link', ", c->out);
    put_path(c->t, c->out, target[0]);
    fputs("),\n", c->out);
}

static void put_file(changes *c, const char *path, const char *full, const char *before) {
    size_t size = 0;
    uint8_t *data = read_file(full, &size);
    if (c->frozen || !file_exists(before) || !holds_bytes(before, data, size)) {
        begin_change(c, path);
        put_source(c->t, c->out, data, size, c->frozen);
        fputs("),\n", c->out);
    }
    free(data);
}

static void put_there(void *state, const char *path, const struct stat *st) {
    changes *c = (changes *)state;
    const path_text before = join(kept(c->t, "now").text, path);
    const path_text full = join(c->t->folder, path);
    if (S_ISREG(st->st_mode)) put_file(c, path, full.text, before.text);
    if (S_ISLNK(st->st_mode)) put_link(c, path, full.text, before.text);
    if ((!S_ISDIR(st->st_mode) && !S_ISFIFO(st->st_mode)) || file_exists(before.text)) return;
    begin_change(c, path);
    fprintf(c->out, "'%s', ''),\n", S_ISDIR(st->st_mode) ? "folder" : "pipe");
}

static void put_gone(void *state, const char *path, const struct stat *st) {
    changes *c = (changes *)state;
    struct stat now;
    (void)st;
    if (lstat(join(c->t->folder, path).text, &now) == 0) return;
    begin_change(c, path);
    fputs("'gone', ''),\n", c->out);
}

/* A source that the suite makes is no edited file. */
static void find_edited(void *state, const char *path, const struct stat *st) {
    changes *c = (changes *)state;
    const char *dot = strrchr(path, '.');
    size_t size = 0;
    uint8_t *data;
    if (!S_ISREG(st->st_mode)) return;
    data = read_file(join(c->t->folder, path).text, &size);
    if (size > 0 && (!dot || strcmp(dot, ".onnx") != 0 || memmem(data, size, "EPContext", 9)))
        c->frozen |= !*look_for(kept(c->t, "now").text, data, size).found;
    free(data);
}

static void put_changes(const trial *t, FILE *out) {
    changes c = {t, out, false, false};
    walk(t->folder, "", 0, find_edited, &c);
    walk(t->folder, "", 0, put_there, &c);
    walk(kept(t, "now").text, "", 0, put_gone, &c);
    if (c.any) fputs("])\n", out);
}

/* From here to there. */
typedef struct copying {
    const char *from, *to;
} copying;

static void copy_entry(void *state, const char *path, const struct stat *st) {
    const copying *c = (const copying *)state;
    const path_text from = join(c->from, path), to = join(c->to, path);
    char link[PATH_MAX];
    ssize_t length;
    if (S_ISDIR(st->st_mode)) make_folder(to.text);
    if (S_ISREG(st->st_mode)) copy_file(from.text, to.text);
    if (!S_ISLNK(st->st_mode)) return;
    length = readlink(from.text, link, sizeof link - 1);
    link[length < 0 ? 0 : length] = '\0';
    if (length > 0 && symlink(link, to.text) != 0) remove(to.text);
}

static void copy_tree(const char *from, const char *to) {
    copying c = {from, to};
    make_folder(to);
    walk(from, "", 0, copy_entry, &c);
}

/* ----------------------------------------------------------------- sessions */

/* The model's path; its bytes were put before. */
static void put_model(const trial *t, FILE *out, const ort_spec *spec) {
    if (spec->path)
        put_path(t, out, spec->path);
    else
        fputs("memory", out);
    fputs(", ", out);
}

/* In Python: what the application has, and how it fails. */
static void put_store(const trial *t, FILE *out, const void *user) {
    const store *s = (const store *)user;
    size_t i;
    fputc('{', out);
    for (i = 0; i < s->count; i++) {
        put_quoted(out, s->list[i].key);
        fprintf(out, ": '%zu', ", keep_blob(t, s->list[i].data, s->list[i].size));
    }
    fputs("}, ", out);
    if (s->code) {
        fprintf(out, "(%d, ", (int)s->code);
        put_quoted(out, s->text);
        fputc(')', out);
    } else {
        fputs("None", out);
    }
}

static void put_options(const trial *t, FILE *out, const ort_spec *spec) {
    put_pairs(t, out, spec->config);
    put_pairs(t, out, spec->options);
    put_flag(out, "on_cpu", !spec->ep);
    put_flag(out, "plain", spec->plain);
    put_flag(out, "alone", spec->ep && !spec->allow_cpu);
    if (spec->level) fprintf(out, "level=%d, ", (int)*spec->level);
    if (spec->more == set_reader) {
        fputs("reader=(", out);
        put_store(t, out, spec->user);
        fputs("), ", out);
    }
}

static void put_compilation(const trial *t, FILE *out, const ort_spec *spec, const ort_output *to) {
    fputs("compilation(", out);
    put_model(t, out, spec);
    if (to->path)
        put_path(t, out, to->path);
    else
        fputs("None", out);
    fputs(", ", out);
    put_options(t, out, spec);
    put_flag(out, "embed", to->embed);
    if (to->initializers) {
        fputs("initializers=", out);
        put_path(t, out, to->initializers);
        fprintf(out, ", threshold=%zu, ", to->threshold);
    }
    if (to->flags) fprintf(out, "flags=%u, ", (unsigned)to->flags);
    if (to->more == set_writer) {
        fputs("writer=(", out);
        put_store(t, out, to->user);
        fputs("), ", out);
    }
    fputs(")\n", out);
}

/* What ORT's Python has no function for, or again.py no line. */
static const char *beyond(const ort_spec *spec, const ort_output *to) {
    if (spec->more && spec->more != set_reader) return "an option that ORT's Python does not have";
    if (spec->prefer_npu) return "a policy that chooses the EP";
    if (to && to->more && to->more != set_writer)
        return "an option of compilations that ORT's Python does not have";
    if (to && to->folder) return "the name of the context binary, given by the application";
    return "";
}

static void put_session(const trial *t, FILE *out, const ort_spec *spec, const ort_output *to) {
    char folder[PATH_MAX];
    if (!spec->path) {
        fputs("memory = bytes_of(", out);
        put_source(t, out, spec->data, spec->size, false);
        fputs(")\n", out);
    }
    put_changes(t, out);
    if (getcwd(folder, sizeof folder)) {
        fputs("os.chdir(", out);
        put_path(t, out, folder);
        fputs(")\n", out);
    }
    if (to) {
        put_compilation(t, out, spec, to);
        return;
    }
    fputs("session(", out);
    put_model(t, out, spec);
    put_options(t, out, spec);
    fputs(")\n", out);
}

void note_session(const ort_spec *spec, const ort_output *to) {
    const trial *t = (const trial *)spec->seen_by;
    last_session *last = &t->board->last;
    const size_t blobs = last->blobs;
    FILE *out;
    const bool many = ++t->board->sessions > MOST_SESSIONS; /* the last one alone */
    if (many) forget_sessions(t);
    memset(last, 0, sizeof *last);
    last->blobs = many ? 0 : blobs;
    last->more = beyond(spec, to);
    last->writes = to && to->more == set_writer;
    out = fopen(kept(t, "steps.py").text, many ? "w" : "a");
    if (!out) return;
    put_session(t, out, spec, to);
    fclose(out);
}

/* What is there now, an EP has written. */
static void keep_files(const trial *t) {
    remove_tree(kept(t, "now").text);
    copy_tree(t->folder, kept(t, "now").text);
}

void note_end(const ort_spec *spec, bool ok) {
    const trial *t = (const trial *)spec->seen_by;
    note_answer(t, ok);
    keep_files(t);
}

void note_run(const trial *t, const char *reference, uint32_t seed, bool ok) {
    FILE *out = fopen(kept(t, "steps.py").text, "a");
    t->board->last.run = ok ? RUN_RIGHT : RUN_WRONG;
    keep_files(t);
    if (!out) return;
    fputs("run(", out);
    put_path(t, out, reference);
    fprintf(out, ", %u, %g)\n", (unsigned)seed, ort_relative);
    fclose(out);
}

/* ------------------------------------------------------------------ keeping */

/* Rules about what is written: a good EP writes other files. */
static bool is_about_files(const char *rule_id) {
    static const char ids[] =
        "EPC-005 EPC-009 EPC-010 EPC-013 EPC-014 EPC-015 EPC-016 EPC-017 EPC-021 EPC-022 EPC-023 "
        "EPC-024 EPC-025 EPC-026 EPC-029 EPC-030 EPC-032 EPC-034 EPC-037 EPC-042 EPC-044 EPC-045 "
        "EPC-046 EPC-052 EPC-057 EPC-058 EPC-059 EPC-062 EPC-063 EPC-065 EPC-066 EPC-067 EPC-068 "
        "EPC-070 EPC-071 EPC-072 EPC-074 EPC-075 EPC-076 EPC-077 EPC-078 EPC-086 EPC-087 EPC-089 "
        "EPC-091 EPC-092 EPC-093 EPC-136 EPC-137 EPC-139 EPC-140 EPC-141 EPC-142 EPC-143 EPC-144 "
        "EPC-145 EPC-146 "
        "EPC-147 API-002 API-003";
    return strstr(ids, rule_id) != NULL;
}

static void put_registration(const trial *t, FILE *out) {
    fputs("register(", out);
    put_quoted(out, t->board->registered);
    fputs(", ", out);
    put_path(t, out, t->wanted.library);
    fputs(", ", out);
    put_quoted(out, t->board->ep.name);
    fputs(")\n", out);
}

/* What is not seen in what a session says, gives and writes; a good EP may do the same there. */
static const char *beyond_rule(const char *rule_id, const char *text) {
    static const char compatibility[] = "a look at the compatibility string, which ORT's Python "
                                        "does not take";
    static const char measured[] = "time, memory or open files to be measured";
    static const struct {
        const char *id, *words, *why;
    } rows[] = {{"EPC-111", "", compatibility},
                {"EPC-112", "", compatibility},
                {"EPC-002", "", measured},
                {"PLG-011", "", measured},
                {"PLG-033", "", measured},
                {"API-010", "", measured},
                {"EPC-063", "read only", "a look at when files were written"}};
    size_t i;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rule_id, rows[i].id) == 0 && strstr(text, rows[i].words)) return rows[i].why;
    return "";
}

static const char *beyond_of(const trial *t, const char *rule_id, const char *text) {
    return *t->board->last.more ? t->board->last.more : beyond_rule(rule_id, text);
}

/* "found a session", say those who wanted an error. */
static bool wants_refusal(const char *text) {
    return strstr(text, "found a session") != NULL;
}

/* What again.py would need, as far as that is known; "": it shows the failure. */
static const char *lacking(const trial *t, const char *rule_id, const char *text) {
    const last_session *last = &t->board->last;
    const char *why = beyond_of(t, rule_id, text);
    if (*why) return why;
    if (t->board->beside) return t->board->beside;
    if (t->board->sessions == 0 && last->end != END_REFUSED && !t->board->step)
        return "the library by itself";
    /* A session that is there has a fault in its outputs or files, or should not be there. */
    if (last->end == END_DONE && last->run != RUN_WRONG && !wants_refusal(text) &&
        !is_about_files(rule_id) && !last->writes)
        return "more than sessions, their outputs and files";
    return "";
}

static void put_finish(const trial *t, FILE *out, const char *rule_id, const char *text) {
    static const char *const ends[] = {"died", "refused", "done"};
    static const char *const runs[] = {"none", "wrong", "right"};
    const last_session *last = &t->board->last;
    fprintf(out, "finish(end='%s', run='%s', refuse=%s, files=%s, code=%d, said=", ends[last->end],
            runs[last->run], wants_refusal(text) ? "True" : "False",
            is_about_files(rule_id) ? "True" : "False", last->code);
    put_quoted(out, last->said);
    fputs(", text=", out);
    put_quoted(out, text);
    fputs(", beyond=", out);
    put_quoted(out, beyond_of(t, rule_id, text));
    fputs(", lacks=", out);
    put_quoted(out, lacking(t, rule_id, text));
    fputs(", folder=", out);
    put_quoted(out, t->folder);
    fprintf(out, ", sessions=%zu)\n", t->board->sessions);
}

static void put_steps(const trial *t, FILE *out) {
    size_t size = 0;
    uint8_t *steps = read_file(kept(t, "steps.py").text, &size);
    if (steps) fwrite(steps, 1, size, out);
    free(steps);
    if (t->board->sessions > 0 && t->board->last.end != END_DIED) put_changes(t, out);
}

/* One line of a comment. */
static void put_comment(FILE *out, const char *text) {
    fputs("# ", out);
    for (; *text; text++) fputc(*text < 0x20 || *text > 0x7e ? '?' : *text, out);
    fputc('\n', out);
}

static void copy_blobs(const trial *t, const char *to) {
    char name[40];
    size_t i;
    make_folder(join(to, "steps").text);
    for (i = 1; i <= t->board->last.blobs; i++) {
        snprintf(name, sizeof name, "steps/%zu", i);
        copy_file(kept(t, name).text, join(to, name).text);
    }
}

static void put_program(const trial *t, FILE *out, const char *rule_id, const char *text) {
    put_comment(out, rule_id);
    put_comment(out, text);
    fwrite(again_begin, 1, sizeof again_begin, out);
    if (t->board->sessions == 0) put_changes(t, out);
    put_registration(t, out);
    put_steps(t, out);
    put_finish(t, out, rule_id, text);
}

const char *keep_failure(const trial *t, const char *rule_id, const char *text) {
    const path_text to = join(t->wanted.keep, rule_id);
    FILE *out;
    if (file_exists(to.text)) return ""; /* the first failure of a rule is kept */
    copy_tree(t->folder, to.text);
    out = fopen(join(to.text, "again.py").text, "w");
    if (!out) return "";
    put_program(t, out, rule_id, text);
    fclose(out);
    copy_blobs(t, to.text);
    return lacking(t, rule_id, text);
}
