#!/bin/sh
# set, unset, rename and prefix as a user meets them: what changes, what is
# refused and that nothing is touched then. What each edit does to the message
# is judged by libprotobuf, and edited models run in ONNX Runtime.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
data=/usr/share/libonnx-testdata/data
models=${EPCTX_TEST_MODELS:-}
start edit
mkdir "$work/judge"
make_models plain partly
for kind in plain partly; do
    "$epctx" compile "$work/$kind.onnx" -o "$work/${kind}_ctx.onnx" >"$work/out" || {
        echo "FAIL models: $kind could not be compiled"
        exit 1
    }
done
cd "$work" || exit 1
out=$work.out err=$work.err

# worked NAME TEXT: the last command did, and said TEXT.
worked() { result "$1" 0 "$2"; }
# refuses NAME CODE TEXT ARGUMENTS...: runs the tool, which refuses.
refuses() {
    name=$1 want=$2 text=$3
    shift 3
    before=$(state)
    epctx "$@"
    refused "$name" "$want" "$text"
}
# value NAME WANT FILE WHAT: what `epctx get` tells.
value() {
    found=$("$epctx" get "$3" "$4" 2>&1)
    if [ "$found" = "$2" ]; then ok "$1"; else fail "$1" "expected '$2', found '$found'"; fi
}

# -- set and unset --
epctx unset plain_ctx.onnx -n notes; worked "unset of notes tells of the hash" "is gone from notes"
epctx set plain_ctx.onnx -n notes="$("$epctx" get plain_ctx.onnx notes)"
lacks "the same notes" 0 '^note: '
epctx set plain_ctx.onnx -o a.onnx notes=first metadata:team=npu opset:test.domain=2 \
    model:producer_name=me graph:doc_string=words extra:floats=1,-0.5
worked "set" "notes = 'first'"
worked "set of notes tells of the hash" "is gone from notes"
value "set an attribute" first a.onnx notes
value "set metadata" npu a.onnx metadata:team
value "a list of floats" 1,-0.5 a.onnx extra
epctx set plain_ctx.onnx -o lists.onnx one:float=0.25 ints:ints=3,-4 none:ints= words:strings=a,bc
worked "set lists" "write lists.onnx"
value "a float" 0.25 lists.onnx one
value "a list of integers" 3,-4 lists.onnx ints
value "an empty list" "" lists.onnx none
value "a list of texts" a,bc lists.onnx words
epctx get --json lists.onnx words; worked "a list as JSON" '"value": "a,bc"'
"$python" -c 'import onnx
model = onnx.load("plain_ctx.onnx")
model.graph.node[0].attribute.append(onnx.helper.make_attribute("t", onnx.TensorProto()))
onnx.save(model, "tensor.onnx")'
epctx get tensor.onnx t; result "a tensor in one line" 1 "of type TENSOR"
epctx info a.onnx; worked "set a field" "producer       me"
epctx unset a.onnx --in-place notes extra metadata:team opset:test.domain graph:doc_string
worked "unset" "removed notes"
epctx set a.onnx --in-place notes="$("$epctx" get plain_ctx.onnx notes)" \
    "model:producer_name=epctx tests"
worked "set --in-place" "write a.onnx"
epctx diff plain_ctx.onnx a.onnx
if [ "$code" -eq 0 ]; then ok "what was taken back is as before"
else fail "what was taken back is as before" "exit code $code"; fi
head -c 100000 /dev/zero | tr '\0' x >payload
epctx set plain_ctx.onnx -o b.onnx notes=@payload ep_sdk_version=@@home
worked "set from a file" "notes = 100000 bytes"
"$epctx" get b.onnx notes >found; same "the file's bytes are the value" payload found
value "a text that starts with @" @home b.onnx ep_sdk_version
epctx set partly_ctx.onnx -o c.onnx --all hardware_architecture=generic
worked "set --all" "hardware_architecture"
[ "$(grep -c hardware_architecture "$out")" -eq 2 ] || fail "set --all" "expected two nodes"
"$python" - "$top/tests/judge" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from onnx_schema import ModelProto
model = ModelProto.FromString(open("partly_ctx.onnx", "rb").read())
for i in range(100):
    node = model.graph.node.add(name="n%d" % i, op_type="EPContext", domain="com.microsoft")
    node.attribute.add(name="source", type=3, s=b"Many")
