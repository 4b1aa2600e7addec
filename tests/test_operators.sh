#!/bin/sh
# Single operators with random shapes, attributes and values, held against ONNX Runtime. The cases
# are the same in every run; other seeds and more of them: tests/judge/operators.py.
set -eu
cd "$(dirname "$0")/.."
ORT_BINDING=$(tests/deps.sh where ort)
export ORT_BINDING
judge() { "${PYTHON:-/usr/bin/python3}" tests/judge/operators.py "${EPCTX_BUILD:-build}/epctx" "$@"; }
judge --cases 300 Resize
judge --cases 500 --seed 2
