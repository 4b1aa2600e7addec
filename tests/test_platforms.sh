#!/bin/sh
# The same model gives the same bytes and, within rounding, the same results everywhere: other
# processors (EPCTX_PLATFORMS names their folders under build/), other compilers and options, their
# default flags, the implementation as C and as C++.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
host=$plain
nanopb=$(sh tests/deps.sh where nanopb-source)
start platforms
mkdir "$work/models"
out=/dev/null err=/dev/null

# ------------------------------------------------------------------ models

add_model() { [ ! -e "$1" ] || cp "$1" "$work/models/$2.onnx"; }
cases=/usr/share/libonnx-testdata/data
for name in conv_with_strides_padding softmax_large_number gemm_all_attributes \
            maxpool_2d_precomputed_pads; do
    add_model "$cases/node/test_$name/model.onnx" "$name"
done
add_model "$(sh tests/deps.sh where blazeface)/ONNX/face_detection_front_128x128_barracuda.onnx" \
    blazeface
for name in mnist_8 dtln_2 mlpt_ic_fp32; do
    [ -z "${EPCTX_TEST_MODELS:-}" ] || add_model "$EPCTX_TEST_MODELS/onnx/$name.onnx" $name
done
for model in "$work"/models/*.onnx; do
    [ -e "$model" ] || { fail models "there is no model to compile"; exit 1; }
    (cd "$work/models" && "$host" compile "$model" &&
     "$host" run --seed 1 --dump "${model%.onnx}" "${model%.onnx}_ctx.onnx") >"$work/log" 2>&1 ||
        fail "$(basename "$model")" "the host cannot compile or run it: $(tail -n 1 "$work/log")"
done

# --------------------------------------------------------------- comparing

# same NAME COMMAND...: COMMAND is an epctx of another make
same() {
    name=$1
    shift
    folder=$work/$name
    mkdir -p "$folder"
    for model in "$work"/models/*_ctx.onnx; do
        base=$(basename "${model%_ctx.onnx}")
        cp "$work/models/$base.onnx" "$folder/"
        if ! (cd "$folder" && "$@" compile "$base.onnx" &&
              "$@" run --seed 1 --dump "$base" "${base}_ctx.onnx") >"$work/log" 2>&1; then
            fail "$name $base" "$(tail -n 1 "$work/log")"
        elif ! cmp -s "$model" "$folder/${base}_ctx.onnx"; then
            fail "$name $base" "expected the bytes of the host's context model, they differ"
        elif ! cmp -s "${model%_ctx.onnx}_npu.bin" "$folder/${base}_npu.bin"; then
            fail "$name $base" "expected the bytes of the host's context binary, they differ"
        elif ! compare "${model%_ctx.onnx}" "$folder/$base" >"$work/log" 2>&1; then
            fail "$name $base" "expected the host's outputs, found: $(tail -n 1 "$work/log")"
        else
            echo "ok $name $base"
        fi
    done
}

# numbers NAME RUNNER LINK...: all cases of test_npu_kernels, with the sums of their binaries, by
# the headers compiled into $work/NAME; LINK: with what
numbers() {
    name=$1 runner=$2
    shift 2
    [ -e "$work/numbers" ] ||
        EPCTX_TEST_BYTES=1 build/tests/test_npu_kernels 2>/dev/null | kernel_lines >"$work/numbers"
    if ! "$@" "$work/$name"/*.o -lm -o "$work/$name/kernels" >"$work/log" 2>&1; then
        fail "$name kernels" "expected to link, found: $(tail -n 1 "$work/log")"
        return
    fi
    EPCTX_TEST_BYTES=1 $runner "$work/$name/kernels" 2>/dev/null | kernel_lines >"$work/log"
    expected=$work/numbers
    case $name in s390x-g++*)
        expected=$work/unfused
        unfused_lines "$work/numbers" >"$expected"
        unfused_lines "$work/log" >"$work/its" && mv "$work/its" "$work/log"
        ;;
    esac
    if [ -s "$work/log" ] && cmp -s "$expected" "$work/log"; then
        ok "$name kernels"
    else
        fail "$name kernels" "$(diff "$expected" "$work/log" | grep -m 1 -E '^> FAIL|^[<>]')"
    fi
}

# Of vector forms, only x86-64 has results.
kernel_lines() { grep -v -e '^note ' -e '^ok integer_forms$'; }

# What g++ for s390x, which fuses by itself, has in common with others (epctx_npu.h, DETERMINISM).
unfused_lines() {
    awk '/^bytes / { sums = sums $0 "\n"; next }
        /^ok tables_that_fuse$/ { sums = "" }
        { printf "%s%s\n", sums, $0; sums = "" }' "$1"
}

emulator() {
    case $1 in
    s390x) echo qemu-s390x ;;
    arm64) echo qemu-aarch64 ;;
    armhf) echo qemu-arm ;;
    powerpc) echo qemu-ppc ;;
    *) echo env ;;
    esac
}

for platform in ${EPCTX_PLATFORMS:-i386 s390x}; do
    same "$platform" "$(emulator "$platform")" "$top/build/$platform/epctx"
    # A static program cannot open ONNX Runtime, and says so.
    $(emulator "$platform") "build/$platform/epctx" devices >"$work/log" 2>&1
    if [ $? -eq 2 ] && grep -q "this build of epctx is a static program" "$work/log"; then
        ok "$platform: ONNX Runtime"
    else
        fail "$platform: ONNX Runtime" "expected a refusal, found: $(tail -n 1 "$work/log")"
    fi
done

# ----------------------------------------------------- compilers and options

warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Werror"

# Of the tool.
tool=$(find build/obj/examples/epctx/main.o build/obj/examples/epctx/*/ -name '*.o' \
    ! -name without_facts.o)

