#!/usr/bin/env python3
"""Tests `vram forecast` on PyTorch programs whose peak moves to another moment with another size: forecasts from three runs, and compares with a fourth.

usage: forecasts.py VRAM

The table is truth/sizes.tsv. Fails if the peak of a program not marked as open is outside its range; if that of a marked one is inside,
because the mark should then be removed; or if the median error is above 3 %.
"""
import json
import pathlib
import statistics
import sys

import surfaces

HERE = pathlib.Path(__file__).resolve().parent
MOST_OPEN = 3  # the goal is one of twelve


def rows():
    for line in (HERE / "truth/sizes.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith(("#", "program\t")):
            program, sizes, asked, peak, note = line.split("\t")
            yield program, sizes.split(","), asked, int(peak), note


def main():
    vram, errors, wrong, still_open = sys.argv[1], [], 0, 0
    for program, sizes, asked, peak, note in rows():
        runs = [f"{size}={HERE / 'recordings/sizes' / f'{program}.{size}.pickle.gz'}" for size in sizes]
        made = json.loads(surfaces.run(vram, "forecast", "--json", "--size", asked, *runs).stdout)
        error, inside = made["allocated_bytes"] / peak - 1, made["allocated_low_bytes"] <= peak <= made["allocated_high_bytes"]
        errors += [] if note == "used" else [abs(error)]
        still_open += note == "open"
        wrong += inside == (note == "open")
        print(f"{program}: {100 * error:+.2f} %, range {100 * made['allocated_low_bytes'] / peak:.1f} to {100 * made['allocated_high_bytes'] / peak:.1f} %{'' if inside else ', outside'}{' ' if note else ''}{note}")
    median = statistics.median(errors)
    print(f"{len(errors)} programs that were not used: {still_open} outside of the range, median error {100 * median:.2f} %")
    return 1 if wrong or still_open > MOST_OPEN or median > 0.03 else 0


if __name__ == "__main__":
    sys.exit(main())
