#!/bin/sh
# `epctx compile` with several models that share a binary, `check --fresh`, and both kinds of
# compiling killed at every system call that writes.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start share
make_models plain partly
cd "$work" || exit 1

# expect NAME CODE TEXT ARGUMENTS...: exit code and a text in what the tool says.
expect() {
    name=$1 want=$2 text=$3
    shift 3
    epctx "$@"
    said "$name" "$want" "$text"
}

# files NAME LIST: what is in the folder besides the inputs.
files() {
    found=$(printf '%s\n' * | grep -v -x -e out -e err -e plain.onnx -e partly.onnx | tr '\n' ' ')
    if [ "$found" = "$2" ]; then echo "ok $1"; else fail "$1" "found '$found', expected '$2'"; fi
}

# -- N models, N + 1 files --
cp plain.onnx a.onnx
cp partly.onnx b.onnx
cp plain.onnx c.onnx
expect "three models" 0 "files          4" compile a.onnx b.onnx c.onnx
files "N + 1 files" "a.onnx a_ctx.onnx a_npu.bin b.onnx b_ctx.onnx c.onnx c_ctx.onnx "
# c is a again: its graph is there already, and b has the same first layer.
if grep -q '^shared  *[1-9][0-9]* of' out; then echo "ok the summary tells what is shared"
else fail "the summary tells what is shared" "no bytes are shared"; fi
"$plain" compile -o alone_ctx.onnx plain.onnx >out 2>err
one=$(wc -c <alone_npu.bin) all=$(wc -c <a_npu.bin)
if [ "$all" -lt $((2 * one)) ]; then echo "ok the binary holds the weights once"
else fail "the binary holds the weights once" "$all bytes for three models, $one for one"; fi
for m in alone a c; do
    "$plain" run ${m}_ctx.onnx --seed 7 --dump d_$m >out 2>err || fail "run of $m" "it fails"
done
for f in d_alone/*; do
    for m in a c; do
        if cmp -s "$f" "d_$m/${f#*/}"; then echo "ok $m gives what it gives alone"
        else fail "$m gives what it gives alone" "${f#*/} differs"; fi
    done
done
expect "the other model loads" 0 "b_ctx.onnx" lint b_ctx.onnx
rm -rf d_* alone* *_ctx.onnx *_npu.bin

# -- a real pair: prefill and decode of a language model over one file of weights --
"$python" "$top/tests/judge/transformer.py" pair --layers 2 --width 128 ||
    fail "the pair" "no model"
expect "the pair" 0 "files          3" compile --require-all pair/prefill.onnx pair/decode.onnx
weights=$(wc -c <pair/weights.bin) binary=$(wc -c <pair/prefill_npu.bin)
if [ $((binary * 100)) -le $((weights * 105)) ]; then
    echo "ok the pair's binary is one model's weights"
else
    fail "the pair's binary is one model's weights" "$binary bytes for $weights bytes of weights"
fi
echo "note pair: $weights bytes of weights, $binary bytes of binary for both graphs"
mkdir single
for m in prefill decode; do
    "$plain" compile pair/$m.onnx -o single/${m}_ctx.onnx >out 2>err
    for d in pair single; do
        "$plain" run $d/${m}_ctx.onnx --seed 5 --dump $d/$m >out 2>err ||
            fail "run of $m" "it fails"
    done
    if diff -r pair/$m single/$m >out 2>err; then echo "ok $m gives what it gives alone"
    else fail "$m gives what it gives alone" "outputs differ"; fi
done
rm -rf pair single

# -- the command line of ORT's ep_weight_sharing_ctx_gen --
expect "list with commas" 0 "files          4" compile -e npu -i "arch|generic" \
    -C "ep.context_node_name_prefix|_part1 ep.share_ep_contexts|1" ./a.onnx,./b.onnx,./c.onnx
expect "the prefix is in the nodes" 0 "_part1EpctxNpu" dump a_ctx.onnx
expect "no overwriting" 1 "-f replaces it" compile a.onnx,b.onnx
expect "a model that is left out needs the binary" 1 "b_ctx.onnx still needs this binary" \
    compile -f a.onnx c.onnx
