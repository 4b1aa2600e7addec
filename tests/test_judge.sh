#!/bin/sh
# What a command has made is judged before it reports success: each command that writes a model is
# tried with a good one, with one that ONNX Runtime refused before, and, if there is a way, with a
# wish whose result it would refuse.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start judge
make_models plain partly
"$python" -B tests/judge/judge_models.py "$work" || {
    echo "FAIL models: they could not be made"
    exit 1
}
cd "$work" || exit 1
out=$work.out err=$work.err
for kind in plain partly; do
    "$epctx" compile $kind.onnx >log 2>&1 || fail models "$kind.onnx could not be compiled"
done
# The same with an IR version of tomorrow, in the first field.
"$python" -c 'import sys
data = open("plain_ctx.onnx", "rb").read()
assert data[0] == 8
open("newer_ctx.onnx", "wb").write(data[:1] + bytes([99]) + data[2:])'

# wrote NAME NEW: a model was written that ONNX Runtime takes, or that it did not take before.
wrote() {
    # What repair does not cure is an exit code.
    if [ "$code" -ne 0 ] && [ "$1$code" != "repair: newer3" ] || [ ! -f "$2" ]; then
        fail "$1" "exit code $code"
    elif grep -q 'refuses the model, as it did before' "$out"; then
        if [ "$3" = newer ]; then ok "$1"; else fail "$1" "the source was good"; fi
    elif [ "$3" = newer ]; then
        fail "$1" "it does not tell that ONNX Runtime refused the model before, too"
    elif "$epctx" lint --ignore /dev/null "$2" >"$out" 2>"$err" || ! grep -q 'error E' "$out"; then
        ok "$1"
    else
        fail "$1" "lint finds an error in it"
    fi
    rm -f made.onnx made_*.bin
}
# row COMMAND ARGUMENTS: both sources; GOOD and CTX stand for them in ARGUMENTS.
tried=
row() {
    tried="$tried $1"
    for kind in good newer; do
        model=$kind.onnx context=plain_ctx.onnx
        [ $kind = good ] || context=newer_ctx.onnx
        # shellcheck disable=SC2046 # a list of words
        epctx $(echo "$*" | sed "s/GOOD/$model/g; s/CTX/$context/g")
        wrote "$1: $kind" made.onnx $kind
    done
}
row set GOOD model:producer_name=somebody -o made.onnx
row unset GOOD model:producer_name -o made.onnx
row rename GOOD d e -o made.onnx
row prefix --all-nodes GOOD p_ -o made.onnx
row embed CTX -o made.onnx
"$epctx" embed plain_ctx.onnx -o embedded.onnx >log 2>&1
"$epctx" embed newer_ctx.onnx -o newer_embedded.onnx >log 2>&1
tried="$tried extract"
epctx extract embedded.onnx -o made.onnx
wrote "extract: good" made.onnx good
epctx extract newer_embedded.onnx -o made.onnx
wrote "extract: newer" made.onnx newer
row init --external GOOD --threshold 0 -o made.onnx
rm -f ./*.data
row merge GOOD GOOD --prefix a_,b_ -o made.onnx
row split --outputs d GOOD -o made.onnx
row repair CTX -o made.onnx
row stamp CTX --source plain.onnx -o made.onnx
row compile GOOD -o made.onnx

# -- what would be refused is not written --
# refuses NAME RULE ARGUMENTS...
refuses() {
    name=$1 rule=$2
    shift 2
    before=$(state)
    epctx "$@"
    if [ "$code" -ne 1 ] || ! grep -q "rule $rule" "$err"; then
        fail "$name" "exit code $code, expected 1 and rule $rule"
    elif [ "$(state)" != "$before" ]; then fail "$name" "files have changed"
    else ok "$name"; fi
}
refuses "set: an operator set of tomorrow" E051 set good.onnx opset:=99 -o made.onnx
refuses "set: told by --dry-run" E051 set good.onnx opset:=99 -n -o made.onnx
refuses "set: in place" E050 set good.onnx model:ir_version=99 --in-place
refuses "set: on standard output" E051 set good.onnx opset:=99 -o -
refuses "set: no less than before" E051 set newer.onnx opset:=99 -o made.onnx
printf '%s\n' 'facts: 1' '' 'default: all' 'who: W' 'seen: bench' 'from: F' 'date: 2026-11' '' \
    'opset: ai.onnx 99; since: ort 2.0' >later.facts
works "set: what a later ONNX Runtime is known to load" "$epctx" set --facts later.facts good.onnx \
    opset:=99 -o made.onnx
rm -f made.onnx
refuses "unset: no operator set" E052 unset good.onnx opset: -o made.onnx
# What ONNX Runtime orders otherwise is known when it is written.
works "compile: clash is good" "$epctx" lint clash.onnx
epctx compile clash.onnx
said "compile: what came of clash" 1 "ONNX Runtime would not load it"
epctx compile clash.onnx dead.onnx -f
said "compile: of several" 1 "ONNX Runtime would not load it"
works "compile: values without shapes" "$epctx" compile -f unshaped.onnx
works "compile: its lint of values without shapes" "$epctx" lint unshaped_ctx.onnx
works "compile: what has no reader goes" "$epctx" compile -f dead.onnx

# -- names that loading refuses are not written, in any way --
cp embedded.onnx e.onnx
cp plain_ctx.onnx c.onnx
head -c 500 /dev/zero | tr '\0' '\377' >blob.bin
tab=$(printf '\t') one=$(printf '\001') del=$(printf '\177') line='
'
for c in "$tab" "$one" "$del" "$line"; do
    bad="a${c}b.onnx"
    cp plain.onnx "$bad"
    cp blob.bin "w${c}.bin"
    code_of() { printf '%s' "$c" | od -An -tx1 | tr -d ' '; }
    named() { # NAME ARGUMENTS...
        name="$1, a name with $(code_of)"
        shift
        before=$(state)
        epctx "$@"
        if [ "$code" -ne 1 ] || ! grep -q 'control character' "$err"; then
            fail "$name" "exit code $code, expected 1 and 'control character'"
        elif [ "$(state)" != "$before" ]; then fail "$name" "files have changed"
        elif [ "$(LC_ALL=C tr -d '\n' <"$err" | LC_ALL=C grep -c '[[:cntrl:]]')" != 0 ]; then
            fail "$name" "the message has it raw"
        else ok "$name"; fi
    }
    named compile compile "$bad"
    named "compile, a group" compile "$bad" plain.onnx
    named "compile -o" compile plain.onnx -o "x$bad"
    named "compile -n" compile -n "$bad"
    named "compile --if-needed" compile --if-needed "$bad"
    named "compile --weightless" compile --weightless --embed "$bad" -o w.onnx
    named "compile --initializers" compile --initializers "i$c" partly.onnx -o w.onnx
    named extract extract e.onnx -o x.onnx --name "x$c.bin"
    named "extract -o" extract e.onnx -o "x$bad"
    named mv mv plain_npu.bin "x$c.bin"
    named wrap wrap "w$c.bin" --profile qnn --inputs 'x:float32[1]' --outputs 'y:float32[1]' \
        -o w.onnx
    named "wrap --binary" wrap blob.bin --profile qnn --inputs 'x:float32[1]' \
        --outputs 'y:float32[1]' --binary "x$c.bin" -o w.onnx
    named init init --external plain.onnx --threshold 0 --name "x$c.bin" -o w.onnx
    epctx compile --embed "$bad" -o "$bad.ctx.onnx"
    result "compile --embed, a name with $(code_of)" 0
    [ "$(LC_ALL=C tr -d '\n' <"$out" | LC_ALL=C grep -c '[[:cntrl:]]')" = 0 ] &&
        works "which loads" "$epctx" run "$bad.ctx.onnx" --seed 1 ||
        fail "compile --embed, a name with $(code_of)" "the report has it raw"
    rm -f "$bad"* "w$c.bin"
done

# -- all that write models are here, or cannot make a good one bad --
never() {
    tried="$tried $1"
    echo "note $1: $2"
}
never copy "writes the bytes that it read"
never mv "changes the name of a file in a node, which only the EP reads"
never weightless "takes the place of a tensor's data by that of an equal one elsewhere"
never wrap "makes a model of one node, and judges it by all rules"
never package "copies models, and adds metadata"
"$epctx" help >log
changing=$(sed -n '/^Change:/,/^Run/s/^  \([a-z-]*\) .*/\1/p' log)
[ "$(echo "$changing" | wc -l)" -gt 10 ] || fail "commands" "expected more than: $changing"
for command in $changing; do
    case "$tried " in
    *" $command "*) ok "$command is known" ;;
    *) fail "$command" "it is not tried, and no reason is given" ;;
    esac
done
exit $status
