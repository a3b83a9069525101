#!/bin/sh
# check_oom.sh SERVE_SIM VRAM RECORDING: a new recording of the program runs out of memory for the same reason, and with the same cure, as the
# committed one; both replay exactly.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" "$scratch/serve.pickle"
"$2" replay --exact "$scratch/serve.pickle" "$3"
# Prints the page of the out-of-memory error, without the time of the event and the folder of the build (which clang names).
page() { "$2" report --check "$1" >"$scratch/page" || [ $? -eq 1 ]; sed -n '/^  Out of memory/,/to spare/p' "$scratch/page" | sed 's/(+[^)]*)//; s,[^ ]*examples/serve_sim,examples/serve_sim,'; }
page "$scratch/serve.pickle" "$2" >"$scratch/today"
page "$3" "$2" >"$scratch/kept"
grep -q 'cure  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True' "$scratch/today"
diff "$scratch/kept" "$scratch/today"
