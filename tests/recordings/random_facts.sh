#!/bin/sh
# random_facts.sh VRAM SOURCE_DIR COUNT [SEED]: random recordings through the reference program of the shared data folder and the report.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/random_facts.py" "$1" "${VRAM_SHARED:-$2/../shared}/data/replay_reference.py" "$3" "${4:-1}"
