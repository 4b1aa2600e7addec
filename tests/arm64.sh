#!/bin/sh
# The plugin EP inside ONNX Runtime's library for Linux on arm64, run by qemu-user. Part of
# `make matrix`.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start arm64_test
out=$work/out err=$work/err
programs=$build/arm64/tests
library=$(sh tests/deps.sh where ort-arm64)/libonnxruntime.so.1
EPCTX_DEMO_MODEL=$(sh tests/deps.sh where blazeface)
export EPCTX_DEMO_MODEL

# ORT reads /proc/cpuinfo while it is loaded, and dies of that of another processor, which qemu 7
# has in its place: in front of the system there is a folder with one of a Neoverse N1.
mkdir "$work/system" "$work/system/proc"
ln -s /usr/aarch64-linux-gnu/lib "$work/system/lib"
for n in 0 1; do
    printf '%s\t: %s\n' processor $n Features 'fp asimd aes pmull sha1 sha2 crc32 atomics asimddp' \
        'CPU implementer' 0x41 'CPU architecture' 8 'CPU variant' 0x3 \
        'CPU part' 0xd0c 'CPU revision' 1
    echo
done >"$work/system/proc/cpuinfo"
EPCTX_TEST_RUNNER=$work/arm64
export EPCTX_TEST_RUNNER
cat >"$EPCTX_TEST_RUNNER" <<END
#!/bin/sh
EPCTX_ORT_LIBRARY='$library' exec qemu-aarch64 -L '$work/system' "\$@"
END
chmod +x "$EPCTX_TEST_RUNNER"

for test in test_plugin test_plugin_rows test_plugin_share test_plugin_weightless; do
    EPCTX_TEST_MODELS='' timeout 1200 "$EPCTX_TEST_RUNNER" "$programs/$test" \
        >"$work/log" 2>"$work/cases"
    code=$?
    sed -n "s/^\(ok\|FAIL\|skip\|note\) /\1 arm64 $test /p" "$work/log"
    [ $code -eq 0 ] || status=1
    [ $code -le 1 ] ||
        fail "arm64 $test" "ended with code $code in $(grep '^case' "$work/cases" | tail -n 1)"
    grep -q '^ok' "$work/log" || fail "arm64 $test" "no case passed"
done

# The bytes of the host, and models that go between the two. From memory: ORT puts a model's path
# into the names of nodes.
model=$(find "$EPCTX_DEMO_MODEL" -name '*front*.onnx' | head -n 1)
mkdir "$work/host" "$work/arm64.d"
works "arm64 host writes" "$build/tests/test_plugin" --write-bytes "$model" "$work/host/m_ctx.onnx"
works "arm64 writes" "$EPCTX_TEST_RUNNER" "$programs/test_plugin" --write-bytes "$model" \
    "$work/arm64.d/m_ctx.onnx"
same "arm64 has the host's binary" "$work/arm64.d/m_npu.bin" "$work/host/m_npu.bin"
works "arm64 has the host's model" "$plain" diff "$work/host/m_ctx.onnx" "$work/arm64.d/m_ctx.onnx"
works "arm64 loads what the host wrote" "$EPCTX_TEST_RUNNER" "$programs/test_plugin" --run \
    "$work/host/m_ctx.onnx" "$model"
works "the host loads what arm64 wrote" \
    "$build/tests/test_plugin" --run "$work/arm64.d/m_ctx.onnx" \
    "$model"
exit $status
