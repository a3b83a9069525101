#!/bin/sh
# facts.sh VRAM SOURCE_DIR TARGET: `vram report --json` against the facts of all recordings of the shared data folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/unpack.sh" "$2" "$3" || exit $?
exec python3 "$here/check_facts.py" "$1" "$3"
