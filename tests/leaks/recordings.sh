#!/bin/sh
# recordings.sh VRAM SOURCE_DIR TARGET: what `vram leaks` says of the shared recordings; skipped (77) where they are absent.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../recordings/unpack.sh" "$2" "$3" || exit $?
exec python3 "$here/check_leaks.py" "$1" "$3/snapshots" "${VRAM_SHARED:-$2/../shared}/data/cases"
