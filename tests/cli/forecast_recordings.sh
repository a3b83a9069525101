#!/bin/sh
# forecast_recordings.sh VRAM SOURCE_DIR TARGET: forecasts of real runs from others of the same program; skipped (77) where they are absent.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sh "$here/../recordings/unpack.sh" "$2" "$3" || exit $?
exec python3 "$here/check_forecast.py" "$1" "$3/snapshots"
