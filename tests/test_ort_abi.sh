#!/bin/sh
# The tool's own header of ONNX Runtime's C API beside the official ones, and what ONNX Runtime 1.31
# adds to them, called in the real library.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start test_ort_abi
out=$work/stdout err=$work/stderr epctx=$plain
headers=$(sh tests/deps.sh where ort-headers) || {
    echo "FAIL headers: those of ONNX Runtime are not there"
    exit 1
}
library=${EPCTX_ORT_LIBRARY:-$(sh tests/deps.sh where ort)} || {
    echo "FAIL ort: ONNX Runtime is not there"
    exit 1
}
flags="-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wstrict-prototypes"
flags="$flags -Werror"
abi=examples/epctx/ort/abi.h

# compares NAME WORDS [SCRIPT]: the compiler's words about the header, changed by a script of sed's;
# WORDS "": nothing is said.
compares() {
    mkdir -p "$work/tree/examples/epctx/ort"
    sed "${3:-}" $abi >"$work/tree/$abi"
    if [ -n "${3:-}" ] && cmp -s $abi "$work/tree/$abi"; then
        fail "$1" "the script of sed's changes nothing"
        return
    fi
    # shellcheck disable=SC2086 # a list of flags
    ${CC:-gcc} $flags -isystem "$headers" -I"$work/tree" -I. -fsyntax-only tests/ort/abi.c \
        >"$work/log" 2>&1
    code=$?
    if [ -z "$2" ] && [ $code -eq 0 ]; then ok "$1"
    elif [ -n "$2" ] && [ $code -ne 0 ] && grep -q "$2" "$work/log"; then ok "$1"
    else fail "$1" "exit code $code, expected '$2', see $work/log"; fi
}

compares "every entry is that of the official headers" ""
compares "another place is seen" "Run: another place" \
    's/SLOT(9, OrtStatus \*, Run,/SLOT(10, OrtStatus *, Run,/'
compares "another parameter is seen" "SetIntraOpNumThreads: another type" \
    '/SetIntraOpNumThreads/s/, int)/, int64_t)/'
compares "a const too few is seen" "GetErrorMessage: another type" \
    '/GetErrorMessage/s/(const OrtStatus/(OrtStatus/'
compares "another result is seen" "HardwareDevice_VendorId: another type" \
    '/HardwareDevice_VendorId/s/uint32_t/int32_t/'
compares "another place in a further table is seen" "CompileModel: another place" \
    's/SLOT(8, OrtStatus \*, CompileModel/SLOT(9, OrtStatus *, CompileModel/'
compares "another member is seen" "log_id: another type" '/, log_id)/s/const char/char/'
compares "two members that changed places are seen" "another place" \
    's/MEMBER(const char \*, log_id)/MEMBER(void *, custom_logging_param)/;t
     s/MEMBER(void \*, custom_logging_param)/MEMBER(const char *, log_id)/'
compares "another number is seen" "ORT_LOGGING_LEVEL_WARNING: another number" \
    '/ORT_LOGGING_LEVEL_WARNING/s/2)/3)/'
compares "an allocator of another kind is seen" "Free: another place" \
    '/^    SLOT(2, void, Free/s/2/3/'

# The structures that the tool works with are made from the lists, gap by gap.
cat >"$work/places.c" <<'END'
#include "examples/epctx/ort/abi.h"
#include "examples/plugin_ep/ort131.h"
#define SLOT(place, result, name, parameters) \
    _Static_assert(offsetof(TABLE, name) == (place) * sizeof(void *), #name ": its gaps are wrong");
#define GAP(first, last)
#define TABLE OrtApiBase
ORT_ABI_BASE(SLOT, GAP)
#undef TABLE
#define TABLE OrtAllocator
ORT_ABI_ALLOCATOR(SLOT, GAP)
#undef TABLE
#define TABLE OrtCompileApi
ORT_ABI_COMPILE(SLOT, GAP)
#undef TABLE
#define TABLE OrtApi
ORT_ABI_API(SLOT, GAP)
END
# shellcheck disable=SC2086 # a list of flags
for compiler in gcc clang; do
    works "places in the tool's structures, $compiler" $compiler $flags -I. -fsyntax-only \
        "$work/places.c"
done
sed 's/GAP(5, 6)/GAP(5, 7)/' $abi >"$work/tree/$abi"
# shellcheck disable=SC2086 # a list of flags
if ${CC:-gcc} $flags -I"$work/tree" -I. -fsyntax-only "$work/places.c" >"$work/log" 2>&1; then
    fail "a wrong gap is seen" "it is not"
else ok "a wrong gap is seen"; fi

# No header of ONNX Runtime's is needed for the tool, and every build of it has --ort.
nanopb=${NANOPB_CFLAGS:-}
for source in examples/epctx/ort/*.c; do
    # shellcheck disable=SC2086 # lists of flags
    if ${CC:-gcc} $flags -I. -Iexamples/epctx $nanopb -fsyntax-only -MMD -MF "$work/depends" \
        "$source" 2>"$err" &&
        ! grep -q 'onnxruntime_' "$work/depends"; then ok "$source without ONNX Runtime's headers"
    else fail "$source without ONNX Runtime's headers" "it includes some, or is not compiled"; fi
done
mkdir "$work/empty"
for variant in "" EPCTX_NO_PACKAGE=1; do
    # shellcheck disable=SC2086 # a variable, or none
    (unset ORT_INCLUDE ORT_HOME MAKEFLAGS MAKELEVEL
     make -nB EPCTX_CACHE="$work/empty" EPCTX_OFFLINE=1 $variant build/epctx) >"$out" 2>"$err"
    code=$?
    said "make build/epctx $variant, nothing fetched" 0 "-c examples/epctx/ort/driver.c"
    if grep -q -e -isystem -e NO_ORT "$out"; then
        fail "make build/epctx $variant: the same everywhere" "with -isystem or without ORT"
    else ok "make build/epctx $variant: the same everywhere"; fi
done

unused=
slots=0
for name in $(sed -n 's/^ *SLOT([0-9]*, [^,]*, \([A-Za-z0-9_]*\),.*/\1/p' $abi); do
    grep -q -e "->$name\>" examples/epctx/ort/*.c || unused="$unused $name"
    slots=$((slots + 1))
done
if [ -z "$unused" ] && [ $slots -gt 50 ]; then ok "every function is called"; else
    fail "every function is called" "of $slots are not called:$unused"
fi

# The slots of 1.31, in a package that the tool makes.
make_models plain
cd "$work" || exit 1
epctx compile plain.onnx
epctx package -o pack npu=plain_ctx.onnx
result "a package" 0
# shellcheck disable=SC2086 # a list of flags
works "what calls them" ${CC:-gcc} $flags -isystem "$headers" -I"$top" "$top/tests/ort/slots131.c" \
    -ldl -o slots131
ORT_DISABLE_TELEMETRY=1 ./slots131 "$library" pack
case $? in
0) ;;
77) echo "skip the slots of 1.31: $library is older" ;;
*) status=1 ;;
esac
exit $status
