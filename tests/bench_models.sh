#!/bin/sh
# Real models on the reference NPU and on ONNX Runtime's CPU provider, in one process, each on one
# thread: time, speed, scratch memory, difference. bench_models.sh [NAME...]; without names those
# that tests/test_npu_models.sh runs whole, without a folder of models the one of the demo.
# bench_models.sh --kernels [NAME...]: models of one operator each, by tests/judge/kernels.py.
# tests/bench_models.c says what the columns are.
set -eu
cd "$(dirname "$0")/.."
bench=build/bench_models
headers=$(tests/deps.sh where ort-headers)
if ! [ -e "$headers/onnxruntime_c_api.h" ]; then
    echo "bench_models.sh: no headers of ONNX Runtime: tests/deps.sh plugin" >&2
    exit 1
fi
objects=$(find build/obj/examples/epctx -maxdepth 1 -name '*.o' ! -name main.o)
# shellcheck disable=SC2086
${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -I. -isystem "$headers" tests/bench_models.c \
    examples/conformance/ort_driver.c $objects build/libepctx_ops.a \
    build/libepctx.a ${NANOPB_LIBS:--lprotobuf-nanopb} -lsodium -lm -pthread -ldl -o $bench
if [ "${1:-}" = --kernels ]; then
    mkdir -p build/kernels
    "${PYTHON:-/usr/bin/python3}" tests/judge/kernels.py build/kernels
    shift
    [ $# -gt 0 ] || set -- '*'
    for name in "$@"; do
        shift
        set -- "$@" build/kernels/$name.onnx
    done
    exec $bench "$@"
fi
if [ -z "${EPCTX_TEST_MODELS:-}" ]; then
    exec $bench "$(tests/deps.sh where blazeface)"/ONNX/*.onnx
fi
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046
    set -- $(sed -n '/^whole="/,/"$/p' tests/test_npu_models.sh | tr -d '"' | sed 's/^whole=//')
fi
for name in "$@"; do
    shift
    set -- "$@" "$EPCTX_TEST_MODELS/onnx/$name.onnx"
done
$bench "$@"
