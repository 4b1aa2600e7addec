#!/bin/sh
# Breaks rules one at a time and expects the test of the rule's row in rules.txt to notice.
#
#     tests/mutate.sh [RULE...]
#     tests/mutate.sh --check      only: does each change concern one line?
#
# mutations.txt has a line for each change: the rule, the file, the test (a program test_x or a
# script test_x.sh) and a sed expression that changes one line, separated by tabs. The test runs
# alone: of a program only the cases that the row names, and of a script a line "FAIL ..." with the
# words of the row is expected. A crash is noticed, too; what does not compile or hangs is not.
#
# Everything is built once, unoptimised, in a copy; a change takes what depends on it, in a folder
# of its own, TEST_JOBS at a time. A change to a header with a test that needs nothing but the
# headers is compiled here, which is quicker than `make`.
set -u
cd "$(dirname "$0")/.." || exit 1
work=$PWD/build/mutate
copy=$work/copy
base=$work/base
jobs=${TEST_JOBS:-$(nproc)}
compiler=${MUTATE_CC:-clang}
case ${EPCTX_CACHE:-build/deps} in
/*) cache=$EPCTX_CACHE ;;
*) cache=$PWD/${EPCTX_CACHE:-build/deps} ;;
esac
export EPCTX_CACHE="$cache"
# The named cases need no further models, and the `make` of a change has no part in an outer one.
unset EPCTX_TEST_MODELS MAKEFLAGS MFLAGS MAKELEVEL

# shellcheck disable=SC2086 # lists of flags
compile() { $compiler -std=c11 -O0 -w ${NANOPB_CFLAGS:-} -c "$@"; }

# header FOLDER NAME OBJECT: the implementation of one header
header() {
    compile -D"$([ "$2" = epctx ] && echo EPCTX || echo EPCTX_NPU)_IMPLEMENTATION" -I"$1" \
        -x c "$1/$2.h" -o "$3"
}

# operations FOLDER OUT: those of the tool, with the headers in FOLDER
operations() {
    rm -rf "$2/ops" && mkdir "$2/ops" || return 1
    for source in examples/epctx/ops/*.c examples/epctx/binary/*.c \
        examples/epctx/facts/facts*.c; do
        compile -I"$1" -I. "$source" -o "$2/ops/$(basename "$source" .c).o" || return 1
    done
}

# link PROGRAM OBJECT FOLDER: in an archive the headers' objects may stay unused
link() {
    ar rcs "$3/epctx.a" "$3/epctx.o" "$3/epctx_npu.o" "$3"/ops/*.o
    # shellcheck disable=SC2086
    $compiler "$2" "$3/epctx.a" ${NANOPB_LIBS:--lprotobuf-nanopb} -lm -pthread -o "$1"
}

# headers_only FILE TEST: is the change one of a header, and the test a program of these alone?
headers_only() {
    case $2 in *.sh | test_plugin*) return 1 ;; esac
    case $1 in epctx.h | epctx_npu.h) return 0 ;; *) return 1 ;; esac
}

# targets TEST: what `make` has to build for it
targets() {
    libraries="build/libepctx_ep.so build/libtoy_ep.so build/libtoy_oom_ep.so build/libbad_ep.so"
    case $1 in
    test_plugin*.sh)
        echo "build/epctx build/tests/test_plugin build/tests/test_plugin_share $libraries" ;;
    *.sh) echo build/epctx ;;
    test_plugin*) echo "build/tests/$1 $libraries" ;;
    *) echo "build/tests/$1" ;;
    esac
}

# build TEST...: in this folder
build() {
    # shellcheck disable=SC2046 # a list
    make -j"${make_jobs:-1}" CFLAGS="-O0 -Wno-error" \
        $(for t in "$@"; do targets "$t"; done | sort -u)
}

# cases RULE TEST: those of this test in the rule's row, a line each
cases() {
    awk -F '\t' -v rule="$1" '$1 == rule { gsub("; ", "\n", $4); print $4 }' tests/rules.txt |
        sed -n "s/^$2://p"
}

# red TEST LOG CASES [PROGRAM]: 0 when the test fails in these cases, 1 when it does not, 2 when it
# takes too long
red() {
    case $1 in
    *.sh)
        # The first line that tells it is enough: writing to the closed pipe ends the script.
        EPCTX_BUILD=build timeout 300 sh "tests/$1" 2>&1 </dev/null | words=$3 awk '
            BEGIN { count = split(ENVIRON["words"], word, "\n") }
            { print }
            /^FAIL / { for (i = 1; i <= count; i++) if (index($0, word[i])) exit }' >"$2"
        echo "$3" >"$2.words"
        grep '^FAIL ' "$2" | grep -qF -f "$2.words"
        ;;
    *)
        # shellcheck disable=SC2086 # names of cases
        timeout 120 "${4:-build/tests/$1}" $3 >"$2" 2>&1 </dev/null
        code=$?
        [ $code -ne 124 ] || return 2
        [ $code -ge 128 ] || grep -q '^FAIL ' "$2"
        ;;
    esac
}

# As it is: echo would take the backslashes of an expression for its own.
say() { printf '%s\n' "$*"; }

# report RULE FILE TEST EXPRESSION CASES LOG RESULT: of red
report() {
    case $7 in
    0)
        said=$(grep '^FAIL ' "$6" |
            { [ -e "$6.words" ] && grep -m 1 -F -f "$6.words" || head -n 1; } |
            grep -o '^FAIL [^:]*' || sed -n 's/^case \(.*\)/crash in \1/p' "$6" | tail -n 1)
        echo "ok mutation $1 ($3: ${said:-crash})"
        ;;
    1)
        said=$(grep -m 1 -o '^FAIL [^:]*' "$6")
        say "FAIL mutation $1: $3 ($(echo "$5" | paste -s -d ';')) does not notice '$4' in" \
            "$2${said:+, but there is $said}"
        ;;
    *) say "FAIL mutation $1: $3 hangs with '$4' in $2" ;;
    esac
}

# with_headers RULE FILE TEST EXPRESSION CASES FOLDER: FOLDER has the changed headers
with_headers() {
    file=$2 test=$3 mine=$6
    cp -r "$base/epctx.o" "$base/epctx_npu.o" "$base/ops" "$mine"
    object=$base/$test.o
    # A declaration changed, or the test brings the implementation: everything anew.
    first=$(cmp "$file" "$mine/$file" | sed 's/.* line //')
    if [ "$first" -lt "$(grep -n '>>implementation$' "$file" | tail -n 1 | cut -d : -f 1)" ] ||
        grep -q '#define EPCTX.*_IMPLEMENTATION' "tests/$test.c"; then
        object=$mine/$test.o
        { header "$mine" epctx "$mine/epctx.o" && header "$mine" epctx_npu "$mine/epctx_npu.o" &&
            operations "$mine" "$mine" &&
            compile -I"$mine" -I. -Itests "tests/$test.c" -o "$object"; } >"$mine/log" 2>&1
    else
        header "$mine" "${file%.h}" "$mine/${file%.h}.o" >"$mine/log" 2>&1
    fi && link "$mine/$test" "$object" "$mine" >>"$mine/log" 2>&1 || return 3
    red "$test" "$mine/log" "$5" "$mine/$test"
}

# with_make: the same, FOLDER has the changed file, and is made a copy of everything
with_make() {
    (
        cd "$6" && mv "$2" changed && cp -a "$copy/." . && cat changed >"$2" || exit 3
        build "$3" >log 2>&1 || exit 3
        red "$3" log "$5"
    )
}

# changed FILE: how many of its lines are others in standard input
changed() { diff "$1" - | grep -c '^<'; }

# change RULE FILE TEST EXPRESSION NAME: makes it in a folder of that name, and runs the test
change() {
    mine=$work/$5
    mkdir -p "$mine/$(dirname "$2")"
    cp epctx.h epctx_npu.h "$mine"
    sed "$4" "$2" >"$mine/$2"
    wanted=$(cases "$1" "$3")
    lines=$(changed "$2" <"$mine/$2")
    if [ "$lines" -ne 1 ]; then
        say "FAIL mutation $1: '$4' changes $lines lines of $2, expected one"
    elif [ -z "$wanted" ] && [ "$1" != PLUGIN ]; then
        echo "FAIL mutation $1: its row in tests/rules.txt does not name $3"
    else
        headers_only "$2" "$3" && how=with_headers || how=with_make
        $how "$1" "$2" "$3" "$4" "$wanted" "$mine"
        result=$?
        if [ $result -eq 3 ]; then
            say "FAIL mutation $1: '$4' in $2 does not compile:" \
                "$(grep -m 1 -E 'error: |undefined reference' "$mine/log")"
        else
            report "$1" "$2" "$3" "$4" "$wanted" "$mine/log" $result
        fi
    fi
    rm -rf "$mine"
}

if [ "${1:-}" = --check ]; then
    grep -v -e '^#' -e '^$' tests/mutations.txt |
        while IFS="$(printf '\t')" read -r rule file test expression; do
            lines=$(sed "$expression" "$file" | changed "$file")
            [ "$lines" -eq 1 ] ||
                say "$rule, $test: '$expression' changes $lines lines of $file, expected one"
        done
    exit
fi

if [ "${1:-}" = --line ]; then
    IFS="$(printf '\t')" read -r rule file test expression <<LINE
$(sed -n "$2p" "$work/list")
LINE
    change "$rule" "$file" "$test" "$expression" "line$2"
    exit
fi

# sound TEST LOG: its log without a change: every case that a row names was there and passed
sound() {
    ! grep '^FAIL ' "$2" || return 1
    while IFS="$(printf '\t')" read -r rule file test expression; do
        [ "$test" = "$1" ] || continue
        cases "$rule" "$test" | while read -r name; do
            grep '^ok ' "$2" | grep -qF -e "$name" && continue
            echo "$rule: no line 'ok ... $name'"
        done
    done <"$work/list" | grep . && return 1
    return 0
}

rm -rf "$work"
mkdir -p "$base"
while IFS="$(printf '\t')" read -r rule file test expression; do
    case $rule in '' | '#'*) continue ;; esac
    [ $# -gt 0 ] && case " $* " in *" $rule "*) ;; *) continue ;; esac
    printf '%s\t%s\t%s\t%s\n' "$rule" "$file" "$test" "$expression"
    headers_only "$file" "$test" && list=quick || list=slow
    echo "$test" >>"$work/$list"
done <tests/mutations.txt >"$work/list"
touch "$work/quick" "$work/slow"

header . epctx "$base/epctx.o" && header . epctx_npu "$base/epctx_npu.o" &&
    make -s build/facts_table.h && operations . "$base" || exit 1
for test in $(sort -u "$work/quick"); do
    compile -I. -Itests "tests/$test.c" -o "$base/$test.o" &&
        link "$base/$test" "$base/$test.o" "$base" || exit 1
    timeout 120 "$base/$test" >"$base/log" 2>&1 && sound "$test" "$base/log" && continue
    echo "FAIL mutations: $test fails without a mutation"
    cat "$base/log"
    exit 1
done
if [ -s "$work/slow" ]; then
    mkdir "$copy"
    tar -c --exclude=./build --exclude=./.git . | tar -x -C "$copy"
    # shellcheck disable=SC2046 # names of tests
    (cd "$copy" && make_jobs=$jobs build $(sort -u "$work/slow")) >"$base/log" 2>&1 || {
        echo "FAIL mutations: without a mutation there is an error already"
        cat "$base/log"
        exit 1
    }
    # In a copy of the copy: what the tests leave behind stays there.
    cp -a "$copy" "$base/copy"
    for test in $(sort -u "$work/slow"); do
        (cd "$base/copy" && red "$test" "$base/log" "")
        [ $? -eq 1 ] && sound "$test" "$base/log" && continue
        echo "FAIL mutations: $test fails without a mutation"
        cat "$base/log"
        exit 1
    done
    rm -rf "$base/copy"
fi

seq "$(grep -c '' "$work/list")" | xargs -P "$jobs" -I N tests/mutate.sh --line N | tee "$work/out"
echo "note mutations: $(grep -c '^ok' "$work/out") of $(grep -c '' "$work/list") noticed," \
    "$(cut -f 1 "$work/list" | sort -u | grep -c '-') rules"
[ "$(grep -c '^ok' "$work/out")" -eq "$(grep -c '' "$work/list")" ]
