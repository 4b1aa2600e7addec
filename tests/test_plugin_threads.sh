#!/bin/sh
# ONNX Runtime's threads share the runs of the plugin EP: intra_op_num_threads, EP option `threads`.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
use_ort
start plugin_threads
exec "$python" tests/judge/threads.py "$build/libepctx_ep.so" "$work/model"
