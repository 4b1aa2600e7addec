# What the scripts here share. They go to the top folder and read this.

# shellcheck shell=sh
die() {
    echo "$name: $*" >&2
    exit 1
}

# The one place that holds it is epctx.h.
version=$(sed -n 's/^#define EPCTX_VERSION_STRING "\(.*\)"$/\1/p' epctx.h)
[ -n "$version" ] || die "epctx.h has no EPCTX_VERSION_STRING"

# fill TEMPLATE NAME=VALUE...: prints the file with @NAME@ replaced by VALUE.
fill() {
    template=$1
    shift
    awk 'BEGIN {
             for (i = 2; i < ARGC; i++) {
                 at = index(ARGV[i], "=")
                 value["@" substr(ARGV[i], 1, at - 1) "@"] = substr(ARGV[i], at + 1)
                 ARGV[i] = ""
             }
         }
         {
             line = ""
             while (match($0, /@[A-Z_0-9]+@/)) {
                 word = substr($0, RSTART, RLENGTH)
                 line = line substr($0, 1, RSTART - 1) (word in value ? value[word] : word)
                 $0 = substr($0, RSTART + RLENGTH)
             }
             print line $0
         }' "$template" "$@"
}

# Between ONNX Runtime's graphs and epctx.h, for any EP: C to compile with it, and C++ on top.
ort_files="examples/embed_in_ep/epctx_ort.hpp $(for name in bridge.h ort131.h buffers.c graph.c \
    node.c status.c; do echo "examples/plugin_ep/$name"; done | tr '\n' ' ')"
