#!/bin/sh
# check_decoder.sh DECODER VRAM GUIDE: the program prints what the guide shows, and the snapshot that it saves replays exactly.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" "$scratch/oom.pickle" | tr -s ' \n' ' ' >"$scratch/printed"
tr -s ' \n' ' ' <"$3" | grep -q -F -- "$(cat "$scratch/printed")" || { echo "the guide does not show: $(cat "$scratch/printed")"; exit 1; }
"$2" replay --exact "$scratch/oom.pickle"
