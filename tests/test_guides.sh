#!/bin/sh
# The guides: every program in them is compiled and every command run, and what is printed is what
# the guide shows. judge/guide.py says what a guide may hold.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start guides
EPCTX_ORT_LIBRARY=$(sh tests/deps.sh where ort) || {
    echo "FAIL ort: ONNX Runtime is not there"
    exit 1
}
# The EP of guides/any-ep.md.
EP=$build/libepctx_ep.so
export EPCTX_ORT_LIBRARY EP
"$python" tests/judge/guide.py run "$work" "$plain" examples/guides/*.md || status=1
exit $status
