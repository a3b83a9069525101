#!/bin/sh
# surfaces.sh VRAM SOURCE_DIR TARGET: the example, and all recordings of the shared data folder where it is present.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
example="$2/examples/recordings/oom.pickle.gz"
if sh "$here/../recordings/unpack.sh" "$2" "$3"; then
    exec python3 "$here/check_surfaces.py" "$1" "$example" "$3/snapshots"
fi
exec python3 "$here/check_surfaces.py" "$1" "$example"
