#!/bin/sh
# make install, uninstall, dist and amalgamate, and programs outside this tree that use what they
# made: by pkg-config, CMake's find_package and FetchContent, in C99 and C++17.
# runs: once for each user
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start install
out=$work/out err=$work/err
version=$(sed -n 's/^#define EPCTX_VERSION_STRING "\(.*\)"$/\1/p' epctx.h)
CC=${CC:-gcc} CXX=${CXX:-g++}
export CC CXX
unset MAKEFLAGS MFLAGS MAKELEVEL prefix PREFIX DESTDIR

# top_make ARGUMENT...: a make of its own in this tree
top_make() {
    make --no-print-directory -C "$top" "$@" >"$out" 2>"$err"
    code=$?
}

# files FOLDER: the files in it, sorted
files() { (cd "$1" && find . ! -type d | sed 's|^\./||' | LC_ALL=C sort); }

# -- what is installed, and what is left of it --
umask 077
stage="$work/a stage"
top_make install DESTDIR="$stage" PREFIX=/usr
said "install" 0
umask 022
cat >"$work/expected" <<'E3'
usr/bin/epctx
usr/include/epctx.h
usr/include/epctx_npu.h
usr/include/epctx_ort/bridge.h
usr/include/epctx_ort/buffers.c
usr/include/epctx_ort/epctx_ort.hpp
usr/include/epctx_ort/graph.c
usr/include/epctx_ort/node.c
usr/include/epctx_ort/ort131.h
usr/include/epctx_ort/status.c
usr/share/bash-completion/completions/epctx
usr/share/cmake/epctx/epctx-config-version.cmake
usr/share/cmake/epctx/epctx-config.cmake
usr/share/doc/epctx/LICENSE
usr/share/doc/epctx/README.md
usr/share/fish/vendor_completions.d/epctx.fish
usr/share/man/man1/epctx.1
usr/share/pkgconfig/epctx.pc
usr/share/zsh/site-functions/_epctx
E3
files "$stage" >"$work/found"
same "files" "$work/expected" "$work/found"
sed -n "s|^installed $stage/||p" "$out" | LC_ALL=C sort >"$work/found"
same "each file is told" "$work/expected" "$work/found"
if [ -z "$(find "$stage/usr" -type f ! -name epctx ! -perm 644)$(find "$stage/usr" -type d \
    ! -perm 755)" ] && [ "$(stat -c %a "$stage/usr/bin/epctx")" = 755 ]; then ok "modes"
else fail "modes" "some are neither 644 nor, for folders and the tool, 755"; fi
if grep -rIl -e '@[A-Z_][A-Z_]*@' "$stage" >"$out"; then fail "templates" "not filled in"
else ok "templates"; fi
works "tool" "$stage/usr/bin/epctx" --version
grep -qx "epctx $version" "$out" || fail "tool" "expected version $version"
head -n 1 "$stage/usr/share/man/man1/epctx.1" | grep -qF "\"epctx $version\"" ||
    fail "man page" "does not name version $version"
if grep -qF -e "$top" -e "$(pwd -P)" "$stage/usr/bin/epctx"; then
    fail "tool is the same from every folder" "$top is in it"
else ok "tool is the same from every folder"; fi

# -- whatever the environment is by then, what was built is copied --
before=$(cksum <"$plain")
other="NANOPB_LIBS=-lother NANOPB_CFLAGS=-I/other EPCTX_NO_PACKAGE=1 EPCTX_CACHE=/nowhere CC=false"
for how in "env -i PATH=$PATH HOME=/nowhere EPCTX_BUILD=${EPCTX_BUILD:-build}" "env $other"; do
    # shellcheck disable=SC2086 # words
    $how make --no-print-directory -C "$top" install DESTDIR="$work/again" PREFIX=/usr \
        >"$out" 2>"$err"
    code=$?
    said "install, ${how%% PATH*}" 0
    if diff -r "$stage" "$work/again" >"$out" && [ "$before" = "$(cksum <"$plain")" ]; then
        ok "install, ${how%% PATH*}: the same files"
    else fail "install, ${how%% PATH*}: the same files" "others are installed, or built"; fi
    rm -rf "$work/again"
done
mkdir "$work/unbuilt"
top_make install-tool DESTDIR="$work/again" EPCTX_BUILD="$work/unbuilt"
said "install, nothing is built" 2 "is not built: run make"
if [ -e "$work/again" ]; then fail "install, nothing is built" "something is installed"; fi
cp "$plain" "$work/unbuilt/epctx"
touch -d '1 hour' "$work/unbuilt/config"
top_make install-tool DESTDIR="$work/again" EPCTX_BUILD="$work/unbuilt"
said "install, a build that did not end" 2 "is not of the last build"

