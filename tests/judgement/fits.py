#!/usr/bin/env python3
"""Tests the output of `vram fit` about programs that end well, fail, are killed or are interrupted. The truth is truth/fits.toml.

usage: fits.py VRAM"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name and not name.startswith(("VRAM_", "PYTHON"))}
PROGRAM = """import sys, torch
weights, optimizer = torch.empty(64 << 20), torch.Optimizer()
{setup}
for step in range(6):
    batch = torch.empty(32 << 20)
    torch.free(batch)
    {step}
    optimizer.step()
{at_end}
"""


def fit(vram, row, *options):
    program = PROGRAM.format(setup=row.get("setup", ""), step=row.get("step", "pass"), at_end=row.get("at_end", ""))
    with tempfile.TemporaryDirectory() as folder:
        environment = {**ENVIRONMENT, "PYTHONPATH": str(HERE.parent / "fit/fake"), "TMPDIR": folder}
        command = [vram, "fit", "-q", *options, *row.get("arguments", ["--card", "h100"]), "--", sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment, check=False)


def judge(vram, row):
    text, answer = fit(vram, row), fit(vram, row, "--json")
    flat = " ".join(text.stdout.split())
    yield from (f"does not say /{pattern}/: {flat[:500]}" for pattern in row.get("said", []) if not re.search(pattern, flat))
    yield from (f"says /{pattern}/: {flat[:500]}" for pattern in row.get("never", []) if re.search(pattern, flat))
    if text.returncode != row["exit"] or answer.returncode != row["exit"]:
        yield f"ends with {text.returncode} and {answer.returncode}, not {row['exit']}"
    if json.loads(answer.stdout)["fits"] is not row.get("fits"):
        yield f"JSON says that it fits: {json.loads(answer.stdout)['fits']}"


def main():
    vram, wrong = os.path.abspath(sys.argv[1]), 0
    table = tomllib.loads((HERE / "truth/fits.toml").read_text(encoding="utf-8"))
    for name, row in table.items():
        found = list(judge(vram, row))
        wrong += bool(found)
        print("".join(f"{name}: {line}\n" for line in found), end="")
    print(f"fits: {len(table)} programs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
