#!/bin/sh
# The tool with EPs that it has never seen, in the real ONNX Runtime: compile, run, verify, bench
# and devices with --ort and --ep. EPs that fail, crash or hang leave nothing behind.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_ort
make_models plain digits partly dynamic
out=$work/stdout err=$work/stderr
npu=$build/libepctx_ep.so
use_eps

# with EP COMMAND...: the tool with ORT and an EP
with() {
    ep=$1 command=$2
    shift 2
    epctx "$command" --ort "$library" --ep "$ep" "$@"
}
# clean NAME: no temporary folder is left
clean() {
    left=$(find "$work" -name '.epctx-*' | head -n 1)
    if [ -z "$left" ]; then ok "$1"; else fail "$1" "left behind: $left"; fi
}

epctx devices --ort "$library"
minor=$(sed -n 's/^ONNX Runtime *1\.\([0-9]*\)\..*/\1/p' "$out")
[ -n "$minor" ] || fail "the version of ONNX Runtime" "devices does not say it"

# -- an EP of ONNX Runtime itself that writes no context --

for way in "" --by-session --embed; do
    # shellcheck disable=SC2086 # no option is no word
    with CPUExecutionProvider compile $way plain.onnx
    result "the CPU EP, $way" 1 "CPUExecutionProvider writes no EPContext models. Load the original"
done

# -- the command line --

epctx compile --ort ./nowhere.so --ep "$npu" plain.onnx
result "no such ONNX Runtime" 1 "nowhere.so"
epctx compile --ort "$library" plain.onnx; result "no EP" 2 "--ep LIBRARY"
epctx compile --ort "$library" --ep ./none.so plain.onnx; result "no such EP" 2 "none.so"
with "$npu:" compile plain.onnx; result "an EP without its name" 2 "behind the colon"
with "$npu" compile --ep-opt novalue plain.onnx; result "an option without a value" 2 "KEY=VALUE"
with "$npu" compile --ep-opt ep.context_enable=1 plain.onnx
result "a session option on the wrong side" 2 "--option"
with "$npu" compile --option ep.context_enabel=1 plain.onnx
result "a mistyped session option" 2 "'ep.context_enable'"
with "$npu" compile -C "ep.context_file_pth|a" plain.onnx
result "a mistyped one in -C" 2 "'ep.context_file_path'"
with "$npu" run --option sesion.disable_cpu_ep_fallback=1 plain.onnx
result "a mistyped one of run" 2 "'session.disable_cpu_ep_fallback'"
with "$npu" run --option session.function_expansion_node_limt=5 plain.onnx
result "a mistyped one of 1.31" 2 "'session.function_expansion_node_limit'"
with "$npu" run --option session.acme=1 plain.onnx
said "one like ONNX Runtime's own" 0 "has no session option 'session.acme' and ignores it"
with "$npu" compile --option ep.context_colour=red plain.onnx
result "an unknown option of contexts" 2 "no session option 'ep.context_colour'"
with "$npu" run --option acme.turbo=1 --option session.intra_op.allow_spinning=0 plain.onnx
result "options that the tool does not know" 0
with "$npu" compile --option ep.context_node_name_prefix=a --prefix b plain.onnx
result "an option twice" 2 "contradicts"
with "$npu" compile --device tpu plain.onnx; result "a device that there is not" 2 "cpu, gpu or npu"
with "$npu" compile --timeout 0 plain.onnx; result "a time limit of 0" 2 "--timeout"
with "$npu" compile --arch generic plain.onnx; result "--arch of the reference NPU" 2 "--ep-opt"
with "$npu" compile --chip SM8550 plain.onnx
result "--chip, and nothing is known of the EP" 2 "which options choose a chip is not known of this"
with "$npu" compile --optimization most plain.onnx; result "an unknown level" 2 "none, basic"
with "$npu" compile --dim 'x[7]=2' dynamic.onnx; result "a place that there is not" 1 "dynamic.onnx"
for command in compile run verify bench; do
    with "$npu" $command --dim N=2 --dim N=3 dynamic.onnx
    result "$command: a name with two numbers" 2 "--dim: 'N' is 2 and 3"
    with "$npu" $command --dim Nobody=2 dynamic.onnx
    case $command in verify) code_of_failure=3 ;; *) code_of_failure=1 ;; esac
    result "$command with a dimension that there is not" $code_of_failure "'Nobody'"
done
with "$npu" verify dynamic.onnx; result "free dimensions are told" 3 "--dim 'N=N'"
"$python" - "$top" <<'END' # input and output, one after the other, with a zero byte in the name
import sys
sys.path.insert(0, sys.argv[1] + "/tests/judge")
from make_model import ModelProto
for side in ("input", "output"):
    model = ModelProto.FromString(open("plain.onnx", "rb").read())
    end = getattr(model.graph, side)[0]
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [name + "\0q" if name == end.name else name for name in names]
    end.name += "\0q"
    open("cut_" + side + ".onnx", "wb").write(model.SerializeToString())
END
for side in input output; do
    with "$npu" compile cut_$side.onnx
    result "a zero byte in the name of an $side" 1 "' has a zero byte in its name"
done
rm cut_*
"$python" - <<'END' # a Loop over Unique, which the NPU has not; its body calls a function
from onnx import TensorProto, helper, save

def end(name, elem_type, dims):
    return helper.make_tensor_value_info(name, elem_type, dims)

opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
body = helper.make_graph(
    [helper.make_node("Call", ["s"], ["t"], domain="f"),
     helper.make_node("Identity", ["c"], ["d"])], "body",
    [end("i", TensorProto.INT64, []), end("c", TensorProto.BOOL, []),
     end("s", TensorProto.FLOAT, [4])],
    [end("d", TensorProto.BOOL, []), end("t", TensorProto.FLOAT, [4])])
nodes = [helper.make_node("Unique", ["x"], ["u"]), helper.make_node("Size", ["u"], ["n"]),
         helper.make_node("Relu", ["x"], ["r"]),
         helper.make_node("Loop", ["n", "", "r"], ["y"], body=body)]
graph = helper.make_graph(nodes, "g", [end("x", TensorProto.FLOAT, [4])],
                          [end("y", TensorProto.FLOAT, [4])])
call = helper.make_function("f", "Call", ["a"], ["b"], [helper.make_node("Tanh", ["a"], ["b"])],
                            opsets[:1])
