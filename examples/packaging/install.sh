#!/bin/sh
# make install, make uninstall: both walk through the same list of files.
#
#   sh examples/packaging/install.sh install|uninstall [headers] [tool]
#
# Environment, all of GNU's meaning: DESTDIR; PREFIX or prefix, exec_prefix, bindir, includedir,
# datarootdir, datadir, mandir, docdir. Folders of our own: pkgconfigdir, cmakedir, bashcompdir,
# zshcompdir, fishcompdir. There is no compiled library: nothing goes to libdir.
# EPCTX_BUILD is the folder that holds the built tool (default: build), and beside it `config`: with
# which NANOPB_CFLAGS and NANOPB_LIBS it was built. epctx.pc gives these to programs, or
# EPCTX_NANOPB_CFLAGS and EPCTX_NANOPB_LIBS where they are set; where nothing is built,
# NANOPB_CFLAGS and NANOPB_LIBS.
set -eu
name=install
cd "$(dirname "$0")/../.."
. examples/packaging/common.sh

prefix=${prefix:-${PREFIX:-/usr/local}}
exec_prefix=${exec_prefix:-$prefix}
bindir=${bindir:-$exec_prefix/bin}
includedir=${includedir:-$prefix/include}
datarootdir=${datarootdir:-$prefix/share}
datadir=${datadir:-$datarootdir}
mandir=${mandir:-$datarootdir/man}
docdir=${docdir:-$datarootdir/doc/epctx}
pkgconfigdir=${pkgconfigdir:-$datadir/pkgconfig}
cmakedir=${cmakedir:-$datadir/cmake/epctx}
bashcompdir=${bashcompdir:-$datadir/bash-completion/completions}
zshcompdir=${zshcompdir:-$datadir/zsh/site-functions}
fishcompdir=${fishcompdir:-$datadir/fish/vendor_completions.d}
for folder in "$prefix" "$bindir" "$includedir" "$datadir" "$mandir" "$docdir" "$pkgconfigdir" \
    "$cmakedir" "$bashcompdir" "$zshcompdir" "$fishcompdir"; do
    case $folder in /*) ;; *) die "'$folder' is not an absolute path" ;; esac
done

# put MODE FILE TARGET: installs FILE as TARGET, or removes TARGET.
put() {
    target=${DESTDIR:-}$3
    if [ "$action" = install ]; then
        install -d "${target%/*}"
        install -m "$1" "$2" "$target"
        echo "installed $target"
    elif [ -e "$target" ] || [ -L "$target" ]; then
        rm -f "$target"
        echo "removed $target"
        drop "${3%/*}"
    fi
}

# drop FOLDER: it and those above it, below the prefix, go when they are empty. Folders that a
# system has anyway stay.
drop() {
    folder=$1
    while ! is_kept "$folder" && rmdir "${DESTDIR:-}$folder" 2>/dev/null; do
        echo "removed ${DESTDIR:-}$folder/"
        folder=${folder%/*}
    done
}
is_kept() {
    case $1 in "$prefix"/?*) ;; *) [ "$1" != "$cmakedir" ] && [ "$1" != "$docdir" ]; return ;; esac
    case $prefix in / | /usr | /usr/local) ;; *) return 1 ;; esac
    case ${1#"$prefix"/} in
    bin | include | share | share/doc | share/man | share/man/man1) return 0 ;;
    esac
    return 1
}

# The include folder as epctx.pc and the CMake files name it: relative where the prefix may move.
pc_include=$includedir
cmake_include=$includedir
case $includedir in "$prefix"/*)
    below=${includedir#"$prefix"/}
    pc_include='${prefix}'/$below
    case $cmakedir in "$prefix"/*)
        up=$(echo "${cmakedir#"$prefix"/}" | sed 's|[^/][^/]*|..|g')
        cmake_include='${CMAKE_CURRENT_LIST_DIR}'/$up/$below ;;
    esac ;;
esac

# setting NAME: as given, recorded or, where nothing is built, in the environment
built=${EPCTX_BUILD:-build}
setting() {
    eval "given=\${EPCTX_$1-unset}"
    if [ "$given" = unset ] && [ -e "$built/config" ]; then
        given=$(sed -n "s/^$1=//p" "$built/config")
    elif [ "$given" = unset ]; then eval "given=\${$1:-}"; fi
    printf '%s\n' "$given"
}

headers() {
    libs=$(setting NANOPB_LIBS)
    put 644 epctx.h "$includedir/epctx.h"
    put 644 epctx_npu.h "$includedir/epctx_npu.h"
    for file in $ort_files; do put 644 "$file" "$includedir/epctx_ort/${file##*/}"; done
    fill examples/packaging/epctx.pc.in PREFIX="$prefix" INCLUDE="$pc_include" \
        VERSION="$version" NANOPB_CFLAGS="$(setting NANOPB_CFLAGS)" \
        NANOPB_LIBS="${libs:--lprotobuf-nanopb}" >"$tmp/epctx.pc"
    put 644 "$tmp/epctx.pc" "$pkgconfigdir/epctx.pc"
    fill examples/packaging/epctx-config.cmake.in EPCTX_INCLUDE="$cmake_include" EPCTX_SCOPE= \
        >"$tmp/config"
    put 644 "$tmp/config" "$cmakedir/epctx-config.cmake"
    fill examples/packaging/epctx-config-version.cmake.in VERSION="$version" >"$tmp/version"
    put 644 "$tmp/version" "$cmakedir/epctx-config-version.cmake"
    put 644 README.md "$docdir/README.md"
    put 644 LICENSE "$docdir/LICENSE"
}

tool() {
    completion=examples/epctx/completion
    if [ "$action" = install ]; then
        [ -x "$built/epctx" ] || die "$built/epctx is not built: run make $built/epctx"
        [ -e "$built/config" ] && [ -z "$(find "$built/config" -newer "$built/epctx")" ] ||
            die "$built/epctx is not of the last build: run make $built/epctx"
    fi
    put 755 "$built/epctx" "$bindir/epctx"
    sed "1s/\"epctx\"/\"epctx $version\"/" examples/epctx/epctx.1 >"$tmp/epctx.1"
    put 644 "$tmp/epctx.1" "$mandir/man1/epctx.1"
    put 644 $completion/epctx.bash "$bashcompdir/epctx"
    put 644 $completion/_epctx "$zshcompdir/_epctx"
    put 644 $completion/epctx.fish "$fishcompdir/epctx.fish"
}

action=${1:-}
case $action in install | uninstall) shift ;; *) die "install or uninstall?" ;; esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for part in "${@:-headers}"; do
    case $part in headers | tool) $part ;; *) die "'$part' is neither headers nor tool" ;; esac
done
