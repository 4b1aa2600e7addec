#!/bin/sh
# examples/web: the tool in a page, in headless Chromium.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
if quick; then
    echo "skip web: \`make check\` installs what builds it, and a browser"
    exit 0
fi
start web
make_models digits plain
EPCTX_PLAYWRIGHT=$(sh tests/deps.sh where playwright) || {
    echo "FAIL playwright: tests/deps.sh check fetches it"
    exit 1
}
export EPCTX_PLAYWRIGHT
page=$work/epctx.html
if sh examples/web/build.sh "$page" >"$work/log" 2>&1; then ok "built"
else
    echo "FAIL built: $(tail -n 3 "$work/log")"
    exit 1
fi
echo "note $(wc -c <"$page") bytes"
sh examples/web/build.sh "$work/again.html" >"$work/log" 2>&1
if cmp -s "$page" "$work/again.html"; then ok "the same bytes again"
else echo "FAIL the same bytes again: they differ"; status=1; fi
mkdir "$work/files"
cp "$work/digits.onnx" "$work/files"
cp "$work/plain.onnx" "$work/files/<img src=x onerror=alert(1)>.onnx"
cd "$work/files" || exit 1
"$plain" compile digits.onnx >../log 2>&1
"$plain" unset digits_ctx.onnx opset:com.microsoft -o "./-it's odd.onnx" >../log 2>&1
echo "no model" >broken.onnx
# An embedded context of 600 MiB, most of it a hole.
printf "FAKE\001" >large.bin
truncate -s 600M large.bin
"$plain" wrap large.bin --profile qnn --inputs 'x:float32[1]' --outputs 'y:float32[1]' --embed \
    -o large_ctx.onnx >../log 2>&1 || echo "FAIL large model: $(cat ../log)"
rm large.bin
node "$top/tests/judge/web.js" "$page" . || status=1
# The command that the page tells, as it is.
sed "s|^epctx|'$plain'|" command >command.sh
works "the command does what it says" sh command.sh
epctx lint --rules W001 "./-it's odd.onnx"
said "it is cured" 0 "0 warnings"
[ -z "${EPCTX_TEST_KEEP:-}" ] || cp ./*.png "$top/build"
exit $status