save(helper.make_model(graph, ir_version=8, opset_imports=opsets, functions=[call]), "call.onnx")
END
with "$npu" compile call.onnx
result "a function in a body" 1 "without the functions that bodies of"
epctx compile call.onnx; result "the same without ONNX Runtime" 0
rm call*
with "$npu" verify --json dynamic.onnx
json "in JSON, too" '"--dim" in j["failures"][-1]["cure"] and j["failures"][-1]["file"] ==
 "dynamic.onnx"'
with "$npu" compile --json dynamic.onnx
json "those of compile" '"--dim" in j["failures"][-1]["cure"] and j["failures"][-1]["file"] ==
 "dynamic.onnx"'
with "$npu" run --max-work 3 plain.onnx; result "--max-work with ORT" 2 "--max-work"
epctx run --dim N=2 plain.onnx; result "--dim without ORT" 2 "--ort"
epctx compile --no-share plain.onnx; result "--no-share without ORT" 2 "--ort"
epctx compile --no-load plain.onnx; result "--no-load without ORT" 2 "--ort"
epctx verify plain.onnx; result "verify without anything" 2 "--ep LIBRARY"
with "$npu" verify --rtol much plain.onnx; result "a tolerance that is no number" 2 "much"
epctx devices --ort "$library" plain.onnx; result "compatibility without an EP" 2 "--ep"
with ./plain.onnx compile plain.onnx; result "a model as an EP" 1 "registering"
with "$npu:OtherEP" compile plain.onnx; result "a library without this EP" 1 "OtherEP"
with NoSuchExecutionProvider compile plain.onnx; result "no EP of ORT's" 1 "epctx devices"
with "$npu" compile --device gpu plain.onnx; result "no such device of the EP" 1 "no device"
with "$npu" compile --device cpu plain.onnx; result "such a device of the EP" 0 "cpu"
epctx run --ort ./plain.onnx plain.onnx; result "a model as ONNX Runtime" 1 "it is no library"
rm -f -- *_ctx.onnx *.bin
clean "no folder of refusals"

# -- no file --

mkfifo pipe.onnx
for command in compile run verify bench devices; do
    with "$npu" $command --timeout 5 pipe.onnx
    case $command in verify) code_of_failure=3 ;; *) code_of_failure=1 ;; esac
    result "$command of a FIFO" $code_of_failure "pipe.onnx"
    if grep -q "no end after" "$err"; then fail "$command of a FIFO" "it hangs"; fi
done
rm pipe.onnx

# -- compile --

with "$npu" compile plain.onnx
result "compile" 0 "1 EPContext node, 0 nodes left"
epctx lint plain_ctx.onnx; result "what was compiled is right" 0
epctx check --fresh plain_ctx.onnx
said "it has a build stamp" 0 "fresh"
epctx get plain_ctx.onnx metadata:epctx.build.EpctxNpuExecutionProvider
said "with the version of the EP" 0 "ep 0."
said "of ONNX Runtime" 0 "ort 1."
said "and the device" 0 "device "
epctx run plain_ctx.onnx; result "it runs on the reference NPU" 0 "output 0"
before=$(state)
with "$npu" compile plain.onnx; refused "what is there stays" 1 "-f replaces it"
with "$npu" compile -f --verify --json plain.onnx
result "compile again, with --verify" 0
json "compile --json" 'j["ep"] == "EpctxNpuExecutionProvider" and j["models"][0]["epcontext_nodes"]
 == 1 and [f["kind"] for f in j["files"]] == ["model", "binary"]'
with "$npu" compile --embed -o inside.onnx plain.onnx; result "--embed" 0
epctx ls inside.onnx; result "no binary" 0
if [ -e inside_npu.bin ]; then fail "--embed writes one file" "there is a binary"; fi
with "$npu" compile --dry-run -o dry.onnx plain.onnx; result "--dry-run" 0 "nothing was compiled"
if [ -e dry.onnx ]; then fail "--dry-run writes nothing" "there is a model"; fi
mkdir -p folder safe/sub
cp digits.onnx safe/digits.onnx
cd safe || exit 1
epctx init --external --threshold 0 --name d_toy.bin -o d.onnx digits.onnx
before=$(state)
for name in digits.onnx ./digits.onnx ../safe/digits.onnx "$PWD/digits.onnx"; do
    with "$toy" compile -f -o "$name" digits.onnx
    refused "a result that would replace its source" 1 "must not overwrite it"
done
with "$toy" compile -f -o d_toy.bin d.onnx
refused "a result that would replace a data file" 1 "must not overwrite it"
with "$toy" compile -f --dry-run -o digits.onnx digits.onnx
refused "told by --dry-run" 1 "must not overwrite it"
with "$toy" compile -f -o d_ctx.onnx d.onnx
refused "a binary that would replace a data file" 1 "must not overwrite it"
for name in ../up.bin "$PWD/abs.bin" none/x.bin; do
    with "$toy" compile --initializers "$name" digits.onnx
    refused "--initializers $name" 1 "$name"
done
with "$toy" compile --initializers digits_ctx.onnx digits.onnx
refused "--initializers and -o of one name" 1 "two outputs would be this file"
with "$toy" compile --initializers digits_toy.bin digits.onnx
refused "--initializers of the binary's name" 1 "two outputs would be this file"
with "$toy" compile -f --initializers d_toy.bin d.onnx
refused "--initializers of a data file's name" 1 "must not overwrite it"
with "$toy" compile --initializers both.bin digits.onnx d.onnx
refused "--initializers for two models" 1 "the same file"
cd ..
with "$toy" compile --initializers left.data -o folder/d_ctx.onnx --optimization basic digits.onnx
result "--initializers, a folder" 0 "nodes left to other EPs"
if [ -s folder/left.data ]; then ok "initializers in a file"; else
    fail "initializers in a file" "there is none"
fi
"$python" - "$top" <<'END' # Conv(Reshape(x, [1, 1, 16, 16]) * t, w): the shape is an initializer
import sys
sys.path.insert(0, sys.argv[1] + "/tests/judge")
from make_model import FLOAT, INTS, ModelProto, node, value, weights
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=13)
g = model.graph
g.name = "shaped"
value(g.input, "x", FLOAT, (1, 256))
value(g.output, "y", FLOAT, (1, 16, 12, 12))
g.initializer.add(name="s", data_type=7, dims=(4,), int64_data=(1, 1, 16, 16))
weights(g, "t", FLOAT, (1,))
weights(g, "w", FLOAT, (16, 1, 5, 5))
node(g, "Reshape", "reshape", ("x", "s"), ("r",))
node(g, "Mul", "mul", ("r", "t"), ("m",))
node(g, "Conv", "conv", ("m", "w"), ("y",)).attribute.add(
    name="kernel_shape", type=INTS, ints=(5, 5))
