/* Command line of the epctx tool, and what its commands ask of models. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "facts/facts.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GUESS_ROOM = sizeof((cli_guess *)0)->text, NO_DASH = INT32_MAX };

/* Two for every letter to add, remove or replace to make one word of the other, one for two
 * neighbours that change places. */
static size_t distance_of(const char *a, const char *b) {
    enum { SWAP = 1, CHANGE = 2 };
    size_t rows[3][GUESS_ROOM];
    size_t width = strlen(b), i, k;
    for (k = 0; k <= width; k++) rows[0][k] = k * CHANGE;
    for (i = 1; i <= strlen(a); i++) {
        size_t *row = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3];
        row[0] = i * CHANGE;
        for (k = 1; k <= width; k++) {
            size_t best = last[k - 1] + (a[i - 1] != b[k - 1] ? CHANGE : 0);
            if (best > last[k] + CHANGE) best = last[k] + CHANGE;
            if (best > row[k - 1] + CHANGE) best = row[k - 1] + CHANGE;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                best > rows[(i + 1) % 3][k - 2] + SWAP)
                best = rows[(i + 1) % 3][k - 2] + SWAP;
            row[k] = best;
        }
    }
    return rows[strlen(a) % 3][width];
}

/* Small letters, and one kind of dash. */
static void plain_word(char out[GUESS_ROOM], const char *word) {
    size_t i;
    for (i = 0; word[i] != '\0'; i++)
        out[i] = (char)(word[i] == '_' ? '-' : tolower((unsigned char)word[i]));
    out[i] = '\0';
}

cli_guess cli_guess_of(epctx_str text) {
    cli_guess guess;
    memset(&guess, 0, sizeof guess);
    if (text.size >= sizeof guess.text || text.size == 0) return guess;
    memcpy(guess.text, text.data, text.size);
    guess.size = text.size - (text.size > 2 && text.data[0] == '-' && text.data[1] == '-' ? 2 : 0);
    /* One letter is like every other, and a short word like many. */
    if (guess.size > 1) guess.nearest = guess.size < 4 ? 4 : guess.size < 10 ? 6 : 8;
    return guess;
}

void cli_guess_word(cli_guess *guess, const char *word) {
    char typed[GUESS_ROOM], known[GUESS_ROOM];
    size_t distance;
    if (guess->nearest == 0 || strlen(word) >= sizeof known || strlen(word) < 2) return;
    plain_word(typed, guess->text);
    plain_word(known, word);
    distance = distance_of(typed, known);
    /* A word that was not typed to its end. */
    if (guess->size > 2 && strncmp(known, typed, strlen(typed)) == 0 && distance > 2) distance = 3;
    if (distance >= guess->nearest) return;
    guess->nearest = distance;
    guess->best = word;
}

const char *cli_guess_hint(cli_guess *guess) {
    const char *quote = guess->best != NULL && guess->best[0] == '-' ? "" : "'";
    guess->hint[0] = '\0';
    if (guess->best != NULL)
        snprintf(guess->hint, sizeof guess->hint, ", did you mean %s%s%s?", quote, guess->best,
                 quote);
    return guess->hint;
}

static bool usage_error(const cli_command *command, const char *what, const char *name) {
    cli_misuse("%s%s\nusage: epctx %s %s", what, name, command->name, command->arguments);
    return false;
}

static const cli_option *find_option(const cli_option *options, const char *text, size_t size) {
    for (; options->name != NULL; options++)
        if (strlen(options->name) == size && memcmp(options->name, text, size) == 0) return options;
    return NULL;
}

static void unknown_option(const cli_command *command, const cli_option *options, const char *text,
                           size_t size) {
    const epctx_str name = {text, size};
    cli_guess guess = cli_guess_of(name);
    for (; options->name != NULL; options++)
        if (options->name[1] == '-') cli_guess_word(&guess, options->name);
    cli_guess_word(&guess, "--no-progress");
    cli_guess_word(&guess, "--hugging-face");
    cli_guess_word(&guess, "--facts");
    cli_guess_word(&guess, "--help");
    cli_misuse("unknown option %s%s\nusage: epctx %s %s", text, cli_guess_hint(&guess),
               command->name, command->arguments);
}

