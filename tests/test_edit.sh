#!/bin/sh
# set, unset, rename and prefix as a user meets them: what changes, what is
# refused and that nothing is touched then. What each edit does to the message
# is judged by libprotobuf, and edited models run in ONNX Runtime.
set -u
cd "$(dirname "$0")/.."
top=$PWD
python=${PYTHON:-/usr/bin/python3}
epctx=$top/${EPCTX_BUILD:-build/asan}/epctx
work=${EPCTX_TEST_FOLDER:-$top/build}/edit
data=/usr/share/libonnx-testdata/data
models=${EPCTX_TEST_MODELS:-}
status=0

rm -rf "$work"
mkdir -p "$work/judge"
for kind in plain partly; do
    "$python" tests/judge/make_model.py $kind "$work/$kind.onnx" &&
        "$epctx" compile "$work/$kind.onnx" -o "$work/${kind}_ctx.onnx" >"$work/out" || {
        echo "FAIL models: $kind could not be made"
        exit 1
    }
done
cd "$work" || exit 1
log=${EPCTX_TEST_FOLDER:-$top/build}/edit.log

# Runs the tool; $code, $log.out and $log.err hold what came of it.
epctx() {
    "$epctx" "$@" >"$log.out" 2>"$log.err"
    code=$?
}
ok() { echo "ok $1"; }
fail() {
    echo "FAIL $1: $2"
    sed 's/^/  /' "$log.out" "$log.err" | head -n 20
    status=1
}
# result NAME TEXT: the last command worked and said TEXT.
result() {
    if [ "$code" -ne 0 ]; then fail "$1" "exit code $code"
    elif [ -s "$log.err" ]; then fail "$1" "there is something on standard error"
    elif ! grep -qF -e "$2" "$log.out"; then fail "$1" "expected '$2'"
    else ok "$1"; fi
}
sums() { find . -type f -exec cksum {} + | LC_ALL=C sort; find . ! -type f | LC_ALL=C sort; }
# refused NAME CODE TEXT ARGUMENTS...: exit code, a message with TEXT, and every
# file as it was.
refused() {
    name=$1 want=$2 text=$3
    shift 3
    before=$(sums)
    epctx "$@"
    unchanged "$name" "$want" "$text"
}
unchanged() {
    if [ "$code" -ne "$2" ]; then fail "$1" "exit code $code, expected $2"
    elif ! grep -q '^epctx: ' "$log.err"; then fail "$1" "no message on standard error"
    elif ! grep -qF -e "$3" "$log.err"; then fail "$1" "expected '$3'"
    elif [ "$before" != "$(sums)" ]; then fail "$1" "a file changed"
    else ok "$1"; fi
}
# value NAME WANT FILE WHAT: what `epctx get` tells.
value() {
    found=$("$epctx" get "$3" "$4" 2>&1)
    if [ "$found" = "$2" ]; then ok "$1"; else fail "$1" "expected '$2', found '$found'"; fi
}
same() {
    if cmp -s "$2" "$3"; then ok "$1"; else fail "$1" "$2 and $3 differ"; fi
}

# -- set and unset --
epctx set plain_ctx.onnx -o a.onnx notes=first metadata:team=npu opset:test.domain=2 \
    model:producer_name=me graph:doc_string=words extra:floats=1,-0.5
result "set" "notes = 'first'"
value "set an attribute" first a.onnx notes
value "set metadata" npu a.onnx metadata:team
epctx info a.onnx; result "set a field" "producer       me"
epctx unset a.onnx --in-place notes extra metadata:team opset:test.domain graph:doc_string
result "unset" "without notes"
epctx set a.onnx --in-place notes="$("$epctx" get plain_ctx.onnx notes)" \
    "model:producer_name=epctx tests"
