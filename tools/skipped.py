#!/usr/bin/env python3
"""Lists the tests of a run that had nothing to run, and the reasons. Usage: skipped.py LOG LASTTEST

LOG is the output of ctest. LASTTEST is its Testing/Temporary/LastTest.log, with the output of each test: a skipped test prints last what it
lacks. Prints a row for each reason, with the names, and the sum in the last line; prints nothing if every test ran.
"""
import re
import sys
from pathlib import Path

MOST_NAMES = 4


def skipped_in(log):
    """Returns the names of the skipped tests, and the number of tests."""
    names = re.findall(r"^ *\d+/\d+ +Test +#\d+: (\S+) \.*\*\*\*Skipped", log, re.MULTILINE)
    total = re.search(r"tests failed out of (\d+)", log)
    return names, int(total.group(1)) if total else len(names)


def outputs_in(last_test):
    """Returns the output of each test, by its name."""
    sections = re.findall(r"^\d+/\d+ Testing: (\S+)\n.*?^Output:\n-+\n(.*?)<end of output>", last_test, re.MULTILINE | re.DOTALL)
    return dict(sections)


def reason_of(name, output):
    """Returns the last line that names something missing, without the parts that differ from test to test: folders, and the test's name."""
    lines = [line.strip() for line in output.splitlines() if re.search("[a-z]", line)]
    told = [line for line in lines if re.search(r"skipped|no |not |without|needs", line) and not line.startswith(("OK", "Ran"))]
    text = (told or lines or ["it does not say why"])[-1]
    quoted = re.search(r"skipped ['\"](.*)['\"]$", text)  # by unittest
    text = quoted.group(1) if quoted else text.removeprefix(name.rpartition(".")[2] + ": ")
    text = re.sub(r"\([^)]*\)|(?<!\w)/\S*/|^skipped: |:? skipped\.?$", "", text)
    return re.sub(r"\s+", " ", text).strip(" :;,.")


def rows_of(log, last_test):
    """Returns the text to print: a row for each reason, the most frequent first, and the sum."""
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
