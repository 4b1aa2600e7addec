#!/bin/sh
# Every command that writes, killed at every system call that writes; the same calls failing (disk
# full, input/output error); and a disk that really is full. What is there afterwards is all old or
# all new. After a kill every model is the old one or its complete successor, which may still use
# the second name of a new binary (FILE.new), beside files of its own generation.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start faults
mkdir "$work/models"
cd "$work" || exit 1
out=/dev/null

# -- models: two generations, and one whose EPContext node takes its weights as inputs --
(
    cd models || exit 1
    for kind in plain partly weightless; do
        "$python" "$top/tests/judge/make_model.py" $kind $kind.onnx || exit 1
    done
    "$plain" compile --prefix old_ partly.onnx -o old_ctx.onnx >/dev/null || exit 1
    "$plain" compile --prefix old_ plain.onnx -o plain_ctx.onnx >/dev/null || exit 1
    "$plain" compile --embed partly.onnx -o inside_ctx.onnx >/dev/null || exit 1
    "$plain" init --external --threshold 0 partly.onnx -o source.onnx >/dev/null || exit 1
) >err 2>&1 || { fail models "could not be made"; exit 1; }

# -- the commands: NAME FILES... -- ARGUMENTS, with the files in the folder `now` --
commands='
set|old_ctx.onnx old_npu.bin|set --in-place now/old_ctx.onnx --all notes=changed
unset|old_ctx.onnx old_npu.bin|unset --in-place now/old_ctx.onnx --all notes
rename|old_ctx.onnx old_npu.bin|rename --in-place --any-io now/old_ctx.onnx x renamed
prefix|old_ctx.onnx old_npu.bin|prefix --in-place --all-nodes --one-graph now/old_ctx.onnx p_
weightless|weightless.onnx source.onnx source.onnx.data|weightless --in-place now/weightless.onnx
embed|old_ctx.onnx old_npu.bin|embed --in-place now/old_ctx.onnx
extract|inside_ctx.onnx|extract --in-place now/inside_ctx.onnx
init|plain.onnx|init --external --threshold 0 --in-place now/plain.onnx
mv|old_ctx.onnx old_npu.bin|mv now/old_npu.bin now/other.bin
compile|plain.onnx plain_ctx.onnx plain_npu.bin|compile -f now/plain.onnx
compile new|plain.onnx|compile now/plain.onnx
compile two|plain.onnx partly.onnx plain_ctx.onnx plain_npu.bin|compile -f now/plain.onnx now/partly.onnx
package|old_ctx.onnx old_npu.bin|package -o now/package now/old_ctx.onnx
'

begin() {
    rm -rf now
    mkdir now
    for file in $files; do cp "models/$file" now; done
}

# What the folder `now` is: old, new, both (nothing changes), or a description of the mixture.
state() {
    if diff -r before now >/dev/null; then echo old; return; fi
    if diff -r after now >/dev/null; then echo new; return; fi
    # Temporary files and locks are allowed.
    rm -rf rest
    cp -r now rest
    rm -rf rest/*.tmp rest/*.lock rest/*.part-*
    model='' binary='' wrong=''
    for file in before/*.onnx; do
        [ -e "$file" ] || continue
        [ -e "rest/${file#before/}" ] || wrong="$wrong ${file#before/} is gone"
    done
    for file in rest/*; do
        [ -e "$file" ] || continue
        file=${file#rest/}
        is=
        case $file in
        *.new) cmp -s "rest/$file" "after/${file%.new}" || wrong="$wrong $file is not the new one"
               continue ;;
        *.onnx) if [ -n "$(ls rest/*.new 2>/dev/null)" ] && ! cmp -s "rest/$file" "before/$file" &&
                    ! cmp -s "rest/$file" "after/$file" &&
                    "$plain" run "rest/$file" >/dev/null 2>err; then
                    continue # uses a second name
                fi ;;
        esac
        diff -r "before/$file" "rest/$file" >/dev/null 2>&1 && is=old
        diff -r "after/$file" "rest/$file" >/dev/null 2>&1 && is=${is}new
        case $is in
        oldnew) ;;
        '') wrong="$wrong $file is neither old nor new" ;;
        *) case $file in
           *.onnx) model="$model$is " ;;
           *) binary="$binary$is " ;;
           esac ;;
        esac
    done
    case $model in
    *old*new* | *new*old*) wrong="$wrong models of two generations" ;;
    esac
    # A new model needs the new files beside it; an old one the old ones.
    for file in before/* after/*; do
        file=${file##*/}
        case $file in *.onnx) continue ;; esac
        case $model in
        *new*) [ ! -e "after/$file" ] || diff -r "after/$file" "rest/$file" >/dev/null 2>&1 ||
            wrong="$wrong $file is not that of the new model" ;;
        *old*) [ ! -e "before/$file" ] || diff -r "before/$file" "rest/$file" >/dev/null 2>&1 ||
            wrong="$wrong $file is not that of the old model" ;;
        esac
    done
    echo "${wrong:-sound}"
}

