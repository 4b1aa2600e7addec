#!/bin/sh
# `epctx weights` on models with known overlaps, counted by libprotobuf.
set -u
cd "$(dirname "$0")/.."
epctx=build/asan/epctx
work=build/weights
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
exit ${status:-0}
