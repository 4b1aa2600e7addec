#!/bin/sh
# Every file that a model needs: the tool knows those that a context binary refers to, keeps them,
# misses them, and no command with -f takes one from another model. OpenVINO's container is the
# fuzzer's seed: it refers to 128 bytes of weights.bin.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start needs
out=$work/stdout err=$work/stderr
make_models plain partly digits
seed=$top/fuzz/corpus/binary/container
cd "$work" || exit 1

expect() {
    name=$1 want=$2 text=$3
    shift 3
    epctx "$@"
    said "$name" "$want" "$text"
}

# noise SIZE: bytes that are no text
noise() { { printf '\001\377' && head -c $(($1 - 2)) /dev/zero | tr '\0' "${2:-v}"; }; }

# container: n.onnx, a model for n.bin, which refers to weights.bin
container() {
    cp "$seed" n.bin
    noise 128 >weights.bin
    epctx wrap n.bin --profile openvino_plugin --graph m_1 -o n.onnx
    [ "$code" -eq 0 ] || fail "container" "no model"
}

# -- a file to which a binary refers is known --
mkdir known && cd known || exit 1
container
expect "ls lists it" 0 " 128  companion      $work/known/weights.bin" ls n.onnx
expect "info lists it" 0 "weights.bin, companion, 128 bytes" info n.onnx
expect "lint finds it" 0 "0 errors" lint n.onnx
mv weights.bin away
expect "ls misses it" 1 "n.onnx: 1 file that it needs cannot be used" ls n.onnx
expect "info warns" 1 "'weights.bin' does not exist" info n.onnx
expect "lint misses it" 1 "error E022 file-missing: 'm_1': ep_cache_context file 'weights.bin'" \
    lint n.onnx
expect "lint says who wants it" 1 "; the context binary refers to it" lint n.onnx
expect "lint without files" 0 "" lint --no-files n.onnx
expect "package misses it" 1 "n.onnx: needs 'weights.bin': file 'weights.bin' does not exist" \
    package -o pack n.onnx
head -c 127 away >weights.bin
expect "lint: it is cut" 1 "E034 external-range: 'm_1': ep_cache_context 'weights.bin' has 127 " \
    lint n.onnx
expect "package: it is cut" 1 "but the context binary needs 128 of it" package -o pack n.onnx
mv away weights.bin
expect "embedded" 0 "" embed n.onnx -o embedded.onnx
expect "ls lists it of an embedded binary, too" 0 "$work/known/weights.bin" ls embedded.onnx
expect "extracted" 0 "" extract embedded.onnx -o extracted.onnx --name e.bin
expect "ls lists it again" 0 "$work/known/weights.bin" ls extracted.onnx
expect "package" 0 "" package -o pack n.onnx
same "package takes it along, beside the model" weights.bin pack/model/n/weights.bin
expect "a package is sound" 0 "0 errors" lint pack
expect "two variants" 0 "" package -o both a=n.onnx b=n.onnx
same "of which each has it beside its model" weights.bin both/model/b/weights.bin
expect "its binary is an asset" 0 "shared_assets" ls both/model/../model/a/n.onnx \
    --context-path "$(find both -name n.bin)"
expect "and it is looked for beside the model" 0 "both/model/a/weights.bin" ls \
    both/model/a/n.onnx --context-path "$(find both -name n.bin)"
mkdir sub
expect "copy tells what does not come along" 0 "needs 'n.bin' and 1 more file" copy n.onnx \
    sub/n.onnx
cp n.bin sub
expect "copy tells what the binary refers to" 0 "sub/m.onnx needs 'weights.bin'" copy n.onnx \
    sub/m.onnx
expect "embed does not lose it" 1 "would not find 'weights.bin'" embed n.onnx -o sub/e.onnx
expect "merge takes it along" 0 "" merge n.onnx ../plain.onnx -o sub/merged.onnx
same "beside the result" weights.bin sub/weights.bin
expect "mv moves a binary away from it" 0 "" mv n.bin sub/moved.bin
expect "ls: it stays beside the model" 0 "$work/known/weights.bin" ls n.onnx
cd ..

# -- the data of a source model that loading reads --
mkdir source && cd source || exit 1
expect "a source with data" 0 "" init --external --threshold 1 ../plain.onnx -o s.onnx --name s.data
expect "compiled without weights" 0 "" compile --weightless s.onnx
expect "ls lists its data" 0 "companion      $work/source/s.data" ls s_ctx.onnx
mv s.data away
expect "lint misses it" 1 "'s.data' does not exist (path ./s.data); the source model refers to it" \
    lint s_ctx.onnx
mv away s.data
cd ..

# -- who needs this file? --

