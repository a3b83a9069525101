#!/usr/bin/env python3
"""Installs the npm package into an empty folder and compares its command with the native one.

usage: check_npx.py VRAM PACKAGES [NODE]      (PACKAGES: the folder with vram-*.tgz; skipped (77) without one, or without node and npm; NODE: another
interpreter)

Compares, byte by byte, the golden outputs of tests/cli, a conversation of `vram mcp`, and each command's output and files for an example recording.
"""
import glob
import gzip
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OOM = os.path.join(ROOT, "examples", "recordings", "oom.pickle.gz")
ELSEWHERE = ("fit", "export", "run", "symbolize", "sim", "doctor", "top", "attach")
# Commands with the same output everywhere; {name} becomes a file of the folder.
SAME = [
    ["report", "{oom}"], ["report", "--json", "{oom}"], ["report", "--site", "{oom}"], ["report", "--roles", "--json", "{oom}"], ["report", "--list", "stats", "{oom}"],
    ["leaks", "--json", "{oom}"], ["tune", "--json", "{oom}"], ["replay", "--json", "{oom}"], ["replay", "--memory", "20GiB", "{oom}"], ["diff", "{oom}", "{small}"],
    ["flame", "{oom}", "-o", "-"], ["forecast", "{small}", "{oom}"], ["view", "{oom}", "-o", "-"], ["report", "{folder}"], ["report", "{page}"],
    ["report", "{page}#no such recording"], ["convert", "{oom}", "-o", "{folder}"], ["report", "/absent/x.pickle"], ["report", "{link}"],
]
WRITTEN = ["out.pickle", "out.json", "out.vram", "out.csv", "out.events.csv", "out.perfetto-trace", "out.folded", "out.pb.gz", "out.json.zst", "out.vram.xz",
           "out.sqlite"]


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def install(package, folder):
    """Installs the command from the package alone, without asking a registry."""
    with open(os.path.join(folder, "package.json"), "w") as f:
        f.write('{"private": true}')
    subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", package], cwd=folder, check=True)
    return os.path.join(folder, "node_modules", ".bin", "vram")


def started_by(node, command, folder):
    """Writes a script that starts the command with NODE. Returns its path."""
    path = os.path.join(folder, "started")
    with open(path, "w") as f:
        f.write('#!/bin/sh\nexec "%s" "%s" "$@"\n' % (node, os.path.realpath(command)))
    os.chmod(path, 0o755)
    return path


def run(command, arguments, folder, **more):
    env = {**os.environ, "LC_ALL": "C", "TMPDIR": folder}
    return subprocess.run([command] + arguments, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, **more)


def write_recordings(folder):
    sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
    import check_cli
    os.makedirs(os.path.join(folder, "ranks"))
    with open(os.path.join(folder, "small.pickle"), "wb") as f:
        f.write(pickle.dumps(check_cli.recording(), 4))
    shutil.copy(os.path.join(folder, "small.pickle"), os.path.join(folder, "ranks", "rank0.pickle"))
    shutil.copy(OOM, os.path.join(folder, "ranks", "rank1.pickle.gz"))
    os.symlink(os.path.join(folder, "small.pickle"), os.path.join(folder, "link.pickle"))
    return {"oom": OOM, "small": "small.pickle", "folder": "ranks", "page": "page.html", "link": "link.pickle"}


def check_same(native, ours, folder):
    found, names = [], write_recordings(folder)
    run(native, ["view", "small.pickle", OOM, "-o", "page.html"], folder)
    for arguments in SAME:
        arguments = [text.format(**names) for text in arguments]
        want, got = run(native, arguments, folder), run(ours, arguments, folder)
        if (want.returncode, want.stdout, want.stderr) != (got.returncode, got.stdout, got.stderr):
            found.append("%s: code %d, not %d; %s" % (arguments, got.returncode, want.returncode, got.stderr.decode()[-300:]))
    return found


def check_written(native, ours, folder):
    found = []
    for name in WRITTEN:
        made = []
        for command in (native, ours):
            path = os.path.join(folder, name)
            done = run(command, ["convert", "small.pickle", "-o", name], folder)
            if done.returncode != 0:
                found.append("%s: code %d: %s" % (name, done.returncode, done.stderr.decode()[-300:]))
            if name.endswith(".sqlite"):
                made.append(dump(path))
            else:
                with open(path, "rb") as f:
                    data = f.read()
                # Compressor versions differ; the decompressed contents do not.
                made.append(gzip.decompress(data) if name.endswith(".gz") else data)
                if name.endswith((".zst", ".xz")):
                    made[-1] = run(native, ["report", "--json", name], folder).stdout
            os.unlink(path)
        if made[0] != made[1]:
            found.append("%s: not what the native command writes" % name)
    left = [name for name in os.listdir(folder) if name.startswith("out.")]
    return found + ["left behind: %s" % name for name in left]


def dump(path):
    import sqlite3
    with sqlite3.connect(path) as database:
        return list(database.iterdump())


def check_elsewhere(ours, folder):
    """Checks that an unsupported command reports so in one line."""
    found = []
    for name in ELSEWHERE:
        done = run(ours, [name, "x"], folder)
        if done.returncode != 4 or done.stdout or done.stderr.count(b"\n") != 1 or b"needs the Linux command" not in done.stderr:
            found.append("%s: code %d: %r" % (name, done.returncode, done.stderr))
    return found


def check_rest(ours):
    """Runs the tests of the native command with this one."""
    found = []
    for script in ("check_cli.py", "check_mcp.py"):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "cli", script), ours], capture_output=True, text=True)
        print("%s: %s" % (script, done.stdout.strip().splitlines()[-1] if done.stdout else done.stderr[-300:]))
        if done.returncode != 0:
            found.append("%s:\n%s" % (script, (done.stdout + done.stderr)[-2000:]))
    return found


def main():
    native, packages = os.path.abspath(sys.argv[1]), glob.glob(os.path.join(sys.argv[2], "vram-*.tgz"))
    if not packages:
        skip("no npm package (make npx builds it)")
    if not shutil.which("npm") or int(subprocess.run(["node", "-p", "parseInt(process.versions.node)"], capture_output=True).stdout or 0) < 20:
        skip("no npm, or no node of version 20 or later")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as work:
        begun = time.time()
        ours = install(os.path.abspath(packages[0]), folder)
        if len(sys.argv) > 3:
            ours = started_by(os.path.abspath(sys.argv[3]), ours, folder)
        first = run(ours, ["report", OOM], work)
        print("from nothing to the first answer: %.1f s" % (time.time() - begun))
        found = [] if first.returncode == 0 else ["the first report: " + first.stderr.decode()[-300:]]
        found += check_same(native, ours, work) + check_written(native, ours, work) + check_elsewhere(ours, work) + check_rest(ours)
    for problem in found:
        print(problem)
    print("%d wrong" % len(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
