#!/usr/bin/env bash
# Installs what building and testing need, from Debian 12's packages; only what is missing, so that it also works offline
# where everything is there. Usage: tools/setup.sh [real|bench|packages|arm64|prove]; `real` adds what `make check-real` needs, `bench` what `make bench` compares with,
# `prove` what `make prove` needs,
# `packages` what makes and tries packages for other systems, `arm64` what `make check-arm64` and the wheel for arm64 need.
set -euo pipefail

# git, make and a C compiler with its headers; ninja and cmake build; pkg-config is tried by the install test.
packages=(git make gcc libc6-dev binutils cmake ninja-build pkg-config)
# The command reads compressed recordings and, from agents, JSON.
packages+=(libzstd-dev zlib1g-dev liblzma-dev libsqlite3-dev libcjson-dev)
# Lines and inlined functions in call stacks, at run time; the C++ test of them.
packages+=(libdw1 g++)
# Tests: unit tests, scripts, packed test data, sanitizers and fuzzing, format, memory checks.
packages+=(libcmocka-dev python3 sqlite3 tar zstd clang libclang-rt-14-dev clang-format valgrind)
# What the house test of arguments parses with; the headers of the compiler come with clang.
packages+=(python3-clang-14)
# The viewer: its engine is compiled to WebAssembly and made smaller; two browsers test the page.
packages+=(binaryen lld wasi-libc libclang-rt-14-dev-wasm32 chromium firefox-esr fonts-dejavu-core)
# Shells whose completions are tried.
packages+=(bash zsh fish)
# Node runs the page's build; a newer one from elsewhere will do.
command -v node >/dev/null && command -v npm >/dev/null || packages+=(nodejs npm)

# Environments of real programs; torch.compile and Triton call a C++ compiler.
if [ "${1:-}" = real ]; then packages+=(python3-venv python3-pip python3-dev); fi
# Packages for other systems: Debian's sources, and environments in which what was made is tried.
if [ "${1:-}" = packages ]; then packages+=(dpkg-dev llvm python3-venv python3-pip debhelper debootstrap ruby rubocop python3-yaml musl-tools curl); fi
# Another processor: its compilers and C library, an emulation of it, and a Debian for it to run in.
if [ "${1:-}" = arm64 ]; then packages+=(gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static debootstrap); fi
# Other allocators, in the same process as ours.
if [ "${1:-}" = bench ]; then packages+=(libmimalloc2.0 libjemalloc2); fi
# Frama-C with its plug-ins Eva and WP; the provers that WP asks.
if [ "${1:-}" = prove ]; then packages+=(frama-c-base why3 z3 cvc4); fi

if ! command -v dpkg-query >/dev/null; then
    echo "tools/setup.sh knows Debian only; here the equivalents of these packages are needed: ${packages[*]}" >&2
    exit 0
fi

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done
node_modules() {
    local web
    web=$(dirname "$0")/../viewer/web
    [ "$web/node_modules/.package-lock.json" -nt "$web/package-lock.json" ] && return
    (cd "$web" && npm ci --no-audit --no-fund --loglevel=error) ||
        echo "the viewer's build tools could not be installed; the command is built without the page" >&2
}
if [ ${#missing[@]} -eq 0 ]; then
    node_modules
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "missing packages: ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
node_modules
