#!/bin/sh
# replay_recordings.sh VRAM ARCHIVE WORK_DIR: `vram replay --exact` agrees with every recording that recordings.py made. Exits 77 ("skipped")
# without zstd.
set -eu
vram=$1
archive=$2
work=$3
if ! command -v zstd >/dev/null; then
    echo "no zstd to unpack the recordings: skipped"
    exit 77
fi
rm -rf "$work"
mkdir -p "$work"
zstd -dc "$archive" | tar -x -C "$work"
count=0
for recording in "$work"/*.pickle; do
    "$vram" replay --exact --json "$recording" >"$work/told.json"
    grep -q '"agrees": true' "$work/told.json" && grep -q '"difference_count": 0' "$work/told.json" || { echo "$recording"; exit 1; }
    count=$((count + 1))
done
[ "$count" -ge 12 ]
