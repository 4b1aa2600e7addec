#!/bin/sh
# Broken files, foreign files, hostile paths: refused with a word, nothing
# written, nothing leaked. Runs the sanitized tool.
set -eu
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start bad_input
exec "$python" tests/judge/bad_input.py "$epctx" "$work/models"
