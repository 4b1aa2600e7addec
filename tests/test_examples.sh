#!/bin/sh
# examples/README.md as a new user would try it: its commands, in order, from the top of the tree.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start examples_test
if ! [ -e "$build/libepctx_ep.so" ] || ! [ -e "$build/tests/test_plugin" ]; then
    echo "skip examples README: the plugin is not built"
    exit 0
fi
MODEL=$(find "$(sh tests/deps.sh where blazeface)" -name '*front*.onnx' 2>/dev/null | head -n 1)
if [ -z "$MODEL" ]; then
    echo "skip examples README: the demo's model is not there"
    exit 0
fi
export MODEL
# What `make` would build is built: only the test's own make may run make.
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' examples/README.md |
    sed "s/^make .*/:/; s|build/|$build/|g; s|$build/my_ep|$work/my_ep|g" >"$work"/commands.sh
if ! sh -e "$work"/commands.sh >"$work"/log 2>&1; then
    echo "FAIL examples README runs: $(tail -n 1 "$work/log")"
    cat "$work"/log
    exit 1
fi
echo "ok examples README runs"
count=$(grep -c 'outputs as on the CPU' "$work"/log)
if [ "$count" -eq 12 ]; then
    echo "ok examples README: template, own device, and that with an EP option, four runs each"
else
    echo "FAIL examples README: expected 12 good runs, found $count"
    cat "$work"/log
    exit 1
fi

# What nobody checked before: names and shapes for which the template has no room.
for hostile in "x 0" "$(printf '%01000d' 0) 4" "$(printf '%0250d' 0) 4"; do
    "$python" -B - $hostile "$work/hostile.onnx" <<'EOF' || exit 1
import sys
sys.path.insert(0, "tests/judge")
from make_model import FLOAT, ModelProto, node, value
name, size, path = sys.argv[1:]
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=13)
model.graph.name = "hostile"
info = value(model.graph.input, name, FLOAT, (int(size),))
if size == "0":
    info.type.tensor_type.ClearField("shape")
value(model.graph.output, "y", FLOAT, (4,))
node(model.graph, "Relu", "relu", (name,), ("y",))
with open(path, "wb") as out:
    out.write(model.SerializeToString())
EOF
    "$build/tests/test_plugin" --try "$work"/my_ep/libacorn_ep.so AcornExecutionProvider \
        "$work"/hostile.onnx >"$work"/log 2>&1
    if [ $? -lt 128 ] && grep -q "no node ran on AcornExecutionProvider" "$work"/log; then
        echo "ok examples my_ep leaves a model that does not fit: ${hostile##* }, ${#hostile}"
    else
        echo "FAIL examples my_ep: expected a refusal of '$(echo "$hostile" | head -c 40)', found: \
$(tail -n 1 "$work"/log)"
        exit 1
    fi
done

# The template takes what the test programs ask of any device.
for program in test_plugin test_plugin_share test_plugin_rows; do
    if EPCTX_TEST_EP="acorn $work/my_ep/libacorn_ep.so AcornExecutionProvider acorn" \
        EPCTX_TEST_MODELS='' "$build/tests/$program" >"$work"/log 2>/dev/null &&
        ! grep -q ^FAIL "$work"/log && grep -q "^ok acorn" "$work"/log; then
        echo "ok examples my_ep passes $program: $(grep -c '^ok acorn' "$work/log") cases"
    else
        echo "FAIL examples my_ep passes $program: $(grep -m 1 ^FAIL "$work/log")"
        exit 1
    fi
done

