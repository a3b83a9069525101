#!/usr/bin/env bash
# Builds for aarch64 with Debian's cross compiler and runs the tests under qemu-user, in an arm64 Debian that this makes by itself.
# Usage: tools/check_arm64.sh [REGEX]   only the tests that match. What is not run there is printed by name (tools/arm64_skipped.tsv).
# The root (1.2 GB) is made once, in VRAM_ARM64_CACHE. Needs root, for chroot and mounts, and the network for the first time. Programs of
# aarch64 are started by the kernel's binfmt_misc, for which qemu-user-static's rule is put in where it is not.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD only=${1:-}
root=${VRAM_ARM64_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vram/arm64}/root
packages=(cmake gcc g++ clang binutils make pkg-config git libc6-dev libzstd-dev zlib1g-dev liblzma-dev libsqlite3-dev libcjson-dev libdw1 libcmocka-dev
    python3 python3-venv sqlite3 tar zstd xz-utils bash zsh fish)
[ "$(id -u)" -eq 0 ] || { echo "check_arm64.sh: root is needed for chroot and mounts" >&2; exit 1; }

# Mounts of this script end with it.
if [ -z "${VRAM_ARM64_INSIDE:-}" ]; then
    VRAM_ARM64_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"
fi
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }

note() { printf '\n=== %s (%d s)\n' "$1" "$SECONDS"; }

rules=/proc/sys/fs/binfmt_misc
[ -e $rules/register ] || mount -t binfmt_misc binfmt_misc $rules
[ -e $rules/qemu-aarch64 ] || cat /usr/lib/binfmt.d/qemu-aarch64.conf >$rules/register

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
    # Paths that cmake finds below the root mean the same inside of it.
    mkdir -p "$root$(dirname "$root")"
    ln -sfn / "$root$root"
    echo "${packages[*]}" >"$root/var/lib/vram-installed"
fi

note "build arm64"
page=$tree/build/release/viewer/viewer.html
launcher=$(command -v ccache || true)
export QEMU_LD_PREFIX=$root # cmake asks the root's Python for its version
cmake --preset arm64 --log-level=WARNING "-DVRAM_ARM64_ROOT=$root" ${launcher:+"-DCMAKE_C_COMPILER_LAUNCHER=$launcher"} \
    $([ ! -e "$page" ] || echo "-DVRAM_VIEWER_PAGE=$page")
cmake --build --preset arm64 -j "${JOBS:-$(nproc)}"
# An emulated processor is ten times slower, and so is the patience of a test.
find build/arm64 -name CTestTestfile.cmake -exec sed -i -E 's/TIMEOUT "([0-9]+)"/TIMEOUT "\10"/' {} +

common=$(realpath "$(git rev-parse --git-common-dir)")
for place in "$tree" "$common"; do
    mkdir -p "$root$place"
    mount --bind "$place" "$root$place"
done
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/run"
mkdir -p "$root/tmp"

note "skipped"
skipped=$(sed -E '/^#|^$/d; s/\t.*//' tools/arm64_skipped.tsv | paste -sd '|')
while IFS=$'\t' read -r pattern why; do
    names=$(ctest --test-dir build/arm64 -N -R "$pattern" | sed -n 's/.*Test *#[0-9]*: //p' | paste -sd ' ')
    [ -z "$names" ] || printf '%s: %s\n' "$names" "$why"
done < <(sed '/^#/d; /^$/d' tools/arm64_skipped.tsv)

# qemu 7.2 keeps a row for each page of address space that a program reserves: a test that makes many allocators would take all memory. So
# there is one at a time, and one that takes more than 6 GiB is ended.
guard() {
    local process kib
    while sleep 2; do
        for process in /proc/[0-9]*; do
            [ "$(readlink "$process/root" 2>/dev/null)" = "$root" ] || continue
            kib=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "$process/status" 2>/dev/null || true)
            [ "${kib:-0}" -le $((6 << 20)) ] || { echo "too much memory: $(tr '\0' ' ' <"$process/cmdline")"; kill -KILL "${process#/proc/}"; } || true
        done
    done
}
root=$(realpath "$root")
guard &
trap 'kill $! 2>/dev/null || true' EXIT

note "test arm64"
inside sh -c "cd '$tree' && git config --global --replace-all safe.directory '*' && exec ctest --test-dir build/arm64 --timeout 3000 --output-on-failure -R '${only:-.}' -E '$skipped'" 2>&1 |
    tee build/arm64/test.log
