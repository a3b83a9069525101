#!/usr/bin/env python3
"""Compares jobs whose ranks all run with the same jobs under `vram fit --fold auto`: every event of every rank that ran is the same, and so is
the highest peak. If two runs of the whole job differ from each other, the events are compared without their order ("unordered"). The settings are in folded.toml, the results in folded.tsv.

usage: folded.py VRAM [--python PYTHON] [--packages NAME=FOLDER]... [--write] [SETTING]...

A package is a folder that `pip install --target` made. A setting whose package is not given is left out, by name.
"""
import argparse
import collections
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE / "folded.tsv"
COLUMNS = ("setting", "ranks", "kinds", "ran", "whole_peak_bytes", "folded_peak_bytes", "events", "equal", "whole_seconds", "folded_seconds")
ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap")


def make_assets(folder):
    """Makes the tokenizer and the text that torchtitan's debug presets read: words of one token each."""
    words = ["<|begin_of_text|>", "<|end_of_text|>", *(f"w{i}" for i in range(2000))]
    tokenizer = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
                 "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "w0"}}
    for name in ("tokenizer", "c4_test"):
        os.makedirs(folder / "tests/assets" / name)
    (folder / "tests/assets/tokenizer/tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tests/assets/tokenizer/tokenizer_config.json").write_text(json.dumps({"bos_token": words[0], "eos_token": words[1]}))
    lines = [json.dumps({"text": " ".join(f"w{(line * 7 + i) % 2000}" for i in range(2000))}) for line in range(1200)]
    (folder / "tests/assets/c4_test/data.json").write_text("\n".join(lines) + "\n")


class Job:
    def __init__(self, arguments, setting, folder):
        self.arguments, self.setting, self.folder = arguments, setting, folder

    def command(self):
        launcher = [self.arguments.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(self.setting["ranks"])]
        return [*launcher, *self.setting["command"].format(programs=HERE / "programs").split()]

    def environment(self, **more):
        named = dict(one.split("=", 1) for one in self.arguments.packages)
        paths = [named[name] for name in self.setting.get("packages", [])]
        return {**os.environ, **more, "PYTHONPATH": ":".join(paths)}

    def warm(self):
        """Fills the caches of compiled code, with which all other runs begin: one rank compiles the kernels, then each rank tunes them."""
        (self.folder / "filled").mkdir()
        for fold in ("0", "none"):
            self.run(fold, f"warm-{fold}")
            shutil.rmtree(self.folder / "filled")
            shutil.move(self.folder / "compiled", self.folder / "filled")

    def compiled(self):
        """Returns the variables for compiled code, whose folder is the same for all ranks and runs."""
        if not self.setting.get("warm"):
            return {}
        shutil.rmtree(self.folder / "compiled", ignore_errors=True)
        shutil.copytree(self.folder / "filled", self.folder / "compiled")
        return {"TORCHINDUCTOR_CACHE_DIR": str(self.folder / "compiled"), "TRITON_CACHE_DIR": str(self.folder / "compiled/triton")}

    def run(self, fold, name=None, **more):
        """Returns the answer and the recordings by rank, which are kept in the folder `name`. `more` are variables of the environment."""
        folder = self.folder / (name or fold)
        more.update(self.compiled())
        begin = time.monotonic()
        command = [self.arguments.vram, "fit", "-q", "--json", "--steps", str(self.setting.get("steps", 3)), *self.setting.get("options", []), "--fold", fold, "-o", f"{folder}/", "--"]
        result = subprocess.run(command + self.command(), env=self.environment(**more), cwd=self.folder, capture_output=True, text=True, check=False)
        if result.returncode not in (0, 1) or not result.stdout:
            failed = [line for line in result.stderr.splitlines() if "Error" in line]
            raise SystemExit("\n".join([f"{self.setting['name']} ({fold}):", *failed, result.stderr[-1000:]]))
        answer = json.loads(result.stdout)
        answer["wall"] = time.monotonic() - begin
        return answer, {int(path.stem.removeprefix("rank-")): events_of(path) for path in folder.glob("rank-*.pickle")}


