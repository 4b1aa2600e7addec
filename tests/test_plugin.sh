#!/bin/sh
# The plugin EP as a file: what it exports and needs, whether clang agrees with gcc, and models that
# go between ONNX Runtime and the epctx tool. Its behaviour inside ORT is in test_plugin.c.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start plugin_test
out=/dev/null err=/dev/null

for library in libepctx_ep.so libtoy_ep.so; do
    if ! [ -e "$build/$library" ]; then
        echo "skip plugin $library: not built"
        continue
    fi
    exports=$(nm -D --defined-only "$build/$library" | awk '{ print $3 }' | sort | tr '\n' ' ')
    if [ "$exports" = "CreateEpFactories ReleaseEpFactory " ]; then
        ok "plugin $library exports two functions"
    else
        fail "plugin $library exports two functions" "expected CreateEpFactories and \
ReleaseEpFactory, found $exports"
    fi
    # ORT hands its functions over; nanopb is inside.
    foreign=$(nm -D --undefined-only "$build/$library" | awk '{ print $2 }' | grep -E '^(Ort|pb_)')
    if [ -z "$foreign" ]; then
        ok "plugin $library needs neither libonnxruntime nor nanopb"
    else
        fail "plugin $library needs neither libonnxruntime nor nanopb" "found $foreign"
    fi
    # What can be written to and is not a constant would be state shared by all sessions.
    state=$(objdump -t "$build/$library" | awk '/ O \.(data|bss)\t/ { print $NF }' |
        grep -vE '^(__|completed)' | tr '\n' ' ')
    if [ -z "$state" ]; then
        ok "plugin $library has no mutable state"
    else
        fail "plugin $library has no mutable state" "found $state"
    fi
done

