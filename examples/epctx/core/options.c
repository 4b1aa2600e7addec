/* The table of options: reading a command line, and telling what there is. */
#include "options.h"
#include "facts/facts.h"
#include "rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const cli_option rows[] = {
#define OPTION(kind, use, member, names, argument, values, commands, help) \
    {CLI_##kind, CLI_##use, offsetof(cli_args, member), names, argument, values, commands, help},
#define AGAIN OPTION
#define OLD(kind, member, names, commands, help) \
    {CLI_##kind, CLI_OLD, offsetof(cli_args, member), names, "", "", commands, help},
#include "options.def"
#undef OPTION
#undef AGAIN
#undef OLD
};

enum { MOST_SOURCES = sizeof((epctx_profile *)0)->sources / sizeof(char *) };
enum { ROW_COUNT = sizeof rows / sizeof rows[0], MOST_NAME = 64 };

/* ---------------------------------------------------------------- the table */

epctx_str cli_next_word(const char **rest) {
    epctx_str word;
    *rest += strspn(*rest, " ");
    word.data = *rest;
    word.size = strcspn(*rest, " ");
    *rest += word.size;
    return word;
}

static bool has_word(const char *list, epctx_str wanted) {
    epctx_str word;
    while ((word = cli_next_word(&list)).size > 0)
        if (epctx_str_eq(word, wanted)) return true;
    return false;
}

static bool is_for(const cli_option *option, const char *command) {
    return strcmp(option->commands, "*") == 0 || has_word(option->commands, epctx_str_of(command));
}

const cli_option *cli_next_option(const cli_command *command, const cli_option *last) {
    const cli_option *option = last == NULL ? rows : last + 1;
    for (; option < rows + ROW_COUNT; option++)
        if (is_for(option, command->name)) return option;
    return NULL;
}

/* The next of "-o, --output". */
static epctx_str next_name(const char **rest) {
    epctx_str name = cli_next_word(rest);
    if (name.size > 0 && name.data[name.size - 1] == ',') name.size--;
    return name;
}

static bool is_named(const cli_option *option, epctx_str text) {
    const char *rest = option->names;
    epctx_str name;
    while ((name = next_name(&rest)).size > 0)
        if (epctx_str_eq(name, text)) return true;
    return false;
}

static const cli_option *find_option(const cli_command *command, epctx_str text) {
    const cli_option *option = NULL;
    while ((option = cli_next_option(command, option)) != NULL)
        if (is_named(option, text)) return option;
    return NULL;
}

/* ---------------------------------------------------------------- telling */

/* Puts a piece of the usage line, on a new line where this one is full. */
static void put_piece(FILE *out, const char *piece, size_t *column) {
    enum { WIDTH = 80, INDENT = 13 };
    const size_t size = strlen(piece);
    if (size == 0) return;
    if (*column + 1 + size > WIDTH) {
        fprintf(out, "\n%*s", INDENT, "");
        *column = INDENT;
    } else {
        fputc(' ', out);
        ++*column;
    }
    fputs(piece, out);
    *column += size;
}

/* "-o OUT" */
static void name_option(epctx_text *text, const cli_option *option) {
    const char *rest = option->names;
    const epctx_str name = next_name(&rest);
    epctx_text_put_format(text, "%S%s%s", &name, option->argument[0] != '\0' ? " " : "",
                          option->argument);
}

/* Options of which one excludes the others make one piece; what every command has, none. */
static const cli_option *put_group(FILE *out, const cli_command *command, const cli_option *first,
                                   size_t *column) {
    char piece[512];
    epctx_text text = epctx_text_of(piece, sizeof piece);
    const cli_option *next = cli_next_option(command, first);
    const bool alone = next == NULL || next->use != CLI_OR, must = first->use == CLI_MUST;
    if (!alone || !must) epctx_text_put_format(&text, must ? "(" : "[");
    name_option(&text, first);
    for (; next != NULL && next->use == CLI_OR; next = cli_next_option(command, next)) {
        epctx_text_put_format(&text, " | ");
        name_option(&text, next);
    }
    if (!alone || !must) epctx_text_put_format(&text, must ? ")" : "]");
    if (first->kind == CLI_LIST) epctx_text_put_format(&text, "...");
    put_piece(out, piece, column);
    return next;
}

void cli_put_usage(FILE *out, const cli_command *command) {
    size_t column = strlen("usage: epctx ") + strlen(command->name);
    const cli_option *option = cli_next_option(command, NULL);
    fprintf(out, "usage: epctx %s", command->name);
    while (option != NULL)
        if (option->use == CLI_OLD || strcmp(option->commands, "*") == 0)
            option = cli_next_option(command, option);
        else
            option = put_group(out, command, option, &column);
    put_piece(out, command->operands, &column);
    fputc('\n', out);
}

static bool is_told(const cli_option *option) {
    return option->use != CLI_OLD && strcmp(option->commands, "*") != 0;
}

static size_t width_of(const cli_option *option) {
    return strlen(option->names) + (option->argument[0] != '\0' ? 1 : 0) + strlen(option->argument);
}

static void put_options(FILE *out, const cli_command *command) {
    enum { MOST = 22, GAP = 2 }; /* a longer name has a line of its own */
    const cli_option *option = NULL;
    size_t width = 0;
    while ((option = cli_next_option(command, option)) != NULL)
        if (is_told(option) && width_of(option) > width && width_of(option) <= MOST)
            width = width_of(option);
    if (width == 0) return;
    while ((option = cli_next_option(command, option)) != NULL) {
        const size_t own = width_of(option);
        if (!is_told(option)) continue;
        fprintf(out, "  %s%s%s", option->names, option->argument[0] != '\0' ? " " : "",
                option->argument);
        fprintf(out, own > width ? "\n%*s" : "%*s",
                (int)(own > width ? width + 2 * GAP : width - own + GAP), "");
        cli_put_wrapped(out, option->help, (int)(width + 2 * GAP));
    }
}

void cli_put_help(FILE *out, const cli_command *command) {
    cli_put_usage(out, command);
    fprintf(out, "\n%s\n", command->about);
    put_options(out, command);
    if (command->more != NULL) fprintf(out, "\n%s", command->more);
}

/* Whether they are files or folders, and no stream. */
static bool is_path(const char *values) {
    return strcmp(values, "@file") == 0 || strcmp(values, "@folder") == 0;
}

/* The values that a row calls "@profiles" and so on; files and folders the shell knows. */
static void put_values(const char *values) {
    static const char *const kinds[][2] = {{"@profiles", "profile"},
                                           {"@chips", "chip"},
                                           {"@products", "product"},
                                           {"@options", "option"}};
    size_t count, at = 0, i, k;
    const epctx_profile *all = epctx_profiles(&count);
    const fact *f;
    if (values[0] != '@' || is_path(values)) fputs(values, stdout);
    if (strcmp(values, "@stream") == 0) fputs("@file", stdout);
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        while (strcmp(values, kinds[i][0]) == 0 && (f = facts_next(kinds[i][1], &at)) != NULL)
            printf("%s ", f->name);
    for (i = 0; i < count && strcmp(values, "@eps") == 0; i++)
        for (k = 0; k < MOST_SOURCES && all[i].sources[k] != NULL; k++)
            printf("%s ", all[i].sources[k]);
    for (i = 0; i < RULE_COUNT && strcmp(values, "@rules") == 0; i++)
        printf("%s ", rule_info((int)i).id);
}

void cli_list_options(const cli_command *command) {
    const cli_option *option = NULL;
    while ((option = cli_next_option(command, option)) != NULL) {
        const char *rest = option->names;
        epctx_str name;
        while (option->use != CLI_OLD && (name = next_name(&rest)).size > 0) {
            printf("%.*s\t%s\t", (int)name.size, name.data, option->argument);
            put_values(option->values);
            printf("\t%s\n", option->help);
        }
    }
}

/* ---------------------------------------------------------------- reading */

/* A command line that is being read. */
typedef struct reader {
    const cli_command *command;
    char **argv;
    int argc, at;
    cli_args args;
    const cli_option *other; /* one that does not go with an option that stands alone */
} reader;

/* Prints what is wrong, and the usage. */
CLI_FORMAT(2) static bool refuse(const reader *r, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_misuse("%s", text);
    cli_put_usage(stderr, r->command);
    return false;
}

/* The commands that have this option, with blanks between; empty: none has. */
static void put_owners(epctx_text *out, epctx_str name) {
    const char *between = "";
    size_t i;
    for (i = 0; i < ROW_COUNT; i++) {
        const char *rest = rows[i].commands;
        epctx_str word;
        if (rows[i].use == CLI_OLD || !is_named(&rows[i], name)) continue;
        while ((word = cli_next_word(&rest)).size > 0) {
            epctx_text_put_format(out, "%s%S", between, &word);
            between = " ";
        }
    }
}

/* "--name", which is the last of the names; NULL: there is none. */
static const char *long_name(const cli_option *option) {
    return strstr(option->names, "--");
}

static bool unknown_option(const reader *r, const char *text, epctx_str name) {
    cli_guess guess = cli_guess_of(name);
    const cli_option *option = NULL;
    char owners[320];
    epctx_text text_of_owners = epctx_text_of(owners, sizeof owners);
    while ((option = cli_next_option(r->command, option)) != NULL)
        if (option->use != CLI_OLD && long_name(option) != NULL)
            cli_guess_word(&guess, long_name(option));
    put_owners(&text_of_owners, name);
    if (guess.best == NULL && owners[0] != '\0')
        return refuse(r, "unknown option %s: it belongs to %s", text, owners);
    return refuse(r, "unknown option %s%s", text, cli_guess_hint(&guess));
}

bool cli_number_of(const char *option, const char *text, uint64_t least, uint64_t most,
                   uint64_t *value) {
    char *end = NULL;
    unsigned long long number;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < least ||
        number > most) {
        cli_misuse("%s: '%s' is not a number in %llu..%llu", option, text,
                   (unsigned long long)least, (unsigned long long)most);
        return false;
    }
    *value = number;
    return true;
}

