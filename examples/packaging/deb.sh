#!/bin/sh
# make deb: build/deb holds the Debian source package, made of the archive of `make dist`, and the
# packages libepctx-dev and epctx built from it.
#
# Environment: DEBFULLNAME and DEBEMAIL, the maintainer (default: who made the last commit);
# DEB_BUILD_OPTIONS
set -eu
name=deb
cd "$(dirname "$0")/../.."
. examples/packaging/common.sh

out=build/deb
tree=$out/epctx-$version
rm -rf "$out"
mkdir -p "$out"
cp "build/dist/epctx-$version.tar.gz" "$out/epctx_$version.orig.tar.gz"
tar -xzf "$out/epctx_$version.orig.tar.gz" -C "$out"
cp -R "$tree/examples/packaging/debian" "$tree/debian"
maintainer="${DEBFULLNAME:-$(git log -1 --format=%cn)} <${DEBEMAIL:-$(git log -1 --format=%ce)}>"
for file in control changelog; do
    fill "$tree/debian/$file.in" VERSION="$version" MAINTAINER="$maintainer" \
        DATE="$(git log -1 --format=%cD)" >"$tree/debian/$file"
    rm "$tree/debian/$file.in"
done

# Nothing of this make's variables may get in.
cd "$tree"
env -i PATH="$PATH" HOME="${HOME:-/}" LC_ALL=C.UTF-8 TMPDIR="${TMPDIR:-/tmp}" \
    DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -us -uc >../build.log 2>&1 || {
    tail -n 20 ../build.log >&2
    die "dpkg-buildpackage failed, see $out/build.log"
}
cd ../../..
for file in "$out"/*.dsc "$out"/*.deb; do echo "deb: $file"; done