open("shaped.onnx", "wb").write(model.SerializeToString())
END
for how in --no-share --by-session; do
    with "$toy" compile $how --initializers s.data -f -o shaped_ctx.onnx shaped.onnx
    result "$how --initializers with a shape" 0 "2 nodes left"
    with "$toy" run shaped_ctx.onnx; result "$how: ONNX Runtime loads it" 0 "16,12,12]"
    if [ -s s.data ]; then ok "$how: w is in the file"; else fail "$how: w is in the file" "no"; fi
done
rm s.data shaped*
with "$toy" compile --require-all -f digits.onnx; result "--require-all" 1 "fallback to CPU EP"
with "$npu" compile --dim N=3 dynamic.onnx; result "--dim" 0 "1 EPContext node"
with "$toy" compile -f -v digits.onnx
said "-v tells why nodes are left" 0 "does not know Conv"
with "$toy" compile -o nothing_ctx.onnx partly.onnx
result "an operator that nobody has" 1 "partly.onnx: error"
with "$npu" compile absent.onnx; result "no such model" 1 "absent.onnx: No such file"
with "$npu" compile -o nowhere/x.onnx plain.onnx; result "no such folder" 1 "nowhere"
echo nonsense >broken.onnx
with "$npu" compile broken.onnx; result "no model" 1 "broken.onnx: not an ONNX"
with "$npu" compile --weightless -o less_ctx.onnx digits.onnx; result "--weightless" 0
with "$npu" run --source digits.onnx less_ctx.onnx; result "--source" 0 "output 0"

with "$npu" compile --by-session -o by_ctx.onnx digits.onnx; result "--by-session" 0 "1 EPContext"
with "$npu" verify --context by_ctx.onnx digits.onnx; result "--by-session: it is right" 0
with "$npu" compile --by-session --embed -f -o by_ctx.onnx digits.onnx
result "--by-session --embed" 0
with "$toy" compile --by-session --initializers by.data -o by_toy_ctx.onnx digits.onnx
result "--by-session --initializers" 0
if [ -s by.data ]; then ok "by.data is there"; else fail "by.data is there" "it is not"; fi
with "$npu" compile --by-session -o none_ctx.onnx dynamic.onnx
result "--by-session when nothing is compiled" 1 "no node"
epctx compile --by-session plain.onnx; result "--by-session without ORT" 2 "--ort"

# -- several models --

rm -f -- *_ctx.onnx *.bin
with "$npu" compile plain.onnx digits.onnx
result "two models share a binary" 0
if [ "$(find . -maxdepth 1 -name '*.bin' | wc -l)" -eq 1 ]; then ok "N + 1 files"; else
    fail "N + 1 files" "$(ls)"
fi
for model in plain digits; do
    with "$npu" run ${model}_ctx.onnx; result "$model of the group runs" 0 "1 of 1 on the EP"
done
with "$npu" compile -f plain.onnx
result "a binary that another model needs" 1 "digits_ctx.onnx still"
lacks "no -f for what has it" 1 "-f replaces"
with "$npu" compile -f plain.onnx digits.onnx; result "the group again" 0
with "$npu" compile -f --no-share plain.onnx digits.onnx; result "a group that parts" 0
for model in plain digits; do
    with "$npu" run ${model}_ctx.onnx; result "$model runs without the group" 0 "1 of 1 on the EP"
done
rm -f -- *_ctx.onnx *.bin
with "$npu" compile --by-session plain.onnx digits.onnx; result "a group by session" 0
with "$npu" verify --context digits_ctx.onnx digits.onnx; result "a group by session is right" 0
rm -f -- *_ctx.onnx *.bin
before=$(state)
with "$npu" compile plain.onnx broken.onnx
refused "a group with a bad model" 1 "nothing was written for any"
with "$npu" compile --embed plain.onnx digits.onnx; refused "a group cannot embed" 2 "--embed"
with "$npu" compile folder/../plain.onnx plain.onnx; refused "two of one name" 1 "the same file"
with "$npu" compile --no-share plain.onnx broken.onnx digits.onnx
result "--no-share: the others go on" 1 "1 of 3"
if [ -e plain_ctx.onnx ] && [ -e digits_ctx.onnx ] && [ -e digits_npu.bin ]; then
    ok "--no-share: they are there"
else
    fail "--no-share: they are there" "$(ls)"
fi
clean "no folder of compilations"

# -- run --

epctx run --ort "$library" --dump cpu plain.onnx; result "run on ORT's CPU EP" 0 "output 0"
epctx run --dump ours plain.onnx
same "the inputs are those of run without ORT" cpu/input_0.bin ours/input_0.bin
same "the lists are, too" cpu/io.txt ours/io.txt
EPCTX_ORT_LIBRARY=$library "$epctx" run --ep "$npu" --repeat 3 --json plain.onnx >"$out" 2>"$err"
code=$?
result "ORT in the environment" 0
json "run --json" 'j["ep_nodes"] == j["nodes"] == 3 and j["runs"] == 3 and j["memory"] > 1 << 20'
with "$npu" run --input-dir cpu --output-dir again plain_ctx.onnx; result "--input-dir" 0
if [ -e again/input_0.bin ]; then fail "--output-dir" "the inputs are there, too"; fi
printf xx >cpu/input_0.bin
with "$npu" run --input-dir cpu plain_ctx.onnx; result "inputs of another size" 1 "less than the"
with "$toy" run plain_ctx.onnx; result "a context of another EP" 1 "EpctxNpuExecutionProvider"

# What is hostile in a name does not reach the terminal.
odd=$(printf 'e\033[31m.onnx')
cp plain.onnx "$odd"
for command in run compile verify bench; do
    with "$npu" $command "$odd"
    if ! grep -q "$(printf '\033')" "$out" "$err" && grep -qF 'e\x1b[31m' "$out" "$err"; then
        ok "$command of a model with an escape sequence in its name"
    else
        fail "$command of a model with an escape sequence in its name" "it is printed"
    fi
done
# Such a name is none for a binary: what does not load is no success.
before=$(state)
with "$npu" compile "$odd"
case ${EPCTX_TEST_ORT:-} in
1.24.*) refused "a context model that does not load" 1 "expected a path" ;; # it reads it back
*)
    refused "a binary that nothing loads" 1 "_npu.bin' contains a control character"
    with "$npu" compile --no-load "$odd"
    refused "neither with --no-load" 1 "_npu.bin' contains a control character"
    with "$npu" compile -f --no-load --verify "$odd"
    result "--verify loads" 2 "omit it or --no-load"
    rm -f e*_ctx.onnx e*.bin ;;
