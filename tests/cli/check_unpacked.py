#!/usr/bin/env python3
"""Files that unpack to far more than they are: every command that reads recordings says so in one line, and takes no memory for them.

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
    """The files, name by name; those of 300 MiB for --max-unpacked, one beyond the 1 GiB that may be without it."""
    plain = pickle.dumps(recording(), 4)
    for name, data in (("good.pickle", plain), ("good.pickle.gz", gzip.compress(plain)), ("good.pickle.xz", lzma.compress(plain))):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    for name, (head, body) in HEADS.items():
        gzip_bomb(os.path.join(folder, name + ".gz"), head, body, 300)
    made = ["string.json.gz", "key.json.gz", "space.json.gz", "string.pickle.gz"]
    with lzma.open(os.path.join(folder, "string.json.xz"), "wb", preset=0) as f:
        f.write(HEADS["string.json"][0] + b"a" * (300 * MIB))
    made.append("string.json.xz")
    with open(os.path.join(folder, "string.json"), "wb") as f:
        f.write(HEADS["string.json"][0] + b"a" * (300 * MIB))
    if subprocess.run(["zstd", "-q", "--rm", os.path.join(folder, "string.json")], capture_output=True).returncode == 0:
        made.append("string.json.zst")
    gzip_bomb(os.path.join(folder, "beyond.json.gz"), b'{"segments": [],', b" ", 1100)
    return made


def main(vram):
    vram = os.path.abspath(vram)
    sanitized = b"__asan_init" in open(vram, "rb").read()
    found, cases = [], 0

    def limit():
        if not sanitized:  # which reserves terabytes
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
        # Without the option: 1 GiB, for a pipe, too.
        refused(["report", "beyond.json.gz"], "1.0 GiB")
        with subprocess.Popen(["cat", os.path.join(folder, "beyond.json.gz")], stdout=subprocess.PIPE) as cat:
            refused(["report", "-"], "1.0 GiB", stdin=cat.stdout)
        raised = run(["report", "--max-unpacked", "2GiB", "beyond.json.gz"])
        if raised.returncode != 3 or b"--max-unpacked" in raised.stderr:
            found.append("--max-unpacked 2GiB does not raise the limit: %r" % raised.stderr)
        # What fits to the byte is read; a plain file is never too large.
        size = os.path.getsize(os.path.join(folder, "good.pickle"))
        for name in ("good.pickle.gz", "good.pickle.xz"):
            if run(["report", "--max-unpacked", str(size), name]).returncode != 0:
                found.append("%s does not unpack to %d bytes" % (name, size))
            refused(["report", "--max-unpacked", str(size - 1), name], "KiB")
        if run(["report", "--max-unpacked", "1", "good.pickle"]).returncode != 0:
            found.append("a plain file is counted as unpacked")
        # A page holds its recordings compressed.
        run(["view", "--no-open", "-o", "page.html", "good.pickle"])
        if os.path.exists(os.path.join(folder, "page.html")):
            refused(["report", "--max-unpacked", "1000", "page.html"], "1000 B")
            if run(["report", "page.html"]).returncode != 0:
                found.append("a page is not read")
        for name in ("out.json", "out.svg", "out.html"):
            if os.path.exists(os.path.join(folder, name)):
                found.append("%s was left behind" % name)
    for line in found:
        print(line)
    print("%d cases, %d wrong" % (cases, len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
