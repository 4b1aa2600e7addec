#!/bin/sh
# ONNX's own backend tests, for the operators that the reference NPU has.
# runs: once
set -eu
cd "$(dirname "$0")/.."
. tests/script.sh
data=/usr/share/libonnx-testdata/data
if ! [ -d $data ]; then
    echo "skip backend nodes: $data is not there"
    exit 0
fi
exec "$python" tests/judge/backend_nodes.py \
    "${EPCTX_BUILD:-build}/epctx" $data \
    tests/backend_nodes_unsupported.txt
