#!/bin/sh
# The guides: every program in them is compiled and every command run, and what is printed is what
# the guide shows. judge/guide.py says what a guide may hold.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start guides
EPCTX_ORT_LIBRARY=$(sh tests/deps.sh where ort) || {
    echo "FAIL ort: ONNX Runtime is not there"
    exit 1
}
# The EP of guides/any-ep.md.
EP=$build/libepctx_ep.so
export EPCTX_ORT_LIBRARY EP
# rename.sh: whole words change, and nothing else, not even the mode; files without one stay.
rows=$(sed -n 's/^| `\(epctx_[a-z_]*\)` | `\(epctx_[a-z_]*\)` |$/\1 \2/p' .github/CHANGELOG.md)
row=$(echo "$rows" | sed -n 1p)
was=${row% *} now=${row#* }
source_of() { printf '%s(x); my_%s; %s2; "epctx_graph_load"\n' "$1" "$was" "$was"; }
renames() {
    source_of "$was" >"$work/a.c"
    source_of no_name >"$work/b.c"
    source_of "$now" >"$work/wanted"
    chmod 754 "$work/a.c"
    touch -d 2001-01-01 "$work/b.c"
    sh examples/guides/rename.sh 0.3.0 "$work/a.c" "$work/b.c" >"$work/renamed" 2>&1 &&
        cmp "$work/wanted" "$work/a.c" && [ "$(cat "$work/renamed")" = "$work/a.c" ] &&
        [ "$(stat -c %a "$work/a.c")" = 754 ] && [ "$(stat -c %Y "$work/b.c")" -lt 1000000000 ]
}
refuses() { # a version that renamed nothing changes nothing
    cp "$work/a.c" "$work/before"
    ! sh examples/guides/rename.sh 9.9.9 "$work/a.c" >"$work/renamed" 2>&1 &&
        cmp "$work/before" "$work/a.c" && grep -q 'found 9\.9\.9' "$work/renamed"
}
for rename in renames refuses; do
    if $rename; then ok "rename.sh $rename"
    else fail "rename.sh $rename" "expected '$now' for '$was', found $(cat "$work/a.c")"; fi
done

"$python" tests/judge/guide.py run "$work" "$plain" examples/guides/*.md || status=1
exit $status
