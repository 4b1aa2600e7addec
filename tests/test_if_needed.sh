#!/bin/sh
# epctx compile --if-needed: what is there stays, or is compiled again and the reason told; by one
# of many processes; whatever ends it, the old result stays. The reference NPU, and an EP in a
# library by ONNX Runtime.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/script.sh
start if_needed
one_form
make_models plain digits
cd "$work" || exit 1
"$plain" init --external --threshold 1 --name w.data digits.onnx -o data.onnx >log 2>&1

# decided NAME DECISION REASON ARGUMENTS...: of the JSON; REASON is part of the text, "" for none.
decided() {
    name=$1 decision=$2 reason=$3
    shift 3
    epctx compile --if-needed --json "$@"
    if [ "$code" -ne 0 ]; then fail "$name" "exit code $code"
    elif ! grep -qF "\"decision\": \"$decision\"," out; then fail "$name" "expected $decision"
    elif ! grep '^"reason": ' out | grep -qF -e "${reason:-null}"; then
        fail "$name" "expected the reason '$reason'"
    else ok "$name"; fi
}
# The files beside sources: models and what belongs to them.
results() { find . -maxdepth 1 -name "${1}_ctx*" | LC_ALL=C sort | tr '\n' ' '; }

# -- the reference NPU --

decided "nothing is there" compiled "there is no data_ctx.onnx" data.onnx
[ "$(results data)" = "./data_ctx.onnx ./data_ctx_gen1.bin " ] &&
    ok "files of the first generation" || fail "files of the first generation" "$(results data)"
before=$(state)
decided "nothing changed" up_to_date "" data.onnx
if [ "$before" = "$(state | grep -v -e ' ./out$' -e ' ./err$')" ] ||
    [ "$(find . -newer data_ctx.onnx -name 'data_ctx*')" = "" ]; then ok "nothing is written"
else fail "nothing is written" "a file is new"; fi
epctx compile --if-needed data.onnx; said "in words" 0 "decision       up to date"
mkdir kept
cp data_ctx.onnx kept/first.onnx
cp data_ctx_gen1.bin first.bin
cp data.onnx data.kept
cp w.data w.kept
"$plain" set --in-place data.onnx model:producer_version=7 >log 2>&1
decided "the source changed" compiled_again "data.onnx' has " data.onnx
"$plain" run data_ctx.onnx --seed 1 >log 2>&1 && ok "what was made runs" ||
    fail "what was made runs" "$(cat log)"
cmp -s data_ctx_gen1.bin first.bin && [ -e data_ctx_gen2.bin ] &&
    ok "the generation before is as it was" || fail "the generation before is as it was" "changed"
cp data.kept data.onnx
decided "as it was before" compiled_again "data.onnx'" data.onnx
"$plain" set --in-place data.onnx model:producer_version=77 >log 2>&1
decided "changed once more" compiled_again "data.onnx' has " data.onnx
cp data.kept data.onnx
decided "and as before again" compiled_again "data.onnx'" data.onnx
[ "$(results data | tr ' ' '\n' | grep -c _gen)" = 3 ] && [ -e data_ctx_gen5.bin ] &&
    ok "three generations stay" || fail "three generations stay" "$(results data)"
# What somebody else wrote under such a name stays.
echo precious >data_ctx_gen3.dat
echo precious >data_ctx_gen5.dat
echo precious >data_ctx_gen99.bin
for round in 1 2 3 4 5; do
    "$plain" set --in-place data.onnx model:producer_version=$round >log 2>&1
    epctx compile --if-needed data.onnx
done
[ "$(results data)" = "./data_ctx.onnx ./data_ctx_gen102.bin ./data_ctx_gen103.bin \
./data_ctx_gen104.bin ./data_ctx_gen3.dat ./data_ctx_gen5.dat ./data_ctx_gen99.bin " ] &&
    [ "$(cat data_ctx_gen3.dat data_ctx_gen5.dat data_ctx_gen99.bin | sort -u)" = precious ] &&
    ok "files of others stay" || fail "files of others stay" "$(results data)"
echo precious >data_ctx_gen103.bin
for round in 6 7 8; do
    "$plain" set --in-place data.onnx model:producer_version=$round >log 2>&1
    epctx compile --if-needed data.onnx
