#!/bin/sh
# A compilation changes what it says and nothing else.
set -eu
cd "$(dirname "$0")/.."
work=${EPCTX_TEST_FOLDER:-build}/preserve
rm -rf "$work"
exec "${PYTHON:-/usr/bin/python3}" tests/judge/preserve.py ${EPCTX_BUILD:-build}/epctx "$work"
