#!/usr/bin/env python3
"""Reproduces what strangers' vLLM servers printed at their start: runs each with `vram fit` on the simulated card, with the vLLM of the environment, and
compares what the engine prints here with what it printed on the real card.

usage: start_logs.py run VRAM LOGS RESULTS [ID...]    LOGS: a table like truth-logs.tsv; ID: only these rows, again (default: all that can run and did not)
       start_logs.py table RESULTS                    prints the tables of docs/fit.md

RESULTS has a line for each row of LOGS and version of vLLM here. The output of each run is kept in a folder
of the same name that ends in `.logs`. The shapes of the models, which are public, are in programs/models.json; the weights and the words of the vocabularies are made up.
Where LOGS has no whole command, start_commands.toml has the one that its words describe, and says what is assumed."""
import contextlib
import csv
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import tomllib

HERE = pathlib.Path(__file__).parent
MODELS = json.loads((HERE / "programs/models.json").read_text())
COMMANDS = tomllib.loads((HERE / "start_commands.toml").read_text())
CARDS = {"H100 80GB": "h100"}
NUMBERS = r"(-?[\d.,]+(?: / [\d.,]+)*)"
# Terms: name, its pattern in a row's figures, its pattern in the engine's log (V1's or, before it, V0's), and which of several ranks' figures counts.
TERMS = (
    ("weights", rf"weights (?:[\d.]+ GB / )?{NUMBERS} ?GiB", r"(?:Model loading took|model weights take) ([\d.]+) ?GiB", max),
    ("activations", rf"(?:torch peak increase|activation peak) {NUMBERS} ?GiB", r"(?:torch peak memory increase:|PyTorch activation peak memory takes) ([\d.]+)GiB", max),
    ("non-torch", rf"non[-_]torch(?: increase|_memory)? {NUMBERS} ?GiB", r"(?:non-torch forward increase memory:|non_torch_memory takes) (-?[\d.]+)GiB", max),
    ("graphs", rf"(?:CUDA graph actual|graph capture) {NUMBERS} GiB", r"Graph capturing finished in \d+ secs?, took (-?[\d.]+) GiB", max),
    ("KV cache", rf"(?:[Aa]vailable KV(?: cache memory)?|available_kv_cache_memory|; KV) {NUMBERS} ?GiB", r"(?:Available KV cache memory:|memory reserved for KV Cache is) ([\d.]+) ?GiB", min),
    ("tokens", rf"(?:KV tokens {NUMBERS}|{NUMBERS} tokens|# (?:CUDA|cuda|GPU) blocks {NUMBERS})", r"(?:GPU KV cache size:|# (?:CUDA|cuda|GPU) blocks:) ([\d,]*\d)", min),
)
COLUMNS = ("id", "model", "options", "there", "here", *(name for name, *_ in TERMS))


def number(text):
    return float(text.replace(",", ""))


def chosen(matches, choose):
    """Returns the figure that counts of all ranks' figures, as it was printed; None if there is none."""
    found = [word for match in matches for group in match for word in group.split(" / ") if word]
    return choose(found, key=number) if found else None


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
    return ("no start of vLLM's" if row["kind"] != "vllm-start" else
            "the shape of its model is not in models.json" if row["model"] not in MODELS else None if "command" in row else
            "not complete" if row["complete_to_run"] != "yes" else "no command" if not row["flags"].startswith("vllm serve ") else
            "its card has no name here" if not any(known in row["card_and_count"] for known in CARDS) else None)


def completed(row):
    """Returns the row with what start_commands.toml says of it."""
    given = COMMANDS.get(row["id"], {})
    return {**row, **given, "flags": given.get("command", row["flags"])}


def serve_command(folder):
    """Returns the command that serves a model with the vLLM of the environment: versions before 0.5.3 have no `vllm serve`."""
    vllm, python = shutil.which("vllm"), shutil.which("python")
    if vllm is not None and os.path.dirname(vllm) == os.path.dirname(python):
        return [vllm, "serve", folder]
    return [python, "-m", "vllm.entrypoints.openai.api_server", "--model", folder]


def free_port():
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return place.getsockname()[1]


def shape_of(name):
    """Returns a model's entry in models.json, with what it has in common with another one."""
    model = dict(MODELS[name])
    other = model.pop("like", None)
    return {**shape_of(other), **model} if other else model


def tokenizer_of(made_up, size):
    """Returns the files of a tokenizer with made-up words."""
    special = made_up.get("tokens", {"<unk>": 0})
    taken = set(special.values())
    words = {**special, **{f"word{number}": number for number in range(size) if number not in taken}}
    added = [{"id": number, "content": word, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
             for word, number in special.items()]
    return {"tokenizer.json": {"version": "1.0", "added_tokens": added, "pre_tokenizer": {"type": "WhitespaceSplit"},
                               "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"}},
            "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", **made_up.get("tokenizer", {"unk_token": "<unk>"})}}


def write_model(folder, model):
    """Writes a model's configuration and a tokenizer, without which the servers of vLLM's first engine do not start. One with images also needs a
    processor of images."""
    made_up = model.get("made_up", {})
    files = {"config.json": {key: value for key, value in model.items() if key != "made_up"}, **tokenizer_of(made_up, model.get("text_config", model)["vocab_size"])}
    if made_up:
        files.update({"preprocessor_config.json": made_up["preprocessor"], "processor_config.json": made_up["processor"]})
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