# inject NAME CALLS HOW...: one injection after the other, until none is reached.
inject() {
    name=$1 calls=$2 how=$3
    count=0
    for call in $calls; do
        n=1
        while [ $n -lt 200 ]; do
            begin
            strace -qq -o trace -e "trace=?$call" -e "inject=?$call:$how:when=$n" \
                "$plain" $arguments >out 2>err </dev/null
            code=$?
            grep -q 'INJECTED\|killed by' trace || break
            count=$((count + 1))
            is=$(state)
            case $how:$is in
            signal=KILL:old | signal=KILL:new | signal=KILL:sound) ;;
            *:old | *:new)
                if [ $code -ne 1 ] && [ $code -ne 0 ] || [ $code = 0 ] && [ "$is" = old ]; then
                    fail "$name" "$call $n: exit code $code"
                    return
                fi
                if [ $code -eq 1 ] && ! grep -q '^epctx: ' err; then
                    fail "$name" "$call $n: no message"
                    return
                fi ;;
            *)
                fail "$name" "$call $n leaves: $is ($(ls now | tr '\n' ' '))"
                return ;;
            esac
            n=$((n + $(rounds 1 3)))
        done
    done
    if [ $count -lt "$(rounds 3 1)" ]; then fail "$name" "$count injections only"
    else ok "$name ($count)"; fi
}

writing="write fsync fchmod link linkat rename renameat renameat2 unlink unlinkat mkdir mkdirat"
have_strace=true
strace -qq -o /dev/null true 2>/dev/null || have_strace=false
$have_strace || echo "skip injections: strace cannot trace here"

# A file system of 256 KB, filled up but for $1 bytes: sees every command fail, or not.
cat >full.sh <<'END'
mount -t tmpfs -o size=256k tmpfs now || exit 9
for file in $3; do cp "models/$file" now || exit 9; done
dd if=/dev/zero of=filler bs=256k count=1 2>/dev/null
dd if=/dev/zero of=now/filler bs=1k 2>/dev/null
size=$(wc -c <now/filler)
truncate -s $((size - $1)) now/filler
"$2" $4 >out 2>err </dev/null
code=$?
rm -rf seen
rm now/filler
cp -r now seen
exit $code
END
have_mount=true
mkdir -p now
unshare -rm sh -c 'mount -t tmpfs tmpfs now' 2>/dev/null || have_mount=false
$have_mount || echo "skip full disk: no file system can be mounted here"

echo "$commands" >list
while IFS='|' read -r command files arguments; do
    [ -n "$command" ] || continue
    begin
    rm -rf before after
    cp -r now before
    "$plain" $arguments >out 2>err </dev/null || { fail "$command" "exit code $?"; continue; }
    cp -r now after
    if diff -r before after >/dev/null; then fail "$command" "it changes nothing"; continue; fi
    if $have_strace; then
        inject "$command is killed" "$writing" signal=KILL
        inject "$command on a full disk" "write fsync mkdir mkdirat" error=ENOSPC
        inject "$command with errors" "fsync rename renameat renameat2 link linkat" error=EIO
    fi
    if $have_mount; then
        bad=
        refused=0
        for room in $(rounds "0 4096 16384" "0 16384"); do
            rm -rf now
            mkdir now
            unshare -rm sh full.sh $room "$plain" "$files" "$arguments"
            code=$?
            [ $code -eq 1 ] && refused=$((refused + 1))
            rm -rf now
            mv seen now
            is=$(state)
            case $code:$is in
            0:new) ;;
            1:old) grep -q 'No space left' err || bad="$bad $room: no 'No space left'" ;;
            *) bad="$bad $room: exit code $code, $is" ;;
            esac
        done
        if [ -n "$bad" ]; then fail "$command, disk full" "$bad"
        elif [ $refused -eq 0 ]; then fail "$command, disk full" "it is never full"
        else ok "$command, disk full ($refused of 3 refused)"; fi
    fi
done <list
exit $status
