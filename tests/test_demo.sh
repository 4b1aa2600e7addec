#!/bin/sh
# `make demo`, step by step: it must end well and say so.
set -eu
cd "$(dirname "$0")/.."
EPCTX_DEMO=${EPCTX_TEST_FOLDER:-build}/demo
export EPCTX_DEMO
if examples/demo/demo.sh; then
    echo "ok demo"
else
    echo "FAIL demo: the demo ended with exit code $?, its words follow"
    exit 1
fi
