#!/usr/bin/env bash
# Prints the licenses of a package's contents as one text. Usage: packaging/licenses.sh SOURCES NAME...
# (SOURCES: the folder of packaging/sources.sh; NAME: zlib xz zstd cjson sqlite, wasi for the C library of WebAssembly)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
sources=$1
shift
part() { printf '\n===== %s =====\n\n' "$1"; }
part vram
cat "$here/LICENSE"
for name in "$@"; do
    part "$name"
    case "$name" in
    wasi) cat /usr/share/doc/wasi-libc/copyright ;;
    sqlite) echo "SQLite is in the public domain." ;;
    *) cat "$sources/$name/debian/copyright" ;;
    esac
done
