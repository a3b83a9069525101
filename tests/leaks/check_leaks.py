#!/usr/bin/env python3
"""Compares `vram leaks` with the truth, on made recordings (made.py) and, if present, on other people's recordings (recordings.tsv).

usage: check_leaks.py VRAM [FOLDER OF CASES FOLDER]     (FOLDER has snapshots/)

Prints a line per recording with a wrong answer, and the numbers of right, wrong and missing answers. Fails if an answer is wrong, if the
command's exit code contradicts its answer, or if fewer known recordings are answered than before.
"""
import collections
import glob
import json
import os
import subprocess
import sys
import tempfile

import made

# The answers that agree with each truth. All others except those of UNKNOWN are wrong.
RIGHT = {"leak": {"leak"}, "no_leak": {"none", "growing", "released"}, "one_step": {"one_pass", "no_steps", "few_steps"}, "few_steps": {"few_steps", "no_steps"}, "no_history": {"no_steps"}}
CASES = (("leaks_layers.json.gz", "one_step"), ("seq_leak.pickle", "no_leak"))
UNKNOWN = {"no_steps", "one_pass", "unsure", "few_steps"}
MOST_UNTOLD = {"made": 3, "recordings": 8}


def judge(answer, truth):
    return "right" if answer in RIGHT[truth] else "untold" if answer in UNKNOWN else "wrong"


def answer_of(vram, path, found):
    ran = subprocess.run([vram, "leaks", "--json", path], capture_output=True, timeout=120)
    told = json.loads(ran.stdout)
    if ran.returncode != (1 if told["answer"] == "leak" else 0) or (told["leaks"] != 0) != (told["answer"] == "leak"):
        found.append(f"{path}: exit code {ran.returncode}, {told['leaks']} leaks, answer {told['answer']}")
    if told["groups"] and told["answer"] not in ("leak", "growing"):
        found.append(f"{path}: rows below \"{told['text']}\"")
    text = subprocess.run([vram, "leaks", path], capture_output=True, text=True, timeout=120).stdout
    text = " ".join(text.split())  # sentences wrap at the terminal's width
    if told["text"] not in text or told["steps_text"] not in text or "%" in text.replace(os.path.basename(path), ""):
        found.append(f"{path}: the text does not say \"{told['steps_text']}\", \"{told['text']}\", or has a percentage: {text}")
    return told


def check(vram, kind, cases, found):
    counts = collections.Counter()
    for name, truth, path in cases:
        told = answer_of(vram, path, found)
        verdict = judge(told["answer"], truth)
        counts[verdict] += 1
        if verdict != "right":
            print(f"{verdict}: {name} is {truth}, told \"{told['text']}\" ({told['steps_text']})")
        if verdict == "wrong":
            found.append(f"{name} is {truth}, told {told['answer']}")
    print(f"{kind}: {counts['right']} right, {counts['wrong']} wrong, {counts['untold']} not told, of {sum(counts.values())}")
    if counts["untold"] > MOST_UNTOLD[kind]:
        found.append(f"{counts['untold']} are not told, {MOST_UNTOLD[kind]} were")


def recordings_of(folder):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "recordings.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")][1:]
    for number, truth, _ in rows:
        paths = glob.glob(os.path.join(folder, "snapshots", number + "_*"))
        if paths:
            yield number, truth, paths[0]


def main():
    found, vram = [], os.path.abspath(sys.argv[1])
    for name, truth in CASES if len(sys.argv) > 2 else ():
        path = os.path.join(sys.argv[2], name)
        if not os.path.exists(path):
            print(f"skipped: {name} is absent")
        elif judge(answer_of(vram, path, found)["answer"], truth) != "right":
            found.append(f"{name} is {truth}")
    if len(sys.argv) > 2:
        check(vram, "recordings", list(recordings_of(sys.argv[3])), found)
    else:
        with tempfile.TemporaryDirectory() as folder:
            cases = []
            for name, (truth, make) in made.CASES.items():
                path = os.path.join(folder, name + ".json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(make(), file)
                cases.append((name, truth, path))
            check(vram, "made", cases, found)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
