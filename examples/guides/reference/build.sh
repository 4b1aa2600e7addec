#!/bin/sh
# Builds the HTML reference, without a network.
#
#   build.sh OUT [ROOT]    OUT/html from the source tree ROOT (default: the one of this file)
set -eu
style=$(cd "$(dirname "$0")" && pwd)
root=${2:-$style/../../..}
mkdir -p "$1"
html=$(cd "$1" && pwd)/html
# Nobody finds the pages of an older tree or half a reference.
rm -rf "$html"
work=$(mktemp -d "${html%/html}/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
python=${PYTHON:-/usr/bin/python3}
"$python" -B "$style/reference.py" --root "$root" "$work"
EPCTX_DOCS_VERSION=$(sed -n 's/^#define EPCTX_VERSION_STRING "\(.*\)"$/\1/p' "$root/epctx.h")
export EPCTX_DOCS_VERSION
# A Doxyfile cannot name a folder with a space.
cp -R "$style" "$work/style"
(cd "$work" && doxygen style/Doxyfile)
find "$work/files" -type f -exec cp {} "$work/html" \;
"$python" -B "$style/search.py" "$work/html"
# The search's results have this style sheet only.
cat "$style/search.css" >>"$work/html/search/search.css"
mv "$work/html" "$html"
echo "docs: $html/index.html"
