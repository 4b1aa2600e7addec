#!/bin/sh
# Device configurations and sharding specs: the library's views, judged by libprotobuf.
# runs: once
set -eu
cd "$(dirname "$0")/.."
. tests/script.sh
start sharding
exec "$python" tests/judge/devices.py "$build/asan/tests/test_sharding" "$work/model.onnx"
