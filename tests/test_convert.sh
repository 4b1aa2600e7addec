#!/bin/sh
# embed, extract, mv, init and weightless as a user meets them: results judged by libprotobuf, by
# lint and by ONNX Runtime; bad input; and killed at every system call that writes.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
judge=$top/tests/judge
chattr -i "${EPCTX_TEST_FOLDER:-$top/build}/convert/locked" 2>/dev/null
start convert
make_models plain partly
cd "$work" || exit 1

# Nothing but the intended change, and nothing that lint objects to.
judged() {
    if "$python" "$judge/convert.py" "$2" "$3" "$4" >out 2>err; then ok "$1: libprotobuf"
    else fail "$1: libprotobuf" "see below"; fi
    epctx lint "$4"; result "$1: lint" 0
}

# -- usage --
for command in embed extract init weightless mv; do
    epctx $command --help; result "help of $command" 0 "usage: epctx $command"
    epctx $command --nonsense; result "$command with an unknown option" 2 "--nonsense"
    epctx $command; result "$command without a file" 2 "usage: epctx $command"
done
epctx embed plain.onnx; result "embed without a place for the result" 2 "--in-place"
epctx init plain.onnx -o x.onnx; result "init without a task" 2 "--inline"
epctx init --prune --align 8 plain.onnx -o x.onnx; result "init --prune --align" 2 "--external"
epctx init --external --align 3 plain.onnx -o x.onnx; result "alignment 3" 1 "power of two"
epctx init --external --threshold -1 plain.onnx -o x.onnx; result "threshold -1" 2 "--threshold"

# -- embed and extract: what compile writes, both ways --
epctx compile partly.onnx -o m_ctx.onnx
epctx compile partly.onnx -o want.onnx --embed
epctx embed m_ctx.onnx -o e.onnx; result "embed" 0 "embedded "
main=$(sed -n "s/^embedded '\([^']*\)'.*/\1/p" out)
same "embed gives what compile --embed writes" e.onnx want.onnx
judged "embed" contexts m_ctx.onnx e.onnx
mkdir sub
epctx extract e.onnx -o sub/m_ctx.onnx; result "extract" 0 "write sub/m_npu.bin"
same "extract gives what compile writes" sub/m_ctx.onnx m_ctx.onnx
same "extract gives the binary" sub/m_npu.bin m_npu.bin
judged "extract" contexts e.onnx sub/m_ctx.onnx
epctx embed sub/m_ctx.onnx -o again.onnx; same "embed, extract, embed" again.onnx e.onnx
epctx extract e.onnx -o m2_ctx.onnx --name m_npu.bin
result "extract keeps equal files" 0 "keep m_npu.bin"
cp e.onnx in.onnx
epctx extract --in-place in.onnx --json; result "extract --in-place --json" 0
"$python" -c 'import json; r = json.load(open("out")); assert r["files"][0] == {"action": "write",
"path": "in_npu.bin", "size": r["files"][0]["size"]} and len(r["changes"]) == 2, r' 2>err ||
    fail "extract --json" "see below"
epctx embed --in-place in.onnx; same "embed --in-place" in.onnx e.onnx
rm -f in_npu.bin
epctx extract --in-place --dry-run in.onnx; result "extract --dry-run" 0 "dry run"
mkdir away
cp e.onnx away/m.onnx && ln -s away/m.onnx linked.onnx
epctx extract --in-place linked.onnx
result "extract --in-place through a link: who reads it there" 0 "linked.onnx needs"
rm -r away linked.onnx
same "extract --dry-run writes no model" in.onnx e.onnx
[ -e in_npu.bin ] && fail "extract --dry-run" "wrote a binary"
epctx embed m_ctx.onnx -o -; same "embed to standard output" out e.onnx
epctx extract e.onnx -o -; result "extract to standard output" 1 "several files"
epctx embed m_ctx.onnx -o sub/e.onnx; result "embed into another folder" 0
epctx embed --node nobody m_ctx.onnx -o x.onnx; result "embed of an unknown node" 1 "nobody"
epctx embed plain.onnx -o x.onnx; result "embed of an ordinary model" 1 "compile the model first"