esac
with "$npu" compile --embed "$odd"
result "the same with the context inside" 0

# ONNX Runtime puts what is compiled before the If, whose body then hides a value: it gets a name.
"$python" - "$top/tests/judge" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from make_model import FLOAT, ModelProto, node, value
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=15)
graph = model.graph
graph.name = "g"
value(graph.input, "a", FLOAT, (1, 4))
value(graph.input, "c", 9, ())
choice = node(graph, "If", "if", ["c"], ["y"])
for branch in "then_branch", "else_branch":
    body = choice.attribute.add(name=branch, type=5).g
    body.name = branch
    node(body, "Neg", branch + "1", ["a"], ["x"])
    node(body, "Bernoulli", branch + "2", ["x"], ["t"])
    value(body.output, "t", FLOAT, (1, 4))
node(graph, "Relu", "relu", ["a"], ["x"])
node(graph, "Add", "add", ["x", "y"], ["z"])
value(graph.output, "z", FLOAT, (1, 4))
open("hides.onnx", "wb").write(model.SerializeToString())
END
with "$npu" compile hides.onnx
result "a body's value that hides one" 0 "value 'x' of a body is now 'x_2'"
epctx lint hides_ctx.onnx; result "and lint agrees" 0 "0 errors"
rm -f hides*
rm -f e*

# -- verify --

with "$npu" verify digits.onnx; result "verify" 0 "context against JIT"
with "$npu" verify --json --embed digits.onnx; result "verify embedded" 0
json "verify --json" 'len(j["comparisons"]) == 3 and not j["differs"] and not j["failed"] and
 all(o["ok"] and o["cosine"] > 0.99 for c in j["comparisons"] for o in c["outputs"])'
with "$npu" verify --rtol 0 --atol 0 digits.onnx; said "without tolerance" 1 "beyond the tolerance"
with "$npu" verify --rtol 0 --atol 0 --cosine 0.9 digits.onnx; result "by the cosine" 0
with "$npu" verify --context plain_ctx.onnx digits.onnx
result "another model's context" 3 "context"
with "$npu" verify --context digits.onnx digits.onnx
result "no context" 3 "--context: digits.onnx has no EPContext node"
with "$npu" verify --context digits_ctx.onnx digits.onnx; result "a given context" 0
"$python" - <<'END' # another weight
import struct
data = open("digits.onnx", "rb").read()
at = len(data) // 2 // 4 * 4
open("other.onnx", "wb").write(data[:at] + struct.pack("<f", 3.0) + data[at + 4:])
END
with "$npu" compile other.onnx; result "a model with another weight" 0
with "$npu" verify --context other_ctx.onnx digits.onnx; said "another weight" 1 "DIFFERS"
with "$npu" verify --json --context other_ctx.onnx digits.onnx
json "another weight in JSON" 'j["differs"] and not j["failed"] and [c["outputs"][0]["ok"] for c in
 j["comparisons"]] == [True, False, False] and j["comparisons"][1]["outputs"][0]["max_abs"] > 0'
rm -f other*
with "$npu" verify digits_ctx.onnx; result "a context has no reference" 3 "--context"
with "$npu" verify --dim N=2 dynamic.onnx; result "verify with a free dimension" 0 "float32[2,"
with "$npu" verify --dim 'x[0]=2' dynamic.onnx; result "by its place" 0 "float32[2,"
with "$npu" compile -f --dim 'x[0]=2' dynamic.onnx; result "compile by its place" 0 "1 EPContext"
with "$npu" compile -f --by-session --dim 'x[0]=2' dynamic.onnx; result "also by session" 0
with "$npu" run dynamic_ctx.onnx; result "it has the dimension" 0 "float32[2,"

"$python" - "$top" <<'END' # uint8 times int8, whose sums of two products do not fit into int16
import sys
sys.path.insert(0, sys.argv[1] + "/tests/judge")
from make_model import INT32, INT8, ModelProto, node, value
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=13)
g = model.graph
g.name = "saturating"
value(g.input, "x", 2, (4, 64))
value(g.output, "y", INT32, (4, 16))
g.initializer.add(name="w", data_type=INT8, dims=(64, 16), raw_data=bytes([127]) * 1024)
node(g, "MatMulInteger", "multiply", ("x", "w"), ("y",))
open("int8.onnx", "wb").write(model.SerializeToString())
END
# The switch for it is set where it works, from 1.30 on; before, only CPUs with VNNI are exact.
if [ "$minor" -ge 30 ] || grep -q vnni /proc/cpuinfo; then
    with "$npu" verify int8.onnx; result "int8 against an exact CPU" 0 "max abs 0"
else
    with "$npu" verify int8.onnx; said "int8 against a CPU EP that saturates" 1 "DIFFERS"
fi
with "$npu" verify --option session.x64quantprecision=0 int8.onnx
if [ $code -le 1 ]; then ok "its value may be given"; else
    fail "its value may be given" "exit code $code"
fi
if [ "$minor" -ge 30 ]; then
    with "$npu" verify --option session.x64quantprecision=1 int8.onnx
    result "the same, asked for" 0 "max abs 0"
fi

# -- verify: what may differ by type, and what by nature --
"$python" - "$top" <<'END'
import struct
import sys
sys.path.insert(0, sys.argv[1] + "/tests/judge")
from make_model import DOUBLE, FLOAT, INT8, ModelProto, node, value
FLOAT16, INT64 = 10, 7
def start(name, elem_type, dims, out=None):
    model = ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=13)
    model.graph.name = name
    value(model.graph.input, "x", elem_type, dims)
    value(model.graph.output, "y", elem_type, out or dims)
    return model, model.graph
def save(model):
    open(model.graph.name + ".onnx", "wb").write(model.SerializeToString())
def scaled(name, elem_type, weight, op="Mul"):
    model, g = start(name, elem_type, (1, 16))
    g.initializer.add(name="w", data_type=elem_type, dims=(1,), raw_data=weight)
    node(g, op, "scale", ("x", "w"), ("y",))
    save(model)
