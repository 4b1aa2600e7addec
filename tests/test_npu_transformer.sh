#!/bin/sh
# A small language model in two graphs, prefill and decode, over one file of
# weights: both compile whole, and a prompt with two tokens after it gives what
# ONNX Runtime gives, step by step.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
epctx=$plain
layers=2
use_ort
start npu_transformer
"$python" tests/judge/transformer.py "$work" --layers $layers || exit 1
"$python" tests/judge/transformer.py "$work/again" --layers $layers || exit 1
cd "$work" || exit 1

same_bytes() {
    for file in prefill.onnx decode.onnx weights.bin; do cmp "$file" again/"$file" || return 1; done
}

compiles() {
    "$epctx" compile --require-all "$1.onnx" -o "$1_ctx.onnx"
}

# run_both NAME FOLDER: its inputs through the reference NPU and through ONNX Runtime
run_both() {
    "$epctx" run "$1_ctx.onnx" --input-dir "$2" --output-dir "$2/npu" &&
        ort_run "$1.onnx" "$2" "$2/ort" &&
        compare "$2/ort" "$2/npu"
}

prefill() {
    "$epctx" run prefill_ctx.onnx --seed 3 --dump step0 && mkdir -p step0/npu step0/ort &&
        run_both prefill step0
}

# decode STEP TOKEN POSITION: the cache comes from the step before, as the NPU left it
decode() {
    before=step$(($1 - 1))/npu
    mkdir -p "step$1/npu" "step$1/ort"
    {
        "$epctx" run decode_ctx.onnx --seed 1 --dump shape >/dev/null && cp shape/io.txt "step$1/"
    } || return 1
    printf '%b\0\0\0\0\0\0\0' "\\0$(printf %o "$2")" >"step$1/input_0.bin"
    printf '%b\0\0\0\0\0\0\0' "\\0$(printf %o "$3")" >"step$1/input_1.bin"
    i=0
    while [ $i -lt $((2 * layers)) ]; do
        cp "$before/output_$i.bin" "step$1/input_$((i + 2)).bin" || return 1
        i=$((i + 1))
    done
    run_both decode "step$1"
}

verdict deterministic same_bytes
verdict prefill_compiles compiles prefill
verdict decode_compiles compiles decode
verdict prefill_runs prefill
verdict decode_1 decode 1 17 16
verdict decode_2 decode 2 200 17
exit $status
