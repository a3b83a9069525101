#!/usr/bin/env python3
"""Measures other estimators on the programs of truth.toml, whose truth is a real GPU's recording: PyTorch's MemTracker (under `vram sim`, because it
needs a device), accelerate's estimate-memory, fitcheck-llm, vramcalc.

usage: fit_peers.py (--truth FILE | --own) --out FILE [ID...]
--truth FILE: the output of truth.py --out. --own: our own programs (programs/peer_programs.py) for another table, in which the answer of `vram fit`
is the truth. VRAM_PEERS: a folder with the calculators (pip install --target FOLDER --no-deps accelerate fitcheck-llm vramcalc huggingface_hub
safetensors). fit_tables.py makes the tables of fit_measured.md from both outputs."""
import argparse
import json
import os
import pathlib
import shlex
import sys
import tempfile
import tomllib

import check_real
import truth

HERE = pathlib.Path(__file__).resolve().parent
PEERS = os.environ.get("VRAM_PEERS", "")
SECONDS = 900
CALCULATORS = ("accelerate", "fitcheck", "vramcalc")
NO_MODEL = "no language model that it knows"


def answer_of(command, variables, folder):
    """Returns {allocated, seconds, processor, host} or {failed, seconds}."""
    log = pathlib.Path(folder) / "peer"
    code, took = truth.run_timed(command, variables, folder, log, SECONDS)
    if code != 0:
        return {"failed": f"over {SECONDS} s" if code == "time" else check_real.cause(log.with_suffix(".errors"), code), **took}
    return {**json.loads(check_real.last_lines(log)[-1]), **took}


def memtracker(run):
    command = shlex.split(run.filled(run.group["command"], run.python()))
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / "run"
        variables = {**truth.prepared([run], folder), "VRAM_TRUTH_SKIP": "", "VRAM_TRUTH_END": ""}
        wrapped = [command[0], HERE / "peers/memtracker.py", run.snapshot(), *command[1:]]
        return answer_of([check_real.BUILD / "cli/vram", "sim", "--card", run.device, "--", *wrapped], variables, folder)


def calculator(name, run, setting):
    if name == "accelerate" and not ("model" in setting or "parameters" in setting) or name != "accelerate" and "model" not in setting:
        return {"failed": NO_MODEL}
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "PYTHONPATH": PEERS, "HF_HUB_OFFLINE": "1"}
        outside = [check_real.BUILD / "cli/vram", "sim", "--"] if name == "accelerate" else []  # torch needs the simulator's libraries
        return answer_of([*outside, run.python(), HERE / "peers/calculators.py", name, json.dumps(setting)], variables, folder)


def answers(run, setting):
    return {"id": run.id, "memtracker": memtracker(run), **{name: calculator(name, run, setting) for name in CALCULATORS}}


def own_runs(table):
    """Returns this project's own programs in the form of programs with recordings."""
    group = {"environment": "models", "device": "a100-80", "sources": [], "repository": "", "snapshot": "none", "command": "{python} {here}/programs/peer_programs.py {0}"}
    return [truth.Run(name, group, name) for name in table]


def own_truth(run):
    """Returns the answer of `vram fit` as a row of truth.py, with both columns equal, because there is no other truth here."""
    with tempfile.TemporaryDirectory() as work:
        answer = truth.run_fit([run], pathlib.Path(work) / run.id)
    if "failed" in answer:
        return {"failed": answer["failed"]}
    return {"id": run.id, "allocated": [answer["allocated_bytes"]] * 2, "reserved": [answer["reserved_bytes"]] * 2,
            "fit": {name: answer[name] for name in ("seconds", "processor", "host")}}


def wanted_runs(options, table):
    """Yields (run, its row of the truth, its setting). Missing ones are named and left out."""
    settings = table["own" if options.own else "settings"]
    known = {} if options.own else {row["id"]: row for row in json.loads(options.truth.read_text())}
    for run in own_runs(settings) if options.own else truth.read_runs():
        if run.id not in settings or (options.ids and run.id not in options.ids):
            continue
        if options.own:
            absent, row = "" if run.python().exists() else f"no environment {run.environment}", None
        else:
            row = known.get(run.id, {})
            absent = run.absent() or ("" if "allocated" in row else "truth.py has not measured it")
        if absent:
            print(f"skipped {run.id}: {absent}")
            continue
        row = row or own_truth(run)
        setting = dict(settings[run.id])
        if "model" in setting:
            setting["model"] = table["models"][setting["model"]]
        yield run, row, setting


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--truth", type=pathlib.Path)
    source.add_argument("--own", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("ids", nargs="*")
    options = parser.parse_args()
    with open(HERE / "peers/settings.toml", "rb") as file:
        table = tomllib.load(file)
    for run, row, setting in wanted_runs(options, table):
        if "failed" in row:
            print(f"FAILS {run.id}  {row['failed']}", flush=True)
            continue
        result = answers(run, setting)
        real = row["allocated"][0]
        print(run.id, *(f"{name} {told['failed'] if 'failed' in told else format(100 * (told['allocated'] / real - 1), '+.2f') + ' %'} {told.get('processor', '')} s"
                        for name, told in result.items() if name != "id"), sep="  ", flush=True)
        truth.keep_results(options.out, [{**result, "own": row}] if options.own else [result])
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
