/* epctx: inspect, edit, compile and run EPContext models. */
#define _POSIX_C_SOURCE 200809L

#include "core/options.h"
#include "facts/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_group(FILE *out, cli_group group, const char *title) {
    size_t i;
    fprintf(out, "%s\n", title);
    for (i = 0; cli_commands[i] != NULL; i++)
        if (cli_commands[i]->group == group)
            fprintf(out, "  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fputc('\n', out);
}

static void print_help(FILE *out) {
    size_t i;
    fputs("usage: epctx COMMAND ARGUMENTS\n\n", out);
    for (i = 0; i < CLI_GROUP_COUNT; i++) print_group(out, (cli_group)i, cli_group_titles[i]);
    fputs("Run 'epctx help COMMAND' or 'epctx COMMAND --help' for the options of a command,\n"
          "and 'epctx --version [--json]' for the version. All commands accept\n"
          "  --no-progress    do not show progress\n"
          "  --hugging-face   accept links into the blobs folder of a Hugging Face cache\n"
          "  --facts FILE     facts about vendors to replace and extend the built-in ones;\n"
          "                   also the environment's EPCTX_FACTS\n"
          "  --               end of the options\n"
          "Exit codes: 0 success; 1 a bad file or a failed operation (nothing was written\n"
          "unless the message says so); 2 a wrong command line. check, diff, repair and\n"
          "verify have further ones, see their help. Messages go to standard error.\n",
          out);
}

/* Whether the options include this one. */
static bool wants(int argc, char **argv, const char *name) {
    int i;
    for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return false;
}

/* Found before the options are read: their mistakes are told as JSON, too. */
static bool wants_json(int argc, char **argv) {
    int i;
    for (i = 1; i < argc && strcmp(argv[i - 1], "--") != 0; i++)
        if (strcmp(argv[i - 1], "--format") == 0 && strcmp(argv[i], "json") == 0) return true;
    return wants(argc, argv, "--json") || wants(argc, argv, "--format=json") ||
           wants(argc, argv, "--rules-json");
}

/* Our name for what other tools call otherwise, or NULL. */
static const char *synonym(const char *name) {
    static const char *const words[][2] = {
        {"cat", "dump"},      {"combine", "merge"}, {"cp", "copy"},      {"create", "wrap"},
        {"files", "ls"},      {"fix", "repair"},    {"inspect", "info"}, {"join", "merge"},
        {"list", "ls"},       {"move", "mv"},       {"remove", "unset"}, {"show", "info"},
        {"validate", "lint"},
    };
    size_t i;
    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(words[i][0], name) == 0) return words[i][1];
    return NULL;
}

/* The command, or NULL with a message that names a similar one. */
static const cli_command *find_command(const char *name) {
    cli_guess guess = cli_guess_of(epctx_str_of(name));
    size_t i;
    if (name[0] == '-') {
        cli_misuse("unknown option %s; see 'epctx help'", name);
        return NULL;
    }
    cli_guess_word(&guess, "help");
    for (i = 0; cli_commands[i] != NULL; i++) {
        if (strcmp(name, cli_commands[i]->name) == 0) return cli_commands[i];
        cli_guess_word(&guess, cli_commands[i]->name);
    }
    if (synonym(name) != NULL) guess.best = synonym(name);
    cli_misuse("there is no command '%s'%s", name,
               guess.best != NULL ? cli_guess_hint(&guess) : "; 'epctx help' lists them");
    return NULL;
}

static int run_command(const char *name, int argc, char **argv) {
    const cli_command *command;
    cli_json_wanted(name, wants_json(argc, argv));
    command = find_command(name);
    return command != NULL ? cli_call(command, argc, argv) : CLI_USAGE;
}

static int run_version(int argc, char **argv) {
    const bool json = argc > 0 && strcmp(argv[0], "--json") == 0;
    if (argc > (json ? 1 : 0))
        return cli_misuse("too many arguments\nusage: epctx --version [--json]");
    return cli_version(json);
}

static int run_help(int argc, char **argv) {
    const cli_command *command;
    if (argc > 1) return cli_misuse("too many arguments\nusage: epctx help [COMMAND]");
    if (argc == 0 || strcmp(argv[0], "help") == 0) {
        print_help(stdout);
        return CLI_OK;
    }
    command = find_command(argv[0]);
    if (command == NULL) return CLI_USAGE;
    cli_put_help(stdout, command);
    return CLI_OK;
}

/* A file opened while standard output is closed would get its number, and receive its text. */
static void keep_standard_files(void) {
    int fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDONLY); /* cannot be written: printing still fails */
    if (fd > STDERR_FILENO) close(fd);
}

#ifdef SIGBUS
/* Models are mapped: where another program cuts one, the next look at it ends in this signal. Only
 * what is safe in a handler is done; an output that was begun stays a temporary file. */
static void file_was_cut(int number, siginfo_t *info, void *context) {
    static const char text[] =
        "epctx: a file was cut short by another program while it was being read\n";
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(CLI_FAILED);
    _exit(CLI_FAILED);
}

static void report_cut_files(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = file_was_cut;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, NULL);
}
#endif

/* Those of the environment are for all commands: when they are bad, the built-in ones do. */
static void load_facts(void) {
    const char *path = getenv("EPCTX_FACTS");
    epctx_error error;
    if (path == NULL || *path == '\0' || facts_load(path, &error) == EPCTX_OK) return;
    cli_say("epctx: warning: EPCTX_FACTS: %s; the built-in facts are used\n", error.message);
}

/* Messages in whole lines: where several processes write to one log, none is cut by another. */
static void write_lines(void) {
    static char room[1 << 13];
    setvbuf(stderr, room, _IOLBF, sizeof room);
}

int main(int argc, char **argv) {
    int code = CLI_OK;
    keep_standard_files();
    write_lines();
    cli_signals_begin();
#ifdef SIGBUS
    report_cut_files();
#endif
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        print_help(stdout);
    else if (strcmp(argv[1], "help") == 0)
        code = run_help(argc - 2, argv + 2);
    else if (strcmp(argv[1], "--version") == 0)
        code = run_version(argc - 2, argv + 2);
    else {
        load_facts();
        code = run_command(argv[1], argc - 2, argv + 2);
    }
    cli_progress_end();
    if (code != CLI_OK) cli_json_failed(code);
    /* A full disk behind a redirection shows only here. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_fail_text("standard output: %s%s", strerror(errno),
                      cli_has_written() ? "; the files were written, only the report is lost" : "");
        code = cli_output_failed();
    }
    facts_unload();
    cli_signals_end();
    return code;
}
