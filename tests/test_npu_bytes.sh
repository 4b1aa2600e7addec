#!/bin/sh
# The same graph compiles to the same bytes, whatever instructions the build uses: every binary of
# test_npu_kernels, by the library, by its AVX2 and by its portable form.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start npu_bytes
programs=$build/tests

# sums NAME: of each binary that test_NAME compiles
sums() {
    EPCTX_TEST_BYTES=1 "$programs/test_$1" 2>/dev/null >"$work/log" ||
        fail "$1" "$(grep -m 1 FAIL "$work/log")"
    grep '^bytes ' "$work/log" >"$work/$1"
}

sums npu_kernels
[ "$(wc -l <"$work/npu_kernels")" -gt 1300 ] || fail sums "expected more than 1,300 binaries"
for form in npu_kernels_avx2 npu_kernels_portable; do
    sums "$form"
    if cmp -s "$work/npu_kernels" "$work/$form"; then
        ok "$form"
    else
        fail "$form" "expected the same binaries, found $(
            diff "$work/npu_kernels" "$work/$form" | grep -c '^>') others"
    fi
done
exit $status
