#!/bin/sh
# Lint against ONNX Runtime: the models of test_lint.c, which break and keep every rule, and some
# hundreds of changed models. tests/judge/ort_verdicts.py tells what counts as refused.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
epctx=$plain
fixtures=$build/tests/test_lint
models=${EPCTX_TEST_MODELS:-}
data=/usr/share/libonnx-testdata/data
start lint_ort
mkdir -p "$work/models/sub" "$work/models/folder.bin"

headers=$(sh tests/deps.sh where ort-headers) || exit 1
${CC:-gcc} -O1 -std=gnu11 -I. -Iexamples/epctx -isystem "$headers" tests/ort/verdicts.c \
    examples/conformance/ort_driver.c "$build/libepctx.a" -o "$work/verdicts" \
    ${NANOPB_LIBS:--lprotobuf-nanopb} -ldl -lm -pthread || exit 1
${CC:-gcc} -O1 -std=c11 -fPIC -shared -isystem "$headers" tests/ort/any_ep.c \
    -o "$work/any_ep.so" || exit 1

# The disk that test_lint.c pretends to have.
(cd "$work/models" && for f in good.bin model_npu.bin a..b.bin 'sub\x.bin'; do
    { printf 'FAKE\001'; head -c 35 /dev/zero; } >"$f"
done; : >empty.bin; head -c 40 /dev/zero >../secret; ln -s ../secret link.bin)
EPCTX_FIXTURES=$work/models "$fixtures" >/dev/null 2>&1 || exit 1

set --
if [ -d "$data" ]; then
    for m in test_if test_if_seq test_loop11 test_loop13_seq test_scan9_sum \
        test_optional_get_element; do
        set -- "$@" "$data/node/$m/model.onnx"
    done
    set -- "$@" "$data/simple/test_sequence_model1/model.onnx" \
        "$data/simple/test_sequence_model4/model.onnx"
fi
if [ -n "$models" ] && [ -d "$models/onnx" ]; then
    for m in onnx/tfl_helloworld onnx/tract_qlstm onnx/mnist_8 onnx/mlpt_kws_int8 \
        onnx/light_squeezenet epcontext/ort_testdata/qnn_multi_ctx_embed \
        epcontext/ort_example_ep/01_embed1_ctx epcontext/ort_example_ep/05_partial_ctx \
        epcontext/multi_partition/multi_embed1_ctx; do
        set -- "$@" "$models/$m.onnx"
    done
else
    echo "skip genuine models: EPCTX_TEST_MODELS is not set"
fi
"$python" tests/judge/ort_verdicts.py "$epctx" "$work/verdicts" "$work/any_ep.so" "$work/models" \
    "$(rounds 800 200)" 1 "$@" 2>"$work/err"
status=$?
[ $status -eq 0 ] || tail -n 5 "$work/err"
exit $status
