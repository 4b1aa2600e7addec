#!/bin/sh
# Completion for bash and zsh: each command, and each option that the command reads; and whether
# help, man page and completion tell the same options.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start test_completion
cd "$work" || exit 1
ln -s "$plain" epctx
PATH=$work:$PATH
out=$work/stdout err=$work/stderr
folder=$top/examples/epctx/completion
: >"$err"

"$plain" help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' | sort >commands
[ "$(wc -l <commands)" -gt 30 ] || fail "commands" "there are few"

# What each file offers for the words that were typed, a line each.
cat >offer.bash <<'END'
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_epctx
printf '%s\n' "${COMPREPLY[@]}"
END
cat >offer.zsh <<'END'
compadd() { shift; print -l -- ${(P)1} }
_describe() { print -l -- ${(P)2%%:*} }
_files() { print files }
file=$1
shift
words=("$@") CURRENT=$# PREFIX=${@[-1]}
. $file
END
offer() {
    case $shell in
    bash) bash --norc offer.bash "$folder/epctx.bash" epctx "$@" ;;
    zsh) zsh -f offer.zsh "$folder/_epctx" epctx "$@" ;;
    esac 2>"$err" | sort -u
}

for shell in bash zsh; do
    if ! command -v $shell >/dev/null; then
        echo "skip completion $shell: it is not here"
        continue
    fi
    offer "" >"$out"
    (cat commands && echo help) | sort >expected
    if cmp -s expected "$out"; then ok "commands, $shell"
    else fail "commands, $shell" "other words"; fi
    offer help "" >"$out"
    if cmp -s commands "$out"; then ok "help, $shell"; else fail "help, $shell" "other words"; fi
    wrong=
    while read -r command; do
        "$plain" "$command" --list-options | cut -f 1 >listed || wrong="$wrong $command"
        grep -e '^--' listed | sort -u >expected
        offer "$command" -- | grep -e '^--' >"$out"
        cmp -s expected "$out" || wrong="$wrong $command"
    done <commands
    if [ -z "$wrong" ]; then ok "options, $shell"
    else fail "options, $shell" "other words:$wrong"; fi
done

# -- values: every option that has words, in every command --
for shell in bash zsh; do
    command -v $shell >/dev/null || continue
    wrong=
    count=0
    while read -r command; do
        "$plain" "$command" --list-options | cut -f 1,3 >listed
        while IFS='	' read -r name values; do
            case $values in "" | @* | [0-9]*) continue ;; esac
            echo "$values" | tr ' ' '\n' | sed '/^$/d' | sort -u >expected
            offer "$command" "$name" "" >"$out"
            cmp -s expected "$out" || wrong="$wrong $command $name"
            count=$((count + 1))
        done <listed
    done <commands
    if [ -z "$wrong" ] && [ $count -gt 40 ]; then ok "values, $shell"
    else fail "values, $shell" "other words, or only $count options:$wrong"; fi
done
"$plain" lint --list-options | grep -q '^--profile	NAME	qnn ' ||
    fail "profiles as values" "--profile does not list them"

epctx info --list-options now; result "not beside other arguments" 2 "unknown option"
exit $status
