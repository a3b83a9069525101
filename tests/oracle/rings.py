#!/usr/bin/env python3
"""Makes recordings of random plays of PyTorch's own allocator on the simulated driver, which begin at any event, as those of real programs do.
Checks that `vram replay --exact` is equal in each, and that `vram report` agrees with PyTorch's statistics.

usage: rings.py --torch PYTHON [--kind K[,K...]] [--seed N] [--plays N] [--steps M] [--moments N] [--cuts N] [--keep FOLDER] [FILE...]
--torch PYTHON   the Python of an installed PyTorch, 2.6 or newer
--kind K         kinds of operations.py (default: all that this PyTorch supports)
--plays N        number of plays, taking kinds in turn (default one of each); --seed N: the first seed (default 1)
--steps M        operations of a play (default 1200)
--moments N      snapshots of a play (default 3); the history is cleared after about half of them
--cuts N         rings of each snapshot, each with its newest events (default 5; the first has all)
--keep FOLDER    keep wrong recordings there, with the results
FILE...          kept recordings (pickles) to replay again instead
Exit code: 0 all right, 1 one is wrong, 2 usage, 3 a play failed."""
import argparse
import collections
import json
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys
import tempfile
import time

import operations
import oracle

VRAM = pathlib.Path(os.environ.get("VRAM", oracle.BUILD / "cli/vram"))
ADDRESSES = ("rising", "falling", "reuse", "driver", "windows")  # only one of them shows by address which segments are older
INSIDE = {"segment_alloc", "segment_map", "segment_free", "segment_unmap", "free_completed", "oom"}
# A report's fact about a device, and the statistic of the same value.
FACTS = (("reserved", "peak_bytes", "reserved_bytes", "peak"), ("reserved", "end_bytes", "reserved_bytes", "current"),
         ("active", "peak_bytes", "requested_bytes", "peak"), ("active", "end_bytes", "requested_bytes", "current"),
         ("active", "end_count", "active", "current"), ("allocated", "end_count", "allocation", "current"))