# The application that keeps everything encrypted, plain and under sanitizers.
try() { # try PROGRAM NAME
    dir=$work/$2
    mkdir -p "$dir"
    cp "$MODEL" "$dir/m.onnx"
    "$1" key "$dir/key" || return 1
    "$1" compile "$dir/key" "$dir/m.onnx" "$dir/m_ctx.onnx" >"$dir/log" || return 1
    [ "$(ls "$dir")" = "key
log
m.onnx
m_ctx.onnx.sealed
m_npu.bin.sealed" ] || { echo "other files than expected: $(ls "$dir")"; return 1; }
    "$plain" compile "$dir/m.onnx" -o "$dir/plain_ctx.onnx" >"$dir/log" 2>&1 || return 1
    for sealed in m_ctx.onnx m_npu.bin; do
        if grep -q -a -e EPContext -e conv "$dir/$sealed.sealed"; then
            echo "$sealed.sealed can be read"
            return 1
        fi
    done
    "$1" run "$dir/key" "$dir/m_ctx.onnx" >"$dir/sealed.out" &&
        "$1" run - "$dir/plain_ctx.onnx" >"$dir/plain.out" ||
        return 1
    [ -s "$dir/sealed.out" ] && cmp "$dir/sealed.out" "$dir/plain.out" || return 1
    # Any byte changed, another file in its place, another key, a plain file: refused with a reason.
    mkdir -p "$dir/kept"
    cp "$dir/"*.sealed "$dir/kept/"
    size=$(wc -c <"$dir/m_npu.bin.sealed")
    for at in 0 8 40 $((size / 2)) $((size - 1)); do
        { head -c $at "$dir/kept/m_npu.bin.sealed"
          tail -c +$((at + 1)) "$dir/kept/m_npu.bin.sealed" | head -c 1 |
              LC_ALL=C tr '\000-\377' '\001-\377\000'
          tail -c +$((at + 2)) "$dir/kept/m_npu.bin.sealed"; } >"$dir/m_npu.bin.sealed"
        refused "$1" "$dir" "byte $at changed" "\(sealed file\|match this name and key\)" ||
            return 1
    done
    head -c 10 "$dir/kept/m_npu.bin.sealed" >"$dir/m_npu.bin.sealed"
    refused "$1" "$dir" "cut off" "is not a sealed file" || return 1
    cp "$dir/kept/m_ctx.onnx.sealed" "$dir/m_npu.bin.sealed"
    refused "$1" "$dir" "another file" "match this name and key" || return 1
    rm "$dir/m_npu.bin.sealed"
    cp "$dir/plain_npu.bin" "$dir/m_npu.bin"
    refused "$1" "$dir" "a plain file" "m_npu.bin" || return 1
    cp "$dir/kept/"*.sealed "$dir/"
    "$1" run "$dir/key" "$dir/m_ctx.onnx" | cmp - "$dir/plain.out" || return 1
    if "$1" key "$dir/key" 2>"$dir/log"; then
        echo "a key is overwritten"
        return 1
    fi
    echo >>"$dir/key"
    refused "$1" "$dir" "a key and more" "expected a key of 32 bytes" || return 1
    "$1" key "$dir/key2"
    mv "$dir/key2" "$dir/key"
    refused "$1" "$dir" "another key" "the key is wrong"
}
refused() { # refused PROGRAM FOLDER WHAT MESSAGE
    if "$1" run "$2/key" "$2/m_ctx.onnx" >"$2/log" 2>&1; then
        echo "$3: expected to be refused"
        return 1
    fi
    grep -q "^encrypted: .*$4" "$2/log" && return
    echo "$3: expected '$4' in: $(cat "$2/log")"
    return 1
}
for program in "$build/encrypted" "$(rounds "$build/asan/encrypted" "")"; do
    [ -n "$program" ] || continue
    name=encrypted$(echo "$program" | sed -n 's/.*asan.*/_asan/p')
    if ! [ -x "$program" ]; then
        echo "skip examples $name: $program is not built"
    elif why=$(try $program $name 2>&1); then
        echo "ok examples $name"
    else
        echo "FAIL examples $name: $why"
        exit 1
    fi
done
for cc in gcc clang; do
    command -v $cc >/dev/null || { echo "skip examples $cc: not installed"; continue; }
    if $cc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual \
        -Wstrict-prototypes -Werror -fsyntax-only -DEPCTX_NO_WIRE -I. -Iexamples/plugin_ep \
        examples/my_ep/device_mine.c >"$work"/log 2>&1; then
        echo "ok examples $cc my_ep"
    else
        echo "FAIL examples $cc my_ep: $(grep -m 1 error "$work/log")"
        exit 1
    fi
done
