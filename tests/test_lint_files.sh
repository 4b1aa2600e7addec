#!/bin/sh
# Lint of several files and folders: what is judged, formats, rules that are chosen or ignored, and
# the commands that cure.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_lint_files
"$python" -B tests/judge/lint_files.py "$epctx" "$work" || fail judge "it ended with an error"
exit $status
