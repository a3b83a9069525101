#!/bin/sh
# Builds the crates vram-sys and vram in a separate folder and runs their tests on the simulated driver; 77 without cargo.
# Usage: rust.sh ROOT BUILD WORK
set -eu
root=$1 build=$2 work=$3
command -v cargo >/dev/null || { echo "skipped: there is no cargo"; exit 77; }
if command -v clang >/dev/null; then python3 "$root/tools/rust_bindings.py" --check; fi
rm -rf "$work/rust"
mkdir -p "$work"
cp -r "$root/adapters/bindings/rust" "$work/rust"
cd "$work/rust"
export CARGO_TARGET_DIR="$work/target" VRAM_LIB_DIR="$build" LD_LIBRARY_PATH="$build" RUSTFLAGS="-D warnings"
cargo test --offline --locked -q 2>"$work/log" || { cat "$work/log"; exit 1; }

# If the library is missing, the message names the folders searched.
said() { grep -q -F "$1" "$work/log" || { cat "$work/log"; echo "not said: $1"; exit 1; }; }
! VRAM_LIB_DIR=/absent cargo build --offline --locked 2>"$work/log"
said "VRAM_LIB_DIR is /absent, where there is no libvram.so"
env -u VRAM_LIB_DIR PKG_CONFIG_LIBDIR=/absent PKG_CONFIG_PATH=/absent cargo build --offline --locked 2>"$work/log" || true
said "VRAM_LIB_DIR is not set, and pkg-config"
