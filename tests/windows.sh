#!/bin/sh
# On Windows, or what comes near: built with mingw-w64 by the makefile, run by wine. The plugin EP
# runs inside ONNX Runtime's library for Windows. `make matrix` runs all of it, `make test` a few
# cases of the plugin where wine and that library are there.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start windows_test
windows=$build/windows
plugin=$windows/tests/test_plugin.exe
out=$work/out err=$work/err
WINEPREFIX=$top/build/wine # five seconds to make
WINEDEBUG=-all
export WINEPREFIX WINEDEBUG

for tool in wine x86_64-w64-mingw32-gcc; do
    command -v $tool >/dev/null && continue
    echo "skip windows: $tool is not installed: tests/deps.sh matrix"
    exit 0
done
ort=$(sh tests/deps.sh where ort-windows 2>/dev/null) || {
    echo "skip windows: ONNX Runtime for Windows is not there: tests/deps.sh matrix"
    exit 0
}
if ! [ -e "$plugin" ]; then
    echo "skip windows: ${plugin#"$top"/} is not built"
    exit 0
fi
# Wine calls "/" Z:.
EPCTX_ORT_LIBRARY=Z:$ort/onnxruntime.dll
EPCTX_DEMO_MODEL=Z:$(sh tests/deps.sh where blazeface 2>/dev/null)
export EPCTX_ORT_LIBRARY EPCTX_DEMO_MODEL
[ -e "$WINEPREFIX/system.reg" ] || timeout 300 wineboot -i >/dev/null 2>&1

# run NAME PROGRAM ARGUMENTS...: cases under the platform's name
run() {
    name=$1
    shift
    timeout 600 wine "$@" >"$work/$name.log" 2>"$work/$name.err"
    code=$?
    tr -d '\r' <"$work/$name.log" | sed -n "s/^\(ok\|FAIL\|skip\|note\) /\1 $name /p"
    [ $code -le 1 ] ||
        fail "$name" "ended with code $code in $(grep '^case' "$work/$name.err" | tail -n 1)"
    [ $code -eq 0 ] || status=1
    grep -q '^ok' "$work/$name.log" || fail "$name" "no case passed"
}

# ---------------------------------------------------------- the plugin as a file

for library in epctx_ep toy_ep; do
    x86_64-w64-mingw32-objdump -p "$windows/$library.dll" >"$work/log"
    exports=$(sed -n '/Ordinal\/Name Pointer/,/^$/p' "$work/log" |
        awk '/\[ *[0-9]+\]/ { print $NF }' |
        tr '\n' ' ')
    if [ "$exports" = "CreateEpFactories ReleaseEpFactory " ]; then
        ok "windows $library.dll exports two functions"
    else
        fail "windows $library.dll exports two functions" "found $exports"
    fi
    foreign=$(awk '/DLL Name:/ { print $3 }' "$work/log" | grep -vixE 'KERNEL32.dll|msvcrt.dll' |
        tr '\n' ' ')
    if [ -z "$foreign" ]; then
        ok "windows $library.dll needs only what every Windows has"
    else
        fail "windows $library.dll needs only what every Windows has" "found $foreign"
    fi
done

if quick; then
    run test_plugin "$plugin" jit generate_by_options generate_embedded far_folder \
        reload_from_memory \
        bad_contexts
    exit $status
fi

# ------------------------------------------------------- programs, as everywhere

run windows "$windows/tests/windows.exe"
# Without those that are about links and pipes.
for test in basics epnode npu_blob npu_compile npu_kernels onnx partition scan wire; do
    run "test_$test" "$windows/tests/test_$test.exe"
done
for test in test_plugin test_plugin_rows test_plugin_share test_plugin_weightless; do
    run $test "$windows/tests/$test.exe"
done
EPCTX_TEST_QUICK=1
export EPCTX_TEST_QUICK
run test_plugin_damage "$windows/tests/test_plugin_damage.exe"
unset EPCTX_TEST_QUICK

# --------------------------------------------------- the template, as the guide says

MODEL=$(find "${EPCTX_DEMO_MODEL#Z:}" -name '*front*.onnx' | head -n 1)
export MODEL
{
    sed -n '/^mkdir -p build\/my_ep/,/device_acorn.c$/p' examples/README.md
    awk '/^```windows$/ { on = 1; next } /^```$/ { on = 0 } on' examples/README.md
} | sed "s/^make .*/:/; s|build/|$build/|g; s|$build/my_ep|$work/my_ep|g" >"$work/commands.sh"
timeout 600 sh -e "$work/commands.sh" >"$work/log" 2>&1
code=$?
good=$(grep -c 'outputs as on the CPU' "$work/log")
if [ $code -eq 0 ] && [ "$good" -eq 8 ]; then
    ok "windows: the guide's commands, plugin and template"
