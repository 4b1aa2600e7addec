#!/bin/sh
# `make demo`, step by step: it must end well and say so.
set -eu
cd "$(dirname "$0")/.."
if examples/demo/demo.sh; then
    echo "ok demo"
else
    echo "FAIL demo: the demo ended with exit code $?, its words follow"
    exit 1
fi
