#!/bin/sh
# Weight sharing in ONNX Runtime on a real pair, the prefill and decode graphs of a language model
# over one file of weights, between ORT and the epctx tool both ways; and groups killed at every
# system call that writes. Further cases are in test_plugin_share.c.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
epctx=$plain
share=$build/tests/test_plugin_share
driver=$build/tests/test_plugin

if ! [ -x "$epctx" ] || ! [ -x "$share" ] || ! [ -x "$driver" ] ||
    ! [ -e "$build/libepctx_ep.so" ]; then
    echo "skip sharing in ONNX Runtime: needs the tool, libepctx_ep.so and the tests of the plugin"
    exit 0
fi
# So that no shell is started to find it.
EPCTX_ORT_LIBRARY=$(sh tests/deps.sh where ort) || {
    echo "FAIL ort: ONNX Runtime is not there"
    exit 1
}
export EPCTX_ORT_LIBRARY
start plugin_share
"$python" tests/judge/transformer.py "$work/pair" --layers 2 --width 128 || exit 1
cp -r "$work/pair" "$work/tool"
cd "$work" || exit 1

out=log err=/dev/null

# works NAME TEXT COMMAND...
works() {
    name=$1 text=$2
    shift 2
    if ! "$@" >log 2>&1; then fail "$name" "it fails"
    elif [ -n "$text" ] && ! grep -qF -e "$text" log; then fail "$name" "expected '$text'"
    else ok "$name"; fi
}
files() {
    found=$(ls "$2" | tr '\n' ' ')
    if [ "$found" = "$3" ]; then ok "$1"; else fail "$1" "found '$found', expected '$3'"; fi
}

# -- a real pair --
works "ORT generates the pair" "" "$share" --generate pair/prefill.onnx pair/decode.onnx
files "N + 1 files" pair "decode.onnx decode_ctx.onnx prefill.onnx prefill_ctx.onnx \
prefill_npu.bin weights.bin "
weights=$(wc -c <pair/weights.bin) binary=$(wc -c <pair/prefill_npu.bin)
if [ $((binary * 100)) -le $((weights * 105)) ]; then ok "the binary is one model's weights"
else fail "the binary is one model's weights" "$binary bytes for $weights bytes of weights"; fi
echo "note pair in ORT: $weights bytes of weights, $binary bytes of binary for both graphs"
load() {
    works "$1" "2 sessions, binary opened 1 times" "$share" --load \
        "$2/prefill_ctx.onnx" pair/prefill.onnx "$2/decode_ctx.onnx" pair/decode.onnx
}
load "ORT loads the pair, as on the CPU" pair
for m in prefill decode; do
    if "$driver" --dump pair/$m.onnx cpu_$m >log 2>&1 &&
        "$epctx" run --input-dir cpu_$m --output-dir own_$m pair/${m}_ctx.onnx >>log 2>&1 &&
        "$driver" --compare own_$m cpu_$m >>log 2>&1; then ok "$m from ORT runs in the tool"
    else fail "$m from ORT runs in the tool" "see below"; fi
done
works "the tool compiles the pair" "files          3" "$epctx" compile tool/prefill.onnx \
    tool/decode.onnx
load "ORT loads what the tool compiled" tool

if ! strace -qq -o /dev/null true 2>/dev/null; then
    echo "skip system calls: strace cannot trace here"
    exit $status
fi

# Exactly: events of inotify can be merged, system calls not.
for d in pair tool; do
    strace -f -qq -o calls -e trace=openat,open "$share" --load \
        $d/prefill_ctx.onnx pair/prefill.onnx $d/decode_ctx.onnx pair/decode.onnx >log 2>&1
    opens=$(grep -c 'prefill_npu\.bin' calls)
    if [ "$opens" = 1 ]; then ok "one system call opens the binary ($d)"
    else fail "one system call opens the binary ($d)" "$opens calls"; fi
done

# -- killed at every system call that writes --
"$python" "$top/tests/judge/make_model.py" plain plain.onnx || exit 1
# The same names and shapes with other weights: another generation.
mkdir old new
PYTHONPATH=$top/tests/judge "$python" - <<'END' || exit 1
import sys
from onnx_schema import ModelProto
model = ModelProto()
model.ParseFromString(open("plain.onnx", "rb").read())
for path in ("new/a", "new/b", "old/a", "old/b"):
    for tensor in model.graph.initializer:
        if tensor.float_data:
            tensor.float_data[0] += 1
    open(path + ".onnx", "wb").write(model.SerializeToString())
END
for d in old new; do
    "$share" --compile $d/a.onnx $d/b.onnx >log 2>&1 || fail "generation $d" "cannot be compiled"
done
if cmp -s old/a_npu.bin new/a_npu.bin; then fail "two generations" "one binary"; fi

# A binary is the old or the new one, whole; a model runs as the one or the other or is refused, and
# as the new one when it is whole and so is its binary.
sound() {
    if [ -e crash/a_npu.bin ]; then
        cmp -s crash/a_npu.bin new/a_npu.bin || cmp -s crash/a_npu.bin old/a_npu.bin || return 1
    fi
    for m in a b; do
        [ -e crash/${m}_ctx.onnx ] || continue
        "$share" --judge crash/${m}_ctx.onnx new/$m.onnx old/$m.onnx >log 2>&1 || return 1
        if [ $m = a ] && cmp -s crash/a_npu.bin new/a_npu.bin; then
            grep -q "runs as 0" log || return 1 # its model was written long before
        fi
    done
}
all_new() {
    for m in a b; do
        "$share" --judge crash/${m}_ctx.onnx new/$m.onnx new/$m.onnx >log 2>&1 || return 1
        grep -q "runs as 0" log || return 1
    done
    cmp -s crash/a_npu.bin new/a_npu.bin
}
first() { cp new/a.onnx new/b.onnx crash; }
again() { first; cp old/*_ctx.onnx old/a_npu.bin crash; }
# crash NAME SETUP
crash() {
    name=$1 setup=$2 kills=0
    for call in openat write fsync rename renameat renameat2 unlink unlinkat; do
        rm -rf crash
        mkdir crash
        $setup
        # Before our folder is touched there is nothing to break.
        strace -qq -o calls -e trace=$call "$share" --compile crash/a.onnx crash/b.onnx >log 2>&1
        n=1
        [ $call != openat ] || n=$(grep -n -m 1 'crash/' calls | cut -d: -f1)
        last=$(wc -l <calls)
        while [ "$n" -le "$last" ]; do
            rm -rf crash
            mkdir crash
            $setup
            strace -qq -o /dev/null -e trace=$call -e "inject=$call:signal=KILL:when=$n" \
                "$share" --compile crash/a.onnx crash/b.onnx >log 2>&1 </dev/null
            killed=$?
            kills=$((kills + (killed == 137)))
            if ! sound; then
                fail "$name" "killed at $call $n it leaves $(ls crash | tr '\n' ' ')"
                return
            fi
            if ! "$share" --compile crash/a.onnx crash/b.onnx >log 2>&1 || ! all_new; then
                fail "$name" "killed at $call $n it cannot be completed"
                return
            fi
            n=$((n + $(rounds 1 3)))
        done
    done
    if [ $kills -lt "$(rounds 12 6)" ]; then fail "$name" "killed $kills times only"
    else ok "$name ($kills times)"; fi
}
crash "a group in ORT is killed" first
crash "a group in ORT over an older one is killed" again

exit $status
