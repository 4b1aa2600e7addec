#!/bin/sh
# The manual of epctx_npu.h lists the operators that its tables have, and the tables know since when
# there are such operators, as ONNX Runtime does.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
use_ort
start npu_manual

# The tables: operator and first opset; QLinearConv and QLinearMatMul belong to ai.onnx, too.
sed -n -e '/^static const epctx__lowering /,/^};/s/^    {"\(\w*\)", \([0-9]*\), .*/\1 \2/p' \
    -e '/^#define EPCTX_NPU_ACT_LIST/,/^$/s/^    X(\w*, "\(\w*\)", \([0-9]*\), .*/\1 \2/p' \
    epctx_npu.h | LC_ALL=C sort -u >"$work/table"
sed -n '/^static const epctx__quantized /,/^};/s/^    {{"\(\w*\)", .*/\1/p' epctx_npu.h |
    LC_ALL=C sort -u >"$work/quantized"

# The manual: words between two sentences.
sed -n '/ai\.onnx operators up to opset/,/Shapes, axes and sizes/p' epctx_npu.h |
    tr -s '\n *' '   ' >"$work/text"
sed 's/^.*cast): //; s/; of com\.microsoft .*//' "$work/text" | tr -s ' ' '\n' | grep . |
    LC_ALL=C sort >"$work/listed"
sed 's/^.*; of com\.microsoft //; s/\. Shapes.*//; s/^.* with //' "$work/text" | tr -s ' ' '\n' |
    grep . >"$work/forms"

# same NAME FOUND EXPECTED
same() {
    if diff "$3" "$2" >"$work/diff"; then ok "$1"
    else fail "$1" "expected (<), found (>): $(tr '\n' ' ' <"$work/diff")"; fi
}
{
    cut -d ' ' -f 1 "$work/table"
    grep -x -e QLinearConv -e QLinearMatMul "$work/quantized"
} | LC_ALL=C sort -u >"$work/ours"
[ "$(wc -l <"$work/ours")" -gt 150 ] || fail table "expected more than 150 operators"
same "operators of ai.onnx" "$work/listed" "$work/ours"
grep -v -x -e QLinearConv -e QLinearMatMul "$work/quantized" >"$work/ours"
{
    echo QGemm
    sed 's/^/QLinear/' "$work/forms"
} | LC_ALL=C sort >"$work/listed"
same "operators of com.microsoft" "$work/listed" "$work/ours"

"$python" - "$work/table" >"$work/since" <<'END'
import sys
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

first = {}
for schema in get_all_operator_schema():
    if schema.domain == "":
        first[schema.name] = min(first.get(schema.name, 99), schema.since_version)
with open(sys.argv[1], encoding="utf-8") as table:
    for name in (line.split()[0] for line in table):
        print(name, first.get(name, "none"))
END
same "first opsets" "$work/table" "$work/since"
exit $status
