#!/usr/bin/env python3
"""bench_write.py BENCH_WRITE [--events N] [FILE...]: compares writing recordings with CPython's pickler and the same dictionary.

CPython pickles its own reading of two files. In the one written by vram, equal stacks are one list; in the original, as PyTorch makes it,
they are often separate lists. --events makes a recording of N events with 30-frame stacks (default 1,000,000).
The shortest of three runs of each counts; both write to files in the folder for temporary files.
"""
import gc
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time

from bench_read import synthetic


def pickle_seconds(snapshot):
    gc.collect()
    gc.disable()
    with tempfile.TemporaryFile() as file:
        begin = time.perf_counter()
        pickle.dump(snapshot, file)
        elapsed = time.perf_counter() - begin
        size = file.tell()
    gc.enable()
    return elapsed, size


def measure(program, path):
    ours, theirs = [], {"": [], " (stacks shared)": []}
    with open(path, "rb") as file:
        snapshot = pickle.load(file)
    # Merges equal lists of frames into one object, as in our output.
    for turn in range(3):
        ours.append(json.loads(subprocess.run([program, path, "pickle", "1"], check=True, capture_output=True).stdout))
        theirs[""].append(pickle_seconds(snapshot))
    stacks = {}
    for trace in snapshot["device_traces"]:
        for event in trace:
            if "frames" in event:
                event["frames"] = stacks.setdefault(tuple(map(id, event["frames"])), event["frames"])
    for turn in range(3):
        theirs[" (stacks shared)"].append(pickle_seconds(snapshot))
    best = min(run["seconds"] for run in ours)
    print("%s: %d events" % (os.path.basename(path), ours[0]["events"]))
    print("  vram                     %9.1f ms  %9.1f MB" % (best * 1e3, ours[0]["bytes"] / 1e6))
    for name, runs in theirs.items():
        print("  CPython%-17s %9.1f ms  %9.1f MB  %5.1f x" % (name, min(runs)[0] * 1e3, runs[0][1] / 1e6, min(runs)[0] / best))


def main():
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit(__doc__)
    program, events = arguments.pop(0), 1_000_000
    if arguments and arguments[0] == "--events":
        events = int(arguments[1])
        arguments = arguments[2:]
    made = None if arguments else synthetic(events * 165 / 1e6)
    try:
        for path in arguments or [made]:
            measure(program, path)
    finally:
        if made:
            os.unlink(made)


if __name__ == "__main__":
    main()
