#!/bin/sh
# Lint of whole deliveries: for each rule a folder that keeps it and one that breaks it.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_delivery
"$python" -B tests/judge/delivery.py "$epctx" "$work" || fail judge "it ended with an error"
exit $status
