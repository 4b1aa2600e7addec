#!/bin/sh
# The bench: real vendors' EPs, in the real ONNX Runtime, judge what the tool writes and says;
# vendors/bench.py. The EPs come from PyPI (tests/deps.sh vendors); what one of them cannot do on
# this machine is skipped. VENDORS=all: every model of EPCTX_TEST_MODELS, which takes long, and the
# table of examples/guides/vendors.md; VENDORS=sample: edits and damage of one model for each
# EP.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start vendors
EPCTX_ORT_LIBRARY=$(sh tests/deps.sh where ort) && vendor=$(sh tests/deps.sh where python) || {
    echo "FAIL vendors: tests/deps.sh vendors was not run"
    exit 1
}
EPCTX_VENDORS=$(dirname "$(sh tests/deps.sh where ep-onnxruntime-qnn 2>/dev/null)")
EPCTX_BUILD_DIR=$build
EPCTX_INTEL_BETWEEN=$work/intel
mkdir "$EPCTX_INTEL_BETWEEN"
between=$EPCTX_INTEL_BETWEEN/libonnxruntime_providers_openvino_plugin.so
${CC:-cc} -shared -fPIC -Wl,-z,nodelete -I "$(sh tests/deps.sh where ort-headers)" \
    -I examples/plugin_ep tests/vendors/intel.c -o "$between" || {
    echo "FAIL vendors: tests/vendors/intel.c is not built"
    exit 1
}
export EPCTX_ORT_LIBRARY EPCTX_VENDORS EPCTX_BUILD_DIR EPCTX_INTEL_BETWEEN
make_models digits
set -- "$work/digits.onnx"
if [ -z "${EPCTX_TEST_MODELS:-}" ]; then
    echo "skip real models: EPCTX_TEST_MODELS is not set to a folder of models"
elif [ "${VENDORS:-}" = all ]; then
    set -- "$@" "$EPCTX_TEST_MODELS"/onnx/*.onnx
else
    for name in mnist_8 mlpt_kws_int8; do set -- "$@" "$EPCTX_TEST_MODELS/onnx/$name.onnx"; done
fi
case ${VENDORS:-} in
all) set -- "$@" --guide examples/guides/vendors.md ;;
sample) set -- "$@" --sample ;;
esac
"$vendor" -B tests/vendors/bench.py "$plain" "$work/runs" "$@" --report "$work/table.md" ||
    status=1
sed 's/^/note /' "$work/table.md"
# examples/conformance/verdicts.md: of the EP that takes seconds, or of all.
case ${VENDORS:-} in all) set -- ;; *) set -- nxrt ;; esac
"$vendor" -B tests/vendors/verdicts.py "$plain" "$build/epctx-conformance" \
    "$work/verdicts" "$@" || status=1
exit $status
