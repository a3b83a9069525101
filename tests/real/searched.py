#!/usr/bin/env python3
"""Compares a search of `vram fit` with runs of its variants alone, with all of their ranks: the best is the best of them, and every variant that
ran has the peak that it has alone.

usage: searched.py VRAM ANSWER [--most COUNT]

ANSWER is a file with the search's --json. The variants run alone in the order of the search, COUNT at most, so those with the most work come first.
"""
import argparse
import json
import pathlib
import subprocess
import sys


def alone(vram, command):
    """Returns whether the variant fits and its peak, of a run with all ranks."""
    result = subprocess.run([vram, "fit", "-q", "--json", "--fold", "none", "--", *command], capture_output=True, text=True, check=False)
    answer = json.loads(result.stdout)
    return answer["fits"], answer.get("reserved_bytes"), answer["ended"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vram")
    parser.add_argument("answer")
    parser.add_argument("--most", type=int, default=1 << 30)
    options = parser.parse_args()
    answer = json.loads(pathlib.Path(options.answer).read_text())
    best, wrong = None, 0
    for one in answer["variants"][: options.most]:
        fits, reserved, ended = alone(options.vram, one["command"])
        same = fits == (one["outcome"] == "fits") and (one["reserved_bytes"] is None or one["reserved_bytes"] == reserved)
        wrong += not same
        print("same" if same else "DIFFERS", one["values"], one["work"], one["outcome"], one["reserved_bytes"], "alone:", fits, reserved, ended, flush=True)
        if fits and (best is None or (one["work"], -reserved) > (best["work"], -best["alone"])):
            best = {**one, "alone": reserved}
    found = answer["best"][0]["variant"]
    if best is None or found is None or answer["variants"][found]["values"] != best["values"]:
        print("the best alone:", best and best["values"])
        wrong += 1
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
