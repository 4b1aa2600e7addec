#!/bin/sh
# `epctx weights` on models with known overlaps, counted by libprotobuf.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start weights
out=$work/out err=$work/err
"$python" tests/judge/weights.py "$epctx" "$work" || status=1

epctx weights; said "weights without a model" 2 "usage: epctx weights"
epctx weights "$work"/a.onnx "$work"/nowhere.onnx; said "weights of a missing file" 1 "nowhere.onnx"
rm "$work"/b.onnx.data
epctx weights "$work"/a.onnx "$work"/b.onnx; said "weights without the data file" 1 "b.onnx.data"

# The weights in context binaries: a model compiled twice has all of them in common.
make_models plain && mv "$work"/plain.onnx "$work"/m.onnx &&
    $epctx compile -o "$work"/m1_ctx.onnx "$work"/m.onnx >"$work"/out &&
    $epctx compile --embed -o "$work"/m2_ctx.onnx "$work"/m.onnx >"$work"/out || status=1
if $epctx weights --json "$work"/m1_ctx.onnx "$work"/m2_ctx.onnx >"$work"/out 2>&1 &&
    "$python" - "$work"/out <<'PY'
import json, sys
got = json.load(open(sys.argv[1]))
assert got["models"][0]["bytes"] >= 80 and got["near"] == [], got
assert got["saved_bytes"] * 2 == got["bytes"], got
PY
then
    echo "ok weights of context binaries"
else
    echo "FAIL weights of context binaries: expected the same in both: $(cat "$work/out")"
    status=1
fi
printf x | dd of="$work"/m1_npu.bin bs=1 seek=200 conv=notrunc 2>/dev/null
epctx weights "$work"/m1_ctx.onnx; said "weights of a damaged binary" 1 "m1_ctx.onnx"
exit $status
