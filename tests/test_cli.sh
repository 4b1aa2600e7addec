#!/bin/sh
# The tool as a user meets it: exit codes, where messages go, what the commands
# write. Bad models are in test_bad_input.sh.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start cli
make_models plain partly
cd "$work" || exit 1

# -- usage --
epctx --help; result "help" 0 "usage: epctx COMMAND"
epctx --version
result "version" 0 "epctx $(sed -n 's/^#define EPCTX_VERSION_STRING "\(.*\)"/\1/p' "$top/epctx.h")"
for command in compile info run copy dump; do
    epctx $command --help; result "help of $command" 0 "usage: epctx $command"
    epctx $command --nonsense; result "$command with an unknown option" 2 "--nonsense"
    epctx $command; result "$command without a file" 2 "usage: epctx $command"
    case $command in compile | info) continue ;; esac # take any number
    epctx $command a b c; result "$command with too many files" 2 "too many"
done
for command in compile info run copy dump ls lint check explain get diff scan dot; do
    epctx help $command; cp out want
    epctx $command -h; result "help and -h of $command" 0 "usage: epctx $command"
    same "help $command is $command -h" want out
done
epctx help; cp out want
epctx --help; same "help is --help" want out
epctx help frobnicate; result "help of an unknown command" 2 "frobnicate"
epctx help info lint; result "help of two commands" 2 "too many"
epctx lintt x; result "unknown command like another" 2 "did you mean 'lint'"
epctx list x; result "unknown command of the same meaning" 2 "did you mean 'ls'"
epctx hlep; result "unknown command like help" 2 "there is no command 'hlep'"
epctx --hepl; result "unknown option instead of a command" 2 "--hepl"
epctx info --jsno plain.onnx; result "unknown option like another" 2 "did you mean --json?"
epctx info --no-progress plain.onnx; result "--no-progress" 0 "small"
epctx info ""; result "empty path" 1 "an empty path"
epctx scan ""; result "empty path of scan" 1 "an empty path"
epctx dump .; result "folder instead of a model" 1 "is a folder"
epctx run --seed 3 --input-dir d plain.onnx; result "--seed and --input-dir" 2 "--input-dir"
epctx ls --json -0 plain.onnx; result "ls --json -0" 2 "-0"
epctx compile --chip SM8550 plain.onnx; result "--chip for the reference NPU" 2 "need --ep"
epctx check --profile foo plain.onnx
if [ $code -eq 2 ] && grep -q "^epctx: --profile: .*'foo'; the profiles are qnn " err; then
    echo "ok unknown profile"
else
    fail "unknown profile" "expected --profile and the names"
fi
"$epctx" >out 2>err; code=$?
if [ $code -eq 2 ] && [ ! -s out ] && grep -q usage err; then
    echo "ok no command"
else
    fail "no command" "exit code $code"
fi
epctx frobnicate; result "unknown command" 2 "frobnicate"
epctx run --seed; result "option without its value" 2 "--seed"
epctx run --seed many plain.onnx; result "seed that is no number" 2 "many"
epctx run --seed=1 --seed=2 plain.onnx; result "option given twice" 2 "given twice"
epctx run --repeat 0 plain.onnx; result "repeat out of range" 2 "--repeat"
epctx run --seed 18446744073709551616 plain.onnx
result "seed out of range" 2 "0..18446744073709551615"
epctx run --seed 18446744073709551615 plain.onnx; result "the greatest seed" 0
epctx copy --rebuild=yes plain.onnx x.onnx; result "switch with a value" 2 "--rebuild"

# -- copy --
epctx copy plain.onnx a.onnx; result "copy" 0
same "copy is the same" plain.onnx a.onnx
epctx copy a.onnx a.onnx; result "copy onto a file" 1 "-f replaces it"
epctx copy -f a.onnx a.onnx; result "copy -f onto itself" 0
epctx copy --overwrite backup a.onnx a.onnx; result "copy --overwrite backup" 0
same "copy --overwrite backup keeps the old one" a.onnx~ a.onnx
same "copy onto itself is the same" plain.onnx a.onnx
epctx copy --rebuild partly.onnx b.onnx; result "copy --rebuild" 0
same "copy --rebuild is the same" partly.onnx b.onnx
cp plain.onnx ./-dash.onnx
epctx copy -- -dash.onnx c.onnx; result "name with a dash" 0
epctx copy plain.onnx nowhere/x.onnx
result "copy into a missing folder" 1 "nowhere/x.onnx: its folder does not exist"
mkdir folder
epctx copy plain.onnx folder; result "copy onto a folder" 1 "folder"
rm -rf folder a.onnx a.onnx~ b.onnx c.onnx ./-dash.onnx

# -- info --
epctx info plain.onnx; result "info of an ordinary model" 0 "none, the model has no EPContext node"
epctx compile -f plain.onnx -o of_info.onnx
epctx info of_info_npu.bin; result "info of a binary" 0 "scratch memory: "
epctx info --json of_info_npu.bin; result "info of a binary as JSON" 0 '"scratch": '
"$python" -m json.tool out >/dev/null || fail "info of a binary as JSON" "this is no JSON"
json "kernels of a binary as JSON" 'j["kernels"] == ["CONV", "REDUCE"] and j["kernel_option"] ==
    "-DEPCTX_NPU_SELECT=EPCTX_NPU_OP(CONV) | EPCTX_NPU_OP(REDUCE)"'
select="'-DEPCTX_NPU_SELECT=EPCTX_NPU_OP(CONV) | EPCTX_NPU_OP(REDUCE)'"
epctx info of_info_npu.bin; result "kernels of a binary" 0 "kernels        $select"
epctx info of_info.onnx; result "kernels of a model" 0 "kernels            $select"
epctx compile --embed -f plain.onnx -o of_info_e.onnx
epctx info of_info_e.onnx; result "kernels of an embedded context" 0 "kernels            $select"
epctx info --json of_info_e.onnx
json "kernels of a model as JSON" 'j["partitions"][0]["binary"]["kernels"] == ["CONV", "REDUCE"]'
# Every kernel is called in EPCTX_NPU_OP as the tool makes it of the name that commands have.
sed -n '/define EPCTX_NPU_OP_LIST/,/^\/\* clang-format on/p' "$top/epctx_npu.h" |
    sed -n 's/^    X(\([A-Z0-9_]*\), "\(.*\)", .*/\1 \2/p' >kernels
sed 's/.* //; s/\([a-z]\)\([A-Z]\)/\1_\2/g' kernels | tr a-z A-Z >made
if [ "$(wc -l <kernels)" -gt 25 ] && [ "$(cut -d ' ' -f 1 kernels)" = "$(cat made)" ]; then
    ok "names of all kernels"
