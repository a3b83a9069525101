#!/usr/bin/env bash
# Runs every program of tests/bench/ in the shipped build. Skips programs that need arguments, which exit with code 2. Usage: tools/bench.sh
set -euo pipefail
cd "$(dirname "$0")/.."
found=0
for program in build/release/bench/bench_*; do
    if [ ! -x "$program" ] || [ ! -f "$program" ]; then continue; fi
    found=1
    echo "=== $(basename "$program")"
    code=0
    "$program" || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 2 ] || exit "$code"
done
[ "$found" -eq 1 ] || { echo "no bench program was built" >&2; exit 1; }
