#!/bin/sh
# roundtrip.sh PROGRAM SOURCE_DIR TARGET: every recording of the shared data folder through a .vram file.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../recordings/unpack.sh" "$2" "$3" || exit $?
exec "$1" "$3"/snapshots/*
