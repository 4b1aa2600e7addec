#!/bin/sh
# Weightless models as a user meets them: a small binary, the outputs of ONNX Runtime's CPU EP, and
# no run with a source that is missing or has changed. Two graphs of a transformer over one file of
# weights, and real models from EPCTX_TEST_MODELS.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
checked=$epctx
epctx=$plain
models=${EPCTX_TEST_MODELS:-}/onnx
real="blazeface_front_128 burn_mnist deeploy_cct2_opset20 fastestdet mlpt_vww_int8"

use_ort
start weightless
"$python" tests/judge/transformer.py "$work" --layers 2 || exit 1
cd "$work" || exit 1

bytes() { wc -c <"$1"; }

# smaller A B TIMES: is A at least TIMES smaller than B?
smaller() {
    [ $(($(bytes "$1") * $3)) -lt "$(bytes "$2")" ] ||
        { echo "$1 has $(bytes "$1") bytes, $2 $(bytes "$2")"; return 1; }
}

# refused TEXT COMMAND...: fails, and says so
refused() {
    text=$1
    shift
    "$@" >out 2>&1 && { echo "it ran"; return 1; }
    grep -qF "$text" out || { cat out; return 1; }
}

# as_ort MODEL CONTEXT FOLDER: outputs of the context model are those of ORT on the source
as_ort() {
    "$epctx" run "$2" --seed 3 --dump "$3" && mkdir -p "$3/ort" &&
        ort_run --exact "$1" "$3" "$3/ort" &&
        compare "$3/ort" "$3"
}

group() {
    "$epctx" compile -C "ep.enable_weightless|1" prefill.onnx decode.onnx &&
        smaller prefill_npu.bin weights.bin 10
}

changed_data() {
    mkdir changed && cp prefill_ctx.onnx prefill_npu.bin prefill.onnx changed/ &&
        { cat weights.bin; } >changed/weights.bin &&
        printf 'x' | dd of=changed/weights.bin bs=1 seek=5000 conv=notrunc 2>/dev/null &&
        refused "has changed, compile again" "$checked" run changed/prefill_ctx.onnx
}

moved() {
    mkdir away && cp prefill_ctx.onnx prefill_npu.bin away/ &&
        refused "ep.context_source_model_path" "$checked" run away/prefill_ctx.onnx &&
        refused "decode.onnx" "$checked" run away/prefill_ctx.onnx --source nothing/decode.onnx &&
        "$checked" run away/prefill_ctx.onnx --source prefill.onnx
}

usage() {
    refused "omit --source" "$checked" run prefill.onnx --source prefill.onnx &&
        "$checked" ls prefill_ctx.onnx | grep -q prefill.onnx &&
        "$checked" lint prefill_ctx.onnx
}

model() {
    mkdir "$1" && cp "$models/$1.onnx" "$1/m.onnx" &&
        "$epctx" compile "$1/m.onnx" -o "$1/full.onnx" &&
        "$epctx" compile --weightless "$1/m.onnx" &&
        smaller "$1/m_npu.bin" "$1/full_npu.bin" 3 &&
        "$checked" lint "$1/m_ctx.onnx" &&
        as_ort "$1/m.onnx" "$1/m_ctx.onnx" "$1/io"
}

verdict group group
verdict prefill as_ort prefill.onnx prefill_ctx.onnx prefill
verdict decode as_ort decode.onnx decode_ctx.onnx decode
verdict changed_data changed_data
verdict moved moved
verdict usage usage
if [ -d "$models" ]; then
    for name in $real; do verdict "$name" model "$name"; done
else
    echo "skip real models: EPCTX_TEST_MODELS is not set to a folder of models"
fi
exit $status