# Each kind of neighbour needs weights.bin, the last from two folders above.
neighbour() {
    case $1 in
    above)
        noise 500 >weights.bin
        (cd "$work/$1" && "$plain" wrap "$2/weights.bin" --profile qnn --inputs 'x:float32[1]' \
            --outputs 'y:float32[1]' --binary unused.bin -o n.onnx >log 2>&1 &&
            rm unused.bin log)
        epctx set "$work/$1/n.onnx" "ep_cache_context=$2/weights.bin" --in-place
        ;;
    binary)
        noise 500 >weights.bin
        epctx wrap weights.bin --profile qnn --inputs 'x:float32[1]' --outputs 'y:float32[1]' \
            -o n.onnx
        ;;
    data) epctx init --external --threshold 1 ../digits.onnx -o n.onnx --name weights.bin ;;
    offset) container ;;
    esac
    [ "$code" -eq 0 ] || fail "neighbour: $1" "no model"
}

# spares NAME ARGUMENTS...: with -f, refused; the neighbour is named, and nothing is changed.
spares() {
    name=$1
    shift
    epctx "$@"
    refused "$name" 1 "n.onnx needs this file"
}

for kind in binary data offset above; do
    deep=
    [ $kind != above ] || deep=/deep/er
    mkdir -p "$kind$deep/other" && cd "$kind$deep" || exit 1
    neighbour $kind ${deep#/}
    cp "$work"/plain.onnx "$work"/partly.onnx "$work"/digits.onnx .
    works "$kind: models to write" "$plain" compile --embed plain.onnx -o made.onnx
    works "$kind: another model's data" "$plain" init --external --threshold 1 plain.onnx \
        -o other/data.onnx --name weights.bin
    noise 500 w >other/x.bin
    before=$(state)
    spares "$kind: init" init --external --threshold 1 plain.onnx -o r.onnx --name weights.bin -f
    spares "$kind: init --in-place" init --external --threshold 1 partly.onnx --in-place \
        --name weights.bin -f
    spares "$kind: init, dry run" init --external --threshold 1 plain.onnx -o r.onnx \
        --name weights.bin -f -n
    spares "$kind: init, a backup" init --external --threshold 1 plain.onnx -o r.onnx \
        --name weights.bin --overwrite backup
    spares "$kind: extract" extract made.onnx -o r.onnx --name weights.bin -f
    spares "$kind: extract --in-place" extract made.onnx --in-place --name weights.bin -f
    spares "$kind: embed" embed made.onnx -o weights.bin -f
    spares "$kind: wrap" wrap other/x.bin --profile qnn --inputs 'x:float32[1]' \
        --outputs 'y:float32[1]' --binary weights.bin -o r.onnx -f
    spares "$kind: compile" compile --initializers weights.bin partly.onnx -f
    spares "$kind: compile, dry run" compile -n --initializers weights.bin partly.onnx -f
    spares "$kind: get" get made.onnx ep_cache_context -o weights.bin -f
    spares "$kind: view" view plain.onnx -o weights.bin -f
    spares "$kind: copy" copy plain.onnx weights.bin -f
    for command in "set metadata:a=b" "rename x z" stamp "prefix p_" \
        "unset main_context" repair "split --outputs y"; do
        # shellcheck disable=SC2086 # words
        set -- $command
        word=$1
        shift
        spares "$kind: $word" "$word" made.onnx "$@" -o weights.bin -f
    done
    spares "$kind: merge" merge other/data.onnx made.onnx -o r.onnx -f
    spares "$kind: merge, its result" merge plain.onnx made.onnx -o weights.bin -f
    spares "$kind: split" split other/data.onnx --outputs y -o r.onnx -f
    spares "$kind: compile, its result" compile plain.onnx -o weights.bin -f
    spares "$kind: compile --embed, its result" compile --embed plain.onnx -o weights.bin -f
    spares "$kind: compile --if-needed, its result" compile --if-needed plain.onnx \
        -o weights.bin -f
    [ $kind = binary ] || spares "$kind: mv" mv weights.bin moved.bin
    cd "$work" || exit 1
done

# -- what is no loss --
mkdir free && cd free || exit 1
container
cp ../plain.onnx .
works "another name" "$plain" init --external --threshold 1 plain.onnx -o r.onnx --name r.bin -f
cp r.bin saved
works "a model's own data" "$plain" init --external --threshold 1 ../digits.onnx -o r.onnx \
    --name r.bin -f
if cmp -s r.bin saved; then fail "is replaced" "it is the old data"; else ok "is replaced"; fi
works "the same bytes" "$plain" init --external --threshold 1 ../digits.onnx -o other.onnx \
    --name r.bin -f
expect "two models need them" 1 "other.onnx and 1 more need this file" init --external \
    --threshold 1 plain.onnx -o new.onnx --name r.bin -f
rm r.onnx other.onnx n.onnx
works "nobody needs it any more" "$plain" init --external --threshold 1 plain.onnx -o new.onnx \
    --name weights.bin -f
printf 'no model' >broken.onnx
works "a file that is no model needs nothing" "$plain" init --external --threshold 1 \
    ../digits.onnx -o new.onnx --name weights.bin -f
mkdir low && mv new.onnx low && mv weights.bin low
before=$(state)
epctx init --external --threshold 1 plain.onnx -o r.onnx --name low/weights.bin -f
refused "a neighbour of the file" 1 "low/new.onnx needs this file"
cd ..

# -- stamps --
mkdir stamps && cd stamps || exit 1
container
cp ../plain.onnx .
cp weights.bin saved
epctx wrap n.bin --profile openvino_plugin --graph m_1 -o old.onnx
expect "a stamp" 0 "" stamp n.onnx --source plain.onnx --in-place
expect "has a line for it" 0 "needs 128 " get n.onnx metadata:epctx.build.OpenVINOExecutionProvider
expect "fresh" 0 ": fresh" check --fresh n.onnx
works "again" "$plain" stamp n.onnx -o again.onnx
same "the same bytes" n.onnx again.onnx
noise 128 w >weights.bin
expect "changed" 1 "stale: n.onnx: 'weights.bin' has changed" check --fresh n.onnx
expect "changed: lint" 1 "E069 binary-stale" lint n.onnx
expect "changed: package" 1 "'weights.bin' has changed" package -o pack n.onnx
head -c 100 saved >weights.bin
expect "cut" 1 "stale: n.onnx: 'weights.bin' has 100 bytes, it was compiled from 128" \
    check --fresh n.onnx
rm weights.bin
expect "missing" 1 "stale: n.onnx: file 'weights.bin' does not exist" check --fresh n.onnx
epctx check --fresh --json n.onnx
json "missing, in JSON" "j['stamps'][0]['fresh'] == 'stale' and \
    len(j['stamps'][0]['differences']) == 1"
printf x >>n.bin
printf x >>plain.onnx
epctx check --fresh --json n.onnx
json "each file is named, in JSON" "[t for d in j['stamps'][0]['differences'] \
    for t in ('n.bin', 'plain.onnx', 'weights.bin') if t in d] == \
    ['n.bin', 'plain.onnx', 'weights.bin']"
expect "each file is named" 1 "  also: n.onnx: file 'weights.bin'" check --fresh n.onnx
expect "no stamp without it" 1 "n.onnx: file 'weights.bin' does not exist" stamp n.onnx -o r.onnx
cp saved weights.bin
cp "$seed" n.bin
cp ../plain.onnx .
expect "a stamp without the line" 0 "" stamp old.onnx --source plain.onnx --in-place
"$plain" get old.onnx metadata:epctx.build.OpenVINOExecutionProvider | grep -v '^needs' >text
works "as older ones" "$plain" set old.onnx \
    "metadata:epctx.build.OpenVINOExecutionProvider=$(cat text)" --in-place
expect "is not fresh: it was not compared" 4 "has no hash of 'weights.bin', to which the binary" \
    check --fresh old.onnx
works "several binaries" "$plain" wrap n.bin --profile openvino_plugin --graph m_0 -o second.onnx
expect "a stamp of a source's data" 0 "" init --external --threshold 1 plain.onnx -o s.onnx \
    --name s.data
expect "is kept" 0 "" stamp second.onnx --source s.onnx --in-place
printf x >>s.data
expect "and compared" 1 "'s.data' has 4105 bytes, it was compiled from 4104" \
    check --fresh second.onnx
cd ..

# -- what is surely no context binary --
mkdir foreign && cd foreign || exit 1
noise 500 >good.bin
works "a model" "$plain" wrap good.bin --profile qnn --inputs 'x:float32[1]' \
    --outputs 'y:float32[1]' -o m.onnx
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 500\n' 7 >lfs
printf '<!DOCTYPE html>\n<html><body>404</body></html>\n' >html
: >empty
cp "$seed" other
for kind in lfs html empty other; do
    case $kind in
    lfs) text="is a Git LFS pointer, no context binary: run 'git lfs pull'" ;;
    html) text="is an HTML page, no context binary: download the file itself" ;;
    empty) text="file './good.bin' is empty (0 bytes)" ;;
    other) text="is a container of OpenVINO blobs, but the node is for EP 'qnn'" ;;
    esac
    cp $kind good.bin
    before=$(state)
    epctx stamp m.onnx --in-place
    refused "stamp: $kind" 1 "$text"
    epctx package -o pack m.onnx
    refused "package: $kind" 1 "$text"
done
head -c 100 "$seed" >short.bin
works "a cut one" "$plain" set m.onnx source=OpenVINOExecutionProvider ep_cache_context=short.bin \
    -o short.onnx
expect "stamp: cut" 1 "fetch or copy the binary again" stamp short.onnx --in-place
exit $status
