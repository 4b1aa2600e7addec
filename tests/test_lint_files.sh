#!/bin/sh
# Lint of several files and folders: what is judged, formats, rules that are chosen or ignored, and
# the commands that cure.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_lint_files
"$python" -B tests/judge/lint_files.py "$epctx" "$work" || fail judge "it ended with an error"

# What would make its folder a delivery, but is no file.
mkdir -p "$work/odd/genai_config.json" "$work/odd/inner"
ln -s nowhere "$work/odd/inner/manifest.json"
"$python" "$top/tests/judge/make_model.py" plain "$work/odd/plain.onnx"
"$epctx" lint "$work/odd" >"$work/out" 2>"$work/err"
code=$? out=$work/out err=$work/err
said "a folder as genai_config.json" 1 "genai_config.json: error E901 unreadable: is not a regular"
said "a link to nowhere as manifest.json" 1 "inner/manifest.json: warning W902"

# What cannot be read, by somebody who is not root: in a folder that everybody can enter, which
# those of tests/run are not (a file would be out of reach, not unreadable).
place=$(mktemp -d -p /tmp) && chmod 755 "$place" || exit 1
cp "$epctx" "$place/epctx" && cd "$place" || exit 1
"$python" "$top/tests/judge/make_model.py" plain plain.onnx
./epctx compile plain.onnx >/dev/null
./epctx init --external --threshold 0 plain.onnx -o outside.onnx >/dev/null
mkdir folder && cp plain.onnx folder
as=
[ "$(id -u)" -ne 0 ] || as="setpriv --reuid=65534 --regid=65534 --clear-groups"
chmod -R a+rX . && chmod 000 plain_npu.bin outside.onnx.data && chmod 644 folder
# unreadable NAME CODE WORDS COMMAND...
unreadable() {
    name=$1 want=$2 words=$3
    shift 3
    # shellcheck disable=SC2086 # a list of words
    $as ./epctx "$@" >"$work/out" 2>"$work/err"
    code=$?
    out=$work/out err=$work/err
    said "$name" "$want" "$words"
}
unreadable "a binary that cannot be read" 1 "E023" lint plain_ctx.onnx
unreadable "a binary that cannot be read: why" 1 "Permission denied" lint plain_ctx.onnx
unreadable "a data file that cannot be read" 1 "E023" lint outside.onnx
unreadable "a binary that cannot be read, listed" 1 "Permission denied" ls plain_ctx.onnx
unreadable "a data file that cannot be read, listed" 1 "Permission denied" ls outside.onnx
unreadable "a folder that cannot be entered" 1 "folder/plain.onnx: error E901" lint folder
chmod 755 folder && cd "$top" && rm -rf "$place"
exit $status
