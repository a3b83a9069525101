#!/bin/sh
# recordings.sh VRAM SOURCE_DIR TARGET: the reports of the shared recordings that ran out of memory; skipped (77) where they are absent.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../recordings/unpack.sh" "$2" "$3" || exit $?
exec python3 "$here/check_recordings.py" "$1" "$3"
