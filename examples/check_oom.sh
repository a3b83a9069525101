#!/bin/sh
# check_oom.sh SERVE_SIM VRAM RECORDING: what the program writes today runs out of memory for the reason, and with the cure, that the kept
# recording has; both replay exactly.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" "$scratch/serve.pickle"
"$2" replay --exact "$scratch/serve.pickle" "$3"
# The page of the out of memory, without the time of the event and the folder in which the program was built (clang names it).
page() { "$2" report --check "$1" >"$scratch/page" || [ $? -eq 1 ]; sed -n '/^  Out of memory/,/room left/p' "$scratch/page" | sed 's/(+[^)]*)//; s,[^ ]*examples/serve_sim,examples/serve_sim,'; }
page "$scratch/serve.pickle" "$2" >"$scratch/today"
page "$3" "$2" >"$scratch/kept"
grep -q 'cure  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True' "$scratch/today"
diff "$scratch/kept" "$scratch/today"
