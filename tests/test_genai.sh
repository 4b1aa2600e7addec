#!/bin/sh
# Folders of ORT GenAI before ORT GenAI itself: what it takes as configuration, what generates.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_genai
package=$(sh tests/deps.sh where genai 2>/dev/null) &&
    PYTHONPATH=$package "$python" -B -c "import onnxruntime_genai" 2>/dev/null || {
    echo "skip genai: the package of ORT GenAI is not here, or not for this Python"
    exit "$status"
}
"$python" -B tests/judge/genai.py "$plain" "$package" "$work" || fail genai "it ended with an error"
"$python" -B tests/judge/genai_keys.py compare "$package" examples/epctx/facts/genai.facts ||
    fail keys "it ended with an error"
exit "$status"