mkdir -p "$stage/usr/share/doc/other"
top_make uninstall DESTDIR="$stage" PREFIX=/usr
said "uninstall" 0
(cd "$stage" && find . -mindepth 1 | LC_ALL=C sort) >"$work/left"
printf './%s\n' usr usr/bin usr/include usr/share usr/share/doc usr/share/doc/other usr/share/man \
    usr/share/man/man1 >"$work/kept"
same "uninstall leaves what a system has" "$work/kept" "$work/left"
sed -n "s|^removed $stage/\(.*[^/]\)$|\1|p" "$out" | LC_ALL=C sort >"$work/found"
same "uninstall tells each file" "$work/expected" "$work/found"
top_make uninstall DESTDIR="$stage" PREFIX=/usr
said "uninstall, once more" 0
if [ -s "$out" ]; then fail "uninstall, once more" "it tells something"; fi
mkdir -p "$work/own/share/man/man1"
: >"$work/own/share/man/man1/other.1"
for step in install uninstall; do
    top_make $step PREFIX="$work/own"
    said "$step, a prefix of one's own" 0
done
(cd "$work/own" && find . -mindepth 1 | LC_ALL=C sort) >"$work/left"
printf './%s\n' share share/man share/man/man1 share/man/man1/other.1 >"$work/kept"
same "uninstall removes all folders that are empty" "$work/kept" "$work/left"

top_make install DESTDIR="$work/gnu" prefix=/p bindir=/b includedir=/i/x datadir=/d mandir=/m \
    docdir=/e
said "GNU folders" 0
files "$work/gnu" | sed 's|/.*/|/|' | sort >"$work/found"
cat >"$work/expected" <<'E3'
b/epctx
d/_epctx
d/epctx
d/epctx-config-version.cmake
d/epctx-config.cmake
d/epctx.fish
d/epctx.pc
e/LICENSE
e/README.md
i/bridge.h
i/buffers.c
i/epctx.h
i/epctx_npu.h
i/epctx_ort.hpp
i/graph.c
i/node.c
i/ort131.h
i/status.c
m/epctx.1
E3
same "GNU folders: files" "$work/expected" "$work/found"
if grep -qx 'includedir=/i/x' "$work/gnu/d/pkgconfig/epctx.pc" &&
    grep -q '"/i/x"' "$work/gnu/d/cmake/epctx/epctx-config.cmake"; then ok "GNU folders: contents"
else fail "GNU folders: contents" "epctx.pc or the CMake files do not name /i/x"; fi
top_make install-headers PREFIX=relative
said "a relative prefix" 2 "'relative' is not an absolute path"
if [ -e relative ]; then fail "a relative prefix" "something was installed"; fi

# -- a program that uses both headers --
mkdir "$work/program"
cp tests/judge/outside.c "$work/program/main.c"
printf '#define EPCTX_IMPLEMENTATION\n#define EPCTX_NPU_IMPLEMENTATION\n#include <epctx_npu.h>\n' \
    >"$work/program/epctx.c"
cp "$work/program/epctx.c" "$work/program/epctx.cc"
cp "$work/program/main.c" "$work/program/main.cc"

# prints NAME PROGRAM: it ran
prints() {
    if [ "$code" -ne 0 ]; then fail "$1" "is not built"
    elif "$2" >"$out" 2>"$err" && grep -qx 'IR version 10' "$out"; then ok "$1"
    else fail "$1" "does not run"; fi
}

