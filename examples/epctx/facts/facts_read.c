/* Reads files of facts. A line is "key: value" and belongs to the block above it; a line that
 * begins with blanks goes on with the value; '#' begins a comment; an empty line ends a block, and
 * so does a first line of several pairs with "; " between them. facts.awk reads the same at build
 * time. */
#include "facts_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct source {
    facts_read *r;
    const char *file;
    uint32_t line;
    const fact *defaults;
    bool begun, ended; /* the head was read; the rest is not to be read */
    /* The open block: its first line, pairs, where its last value ends; `bad`: not to be kept. */
    uint32_t first;
    fact_pair pairs[FACTS_MOST_PAIRS];
    size_t count;
    char *end;
    bool bad;
} source;

#define PROBLEM(s, ...) (facts_problem((s)->r, (s)->file, (s)->line, __VA_ARGS__), (s)->bad = true)

/* -- blocks -- */

static bool is_key(const char *text) {
    size_t i;
    for (i = 0; text[i] != '\0'; i++)
        if ((text[i] < 'a' || text[i] > 'z') && text[i] != '_') return false;
    return i > 0 && i < 32;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static char *trimmed(char *text, char *end) {
    while (end > text && is_blank(end[-1])) end--;
    *end = '\0';
    while (is_blank(*text)) text++;
    return text;
}

/* "key: value" into the open block; `end` is behind it. */
static void take(source *s, char *text, char *end) {
    char *colon, *value;
    size_t i;
    *end = '\0';
    colon = strchr(text, ':');
    if (colon != NULL) *colon = '\0';
    if (colon == NULL || !is_key(text)) {
        PROBLEM(s, "expected 'key: value', found '%.40s'", text);
        return;
    }
    value = trimmed(colon + 1, end);
    if (*value == '\0') {
        PROBLEM(s, "'%s' has no value", text);
        return;
    }
    for (i = 0; i < s->count; i++)
        if (strcmp(s->pairs[i].key, text) == 0) {
            PROBLEM(s, "'%s' stands twice in a block", text);
            return;
        }
    if (s->count == FACTS_MOST_PAIRS) {
        PROBLEM(s, "a block has at most %d lines", FACTS_MOST_PAIRS);
        return;
    }
    s->pairs[s->count].key = text;
    s->pairs[s->count++].value = value;
    s->end = value + strlen(value);
}

/* Puts the words of a line behind the last value. */
static void go_on(source *s, char *text, char *end) {
    text = trimmed(text, end);
    *s->end++ = ' ';
    memmove(s->end, text, strlen(text) + 1);
    s->end += strlen(s->end);
}

/* The head of a file says which format it has, and what it replaces. */
static void take_head(source *s, const fact *f) {
    facts_read *r = s->r;
    epctx_str rest = epctx_str_of(fact_get(f, "replace")), kind;
    s->begun = true;
    while (fact_next_word(&rest, &kind)) {
        if (r->replaced_count == sizeof r->replaced / sizeof r->replaced[0]) {
            facts_problem(r, f->file, f->line, "replaces too many kinds: write 'replace: all'");
            return;
        }
        r->replaced[r->replaced_count] = epctx_arena_copy(&r->arena, kind);
        if (r->replaced[r->replaced_count] == NULL)
            r->no_memory = true;
        else if (!epctx_str_is(kind, "all") && !facts_is_kind(r->replaced[r->replaced_count]))
            facts_problem(r, f->file, f->line, "replace: there is no kind '%.60s' of facts",
                          r->replaced[r->replaced_count]);
        r->replaced_count++;
    }
}

static fact *make_fact(source *s) {
    epctx_arena *arena = &s->r->arena;
    fact *f = (fact *)epctx_arena_alloc(arena, sizeof *f);
    fact_pair *pairs = (fact_pair *)epctx_arena_array(arena, s->count, sizeof *pairs);
    if (f == NULL || pairs == NULL) return NULL;
    memcpy(pairs, s->pairs + 1, (s->count - 1) * sizeof *pairs);
    f->kind = s->pairs[0].key;
    f->name = s->pairs[0].value;
    f->pairs = pairs;
    f->count = (uint32_t)(s->count - 1);
    f->file = s->file;
    f->line = s->first;
    return f;
}

static void add(source *s, fact *f) {
    facts_read *r = s->r;
    if (r->count == FACTS_MOST) {
        facts_problem(r, s->file, f->line, "there are more than %d facts", FACTS_MOST);
        s->ended = true;
        return;
    }
    if (r->count == r->room) {
        const size_t room = 2 * r->room + 64;
        fact **more = (fact **)epctx_arena_array(&r->arena, room, sizeof *more);
        if (more == NULL) {
            r->no_memory = true;
            return;
        }
        if (r->count > 0) memcpy(more, r->facts, r->count * sizeof *more);
        r->facts = more;
        r->room = room;
    }
    r->facts[r->count++] = f;
}

static void end_block(source *s) {
    fact *f;
    if (s->count == 0 || s->bad) {
        s->count = 0;
        s->bad = false;
        return;
    }
    f = make_fact(s);
    s->count = 0;
    if (f == NULL) {
        s->r->no_memory = true;
        return;
    }
    if ((strcmp(f->kind, "facts") == 0) == s->begun) {
        facts_problem(s->r, s->file, f->line, "'facts: 1' must be the first block, and no other");
        s->ended = true;
        return;
    }
    if (!s->begun && strcmp(f->name, "1") != 0) {
        facts_problem(s->r, s->file, f->line,
                      "this is format '%.20s' of facts, but this epctx reads format 1", f->name);
        s->ended = true;
        return;
    }
    if (strcmp(f->kind, "default") != 0) f->defaults = s->defaults;
    facts_judge_one(s->r, f);
    if (!s->begun)
        take_head(s, f);
    else if (strcmp(f->kind, "default") == 0)
        s->defaults = f;
    else
        add(s, f);
}

/* A block of one line: pairs with "; " between them, or one with ';' behind it. */
static bool take_line(source *s, char *text, char *end) {
    char *next = strstr(text, "; ");
    if (next == NULL && end[-1] != ';') return false;
    if (end[-1] == ';') *--end = '\0';
    for (; next != NULL; next = strstr(text, "; ")) {
        take(s, text, next);
        text = next + 2;
    }
    take(s, text, end);
    end_block(s);
    return true;
}

/* -- lines -- */

static bool is_shown(epctx_str line) {
    uint32_t before = 0;
    size_t at = 0, size;
    for (; at < line.size; at += size) {
        const uint32_t code = epctx_str_char(line, at, &size);
        if (code != '\t' && !epctx_char_is_shown(code, before)) return false;
        before = code;
    }
    return true;
}

static void take_text(source *s, char *line, char *end) {
    epctx_str text;
    while (end > line && is_blank(end[-1])) end--;
    *end = '\0';
    text.data = line;
    text.size = (size_t)(end - line);
    if (text.size == 0) {
        end_block(s);
    } else if (!is_shown(text)) {
        PROBLEM(s, "has a character that is no text");
    } else if (*line == '#' || s->bad) {
        return;
    } else if (!is_blank(*line)) {
        if (s->count == 0) s->first = s->line;
        if (s->count > 0 || !take_line(s, line, end)) take(s, line, end);
    } else if (s->count == 0) {
        PROBLEM(s, "this line goes on, but nothing is there to go on");
    } else {
        go_on(s, line, end);
    }
}

/* Reads the bytes of a file, which are of the arena, with one more behind them. */
static void read_text(facts_read *r, const char *file, char *text, size_t size) {
    source *s = (source *)epctx_arena_alloc(&r->arena, sizeof *s);
    char *end = text + size;
    if (s == NULL) {
        r->no_memory = true;
        return;
    }
    s->r = r;
    s->file = file;
    while (text < end && !s->ended && !r->no_memory) {
        char *stop = (char *)memchr(text, '\n', (size_t)(end - text));
        if (stop == NULL) stop = end;
        s->line++;
        take_text(s, text, stop);
        text = stop + 1;
    }
    if (!s->ended) end_block(s);
    if (!s->begun && !s->ended && r->problems == 0)
        facts_problem(r, file, 1, "expected the head 'facts: 1'");
}

/* -- files -- */

static void read_file(facts_read *r, const char *path, const epctx_file_info *info) {
    const epctx_io *io = r->io;
    epctx_mapping bytes;
    epctx_error error;
    char *text;
    if (info->kind != EPCTX_FILE_REGULAR) {
        facts_problem(r, path, 0, "%s",
                      info->kind == EPCTX_FILE_NONE ? "does not exist"
                                                    : "is neither a file nor a folder");
        return;
    }
    if (info->size > FACTS_MOST_BYTES) {
        facts_problem(r, path, 0, "has more than %d bytes", FACTS_MOST_BYTES);
        return;
    }
    if (io->map_fn(io->user, NULL, path, true, &bytes, &error) != EPCTX_OK) {
        facts_problem(r, path, 0, "%s", error.message);
        return;
    }
    text = (char *)epctx_arena_alloc(&r->arena, bytes.size + 1);
    if (text != NULL && bytes.size > 0) memcpy(text, bytes.data, bytes.size);
    if (text == NULL)
        r->no_memory = true;
    else if (bytes.size != info->size)
        facts_problem(r, path, 0, "has changed while it was read");
    else
        read_text(r, path, text, bytes.size);
    io->unmap_fn(io->user, &bytes);
}

typedef struct folder {
    facts_read *r;
    const char *path;
    char *files[FACTS_MOST_FILES];
    size_t count;
    bool too_many;
} folder;

static bool note_file(void *state, const char *name) {
    folder *f = (folder *)state;
    char path[EPCTX_PATH_MAX];
    const size_t size = strlen(name);
    if (size < 7 || strcmp(name + size - 6, ".facts") != 0 || name[0] == '.') return true;
    f->too_many = f->count == FACTS_MOST_FILES;
    if (f->too_many) return false;
    if (epctx_path_join(epctx_str_of(f->path), epctx_str_of(name), path, sizeof path, NULL) !=
        EPCTX_OK)
        return true;
    f->files[f->count] = epctx_arena_copy(&f->r->arena, epctx_str_of(path));
    f->r->no_memory |= f->files[f->count] == NULL;
    f->count++;
    return !f->r->no_memory;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_folder(facts_read *r, const char *path) {
    const epctx_io *io = r->io;
    folder *f = (folder *)epctx_arena_alloc(&r->arena, sizeof *f);
    epctx_file_info info;
    epctx_error error;
    size_t i;
    if (f == NULL) {
        r->no_memory = true;
        return;
    }
    f->r = r;
    f->path = path;
    if (io->list_fn == NULL)
        facts_problem(r, path, 0, "folders cannot be read here");
    else if (io->list_fn(io->user, path, note_file, f, &error) != EPCTX_OK)
        facts_problem(r, path, 0, "%s", error.message);
    else if (f->too_many)
        facts_problem(r, path, 0, "has more than %d files *.facts", FACTS_MOST_FILES);
    else if (f->count == 0)
        facts_problem(r, path, 0, "this folder has no file *.facts");
    if (r->no_memory || r->problems > 0) return;
    qsort(f->files, f->count, sizeof f->files[0], compare_names);
    for (i = 0; i < f->count && !r->no_memory; i++)
        if (io->stat_fn(io->user, f->files[i], &info, &error) != EPCTX_OK)
            facts_problem(r, f->files[i], 0, "%s", error.message);
        else
            read_file(r, f->files[i], &info);
}

void facts_read_path(facts_read *r, const char *path) {
    const epctx_io *io = r->io;
    const char *own = epctx_arena_copy(&r->arena, epctx_str_of(path));
    epctx_file_info info;
    epctx_error error;
    r->path = own;
    if (own == NULL) {
        r->no_memory = true;
        return;
    }
    if (io->stat_fn(io->user, own, &info, &error) != EPCTX_OK)
        facts_problem(r, own, 0, "%s", error.message);
    else if (info.kind == EPCTX_FILE_FOLDER)
        read_folder(r, own);
    else
        read_file(r, own, &info);
}