open("many_ctx.onnx", "wb").write(model.SerializeToString())
END
epctx set many_ctx.onnx -o c.onnx -f --all notes=@payload
worked "set --all from a file" "notes = 100000 bytes"
[ "$(grep -c 'notes = 100000 bytes' "$out")" -eq 102 ] ||
    fail "set --all from a file" "expected 102 nodes"
for node in n0 n99; do
    "$epctx" get c.onnx --node $node notes >found
    same "the file's bytes are the value of $node" payload found
done
printf 'caf\351' >latin1
epctx set plain_ctx.onnx -o l.onnx notes=@latin1
worked "bytes in an attribute" "notes"
for what in metadata:team model:producer_name model:doc_string graph:name graph:doc_string; do
    refuses "$what is UTF-8" 2 "is not UTF-8" set plain_ctx.onnx -o x.onnx -f "$what=@latin1"
done
latin1=$(cat latin1)
for kind in metadata:@ @:int opset:@; do
    refuses "the name in $kind is UTF-8" 2 "is not UTF-8" \
        set plain_ctx.onnx -o x.onnx -f "${kind%@*}$latin1${kind#*@}=1"
done
epctx set partly.onnx -o c.onnx -f --node strange axis:int=3 'text=plain text' 'graph:outputs=y'
worked "set on an ordinary node" "axis = 3 (new)"

refuses "set without a place for the result" 2 "--in-place" set plain_ctx.onnx notes=x
refuses "set to two places" 2 "cannot be combined" set plain_ctx.onnx -o x.onnx --in-place notes=x
refuses "set with a strange policy" 2 "fail, replace or backup" \
    set plain_ctx.onnx -o x.onnx --overwrite perhaps notes=x
refuses "set nothing" 2 "usage: epctx set" set plain_ctx.onnx -o x.onnx
refuses "set without a value" 2 "WHAT=VALUE" set plain_ctx.onnx -o x.onnx notes
refuses "set an unknown field" 2 "model:ir_version" set plain_ctx.onnx -o x.onnx model:colour=red
refuses "set a new attribute without its type" 2 "NAME:int=" set plain_ctx.onnx -o x.onnx depth=1
refuses "set against the schema" 2 "schema" set plain_ctx.onnx -o x.onnx notes:int=1
refuses "set a number that is none" 2 "not an integer" set plain_ctx.onnx -o x.onnx max_size=big
refuses "set a value out of range" 1 "must be 0 or 1" set plain_ctx.onnx -o x.onnx embed_mode=5
refuses "set from a missing file" 1 "nowhere" set plain_ctx.onnx -o x.onnx notes=@nowhere
refuses "set on one of several nodes" 1 "--node" set partly_ctx.onnx -o x.onnx notes=x
refuses "set on an unknown node" 1 "there is no node 'nobody'" \
    set partly_ctx.onnx -o x.onnx --node nobody notes=x
grep -q "EPContext nodes: 'EpctxNpuExecutionProvider_.*_0' 'EpctxNpu" "$err" ||
    fail "set on an unknown node" "the nodes are not listed"
refuses "set without an EPContext node" 1 "'conv' 'relu' 'pool'" set plain.onnx -o x.onnx notes=x
refuses "set an order that is none" 2 "each name exactly once" \
    set plain.onnx -o x.onnx graph:outputs=y,y
refuses "unset what is not there" 1 "ep_cache_context" unset plain_ctx.onnx -o x.onnx colour
refuses "unset metadata that is not there" 1 "no metadata key" \
    unset plain_ctx.onnx -o x.onnx metadata:colour
refuses "a missing model" 1 "missing.onnx" set missing.onnx -o x.onnx notes=x
head -c 200 plain_ctx.onnx >cut.onnx
refuses "a broken model" 1 "cut off" set cut.onnx -o x.onnx notes=x

