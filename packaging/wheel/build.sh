#!/usr/bin/env bash
# Makes the wheels: build/packages/vram-*.whl. Usage: packaging/wheel/build.sh [BUILD] (BUILD as for packaging/wasm.sh; VRAM_SOURCES as there)
# Objects are this machine's compiler's; PyPI's ziglang links them with the C library's symbols of glibc 2.28 (it goes to VRAM_SOURCES, too).
set -euo pipefail
cd "$(dirname "$0")/../.."
ZIG_VERSION=0.13.0
build=${1:-build/release}
sources=${VRAM_SOURCES:-build/sources}
packaging/wasm.sh "$build"
sources=$(realpath "$sources")
zig=$sources/ziglang/ziglang/zig
[ -x "$zig" ] || python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$sources/ziglang" "ziglang==$ZIG_VERSION"

mkdir -p build/packages
rm -f build/packages/vram-*.whl
for arch in x86_64; do
    link="python3 $PWD/packaging/wheel/link.py $zig $arch cc"
    cmake -G Ninja -S . -B "build/wheel-$arch" --log-level=WARNING -DVRAM_WERROR=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo -DVRAM_TESTS=OFF \
        -DCMAKE_INSTALL_LIBDIR=lib -DVRAM_BUNDLED="$sources" -DVRAM_VIEWER_PAGE="$(realpath "$build/viewer/viewer.html")" \
        "-DCMAKE_C_LINK_EXECUTABLE=$link <CMAKE_C_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>" \
        "-DCMAKE_C_CREATE_SHARED_LIBRARY=$link <CMAKE_SHARED_LIBRARY_CREATE_C_FLAGS> <LINK_FLAGS> <SONAME_FLAG><TARGET_SONAME> -o <TARGET> <OBJECTS> <LINK_LIBRARIES>"
    cmake --build "build/wheel-$arch" --target shipped
    rm -rf "build/wheel-$arch/prefix"
    cmake --install "build/wheel-$arch" --strip --prefix "build/wheel-$arch/prefix" >/dev/null
    strip -g "build/wheel-$arch/prefix/lib/vram/torch/native/libvram_torch.a"
    packaging/licenses.sh "$sources" zlib xz zstd cjson sqlite >"build/wheel-$arch/LICENSES.txt"
    python3 packaging/wheel/build.py native "build/wheel-$arch/prefix" "manylinux_2_28_$arch" "build/wheel-$arch/LICENSES.txt" build/packages
done
packaging/licenses.sh "$sources" zlib xz zstd cjson sqlite wasi >build/wasi/LICENSES.txt
python3 packaging/wheel/build.py any build/wasi build/wasi/LICENSES.txt build/packages
