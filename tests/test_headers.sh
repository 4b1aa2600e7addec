#!/bin/sh
# The headers as a user's compiler meets them: alone, twice, with the
# implementation, as C and C++, private in one file, and on targets without an
# operating system. Then the names and needs of what comes out.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start headers

if ! [ -e epctx.h ]; then
    echo "skip compile matrix: there is no epctx.h"
    exit 0
fi

warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Werror"
c_warnings="$warnings -Wstrict-prototypes"
nanopb=${NANOPB_CFLAGS:-}

# try NAME COMMAND...: the case passes when the command succeeds in silence.
try() {
    name=$1
    shift
    if "$@" >"$work/log" 2>&1 && ! [ -s "$work/log" ]; then
        echo "ok $name"
    else
        echo "FAIL $name: expected to compile, found: $(grep -m 1 -E 'error|warning|undefined' \
            "$work/log" || head -n 1 "$work/log")"
        cat "$work/log"
        status=1
    fi
}

# ------------------------------------------------------------ the matrix

# COMPILER:STANDARD. A quick run takes both compilers and both languages once.
compilers=$(rounds "gcc:c99 gcc:c11 g++:c++17 clang:c99 clang:c11 clang++:c++17" \
    "gcc:c99 clang++:c++17")

implementation() {
    case $1 in
    epctx.h) echo '#define EPCTX_IMPLEMENTATION' ;;
    epctx_npu.h) printf '#define EPCTX_IMPLEMENTATION\n#define EPCTX_NPU_IMPLEMENTATION\n' ;;
    esac
}

# A declaration of its own ends each file: a header that leaves something open is
# noticed, and one without declarations is no empty translation unit.
for header in epctx.h epctx_npu.h; do
    [ -e $header ] || { echo "skip compile $header: it does not exist"; continue; }
    base=$work/${header%.h}
    include="#include \"$header\""
    after='extern int translation_unit_is_not_empty;'
    printf '%s\n' "$include" "$after" >"$base.alone.c"
    printf '%s\n' "$include" "$include" "$after" >"$base.twice.c"
    printf '%s\n' "$(implementation $header)" "$include" "$after" >"$base.implementation.c"
    # Declarations first, the implementation then, and everything once more. By
    # then the system's headers have been read, so what the implementation wants
    # of them has to be said before.
    printf '%s\n' '#define _XOPEN_SOURCE 700' "$include" "$(implementation $header)" \
        "$include" "$include" "$after" >"$base.late.c"
    printf '%s\n' '#define EPCTX_STATIC' "$(implementation $header)" "$include" "$after" \
        >"$base.static.c"
    for form in alone twice implementation late static; do
        cp "$base.$form.c" "$base.$form.cc"
        for entry in $compilers; do
            compiler=${entry%:*} std=${entry#*:} suffix=c flags=$c_warnings
            case $std in c++*) suffix=cc flags=$warnings ;; esac
            case $form in
            implementation | static) what="-c -o $base.$form.$compiler.$std.o" ;;
            *) what=-fsyntax-only ;; # nobody looks at the object
            esac
            # shellcheck disable=SC2086 # lists of flags
            try "$header $form $compiler $std" $compiler -std=$std $flags $nanopb -I. $what \
                "$base.$form.$suffix"
        done
    done
done

# Where the implementation comes too late for POSIX, it says what to do.
# shellcheck disable=SC2086
sed '/_XOPEN_SOURCE/d' $work/epctx.late.c >$work/too_late.c
gcc -std=c99 $nanopb -I. -fsyntax-only $work/too_late.c 2>$work/too_late
if [ "$(grep -cE 'error:|warning:' $work/too_late)" -eq 1 ] &&
    grep -q 'error "epctx.h: a system header came first .* use the two-line epctx.c"' \
        $work/too_late; then
    echo "ok epctx.h too late names the cure"
else
    echo "FAIL epctx.h too late: expected the #error with the cure, and nothing else"
    cat $work/too_late
    status=1
fi

