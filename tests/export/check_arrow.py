#!/usr/bin/env python3
"""Reads Arrow files of `vram convert` without the writer's code, and compares them with the events' CSV and the report's JSON.
Usage: check_arrow.py VRAM RECORDING...
"""
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import arrow_reader

VRAM, RECORDINGS = sys.argv[1], sys.argv[2:]
failures = []


def run(*words, code=0):
    result = subprocess.run([VRAM, *map(str, words)], capture_output=True, text=True, timeout=300)
    if result.returncode != code:
        failures.append(f"{' '.join(map(str, words))}: exit code {result.returncode}, not {code}: {result.stderr}")
    return result


def same(what, got, wanted):
    if got != wanted:
        place = next((i for i, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1]), min(len(got), len(wanted))) if isinstance(got, list) else 0
        shown = (got[place:place + 2], wanted[place:place + 2]) if isinstance(got, list) else (got, wanted)
        failures.append(f"{what}: {shown[0]!r} at {place}, not {shown[1]!r}")


def check_events(folder, recording):
    run("convert", recording, "-o", folder / "e.arrow")
    run("convert", recording, "-o", folder / "e.events.csv")
    columns = arrow_reader.read(folder / "e.arrow")
    with open(folder / "e.events.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    texts = ("action", "category", "compile_context", "user_metadata", "site")
    for name in columns:
        wanted = [row[name] or None for row in rows]
        # The text files have a spreadsheet's apostrophe, and control characters as in a terminal.
        if name not in texts:
            wanted = [None if value is None else int(value) for value in wanted]
        else:
            wanted = [None if value is None else value.removeprefix("'") for value in wanted]
        same(f"{recording}: {name}", columns[name], wanted)
    return columns


def check_facts(folder, recording):
    report = json.loads(run("report", "--json", "--no-cure", recording).stdout)
    for table in ("peaks", "sites"):
        run("convert", "--table", table, recording, "-o", folder / f"{table}.arrow")
    peaks, sites = arrow_reader.read(folder / "peaks.arrow"), arrow_reader.read(folder / "sites.arrow")
    for i, (number, device) in enumerate(report["devices"].items()):
        mine = [n for n, d in enumerate(sites["device"]) if d == int(number)]
        groups = json.loads(run("report", "--by", "site", "--json", "--top", 1000000, "--device", number, recording).stdout)["groups"]
        same(f"{recording}: sites", sorted((sites["site"][n], sites["bytes"][n], sites["blocks"][n]) for n in mine),
             sorted((group["name"], group["bytes"], group["count"]) for group in groups))
        same(f"{recording}: sums", sum(sites["bytes"][n] for n in mine), device["allocated"]["peak_bytes"])
        same(f"{recording}: peak", peaks["allocated_peak_bytes"][i], device["allocated"]["peak_bytes"])
        same(f"{recording}: reserved", peaks["reserved_peak_bytes"][i], device["reserved"]["peak_bytes"])


def check_folder(folder, recordings):
    """A dataset: partitions in the path, no duplicates, invalid words refused."""
    out = folder / "tables"
    run("convert", "--to", "arrow", "--job", "a/b c", "--label", "commit=4c1f", *recordings, "-o", f"{out}/")
    events = sorted(out.glob("events/job=a%2Fb%20c/commit=4c1f/rank=*/device=*/*.arrow"))
    same("files", sorted(path.name for path in out.glob("**/*.arrow") if path.parts[len(out.parts)] == "events"), sorted(path.name for path in events))
    rows = sum(len(arrow_reader.read(path)["event"]) for path in events)
    wanted = sum(len(arrow_reader.read(p)["event"]) for p in [convert_alone(folder, r, i) for i, r in enumerate(recordings)])
    same("rows of the folder", rows, wanted)
    same("no column of the partitions", [name for path in events for name in arrow_reader.read(path) if name in ("device", "rank", "job")], [])
    for words in (["--label", "commit"], ["--label", "rank=3"], ["--label", "a=1", "--label", "a=2"], ["--label", "a/b=1"], ["--label", "=x"]):
        result = run("convert", "--to", "arrow", *words, recordings[0], "-o", f"{folder}/none/", code=2)
        same("one line", result.stderr.count("\n"), 1)
    same("nothing was made", (folder / "none").exists(), False)
    run("convert", "--to", "json", recordings[0], "-o", f"{folder}/none/", code=3)
    run("convert", "--job", "1", recordings[0], "-o", folder / "x.arrow", code=2)
    run("convert", *recordings[:1] * 2, "-o", folder / "x.arrow", code=2)
    ranked = folder / ("mem_rank3" + "".join(Path(recordings[0]).suffixes))
    shutil.copy(recordings[0], ranked)
    same("twice", run("convert", "--to", "arrow", ranked, ranked, "-o", f"{folder}/twice/", code=3).stderr.count("\n"), 1)
    same("its rank", len(list((folder / "twice/events/job=job/rank=3").iterdir())) > 0, True)


def convert_alone(folder, recording, number):
    path = folder / f"alone{number}.arrow"
    run("convert", recording, "-o", path)
    return path


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for recording in RECORDINGS:
            columns = check_events(folder, recording)
            check_facts(folder, recording)
            run("convert", "--table", "stacks", recording, "-o", folder / "s.feather")
            stacks = arrow_reader.read(folder / "s.feather")
            known = set(stacks["stack"])
            same(f"{recording}: stacks", [s for s in columns["stack"] if s is not None and s not in known], [])
        check_folder(folder, RECORDINGS)
    for failure in failures[:20]:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
