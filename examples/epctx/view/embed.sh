#!/bin/sh
# Prints C arrays of bytes: with NAME that of standard input, else view_page.h, the page of
# `epctx view`: what stands before the model's JSON and what stands after it. The page's policy
# names style and script by their hashes.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")"

# csp_hash FILE: 'sha256-...' as a Content-Security-Policy has it
csp_hash() {
    # shellcheck disable=SC2059 # the digits as octal escapes
    printf "$(sha256sum "$1" | awk '{
        for (i = 1; i < 64; i += 2)
            printf "\\%03o", (index("0123456789abcdef", substr($1, i, 1)) - 1) * 16 + \
                index("0123456789abcdef", substr($1, i + 1, 1)) - 1
    }')" | base64
}

# The template, with the files and the hashes in it.
page() {
    while IFS= read -r line; do
        case $line in
        @STYLE@) printf '<style>' && cat page.css && echo '</style>' ;;
        @SCRIPT@) printf '<script>' && cat page.js && echo '</script>' ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <page.html |
        sed "s|@STYLE_HASH@|$style|; s|@SCRIPT_HASH@|$script|"
}

# array NAME: the bytes of standard input
array() {
    echo "static const unsigned char $1[] = {"
    od -An -v -tu1 | sed 's/^ *//; s/  */,/g; s/$/,/'
    echo "};"
}
if [ $# -gt 0 ]; then
    array "$1"
    exit
fi

style=$(csp_hash page.css)
script=$(csp_hash page.js)
echo "/* Made from page.html, page.css and page.js. */"
page | sed '/^@DATA@$/,$d' | array view_page_before
page | sed '1,/^@DATA@$/d' | array view_page_after