# The manual's defaults are those of the code.
told=$(sed -n 's/^ \*   \(EPCTX_[A-Z_]*\) *\(one\|all\) *\([0-9][0-9]*\) .*/\1 \3/p' epctx.h)
for option in $(echo "$told" | cut -d' ' -f1); do
    want=$(sed -n "s/^#define $option *\([0-9]*\)\$/\1/p" epctx.h)
    if [ "$want" = "$(echo "$told" | sed -n "s/^$option //p")" ]; then ok "default of $option"
    else fail "default of $option" "the manual says otherwise than '$want'"; fi
done
[ -n "$told" ] || fail "defaults" "the manual has none"

# Every option alone and the useful bundles; and the proof that an option did something.
single="NO_MALLOC NO_STDIO NO_WIRE NO_EDIT STATIC"
pairs="NO_MALLOC+NO_STDIO NO_MALLOC+NO_WIRE NO_STDIO+NO_WIRE NO_STDIO+NO_EDIT NO_WIRE+NO_EDIT
       NO_EDIT+STATIC"
bundles="NO_MALLOC+NO_STDIO+NO_WIRE NO_MALLOC+NO_STDIO+NO_EDIT"
for options in $single $(rounds "$pairs" "") $bundles; do
    options=$(echo "$options" | tr + ' ')
    flags=
    for option in $options; do flags="$flags -DEPCTX_$option"; done
    object=$work/option.$(echo "$options" | tr ' ' '.').o
    # shellcheck disable=SC2086 # lists of flags
    try "epctx.h with $options" gcc -std=c99 $c_warnings $flags $nanopb -I. \
        -c "$work/epctx.implementation.c" -o "$object"
    forbidden=
    case " $options " in *" NO_MALLOC "*) forbidden="$forbidden malloc calloc realloc free" ;; esac
    case " $options " in *" NO_STDIO "*) forbidden="$forbidden open fopen read mmap" ;; esac
    case " $options " in *" NO_WIRE "*) forbidden="$forbidden pb_write pb_decode_tag" ;; esac
    for name in $forbidden; do
        if nm -u "$object" 2>/dev/null | grep -qw "$name"; then
            echo "FAIL epctx.h with $options: expected no use of $name, found one"
            status=1
        fi
    done
    case " $options " in *" NO_EDIT "*)
        if nm "$object" 2>/dev/null | grep -E -w 'epctx_(set_attr|model_write|merge|generate)'; then
            echo "FAIL epctx.h with $options: expected nothing that edits or writes"
            status=1
        fi ;;
    esac
done
# shellcheck disable=SC2086 # gcc sees more there, some of which is none
try "epctx.h at -O3" gcc -std=c99 -O3 $c_warnings $nanopb -I. \
    -c "$work/epctx.implementation.c" -o "$work/o3.o"
# shellcheck disable=SC2086
try "epctx.h with NO_EDIT as C++" g++ -std=c++17 $warnings -DEPCTX_NO_EDIT $nanopb -I. \
    -c "$work/epctx.implementation.cc" -o "$work/option.NO_EDIT.cc.o"
# shellcheck disable=SC2086
try "epctx_npu.h with NO_EDIT" gcc -std=c99 $c_warnings -DEPCTX_NO_EDIT $nanopb -I. \
    -c "$work/epctx_npu.implementation.c" -o "$work/option.npu.NO_EDIT.o"

# No level and no instrument of clang makes it warn of hints to the optimizer that it could not
# follow; with ASan and UBSan it builds the fuzzers. Commas: spaces.
coverage=-O1,-fprofile-instr-generate,-fcoverage-mapping
if [ -e epctx_npu.h ]; then
    for options in $(rounds "-O0 -O1 -O3 -Os -Oz $coverage -O1,-fsanitize=thread \
        -O2,-mavx2,-mfma" $coverage); do
        # shellcheck disable=SC2046,SC2086
        try "epctx_npu.h by clang $options" clang $(echo "$options" | sed 's/,-/ -/g') -std=c99 \
            $c_warnings $nanopb -I. -DEPCTX_NPU_IMPLEMENTATION -x c -c epctx_npu.h \
            -o "$work/hints.o"
    done
fi

# ------------------------------------------------------------- the names

# names CASE PATTERN NM_FLAGS OBJECT: every symbol listed matches the pattern.
names() {
    if ! [ -e "$4" ]; then
        echo "FAIL $1: there is no object to look at"
        status=1
        return
    fi
    # shellcheck disable=SC2086
    others=$(nm $3 "$4" | awk '{print $NF}' | LC_ALL=C sort -u | grep -v -E "$2" | tr '\n' ' ')
    if [ -z "$others" ]; then
        echo "ok $1"
    else
        echo "FAIL $1: expected only $2, found $others"
        status=1
    fi
}

for header in epctx epctx_npu; do
    [ -e $header.h ] || continue
    for entry in $compilers; do
        object=$(echo "$entry" | tr : .).o
        names "$header.h exports $entry" '^epctx_' '--extern-only --defined-only' \
            "$work/$header.implementation.$object"
        names "$header.h exports when static $entry" '^$' '--extern-only --defined-only' \
            "$work/$header.static.$object"
    done
done

# A private copy beside the shared one, in one program.
printf '%s\n' '#define EPCTX_STATIC' "$(implementation epctx.h)" '#include "epctx.h"' \
    'int main(void) { return 0; }' >"$work/private.c"
# shellcheck disable=SC2086
try "private copy beside the shared one" gcc -std=c99 $c_warnings $nanopb -I. "$work/private.c" \
    "$work/epctx.implementation.gcc.c99.o" ${NANOPB_LIBS:--lprotobuf-nanopb} -lm -o "$work/private"

# Three versions in one process, each with its own text: a host that exports what it has, and two
# plugins, compiled without a word about visibility.
old='X(OK, 0, "success")'
if ! grep -qF "$old" epctx.h; then
    echo "FAIL versions: expected '$old' in epctx.h, which the versions change"
    status=1
