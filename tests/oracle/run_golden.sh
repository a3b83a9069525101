#!/bin/sh
# run_golden.sh ORACLE_PLAY ARCHIVE WORK_DIR [wrong]: plays the golden traces of an archive. `wrong` first changes an address, an event and a
# counter, each of which must be detected. Exits 77 ("skipped") without zstd.
set -eu
play=$1
archive=$2
work=$3
if ! command -v zstd >/dev/null; then
    echo "no zstd to unpack the golden traces: skipped"
    exit 77
fi
rm -rf "$work"
mkdir -p "$work"
zstd -dc "$archive" | tar -x -C "$work"
if [ "${4:-}" != wrong ]; then
    find "$work" -name '*.torch' | sort | xargs "$play"
    exit
fi
trace=$(find "$work" -name 'streams.*.torch' | sort | head -n 1)
"$play" "$trace"
for change in 's/^\(malloc 20 .*\) = .*/\1 = 1000/' 's/^event 0 alloc \([0-9a-f]*\)/event 0 alloc 1\1/' 's/num_device_alloc=/num_device_alloc=1/'; do
    sed "$change" "$trace" >"$work/wrong.torch"
    if "$play" "$work/wrong.torch"; then
        echo "not found: $change"
        exit 1
    fi
done