# -- weights --
epctx init --external --threshold 0 plain.onnx -o x.onnx
result "init --external" 0 "write x.onnx.data"
judged "init --external" weights plain.onnx x.onnx
epctx init --inline x.onnx -o i.onnx; result "init --inline" 0 "inlined 'w'"
judged "init --inline" weights plain.onnx i.onnx
epctx init --external --threshold 0 i.onnx -o x2.onnx --name x.onnx.data
result "init keeps equal files" 0 "keep x.onnx.data"
same "init --external, --inline, --external" x.onnx x2.onnx
epctx init --inline x.onnx -o sub/i.onnx; same "init --inline into another folder" sub/i.onnx i.onnx
epctx init --external x.onnx -o sub/x.onnx
result "a file would be left behind" 1 "copy the file there first"
epctx init --prune plain.onnx -o p.onnx; same "init --prune has nothing to do" p.onnx plain.onnx
epctx weightless m_ctx.onnx -o x3.onnx; result "weightless needs the EP" 1 "ep.enable_weightless"
"$python" "$judge/convert.py" weightless i.onnx wl.onnx
"$python" "$judge/convert.py" spoil i.onnx other.onnx
epctx weightless --source i.onnx wl.onnx -o x4.onnx
result "weightless" 0 "external 'w'"
epctx weightless --source other.onnx wl.onnx -o x5.onnx
result "weightless with a wrong source" 1 "it is a different model"
[ ! -e x5.onnx ] || fail "weightless with a wrong source" "x5.onnx was written"
epctx weightless --self-contained --source a m_ctx.onnx -o x3.onnx; result "weightless usage" 2

# -- mv --
mkdir mv
cp m_ctx.onnx mv/one_ctx.onnx
cp m_ctx.onnx mv/two_ctx.onnx
cp m_npu.bin mv/
epctx mv --dry-run mv/m_npu.bin mv/new.bin; result "mv --dry-run" 0 "rename mv/m_npu.bin"
epctx mv mv/m_npu.bin mv/new.bin; result "mv" 0 "two_ctx.onnx: 1 node"
[ "$(ls mv | tr '\n' ' ')" = "new.bin one_ctx.onnx two_ctx.onnx " ] || fail "mv" "$(ls mv)"
judged "mv" contexts m_ctx.onnx mv/two_ctx.onnx
mkdir mv/deep
epctx mv mv/new.bin mv/deep/er.bin --json; result "mv into a folder" 0 '"note": "mv/deep/er.bin"'
epctx get --node "$main" mv/one_ctx.onnx ep_cache_context
result "the name in a folder" 0 "deep/er.bin"
epctx mv mv/deep/er.bin mv/m_npu.bin mv/one_ctx.onnx mv/two_ctx.onnx; result "mv of given models" 0
same "mv there and back" mv/one_ctx.onnx m_ctx.onnx
epctx mv mv/m_npu.bin mv/m_npu.bin; result "mv onto itself" 1 "already has this name"
# All models are renamed and the old name is still there: a kill at the end. An equal file is no
# rest.
ln mv/m_npu.bin mv/old.bin
epctx mv mv/old.bin mv/m_npu.bin; result "mv completes what was left" 0
[ -e mv/old.bin ] && fail "mv completes what was left" "the old name stays"
cp mv/m_npu.bin mv/old.bin
epctx mv mv/old.bin mv/m_npu.bin; result "mv of a copy that nobody names" 1 "no EPContext node"
rm mv/old.bin
epctx mv mv/m_npu.bin other.bin; result "mv out of the folder" 1 "outside of the model's folder"
# A link is neither followed nor replaced, wherever it leads.
mkdir ln ln/away
cp mv/one_ctx.onnx mv/m_npu.bin ln
cp mv/m_npu.bin ln/away/x.bin
(cd ln && ln -s m_npu.bin beside.bin && ln -s away/x.bin inside.bin &&
    ln -s ../mv/m_npu.bin out.bin && ln -s nowhere lost.bin && ln -s away folder)
