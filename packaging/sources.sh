#!/usr/bin/env bash
# Downloads the sources of the command's libraries, for builds that cannot use the installed ones: WebAssembly, another processor, an older
# C library. They are Debian's own sources (apt-get source, of the installed release, with its signatures checked), and SQLite in one file
# from npm.
# Usage: packaging/sources.sh FOLDER   (folders zlib xz zstd cjson sqlite in it; what is there already is left alone)
set -euo pipefail

SQLITE_PACKAGE=better-sqlite3@12.11.1
# SHA-512 of the package, base64.
SQLITE_HASH=dq9AtApgg5PGFtBzPFSBl3HZQjHok5gaQCM6zh2Yk0aSmDCs1CbnVI8/HgASQkNKsWFpseIO9beg5xxpYhbIfA==

mkdir -p "$1"
folder=$(cd "$1" && pwd)
if [ -e "$folder/complete" ]; then exit 0; fi
state=$folder/apt
rm -rf "$folder"/{zlib,xz,zstd,cjson,sqlite,apt}
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/src"

# Debian's package servers have the sources too.
apt-get indextargets --format '$(LABEL)|$(SITE)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' |
    while IFS='|' read -r label site release component; do
        case "$label" in
        Debian*) echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $release $component" ;;
        esac
    done | sort -u >"$state/sources.list"
[ -s "$state/sources.list" ] || {
    echo "apt knows no place with Debian's packages; the sources of zlib, xz-utils, libzstd and cjson are needed in $folder" >&2
    exit 1
}
: >"$state/status"
apt=(apt-get -q -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$state/lists"
    -o Dir::Cache="$state/cache" -o Dir::State::status="$state/status" -o APT::Sandbox::User="$(id -un)")
"${apt[@]}" update >"$state/log"
(cd "$state/src" && "${apt[@]}" source zlib xz-utils libzstd cjson >>"$state/log" 2>&1) || {
    tail -5 "$state/log" >&2
    exit 1
}
mv "$state"/src/zlib-*/ "$folder/zlib"
mv "$state"/src/xz-utils-*/ "$folder/xz"
mv "$state"/src/libzstd-*/ "$folder/zstd"
mv "$state"/src/cjson-*/ "$folder/cjson"

(cd "$state" && npm pack --silent "$SQLITE_PACKAGE" >/dev/null)
[ "$(openssl dgst -sha512 -binary "$state"/better-sqlite3-*.tgz | base64 -w0)" = "$SQLITE_HASH" ] || {
    echo "$SQLITE_PACKAGE is not the package that is known here by its hash" >&2
    exit 1
}
(cd "$state" && tar xzf better-sqlite3-*.tgz package/deps/sqlite3)
mv "$state/package/deps/sqlite3" "$folder/sqlite"
rm -rf "$state"
touch "$folder/complete"
