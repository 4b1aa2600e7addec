#!/bin/sh
# Time and memory of every command grow as the input does: no search inside a loop.
set -eu
cd "$(dirname "$0")/.."
work=${EPCTX_TEST_FOLDER:-build}/scaling
rm -rf "$work"
mkdir -p "$work"
exec "${PYTHON:-/usr/bin/python3}" tests/judge/scaling.py ${EPCTX_BUILD:-build}/epctx "$work"
