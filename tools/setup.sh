#!/usr/bin/env bash
# Installs the Debian 12 packages that a part of the project needs. Installs only missing ones, so it also works offline if all are present,
# and without root if a compiler and CMake are present. Names the packages that cannot be installed; the build leaves out the parts that
# need them.
# Usage: tools/setup.sh [build|viewer|test|real|bench|packages|arm64|prove|mutate]   (default: build)
set -euo pipefail
need=${1:-build}

# A C compiler with its headers; ninja and cmake for the build, and make to start it.
packages=(make gcc libc6-dev binutils cmake ninja-build)
# The command reads compressed recordings, and JSON from agents.
packages+=(libzstd-dev zlib1g-dev liblzma-dev libsqlite3-dev libcjson-dev)
# For lines and inlined functions in call stacks, at run time.
packages+=(libdw1)

# The viewer's page: its engine is compiled to WebAssembly and made smaller, and node assembles the rest. A newer node from elsewhere works
# too.
viewer() {
    packages+=(clang lld binaryen wasi-libc libclang-rt-14-dev-wasm32)
    command -v node >/dev/null && command -v npm >/dev/null || packages+=(nodejs npm)
}

# Unit tests, scripts, packed test data, sanitizers and fuzzing, format, memory checks; the C++ test of call stacks; pkg-config for the
# install test. Two browsers test the page, shells the completions. check_arguments.py parses with clang; the compiler's headers come with
# it.
tests() {
    viewer
    packages+=(git libcmocka-dev python3 sqlite3 tar zstd libclang-rt-14-dev clang-format valgrind g++ pkg-config)
    packages+=(chromium firefox-esr fonts-dejavu-core bash zsh fish python3-clang-14)
}

case "$need" in
build) ;;
viewer) viewer ;;
test | mutate) tests ;;
# Environments of real programs. torch.compile and Triton call a C++ compiler.
real) tests && packages+=(python3-venv python3-pip python3-dev) ;;
# Packages for other systems: Debian's sources, and environments in which the results are tried.
packages) tests && packages+=(dpkg-dev llvm python3-venv python3-pip debhelper debootstrap ruby rubocop python3-yaml musl-tools curl) ;;
# Another processor: its compilers and C library, an emulator, and a Debian for it.
arm64) tests && packages+=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static debootstrap) ;;
# Other allocators, in the same process as vram.
bench) tests && packages+=(libmimalloc2.0 libjemalloc2) ;;
# Frama-C with its plug-ins Eva and WP, and the provers that WP uses.
prove) tests && packages+=(frama-c-base why3 z3 cvc4) ;;
*)
    echo "usage: tools/setup.sh [build|viewer|test|real|bench|packages|arm64|prove|mutate]" >&2
    exit 2
    ;;
esac

# Names the missing packages in words if they cannot be installed. Without a compiler and CMake, the script stops.
go_on_without() {
    echo "$1: ${missing[*]}" >&2
    if { command -v cc || command -v gcc || command -v clang; } >/dev/null && command -v cmake >/dev/null; then
        echo "What needs them is left out. To install them: apt-get install ${missing[*]}" >&2
        return
    fi
    echo "A C compiler and CMake are needed. To install them, as root: apt-get install ${missing[*]}" >&2
    exit 1
}

install_missing() {
    local as_root=() package state
    missing=()
    for package in "${packages[@]}"; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -ne 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { go_on_without "missing packages, and no root to install them" && return; }
        as_root=(sudo)
    fi
    echo "installing: ${missing[*]}"
    "${as_root[@]}" apt-get update -q &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" ||
        go_on_without "packages that could not be installed"
}

# Installs TypeScript's compiler and the other npm packages of the page's build, if the page can be built.
node_modules() {
    local web
    web=$(dirname "$0")/../viewer/web
    [ "$web/node_modules/.package-lock.json" -nt "$web/package-lock.json" ] && return
    if ! command -v npm >/dev/null || ! command -v wasm-ld >/dev/null || [ ! -e /usr/include/wasm32-wasi ]; then
        echo "The viewer's page is left out: 'make viewer' installs what its build needs, and builds it."
        return
    fi
    (cd "$web" && npm ci --no-audit --no-fund --loglevel=error) ||
        echo "the viewer's build tools could not be installed; the command is built without the page" >&2
}

if command -v dpkg-query >/dev/null; then
    install_missing
else
    echo "tools/setup.sh knows Debian only; here the equivalents of these packages are needed: ${packages[*]}" >&2
fi
node_modules
