#!/bin/sh
# What a user does first, in a folder with a name that a shell splits, unquotes and globs: make, the
# demo, make install, the tool, a test. From most other tests tests/run keeps such names away.
# runs: once for each user
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start blanks
out=$work/out err=$work/err
cached=$(cd "${EPCTX_CACHE:-build/deps}" && pwd)
tree="$work/it's a  folder [of] *"
mkdir -p "$tree/build"
tar -cf - --exclude=./build --exclude=./.git --exclude=./fuzz/corpus . | tar -xf - -C "$tree"
ln -s "$cached" "$tree/build/deps"
unset MAKEFLAGS MFLAGS MAKELEVEL EPCTX_CACHE EPCTX_BUILD EPCTX_TEST_KEEP EPCTX_TEST_COMPLETE \
    EPCTX_TEST_TALLY DESTDIR PREFIX prefix
EPCTX_OFFLINE=1 CFLAGS="-O0" TMPDIR="$work/for a while"
export EPCTX_OFFLINE CFLAGS TMPDIR
mkdir "$TMPDIR"
cd "$tree" || exit 1

works "make" make --no-print-directory
[ -x build/epctx ] || { fail "make" "there is no build/epctx"; exit 1; }
works "make demo" make --no-print-directory demo
grep -q '^demo: OK' "$out" || fail "make demo" "it does not say OK"
home="$work/my own/it's"
works "make install" make --no-print-directory install "PREFIX=$home"
works "what is installed" "$home/bin/epctx" --version
for file in include/epctx.h share/man/man1/epctx.1 share/pkgconfig/epctx.pc; do
    [ -s "$home/$file" ] || fail "make install" "no $file"
done
works "make uninstall" make --no-print-directory uninstall "PREFIX=$home"
left=$(find "$work/my own" -type f)
[ -z "$left" ] || fail "make uninstall" "it leaves $left"

# -- the tool, with names of all kinds --
models="$work/two  models (\"mine\") & *"
mkdir "$models"
cp build/demo/blazeface.onnx "$models/a  model's.onnx"
for form in "" --embed --weightless; do
    context="$models/of  ${form:-plain} [x]_ctx.onnx"
    # shellcheck disable=SC2086 # none or one word
    works "compile $form" build/epctx compile "$models/a  model's.onnx" -o "$context" $form
    works "info $form" build/epctx info "$context"
    works "run $form" build/epctx run "$context" --seed 1 --output-dir "$models/out $form"
    [ -s "$models/out $form/output_0.bin" ] || fail "run $form" "no output"
done
works "run by ONNX Runtime" build/epctx run "$models/a  model's.onnx" --seed 1 \
    --ep CPUExecutionProvider --ort "$(sh tests/deps.sh where ort)"

# -- a test with words that are not quoted --
EPCTX_BUILD=build works "a test" tests/run tests/test_weights.sh
grep -q 'the tests see this tree as /' "$out" || fail "a test" "it saw this tree's own name"
left=$(find "$TMPDIR" -mindepth 1)
[ -z "$left" ] || fail "a test" "it leaves $left"
cd "$top" && rm -rf "$work"
exit $status
