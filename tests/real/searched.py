#!/usr/bin/env python3
"""Compares a search of `vram fit` with runs of its variants alone, with all of their ranks: the best is the best of them, and every variant that
ran has the peak that it has alone.

usage: searched.py VRAM ANSWER RESULTS [--most COUNT]

ANSWER is a file with the search's --json. The variants run alone in the order of the search, COUNT at most, so those with the most work come first.
RESULTS has a line for each variant; those that are already in it do not run again.
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


def result_of(vram, one):
    fits, reserved, ended = alone(vram, one["command"])
    verdict = {"fits": True, "failed": None}.get(one["outcome"], False)  # a program that fails has no verdict, alone too
    same = fits == verdict and (one["reserved_bytes"] is None or one["reserved_bytes"] == reserved)
    return {"values": one["values"], "same": same, "work": one["work"], "outcome": one["outcome"], "reserved_bytes": one["reserved_bytes"],
            "alone_fits": fits, "alone_bytes": reserved, "alone_ended": ended}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vram")
    parser.add_argument("answer", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=1 << 30)
    options = parser.parse_args()
    answer = json.loads(options.answer.read_text())
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    results = [json.loads(line) for line in lines]
    known = [result["values"] for result in results]
    for one in answer["variants"][: options.most]:
        if one["values"] in known:
            continue
        results.append(result_of(options.vram, one))
        with open(options.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(results[-1]) + "\n")
        print("same" if results[-1]["same"] else "DIFFERS", results[-1], flush=True)
    best = max((result for result in results if result["alone_fits"]), key=lambda result: (result["work"], -result["alone_bytes"]), default=None)
    found = answer["best"][0]["variant"]
    agree = best is not None and found is not None and answer["variants"][found]["values"] == best["values"]
    print(f"{sum(result['same'] for result in results)} of {len(results)} are the same; the best alone: {best and best['values']}")
    sys.exit(not agree or not all(result["same"] for result in results))


if __name__ == "__main__":
    main()
