#!/usr/bin/env python3
"""Starts the vLLM of an environment with a small model and its defaults under `vram fit`, and records whether it serves: one line for each version.

usage: start_versions.py run VRAM RESULTS      with the environment's folder of programs first in PATH
       start_versions.py table RESULTS         prints the table of docs/fit.md"""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "programs"))
from small_llama import CONFIG
from start_logs import free_port, serve_command, write_model

COLUMNS = ("vllm", "torch", "transformers", "engine", "ended", "tokens", "graphs")
PACKAGES = COLUMNS[:3]
MOST = "15m"


def versions():
    code = f"import importlib.metadata as m; print(*[m.version(each) for each in {PACKAGES}])"
    return subprocess.run(["python", "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def answer_of(vram):
    """Returns the answer and what the engine printed."""
    with tempfile.TemporaryDirectory(prefix="start.") as folder:
        write_model(pathlib.Path(folder), CONFIG)
        serve = [*serve_command(folder), "--max-model-len", "1024", "--port", str(free_port())]
        caches = {name: f"{folder}/{name}" for name in ("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR")}
        run = subprocess.run([vram, "fit", "--json", "--for", MOST, "--", *serve], capture_output=True, text=True, errors="replace",
                             env={**os.environ, **caches}, check=False)
    return json.loads(run.stdout or "{}"), run.stderr


def ended(answer):
    """Returns how the start ended: "ready", or the failure in plain words."""
    failure = answer.get("failure")
    if not failure:
        return answer.get("ended", "no answer")
    missing = re.search(r"No module named '([\w.]+)'", failure["exception"])
    if "gaierror" in failure["exception"]:
        return "failed: it asks a name server for an address, and the machine had none"
    return f"failed: its package installs no {missing[1]}" if missing else f"failed: {failure['exception'] or failure['text']}"


def run(vram, path):
    answer, log = answer_of(vram)
    serving = answer.get("serving") or {}
    path.with_suffix(".logs").mkdir(exist_ok=True)
    found = dict(zip(PACKAGES, versions()))
    path.with_suffix(".logs").joinpath(f"{found['vllm']}.log").write_text(log)
    engine = "V1" if "Available KV cache memory" in log or "GPU KV cache size" in log else "V0" if "blocks:" in log else ""
    found.update(engine=engine, ended=ended(answer), tokens=serving.get("tokens", ""), graphs=serving.get("graphs", ""))
    print(found, flush=True)
    lines = [line for line in read(path) if line["vllm"] != found["vllm"]] + [found]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: [int(part) for part in line["vllm"].split(".")[:3]]))


def read(path):
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def print_table(lines):
    print("| vLLM | PyTorch | transformers | engine | ended | tokens | graphs |\n|---|---|---|---|---|--:|--:|")
    for line in lines:
        print(f"| {' | '.join(line[name] for name in COLUMNS)} |")


if __name__ == "__main__":
    if sys.argv[1] == "table":
        print_table(read(pathlib.Path(sys.argv[2])))
    else:
        run(os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3]))