before=$(cd ln && state && readlink ./*.bin folder)
for link in beside inside out; do
    epctx mv ln/$link.bin ln/new.bin; result "mv of a link: $link" 1 "ln/$link.bin: is a link to /"
    epctx mv ln/$link.bin ln/new.bin ln/one_ctx.onnx
    result "mv of a link, given a model: $link" 1 "specify the file itself"
    epctx mv ln/m_npu.bin ln/$link.bin; result "mv onto a link: $link" 1 "is a link to"
done
epctx mv ln/lost.bin ln/new.bin; result "mv of a link to nowhere" 1 "ln/lost.bin: "
epctx mv ln/m_npu.bin ln/lost.bin; result "mv onto a link to nowhere" 1 "exists already"
ln -sfn ../mv ln/folder
epctx mv ln/m_npu.bin ln/folder/new.bin
result "mv through a link to another folder" 1 "outside of the model's folder"
ln -sfn away ln/folder
if [ "$before" = "$(cd ln && state && readlink ./*.bin folder)" ]; then ok "mv and links"
else fail "mv and links" "$(ls -lR ln)"; fi
rm -r ln
epctx mv plain.onnx other.bin mv/one_ctx.onnx
result "mv of a file that no node names" 1 "nothing is renamed"
echo broken >mv/broken.onnx
mkdir mv/folder.onnx # nobody knows what is in it
epctx mv mv/m_npu.bin mv/x.bin
result "mv beside what cannot be read" 1 "mv/folder.onnx: is a folder"
rmdir mv/folder.onnx
epctx mv mv/m_npu.bin mv/x.bin; result "mv beside a broken model" 0 "skipped mv/broken.onnx"
epctx mv mv/x.bin mv/y.bin mv/one_ctx.onnx mv/two_ctx.onnx mv/broken.onnx
result "mv of a broken model that is named" 1 "broken.onnx"
rm -r mv

# -- what goes wrong leaves the folder as it was --
sum() { (cd bad && find . -type f -exec cksum {} + | sort; ls -A); }
# bad NAME TEXT COMMAND...: exit code 1, TEXT in the message, the folder unchanged
bad() {
    name=$1 text=$2
    shift 2
    before=$(sum)
    "$@" >out 2>err
    code=$?
    result "$name" 1 "$text"
    [ "$(sum)" = "$before" ] || fail "$name" "the folder changed: $(ls bad)"
}
mkdir bad
cp e.onnx m_ctx.onnx m_npu.bin plain.onnx bad
echo other >bad/clash.bin
bad "name clash" "choose another name" "$epctx" extract bad/e.onnx -o bad/new.onnx --name clash.bin
bad "name of the model" "the model itself" "$epctx" extract --in-place bad/e.onnx --name e.onnx
bad "name out of the folder" "'..'" "$epctx" extract --in-place bad/e.onnx --name ../x.bin
bad "missing folder" "folder does not exist" "$epctx" extract --in-place bad/e.onnx --name no/x.bin
bad "result exists" "-f replaces it" "$epctx" embed bad/m_ctx.onnx -o bad/e.onnx
bad "mv onto a file" "exists with other bytes" \
    "$epctx" mv bad/m_npu.bin bad/clash.bin bad/m_ctx.onnx
"$epctx" unset bad/m_ctx.onnx -o bad/mute_ctx.onnx --all source >out 2>err
"$epctx" unset bad/e.onnx -o bad/mute.onnx --all source >out 2>err
bad "profile forbids" "31977" "$epctx" embed --profile qnn --in-place bad/mute_ctx.onnx
bad "profile forbids files" "embedded contexts only" \
    "$epctx" extract --profile telum --in-place bad/mute.onnx
rm bad/mute*
cp bad/m_npu.bin m_npu.kept
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n' >bad/m_npu.bin
bad "no context binary" "git lfs pull" "$epctx" embed bad/m_ctx.onnx -o bad/new.onnx --allow-stale
mv m_npu.kept bad/m_npu.bin
# A file size limit: writing fails as on a full disk.
bad "no room for the binary" "bad/e_npu.bin" sh -c "trap '' XFSZ; ulimit -f 1
exec '$epctx' extract --in-place bad/e.onnx"
bad "no room for the model" "bad/m_ctx.onnx" sh -c "trap '' XFSZ; ulimit -f 1
exec '$epctx' embed --in-place bad/m_ctx.onnx"
if mkdir tiny && mount -t tmpfs -o size=8k none tiny 2>/dev/null; then
    cp m_ctx.onnx m_npu.bin tiny
    before=$(ls -lR tiny)
    epctx embed --in-place tiny/m_ctx.onnx; result "full disk" 1 "No space left"
    [ "$(ls -lR tiny)" = "$before" ] || fail "full disk" "the folder changed"
    umount tiny
else
    echo "skip full disk: no file system can be mounted here"
fi
mkdir locked
cp e.onnx m_ctx.onnx m_npu.bin locked
refusal="not permitted" # root's word; anybody else hears of permissions
if chattr +i locked 2>/dev/null || { refusal="Permission denied" && chmod a-w locked &&
    [ ! -w locked ]; }; then
    before=$(ls -l locked)
    epctx extract --in-place locked/e.onnx; result "read-only folder: extract" 1 "$refusal"
    epctx embed --in-place locked/m_ctx.onnx; result "read-only folder: embed" 1 "$refusal"
    epctx mv locked/m_npu.bin locked/x.bin; result "read-only folder: mv" 1 "$refusal"
    [ "$(ls -l locked)" = "$before" ] || fail "read-only folder" "it changed"
    chattr -i locked 2>/dev/null
    chmod u+w locked
else
    echo "skip read-only folder: root may write everywhere, and chattr does not work here"
fi

# -- killed at every system call that writes --
# The model is there and the context of its node is what it has to be.
context_is() {
    [ -e "$1" ] && "$plain" get --node "$2" "$1" context >got 2>err && cmp -s got "$3"
}
external_setup() { cp m_ctx.onnx m_npu.bin crash; }
embedded_setup() { cp e.onnx crash/m_ctx.onnx; }
context_check() {
    context_is crash/m_ctx.onnx "$main" m_npu.bin
}
# A model of one generation beside the binary of another, which is replaced with it.
generation_setup() { cp g1.onnx crash/m_ctx.onnx; cp g1.bin crash/m_fakeep.bin; }
generation_check() {
    if [ ! -e crash/m_ctx.onnx ]; then return 0; fi # a binary without a model
    if cmp -s crash/m_ctx.onnx g1.onnx; then context_is crash/m_ctx.onnx n one.onnx.context
    else context_is crash/m_ctx.onnx n two.onnx.context; fi
}
move_setup() { cp m_ctx.onnx m_npu.bin crash; cp m_ctx.onnx crash/n_ctx.onnx; }
move_check() {
    context_is crash/m_ctx.onnx "$main" m_npu.bin && context_is crash/n_ctx.onnx "$main" m_npu.bin
}
weights_setup() { cp plain.onnx crash/m.onnx; }
weights_check() {
    "$plain" init --inline crash/m.onnx -o crash/check.onnx >out 2>err &&
        cmp -s crash/check.onnx "$inlined"
}
inline_setup() { cp x.onnx crash/m.onnx; cp x.onnx.data crash; }

nothing_setup() { :; }
result_check() { [ ! -e crash/r_ctx.onnx ] || context_is crash/r_ctx.onnx "$main" m_npu.bin; }
wrap_check() { [ ! -e crash/r_ctx.onnx ] || context_is crash/r_ctx.onnx w w.bin; }

if strace -qq -o /dev/null true 2>/dev/null; then
    "$python" "$judge/convert.py" generations one.onnx two.onnx
    "$plain" extract one.onnx -o m_ctx1.onnx --name m_fakeep.bin >out
    mv m_ctx1.onnx g1.onnx
    mv m_fakeep.bin g1.bin
    crash "embed is killed" external_setup context_check embed --in-place crash/m_ctx.onnx
    crash "extract is killed" embedded_setup context_check extract --in-place crash/m_ctx.onnx
    crash "extract over another generation is killed" generation_setup generation_check \
        extract two.onnx -o crash/m_ctx.onnx --name m_fakeep.bin -f
    crash "mv is killed" move_setup move_check mv crash/m_npu.bin crash/new.bin
    # A killed --external leaves typed or raw data: compared after coming in again.
    inlined=$work/i.onnx
    cp i.onnx plain_raw.onnx
    weights_setup() { cp plain_raw.onnx crash/m.onnx; }
    crash "init --external is killed" weights_setup weights_check init --external --threshold 0 \
        --in-place crash/m.onnx
    crash "init --inline is killed" inline_setup weights_check init --inline --in-place crash/m.onnx
    crash "set is killed" external_setup context_check set --in-place crash/m_ctx.onnx \
        --node "$main" notes=changed
    crash "repair is killed" external_setup context_check repair --in-place crash/m_ctx.onnx
    crash "merge is killed" nothing_setup result_check merge m_ctx.onnx plain.onnx \
        -o crash/r_ctx.onnx
    crash "split is killed" nothing_setup result_check split m_ctx.onnx --outputs y \
        -o crash/r_ctx.onnx
    printf 'FAKE\001' >w.bin
    crash "wrap is killed" nothing_setup wrap_check wrap w.bin --profile qnn --name w \
        --outputs 'y:float32[1]' -o crash/r_ctx.onnx
else
    echo "skip killed: strace cannot trace here"
fi

# -- time --
if command -v sync >/dev/null; then
    head -c 268435456 /dev/urandom >big.bin
    PYTHONPATH=$top/tests/judge "$python" - <<'END'
import onnx_schema
model = onnx_schema.ModelProto(ir_version=8)
node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name="n", output=("y",))
node.attribute.add(name="embed_mode", type=2, i=0)
node.attribute.add(name="ep_cache_context", type=3, s=b"big.bin")
open("big.onnx", "wb").write(model.SerializeToString())
END
    # A build stamp: what the refusal of a wrong one says is right.
    epctx set --in-place big.onnx source=X "metadata:epctx.build.X=binary 268435456 0"
    epctx embed big.onnx -o big_e.onnx
    result "256 MiB and a stamp" 1 "the model was compiled with one of hash 0000000000000000: "
    hash=$(printf '%16s' "$(sed -n 's/.* has hash \([0-9a-f]*\),.*/\1/p' err)" | tr ' ' 0)
    epctx set --in-place big.onnx "metadata:epctx.build.X=binary 268435456 $hash"
    # Pieces end at multiples of 1 MiB, and go to the disk while the next ones are written: else a
    # durable result takes twice as long as cp and fsync.
    if strace -qq -o /dev/null true 2>/dev/null; then
        strace -qq -o traced -e trace=write,sync_file_range,fsync,fdatasync \
            "$plain" embed big.onnx -o big_e.onnx >out
        "$python" - traced <<'END' >got 2>&1 || fail "256 MiB go early to the disk" "$(cat got)"
import collections, re, sys
at, started, calls = 0, 0, collections.Counter()
for line in open(sys.argv[1]):
    name, size = re.match(r"(\w+)\(.*= (\d+)", line).groups()
    calls[name] += 1
    if name == "write" and not calls["fsync"]:
        assert (at + int(size)) >> 20 == (at >> 20) + 1 or int(size) < 4096, (at, size)
        at += int(size)
    if name == "sync_file_range":
        start, length = map(int, re.findall(r", (\d+)", line))
        assert start == started and start + length == at, line
        started = at
assert at - started < 16 << 20 and calls["fsync"] == 2 and not calls["fdatasync"], (started, calls)
END
    else
        echo "skip 256 MiB go early to the disk: strace cannot trace here"
    fi
    now() { "$python" -c 'import time; print(int(time.time() * 1000))'; }
    for i in 1 2 3; do
        t0=$(now)
        cp --reflink=never --sparse=never big.bin copy.bin && sync copy.bin
        t1=$(now)
        "$plain" embed big.onnx -o big_e.onnx -f >out
        t2=$(now)
        "$plain" extract big_e.onnx -o big_x.onnx --name out.bin >out
        t3=$(now)
        "$plain" set big_e.onnx -o big_s.onnx notes=x >out
        t4=$(now)
        echo "$((t1 - t0)) $((t2 - t1)) $((t3 - t2)) $((t4 - t3))" >>durations
        same "256 MiB in and out" out.bin big.bin
        rm -f copy.bin out.bin big_x.onnx big_s.onnx
    done
    median() { cut -d ' ' -f "$1" durations | sort -n | sed -n 2p; }
    echo "note convert: 256 MiB, durable: cp and fsync $(median 1) ms, embed $(median 2) ms," \
        "extract $(median 3) ms, set $(median 4) ms"
    rm -f big* copy.bin out.bin
fi

# -- ONNX Runtime --
driver=$build/tests/test_plugin
model=$(find "$(sh "$top/tests/deps.sh" where blazeface)" -name '*front*.onnx' 2>/dev/null |
    head -n 1)
if ! [ -x "$driver" ] || ! [ -e "$build/libepctx_ep.so" ] || [ -z "$model" ]; then
    echo "skip conversions in ONNX Runtime: needs tests/test_plugin, libepctx_ep.so and the" \
        "demo's model"
    exit $status
fi
mkdir ort
cp "$model" ort/m.onnx
"$plain" compile ort/m.onnx -o ort/m_ctx.onnx >out
"$plain" embed ort/m_ctx.onnx -o ort/e_ctx.onnx >out
"$plain" extract ort/e_ctx.onnx -o ort/x_ctx.onnx >out
"$plain" mv ort/x_npu.bin ort/moved.bin >out
"$plain" init --external ort/m.onnx -o ort/w.onnx >out
"$plain" init --inline ort/w.onnx -o ort/i.onnx >out
# What weightless writes: references into another model.
"$python" "$judge/convert.py" refer ort/i.onnx ort/r.onnx
# Our plugin EP on the result gives what ORT's CPU EP gives on the source.
for name in e_ctx x_ctx w; do
    if (cd "$top" && "$driver" --run "$work/ort/$name.onnx" "$work/ort/m.onnx") >out 2>err; then
        ok "ONNX Runtime: $name"
    else
        fail "ONNX Runtime: $name" "other outputs, or none"
    fi
done
for name in m w i r; do
    (cd "$top" && "$driver" --dump "$work/ort/$name.onnx" "$work/ort/$name") >out 2>err ||
        fail "ONNX Runtime: CPU EP on $name" "does not run"
done
for name in w i r; do
    if diff -r ort/m ort/$name >out 2>err; then ok "ONNX Runtime: CPU EP on $name"
    else fail "ONNX Runtime: CPU EP on $name" "outputs differ"; fi
done
exit $status
