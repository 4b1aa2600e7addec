#!/bin/sh
# The plugin EP in older ONNX Runtimes: it works in them, or says what it needs.
set -u
cd "$(dirname "$0")/.."
status=0
mkdir -p build/matrix
for version in 1.29.0 1.24.3 1.22.0; do
    binding=$(sh tests/deps.sh where ort-$version) || exit 1
    EPCTX_ORT_LIBRARY=$(dirname "$binding")/libonnxruntime.so.1
    export EPCTX_ORT_LIBRARY
    build/tests/test_plugin >build/matrix/$version 2>/dev/null
    code=$?
    sed -n "s/^\(ok\|FAIL\|skip\) /\1 ORT $version /p" build/matrix/$version
    [ $code -eq 0 ] || status=1
    [ $code -le 1 ] || echo "FAIL ORT $version: ended with code $code"
    grep -q '^ok' build/matrix/$version || echo "FAIL ORT $version: no case passed"
done
exit $status
