#!/usr/bin/env python3
"""Tests the statements that every surface must and must not make about recordings and programs whose truth is known.

usage: judge.py VRAM KIND... [--row NAME] [--shared FOLDER] [--recordings FOLDER] [--programs FOLDER]

The table is truth/KIND.toml (truth/README.md describes its rows). Rows whose input is missing are skipped by name.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile
import tomllib

import inputs
import surfaces

HERE = pathlib.Path(__file__).resolve().parent
SAID_IN = ("report", "json", "page", "mcp")
WORDS = {"input", "truth", "said", "never", "leak", *surfaces.ALL, *(f"never_{surface}" for surface in surfaces.ALL)}


def read_table(kind):
    table = tomllib.loads((HERE / "truth" / f"{kind}.toml").read_text(encoding="utf-8"))
    for name, row in table.items():
        if not {"input", "truth"} <= set(row) <= WORDS:
            raise SystemExit(f"{kind}.toml: {name}: the words are {sorted(row)}, of {sorted(WORDS)}; input and truth are needed")
    return table


def read_sets():
    return tomllib.loads((HERE / "truth" / "sets.toml").read_text(encoding="utf-8"))


def patterns(words, sets):
    """Yields expressions, with each @name replaced by the expressions of that set."""
    for word in words:
        if word.startswith("@"):
            yield from patterns(sets[word[1:]], sets)
        else:
            yield word


def around(text, match):
    return text[max(0, match.start() - 60) : match.end() + 60].replace("\n", " | ")


def judge(row, said, sets):
    """Yields a line for each missing sentence and each sentence that should not be there."""
    for surface, text in said.items():
        flat = " ".join(text.split()) if surface == "report" else text
        wanted = [*(row.get("said", []) if surface in SAID_IN else []), *row.get(surface, [])]
        for pattern in patterns(wanted, sets):
            if not re.search(pattern, flat):
                yield f"{surface} does not say /{pattern}/"
        for pattern in patterns(["@always", *row.get("never", []), *row.get(f"never_{surface}", [])], sets):
            found = re.search(pattern, flat)
            if found:
                yield f"{surface} says /{pattern}/: {around(flat, found)}"
    yield from contradictions(said)
    leaks = row.get("leak", False)
    if f"exit {int(leaks)}" not in said["leaks"]:
        yield f"leaks ends with another code than {int(leaks)}: {said['leaks']}"


def contradictions(said):
    """Checks that no surface denies what another states as certain."""
    if re.search(r"\ba leak: ", said["json"]) and "exit 1" not in said["leaks"]:
        yield f"the report is sure of a leak, and leaks is not: {said['leaks']}"
    if re.search(r"graphs of earlier steps are kept", said["json"]) and re.search(r"no leak", said["leaks"]):
        yield f"the report is sure of graphs that are kept, and leaks of no leak: {said['leaks']}"


def check(vram, name, row, places, sets, folder):
    path = inputs.path_of(row["input"], places, folder, name)
    if path is None:
        return f"skipped: {name} ({row['input']} is absent)", []
    return None, list(judge(row, {surface: ask(vram, path) for surface, ask in surfaces.ALL.items()}, sets))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vram", type=os.path.abspath)
    parser.add_argument("kinds", nargs="+", metavar="KIND")
    for option in ("row", *inputs.PLACES):
        parser.add_argument(f"--{option}")
    given = parser.parse_args()
    places = {"vram": given.vram, **{place: getattr(given, place) for place in inputs.PLACES}}
    table, sets, wrong, skipped = {name: row for kind in given.kinds for name, row in read_table(kind).items()}, read_sets(), 0, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        rows = {name: row for name, row in table.items() if given.row in (None, name)}
        for name, (absent, found) in zip(rows, pool.map(lambda one: check(given.vram, *one, places, sets, folder), rows.items())):
            skipped += absent is not None
            wrong += bool(found)
            print("\n".join([absent] if absent else [f"{name}: {line}" for line in found]), end="\n" if absent or found else "")
    print(f"{', '.join(given.kinds)}: {len(rows)} rows, {wrong} wrong, {skipped} skipped")
    if skipped == len(rows):
        return 77
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
