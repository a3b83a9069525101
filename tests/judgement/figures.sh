#!/bin/sh
# figures.sh VRAM SOURCE_DIR TARGET: runs figures.py on recordings of this repository, some made ones, and those of the shared folder if present.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
made="made:causes.a_fraction made:causes.another_process made:causes.pinned_all made:causes.pool_of_a_graph made:advice.in_c made:advice.waiting
  made:advice.expanded_in_pieces made:advice.whole_program_under_a_limit made:advice.side_streams"
folders="$2/examples/recordings $2/tests/explain/recordings $2/tests/judgement/recordings"
for set in $(sh "$here/../recordings/sets.sh" "$2" "$3"); do folders="$folders $set/snapshots"; done
cases=${VRAM_SHARED:-$2/../shared}/data/cases
[ ! -d "$cases" ] || folders="$folders $cases"
# shellcheck disable=SC2086 # lists of words
exec python3 "$here/figures.py" "$1" $folders $made