rm c_ctx.onnx
cp b_ctx.onnx copy.onnx # it has nothing that b has not
expect "-f" 0 "files          3" compile -f -v a.onnx b.onnx
if [ "$(cat err)" = "a.onnx: compile 1 of 1
b.onnx: compile 1 of 2
b.onnx: compile 2 of 2
write 1 of 3
write 2 of 3
write 3 of 3" ]; then echo "ok -v names the models"; else fail "-v names the models" "found"; fi
rm copy.onnx

# -- a binary that is not the model's any more --
"$plain" compile -f a.onnx c.onnx b.onnx >out 2>err
expect "one of a group is not compiled alone" 1 "b_ctx.onnx still needs this binary" \
    compile -f a.onnx
expect "nor planned" 1 "b_ctx.onnx still needs this binary" compile -f --dry-run a.onnx c.onnx
expect "the group is still whole" 0 ": fresh" check --fresh b_ctx.onnx
cp b_ctx.onnx d_ctx.onnx
expect "all that need it are named" 1 "b_ctx.onnx and d_ctx.onnx still need this binary" \
    compile -f a.onnx
for i in 1 2 3 4 5 6 7 8; do cp b_ctx.onnx e$i.onnx; done
expect "or the first ones" 1 "b_ctx.onnx, d_ctx.onnx, e1.onnx, e2.onnx, e3.onnx, e4.onnx, \
e5.onnx, e6.onnx and 2 more still need this binary" compile -f a.onnx
rm -f e[1-8].onnx d_ctx.onnx
left="b_ctx.onnx no longer shares a_npu.bin, which a_ctx.onnx and c_ctx.onnx still need"
expect "leaving the group is planned" 0 "note           $left" compile -f --dry-run b.onnx
expect "under a name of its own it may" 0 "binary         b_npu.bin" compile -f b.onnx
if grep -qxF "note           $left" out; then echo "ok leaving the group is told"
else fail "leaving the group is told" "no note"; fi
expect "told to programs, too" 0 "\"notes\": [\"c_ctx.onnx no longer shares a_npu.bin, \
which a_ctx.onnx still needs\"]" compile -f --json c.onnx
expect "binaries that are left over" 0 \
    "b_npu.bin is kept although no model here needs it any more; last used by b_ctx.onnx" \
    compile -f a.onnx b.onnx
expect "embedding leaves one, too" 0 \
    "c_npu.bin is kept although no model here needs it any more; last used by c_ctx.onnx" \
    compile -f --embed c.onnx
rm -f b_npu.bin c_npu.bin
expect "the same again leaves nothing" 0 "partitions" compile -f --embed c.onnx
lacks "no note without a reason" 0 '^note'
"$plain" compile -f a.onnx c.onnx b.onnx >out 2>err
cp a_npu.bin old.bin
rm a_npu.bin
expect "who removes the binary may" 0 "binary         a_npu.bin" compile -f a.onnx
expect "fresh tells of another binary" 1 "context binary 'a_npu.bin' has " \
    check --fresh b_ctx.onnx
expect "loading tells of another binary" 1 "bytes, the model was compiled with one of" \
    run b_ctx.onnx
expect "the one that was compiled is fresh" 0 ": fresh" check --fresh a_ctx.onnx
mv old.bin a_npu.bin
expect "fresh with its binary" 0 ": fresh" check --fresh c_ctx.onnx
expect "mv with one of the models named" 1 "b_ctx.onnx names a_npu.bin, too" \
    mv a_npu.bin new.bin a_ctx.onnx
expect "its plan" 1 "b_ctx.onnx names a_npu.bin, too" mv -n a_npu.bin new.bin a_ctx.onnx
mkdir below
expect "mv into a folder" 0 "" mv a_npu.bin below/a_npu.bin
expect "mv out of it" 1 "there is no .onnx file beside it: specify the models" \
    mv below/a_npu.bin a_npu.bin
expect "mv with all of them" 0 "" mv below/a_npu.bin a_npu.bin ./*_ctx.onnx
rmdir below
expect "fresh under another name" 0 "" mv a_npu.bin new.bin
expect "renamed" 0 ": fresh" check --fresh c_ctx.onnx
expect "embedding" 0 "" embed -o e_ctx.onnx c_ctx.onnx
expect "embedded" 0 ": fresh" check --fresh e_ctx.onnx
expect "extracting" 0 "" extract --in-place --name again.bin e_ctx.onnx
expect "extracted" 0 ": fresh" check --fresh e_ctx.onnx
printf X | dd of=again.bin bs=1 seek=300 conv=notrunc 2>dd_err
expect "another byte" 1 "again.bin' has hash" check --fresh e_ctx.onnx
expect "lint tells, too" 1 "e_ctx.onnx: error E069 binary-stale: 'Epctx" lint e_ctx.onnx
before=$(stat -c '%i %Y' e_ctx.onnx)
expect "repair leaves it and says why" 3 "left E069" repair --in-place e_ctx.onnx
expect "repair knows the rule" 2 "E900 cannot be repaired automatically: compile" \
    repair --rules E900 --in-place e_ctx.onnx
if [ "$(stat -c '%i %Y' e_ctx.onnx)" = "$before" ]; then
    ok "what nothing changes in place is not written"
else
    fail "what nothing changes in place is not written" "e_ctx.onnx is another file"
fi
expect "explain knows E900" 0 "the reference NPU cannot load" explain E900

# -- what moves a binary compares it, too --
for command in embed merge package; do
    other=
    [ $command != merge ] || other=b_ctx.onnx
    expect "$command of another binary" 1 "; --allow-stale accepts the binary)" \
        $command -o moved e_ctx.onnx $other
    if [ -e moved ]; then fail "$command of another binary" "something was written"; fi
done
expect "embed may" 0 "write f_ctx.onnx" embed --allow-stale -o f_ctx.onnx e_ctx.onnx
expect "package may" 0 "write moved/" package --allow-stale -o moved e_ctx.onnx
expect "fresh tells of an embedded one" 1 "the embedded context has hash" check --fresh f_ctx.onnx
expect "extract of another binary" 1 "the embedded context has hash" \
    extract -o g_ctx.onnx f_ctx.onnx
expect "extract may" 0 "write g_ctx.onnx" extract --allow-stale -o g_ctx.onnx f_ctx.onnx
expect "info warns" 0 "epctx: warning: e_ctx.onnx: node" info e_ctx.onnx
expect "get warns" 0 "the embedded context has hash" get -o got f_ctx.onnx context
if cmp -s got again.bin; then echo "ok get goes on"; else fail "get goes on" "other bytes"; fi
: >again.bin
expect "an empty binary" 1 "again.bin' is empty (0 bytes)" check --fresh e_ctx.onnx
rm -rf moved got
rm -f dd_err new.bin again.bin *_ctx.onnx *_npu.bin

# -- what is shared --
cp a.onnx copy_of_a.onnx
expect "a whole graph is shared" 0 "584 bytes of weights, 584 of them shared" \
    compile a.onnx copy_of_a.onnx
expect "counted once" 0 "584 of 1168 bytes" compile -f a.onnx copy_of_a.onnx
rm -f copy_of_a.onnx *_ctx.onnx *_npu.bin

# -- a dry run of a group --
expect "dry run of a group" 0 "b_ctx.onnx" compile --dry-run a.onnx b.onnx
grep -q "^binary  *a_npu.bin" out || fail "dry run of a group" "no binary"
files "nothing is written" "a.onnx b.onnx c.onnx "
mkdir sub && cp a.onnx sub
expect "dry run: two folders" 1 "is not in the folder" compile --dry-run a.onnx sub/a.onnx
expect "dry run: the same name twice" 1 "the same file" compile --dry-run a.onnx ./a.onnx
rm -r sub
touch b_ctx.onnx
expect "dry run: an output is there" 1 "-f replaces it" compile --dry-run a.onnx b.onnx
rm b_ctx.onnx
expect "-o -" 2 "write ./- for a file" compile -o - a.onnx
expect "an option of another phase" 2 "the option applies to the phase load" \
    compile -C "ep.context_source_model_path|x.onnx" a.onnx
expect "a group of one" 0 "files          2" compile -C "ep.share_ep_contexts|1" a.onnx
files "two files" "a.onnx a_ctx.onnx a_npu.bin b.onnx c.onnx "
rm -f *_ctx.onnx *_npu.bin
expect "other EP" 2 "npu only" compile -e qnn a.onnx b.onnx
expect "EP by its source" 0 "partitions" compile -e EpctxNpuExecutionProvider a.onnx -f
expect "EP option" 2 "arch|NAME" compile -i "soc_model|60" a.onnx b.onnx
expect "EP option's value" 2 "direct|0 or 1, not direct|2" compile -i "direct|2" a.onnx
expect "EP option in no stamp" 2 "omit --if-needed" compile -i "direct|1" --if-needed a.onnx
expect "session option" 2 "0" compile -C "ep.context_embed_mode|2" a.onnx b.onnx
expect "embedded and shared" 2 "--embed" compile --embed a.onnx b.onnx
expect "embedded and shared by option" 2 "--embed" \
    compile -C "ep.context_embed_mode|1" a.onnx b.onnx
expect "-o and several models" 2 "-o" compile -o x_ctx.onnx a.onnx b.onnx
expect "not generating" 2 "ep.context_enable" compile -C "ep.context_enable|0" a.onnx
expect "empty name" 2 "empty name" compile a.onnx,,b.onnx
rm -f *_ctx.onnx *_npu.bin
expect "a model in the middle is missing" 1 "nothing was written" compile a.onnx none.onnx c.onnx
files "nothing is left" "a.onnx b.onnx c.onnx "

# -- what stays on the CPU, in a file --
PYTHONPATH=$top/tests/judge "$python" - partly.onnx b.onnx <<'END'
import struct, sys
from onnx_schema import ModelProto
model = ModelProto()
model.ParseFromString(open(sys.argv[1], "rb").read())
node = next(n for n in model.graph.node if n.name == "strange")
node.input.append("kept")
model.graph.initializer.add(name="kept", data_type=1, dims=[3],
                            raw_data=struct.pack("<3f", 1, 2, 3))
open(sys.argv[2], "wb").write(model.SerializeToString())
END
expect "--initializers" 0 "b.data, 12 bytes" compile --initializers b.data --verify b.onnx
if [ "$(od -An -tf4 b.data | tr -s ' ')" = " 1 2 3" ]; then echo "ok the weights are in the file"
else fail "the weights are in the file" "found $(od -An -tx1 b.data)"; fi
expect "the file is known" 0 "b.data" ls b_ctx.onnx
rm -f *_ctx.onnx *_npu.bin b.data

# -- fresh or stale --
"$plain" compile a.onnx >out 2>err
expect "fresh" 0 "fresh" check --fresh a_ctx.onnx
expect "fresh as JSON" 0 '"fresh": true' check --fresh --json a_ctx.onnx
touch a.onnx
expect "a new time is not a new source" 0 "fresh" check --fresh a_ctx.onnx
cp partly.onnx a.onnx
expect "stale" 1 "stale" check --fresh a_ctx.onnx
expect "fresh with its source" 0 "fresh" check --fresh --source plain.onnx a_ctx.onnx
rm a.onnx
expect "the source is gone" 4 "unknown" check --fresh a_ctx.onnx
expect "no stamp" 4 "not compiled" check --fresh plain.onnx
expect "--source alone" 2 "--source" check --source a.onnx a_ctx.onnx
cp plain.onnx a.onnx
rm -f *_ctx.onnx *_npu.bin

# -- killed at every system call that writes --
# Whatever is left after the kill, every EPContext model loads, and the command once more completes
# it.
sound() {
    for ctx in crash/*_ctx.onnx; do
        [ -e "$ctx" ] || continue
        "$plain" run "$ctx" >out 2>err || return 1
    done
}
group_check() {
    sound || return 1
    if [ "$killed" -eq 137 ]; then "$plain" "$@" -f >out 2>err || return 1; fi
    for m in $models; do
        [ -e "crash/${m}_ctx.onnx" ] || return 1
    done
    sound
}
# group_crash NAME SETUP MODELS ARGUMENTS...
group_crash() {
    name=$1 setup=$2 models=$3
    shift 3
    crash "$name" "$setup" group_check "$@"
}
first() { cp plain.onnx crash/a.onnx; }
again() { first; cp old/a_ctx.onnx old/a_npu.bin crash; }
first_group() { cp plain.onnx crash/a.onnx; cp other.onnx crash/b.onnx; }
group_again() { first_group; cp old/*_ctx.onnx old/a_npu.bin crash; }
single_to_group() { first_group; cp old/a_ctx.onnx old/a_npu.bin crash; }

if strace -qq -o /dev/null true 2>/dev/null; then
    # The same size with other weights: another generation.
    PYTHONPATH=$top/tests/judge "$python" - plain.onnx other.onnx <<'END'
import sys
from onnx_schema import ModelProto
model = ModelProto()
model.ParseFromString(open(sys.argv[1], "rb").read())
for tensor in model.graph.initializer:
    if tensor.float_data:
        tensor.float_data[0] += 1
open(sys.argv[2], "wb").write(model.SerializeToString())
END
    mkdir old
    cp other.onnx old/a.onnx
    "$plain" compile old/a.onnx >out 2>err || fail "old generation" "cannot be compiled"
    group_crash "first compile is killed" first a compile crash/a.onnx
    group_crash "recompile is killed" again a compile -f crash/a.onnx
    group_crash "first group is killed" first_group "a b" compile crash/a.onnx crash/b.onnx
    group_crash "group over a single model is killed" single_to_group "a b" \
        compile -f crash/a.onnx crash/b.onnx
    cp plain.onnx old/b.onnx
    "$plain" compile -f old/a.onnx old/b.onnx >out 2>err || fail "old group" "cannot be compiled"
    group_crash "group over a group is killed" group_again "a b" \
        compile -f crash/a.onnx crash/b.onnx
else
    echo "skip killed: strace cannot trace here"
fi

exit $status
