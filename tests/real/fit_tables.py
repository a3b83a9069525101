#!/usr/bin/env python3
"""The tables of docs/fit.md, between their markers, from what truth.py and fit_peers.py measured.

usage: fit_tables.py --truth FILE [--peers FILE] [--date YYYY-MM-DD]"""
import argparse
import datetime
import json
import pathlib
import re
import statistics

import truth

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/fit.md"
CARDS = [size << 30 for size in (2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 141, 180)]
PEERS = ("memtracker", "accelerate", "fitcheck", "vramcalc")
TORCH = {"torch-cu12": "2.6", "torch-2-11": "2.11"}


def both(pair):
    real, here = pair
    return f"{here:,}" if real == here else f"{here:,} for {real:,} ({100 * (here / real - 1):+.2f} %)"


def more_of(row):
    more = row["sizes_here"] - row["sizes_equal"]
    return f", {more:,} more here" if more else ""


def truth_table(rows):
    lines = ["| Recording | Program | PyTorch, as | Events equal | Sizes equal in order | Peak allocated, B | Peak reserved, B | s | Host, GB |",
             "| --- | --- | --- | --- | --- | --- | --- | --: | --: |"]
    for row in rows:
        events = f"{row['equal']:,} of {row['events']:,}"
        if row["equal"] < row["equal_any_order_of_frees"]:
            events += f" ({row['equal_any_order_of_frees']:,} but for the order of frees)"
        lines.append(f"| {row['id']} | {row['repository']} | {TORCH[row['environment']]}, {row['device']} | {events} | {row['sizes_equal']:,} of {row['sizes']:,}{more_of(row)} "
                     f"| {both(row['allocated'])} | {both(row['reserved'])} | {row['seconds']:.0f} | {row['host'] / 1e9:.1f} |")
    exact = [sum(row[name][0] == row[name][1] for row in rows) for name in ("allocated", "reserved")]
    sizes = sum(row["sizes_equal"] == row["sizes"] == row["sizes_here"] for row in rows)
    lines += ["", f"{len(rows)} recordings, {sum(row['events'] for row in rows):,} events: all sizes in order in {sizes}; peak allocated to the byte in {exact[0]}, "
              f"peak reserved in {exact[1]}."]
    told = [f"- {row['id']}: {row['why']}." for row in rows if row["why"]]
    prepared = [f"- {row['id']}: {row['prepared']}." for row in rows if row["prepared"]]
    return "\n".join(lines + (["", "Differences:", ""] + told if told else []) + ["", "What was prepared (all else runs from its command alone):", ""] + prepared)


def commands_table(rows):
    return "\n".join(["| Recording | Command |", "| --- | --- |"] + [f"| {row['id']} | `{re.sub(chr(10) + ' *', ' ', row['command']).replace('|', chr(92) + '|')}` |" for row in rows])


def card_of(need):
    return next((card for card in CARDS if need <= card), None)


def verdict(row, need):
    right, told = card_of(row["reserved"][0]), card_of(need)
    if told == right:
        return "right"
    return "too big" if told is None or (right is not None and told > right) else "too small"


def cell(row, answer):
    if answer is None or "failed" in answer:
        return "–"
    allocated, reserved = (100 * (answer["allocated"] / row[name][0] - 1) for name in ("allocated", "reserved"))
    return f"{allocated:+.1f} ; {reserved:+.1f}; {verdict(row, answer['allocated'])}; {answer['seconds']:.0f} s, {answer['host'] / 1e9:.1f} GB"


def peers_table(rows, peers):
    lines = [f"| Recording | real allocated ; reserved, B | vram | {' | '.join(PEERS)} |", f"| --- | --- | --- |{' --- |' * len(PEERS)}"]
    answers = {peer["id"]: peer for peer in peers}
    for row in rows:
        peer = answers.get(row["id"])
        if peer is None:
            continue
        own = (f"{100 * (row['allocated'][1] / row['allocated'][0] - 1):+.1f} ; {100 * (row['reserved'][1] / row['reserved'][0] - 1):+.1f}; "
               f"{verdict(row, row['reserved'][1])}; {row['seconds']:.0f} s, {row['host'] / 1e9:.1f} GB")
        lines.append(f"| {row['id']} | {row['allocated'][0]:,} ; {row['reserved'][0]:,} | {own} | {' | '.join(cell(row, peer.get(name)) for name in PEERS)} |")
    own_rows = [row for row in rows if row["id"] in answers]
    lines.append(f"| median of absolute errors, % | | {summary([(row, {'allocated': row['allocated'][1], 'reserved': row['reserved'][1]}) for row in own_rows])} | "
                 + " | ".join(summary([(row, answers[row["id"]][name]) for row in own_rows if "failed" not in answers[row["id"]].get(name, {"failed": ""})]) for name in PEERS) + " |")
    failed = [f"- {peer['id']}, {name}: {peer[name]['failed']}." for peer in peers for name in PEERS if "failed" in peer.get(name, {}) and peer[name]["failed"] != "no language model"]
    return "\n".join(lines + (["", "No answer:", ""] + failed if failed else []))


def summary(pairs):
    if not pairs:
        return "–"
    allocated = statistics.median(abs(100 * (answer["allocated"] / row["allocated"][0] - 1)) for row, answer in pairs)
    reserved = statistics.median(abs(100 * (answer.get("reserved", answer["allocated"]) / row["reserved"][0] - 1)) for row, answer in pairs)
    right = sum(verdict(row, answer.get("reserved", answer["allocated"])) == "right" for row, answer in pairs)
    return f"{allocated:.1f} ; {reserved:.1f}; card right in {right} of {len(pairs)}"


def put(text, name, body):
    begin, end = f"<!-- {name}: made by tests/real/fit_tables.py -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(begin)
    assert rest, f"no marker {begin}"
    return before + begin + "\n" + body + "\n" + end + rest.partition(end)[2]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].splitlines()[0])
    parser.add_argument("--truth", type=pathlib.Path, required=True)
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    options = parser.parse_args()
    why = {run.id: run.differs.get("why", "") for run in truth.read_runs()}
    rows = [{**row, "why": why[row["id"]]} for row in json.loads(options.truth.read_text()) if "allocated" in row]
    text = put(PAGE.read_text(), "truth", f"Measured on {options.date}.\n\n{truth_table(rows)}")
    text = put(text, "commands", commands_table(rows))
    if options.peers:
        text = put(text, "peers", f"Measured on {options.date}.\n\n{peers_table(rows, json.loads(options.peers.read_text()))}")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