# -- where it is written --
refuses "a file in the way" 1 "-f replaces it" set plain_ctx.onnx -o a.onnx notes=x
refuses "a folder in the way" 1 "folder" set plain_ctx.onnx -o judge notes=x
refuses "a missing folder" 1 "no/x.onnx" set plain_ctx.onnx -o no/x.onnx notes=x
cp a.onnx old.onnx
epctx set plain_ctx.onnx -o a.onnx --overwrite backup notes=x
worked "a backup" "a.onnx~"
same "the backup is the old file" old.onnx a.onnx~
cp a.onnx old.onnx
epctx set a.onnx --in-place --overwrite backup notes=y; worked "a second backup" "a.onnx~2"
same "the second backup is the old file" old.onnx a.onnx~2
chmod 640 a.onnx
ln -s a.onnx link.onnx
epctx set link.onnx --in-place notes=z; worked "through a link" "write link.onnx"
if [ -h link.onnx ] && [ "$(stat -c %a a.onnx)" = 640 ]; then ok "link and mode stay"
else fail "link and mode stay" "$(ls -l link.onnx a.onnx)"; fi
value "the file behind the link changed" z a.onnx notes
"$epctx" set plain_ctx.onnx -o - notes=piped >piped.onnx 2>"$err"
value "standard output" piped piped.onnx notes
"$epctx" set plain_ctx.onnx -o - --json notes=piped 2>"$err" | cmp -s - piped.onnx &&
    "$python" -m json.tool <"$err" >"$out" && ok "report of standard output" ||
    fail "report of standard output" "no JSON on standard error, or another model"
if [ -w /dev/full ]; then
    before=$(state)
    "$epctx" set plain_ctx.onnx -o - notes=x >/dev/full 2>"$err"; code=$?
    : >"$out"
    refused "standard output is full" 1 "standard output"
fi
# A file may not grow: what a full disk looks like to the program.
before=$(state)
(trap '' XFSZ; ulimit -f 8; "$epctx" set plain_ctx.onnx -o x.onnx notes=@payload) \
    >"$out" 2>"$err"; code=$?
refused "no room for the file" 1 "x.onnx"
before=$(state)
(trap '' XFSZ; ulimit -f 8; "$epctx" set b.onnx --in-place --overwrite backup metadata:k=v) \
    >"$out" 2>"$err"; code=$?
refused "no room for the file in place" 1 "b.onnx"
# A payload is never copied to memory: 300 MB go through 8 MB.
truncate -s 300M huge
if (ulimit -d 8192; "$top/${EPCTX_BUILD:-build}/epctx" set plain_ctx.onnx \
    -o huge.onnx notes=@huge) \
    >"$out" 2>"$err" && [ "$(stat -c %s huge.onnx)" -gt 314572800 ] &&
    (ulimit -d 8192; "$top/${EPCTX_BUILD:-build}/epctx" prefix huge.onnx --in-place big_) \
        >>"$out" 2>>"$err"; then
    ok "a large payload needs no memory"
else
    fail "a large payload needs no memory" "it did not work with 8 MB of memory"
fi
rm -f huge huge.onnx
mkdir locked
cp plain_ctx.onnx locked/m.onnx
cp "$(ls ./*.bin | head -n 1)" locked/old.bin
chmod 555 locked
before=$(state)
# in_locked NAME TEXT ARGUMENTS...: refused with TEXT, in the command and in its dry run.
in_locked() {
    name=$1 text=$2
    shift 2
    for dry in "" --dry-run; do
        # shellcheck disable=SC2086
        $plainly "$epctx" "$@" $dry >"$out" 2>"$err"
        code=$?
        refused "a folder that is read-only: $name $dry" 1 "$text"
    done
}
plainly=
[ "$(id -u)" -ne 0 ] || plainly="setpriv --inh-caps=-all --bounding-set=-all"
if [ -z "$plainly" ] || command -v setpriv >/dev/null; then
    in_locked "set --in-place" locked/m.onnx set locked/m.onnx --in-place notes=x
    ln -s locked/m.onnx into_locked.onnx
    before=$(state)
    in_locked "set through a link" "ermission denied" set into_locked.onnx --in-place notes=x
    rm into_locked.onnx
    before=$(state)
    in_locked "set -o" locked/new.onnx set plain_ctx.onnx -o locked/new.onnx notes=x
    in_locked "merge" locked/ merge plain_ctx.onnx partly_ctx.onnx -o locked/new.onnx
    in_locked "embed" locked/new.onnx embed plain_ctx.onnx -o locked/new.onnx
    in_locked "compile" locked/new.onnx compile plain.onnx -o locked/new.onnx
    in_locked "mv" locked mv locked/old.bin locked/new.bin
    in_locked "package" locked/new package plain_ctx.onnx -o locked/new
