#!/usr/bin/env python3
"""Tests that addresses chosen to collide cost no command more than twice the work of ordinary ones.

usage: check_hostile.py VRAM      exit 77 (skipped) without valgrind

Work is counted in instructions by callgrind, so the result is the same on a busy machine. Inputs are a pickle and a .vram file.
"""
import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import make_hostile

COUNT = 5000
MOST = 2.0
VALGRIND = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
FORMATS = ("pickle", "json", "vram", "csv", "events.csv", "sqlite", "perfetto", "folded", "pprof")
COMMANDS = [["report"], ["report", "--json"], ["report", "--list", "trace"], ["replay", "--exact"], ["replay"], ["leaks"], ["tune", "-j", "1"],
            ["diff", None]] + [["convert", "-o", f"out.{name}"] for name in FORMATS]
QUERIES = ["list", "curve?pixels=9", "timeline?pixels=9", "segments", "map?pixels=9", "state?event=9000", "events", "event?event=9",
           "allocations", "groups", "tree", "leaks", "churn?every=9", "ranks", "steps", "allocation?row=1"]


def collected(text):
    return int(re.search(r"Collected : (\d+)", text).group(1))


def count_command(vram, command, path, folder):
    arguments = [path if argument is None else argument for argument in command]
    result = subprocess.run(VALGRIND + [vram, *arguments, path], cwd=folder, capture_output=True, text=True, timeout=500)
    assert result.returncode in (0, 1), (command, result)
    return collected(result.stderr)


def count_queries(vram, path, folder):
    """Answers all of the viewer's questions in one process."""
    server = subprocess.Popen(VALGRIND + [vram, "view", "--serve", "--no-open", path], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    try:
        port, start = re.match(r"http://127\.0\.0\.1:(\d+)(/\S*)", server.stdout.readline()).groups()
        for query in QUERIES:
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=200)
            connection.request("GET", f"{start}ask?{query}", headers={"Connection": "close"})
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 200, (query, response.status, answer)
    finally:
        server.send_signal(signal.SIGTERM)
    return collected(server.communicate(timeout=200)[1])


def check(what, hostile, ordinary):
    print(f"{what:<40} {hostile / 1e6:9.1f} {ordinary / 1e6:9.1f} million instructions, {hostile / ordinary:5.2f} times as many")
    return hostile <= MOST * ordinary


def main(vram):
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for kind in ("hostile", "ordinary"):
            paths[kind] = [os.path.join(folder, f"{kind}.{extension}") for extension in ("pickle", "vram")]
            make_hostile.write(paths[kind][0], COUNT, kind)
            subprocess.run([vram, "convert", paths[kind][0], "-o", paths[kind][1]], check=True)
        for pair in zip(paths["hostile"], paths["ordinary"]):
            extension = os.path.splitext(pair[0])[1]
            for command in COMMANDS:
                if command[0] == "tune" and extension != ".pickle":
                    continue  # these take most of the time, and do the same replays
                counts = [count_command(vram, command, path, folder) for path in pair]
                bad += not check(" ".join(word or "..." for word in command) + " " + extension, *counts)
            bad += not check("queries " + extension, *(count_queries(vram, path, folder) for path in pair))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])) if shutil.which("valgrind") else 77)
