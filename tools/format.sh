#!/usr/bin/env bash
# Formats every C source of the project. With --check, fails and names each place that is not formatted. Usage: tools/format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run --Werror)
folders=()
for folder in allocator recordings simulator replay cli tests examples adapters viewer; do
    [ -d "$folder" ] && folders+=("$folder")
done
find "${folders[@]}" \( -name '*.c' -o -name '*.h' \) -not -path '*/node_modules/*' -print0 | xargs -0 -r clang-format "${mode[@]}"