bool cli_choose(const char *option, const char *text, const char *const *words, size_t *number) {
    cli_guess guess = cli_guess_of(epctx_str_of(text));
    char list[200];
    epctx_text all = epctx_text_of(list, sizeof list);
    size_t i;
    for (i = 0; words[i] != NULL; i++) {
        *number = i;
        if (strcmp(words[i], text) == 0) return true;
        cli_guess_word(&guess, words[i]);
        epctx_text_put_format(&all, "%s%s",
                              i == 0                 ? ""
                              : words[i + 1] != NULL ? ", "
                                                     : " or ",
                              words[i]);
    }
    cli_misuse("%s must be %s, not '%s'%s", option, list, text, cli_guess_hint(&guess));
    return false;
}

/* Whether a value came from one of the first `count` arguments, as VALUE or as --name=VALUE. */
static bool is_from(const char *value, char **argv, int count) {
    int i;
    for (i = 0; i < count; i++) {
        const char *equals = strchr(argv[i], '=');
        if (value == argv[i] || (equals != NULL && value == equals + 1)) return true;
    }
    return false;
}

static uint32_t path_flags;

uint32_t cli_path_flags(void) {
    return path_flags;
}

epctx_status cli_open(epctx_model *model, const char *file, epctx_error *error) {
    epctx_open_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.io = epctx_io_files();
    opts.path_flags = path_flags;
    return epctx_model_open_file(model, file, &opts, error);
}

/* The values of options that take a list, in the order given. */
static struct {
    const char **option;
    const char *value;
    char *joined; /* with those before, from malloc: for the time of the tool */
} listed[256];
static size_t listed_count;

const char *cli_listed(const char **option, size_t number) {
    size_t i;
    for (i = 0; i < listed_count; i++)
        if (listed[i].option == option && number-- == 0) return listed[i].value;
    return NULL;
}

/* Notes a value of a list; returns "first,second" (`first` may be NULL), or NULL: too long. */
static const char *add_listed(const char **option, const char *first, const char *second) {
    const size_t size = first != NULL ? strlen(first) : 0, most = 1 << 16;
    char *text = NULL;
    if (listed_count == sizeof listed / sizeof listed[0] || size + strlen(second) + 2 > most)
        return NULL;
    if (first != NULL) {
        text = (char *)malloc(size + strlen(second) + 2);
        if (text == NULL) return NULL;
        memcpy(text, first, size);
        text[size] = ',';
        memcpy(text + size + 1, second, strlen(second) + 1);
    }
    listed[listed_count].option = option;
    listed[listed_count].value = second;
    listed[listed_count++].joined = text;
    return text != NULL ? text : second;
}

/* --facts, which is read at once: what follows may name what is in it. */
static bool load_facts(const char *path) {
    epctx_error error;
    if (facts_load(path, &error) == EPCTX_OK) return true;
    cli_misuse("--facts: %s; nothing of it is used", error.message);
    return false;
}

/* Reads the option at argv[at]; returns how many arguments it took, 0 on a mistake. */
static int read_option(const cli_command *command, int argc, char **argv, int at,
                       const cli_option *options) {
    const char *text = argv[at];
    const char *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    size_t size = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const char *facts = NULL;
    const cli_option common = {"--facts", &facts, NULL};
    const cli_option *option = find_option(options, text, size);
    if (option == NULL && size == 7 && memcmp(text, common.name, size) == 0) option = &common;
    if (option == NULL && strcmp(text, "--no-progress") == 0) {
        cli_progress_forbid();
        return 1;
    }
    if (option == NULL && strcmp(text, "--hugging-face") == 0) {
        path_flags = EPCTX_PATH_HUGGING_FACE;
        return 1;
    }
    if (option == NULL) {
        unknown_option(command, options, text, size);
    } else if (option->value == NULL && equals != NULL) {
        usage_error(command, "this option takes no value: ", option->name);
    } else if (option->value == NULL) {
        *option->given = true;
        return 1;
    } else if (option->given == NULL && *option->value != NULL &&
               is_from(*option->value, argv, at)) {
        usage_error(command, "option given twice (perhaps under two names): ", option->name);
    } else if (equals != NULL || at + 1 < argc) {
        const char *value = equals != NULL ? equals + 1 : argv[at + 1];
        if (option->given != NULL) {
            value = add_listed(option->value, *option->given ? *option->value : NULL, value);
            *option->given = true;
        }
        *option->value = value;
        if (facts != NULL && !load_facts(facts)) return 0;
        if (value != NULL) return equals != NULL ? 1 : 2;
        usage_error(command, "text too long for ", option->name);
    } else {
        usage_error(command, "missing value for ", text);
    }
    return 0;
}