else
    fail "names of all kernels" "$(wc -l <kernels) found, $(cut -d ' ' -f 1 kernels | diff - made)"
fi
head -c 200 of_info_npu.bin >cut_npu.bin
epctx info cut_npu.bin; result "info of a cut binary" 1 "cut_npu.bin: context binary: "
rm -f of_info* cut_npu.bin
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
epctx compile --overwrite replace plain.onnx; result "compile --overwrite replace" 0
epctx compile --overwrite fail plain.onnx; result "compile --overwrite fail" 1 "-f replaces it"
epctx compile --overwrite backup plain.onnx
result "compile keeps no old files" 2 "must be fail or replace"
epctx compile -f --overwrite replace plain.onnx
result "compile -f --overwrite" 2 "cannot be combined"
epctx compile --overwrite fail -C "epctx.overwrite|1" plain.onnx
result "compile --overwrite against -C" 2 "contradicts -C"
epctx compile -n --output=planned.onnx plain.onnx; result "compile -n" 0 "nothing was compiled"
[ -e planned.onnx ] && fail "compile -n" "wrote a model"
mkdir other
epctx copy plain_ctx.onnx other/x.onnx
result "copy without the binary" 0 \
    "note: other/x.onnx needs 'plain_npu.bin', which is not in its folder"
epctx set plain_ctx.onnx -o other/y.onnx --json metadata:k=v
result "set without the binary" 0 "\"other/y.onnx needs 'plain_npu.bin'"
epctx check --fresh --source plain.onnx other/x.onnx
said "a model without its binary is stale" 1 "'plain_npu.bin' does not exist"
cp plain_npu.bin other
epctx copy -f plain_ctx.onnx other/x.onnx; result "copy beside the binary" 0
[ -s out ] && fail "copy beside the binary" "it says something"
epctx check --fresh --source plain.onnx other/x.onnx; said "and is fresh with it" 0 ": fresh"
rm -r other
epctx check plain_ctx.onnx; said "check for the tool's own NPU" 0 "EP_SUPPORTED_OPTIMAL: "
epctx check --ort-code plain_ctx.onnx
said "check with ONNX Runtime's number" 1 "EP_SUPPORTED_OPTIMAL: "
epctx set plain_ctx.onnx -o qnn.onnx metadata:ep_compatibility_info.QNN=x
epctx check --ep QNN qnn.onnx; said "check against nothing" 4 "EP_NOT_APPLICABLE: not compared: "
epctx check qnn.onnx; said "check of several entries" 4 "select one with --ep"
rm qnn.onnx
epctx compile plain_ctx.onnx; result "compile of a compiled model" 1 "already"
epctx compile plain.onnx -o embedded.onnx --embed; result "compile --embed" 0 "embedded, "
[ -e embedded_npu.bin ] && fail "compile --embed" "wrote a binary"
epctx compile plain.onnx -o=x.onnx; result "short options take no =" 2
epctx compile plain.onnx --prefix=left_ -o prefix_ctx.onnx; result "compile --prefix" 0
epctx info prefix_ctx.onnx; result "prefix in the node's name" 0 "'left_"
epctx compile plain.onnx -f --arch pdp-11
result "unknown architecture" 1 "'pdp-11'; available: generic"
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
epctx info alone/plain_ctx.onnx
result "info without the binary" 1 "required item is missing or unusable"
grep -q '^warning: .*plain_npu.bin' out || fail "info without the binary" "no warning line"

# -- run --
# Numbers keep what their type can hold.
"$python" -c 'import struct, sys
sys.path.insert(0, sys.argv[1])
from make_model import node, value
from onnx_schema import ModelProto
model = ModelProto(ir_version=9)
model.opset_import.add(domain="", version=17)
model.graph.name = "edges"
edges = ((6, "i", (2147483647, -2147483648)), (7, "q", (2 ** 53 + 1, 2 ** 53)),
         (13, "Q", (2 ** 64 - 1, 0)), (11, "d", (0.1234567890123456, 1.0)))
for k, (elem_type, letter, numbers) in enumerate(edges):
    value(model.graph.input, f"x{k}", elem_type, (2,))
    value(model.graph.output, f"y{k}", elem_type, (2,))
    node(model.graph, "Identity", f"n{k}", (f"x{k}",), (f"y{k}",))
    open(f"input_{k}.bin", "wb").write(struct.pack("<2" + letter, *numbers))
open("edges.onnx", "wb").write(model.SerializeToString())' "$top/tests/judge"
epctx run --json edges.onnx --input-dir .; said "run --json of edge values" 0
json "run --json keeps every digit" '[(o["min"], o["max"], o["first"]) for o in j["outputs"]] ==
    [(min(v), max(v), list(v)) for v in ((2147483647, -2147483648), (2 ** 53 + 1, 2 ** 53),
                                         (2 ** 64 - 1, 0), (0.1234567890123456, 1.0))]'
rm -f edges.onnx input_?.bin
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
grep -qF "1 node needs an execution provider that this tool lacks (ONNX Runtime's CPU EP)" err ||
    fail "run with a node left over" "the EP is not named"
epctx set plain_ctx.onnx -o other_ep.onnx source=QNNExecutionProvider
long=$(printf '%064d' 0)
epctx rename --nodes partly.onnx strange "$long" -o cut.onnx
epctx compile cut.onnx -o cut_ctx.onnx
epctx run other_ep.onnx; result "run of another EP's model" 1 "1 node needs an execution \
provider that this tool lacks (QNNExecutionProvider)"
epctx run cut_ctx.onnx; result "a name that is cut" 1 "'${long%????}...' (Strange)"
rm -f other_ep.onnx cut*
epctx run alone/plain_ctx.onnx; result "run without the binary" 1 "plain_npu.bin"
epctx dump plain_ctx.onnx; result "dump" 0 "EPContext"

# -- one of a thing --
epctx info plain_ctx.onnx; result "one node" 0 "1 EPContext node, 0 others"
epctx info partly_ctx.onnx; result "two nodes" 0 "2 EPContext nodes, 1 other,"
epctx scan plain_ctx.onnx; result "one node scanned" 0 "1 node, 1 of them EPContext"
epctx ls plain_ctx.onnx; result "one user" 0 "1 time, first in"
epctx lint --no-files plain_ctx.onnx; result "no finding" 0 "0 errors, 0 warnings,"
epctx get plain_ctx.onnx source -o -; result "get to standard output" 0 "EpctxNpuExecutionProvider"
cp plain_ctx.onnx kept.onnx
ln -s plain_ctx.onnx alias.onnx
for name in plain_ctx.onnx alias.onnx; do
    epctx get plain_ctx.onnx context -f -o $name
    result "get over its model, $name" 1 "must not overwrite it"
    epctx view kept.onnx plain_ctx.onnx -f -o $name
    result "view over its model, $name" 1 "must not overwrite it"
    same "the model stays, $name" plain_ctx.onnx kept.onnx