/* "1..64", or "0.." without an end. */
static bool read_number(const cli_option *option, const char *name, const char *text,
                        cli_number *number) {
    char *end = NULL;
    const uint64_t least = strtoull(option->values, &end, 10);
    const uint64_t most = end[2] != '\0' ? strtoull(end + 2, NULL, 10) : UINT64_MAX;
    number->given = cli_number_of(name, text, least, most, &number->value);
    return number->given;
}

static bool read_choice(const cli_option *option, const char *name, const char *text,
                        cli_choice *choice) {
    const char *rest = option->values;
    cli_guess guess = cli_guess_of(epctx_str_of(text));
    char words[16][32], list[256];
    epctx_text all = epctx_text_of(list, sizeof list);
    epctx_str word;
    size_t count = 0;
    while ((word = cli_next_word(&rest)).size > 0 && count < sizeof words / sizeof words[0]) {
        *choice = (cli_choice)count + 1;
        if (epctx_str_is(word, text)) return true;
        snprintf(words[count], sizeof words[count], "%.*s", (int)word.size, word.data);
        cli_guess_word(&guess, words[count]);
        epctx_text_put_format(&all, "%s%s",
                              count == 0      ? ""
                              : *rest != '\0' ? ", "
                                              : " or ",
                              words[count]);
        count++;
    }
    cli_misuse("%s must be %s, not '%s'%s", name, list, text, cli_guess_hint(&guess));
    return false;
}

