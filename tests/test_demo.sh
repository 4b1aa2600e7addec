#!/bin/sh
# `make demo`, step by step: it must end well and say so, and the README must show what it prints.
# Then what compares outputs there and in other tests.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
use_ort
start demo
EPCTX_DEMO=$work/files
export EPCTX_DEMO
examples/demo/demo.sh >"$work/log" 2>&1
code=$?
if [ $code -ne 0 ]; then
    cat "$work/log"
    echo "FAIL demo: expected exit code 0, found $code and the words above"
    exit 1
fi
ok demo
"$python" tests/judge/guide.py shown README.md "make demo" "$work/log" || status=1
"$python" tests/judge/compare.py "$work/compare" || status=1
exit $status
