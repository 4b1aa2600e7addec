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
        "$plain" "$command" --list-options >listed || wrong="$wrong $command"
        grep -e '^--' listed | sort -u >expected
        offer "$command" -- | grep -e '^--' >"$out"
        cmp -s expected "$out" || wrong="$wrong $command"
    done <commands
    if [ -z "$wrong" ]; then ok "options, $shell"
    else fail "options, $shell" "other words:$wrong"; fi
done

# -- one table for all: what is read, in help, and in the man page --
wrong=
sed 's/\\f[A-Z]//g; s/\\//g' "$top/examples/epctx/epctx.1" >page
while read -r command; do
    "$plain" "$command" --list-options | grep -e '^--' | sort -u >listed
    "$plain" help "$command" | grep -oE -e '--[a-z][a-z-]*' | sort -u >told
    # --no-progress is told for all commands, as are --hugging-face and --facts
    for option in $(comm -23 listed told | grep -v -e '^--help$' -e '^--no-progress$' \
        -e '^--hugging-face$' -e '^--facts$'); do
        wrong="$wrong $command$option(help)"
    done
    for option in $(cat listed); do
        grep -q -e "$option\b" page || wrong="$wrong $command$option(page)"
    done
done <commands
if [ -z "$wrong" ]; then ok "every option is told"; else fail "every option is told" "$wrong"; fi

epctx info --list-options now; result "not beside other arguments" 2 "unknown option"
exit $status
