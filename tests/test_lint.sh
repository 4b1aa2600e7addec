#!/bin/sh
# Lint and the reading commands on genuine models, judged by libprotobuf, and
# as a user meets them: exit codes, JSON, memory.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
models=${EPCTX_TEST_MODELS:-}
start lint
out=$work/out err=$work/err

json() {
    if "$python" -m json.tool <"$work/out" >/dev/null 2>&1; then ok "$1"
    else fail "$1" "no JSON"; fi
}

# -- everything that needs genuine models --
if [ -n "$models" ] && [ -d "$models/epcontext" ]; then
    "$python" tests/judge/lint.py "$plain" "$work/judge" "$models/epcontext" 2>/dev/null || status=1
    # Some of these have external data, the corpus has none.
    "$python" tests/judge/lint.py "$plain" corpus "$models" |
        sed 's/^ok /&models: /; s/^FAIL /&models: /'
else
    echo "skip genuine models: EPCTX_TEST_MODELS is not set"
fi

data=/usr/share/libonnx-testdata/data
if [ -d "$data" ]; then
    "$python" tests/judge/lint.py "$plain" corpus "$data" || status=1
else
    echo "skip scan of the corpus: $data is not there"
fi

# -- models made here --
"$python" tests/judge/make_model.py extras "$work/extras.onnx" || exit 1
"$python" - "$work" <<'PY' || exit 1
import os, sys
sys.path.insert(0, "tests/judge")
import lint
from make_model import make
folder = sys.argv[1]

def save(model, name):
    with open(os.path.join(folder, name), "wb") as out:
        out.write(model.SerializeToString())

model = make("plain")
model.opset_import.add(domain="com.microsoft", version=1)
del model.graph.node[:]
del model.graph.initializer[:]
for at, (source, target) in enumerate((("x", "a"), ("a", "y"))):
    node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name=f"part{at}",
                                input=[source], output=[target])
    for key, text in (("main_context", 1 - at), ("embed_mode", 0),
                      ("source", "QNNExecutionProvider"), ("ep_sdk_version", "2.30")):
        lint.put(node, key, text)
lint.put(model.graph.node[0], "ep_cache_context", "model_qnn.bin")
lint.value(model.graph.value_info, "a", 1, (1, 2))
model.metadata_props.add(key="ep_compatibility_info.QNNExecutionProvider",
                         value="6:2.30.0:2.20.0:3.3.3:73:0")
save(model, "model_ctx.onnx")
looks = make("plain")
looks.CopyFrom(model)
lint.put(looks.graph.node[0], "source", "TensorrtExecutionProvider")
save(looks, "looks_ctx.onnx")
lint.put(model.graph.node[0], "main_context", 0)
save(model, "lone_ctx.onnx")
lint.put(model.graph.node[0], "main_context", 1)
lint.put(model.graph.node[0], "embed_mode", 1)
lint.put(model.graph.node[0], "ep_cache_context", b"")
save(model, "empty_ctx.onnx")
lint.put(model.graph.node[0], "source", "evil\x1b[31m\nname")
save(model, "evil_ctx.onnx")
PY
printf 'context bytes' >"$work/model_qnn.bin"
ctx=$work/model_ctx.onnx

epctx lint "$ctx"; said "lint of a proper model" 0 "0 errors"
epctx info "$work/lone_ctx.onnx"
said "info of a lone secondary node" 1 "is 0, but no node of its EP has main_context 1"
said "info of its context" 1 "own context, in the file"
epctx lint "$work/lone_ctx.onnx"; said "lint of a lone secondary node" 1 "E012"
epctx info "$work/empty_ctx.onnx"
said "info of an empty context" 1 "is empty, but must contain the context"
epctx info "$ctx"; said "info of a proper model" 0 "secondary: inside a main one"
epctx lint --json --hints "$ctx"; said "lint --json" 0; json "lint --json is JSON"
epctx lint --profile openvino "$ctx"; said "lint for another EP" 1 "E018"
epctx lint --profile nonsense "$ctx"; said "lint for an unknown EP" 2 "'nonsense'"
epctx lint --rules; said "lint --rules" 0 "E012 secondary-without-primary"
said "lint --rules knows what this tool adds" 0 "E900 context-loads"
epctx lint --rules --json; said "lint --rules --json" 0; json "lint --rules is JSON"
epctx lint "$work/evil_ctx.onnx"; said "lint of hostile names" 1
if grep -q "$(printf '\033')" "$work/out"; then
    fail "lint escapes" "an escape character was printed"
else
    ok "lint escapes"