headers=$(sh tests/deps.sh where ort-headers)
warnings="-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wstrict-prototypes"
for cc in gcc clang; do
    command -v $cc >/dev/null || { echo "skip plugin $cc: not installed"; continue; }
    for f in examples/plugin_ep/*.c tests/ort/*.c; do
        [ "$f" != tests/ort/qnn_api.c ] || continue # wants a QNN SDK: test_qnn_system.sh
        case $f in
        *device_npu.c | *device_five.c) [ -e epctx_npu.h ] || continue ;;
        esac
        # shellcheck disable=SC2086 # a list of words
        if $cc $warnings -Werror -fsyntax-only -DEPCTX_NO_WIRE -I. -Iexamples/plugin_ep \
            -isystem "$headers" $f >$work/log 2>&1; then
            ok "plugin $cc $(basename $f)"
        else
            fail "plugin $cc $(basename $f)" "$(grep -m 1 error $work/log)"
            cat $work/log
        fi
    done
done

# ----------------------------------------------------- the tool and ORT

# tests/test_plugin --run CONTEXT_MODEL SOURCE_MODEL: ORT with our EP on the first gives the
# outputs of ORT's CPU EP on the second. --write SOURCE OUT [KEY]: ORT writes a context model, with
# KEY=1 in the session options.
# --dump MODEL FOLDER: inputs and outputs of ORT's CPU EP, as `epctx run --input-dir` takes them.
driver=$build/tests/test_plugin
model=$(find "$(sh tests/deps.sh where blazeface)" -name '*front*.onnx' 2>/dev/null | head -n 1)
if ! [ -x "$plain" ] || ! [ -e "$build/libepctx_ep.so" ] || [ -z "$model" ]; then
    echo "skip plugin interchange: needs the tool, libepctx_ep.so and the demo's model"
    exit $status
fi
cp "$model" $work/m.onnx
# interchange NAME TOOL_OPTION ORT_OPTION: the same model, compiled by the one, runs in the other.
interchange() {
    mkdir $work/$1
    cp $work/m.onnx $work/$1
    name="plugin tool to ORT, $1"
    # shellcheck disable=SC2086 # none or two words
    if "$plain" compile $work/$1/m.onnx -o $work/$1/tool_ctx.onnx $2 >$work/log 2>&1 &&
        $driver --run $work/$1/tool_ctx.onnx $work/m.onnx >>$work/log 2>&1; then
        ok "$name"
    else
        fail "$name" "$(tail -n 1 $work/log)"
    fi
    name="plugin ORT to tool, $1"
    # shellcheck disable=SC2086 # none or one word
    if $driver --write $work/$1/m.onnx $work/$1/ort_ctx.onnx $3 >$work/log 2>&1 &&
        $driver --dump $work/m.onnx $work/$1/cpu >>$work/log 2>&1 &&
        "$plain" run --input-dir $work/$1/cpu --output-dir $work/$1/own \
            $work/$1/ort_ctx.onnx >>$work/log 2>&1 &&
        $driver --compare $work/$1/own $work/$1/cpu >>$work/log 2>&1; then
        ok "$name"
    else
        fail "$name" "$(tail -n 1 $work/log)"
    fi
}
interchange external "" ""
interchange embedded --embed ep.context_embed_mode
interchange weightless --weightless ep.enable_weightless
for side in "tool read from the source model" "ort inputs of the node"; do
    name="plugin info of a weightless model by ${side%% *}"
    if "$plain" info $work/weightless/${side%% *}_ctx.onnx 2>&1 | tee $work/log |
        grep -q "weights  .*, ${side#* }"; then
        ok "$name"
    else
        fail "$name" "expected weights that are ${side#* }: $(grep weights $work/log)"
    fi
done
interchange weightless_by_the_former_key "-C ep.enable_weightless_ep_context_nodes|1" \
    ep.enable_weightless_ep_context_nodes

# --------------------------- for authors of EPs: the test programs with another device

if [ -e "$build/libfive_ep.so" ]; then
    for program in test_plugin test_plugin_share test_plugin_rows test_plugin_weightless; do
        if EPCTX_TEST_EP="five libfive_ep.so FiveExecutionProvider five" EPCTX_TEST_MODELS='' \
            "$build/tests/$program" >$work/log 2>&1 && ! grep -q -e ^FAIL $work/log &&
            grep -q -e "^ok five" -e "^skip five" $work/log; then
            ok "plugin $program with a device of five operators: $(grep -c '^ok five' $work/log) \
cases, $(grep -c '^skip five' $work/log) do not apply"
        else
            fail "plugin $program with a device of five operators" "$(grep -m 1 ^FAIL $work/log)"
        fi
    done
    # The cases of weightless contexts with nodes that the EP makes its own: weights stay inputs.
    EPCTX_FIVE_NODES=1 EPCTX_TEST_EP="npu libfive_ep.so FiveExecutionProvider five" \
        "$build/tests/test_plugin_weightless" generate_and_load compiled_now former_option \
        quantized changed_weight inputs_first constants_change shared >$work/log 2>&1
    if [ $? -eq 0 ] && [ "$(grep -c '^ok npu' $work/log)" -eq 8 ]; then
        ok "plugin weightless with nodes of the EP's own: $(grep -c '^ok npu' $work/log) cases"
    else
        fail "plugin weightless with nodes of the EP's own" "$(grep -m 1 ^FAIL $work/log)"
    fi
else
    echo "skip plugin with a device of five operators: libfive_ep.so is not built"
fi

# ------------------------------------------------- for authors of EPs: --try

# try NAME CODE TEXT ARGUMENT...
try() {
    name="plugin $1" want=$2 text=$3
    shift 3
    $driver --try "$@" >$work/log 2>&1
    code=$?
    if [ $code -ne "$want" ] || ! grep -qF -e "$text" $work/log; then
        fail "$name" "exit code $code, expected $want and '$text': $(tail -n 3 $work/log)"
    else
        ok "$name"
    fi
}
npu="$build/libepctx_ep.so EpctxNpuExecutionProvider"
"${PYTHON:-/usr/bin/python3}" - $work/half.onnx <<'END'
import sys
sys.path.insert(0, "tests/judge")
import make_model
model = make_model.make("plain")
# The NPU has no Einsum; ORT's CPU has.
left = model.graph.node.add(op_type="Einsum", name="not for the NPU", input=["y"], output=["z"])
left.attribute.add(name="equation", type=3, s=b"...ij->...")
model.graph.output[0].name = "z"
del model.graph.output[0].type.tensor_type.shape.dim[2:]
open(sys.argv[1], "wb").write(model.SerializeToString())
END
# A constant that is computed, for the NPU and for Einsum.
"${PYTHON:-/usr/bin/python3}" - $work/constant.onnx <<'END'
import sys
sys.path.insert(0, "tests/judge")
from make_model import FLOAT, ModelProto, node, value, weights
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=17)
graph = model.graph
graph.name = "constant"
value(graph.input, "x", FLOAT, (2, 2))
value(graph.output, "y", FLOAT, (2, 2))
value(graph.output, "z", FLOAT, ())
weights(graph, "scale", FLOAT, ())
graph.initializer.add(name="q", data_type=3, dims=(2, 2), raw_data=b"\x01\xfe\x03\x04")
node(graph, "DequantizeLinear", "for both", ("q", "scale"), ("w",))
node(graph, "Add", "for the NPU", ("x", "w"), ("y",))
left = node(graph, "Einsum", "not for the NPU", ("w",), ("z",))
left.attribute.add(name="equation", type=3, s=b"...ij->...")
open(sys.argv[1], "wb").write(model.SerializeToString())
END
# MatMul and Add, which ORT joins to a Gemm: the device of five operators does not know it.
"${PYTHON:-/usr/bin/python3}" - $work/joined.onnx <<'END'
import sys
sys.path.insert(0, "tests/judge")
from make_model import FLOAT, ModelProto, node, value, weights
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=17)
graph = model.graph
graph.name = "joined"
value(graph.input, "x", FLOAT, ("rows", 2))
value(graph.output, "y", FLOAT, ("rows", 2))
weights(graph, "w", FLOAT, (2, 2))
weights(graph, "b", FLOAT, (2,))
node(graph, "Relu", "first", ("x",), ("r",))
node(graph, "MatMul", "product", ("r", "w"), ("p",))
node(graph, "Add", "sum", ("p", "b"), ("y",))
open(sys.argv[1], "wb").write(model.SerializeToString())
END
# Bodies that read constants and values of the main graph, one of them as the node does, too.
"${PYTHON:-/usr/bin/python3}" - $work/bodies.onnx <<'END'
import sys
sys.path.insert(0, "tests/judge")
from make_model import FLOAT, ModelProto, node, value, weights
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=17)
graph = model.graph
graph.name = "bodies"
value(graph.input, "x", FLOAT, (2, 2))
value(graph.input, "c", 9, ())
graph.input[-1].type.tensor_type.shape.SetInParent()
value(graph.output, "z", FLOAT, (2, 2))
weights(graph, "w1", FLOAT, (2, 2))
weights(graph, "w2", FLOAT, (2, 2))
node(graph, "MatMul", "before", ("x", "w1"), ("y",))
choice = graph.node.add(op_type="If", name="choice", input=["c"], output=["z"])
for i, (name, op) in enumerate((("then_branch", "MatMul"), ("else_branch", "Add"))):
    attribute = choice.attribute.add(name=name, type=5)
    body = attribute.g
    body.name = name
    node(body, op, op, ("y", ("w1", "w2")[i]), ("z" + name,))
    value(body.output, "z" + name, FLOAT, (2, 2))
open(sys.argv[1], "wb").write(model.SerializeToString())
END
# EP option `direct`.
"${PYTHON:-/usr/bin/python3}" - $work/wide.onnx <<'END'
import sys
sys.path.insert(0, "tests/judge")
from make_model import FLOAT, ModelProto, node, value, weights
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=17)
graph = model.graph
graph.name = "wide"
value(graph.input, "x", FLOAT, (1, 32, 16, 16))
value(graph.output, "y", FLOAT, (1, 32, 14, 14))
weights(graph, "w", FLOAT, (32, 32, 3, 3))
node(graph, "Conv", "conv", ("x", "w"), ("y",))
open(sys.argv[1], "wb").write(model.SerializeToString())
END
for pair in 0:Winograd 1:Conv; do
    if "$plain" compile -f --ep "$build/libepctx_ep.so" --ep-opt direct=${pair%:*} $work/wide.onnx \
        -o $work/wide_ctx.onnx >$work/log 2>&1 &&
        "$plain" npu-dump $work/wide_ctx.onnx >$work/log 2>&1 && grep -q " ${pair#*:} " $work/log &&
        [ "$(grep -c -E ' (Winograd|Conv) ' $work/log)" -eq 1 ]; then
        ok "plugin direct=${pair%:*} is ${pair#*:}"
    else fail "plugin direct=${pair%:*} is ${pair#*:}" "$(tail -n 3 $work/log)"; fi
done
if "$plain" run --ep "$build/libepctx_ep.so" --ep-opt direct=2 $work/wide.onnx >$work/log 2>&1 ||
    ! grep -q "option direct: expected 0 or 1, found '2'" $work/log; then
    fail "plugin direct=2" "expected a refusal: $(tail -n 1 $work/log)"
else ok "plugin direct=2"; fi
# An output of an EPContext node that ORT prunes when it folds the reader away: Shape of a known
# shape.
"${PYTHON:-/usr/bin/python3}" - $work/two.onnx <<'END'
import sys
sys.path.insert(0, "tests/judge")
from make_model import FLOAT, ModelProto, node, value
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=17)
graph = model.graph
graph.name = "two"
value(graph.input, "x", FLOAT, (2, 3))
value(graph.output, "a", FLOAT, (2, 3))
value(graph.output, "b", FLOAT, (2, 3))
node(graph, "Relu", "first", ("x",), ("a",))
node(graph, "Add", "second", ("a", "a"), ("b",))
open(sys.argv[1], "wb").write(model.SerializeToString())
END
"$plain" compile -f $work/two.onnx -o $work/two_ctx.onnx >/dev/null
"${PYTHON:-/usr/bin/python3}" - $work/two_ctx.onnx <<'END'
import sys
sys.path.insert(0, "tests/judge")
from make_model import ModelProto, node, value
with open(sys.argv[1], "rb") as file:
    model = ModelProto.FromString(file.read())
graph = model.graph
graph.value_info.add().CopyFrom(graph.output[1])
del graph.output[1]
value(graph.output, "s", 7, (2,))
node(graph, "Shape", "shape", ("b",), ("s",))
open(sys.argv[1], "wb").write(model.SerializeToString())
END
if "$plain" run --ep "$build/libepctx_ep.so" $work/two_ctx.onnx >$work/log 2>&1 &&
    grep -q "'s' int64\[2\] min 2, max 3" $work/log; then ok "plugin a pruned output"
else fail "plugin a pruned output" "$(tail -n 1 $work/log)"; fi
five="$build/libfive_ep.so FiveExecutionProvider"
# shellcheck disable=SC2086 # a library and a name
{
    try "--try tells what the optimization level does" 0 \
        "without graph optimizations no node is left" --dim rows=3 $five $work/joined.onnx
    try "--try with a free dimension" 1 "no node ran" $five $work/joined.onnx
    try "--try with a wrong dimension" 2 "usage" --dim rows=0 $five $work/joined.onnx
    try "--try" 0 "embedded: generated, reloaded: 1 EPContext node," $npu $work/m.onnx
    try "--try tells why a node is left" 0 "Einsum 'not for the NPU' is left to other EPs: " \
        $npu $work/half.onnx
    try "--try --strict" 0 "outputs as on the CPU" --strict $npu $work/m.onnx
    try "--try --strict with bodies that read constants of the main graph" 0 \
        "embedded: generated, reloaded: 1 EPContext node," --strict $npu $work/bodies.onnx
    try "--try --strict with a node left" 1 "Einsum 'not for the NPU' is left to other EPs: " \
        --strict $npu $work/half.onnx
    try "--try with a constant node left" 0 \
        "is left to other EPs: all its inputs are constant" \
        $npu $work/constant.onnx
    try "--try --strict with a constant node left" 1 \
        "is left to other EPs: all its inputs are constant" \
        --strict $npu $work/constant.onnx
    try "--try without a model" 2 "usage" $npu
    try "--try with an EP option" 1 "expected never, auto or always, found 'x'" \
        --ep-opt map_binary=x $npu $work/m.onnx
    try "--try with an EP option that no EP has" 1 \
        "has no option 'map_binry', did you mean 'map_binary'?: it knows hardware" \
        --ep-opt map_binry=auto $npu $work/m.onnx
    try "--try with an EP option without a value" 2 "usage" --ep-opt map_binary $npu $work/m.onnx
    try "--try with an EP option at the end" 2 "usage" --ep-opt
}

# --------------------- for authors of EPs: mistakes in examples/my_ep/device_mine.c

# mistake CODE NAME TEXT: what --try ends with, and what it tells
mistake() {
    EPCTX_MISTAKE=$2 $driver --try "$build/libmistaken_ep.so" MineExecutionProvider \
        $work/mistaken.onnx >$work/log 2>&1
    code=$?
    if [ $code -ne "$1" ] || ! grep -qaF -e "$3" $work/log; then
        fail "plugin tells of the mistake $2" \
            "exit code $code, expected $1 and '$3': $(tail -n 2 $work/log)"
    else
        ok "plugin tells of the mistake $2"
    fi
}
"${PYTHON:-/usr/bin/python3}" - $work/mistaken.onnx <<'END'
import sys
sys.path.insert(0, "tests/judge")
from make_model import FLOAT, ModelProto, node, value, weights
model = ModelProto(ir_version=8)
model.opset_import.add(domain="", version=17)
graph = model.graph
graph.name = "mistaken"
value(graph.input, "x", FLOAT, (2, 2))
value(graph.output, "y", FLOAT, (2, 2))
weights(graph, "w", FLOAT, (2, 2))
node(graph, "Relu", "first", ("x",), ("r",))
node(graph, "Sigmoid", "second", ("r",), ("s",))
node(graph, "Add", "third", ("s", "w"), ("y",))
open(sys.argv[1], "wb").write(model.SerializeToString())
END
if ! [ -e "$build/libmistaken_ep.so" ]; then
    echo "skip plugin tells of mistakes: libmistaken_ep.so is not built"
    exit $status
fi
while read -r code name text; do mistake "$code" "$name" "$text"; done <<'END'
0 none embedded: generated, reloaded: 2 EPContext nodes, outputs as on the CPU
0 device.option_keys embedded: generated, reloaded: 2 EPContext nodes, outputs as on the CPU
0 backend.explain_fn Sigmoid 'second' is left to other EPs: the backend does not take it
0 explain_forgets Sigmoid 'second' is left to other EPs: the backend does not take it
0 backend.check_fn embedded: generated, reloaded: 2 EPContext nodes, outputs as on the CPU
1 no_device cannot be registered: ep_device_get returns NULL
1 device.ep_name cannot be registered: ep_device.ep_name is not set
1 empty_name cannot be registered: ep_device.ep_name is not set
1 long_name cannot be registered: ep_device.ep_name has more than 128 characters
1 device.vendor cannot be registered: ep_device.vendor is not set
1 device.version cannot be registered: ep_device.version is not set
1 device.open_fn cannot be registered: ep_device.open_fn is not set
1 device.close_fn cannot be registered: ep_device.close_fn is not set
1 dynamic_keys_alone dynamic_keys and dynamic_fn are for each other: only dynamic_keys is set
1 dynamic_fn_alone dynamic_keys and dynamic_fn are for each other: only dynamic_fn is set
1 convert_fn_alone ep_device.convert_fn is set without channels_last_fn
1 metadata_odd ep_device.metadata: key 'size' has no value
1 absent no device of MineExecutionProvider
1 open_fails EP_FAIL : the SDK is not well in open_fn
1 open_fails_silently open_fn of MineExecutionProvider fails without a message
1 open_fails_oddly open_fn of MineExecutionProvider fails without a message
1 open_forgets backend version 0, expected 4
1 old_version backend version 3, expected 4
1 backend.source epctx_backend.source is not set
1 empty_source epctx_backend.source is not set
1 other_source is 'AcornExecutionProvider', expected the EP's name 'MineExecutionProvider'
1 backend.short_name epctx_backend.short_name is not set
1 folder_in_short_name epctx_backend.short_name is '../mine', expected a part of a file name
1 backend.sdk_version epctx_backend.sdk_version is not set
1 long_sdk_version the compatibility string is longer than 255 bytes
1 backend.hardware_architecture epctx_backend.hardware_architecture is not set
1 backend.capability_fn epctx_backend.capability_fn is not set
1 backend.begin_fn epctx_backend.begin_fn is not set
1 backend.compile_fn epctx_backend.compile_fn is not set
1 backend.finish_fn epctx_backend.finish_fn is not set
1 backend.discard_fn epctx_backend.discard_fn is not set
1 backend.load_fn epctx_backend.load_fn is not set
1 backend.unload_fn epctx_backend.unload_fn is not set
1 backend.find_fn epctx_backend.find_fn is not set
1 backend.info_fn epctx_backend.info_fn is not set
1 backend.run_fn epctx_backend.run_fn is not set
1 half_weightless epctx_backend.setup_fn is not set
1 capability_fails failed with error: [ONNXRuntimeError] : 11 : EP_FAIL : the SDK is not well in
1 takes_everything node 'second': the device has no such operator
1 begin_fails the SDK is not well in begin_fn
1 compile_fails the SDK is not well in compile_fn
1 compile_fails_silently the backend failed
1 compile_forgets expected graph 'MineExecutionProvider_
1 hash_forgotten is of another generation: expected
1 finish_fails the SDK is not well in finish_fn
1 finish_forgets finish_fn of MineExecutionProvider makes an empty binary
1 load_fails the SDK is not well in load_fn
1 check_fails the SDK is not well in check_fn
1 find_fails the SDK is not well in find_fn
1 find_forgets find_fn sets no graph
1 info_fails the SDK is not well in info_fn
1 info_forgets of the context has 0 inputs, the node has 1
1 info_without_values info_fn gives graph 'MineExecutionProvider_
1 info_without_outputs of the context has 0 outputs, the node has 1
1 scratch_without_end bytes of scratch that info_fn asks for
1 run_fails the SDK is not well in run_fn
1 run_fails_silently the backend failed
1 run_forgets output y[0]: expected
END
exit $status
