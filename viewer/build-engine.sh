#!/usr/bin/env bash
# Compiles the engine to WebAssembly. Usage: build-engine.sh OUTPUT.wasm [folder for objects]
# Needs clang, lld, wasi-libc and libclang-rt-14-dev-wasm32 (tools/setup.sh installs them).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
output=$1
objects=${2:-$(dirname "$output")/engine-objects}
mkdir -p "$objects"

sources=("$root"/viewer/engine/*.c)
# Whole rooms, with their folders; of the driver what the page can use.
for room in base model config snapshot analyze replay present explore core driver/cuda driver/sim os/wasm; do
    while IFS= read -r source; do sources+=("$source"); done < <(find "$root/src/$room" -name '*.c' | sort)
done
sources+=("$root"/src/driver/*.c)
# Of the history only what reads the recording file. The clock is the C library's.
sources+=("$root"/src/history/log?*.c "$root/src/os/posix/clock.c")

flags=(--target=wasm32-wasi -std=c11 -O2 -DVRAM_CHECK=0 -mbulk-memory -ffunction-sections -fdata-sections
    -I"$root/src" -I"$root/include" -Wall -Wextra)
compile() {
    local source=$1 object=$2
    [ "$object" -nt "$source" ] && [ -f "$object.d" ] && ! newer_header "$object" && return
    clang "${flags[@]}" -MMD -MF "$object.d" -c "$source" -o "$object"
}
newer_header() {
    local header
    for header in $(sed -e 's/^[^:]*://' -e 's/\\$//' "$1.d"); do
        [ "$header" -nt "$1" ] && return 0
    done
    return 1
}

linked=()
for source in "${sources[@]}"; do
    object=${source#"$root"/}
    object="$objects/${object//\//_}.o"
    compile "$source" "$object"
    linked+=("$object")
done
clang --target=wasm32-wasi -mexec-model=reactor -O2 -o "$output" "${linked[@]}" \
    -Wl,--gc-sections -Wl,--strip-all -Wl,--max-memory=4294967296 -Wl,-z,stack-size=1048576 -lm
