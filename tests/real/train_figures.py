#!/usr/bin/env python3
"""Judges the memory of training and inference programs that other people published: runs each with `vram fit` on the simulated card, with the packages
of PYTHON, and compares the answer with the published figure. train_programs.py has the programs.

usage: train_figures.py run VRAM PYTHON LOGS RESULTS [ID...]    LOGS: a table like truth-logs.tsv; ID: only these rows (default: all that can run)
       train_figures.py table RESULTS                           prints the tables of docs/fit.md

RESULTS has a line for each row of LOGS and set of packages. Rows that are already in it do not run again. VRAM_PROGRAMS: the folder with the sources
that no registry has (sources.tsv). The output of each run is kept in a folder of the name of RESULTS that ends in `.logs`."""
import csv
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from train_programs import PROGRAMS, Obstacle

COLUMNS = ("id", "model", "setting", "packages", "there", "here", "unit", "complete")
CLOSE = 0.01


def read_table(path, **options):
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", **options))


def write_results(path, results):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(results, key=lambda result: (result["id"], result["packages"])))


def program_of(row):
    found = next((program for program in PROGRAMS if program.has(row)), None)
    if row["complete_to_run"] == "no":
        raise Obstacle("not complete")
    if found is None:
        raise Obstacle("no program of train_programs.py")
    return found(row)


def versions(python, packages):
    code = "import importlib.metadata as m, sys; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
    run = subprocess.run([python, "-c", code, *packages], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if run.returncode != 0:
        raise Obstacle(f"{python} lacks {' or '.join(packages)}")
    return run.stdout.strip()


def source_of(program):
    folder = pathlib.Path(os.environ.get("VRAM_PROGRAMS", ""), program.source or "")
    if program.source and not folder.is_dir():
        raise Obstacle(f"{program.source} of sources.tsv is not in VRAM_PROGRAMS")
    return folder.resolve()


def answer_of(vram, python, program, log):
    """Runs `vram fit` and returns its answer; what else it writes goes to the file `log`."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="figures."))
    try:
        command = program.command(vram, python, source_of(program), folder)
        at = command.index("--")
        words = [vram, "fit", "--json", "--card", program.card, *command[:at], *command[at:]]
        with open(log, "w", encoding="utf-8") as file:
            variables = {**os.environ, **program.variables}
            run = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=file, cwd=folder, env=variables, text=True, check=False)
        log.with_suffix(".json").write_text(run.stdout)
        return json.loads(run.stdout or '{"failed": true}')
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judge(vram, python, row, path):
    """Adds a line to the results, unless it is there."""
    program = program_of(row)
    packages = versions(python, program.packages)
    if any((done["id"], done["packages"]) == (row["id"], packages) for done in read_table(path)):
        return
    answer = answer_of(vram, python, program, path.with_suffix(".logs") / f"{row['id']}.log")
    if answer.get("failed") or answer.get("failure"):
        print(row["id"], program.setting(), "failed: see the log", flush=True)
        return
    there, unit = program.published(row["figures"])
    here = round(program.predicted(answer), 2)
    print(row["id"], row["model"], program.setting(), f"{there} {unit}, here {here}, {here / there - 1:+.2%}", flush=True)
    result = {"id": row["id"], "model": row["model"], "setting": program.setting(), "packages": packages, "there": there, "here": here, "unit": unit,
              "complete": row["complete_to_run"]}
    write_results(path, [*read_table(path), result])


def run_rows(vram, python, logs, path, wanted):
    left_out = {}
    path.with_suffix(".logs").mkdir(exist_ok=True)
    for row in read_table(logs, quoting=csv.QUOTE_NONE):
        if row["kind"] not in ("train-figure", "oom-message") or (wanted and row["id"] not in wanted):
            continue
        try:
            judge(vram, python, row, path)
        except Obstacle as reason:
            left_out.setdefault(str(reason), []).append(row["id"])
    for reason, ids in left_out.items():
        print(f"left out: {len(ids)} rows, {reason}: {' '.join(ids)}")


def print_tables(results):
    errors = [float(result["here"]) / float(result["there"]) - 1 for result in results]
    print("| program | model | with | published | `vram fit` | |\n|---|---|---|--:|--:|--:|")
    for result, error in zip(results, errors):
        print(f"| {result['setting']} | {result['model'].rpartition('/')[2]} | {result['packages']} | {result['there']} {result['unit']} | {result['here']} {result['unit']} | "
              f"{100 * error:+.2f} % |")
    close, complete = [abs(error) <= CLOSE for error in errors], [result["complete"] == "yes" for result in results]
    shares = [100 * abs(error) for error in errors]
    print(f"\n{sum(close)} of {len(close)} within {100 * CLOSE:.0f} %, {sum(map(min, close, complete))} of the {sum(complete)} complete ones; "
          f"median error {statistics.median(shares):.2f} %, worst {max(shares):.2f} %.")


def main():
    if sys.argv[1] == "table":
        print_tables(read_table(pathlib.Path(sys.argv[2])))
    else:
        vram, python, logs, path = sys.argv[2:6]
        run_rows(os.path.abspath(vram), os.path.abspath(python), pathlib.Path(logs), pathlib.Path(path), sys.argv[6:])


if __name__ == "__main__":
    main()