else
    echo "skip a folder that is read-only: root may write it, and there is no setpriv"
fi

# -- the plan --
before=$(state)
epctx set plain_ctx.onnx -n -o new.onnx notes=planned
worked "a plan" "write new.onnx, "
epctx set plain_ctx.onnx -o new.onnx --dry-run --json notes=planned
worked "a plan as JSON" '"dry_run": true'
if "$python" -m json.tool <"$out" >/dev/null 2>&1; then ok "the plan is JSON"
else fail "the plan is JSON" "it is not"; fi
if [ "$before" = "$(state)" ]; then ok "a plan writes nothing"
else fail "a plan writes nothing" "a file changed"; fi
for twice in "notes=a notes=b" "extra:int=1 extra:string=x" "metadata:k=a metadata:k=b" \
    "opset:=13 opset:ai.onnx=14" "model:domain=a graph:name=b model:domain=c"; do
    # shellcheck disable=SC2086
    refuses "two values for one place: $twice" 2 "is given a second value" \
        set plain_ctx.onnx -o new.onnx $twice
done
refuses "one place removed twice" 2 "'notes' is given twice" \
    unset plain_ctx.onnx -o new.onnx notes notes
epctx set plain_ctx.onnx -n model:domain=a graph:doc_string=b metadata:domain=c domain:string=d
worked "one name in four places" "metadata: 'domain' = 'c'"
refuses "a plan that cannot be" 1 "exists" set plain_ctx.onnx -n -o a.onnx notes=x

# -- names --
epctx rename partly.onnx -o r.onnx x image y scores
worked "rename values" "value 'x': now 'image'"
epctx rename r.onnx -o s.onnx image x scores y
same "renamed back" partly.onnx s.onnx
refuses "rename to a name in use" 1 "in use" rename partly.onnx -o x.onnx x y
refuses "rename what is not there" 1 "inputs: 'x'" rename partly.onnx -o x.onnx nobody y
refuses "rename without a new name" 2 "missing new name" rename partly.onnx -o x.onnx x y z
epctx rename --nodes partly.onnx -o n.onnx strange odd; worked "rename a node" "now 'odd'"
refuses "rename a node to a name in use" 1 "another node" rename --nodes partly.onnx -o x.onnx \
    strange relu
epctx prefix partly_ctx.onnx -o p_ctx.onnx left_; worked "prefix" "now 'left_Epctx"
epctx rename p_ctx.onnx --in-place x image
worked "rename in a compiled model" "occurrences in total"
# for_qnn IN OUT: the model as if Qualcomm's EP had written it
for_qnn() {
    stamp=metadata:epctx.build.EpctxNpuExecutionProvider
    epctx set "$1" -o "$2" -f --all source=QNNExecutionProvider \
        "metadata:epctx.build.QNNExecutionProvider=$("$epctx" get "$1" $stamp)"
}
epctx unset plain_ctx.onnx -o mute_ctx.onnx source; worked "a node of nobody" "removed source"
refuses "rename what the EP finds by name" 1 "--any-io" \
    rename --profile qnn mute_ctx.onnx -o x.onnx x image
epctx rename --profile qnn --any-io mute_ctx.onnx -o i_ctx.onnx x image
worked "rename --any-io" "image"
epctx set i_ctx.onnx --in-place source=EpctxNpuExecutionProvider
# QNN's plugin EP: a list of names, which goes along; without it inputs and outputs are by position.
long=$(printf '%0250d' 0)
while IFS='|' read -r before renamed after; do
    epctx set plain_ctx.onnx -o l_ctx.onnx -f source=QNNExecutionProvider \
        "io_name_overrides:string=$before" is_multi_soc_ep_context:int=0
    # shellcheck disable=SC2086 # words
    epctx rename l_ctx.onnx -o m_ctx.onnx -f $renamed
    worked "rename with io_name_overrides '$before'" "now '"
    epctx get m_ctx.onnx io_name_overrides
    if [ "$(cat "$out")" = "$after" ]; then ok "io_name_overrides after $renamed"
    else fail "io_name_overrides after $renamed" "expected '$after', found '$(cat "$out")'"; fi
