#!/bin/sh
# run_shared.sh GOLDEN SOURCE_DIR WORK_DIR NAME: runs the golden traces NAME.1 and NAME.2 of the shared data folder
# ($VRAM_SHARED, or `shared` next to the source tree). Exits 77 ("skipped") where that folder is not there.
set -eu
golden=$1
shared=${VRAM_SHARED:-$2/../shared}
work=$3
name=$4
archive=$shared/data/golden.tar.zst
if [ ! -f "$archive" ]; then
    echo "$name: no golden traces here ($archive): skipped"
    exit 77
fi
if ! command -v zstd >/dev/null; then
    echo "$name: no zstd to unpack the golden traces: skipped"
    exit 77
fi
mkdir -p "$work/$name"
zstd -dc "$archive" | tar -x -C "$work/$name"
found=$(find "$work/$name" -name "$name.[0-9].txt" | sort)
if [ -z "$found" ]; then
    echo "$name: not among the golden traces: skipped"
    exit 77
fi
# shellcheck disable=SC2086 # the names hold no spaces
exec "$golden" $found
