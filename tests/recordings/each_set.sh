#!/bin/sh
# each_set.sh SOURCE_DIR TARGET COMMAND...: runs COMMAND FOLDER for each set of recordings (sets.sh). Fails when it fails for one.
set -eu
sets=$(sh "$(dirname "$0")/sets.sh" "$1" "$2")
shift 2
failed=0
for set in $sets; do
    echo "recordings of $set"
    "$@" "$set" || failed=1
done
exit "$failed"
