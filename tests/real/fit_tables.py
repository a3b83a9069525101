#!/usr/bin/env python3
"""The tables of fit_measured.md, between their markers, from what truth.py and fit_peers.py measured.

usage: fit_tables.py --truth FILE [--peers FILE] [--own FILE] [--date YYYY-MM-DD]   What truth.py and fit_peers.py (with --truth, with --own) wrote."""
import argparse
import datetime
import json
import pathlib
import re
import statistics

import truth
from fit_peers import NO_MODEL

PAGE = pathlib.Path(__file__).resolve().parent / "fit_measured.md"
CARDS = [size << 30 for size in (2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 141, 180)]
PEERS = ("memtracker", "accelerate", "fitcheck", "vramcalc")
TORCH = {"torch-2-4": "2.4", "torch-2-5": "2.5", "torch-cu12": "2.6", "torch-2-11": "2.11"}


def both(pair):
    real, here = pair
    return f"{here:,}" if real == here else f"{here:,} for {real:,} ({100 * (here / real - 1):+.2f} %)"


def more_of(row):
    more = row["sizes_here"] - row["sizes_equal"]
    return f", {more:,} more here" if more else ""


def within(rows, name, part):
    return sum(abs(row[name][1] - row[name][0]) <= part * row[name][0] for row in rows)


def summary_of(rows):
    exact = [within(rows, name, 0) for name in ("allocated", "reserved")]
    sizes = [sum(row["sizes_equal"] == row["sizes"] for row in rows), sum(row["sizes_equal"] == row["sizes"] == row["sizes_here"] for row in rows)]
    return (f"{len(rows)} recordings, {sum(row['events'] for row in rows):,} events. All recorded sizes in order in {sizes[0]} (and no others in {sizes[1]}); peak allocated to the "
            f"byte in {exact[0]}; peak reserved in {exact[1]}, within 0.1 % in {within(rows, 'reserved', 0.001)}.")


def notes(title, rows, text):
    """Returns a list of remarks, joining those with the same text."""
    same = {}
    for row in rows:
        if text(row):
            same.setdefault(text(row), []).append(row["id"])
    return ["", title, ""] + [f"- {' '.join(ids)}: {words}." for words, ids in same.items()] if same else []


def outside_window(row):
    """Returns whether the whole program, which `vram fit` measures, needs more than the recorded part."""
    fit = row["fit"]
    return fit["requested_bytes"] > fit["allocated"] or fit["reserved_bytes"] > fit["reserved"]


def truth_table(rows):
    lines = ["| Recording | Program | PyTorch, as | Events equal | Sizes equal in order | Peak allocated, B | Peak reserved, B | Processor s | Host, GB |",
             "| --- | --- | --- | --- | --- | --- | --- | --: | --: |"]
    for row in rows:
        events = f"{row['equal']:,} of {row['events']:,}"
        if row["equal"] < row["equal_any_order_of_frees"]:
            events += f" ({row['equal_any_order_of_frees']:,} but for the order of frees)"
        marks = ("*" if row["skip"] else "") + ("†" if row["reconstructed"] else "")
        lines.append(f"| {row['id']}{marks} | {row['repository']} | {TORCH[row['environment']]}, {row['device']} | {events} | {row['sizes_equal']:,} of {row['sizes']:,}{more_of(row)} "
                     f"| {both(row['allocated'])} | {both(row['reserved'])} | {row['fit']['processor']:.0f} | {row['fit']['host'] / 1e9:.1f} |")
    lines += ["", summary_of(rows)]
    lines += notes("Differences:", rows, lambda row: row["why"])
    whole = lambda row: (f"the program continues, or did more before; for the whole program `vram fit` reports {row['fit']['allocated_bytes']:,} B allocated (in blocks), "
                         f"{row['fit']['reserved_bytes']:,} B reserved") if outside_window(row) else ""
    lines += notes("The peaks above are those of `vram fit`'s recording between the events that the real one has. For these recordings the whole program has other peaks:", rows, whole)
    return "\n".join(lines + notes("What was prepared (all other programs run from their command alone):", rows, lambda row: row["prepared"]))


def commands_table(rows):
    return "\n".join(["| Recording | Command |", "| --- | --- |"] + [f"| {row['id']} | `{re.sub(chr(10) + ' *', ' ', row['command']).replace('|', chr(92) + '|')}` |" for row in rows])


def card_of(need):
    return next((card for card in CARDS if need <= card), None)


def verdict(row, need):
    right, told = card_of(row["reserved"][0]), card_of(need)
    if told == right:
        return "right"
    return "too big" if told is None or (right is not None and told > right) else "too small"


