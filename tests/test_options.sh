#!/bin/sh
# The table of options: every command does something with every option that it offers, what was
# renamed is told and still works, and what belongs to another command is named.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_options
"$python" -B tests/judge/options.py "$plain" "$work/judge" || status=1
cp "$work/judge/fixtures"/* "$work/" 2>/dev/null
cd "$work" || exit 1
out=$work/stdout err=$work/stderr

# -- the old use of --ep --
for line in "lint plain.onnx" "rename plain.onnx x i -o o.onnx" \
    "prefix plain_ctx.onnx p -o o.onnx" \
    "embed plain_ctx.onnx -o o.onnx" "extract in_ctx.onnx -o o_ctx.onnx" "mv v.bin w.bin" \
    "repair plain_ctx.onnx -o o.onnx" "wrap --inputs x:float32 --outputs y:float32 v.bin -o o.onnx"
do
    command=${line%% *}
    # shellcheck disable=SC2086 # words
    "$plain" $line -n --profile qnn >want 2>&1
    want=$?
    # shellcheck disable=SC2086
    "$plain" $line -n --ep qnn >"$out" 2>"$err"
    code=$?
    if [ "$command" = lint ]; then
        "$plain" lint plain.onnx --profile qnn >want 2>&1
        want=$?
        "$plain" lint plain.onnx --ep qnn >"$out" 2>"$err"
        code=$?
    fi
    if [ "$code" -ne "$want" ]; then
        fail "$command --ep" "exit code $code, with --profile $want"
    elif ! grep -q "warning: $command --ep NAME is now called --profile" "$err"; then
        fail "$command --ep" "it does not name --profile"
    else
        ok "$command --ep is --profile"
    fi
    # Of lint, --ep is that of a library by now.
    if [ "$command" != lint ] && "$plain" help "$command" | grep -q -e '--ep '; then
        fail "help $command" "it has the old option"
    fi
done

# -- mistakes --
mistake() { # TEXT COMMAND...
    text=$1
    shift
    epctx "$@"
    result "$*" 2 "$text"
}
mistake "it belongs to check" lint --chip SM8550 plain.onnx
mistake "did you mean --strict?" lint --strickt plain.onnx
mistake "--format must be text, json, sarif or github, not 'xml'" lint --format xml plain.onnx
mistake "did you mean 'sarif'?" lint --format sariff plain.onnx
mistake "'65' is not a number in 1..64" run --threads 65 plain.onnx
mistake "'0' is not a number in 1..64" run --threads=0 plain.onnx
mistake "--graph selects a graph of --io" wrap --profile qnn --graph g --outputs y:float32 \
    v.bin -o o.onnx
mistake "given twice (perhaps under two names): --output" get -o a --output b plain.onnx source
mistake "given twice (perhaps under two names): --profile" lint --ep qnn --profile qnn plain.onnx
mistake "takes no value: --json" info --json=yes plain.onnx
mistake "missing value for --node" get plain.onnx source --node
mistake "missing value for -o: --json is an option" set plain.onnx a=b -o --json
mistake "missing value for --node: --all=x is an option" set plain_ctx.onnx a=b --node --all=x
mistake "the value of -o is empty" set plain.onnx a=b -o ""
mistake "the value of --output is empty" set plain.onnx a=b --output=
mistake "the value of --facts is empty" info plain.onnx --facts ""
# Of all options with a path, "-" is a stream where the help says so, and else no file either.
"$plain" help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' | while read -r command; do
    "$plain" "$command" --list-options | awk -F '\t' -v c="$command" \
        '$3 ~ /^@(file|folder)$/ && $4 !~ /- is standard output/ { print c, $1 }'
done >paths
while read -r command option; do
    mistake "$option - is neither standard input nor output here" "$command" "$option" -
done <paths
found=$(wc -l <paths)
if [ "$found" -gt 80 ]; then ok "options with a path"
else fail "options with a path" "found $found"; fi
mistake "write ./- for a file of that name" compile -f --depfile - plain.onnx
if [ -e - ]; then fail "--depfile -" "it wrote a file of that name"; fi
mistake "take no files" lint plain.onnx --rules-json
mistake "--format does not go with an option that lists something" lint --rules --format sarif
mistake "--rules does not go with" lint --rules-json --rules E012
mistake "prints no JSON" compile --options --json
mistake "--ep and --profile cannot be combined" stamp plain_ctx.onnx --ep npu --profile qnn -n
mistake "--ep and --profile cannot be combined" package -o p --ep a --profile qnn plain_ctx.onnx
mistake "it belongs to compile run verify bench lint devices" scan --timeout 3 plain.onnx

mistake "too many arguments" --version plain.onnx
mistake "too many arguments" --version --json plain.onnx

# -- a version newer than all --
epctx lint --against ort=99 plain.onnx
said "a version that nobody has seen" 0 "--against: ort 99 is newer than all that is known of"
newest=$(sed -n 's/^product: ort; .*newest: //p' "$top/examples/epctx/facts/products.facts")
epctx lint --against "ort=$newest" plain.onnx
result "the newest version" 0

# -- what could not be judged is told, whichever rules are wanted --
epctx lint --rules E022 gone.onnx plain_ctx.onnx
said "a missing file beside others" 1 "gone.onnx: error E901"

# -- words of a file of facts are not run by a shell --
cat >chip.facts <<'END'
facts: 1

chip: A$(touch ran)B; soc_model: 900; htp: 73; vtcm: 8
who: Acme
seen: document
from: nowhere
date: 2026-01-01
END
if command -v bash >/dev/null; then
    ln -sf "$plain" epctx
    EPCTX_FACTS=chip.facts bash --norc -c '. "$1"; COMP_WORDS=(./epctx check --chip "") COMP_CWORD=3
        _epctx; printf "%s\n" "${COMPREPLY[@]}"' bash "$top/examples/epctx/completion/epctx.bash" \
        >"$out" 2>"$err"
    if [ -e ran ] || ! grep -q SM8550 "$out"; then fail "completion of hostile words" "it ran them"
    else ok "completion of hostile words"; fi
    bash --norc -c '. "$1"; COMP_WORDS=(./epctx lint --format = j) COMP_CWORD=4
        _epctx; printf "%s\n" "${COMPREPLY[@]}"' bash "$top/examples/epctx/completion/epctx.bash" \
        >"$out" 2>"$err"
    if [ "$(cat "$out")" = json ]; then ok "completion behind ="
    else fail "completion behind =" "expected 'json', found '$(cat "$out")'"; fi
fi
list=$(yes -- "--option k=v" | head -n 257)
# shellcheck disable=SC2086
mistake "too many values for --option" devices $list
exit $status
