/* tables.c - fills the tables of the guides from those of the library and the tool:
 *
 *     guide_tables PAGE.md epctx.h >NEW.md          (`make guide-tables` does so with every page)
 *
 * prints PAGE.md with everything between a line "<!-- table NAME -->" and the next "<!-- end -->"
 * replaced by the table NAME; in the manual page the lines are .\" table NAME and .\" end. What a
 * trait means is in comments of epctx.h and taken from there. */
#define _POSIX_C_SOURCE 200809L

#include "../epctx/core/options.h"
#include "../epctx/core/rules.h"
#include "../epctx/facts/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *header; /* the text of epctx.h */

static void stop(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("guide_tables: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static char *read_file(const char *path) {
    size_t size = 0, room = 0;
    char *text = NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL) stop("%s: cannot open", path);
    do {
        room = room * 2 + 4096;
        text = (char *)realloc(text, room);
        if (text == NULL) stop("%s: no memory", path);
        size += fread(text + size, 1, room - 1 - size, file);
    } while (size == room - 1);
    if (ferror(file)) stop("%s: cannot read", path);
    fclose(file);
    text[size] = '\0';
    return text;
}

/* -- text -- */

/* Prose for a cell: what Markdown would take for markup is escaped, outside of `code`. */
static void put_char(char c, bool *code) {
    if (c == '`') *code = !*code;
    if (c == '|' || (!*code && strchr("*<>\\[]#", c) != NULL)) putchar('\\');
    putchar(c);
}

static void put_text(const char *text) {
    bool code = false;
    for (; *text != '\0'; text++) put_char(*text, &code);
}

/* A comment of C, from behind its opening to its end or to `end`, as one line. */
static void put_comment(const char *at, const char *end) {
    bool code = false;
    for (at += strspn(at, " "); at < end && strncmp(at, "*/", 2) != 0;) {
        const size_t space = strspn(at, " \n");
        if (space == 0) {
            put_char(*at++, &code);
            continue;
        }
        if (memchr(at, '\n', space) != NULL && strncmp(at + space, "* ", 2) == 0) at += 2;
        at += space;
        if (at < end && strncmp(at, "*/", 2) != 0) putchar(' ');
    }
}

/* Code in a cell of a table. */
static void put_cell(const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
}

static void put_code(const char *text) {
    if (*text != '\0')
        printf("`%s`", text);
    else
        putchar('-');
}

/* -- rules -- */

static void put_rules(epctx_severity severity) {
    char holds[RULE_VERSIONS];
    int i;
    puts("| id | name | problem | fix |\n|---|---|---|---|");
    for (i = 0; i < RULE_COUNT; i++) {
        const epctx_rule_info rule = rule_info(i);
        if (rule.severity != severity) continue;
        printf("| <a id=\"%s\"></a>%s | %s | ", rule.id, rule.id, rule.name);
        rule_versions(&rule, holds);
        put_text(rule.text);
        put_text(holds);
        fputs(" | ", stdout);
        put_text(rule.fix);
        puts(" |");
    }
}

static void put_errors(void) {
    put_rules(EPCTX_SEVERITY_ERROR);
}

static void put_warnings(void) {
    put_rules(EPCTX_SEVERITY_WARNING);
}

static void put_hints(void) {
    put_rules(EPCTX_SEVERITY_HINT);
}

/* -- session options -- */

/* A list: keys and constants are too long for a table. */
static void put_options(uint32_t phases) {
    static const char *const types[] = {"switch",    "text",   "file",  "folder",
                                        "file name", "number", "choice"};
    size_t count, i;
    const epctx_option_info *all = epctx_option_list(&count);
    for (i = 0; i < count; i++) {
        if (all[i].phases != phases) continue;
        printf("* `%s`: ", all[i].key);
        put_text(all[i].text);
        printf("<br>\n  %s", types[all[i].type]);
        if (all[i].allowed[0] != '\0') printf(" `%s`", all[i].allowed);
        if (all[i].fallback[0] != '\0') printf(", default `%s`", all[i].fallback);
        if (all[i].ort[0] != '\0') printf("; `kOrtSessionOption%s`", all[i].ort);
        putchar('\n');
    }
}

static void put_generating(void) {
    put_options(EPCTX_PHASE_GENERATE);
}

static void put_loading(void) {
    put_options(EPCTX_PHASE_LOAD);
}

static void put_both(void) {
    put_options(EPCTX_PHASE_BOTH);
}

static void put_neither(void) {
    put_options(EPCTX_PHASE_NONE);
}

/* -- profiles -- */

typedef struct trait {
    char name[40];
    uint32_t bit;
    const char *text; /* of its comment in the header */
} trait;

