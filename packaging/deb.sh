#!/usr/bin/env bash
# Builds the Debian packages of the tree that git knows, into OUT. Usage: deb.sh [OUT], by default build/deb
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "${1:-$root/build/deb}" && cd "${1:-$root/build/deb}" && pwd)
for tool in dpkg-buildpackage dh; do
    command -v "$tool" >/dev/null || { echo "packaging/deb.sh: $tool is not installed (tools/setup.sh packages installs it)" >&2; exit 1; }
done
version=$(dpkg-parsechangelog -l "$root/packaging/debian/changelog" -S Version)
tree=$out/vram-$version
rm -rf "$tree" "$out"/*.deb
mkdir -p "$tree"
git -C "$root" ls-files -z | (cd "$root" && xargs -0 tar -cf -) | tar -xf - -C "$tree"
cp -r "$root/packaging/debian" "$tree/debian"
# What npm brings for the page was fetched by tools/setup.sh; a package's build fetches nothing.
cp -r "$root/viewer/web/node_modules" "$tree/viewer/web/"
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l "$tree/debian/changelog" -S Timestamp)
export SOURCE_DATE_EPOCH
(cd "$tree" && DEB_BUILD_OPTIONS="parallel=$(nproc) nocheck" dpkg-buildpackage -b -us -uc) >"$out/build.log" 2>&1 ||
    { tail -30 "$out/build.log" >&2; exit 1; }
ls "$out"/*.deb