result "set --in-place" "write a.onnx"
epctx diff plain_ctx.onnx a.onnx
if [ "$code" -eq 0 ]; then ok "what was taken back is as before"
else fail "what was taken back is as before" "exit code $code"; fi
head -c 100000 /dev/zero | tr '\0' x >payload
epctx set plain_ctx.onnx -o b.onnx notes=@payload ep_sdk_version=@@home
result "set from a file" "notes = 100000 bytes"
"$epctx" get b.onnx notes >found; same "the file's bytes are the value" payload found
value "a text that starts with @" @home b.onnx ep_sdk_version
epctx set partly_ctx.onnx -o c.onnx --all hardware_architecture=generic
result "set --all" "hardware_architecture"
[ "$(grep -c hardware_architecture "$log.out")" -eq 2 ] || fail "set --all" "expected two nodes"
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
result "set --all from a file" "notes = 100000 bytes"
[ "$(grep -c 'notes = 100000 bytes' "$log.out")" -eq 102 ] ||
    fail "set --all from a file" "expected 102 nodes"
for node in n0 n99; do
    "$epctx" get c.onnx --node $node notes >found
    same "the file's bytes are the value of $node" payload found
done
printf 'caf\351' >latin1
epctx set plain_ctx.onnx -o l.onnx notes=@latin1
result "bytes in an attribute" "notes"
for what in metadata:team model:producer_name model:doc_string graph:name graph:doc_string; do
    refused "$what is UTF-8" 2 "is not UTF-8" set plain_ctx.onnx -o x.onnx -f "$what=@latin1"
done
latin1=$(cat latin1)
for kind in metadata:@ @:int opset:@; do
    refused "the name in $kind is UTF-8" 2 "is not UTF-8" \
        set plain_ctx.onnx -o x.onnx -f "${kind%@*}$latin1${kind#*@}=1"
done
epctx set partly.onnx -o c.onnx -f --node strange axis:int=3 'text=plain text' 'graph:outputs=y'
result "set on an ordinary node" "axis = 3 (new)"

refused "set without a place for the result" 2 "--in-place" set plain_ctx.onnx notes=x
refused "set to two places" 2 "exclude" set plain_ctx.onnx -o x.onnx --in-place notes=x
refused "set with a strange policy" 2 "fail, replace or backup" \
    set plain_ctx.onnx -o x.onnx --overwrite perhaps notes=x
refused "set nothing" 2 "usage: epctx set" set plain_ctx.onnx -o x.onnx
refused "set without a value" 2 "WHAT=VALUE" set plain_ctx.onnx -o x.onnx notes
refused "set an unknown field" 2 "model:ir_version" set plain_ctx.onnx -o x.onnx model:colour=red
refused "set a new attribute without its type" 2 "NAME:int=" set plain_ctx.onnx -o x.onnx depth=1
refused "set against the schema" 2 "schema" set plain_ctx.onnx -o x.onnx notes:int=1
refused "set a number that is none" 2 "no whole number" set plain_ctx.onnx -o x.onnx max_size=big
refused "set a value out of range" 1 "only 0 and 1" set plain_ctx.onnx -o x.onnx embed_mode=5
refused "set from a missing file" 1 "nowhere" set plain_ctx.onnx -o x.onnx notes=@nowhere
refused "set on one of several nodes" 1 "--node" set partly_ctx.onnx -o x.onnx notes=x
refused "set on an unknown node" 1 "there is no node 'nobody'" \
    set partly_ctx.onnx -o x.onnx --node nobody notes=x
grep -q "EPContext nodes: 'EpctxNpuExecutionProvider_.*_0' 'EpctxNpu" "$log.err" ||
    fail "set on an unknown node" "the nodes are not listed"
refused "set without an EPContext node" 1 "'conv' 'relu' 'pool'" set plain.onnx -o x.onnx notes=x
refused "set an order that is none" 2 "each one once" set plain.onnx -o x.onnx graph:outputs=y,y
refused "unset what is not there" 1 "ep_cache_context" unset plain_ctx.onnx -o x.onnx colour
refused "unset metadata that is not there" 1 "no metadata key" \
    unset plain_ctx.onnx -o x.onnx metadata:colour
refused "a missing model" 1 "missing.onnx" set missing.onnx -o x.onnx notes=x
head -c 200 plain_ctx.onnx >cut.onnx
refused "a broken model" 1 "cut off" set cut.onnx -o x.onnx notes=x

