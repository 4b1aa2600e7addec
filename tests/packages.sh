#!/bin/sh
# What packagers get: Debian packages, recipes for Meson, vcpkg and Conan, completions for zsh and
# fish. `make matrix` runs it. vcpkg and Conan are not in Debian: stand-ins for the functions that
# the recipes call run these.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start packages
out=$work/out err=$work/err
version=$(sed -n 's/^#define EPCTX_VERSION_STRING "\(.*\)"$/\1/p' epctx.h)
unset MAKEFLAGS MFLAGS MAKELEVEL prefix PREFIX DESTDIR

# The last commit, in a folder of its own.
git clone -q --depth 1 "file://$top" "$work/tree" || exit 1
cd "$work" || exit 1
cp "$top/tests/judge/outside.c" main.c
printf '#define EPCTX_IMPLEMENTATION\n#define EPCTX_NPU_IMPLEMENTATION\n#include <epctx_npu.h>\n' \
    >epctx.c

# -- Debian --
works "make deb" env DEB_BUILD_OPTIONS=noopt make --no-print-directory -C tree deb
deb=tree/build/deb
works "lintian" lintian --allow-root --fail-on error,warning \
    "$deb/epctx_$version"-*.changes
for package in "$deb"/epctx_*.deb "$deb"/libepctx-dev_*.deb; do
    works "unpack ${package##*/}" dpkg-deb -x "$package" unpacked
done
works "packaged tool" unpacked/usr/bin/epctx --version
# shellcheck disable=SC2046 # a list of flags
works "packaged headers" gcc -O0 -Iunpacked/usr/include -o by_deb main.c epctx.c \
    $(PKG_CONFIG_PATH=unpacked/usr/share/pkgconfig pkg-config --libs epctx)
works "packaged headers: program" ./by_deb
if [ -e unpacked/usr/share/man/man1/epctx.1.gz ] && [ -e unpacked/usr/share/doc/epctx/copyright ] &&
    [ -e unpacked/usr/share/zsh/vendor-completions/_epctx ]; then ok "packaged files"
else fail "packaged files" "man page, copyright or completion is missing"; fi

# -- the tool without libsodium --
mkdir without
works "EPCTX_NO_PACKAGE" make --no-print-directory -C tree CFLAGS=-O0 EPCTX_NO_PACKAGE=1 \
    install DESTDIR="$work/without" PREFIX=/usr
works "EPCTX_NO_PACKAGE: tool" without/usr/bin/epctx help
if grep -q '^  package' "$out" || ldd without/usr/bin/epctx | grep -q sodium; then
    fail "EPCTX_NO_PACKAGE: no libsodium" "it is still there"
else ok "EPCTX_NO_PACKAGE: no libsodium"; fi
make --no-print-directory -C tree CFLAGS=-O0 -n build/epctx >"$out" 2>"$err"
code=$?
said "EPCTX_NO_PACKAGE: without it the tool is built again" 0 "-lsodium"

# -- Meson: the wrap, with the archive where a download would have put it --
recipes=tree/build/dist/recipes
mkdir meson
cp -R "$recipes/subprojects" meson/
mkdir meson/subprojects/packagecache
cp "tree/build/dist/epctx-$version.tar.gz" meson/subprojects/packagecache/
cp main.c epctx.c meson/
cat >meson/meson.build <<'E3'
project('outside', 'c', default_options: ['c_std=c99', 'optimization=0'])
epctx = dependency('epctx', version: '>= 0.2')
executable('outside', 'main.c', 'epctx.c', dependencies: epctx)
E3
works "Meson" meson setup --wrap-mode=forcefallback --force-fallback-for=epctx built meson
works "Meson builds" meson compile -C built
works "Meson: program" built/outside

# -- vcpkg: its functions as far as the recipe uses them --
cat >vcpkg.cmake <<'E3'
function(vcpkg_download_distfile variable)
    cmake_parse_arguments(arg "" "URLS;FILENAME;SHA512" "" ${ARGN})
    file(SHA512 "${ARCHIVES}/${arg_FILENAME}" sum)
    if(NOT sum STREQUAL arg_SHA512)
        message(FATAL_ERROR "SHA512 of ${arg_FILENAME}")
    endif()
    set(${variable} "${ARCHIVES}/${arg_FILENAME}" PARENT_SCOPE)
endfunction()
function(vcpkg_extract_source_archive variable)
    cmake_parse_arguments(arg "" "ARCHIVE" "" ${ARGN})
    file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${FOLDER}/source")
    file(GLOB source "${FOLDER}/source/*")
    set(${variable} "${source}" PARENT_SCOPE)
