#!/usr/bin/env python3
"""Tests `vram forecast` on programs whose peak moves to another moment with another size: it forecasts from three runs, and the fourth is the truth.

usage: check_moments.py VRAM [FOLDER OF CASES]

Fails if more than one true peak is outside the range, or if the median error is above 3 %.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

import programs


def forecast(vram, at, runs):
    ran = subprocess.run([vram, "forecast", "--json", "--size", str(at), *(f"{size}={path}" for size, path in runs)], capture_output=True, text=True, timeout=120)
    return json.loads(ran.stdout)


def made_triples(folder, triples):
    for number, (name, (program, sizes, at)) in enumerate(triples.items()):
        runs = []
        for size in sizes:
            run = programs.Run(size)
            program(run)
            runs.append((size, os.path.join(folder, f"{number}.{size}.json")))
            with open(runs[-1][1], "w", encoding="utf-8") as file:
                json.dump(run.recording(), file)
        truth = programs.Run(at)
        program(truth)
        yield name, runs, at, truth.peak()


def shared_triples(cases, folder):
    """Returns the shared folder's cases, if it exists."""
    path = lambda size: os.path.join(cases, f"forecast_{size}.json")
    if os.path.exists(path(32)):
        yield "case of attention", [(size, path(size)) for size in (4, 8, 16)], 32, 1124 * programs.MIB
    script = os.path.join(cases, "forecast_phases.py")
    if os.path.exists(script):
        subprocess.run([sys.executable, script, folder], check=True)
        yield "case of phases", [(size, os.path.join(folder, f"{size}.pickle")) for size in (256, 512, 1024)], 4096, 16 << 30


def check(vram, title, triples):
    errors, outside = [], []
    for name, runs, at, truth in triples:
        made = forecast(vram, at, runs)
        error = made["allocated_bytes"] / truth - 1
        inside = made["allocated_low_bytes"] <= truth <= made["allocated_high_bytes"]
        errors.append(abs(error))
        outside += [] if inside else [name]
        print(f"{name}: {100 * error:+.2f} %, range {100 * made['allocated_low_bytes'] / truth:.1f} to {100 * made['allocated_high_bytes'] / truth:.1f} %{'' if inside else ', OUTSIDE'}")
    print(f"{title}: {len(errors)} triples, {len(errors) - len(outside)} in the range, median error {100 * statistics.median(errors):.2f} %, largest {100 * max(errors):.1f} %")
    return len(outside) <= 1 and statistics.median(errors) <= 0.03


def main():
    vram = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        sound = check(vram, "built with", [*made_triples(folder, programs.BUILT_WITH), *(shared_triples(sys.argv[2], folder) if len(sys.argv) > 2 else [])])
    with tempfile.TemporaryDirectory() as folder:
        sound = check(vram, "second", made_triples(folder, programs.SECOND)) and sound
    with tempfile.TemporaryDirectory() as folder:
        sound = check(vram, "held out", made_triples(folder, programs.HELD_OUT)) and sound
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
