#!/bin/sh
# check.sh TRAIN_SIM VRAM RECORDING: what the program writes today replays exactly, and so does the recording that is kept.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" > "$scratch/train.json"
"$2" replay --exact "$scratch/train.json" "$3"