fi
for version in host one two; do
    mkdir "$work/$version"
    sed "s/$old/X(OK, 0, \"$version\")/" epctx.h >"$work/$version/epctx.h"
    printf '%s\n' '#define EPCTX_IMPLEMENTATION' '#include "epctx.h"' \
        "const char *text_of_$version(void);" \
        "const char *text_of_$version(void) { return epctx_status_text(EPCTX_OK); }" \
        >"$work/$version/library.c"
    [ "$version" = host ] && continue
    # shellcheck disable=SC2086
    try "plugin $version" gcc -std=c99 $nanopb -fPIC -shared -I"$work/$version" \
        "$work/$version/library.c" ${NANOPB_LIBS:--lprotobuf-nanopb} -Wl,--exclude-libs,ALL \
        -o "$work/$version.so"
done
cat >"$work/host/main.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
extern const char *text_of_host(void);
static int differs(const char *path, const char *function, const char *text) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const char *(*text_of)(void) = NULL;
    void *symbol = library != NULL ? dlsym(library, function) : NULL;
    if (symbol == NULL) return printf("%s\n", dlerror());
    memcpy(&text_of, &symbol, sizeof text_of);
    return strcmp(text_of(), text) != 0 && printf("%s uses that of '%s'\n", path, text_of());
}
int main(int argc, char **argv) {
    return argc != 3 || differs(argv[1], "text_of_one", "one") ||
           differs(argv[2], "text_of_two", "two") || strcmp(text_of_host(), "host") != 0;
}
END
# shellcheck disable=SC2086
try "host" gcc -std=c99 $nanopb -rdynamic -I"$work/host" "$work/host/library.c" \
    "$work/host/main.c" ${NANOPB_LIBS:--lprotobuf-nanopb} -ldl -o "$work/host/main"
try "each version calls itself" "$work/host/main" "$work/one.so" "$work/two.so"
names "nothing of a plugin but its own function is exported" '^text_of_one$' \
    '--dynamic --defined-only' "$work/one.so"
# shellcheck disable=SC2086
try "a library that exports the functions" gcc -std=c99 $nanopb -fPIC -shared \
    '-DEPCTX_API=extern __attribute__((visibility("default")))' -I"$work/one" \
    "$work/one/library.c" ${NANOPB_LIBS:--lprotobuf-nanopb} -Wl,--exclude-libs,ALL \
    -o "$work/exports.so"
names "has them" '^(epctx_[a-z0-9_]+|text_of_one)$' '--dynamic --defined-only' "$work/exports.so"
if ! nm --dynamic --defined-only "$work/exports.so" | grep -q ' epctx_model_open_file$'; then
    echo "FAIL a library that exports the functions: epctx_model_open_file is not there"
    status=1
fi

# ---------------------------------------------------------- other targets

# nanopb's headers by themselves, so that nothing of this system's C library
# is found beside them.
found=$(echo '#include <pb_encode.h>' | gcc $nanopb -x c -M - | tr ' ' '\n' |
    grep -m 1 '/pb_encode\.h$')
mkdir -p "$work/nanopb"
cp "$(dirname "$found")"/pb*.h "$work/nanopb"
bare="-ffreestanding -nostdinc -isystem $(clang -print-resource-dir)/include \
-isystem $top/tests/freestanding -isystem $work/nanopb -I."
no_system="-DEPCTX_NO_MALLOC -DEPCTX_NO_STDIO"

for part in library reader; do
    printf '%s\n' '#define EPCTX_IMPLEMENTATION' '#include "epctx.h"' >"$work/$part.c"
done
printf '%s\n' '#define EPCTX_NPU_IMPLEMENTATION' '#include "epctx_npu.h"' >"$work/executor.c"

targets=$(rounds "i686-linux-gnu s390x-linux-gnu" s390x-linux-gnu)
for part in library reader executor; do
    options=$no_system
    [ $part != reader ] || options="$options -DEPCTX_NO_EDIT"
    if [ $part = executor ]; then
        [ -e epctx_npu.h ] || continue
        options="$options -DEPCTX_NPU_NO_COMPILER"
    fi
    object=$work/$part.thumbv7m.o
    # shellcheck disable=SC2086,SC2046 # lists
    try "$part for thumbv7m" clang --target=thumbv7m-none-eabi $(rounds -Os -O0) -std=c99 \
        $c_warnings $bare $options -c "$work/$part.c" -o "$object"
    names "$part for thumbv7m needs nothing else" \
        '^(mem(cpy|move|set|cmp|chr)|str(len|cmp|ncmp)|(pb|epctx)_[a-z0-9_]+|__aeabi_[a-z0-9]+)$' \
        --undefined-only "$object"
    [ -e "$object" ] && echo "note thumbv7m $part: $(size "$object" | awk 'NR == 2 {
        print $1 " bytes of code and constants, " $2 " of data, " $3 " of zeroed data"}')"
    # 32 bits with other alignments, and the other byte order.
    for target in $targets; do
        # shellcheck disable=SC2086
        try "$part for $target" clang --target=$target -fsyntax-only -std=c99 $c_warnings $bare \
            $options "$work/$part.c"
    done
done
if [ -e epctx_npu.h ]; then
    for target in $targets; do
        # shellcheck disable=SC2086
        try "compiler for $target" clang --target=$target -fsyntax-only -std=c99 $c_warnings $bare \
            -DEPCTX_NO_STDIO "$work/executor.c"
    done
fi
exit $status