done
rm kept.onnx alias.onnx
epctx copy plain.onnx -
same "copy to standard output" plain.onnx out
if [ -e - ]; then fail "no file is called -" "there is one"; rm -f -- -; fi
epctx run plain_ctx.onnx --source plain.onnx
result "--source of a model with weights" 1 "not weightless"

# -- rules explained, by id and by name --
epctx explain E012; result "a rule explained" 0 "E012 secondary-without-primary"
epctx explain secondary-without-primary; result "by its name" 0 "  cure:  "
epctx explain --json E012; result "to programs" 0 '{"text": ["E012", "secondary-without-primary"], '
epctx explain E999; result "a rule that there is not" 1 "nothing is known"
cp plain_ctx.onnx unusable_ctx.onnx
epctx set --in-place unusable_ctx.onnx ep_cache_context=empty.bin
: >empty.bin
epctx ls unusable_ctx.onnx; result "ls of an empty file" 1 "UNUSABLE  context binary empty.bin"
rm empty.bin
epctx ls unusable_ctx.onnx; result "ls of no file" 1 "MISSING  context binary empty.bin"
rm unusable_ctx.onnx

# -- what compile says of what it leaves, and of what it needs --
mkdir left
cp plain.onnx partly.onnx left
cd left || exit 1
"$python" "$top/tests/judge/make_model.py" dynamic dynamic.onnx
epctx compile dynamic.onnx -o dynamic_ctx.onnx
result "an open dimension" 1 "without a fixed shape: 'x' [N,1,6,6]; NPUs need fixed shapes: \
set them with --dim 'N=N'"
"$python" -B - "$top/tests/judge" <<'EOF' || exit 1
import sys
sys.path.insert(0, sys.argv[1])
from make_model import FLOAT, ModelProto, node, value
for name, dims in (("many", [None] * 8), ("negative", [-1, 4])):
    model = ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=13)
    model.graph.name = name
    info = value(model.graph.input, "x", FLOAT, [])
    for dim in dims:
        place = info.type.tensor_type.shape.dim.add()
        if dim is not None:
            place.dim_value = dim
    value(model.graph.output, "y", FLOAT, [1])
    node(model.graph, "Relu", "relu", ["x"], ["y"])
    open(name + ".onnx", "wb").write(model.SerializeToString())
EOF
epctx compile negative.onnx -o x.onnx
result "a negative dimension" 1 "without a fixed shape: 'x' [-1,4]; "
epctx compile many.onnx -o x.onnx
result "as many open dimensions as are shown" 1 "'x[0]=N,x[1]=N,x[2]=N,x[3]=N,x[4]=N,x[5]=N'"
rm many.onnx negative.onnx
epctx compile dynamic.onnx -o dynamic_ctx.onnx --dim K=2
result "a dimension that is not there" 1 "no dimension has the name 'K'"
for bad in N N= =2 N=0 N=x; do
    epctx compile dynamic.onnx -o dynamic_ctx.onnx --dim "$bad"
    result "--dim $bad" 2 "--dim"
done
epctx compile dynamic.onnx -o dynamic_ctx.onnx --dim N=2 --dim N=3
result "a name with two numbers" 2 "--dim: 'N' is 2 and 3"
epctx compile dynamic.onnx -o dynamic_ctx.onnx -n --dim N=2,N=02 --dim N=2
result "a name with one number, three times" 0 "dry run"
epctx compile dynamic.onnx -o dynamic_ctx.onnx --require-all --dim N=2
result "a number for it" 0 "0 left to the CPU"
epctx info dynamic_ctx.onnx
result "the result has it" 0 "input          'x' float32[2,1,6,6]"
epctx run dynamic_ctx.onnx
result "and runs" 0 "float32[2,"
epctx compile dynamic.onnx -o dynamic_ctx.onnx -f --dim 'x[0]=3'
result "by its place" 0 "0 left to the CPU"
epctx compile dynamic.onnx plain.onnx -f --dim N=2,M=2
result "in a group, one that no model has" 1 "no model has a dimension 'M'"
epctx compile dynamic.onnx plain.onnx -f --dim N=2
result "in a group" 0 "files          3"
epctx compile -v -f partly.onnx -o partly_ctx.onnx
if [ "$code" -eq 0 ] &&
    grep -q "^left           1 node, e.g. Strange 'strange': operator Strange of domain test" out
then
    echo "ok -v says why a node stays"
else fail "-v says why a node stays" "no line"; fi
epctx compile -f partly.onnx -o partly_ctx.onnx
lacks "without -v it is brief" 0 '^left'
epctx compile --json -f partly.onnx -o partly_ctx.onnx
if "$python" -c 'import json, sys
left = json.load(open("out"))["left"]
assert [l["nodes"] for l in left] == [1] and left[0]["example"] == "strange", left' 2>err; then
    echo "ok --json says why a node stays"
else fail "--json says why a node stays" "other content"; fi
mkdir elsewhere
epctx compile --weightless plain.onnx -o elsewhere/w_ctx.onnx
result "a source that is not there" 0 "elsewhere/w_ctx.onnx reads its weights from \
'plain.onnx', which is not in its folder"
epctx compile --weightless plain.onnx -o w_ctx.onnx
lacks "a source that is there" 0 '^note'
cd .. && rm -rf left
epctx get --node wrong partly_ctx.onnx source
result "get of a wrong node" 1 "no EPContext node 'wrong'"
grep -q "^  #1 '.*_0'$" err && grep -q "^  #2 '.*_1'$" err || fail "get of a wrong node" "no names"
epctx get plain_ctx.onnx sauce; result "get of a wrong attribute" 1 "no attribute 'sauce'"
grep -q '^  source$' err || fail "get of a wrong attribute" "no names"

# -- diff: what is the same, whatever it is stored as --
"$python" "$top/tests/judge/values.py" . || fail "values" "the models could not be made"
for other in typed external raw; do
    epctx diff raw.onnx $other.onnx; result "diff of raw and $other" 0
    [ -s out ] && fail "diff of raw and $other" "there are differences"
done
epctx diff raw.onnx other.onnx; [ $code -eq 1 ] || fail "diff of other values" "exit code $code"
# Every tensor is another one: 26 initializers, a sparse one, and in 4 attributes, 2 bodies, a
# function and a training graph.
if [ "$(grep -c '^~ ' out)" -eq 35 ] && [ "$(wc -l <out)" -eq 35 ]; then
    echo "ok diff of other values"
else
    fail "diff of other values" "expected 35 changes, found $(wc -l <out)"
