#!/usr/bin/env bash
# Makes the archive of a release, vram-VERSION.tar.gz, from the files in git and the built page, so that building it needs neither
# WebAssembly nor npm. The same commit gives the same bytes.
# Usage: archive.sh PAGE OUT (PAGE: build/release/viewer/viewer.html)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
page=$1 out=$2
version=$("$root/packaging/version.sh")
made=$(git -C "$root" log -1 --format=%ct)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$out" "$tree/vram-$version"
git -C "$root" archive HEAD | tar -xf - -C "$tree/vram-$version"
mkdir "$tree/vram-$version/viewer/ready"
cp "$page" "$tree/vram-$version/viewer/ready/viewer.html"
tar --sort=name --mtime="@$made" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -cf - -C "$tree" "vram-$version" | gzip -n -9 \
    >"$out/vram-$version.tar.gz"
echo "$out/vram-$version.tar.gz"
