#!/usr/bin/env bash
# Runs every program of bench/ that needs no argument, in the shipped build. Usage: tools/bench.sh
set -euo pipefail
cd "$(dirname "$0")/.."
found=0
for program in build/release/bench/bench_*; do
    if [ ! -x "$program" ] || [ ! -f "$program" ]; then continue; fi
    found=1
    echo "=== $(basename "$program")"
    "$program"
done
[ "$found" -eq 1 ] || { echo "no bench program was built" >&2; exit 1; }
