#!/usr/bin/env bash
# Builds the Debian packages of a release's archive. Usage: deb.sh ARCHIVE OUT
set -euo pipefail
packaging=$(cd "$(dirname "$0")" && pwd)
archive=$(realpath "$1")
out=$(mkdir -p "$2" && cd "$2" && pwd)
for tool in dpkg-buildpackage dh; do
    command -v "$tool" >/dev/null || { echo "packaging/deb.sh: $tool is not installed; tools/setup.sh packages installs it" >&2; exit 1; }
done
rm -rf "$out/tree" "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
mkdir "$out/tree"
tar -xf "$archive" -C "$out/tree" --strip-components=1
cp -r "$packaging/debian" "$out/tree/debian"
SOURCE_DATE_EPOCH=$(stat -c %Y "$out/tree/CMakeLists.txt")
export SOURCE_DATE_EPOCH
export CCACHE_BASEDIR= # as in wheel/build.sh
(cd "$out/tree" && DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage -b -us -uc) >"$out/build.log" 2>&1 || { tail -30 "$out/build.log" >&2; exit 1; }
rm -rf "$out/tree"
ls "$out"/*.deb
