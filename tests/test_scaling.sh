#!/bin/sh
# Time and memory of every command grow as the input does: no search inside a loop.
set -eu
cd "$(dirname "$0")/.."
rm -rf build/scaling
mkdir -p build/scaling
exec "${PYTHON:-/usr/bin/python3}" tests/judge/scaling.py ${EPCTX_BUILD:-build}/epctx build/scaling
