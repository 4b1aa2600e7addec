#!/bin/sh
# Time and memory of every command grow as the input does: no search inside a loop.
# runs: once
set -eu
cd "$(dirname "$0")/.."
. tests/script.sh
start scaling
exec "$python" tests/judge/scaling.py "$plain" "$work"
