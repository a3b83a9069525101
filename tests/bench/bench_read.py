#!/usr/bin/env python3
"""bench_read.py BENCH_READ [--synthetic MEGABYTES] [FILE...]: compares reading recordings with CPython's unpickler (and json) on the same file.

They take turns, and the shortest run of each counts. vram's runs are a few per process, and their clock starts at the call; its peak memory
is that of a process with one run. --synthetic makes a pickle of about that size (30-frame stacks), reads it and removes it.
"""
import gc
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time


def synthetic(megabytes):
    """Makes stacks as a training loop does: a step's stacks recur in the next, every list is written out again, and two thirds of the
    events share theirs with a neighbour."""
    chance = random.Random(1)
    frames = [{"name": "function_%d" % i, "filename": "/src/file_%d.py" % (i % 50), "line": i} for i in range(2000)]
    step = [chance.choices(frames, k=30) for _ in range(1500)]
    trace, clock = [], 1_700_000_000_000_000
    while len(trace) < megabytes * 1_000_000 / 165:
        for place in range(0, len(step), 2):
            address, size, clock = 0x7F0000000000 + 512 * len(trace), chance.randrange(1, 1 << 24), clock + 3
            for action, stack in (("alloc", list(step[place])), ("free_requested", list(step[place + 1])), ("free_completed", None)):
                trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": clock, "compile_context": "N/A",
                              "user_metadata": "", "frames": stack if stack else trace[-1]["frames"]})
    snapshot = {"segments": [], "device_traces": [trace], "allocator_settings": {}, "external_annotations": []}
    with tempfile.NamedTemporaryFile(suffix=".pickle", delete=False) as file:
        pickle.dump(snapshot, file)
    return file.name


def python_seconds(path):
    with open(path, "rb") as file:
        load = pickle.load if file.read(1) == b"\x80" else json.load
    gc.collect()
    begin = time.perf_counter()
    with open(path, "rb") as file:
        snapshot = load(file)
    elapsed = time.perf_counter() - begin
    del snapshot
    return elapsed


def measure(program, path):
    ours, theirs, size = [], [], os.path.getsize(path)
    for turn in range(4 if size > 20_000_000 else 20):
        runs = "1" if turn == 0 else "3"
        ours.append(json.loads(subprocess.run([program, path, runs], check=True, capture_output=True).stdout))
        theirs.append(python_seconds(path))
    seconds, peak = min(run["seconds"] for run in ours), min(run["peak_rss_bytes"] for run in ours)
    print("%-44s %8.1f MB %8d events  ours %8.2f ms  CPython %9.2f ms  %5.1f x  peak %6.1f MB = %4.2f x the file"
          % (os.path.basename(path)[:44], size / 1e6, ours[0]["events"], seconds * 1e3, min(theirs) * 1e3, min(theirs) / seconds, peak / 1e6,
             peak / size))


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    program, files, made = arguments.pop(0), [], None
    if arguments and arguments[0] == "--synthetic":
        made = synthetic(int(arguments[1]))
        arguments = arguments[2:]
    try:
        for path in ([made] if made else []) + arguments:
            measure(program, path)
    finally:
        if made:
            os.unlink(made)


if __name__ == "__main__":
    main()