static bool listed_options;

bool cli_listed_options(void) {
    return listed_options;
}

/* For completion: what a command reads is what is offered. */
static void list_options(const cli_option *options) {
    listed_options = true;
    for (; options->name != NULL; options++) puts(options->name);
    puts("--facts\n--help\n--hugging-face\n--no-progress");
}

/* `dash`: the first operand that may be "-". */
static int parse(const cli_command *command, int argc, char **argv, const cli_option *options,
                 const char **operands, int least, int most, int dash) {
    bool options_end = false;
    int found = 0;
    int at = 0;
    if (argc == 1 && strcmp(argv[0], "--list-options") == 0) {
        list_options(options);
        return -1;
    }
    while (at < argc) {
        const char *text = argv[at];
        if (!options_end && strcmp(text, "--") == 0) {
            options_end = true;
            at++;
        } else if (!options_end && text[0] == '-' && text[1] != '\0') {
            int taken = read_option(command, argc, argv, at, options);
            if (taken == 0) return -1;
            at += taken;
        } else {
            if (strcmp(text, "-") == 0 && found < dash) {
                usage_error(command,
                            "this command does not read standard input; write ./- for a file "
                            "of that name: ",
                            text);
                return -1;
            }
            if (found == most) {
                usage_error(command, "too many arguments: ", text);
                return -1;
            }
            operands[found++] = text;
            at++;
        }
    }
    if (found < least) {
        usage_error(command, "missing argument", "");
        return -1;
    }
    return found;
}

int cli_parse_some(const cli_command *command, int argc, char **argv, const cli_option *options,
                   const char **operands, int least, int most) {
    return parse(command, argc, argv, options, operands, least, most, NO_DASH);
}

bool cli_parse(const cli_command *command, int argc, char **argv, const cli_option *options,
               const char **operands, int count) {
    return parse(command, argc, argv, options, operands, count, count, NO_DASH) >= 0;
}

bool cli_parse_dash(const cli_command *command, int argc, char **argv, const cli_option *options,
                    const char **operands, int count) {
    return parse(command, argc, argv, options, operands, count, count, count - 1) >= 0;
}

bool cli_number(const char *option, const char *text, uint64_t least, uint64_t most,
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

epctx_status cli_make_folder(const char *folder, epctx_error *error) {
    char path[EPCTX_PATH_MAX];
    size_t size = strlen(folder);
    size_t i;
    if (size == 0 || size >= sizeof path)
        return epctx_fail(error, EPCTX_ERR_ARG, "'%s' cannot be a folder", folder);
    memcpy(path, folder, size + 1);
    for (i = 1; i <= size; i++) {
        char kept = path[i];
        if (kept != '/' && kept != '\0') continue;
        path[i] = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return epctx_fail(error, EPCTX_ERR_IO, "%s: cannot create this folder: %s", path,
                              strerror(errno));
        path[i] = kept;
    }
    return EPCTX_OK;
}

static int output_failed = CLI_FAILED;
static bool wrote_files;

void cli_wrote_files(void) {
    wrote_files = true;
}

bool cli_has_written(void) {
    return wrote_files;
}

void cli_own_codes(int failed) {
    output_failed = failed;
}

int cli_output_failed(void) {
    return output_failed;
}

epctx_str cli_field_str(epctx_view message, uint32_t number) {
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_str last = epctx_str_of(NULL);
    epctx_str value;
    while (epctx_next_str(&it, &value)) last = value;
    return last;
}

epctx_view cli_field_message(epctx_view message, uint32_t number) {
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_view last = {NULL, NULL, 0};
    epctx_field field;
    while (epctx_next_field(&it, &field))
        if (field.wire == EPCTX_WIRE_LEN) last = field.body;
    return last;
}

int64_t cli_field_int(epctx_view message, uint32_t number) {
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_field field;
    int64_t last = 0;
    while (epctx_next_field(&it, &field))
        if (field.wire == EPCTX_WIRE_VARINT) last = (int64_t)field.value;
    return last;
}

bool cli_is_ep(epctx_str ep, const char *name) {
    const epctx_profile *wanted = name != NULL ? cli_profile_of(name) : NULL;
    if (name == NULL || epctx_str_is(ep, name)) return true;
    if (wanted == NULL || (wanted->traits & EPCTX_ANY_EP) != 0)
        return ep.size == strlen(name) && strncasecmp(ep.data, name, ep.size) == 0;
    return epctx_profile_of(ep) == wanted;
}

bool cli_profile(const char *name, const epctx_profile **profile) {
    return cli_profile_for("--ep", name, profile);
}

const epctx_profile *cli_profile_of(const char *name) {
    size_t count, i, k;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++)
        if (strcasecmp(all[i].name, name) == 0) return &all[i];
    for (i = 0; i < count; i++)
        for (k = 0;
             k < sizeof all[i].sources / sizeof all[i].sources[0] && all[i].sources[k] != NULL; k++)
            if (strcasecmp(all[i].sources[k], name) == 0) return &all[i];
    return NULL;
}

