#!/bin/sh
# A compilation changes what it says and nothing else.
set -eu
cd "$(dirname "$0")/.."
. tests/script.sh
start gen_preserve
exec "$python" tests/judge/preserve.py "$plain" "$work"