# make_with NAME COMPILER LANGUAGE FLAGS...: an epctx whose headers were compiled that way
make_with() {
    name=$1 compiler=$2 language=$3
    shift 3
    mkdir -p "$work/$name"
    for part in common decode encode; do
        ${CC:-gcc} -O2 -c "$nanopb/pb_$part.c" -o "$work/$name/pb_$part.o" || return 1
    done
    # shellcheck disable=SC2086 # a list of words
    "$compiler" "$@" $warnings -x "$language" -isystem "$nanopb" -DEPCTX_IMPLEMENTATION \
        -c epctx.h -o "$work/$name/epctx.o" &&
        "$compiler" "$@" $warnings -x "$language" -isystem "$nanopb" -DEPCTX_NPU_IMPLEMENTATION \
            -c epctx_npu.h -o "$work/$name/epctx_npu.o" &&
        "$compiler" "$@" $tool "$work/$name"/*.o -lm -lsodium -pthread -ldl \
            -o "$work/$name/epctx"
}

variant() {
    if make_with "$@" >"$work/log" 2>&1; then
        same "$1" "$work/$1/epctx"
        name=$1 compiler=$2
        shift 3
        numbers "$name" env "$compiler" "$@" build/obj/tests/test_npu_kernels.o
    else
        fail "$1" "expected to compile, found: $(grep -m 1 -E 'error|undefined' "$work/log")"
    fi
}

variant gcc-O0 gcc c -O0
variant gcc-O3-lto gcc c -O3 -flto
variant g++-17 g++ c++ -O2 -std=c++17
variant clang clang c -O2
if [ -n "${EPCTX_PLATFORMS:-}" ]; then # `make matrix`
    variant gcc-native gcc c -O3 -march=native
    variant gcc-c99 gcc c -O2 -std=c99
    variant gcc-c17 gcc c -O2 -std=c17
    variant gcc-c11 gcc c -O2 -std=c11
    variant g++-11 g++ c++ -O2 -std=c++11
    variant g++-14 g++ c++ -O2 -std=c++14
    variant g++-20 g++ c++ -O2 -std=c++20
    variant clang-O3-lto clang c -O3 -flto
    variant clang++-17 clang++ c++ -O2 -std=c++17
fi

# ------------------------------------------------------------- default flags
# Users give -O2, or nothing: the language mode, excess precision and contraction are the
# compiler's.

# default_flags PLATFORM COMPILER LEVEL: as a user of that platform's compiler gets the headers
default_flags() {
    name=$1-$2$3 triple=$(triple_of "$1") language=c
    case $2 in *++) language=c++ ;; esac
    case $2 in
    clang*) compiler="$2 --target=$triple -isystem /usr/$triple/include" ;;
    *) compiler=$triple-$2 ;;
    esac
    mkdir -p "$work/$name"
    for header in epctx:EPCTX epctx_npu:EPCTX_NPU; do
        # shellcheck disable=SC2086 # a list of words
        if ! $compiler "$3" -Wall -Wextra -Werror -D_FILE_OFFSET_BITS=64 -x $language \
                -isystem "$nanopb" -D${header#*:}_IMPLEMENTATION -c "${header%:*}.h" \
                -o "$work/$name/${header%:*}.o" >"$work/log" 2>&1; then
            fail "$name ${header%:*}.h" "$(grep -m 1 -E 'error|warning' "$work/log")"
            return
        fi
    done
    numbers "$name" "$(emulator "$1")" "$triple-gcc" -static \
        "build/$1/obj/tests/test_npu_kernels.o" "build/$1"/obj/nanopb/*.o
}

triple_of() {
    case $1 in
    i386) echo i686-linux-gnu ;;
    s390x) echo s390x-linux-gnu ;;
    arm64) echo aarch64-linux-gnu ;;
    armhf) echo arm-linux-gnueabihf ;;
    esac
}

# Does qemu multiply two floats to a double (MDEBR, which clang uses)? Those before 8.0 do not.
emulator_multiplies() {
    cat >"$work/multiply.c" <<'END'
__attribute__((noinline)) static double product(float a, float b) {
    return (double)a * (double)b;
}
int main(int argc, char **argv) {
    (void)argv;
    return product((float)argc + 2.0f, (float)argc + 4.0f) != 15.0;
}
END
    clang --target=s390x-linux-gnu -isystem /usr/s390x-linux-gnu/include -O2 -c \
        "$work/multiply.c" -o "$work/multiply.o" &&
        s390x-linux-gnu-gcc -static "$work/multiply.o" -o "$work/multiply" &&
        qemu-s390x "$work/multiply"
}

# Each is a minute: `make check` tries what differs most, `make matrix` all on its processors.
for platform in ${EPCTX_PLATFORMS:-i386 s390x}; do
    [ -n "$(triple_of "$platform")" ] || continue
    case ${EPCTX_PLATFORMS:-}$platform in
    i386) kinds="gcc-O2 clang-O2" ;;
    s390x) kinds="g++-O2" ;;
    *) kinds="gcc-O2 g++-O2 clang-O2 clang++-O0 gcc-O0 gcc-O3 clang-O0 clang-O3 clang++-O2" ;;
    esac
    for kind in $kinds; do
        case $platform-$kind in
        s390x-clang*-O0) continue ;; # emulated, a quarter of an hour
        s390x-clang*)
            if ! emulator_multiplies; then
                echo "skip $platform $kind: this qemu multiplies floats to doubles wrongly (MDEBR)"
                continue
            fi ;;
        esac
        default_flags "$platform" "${kind%-O*}" "-O${kind##*-O}"
    done
done

# ------------------------------------------- targets that nothing here can run

# gate NAME FLAGS...: both headers with their implementations, as C99, C17 and C++17. Compiled only.
gate() {
    name=$1
    shift
    for language in c-c99 c-c17 c++-c++17; do
        for header in epctx epctx_npu; do
            if clang -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow \
                -Wcast-qual -Werror \
                    -x "${language%%-*}" -std="${language#*-}" -nostdinc \
                    -isystem "$(clang -print-resource-dir)/include" -isystem "$nanopb" -I. \
                    -DEPCTX_IMPLEMENTATION -DEPCTX_NPU_IMPLEMENTATION -D_FILE_OFFSET_BITS=64 "$@" \
                    -include $header.h - </dev/null >"$work/log" 2>&1; then
                echo "ok $name ${language#*-} $header.h, compiled only"
            else
                fail "$name ${language#*-} $header.h" "$(grep -m 1 -E 'error|warning' "$work/log")"
            fi
        done
    done
}

if [ -n "${EPCTX_PLATFORMS:-}" ]; then
    # The types and the predefined macros of Android's targets; the C library's headers are GNU's.
    gate "Android arm64" --target=aarch64-linux-android21 -isystem /usr/aarch64-linux-gnu/include
    gate "Android armv7" --target=armv7a-linux-androideabi24 -D__ARM_PCS_VFP \
        -isystem /usr/arm-linux-gnueabihf/include
    # Windows with the types and macros of MSVC: its branches of the headers, since clang does not
    # tell its name; mingw-w64's headers, which have to believe in gcc.
    printf '%s\n' '#define __GNUC__ 4' '#define __GNUC_MINOR__ 2' \
        '#define __MINGW_ATTRIB_NORETURN' \
        '#define __MINGW_ATTRIB_DEPRECATED' '#include <windows.h>' '#include <float.h>' \
        '#include <math.h>' '#include <stdio.h>' '#include <stdlib.h>' '#include <string.h>' \
        '#undef __GNUC__' '#undef __clang__' >"$work/msvc.h"
    msvc="--target=x86_64-pc-windows-msvc -Wno-language-extension-token \
-isystem /usr/x86_64-w64-mingw32/include -include $work/msvc.h"
    # shellcheck disable=SC2086 # a list of words
    gate "MSVC" $msvc
    # The plugin EP and its template. mingw-w64 does not know all words of ORT's annotations.
    ort_headers=$(sh tests/deps.sh where ort-headers)
    for source in examples/plugin_ep/*.c examples/my_ep/*.c; do
        # shellcheck disable=SC2086
        if clang -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Werror \
                -std=c17 -nostdinc -isystem "$(clang -print-resource-dir)/include" \
                -isystem "$ort_headers" $msvc -D_Frees_ptr_opt_= -DEPCTX_NO_WIRE -I. \
                -Iexamples/plugin_ep "$source" >"$work/log" 2>&1; then
            echo "ok MSVC $source, compiled only"
        else
            fail "MSVC $source" "$(grep -m 1 -E 'error|warning' "$work/log")"
        fi
    done
fi
exit $status
