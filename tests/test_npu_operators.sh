#!/bin/sh
# Single operators with random shapes, attributes and values, and random graphs, held against ONNX
# Runtime. The cases are the same in every run; other seeds and more of them:
# tests/judge/operators.py and graphs.py.
# runs: once
set -eu
cd "$(dirname "$0")/.."
. tests/script.sh
use_ort
judge() { "$python" tests/judge/operators.py "$plain" "$@"; }
judge --cases 300 Resize
judge --cases 500 --seed 2
judge edges
"$python" tests/judge/graphs.py "$plain" --cases "$(rounds 3000 150)"