def took(answer):
    return f"{answer['processor']:.1f} s, {answer['host'] / 1e9:.1f} GB"


def cell(row, answer):
    if answer is None or "failed" in answer:
        return "–"
    allocated, reserved = (100 * (answer["allocated"] / row[name][0] - 1) for name in ("allocated", "reserved"))
    return f"{allocated:+.1f} ; {reserved:+.1f}; {verdict(row, answer['allocated'])}; {took(answer)}"


def own_cell(row):
    allocated, reserved = (100 * (row[name][1] / row[name][0] - 1) for name in ("allocated", "reserved"))
    return f"{allocated:+.1f} ; {reserved:+.1f}; {verdict(row, row['reserved'][1])}; {took(row['fit'])}"


def without_answer(peers):
    failed = [f"- {peer['id']}, {name}: {peer[name]['failed']} ({peer[name].get('processor', 0):.0f} s of processors)." for peer in peers for name in PEERS
              if "failed" in peer.get(name, {}) and peer[name]["failed"] != NO_MODEL]
    return ["", "No answer:", ""] + failed if failed else []


def peers_table(rows, peers, truth_column, vram_cell, vram_summary):
    """Writes the table of other estimates. `rows` are the truth, in the form of truth.py."""
    answers = {peer["id"]: peer for peer in peers}
    rows = [row for row in rows if row["id"] in answers]
    lines = [f"| Program | {truth_column} allocated ; reserved, B | vram | {' | '.join(PEERS)} |", f"| --- | --- | --- |{' --- |' * len(PEERS)}"]
    lines += [f"| {row['id']} | {row['allocated'][0]:,} ; {row['reserved'][0]:,} | {vram_cell(row)} | {' | '.join(cell(row, answers[row['id']].get(name)) for name in PEERS)} |" for row in rows]
    told = {name: [(row, answers[row["id"]][name]) for row in rows if "failed" not in answers[row["id"]].get(name, {"failed": ""})] for name in PEERS}
    lines.append(f"| median | | {vram_summary(rows)} | " + " | ".join(summary(told[name]) for name in PEERS) + " |")
    return "\n".join(lines + without_answer(peers))


def fit_as_answer(row):
    return row, {**row["fit"], "allocated": row["allocated"][1], "reserved": row["reserved"][1]}


def summary(pairs):
    if not pairs:
        return "–"
    allocated = statistics.median(abs(100 * (answer["allocated"] / row["allocated"][0] - 1)) for row, answer in pairs)
    reserved = statistics.median(abs(100 * (answer.get("reserved", answer["allocated"]) / row["reserved"][0] - 1)) for row, answer in pairs)
    right = sum(verdict(row, answer.get("reserved", answer["allocated"])) == "right" for row, answer in pairs)
    return f"{allocated:.1f} ; {reserved:.1f}; right in {right} of {len(pairs)}; {medians_of(answer for _, answer in pairs)}"


def medians_of(answers):
    answers = list(answers)
    return f"{statistics.median(answer['processor'] for answer in answers):.1f} s, {statistics.median(answer['host'] for answer in answers) / 1e9:.1f} GB"


def put(text, name, body):
    begin, end = f"<!-- {name}: made by tests/real/fit_tables.py -->", f"<!-- end of {name} -->"
    before, _, rest = text.partition(begin)
    assert rest, f"no marker {begin}"
    return before + begin + "\n" + body + "\n" + end + rest.partition(end)[2]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].splitlines()[0])
    parser.add_argument("--truth", type=pathlib.Path, required=True)
    parser.add_argument("--peers", type=pathlib.Path)
    parser.add_argument("--own", type=pathlib.Path)
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    options = parser.parse_args()
    known = {run.id: run for run in truth.read_runs()}
    rows = [{**row, "why": known[row["id"]].differs.get("why", ""), "prepared": known[row["id"]].group.get("prepared", ""), "reconstructed": known[row["id"]].group.get("reconstructed", False)}
            for row in json.loads(options.truth.read_text()) if "fit" in row]
    measured = f"Measured on {options.date}.\n\n"
    text = put(PAGE.read_text(), "truth", measured + truth_table(rows))
    text = put(text, "commands", commands_table(rows))
    if options.peers:
        peers = json.loads(options.peers.read_text())
        table = peers_table(rows, peers, "real", own_cell, lambda rows: summary([fit_as_answer(row) for row in rows]))
        text = put(text, "peers", measured + table)
    if options.own:
        peers = json.loads(options.own.read_text())
        table = peers_table([peer["own"] for peer in peers], peers, "simulated", lambda row: took(row["fit"]), lambda rows: medians_of(row["fit"] for row in rows))
        text = put(text, "own", measured + table)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
