#!/usr/bin/env bash
# code_server.sh FOLDER PACKAGES VRAM [SHOTS]: uses the extension from PACKAGES in code-server, which is Visual Studio Code as a server. If it is missing,
# code-server is installed from npm into FOLDER (330 MB), without running its packages' scripts except the builds of native modules. SHOTS: a folder for
# screenshots. If it cannot be installed, prints what is missing and does nothing.
set -euo pipefail
VERSION=4.96.4
NODE=20 # the one that this version's native modules are made for

skip() { echo "skipped: $*"; exit 0; }
mkdir -p "$1"
here=$(cd "$(dirname "$0")" && pwd)
vsix=$(realpath "$2"/vram-*.vsix) vram=$(realpath "$3") shots=${4:+$(realpath "$4")}
folder=$(realpath "$1")/$VERSION
program=$folder/package/out/node/entry.js
if [ ! -e "$folder/complete" ]; then
    [ "$(node -p 'parseInt(process.versions.node)' 2>/dev/null)" = $NODE ] || skip "no Node $NODE, which code-server $VERSION needs"
    begun=$SECONDS
    rm -rf "$folder" && mkdir "$folder" && cd "$folder"
    npm pack --silent "code-server@$VERSION" >/dev/null || skip "code-server cannot be had from npm"
    tar -xzf ./*.tgz && rm ./*.tgz
    get() { npm install --ignore-scripts --omit=dev --no-audit --no-fund --loglevel=error >&2 || skip "what code-server needs cannot be had from npm"; }
    build() { npm rebuild --loglevel=error "$@" >&2 || skip "the native modules $* cannot be built"; }
    cd package && get && build argon2
    # A package named by its repository is also in the registry.
    cd lib/vscode
    node -e 'const fs = require("fs"), [name] = process.argv.slice(1), lock = JSON.parse(fs.readFileSync(name));
        for (const one of Object.values(lock.packages)) if (one.resolved?.startsWith("git")) { delete one.resolved; delete one.integrity; }
        fs.writeFileSync(name, JSON.stringify(lock));' npm-shrinkwrap.json
    get && build @parcel/watcher @vscode/spdlog node-pty native-watchdog
    ln -s node_modules node_modules.asar
    cd "$here" && touch "$folder/complete"
    echo "code-server installed: $((SECONDS - begun)) s"
fi
exec node "$here/code_server.test.mjs" "$program" "$vsix" "$vram" ${shots:+"$shots"}
