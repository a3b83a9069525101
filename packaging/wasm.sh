#!/usr/bin/env bash
# Compiles the command to WebAssembly: build/wasi/vram.wasm.
# Usage: packaging/wasm.sh [BUILD]   (BUILD, default build/release, has the viewer's page; the sources of others go to VRAM_SOURCES,
# default build/sources)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
sources=${VRAM_SOURCES:-build/sources}
packaging/sources.sh "$sources"
cmake -G Ninja -S . -B build/wasi --log-level=WARNING --no-warn-unused-cli -DCMAKE_TOOLCHAIN_FILE=packaging/cmake/wasi.cmake -DCMAKE_BUILD_TYPE=Release \
    -DVRAM_BUNDLED="$(realpath "$sources")" -DVRAM_VIEWER_PAGE="$(realpath "$build/viewer/viewer.html")"
cmake --build build/wasi
