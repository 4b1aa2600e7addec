#!/bin/sh
# The plugin EP in older ONNX Runtimes: it works in them, or says what it needs.
set -u
cd "$(dirname "$0")/.."
status=0
work=${EPCTX_TEST_FOLDER:-build}/matrix
mkdir -p "$work"
for version in 1.30.0 1.29.0 1.24.3 1.22.0; do
    binding=$(sh tests/deps.sh where ort-$version) || exit 1
    EPCTX_ORT_LIBRARY=$(dirname "$binding")/libonnxruntime.so.1
    export EPCTX_ORT_LIBRARY
    for source in tests/test_plugin.c tests/test_plugin_*.c; do
        [ -e "$source" ] || continue
        program=$(basename "$source" .c)
        log=$work/$version.$program
        build/tests/"$program" >"$log" 2>/dev/null
        code=$?
        sed -n "s/^\(ok\|FAIL\|skip\) /\1 ORT $version /p" "$log"
        [ $code -eq 0 ] || status=1
        [ $code -le 1 ] || echo "FAIL ORT $version: $program ended with code $code"
        grep -q '^\(ok\|skip\)' "$log" || echo "FAIL ORT $version: no case of $program passed"
    done
    grep -q '^ok' "$work/$version".* || echo "FAIL ORT $version: no case passed"
    # The tool with it.
    if [ $version = 1.22.0 ]; then continue; fi
    EPCTX_TEST_ORT=$version tests/test_ort.sh >"$work/tool" || status=1
    sed -n "s/^\(ok\|FAIL\|skip\) /\1 ORT $version /p" "$work/tool"
done
exit $status