done <<END
x=input;|x image|image=input;
x=input;y=out=put;|y x x y|y=input;x=out=put;
other=input|x image|other=input;image=x;
y=b;|x $long|y=b;$long=x;
END
# Of several inputs or outputs the order in the binary is not known.
printf 'FAKE\001' >qnn.bin && head -c 100 /dev/zero | tr '\0' q >>qnn.bin
epctx wrap --profile qnn_plugin qnn.bin -o w_ctx.onnx --inputs 'a:float[1],b:float[1]' \
    --outputs 'c:float[1],d;1:float[1]'
worked "wrap of a binary of several values" ""
epctx set w_ctx.onnx --in-place is_multi_soc_ep_context:int=0
epctx rename w_ctx.onnx -o w2_ctx.onnx b image c first
worked "rename of one of several" "now 'image'"
epctx get w2_ctx.onnx io_name_overrides
if [ "$(cat "$out")" = "image=b;first=c;" ]; then ok "each new name has its entry"
else fail "each new name has its entry" "expected 'image=b;first=c;', found '$(cat "$out")'"; fi
refuses "a name that no entry can have" 1 "';' or '='" rename w_ctx.onnx -o x.onnx 'd;1' other
epctx unset m_ctx.onnx io_name_overrides --in-place
epctx rename m_ctx.onnx -o l_ctx.onnx -f y out.1/2
worked "rename by position" "out.1/2"
epctx prefix plain_ctx.onnx -o q_ctx.onnx left_; worked "prefix of one node" "left_"
for m in plain_ctx q_ctx i_ctx; do
    "$epctx" run $m.onnx --seed 7 --dump $m.io >"$out" 2>"$err" || fail "run" "$m.onnx"
done
same "a prefix changes no output" plain_ctx.io/output_0.bin q_ctx.io/output_0.bin
same "a renamed input changes no output" plain_ctx.io/output_0.bin i_ctx.io/output_0.bin
for_qnn plain_ctx.onnx qnn_plain_ctx.onnx
for_qnn partly_ctx.onnx qnn_partly_ctx.onnx
refuses "prefix where the name is a key" 1 "several nodes share a context" \
    prefix qnn_partly_ctx.onnx -o x.onnx left_
epctx prefix qnn_plain_ctx.onnx -o alone.onnx left_
worked "prefix where the build stamp tells of one graph" "left_"
for op in embed extract; do
    epctx $op "$([ $op = embed ] && echo qnn_plain || echo embed)_ctx.onnx" -o ${op}_ctx.onnx -f
    epctx prefix ${op}_ctx.onnx -o alone.onnx -f left_
    worked "prefix after $op" "left_"
done
epctx unset mute_ctx.onnx -o unsaid_ctx.onnx metadata:epctx.build.EpctxNpuExecutionProvider
epctx embed unsaid_ctx.onnx -o unsaid_embed_ctx.onnx
for m in unsaid unsaid_embed; do
    refuses "prefix of a binary that may hold more ($m)" 1 "--one-graph" \
        prefix ${m}_ctx.onnx --profile qnn -o x.onnx left_
    refuses "rename of a node in a binary that may hold more ($m)" 1 "--one-graph" \
        rename --nodes ${m}_ctx.onnx --profile qnn -o x.onnx "$("$epctx" dump plain_ctx.onnx |
        sed -n "s/.*\(EpctxNpuExecutionProvider_[0-9a-f]*_0\).*/\1/p" | head -n 1)" new
done
epctx prefix unsaid_ctx.onnx --profile qnn --one-graph -o q.onnx left_
worked "prefix --one-graph" "left_"

