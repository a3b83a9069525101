#!/bin/sh
# unpack.sh SOURCE_DIR TARGET: unpacks the recordings of the shared data folder ($VRAM_SHARED, or `shared` next to the source tree)
# into TARGET, once, however many tests ask at the same time. Exits 77 ("skipped") where that folder is not there.
set -eu
shared=${VRAM_SHARED:-$1/../shared}
target=$2
if [ -d "$target/snapshots" ]; then exit 0; fi
if [ ! -f "$shared/data/unpack.sh" ]; then
    echo "no recordings here ($shared/data): skipped"
    exit 77
fi
if ! command -v zstd >/dev/null; then
    echo "no zstd to unpack the recordings: skipped"
    exit 77
fi
mkdir -p "$(dirname "$target")"
scratch=$(mktemp -d "$target.XXXXXX")
sh "$shared/data/unpack.sh" "$scratch" >/dev/null
# Whoever is first wins; the others throw theirs away.
mv -T "$scratch" "$target" 2>/dev/null || rm -rf "$scratch"
[ -d "$target/snapshots" ]
