#!/usr/bin/env python3
"""Replays every real recording: exactly as recorded, and with other settings.

usage: check_recordings.py VRAM PEAKS.csv CHECK_PLACEMENTS.py FOLDER     (FOLDER has snapshots/, and optionally peaks.csv instead of PEAKS.csv)

Exact: every history must be reproduced in every placement, segment, release and final block, with the known totals. The one machine-made
recording must be recognized. CHECK_PLACEMENTS.py checks some placements independently.
What if: the peaks of reserved memory must be those of PEAKS.csv. With paged memory, histories whose sizes grow or repeat late need few calls. Exit 0 if all agree, 1 if there is a difference.
"""
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile

MIB = 1 << 20
MACHINE_MADE = "022"
TOTALS = ({"histories": 51, "allocations": 119169, "segment_events": 8543, "releases": 6564, "oom_events": 1},
          {"histories": 23, "allocations": 12667, "segment_events": 616, "releases": 253, "oom_events": 2})  # the shared set, our own
SECOND_OPINION = ("055", "088", "104")
COLUMNS = (
    ("recorded_start_own_settings", ["--start", "recorded"]),
    ("cold_default", ["--conf", ""]),
    ("cold_expandable", ["--conf", "expandable_segments:True"]),
    ("cold_max_split_128", ["--conf", "max_split_size_mb:128"]),
)
PAGED_CALLS = {"o06": 2456, "o11": 14486, "o20": 12762}  # most calls that map memory with paged:True, in one replay
PAIRS = (
    ("allocations", "at_recorded_address"),
    ("segment_events", "segment_events_agreeing"),
    ("releases", "releases_agreeing"),
    ("oom_events", "oom_events_agreeing"),
    ("final_blocks", "final_blocks_equal"),
)


def run(vram, *arguments):
    done = subprocess.run([vram, "replay", "--json", *arguments], capture_output=True)
    if done.returncode > 1:
        raise SystemExit("%s: exit code %d: %s" % (arguments, done.returncode, done.stderr.decode(errors="replace")))
    return done.returncode, json.loads(done.stdout)


def check_exact(vram, snapshots):
    wrong, totals = [], dict.fromkeys(TOTALS[0], 0)
    for path in snapshots:
        number = os.path.basename(path)[:3]
        code, got = run(vram, "--exact", path)
        for device in got["devices"]:
            where = "%s device %d" % (number, device["device"])
            if number == MACHINE_MADE:
                if device["verdict"] != "contradiction" or not device["reason"] or code != 1:
                    wrong.append("%s: not recognised as contradictory" % where)
                continue
            wrong += ["%s: %s %d, %s %d" % (where, a, device[a], b, device[b]) for a, b in PAIRS if device[a] != device[b]]
            if device["verdict"] not in ("equal", "no_history") or device["final_blocks_extra"] or device["difference_count"]:
                wrong.append("%s: %s" % (where, device["verdict"]))
            totals["histories"] += device["allocations"] > 0
            for key in totals:
                totals[key] += device.get(key, 0)
        if number != MACHINE_MADE and code != 0:
            wrong.append("%s: exit code %d" % (number, code))
    if totals not in TOTALS:
        wrong.append("other totals than those that are known")
    print("exact: " + ", ".join("%s %d" % item for item in totals.items()))
    return wrong


def check_placements(vram, snapshots, checker):
    wrong = []
    if not os.path.isfile(checker):
        print("placements: no second opinion here (%s)" % checker)
        return wrong
    for path in snapshots:
        if os.path.basename(path)[:3] not in SECOND_OPINION:
            continue
        with tempfile.TemporaryDirectory() as folder:
            placements = os.path.join(folder, "placements.csv")
            run(vram, "--exact", "--placements", placements, path)
            with open(placements, newline="") as file:
                rows = ["%s,%s" % (row[1], row[2]) for row in list(csv.reader(file))[1:]]
            done = subprocess.run([sys.executable, checker, path, "-"], input="\n".join(rows).encode(), capture_output=True)
        print("placements: " + done.stdout.decode().strip())
        if done.returncode != 0:
            wrong.append("%s: the checker of placements disagrees" % path)
    return wrong


def check_peaks(vram, snapshots, peaks):
    wrong, compared = [], 0
    with open(peaks, newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for path in snapshots:
        number = os.path.basename(path)[:3]
        wanted = {int(row["device"]): row for row in rows if row["id"] == number}
        if not wanted:
            continue
        for column, arguments in COLUMNS:
            if column not in rows[0]:
                continue
            devices = {device["device"]: device for device in run(vram, *arguments, path)[1]["runs"][0]["devices"]}
            for device, row in wanted.items():
                got = devices[device]["peak_reserved_bytes"] / MIB
                compared += 1
                if abs(got - float(row[column])) >= 0.05:
                    wrong.append("%s device %d %s: %.1f MiB, not %s" % (number, device, column, got, row[column]))
    expected = sum(column in rows[0] for column, _ in COLUMNS) * len(rows)
    if compared != expected:
        wrong.append("%d peaks compared, not %d" % (compared, expected))
    print("what if: %d peaks compared" % compared)
    return wrong


def check_paged_calls(vram, snapshots):
    wrong = []
    for path in snapshots:
        most = PAGED_CALLS.get(os.path.basename(path)[:3])
        if most is None:
            continue
        (device,) = run(vram, "--conf", "paged:True", path)[1]["runs"][0]["devices"]
        calls = sum(count for name, count in device["driver_calls"].items() if name.startswith("cuMem") and name != "cuMemGetInfo")
        print("paged: %s %d calls" % (os.path.basename(path)[:3], calls))
        if calls > most:
            wrong.append("%s: %d driver calls with paged memory, more than %d" % (os.path.basename(path), calls, most))
    return wrong


def main(vram, peaks, checker, folder):
    snapshots = sorted(glob.glob(os.path.join(folder, "snapshots", "*")))
    own_peaks = os.path.join(folder, "peaks.csv")
    peaks = own_peaks if os.path.exists(own_peaks) else peaks
    wrong = check_exact(vram, snapshots) + check_placements(vram, snapshots, checker) + check_peaks(vram, snapshots, peaks)
    wrong += check_paged_calls(vram, snapshots)
    for line in wrong:
        print("differs: " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 5:
        raise SystemExit(__doc__)
    raise SystemExit(main(*sys.argv[1:]))