scaled("half", FLOAT16, struct.pack("<H", 0x3c01))
scaled("half_ulp", FLOAT16, struct.pack("<H", 0x3c02))
scaled("half_far", FLOAT16, struct.pack("<H", 0x3c40))
scaled("single", FLOAT, struct.pack("<f", 1.001))
scaled("single_far", FLOAT, struct.pack("<f", 1.004))
scaled("double", DOUBLE, struct.pack("<d", 1.1))
scaled("double_off", DOUBLE, struct.pack("<d", 1.1 + 1e-6))
scaled("long", INT64, struct.pack("<q", 1 << 60), "Add")
scaled("long_off", INT64, struct.pack("<q", (1 << 60) + 1), "Add")
for name in ("inner", "inner_ulp"): # float16 between casts: the outputs are float32
    model, g = start(name, FLOAT, (1, 16))
    g.initializer.add(name="w", data_type=FLOAT16, dims=(1,),
                      raw_data=struct.pack("<H", 0x3c01 if name == "inner" else 0x3c02))
    node(g, "Cast", "down", ("x",), ("h",)).attribute.add(name="to", type=2, i=FLOAT16)
    node(g, "Mul", "scale", ("h", "w"), ("m",))
    node(g, "Cast", "up", ("m",), ("y",)).attribute.add(name="to", type=2, i=FLOAT)
    save(model)
numbers = [((i * 7919) % 2003 - 1001) / 1000.7 for i in range(64 * 32)]
def bf16(number):
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    bits = bits + 0x7fff + (bits >> 16 & 1) & 0xffff0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]
for name, change in (("product", lambda n: n), ("product_bf16", bf16),
                     ("product_off", lambda n: n * 1.003)):
    model, g = start(name, FLOAT, (8, 64), (8, 32))
    g.initializer.add(name="w", data_type=FLOAT, dims=(64, 32),
                      raw_data=struct.pack("<2048f", *map(change, numbers)))
    node(g, "MatMul", "multiply", ("x", "w"), ("y",))
    save(model)
model, g = start("noise", FLOAT, (1, 16))
value(g.output, "z", FLOAT, (1, 16))
node(g, "RandomUniformLike", "dice", ("x",), ("r",))
node(g, "Add", "add", ("r", "x"), ("y",))
node(g, "Neg", "neg", ("x",), ("z",))
save(model)
model, g = start("signed", FLOAT, (1, 16), (1, 8)) # exact kernels: ONNX Runtime refuses it
model.opset_import[0].version = 10
for name, elem, data in (("s", FLOAT, struct.pack("<f", 0.01)), ("o", INT8, bytes(1))):
    g.initializer.add(name=name, data_type=elem, raw_data=data)
g.initializer.add(name="w", data_type=INT8, dims=(16, 8), raw_data=bytes(range(128)))
node(g, "QuantizeLinear", "quantize", ("x", "s", "o"), ("q",))
node(g, "QLinearMatMul", "multiply", ("q", "s", "o", "w", "s", "o", "s", "o"), ("m",))
node(g, "DequantizeLinear", "dequantize", ("m", "s", "o"), ("y",))
save(model)
END
for model in half_ulp half_far single_far double_off long_off inner_ulp product_bf16 product_off; do
    with "$npu" compile $model.onnx; result "compile $model" 0
done
with "$npu" verify --context half_ulp_ctx.onnx half.onnx; result "a float16 off by one bit" 0
with "$npu" verify --context half_far_ctx.onnx half.onnx
said "a float16 off by six in a hundred" 1 "DIFFERS"
with "$npu" verify --context inner_ulp_ctx.onnx inner.onnx
result "a float16 inside the model off by one bit" 0
with "$npu" verify --context single_far_ctx.onnx single.onnx
said "a float32 off by three in a thousand" 1 "DIFFERS"
with "$npu" verify --context double_off_ctx.onnx double.onnx
said "a float64 off by one in a million" 1 "DIFFERS"
with "$npu" verify --context long_off_ctx.onnx long.onnx
said "an int64 off by 1 in 1e18" 1 "DIFFERS"
with "$npu" verify --rtol 1e-9 --context long_off_ctx.onnx long.onnx
result "unless that is allowed" 0 "max abs 1"
with "$npu" verify --rtol 1e-5 --atol 1e-4 --context product_bf16_ctx.onnx product.onnx
said "weights in bfloat16 are named" 1 "as bfloat16 makes it"
with "$npu" verify --json --rtol 1e-5 --atol 1e-4 --context product_bf16_ctx.onnx product.onnx
json "in JSON, too" '[c["outputs"][0]["bfloat16"] for c in j["comparisons"]] ==
 [False, True, False]'
with "$npu" verify --rtol 1e-5 --atol 1e-4 --context product_off_ctx.onnx product.onnx
if [ $code -eq 1 ] && ! grep -q bfloat16 "$out"; then ok "other weights are not bfloat16"
else fail "other weights are not bfloat16" "exit code $code: $(grep bfloat16 "$out")"; fi
with "$npu" verify noise.onnx; result "random numbers differ by nature" 0 "draws random numbers"
grep -q "random  'y'" "$out" && grep -q "ok      'z'" "$out" ||
    fail "random numbers differ by nature" "expected y random and z compared"
with "$npu" verify signed.onnx; result "int8 that ONNX Runtime refuses with exact kernels" 0
if [ "$minor" -lt 30 ] || grep -q "^note .*refuses the model with exact int8 kernels" "$out"; then
    ok "and says what it did without"
else fail "and says what it did without" "no note"; fi
with "$npu" verify --optimization none digits.onnx; result "verify without optimizations" 0

# -- bench and devices --

with "$npu" bench --repeat 2 --sessions 1 --threads 2 digits.onnx; result "bench" 0 "embedded"
with "$npu" bench --repeat 2 --sessions 2 --json digits.onnx; result "bench" 0
json "bench --json" '[r["row"] for r in j["rows"]] == ["CPU", "JIT", "context", "embedded"] and
 all(r["done"] and r["first_output_ms"] >= r["session_ms"] > 0 and r["memory"] > 1 << 20
     and r["bytes"] > 0 for r in j["rows"])'
epctx devices --ort "$library"; result "devices of ORT" 0 "CPUExecutionProvider"
with "$npu" devices digits_ctx.onnx plain.onnx
result "devices of an EP" 0 "digits_ctx.onnx: optimal"
with "$npu" devices --json digits_ctx.onnx
json "devices --json" 'any(d["of_ep"] for d in j["devices"]) and
 j["models"][0]["compatibility"] == 1 and j["compatibility"].startswith("epctx=1")'
with "$npu" devices --compatibility
result "its string alone" 0
epctx check --against "$(cat "$out")" digits_ctx.onnx
result "check against it" 0
with "$npu" devices broken.onnx; result "a file that is no model" 1 "compatibility of broken.onnx"

# -- one package for two EPs --

with "$toy" compile -o toy_ctx.onnx digits.onnx; result "a variant for another EP" 0
epctx package -o pack --source digits.onnx npu=digits_ctx.onnx toy=toy_ctx.onnx
result "a package of both" 0 "variant toy: ToyExecutionProvider, epctx=1"
epctx lint pack; result "it is right" 0
with "$npu" run pack/model/npu/digits_ctx.onnx; result "one runs" 0 "1 of 1 on the EP"
with "$toy" run pack/model/toy/toy_ctx.onnx; result "the other runs" 0 "on the EP"
rm -r pack toy_ctx.onnx toy_toy.bin

