#!/bin/sh
# Broken files, foreign files, hostile paths: refused with a word, nothing
# written, nothing leaked. Runs the sanitized tool.
set -eu
cd "$(dirname "$0")/.."
work=${EPCTX_TEST_FOLDER:-build}/bad_input
rm -rf "$work"
exec "${PYTHON:-/usr/bin/python3}" tests/judge/bad_input.py ${EPCTX_BUILD:-build/asan}/epctx "$work"