static trait traits[32];
static size_t trait_count;

/* Lines `#define EPCTX_NAME 0x...u` and a comment, up to the next empty line. */
static void read_traits(void) {
    const char *at = strstr(header, "/* Bits of epctx_profile.traits. */\n");
    if (at == NULL) stop("epctx.h: no bits of epctx_profile.traits");
    for (at = strchr(at, '\n') + 1; *at != '\n'; at = strchr(at, '\n') + 1) {
        trait *out = &traits[trait_count];
        if (strncmp(at, "#define ", 8) != 0) continue; /* a comment goes on */
        if (trait_count == 32 ||
            sscanf(at, "#define EPCTX_TRAIT_%39s 0x%xu", out->name, &out->bit) != 2)
            stop("epctx.h: not a trait: %.40s", at);
        out->text = strstr(at, "/*") + 2;
        trait_count++;
    }
}

static void put_traits(void) {
    size_t i;
    puts("| trait | meaning |\n|---|---|");
    for (i = 0; i < trait_count; i++) {
        printf("| `EPCTX_TRAIT_%s` | ", traits[i].name);
        put_comment(traits[i].text, traits[i].text + strlen(traits[i].text));
        puts(" |");
    }
}

static void put_names(const char *const *names, size_t most) {
    size_t i;
    put_code(names[0] != NULL ? names[0] : "");
    for (i = 1; i < most && names[i] != NULL; i++) printf(", `%s`", names[i]);
}

static void put_required(uint32_t required) {
    static const char *const names[EPCTX_EPNODE_ATTR_COUNT] = {
#define NAME_OF(id, name, type, member) name,
        EPCTX_EPNODE_ATTR_LIST(NAME_OF)
#undef NAME_OF
    };
    const char *stored[EPCTX_EPNODE_ATTR_COUNT] = {NULL};
    size_t i, count = 0;
    for (i = 0; i < EPCTX_EPNODE_ATTR_COUNT; i++)
        if ((required >> i & 1) != 0) stored[count++] = names[i];
    put_names(stored, EPCTX_EPNODE_ATTR_COUNT);
}

static void put_profile_traits(const epctx_profile *profile) {
    uint32_t left = profile->traits;
    size_t i;
    if (left == 0) putchar('-');
    for (i = 0; i < trait_count; i++) {
        if ((left & traits[i].bit) == 0) continue;
        left &= ~traits[i].bit;
        printf("`%s`%s", traits[i].name, left != 0 ? ", " : "");
    }
    if (left != 0) stop("profile %s has a trait without a name, 0x%x", profile->name, left);
}

static void put_facts(const epctx_profile *profile) {
    const fact *f = facts_find("profile", profile->name);
    if (f == NULL) stop("no facts about the profile %s", profile->name);
    put_text(fact_get(f, "from"));
}

static void put_profile(const epctx_profile *profile) {
    static const char *const keys[] = {"none: one graph in a context", "the node's name",
                                       "`partition_name`"};
    printf("### %s\n\n| what | value |\n|---|---|\n| `source` | ", profile->name);
    put_names(profile->sources, 4);
    printf(" |\n| key of a graph | %s |\n| attributes that must be stored | ", keys[profile->key]);
    put_required(profile->required);
    fputs(" |\n| file name of the binary | ", stdout);
    put_code(profile->binary);
    fputs(" |\n| other files beside the model | ", stdout);
    put_names(profile->sidecars, 4);
    printf(" |\n| compatibility strings | %s |\n| traits | ",
           profile->compat_fn != NULL ? "by a rule of the EP" : "key by key");
    put_profile_traits(profile);
    fputs(" |\n\nSources: ", stdout);
    put_facts(profile);
    putchar('\n');
}

static void put_profiles(void) {
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++) {
        if (i > 0) putchar('\n');
        put_profile(&all[i]);
    }
}

/* What the facts abbreviate. */
static void put_origins(void) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("origin", &at)) != NULL) {
        printf("%s%s: ", at > 1 ? " " : "", f->name);
        put_text(fact_get(f, "is"));
        putchar('.');
    }
    putchar('\n');
}

/* -- commands -- */

