#!/usr/bin/env python3
"""Tests files that unpack to far more than their size: every command that reads recordings reports it in one line, and uses no memory for it.
usage: check_unpacked.py VRAM
"""
import gzip
import lzma
import os
import pickle
import resource
import struct
import subprocess
import sys
import tempfile
import zlib

from check_cli import recording

MIB = 1 << 20
READERS = (["report"], ["report", "--json"], ["replay"], ["tune"], ["leaks"], ["diff", "good.pickle"], ["convert", "-o", "out.json"],
           ["flame", "-o", "out.svg"], ["symbolize", "-o", "out.json"], ["view", "-o", "out.html"])
HEADS = {"string.json": (b'{"segments": [], "x": "', b"a"), "key.json": (b'{"', b"a"), "space.json": (b'{"segments": [],', b" "),
         "string.pickle": (b"\x80\x04}\x8d" + struct.pack("<Q", 1 << 40), b"a")}


def gzip_bomb(path, head, body, mib):
    with open(path, "wb") as f:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        f.write(packer.compress(head))
        for _ in range(mib):
            f.write(packer.compress(body * MIB))
        f.write(packer.flush())


def make(folder):
    """Makes the files: those of 100 MiB for --max-unpacked, and one beyond the default limit of 1 GiB."""
    plain = pickle.dumps(recording(), 4)
    for name, data in (("good.pickle", plain), ("good.pickle.gz", gzip.compress(plain)), ("good.pickle.xz", lzma.compress(plain))):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    for name, (head, body) in HEADS.items():
        gzip_bomb(os.path.join(folder, name + ".gz"), head, body, 100)
    made = ["string.json.gz", "key.json.gz", "space.json.gz", "string.pickle.gz"]
    with lzma.open(os.path.join(folder, "string.json.xz"), "wb", preset=0) as f:
        f.write(HEADS["string.json"][0] + b"a" * (100 * MIB))
    made.append("string.json.xz")
    with open(os.path.join(folder, "string.json"), "wb") as f:
        f.write(HEADS["string.json"][0] + b"a" * (100 * MIB))
    if subprocess.run(["zstd", "-q", "--rm", os.path.join(folder, "string.json")], capture_output=True).returncode == 0:
        made.append("string.json.zst")
    gzip_bomb(os.path.join(folder, "beyond.json.gz"), b'{"segments": [],', b" ", 1100)
    return made


# Contents of a file of a few hundred kilobytes: a head, and what is repeated after it.
BODIES = {"string": (b'{"segments": [], "x": "', b"a"), "dicts": (b'{"segments": [], "device_traces": [[]], "x": [', b"{},"),
          "rows": (b'{"segments": [], "device_traces": [[', b'{"action":"alloc","addr":139637976727552,"size":512,"stream":0,"frames":[]},')}
LEAST_AVAILABLE = 3 << 30


