"""Runs one program of training.py or untrained.py and writes its recording: record.py MODULE PROGRAM FILE.

The recording is made at an out-of-memory error, else at the program's end. Its paths are not those of a real machine.
"""
import gzip
import importlib
import os
import pickle
import sys

import torch


def plain(name):
    """Returns a file's name without this machine's folders."""
    for part in ("/torch/", "/lib/python3"):
        if part in name:
            return "/usr/lib/python3/site-packages" + name[name.index(part) :] if part == "/torch/" else "/usr" + name[name.index(part) :]
    return os.path.basename(name)


def renamed(frames):
    # Frames around the program are not its own.
    return [{**frame, "filename": plain(frame["filename"])} for frame in frames if not frame["filename"].endswith(("record.py", "sizes.py")) or frame["name"] not in ("main", "<module>")]


def without_machine(snapshot):
    for trace in snapshot["device_traces"]:
        for event in trace:
            event["frames"] = renamed(event.get("frames", []))
    for segment in snapshot["segments"]:
        for part in [segment, *segment["blocks"]]:
            part["frames"] = renamed(part.get("frames", []))
    return snapshot


def written(snapshot, path):
    with gzip.GzipFile(path, "wb", 9, mtime=0) as file:
        pickle.dump(snapshot, file, 4)


def main():
    module, name, path = sys.argv[1:]
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=int(os.environ.get("MOST_EVENTS", 20000)))
    try:
        kept = getattr(importlib.import_module(module), name)()
        snapshot = torch.cuda.memory._snapshot()
    except torch.OutOfMemoryError:
        snapshot = torch.cuda.memory._snapshot()
        kept = None
    written(without_machine(snapshot), path)
    del kept


if __name__ == "__main__":
    main()