fi
grep -qF "initializer 'of type 22': int4[32], bytes " out || fail "diff of other values" "int4"
mv tensors.bin away.bin
epctx diff raw.onnx external.onnx
[ $code -eq 1 ] && grep -q "unreadable: .*tensors.bin" out ||
    fail "diff without the data file" "expected that it says so"
missing=$(grep -c "unreadable: " out)
head -c 1 away.bin >tensors.bin
epctx diff raw.onnx external.onnx
found=$(grep -c "unreadable: .* the file has" out) # behind its offset, or fewer bytes than that
if [ "$missing" -gt 2 ] && [ "$found" -eq "$missing" ]; then ok "diff with a data file that was cut"
else
    fail "diff with a data file that was cut" "expected $missing unreadable tensors, found $found"
fi
mv away.bin tensors.bin

# -- diff: what has another name --
epctx prefix plain_ctx.onnx pre_ -o renamed.onnx -f; result "prefix before diff" 0
epctx diff plain_ctx.onnx renamed.onnx
if [ $code -eq 1 ] && [ "$(wc -l <out)" -eq 1 ] && grep -q "^> node '\(.*\)' -> node 'pre_\1'$" out
then echo "ok diff of a renamed context"
else fail "diff of a renamed context" "expected one line"; fi
epctx diff --json plain_ctx.onnx renamed.onnx
grep -q '"change": "renamed", "what": "node .*"old": "node .*"new": "node ' out ||
    fail "diff --json of a renamed context" "expected one change"
epctx rename plain.onnx c c2 w w2 -o values.onnx -f; result "rename before diff" 0
epctx rename --nodes values.onnx relu relu2 -o renamed.onnx -f
result "rename --nodes before diff" 0
epctx diff plain.onnx renamed.onnx; cp out found
cat >want <<'END'
> node 'relu' -> node 'relu2'
> initializer 'w' -> initializer 'w2'
~ node 'conv': input 1: w -> w2
~ node 'conv': output 0: c -> c2
~ node 'relu2': input 0: c -> c2
END
same "diff of renamed values, initializers and nodes" want found
"$python" - "$top/tests/judge" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import make_model
for name, extra in (("old", ""), ("new", "_b")):
    model = make_model.make("plain")
    branch = model.graph.node.add(op_type="If", name="if" + extra, output=["z"]).attribute.add(
        name="then_branch", type=5).g
    make_model.node(branch, "Relu", "inside" + extra, ["r"], ["q"])
    make_model.node(branch, "Sigmoid", "", ["q"], ["s" + extra])
    for i in range(3): # all alike
        make_model.node(model.graph, "Neg", "alike%d%s" % (i, extra), ["r"], ["n%d%s" % (i, extra)])
    open(name + ".onnx", "wb").write(model.SerializeToString())
END
epctx diff old.onnx new.onnx; cp out found
cat >want <<'END'
> node 'if' -> node 'if_b'
> node 'if_b': then_branch > node 'inside' -> node 'if_b': then_branch > node 'inside_b'
> node 'if_b': then_branch > node 's' -> node 'if_b': then_branch > node 's_b'
> node 'alike0' -> node 'alike0_b'
> node 'alike1' -> node 'alike1_b'
> node 'alike2' -> node 'alike2_b'
~ node 'if_b': then_branch > node 's_b': output 0: s -> s_b
~ node 'alike0_b': output 0: n0 -> n0_b
~ node 'alike1_b': output 0: n1 -> n1_b
~ node 'alike2_b': output 0: n2 -> n2_b
END
same "diff of renamed nodes in a body" want found

# -- diff: what a partition stands for --
"$python" - "$top/tests/judge" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import make_model
from onnx_schema import ModelProto
def save(model, name):
    open(name + ".onnx", "wb").write(model.SerializeToString())
def body_of(model):
    return model.graph.node.add(op_type="If", name="if", input=["go"], output=["z"]).attribute.add(
        name="then_branch", type=5).g
def context(graph, name, inputs, outputs):
    node = make_model.node(graph, "EPContext", name, inputs, outputs)
    node.domain = "com.microsoft"
    node.attribute.add(name="ep_cache_context", type=3, s=b"ctx.bin")
old, now = make_model.make("plain"), make_model.make("plain")
del old.graph.node[:], now.graph.node[:]
# x -> n0 .. n9 -> m -> y; q reads the same weight as n0; two in a body, one of them captures c5
for i in range(10):
    make_model.node(old.graph, "Add", "n%d" % i, ["x" if i == 0 else "c%d" % (i - 1), "w%d" % i],
                    ["c%d" % i])
    make_model.value(old.graph.value_info, "c%d" % i, 1, [1])
    make_model.weights(old.graph, "w%d" % i, 1, [1])
make_model.value(old.graph.value_info, "stale", 1, [1])
for graph in (old.graph, now.graph):
    make_model.node(graph, "Neg", "m", ["c9"], ["y"])
    make_model.node(graph, "Neg", "q", ["w0"], ["q"])
make_model.weights(now.graph, "w0", 1, [1])
context(now.graph, "_0", ["x"], ["c5", "c9"])
make_model.value(now.graph.value_info, "c9", 1, [1])
inside = body_of(old)
make_model.node(inside, "Abs", "", ["c5"], ["s"])
make_model.node(inside, "Exp", "e", ["s"], ["t"])
context(body_of(now), "_1", ["c5"], ["t"])
save(old, "ordinary")
save(now, "compiled")
# What is no partition: a context that was one before, one whose outputs another node makes.
other = ModelProto()
other.CopyFrom(now)
other.graph.node[2].attribute[0].s = b"other.bin"
save(other, "other_context")
END
epctx diff ordinary.onnx compiled.onnx; cp out found
cat >want <<'END'
> partition _0 replaces n0, n1, n2, n3, n4, n5, ... (10 nodes); with them went 9 initializers and \
the types of 9 values
> partition _1 replaces s, e
- types of 1 value that the old model does not have
END
sed -i -e ':a' -e '/\\$/N; s/\\\n//; ta' want
same "diff of a compiled model: once a partition" want found
epctx diff --json ordinary.onnx compiled.onnx
if "$python" -c 'import json
one, two, left = json.load(open("out"))["changes"][:3]
assert one["change"] == two["change"] == "replaced" and one["what"] == "node \x27_0\x27", one
assert one["nodes"] == ["n%d" % i for i in range(10)], one
assert (one["initializers"], one["values"], left["values"]) == (9, 9, 1), (one, left)
assert two["nodes"] == ["s", "e"] and "then_branch > node" in two["what"], two' 2>err
then ok "diff --json of a compiled model"
else fail "diff --json of a compiled model" "$(tail -n 1 err)"; fi
epctx diff --all ordinary.onnx compiled.onnx
if grep -q "^> partition _0 replaces n0, .*, n8, n9;" out &&
    grep -q "^- node 'n9': input 0: c8" out && grep -q "^- initializer 'w3'" out &&
    grep -q "^- type of stale: " out && grep -q "^+ node '_0': ep_cache_context" out