def repeated(body, size):
    return (body * (size // len(body) + 1))[:size // len(body) * len(body)]


def large_gzip(path, head, body, size):
    """After a full flush, equal bytes compress to equal bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = repeated(body, 8 * MIB)
    with open(path, "wb") as f:
        f.write(packer.compress(head) + packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH))
        piece = packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)
        for _ in range(size // len(data)):
            f.write(piece)


def large_zstd(path, head, body, size):
    """Writes consecutive frames. Returns False without the tool."""
    pieces, data = [], repeated(body, 128 * MIB)
    for content in (head, data):
        try:
            pieces.append(subprocess.run(["zstd", "-q", "-c"], input=content, stdout=subprocess.PIPE, check=True).stdout)
        except OSError:
            return False
    with open(path, "wb") as f:
        f.write(pieces[0] + pieces[1] * (size // len(data) + 1))
    return True


def available():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("MemAvailable"))


# A process inherits the peak of the one that started it, and this one makes the files, so a small one starts the command.
MEASURED = """import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, state, used = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(state), used.ru_maxrss)"""


def peak_of(command):
    """Returns (exit code, output, peak memory in bytes)."""
    done = subprocess.run([sys.executable, "-c", MEASURED] + command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    code, kib = done.stdout.splitlines()[-1].split()
    return int(code), done.stderr, int(kib) << 10


def measure(vram, folder, found):
    """Without any option at most 1 GiB of 6.3 and 2 GB is unpacked, and memory use is at most 256 MiB, or 200 times the file."""
    cases = 0
    for kind, (head, body) in BODIES.items():
        for extension, make_it, size in ((".zst", large_zstd, 6300 * 10**6), (".gz", large_gzip, 2 * 10**9)):
            path = os.path.join(folder, "large-" + kind + ".json" + extension)
            if extension == ".gz" and kind != "string" or make_it(path, head, body, size) is False:
                continue
            packed = os.path.getsize(path)
            limit = max(256 << 20, 200 * packed)
            code, said, peak = peak_of([vram, "report", path])
            print("%s: %.0f KiB that unpack to %.1f GB take %d MiB" % (os.path.basename(path), packed / 1024, size / 1e9, peak // MIB))
            if code != 3 or said.count("\n") != 1 or "--max-unpacked" not in said or peak > limit + 100 * MIB:
                found.append("%s: exit code %d, %d MiB, %r" % (path, code, peak // MIB, said))
            os.remove(path)
            cases += 1
    return cases


def main(vram):
    vram = os.path.abspath(vram)
    sanitized = b"__asan_init" in open(vram, "rb").read()
    found, cases = [], 0

    def limit():
        if not sanitized:  # sanitizers reserve terabytes
            resource.setrlimit(resource.RLIMIT_AS, (1000 * MIB, 1000 * MIB))

    with tempfile.TemporaryDirectory() as folder:
        def run(arguments, stdin=subprocess.DEVNULL):
            nonlocal cases
            cases += 1
            return subprocess.run([vram] + arguments, cwd=folder, stdin=stdin, capture_output=True, timeout=100, preexec_fn=limit)

        def refused(arguments, size, **more):
            got = run(arguments, **more)
            said = got.stderr.decode()
            good = got.returncode == 3 and said.count("\n") == 1 and "--max-unpacked" in said and size in said
            if not good or not got.stdout.strip(b"[]\n") == b"":
                found.append("%s: exit code %d, %r, %r" % (arguments, got.returncode, said, got.stdout[:200]))

        for name in make(folder):
            refused(["report", "--max-unpacked", "32MiB", name], "32.0 MiB")
        for reader in READERS:
            refused(reader + ["--max-unpacked=32MiB", "string.json.gz"], "32.0 MiB")
        with open(os.path.join(folder, "string.json.gz"), "rb") as stdin:
            refused(["report", "--max-unpacked=32MiB", "-"], "32.0 MiB", stdin=stdin)
        # Without the option: 1 GiB, even for a pipe.
        refused(["report", "beyond.json.gz"], "1.0 GiB")
        with subprocess.Popen(["cat", os.path.join(folder, "beyond.json.gz")], stdout=subprocess.PIPE) as cat:
            refused(["report", "-"], "1.0 GiB", stdin=cat.stdout)
        raised = run(["report", "--max-unpacked", "2GiB", "beyond.json.gz"])
        if raised.returncode != 3 or b"--max-unpacked" in raised.stderr:
            found.append("--max-unpacked 2GiB does not raise the limit: %r" % raised.stderr)
        # A file at the exact limit is read; an uncompressed file is never too large.
        size = os.path.getsize(os.path.join(folder, "good.pickle"))
        for name in ("good.pickle.gz", "good.pickle.xz"):
            if run(["report", "--max-unpacked", f"{size}B", name]).returncode != 0:
                found.append("%s does not unpack to %d bytes" % (name, size))
            refused(["report", "--max-unpacked", f"{size - 1}B", name], "KiB")
        if run(["report", "--max-unpacked", "1B", "good.pickle"]).returncode != 0:
            found.append("a plain file is counted as unpacked")
        # A page contains its recordings compressed.
        run(["view", "--no-open", "-o", "page.html", "good.pickle"])
        if os.path.exists(os.path.join(folder, "page.html")):
            refused(["report", "--max-unpacked", "1000B", "page.html"], "1000 B")
            if run(["report", "page.html"]).returncode != 0:
                found.append("a page is not read")
        if sanitized or available() < LEAST_AVAILABLE:
            print("not measured: a sanitizer, or less than 3 GiB of memory available")
        else:
            cases += measure(vram, folder, found)
        for name in ("out.json", "out.svg", "out.html"):
            if os.path.exists(os.path.join(folder, name)):
                found.append("%s was left behind" % name)
    for line in found:
        print(line)
    print("%d cases, %d wrong" % (cases, len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
