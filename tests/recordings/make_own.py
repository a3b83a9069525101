#!/usr/bin/env python3
"""Makes own.tar.zst: recordings of programs.py by several versions of real PyTorch on the simulated device, with known facts about each.

usage: make_own.py --vram VRAM --torch 2.0=PYTHON --torch 2.1=PYTHON ... --out FOLDER [ID...]

FOLDER gets snapshots/ID_NAME, facts/ID.json (by replay_reference.py), peaks.csv (the memory PyTorch reserved when the same program ran with other
settings, not computed by this project) and oom/ID_deviceN.txt for `explain.recordings`, which its --update writes and a person reads.
Pack it with:  tar -C FOLDER --sort=name --mtime=2026-01-01 --owner=0 --group=0 --numeric-owner -c . | zstd -19 --long=27 > own.tar.zst
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
EXPANDABLE = "expandable_segments:True"
COLUMNS = {"cold_default": "", "cold_expandable": EXPANDABLE, "cold_max_split_128": "max_split_size_mb:128"}

# id -> program, PyTorch's version, file extension, option string, simulated devices and their memory
RECORDINGS = {
    "o01": ("segments", "2.0", ".pickle", "", ""), "o02": ("train", "2.0", ".pickle", "", ""), "o03": ("streams", "2.1", ".pickle", "", ""),
    "o04": ("infer", "2.1", ".json", "", ""), "o05": ("late", "2.3", ".pickle", "", ""), "o06": ("emptied", "2.3", ".pickle", "", ""),
    "o07": ("train", "2.6", ".html", "", ""), "o08": ("graphs", "2.6", ".pickle", "", ""), "o09": ("two_devices", "2.6", ".pickle", EXPANDABLE, "devices=2"),
    "o10": ("annotated", "2.6", ".pickle", "", ""), "o11": ("out_of_memory", "2.6", ".pickle", "", "memory=2GiB"), "o12": ("segments", "2.15", ".list.pickle", "", ""),
    "o13": ("leak", "2.15", ".pickle", "", ""), "o14": ("rows_1024", "2.15", ".pickle", "", ""), "o15": ("rows_2048", "2.15", ".pickle", "", ""),
    "o16": ("rows_4096", "2.15", ".pickle", "", ""), "o17": ("compiled", "2.15", ".pickle", "", ""), "o18": ("ring", "2.15", ".pickle", "", ""),
    "o19": ("emptied", "2.15", ".pickle", EXPANDABLE, ""), "o20": ("out_of_memory", "2.15", ".pickle", EXPANDABLE, "memory=2GiB"),
    "o21": ("streams", "2.15", ".pickle", "max_split_size_mb:20", ""), "o22": ("train=1024", "2.15", ".pickle", "", ""),
    "o23": ("train=2048", "2.15", ".pickle", "", ""), "o24": ("train=4096", "2.15", ".pickle", "", ""),
}
FROM_THE_START = {"train", "rows_1024", "rows_2048", "rows_4096", "infer", "streams", "emptied", "graphs", "annotated", "two_devices"}


def run_program(options, python, devices, conf, *arguments):
    settings = ["addresses=rising", "bytes=none", *([devices] if devices else [])]
    command = [options.vram, "sim", "--card", "a100-80", "--set", ",".join(settings), "--", python, HERE / "programs.py", *arguments]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTORCH_CUDA_ALLOC_CONF": conf, "PYTORCH_ALLOC_CONF": conf}
    if not conf:
        del variables["PYTORCH_CUDA_ALLOC_CONF"], variables["PYTORCH_ALLOC_CONF"]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=variables, cwd=HERE).stdout


def peaks_of(options, identity):
    """Returns a row for each device that the program uses: its peak of reserved MiB in PyTorch itself, with each setting."""
    name, version, _, _, devices = RECORDINGS[identity]
    if name.partition("=")[0] not in FROM_THE_START or version == "2.0":  # 2.0 has no expandable segments
        return []
    columns = {column: json.loads(run_program(options, options.pythons[version], devices, conf, name, "--peak")) for column, conf in COLUMNS.items()}
    return [{"id": identity, "device": device, **{column: peaks[device] / 2**20 for column, peaks in columns.items()}}
            for device in range(2 if name == "two_devices" else 1)]


def make(options, identity):
    name, version, ending, conf, devices = RECORDINGS[identity]
    path = options.out / "snapshots" / f"{identity}_{name}_{version}{ending}"
    run_program(options, options.pythons[version], devices, conf, name, path)
    facts = subprocess.run([sys.executable, HERE / "replay_reference.py", path], check=True, capture_output=True, text=True).stdout
    (options.out / "facts" / f"{identity}.json").write_text(facts, encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size:,} bytes", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--vram", required=True, type=pathlib.Path)
    parser.add_argument("--torch", action="append", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("ids", nargs="*")
    options = parser.parse_args()
    options.vram, options.pythons = options.vram.resolve(), dict(pair.split("=", 1) for pair in options.torch)
    for folder in ("snapshots", "facts"):
        (options.out / folder).mkdir(parents=True, exist_ok=True)
    rows = []
    for identity in options.ids or RECORDINGS:
        make(options, identity)
        rows += peaks_of(options, identity)
    with open(options.out / "peaks.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("id", "device", *COLUMNS))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
