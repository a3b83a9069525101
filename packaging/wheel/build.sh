#!/usr/bin/env bash
# Makes the wheels: build/packages/vram-*.whl. Usage: packaging/wheel/build.sh [BUILD] (BUILD as for packaging/wasm.sh; VRAM_SOURCES as there)
# This machine's compiler compiles; PyPI's ziglang, which goes to VRAM_SOURCES, too, links with the symbols of glibc 2.28.
# VRAM_WHEELS=aarch64: only that wheel, with Debian's cross compiler (tools/setup.sh arm64).
set -euo pipefail
cd "$(dirname "$0")/../.."
ZIG_VERSION=0.13.0
export CCACHE_BASEDIR=  # otherwise ccache makes paths relative to the build, and two builds of one commit would differ
build=${1:-build/release}
sources=${VRAM_SOURCES:-build/sources}
if [ -n "${VRAM_WHEELS:-}" ]; then packaging/sources.sh "$sources"; else packaging/wasm.sh "$build"; fi
sources=$(realpath "$sources")
zig=$sources/ziglang/ziglang/zig
[ -x "$zig" ] || python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$sources/ziglang" "ziglang==$ZIG_VERSION"

mkdir -p build/packages
[ -n "${VRAM_WHEELS:-}" ] || rm -f build/packages/vram-*.whl
own=$(uname -m)
for arch in ${VRAM_WHEELS:-x86_64}; do
    tools=() prefix=
    if [ "$arch" != "$own" ]; then
        prefix=$arch-linux-gnu-
        tools=("-DCMAKE_TOOLCHAIN_FILE=$PWD/packaging/cmake/arm64.cmake")
        if [ "$arch" != aarch64 ] || ! command -v "${prefix}gcc" >/dev/null; then
            echo "no wheel for $arch: there is no ${prefix}gcc (tools/setup.sh arm64)" >&2
            continue
        fi
    fi
    # Assertions name files by their paths in the tree, wherever the tree is.
    maps="-fmacro-prefix-map=$sources/= -fmacro-prefix-map=$PWD/="
    link="python3 $PWD/packaging/wheel/link.py $zig $arch cc <CMAKE_C_COMPILER>"
    cmake -G Ninja -S . -B "build/wheel-$arch" ${tools[@]+"${tools[@]}"} --log-level=WARNING -DVRAM_WERROR=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo -DVRAM_TESTS=OFF \
        "-DCMAKE_C_FLAGS=$maps" "-DCMAKE_CXX_FLAGS=$maps" -DCMAKE_INSTALL_LIBDIR=lib -DVRAM_BUNDLED="$sources" -DVRAM_VIEWER_PAGE="$(realpath "$build/viewer/viewer.html")" \
        "-DCMAKE_C_LINK_EXECUTABLE=$link <CMAKE_C_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>" \
        "-DCMAKE_C_CREATE_SHARED_LIBRARY=$link <CMAKE_SHARED_LIBRARY_CREATE_C_FLAGS> <LINK_FLAGS> <SONAME_FLAG><TARGET_SONAME> -o <TARGET> <OBJECTS> <LINK_LIBRARIES>"
    cmake --build "build/wheel-$arch" --target shipped
    rm -rf "build/wheel-$arch/prefix"
    cmake --install "build/wheel-$arch" --strip --prefix "build/wheel-$arch/prefix" >/dev/null
    "${prefix}strip" -g "build/wheel-$arch/prefix/lib/vram/torch/native/libvram_torch.a"
    packaging/licenses.sh "$sources" zlib xz zstd cjson sqlite >"build/wheel-$arch/LICENSES.txt"
    python3 packaging/wheel/build.py native "build/wheel-$arch/prefix" "manylinux_2_28_$arch" "build/wheel-$arch/LICENSES.txt" build/packages
done
if [ -n "${VRAM_WHEELS:-}" ]; then exit 0; fi
packaging/licenses.sh "$sources" zlib xz zstd cjson sqlite wasi >build/wasi/LICENSES.txt
python3 packaging/wheel/build.py any build/wasi build/wasi/LICENSES.txt build/packages
