#!/bin/sh
# `epctx view`: the page is used in headless Chromium as a reader does, with models that are big,
# hostile or no valid ones; and what the command itself does with its files.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start view
make_models plain digits
mkdir "$work/pages"
mv "$work"/*.onnx "$work/pages"
"$python" -B tests/judge/view_models.py "$work/pages" || {
    echo "FAIL models: they could not be made"
    exit 1
}
EPCTX_PLAYWRIGHT=$(sh tests/deps.sh where playwright) || {
    echo "FAIL playwright: tests/deps.sh test fetches it"
    exit 1
}
export EPCTX_PLAYWRIGHT
cd "$work/pages" || exit 1
out=../out err=../err

expect() {
    name=$1 want=$2 text=$3
    shift 3
    before=$(state)
    epctx "$@"
    if [ "$want" -eq 0 ]; then result "$name" 0; else refused "$name" "$want" "$text"; fi
}

# -- what the command writes, and what it refuses --
cp digits.onnx source.onnx
epctx compile source.onnx
said "a model of the reference NPU" 0
expect "page" 0 "" view plain.onnx -o model.html
cp model.html first.html
expect "no page named" 2 "specify the page" view plain.onnx
expect "no model" 2 "missing argument" view -o new.html
expect "three models" 2 "too many arguments" view plain.onnx plain.onnx plain.onnx -o new.html
expect "a model that is not there" 1 "none.onnx" view none.onnx -o new.html
expect "the second is not there" 1 "none.onnx" view plain.onnx none.onnx -o new.html
echo "no model" >text.onnx
expect "no model at all" 1 "text.onnx" view text.onnx -o new.html
expect "a page that is there" 1 "-f replaces it" view plain.onnx -o model.html
expect "no folder" 1 "nowhere" view plain.onnx -o nowhere/new.html
expect "a wrong policy" 2 "--overwrite" view plain.onnx --overwrite what -o model.html
echo other >model.html
epctx view plain.onnx -f -o model.html
said "-f" 0
same "the same page each time" first.html model.html
echo other >model.html
epctx view plain.onnx --overwrite backup -o model.html
said "backup" 0
if [ "$(cat model.html~)" = other ]; then ok "the old page is kept"
else fail "the old page is kept" "there is no model.html~"; fi
epctx view plain.onnx -o -
said "standard output" 0
same "the same page there" first.html "$out"
if grep -q 'https*://\|@import\|url(' first.html; then fail "no address in the page" "there is one"
else ok "no address in the page"; fi

# -- the pages that are used --
for model in folds hostile bad found many wide dense; do
    works "$model" "$epctx" view $model.onnx -o $model.html
done
works "context" "$epctx" view source_ctx.onnx -o context.html
works "two" "$epctx" view folds.onnx changed.onnx -o two.html
works "compiled in memory" "$epctx" view --npu source.onnx -o npu.html

# plan NAME TEXT: what the page knows of the reference NPU's commands
plan() {
    if grep -q "$2" "$1.html"; then ok "$1: plan"; else fail "$1: plan" "expected $2"; fi
}
plan npu '"writes": \[[0-9]*, [0-9]*\]'
plan context '"writes": \[[0-9]*, [0-9]*\]'
mkdir moved && cp source_ctx.onnx moved
works "without its binary" "$epctx" view moved/source_ctx.onnx -o moved.html
plan moved '"problem": ".*source_npu.bin'

node "$top/tests/judge/view.js" . || status=1
exit $status
