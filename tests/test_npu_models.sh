#!/bin/sh
# Real models, whole: compiled with no node left behind, run, and every output
# held against ONNX Runtime. They come from EPCTX_TEST_MODELS.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
epctx=$plain
models=${EPCTX_TEST_MODELS:-}/onnx

# What the reference NPU runs completely. A name leaves this list only when its
# operators leave epctx_npu.h.
whole="blazeface_front_128 burn_mnist deeploy_cct2_opset20 dtln_1 dtln_2 espcn_subpixel_float
       fastestdet gtcrn_simple light_resnet50 light_shufflenet light_squeezenet mlpt_ad_int8
       mlpt_ic_fp32 mlpt_ic_int8 mlpt_kws_fp32 mlpt_kws_int8 mlpt_vww_fp32 mlpt_vww_int8 mnist_8
       ort_cnn_mnist_pytorch ortex_ultraface_rfb320 ultraface_version-RFB-320"

# What it runs completely once the dimensions that they leave open have numbers.
# (Not ort_bert_toy_optimized, ort_maui_model: there ORT with and without its optimizations differ
# from each other by 4 and 5 %, and the NPU by no more. Not tract_qlstm: ORT's optimizations fail.)
open="super_resolution_10:batch_size=1 oww_embedding_model:unk__314=1
      oww_melspectrogram:batch_size=1,samples=1280 tract_byte_sb_bidi_lstm:batch=1,length=32
      magika_v3_3:unk__214=1 silero_vad_16k_op15:batch=1,sequence=576
      silero_vad_op18_ifless:batch=1,sequence=576 swift_f0:audio_length=16000
      ppocr_cls:x[0]=1,x[2]=48,x[3]=192 tfl_helloworld:dense_2_input[0]=3"

if ! [ -d "$models" ]; then
    echo "skip real models: EPCTX_TEST_MODELS is not set to a folder of models"
    exit 0
fi
use_ort
start npu_models
cd "$work" || exit 1

# check NAME DIMENSIONS: the last line of the log says what is wrong
check() {
    mkdir "$1" &&
        "$epctx" compile --require-all ${2:+--dim "$2"} "$models/$1.onnx" -o "$1/m_ctx.onnx" &&
        "$epctx" run "$1/m_ctx.onnx" --seed 1 --dump "$1/npu" &&
        ort_run --exact "$models/$1.onnx" "$1/npu" "$1/ort" &&
        compare "$1/ort" "$1/npu"
}

for entry in $whole $open; do
    name=${entry%%:*} dims=
    [ "$name" = "$entry" ] || dims=${entry#*:}
    if ! [ -e "$models/$name.onnx" ]; then
        echo "skip $name: not among the models"
    elif check "$name" "$dims" >"$name.log" 2>&1; then
        echo "ok $name"
    else
        echo "FAIL $name: expected the outputs of ONNX Runtime, found: $(tail -n 1 "$name.log")"
        status=1
    fi
done

# winograd NAME OPTIONS...: how many commands of the model are
winograd() {
    name=$1
    shift
    "$epctx" compile -f "$@" "$models/$name.onnx" -o "${name}_ctx.onnx" >"$name.log" 2>&1 &&
        "$epctx" npu-dump "${name}_ctx.onnx" | grep -c Winograd
}
if [ -e "$models/mlpt_ic_fp32.onnx" ]; then
    found="$(winograd mlpt_ic_fp32 -i 'direct|0') $(winograd mlpt_ic_fp32 -i 'direct|1')"
    case $found in
    [1-9]*" 0") ok "direct" ;;
    *) fail "direct" "expected commands of Winograd without it only, found '$found'" ;;
    esac
fi
exit $status
