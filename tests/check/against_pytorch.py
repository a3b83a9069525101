#!/usr/bin/env python3
"""Runs the programs that use PyTorch with PyTorch's own sanitizer (TORCH_CUDA_SANITIZER=1) under `vram sim`.

Usage: against_pytorch.py VRAM [NAME...]

Prints a line for each program and then a table by kinds, which tests/check/README.md has: the mistakes that the sanitizer reports, and the
twins that it reports. A mistake counts as found only if its twin is not reported.
"""
import collections
import subprocess
import sys
import tempfile
from pathlib import Path

import check_programs as sources

LANGUAGES = "pytorch", "triton", "ranks"
REPORT = "CSAN detected a possible data race"
LIMIT_S = 300


def reports(vram, program, is_twin, folder):
    """Returns whether the sanitizer reports something. It prints the report and raises an error, so programs may exit with 1."""
    file = Path(folder) / program.path.name
    file.write_text(program.twin() if is_twin else program.source(), encoding="utf-8")
    _, arguments = sources.command(program, file, [])
    result = subprocess.run([vram, "sim", "--devices", "2", "--", *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                            env={**sources.environment(program.language), "TORCH_CUDA_SANITIZER": "1", "TRITON_CACHE_DIR": f"{folder}/triton"})
    found = REPORT in result.stderr
    if result.returncode != 0 and not found:
        print(f"{program.name}: exits {result.returncode} without a report: {result.stderr[-300:]}")
    return found


def main():
    vram, names = sys.argv[1], sys.argv[2:]
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for program in sources.programs():
        if program.language not in LANGUAGES or (names and program.name not in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            mistake, twin = (reports(vram, program, is_twin, folder) for is_twin in (False, True))
        answer = "reports the twin" if twin else "found" if mistake else "missed"
        print(f"{program.language}/{program.name}\t{'|'.join(program.kinds)}\t{answer}", flush=True)
        row = rows[program.kinds[0]]
        row[0] += 1
        row[1] += mistake and not twin
        row[2] += twin
    print("\n| kind | programs | found | twins reported |\n|---|---|---|---|")
    for kind, row in sorted(rows.items()):
        print(f"| {kind} | {' | '.join(map(str, row))} |")
    print(f"| all | {' | '.join(str(sum(row[i] for row in rows.values())) for i in range(3))} |")


if __name__ == "__main__":
    main()
