# Completion of `epctx` for bash. Commands come from `epctx help`, options from the table by which the
# command reads them.
# shellcheck shell=bash

_epctx() {
    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words
    COMPREPLY=()
    if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $command == help ]]; }; then
        words=$("${COMP_WORDS[0]}" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
        ((COMP_CWORD == 2)) || words+=" help"
    elif [[ $word == -* ]]; then
        words=$("${COMP_WORDS[0]}" "$command" --list-options 2>/dev/null)
    else
        return # a file
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
}
complete -o default -F _epctx epctx
