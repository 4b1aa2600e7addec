#!/bin/sh
# Tensors in files, asked of ONNX Runtime: constants that it reads while it infers shapes stay in
# the model whatever moves tensors out, and lint finds those that do not; lengths and offsets;
# `init` gathers, renames and aligns weight files, and takes initializers out of the inputs.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
use_ort
epctx=$plain # thousands of calls
judge=$top/tests/judge/external.py
facts=$top/examples/epctx/facts/shapes.facts
models=${EPCTX_TEST_MODELS:-}
start init
cd "$work" || exit 1
mkdir judged

# judge WHAT ARGUMENT...: prints lines of its own
judge() {
    (cd judged && "$python" -B "$judge" "$@") || status=1
}

judge rows "$epctx" "$facts"
judge numbers "$epctx"
if quick; then echo "skip every test case of onnx: in make check"; else judge cases "$facts"; fi
if [ -n "$models" ] && [ -d "$models/onnx" ]; then
    set -- "$models/onnx/silero_vad_op18_ifless.onnx" "$models/onnx/mnist_8.onnx"
    quick || set -- "$@" "$models/onnx/tract_qlstm.onnx" "$models/onnx/ppocrv4_det.onnx" \
        "$models/onnx/swift_f0.onnx" "$models/onnx/mlpt_kws_fp32.onnx" \
        "$models/onnx/light_squeezenet.onnx" "$models/onnx/silero_vad_16k_op15.onnx"
    judge models "$epctx" "$@"
else
    echo "skip models: EPCTX_TEST_MODELS is not set"
fi

# -- several files become one, under another name, and the rest is told --
"$python" -c '
import numpy as np, onnx
from onnx import helper as h, numpy_helper as n
f = lambda name, value: n.from_array(np.asarray(value), name)
value = h.make_tensor_value_info
node = lambda *a, **k: h.make_node(*a, **k)
g = h.make_graph([
    node("Constant", [], ["k"], value=f("", np.full(16, 3, np.float32))),
    node("Constant", [], ["shape"], value=f("", np.array([2, 8], np.int64))),
    node("Add", ["x", "w"], ["a"]), node("Add", ["a", "k"], ["b"]), node("Mul", ["b", "v"], ["c"]),
    node("Reshape", ["c", "shape"], ["y"])], "g",
    [value("x", 1, [16]), value("w", 1, [16])], [value("y", 1, [2, 8])],
    [f("w", np.arange(16, dtype=np.float32)), f("v", np.full(16, 2, np.float32))])
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "m.onnx")' ||
    fail "a model" "could not be made"
same_results() {
    "$python" -c '
import numpy as np, onnxruntime as o, sys
x = {"x": np.linspace(-1, 1, 16).astype(np.float32)}
run = lambda path: o.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, x)[0]
sys.exit(not np.array_equal(run(sys.argv[1]), run(sys.argv[2])))' "$2" "$3" 2>err &&
        ok "$1: ORT computes the same" || fail "$1: ORT computes the same" "see below"
}
epctx init --external --threshold 1 m.onnx -o e.onnx
result "constants go out, too" 0 "external 'k'"
result "a shape stays" 0 "skipped 'shape': ORT reads it while it infers shapes"
same_results "out" m.onnx e.onnx
epctx init --external --name deep.data e.onnx -o e2.onnx
result "another name" 0 "external 'w' in deep"
result "the old file is told" 0 "skipped 'e.onnx.data': the model no longer names this file"
same_results "renamed" m.onnx e2.onnx
epctx init --external --name deep.data e2.onnx -o e2.onnx -f; result "it is there" 0 "no changes"
epctx init --external --align 64 --name near.data e2.onnx -o e3.onnx; result "aligned" 0
[ "$(wc -c <near.data)" -eq 192 ] && ok "aligned to 64" ||
    fail "aligned to 64" "$(wc -c <near.data)"
same_results "aligned" m.onnx e3.onnx
"$python" -c '
import onnx
m = onnx.load("m.onnx")
onnx.save_model(m, "many.onnx", save_as_external_data=True, all_tensors_to_one_file=False,
                size_threshold=0, convert_attribute=False)'
epctx init --external --name one.data many.onnx -o one.onnx; result "they become one" 0 "'v' in"
same_results "gathered" m.onnx one.onnx
mkdir sub
epctx init --external --name sub/w.data one.onnx -o moved.onnx; result "into a folder" 0 "sub/w"
same_results "moved" m.onnx moved.onnx
epctx init --external --threshold 1000 e3.onnx -o t.onnx; result "a threshold" 0 "inlined 'w'"
[ ! -e t.onnx.data ] && ok "nothing is outside" || fail "nothing is outside" "t.onnx.data"
same_results "inside by size" m.onnx t.onnx
epctx init --inline e3.onnx -o i.onnx; result "constants come in, too" 0 "inlined 'k'"
rm near.data; same_results "inside" m.onnx i.onnx

# -- inputs that are initializers --
epctx init --no-inputs m.onnx -o n.onnx; result "no inputs" 0 "fixed 'w': it is no input"
same_results "no inputs" m.onnx n.onnx
epctx compile n.onnx -o n_ctx.onnx; result "its constant is compiled" 0 "model"
grep -q override out && fail "nothing to override" "$(cat out)" || ok "nothing to override"
epctx compile m.onnx -o o_ctx.onnx; result "what callers may override is told" 0 "init --no-inputs"
epctx init --no-inputs n.onnx -o n2.onnx; result "there is none" 0 "no changes"
epctx init --no-inputs --prune m.onnx -o n2.onnx; result "one at a time" 2 "choose one of"
"$python" -c '
import onnx
m = onnx.load("m.onnx")
m.ir_version = 3
m.graph.input.append(onnx.helper.make_tensor_value_info("v", 1, [16]))
onnx.save(m, "three.onnx")'
epctx init --no-inputs three.onnx -o four.onnx; result "IR version 3" 0 "'ir_version': it is 4 now"
same_results "IR version 3" three.onnx four.onnx

# -- advice that helps: open dimensions only where they are the cause --
"$python" -c '
import numpy as np, onnx
from onnx import helper as h, numpy_helper as n
value = h.make_tensor_value_info
g = h.make_graph([h.make_node("RandomUniformLike", ["x"], ["y"])], "g",
                 [value("x", 1, [2, 2]), value("z", 1, ["N"])], [value("y", 1, [2, 2])])
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "other.onnx")'
epctx compile other.onnx -o d_ctx.onnx; result "not the dimension" 1 "compiles none"
grep -q -e --dim err && fail "no --dim" "$(cat err)" || ok "no --dim"
exit $status
