#!/usr/bin/env python3
"""Reproduces what strangers' vLLM servers printed at their start: runs each with `vram fit` on the simulated card, with the vLLM of the environment, and
compares what the engine measures with what it printed on the real card.

usage: start_logs.py VRAM LOGS [ID...]    LOGS: a table like truth-logs.tsv; ID: only these rows (default: all that can run)

Prints a line for each row and term: printed, here, difference. Models are those of programs/models.json, whose shapes are public. The versions differ
where the environment has another vLLM than the log; both are printed. Rows of several cards, of quantised weights, or of models without a shape are listed
with the reason."""
import csv
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
MODELS = json.loads((HERE / "programs/models.json").read_text())
GIB = 1 << 30
CARDS = {"H100 80GB": "h100"}
# Terms: name, the log's text, and the value in the answer's `serving`. Before 0.21 vLLM did not take its estimate for graphs from the cache.
TERMS = (
    ("weights", r"weights ([\d.]+) GiB", lambda serving: serving["estimated_weight_bytes"] / GIB),
    ("activations", r"torch peak increase ([\d.]+) GiB", lambda serving: (serving["estimated_activation_bytes"] - (serving["estimated_graph_bytes"] or 0)) / GIB),
    ("graphs", r"CUDA graph actual ([\d.]+) GiB", lambda serving: (serving["taken_graph_bytes"] or 0) / GIB),
    ("cache", r"available KV ([\d.]+) GiB", lambda serving: cache_bytes(serving) / GIB),
    ("tokens", r"KV tokens ([\d,]+)", lambda serving: cache_bytes(serving) / serving["token_bytes"]),
)


def cache_bytes(serving):
    return serving["estimated_cache_bytes"] + (serving["estimated_graph_bytes"] or 0)


def options_of(flags):
    """Returns the arguments of `vllm serve`: both `--name=value` and `name=value` as its log prints them."""
    options = []
    for word in flags.partition(" | ")[0].split()[3:]:
        name, _, value = word.removeprefix("--").partition("=")
        name = name.replace("_", "-")
        options += [f"--no-{name}"] if value == "False" else [f"--{name}"] if value in ("", "True") else [f"--{name}", value]
    return options


def obstacle(row):
    """Returns why a row cannot run here; None if it can."""
    count, _, card = row["card_and_count"].partition(" x ")
    return ("not complete" if row["complete_to_run"] != "yes" else "no start of vLLM's" if row["kind"] != "vllm-start" else
            "several cards" if count != "1" else "its card has no name here" if not any(known in card for known in CARDS) else
            "the shape of its model is not in models.json" if row["model"] not in MODELS else
            "quantised when loaded: made-up weights have no such form" if "quantization=" in row["flags"].partition(" | ")[0] else
            "no command" if not row["flags"].startswith("vllm serve ") else None)


def run(vram, row):
    card = next(CARDS[known] for known in CARDS if known in row["card_and_count"])
    with tempfile.TemporaryDirectory(prefix="model.") as folder:
        pathlib.Path(folder, "config.json").write_text(json.dumps(MODELS[row["model"]]))
        command = [vram, "fit", "--json", "-q", "--card", card, "--", "vllm", "serve", folder, *options_of(row["flags"])]
        made = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    try:
        return json.loads(made.stdout)["serving"]
    except (ValueError, KeyError):
        return None


def compare(row, serving, errors):
    for name, pattern, of in TERMS:
        printed = re.search(pattern, row["figures"])
        if printed is None:
            continue
        printed, here = float(printed[1].replace(",", "")), of(serving)
        error = here / printed - 1
        errors.setdefault(name, []).append(abs(error))
        print(f"{row['id']} {name:12} {printed:12,.2f} {here:12,.2f} {100 * error:+7.2f} %", flush=True)


def main():
    vram, logs, wanted = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with open(logs, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    python = pathlib.Path(shutil.which("vllm")).with_name("python")  # vLLM itself cannot be imported without a device
    code = "import importlib.metadata; print(importlib.metadata.version('vllm'))"
    version = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    errors, left_out = {}, {}
    for row in rows:
        reason = obstacle(row)
        if reason is not None:
            left_out.setdefault(reason, []).append(row["id"])
        elif not wanted or row["id"] in wanted:
            print(f"{row['id']} {row['model']}: {row['program_version'].partition(',')[0]} there, vLLM {version} here", flush=True)
            serving = run(vram, row)
            if serving is None or not serving["estimated_requested_bytes"]:
                print(f"{row['id']} did not start", flush=True)
            else:
                compare(row, serving, errors)
    for reason, ids in left_out.items():
        print(f"left out: {len(ids)} rows, {reason}")
    for name, found in errors.items():
        print(f"{name:12} {len(found)} rows: median {100 * statistics.median(found):.2f} %, worst {100 * max(found):.2f} %")


if __name__ == "__main__":
    main()
