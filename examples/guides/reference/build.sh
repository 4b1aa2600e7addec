#!/bin/sh
# Builds the HTML reference, without a network.
#
#   build.sh OUT [ROOT]    OUT/html from the source tree ROOT (default: the one of this file)
set -eu
style=$(cd "$(dirname "$0")" && pwd)
root=${2:-$style/../../..}
mkdir -p "$1"
EPCTX_DOCS=$(cd "$1" && pwd)
# Nobody finds the pages of an older tree or half a reference.
rm -rf "$EPCTX_DOCS/html" "$EPCTX_DOCS/work"
trap 'rm -rf "$EPCTX_DOCS/work"' EXIT
mkdir "$EPCTX_DOCS/work"
html=$EPCTX_DOCS/html
EPCTX_DOCS=$EPCTX_DOCS/work
"${PYTHON:-/usr/bin/python3}" -B "$style/reference.py" --root "$root" "$EPCTX_DOCS"
EPCTX_DOCS_VERSION=$(sed -n 's/^#define EPCTX_VERSION_STRING "\(.*\)"$/\1/p' "$root/epctx.h")
EPCTX_DOCS_STYLE=$style
EPCTX_DOCS_FILES=$(find "$EPCTX_DOCS/files" -type f | sort | tr '\n' ' ')
export EPCTX_DOCS EPCTX_DOCS_VERSION EPCTX_DOCS_STYLE EPCTX_DOCS_FILES
doxygen "$style/Doxyfile"
# The search's results have this style sheet only.
cat "$style/search.css" >>"$EPCTX_DOCS/html/search/search.css"
mv "$EPCTX_DOCS/html" "$html"
echo "docs: $html/index.html"
