# Completion of `epctx` for fish. Commands come from `epctx help`, options from the table by which the
# command reads them.

function __epctx_commands
    epctx help 2>/dev/null | string replace -rf '^  ([a-z][a-z-]*) +(.*)' '$1\t$2'
end

function __epctx_options
    set -l words (commandline -opc)
    epctx $words[2] --list-options 2>/dev/null | sort -u
end

complete -c epctx -n __fish_use_subcommand -f -a '(__epctx_commands)'
complete -c epctx -n __fish_use_subcommand -f -a help -d 'show help for a command'
complete -c epctx -n '__fish_seen_subcommand_from help' -f -a '(__epctx_commands)'
complete -c epctx -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' \
    -f -a '(__epctx_options)'
