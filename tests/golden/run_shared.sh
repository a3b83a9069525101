#!/bin/sh
# run_shared.sh GOLDEN SOURCE_DIR WORK_DIR: runs the golden traces of the shared data folder ($VRAM_SHARED, or `shared` next to the source tree).
# Exits 77 ("skipped") without that folder.
set -eu
golden=$1
archive=${VRAM_SHARED:-$2/../shared}/data/golden.tar.zst
work=$3
if [ ! -f "$archive" ]; then
    echo "no golden traces here ($archive): skipped"
    exit 77
fi
rm -rf "$work"
mkdir -p "$work"
zstd -dc "$archive" | tar -x -C "$work"
[ "$(find "$work" -name '*.txt' | wc -l)" -eq 30 ]
find "$work" -name '*.txt' | sort | xargs "$golden"
