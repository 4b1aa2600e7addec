#!/bin/sh
# Every fuzzer in build/fuzz: first what once went wrong (fuzz/regressions/NAME)
# and the seeds (fuzz/corpus/NAME), then FUZZ_SECONDS of new inputs (default 8).
# In a quick run only the first, by programs without libFuzzer (fuzz/replay.c).
# What a fuzzer finds it keeps in build/failures; put it into fuzz/regressions.
# The number behind "cov" counts the edges of the program that inputs reached, "ft" adds how often.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start fuzz
seconds=${FUZZ_SECONDS:-8}
data=/usr/share/libonnx-testdata/data
fuzzers=$top/build/fuzz options="-timeout=10 -rss_limit_mb=2048"
if quick; then fuzzers=$build/asan/fuzz options=; fi
mkdir -p build/failures

# What a log tells, and the line before: the message of an error that should not be.
found() {
    grep -m 1 -B 1 -E 'ERROR|runtime error|SUMMARY' "$1" | tr '\n' ' '
}

number=0
for fuzzer in "$fuzzers"/fuzz_*; do
    [ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
    name=${fuzzer##*/fuzz_}
    [ -e "fuzz/fuzz_$name.c" ] || [ -e "fuzz/fuzz_$name.cc" ] || continue
    runs=$work/$name
    log=$runs.log
    mkdir -p "$runs/seeds" "$runs/found"
    # Where models are wanted, small ones of many kinds make good seeds.
    case $name in
    open | check | convert | combine | compile | wire)
        [ "$name" = open ] || cp fuzz/corpus/open/* "$runs/seeds"
        if [ -d $data ]; then
            find $data -name '*.onnx' -size -3k | LC_ALL=C sort | awk 'NR % 20 == 0 {
                n++; printf "%s\t%04d\n", $0, n}' | while IFS='	' read -r file number; do
                cp "$file" "$runs/seeds/$number.onnx"
            done
        fi ;;
    blob) # compiled now: stored ones would be of an old format some day
        make_models digits
        for file in "$work/digits.onnx" $(find $data -name '*.onnx' -size -3k 2>/dev/null |
            LC_ALL=C sort | awk 'NR % 8 == 0'); do
            number=$((number + 1))
            "$plain" compile -f "$file" -o "$runs/seeds/${number}_ctx.onnx" >/dev/null 2>&1
        done
        rm -f "$runs"/seeds/*.onnx
        [ -e "$runs/seeds/1_npu.bin" ] || fail "$name seeds" "'digits' is not compiled" ;;
    esac

    set --
    for folder in "fuzz/regressions/$name" "fuzz/corpus/$name" "$runs/seeds"; do
        for file in "$folder"/*; do [ -f "$file" ] && set -- "$@" "$file"; done
    done
    if [ $# -gt 0 ]; then
        # shellcheck disable=SC2086 # a list of words
        if "$fuzzer" $options "$@" >"$log" 2>&1; then
            echo "ok $name replay: $# files"
        else
            echo "FAIL $name replay: expected no finding in $# files, found: \
$(found "$log")"
            tail -n 25 "$log"
            status=1
            continue
        fi
    else
        echo "skip $name replay: no file in fuzz/corpus/$name or fuzz/regressions/$name"
    fi
    quick && continue

    dictionary=
    case $name in
    blob | share) ;;
    path | option | facts) dictionary=-dict=fuzz/$name.dict ;;
    *) dictionary=-dict=fuzz/onnx.dict ;;
    esac
    # Short inputs first, which the mutator for trees would not do by itself: where many runs a
    # second count for more than size.
    [ "$name" = combine ] && dictionary="$dictionary -len_control=50"
    set -- $dictionary "$runs/found"
    for folder in "fuzz/corpus/$name" "$runs/seeds"; do
        [ -d "$folder" ] && set -- "$@" "$folder"
    done
    [ "$seconds" -gt 0 ] || { echo "skip $name new inputs: FUZZ_SECONDS is 0"; continue; }
    # Each byte is looked at, and the seeds are shorter.
    length=65536
    [ "$name" = binary ] && length=6144
    # shellcheck disable=SC2086 # a list of words
    if "$fuzzer" -max_total_time="$seconds" $options -max_len=$length \
        -artifact_prefix=build/failures/"$name"- "$@" >"$log" 2>&1; then
        echo "ok $name new inputs"
        echo "note $name: \
$(sed -n 's/^Done \([0-9]*\) runs in \([0-9]*\).*/\1 inputs in \2 s/p' "$log"), \
$(sed -n 's/^#.*\(cov: [0-9]* ft: [0-9]*\).*/\1/p' "$log" | tail -n 1)"
    else
        echo "FAIL $name new inputs: expected no finding in $seconds s, found: \
$(found "$log")"
        tail -n 25 "$log"
        status=1
    fi
done
[ -n "$(ls fuzz/fuzz_*.c 2>/dev/null)" ] || echo "skip fuzzers: there is none in fuzz/"
exit $status
