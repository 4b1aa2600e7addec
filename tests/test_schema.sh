#!/bin/sh
# All that is printed with --json against the schemas of examples/epctx/schema.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start test_schema
"$python" -B tests/judge/schema.py "$epctx" "$work" || fail judge "it ended with an error"
exit $status
