#!/bin/sh
# A compilation changes what it says and nothing else.
set -eu
cd "$(dirname "$0")/.."
rm -rf build/preserve
exec "${PYTHON:-/usr/bin/python3}" tests/judge/preserve.py ${EPCTX_BUILD:-build}/epctx build/preserve
