#!/bin/sh
# What `epctx compile` writes, judged by libprotobuf: the nodes, and where they say the binary is.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
epctx=$plain
start gen
make_models plain extras partly digits
cd "$work" || exit 1

# judge NAME WHAT ARGUMENTS...: see judge/generated.py
judge() {
    name=$1
    shift
    if why=$("$python" "$top/tests/judge/generated.py" "$@" 2>&1); then echo "ok $name"
    else
        echo "FAIL $name: $(printf '%s' "$why" | tail -n 1)"
        status=1
    fi
}
compile() { "$epctx" compile "$@" >out 2>&1 || cat out; }

# -- one model: beside the source, and in another folder by a relative and an absolute path --
mkdir out.d deep deep/er
for kind in plain extras partly digits; do
    compile $kind.onnx
    judge "EPContext nodes stand for the compiled ones: $kind" nodes $kind.onnx ${kind}_ctx.onnx
    judge "a node names the binary: $kind" binary ${kind}_ctx.onnx ${kind}_npu.bin
done
compile partly.onnx -o out.d/m_ctx.onnx
judge "EPContext nodes stand for the compiled ones: another folder" \
    nodes partly.onnx out.d/m_ctx.onnx
judge "the path is relative to the model: another folder" binary out.d/m_ctx.onnx m_npu.bin
compile partly.onnx -o "$work/deep/er/m_ctx.onnx"
judge "the path is relative to the model: absolute output" binary deep/er/m_ctx.onnx m_npu.bin
(cd deep/er && rm -f m_* && compile ../../partly.onnx -o ../n_ctx.onnx)
judge "the path is relative to the model: folder above" binary deep/n_ctx.onnx n_npu.bin
mkdir inside
compile partly.onnx --embed -o inside/m_ctx.onnx
judge "EPContext nodes stand for the compiled ones: embedded" nodes partly.onnx inside/m_ctx.onnx
judge "embedded content" embedded inside/m_ctx.onnx

# -- a group --
mkdir group
cp plain.onnx group/a.onnx
cp partly.onnx group/b.onnx
cp digits.onnx group/c.onnx
compile group/a.onnx group/b.onnx group/c.onnx
for m in a b c; do
    judge "EPContext nodes stand for the compiled ones: $m of a group" nodes group/$m.onnx \
        group/${m}_ctx.onnx
done
judge "all nodes of a group name one binary" group a_npu.bin group/a_ctx.onnx group/b_ctx.onnx \
    group/c_ctx.onnx
exit $status
