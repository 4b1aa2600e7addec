# Completion of `epctx` for bash. Commands come from `epctx help`, options and their values from the
# table by which the command reads them: name, argument, values and help, with tabs between.
# shellcheck shell=bash

_epctx() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words
    local command=${COMP_WORDS[1]}
    COMPREPLY=()
    # `--format=j` is three words.
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $command == help ]]; }; then
        words=$("${COMP_WORDS[0]}" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
        ((COMP_CWORD == 2)) || words+=" help"
    elif [[ $word == -* ]]; then
        words=$("${COMP_WORDS[0]}" "$command" --list-options 2>/dev/null | cut -f 1)
    elif [[ $before == -* ]]; then
        words=$("${COMP_WORDS[0]}" "$command" --list-options 2>/dev/null |
            awk -F '\t' -v name="$before" '$1 == name && $3 ~ /^[^@0-9]/ { print $3 }')
    fi
    [[ -n $words ]] || return # a file
    # Not by compgen -W, which would expand words of a file of facts.
    mapfile -t COMPREPLY < <(tr -s ' ' '\n' <<<"$words" | sort -u | while read -r words; do
        [[ $words != "$word"* ]] || printf '%s\n' "$words"
    done)
}
complete -o default -F _epctx epctx
