#!/bin/sh
# The guides: every program in them is compiled and every command run, and what is printed is what
# the guide shows. judge/guide.py says what a guide may hold.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start guides
"$python" tests/judge/guide.py run "$work" "$plain" examples/guides/*.md || status=1
exit $status
