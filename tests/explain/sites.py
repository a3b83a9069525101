#!/usr/bin/env python3
"""Text, JSON, groups, MCP, SQLite, Arrow and the page's engine all name a stack's call site by the same frame.

usage: sites.py VRAM
"""
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile

from causes import MIB, Device, frames, run

BACKWARD = ("??", 0, "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)")
# Frames, and the expected name of their site.
STACKS = (
    (frames(("??", 0, "torch::unwind::unwind()"), BACKWARD, ("??", 0, "at::_ops::bmm::call(at::Tensor const&)")), "??:0:" + BACKWARD[2]),
    (frames(("/env/lib/python3.12/site-packages/einops/_backends.py", 288, "einsum"), ("/app/model.py", 36, "forward")), "/app/model.py:36:forward"),
    (frames(("/env/lib/python3.12/site-packages/torch/nn/functional.py", 5, "linear"), ("/env/bin/litgpt", 8, "<module>")), "/env/lib/python3.12/site-packages/torch/nn/functional.py:5:linear"),
    (frames(("/tmp/torchinductor_me/ab/cabc.py", 300, "call"), ("/app/train.py", 12, "step")), "/app/train.py:12:step"),
)


def names_of(vram, path, folder):
    report = json.loads(run(vram, "report", "--json", path).stdout)["devices"]["0"]
    yield "report --json", {row["site"] for row in report["allocated"]["top_sites_at_peak"]}
    yield "report --json, longest lived", {row["site"] for row in report["allocated"]["longest_lived"]} or None
    groups = json.loads(run(vram, "report", "--site", "--json", path).stdout)["groups"]
    yield "report --site --json", {row["name"] for row in groups}
    database = os.path.join(folder, "made.sqlite")
    run(vram, "convert", path, "-o", database)
    rows = sqlite3.connect(database).execute("SELECT filename, line, name FROM sites WHERE name IS NOT NULL")
    yield "SQLite", {f"{file}:{line}:{name}" for file, line, name in rows}


def check(vram, folder):
    device, path = Device(), os.path.join(folder, "made.pickle")
    for i, (stack, _) in enumerate(STACKS):
        device.take((3 + i) * MIB, stack)
    with open(path, "wb") as file:
        pickle.dump(device.recording(), file, 4)
    wanted = {name for _, name in STACKS}
    for place, found in names_of(vram, path, folder):
        assert found is None or found == wanted, f"{place}: {sorted(found - wanted)} instead of {sorted(wanted - found)}"
    text, arrow = run(vram, "report", path).stdout, os.path.join(folder, "made.arrow")
    run(vram, "convert", "--table", "sites", path, "-o", arrow)
    with open(arrow, "rb") as file:
        table = file.read()
    for name in wanted:
        shown = name.removeprefix("??:0:").split("(")[0] if name.startswith("??") else os.path.basename(name)
        assert shown in text, f"the text does not name {shown}"
        assert name.split(":")[-1].encode() in table, f"Arrow does not have {name}"
    assert b"torch::unwind" not in table and "torch::unwind" not in text
    plain = json.loads(run(vram, "report", "--json", "--plain-sites", path).stdout)["devices"]["0"]["allocated"]["top_sites_at_peak"]
    assert "??:0:torch::unwind::unwind()" in {row["site"] for row in plain}, "as other tools name it"


def main():
    with tempfile.TemporaryDirectory() as folder:
        check(os.path.abspath(sys.argv[1]), folder)
    print("one notion of a call site")


if __name__ == "__main__":
    main()
