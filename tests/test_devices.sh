#!/bin/sh
# Device configurations and sharding specs: the library's views, judged by libprotobuf.
set -eu
cd "$(dirname "$0")/.."
exec "${PYTHON:-/usr/bin/python3}" tests/judge/devices.py build/asan/tests/test_devices \
    "${EPCTX_TEST_FOLDER:-build}/devices.onnx"
