#!/bin/sh
# Builds the site with MkDocs in a separate environment. If a folder for them is given, also takes pictures of it. Usage: site.sh
# ENVIRONMENT VRAM OUT [SHOTS]
set -eu
environment=$1 vram=$2 out=$3 shots=${4:-}
if [ ! -x "$environment/bin/mkdocs" ]; then
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check 'mkdocs-material>=9.5,<10'
fi
"$environment/bin/python" "$(dirname "$0")/build.py" "$vram" "$out"
[ -z "$shots" ] || node "$(dirname "$0")/shots.mjs" "$out/html" "$shots"
