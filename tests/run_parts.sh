#!/bin/sh
# run_parts.sh COMMAND...: runs the parts of one test, each COMMAND a string for the shell. A part ends with 77 if it has nothing to run. The test
# fails if a part fails, and is skipped (77) if every part was.
skipped=0
failed=0
for part; do
    sh -c "$part"
    case $? in
        0) ;;
        77) skipped=$((skipped + 1)) ;;
        *) failed=1 ;;
    esac
done
[ "$failed" -eq 0 ] || exit 1
[ "$skipped" -lt $# ] || exit 77
