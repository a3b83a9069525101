#!/usr/bin/env python3
"""Says which tests of a run had nothing to run, and why. Usage: skipped.py LOG LASTTEST

LOG is what ctest printed, LASTTEST its Testing/Temporary/LastTest.log, which has what each test printed: a skipped test says last what it lacks. A
row for each reason, with the names; the last line has the sum. Nothing is printed where every test ran.
"""
import re
import sys
from pathlib import Path

MOST_NAMES = 4


def skipped_in(log):
    """The names of the tests that were skipped, and how many tests there were."""
    names = re.findall(r"^ *\d+/\d+ +Test +#\d+: (\S+) \.*\*\*\*Skipped", log, re.MULTILINE)
    total = re.search(r"tests failed out of (\d+)", log)
    return names, int(total.group(1)) if total else len(names)


def outputs_in(last_test):
    """What each test printed, by its name."""
    sections = re.findall(r"^\d+/\d+ Testing: (\S+)\n.*?^Output:\n-+\n(.*?)<end of output>", last_test, re.MULTILINE | re.DOTALL)
    return dict(sections)


def reason_of(name, output):
    """The last line that says what is not there, without what differs from test to test: folders, and the name of the test."""
    lines = [line.strip() for line in output.splitlines() if re.search("[a-z]", line)]
    told = [line for line in lines if re.search(r"skipped|no |not |without|needs", line) and not line.startswith(("OK", "Ran"))]
    text = (told or lines or ["it does not say why"])[-1]
    quoted = re.search(r"skipped ['\"](.*)['\"]$", text)  # by unittest
    text = quoted.group(1) if quoted else text.removeprefix(name.rpartition(".")[2] + ": ")
    text = re.sub(r"\([^)]*\)|(?<!\w)/\S*/|^skipped: |:? skipped\.?$", "", text)
    return re.sub(r"\s+", " ", text).strip(" :;,.")


def rows_of(log, last_test):
    """What to print: a row for each reason, the most frequent first, and the sum."""
    names, total = skipped_in(log)
    outputs, reasons = outputs_in(last_test), {}
    for name in names:
        reasons.setdefault(reason_of(name, outputs.get(name, "")), []).append(name)
    ordered = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [f"  {len(of):3}  {reason}: {', '.join(of[:MOST_NAMES])}{', ...' if len(of) > MOST_NAMES else ''}" for reason, of in ordered]
    why = "; ".join(f"{len(of)} {reason}" for reason, of in ordered)
    return rows + [f"{len(names)} of {total} tests had nothing to run: {why}"] if names else []


def main():
    log, last_test = (Path(name).read_text(encoding="utf-8", errors="replace") for name in sys.argv[1:3])
    for row in rows_of(log, last_test):
        print(row)


if __name__ == "__main__":
    main()