# -- pkg-config --
top_make install-headers PREFIX="$work/first"
said "install-headers" 0
PKG_CONFIG_PATH=$work/first/share/pkgconfig
export PKG_CONFIG_PATH
works "pkg-config" pkg-config --modversion epctx
grep -qx "$version" "$out" || fail "pkg-config" "expected version $version"
flags=$(pkg-config --cflags --libs epctx)
cd "$work/program" || exit 1
# shellcheck disable=SC2086 # flags are words
for pair in "$CC -std=c99:c" "$CXX -std=c++17:cc"; do
    suffix=${pair#*:}
    ${pair%:*} -O0 -o "$work/by_pkg_config" main.$suffix epctx.$suffix $flags >"$out" 2>"$err"
    code=$?
    prints "pkg-config, ${pair%:*}" "$work/by_pkg_config"
done
top_make install-headers PREFIX="$work/elsewhere" NANOPB_CFLAGS=-I/n NANOPB_LIBS="-L/n -lnano"
PKG_CONFIG_PATH=$work/elsewhere/share/pkgconfig
if pkg-config --cflags epctx | grep -q -- '-I/n' &&
    pkg-config --libs epctx | grep -q -- '-L/n -lnano'; then ok "pkg-config, nanopb from elsewhere"
else fail "pkg-config, nanopb from elsewhere" "not in epctx.pc"; fi

top_make install-headers PREFIX="$work/with spaces"
flags=$(PKG_CONFIG_PATH="$work/with spaces/share/pkgconfig" pkg-config --cflags epctx)
if eval "$CC -fsyntax-only main.c $flags" >"$out" 2>"$err"; then
    ok "pkg-config, a prefix with spaces"
else fail "pkg-config, a prefix with spaces" "not quoted in epctx.pc"; fi

# -- CMake, from an installation that was moved --
mv "$work/first" "$work/moved"
cat >CMakeLists.txt <<'E3'
cmake_minimum_required(VERSION 3.13)
project(outside C CXX)
set(CMAKE_C_STANDARD 99)
set(CMAKE_CXX_STANDARD 17)
function(expect found version)
    find_package(epctx ${version} QUIET CONFIG COMPONENTS headers ${ARGN})
    if(NOT "${epctx_FOUND}" EQUAL found)
        message(FATAL_ERROR "find_package(epctx ${version} ${ARGN}): ${epctx_FOUND}")
    endif()
endfunction()
expect(1 "")
if(TARGET epctx::epctx)
    message(FATAL_ERROR "the headers alone brought nanopb")
endif()
expect(1 ${OURS})
expect(1 ${SERIES})
expect(1 ${OURS} EXACT)
expect(1 0...9)
expect(0 0.1)
expect(0 0.1...<${SERIES})
expect(0 ${SERIES}.999)
expect(0 99)
E3
# Where nanopb may be, each in a scope of its own: a folder has its own targets.
# nanopb FOLDER PATTERN SETTING...: what epctx::epctx links with
nanopb() {
    mkdir "$1"
    {
        printf '%s\n' "$3" 'find_package(epctx QUIET CONFIG)' 'set(found "${epctx_FOUND}")' \
            'if(TARGET epctx::epctx)' \
            '    get_target_property(found epctx::epctx INTERFACE_LINK_LIBRARIES)' 'endif()' \
            "if(NOT \"\${found}\" MATCHES \"$2\")" \
            "    message(FATAL_ERROR \"$1 nanopb: \${found}\")" 'endif()'
    } >"$1/CMakeLists.txt"
    echo "add_subdirectory($1)" >>CMakeLists.txt
}
nanopb own '^epctx::headers;own' 'add_library(own INTERFACE)
set(EPCTX_NANOPB own)'
nanopb system '^epctx::headers;.*/libprotobuf-nanopb' 'set(CMAKE_DISABLE_FIND_PACKAGE_nanopb ON)'
nanopb no '^0$' 'set(CMAKE_DISABLE_FIND_PACKAGE_nanopb ON)
set(EPCTX_NANOPB_INCLUDE "")'
cat >>CMakeLists.txt <<'E3'
find_package(epctx ${SERIES} REQUIRED CONFIG)
find_package(epctx REQUIRED CONFIG)
add_executable(in_c main.c epctx.c)
target_link_libraries(in_c PRIVATE epctx::epctx)
add_executable(in_cxx main.cc epctx.cc)
target_link_libraries(in_cxx PRIVATE epctx::epctx)
add_library(no_wire STATIC epctx.c)
target_compile_definitions(no_wire PRIVATE EPCTX_NO_WIRE)
target_link_libraries(no_wire PRIVATE epctx::headers)
E3
works "CMake" cmake -S . -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/moved" \
    -DOURS="$version" -DSERIES="${version%.*}"
works "CMake builds" cmake --build "$work/cmake"
prints "CMake, C99" "$work/cmake/in_c"
prints "CMake, C++17" "$work/cmake/in_cxx"

# -- the archive: the same bytes again, and from another folder --
if [ "$(git -C "$top" rev-parse --show-cdup 2>/dev/null || echo no)" != "" ]; then
    echo "skip dist: this is no git repository"
    rm -rf "$work"
    exit $status
fi
archive=epctx-$version.tar.gz
mkdir "$work/a longer name"
for clone in "$work/clone" "$work/a longer name/clone"; do
    git clone -q --depth 1 "file://$top" "$clone" 2>"$err" || exit 1
    works "dist" make --no-print-directory -C "$clone" dist
done
cp "$work/clone/build/dist/$archive" "$work/first.tar.gz"
works "dist again" make --no-print-directory -C "$work/clone" dist
same "dist: the same bytes" "$work/first.tar.gz" "$work/clone/build/dist/$archive"
same "dist: from another folder" "$work/first.tar.gz" \
    "$work/a longer name/clone/build/dist/$archive"
echo '# changed' >>"$work/clone/examples/packaging/conan/conanfile.py.in"
works "dist with changes" make --no-print-directory -C "$work/clone" dist
if grep -q changed "$work/clone/build/dist/recipes/conan/conanfile.py"; then
    fail "dist: changes are left out" "the recipe for Conan has one"
else ok "dist: changes are left out"; fi
sed -i 's/^#define EPCTX_VERSION_STRING ".*"/#define EPCTX_VERSION_STRING "77.0.0"/' \
    "$work/clone/epctx.h"
make --no-print-directory -C "$work/clone" dist >"$out" 2>"$err"
code=$?
said "dist: a version that is not committed" 2 "epctx.h has version 77.0.0"
git -C "$work/clone" checkout -q .
cd "$work/clone/build/dist" || exit 1
works "SHA256SUMS" sha256sum -c SHA256SUMS
cd "$work" || exit 1
tar -tzf first.tar.gz | grep -v '/$' | sed "s|^epctx-$version/||" | LC_ALL=C sort >found
git -C "$top" ls-tree -r --name-only HEAD | LC_ALL=C sort >expected
same "dist: every file" expected found
object=build/obj/examples/epctx/core/json.o
for clone in "$work/clone" "$work/a longer name/clone"; do
    works "an object" make --no-print-directory -C "$clone" CFLAGS="-O0 -g" $object
done
same "an object: the same bytes in another folder" "clone/$object" "a longer name/clone/$object"

# -- FetchContent, with the sources of nanopb --
nanopb=$(cd "$top" && tests/deps.sh where nanopb-source) || exit 1
mkdir fetch
cp program/main.c program/epctx.c fetch
cat >fetch/CMakeLists.txt <<'E3'
cmake_minimum_required(VERSION 3.18)
project(outside C)
include(FetchContent)
FetchContent_Declare(epctx URL ${ARCHIVE} SOURCE_SUBDIR examples/packaging)
FetchContent_MakeAvailable(epctx)
add_executable(in_c main.c epctx.c)
target_link_libraries(in_c PRIVATE epctx::epctx)
E3
works "FetchContent" cmake -S fetch -B fetched -DARCHIVE="file://$work/first.tar.gz" \
    -DNANOPB_SOURCE="$nanopb"
works "FetchContent builds" cmake --build fetched
prints "FetchContent" fetched/in_c
if [ -e fetched/_deps/epctx-build/libepctx_nanopb.a ]; then ok "FetchContent, NANOPB_SOURCE"
else fail "FetchContent, NANOPB_SOURCE" "nanopb was not built"; fi

# -- without nanopb --
works "amalgamate" make --no-print-directory -C clone amalgamate EPCTX_CACHE="$work/no_cache" \
    NANOPB_SOURCE="$nanopb"
all=clone/build/amalgamate
for file in epctx.h epctx_all.c; do
    if grep -q 'Petteri Aimonen' $all/$file && grep -q 'must be plainly marked' $all/$file; then
        ok "amalgamate: nanopb's licence in $file"
    else fail "amalgamate: nanopb's licence in $file" "is not there"; fi
done
printf '#define EPCTX_NPU_IMPLEMENTATION\n#include "epctx_npu.h"\n' >npu.c
for compiler in "$CC -std=c99" "$CXX -x c++ -std=c++17"; do
    # -H lists every file that is read: nanopb's are in the system's folders, too.
    $compiler -O0 -Wall -Wextra -Wpedantic -Werror -H -I$all -o without $all/epctx_all.c npu.c \
        program/main.c -lm >"$out" 2>"$err"
    code=$?
    if grep -E '^\.+ .*/pb(_[a-z]*)?\.h' "$err"; then
        fail "amalgamate" "nanopb's headers are read"
    fi
    prints "amalgamate, ${compiler##* }" ./without
done

# -- nothing is fetched where that is not wanted --
(cd "$top" && unset NANOPB_SOURCE && EPCTX_OFFLINE=1 EPCTX_CACHE=$work/no_cache \
    sh tests/deps.sh nanopb) >"$out" 2>"$err"
code=$?
said "EPCTX_OFFLINE" 1 "missing: nanopb "

# -- completion in bash --
cat >complete.bash <<'E3'
. "$1"
epctx() { "$tool" "$@"; }
tool=$2
try() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _epctx
    echo "${COMPREPLY[*]}"
}
try epctx li
try epctx help ex
try epctx np
try epctx lint --no-
try epctx lint m.o
E3
printf 'lint\nexplain extract\nnpu-dump\n--no-files --no-progress\n\n' >expected
bash complete.bash "$top/examples/epctx/completion/epctx.bash" "$plain" >found 2>"$err"
same "completion, bash" expected found
cd "$top" && rm -rf "$work"
exit $status
