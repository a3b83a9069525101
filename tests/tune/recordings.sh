#!/bin/sh
# recordings.sh VRAM SOURCE_DIR TARGET: tunes all recordings of the shared data folder; skipped (77) where it is absent.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../recordings/unpack.sh" "$2" "$3" || exit $?
exec python3 "$here/check_recordings.py" "$1" "$3/snapshots"
