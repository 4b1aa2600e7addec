#!/bin/sh
# The whole road with a real model: compile BlazeFace to an EPContext model,
# look into it, run it, and hold every output against the real ONNX Runtime.
# Leaves its files in build/demo, or in the folder EPCTX_DEMO.
set -eu
cd "$(dirname "$0")/../.."
epctx=$PWD/${EPCTX_BUILD:-build}/epctx
here=$PWD/examples/demo
package=$(tests/deps.sh where blazeface)
EPCTX_ORT_LIBRARY=$(tests/deps.sh where ort)
export EPCTX_ORT_LIBRARY
work=${EPCTX_DEMO:-build/demo}
wrong=0

rm -rf "$work"
mkdir -p "$work/embedded"
cp "$package/ONNX/face_detection_front_128x128_barracuda.onnx" "$work/blazeface.onnx"
cd "$work"

# Shows a command as a user would type it, then runs it. Descriptor 3 is the
# screen, also for a command whose output goes to a file.
exec 3>&1
epctx() {
    echo "\$ epctx $*" >&3
    "$epctx" "$@" || { echo "demo: FAILED: epctx $1 ended with exit code $?" >&3; exit 1; }
}

size() { wc -c <"$1" | tr -d ' '; }

ms() { sed -n 's/^open-to-first-output: \([0-9.]*\) ms.*/\1/p' "$1"; }

compare() {
    echo "$1, outputs compared with ONNX Runtime on the source model:"
    "${PYTHON:-python3}" "$here/compare.py" ort "$2" || wrong=1
}

echo "== Compile: one EPContext model with its binary beside it, then one file with all in it"
epctx compile blazeface.onnx
epctx compile blazeface.onnx -o embedded/blazeface_ctx.onnx --embed
for f in blazeface.onnx blazeface_ctx.onnx blazeface_npu.bin embedded/blazeface_ctx.onnx; do
    [ -e $f ] || { echo "demo: FAILED: $f was not written"; exit 1; }
    printf '  %9s bytes  %s\n' "$(size $f)" $f
done

echo
echo "== Look inside"
epctx info blazeface_ctx.onnx

echo
echo "== Run on a fixed input: the compiled models, and the source model compiled on the spot"
epctx run blazeface_ctx.onnx --seed 1 --dump external >external.log
epctx run embedded/blazeface_ctx.onnx --seed 1 --dump embedded/out >embedded.log
epctx run blazeface.onnx --seed 1 --dump compiled >compiled.log

echo
echo "== The same input through the real ONNX Runtime"
epctx run blazeface.onnx --ep CPUExecutionProvider --threads 1 --seed 1 --dump ort >ort.log
cmp external/input_0.bin ort/input_0.bin || { echo "demo: FAILED: the inputs differ"; exit 1; }
compare "Context model" external
compare "Context model, embedded" embedded/out
compare "Compiled on the spot" compiled

echo
echo "== From opening the model to the first output"
printf '  %-40s %10s ms\n' \
    "context model, binary beside it" "$(ms external.log)" \
    "context model, embedded" "$(ms embedded.log)" \
    "source model, compiled, then run" "$(ms compiled.log)" \
    "ONNX Runtime, 1 thread" "$(ms ort.log)"

echo
if [ $wrong -ne 0 ]; then
    echo "demo: FAILED: outputs differ from ONNX Runtime"
    exit 1
fi
echo "demo: OK: every output is within 1e-4 of ONNX Runtime"
