#!/bin/sh
# The tables in the guides are those of the library and the tool: `make guide-tables` writes them.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start guide_pages
fill=$build/guide_tables
pages="$(grep -l '^<!-- table ' examples/guides/*.md) examples/epctx/epctx.1"

for page in $pages; do
    name=$(basename "$page")
    if ! "$fill" "$page" epctx.h >"$work/$name" 2>"$work/log"; then
        fail "$name" "$(cat "$work/log")"
    elif diff "$page" "$work/$name" >"$work/diff"; then
        ok "$name"
    else
        fail "$name" "expected the committed page to be what 'make guide-tables' writes, found: \
$(head -n 4 "$work/diff" | tr '\n' ' ')"
    fi
done

# Every rule, profile, trait and option is in its page; so is none that is not there.
count() { grep -c "$1" "examples/guides/$2"; }
# counted NAME EXPECTED FOUND
counted() {
    if [ "$2" -gt 0 ] && [ "$2" -eq "$3" ]; then ok "$1"; else
        fail "$1" "expected $2, found $3"
    fi
}
counted "rules in rules.md" "$("$plain" lint --rules | wc -l)" "$(count '^| <a id=' rules.md)"
traits=$(sed -n '/^\/\* Bits of epctx_profile.traits/,/^$/p' epctx.h | grep -c '^#define')
counted "traits in profiles.md" "$traits" \
    "$(count '^| `EPCTX_' profiles.md)"
counted "options in session-options.md" \
    "$(grep -cE '^    X\([A-Z_]+, "(ep|session|epctx)\.' epctx.h)" \
    "$(count '^\* `' session-options.md)"
counted "profiles in profiles.md" "$(grep -c '^profile: ' examples/epctx/facts/profiles.facts)" \
    "$(count '^### ' profiles.md)"

counted "commands in commands.md" "$("$plain" help | grep -cE '^  [a-z][a-z-]+ +[a-z]')" \
    "$(count '^### ' commands.md)"

# A table that nobody knows, or without an end, is not left alone.
for bad in '<!-- table nothing -->' '<!-- table hints -->'; do
    printf '%s\n' "$bad" >"$work/bad.md"
    if "$fill" "$work/bad.md" epctx.h >"$work/bad" 2>"$work/log"; then
        fail "refused: $bad" "expected a failure"
    else
        ok "refused: $bad"
    fi
done
exit $status
