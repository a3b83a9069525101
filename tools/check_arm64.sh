#!/usr/bin/env bash
# Builds for aarch64 with Debian's cross compiler, and runs the tests under qemu-user, in an arm64 Debian that this script makes.
# Usage: tools/check_arm64.sh [REGEX]   only the tests that match. What is not run there is printed by name (tools/arm64_skipped.tsv).
# The root (1.2 GB) is made once, in VRAM_ARM64_CACHE. Needs root, for chroot and mounts, and the network for the first time. The kernel's
# binfmt_misc starts programs of aarch64 by qemu-user-static's rule, which the script installs if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD only=${1:-}
cache=${VRAM_ARM64_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vram/arm64} root=$cache/root
emulator=$cache/aarch64-binfmt-P  # under this name, it takes the program's own argv[0] from the kernel
packages=(cmake ninja-build gcc g++ clang binutils make pkg-config git libc6-dev libzstd-dev zlib1g-dev liblzma-dev libsqlite3-dev libcjson-dev libdw1 libcmocka-dev
    python3 python3-pytest python3-venv sqlite3 tar zstd xz-utils bash zsh fish cargo golang-go)
[ "$(id -u)" -eq 0 ] || { echo "check_arm64.sh: root is needed for chroot and mounts" >&2; exit 1; }

# The script's mounts end with it.
if [ -z "${VRAM_ARM64_INSIDE:-}" ]; then
    VRAM_ARM64_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"
fi
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

note() { printf '\n=== %s (%d s)\n' "$1" "$SECONDS"; }

# Debian 12's own qemu (7.2) keeps a row for each page of address space that a program reserves, 4 to 8 GB per test; the one in its
# backports does not. That one is downloaded into the cache, with Debian's signature checked, but not installed.
fetch_emulator() {
    local options=(-q -o "Dir::Etc::SourceList=$cache/apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$cache/apt/lists" -o APT::Sandbox::User=root)
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Created-By: Packages' 'Component: main' | grep -v security | head -1)
    mkdir -p "$cache/apt/lists/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main" >"$cache/apt/sources.list"
    apt-get "${options[@]}" update
    (cd "$cache/apt" && apt-get "${options[@]}" download -t bookworm-backports qemu-user && dpkg-deb -x qemu-user_*.deb .)
    mv "$cache/apt/usr/bin/qemu-aarch64" "$emulator"
    rm -r "$cache/apt"
}
[ -e "$emulator" ] || { note "an emulator of aarch64, $emulator" && fetch_emulator; }

# The newest rule wins. An existing rule is left alone, because tests of another tree may be using it. F: the kernel opens the emulator now,
# so that it is available inside the root too.
rules=/proc/sys/fs/binfmt_misc
[ -e $rules/register ] || mount -t binfmt_misc binfmt_misc $rules
if ! grep -qsxF "interpreter $emulator" $rules/vram-aarch64; then
    [ ! -e $rules/vram-aarch64 ] || echo -1 >$rules/vram-aarch64
    sed "s|^:qemu-aarch64:|:vram-aarch64:|; s|:/usr/[^:]*:\([A-Z]*\)$|:$emulator:\1|" /usr/lib/binfmt.d/qemu-aarch64.conf >$rules/register
fi

if [ ! -e "$root/var/lib/vram-installed" ] || [ "$(cat "$root/var/lib/vram-installed")" != "${packages[*]}" ]; then
    note "an arm64 Debian in $root"
    mkdir -p "$root"
    if [ ! -e "$root/usr/bin/apt-get" ] || [ -e "$root/debootstrap" ]; then
        debootstrap --foreign --arch=arm64 --variant=minbase bookworm "$root"
        inside /debootstrap/debootstrap --second-stage
    fi
    mount -t proc proc "$root/proc"
    inside apt-get update -q
    inside apt-get install -q -y --no-install-recommends "${packages[@]}"
    umount "$root/proc"
    # Paths that cmake finds below the root must mean the same inside it.
    mkdir -p "$root$(dirname "$root")"
    ln -sfn / "$root$root"
    echo "${packages[*]}" >"$root/var/lib/vram-installed"
fi

note "build arm64"
page=$tree/build/release/viewer/viewer.html
launcher=$(command -v ccache || true)
export QEMU_LD_PREFIX=$root  # cmake queries the root's Python for its version
cmake --preset arm64 --log-level=WARNING "-DVRAM_ARM64_ROOT=$root" ${launcher:+"-DCMAKE_C_COMPILER_LAUNCHER=$launcher"} \
    $([ ! -e "$page" ] || echo "-DVRAM_VIEWER_PAGE=$page")
cmake --build --preset arm64 -j "${JOBS:-$(nproc)}"
# An emulated processor is ten times slower, so tests get ten times the time.
find build/arm64 -name CTestTestfile.cmake -exec sed -i -E 's/TIMEOUT "([0-9]+)"/TIMEOUT "\10"/' {} +

common=$(realpath "$(git rev-parse --git-common-dir)")
for place in "$tree" "$common"; do
    mkdir -p "$root$place"
    mount --bind "$place" "$root$place"
done
shared=$(dirname "$tree")/shared
if [ -e "$shared" ]; then
    mkdir -p "$root$shared"
    mount --bind "$(realpath "$shared")" "$root$shared"
fi
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/run"
mkdir -p "$root/tmp"

note "skipped"
skipped=$(sed -E '/^[#=]|^$/d; s/\t.*//' tools/arm64_skipped.tsv | paste -sd '|')
while IFS=$'\t' read -r pattern why; do
    names=$(ctest --test-dir build/arm64 -N -R "$pattern" | sed -n 's/.*Test *#[0-9]*: //p' | paste -sd ' ')
    [ -z "$names" ] || printf '%s: %s\n' "$names" "$why"
done < <(sed '/^[#=]/d; /^$/d' tools/arm64_skipped.tsv)
sed -n 's/^=\([^\t]*\)\t/part of \1: /p' tools/arm64_skipped.tsv

# Prints the last line of a test that had nothing to run.
own_skips() {
    awk 'FNR == NR { if (/\*\*\*Skipped/) { sub(/.*: /, ""); skipped[$1] = 1 } next }
        / Test: / { name = $NF; said = "" }
        /^<end of output>$/ { if (name in skipped) print name ": " said; name = "" }
        NF && !/^-+$/ { said = $0 }' build/arm64/test.log build/arm64/Testing/Temporary/LastTest.log
}

note "test arm64"
code=0
inside sh -c "cd '$tree' && git config --global --replace-all safe.directory '*' && VRAM_TEST_EMULATED=1 PYTHONPATH='$tree/tools/emulated' exec ctest --test-dir build/arm64 -j ${JOBS:-$(nproc)} --timeout 3000 --output-on-failure -R '${only:-.}' -E '$skipped'" 2>&1 |
    tee build/arm64/test.log || code=$?
note "skipped by the tests themselves"
own_skips
exit $code
