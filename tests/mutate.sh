#!/bin/sh
# Breaks rules one at a time, in a copy, and expects the test to notice.
#
#     tests/mutate.sh [RULE...]
#
# mutations.txt has a line for each change: the rule, the file, the test (a program test_x or a
# script test_x.sh) and a sed expression, separated by tabs.
set -u
cd "$(dirname "$0")/.."
copy=build/mutate
status=0
rm -rf $copy
mkdir -p $copy
tar -c --exclude=./build --exclude=./.git . | tar -x -C $copy
case ${EPCTX_CACHE:-build/deps} in
/*) cache=$EPCTX_CACHE ;;
*) cache=$PWD/${EPCTX_CACHE:-build/deps} ;;
esac
export EPCTX_CACHE="$cache"
cd $copy || exit 1

# red TEST: 0 when the test fails, 1 when it passes, 2 when it cannot be built.
red() {
    case $1 in
    *.sh)
        make build/epctx build/asan/epctx CFLAGS="-O0 -Wno-error" >log 2>&1 || return 2
        ! sh tests/$1 >log 2>&1
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

awk -F '\t' -v rules=" $* " '$1 !~ /^(#.*)?$/ && (rules == "  " || index(rules, " " $1 " ")) {
    print $3 }' tests/mutations.txt | sort -u >tests.used
while read -r test; do
    red $test
    [ $? -eq 1 ] && continue
    echo "FAIL mutations: $test fails without a mutation, or cannot be built"
    cat log
    exit 1
done <tests.used

while IFS="$(printf '\t')" read -r rule file test expression; do
    case $rule in '' | '#'*) continue ;; esac
    [ $# -gt 0 ] && case " $* " in *" $rule "*) ;; *) continue ;; esac
    cp $file original
    sed "$expression" original >$file
    if cmp -s original $file; then
        echo "FAIL mutation $rule: '$expression' changes nothing in $file"
        status=1
        continue
    fi
    red $test
    case $? in
    0) echo "ok mutation $rule ($test: $(grep -m 1 -o '^FAIL [^:]*' log))" ;;
    1) echo "FAIL mutation $rule: $test does not notice '$expression'"; status=1 ;;
    *) echo "FAIL mutation $rule: '$expression' does not compile: $(grep -m 1 error log)"; status=1 ;;
    esac
    cp original $file
done <tests/mutations.txt
exit $status
