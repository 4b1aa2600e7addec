#!/bin/sh
# lint --against: for each version that a fact about session options names, deliveries with all of
# these options are judged on both sides of it; keys of ORT GenAI by version; what is said, and what
# is refused. Rules, operator sets and IR versions: test_lint.c.
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/script.sh
start lint_versions
make_models inputless
out=$work/out err=$work/err
facts=$top/examples/epctx/facts/options.facts

# "KEY VERSION" of each option with a version of ORT
sed -n 's/^option: \([^;]*\);.*since: ort \([0-9.]*\).*/\1 \2/p' "$facts" >"$work/options"
[ -s "$work/options" ] || fail options "no fact about an option has a version"
mkdir "$work/genai"
cd "$work" || exit 1
keys=$(sed 's/\([^ ]*\) .*/"\1": "1"/' options | paste -sd,)
echo "{\"model\": {\"type\": \"llama\", \"decoder\": {\"session_options\": {$keys}}}}" \
    >genai/genai_config.json

# later_than VERSION: how many options came later
later_than() {
    while read -r _ since; do
        [ "$(printf '%s\n' "$1" "$since" | sort -V | tail -n 1)" = "$1" ] || echo later
    done <options | grep -c later
}
# one_before 1.31: 1.30.999
one_before() { echo "${1%.*}.$((${1##*.} - 1)).999"; }
for version in $(cut -d' ' -f2 options | sort -u); do
    for asked in "$version" "$(one_before "$version")"; do
        epctx lint --against "ort=$asked" genai
        found=$(grep -c "is there since ort .* only, and not in the version judged for" "$out")
        if [ "$found" -eq "$(later_than "$asked")" ]; then ok "options by ort=$asked"; else
            fail "options by ort=$asked" "expected $(later_than "$asked"), found $found"
        fi
    done
    said "$version: until when" "$code" "holds: until ort $version"
done
epctx lint genai; said "no option is too new for the newest" "$code" "genai_config.json"
if grep -q "is there since" "$out"; then fail "the newest" "an option is too new"; fi

# -- keys of ORT GenAI, in both directions

cat >my.facts <<'END'
facts: 1

default: all
who: W
seen: bench
from: F
date: 2026-11

genai: model.anew; holds: number; since: genai 0.9
genai: model.gone; holds: number; until: genai 0.9
END
echo '{"model": {"type": "llama", "anew": 1, "gone": 1}}' >genai/genai_config.json
epctx lint --facts my.facts --against genai=0.8.9 genai
said "a key before its version" "$code" "'model.anew' is there since genai 0.9 only"
grep -q "model.gone" "$out" && fail "a key before its end" "expected no finding"
epctx lint --facts my.facts --against genai=0.9 genai
said "a key after its end" "$code" "'model.gone' is there until genai 0.9 only"
said "since when" "$code" "holds: since genai 0.9"
grep -q "model.anew" "$out" && fail "a key of its version" "expected no finding"
epctx lint --json --facts my.facts --against genai=0.8 genai
said "JSON" "$code" '"until": "genai 0.9"'
epctx lint --format sarif --facts my.facts --against genai=0.8 genai
said "SARIF" "$code" '"until": "genai 0.9"'

# -- a rule that holds for older versions only
while IFS='|' read -r versions code says; do
    epctx lint --against "$versions" inputless.onnx
    said "--against $versions" "$code" "$says"
done <<'END'
ort=1.28.0|1|error E086 no-input
ort=1.24|1|until ort 1.28.1
ort=1.28.1|0|0 errors
ort=1.31.1|0|0 errors
END

# -- what is refused

while IFS='|' read -r versions says; do
    epctx lint --against "$versions" genai
    result "--against '$versions'" 2 "$says"
done <<'END'
ortt=1.29|'ortt' is no product, did you mean 'ort'?
acme=1|it takes ort, genai, qnn, qairt
ort|ort: expected a version
ort=new|ort: expected a version
ort=1.29,ort=1.30|ort is named twice
qnn=2.6,,ort=1|'' is no product
|the value of --against is empty
END
epctx lint --rules --json
said "the list of rules" 0 '"since": "ort 1.31"'
epctx explain E070
said "explain" 0 "(since ort 1.31)"
exit $status