fi
epctx ls "$ctx"; said "ls" 0 "model_qnn.bin"
epctx ls --json "$ctx"; said "ls --json" 0; json "ls --json is JSON"
mv "$work/model_qnn.bin" "$work/away.bin"
epctx ls "$ctx"; said "ls of a missing file" 1 "MISSING"
epctx lint "$ctx"; said "lint of a missing file" 1 "E022"
epctx lint --no-files "$ctx"; said "lint --no-files" 0
LC_ALL=C sed 's/com\.microsoft/com.microsofx/g' "$ctx" >"$work/lost.onnx"
epctx info "$work/lost.onnx"; said "info of a lost domain" 0 "that no EP takes, in a wrong domain"
if grep -q "not compiled" "$out"; then
    fail "info of a lost domain" "it says 'not compiled'"
fi
rm "$work/lost.onnx"
mkdir -p "$work/elsewhere"
mv "$work/away.bin" "$work/elsewhere/model_qnn.bin"
epctx ls --context-path "$work/elsewhere/m_ctx.onnx" "$ctx"; said "ls with ep.context_file_path" 0
epctx get --node part0 --context-path "$work/elsewhere/m_ctx.onnx" "$ctx" context
said "get of a context in a file" 0 "context bytes"
epctx get --node part0 --context-path "$work/elsewhere" "$ctx" context
said "get with a folder, of an EP that does not look" 1 "does not exist"
epctx get --node part0 --context-path "$work/elsewhere" "$work/looks_ctx.onnx" context
said "get with a folder, of an EP that looks" 0 "context bytes"
mv "$work/elsewhere/model_qnn.bin" "$work/model_qnn.bin"
epctx get --node part1 "$ctx" source; said "get of an attribute" 0 "QNNExecutionProvider"
epctx get "$ctx" source; said "get without a choice" 1 "select one with --node"
epctx get --node part0 "$ctx" notes; said "get of an absent attribute" 1 "no attribute 'notes'"
epctx get -o "$work/got" --node part0 "$ctx" context
if cmp -s "$work/got" "$work/model_qnn.bin"; then ok "get -o"; else fail "get -o" "other bytes"; fi
for pair in "6:2.30.0:2.20.0:3.3.3:73:0 0" "6:2.31.0:2.21.0:3.3.4:75:0 1" \
    "6:2.30.0:2.20.0:3.3.3:68:0 3" "v2:6:2.30.0:2.20.0:75:57:8:0 1" "garbage 4"; do
    epctx check --against "${pair% *}" "$ctx"
    said "check against ${pair% *}" "${pair#* }"
done
"$epctx" set -o "$work/chips_ctx.onnx" "$ctx" \
    metadata:ep_compatibility_info.QNNExecutionProvider=v2:6:2.47.0:2.34.0:73,75:43,57:8,8:0 \
    >/dev/null 2>&1
epctx check --against v2:6:2.47.0:2.34.0:75:57:8:0 "$work/chips_ctx.onnx"
said "check of a binary for several chips" 0 "HTP archs      73,75"
epctx lint "$work/chips_ctx.onnx"; said "lint of a binary for several chips" 0 "0 warnings"
epctx check --json "$ctx"; said "check --json" 4; json "check --json is JSON"
epctx check "$work/model_qnn.bin"; said "check of no model" 4
epctx check; said "check without a file" 2
epctx diff "$ctx" "$ctx"; said "diff of the same" 0
epctx diff "$ctx" "$work/evil_ctx.onnx"; said "diff" 1 "source: \"QNNExecutionProvider\" ->"
epctx diff --json "$ctx" "$work/evil_ctx.onnx"; said "diff --json" 1; json "diff --json is JSON"
epctx diff "$ctx" "$work/nothing.onnx"; said "diff of a missing file" 2
"$plain" copy --rebuild "$work/extras.onnx" "$work/copy.onnx" >/dev/null 2>&1
epctx diff "$work/extras.onnx" "$work/copy.onnx"; said "diff of a copy" 0
epctx explain "Context binary does not exist: "; said "explain" 0 "31977"
epctx explain --json "cannot serialize onnx modelproto LARGER THAN 2gb"
said "explain in any case" 0; json "explain --json is JSON"
epctx explain "the moon is made of cheese"; said "explain of nonsense" 1 "nothing is known"
echo "E: Compiled model is suboptimal for execution provider: X" | "$epctx" explain - \
    >"$work/out" 2>"$work/err"
code=$?; said "explain of a log" 0 "Compile again"
epctx dot "$ctx"; said "dot" 0 "QNNExecutionProvider"
if command -v dot >/dev/null; then
    if dot -Tsvg "$work/out" >/dev/null 2>"$work/err"; then ok "dot is dot"
    else fail "dot is dot" "graphviz refuses it"; fi
else
    echo "skip dot is dot: graphviz is not here"
