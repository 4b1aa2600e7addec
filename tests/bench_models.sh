#!/bin/sh
# Real models on the reference NPU and on ONNX Runtime's CPU provider, in one process, each on one
# thread: time, speed, scratch memory, difference, then a summary; tests/bench_models.c says what
# the columns are.
#
#   bench_models.sh [NAME...] [--kernels NAME...]
#
# NAME: a model of the folder $EPCTX_TEST_MODELS; --kernels: of one operator, by
# tests/judge/kernels.py, '*' for all. Without arguments: the models that tests/test_npu_models.sh
# runs whole (without that folder those of the demo), then all kernels. With LEVEL=avx2 or
# LEVEL=portable in the environment the NPU uses no faster instructions than these; with
# NPU_CC=clang that compiler builds it.
set -eu
cd "$(dirname "$0")/.."
bench=build/bench_models
headers=$(tests/deps.sh where ort-headers)
if ! [ -e "$headers/onnxruntime_c_api.h" ]; then
    echo "bench_models.sh: no headers of ONNX Runtime: tests/deps.sh plugin" >&2
    exit 1
fi
case ${LEVEL:-} in
    avx2) limit=-DEPCTX_NPU_NO_AVX512 ;;
    portable) limit=-DEPCTX_NPU_NO_SIMD ;;
    *) limit= ;;
esac
objects=$(find build/obj/examples/epctx/*/ -name '*.o' ! -name driver.o ! -path '*/ops/*' \
    ! -path '*/facts/*')
if [ -n "$limit${NPU_CC:-}" ]; then # found before that of the library
    npu=build/bench_npu.o
    # shellcheck disable=SC2086
    ${NPU_CC:-${CC:-gcc}} -std=c11 -O2 -I. $limit -DEPCTX_NPU_IMPLEMENTATION -x c \
        -c epctx_npu.h -o "$npu"
    objects="$objects $npu"
fi
# shellcheck disable=SC2086
${CC:-gcc} -std=c11 -D_GNU_SOURCE -O2 -I. -Iexamples/epctx -isystem "$headers" \
    tests/bench_models.c examples/conformance/ort_driver.c $objects build/libepctx_ops.a \
    build/libepctx.a ${NANOPB_LIBS:--lprotobuf-nanopb} -lsodium -lm -pthread -ldl -o $bench
if [ $# -eq 0 ]; then
    if [ -n "${EPCTX_TEST_MODELS:-}" ]; then
        # shellcheck disable=SC2046
        set -- $(sed -n '/^whole="/,/"$/p' tests/test_npu_models.sh | tr -d '"' |
            sed 's/^whole=//')
    else
        set -- "$(tests/deps.sh where blazeface)"/ONNX/*.onnx
    fi
    set -- "$@" --kernels '*'
fi
echo "NPU built by $(${NPU_CC:-${CC:-gcc}} --version | head -n 1), level ${LEVEL:-all}"
mkdir -p build/kernels
"$(tests/deps.sh where python)" tests/judge/kernels.py build/kernels
folder=${EPCTX_TEST_MODELS:-}/onnx
for name in "$@"; do
    shift
    case $name in
        --kernels)
            folder=build/kernels
            set -- "$@" "$name"
            ;;
        *.onnx) set -- "$@" "$name" ;;
        *) set -- "$@" "$folder"/$name.onnx ;;
    esac
done
exec $bench "$@"