/* Text as an argument of roff: no escapes, no line that is a request. */
static void put_roff(const char *text) {
    bool start = true;
    for (; *text != '\0'; text++) {
        if (start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        start = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

/* The usage line as the tool prints it. */
static char *usage_of(const cli_command *command) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL) stop("no memory");
    cli_put_usage(file, command);
    if (fclose(file) != 0) stop("no memory");
    text[strcspn(text, "\n") == size ? size : size - 1] = '\0';
    return text;
}

static bool is_own(const cli_option *option) {
    return option->use != CLI_OLD && strcmp(option->commands, "*") != 0;
}

/* Tables and examples in help keep their lines. */
static void put_man_text(const char *text) {
    puts(".nf");
    put_roff(text);
    puts(".fi");
}

static void put_man_command(const cli_command *command) {
    const cli_option *option = NULL;
    char *usage = usage_of(command);
    printf(".SS \"");
    put_roff(command->name);
    puts("\"\n.nf");
    put_roff(usage + strlen("usage: "));
    puts("\n.fi\n.PP");
    put_man_text(command->about);
    free(usage);
    while ((option = cli_next_option(command, option)) != NULL) {
        if (!is_own(option)) continue;
        fputs(".TP\n.B ", stdout);
        put_roff(option->names);
        if (option->argument[0] != '\0') putchar(' ');
        put_roff(option->argument);
        putchar('\n');
        put_roff(option->help);
        putchar('\n');
    }
    if (command->more == NULL) return;
    puts(".PP");
    put_man_text(command->more);
}

static void put_man(void) {
    size_t i, k;
    for (i = 0; i < CLI_GROUP_COUNT; i++)
        for (k = 0; cli_commands[k] != NULL; k++)
            if (cli_commands[k]->group == (cli_group)i) put_man_command(cli_commands[k]);
}

static void put_command_page(const cli_command *command) {
    const cli_option *option = NULL;
    bool first = true;
    printf("### %s\n\n`epctx %s [OPTION]... ", command->name, command->name);
    put_cell(command->operands);
    printf("`: %s.\n", command->summary);
    while ((option = cli_next_option(command, option)) != NULL) {
        if (!is_own(option)) continue;
        if (first) puts("\n| option | values | meaning |\n|---|---|---|");
        first = false;
        printf("| `%s%s", option->names, option->argument[0] != '\0' ? " " : "");
        put_cell(option->argument);
        fputs("` | ", stdout);
        put_code(option->values[0] == '@' ? "" : option->values);
        fputs(" | ", stdout);
        put_text(option->help);
        puts(" |");
    }
}

static void put_commands(void) {
    size_t i, k;
    for (i = 0; i < CLI_GROUP_COUNT; i++) {
        printf("%s## %.*s\n", i > 0 ? "\n" : "", (int)strlen(cli_group_titles[i]) - 1,
               cli_group_titles[i]);
        for (k = 0; cli_commands[k] != NULL; k++) {
            if (cli_commands[k]->group != (cli_group)i) continue;
            putchar('\n');
            put_command_page(cli_commands[k]);
        }
    }
}

/* -- pages -- */

static const struct table {
    const char *name;
    void (*put_fn)(void);
} tables[] = {
    {"errors", put_errors},         {"warnings", put_warnings}, {"hints", put_hints},
    {"generating", put_generating}, {"loading", put_loading},   {"both", put_both},
    {"neither", put_neither},       {"traits", put_traits},     {"origins", put_origins},
    {"profiles", put_profiles},     {"commands", put_commands}, {"man", put_man},
};

/* How a page marks its tables: the start of the line, the whole of it, and where it ends. */
static const struct mark {
    const char *start, *line, *end, *space;
} marks[] = {
    {"<!-- table ", "<!-- table %39s -->", "<!-- end -->\n", "\n"},
    {".\\\" table ", ".\\\" table %39s", ".\\\" end\n", ""}, /* the manual page */
};

static void put_table(const struct mark *mark, const char *line, const char *page) {
    char name[40] = "";
    size_t i = 0;
    sscanf(line, mark->line, name);
    while (i < sizeof tables / sizeof *tables && strcmp(name, tables[i].name) != 0) i++;
    if (i == sizeof tables / sizeof *tables) stop("%s: no table '%s'", page, name);
    fputs(mark->space, stdout);
    tables[i].put_fn();
    fputs(mark->space, stdout);
}

int main(int argc, char **argv) {
    const char *at, *next, *end;
    size_t i;
    if (argc != 3) stop("expected PAGE.md epctx.h");
    header = read_file(argv[2]);
    read_traits();
    for (at = read_file(argv[1]); *at != '\0'; at = next) {
        next = at + strcspn(at, "\n");
        next += *next == '\n';
        fwrite(at, 1, (size_t)(next - at), stdout);
        for (i = 0; i < sizeof marks / sizeof *marks; i++) {
            if (strncmp(at, marks[i].start, strlen(marks[i].start)) != 0) continue;
            put_table(&marks[i], at, argv[1]);
            end = strstr(next, marks[i].end);
            if (end == NULL) stop("%s: a table without an end", argv[1]);
            next = end;
        }
    }
    return fflush(stdout) != 0 || ferror(stdout);
}