def events_of(path):
    """Returns what a rank's allocator did: action, size, and the address from the lowest one on."""
    with open(path, "rb") as file:
        traces = [[entry for entry in trace if "addr" in entry and entry["action"] in ACTIONS] for trace in pickle.load(file)["device_traces"]]
    traces = [trace for trace in traces if trace]
    assert len(traces) == 1, (path, len(traces))
    lowest = min((entry["addr"] for entry in traces[0] if entry["action"] == "segment_alloc"), default=0)
    return [(entry["action"], entry["size"], entry["addr"] - lowest, entry["frames"][0]["name"] if entry.get("frames") else "") for entry in traces[0]]


def difference(whole, folded):
    """Returns a sentence on the first rank and event that differ, or None."""
    for rank, events in sorted(folded.items()):
        theirs = whole[rank]
        for i, (one, other) in enumerate(zip(events, theirs)):
            if one != other:
                return f"rank {rank}, event {i}: {one} in the folded job, {other} in the whole job"
        if len(events) != len(theirs):
            return f"rank {rank}: {len(events)} events in the folded job, {len(theirs)} in the whole job"
    return None


def unordered(whole, folded):
    """Returns whether each rank allocated and freed the same sizes the same number of times, in any order."""
    counts = [{rank: collections.Counter(event[:2] for event in events) for rank, events in ranks.items()} for ranks in (whole, folded)]
    return all(counts[0][rank] == counts[1][rank] for rank in folded)


def compare(arguments, setting):
    with tempfile.TemporaryDirectory(prefix="vram-folded-") as name:
        folder = pathlib.Path(name)
        if "assets" in setting:
            make_assets(folder)
        job = Job(arguments, setting, folder)
        if setting.get("warm"):
            job.warm()
        (whole, all_ranks), (folded, some) = job.run("none"), job.run("auto")
        wrong = difference(all_ranks, some)
        again = wrong and job.run("none", "again", OTHER="x" * 1000)[1]  # other addresses on the host
    assert len(all_ranks) == setting["ranks"] and len(some) > 0, (len(all_ranks), len(some))
    peaks = [max(one["reserved_bytes"] for one in answer["holdings"]) for answer in (whole, folded)]
    itself = wrong and difference(all_ranks, {rank: again[rank] for rank in some})
    if itself:  # the program orders its work by addresses of the host, as sets of Python do
        wrong = None if unordered(all_ranks, some) else wrong
    if wrong is None and peaks[0] != peaks[1]:
        highest = max(whole["holdings"], key=lambda one: one["reserved_bytes"])["rank"]
        wrong = f"the highest peak is that of rank {highest}, which did not run"
    row = (setting["name"], setting["ranks"], len(folded["kinds"]), len(some), *peaks, sum(map(len, some.values())), "no" if wrong else "unordered" if itself else "yes",
           round(whole["wall"]), round(folded["wall"]))
    return dict(zip(COLUMNS, map(str, row))), wrong


def read_table():
    if not TABLE.exists():
        return {}
    _, *lines = TABLE.read_text().splitlines()
    return {line.split("\t")[0]: dict(zip(COLUMNS, line.split("\t"))) for line in lines}


def write_row(row, order):
    rows = {**read_table(), row["setting"]: row}
    lines = ["\t".join(rows[name][column] for column in COLUMNS) for name in order if name in rows]
    TABLE.write_text("\n".join(["\t".join(COLUMNS), *lines]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vram")
    parser.add_argument("settings", nargs="*", metavar="SETTING")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--packages", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--write", action="store_true", help="write the results into folded.tsv")
    arguments = parser.parse_intermixed_args()
    arguments.vram = os.path.abspath(arguments.vram)
    settings = {name: {"name": name, **values} for name, values in tomllib.loads((HERE / "folded.toml").read_text()).items()}
    given, failed = {one.split("=")[0] for one in arguments.packages}, 0
    for name in arguments.settings or settings:
        missing = set(settings[name].get("packages", [])) - given
        if missing:
            print(f"{name}: left out, without {', '.join(sorted(missing))}", flush=True)
            continue
        row, wrong = compare(arguments, settings[name])
        print("\t".join(row.values()), *([f"\n    {wrong}"] if wrong else []), flush=True)
        failed += wrong is not None
        if arguments.write:
            write_row(row, settings)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