# -- whose rules: those of --profile are for its EP's nodes, and for those of nobody --
epctx unset qnn_plain_ctx.onnx -o unsaid_qnn_ctx.onnx metadata:epctx.build.QNNExecutionProvider
epctx merge -o two_ctx.onnx --prefix a_,b_ unsaid_qnn_ctx.onnx plain_ctx.onnx
worked "a model of two EPs" "write two_ctx.onnx"
for who in "" "--profile npu" "--profile openvino" "--profile generic"; do
    # shellcheck disable=SC2086 # words
    refuses "QNN's node keeps its guard $who" 1 "qnn EPContext node cannot be renamed" \
        prefix two_ctx.onnx $who -o x.onnx left_
    # shellcheck disable=SC2086
    refuses "and the names of its values $who" 1 "qnn finds it in the binary by name" \
        rename two_ctx.onnx $who -o x.onnx x image
done
epctx set two_ctx.onnx -o entries_ctx.onnx \
    metadata:ep_compatibility_info.QNNExecutionProvider=1:2 \
    metadata:ep_compatibility_info.EpctxNpuExecutionProvider=epctx=1
for who in npu qnn; do
    epctx lint --hints --profile $who entries_ctx.onnx
    if grep -q "I008" "$out" && ! grep -q "W004" "$out"; then ok "lint of both for $who"
    else fail "lint of both for $who" "expected I008 of the other's node, and no W004"; fi
done
epctx rename two_ctx.onnx --profile qnn -o x.onnx b_x image
worked "a node of another EP has no guard of QNN's" "image"
for who in "" "--profile qnn"; do
    # shellcheck disable=SC2086
    epctx rename unsaid_ctx.onnx $who -o x.onnx -f x image
    if [ -z "$who" ]; then worked "a node of nobody has no guard" "image"
    else result "but with --profile" 1 "--any-io"; fi
done
epctx set unsaid_ctx.onnx -o acme_ctx.onnx source=AcmeExecutionProvider
refuses "a source that no profile knows" 1 "--any-io" \
    rename acme_ctx.onnx --profile qnn -o x.onnx -f x image
refuses "prefix of no EPContext node" 1 "no EPContext node" prefix plain.onnx -o x.onnx left_
first=$("$epctx" dump partly_ctx.onnx |
    sed -n "s/.*\(EpctxNpuExecutionProvider_[0-9a-f]*_0\).*/\1/p" | head -n 1)
epctx rename --nodes partly_ctx.onnx -o clash.onnx strange "left_$first"
worked "a name that a prefix will meet" "now 'left_"
refuses "prefix that makes a clash" 1 "another node" prefix clash.onnx -o x.onnx left_

# -- judged --
cd "$top" || exit 1
if [ -d $data ]; then
    # shellcheck disable=SC2046 # a list of files
    set -- $(find $data -name '*.onnx' -size -200k | LC_ALL=C sort | awk 'NR % 25 == 0') \
        $data/node/test_if/model.onnx $data/node/test_scan_sum/model.onnx \
        $data/node/test_loop16_seq_none/model.onnx
else
    echo "skip edits of libonnx-testdata: $data is not there"
    set --
fi
for name in ort_qdq_multi_consumer mlpt_kws_int8 gtcrn_simple; do
    [ -f "$models/onnx/$name.onnx" ] && set -- "$@" "$models/onnx/$name.onnx"
done
"$python" tests/judge/edit.py ${EPCTX_BUILD:-build}/epctx "$work/judge" "$work/plain_ctx.onnx" \
    "$@" || status=1

# -- in ONNX Runtime --
set --
for name in node/test_if node/test_scan_sum node/test_loop11 node/test_split_equal_parts_2d; do
    [ -f "$data/$name/model.onnx" ] && set -- "$@" "$data/$name/model.onnx"
done
for name in mnist_8 ort_qdq_multi_consumer mlpt_kws_int8 blazeface_front_128 gtcrn_simple; do
    [ -f "$models/onnx/$name.onnx" ] && set -- "$@" "$models/onnx/$name.onnx"
done
if [ $# -eq 0 ]; then
    echo "skip edits in ONNX Runtime: neither libonnx-testdata nor EPCTX_TEST_MODELS is there"
else
    use_ort
    "$python" tests/judge/edit.py ${EPCTX_BUILD:-build}/epctx "$work/judge" --ort "$@" || status=1
fi
exit $status
