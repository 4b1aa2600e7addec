# Completion of `epctx` for fish. Commands come from `epctx help`, options and their values from the
# table by which the command reads them: name, argument, values and help, with tabs between.

function __epctx_commands
    epctx help 2>/dev/null | string replace -rf '^  ([a-z][a-z-]*) +(.*)' '$1\t$2'
end

function __epctx_options
    set -l words (commandline -opc)
    epctx $words[2] --list-options 2>/dev/null | string replace -r '\t.*\t' '\t' | sort -u
end

function __epctx_values
    set -l words (commandline -opc)
    set -l name $words[-1]
    set -l before ''
    if string match -q -- '--*=*' (commandline -ct)
        set name (string replace -r -- '=.*' '' (commandline -ct))
        set before $name=
    end
    epctx $words[2] --list-options 2>/dev/null |
        awk -F '\t' -v name=$name '$1 == name && $3 ~ /^[^@0-9]/ { print $3 }' |
        string split -n ' ' | string replace -r -- '^' $before
end

complete -c epctx -n __fish_use_subcommand -f -a '(__epctx_commands)'
complete -c epctx -n __fish_use_subcommand -f -a help -d 'show help for a command'
complete -c epctx -n '__fish_seen_subcommand_from help' -f -a '(__epctx_commands)'
complete -c epctx -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' \
    -f -a '(__epctx_options)'
complete -c epctx -n 'not __fish_use_subcommand; and count (__epctx_values) >/dev/null' \
    -f -a '(__epctx_values)'
