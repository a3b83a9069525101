#!/bin/sh
# run.sh TEST PAGE VRAM SOURCE_DIR RECORDINGS: runs a test of the page, with a folder of recordings ("" if a test needs the shared ones and they are missing), in the browser
# that VRAM_TEST_BROWSER names (chromium or firefox). Exits 77 ("skipped") without that browser or the page's node modules.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
found=
case ${VRAM_TEST_BROWSER:-chromium} in
    firefox) browsers="firefox-esr firefox" ;;
    *) browsers="chromium chromium-browser google-chrome" ;;
esac
for browser in $browsers; do
    command -v "$browser" >/dev/null && found=yes
done
if [ -z "$found" ] || [ ! -d "$4/viewer/web/node_modules/playwright-core" ]; then
    echo "no ${VRAM_TEST_BROWSER:-chromium} or no playwright-core here: skipped"
    exit 77
fi
# `recordings` opens every recording of a set: the committed one in Chromium, other people's in Firefox, at night. Other tests look for single ones.
sets=$(sh "$here/../recordings/sets.sh" "$4" "$5")
case $1/${VRAM_TEST_BROWSER:-chromium} in
    */recordings.test.mjs/chromium) folder=$(echo "$sets" | head -n 1)/snapshots ;;
    */recordings.test.mjs/*) folder=$(echo "$sets" | tail -n 1)/snapshots ;;
    *) folder=$(echo "$sets" | sed -n '2s/$/\/snapshots/p') ;;
esac
exec node "$1" "$2" "$3" "$folder"
