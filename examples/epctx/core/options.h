/* The options of the commands: one table, options.def, by which they are read, and from which
 * usage, help, man page, completion and the guides come. */
#ifndef EPCTX_CLI_OPTIONS_H
#define EPCTX_CLI_OPTIONS_H

#include "cli.h"

enum { CLI_MOST_LISTED = 256 };

/* What was given, by kind. */
typedef bool cli_flag;
typedef const char *cli_value; /* NULL: not given */
typedef struct cli_list {      /* in the order given */
    const char *items[CLI_MOST_LISTED];
    int at[CLI_MOST_LISTED]; /* grows along the command line, also between lists */
    size_t count;
} cli_list;
typedef unsigned cli_choice; /* number of the word among those of the row, from 1; 0: not given */
typedef struct cli_number {
    bool given;
    uint64_t value;
} cli_number;

#define CLI_KIND_FLAG   cli_flag
#define CLI_KIND_VALUE  cli_value
#define CLI_KIND_LIST   cli_list
#define CLI_KIND_CHOICE cli_choice
#define CLI_KIND_NUMBER cli_number

/* A command line as read: the files and other operands, and a member for each option. */
struct cli_args {
    const char *const *operands;
    int count;
    bool alone; /* an option stands instead of the operands */
#define OPTION(kind, use, member, names, argument, values, commands, help) CLI_KIND_##kind member;
#define AGAIN(kind, use, member, names, argument, values, commands, help)
#define OLD(kind, member, names, commands, help)
#include "options.def"
#undef OPTION
#undef AGAIN
#undef OLD
};

typedef enum cli_kind { CLI_FLAG, CLI_VALUE, CLI_LIST, CLI_CHOICE, CLI_NUMBER } cli_kind;
typedef enum cli_use { CLI_MAY, CLI_MUST, CLI_OR, CLI_ALONE, CLI_OLD } cli_use;

/* A row of the table, as options.def tells. */
typedef struct cli_option {
    cli_kind kind;
    cli_use use;
    size_t at; /* of the member in cli_args */
    const char *names, *argument, *values, *commands, *help;
} cli_option;

/* The next row of the table that is for this command, behind `last` (NULL: the first). */
const cli_option *cli_next_option(const cli_command *command, const cli_option *last);

/* The words of a CHOICE, or what its values are called otherwise ("@profiles" ...), one by one. */
epctx_str cli_next_word(const char **rest);

/* Reads the arguments, options in any order and also as --name=value, "--" ends them, and calls the
 * command. On a mistake prints what is wrong and returns CLI_USAGE (for check its own). */
int cli_call(const cli_command *command, int argc, char **argv);

/* A whole number in least..most; otherwise prints what is wrong. */
bool cli_number_of(const char *option, const char *text, uint64_t least, uint64_t most,
                   uint64_t *value);
/* The number that was given, or else `value`. */
uint64_t cli_number_or(cli_number number, uint64_t value);

/* "usage: epctx ..." in lines of at most 80 columns, and all of the help. */
void cli_put_usage(FILE *out, const cli_command *command);
void cli_put_help(FILE *out, const cli_command *command);
/* `epctx COMMAND --list-options`, for completion: name, argument, values and help of each option,
 * with tabs between, a name a line. */
void cli_list_options(const cli_command *command);

#endif