then ok "diff --all lists what a partition replaces"
else fail "diff --all lists what a partition replaces" "$(head -n 5 out)"; fi
epctx diff compiled.onnx other_context.onnx
if [ $code -eq 1 ] && grep -q '^~ .*: "ctx.bin" -> "other.bin"' out && [ "$(wc -l <out)" -eq 1 ]
then ok "an EPContext node that was one before"
else fail "an EPContext node that was one before" "$(head -n 3 out)"; fi

# -- messages are written in whole lines, also where names are put into them piece by piece --
if strace -e trace=write -o calls "$plain" get --node wrong plain_ctx.onnx source >out 2>err
then
    fail "lines on standard error" "get of a wrong node succeeded"
elif [ ! -s calls ]; then
    echo "skip lines on standard error: strace cannot trace here"
elif [ "$(grep -c 'write(2, ' calls)" -gt "$(wc -l <err)" ]; then
    fail "lines on standard error" "$(grep -c 'write(2, ' calls) writes, $(wc -l <err) lines"
else
    ok "lines on standard error"
fi

# -- several files, and folders --
mkdir -p several/below
epctx compile plain.onnx -o several/a_ctx.onnx; result "several: one" 0
epctx compile plain.onnx -o several/below/b_ctx.onnx; result "several: another" 0
cp plain.onnx several/
epctx info several; result "info of a folder" 0 "several/below/b_ctx.onnx"
epctx info --json several
if "$python" -c 'import json
print([f.get("file") or f["binary"] for f in json.load(open("out"))["files"]])' >found 2>err &&
    [ "$(cat found)" = "['several/a_ctx.onnx', 'several/a_npu.bin', 'several/below/b_ctx.onnx', \
'several/below/b_npu.bin', 'several/plain.onnx']" ]; then ok "info --json of a folder"
else fail "info --json of a folder" "$(cat found err)"; fi
epctx check several; result "check of a folder" 0 "several/below/b_ctx.onnx:"
grep -q plain.onnx out && fail "check of a folder" "an ordinary model"
epctx check several plain.onnx
if [ $code -eq 4 ]; then ok "check: the highest code"; else fail "check: the highest code" $code; fi
epctx check --json several/a_ctx.onnx several/below/b_ctx.onnx
if "$python" -c 'import json
files = json.load(open("out"))["files"]
assert [f["meaning"] for f in files] == ["EP_SUPPORTED_OPTIMAL"] * 2' 2>err
then ok "check --json of several"; else fail "check --json of several" "$(tail -n 1 err)"; fi
epctx check --ort-code several; result "--ort-code of several" 2 "the code of one file"
for command in embed extract stamp; do
    epctx $command several -o s.onnx; result "$command several -o" 2 "--in-place"
    epctx $command several; result "$command several without an output" 2 "--in-place"
    epctx $command --in-place several; result "$command a folder" 0 "several/below/b_ctx.onnx:"
    epctx $command -n several plain.onnx
    result "$command: one named without a context" 1 "plain.onnx: there is no EPContext node"
done
rm several/below/b_npu.bin
epctx embed --json --in-place several
if "$python" -c 'import json
answer = json.load(open("out"))
assert [m["file"] for m in answer["models"]] == ["several/a_ctx.onnx"], answer
assert len(answer["failures"]) == 1 and "b_npu.bin" in answer["failures"][0]["message"]' 2>err &&
    [ $code -eq 1 ]; then ok "one that fails does not hold up the others"
else fail "one that fails does not hold up the others" "exit code $code: $(tail -n 1 err)"; fi
mkdir none
for command in info check; do
    epctx $command none; [ $code -ne 0 ] && grep -q "in this folder" err &&
        ok "$command of an empty folder" || fail "$command of an empty folder" "exit code $code"
done
rm -r several none

# -- what a first user met --
head -c 200 plain.onnx >cut.onnx
epctx scan cut.onnx
result "scan of a truncated file" 1 "cut.onnx: not an ONNX protobuf: byte 18 of 200: \
a field is longer than what is left: is it cut off?"
epctx info cut.onnx; result "info of a truncated file" 1 "is it cut off?"
"$epctx" scan - <cut.onnx >out 2>err; code=$?
result "scan of a truncated stream" 1 "is it cut off?"
epctx check --ep zzz plain_ctx.onnx
said "check of an unknown EP" 4 "no compatibility info for 'zzz'"
grep -q "QNNExecutionProvider" out || fail "check of an unknown EP" "the known ones are not listed"
epctx check --ep QNNExecutionProvider plain_ctx.onnx
said "check of an EP that the model does not name" 4 "no compatibility info for 'QNNExec"
[ "$(wc -l <out)" -eq 1 ] || fail "check of an EP that the model does not name" "a list"
epctx check --fresh --ep zzz plain_ctx.onnx
[ $code -eq 4 ] && grep -q "no build stamp for 'zzz'" out ||
    fail "check --fresh of an unknown EP" "text"
epctx set plain_ctx.onnx foo:ints=1,-2 -o set.onnx -f; result "set of a list" 0 "foo = [1,-2] (new)"
epctx set set.onnx foo:strings=a,b -o set2.onnx -f
result "set of texts" 0 "foo = a value of type STRINGS (was [1,-2])"
epctx set plain_ctx.onnx foo:ints=$(seq -s , 100) -o set.onnx -f
result "set of a long list" 0 ",...] (new)"
epctx compile plain.onnx missing.onnx
result "one of two models is missing" 1 "missing.onnx: cannot open"
[ -s out ] && fail "one of two models is missing" "it says something on standard output"
epctx compile plain.onnx -f -C "foo|bar"
result "compile -C with an unknown key" 2 "'foo' is not an option"
grep -q '^  ep.context_embed_mode$' err || fail "compile -C with an unknown key" "no list of keys"
epctx compile plain.onnx -f -C "ep.context_embed_mode|1" -C "epctx.overwrite|1"
result "compile with two -C" 2 "given twice (perhaps under two names): -C"
epctx compile plain.onnx -f --embed -C "ep.context_embed_mode|0"
result "compile with a switch that -C takes back" 2 "contradicts -C ep.context_embed_mode"
epctx compile plain.onnx -f -o a_ctx.onnx -C "ep.context_file_path|b_ctx.onnx"
result "compile with two output paths" 2 "contradicts -C ep.context_file_path"
epctx compile plain.onnx -f -C "ep.context_embed_mode|0	 session.x|"
result "compile -C with another unknown key" 2 "'session.x' is not an option"
epctx set plain_ctx.onnx partition_name=other -o set.onnx -f; result "another partition" 0
epctx run set.onnx
result "run of a graph that the binary has not" 1 "expected graph 'other', found 'EpctxNpu"
if (cd "$top" && EPCTX_CACHE=$work/nothing "$python" tests/judge/make_model.py plain x.onnx) \
    >out 2>err
