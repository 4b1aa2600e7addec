#!/bin/sh
# merge, split, wrap and repair through the shell: what they write is judged by libprotobuf and the
# real ONNX Runtime (judge/combine.py), compiled models run on the reference NPU, and refusals name
# the cure and change nothing.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start combine
use_ort
models=
if [ -n "${EPCTX_TEST_MODELS:-}" ]; then
    for name in mlpt_ic_fp32 mlpt_vww_fp32 mlpt_kws_fp32 mnist_8; do
        models="$models $EPCTX_TEST_MODELS/onnx/$name.onnx"
    done
else
    echo "skip real models: EPCTX_TEST_MODELS is not set"
fi
# shellcheck disable=SC2086 # a list of words
"$python" tests/judge/combine.py "$epctx" "$work/judge" $models || status=1

work=$work/cli
mkdir -p "$work/out" "$work/away"
make_models plain partly
for kind in plain partly; do
    "$epctx" compile "$work/$kind.onnx" >/dev/null || {
        echo "FAIL models: $kind could not be compiled"
        exit 1
    }
done
cd "$work" || exit 1
out=../stdout err=../stderr

# done_well NAME [TEXT]
done_well() {
    if [ "$code" -ne 0 ]; then
        fail "$1" "exit code $code"
    elif [ $# -gt 1 ] && ! grep -qF -e "$2" "$out"; then
        fail "$1" "expected '$2'"
    else
        echo "ok $1"
    fi
}

clean() {
    epctx lint "$2"
    [ "$code" -eq 0 ] && grep -q ' 0 errors, 0 warnings' "$out" && echo "ok $1" ||
        fail "$1" "lint has findings"
}

# -- compiled models of the reference NPU: merged, they give what they gave alone --
run() { # FOLDER MODEL: inputs and outputs into FOLDER
    "$epctx" run --dump "$1" "$2" >/dev/null 2>"$err" || fail "run $2" "it does not run"
}
epctx merge plain_ctx.onnx plain_ctx.onnx -o self_ctx.onnx
done_well "compiled model with itself" "file 'plain_npu.bin' is now 'plain_npu_2.bin'"
clean "compiled model with itself: lint" self_ctx.onnx
run ../self self_ctx.onnx
mkdir -p ../one ../two
cp ../self/input_0.bin ../one/input_0.bin
cp ../self/input_1.bin ../two/input_0.bin
for i in 0 1; do
    folder=$([ $i = 0 ] && echo ../one || echo ../two)
    "$epctx" run --input-dir $folder --output-dir $folder plain_ctx.onnx >/dev/null
    if cmp -s $folder/output_0.bin ../self/output_$i.bin; then
        echo "ok compiled model with itself: output $i"
    else
        fail "compiled model with itself: output $i" "differs from that of the model alone"
    fi
done
epctx merge partly_ctx.onnx partly_ctx.onnx -o both_ctx.onnx
done_well "two partitions with themselves" "names the binary itself"
clean "two partitions with themselves: lint" both_ctx.onnx
epctx merge plain_ctx.onnx partly_ctx.onnx -o out/m_ctx.onnx
done_well "binaries come along" "write out/partly_npu.bin"
clean "binaries come along: lint" out/m_ctx.onnx
cmp -s plain_npu.bin out/plain_npu.bin && cmp -s partly_npu.bin out/partly_npu.bin &&
    echo "ok binaries come along: bytes" || fail "binaries come along: bytes" "they differ"
# The same file name with other bytes.
mkdir -p other
"$python" "$top/tests/judge/make_model.py" double other/unused.onnx
cp plain.onnx other/plain.onnx
"$epctx" compile --embed other/plain.onnx -o other/x_ctx.onnx >/dev/null
"$epctx" extract other/x_ctx.onnx --name plain_npu.bin --in-place >/dev/null
printf 'x' >>other/plain_npu.bin
before=$(state)
epctx merge plain_ctx.onnx other/x_ctx.onnx -o out/n_ctx.onnx --overwrite replace
refused "not the binary of the stamp" 1 "; --allow-stale accepts the binary)"
epctx merge plain_ctx.onnx other/x_ctx.onnx -o out/n_ctx.onnx --overwrite replace --allow-stale
done_well "binaries of one name" "file 'plain_npu.bin' is now 'plain_npu_2.bin'"
cmp -s other/plain_npu.bin out/plain_npu_2.bin && cmp -s plain_npu.bin out/plain_npu.bin &&
    echo "ok binaries of one name: bytes" || fail "binaries of one name: bytes" "they differ"
# One behind the other: y of both is [1,2,1,1], x is not.
before=$(state)
epctx merge plain_ctx.onnx plain_ctx.onnx --connect y=x -o out/no.onnx
refused "chain of shapes that differ" 1 "another type or shape"

# -- texts that are not UTF-8, of every command that takes names for a model --
bad=$(printf 'a\377b')
before=$(state)
while read -r name words; do
    # shellcheck disable=SC2086 # words
    epctx $words -n
    refused "$name" 2 "the text is not UTF-8, as ONNX requires"
done <<END
rename rename plain.onnx x $bad
rename-nodes rename --nodes plain.onnx conv $bad
prefix prefix plain.onnx $bad
merge merge plain.onnx plain.onnx -o out/no.onnx --prefix $bad,b_
wrap-name wrap plain_npu.bin --profile npu -o out/no.onnx --name $bad
wrap-partition wrap plain_npu.bin --profile npu -o out/no.onnx --partition $bad
wrap-source wrap plain_npu.bin --profile npu -o out/no.onnx --source $bad
wrap-inputs wrap plain_npu.bin --profile npu --inputs $bad:int8[1] --outputs y:int8[1]
wrap-outputs wrap plain_npu.bin --profile npu --inputs x:int8[1] --outputs $bad:int8[1]
END
epctx wrap plain_npu.bin --profile npu -o out/no.onnx --embed --binary other.bin
refused "a file's name for a binary inside" 2 "--binary names a file, --embed stores"

# -- the plan --
before=$(state)
epctx merge plain.onnx plain.onnx -o new.onnx --dry-run
done_well "dry run" "nothing was written"
[ "$(state)" = "$before" ] && echo "ok dry run writes nothing" ||
    fail "dry run writes nothing" "files changed"
epctx merge plain.onnx plain.onnx -o new.onnx --dry-run --json
"$python" -c 'import json,sys
r = json.load(open(sys.argv[1]))
assert r["dry_run"] and r["changes"]' \
    "$out" && echo "ok plan as JSON" || fail "plan as JSON" "no such object"
"$epctx" merge plain.onnx plain.onnx -o - >../piped.onnx 2>"$err" && "$epctx" lint ../piped.onnx \
    >"$out" && echo "ok standard output" || fail "standard output" "no model"

# -- the only graph of a binary of the NPU need not be named --
epctx wrap plain_npu.bin --profile npu \
    --inputs 'x:float32[1,1,6,6]' --outputs 'y:float32[1,2,1,1]' \
    -o w.onnx
done_well "wrap without --name" "write w.onnx"
epctx run w.onnx; done_well "and the result runs" "output 0       'y'"

# -- refusals: what to do, and nothing changed --
printf 'version https://git-lfs.github.com/spec/v1\n' >lfs.bin
head -c 100 plain_npu.bin >short.bin
printf 'FAKE\001\002' >fake.bin
before=$(state)
epctx merge plain.onnx; refused "merge of one" 2 "missing argument"
epctx merge plain.onnx partly.onnx; refused "merge without output" 2 "specify the output"
epctx merge plain.onnx gone.onnx -o new.onnx; refused "missing model" 1 "gone.onnx"
epctx merge plain.onnx plain_npu.bin -o new.onnx; refused "no model" 1 "plain_npu.bin"
epctx merge plain.onnx plain.onnx -o partly.onnx; refused "output exists" 1 "-f replaces it"
epctx merge plain.onnx plain.onnx -o gone/new.onnx
refused "no folder" 1 "its folder does not exist"
epctx merge plain.onnx plain.onnx --chain -o new.onnx
refused "nothing to chain" 1 "specify the connections"
epctx merge plain.onnx plain.onnx --connect y -o new.onnx
refused "half a connection" 2 "is not of the form OUTPUT=INPUT"
epctx merge plain.onnx plain.onnx --connect y=gone -o new.onnx
refused "connection to nothing" 1 "'gone'"
epctx merge plain.onnx plain.onnx --metadata x -o new.onnx
refused "metadata policy" 2 "refuse, first or prefix"
epctx merge plain.onnx plain.onnx --prefix a_,b_,c_ -o new.onnx
refused "too many prefixes" 2 "more prefixes than models"
epctx merge plain.onnx plain.onnx --prefix a_,a_ -o new.onnx
refused "the same prefix" 1 "choose another prefix"
epctx split plain.onnx -o new.onnx; refused "split nowhere" 2 "specify --inputs"
epctx split plain.onnx --inputs gone -o new.onnx; refused "cut at nothing" 1 "'gone'"
epctx split plain.onnx --inputs x:float32[1,2 -o new.onnx; refused "odd shape" 2 "[1,3,?]"
epctx split plain.onnx --inputs x:float99[1] -o new.onnx; refused "odd type" 2 "unknown type"
epctx split plain.onnx --inputs x:wide[1] -o new.onnx; refused "no type" 2 "unknown type"
epctx split plain.onnx --inputs x:0 -o new.onnx; refused "name with a colon" 1 "'x:0'"
epctx wrap plain_npu.bin --profile npu --outputs 'y:float32[batch]' -o new.onnx
refused "named dimension" 2 "names are not kept"
epctx split plain.onnx --outputs x -o new.onnx; refused "input as output" 1 "'x'"
epctx wrap partly_npu.bin --profile npu --outputs 'y:float32[1]' -o new.onnx
refused "several graphs" 1 "select one with --name"
epctx wrap plain.onnx --profile npu --outputs 'y:float32[1]' -o new.onnx
refused "no binary of the NPU" 1 "plain.onnx: context binary"
epctx wrap plain_npu.bin --profile acme --outputs 'y:float32[1]' -o new.onnx
refused "an EP of one's own" 2 "--profile generic --source acme"
epctx wrap plain_npu.bin --outputs y:float32[1] -o new.onnx; refused "wrap for nobody" 2 "--profile"
epctx wrap plain_npu.bin --profile qnn --outputs 'y:float32[1]' -o new.onnx
refused "another EP's binary" 1 "is a context binary of the reference NPU, but the node"
epctx wrap lfs.bin --profile qnn --outputs 'y:float32[1]' -o new.onnx
refused "wrap of a pointer" 1 "git lfs pull"
epctx wrap lfs.bin --profile qnn -o new.onnx; refused "wrap of a pointer alone" 1 "git lfs pull"
epctx wrap short.bin --profile npu --name g --outputs 'y:float32[1]' -o new.onnx
refused "wrap of a part" 1 "is cut off"
epctx wrap fake.bin --profile qnn -o new.onnx; refused "wrap of nothing" 2 "--outputs"
epctx wrap fake.bin --profile qnn --outputs y -o new.onnx; refused "no type" 2 "missing type"
epctx wrap fake.bin --profile qnn --outputs 'y:float32[?]' -o new.onnx
refused "dynamic shape" 1 "static shapes"
epctx wrap plain_npu.bin --profile telum --outputs 'y:float32[1]' -o new.onnx
refused "EP that reads no files" 1 "embed the binary"
epctx wrap gone.bin --profile qnn --outputs 'y:float32[1]' -o new.onnx
refused "no binary" 1 "gone.bin"
epctx wrap plain_npu.bin --profile qnn --io plain_npu.bin -o new.onnx
refused "no JSON" 1 "invalid JSON"
# Several graphs of one binary.
graphs() { # NAME...: what qnn-context-binary-utility prints
    printf '{"info": {"buildId": "v2.40", "graphs": ['
    comma=
    for graph; do
        printf '%s{"info": {"graphName": "%s", "graphInputs": [%s], "graphOutputs": [%s]}}' \
            "$comma" "$graph" "$(tensor "x_$graph")" "$(tensor "y_$graph")"
        comma=,
    done
    printf ']}}'
}
tensor() { printf '{"info": {"name": "%s", "dimensions": [1, 4], "dataType":
    "QNN_DATATYPE_FLOAT_32"}}' "$1"; }
printf 'a context\001%4990s' v >several.bin
graphs prefill decode verify >several.json
graphs prefill prefill >twice.json
graphs prefill ../up >away.json
printf '{"graph": {"tensors": {}}}' >one.json
before=$(state)
epctx wrap several.bin --profile qnn --io several.json -o new.onnx
refused "several graphs of --io" 1 "-o NAME_{graph}.onnx"
epctx wrap several.bin --profile qnn --io twice.json -o 'new_{graph}.onnx'
refused "two of one name" 1 "'prefill': two graphs have this name"
epctx wrap several.bin --profile qnn --io away.json -o 'new_{graph}.onnx'
refused "a name that leads out" 1 "'../up': a graph's name"
epctx wrap several.bin --profile qnn --io one.json -o 'new_{graph}.onnx'
refused "no list of graphs" 1 "no list of graphs"
epctx wrap several.bin --profile qnn --io several.json --name g -o 'new_{graph}.onnx'
refused "one name for all" 2 "no --name"
epctx wrap several.bin --profile qnn --outputs 'y:float32[1]' -o 'new_{graph}.onnx'
refused "graphs of nothing" 2 "each graph of --io"
works "each graph" "$epctx" wrap several.bin --profile qnn --io several.json -o 'new_{graph}.onnx'
for graph in prefill decode verify; do
    works "each graph: $graph" "$epctx" lint "new_$graph.onnx"
    "$epctx" get "new_$graph.onnx" ep_cache_context >"$out" 2>"$err"
    if [ "$(cat "$out")" = several.bin ] && "$epctx" info "new_$graph.onnx" |
        grep -q "partition name *$graph\$"; then ok "each graph: its name, the same binary: $graph"
    else fail "each graph: its name, the same binary: $graph" "another"; fi
done
epctx wrap several.bin --profile qnn --io several.json -o 'new_{graph}.onnx' -f --json
json "each graph, JSON" 'len(j["models"]) == 3 and j["models"][1]["file"] == "new_decode.onnx"'
rm -f new_*.onnx several.* twice.json away.json one.json
before=$(state)
epctx repair gone.onnx --in-place; refused "repair of nothing" 1 "gone.onnx"
epctx repair plain.onnx --rules E999 --in-place; refused "no such rule" 2 "there is no rule"
epctx repair plain.onnx --rules E022,E024 --in-place; refused "no repair" 2 "cannot be repaired"
cp plain_ctx.onnx away/
before=$(state)
epctx merge plain.onnx away/plain_ctx.onnx -o new.onnx
refused "binary is missing" 1 "context binary 'plain_npu.bin'"
# Root may write everywhere: without root's rights.
chmod 555 out
before=$(state)
if [ "$(id -u)" -ne 0 ]; then
    epctx merge plain.onnx plain.onnx -o out/new.onnx
    refused "read-only folder" 1 "out/new.onnx"
elif command -v setpriv >/dev/null; then
    setpriv --inh-caps=-all --bounding-set=-all "$epctx" merge plain.onnx plain.onnx \
        -o out/new.onnx >"$out" 2>"$err"
    code=$?
    refused "read-only folder" 1 "out/new.onnx"
else
    echo "skip read-only folder: root may write everywhere, and there is no setpriv"
fi
chmod 755 out
if [ -e /dev/full ]; then
    "$epctx" merge plain.onnx plain.onnx -o - >/dev/full 2>"$err"
    code=$?
    refused "full disk" 1 "standard output"
fi

# Whose node it is, only the compatibility entry tells: it stays.
"$epctx" unset plain_ctx.onnx source -o nobody_ctx.onnx >/dev/null
epctx repair nobody_ctx.onnx -o nobody_repaired.onnx -f
"$epctx" get nobody_repaired.onnx metadata:ep_compatibility_info.EpctxNpuExecutionProvider \
    >/dev/null 2>&1 && echo "ok repair keeps what may be needed" ||
    fail "repair keeps what may be needed" "the compatibility entry went"

# What repair leaves: written, and exit code 3.
cp plain_ctx.onnx broken_ctx.onnx
"$epctx" set broken_ctx.onnx node:0.ep_cache_context=gone.bin --in-place >/dev/null 2>&1 ||
    "$python" - broken_ctx.onnx <<'PY'
import sys
data = open(sys.argv[1], "rb").read()
open(sys.argv[1], "wb").write(data.replace(b"plain_npu.bin", b"plain_xxx.bin"))
PY
epctx repair broken_ctx.onnx --in-place
[ "$code" -eq 3 ] && grep -q '^left E022' "$out" && echo "ok repair leaves what it cannot" ||
    fail "repair leaves what it cannot" "exit code $code, expected 3"

# Names that a node of ONNX Runtime finds in its body, and a type that an output alone had.
"$python" - "$top/tests/judge" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from make_model import FLOAT, INT32, ModelProto, node, value
def start(*domains):
    model = ModelProto(ir_version=8)
    for domain, version in domains:
        model.opset_import.add(domain=domain, version=version)
    model.graph.name = "g"
    return model, model.graph
def save(model, name):
    open(name, "wb").write(model.SerializeToString())
model, g = start(("", 13), ("com.microsoft", 1))
value(g.input, "input_ids", INT32, (1, 8))
value(g.output, "sequences", INT32, (1, 1, 8))
search = node(g, "BeamSearch", "search", ["input_ids"], ["sequences"])
search.domain = "com.microsoft"
body = search.attribute.add(name="decoder", type=5).g
value(body.input, "input_ids", INT32, (1, 8))
value(body.output, "logits", FLOAT, (1, 8))
node(body, "Cast", "c", ["input_ids"], ["logits"]).attribute.add(name="to", type=2, i=FLOAT)
save(model, "search.onnx")
model, g = start(("", 13), ("", 13), ("ai.onnx", 13)) # imports that are doubled
value(g.input, "x", FLOAT, (1, 8))
value(g.output, "y", FLOAT, (1, 8))
value(g.output, "z", FLOAT, (1, 8))
node(g, "Relu", "r", ["x"], ["y"])
node(g, "Exp", "e", ["y"], ["z"])
save(model, "ends.onnx")
PY
epctx merge search.onnx search.onnx -o searches.onnx
if [ "$code" -eq 0 ] && "$python" - "$top/tests/judge" <<'PY' 2>"$err"
import sys
sys.path.insert(0, sys.argv[1])
from make_model import ModelProto
model = ModelProto()
model.ParseFromString(open("searches.onnx", "rb").read())
assert len(model.graph.node) == 2
for search in model.graph.node:
    body = search.attribute[0].g
    assert [v.name for v in body.input] == ["input_ids"], body.input
    assert [v.name for v in body.output] == ["logits"], body.output
    assert body.node[0].input == ["input_ids"], body.node
assert [n.input[0] for n in model.graph.node] == ["input_ids", "m2_input_ids"]
PY
then ok "merge keeps the names that BeamSearch looks for"
else
    fail "merge keeps the names that BeamSearch looks for" "exit code $code: $(tail -n 1 "$err")"
fi
epctx merge ends.onnx ends.onnx -o doubled.onnx
if [ "$code" -eq 0 ]; then ok "merge of a model whose imports are doubled with itself"
else fail "merge of a model whose imports are doubled with itself" "$(tail -n 1 "$err")"; fi
"$epctx" compile ends.onnx >/dev/null || fail "two outputs" "they do not compile"
epctx split ends_ctx.onnx --outputs z -o dropped_ctx.onnx
if [ "$code" -eq 0 ] && "$epctx" lint dropped_ctx.onnx >"$out" &&
    "$epctx" run dropped_ctx.onnx >"$out" && ! grep -q "'y'" "$out"
then ok "an output of a compiled model is dropped"
else fail "an output of a compiled model is dropped" "exit code $code: $(tail -n 1 "$err")"; fi

exit $status
