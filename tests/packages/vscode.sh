#!/bin/sh
# vscode.sh SOURCE_DIR VIEWER_HTML NODE: packs the extension for Visual Studio Code twice, checks that both are byte-identical, unpacks it and uses it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$1"
for time in first second; do python3 packaging/vscode/build.py "$2" "$folder/$time"; done
cmp "$folder"/first/*.vsix "$folder"/second/*.vsix
python3 -m zipfile -e "$folder"/first/*.vsix "$folder/unpacked"
"$3" tests/packages/vscode.test.mjs "$folder/unpacked/extension" examples/recordings/oom.pickle.gz