else # ORT's word on the graphics of wine says nothing
    last=$(grep -v 'DXGI factory' "$work/log" | tail -n 1)
    fail "windows: the guide's commands" "exit code $code, $good of 8 runs: $last"
fi
# tells NAME TEXT ARGUMENT...: --try fails and says TEXT.
tells() {
    name="windows $1" text=$2
    shift 2
    timeout 60 wine "$plugin" --try "$@" >"$work/log" 2>&1
    code=$?
    if [ $code -eq 1 ] && grep -qaF -e "$text" "$work/log"; then
        ok "$name"
    else
        fail "$name" "exit code $code, expected 1 and '$text': $(tail -n 2 "$work/log")"
    fi
}
tells "--try with an EP option that the template has not" \
    "has no option 'max_element', did you mean 'max_elements'?: it knows max_elements, " \
    --ep-opt max_element=1 "$work/my_ep/acorn_ep.dll" AcornExecutionProvider "$MODEL"
while read -r mistake text; do
    EPCTX_MISTAKE=$mistake tells "tells of the mistake $mistake" "$text" \
        "$windows/mistaken_ep.dll" MineExecutionProvider "$MODEL" </dev/null
done <<'END'
no_device ep_device_get returns NULL
device.vendor ep_device.vendor is not set
open_forgets backend version 0, expected 3
backend.run_fn epctx_backend.run_fn is not set
other_source expected the EP's name 'MineExecutionProvider'
capability_fails the SDK is not well in capability_fn
finish_forgets finish_fn of MineExecutionProvider makes an empty binary
info_without_values info_fn gives graph 'MineExecutionProvider_
run_fails the SDK is not well in run_fn
END

EPCTX_TEST_EP="acorn $work/my_ep/acorn_ep.dll AcornExecutionProvider acorn" \
    run acorn "$plugin" other_hardware other_sdk

# ---------------------------------------------------- the bytes of every other system

make_models plain
mkdir "$work/host" "$work/wine"
for system in host wine; do cp "$work/plain.onnx" "$MODEL" "$work/$system/"; done
model=$(basename "$MODEL" .onnx)
(cd "$work/host" && "$plain" compile plain.onnx >/dev/null)
(cd "$work/wine" && wine "$windows/tests/windows.exe" compile plain.onnx >/dev/null 2>"$work/log")
for file in plain_ctx.onnx plain_npu.bin; do
    same "windows $file has the host's bytes" "$work/wine/$file" "$work/host/$file"
done

# From memory: ORT puts a model's path into the names of nodes.
for how in "" ep.context_embed_mode; do
    rm -f "$work"/*/*_ctx.onnx
    # shellcheck disable=SC2086 # none or one word
    (unset EPCTX_ORT_LIBRARY
     "$build/tests/test_plugin" --write-bytes "$MODEL" "$work/host/m_ctx.onnx" $how) \
        >"$work/log" 2>&1
    # shellcheck disable=SC2086
    wine "$plugin" --write-bytes "$MODEL" "$work/wine/m_ctx.onnx" $how >>"$work/log" 2>&1
    # ORT's library for Windows has one operator domain more.
    "$plain" diff "$work/host/m_ctx.onnx" "$work/wine/m_ctx.onnx" >"$work/diff"
    if [ "$(cat "$work/diff")" = "+ opset 'com.microsoft.dml': 1" ]; then
        ok "windows ORT writes the host's model${how:+, embedded}"
    else
        fail "windows ORT writes the host's model${how:+, embedded}" \
            "$(head -n 3 "$work/diff" "$work/log")"
    fi
    [ -n "$how" ] || same "windows ORT: the host's binary" "$work/host/m_npu.bin" \
        "$work/wine/m_npu.bin"
    works "windows loads what the host wrote${how:+, embedded}" \
        wine "$plugin" --run "$work/host/m_ctx.onnx" "$MODEL"
    works "the host loads what Windows wrote${how:+, embedded}" \
        env -u EPCTX_ORT_LIBRARY "$build/tests/test_plugin" --run "$work/wine/m_ctx.onnx" "$MODEL"
done
exit $status
