#!/bin/sh
# Builds another project that includes vram, with FetchContent from this checkout. Usage: fetched.sh CMAKE SOURCE CC OUT
set -eu
cmake=$1 source=$2 cc=$3 out=$4
rm -rf "$out"
"$cmake" -S "$(dirname "$0")/fetched" -B "$out" -G Ninja -DVRAM_SOURCE="$source" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug \
    -DFETCHCONTENT_FULLY_DISCONNECTED=ON >/dev/null
"$cmake" --build "$out" >/dev/null
"$out/fetched"
# The fetched project adds no tools, tests or installation rules, and no library that the project did not ask for.
for name in vram cli tests libvram.so; do
    test ! -e "$out/_deps/vram-build/$name" || { echo "built, and not asked for: $name"; exit 1; }
done
if "$cmake" --install "$out" --prefix "$out/installed" | grep -q vram; then
    echo "it installs files of vram"
    exit 1
fi
