#!/usr/bin/env python3
"""Runs the programs that use PyTorch with PyTorch's own sanitizer (TORCH_CUDA_SANITIZER=1) under `vram sim`.

Usage: against_pytorch.py VRAM [NAME...]

Prints a line for each program and then a table by kinds, which tests/check/README.md has: the mistakes that the sanitizer reports, and the
twins that it reports. A mistake counts as found only if its twin is not reported. Programs of one rank are forks of one process that
has loaded PyTorch.
"""
import collections
import subprocess
import sys
import tempfile
from pathlib import Path

import check_programs as sources

REPORT = "CSAN detected a possible data race"
LIMIT_S = 3600
FORKS = """
import os, runpy, sys, traceback, torch
for file in sys.argv[1:]:
    if os.fork() == 0:
        os.dup2(os.open(file + ".err", os.O_CREAT | os.O_WRONLY), 2)
        code = 0
        try:
            runpy.run_path(file, run_name="__main__")
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stderr.flush()
        os._exit(code)
    os.wait()
"""


def sanitize(vram, arguments):
    """Runs a command under the sanitizer, which prints its reports and raises an error. Returns what it wrote to standard error."""
    environment = {**sources.environment("pytorch"), "TORCH_CUDA_SANITIZER": "1"}
    return subprocess.run([vram, "sim", "--devices", "2", "--", *arguments], capture_output=True, text=True, env=environment, check=False, timeout=LIMIT_S).stderr


def write(program, folder):
    """Writes the mistake and its twin, and returns their files."""
    files = [folder / "mistake" / program.path.name, folder / "twin" / program.path.name]
    for file, text in zip(files, (program.source(), program.twin())):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return files


def answers(vram, programs, folder):
    """Yields each program with what was written to standard error by the mistake and by the twin."""
    files = {program: write(program, folder) for program in programs}
    forked = [str(file) for program in programs if program.language != "ranks" for file in files[program]]
    if forked:
        sanitize(vram, [sources.interpreter("pytorch"), "-c", FORKS, *forked])
    for program in programs:
        if program.language == "ranks":
            yield program, *(sanitize(vram, sources.command(program, file, [])[1]) for file in files[program])
        else:
            yield program, *(file.with_name(file.name + ".err").read_text(encoding="utf-8") for file in files[program])


def main():
    vram, names = sys.argv[1], sys.argv[2:]
    programs = [program for program in sources.programs() if program.language in ("pytorch", "triton", "ranks") and (not names or program.name in names)]
    rows = collections.defaultdict(lambda: [0, 0, 0])
    with tempfile.TemporaryDirectory() as folder:
        for program, of_mistake, of_twin in answers(vram, programs, Path(folder)):
            mistake, twin = REPORT in of_mistake, REPORT in of_twin
            if "Traceback" in of_mistake + of_twin and not (mistake or twin):
                print(f"{program.name} fails without a report: {(of_mistake + of_twin)[-300:]}")
            answer = "reports the twin" if twin else "found" if mistake else "missed"
            print(f"{program.language}/{program.name}\t{'|'.join(program.kinds)}\t{answer}", flush=True)
            for row in (rows[program.kinds[0]], rows["all"]):
                row[0] += 1
                row[1] += mistake and not twin
                row[2] += twin
    print("\n| kind | programs | found | twins reported |\n|---|---|---|---|")
    for kind in [*sorted(rows.keys() - {"all"}), "all"]:
        print(f"| {kind} | {' | '.join(map(str, rows[kind]))} |")


if __name__ == "__main__":
    main()
