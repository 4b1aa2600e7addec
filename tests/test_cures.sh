#!/bin/sh
# The commands that lint prints as cures, executed: the finding is gone, nothing new appears,
# nothing is lost. EPCTX_ALL_CURES=1 tries them in every case, not in a sample.
# runs: once
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/script.sh
start cures
set --
if [ -n "${EPCTX_TEST_MODELS:-}" ] && [ -d "$EPCTX_TEST_MODELS/epcontext" ]; then
    # shellcheck disable=SC2046 # names without blanks
    set -- $(find "$EPCTX_TEST_MODELS/epcontext" -name '*.onnx' -size -4096k | LC_ALL=C sort)
    [ "${EPCTX_ALL_CURES:-}" = 1 ] || set -- "$1" "$2" "$3"
else
    echo "skip cures of genuine models: EPCTX_TEST_MODELS is not set"
fi
exec "$python" -B tests/judge/cures.py "$plain" "$work" "$@"
