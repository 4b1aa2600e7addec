#!/bin/sh
# Examples and fuzzers use the public API: nobody could copy what reaches into the headers. Tests do
# so only where they say that they test the insides.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
for folder in examples fuzz; do
    found=$(grep -rnE 'epctx_(npu)?__|EPCTX_(NPU)?__' "$folder" --include='*.c' --include='*.h' \
        --include='*.cc' --include='*.md')
    if [ -z "$found" ]; then
        echo "ok nothing private of the headers in $folder"
    else
        echo "FAIL $folder uses what is private to the headers: $(echo "$found" | head -n 1)"
        status=1
    fi
done
exit $status
