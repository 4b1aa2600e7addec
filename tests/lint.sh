#!/bin/sh
# What a look at the sources tells, in a minute: `make lint`, and part of `make check`. Both install
# programs that are missing; without one its part is skipped. `make analyze` looks deeper, and takes
# longer.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start lint

# finds NAME COMMAND...: the command prints what is wrong, and nothing when all is well
finds() {
    what=$1
    shift
    if "$@" >"$work/found" 2>&1 && ! [ -s "$work/found" ]; then
        ok "$what"
    else
        [ -s "$work/found" ] || echo "$1 fails" >"$work/found"
        sed "s|^|FAIL $what: |" "$work/found"
        status=1
    fi
}

# with PROGRAM NAME COMMAND...: the same, where there is such a program
with() {
    program=$1
    shift
    if command -v "$program" >/dev/null; then finds "$@"
    else echo "skip $1: $program is not here"; fi
}

# sources [EXPRESSION...]: the files of the tree, as `find` knows them
sources() {
    find . '(' -name build -o -name .git -o -name __pycache__ ')' -prune -o \
        -path './fuzz/corpus/*' -prune -o -path './fuzz/regressions/*' -prune -o \
        -type f "$@" -print | sed 's|^\./||' | LC_ALL=C sort
}

# SC2034, SC2154: variables of and for the scripts that are sourced. SC2164: the script's own folder
# is there. SC3045: every sh here has `ulimit -d`.
shell_scripts() {
    sources -exec grep -qIE '^#!/(bin/sh|usr/bin/env bash)' '{}' ';' |
        xargs -P "$(nproc)" -n 8 shellcheck -S warning -f gcc -e SC2034,SC2154,SC2164,SC3045 \
            >"$work/shell"
    sort "$work/shell"
}

python_names() { sources '(' -name '*.py' -o -path ./tests/run ')' | xargs pyflakes3; }

yaml() {
    sources '(' -name '*.yml' -o -name .clang-format -o -name .clang-tidy ')' |
        xargs /usr/bin/python3 -c '
import sys, yaml
for name in sys.argv[1:]:
    try:
        yaml.safe_load(open(name, encoding="utf-8"))
    except yaml.YAMLError as error:
        print(name, str(error).replace("\n", " "))'
}

# What a version renamed has its new name everywhere: in comments, guides and scripts, too.
old_names() { sources | xargs "$python" -B tests/judge/old_names.py .github/CHANGELOG.md; }

# A comment stands on its own: it does not begin with what only the one before it explains.
first_words() {
    awk '/\/\* (The same|Of (a|an|the)|Likewise) / { print FILENAME ":" FNR ": " $0 }' "$@"
}

man_page() { groff -man -ww -z -Kutf8 examples/epctx/epctx.1; }

# A test has the name of a section, of an operation, of a command, or one that is listed here.
test_names() {
    words=$(sed -n 's/^ \* >>\([a-z]*\)\(:.*\)*$/\1/p' epctx.h | sort -u)
    words="$words npu $(basename -s .h examples/epctx/ops/*.h)"
    words="$words $(basename -s .c examples/epctx/commands/*.c)"
    words="$words facts faults threads plugin api bad blanks build cli conformance demo deps docs"
    words="$words genai embed examples if cures qnn"
    words="$words files firmware fleet fuzz guide guides headers install ort platforms readme"
    words="$words combine completion options convert delivery depfile json judge rules scaling"
    words="$words schema web mutants"
    for file in tests/test_*.c tests/test_*.sh; do
        name=${file#tests/test_}
        case " $(echo "$words" | tr '\n' ' ') " in
        *" ${name%%[_.]*} "*) ;;
        *) echo "$file: no section, operation or command has this name (tests/README.md)" ;;
        esac
    done
}

# In the reference NPU, nodes with bodies are lowered by what lowers nodes, and lowering folds.
recursion="epctx__evaluate epctx__import_tensor epctx__lower_if epctx__lower_loop"

# sections HEADER [FILE]: the header's plan holds, or that of a changed copy
sections() {
    upward=
    [ "$1" != epctx_npu.h ] || upward=$recursion
    # shellcheck disable=SC2086 # a list of words
    "$python" -B tests/judge/sections.py "${2-$1}" EPCTX_API $upward
}

# refused NAME FOUND HEADER EDIT: what the edit does to the header is found
refused() {
    sed "$4" "$3" >"$work/changed.h"
    if cmp -s "$3" "$work/changed.h"; then
        fail "$1" "the edit changes nothing"
    elif sections "$3" "$work/changed.h" | grep "$2" >/dev/null; then
        ok "$1"
    else
        fail "$1" "expected '$2', found nothing"
    fi
}

# objects JUDGE FOLDER OBJECTS MAIN: in make lint the plugin and the conformance suite may not be
# built.
objects() {
    if [ -e "$3/$2/$4" ]; then finds "$1 of $2" "$python" -B "tests/judge/$1.py" "$2" "$3"
    else echo "skip $1 of $2: it is not built"; fi
}

"$python" -B tests/format.py --check || status=1
with shellcheck "shell scripts" shell_scripts
with pyflakes3 "Python" python_names
if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then finds "YAML" yaml
else echo "skip YAML: python3-yaml is not here"; fi
with groff "man page" man_page
finds "lines" "$python" -B tests/judge/lines.py
for header in epctx.h epctx_npu.h; do
    finds "definitions of $header" "$python" -B tests/judge/definitions.py $header EPCTX_API
    finds "sections of $header" sections $header
done
# names [FILE]: of all sources, and of a changed copy
names() {
    find epctx.h epctx_npu.h Makefile examples tests fuzz "$@" -type f \( -name Makefile -o \
        -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.hpp' -o -name '*.def' -o \
        -name '*.sh' -o -name '*.awk' -o -name '*.mk' \) -exec "$python" -B \
        tests/judge/names.py {} +
}
finds "names in comments" names
sed 's/epctx_fail does not overwrite/epctx_fial does not overwrite/' epctx.h >"$work/changed.h"
if names "$work/changed.h" | grep "there is no epctx_fial" >/dev/null; then
    ok "a name that is none"
else
    fail "a name that is none" "expected 'there is no epctx_fial', found nothing"
fi
refused "contents in another order" "^.*: CONTENTS are" epctx.h 's/>>path >>io/>>io >>path/'
refused "sections in another order" "not in the order" epctx.h \
    '/^ \* >>implementation/,$s/^ \* >>wire$/ * >>load/'
refused "functions of another section" "is declared in >>wire and defined in >>more" epctx.h \
    '/^ \* >>implementation/,$s/^ \* >>wire$/ * >>more/'
refused "a call upward" ">>basics calls epctx_unload of >>load" epctx.h \
    's/strlen(text)/epctx_unload(text)/'
refused "a recursion that is gone" "take it off the list" epctx_npu.h 's/epctx__lower_loop(/gone(/'
finds "first words of comments" first_words epctx.h
printf '/* Of the model. */\n' >"$work/changed.h"
[ -n "$(first_words "$work/changed.h")" ] || fail "first words of comments" "they are not found"
finds "callers" "$python" -B tests/judge/callers.py epctx.h epctx_npu.h
finds "macros" "$python" -B tests/judge/macros.py epctx.h epctx_npu.h
finds "old names" old_names
finds "mutations" /usr/bin/python3 -B tests/mutants.py --check
finds "names of tests" test_names
objects circles examples/epctx "$build/obj" main.o
for judge in circles globals; do
    objects $judge examples/conformance "$build/obj" main.o
    objects $judge examples/plugin_ep "$build/plugin" factory.o
done
exit $status