# -- EPs that fail, crash, hang --

before=$(state)
faulty registration_hangs compile --timeout 1 -f plain.onnx
refused "an EP that hangs" 1 "no end after 1 s"
faulty data_transfer compile -f plain.onnx; refused "an EP that crashes" 1 "signal 11"
faulty dies_at_unload compile -o unload_ctx.onnx digits.onnx
said "an EP that crashes at its end, after its work" 0
rm -f unload_* ; before=$(state)
faulty absolute_path compile -o path_ctx.onnx digits.onnx
refused "a context with the path of the temporary folder" 1 "path_toy.bin"
faulty no_binary compile -o no_ctx.onnx digits.onnx; refused "a model without its binary" 1 "no_"
faulty claims_too_much compile -o t_ctx.onnx digits.onnx
refused "an EP whose compiler fails" 1 "error 11"
faulty claims_too_much verify digits.onnx
result "verify with an EP whose compiler fails" 3 "compiling a context"
faulty registration_hangs verify --timeout 1 digits.onnx
result "verify with an EP that hangs" 3 "JIT"
faulty registration_hangs bench --timeout 1 --sessions 1 digits.onnx
result "bench with an EP that hangs" 1 "no end after 1 s"
faulty dies_at_compile devices --json
result "devices --json with an EP that crashes" 1 "signal"
json "and what it tells" 'j["compatibility"] is None and
    "signal" in j["problem"] and "signal" in j["failures"][0]["message"]'
faulty claims_too_much devices; result "devices with an EP whose compiler fails" 0 "PROBLEM"
if grep -q '^compatibility  *not known$' "$out"; then ok "its compatibility is not known"
else fail "its compatibility is not known" "$(grep '^compatibility' "$out")"; fi
faulty registration_hangs devices --timeout 1; result "devices with an EP that hangs" 1 "no end"
clean "no folder of bad EPs"

# -- the name under which a library is registered --

faulty registered_name compile -o r_ctx.onnx digits.onnx
refused "an EP that takes any name" 1 "takes the name under which it is registered"
faulty registered_name run digits.onnx; result "which only models that are made mind" 0
library_of() { # NAME: the EP with that fault, as a library of this name
    ln -sf "$bad" "$1"
    EPCTX_BAD_EP=registered_name "$plain" devices --ort "$library" --ep "./$1" >"$out" 2>"$err"
    code=$?
}
library_of libonnxruntime_providers_qnn.so
said "Qualcomm's is registered as its profile says" 0 "device of --ep QNNExecutionProvider "
library_of libonnxruntime_providers_openvino_plugin.so
said "Intel's has its own name" 0 "device of --ep OpenVINOExecutionProvider "
EPCTX_BAD_EP=registered_name "$plain" devices --ort "$library" --ep "$bad:AcmeExecutionProvider" \
    >"$out" 2>"$err"
code=$?
said "another as the command line says" 0 "device of --ep AcmeExecutionProvider "

# -- what an EP was asked for: recorded, warned about, compared with what it did --

mkdir given && cd given || exit 1
cp ../plain.onnx ../digits.onnx .
with "$toy" compile --ep-opt architecture=abacus --option 'acme.two=a%
b' --option 'acme.cache=/var/tmp/c.bin;x="/opt/y.json",d=C:\e\f.txt' --option acme.token=hunter2 \
    --option 'acme.rest=a/b 1/2 --x=/u/v w' -o g_ctx.onnx digits.onnx
result "options are recorded" 0
epctx get g_ctx.onnx metadata:epctx.build.ToyExecutionProvider
sed -n '/_option/p' "$out" >lines
cat >expected <<'END'
ep_option architecture=abacus
session_option acme.cache=c.bin;x="y.json",d=f.txt
session_option acme.rest=a/b 1/2 --x=v w
session_option acme.token
session_option acme.two=a%25%0Ab
END
same "in lines, without folders and secrets" lines expected
cp g_ctx.onnx first_ctx.onnx
with "$toy" compile -f --option acme.token=hunter2 --option 'acme.rest=a/b 1/2 --x=/r/v w' \
    --option 'acme.cache=/other/c.bin;x="/y.json",d=D:/f.txt' --option 'acme.two=a%
b' --ep-opt architecture=abacus -o h_ctx.onnx digits.onnx
epctx get h_ctx.onnx metadata:epctx.build.ToyExecutionProvider
sed -n '/_option/p' "$out" >lines
same "the same lines on another machine, and in another order" lines expected
epctx info g_ctx.onnx
said "info shows them" 0 \
    "compiled with  architecture=abacus; session: acme.cache=c.bin;x=\"y.json\""
said "on which device" 0 "compiled by    ToyExecutionProvider on "
said "which are not told" 0 "acme.token (its value is not told)"
lacks "what an unknown EP needs" 0 "load with"
epctx info --json g_ctx.onnx
json "in JSON" 'j["builds"][0]["source"] == "ToyExecutionProvider" and
 [o["value"] for o in j["builds"][0]["options"] if o["key"] == "acme.two"] == ["a%\nb"] and
 [(o["of"], o["value"], o["load"]) for o in j["builds"][0]["options"]][3] ==
 ("session", None, None)'
cat >toy.facts <<'END'
facts: 1

ep: toy
who: Acme
seen: bench
from: tests
date: 2026-11-29
profiles: generic
load: architecture, ep.share_ep_contexts
options: architecture, layout
END
epctx info --facts toy.facts g_ctx.onnx
said "what a known EP needs" 0 "load with      architecture=abacus"
epctx info --facts toy.facts --json g_ctx.onnx
json "and what not" '[o["load"] for o in j["builds"][0]["options"]] == [True] + 4 * [False]'
with "$toy:ToyExecutionProvider" run --facts toy.facts --ep-opt layot=nchw g_ctx.onnx
said "an option that the EP does not have" 1 \
    "the option 'layot', and ignores it, did you mean 'layout'"
with "$toy" compile --ep-opt architecture=abacus --option ep.context_node_name_prefix=s_ \
    -o s_ctx.onnx digits.onnx
result "another model" 0
printf x >>s_toy.bin
with "$toy" run s_ctx.onnx
result "a run that fails tells the options" 1 \
    "s_ctx.onnx was compiled with architecture=abacus, not"