def run(vram, row, log):
    """Runs the server of a row. Its output goes to the file `log`."""
    card = row.get("card") or next(CARDS[known] for known in CARDS if known in row["card_and_count"])
    memory = ["--set", f"memory={row['memory']}"] if "memory" in row else []
    count = row["card_and_count"].partition(" x ")[0]
    folder = log.parent / "models" / row["model"]
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder, shape_of(row["model"]))
    # An engine that finds kernels which it tuned before takes less memory while it measures: 0.80 GiB for Granite 3.3 8B instead of 0.85.
    with open(log, "w", encoding="utf-8") as file, tempfile.TemporaryDirectory(prefix="cache.") as cache:
        command = [vram, "fit", "--json", "--card", card, "--devices", count, *memory, "--", *serve_command(folder), *options_of(row["flags"]), "--port", str(free_port())]
        caches = {name: f"{cache}/{name}" for name in ("VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR")}
        variables = {**os.environ, "VLLM_LOGGING_LEVEL": "DEBUG", **caches, **row.get("variables", {})}
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=file, env=variables, check=False)
    return log.read_text(encoding="utf-8", errors="replace")


def as_printed(there, here):
    """Returns both figures; the second one has no more digits than the first."""
    digits = max(2, len((there or "").partition(".")[2]))  # the engines leave out zeros at the end
    return there, f"{number(here):.{digits}f}" if there and here and "." in here and len(here.partition(".")[2]) > digits else here


def compare(row, text):
    """Returns the cells of a row's terms: printed there, printed here; "-" for what was not printed."""
    cells = {}
    for name, there, here, choose in TERMS:
        pair = chosen([match.groups("") for match in re.finditer(there, row["figures"])], choose), chosen([(found,) for found in re.findall(here, text)], choose)
        cells[name] = " ".join(figure or "-" for figure in as_printed(*pair))
    return cells


def shown_options(row):
    """Returns the options in which the rows differ."""
    words = [word.removeprefix("--").replace("-", "_") for word in row["flags"].partition(" | ")[0].split()[3:]]
    return " ".join(word for word in words if not word.startswith(("gpu_memory_", "enable_prefix_caching", "trust_remote", "tensor_parallel_size=1", "block_size")))


def read_results(path):
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write_results(path, results):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(results, key=lambda result: (result["id"], result["here"])))


def has(results, row, version):
    return any((done["id"], done["here"]) == (row, version) for done in results)


def version_here():
    code = "import importlib.metadata; print(importlib.metadata.version('vllm'))"  # vLLM itself cannot be imported without a device
    return subprocess.run(["python", "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def run_rows(vram, logs, path, wanted):
    with open(logs, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    version, kept, left_out = version_here(), path.with_suffix(".logs"), {}
    kept.mkdir(exist_ok=True)
    for row in map(completed, rows):
        reason = obstacle(row)
        if reason is not None:
            left_out.setdefault(reason, []).append(row["id"])
        elif row["id"] in wanted or not (wanted or has(read_results(path), row["id"], version)):
            text = run(vram, row, kept / f"{row['id']}-{version}.log")
            cells = compare(row, text)
            print(row["id"], row["model"], *(f"{name}: {cell}" for name, cell in cells.items()), sep="  ", flush=True)
            there = row.get("there") or re.search(r"[\d.]+", row["program_version"])[0]
            if not all(cells[name].endswith("-") for name in ("KV cache", "tokens")):  # the first versions print only the blocks
                result = {"id": row["id"], "model": row["model"], "options": shown_options(row), "there": there, "here": version, **cells}
                write_results(path, [*(done for done in read_results(path) if not has([done], row["id"], version)), result])
    for reason, ids in left_out.items():
        print(f"left out: {len(ids)} rows, {reason}")


def error_of(cell):
    """Returns the relative error of a cell and its difference, or None if one of the figures is missing."""
    with contextlib.suppress(ValueError, ZeroDivisionError):
        there, here = map(number, cell.split())
        return here / there - 1, here - there
    return None


def shown(cell):
    """Returns a cell of the page: one figure if both are equal, none if there is nothing to compare with."""
    there, here = cell.split()
    return there if there in (here, "-") else f"{there} (not measured)" if here == "-" else f"{there} → {here}"


def print_tables(results):
    print("| model, options | vLLM | " + " | ".join(name for name, *_ in TERMS) + " |\n|---|---|" + "--:|" * len(TERMS))
    for result in results:
        version = result["here"] if result["here"] == result["there"] else f"{result['there']}, here {result['here']}"
        cells = [shown(result[name]) for name, *_ in TERMS]
        options = f" `{result['options']}`" if result["options"] else ""
        print(f"| {result['model'].rpartition('/')[2]}{options} | {version} | {' | '.join(cells)} |")
    print("\n| term | rows | equal as printed | median error | worst | median difference | worst |\n|---|--:|--:|--:|--:|--:|--:|")
    for name, *_ in TERMS:
        errors = [error for error in (error_of(result[name]) for result in results) if error is not None]
        unit = "" if name == "tokens" else " GiB"
        shares, sizes = [abs(share) for share, _ in errors], [abs(size) for _, size in errors]
        print(f"| {name} | {len(errors)} | {sum(size == 0 for size in sizes)} | {100 * statistics.median(shares):.2f} % | {100 * max(shares):.2f} % | "
              f"{statistics.median(sizes):,.2f}{unit} | {max(sizes):,.2f}{unit} |")


def main():
    if sys.argv[1] == "table":
        print_tables(read_results(pathlib.Path(sys.argv[2])))
    else:
        run_rows(os.path.abspath(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4]), sys.argv[5:])


if __name__ == "__main__":
    main()
