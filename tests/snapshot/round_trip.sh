#!/bin/sh
# round_trip.sh REWRITE SOURCE_DIR TARGET: every recording of the shared data folder written as every format and read again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../recordings/unpack.sh" "$2" "$3" || exit $?
exec python3 "$here/round_trip.py" "$1" "$3"/snapshots/*
