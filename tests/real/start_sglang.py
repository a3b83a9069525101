#!/usr/bin/env python3
"""Reproduces what strangers' SGLang servers printed at their start: runs each with `vram fit` on the simulated card, with the SGLang of the environment, and
compares what the engine prints here with what it printed on the real card. The commands are in start_commands.toml, which says what is assumed.

usage: start_sglang.py run VRAM LOGS RESULTS [ID...]    LOGS: a table like truth-logs.tsv; ID: only these rows (default: all with a command)
       start_sglang.py table RESULTS                    prints the table of docs/fit.md"""
import csv
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

import start_logs
from start_logs import COMMANDS, free_port, number, shape_of, write_model

sys.path.insert(0, str(pathlib.Path(__file__).parent / "programs"))
from cuda_toolkit import use_toolkit

# Terms: name, its pattern in a row's figures, its pattern in the engine's log.
TERMS = (
    ("weights", r"(?<!draft )weights mem usage ([\d.]+)", r"Load weight end\..* mem usage=([\d.]+) GB"),
    ("tokens", r"#tokens ([\d,]+)", r"#tokens: (\d+)"),
    ("K", r"K (?:size )?([\d.]+) GB", r"K size: ([\d.]+) GB"),
    ("V", r"V (?:size )?([\d.]+) GB", r"V size: ([\d.]+) GB"),
    ("free after the pools", r"pool end avail ([\d.]+)", r"Memory pool end\. avail mem=([\d.]+) GB"),
    ("draft's weights", r"draft weights ([\d.]+)", r"type=\w+Eagle,.* mem usage=([\d.]+) GB"),
    ("its K", r"draft KV K ([\d.]+)", r"(?s)K size: .*K size: ([\d.]+) GB"),
    ("its V", r"draft KV K [\d.]+ GB, V ([\d.]+)", r"(?s)V size: .*V size: ([\d.]+) GB"),
    ("graphs", r"; graph (?:mem usage )?([\d.]+) GB", r"decode CUDA graph end\..* mem usage=([\d.]+) GB"),
    ("free at last", r"available_gpu_mem ([\d.]+) GB", r"available_gpu_mem=([\d.]+) GB"),
)
READY = "The server is fired up and ready to roll"
COLUMNS = ("id", "model", "options", "there", "here", *(name for name, *_ in TERMS))


def written(folder, name):
    """Returns the folder of a model, which has what start_logs.write_model() writes."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    write_model(folder / name, shape_of(name))
    return folder / name


def run(vram, row, log):
    """Runs the server of a row. Its output goes to the file `log`."""
    draft = ["--speculative-draft-model-path", written(log.parent / "models", row["draft"])] if "draft" in row else []
    memory = ["--set", f"memory={row['memory']}"] if "memory" in row else []
    server = [sys.executable, "-m", "sglang.launch_server", "--model-path", written(log.parent / "models", row["model"]), *draft, *row["command"].split(),
              "--port", str(free_port())]
    with open(log, "w", encoding="utf-8") as file:
        subprocess.run([vram, "fit", "--json", "--card", row["card"], *memory, "--until", READY, "--", *server], stdout=subprocess.DEVNULL, stderr=file, check=False)
    return log.read_text(encoding="utf-8", errors="replace")


def compare(row, text):
    """Returns the cells of a row's terms: printed there, printed here; "-" for what was not printed. The first line of a kind counts."""
    cells = {}
    for name, *patterns in TERMS:
        found = [re.search(pattern, printed) for pattern, printed in zip(patterns, (row["figures"], text))]
        cells[name] = " ".join(match[1].replace(",", "") if match else "-" for match in found)
    return cells


def run_rows(vram, logs, path, wanted):
    with open(logs, newline="", encoding="utf-8") as file:
        rows = [{**row, **COMMANDS[row["id"]]} for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                if row["kind"] == "sglang-start" and row["id"] in COMMANDS]
    use_toolkit()
    version, kept, results = importlib.metadata.version("sglang"), path.with_suffix(".logs"), start_logs.read_results(path)
    kept.mkdir(exist_ok=True)
    for row in rows:
        if wanted and row["id"] not in wanted:
            continue
        cells = compare(row, run(vram, row, kept / f"{row['id']}-{version}.log"))
        print(row["id"], row["model"], *(f"{name}: {cell}" for name, cell in cells.items()), sep="  ", flush=True)
        there = row.get("there") or re.search(r"[\d.]+x?", row["program_version"])[0]
        shown = {"id": row["id"], "model": row["model"], "options": row["command"], "there": there, "here": version, **cells}
        results = [*(done for done in results if done["id"] != row["id"]), shown]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(results, key=lambda result: result["id"]))


def shown_cell(cell):
    there, here = cell.split()
    if there == "-":
        return "-"
    return there if here != "-" and number(there) == number(here) else f"{there} → {here}"


def print_table(path):
    names = [name for name, *_ in TERMS]
    print("| model, options | SGLang | " + " | ".join(names) + " |\n|---|---|" + "--:|" * len(names))
    for result in start_logs.read_results(path):
        options = " ".join(word.strip().replace(" ", "=", 1).replace(" ", ",") for word in result["options"].split("--")[1:])
        print(f"| {result['model'].rpartition('/')[2]} `{options}` | {result['there']}, here {result['here']} | {' | '.join(shown_cell(result[name]) for name in names)} |")


if __name__ == "__main__":
    if sys.argv[1] == "table":
        print_table(pathlib.Path(sys.argv[2]))
    else:
        run_rows(os.path.abspath(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4]), sys.argv[5:])