done
[ "$(cat data_ctx_gen103.bin)" = precious ] && [ ! -e data_ctx_gen104.bin ] &&
    ok "and what somebody changed" || fail "and what somebody changed" "$(results data)"
rm -f data_ctx*
cp data.kept data.onnx
for round in 1 2 3; do
    "$plain" set --in-place data.onnx model:producer_version=$round >log 2>&1
    [ $round != 3 ] || cp data.kept data.onnx
    epctx compile --if-needed data.onnx
done
cmp -s first.bin data_ctx_gen3.bin && ok "the same bytes again" ||
    fail "the same bytes again" "they differ"
printf '\001\002' | dd of=w.data bs=1 seek=100 conv=notrunc 2>/dev/null
decided "its data file changed" compiled_again "w.data' has changed" data.onnx
cp w.kept w.data
decided "and is back" compiled_again "w.data' has changed" data.onnx
decided "another option" compiled_again "other options" --embed data.onnx
decided "and stays" up_to_date "" --embed data.onnx
decided "without it" compiled_again "other options" data.onnx
# edit_stamp FILE EP WORD TEXT: as if it had been compiled so.
edit_stamp() {
    key=metadata:epctx.build.$2
    "$plain" get "$1" "$key" >stamp 2>log && sed "s|^$3 .*|$3 $4|" stamp >stamp.new &&
        ! cmp -s stamp stamp.new &&
        "$plain" set --in-place -f "$1" "$key=$(cat stamp.new)" >log 2>&1 ||
        fail "a stamp is edited" "$(cat log)"
}
edit_stamp data_ctx.onnx EpctxNpuExecutionProvider arch huge
decided "another architecture" compiled_again "for huge, this is generic" data.onnx
edit_stamp data_ctx.onnx EpctxNpuExecutionProvider sdk 0.1
decided "another SDK" compiled_again "by SDK 0.1, this is" data.onnx
decided "fresh" up_to_date "" data.onnx

# -- damage --

newest() { find . -maxdepth 1 -name 'data_ctx_gen*' | sort -V | tail -n 1; }
damaged() { # NAME REASON: what is there is damaged
    decided "$1" compiled_again "$2" data.onnx
    decided "$1: cured" up_to_date "" data.onnx
    cmp -s first.bin "$(newest)" || fail "$1: the same binary" "it differs"
}
dd if=first.bin of="$(newest)" bs=100 count=1 2>/dev/null; damaged "a binary is cut" "100"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n' >"$(newest)"
damaged "a binary is a pointer of Git LFS" "bytes"
rm "$(newest)"; damaged "a binary is gone" "context binary"
: >"$(newest)"; damaged "a binary is empty" "empty"
# What is there is replaced only when it was made from this source, by this EP.
foreign() { # NAME REASON: so is it, and -f replaces it
    before=$(cksum data_ctx.onnx)
    for policy in "" "--overwrite fail"; do
        # shellcheck disable=SC2086 # words
        epctx compile --if-needed $policy data.onnx
        [ "$before" = "$(cksum data_ctx.onnx)" ] || fail "$1: refused" "it is replaced"
        result "$1: refused $policy" 1 "exists already, and "
    done
    decided "$1" compiled_again "$2" -f data.onnx
    decided "$1: cured" up_to_date "" data.onnx
    cmp -s first.bin "$(newest)" || fail "$1: the same binary" "it differs"
}
dd if=kept/first.onnx of=data_ctx.onnx bs=200 count=1 2>/dev/null
foreign "the model is cut" "data_ctx.onnx"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n' >data_ctx.onnx
foreign "the model is a pointer of Git LFS" "data_ctx.onnx"
cp plain.onnx data_ctx.onnx; foreign "another model" "no build stamp"
epctx compile -o other_ctx.onnx digits.onnx
cp other_ctx.onnx data_ctx.onnx; foreign "the result of another model" "bytes, it was compiled"
noise() { { printf '\001\377' && head -c 498 /dev/zero; }; }
noise >qnn.bin
"$plain" wrap qnn.bin --profile qnn --inputs 'x:float32[1]' --outputs 'y:float32[1]' -o q.onnx \
    >log 2>&1 && "$plain" stamp q.onnx --source data.onnx -f -o data_ctx.onnx >log 2>&1 ||
    fail "a model of another EP" "$(cat log)"
