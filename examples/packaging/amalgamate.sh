#!/bin/sh
# make amalgamate: build/amalgamate holds epctx.h with nanopb's headers inside, and epctx_all.c, its
# implementation with nanopb's three sources. Programs with them need no nanopb.
set -eu
name=amalgamate
cd "$(dirname "$0")/../.."
. examples/packaging/common.sh
nanopb=$(sh tests/deps.sh where nanopb-source)
out=build/amalgamate
mkdir -p "$out"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# quoted FILE: its lines as a comment
quoted() {
    echo "/*"
    sed 's|^| * |; s|[ \r]*$||' "$1"
    echo " */"
}

# part FILE: a file of nanopb, without its includes of others
part() {
    echo "/* ---- nanopb's $1, without its includes of nanopb's own files ---- */"
    sed '/^#include "pb.*\.h"/d' "$nanopb/$1"
}

{
    echo "/* nanopb, altered: put together from several files. Its licence: */"
    quoted "$nanopb/LICENSE.txt"
} >"$tmp/licence"
{ cat "$tmp/licence"; part pb.h; part pb_decode.h; } >"$tmp/decode"
part pb_encode.h >"$tmp/encode"

{
    echo "/* Made by \`make amalgamate\` of epctx $version. Licence of epctx: */"
    quoted LICENSE
    awk -v folder="$tmp" '
        $0 == "#include <pb_decode.h>" || $0 == "#include <pb_encode.h>" {
            file = folder "/" substr($2, 5, 6)
            while ((getline line <file) > 0) print line
            found++
            next
        }
        { print }
        END { exit found != 2 }' epctx.h || die "epctx.h does not include nanopb as expected"
} >"$tmp/epctx.h"

{
    echo "/* Made by \`make amalgamate\` of epctx $version: epctx.h's implementation and nanopb. */"
    printf '#define EPCTX_IMPLEMENTATION\n#include "epctx.h"\n\n'
    echo "#ifndef EPCTX_NO_WIRE"
    cat "$tmp/licence"
    for file in pb_common.h pb_common.c pb_decode.c pb_encode.c; do part $file; done
    echo "#endif"
} >"$tmp/epctx_all.c"

cp "$tmp/epctx.h" "$tmp/epctx_all.c" epctx_npu.h LICENSE "$out"
echo "amalgamate: $out/epctx_all.c, $out/epctx.h and, for the reference NPU, $out/epctx_npu.h"
