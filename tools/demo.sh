#!/usr/bin/env bash
# Shows the command's answers about a recording: a report, the reason for running out of memory, the exact replay, and the needs of other
# settings.
# Usage: tools/demo.sh [RECORDING]   (default: the recording of examples/serve_sim.c; VRAM: the command, default the release build's)
set -euo pipefail
cd "$(dirname "$0")/.."
recording=${1:-examples/recordings/oom.pickle.gz}
vram=${VRAM:-build/release/cli/vram}
if [ ! -x "$vram" ]; then
    echo "demo: $vram is not there: run make first" >&2
    exit 1
fi

# show ARGUMENT...: prints the command and runs it. A finding (exit code 1) is a result, not a failure of the demo.
show() {
    local code=0
    printf '\n$ vram'
    printf ' %q' "$@"
    printf '\n'
    "$vram" "$@" || code=$?
    [ "$code" -le 1 ] || exit "$code"
}

show report "$recording"
show replay --exact "$recording"
show tune "$recording"