fi
epctx info --json "$ctx"; said "info --json" 0 '"state": "fully"'; json "info --json is JSON"
epctx scan "$ctx"; said "scan" 0 "2 of them EPContext"
epctx scan --json "$ctx"; said "scan --json" 0; json "scan --json is JSON"
"$epctx" scan - <"$ctx" >"$work/out" 2>"$work/err"; code=$?
said "scan of a stream" 0 "2 of them EPContext"
head -c 100 "$ctx" | "$epctx" scan - >"$work/out" 2>"$work/err"; code=$?
said "scan of a cut stream" 1 "not an ONNX protobuf"
for command in ls lint check explain get diff scan dot; do
    epctx $command --help; said "help of $command" 0 "usage: epctx $command"
done
if command -v man >/dev/null && man --version >/dev/null 2>&1; then
    if [ -z "$(man --warnings -E UTF-8 -l -Tutf8 examples/epctx/epctx.1 2>&1 >/dev/null)" ]; then
        ok "manual page"
    else
        fail "manual page" "man warns"
    fi
else
    echo "skip manual page: man is not here"
fi

# -- a gigabyte in less than a megabyte of anonymous memory --
"$python" - "$work/big.onnx" <<'PY' || exit 1
import sys
sys.path.insert(0, "tests/judge")
from onnx_schema import ModelProto
HOLE = 1 << 30

def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes((n & 127 | 128,)), n >> 7
    return out + bytes((n,))

def field(number, body, extra=0):
    return varint(number << 3 | 2) + varint(len(body) + extra) + body

# op_type, domain and embed_mode come behind the payload.
tail_attr = b"\xa0\x01\x03"
attr = field(1, b"ep_cache_context") + varint(4 << 3 | 2) + varint(HOLE)
tail_node = field(5, field(1, b"source") + field(4, b"QNN") + b"\xa0\x01\x03") + \
    field(4, b"EPContext") + field(7, b"com.microsoft")
node = field(3, b"n") + varint(5 << 3 | 2) + varint(len(attr) + HOLE + len(tail_attr)) + attr
whole = len(node) + HOLE + len(tail_attr) + len(tail_node)
graph = varint(1 << 3 | 2) + varint(whole) + node
head = b"\x08\x08" + varint(7 << 3 | 2) + varint(len(graph) + whole - len(node)) + graph
tail = tail_attr + tail_node
with open(sys.argv[1], "wb") as out:
    out.write(head)
    out.seek(len(head) + HOLE)
    out.write(tail)
PY
# The limit covers heap, data and every private mapping; libraries' data is in it.
(ulimit -d 1024; exec "$plain" scan "$work/big.onnx") >"$work/out" 2>"$work/err"; code=$?
said "scan of 1 GiB with 1 MiB of data" 0 "1073741824 bytes at"
(ulimit -d 1024; exec "$plain" scan - <"$work/big.onnx") >"$work/out" 2>"$work/err"; code=$?
said "scan of a 1 GiB stream with 1 MiB of data" 0 "1073741824 bytes at"
rm -f "$work/big.onnx"

# -- the fixes that are told do what they say, whatever the cause --
"$python" - "$work" <<'PY' || exit 1
import os, sys
sys.path.insert(0, "tests/judge")
import lint
from make_model import make
for cause in ("named", "nameless", "shapeless", "old", "new"):
    model = make("plain")
    model.opset_import.add(domain="com.microsoft", version=1)
    shape = model.graph.input[0].type.tensor_type.shape
    del model.graph.node[:], model.graph.initializer[:]
    node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name="n",
                                input=["x"], output=["y"])
    for key, text in (("embed_mode", 1), ("source", "QNN"), ("ep_cache_context", "a context")):
        lint.put(node, key, text)
    if cause == "named":
        shape.dim[0].dim_param = "batch"
    elif cause == "nameless":
        shape.dim[0].Clear()
    elif cause == "shapeless":
        model.graph.input[0].type.tensor_type.ClearField("shape")
    elif cause == "old":
        model.ClearField("ir_version")
    else:
        model.ir_version = 99
    with open(os.path.join(sys.argv[1], f"{cause}.onnx"), "wb") as out:
        out.write(model.SerializeToString())
PY
# fixed CAUSE RULE MESSAGE WHAT=VALUE: the fix is told, and cures it
fixed() {
    epctx lint --rules "$2" "$work/$1.onnx"
    said "$2, $1" 1 "$3"
    said "$2, $1: its fix" 1 "${4%%[=:]*}:"
    epctx set --in-place "$work/$1.onnx" "$4"
    result "$2, $1: the fix" 0
    epctx lint --rules "$2" "$work/$1.onnx"
    said "$2, $1: it is gone" 0
}
fixed named E030 "'x' has a dynamic dimension" dim:batch=1
fixed nameless E030 "'x' has a dynamic dimension" "dim:x[0]=1"
fixed shapeless E030 "'x' has no shape" "value:x=float32[1,4]"
fixed old E050 "has no ir_version" model:ir_version=10
fixed new E050 "ir_version is 99" model:ir_version=10
exit $status
