#!/usr/bin/env python3
"""Reproduces what strangers' llama.cpp printed at its start: loads a model of the same shape and types with `vram fit`, with the llama.cpp of a folder of
node-llama-cpp, and compares the sizes of its buffers. The weights are a hole in the file.

usage: start_llama.py run VRAM FOLDER LOGS RESULTS    LOGS: a table like truth-logs.tsv; FOLDER contains node_modules
       start_llama.py table RESULTS                   prints the table of docs/fit.md"""
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(__file__).parent / "programs"
sys.path.insert(0, str(PROGRAMS))
import gguf_gptneox

# Terms: name in a row's figures, which begins the line of llama.cpp's log. The device's own three are what `vram fit` counts as allocated.
TERMS = ("CUDA0 model", "CUDA0 KV", "CUDA0 compute", "CPU_Mapped", "CUDA_Host output", "CUDA_Host compute", "graph nodes")
ON_DEVICE = 3
COLUMNS = ("id", "model", "options", "there", "here", *TERMS, "allocated")
MIB = 1 << 20
CARDS = {"V100-PCIE-16GB": "v100"}


def case(row):
    """Returns (kind of weights, context, micro batch, flash attention), or None if the row is of another model, card or state."""
    model = re.fullmatch(r"EleutherAI/pythia-2.8b, GGUF (f16|q8_0|q4_0) .*", row["model"])
    if row["kind"] != "llamacpp-start" or row["complete_to_run"] != "yes" or not model or not card(row):
        return None
    found = [re.search(rf"{name} (\d+)", row["flags"]) for name in ("n_ctx", "n_ubatch", "flash_attn")]
    return (model[1], *(each[1] for each in found)) if all(found) else None


def card(row):
    return next((CARDS[known] for known in CARDS if known in row["card_and_count"]), None)


def run(vram, folder, row):
    kind, *options = case(row)
    with tempfile.TemporaryDirectory(prefix="gguf.") as place:
        gguf_gptneox.write(f"{place}/model.gguf", kind)
        program = ["node", PROGRAMS / "llama_cpp_start.mjs", folder, f"{place}/model.gguf", *options]
        done = subprocess.run([vram, "fit", "--json", "--card", card(row), "--", *program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout), done.stderr


def compare(row, answer, log):
    cells, sum_there = {}, 0
    for place, name in enumerate(TERMS):
        there = re.search(rf"{name} ([\d.]+)", row["figures"])
        words = name.replace(" ", " +")
        here = re.search(rf"{words}(?: model)? buffer size = *([\d.]+)", log) or re.search(rf"{words} *= *([\d.]+)", log)
        cells[name] = f"{there[1] if there else '-'} {here[1] if here else '-'}"
        sum_there += float(there[1]) if place < ON_DEVICE else 0
    cells["allocated"] = f"{sum_there:.2f} {answer['allocated_bytes'] / MIB:.2f}"
    return cells


def run_rows(vram, folder, logs, path):
    here = json.loads((folder / "node_modules/node-llama-cpp/llama/binariesGithubRelease.json").read_text())["release"]
    results = []
    with open(logs, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if case(row)]
    for row in rows:
        kind, context, batch, flash = case(row)
        there = "b" + re.search(r"build (\d+)", row["program_version"])[1]
        options = f"{kind} n_ctx={context} n_ubatch={batch} flash_attn={flash}"
        results.append({"id": row["id"], "model": row["model"].partition(",")[0], "options": options, "there": there, "here": here, **compare(row, *run(vram, folder, row))})
        print(results[-1], flush=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(results)


def shown(cell):
    there, here = cell.split()
    return there if there in (here, "-") else f"{there} → {here}"


def print_table(path):
    names = (*TERMS, "allocated")
    print("| model, options | llama.cpp | " + " | ".join(names) + " |\n|---|---|" + "--:|" * len(names))
    with open(path, newline="", encoding="utf-8") as file:
        for result in csv.DictReader(file, delimiter="\t"):
            print(f"| {result['model']} `{result['options']}` | {result['there']}, here {result['here']} | {' | '.join(shown(result[name]) for name in names)} |")


if __name__ == "__main__":
    if sys.argv[1] == "table":
        print_table(sys.argv[2])
    else:
        run_rows(str(pathlib.Path(sys.argv[2]).resolve()), pathlib.Path(sys.argv[3]).resolve(), sys.argv[4], sys.argv[5])
