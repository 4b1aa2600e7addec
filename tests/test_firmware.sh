#!/bin/sh
# The firmware of examples/firmware on an emulated Cortex-M4, and on a Cortex-M33: what it prints,
# and what it needs. A network of bytes on a Cortex-M3, too, where floats take a library.
# Code is everything in the image but model and input: board, libc and nanopb count, too. RAM is
# data, zeroed data and the stack at its deepest.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
epctx=$plain
start firmware
out=$work/log err=/dev/null

# size_of ELF SECTION: bytes
size_of() { arm-none-eabi-size -A "$1" | awk -v name="$2" '$1 == name { print $2 }'; }

# emulate CPU ELF
emulate() {
    case $1 in
    cortex-m3) machine=mps2-an385 ;;
    cortex-m4) machine=mps2-an386 ;;
    *) machine=mps2-an505 ;;
    esac
    timeout 60 qemu-system-arm -M $machine -icount shift=0 -nographic -monitor none \
        -serial none -semihosting-config enable=on,target=native -kernel "$2" </dev/null 2>&1
}

processors=$(rounds "cortex-m4 cortex-m33" cortex-m4)
rounding=64 # by which a number may differ

# try NAME CODE RAM PROGRAM FILE INPUT FLAGS...: builds, runs, and compares with $work/NAME.expected
# and with the most that code and RAM may be
try() {
    for CPU in $processors; do
        export CPU
        try_on "$@"
    done
}

try_on() {
    cp "$work/$1.expected" "$work/$1 on $CPU.expected"
    name="$1 on $CPU" most_code=$2 most_ram=$3 elf=$work/$1.$CPU.elf
    shift 3
    program=$1
    shift
    if ! sh examples/firmware/build.sh "$program" "$elf" "$@" >"$work/log" 2>&1; then
        cat "$work/log"
        fail "$name" "expected to compile: $(grep -m 1 -E 'error|undefined' "$work/log")"
        return
    fi
    emulate "$CPU" "$elf" >"$work/$name.said"
    code=$?
    grep -v -E '^(stack|instructions) ' "$work/$name.said" >"$work/$name.found"
    if [ "$program" = executor ]; then # within rounding: what is left is what was expected
        awk -v file="$work/$name.expected" -v limit=$rounding 'BEGIN { getline line < file
            split(line, want, " ") }
            { for (i = 2; i <= NF; i++) { d = $i - want[i]; if (d > limit || d < -limit) exit }
              if (NF == 11) print line }' "$work/$name.found" >"$work/$name.near"
        mv "$work/$name.near" "$work/$name.found"
    fi
    stack=$(awk '$1 == "stack" { print $2 }' "$work/$name.said")
    instructions=$(awk '$1 == "instructions" { print $2 }' "$work/$name.said")
    if [ $code -ne 0 ] || ! cmp -s "$work/$name.expected" "$work/$name.found"; then
        fail "$name" "exit code $code, expected '$(cat "$work/$name.expected")', found \
'$(cat "$work/$name.found")'"
        return
    fi
    echo "ok $name"
    flash=$(($(size_of "$elf" .text) + $(size_of "$elf" .data)))
    static=$(($(size_of "$elf" .data) + $(size_of "$elf" .bss)))
    echo "note $name: $flash bytes of code, $((static + stack)) of RAM ($stack of it stack)," \
        "$instructions instructions"
    if [ "$flash" -gt "$most_code" ] || [ $((static + stack)) -gt "$most_ram" ]; then
        fail "$name size" "expected at most $most_code bytes of code and $most_ram of RAM"
    else
        echo "ok $name size"
    fi
}

# ---------------------------------------------------------------- models

make_models digits bytes
(cd "$work" && "$epctx" compile --embed -o embedded_ctx.onnx digits.onnx &&
 "$epctx" compile digits.onnx && "$epctx" run --seed 1 --dump host digits_ctx.onnx &&
 "$epctx" compile bytes.onnx && "$epctx" run --seed 1 --dump bytes bytes_ctx.onnx) \
    >"$work/log" 2>&1 || { fail models "$(tail -n 1 "$work/log")"; exit 1; }

# ---------------------------------------------------------------- firmware

size=$(wc -c <"$work/digits_npu.bin")
offset=$(grep -a -b -o EPCTXNPU "$work/embedded_ctx.onnx" | head -n 1 | cut -d : -f 1)
printf 'source EpctxNpuExecutionProvider\ncontext binary at %s, %s bytes, begins with EPCTXNPU\n' \
    "$offset" "$size" >"$work/reader.expected"
try reader 6144 768 reader "$work/embedded_ctx.onnx"

# Behind it a node of another domain with a payload of its own, which is none.
printf '%b' ':\053\n\051\042\011EPContext\072\005other*\025\n\020ep_cache_context\042\001x' \
    >"$work/broken"
