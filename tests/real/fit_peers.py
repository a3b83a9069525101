#!/usr/bin/env python3
"""Other estimates for the programs of truth.toml, where the truth is a real GPU's recording: PyTorch's MemTracker (under `vram sim`, for it wants a
device), accelerate's estimate-memory, fitcheck-llm, vramcalc.

usage: fit_peers.py --truth FILE --out FILE [ID...]
FILE of --truth is what truth.py --out wrote. VRAM_PEERS: a folder with the calculators (pip install --target FOLDER --no-deps accelerate fitcheck-llm
vramcalc huggingface_hub safetensors). fit_tables.py makes the tables of docs/fit.md from both files."""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import tomllib

import check_real
import truth

HERE = pathlib.Path(__file__).resolve().parent
PEERS = os.environ.get("VRAM_PEERS", "")
SECONDS = 300
CALCULATORS = ("accelerate", "fitcheck", "vramcalc")


def run_timed(command, variables, folder):
    """{allocated, seconds, host} or {failed, seconds}."""
    log = pathlib.Path(folder) / "peer"
    with open(log, "wb") as file:
        begun = truth.time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=variables, cwd=folder,
                                   start_new_session=True)
        code, usage = truth.wait_for(process, begun, lambda: truth.time.monotonic() > begun + SECONDS)
    seconds = round(truth.time.monotonic() - begun, 1)
    if code != 0:
        return {"failed": f"over {SECONDS} s" if code == "stopped" else check_real.cause(log, code), "seconds": seconds}
    return {**json.loads(check_real.last_lines(log)[-1]), "seconds": seconds, "host": usage.ru_maxrss * 1024}


def memtracker(run):
    command = shlex.split(run.filled(run.group["command"], run.python()))
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / "run"
        variables = truth.prepared(run, folder)
        wrapped = [command[0], HERE / "peers/memtracker.py", run.snapshot(), *command[1:]]
        return run_timed([check_real.BUILD / "cli/vram", "sim", "--device", run.device, "--", *wrapped], variables, folder)


def calculator(name, run, setting):
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "PYTHONPATH": PEERS, "HF_HUB_OFFLINE": "1"}
        outside = [check_real.BUILD / "cli/vram", "sim", "--"] if name == "accelerate" else []  # it imports torch, which wants libraries
        return run_timed([*outside, run.python(), HERE / "peers/calculators.py", name, json.dumps(setting)], variables, folder)


def answers(run, setting):
    result = {"id": run.id, "memtracker": memtracker(run)}
    for name in CALCULATORS:
        result[name] = calculator(name, run, setting) if setting else {"failed": "no language model"}
    return result


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].splitlines()[0])
    parser.add_argument("--truth", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("ids", nargs="*")
    options = parser.parse_args()
    with open(HERE / "peers/settings.toml", "rb") as file:
        table = tomllib.load(file)
    known = {row["id"]: row for row in json.loads(options.truth.read_text())}
    for run in truth.read_runs():
        if run.id not in table["settings"] or (options.ids and run.id not in options.ids):
            continue
        absent = run.absent() or ("" if "allocated" in known.get(run.id, {}) else "truth.py has not measured it")
        if absent:
            print(f"skipped {run.id}: {absent}")
            continue
        setting = dict(table["settings"][run.id])
        if setting:
            setting["model"] = table["models"][setting["model"]]
        result = answers(run, setting)
        real = known[run.id]["allocated"][0]
        print(run.id, *(f"{name} {row['failed'] if 'failed' in row else format(100 * (row['allocated'] / real - 1), '+.2f') + ' %'} {row.get('seconds', '')} s"
                        for name, row in result.items() if name != "id"), sep="  ", flush=True)
        truth.keep_results(options.out, [result])
    print("ok")


if __name__ == "__main__":
    sys.exit(main())
