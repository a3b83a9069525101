#!/usr/bin/env python3
"""Tests `vram forecast` on made recordings with known curves and, if present, on recordings of real GPUs, by leaving out a run.
usage: check_forecast.py VRAM [FOLDER]   (FOLDER has snapshots/)
"""
import glob
import json
import os
import pickle
import subprocess
import sys
import tempfile

MIB = 1 << 20
# The allocations of a named function at a size: several tensors each.
CURVES = {"weights": lambda n: [7 * MIB, 3 * MIB], "activations": lambda n: [n * 4096] * 3, "attention": lambda n: [n * n * 64], "mixed": lambda n: [5 * MIB, n * 8192, n * n * 32],
          "affine": lambda n: [MIB + n * 1000]}
# Recordings of one program in different sizes; the last one is left out.
REAL = (("044", 100, "045", 150, "047", 200), ("075", 100, "076", 150, "077", 200), ("083", 128, "084", 256, "086", 512), ("094", 128, "096", 256, "095", 512), ("054", 128, "055", 256, "056", 512),
        ("065", 128, "066", 256, "067", 512), ("100", 128, "102", 512, "104", 256), ("100", 128, "104", 256, "102", 512),
        ("o22", 1024, "o23", 2048, "o24", 4096), ("o22", 1024, "o24", 4096, "o23", 2048), ("o14", 1024, "o15", 2048, "o16", 4096), ("o14", 1024, "o16", 4096, "o15", 2048))
# Small programs, for which a segment of 20 MiB is a large part of the reserved bytes: only the range of that figure is tested. If functions
# have different names, one run's peak cannot be found in another, so only the range of both figures is tested.
SMALL, NOT_FOLLOWED = {"o14", "o22"}, {"o14"}


def recording(size):
    events, address = [], 0x700000000000
    for name, curve in CURVES.items():
        for line, size_bytes in enumerate(curve(size)):
            frames = [{"name": name, "filename": "model.py", "line": 10 if name == "mixed" else 10 + line}]
            events.append({"action": "segment_alloc", "addr": address, "size": size_bytes, "stream": 0, "frames": frames})
            events.append({"action": "alloc", "addr": address, "size": size_bytes, "stream": 0, "frames": frames})
            address += 1 << 40
    events += [{**event, "action": "free_completed"} for event in events if event["action"] == "alloc"]
    return {"segments": [], "device_traces": [events]}


def forecast(vram, *arguments):
    return subprocess.run([vram, "forecast", *arguments], capture_output=True, timeout=120, text=True)


def check_made(vram, folder, found):
    paths = {}
    for size in (64, 128, 256, 1024):
        paths[size] = os.path.join(folder, f"{size}.pickle")
        with open(paths[size], "wb") as file:
            pickle.dump(recording(size), file, 4)
    truth = sum(sum(curve(1024)) for curve in CURVES.values())
    for sizes in ((64, 256), (256, 64), (64, 128, 256)):
        made = json.loads(forecast(vram, "--json", "--size", "1024", *(f"{size}={paths[size]}" for size in sizes)).stdout)
        if abs(made["allocated_bytes"] - truth) > truth / 5000 or not made["allocated_low_bytes"] <= truth <= made["allocated_high_bytes"]:
            found.append(f"{sizes}: {made['allocated_bytes']} ({made['allocated_low_bytes']} to {made['allocated_high_bytes']}) for {truth}")
        curves = {group["name"].split(":")[2]: group["curve"] for group in made["groups"]}
        if (curves["weights"], curves["activations"], curves["attention"], curves["mixed"]) != ("constant", "linear", "quadratic", "quadratic"):
            found.append(f"{sizes}: curves {curves}")
    text = forecast(vram, "--size", "1024", f"64={paths[64]}", f"256={paths[256]}").stdout
    if "at 1024\n" not in text or "model.py:10:attention" not in text:
        found.append(text)
    examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "recordings")
    unrelated = ("--size", "64", f"8={examples}/oom.pickle.gz", f"16={examples}/train.json.gz")
    for arguments, words in ((unrelated, "not runs of the same program"), (("--size", "1", f"64={paths[64]}"), "two or three"), (("--size", "1", f"64={paths[64]}", f"64={paths[128]}"), "same size"), (("--size", "x", f"1={paths[64]}", f"2={paths[128]}"), "invalid size"),
                             ((f"1={paths[64]}", f"2={paths[128]}"), "--size"), (("--size", "1", paths[64], paths[128]), "SIZE=FILE"), (("--size", "-1", f"1={paths[64]}", f"2={paths[128]}"), "above 0"),
                             (("--size", "nan", f"1={paths[64]}", f"2={paths[128]}"), "above 0"), (("--size", "1", f"0={paths[64]}", f"2={paths[128]}"), "above 0"),
                             (("--size", "1", "1=missing", f"2={paths[128]}"), "No such file"), (("--size", "1", "--by", "stack", f"1={paths[64]}", f"2={paths[128]}"), "stack")):
        made = forecast(vram, *arguments)
        if made.returncode not in (2, 3) or words not in made.stderr or made.stdout:
            found.append(f"{arguments}: {made.returncode}, {made.stderr!r}")


def check_real(vram, folder, found):
    def path(number):
        return glob.glob(os.path.join(folder, "snapshots", number + "_*"))[0]

    rows = [row for row in REAL if glob.glob(os.path.join(folder, "snapshots", row[0] + "_*"))]
    assert rows, "none of the rows is of this folder"
    for first, first_size, second, second_size, left_out, size in rows:
        made = json.loads(forecast(vram, "--json", "--size", str(size), f"{first_size}={path(first)}", f"{second_size}={path(second)}").stdout)
        device = json.loads(subprocess.run([vram, "report", "--json", path(left_out)], capture_output=True, timeout=120).stdout)["devices"]["0"]
        for kind, most in (("allocated", 0.002), ("reserved", 0.045)):
            truth = device[kind]["peak_bytes"]
            error = made[f"{kind}_bytes"] / truth - 1
            print(f"{first}, {second} -> {left_out}: {kind} {100 * error:+.3f} %")
            exempt = SMALL if kind == "reserved" else NOT_FOLLOWED
            if (abs(error) > most and first not in exempt) or not made[f"{kind}_low_bytes"] <= truth <= made[f"{kind}_high_bytes"]:
                found.append(f"{left_out}: {kind} {made[f'{kind}_bytes']} ({made[f'{kind}_low_bytes']} to {made[f'{kind}_high_bytes']}) for {truth}")


def main():
    found = []
    vram = os.path.abspath(sys.argv[1])
    if len(sys.argv) > 2:
        check_real(vram, sys.argv[2], found)
    else:
        with tempfile.TemporaryDirectory() as folder:
            check_made(vram, folder, found)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