bool cli_profile_for(const char *option, const char *name, const epctx_profile **profile) {
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    cli_guess guess = cli_guess_of(epctx_str_of(name));
    char list[256];
    epctx_text names = epctx_text_of(list, sizeof list);
    *profile = cli_profile_of(name);
    if (*profile != NULL) return true;
    for (i = 0; i < count; i++) {
        epctx_text_put_format(&names, " %s", all[i].name);
        cli_guess_word(&guess, all[i].name);
        if (all[i].sources[0] != NULL) cli_guess_word(&guess, all[i].sources[0]);
    }
    cli_misuse("%s: unknown EP or profile '%s'%s%s the profiles are%s", option, name,
               cli_guess_hint(&guess), guess.best != NULL ? "" : ";", list);
    return false;
}

double cli_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

bool cli_first_epnode(const epctx_model *model, epctx_node_view *node) {
    epctx_cursor it = epctx_graph_nodes(epctx_model_graph(model));
    while (epctx_next_node(&it, node))
        if (epctx_node_is_epnode(node)) return true;
    return false;
}

bool cli_numbered_epnode(const epctx_model *model, const char *name, epctx_node_view *node) {
    epctx_walk walk;
    char *end = NULL;
    unsigned long number;
    if (name == NULL || name[0] != '#' || name[1] < '1' || name[1] > '9') return false;
    number = strtoul(name + 1, &end, 10);
    if (*end != '\0') return false;
    epctx_walk_begin(&walk, model);
    while (number > 0 && epctx_walk_epnode(&walk, node)) number--;
    return number == 0;
}

bool cli_initializer_names(const epctx_model *model, epctx_map *names) {
    epctx_cursor it = epctx_graph_initializers(epctx_model_graph(model));
    epctx_tensor_view tensor;
    while (epctx_next_tensor(&it, &tensor))
        if (epctx_map_put(names, tensor.name, 1) != EPCTX_OK) return false;
    return true;
}

epctx_status cli_optional_inputs(epctx_model *model, bool remove, size_t *count,
                                 epctx_error *error) {
    epctx_cursor it = epctx_graph_inputs(epctx_model_graph(model));
    epctx_status status = EPCTX_OK;
    epctx_value_view value;
    epctx_arena arena;
    epctx_map names;
    epctx_error_clear(error);
    *count = 0;
    epctx_arena_init(&arena, NULL);
    epctx_map_init(&names, &arena);
    if (!cli_initializer_names(model, &names))
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    while (status == EPCTX_OK && epctx_next_value(&it, &value)) {
        if (epctx_map_get(&names, value.name) == EPCTX_MAP_NONE) continue;
        ++*count;
        if (remove) status = epctx_view_remove(model, value.view, error);
    }
    epctx_arena_free(&arena);
    return status;
}
