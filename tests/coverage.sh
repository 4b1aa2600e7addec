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
scripts='cli edit convert combine weights option share package lint headers onnx_corpus gen_preserve
         bad_input weightless npu_models npu_backend_nodes npu_transformer'
if [ $# -eq 0 ]; then
    for s in $scripts; do set -- "$@" "tests/test_$s.sh"; done
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
