#!/bin/sh
# check.sh TRAIN_SIM VRAM RECORDING: a new recording of the program replays exactly, and so does the committed one.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$1" > "$scratch/train.json"
"$2" replay --exact "$scratch/train.json" "$3"