# -- where it is written --
refused "a file in the way" 1 "-f replaces it" set plain_ctx.onnx -o a.onnx notes=x
refused "a folder in the way" 1 "folder" set plain_ctx.onnx -o judge notes=x
refused "a missing folder" 1 "no/x.onnx" set plain_ctx.onnx -o no/x.onnx notes=x
cp a.onnx old.onnx
epctx set plain_ctx.onnx -o a.onnx --overwrite backup notes=x
result "a backup" "a.onnx~"
same "the backup is the old file" old.onnx a.onnx~
cp a.onnx old.onnx
epctx set a.onnx --in-place --overwrite backup notes=y; result "a second backup" "a.onnx~2"
same "the second backup is the old file" old.onnx a.onnx~2
chmod 640 a.onnx
ln -s a.onnx link.onnx
epctx set link.onnx --in-place notes=z; result "through a link" "write link.onnx"
if [ -h link.onnx ] && [ "$(stat -c %a a.onnx)" = 640 ]; then ok "link and mode stay"
else fail "link and mode stay" "$(ls -l link.onnx a.onnx)"; fi
value "the file behind the link changed" z a.onnx notes
"$epctx" set plain_ctx.onnx -o - notes=piped >piped.onnx 2>"$log.err"
value "standard output" piped piped.onnx notes
"$epctx" set plain_ctx.onnx -o - --json notes=piped 2>"$log.err" | cmp -s - piped.onnx &&
    "$python" -m json.tool <"$log.err" >"$log.out" && ok "report of standard output" ||
    fail "report of standard output" "no JSON on standard error, or another model"
if [ -w /dev/full ]; then
    before=$(sums)
    "$epctx" set plain_ctx.onnx -o - notes=x >/dev/full 2>"$log.err"; code=$?
    : >"$log.out"
    unchanged "standard output is full" 1 "standard output"
fi
# A file may not grow: what a full disk looks like to the program.
before=$(sums)
(trap '' XFSZ; ulimit -f 8; "$epctx" set plain_ctx.onnx -o x.onnx notes=@payload) \
    >"$log.out" 2>"$log.err"; code=$?
unchanged "no room for the file" 1 "x.onnx"
before=$(sums)
(trap '' XFSZ; ulimit -f 8; "$epctx" set b.onnx --in-place --overwrite backup metadata:k=v) \
    >"$log.out" 2>"$log.err"; code=$?
unchanged "no room for the file in place" 1 "b.onnx"
# A payload is never copied to memory: 300 MB go through 8 MB.
truncate -s 300M huge
if (ulimit -d 8192; "$top/${EPCTX_BUILD:-build}/epctx" set plain_ctx.onnx -o huge.onnx notes=@huge) \
    >"$log.out" 2>"$log.err" && [ "$(stat -c %s huge.onnx)" -gt 314572800 ] &&
    (ulimit -d 8192; "$top/${EPCTX_BUILD:-build}/epctx" prefix huge.onnx --in-place big_) \
        >>"$log.out" 2>>"$log.err"; then
    ok "a large payload needs no memory"
else
    fail "a large payload needs no memory" "it did not work with 8 MB of memory"
fi
rm -f huge huge.onnx
mkdir locked
cp plain_ctx.onnx locked/m.onnx
chmod 555 locked
before=$(sums)
if [ "$(id -u)" -ne 0 ]; then
    epctx set locked/m.onnx --in-place notes=x
    unchanged "a folder that is read-only" 1 "locked/m.onnx"
elif command -v setpriv >/dev/null; then
    setpriv --reuid=65534 --clear-groups "$epctx" set locked/m.onnx --in-place notes=x \
        >"$log.out" 2>"$log.err"; code=$?
    unchanged "a folder that is read-only" 1 "locked/m.onnx"
else
    echo "skip a folder that is read-only: root may write it, and there is no setpriv"
fi

# -- the plan --
before=$(sums)
epctx set plain_ctx.onnx -n -o new.onnx notes=planned
result "a plan" "write new.onnx, "
epctx set plain_ctx.onnx -o new.onnx --dry-run --json notes=planned
result "a plan as JSON" '"dry_run": true'
if "$python" -m json.tool <"$log.out" >/dev/null 2>&1; then ok "the plan is JSON"
else fail "the plan is JSON" "it is not"; fi
if [ "$before" = "$(sums)" ]; then ok "a plan writes nothing"
else fail "a plan writes nothing" "a file changed"; fi
refused "a plan that cannot be" 1 "exists" set plain_ctx.onnx -n -o a.onnx notes=x

