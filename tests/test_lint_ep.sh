#!/bin/sh
# epctx lint --ep: the EP itself loads each model, and where it and the rules disagree is told.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_lint_ep
make_models plain digits
out=$work/stdout err=$work/stderr
qnn=$(sh tests/deps.sh where ep-onnxruntime-qnn 2>/dev/null)/onnxruntime_qnn
use_eps

# ask EP OPTION...: the tool with ORT and an EP
ask() {
    ep=$1
    shift
    epctx lint --ort "$library" --ep "$ep" "$@"
}
# verdict NAME CODE TEXT...: the exit code, and what standard output has
verdict() {
    name=$1 expected=$2
    shift 2
    for text; do
        if [ "$code" -ne "$expected" ]; then
            fail "$name" "exit code $code, expected $expected: $(tail -n 3 "$out" "$err")"
            return
        elif ! grep -qF -- "$text" "$out"; then
            fail "$name" "no '$text' in: $(cat "$out" "$err")"
            return
        fi
    done
    ok "$name"
}

epctx compile --ort "$library" --ep "$toy" plain.onnx digits.onnx --no-share
[ "$code" -eq 0 ] || fail "models to judge" "$(cat "$err")"

# -- the EP and the rules agree --

ask "$toy" plain_ctx.onnx
verdict "it loads" 0 "plain_ctx.onnx: ToyExecutionProvider 1.2.0 loads it, ONNX Runtime " \
    "0 errors, 0 warnings"
ask "$toy" --json plain_ctx.onnx digits_ctx.onnx
json "two in JSON" '[f["ep"]["verdict"] for f in j["files"]] == ["loads", "loads"] and
    j["files"][0]["ep"]["name"] == "ToyExecutionProvider" and j["errors"] == 0'
mkdir cut
cp plain_ctx.onnx cut
printf TOY1 >cut/plain_toy.bin
ask "$toy" cut
verdict "a binary that is cut" 1 "error E069" "error E902 ep-refuses: ToyExecutionProvider does " \
    "load it, as E078, E069 say: error "
ask "$toy" --json --rules E012 cut/plain_ctx.onnx
json "the EP's word is told whatever rules are chosen" '[f["id"] for f in j["findings"]] ==
    ["E902"] and j["ep"]["verdict"] == "refuses" and "making a session" in j["ep"]["message"] and
    j["errors"] == 1'

# -- they do not --

EPCTX_BAD_EP_SOURCE=/nowhere faulty needs_source lint plain_ctx.onnx
verdict "no rule says so" 1 \
    "error E902 ep-refuses: no rule says so, but ToyExecutionProvider does not load it: error 1: " \
    "the source model is not there to be refitted from"
EPCTX_BAD_EP_SOURCE=/nowhere faulty needs_source lint --format sarif plain_ctx.onnx
"$python" -c 'import json, sys
results = json.load(open(sys.argv[1]))["runs"][0]["results"]
sys.exit([r["ruleId"] for r in results] != ["E902"] or results[0]["level"] != "error")' "$out" &&
    ok "in SARIF" || fail "in SARIF" "$(tail -n 5 "$out")"
ask "$toy" --profile openvino plain_ctx.onnx
verdict "the EP loads what a rule calls an error" 1 "error E018" \
    "warning W903 ep-loads: ToyExecutionProvider loads it, although E018 says error" \
    "loads it, ONNX Runtime"
echo "E018 plain_ctx.onnx for another EP" >ignore
ask "$toy" --profile openvino --ignore ignore plain_ctx.onnx
verdict "an error that is ignored is none" 0 "0 errors, 0 warnings"

# -- it does not come back --

faulty dies_on_damage lint cut/plain_ctx.onnx
verdict "a crash" 1 "error E902" "was ended by signal "
faulty loading_hangs lint --timeout 1 plain_ctx.onnx
verdict "no end" 1 "error E902" "no end after 1 s, the process was killed"
faulty only_compiles lint plain_ctx.onnx
verdict "the device is needed" 0 "warning W904 ep-needs-device" "needs its device, ONNX Runtime"
faulty only_compiles lint --json plain_ctx.onnx
json "in JSON" 'j["ep"]["verdict"] == "needs device" and j["errors"] == 0'
faulty prints lint -v plain_ctx.onnx
verdict "an EP that prints" 0 "0 errors, 0 warnings"

# -- the EP cannot be asked --

faulty registration_hangs lint --timeout 1 plain_ctx.onnx digits_ctx.onnx
verdict "an EP that is not there" 1 "2 files: 0 errors"
[ "$(grep -c "no end after" "$err")" -eq 1 ] && ok "asked once" || fail "asked once" "$(cat "$err")"
ask ./nowhere.so plain_ctx.onnx; result "no such EP" 2 "nowhere.so"
epctx lint --ep Nobodys plain_ctx.onnx; result "a name" 2 "there is no such library"
ask Nobodys plain_ctx.onnx; result "no such EP in it" 1 "has no EP of this name"
epctx lint --ep-opt a=b plain_ctx.onnx; result "an option without EP" 2 "--ep LIBRARY"
ask "$toy" --option ep.context_file_path=a --context-path b plain_ctx.onnx
result "two paths" 1 "contradicts"

# -- a real one --

if [ ! -e "$qnn/libonnxruntime_providers_qnn.so" ]; then
    echo "skip QNN: the package onnxruntime-qnn is not there (tests/deps.sh vendors)"
else
    epctx compile --ort "$library" --ep "$qnn/libonnxruntime_providers_qnn.so" \
        --ep-opt backend_path="$qnn/libQnnHtp.so" --ep-opt soc_model=69 --ep-opt htp_arch=79 \
        --ep-opt enable_htp_fp16_precision=1 -o qnn_ctx.onnx digits.onnx
    [ "$code" -eq 0 ] || fail "QNN compiles" "$(cat "$err")"
    ask "$qnn/libonnxruntime_providers_qnn.so" --ep-opt backend_path="$qnn/libQnnHtp.so" \
        qnn_ctx.onnx
    verdict "QNN loads it" 0 "QNNExecutionProvider " " loads it, ONNX Runtime "
    head -c 20000 qnn_ctx_qnn.bin >cut/qnn_ctx_qnn.bin
    cp qnn_ctx.onnx cut
    ask "$qnn/libonnxruntime_providers_qnn.so" --ep-opt backend_path="$qnn/libQnnHtp.so" \
        cut/qnn_ctx.onnx
    verdict "QNN does not" 1 "QNNExecutionProvider does not load it, as E078, E069 say: " \
        "(known: QNN's system library"
fi

left=$(find "$work" -name '.epctx-*' | head -n 1)
if [ -z "$left" ]; then ok "nothing is left"; else fail "nothing is left" "left behind: $left"; fi
exit $status
