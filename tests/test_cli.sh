#!/bin/sh
# The tool as a user meets it: exit codes, where messages go, what the commands
# write. Bad models are in test_bad_input.sh.
set -u
cd "$(dirname "$0")/.."
top=$PWD
python=${PYTHON:-/usr/bin/python3}
epctx=$top/build/asan/epctx
work=$top/build/cli
status=0

rm -rf "$work"
mkdir -p "$work"
for kind in plain partly; do
    "$python" tests/judge/make_model.py $kind "$work/$kind.onnx" || {
        echo "FAIL models: $kind could not be made"
        exit 1
    }
done
cd "$work" || exit 1

# Runs the tool; $code, out and err hold what came of it.
epctx() {
    "$epctx" "$@" >out 2>err
    code=$?
}

fail() {
    echo "FAIL $1: $2"
    sed 's/^/  /' out err | head -n 20
    status=1
}

# result NAME CODE [TEXT]: the last command's exit code; TEXT in its output when
# the code is 0, else in its message. A refusal says what it has to say in
# standard error, with the tool's name in front.
result() {
    if [ "$code" -ne "$2" ]; then
        fail "$1" "exit code $code, expected $2"
    elif [ "$2" -eq 0 ] && [ -s err ]; then
        fail "$1" "there is something on standard error"
    elif [ "$2" -ne 0 ] && ! grep -q '^epctx: ' err; then
        fail "$1" "no message on standard error"
    elif [ $# -gt 2 ] && ! cat out err | grep -qF -e "$3"; then
        fail "$1" "expected '$3'"
    else
        echo "ok $1"
    fi
}

# same NAME A B
same() {
    if cmp -s "$2" "$3"; then echo "ok $1"; else fail "$1" "$2 and $3 differ"; fi
}

# -- usage --
epctx --help; result "help" 0 "usage: epctx COMMAND"
epctx --version; result "version" 0 "epctx $(sed -n 's/^#define EPCTX_VERSION_STRING "\(.*\)"/\1/p' "$top/epctx.h")"
for command in compile info run copy dump; do
    epctx $command --help; result "help of $command" 0 "usage: epctx $command"
    epctx $command --nonsense; result "$command with an unknown option" 2 "--nonsense"
    epctx $command; result "$command without a file" 2 "usage: epctx $command"
    epctx $command a b c; result "$command with too many files" 2 "too many"
done
"$epctx" >out 2>err; code=$?
if [ $code -eq 2 ] && [ ! -s out ] && grep -q usage err; then
    echo "ok no command"
else
    fail "no command" "exit code $code"
fi
epctx frobnicate; result "unknown command" 2 "frobnicate"
epctx run --seed; result "option without its value" 2 "--seed"
epctx run --seed many plain.onnx; result "seed that is no number" 2 "many"
epctx run --repeat 0 plain.onnx; result "repeat out of range" 2 "--repeat"
epctx copy --rebuild=yes plain.onnx x.onnx; result "switch with a value" 2 "--rebuild"

# -- copy --
epctx copy plain.onnx a.onnx; result "copy" 0
same "copy is the same" plain.onnx a.onnx
epctx copy a.onnx a.onnx; result "copy onto itself" 0
same "copy onto itself is the same" plain.onnx a.onnx
epctx copy --rebuild partly.onnx b.onnx; result "copy --rebuild" 0
same "copy --rebuild is the same" partly.onnx b.onnx
cp plain.onnx ./-dash.onnx
epctx copy -- -dash.onnx c.onnx; result "name with a dash" 0
epctx copy plain.onnx nowhere/x.onnx; result "copy into a missing folder" 1 "nowhere/x.onnx"
mkdir folder
epctx copy plain.onnx folder; result "copy onto a folder" 1 "folder"
rm -rf folder a.onnx b.onnx c.onnx ./-dash.onnx

# -- info --
epctx info plain.onnx; result "info of an ordinary model" 0 "not an EPContext model"
epctx info --json plain.onnx; result "info --json of an ordinary model" 0 '"ep_context": false'
if [ -w /dev/full ]; then
    "$epctx" info plain.onnx >/dev/full 2>err; code=$?
    : >out
    result "full disk" 1 "standard output"
fi

# -- compile --
epctx compile plain.onnx; result "compile" 0 "plain_ctx.onnx"
[ -s plain_ctx.onnx ] && [ -s plain_npu.bin ] || fail "compile" "a file is missing"
cp plain_ctx.onnx kept.onnx
epctx compile plain.onnx; result "compile does not overwrite" 1 "-f replaces it"
same "what exists stays" plain_ctx.onnx kept.onnx
epctx compile -f plain.onnx; result "compile -f" 0
same "compiling is reproducible" plain_ctx.onnx kept.onnx
epctx compile --overwrite plain.onnx; result "compile --overwrite" 0
epctx compile plain_ctx.onnx; result "compile of a compiled model" 1 "already"
epctx compile plain.onnx -o embedded.onnx --embed; result "compile --embed" 0 "embedded, "
[ -e embedded_npu.bin ] && fail "compile --embed" "wrote a binary"
epctx compile plain.onnx -o=x.onnx; result "short options take no =" 2
epctx compile plain.onnx --prefix=left_ -o prefix_ctx.onnx; result "compile --prefix" 0
epctx info prefix_ctx.onnx; result "prefix in the node's name" 0 "'left_"
epctx compile plain.onnx -f --arch pdp-11; result "unknown architecture" 1 "pdp-11"
epctx compile partly.onnx; result "compile in parts" 0 "1 left to the CPU"
epctx compile partly.onnx -f --require-all; result "compile --require-all" 1 "strange"
epctx compile plain.onnx -o folder_ctx; result "output without an extension" 1 "folder_ctx"

# -- info of what was compiled --
epctx info plain_ctx.onnx; result "info of a context model" 0 "plain_npu.bin, context binary"
epctx info embedded.onnx; result "info of an embedded context" 0 "main, embedded, "
epctx info partly_ctx.onnx; result "info of two partitions" 0 "test.domain:Strange"
epctx info --json partly_ctx.onnx; result "info --json" 0
if "$python" - out <<'END'
import json, os, sys
info = json.load(open(sys.argv[1]))
parts = info["partitions"]
assert info["ep_context"] and len(parts) == 2, "partitions"
assert [p["main_context"] for p in parts] == [1, 0], "main_context"
assert parts[0]["ep_cache_context"] == "partly_npu.bin", "ep_cache_context"
assert parts[1]["ep_cache_context"] is None, "absent attributes are null"
assert info["files"][0]["size"] == os.path.getsize("partly_npu.bin"), "size"
assert os.path.samefile(info["files"][0]["path"], "partly_npu.bin"), "path"
assert info["inputs"][0]["dims"] == [1, 1, 6, 6], "dims"
assert info["cpu_ops"] == {"test.domain:Strange": 1}, "cpu_ops"
assert info["warnings"] == [], "warnings"
END
then echo "ok info --json content"; else fail "info --json content" "see below"; fi
mkdir alone
cp plain_ctx.onnx alone
epctx info alone/plain_ctx.onnx; result "info without the binary" 1 "cannot be used"
grep -q '^warning: .*plain_npu.bin' out || fail "info without the binary" "no warning line"

# -- run --
epctx run plain_ctx.onnx --seed 7 --dump d1; result "run" 0 "open-to-first-output: "
epctx run embedded.onnx --seed 7 --dump d2; result "run of an embedded context" 0
epctx run plain.onnx --seed 7 --dump d3; result "run of an ordinary model" 0 "compiled in memory"
epctx run plain_ctx.onnx --seed 8 --dump d4; result "run with another seed" 0
for f in io.txt input_0.bin output_0.bin; do
    same "embedded: $f" d1/$f d2/$f
    same "compiled in memory: $f" d1/$f d3/$f
done
cmp -s d1/input_0.bin d4/input_0.bin && fail "seed" "another seed gives the same input"
printf 'input 0 1 1,1,6,6 x\noutput 0 1 1,2,1,1 y\n' >want
same "io.txt" want d1/io.txt
epctx run plain_ctx.onnx --input-dir d1 --output-dir deep/er/d5 --repeat 3
result "run on given inputs" 0 "median"
same "given inputs give the same outputs" d1/output_0.bin deep/er/d5/output_0.bin
[ -e deep/er/d5/input_0.bin ] && fail "run --output-dir" "inputs were written"
mkdir short long
head -c 100 d1/input_0.bin >short/input_0.bin
cat d1/input_0.bin d1/input_0.bin >long/input_0.bin
epctx run plain_ctx.onnx --input-dir short; result "input too short" 1 "less than the 144 bytes"
epctx run plain_ctx.onnx --input-dir long; result "input too long" 1 "more than the 144 bytes"
epctx run plain_ctx.onnx --input-dir none; result "input missing" 1 "none/input_0.bin"
epctx run plain_ctx.onnx --dump plain.onnx; result "dump into a file" 1 "plain.onnx"
epctx run partly_ctx.onnx --dump never; result "run with a node left over" 1 "'strange' (Strange)"
[ -e never ] && fail "run with a node left over" "wrote something"
epctx run alone/plain_ctx.onnx; result "run without the binary" 1 "plain_npu.bin"
epctx dump plain_ctx.onnx; result "dump" 0 "EPContext"

# Two contexts in one model: the second one's input is the first one's output.
if "$python" - "$top/tests/judge" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import make_model
from onnx_schema import ModelProto

def part(name, last):
    model = make_model.make("plain")
    nodes = list(model.graph.node)
    keep = nodes[:1] if name == "head" else nodes[1:]
    del model.graph.node[:]
    model.graph.node.extend(keep)
    if name == "head":
        del model.graph.output[:]
        make_model.value(model.graph.output, "c", 1, (1, 2, 4, 4))
    else:
        del model.graph.input[:], model.graph.initializer[:]
        make_model.value(model.graph.input, "c", 1, (1, 2, 4, 4))
    with open(name + ".onnx", "wb") as out:
        out.write(model.SerializeToString())

part("head", "c")
part("tail", "y")
END
then
    epctx compile head.onnx; result "compile the first half" 0
    epctx compile tail.onnx; result "compile the second half" 0
    "$python" - "$top/tests/judge" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from onnx_schema import ModelProto
head, tail = (ModelProto.FromString(open(f, "rb").read()) for f in ("head_ctx.onnx", "tail_ctx.onnx"))
head.graph.node.extend(tail.graph.node)
del head.graph.output[:]
head.graph.output.extend(tail.graph.output)
open("joined_ctx.onnx", "wb").write(head.SerializeToString())
END
    epctx run joined_ctx.onnx --seed 7 --output-dir joined; result "run two contexts" 0
    same "two contexts in a row" d1/output_0.bin joined/output_0.bin
else
    fail "two contexts" "the halves could not be made"
fi

# Names cannot move a terminal's cursor.
printf '\010\010\022\006a\033[2Jb' >hostile.onnx
epctx info hostile.onnx; result "control characters" 0 'a\x1b[2Jb'
grep -q "$(printf '\033')" out && fail "control characters" "they reach the terminal"
exit $status