# -- names --
epctx rename partly.onnx -o r.onnx x image y scores
result "rename values" "value 'x': now 'image'"
epctx rename r.onnx -o s.onnx image x scores y
same "renamed back" partly.onnx s.onnx
refused "rename to a name in use" 1 "in use" rename partly.onnx -o x.onnx x y
refused "rename what is not there" 1 "inputs: 'x'" rename partly.onnx -o x.onnx nobody y
refused "rename without a new name" 2 "no new name" rename partly.onnx -o x.onnx x y z
epctx rename --nodes partly.onnx -o n.onnx strange odd; result "rename a node" "now 'odd'"
refused "rename a node to a name in use" 1 "another node" rename --nodes partly.onnx -o x.onnx \
    strange relu
epctx prefix partly_ctx.onnx -o p_ctx.onnx left_; result "prefix" "now 'left_Epctx"
epctx rename p_ctx.onnx --in-place x image; result "rename in a compiled model" "places in all"
refused "rename what the EP finds by name" 1 "--any-io" \
    rename --ep qnn plain_ctx.onnx -o x.onnx x image
epctx rename --ep qnn --any-io plain_ctx.onnx -o i_ctx.onnx x image; result "rename --any-io" "image"
epctx prefix plain_ctx.onnx -o q_ctx.onnx left_; result "prefix of one node" "left_"
for m in plain_ctx q_ctx i_ctx; do
    "$epctx" run $m.onnx --seed 7 --dump $m.io >"$log.out" 2>"$log.err" || fail "run" "$m.onnx"
done
same "a prefix changes no output" plain_ctx.io/output_0.bin q_ctx.io/output_0.bin
same "a renamed input changes no output" plain_ctx.io/output_0.bin i_ctx.io/output_0.bin
refused "prefix where the name is a key" 1 "several nodes share a context" \
    prefix partly_ctx.onnx --ep qnn -o x.onnx left_
epctx prefix plain_ctx.onnx --ep qnn -o alone.onnx left_
result "prefix where the build stamp tells of one graph" "left_"
for op in embed extract; do
    epctx $op $([ $op = embed ] && echo plain || echo embed)_ctx.onnx -o ${op}_ctx.onnx -f
    epctx prefix ${op}_ctx.onnx --ep qnn -o alone.onnx -f left_
    result "prefix after $op" "left_"
done
epctx unset plain_ctx.onnx -o unsaid_ctx.onnx metadata:epctx.build.EpctxNpuExecutionProvider
epctx embed unsaid_ctx.onnx -o unsaid_embed_ctx.onnx
for m in unsaid unsaid_embed; do
    refused "prefix of a binary that may hold more ($m)" 1 "--one-graph" \
        prefix ${m}_ctx.onnx --ep qnn -o x.onnx left_
    refused "rename of a node in a binary that may hold more ($m)" 1 "--one-graph" \
        rename --nodes ${m}_ctx.onnx --ep qnn -o x.onnx "$("$epctx" dump plain_ctx.onnx |
        sed -n "s/.*\(EpctxNpuExecutionProvider_[0-9a-f]*_0\).*/\1/p" | head -n 1)" new
done
epctx prefix unsaid_ctx.onnx --ep qnn --one-graph -o q.onnx left_; result "prefix --one-graph" "left_"
refused "prefix of no EPContext node" 1 "no EPContext node" prefix plain.onnx -o x.onnx left_
first=$("$epctx" dump partly_ctx.onnx | sed -n "s/.*\(EpctxNpuExecutionProvider_[0-9a-f]*_0\).*/\1/p" | head -n 1)
epctx rename --nodes partly_ctx.onnx -o clash.onnx strange "left_$first"
result "a name that a prefix will meet" "now 'left_"
refused "prefix that makes a clash" 1 "another node" prefix clash.onnx -o x.onnx left_

# -- judged --
cd "$top" || exit 1
if [ -d $data ]; then
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
"$python" tests/judge/edit.py ${EPCTX_BUILD:-build}/epctx "$work/judge" "$work/plain_ctx.onnx" "$@" || status=1

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
    ORT_BINDING=$(tests/deps.sh where ort) ORT_DISABLE_TELEMETRY=1 \
        "$python" tests/judge/edit.py ${EPCTX_BUILD:-build}/epctx "$work/judge" --ort "$@" || status=1
fi
exit $status