endfunction()
function(vcpkg_install_copyright)
    cmake_parse_arguments(arg "" "FILE_LIST" "" ${ARGN})
    file(COPY "${arg_FILE_LIST}" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
endfunction()
set(PORT epctx)
set(CURRENT_PACKAGES_DIR "${FOLDER}/packages")
include("${RECIPE}/portfile.cmake")
E3
works "vcpkg recipe" cmake -DARCHIVES="$work/tree/build/dist" -DFOLDER="$work/vcpkg" \
    -DRECIPE="$work/$recipes/vcpkg" -P vcpkg.cmake
works "vcpkg recipe: manifest" "$python" -m json.tool "$recipes/vcpkg/vcpkg.json"
mkdir port
cp main.c epctx.c port/
cat >port/CMakeLists.txt <<'E3'
cmake_minimum_required(VERSION 3.13)
project(outside C)
find_package(epctx CONFIG REQUIRED)
add_executable(outside main.c epctx.c)
target_link_libraries(outside PRIVATE epctx::epctx)
E3
works "vcpkg recipe: CMake" cmake -S port -B ported -DCMAKE_PREFIX_PATH="$work/vcpkg/packages"
works "vcpkg recipe: CMake builds" cmake --build ported

# -- Conan: its classes and functions as far as the recipe uses them --
cat >conan.py <<'E3'
import hashlib, os, shutil, sys, tarfile, types
class ConanFile:
    pass
def copy(_, pattern, src, dst):
    os.makedirs(dst, exist_ok=True)
    shutil.copy(os.path.join(src, pattern), dst)
def get(recipe, url, sha256, strip_root):
    path = os.path.join(sys.argv[1], url.rsplit("/", 1)[1])
    with open(path, "rb") as archive:
        assert hashlib.sha256(archive.read()).hexdigest() == sha256 and strip_root
    with tarfile.open(path) as archive:
        archive.extractall(recipe.source_folder)
    top, = os.listdir(recipe.source_folder)
    recipe.source_folder = os.path.join(recipe.source_folder, top)
for name in ("conan", "conan.tools", "conan.tools.files", "conan.tools.layout"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["conan"].ConanFile = ConanFile
sys.modules["conan.tools.files"].copy = copy
sys.modules["conan.tools.files"].get = get
sys.modules["conan.tools.layout"].basic_layout = lambda *_, **__: None
sys.path.insert(0, sys.argv[2])
import conanfile
recipe = conanfile.EpctxConan()
recipe.source_folder, recipe.package_folder = "conan_source", "conan_package"
recipe.settings = types.SimpleNamespace(get_safe=lambda _: "Linux")
recipe.cpp_info = types.SimpleNamespace()
recipe.source()
recipe.package()
recipe.package_info()
assert recipe.version == sys.argv[3] and recipe.cpp_info.system_libs == ["m"]
E3
works "Conan recipe" "$python" -B conan.py tree/build/dist "$recipes/conan" "$version"
works "Conan recipe: headers" gcc -fsyntax-only -Iconan_package/include main.c

# -- completions --
mkdir bin
ln -s "$work/unpacked/usr/bin/epctx" bin/epctx
PATH=$work/bin:$PATH
fish=$top/examples/epctx/completion/epctx.fish
works "fish" fish --no-config -c "source $fish; complete -C 'epctx li'; \
    complete -C 'epctx lint --no-f'; complete -C 'epctx help ext'; complete -C 'epctx lint mai'; \
    complete -C 'epctx lint --format=j'"
if [ "$(cut -f 1 "$out" | tr '\n' ' ')" = "lint --no-files extract main.c --format=json " ]; then
    ok "completion, fish"
else fail "completion, fish" "found other words"; fi
cat >zsh.sh <<'E3'
# What the completion system would be given, one line for each call.
compadd() { shift; print -l -- ${(P)1} }
_describe() { print -l -- ${(P)2%%:*} }
_files() { print files }
compset() { PREFIX=${PREFIX#*=} }
file=$1
try() { words=("$@") CURRENT=$# PREFIX=${@[-1]}; . $file }
try epctx li | grep '^li'
try epctx help ext | grep '^ext'
try epctx lint --no-f | grep '^--no-f'
try epctx lint mai
try epctx lint --format=js | grep '^js'
E3
works "zsh" zsh -f zsh.sh "$top/examples/epctx/completion/_epctx"
if [ "$(tr '\n' ' ' <"$out")" = "lint extract --no-files files json " ]; then ok "completion, zsh"
else fail "completion, zsh" "found other words"; fi
cd "$top" && rm -rf "$work"
exit $status
