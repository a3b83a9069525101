#!/bin/sh
# run.sh TEST PAGE VRAM SOURCE_DIR RECORDINGS: a test of the page, with the folder of the largest set of recordings, in the browser
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
folder=$(sh "$here/../recordings/sets.sh" "$4" "$5" | tail -n 1)/snapshots
exec node "$1" "$2" "$3" "$folder"
