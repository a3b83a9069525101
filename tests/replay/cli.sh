#!/bin/sh
# cli.sh VRAM RECORDING: tests exit codes and output of `vram replay`.
set -eu
vram=$1
recording=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# expect CODE PATTERN ARGUMENT...: checks the exit code, and a line of standard output or standard error.
expect() {
    wanted=$1 pattern=$2
    shift 2
    code=0
    "$vram" replay "$@" > "$scratch/out" 2>&1 || code=$?
    if [ "$code" -ne "$wanted" ] || ! grep -q -- "$pattern" "$scratch/out"; then
        echo "vram replay $*: exit code $code, not $wanted, or no '$pattern' in:"
        cat "$scratch/out"
        exit 1
    fi
}

expect 0 'equal' --exact "$recording"
expect 0 '"agrees": true' --exact --json "$recording"
expect 0 'expandable_segments:True' --conf '' --conf expandable_segments:True "$recording"
expect 0 '"start": "recorded"' --json --start recorded "$recording"
expect 1 'OUT OF MEMORY' --memory 4GiB "$recording"
expect 1 '"requested_bytes"' --json --memory 4GiB "$recording"
expect 2 'unknown option' --conf expandable:True "$recording"
expect 2 'one --conf' --exact --conf '' --conf '' "$recording"
expect 0 "defaults, not the recording's own" --exact --conf '' "$recording"
expect 1 '"recorded_conf": false' --exact --json --conf expandable_segments:True "$recording"
expect 0 '"inferred_conf": false' --exact --json "$recording"
expect 0 'defaults' --device 0 --conf '' "$recording"
expect 2 'no device 7' --device 7 "$recording"
expect 2 'no device 4294967296' --device 4294967296 "$recording"
expect 2 'no --device' --exact --device 0 "$recording"
expect 2 'needs --exact' --placements "$scratch/p" "$recording"
expect 2 'recording' --exact
expect 3 'nowhere' --exact "$scratch/nowhere"
echo '{"segments": 5}' > "$scratch/bad.json"
expect 3 'bad.json' --exact "$scratch/bad.json"

# The first block (on the third line) is moved: the history contradicts it, which the exit code shows.
gzip -dc "$recording" | sed '3s/"address":[0-9]*/"address":512/' > "$scratch/moved.json"
expect 1 'contradiction' --exact "$scratch/moved.json"

# Placements equal those of the recording.
expect 0 'equal' --exact --placements "$scratch/placements.csv" "$recording"
grep -c '"action":"alloc"' "$scratch/moved.json" > "$scratch/allocations"
[ "$(($(wc -l < "$scratch/placements.csv") - 1))" -eq "$(cat "$scratch/allocations")" ]
head -1 "$scratch/placements.csv" | grep -q '^device,event_index,address$'
