#!/bin/sh
# make dist: build/dist holds the archive of the last commit, SHA256SUMS and, in recipes, the
# packages of Meson, vcpkg and Conan for it. One commit gives the same bytes everywhere.
#
# Environment: RELEASE_URL, the folder on the web where the archive will be (for the recipes)
set -eu
name=dist
cd "$(dirname "$0")/../.."
. examples/packaging/common.sh
# Git may have reasons of its own, such as a folder of another user.
above=$(git rev-parse --show-cdup 2>&1) ||
    die "archives are made of a commit: this is no git repository of epctx ($above)"
[ -z "$above" ] || die "archives are made of a commit: this is no git repository of epctx"
git show HEAD:epctx.h | grep -qxF "#define EPCTX_VERSION_STRING \"$version\"" ||
    die "epctx.h has version $version, that of the commit has another: commit it first"
[ -z "$(git status --porcelain --untracked-files=no)" ] ||
    echo "dist: changes that are not committed are left out" >&2

out=build/dist
archive=epctx-$version.tar.gz
rm -rf "$out"
mkdir -p "$out"
git -c tar.umask=0022 -c core.autocrlf=false -c core.attributesFile=/dev/null \
    archive --format=tar --prefix="epctx-$version/" HEAD | gzip -9n >"$out/$archive"
(cd "$out" && sha256sum "$archive" >SHA256SUMS)

# recipe TEMPLATE TARGET
recipe() {
    mkdir -p "$out/recipes/$(dirname "$2")"
    git show "HEAD:examples/packaging/$1" | fill - VERSION="$version" \
        URL="${RELEASE_URL:-https://example.org/epctx}/$archive" ARCHIVE="$archive" \
        ORT_FILES="${ort_files% }" \
        SHA256="$(sha256sum "$out/$archive" | cut -d ' ' -f 1)" \
        SHA512="$(sha512sum "$out/$archive" | cut -d ' ' -f 1)" >"$out/recipes/$2"
}
recipe meson/epctx.wrap.in subprojects/epctx.wrap
recipe meson/meson.build subprojects/packagefiles/epctx/meson.build
recipe vcpkg/vcpkg.json.in vcpkg/vcpkg.json
recipe vcpkg/portfile.cmake.in vcpkg/portfile.cmake
recipe conan/conanfile.py.in conan/conanfile.py
echo "dist: $out/$archive, $out/SHA256SUMS, $out/recipes"