with "$toy" run --json s_ctx.onnx
json "as the cure" '"architecture=abacus" in j["failures"][0]["cure"]'
with "$toy" run --facts toy.facts s_ctx.onnx
result "and what to load it with" 1 "load it with architecture=abacus"
with "$toy" verify --context s_ctx.onnx digits.onnx
result "so does verify" 3 "s_ctx.onnx was compiled with architecture=abacus, not"
with "$toy" run --ep-opt architecture=abacus s_ctx.onnx
result "with the same options it fails, too" 1
lacks "and nothing is said of them" 1 "compiled with"

faulty warns compile --json -o w_ctx.onnx digits.onnx
json "warnings after success" 'j["warnings"][0] == "The chip is unknown." and
 len(j["warnings"]) == 8 and len(set(j["warnings"])) == 8 and j["more_warnings"] == 4 and
 max(len(w) for w in j["warnings"]) < 400'
faulty warns compile -f -o w_ctx.onnx digits.onnx
said "each once" 0 "ToyExecutionProvider or ONNX Runtime: So it is any one."
if [ "$(grep -c unknown "$err")" -eq 1 ] && grep -q "^epctx: 4 more warnings" "$err"; then
    ok "and few"
else fail "and few" "$(cat "$err")"; fi
faulty warns compile -f -v -o w_ctx.onnx digits.onnx
if [ "$(grep -c "| warning 8" "$err")" -eq 1 ] && ! grep -q "more warnings" "$err"; then
    ok "-v shows all, once"
else fail "-v shows all, once" "$(cat "$err")"; fi

with "$toy" compile --prefix p_ -o p_ctx.onnx digits.onnx
result "a prefix" 0
lacks "which is there" 0 ignored
faulty ignores_prefix compile -f --prefix p_ -o p_ctx.onnx digits.onnx
result "a prefix that the EP ignores" 0 "ToyExecutionProvider ignored the prefix 'p_'"
said "with the cure" 0 "epctx prefix --in-place p_ctx.onnx p_"
epctx prefix --in-place p_ctx.onnx p_; result "which is one" 0 "now 'p_"
faulty ignores_prefix compile -f --option ep.context_node_name_prefix=p_ -o p_ctx.onnx digits.onnx
result "as an option of the session, too" 0 "ignored the prefix 'p_'"
faulty ignores_embed compile --embed -o e_ctx.onnx digits.onnx
result "an embed mode that the EP ignores" 0 "did not embed its context in e_ctx.onnx"
epctx embed --in-place e_ctx.onnx; result "the cure" 0
with "$toy" compile --embed -f -o e_ctx.onnx digits.onnx
result "one that is there" 0
lacks "is not told" 0 "not embed"
with "$npu" compile plain.onnx digits.onnx; result "models that share" 0
epctx info plain_ctx.onnx; said "say so" 0 "session: ep.share_ep_contexts=1"
cd .. && rm -r given
before=$(state)
EPCTX_BAD_EP=registered_name "$plain" compile --ort "$library" -o q_ctx.onnx \
    --ep ./libonnxruntime_providers_qnn.so digits.onnx >"$out" 2>"$err"
code=$?
refused "a source that is not the registered name" 1 \
    "wrote source 'ToyExecutionProvider', and under the name it has here, 'QNNExecutionProvider'"
EPCTX_BAD_EP=node_name_as_key "$plain" compile --ort "$library" -o q_ctx.onnx \
    --ep ./libonnxruntime_providers_qnn.so:ToyExecutionProvider digits.onnx >"$out" 2>"$err"
code=$?
refused "another name than the vendor's, and it does not load" 1 \
    "registered as 'ToyExecutionProvider', by its vendor as 'QNNExecutionProvider'"
EPCTX_BAD_EP=registered_name "$plain" compile --ort "$library" -o q_ctx.onnx \
    --ep "$bad:AcmeExecutionProvider" digits.onnx >"$out" 2>"$err"
code=$?
result "of an EP that nobody knows loading decides" 0
rm q_ctx.onnx q_toy.bin
faulty no_source compile -o q_ctx.onnx digits.onnx
refused "and is told with the source" 1 \
    "does not load; its source is '', the EP is 'ToyExecutionProvider'"
result "the cure of a device that is elsewhere" 1 "with --no-load"
faulty no_source compile --no-load -o q_ctx.onnx digits.onnx
result "written without being loaded" 0
rm -f q_ctx.onnx q_toy.bin
faulty registered_name devices --json; result "a name that only models would have" 0
rm libonnxruntime_providers_*.so

# -- several EPs --

# both COMMAND...: with our EP and the toy EP
both() {
    command=$1
    shift
    epctx "$command" --ort "$library" --ep "$npu" --ep "$toy" "$@"
}
with "$npu" compile -f digits.onnx; result "a part for our EP" 0
with "$toy" compile -f -o toy_ctx.onnx digits.onnx; result "a part for another EP" 0
epctx merge --prefix n_,t_ -o both_ctx.onnx digits_ctx.onnx toy_ctx.onnx
result "a model with nodes of both" 0
with "$npu" run both_ctx.onnx; result "one EP is not enough" 1 "ToyExecutionProvider"
both run both_ctx.onnx
result "both load it" 0 "1 of 9 on EpctxNpuExecutionProvider"
said "each has its own nodes" 0 "2 of 9 on ToyExecutionProvider"
both run --json both_ctx.onnx
json "in JSON" '[(e["ep"][:3], e["nodes"]) for e in j["eps"]] == [("Epc", 1), ("Toy", 2)] and
 j["ep"] == j["eps"][0]["ep"] and j["ep_nodes"] == 3'
both verify digits.onnx; result "verify with both" 0 "context against JIT"
both verify --json digits.onnx
json "in JSON, too" 'len(j["eps"]) == 2 and not j["failed"] and not j["differs"]'
both bench --sessions 1 --repeat 1 --json digits.onnx
json "bench with both" 'len(j["eps"]) == 2 and all(r["done"] for r in j["rows"])'
epctx run --ort "$library" --ep "$npu" --device cpu --ep-opt map_binary=auto --ep "$toy" \
    --device cpu both_ctx.onnx
