#!/bin/sh
# compare.sh DUMP_MODEL SOURCE_DIR TARGET: our readers against Python's on every recording of the shared data folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../recordings/unpack.sh" "$2" "$3" || exit $?
exec python3 "$here/compare_readers.py" "$1" "$3"/snapshots/*
