/* epctx: look into, copy, compile and run EPContext models. */
#include "cli.h"

#include <errno.h>
#include <string.h>

static const cli_command *const commands[] = {
    &cli_compile, &cli_run, &cli_info,  &cli_ls,     &cli_lint,  &cli_check,
    &cli_explain, &cli_get, &cli_diff,  &cli_scan,   &cli_dot,   &cli_copy,
    &cli_dump,    &cli_set, &cli_unset, &cli_rename, &cli_prefix,
    &cli_embed,   &cli_extract, &cli_mv, &cli_init, &cli_weightless,
    &cli_merge,   &cli_split, &cli_wrap, &cli_repair};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static void print_help(FILE *out)
{
    size_t i;
    fputs("usage: epctx COMMAND ARGUMENTS\n\n", out);
    for (i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n'epctx COMMAND --help' tells about a command, 'epctx --version' the version.\n"
          "Exit codes: 0 done, 1 the file is bad or the operation failed (nothing was written),\n"
          "2 wrong usage; check, diff and repair have codes of their own, see their --help.\n"
          "Messages go to standard error.\n",
          out);
}

static void print_command_help(const cli_command *command)
{
    printf("usage: epctx %s %s\n\n%s", command->name, command->arguments, command->help);
}

/* Whether --help stands among the options. */
static bool wants_help(int argc, char **argv)
{
    int i;
    for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

static int run_command(const char *name, int argc, char **argv)
{
    size_t i;
    for (i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) != 0) continue;
        if (!wants_help(argc, argv)) return commands[i]->run(argc, argv);
        print_command_help(commands[i]);
        return CLI_OK;
    }
    fprintf(stderr, "epctx: there is no command '%s'\n\n", name);
    print_help(stderr);
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    int code = CLI_OK;
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        print_help(stdout);
    else if (strcmp(argv[1], "--version") == 0)
        printf("epctx %s\n", EPCTX_VERSION_STRING);
    else
        code = run_command(argv[1], argc - 2, argv + 2);
    /* A full disk behind a redirection shows only here. */
    if (fflush(stdout) != 0 || ferror(stdout))
        code = cli_fail_text("standard output: %s", strerror(errno));
    return code;
}
