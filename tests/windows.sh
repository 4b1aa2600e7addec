#!/bin/sh
# On Windows, or what comes near: built with mingw-w64, run by wine.
set -u
cd "$(dirname "$0")/.."
work=${EPCTX_TEST_FOLDER:-$PWD/build}/windows
nanopb=$(sh tests/deps.sh where nanopb-source)
status=0
mkdir -p "$work"
WINEPREFIX=$work/wine
WINEDEBUG=-all
export WINEPREFIX WINEDEBUG
compiler=x86_64-w64-mingw32-gcc
flags="-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wstrict-prototypes \
-Werror -O2 -D__USE_MINGW_ANSI_STDIO=1 -D_WIN32_WINNT=0x0601 -I. -isystem $nanopb"

fail() { echo "FAIL $1: $2"; status=1; }

build() {
    # shellcheck disable=SC2086 # lists of words
    for part in common decode encode; do
        $compiler -O2 -c "$nanopb/pb_$part.c" -o "$work/pb_$part.o" || return 1
    done
    $compiler $flags -DEPCTX_IMPLEMENTATION -x c -c epctx.h -o "$work/epctx.o" &&
        $compiler $flags -DEPCTX_NPU_IMPLEMENTATION -x c -c epctx_npu.h -o "$work/npu.o" &&
        for source in examples/epctx/ops/*.c; do
            $compiler $flags -c "$source" -o "$work/ops_$(basename "$source" .c).o" || return 1
        done &&
        rm -f "$work/libepctx.a" && ar rcs "$work/libepctx.a" "$work"/*.o &&
        $compiler $flags tests/windows.c "$work/libepctx.a" -o "$work/windows.exe"
}

# run NAME COMMAND...: cases under the platform's name
run() {
    name=$1
    shift
    timeout 300 "$@" >"$work/$name.log" 2>/dev/null
    code=$?
    tr -d '\r' <"$work/$name.log" | sed -n "s/^\(ok\|FAIL\|skip\|note\) /\1 $name /p"
    [ $code -le 1 ] || fail "$name" "ended with code $code"
    [ $code -eq 0 ] || status=1
    grep -q '^ok' "$work/$name.log" || fail "$name" "no case passed"
}

if ! build >"$work/log" 2>&1; then
    fail build "$(grep -m 1 -E 'error|undefined' "$work/log")"
    exit 1
fi
timeout 300 wineboot -i >/dev/null 2>&1
rm -rf "$WINEPREFIX"/drive_c/users/*/Temp/epctx_* # of a run that failed: process numbers come again
run windows wine "$work/windows.exe"

# The same programs as everywhere, but for those that are about links and pipes.
for test in basics epnode npu_blob npu_compile npu_kernels onnx partition scan wire; do
    # shellcheck disable=SC2086
    if $compiler $flags -w -include tests/windows.h "tests/test_$test.c" \
            "$work/libepctx.a" -o "$work/test_$test.exe" >"$work/log" 2>&1; then
        run "test_$test" wine "$work/test_$test.exe"
    else
        fail "test_$test" "$(grep -m 1 -E 'error|undefined' "$work/log")"
    fi
done

# The bytes of every other system.
"${PYTHON:-/usr/bin/python3}" tests/judge/make_model.py plain "$work/plain.onnx" || exit 1
mkdir -p "$work/host"
cp "$work/plain.onnx" "$work/host/"
tool=$PWD/build/epctx
(cd "$work/host" && "$tool" compile -f plain.onnx >/dev/null)
(cd "$work" && wine windows.exe compile plain.onnx >/dev/null 2>"$work/log")
for file in plain_ctx.onnx plain_npu.bin; do
    if cmp -s "$work/$file" "$work/host/$file"; then
        echo "ok windows $file"
    else
        fail "windows $file" "expected the host's bytes; $(cat "$work/log")"
    fi
done
exit $status
