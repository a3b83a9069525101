#!/usr/bin/env bash
# Installs the Debian packages into a separate Debian, with apt, and uses them there. Needs root, debootstrap and the network.
# Usage: debian.sh FOLDER-WITH-DEBS ROOT [MIRROR]. If ROOT is missing, it is made from apt's mirror. At the end vram's packages are purged from it.
set -euo pipefail
debs=$(realpath "$1") root=$2 mirror=${3:-$(apt-get indextargets --format "\$(SITE)" "Created-By: Packages" | head -1)}
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" -eq 0 ] || { echo "debian.sh: only root can install packages" >&2; exit 1; }
[ -x "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase --include=gcc,libc6-dev,pkg-config bookworm "$root" "$mirror" >/dev/null
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
[ -e "$root/proc/self" ] || mount -t proc proc "$root/proc"
trap 'umount "$root/proc" 2>/dev/null || true' EXIT

mkdir -p "$root/try"
cp "$debs"/*.deb "$here/../../examples/recordings/oom.pickle.gz" "$here/../house/consumer/consumer.c" "$here/../house/consumer/device.c" "$root/try"
inside apt-get -o Dpkg::Use-Pty=0 install -q -y --no-install-recommends gcc libc6-dev pkg-config >/dev/null
begun=$(date +%s.%N)
inside sh -c 'apt-get -o Dpkg::Use-Pty=0 install -q -y --no-install-recommends /try/*.deb' >/dev/null
inside vram report /try/oom.pickle.gz >/dev/null
echo "from nothing to the first answer: $(date +%s.%N | awk -v begun="$begun" '{ printf "%.1f", $1 - begun }') s"

# Use the library through pkg-config; run the command with a program on the simulated device; check its page and manual.
inside sh -ec 'cd /try
    gcc consumer.c $(pkg-config --cflags --libs vram vram-sim) -o consumer && ./consumer
    gcc device.c -o device -ldl
    vram sim -- ./device
    vram sim -- vram run -o device.vram -- ./device >/dev/null 2>&1
    vram report device.vram | grep -q -F "3.0 MiB"
    vram view --no-open -o page.html device.vram
    grep -q "<html" page.html
    code=0; vram doctor >doctor.txt || code=$?
    test $code -eq 4 && grep -q "no CUDA driver" doctor.txt
    vram doctor --sim >/dev/null
    test -e /usr/share/bash-completion/completions/vram
    test -e /usr/share/man/man1/vram-run.1.gz'
# No file is left.
inside sh -c 'apt-get -o Dpkg::Use-Pty=0 purge -q -y vram libvram0.1 libvram-dev >/dev/null'
left=$(find "$root/usr" "$root/etc" "$root/var/lib/dpkg/info" -name 'vram*' -o -name '_vram*' -o -name 'libvram*')
[ -z "$left" ] || { echo "debian.sh: purging leaves $left" >&2; exit 1; }
echo "packages: installed, used and purged"
