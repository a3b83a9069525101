#!/usr/bin/env python3
"""Runs the allocator's unit tests with verify:True (VRAM_TEST_VERIFY, tests/support/world.c).

Usage: check_suite.py SOURCES PROGRAMS [--learn]

SOURCES has test_*.c, PROGRAMS the programs made from them. Every test that opens a world runs. A test that suite.tsv does not name must pass;
one that it names as `wrong` must be stopped by a report, because it frees wrongly on purpose; the others that it names may fail. Apart from
`wrong`, no output may have a report: it would be a false alarm. Exits 1 when any of these rules is broken.
"""
import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TABLE = Path(__file__).with_name("suite.tsv")
WORLD = re.compile(r'#include "support/(world|expect|captures|history|waits|answers)\.h"')
REPORT = re.compile(rb"^vram: [a-z-]+: ", re.MULTILINE)
SLOW = {"test_paged_random", "test_sleep_random", "test_fault_pairs"}  # minutes under the option
SECONDS = 250


def excluded():
    rows = (line.split("\t") for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return {name: reason for name, reason in rows}


def run(program):
    environment = dict(os.environ, VRAM_TEST_VERIFY="1")
    try:
        result = subprocess.run([program], env=environment, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return program.name, "timeout", 0
    return program.name, result.returncode, len(REPORT.findall(result.stdout + result.stderr))


def problem_of(name, code, reports, reason):
    if code == "timeout":
        return f"{name}: longer than {SECONDS} seconds"
    if reason == "wrong":
        return None if reports != 0 else f"{name}: its invalid free is not reported"
    if reports != 0:
        return f"{name}: {reports} false reports"
    if code < 0:
        return f"{name}: ended by signal {-code}"
    if code != 0 and reason is None:
        return f"{name}: fails, and suite.tsv does not say why"
    if code == 0 and reason is not None:
        return f"{name}: passes, and suite.tsv excludes it"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", type=Path)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--learn", action="store_true", help="print a row for each test that fails")
    arguments = parser.parse_args()
    names = [path.stem for path in sorted(arguments.sources.glob("test_*.c")) if WORLD.search(path.read_text())]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, [arguments.programs / name for name in names if name not in SLOW]))
    if arguments.learn:
        print("\n".join(f"{name}\t{'wrong' if reports else 'sizes'}" for name, code, reports in results if code != 0))
        return 0
    reasons = excluded()
    problems = [problem for name, code, reports in results if (problem := problem_of(name, code, reports, reasons.get(name)))]
    print("\n".join([*problems, f"{len(results)} tests with verify:True, {len(problems)} problems"]))
    return 1 if problems or not results else 0


if __name__ == "__main__":
    sys.exit(main())