cat "$work/broken" >>"$work/embedded_ctx.onnx"
total=$(wc -c <"$work/embedded_ctx.onnx")
sum=$(od -An -v -t u1 "$work/digits_npu.bin" | awk '{ for (i = 1; i <= NF; i++) s += $i }
    END { print s }')
echo "read $total of $total bytes; context binary at $offset, sum of its bytes $sum" \
    >"$work/stream.expected"
try stream 7168 1600 stream "$work/embedded_ctx.onnx"

# kernels_of BINARY: the option that info prints, so that the firmware has these kernels only
kernels_of() { "$epctx" info "$1" | sed -n "s/^kernels *'\(.*\)'\$/\1/p"; }

kernels=$(kernels_of "$work/digits_npu.bin")
case $kernels in
-DEPCTX_NPU_SELECT=EPCTX_NPU_OP*) ;;
*) fail "kernels of digits" "info prints '$kernels'" ;;
esac
# The bits of ten floats: the host adds in another order, so the last of 24 bits may differ.
echo "scores$(od -An -v -t u4 "$work/host/output_0.bin" | tr -s ' \n' ' ' | sed 's/ $//')" \
    >"$work/executor.expected"
try executor 16384 30720 executor "$work/digits_npu.bin" "$work/host/input_0.bin" \
    -DMEMORY_SIZE=3072 -DSCRATCH_SIZE=22784 "$kernels" \
    -DEPCTX_NPU_FEW_ACTIVATIONS

# Bytes: the same bits as on the host, with and without the instructions for pairs of numbers, which
# halve the work. Without floating-point hardware floats are computed in integers.
echo "scores$(od -An -v -t u1 "$work/bytes/output_0.bin" | tr -s ' \n' ' ' | sed 's/ $//')" \
    >"$work/output.expected"
kernels=$(kernels_of "$work/bytes_npu.bin")
rounding=0

# try_bytes NAME FLAGS...
try_bytes() {
    name=$1
    cp "$work/output.expected" "$work/$name.expected"
    shift
    try "$name" 16384 14336 executor "$work/bytes_npu.bin" "$work/bytes/input_0.bin" \
        -DMEMORY_SIZE=3072 -DSCRATCH_SIZE=7872 -DSCORE_TYPE=uint8_t "$kernels" \
        -DEPCTX_NPU_FEW_ACTIVATIONS "$@"
}
try_bytes bytes
fast=$instructions
try_bytes "bytes in portable C" -DEPCTX_NPU_NO_SIMD
if [ $((fast * 19)) -lt $((instructions * 10)) ]; then
    ok "instructions for pairs"
else
    fail "instructions for pairs" "$fast instructions, $instructions without"
fi
processors=cortex-m3
try_bytes "bytes with floats"
floats=$instructions
try_bytes "bytes in fixed point" -DEPCTX_NPU_FIXED_POINT
calls=$(arm-none-eabi-nm "$elf" | grep -c -E '__aeabi_(c?[fd]|u?[il]2[fd])')
if [ "$calls" = 0 ] && [ "$instructions" -lt "$floats" ]; then
    ok "no floats"
else
    fail "no floats" "$calls functions of floats; $instructions instructions, $floats with floats"
fi
CPU=cortex-m4

# A damaged binary is refused, not run.
cp "$work/digits_npu.bin" "$work/damaged.bin"
printf '\377' | dd of="$work/damaged.bin" bs=1 seek=200 conv=notrunc 2>/dev/null
sh examples/firmware/build.sh executor "$work/damaged.elf" "$work/damaged.bin" \
    "$work/host/input_0.bin" -DMEMORY_SIZE=3072 -DSCRATCH_SIZE=22784 || exit 1
emulate "$CPU" "$work/damaged.elf" >"$work/damaged.said"
code=$?
if [ $code -eq 0 ] || ! grep -q '^status ' "$work/damaged.said"; then
    fail "damaged binary" "expected a status, found exit code $code, '$(cat "$work/damaged.said")'"
else
    echo "ok damaged binary"
fi

# refuse NAME PROGRAM FILE WORDS: what the firmware says of a bad model
refuse() {
    sh examples/firmware/build.sh "$2" "$work/bad.elf" "$3" || exit 1
    emulate "$CPU" "$work/bad.elf" | grep -v -E '^(source|stack|instructions) ' >"$work/bad.said"
    if [ "$(cat "$work/bad.said")" = "$4" ]; then
        echo "ok $1, $2"
    else
        fail "$1, $2" "expected '$4', found '$(cat "$work/bad.said")'"
    fi
}
head -c $((total - 100)) "$work/embedded_ctx.onnx" >"$work/cut.onnx"
head -c $offset "$work/embedded_ctx.onnx" >"$work/cut_early.onnx"
for program in reader stream; do
    refuse "a model that is cut" $program "$work/cut.onnx" "not a model"
    refuse "a model without its binary" $program "$work/cut_early.onnx" "not a model"
    refuse "a model that is not compiled" $program "$work/digits.onnx" "no context binary"
done
exit $status
