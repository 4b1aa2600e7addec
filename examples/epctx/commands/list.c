/* All commands of the tool, in the order of their groups' lists. */
#include "core/cli.h"

const char *const cli_group_titles[CLI_GROUP_COUNT] = {
    "Look:", "Judge:", "Change:", "Make:", "Run and compare:",
};

const cli_command *const cli_commands[] = {
    &cli_compile, &cli_run,     &cli_info,     &cli_ls,       &cli_lint,
    &cli_check,   &cli_explain, &cli_profiles, &cli_view,     &cli_get,
    &cli_diff,    &cli_scan,    &cli_dot,      &cli_copy,     &cli_dump,
    &cli_set,     &cli_unset,   &cli_rename,   &cli_prefix,   &cli_embed,
    &cli_extract, &cli_mv,      &cli_init,     &cli_npu_dump, &cli_weightless,
    &cli_merge,   &cli_split,   &cli_wrap,     &cli_repair,   &cli_stamp,
    &cli_weights, &cli_verify,  &cli_bench,    &cli_devices,
#ifndef EPCTX_CLI_NO_PACKAGE /* the one command that needs a library besides nanopb */
    &cli_package,
#endif
    NULL,
};
