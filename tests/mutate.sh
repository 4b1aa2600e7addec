#!/bin/sh
# Breaks rules one at a time and expects the test to notice.
#
#     tests/mutate.sh [RULE...]
#
# mutations.txt has a line for each change: the rule, the file, the test (a program test_x or a
# script test_x.sh) and a sed expression, separated by tabs. A change to a header is compiled beside
# the header, unoptimised, and linked to objects made once, TEST_JOBS at a time; where it takes more
# than that (a script, ONNX Runtime's plugin) `make` works in a copy of everything, one at a time.
set -u
cd "$(dirname "$0")/.."
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

# shellcheck disable=SC2086 # lists of flags
compile() { $compiler -std=c11 -O0 -w ${NANOPB_CFLAGS:-} -c "$@"; }

# header FOLDER NAME OBJECT: the implementation of one header
header() {
    compile -D"$([ "$2" = epctx ] && echo EPCTX || echo EPCTX_NPU)_IMPLEMENTATION" -I"$1" \
        -x c "$1/$2.h" -o "$3"
}

# link PROGRAM OBJECT FOLDER: in an archive the headers' objects may stay unused
link() {
    ar rcs "$3/epctx.a" "$3/epctx.o" "$3/epctx_npu.o"
    # shellcheck disable=SC2086
    $compiler "$2" "$3/epctx.a" ${NANOPB_LIBS:--lprotobuf-nanopb} -lm -pthread -o "$1"
}

# quick FILE TEST: is the change one of a header, and the test a program of these alone?
quick() {
    case $2 in *.sh | test_plugin*) return 1 ;; esac
    case $1 in epctx.h | epctx_npu.h) return 0 ;; *) return 1 ;; esac
}

# What a change to a header takes: line by line of the first output, in a folder of its own.
change() {
    rule=$1 file=$2 test=$3 expression=$4
    mine=$work/$5
    mkdir -p "$mine"
    cp epctx.h epctx_npu.h "$mine"
    sed "$expression" $file >"$mine/$file"
    if cmp -s $file "$mine/$file"; then
        echo "FAIL mutation $rule: '$expression' changes nothing in $file"
        return
    fi
    cp "$base/epctx.o" "$base/epctx_npu.o" "$mine"
    object=$base/$test.o
    if ! header "$mine" ${file%.h} "$mine/${file%.h}.o" 2>"$mine/log"; then
        echo "FAIL mutation $rule: '$expression' does not compile: $(grep -m 1 error "$mine/log")"
        return
    fi
    # A declaration changed, or the test brings the implementation: everything anew.
    first=$(cmp $file "$mine/$file" | sed 's/.* line //')
    if [ "$first" -lt "$(grep -n '>>implementation$' $file | tail -n 1 | cut -d : -f 1)" ] ||
        grep -q '#define EPCTX.*_IMPLEMENTATION' tests/$test.c; then
        object=$mine/$test.o
        { header "$mine" epctx "$mine/epctx.o" && header "$mine" epctx_npu "$mine/epctx_npu.o" &&
            compile -I"$mine" -Itests tests/$test.c -o "$object"; } 2>"$mine/log"
    fi
    if ! link "$mine/$test" "$object" "$mine" 2>"$mine/log"; then
        echo "FAIL mutation $rule: '$expression' cannot be linked"
    elif timeout 60 "$mine/$test" >"$mine/log" 2>&1; then
        echo "FAIL mutation $rule: $test does not notice '$expression'"
    else
        echo "ok mutation $rule ($test: $(grep -m 1 -o '^FAIL [^:]*' "$mine/log"))"
    fi
    rm -rf "$mine"
}

if [ "${1:-}" = --line ]; then
    IFS="$(printf '\t')" read -r rule file test expression <<LINE
$(sed -n "$2p" "$work/quick")
LINE
    change "$rule" "$file" "$test" "$expression" "line$2"
    exit
fi

rm -rf "$work"
mkdir -p "$base"
: >"$work/quick"
: >"$work/slow"
while IFS="$(printf '\t')" read -r rule file test expression; do
    case $rule in '' | '#'*) continue ;; esac
    [ $# -gt 0 ] && case " $* " in *" $rule "*) ;; *) continue ;; esac
    quick "$file" "$test" && list=quick || list=slow
    printf '%s\t%s\t%s\t%s\n' "$rule" "$file" "$test" "$expression" >>"$work/$list"
done <tests/mutations.txt

# -- headers --

header . epctx "$base/epctx.o" && header . epctx_npu "$base/epctx_npu.o" || exit 1
for test in $(cut -f 3 "$work/quick" | sort -u); do
    compile -I. -Itests tests/$test.c -o "$base/$test.o" &&
        link "$base/$test" "$base/$test.o" "$base" || exit 1
    timeout 120 "$base/$test" >"$base/log" 2>&1 && continue
    echo "FAIL mutations: $test fails without a mutation"
    cat "$base/log"
    exit 1
done
seq "$(grep -c '' "$work/quick")" | xargs -P "$jobs" -I N tests/mutate.sh --line N | tee "$work/out"

# -- everything else --

# red TEST: 0 when the test fails, 1 when it passes, 2 when it cannot be built.
red() {
    case $1 in
    *.sh)
        make build/epctx CFLAGS="-O0 -Wno-error" >log 2>&1 || return 2
        ! EPCTX_BUILD=build timeout 300 sh tests/$1 >log 2>&1
        ;;
    *)
        make build/tests/$1 CFLAGS="-O0 -Wno-error" >log 2>&1 || return 2
        case $1 in
        test_plugin*)
            for library in libepctx_ep.so libtoy_ep.so libtoy_oom_ep.so libbad_ep.so; do
                make build/$library CFLAGS="-O0 -Wno-error" >log 2>&1 || return 2
            done
            ;;
        esac
        ! timeout 120 build/tests/$1 >log 2>&1
        ;;
    esac
}

slow() {
    mkdir -p "$copy"
    tar -c --exclude=./build --exclude=./.git . | tar -x -C "$copy"
    cd "$copy" || exit 1
    for test in $(cut -f 3 "$work/slow" | sort -u); do
        red $test
        [ $? -eq 1 ] && continue
        echo "FAIL mutations: $test fails without a mutation, or cannot be built"
        cat log
        return
    done
    while IFS="$(printf '\t')" read -r rule file test expression; do
        cp $file original
        sed "$expression" original >$file
        if cmp -s original $file; then
            echo "FAIL mutation $rule: '$expression' changes nothing in $file"
            continue
        fi
        red $test </dev/null
        case $? in
        0) echo "ok mutation $rule ($test: $(grep -m 1 -o '^FAIL [^:]*' log))" ;;
        1) echo "FAIL mutation $rule: $test does not notice '$expression'" ;;
        *) echo "FAIL mutation $rule: '$expression' does not compile: $(grep -m 1 error log)" ;;
        esac
        cp original $file
    done <"$work/slow"
}

[ ! -s "$work/slow" ] || slow | tee -a "$work/out"
! grep -q '^FAIL' "$work/out"
