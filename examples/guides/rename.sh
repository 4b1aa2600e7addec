#!/bin/sh
# Renames in your sources, in place, what a version renamed:
#
#     sh examples/guides/rename.sh 0.3.0 FILE...
#
# The names are those of the version's table in .github/CHANGELOG.md. Only whole words change; rows
# that give more than a name are left to you. Prints the files that it changed.
set -eu

[ $# -ge 1 ] || {
    echo "usage: rename.sh VERSION FILE..." >&2
    exit 2
}
version=$1
shift
names=$(awk -v version="$version" '
    /^## / { here = $2 == version }
    here && /^\| `[A-Za-z_0-9]+` \| `[A-Za-z_0-9]+` \|$/ { gsub(/`/, ""); print $2, $4 }
    ' "$(dirname "$0")/../../.github/CHANGELOG.md")
[ -n "$names" ] || {
    echo "rename.sh: expected a version of the changelog that renamed something, found $version" >&2
    exit 1
}

for file in "$@"; do
    renamed=$(mktemp)
    awk -v names="$names" '
        BEGIN {
            count = split(names, word)
            for (i = 1; i < count; i += 2) name[word[i]] = word[i + 1]
        }
        {
            rest = $0
            line = ""
            while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) {
                found = substr(rest, RSTART, RLENGTH)
                line = line substr(rest, 1, RSTART - 1) (found in name ? name[found] : found)
                rest = substr(rest, RSTART + RLENGTH)
            }
            print line rest
        }' "$file" >"$renamed"
    if ! cmp -s "$file" "$renamed"; then
        cat "$renamed" >"$file" # keeps the mode, and what a link points to
        echo "$file"
    fi
    rm "$renamed"
done
