#!/usr/bin/env bash
# Assembles a release: the source archive, the Debian packages, the amalgamation, the wheels and the npm package if they were built, recipes
# with their checksum filled in, a list of all parts, and SHA256SUMS. The same commit gives the same bytes.
# Usage: release.sh DIST DEBS AMALGAMATION (HOMEPAGE: the address at which the release will be)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dist=$1 debs=$2 amalgamation=$3
homepage=${HOMEPAGE:-https://example.org/vram}
archive=$(ls "$dist"/vram-*.tar.gz)
version=$(basename "$archive" .tar.gz)
version=${version#vram-}
made=@$(git -C "$root" log -1 --format=%ct)

cp "$debs"/*.deb "$dist"
for package in "$root"/build/packages/*.whl "$root"/build/packages/*.tgz "$root"/build/packages/*.vsix; do
    if [ -e "$package" ]; then cp "$package" "$dist"; fi
done
tar --sort=name --mtime="$made" --owner=0 --group=0 --numeric-owner -cf - -C "$amalgamation/alone" vram.c vram.h -C "$root" LICENSE | gzip -n -9 \
    >"$dist/vram-amalgamation-$version.tgz"
sum=$(sha256sum "$archive" | cut -d' ' -f1)
for recipe in homebrew/vram.rb conda/meta.yaml; do
    sed -e "s|@HOMEPAGE@|$homepage|g; s|@VERSION@|$version|g; s|@SHA256@|$sum|g" "$root/packaging/$recipe" >"$dist/$(basename "$recipe")"
done
rm -f "$dist/SHA256SUMS" "$dist"/*.spdx.json
python3 "$root/packaging/sbom.py" "$root" "$dist" >"$dist.spdx.json"
mv "$dist.spdx.json" "$dist/vram-$version.spdx.json"
(cd "$dist" && sha256sum -- * >../sums && mv ../sums SHA256SUMS)
cat "$dist/SHA256SUMS"