/* Whether the row has the words of which a value is one. */
static bool has_words(const cli_option *option) {
    return option->values[0] != '\0' && option->values[0] != '@';
}

/* `text` NULL: there is no value. */
static bool take_value(reader *r, const cli_option *option, const char *name, const char *text) {
    void *member = (char *)&r->args + option->at;
    cli_list *list = (cli_list *)member;
    cli_choice ignored;
    switch (option->kind) {
    case CLI_FLAG: *(cli_flag *)member = true; return true;
    case CLI_VALUE: *(cli_value *)member = text; return true;
    case CLI_LIST:
        if (list->count == CLI_MOST_LISTED) return refuse(r, "too many values for %s", name);
        if (has_words(option) && !read_choice(option, name, text, &ignored)) return false;
        list->at[list->count] = r->at;
        list->items[list->count++] = text;
        return true;
    case CLI_CHOICE: return read_choice(option, name, text, (cli_choice *)member);
    case CLI_NUMBER: return read_number(option, name, text, (cli_number *)member);
    default: return false;
    }
}

static bool is_value_next(const reader *r) {
    return r->at < r->argc && r->argv[r->at][0] != '-';
}

/* Whether the text behind an option without its value is the next option. */
static bool is_option(const reader *r, const char *text) {
    const epctx_str name = {text, strcspn(text, "=")};
    return find_option(r->command, name) != NULL;
}

/* Whether this option, perhaps under another name, has a value already that cannot be added to. */
static bool has_value(const reader *r, const cli_option *option) {
    const void *member = (const char *)&r->args + option->at;
    switch (option->kind) {
    case CLI_VALUE: return *(const cli_value *)member != NULL;
    case CLI_CHOICE: return *(const cli_choice *)member != 0;
    case CLI_NUMBER: return ((const cli_number *)member)->given;
    default: return false;
    }
}

uint64_t cli_number_or(cli_number number, uint64_t value) {
    return number.given ? number.value : value;
}

