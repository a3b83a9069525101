#!/usr/bin/env python3
"""Checks the answers of `vram tune` for every real recording with `vram replay`.

Usage: check_recordings.py VRAM FOLDER     (FOLDER has snapshots/)

For each recording: the best setting needs and holds no more than the current one. It needs at most 1 % more than the best of the
defaults, expandable_segments:True and max_split_size_mb:128, among those that hold no more. A replay with its memory completes, and
where it claims that less is not enough, a replay with less does not.
"""
import json
import pathlib
import subprocess
import sys
import time

REFERENCES = ("", "expandable_segments:True", "max_split_size_mb:128")


def replay_finishes(vram, path, conf, memory):
    # A device whose history contradicts its final state completes nothing, and its result says nothing about memory.
    output = subprocess.run([vram, "replay", "--json", "--conf", conf, "--memory", f"{memory}B", path], capture_output=True, check=False)
    run = json.loads(output.stdout)["runs"][0]
    return all(device["out_of_memory"] is None for device in run["devices"] if not device["contradiction"])


def check(vram, path):
    began = time.monotonic()
    process = subprocess.run([vram, "tune", "--json", path], capture_output=True, check=False)
    seconds = time.monotonic() - began
    if process.returncode == 3:
        return "nothing to replay", 0, seconds
    result = json.loads(process.stdout)
    best = result["best"]
    today = result["settings"][0]
    tried = {setting["conf"]: setting for setting in result["settings"]}
    windows = not any("expandable_segments:True" in conf for conf in tried)  # PyTorch ignores expandable segments on Windows
    assert windows or all(conf in tried for conf in REFERENCES), "a reference was not tried"
    held = today["peak_reserved_bytes"] if today["needed_bytes"] else 1 << 62
    references = [tried[conf]["needed_bytes"] for conf in REFERENCES if conf in tried and tried[conf]["needed_bytes"] and tried[conf]["peak_reserved_bytes"] <= held]
    assert best["needed_bytes"] and best["needed_bytes"] <= min(references, default=1 << 62) * 1.01, "a reference is better"
    assert best["needed_bytes"] <= (today["needed_bytes"] or 1 << 62), "it needs more than today's"
    assert best["peak_reserved_bytes"] <= held, "it holds more than today's"
    assert best["needed_bytes"] >= result["live_bytes"] or result["contradictions"], "it needs less than was live"
    assert replay_finishes(vram, path, best["conf"], best["needed_bytes"]), "the best setting does not fit in what it needs"
    # A size between two that fit may not fit. So a size just below has to fail, and not every smaller one.
    least = best["needed_bytes"] - best["needed_bytes"] // 512 - (4 << 20)
    below = [size for size in range(best["needed_bytes"] - (2 << 20), least - 1, -(2 << 20)) if size > best["peak_active_bytes"]]
    assert not below or not all(replay_finishes(vram, path, best["conf"], size) for size in below), "it needs less than it is said to"
    return best["conf"] or "(defaults)", (today["needed_bytes"] or 0) - best["needed_bytes"], seconds


def main():
    vram, folder = sys.argv[1:]
    failures = 0
    for path in sorted(pathlib.Path(folder, "snapshots").iterdir()):
        if path.suffix not in (".pickle", ".pkl", ".json"):
            continue
        try:
            conf, gain, seconds = check(vram, str(path))
            print(f"{path.name}: {conf}, {gain / 2**20:.0f} MiB less than today, {seconds:.1f} s")
        except AssertionError as error:
            failures += 1
            print(f"{path.name}: FAILED: {error}")
    sys.exit(failures != 0)


main()
