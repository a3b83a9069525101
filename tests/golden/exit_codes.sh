#!/bin/sh
# exit_codes.sh GOLDEN DATA_DIR: tests the runner's exit status.
set -u
golden=$1
data=$2
failed=0
expect() {
    wanted=$1
    shift
    "$golden" "$@" >/dev/null 2>&1
    got=$?
    if [ "$got" -ne "$wanted" ]; then
        echo "golden $*: expected exit status $wanted, got $got"
        failed=1
    fi
}
expect 0 "$data/default.txt"
expect 1 "$data/wrong_number.txt"
expect 1 "$data/wrong_address.txt"
expect 1 "$data/wrong_map.txt"
expect 1 "$data/wrong_peaks.txt"
expect 1 "$data/wrong_driver.txt"
expect 1 "$data/default.txt" "$data/wrong_number.txt"
expect 2
expect 3 "$data/bad_word.txt"
expect 3 "$data/bad_answer.txt"
expect 3 "$data/no_such_file.txt"
expect 0 "$data/capture.txt"
expect 0 "$data/default.txt" "$data/capture.txt"
exit $failed
