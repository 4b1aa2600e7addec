#!/bin/sh
# Runs the tests that can reach the headers with everything built for coverage, then counts.
#
#     tests/coverage.sh [PROGRAM...]      default: the scripts below and every test program
#
# build/coverage/untaken.txt lists what was never reached.
set -u
cd "$(dirname "$0")/.."
build=build/coverage
find $build -name '*.gcda' -delete
scripts='cli edit convert combine weights options share package lint compile corpus preserve bad_input
         models weightless backend_nodes transformer'
if [ $# -eq 0 ]; then
    for s in $scripts; do [ -e tests/test_$s.sh ] && set -- "$@" tests/test_$s.sh; done
    set -- "$@" $build/tests/test_*
fi
EPCTX_BUILD=$build tests/run "$@" || echo "coverage: some tests failed, see above"
for fuzzer in $build/fuzz/fuzz_*; do
    name=${fuzzer##*/fuzz_}
    set --
    for folder in "fuzz/regressions/$name" "fuzz/corpus/$name" fuzz/corpus/open; do
        for file in "$folder"/*; do [ -f "$file" ] && set -- "$@" "$file"; done
    done
    "$fuzzer" "$@" || echo "coverage: $fuzzer failed"
done
exec tests/coverage.py $build $build/untaken.txt
