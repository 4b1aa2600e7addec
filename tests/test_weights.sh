#!/bin/sh
# `epctx weights` on models with known overlaps, counted by libprotobuf.
set -u
cd "$(dirname "$0")/.."
epctx=${EPCTX_BUILD:-build/asan}/epctx
work=${EPCTX_TEST_FOLDER:-build}/weights
rm -rf "$work"
mkdir -p "$work"
"${PYTHON:-/usr/bin/python3}" tests/judge/weights.py $epctx $work || status=1

# refused NAME CODE TEXT ARGUMENTS...
refused() {
    name=$1 want=$2 text=$3
    shift 3
    $epctx weights "$@" >$work/out 2>&1
    code=$?
    if [ $code -eq "$want" ] && grep -qF -e "$text" $work/out; then
        echo "ok $name"
    else
        echo "FAIL $name: exit code $code, expected $want and '$text', found: $(cat $work/out)"
        status=1
    fi
}
refused "weights without a model" 2 "usage: epctx weights"
refused "weights of a missing file" 1 "nowhere.onnx" $work/a.onnx $work/nowhere.onnx
rm $work/b.onnx.data
refused "weights without the data file" 1 "b.onnx.data" $work/a.onnx $work/b.onnx

# The weights in context binaries: a model compiled twice has all of them in common.
"${PYTHON:-/usr/bin/python3}" tests/judge/make_model.py plain $work/m.onnx &&
    $epctx compile -o $work/m1_ctx.onnx $work/m.onnx >$work/out &&
    $epctx compile --embed -o $work/m2_ctx.onnx $work/m.onnx >$work/out || status=1
if $epctx weights --json $work/m1_ctx.onnx $work/m2_ctx.onnx >$work/out 2>&1 &&
    "${PYTHON:-/usr/bin/python3}" - $work/out <<'PY'
import json, sys
got = json.load(open(sys.argv[1]))
assert got["models"][0]["bytes"] >= 80 and got["near"] == [], got
assert got["saved_bytes"] * 2 == got["bytes"], got
PY
then
    echo "ok weights of context binaries"
else
    echo "FAIL weights of context binaries: expected the same in both: $(cat $work/out)"
    status=1
fi
printf x | dd of=$work/m1_npu.bin bs=1 seek=200 conv=notrunc 2>/dev/null
refused "weights of a damaged binary" 1 "m1_ctx.onnx" $work/m1_ctx.onnx
exit ${status:-0}
