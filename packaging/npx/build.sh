#!/usr/bin/env bash
# Makes the npm package: build/packages/vram-VERSION.tgz. Usage: packaging/npx/build.sh [BUILD] (as packaging/wasm.sh)
set -euo pipefail
cd "$(dirname "$0")/../.."
packaging/wasm.sh "${1:-build/release}"
version=$(packaging/version.sh)
folder=build/npx
rm -rf "$folder"
mkdir -p "$folder" build/packages
cp packaging/npx/{vram.mjs,paths.mjs,wasi.mjs,README.md} build/wasi/vram.wasm "$folder"
chmod +x "$folder/vram.mjs"
packaging/licenses.sh "${VRAM_SOURCES:-build/sources}" zlib xz zstd cjson sqlite wasi >"$folder/LICENSES.txt"
sed "s/\"version\": \"0.0.0\"/\"version\": \"$version\"/" packaging/npx/package.json >"$folder/package.json"
(cd "$folder" && npm pack --silent --pack-destination ../packages)