foreign "a model of another EP" "no build stamp"
: >data_ctx.onnx; foreign "an empty file" "data_ctx.onnx"
echo notes >data_ctx.onnx; foreign "a text" "data_ctx.onnx"
# A neighbour keeps what it needs, whatever -f says.
before=$(state | grep -v -e ' ./out$' -e ' ./err$')
for file in q.onnx w.data qnn.bin; do
    epctx compile --if-needed plain.onnx -o $file; result "no $file" 1 "exists already, and "
done
for file in w.data qnn.bin; do
    epctx compile --if-needed plain.onnx -f -o $file; result "-f, no $file" 1 " this file: "
done
rm -f ./*.lock
[ "$before" = "$(state | grep -v -e ' ./out$' -e ' ./err$' -e '\.lock$')" ] &&
    ok "all of them stay" || fail "all of them stay" "a file changed"
cp data_ctx.onnx renamed_ctx.onnx
cp data.onnx renamed.onnx
decided "the same source by another name" compiled_again "other options" --embed renamed.onnx
rm renamed*
# A copy of the model keeps the files that it names.
cp data_ctx.onnx kept.onnx
"$plain" set --in-place data.onnx model:producer_version=8 >log 2>&1
decided "again" compiled_again "it was compiled from" data.onnx
cp data.kept data.onnx
decided "and again" compiled_again "it was compiled from" data.onnx
"$plain" run kept.onnx --seed 1 >log 2>&1 && ok "files that another model names stay" ||
    fail "files that another model names stay" "$(cat log)"
rm kept.onnx

# -- what it cannot do --

epctx compile --if-needed data.onnx digits.onnx
result "a group" 2 "with --no-share: models that share a binary are replaced together"
epctx compile --if-needed --initializers i.data data.onnx; result "--initializers" 2 "--init"
epctx compile --if-needed --dry-run data.onnx; result "--dry-run" 2 "--dry-run"
epctx compile --if-needed none.onnx; result "no model" 1 "none.onnx"

# -- ten at once --

rm -f data_ctx*
n=0
while [ $n -lt 10 ]; do
    "$plain" compile --if-needed --json data.onnx >many.$n 2>&1 &
    n=$((n + 1))
done
wait
if [ "$(cat many.* | grep -c '"decision": "compiled"')" = 1 ] &&
    [ "$(cat many.* | grep -c '"decision": "up_to_date"')" = 9 ]; then
    ok "ten at once: one compiles"
else fail "ten at once: one compiles" "$(grep -h decision many.*)"; fi
cmp -s first.bin data_ctx_gen1.bin &&
    [ "$(results data)" = "./data_ctx.onnx ./data_ctx_gen1.bin " ] &&
    ok "ten at once: one result" || fail "ten at once: one result" "$(results data)"
# Readers while others compile: what they open belongs together.
(
    n=0
    while [ $n -lt 12 ]; do
        cp data.kept data.new
        "$plain" set --in-place -f data.new model:producer_version=$n >/dev/null 2>&1
        mv data.new data.onnx
        "$plain" compile --if-needed data.onnx >/dev/null 2>&1
        sleep 0.1
        n=$((n + 1))
    done
    : >stop
) &
reads=0 bad=0
while [ ! -e stop ]; do
    "$plain" run data_ctx.onnx --seed 1 >log 2>&1 || { bad=$((bad + 1)) && cp log bad.log; }
    reads=$((reads + 1))
done
wait
if [ $bad = 0 ] && [ $reads -gt 3 ]; then ok "none reads half"
else fail "none reads half" "$bad of $reads: $(cat bad.log)"; fi
cp data.kept data.onnx

# -- --wait: another process is at it --

"$plain" compile --if-needed data.onnx >log 2>&1
"$plain" compile plain.onnx -f -o gone_ctx.onnx >log 2>&1 && rm -f gone_ctx_npu.bin gone_npu.bin
"$plain" set --in-place -f data.onnx model:producer_version=99 >log 2>&1
# at_it SECONDS: another process holds the lock, as one that compiles
at_it() {
    rm -f holds
    "$python" -c 'import fcntl, sys, time
lock = open("data_ctx.onnx.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
open("holds", "w").close()
time.sleep(float(sys.argv[1]))' "$1" &
    holder=$!
    while [ ! -e holds ]; do sleep 0.05; done
}
at_it 60
before=$(cksum data_ctx.onnx)
decided "not waiting" older "data.onnx' has " --wait 0 data.onnx
json "which generation" 'isinstance(j["generation"], int) and j["model"] == "data_ctx.onnx"'
decided "waiting a second" older "data.onnx' has " --wait 1 data.onnx
epctx compile --if-needed --wait 0 data.onnx
said "in words" 0 "older result, another process is compiling it again: "
[ "$(cksum data_ctx.onnx)" = "$before" ] && ok "it stays as it is" ||
    fail "it stays as it is" "it changed"
cp data_ctx.onnx whole.onnx
cp gone_ctx.onnx data_ctx.onnx
epctx compile --if-needed --wait 0 data.onnx
said "an older result without its binary" 1 "there is no older result to use: "
cp plain.onnx data_ctx.onnx
epctx compile --if-needed --wait 0 data.onnx
said "no compiled model" 1 "there is no older result to use: there is no EPContext node"
rm data_ctx.onnx
epctx compile --if-needed --wait 0 data.onnx
said "no older result" 1 "after 0 s, and there is no older result to use"
kill $holder
wait $holder 2>log
cp whole.onnx data_ctx.onnx
at_it 1
decided "the other one ends in time" compiled_again "data.onnx' has " --wait 30 data.onnx
wait $holder
rm -f data_ctx.onnx.lock
epctx compile --wait 1 data.onnx; result "--wait alone" 2 "without --if-needed"
cp data.kept data.onnx
decided "as before" compiled_again "data.onnx'" data.onnx

# -- killed, no room, no right --

setup() { cp old/* crash/; }
sound() { # the old result, or the new one; the next call works, and clears up
    "$plain" run crash/data_ctx.onnx --seed 1 >log 2>&1 &&
        "$plain" compile --if-needed crash/data.onnx >log 2>&1 &&
        "$plain" run crash/data_ctx.onnx --seed 1 >log 2>&1 &&
        [ "$(find crash -name 'data_ctx_gen*.bin' | wc -l)" -le 3 ] || return 1
    "$plain" compile --if-needed --embed crash/data.onnx >log 2>&1
    [ -z "$(find crash -name '*.tmp')" ]
}
rm -rf old && mkdir old
cp data.onnx w.data old/
"$plain" compile --if-needed old/data.onnx >log 2>&1
"$plain" set --in-place -f old/data.onnx model:producer_version=9 >log 2>&1
if command -v strace >/dev/null && strace -qq -o /dev/null true 2>log; then
    crash "killed at any moment" setup sound compile --if-needed crash/data.onnx
    rm -rf crash && mkdir crash && setup
    before=$(cd crash && state)
    strace -qq -o /dev/null -e trace=fsync -e inject=fsync:error=ENOSPC:when=1+ \
        "$plain" compile --if-needed crash/data.onnx >out 2>err
    code=$?
    said "no room on the disk" 1 "No space left"
    if [ "$(cd crash && state)" = "$before" ]; then ok "no room: the old result stays"
    else fail "no room: the old result stays" "a file changed"; fi
else
    echo "skip killed at any moment, no room on the disk: strace cannot trace here"
fi
# As root no folder is read-only: then as nobody, in a folder that he can enter.
plainly=$(mktemp -d -p /tmp) || exit 1
trap 'rm -rf "$plainly"' EXIT
cp old/* "$plainly"
chmod 755 "$plainly"
chmod 644 "$plainly"/*
as() { "$@"; }
if [ "$(id -u)" -eq 0 ]; then as() { runuser -u nobody -- "$@"; }; else chmod 555 "$plainly"; fi
if as test -x "$plain" -a -r "$plainly/data.onnx" 2>log; then
    as "$plain" compile --if-needed "$plainly/data.onnx" >out 2>err
    code=$?
    said "a folder that is read-only, and stale" 1 "it was compiled from"
    chmod 755 "$plainly"
    "$plain" compile --if-needed "$plainly/data.onnx" >log 2>&1
    [ "$(id -u)" -eq 0 ] || chmod 555 "$plainly"
    as "$plain" compile --if-needed "$plainly/data.onnx" >out 2>err
    code=$?
    said "a folder that is read-only, and fresh" 0 "up to date"
    chmod 755 "$plainly"
else
    echo "skip a folder that is read-only: root writes everywhere, and nobody cannot run the tool"
fi

# -- an EP in a library --

library=$(sh "$top/tests/deps.sh" where ort) && [ -e "$build/libtoy_ep.so" ] || {
    echo "skip an EP in a library: ONNX Runtime or libtoy_ep.so is not there"
    exit $status
}
mkdir ep
cp "$build/libtoy_ep.so" ep/
cp "$library" "ep/$(basename "$library")"
runtime=ep/$(basename "$library")
cp plain.onnx t.onnx
toy() { # NAME DECISION REASON MORE...
    name=$1 decision=$2 reason=$3
    shift 3
    decided "$name" "$decision" "$reason" --ort "$runtime" --ep ep/libtoy_ep.so "$@" t.onnx
}
toy "an EP: nothing is there" compiled "there is no t_ctx.onnx"
toy "an EP: nothing changed" up_to_date ""
"$plain" run --ort "$runtime" --ep ep/libtoy_ep.so t_ctx.onnx --seed 1 >log 2>&1 &&
    ok "an EP: what was made runs" || fail "an EP: what was made runs" "$(cat log)"
# Whoever loads the EP would be noticed.
if command -v strace >/dev/null && strace -qq -f -e trace=openat -o opened "$plain" compile \
    --if-needed --ort "$runtime" --ep ep/libtoy_ep.so t.onnx >out 2>err; then
    if grep -q 'libtoy_ep.so.*O_CLOEXEC' opened && grep -c 'libtoy_ep' opened | grep -qv '^1$'; then
        fail "an EP: it is not loaded" "$(grep libtoy opened | tail -n 3)"
    else ok "an EP: it is not loaded"; fi
else
    echo "skip an EP, it is not loaded: strace cannot trace here"
fi
"$plain" set --in-place -f t.onnx model:producer_version=7 >log 2>&1
toy "an EP: the source changed" compiled_again "it was compiled from"
toy "an EP: an option of the EP" compiled_again "layout=nchw is new" --ep-opt layout=nchw
toy "an EP: the same" up_to_date "" --ep-opt layout=nchw
toy "an EP: its value" compiled_again "layout=nhwc, was nchw" --ep-opt layout=nhwc
toy "an EP: without it" compiled_again "layout=nhwc is not given now"
toy "an EP: an option of the session" compiled_again "session.acme=1 is new" \
    --option session.acme=1
toy "an EP: without it, too" compiled_again "is not given now"
toy "an EP: embedded" compiled_again "other options" --embed
toy "an EP: in a file" compiled_again "other options"
printf 'x' >>ep/libtoy_ep.so
toy "an EP: its library changed" compiled_again "libtoy_ep.so' has changed"
toy "an EP: and stays" up_to_date ""
printf 'x' >>"$runtime"
toy "an EP: ONNX Runtime changed" compiled_again "$(basename "$library")"
echo one >settings.txt
toy "an EP: a file that an option names" compiled_again "take_if=settings.txt is new" \
    --ep-opt take_if="$PWD/settings.txt"
echo two >settings.txt
toy "an EP: the file changed" compiled_again "settings.txt' has changed" \
    --ep-opt take_if="$PWD/settings.txt"
toy "an EP: and not any more" compiled_again "take_if=settings.txt"
edit_stamp t_ctx.onnx ToyExecutionProvider machine "another one"
toy "an EP: another machine or driver" compiled_again "for the machine 'another one', this is '"
edit_stamp t_ctx.onnx ToyExecutionProvider library "7 0011223344556677 libbeside.so"
toy "an EP: a library beside it is gone" compiled_again "libbeside.so', which is not there"
cp t_ctx.onnx t_ctx.kept
dd if=t_ctx.kept of=t_ctx.onnx bs=300 count=1 2>/dev/null
epctx compile --if-needed --ort "$runtime" --ep ep/libtoy_ep.so t.onnx
result "an EP: the model is cut" 1 "exists already, and "
toy "an EP: the model is cut, -f" compiled_again "t_ctx.onnx" -f
find . -maxdepth 1 -name 't_ctx_gen*' | sort -V | tail -n 1 | while read -r file; do
    echo "no context" >"$file"
done
toy "an EP: its binary is another" compiled_again "bytes"
toy "an EP: cured" up_to_date ""
# Of another EP, and of a neighbour.
"$plain" compile --if-needed t.onnx -o npu_ctx.onnx >log 2>&1 || fail "another EP's" "$(cat log)"
for file in npu_ctx.onnx w.data qnn.bin q.onnx; do
    before=$(cksum $file)
    for policy in "" "--overwrite fail" "--embed" "--dry-run"; do
        case $policy$file in --dry-runnpu_ctx.onnx) continue ;; esac # the EP is not asked
        # shellcheck disable=SC2086 # words
        epctx compile --if-needed --ort "$runtime" --ep ep/libtoy_ep.so $policy -o $file t.onnx
        result "an EP: no $file $policy" 1 "exists already, and "
    done
    [ "$before" = "$(cksum $file)" ] && ok "an EP: $file stays" ||
        fail "an EP: $file stays" "it changed"
done
for file in w.data qnn.bin; do
    before=$(cksum $file)
    for policy in "--if-needed" "--if-needed --embed" "" "--embed"; do
        # shellcheck disable=SC2086 # words
        epctx compile $policy -f --ort "$runtime" --ep ep/libtoy_ep.so -o $file t.onnx
        result "an EP: -f $policy, no $file" 1 " this file: "
    done
    [ "$before" = "$(cksum $file)" ] && ok "an EP: -f, $file stays" ||
        fail "an EP: -f, $file stays" "it changed"
done
epctx compile --if-needed -f --json --ort "$runtime" --ep ep/libtoy_ep.so -o npu_ctx.onnx t.onnx
said "of another EP" 0 '"decision": "compiled_again"'
epctx compile --if-needed --ort "$runtime" --ep ep/libtoy_ep.so --dry-run t.onnx
said "--dry-run" 0 "up to date"
epctx compile --if-needed --no-share --ort "$runtime" --ep ep/libtoy_ep.so t.onnx plain.onnx
said "several, each alone" 0 "there is no plain_ctx.onnx"

rm -f t_ctx*
n=0
while [ $n -lt 10 ]; do
    "$plain" compile --if-needed --json --ort "$runtime" --ep ep/libtoy_ep.so t.onnx >many.$n 2>&1 &
    n=$((n + 1))
done
wait
if [ "$(cat many.* | grep -c '"decision": "compiled"')" = 1 ] &&
    [ "$(cat many.* | grep -c '"decision": "up_to_date"')" = 9 ]; then
    ok "an EP: ten at once, one compiles"
else fail "an EP: ten at once, one compiles" "$(cat many.*)"; fi

# Killed at several moments, the EP's process with it.
bad=
for pause in 0.01 0.05 0.1 0.15 0.2 0.3; do
    "$plain" set --in-place -f t.onnx "model:producer_version=$pause" >log 2>&1
    "$plain" compile --if-needed --ort "$runtime" --ep ep/libtoy_ep.so t.onnx >log 2>&1 &
    sleep $pause
    kill -9 $! 2>log
    wait
    "$plain" run --ort "$runtime" --ep ep/libtoy_ep.so t_ctx.onnx --seed 1 >log 2>&1 ||
        bad="$bad; after $pause s: $(tail -n 1 log)"
done
[ -z "$bad" ] && ok "an EP: killed, the old result stays" ||
    fail "an EP: killed, the old result stays" "$bad"
"$plain" set --in-place -f t.onnx "model:producer_version=last" >log 2>&1
toy "an EP: the next call works" compiled_again "it was compiled from"
left=$(find . -maxdepth 1 -name '.epctx-*' -o -maxdepth 1 -name '*.tmp')
# Killed between its binary and its model, a process leaves the binary, and perhaps its lock, for
# good: no model lists it, and what no model lists may be anybody's.
if [ "$(find . -maxdepth 1 -name 't_ctx_gen*.bin' | wc -l)" -le $((3 + 6)) ] && [ -z "$left" ]; then
    ok "an EP: nothing is left behind"
else fail "an EP: nothing is left behind" "$(results t) $left"; fi
exit $status
