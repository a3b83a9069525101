#!/bin/sh
# sets.sh SOURCE_DIR TARGET: unpacks the sets of real recordings, once, and prints a folder for each: TARGET_own_CHECKSUM, of this repository's own
# programs (own.tar.zst, made by make_own.py), and TARGET, of the shared data folder if present ($VRAM_SHARED, or `shared` next to the
# source tree). A set has snapshots/ and facts/. Several tests may call this at the same time.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
shared=${VRAM_SHARED:-$1/../shared}/data

# unpack TARGET COMMAND...: COMMAND FOLDER fills a new folder, which the first caller moves to TARGET.
unpack() {
    target=$1
    shift
    if [ ! -d "$target/snapshots" ]; then
        mkdir -p "$(dirname "$target")"
        scratch=$(mktemp -d "$target.XXXXXX")
        "$@" "$scratch" >/dev/null
        mv -T "$scratch" "$target" 2>/dev/null || rm -rf "$scratch"
    fi
    echo "$target"
}
own() { zstd -dc --long=27 "$here/own.tar.zst" | tar -x -C "$1"; }

unpack "$2_own_$(cksum <"$here/own.tar.zst" | cut -d " " -f 1)" own
[ ! -f "$shared/unpack.sh" ] || unpack "$2" sh "$shared/unpack.sh"