/* Reads the option at argv[at] and moves behind it. */
static bool read_option(reader *r) {
    const char *text = r->argv[r->at];
    const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    const epctx_str name = {text, equals != NULL ? (size_t)(equals - text) : strlen(text)};
    const cli_option *option = find_option(r->command, name);
    char shown[MOST_NAME];
    const char *value = NULL;
    if (option == NULL) return unknown_option(r, text, name);
    snprintf(shown, sizeof shown, "%.*s", (int)name.size, name.data);
    if (has_value(r, option))
        return refuse(r, "option given twice (perhaps under two names): %s", shown);
    if (option->use == CLI_OLD)
        cli_say("epctx: warning: %s %s NAME is now called %s; next, %s will be a library or an EP "
                "of ONNX Runtime\n",
                r->command->name, shown, option->help, shown);
    if (option->kind == CLI_FLAG && equals != NULL)
        return refuse(r, "this option takes no value: %s", shown);
    r->at++;
    if (option->use == CLI_ALONE && equals == NULL &&
        (option->kind == CLI_FLAG || !is_value_next(r))) {
        r->args.alone = true;
        if (option->kind != CLI_FLAG) return true;
    } else if (strcmp(option->commands, "*") != 0 && strcmp(option->names, "--json") != 0) {
        r->other = option;
    }
    if (option->kind != CLI_FLAG) {
        value = equals != NULL ? equals + 1 : r->at < r->argc ? r->argv[r->at++] : NULL;
        if (value == NULL) return refuse(r, "missing value for %s", shown);
        if (equals == NULL && is_option(r, value))
            return refuse(r, "missing value for %s: %s is an option", shown, value);
        if (*value == '\0' && option->values[0] == '@')
            return refuse(r, "the value of %s is empty", shown);
        if (strcmp(value, "-") == 0 && is_path(option->values))
            return refuse(r,
                          "%s - is neither standard input nor output here; write ./- for a file "
                          "of that name",
                          shown);
    }
    return take_value(r, option, shown, value);
}

/* The operands move to the front of the arguments. */
static bool read_all(reader *r) {
    const cli_command *command = r->command;
    bool options_end = false;
    while (r->at < r->argc) {
        const char *text = r->argv[r->at];
        if (!options_end && strcmp(text, "--") == 0) {
            options_end = true;
            r->at++;
        } else if (!options_end && text[0] == '-' && text[1] != '\0') {
            if (!read_option(r)) return false;
        } else if (strcmp(text, "-") == 0 &&
                   (!command->dash || r->args.count + 1 < command->most)) {
            return refuse(r, "this command does not read standard input; write ./- for a file of "
                             "that name: -");
        } else if (command->most > 0 ? r->args.count == command->most : r->args.alone) {
            return refuse(r, "too many arguments: %s", text);
        } else {
            r->argv[r->args.count++] = r->argv[r->at++];
        }
    }
    if (r->args.count < command->least && !r->args.alone) return refuse(r, "missing argument");
    if (r->args.alone && r->other != NULL)
        return refuse(r, "%s does not go with an option that lists something", r->other->names);
    r->args.operands = (const char *const *)r->argv;
    return true;
}

/* Wherever it stands, and whatever is wrong besides. */
static bool asks_help(int argc, char **argv) {
    int i;
    for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

static bool load_facts(const cli_list *files) {
    epctx_error error;
    size_t i;
    for (i = 0; i < files->count; i++) {
        if (facts_load(files->items[i], &error) == EPCTX_OK) continue;
        cli_misuse("--facts: %s; nothing of it is used", error.message);
        return false;
    }
    return true;
}

int cli_call(const cli_command *command, int argc, char **argv) {
    reader r;
    memset(&r, 0, sizeof r);
    r.command = command;
    r.argv = argv;
    r.argc = argc;
    if (command->failed != 0) cli_own_codes(command->failed);
    if (asks_help(argc, argv)) {
        cli_put_help(stdout, command);
        return CLI_OK;
    }
    if (argc == 1 && strcmp(argv[0], "--list-options") == 0) {
        cli_list_options(command);
        return CLI_OK;
    }
    if (!read_all(&r)) return CLI_USAGE;
    if (r.args.no_progress) cli_progress_forbid();
    if (r.args.hugging_face) cli_set_path_flags(EPCTX_PATH_HUGGING_FACE);
    if (command->group == CLI_LOOK || command->group == CLI_JUDGE) cli_only_reads();
    return load_facts(&r.args.facts) ? command->run(&r.args) : CLI_USAGE;
}