then fail "judge without its schema" "it works"
elif grep -q Traceback err; then fail "judge without its schema" "a traceback"
elif grep -q "tests/deps.sh test" err; then echo "ok judge without its schema"
else fail "judge without its schema" "no cure"; fi

# -- help: what a terminal of 80 columns shows, and an example to begin with --
listed=$("$plain" help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
[ "$(echo "$listed" | wc -l)" -gt 30 ] || fail "help" "expected all commands, found: $listed"
for command in $listed; do
    epctx help "$command"
    if awk 'length > 80' out | grep -q .; then
        fail "help $command" "a line is longer than 80: $(awk 'length > 80' out | head -n 1)"
    elif ! grep -q '^Examples*: epctx ' out; then fail "help $command" "there is no example"
    else ok "help $command"; fi
done

# -- profiles: the tables --
epctx profiles; result "profiles" 0 "onnxruntime_providers_openvino_plugin.dll"
if awk 'length > 80' out | grep -q .; then fail "profiles in 80 columns" "a line is longer"
else ok "profiles in 80 columns"; fi
epctx profiles openvino; result "one profile" 0 "NPU_PLATFORM"
epctx profiles nobody; result "no such profile" 2 "nobody"
epctx profiles --errors --chips; result "one table at a time" 2 "exclude each other"
epctx profiles --chips; result "chips" 0 "   43  v73   8 MiB  SM8550"
for table in "" --errors --chips; do
    epctx profiles $table --json
    if "$python" -m json.tool <out >/dev/null 2>err; then ok "profiles $table --json"
    else fail "profiles $table --json" "no JSON"; fi
done
epctx explain 77; result "a number that is none of QNN's" 1 "nothing is known"

# -- explain: what users meet, and a word of the cause or the cure --
explains() {
    epctx explain "$1"; result "explain: $1" 0 "$2"
}
while IFS='|' read -r message word; do
    explains "$message" "$word"
done <<'END'
Device 'NPU' failed: ZE_RESULT_ERROR_UNSUPPORTED_VERSION, code 0x78000002|NPU's driver
Version tag does not match. Current Version: 240, Serialized Engine Version: 239|TensorRT
invalid unordered_map<K, T> key|cache_dir
Unsupported HTP arch 73 from device custom config|profiles --chips
QNN: Failed to create context. Error code: 0x3ea|out of memory
[E:onnxruntime] QNN error 14001|ADSP_LIBRARY_PATH
5005|newer HTP architecture
5999|a context
Could not find an implementation for EPContext(1) node with name 'EPContextNode0'|27622
Failed to find kernel for com.microsoft.EPContext(1) (node:'n' ep:''). Kernel not found|append that EP
Fatal error: com.microsoft:EPContext(-1) is not a registered function/op|contrib operators
EPContext node generated by 'OpenVINOExecutionProvider' is not compatible with any execution provider added to the session.|append that EP
Error No Op registered for EPContext with domain_version of 13|E003
Type Error: Type 'tensor(string)' of input parameter (x) of operator (EPContext) in node (n) is invalid.|E026
GetFileSizeIfValid Context binary does not exist:|31977
Failed to load from EpContext model. LoadCachedQnnContextFromBuffer Failed to create context from binary. Error code: 5005|newer QNN SDK
Could not create context from binary for context index = 0 : err 5000|HTP architecture
TensorRT EP could not deserialize engine from binary data|TensorRT version
External data path escapes model directory.|leaves its folder
Unable to compile any nodes. Check that the session EPs support compilation|Append the EP first
Failed to generate EP context model since the file 'm_ctx.onnx' exists already.|Compile API
Encountered an invalid node while compiling a model. Please ensure the input model is not already compiled.|original model
Invalid model. Node input 'w' is not output of any previous nodes.|32131
[ShapeInferenceError] type inference failed EPContext|E027
location: */_ORT_MEM_ADDR_/*|28158
Cannot serialize ONNX ModelProto larger than 2GB|embed_mode 0
Model data size exceeds maximum supported size (2GB).|Load it from its file
Inference session with a model loaded from bytes was configured with EPContext model generation enabled but without a valid location|ep.context_file_path
Deserialize tensor onnx::MatMul_1 failed.GetFileLength for ./model.onnx_data failed:Invalid fd|E034
The requested API version [29] is not available, only API versions [1, 22] are supported in this build.|newer ORT
LoadLibrary failed with error 126 "" when trying to load "onnxruntime_providers_x.dll"|not found (126)
OrtErrorCode 13 MODEL_REQUIRES_COMPILATION|disable_model_compile
END

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
head, tail = (ModelProto.FromString(open(f, "rb").read())
              for f in ("head_ctx.onnx", "tail_ctx.onnx"))
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
# The same as one character of two bytes (CSI), as a bare byte, and what turns the direction.
printf '\010\010\022\012a\302\233\2332J\342\200\256b' >hostile.onnx
epctx info hostile.onnx
result "control characters of 8 bits" 0 'a\xc2\x9b\x9b2J\xe2\x80\xaeb'
epctx info --json hostile.onnx
result "control characters in JSON" 0 'a\u009b\ufffd2J\u202eb'
# What is printable is shown as it is: paths of Windows, other scripts.
printf '\010\010\022\017C:\134builds \303\251\346\274\242' >hostile.onnx
epctx info hostile.onnx
result "printable characters" 0 "$(printf 'C:\134builds \303\251\346\274\242')"
# So are arguments, which file names of others get into, and names of nodes in messages of the tool.
odd=$(printf 'q\302\2331m\342\200\256\033[2J\377')
for words in "$odd" "help $odd" "info --$odd x" "get plain.onnx metadata:$odd" \
    "lint --profile $odd x" \
    "rename plain.onnx -o x.onnx $odd a" "set plain.onnx -o x.onnx $odd=1" \
    "compile -C $odd x"; do
    epctx $words
    if LC_ALL=C grep -q "$(printf '\033\|\302\233\|\342\200\256\|\377')" err; then
        fail "hostile arguments" "epctx $(echo "$words" | head -c 12) prints control characters"
    fi
done
"$python" - "$top/tests/judge" <<'END' || exit 1
import sys
sys.path.insert(0, sys.argv[1])
from ort_verdicts import A_STRING, compiled
model = compiled()
for node in [node for node in model.graph.node if node.op_type == "EPContext"][1:]:
    model.graph.node.remove(node)
for node in model.graph.node:
    if node.op_type == "EPContext":
        node.name = "n\u009b1m\u202e\x1b[2J"
with open("hostile_node.onnx", "wb") as out:
    out.write(model.SerializeToString())
END
epctx set hostile_node.onnx -o x.onnx colour=1
result "hostile name of a node in a message" 2 'n\xc2\x9b1m\xe2\x80\xae\x1b[2J'

# -- what the tool says of a model is true --
"$python" - "$top/tests/judge" <<'END' || exit 1
import os
import sys
sys.path.insert(0, sys.argv[1])
from ort_verdicts import A_INT, A_STRING, bodies, compiled, simple, value

def save(model, name):
    with open(name, "wb") as out:
        out.write(model.SerializeToString())

def attr(node, name):
    return next(a for a in node.attribute if a.name == name)

def part(node, name):
    node.op_type, node.domain, node.name = "EPContext", "com.microsoft", name
    for key, number, text in (("main_context", 1, b""), ("embed_mode", 1, b""),
                              ("ep_cache_context", None, b"x"), ("source", None, b"SomeEP")):
        node.attribute.add(name=key, type=A_STRING if number is None else A_INT, s=text,
                           i=number or 0)

m = bodies()
m.opset_import.add(domain="com.microsoft", version=1)
part(m.graph.node[1].attribute[0].g.node[0], "inside")
save(m, "body_ctx.onnx")
m = compiled()
for node in m.graph.node[1:3]:
    node.name = "twin"
attr(m.graph.node[1], "partition_name").s = b"first"
attr(m.graph.node[2], "partition_name").s = b"second"
m.graph.node[1].attribute.add(name="DeviceClass", type=A_STRING, s=b"npu")
m.metadata_props.add(key="author", value="somebody")
save(m, "twins_ctx.onnx")
m = compiled()
node = m.graph.node[1]
node.attribute.remove(attr(node, "ep_cache_context"))
attr(node, "source").s = b"QAIRTExport"
node.attribute.add(name="ep_context_type", type=A_STRING, s=b"dlc")
node.attribute.add(name="ep_dlc_context", type=A_STRING, s=b"model.dlc")
save(m, "dlc_ctx.onnx")
m = simple()
m.graph.input[0].type.tensor_type.ClearField("shape")
del m.graph.value_info[:]
save(m, "shapeless.onnx")
m = simple()
m.graph.input[0].name = m.graph.node[0].input[0] = m.graph.node[3].input[1] = "x,1"
value(m.graph.input, "w")
save(m, "commas.onnx")
m = compiled()
for node in m.graph.node[1:3]:
    attr(node, "embed_mode").i = 0
    attr(node, "ep_cache_context").s = b"deep/er/x.bin"
m.graph.node[2].name = "other"
os.makedirs("from/deep/er", exist_ok=True)
save(m, "from/a.onnx")
m = simple()
m.opset_import[0].version = 17
save(m, "from/b.onnx")
for path in ("model.dlc", "from/deep/er/x.bin"):
    with open(path, "wb") as out:
        out.write(b"bytes")
END
epctx info body_ctx.onnx; result "info of a context in a body" 0 "'inside' in 'then_branch'"
grep -q "no EPContext node" out && fail "info of a context in a body" "and none"
grep -q "ordinary nodes in bodies" out || fail "info of a context in a body" "no bodies"
epctx info twins_ctx.onnx; result "info names extra attributes" 0 "DeviceClass = 'npu'"
grep -q "author = 'somebody'" out || fail "info of metadata" "no author"
grep -q "inputs  *'a'" out || fail "info of a node's values" "no input 'a'"
epctx get --node twin twins_ctx.onnx partition_name; result "equal names" 1 "--node '#1'"
epctx get --node '#2' twins_ctx.onnx partition_name; result "a node by number" 0 "second"
epctx set --node '#1' twins_ctx.onnx notes=x -o twin_set.onnx; result "set by number" 0 "notes"
epctx get --node '#1' twin_set.onnx notes; result "what was set by number" 0 "x"
epctx get --node '#3' twins_ctx.onnx notes; result "a number too large" 1 "no EPContext node '#3'"
epctx info dlc_ctx.onnx; result "info of a DLC" 0 "in the DLC 'model.dlc'"
epctx dot body_ctx.onnx; result "dot of bodies" 0 "style=dashed lhead=cluster_"
awk '/subgraph/ { inside = 1 } inside && /->/ { exit 1 } /^  }/ { inside = 0 }' out ||
    fail "dot of bodies" "a line stands inside of a box"
# -- one way to name an EP --
for name in qnn QNN QNNExecutionProvider qnnexecutionprovider; do
    epctx lint --profile $name plain.onnx
    if [ $code -eq 1 ] && grep -q E018 out; then echo "ok lint --profile $name"
    else fail "lint --profile $name" "no E018"; fi
    epctx check --ep $name plain.onnx; said "check --ep $name" 4 "no compatibility info for"
    epctx repair --profile $name --dry-run plain.onnx
    said "repair --profile $name" 3 "for EP 'qnn'"
done
epctx check --ep NPU plain_ctx.onnx; said "check --ep of a profile" 0 "arch = generic"
epctx compile -e EpctxNPUExecutionProvider --dry-run plain.onnx -o e_ctx.onnx
result "compile -e" 0 "e_ctx"
# -- slips of the hand --
epctx lnit plain.onnx; result "letters that changed places" 2 "did you mean 'lint'?"
epctx help help; result "help help" 0 "usage: epctx COMMAND"
epctx info -; result "info of standard input" 2 "does not read standard input"
epctx info --jsno plain.onnx
[ "$(head -n 1 err)" = "epctx: unknown option --jsno, did you mean --json?" ] ||
    fail "a similar option" "the first line is not the error"
epctx set plain_ctx.onnx embed_mod=1 -o never.onnx
result "a similar attribute" 2 "did you mean 'embed_mode'?"
# -- get reads what set writes --
for pair in model:ir_version=8 model:producer_name=you graph:name=g graph:doc_string=words \
    opset:=13 opset:mine=4; do
    epctx set plain.onnx "$pair" -o got.onnx -f
    epctx get got.onnx "${pair%%=*}"; result "get ${pair%%=*}" 0 "${pair#*=}"
done
epctx get commas.onnx graph:inputs; result "a comma in a name" 0 'x\,1,w'
epctx set commas.onnx 'graph:inputs=w,x\,1' -o turned.onnx; result "and back" 0 "inputs"
epctx get turned.onnx graph:inputs; result "another order" 0 'w,x\,1'
epctx get plain.onnx opset:gone; result "get of an opset that is not there" 1 "does not import"
epctx get plain.onnx model:gone; result "get of no field" 2 "there is only model:ir_version"
# -- the rest --
"$python" "$top/tests/judge/make_model.py" dynamic dynamic.onnx
epctx compile --dim N=1 --dim M=2 dynamic.onnx -o dims_ctx.onnx
result "--dim twice" 1 "'M'"
epctx compile -v shapeless.onnx -o never_ctx.onnx
result "-v of a missing shape" 1 "graph input 'x' has no shape"
epctx compile --embed -o - plain.onnx; result "compile --embed -o -" 2 "write ./- for a file"
mkdir -p into
epctx merge from/a.onnx from/b.onnx -o into/m.onnx
result "merge into folders" 0 "into/deep/er/x.bin"
[ -f into/deep/er/x.bin ] || fail "merge into folders" "no binary"
rm -rf into && mkdir into
epctx merge from/a.onnx from/b.onnx --dry-run -o into/m.onnx; result "merge --dry-run" 0 "dry run"
[ -z "$(ls into)" ] && echo "ok merge --dry-run leaves nothing" ||
    fail "merge --dry-run leaves nothing" "a folder"
if [ -w /dev/full ]; then
    "$epctx" set --json plain.onnx model:domain=d -o full.onnx >/dev/full 2>err
    code=$?; : >out
    result "a report that is lost" 1 "the files were written, only the report"
fi

# -- for programs, and on a terminal --
"$python" "$top/tests/judge/cli.py" "$epctx" programs 2>judge.err || {
    status=1
    cat judge.err
}
# -- a file that is cut while it is mapped --
"$python" - "$top/tests/judge" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from onnx_schema import ModelProto
model = ModelProto.FromString(open("plain.onnx", "rb").read())
for i in range(20000):
    model.graph.node.add(name="node number %d" % i, op_type="Relu", input=["x"], output=["z%d" % i])
open("cut.onnx", "wb").write(model.SerializeToString())
END
rm -f pipe
mkfifo pipe
(
    "$epctx" dump cut.onnx 2>err >pipe
    echo $? >code
) &
# The pipe is full when the file goes, so most of the model has not been printed.
{
    head -c 1000 >/dev/null
    : >cut.onnx
    cat >out
} <pipe
wait
code=$(cat code)
result "a file cut while it is read" 1 "a file was cut short by another program"

# -- a Hugging Face cache: links into blobs/ beside snapshots/, with --hugging-face alone --
mkdir -p hub/blobs hub/snapshots/1 hub/other
"$epctx" compile plain.onnx -o hub/m_ctx.onnx >/dev/null
mv hub/m_ctx.onnx hub/blobs/c && mv hub/m_npu.bin hub/blobs/d
ln -s ../../blobs/c hub/snapshots/1/m_ctx.onnx
ln -s ../../blobs/d hub/snapshots/1/m_npu.bin
for command in run info ls lint "embed -o hub/e.onnx -f" "merge plain.onnx -o hub/g.onnx -f" \
    "package -o hub/package"; do
    # shellcheck disable=SC2086 # a command and its options
    set -- $command
    command=$1
    shift
    epctx $command "$@" hub/snapshots/1/m_ctx.onnx
    if [ $code -eq 1 ]; then
        echo "ok $command refuses a link out of the folder"
    else
        fail "$command refuses a link out of the folder" "exit code $code, expected 1"
    fi
    rm -rf hub/package
    epctx $command --hugging-face "$@" hub/snapshots/1/m_ctx.onnx
    if [ $code -eq 0 ]; then
        echo "ok $command --hugging-face"
    else
        fail "$command --hugging-face" "exit code $code, expected 0"
    fi
done
epctx weights --hugging-face hub/snapshots/1/m_ctx.onnx plain.onnx
result "weights --hugging-face" 0
epctx weights hub/snapshots/1/m_ctx.onnx plain.onnx
result "weights refuses a link out of the folder" 1 "leaves the model's folder"
epctx set --hugging-face hub/snapshots/1/m_ctx.onnx note:string=x -o hub/snapshots/1/n_ctx.onnx
result "set --hugging-face" 0
mv hub/blobs/d hub/other/d
ln -sf ../../other/d hub/snapshots/1/m_npu.bin
epctx run --hugging-face hub/snapshots/1/m_ctx.onnx
result "--hugging-face is for blobs only" 1 "leaves the model's folder"

# -- typing errors: which word is meant --
# A line: the word, and the command with a mistake; "-" means that nothing is like it.
while IFS='|' read -r word line; do
    # shellcheck disable=SC2086 # words of a command
    eval "epctx $line"
    if [ "$code" -eq 0 ]; then fail "typing error: $line" "it is accepted"
    elif [ "$word" = - ] && grep -q "did you mean" err; then
        fail "typing error: $line" "expected no suggestion"
    elif [ "$word" != - ] && ! grep -q "did you mean '*$word'*?" err; then
        fail "typing error: $line" "expected $word"
    else ok "typing error: $line"; fi
done <<'END'
compile|complie plain.onnx
compile|comp plain.onnx
lint|lnit plain.onnx
info|INFO plain.onnx
weightless|weigthless plain.onnx
extract|extarct plain.onnx
devices|device
profiles|profile
npu-dump|npu_dump plain.onnx
lint|validate plain.onnx
-|zzzzzz
-|xy
--json|info --jsno plain.onnx
--json|info --JSON plain.onnx
--weightless|compile --weigthless plain.onnx
--context-path|lint --context_path=x plain.onnx
--context-path|lint --context plain.onnx
--require-all|compile --requireall plain.onnx
--initializers|compile --initialisers x plain.onnx
--overwrite|set --overwirte backup plain.onnx
--dry-run|set --dryrun plain.onnx
--depfile|compile --dep-file x plain.onnx
--no-progress|info --noprogress plain.onnx
--help|info --hlep
-|info --qqqqqq plain.onnx
sarif|lint --format sarrif plain.onnx
github|lint --format git plain.onnx
backup|set -o x.onnx --overwrite bakcup plain.onnx model:domain=x
replace|compile --overwrite REPLACE plain.onnx
prefix|merge --metadata prefx -o x.onnx plain.onnx plain.onnx
npu|package --device nup -o d plain_ctx.onnx
E022|lint --rules E22 plain.onnx
secondary-without-primary|repair --rules secondary-without-pirmary -o x.onnx plain.onnx
openvino|lint --profile openvin plain.onnx
QNNExecutionProvider|lint --profile QNNExecutionProvidr plain.onnx
tensorrt|profiles tensort
producer_name|set -o x.onnx plain.onnx model:producername=x
notes|set -o x.onnx plain_ctx.onnx note=x
hardware_architecture|set -o x.onnx plain_ctx.onnx hardware_arch=x
embed_mode|get plain_ctx.onnx embedmode
source|unset -o x.onnx plain_ctx.onnx soruce
END

exit $status