result "options of each" 0 "2 of 9 on ToyExecutionProvider"
epctx run --ort "$library" --ep "$toy" --ep-opt map_binry=auto --ep "$npu" both_ctx.onnx
result "an option is the EP's in front of it" 1 "ToyExecutionProvider has no option 'map_binry'"
epctx run --ort "$library" --ep "$toy" --ep "$npu" --ep-opt map_binry=auto both_ctx.onnx
result "which here is ours" 1 "EpctxNpuExecutionProvider has no option 'map_binry'"
with "$npu" run --ep-opt map_binary=auto --device cpu digits_ctx.onnx
result "of one EP they are everywhere" 0
both run --device gpu both_ctx.onnx
result "--device of the last" 1 "libtoy_ep.so is registered, but lists no device"
epctx run --ort "$library" --ep-opt a=b --ep "$npu" --ep "$toy" both_ctx.onnx
result "an option in front of all" 2 "--ep-opt a=b: of which EP?"
epctx run --ort "$library" --device cpu --ep "$npu" --ep "$toy" both_ctx.onnx
result "a device in front of all" 2 "--device cpu: of which EP?"
both run --device cpu --device npu both_ctx.onnx; result "two devices" 2 "given twice for --ep"
both run --device tpu both_ctx.onnx; result "an unknown one" 2 "must be cpu, gpu or npu"
both run --ep "$npu" both_ctx.onnx; result "an EP twice" 2 "the same --ep twice"
both run --ep 1 --ep 2 --ep 3 --ep 4 --ep 5 --ep 6 --ep 7 both_ctx.onnx
result "too many EPs" 2 "too many --ep"
both compile digits.onnx; result "compile takes one" 2 "given twice"

# -- an EP inside ONNX Runtime that lists no device --

# Python's package has one.
package=$("$python" -c 'import glob, os, onnxruntime
print(glob.glob(os.path.dirname(onnxruntime.__file__) + "/capi/libonnxruntime.so*")[0])' 2>"$err")
# inside COMMAND...: the tool with it
inside() {
    command=$1
    shift
    epctx "$command" --ort "$package" --ep AzureExecutionProvider "$@"
}
epctx devices --ort "$package"
said "it is listed" 0 "no device of   AzureExecutionProvider"
epctx devices --ort "$package" --json
json "in JSON" '"AzureExecutionProvider" in j["without_devices"]'
inside run digits.onnx
result "it is used by its name" 0 "AzureExecutionProvider inside ONNX Runtime 1"
inside run --ep-opt a digits.onnx; result "with its options" 2 "KEY=VALUE"
inside run --json --ep "$npu" digits_ctx.onnx
json "beside another one" '[e["device"] for e in j["eps"]] == ["", "cpu"] and j["ep_nodes"] == 1'
inside run --device cpu digits.onnx; result "--device is not for it" 1 "lists no devices of this EP"
inside verify digits.onnx; result "verify of an EP that takes nothing" 3 "no node runs on the EP"
inside compile -o a_ctx.onnx digits.onnx; result "compile with it" 1 "digits.onnx"
inside devices digits_ctx.onnx
result "devices with it" 0 "digits_ctx.onnx: no compatibility string of this EP"

# -- libraries that are no EPs --

# made NAME CODE...: a library that does this when it is opened
made() {
    name=$1
    shift
    printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' '#include <unistd.h>' \
        '__attribute__((constructor)) static void opened(void) {' "$@" '}' >made.c
    ${CC:-gcc} -shared -fPIC -o "$name" made.c -L. ${needs:-} 2>"$err" ||
        fail "$name" "$(cat "$err")"
    rm made.c
}
# hostile NAME LIBRARY TEXT WORDS: the commands fail with the text and the library's last words
hostile() {
    before=$(state)
    for command in "compile -o x_ctx.onnx" "run" "devices"; do
        case $command in devices) model= ;; *) model=digits.onnx ;; esac
        # shellcheck disable=SC2086 # words, and no model is none
        "$plain" $command --ort "$library" --ep "./$2" --timeout 60 $model >"$out" 2>"$err"
        code=$?
        refused "$command with $1" 1 "$3"
        if ! grep -q "$2" "$err"; then fail "$command with $1" "the library is not named"; fi
        if [ -n "$4" ] && ! grep -q "^  | $4" "$err"; then
            fail "$command with $1" "its last words are not told"
        fi
        if [ "$(wc -c <"$err")" -gt 6000 ]; then fail "$command with $1" "far too many words"; fi
    done
}
made libempty.so 'puts("I am no EP"); fflush(stdout);'
hostile "a library that is no EP" libempty.so "CreateEpFactories" "I am no EP"
made libdies.so 'puts("the device is on fire"); fflush(stdout); abort();'
hostile "a library that crashes" libdies.so "signal 6" "the device is on fire"
made libexits.so 'puts("no licence"); exit(7);'
hostile "a library that ends the process" libexits.so "exit code 7" "no licence"
made libprints.so 'static char line[1001]; int i;' \
    'for (i = 0; i < 1000; i++) line[i] = "ab"[i % 2]; line[1000] = 10;' \
    'for (i = 0; i < 100000; i++) if (write(1, line, 1001) < 0) abort();' \
    'puts("and that was all"); fflush(stdout); abort();'
hostile "a library that prints 100 MB" libprints.so "signal 6" "and that was all"
made libgone.so ';'
needs="-Wl,--no-as-needed -lgone"
made libneedy.so ';'
needs=
rm libgone.so
hostile "a library that lacks one" libneedy.so "libgone.so" ""
made libhangs.so 'puts("waiting for the device"); fflush(stdout);' \
    'if (fork() == 0) { puts("me, too"); fflush(stdout); } for (;;) pause();'
before=$(state)
"$plain" compile --ort "$library" --ep ./libhangs.so --timeout 1 -o x_ctx.onnx digits.onnx \
    >"$out" 2>"$err"
code=$?
refused "a library that hangs" 1 "no end after 1 s"
if grep -q "waiting for the device" "$err"; then ok "its last words"; else
    fail "its last words" "they are not told"
fi
if grep -l libhangs.so /proc/[0-9]*/maps 2>/dev/null | grep -q .; then
    fail "its processes have ended" "one is there"
else ok "its processes have ended"; fi
rm lib*.so
clean "no folder of such libraries"

# -- a signal --

EPCTX_BAD_EP=registration_hangs "$plain" compile --ort "$library" --ep "$bad" -f plain.onnx \
    >"$out" 2>"$err" &
tool=$!
tries=0
while [ -z "$(find . -maxdepth 1 -name '.epctx-*')" ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
child=$(ps -o pid= --ppid $tool 2>/dev/null | tr -d ' ')
kill -TERM $tool
wait $tool
code=$?
if [ $code -eq 143 ]; then ok "SIGTERM ends it"; else fail "SIGTERM ends it" "exit code $code"; fi
if [ -z "$child" ] || ! kill -0 "$child" 2>/dev/null; then ok "and its child"; else
    fail "and its child" "process $child is there"
fi
clean "and its folder"
exit $status