def with_moments(lines, moments, chance):
    """Inserts snapshots between the operations, and after some of them starts another ring."""
    at = sorted(chance.sample(range(len(lines) // 4, len(lines)), moments - 1)) if moments > 1 else []
    out, names = [], []
    for number, line in enumerate(lines):
        if number in at:
            names.append(len(names))
            out.append(f"snapshot {names[-1]}")
            if chance.random() < 0.5:
                out.append(f"history {chance.choice((1 << 22, 1 << 22, 2000, 300, 40))}")
        out.append(line)
    names.append(len(names))
    return [line for line in out if line not in ("stats", "map", "events")] + [f"snapshot {names[-1]}"], names


def sizes_of_rings(trace, cuts, chance):
    """Returns how many of the newest events each ring has: all, and other lengths, half of which begin within a request, a free or a
    release."""
    lengths, inside = [len(trace)], [i for i, event in enumerate(trace) if event["action"] in INSIDE]
    while len(lengths) < cuts and len(trace) > 2:
        start = chance.choice(inside) if inside and chance.random() < 0.5 else chance.randrange(1, len(trace))
        lengths.append(len(trace) - start)
    return lengths


def ring(snapshot, lengths):
    return {**snapshot, "device_traces": [trace[len(trace) - min(length, len(trace)):] if length else []
                                          for trace, length in zip(snapshot["device_traces"], lengths)]}


def json_of(*words):
    told = subprocess.run([VRAM, *words], capture_output=True, text=True)
    try:
        return json.loads(told.stdout)
    except ValueError:
        return {"failed": (told.stderr or told.stdout).strip()[:300]}


def verdict_of(path):
    """Returns (verdict, first difference) of a recording."""
    told = json_of("replay", "--exact", "--json", path)
    if "failed" in told:
        return "failed", told["failed"]
    worst = "equal"
    for device in told["devices"]:
        if device["verdict"] not in ("equal", "no_history"):
            worst = device["verdict"]
            first = (device["differences"] or [{}])[0]
            return worst, f"device {device['device']} of {told['pytorch']}: {device['difference_count']} of {device['events']} events, " \
                          f"{device['reason'] or json.dumps(first)}"
    return worst, ""


def wrong_facts(path, statistics, entries):
    """Returns where a report differs from PyTorch's statistics. Peaks are compared if the history began when they were reset."""
    told = json_of("report", "--no-cure", "--json", path)
    if "failed" in told:
        return told["failed"]
    wrong = []
    for number, device in told["devices"].items():
        for part, fact, family, key in FACTS:
            theirs = statistics[int(number)].get(family, {}).get("all", {}).get(key)
            if theirs is not None and device[part][fact] != theirs and (fact != "peak_bytes" or device["events"] < entries):
                wrong.append(f"device {number}: {part}.{fact} {device[part][fact]}, PyTorch's {theirs}")
    return "; ".join(wrong)


class Judge:
    def __init__(self, keep):
        self.keep, self.counts = keep, collections.defaultdict(collections.Counter)

    def book(self, kind, name, path, result, told):
        self.counts[kind][result] += 1
        if result in ("equal", "report right"):
            return
        print(f"--- {name}: {result}: {told}", flush=True)
        if self.keep:
            path.replace(self.keep / f"{name}.pickle")

    def judge(self, kind, name, folder, snapshot, lengths):
        path = folder / "ring.pickle"
        path.write_bytes(pickle.dumps(ring(snapshot, lengths)))
        self.book(kind, name, path, *verdict_of(path))


def judge_play(judge, kind, path, names, arguments, chance):
    for name in names:
        recording = pathlib.Path(f"{path}.{name}.pickle")
        if not recording.exists():
            judge.counts[kind]["not taken"] += 1
            continue
        snapshot = pickle.loads(recording.read_bytes())
        statistics, entries = json.loads(pathlib.Path(f"{path}.{name}.json").read_text())
        lists = [sizes_of_rings(trace, arguments.cuts, chance) for trace in snapshot["device_traces"]]
        for cut in range(arguments.cuts):
            lengths = [lengths[cut] if cut < len(lengths) else 0 for lengths in lists]
            judge.judge(kind, f"{path.stem}.{name}.{'-'.join(map(str, lengths[:snapshot_devices(snapshot)]))}", recording.parent, snapshot, lengths)
        wrong = wrong_facts(recording, statistics, entries)
        judge.book(kind, f"{path.stem}.{name}.report", recording, "report wrong" if wrong else "report right", wrong)
        recording.unlink(missing_ok=True)


def snapshot_devices(snapshot):
    return max([1] + [i + 1 for i, trace in enumerate(snapshot["device_traces"]) if trace])


def run(arguments, folder):
    version = oracle.version_of(arguments.torch)
    torch, judge, begin, worst = oracle.Torch(arguments.torch), Judge(arguments.keep), time.monotonic(), 0
    arguments.stats_every = 0
    for kind, path in oracle.plays_of(arguments, version, folder):
        chance = random.Random(f"rings {path.stem}")
        heads, lines = oracle.operations_of(path)
        heads = [re.sub(r"addresses=\w+", f"addresses={chance.choice(ADDRESSES)}", head) for head in heads]
        lines, names = with_moments(lines, arguments.moments, chance)
        path.write_text("\n".join(heads + lines) + "\n")
        failed = torch.play(path)
        if failed is not None:
            judge.counts[kind]["failed play"] += 1
            print(f"--- {path.stem}: {failed}", flush=True)
            worst = 3
            continue
        judge_play(judge, kind, path.resolve(), names, arguments, chance)
        for left in folder.glob(f"{path.name}*"):
            left.unlink()
    torch.close()
    return max(worst, tell(judge, version, time.monotonic() - begin))


def tell(judge, version, seconds):
    total = collections.Counter()
    for kind, results in judge.counts.items():
        total.update(results)
        print(f"{kind:20} " + ", ".join(f"{count} {name}" for name, count in sorted(results.items())))
    print(f"PyTorch {version[0]}.{version[1]}: " + ", ".join(f"{count} {name}" for name, count in sorted(total.items())) + f", {seconds:.0f} s")
    return 0 if set(total) <= {"equal", "report right"} else 1


def again(files):
    worst = 0
    for path in files:
        verdict, told = verdict_of(path)
        worst = worst if verdict == "equal" else 1
        print(f"{path}: {verdict} {told}", flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--torch")
    parser.add_argument("--kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plays", type=int)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--moments", type=int, default=3)
    parser.add_argument("--cuts", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.files:
        return again(arguments.files)
    if not arguments.torch:
        parser.error("no PyTorch")
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        return run(arguments, pathlib.Path(temporary))


if __name__ == "__main__":
    sys.exit(main())
